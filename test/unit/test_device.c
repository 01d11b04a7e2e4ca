/* SPDX-License-Identifier: MIT */
#include "test/support/engine.h"
#include "unity.h"

#include <errno.h>
#include <stdio.h>

static struct engine engine;

void setUp(void)
{
	engine_open_bare(&engine, 1);
}

void tearDown(void)
{
	engine_close(&engine);
}

static struct sim_device_config good(const union ibv_gid *gids)
{
	return (struct sim_device_config){
		.name = "one",
		.profile = sim_profile_find("spec"),
		.port_count = 1,
		.link_layer = IBV_LINK_LAYER_ETHERNET,
		.mtu = IBV_MTU_1024,
		.gid_count = 1,
		.gids = gids,
	};
}

/* Makes a path and finds its way, as the network does before the first packet. */
static int resolve(struct sim_device *device, const struct ibv_ah_attr *attr, struct sim_path *path)
{
	int err = sim_path_resolve(device, attr, path);

	if (!err)
		sim_fabric_find_way(engine.sim, path);
	return err;
}

void test_configurations_that_cannot_be(void)
{
	const union ibv_gid gid = engine_gid(1);
	struct sim_device_config config;
	struct sim_device *device;

	for (unsigned int i = 0; i < 7; i++) {
		config = good(&gid);
		switch (i) {
		case 0:
			config.port_count = 0;
			break;
		case 1:
			config.port_count = SIM_PORTS_MAX + 1;
			break;
		case 2:
			config.mtu = 0;
			break;
		case 3:
			config.mtu = IBV_MTU_4096 + 1;
			break;
		case 4:
			config.gid_count = SIM_GIDS_MAX / 2;
			break;
		case 5:
			config.pkey_count = SIM_PKEYS_MAX + 1;
			break;
		default:
			config.name = "a-name-that-is-too-long-to-be-one";
			break;
		}
		TEST_ASSERT_EQUAL_INT(EINVAL,
				      sim_device_create(engine.sim, &config, NULL, &device));
	}
	TEST_ASSERT_NULL(engine.sim->devices);
}

/* The largest device that fits, and names of the longest and of a too long length. */
void test_configurations_at_their_bounds(void)
{
	const union ibv_gid gid = engine_gid(1);
	static const uint16_t pkeys[SIM_PKEYS_MAX] = {0xffff, [SIM_PKEYS_MAX - 1] = 0x8001};
	/* The table has each of them twice, and the link-local one. */
	union ibv_gid gids[SIM_GIDS_MAX / 2 - 1];
	char name[SIM_NAME_MAX + 1] = {0};
	struct sim_device_config config = good(&gid);
	struct sim_device *device;

	for (unsigned int i = 0; i < SIM_GIDS_MAX / 2 - 1; i++)
		gids[i] = engine_gid((uint8_t)(i + 1));
	config.port_count = SIM_PORTS_MAX;
	config.mtu = IBV_MTU_256;
	config.gid_count = SIM_GIDS_MAX / 2 - 1;
	config.gids = gids;
	config.pkey_count = SIM_PKEYS_MAX;
	config.pkeys = pkeys;
	memset(name, 'n', SIM_NAME_MAX - 1);
	config.name = name;
	TEST_ASSERT_EQUAL_INT(0, sim_device_create(engine.sim, &config, NULL, &device));
	TEST_ASSERT_NOT_NULL(sim_device_port(device, SIM_PORTS_MAX));
	TEST_ASSERT_EQUAL_UINT(SIM_GIDS_MAX, sim_device_port(device, 1)->gid_count);
	TEST_ASSERT_EQUAL_HEX16(0x8001, sim_device_port(device, 1)->pkeys[SIM_PKEYS_MAX - 1]);
	TEST_ASSERT_EQUAL_STRING(name, device->name);
	name[SIM_NAME_MAX - 1] = 'n';
	TEST_ASSERT_EQUAL_INT(EINVAL, sim_device_create(engine.sim, &config, NULL, &device));
}

