/* SPDX-License-Identifier: MIT */
#include "src/differ/generate/generator.h"

/* --- queue pairs --- */

static unsigned int pick_cq(struct vd_generator *g)
{
	int slot = vd_pick(g, VD_CQ, true);

	return slot < 0 ? 0 : slot;
}

static void size_qp(struct vd_generator *g, struct vd_step *step)
{
	static const uint32_t sizes[] = {1, 2, 4, 4, 8, 8, 16};

	step->send_wr = vd_one_of(g, sizes);
	step->count = vd_one_of(g, sizes);
	step->send_sge = 1 + vd_below(g, 3);
	step->recv_sge = 1 + vd_below(g, 3);
	step->inline_bytes = vd_chance(g, 50) ? 64 : 0;
	step->signal_all = vd_chance(g, 25);
}

void vd_fill_qp_of_type(struct vd_generator *g, struct vd_step *step, enum ibv_qp_type type)
{
	bool has_srq = g->used[VD_SRQ][0] && vd_chance(g, 65);

	step->type = type;
	step->cq = pick_cq(g);
	step->recv_cq = pick_cq(g);
	/* A datagram's GRH is cleared when its completion is seen: that must be in the same
	 * step. */
	if (type == IBV_QPT_UD && g->by_hand[step->recv_cq])
		step->recv_cq = 0;
	size_qp(g, step);
	step->pd = g->used[VD_PD][1] && vd_chance(g, 10);
	step->has_srq = has_srq && (type != IBV_QPT_UC || vd_chance(g, 50));
	g->qps[step->slot] = (struct vd_belief_qp){
		.made = *step,
		.state = IBV_QPS_RESET,
		/* The next slot, which may be empty. */
		.peer = (step->slot + 1) % vd_kinds[VD_QP].slots,
	};
}

/* A size that no device can give, so that there is no QP then. */
static void spoil_qp(struct vd_generator *g, struct vd_step *step)
{
	switch (vd_below(g, 4)) {
	case 0:
		step->send_wr = VD_HUGE;
		break;
	case 1:
		step->count = VD_HUGE;
		step->has_srq = false;
		break;
	case 2:
		step->send_sge = 1000;
		break;
	default:
		step->inline_bytes = 1u << 20;
		break;
	}
	g->used[VD_QP][step->slot] = false;
}

void vd_fill_qp(struct vd_generator *g, struct vd_step *step)
{
	static const enum ibv_qp_type types[] = {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD};

	vd_fill_qp_of_type(g, step, vd_chance(g, 70) ? g->type : vd_one_of(g, types));
	if (vd_chance(g, 12))
		spoil_qp(g, step);
}

/* --- connections --- */

void vd_good_values(struct vd_generator *g, struct vd_modify *values)
{
	/* Seldom 0: SoftRoCE stops no timer at an ACK, and later sends would then fail. */
	static const uint16_t retries[] = {0, 7, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2};
	static const uint8_t rnr_retries[] = {0, 0, 1, 2, 3, 7};
	static const unsigned int rights[] = {IBV_ACCESS_REMOTE_WRITE, IBV_ACCESS_REMOTE_READ, 0};

	values->mtu = g->mtu;
	values->port = 1;
	/* Short enough for a real clock, long enough for a device that is software. */
	values->timeout = 14;
	values->qkey = VD_QKEY;
	values->reads = (uint16_t)(1 + vd_below(g, 4));
	values->retry = vd_one_of(g, retries);
	values->rnr_retry = vd_one_of(g, rnr_retries);
	values->rnr_timer = (uint16_t)(12 + vd_below(g, 3));
	/* The outcome of more reads than the other end takes depends on timing. */
	values->dest_reads = vd_chance(g, 5) ? 0 : values->reads;
	values->access = IBV_ACCESS_LOCAL_WRITE;
	values->access |= vd_chance(g, 92) ? (unsigned int)VD_REMOTE_ALL : vd_one_of(g, rights);
}

void vd_connect(struct vd_generator *g, unsigned int slot, unsigned int peer)
{
	struct vd_step *step = vd_add(g, VD_CONNECT_QP, slot);

	step->qp = peer;
	vd_good_values(g, &step->modify);
	if (vd_chance(g, 8))
		step->modify.psn_add = 1 + vd_below(g, 3);
	g->qps[slot].state = g->qps[peer].state = IBV_QPS_RTS;
	g->qps[slot].peer = peer;
	g->qps[peer].peer = slot;
}

static void move(struct vd_generator *g, unsigned int slot, unsigned int peer,
		 enum ibv_qp_state state)
{
	struct vd_modify *modify = &vd_add(g, VD_MODIFY_QP, slot)->modify;

	modify->peer = peer;
	modify->state = state;
}

void vd_move(struct vd_generator *g, unsigned int slot, enum ibv_qp_state state)
{
	move(g, slot, g->qps[slot].peer, state);
}

void vd_reset(struct vd_generator *g, unsigned int slot)
{
	if (g->qps[slot].state == IBV_QPS_RESET)
		return;
	move(g, slot, slot, IBV_QPS_RESET);
	g->qps[slot].state = IBV_QPS_RESET;
	g->qps[slot].receives = 0;
}

void vd_step_to(struct vd_generator *g, unsigned int slot, unsigned int peer,
		enum ibv_qp_state state)
{
	struct vd_modify *modify = &vd_add(g, VD_MODIFY_QP, slot)->modify;

	vd_good_values(g, modify);
	modify->peer = peer;
	modify->state = state;
}

/* A QP that is connected to itself is no peer: whether its responder fails first or its
 * requester hears of it first is open, and with that the order of its completions. */
int vd_pick_peer(struct vd_generator *g, unsigned int slot)
{
	int peer = -1;

	for (unsigned int i = 0; i < vd_kinds[VD_QP].slots; i++)
		if (i != slot && g->used[VD_QP][i] &&
		    (peer < 0 || g->qps[i].made.type == g->qps[slot].made.type))
			peer = i;
	return peer;
}

int vd_connected(struct vd_generator *g, enum ibv_qp_type type)
{
	for (unsigned int i = 0; i < vd_kinds[VD_QP].slots; i++)
		if (g->used[VD_QP][i] && g->qps[i].made.type == type &&
		    g->qps[i].state == IBV_QPS_RTS && g->used[VD_QP][g->qps[i].peer])
			return i;
	return -1;
}

void vd_repair(struct vd_generator *g, unsigned int slot)
{
	int other = vd_pick_peer(g, slot);
	unsigned int peer = g->qps[slot].peer;

	if (peer == slot || !g->used[VD_QP][peer] ||
	    g->qps[peer].made.type != g->qps[slot].made.type) {
		if (other < 0 || g->qps[other].made.type != g->qps[slot].made.type)
			return;
		peer = other;
	}
	vd_reset(g, slot);
	vd_reset(g, peer);
	vd_connect(g, slot, peer);
}
