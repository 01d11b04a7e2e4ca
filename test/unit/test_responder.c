/* SPDX-License-Identifier: MIT */
/*
 * The responder, with packets from a peer that the test makes by hand, from ENGINE_PSN up.
 * Expected: docs/semantics.md, Requests that are refused.
 */
#include "sim/wire/psn.h"
#include "test/support/engine.h"
#include "unity.h"
#include <string.h>

#define ACK	   (SIM_AETH_ACK | SIM_ACK_CREDIT_NONE)
#define ALL_REMOTE (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

static struct engine engine;
static uint8_t data[8192];

void setUp(void)
{
	for (unsigned int i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 7 + 1);
	engine_open(&engine, &(struct engine_config){.peer = true, .rtr_only = true});
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

static void fresh(void)
{
	again(&(struct engine_config){.peer = true, .rtr_only = true});
}

static struct sim_qp *qp(void)
{
	return engine.sides[0].qp;
}

static uint8_t *memory(void)
{
	return engine.sides[0].memory;
}

/* Injects a packet without running the instant to its end. */
static void arrive(unsigned int opcode, uint32_t ahead, uint32_t bytes, uint32_t dma_bytes)
{
	struct sim_packet packet = engine_packet(&engine, opcode, ENGINE_PSN + ahead);
	struct sim_span span;

	packet.dma_bytes = dma_bytes;
	engine_payload(&packet, &span, data, bytes);
	sim_responder_receive(qp(), &packet);
}

static void inject(unsigned int opcode, uint32_t ahead, uint32_t bytes, uint32_t dma_bytes)
{
	arrive(opcode, ahead, bytes, dma_bytes);
	sim_engine_run(engine.sim);
}

static void post(uint64_t wr_id, uint32_t bytes)
{
	TEST_ASSERT_EQUAL_INT(0, engine_recv(&engine, 0, wr_id, 0, bytes));
}

static void expect(uint64_t wr_id, enum ibv_wc_status status, struct ibv_wc *wc)
{
	struct ibv_wc own;

	wc = wc ? wc : &own;
	TEST_ASSERT_TRUE_MESSAGE(engine_poll(engine.sides[0].recv_cq, wc), "no completion");
	TEST_ASSERT_EQUAL_UINT64(wr_id, wc->wr_id);
	TEST_ASSERT_EQUAL_INT(status, wc->status);
}

static void expect_none(void)
{
	struct ibv_wc wc;

	TEST_ASSERT_FALSE_MESSAGE(engine_poll(engine.sides[0].recv_cq, &wc), "a completion");
}

/* Frame number n, from 0, must be an ACK with this syndrome for this PSN. */
static void expect_aeth(unsigned int n, unsigned int syndrome, uint32_t ahead)
{
	TEST_ASSERT_GREATER_THAN(n, engine.frame_count);
	TEST_ASSERT_EQUAL_HEX8(SIM_RC_ACK, engine.frames[n].packet.opcode);
	TEST_ASSERT_EQUAL_HEX8(syndrome, engine.frames[n].packet.syndrome);
	TEST_ASSERT_EQUAL_HEX32(sim_psn_add(ENGINE_PSN, ahead), engine.frames[n].packet.psn);
}

void test_send_fills_the_receive_and_is_acknowledged(void)
{
	struct ibv_wc wc;

	post(1, 1000);
	inject(SIM_RC_SEND_ONLY, 0, 100, 0);
	expect(1, IBV_WC_SUCCESS, &wc);
	TEST_ASSERT_EQUAL_UINT32(100, wc.byte_len);
	TEST_ASSERT_EQUAL_INT(IBV_WC_RECV, wc.opcode);
	TEST_ASSERT_EQUAL_MEMORY(data, memory(), 100);
	TEST_ASSERT_EQUAL_HEX8(0, memory()[100]);
	TEST_ASSERT_EQUAL_UINT(1, engine.frame_count);
	expect_aeth(0, ACK, 0);
	TEST_ASSERT_EQUAL_UINT32(1, engine.frames[0].packet.msn);
}

void test_first_packet_in_rtr_raises_comm_est_once(void)
{
	post(1, 1000);
	post(2, 1000);
	inject(SIM_RC_SEND_ONLY, 0, 1, 0);
	inject(SIM_RC_SEND_ONLY, 1, 1, 0);
	TEST_ASSERT_EQUAL_UINT(1, engine.event_count);
	TEST_ASSERT_EQUAL_INT(IBV_EVENT_COMM_EST, engine.events[0].type);
	TEST_ASSERT_EQUAL_PTR(&engine.sides[0], engine.events[0].element);
}

void test_send_in_many_packets(void)
{
	struct ibv_wc wc;

	post(1, 1000);
	inject(SIM_RC_SEND_FIRST, 0, 256, 0);
	inject(SIM_RC_SEND_MIDDLE, 1, 256, 0);
	expect_none();
	inject(SIM_RC_SEND_LAST_IMM, 2, 1, 0);
	expect(1, IBV_WC_SUCCESS, &wc);
	TEST_ASSERT_EQUAL_UINT32(513, wc.byte_len);
	TEST_ASSERT_EQUAL_HEX(IBV_WC_WITH_IMM, wc.wc_flags & IBV_WC_WITH_IMM);
	TEST_ASSERT_EQUAL_MEMORY(data, memory(), 256);
	TEST_ASSERT_EQUAL_MEMORY(data, memory() + 256, 256);
	TEST_ASSERT_EQUAL_HEX8(data[0], memory()[512]);
	TEST_ASSERT_EQUAL_HEX8(0, memory()[513]);
}

/* Requests of one instant get one ACK; the MSN counts messages. */
void test_acks_of_an_instant_are_one(void)
{
	for (uint64_t i = 0; i < 5; i++)
		post(i, 10);
	for (uint32_t i = 0; i < 5; i++)
		arrive(SIM_RC_SEND_ONLY, i, 4, 0);
	sim_engine_run(engine.sim);
	TEST_ASSERT_EQUAL_UINT(1, engine.frame_count);
	expect_aeth(0, ACK, 4);
	TEST_ASSERT_EQUAL_UINT32(5, engine.frames[0].packet.msn);
}

void test_no_ack_where_none_is_asked_for(void)
{
	struct sim_packet packet = engine_packet(&engine, SIM_RC_WRITE_FIRST, ENGINE_PSN);
	struct sim_span span;

	packet.flags = SIM_PACKET_MIGRATED;
	packet.dma_bytes = 300;
	engine_payload(&packet, &span, data, 256);
	engine_inject(&engine, &packet);
	TEST_ASSERT_EQUAL_UINT(0, engine.frame_count);
}

void test_write_needs_no_receive(void)
{
	inject(SIM_RC_WRITE_FIRST, 0, 256, 300);
	inject(SIM_RC_WRITE_LAST, 1, 44, 0);
	TEST_ASSERT_EQUAL_MEMORY(data, memory(), 256);
	TEST_ASSERT_EQUAL_MEMORY(data, memory() + 256, 44);
	expect_none();
	expect_aeth(engine.frame_count - 1, ACK, 1);
}

void test_write_with_immediate_takes_a_receive_at_its_end(void)
{
	struct ibv_wc wc;

	inject(SIM_RC_WRITE_FIRST, 0, 256, 300);
	post(1, 0);
	inject(SIM_RC_WRITE_LAST_IMM, 1, 44, 0);
	expect(1, IBV_WC_SUCCESS, &wc);
	TEST_ASSERT_EQUAL_INT(IBV_WC_RECV_RDMA_WITH_IMM, wc.opcode);
	TEST_ASSERT_EQUAL_UINT32(300, wc.byte_len);
}

void test_zero_length_write_and_read_check_nothing_remote(void)
{
	static const unsigned int opcodes[] = {SIM_RC_WRITE_ONLY, SIM_RC_READ_REQUEST};

	for (uint32_t i = 0; i < 2; i++) {
		struct sim_packet packet = engine_packet(&engine, opcodes[i], ENGINE_PSN + i);

		packet.rkey = 0xbad;
		packet.remote_addr = 3;
		engine_inject(&engine, &packet);
	}
	TEST_ASSERT_EQUAL_INT(IBV_QPS_RTR, qp()->state);
	expect_aeth(0, ACK, 0);
	TEST_ASSERT_EQUAL_HEX8(SIM_RC_READ_RESPONSE_ONLY, engine.frames[1].packet.opcode);
	TEST_ASSERT_EQUAL_UINT32(0, engine.frames[1].packet.payload_bytes);
}

/* A gap draws one sequence NAK, for the missing PSN, until it is repaired. */
void test_gap_gives_one_nak(void)
{
	for (uint64_t i = 0; i < 8; i++)
		post(i, 10);
	inject(SIM_RC_SEND_ONLY, 0, 4, 0);
	inject(SIM_RC_SEND_ONLY, 2, 4, 0);
	inject(SIM_RC_SEND_ONLY, 3, 4, 0);
	TEST_ASSERT_EQUAL_UINT(2, engine.frame_count);
	expect_aeth(1, SIM_NAK_PSN_SEQUENCE, 1);
	inject(SIM_RC_SEND_ONLY, 1, 4, 0);
	expect_aeth(2, ACK, 1);
	inject(SIM_RC_SEND_ONLY, 4, 4, 0);
	expect_aeth(3, SIM_NAK_PSN_SEQUENCE, 2);
	TEST_ASSERT_EQUAL_UINT64(2, engine.sides[0].device->counters.sequence_naks_sent);
	TEST_ASSERT_EQUAL_UINT64(3, engine.sides[0].device->counters.out_of_sequence_requests);
}

/* Sequence and RNR NAKs share one "NAK outstanding" flag. */
void test_rnr_nak_silences_the_followers(void)
{
	inject(SIM_RC_SEND_ONLY, 0, 4, 0);
	expect_aeth(0, SIM_AETH_RNR_NAK | 1, 0);
	inject(SIM_RC_SEND_ONLY, 1, 4, 0);
	inject(SIM_RC_SEND_ONLY, 2, 4, 0);
	TEST_ASSERT_EQUAL_UINT(1, engine.frame_count);
	TEST_ASSERT_EQUAL_UINT64(1, engine.sides[0].device->counters.rnr_naks_sent);
	inject(SIM_RC_SEND_ONLY, 0, 4, 0);
	expect_aeth(1, SIM_AETH_RNR_NAK | 1, 0);
	post(1, 10);
	inject(SIM_RC_SEND_ONLY, 0, 4, 0);
	expect_aeth(2, ACK, 0);
	TEST_ASSERT_EQUAL_INT(IBV_QPS_RTR, qp()->state);
}

void test_rnr_in_the_middle_of_a_write_with_immediate(void)
{
	inject(SIM_RC_WRITE_FIRST, 0, 256, 300);
	inject(SIM_RC_WRITE_LAST_IMM, 1, 44, 0);
	expect_aeth(1, SIM_AETH_RNR_NAK | 1, 1);
	post(1, 0);
	inject(SIM_RC_WRITE_LAST_IMM, 1, 44, 0);
	expect(1, IBV_WC_SUCCESS, NULL);
	expect_aeth(2, ACK, 1);
}

void test_duplicate_send_is_acknowledged_and_not_executed(void)
{
	post(1, 10);
	post(2, 10);
	inject(SIM_RC_SEND_ONLY, 0, 4, 0);
	expect(1, IBV_WC_SUCCESS, NULL);
	memset(memory(), 0, 10);
	inject(SIM_RC_SEND_ONLY, 0, 4, 0);
	expect_none();
	TEST_ASSERT_EQUAL_HEX8(0, memory()[0]);
	expect_aeth(1, ACK, 0);
	TEST_ASSERT_EQUAL_UINT32(1, engine.frames[1].packet.msn);
	TEST_ASSERT_EQUAL_UINT64(1, engine.sides[0].device->counters.duplicate_requests);
}

/* Half of all PSNs are duplicates. */
void test_duplicates_reach_back_half_a_window(void)
{
	inject(SIM_RC_SEND_ONLY, 0x800000, 4, 0);
	TEST_ASSERT_EQUAL_UINT64(1, engine.sides[0].device->counters.duplicate_requests);
	inject(SIM_RC_SEND_ONLY, 0x7fffff, 4, 0);
	expect_aeth(engine.frame_count - 1, SIM_NAK_PSN_SEQUENCE, 0);
}

void test_read_response_packets(void)
{
	static const uint8_t opcodes[] = {SIM_RC_READ_RESPONSE_FIRST, SIM_RC_READ_RESPONSE_MIDDLE,
					  SIM_RC_READ_RESPONSE_LAST};

	inject(SIM_RC_READ_REQUEST, 0, 0, 600);
	TEST_ASSERT_EQUAL_UINT(3, engine.frame_count);
	for (unsigned int i = 0; i < 3; i++) {
		const struct sim_packet *packet = &engine.frames[i].packet;

		TEST_ASSERT_EQUAL_HEX8(opcodes[i], packet->opcode);
		TEST_ASSERT_EQUAL_HEX32(ENGINE_PSN + i, packet->psn);
		TEST_ASSERT_EQUAL_UINT32(i == 2 ? 88 : 256, packet->payload_bytes);
	}
	TEST_ASSERT_EQUAL_UINT32(1, engine.frames[0].packet.msn);
	TEST_ASSERT_EQUAL_HEX32(ENGINE_PSN + 3, qp()->resp.psn);
}

void test_read_is_replayed_from_its_middle(void)
{
	struct sim_packet packet;

	inject(SIM_RC_READ_REQUEST, 0, 0, 1024);
	TEST_ASSERT_EQUAL_UINT(4, engine.frame_count);
	packet = engine_packet(&engine, SIM_RC_READ_REQUEST, ENGINE_PSN + 2);
	packet.remote_addr += 512;
	packet.dma_bytes = 512;
	engine_inject(&engine, &packet);
	TEST_ASSERT_EQUAL_UINT(6, engine.frame_count);
	TEST_ASSERT_EQUAL_HEX8(SIM_RC_READ_RESPONSE_FIRST, engine.frames[4].packet.opcode);
	TEST_ASSERT_EQUAL_HEX32(ENGINE_PSN + 2, engine.frames[4].packet.psn);
	TEST_ASSERT_EQUAL_HEX8(SIM_RC_READ_RESPONSE_LAST, engine.frames[5].packet.opcode);
	TEST_ASSERT_EQUAL_HEX32(ENGINE_PSN + 4, qp()->resp.psn);
}

/* A repeated READ may ask for less, and gets what it asks for. */
void test_replayed_read_gets_no_more_than_it_asks_for(void)
{
	inject(SIM_RC_READ_REQUEST, 0, 0, 1024);
	inject(SIM_RC_READ_REQUEST, 0, 0, 300);
	TEST_ASSERT_EQUAL_UINT(6, engine.frame_count);
	TEST_ASSERT_EQUAL_UINT32(256, engine.frames[4].packet.payload_bytes);
	TEST_ASSERT_EQUAL_UINT32(44, engine.frames[5].packet.payload_bytes);
}

/* A repeated READ that asks for other bytes is not answered. */
void test_replay_of_another_request_is_dropped(void)
{
	struct sim_packet packet;

	inject(SIM_RC_READ_REQUEST, 0, 0, 1024);
	packet = engine_packet(&engine, SIM_RC_READ_REQUEST, ENGINE_PSN + 2);
	packet.dma_bytes = 512; /* the address of the first packet */
	engine_inject(&engine, &packet);
	packet.rkey ^= 1;
	packet.remote_addr += 512;
	engine_inject(&engine, &packet);
	TEST_ASSERT_EQUAL_UINT(4, engine.frame_count);
	TEST_ASSERT_EQUAL_INT(IBV_QPS_RTR, qp()->state);
}

static uint64_t counter(void)
{
	uint64_t value;

	memcpy(&value, memory(), 8);
	return value;
}

static struct sim_packet fetch_add(uint32_t ahead, uint64_t add)
{
	struct sim_packet packet = engine_packet(&engine, SIM_RC_FETCH_ADD, ENGINE_PSN + ahead);

	packet.swap_add = add;
	return packet;
}

void test_atomics_answer_what_they_found(void)
{
	struct sim_packet packet = fetch_add(0, 5);

	engine_inject(&engine, &packet);
	TEST_ASSERT_EQUAL_UINT64(5, counter());
	TEST_ASSERT_EQUAL_UINT64(0, engine.frames[0].packet.original);
	packet = engine_packet(&engine, SIM_RC_COMPARE_SWAP, ENGINE_PSN + 1);
	packet.compare = 6;
	packet.swap_add = 9;
	engine_inject(&engine, &packet);
	TEST_ASSERT_EQUAL_UINT64(5, counter());
	TEST_ASSERT_EQUAL_UINT64(5, engine.frames[1].packet.original);
	packet.psn++;
	packet.compare = 5;
	engine_inject(&engine, &packet);
	TEST_ASSERT_EQUAL_UINT64(9, counter());
	TEST_ASSERT_EQUAL_UINT64(5, engine.frames[2].packet.original);
	TEST_ASSERT_EQUAL_HEX8(SIM_RC_ATOMIC_ACK, engine.frames[2].packet.opcode);
	TEST_ASSERT_EQUAL_UINT32(3, engine.frames[2].packet.msn);
}

void test_duplicate_atomic_is_answered_from_the_saved_result(void)
{
	struct sim_packet packet = fetch_add(0, 5);

	engine_inject(&engine, &packet);
	packet = fetch_add(1, 5);
	engine_inject(&engine, &packet);
	packet = fetch_add(0, 5);
	engine_inject(&engine, &packet);
	engine_inject(&engine, &packet);
	TEST_ASSERT_EQUAL_UINT64(10, counter());
	TEST_ASSERT_EQUAL_UINT(4, engine.frame_count);
	TEST_ASSERT_EQUAL_UINT64(0, engine.frames[2].packet.original);
	TEST_ASSERT_EQUAL_UINT64(0, engine.frames[3].packet.original);
	TEST_ASSERT_EQUAL_HEX32(ENGINE_PSN, engine.frames[3].packet.psn);
	TEST_ASSERT_EQUAL_UINT32(1, engine.frames[3].packet.msn);
}

/* An ATOMIC WRITE is answered as a READ of 0 bytes, and its duplicate does not write again. */
void test_atomic_write_is_done_once(void)
{
	struct sim_packet packet = engine_packet(&engine, SIM_RC_ATOMIC_WRITE, ENGINE_PSN);
	const uint64_t since = 99;
	struct sim_span span;

	packet.dma_bytes = 8;
	engine_payload(&packet, &span, data, 8);
	engine_inject(&engine, &packet);
	TEST_ASSERT_EQUAL_MEMORY(data, memory(), 8);
	memcpy(memory(), &since, 8);
	engine_inject(&engine, &packet);
	TEST_ASSERT_EQUAL_UINT64(since, counter());
	TEST_ASSERT_EQUAL_UINT(2, engine.frame_count);
	for (unsigned int i = 0; i < 2; i++) {
		const struct sim_packet *answer = &engine.frames[i].packet;

		TEST_ASSERT_EQUAL_HEX8(SIM_RC_READ_RESPONSE_ONLY, answer->opcode);
		TEST_ASSERT_EQUAL_HEX32(ENGINE_PSN, answer->psn);
		TEST_ASSERT_EQUAL_UINT32(1, answer->msn);
		TEST_ASSERT_EQUAL_UINT32(0, answer->payload_bytes);
	}
}

void test_atomic_older_than_the_saved_results_is_dropped(void)
{
	struct sim_packet packet;

	for (uint32_t i = 0; i < 5; i++) { /* max_dest_rd_atomic is 4 */
		packet = fetch_add(i, 1);
		engine_inject(&engine, &packet);
	}
	packet = fetch_add(0, 1);
	engine_inject(&engine, &packet);
	TEST_ASSERT_EQUAL_UINT64(5, counter());
	TEST_ASSERT_EQUAL_UINT(5, engine.frame_count);
}

/* The peer may have four READs outstanding, but not a fifth. */
void test_more_reads_than_max_dest_rd_atomic(void)
{
	for (uint32_t i = 0; i < 4; i++)
		arrive(SIM_RC_READ_REQUEST, i, 0, 8);
	TEST_ASSERT_EQUAL_INT(IBV_QPS_RTR, qp()->state);
	arrive(SIM_RC_READ_REQUEST, 4, 0, 8);
	sim_engine_run(engine.sim);
	TEST_ASSERT_EQUAL_INT(IBV_QPS_ERR, qp()->state);
	TEST_ASSERT_EQUAL_UINT(1, engine_events(&engine, IBV_EVENT_QP_REQ_ERR));
	TEST_ASSERT_EQUAL_HEX8(SIM_NAK_INVALID_REQUEST,
			       engine.frames[engine.frame_count - 1].packet.syndrome);
}

/* The number of turns of the responder, which is bounded. */
static void run_responder(void)
{
	unsigned int turns = 0;

	while (sim_responder_run(qp()))
		TEST_ASSERT_LESS_THAN(100, ++turns);
}

/*
 * A duplicate of an answered READ comes in the same instant as a new READ, as after an ack timeout
 * on a slow link. The peer has no more outstanding than it may, so both are answered.
 */
static void duplicate_and_new_read(unsigned int reads)
{
	again(&(struct engine_config){.peer = true, .rtr_only = true, .reads = (uint8_t)reads});
	for (uint32_t i = 0; i < reads; i++)
		inject(SIM_RC_READ_REQUEST, i, 0, 8);
	TEST_ASSERT_EQUAL_UINT(reads, engine.frame_count);
	arrive(SIM_RC_READ_REQUEST, 0, 0, 8);
	arrive(SIM_RC_READ_REQUEST, reads, 0, 8);
	run_responder();
	TEST_ASSERT_EQUAL_INT(IBV_QPS_RTR, qp()->state);
	TEST_ASSERT_EQUAL_HEX32(ENGINE_PSN + reads,
				engine.frames[engine.frame_count - 1].packet.psn);
	TEST_ASSERT_EQUAL_UINT8(0, qp()->resp.resources_pending);
}

void test_duplicate_read_does_not_take_a_new_reads_place(void)
{
	duplicate_and_new_read(1);
}

void test_duplicate_read_does_not_keep_the_responder_busy(void)
{
	duplicate_and_new_read(2);
	duplicate_and_new_read(4);
}

/* Requests before a bad one are answered before the NAK. */
void test_reads_before_a_bad_request_are_answered_first(void)
{
	struct sim_packet packet = engine_packet(&engine, SIM_RC_WRITE_ONLY, ENGINE_PSN + 3);
	struct sim_span span;

	for (uint32_t i = 0; i < 3; i++)
		arrive(SIM_RC_READ_REQUEST, i, 0, 8);
	packet.rkey = 0xbad;
	packet.dma_bytes = 8;
	engine_payload(&packet, &span, data, 8);
	engine_inject(&engine, &packet);
	TEST_ASSERT_EQUAL_UINT(3, engine_count(&engine, SIM_RC_READ_RESPONSE_ONLY));
	TEST_ASSERT_EQUAL_UINT(4, engine.frame_count);
	expect_aeth(3, SIM_NAK_REMOTE_ACCESS, 3);
}

/* The same for a NAK that does not end the QP, and a response longer than a burst. */
void test_long_read_before_an_rnr_nak_is_answered_first(void)
{
	const uint32_t packets = SIM_BURST_PACKETS + 10;

	arrive(SIM_RC_READ_REQUEST, 0, 0, packets * 256);
	arrive(SIM_RC_SEND_ONLY, packets, 4, 0);
	sim_engine_run(engine.sim);
	TEST_ASSERT_EQUAL_UINT(packets + 1, engine.frame_count);
	expect_aeth(packets, SIM_AETH_RNR_NAK | 1, packets);
}

void test_two_reads_before_a_sequence_nak_are_answered_first(void)
{
	arrive(SIM_RC_READ_REQUEST, 0, 0, 8);
	arrive(SIM_RC_READ_REQUEST, 1, 0, 8);
	arrive(SIM_RC_SEND_ONLY, 3, 4, 0);
	sim_engine_run(engine.sim);
	TEST_ASSERT_EQUAL_UINT(2, engine_count(&engine, SIM_RC_READ_RESPONSE_ONLY));
	expect_aeth(2, SIM_NAK_PSN_SEQUENCE, 2);
}

void test_answers_stand_in_psn_order(void)
{
	post(1, 10);
	post(2, 10);
	arrive(SIM_RC_SEND_ONLY, 0, 4, 0);
	arrive(SIM_RC_READ_REQUEST, 1, 0, 300);
	arrive(SIM_RC_SEND_ONLY, 3, 4, 0);
	sim_engine_run(engine.sim);
	/* The response acknowledges the first SEND. */
	TEST_ASSERT_EQUAL_UINT(3, engine.frame_count);
	TEST_ASSERT_EQUAL_HEX32(ENGINE_PSN + 1, engine.frames[0].packet.psn);
	TEST_ASSERT_EQUAL_HEX32(ENGINE_PSN + 2, engine.frames[1].packet.psn);
	expect_aeth(2, ACK, 3);
}

/* A request that the QP refuses with a NAK and ERR, with or without a posted receive. */
struct refusal {
	const char *what;
	unsigned int opcode;
	uint32_t bytes;
	uint32_t dma_bytes;
	int64_t addr_offset;
	uint32_t rkey_change;
	unsigned int access; /* QP flags; 0: all */
	uint32_t recv_bytes; /* 0: none is posted */
	unsigned int syndrome;
	enum ibv_wc_status status;
	enum ibv_event_type event; /* raised if no receive is in progress */
};

static const struct refusal refusals[] = {
	{"bad rkey", SIM_RC_WRITE_ONLY, 8, 8, 0, 1, 0, 0, SIM_NAK_REMOTE_ACCESS, 0,
	 IBV_EVENT_QP_ACCESS_ERR},
	{"beyond the MR", SIM_RC_WRITE_ONLY, 8, 8, ENGINE_MEMORY_BYTES - 7, 0, 0, 0,
	 SIM_NAK_REMOTE_ACCESS, 0, IBV_EVENT_QP_ACCESS_ERR},
	{"before the MR", SIM_RC_READ_REQUEST, 0, 8, -1, 0, 0, 0, SIM_NAK_REMOTE_ACCESS, 0,
	 IBV_EVENT_QP_ACCESS_ERR},
	{"read of a bad rkey", SIM_RC_READ_REQUEST, 0, 8, 0, 1, 0, 0, SIM_NAK_REMOTE_ACCESS, 0,
	 IBV_EVENT_QP_ACCESS_ERR},
	{"atomic beyond the MR", SIM_RC_FETCH_ADD, 0, 0, ENGINE_MEMORY_BYTES, 0, 0, 0,
	 SIM_NAK_REMOTE_ACCESS, 0, IBV_EVENT_QP_ACCESS_ERR},
	{"no right to write", SIM_RC_WRITE_ONLY, 8, 8, 0, 0, IBV_ACCESS_REMOTE_READ, 0,
	 SIM_NAK_INVALID_REQUEST, 0, IBV_EVENT_QP_REQ_ERR},
	{"no right to read", SIM_RC_READ_REQUEST, 0, 8, 0, 0, IBV_ACCESS_REMOTE_WRITE, 0,
	 SIM_NAK_INVALID_REQUEST, 0, IBV_EVENT_QP_REQ_ERR},
	{"no right to atomics", SIM_RC_FETCH_ADD, 0, 0, 0, 0, IBV_ACCESS_REMOTE_READ, 0,
	 SIM_NAK_INVALID_REQUEST, 0, IBV_EVENT_QP_REQ_ERR},
	{"misaligned atomic", SIM_RC_FETCH_ADD, 0, 0, 4, 0, 0, 0, SIM_NAK_INVALID_REQUEST, 0,
	 IBV_EVENT_QP_REQ_ERR},
	{"short atomic write", SIM_RC_ATOMIC_WRITE, 4, 4, 0, 0, 0, 0, SIM_NAK_INVALID_REQUEST, 0,
	 IBV_EVENT_QP_REQ_ERR},
	{"long atomic write", SIM_RC_ATOMIC_WRITE, 16, 16, 0, 0, 0, 0, SIM_NAK_INVALID_REQUEST, 0,
	 IBV_EVENT_QP_REQ_ERR},
	{"atomic write unlike its RETH", SIM_RC_ATOMIC_WRITE, 8, 0, 0, 0, 0, 0,
	 SIM_NAK_INVALID_REQUEST, 0, IBV_EVENT_QP_REQ_ERR},
	{"misaligned atomic write", SIM_RC_ATOMIC_WRITE, 8, 8, 4, 0, 0, 0, SIM_NAK_INVALID_REQUEST,
	 0, IBV_EVENT_QP_REQ_ERR},
	{"atomic write without the right", SIM_RC_ATOMIC_WRITE, 8, 8, 0, 0,
	 IBV_ACCESS_REMOTE_ATOMIC, 0, SIM_NAK_INVALID_REQUEST, 0, IBV_EVENT_QP_REQ_ERR},
	{"atomic write to a bad rkey", SIM_RC_ATOMIC_WRITE, 8, 8, 0, 1, 0, 0, SIM_NAK_REMOTE_ACCESS,
	 0, IBV_EVENT_QP_ACCESS_ERR},
	{"middle without first", SIM_RC_SEND_MIDDLE, 256, 0, 0, 0, 0, 100, SIM_NAK_INVALID_REQUEST,
	 0, IBV_EVENT_QP_REQ_ERR},
	{"last without first", SIM_RC_WRITE_LAST, 8, 0, 0, 0, 0, 0, SIM_NAK_INVALID_REQUEST, 0,
	 IBV_EVENT_QP_REQ_ERR},
	{"short first", SIM_RC_WRITE_FIRST, 255, 300, 0, 0, 0, 0, SIM_NAK_INVALID_REQUEST, 0,
	 IBV_EVENT_QP_REQ_ERR},
	{"payload unlike the RETH", SIM_RC_WRITE_ONLY, 8, 9, 0, 0, 0, 0, SIM_NAK_INVALID_REQUEST, 0,
	 IBV_EVENT_QP_REQ_ERR},
	{"payload above the MTU", SIM_RC_WRITE_ONLY, 257, 257, 0, 0, 0, 0, SIM_NAK_INVALID_REQUEST,
	 0, IBV_EVENT_QP_REQ_ERR},
	{"above 2 GiB", SIM_RC_READ_REQUEST, 0, 0x80000001, 0, 0, 0, 0, SIM_NAK_INVALID_REQUEST, 0,
	 IBV_EVENT_QP_REQ_ERR},
	{"write above 2 GiB", SIM_RC_WRITE_FIRST, 256, 0x80000001, 0, 0, 0, 0,
	 SIM_NAK_INVALID_REQUEST, 0, IBV_EVENT_QP_REQ_ERR},
	{"write of 2 GiB", SIM_RC_WRITE_FIRST, 256, 0x80000000, 0, 0, 0, 0, SIM_NAK_REMOTE_ACCESS,
	 0, IBV_EVENT_QP_ACCESS_ERR},
	{"read of 2 GiB", SIM_RC_READ_REQUEST, 0, 0x80000000, 0, 0, 0, 0, SIM_NAK_REMOTE_ACCESS, 0,
	 IBV_EVENT_QP_ACCESS_ERR},
	{"atomic with a payload", SIM_RC_FETCH_ADD, 8, 0, 0, 0, 0, 0, SIM_NAK_INVALID_REQUEST, 0,
	 IBV_EVENT_QP_REQ_ERR},
	{"send too long", SIM_RC_SEND_ONLY, 101, 0, 0, 0, 0, 100, SIM_NAK_INVALID_REQUEST,
	 IBV_WC_LOC_LEN_ERR, 0},
	{"short first of a send", SIM_RC_SEND_FIRST, 255, 0, 0, 0, 0, 1000, SIM_NAK_INVALID_REQUEST,
	 IBV_WC_REM_INV_REQ_ERR, 0},
};

static void refuse_one(const struct refusal *row)
{
	struct sim_packet packet = engine_packet(&engine, row->opcode, ENGINE_PSN);
	struct ibv_qp_attr attr = {.qp_access_flags = row->access ? row->access : ALL_REMOTE};
	struct sim_span span;

	attr.qp_state = IBV_QPS_RTS;
	attr.timeout = 14;
	TEST_ASSERT_EQUAL_INT(0,
			      sim_qp_modify(qp(), &attr,
					    IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
						    IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
						    IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_ACCESS_FLAGS));
	if (row->recv_bytes)
		post(1, row->recv_bytes);
	packet.rkey ^= row->rkey_change << 12;
	packet.remote_addr += (uint64_t)row->addr_offset;
	packet.dma_bytes = row->dma_bytes;
	engine_payload(&packet, &span, data, row->bytes);
	engine_inject(&engine, &packet);
	TEST_ASSERT_EQUAL_INT_MESSAGE(IBV_QPS_ERR, qp()->state, row->what);
	TEST_ASSERT_EQUAL_UINT_MESSAGE(1, engine.frame_count, row->what);
	TEST_ASSERT_EQUAL_HEX8_MESSAGE(row->syndrome, engine.frames[0].packet.syndrome, row->what);
	TEST_ASSERT_EQUAL_HEX32(ENGINE_PSN, engine.frames[0].packet.psn);
	for (unsigned int i = 0; i < 64; i++)
		TEST_ASSERT_EQUAL_HEX8_MESSAGE(0, memory()[i], row->what);
	if (row->status) {
		expect(1, row->status, NULL);
		TEST_ASSERT_EQUAL_UINT_MESSAGE(0, engine.event_count, row->what);
	} else {
		TEST_ASSERT_EQUAL_UINT_MESSAGE(1, engine.event_count, row->what);
		TEST_ASSERT_EQUAL_INT_MESSAGE(row->event, engine.events[0].type, row->what);
		if (row->recv_bytes)
			expect(1, IBV_WC_WR_FLUSH_ERR, NULL);
	}
	expect_none();
}

void test_refusals(void)
{
	for (unsigned int i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
		fresh();
		refuse_one(&refusals[i]);
	}
}

/* A new message begins in the middle of another, and the receive in progress fails. */
void test_first_in_the_middle_of_a_message(void)
{
	post(1, 1000);
	inject(SIM_RC_SEND_FIRST, 0, 256, 0);
	inject(SIM_RC_SEND_FIRST, 1, 256, 0);
	expect(1, IBV_WC_REM_INV_REQ_ERR, NULL);
	TEST_ASSERT_EQUAL_INT(IBV_QPS_ERR, qp()->state);

	fresh();
	post(1, 1000);
	inject(SIM_RC_SEND_FIRST, 0, 256, 0);
	inject(SIM_RC_WRITE_LAST, 1, 10, 0);
	expect(1, IBV_WC_REM_INV_REQ_ERR, NULL);

	fresh();
	post(1, 1000);
	inject(SIM_RC_SEND_FIRST, 0, 256, 0);
	inject(SIM_RC_SEND_LAST, 1, 0, 0); /* a last packet carries at least a byte */
	expect(1, IBV_WC_REM_INV_REQ_ERR, NULL);
}

void test_message_grows_past_its_receive(void)
{
	post(1, 300);
	inject(SIM_RC_SEND_FIRST, 0, 256, 0);
	inject(SIM_RC_SEND_LAST, 1, 45, 0);
	expect(1, IBV_WC_LOC_LEN_ERR, NULL);
	expect_aeth(1, SIM_NAK_INVALID_REQUEST, 1);
	TEST_ASSERT_EQUAL_INT(IBV_QPS_ERR, qp()->state);
}

void test_receive_memory_that_may_not_be_written(void)
{
	struct ibv_sge sge = {(uintptr_t)memory(), 100, engine.sides[0].mr->lkey ^ 0x1000};
	struct ibv_recv_wr wr = {.wr_id = 1, .sg_list = &sge, .num_sge = 1};
	struct ibv_recv_wr *bad;

	TEST_ASSERT_EQUAL_INT(0, sim_qp_post_recv(qp(), &wr, &bad));
	inject(SIM_RC_SEND_ONLY, 0, 8, 0);
	expect(1, IBV_WC_LOC_PROT_ERR, NULL);
	expect_aeth(0, SIM_NAK_REMOTE_OPERATION, 0);

	fresh();
	post(1, 100);
	engine_poison(memory() + 50, 1);
	inject(SIM_RC_SEND_ONLY, 0, 60, 0);
	expect(1, IBV_WC_LOC_PROT_ERR, NULL);
	TEST_ASSERT_EQUAL_UINT64(1, engine.sides[0].device->counters.guarded_faults);
}

void test_memory_that_is_gone_under_an_mr_is_an_access_error(void)
{
	struct sim_packet packet = fetch_add(0, 1);

	engine_poison(memory(), 8);
	engine_inject(&engine, &packet);
	expect_aeth(0, SIM_NAK_REMOTE_ACCESS, 0);
	TEST_ASSERT_EQUAL_INT(IBV_QPS_ERR, qp()->state);
}

void test_mr_that_ends_while_a_read_is_answered(void)
{
	arrive(SIM_RC_READ_REQUEST, 0, 0, 600);
	sim_mr_destroy(engine.sides[0].mr);
	engine.sides[0].mr = NULL;
	sim_engine_run(engine.sim);
	TEST_ASSERT_EQUAL_UINT(1, engine.frame_count);
	expect_aeth(0, SIM_NAK_REMOTE_ACCESS, 0);
	TEST_ASSERT_EQUAL_INT(IBV_QPS_ERR, qp()->state);
	TEST_ASSERT_EQUAL_UINT(1, engine_events(&engine, IBV_EVENT_QP_ACCESS_ERR));
}

void test_wrong_pd_is_an_access_error(void)
{
	struct sim_packet packet = engine_packet(&engine, SIM_RC_READ_REQUEST, ENGINE_PSN);
	const struct sim_mr_init init = {.pd = 2,
					 .addr = memory(),
					 .length = 100,
					 .iova = (uintptr_t)memory(),
					 .access = IBV_ACCESS_REMOTE_READ};
	struct sim_mr *mr;

	TEST_ASSERT_EQUAL_INT(0, sim_mr_create(engine.sides[0].device, &init, &mr));
	packet.rkey = mr->rkey;
	packet.dma_bytes = 8;
	engine_inject(&engine, &packet);
	expect_aeth(0, SIM_NAK_REMOTE_ACCESS, 0);
	sim_mr_destroy(mr);
}

/* The responder sends no answer for a QP that was reset. */
void test_reset_forgets_what_was_to_be_answered(void)
{
	const struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};

	post(1, 10);
	arrive(SIM_RC_SEND_ONLY, 0, 4, 0);
	arrive(SIM_RC_READ_REQUEST, 1, 0, 8);
	TEST_ASSERT_EQUAL_INT(0, sim_qp_modify(qp(), &attr, IBV_QP_STATE));
	sim_engine_run(engine.sim);
	TEST_ASSERT_EQUAL_UINT(0, engine.frame_count);
}

