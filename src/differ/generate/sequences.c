/* SPDX-License-Identifier: MIT */
/* Steps that belong together: situations that single steps, drawn one by one, hardly ever reach. */
#include "src/differ/generate/generator.h"

/* Adds a list of one WR with no data. */
static struct vd_wr *post_one(struct vd_generator *g, unsigned int slot, enum ibv_wr_opcode opcode)
{
	struct vd_step *step = vd_add(g, VD_POST_SEND, slot);

	step->wr_count = 1;
	step->wrs[0] = (struct vd_wr){.opcode = opcode,
				      .flags = IBV_SEND_SIGNALED,
				      .peer_qp = g->qps[slot].peer,
				      .qkey = VD_QKEY,
				      .imm = 0x1234};
	return &step->wrs[0];
}

/* The same with data: from the first source to the first target, both through MR 0. */
static struct vd_wr *post_data(struct vd_generator *g, unsigned int slot, enum ibv_wr_opcode opcode,
			       uint32_t length_bytes)
{
	struct vd_wr *wr = post_one(g, slot, opcode);

	wr->sge_count = 1;
	wr->sges[0] = (struct vd_sge){.length = length_bytes, .key = {.of = VD_KEY_MR}};
	wr->remote.region = VD_TARGET;
	wr->key = (struct vd_key){.of = VD_KEY_MR};
	return wr;
}

/* The WR of post_one() or post_data(), count times. */
static void multiply(struct vd_generator *g, struct vd_wr *wr, unsigned int count)
{
	g->last->wr_count = count;
	for (unsigned int i = 1; i < count; i++)
		wr[i] = wr[0];
}

/* A QP of the type, connected again; -1 if there is none. */
static int reconnected(struct vd_generator *g, enum ibv_qp_type type)
{
	int qp = vd_connected(g, type);

	if (qp >= 0)
		vd_repair(g, qp);
	return qp;
}

/* Makes a window of type 2 in the domain of a QP. */
static void make_window(struct vd_generator *g, unsigned int qp, unsigned int mw)
{
	struct vd_step *step = vd_add(g, VD_ALLOC_MW, mw);

	step->pd = g->qps[qp].made.pd;
	step->mw_type = IBV_MW_TYPE_2;
	g->mws[mw] = (struct vd_belief_mw){.type = IBV_MW_TYPE_2};
}

/* Writes into the window that a WR binds, or just behind the window. */
static void write_through(struct vd_generator *g, unsigned int slot, struct vd_wr binding)
{
	struct vd_wr *wr;

	if (binding.remote.region < VD_TARGET) {
		post_one(g, slot, IBV_WR_RDMA_WRITE);
		return;
	}
	wr = post_data(g, slot, IBV_WR_RDMA_WRITE, 8);
	wr->remote = binding.remote;
	wr->remote.offset += vd_chance(g, 70) ? 0 : binding.bind_bytes;
	wr->key = (struct vd_key){.of = VD_KEY_MW, .slot = binding.mw};
}

/* Binds a window of type 2, mostly to MR 0, and invalidates it. The window belongs to the QP
 * that binds it, so remote accesses come from the other end. */
void vd_use_window(struct vd_generator *g)
{
	int qp = vd_connected(g, IBV_QPT_RC), mw = vd_pick(g, VD_MW, false), mr = 0;
	bool remotely = false;
	struct vd_wr *wr;

	if (qp < 0 || mw < 0 || !g->used[VD_MR][0])
		return;
	if (vd_chance(g, 70))
		vd_repair(g, qp);
	make_window(g, qp, mw);
	if (vd_chance(g, 30))
		mr = vd_pick(g, VD_MR, true);
	wr = post_one(g, qp, IBV_WR_BIND_MW);
	wr->mw = mw;
	wr->mr = mr;
	wr->remote = vd_place_of(mr ? g->mrs[mr].first : VD_TARGET * VD_REGION_BYTES);
	wr->bind_bytes = 64;
	wr->access = VD_REMOTE_ALL;
	wr->sge_count = vd_chance(g, 8);
	if (vd_chance(g, 40))
		write_through(g, g->qps[qp].peer, *wr);
	if (vd_chance(g, 15)) {
		wr = post_one(g, g->qps[qp].peer, IBV_WR_LOCAL_INV);
	} else {
		remotely = vd_chance(g, 60);
		if (remotely && vd_chance(g, 80))
			vd_add_receives(g, qp, 1);
		wr = remotely ? post_one(g, g->qps[qp].peer, IBV_WR_SEND_WITH_INV)
			      : post_one(g, qp, IBV_WR_LOCAL_INV);
	}
	wr->key = (struct vd_key){.of = VD_KEY_MW, .slot = mw};
}

