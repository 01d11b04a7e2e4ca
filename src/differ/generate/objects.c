/* SPDX-License-Identifier: MIT */
#include "src/differ/generate/generate.h"

#define REGION(n) ((uint32_t)(n)*VD_REGION_BYTES)
#define HUGE	  0x7fffffffu

static struct vd_place place(uint32_t byte)
{
	return (struct vd_place){.region = byte / VD_REGION_BYTES,
				 .offset = byte % VD_REGION_BYTES};
}

/* A slot in use, most of the time one that is not, where a verb makes; -1 for none. */
static struct vd_step *make(struct vd_generator *g, enum vd_verb verb)
{
	int slot = vd_pick(g, vd_verbs[verb].kind, false);

	return slot < 0 ? NULL : vd_add(g, verb, (unsigned int)slot);
}

static struct vd_step *use(struct vd_generator *g, enum vd_verb verb)
{
	int slot = vd_pick(g, vd_verbs[verb].kind, true);

	return slot < 0 ? NULL : vd_add(g, verb, (unsigned int)slot);
}

static unsigned int any_pd(struct vd_generator *g)
{
	return g->used[VD_PD][1] && vd_chance(g, 25);
}

void vd_make_pd(struct vd_generator *g)
{
	make(g, VD_ALLOC_PD);
}

/* One with an address handle only. */
static void end_pd_of_ah(struct vd_generator *g)
{
	int ah = vd_pick(g, VD_AH, false);
	struct vd_step *step;

	if (ah < 0 || !vd_add(g, VD_ALLOC_PD, 1))
		return;
	step = vd_add(g, VD_CREATE_AH, (unsigned int)ah);
	if (step)
		step->pd = 1;
	vd_add(g, VD_DEALLOC_PD, 1);
}

/* It is in use mostly, and then it stays. */
void vd_end_pd(struct vd_generator *g)
{
	struct vd_step *step;

	if (!g->used[VD_PD][1] && vd_chance(g, 80)) {
		end_pd_of_ah(g);
		return;
	}
	step = use(g, VD_DEALLOC_PD);
	if (step && step->slot)
		g->used[VD_PD][step->slot] = false;
}

/* --- memory --- */

void vd_add_mr(struct vd_generator *g, unsigned int slot, uint32_t first, uint32_t last,
	       unsigned int access, unsigned int pd)
{
	struct vd_step *step = vd_add(g, VD_REG_MR, slot);

	if (!step)
		return;
	step->pd = pd;
	step->at = place(first);
	step->length = last - first;
	step->access = access;
	g->mrs[slot] = (struct vd_belief_mr){first, last, access, pd};
}

static unsigned int random_access(struct vd_generator *g)
{
	static const unsigned int rights[] = {
		0,
		IBV_ACCESS_LOCAL_WRITE,
		IBV_ACCESS_REMOTE_READ,
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE,
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_MW_BIND,
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_MW_BIND,
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC,
		IBV_ACCESS_LOCAL_WRITE | VD_REMOTE_ALL,
		IBV_ACCESS_LOCAL_WRITE | VD_REMOTE_ALL | IBV_ACCESS_MW_BIND,
		IBV_ACCESS_REMOTE_WRITE,  /* refused without local write */
		IBV_ACCESS_REMOTE_ATOMIC, /* refused without local write */
	};

	return vd_one_of(g, rights);
}

static void random_range(struct vd_generator *g, uint32_t *first, uint32_t *last)
{
	static const uint32_t lengths[] = {VD_REGION_BYTES, VD_REGION_BYTES, 4096, 1000, 64, 8, 0};
	static const uint32_t offsets[] = {0, 0, 0, 8, 64, 100, 1024};
	uint32_t length_bytes = vd_one_of(g, lengths);

	*first = REGION(vd_below(g, VD_REGIONS)) + vd_one_of(g, offsets);
	if (length_bytes == VD_REGION_BYTES)
		length_bytes -= *first % VD_REGION_BYTES;
	*last = *first + length_bytes;
}

void vd_make_mr(struct vd_generator *g)
{
	int slot = vd_pick(g, VD_MR, false);
	uint32_t first, last;

	if (slot < 0)
		return;
	random_range(g, &first, &last);
	vd_add_mr(g, (unsigned int)slot, first, last, random_access(g), any_pd(g));
}

