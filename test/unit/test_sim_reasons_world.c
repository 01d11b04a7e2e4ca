/* SPDX-License-Identifier: MIT */
/*
 * Reasons of <verbena/sim.h> and <verbena/fault.h>: each mistake, and the whole sentence that the
 * program gets.
 */
#include "backends/sim/world/world.h"
#include "src/guard/guard.h"
#include "test/unit/sim_sentence.h"

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>
#include <verbena/fault.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

void setUp(void)
{
	open_pair();
}

void tearDown(void)
{
	close_pair();
}

/* A call that fails, with its errno and its sentence. */
struct mistake {
	enum vb_reason reason;
	int error;
	int (*make)(void);
	const char *sentence;
};

static void expect_mistakes(const struct mistake *mistakes, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		TEST_ASSERT_EQUAL_INT_MESSAGE(mistakes[i].error, mistakes[i].make(),
					      mistakes[i].sentence);
		expect_reason(mistakes[i].reason, "%s", mistakes[i].sentence);
	}
}

/* --- functions of <verbena/sim.h> on a device --- */

static int of_no_device(void)
{
	return vb_sim_set_lid(NULL, 1, 1);
}

static int of_another_backend(void)
{
	struct ibv_device device = {.name = "other0"};
	struct ibv_context foreign = {.device = &device};

	return vb_sim_counters(&foreign, NULL);
}

static int of_no_port(void)
{
	return vb_sim_port_state(a.context, 2, true);
}

static int unknown_counter(void)
{
	uint64_t value;

	return vb_sim_counter(a.context, "rx_bytes", &value);
}

static int unknown_drop(void)
{
	uint64_t packets;

	return vb_sim_drops(a.context, "bad_luck", &packets);
}

static int long_frame(void)
{
	return vb_sim_inject(a.context, 1, a.buffer, 1 << 20);
}

static int unreadable_frame(void)
{
	return vb_sim_inject(a.context, 1, (const void *)16, 64);
}

static int frame_of_a_port_that_is_down(void)
{
	int err;

	TEST_ASSERT_EQUAL_INT(0, vb_sim_port_state(a.context, 1, false));
	err = vb_sim_inject(a.context, 1, a.buffer, 64);
	TEST_ASSERT_EQUAL_INT(EINVAL, of_no_port()); /* another sentence between the two */
	TEST_ASSERT_EQUAL_INT(ENETDOWN, err);
	return vb_sim_inject(a.context, 1, a.buffer, 64);
}

static int gid_index(void)
{
	return vb_sim_set_gid(a.context, 1, 5000, &a.gid);
}

static int gid_type(void)
{
	return vb_sim_set_gid_type(a.context, 1, 1, &a.gid, IBV_GID_TYPE_IB);
}

static int pkey_index(void)
{
	return vb_sim_set_pkey(a.context, 1, 5000, 0xffff);
}

static int object_event_of_a_port(void)
{
	return vb_sim_object_event(
		&(struct ibv_async_event){.event_type = IBV_EVENT_PORT_ERR, .element.port_num = 1});
}

static int event_of_an_object_that_is_gone(void)
{
	struct ibv_cq *cq = B.create_cq(a.context, 1, NULL, NULL, 0);

	TEST_ASSERT_EQUAL_INT(0, B.destroy_cq(cq));
	return vb_sim_object_event(
		&(struct ibv_async_event){.event_type = IBV_EVENT_CQ_ERR, .element.cq = cq});
}

static int event_of_a_qp(void)
{
	return vb_sim_port_event(a.context, 1, IBV_EVENT_QP_FATAL);
}

static int unknown_quirk(void)
{
	return vb_sim_set_quirk(a.context, "flies", true);
}

static int unknown_limit(void)
{
	return vb_sim_lower_limit(a.context, "max_speed", 1);
}

static int raised_limit(void)
{
	return vb_sim_lower_limit(a.context, "max_srq_sge", 33);
}

static int negative_limit(void)
{
	return vb_sim_lower_limit(a.context, "max_srq_sge", -1);
}

