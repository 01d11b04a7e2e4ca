/* SPDX-License-Identifier: MIT */
/*
 * What quirks change: each test runs with and without the quirk. Quirks of memory, windows,
 * receives, retries and datagrams are in the tests of their modules.
 */
#include "test/support/engine.h"
#include "unity.h"

#include <errno.h>
#include <string.h>

#define ACK (SIM_AETH_ACK | SIM_ACK_CREDIT_NONE)

static struct engine engine;

void setUp(void)
{
	engine_open(&engine, &(struct engine_config){.peer = true});
}

void tearDown(void)
{
	engine_close(&engine);
}

static void again(const struct engine_config *config)
{
	engine_close(&engine);
	engine_open(&engine, config);
}

static struct sim_qp *qp(void)
{
	return engine.sides[0].qp;
}

static void set_quirk(const char *name, bool on)
{
	engine_quirk(engine.sides[0].device, name, on);
}

static int modify(const struct ibv_qp_attr *attr, int mask)
{
	return sim_qp_modify(qp(), attr, mask);
}

static int go(enum ibv_qp_state state)
{
	return modify(&(struct ibv_qp_attr){.qp_state = state}, IBV_QP_STATE);
}

static int send(uint64_t wr_id, uint32_t bytes)
{
	return engine_send(
		&engine, 0,
		&(struct engine_send){.opcode = IBV_WR_SEND, .wr_id = wr_id, .bytes = bytes});
}

static void must_send(uint64_t wr_id)
{
	TEST_ASSERT_EQUAL_INT(0, send(wr_id, 8));
}

static void must_recv(uint64_t wr_id)
{
	TEST_ASSERT_EQUAL_INT(0, engine_recv(&engine, 0, wr_id, 0, 100));
}

static void expect(struct sim_cq *cq, uint64_t wr_id, enum ibv_wc_status status)
{
	struct ibv_wc wc;

	TEST_ASSERT_TRUE_MESSAGE(engine_poll(cq, &wc), "no completion");
	TEST_ASSERT_EQUAL_UINT64(wr_id, wc.wr_id);
	TEST_ASSERT_EQUAL_INT(status, wc.status);
}

static void expect_none(struct sim_cq *cq)
{
	struct ibv_wc wc;

	TEST_ASSERT_FALSE(engine_poll(cq, &wc));
}

static void arrive(unsigned int opcode, uint32_t ahead, uint32_t bytes)
{
	struct sim_packet packet = engine_packet(&engine, opcode, ENGINE_PSN + ahead);
	static const uint8_t data[512];
	struct sim_span span;

	packet.dma_bytes = bytes;
	engine_payload(&packet, &span, data, bytes);
	engine_inject(&engine, &packet);
}

void test_posts_in_the_wrong_state(void)
{
	for (int on = 0; on < 2; on++) {
		again(&(struct engine_config){.peer = true});
		set_quirk("posts_ignored_in_wrong_state", on);
		TEST_ASSERT_EQUAL_INT(0, go(IBV_QPS_RESET));
		TEST_ASSERT_EQUAL_INT(on ? 0 : EINVAL, send(1, 8));
		TEST_ASSERT_EQUAL_INT(on ? 0 : EINVAL, engine_recv(&engine, 0, 2, 0, 8));
		TEST_ASSERT_EQUAL_UINT32(0, qp()->sq.head);
		TEST_ASSERT_EQUAL_UINT32(0, qp()->rq.head);
	}
}

void test_message_limit(void)
{
	struct sim_profile small;
	struct ibv_wc wc;

	for (int on = 0; on < 2; on++) {
		again(&(struct engine_config){0});
		small = *engine.sides[0].device->profile;
		small.max_message_bytes = 64;
		engine.sides[0].device->profile = &small;
		engine_quirk(engine.sides[0].device, "message_limit_unchecked", on);
		TEST_ASSERT_EQUAL_INT(0,
				      engine_send(&engine, 0,
						  &(struct engine_send){.opcode = IBV_WR_RDMA_WRITE,
									.bytes = 65}));
		sim_engine_run(engine.sim);
		TEST_ASSERT_TRUE(engine_poll(engine.sides[0].send_cq, &wc));
		TEST_ASSERT_EQUAL_INT(on ? IBV_WC_SUCCESS : IBV_WC_LOC_LEN_ERR, wc.status);
	}
}

