/* SPDX-License-Identifier: MIT */
/*
 * The completer, with packets from a peer that the test makes by hand. Expected:
 * docs/semantics.md.
 */
#include "sim/wire/psn.h"
#include "sim/wire/timing.h"
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

/* The peer has no memory, so the tests invent its keys. */
static void post(enum ibv_wr_opcode opcode, uint64_t wr_id, uint32_t bytes)
{
	const struct engine_send send = {
		.opcode = opcode, .wr_id = wr_id, .bytes = bytes, .rkey = 0x4711};

	TEST_ASSERT_EQUAL_INT(0, engine_send(&engine, 0, &send));
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

static struct sim_qp *qp(void)
{
	return engine.sides[0].qp;
}

static void respond(unsigned int opcode, uint32_t psn, uint32_t bytes)
{
	static uint8_t payload[4096];
	struct sim_packet packet = engine_packet(&engine, opcode, psn);
	struct sim_span span;

	packet.syndrome = ACK;
	packet.original = UINT64_C(0x1122334455667788);
	memset(payload, (int)psn & 0xff, sizeof(payload));
	engine_payload(&packet, &span, payload, bytes);
	engine_inject(&engine, &packet);
}

void test_ack_completes_its_message(void)
{
	post(IBV_WR_SEND, 1, 10);
	expect_none();
	engine_inject_ack(&engine, ENGINE_PSN, ACK);
	expect(1, IBV_WC_SUCCESS);
	expect_none();
	TEST_ASSERT_EQUAL_UINT64(SIM_NEVER, sim_engine_next_ns(engine.sim));
}

void test_ack_covers_all_messages_before_it(void)
{
	for (uint64_t i = 0; i < 5; i++)
		post(IBV_WR_SEND, i, 300); /* two packets each */
	engine_inject_ack(&engine, ENGINE_PSN + 7, ACK);
	for (uint64_t i = 0; i < 4; i++)
		expect(i, IBV_WC_SUCCESS);
	expect_none();
	engine_inject_ack(&engine, ENGINE_PSN + 9, ACK);
	expect(4, IBV_WC_SUCCESS);
}

void test_partial_ack_completes_nothing_and_moves_the_window(void)
{
	post(IBV_WR_SEND, 1, 256 * 4);
	engine_inject_ack(&engine, ENGINE_PSN + 1, ACK);
	expect_none();
	TEST_ASSERT_EQUAL_HEX32(ENGINE_PSN + 2, qp()->comp.psn);
	engine_inject_ack(&engine, ENGINE_PSN + 3, ACK);
	expect(1, IBV_WC_SUCCESS);
}

/* ACKs of PSNs that were never sent, and of PSNs that are acknowledged already. */
void test_ghost_acks_are_ignored(void)
{
	engine_inject_ack(&engine, ENGINE_PSN, ACK);
	engine_inject_ack(&engine, ENGINE_PSN - 1, SIM_NAK_REMOTE_ACCESS);
	post(IBV_WR_SEND, 1, 10);
	engine_inject_ack(&engine, ENGINE_PSN + 1, ACK);
	engine_inject_ack(&engine, ENGINE_PSN - 1, ACK);
	engine_inject_ack(&engine, ENGINE_PSN + 1, SIM_NAK_INVALID_REQUEST);
	engine_inject_ack(&engine, ENGINE_PSN + 0x7fffff, SIM_NAK_REMOTE_OPERATION);
	expect_none();
	TEST_ASSERT_EQUAL_INT(IBV_QPS_RTS, qp()->state);
	engine_inject_ack(&engine, ENGINE_PSN, ACK);
	expect(1, IBV_WC_SUCCESS);
	engine_inject_ack(&engine, ENGINE_PSN, SIM_NAK_PSN_SEQUENCE);
	TEST_ASSERT_EQUAL_UINT(1, engine_count(&engine, SIM_RC_SEND_ONLY));
	TEST_ASSERT_EQUAL_INT(IBV_QPS_RTS, qp()->state);
}

void test_acks_cross_the_end_of_the_psns(void)
{
	again(&(struct engine_config){.peer = true, .psn = {0xfffffe}});
	post(IBV_WR_SEND, 1, 256 * 4);
	engine_inject_ack(&engine, 0xffffff, ACK);
	TEST_ASSERT_EQUAL_HEX32(0, qp()->comp.psn);
	engine_inject_ack(&engine, 1, ACK);
	expect(1, IBV_WC_SUCCESS);
}

/* docs/semantics.md, Requests that are refused: the status of the WR for each NAK code. */
void test_nak_codes(void)
{
	static const struct {
		unsigned int syndrome;
		enum ibv_wc_status status;
	} rows[] = {
		{SIM_NAK_INVALID_REQUEST, IBV_WC_REM_INV_REQ_ERR},
		{SIM_NAK_REMOTE_ACCESS, IBV_WC_REM_ACCESS_ERR},
		{SIM_NAK_REMOTE_OPERATION, IBV_WC_REM_OP_ERR},
	};

	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		again(&(struct engine_config){.peer = true});
		for (uint64_t j = 0; j < 3; j++)
			post(IBV_WR_SEND, j, 10);
		engine_inject_ack(&engine, ENGINE_PSN + 1, rows[i].syndrome);
		expect(0, IBV_WC_SUCCESS); /* a NAK acknowledges the PSNs before its own */
		expect(1, rows[i].status);
		expect(2, IBV_WC_WR_FLUSH_ERR);
		TEST_ASSERT_EQUAL_INT(IBV_QPS_ERR, qp()->state);
		TEST_ASSERT_EQUAL_UINT64(SIM_NEVER, sim_engine_next_ns(engine.sim));
	}
}

