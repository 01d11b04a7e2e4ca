/* SPDX-License-Identifier: MIT */
/*
 * The consequences of a request that the responder does not accept: a NAK, an error completion of the receive in
 * progress, an event, the end of the QP. The table sim_consequences has a row for each verdict.
 */
#include "sim/qp/private.h"

#include <verbena/packet.h>

/* The program learns of the refusal by the completion of the receive in progress, or else by an event. The peer learns
 * of it by the NAK. */
void sim_responder_refuse(struct sim_qp *qp, const struct sim_packet *packet,
			  enum sim_verdict verdict)
{
	struct sim_consequence consequence = sim_consequences[verdict];
	bool taken = qp->rx.taken;

	sim_failure_find_refusal(qp, packet, verdict);
	if (qp->hooks)
		qp->hooks->judged(qp, verdict, &consequence);
	/* An ACK counts the message as done. */
	if (consequence.syndrome == (SIM_AETH_ACK | SIM_ACK_CREDIT_NONE))
		sim_responder_count_message(qp);
	if (taken)
		sim_receive_complete(qp, packet, consequence.recv_status, IBV_WC_RECV, 0, 0);
	sim_responder_abandon(qp);
	/* The completion did not fit its CQ and has ended the QP: see acknowledge(). */
	if (qp->state == IBV_QPS_ERR)
		return;
	if (qp->reliable && consequence.syndrome)
		sim_responder_nak(qp, consequence.syndrome);
	sim_qp_fail(qp, SIM_BY_RECEIVE);
	if (!taken)
		sim_qp_event(qp, consequence.event);
}

/* Returns the drop counter of a UC packet with this verdict. */
static enum sim_discard discard_of(enum sim_verdict verdict)
{
	switch (verdict) {
	case SIM_DROP:
		return SIM_DISCARD_CUT_MESSAGE;
	case SIM_NO_RECEIVE:
		return SIM_DISCARD_NO_RECEIVE;
	case SIM_ACCESS_DENIED:
		return SIM_DISCARD_ACCESS;
	default:
		return SIM_DISCARD_BAD_REQUEST;
	}
}

static void note_dropped(struct sim_qp *qp, const struct sim_packet *packet,
			 enum sim_verdict verdict)
{
	const struct sim_port *port = qp->path.source;
	const enum sim_discard cause = discard_of(verdict);
	const struct vb_why why =
		cause == SIM_DISCARD_CUT_MESSAGE || cause == SIM_DISCARD_NO_RECEIVE
			? sim_loss_why(qp, port, packet, &qp->path.route, cause)
			: sim_refusal_why(qp, packet, verdict);
	struct vb_packet shown;

	sim_packet_show(packet, &qp->path.route, &shown);
	sim_note_drop(qp->device, port, qp, &shown, &why);
}

/* UC drops the message of a packet that it does not accept. The QP ends only if its own receive WR is at
 * fault. */
static void refuse_uc(struct sim_qp *qp, const struct sim_packet *packet, enum sim_verdict verdict)
{
	if (sim_consequences[verdict].fatal_on_uc) {
		sim_responder_refuse(qp, packet, verdict);
		return;
	}
	if (qp->hooks)
		sim_failure_find_refusal(qp, packet, verdict);
	if (!qp->hooks || !qp->hooks->uc_refused(qp, packet, verdict)) {
		sim_discard(&qp->device->counters, discard_of(verdict));
		if (sim_watched(qp->engine))
			note_dropped(qp, packet, verdict);
	}
	sim_responder_drop_rest(qp);
}

void sim_responder_rnr_nak(struct sim_qp *qp)
{
	qp->device->counters.rnr_naks_sent++;
	sim_responder_nak(qp, SIM_AETH_RNR_NAK | (qp->min_rnr_timer & SIM_AETH_VALUE));
}

static void refuse_rc(struct sim_qp *qp, const struct sim_packet *packet, enum sim_verdict verdict)
{
	struct sim_counters *counters = &qp->device->counters;

	switch (verdict) {
	case SIM_OUT_OF_SEQUENCE:
		counters->out_of_sequence_requests++;
		if (qp->resp.nak_outstanding)
			break;
		counters->sequence_naks_sent++;
		/* Send the waiting NAK first: it is for an earlier gap. */
		if (qp->resp.nak_pending)
			sim_responder_run(qp);
		sim_responder_nak(qp, sim_consequences[verdict].syndrome);
		break;
	case SIM_NO_RECEIVE:
		sim_responder_rnr_nak(qp);
		if (qp->hooks)
			qp->hooks->rnr_nak(qp);
		break;
	default:
		sim_responder_refuse(qp, packet, verdict);
	}
}

void sim_responder_not_accepted(struct sim_qp *qp, const struct sim_packet *packet,
				enum sim_verdict verdict)
{
	if (qp->reliable)
		refuse_rc(qp, packet, verdict);
	else
		refuse_uc(qp, packet, verdict);
}
