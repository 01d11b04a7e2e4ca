/* SPDX-License-Identifier: MIT */
/* The send queue's end: send WQEs end in the order in which they were posted. */
#include "sim/qp/private.h"

/* Tells an error of this WQE's memory from others of its status, and the first flush from the rest. */
static enum sim_cause cause_of(struct sim_qp *qp, const struct sim_send_wqe *wqe,
			       enum ibv_wc_status status)
{
	const bool stores = wqe->info.flags & SIM_WR_RESPONSE && wqe->opcode != IBV_WR_ATOMIC_WRITE;

	if (status == IBV_WC_WR_FLUSH_ERR)
		return sim_qp_first_flush(qp, SIM_FLUSH_SENDS);
	if (status != IBV_WC_LOC_PROT_ERR || wqe->send_flags & IBV_SEND_INLINE)
		return SIM_CAUSE_ANY;
	return sim_gather_cause(&qp->sq_reach, wqe->sge, wqe->num_sge,
				stores ? IBV_ACCESS_LOCAL_WRITE : 0);
}

__attribute__((always_inline)) static inline void push_completion(struct sim_qp *qp,
								  const struct sim_send_wqe *wqe,
								  enum ibv_wc_status status)
{
	struct sim_cq *cq = qp->send_cq;
	struct sim_cqe *cqe;

	if (!sim_cq_has_room(cq)) {
		if (sim_rule_holds(qp, SIM_RULE_OVERRUN_ENDS_QP))
			sim_qp_cq_died(qp);
		return;
	}
	cqe = sim_cq_next(cq);
	cqe->wc = (struct ibv_wc){
		.wr_id = wqe->wr_id,
		.status = status,
		.opcode = wqe->info.wc_opcode,
		.byte_len = wqe->length,
		.qp_num = qp->number,
	};
	if (status != IBV_WC_SUCCESS)
		cqe->wc.vendor_err = sim_vendor_err(qp->device->profile->codes, status,
						    cause_of(qp, wqe, status));
	cqe->timestamp_ns = qp->engine->clock.now_ns;
	cqe->retires = qp->sq_retires;
	cqe->retire_to = qp->sq.tail;
	cqe->solicited = false;
	if (qp->hooks)
		qp->hooks->send_completed(qp, wqe, cqe);
	sim_cq_commit(cq, cqe);
}

__attribute__((noinline)) static void push_error(struct sim_qp *qp, const struct sim_send_wqe *wqe,
						 enum ibv_wc_status status)
{
	push_completion(qp, wqe, status);
}

static inline void release_ah(struct sim_qp *qp, const struct sim_send_wqe *wqe)
{
	if (qp->type == IBV_QPT_UD && wqe->ud.ah)
		sim_ah_release(wqe->ud.ah);
}

void sim_send_complete(struct sim_qp *qp, enum ibv_wc_status status)
{
	struct sim_send_wqe *wqe = sim_qp_send_wqe(qp, qp->sq.tail);

	release_ah(qp, wqe);
	qp->device->counters.completed[wqe->info.wc_opcode]++;
	qp->sq.tail++;
	if (!qp->sq_retires)
		qp->sq.freed = qp->sq.tail;
	sim_requester_release(qp, wqe);
	if (status != IBV_WC_SUCCESS)
		push_error(qp, wqe, status);
	else if (wqe->send_flags & IBV_SEND_SIGNALED)
		push_completion(qp, wqe, IBV_WC_SUCCESS);
}

void sim_send_flush(struct sim_qp *qp)
{
	while (qp->sq.tail != qp->sq.head)
		sim_send_complete(qp, IBV_WC_WR_FLUSH_ERR);
}

void sim_send_drop(struct sim_qp *qp)
{
	for (; qp->sq.tail != qp->sq.head; qp->sq.tail++)
		release_ah(qp, sim_qp_send_wqe(qp, qp->sq.tail));
	if (qp->send_cq)
		sim_cq_forget(qp->send_cq, &qp->sq);
}
