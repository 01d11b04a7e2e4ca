/* SPDX-License-Identifier: MIT */
#include "unity.h"

#include "sim/net/schedule.h"

static struct sim_schedule schedule;
static uint64_t seen;

/* Acts on the packets 2 and 5. */
void setUp(void)
{
	seen = 0;
	schedule = (struct sim_schedule){
		.steps = {{.packet = 2, .slot.rule.action = SIM_FAULT_DROP},
			  {.packet = 5, .slot.rule.action = SIM_FAULT_DUPLICATE}},
		.count = 2,
		.seen = &seen,
	};
}

void tearDown(void)
{
}

static enum sim_fault_action next_action(void)
{
	const struct sim_fault_rule *rule = sim_schedule_offer(&schedule);

	return rule ? rule->action : SIM_FAULT_NONE;
}

void test_each_step_acts_on_its_packet(void)
{
	static const enum sim_fault_action expected[] = {
		SIM_FAULT_NONE,	     SIM_FAULT_DROP, SIM_FAULT_NONE, SIM_FAULT_NONE,
		SIM_FAULT_DUPLICATE, SIM_FAULT_NONE, SIM_FAULT_NONE,
	};

	for (unsigned int i = 0; i < sizeof(expected) / sizeof(*expected); i++) {
		TEST_ASSERT_EQUAL_INT(expected[i], next_action());
		TEST_ASSERT_EQUAL_UINT64(i + 1, seen);
	}
}

void test_packets_are_counted_without_steps(void)
{
	schedule.count = 0;
	for (unsigned int i = 0; i < 3; i++)
		TEST_ASSERT_EQUAL_INT(SIM_FAULT_NONE, next_action());
	TEST_ASSERT_EQUAL_UINT64(3, schedule.packets);
}

/* Processes may share the number: it becomes the largest of theirs. */
void test_what_was_seen_does_not_shrink(void)
{
	seen = 10;
	next_action();
	TEST_ASSERT_EQUAL_UINT64(10, seen);
	schedule.seen = NULL;
	TEST_ASSERT_EQUAL_INT(SIM_FAULT_DROP, next_action());
}
