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
	if (vd_object(machine, VD_QP, vd_step(machine)->slot)->type == IBV_QPT_UD) {
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
	bool is_ud = vd_object(machine, VD_QP, step->slot)->type == IBV_QPT_UD;

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

int vd_post_send(struct vd_machine *machine, struct vd_object *object)
{
	struct ibv_sge sges[VD_WRS_MAX][VD_SGES_MAX];
	struct ibv_send_wr sends[VD_WRS_MAX], *bad = NULL;
	const struct vd_step *step = vd_step(machine);
	int answer;

	if (!step->wr_count || !is_postable(machine, step))
		return VD_SKIPPED;
	for (unsigned int i = 0; i < step->wr_count; i++) {
		sends[i] = (struct ibv_send_wr){
			.wr_id = vd_wr_id(machine->step, i, false),
			.next = i + 1 < step->wr_count ? &sends[i + 1] : NULL,
			.sg_list = sges[i],
			.num_sge = (int)step->wrs[i].sge_count,
		};
		make_sges(machine, &step->wrs[i], sges[i]);
		make_send(machine, &step->wrs[i], &sends[i]);
	}
	answer = ibv_post_send(object->pointer, sends, &bad);
	if (answer)
		vd_outcome(machine)->bad = bad ? (int)(bad - sends) : -1;
	return answer;
}

int vd_post_recv(struct vd_machine *machine, struct vd_object *object)
{
	struct ibv_sge sges[VD_WRS_MAX][VD_SGES_MAX];
	struct ibv_recv_wr receives[VD_WRS_MAX], *bad = NULL;
	const struct vd_step *step = vd_step(machine);
	int answer;

	if (!step->wr_count)
		return VD_SKIPPED;
	for (unsigned int i = 0; i < step->wr_count; i++) {
		receives[i] = (struct ibv_recv_wr){
			.wr_id = vd_wr_id(machine->step, i, true),
			.next = i + 1 < step->wr_count ? &receives[i + 1] : NULL,
			.sg_list = sges[i],
			.num_sge = (int)step->wrs[i].sge_count,
		};
		make_sges(machine, &step->wrs[i], sges[i]);
	}
	answer = step->verb == VD_POST_RECV ? ibv_post_recv(object->pointer, receives, &bad)
					    : ibv_post_srq_recv(object->pointer, receives, &bad);
	if (answer)
		vd_outcome(machine)->bad = bad ? (int)(bad - receives) : -1;
	return answer;
}
