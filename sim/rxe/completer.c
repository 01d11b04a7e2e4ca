/* SPDX-License-Identifier: MIT */
/* Answers and retries, as SoftRoCE has them. */
#include "sim/rxe/private.h"
#include "sim/wire/psn.h"

bool rxe_timer_stands(const struct sim_qp *qp, bool stands)
{
	if (stands)
		return !quirks_of(qp)->rnr_waits_time_out;
	return qp->comp.repeating && qp->req.next == qp->sq.tail &&
	       rxe_fence_jams(qp, sim_qp_send_wqe(qp, qp->sq.tail));
}

unsigned int rxe_retry(struct sim_qp *qp, bool for_rnr)
{
	const struct sim_quirks *quirks = quirks_of(qp);
	unsigned int instead = 0;

	if (rxe_jam(qp))
		return SIM_RETRY_NEVER;
	/* A larger count than 7 comes down to 7, too. */
	if (qp->comp.retries_left == 7 && quirks->retry_7_is_endless)
		instead |= SIM_RETRY_FREE;
	if ((for_rnr || qp->req.waits_rnr) && quirks->rnr_naks_stop_nothing)
		instead |= SIM_RETRY_LATER;
	return instead;
}

/* True if an ACK names a PSN of the oldest message that has not been sent. */
static bool is_within_message(const struct sim_send_wqe *oldest, uint32_t psn)
{
	return sim_psn_distance(psn, oldest->first_psn) < oldest->packets;
}

/*
 * An ACK of a PSN that was not sent, which a peer draws from an old connection, is taken as one of
 * all that was sent, once the oldest message has been: Linux drivers/infiniband/sw/rxe/rxe_comp.c,
 * check_psn.
 */
static bool take_stray(struct sim_qp *qp, struct sim_packet *packet)
{
	const uint32_t last = sim_psn_add(qp->req.sent_psn, SIM_PSN_MASK);
	const struct sim_send_wqe *oldest;
	bool complete;

	if (qp->req.sent_psn == qp->comp.psn || !(sim_opcodes[packet->opcode].flags & SIM_OP_ACK) ||
	    (packet->syndrome & SIM_AETH_TYPE) != SIM_AETH_ACK ||
	    sim_psn_diff(packet->psn, last) <= 0)
		return false;
	oldest = sim_qp_send_wqe(qp, qp->sq.tail);
	complete = sim_psn_distance(last, oldest->first_psn) + 1 >= oldest->packets;
	if (!complete && !is_within_message(oldest, packet->psn))
		return false;
	qp->rxe->ahead = true;
	qp->rxe->ahead_psn = sim_psn_add(packet->psn, 1);
	qp->rxe->ahead_send = qp->sq.tail;
	packet->psn = last;
	return true;
}

/* True for a NAK of what a stray ACK acknowledged, which check_psn drops. */
static bool is_behind(const struct sim_qp *qp, const struct sim_packet *packet)
{
	const struct sim_rxe *rxe = qp->rxe;

	return rxe->ahead && rxe->ahead_send == qp->sq.tail &&
	       sim_opcodes[packet->opcode].flags & SIM_OP_ACK &&
	       (packet->syndrome & SIM_AETH_TYPE) != SIM_AETH_ACK &&
	       sim_psn_diff(packet->psn, rxe->ahead_psn) < 0;
}

bool rxe_answer(struct sim_qp *qp, struct sim_packet *packet)
{
	const bool expected = sim_psn_distance(packet->psn, qp->comp.psn) <
			      sim_psn_distance(qp->req.sent_psn, qp->comp.psn);

	if (!quirks_of(qp)->acks_of_unsent_complete)
		return true;
	if (!expected)
		return take_stray(qp, packet);
	return !is_behind(qp, packet);
}

bool rxe_takes_response(const struct sim_qp *qp, const struct sim_send_wqe *wqe, uint32_t bytes,
			bool *last)
{
	const uint32_t left = wqe->length - (uint32_t)wqe->read.read_bytes;

	*last = bytes == left;
	return quirks_of(qp)->long_read_responses_taken &&
	       (*last || (bytes >= qp->mtu_bytes && bytes < left));
}