void test_mistakes_of_functions_on_a_device(void)
{
	static const struct mistake mistakes[] = {
		{VB_WHY_SIM_FOREIGN, EINVAL, of_no_device,
		 "vb_sim_set_lid: the context is NULL, or the device is not a simulated one; give "
		 "a context of the backend sim; vb_context_backend() tells a context's backend"},
		{VB_WHY_SIM_FOREIGN, EINVAL, of_another_backend,
		 "vb_sim_counters: the context is NULL, or the device is not a simulated one; give "
		 "a context of the backend sim; vb_context_backend() tells a context's backend"},
		{VB_WHY_PORT_NONE, EINVAL, of_no_port,
		 "vb_sim_port_state: port 2 of sim0 does not exist; the device has 1 port, from 1; "
		 "give one of the device's ports"},
		{VB_WHY_SIM_COUNTER, EINVAL, unknown_counter,
		 "vb_sim_counter: no counter is called \"rx_bytes\"; give a name of "
		 "vb_sim_counter_name()"},
		{VB_WHY_SIM_DROP_CAUSE, EINVAL, unknown_drop,
		 "vb_sim_drops: no cause of drops is called \"bad_luck\"; give a name of "
		 "vb_sim_drop_cause()"},
		{VB_WHY_SIM_FRAME_LENGTH, EINVAL, long_frame,
		 "vb_sim_inject: the frame has 1048576 bytes, and the longest frame has 4234; give "
		 "a shorter frame"},
		{VB_WHY_SIM_FRAME_FAULT, EFAULT, unreadable_frame,
		 "vb_sim_inject: the 64 bytes of the frame at 0x10 are not readable memory; give "
		 "the address of the frame's first byte, and its length"},
		{VB_WHY_SIM_PORT_DOWN, ENETDOWN, frame_of_a_port_that_is_down,
		 "vb_sim_inject: port 1 of sim0 is down and receives no frames; take the port up "
		 "by vb_sim_port_state()"},
		{VB_WHY_SIM_GID_INDEX, EINVAL, gid_index,
		 "vb_sim_set_gid: GID index 5000 is above 63, the last that a simulated port can "
		 "have; give a lower index"},
		{VB_WHY_SIM_GID_TYPE, EINVAL, gid_type,
		 "vb_sim_set_gid_type: port 1 of sim0 cannot have a GID of type 0 of enum "
		 "ibv_gid_type; give IBV_GID_TYPE_IB on InfiniBand and IBV_GID_TYPE_ROCE_V2 on "
		 "Ethernet, or IBV_GID_TYPE_ROCE_V1 there if the device's profile has RoCE v1"},
		{VB_WHY_SIM_PKEY_INDEX, EINVAL, pkey_index,
		 "vb_sim_set_pkey: P_Key index 5000 is above 15, the last that a simulated port "
		 "can have; give a lower index"},
		{VB_WHY_SIM_EVENT, EINVAL, event_of_a_qp,
		 "vb_sim_port_event: event 1 of enum ibv_event_type cannot be raised for a port "
		 "alone; give IBV_EVENT_CLIENT_REREGISTER or IBV_EVENT_SM_CHANGE; other events "
		 "follow from what happens to the device"},
		{VB_WHY_SIM_OBJECT_EVENT, EINVAL, object_event_of_a_port,
		 "vb_sim_object_event: event 10 of enum ibv_event_type is of no QP, CQ or SRQ; "
		 "give an "
		 "event of a QP, CQ or SRQ; for a port or a device, call vb_sim_port_event(), "
		 "vb_sim_port_state() or vb_sim_kill_device()"},
		{VB_WHY_SIM_EVENT_GONE, EINVAL, event_of_an_object_that_is_gone,
		 "vb_sim_object_event: the object of the event is no CQ that lives; set the member "
		 "of "
		 "event->element that ibv_get_async_event(3) has for this event to an object that "
		 "is "
		 "not destroyed"},
		{VB_WHY_SIM_QUIRK, EINVAL, unknown_quirk,
		 "vb_sim_set_quirk: no quirk is called \"flies\"; give a name of "
		 "vb_sim_quirk_name(); docs/semantics.md lists the quirks"},
		{VB_WHY_SIM_LIMIT_NAME, EINVAL, unknown_limit,
		 "vb_sim_lower_limit: no limit is called \"max_speed\"; give a field of struct "
		 "ibv_device_attr that limits a number of objects or their size, such as "
		 "\"max_qp\""},
		{VB_WHY_SIM_LIMIT_VALUE, EINVAL, raised_limit,
		 "vb_sim_lower_limit: max_srq_sge cannot become 33: the device's limit is 32, and "
		 "limits can only be lowered, to 0 at least; give a value of 0 to the present "
		 "limit"},
		{VB_WHY_SIM_LIMIT_VALUE, EINVAL, negative_limit,
		 "vb_sim_lower_limit: max_srq_sge cannot become -1: the device's limit is 32, and "
		 "limits can only be lowered, to 0 at least; give a value of 0 to the present "
		 "limit"},
	};

	guard_install(); /* above the test framework's own handler */
	expect_mistakes(mistakes, COUNT(mistakes));
}

/* --- waiting --- */

static int wait_errno(struct ibv_cq *cq, int num_entries)
{
	struct ibv_wc wc;

	return vb_sim_wait_cq(cq, num_entries, &wc, VB_SIM_NEVER) < 0 ? errno : 0;
}

static int wait_for_none(void)
{
	return wait_errno(a.cq, 0);
}

static int wait_for_nothing(void)
{
	return wait_errno(b.cq, 1);
}

void test_mistakes_of_waits(void)
{
	struct mistake mistakes[] = {
		{VB_WHY_SIM_WAIT_COUNT, EINVAL, wait_for_none,
		 "vb_sim_wait_cq: num_entries is 0, and a wait takes one completion at least; give "
		 "the number of entries of the array wc, 1 or more"},
		{VB_WHY_SIM_WAIT_IDLE, EDEADLK, wait_for_nothing,
		 "vb_sim_wait_cq: a completion in the CQ of handle 0 of sim1 was awaited, and none "
		 "can come: no packet is under way, no timer runs, and no other thread can act; "
		 "post the work that completes into this CQ first: a send with IBV_SEND_SIGNALED, "
		 "or the peer's send for a receive"},
	};

	expect_mistakes(mistakes, COUNT(mistakes));
	TEST_ASSERT_EQUAL_INT(EINVAL, wait_errno(NULL, 1));
	TEST_ASSERT_EQUAL_HEX(VB_WHY_OBJECT_NULL, B.last_why()->reason);
}

/* Fills a CQ of one entry with two completions of flushed receives. */
static struct ibv_cq *overrun_cq(void)
{
	struct ibv_cq *cq = B.create_cq(a.context, 1, NULL, NULL, 0);
	struct ibv_qp_init_attr_ex init = qp_attr(&a, IBV_QPT_RC);
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	struct ibv_recv_wr wr = {0}, *bad;
	struct ibv_wc wc;
	struct ibv_qp *qp;

