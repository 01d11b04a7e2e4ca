/* SPDX-License-Identifier: MIT */
/* The requester, watched on the wire. Expected: docs/semantics.md. */
#include "test/support/engine.h"
#include "unity.h"

#include <string.h>

#define ACK (SIM_AETH_ACK | SIM_ACK_CREDIT_NONE)

static struct engine engine;

void setUp(void)
{
	engine_open(&engine, &(struct engine_config){.peer = true, .rnr_retry = 3});
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

static void post(const struct engine_send *send)
{
	struct engine_send keyed = *send;

	if (!keyed.rkey)
		keyed.rkey = 0x4711;
	TEST_ASSERT_EQUAL_INT(0, engine_send(&engine, 0, &keyed));
}

static void post_and_run(const struct engine_send *send)
{
	post(send);
	sim_engine_run(engine.sim);
}

static void expect(uint64_t wr_id, enum ibv_wc_status status)
{
	struct ibv_wc wc;

	TEST_ASSERT_TRUE_MESSAGE(engine_poll(engine.sides[0].send_cq, &wc), "no completion");
	TEST_ASSERT_EQUAL_UINT64(wr_id, wc.wr_id);
	TEST_ASSERT_EQUAL_INT(status, wc.status);
}

static void expect_none(void)
{
	struct ibv_wc wc;

	TEST_ASSERT_FALSE_MESSAGE(engine_poll(engine.sides[0].send_cq, &wc), "a completion");
}

static const struct sim_packet *sent(unsigned int n)
{
	TEST_ASSERT_GREATER_THAN(n, engine.frame_count);
	return &engine.frames[n].packet;
}

static struct sim_qp *qp(void)
{
	return engine.sides[0].qp;
}

void test_messages_are_cut_by_the_path_mtu(void)
{
	static const struct {
		uint32_t bytes;
		unsigned int packets;
		uint32_t last_bytes;
	} rows[] = {{0, 1, 0},	   {1, 1, 1},	{255, 1, 255},
		    {256, 1, 256}, {257, 2, 1}, {1024, 4, 256}};

	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		again(&(struct engine_config){.peer = true});
		post_and_run(&(struct engine_send){.opcode = IBV_WR_SEND, .bytes = rows[i].bytes});
		TEST_ASSERT_EQUAL_UINT(rows[i].packets, engine.frame_count);
		for (unsigned int j = 0; j < rows[i].packets; j++) {
			bool first = j == 0;
			bool last = j + 1 == rows[i].packets;

			TEST_ASSERT_EQUAL_HEX8(first && last ? SIM_RC_SEND_ONLY
					       : first	     ? SIM_RC_SEND_FIRST
					       : last	     ? SIM_RC_SEND_LAST
							     : SIM_RC_SEND_MIDDLE,
					       sent(j)->opcode);
			TEST_ASSERT_EQUAL_UINT32(last ? rows[i].last_bytes : 256,
						 sent(j)->payload_bytes);
			TEST_ASSERT_EQUAL_HEX32(ENGINE_PSN + j, sent(j)->psn);
		}
	}
}

void test_psns_wrap_inside_a_message(void)
{
	again(&(struct engine_config){.peer = true, .psn = {0xffffff}});
	post_and_run(&(struct engine_send){.opcode = IBV_WR_SEND, .bytes = 600});
	TEST_ASSERT_EQUAL_HEX32(0xffffff, sent(0)->psn);
	TEST_ASSERT_EQUAL_HEX32(0, sent(1)->psn);
	TEST_ASSERT_EQUAL_HEX32(1, sent(2)->psn);
}

/* AckReq is set on the last packet of a message and on every 32nd packet. */
void test_ack_is_asked_for_every_32nd_and_last(void)
{
	post_and_run(&(struct engine_send){.opcode = IBV_WR_RDMA_WRITE, .bytes = 100 * 256});
	TEST_ASSERT_EQUAL_UINT(100, engine.frame_count);
	for (unsigned int i = 0; i < 100; i++)
		TEST_ASSERT_EQUAL_UINT(i == 31 || i == 63 || i == 95 || i == 99,
				       !!(sent(i)->flags & SIM_PACKET_ACK_REQUEST));
}

