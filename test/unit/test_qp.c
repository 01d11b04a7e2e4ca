/* SPDX-License-Identifier: MIT */
/*
 * Creating, flushing and destroying QPs. Expected: ibv_create_qp(3); docs/semantics.md, QP
 * transitions.
 */
#include "test/support/engine.h"
#include "unity.h"

#include <errno.h>

static struct engine engine;

void setUp(void)
{
	engine_open(&engine, &(struct engine_config){0});
}

void tearDown(void)
{
	engine_close(&engine);
}

static struct sim_qp_init good(void)
{
	return (struct sim_qp_init){.type = IBV_QPT_RC,
				    .pd = 1,
				    .send_cq = engine.sides[0].send_cq,
				    .recv_cq = engine.sides[0].recv_cq,
				    .cap = {4, 4, 1, 1, 0}};
}

void test_create_and_destroy_leave_nothing(void)
{
	struct sim_device *device = engine.sides[0].device;
	const uint32_t live = device->qps.live;
	const uint32_t reserved = engine.sim->clock.reserved;
	const uint32_t users = engine.sides[0].send_cq->users;

	for (unsigned int i = 0; i < 1000; i++) {
		struct sim_qp_init init = good();
		struct sim_qp *qp;

		TEST_ASSERT_EQUAL_INT(0, sim_qp_create(device, &init, &qp));
		TEST_ASSERT_EQUAL_INT(IBV_QPS_RESET, qp->state);
		TEST_ASSERT_GREATER_OR_EQUAL(16u, qp->number);
		TEST_ASSERT_LESS_THAN(1u << 24, qp->number);
		TEST_ASSERT_GREATER_OR_EQUAL(4u, init.cap.max_send_wr);
		sim_qp_destroy(qp);
	}
	TEST_ASSERT_EQUAL_UINT32(live, device->qps.live);
	TEST_ASSERT_EQUAL_UINT32(reserved, engine.sim->clock.reserved);
	TEST_ASSERT_EQUAL_UINT32(users, engine.sides[0].send_cq->users);
}

void test_caps_beyond_the_device(void)
{
	struct sim_device *device = engine.sides[0].device;
	const struct ibv_device_attr *limits = &device->profile->limits;

	for (unsigned int i = 0; i < 5; i++) {
		struct sim_qp_init init = good();
		struct sim_qp *qp = NULL;

		if (i == 0)
			init.cap.max_send_wr = (uint32_t)limits->max_qp_wr + 1;
		else if (i == 1)
			init.cap.max_recv_wr = UINT32_MAX;
		else if (i == 2)
			init.cap.max_send_sge = (uint32_t)limits->max_sge + 1;
		else if (i == 3)
			init.cap.max_recv_sge = (uint32_t)limits->max_sge + 1;
		else
			init.cap.max_inline_data = device->profile->max_inline_bytes + 1;
		TEST_ASSERT_EQUAL_INT(EINVAL, sim_qp_create(device, &init, &qp));
		TEST_ASSERT_NULL(qp);
	}
}

void test_types(void)
{
	struct sim_qp_init init = good();
	struct sim_qp *qp;

	init.type = IBV_QPT_RAW_PACKET;
	TEST_ASSERT_EQUAL_INT(EOPNOTSUPP, sim_qp_create(engine.sides[0].device, &init, &qp));
	init.type = 77;
	TEST_ASSERT_EQUAL_INT(EINVAL, sim_qp_create(engine.sides[0].device, &init, &qp));
}

/* ibv_create_qp(3): an SRQ is for RC and UD only. That the errno is EINVAL is unsourced. */
void test_types_that_take_no_srq(void)
{
	static const enum ibv_qp_type types[] = {IBV_QPT_UC, IBV_QPT_XRC_SEND, IBV_QPT_XRC_RECV};
	struct sim_srq srq = {0};

	for (unsigned int i = 0; i < 3; i++) {
		struct sim_qp_init init = good();
		struct sim_qp *qp;

		init.type = types[i];
		init.srq = &srq;
		TEST_ASSERT_EQUAL_INT(EINVAL, sim_qp_create(engine.sides[0].device, &init, &qp));
	}
	TEST_ASSERT_EQUAL_UINT32(0, srq.users);
}

/* A QP without a receive queue, or without both queues. */
void test_queues_of_no_work(void)
{
	struct sim_qp_init init = good();
	struct ibv_recv_wr recv = {0}, *bad_recv;
	struct ibv_send_wr send = {.opcode = IBV_WR_SEND}, *bad_send;
	struct sim_qp *qp;

	init.cap = (struct ibv_qp_cap){0};
	TEST_ASSERT_EQUAL_INT(0, sim_qp_create(engine.sides[0].device, &init, &qp));
	engine_connect_qp(&engine, qp, 99, &engine.sides[1].gid, 0, 0);
	TEST_ASSERT_EQUAL_INT(ENOMEM, sim_qp_post_recv(qp, &recv, &bad_recv));
	TEST_ASSERT_EQUAL_INT(ENOMEM, sim_qp_post_send(qp, &send, &bad_send));
	sim_qp_destroy(qp);
}

