/* SPDX-License-Identifier: MIT */
/* The rules and events that a world's configuration holds. */
#include "unity.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <verbena/fault.h>
#include <verbena/sim.h>
#include <verbena/verbs.h>

#define MS	   UINT64_C(1000000)
#define PATIENT_MS 60000

static struct vb_sim *world;
static struct ibv_context *context;

static void open_world(const struct vb_sim_config *config)
{
	struct ibv_device **list;

	world = vb_sim_open(config);
	TEST_ASSERT_NOT_NULL(world);
	list = vb_sim_device_list(world, NULL);
	context = vb_open_device(list[0]);
	vb_free_device_list(list);
	TEST_ASSERT_NOT_NULL(context);
}

void setUp(void)
{
}

void tearDown(void)
{
	vb_close_device(context);
	TEST_ASSERT_EQUAL_INT(0, vb_sim_close(world));
}

static enum ibv_port_state state(void)
{
	struct ibv_port_attr attr;

	TEST_ASSERT_EQUAL_INT(0, vb_query_port(context, 1, &attr, sizeof(attr)));
	return attr.state;
}

static void run_to(uint64_t at_ns)
{
	TEST_ASSERT_EQUAL_INT(0, vb_sim_run(world, at_ns - vb_sim_now_ns(world)));
}

static bool readable(int patient_ms)
{
	struct pollfd fd = {.fd = context->async_fd, .events = POLLIN};

	return poll(&fd, 1, patient_ms) == 1;
}

/* Takes an event that is there. */
static void expect(enum ibv_event_type type)
{
	struct ibv_async_event event;

	TEST_ASSERT_TRUE_MESSAGE(readable(0), vb_event_type_name(type));
	TEST_ASSERT_EQUAL_INT(0, vb_get_async_event(context, &event));
	TEST_ASSERT_EQUAL_INT(type, event.event_type);
	vb_ack_async_event(&event);
}

void test_each_event_at_its_time_on_the_virtual_clock(void)
{
	static const struct vb_sim_event events[] = {
		/* Not in the order of their times. */
		{.at_ns = 7 * MS, .kind = VB_SIM_AT_KILL_DEVICE, .device = "sim0"},
		{.at_ns = 1 * MS, .device = "sim0", .port_num = 1},
		{.at_ns = 2 * MS, .device = "sim0", .port_num = 1, .up = true},
		{.at_ns = 3 * MS, VB_SIM_AT_LID, .device = "sim0", .port_num = 1, .lid = 0x77},
		{.at_ns = 4 * MS,
		 VB_SIM_AT_GID,
		 .device = "sim0",
		 .port_num = 1,
		 .index = 5,
		 .gid = {.raw = {0xfd, [15] = 9}}},
		{.at_ns = 5 * MS,
		 VB_SIM_AT_PKEY,
		 .device = "sim0",
		 .port_num = 1,
		 .index = 1,
		 .pkey = 0x8001},
		{.at_ns = 6 * MS,
		 VB_SIM_AT_PORT_EVENT,
		 .device = "sim0",
		 .port_num = 1,
		 .type = IBV_EVENT_SM_CHANGE},
		{.at_ns = 1 * MS, .device = "sim1", .port_num = 1},
	};
	struct ibv_port_attr attr;
	union ibv_gid gid;
	uint16_t pkey;

	open_world(&(struct vb_sim_config){
		.event_count = sizeof(events) / sizeof(events[0]),
		.events = events,
		.device_count = 2,
		.devices = {{.name = "sim0",
			     .link_layer = IBV_LINK_LAYER_INFINIBAND,
			     .pkey_count = 2,
			     .pkeys = {0xffff, 0x8002}},
			    {.name = "sim1", .link_layer = IBV_LINK_LAYER_INFINIBAND}}});
	TEST_ASSERT_EQUAL_UINT64(MS, vb_sim_next_ns(world));
	run_to(MS - 1);
	TEST_ASSERT_FALSE(readable(0));
	TEST_ASSERT_EQUAL_INT(IBV_PORT_ACTIVE, state());
	run_to(MS);
	expect(IBV_EVENT_PORT_ERR);
	TEST_ASSERT_EQUAL_INT(IBV_PORT_DOWN, state());
	run_to(2 * MS);
	expect(IBV_EVENT_PORT_ACTIVE);
	TEST_ASSERT_EQUAL_INT(IBV_PORT_ACTIVE, state());
	run_to(3 * MS);
	expect(IBV_EVENT_LID_CHANGE);
	TEST_ASSERT_EQUAL_INT(0, vb_query_port(context, 1, &attr, sizeof(attr)));
	TEST_ASSERT_EQUAL_HEX16(0x77, attr.lid);
	run_to(4 * MS);
	expect(IBV_EVENT_GID_CHANGE);
	TEST_ASSERT_EQUAL_INT(0, vb_query_gid(context, 1, 5, &gid));
	TEST_ASSERT_EQUAL_MEMORY(events[4].gid.raw, gid.raw, 16);
	run_to(5 * MS);
	expect(IBV_EVENT_PKEY_CHANGE);
	TEST_ASSERT_EQUAL_INT(0, vb_query_pkey(context, 1, 1, &pkey));
	TEST_ASSERT_EQUAL_HEX16(0x8001, ntohs(pkey));
	run_to(6 * MS);
	expect(IBV_EVENT_SM_CHANGE);
	run_to(7 * MS - 1);
	TEST_ASSERT_FALSE(readable(0));
	run_to(7 * MS);
	expect(IBV_EVENT_DEVICE_FATAL);
	TEST_ASSERT_FALSE(readable(0));
}

