/* SPDX-License-Identifier: MIT */
#include "src/differ/generate/generator.h"

#include <string.h>

/* splitmix64 */
uint32_t vd_below(struct vd_generator *g, uint32_t limit)
{
	uint64_t x = g->random += 0x9e3779b97f4a7c15;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	return (uint32_t)((x ^ x >> 31) % limit);
}

struct vd_step *vd_add(struct vd_generator *g, enum vd_verb verb, unsigned int slot)
{
	bool full = g->program->count == VD_STEPS_MAX;

	g->last = full ? &g->spare : &g->program->steps[g->program->count++];
	/* The padding, too: two programs of a seed are equal byte for byte. */
	memset(g->last, 0, sizeof(*g->last));
	g->last->verb = verb;
	g->last->slot = slot;
	if (vd_makes(verb) && !full)
		g->used[vd_verbs[verb].kind][slot] = true;
	return g->last;
}

int vd_pick(struct vd_generator *g, enum vd_kind kind, bool used)
{
	unsigned int count = 0, nth;

	for (unsigned int i = 0; i < vd_kinds[kind].slots; i++)
		count += g->used[kind][i] == used;
	if (!count)
		return -1;
	nth = vd_below(g, count);
	for (unsigned int i = 0;; i++)
		if (g->used[kind][i] == used && !nth--)
			return (int)i;
}

/* True if a QP needs the object, so that destroying it fails. PD 0 is believed to be always in
 * use. */
static bool is_needed(const struct vd_generator *g, enum vd_kind kind, unsigned int slot)
{
	if (kind == VD_PD)
		return !slot;
	for (unsigned int i = 0; i < vd_kinds[VD_QP].slots; i++) {
		const struct vd_belief_qp *qp = &g->qps[i];

		if (!g->used[VD_QP][i])
			continue;
		if (kind == VD_CQ && (qp->made.cq == slot || qp->made.recv_cq == slot))
			return true;
		if (kind == VD_SRQ && qp->made.has_srq && qp->made.srq == slot)
			return true;
	}
	return false;
}

struct vd_step *vd_add_any(struct vd_generator *g, enum vd_verb verb)
{
	const struct vd_verb_info *info = &vd_verbs[verb];
	int slot;

	if ((verb == VD_DEREG_MR && g->avoid & VD_AVOID_DEREG) ||
	    (verb == VD_REREG_MR && g->avoid & VD_AVOID_REREG))
		return NULL;
	slot = vd_pick(g, info->kind, info->does != VD_MAKES);
	if (slot < 0)
		return NULL;
	if (info->does == VD_ENDS && !is_needed(g, info->kind, slot))
		g->used[info->kind][slot] = false;
	return vd_add(g, verb, slot);
}