static void post(unsigned int sends, unsigned int recvs)
{
	for (unsigned int i = 0; i < sends; i++)
		TEST_ASSERT_EQUAL_INT(0, engine_send(&engine, 0,
						     &(struct engine_send){.opcode = IBV_WR_SEND,
									   .wr_id = i,
									   .bytes = 8,
									   .unsignalled = true}));
	for (unsigned int i = 0; i < recvs; i++)
		TEST_ASSERT_EQUAL_INT(0, engine_recv(&engine, 0, i, 0, 8));
}

static void expect_flushed(struct sim_cq *cq, unsigned int count)
{
	struct ibv_wc wc;

	for (unsigned int i = 0; i < count; i++) {
		TEST_ASSERT_TRUE(engine_poll(cq, &wc));
		TEST_ASSERT_EQUAL_UINT64(i, wc.wr_id);
		TEST_ASSERT_EQUAL_INT(IBV_WC_WR_FLUSH_ERR, wc.status);
		TEST_ASSERT_EQUAL_UINT32(engine.sides[0].qp->number, wc.qp_num);
	}
	TEST_ASSERT_FALSE(engine_poll(cq, &wc));
}

static void to_state(enum ibv_qp_state state)
{
	const struct ibv_qp_attr attr = {.qp_state = state};

	TEST_ASSERT_EQUAL_INT(0, sim_qp_modify(engine.sides[0].qp, &attr, IBV_QP_STATE));
}

/* Every outstanding WR completes in order with WR_FLUSH_ERR, signalled or not. */
void test_error_flushes_in_order(void)
{
	post(5, 6);
	to_state(IBV_QPS_ERR);
	sim_engine_run(engine.sim);
	expect_flushed(engine.sides[0].send_cq, 5);
	expect_flushed(engine.sides[0].recv_cq, 6);
	post(2, 3); /* accepted and flushed */
	sim_engine_run(engine.sim);
	expect_flushed(engine.sides[0].send_cq, 2);
	expect_flushed(engine.sides[0].recv_cq, 3);
	TEST_ASSERT_EQUAL_UINT64(SIM_NEVER, sim_engine_next_ns(engine.sim));
	TEST_ASSERT_EQUAL_UINT(0, engine.event_count);
}

/* RESET drops all WRs without completions. Completions in the CQ stay. */
void test_reset_is_silent(void)
{
	struct ibv_wc wc;

	post(1, 0);
	to_state(IBV_QPS_ERR);
	sim_engine_run(engine.sim);
	post(5, 5);
	to_state(IBV_QPS_RESET);
	sim_engine_run(engine.sim);
	TEST_ASSERT_TRUE(engine_poll(engine.sides[0].send_cq, &wc));
	TEST_ASSERT_FALSE(engine_poll(engine.sides[0].send_cq, &wc));
	TEST_ASSERT_FALSE(engine_poll(engine.sides[0].recv_cq, &wc));
	engine_connect_qp(&engine, engine.sides[0].qp, engine.sides[1].qp->number,
			  &engine.sides[1].gid, ENGINE_PSN, ENGINE_PSN);
	TEST_ASSERT_EQUAL_INT(
		0, engine_send(&engine, 0,
			       &(struct engine_send){.opcode = IBV_WR_RDMA_WRITE, .bytes = 8}));
	sim_engine_run(engine.sim);
	TEST_ASSERT_TRUE(engine_poll(engine.sides[0].send_cq, &wc));
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, wc.status);
}

/* A QP is destroyed while it is first, in the middle, or last in the list of waiting QPs. */
void test_destroyed_while_listed(void)
{
	for (unsigned int victim = 0; victim < 3; victim++) {
		struct sim_qp *qps[3];
		struct ibv_recv_wr wr = {.wr_id = 7}, *bad;
		struct ibv_wc wc;

		sim_engine_run(engine.sim);
		for (unsigned int i = 0; i < 3; i++) {
			struct sim_qp_init init = good();

			TEST_ASSERT_EQUAL_INT(
				0, sim_qp_create(engine.sides[0].device, &init, &qps[i]));
			engine_connect_qp(&engine, qps[i], 99, &engine.sides[1].gid, 0, 0);
		}
		sim_engine_run(engine.sim);
		for (unsigned int i = 0; i < 3; i++) {
			TEST_ASSERT_EQUAL_INT(0, sim_qp_post_recv(qps[i], &wr, &bad));
			sim_qp_fail(qps[i], SIM_BY_MODIFY);
			sim_qp_wake_responder(qps[i]);
		}
		sim_qp_destroy(qps[victim]);
		/* The list still ends at its last QP. */
		sim_qp_wake_requester(engine.sides[0].qp);
		sim_qp_wake_responder(engine.sides[0].qp);
		sim_engine_run(engine.sim);
		for (unsigned int i = 0; i < 2; i++)
			TEST_ASSERT_TRUE(engine_poll(engine.sides[0].recv_cq, &wc));
		TEST_ASSERT_FALSE(engine_poll(engine.sides[0].recv_cq, &wc));
		for (unsigned int i = 0; i < 3; i++)
			if (i != victim)
				sim_qp_destroy(qps[i]);
		TEST_ASSERT_TRUE(sim_engine_quiet(engine.sim));
	}
}

