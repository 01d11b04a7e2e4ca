/* SPDX-License-Identifier: MIT */
/* Completion queues. Expected: ibv_create_cq(3), ibv_poll_cq(3), ibv_req_notify_cq(3). */
#include "test/support/engine.h"
#include "unity.h"

#include <errno.h>

static struct engine engine;
static struct sim_device *device;
static struct sim_cq *cq;
static int cq_user;

void setUp(void)
{
	engine_open_bare(&engine, 1);
	device = engine_add_device(&engine, "one", 1, NULL);
	engine.sides[0].device = device;
	cq = NULL;
}

void tearDown(void)
{
	if (cq)
		TEST_ASSERT_EQUAL_INT(0, sim_cq_destroy(cq));
	engine_close(&engine);
}

static void create(unsigned int entries)
{
	TEST_ASSERT_EQUAL_INT(0, sim_cq_create(device, entries, &cq_user, &cq));
	TEST_ASSERT_GREATER_OR_EQUAL(entries, cq->size);
}

static bool push(uint64_t wr_id, enum ibv_wc_status status, bool solicited)
{
	struct sim_cqe *cqe;

	if (!sim_cq_has_room(cq))
		return false;
	cqe = sim_cq_next(cq);
	cqe->wc = (struct ibv_wc){.wr_id = wr_id, .status = status, .qp_num = 16};
	cqe->retires = NULL;
	cqe->solicited = solicited;
	sim_cq_commit(cq, cqe);
	return true;
}

static void fill(unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		TEST_ASSERT_TRUE(push(i, IBV_WC_SUCCESS, false));
}

static void expect(uint64_t wr_id)
{
	struct ibv_wc wc;

	TEST_ASSERT_EQUAL_INT(1, sim_cq_poll(cq, 1, &wc));
	TEST_ASSERT_EQUAL_UINT64(wr_id, wc.wr_id);
}

void test_sizes(void)
{
	const unsigned int most = (unsigned int)device->profile->limits.max_cqe;

	TEST_ASSERT_EQUAL_INT(EINVAL, sim_cq_create(device, 0, NULL, &cq));
	TEST_ASSERT_EQUAL_INT(EINVAL, sim_cq_create(device, most + 1, NULL, &cq));
	TEST_ASSERT_EQUAL_INT(EINVAL, sim_cq_create(device, UINT32_MAX, NULL, &cq));
	TEST_ASSERT_NULL(cq);
	create(1);
}

void test_poll_is_in_order_across_the_ring(void)
{
	struct ibv_wc wc[8];

	create(5);
	for (uint64_t i = 0; i < 50; i += 5) {
		for (uint64_t j = 0; j < 5; j++)
			TEST_ASSERT_TRUE(push(i + j, IBV_WC_SUCCESS, false));
		TEST_ASSERT_EQUAL_UINT32(5, sim_cq_count(cq));
		TEST_ASSERT_EQUAL_INT(3, sim_cq_poll(cq, 3, wc));
		TEST_ASSERT_EQUAL_INT(2, sim_cq_poll(cq, 8, wc + 3));
		for (uint64_t j = 0; j < 5; j++)
			TEST_ASSERT_EQUAL_UINT64(i + j, wc[j].wr_id);
	}
	TEST_ASSERT_EQUAL_INT(0, sim_cq_poll(cq, 8, wc));
	TEST_ASSERT_EQUAL_INT(0, sim_cq_poll(cq, 0, wc));
}

void test_peek_takes_nothing(void)
{
	create(4);
	TEST_ASSERT_NULL(sim_cq_peek(cq));
	fill(2);
	TEST_ASSERT_EQUAL_UINT64(0, sim_cq_peek(cq)->wc.wr_id);
	TEST_ASSERT_EQUAL_UINT64(0, sim_cq_peek(cq)->wc.wr_id);
	sim_cq_pop(cq);
	TEST_ASSERT_EQUAL_UINT64(1, sim_cq_peek(cq)->wc.wr_id);
	expect(1);
}

/*
 * One completion more than fits gives CQ_ERR once. Earlier completions can be polled, then polling
 * returns -1.
 */
