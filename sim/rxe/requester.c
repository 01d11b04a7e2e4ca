/* SPDX-License-Identifier: MIT */
/* Posting and sending, as SoftRoCE has them. */
#include "sim/base/refuse.h"
#include "sim/rxe/private.h"
#include "sim/wire/psn.h"

/* rdma-core providers/rxe/rxe.c, validate_send_wr. */
static bool is_odd_binding(const struct sim_qp *qp, const struct ibv_send_wr *wr)
{
	return wr->opcode == IBV_WR_BIND_MW && quirks_of(qp)->odd_bindings_refused &&
	       (qp->type == IBV_QPT_UD || wr->num_sge || wr->imm_data);
}

/* rdma-core providers/rxe/rxe.c, validate_send_wr, which ibv_wr_complete() does not call. */
static bool is_odd_atomic(const struct sim_qp *qp, const struct ibv_send_wr *wr)
{
	const struct sim_wr_info *info = sim_wr_info(qp->type, wr->opcode);

	if (!(info->flags & SIM_WR_ATOMIC) || !quirks_of(qp)->atomics_checked_when_posted ||
	    qp->posts_batch)
		return false;
	return sim_take_sges(NULL, wr->sg_list, wr->num_sge) < SIM_ATOMIC_BYTES ||
	       wr->wr.atomic.remote_addr % SIM_ATOMIC_BYTES;
}

static bool is_long_inline(const struct sim_qp *qp, const struct ibv_send_wr *wr)
{
	return wr->send_flags & IBV_SEND_INLINE &&
	       sim_take_sges(NULL, wr->sg_list, wr->num_sge) > qp->max_inline;
}

static int refuse_wr(const struct sim_qp *qp, const struct ibv_send_wr *wr, enum vb_reason reason)
{
	const uint64_t length = sim_take_sges(NULL, wr->sg_list, wr->num_sge);

	return sim_refuse(qp->engine,
			  (struct vb_why){reason, {qp->number, length, qp->max_inline}});
}

int rxe_vet_send(const struct sim_qp *qp, const struct ibv_send_wr *wr, bool full)
{
	/* What is wrong with a WR comes before a full queue only with room_is_checked_last. */
	if (full && !quirks_of(qp)->room_is_checked_last)
		return 0;
	if (is_odd_binding(qp, wr))
		return refuse_wr(qp, wr, VB_WHY_SEND_BIND);
	if (is_odd_atomic(qp, wr))
		return refuse_wr(qp, wr, VB_WHY_SEND_ATOMIC);
	if (full && is_long_inline(qp, wr))
		return refuse_wr(qp, wr, VB_WHY_SEND_INLINE_LENGTH);
	return 0;
}

void rxe_posted_in_error(struct sim_qp *qp)
{
	if (!quirks_of(qp)->errors_repeat)
		return;
	sim_receive_rearm_last_wqe(qp);
	sim_qp_fail(qp, SIM_BY_SEND);
}

static void send_ghosts(struct sim_qp *qp)
{
	struct sim_rxe *rxe = qp->rxe;

	if (qp->type == IBV_QPT_UD) {
		rxe->ghosts = 0;
		sim_qp_fail(qp, SIM_BY_SEND);
	}
	for (; rxe->ghosts; rxe->ghosts--)
		sim_requester_send_empty(qp);
}

/* Linux 6.1 drivers/infiniband/sw/rxe/rxe_req.c, rxe_requester: it does not see how far the completer
 * flushed, and takes its own place for the oldest send, or for the end of the queue. */
static bool flushes_sends(struct sim_qp *qp)
{
	struct sim_rxe *rxe = qp->rxe;
	bool behind = (rxe->ring_place ^ qp->sq.head) & sim_queue_rounded(qp->sq.max_wr);
	bool due = rxe->flush_due || behind;

	rxe->flush_due = false;
	rxe->ring_place += behind;
	return due;
}

bool rxe_turn(struct sim_qp *qp)
{
	if (qp->rxe->ghosts && qp->state == IBV_QPS_RTS && qp->sq.tail != qp->sq.head)
		send_ghosts(qp);
	if (qp->state != IBV_QPS_ERR || !quirks_of(qp)->errored_sends_may_wait)
		return false;
	sim_requester_flush(qp, flushes_sends(qp));
	return true;
}

bool rxe_fence_jams(const struct sim_qp *qp, const struct sim_send_wqe *wqe)
{
	return wqe->send_flags & IBV_SEND_FENCE && qp->req.reads_outstanding &&
	       quirks_of(qp)->repeated_fences_wait_for_all;
}