static void inject_uc(unsigned int opcode, uint32_t ahead, uint32_t bytes, uint32_t dma_bytes)
{
	inject(opcode | SIM_TRANSPORT_UC, ahead, bytes, dma_bytes);
}

static void open_uc(void)
{
	again(&(struct engine_config){.peer = true, .type = IBV_QPT_UC, .rtr_only = true});
}

/* A lost packet drops the whole message silently; the next message gets its receive. */
void test_uc_gap_costs_its_message(void)
{
	open_uc();
	post(1, 1000);
	inject_uc(SIM_RC_SEND_FIRST, 0, 256, 0);
	inject_uc(SIM_RC_SEND_LAST, 2, 10, 0);
	expect_none();
	inject_uc(SIM_RC_SEND_ONLY, 3, 10, 0);
	expect(1, IBV_WC_SUCCESS, NULL);
	inject_uc(SIM_RC_SEND_ONLY, 9, 10, 0);
	expect_none();
	post(2, 10);
	inject_uc(SIM_RC_SEND_ONLY, 20, 10, 0);
	expect(2, IBV_WC_SUCCESS, NULL);
	TEST_ASSERT_EQUAL_UINT_MESSAGE(0, engine.frame_count, "UC does not answer");
}

void test_uc_drops_what_it_does_not_accept(void)
{
	open_uc();
	post(1, 1000);
	{
		struct sim_packet packet =
			engine_packet(&engine, SIM_RC_WRITE_ONLY | SIM_TRANSPORT_UC, ENGINE_PSN);
		struct sim_span span;

		packet.rkey ^= 0x1000;
		packet.dma_bytes = 8;
		engine_payload(&packet, &span, data, 8);
		engine_inject(&engine, &packet);
	}
	TEST_ASSERT_EQUAL_INT(IBV_QPS_RTR, qp()->state);
	TEST_ASSERT_EQUAL_UINT64(1, engine.sides[0].device->counters.dropped_packets);
	inject_uc(SIM_RC_SEND_MIDDLE, 1, 256, 0);
	inject_uc(SIM_RC_SEND_LAST, 2, 6, 0);
	expect_none();
	inject_uc(SIM_RC_SEND_ONLY, 3, 6, 0);
	expect(1, IBV_WC_SUCCESS, NULL);
	TEST_ASSERT_EQUAL_UINT(0, engine.frame_count);
}

