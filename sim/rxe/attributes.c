/* SPDX-License-Identifier: MIT */
/* ibv_modify_qp and the states, as SoftRoCE has them. */
#include "sim/rxe/private.h"
#include "sim/wire/psn.h"

bool rxe_takes_value(const struct sim_qp *qp, const struct sim_port *port, int attr_bit,
		     const struct ibv_qp_attr *attr)
{
	const struct sim_quirks *quirks = quirks_of(qp);

	switch (attr_bit) {
	case IBV_QP_PKEY_INDEX:
		return port && quirks->pkey_index_unchecked;
	case IBV_QP_PATH_MTU:
		return port && quirks->path_mtu_unchecked && attr->path_mtu <= IBV_MTU_4096;
	case IBV_QP_RETRY_CNT:
	case IBV_QP_RNR_RETRY:
	case IBV_QP_MIN_RNR_TIMER:
		return quirks->retry_ranges_unchecked;
	case IBV_QP_MAX_DEST_RD_ATOMIC:
		return quirks->responder_resources_unchecked;
	default:
		return false;
	}
}

/* Linux drivers/infiniband/core/verbs.c, qp_state_table, has IBV_QP_PATH_MIG_STATE in these
 * transitions. */
bool rxe_ignores_path_state(const struct sim_qp *qp, enum ibv_qp_state to)
{
	bool between = to == IBV_QPS_RTS ? qp->state >= IBV_QPS_RTR && qp->state <= IBV_QPS_SQD
					 : to == IBV_QPS_SQD && qp->state == IBV_QPS_SQD;

	return between && qp->type != IBV_QPT_UD && quirks_of(qp)->path_mig_state_taken;
}

void rxe_adapt(struct sim_qp *qp, struct ibv_qp_attr *attr, int attr_mask)
{
	const struct sim_port *port = sim_device_port(
		qp->device, attr_mask & IBV_QP_PORT ? attr->port_num : qp->port_num);

	if (attr_mask & IBV_QP_PKEY_INDEX) {
		qp->rxe->pkey_index = attr->pkey_index;
		if (attr->pkey_index >= port->pkey_count)
			attr->pkey_index = 0;
	}
	if (attr_mask & IBV_QP_DEST_QPN)
		qp->rxe->dest_qpn = attr->dest_qp_num;
}

void rxe_query(const struct sim_qp *qp, struct ibv_qp_attr *attr)
{
	const struct sim_quirks *quirks = quirks_of(qp);

	if (quirks->pkey_index_unchecked && qp->rxe->pkey_index)
		attr->pkey_index = qp->rxe->pkey_index;
	if (quirks->wide_qpns_told && qp->rxe->dest_qpn)
		attr->dest_qp_num = qp->rxe->dest_qpn;
}

void rxe_entered(struct sim_qp *qp, enum ibv_qp_state from, enum ibv_qp_state to)
{
	const struct sim_quirks *quirks = quirks_of(qp);

	if (to == IBV_QPS_ERR) {
		if (quirks->errors_repeat)
			sim_receive_rearm_last_wqe(qp);
		if (quirks->errored_receives_wait)
			sim_receive_flush(qp);
	} else if (to == IBV_QPS_SQD && from == IBV_QPS_RTS) {
		if (qp->req.stopped && quirks->local_errors_end_repeats)
			sim_requester_rewind(qp, qp->comp.psn, "modify_qp");
		if (quirks->drained_event_unasked)
			sim_qp_ask_drained_event(qp);
	}
}

/* Linux 6.12 drivers/infiniband/sw/rxe/rxe_qp.c, rxe_qp_reset, puts the requester back first and
 * empties the queue then: the requester finds an empty RDMA WRITE for each send. */
bool rxe_reset(struct sim_qp *qp)
{
	const struct sim_quirks *quirks = quirks_of(qp);
	const uint32_t unfinished = qp->sq.head - qp->sq.tail;

	*qp->rxe = (struct sim_rxe){
		.pkey_index = qp->rxe->pkey_index,
		.dest_qpn = qp->rxe->dest_qpn,
		.ghosts = quirks->resets_leave_ghosts ? unfinished : 0,
	};
	return qp->comp.repeating && quirks->repeats_outlive_reset;
}

/* A requester that waits at a fence is called once more when a send before it ends: Linux
 * drivers/infiniband/sw/rxe/rxe_comp.c, do_complete. */
static bool waits_at_fence(const struct sim_qp *qp)
{
	const struct sim_send_wqe *wqe = sim_qp_send_wqe(qp, qp->req.next);

	if (qp->req.next == qp->sq.head || qp->req.next == qp->sq.tail)
		return false;
	return wqe->opcode == IBV_WR_LOCAL_INV ||
	       (wqe->send_flags & IBV_SEND_FENCE && qp->req.reads_outstanding);
}

void rxe_fail(struct sim_qp *qp)
{
	qp->rxe->flush_due = true;
	if (qp->state != IBV_QPS_ERR)
		qp->rxe->ring_place = qp->req.next + waits_at_fence(qp);
}
