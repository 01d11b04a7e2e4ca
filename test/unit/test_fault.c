/* SPDX-License-Identifier: MIT */
#include "test/support/engine.h"
#include "unity.h"

#include <errno.h>

static struct engine engine;

void setUp(void)
{
	engine_open(&engine, &(struct engine_config){.seed = 7});
}

void tearDown(void)
{
	engine_close(&engine);
}

static unsigned int add(const struct sim_fault_rule *rule)
{
	unsigned int id = 0;

	TEST_ASSERT_EQUAL_INT(0, sim_fault_add(engine.sim, rule, &id));
	TEST_ASSERT_NOT_EQUAL(0, id);
	return id;
}

static enum sim_fault_action offer(uint8_t opcode, uint32_t psn)
{
	struct sim_packet packet = engine_packet(&engine, opcode, psn);
	const struct sim_fault_rule *rule =
		sim_fault_offer(engine.sim, &engine.sides[0].ah->path, &packet);

	return rule ? rule->action : SIM_FAULT_NONE;
}

static void write_bytes(uint32_t bytes)
{
	const struct engine_send send = {.opcode = IBV_WR_RDMA_WRITE, .bytes = bytes};

	memset(engine.sides[0].memory, 0x5a, bytes);
	TEST_ASSERT_EQUAL_INT(0, engine_send(&engine, 0, &send));
	sim_engine_run(engine.sim);
}

static bool done(void)
{
	struct ibv_wc wc;

	if (!engine_poll(engine.sides[0].send_cq, &wc))
		return false;
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, wc.status);
	return true;
}

#define ANY_TRANSPORT(value)                                                       \
	{                                                                          \
		.action = SIM_FAULT_DROP, .opcode_given = true, .opcode = (value), \
		.any_transport = true,                                             \
	}

void test_conditions(void)
{
	static const struct {
		struct sim_fault_rule rule;
		unsigned int opcode;
		uint32_t psn;
		bool fires;
	} rows[] = {
		{{.action = SIM_FAULT_DROP}, 4, 1, true},
		{{.action = SIM_FAULT_DROP, .opcode_given = true, .opcode = 4}, 4, 1, true},
		{{.action = SIM_FAULT_DROP, .opcode_given = true, .opcode = 4}, 0, 1, false},
		{{.action = SIM_FAULT_DROP, .opcode_given = true, .opcode = 0}, 0, 1, true},
		{{.action = SIM_FAULT_DROP, .opcode_given = true, .opcode = 0}, 4, 1, false},
		{{.action = SIM_FAULT_DROP, .opcode_given = true, .opcode = 4}, 0x64, 1, false},
		{ANY_TRANSPORT(4), 0x64, 1, true},
		{ANY_TRANSPORT(0xa4), 4, 1, true},
		{ANY_TRANSPORT(4), 0x65, 1, false},
		{ANY_TRANSPORT(1), 0x21, 1, true},
		{ANY_TRANSPORT(1), SIM_CNP, 1, false},
		{{.action = SIM_FAULT_DROP, .psn_given = true, .psn = 0}, 4, 0, true},
		{{.action = SIM_FAULT_DROP, .psn_given = true, .psn = 0}, 4, 1, false},
		{{.action = SIM_FAULT_DROP, .dest_qpn = 5}, 4, 1, false},
	};

	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		add(&rows[i].rule);
		TEST_ASSERT_EQUAL_INT(rows[i].fires ? SIM_FAULT_DROP : SIM_FAULT_NONE,
				      offer((uint8_t)rows[i].opcode, rows[i].psn));
		sim_fault_clear(engine.sim);
	}
	add(&(struct sim_fault_rule){.action = SIM_FAULT_DROP, .from = engine.sides[1].device});
	TEST_ASSERT_EQUAL_INT(SIM_FAULT_NONE, offer(4, 0));
}

void test_skip_and_count(void)
{
	unsigned int id =
		add(&(struct sim_fault_rule){.action = SIM_FAULT_DROP, .skip = 2, .count = 3});

	for (unsigned int i = 0; i < 10; i++)
		TEST_ASSERT_EQUAL_INT(i >= 2 && i < 5 ? SIM_FAULT_DROP : SIM_FAULT_NONE,
				      offer(4, i));
	TEST_ASSERT_EQUAL_UINT64(3, sim_fault_hits(engine.sim, id));
}

