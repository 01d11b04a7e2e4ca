/* SPDX-License-Identifier: MIT */
/*
 * Steps that belong together: what single steps, drawn one by one, hardly ever come to.
 */
#include "src/differ/generate/generate.h"

/* A QP of a type that is believed to be connected; -1 for none. */
static int connected(struct vd_generator *g, enum ibv_qp_type type)
{
	for (unsigned int i = 0; i < vd_slots[VD_QP]; i++)
		if (g->used[VD_QP][i] && g->qps[i].type == type && g->qps[i].state == IBV_QPS_RTS &&
		    g->used[VD_QP][g->qps[i].peer])
			return (int)i;
	return -1;
}

/* A list of one WR with nothing to send; NULL when the program is full. */
static struct vd_wr *post_one(struct vd_generator *g, unsigned int slot, enum ibv_wr_opcode opcode)
{
	struct vd_step *step = vd_add(g, VD_POST_SEND, slot);

	if (!step)
		return NULL;
	step->wr_count = 1;
	step->wrs[0] = (struct vd_wr){.opcode = opcode,
				      .flags = IBV_SEND_SIGNALED,
				      .peer_qp = g->qps[slot].peer,
				      .qkey = VD_QKEY,
				      .imm = 0x1234};
	return &step->wrs[0];
}

/* What a WR sends or writes: bytes of the region that covers all, to the first that may be written. */
static void give_data(struct vd_wr *wr, uint32_t length_bytes)
{
	wr->sge_count = 1;
	wr->sges[0] = (struct vd_sge){.length = length_bytes, .key = {.of = VD_KEY_MR}};
	wr->remote.region = 3;
	wr->key = (struct vd_key){.of = VD_KEY_MR};
}

static struct vd_step *last_step(struct vd_generator *g)
{
	return &g->program->steps[g->program->count - 1];
}

/* The one WR of the list that was just posted, so many times. */
static void multiply(struct vd_generator *g, struct vd_wr *wr, unsigned int count)
{
	last_step(g)->wr_count = count;
	for (unsigned int i = 1; i < count; i++)
		wr[i] = wr[0];
}

/* A QP of that type, connected anew; -1 for none. */
static int reconnected(struct vd_generator *g, enum ibv_qp_type type)
{
	int qp = connected(g, type);

	if (qp >= 0)
		vd_repair(g, (unsigned int)qp);
	return qp;
}

/* The connection that was just made; NULL where there is none. */
static struct vd_modify *just_connected(struct vd_generator *g)
{
	if (!g->program->count || last_step(g)->verb != VD_CONNECT_QP)
		return NULL;
	return &last_step(g)->modify;
}

/* A window of type 2 in the domain of a QP; false when the program is full. */
static bool make_window(struct vd_generator *g, unsigned int qp, unsigned int mw)
{
	struct vd_step *step = vd_add(g, VD_ALLOC_MW, mw);

	if (!step)
		return false;
	step->pd = g->qps[qp].pd;
	step->mw_type = IBV_MW_TYPE_2;
	g->mws[mw] = (struct vd_belief_mw){.type = IBV_MW_TYPE_2};
	return true;
}

/* wr may be NULL. */
static void invalidate(struct vd_wr *wr, unsigned int mw)
{
	if (wr)
		wr->key = (struct vd_key){.of = VD_KEY_MW, .slot = mw};
}

/* Into the window that a WR binds, or just behind it. */
static void write_through(struct vd_generator *g, unsigned int slot, const struct vd_wr *binds)
{
	struct vd_place at = binds->remote;
	unsigned int mw = binds->mw;
	struct vd_wr *wr = post_one(g, slot, IBV_WR_RDMA_WRITE);

	if (!wr || at.region < 3)
		return;
	wr->sge_count = 1;
	wr->sges[0] = (struct vd_sge){.length = 8, .key = {.of = VD_KEY_MR}};
	wr->remote = at;
	wr->remote.offset += vd_chance(g, 70) ? 0 : binds->bind_bytes;
	wr->key = (struct vd_key){.of = VD_KEY_MW, .slot = mw};
}

/* Binds a window of type 2, mostly to the region that covers all, and ends it. It belongs to the QP
 * that binds it, so remote accesses come from the other end. */
