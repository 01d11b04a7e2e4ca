/* SPDX-License-Identifier: MIT */
#include "src/differ/generate/generator.h"

#include <string.h>

struct span {
	unsigned int first, count; /* regions */
};

static const struct span sources = {VD_SOURCE, 2}, receives = {VD_RECEIVE, 2},
			 targets = {VD_TARGET, 2}, counters = {VD_COUNTER, 1},
			 responses = {VD_RESPONSE, 1};

/* Memory of one of the regions in an MR that covers it; without a key if there is no such MR. */
static struct vd_sge pick(struct vd_generator *g, struct span span, uint32_t length_bytes)
{
	unsigned int region = span.first + vd_below(g, span.count),
		     start = vd_below(g, VD_SLOTS_MAX);
	uint32_t first = region * VD_REGION_BYTES, last = first + VD_REGION_BYTES;
	struct vd_sge sge = {.at = {.region = region}, .length = length_bytes};

	/* MR 0 covers all regions at first. */
	if (vd_chance(g, 85))
		start = 0;
	for (unsigned int i = 0; i < VD_SLOTS_MAX; i++) {
		unsigned int slot = (start + i) % VD_SLOTS_MAX;
		const struct vd_belief_mr *mr = &g->mrs[slot];
		uint32_t from = mr->first > first ? mr->first : first;
		uint32_t to = mr->last < last ? mr->last : last;

		if (!g->used[VD_MR][slot] || from >= to)
			continue;
		sge.key = (struct vd_key){.of = VD_KEY_MR, .slot = slot};
		if (sge.length > to - from)
			sge.length = to - from;
		sge.at.offset = from - first;
		if (to - from - sge.length >= 8)
			sge.at.offset += vd_below(g, (to - from - sge.length) / 8) * 8;
		break;
	}
	return sge;
}

static uint32_t message_length(struct vd_generator *g, enum ibv_qp_type type)
{
	static const uint32_t lengths[] = {0,	1,    8,    48,	  64,	65,   255, 256,
					   257, 1000, 1024, 1025, 2048, 3000, 5000};
	uint32_t length_bytes = vd_one_of(g, lengths);

	if (type == IBV_QPT_UD && length_bytes > 1024 && !vd_chance(g, 15))
		length_bytes = 256;
	return length_bytes;
}

/* Sets the WR's SGEs: the message in one piece or several. */
static void split(struct vd_generator *g, struct vd_wr *wr, struct span span, uint32_t length_bytes,
		  uint32_t most)
{
	unsigned int count = 1;

	if (most > VD_SGES_MAX)
		most = VD_SGES_MAX;
	if (most > 1 && vd_chance(g, 25))
		count = 1 + vd_below(g, most);
	if (!length_bytes && vd_chance(g, 50))
		count = 0;
	wr->sge_count = count;
	for (unsigned int i = 0; i < count; i++) {
		uint32_t here = i + 1 < count ? length_bytes / count : length_bytes;

		wr->sges[i] = pick(g, span, here);
		length_bytes -= here;
	}
}

/* --- receives --- */

/* Memory at the end of the last region, and beyond all that is registered. */
static void lead_out(struct vd_sge *sge)
{
	sge->at.region = VD_REGIONS - 1;
	sge->at.offset = VD_REGION_BYTES - 8;
	sge->length = 512;
}

static void repeat_sge(struct vd_wr *wr)
{
	wr->sge_count = VD_SGES_MAX;
	for (unsigned int i = 1; i < VD_SGES_MAX; i++)
		wr->sges[i] = wr->sges[0];
}

static struct vd_key any_mr_key(struct vd_generator *g)
{
	return (struct vd_key){.of = VD_KEY_MR, .slot = vd_below(g, VD_SLOTS_MAX)};
}

static void spoil_receive(struct vd_generator *g, struct vd_wr *wr)
{
	struct vd_sge *sge = &wr->sges[0];

	switch (vd_below(g, 6)) {
	case 0:
		sge->key.flip = 0x80;
		break;
	case 1:
		lead_out(sge);
		break;
	case 2:
	case 3:
	case 4:
		repeat_sge(wr);
		break;
	default:
		*sge = pick(g, receives, sge->length);
		sge->key = any_mr_key(g);
		break;
	}
}