void test_unsignalled_success_is_silent_and_its_error_is_not(void)
{
	struct engine_send send = {.opcode = IBV_WR_SEND, .bytes = 4, .unsignalled = true};

	send.rkey = 1;
	for (send.wr_id = 0; send.wr_id < 2; send.wr_id++)
		TEST_ASSERT_EQUAL_INT(0, engine_send(&engine, 0, &send));
	sim_engine_run(engine.sim);
	engine_inject_ack(&engine, ENGINE_PSN, ACK);
	expect_none();
	engine_inject_ack(&engine, ENGINE_PSN + 1, SIM_NAK_REMOTE_OPERATION);
	expect(1, IBV_WC_REM_OP_ERR);
}

void test_sequence_nak_repeats_from_its_psn(void)
{
	for (uint64_t i = 0; i < 4; i++)
		post(IBV_WR_SEND, i, 10);
	engine_inject_ack(&engine, ENGINE_PSN + 2, SIM_NAK_PSN_SEQUENCE);
	expect(0, IBV_WC_SUCCESS);
	expect(1, IBV_WC_SUCCESS);
	expect_none();
	TEST_ASSERT_EQUAL_UINT(6, engine_count(&engine, SIM_RC_SEND_ONLY));
	TEST_ASSERT_EQUAL_HEX32(ENGINE_PSN + 2, engine.frames[4].packet.psn);
	TEST_ASSERT_EQUAL_HEX32(ENGINE_PSN + 3, engine.frames[5].packet.psn);
	TEST_ASSERT_EQUAL_UINT64(2, engine.sides[0].device->counters.retransmitted_packets);
}

/* A retransmission in the middle of a message begins with the missing packet. */
void test_sequence_nak_in_the_middle_of_a_message(void)
{
	post(IBV_WR_SEND, 1, 256 * 4);
	engine_inject_ack(&engine, ENGINE_PSN + 2, SIM_NAK_PSN_SEQUENCE);
	TEST_ASSERT_EQUAL_UINT(6, engine.frame_count);
	TEST_ASSERT_EQUAL_HEX8(SIM_RC_SEND_MIDDLE, engine.frames[4].packet.opcode);
	TEST_ASSERT_EQUAL_HEX32(ENGINE_PSN + 2, engine.frames[4].packet.psn);
	TEST_ASSERT_EQUAL_HEX8(SIM_RC_SEND_LAST, engine.frames[5].packet.opcode);
	engine_inject_ack(&engine, ENGINE_PSN + 3, ACK);
	expect(1, IBV_WC_SUCCESS);
}

/*
 * A second NAK for the same PSN is a duplicate of the first: the responder sends one NAK for a
 * gap.
 */
void test_repeated_sequence_naks_cost_one_retry(void)
{
	again(&(struct engine_config){.peer = true, .retry_cnt = 1});
	post(IBV_WR_SEND, 1, 10);
	for (unsigned int i = 0; i < 5; i++)
		engine_inject_ack(&engine, ENGINE_PSN, SIM_NAK_PSN_SEQUENCE);
	expect_none();
	engine_inject_ack(&engine, ENGINE_PSN, ACK);
	expect(1, IBV_WC_SUCCESS);
}

