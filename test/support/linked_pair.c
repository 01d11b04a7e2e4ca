/* SPDX-License-Identifier: MIT */
#include "test/support/linked_pair.h"
#include "test/support/keep.h"

#include <verbena/fault.h>
#include <verbena/sim.h>

#define DEFAULT_A_PSN 0x1000
#define DEFAULT_B_PSN 0x2000

static struct ibv_qp_attr default_values(const struct ts_link *link, int which)
{
	const struct ts_end *end = link->ends[which], *other = link->ends[!which];

	return (struct ibv_qp_attr){
		.path_mtu = IBV_MTU_1024,
		.qkey = TS_QKEY,
		.sq_psn = which == TS_A ? DEFAULT_A_PSN : DEFAULT_B_PSN,
		.rq_psn = which == TS_A ? DEFAULT_B_PSN : DEFAULT_A_PSN,
		.dest_qp_num = other->qp->qp_num,
		.qp_access_flags =
			IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
		.ah_attr = ts_av(end->node, other->node),
		.max_rd_atomic = 4,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 1,
		.port_num = end->node->port,
		.timeout = 8,
		.retry_cnt = 2,
		.rnr_retry = 2,
	};
}

static void make_xrc(struct ts_link *link, const struct ts_options *options)
{
	ts_need_xrc(link->t);
	link->xrc = ts_xrc_reset(link->t, options);
	link->pair = link->xrc->pair;
	link->pair->b.buffer = link->xrc->shared[0]->buffer;
	link->pair->b.mr = link->xrc->shared[0]->mr;
	link->pair->b.recv_cq = link->xrc->cq[0];
	link->types[TS_A] = TS_TYPE_XRC_SEND;
	link->types[TS_B] = TS_TYPE_XRC_RECV;
}

struct ts_link *ts_link(struct vt *t, enum ts_type type)
{
	const bool xrc = type == TS_TYPE_XRC_SEND || type == TS_TYPE_XRC_RECV;
	const struct ts_options options = ts_defaults(t, xrc ? IBV_QPT_RC : ts_types[type]);
	struct ts_link *link = vt_alloc(t, sizeof(*link));

	link->t = t;
	link->reliable = type != TS_TYPE_UC && type != TS_TYPE_UD;
	link->types[TS_A] = link->types[TS_B] = type;
	if (xrc)
		make_xrc(link, &options);
	else
		link->pair = ts_pair_reset(t, &options);
	link->ends[TS_A] = &link->pair->a;
	link->ends[TS_B] = &link->pair->b;
	for (int i = 0; i < 2; i++)
		link->values[i] = default_values(link, i);
	return link;
}

void ts_link_modify(struct ts_link *link, int which, enum ibv_qp_state from, enum ibv_qp_state to,
		    const struct ibv_qp_attr *attr, int mask)
{
	struct ibv_qp_attr given = *attr;

	given.qp_state = to;
	given.cur_qp_state = from;
	VT_OK(link->t, vb_modify_qp(link->ends[which]->qp, &given, mask | IBV_QP_STATE));
}

static void forget_completions(struct ibv_cq *cq)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(cq, 1, &wc) > 0)
		;
}

void ts_link_reset(struct ts_link *link)
{
	for (int i = 0; i < 2; i++) {
		VT_OK(link->t, ts_to(link->ends[i], IBV_QPS_RESET));
		forget_completions(link->ends[i]->send_cq);
		forget_completions(link->ends[i]->recv_cq);
		ts_drain_events(link->ends[i]->node);
	}
}

/* A UD end sends to the address of its values. */
static void aim(struct ts_link *link, int which)
{
	struct ts_end *end = link->ends[which];

	end->ah = VT_PTR(link->t, vb_create_ah(end->pd, &link->values[which].ah_attr));
	ts_keep(link->t, TS_AH, end->ah);
}

void ts_link_walk(struct ts_link *link, int which)
{
	for (int at = IBV_QPS_RESET; at < IBV_QPS_RTS; at++)
		ts_link_modify(link, which, (enum ibv_qp_state)at, (enum ibv_qp_state)(at + 1),
			       &link->values[which],
			       ts_required(link->types[which], (enum ibv_qp_state)at,
					   (enum ibv_qp_state)(at + 1)));
	if (link->types[which] == TS_TYPE_UD)
		aim(link, which);
}

void ts_link_connect(struct ts_link *link)
{
	ts_link_reset(link);
	ts_link_walk(link, TS_A);
	ts_link_walk(link, TS_B);
}