static void fill_receives(struct vd_generator *g, struct vd_step *step, unsigned int count,
			  uint32_t sges)
{
	static const uint32_t lengths[] = {6000, 2048, 2048, 300, 64, 0};

	step->wr_count = count;
	for (unsigned int i = 0; i < count; i++) {
		uint32_t length_bytes = vd_chance(g, 80) ? VD_REGION_BYTES : vd_one_of(g, lengths);

		split(g, &step->wrs[i], receives, length_bytes, sges);
		if (vd_chance(g, 6))
			spoil_receive(g, &step->wrs[i]);
	}
}

static unsigned int list_length(struct vd_generator *g)
{
	if (vd_chance(g, 4))
		return VD_WRS_MAX;
	return vd_chance(g, 65) ? 1 : 2 + vd_below(g, 3);
}

void vd_add_receives(struct vd_generator *g, unsigned int slot, unsigned int count)
{
	struct vd_belief_qp *qp = &g->qps[slot];
	bool shared = qp->made.has_srq && !vd_chance(g, 3);
	struct vd_step *step =
		vd_add(g, shared ? VD_POST_SRQ_RECV : VD_POST_RECV, shared ? qp->made.srq : slot);

	fill_receives(g, step, count, shared ? 1 : qp->made.recv_sge);
	if (shared)
		g->srqs[qp->made.srq] += count;
	else
		qp->receives += count;
}

void vd_receive(struct vd_generator *g)
{
	int slot = vd_pick(g, VD_QP, true);

	if (slot >= 0)
		vd_add_receives(g, slot, list_length(g));
}

void vd_fill_shared_receives(struct vd_generator *g, struct vd_step *step)
{
	fill_receives(g, step, list_length(g), 1);
	g->srqs[step->slot] += step->wr_count;
}

/* --- sends --- */

static enum ibv_wr_opcode choose_opcode(struct vd_generator *g, enum ibv_qp_type type)
{
	static const enum ibv_wr_opcode connected[] = {
		IBV_WR_SEND,
		IBV_WR_SEND,
		IBV_WR_SEND,
		IBV_WR_SEND_WITH_IMM,
		IBV_WR_SEND_WITH_IMM,
		IBV_WR_RDMA_WRITE,
		IBV_WR_RDMA_WRITE,
		IBV_WR_RDMA_WRITE_WITH_IMM,
		IBV_WR_RDMA_WRITE_WITH_IMM,
		IBV_WR_RDMA_READ,
		IBV_WR_RDMA_READ,
		IBV_WR_ATOMIC_CMP_AND_SWP,
		IBV_WR_ATOMIC_FETCH_AND_ADD,
		IBV_WR_SEND_WITH_INV,
		IBV_WR_LOCAL_INV,
		IBV_WR_BIND_MW,
		IBV_WR_BIND_MW,
		IBV_WR_BIND_MW,
	};
	/* Up to the RDMA writes, and up to the sends. */
	unsigned int legal = type == IBV_QPT_UD ? 5 : type == IBV_QPT_UC ? 9 : 18;

	return vd_chance(g, 4) ? vd_one_of(g, connected) : connected[vd_below(g, legal)];
}