/* A length that no packet can carry is too long for every profile. */
void test_message_that_no_device_sends(void)
{
	struct ibv_sge sges[2] = {{0, UINT32_C(1) << 31, 1}, {0, 1, 1}};
	struct ibv_send_wr *bad, wr = {.sg_list = sges,
				       .num_sge = 2,
				       .opcode = IBV_WR_RDMA_WRITE,
				       .send_flags = IBV_SEND_SIGNALED};
	struct ibv_wc wc;

	again(&(struct engine_config){0});
	engine_quirk(engine.sides[0].device, "message_limit_unchecked", true);
	TEST_ASSERT_EQUAL_INT(0, sim_qp_post_send(engine.sides[0].qp, &wr, &bad));
	sim_engine_run(engine.sim);
	TEST_ASSERT_TRUE(engine_poll(engine.sides[0].send_cq, &wc));
	TEST_ASSERT_EQUAL_INT(IBV_WC_LOC_LEN_ERR, wc.status);
}

/* A QP of one send WR and one receive WR. */
static void remake(void)
{
	struct engine_side *side = &engine.sides[0];
	struct sim_qp_init init = {.type = IBV_QPT_RC,
				   .pd = 1,
				   .send_cq = side->send_cq,
				   .recv_cq = side->recv_cq,
				   .cap = {1, 1, 1, 1, 0}};

	sim_qp_destroy(side->qp);
	TEST_ASSERT_EQUAL_INT(0, sim_qp_create(side->device, &init, &side->qp));
	engine_connect_qp(&engine, side->qp, ENGINE_PEER_QPN, &engine.sides[1].gid, ENGINE_PSN,
			  ENGINE_PSN);
}

void test_slots_that_are_free_when_completed(void)
{
	for (int on = 0; on < 2; on++) {
		again(&(struct engine_config){.peer = true});
		set_quirk("slots_free_when_completed", on);
		remake();
		must_send(1);
		must_recv(2);
		TEST_ASSERT_EQUAL_INT(ENOMEM, send(3, 8));
		TEST_ASSERT_EQUAL_INT(ENOMEM, engine_recv(&engine, 0, 4, 0, 8));
		sim_engine_run(engine.sim);
		engine_inject_ack(&engine, ENGINE_PSN, ACK);
		arrive(SIM_RC_SEND_ONLY, 0, 8);
		TEST_ASSERT_EQUAL_INT(on ? 0 : ENOMEM, send(3, 8));
		TEST_ASSERT_EQUAL_INT(on ? 0 : ENOMEM, engine_recv(&engine, 0, 4, 0, 8));
		expect(engine.sides[0].send_cq, 1, IBV_WC_SUCCESS);
		expect(engine.sides[0].recv_cq, 2, IBV_WC_SUCCESS);
		TEST_ASSERT_EQUAL_INT(on ? ENOMEM : 0, send(5, 8));
	}
}

/* Each of the three numbers alone is masked or, with the quirk, refused. */
void test_wide_numbers(void)
{
	const struct ibv_ah_attr way = engine_ah_attr(&engine.sides[1].gid);
	const int rtr = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
			IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	const int rts = IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
			IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
	const int init = IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS;

	for (unsigned int wide = 0; wide < 4; wide++) {
		struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
					   .port_num = 1,
					   .path_mtu = IBV_MTU_256,
					   .dest_qp_num = wide == 1 ? 0x1000011 : 0xffffff,
					   .rq_psn = wide == 2 ? 0x1000012 : 0xffffff,
					   .sq_psn = wide == 3 ? 0x1000013 : 0xffffff,
					   .ah_attr = way};

		for (int on = 0; on < 2; on++) {
			set_quirk("wide_numbers_refused", on);
			TEST_ASSERT_EQUAL_INT(0, go(IBV_QPS_RESET));
			attr.qp_state = IBV_QPS_INIT;
			TEST_ASSERT_EQUAL_INT(0, modify(&attr, init));
			attr.qp_state = IBV_QPS_RTR;
			if (on && (wide == 1 || wide == 2)) {
				TEST_ASSERT_EQUAL_INT(EINVAL, modify(&attr, rtr));
				continue;
			}
			TEST_ASSERT_EQUAL_INT(0, modify(&attr, rtr));
			attr.qp_state = IBV_QPS_RTS;
			TEST_ASSERT_EQUAL_INT(on && wide == 3 ? EINVAL : 0, modify(&attr, rts));
		}
	}
	set_quirk("wide_numbers_refused", false);
}

