/* SPDX-License-Identifier: MIT */
/*
 * The states of the QPs of an XRC connection: the initiator on A, the target on B.
 *
 * The table is that of the Linux core (qp_state_table of drivers/infiniband/core/verbs.c) for
 * XRC_INI and XRC_TGT, written down by hand, without the alternate path.
 */
#include "test/support/support.h"
#include "test/support/transitions.h"
#include "test/support/xrc.h"

#define CORE "Linux drivers/infiniband/core/verbs.c, qp_state_table and ib_modify_qp_is_ok"

enum { INITIATOR, TARGET, ENDS };
static const char *const end_names[ENDS] = {"XRC_SEND", "XRC_RECV"};

#define INIT	(IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)
#define CONNECT (IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN)
#define MOVE	(IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS)
#define RETRIES (IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC)
#define CHANGE	(IBV_QP_PORT | IBV_QP_AV | IBV_QP_TIMEOUT | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX)

struct cell {
	enum ibv_qp_state from, to;
	int required[ENDS];
	int optional[ENDS];
};

/* The allowed transitions; every other pair of states is refused. An XRC QP never enters SQE. */
static const struct cell cells[] = {
	{IBV_QPS_RESET, IBV_QPS_RESET, {0}, {0}},
	{IBV_QPS_RESET, IBV_QPS_INIT, {INIT, INIT}, {0}},
	{IBV_QPS_INIT, IBV_QPS_RESET, {0}, {0}},
	{IBV_QPS_INIT, IBV_QPS_ERR, {0}, {0}},
	{IBV_QPS_INIT, IBV_QPS_INIT, {0}, {INIT, INIT}},
	{IBV_QPS_INIT,
	 IBV_QPS_RTR,
	 {CONNECT, CONNECT | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER},
	 {IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX, IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX}},
	{IBV_QPS_RTR, IBV_QPS_RESET, {0}, {0}},
	{IBV_QPS_RTR, IBV_QPS_ERR, {0}, {0}},
	{IBV_QPS_RTR,
	 IBV_QPS_RTS,
	 {IBV_QP_TIMEOUT | IBV_QP_SQ_PSN | RETRIES, IBV_QP_TIMEOUT | IBV_QP_SQ_PSN},
	 {MOVE, MOVE | IBV_QP_MIN_RNR_TIMER}},
	{IBV_QPS_RTS, IBV_QPS_RESET, {0}, {0}},
	{IBV_QPS_RTS, IBV_QPS_ERR, {0}, {0}},
	{IBV_QPS_RTS, IBV_QPS_RTS, {0}, {MOVE, MOVE | IBV_QP_MIN_RNR_TIMER}},
	{IBV_QPS_RTS, IBV_QPS_SQD, {0}, {IBV_QP_EN_SQD_ASYNC_NOTIFY, IBV_QP_EN_SQD_ASYNC_NOTIFY}},
	{IBV_QPS_SQD, IBV_QPS_RESET, {0}, {0}},
	{IBV_QPS_SQD, IBV_QPS_ERR, {0}, {0}},
	{IBV_QPS_SQD, IBV_QPS_RTS, {0}, {MOVE, MOVE | IBV_QP_MIN_RNR_TIMER}},
	{IBV_QPS_SQD,
	 IBV_QPS_SQD,
	 {0},
	 {CHANGE | RETRIES, CHANGE | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER}},
	{IBV_QPS_ERR, IBV_QPS_RESET, {0}, {0}},
	{IBV_QPS_ERR, IBV_QPS_ERR, {0}, {0}},
};

static int ignored(int which)
{
	return ts_ignored(which == INITIATOR ? TS_TYPE_XRC_SEND : TS_TYPE_XRC_RECV);
}

static const struct cell *find_cell(enum ibv_qp_state from, enum ibv_qp_state to)
{
	size_t i;

	for (i = 0; i < TS_COUNT(cells); i++)
		if (cells[i].from == from && cells[i].to == to)
			return &cells[i];
	return NULL;
}

static void step(struct ts_end *end, int which, enum ibv_qp_state from, enum ibv_qp_state to)
{
	struct ibv_qp_attr attr = ts_good_attr(end, end->peer, from, to);

	VT_OK(end->t,
	      vb_modify_qp(end->qp, &attr, find_cell(from, to)->required[which] | IBV_QP_STATE));
}

/* Moves the QP to the state from any state, by way of RESET. */
static void reach(struct ts_end *end, int which, enum ibv_qp_state state)
{
	VT_OK(end->t, ts_to(end, IBV_QPS_RESET));
	if (state == IBV_QPS_RESET)
		return;
	step(end, which, IBV_QPS_RESET, IBV_QPS_INIT);
	if (state == IBV_QPS_ERR) {
		step(end, which, IBV_QPS_INIT, IBV_QPS_ERR);
		return;
	}
	for (int at = IBV_QPS_INIT; at < (int)state; at++)
		step(end, which, (enum ibv_qp_state)at, (enum ibv_qp_state)(at + 1));
}

/* Does one modify on a fresh QP and compares the result with the table. */
static void try_step(struct ts_end *end, int which, const struct cell *cell, int mask, bool allowed)
{
	struct ibv_qp_attr attr = ts_good_attr(end, end->peer, cell->from, cell->to);
	struct vt *t = end->t;

	vt_row(t, "%s %s->%s, mask 0x%x", end_names[which], vt_qp_state_name(cell->from),
	       vt_qp_state_name(cell->to), mask);
	reach(end, which, cell->from);
	VT_EXPECT_ERRNO(t, vb_modify_qp(end->qp, &attr, mask | IBV_QP_STATE), allowed ? 0 : EINVAL);
	VT_EXPECT_STATE(t, ts_query_state(t, end->qp), allowed ? cell->to : cell->from);
}

