/* SPDX-License-Identifier: MIT */
/* READs and atomics of a target QP of this process for the SRQ of another one. */
#include "backends/sim/world/world.h"
#include "sim/net/net.h"
#include "sim/qp/private.h"
#include "sim/wire/psn.h"
#include "test/unit/sharer_target.h"

#include <poll.h>
#include <verbena/fault.h>

static uint8_t big[SHARE_BIG_BYTES], expected[SHARE_BIG_BYTES];
static uint32_t their_big;
static uint64_t big_addr;

static struct ibv_mr *big_mr;

void setUp(void)
{
	begin_sharing();
	connect_targets();
	big_mr = B.reg_mr(a.pd, big, sizeof(big), ACCESS_ALL);
	TEST_ASSERT_NOT_NULL(big_mr);
}

void tearDown(void)
{
	end_sharing();
}

/* Fills the other process's memory. */
static void fill_theirs(int seed)
{
	const struct share_answer *answer = share_ask(&other, SHARE_BIG, seed);

	TEST_ASSERT_EQUAL_INT(0, answer->error);
	their_big = answer->number;
	big_addr = answer->addr;
	share_fill(expected, sizeof(expected), seed);
}

static void post_read(uint32_t bytes, uint64_t from)
{
	struct ibv_sge sge = {(uintptr_t)big, bytes, big_mr->lkey};
	struct ibv_send_wr wr = {.wr_id = bytes,
				 .opcode = IBV_WR_RDMA_READ,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .qp_type.xrc.remote_srqn = their_srq,
				 .wr.rdma = {.remote_addr = from, .rkey = their_big}};

	TEST_ASSERT_EQUAL_INT(0, post_wr(initiator, &wr));
}

/* An atomic of the first 8 bytes of the other process's buffer. The value comes to a slot of `a.buffer`. */
static void post_atomic(enum ibv_wr_opcode opcode, uint64_t compare_add, uint64_t swap, size_t slot)
{
	struct ibv_sge sge = sge_of(&a, 8 * slot, 8);
	struct ibv_send_wr wr = {.opcode = opcode,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .qp_type.xrc.remote_srqn = their_srq,
				 .wr.atomic = {.remote_addr = their_addr,
					       .rkey = their_rkey,
					       .compare_add = compare_add,
					       .swap = swap}};

	TEST_ASSERT_EQUAL_INT(0, post_wr(initiator, &wr));
}

static uint64_t slot_value(size_t slot)
{
	uint64_t value;

	memcpy(&value, a.buffer + 8 * slot, sizeof(value));
	return value;
}

static uint64_t their_value(void)
{
	uint64_t value;

	memcpy(&value, share_ask(&other, SHARE_BYTES, 0)->bytes, sizeof(value));
	return value;
}

/* The bytes of `big` from one on have the value that the test has written. */
static void expect_untouched(size_t from)
{
	while (from < sizeof(big))
		TEST_ASSERT_EQUAL_HEX8(0xee, big[from++]);
}

static void connect_again_at(uint32_t psn)
{
	struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};

	TEST_ASSERT_EQUAL_INT(0, B.modify_qp(initiator, &reset, IBV_QP_STATE));
	TEST_ASSERT_EQUAL_INT(0, B.modify_qp(target, &reset, IBV_QP_STATE));
	connect_qp_at(initiator, &a, target->qp_num, psn);
	connect_qp_at(target, &a, initiator->qp_num, psn);
}

static void connect_again(void)
{
	connect_again_at(0);
}

/* The target has raised the event, and no other one. */
static void expect_event(enum ibv_event_type type)
{
	struct ibv_async_event event;
	struct pollfd one = {a.context->async_fd, POLLIN, 0};

	TEST_ASSERT_EQUAL_INT(0, B.get_async_event(a.context, &event));
	TEST_ASSERT_EQUAL_INT(type, event.event_type);
	TEST_ASSERT_EQUAL_PTR(target, event.element.qp);
	B.ack_async_event(&event);
	TEST_ASSERT_EQUAL_INT(0, poll(&one, 1, 0));
}

static void expect_no_event(void)
{
	struct pollfd one = {a.context->async_fd, POLLIN, 0};

	TEST_ASSERT_EQUAL_INT(0, poll(&one, 1, 0));
}

static void drop_event(void)
{
	struct pollfd one = {a.context->async_fd, POLLIN, 0};
	struct ibv_async_event event;

	while (poll(&one, 1, 0) > 0) {
		TEST_ASSERT_EQUAL_INT(0, B.get_async_event(a.context, &event));
		B.ack_async_event(&event);
	}
}