	init.recv_cq = cq;
	qp = B.create_qp_ex(a.context, &init);
	TEST_ASSERT_NOT_NULL(qp);
	connect_qp(qp, &b, 1);
	for (int i = 0; i < 2; i++)
		TEST_ASSERT_EQUAL_INT(0, ibv_post_recv(qp, &wr, &bad));
	TEST_ASSERT_EQUAL_INT(0, B.modify_qp(qp, &attr, IBV_QP_STATE));
	TEST_ASSERT_EQUAL_INT(1, vb_sim_wait_cq(cq, 1, &wc, 0));
	return cq;
}

void test_a_wait_on_a_cq_that_has_overrun(void)
{
	struct ibv_cq *cq = overrun_cq();

	TEST_ASSERT_EQUAL_INT(EIO, wait_errno(cq, 1));
	expect_reason(
		VB_WHY_CQ_OVERRUN,
		"vb_sim_wait_cq: the CQ of handle %u has overrun: it has room for 1 completion; "
		"completions are lost, and no more will come; destroy its QPs and the CQ, and "
		"create a CQ with an entry for each send and receive that can be outstanding",
		cq->handle);
}

/* A thread that waits on a CQ while the main thread ends what it waits on. */
struct waiter {
	pthread_t thread;
	struct ibv_cq *cq;
	int error;
	enum vb_reason reason;
	char sentence[512];
};

static void *wait_in_thread(void *arg)
{
	struct waiter *waiter = arg;

	vb_sim_thread_enter(NULL);
	waiter->error = wait_errno(waiter->cq, 1);
	waiter->reason = B.last_why()->reason;
	vb_why_text(B.last_why(), waiter->sentence, sizeof(waiter->sentence));
	vb_sim_thread_leave(NULL);
	return NULL;
}

static bool is_asleep(struct vb_sim *world)
{
	bool asleep;

	pthread_mutex_lock(&world->driver.mutex);
	asleep = world->driver.asleep;
	pthread_mutex_unlock(&world->driver.mutex);
	return asleep;
}

/* The main thread is registered, so that the waiter waits until the main thread acts. */
static void begin_waiter(struct waiter *waiter, struct ibv_cq *cq)
{
	*waiter = (struct waiter){.cq = cq};
	vb_sim_thread_enter(NULL);
	TEST_ASSERT_EQUAL_INT(0, pthread_create(&waiter->thread, NULL, wait_in_thread, waiter));
	while (!is_asleep(vb_sim_of(a.context)))
		sched_yield();
}

void test_a_cq_that_is_destroyed_during_a_wait(void)
{
	struct waiter waiter;
	struct ibv_cq *cq = B.create_cq(a.context, 1, NULL, NULL, 0);

	begin_waiter(&waiter, cq);
	TEST_ASSERT_EQUAL_INT(0, B.destroy_cq(cq));
	vb_sim_tell(NULL);
	vb_sim_thread_leave(NULL);
	TEST_ASSERT_EQUAL_INT(0, pthread_join(waiter.thread, NULL));
	TEST_ASSERT_EQUAL_INT(EIO, waiter.error);
	TEST_ASSERT_EQUAL_STRING(
		"vb_sim_wait_cq: another thread destroyed the CQ during the wait; destroy a CQ "
		"after the waits on it have ended",
		waiter.sentence);
	TEST_ASSERT_EQUAL_HEX(VB_WHY_SIM_WAIT_DESTROYED, waiter.reason);
}

void test_a_world_that_ends_during_a_wait(void)
{
	struct waiter waiter;

	begin_waiter(&waiter, a.cq);
	vb_sim_reset();
	a.context = b.context = NULL;
	TEST_ASSERT_EQUAL_INT(0, pthread_join(waiter.thread, NULL));
	TEST_ASSERT_EQUAL_INT(ENODEV, waiter.error);
	TEST_ASSERT_EQUAL_STRING(
		"vb_sim_wait_cq: the simulated world ended while the call waited; join the threads "
		"that wait before vb_sim_close() or vb_sim_reset()",
		waiter.sentence);
	TEST_ASSERT_EQUAL_HEX(VB_WHY_WORLD_ENDED, waiter.reason);
}

/* --- functions of <verbena/fault.h> --- */

static int add_rule(struct vb_fault_rule rule)
{
	return vb_fault_add(NULL, &rule, NULL);
}

static int unknown_action(void)
{
	return add_rule((struct vb_fault_rule){.action = 9});
}

static int unknown_change(void)
{
	return add_rule((struct vb_fault_rule){.action = VB_FAULT_CORRUPT, .change = 99});
}

static int wide_value(void)
{
	return add_rule((struct vb_fault_rule){.action = VB_FAULT_CORRUPT,
					       .change = VB_CHANGE_PSN,
					       .value = 0x1000000,
					       .mask = 1,
					       .flip = 2});
}

static int improbable(void)
{
	return add_rule((struct vb_fault_rule){.probability = 1.5});
}

static int unknown_device(void)
{
	return add_rule((struct vb_fault_rule){.from = "sim9"});
}

static int unknown_message(void)
{
	return add_rule((struct vb_fault_rule){.message = "RST"});
}

/* Adds a rule that changes a field of a message. */
static int change_field(const char *message, const char *field, uint32_t offset, uint64_t value)
{
	return add_rule((struct vb_fault_rule){.action = VB_FAULT_CORRUPT,
					       .change = VB_CHANGE_MESSAGE_FIELD,
					       .message = message,
					       .field = field,
					       .offset = offset,
					       .value = value});
}