void vd_use_window(struct vd_generator *g)
{
	int qp = connected(g, IBV_QPT_RC), mw = vd_pick(g, VD_MW, false);
	struct vd_wr *wr;
	bool remotely;
	int mr = 0;

	if (qp < 0 || mw < 0 || !g->used[VD_MR][0])
		return;
	if (vd_chance(g, 70))
		vd_repair(g, (unsigned int)qp);
	if (!make_window(g, (unsigned int)qp, (unsigned int)mw))
		return;
	if (vd_chance(g, 30))
		mr = vd_pick(g, VD_MR, true);
	wr = post_one(g, (unsigned int)qp, IBV_WR_BIND_MW);
	if (!wr)
		return;
	wr->mw = (unsigned int)mw;
	wr->mr = (unsigned int)mr;
	wr->remote.region = mr ? g->mrs[mr].first / VD_REGION_BYTES : 3;
	wr->remote.offset = mr ? g->mrs[mr].first % VD_REGION_BYTES : 0;
	wr->bind_bytes = 64;
	wr->access = VD_REMOTE_ALL;
	wr->sge_count = vd_chance(g, 8);
	if (vd_chance(g, 40))
		write_through(g, g->qps[qp].peer, wr);
	if (vd_chance(g, 15)) {
		invalidate(post_one(g, g->qps[qp].peer, IBV_WR_LOCAL_INV), (unsigned int)mw);
		return;
	}
	remotely = vd_chance(g, 60);
	if (remotely && vd_chance(g, 80))
		vd_add_receives(g, (unsigned int)qp, 1);
	wr = remotely ? post_one(g, g->qps[qp].peer, IBV_WR_SEND_WITH_INV)
		      : post_one(g, (unsigned int)qp, IBV_WR_LOCAL_INV);
	invalidate(wr, (unsigned int)mw);
}

static void move(struct vd_generator *g, unsigned int slot, enum ibv_qp_state state)
{
	struct vd_step *step = vd_add(g, VD_MODIFY_QP, slot);

	if (step)
		step->modify = (struct vd_modify){.peer = g->qps[slot].peer, .state = state};
}

/* Sends that wait in SQD. RTS is then reached with the optional attributes only. */
void vd_drain(struct vd_generator *g)
{
	int qp = connected(g, g->type);
	struct vd_step *step;

	if (qp < 0)
		return;
	vd_add_receives(g, g->qps[qp].peer, 1);
	move(g, (unsigned int)qp, IBV_QPS_SQD);
	vd_send_from(g, (unsigned int)qp);
	step = vd_add(g, VD_MODIFY_QP, (unsigned int)qp);
	if (!step)
		return;
	step->modify = (struct vd_modify){.peer = g->qps[qp].peer, .state = IBV_QPS_RTS};
	/* What RTR needs to become RTS, SQD must not be given. */
	step->modify.flip = (unsigned int)vd_required_mask(g->qps[qp].type, IBV_QPS_RTS) ^
			    (unsigned int)IBV_QP_STATE;
}

/* A datagram to a group that a QP has joined. */
void vd_send_to_group(struct vd_generator *g)
{
	int qp = connected(g, IBV_QPT_UD), ah = vd_pick(g, VD_AH, false);
	struct vd_step *step;
	struct vd_wr *wr;

	if (qp < 0 || ah < 0)
		return;
	vd_add(g, VD_ATTACH_MCAST, g->qps[qp].peer);
	step = vd_add(g, VD_CREATE_AH, (unsigned int)ah);
	if (!step)
		return;
	step->pd = g->qps[qp].pd;
	step->flags = VD_AH_GROUP;
	vd_add_receives(g, g->qps[qp].peer, 1);
	wr = post_one(g, (unsigned int)qp, IBV_WR_SEND);
	if (wr)
		wr->ah = (unsigned int)ah;
	vd_add(g, VD_DETACH_MCAST, g->qps[qp].peer);
}

/* From RESET to RTS in steps of their own. */
static void climb(struct vd_generator *g, unsigned int slot, unsigned int peer, enum ibv_mtu mtu)
{
	static const enum ibv_qp_state states[] = {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS};

	for (unsigned int i = 0; i < 3; i++) {
		struct vd_step *step = vd_add(g, VD_MODIFY_QP, slot);

		if (!step)
			return;
		step->modify = vd_good_values(g);
		step->modify.mtu = (uint8_t)mtu;
		step->modify.peer = peer;
		step->modify.state = states[i];
	}
	g->qps[slot].state = IBV_QPS_RTS;
	g->qps[slot].peer = peer;
}

