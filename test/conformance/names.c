/* SPDX-License-Identifier: MIT */
#include "test/conformance/conformance.h"

#include <string.h>

static const char *named(const char *const *names, size_t count, int value)
{
	if (value < 0 || (size_t)value >= count || !names[value])
		return "unknown";
	return names[value];
}

#define NAMED(table, value) named(table, sizeof(table) / sizeof((table)[0]), value)
#define ENTRY(name)	    [name] = #name

const char *vt_wc_status_name(int status)
{
	static const char *const names[] = {
		ENTRY(IBV_WC_SUCCESS),
		ENTRY(IBV_WC_LOC_LEN_ERR),
		ENTRY(IBV_WC_LOC_QP_OP_ERR),
		ENTRY(IBV_WC_LOC_EEC_OP_ERR),
		ENTRY(IBV_WC_LOC_PROT_ERR),
		ENTRY(IBV_WC_WR_FLUSH_ERR),
		ENTRY(IBV_WC_MW_BIND_ERR),
		ENTRY(IBV_WC_BAD_RESP_ERR),
		ENTRY(IBV_WC_LOC_ACCESS_ERR),
		ENTRY(IBV_WC_REM_INV_REQ_ERR),
		ENTRY(IBV_WC_REM_ACCESS_ERR),
		ENTRY(IBV_WC_REM_OP_ERR),
		ENTRY(IBV_WC_RETRY_EXC_ERR),
		ENTRY(IBV_WC_RNR_RETRY_EXC_ERR),
		ENTRY(IBV_WC_LOC_RDD_VIOL_ERR),
		ENTRY(IBV_WC_REM_INV_RD_REQ_ERR),
		ENTRY(IBV_WC_REM_ABORT_ERR),
		ENTRY(IBV_WC_INV_EECN_ERR),
		ENTRY(IBV_WC_INV_EEC_STATE_ERR),
		ENTRY(IBV_WC_FATAL_ERR),
		ENTRY(IBV_WC_RESP_TIMEOUT_ERR),
		ENTRY(IBV_WC_GENERAL_ERR),
		ENTRY(IBV_WC_TM_ERR),
		ENTRY(IBV_WC_TM_RNDV_INCOMPLETE),
	};

	return NAMED(names, status);
}

const char *vt_qp_state_name(int state)
{
	static const char *const names[] = {
		ENTRY(IBV_QPS_RESET), ENTRY(IBV_QPS_INIT),    ENTRY(IBV_QPS_RTR),
		ENTRY(IBV_QPS_RTS),   ENTRY(IBV_QPS_SQD),     ENTRY(IBV_QPS_SQE),
		ENTRY(IBV_QPS_ERR),   ENTRY(IBV_QPS_UNKNOWN),
	};

	return NAMED(names, state);
}

const char *vt_event_name(int event)
{
	static const char *const names[] = {
		ENTRY(IBV_EVENT_CQ_ERR),
		ENTRY(IBV_EVENT_QP_FATAL),
		ENTRY(IBV_EVENT_QP_REQ_ERR),
		ENTRY(IBV_EVENT_QP_ACCESS_ERR),
		ENTRY(IBV_EVENT_COMM_EST),
		ENTRY(IBV_EVENT_SQ_DRAINED),
		ENTRY(IBV_EVENT_PATH_MIG),
		ENTRY(IBV_EVENT_PATH_MIG_ERR),
		ENTRY(IBV_EVENT_DEVICE_FATAL),
		ENTRY(IBV_EVENT_PORT_ACTIVE),
		ENTRY(IBV_EVENT_PORT_ERR),
		ENTRY(IBV_EVENT_LID_CHANGE),
		ENTRY(IBV_EVENT_PKEY_CHANGE),
		ENTRY(IBV_EVENT_SM_CHANGE),
		ENTRY(IBV_EVENT_SRQ_ERR),
		ENTRY(IBV_EVENT_SRQ_LIMIT_REACHED),
		ENTRY(IBV_EVENT_QP_LAST_WQE_REACHED),
		ENTRY(IBV_EVENT_CLIENT_REREGISTER),
		ENTRY(IBV_EVENT_GID_CHANGE),
		ENTRY(IBV_EVENT_WQ_FATAL),
	};

	return NAMED(names, event);
}

const char *vt_errno_name(int error)
{
	const char *name = strerrorname_np(error);

	return name ? name : "unknown";
}
