/* SPDX-License-Identifier: MIT */
#include "test/support/transitions.h"

const enum ibv_qp_type ts_types[TS_TYPES] = {
	[TS_TYPE_RC] = IBV_QPT_RC,
	[TS_TYPE_UC] = IBV_QPT_UC,
	[TS_TYPE_UD] = IBV_QPT_UD,
	[TS_TYPE_XRC_SEND] = IBV_QPT_XRC_SEND,
	[TS_TYPE_XRC_RECV] = IBV_QPT_XRC_RECV,
};

const char *const ts_type_names[TS_TYPES] = {
	[TS_TYPE_RC] = "RC",
	[TS_TYPE_UC] = "UC",
	[TS_TYPE_UD] = "UD",
	[TS_TYPE_XRC_SEND] = "XRC_SEND",
	[TS_TYPE_XRC_RECV] = "XRC_RECV",
};

enum {
	RC = 1 << TS_TYPE_RC,
	UC = 1 << TS_TYPE_UC,
	UD = 1 << TS_TYPE_UD,
	INI = 1 << TS_TYPE_XRC_SEND,
	TGT = 1 << TS_TYPE_XRC_RECV,

	REQUESTERS = RC | INI,
	RESPONDERS = RC | TGT,
	CONNECTED = RC | UC | INI | TGT,

	BEGIN = IBV_QP_PKEY_INDEX | IBV_QP_PORT,
	PEER = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN,
	ANSWER = IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
	REPEAT = IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC,
	RIGHTS = IBV_QP_ACCESS_FLAGS,
	TIMER = IBV_QP_MIN_RNR_TIMER,
	NOW = IBV_QP_CUR_STATE,
};

#define RESET IBV_QPS_RESET
#define INIT  IBV_QPS_INIT
#define RTR   IBV_QPS_RTR
#define RTS   IBV_QPS_RTS
#define SQD   IBV_QPS_SQD
#define SQE   IBV_QPS_SQE

const struct ts_transition ts_transitions[] = {
	{CONNECTED, RESET, INIT, BEGIN | RIGHTS, 0},
	{UD, RESET, INIT, BEGIN | IBV_QP_QKEY, 0},
	{CONNECTED, INIT, INIT, 0, BEGIN | RIGHTS},
	{UD, INIT, INIT, 0, BEGIN | IBV_QP_QKEY},
	{RESPONDERS, INIT, RTR, PEER | ANSWER, RIGHTS | IBV_QP_PKEY_INDEX},
	{UC | INI, INIT, RTR, PEER, RIGHTS | IBV_QP_PKEY_INDEX},
	{UD, INIT, RTR, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY},
	{RC, RTR, RTS, REPEAT | IBV_QP_SQ_PSN, RIGHTS | TIMER | NOW},
	{INI, RTR, RTS, REPEAT | IBV_QP_SQ_PSN, RIGHTS | NOW},
	{TGT, RTR, RTS, IBV_QP_TIMEOUT | IBV_QP_SQ_PSN, RIGHTS | TIMER | NOW},
	{UC, RTR, RTS, IBV_QP_SQ_PSN, RIGHTS | NOW},
	{UD, RTR, RTS, IBV_QP_SQ_PSN, IBV_QP_QKEY | NOW},
	{RESPONDERS, RTS, RTS, 0, RIGHTS | TIMER | NOW},
	{UC | INI, RTS, RTS, 0, RIGHTS | NOW},
	{UD, RTS, RTS, 0, IBV_QP_QKEY | NOW},
	{CONNECTED | UD, RTS, SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
	{RESPONDERS, SQD, RTS, 0, RIGHTS | TIMER | NOW},
	{UC | INI, SQD, RTS, 0, RIGHTS | NOW},
	{UD, SQD, RTS, 0, IBV_QP_QKEY | NOW},
	{REQUESTERS, SQD, SQD, 0, IBV_QP_PORT | IBV_QP_AV | REPEAT | RIGHTS | IBV_QP_PKEY_INDEX},
	{RC, SQD, SQD, 0, ANSWER},
	{TGT, SQD, SQD, 0,
	 IBV_QP_PORT | IBV_QP_AV | IBV_QP_TIMEOUT | ANSWER | RIGHTS | IBV_QP_PKEY_INDEX},
	{UC, SQD, SQD, 0, IBV_QP_AV | RIGHTS | IBV_QP_PKEY_INDEX},
	{UD, SQD, SQD, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY},
	{UC, SQE, RTS, 0, RIGHTS | NOW},
	{UD, SQE, RTS, 0, IBV_QP_QKEY | NOW},
};

const size_t ts_transition_count = TS_COUNT(ts_transitions);

int ts_required(enum ts_type type, enum ibv_qp_state from, enum ibv_qp_state to)
{
	int mask = 0;

	for (size_t i = 0; i < ts_transition_count; i++)
		if (ts_transitions[i].types & 1u << type && ts_transitions[i].from == from &&
		    ts_transitions[i].to == to)
			mask |= ts_transitions[i].required;
	return mask;
}

int ts_ignored(enum ts_type type)
{
	if (type == TS_TYPE_XRC_SEND)
		return IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	if (type == TS_TYPE_XRC_RECV)
		return IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY;
	return 0;
}

const char *ts_attribute_name(int bit)
{
	static const struct {
		int bit;
		const char *name;
	} names[] = {
		{IBV_QP_CUR_STATE, "CUR_STATE"},
		{IBV_QP_EN_SQD_ASYNC_NOTIFY, "EN_SQD_ASYNC_NOTIFY"},
		{IBV_QP_ACCESS_FLAGS, "ACCESS_FLAGS"},
		{IBV_QP_PKEY_INDEX, "PKEY_INDEX"},
		{IBV_QP_PORT, "PORT"},
		{IBV_QP_QKEY, "QKEY"},
		{IBV_QP_AV, "AV"},
		{IBV_QP_PATH_MTU, "PATH_MTU"},
		{IBV_QP_TIMEOUT, "TIMEOUT"},
		{IBV_QP_RETRY_CNT, "RETRY_CNT"},
		{IBV_QP_RNR_RETRY, "RNR_RETRY"},
		{IBV_QP_RQ_PSN, "RQ_PSN"},
		{IBV_QP_MAX_QP_RD_ATOMIC, "MAX_QP_RD_ATOMIC"},
		{IBV_QP_MIN_RNR_TIMER, "MIN_RNR_TIMER"},
		{IBV_QP_SQ_PSN, "SQ_PSN"},
		{IBV_QP_MAX_DEST_RD_ATOMIC, "MAX_DEST_RD_ATOMIC"},
		{IBV_QP_DEST_QPN, "DEST_QPN"},
		{IBV_QP_CAP, "CAP"},
		{IBV_QP_RATE_LIMIT, "RATE_LIMIT"},
	};

	for (size_t i = 0; i < TS_COUNT(names); i++)
		if (names[i].bit == bit)
			return names[i].name;
	return "another bit";
}