void test_write_names_its_target_once(void)
{
	post_and_run(&(struct engine_send){.opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
					   .bytes = 600,
					   .remote_offset = 40,
					   .imm = 77});
	TEST_ASSERT_EQUAL_HEX8(SIM_RC_WRITE_FIRST, sent(0)->opcode);
	TEST_ASSERT_EQUAL_UINT64((uintptr_t)engine.sides[1].memory + 40, sent(0)->remote_addr);
	TEST_ASSERT_EQUAL_HEX32(0x4711, sent(0)->rkey);
	TEST_ASSERT_EQUAL_UINT32(600, sent(0)->dma_bytes);
	TEST_ASSERT_EQUAL_HEX8(SIM_RC_WRITE_LAST_IMM, sent(2)->opcode);
	TEST_ASSERT_EQUAL_HEX32(htobe32(77), sent(2)->imm_data);
}

void test_solicited_is_asked_for_by_the_last_packet(void)
{
	post_and_run(&(struct engine_send){
		.opcode = IBV_WR_SEND, .bytes = 600, .flags = IBV_SEND_SOLICITED});
	TEST_ASSERT_FALSE(sent(0)->flags & SIM_PACKET_SOLICITED);
	TEST_ASSERT_FALSE(sent(1)->flags & SIM_PACKET_SOLICITED);
	TEST_ASSERT_TRUE(sent(2)->flags & SIM_PACKET_SOLICITED);
}

/* A READ uses as many PSNs as its response has packets. */
void test_read_takes_the_psns_of_its_response(void)
{
	post(&(struct engine_send){.opcode = IBV_WR_RDMA_READ, .bytes = 1000});
	post_and_run(&(struct engine_send){.opcode = IBV_WR_SEND, .bytes = 1});
	TEST_ASSERT_EQUAL_UINT(2, engine.frame_count);
	TEST_ASSERT_EQUAL_HEX32(ENGINE_PSN, sent(0)->psn);
	TEST_ASSERT_EQUAL_HEX32(ENGINE_PSN + 4, sent(1)->psn);
}

void test_atomics_carry_their_operands(void)
{
	post(&(struct engine_send){
		.opcode = IBV_WR_ATOMIC_CMP_AND_SWP, .bytes = 8, .compare_add = 5, .swap = 6});
	post_and_run(&(struct engine_send){
		.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .bytes = 8, .compare_add = 7});
	TEST_ASSERT_EQUAL_HEX8(SIM_RC_COMPARE_SWAP, sent(0)->opcode);
	TEST_ASSERT_EQUAL_UINT64(5, sent(0)->compare);
	TEST_ASSERT_EQUAL_UINT64(6, sent(0)->swap_add);
	TEST_ASSERT_EQUAL_HEX8(SIM_RC_FETCH_ADD, sent(1)->opcode);
	TEST_ASSERT_EQUAL_UINT64(7, sent(1)->swap_add);
	TEST_ASSERT_EQUAL_UINT64(0, sent(1)->compare);
}

void test_max_rd_atomic_bounds_what_is_outstanding(void)
{
	struct sim_packet packet;
	struct sim_span span;

	again(&(struct engine_config){.peer = true, .reads = 2});
	for (unsigned int i = 0; i < 3; i++)
		post(&(struct engine_send){.opcode = IBV_WR_RDMA_READ, .bytes = 8});
	post_and_run(&(struct engine_send){.opcode = IBV_WR_SEND, .bytes = 8});
	TEST_ASSERT_EQUAL_UINT(2, engine.frame_count);
	packet = engine_packet(&engine, SIM_RC_READ_RESPONSE_ONLY, ENGINE_PSN);
	packet.syndrome = ACK;
	engine_payload(&packet, &span, "12345678", 8);
	engine_inject(&engine, &packet);
	TEST_ASSERT_EQUAL_UINT(4, engine.frame_count);
	TEST_ASSERT_EQUAL_HEX8(SIM_RC_READ_REQUEST, sent(2)->opcode);
	TEST_ASSERT_EQUAL_HEX8(SIM_RC_SEND_ONLY, sent(3)->opcode);
}

