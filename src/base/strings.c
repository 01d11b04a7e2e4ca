/* SPDX-License-Identifier: MIT */
/*
 * The names and texts of enum values, and rates. Each value stands once, in one table. The texts,
 * and the rates that have a multiple, are what libibverbs 44 answers; the names are the enumerators
 * of <infiniband/verbs.h>.
 */
#include "src/base/count.h"

#include <stddef.h>
#include <verbena/verbs.h>

struct name {
	const char *name; /* the enumerator: "IBV_QPS_RTR" */
	const char *text; /* what people read: libibverbs' text, or the name without its prefix */
};

#define ROW(enumerator, words) [enumerator] = {#enumerator, words}
#define SHORT(prefix, rest)    [prefix##rest] = {#prefix #rest, #rest}

static const struct name wc_statuses[] = {
	ROW(IBV_WC_SUCCESS, "success"),
	ROW(IBV_WC_LOC_LEN_ERR, "local length error"),
	ROW(IBV_WC_LOC_QP_OP_ERR, "local QP operation error"),
	ROW(IBV_WC_LOC_EEC_OP_ERR, "local EE context operation error"),
	ROW(IBV_WC_LOC_PROT_ERR, "local protection error"),
	ROW(IBV_WC_WR_FLUSH_ERR, "Work Request Flushed Error"),
	ROW(IBV_WC_MW_BIND_ERR, "memory management operation error"),
	ROW(IBV_WC_BAD_RESP_ERR, "bad response error"),
	ROW(IBV_WC_LOC_ACCESS_ERR, "local access error"),
	ROW(IBV_WC_REM_INV_REQ_ERR, "remote invalid request error"),
	ROW(IBV_WC_REM_ACCESS_ERR, "remote access error"),
	ROW(IBV_WC_REM_OP_ERR, "remote operation error"),
	ROW(IBV_WC_RETRY_EXC_ERR, "transport retry counter exceeded"),
	ROW(IBV_WC_RNR_RETRY_EXC_ERR, "RNR retry counter exceeded"),
	ROW(IBV_WC_LOC_RDD_VIOL_ERR, "local RDD violation error"),
	ROW(IBV_WC_REM_INV_RD_REQ_ERR, "remote invalid RD request"),
	ROW(IBV_WC_REM_ABORT_ERR, "aborted error"),
	ROW(IBV_WC_INV_EECN_ERR, "invalid EE context number"),
	ROW(IBV_WC_INV_EEC_STATE_ERR, "invalid EE context state"),
	ROW(IBV_WC_FATAL_ERR, "fatal error"),
	ROW(IBV_WC_RESP_TIMEOUT_ERR, "response timeout error"),
	ROW(IBV_WC_GENERAL_ERR, "general error"),
	ROW(IBV_WC_TM_ERR, "TM error"),
	ROW(IBV_WC_TM_RNDV_INCOMPLETE, "TM software rendezvous"),
};

static const struct name event_types[] = {
	ROW(IBV_EVENT_CQ_ERR, "CQ error"),
	ROW(IBV_EVENT_QP_FATAL, "local work queue catastrophic error"),
	ROW(IBV_EVENT_QP_REQ_ERR, "invalid request local work queue error"),
	ROW(IBV_EVENT_QP_ACCESS_ERR, "local access violation work queue error"),
	ROW(IBV_EVENT_COMM_EST, "communication established"),
	ROW(IBV_EVENT_SQ_DRAINED, "send queue drained"),
	ROW(IBV_EVENT_PATH_MIG, "path migrated"),
	ROW(IBV_EVENT_PATH_MIG_ERR, "path migration request error"),
	ROW(IBV_EVENT_DEVICE_FATAL, "local catastrophic error"),
	ROW(IBV_EVENT_PORT_ACTIVE, "port active"),
	ROW(IBV_EVENT_PORT_ERR, "port error"),
	ROW(IBV_EVENT_LID_CHANGE, "LID change"),
	ROW(IBV_EVENT_PKEY_CHANGE, "P_Key change"),
	ROW(IBV_EVENT_SM_CHANGE, "SM change"),
	ROW(IBV_EVENT_SRQ_ERR, "SRQ catastrophic error"),
	ROW(IBV_EVENT_SRQ_LIMIT_REACHED, "SRQ limit reached"),
	ROW(IBV_EVENT_QP_LAST_WQE_REACHED, "last WQE reached"),
	ROW(IBV_EVENT_CLIENT_REREGISTER, "client reregistration"),
	ROW(IBV_EVENT_GID_CHANGE, "GID table change"),
	ROW(IBV_EVENT_WQ_FATAL, "WQ fatal"),
};

static const struct name node_types[] = {
	ROW(IBV_NODE_CA, "InfiniBand channel adapter"),
	ROW(IBV_NODE_SWITCH, "InfiniBand switch"),
	ROW(IBV_NODE_ROUTER, "InfiniBand router"),
	ROW(IBV_NODE_RNIC, "iWARP NIC"),
	ROW(IBV_NODE_USNIC, "usNIC"),
	ROW(IBV_NODE_USNIC_UDP, "usNIC UDP"),
	ROW(IBV_NODE_UNSPECIFIED, "unspecified"),
};

