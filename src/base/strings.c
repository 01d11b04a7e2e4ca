/* SPDX-License-Identifier: MIT */
/*
 * Names of enum values, and rates. The texts, and which rates have a multiple, are what libibverbs
 * 44 answers; the names are those of <infiniband/verbs.h>.
 */
#include <verbena/verbs.h>

#include <stddef.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const char *const wc_statuses[] = {
	[IBV_WC_SUCCESS] = "success",
	[IBV_WC_LOC_LEN_ERR] = "local length error",
	[IBV_WC_LOC_QP_OP_ERR] = "local QP operation error",
	[IBV_WC_LOC_EEC_OP_ERR] = "local EE context operation error",
	[IBV_WC_LOC_PROT_ERR] = "local protection error",
	[IBV_WC_WR_FLUSH_ERR] = "Work Request Flushed Error",
	[IBV_WC_MW_BIND_ERR] = "memory management operation error",
	[IBV_WC_BAD_RESP_ERR] = "bad response error",
	[IBV_WC_LOC_ACCESS_ERR] = "local access error",
	[IBV_WC_REM_INV_REQ_ERR] = "remote invalid request error",
	[IBV_WC_REM_ACCESS_ERR] = "remote access error",
	[IBV_WC_REM_OP_ERR] = "remote operation error",
	[IBV_WC_RETRY_EXC_ERR] = "transport retry counter exceeded",
	[IBV_WC_RNR_RETRY_EXC_ERR] = "RNR retry counter exceeded",
	[IBV_WC_LOC_RDD_VIOL_ERR] = "local RDD violation error",
	[IBV_WC_REM_INV_RD_REQ_ERR] = "remote invalid RD request",
	[IBV_WC_REM_ABORT_ERR] = "aborted error",
	[IBV_WC_INV_EECN_ERR] = "invalid EE context number",
	[IBV_WC_INV_EEC_STATE_ERR] = "invalid EE context state",
	[IBV_WC_FATAL_ERR] = "fatal error",
	[IBV_WC_RESP_TIMEOUT_ERR] = "response timeout error",
	[IBV_WC_GENERAL_ERR] = "general error",
	[IBV_WC_TM_ERR] = "TM error",
	[IBV_WC_TM_RNDV_INCOMPLETE] = "TM software rendezvous",
};

static const char *const event_types[] = {
	[IBV_EVENT_CQ_ERR] = "CQ error",
	[IBV_EVENT_QP_FATAL] = "local work queue catastrophic error",
	[IBV_EVENT_QP_REQ_ERR] = "invalid request local work queue error",
	[IBV_EVENT_QP_ACCESS_ERR] = "local access violation work queue error",
	[IBV_EVENT_COMM_EST] = "communication established",
	[IBV_EVENT_SQ_DRAINED] = "send queue drained",
	[IBV_EVENT_PATH_MIG] = "path migrated",
	[IBV_EVENT_PATH_MIG_ERR] = "path migration request error",
	[IBV_EVENT_DEVICE_FATAL] = "local catastrophic error",
	[IBV_EVENT_PORT_ACTIVE] = "port active",
	[IBV_EVENT_PORT_ERR] = "port error",
	[IBV_EVENT_LID_CHANGE] = "LID change",
	[IBV_EVENT_PKEY_CHANGE] = "P_Key change",
	[IBV_EVENT_SM_CHANGE] = "SM change",
	[IBV_EVENT_SRQ_ERR] = "SRQ catastrophic error",
	[IBV_EVENT_SRQ_LIMIT_REACHED] = "SRQ limit reached",
	[IBV_EVENT_QP_LAST_WQE_REACHED] = "last WQE reached",
	[IBV_EVENT_CLIENT_REREGISTER] = "client reregistration",
	[IBV_EVENT_GID_CHANGE] = "GID table change",
	[IBV_EVENT_WQ_FATAL] = "WQ fatal",
};

static const char *const node_types[] = {
	[IBV_NODE_CA] = "InfiniBand channel adapter",
	[IBV_NODE_SWITCH] = "InfiniBand switch",
	[IBV_NODE_ROUTER] = "InfiniBand router",
	[IBV_NODE_RNIC] = "iWARP NIC",
	[IBV_NODE_USNIC] = "usNIC",
	[IBV_NODE_USNIC_UDP] = "usNIC UDP",
	[IBV_NODE_UNSPECIFIED] = "unspecified",
};