static void let_it_time_out(void)
{
	sim_engine_advance(engine.sim, sim_engine_next_ns(engine.sim));
}

void test_retries_end_and_progress_restores_them(void)
{
	again(&(struct engine_config){.peer = true, .retry_cnt = 2});
	post(IBV_WR_SEND, 1, 10);
	post(IBV_WR_SEND, 2, 10);
	engine_inject_ack(&engine, ENGINE_PSN, SIM_NAK_PSN_SEQUENCE);
	let_it_time_out();
	engine_inject_ack(&engine, ENGINE_PSN, ACK);
	expect(1, IBV_WC_SUCCESS);
	engine_inject_ack(&engine, ENGINE_PSN + 1, SIM_NAK_PSN_SEQUENCE);
	let_it_time_out();
	expect_none();
	let_it_time_out();
	expect(2, IBV_WC_RETRY_EXC_ERR);
	TEST_ASSERT_EQUAL_INT(IBV_QPS_ERR, qp()->state);
}

/* ibv_modify_qp(3): 4.096 us * 2^timeout, and retry_cnt retries, also for 7. */
void test_ack_timeout_and_its_retries(void)
{
	const uint64_t wait_ns = UINT64_C(4096) << 14;

	post(IBV_WR_SEND, 1, 10);
	for (uint64_t i = 1; i <= 7; i++) {
		TEST_ASSERT_EQUAL_UINT64(i * wait_ns, sim_engine_next_ns(engine.sim));
		sim_engine_advance(engine.sim, i * wait_ns);
		TEST_ASSERT_EQUAL_UINT(i + 1, engine_count(&engine, SIM_RC_SEND_ONLY));
		expect_none();
	}
	sim_engine_advance(engine.sim, 8 * wait_ns);
	expect(1, IBV_WC_RETRY_EXC_ERR);
	TEST_ASSERT_EQUAL_UINT(8, engine_count(&engine, SIM_RC_SEND_ONLY));
	TEST_ASSERT_EQUAL_UINT64(8, engine.sides[0].device->counters.ack_timeouts);
	TEST_ASSERT_EQUAL_UINT64(SIM_NEVER, sim_engine_next_ns(engine.sim));
}

void test_timeout_0_waits_for_ever(void)
{
	again(&(struct engine_config){.peer = true, .no_timeout = true});
	post(IBV_WR_SEND, 1, 10);
	TEST_ASSERT_EQUAL_UINT64(SIM_NEVER, sim_engine_next_ns(engine.sim));
}

void test_progress_restarts_the_ack_timer(void)
{
	const uint64_t wait_ns = UINT64_C(4096) << 14;

	post(IBV_WR_SEND, 1, 10);
	post(IBV_WR_SEND, 2, 10);
	sim_engine_advance(engine.sim, 1000);
	engine_inject_ack(&engine, ENGINE_PSN, ACK);
	TEST_ASSERT_EQUAL_UINT64(1000 + wait_ns, sim_engine_next_ns(engine.sim));
	sim_engine_advance(engine.sim, 2000);
	engine_inject_ack(&engine, ENGINE_PSN, ACK); /* acknowledges nothing new */
	TEST_ASSERT_EQUAL_UINT64(1000 + wait_ns, sim_engine_next_ns(engine.sim));
}

static uint64_t real_ns;

static uint64_t answer(void *arg)
{
	return real_ns;
}

/* The owner leaves the clock behind: now it is this time. */
static void let_real_time_pass(uint64_t now_ns)
{
	engine.sim->clock.ask = answer;
	real_ns = now_ns;
	sim_engine_leave_behind(engine.sim);
}

/* What begins or ends while the clock is behind has the real time, and not the time that was told last. */
void test_timers_and_stamps_have_the_time_that_the_owner_answers(void)
{
	const uint64_t wait_ns = UINT64_C(4096) << 14;
	struct sim_cq *cq = engine.sides[0].send_cq;

	cq->stamps = true;
	let_real_time_pass(5000000);
	post(IBV_WR_SEND, 1, 10);
	TEST_ASSERT_EQUAL_UINT64(5000000 + wait_ns, sim_engine_next_ns(engine.sim));
	post(IBV_WR_SEND, 2, 10);
	let_real_time_pass(6000000);
	engine_inject_ack(&engine, ENGINE_PSN, ACK);
	TEST_ASSERT_EQUAL_UINT64(6000000 + wait_ns, sim_engine_next_ns(engine.sim));
	TEST_ASSERT_EQUAL_UINT64(6000000, sim_cq_peek(cq)->timestamp_ns);
	expect(1, IBV_WC_SUCCESS);
	let_real_time_pass(7000000);
	engine_inject_ack(&engine, ENGINE_PSN + 1, SIM_AETH_RNR_NAK | 14); /* 1.28 ms */
	TEST_ASSERT_EQUAL_UINT64(7000000 + 1280000, sim_engine_next_ns(engine.sim));
}

