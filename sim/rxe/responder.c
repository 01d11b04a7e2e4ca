/* SPDX-License-Identifier: MIT */
/* Requests, receives and datagrams, as SoftRoCE has them. */
#include "sim/rxe/private.h"
#include "sim/wire/psn.h"

#include <string.h>

/* In the 40 bytes of GRH, whose last 20 are the IPv4 header. */
#define IPV4_CHECKSUM_AT 30

struct sim_consequence sim_rxe_consequence(enum sim_verdict verdict,
					   const struct sim_quirks *quirks)
{
	struct sim_consequence row = sim_consequences[verdict];

	if (verdict == SIM_TOO_LONG && quirks->short_receive_is_operation_error) {
		row.syndrome = SIM_NAK_REMOTE_OPERATION;
		row.recv_status = IBV_WC_LOC_QP_OP_ERR;
	}
	if (verdict == SIM_BAD_RECEIVE && quirks->bad_receive_is_operation_error)
		row.recv_status = IBV_WC_LOC_QP_OP_ERR;
	if (verdict == SIM_ACCESS_DENIED && quirks->imm_write_receive_is_remote_error)
		row.recv_status = IBV_WC_REM_ACCESS_ERR;
	if (verdict == SIM_BAD_INVALIDATION && quirks->refused_invalidations_acknowledged) {
		row.syndrome = SIM_AETH_ACK | SIM_ACK_CREDIT_NONE;
		row.recv_status = IBV_WC_REM_INV_REQ_ERR;
	}
	return row;
}

void rxe_judged(const struct sim_qp *qp, enum sim_verdict verdict,
		struct sim_consequence *consequence)
{
	*consequence = sim_rxe_consequence(verdict, quirks_of(qp));
	if (verdict == SIM_TOO_LONG && qp->type == IBV_QPT_UD)
		consequence->recv_status = IBV_WC_LOC_QP_OP_ERR;
}

bool rxe_uc_refused(struct sim_qp *qp, const struct sim_packet *packet, enum sim_verdict verdict)
{
	const bool denied = verdict == SIM_ACCESS_DENIED;

	/* Linux drivers/infiniband/sw/rxe/rxe_resp.c, RESPST_ERR_RKEY_VIOLATION: the SRQ's receive
	 * ends in error. */
	if (qp->srq && qp->rx.taken && (denied || verdict == SIM_INVALID_REQUEST)) {
		sim_receive_complete(qp, packet,
				     denied ? IBV_WC_REM_ACCESS_ERR : IBV_WC_REM_INV_REQ_ERR,
				     IBV_WC_RECV, 0, 0);
		return true;
	}
	/* Linux drivers/infiniband/sw/rxe/rxe_resp.c, check_op_seq: it waits for that message's end. */
	if (verdict == SIM_NO_RECEIVE && qp->resp.in_message == SIM_OP_WRITE)
		qp->rxe->jammed = quirks_of(qp)->cut_writes_jam_uc;
	return false;
}

bool rxe_uc_drops(const struct sim_qp *qp)
{
	return qp->rxe->jammed;
}

void rxe_rnr_nak(struct sim_qp *qp)
{
	if (quirks_of(qp)->rnr_naks_stop_nothing)
		sim_responder_nak_again(qp);
}

/* SoftRoCE answers each packet before the next one is sent. The order matters if the ACK names a
 * PSN that has not come, from an old connection: what the requester has sent by then decides. */
bool rxe_acks_at_once(const struct sim_qp *qp)
{
	const struct sim_responder *resp = &qp->resp;

	return resp->ack == SIM_ACK_DUPLICATE && sim_psn_diff(resp->ack_psn, resp->psn) >= 0;
}

/* Duplicates are acknowledged up to and including the last atomic, and then not with a PSN of an
 * old connection. */
void rxe_atomic_answered(struct sim_qp *qp, uint32_t psn)
{
	const struct sim_responder *resp = &qp->resp;
	uint32_t before = sim_psn_add(qp->rq_psn, SIM_PSN_MASK);
	bool is_old =
		sim_psn_distance(resp->ack_psn, before) >= sim_psn_distance(resp->psn, before);

	if (!quirks_of(qp)->acks_of_old_connections || resp->ack)
		return;
	if (is_old || sim_psn_diff(psn, resp->ack_psn) > 0)
		sim_responder_set_ack_psn(qp, psn);
}

void rxe_recv_completed(const struct sim_qp *qp, const struct sim_packet *packet,
			struct sim_cqe *cqe)
{
	const struct sim_quirks *quirks = quirks_of(qp);
	struct ibv_wc *wc = &cqe->wc;

	if (!packet) {
		cqe->solicited =
			wc->status == IBV_WC_WR_FLUSH_ERR && quirks->flushed_receives_are_solicited;
		return;
	}
	if (wc->wc_flags & IBV_WC_WITH_INV && quirks->invalidation_told_as_checksum)
		wc->wc_flags ^= IBV_WC_WITH_INV | IBV_WC_IP_CSUM_OK;
	if (wc->status == IBV_WC_SUCCESS && qp->type != IBV_QPT_UD &&
	    quirks->grh_flag_on_connections)
		wc->wc_flags |= IBV_WC_GRH;
}

void rxe_grh(const struct sim_qp *qp, const struct sim_route *route, uint8_t grh[40])
{
	if (quirks_of(qp)->own_datagrams_lack_checksum && sim_gid_is_ipv4(route->dest_gid) &&
	    memcmp(route->source_mac, route->dest_mac, sizeof(route->dest_mac)) == 0)
		memset(grh + IPV4_CHECKSUM_AT, 0, 2);
}

/* Linux 6.12 drivers/infiniband/sw/rxe/rxe_recv.c, check_type_state, lets a request pass to a QP that
 * is in ERR. (It raises QP_LAST_WQE_REACHED for each again; the simulator does not.) */
void rxe_refused(struct sim_qp *qp, const struct sim_packet *packet, const struct sim_route *route)
{
	if (qp->state == IBV_QPS_ERR && quirks_of(qp)->errors_repeat &&
	    sim_opcodes[packet->opcode].flags & SIM_OP_REQUEST &&
	    (packet->opcode & SIM_TRANSPORT_MASK) == qp->transport &&
	    (qp->type == IBV_QPT_UD ? packet->qkey == qp->qkey : sim_qp_is_from_peer(qp, route)))
		sim_qp_fail(qp, SIM_BY_RECEIVE);
}