static const char *const port_states[] = {
	[IBV_PORT_NOP] = "no state change (NOP)",
	[IBV_PORT_DOWN] = "down",
	[IBV_PORT_INIT] = "init",
	[IBV_PORT_ARMED] = "armed",
	[IBV_PORT_ACTIVE] = "active",
	[IBV_PORT_ACTIVE_DEFER] = "active defer",
};

static const char *const qp_states[] = {
	[IBV_QPS_RESET] = "RESET", [IBV_QPS_INIT] = "INIT", [IBV_QPS_RTR] = "RTR",
	[IBV_QPS_RTS] = "RTS",	   [IBV_QPS_SQD] = "SQD",   [IBV_QPS_SQE] = "SQE",
	[IBV_QPS_ERR] = "ERR",
};

static const char *const qp_types[] = {
	[IBV_QPT_RC] = "RC",
	[IBV_QPT_UC] = "UC",
	[IBV_QPT_UD] = "UD",
	[IBV_QPT_RAW_PACKET] = "RAW_PACKET",
	[IBV_QPT_XRC_SEND] = "XRC_SEND",
	[IBV_QPT_XRC_RECV] = "XRC_RECV",
	[IBV_QPT_DRIVER] = "DRIVER",
};

static const char *const wr_opcodes[] = {
	[IBV_WR_RDMA_WRITE] = "RDMA_WRITE",
	[IBV_WR_RDMA_WRITE_WITH_IMM] = "RDMA_WRITE_WITH_IMM",
	[IBV_WR_SEND] = "SEND",
	[IBV_WR_SEND_WITH_IMM] = "SEND_WITH_IMM",
	[IBV_WR_RDMA_READ] = "RDMA_READ",
	[IBV_WR_ATOMIC_CMP_AND_SWP] = "ATOMIC_CMP_AND_SWP",
	[IBV_WR_ATOMIC_FETCH_AND_ADD] = "ATOMIC_FETCH_AND_ADD",
	[IBV_WR_LOCAL_INV] = "LOCAL_INV",
	[IBV_WR_BIND_MW] = "BIND_MW",
	[IBV_WR_SEND_WITH_INV] = "SEND_WITH_INV",
	[IBV_WR_TSO] = "TSO",
	[IBV_WR_DRIVER1] = "DRIVER1",
	[IBV_WR_ATOMIC_WRITE] = "ATOMIC_WRITE",
};

static const char *const wc_opcodes[] = {
	[IBV_WC_SEND] = "SEND",
	[IBV_WC_RDMA_WRITE] = "RDMA_WRITE",
	[IBV_WC_RDMA_READ] = "RDMA_READ",
	[IBV_WC_COMP_SWAP] = "COMP_SWAP",
	[IBV_WC_FETCH_ADD] = "FETCH_ADD",
	[IBV_WC_BIND_MW] = "BIND_MW",
	[IBV_WC_LOCAL_INV] = "LOCAL_INV",
	[IBV_WC_TSO] = "TSO",
	[IBV_WC_ATOMIC_WRITE] = "ATOMIC_WRITE",
	[IBV_WC_RECV] = "RECV",
	[IBV_WC_RECV_RDMA_WITH_IMM] = "RECV_RDMA_WITH_IMM",
	[IBV_WC_TM_ADD] = "TM_ADD",
	[IBV_WC_TM_DEL] = "TM_DEL",
	[IBV_WC_TM_SYNC] = "TM_SYNC",
	[IBV_WC_TM_RECV] = "TM_RECV",
	[IBV_WC_TM_NO_TAG] = "TM_NO_TAG",
	[IBV_WC_DRIVER1] = "DRIVER1",
	[IBV_WC_DRIVER2] = "DRIVER2",
	[IBV_WC_DRIVER3] = "DRIVER3",
};

struct rate {
	int mult; /* of 2.5 Gbit/s, 0 where libibverbs knows none */
	int mbps;
};