void test_fence_holds_behind_reads_only(void)
{
	struct sim_packet packet;
	struct sim_span span;

	post(&(struct engine_send){.opcode = IBV_WR_SEND, .bytes = 8});
	post(&(struct engine_send){.opcode = IBV_WR_SEND, .bytes = 8, .flags = IBV_SEND_FENCE});
	post(&(struct engine_send){.opcode = IBV_WR_RDMA_READ, .bytes = 8});
	post(&(struct engine_send){.opcode = IBV_WR_SEND, .bytes = 8});
	post_and_run(
		&(struct engine_send){.opcode = IBV_WR_SEND, .bytes = 8, .flags = IBV_SEND_FENCE});
	TEST_ASSERT_EQUAL_UINT(4, engine.frame_count);
	packet = engine_packet(&engine, SIM_RC_READ_RESPONSE_ONLY, ENGINE_PSN + 2);
	packet.syndrome = ACK;
	engine_payload(&packet, &span, "12345678", 8);
	engine_inject(&engine, &packet);
	TEST_ASSERT_EQUAL_UINT(5, engine.frame_count);
}

void test_window_holds_and_opens(void)
{
	again(&(struct engine_config){.peer = true, .quiet = true});
	for (unsigned int i = 0; i < 9; i++)
		post(&(struct engine_send){.opcode = IBV_WR_RDMA_WRITE, .bytes = 512 * 256});
	sim_engine_run(engine.sim);
	TEST_ASSERT_EQUAL_UINT64(SIM_WINDOW_PACKETS, engine.sides[0].device->counters.sent_packets);
	engine_inject_ack(&engine, ENGINE_PSN + 9, ACK);
	TEST_ASSERT_EQUAL_UINT64(SIM_WINDOW_PACKETS + 10,
				 engine.sides[0].device->counters.sent_packets);
}

/* Local errors that are known when the WR starts: no packet of the WR is sent. */
void test_local_errors(void)
{
	post_and_run(
		&(struct engine_send){.opcode = IBV_WR_SEND, .wr_id = 1, .bytes = 8, .lkey = 0x99});
	expect(1, IBV_WC_LOC_PROT_ERR);
	TEST_ASSERT_EQUAL_INT(IBV_QPS_ERR, qp()->state);

	again(&(struct engine_config){.peer = true});
	post_and_run(&(struct engine_send){
		.opcode = IBV_WR_RDMA_WRITE, .wr_id = 1, .bytes = 1000, .lkey = 0x99});
	expect(1, IBV_WC_LOC_PROT_ERR);

	again(&(struct engine_config){.peer = true});
	post_and_run(&(struct engine_send){
		.opcode = IBV_WR_SEND, .wr_id = 1, .offset = ENGINE_MEMORY_BYTES - 7, .bytes = 8});
	expect(1, IBV_WC_LOC_PROT_ERR);

	again(&(struct engine_config){.peer = true});
	post_and_run(&(struct engine_send){
		.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .wr_id = 1, .bytes = 4});
	expect(1, IBV_WC_LOC_LEN_ERR);
	TEST_ASSERT_EQUAL_UINT(0, engine.frame_count);
}

/* An rkey in an SGE is a protection error. */
void test_rkey_as_lkey_is_refused(void)
{
	post_and_run(&(struct engine_send){
		.opcode = IBV_WR_SEND, .bytes = 8, .lkey = engine.sides[0].mr->rkey});
	expect(0, IBV_WC_LOC_PROT_ERR);
}

void test_local_error_waits_for_the_sends_before_it(void)
{
	post(&(struct engine_send){.opcode = IBV_WR_SEND, .wr_id = 1, .bytes = 8});
	post(&(struct engine_send){.opcode = IBV_WR_SEND, .wr_id = 2, .bytes = 8, .lkey = 0x99});
	post_and_run(&(struct engine_send){.opcode = IBV_WR_SEND, .wr_id = 3, .bytes = 8});
	expect_none();
	TEST_ASSERT_EQUAL_UINT(1, engine.frame_count);
	engine_inject_ack(&engine, ENGINE_PSN, ACK);
	expect(1, IBV_WC_SUCCESS);
	expect(2, IBV_WC_LOC_PROT_ERR);
	expect(3, IBV_WC_WR_FLUSH_ERR);
}