void test_overrun(void)
{
	struct ibv_wc wc;

	create(3);
	fill(cq->size);
	TEST_ASSERT_FALSE(push(99, IBV_WC_SUCCESS, false));
	TEST_ASSERT_FALSE(push(100, IBV_WC_SUCCESS, false));
	TEST_ASSERT_EQUAL_UINT(1, engine.event_count);
	TEST_ASSERT_EQUAL_INT(IBV_EVENT_CQ_ERR, engine.events[0].type);
	TEST_ASSERT_EQUAL_PTR(&cq_user, engine.events[0].element);
	expect(0);
	TEST_ASSERT_FALSE_MESSAGE(push(101, IBV_WC_SUCCESS, false), "a dead CQ takes nothing");
	for (uint64_t i = 1; i < cq->size; i++)
		expect(i);
	TEST_ASSERT_EQUAL_INT(-1, sim_cq_poll(cq, 1, &wc));
	TEST_ASSERT_EQUAL_INT(-1, sim_cq_poll(cq, 1, &wc));
	TEST_ASSERT_EQUAL_UINT(1, engine.event_count);
}

/* IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN, ibv_create_cq_ex(3). */
void test_ignored_overrun_overwrites(void)
{
	create(4);
	cq->ignore_overrun = true;
	fill(6);
	TEST_ASSERT_EQUAL_UINT32(4, sim_cq_count(cq));
	for (uint64_t i = 2; i < 6; i++)
		expect(i);
	TEST_ASSERT_EQUAL_UINT(0, engine.event_count);
}

void test_resize_keeps_what_is_there(void)
{
	create(4);
	fill(4);
	expect(0);
	TEST_ASSERT_TRUE(push(4, IBV_WC_SUCCESS, false)); /* the ring wraps */
	TEST_ASSERT_EQUAL_INT(0, sim_cq_resize(cq, 100));
	TEST_ASSERT_GREATER_OR_EQUAL(100u, cq->size);
	for (uint64_t i = 5; i < 101; i++)
		TEST_ASSERT_TRUE(push(i, IBV_WC_SUCCESS, false));
	for (uint64_t i = 1; i < 101; i++)
		expect(i);
}

void test_resize_below_what_is_there(void)
{
	create(8);
	fill(5);
	TEST_ASSERT_EQUAL_INT(EINVAL, sim_cq_resize(cq, 4));
	TEST_ASSERT_EQUAL_INT(EINVAL, sim_cq_resize(cq, 0));
	TEST_ASSERT_EQUAL_INT(EINVAL,
			      sim_cq_resize(cq, (unsigned int)device->profile->limits.max_cqe + 1));
	TEST_ASSERT_EQUAL_INT(0, sim_cq_resize(cq, 5));
	for (uint64_t i = 0; i < 5; i++)
		expect(i);
}

void test_one_event_for_one_arming(void)
{
	create(8);
	fill(1);
	TEST_ASSERT_EQUAL_UINT(0, engine.sides[0].cq_events);
	sim_cq_arm(cq, false);
	TEST_ASSERT_EQUAL_UINT_MESSAGE(0, engine.sides[0].cq_events,
				       "what was there at arming gives no event");
	fill(3);
	TEST_ASSERT_EQUAL_UINT(1, engine.sides[0].cq_events);
	sim_cq_arm(cq, false);
	sim_cq_arm(cq, false);
	fill(2);
	TEST_ASSERT_EQUAL_UINT(2, engine.sides[0].cq_events);
}

/* Errors count as solicited completions. */
void test_solicited_arming(void)
{
	create(8);
	sim_cq_arm(cq, true);
	push(0, IBV_WC_SUCCESS, false);
	TEST_ASSERT_EQUAL_UINT(0, engine.sides[0].cq_events);
	push(1, IBV_WC_SUCCESS, true);
	TEST_ASSERT_EQUAL_UINT(1, engine.sides[0].cq_events);
	push(2, IBV_WC_SUCCESS, true);
	TEST_ASSERT_EQUAL_UINT(1, engine.sides[0].cq_events);
	sim_cq_arm(cq, true);
	push(3, IBV_WC_WR_FLUSH_ERR, false);
	TEST_ASSERT_EQUAL_UINT(2, engine.sides[0].cq_events);
}

/* Arming for all completions overrides arming for solicited ones, but not the other way. */
void test_arming_widens_only(void)
{
	create(8);
	sim_cq_arm(cq, true);
	sim_cq_arm(cq, false);
	push(0, IBV_WC_SUCCESS, false);
	TEST_ASSERT_EQUAL_UINT(1, engine.sides[0].cq_events);
	sim_cq_arm(cq, false);
	sim_cq_arm(cq, true);
	push(1, IBV_WC_SUCCESS, false);
	TEST_ASSERT_EQUAL_UINT(2, engine.sides[0].cq_events);
}