void test_a_read_takes_the_memory_of_the_srqs_process(void)
{
	static const uint32_t sizes[] = {
		0, 1, 1023, 1024, 1025, 16 * 1024, 16385, 40000, 65536, 65537, SHARE_BIG_BYTES - 1};
	const struct sim_counters *counters = &context_of(a.context)->device->engine->counters;

	for (unsigned int round = 0; round < 3 * sizeof(sizes) / sizeof(*sizes); round++) {
		const uint32_t bytes = sizes[round % (sizeof(sizes) / sizeof(*sizes))];

		fill_theirs((int)round);
		memset(big, 0xee, sizeof(big));
		post_read(bytes, big_addr + round % 2);
		TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, sent());
		if (bytes)
			TEST_ASSERT_EQUAL_MEMORY(expected + round % 2, big, bytes);
		expect_untouched(bytes);
	}
	/* All data came at the first request, unless a slow machine let the ACK timer run out. */
	if (!counters->ack_timeouts)
		TEST_ASSERT_EQUAL_UINT64(0, counters->duplicate_requests);
}

void test_atomics_change_the_memory_of_the_srqs_process(void)
{
	uint64_t value;

	TEST_ASSERT_EQUAL_INT(0, ask(SHARE_FILL, 9));
	value = their_value();
	for (uint64_t round = 0; round < 30; round++) {
		post_atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, round + 5, 0, 1);
		TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, sent());
		TEST_ASSERT_EQUAL_HEX64(value, slot_value(1));
		value += round + 5;
		TEST_ASSERT_EQUAL_HEX64(value, their_value());
		post_atomic(IBV_WR_ATOMIC_CMP_AND_SWP, value + round % 2, ~value, 2);
		TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, sent());
		TEST_ASSERT_EQUAL_HEX64(value, slot_value(2));
		if (round % 2 == 0)
			value = ~value;
		TEST_ASSERT_EQUAL_HEX64(value, their_value());
	}
}

/* All of them are posted before the first one completes. */
static void post_mixture(void)
{
	struct ibv_sge sge = {(uintptr_t)big, 5000, big_mr->lkey};
	struct ibv_send_wr write = {.wr_id = 3,
				    .opcode = IBV_WR_RDMA_WRITE,
				    .sg_list = &sge,
				    .num_sge = 1,
				    .qp_type.xrc.remote_srqn = their_srq,
				    .wr.rdma = {.remote_addr = big_addr, .rkey = their_big}};

	post_xrc(IBV_WR_SEND, their_srq, 0, 1900, 0);
	post_atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 0, 300);
	post_atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 0, 301);
	TEST_ASSERT_EQUAL_INT(0, post_wr(initiator, &write));
	sge.addr += 30000;
	sge.length = 40000;
	write.opcode = IBV_WR_RDMA_READ;
	TEST_ASSERT_EQUAL_INT(0, post_wr(initiator, &write));
	post_atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 0, 302);
	post_xrc(IBV_WR_SEND, their_srq, 0, 1901, 0);
	post_read(100, big_addr + 60000);
}

void test_requests_in_flight_keep_their_order(void)
{
	static const enum ibv_wc_opcode opcodes[] = {
		IBV_WC_SEND,	  IBV_WC_FETCH_ADD, IBV_WC_FETCH_ADD, IBV_WC_RDMA_WRITE,
		IBV_WC_RDMA_READ, IBV_WC_FETCH_ADD, IBV_WC_SEND,      IBV_WC_RDMA_READ};

	for (unsigned int round = 0; round < 20; round++) {
		fill_theirs((int)round);
		TEST_ASSERT_EQUAL_INT(0, ask(SHARE_POST, 2));
		share_fill(big, 5000, 1000 + (int)round);
		memcpy(expected, big, 5000);
		post_mixture();
		for (unsigned int i = 0; i < sizeof(opcodes) / sizeof(*opcodes); i++) {
			const struct ibv_wc wc = share_wait(a.cq);

			TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, wc.status);
			TEST_ASSERT_EQUAL_INT(opcodes[i], wc.opcode);
		}
		for (uint64_t i = 0; i < 3; i++)
			TEST_ASSERT_EQUAL_HEX64(slot_value(300) + i, slot_value(300 + i));
		/* The last 100 bytes were read to the front of `big`. */
		TEST_ASSERT_EQUAL_MEMORY(expected + 60000, big, 100);
		TEST_ASSERT_EQUAL_MEMORY(expected, big + 30000, 40000);
		TEST_ASSERT_EQUAL_UINT32(1900, share_ask(&other, SHARE_POLL, 0)->wc.byte_len);
		TEST_ASSERT_EQUAL_UINT32(1901, share_ask(&other, SHARE_POLL, 0)->wc.byte_len);
	}
}

/* The atomics behind the SEND are done once, when the SEND has its receive. */
void test_requests_behind_a_send_that_waits_for_a_receive(void)
{
	const struct sim_counters *counters = &context_of(a.context)->device->engine->counters;
	const struct sim_responder *responder;
	uint64_t naks = 0;

	responder = &qp_of(target)->engine->resp;
	fill_theirs(4);
	TEST_ASSERT_EQUAL_INT(0, ask(SHARE_FILL, 4));
	for (unsigned int round = 1; round <= 5; round++) {
		const uint64_t value = their_value();

		post_atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, 16, 0, 300);
		post_read(30000, big_addr);
		post_xrc(IBV_WR_SEND, their_srq, 0, 0, 0);
		post_atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, 32, 0, 301);
		post_read(20000, big_addr);
		TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, sent());
		TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, sent());
		await_rnr_nak(naks);
		/* The NAK has the timer of the target. */
		TEST_ASSERT_EQUAL_HEX8(SIM_AETH_RNR_NAK | 12, responder->nak_syndrome);
		TEST_ASSERT_EQUAL_HEX64(value + 16, their_value());
		TEST_ASSERT_EQUAL_INT(0, ask(SHARE_POST, 1));
		for (unsigned int i = 0; i < 3; i++)
			TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, sent());
		naks = counters->rnr_naks_sent;
		TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, ask(SHARE_POLL, 0));
		TEST_ASSERT_EQUAL_HEX64(value, slot_value(300));
		TEST_ASSERT_EQUAL_HEX64(value + 16, slot_value(301));
		TEST_ASSERT_EQUAL_MEMORY(expected, big, 30000);
	}
}

