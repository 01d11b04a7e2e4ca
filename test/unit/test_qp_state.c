/* SPDX-License-Identifier: MIT */
/*
 * The expected table is written out from qp_state_table in Linux drivers/infiniband/core/verbs.c,
 * with IBV_QP_ALT_PATH and IBV_QP_PATH_MIG_STATE struck out (no automatic path migration), and
 * with SQE->RTS for the types that can be in SQE only. One line a cell that is valid; RESET from
 * any state and ERR from any but RESET are not repeated here.
 */
#include "sim/qp/state.h"
#include "unity.h"

#include <stdio.h>

#define INIT_CONNECTED (IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)
#define INIT_UD	       (IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY)
#define RTR_UC	       (IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN)
#define RTR_RC	       (RTR_UC | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define RTS_RC                                                                  \
	(IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | \
	 IBV_QP_MAX_QP_RD_ATOMIC)

static const struct {
	enum ibv_qp_type type;
	enum ibv_qp_state from, to;
	int required, optional;
} expected[] = {
	{IBV_QPT_RC, IBV_QPS_RESET, IBV_QPS_INIT, INIT_CONNECTED, 0},
	{IBV_QPT_RC, IBV_QPS_INIT, IBV_QPS_INIT, 0, INIT_CONNECTED},
	{IBV_QPT_RC, IBV_QPS_INIT, IBV_QPS_RTR, RTR_RC, IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
	{IBV_QPT_RC, IBV_QPS_RTR, IBV_QPS_RTS, RTS_RC, IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER},
	{IBV_QPT_RC, IBV_QPS_RTS, IBV_QPS_RTS, 0, IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER},
	{IBV_QPT_RC, IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
	{IBV_QPT_RC, IBV_QPS_SQD, IBV_QPS_RTS, 0, IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER},
	{IBV_QPT_RC, IBV_QPS_SQD, IBV_QPS_SQD, 0,
	 IBV_QP_PORT | IBV_QP_AV | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
		 IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_ACCESS_FLAGS |
		 IBV_QP_PKEY_INDEX | IBV_QP_MIN_RNR_TIMER},

	{IBV_QPT_UC, IBV_QPS_RESET, IBV_QPS_INIT, INIT_CONNECTED, 0},
	{IBV_QPT_UC, IBV_QPS_INIT, IBV_QPS_INIT, 0, INIT_CONNECTED},
	{IBV_QPT_UC, IBV_QPS_INIT, IBV_QPS_RTR, RTR_UC, IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
	{IBV_QPT_UC, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN, IBV_QP_ACCESS_FLAGS},
	{IBV_QPT_UC, IBV_QPS_RTS, IBV_QPS_RTS, 0, IBV_QP_ACCESS_FLAGS},
	{IBV_QPT_UC, IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
	{IBV_QPT_UC, IBV_QPS_SQD, IBV_QPS_RTS, 0, IBV_QP_ACCESS_FLAGS},
	{IBV_QPT_UC, IBV_QPS_SQD, IBV_QPS_SQD, 0,
	 IBV_QP_AV | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
	{IBV_QPT_UC, IBV_QPS_SQE, IBV_QPS_RTS, 0, IBV_QP_ACCESS_FLAGS},

	{IBV_QPT_UD, IBV_QPS_RESET, IBV_QPS_INIT, INIT_UD, 0},
	{IBV_QPT_UD, IBV_QPS_INIT, IBV_QPS_INIT, 0, INIT_UD},
	{IBV_QPT_UD, IBV_QPS_INIT, IBV_QPS_RTR, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY},
	{IBV_QPT_UD, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN, IBV_QP_QKEY},
	{IBV_QPT_UD, IBV_QPS_RTS, IBV_QPS_RTS, 0, IBV_QP_QKEY},
	{IBV_QPT_UD, IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
	{IBV_QPT_UD, IBV_QPS_SQD, IBV_QPS_RTS, 0, IBV_QP_QKEY},
	{IBV_QPT_UD, IBV_QPS_SQD, IBV_QPS_SQD, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY},
	{IBV_QPT_UD, IBV_QPS_SQE, IBV_QPS_RTS, 0, IBV_QP_QKEY},

	{IBV_QPT_XRC_SEND, IBV_QPS_RESET, IBV_QPS_INIT, INIT_CONNECTED, 0},
	{IBV_QPT_XRC_SEND, IBV_QPS_INIT, IBV_QPS_INIT, 0, INIT_CONNECTED},
	{IBV_QPT_XRC_SEND, IBV_QPS_INIT, IBV_QPS_RTR, RTR_UC,
	 IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
	{IBV_QPT_XRC_SEND, IBV_QPS_RTR, IBV_QPS_RTS, RTS_RC, IBV_QP_ACCESS_FLAGS},
	{IBV_QPT_XRC_SEND, IBV_QPS_RTS, IBV_QPS_RTS, 0, IBV_QP_ACCESS_FLAGS},
	{IBV_QPT_XRC_SEND, IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
	{IBV_QPT_XRC_SEND, IBV_QPS_SQD, IBV_QPS_RTS, 0, IBV_QP_ACCESS_FLAGS},
	{IBV_QPT_XRC_SEND, IBV_QPS_SQD, IBV_QPS_SQD, 0,
	 IBV_QP_PORT | IBV_QP_AV | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
		 IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},

	{IBV_QPT_XRC_RECV, IBV_QPS_RESET, IBV_QPS_INIT, INIT_CONNECTED, 0},
	{IBV_QPT_XRC_RECV, IBV_QPS_INIT, IBV_QPS_INIT, 0, INIT_CONNECTED},
	{IBV_QPT_XRC_RECV, IBV_QPS_INIT, IBV_QPS_RTR, RTR_RC,
	 IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
	{IBV_QPT_XRC_RECV, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_TIMEOUT | IBV_QP_SQ_PSN,
	 IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER},
	{IBV_QPT_XRC_RECV, IBV_QPS_RTS, IBV_QPS_RTS, 0, IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER},
	{IBV_QPT_XRC_RECV, IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
	{IBV_QPT_XRC_RECV, IBV_QPS_SQD, IBV_QPS_RTS, 0, IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER},
	{IBV_QPT_XRC_RECV, IBV_QPS_SQD, IBV_QPS_SQD, 0,
	 IBV_QP_PORT | IBV_QP_AV | IBV_QP_TIMEOUT | IBV_QP_MAX_DEST_RD_ATOMIC |
		 IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_MIN_RNR_TIMER},
};

static const enum ibv_qp_type types[] = {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD, IBV_QPT_XRC_SEND,
					 IBV_QPT_XRC_RECV};

static struct sim_transition expected_cell(enum ibv_qp_type type, int from, int to)
{
	if (to == IBV_QPS_RESET || (to == IBV_QPS_ERR && from != IBV_QPS_RESET))
		return (struct sim_transition){true, 0, 0};
	for (unsigned int i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
		if (expected[i].type == type && (int)expected[i].from == from &&
		    (int)expected[i].to == to)
			return (struct sim_transition){true, expected[i].required,
						       expected[i].optional};
	}
	return (struct sim_transition){false, 0, 0};
}

/* Calls check for each of the 245 cells of the table. */
static void for_each_cell(void (*check)(enum ibv_qp_type, int, int, struct sim_transition,
					const char *))
{
	char where[64];

	for (unsigned int i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		for (int from = 0; from < SIM_QP_STATES; from++) {
			for (int to = 0; to < SIM_QP_STATES; to++) {
				snprintf(where, sizeof(where), "type %d %s->%s", types[i],
					 sim_qp_state_str(from), sim_qp_state_str(to));
				check(types[i], from, to, expected_cell(types[i], from, to), where);
			}
		}
	}
}

void setUp(void)
{
}

void tearDown(void)
{
}

static void check_cell(enum ibv_qp_type type, int from, int to, struct sim_transition want,
		       const char *where)
{
	const struct sim_transition *cell = sim_transition(type, from, to);

	TEST_ASSERT_EQUAL_INT_MESSAGE(want.valid, cell->valid, where);
	TEST_ASSERT_EQUAL_HEX32_MESSAGE(want.required, cell->required, where);
	TEST_ASSERT_EQUAL_HEX32_MESSAGE(want.optional, cell->optional, where);
}

void test_qp_state_every_cell(void)
{
	for_each_cell(check_cell);
}

/* Removes each required attribute, and adds each other attribute, one at a time. */
static void check_masks(enum ibv_qp_type type, int from, int to, struct sim_transition want,
			const char *where)
{
	const int known = want.required | want.optional | IBV_QP_STATE |
			  (to == IBV_QPS_RTS ? IBV_QP_CUR_STATE : 0);

	TEST_ASSERT_EQUAL_INT_MESSAGE(
		want.valid, sim_transition_allowed(type, from, to, want.required | IBV_QP_STATE),
		where);
	TEST_ASSERT_EQUAL_INT_MESSAGE(
		want.valid,
		sim_transition_allowed(type, from, to,
				       want.required | want.optional | IBV_QP_STATE),
		where);
	for (int bit = 0; bit < 26; bit++) {
		const int one = 1 << bit;

		if (want.required & one)
			TEST_ASSERT_FALSE_MESSAGE(
				sim_transition_allowed(type, from, to,
						       (want.required | IBV_QP_STATE) & ~one),
				where);
		TEST_ASSERT_EQUAL_INT_MESSAGE(
			want.valid && known & one,
			sim_transition_allowed(type, from, to, want.required | IBV_QP_STATE | one),
			where);
	}
}

void test_qp_state_every_missing_and_every_extra_attribute(void)
{
	for_each_cell(check_masks);
}

void test_qp_state_path_migration_is_never_allowed(void)
{
	TEST_ASSERT_FALSE(sim_transition_allowed(IBV_QPT_RC, IBV_QPS_RTS, IBV_QPS_RTS,
						 IBV_QP_STATE | IBV_QP_ALT_PATH));
	TEST_ASSERT_FALSE(sim_transition_allowed(IBV_QPT_RC, IBV_QPS_RTS, IBV_QPS_RTS,
						 IBV_QP_STATE | IBV_QP_PATH_MIG_STATE));
}

/* A modify without IBV_QP_STATE keeps the state, as in the kernel's ibv_modify_qp. */
void test_qp_state_mask_needs_no_state_bit(void)
{
	TEST_ASSERT_TRUE(
		sim_transition_allowed(IBV_QPT_RC, IBV_QPS_RTS, IBV_QPS_RTS, IBV_QP_ACCESS_FLAGS));
}

void test_qp_state_foreign_values_are_refused(void)
{
	TEST_ASSERT_FALSE(sim_transition(IBV_QPT_RAW_PACKET, IBV_QPS_RESET, IBV_QPS_INIT)->valid);
	TEST_ASSERT_FALSE(
		sim_transition((enum ibv_qp_type) - 1, IBV_QPS_RESET, IBV_QPS_INIT)->valid);
	TEST_ASSERT_FALSE(sim_transition(IBV_QPT_RC, (enum ibv_qp_state)7, IBV_QPS_RESET)->valid);
	TEST_ASSERT_FALSE(
		sim_transition(IBV_QPT_RC, IBV_QPS_RESET, (enum ibv_qp_state) - 1)->valid);
	TEST_ASSERT_FALSE(sim_transition_allowed(IBV_QPT_RC, IBV_QPS_RESET, IBV_QPS_UNKNOWN, 0));
}

void test_qp_state_names(void)
{
	TEST_ASSERT_EQUAL_STRING("RESET", sim_qp_state_str(IBV_QPS_RESET));
	TEST_ASSERT_EQUAL_STRING("SQD", sim_qp_state_str(IBV_QPS_SQD));
	TEST_ASSERT_EQUAL_STRING("ERR", sim_qp_state_str(IBV_QPS_ERR));
	TEST_ASSERT_EQUAL_STRING("unknown", sim_qp_state_str((enum ibv_qp_state)99));
}