/* The last event at one time decides. */
void test_events_of_one_time_keep_their_order(void)
{
	static const struct vb_sim_event events[] = {
		{.at_ns = MS, VB_SIM_AT_LID, .device = "sim0", .port_num = 1, .lid = 3},
		{.at_ns = MS, VB_SIM_AT_LID, .device = "sim0", .port_num = 1, .lid = 1},
		{.at_ns = MS, VB_SIM_AT_LID, .device = "sim0", .port_num = 1, .lid = 2},
	};
	struct ibv_port_attr attr;

	open_world(&(struct vb_sim_config){.event_count = 3, .events = events});
	run_to(MS);
	TEST_ASSERT_EQUAL_INT(0, vb_query_port(context, 1, &attr, sizeof(attr)));
	TEST_ASSERT_EQUAL_HEX16(2, attr.lid);
}

/* Nothing is left to happen but the event: a wait on the virtual clock reaches it. */
void test_a_blocking_wait_reaches_the_event(void)
{
	static const struct vb_sim_event down = {.at_ns = MS, .device = "sim0", .port_num = 1};
	struct ibv_async_event event;

	open_world(&(struct vb_sim_config){.event_count = 1, .events = &down});
	TEST_ASSERT_EQUAL_INT(0, vb_get_async_event(context, &event));
	TEST_ASSERT_EQUAL_INT(IBV_EVENT_PORT_ERR, event.event_type);
	vb_ack_async_event(&event);
	TEST_ASSERT_EQUAL_UINT64(MS, vb_sim_now_ns(world));
}

/* The program is in poll(2), and in no verb. */
void test_the_real_clock_needs_no_verb(void)
{
	static const struct vb_sim_event down = {.at_ns = MS, .device = "sim0", .port_num = 1};

	open_world(&(struct vb_sim_config){
		.clock = VB_SIM_CLOCK_REAL, .event_count = 1, .events = &down});
	TEST_ASSERT_TRUE(readable(PATIENT_MS));
	expect(IBV_EVENT_PORT_ERR);
	TEST_ASSERT_EQUAL_INT(IBV_PORT_DOWN, state());
	TEST_ASSERT_TRUE(vb_sim_now_ns(world) >= MS);
}

/* The configuration is copied: rules and events outlive what it pointed to. */
void test_the_configuration_is_copied(void)
{
	char name[] = "sim0";
	struct vb_fault_rule rules[] = {{.action = VB_FAULT_DUPLICATE, .from = name}, {.psn = 1}};
	struct vb_sim_event event = {.at_ns = MS, .device = name, .port_num = 1};
	unsigned int id;

	open_world(&(struct vb_sim_config){
		.fault_count = 2, .faults = rules, .event_count = 1, .events = &event});
	rules[0] = rules[1] = (struct vb_fault_rule){.action = 77};
	event = (struct vb_sim_event){.kind = 77};
	name[0] = 'x';
	run_to(MS);
	expect(IBV_EVENT_PORT_ERR);
	TEST_ASSERT_EQUAL_INT(0, vb_fault_add(world, &(struct vb_fault_rule){0}, &id));
	TEST_ASSERT_EQUAL_UINT(3, id);
	TEST_ASSERT_EQUAL_INT(0, vb_fault_remove(world, 1));
	TEST_ASSERT_EQUAL_INT(0, vb_fault_remove(world, 2));
}