/* One connection, with READs of memory here and there in turn. */
void test_reads_of_two_processes_behind_one_target(void)
{
	struct sharing here = {.xrcd = domain};
	struct share_answer answer = {0};

	share_make_srq(&here, &answer);
	fill_theirs(3);
	fill(9);
	for (unsigned int round = 0; round < 10; round++) {
		struct ibv_sge sge = {(uintptr_t)big + 40000, 3000, big_mr->lkey};
		struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_READ,
					 .sg_list = &sge,
					 .num_sge = 1,
					 .qp_type.xrc.remote_srqn = answer.number,
					 .wr.rdma = {answer.addr, answer.count}};

		memset(big, 0, sizeof(big));
		post_read(20000 + round, big_addr);
		TEST_ASSERT_EQUAL_INT(0, post_wr(initiator, &wr));
		post_read(2000 + round, big_addr);
		for (unsigned int i = 0; i < 3; i++)
			TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, sent());
		TEST_ASSERT_EQUAL_MEMORY(expected, big, 20000 + round);
		TEST_ASSERT_EQUAL_MEMORY(a.buffer, big + 40000, 3000);
	}
}

/* A SEND for this process waits for a READ and a SEND of the other one, and a READ of this process that
 * takes several turns of the responder is answered in one go. */
void test_a_message_for_this_process_stays_behind_a_read_there(void)
{
	const struct sim_counters *counters = &context_of(a.context)->device->engine->counters;
	static const enum ibv_wc_opcode order[] = {IBV_WC_RDMA_READ, IBV_WC_SEND, IBV_WC_RECV,
						   IBV_WC_SEND, IBV_WC_RDMA_READ};
	static uint8_t from[SHARE_BIG_BYTES];
	struct ibv_mr *source = B.reg_mr(a.pd, from, sizeof(from), ACCESS_ALL);
	struct ibv_sge sge = {(uintptr_t)big, SHARE_BIG_BYTES, big_mr->lkey};
	struct ibv_send_wr local = {.opcode = IBV_WR_RDMA_READ,
				    .sg_list = &sge,
				    .num_sge = 1,
				    .wr.rdma = {(uintptr_t)from, source->rkey}};
	struct share_answer answer = {0};
	struct sharing here = {.xrcd = domain};

	share_make_srq(&here, &answer);
	local.qp_type.xrc.remote_srqn = answer.number;
	share_fill(from, sizeof(from), 77);
	for (unsigned int round = 0; round < 10; round++) {
		fill_theirs((int)round);
		TEST_ASSERT_EQUAL_INT(0, ask(SHARE_POST, 1));
		TEST_ASSERT_EQUAL_INT(0, share_post(&here, 1));
		post_read(SHARE_BIG_BYTES, big_addr);
		post_xrc(IBV_WR_SEND, their_srq, 0, 40, 0);
		post_xrc(IBV_WR_SEND, answer.number, 0, 41, 0);
		TEST_ASSERT_EQUAL_INT(0, post_wr(initiator, &local));
		for (unsigned int i = 0; i < sizeof(order) / sizeof(*order); i++) {
			const struct ibv_wc wc = share_wait(a.cq);

			TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, wc.status);
			TEST_ASSERT_EQUAL_INT(order[i], wc.opcode);
		}
		TEST_ASSERT_EQUAL_MEMORY(from, big, sizeof(big));
		TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, ask(SHARE_POLL, 0));
	}
	/* A NAK asks for the dropped requests: no request came twice, unless a slow machine let the ACK timer
	 * run out. */
	if (!counters->ack_timeouts)
		TEST_ASSERT_EQUAL_UINT64(0, counters->duplicate_requests);
}

/* --- requests that the other process has not answered --- */

/* The initiator has up to `reads` READs and atomics in flight; the target remembers 4. Without an ACK timer, the
 * initiator sends a request again only if a NAK asks for it. */
static void use_no_timer(uint8_t reads)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_SQD, .max_rd_atomic = reads};

	TEST_ASSERT_EQUAL_INT(0, B.modify_qp(initiator, &attr, IBV_QP_STATE));
	TEST_ASSERT_EQUAL_INT(0,
			      B.modify_qp(initiator, &attr,
					  IBV_QP_STATE | IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_TIMEOUT));
	attr.qp_state = IBV_QPS_RTS;
	TEST_ASSERT_EQUAL_INT(0, B.modify_qp(initiator, &attr, IBV_QP_STATE));
}