/* A QP whose request ends it by way of its own responder has no ack timer. */
void test_a_qp_that_its_own_request_ends_watches_nothing(void)
{
	again(&(struct engine_config){.unconnected = true, .quiet = true});
	engine_connect_qp(&engine, qp(), qp()->number, &engine.sides[0].gid, ENGINE_PSN,
			  ENGINE_PSN);
	post(IBV_WR_RDMA_WRITE, 1, 10);
	TEST_ASSERT_EQUAL_INT(IBV_QPS_ERR, qp()->state);
	TEST_ASSERT_EQUAL_UINT64(SIM_NEVER, sim_engine_next_ns(engine.sim));
}

/* The requester waits for the time in the NAK, then retransmits from the NAK's PSN. */
void test_rnr_nak_waits_and_repeats(void)
{
	for (uint64_t i = 0; i < 3; i++)
		post(IBV_WR_SEND, i, 10);
	engine_inject_ack(&engine, ENGINE_PSN + 1, SIM_AETH_RNR_NAK | 14); /* 1.28 ms */
	expect(0, IBV_WC_SUCCESS);
	TEST_ASSERT_EQUAL_UINT(3, engine.frame_count);
	post(IBV_WR_SEND, 3, 10);
	TEST_ASSERT_EQUAL_UINT_MESSAGE(3, engine.frame_count, "it sent while it waited");
	TEST_ASSERT_EQUAL_UINT64(1280000, sim_engine_next_ns(engine.sim));
	sim_engine_advance(engine.sim, 1279999);
	TEST_ASSERT_EQUAL_UINT(3, engine.frame_count);
	sim_engine_advance(engine.sim, 1280000);
	TEST_ASSERT_EQUAL_UINT(6, engine.frame_count);
	TEST_ASSERT_EQUAL_HEX32(ENGINE_PSN + 1, engine.frames[3].packet.psn);
}

void test_rnr_retries_are_exact(void)
{
	post(IBV_WR_SEND, 1, 10);
	for (unsigned int i = 0; i < 3; i++) {
		engine_inject_ack(&engine, ENGINE_PSN, SIM_AETH_RNR_NAK | 1);
		expect_none();
		engine_settle(&engine, sim_engine_now_ns(engine.sim) + 10000);
		TEST_ASSERT_EQUAL_UINT(i + 2, engine.frame_count);
	}
	engine_inject_ack(&engine, ENGINE_PSN, SIM_AETH_RNR_NAK | 1);
	expect(1, IBV_WC_RNR_RETRY_EXC_ERR);
	TEST_ASSERT_EQUAL_UINT(4, engine.frame_count);
	TEST_ASSERT_EQUAL_UINT64(4, engine.sides[0].device->counters.rnr_naks_received);
}

void test_rnr_retry_0_fails_at_once_and_7_never(void)
{
	again(&(struct engine_config){.peer = true, .rnr_retry = 0});
	post(IBV_WR_SEND, 1, 10);
	engine_inject_ack(&engine, ENGINE_PSN, SIM_AETH_RNR_NAK | 1);
	expect(1, IBV_WC_RNR_RETRY_EXC_ERR);

	again(&(struct engine_config){.peer = true, .rnr_retry = 7});
	post(IBV_WR_SEND, 1, 10);
	for (unsigned int i = 0; i < 100; i++) {
		engine_inject_ack(&engine, ENGINE_PSN, SIM_AETH_RNR_NAK | 1);
		engine_settle(&engine, sim_engine_now_ns(engine.sim) + 10000);
	}
	expect_none();
	TEST_ASSERT_EQUAL_UINT(101, engine.frame_count);
}

