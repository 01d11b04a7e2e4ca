/* SPDX-License-Identifier: MIT */
#include "src/differ/machine/machine.h"

#include <arpa/inet.h>
#include <errno.h>

/* A list of WRs as libibverbs wants it. */
struct list {
	struct ibv_sge sges[VD_WRS_MAX][VD_SGES_MAX];
	struct ibv_send_wr sends[VD_WRS_MAX];
	struct ibv_recv_wr receives[VD_WRS_MAX];
};

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

static void make_send(struct vd_machine *machine, const struct vd_step *step,
		      const struct vd_wr *wr, struct ibv_send_wr *send)
{
	uintptr_t remote = (uintptr_t)vd_address(machine, wr->remote);
	uint32_t rkey = key_of(machine, wr->key, true);

	send->opcode = wr->opcode;
	send->send_flags = wr->flags;
	/* librxe refuses a binding with the field set, which is none of a binding's. */
	if (wr->opcode == IBV_WR_SEND_WITH_IMM || wr->opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
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
	if (vd_object(machine, VD_QP, step->slot)->type == IBV_QPT_UD) {
		const struct ibv_qp *peer = vd_object(machine, VD_QP, wr->peer_qp)->pointer;

		send->wr.ud.ah = vd_object(machine, VD_AH, wr->ah)->pointer;
		send->wr.ud.remote_qpn = vd_object(machine, VD_AH, wr->ah)->group ? 0xffffff
					 : peer					  ? peer->qp_num
										  : 0xfffff0;
		send->wr.ud.remote_qkey = wr->qkey;
	} else {
		send->wr.rdma.remote_addr = remote;
		send->wr.rdma.rkey = rkey;
	}
}

/* A WR that invalidates takes the window's binding; false where there is none to take. */
static bool take_binding(struct vd_machine *machine, const struct vd_wr *wr)
{
	struct vd_object *mw = vd_object(machine, VD_MW, wr->key.slot);
	bool bound = wr->key.of == VD_KEY_MW && mw->pointer && mw->bound;

	if (wr->opcode != IBV_WR_LOCAL_INV && wr->opcode != IBV_WR_SEND_WITH_INV)
		return true;
	mw->bound = false;
	return bound;
}

/* What a provider follows without looking must be there. */
static bool postable(struct vd_machine *machine, const struct vd_step *step)
{
	bool is_ud = vd_object(machine, VD_QP, step->slot)->type == IBV_QPT_UD;

	for (unsigned int i = 0; i < step->wr_count; i++) {
		const struct vd_wr *wr = &step->wrs[i];

		if (machine->program->avoid & VD_AVOID_INVALIDATE && !take_binding(machine, wr))
			return false;
		if (is_ud && !vd_object(machine, VD_AH, wr->ah)->pointer)
			return false;
		if (wr->opcode == IBV_WR_BIND_MW && (!vd_object(machine, VD_MW, wr->mw)->pointer ||
						     !vd_object(machine, VD_MR, wr->mr)->pointer))
			return false;
	}
	return true;
}

static void post_sends(struct vd_machine *machine, const struct vd_step *step, struct list *list,
		       struct vd_outcome *outcome)
{
	struct ibv_qp *qp = vd_object(machine, VD_QP, step->slot)->pointer;
	struct ibv_send_wr *bad = NULL;

	if (!postable(machine, step)) {
		outcome->answer = VD_SKIPPED;
		return;
	}
	for (unsigned int i = 0; i < step->wr_count; i++) {
		list->sends[i] = (struct ibv_send_wr){
			.wr_id = vd_wr_id(machine->step, i, false),
			.next = i + 1 < step->wr_count ? &list->sends[i + 1] : NULL,
			.sg_list = list->sges[i],
			.num_sge = (int)step->wrs[i].sge_count,
		};
		make_sges(machine, &step->wrs[i], list->sges[i]);
		make_send(machine, step, &step->wrs[i], &list->sends[i]);
	}
	outcome->answer = ibv_post_send(qp, list->sends, &bad);
	if (outcome->answer)
		outcome->bad = bad ? (int)(bad - list->sends) : -1;
}

static void post_receives(struct vd_machine *machine, const struct vd_step *step, struct list *list,
			  struct vd_outcome *outcome)
{
	struct ibv_recv_wr *bad = NULL;
	void *queue;

	for (unsigned int i = 0; i < step->wr_count; i++) {
		list->receives[i] = (struct ibv_recv_wr){
			.wr_id = vd_wr_id(machine->step, i, true),
			.next = i + 1 < step->wr_count ? &list->receives[i + 1] : NULL,
			.sg_list = list->sges[i],
			.num_sge = (int)step->wrs[i].sge_count,
		};
		make_sges(machine, &step->wrs[i], list->sges[i]);
	}
	if (step->verb == VD_POST_SRQ_RECV) {
		queue = vd_object(machine, VD_SRQ, step->slot)->pointer;
		outcome->answer = ibv_post_srq_recv(queue, list->receives, &bad);
	} else {
		queue = vd_object(machine, VD_QP, step->slot)->pointer;
		outcome->answer = ibv_post_recv(queue, list->receives, &bad);
	}
	if (outcome->answer)
		outcome->bad = bad ? (int)(bad - list->receives) : -1;
}

void vd_post(struct vd_machine *machine, const struct vd_step *step, struct vd_outcome *outcome)
{
	struct list list;

	if (!step->wr_count)
		outcome->answer = VD_SKIPPED;
	else if (step->verb == VD_POST_SEND)
		post_sends(machine, step, &list, outcome);
	else
		post_receives(machine, step, &list, outcome);
}