void ts_link_renew(struct ts_link *link, int which)
{
	struct ibv_qp_init_attr_ex init = {.qp_type = ts_types[link->types[which]]};
	const uint32_t number = link->ends[which]->qp->qp_num;
	struct ts_end *end = link->ends[which];

	if (link->types[which] == TS_TYPE_XRC_RECV) {
		init.comp_mask = IBV_QP_INIT_ATTR_XRCD;
		init.xrcd = link->xrc->xrcd;
	}
	do {
		ts_remake_qp(end, &init);
	} while (end->qp->qp_num == number || end->qp->qp_num == link->ends[!which]->qp->qp_num);
	link->values[!which].dest_qp_num = end->qp->qp_num;
}

int ts_link_post(struct ts_link *link, const struct ts_wr *wr)
{
	struct ts_wr given = *wr;

	if (link->types[TS_A] == TS_TYPE_UD && !wr->remote_qkey)
		given.remote_qkey = link->values[TS_B].qkey;
	return link->xrc ? ts_xrc_post(link->xrc, link->xrc->srqn[0], &given)
			 : ts_post(link->ends[TS_A], &given);
}

int ts_link_recv(struct ts_link *link, const struct ts_rr *rr)
{
	return link->xrc ? ts_post_srq(link->xrc->shared[0], rr) : ts_post_rr(link->ends[TS_B], rr);
}

struct ibv_wc ts_link_send(struct ts_link *link, uint32_t length_bytes)
{
	const uint32_t grh = link->types[TS_A] == TS_TYPE_UD ? TS_GRH : 0;
	struct ts_end *a = link->ends[TS_A], *b = link->ends[TS_B];
	struct ibv_wc wc;

	memset(b->buffer, TS_BLANK, length_bytes + grh);
	TS_LINK_RECV(link, .wr_id = 71, .length = length_bytes + grh);
	TS_LINK_POST(link, IBV_WR_SEND, .wr_id = 70, .length = length_bytes);
	ts_done(link->t, a->send_cq, 70, IBV_WC_SEND);
	wc = ts_received(link->t, b->recv_cq, 71, length_bytes + grh);
	ts_verify(link->t, b->buffer + grh, length_bytes, 1);
	return wc;
}

static void send_back(struct ts_link *link)
{
	struct ts_end *a = link->ends[TS_A], *b = link->ends[TS_B];
	const uint32_t grh = link->types[TS_A] == TS_TYPE_UD ? TS_GRH : 0;

	ts_recv(a, .wr_id = 73, .offset = 40000, .length = 64 + grh);
	ts_send(b, .wr_id = 72, .length = 64, .remote_qkey = link->values[TS_A].qkey);
	ts_done(link->t, b->send_cq, 72, IBV_WC_SEND);
	ts_received(link->t, a->recv_cq, 73, 64 + grh);
}

/* A receive that is posted too late, and a packet that is lost. */
static void make_trouble(struct ts_link *link)
{
	struct vt *t = link->t;
	const uint32_t b_qpn = link->ends[TS_B]->qp->qp_num;
	unsigned int id;

	TS_LINK_POST(link, IBV_WR_SEND, .wr_id = 74, .length = 64);
	VT_OK(t, vb_sim_run(ts_sim(t), 0));
	TS_LINK_RECV(link, .wr_id = 75, .length = 64);
	ts_done(t, link->ends[TS_A]->send_cq, 74, IBV_WC_SEND);
	ts_received(t, link->ends[TS_B]->recv_cq, 75, 64);
	id = ts_fault(
		t, &(struct vb_fault_rule){.action = VB_FAULT_DROP, .dest_qpn = b_qpn, .count = 1});
	ts_link_send(link, 64);
	VT_OK(t, vb_fault_remove(ts_sim(t), id));
}

void ts_link_warm(struct ts_link *link)
{
	static const struct {
		unsigned int right;
		enum ibv_wr_opcode opcode;
		enum ibv_wc_opcode done;
	} operations[] = {
		{IBV_ACCESS_REMOTE_WRITE, IBV_WR_RDMA_WRITE, IBV_WC_RDMA_WRITE},
		{IBV_ACCESS_REMOTE_READ, IBV_WR_RDMA_READ, IBV_WC_RDMA_READ},
		{IBV_ACCESS_REMOTE_ATOMIC, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WC_FETCH_ADD},
	};

	ts_link_send(link, 200);
	if (!link->xrc)
		send_back(link);
	if (!link->reliable)
		return;
	for (size_t i = 0; i < TS_COUNT(operations); i++) {
		if (!(link->values[TS_B].qp_access_flags & operations[i].right))
			continue;
		TS_LINK_POST(link, operations[i].opcode, .wr_id = 76, .length = 8, .offset = 50000);
		ts_done(link->t, link->ends[TS_A]->send_cq, 76, operations[i].done);
	}
	make_trouble(link);
}