/* The table is full; the bytes behind it must not be taken for a GID. */
void test_gid_index_behind_a_full_table(void)
{
	const union ibv_gid gid = {
		.raw = {0xfd, [15] = 7}}; /* the bytes there are no IPv4 address either */
	struct sim_device *device = engine_add_device(&engine, "one", 1, &gid);
	struct ibv_ah_attr attr = {.port_num = 1, .is_global = 1, .grh.dgid = gid};
	struct sim_path path;

	TEST_ASSERT_EQUAL_INT(0, sim_port_set_gid(sim_device_port(device, 1), SIM_GIDS_MAX - 1,
						  &gid, IBV_GID_TYPE_ROCE_V2));
	attr.grh.sgid_index = SIM_GIDS_MAX - 1;
	TEST_ASSERT_EQUAL_INT(0, resolve(device, &attr, &path));
	attr.grh.sgid_index = SIM_GIDS_MAX;
	TEST_ASSERT_EQUAL_INT(EINVAL, sim_path_resolve(device, &attr, &path));
}

/* The table grows to the highest index that was set, up to its room. */
void test_a_gid_behind_the_last(void)
{
	static const enum ibv_gid_type type = IBV_GID_TYPE_ROCE_V2;
	const union ibv_gid gid = engine_gid(7), other = engine_gid(8);
	struct sim_port *port = sim_device_port(engine_add_device(&engine, "one", 1, &gid), 1);
	const unsigned int had = port->gid_count;

	TEST_ASSERT_EQUAL_INT(0, sim_port_set_gid(port, had - 1, &other, type));
	TEST_ASSERT_EQUAL_UINT(had, port->gid_count);
	TEST_ASSERT_EQUAL_INT(0, sim_port_set_gid(port, had, &other, type));
	TEST_ASSERT_EQUAL_UINT(had + 1, port->gid_count);
	TEST_ASSERT_EQUAL_INT(EINVAL, sim_port_set_gid(port, SIM_GIDS_MAX, &other, type));
	TEST_ASSERT_EQUAL_UINT(had + 1, port->gid_count);
}

/* A new P_Key changes the QPs of its port and index, and no others. */
void test_a_pkey_reaches_its_qps(void)
{
	static const struct {
		unsigned int port, index;
		bool changes;
	} rows[] = {{1, 0, true}, {1, 1, false}, {2, 0, false}};
	const union ibv_gid gid = engine_gid(7);
	struct sim_device *device = engine_add_device(&engine, "one", 2, &gid);
	struct sim_port *port = sim_device_port(device, 1);
	struct sim_qp_init init = {.type = IBV_QPT_XRC_RECV};
	struct sim_qp *qps[3];

	port->pkeys[1] = 0xffff;
	for (unsigned int i = 0; i < 3; i++) {
		TEST_ASSERT_EQUAL_INT(0, sim_qp_create(device, &init, &qps[i]));
		qps[i]->port_num = (uint8_t)rows[i].port;
		qps[i]->pkey_index = (uint16_t)rows[i].index;
		qps[i]->pkey = 0xffff;
	}
	TEST_ASSERT_EQUAL_INT(EINVAL, sim_port_set_pkey(port, port->pkey_count, 0x8001));
	TEST_ASSERT_EQUAL_INT(0, sim_port_set_pkey(port, 0, 0x8001));
	for (unsigned int i = 0; i < 3; i++) {
		TEST_ASSERT_EQUAL_HEX16(rows[i].changes ? 0x8001 : 0xffff, qps[i]->pkey);
		sim_qp_destroy(qps[i]);
	}
}

