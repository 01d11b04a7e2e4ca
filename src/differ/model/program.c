/* SPDX-License-Identifier: MIT */
#include "src/differ/model/program.h"

const struct vd_verb_info vd_verbs[VD_VERBS] = {
#define VERB(constant, name, kind, does, flags) \
	[VD_##constant] = {#name, VD_##kind, VD_##does, flags},
#include "src/differ/model/verbs.def"
};

const struct vd_kind_info vd_kinds[VD_KINDS] = {
	[VD_PD] = {"pd", 2, VD_DEALLOC_PD},    [VD_CQ] = {"cq", 5, VD_DESTROY_CQ},
	[VD_MR] = {"mr", 8, VD_DEREG_MR},      [VD_MW] = {"mw", 3, VD_DEALLOC_MW},
	[VD_SRQ] = {"srq", 2, VD_DESTROY_SRQ}, [VD_QP] = {"qp", 5, VD_DESTROY_QP},
	[VD_AH] = {"ah", 3, VD_DESTROY_AH},
};

const enum vd_kind vd_ending_order[VD_KINDS] = {VD_QP, VD_SRQ, VD_MW, VD_MR, VD_AH, VD_CQ, VD_PD};

const enum ibv_qp_state vd_climb[VD_CLIMB] = {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS};

const union ibv_gid vd_group = {.raw = {0xff, 0x0e, [15] = 1}};

const char *const vd_avoids[VD_AVOIDS] = {"invalidate", "dereg", "rereg"};

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

/* The PSN of a QP's first request. That of QP 1 soon wraps around. */
static uint32_t first_psn(unsigned int slot)
{
	unsigned int qp = slot % vd_kinds[VD_QP].slots;

	return qp == 1 ? 0xfffffe : 0x1000 * (qp + 1);
}

struct ibv_qp_attr vd_attributes(unsigned int slot, unsigned int peer,
				 const struct vd_modify *modify)
{
	uint32_t wide = modify->wide ? VD_WIDE : 0;

	return (struct ibv_qp_attr){
		.qp_state = modify->state,
		.cur_qp_state = IBV_QPS_RTS,
		.en_sqd_async_notify = 1,
		.path_mtu = modify->mtu,
		.qkey = modify->qkey,
		.rq_psn = ((first_psn(peer) + modify->psn_add) & 0xffffff) | wide,
		.sq_psn = first_psn(slot) | wide,
		.dest_qp_num = VD_NO_QPN | wide,
		.qp_access_flags = modify->access,
		.pkey_index = modify->pkey_index,
		.max_rd_atomic = (uint8_t)modify->reads,
		.max_dest_rd_atomic = (uint8_t)modify->dest_reads,
		.min_rnr_timer = (uint8_t)modify->rnr_timer,
		.port_num = (uint8_t)modify->port,
		.timeout = (uint8_t)modify->timeout,
		.retry_cnt = (uint8_t)modify->retry,
		.rnr_retry = (uint8_t)modify->rnr_retry,
	};
}