void vd_change_mr(struct vd_generator *g)
{
	static const unsigned int flags[] = {IBV_REREG_MR_CHANGE_TRANSLATION,
					     IBV_REREG_MR_CHANGE_PD,
					     IBV_REREG_MR_CHANGE_ACCESS,
					     IBV_REREG_MR_CHANGE_ACCESS,
					     IBV_REREG_MR_CHANGE_TRANSLATION |
						     IBV_REREG_MR_CHANGE_ACCESS,
					     0,
					     1 << 5};
	struct vd_belief_mr *mr;
	struct vd_step *step;
	uint32_t first, last;

	if (g->avoid & VD_AVOID_REREG)
		return;
	step = use(g, VD_REREG_MR);
	if (!step)
		return;
	random_range(g, &first, &last);
	mr = &g->mrs[step->slot];
	step->pd = any_pd(g);
	step->flags = vd_one_of(g, flags);
	step->at = place(first);
	step->length = last - first;
	step->access = random_access(g);
	if (step->flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
		mr->first = first;
		mr->last = last;
	}
	if (step->flags & IBV_REREG_MR_CHANGE_PD)
		mr->pd = step->pd;
	if (step->flags & IBV_REREG_MR_CHANGE_ACCESS)
		mr->access = step->access;
}

void vd_end_mr(struct vd_generator *g)
{
	struct vd_step *step;

	if (g->avoid & VD_AVOID_DEREG)
		return;
	step = use(g, VD_DEREG_MR);
	if (step)
		g->used[VD_MR][step->slot] = false;
}

void vd_make_mw(struct vd_generator *g)
{
	struct vd_step *step = make(g, VD_ALLOC_MW);

	if (!step)
		return;
	step->pd = g->used[VD_PD][1] && vd_chance(g, 10);
	step->mw_type = vd_chance(g, 30) ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2;
	g->mws[step->slot] = (struct vd_belief_mw){.type = step->mw_type};
}

/* The verb, which is for type 1; type 2 is bound by a WR. */
void vd_bind_mw(struct vd_generator *g)
{
	int mr = vd_chance(g, 70) ? 0 : vd_pick(g, VD_MR, true), qp = vd_pick(g, VD_QP, true);
	struct vd_step *step;
	uint32_t first, last;

	if (mr < 0 || qp < 0)
		return;
	step = use(g, VD_BIND_MW);
	if (!step)
		return;
	for (unsigned int i = 0; i < vd_slots[VD_MW]; i++)
		if (g->used[VD_MW][i] && g->mws[i].type == IBV_MW_TYPE_1 && vd_chance(g, 80))
			step->slot = i;
	first = g->mrs[mr].first;
	last = g->mrs[mr].last;
	step->mr = (unsigned int)mr;
	step->qp = (unsigned int)qp;
	step->at = place(first);
	step->length = last - first;
	if (vd_chance(g, 40) && last - first >= 64)
		step->length = 64;
	if (vd_chance(g, 8))
		step->length += 8;
	if (vd_chance(g, 8))
		step->length = 0;
	step->access = vd_chance(g, 70)
			       ? VD_REMOTE_ALL & (g->mrs[mr].access | IBV_ACCESS_REMOTE_READ)
			       : IBV_ACCESS_REMOTE_READ;
	g->mws[step->slot].bound = step->length;
	g->mws[step->slot].range = (struct vd_belief_mr){first, first + (uint32_t)step->length,
							 step->access, g->mrs[mr].pd};
}

void vd_end_mw(struct vd_generator *g)
{
	struct vd_step *step = use(g, VD_DEALLOC_MW);

	if (step) {
		g->used[VD_MW][step->slot] = false;
		g->mws[step->slot].bound = false;
	}
}

/* --- completion queues --- */

void vd_add_cq(struct vd_generator *g, unsigned int slot, bool by_hand)
{
	struct vd_step *step = vd_add(g, VD_CREATE_CQ, slot);

	if (!step)
		return;
	step->count = by_hand ? 1 + vd_below(g, 4) : 32 + vd_below(g, 100);
	step->flags = (by_hand ? VD_CQ_BY_HAND : 0) | (vd_chance(g, 50) ? VD_CQ_CHANNEL : 0);
	g->by_hand[slot] = by_hand;
}

void vd_make_cq(struct vd_generator *g)
{
	static const uint32_t bad[] = {0, HUGE, UINT32_MAX};
	int slot = vd_pick(g, VD_CQ, false);

	if (slot < 0)
		return;
	vd_add_cq(g, (unsigned int)slot, vd_chance(g, 50));
	if (vd_chance(g, 20)) {
		g->program->steps[g->program->count - 1].count = vd_one_of(g, bad);
		g->used[VD_CQ][slot] = false;
	}
}

void vd_resize_cq(struct vd_generator *g)
{
	static const uint32_t counts[] = {0, 1, 1, 2, 3, 8, 64, 200, HUGE};
	struct vd_step *step = use(g, VD_RESIZE_CQ);

	if (!step)
		return;
	step->count = vd_one_of(g, counts);
	/* The others are emptied in time, so they should not overrun before. */
	if (!g->by_hand[step->slot] && step->count && step->count < 64)
		step->count = 64;
}