/* ibv_close_xrcd(3): it fails while the domain is in use. That the errno is EBUSY is unsourced. */
void test_a_domain_in_use_stays(void)
{
	const union ibv_gid gid = engine_gid(7);
	struct sim_device *device = engine_add_device(&engine, "one", 1, &gid);
	struct sim_xrcd *xrcd;

	TEST_ASSERT_EQUAL_INT(0, sim_xrcd_create(device, &xrcd));
	xrcd->users = 1;
	TEST_ASSERT_EQUAL_INT(EBUSY, sim_xrcd_destroy(xrcd));
	xrcd->users = 0;
	TEST_ASSERT_EQUAL_INT(0, sim_xrcd_destroy(xrcd));
}

/* RFC 4291: fe80::/64 and the MAC with ff:fe in its middle. The configured GIDs follow. */
void test_gids(void)
{
	const union ibv_gid gid = engine_gid(7);
	struct sim_device *device = engine_add_device(&engine, "one", 2, &gid);
	const struct sim_port *port = sim_device_port(device, 1);
	const uint8_t *local = port->gids[0].raw;

	TEST_ASSERT_EQUAL_UINT(4, port->gid_count);
	TEST_ASSERT_EQUAL_HEX8(0xfe, local[0]);
	TEST_ASSERT_EQUAL_HEX8(0x80, local[1]);
	TEST_ASSERT_EQUAL_HEX8(port->mac[0] ^ 2, local[8]);
	TEST_ASSERT_EQUAL_HEX8(0xff, local[11]);
	TEST_ASSERT_EQUAL_HEX8(0xfe, local[12]);
	TEST_ASSERT_EQUAL_HEX8(port->mac[5], local[15]);
	TEST_ASSERT_EQUAL_MEMORY(&gid, &port->gids[1], 16);
	for (unsigned int i = 0; i < 2; i++) {
		TEST_ASSERT_EQUAL_UINT8(IBV_GID_TYPE_ROCE_V2, port->gid_types[i]);
		TEST_ASSERT_EQUAL_UINT8(IBV_GID_TYPE_ROCE_V1, port->gid_types[2 + i]);
		TEST_ASSERT_EQUAL_MEMORY(&port->gids[i], &port->gids[2 + i], 16);
	}
	TEST_ASSERT_EQUAL_UINT(2, sim_device_port(device, 2)->gid_count);
	TEST_ASSERT_TRUE(memcmp(local, &sim_device_port(device, 2)->gids[0], 16) != 0);
}

void test_device_without_gids_of_its_own(void)
{
	struct sim_device_config config = good(NULL);
	struct sim_device *device;

	config.gid_count = 0;
	TEST_ASSERT_EQUAL_INT(0, sim_device_create(engine.sim, &config, NULL, &device));
	TEST_ASSERT_EQUAL_UINT(2, device->ports[0].gid_count);
}

/*
 * SoftRoCE has RoCE v2 only: Linux drivers/infiniband/sw/rxe/rxe_verbs.c, rxe_port_immutable. The
 * GIDs of InfiniBand have a type of their own.
 */
void test_gid_types_of_others(void)
{
	static const char *const profiles[] = {"rxe-6.1", "rxe-6.12", "mlx5"};
	const union ibv_gid gid = engine_gid(7);
	struct sim_device_config config = good(&gid);
	struct sim_device *device;

	for (unsigned int i = 0; i < 3; i++) {
		config.profile = sim_profile_find(profiles[i]);
		TEST_ASSERT_EQUAL_INT(0, sim_device_create(engine.sim, &config, NULL, &device));
		TEST_ASSERT_EQUAL_UINT(i < 2 ? 2 : 4, device->ports[0].gid_count);
		TEST_ASSERT_EQUAL_INT(
			i < 2 ? EINVAL : 0,
			sim_port_set_gid(&device->ports[0], 0, &gid, IBV_GID_TYPE_ROCE_V1));
		TEST_ASSERT_EQUAL_INT(
			EINVAL, sim_port_set_gid(&device->ports[0], 0, &gid, IBV_GID_TYPE_IB));
	}
	device = engine_add_infiniband(&engine, "two", 1, &gid);
	TEST_ASSERT_EQUAL_UINT(2, device->ports[0].gid_count);
	for (unsigned int i = 0; i < 2; i++)
		TEST_ASSERT_EQUAL_UINT8(IBV_GID_TYPE_IB, device->ports[0].gid_types[i]);
	TEST_ASSERT_EQUAL_INT(EINVAL,
			      sim_port_set_gid(&device->ports[0], 0, &gid, IBV_GID_TYPE_ROCE_V1));
	TEST_ASSERT_EQUAL_INT(0, sim_port_set_gid(&device->ports[0], 0, &gid, IBV_GID_TYPE_IB));
}

