/* SPDX-License-Identifier: MIT */
/* The send queue's end: send WQEs end in the order in which they were posted. */
#include "sim/qp/private.h"

#define INLINE __attribute__((always_inline)) static inline

INLINE void push_completion(struct sim_qp *qp, const struct sim_send_wqe *wqe,
			    enum ibv_wc_status status, uint32_t vendor_err)
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
		.vendor_err = vendor_err,
		.opcode = wqe->info.wc_opcode,
		.byte_len = wqe->length,
		.qp_num = qp->number,
	};
	sim_cq_stamp(cq, cqe, &qp->engine->clock);
	cqe->retires = qp->sq_retires;
	cqe->retire_to = qp->sq.tail;
	cqe->solicited = false;
	if (qp->hooks)
		qp->hooks->send_completed(qp, wqe, cqe);
	sim_cq_commit(cq, cqe);
}

static inline void release_ah(struct sim_qp *qp, const struct sim_send_wqe *wqe)
{
	if (qp->type == IBV_QPT_UD && wqe->ud.ah)
		sim_ah_release(wqe->ud.ah);
}

/* Takes the oldest send WQE off the queue. */
INLINE struct sim_send_wqe *take(struct sim_qp *qp)
{
	struct sim_send_wqe *wqe = sim_qp_send_wqe(qp, qp->sq.tail);

	release_ah(qp, wqe);
	qp->device->counters.completed[wqe->info.wc_opcode]++;
	qp->sq.tail++;
	if (!qp->sq_retires)
		qp->sq.freed = qp->sq.tail;
	sim_requester_release(qp, wqe);
	return wqe;
}

void sim_send_complete(struct sim_qp *qp)
{
	const struct sim_send_wqe *wqe = take(qp);

	if (wqe->send_flags & IBV_SEND_SIGNALED)
		push_completion(qp, wqe, IBV_WC_SUCCESS, 0);
}

void sim_send_fail(struct sim_qp *qp, enum ibv_wc_status status)
{
	const struct sim_send_wqe *wqe = take(qp);

	push_completion(qp, wqe, status, sim_failure_of_send(qp, wqe, status));
}

void sim_send_flush(struct sim_qp *qp)
{
	while (qp->sq.tail != qp->sq.head)
		sim_send_fail(qp, IBV_WC_WR_FLUSH_ERR);
}

void sim_send_drop(struct sim_qp *qp)
{
	for (; qp->sq.tail != qp->sq.head; qp->sq.tail++)
		release_ah(qp, sim_qp_send_wqe(qp, qp->sq.tail));
	if (qp->send_cq)
		sim_cq_forget(qp->send_cq, &qp->sq);
}