/* Sends that wait in SQD, and the way back to RTS. */
void vd_drain(struct vd_generator *g)
{
	int qp = vd_connected(g, g->type);

	if (qp < 0)
		return;
	vd_add_receives(g, g->qps[qp].peer, 1);
	vd_move(g, qp, IBV_QPS_SQD);
	vd_send_from(g, qp);
	vd_move(g, qp, IBV_QPS_RTS);
	/* SQD to RTS refuses the attributes that RTR to RTS needs. */
	g->last->modify.flip =
		(unsigned int)(vd_required_mask(g->qps[qp].made.type, IBV_QPS_RTS) ^ IBV_QP_STATE);
}

/* A datagram to a group that a QP has joined. */
void vd_send_to_group(struct vd_generator *g)
{
	int qp = vd_connected(g, IBV_QPT_UD), ah = vd_pick(g, VD_AH, false);
	struct vd_step *step;

	if (qp < 0 || ah < 0)
		return;
	vd_add(g, VD_ATTACH_MCAST, g->qps[qp].peer);
	step = vd_add(g, VD_CREATE_AH, ah);
	step->pd = g->qps[qp].made.pd;
	step->flags = VD_AH_GROUP;
	vd_add_receives(g, g->qps[qp].peer, 1);
	post_one(g, qp, IBV_WR_SEND)->ah = ah;
	vd_add(g, VD_DETACH_MCAST, g->qps[qp].peer);
}

/* From RESET to RTS in steps of their own. */
static void climb(struct vd_generator *g, unsigned int slot, unsigned int peer, enum ibv_mtu mtu)
{
	for (unsigned int i = 0; i < VD_CLIMB; i++) {
		vd_step_to(g, slot, peer, vd_climb[i]);
		g->last->modify.mtu = (uint16_t)mtu;
	}
	g->qps[slot].state = IBV_QPS_RTS;
	g->qps[slot].peer = peer;
}

/* A write to a QP that is connected to another one. Only UC accepts a stranger's PSN. */
void vd_intrude(struct vd_generator *g)
{
	int qp = vd_connected(g, IBV_QPT_UC), stranger = vd_pick(g, VD_QP, false);

	if (qp < 0 || stranger < 0)
		return;
	vd_fill_qp_of_type(g, vd_add(g, VD_CREATE_QP, stranger), IBV_QPT_UC);
	/* The responder drops packets of another path MTU. */
	climb(g, stranger, qp, IBV_MTU_1024);
	post_data(g, stranger, IBV_WR_RDMA_WRITE, 64);
}

/* A READ, SEND or WRITE between ends of different path MTUs. */
void vd_part_mtus(struct vd_generator *g)
{
	static const enum ibv_wr_opcode opcodes[] = {IBV_WR_RDMA_READ, IBV_WR_RDMA_READ,
						     IBV_WR_SEND, IBV_WR_RDMA_WRITE};
	enum ibv_wr_opcode opcode = vd_one_of(g, opcodes);
	int slot = vd_connected(g, IBV_QPT_RC), peer = slot < 0 ? slot : (int)g->qps[slot].peer;
	struct vd_wr *wr;

	if (peer == slot)
		return;
	vd_move(g, slot, IBV_QPS_RESET);
	vd_move(g, peer, IBV_QPS_RESET);
	climb(g, slot, peer, IBV_MTU_256);
	climb(g, peer, slot, IBV_MTU_1024);
	if (opcode == IBV_WR_SEND)
		vd_add_receives(g, peer, 1);
	wr = post_data(g, slot, opcode, 1 + vd_below(g, 5000));
	if (opcode == IBV_WR_RDMA_READ)
		wr->sges[0].at.region = VD_RESPONSE;
	vd_repair(g, slot);
}

/* A connection on which sends without a receive wait for ever; -1 if there is none. */
static int connected_for_ever(struct vd_generator *g)
{
	int qp = reconnected(g, IBV_QPT_RC);

	if (qp >= 0 && g->last->verb == VD_CONNECT_QP) {
		g->last->modify.rnr_retry = 7;
		g->last->modify.retry = 7;
	}
	return qp;
}

/* A send that waits for a receive while its queue drains, and a change of state before it has
 * drained. */
void vd_drain_slowly(struct vd_generator *g)
{
	static const enum ibv_qp_state states[] = {IBV_QPS_RTS, IBV_QPS_RESET, IBV_QPS_ERR};
	int qp = connected_for_ever(g);

	if (qp < 0)
		return;
	post_data(g, qp, IBV_WR_SEND, 8);
	vd_move(g, qp, IBV_QPS_SQD);
	vd_move(g, qp, vd_one_of(g, states));
	vd_repair(g, qp);
}

/* Lists of different lengths to a queue that is in ERR. */
void vd_send_in_error(struct vd_generator *g)
{
	int qp = vd_connected(g, g->type);

	if (qp < 0)
		return;
	vd_move(g, qp, IBV_QPS_ERR);
	for (unsigned int i = 0; i < 9; i++) {
		struct vd_wr *wr = post_data(g, qp, IBV_WR_SEND, 8);

		if (vd_chance(g, 80))
			multiply(g, wr, 2);
	}
}

