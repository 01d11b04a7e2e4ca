/* SPDX-License-Identifier: MIT */
#include "test/support/xrc.h"
#include "test/support/keep.h"
#include "test/support/need.h"

#include <fcntl.h>

void ts_need_xrc(struct vt *t)
{
	ts_need_caps(t, IBV_DEVICE_XRC, "XRC");
}

struct ibv_xrcd *ts_xrcd(struct vt *t, struct ibv_context *ctx, int fd, int oflags)
{
	struct ibv_xrcd_init_attr init = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = fd,
		.oflags = oflags,
	};
	struct ibv_xrcd *xrcd = VT_PTR(t, vb_open_xrcd(ctx, &init));

	ts_keep(t, TS_XRCD, xrcd);
	return xrcd;
}

uint32_t ts_srqn(struct vt *t, struct ibv_srq *srq)
{
	uint32_t number;

	VT_OK(t, vb_get_srq_num(srq, &number));
	return number;
}

struct ts_shared *ts_xrc_srq(struct vt *t, struct ibv_xrcd *xrcd, struct ibv_cq *cq)
{
	struct ts_shared *shared = ts_shared_memory(t);
	struct ibv_srq_init_attr_ex init = {
		.attr = {.max_wr = 16, .max_sge = 1},
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC,
		.pd = shared->pd,
		.xrcd = xrcd,
		.cq = cq,
	};

	shared->srq = VT_PTR(t, vb_create_srq_ex(xrcd->context, &init));
	shared->attr = init.attr;
	ts_keep(t, TS_SRQ, shared->srq);
	return shared;
}

struct ts_xrc *ts_xrc_reset(struct vt *t, const struct ts_options *options)
{
	const struct ibv_qp_init_attr_ex initiator = {.qp_type = IBV_QPT_XRC_SEND};
	struct ibv_qp_init_attr_ex target = {
		.qp_type = IBV_QPT_XRC_RECV,
		.comp_mask = IBV_QP_INIT_ATTR_XRCD,
	};
	struct ts_xrc *xrc = vt_alloc(t, sizeof(*xrc));
	int i;

	xrc->t = t;
	xrc->xrcd = ts_xrcd(t, t->b.ctx, -1, O_CREAT);
	for (i = 0; i < TS_XRC_SRQS; i++) {
		xrc->cq[i] = ts_cq(t, &t->b, 64);
		xrc->shared[i] = ts_xrc_srq(t, xrc->xrcd, xrc->cq[i]);
		xrc->srqn[i] = ts_srqn(t, xrc->shared[i]->srq);
	}
	target.xrcd = xrc->xrcd;
	xrc->pair = ts_pair_reset(t, options);
	ts_remake_qp(&xrc->pair->a, &initiator);
	ts_remake_qp(&xrc->pair->b, &target);
	return xrc;
}

int ts_target_rtr_attr(struct ts_end *end, struct ibv_qp_attr *attr)
{
	return ts_rtr_attr(end, attr) | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
}

int ts_target_rts_attr(struct ts_end *end, struct ibv_qp_attr *attr)
{
	return ts_rts_attr(end, attr) | IBV_QP_TIMEOUT;
}

void ts_connect_target(struct ts_end *end)
{
	struct ibv_qp_attr attr;
	int mask;

	ts_to_init(end);
	mask = ts_target_rtr_attr(end, &attr);
	VT_OK(end->t, vb_modify_qp(end->qp, &attr, mask));
	mask = ts_target_rts_attr(end, &attr);
	VT_OK(end->t, vb_modify_qp(end->qp, &attr, mask));
}

/* An initiator takes the attributes of an RC QP. */
static void initiator_to_rts(struct ts_end *end)
{
	struct ibv_qp_attr attr;
	int mask = ts_rts_attr(end, &attr);

	mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
	VT_OK(end->t, vb_modify_qp(end->qp, &attr, mask));
}

struct ts_xrc *ts_xrc(struct vt *t)
{
	const struct ts_options options = ts_defaults(t, IBV_QPT_RC);

	return ts_xrc_with(t, &options);
}

struct ts_xrc *ts_xrc_with(struct vt *t, const struct ts_options *options)
{
	struct ts_xrc *xrc;

	ts_need_xrc(t);
	xrc = ts_xrc_reset(t, options);
	ts_to_init(&xrc->pair->a);
	ts_to_rtr(&xrc->pair->a);
	initiator_to_rts(&xrc->pair->a);
	ts_connect_target(&xrc->pair->b);
	return xrc;
}

int ts_xrc_post(struct ts_xrc *xrc, uint32_t srqn, const struct ts_wr *wr)
{
	struct ibv_send_wr out, *bad;
	struct ibv_sge sge;

	ts_fill_wr(&xrc->pair->a, wr, &sge, &out);
	out.qp_type.xrc.remote_srqn = srqn;
	return ibv_post_send(xrc->pair->a.qp, &out, &bad);
}