void test_second_rnr_nak_during_the_wait_costs_nothing(void)
{
	again(&(struct engine_config){.peer = true, .rnr_retry = 1});
	post(IBV_WR_SEND, 1, 10);
	engine_inject_ack(&engine, ENGINE_PSN, SIM_AETH_RNR_NAK | 1);
	engine_inject_ack(&engine, ENGINE_PSN, SIM_AETH_RNR_NAK | 1);
	engine_settle(&engine, 10000);
	expect_none();
	TEST_ASSERT_EQUAL_UINT(2, engine.frame_count);
}

void test_read_response_in_one_packet(void)
{
	post(IBV_WR_RDMA_READ, 1, 100);
	respond(SIM_RC_READ_RESPONSE_ONLY, ENGINE_PSN, 100);
	expect(1, IBV_WC_SUCCESS);
	TEST_ASSERT_EQUAL_HEX8(ENGINE_PSN, engine.sides[0].memory[99]);
	TEST_ASSERT_EQUAL_HEX8(0, engine.sides[0].memory[100]);
}

void test_read_response_in_many_packets(void)
{
	post(IBV_WR_RDMA_READ, 1, 256 * 3 + 1);
	respond(SIM_RC_READ_RESPONSE_FIRST, ENGINE_PSN, 256);
	respond(SIM_RC_READ_RESPONSE_MIDDLE, ENGINE_PSN + 1, 256);
	respond(SIM_RC_READ_RESPONSE_MIDDLE, ENGINE_PSN + 2, 256);
	expect_none();
	respond(SIM_RC_READ_RESPONSE_LAST, ENGINE_PSN + 3, 1);
	expect(1, IBV_WC_SUCCESS);
	TEST_ASSERT_EQUAL_HEX8(ENGINE_PSN + 1, engine.sides[0].memory[256]);
	TEST_ASSERT_EQUAL_HEX8(ENGINE_PSN + 3, engine.sides[0].memory[768]);
}

/* The requester asks for a lost response again, but not for those before it. */
void test_read_resumes_in_its_middle(void)
{
	const struct engine_frame *frame;

	post(IBV_WR_RDMA_READ, 1, 256 * 4);
	respond(SIM_RC_READ_RESPONSE_FIRST, ENGINE_PSN, 256);
	respond(SIM_RC_READ_RESPONSE_MIDDLE, ENGINE_PSN + 2, 256);
	frame = engine_nth(&engine, SIM_RC_READ_REQUEST, 1);
	TEST_ASSERT_NOT_NULL_MESSAGE(frame, "not asked for again");
	TEST_ASSERT_EQUAL_HEX32(ENGINE_PSN + 1, frame->packet.psn);
	TEST_ASSERT_EQUAL_UINT64((uintptr_t)engine.sides[1].memory + 256,
				 frame->packet.remote_addr);
	TEST_ASSERT_EQUAL_UINT32(256 * 3, frame->packet.dma_bytes);
	respond(SIM_RC_READ_RESPONSE_FIRST, ENGINE_PSN + 1, 256);
	respond(SIM_RC_READ_RESPONSE_MIDDLE, ENGINE_PSN + 2, 256);
	respond(SIM_RC_READ_RESPONSE_LAST, ENGINE_PSN + 3, 256);
	expect(1, IBV_WC_SUCCESS);
	TEST_ASSERT_EQUAL_HEX8(ENGINE_PSN + 1, engine.sides[0].memory[256]);
	TEST_ASSERT_EQUAL_HEX8(ENGINE_PSN + 2, engine.sides[0].memory[512]);
}

/*
 * On a link with a rate, the responses behind a lost one arrive one at a time. All of them show the
 * same loss, which costs one retry.
 */
void test_one_lost_response_costs_one_retry(void)
{
	post(IBV_WR_RDMA_READ, 1, 256 * 20);
	respond(SIM_RC_READ_RESPONSE_FIRST, ENGINE_PSN, 256);
	for (uint32_t i = 2; i < 19; i++)
		respond(SIM_RC_READ_RESPONSE_MIDDLE, ENGINE_PSN + i, 256);
	expect_none();
	TEST_ASSERT_EQUAL_INT(IBV_QPS_RTS, qp()->state);
	TEST_ASSERT_EQUAL_UINT8(6, qp()->comp.retries_left);
	respond(SIM_RC_READ_RESPONSE_FIRST, ENGINE_PSN + 1, 256);
	for (uint32_t i = 2; i < 19; i++)
		respond(SIM_RC_READ_RESPONSE_MIDDLE, ENGINE_PSN + i, 256);
	respond(SIM_RC_READ_RESPONSE_LAST, ENGINE_PSN + 19, 256);
	expect(1, IBV_WC_SUCCESS);
}