/* The target puts off an atomic that it cannot remember, until it has answered others. */
void test_more_atomics_than_the_target_remembers(void)
{
	uint64_t value;

	use_no_timer(7);
	TEST_ASSERT_EQUAL_INT(0, ask(SHARE_FILL, 3));
	for (unsigned int round = 0; round < 3; round++) {
		value = their_value();
		share_stop(&other);
		for (size_t i = 0; i < 7; i++)
			post_atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, 5, 0, i);
		TEST_ASSERT_EQUAL_INT(0, kill(other.pid, SIGCONT));
		for (size_t i = 0; i < 7; i++) {
			TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, sent());
			TEST_ASSERT_EQUAL_HEX64(value + 5 * i, slot_value(i));
		}
		TEST_ASSERT_EQUAL_HEX64(value + 35, their_value());
	}
	expect_no_event();
}

/* Posts READs, and a SEND behind them, while the other process is stopped. */
static void send_behind_reads(unsigned int reads)
{
	memset(big, 0, sizeof(big));
	share_stop(&other);
	for (unsigned int i = 0; i < reads; i++)
		post_read(SHARE_BIG_BYTES, big_addr);
	post_xrc(IBV_WR_SEND, their_srq, 0, 500 + reads, 0);
	TEST_ASSERT_EQUAL_INT(0, kill(other.pid, SIGCONT));
	for (unsigned int i = 0; i < reads; i++) {
		const struct ibv_wc wc = share_wait(a.cq);

		TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, wc.status);
		TEST_ASSERT_EQUAL_INT(IBV_WC_RDMA_READ, wc.opcode);
	}
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, sent());
	TEST_ASSERT_EQUAL_UINT32(500 + reads, share_ask(&other, SHARE_POLL, 0)->wc.byte_len);
	TEST_ASSERT_EQUAL_MEMORY(expected, big, sizeof(big));
}

/* The target relays no request if 256 packets wait for their answers. A NAK asks for the request later. A READ
 * has 69 packets here. */
void test_requests_that_are_far_ahead_of_their_answers(void)
{
	const struct sim_counters *counters = &context_of(a.context)->device->engine->counters;

	use_no_timer(4);
	fill_theirs(5);
	TEST_ASSERT_EQUAL_INT(0, ask(SHARE_POST, 3));
	send_behind_reads(3);
	TEST_ASSERT_EQUAL_UINT64(0, counters->sequence_naks_sent);
	send_behind_reads(4);
	TEST_ASSERT_EQUAL_UINT64(1, counters->sequence_naks_sent);
	send_behind_reads(3);
	TEST_ASSERT_EQUAL_UINT64(1, counters->sequence_naks_sent);
}

/* A message for this process comes behind READs, atomics and SENDs for the other one, whose PSNs wrap around. */
void test_first_psns_and_the_end_of_the_psns(void)
{
	static const uint32_t psns[] = {0, 1, 0x7fffff, 0x800000, 0xc00000, 0xffffc0, 0xffffff};
	struct sharing here = {.xrcd = domain};
	struct share_answer answer = {0};

	share_make_srq(&here, &answer);
	TEST_ASSERT_EQUAL_INT(0, ask(SHARE_FILL, 6));
	for (size_t i = 0; i < sizeof(psns) / sizeof(psns[0]); i++) {
		const uint64_t value = their_value();

		connect_again_at(psns[i]);
		use_no_timer(4);
		fill_theirs((int)i);
		memset(big, 0, sizeof(big));
		TEST_ASSERT_EQUAL_INT(0, ask(SHARE_POST, 1));
		TEST_ASSERT_EQUAL_INT(0, share_post(&here, 2));
		post_read(SHARE_BIG_BYTES, big_addr);
		post_xrc(IBV_WR_SEND, answer.number, 0, 41, 0);
		post_atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, 9, 0, 300);
		post_xrc(IBV_WR_SEND, their_srq, 0, 0, 0);
		post_xrc(IBV_WR_SEND, answer.number, 0, 42, 0);
		/* 5 requests and 2 receives complete here. */
		for (unsigned int j = 0; j < 7; j++)
			TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, sent());
		TEST_ASSERT_EQUAL_MEMORY(expected, big, sizeof(big));
		TEST_ASSERT_EQUAL_HEX64(value, slot_value(300));
		TEST_ASSERT_EQUAL_HEX64(value + 9, their_value());
		TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, ask(SHARE_POLL, 0));
	}
}

/* --- refusals --- */

void test_a_read_of_memory_that_is_not_registered(void)
{
	fill_theirs(1);
	memset(big, 0xee, sizeof(big));
	/* No byte comes if the last one may not be read. */
	post_read(SHARE_BIG_BYTES, big_addr + 1);
	TEST_ASSERT_EQUAL_INT(IBV_WC_REM_ACCESS_ERR, sent());
	expect_untouched(0);
	expect_event(IBV_EVENT_QP_ACCESS_ERR);
	connect_again();
	post_read(SHARE_BIG_BYTES, big_addr);
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, sent());
	TEST_ASSERT_EQUAL_MEMORY(expected, big, sizeof(big));
	TEST_ASSERT_EQUAL_INT(0, ask(SHARE_DEREG, 0));
	post_read(1, big_addr);
	TEST_ASSERT_EQUAL_INT(IBV_WC_REM_ACCESS_ERR, sent());
	expect_event(IBV_EVENT_QP_ACCESS_ERR);
}