/* The message before the failed one is still retransmitted if it is lost. */
void test_lost_message_before_a_local_error_is_repeated(void)
{
	/* One packet and several packets: the error is found in different places. */
	static const uint32_t sizes[] = {8, 600};

	for (unsigned int i = 0; i < 2; i++) {
		again(&(struct engine_config){.peer = true});
		post(&(struct engine_send){.opcode = IBV_WR_SEND, .wr_id = 1, .bytes = 8});
		post_and_run(&(struct engine_send){
			.opcode = IBV_WR_SEND, .wr_id = 2, .bytes = sizes[i], .lkey = 0x99});
		engine_inject_ack(&engine, ENGINE_PSN, SIM_NAK_PSN_SEQUENCE);
		expect_none();
		TEST_ASSERT_EQUAL_UINT(2, engine.frame_count);
		engine_inject_ack(&engine, ENGINE_PSN, ACK);
		expect(1, IBV_WC_SUCCESS);
		expect(2, IBV_WC_LOC_PROT_ERR);
	}
}

void test_rnr_before_a_local_error_waits_and_repeats(void)
{
	post(&(struct engine_send){.opcode = IBV_WR_SEND, .wr_id = 1, .bytes = 8});
	post_and_run(
		&(struct engine_send){.opcode = IBV_WR_SEND, .wr_id = 2, .bytes = 8, .lkey = 0x99});
	engine_inject_ack(&engine, ENGINE_PSN, SIM_AETH_RNR_NAK | 1);
	expect_none();
	engine_settle(&engine, 10000);
	TEST_ASSERT_EQUAL_UINT(2, engine.frame_count);
	engine_inject_ack(&engine, ENGINE_PSN, ACK);
	expect(1, IBV_WC_SUCCESS);
	expect(2, IBV_WC_LOC_PROT_ERR);
}

void test_timeout_before_a_local_error_repeats(void)
{
	post(&(struct engine_send){.opcode = IBV_WR_SEND, .wr_id = 1, .bytes = 8});
	post_and_run(
		&(struct engine_send){.opcode = IBV_WR_SEND, .wr_id = 2, .bytes = 8, .lkey = 0x99});
	sim_engine_advance(engine.sim, UINT64_C(4096) << 14);
	TEST_ASSERT_EQUAL_UINT(2, engine.frame_count);
	engine_inject_ack(&engine, ENGINE_PSN, ACK);
	expect(1, IBV_WC_SUCCESS);
	expect(2, IBV_WC_LOC_PROT_ERR);
}

/*
 * The MR ends while a message is being retransmitted: the WR fails, and no invented byte is sent.
 */
void test_mr_that_ends_under_a_posted_send(void)
{
	struct sim_mr *mr;
	const struct sim_mr_init init = {.pd = 1,
					 .addr = engine.sides[0].memory,
					 .length = 4096,
					 .iova = (uintptr_t)engine.sides[0].memory};

	TEST_ASSERT_EQUAL_INT(0, sim_mr_create(engine.sides[0].device, &init, &mr));
	post_and_run(&(struct engine_send){
		.opcode = IBV_WR_SEND, .wr_id = 1, .bytes = 600, .lkey = mr->lkey});
	TEST_ASSERT_EQUAL_UINT(3, engine.frame_count);
	sim_mr_destroy(mr);
	engine_inject_ack(&engine, ENGINE_PSN + 1, SIM_NAK_PSN_SEQUENCE);
	expect(1, IBV_WC_LOC_PROT_ERR);
	TEST_ASSERT_EQUAL_UINT(3, engine.frame_count);
}

void test_inline_data_is_taken_at_post(void)
{
	again(&(struct engine_config){.max_inline = 64});
	memcpy(engine.sides[0].memory, "before", 7);
	TEST_ASSERT_EQUAL_INT(0, engine_recv(&engine, 1, 1, 0, 64));
	TEST_ASSERT_EQUAL_INT(0, engine_send(&engine, 0,
					     &(struct engine_send){.opcode = IBV_WR_SEND,
								   .bytes = 7,
								   .flags = IBV_SEND_INLINE,
								   .lkey = 0xdead}));
	memcpy(engine.sides[0].memory, "behind", 7);
	sim_engine_run(engine.sim);
	expect(0, IBV_WC_SUCCESS);
	TEST_ASSERT_EQUAL_STRING("before", (char *)engine.sides[1].memory);
}