/* A QP is destroyed while its timers are armed: none of them may fire. */
void test_destroyed_with_timers_armed(void)
{
	engine_close(&engine);
	engine_open(&engine, &(struct engine_config){.rnr_retry = 7});
	post(1, 0);
	sim_engine_run(engine.sim); /* the peer has no receive and sends an RNR NAK */
	TEST_ASSERT_NOT_EQUAL(SIM_NEVER, sim_engine_next_ns(engine.sim));
	sim_qp_destroy(engine.sides[0].qp);
	engine.sides[0].qp = NULL;
	TEST_ASSERT_EQUAL_UINT64(SIM_NEVER, sim_engine_next_ns(engine.sim));
	engine_settle(&engine, SIM_NEVER - 1);
}

/* A completion of a destroyed QP can still be polled. */
void test_completions_outlive_their_qp(void)
{
	struct ibv_wc wc;

	post(3, 3);
	to_state(IBV_QPS_ERR);
	sim_engine_run(engine.sim);
	sim_qp_destroy(engine.sides[0].qp);
	engine.sides[0].qp = NULL;
	for (unsigned int i = 0; i < 3; i++) {
		TEST_ASSERT_TRUE(engine_poll(engine.sides[0].send_cq, &wc));
		TEST_ASSERT_TRUE(engine_poll(engine.sides[0].recv_cq, &wc));
	}
}

/* Of a CQ whose owner reads the times. */
void test_completions_carry_the_worlds_time(void)
{
	engine.sides[0].send_cq->stamps = true;
	sim_engine_advance(engine.sim, 4711);
	TEST_ASSERT_EQUAL_INT(
		0, engine_send(&engine, 0,
			       &(struct engine_send){.opcode = IBV_WR_RDMA_WRITE, .bytes = 8}));
	sim_engine_run(engine.sim);
	TEST_ASSERT_EQUAL_UINT64(4711, sim_cq_peek(engine.sides[0].send_cq)->timestamp_ns);
}

/* All sizes may be at their limits at once. */
void test_caps_of_the_device(void)
{
	struct sim_device *device = engine.sides[0].device;
	struct sim_profile small = *device->profile;
	struct sim_qp_init init = good();
	struct sim_qp *qp;

	small.limits.max_qp_wr = 8;
	small.limits.max_sge = 3;
	small.max_inline_bytes = 33;
	device->profile = &small;
	init.cap = (struct ibv_qp_cap){8, 8, 3, 3, 33};
	TEST_ASSERT_EQUAL_INT(0, sim_qp_create(device, &init, &qp));
	sim_qp_destroy(qp);
}

/* A QP with an SRQ, and the sending end of XRC, have no receive queue. */
void test_qps_without_a_receive_queue(void)
{
	struct sim_device *device = engine.sides[0].device;
	struct sim_srq_init srq_init = {.pd = 1, .attr = {.max_wr = 1, .max_sge = 1}};
	struct sim_qp_init init = good();
	struct sim_srq *srq;
	struct sim_qp *qp;

	TEST_ASSERT_EQUAL_INT(0, sim_srq_create(device, &srq_init, &srq));
	init.srq = srq;
	TEST_ASSERT_EQUAL_INT(0, sim_qp_create(device, &init, &qp));
	TEST_ASSERT_EQUAL_UINT32(0, init.cap.max_recv_wr);
	TEST_ASSERT_EQUAL_UINT32(0, qp->rq.max_wr);
	TEST_ASSERT_EQUAL_UINT32(4, qp->sq.max_wr);
	TEST_ASSERT_EQUAL_INT(EBUSY, sim_srq_destroy(srq));
	sim_qp_destroy(qp);
	TEST_ASSERT_EQUAL_INT(0, sim_srq_destroy(srq));
	init = good();
	init.type = IBV_QPT_XRC_SEND;
	init.recv_cq = NULL;
	TEST_ASSERT_EQUAL_INT(0, sim_qp_create(device, &init, &qp));
	TEST_ASSERT_EQUAL_UINT32(0, qp->rq.max_wr);
	TEST_ASSERT_EQUAL_UINT32(0, init.cap.max_recv_sge);
	sim_qp_destroy(qp);
}