/* The receive of a refused WRITE with immediate fails; REM_ACCESS_ERR is a quirk. */
void test_denied_write_with_immediate_ends_its_receive(void)
{
	static const enum ibv_wc_status statuses[] = {IBV_WC_LOC_ACCESS_ERR, IBV_WC_REM_ACCESS_ERR};

	for (unsigned int i = 0; i < 2; i++) {
		struct sim_packet packet;
		struct sim_span span;

		fresh();
		engine_quirk(engine.sides[0].device, "imm_write_receive_is_remote_error", i);
		post(1, 100);
		packet = engine_packet(&engine, SIM_RC_WRITE_ONLY_IMM, ENGINE_PSN);
		packet.rkey ^= 0x1000;
		packet.dma_bytes = 8;
		engine_payload(&packet, &span, data, 8);
		engine_inject(&engine, &packet);
		expect(1, statuses[i], NULL);
		expect_aeth(0, SIM_NAK_REMOTE_ACCESS, 0);
		TEST_ASSERT_EQUAL_UINT(0, engine_events(&engine, IBV_EVENT_QP_ACCESS_ERR));
		TEST_ASSERT_EQUAL_INT(IBV_QPS_ERR, qp()->state);
	}
}

void test_more_atomics_than_max_dest_rd_atomic(void)
{
	again(&(struct engine_config){.peer = true, .rtr_only = true, .reads = 2});
	for (uint32_t i = 0; i < 3; i++) {
		const struct sim_packet packet = fetch_add(i, 1);

		sim_responder_receive(qp(), &packet);
	}
	TEST_ASSERT_EQUAL_INT(IBV_QPS_ERR, qp()->state);
	TEST_ASSERT_EQUAL_UINT(1, engine_events(&engine, IBV_EVENT_QP_REQ_ERR));
	TEST_ASSERT_EQUAL_UINT64(2, counter());
}

