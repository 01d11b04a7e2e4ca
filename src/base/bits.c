/* SPDX-License-Identifier: MIT */
#include "src/base/bits.h"

#include <infiniband/verbs.h>
#include <inttypes.h>
#include <stdio.h>

#define BIT(enumerator)                 \
	{                               \
		enumerator, #enumerator \
	}

const struct bit_name bits_qp_attr[] = {
	BIT(IBV_QP_STATE),
	BIT(IBV_QP_CUR_STATE),
	BIT(IBV_QP_PORT),
	BIT(IBV_QP_PKEY_INDEX),
	BIT(IBV_QP_QKEY),
	BIT(IBV_QP_ACCESS_FLAGS),
	BIT(IBV_QP_AV),
	BIT(IBV_QP_PATH_MTU),
	BIT(IBV_QP_DEST_QPN),
	BIT(IBV_QP_RQ_PSN),
	BIT(IBV_QP_SQ_PSN),
	BIT(IBV_QP_TIMEOUT),
	BIT(IBV_QP_RETRY_CNT),
	BIT(IBV_QP_RNR_RETRY),
	BIT(IBV_QP_MIN_RNR_TIMER),
	BIT(IBV_QP_MAX_QP_RD_ATOMIC),
	BIT(IBV_QP_MAX_DEST_RD_ATOMIC),
	BIT(IBV_QP_EN_SQD_ASYNC_NOTIFY),
	BIT(IBV_QP_ALT_PATH),
	BIT(IBV_QP_PATH_MIG_STATE),
	{0},
};

const struct bit_name bits_access[] = {
	BIT(IBV_ACCESS_LOCAL_WRITE),	  BIT(IBV_ACCESS_REMOTE_WRITE),
	BIT(IBV_ACCESS_REMOTE_READ),	  BIT(IBV_ACCESS_REMOTE_ATOMIC),
	BIT(IBV_ACCESS_MW_BIND),	  BIT(IBV_ACCESS_ZERO_BASED),
	BIT(IBV_ACCESS_ON_DEMAND),	  BIT(IBV_ACCESS_HUGETLB),
	BIT(IBV_ACCESS_RELAXED_ORDERING), {0},
};

const struct bit_name bits_send_flags[] = {
	BIT(IBV_SEND_FENCE),  BIT(IBV_SEND_SIGNALED), BIT(IBV_SEND_SOLICITED),
	BIT(IBV_SEND_INLINE), BIT(IBV_SEND_IP_CSUM),  {0},
};

const struct bit_name bits_wc_flags[] = {
	BIT(IBV_WC_EX_WITH_BYTE_LEN),
	BIT(IBV_WC_EX_WITH_IMM),
	BIT(IBV_WC_EX_WITH_QP_NUM),
	BIT(IBV_WC_EX_WITH_SRC_QP),
	BIT(IBV_WC_EX_WITH_SLID),
	BIT(IBV_WC_EX_WITH_SL),
	BIT(IBV_WC_EX_WITH_DLID_PATH_BITS),
	BIT(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP),
	BIT(IBV_WC_EX_WITH_CVLAN),
	BIT(IBV_WC_EX_WITH_FLOW_TAG),
	BIT(IBV_WC_EX_WITH_TM_INFO),
	BIT(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK),
	{0},
};

const struct bit_name bits_wc[] = {
	BIT(IBV_WC_GRH),	   BIT(IBV_WC_WITH_IMM),
	BIT(IBV_WC_IP_CSUM_OK),	   BIT(IBV_WC_WITH_INV),
	BIT(IBV_WC_TM_SYNC_REQ),   BIT(IBV_WC_TM_MATCH),
	BIT(IBV_WC_TM_DATA_VALID), {0},
};

const struct bit_name bits_cq_create[] = {
	BIT(IBV_CREATE_CQ_ATTR_SINGLE_THREADED),
	BIT(IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN),
	{0},
};

const struct bit_name bits_cq_attr[] = {BIT(IBV_CQ_ATTR_MODERATE), {0}};

const struct bit_name bits_rereg[] = {
	BIT(IBV_REREG_MR_CHANGE_TRANSLATION),
	BIT(IBV_REREG_MR_CHANGE_PD),
	BIT(IBV_REREG_MR_CHANGE_ACCESS),
	{0},
};

const struct bit_name bits_srq_attr[] = {BIT(IBV_SRQ_MAX_WR), BIT(IBV_SRQ_LIMIT), {0}};