/* A path from a GID leads to a GID of the same type. The MAC of a group follows from its GID. */
void test_paths_of_roce_v1(void)
{
	const union ibv_gid gids[] = {engine_gid(1), engine_gid(2)}, zero = {0};
	const union ibv_gid groups[] = {{.raw = {[10] = 0xff, 0xff, 239, 0x81, 2, 3}},
					{.raw = {0xff, 0x0e, [12] = 9, 8, 7, 6}}};
	const uint8_t macs[2][6] = {{1, 0, 0x5e, 1, 2, 3}, {0x33, 0x33, 9, 8, 7, 6}};
	struct sim_device *one = engine_add_device(&engine, "one", 1, &gids[0]);
	struct sim_device *two = engine_add_device(&engine, "two", 1, &gids[1]);
	struct ibv_ah_attr attr = engine_ah_attr(&gids[1]);
	struct sim_path path;

	attr.grh.sgid_index = 3;
	TEST_ASSERT_EQUAL_INT(0, resolve(one, &attr, &path));
	TEST_ASSERT_TRUE(path.route.roce_v1);
	TEST_ASSERT_EQUAL_PTR(&two->ports[0], path.dest);
	attr.grh.sgid_index = 2; /* a GRH has no address family */
	TEST_ASSERT_EQUAL_INT(0, resolve(one, &attr, &path));
	TEST_ASSERT_EQUAL_PTR(&two->ports[0], path.dest);
	for (unsigned int i = 0; i < 2; i++) {
		attr.grh.dgid = groups[i];
		TEST_ASSERT_EQUAL_INT(0, resolve(one, &attr, &path));
		TEST_ASSERT_EQUAL_HEX8_ARRAY(macs[i], path.route.dest_mac, 6);
	}
	attr = engine_ah_attr(&gids[1]);
	attr.grh.sgid_index = 3;
	TEST_ASSERT_EQUAL_INT(0, sim_port_set_gid(&two->ports[0], 3, &zero, IBV_GID_TYPE_ROCE_V1));
	TEST_ASSERT_EQUAL_INT(0, resolve(one, &attr, &path));
	TEST_ASSERT_NULL(path.dest);
	attr.grh.sgid_index = 1;
	TEST_ASSERT_EQUAL_INT(0, resolve(one, &attr, &path));
	TEST_ASSERT_FALSE(path.route.roce_v1);
	TEST_ASSERT_EQUAL_PTR(&two->ports[0], path.dest);
}

/* Every port has its own MAC, which is neither that of a group nor that of lost packets. */
static struct sim_device *add_with_identity(uint64_t identity, const char *name)
{
	const struct sim_device_config config = {.name = name,
						 .profile = sim_profile_find("spec"),
						 .port_count = 1,
						 .link_layer = IBV_LINK_LAYER_ETHERNET,
						 .mtu = IBV_MTU_4096,
						 .identity = identity};
	struct sim_device *device;

	TEST_ASSERT_EQUAL_INT(0, sim_device_create(engine.sim, &config, NULL, &device));
	return device;
}

/* The MAC, the link-local GID and the first numbers of two identities differ; an identity repeats
 * them. */
