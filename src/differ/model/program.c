/* SPDX-License-Identifier: MIT */
#include "src/differ/model/program.h"

const unsigned int vd_slots[VD_KINDS] = {
	[VD_PD] = 2, [VD_CQ] = 5, [VD_MR] = 8, [VD_MW] = 3, [VD_SRQ] = 2, [VD_QP] = 5, [VD_AH] = 3,
};

const char *const vd_kind_names[VD_KINDS] = {
	[VD_PD] = "pd",	  [VD_CQ] = "cq", [VD_MR] = "mr", [VD_MW] = "mw",
	[VD_SRQ] = "srq", [VD_QP] = "qp", [VD_AH] = "ah",
};

const struct vd_verb_info vd_verbs[VD_VERBS] = {
	[VD_ALLOC_PD] = {"alloc_pd", VD_PD, .makes = true},
	[VD_DEALLOC_PD] = {"dealloc_pd", VD_PD},
	[VD_REG_MR] = {"reg_mr", VD_MR, .makes = true},
	[VD_REREG_MR] = {"rereg_mr", VD_MR},
	[VD_DEREG_MR] = {"dereg_mr", VD_MR},
	[VD_ALLOC_MW] = {"alloc_mw", VD_MW, .makes = true},
	[VD_BIND_MW] = {"bind_mw", VD_MW, .settles = true},
	[VD_DEALLOC_MW] = {"dealloc_mw", VD_MW},
	[VD_CREATE_CQ] = {"create_cq", VD_CQ, .makes = true},
	[VD_RESIZE_CQ] = {"resize_cq", VD_CQ},
	[VD_REQ_NOTIFY_CQ] = {"req_notify_cq", VD_CQ},
	[VD_POLL_CQ] = {"poll_cq", VD_CQ},
	[VD_DESTROY_CQ] = {"destroy_cq", VD_CQ},
	[VD_CREATE_SRQ] = {"create_srq", VD_SRQ, .makes = true},
	[VD_MODIFY_SRQ] = {"modify_srq", VD_SRQ},
	[VD_QUERY_SRQ] = {"query_srq", VD_SRQ},
	[VD_POST_SRQ_RECV] = {"post_srq_recv", VD_SRQ, .settles = true},
	[VD_DESTROY_SRQ] = {"destroy_srq", VD_SRQ},
	[VD_CREATE_QP] = {"create_qp", VD_QP, .makes = true},
	[VD_CONNECT_QP] = {"connect_qp", VD_QP, .settles = true},
	[VD_MODIFY_QP] = {"modify_qp", VD_QP, .settles = true},
	[VD_QUERY_QP] = {"query_qp", VD_QP},
	[VD_POST_RECV] = {"post_recv", VD_QP, .settles = true},
	[VD_POST_SEND] = {"post_send", VD_QP, .settles = true},
	[VD_ATTACH_MCAST] = {"attach_mcast", VD_QP},
	[VD_DETACH_MCAST] = {"detach_mcast", VD_QP},
	[VD_DESTROY_QP] = {"destroy_qp", VD_QP, .settles = true},
	[VD_CREATE_AH] = {"create_ah", VD_AH, .makes = true},
	[VD_DESTROY_AH] = {"destroy_ah", VD_AH},
};

const struct vd_avoid_info vd_avoid_info[] = {
	{"invalidate", "invalidating what is no bound window", VD_AVOID_INVALIDATE},
	{"dereg", "deregistering memory", VD_AVOID_DEREG},
	{"rereg", "changing a memory region", VD_AVOID_REREG},
	{0},
};

int vd_required_mask(enum ibv_qp_type type, enum ibv_qp_state state)
{
	bool is_rc = type == IBV_QPT_RC;

	switch (state) {
	case IBV_QPS_INIT:
		return IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
		       (type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS);
	case IBV_QPS_RTR:
		if (type == IBV_QPT_UD)
			return IBV_QP_STATE;
		return IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
		       IBV_QP_RQ_PSN |
		       (is_rc ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0);
	case IBV_QPS_RTS:
		return IBV_QP_STATE | IBV_QP_SQ_PSN |
		       (is_rc ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
					IBV_QP_MAX_QP_RD_ATOMIC
			      : 0);
	default:
		return IBV_QP_STATE;
	}
}