void test_an_atomic_that_is_not_aligned(void)
{
	TEST_ASSERT_EQUAL_INT(0, ask(SHARE_FILL, 2));
	their_addr += 4;
	post_atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 0, 0);
	TEST_ASSERT_EQUAL_INT(IBV_WC_REM_INV_REQ_ERR, sent());
	expect_event(IBV_EVENT_QP_REQ_ERR);
	their_addr -= 4;
	connect_again();
	post_atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 0, 0);
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, sent());
	TEST_ASSERT_EQUAL_HEX64(slot_value(0) + 1, their_value());
}

static void set_target_access(unsigned int access)
{
	struct ibv_qp_attr attr = {.qp_access_flags = access, .qp_state = IBV_QPS_RTS};

	TEST_ASSERT_EQUAL_INT(0, B.modify_qp(target, &attr, IBV_QP_STATE | IBV_QP_ACCESS_FLAGS));
}

void test_the_target_grants_no_reads(void)
{
	fill_theirs(1);
	set_target_access(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC);
	post_atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 0, 0);
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, sent());
	post_read(100, big_addr);
	TEST_ASSERT_EQUAL_INT(IBV_WC_REM_INV_REQ_ERR, sent());
	expect_event(IBV_EVENT_QP_REQ_ERR);
	connect_again();
	set_target_access(IBV_ACCESS_REMOTE_READ);
	post_read(100, big_addr);
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, sent());
	post_atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 0, 0);
	TEST_ASSERT_EQUAL_INT(IBV_WC_REM_INV_REQ_ERR, sent());
	expect_event(IBV_EVENT_QP_REQ_ERR);
}

/* The target answers the requests before the refused one, and does not do the requests behind it. */
void test_a_refused_read_among_others(void)
{
	uint64_t value;

	fill_theirs(6);
	TEST_ASSERT_EQUAL_INT(0, ask(SHARE_FILL, 6));
	value = their_value();
	for (unsigned int round = 0; round < 3; round++) {
		memset(big, 0, sizeof(big));
		post_read(50000, big_addr);
		post_atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 0, 0);
		post_read(2, big_addr + SHARE_BIG_BYTES - 1);
		post_atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, 100, 0, 1);
		TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, sent());
		TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, sent());
		TEST_ASSERT_EQUAL_INT(IBV_WC_REM_ACCESS_ERR, sent());
		TEST_ASSERT_EQUAL_INT(IBV_WC_WR_FLUSH_ERR, sent());
		TEST_ASSERT_EQUAL_MEMORY(expected, big, 50000);
		TEST_ASSERT_EQUAL_HEX64(++value, their_value());
		drop_event();
		connect_again();
	}
}

/* The SRQ's process refuses the key. There is no NAK: the target is in ERR, and takes no retransmission. */
void test_a_send_that_invalidates_an_unknown_key(void)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND_WITH_INV, .invalidate_rkey = 0x1234};
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	wr.qp_type.xrc.remote_srqn = their_srq;
	TEST_ASSERT_EQUAL_INT(0, ask(SHARE_POST, 3));
	post_xrc(IBV_WR_SEND, their_srq, 0, 10, 0);
	TEST_ASSERT_EQUAL_INT(0, post_wr(initiator, &wr));
	post_xrc(IBV_WR_SEND, their_srq, 0, 77, 0);
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, sent());
	TEST_ASSERT_EQUAL_INT(IBV_WC_RETRY_EXC_ERR, sent());
	TEST_ASSERT_EQUAL_INT(IBV_WC_WR_FLUSH_ERR, sent());
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, ask(SHARE_POLL, 0));
	TEST_ASSERT_EQUAL_INT(IBV_WC_MW_BIND_ERR, ask(SHARE_POLL, 0));
	TEST_ASSERT_EQUAL_INT(0, B.query_qp(target, &attr, IBV_QP_STATE, &init));
	TEST_ASSERT_EQUAL_INT(IBV_QPS_ERR, attr.qp_state);
	drop_event();
	connect_again();
	post_xrc(IBV_WR_SEND, their_srq, 0, 10, 0);
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, sent());
	TEST_ASSERT_EQUAL_UINT32(10, share_ask(&other, SHARE_POLL, 0)->wc.byte_len);
}

/* --- losses --- */

static void lose(uint8_t opcode, uint64_t skip, uint64_t count)
{
	const struct vb_fault_rule rule = {.action = VB_FAULT_DROP,
					   .opcode_given = true,
					   .opcode = opcode,
					   .skip = skip,
					   .count = count};

	TEST_ASSERT_EQUAL_INT(0, vb_fault_add(NULL, &rule, NULL));
}

