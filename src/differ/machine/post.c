/* SPDX-License-Identifier: MIT */
#include "src/differ/machine/machine.h"

#include <arpa/inet.h>
#include <errno.h>

static uint32_t key_of(struct vd_machine *machine, struct vd_key key, bool remote)
{
	const struct vd_object *object;

	if (key.of == VD_KEY_NONE)
		return key.flip;
	object = vd_object(machine, key.of == VD_KEY_MR ? VD_MR : VD_MW, key.slot);
	return (remote ? object->rkey : object->lkey) ^ key.flip;
}

static void make_sges(struct vd_machine *machine, const struct vd_wr *wr, struct ibv_sge *sges)
{
	for (unsigned int i = 0; i < wr->sge_count && i < VD_SGES_MAX; i++)
		sges[i] = (struct ibv_sge){.addr = (uintptr_t)vd_address(machine, wr->sges[i].at),
					   .length = wr->sges[i].length,
					   .lkey = key_of(machine, wr->sges[i].key, false)};
}

static void make_bind(struct vd_machine *machine, const struct vd_wr *wr, struct ibv_send_wr *send)
{
	struct vd_object *mw = vd_object(machine, VD_MW, wr->mw);

	/* The next WR of the list may use the window. */
	mw->rkey = ibv_inc_rkey(mw->rkey);
	send->bind_mw.mw = mw->pointer;
	send->bind_mw.rkey = mw->rkey;
	send->bind_mw.bind_info = (struct ibv_mw_bind_info){
		.mr = vd_object(machine, VD_MR, wr->mr)->pointer,
		.addr = (uintptr_t)vd_address(machine, wr->remote),
		.length = wr->bind_bytes,
		.mw_access_flags = wr->access,
	};
}

static void make_send(struct vd_machine *machine, const struct vd_wr *wr, struct ibv_send_wr *send)
{
	uintptr_t remote = (uintptr_t)vd_address(machine, wr->remote);
	uint32_t rkey = key_of(machine, wr->key, true);

	send->opcode = wr->opcode;
	send->send_flags = wr->flags;
	/* Other opcodes have no such field; librxe refuses a binding in which it is set. */
	if (vd_has_imm(wr->opcode))
		send->imm_data = htonl(wr->imm);
	switch (wr->opcode) {
	case IBV_WR_SEND_WITH_INV:
	case IBV_WR_LOCAL_INV:
		send->invalidate_rkey = rkey;
		break;
	case IBV_WR_BIND_MW:
		make_bind(machine, wr, send);
		return;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		send->wr.atomic.remote_addr = remote;
		send->wr.atomic.rkey = rkey;
		send->wr.atomic.compare_add = wr->imm;
		send->wr.atomic.swap = ~(uint64_t)wr->imm;
		return;
	default:
		break;
	}
	if (machine->object->type == IBV_QPT_UD) {
		const struct ibv_qp *peer = vd_object(machine, VD_QP, wr->peer_qp)->pointer;
		const struct vd_object *ah = vd_object(machine, VD_AH, wr->ah);

		send->wr.ud.ah = ah->pointer;
		send->wr.ud.remote_qpn = peer ? peer->qp_num : VD_NO_QPN;
		if (ah->group)
			send->wr.ud.remote_qpn = VD_MULTICAST_QPN;
		send->wr.ud.remote_qkey = wr->qkey;
	} else {
		send->wr.rdma.remote_addr = remote;
		send->wr.rdma.rkey = rkey;
	}
}

/* Notes that a WR invalidates a window. False if the key's owner is not a window that is bound. */
static bool take_binding(struct vd_machine *machine, const struct vd_wr *wr)
{
	struct vd_object *mw = vd_object(machine, VD_MW, wr->key.slot);
	bool bound = wr->key.of == VD_KEY_MW && mw->pointer && mw->bound;

	mw->bound = false;
	return bound;
}

/* True if the objects exist that a provider dereferences without a check. */
static bool is_postable(struct vd_machine *machine, const struct vd_step *step)
{
	bool is_ud = machine->object->type == IBV_QPT_UD;

	for (unsigned int i = 0; i < step->wr_count; i++) {
		const struct vd_wr *wr = &step->wrs[i];

		if (machine->program->avoid & VD_AVOID_INVALIDATE && vd_invalidates(wr->opcode) &&
		    !take_binding(machine, wr))
			return false;
		if (is_ud && !vd_object(machine, VD_AH, wr->ah)->pointer)
			return false;
		if (wr->opcode == IBV_WR_BIND_MW && (!vd_object(machine, VD_MW, wr->mw)->pointer ||
						     !vd_object(machine, VD_MR, wr->mr)->pointer))
			return false;
	}
	return true;
}

int vd_post(struct vd_machine *machine)
{
	const struct vd_step *step = vd_step(machine);
	bool receives = step->verb != VD_POST_SEND;
	struct ibv_sge sges[VD_WRS_MAX][VD_SGES_MAX];
	struct ibv_recv_wr recvs[VD_WRS_MAX], *bad_recv = NULL;
	struct ibv_send_wr sends[VD_WRS_MAX], *bad_send = NULL;
	void *object = machine->object->pointer;
	int answer, bad;

	if (!step->wr_count || (!receives && !is_postable(machine, step)))
		return VD_SKIPPED;
	for (unsigned int i = 0; i < step->wr_count; i++) {
		const struct vd_wr *wr = &step->wrs[i];
		uint64_t wr_id = vd_wr_id(machine->step, i, receives);
		bool is_last = i + 1 == step->wr_count;

		make_sges(machine, wr, sges[i]);
		recvs[i] = (struct ibv_recv_wr){.wr_id = wr_id,
						.next = is_last ? NULL : &recvs[i + 1],
						.sg_list = sges[i],
						.num_sge = (int)wr->sge_count};
		sends[i] = (struct ibv_send_wr){.wr_id = wr_id,
						.next = is_last ? NULL : &sends[i + 1],
						.sg_list = sges[i],
						.num_sge = (int)wr->sge_count};
		if (!receives)
			make_send(machine, wr, &sends[i]);
	}
	if (step->verb == VD_POST_SEND)
		answer = ibv_post_send(object, sends, &bad_send);
	else if (step->verb == VD_POST_RECV)
		answer = ibv_post_recv(object, recvs, &bad_recv);
	else
		answer = ibv_post_srq_recv(object, recvs, &bad_recv);
	bad = bad_send ? (int)(bad_send - sends) : bad_recv ? (int)(bad_recv - recvs) : -1;
	if (answer)
		vd_outcome(machine)->bad = bad;
	return answer;
}
