/* SPDX-License-Identifier: MIT */
/*
 * The steps from RESET to RTS.
 */
#include "test/support/support.h"

struct ibv_ah_attr ts_av(struct vt_node *from, struct vt_node *to)
{
	struct ibv_ah_attr av = {.port_num = from->port};

	if (from->port_attr.link_layer == IBV_LINK_LAYER_ETHERNET) {
		av.is_global = 1;
		av.grh.dgid = to->gid;
		av.grh.sgid_index = (uint8_t)from->gid_index;
		av.grh.hop_limit = 64;
	} else {
		av.dlid = to->port_attr.lid;
	}
	return av;
}

struct ibv_qp_attr ts_good_attr(struct ts_end *end, struct ts_end *peer, enum ibv_qp_state from,
				enum ibv_qp_state to)
{
	return (struct ibv_qp_attr){
		.qp_state = to,
		.cur_qp_state = from,
		.path_mtu = end->options.mtu,
		.qkey = TS_QKEY,
		.rq_psn = end->recv_psn,
		.sq_psn = end->send_psn,
		.dest_qp_num = peer->qp->qp_num,
		.qp_access_flags = (unsigned int)end->options.qp_access,
		.cap = end->cap,
		.ah_attr = ts_av(end->node, peer->node),
		.max_rd_atomic = 1,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.port_num = end->node->port,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
	};
}

int ts_init_attr(struct ts_end *end, struct ibv_qp_attr *attr)
{
	*attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_INIT,
		.pkey_index = end->node->pkey_index,
		.port_num = end->node->port,
		.qkey = TS_QKEY,
		.qp_access_flags = (unsigned int)end->options.qp_access,
	};
	return IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
	       (end->options.type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS);
}

int ts_rtr_attr(struct ts_end *end, struct ibv_qp_attr *attr)
{
	int mask = IBV_QP_STATE;

	*attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR,
		.ah_attr = ts_av(end->node, end->peer->node),
		.path_mtu = end->options.mtu,
		.dest_qp_num = end->peer->qp->qp_num,
		.rq_psn = end->recv_psn,
		.max_dest_rd_atomic = end->options.max_dest_rd_atomic,
		.min_rnr_timer = end->options.min_rnr_timer,
	};
	if (end->options.type != IBV_QPT_UD)
		mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	if (end->options.type == IBV_QPT_RC)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	return mask;
}

int ts_rts_attr(struct ts_end *end, struct ibv_qp_attr *attr)
{
	int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;

	*attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTS,
		.sq_psn = end->send_psn,
		.timeout = end->options.timeout,
		.retry_cnt = end->options.retry_cnt,
		.rnr_retry = end->options.rnr_retry,
		.max_rd_atomic = end->options.max_rd_atomic,
	};
	if (end->options.type == IBV_QPT_RC)
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_MAX_QP_RD_ATOMIC;
	return mask;
}

void ts_to_init(struct ts_end *end)
{
	struct ibv_qp_attr attr;
	int mask = ts_init_attr(end, &attr);

	VT_OK(end->t, vb_modify_qp(end->qp, &attr, mask));
}

void ts_to_rtr(struct ts_end *end)
{
	struct ibv_qp_attr attr;
	int mask = ts_rtr_attr(end, &attr);

	VT_OK(end->t, vb_modify_qp(end->qp, &attr, mask));
}

void ts_to_rts(struct ts_end *end)
{
	struct ibv_qp_attr attr;
	int mask = ts_rts_attr(end, &attr);

	VT_OK(end->t, vb_modify_qp(end->qp, &attr, mask));
}

int ts_to(struct ts_end *end, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = {.qp_state = state};

	return vb_modify_qp(end->qp, &attr, IBV_QP_STATE);
}

struct ibv_qp_attr ts_query(struct ts_end *end)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	VT_OK(end->t, vb_query_qp(end->qp, &attr, IBV_QP_STATE | IBV_QP_CAP, &init));
	return attr;
}

enum ibv_qp_state ts_query_state(struct vt *t, struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	VT_OK(t, vb_query_qp(qp, &attr, IBV_QP_STATE, &init));
	return attr.qp_state;
}

#define DRAIN_TRIES 1000

void ts_drained(struct ts_end *end)
{
	struct ibv_qp_attr attr;

	for (int i = 0; i < DRAIN_TRIES; i++) {
		attr = ts_query(end);
		if (attr.qp_state != IBV_QPS_SQD || !attr.sq_draining)
			return;
		ts_pause(end->t, 1000000);
	}
}