typedef void try_fn(struct ts_end *end, int which, const struct cell *cell);

/* Calls fn for every transition of both ends. */
static void for_each_cell(struct vt *t, try_fn *fn)
{
	const struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;
	size_t i;

	ts_need_xrc(t);
	pair = ts_xrc_reset(t, &options)->pair;
	for (i = 0; i < TS_COUNT(cells); i++) {
		fn(&pair->a, INITIATOR, &cells[i]);
		fn(&pair->b, TARGET, &cells[i]);
	}
	vt_row(t, NULL);
}

static void try_pairs(struct vt *t, struct ts_end *end, int which)
{
	static const enum ibv_qp_state from[] = {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR,
						 IBV_QPS_RTS,	IBV_QPS_SQD,  IBV_QPS_ERR};
	size_t i;
	int to;

	for (i = 0; i < TS_COUNT(from); i++)
		for (to = IBV_QPS_RESET; to <= IBV_QPS_ERR; to++) {
			const struct cell *cell = find_cell(from[i], (enum ibv_qp_state)to);
			const struct cell refused = {.from = from[i], .to = (enum ibv_qp_state)to};

			try_step(end, which, cell ? cell : &refused,
				 cell ? cell->required[which] : 0, cell != NULL);
		}
	vt_row(t, NULL);
}

static void every_pair(struct vt *t)
{
	const struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;

	ts_need_xrc(t);
	pair = ts_xrc_reset(t, &options)->pair;
	try_pairs(t, &pair->a, INITIATOR);
	try_pairs(t, &pair->b, TARGET);
}

/* All bits of an attribute mask but IBV_QP_STATE and those of the alternate path. */
#define BITS \
	(((IBV_QP_DEST_QPN << 1) - 1) & ~(IBV_QP_STATE | IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE))

static void try_missing(struct ts_end *end, int which, const struct cell *cell)
{
	const int required = cell->required[which];

	for (int bit = 1; bit <= IBV_QP_DEST_QPN; bit <<= 1)
		if (required & bit)
			try_step(end, which, cell, required & ~bit, false);
}

static void missing_attribute_is_refused(struct vt *t)
{
	for_each_cell(t, try_missing);
}

static void try_optional(struct ts_end *end, int which, const struct cell *cell)
{
	for (int bit = 1; bit <= IBV_QP_DEST_QPN; bit <<= 1)
		if (cell->optional[which] & bit)
			try_step(end, which, cell, cell->required[which] | bit, true);
}

static void optional_attribute_is_taken(struct vt *t)
{
	for_each_cell(t, try_optional);
}

static void try_forbidden(struct ts_end *end, int which, const struct cell *cell)
{
	const int forbidden =
		BITS & ~(cell->required[which] | cell->optional[which] | ignored(which));

	for (int bit = 1; bit <= IBV_QP_DEST_QPN; bit <<= 1)
		if (forbidden & bit)
			try_step(end, which, cell, cell->required[which] | bit, false);
}

static void forbidden_attribute_is_refused(struct vt *t)
{
	for_each_cell(t, try_forbidden);
}

/* The values are out of range: the device does not look at them. */
static void try_ignored(struct ts_end *end, int which, const struct cell *cell)
{
	struct ibv_qp_attr attr = ts_good_attr(end, end->peer, cell->from, cell->to);

	attr.max_dest_rd_atomic = attr.max_rd_atomic = 255;
	if (which == INITIATOR)
		attr.min_rnr_timer = 255;
	else
		attr.retry_cnt = attr.rnr_retry = 255;
	if (cell->required[which] & IBV_QP_MAX_DEST_RD_ATOMIC)
		attr.max_dest_rd_atomic = 1;
	if (cell->required[which] & IBV_QP_MAX_QP_RD_ATOMIC)
		attr.max_rd_atomic = 1;
	vt_row(end->t, "%s %s->%s", end_names[which], vt_qp_state_name(cell->from),
	       vt_qp_state_name(cell->to));
	reach(end, which, cell->from);
	VT_EXPECT_OK(end->t, vb_modify_qp(end->qp, &attr,
					  cell->required[which] | ignored(which) | IBV_QP_STATE));
	VT_EXPECT_STATE(end->t, ts_query_state(end->t, end->qp), cell->to);
}

static void superfluous_attribute_is_ignored(struct vt *t)
{
	for_each_cell(t, try_ignored);
}

static const struct vt_test tests[] = {
	{"every_pair", CORE, 0, every_pair},
	{"missing_attribute_is_refused", CORE, 0, missing_attribute_is_refused},
	{"optional_attribute_is_taken", CORE, 0, optional_attribute_is_taken},
	{"forbidden_attribute_is_refused", CORE, 0, forbidden_attribute_is_refused},
	{"superfluous_attribute_is_ignored",
	 "Linux drivers/infiniband/core/uverbs_cmd.c, modify_qp_mask", 0,
	 superfluous_attribute_is_ignored},
	{NULL},
};

const struct vt_suite vt_suite_xrc_states = {"xrc_states", "the states of XRC QPs", tests};