static int unknown_field(void)
{
	return change_field("REQ", "ttl", 0, 1);
}

static int field_of_no_message(void)
{
	return change_field(NULL, "starting_psn", 0, 1);
}

static int no_field(void)
{
	return change_field("REQ", NULL, 0, 1);
}

static int byte_behind_field(void)
{
	return change_field("REQ", "private_data", 92, 1);
}

static int wide_field(void)
{
	return change_field("REQ", "retry_count", 0, 8);
}

static int rejected_rtu(void)
{
	return add_rule((struct vb_fault_rule){.action = VB_FAULT_REJECT, .message = "RTU"});
}

static int rejected_packet(void)
{
	return add_rule((struct vb_fault_rule){.action = VB_FAULT_REJECT});
}

static int one_rule_more(void)
{
	for (int i = 0; i < 64; i++)
		TEST_ASSERT_EQUAL_INT(0, add_rule((struct vb_fault_rule){0}));
	return add_rule((struct vb_fault_rule){0});
}

static int removed_rule(void)
{
	return vb_fault_remove(NULL, 77);
}

void test_mistakes_of_fault_rules(void)
{
	static const struct mistake mistakes[] = {
		{VB_WHY_FAULT_ACTION, EINVAL, unknown_action,
		 "vb_fault_add: action 9 is no value of enum vb_fault_action; set action to "
		 "VB_FAULT_DROP, VB_FAULT_CORRUPT, VB_FAULT_DUPLICATE, VB_FAULT_DELAY or "
		 "VB_FAULT_REJECT"},
		{VB_WHY_FAULT_CHANGE, EINVAL, unknown_change,
		 "vb_fault_add: change 99 is no value of enum vb_fault_change; set change to what "
		 "the rule changes, such as VB_CHANGE_PSN"},
		{VB_WHY_FAULT_WIDTH, EINVAL, wide_value,
		 "vb_fault_add: value 0x1000000, mask 0x1 or flip 0x2 is above 0xffffff, the "
		 "largest value of what the rule changes; give values that fit"},
		{VB_WHY_FAULT_PROBABILITY, EINVAL, improbable,
		 "vb_fault_add: probability 1.5 is not between 0 and 1; give 0 or 1 for always, or "
		 "a number between them"},
		{VB_WHY_FAULT_DEVICE, EINVAL, unknown_device,
		 "vb_fault_add: the world has no device sim9; set from to the name of a device of "
		 "ibv_get_device_list(), or to NULL for all devices"},
		{VB_WHY_FAULT_MESSAGE, EINVAL, unknown_message,
		 "vb_fault_add: the connection manager has no message RST; set message to a name "
		 "of vb_fault_message_name(), such as REQ, or to NULL for all packets"},
		{VB_WHY_FAULT_FIELD, EINVAL, unknown_field,
		 "vb_fault_add: the rule names no field of its message: ttl; set message, and "
		 "field to a name of vb_fault_field_name(), such as starting_psn"},
		{VB_WHY_FAULT_FIELD, EINVAL, field_of_no_message,
		 "vb_fault_add: the rule names no field of its message: starting_psn; set "
		 "message, and field to a name of vb_fault_field_name(), such as starting_psn"},
		{VB_WHY_FAULT_FIELD, EINVAL, no_field,
		 "vb_fault_add: the rule names no field of its message: NULL; set message, and "
		 "field to a name of vb_fault_field_name(), such as starting_psn"},
		{VB_WHY_FAULT_FIELD_OFFSET, EINVAL, byte_behind_field,
		 "vb_fault_add: offset 92 is behind the field, which has 92 bytes; give the "
		 "number of a byte of the field, from 0"},
		{VB_WHY_FAULT_WIDTH, EINVAL, wide_field,
		 "vb_fault_add: value 0x8, mask 0x0 or flip 0x0 is above 0x7, the largest value "
		 "of what the rule changes; give values that fit"},
		{VB_WHY_FAULT_REJECT, EINVAL, rejected_rtu,
		 "vb_fault_add: a rule of the action reject has the message RTU, which no REJ can "
		 "answer; set message to REQ or REP"},
		{VB_WHY_FAULT_REJECT, EINVAL, rejected_packet,
		 "vb_fault_add: a rule of the action reject has the message NULL, which no REJ can "
		 "answer; set message to REQ or REP"},
		{VB_WHY_FAULT_FULL, ENOSPC, one_rule_more,
		 "vb_fault_add: the world has 64 rules, which is the limit; remove a rule by "
		 "vb_fault_remove() or vb_fault_clear()"},
		{VB_WHY_FAULT_NONE, ENOENT, removed_rule,
		 "vb_fault_remove: the world has no rule 77; give the id of vb_fault_add(), until "
		 "the rule is removed"},
	};

	expect_mistakes(mistakes, COUNT(mistakes));
}

/* --- the configuration of a world --- */

/* Each mistake spoils a good configuration: two devices and a link between them. */
struct spoiled {
	enum vb_reason reason;
	void (*spoil)(struct vb_sim_config *config);
	const char *sentence;
};

static void clock_7(struct vb_sim_config *config)
{
	config->clock = 7;
}

static void devices_65(struct vb_sim_config *config)
{
	config->device_count = VB_SIM_DEVICES_MAX + 1;
}

static void links_257(struct vb_sim_config *config)
{
	config->link_count = VB_SIM_LINKS_MAX + 1;
}

static void no_name(struct vb_sim_config *config)
{
	config->devices[1].name[0] = '\0';
}

