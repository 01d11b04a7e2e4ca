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

enum {
	RC = 1 << IBV_QPT_RC,
	UC = 1 << IBV_QPT_UC,
	UD = 1 << IBV_QPT_UD,
	XRC_SEND = 1 << IBV_QPT_XRC_SEND,
	XRC_RECV = 1 << IBV_QPT_XRC_RECV,
	CONNECTED = RC | UC | XRC_SEND | XRC_RECV,
	ALL = CONNECTED | UD,
};

/* All transitions but those into RESET and ERR. */
static const struct {
	int types;
	enum ibv_qp_state from, to;
	struct sim_transition cell;
} rows[] = {
	{CONNECTED, IBV_QPS_RESET, IBV_QPS_INIT, {true, PKEY | PORT | ACCESS, 0}},
	{UD, IBV_QPS_RESET, IBV_QPS_INIT, {true, PKEY | PORT | QKEY, 0}},
	{CONNECTED, IBV_QPS_INIT, IBV_QPS_INIT, {true, 0, PKEY | PORT | ACCESS}},
	{UD, IBV_QPS_INIT, IBV_QPS_INIT, {true, 0, PKEY | PORT | QKEY}},
	{RC | XRC_RECV,
	 IBV_QPS_INIT,
	 IBV_QPS_RTR,
	 {true, CONNECT | READS_IN | RNR_TIMER, ACCESS | PKEY}},
	{UC | XRC_SEND, IBV_QPS_INIT, IBV_QPS_RTR, {true, CONNECT, ACCESS | PKEY}},
	{UD, IBV_QPS_INIT, IBV_QPS_RTR, {true, 0, PKEY | QKEY}},
	{RC,
	 IBV_QPS_RTR,
	 IBV_QPS_RTS,
	 {true, TIMEOUT | RETRY | RNR_RETRY | SQ_PSN | READS_OUT, ACCESS | RNR_TIMER}},
	{XRC_SEND,
	 IBV_QPS_RTR,
	 IBV_QPS_RTS,
	 {true, TIMEOUT | RETRY | RNR_RETRY | SQ_PSN | READS_OUT, ACCESS}},
	{XRC_RECV, IBV_QPS_RTR, IBV_QPS_RTS, {true, TIMEOUT | SQ_PSN, ACCESS | RNR_TIMER}},
	{UC, IBV_QPS_RTR, IBV_QPS_RTS, {true, SQ_PSN, ACCESS}},
	{UD, IBV_QPS_RTR, IBV_QPS_RTS, {true, SQ_PSN, QKEY}},
	{RC | XRC_RECV, IBV_QPS_RTS, IBV_QPS_RTS, {true, 0, ACCESS | RNR_TIMER}},
	{UC | XRC_SEND, IBV_QPS_RTS, IBV_QPS_RTS, {true, 0, ACCESS}},
	{UD, IBV_QPS_RTS, IBV_QPS_RTS, {true, 0, QKEY}},
	{ALL, IBV_QPS_RTS, IBV_QPS_SQD, {true, 0, NOTIFY}},
	{RC | XRC_RECV, IBV_QPS_SQD, IBV_QPS_RTS, {true, 0, ACCESS | RNR_TIMER}},
	{UC | XRC_SEND, IBV_QPS_SQD, IBV_QPS_RTS, {true, 0, ACCESS}},
	{UD, IBV_QPS_SQD, IBV_QPS_RTS, {true, 0, QKEY}},
	{RC,
	 IBV_QPS_SQD,
	 IBV_QPS_SQD,
	 {true, 0,
	  PORT | AV | TIMEOUT | RETRY | RNR_RETRY | READS_OUT | READS_IN | ACCESS | PKEY |
		  RNR_TIMER}},
	{XRC_SEND,
	 IBV_QPS_SQD,
	 IBV_QPS_SQD,
	 {true, 0, PORT | AV | TIMEOUT | RETRY | RNR_RETRY | READS_OUT | ACCESS | PKEY}},
	{XRC_RECV,
	 IBV_QPS_SQD,
	 IBV_QPS_SQD,
	 {true, 0, PORT | AV | TIMEOUT | READS_IN | ACCESS | PKEY | RNR_TIMER}},
	{UC, IBV_QPS_SQD, IBV_QPS_SQD, {true, 0, AV | ACCESS | PKEY}},
	{UD, IBV_QPS_SQD, IBV_QPS_SQD, {true, 0, PKEY | QKEY}},
	{UC, IBV_QPS_SQE, IBV_QPS_RTS, {true, 0, ACCESS}},
	{UD, IBV_QPS_SQE, IBV_QPS_RTS, {true, 0, QKEY}},
};

const struct sim_transition *sim_transition(enum ibv_qp_type type, enum ibv_qp_state from,
					    enum ibv_qp_state to)
{
	static const struct sim_transition none = {false, 0, 0}, always = {true, 0, 0};

	if ((unsigned int)type >= 32 || !(ALL & 1u << type) ||
	    (unsigned int)from >= SIM_QP_STATES || (unsigned int)to >= SIM_QP_STATES)
		return &none;
	/* RESET from any state, and ERR from any state but RESET. */
	if (to == IBV_QPS_RESET || (to == IBV_QPS_ERR && from != IBV_QPS_RESET))
		return &always;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].types & 1u << type && rows[i].from == from && rows[i].to == to)
			return &rows[i].cell;
	return &none;
}

int sim_transition_mask(const struct sim_transition *cell, enum ibv_qp_state to)
{
	/* The kernel's table has IB_QP_CUR_STATE in every cell whose target is RTS, and no other. */
	return cell->required | cell->optional | IBV_QP_STATE |
	       (to == IBV_QPS_RTS ? IBV_QP_CUR_STATE : 0);
}

bool sim_transition_allowed(enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to,
			    int attr_mask)
{
	const struct sim_transition *cell = sim_transition(type, from, to);

	return cell->valid && (attr_mask & cell->required) == cell->required &&
	       !(attr_mask & ~sim_transition_mask(cell, to));
}

/* Linux drivers/infiniband/core/uverbs_cmd.c, modify_qp_mask. */
int sim_attributes_ignored(enum ibv_qp_type type)
{
	if (type == IBV_QPT_XRC_SEND)
		return READS_IN | RNR_TIMER;
	return type == IBV_QPT_XRC_RECV ? READS_OUT | RETRY | RNR_RETRY : 0;
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