void test_an_identity_moves_addresses_and_numbers(void)
{
	struct sim_device *devices[3];
	uint32_t numbers[3];

	for (unsigned int i = 0; i < 3; i++) {
		devices[i] =
			add_with_identity(i == 2 ? 6 : 5 + i, (const char *[]){"p", "q", "r"}[i]);
		TEST_ASSERT_EQUAL_INT(0, sim_table_insert(&devices[i]->qps, &engine, &numbers[i]));
		sim_table_remove(&devices[i]->qps, numbers[i]);
		TEST_ASSERT_EQUAL_HEX8(2, devices[i]->ports[0].mac[0] & 3);
	}
	TEST_ASSERT_TRUE(memcmp(devices[0]->ports[0].mac, devices[1]->ports[0].mac, 3) != 0);
	TEST_ASSERT_EQUAL_MEMORY(devices[1]->ports[0].mac, devices[2]->ports[0].mac, 4);
	TEST_ASSERT_TRUE(memcmp(devices[1]->ports[0].mac, devices[2]->ports[0].mac, 6) != 0);
	TEST_ASSERT_TRUE(devices[0]->node_guid != devices[1]->node_guid);
	TEST_ASSERT_NOT_EQUAL(numbers[0], numbers[1]);
	TEST_ASSERT_NOT_EQUAL(numbers[1], numbers[2]);
	TEST_ASSERT_TRUE(numbers[0] > 16 || numbers[1] > 16);
}

void test_macs_are_unique(void)
{
	static struct sim_device *devices[300];

	for (unsigned int i = 0; i < 300; i++) {
		devices[i] = engine_add_device(&engine, "many", 2, NULL);
		for (unsigned int p = 0; p < 2; p++) {
			const uint8_t *mac = devices[i]->ports[p].mac;

			TEST_ASSERT_EQUAL_HEX8(2, mac[0] & 3);
			TEST_ASSERT_TRUE(memcmp(mac, sim_trace_lost_mac, 6) != 0);
			for (unsigned int j = 0; j < 2 * i + p; j++)
				TEST_ASSERT_TRUE(memcmp(mac, devices[j / 2]->ports[j % 2].mac, 6) !=
						 0);
		}
	}
}

void test_ports(void)
{
	struct sim_device *device = engine_add_device(&engine, "one", 2, NULL);
	struct ibv_port_attr port;
	struct ibv_device_attr attr;

	TEST_ASSERT_NULL(sim_device_port(device, 0));
	TEST_ASSERT_NOT_NULL(sim_device_port(device, 2));
	TEST_ASSERT_NULL(sim_device_port(device, 3));
	sim_port_query(sim_device_port(device, 2), &port);
	TEST_ASSERT_EQUAL_INT(IBV_PORT_ACTIVE, port.state);
	TEST_ASSERT_EQUAL_INT(IBV_LINK_LAYER_ETHERNET, port.link_layer);
	TEST_ASSERT_EQUAL_INT(IBV_MTU_4096, port.active_mtu);
	sim_device_query(device, &attr);
	TEST_ASSERT_EQUAL_UINT8(2, attr.phys_port_cnt);
	TEST_ASSERT_NOT_EQUAL(0, attr.node_guid);
}

void test_paths(void)
{
	const union ibv_gid gids[] = {engine_gid(1), engine_gid(2), engine_gid(3)};
	struct sim_device *one = engine_add_device(&engine, "one", 1, &gids[0]);
	struct sim_device *two = engine_add_device(&engine, "two", 1, &gids[1]);
	struct ibv_ah_attr attr = engine_ah_attr(&gids[1]);
	struct sim_path path;

	TEST_ASSERT_EQUAL_INT(0, resolve(one, &attr, &path));
	TEST_ASSERT_EQUAL_PTR(&one->ports[0], path.source);
	TEST_ASSERT_EQUAL_PTR(&two->ports[0], path.dest);
	TEST_ASSERT_NOT_NULL(path.link);
	TEST_ASSERT_EQUAL_MEMORY(two->ports[0].mac, path.route.dest_mac, 6);
	TEST_ASSERT_EQUAL_MEMORY(&gids[0], path.route.source_gid, 16);

	attr = engine_ah_attr(&gids[2]); /* no port has this GID, which is no error */
	TEST_ASSERT_EQUAL_INT(0, resolve(one, &attr, &path));
	TEST_ASSERT_NULL(path.dest);
	attr = engine_ah_attr(&gids[0]); /* the port's own GID */
	TEST_ASSERT_EQUAL_INT(0, resolve(one, &attr, &path));
	TEST_ASSERT_EQUAL_PTR(&one->ports[0], path.dest);
}