static void to_sqd(bool notify)
{
	const struct ibv_qp_attr attr = {.qp_state = IBV_QPS_SQD, .en_sqd_async_notify = notify};

	TEST_ASSERT_EQUAL_INT(
		0, sim_qp_modify(qp(), &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY));
}

void test_sqd_ends_what_is_started_and_holds_the_rest(void)
{
	struct ibv_qp_attr attr;

	post_and_run(&(struct engine_send){.opcode = IBV_WR_SEND, .wr_id = 1, .bytes = 8});
	to_sqd(true);
	post_and_run(&(struct engine_send){.opcode = IBV_WR_SEND, .wr_id = 2, .bytes = 8});
	TEST_ASSERT_EQUAL_UINT(1, engine.frame_count);
	TEST_ASSERT_EQUAL_UINT(0, engine_events(&engine, IBV_EVENT_SQ_DRAINED));
	sim_qp_query(qp(), &attr);
	TEST_ASSERT_EQUAL_INT(1, attr.sq_draining);
	engine_inject_ack(&engine, ENGINE_PSN, ACK);
	expect(1, IBV_WC_SUCCESS);
	TEST_ASSERT_EQUAL_UINT(1, engine_events(&engine, IBV_EVENT_SQ_DRAINED));
	sim_qp_query(qp(), &attr);
	TEST_ASSERT_EQUAL_INT(0, attr.sq_draining);
	attr.qp_state = IBV_QPS_RTS;
	TEST_ASSERT_EQUAL_INT(0, sim_qp_modify(qp(), &attr, IBV_QP_STATE));
	sim_engine_run(engine.sim);
	TEST_ASSERT_EQUAL_UINT(2, engine.frame_count);
	engine_inject_ack(&engine, ENGINE_PSN + 1, ACK);
	expect(2, IBV_WC_SUCCESS);
}

/* Each ibv_modify_qp() to SQD raises one event, whatever is posted afterwards. */
void test_sqd_tells_once_that_it_is_drained(void)
{
	to_sqd(true);
	sim_engine_run(engine.sim);
	TEST_ASSERT_EQUAL_UINT(1, engine_events(&engine, IBV_EVENT_SQ_DRAINED));
	post_and_run(&(struct engine_send){.opcode = IBV_WR_SEND, .wr_id = 1, .bytes = 8});
	TEST_ASSERT_EQUAL_UINT(1, engine_events(&engine, IBV_EVENT_SQ_DRAINED));
	TEST_ASSERT_EQUAL_UINT(0, engine.frame_count);
}

void test_sqd_still_repeats_what_is_lost(void)
{
	post_and_run(&(struct engine_send){.opcode = IBV_WR_SEND, .wr_id = 1, .bytes = 8});
	to_sqd(true);
	engine_inject_ack(&engine, ENGINE_PSN, SIM_NAK_PSN_SEQUENCE);
	TEST_ASSERT_EQUAL_UINT(2, engine.frame_count);
	TEST_ASSERT_EQUAL_UINT(0, engine_events(&engine, IBV_EVENT_SQ_DRAINED));
}

void test_sqd_without_notify_is_silent(void)
{
	to_sqd(false);
	sim_engine_run(engine.sim);
	TEST_ASSERT_EQUAL_UINT(0, engine.event_count);
	TEST_ASSERT_FALSE(qp()->sq_draining);
}

