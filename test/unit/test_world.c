/* SPDX-License-Identifier: MIT */
#include "test/support/engine.h"
#include "unity.h"

static struct engine engine;

void setUp(void)
{
}

void tearDown(void)
{
	engine_close(&engine);
}

/* Does a run with faults. Returns the hash of all frames and their times. */
static uint64_t run(uint64_t seed)
{
	static const enum sim_fault_action actions[] = {SIM_FAULT_DROP, SIM_FAULT_CORRUPT,
							SIM_FAULT_DUPLICATE, SIM_FAULT_DELAY};
	uint64_t hash;

	engine_open(&engine, &(struct engine_config){.seed = seed, .delay_ns = 700});
	for (unsigned int i = 0; i < 4; i++) {
		const struct sim_fault_rule rule = {
			.action = actions[i], .chance = UINT32_MAX / 20, .delay_ns = 3000};
		unsigned int id;

		TEST_ASSERT_EQUAL_INT(0, sim_fault_add(engine.sim, &rule, &id));
	}
	for (unsigned int i = 0; i < 30; i++) {
		struct engine_send send = {.opcode = i % 2 ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ,
					   .bytes = 100 + 50 * i};

		/* Packets contain addresses, which must not depend on where the memory is. */
		TEST_ASSERT_EQUAL_INT(0, engine_send(&engine, i % 2, &send));
	}
	engine_settle(&engine, SIM_NEVER - 1);
	hash = 0;
	for (unsigned int i = 0; i < engine.frame_count; i++) {
		const struct engine_frame *frame = &engine.frames[i];
		const uint64_t words[] = {frame->now_ns,	 frame->frame_bytes,
					  frame->packet.psn,	 frame->packet.opcode,
					  (uint64_t)frame->lost, (uint64_t)frame->decoded};

		for (unsigned int j = 0; j < 6; j++)
			hash = (hash ^ words[j]) * UINT64_C(0x100000001b3);
	}
	engine_close(&engine);
	return hash;
}

void test_same_seed_same_packets(void)
{
	uint64_t first = run(42);

	TEST_ASSERT_EQUAL_HEX64(first, run(42));
	TEST_ASSERT_NOT_EQUAL(first, run(43));
}

/* SENDs have no addresses, so all their bytes are the same. */
void test_same_seed_same_bytes(void)
{
	uint64_t hashes[2];

	for (unsigned int i = 0; i < 2; i++) {
		engine_open(&engine, &(struct engine_config){.seed = 5});
		for (uint64_t j = 0; j < 20; j++)
			TEST_ASSERT_EQUAL_INT(0, engine_recv(&engine, 1, j, 0, 4000));
		for (uint32_t j = 0; j < 20; j++)
			TEST_ASSERT_EQUAL_INT(
				0, engine_send(&engine, 0,
					       &(struct engine_send){.opcode = IBV_WR_SEND,
								     .bytes = j * 100}));
		sim_engine_run(engine.sim);
		hashes[i] = engine.bytes_hash;
		TEST_ASSERT_GREATER_THAN(20u, engine.frame_count);
		engine_close(&engine);
	}
	TEST_ASSERT_EQUAL_HEX64(hashes[0], hashes[1]);
}

/* The first outputs of Vigna's reference implementation of splitmix64 with seed 0. */
void test_random_numbers(void)
{
	engine_open_bare(&engine, 0);
	TEST_ASSERT_EQUAL_HEX64(UINT64_C(0xe220a8397b1dcdaf), sim_random(engine.sim));
	TEST_ASSERT_EQUAL_HEX64(UINT64_C(0x6e789e6aa1b965f4), sim_random(engine.sim));
	TEST_ASSERT_EQUAL_HEX64(UINT64_C(0x06c45d188009454f), sim_random(engine.sim));
}

/* The requester sends all it can before the responder answers. */
void test_requesters_run_before_responders(void)
{
	engine_open(&engine, &(struct engine_config){0});
	for (unsigned int i = 0; i < 3; i++) {
		const struct engine_send send = {.opcode = IBV_WR_RDMA_WRITE, .bytes = 8};

		TEST_ASSERT_EQUAL_INT(0, engine_send(&engine, 0, &send));
		TEST_ASSERT_EQUAL_INT(0, engine_send(&engine, 1, &send));
	}
	sim_engine_run(engine.sim);
	TEST_ASSERT_EQUAL_UINT(8, engine.frame_count);
	for (unsigned int i = 0; i < 6; i++)
		TEST_ASSERT_EQUAL_HEX8(SIM_RC_WRITE_ONLY, engine.frames[i].packet.opcode);
	TEST_ASSERT_EQUAL_HEX8(SIM_RC_ACK, engine.frames[6].packet.opcode);
	TEST_ASSERT_EQUAL_HEX8(SIM_RC_ACK, engine.frames[7].packet.opcode);
}

void test_posting_runs_nothing(void)
{
	const struct engine_send send = {.opcode = IBV_WR_RDMA_WRITE, .bytes = 8};

	engine_open(&engine, &(struct engine_config){0});
	sim_engine_run(engine.sim);
	TEST_ASSERT_TRUE(sim_engine_quiet(engine.sim));
	TEST_ASSERT_EQUAL_INT(0, engine_send(&engine, 0, &send));
	TEST_ASSERT_EQUAL_UINT(0, engine.frame_count);
	TEST_ASSERT_FALSE(sim_engine_quiet(engine.sim));
	sim_engine_run(engine.sim);
	TEST_ASSERT_TRUE(sim_engine_quiet(engine.sim));
}

static uint64_t fired_ns[3];
static unsigned int fired;

static void note(struct sim_timer *timer)
{
	(void)timer;
	fired_ns[fired++] = sim_engine_now_ns(engine.sim);
}

/* One advance over several timers fires each at its own time. */
void test_advance_does_each_thing_at_its_time(void)
{
	static const uint64_t deadlines_ns[] = {300, 100, 200};
	struct sim_timer timers[3];

	engine_open_bare(&engine, 1);
	fired = 0;
	for (unsigned int i = 0; i < 3; i++) {
		TEST_ASSERT_EQUAL_INT(0, sim_clock_reserve(&engine.sim->clock));
		sim_timer_init(&timers[i], note);
		sim_timer_arm(&engine.sim->clock, &timers[i], deadlines_ns[i]);
	}
	TEST_ASSERT_EQUAL_UINT64(100, sim_engine_next_ns(engine.sim));
	sim_engine_advance(engine.sim, 250);
	TEST_ASSERT_EQUAL_UINT(2, fired);
	TEST_ASSERT_EQUAL_UINT64(250, sim_engine_now_ns(engine.sim));
	sim_engine_advance(engine.sim, 50); /* the clock never goes back */
	TEST_ASSERT_EQUAL_UINT64(250, sim_engine_now_ns(engine.sim));
	sim_engine_advance(engine.sim, 1000);
	TEST_ASSERT_EQUAL_UINT(3, fired);
	for (unsigned int i = 0; i < 3; i++)
		TEST_ASSERT_EQUAL_UINT64(100 * (i + 1), fired_ns[i]);
	TEST_ASSERT_EQUAL_UINT64(SIM_NEVER, sim_engine_next_ns(engine.sim));
}
