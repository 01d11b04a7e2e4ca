/* SPDX-License-Identifier: MIT */
#include "src/differ/generate/generator.h"

#include <stddef.h>

/* --- queue pairs --- */

/* Connects two QPs, preferably two of the same type that are both in RESET. */
void vd_join_qp(struct vd_generator *g)
{
	int slot = -1, peer = -1;

	for (unsigned int i = 0; i < vd_kinds[VD_QP].slots; i++) {
		if (!g->used[VD_QP][i] || g->qps[i].state != IBV_QPS_RESET)
			continue;
		if (slot < 0)
			slot = i;
		else if (peer < 0 && g->qps[i].made.type == g->qps[slot].made.type)
			peer = i;
	}
	if (slot < 0 && vd_chance(g, 80)) {
		slot = vd_pick(g, VD_QP, true);
		if (slot >= 0 && g->qps[slot].state != IBV_QPS_RTS)
			vd_repair(g, slot);
		return;
	}
	if (slot < 0)
		slot = vd_pick(g, VD_QP, true);
	if (slot >= 0 && peer < 0)
		peer = vd_pick_peer(g, slot);
	if (slot >= 0 && peer >= 0 && slot != peer)
		vd_connect(g, slot, peer);
}

#define AT(field) offsetof(struct vd_modify, field)

/* A wrong value of an attribute, and the state on the way to which the attribute is set. */
static const struct {
	enum ibv_qp_state to;
	size_t offset;
	uint16_t value;
} mistakes[] = {
	{IBV_QPS_INIT, AT(port), 9},	      {IBV_QPS_INIT, AT(pkey_index), 7777},
	{IBV_QPS_RTR, AT(sgid_add), 100},     {IBV_QPS_RTR, AT(no_grh), true},
	{IBV_QPS_RTR, AT(mtu), IBV_MTU_4096}, {IBV_QPS_RTS, AT(timeout), 40},
	{IBV_QPS_RTS, AT(retry), 9},	      {IBV_QPS_RTS, AT(rnr_retry), 9},
	{IBV_QPS_RTR, AT(rnr_timer), 40},     {IBV_QPS_RTS, AT(reads), 250},
	{IBV_QPS_RTR, AT(dest_reads), 250},   {IBV_QPS_RTR, AT(wide), true},
	{IBV_QPS_RTS, AT(wide), true},
};

static const unsigned int mask_bits[] = {IBV_QP_PKEY_INDEX,
					 IBV_QP_PORT,
					 IBV_QP_ACCESS_FLAGS,
					 IBV_QP_QKEY,
					 IBV_QP_AV,
					 IBV_QP_PATH_MTU,
					 IBV_QP_DEST_QPN,
					 IBV_QP_RQ_PSN,
					 IBV_QP_SQ_PSN,
					 IBV_QP_TIMEOUT,
					 IBV_QP_RETRY_CNT,
					 IBV_QP_RNR_RETRY,
					 IBV_QP_CUR_STATE,
					 IBV_QP_ALT_PATH,
					 IBV_QP_MAX_QP_RD_ATOMIC,
					 IBV_QP_MIN_RNR_TIMER,
					 IBV_QP_PATH_MIG_STATE,
					 IBV_QP_CAP,
					 IBV_QP_MAX_DEST_RD_ATOMIC,
					 IBV_QP_EN_SQD_ASYNC_NOTIFY};

/* Makes one value wrong, or inverts one bit of the mask. */
static void spoil_modify(struct vd_generator *g, struct vd_modify *modify)
{
	for (unsigned int i = 0; i < 4; i++) {
		unsigned int draw = vd_below(g, COUNT(mistakes));
		uint16_t *field = (uint16_t *)((char *)modify + mistakes[draw].offset);

		if (mistakes[draw].to != modify->state)
			continue;
		*field = mistakes[draw].value;
		if (field == &modify->port)
			*field = vd_chance(g, 50) ? 0 : *field;
		else if (field == &modify->mtu && !vd_chance(g, 50))
			*field = (uint16_t)(6 * vd_below(g, 2)); /* below and above all MTUs */
		else if (field == &modify->reads || field == &modify->dest_reads)
			modify->reads = modify->dest_reads = *field;
		return;
	}
	modify->flip = vd_one_of(g, mask_bits);
}

/* Adds the modify_qp steps from RESET to RTS, each of which may be tried wrongly first. False if
 * the QP is left in RESET. */
static bool climb(struct vd_generator *g, unsigned int slot, unsigned int peer)
{
	for (unsigned int i = 0; i < VD_CLIMB; i++)
		for (int wrong = vd_chance(g, 60); wrong >= 0; wrong--) {
			struct vd_modify *modify;

			vd_step_to(g, slot, peer, vd_climb[i]);
			modify = &g->last->modify;
			if (wrong)
				spoil_modify(g, modify);
			/* A device may accept another MTU, and the ends would not agree. */
			if (modify->mtu != g->mtu) {
				vd_reset(g, slot);
				return false;
			}
			if (modify->wide)
				vd_add(g, VD_QUERY_QP, slot);
		}
	return true;
}