/* RoCE needs a GRH, and the port and the GID must exist. */
void test_address_vectors_that_cannot_be(void)
{
	const union ibv_gid gid = engine_gid(1);
	struct sim_device *device = engine_add_device(&engine, "one", 1, &gid);
	struct ibv_ah_attr attr;
	struct sim_path path;

	attr = engine_ah_attr(&gid);
	attr.is_global = 0;
	TEST_ASSERT_EQUAL_INT(EINVAL, sim_path_resolve(device, &attr, &path));
	attr = engine_ah_attr(&gid);
	attr.port_num = 2;
	TEST_ASSERT_EQUAL_INT(EINVAL, sim_path_resolve(device, &attr, &path));
	attr.port_num = 0;
	TEST_ASSERT_EQUAL_INT(EINVAL, sim_path_resolve(device, &attr, &path));
	attr = engine_ah_attr(&gid);
	attr.grh.sgid_index = 4;
	TEST_ASSERT_EQUAL_INT(ENODATA, sim_path_resolve(device, &attr, &path));
	attr = engine_ah_attr(&gid);
	attr.grh.sgid_index = 0; /* IPv6 to IPv4 */
	TEST_ASSERT_EQUAL_INT(EINVAL, sim_path_resolve(device, &attr, &path));
	attr = engine_ah_attr(&gid);
	memset(&attr.grh.dgid, 0, 16);
	TEST_ASSERT_EQUAL_INT(EINVAL, sim_path_resolve(device, &attr, &path));
}

void test_ah_lives_as_long_as_it_is_held(void)
{
	const union ibv_gid gid = engine_gid(1);
	struct sim_device *device = engine_add_device(&engine, "one", 1, &gid);
	struct ibv_ah_attr attr = engine_ah_attr(&gid);
	struct sim_ah *ah = NULL;

	attr.port_num = 9;
	TEST_ASSERT_EQUAL_INT(EINVAL, sim_ah_create(device, 1, &attr, &ah));
	TEST_ASSERT_NULL(ah);
	TEST_ASSERT_EQUAL_UINT32(0, device->ah_count);
	attr.port_num = 1;
	TEST_ASSERT_EQUAL_INT(0, sim_ah_create(device, 1, &attr, &ah));
	ah->holders++;
	sim_ah_release(ah);
	TEST_ASSERT_EQUAL_UINT32(1, device->ah_count);
	sim_ah_release(ah);
	TEST_ASSERT_EQUAL_UINT32(0, device->ah_count);
}