static void same_name(struct vb_sim_config *config)
{
	strcpy(config->devices[1].name, "left");
}

static void ports_5(struct vb_sim_config *config)
{
	config->devices[1].ports = 5;
}

static void gids_17(struct vb_sim_config *config)
{
	config->devices[1].gid_count = 17;
}

static void pkeys_18(struct vb_sim_config *config)
{
	config->devices[1].pkey_count = 18;
}

static void long_quirks(struct vb_sim_config *config)
{
	memset(config->devices[1].quirks, 'q', sizeof(config->devices[1].quirks));
}

static void wrong_quirk(struct vb_sim_config *config)
{
	strcpy(config->devices[1].quirks, "wide_numbers_refused,flies");
}

static void wrong_profile(struct vb_sim_config *config)
{
	strcpy(config->devices[1].profile, "mlx4");
}

static void wrong_layer(struct vb_sim_config *config)
{
	config->devices[1].link_layer = 9;
}

static void wrong_mtu(struct vb_sim_config *config)
{
	config->devices[1].mtu = 1024;
}

static void endless_link(struct vb_sim_config *config)
{
	memset(config->links[0].b, 'x', sizeof(config->links[0].b));
}

static void link_to_nobody(struct vb_sim_config *config)
{
	strcpy(config->links[0].b, "middle");
}

static void second_link(struct vb_sim_config *config)
{
	config->link_count = 2;
	config->links[1] = config->links[0];
}

static void link_between_layers(struct vb_sim_config *config)
{
	config->devices[1].link_layer = IBV_LINK_LAYER_INFINIBAND;
}

static struct vb_sim_event one_event = {.device = "left", .port_num = 1};
static const struct vb_fault_rule from_nobody = {.from = "middle"};

static void plan_one(struct vb_sim_config *config, struct vb_sim_event event)
{
	one_event = event;
	config->event_count = 1;
	config->events = &one_event;
}

static void events_65(struct vb_sim_config *config)
{
	plan_one(config, one_event);
	config->event_count = 65;
}

static void event_of_nobody(struct vb_sim_config *config)
{
	plan_one(config, (struct vb_sim_event){.device = "middle", .port_num = 1});
}

static void event_of_no_kind(struct vb_sim_config *config)
{
	plan_one(config, (struct vb_sim_event){.device = "left", .port_num = 1, .kind = 9});
}

static void event_of_port_2(struct vb_sim_config *config)
{
	plan_one(config, (struct vb_sim_event){.device = "left", .port_num = 2});
}

static void event_of_pkey_1(struct vb_sim_config *config)
{
	plan_one(config,
		 (struct vb_sim_event){
			 .device = "left", .port_num = 1, .kind = VB_SIM_AT_PKEY, .index = 1});
}

static void event_of_gid_64(struct vb_sim_config *config)
{
	plan_one(config,
		 (struct vb_sim_event){
			 .device = "left", .port_num = 1, .kind = VB_SIM_AT_GID, .index = 64});
}

static void event_of_type(struct vb_sim_config *config)
{
	plan_one(config, (struct vb_sim_event){.device = "left",
					       .port_num = 1,
					       .kind = VB_SIM_AT_PORT_EVENT,
					       .type = IBV_EVENT_PORT_ERR});
}

static void wire_3(struct vb_sim_config *config)
{
	config->devices[1].wire = 3;
}

static void shared_on_virtual_clock(struct vb_sim_config *config)
{
	config->devices[1].wire = VB_SIM_WIRE_SHARED;
}

static void udp_on_virtual_clock(struct vb_sim_config *config)
{
	config->devices[0].wire = VB_SIM_WIRE_UDP;
}

static void udp_with_lids(struct vb_sim_config *config)
{
	config->clock = VB_SIM_CLOCK_REAL;
	config->devices[1].wire = VB_SIM_WIRE_UDP;
	config->devices[1].link_layer = IBV_LINK_LAYER_INFINIBAND;
}

static void udp_with_gids(struct vb_sim_config *config)
{
	config->clock = VB_SIM_CLOCK_REAL;
	config->devices[1].wire = VB_SIM_WIRE_UDP;
	config->devices[1].gid_count = 2;
}

static void address_in_memory(struct vb_sim_config *config)
{
	strcpy(config->devices[1].address, "192.0.2.1");
}

static void endless_address(struct vb_sim_config *config)
{
	config->clock = VB_SIM_CLOCK_REAL;
	config->devices[1].wire = VB_SIM_WIRE_UDP;
	memset(config->devices[1].address, '1', sizeof(config->devices[1].address));
}

static void world_in_a_folder(struct vb_sim_config *config)
{
	strcpy(config->world, "a/b");
}

static void endless_world(struct vb_sim_config *config)
{
	memset(config->world, 'w', sizeof(config->world));
}

static void fault_from_nobody(struct vb_sim_config *config)
{
	config->fault_count = 1;
	config->faults = &from_nobody;
}