/* A write to a QP that is connected to another one. Only UC takes up a stranger's PSN. */
void vd_intrude(struct vd_generator *g)
{
	int qp = connected(g, IBV_QPT_UC), stranger = vd_pick(g, VD_QP, false);
	struct vd_wr *wr;

	if (qp < 0 || stranger < 0)
		return;
	vd_add_qp(g, (unsigned int)stranger, IBV_QPT_UC);
	/* Packets of another size would be dropped for that. */
	climb(g, (unsigned int)stranger, (unsigned int)qp, IBV_MTU_1024);
	wr = post_one(g, (unsigned int)stranger, IBV_WR_RDMA_WRITE);
	if (wr)
		give_data(wr, 64);
}

/* Between ends of different path MTUs: a READ by that of the smaller one, or a SEND or WRITE. */
void vd_part_mtus(struct vd_generator *g)
{
	static const enum ibv_wr_opcode opcodes[] = {IBV_WR_RDMA_READ, IBV_WR_RDMA_READ,
						     IBV_WR_SEND, IBV_WR_RDMA_WRITE};
	enum ibv_wr_opcode opcode = vd_one_of(g, opcodes);
	int qp = connected(g, IBV_QPT_RC);
	unsigned int slot, peer;
	struct vd_wr *wr;

	if (qp < 0)
		return;
	slot = (unsigned int)qp;
	peer = g->qps[slot].peer;
	if (peer == slot)
		return;
	move(g, slot, IBV_QPS_RESET);
	move(g, peer, IBV_QPS_RESET);
	climb(g, slot, peer, IBV_MTU_256);
	climb(g, peer, slot, IBV_MTU_1024);
	if (opcode == IBV_WR_SEND)
		vd_add_receives(g, peer, 1);
	wr = post_one(g, slot, opcode);
	if (!wr)
		return;
	give_data(wr, 1 + vd_below(g, 5000));
	if (opcode == IBV_WR_RDMA_READ)
		wr->sges[0].at.region = 5;
	vd_repair(g, slot);
}

/* What waits for receives on the connection that was just made waits for ever. */
static void wait_for_ever(struct vd_generator *g)
{
	struct vd_modify *modify = just_connected(g);

	if (!modify)
		return;
	modify->rnr_retry = 7;
	modify->retry = 7;
}

/* A send that waits for a receive when its queue is to drain, and is then told to do something
 * else. */
void vd_drain_slowly(struct vd_generator *g)
{
	static const enum ibv_qp_state states[] = {IBV_QPS_RTS, IBV_QPS_RESET, IBV_QPS_ERR};
	int qp = reconnected(g, IBV_QPT_RC);
	struct vd_wr *wr;

	if (qp < 0)
		return;
	wait_for_ever(g);
	wr = post_one(g, (unsigned int)qp, IBV_WR_SEND);
	if (!wr)
		return;
	give_data(wr, 8);
	move(g, (unsigned int)qp, IBV_QPS_SQD);
	move(g, (unsigned int)qp, vd_one_of(g, states));
	vd_repair(g, (unsigned int)qp);
}

/* Lists of different lengths to a queue that is in ERR. */
void vd_send_in_error(struct vd_generator *g)
{
	int qp = connected(g, g->type);

	if (qp < 0)
		return;
	move(g, (unsigned int)qp, IBV_QPS_ERR);
	for (unsigned int i = 0; i < 9; i++) {
		struct vd_wr *wr = post_one(g, (unsigned int)qp, IBV_WR_SEND);

		if (!wr)
			return;
		give_data(wr, 8);
		if (vd_chance(g, 80))
			multiply(g, wr, 2);
	}
}

/* A list in which a WR that is wrong may be the one for which there is no room. */
void vd_overfill(struct vd_generator *g)
{
	static const uint8_t counts[] = {1, 2, 3, 4, 7, 8};
	unsigned int count = vd_one_of(g, counts);
	int qp = reconnected(g, IBV_QPT_RC);
	struct vd_wr *wr;

	if (qp < 0)
		return;
	wr = post_one(g, (unsigned int)qp, IBV_WR_RDMA_WRITE);
	if (!wr)
		return;
	give_data(wr, 8);
	multiply(g, wr, count + 1);
	wr[count].flags |= IBV_SEND_INLINE;
	wr[count].sges[0].length = 4096;
}