/* Two QPs share the wire: each sends at most a burst before the other has its turn. */
void test_bursts_take_turns(void)
{
	struct sim_qp_init init = {.type = IBV_QPT_RC,
				   .pd = 1,
				   .send_cq = engine.sides[0].send_cq,
				   .recv_cq = engine.sides[0].recv_cq,
				   .cap = {.max_send_wr = 4, .max_send_sge = 1}};
	struct ibv_sge sge = {(uintptr_t)engine.sides[0].memory, 200 * 256,
			      engine.sides[0].mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE};
	struct ibv_send_wr *bad;
	struct sim_qp *other;
	unsigned int run = 1;

	TEST_ASSERT_EQUAL_INT(0, sim_qp_create(engine.sides[0].device, &init, &other));
	engine_connect_qp(&engine, other, ENGINE_PEER_QPN, &engine.sides[1].gid, 0, 0);
	post(&(struct engine_send){.opcode = IBV_WR_RDMA_WRITE, .bytes = 200 * 256});
	TEST_ASSERT_EQUAL_INT(0, sim_qp_post_send(other, &wr, &bad));
	sim_engine_run(engine.sim);
	TEST_ASSERT_EQUAL_UINT(400, engine.frame_count);
	for (unsigned int i = 1; i < 380; i++) {
		bool same = (sent(i)->psn < ENGINE_PSN) == (sent(i - 1)->psn < ENGINE_PSN);

		run = sent(i)->psn == sent(i - 1)->psn + 1 && same ? run + 1 : 1;
		TEST_ASSERT_LESS_OR_EQUAL(2 * SIM_BURST_PACKETS, run);
	}
	sim_qp_destroy(other);
}

/* With max_rd_atomic 0 no READ can start. */
void test_read_without_max_rd_atomic(void)
{
	const struct ibv_qp_attr attr = {.max_rd_atomic = 0, .qp_state = IBV_QPS_SQD};

	TEST_ASSERT_EQUAL_INT(0, sim_qp_modify(qp(), &attr, IBV_QP_STATE));
	TEST_ASSERT_EQUAL_INT(0,
			      sim_qp_modify(qp(), &attr, IBV_QP_STATE | IBV_QP_MAX_QP_RD_ATOMIC));
	TEST_ASSERT_EQUAL_INT(0, sim_qp_modify(qp(), &(struct ibv_qp_attr){.qp_state = IBV_QPS_RTS},
					       IBV_QP_STATE));
	post_and_run(&(struct engine_send){.opcode = IBV_WR_RDMA_READ, .wr_id = 1, .bytes = 8});
	expect(1, IBV_WC_LOC_QP_OP_ERR);
	TEST_ASSERT_EQUAL_INT(IBV_QPS_ERR, qp()->state);
}

/* Inline data of several packets has no SGE to be checked. */
void test_inline_data_in_many_packets(void)
{
	again(&(struct engine_config){.peer = true, .max_inline = 600});
	memset(engine.sides[0].memory, 0xa5, 600); /* as SGEs these bytes would be invalid */
	post_and_run(&(struct engine_send){
		.opcode = IBV_WR_SEND, .wr_id = 1, .bytes = 600, .flags = IBV_SEND_INLINE});
	TEST_ASSERT_EQUAL_UINT(3, engine.frame_count);
	expect_none();
}

/* In SQD a started message goes on, and its local error ends the send queue as in RTS. */
void test_local_error_of_uc_in_sqd(void)
{
	struct engine_side *side = &engine.sides[0];

	again(&(struct engine_config){.peer = true, .type = IBV_QPT_UC});
	post(&(struct engine_send){.opcode = IBV_WR_SEND, .wr_id = 1, .bytes = 200 * 256});
	TEST_ASSERT_TRUE(sim_requester_run(qp()));
	TEST_ASSERT_EQUAL_INT(0, sim_qp_modify(qp(), &(struct ibv_qp_attr){.qp_state = IBV_QPS_SQD},
					       IBV_QP_STATE));
	TEST_ASSERT_EQUAL_INT(0, sim_mr_destroy(side->mr));
	side->mr = NULL;
	sim_engine_run(engine.sim);
	expect(1, IBV_WC_LOC_PROT_ERR);
	TEST_ASSERT_EQUAL_INT(IBV_QPS_SQE, qp()->state);
}

void test_every_state_has_a_name(void)
{
	for (unsigned int i = 0; i < SIM_GATES; i++) {
		TEST_ASSERT_NOT_NULL(sim_gate_names[i]);
		for (unsigned int j = 0; j < i; j++)
			TEST_ASSERT_TRUE(strcmp(sim_gate_names[i], sim_gate_names[j]) != 0);
	}
}