static const struct spoiled spoiled[] = {
	{VB_WHY_WORLD_CLOCK, clock_7,
	 "clock 7 is no value of enum vb_sim_clock; set clock to VB_SIM_CLOCK_VIRTUAL or "
	 "VB_SIM_CLOCK_REAL"},
	{VB_WHY_WORLD_DEVICES, devices_65,
	 "device_count is 65, and a world has 64 devices at most; configure fewer devices"},
	{VB_WHY_WORLD_LINKS, links_257,
	 "link_count is 257, and a world has 256 links at most; configure fewer links"},
	{VB_WHY_WORLD_DEVICE_NAME, no_name,
	 "the name of devices[1] is empty, or has no 0 within its 32 bytes; set name to a string "
	 "of 1 to VB_SIM_NAME_MAX - 1 characters"},
	{VB_WHY_WORLD_DEVICE_TWICE, same_name,
	 "two devices are called left; give each device of the world its own name"},
	{VB_WHY_WORLD_PORTS, ports_5,
	 "device right: ports is 5, above 4; give 1 to VB_SIM_PORTS_MAX ports, or 0 for one"},
	{VB_WHY_WORLD_GIDS, gids_17,
	 "device right: gid_count is 17, above 16; give VB_SIM_GIDS_MAX GIDs at most"},
	{VB_WHY_WORLD_PKEYS, pkeys_18,
	 "device right: pkey_count is 18, above 16; give VB_SIM_PKEYS_MAX P_Keys at most"},
	{VB_WHY_WORLD_QUIRKS_LONG, long_quirks,
	 "device right: quirks has no 0 within its 256 bytes; give a shorter list; a profile has "
	 "many quirks at once"},
	{VB_WHY_WORLD_QUIRK, wrong_quirk,
	 "no quirk is called \"flies\", as quirks of device right says; give names of "
	 "vb_sim_quirk_name() with commas between them, and no spaces"},
	{VB_WHY_WORLD_PROFILE, wrong_profile,
	 "no profile is called \"mlx4\", as profile of device right says; give a name of "
	 "vb_sim_profile_name(), or \"\" for the profile spec"},
	{VB_WHY_WORLD_LINK_LAYER, wrong_layer,
	 "device right: 9 is no link layer of a simulated device; set link_layer to "
	 "IBV_LINK_LAYER_ETHERNET or IBV_LINK_LAYER_INFINIBAND, or to 0 for Ethernet"},
	{VB_WHY_WORLD_MTU, wrong_mtu,
	 "device right: mtu 1024 is no value of enum ibv_mtu; set mtu to a value from IBV_MTU_256 "
	 "to IBV_MTU_4096, or to 0 for 4096 bytes"},
	{VB_WHY_WORLD_LINK_NAME, endless_link,
	 "a device's name in links[0] has no 0 within its 32 bytes; set a and b to names of "
	 "devices of the world"},
	{VB_WHY_WORLD_LINK_DEVICE, link_to_nobody,
	 "links[0] names middle, and the world has no device of that name; set a and b to names "
	 "of devices of the world"},
	{VB_WHY_WORLD_LINK_TWICE, second_link,
	 "links[1] connects left and right, which an earlier link connects; give one link for "
	 "each pair of devices"},
	{VB_WHY_WORLD_LINK_LAYERS, link_between_layers,
	 "links[0] connects left and right, and one of them is on Ethernet and the other on "
	 "InfiniBand; connect devices of one link layer"},
	{VB_WHY_WORLD_EVENTS, events_65,
	 "event_count is 65, and a world has 64 events at most; configure fewer events"},
	{VB_WHY_WORLD_EVENT_DEVICE, event_of_nobody,
	 "events[0] names middle, and the world has no device of that name; set device to the "
	 "name of a device of the world"},
	{VB_WHY_WORLD_EVENT_KIND, event_of_no_kind,
	 "events[0]: 9 is no value of enum vb_sim_event_kind; set kind to what happens, such as "
	 "VB_SIM_AT_PORT_STATE"},
	{VB_WHY_PORT_NONE, event_of_port_2,
	 "port 2 of left does not exist; the device has 1 port, from 1; give one of the device's "
	 "ports"},
	{VB_WHY_SIM_PKEY_INDEX, event_of_pkey_1,
	 "P_Key index 1 is above 0, the last that a simulated port can have; give a lower "
	 "index"},
	{VB_WHY_SIM_GID_INDEX, event_of_gid_64,
	 "GID index 64 is above 63, the last that a simulated port can have; give a lower index"},
	{VB_WHY_SIM_EVENT, event_of_type,
	 "event 10 of enum ibv_event_type cannot be raised for a port alone; give "
	 "IBV_EVENT_CLIENT_REREGISTER or IBV_EVENT_SM_CHANGE; other events follow from what "
	 "happens to the device"},
	{VB_WHY_WIRE_UNKNOWN, wire_3,
	 "device right: wire 3 is no value of enum vb_sim_wire; set wire to VB_SIM_WIRE_MEMORY, "
	 "VB_SIM_WIRE_SHARED or VB_SIM_WIRE_UDP"},
	{VB_WHY_WIRE_CLOCK, shared_on_virtual_clock,
	 "device right has the wire shared, and the clock of the world is virtual: other processes "
	 "cannot follow a virtual clock; give the world the real clock, or its devices the wire "
	 "memory"},
	{VB_WHY_WIRE_CLOCK, udp_on_virtual_clock,
	 "device left has the wire udp, and the clock of the world is virtual: other processes "
	 "cannot follow a virtual clock; give the world the real clock, or its devices the wire "
	 "memory"},
	{VB_WHY_WIRE_UDP_LAYER, udp_with_lids,
	 "device right has the wire udp and the link layer InfiniBand, and RoCE v2 has no LIDs; "
	 "give the device the link layer Ethernet, or the wire shared"},
	{VB_WHY_WIRE_UDP_GIDS, udp_with_gids,
	 "device right has the wire udp and 2 GIDs of its own, and its GID is the address that it "
	 "claims; leave the GIDs out, and set address to the device's address"},
	{VB_WHY_WIRE_ADDRESS, address_in_memory,
	 "device right has an address of 9 bytes and the wire 0: only a device of the wire udp has "
	 "an address, of up to 63 bytes; set wire to VB_SIM_WIRE_UDP, or leave the address out"},
	{VB_WHY_WIRE_ADDRESS, endless_address,
	 "device right has an address of 64 bytes and the wire 2: only a device of the wire udp "
	 "has an address, of up to 63 bytes; set wire to VB_SIM_WIRE_UDP, or leave the address "
	 "out"},
	{VB_WHY_WIRE_WORLD, world_in_a_folder,
	 "a/b is not the name of a world: a name has 1 to 31 letters, digits, '_', '-' and '.'; "
	 "give such a name, or \"\" for the world that your processes share by default"},
	{VB_WHY_WIRE_WORLD, endless_world,
	 "wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww is not the name of a world: a name has 1 to 31 letters, "
	 "digits, '_', '-' and '.'; give such a name, or \"\" for the world that your processes "
	 "share by default"},
	{VB_WHY_FAULT_DEVICE, fault_from_nobody,
	 "vb_fault_add: the world has no device middle; set from to the name of a device of "
	 "ibv_get_device_list(), or to NULL for all devices"},
};