static bool receives_at_peer(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM ||
	       opcode == IBV_WR_SEND_WITH_INV || opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static int bound_window(struct vd_generator *g)
{
	for (unsigned int i = 0; i < vd_kinds[VD_MW].slots; i++)
		if (g->used[VD_MW][i] && g->mws[i].bound)
			return i;
	return -1;
}

static void fill_remote(struct vd_generator *g, struct vd_wr *wr, struct span span,
			uint32_t length_bytes)
{
	struct vd_sge place = pick(g, span, length_bytes);
	int mw = bound_window(g);

	wr->remote = place.at;
	wr->key = place.key;
	if (mw >= 0 && vd_chance(g, 60)) {
		wr->remote = vd_place_of(g->mws[mw].first);
		/* Nothing writes to the regions before the targets, not even through a window. */
		if (wr->remote.region < targets.first && wr->opcode != IBV_WR_RDMA_READ)
			wr->remote = place.at;
		wr->key = (struct vd_key){.of = VD_KEY_MW, .slot = mw};
	}
}

/* Mostly a window of type 2 that is not bound. */
static int pick_window(struct vd_generator *g)
{
	int mw = vd_pick(g, VD_MW, true);

	for (unsigned int i = 0; i < vd_kinds[VD_MW].slots; i++)
		if (g->used[VD_MW][i] && g->mws[i].type == IBV_MW_TYPE_2 && !g->mws[i].bound &&
		    vd_chance(g, 90))
			mw = i;
	return mw;
}

static void fill_binding(struct vd_generator *g, struct vd_wr *wr)
{
	int mw = pick_window(g);
	int mr = vd_chance(g, 80) && g->used[VD_MR][0] ? 0 : vd_pick(g, VD_MR, true);
	struct vd_belief_mr range;

	if (mw < 0 || mr < 0 || (g->mws[mw].bound && vd_chance(g, 80))) {
		wr->opcode = IBV_WR_SEND;
		return;
	}
	/* An MR that covers more than a region is bound from where writes go. */
	range = g->mrs[mr];
	if (range.last - range.first > VD_REGION_BYTES)
		range.first = targets.first * VD_REGION_BYTES;
	wr->mw = mw;
	wr->mr = mr;
	wr->sge_count = 0;
	wr->remote = vd_place_of(range.first);
	wr->bind_bytes = range.last - range.first;
	if (vd_chance(g, 50) && wr->bind_bytes > 512)
		wr->bind_bytes = 512;
	if (vd_chance(g, 8))
		wr->bind_bytes += VD_REGION_BYTES * 2;
	wr->access = vd_chance(g, 60) ? VD_REMOTE_ALL : IBV_ACCESS_REMOTE_READ;
	g->mws[mw].bound = true;
	g->mws[mw].first = range.first;
}

static void fill_invalidation(struct vd_generator *g, struct vd_wr *wr)
{
	int mw = bound_window(g);

	if (mw >= 0 && (g->avoid & VD_AVOID_INVALIDATE || vd_chance(g, 90))) {
		wr->key = (struct vd_key){.of = VD_KEY_MW, .slot = mw};
		g->mws[mw].bound = false;
	} else if (g->avoid & VD_AVOID_INVALIDATE || vd_chance(g, 85)) {
		wr->opcode = wr->opcode == IBV_WR_LOCAL_INV ? IBV_WR_RDMA_WRITE : IBV_WR_SEND;
	} else {
		wr->key = (struct vd_key){.of = vd_chance(g, 50) ? VD_KEY_MR : VD_KEY_MW,
					  .slot = vd_below(g, 3)};
	}
}

static void fill_by_opcode(struct vd_generator *g, struct vd_wr *wr, const struct vd_belief_qp *qp,
			   bool alone)
{
	uint32_t length_bytes = message_length(g, qp->made.type);

	if (vd_invalidates(wr->opcode))
		fill_invalidation(g, wr);
	if (wr->opcode == IBV_WR_BIND_MW)
		fill_binding(g, wr);
	if (wr->opcode == IBV_WR_LOCAL_INV || wr->opcode == IBV_WR_BIND_MW)
		return;
	if (vd_is_atomic(wr->opcode)) {
		split(g, wr, responses, 8, 1);
		fill_remote(g, wr, counters, 8);
		return;
	}
	if (wr->opcode == IBV_WR_RDMA_READ) {
		split(g, wr, responses, length_bytes, qp->made.send_sge);
		fill_remote(g, wr, alone ? receives : sources, length_bytes);
		return;
	}
	split(g, wr, alone && vd_chance(g, 20) ? responses : sources, length_bytes,
	      qp->made.send_sge);
	if (vd_is_write(wr->opcode))
		fill_remote(g, wr, targets, length_bytes);
}

static void spoil_send(struct vd_generator *g, struct vd_wr *wr)
{
	bool keeps_key = vd_invalidates(wr->opcode) && g->avoid & VD_AVOID_INVALIDATE;
	struct vd_sge *sge = &wr->sges[0];

	switch (vd_below(g, 9)) {
	case 0:
		sge->key.flip = 0x80;
		break;
	case 1:
		lead_out(sge);
		break;
	case 2:
		/* The message keeps its length: other WRs may use the memory behind it. */
		sge->length /= VD_SGES_MAX;
		repeat_sge(wr);
		break;
	case 3:
		wr->flags |= IBV_SEND_INLINE;
		break;
	case 4:
		if (!keeps_key)
			wr->key.flip = 0x80;
		break;
	case 5:
		wr->remote.region = VD_REGIONS - 1;
		wr->remote.offset = VD_REGION_BYTES - (vd_is_atomic(wr->opcode) ? 0 : 4);
		break;
	case 6:
		wr->remote.offset += 4; /* an atomic's must be a multiple of 8 */
		break;
	case 7:
		wr->qkey ^= 0x1000;
		break;
	default:
		/* The key of another region, or of a region that is gone. */
		if (!keeps_key)
			wr->key = any_mr_key(g);
		sge->key = wr->key;
		break;
	}
}

static void fill_send(struct vd_generator *g, struct vd_wr *wr, const struct vd_belief_qp *qp,
		      bool alone, bool *spoilt)
{
	uint32_t total = 0;

	*wr = (struct vd_wr){.qkey = VD_QKEY, .peer_qp = qp->peer};
	wr->opcode = choose_opcode(g, qp->made.type);
	wr->flags = vd_chance(g, 85) ? IBV_SEND_SIGNALED : 0;
	wr->flags |= vd_chance(g, 25) ? IBV_SEND_SOLICITED : 0;
	wr->flags |= vd_chance(g, 8) ? IBV_SEND_FENCE : 0;
	wr->imm = 0x1000 + vd_below(g, 0x1000);
	fill_by_opcode(g, wr, qp, alone);
	for (unsigned int i = 0; i < wr->sge_count; i++)
		total += wr->sges[i].length;
	if (total <= qp->made.inline_bytes && wr->opcode <= IBV_WR_SEND_WITH_IMM &&
	    vd_chance(g, 40))
		wr->flags |= IBV_SEND_INLINE;
	if (qp->made.type == IBV_QPT_UD) {
		int ah = vd_pick(g, VD_AH, true);

		wr->ah = ah < 0 ? 0 : ah;
		if (vd_chance(g, 3))
			wr->qkey = 0x80000000;
	}
	if (vd_chance(g, 6)) {
		spoil_send(g, wr);
		*spoilt = true;
	}
}

/* Mostly, posts the receives that a list of sends needs at the peer. */
static void make_room(struct vd_generator *g, unsigned int peer, unsigned int count)
{
	struct vd_belief_qp *qp = &g->qps[peer];
	unsigned int *there = qp->made.has_srq ? &g->srqs[qp->made.srq] : &qp->receives;

	if (*there < count && g->used[VD_QP][peer] && vd_chance(g, 88))
		vd_add_receives(g, peer, count - *there);
	*there -= *there < count ? *there : count;
}

static int pick_sender(struct vd_generator *g)
{
	int slot = vd_pick(g, VD_QP, true);

	/* Up to two more draws for a QP that is connected. */
	for (unsigned int i = 0; slot >= 0 && i < 2 && g->qps[slot].state != IBV_QPS_RTS; i++)
		slot = vd_pick(g, VD_QP, true);
	return slot;
}

void vd_send_from(struct vd_generator *g, unsigned int slot)
{
	unsigned int count = list_length(g), received = 0;
	struct vd_belief_qp *qp = &g->qps[slot];
	struct vd_wr wrs[VD_WRS_MAX];
	bool spoilt = false;

	/* The generator does not see which sends fail, so it sometimes connects again without
	 * need. */
	if (vd_chance(g, qp->state != IBV_QPS_RTS ? 70 : 12))
		vd_repair(g, slot);
	if (count < VD_WRS_MAX && count > qp->made.send_wr)
		count = qp->made.send_wr;
	for (unsigned int i = 0; i < count; i++) {
		fill_send(g, &wrs[i], qp, count == 1, &spoilt);
		received += receives_at_peer(wrs[i].opcode);
	}
	if (received)
		make_room(g, qp->peer, received < 4 ? received : 4);
	vd_add(g, VD_POST_SEND, slot)->wr_count = count;
	memcpy(g->last->wrs, wrs, count * sizeof(wrs[0]));
	/* The connection may still work. This belief only makes a later action repair it. */
	if (spoilt) {
		qp->state = IBV_QPS_ERR;
		if (qp->made.type == IBV_QPT_RC)
			g->qps[qp->peer].state = IBV_QPS_ERR;
	}
}

void vd_send(struct vd_generator *g)
{
	int slot = pick_sender(g);

	if (slot >= 0)
		vd_send_from(g, slot);
}