/* An ACK of a later message shows that the READ's response was lost. */
void test_ack_behind_an_unanswered_read_repeats_it(void)
{
	post(IBV_WR_RDMA_READ, 1, 10);
	post(IBV_WR_SEND, 2, 10);
	engine_inject_ack(&engine, ENGINE_PSN + 1, ACK);
	expect_none();
	TEST_ASSERT_EQUAL_UINT(2, engine_count(&engine, SIM_RC_READ_REQUEST));
	respond(SIM_RC_READ_RESPONSE_ONLY, ENGINE_PSN, 10);
	expect(1, IBV_WC_SUCCESS);
	engine_inject_ack(&engine, ENGINE_PSN + 1, ACK);
	expect(2, IBV_WC_SUCCESS);
}

/* A READ response acknowledges the sends before the READ. */
void test_response_covers_what_stands_before_it(void)
{
	post(IBV_WR_SEND, 1, 10);
	post(IBV_WR_RDMA_READ, 2, 10);
	respond(SIM_RC_READ_RESPONSE_ONLY, ENGINE_PSN + 1, 10);
	expect(1, IBV_WC_SUCCESS);
	expect(2, IBV_WC_SUCCESS);
}

static void expect_bad_response(void)
{
	expect(1, IBV_WC_BAD_RESP_ERR);
	TEST_ASSERT_EQUAL_INT(IBV_QPS_ERR, qp()->state);
}

void test_wrong_responses(void)
{
	post(IBV_WR_RDMA_READ, 1, 100);
	respond(SIM_RC_READ_RESPONSE_ONLY, ENGINE_PSN, 99);
	expect_bad_response();

	again(&(struct engine_config){.peer = true});
	post(IBV_WR_RDMA_READ, 1, 100);
	respond(SIM_RC_READ_RESPONSE_ONLY, ENGINE_PSN, 101);
	expect_bad_response();

	again(&(struct engine_config){.peer = true});
	post(IBV_WR_RDMA_READ, 1, 300);
	respond(SIM_RC_READ_RESPONSE_ONLY, ENGINE_PSN, 256);
	expect_bad_response();

	again(&(struct engine_config){.peer = true});
	post(IBV_WR_RDMA_READ, 1, 8);
	respond(SIM_RC_ATOMIC_ACK, ENGINE_PSN, 0);
	expect_bad_response();

	again(&(struct engine_config){.peer = true});
	post(IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 8);
	respond(SIM_RC_READ_RESPONSE_ONLY, ENGINE_PSN, 8);
	expect_bad_response();

	again(&(struct engine_config){.peer = true});
	post(IBV_WR_SEND, 1, 8);
	respond(SIM_RC_READ_RESPONSE_ONLY, ENGINE_PSN, 8);
	expect_bad_response();
}

void test_atomic_answer_lands_in_host_order(void)
{
	uint64_t found;

	post(IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 8);
	respond(SIM_RC_ATOMIC_ACK, ENGINE_PSN, 0);
	expect(1, IBV_WC_SUCCESS);
	memcpy(&found, engine.sides[0].memory, 8);
	TEST_ASSERT_EQUAL_HEX64(UINT64_C(0x1122334455667788), found);
}

/* The lkeys of READs and atomics are checked when the response arrives. */
void test_read_into_bad_memory_fails_when_it_comes(void)
{
	const struct engine_send send = {
		.opcode = IBV_WR_RDMA_READ, .wr_id = 1, .bytes = 8, .lkey = 1, .rkey = 2};

	TEST_ASSERT_EQUAL_INT(0, engine_send(&engine, 0, &send));
	sim_engine_run(engine.sim);
	expect_none();
	respond(SIM_RC_READ_RESPONSE_ONLY, ENGINE_PSN, 8);
	expect(1, IBV_WC_LOC_PROT_ERR);
	TEST_ASSERT_EQUAL_INT(IBV_QPS_ERR, qp()->state);
}