/* Only these attributes are accepted out of range, and wide numbers are masked. */
void test_retry_ranges(void)
{
	struct ibv_qp_attr attr = {.retry_cnt = 8};

	TEST_ASSERT_EQUAL_INT(0, go(IBV_QPS_SQD));
	for (int on = 0; on < 2; on++) {
		const int answer = on ? 0 : EINVAL;

		set_quirk("retry_ranges_unchecked", on);
		attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_SQD, .retry_cnt = 8};
		TEST_ASSERT_EQUAL_INT(answer, modify(&attr, IBV_QP_STATE | IBV_QP_RETRY_CNT));
		attr.rnr_retry = 8;
		TEST_ASSERT_EQUAL_INT(answer, modify(&attr, IBV_QP_STATE | IBV_QP_RNR_RETRY));
		attr.min_rnr_timer = 32;
		TEST_ASSERT_EQUAL_INT(answer, modify(&attr, IBV_QP_STATE | IBV_QP_MIN_RNR_TIMER));
		attr.timeout = 32;
		TEST_ASSERT_EQUAL_INT(EINVAL, modify(&attr, IBV_QP_STATE | IBV_QP_TIMEOUT));
	}
	/* Linux drivers/infiniband/sw/rxe/rxe_qp.c, rxe_qp_from_attr, stores them unchanged. */
	TEST_ASSERT_EQUAL_UINT8(8, qp()->retry_cnt);
	TEST_ASSERT_EQUAL_UINT8(8, qp()->rnr_retry);
	TEST_ASSERT_EQUAL_UINT8(32, qp()->min_rnr_timer);
}

void test_pkey_index_and_path_mtu(void)
{
	const int init = IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS;
	const int rtr = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
			IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	struct sim_port *port = sim_device_port(engine.sides[0].device, 1);
	struct ibv_qp_attr attr = {.port_num = 1,
				   .path_mtu = IBV_MTU_512,
				   .ah_attr = engine_ah_attr(&engine.sides[1].gid)};

	port->mtu = IBV_MTU_256;
	TEST_ASSERT_EQUAL_INT(0, go(IBV_QPS_RESET));
	for (int on = 0; on < 2; on++) {
		set_quirk("pkey_index_unchecked", on);
		set_quirk("path_mtu_unchecked", on);
		attr.qp_state = IBV_QPS_INIT;
		attr.pkey_index = port->pkey_count;
		TEST_ASSERT_EQUAL_INT(on ? 0 : EINVAL, modify(&attr, init));
		attr.pkey_index = 0;
		TEST_ASSERT_EQUAL_INT(0, modify(&attr, init));
		attr.qp_state = IBV_QPS_RTR;
		TEST_ASSERT_EQUAL_INT(on ? 0 : EINVAL, modify(&attr, rtr));
		TEST_ASSERT_EQUAL_INT(0, go(IBV_QPS_RESET));
	}
}

void test_overrun(void)
{
	for (int on = 0; on < 2; on++) {
		again(&(struct engine_config){.peer = true, .cq_entries = 1});
		set_quirk("overrun_loses_completions", on);
		for (uint64_t i = 0; i < 3; i++)
			must_send(i);
		sim_engine_run(engine.sim);
		engine_inject_ack(&engine, ENGINE_PSN + 2, ACK);
		TEST_ASSERT_EQUAL_UINT(on ? 2 : 1, engine_events(&engine, IBV_EVENT_CQ_ERR));
		TEST_ASSERT_EQUAL_INT(on ? IBV_QPS_RTS : IBV_QPS_ERR, qp()->state);
		expect(engine.sides[0].send_cq, 0, IBV_WC_SUCCESS);
		expect_none(engine.sides[0].send_cq);
		TEST_ASSERT_EQUAL_INT(on, !engine.sides[0].send_cq->overrun);
	}
}