void test_lids(void)
{
	struct sim_device *one = engine_add_infiniband(&engine, "one", 2, NULL);
	struct sim_device *between = engine_add_device(&engine, "between", 1, NULL);
	struct sim_device *two = engine_add_infiniband(&engine, "two", 1, NULL);
	struct ibv_port_attr port;

	TEST_ASSERT_EQUAL_UINT16(1, one->ports[0].lid);
	TEST_ASSERT_EQUAL_UINT16(2, one->ports[1].lid);
	TEST_ASSERT_EQUAL_UINT16(0, between->ports[0].lid);
	TEST_ASSERT_EQUAL_UINT16(3, two->ports[0].lid);
	TEST_ASSERT_EQUAL_PTR(&one->ports[1], sim_fabric_find_lid(engine.sim, 2));
	TEST_ASSERT_NULL(sim_fabric_find_lid(engine.sim, 0));
	TEST_ASSERT_NULL(sim_fabric_find_lid(engine.sim, 4));

	sim_port_query(&two->ports[0], &port);
	TEST_ASSERT_EQUAL_INT(IBV_LINK_LAYER_INFINIBAND, port.link_layer);
	TEST_ASSERT_EQUAL_UINT16(3, port.lid);
	TEST_ASSERT_EQUAL_UINT16(1, port.sm_lid);
	TEST_ASSERT_EQUAL_UINT8(0, port.lmc);
	TEST_ASSERT_EQUAL_UINT8(0, port.flags & IBV_QPF_GRH_REQUIRED);
	TEST_ASSERT_EQUAL_UINT32(0, port.port_cap_flags & IBV_PORT_IP_BASED_GIDS);
	TEST_ASSERT_EQUAL_HEX64(two->node_guid, be64toh(two->ports[0].gids[0].global.interface_id));
	TEST_ASSERT_EQUAL_HEX64(UINT64_C(0xfe80000000000000),
				be64toh(two->ports[0].gids[0].global.subnet_prefix));
	sim_port_query(&between->ports[0], &port);
	TEST_ASSERT_EQUAL_UINT16(0, port.lid);
	TEST_ASSERT_EQUAL_UINT16(0, port.sm_lid);
	TEST_ASSERT_NOT_EQUAL(0, port.flags & IBV_QPF_GRH_REQUIRED);
}

void test_link_layers_that_cannot_be(void)
{
	struct sim_device_config config = good(NULL);
	struct sim_device *device;

	config.gid_count = 0;
	config.link_layer = IBV_LINK_LAYER_UNSPECIFIED;
	TEST_ASSERT_EQUAL_INT(EINVAL, sim_device_create(engine.sim, &config, NULL, &device));
	config.link_layer = 3;
	TEST_ASSERT_EQUAL_INT(EINVAL, sim_device_create(engine.sim, &config, NULL, &device));
}

/* Linux drivers/infiniband/hw/qib/qib_verbs.c, qib_check_ah. */
void test_address_vectors_of_infiniband(void)
{
	const union ibv_gid nobody = engine_gid(77), group = {.raw = {0xff, 0x12, [15] = 9}},
			    zero = {0};
	struct sim_device *one = engine_add_infiniband(&engine, "one", 1, NULL);
	struct sim_device *two = engine_add_infiniband(&engine, "two", 1, NULL);
	const struct {
		struct ibv_ah_attr attr;
		int err;
		const struct sim_port *dest;
		bool multicast;
	} rows[] = {
		{{.dlid = 2, .port_num = 1}, 0, &two->ports[0], false},
		{{.dlid = 2, .port_num = 1, .sl = 15}, 0, &two->ports[0], false},
		{{.dlid = 1, .port_num = 1}, 0, &one->ports[0], false},
		{{.dlid = 9, .port_num = 1}, 0, NULL, false},
		{{.dlid = 0xffff, .port_num = 1}, 0, NULL, false},
		{{.dlid = 2, .port_num = 1, .is_global = 1, .grh = {.dgid = nobody}},
		 0,
		 &two->ports[0],
		 false},
		{{.dlid = 0xc000, .port_num = 1, .is_global = 1, .grh = {.dgid = group}},
		 0,
		 NULL,
		 true},
		{{.dlid = 0, .port_num = 1}, EINVAL, NULL, false},
		{{.dlid = 2, .port_num = 0}, EINVAL, NULL, false},
		{{.dlid = 2, .port_num = 2}, EINVAL, NULL, false},
		{{.dlid = 2, .port_num = 1, .sl = 16}, EINVAL, NULL, false},
		{{.dlid = 0xc000, .port_num = 1}, EINVAL, NULL, false},
		{{.dlid = 0xc000, .port_num = 1, .is_global = 1, .grh = {.dgid = nobody}},
		 EINVAL,
		 NULL,
		 false},
		{{.dlid = 2, .port_num = 1, .is_global = 1, .grh = {.dgid = zero}},
		 EINVAL,
		 NULL,
		 false},
		{{.dlid = 2,
		  .port_num = 1,
		  .is_global = 1,
		  .grh = {.dgid = nobody, .sgid_index = 1}},
		 ENODATA,
		 NULL,
		 false},
	};
	char where[16];

	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct sim_path path;

		snprintf(where, sizeof(where), "row %u", i);
		TEST_ASSERT_EQUAL_INT_MESSAGE(rows[i].err, resolve(one, &rows[i].attr, &path),
					      where);
		if (rows[i].err)
			continue;
		TEST_ASSERT_EQUAL_PTR_MESSAGE(rows[i].dest, path.dest, where);
		TEST_ASSERT_EQUAL_INT_MESSAGE(rows[i].multicast, path.multicast, where);
		TEST_ASSERT_TRUE_MESSAGE(path.route.infiniband, where);
		TEST_ASSERT_EQUAL_UINT16_MESSAGE(1, path.route.slid, where);
		TEST_ASSERT_EQUAL_UINT16_MESSAGE(rows[i].attr.dlid, path.route.dlid, where);
		TEST_ASSERT_EQUAL_UINT8_MESSAGE(rows[i].attr.sl, path.route.sl, where);
		TEST_ASSERT_EQUAL_INT_MESSAGE(rows[i].attr.is_global, path.route.has_grh, where);
	}
}

