/* SPDX-License-Identifier: MIT */
#include "src/differ/generate/generate.h"

/* As `ibv_devinfo -v` prints it on no device: no device has so many. */
#define HUGE 0x7fffffffu

/* A CQ that a UD QP may receive into: the GRH is cleared as the completion is seen, so at once. */
static unsigned int pick_cq(struct vd_generator *g, bool at_once)
{
	int slot = vd_pick(g, VD_CQ, true);

	return slot < 0 || (at_once && g->by_hand[slot]) ? 0 : (unsigned int)slot;
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

void vd_add_qp(struct vd_generator *g, unsigned int slot, enum ibv_qp_type type)
{
	bool has_srq = g->used[VD_SRQ][0] && vd_chance(g, 65);
	unsigned int cq = pick_cq(g, false);
	unsigned int recv_cq = pick_cq(g, type == IBV_QPT_UD);
	struct vd_step *step = vd_add(g, VD_CREATE_QP, slot);

	if (!step)
		return;
	size_qp(g, step);
	step->type = type;
	step->pd = g->used[VD_PD][1] && vd_chance(g, 10);
	step->cq = cq;
	step->recv_cq = recv_cq;
	step->has_srq = has_srq && (type != IBV_QPT_UC || vd_chance(g, 50));
	g->qps[slot] = (struct vd_belief_qp){
		.type = type,
		.state = IBV_QPS_RESET,
		/* Its number when it is there, and nobody's until then. */
		.peer = (slot + 1) % vd_slots[VD_QP],
		.pd = step->pd,
		.cq = cq,
		.recv_cq = recv_cq,
		.has_srq = step->has_srq,
		.send_wr = step->send_wr,
		.recv_wr = step->count,
		.send_sge = step->send_sge,
		.recv_sge = step->recv_sge,
		.inline_bytes = step->inline_bytes,
	};
}

/* Wrong sizes, on a QP that is then not there. */
static void spoil_qp(struct vd_generator *g, struct vd_step *step)
{
	switch (vd_below(g, 4)) {
	case 0:
		step->send_wr = HUGE;
		break;
	case 1:
		step->count = HUGE;
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

void vd_make_qp(struct vd_generator *g)
{
	static const enum ibv_qp_type types[] = {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD};
	int slot = vd_pick(g, VD_QP, false);

	if (slot < 0 || g->program->count == VD_STEPS_MAX)
		return;
	vd_add_qp(g, (unsigned int)slot, vd_chance(g, 70) ? g->type : vd_one_of(g, types));
	if (vd_chance(g, 12))
		spoil_qp(g, &g->program->steps[g->program->count - 1]);
}

/* Values with which a connection works. */
struct vd_modify vd_good_values(struct vd_generator *g)
{
	static const uint8_t retries[] = {0, 7, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2};
	static const uint8_t rnr_retries[] = {0, 0, 1, 2, 3, 7};
	static const unsigned int rights[] = {IBV_ACCESS_REMOTE_WRITE, IBV_ACCESS_REMOTE_READ, 0};
	uint8_t reads = (uint8_t)(1 + vd_below(g, 4));

	return (struct vd_modify){
		.mtu = g->mtu,
		.port = 1,
		/* Short enough for a real clock, long enough for a device that is software. */
		.timeout = 14,
		/* Seldom 0: SoftRoCE stops no timer at an ACK, and what is sent later would then fail. */
		.retry = retries[vd_below(g, 14)],
		.rnr_retry = vd_one_of(g, rnr_retries),
		.rnr_timer = (uint8_t)(12 + vd_below(g, 3)),
		/* More reads than the other end takes would be a matter of timing. */
		.reads = reads,
		.dest_reads = vd_chance(g, 5) ? 0 : reads,
		.access = (vd_chance(g, 92) ? VD_REMOTE_ALL : vd_one_of(g, rights)) |
			  IBV_ACCESS_LOCAL_WRITE,
		.qkey = VD_QKEY,
	};
}

void vd_connect(struct vd_generator *g, unsigned int slot, unsigned int peer)
{
	struct vd_step *step = vd_add(g, VD_CONNECT_QP, slot);

	if (!step)
		return;
	step->qp = peer;
	step->modify = vd_good_values(g);
	if (vd_chance(g, 8))
		step->modify.psn_add = 1 + vd_below(g, 3);
	g->qps[slot].state = g->qps[peer].state = IBV_QPS_RTS;
	g->qps[slot].peer = peer;
	g->qps[peer].peer = slot;
}

static void reset(struct vd_generator *g, unsigned int slot)
{
	struct vd_step *step;

	if (g->qps[slot].state == IBV_QPS_RESET)
		return;
	step = vd_add(g, VD_MODIFY_QP, slot);
	if (step)
		step->modify = (struct vd_modify){.peer = slot, .state = IBV_QPS_RESET};
	g->qps[slot].state = IBV_QPS_RESET;
	g->qps[slot].receives = 0;
}

/*
 * Another QP, if possible of the same type; -1 for none. A QP that is connected to itself ends its
 * sends in an order that is open: as its responder fails, or as its requester hears of it.
 */
static int pick_peer(struct vd_generator *g, unsigned int slot)
{
	int peer = -1;

	for (unsigned int i = 0; i < vd_slots[VD_QP]; i++)
		if (i != slot && g->used[VD_QP][i] &&
		    (peer < 0 || g->qps[i].type == g->qps[slot].type))
			peer = (int)i;
	return peer;
}

void vd_repair(struct vd_generator *g, unsigned int slot)
{
	int other = pick_peer(g, slot);
	unsigned int peer = g->qps[slot].peer;

	if (peer == slot || !g->used[VD_QP][peer] || g->qps[peer].type != g->qps[slot].type) {
		if (other < 0 || g->qps[other].type != g->qps[slot].type)
			return;
		peer = (unsigned int)other;
	}
	reset(g, slot);
	reset(g, peer);
	vd_connect(g, slot, peer);
}

/* Of the same type and both in RESET, if there are such. */
void vd_join_qp(struct vd_generator *g)
{
	int slot = -1, peer = -1;

	for (unsigned int i = 0; i < vd_slots[VD_QP]; i++) {
		if (!g->used[VD_QP][i] || g->qps[i].state != IBV_QPS_RESET)
			continue;
		if (slot < 0)
			slot = (int)i;
		else if (peer < 0 && g->qps[i].type == g->qps[slot].type)
			peer = (int)i;
	}
	if (slot < 0 && vd_chance(g, 80)) {
		slot = vd_pick(g, VD_QP, true);
		if (slot >= 0 && g->qps[slot].state != IBV_QPS_RTS)
			vd_repair(g, (unsigned int)slot);
		return;
	}
	if (slot < 0)
		slot = vd_pick(g, VD_QP, true);
	if (slot >= 0 && peer < 0)
		peer = pick_peer(g, (unsigned int)slot);
	if (slot >= 0 && peer >= 0 && slot != peer)
		vd_connect(g, (unsigned int)slot, (unsigned int)peer);
}

enum mistake {
	BAD_PORT,
	BAD_PKEY_INDEX,
	BAD_GID_INDEX,
	NO_GRH,
	BAD_MTU,
	BAD_TIMEOUT,
	BAD_RETRY,
	BAD_RNR_RETRY,
	BAD_RNR_TIMER,
	BAD_READS,
	BAD_DEST_READS,
	WIDE_TO_RTR,
	WIDE_TO_RTS,
	MISTAKES
};

/* The state on the way to which the attribute is taken. */
static const enum ibv_qp_state mistakes[MISTAKES] = {
	[BAD_PORT] = IBV_QPS_INIT,   [BAD_PKEY_INDEX] = IBV_QPS_INIT, [BAD_GID_INDEX] = IBV_QPS_RTR,
	[NO_GRH] = IBV_QPS_RTR,	     [BAD_MTU] = IBV_QPS_RTR,	      [BAD_TIMEOUT] = IBV_QPS_RTS,
	[BAD_RETRY] = IBV_QPS_RTS,   [BAD_RNR_RETRY] = IBV_QPS_RTS,   [BAD_RNR_TIMER] = IBV_QPS_RTR,
	[BAD_READS] = IBV_QPS_RTS,   [BAD_DEST_READS] = IBV_QPS_RTR,  [WIDE_TO_RTR] = IBV_QPS_RTR,
	[WIDE_TO_RTS] = IBV_QPS_RTS,
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

/* One value that is wrong, or one bit of the mask. */
static void spoil_modify(struct vd_generator *g, struct vd_modify *modify)
{
	unsigned int mistake = MISTAKES;

	for (unsigned int i = 0; i < 4 && mistake == MISTAKES; i++) {
		mistake = vd_below(g, MISTAKES);
		if (mistakes[mistake] != modify->state)
			mistake = MISTAKES;
	}
	switch (mistake) {
	case BAD_PORT:
		modify->port = vd_chance(g, 50) ? 0 : 9;
		break;
	case BAD_PKEY_INDEX:
		modify->pkey_index = 7777;
		break;
	case BAD_GID_INDEX:
		modify->sgid_add = 100;
		break;
	case NO_GRH:
		modify->no_grh = true;
		break;
	case BAD_MTU:
		modify->mtu = vd_chance(g, 50) ? IBV_MTU_4096 : (uint8_t)(6 * vd_below(g, 2));
		break;
	case BAD_TIMEOUT:
		modify->timeout = 40;
		break;
	case BAD_RETRY:
		modify->retry = 9;
		break;
	case BAD_RNR_RETRY:
		modify->rnr_retry = 9;
		break;
	case BAD_RNR_TIMER:
		modify->rnr_timer = 40;
		break;
	case BAD_READS:
	case BAD_DEST_READS:
		modify->reads = modify->dest_reads = 250;
		break;
	case WIDE_TO_RTR:
	case WIDE_TO_RTS:
		modify->wide = true;
		break;
	default:
		modify->flip = vd_one_of(g, mask_bits);
		break;
	}
}

/* From RESET to RTS by single steps, each of which may be tried wrongly first. */
void vd_climb_qp(struct vd_generator *g)
{
	static const enum ibv_qp_state states[] = {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS};
	int slot = vd_pick(g, VD_QP, true);
	unsigned int peer;

	if (slot < 0)
		return;
	peer = g->qps[slot].peer;
	if (peer == (unsigned int)slot || vd_chance(g, 25)) {
		int other = vd_pick(g, VD_QP, true);

		if (other == slot)
			other = pick_peer(g, (unsigned int)slot);
		if (other < 0)
			return;
		peer = (unsigned int)other;
	}
	reset(g, (unsigned int)slot);
	for (unsigned int i = 0; i < 3; i++)
		for (int wrong = vd_chance(g, 60); wrong >= 0; wrong--) {
			struct vd_step *step = vd_add(g, VD_MODIFY_QP, (unsigned int)slot);

			if (!step)
				return;
			step->modify = vd_good_values(g);
			step->modify.peer = peer;
			step->modify.state = states[i];
			if (wrong)
				spoil_modify(g, &step->modify);
			/* A device may take it: then the ends do not agree. */
			if (step->modify.mtu != g->mtu) {
				reset(g, (unsigned int)slot);
				return;
			}
			if (step->modify.wide)
				vd_add(g, VD_QUERY_QP, (unsigned int)slot);
		}
	if (vd_chance(g, 40))
		vd_add(g, VD_QUERY_QP, (unsigned int)slot);
	g->qps[slot].state = IBV_QPS_RTS;
	g->qps[slot].peer = peer;
	/* To a QP that is connected to another one, maybe. */
	if (vd_chance(g, 50))
		vd_send_from(g, (unsigned int)slot);
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

void vd_change_qp(struct vd_generator *g)
{
	int slot = vd_pick(g, VD_QP, true);
	struct vd_belief_qp *qp;
	struct vd_step *step;

	if (slot < 0)
		return;
	step = vd_add(g, VD_MODIFY_QP, (unsigned int)slot);
	if (!step)
		return;
	qp = &g->qps[slot];
	step->modify = vd_good_values(g);
	step->modify.peer = qp->peer;
	step->modify.state = next_state(g, qp->state);
	if (step->modify.state == IBV_QPS_SQD && vd_chance(g, 50))
		step->modify.flip = IBV_QP_EN_SQD_ASYNC_NOTIFY;
	if (vd_chance(g, 30)) {
		spoil_modify(g, &step->modify);
		if (step->modify.mtu != g->mtu)
			reset(g, (unsigned int)slot);
		return;
	}
	if (vd_chance(g, 4)) {
		step->modify.stateless = true;
		return;
	}
	qp->state = step->modify.state;
	if (qp->state == IBV_QPS_RESET)
		qp->receives = 0;
}

static struct vd_step *use(struct vd_generator *g, enum vd_verb verb)
{
	int slot = vd_pick(g, VD_QP, true);

	return slot < 0 ? NULL : vd_add(g, verb, (unsigned int)slot);
}

void vd_ask_qp(struct vd_generator *g)
{
	use(g, VD_QUERY_QP);
}

void vd_end_qp(struct vd_generator *g)
{
	struct vd_step *step = use(g, VD_DESTROY_QP);

	if (step)
		g->used[VD_QP][step->slot] = false;
}

/* Groups are for datagrams. */
static struct vd_step *use_group(struct vd_generator *g, enum vd_verb verb)
{
	int slot = vd_pick(g, VD_QP, true);

	for (unsigned int i = 0; i < vd_slots[VD_QP]; i++)
		if (g->used[VD_QP][i] && g->qps[i].type == IBV_QPT_UD && vd_chance(g, 80))
			slot = (int)i;
	return slot < 0 ? NULL : vd_add(g, verb, (unsigned int)slot);
}

void vd_attach(struct vd_generator *g)
{
	struct vd_step *step = use_group(g, VD_ATTACH_MCAST);

	if (!step)
		return;
	step->flags = vd_chance(g, 10);
	if (vd_chance(g, 40))
		vd_add(g, vd_chance(g, 60) ? VD_DETACH_MCAST : VD_DESTROY_QP, step->slot);
}

void vd_detach(struct vd_generator *g)
{
	use_group(g, VD_DETACH_MCAST);
}
