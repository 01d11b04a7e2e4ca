/* SPDX-License-Identifier: MIT */
/* The receive side: where receive WQEs come from, and how they end. */
#include "sim/qp/private.h"

/* The receives' memory must be of this reach's PD. */
static struct sim_reach *reach_of(struct sim_qp *qp)
{
	return qp->srq && sim_rule_holds(qp, SIM_RULE_SRQ_PD) ? &qp->srq->reach : &qp->rq_reach;
}

void sim_receive_init(struct sim_qp *qp, struct sim_cq *cq)
{
	qp->rx = (struct sim_receive){.srq = qp->srq, .cq = cq, .reach = reach_of(qp)};
}

/* XRC: true unless the SRQ of the message in progress has ended. */
static bool srq_lives(const struct sim_qp *qp)
{
	return !qp->xrcd || sim_table_find(&qp->device->srqs, qp->rx.srq_number) == qp->rx.srq;
}

const struct sim_cq *sim_receive_cq(const struct sim_qp *qp)
{
	if (!qp->xrcd)
		return qp->rx.cq;
	return qp->rx.srq && srq_lives(qp) ? qp->rx.srq->cq : NULL;
}

void sim_receive_reset(struct sim_qp *qp)
{
	struct sim_receive *rx = &qp->rx;

	if (rx->cq && !qp->xrcd)
		sim_cq_forget(rx->cq, &qp->rq);
	if (rx->held && srq_lives(qp))
		sim_srq_release(rx->srq, rx->slot);
	qp->rq.head = qp->rq.tail = qp->rq.freed = 0;
	sim_receive_init(qp, qp->xrcd ? NULL : rx->cq);
}

const struct sim_recv_wqe *sim_receive_peek(const struct sim_qp *qp)
{
	if (!qp->rx.srq)
		return qp->rq.tail == qp->rq.head ? NULL : sim_qp_recv_wqe(qp, qp->rq.tail);
	return qp->rx.held ? qp->rx.wqe : sim_srq_peek(qp->rx.srq);
}

bool sim_receive_take_queued(struct sim_qp *qp)
{
	struct sim_receive *rx = &qp->rx;

	if (qp->rq.tail == qp->rq.head)
		return false;
	rx->wqe = sim_qp_recv_wqe(qp, qp->rq.tail);
	rx->taken = true;
	return true;
}

bool sim_receive_take_shared(struct sim_qp *qp)
{
	struct sim_receive *rx = &qp->rx;

	if (!rx->held) {
		if (sim_srq_count(rx->srq) == 0)
			return false;
		rx->slot = sim_srq_take(rx->srq);
		rx->wqe = sim_queue_slot(&rx->srq->queue, rx->slot);
		rx->held = true;
	}
	rx->taken = true;
	return true;
}

void sim_receive_untake(struct sim_qp *qp)
{
	qp->rx.taken = false;
}

void sim_receive_refind(struct sim_qp *qp)
{
	struct sim_receive *rx = &qp->rx;

	if (!rx->held)
		return;
	if (srq_lives(qp)) {
		rx->wqe = sim_queue_slot(&rx->srq->queue, rx->slot);
		return;
	}
	rx->srq = NULL;
	rx->cq = NULL;
	rx->held = false;
	rx->taken = false;
}

bool sim_receive_enter_srq(struct sim_qp *qp, uint32_t srq_number)
{
	struct sim_srq *srq = sim_table_find(&qp->device->srqs, srq_number);

	if (!srq || srq->xrcd != qp->xrcd)
		return false;
	qp->rx.srq = srq;
	qp->rx.srq_number = srq_number;
	qp->rx.reach = &srq->reach;
	qp->rx.cq = srq->cq;
	return true;
}

void sim_receive_died(struct sim_qp *qp)
{
	struct sim_receive *rx = &qp->rx;

	if (rx->held)
		sim_srq_release(rx->srq, rx->slot);
	else if (!rx->srq)
		qp->rq.tail++;
	if (!rx->srq && !qp->rq_retires)
		qp->rq.freed = qp->rq.tail;
	rx->held = false;
	sim_qp_cq_died(qp);
}

void sim_receive_retire_shared(struct sim_qp *qp, struct sim_cqe *cqe)
{
	struct sim_receive *rx = &qp->rx;

	rx->held = false;
	cqe->retires = qp->rq_retires ? &rx->srq->queue : NULL;
	cqe->retire_to = rx->slot;
	if (qp->rq_retires)
		rx->srq->unpolled++;
	else
		sim_srq_release(rx->srq, rx->slot);
}

void sim_receive_complete(struct sim_qp *qp, const struct sim_packet *packet,
			  enum ibv_wc_status status, enum ibv_wc_opcode opcode, uint32_t byte_len,
			  unsigned int wc_flags)
{
	sim_receive_finish(qp, packet, status, opcode, byte_len, wc_flags);
}

void sim_receive_flush_later(struct sim_qp *qp)
{
	qp->rx.flush_due = true;
}

void sim_receive_flush(struct sim_qp *qp)
{
	struct sim_receive *rx = &qp->rx;

	rx->flush_due = false;
	sim_receive_refind(qp);
	/* An XRC target whose SRQ has ended has no CQ, and no receive. */
	while (rx->cq && (rx->held || (!rx->srq && sim_receive_take_queued(qp))))
		sim_receive_complete(qp, NULL, IBV_WC_WR_FLUSH_ERR, IBV_WC_RECV, 0, 0);
	/* The SRQ's other WQEs stay for other QPs. */
	if (qp->srq && !rx->last_wqe_raised) {
		rx->last_wqe_raised = true;
		sim_qp_event(qp, IBV_EVENT_QP_LAST_WQE_REACHED);
	}
}

void sim_receive_rearm_last_wqe(struct sim_qp *qp)
{
	qp->rx.last_wqe_raised = false;
}