/* READs come again, from the middle and from the start; an atomic is done once. */
void test_responses_that_get_lost(void)
{
	uint64_t value;

	TEST_ASSERT_EQUAL_INT(0, ask(SHARE_FILL, 8));
	for (unsigned int round = 0; round < 4; round++) {
		fill_theirs((int)round);
		memset(big, 0, sizeof(big));
		value = their_value();
		lose(SIM_TRANSPORT_XRC | SIM_RC_READ_RESPONSE_MIDDLE, round * 18, 2);
		if (round % 2)
			lose(SIM_TRANSPORT_XRC | SIM_RC_READ_RESPONSE_FIRST, 0, 1);
		lose(SIM_TRANSPORT_XRC | SIM_RC_ATOMIC_ACK, 0, 1 + round % 2);
		post_read(SHARE_BIG_BYTES, big_addr);
		post_atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, 7, 0, 0);
		post_atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, 8, 0, 1);
		for (unsigned int i = 0; i < 3; i++)
			TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, sent());
		vb_fault_clear(NULL);
		TEST_ASSERT_EQUAL_MEMORY(expected, big, sizeof(big));
		TEST_ASSERT_EQUAL_HEX64(value, slot_value(0));
		TEST_ASSERT_EQUAL_HEX64(value + 7, slot_value(1));
		TEST_ASSERT_EQUAL_HEX64(value + 15, their_value());
	}
}

/* --- messages of a process that has not got the requests --- */

/* A message of the proxy about the last request that the target has relayed. */
static struct relayed front_head(enum relayed_kind kind)
{
	struct vb_sim *world = context_of(a.context)->world;
	struct relayed head = {
		.target = target->qp_num,
		.kind = (uint8_t)kind,
		.syndrome = SIM_ACK_CREDIT_NONE,
		.event = IBV_EVENT_QP_FATAL,
	};
	const struct sim_qp *front;

	pthread_mutex_lock(&world->driver.mutex);
	front = sim_table_find(&context_of(a.context)->device->engine->qps, target->qp_num);
	head.epoch = front->relay.epoch;
	head.psn = sim_psn_add(front->resp.psn, SIM_PSN_MASK);
	head.msn = front->resp.msn;
	pthread_mutex_unlock(&world->driver.mutex);
	return head;
}

/* A request waits for the process of the SRQ. Each kind of message comes from another process. */
void test_messages_of_another_process_are_no_answers(void)
{
	static const enum relayed_kind kinds[] = {RELAYED_ANSWER, RELAYED_DATA, RELAYED_EVENT,
						  RELAYED_END};

	TEST_ASSERT_EQUAL_INT(0, ask(SHARE_FILL, 5));
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		const bool atomic = kinds[i] == RELAYED_DATA;
		const uint64_t value = their_value();
		struct relayed head;
		uint8_t bytes[sizeof(head) + sizeof(value)] = {0};
		struct ibv_wc wc;

		TEST_ASSERT_EQUAL_INT(0, ask(SHARE_POST, 1));
		share_stop(&other);
		if (atomic)
			post_atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, 7, 0, 0);
		else
			post_xrc(IBV_WR_SEND, their_srq, 0, 0, 0);
		head = front_head(kinds[i]);
		memcpy(bytes, &head, sizeof(head));
		relay_from(77, bytes, sizeof(head) + (atomic ? sizeof(value) : 0));
		TEST_ASSERT_EQUAL_INT(0, ibv_poll_cq(a.cq, 1, &wc));
		TEST_ASSERT_EQUAL_INT(0, kill(other.pid, SIGCONT));
		TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, sent());
		if (atomic)
			TEST_ASSERT_EQUAL_HEX64(value, slot_value(0));
		else
			TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, ask(SHARE_POLL, 0));
		expect_no_event();
	}
}

/* Forges a message of the process that has the last relayed request. `bytes` follow the head. */
static void answer_as_the_proxy(struct relayed head, const void *bytes, size_t length)
{
	const struct sim_device *device = context_of(a.context)->device->engine;
	const struct sim_qp *front = sim_table_find(&device->qps, target->qp_num);
	uint8_t sent_bytes[sizeof(head) + 1024];

	memcpy(sent_bytes, &head, sizeof(head));
	if (length)
		memcpy(sent_bytes + sizeof(head), bytes, length);
	relay_from(front->relay.holder, sent_bytes, sizeof(head) + length);
}

/* The other process refuses a SEND after the target has answered the atomic before it. */
void test_a_refusal_behind_an_atomic_that_is_answered(void)
{
	struct relayed head;
	uint64_t value;

	use_no_timer(4);
	TEST_ASSERT_EQUAL_INT(0, ask(SHARE_FILL, 3));
	value = their_value();
	share_stop(&other);
	post_atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, 7, 0, 0);
	head = front_head(RELAYED_DATA);
	post_xrc(IBV_WR_SEND, their_srq, 0, 0, 0);
	post_xrc(IBV_WR_SEND, their_srq, 0, 0, 0);
	answer_as_the_proxy(head, &value, sizeof(value));
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, sent());
	TEST_ASSERT_EQUAL_HEX64(value, slot_value(0));
	/* There is no receive for the SENDs. */
	TEST_ASSERT_EQUAL_INT(0, kill(other.pid, SIGCONT));
	await_rnr_nak(0);
	TEST_ASSERT_EQUAL_INT(0, ask(SHARE_POST, 2));
	for (unsigned int i = 0; i < 2; i++) {
		TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, sent());
		TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, ask(SHARE_POLL, 0));
	}
	TEST_ASSERT_EQUAL_HEX64(value + 7, their_value());
}

