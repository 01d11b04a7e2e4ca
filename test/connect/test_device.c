/* SPDX-License-Identifier: MIT */
/* Devices: the list, opening, and the sentence of each step of opening that can fail. */
#include "test/connect/connect.h"

static struct vb_devices *devices;

void setUp(void)
{
	fresh_world(3, VB_SIM_CLOCK_VIRTUAL);
	devices = vb_devices_get("sim");
	HAVE(devices);
}

void tearDown(void)
{
	vb_devices_put(devices);
	assert_nothing_left();
}

void test_the_list_by_index_and_by_name(void)
{
	const struct vb_device_info *info;

	TEST_ASSERT_EQUAL_UINT(3, vb_devices_count(devices));
	for (unsigned int i = 0; i < 3; i++) {
		info = vb_devices_at(devices, i);
		HAVE(info);
		TEST_ASSERT_EQUAL_PTR(info, vb_devices_named(devices, info->name));
		TEST_ASSERT_EQUAL_STRING(vb_get_device_name(info->device), info->name);
		TEST_ASSERT_EQUAL_INT(vb_get_device_index(info->device), info->index);
		TEST_ASSERT_TRUE(info->guid != 0);
	}
	TEST_ASSERT_EQUAL_STRING("sim2", vb_devices_at(devices, 2)->name);
	TEST_ASSERT_TRUE(vb_devices_at(devices, 0)->guid != vb_devices_at(devices, 1)->guid);
}

void test_an_unknown_device(void)
{
	TEST_ASSERT_NULL(vb_devices_at(devices, 3));
	TEST_ASSERT_EQUAL_INT(ENODEV, errno);
	TEST_ASSERT_NULL(vb_devices_named(devices, "mlx5_0"));
	TEST_ASSERT_EQUAL_INT(ENODEV, errno);
	assert_says("there are: sim0, sim1, sim2");
	TEST_ASSERT_NULL(vb_device_open_named("sim", "mlx5_0", 0, 0));
	TEST_ASSERT_EQUAL_INT(ENODEV, errno);
	TEST_ASSERT_EQUAL_INT(VB_ERROR_INVALID_INPUT, vb_last_error_kind());
}

void test_an_unknown_backend(void)
{
	TEST_ASSERT_NULL(vb_devices_get("elsewhere"));
	TEST_ASSERT_EQUAL_INT(EINVAL, errno);
	assert_says("invalid input: devices: ");
	assert_says("elsewhere");
}

void test_an_open_device_outlives_the_list(void)
{
	struct vb_device *device = vb_device_open(vb_devices_at(devices, 1)->device, 1, 1);

	HAVE(device);
	vb_devices_put(devices);
	devices = NULL;
	TEST_ASSERT_EQUAL_INT(IBV_PORT_ACTIVE, device->port_attr.state);
	TEST_ASSERT_EQUAL_UINT(1, device->port_num);
	TEST_ASSERT_EQUAL_INT(1, device->gid_index);
	TEST_ASSERT_TRUE(device->attr.max_qp > 0);
	OK(vb_device_close(device));
}

void test_any_gid_is_the_one_of_the_ipv4_address(void)
{
	struct vb_device *device = vb_device_open_named("sim", "sim1", 0, VB_GID_INDEX_ANY);

	HAVE(device);
	TEST_ASSERT_EQUAL_UINT(1, device->port_num);
	TEST_ASSERT_EQUAL_UINT8(0xff, device->gid.raw[10]);
	TEST_ASSERT_EQUAL_UINT8(10, device->gid.raw[12]);
	TEST_ASSERT_EQUAL_UINT8(2, device->gid.raw[15]);
	OK(vb_device_close(device));
}

void test_opening_says_that_the_port_does_not_exist(void)
{
	TEST_ASSERT_NULL(vb_device_open_named("sim", "sim0", 3, 0));
	TEST_ASSERT_EQUAL_INT(EINVAL, errno);
	assert_says("invalid input: device sim0: port 3: query_port");
}

void test_opening_says_that_the_port_is_down(void)
{
	struct vb_device *first = vb_device_open_named("sim", "sim0", 1, 0);

	HAVE(first);
	OK(vb_sim_port_state(first->context, 1, false));
	TEST_ASSERT_NULL(vb_device_open_named("sim", "sim0", 1, 0));
	TEST_ASSERT_EQUAL_INT(ENETDOWN, errno);
	assert_says("device sim0: port 1 is ");
	assert_says("not ACTIVE or ARMED");
	OK(vb_sim_port_state(first->context, 1, true));
	OK(vb_device_close(first));
}

void test_opening_says_that_the_gid_does_not_exist(void)
{
	TEST_ASSERT_NULL(vb_device_open_named("sim", "sim0", 1, 4000));
	TEST_ASSERT_TRUE(errno != 0);
	assert_says("device sim0: port 1: GID 4000");
}

void test_opening_what_is_no_device(void)
{
	TEST_ASSERT_NULL(vb_device_open(NULL, 1, 0));
	TEST_ASSERT_EQUAL_INT(EINVAL, errno);
	assert_says("device");
}

void test_a_device_on_infiniband(void)
{
	struct vb_sim_config *config = calloc(1, sizeof(*config));
	struct vb_device *device;

	vb_devices_put(devices);
	config->device_count = 1;
	config->devices[0] = (struct vb_sim_device_config){.name = "ib0",
							   .link_layer = IBV_LINK_LAYER_INFINIBAND};
	OK(vb_sim_configure(config));
	free(config);
	devices = vb_devices_get("sim");
	device = vb_device_open_named("sim", "ib0", 0, VB_GID_INDEX_ANY);
	HAVE(device);
	TEST_ASSERT_EQUAL_INT(0, device->gid_index);
	TEST_ASSERT_EQUAL_UINT(1, device->port_attr.lid);
	OK(vb_device_close(device));
}
