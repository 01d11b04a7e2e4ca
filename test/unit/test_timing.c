/* SPDX-License-Identifier: MIT */
#include "sim/wire/timing.h"
#include "unity.h"

void setUp(void)
{
}

void tearDown(void)
{
}

/*
 * ibv_modify_qp(3), "min_rnr_timer"; the same in Linux include/rdma/ib_verbs.h, enum
 * ib_rnr_timeout.
 */
static const struct {
	unsigned int code;
	uint64_t ms_hundredths;
} rnr_timers[] = {
	{0, 65536},  {1, 1},	  {2, 2},      {3, 3},	    {4, 4},	{5, 6},	    {6, 8},
	{7, 12},     {8, 16},	  {9, 24},     {10, 32},    {11, 48},	{12, 64},   {13, 96},
	{14, 128},   {15, 192},	  {16, 256},   {17, 384},   {18, 512},	{19, 768},  {20, 1024},
	{21, 1536},  {22, 2048},  {23, 3072},  {24, 4096},  {25, 6144}, {26, 8192}, {27, 12288},
	{28, 16384}, {29, 24576}, {30, 32768}, {31, 49152},
};

void test_rnr_timer_codes(void)
{
	TEST_ASSERT_EQUAL_UINT(32, sizeof(rnr_timers) / sizeof(rnr_timers[0]));
	for (unsigned int i = 0; i < 32; i++) {
		TEST_ASSERT_EQUAL_UINT(i, rnr_timers[i].code);
		TEST_ASSERT_EQUAL_UINT64(rnr_timers[i].ms_hundredths * 10000, sim_rnr_timer_ns(i));
	}
}

/*
 * 4.096 us * 2^code, and 0 for no timeout: ibv_modify_qp(3), "timeout". The values are written out
 * in nanoseconds, so that the test does not repeat the formula.
 */
static const uint64_t ack_timeouts_ns[] = {
	UINT64_C(0),
	UINT64_C(8192),
	UINT64_C(16384),
	UINT64_C(32768),
	UINT64_C(65536),
	UINT64_C(131072),
	UINT64_C(262144),
	UINT64_C(524288),
	UINT64_C(1048576),
	UINT64_C(2097152),
	UINT64_C(4194304),
	UINT64_C(8388608),
	UINT64_C(16777216),
	UINT64_C(33554432),
	UINT64_C(67108864),
	UINT64_C(134217728),
	UINT64_C(268435456),
	UINT64_C(536870912),
	UINT64_C(1073741824),
	UINT64_C(2147483648),
	UINT64_C(4294967296),
	UINT64_C(8589934592),
	UINT64_C(17179869184),
	UINT64_C(34359738368),
	UINT64_C(68719476736),
	UINT64_C(137438953472),
	UINT64_C(274877906944),
	UINT64_C(549755813888),
	UINT64_C(1099511627776),
	UINT64_C(2199023255552),
	UINT64_C(4398046511104),
	UINT64_C(8796093022208),
};

void test_ack_timeout_codes(void)
{
	TEST_ASSERT_EQUAL_UINT(32, sizeof(ack_timeouts_ns) / sizeof(ack_timeouts_ns[0]));
	for (unsigned int i = 0; i < 32; i++)
		TEST_ASSERT_EQUAL_UINT64(ack_timeouts_ns[i], sim_ack_timeout_ns(i));
}