/* A rule does not count packets that it does not match. */
void test_skip_counts_matches_only(void)
{
	add(&(struct sim_fault_rule){
		.action = SIM_FAULT_DROP, .opcode_given = true, .opcode = 4, .skip = 1});
	TEST_ASSERT_EQUAL_INT(SIM_FAULT_NONE, offer(5, 0));
	TEST_ASSERT_EQUAL_INT(SIM_FAULT_NONE, offer(4, 0));
	TEST_ASSERT_EQUAL_INT(SIM_FAULT_DROP, offer(4, 0));
}

void test_chance_is_about_what_it_says_and_the_seeds(void)
{
	uint8_t outcomes[2][4000];
	unsigned int hits = 0;

	for (unsigned int run = 0; run < 2; run++) {
		tearDown();
		setUp();
		add(&(struct sim_fault_rule){.action = SIM_FAULT_DROP, .chance = UINT32_MAX / 4});
		for (unsigned int i = 0; i < 4000; i++)
			outcomes[run][i] = (uint8_t)offer(4, i);
	}
	TEST_ASSERT_EQUAL_MEMORY(outcomes[0], outcomes[1], sizeof(outcomes[0]));
	for (unsigned int i = 0; i < 4000; i++)
		hits += outcomes[0][i] == SIM_FAULT_DROP;
	TEST_ASSERT_TRUE(hits > 850 && hits < 1150);
	tearDown();
	engine_open(&engine, &(struct engine_config){.seed = 8});
	add(&(struct sim_fault_rule){.action = SIM_FAULT_DROP, .chance = UINT32_MAX / 4});
	for (unsigned int i = 0; i < 4000; i++)
		outcomes[1][i] = (uint8_t)offer(4, i);
	TEST_ASSERT_TRUE(memcmp(outcomes[0], outcomes[1], sizeof(outcomes[0])) != 0);
}

/*
 * The first rule that matches fires. A rule that has fired `count` times leaves the packet to the
 * next.
 */
void test_order(void)
{
	unsigned int first = add(&(struct sim_fault_rule){.action = SIM_FAULT_DELAY, .count = 1});
	unsigned int second =
		add(&(struct sim_fault_rule){.action = SIM_FAULT_CORRUPT, .count = 1});
	unsigned int third = add(&(struct sim_fault_rule){.action = SIM_FAULT_DROP});

	TEST_ASSERT_TRUE(first != second && second != third && first != third);
	TEST_ASSERT_EQUAL_INT(SIM_FAULT_DELAY, offer(4, 0));
	TEST_ASSERT_EQUAL_INT(SIM_FAULT_CORRUPT, offer(4, 0));
	TEST_ASSERT_EQUAL_INT(SIM_FAULT_DROP, offer(4, 0));
}

void test_remove_keeps_the_others(void)
{
	unsigned int first = add(&(struct sim_fault_rule){.action = SIM_FAULT_DELAY, .count = 1});
	unsigned int second = add(&(struct sim_fault_rule){.action = SIM_FAULT_CORRUPT, .skip = 1});
	unsigned int third = add(&(struct sim_fault_rule){.action = SIM_FAULT_DROP});
	unsigned int fourth;

	TEST_ASSERT_EQUAL_INT(SIM_FAULT_DELAY, offer(4, 0));
	TEST_ASSERT_EQUAL_INT(SIM_FAULT_DROP, offer(4, 0));
	TEST_ASSERT_EQUAL_INT(0, sim_fault_remove(engine.sim, first));
	TEST_ASSERT_EQUAL_INT(ENOENT, sim_fault_remove(engine.sim, first));
	TEST_ASSERT_EQUAL_INT(ENOENT, sim_fault_remove(engine.sim, 0));
	TEST_ASSERT_EQUAL_INT(SIM_FAULT_CORRUPT, offer(4, 0));
	TEST_ASSERT_EQUAL_UINT64(1, sim_fault_hits(engine.sim, third));
	TEST_ASSERT_EQUAL_UINT64(1, sim_fault_hits(engine.sim, second));
	fourth = add(&(struct sim_fault_rule){.action = SIM_FAULT_DROP});
	TEST_ASSERT_NOT_EQUAL(first, fourth);
}

void test_places_end(void)
{
	const struct sim_fault_rule rule = {.action = SIM_FAULT_DROP};
	unsigned int id;

	for (unsigned int i = 0; i < SIM_FAULT_RULES_MAX; i++)
		add(&rule);
	TEST_ASSERT_EQUAL_INT(ENOSPC, sim_fault_add(engine.sim, &rule, &id));
	sim_fault_clear(engine.sim);
	TEST_ASSERT_EQUAL_INT(SIM_FAULT_NONE, offer(4, 0));
	add(&rule);
}