/* No port has a GID of the other link layer, and no link joins ports of two link layers. */
void test_link_layers_do_not_meet(void)
{
	const union ibv_gid gids[] = {engine_gid(1), engine_gid(2)};
	struct sim_device *ethernet = engine_add_device(&engine, "ethernet", 1, &gids[0]);
	struct sim_device *infiniband = engine_add_infiniband(&engine, "infiniband", 1, &gids[1]);
	struct ibv_ah_attr attr = engine_ah_attr(&gids[1]);
	struct sim_path path;

	TEST_ASSERT_EQUAL_INT(0, resolve(ethernet, &attr, &path));
	TEST_ASSERT_NULL(path.dest);
	attr.dlid = 7;
	TEST_ASSERT_EQUAL_INT(0, resolve(infiniband, &attr, &path));
	TEST_ASSERT_NULL(path.dest);
	TEST_ASSERT_NULL(sim_fabric_link(engine.sim, &ethernet->ports[0], &infiniband->ports[0]));
	TEST_ASSERT_EQUAL_INT(EINVAL, sim_fabric_join(engine.sim, ethernet, infiniband, 0, 0));
}

void test_limits_only_go_down(void)
{
	const union ibv_gid gid = engine_gid(1);
	struct sim_device *device = engine_add_device(&engine, "one", 1, &gid);
	const int limit = device->profile->limits.max_qp;

	TEST_ASSERT_EQUAL_INT(EINVAL, sim_device_lower_limit(device, "no such limit", 1));
	TEST_ASSERT_EQUAL_INT(EINVAL, sim_device_lower_limit(device, "max_qp", -1));
	TEST_ASSERT_EQUAL_INT(EINVAL, sim_device_lower_limit(device, "max_qp", limit + 1));
	TEST_ASSERT_EQUAL_INT(limit, device->profile->limits.max_qp);
	TEST_ASSERT_EQUAL_INT(0, sim_device_lower_limit(device, "max_qp", limit - 1));
	TEST_ASSERT_EQUAL_INT(limit - 1, device->profile->limits.max_qp);
	TEST_ASSERT_EQUAL_INT(EINVAL, sim_device_lower_limit(device, "max_qp", limit));
}