void vd_arm_cq(struct vd_generator *g)
{
	struct vd_step *step = use(g, VD_REQ_NOTIFY_CQ);

	if (step)
		step->flags = vd_chance(g, 40);
}

void vd_poll_cq(struct vd_generator *g)
{
	int slot = vd_pick(g, VD_CQ, true);

	/* The others are empty. */
	for (unsigned int i = 0; i < vd_slots[VD_CQ] && slot >= 0; i++)
		if (g->used[VD_CQ][i] && g->by_hand[i] && vd_chance(g, 70))
			slot = (int)i;
	if (slot >= 0)
		vd_add(g, VD_POLL_CQ, (unsigned int)slot);
}

static bool cq_in_use(const struct vd_generator *g, unsigned int cq)
{
	for (unsigned int i = 0; i < vd_slots[VD_QP]; i++)
		if (g->used[VD_QP][i] && (g->qps[i].cq == cq || g->qps[i].recv_cq == cq))
			return true;
	return false;
}

void vd_end_cq(struct vd_generator *g)
{
	struct vd_step *step = use(g, VD_DESTROY_CQ);

	if (step && !cq_in_use(g, step->slot))
		g->used[VD_CQ][step->slot] = false;
}

/* --- shared receive queues --- */

void vd_make_srq(struct vd_generator *g)
{
	struct vd_step *step = make(g, VD_CREATE_SRQ);

	if (!step)
		return;
	step->pd = any_pd(g);
	step->count = 1 + vd_below(g, 8);
	step->recv_sge = 1 + vd_below(g, 3);
	g->srqs[step->slot] = 0;
	g->srq_sizes[step->slot] = step->count;
	if (vd_chance(g, 10)) {
		step->count = HUGE;
		g->used[VD_SRQ][step->slot] = false;
	}
}

/* A limit that the next message reaches. */
static bool arm_srq(struct vd_generator *g)
{
	for (unsigned int i = 0; i < vd_slots[VD_QP]; i++) {
		const struct vd_belief_qp *qp = &g->qps[i];
		struct vd_step *step;

		if (!g->used[VD_QP][i] || !qp->has_srq || !g->used[VD_SRQ][qp->srq] ||
		    !g->used[VD_QP][qp->peer])
			continue;
		if (qp->state != IBV_QPS_RTS || g->qps[qp->peer].peer != i)
			vd_repair(g, i);
		if (!g->srqs[qp->srq])
			vd_add_receives(g, i, 1);
		step = vd_add(g, VD_MODIFY_SRQ, qp->srq);
		if (!step)
			return true;
		step->flags = IBV_SRQ_LIMIT;
		step->count = g->srqs[qp->srq] < g->srq_sizes[qp->srq] ? g->srqs[qp->srq]
								       : g->srq_sizes[qp->srq];
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
	step = use(g, VD_MODIFY_SRQ);
	if (!step)
		return;
	step->flags = vd_chance(g, 70) ? IBV_SRQ_LIMIT : IBV_SRQ_MAX_WR;
	if (vd_chance(g, 10))
		step->flags |= 1 << 5; /* there is no such bit */
	step->count = step->flags == IBV_SRQ_LIMIT ? vd_below(g, 6) : 1 + vd_below(g, 16);
	if (vd_chance(g, 15))
		step->count = 1000;
}

void vd_ask_srq(struct vd_generator *g)
{
	use(g, VD_QUERY_SRQ);
}

void vd_end_srq(struct vd_generator *g)
{
	struct vd_step *step = use(g, VD_DESTROY_SRQ);

	if (!step)
		return;
	for (unsigned int i = 0; i < vd_slots[VD_QP]; i++)
		if (g->used[VD_QP][i] && g->qps[i].has_srq && g->qps[i].srq == step->slot)
			return;
	g->used[VD_SRQ][step->slot] = false;
}

/* --- address handles --- */

void vd_make_ah(struct vd_generator *g)
{
	struct vd_step *step = make(g, VD_CREATE_AH);

	if (!step)
		return;
	step->pd = any_pd(g);
	if (vd_chance(g, 20)) {
		step->flags = VD_AH_NO_GRH + vd_below(g, 3);
		g->used[VD_AH][step->slot] = false;
	}
}

void vd_end_ah(struct vd_generator *g)
{
	struct vd_step *step = use(g, VD_DESTROY_AH);

	if (step)
		g->used[VD_AH][step->slot] = false;
}
