/* SPDX-License-Identifier: MIT */
/* Posting: from a work request to a WQE. */
#include "sim/world.h"

#include <errno.h>

static int copy_inline(struct sim_qp *qp, const struct ibv_send_wr *wr, struct sim_send_wqe *wqe)
{
	const struct sim_memory_ops *memory = &qp->world->host.memory;
	uint8_t *to = (uint8_t *)wqe->sge;

	for (int i = 0; i < wr->num_sge; i++) {
		const struct ibv_sge *sge = &wr->sg_list[i];

		if (sge->length &&
		    memory->copy(to, (const void *)(uintptr_t)sge->addr, sge->length))
			return EFAULT;
		to += sge->length;
	}
	return 0;
}

/* Keeps the SGEs, if `to` is given; their lengths added up. */
static inline uint64_t take_sges(struct ibv_sge *to, const struct ibv_sge *sge, int num_sge)
{
	uint64_t length;

	if (num_sge == 0)
		return 0;
	/* Mostly there is one. */
	if (to)
		to[0] = sge[0];
	length = sge[0].length;
	for (int i = 1; i < num_sge; i++) {
		if (to)
			to[i] = sge[i];
		length += sge[i].length;
	}
	return length;
}

static int set_data(struct sim_qp *qp, const struct ibv_send_wr *wr, struct sim_send_wqe *wqe)
{
	uint64_t length;

	if (wr->send_flags & IBV_SEND_INLINE) {
		length = take_sges(NULL, wr->sg_list, wr->num_sge);
		if (!(wqe->info_flags & SIM_WR_INLINE) || length > qp->max_inline)
			return EINVAL;
		wqe->length = (uint32_t)length;
		return copy_inline(qp, wr, wqe);
	}
	length = take_sges(wqe->sge, wr->sg_list, wr->num_sge);
	if (length > qp->device->profile->max_message_bytes) {
		wqe->status = IBV_WC_LOC_LEN_ERR;
		length = 0;
	}
	wqe->length = (uint32_t)length;
	return 0;
}

static void set_remote(const struct ibv_send_wr *wr, struct sim_send_wqe *wqe)
{
	if (!(wqe->info_flags & SIM_WR_ATOMIC)) {
		wqe->remote_addr = wr->wr.rdma.remote_addr;
		wqe->rkey = wr->wr.rdma.rkey;
		return;
	}
	/* An atomic's answer is 8 bytes; what the SGEs have beyond that stays as it is. */
	wqe->remote_addr = wr->wr.atomic.remote_addr;
	wqe->rkey = wr->wr.atomic.rkey;
	wqe->compare_add = wr->wr.atomic.compare_add;
	wqe->swap = wr->wr.atomic.swap;
	if (wqe->length < sizeof(uint64_t))
		wqe->status = IBV_WC_LOC_LEN_ERR;
	wqe->length = sizeof(uint64_t);
}

static int set_address(struct sim_qp *qp, const struct ibv_send_wr *wr, struct sim_send_wqe *wqe)
{
	const struct sim_host *host = &qp->world->host;

	wqe->ah = host->find_ah(host->arg, qp, wr->wr.ud.ah);
	if (!wqe->ah)
		return EINVAL;
	wqe->ah->holders++;
	wqe->remote_qpn = wr->wr.ud.remote_qpn & 0xffffff;
	wqe->remote_qkey = wr->wr.ud.remote_qkey;
	return 0;
}

static int post_one(struct sim_qp *qp, const struct ibv_send_wr *wr)
{
	const struct sim_wr_info *info = sim_wr_info(qp->type, wr->opcode);
	struct sim_send_wqe *wqe;
	int err;

	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > qp->sq.max_sge)
		return EINVAL;
	if (sim_queue_full(&qp->sq))
		return ENOMEM;
	wqe = sim_qp_send_wqe(qp, qp->sq.head);
	wqe->wr_id = wr->wr_id;
	wqe->ah = NULL;
	wqe->length = 0;
	wqe->imm_data = wr->imm_data;
	wqe->answered = 0;
	wqe->opcode = (uint8_t)wr->opcode;
	wqe->info_flags = (uint8_t)info->flags;
	wqe->wc_opcode = (uint8_t)info->wc_opcode;
	wqe->send_flags = (uint8_t)(wr->send_flags | qp->sig_all);
	wqe->status = IBV_WC_SUCCESS;
	wqe->num_sge = (uint8_t)wr->num_sge;
	wqe->started = false;
	wqe->credited = false;
	if (!(info->flags & SIM_WR_LEGAL) || (info->flags & SIM_WR_LOCAL)) {
		wqe->status = IBV_WC_LOC_QP_OP_ERR;
		qp->sq.head++;
		return 0;
	}
	err = set_data(qp, wr, wqe);
	if (!err && qp->type == IBV_QPT_UD)
		err = set_address(qp, wr, wqe);
	if (err)
		return err;
	if (info->flags & SIM_WR_REMOTE)
		set_remote(wr, wqe);
	qp->sq.head++;
	return 0;
}

int sim_qp_post_send(struct sim_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	int err = qp->state < IBV_QPS_RTS ? EINVAL : 0;

	for (; wr; wr = wr->next) {
		if (!err)
			err = post_one(qp, wr);
		if (err) {
			*bad = wr;
			break;
		}
	}
	if (qp->sq.tail != qp->sq.head)
		sim_qp_wake_requester(qp);
	return err;
}

static int post_recv_one(struct sim_qp *qp, const struct ibv_recv_wr *wr)
{
	struct sim_recv_wqe *wqe;
	uint64_t length;

	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > qp->rq.max_sge)
		return EINVAL;
	if (sim_queue_full(&qp->rq))
		return ENOMEM;
	wqe = sim_qp_recv_wqe(qp, qp->rq.head);
	length = take_sges(wqe->sge, wr->sg_list, wr->num_sge);
	wqe->wr_id = wr->wr_id;
	wqe->num_sge = (uint32_t)wr->num_sge;
	wqe->length = length > UINT32_MAX ? UINT32_MAX : (uint32_t)length;
	qp->rq.head++;
	return 0;
}

int sim_qp_post_recv(struct sim_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	int err = qp->state == IBV_QPS_RESET ? EINVAL : 0;

	for (; wr; wr = wr->next) {
		if (!err)
			err = post_recv_one(qp, wr);
		if (err) {
			*bad = wr;
			break;
		}
	}
	if (qp->state == IBV_QPS_ERR)
		sim_qp_wake_requester(qp);
	return err;
}
