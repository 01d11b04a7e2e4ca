/* SPDX-License-Identifier: MIT */
#include "docs/gen/names.h"

#include "sim/wire/opcode.h"
#include "sim/wire/packet.h"

#include <assert.h>
#include <string.h>
#include <verbena/verbs.h>

const struct bit_name attr_names[] = {
	{IBV_QP_CUR_STATE, "CUR_STATE"},
	{IBV_QP_PORT, "PORT"},
	{IBV_QP_PKEY_INDEX, "PKEY_INDEX"},
	{IBV_QP_QKEY, "QKEY"},
	{IBV_QP_ACCESS_FLAGS, "ACCESS_FLAGS"},
	{IBV_QP_AV, "AV"},
	{IBV_QP_PATH_MTU, "PATH_MTU"},
	{IBV_QP_DEST_QPN, "DEST_QPN"},
	{IBV_QP_RQ_PSN, "RQ_PSN"},
	{IBV_QP_SQ_PSN, "SQ_PSN"},
	{IBV_QP_TIMEOUT, "TIMEOUT"},
	{IBV_QP_RETRY_CNT, "RETRY_CNT"},
	{IBV_QP_RNR_RETRY, "RNR_RETRY"},
	{IBV_QP_MIN_RNR_TIMER, "MIN_RNR_TIMER"},
	{IBV_QP_MAX_QP_RD_ATOMIC, "MAX_QP_RD_ATOMIC"},
	{IBV_QP_MAX_DEST_RD_ATOMIC, "MAX_DEST_RD_ATOMIC"},
	{IBV_QP_EN_SQD_ASYNC_NOTIFY, "EN_SQD_ASYNC_NOTIFY"},
	{IBV_QP_ALT_PATH, "ALT_PATH"},
	{IBV_QP_PATH_MIG_STATE, "PATH_MIG_STATE"},
	{0},
};

const struct bit_name caps_names[] = {
	{IBV_DEVICE_RESIZE_MAX_WR, "RESIZE_MAX_WR"},
	{IBV_DEVICE_BAD_PKEY_CNTR, "BAD_PKEY_CNTR"},
	{IBV_DEVICE_BAD_QKEY_CNTR, "BAD_QKEY_CNTR"},
	{IBV_DEVICE_RAW_MULTI, "RAW_MULTI"},
	{IBV_DEVICE_AUTO_PATH_MIG, "AUTO_PATH_MIG"},
	{IBV_DEVICE_CHANGE_PHY_PORT, "CHANGE_PHY_PORT"},
	{IBV_DEVICE_UD_AV_PORT_ENFORCE, "UD_AV_PORT_ENFORCE"},
	{IBV_DEVICE_CURR_QP_STATE_MOD, "CURR_QP_STATE_MOD"},
	{IBV_DEVICE_SHUTDOWN_PORT, "SHUTDOWN_PORT"},
	{IBV_DEVICE_INIT_TYPE, "INIT_TYPE"},
	{IBV_DEVICE_PORT_ACTIVE_EVENT, "PORT_ACTIVE_EVENT"},
	{IBV_DEVICE_SYS_IMAGE_GUID, "SYS_IMAGE_GUID"},
	{IBV_DEVICE_RC_RNR_NAK_GEN, "RC_RNR_NAK_GEN"},
	{IBV_DEVICE_SRQ_RESIZE, "SRQ_RESIZE"},
	{IBV_DEVICE_N_NOTIFY_CQ, "N_NOTIFY_CQ"},
	{IBV_DEVICE_MEM_WINDOW, "MEM_WINDOW"},
	{IBV_DEVICE_UD_IP_CSUM, "UD_IP_CSUM"},
	{IBV_DEVICE_XRC, "XRC"},
	{IBV_DEVICE_MEM_MGT_EXTENSIONS, "MEM_MGT_EXTENSIONS"},
	{IBV_DEVICE_MEM_WINDOW_TYPE_2A, "MEM_WINDOW_TYPE_2A"},
	{IBV_DEVICE_MEM_WINDOW_TYPE_2B, "MEM_WINDOW_TYPE_2B"},
	{IBV_DEVICE_RC_IP_CSUM, "RC_IP_CSUM"},
	{IBV_DEVICE_RAW_IP_CSUM, "RAW_IP_CSUM"},
	{IBV_DEVICE_MANAGED_FLOW_STEERING, "MANAGED_FLOW_STEERING"},
	{0},
};

const struct bit_name header_names[] = {
	{SIM_OP_RDETH, "RDETH"},
	{SIM_OP_DETH, "DETH"},
	{SIM_OP_XRCETH, "XRCETH"},
	{SIM_OP_RETH, "RETH"},
	{SIM_OP_ATOMICETH, "AtomicETH"},
	{SIM_OP_AETH, "AETH"},
	{SIM_OP_ATOMICACKETH, "AtomicAckETH"},
	{SIM_OP_IMMDT, "ImmDt"},
	{SIM_OP_IETH, "IETH"},
	{0},
};

const struct bit_name kind_names[] = {
	{SIM_OP_SEND, "send"},
	{SIM_OP_WRITE, "write"},
	{SIM_OP_READ, "read"},
	{SIM_OP_ATOMIC, "atomic"},
	{SIM_OP_READ_RESPONSE, "read response"},
	{SIM_OP_ATOMIC_ACK, "atomic response"},
	{SIM_OP_ACK, "acknowledge"},
	{SIM_OP_RESYNC, "resync"},
	{SIM_OP_CNP, "congestion"},
	{0},
};

static const struct bit_name nak_names[] = {
	{SIM_AETH_RNR_NAK, "RNR"},
	{SIM_NAK_PSN_SEQUENCE, "PSN sequence error"},
	{SIM_NAK_INVALID_REQUEST, "invalid request"},
	{SIM_NAK_REMOTE_ACCESS, "remote access error"},
	{SIM_NAK_REMOTE_OPERATION, "remote operational error"},
	{SIM_NAK_INVALID_RD, "invalid RD request"},
	{0},
};

/* Asserts that <verbena/verbs.h> knows a value of the engine's tables. */
static const char *known(const char *name)
{
	assert(strcmp(name, "unknown") != 0);
	return name;
}

const char *wr_name(unsigned int wr_opcode)
{
	return known(vb_wr_opcode_str((enum ibv_wr_opcode)wr_opcode));
}

const char *wc_opcode_name(unsigned int wc_opcode)
{
	return known(vb_wc_opcode_str((enum ibv_wc_opcode)wc_opcode));
}

const char *status_name(enum ibv_wc_status status)
{
	return known(vb_wc_status_name(status)) + strlen("IBV_WC_");
}

const char *event_name(enum ibv_event_type event)
{
	return known(vb_event_type_name(event)) + strlen("IBV_EVENT_");
}

const char *nak_name(unsigned int syndrome)
{
	const struct bit_name *row = nak_names;

	while (row->name && row->bit != syndrome)
		row++;
	assert(row->name);
	return row->name;
}