static const struct rate rates[] = {
	[IBV_RATE_2_5_GBPS] = {1, 2500},       [IBV_RATE_10_GBPS] = {4, 10000},
	[IBV_RATE_30_GBPS] = {12, 30000},      [IBV_RATE_5_GBPS] = {2, 5000},
	[IBV_RATE_20_GBPS] = {8, 20000},       [IBV_RATE_40_GBPS] = {16, 40000},
	[IBV_RATE_60_GBPS] = {24, 60000},      [IBV_RATE_80_GBPS] = {32, 80000},
	[IBV_RATE_120_GBPS] = {48, 120000},    [IBV_RATE_14_GBPS] = {0, 14062},
	[IBV_RATE_56_GBPS] = {0, 56250},       [IBV_RATE_112_GBPS] = {0, 112500},
	[IBV_RATE_168_GBPS] = {0, 168750},     [IBV_RATE_25_GBPS] = {0, 25781},
	[IBV_RATE_100_GBPS] = {0, 103125},     [IBV_RATE_200_GBPS] = {0, 206250},
	[IBV_RATE_300_GBPS] = {0, 309375},     [IBV_RATE_28_GBPS] = {11, 28125},
	[IBV_RATE_50_GBPS] = {20, 53125},      [IBV_RATE_400_GBPS] = {160, 425000},
	[IBV_RATE_600_GBPS] = {240, 637500},   [IBV_RATE_800_GBPS] = {320, 850000},
	[IBV_RATE_1200_GBPS] = {480, 1275000},
};

/* A negative value is past the end once it is unsigned. */
static const char *look_up(const char *const *names, size_t count, int value)
{
	size_t index = (size_t)(unsigned int)value;

	return index < count && names[index] ? names[index] : "unknown";
}

const char *vb_wc_status_str(enum ibv_wc_status status)
{
	return look_up(wc_statuses, COUNT(wc_statuses), (int)status);
}

const char *vb_event_type_str(enum ibv_event_type event)
{
	return look_up(event_types, COUNT(event_types), (int)event);
}

const char *vb_node_type_str(enum ibv_node_type node_type)
{
	return look_up(node_types, COUNT(node_types), (int)node_type);
}

const char *vb_port_state_str(enum ibv_port_state port_state)
{
	return look_up(port_states, COUNT(port_states), (int)port_state);
}

const char *vb_qp_state_str(enum ibv_qp_state state)
{
	return look_up(qp_states, COUNT(qp_states), (int)state);
}

const char *vb_qp_type_str(enum ibv_qp_type type)
{
	return look_up(qp_types, COUNT(qp_types), (int)type);
}

const char *vb_wr_opcode_str(enum ibv_wr_opcode opcode)
{
	return look_up(wr_opcodes, COUNT(wr_opcodes), (int)opcode);
}

const char *vb_wc_opcode_str(enum ibv_wc_opcode opcode)
{
	return look_up(wc_opcodes, COUNT(wc_opcodes), (int)opcode);
}

unsigned int vb_mtu_to_bytes(enum ibv_mtu mtu)
{
	return mtu >= IBV_MTU_256 && mtu <= IBV_MTU_4096 ? 128u << mtu : 0;
}

enum ibv_mtu vb_bytes_to_mtu(unsigned int size_bytes)
{
	for (enum ibv_mtu mtu = IBV_MTU_256; mtu <= IBV_MTU_4096; mtu++)
		if (vb_mtu_to_bytes(mtu) == size_bytes)
			return mtu;
	return 0;
}

static const struct rate *rate_of(enum ibv_rate rate)
{
	static const struct rate none;

	return (unsigned int)rate < COUNT(rates) ? &rates[rate] : &none;
}

int vb_rate_to_mult(enum ibv_rate rate)
{
	int mult = rate_of(rate)->mult;

	return mult ? mult : -1;
}

int vb_rate_to_mbps(enum ibv_rate rate)
{
	int mbps = rate_of(rate)->mbps;

	return mbps ? mbps : -1;
}

enum ibv_rate vb_mult_to_rate(int mult)
{
	for (size_t i = 0; mult && i < COUNT(rates); i++)
		if (rates[i].mult == mult)
			return (enum ibv_rate)i;
	return IBV_RATE_MAX;
}

enum ibv_rate vb_mbps_to_rate(int mbps)
{
	for (size_t i = 0; mbps && i < COUNT(rates); i++)
		if (rates[i].mbps == mbps)
			return (enum ibv_rate)i;
	return IBV_RATE_MAX;
}