/* The other process has answered the SEND, and the data of the READ before it is still to come. */
void test_a_message_for_this_process_waits_for_the_data_of_a_read(void)
{
	static const enum ibv_wc_opcode order[] = {IBV_WC_RDMA_READ, IBV_WC_SEND, IBV_WC_RECV,
						   IBV_WC_SEND};
	struct sharing here = {.xrcd = domain};
	struct share_answer answer = {0};
	struct ibv_wc wc;

	share_make_srq(&here, &answer);
	TEST_ASSERT_EQUAL_INT(0, share_post(&here, 1));
	TEST_ASSERT_EQUAL_INT(0, ask(SHARE_POST, 1));
	use_no_timer(4);
	fill_theirs(3);
	share_stop(&other);
	post_read(SHARE_BIG_BYTES, big_addr);
	post_xrc(IBV_WR_SEND, their_srq, 0, 0, 0);
	answer_as_the_proxy(front_head(RELAYED_ANSWER), NULL, 0);
	post_xrc(IBV_WR_SEND, answer.number, 0, 41, 0);
	TEST_ASSERT_EQUAL_INT(0, ibv_poll_cq(a.cq, 1, &wc));
	TEST_ASSERT_EQUAL_INT(0, kill(other.pid, SIGCONT));
	for (unsigned int i = 0; i < sizeof(order) / sizeof(*order); i++) {
		wc = share_wait(a.cq);
		TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, wc.status);
		TEST_ASSERT_EQUAL_INT(order[i], wc.opcode);
	}
	TEST_ASSERT_EQUAL_MEMORY(expected, big, sizeof(big));
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, ask(SHARE_POLL, 0));
}

/* The data of the second READ comes before the first READ is answered. The target drops the data. */
void test_data_of_a_read_behind_another(void)
{
	const struct sim_counters *counters = &context_of(a.context)->device->engine->counters;
	static const uint8_t wrong[1024] = {0xdd};
	struct relayed head;

	use_no_timer(4);
	fill_theirs(3);
	memset(big, 0, sizeof(big));
	share_stop(&other);
	post_read(2000, big_addr);
	post_read(4000, big_addr);
	head = front_head(RELAYED_DATA);
	head.psn = sim_psn_add(head.psn, SIM_PSN_MASK - 2);
	answer_as_the_proxy(head, wrong, sizeof(wrong));
	TEST_ASSERT_EQUAL_INT(0, kill(other.pid, SIGCONT));
	for (unsigned int i = 0; i < 2; i++)
		TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, sent());
	TEST_ASSERT_EQUAL_MEMORY(expected, big, 4000);
	/* The initiator has repeated no request. */
	TEST_ASSERT_EQUAL_UINT64(0, counters->duplicate_requests);
}

/* The other process has one request, which it has not answered. */
void test_answers_that_a_proxy_does_not_give(void)
{
	const struct sim_counters *counters = &context_of(a.context)->device->engine->counters;
	struct relayed head;
	struct ibv_wc wc;

	use_no_timer(4);
	TEST_ASSERT_EQUAL_INT(0, ask(SHARE_POST, 2));
	post_xrc(IBV_WR_SEND, their_srq, 0, 0, 0);
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, sent());
	share_stop(&other);
	post_xrc(IBV_WR_SEND, their_srq, 0, 0, 0);
	head = front_head(RELAYED_ANSWER);
	/* No request with these PSNs waits for an answer. */
	for (uint32_t i = 0; i < 2; i++) {
		head.psn = sim_psn_add(head.psn, i ? 2 : SIM_PSN_MASK);
		head.syndrome = SIM_NAK_INVALID_REQUEST;
		answer_as_the_proxy(head, NULL, 0);
		head.syndrome = SIM_ACK_CREDIT_NONE;
		answer_as_the_proxy(head, NULL, 0);
	}
	/* A proxy sends none of these values of `message`. */
	head = front_head(RELAYED_ANSWER);
	head.syndrome = SIM_AETH_RNR_NAK;
	for (head.message = 3; head.message; head.message++)
		answer_as_the_proxy(head, NULL, 0);
	TEST_ASSERT_EQUAL_UINT64(0, counters->rnr_naks_sent);
	/* A QP raises none of these events. */
	head.kind = RELAYED_EVENT;
	for (head.event = 0; head.event < 64; head.event++)
		if (head.event != IBV_EVENT_QP_FATAL && head.event != IBV_EVENT_QP_REQ_ERR &&
		    head.event != IBV_EVENT_QP_ACCESS_ERR)
			answer_as_the_proxy(head, NULL, 0);
	expect_no_event();
	TEST_ASSERT_EQUAL_INT(0, ibv_poll_cq(a.cq, 1, &wc));
	TEST_ASSERT_EQUAL_INT(0, kill(other.pid, SIGCONT));
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, sent());
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, ask(SHARE_POLL, 0));
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, ask(SHARE_POLL, 0));
}

