/* SPDX-License-Identifier: MIT */
/* Connected pairs of XRC: each end has an initiator, and the target of the other end's initiator. */
#include "src/expect/pair.h"

#include <errno.h>
#include <fcntl.h>

static int make_domain(struct pair *pair, struct vb_pair_end *end)
{
	struct ibv_xrcd_init_attr domain = {.comp_mask = IBV_XRCD_INIT_ATTR_FD |
							 IBV_XRCD_INIT_ATTR_OFLAGS,
					    .fd = -1,
					    .oflags = O_CREAT};
	struct ibv_srq_init_attr_ex srq = {.attr = {.max_wr = pair->options.depth, .max_sge = 1},
					   .comp_mask =
						   IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
						   IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
					   .srq_type = IBV_SRQT_XRC,
					   .pd = end->pd,
					   .cq = end->cq};

	end->xrcd = vb_open_xrcd(end->context, &domain);
	if (!end->xrcd)
		return pair_failed("opening an XRC domain");
	srq.xrcd = end->xrcd;
	end->srq = vb_create_srq_ex(end->context, &srq);
	return end->srq ? 0 : pair_failed("creating an XRC SRQ");
}

static int make_qps(struct pair *pair, struct vb_pair_end *end)
{
	struct ibv_qp_init_attr_ex initiator = {
		.send_cq = end->cq,
		.recv_cq = end->cq,
		.cap = {.max_send_wr = pair->options.depth, .max_send_sge = 1},
		.qp_type = IBV_QPT_XRC_SEND,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = end->pd};
	struct ibv_qp_init_attr_ex target = {
		.qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = end->xrcd};

	end->qp = vb_create_qp_ex(end->context, &initiator);
	if (!end->qp)
		return pair_failed("creating an XRC initiator");
	end->target = vb_create_qp_ex(end->context, &target);
	return end->target ? 0 : pair_failed("creating an XRC target");
}

/* --- connecting --- */

#define ALL_ACCESS                                                                   \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC)

/* psns: the first PSN that the QP sends, and that of its peer. */
struct xrc_path {
	const struct vb_device *from, *to;
	uint32_t psns[2];
};

static struct ibv_qp_attr attributes(const struct pair *pair, const struct xrc_path *path,
				     const struct ibv_qp *peer)
{
	const struct ibv_port_attr *own = &path->from->port_attr, *other = &path->to->port_attr;
	const struct vb_pair_options *options = &pair->options;

	return (struct ibv_qp_attr){
		.path_mtu =
			own->active_mtu < other->active_mtu ? own->active_mtu : other->active_mtu,
		.rq_psn = path->psns[1],
		.sq_psn = path->psns[0],
		.dest_qp_num = peer->qp_num,
		.qp_access_flags = ALL_ACCESS,
		.ah_attr = {.dlid = other->lid,
			    .port_num = path->from->port_num,
			    .is_global = own->link_layer == IBV_LINK_LAYER_ETHERNET,
			    .grh = {.dgid = path->to->gid,
				    .sgid_index = (uint8_t)path->from->gid_index,
				    .hop_limit = 64}},
		.max_rd_atomic = 1,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = VB_RNR_2_56_MS,
		.port_num = path->from->port_num,
		.timeout = options->timeout,
		.retry_cnt = options->retry_cnt,
		.rnr_retry = options->rnr_retry,
	};
}

static int move(struct ibv_qp *qp, struct ibv_qp_attr attr, enum ibv_qp_state state, int mask)
{
	int err;

	attr.qp_state = state;
	err = vb_modify_qp(qp, &attr, IBV_QP_STATE | mask);
	if (err)
		errno = err;
	return err ? pair_failed("connecting an XRC QP") : 0;
}

static int connect_qp(struct pair *pair, struct ibv_qp *qp, const struct ibv_qp *peer,
		      const struct xrc_path *path)
{
	const struct ibv_qp_attr attr = attributes(pair, path, peer);
	const bool sends = qp->qp_type == IBV_QPT_XRC_SEND;
	const int to_rtr = sends ? 0 : IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	const int to_rts =
		sends ? IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC : 0;
	int err =
		move(qp, attr, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);

	if (!err)
		err = move(qp, attr, IBV_QPS_RTR,
			   IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | to_rtr);
	return err ? err : move(qp, attr, IBV_QPS_RTS, IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | to_rts);
}

/* Connects the initiator of an end to the target of the other one. */
static int connect_way(struct pair *pair, int from)
{
	const struct pair_side *side = &pair->sides[from], *other = &pair->sides[!from];
	const uint32_t psn = (pair->options.psn << from) & 0xffffff;
	const struct xrc_path there = {side->device, other->device, {psn, psn}},
			      back = {other->device, side->device, {psn, psn}};
	int err = connect_qp(pair, side->end->qp, other->end->target, &there);

	return err ? err : connect_qp(pair, other->end->target, side->end->qp, &back);
}

int pair_open_xrc(struct pair *pair)
{
	int err = 0;

	for (int i = 0; i < 2 && !err; i++) {
		err = make_domain(pair, pair->sides[i].end);
		if (!err)
			err = make_qps(pair, pair->sides[i].end);
	}
	for (int i = 0; i < 2 && !err; i++) {
		pair->sides[i].end->remote_qpn = pair->sides[!i].end->target->qp_num;
		err = connect_way(pair, i);
	}
	return err;
}