/* Takes a QP to RTS, perhaps towards a QP that is connected to another one. */
void vd_climb_qp(struct vd_generator *g)
{
	int slot = vd_pick(g, VD_QP, true), peer;

	if (slot < 0)
		return;
	peer = g->qps[slot].peer;
	if (peer == slot || vd_chance(g, 25)) {
		peer = vd_pick(g, VD_QP, true);
		if (peer == slot)
			peer = vd_pick_peer(g, slot);
		if (peer < 0)
			return;
	}
	vd_reset(g, slot);
	if (!climb(g, slot, peer))
		return;
	if (vd_chance(g, 40))
		vd_add(g, VD_QUERY_QP, slot);
	g->qps[slot].state = IBV_QPS_RTS;
	g->qps[slot].peer = peer;
	if (vd_chance(g, 50))
		vd_send_from(g, slot);
}

static enum ibv_qp_state next_state(struct vd_generator *g, enum ibv_qp_state state)
{
	static const enum ibv_qp_state any[] = {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR,
						IBV_QPS_RTS,   IBV_QPS_SQD,  IBV_QPS_ERR};

	if (vd_chance(g, 15))
		return vd_one_of(g, any);
	switch (state) {
	case IBV_QPS_RESET:
		return IBV_QPS_INIT;
	case IBV_QPS_INIT:
		return IBV_QPS_RTR;
	case IBV_QPS_RTR:
		return IBV_QPS_RTS;
	case IBV_QPS_RTS:
		return vd_chance(g, 45)	  ? IBV_QPS_SQD
		       : vd_chance(g, 70) ? IBV_QPS_ERR
					  : IBV_QPS_RESET;
	case IBV_QPS_SQD:
		return vd_chance(g, 75) ? IBV_QPS_RTS : IBV_QPS_ERR;
	default:
		return vd_chance(g, 80) ? IBV_QPS_RESET : IBV_QPS_RTS;
	}
}

void vd_fill_modify(struct vd_generator *g, struct vd_step *step)
{
	struct vd_belief_qp *qp = &g->qps[step->slot];
	struct vd_modify *modify = &step->modify;

	vd_good_values(g, modify);
	modify->peer = qp->peer;
	modify->state = next_state(g, qp->state);
	if (modify->state == IBV_QPS_SQD && vd_chance(g, 50))
		modify->flip = IBV_QP_EN_SQD_ASYNC_NOTIFY;
	if (vd_chance(g, 30)) {
		spoil_modify(g, modify);
		if (modify->mtu != g->mtu)
			vd_reset(g, step->slot);
	} else if (vd_chance(g, 4)) {
		modify->stateless = true;
	} else {
		qp->state = modify->state;
		if (qp->state == IBV_QPS_RESET)
			qp->receives = 0;
	}
}

/* --- multicast groups --- */

/* Prefers UD QPs, which alone can be members of a group. */
void vd_fill_detach(struct vd_generator *g, struct vd_step *step)
{
	for (unsigned int i = 0; i < vd_kinds[VD_QP].slots; i++)
		if (g->used[VD_QP][i] && g->qps[i].made.type == IBV_QPT_UD && vd_chance(g, 80))
			step->slot = i;
}

void vd_fill_attach(struct vd_generator *g, struct vd_step *step)
{
	vd_fill_detach(g, step);
	step->flags = vd_chance(g, 10);
	if (vd_chance(g, 40))
		vd_add(g, vd_chance(g, 60) ? VD_DETACH_MCAST : VD_DESTROY_QP, step->slot);
}

/* --- shared receive queues --- */

/* Arms a limit that the next message reaches, and sends that message. */
static bool arm_srq(struct vd_generator *g)
{
	for (unsigned int i = 0; i < vd_kinds[VD_QP].slots; i++) {
		const struct vd_belief_qp *qp = &g->qps[i];
		unsigned int *posted = &g->srqs[qp->made.srq], size = g->srq_sizes[qp->made.srq];
		struct vd_step *step;

		if (!g->used[VD_QP][i] || !qp->made.has_srq || !g->used[VD_SRQ][qp->made.srq] ||
		    !g->used[VD_QP][qp->peer])
			continue;
		if (qp->state != IBV_QPS_RTS || g->qps[qp->peer].peer != i)
			vd_repair(g, i);
		if (!*posted)
			vd_add_receives(g, i, 1);
		step = vd_add(g, VD_MODIFY_SRQ, qp->made.srq);
		step->flags = IBV_SRQ_LIMIT;
		step->count = *posted < size ? *posted : size;
		vd_send_from(g, qp->peer);
		return true;
	}
	return false;
}

void vd_change_srq(struct vd_generator *g)
{
	struct vd_step *step;

	if (vd_chance(g, 60) && arm_srq(g))
		return;
	step = vd_add_any(g, VD_MODIFY_SRQ);
	if (!step)
		return;
	step->flags = vd_chance(g, 70) ? IBV_SRQ_LIMIT : IBV_SRQ_MAX_WR;
	if (vd_chance(g, 10))
		step->flags |= 1 << 5; /* no bit of enum ibv_srq_attr_mask */
	step->count = step->flags == IBV_SRQ_LIMIT ? vd_below(g, 6) : 1 + vd_below(g, 16);
	if (vd_chance(g, 15))
		step->count = 1000;
}