/* On UC, too, a message longer than its receive is an error of the receiver. */
void test_uc_ends_with_the_fault_of_its_own_receive(void)
{
	open_uc();
	post(1, 100);
	inject_uc(SIM_RC_SEND_ONLY, 0, 101, 0);
	expect(1, IBV_WC_LOC_LEN_ERR, NULL);
	TEST_ASSERT_EQUAL_INT(IBV_QPS_ERR, qp()->state);

	open_uc();
	post(1, 100);
	engine_poison(memory() + 50, 1);
	inject_uc(SIM_RC_SEND_ONLY, 0, 60, 0);
	expect(1, IBV_WC_LOC_PROT_ERR, NULL);
	TEST_ASSERT_EQUAL_INT(IBV_QPS_ERR, qp()->state);
	TEST_ASSERT_EQUAL_UINT(0, engine.frame_count);
}

/* Quirks for a peer with another path MTU, and for a message longer than its receive. */
void test_quirks_of_a_receive(void)
{
	engine_quirk(engine.sides[0].device, "packet_sizes_unchecked", true);
	post(1, 1000);
	inject(SIM_RC_SEND_FIRST, 0, 200, 0);
	inject(SIM_RC_SEND_LAST, 1, 300, 0);
	expect(1, IBV_WC_SUCCESS, NULL);

	fresh();
	engine_quirk(engine.sides[0].device, "short_receive_is_operation_error", true);
	post(1, 100);
	inject(SIM_RC_SEND_ONLY, 0, 101, 0);
	expect(1, IBV_WC_LOC_QP_OP_ERR, NULL);
	expect_aeth(0, SIM_NAK_REMOTE_OPERATION, 0);

	fresh();
	engine_quirk(engine.sides[0].device, "bad_receive_is_operation_error", true);
	post(1, 100);
	engine_poison(memory() + 50, 1);
	inject(SIM_RC_SEND_ONLY, 0, 60, 0);
	expect(1, IBV_WC_LOC_QP_OP_ERR, NULL);
	expect_aeth(0, SIM_NAK_REMOTE_OPERATION, 0);
}

void test_every_state_has_a_name(void)
{
	for (unsigned int i = 0; i < SIM_RESPONDER_STATES; i++) {
		TEST_ASSERT_NOT_NULL(sim_responder_state_names[i]);
		for (unsigned int j = 0; j < i; j++)
			TEST_ASSERT_TRUE(strcmp(sim_responder_state_names[i],
						sim_responder_state_names[j]) != 0);
	}
}