void test_cq_in_use_is_not_destroyed(void)
{
	create(8);
	cq->users++;
	TEST_ASSERT_EQUAL_INT(EBUSY, sim_cq_destroy(cq));
	cq->users--;
}

/* Polling a completion frees the slots of the WRs before it. */
void test_polling_gives_slots_back(void)
{
	struct engine_send send = {.opcode = IBV_WR_SEND, .bytes = 1, .unsignalled = true};
	struct ibv_wc wc;

	tearDown();
	cq = NULL;
	engine_open(&engine, &(struct engine_config){.max_wr = 4});
	for (uint64_t i = 0; i < 4; i++)
		TEST_ASSERT_EQUAL_INT(0, engine_recv(&engine, 1, i, 0, 10));
	for (send.wr_id = 0; send.wr_id < 3; send.wr_id++)
		TEST_ASSERT_EQUAL_INT(0, engine_send(&engine, 0, &send));
	send.unsignalled = false;
	TEST_ASSERT_EQUAL_INT(0, engine_send(&engine, 0, &send));
	sim_engine_run(engine.sim);
	TEST_ASSERT_EQUAL_INT(ENOMEM, engine_send(&engine, 0, &send));
	TEST_ASSERT_EQUAL_INT(ENOMEM, engine_recv(&engine, 1, 4, 0, 10));
	TEST_ASSERT_TRUE(engine_poll(engine.sides[0].send_cq, &wc));
	TEST_ASSERT_TRUE(engine_poll(engine.sides[1].recv_cq, &wc));
	for (uint64_t i = 0; i < 4; i++)
		TEST_ASSERT_EQUAL_INT(0, engine_send(&engine, 0, &send));
	TEST_ASSERT_EQUAL_INT(ENOMEM, engine_send(&engine, 0, &send));
	TEST_ASSERT_EQUAL_INT(0, engine_recv(&engine, 1, 4, 0, 10));
	TEST_ASSERT_EQUAL_INT(ENOMEM, engine_recv(&engine, 1, 5, 0, 10));
}

/* A completion from before a reset frees no slot of the queue after the reset. */
void test_completion_from_before_a_reset_frees_nothing(void)
{
	const struct engine_send send = {.opcode = IBV_WR_SEND, .bytes = 1};
	const struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};
	struct ibv_wc wc;

	tearDown();
	cq = NULL;
	engine_open(&engine, &(struct engine_config){.max_wr = 2});
	TEST_ASSERT_EQUAL_INT(0, engine_recv(&engine, 1, 0, 0, 10));
	TEST_ASSERT_EQUAL_INT(0, engine_send(&engine, 0, &send));
	sim_engine_run(engine.sim);
	TEST_ASSERT_EQUAL_INT(0, sim_qp_modify(engine.sides[0].qp, &reset, IBV_QP_STATE));
	engine_connect_qp(&engine, engine.sides[0].qp, engine.sides[1].qp->number,
			  &engine.sides[1].gid, ENGINE_PSN + 1, ENGINE_PSN);
	for (unsigned int i = 0; i < 2; i++)
		TEST_ASSERT_EQUAL_INT(0, engine_send(&engine, 0, &send));
	TEST_ASSERT_TRUE_MESSAGE(engine_poll(engine.sides[0].send_cq, &wc), "it stays in the CQ");
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, wc.status);
	TEST_ASSERT_EQUAL_INT(ENOMEM, engine_send(&engine, 0, &send));
}

/* Every QP that would complete into a dead CQ goes to ERR with QP_FATAL. */
void test_overrun_takes_its_qp_with_it(void)
{
	const struct engine_send send = {.opcode = IBV_WR_RDMA_WRITE, .bytes = 1};

	tearDown();
	cq = NULL;
	engine_open(&engine, &(struct engine_config){.cq_entries = 2});
	for (unsigned int i = 0; i < 5; i++)
		TEST_ASSERT_EQUAL_INT(0, engine_send(&engine, 0, &send));
	sim_engine_run(engine.sim);
	TEST_ASSERT_EQUAL_INT(IBV_QPS_ERR, engine.sides[0].qp->state);
	TEST_ASSERT_EQUAL_INT(IBV_QPS_RTS, engine.sides[1].qp->state);
	TEST_ASSERT_EQUAL_UINT(1, engine_events(&engine, IBV_EVENT_CQ_ERR));
	TEST_ASSERT_EQUAL_UINT(1, engine_events(&engine, IBV_EVENT_QP_FATAL));
	TEST_ASSERT_EQUAL_UINT32(2, sim_cq_count(engine.sides[0].send_cq));
	TEST_ASSERT_EQUAL_UINT32(engine.sides[0].qp->sq.head, engine.sides[0].qp->sq.tail);
}