void test_dropped_packet_is_sent_again(void)
{
	add(&(struct sim_fault_rule){
		.action = SIM_FAULT_DROP, .psn_given = true, .psn = ENGINE_PSN + 1, .count = 1});
	write_bytes(1000);
	TEST_ASSERT_TRUE(done());
	TEST_ASSERT_EQUAL_HEX8(0x5a, engine.sides[1].memory[999]);
	TEST_ASSERT_EQUAL_UINT64(1, engine.sides[0].device->counters.lost_packets);
	TEST_ASSERT_TRUE(engine.frames[1].lost);
	TEST_ASSERT_EQUAL_INT(SIM_DECODE_OK, engine.frames[1].decoded);
	TEST_ASSERT_EQUAL_UINT64(1, engine.sides[0].device->counters.sequence_naks_received);
}

/*
 * The trace has a corrupted frame as it was on the wire; the receiver drops it because of its
 * ICRC.
 */
void test_corrupted_packet_fails_its_icrc(void)
{
	for (unsigned int i = 0; i < 200; i++) {
		tearDown();
		engine_open(&engine, &(struct engine_config){.seed = i});
		add(&(struct sim_fault_rule){.action = SIM_FAULT_CORRUPT,
					     .psn_given = true,
					     .psn = ENGINE_PSN,
					     .count = 1});
		write_bytes(30);
		TEST_ASSERT_FALSE(done());
		TEST_ASSERT_EQUAL_INT(SIM_DECODE_BAD_ICRC, engine.frames[0].decoded);
		TEST_ASSERT_EQUAL_UINT64(1, engine.sides[1].device->counters.dropped_packets);
		engine_settle(&engine, SIM_NEVER - 1);
		TEST_ASSERT_TRUE(done());
	}
}

void test_duplicated_packet_is_executed_once(void)
{
	const struct engine_send send = {
		.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .bytes = 8, .compare_add = 3};
	uint64_t value;

	add(&(struct sim_fault_rule){.action = SIM_FAULT_DUPLICATE});
	TEST_ASSERT_EQUAL_INT(0, engine_send(&engine, 0, &send));
	sim_engine_run(engine.sim);
	TEST_ASSERT_TRUE(done());
	memcpy(&value, engine.sides[1].memory, 8);
	TEST_ASSERT_EQUAL_UINT64(3, value);
	TEST_ASSERT_EQUAL_UINT(2, engine_count(&engine, SIM_RC_FETCH_ADD));
	TEST_ASSERT_EQUAL_UINT64(1, engine.sides[1].device->counters.duplicate_requests);
}

void test_delayed_packet_comes_later(void)
{
	add(&(struct sim_fault_rule){.action = SIM_FAULT_DELAY, .delay_ns = 5000, .count = 1});
	write_bytes(30);
	TEST_ASSERT_FALSE(done());
	TEST_ASSERT_EQUAL_UINT64(5000, sim_engine_next_ns(engine.sim));
	sim_engine_advance(engine.sim, 4999);
	TEST_ASSERT_EQUAL_HEX8(0, engine.sides[1].memory[0]);
	sim_engine_advance(engine.sim, 5000);
	TEST_ASSERT_TRUE(done());
	TEST_ASSERT_EQUAL_HEX8(0x5a, engine.sides[1].memory[0]);
}

/* A delayed packet has the bytes of the time when it was sent. */
void test_delayed_packet_owns_its_bytes(void)
{
	add(&(struct sim_fault_rule){.action = SIM_FAULT_DELAY, .delay_ns = 5000, .count = 1});
	write_bytes(30);
	memset(engine.sides[0].memory, 0, 30);
	sim_engine_advance(engine.sim, 5000);
	TEST_ASSERT_EQUAL_HEX8(0x5a, engine.sides[1].memory[29]);
}

void test_a_removed_rule_has_no_hits(void)
{
	const unsigned int kept = add(
		&(struct sim_fault_rule){.action = SIM_FAULT_DROP, .psn = 1, .psn_given = true});
	const unsigned int gone = add(&(struct sim_fault_rule){.action = SIM_FAULT_DROP});

	TEST_ASSERT_EQUAL_INT(SIM_FAULT_DROP, offer(SIM_RC_SEND_ONLY, 1));
	TEST_ASSERT_EQUAL_INT(SIM_FAULT_DROP, offer(SIM_RC_SEND_ONLY, 2));
	TEST_ASSERT_EQUAL_UINT64(1, sim_fault_hits(engine.sim, gone));
	TEST_ASSERT_EQUAL_INT(0, sim_fault_remove(engine.sim, gone));
	TEST_ASSERT_EQUAL_UINT64(0, sim_fault_hits(engine.sim, gone));
	TEST_ASSERT_EQUAL_UINT64(1, sim_fault_hits(engine.sim, kept));
}