/* A list whose last WR is invalid and may also be the first that finds no room. */
void vd_overfill(struct vd_generator *g)
{
	static const uint8_t counts[] = {1, 2, 3, 4, 7, 8};
	unsigned int count = vd_one_of(g, counts);
	int qp = reconnected(g, IBV_QPT_RC);
	struct vd_wr *wr;

	if (qp < 0)
		return;
	wr = post_data(g, qp, IBV_WR_RDMA_WRITE, 8);
	multiply(g, wr, count + 1);
	wr[count].flags |= IBV_SEND_INLINE;
	wr[count].sges[0].length = 4096;
}

/* A write of several packets whose last one finds no receive, and a write behind it. */
void vd_cut_write(struct vd_generator *g)
{
	int qp = reconnected(g, IBV_QPT_UC);

	if (qp < 0)
		return;
	post_data(g, qp, IBV_WR_RDMA_WRITE_WITH_IMM, 3000);
	post_data(g, qp, IBV_WR_RDMA_WRITE, 64)->sges[0].at.offset = 4096;
}

/* Two READs of the same PSN: the QP is connected again in between and its other end is not. */
void vd_read_twice(struct vd_generator *g)
{
	int slot = reconnected(g, IBV_QPT_RC), peer = slot < 0 ? slot : (int)g->qps[slot].peer;
	struct vd_wr *wr;

	if (slot < 0)
		return;
	if (peer == slot) {
		post_one(g, slot, IBV_WR_RDMA_READ);
		return;
	}
	post_data(g, slot, IBV_WR_RDMA_READ, 4000)->sges[0].at.region = VD_RESPONSE;
	vd_move(g, slot, IBV_QPS_RESET);
	/* Responses must not be shorter than the requester's path MTU: see vd_part_mtus(). */
	climb(g, slot, peer, IBV_MTU_256);
	wr = post_data(g, slot, IBV_WR_RDMA_READ, 1 + vd_below(g, 500));
	wr->sges[0].at.region = VD_RESPONSE;
	wr->remote.offset = vd_below(g, 3000);
	vd_repair(g, slot);
}

/* A binding behind a send that waits for a receive. */
void vd_bind_behind(struct vd_generator *g)
{
	int qp = vd_connected(g, IBV_QPT_RC), mw = vd_pick(g, VD_MW, false);
	struct vd_wr *wr;

	if (qp < 0 || mw < 0)
		return;
	connected_for_ever(g);
	make_window(g, qp, mw);
	wr = post_data(g, qp, IBV_WR_SEND, 8);
	multiply(g, wr, 2);
	wr[1] = (struct vd_wr){.opcode = IBV_WR_BIND_MW,
			       .flags = IBV_SEND_SIGNALED,
			       .mw = mw,
			       .remote = {.region = VD_TARGET},
			       .bind_bytes = 64,
			       .access = VD_REMOTE_ALL};
	vd_add_receives(g, g->qps[qp].peer, 1);
}

/* Several sends that wait for receives, on a connection that retries nothing but that. */
void vd_send_unawaited(struct vd_generator *g)
{
	int qp = reconnected(g, IBV_QPT_RC);
	struct vd_modify *modify = &g->last->modify;

	if (qp < 0 || g->last->verb != VD_CONNECT_QP)
		return;
	modify->retry = 0;
	modify->psn_add = 0;
	modify->rnr_retry = (uint16_t)(1 + vd_below(g, 2));
	multiply(g, post_data(g, qp, IBV_WR_SEND, 8), 3);
	vd_repair(g, qp);
}

/* A write of no bytes or with immediate data through a key that does not exist, or an atomic
 * that is too short, too long or misaligned. */
void vd_touch_nothing(struct vd_generator *g)
{
	static const enum ibv_wr_opcode opcodes[] = {
		IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM,
		IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_CMP_AND_SWP};
	enum ibv_wr_opcode opcode = vd_one_of(g, opcodes);
	int qp = reconnected(g, IBV_QPT_RC);
	struct vd_wr *wr;

	if (qp < 0)
		return;
	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr = post_data(g, qp, opcode, vd_chance(g, 50) ? 8 : 4);
		wr->sges[0].at.region = VD_RESPONSE;
		wr->remote.offset = wr->sges[0].length == 8 ? 4 : 0;
		return;
	}
	if (opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
		post_data(g, qp, opcode, 32)->sges[0].at.region = VD_RESPONSE;
		return;
	}
	if (opcode == IBV_WR_RDMA_WRITE_WITH_IMM) {
		vd_add_receives(g, g->qps[qp].peer, 1);
		wr = post_data(g, qp, opcode, 8);
	} else {
		wr = post_one(g, qp, opcode);
		wr->remote.region = VD_TARGET;
	}
	wr->key = (struct vd_key){.of = VD_KEY_MR, .flip = 0x5500};
}