void test_reset_and_what_stands_in_the_cq(void)
{
	for (int on = 0; on < 2; on++) {
		again(&(struct engine_config){.peer = true});
		set_quirk("reset_removes_completions", on);
		must_send(1);
		must_recv(2);
		sim_engine_run(engine.sim);
		engine_inject_ack(&engine, ENGINE_PSN, ACK);
		arrive(SIM_RC_SEND_ONLY, 0, 8);
		TEST_ASSERT_EQUAL_INT(0, go(IBV_QPS_RESET));
		TEST_ASSERT_EQUAL_UINT32(on ? 0 : 1, sim_cq_count(engine.sides[0].send_cq));
		TEST_ASSERT_EQUAL_UINT32(on ? 0 : 1, sim_cq_count(engine.sides[0].recv_cq));
	}
}

void test_affiliated_events(void)
{
	for (int on = 0; on < 2; on++) {
		again(&(struct engine_config){.peer = true, .rtr_only = true});
		set_quirk("no_affiliated_events", on);
		arrive(SIM_RC_SEND_MIDDLE, 0, 256);
		TEST_ASSERT_EQUAL_UINT(!on, engine_events(&engine, IBV_EVENT_COMM_EST));
		TEST_ASSERT_EQUAL_UINT(!on, engine_events(&engine, IBV_EVENT_QP_REQ_ERR));
		sim_qp_event(qp(), IBV_EVENT_QP_FATAL);
		sim_qp_event(qp(), IBV_EVENT_QP_ACCESS_ERR);
		sim_qp_event(qp(), IBV_EVENT_SQ_DRAINED);
		sim_qp_event(qp(), IBV_EVENT_QP_LAST_WQE_REACHED);
		TEST_ASSERT_EQUAL_UINT(on ? 2 : 6, engine.event_count);
		set_quirk("no_last_wqe_event", true);
		sim_qp_event(qp(), IBV_EVENT_QP_LAST_WQE_REACHED);
		TEST_ASSERT_EQUAL_UINT(on ? 2 : 6, engine.event_count);
	}
}

static int send_badly(uint32_t lkey_change, uint32_t offset)
{
	return engine_send(&engine, 0,
			   &(struct engine_send){.opcode = IBV_WR_SEND,
						 .wr_id = 1,
						 .bytes = 8,
						 .offset = offset,
						 .remote_qkey = ENGINE_QKEY,
						 .lkey = engine.sides[0].mr->lkey ^ lkey_change});
}

void test_send_errors_of_unreliable_qps(void)
{
	static const enum ibv_qp_type types[] = {IBV_QPT_UC, IBV_QPT_UD};

	for (unsigned int i = 0; i < 4; i++) {
		again(&(struct engine_config){.type = types[i / 2]});
		set_quirk("send_errors_end_qp", i % 2);
		TEST_ASSERT_EQUAL_INT(0, send_badly(0x100000, 0));
		sim_engine_run(engine.sim);
		expect(engine.sides[0].send_cq, 1, IBV_WC_LOC_PROT_ERR);
		TEST_ASSERT_EQUAL_INT(i % 2 ? IBV_QPS_ERR : IBV_QPS_SQE, qp()->state);
	}
}

/* The status for a wrong key, and for a wrong range under a right key. */
void test_names_of_local_errors(void)
{
	static const enum ibv_wc_status key[] = {IBV_WC_LOC_PROT_ERR, IBV_WC_LOC_QP_OP_ERR,
						 IBV_WC_WR_FLUSH_ERR};
	static const enum ibv_wc_status range[] = {IBV_WC_LOC_PROT_ERR, IBV_WC_LOC_PROT_ERR,
						   IBV_WC_WR_FLUSH_ERR};

	for (unsigned int i = 0; i < 3; i++) {
		for (unsigned int bad_range = 0; bad_range < 2; bad_range++) {
			again(&(struct engine_config){.peer = true});
			set_quirk("bad_lkey_is_operation_error", i == 1);
			set_quirk("bad_lkey_is_flush", i == 2);
			TEST_ASSERT_EQUAL_INT(0, bad_range ? send_badly(0, ENGINE_MEMORY_BYTES)
							   : send_badly(0x100000, 0));
			sim_engine_run(engine.sim);
			expect(engine.sides[0].send_cq, 1, bad_range ? range[i] : key[i]);
		}
	}
}

