/* SPDX-License-Identifier: MIT */
/*
 * Two RC QPs exchange operations of all kinds over a link that loses, repeats, corrupts and delays
 * packets. Every WR must complete once, in order, with success; every byte must be right; no
 * operation may be executed twice; and without faults the engine must come to rest.
 * VERBENA_STORM_SEED sets the first seed, and VERBENA_STORM_COUNT the number of runs.
 */
#include "test/support/engine.h"
#include "test/unit/seed.h"
#include "unity.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define SEEDS	    500u
#define OPERATIONS  40u /* of each side */
#define OUTSTANDING 14u
#define SLOT_BYTES  4096u
#define SOURCE	    0u /* constant data, 64 KiB */
#define RECEIVED    (64u * 1024)
#define READ_INTO   (128u * 1024)
#define WRITTEN	    (192u * 1024)
#define COUNTER	    (252u * 1024)
#define FOUND	    (253u * 1024) /* the values that atomics returned */
#define RECEIVES    16u
#define STEPS_MAX   200000u
#define SECONDS_MAX 30u

struct operation {
	enum ibv_wr_opcode opcode;
	uint32_t offset; /* in the SOURCE of this side or, for a READ, of the other */
	uint32_t bytes;
	uint64_t found; /* the value that an atomic returned */
	bool signalled;
};

struct sender {
	struct operation operations[OPERATIONS];
	unsigned int posted;
	unsigned int ended;
	uint64_t atomics;		   /* posted */
	unsigned int messages[OPERATIONS]; /* operations that take a receive, in order */
	unsigned int message_count;
	unsigned int messages_seen;   /* by the other side */
	unsigned int receives_posted; /* by this side */
};

static struct engine engine;
static struct sender senders[2];
static struct sim_counters total; /* of all runs: each kind of fault must have happened */
static uint64_t random_state;
static char failure[256];

void setUp(void)
{
	signal(SIGALRM, on_alarm);
	alarm(SECONDS_MAX);
}

void tearDown(void)
{
	alarm(0);
	engine_close(&engine);
}

static uint32_t pick(uint32_t below)
{
	return (uint32_t)(engine_random(&random_state) % below);
}

#define CHECK(condition, ...)                                                               \
	do {                                                                                \
		if (!(condition)) {                                                         \
			int at = snprintf(failure, sizeof(failure),                         \
					  "seed %llu: ", (unsigned long long)running_seed); \
			snprintf(failure + at, sizeof(failure) - (size_t)at, __VA_ARGS__);  \
			TEST_FAIL_MESSAGE(failure);                                         \
		}                                                                           \
	} while (0)

static void add_rule(enum sim_fault_action action, uint32_t percent_max, uint64_t delay_ns)
{
	const struct sim_fault_rule rule = {
		.action = action,
		.chance = (1 + pick(percent_max)) * (UINT32_MAX / 100),
		.delay_ns = delay_ns,
	};
	unsigned int id;

	CHECK(sim_fault_add(engine.sim, &rule, &id) == 0, "no place for a rule");
}

static void add_faults(void)
{
	if (pick(4))
		add_rule(SIM_FAULT_DROP, 4, 0);
	if (pick(3) == 0)
		add_rule(SIM_FAULT_CORRUPT, 3, 0);
	if (pick(2))
		add_rule(SIM_FAULT_DUPLICATE, 10, 0);
	if (pick(2))
		add_rule(SIM_FAULT_DELAY, 5, 1 + pick(50000));
	if (pick(4) == 0)
		add_rule(SIM_FAULT_DELAY, 2, 1 + pick(5000000)); /* beyond the ack timeout */
}

static void open_storm(void)
{
	static const uint64_t rates[] = {0, 0, UINT64_C(2000000000), UINT64_C(10000000000),
					 UINT64_C(100000000000)};
	const struct engine_config config = {
		.mtu = IBV_MTU_256 + pick(3),
		.seed = running_seed,
		.max_wr = 32,
		.psn = {1 + pick(0xffffff), 0xffffff - pick(200)},
		.timeout = (uint8_t)(9 + pick(3)),
		.rnr_retry = 7,
		.min_rnr_timer = (uint8_t)(1 + pick(8)),
		.reads = (uint8_t)(1 + pick(6)),
		.quiet = true,
		.delay_ns = pick(3) ? pick(20000) : 0,
		.bits_per_second = rates[pick(5)],
	};

	engine_open(&engine, &config);
	memset(senders, 0, sizeof(senders));
	for (unsigned int side = 0; side < 2; side++)
		for (uint32_t i = 0; i < 64 * 1024; i += 8) {
			uint64_t word = engine_random(&random_state);

			memcpy(engine.sides[side].memory + SOURCE + i, &word, 8);
		}
	add_faults();
}

static void post_receive(unsigned int side)
{
	uint32_t n = senders[side].receives_posted++;

	CHECK(engine_recv(&engine, side, n, RECEIVED + n % RECEIVES * SLOT_BYTES, SLOT_BYTES) == 0,
	      "a receive was not taken");
}