static const struct name port_states[] = {
	ROW(IBV_PORT_NOP, "no state change (NOP)"),
	ROW(IBV_PORT_DOWN, "down"),
	ROW(IBV_PORT_INIT, "init"),
	ROW(IBV_PORT_ARMED, "armed"),
	ROW(IBV_PORT_ACTIVE, "active"),
	ROW(IBV_PORT_ACTIVE_DEFER, "active defer"),
};

static const struct name qp_states[] = {
	SHORT(IBV_QPS_, RESET), SHORT(IBV_QPS_, INIT), SHORT(IBV_QPS_, RTR), SHORT(IBV_QPS_, RTS),
	SHORT(IBV_QPS_, SQD),	SHORT(IBV_QPS_, SQE),  SHORT(IBV_QPS_, ERR),
};

static const struct name qp_types[] = {
	SHORT(IBV_QPT_, RC),	     SHORT(IBV_QPT_, UC),	SHORT(IBV_QPT_, UD),
	SHORT(IBV_QPT_, RAW_PACKET), SHORT(IBV_QPT_, XRC_SEND), SHORT(IBV_QPT_, XRC_RECV),
	SHORT(IBV_QPT_, DRIVER),
};

static const struct name wr_opcodes[] = {
	SHORT(IBV_WR_, RDMA_WRITE),
	SHORT(IBV_WR_, RDMA_WRITE_WITH_IMM),
	SHORT(IBV_WR_, SEND),
	SHORT(IBV_WR_, SEND_WITH_IMM),
	SHORT(IBV_WR_, RDMA_READ),
	SHORT(IBV_WR_, ATOMIC_CMP_AND_SWP),
	SHORT(IBV_WR_, ATOMIC_FETCH_AND_ADD),
	SHORT(IBV_WR_, LOCAL_INV),
	SHORT(IBV_WR_, BIND_MW),
	SHORT(IBV_WR_, SEND_WITH_INV),
	SHORT(IBV_WR_, TSO),
	SHORT(IBV_WR_, DRIVER1),
	SHORT(IBV_WR_, ATOMIC_WRITE),
};

static const struct name wc_opcodes[] = {
	SHORT(IBV_WC_, SEND),
	SHORT(IBV_WC_, RDMA_WRITE),
	SHORT(IBV_WC_, RDMA_READ),
	SHORT(IBV_WC_, COMP_SWAP),
	SHORT(IBV_WC_, FETCH_ADD),
	SHORT(IBV_WC_, BIND_MW),
	SHORT(IBV_WC_, LOCAL_INV),
	SHORT(IBV_WC_, TSO),
	SHORT(IBV_WC_, ATOMIC_WRITE),
	SHORT(IBV_WC_, RECV),
	SHORT(IBV_WC_, RECV_RDMA_WITH_IMM),
	SHORT(IBV_WC_, TM_ADD),
	SHORT(IBV_WC_, TM_DEL),
	SHORT(IBV_WC_, TM_SYNC),
	SHORT(IBV_WC_, TM_RECV),
	SHORT(IBV_WC_, TM_NO_TAG),
	SHORT(IBV_WC_, DRIVER1),
	SHORT(IBV_WC_, DRIVER2),
	SHORT(IBV_WC_, DRIVER3),
};

struct rate {
	int mult; /* the multiple of 2.5 Gbit/s, or 0 if libibverbs has none */
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
static const struct name *look_up(const struct name *names, size_t count, int value)
{
	static const struct name unknown = {"unknown", "unknown"};
	size_t index = (size_t)(unsigned int)value;

	return index < count && names[index].name ? &names[index] : &unknown;
}

/* Defines a function that returns one member of a value's row. */
#define LOOK_UP(function, enumeration, names, member)                    \
	const char *function(enum enumeration value)                     \
	{                                                                \
		return look_up(names, COUNT(names), (int)value)->member; \
	}

LOOK_UP(vb_wc_status_str, ibv_wc_status, wc_statuses, text)
LOOK_UP(vb_wc_status_name, ibv_wc_status, wc_statuses, name)
LOOK_UP(vb_event_type_str, ibv_event_type, event_types, text)
LOOK_UP(vb_event_type_name, ibv_event_type, event_types, name)
LOOK_UP(vb_node_type_str, ibv_node_type, node_types, text)
LOOK_UP(vb_port_state_str, ibv_port_state, port_states, text)
LOOK_UP(vb_qp_state_str, ibv_qp_state, qp_states, text)
LOOK_UP(vb_qp_state_name, ibv_qp_state, qp_states, name)
LOOK_UP(vb_qp_type_str, ibv_qp_type, qp_types, text)
LOOK_UP(vb_wr_opcode_str, ibv_wr_opcode, wr_opcodes, text)
LOOK_UP(vb_wc_opcode_str, ibv_wc_opcode, wc_opcodes, text)

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