void test_grh_flag(void)
{
	for (int on = 0; on < 2; on++) {
		struct ibv_wc wc;

		again(&(struct engine_config){.peer = true});
		set_quirk("grh_flag_on_connections", on);
		must_recv(1);
		arrive(SIM_RC_SEND_ONLY, 0, 8);
		TEST_ASSERT_TRUE(engine_poll(engine.sides[0].recv_cq, &wc));
		TEST_ASSERT_EQUAL_UINT(on ? IBV_WC_GRH : 0, wc.wc_flags);
	}
}

void test_arming_over_pending_completions(void)
{
	struct engine_side *side = &engine.sides[0];

	must_recv(1);
	arrive(SIM_RC_SEND_ONLY, 0, 8);
	sim_cq_arm(side->recv_cq, false);
	TEST_ASSERT_EQUAL_UINT(0, side->cq_events);
	set_quirk("pending_completions_notify", true);
	sim_cq_arm(side->recv_cq, false);
	TEST_ASSERT_EQUAL_UINT(1, side->cq_events);
	expect(side->recv_cq, 1, IBV_WC_SUCCESS);
	sim_cq_arm(side->recv_cq, false);
	TEST_ASSERT_EQUAL_UINT(1, side->cq_events);
}

void test_errors_and_solicited_events(void)
{
	for (int on = 0; on < 2; on++) {
		again(&(struct engine_config){.peer = true});
		set_quirk("errors_are_not_solicited", on);
		sim_cq_arm(engine.sides[0].recv_cq, true);
		must_recv(1);
		TEST_ASSERT_EQUAL_INT(0, go(IBV_QPS_ERR));
		sim_engine_run(engine.sim);
		expect(engine.sides[0].recv_cq, 1, IBV_WC_WR_FLUSH_ERR);
		TEST_ASSERT_EQUAL_UINT(!on, engine.sides[0].cq_events);
	}
}

void test_rights_without_local_write(void)
{
	static uint8_t buffer[8];
	const struct sim_mr_init init = {.pd = 1,
					 .addr = buffer,
					 .length = sizeof(buffer),
					 .iova = (uintptr_t)buffer,
					 .access = IBV_ACCESS_REMOTE_WRITE};
	struct sim_mr *mr;

	TEST_ASSERT_EQUAL_INT(EINVAL, sim_mr_create(engine.sides[0].device, &init, &mr));
	set_quirk("local_write_not_required", true);
	TEST_ASSERT_EQUAL_INT(0, sim_mr_create(engine.sides[0].device, &init, &mr));
	TEST_ASSERT_EQUAL_INT(0, sim_mr_destroy(mr));
}

void test_forbidden_opcodes(void)
{
	const struct engine_send read = {.opcode = IBV_WR_RDMA_READ, .wr_id = 1, .bytes = 8};

	again(&(struct engine_config){.peer = true, .type = IBV_QPT_UC});
	set_quirk("forbidden_opcodes_refused", true);
	TEST_ASSERT_EQUAL_INT(EINVAL, engine_send(&engine, 0, &read));
	must_send(2);
	set_quirk("forbidden_opcodes_refused", false);
	TEST_ASSERT_EQUAL_INT(0, engine_send(&engine, 0, &read));
	sim_engine_run(engine.sim);
	expect(engine.sides[0].send_cq, 2, IBV_WC_SUCCESS);
	expect(engine.sides[0].send_cq, 1, IBV_WC_LOC_QP_OP_ERR);
}

void test_accesses_of_no_bytes(void)
{
	for (int on = 0; on < 2; on++) {
		struct sim_packet packet;

		again(&(struct engine_config){.peer = true});
		set_quirk("empty_accesses_checked", on);
		packet = engine_packet(&engine, SIM_RC_WRITE_ONLY, ENGINE_PSN);
		packet.rkey ^= 0x100000;
		engine_inject(&engine, &packet);
		TEST_ASSERT_EQUAL_INT(on ? IBV_QPS_ERR : IBV_QPS_RTS, qp()->state);
	}
}

