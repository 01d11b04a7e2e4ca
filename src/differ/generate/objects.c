/* SPDX-License-Identifier: MIT */
#include "src/differ/generate/generator.h"

/* Mostly PD 0. */
static unsigned int any_pd(struct vd_generator *g, uint32_t percent)
{
	return g->used[VD_PD][1] && vd_chance(g, percent);
}

/* --- domains --- */

/* Makes PD 1, an address handle in it, and tries to end PD 1. */
static void end_pd_of_ah(struct vd_generator *g)
{
	int ah = vd_pick(g, VD_AH, false);

	if (ah < 0)
		return;
	vd_add(g, VD_ALLOC_PD, 1);
	vd_add(g, VD_CREATE_AH, ah)->pd = 1;
	vd_add(g, VD_DEALLOC_PD, 1);
}

void vd_end_pd(struct vd_generator *g)
{
	if (!g->used[VD_PD][1] && vd_chance(g, 80))
		end_pd_of_ah(g);
	else
		vd_add_any(g, VD_DEALLOC_PD);
}

/* --- memory --- */

struct vd_place vd_place_of(uint32_t byte)
{
	return (struct vd_place){.region = byte / VD_REGION_BYTES,
				 .offset = byte % VD_REGION_BYTES};
}

void vd_add_whole_mr(struct vd_generator *g)
{
	struct vd_step *step = vd_add(g, VD_REG_MR, 0);

	step->length = VD_REGIONS * VD_REGION_BYTES;
	step->access = IBV_ACCESS_LOCAL_WRITE | VD_REMOTE_ALL | IBV_ACCESS_MW_BIND;
	g->mrs[0] = (struct vd_belief_mr){.last = step->length, .access = step->access};
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

/* A range of memory for the step. */
static struct vd_belief_mr random_range(struct vd_generator *g, struct vd_step *step)
{
	static const uint32_t lengths[] = {VD_REGION_BYTES, VD_REGION_BYTES, 4096, 1000, 64, 8, 0};
	static const uint32_t offsets[] = {0, 0, 0, 8, 64, 100, 1024};
	uint32_t length_bytes = vd_one_of(g, lengths);
	uint32_t first = vd_below(g, VD_REGIONS) * VD_REGION_BYTES;

	first += vd_one_of(g, offsets);
	if (length_bytes == VD_REGION_BYTES)
		length_bytes -= first % VD_REGION_BYTES;
	step->at = vd_place_of(first);
	step->length = length_bytes;
	return (struct vd_belief_mr){.first = first, .last = first + length_bytes};
}

void vd_fill_mr(struct vd_generator *g, struct vd_step *step)
{
	struct vd_belief_mr *mr = &g->mrs[step->slot];

	*mr = random_range(g, step);
	step->pd = any_pd(g, 25);
	step->access = mr->access = random_access(g);
}

void vd_fill_rereg(struct vd_generator *g, struct vd_step *step)
{
	static const unsigned int flags[] = {IBV_REREG_MR_CHANGE_TRANSLATION,
					     IBV_REREG_MR_CHANGE_PD,
					     IBV_REREG_MR_CHANGE_ACCESS,
					     IBV_REREG_MR_CHANGE_ACCESS,
					     IBV_REREG_MR_CHANGE_TRANSLATION |
						     IBV_REREG_MR_CHANGE_ACCESS,
					     0,
					     1 << 5};
	struct vd_belief_mr *mr = &g->mrs[step->slot], range = random_range(g, step);

	step->pd = any_pd(g, 25);
	step->flags = vd_one_of(g, flags);
	step->access = random_access(g);
	if (step->flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
		mr->first = range.first;
		mr->last = range.last;
	}
	if (step->flags & IBV_REREG_MR_CHANGE_ACCESS)
		mr->access = step->access;
}

void vd_fill_mw(struct vd_generator *g, struct vd_step *step)
{
	step->pd = any_pd(g, 10);
	step->mw_type = vd_chance(g, 30) ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2;
	g->mws[step->slot] = (struct vd_belief_mw){.type = step->mw_type};
}

/* The verb is for type 1; a WR binds type 2. */
void vd_bind_mw(struct vd_generator *g)
{
	int mr = vd_chance(g, 70) ? 0 : vd_pick(g, VD_MR, true), qp = vd_pick(g, VD_QP, true);
	const struct vd_belief_mr *range = &g->mrs[mr < 0 ? 0 : mr];
	struct vd_belief_mw *mw;
	struct vd_step *step;

	if (mr < 0 || qp < 0)
		return;
	step = vd_add_any(g, VD_BIND_MW);
	if (!step)
		return;
	for (unsigned int i = 0; i < vd_kinds[VD_MW].slots; i++)
		if (g->used[VD_MW][i] && g->mws[i].type == IBV_MW_TYPE_1 && vd_chance(g, 80))
			step->slot = i;
	step->mr = mr;
	step->qp = qp;
	step->at = vd_place_of(range->first);
	step->length = range->last - range->first;
	if (vd_chance(g, 40) && step->length >= 64)
		step->length = 64;
	if (vd_chance(g, 8))
		step->length += 8;
	if (vd_chance(g, 8))
		step->length = 0;
	step->access = IBV_ACCESS_REMOTE_READ;
	if (vd_chance(g, 70))
		step->access |= VD_REMOTE_ALL & range->access;
	mw = &g->mws[step->slot];
	mw->bound = step->length;
	mw->first = range->first;
}

/* --- completion queues --- */

static void fill_cq(struct vd_generator *g, struct vd_step *step, bool by_hand)
{
	step->count = by_hand ? 1 + vd_below(g, 4) : 32 + vd_below(g, 100);
	step->flags = (by_hand ? VD_CQ_BY_HAND : 0) | (vd_chance(g, 50) ? VD_CQ_CHANNEL : 0);
	g->by_hand[step->slot] = by_hand;
}

void vd_add_cq(struct vd_generator *g, unsigned int slot, bool by_hand)
{
	fill_cq(g, vd_add(g, VD_CREATE_CQ, slot), by_hand);
}

void vd_fill_cq(struct vd_generator *g, struct vd_step *step)
{
	static const uint32_t bad[] = {0, VD_HUGE, UINT32_MAX};

	fill_cq(g, step, vd_chance(g, 50));
	if (vd_chance(g, 20)) {
		step->count = vd_one_of(g, bad);
		g->used[VD_CQ][step->slot] = false;
	}
}

void vd_fill_resize(struct vd_generator *g, struct vd_step *step)
{
	static const uint32_t counts[] = {0, 1, 1, 2, 3, 8, 64, 200, VD_HUGE};

	step->count = vd_one_of(g, counts);
	/* A CQ that is emptied after each step must not overrun within a step. */
	if (!g->by_hand[step->slot] && step->count && step->count < 64)
		step->count = 64;
}

void vd_fill_notify(struct vd_generator *g, struct vd_step *step)
{
	step->flags = vd_chance(g, 40);
}

/* Prefers the CQs that only this verb empties. */
void vd_fill_poll(struct vd_generator *g, struct vd_step *step)
{
	for (unsigned int i = 0; i < vd_kinds[VD_CQ].slots; i++)
		if (g->used[VD_CQ][i] && g->by_hand[i] && vd_chance(g, 70))
			step->slot = i;
}

/* --- shared receive queues and address handles --- */

void vd_fill_srq(struct vd_generator *g, struct vd_step *step)
{
	step->pd = any_pd(g, 25);
	step->count = 1 + vd_below(g, 8);
	step->recv_sge = 1 + vd_below(g, 3);
	g->srqs[step->slot] = 0;
	g->srq_sizes[step->slot] = step->count;
	if (vd_chance(g, 10)) {
		step->count = VD_HUGE;
		g->used[VD_SRQ][step->slot] = false;
	}
}

void vd_fill_ah(struct vd_generator *g, struct vd_step *step)
{
	step->pd = any_pd(g, 25);
	if (vd_chance(g, 20)) {
		step->flags = VD_AH_NO_GRH + vd_below(g, 3);
		g->used[VD_AH][step->slot] = false;
	}
}