/* A write of several packets whose last one finds no receive, and one behind it. */
void vd_cut_write(struct vd_generator *g)
{
	int qp = reconnected(g, IBV_QPT_UC);
	struct vd_wr *wr;

	if (qp < 0)
		return;
	wr = post_one(g, (unsigned int)qp, IBV_WR_RDMA_WRITE_WITH_IMM);
	if (!wr)
		return;
	give_data(wr, 3000);
	wr = post_one(g, (unsigned int)qp, IBV_WR_RDMA_WRITE);
	if (!wr)
		return;
	give_data(wr, 64);
	wr->sges[0].at.offset = 4096;
}

/* A READ with the PSN of one before it, of a QP whose other end was not connected again. */
void vd_read_twice(struct vd_generator *g)
{
	int qp = reconnected(g, IBV_QPT_RC);
	unsigned int slot, peer;
	struct vd_wr *wr;

	if (qp < 0)
		return;
	slot = (unsigned int)qp;
	peer = g->qps[slot].peer;
	for (unsigned int i = 0; i < 2; i++) {
		wr = post_one(g, slot, IBV_WR_RDMA_READ);
		if (!wr || peer == slot)
			return;
		give_data(wr, i ? 1 + vd_below(g, 500) : 4000);
		wr->sges[0].at.region = 5;
		wr->remote.offset = i ? vd_below(g, 3000) : 0;
		if (i)
			break;
		move(g, slot, IBV_QPS_RESET);
		/* Shorter responses than it awaits would be another matter. */
		climb(g, slot, peer, IBV_MTU_256);
	}
	vd_repair(g, slot);
}

/* A binding behind a send that waits for a receive. */
void vd_bind_behind(struct vd_generator *g)
{
	int qp = connected(g, IBV_QPT_RC), mw = vd_pick(g, VD_MW, false);
	struct vd_wr *wr;

	if (qp < 0 || mw < 0)
		return;
	vd_repair(g, (unsigned int)qp);
	wait_for_ever(g);
	if (!make_window(g, (unsigned int)qp, (unsigned int)mw))
		return;
	wr = post_one(g, (unsigned int)qp, IBV_WR_SEND);
	if (!wr)
		return;
	give_data(wr, 8);
	multiply(g, wr, 2);
	wr[1] = (struct vd_wr){.opcode = IBV_WR_BIND_MW,
			       .flags = IBV_SEND_SIGNALED,
			       .mw = (unsigned int)mw,
			       .remote = {.region = 3},
			       .bind_bytes = 64,
			       .access = VD_REMOTE_ALL};
	vd_add_receives(g, g->qps[qp].peer, 1);
}

/* Several sends that wait for receives, where nothing may be repeated but for that. */
void vd_send_unawaited(struct vd_generator *g)
{
	int qp = reconnected(g, IBV_QPT_RC);
	struct vd_modify *modify;
	struct vd_wr *wr;

	if (qp < 0)
		return;
	modify = just_connected(g);
	if (!modify)
		return;
	modify->retry = 0;
	modify->psn_add = 0;
	modify->rnr_retry = (uint8_t)(1 + vd_below(g, 2));
	wr = post_one(g, (unsigned int)qp, IBV_WR_SEND);
	if (!wr)
		return;
	give_data(wr, 8);
	multiply(g, wr, 3);
	vd_repair(g, (unsigned int)qp);
}

/* A write of no bytes or one that is told, with a key that there is not, or an atomic that is too
 * short, too long or astray. */
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
	if (opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
		vd_add_receives(g, g->qps[qp].peer, 1);
	wr = post_one(g, (unsigned int)qp, opcode);
	if (!wr)
		return;
	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		give_data(wr, vd_chance(g, 50) ? 8 : 4);
		wr->sges[0].at.region = 5;
		wr->remote.offset = wr->sges[0].length == 8 ? 4 : 0;
		return;
	}
	if (opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
		give_data(wr, 32);
		wr->sges[0].at.region = 5;
		return;
	}
	if (opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
		give_data(wr, 8);
	wr->remote.region = 3;
	wr->key = (struct vd_key){.of = VD_KEY_MR, .flip = 0x5500};
}