/* A corrupt frame takes the time of its link, as any other. */
void test_corrupt_frame_comes_after_the_delay(void)
{
	tearDown();
	engine_open(&engine, &(struct engine_config){.seed = 7, .delay_ns = 1000});
	add(&(struct sim_fault_rule){.action = SIM_FAULT_CORRUPT, .count = 1});
	write_bytes(30);
	sim_engine_advance(engine.sim, 999);
	TEST_ASSERT_EQUAL_UINT64(0, engine.sides[1].device->counters.received_packets);
	sim_engine_advance(engine.sim, 1000);
	TEST_ASSERT_EQUAL_UINT64(1, engine.sides[1].device->counters.discarded[SIM_DISCARD_ICRC]);
}

/* A rule that changes a field or a place leaves packets alone that do not have it. */
void test_rule_matches_packets_with_its_field(void)
{
	static const struct {
		struct sim_fault_change change;
		bool fires;
	} rows[] = {
		{{.place = SIM_FAULT_FIELD, .field = SIM_FIELD_PSN}, true},
		{{.place = SIM_FAULT_FIELD, .field = SIM_FIELD_SYNDROME}, false},
		{{.place = SIM_FAULT_FIELD, .field = SIM_FIELD_RKEY}, false},
		/* Ethernet, IPv4, UDP, BTH and ICRC, without payload. */
		{{.place = SIM_FAULT_FRAME_BYTE, .offset = 14 + 20 + 8 + 12 + 4 - 1}, true},
		{{.place = SIM_FAULT_FRAME_BYTE, .offset = 14 + 20 + 8 + 12 + 4}, false},
		{{.place = SIM_FAULT_BTH_BYTE, .offset = 12 + 4 - 1}, true},
		{{.place = SIM_FAULT_BTH_BYTE, .offset = 12 + 4}, false},
		{{.place = SIM_FAULT_LENGTH, .bits.value = 11}, true},
		{{.place = SIM_FAULT_LENGTH, .bits.value = 12}, false},
	};

	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		add(&(struct sim_fault_rule){.action = SIM_FAULT_CORRUPT,
					     .change = rows[i].change});
		TEST_ASSERT_EQUAL_INT(rows[i].fires ? SIM_FAULT_CORRUPT : SIM_FAULT_NONE,
				      offer(SIM_RC_SEND_ONLY, 0));
		sim_fault_clear(engine.sim);
	}
}

/* Any byte of the frame may change, with right checksums: the receiver decodes or drops the frame. */
void test_any_byte_may_change(void)
{
	for (unsigned int infiniband = 0; infiniband < 3; infiniband++)
		for (uint32_t at = 0; at < 60; at++) {
			tearDown();
			engine_open(&engine, &(struct engine_config){.seed = at,
								     .infiniband = infiniband,
								     .grh = infiniband == 2});
			add(&(struct sim_fault_rule){.action = SIM_FAULT_CORRUPT,
						     .count = 1,
						     .change = {.place = SIM_FAULT_FRAME_BYTE,
								.offset = at,
								.bits.flip = 0xff,
								.right_icrc = true}});
			write_bytes(30);
			TEST_ASSERT_GREATER_OR_EQUAL(
				1, engine.sides[1].device->counters.received_packets);
			engine_settle(&engine, SIM_NEVER - 1);
		}
}

/* The packet is lost; it is sent again when the memory is there again. */
void test_packet_whose_payload_cannot_be_read_is_lost(void)
{
	engine_poison(engine.sides[0].memory, 1);
	write_bytes(30);
	TEST_ASSERT_TRUE(engine.frames[0].lost);
	TEST_ASSERT_EQUAL_UINT64(1, engine.sides[0].device->counters.lost_packets);
	TEST_ASSERT_EQUAL_UINT64(1, engine.sides[0].device->counters.guarded_faults);
	TEST_ASSERT_EQUAL_UINT64(0, engine.sides[1].device->counters.received_packets);
	engine_poison(NULL, 0);
	engine_settle(&engine, SIM_NEVER - 1);
	TEST_ASSERT_TRUE(done());
	TEST_ASSERT_EQUAL_HEX8(0x5a, engine.sides[1].memory[29]);
}