/* Limits that are low enough for a test to reach. */
static struct sim_profile small;

static void limit(int max_cq, int max_cqe)
{
	small = *device->profile;
	small.limits.max_cq = max_cq;
	small.limits.max_cqe = max_cqe;
	device->profile = &small;
}

void test_max_cqe_is_still_allowed(void)
{
	struct sim_cq *other = NULL;

	limit(10, 4);
	TEST_ASSERT_EQUAL_INT(EINVAL, sim_cq_create(device, 5, NULL, &other));
	create(4);
	TEST_ASSERT_EQUAL_INT(EINVAL, sim_cq_resize(cq, 5));
	TEST_ASSERT_EQUAL_INT(0, sim_cq_resize(cq, 4));
}

void test_max_cq_is_still_allowed(void)
{
	struct sim_cq *first, *other = NULL;

	limit(2, 4);
	TEST_ASSERT_EQUAL_INT(0, sim_cq_create(device, 1, NULL, &first));
	create(1);
	TEST_ASSERT_EQUAL_INT(ENOMEM, sim_cq_create(device, 1, NULL, &other));
	TEST_ASSERT_NULL(other);
	TEST_ASSERT_EQUAL_INT(0, sim_cq_destroy(first));
	TEST_ASSERT_EQUAL_INT(0, sim_cq_create(device, 1, NULL, &first));
	TEST_ASSERT_EQUAL_INT(0, sim_cq_destroy(first));
}

/* The clock has room for a timer for each moderated CQ, and for no other CQ. */
void test_moderation_has_limits(void)
{
	const uint32_t reserved = engine.sim->clock.reserved;

	limit(10, 4);
	small.moderation = (struct ibv_cq_moderation_caps){.max_cq_count = 10, .max_cq_period = 20};
	create(4);
	TEST_ASSERT_EQUAL_INT(EINVAL, sim_cq_moderate(cq, 11, 20));
	TEST_ASSERT_EQUAL_INT(EINVAL, sim_cq_moderate(cq, 10, 21));
	TEST_ASSERT_EQUAL_INT(0, sim_cq_moderate(cq, 0, 0));
	TEST_ASSERT_EQUAL_UINT32(reserved, engine.sim->clock.reserved);
	TEST_ASSERT_EQUAL_INT(0, sim_cq_moderate(cq, 10, 20));
	TEST_ASSERT_EQUAL_INT(0, sim_cq_moderate(cq, 9, 19));
	TEST_ASSERT_EQUAL_UINT32(reserved + 1, engine.sim->clock.reserved);
	sim_cq_arm(cq, false);
	fill(1);
	TEST_ASSERT_EQUAL_INT(0, sim_cq_destroy(cq));
	cq = NULL;
	TEST_ASSERT_EQUAL_UINT32(reserved, engine.sim->clock.reserved);
	TEST_ASSERT_EQUAL_UINT64(SIM_NEVER, sim_engine_next_ns(engine.sim));
}

/* Like rxe, which has no ib_device_ops.modify_cq. */
void test_moderation_that_a_device_has_not(void)
{
	limit(10, 4);
	small.moderation = (struct ibv_cq_moderation_caps){0};
	create(4);
	TEST_ASSERT_EQUAL_INT(EOPNOTSUPP, sim_cq_moderate(cq, 0, 0));
	TEST_ASSERT_EQUAL_UINT16(0, sim_profile_find("rxe-6.12")->moderation.max_cq_count);
}

/*
 * Polling 0 completions of a dead CQ is no error. With the quirk, it returns no completion at all.
 */
void test_poll_of_a_dead_cq(void)
{
	struct ibv_wc wc;

	create(1);
	fill(1);
	TEST_ASSERT_FALSE(push(1, IBV_WC_SUCCESS, false));
	engine_quirk(device, "overrun_ends_polling", true);
	TEST_ASSERT_EQUAL_INT(-1, sim_cq_poll(cq, 1, &wc));
	TEST_ASSERT_EQUAL_INT(0, sim_cq_poll(cq, 0, &wc));
	engine_quirk(device, "overrun_ends_polling", false);
	expect(0);
	TEST_ASSERT_EQUAL_INT(0, sim_cq_poll(cq, 0, &wc));
	TEST_ASSERT_EQUAL_INT(-1, sim_cq_poll(cq, 1, &wc));
}
