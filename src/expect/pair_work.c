/* SPDX-License-Identifier: MIT */
/* Work requests of a pair. */
#include "src/expect/pair.h"

#include "src/base/failure.h"

#include <arpa/inet.h>
#include <errno.h>
#include <verbena/verbs.h>

int vb_pair_receive(struct vb_pair_end *end, uint64_t wr_id, size_t offset, uint32_t length_bytes)
{
	struct ibv_sge sge = {(uintptr_t)end->buffer + offset, length_bytes, end->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad;

	return end->srq ? vb_post_srq_recv(end->srq, &wr, &bad) : vb_post_recv(end->qp, &wr, &bad);
}

/* Returns false for an opcode that needs more than a pair knows. */
static bool fill_opcode(struct ibv_send_wr *wr, const struct vb_pair_end *peer, size_t offset)
{
	const uint64_t remote = (uintptr_t)peer->buffer + offset;

	switch (wr->opcode) {
	case IBV_WR_SEND_WITH_IMM:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		wr->imm_data = htonl((uint32_t)wr->wr_id);
		break;
	case IBV_WR_SEND:
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_READ:
		break;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		wr->wr.atomic.remote_addr = remote;
		wr->wr.atomic.rkey = peer->mr->rkey;
		wr->wr.atomic.compare_add = wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
		wr->wr.atomic.swap = 1;
		return true;
	default:
		return false;
	}
	if (wr->opcode != IBV_WR_SEND && wr->opcode != IBV_WR_SEND_WITH_IMM) {
		wr->wr.rdma.remote_addr = remote;
		wr->wr.rdma.rkey = peer->mr->rkey;
	}
	return true;
}

int vb_pair_post(struct vb_pair_end *end, uint64_t wr_id, enum ibv_wr_opcode opcode, size_t offset,
		 uint32_t length_bytes)
{
	struct ibv_sge sge = {(uintptr_t)end->buffer + offset, length_bytes, end->mr->lkey};
	struct ibv_send_wr wr = {.wr_id = wr_id,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = opcode,
				 .send_flags = IBV_SEND_SIGNALED},
			   *bad;

	if (!fill_opcode(&wr, end->peer, offset))
		return fail(EINVAL,
			    "pair_post: opcode %d needs more than an offset; call ibv_post_send()",
			    opcode);
	if (end->ah) {
		wr.wr.ud.ah = end->ah;
		wr.wr.ud.remote_qpn = end->remote_qpn;
		wr.wr.ud.remote_qkey = end->remote_qkey;
	}
	if (end->target)
		vb_get_srq_num(end->peer->srq, &wr.qp_type.xrc.remote_srqn);
	return vb_post_send(end->qp, &wr, &bad);
}