/* The request asks for 7 packets of a READ that has 2. The proxy sends 2, and then serves the next READ. */
void test_a_read_is_asked_for_beyond_its_end(void)
{
	struct sim_device *device = context_of(a.context)->device->engine;
	struct vb_sim *world = context_of(a.context)->world;
	const struct sim_route route = {.infiniband = true};
	struct relayed head;
	struct sim_packet read;
	uint8_t bytes[SIM_FRAME_BYTES_MAX];
	const struct sim_qp *front;
	size_t length;

	fill_theirs(2);
	post_read(2000, big_addr + SHARE_BIG_BYTES - 2000);
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, sent());
	head = front_head(RELAYED_REQUEST);
	head.access = ACCESS_ALL;
	head.mtu = IBV_MTU_1024;
	head.asked = 7;
	memcpy(head.domain, context_of(a.context)->device->domains->engine->key,
	       sizeof(head.domain));
	read = (struct sim_packet){.opcode = SIM_TRANSPORT_XRC | SIM_RC_READ_REQUEST,
				   .psn = head.psn,
				   .dest_qpn = target->qp_num,
				   .xrc_srqn = their_srq,
				   .remote_addr = big_addr + SHARE_BIG_BYTES - 2000,
				   .rkey = their_big,
				   .dma_bytes = 2000};
	memcpy(bytes, &head, sizeof(head));
	length = sizeof(head) + sim_packet_write(&read, &route, NULL, bytes + sizeof(head), NULL);
	front = sim_table_find(&device->qps, target->qp_num);
	pthread_mutex_lock(&world->driver.mutex);
	TEST_ASSERT_TRUE(sim_net_relay(device->engine, sim_device_port(device, 1),
				       front->relay.holder, bytes, length));
	pthread_mutex_unlock(&world->driver.mutex);
	post_read(2000, big_addr);
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, sent());
	TEST_ASSERT_EQUAL_MEMORY(expected, big, 2000);
	expect_no_event();
}

/* A message of the proxy is dropped if the target's port is down, or if it is longer or shorter than any that a relay
 * sends. */
void test_messages_that_a_port_does_not_take(void)
{
	struct sim_device *device = context_of(a.context)->device->engine;
	uint8_t bytes[SIM_RELAY_BYTES_MAX + 1] = {0};
	struct relayed head;
	uint64_t process;

	post_atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, 7, 0, 0);
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, sent());
	process = ((struct sim_qp *)sim_table_find(&device->qps, target->qp_num))->relay.holder;
	head = front_head(RELAYED_EVENT);
	memcpy(bytes, &head, sizeof(head));
	relay_from(process, bytes, SIM_RELAY_BYTES_MAX + 1);
	relay_from(process, bytes, sizeof(head) - 1);
	expect_no_event();
	TEST_ASSERT_EQUAL_INT(0, vb_sim_port_state(a.context, 1, false));
	drop_event();
	relay_from(process, bytes, SIM_RELAY_BYTES_MAX);
	expect_no_event();
	TEST_ASSERT_EQUAL_INT(0, vb_sim_port_state(a.context, 1, true));
	drop_event();
	relay_from(process, bytes, SIM_RELAY_BYTES_MAX);
	expect_event(IBV_EVENT_QP_FATAL);
}

/* --- ends --- */

void test_the_process_of_the_memory_is_killed(void)
{
	struct sharing here = {.xrcd = domain};
	struct share_answer answer = {0};

	share_make_srq(&here, &answer);
	fill_theirs(1);
	post_read(40000, big_addr);
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, sent());
	share_kill(&other);
	post_read(40000, big_addr);
	TEST_ASSERT_TRUE(sent() != IBV_WC_SUCCESS);
	connect_again();
	/* The target serves this process. */
	TEST_ASSERT_EQUAL_INT(0, share_post(&here, 1));
	post_xrc(IBV_WR_SEND, answer.number, 0, 1001, 0);
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, sent());
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, sent());
}

/* The value of an atomic of the old connection comes while the new one waits for one of the same PSN. */
void test_an_old_value_is_not_taken(void)
{
	uint64_t value;

	fill_theirs(5);
	TEST_ASSERT_EQUAL_INT(0, ask(SHARE_FILL, 5));
	value = their_value();
	share_stop(&other);
	post_atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, 7, 0, 0);
	connect_again();
	post_atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, 8, 0, 0);
	post_read(3000, big_addr);
	TEST_ASSERT_EQUAL_INT(0, kill(other.pid, SIGCONT));
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, sent());
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, sent());
	TEST_ASSERT_EQUAL_HEX64(value + 7, slot_value(0));
	TEST_ASSERT_EQUAL_HEX64(value + 15, their_value());
	TEST_ASSERT_EQUAL_MEMORY(expected, big, 3000);
}
