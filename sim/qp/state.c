/* SPDX-License-Identifier: MIT */
#include "sim/qp/state.h"

#include <stddef.h>

/*
 * Masks: qp_state_table of Linux drivers/infiniband/core/verbs.c, without IBV_QP_ALT_PATH
 * and IBV_QP_PATH_MIG_STATE, since the simulator has no automatic path migration.
 */
enum {
	PORT = IBV_QP_PORT,
	PKEY = IBV_QP_PKEY_INDEX,
	QKEY = IBV_QP_QKEY,
	ACCESS = IBV_QP_ACCESS_FLAGS,
	AV = IBV_QP_AV,
	MTU = IBV_QP_PATH_MTU,
	DEST = IBV_QP_DEST_QPN,
	RQ_PSN = IBV_QP_RQ_PSN,
	SQ_PSN = IBV_QP_SQ_PSN,
	TIMEOUT = IBV_QP_TIMEOUT,
	RETRY = IBV_QP_RETRY_CNT,
	RNR_RETRY = IBV_QP_RNR_RETRY,
	RNR_TIMER = IBV_QP_MIN_RNR_TIMER,
	READS_OUT = IBV_QP_MAX_QP_RD_ATOMIC,
	READS_IN = IBV_QP_MAX_DEST_RD_ATOMIC,
	NOTIFY = IBV_QP_EN_SQD_ASYNC_NOTIFY,

	CONNECT = AV | MTU | DEST | RQ_PSN,
};

/* One table for each type; cells by [from][to]. */
typedef struct sim_transition table[SIM_QP_STATES][SIM_QP_STATES];

/* For every type: RESET from any state, and ERR from any state but RESET. */
#define TO_RESET_AND_ERR [IBV_QPS_RESET] = {true, 0, 0}, [IBV_QPS_ERR] = {true, 0, 0}

static const table rc = {
	[IBV_QPS_RESET] =
		{
			[IBV_QPS_RESET] = {true, 0, 0},
			[IBV_QPS_INIT] = {true, PKEY | PORT | ACCESS, 0},
		},
	[IBV_QPS_INIT] =
		{
			TO_RESET_AND_ERR,
			[IBV_QPS_INIT] = {true, 0, PKEY | PORT | ACCESS},
			[IBV_QPS_RTR] = {true, CONNECT | READS_IN | RNR_TIMER, ACCESS | PKEY},
		},
	[IBV_QPS_RTR] =
		{
			TO_RESET_AND_ERR,
			[IBV_QPS_RTS] = {true, TIMEOUT | RETRY | RNR_RETRY | SQ_PSN | READS_OUT,
					 ACCESS | RNR_TIMER},
		},
	[IBV_QPS_RTS] =
		{
			TO_RESET_AND_ERR,
			[IBV_QPS_RTS] = {true, 0, ACCESS | RNR_TIMER},
			[IBV_QPS_SQD] = {true, 0, NOTIFY},
		},
	[IBV_QPS_SQD] =
		{
			TO_RESET_AND_ERR,
			[IBV_QPS_RTS] = {true, 0, ACCESS | RNR_TIMER},
			[IBV_QPS_SQD] = {true, 0,
					 PORT | AV | TIMEOUT | RETRY | RNR_RETRY | READS_OUT |
						 READS_IN | ACCESS | PKEY | RNR_TIMER},
		},
	[IBV_QPS_SQE] = {TO_RESET_AND_ERR},
	[IBV_QPS_ERR] = {TO_RESET_AND_ERR},
};

static const table uc = {
	[IBV_QPS_RESET] =
		{
			[IBV_QPS_RESET] = {true, 0, 0},
			[IBV_QPS_INIT] = {true, PKEY | PORT | ACCESS, 0},
		},
	[IBV_QPS_INIT] =
		{
			TO_RESET_AND_ERR,
			[IBV_QPS_INIT] = {true, 0, PKEY | PORT | ACCESS},
			[IBV_QPS_RTR] = {true, CONNECT, ACCESS | PKEY},
		},
	[IBV_QPS_RTR] =
		{
			TO_RESET_AND_ERR,
			[IBV_QPS_RTS] = {true, SQ_PSN, ACCESS},
		},
	[IBV_QPS_RTS] =
		{
			TO_RESET_AND_ERR,
			[IBV_QPS_RTS] = {true, 0, ACCESS},
			[IBV_QPS_SQD] = {true, 0, NOTIFY},
		},
	[IBV_QPS_SQD] =
		{
			TO_RESET_AND_ERR,
			[IBV_QPS_RTS] = {true, 0, ACCESS},
			[IBV_QPS_SQD] = {true, 0, AV | ACCESS | PKEY},
		},
	[IBV_QPS_SQE] =
		{
			TO_RESET_AND_ERR,
			[IBV_QPS_RTS] = {true, 0, ACCESS},
		},
	[IBV_QPS_ERR] = {TO_RESET_AND_ERR},
};

static const table ud = {
	[IBV_QPS_RESET] =
		{
			[IBV_QPS_RESET] = {true, 0, 0},
			[IBV_QPS_INIT] = {true, PKEY | PORT | QKEY, 0},
		},
	[IBV_QPS_INIT] =
		{
			TO_RESET_AND_ERR,
			[IBV_QPS_INIT] = {true, 0, PKEY | PORT | QKEY},
			[IBV_QPS_RTR] = {true, 0, PKEY | QKEY},
		},
	[IBV_QPS_RTR] =
		{
			TO_RESET_AND_ERR,
			[IBV_QPS_RTS] = {true, SQ_PSN, QKEY},
		},
	[IBV_QPS_RTS] =
		{
			TO_RESET_AND_ERR,
			[IBV_QPS_RTS] = {true, 0, QKEY},
			[IBV_QPS_SQD] = {true, 0, NOTIFY},
		},
	[IBV_QPS_SQD] =
		{
			TO_RESET_AND_ERR,
			[IBV_QPS_RTS] = {true, 0, QKEY},
			[IBV_QPS_SQD] = {true, 0, PKEY | QKEY},
		},
	[IBV_QPS_SQE] =
		{
			TO_RESET_AND_ERR,
			[IBV_QPS_RTS] = {true, 0, QKEY},
		},
	[IBV_QPS_ERR] = {TO_RESET_AND_ERR},
};