enum sim_gate rxe_gate(const struct sim_qp *qp, const struct sim_send_wqe *wqe, enum sim_gate gate)
{
	const struct sim_quirks *quirks = quirks_of(qp);

	if (qp->state == IBV_QPS_SQD && quirks->draining_sends_nothing)
		return SIM_GATE_DRAIN;
	if (gate != SIM_GATE_OPEN)
		return gate;
	if (wqe->started)
		return rxe_fence_jams(qp, wqe) ? SIM_GATE_FENCE : SIM_GATE_OPEN;
	if (wqe->info.flags & SIM_WR_RESPONSE && !qp->max_rd_atomic &&
	    quirks->reads_without_room_wait)
		return SIM_GATE_READS;
	return SIM_GATE_OPEN;
}

/* Linux drivers/infiniband/sw/rxe/rxe_req.c, req_check_sq_drain: a send that would be repeated, and
 * is not, counts as drained. */
bool rxe_is_drained(const struct sim_qp *qp)
{
	const struct sim_send_wqe *wqe = sim_qp_send_wqe(qp, qp->sq.tail);

	if (qp->rxe->ghosts)
		return false;
	if (qp->sq.tail == qp->sq.head || !wqe->started)
		return true;
	return quirks_of(qp)->draining_sends_nothing &&
	       qp->req.offset == sim_psn_distance(qp->comp.psn, wqe->first_psn);
}

/* True if each SGE has a key of the QP's PD, whatever its range. */
static bool keys_fit(const struct sim_qp *qp, const struct sim_send_wqe *wqe)
{
	for (unsigned int i = 0; i < wqe->num_sge; i++) {
		const struct sim_mr *mr = sim_mr_find(qp->device, SIM_KEY_LOCAL, wqe->sge[i].lkey);

		if (!mr || mr->pd != qp->pd)
			return false;
	}
	return true;
}

bool rxe_send_failed(struct sim_qp *qp, const struct sim_send_wqe *wqe, enum ibv_wc_status *status)
{
	const struct sim_quirks *quirks = quirks_of(qp);

	if (*status == IBV_WC_MW_BIND_ERR && wqe->opcode == IBV_WR_LOCAL_INV &&
	    quirks->bad_invalidation_is_operation_error)
		*status = IBV_WC_LOC_QP_OP_ERR;
	if (quirks->bad_lkey_is_flush)
		*status = IBV_WC_WR_FLUSH_ERR;
	else if (quirks->bad_lkey_is_operation_error && *status == IBV_WC_LOC_PROT_ERR &&
		 !keys_fit(qp, wqe))
		*status = IBV_WC_LOC_QP_OP_ERR;
	if (!quirks->local_errors_flush_all)
		return false;
	sim_qp_fail(qp, SIM_BY_SEND);
	return true;
}

bool rxe_send_error_ends(const struct sim_qp *qp)
{
	return quirks_of(qp)->send_errors_end_qp;
}

bool rxe_repeat_local(const struct sim_qp *qp, const struct sim_send_wqe *wqe)
{
	return wqe->opcode != IBV_WR_BIND_MW || !quirks_of(qp)->repeated_bindings_fail;
}

/* Linux 6.1 drivers/infiniband/sw/rxe/rxe_req.c, rxe_requester, and rxe_comp.c, need_retry. */
bool rxe_jam(struct sim_qp *qp)
{
	if (!qp->req.stopped || !quirks_of(qp)->local_errors_end_repeats)
		return false;
	sim_requester_forget_sent(qp);
	sim_completer_stop(qp);
	return true;
}

void rxe_rnr_over(struct sim_qp *qp)
{
	if (rxe_jam(qp))
		return;
	if (quirks_of(qp)->rnr_naks_stop_nothing)
		sim_requester_rewind(qp, qp->comp.psn, "rnr_over");
	sim_qp_wake_requester(qp);
}

static bool has_immediate(const struct sim_send_wqe *wqe)
{
	return wqe->opcode == IBV_WR_SEND_WITH_IMM || wqe->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

void rxe_send_completed(const struct sim_qp *qp, const struct sim_send_wqe *wqe,
			struct sim_cqe *cqe)
{
	if (quirks_of(qp)->sends_tell_immediate && has_immediate(wqe))
		cqe->wc.wc_flags = IBV_WC_WITH_IMM;
	if (wqe->info.flags & SIM_WR_ATOMIC && quirks_of(qp)->atomics_tell_all_bytes)
		cqe->wc.byte_len = wqe->atomic.sge_bytes;
}