/* One CQ for both queues shows the order in which outstanding work is flushed. */
void test_order_of_the_flush(void)
{
	for (int on = 0; on < 2; on++) {
		struct engine_side *side = &engine.sides[0];
		struct sim_qp_init init;

		again(&(struct engine_config){.peer = true});
		init = (struct sim_qp_init){.type = IBV_QPT_RC,
					    .pd = 1,
					    .send_cq = side->send_cq,
					    .recv_cq = side->send_cq,
					    .cap = {4, 4, 1, 1, 0}};
		sim_qp_destroy(side->qp);
		TEST_ASSERT_EQUAL_INT(0, sim_qp_create(side->device, &init, &side->qp));
		engine_connect_qp(&engine, side->qp, ENGINE_PEER_QPN, &engine.sides[1].gid,
				  ENGINE_PSN, ENGINE_PSN);
		set_quirk("receives_flush_first", on);
		must_send(1);
		must_recv(2);
		TEST_ASSERT_EQUAL_INT(0, go(IBV_QPS_ERR));
		sim_engine_run(engine.sim);
		expect(side->send_cq, on ? 2 : 1, IBV_WC_WR_FLUSH_ERR);
		expect(side->send_cq, on ? 1 : 2, IBV_WC_WR_FLUSH_ERR);
	}
}

void test_receives_posted_in_err(void)
{
	TEST_ASSERT_EQUAL_INT(0, go(IBV_QPS_ERR));
	sim_engine_run(engine.sim);
	must_recv(1);
	sim_engine_run(engine.sim);
	expect(engine.sides[0].recv_cq, 1, IBV_WC_WR_FLUSH_ERR);
	set_quirk("errored_receives_wait", true);
	must_recv(2);
	sim_engine_run(engine.sim);
	expect_none(engine.sides[0].recv_cq);
	TEST_ASSERT_EQUAL_INT(0, go(IBV_QPS_ERR));
	sim_engine_run(engine.sim);
	expect(engine.sides[0].recv_cq, 2, IBV_WC_WR_FLUSH_ERR);
}

/* With one quirk of SoftRoCE a QP has hooks. Each hook asks for its own quirk only. */
void test_a_hook_asks_for_its_own_quirk(void)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .path_mtu = IBV_MTU_256};
	struct ibv_wc wc;

	set_quirk("no_last_wqe_event", true);
	must_recv(1);
	arrive(SIM_RC_SEND_ONLY, 0, 8);
	TEST_ASSERT_TRUE(engine_poll(engine.sides[0].recv_cq, &wc));
	TEST_ASSERT_EQUAL_UINT(0, wc.wc_flags);

	TEST_ASSERT_EQUAL_INT(0, go(IBV_QPS_RESET));
	TEST_ASSERT_EQUAL_INT(0, modify(&attr, IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX |
						       IBV_QP_ACCESS_FLAGS));
	attr.qp_state = IBV_QPS_RTR;
	attr.dest_qp_num = 0x5000011;
	attr.ah_attr = engine_ah_attr(&engine.sides[1].gid);
	TEST_ASSERT_EQUAL_INT(0, modify(&attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
						       IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
						       IBV_QP_MAX_DEST_RD_ATOMIC |
						       IBV_QP_MIN_RNR_TIMER));
	sim_qp_query(qp(), &attr);
	TEST_ASSERT_EQUAL_HEX32(0x11, attr.dest_qp_num);

	attr.qp_state = IBV_QPS_RTS;
	attr.max_rd_atomic = 0;
	TEST_ASSERT_EQUAL_INT(0, modify(&attr, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
						       IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
						       IBV_QP_MAX_QP_RD_ATOMIC));
	TEST_ASSERT_EQUAL_INT(0, engine_send(&engine, 0,
					     &(struct engine_send){.opcode = IBV_WR_RDMA_READ,
								   .wr_id = 2,
								   .bytes = 8}));
	engine_settle(&engine, 0);
	expect(engine.sides[0].send_cq, 2, IBV_WC_LOC_QP_OP_ERR);
}
