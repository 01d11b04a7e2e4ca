/* SPDX-License-Identifier: MIT */
#include "sim/wire/psn.h"
#include "unity.h"

void setUp(void)
{
}

void tearDown(void)
{
}

void test_psn_add_wraps_at_24_bits(void)
{
	TEST_ASSERT_EQUAL_HEX32(0, sim_psn_add(0xffffff, 1));
	TEST_ASSERT_EQUAL_HEX32(0xfffffe, sim_psn_add(0xffffff, 0xffffff));
	TEST_ASSERT_EQUAL_HEX32(5, sim_psn_add(5, 0x1000000));
	TEST_ASSERT_EQUAL_HEX32(0x800000, sim_psn_add(0x7fffff, 1));
}

void test_psn_diff_is_signed_and_wraps(void)
{
	TEST_ASSERT_EQUAL_INT32(0, sim_psn_diff(0xffffff, 0xffffff));
	TEST_ASSERT_EQUAL_INT32(1, sim_psn_diff(0, 0xffffff));
	TEST_ASSERT_EQUAL_INT32(-1, sim_psn_diff(0xffffff, 0));
	TEST_ASSERT_EQUAL_INT32(0x7fffff, sim_psn_diff(0x7fffff, 0));
	TEST_ASSERT_EQUAL_INT32(-0x800000, sim_psn_diff(0x800000, 0));
	TEST_ASSERT_EQUAL_INT32(-0x7fffff, sim_psn_diff(0, 0x7fffff));
}

/* sim_psn_diff() returns the distance that sim_psn_add() added, from any start. */
void test_psn_diff_undoes_add(void)
{
	static const uint32_t starts[] = {0, 1, 0x7fffff, 0x800000, 0x800001, 0xfffffe, 0xffffff};
	static const uint32_t steps[] = {0, 1, 2, 31, 0x1000, 0x7ffffe, 0x7fffff};

	for (unsigned int i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
		for (unsigned int j = 0; j < sizeof(steps) / sizeof(steps[0]); j++) {
			uint32_t ahead = sim_psn_add(starts[i], steps[j]);

			TEST_ASSERT_EQUAL_INT32((int32_t)steps[j], sim_psn_diff(ahead, starts[i]));
			TEST_ASSERT_EQUAL_INT32(-(int32_t)steps[j], sim_psn_diff(starts[i], ahead));
		}
	}
}

/* Bits above the 24th, which an application may pass, are ignored. */
void test_psn_diff_ignores_high_bits(void)
{
	TEST_ASSERT_EQUAL_INT32(3, sim_psn_diff(0xab000004, 0xcd000001));
}