void test_mistakes_of_configurations(void)
{
	static struct vb_sim_config config;
	struct vb_sim *world;

	for (size_t i = 0; i < COUNT(spoiled); i++) {
		config = (struct vb_sim_config){
			.device_count = 2,
			.devices = {{.name = "left"}, {.name = "right"}},
			.link_count = 1,
			.links = {{.a = "left", .b = "right"}},
		};
		world = vb_sim_open(&config);
		TEST_ASSERT_NOT_NULL(world);
		TEST_ASSERT_EQUAL_INT(0, vb_sim_close(world));
		spoiled[i].spoil(&config);
		expect_null(EINVAL, vb_sim_open(&config));
		expect_reason(spoiled[i].reason, "%s", spoiled[i].sentence);
	}
}

/* --- worlds --- */

void test_worlds_that_cannot_be_closed(void)
{
	struct vb_sim *world = vb_sim_open(NULL);
	struct ibv_device **list = vb_sim_device_list(world, NULL);
	struct ibv_context *context = B.open_device(list[0]);

	TEST_ASSERT_EQUAL_INT(EINVAL, vb_sim_close(NULL));
	expect_reason(
		VB_WHY_WORLD_NOT_OPENED,
		"vb_sim_close: the world is NULL or the default world, which vb_sim_open() "
		"has not made; give a world of vb_sim_open(); vb_sim_reset() ends the default "
		"world");
	TEST_ASSERT_EQUAL_INT(EBUSY, vb_sim_close(world));
	expect_reason(VB_WHY_WORLD_BUSY,
		      "vb_sim_close: devices of the world are open: sim0; close them first");
	TEST_ASSERT_EQUAL_INT(EBUSY, vb_sim_configure(NULL));
	expect_reason(
		VB_WHY_WORLD_DEFAULT_BUSY,
		"vb_sim_configure: devices of the default world are open: sim0 (1 CQ, 1 MR, 1 "
		"PD), sim1 (1 CQ, 1 MR, 1 PD); close them first, or call vb_sim_reset(), "
		"which closes them");
	B.free_device_list(list);
	TEST_ASSERT_EQUAL_INT(0, B.close_device(context));
	TEST_ASSERT_EQUAL_INT(0, vb_sim_close(world));
}

static const struct vb_sim_config *no_config(void)
{
	errno = EILSEQ;
	return NULL;
}

void test_a_default_world_without_configuration(void)
{
	close_pair();
	vb_sim_reset();
	vb_sim_set_default(no_config);
	expect_null(EILSEQ, B.get_device_list(NULL));
	expect_reason(VB_WHY_WORLD_DEFAULT_NONE,
		      "the function of vb_sim_set_default() returned no configuration for the "
		      "default world; errno was EILSEQ (Invalid or incomplete multibyte or wide "
		      "character); correct what the function reads, such as the project file");
	vb_sim_set_default(NULL);
}

void test_the_real_clock_passes_by_itself(void)
{
	const struct vb_sim_config config = {.clock = VB_SIM_CLOCK_REAL};
	struct vb_sim *world = vb_sim_open(&config);

	TEST_ASSERT_EQUAL_INT(EINVAL, vb_sim_run(world, 1));
	expect_reason(VB_WHY_SIM_CLOCK_REAL,
		      "vb_sim_run: the world has the real clock, whose time passes by itself; "
		      "configure the world with VB_SIM_CLOCK_VIRTUAL, or wait by poll(2) and "
		      "ibv_get_cq_event()");
	TEST_ASSERT_EQUAL_INT(0, vb_sim_close(world));
}

/* --- opening devices --- */

void test_a_device_of_a_world_that_was_replaced(void)
{
	struct ibv_device **list = B.get_device_list(NULL);

	close_pair();
	TEST_ASSERT_EQUAL_INT(0, vb_sim_configure(NULL));
	expect_null(ENODEV, B.open_device(list[0]));
	expect_reason(
		VB_WHY_WORLD_REPLACED,
		"open_device: another simulated world has replaced the world of sim0; get the "
		"device list again, and open a device of the new list");
	B.free_device_list(list);
}