static bool takes_receive(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM ||
	       opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static bool is_atomic(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

static uint32_t pick_bytes(void)
{
	static const uint32_t edges[] = {0, 1, 255, 256, 257, 512, 1024, 1025, 4095, 4096};

	return pick(3) ? pick(SLOT_BYTES + 1) : edges[pick(10)];
}

static void post_operation(unsigned int side)
{
	static const enum ibv_wr_opcode opcodes[] = {
		IBV_WR_SEND,	   IBV_WR_SEND_WITH_IMM,
		IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM,
		IBV_WR_RDMA_READ,  IBV_WR_ATOMIC_CMP_AND_SWP,
		IBV_WR_RDMA_READ,  IBV_WR_ATOMIC_FETCH_AND_ADD,
	};
	struct sender *sender = &senders[side];
	uint32_t n = sender->posted++;
	struct operation *operation = &sender->operations[n];
	uint32_t slot = n % OUTSTANDING * SLOT_BYTES;
	struct engine_send send = {.wr_id = n, .imm = n};

	operation->opcode = opcodes[pick(8)];
	operation->offset = pick(60 * 1024);
	operation->bytes = is_atomic(operation->opcode) ? 8 : pick_bytes();
	operation->signalled = pick(3) || n % 4 == 3 || n + 1 == OPERATIONS;
	send.opcode = operation->opcode;
	send.bytes = operation->bytes;
	send.unsignalled = !operation->signalled;
	if (pick(5) == 0)
		send.flags = IBV_SEND_FENCE;
	send.offset = SOURCE + operation->offset;
	send.remote_offset = WRITTEN + slot;
	if (operation->opcode == IBV_WR_RDMA_READ) {
		send.offset = READ_INTO + slot;
		send.remote_offset = SOURCE + operation->offset;
	} else if (is_atomic(operation->opcode)) {
		send.offset = FOUND + n % OUTSTANDING * 8;
		send.remote_offset = COUNTER;
		operation->found = sender->atomics++;
		send.compare_add =
			operation->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ? 1 : operation->found;
		send.swap = operation->found + 1;
	}
	if (takes_receive(operation->opcode))
		sender->messages[sender->message_count++] = n;
	CHECK(engine_send(&engine, side, &send) == 0, "a send was not taken");
}

/* Checks the data that the operation has written, here or at the other side. */
static void check_effect(unsigned int side, unsigned int n)
{
	const struct operation *operation = &senders[side].operations[n];
	const uint8_t *own = engine.sides[side].memory;
	const uint8_t *other = engine.sides[!side].memory;
	uint32_t slot = n % OUTSTANDING * SLOT_BYTES;

	switch (operation->opcode) {
	case IBV_WR_RDMA_READ:
		CHECK(!memcmp(own + READ_INTO + slot, other + SOURCE + operation->offset,
			      operation->bytes),
		      "side %u: READ %u has wrong bytes", side, n);
		break;
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		CHECK(!memcmp(other + WRITTEN + slot, own + SOURCE + operation->offset,
			      operation->bytes),
		      "side %u: WRITE %u has wrong bytes", side, n);
		break;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		CHECK(!memcmp(own + FOUND + n % OUTSTANDING * 8, &operation->found, 8),
		      "side %u: atomic %u found something else", side, n);
		break;
	default:
		break;
	}
}

static void poll_sends(unsigned int side)
{
	struct sender *sender = &senders[side];
	struct ibv_wc wc;

	while (engine_poll(engine.sides[side].send_cq, &wc)) {
		CHECK(wc.status == IBV_WC_SUCCESS, "side %u: WR %llu ends with status %d", side,
		      (unsigned long long)wc.wr_id, wc.status);
		CHECK(wc.wr_id < sender->posted && wc.wr_id >= sender->ended,
		      "side %u: WR %llu ends behind %u", side, (unsigned long long)wc.wr_id,
		      sender->ended);
		for (; sender->ended <= wc.wr_id; sender->ended++) {
			CHECK(sender->ended == wc.wr_id ||
				      !sender->operations[sender->ended].signalled,
			      "side %u: WR %u has no completion", side, sender->ended);
			check_effect(side, sender->ended);
		}
	}
}

static void poll_receives(unsigned int side)
{
	struct sender *sender = &senders[!side];
	struct ibv_wc wc;

	while (engine_poll(engine.sides[side].recv_cq, &wc)) {
		unsigned int seen = sender->messages_seen++;
		const struct operation *operation;

		CHECK(wc.status == IBV_WC_SUCCESS, "side %u: receive %llu ends with status %d",
		      side, (unsigned long long)wc.wr_id, wc.status);
		CHECK(wc.wr_id == seen && seen < sender->message_count,
		      "side %u: receive %llu instead of %u", side, (unsigned long long)wc.wr_id,
		      seen);
		operation = &sender->operations[sender->messages[seen]];
		CHECK(wc.byte_len == operation->bytes, "side %u: receive %u has %u bytes", side,
		      seen, wc.byte_len);
		if (operation->opcode != IBV_WR_SEND)
			CHECK(be32toh(wc.imm_data) == sender->messages[seen],
			      "side %u: receive %u has another's immediate", side, seen);
		if (operation->opcode != IBV_WR_RDMA_WRITE_WITH_IMM)
			CHECK(!memcmp(engine.sides[side].memory + RECEIVED +
					      seen % RECEIVES * SLOT_BYTES,
				      engine.sides[!side].memory + SOURCE + operation->offset,
				      operation->bytes),
			      "side %u: receive %u has wrong bytes", side, seen);
		post_receive(side);
	}
}

static bool finished(void)
{
	for (unsigned int side = 0; side < 2; side++)
		if (senders[side].ended != OPERATIONS ||
		    senders[side].messages_seen != senders[side].message_count)
			return false;
	return true;
}

static void check_rest(void)
{
	engine_settle(&engine, SIM_NEVER - 1);
	CHECK(sim_engine_quiet(engine.sim) && sim_engine_next_ns(engine.sim) == SIM_NEVER,
	      "not at rest");
	for (unsigned int side = 0; side < 2; side++) {
		uint64_t counter;
		struct ibv_wc wc;

		memcpy(&counter, engine.sides[!side].memory + COUNTER, 8);
		CHECK(counter == senders[side].atomics,
		      "side %u: %llu atomics were executed as %llu", side,
		      (unsigned long long)senders[side].atomics, (unsigned long long)counter);
		CHECK(engine.sides[side].qp->state == IBV_QPS_RTS, "side %u is in state %u", side,
		      engine.sides[side].qp->state);
		CHECK(!engine_poll(engine.sides[side].send_cq, &wc) &&
			      !engine_poll(engine.sides[side].recv_cq, &wc),
		      "side %u: one completion too many", side);
		CHECK(engine.sides[side].qp->resp.resources_pending == 0,
		      "side %u: a response is pending", side);
	}
	CHECK(engine.event_count == 0 ||
		      engine_events(&engine, IBV_EVENT_COMM_EST) == engine.event_count,
	      "an event");
}

static void storm(uint64_t seed)
{
	unsigned int steps = 0;

	run_seed(seed);
	random_state = seed;
	open_storm();
	for (unsigned int side = 0; side < 2; side++)
		for (unsigned int i = 0; i < 1 + pick(6); i++)
			post_receive(side);
	while (!finished()) {
		uint64_t next_ns;

		for (unsigned int side = 0; side < 2; side++) {
			struct sender *sender = &senders[side];

			while (sender->posted < OPERATIONS &&
			       sender->posted - sender->ended < OUTSTANDING && pick(4))
				post_operation(side);
		}
		if (senders[0].ended + senders[1].ended >= OPERATIONS)
			sim_fault_clear(engine.sim);
		sim_engine_run(engine.sim);
		next_ns = sim_engine_next_ns(engine.sim);
		if (next_ns != SIM_NEVER)
			sim_engine_advance(engine.sim, next_ns);
		for (unsigned int side = 0; side < 2; side++) {
			poll_sends(side);
			poll_receives(side);
		}
		CHECK(++steps < STEPS_MAX, "no progress: %u and %u of %u ended", senders[0].ended,
		      senders[1].ended, OPERATIONS);
	}
	sim_fault_clear(engine.sim);
	check_rest();
	for (unsigned int side = 0; side < 2; side++) {
		const struct sim_counters *counters = &engine.sides[side].device->counters;

		total.lost_packets += counters->lost_packets;
		total.dropped_packets += counters->dropped_packets;
		total.duplicate_requests += counters->duplicate_requests;
		total.rnr_naks_received += counters->rnr_naks_received;
		total.sequence_naks_received += counters->sequence_naks_received;
		total.ack_timeouts += counters->ack_timeouts;
	}
	engine_close(&engine);
}

static uint64_t setting(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, 0) : otherwise;
}

void test_storm(void)
{
	uint64_t first = setting("VERBENA_STORM_SEED", 1);
	uint64_t count = setting("VERBENA_STORM_COUNT", SEEDS);

	printf("storm: seeds %llu to %llu\n", (unsigned long long)first,
	       (unsigned long long)(first + count - 1));
	for (uint64_t seed = first; seed < first + count; seed++)
		storm(seed);
	if (count < 100)
		return;
	/* Every kind of fault has happened. */
	TEST_ASSERT_GREATER_THAN(100u, total.lost_packets);
	TEST_ASSERT_GREATER_THAN(100u, total.dropped_packets);
	TEST_ASSERT_GREATER_THAN(100u, total.duplicate_requests);
	TEST_ASSERT_GREATER_THAN(100u, total.rnr_naks_received);
	TEST_ASSERT_GREATER_THAN(100u, total.sequence_naks_received);
	TEST_ASSERT_GREATER_THAN(100u, total.ack_timeouts);
}