void test_answers_do_nothing_to_a_failed_qp(void)
{
	struct sim_packet packet;

	post(IBV_WR_SEND, 1, 8);
	sim_qp_fail(qp(), SIM_BY_MODIFY);
	sim_engine_run(engine.sim);
	expect(1, IBV_WC_WR_FLUSH_ERR);
	packet = engine_packet(&engine, SIM_RC_ACK, ENGINE_PSN);
	packet.syndrome = SIM_NAK_REMOTE_ACCESS;
	engine_send_on(&engine, &engine.sides[1].ah->path, &packet);
	sim_engine_run(engine.sim);
	expect_none();
	TEST_ASSERT_EQUAL_UINT64(1, engine.sides[0].device->counters.dropped_packets);
}

/* A send completion that does not fit moves the QP to ERR once, and leaves no timer armed. */
void test_overrun_on_a_nak_leaves_nothing_running(void)
{
	static const unsigned int syndromes[] = {ACK, SIM_NAK_PSN_SEQUENCE, SIM_AETH_RNR_NAK | 5};

	for (unsigned int i = 0; i < 3; i++) {
		again(&(struct engine_config){.peer = true, .cq_entries = 1, .rnr_retry = 7});
		for (uint64_t j = 0; j < 4; j++)
			post(IBV_WR_SEND, j, 8);
		engine_inject_ack(&engine, ENGINE_PSN + 2, syndromes[i]);
		TEST_ASSERT_EQUAL_INT(IBV_QPS_ERR, qp()->state);
		TEST_ASSERT_EQUAL_UINT(1, engine_events(&engine, IBV_EVENT_CQ_ERR));
		TEST_ASSERT_EQUAL_UINT(1, engine_events(&engine, IBV_EVENT_QP_FATAL));
		TEST_ASSERT_EQUAL_UINT64(SIM_NEVER, sim_engine_next_ns(engine.sim));
	}
}

/* The CQ overrun moves the QP to ERR while ACKs that arrived early are still stored. */
void test_overrun_before_a_response_stores_nothing(void)
{
	uint8_t *memory;

	again(&(struct engine_config){.peer = true, .cq_entries = 1});
	memory = engine.sides[0].memory;
	for (uint64_t i = 0; i < 2; i++)
		post(IBV_WR_SEND, i, 8);
	post(IBV_WR_RDMA_READ, 2, 64);
	memset(memory, 0x55, 64);
	respond(SIM_RC_READ_RESPONSE_ONLY, ENGINE_PSN + 2, 64);
	TEST_ASSERT_EQUAL_INT(IBV_QPS_ERR, qp()->state);
	for (unsigned int i = 0; i < 64; i++)
		TEST_ASSERT_EQUAL_HEX8(0x55, memory[i]);
}

/* Reserved NAK codes are ignored; the code of RD ends the send. */
void test_strange_nak_codes(void)
{
	post(IBV_WR_SEND, 1, 8);
	engine_inject_ack(&engine, ENGINE_PSN, SIM_AETH_NAK | 9);
	expect_none();
	TEST_ASSERT_EQUAL_INT(IBV_QPS_RTS, qp()->state);
	engine_inject_ack(&engine, ENGINE_PSN, SIM_NAK_INVALID_RD);
	expect(1, IBV_WC_REM_INV_RD_REQ_ERR);
}

/* With the quirk, retry_cnt 7 retries for ever, and no other value does. */
void test_seven_retries_without_end(void)
{
	engine_quirk(engine.sides[0].device, "retry_7_is_endless", true);
	post(IBV_WR_SEND, 1, 8);
	for (unsigned int i = 0; i < 20; i++)
		let_it_time_out();
	expect_none();
	TEST_ASSERT_EQUAL_INT(IBV_QPS_RTS, qp()->state);
	engine_inject_ack(&engine, ENGINE_PSN, ACK);
	expect(1, IBV_WC_SUCCESS);

	again(&(struct engine_config){.peer = true, .retry_cnt = 6});
	engine_quirk(engine.sides[0].device, "retry_7_is_endless", true);
	post(IBV_WR_SEND, 1, 8);
	for (unsigned int i = 0; i < 7; i++)
		let_it_time_out();
	expect(1, IBV_WC_RETRY_EXC_ERR);
}

void test_every_state_has_a_name(void)
{
	for (unsigned int i = 0; i < SIM_COMPLETER_STATES; i++) {
		TEST_ASSERT_NOT_NULL(sim_completer_state_names[i]);
		for (unsigned int j = 0; j < i; j++)
			TEST_ASSERT_TRUE(strcmp(sim_completer_state_names[i],
						sim_completer_state_names[j]) != 0);
	}
}