const struct bit_name bits_device_cap[] = {
	BIT(IBV_DEVICE_RESIZE_MAX_WR),
	BIT(IBV_DEVICE_BAD_PKEY_CNTR),
	BIT(IBV_DEVICE_BAD_QKEY_CNTR),
	BIT(IBV_DEVICE_RAW_MULTI),
	BIT(IBV_DEVICE_AUTO_PATH_MIG),
	BIT(IBV_DEVICE_CHANGE_PHY_PORT),
	BIT(IBV_DEVICE_UD_AV_PORT_ENFORCE),
	BIT(IBV_DEVICE_CURR_QP_STATE_MOD),
	BIT(IBV_DEVICE_SHUTDOWN_PORT),
	BIT(IBV_DEVICE_INIT_TYPE),
	BIT(IBV_DEVICE_PORT_ACTIVE_EVENT),
	BIT(IBV_DEVICE_SYS_IMAGE_GUID),
	BIT(IBV_DEVICE_RC_RNR_NAK_GEN),
	BIT(IBV_DEVICE_SRQ_RESIZE),
	BIT(IBV_DEVICE_N_NOTIFY_CQ),
	BIT(IBV_DEVICE_MEM_WINDOW),
	BIT(IBV_DEVICE_UD_IP_CSUM),
	BIT(IBV_DEVICE_XRC),
	BIT(IBV_DEVICE_MEM_MGT_EXTENSIONS),
	BIT(IBV_DEVICE_MEM_WINDOW_TYPE_2A),
	BIT(IBV_DEVICE_MEM_WINDOW_TYPE_2B),
	BIT(IBV_DEVICE_RC_IP_CSUM),
	BIT(IBV_DEVICE_RAW_IP_CSUM),
	BIT(IBV_DEVICE_MANAGED_FLOW_STEERING),
	{0},
};

const struct bit_name bits_qp_init[] = {
	BIT(IBV_QP_INIT_ATTR_PD),
	BIT(IBV_QP_INIT_ATTR_XRCD),
	BIT(IBV_QP_INIT_ATTR_CREATE_FLAGS),
	BIT(IBV_QP_INIT_ATTR_MAX_TSO_HEADER),
	BIT(IBV_QP_INIT_ATTR_IND_TABLE),
	BIT(IBV_QP_INIT_ATTR_RX_HASH),
	BIT(IBV_QP_INIT_ATTR_SEND_OPS_FLAGS),
	{0},
};

const struct bit_name bits_qp_create[] = {
	BIT(IBV_QP_CREATE_BLOCK_SELF_MCAST_LB),	  BIT(IBV_QP_CREATE_SCATTER_FCS),
	BIT(IBV_QP_CREATE_CVLAN_STRIPPING),	  BIT(IBV_QP_CREATE_SOURCE_QPN),
	BIT(IBV_QP_CREATE_PCI_WRITE_END_PADDING), {0},
};

const struct bit_name bits_send_ops[] = {
	BIT(IBV_QP_EX_WITH_RDMA_WRITE),
	BIT(IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM),
	BIT(IBV_QP_EX_WITH_SEND),
	BIT(IBV_QP_EX_WITH_SEND_WITH_IMM),
	BIT(IBV_QP_EX_WITH_RDMA_READ),
	BIT(IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP),
	BIT(IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD),
	BIT(IBV_QP_EX_WITH_LOCAL_INV),
	BIT(IBV_QP_EX_WITH_BIND_MW),
	BIT(IBV_QP_EX_WITH_SEND_WITH_INV),
	BIT(IBV_QP_EX_WITH_TSO),
	BIT(IBV_QP_EX_WITH_ATOMIC_WRITE),
	{0},
};

const struct bit_name bits_qp_open[] = {
	BIT(IBV_QP_OPEN_ATTR_NUM),
	BIT(IBV_QP_OPEN_ATTR_XRCD),
	BIT(IBV_QP_OPEN_ATTR_CONTEXT),
	BIT(IBV_QP_OPEN_ATTR_TYPE),
	{0},
};

const struct bit_name bits_srq_init[] = {
	BIT(IBV_SRQ_INIT_ATTR_TYPE), BIT(IBV_SRQ_INIT_ATTR_PD), BIT(IBV_SRQ_INIT_ATTR_XRCD),
	BIT(IBV_SRQ_INIT_ATTR_CQ),   BIT(IBV_SRQ_INIT_ATTR_TM), {0},
};

const char *bits_text(const struct bit_name *names, uint64_t bits, char *text, size_t size_bytes)
{
	size_t used = 0;

	snprintf(text, size_bytes, "%s", bits ? "" : "0");
	for (; names->name && used < size_bytes; names++) {
		if (!(bits & names->bit))
			continue;
		bits &= ~names->bit;
		used += (size_t)snprintf(text + used, size_bytes - used, "%s%s", used ? " | " : "",
					 names->name);
	}
	if (bits && used < size_bytes)
		snprintf(text + used, size_bytes - used, "%s0x%" PRIx64, used ? " | " : "", bits);
	return text;
}