void test_a_process_without_descriptors(void)
{
	struct ibv_device **list = B.get_device_list(NULL);
	struct rlimit kept, none;

	TEST_ASSERT_EQUAL_INT(0, getrlimit(RLIMIT_NOFILE, &kept));
	none = (struct rlimit){.rlim_cur = 0, .rlim_max = kept.rlim_max};
	TEST_ASSERT_EQUAL_INT(0, setrlimit(RLIMIT_NOFILE, &none));
	expect_null(EMFILE, B.open_device(list[0]));
	TEST_ASSERT_EQUAL_INT(0, setrlimit(RLIMIT_NOFILE, &kept));
	expect_reason(VB_WHY_PROCESS_DESCRIPTORS,
		      "open_device: the process has no free file descriptor for the events of the "
		      "device; close descriptors, or raise the limit of the process (ulimit -n)");
	B.free_device_list(list);
}

void test_the_private_operations_of_a_device(void)
{
	expect_null(EOPNOTSUPP, a.context->device->_ops._dummy1(a.context->device, 0));
	expect_reason(VB_WHY_DEVICE_OPENED_DIRECTLY,
		      "sim0 cannot be opened through its private operations; open it by "
		      "ibv_open_device()");
}

/* --- the trace --- */

void test_a_trace_of_two_link_layers(void)
{
	const struct vb_sim_config config = {
		.device_count = 2,
		.devices = {{.name = "sim0"},
			    {.name = "sim1", .link_layer = IBV_LINK_LAYER_INFINIBAND}}};
	struct vb_sim *world = vb_sim_open(&config);

	TEST_ASSERT_EQUAL_INT(ENOTSUP, vb_sim_trace_open(world, "/dev/null"));
	expect_reason(VB_WHY_TRACE_LAYERS,
		      "trace: sim0 and sim1 have different link layers, and a pcap file holds the "
		      "packets of one; trace a world whose devices have one link layer");
	TEST_ASSERT_EQUAL_INT(0, vb_sim_close(world));
}

void test_a_trace_in_no_folder(void)
{
	TEST_ASSERT_EQUAL_INT(ENOENT, vb_sim_trace_open(NULL, "/none/none.pcap"));
	expect_reason(VB_WHY_TRACE_OPEN,
		      "trace: the trace cannot be written to /none/none.pcap: No such file or "
		      "directory; give the path of a file that the process may create in a folder "
		      "that exists");
}

/* A limit of the file's size stands in for a full disk. */
void test_a_trace_on_a_full_disk(void)
{
	char path[] = "/tmp/verbena-reasons-XXXXXX";
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE};
	struct ibv_qp *from, *to;
	struct rlimit kept, small;
	void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
	int fd = mkstemp(path), err;

	TEST_ASSERT_TRUE(fd >= 0);
	connect_pair(&from, &to);
	TEST_ASSERT_EQUAL_INT(0, vb_sim_trace_open(NULL, path));
	TEST_ASSERT_EQUAL_INT(0, getrlimit(RLIMIT_FSIZE, &kept));
	small = (struct rlimit){.rlim_cur = 30, .rlim_max = kept.rlim_max};
	TEST_ASSERT_EQUAL_INT(0, setrlimit(RLIMIT_FSIZE, &small));
	post_wr(from, &wr);
	vb_sim_run(NULL, 0);
	err = vb_sim_trace_close(NULL);
	setrlimit(RLIMIT_FSIZE, &kept);
	signal(SIGXFSZ, handler);
	close(fd);
	unlink(path);
	TEST_ASSERT_EQUAL_INT(EIO, err);
	expect_reason(VB_WHY_TRACE_INCOMPLETE,
		      "trace: the trace lacks packets, because a write to its file failed; make "
		      "room on the disk; the file keeps the packets before the failure");
}

/* Another world of Ethernet wrote the file, and this world's part is of InfiniBand. */
void test_a_trace_whose_parts_cannot_be_joined(void)
{
	const struct vb_sim_config ethernet = {.device_count = 1, .devices = {{.name = "sim0"}}};
	const struct vb_sim_config infiniband = {
		.device_count = 1,
		.devices = {{.name = "sim0", .link_layer = IBV_LINK_LAYER_INFINIBAND}}};
	char path[] = "/tmp/verbena-reasons-XXXXXX", part[64];
	struct vb_sim *first = vb_sim_open(&ethernet), *second = vb_sim_open(&infiniband);
	int fd = mkstemp(path), kept = dup(STDERR_FILENO);

	TEST_ASSERT_TRUE(fd >= 0);
	close(fd);
	TEST_ASSERT_EQUAL_INT(0, vb_sim_trace_open(first, path));
	TEST_ASSERT_EQUAL_INT(0, vb_sim_trace_open(second, path));
	TEST_ASSERT_EQUAL_INT(0, vb_sim_trace_close(first));
	TEST_ASSERT_NOT_NULL(freopen("/dev/null", "w", stderr));
	TEST_ASSERT_EQUAL_INT(EIO, vb_sim_trace_close(second));
	fflush(stderr);
	dup2(kept, STDERR_FILENO);
	close(kept);
	expect_reason(VB_WHY_TRACE_PARTS,
		      "trace: the parts of the trace that other processes wrote cannot be joined "
		      "with its file; remove the cause, which standard error names, and run "
		      "`verbena trace merge FILE`");
	snprintf(part, sizeof(part), "%s.%d.part", path, getpid());
	TEST_ASSERT_EQUAL_INT(0, unlink(part));
	unlink(path);
	TEST_ASSERT_EQUAL_INT(0, vb_sim_close(first));
	TEST_ASSERT_EQUAL_INT(0, vb_sim_close(second));
}