static const table xrc_send = {
	[IBV_QPS_RESET] =
		{
			[IBV_QPS_RESET] = {true, 0, 0},
			[IBV_QPS_INIT] = {true, PKEY | PORT | ACCESS, 0},
		},
	[IBV_QPS_INIT] =
		{
			TO_RESET_AND_ERR,
			[IBV_QPS_INIT] = {true, 0, PKEY | PORT | ACCESS},
			[IBV_QPS_RTR] = {true, CONNECT, ACCESS | PKEY},
		},
	[IBV_QPS_RTR] =
		{
			TO_RESET_AND_ERR,
			[IBV_QPS_RTS] = {true, TIMEOUT | RETRY | RNR_RETRY | SQ_PSN | READS_OUT,
					 ACCESS},
		},
	[IBV_QPS_RTS] =
		{
			TO_RESET_AND_ERR,
			[IBV_QPS_RTS] = {true, 0, ACCESS},
			[IBV_QPS_SQD] = {true, 0, NOTIFY},
		},
	[IBV_QPS_SQD] =
		{
			TO_RESET_AND_ERR,
			[IBV_QPS_RTS] = {true, 0, ACCESS},
			[IBV_QPS_SQD] = {true, 0,
					 PORT | AV | TIMEOUT | RETRY | RNR_RETRY | READS_OUT |
						 ACCESS | PKEY},
		},
	[IBV_QPS_SQE] = {TO_RESET_AND_ERR},
	[IBV_QPS_ERR] = {TO_RESET_AND_ERR},
};

static const table xrc_recv = {
	[IBV_QPS_RESET] =
		{
			[IBV_QPS_RESET] = {true, 0, 0},
			[IBV_QPS_INIT] = {true, PKEY | PORT | ACCESS, 0},
		},
	[IBV_QPS_INIT] =
		{
			TO_RESET_AND_ERR,
			[IBV_QPS_INIT] = {true, 0, PKEY | PORT | ACCESS},
			[IBV_QPS_RTR] = {true, CONNECT | READS_IN | RNR_TIMER, ACCESS | PKEY},
		},
	[IBV_QPS_RTR] =
		{
			TO_RESET_AND_ERR,
			[IBV_QPS_RTS] = {true, TIMEOUT | SQ_PSN, ACCESS | RNR_TIMER},
		},
	[IBV_QPS_RTS] =
		{
			TO_RESET_AND_ERR,
			[IBV_QPS_RTS] = {true, 0, ACCESS | RNR_TIMER},
			[IBV_QPS_SQD] = {true, 0, NOTIFY},
		},
	[IBV_QPS_SQD] =
		{
			TO_RESET_AND_ERR,
			[IBV_QPS_RTS] = {true, 0, ACCESS | RNR_TIMER},
			[IBV_QPS_SQD] = {true, 0,
					 PORT | AV | TIMEOUT | READS_IN | ACCESS | PKEY |
						 RNR_TIMER},
		},
	[IBV_QPS_SQE] = {TO_RESET_AND_ERR},
	[IBV_QPS_ERR] = {TO_RESET_AND_ERR},
};

static const table *table_of(enum ibv_qp_type type)
{
	switch (type) {
	case IBV_QPT_RC:
		return &rc;
	case IBV_QPT_UC:
		return &uc;
	case IBV_QPT_UD:
		return &ud;
	case IBV_QPT_XRC_SEND:
		return &xrc_send;
	case IBV_QPT_XRC_RECV:
		return &xrc_recv;
	default:
		return NULL;
	}
}

const struct sim_transition *sim_transition(enum ibv_qp_type type, enum ibv_qp_state from,
					    enum ibv_qp_state to)
{
	static const struct sim_transition none = {false, 0, 0};
	const table *cells = table_of(type);

	if (!cells || (unsigned int)from >= SIM_QP_STATES || (unsigned int)to >= SIM_QP_STATES)
		return &none;
	return &(*cells)[from][to];
}

bool sim_transition_allowed(enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to,
			    int attr_mask)
{
	const struct sim_transition *cell = sim_transition(type, from, to);
	int known = cell->required | cell->optional | IBV_QP_STATE;

	/* The kernel's table has IB_QP_CUR_STATE in every cell whose target is RTS, and no other. */
	if (to == IBV_QPS_RTS)
		known |= IBV_QP_CUR_STATE;

	return cell->valid && (attr_mask & cell->required) == cell->required &&
	       !(attr_mask & ~known);
}

const char *sim_qp_state_str(enum ibv_qp_state state)
{
	static const char *const names[SIM_QP_STATES] = {
		[IBV_QPS_RESET] = "RESET", [IBV_QPS_INIT] = "INIT", [IBV_QPS_RTR] = "RTR",
		[IBV_QPS_RTS] = "RTS",	   [IBV_QPS_SQD] = "SQD",   [IBV_QPS_SQE] = "SQE",
		[IBV_QPS_ERR] = "ERR",
	};

	return (unsigned int)state < SIM_QP_STATES ? names[state] : "unknown";
}
