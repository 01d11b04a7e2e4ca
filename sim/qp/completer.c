/* SPDX-License-Identifier: MIT */
/*
 * The completer: what answers do to the sends that wait for them, and what their lack does.
 */
#include "sim/qp/qp.h"
#include "sim/qp/verdict.h"
#include "sim/wire/psn.h"
#include "sim/wire/timing.h"

static bool unanswered(const struct sim_send_wqe *wqe)
{
	return (wqe->info_flags & SIM_WR_RESPONSE) && wqe->answered < wqe->packets;
}

/* Whether the time does not run, since a send waits for a receive, or (a quirk) to be repeated. */
static bool time_stands(const struct sim_qp *qp)
{
	if (qp->req.waits_rnr)
		return !qp->device->quirks.rnr_waits_time_out;
	return qp->comp.repeating && qp->req.next == qp->sq.tail &&
	       sim_requester_jams(qp, sim_qp_send_wqe(qp, qp->sq.tail));
}

void sim_completer_rewatch(struct sim_qp *qp, bool progress)
{
	struct sim_completer *comp = &qp->comp;

	if (qp->req.sent_psn == comp->psn || qp->timeout == 0 || time_stands(qp))
		sim_timer_disarm(&comp->ack_timer);
	else if (progress || comp->ack_timer.deadline_ns == SIM_NEVER)
		sim_timer_arm(&qp->engine->clock, &comp->ack_timer,
			      qp->engine->clock.now_ns + sim_ack_timeout_ns(qp->timeout));
}

/* The oldest send fails for good. */
static void give_up(struct sim_qp *qp, enum ibv_wc_status status)
{
	if (qp->sq.tail != qp->sq.head)
		sim_requester_give_up(qp, status);
}

/* Goes back to what is not acknowledged; where nothing stops for a send that waits for a receive (a
 * quirk), when that has waited. */
static void rewind_now(struct sim_qp *qp)
{
	if (!qp->req.waits_rnr || !qp->device->quirks.rnr_naks_stop_nothing)
		sim_requester_rewind(qp, qp->comp.psn);
}

bool sim_completer_jam(struct sim_qp *qp)
{
	if (!qp->req.stopped || !qp->device->quirks.local_errors_end_repeats)
		return false;
	qp->req.sent_psn = qp->comp.psn;
	sim_timer_disarm(&qp->comp.ack_timer);
	return true;
}

/* Counts the attempt and goes back to the oldest PSN that is not acknowledged. */
static void repeat(struct sim_qp *qp, bool timed_out)
{
	struct sim_completer *comp = &qp->comp;

	if (qp->state == IBV_QPS_ERR)
		return;
	/* Several signs of one loss cost one retry: what is under way must first have its time. */
	if (comp->repeating && !timed_out)
		return;
	if (comp->retries_left == 0) {
		qp->device->counters.retries_exceeded++;
		give_up(qp, IBV_WC_RETRY_EXC_ERR);
		return;
	}
	if (sim_completer_jam(qp))
		return;
	qp->device->counters.retries++;
	/* A larger count comes down to it, too. */
	if (comp->retries_left != 7 || !qp->device->quirks.retry_7_is_endless)
		comp->retries_left--;
	comp->repeating = true;
	rewind_now(qp);
	sim_completer_watch(qp, true);
}

static void progress(struct sim_qp *qp)
{
	qp->comp.repeating = false;
	qp->comp.retries_left = qp->retry_cnt;
	qp->comp.rnr_retries_left = qp->rnr_retry;
}

/* The oldest send has all its answers. */
static void finish(struct sim_qp *qp, struct sim_send_wqe *wqe)
{
	qp->comp.psn = sim_psn_add(wqe->first_psn, wqe->packets);
	sim_qp_complete_send(qp, IBV_WC_SUCCESS);
}

/* Local operations that waited for the sends before them. */
static void finish_locals(struct sim_qp *qp)
{
	while (qp->sq.tail != qp->sq.head) {
		const struct sim_send_wqe *wqe = sim_qp_send_wqe(qp, qp->sq.tail);

		if (!(wqe->info_flags & SIM_WR_LOCAL) || !wqe->done)
			return;
		sim_qp_complete_send(qp, IBV_WC_SUCCESS);
	}
}

/* What the requester would send again and the peer has meanwhile, it need not. */
static void skip(struct sim_qp *qp)
{
	struct sim_requester *req = &qp->req;
	struct sim_send_wqe *wqe;

	if (req->next != qp->sq.tail || req->next == qp->sq.head)
		return;
	wqe = sim_qp_send_wqe(qp, req->next);
	if (wqe->started && sim_psn_distance(qp->comp.psn, wqe->first_psn) > req->offset)
		req->offset = sim_psn_distance(qp->comp.psn, wqe->first_psn);
}

/*
 * Everything before a PSN is acknowledged. False where a READ or atomic among it has not had its
 * response: that response was lost.
 */
static bool acknowledge(struct sim_qp *qp, uint32_t before)
{
	struct sim_completer *comp = &qp->comp;
	uint32_t start = comp->psn;

	while (comp->psn != before) {
		struct sim_send_wqe *wqe = sim_qp_send_wqe(qp, qp->sq.tail);
		uint32_t end = sim_psn_add(wqe->first_psn, wqe->packets);

		if (unanswered(wqe))
			break;
		if (sim_psn_distance(end, comp->psn) > sim_psn_distance(before, comp->psn)) {
			comp->psn = before;
			break;
		}
		finish(qp, wqe);
	}
	if (comp->psn != start) {
		progress(qp);
		finish_locals(qp);
		skip(qp);
	}
	return comp->psn == before;
}

static void receive_rnr_nak(struct sim_qp *qp, const struct sim_packet *packet)
{
	struct sim_completer *comp = &qp->comp;

	qp->device->counters.rnr_naks_received++;
	if (qp->req.waits_rnr)
		return;
	if (comp->rnr_retries_left != 7) {
		if (comp->rnr_retries_left == 0) {
			qp->device->counters.rnr_retries_exceeded++;
			give_up(qp, IBV_WC_RNR_RETRY_EXC_ERR);
			return;
		}
		comp->rnr_retries_left--;
	}
	if (sim_completer_jam(qp))
		return;
	qp->req.waits_rnr = true;
	if (time_stands(qp))
		sim_timer_disarm(&comp->ack_timer);
	sim_timer_arm(&qp->engine->clock, &qp->req.rnr_timer,
		      qp->engine->clock.now_ns +
			      sim_rnr_timer_ns(packet->syndrome & SIM_AETH_VALUE));
	rewind_now(qp);
}

/* Whether a NAK that says what is missing acknowledged the first part of a message, too: what Linux
 * drivers/infiniband/sw/rxe/rxe_comp.c, check_ack, counts as rcvd_seq_err. */
static bool tells_progress(const struct sim_qp *qp, uint32_t psn, uint32_t before)
{
	return psn != before && psn != sim_qp_send_wqe(qp, qp->sq.tail)->first_psn;
}

/* before: what was acknowledged when it came. */
static void receive_nak(struct sim_qp *qp, const struct sim_packet *packet, uint32_t before)
{
	enum ibv_wc_status status;

	if (packet->syndrome == SIM_NAK_PSN_SEQUENCE) {
		qp->device->counters.sequence_naks_received++;
		if (tells_progress(qp, packet->psn, before))
			qp->device->counters.advancing_naks_received++;
		repeat(qp, false);
		return;
	}
	status = sim_nak_status(packet->syndrome);
	if (status != IBV_WC_SUCCESS)
		give_up(qp, status);
}

/* Whether a NAK is of what a stray ACK acknowledged: Linux drivers/infiniband/sw/rxe/rxe_comp.c,
 * check_psn, drops it. */
static bool is_behind(const struct sim_qp *qp, const struct sim_packet *packet)
{
	const struct sim_completer *comp = &qp->comp;

	return comp->ahead && comp->ahead_send == qp->sq.tail &&
	       sim_psn_diff(packet->psn, comp->ahead_psn) < 0;
}

/* An AETH: an ACK covers its PSN, a NAK what stands before it. */
static void receive_ack(struct sim_qp *qp, const struct sim_packet *packet, uint32_t from)
{
	uint8_t type = packet->syndrome & SIM_AETH_TYPE;
	uint32_t before = type == SIM_AETH_ACK ? sim_psn_add(packet->psn, 1) : packet->psn;

	if (type != SIM_AETH_ACK && is_behind(qp, packet))
		return;
	if (!acknowledge(qp, before)) {
		repeat(qp, false);
		return;
	}
	/* A completion may have killed the CQ, and with it the QP. */
	if (qp->state == IBV_QPS_ERR)
		return;
	if (type == SIM_AETH_RNR_NAK)
		receive_rnr_nak(qp, packet);
	else if (type == SIM_AETH_NAK)
		receive_nak(qp, packet, from);
}

/* Where bytes of an answer go; false where they may not. */
static bool store(struct sim_qp *qp, const struct sim_send_wqe *wqe, uint32_t offset,
		  const struct sim_span *from, unsigned int from_count, uint32_t bytes)
{
	struct sim_span to[SIM_SPANS_MAX];
	int count = sim_gather(&qp->sq_reach, wqe->sge, wqe->num_sge, offset, bytes,
			       IBV_ACCESS_LOCAL_WRITE, to);

	return count >= 0 && (bytes == 0 || sim_copy_spans(qp->device, from, from_count, to,
							   (unsigned int)count) == 0);
}

static void answered(struct sim_qp *qp, struct sim_send_wqe *wqe)
{
	wqe->answered++;
	qp->comp.psn = sim_psn_add(qp->comp.psn, 1);
	progress(qp);
	if (wqe->answered == wqe->packets) {
		finish(qp, wqe);
		finish_locals(qp);
	} else {
		skip(qp);
	}
}

/* What a response of this size holds of a READ; false where it may not have that size. */
static bool read_fits(const struct sim_qp *qp, const struct sim_send_wqe *wqe, uint32_t bytes,
		      bool *last, uint32_t *done)
{
	if (qp->device->quirks.long_read_responses_taken) {
		*done = (uint32_t)wqe->read_bytes;
		*last = bytes == wqe->length - *done;
		return *last || (bytes >= qp->mtu_bytes && bytes < wqe->length - *done);
	}
	*done = wqe->answered * qp->mtu_bytes;
	*last = wqe->answered + 1 == wqe->packets;
	return bytes == (*last ? wqe->length - *done : qp->mtu_bytes);
}

static void receive_read_response(struct sim_qp *qp, struct sim_send_wqe *wqe,
				  const struct sim_packet *packet)
{
	bool ends = sim_opcodes[packet->opcode].flags & SIM_OP_END;
	uint32_t bytes = packet->payload_bytes, done;
	bool last;

	if (wqe->opcode != IBV_WR_RDMA_READ || !read_fits(qp, wqe, bytes, &last, &done) ||
	    ends != last) {
		give_up(qp, IBV_WC_BAD_RESP_ERR);
		return;
	}
	if (!store(qp, wqe, done, packet->spans, packet->span_count, bytes)) {
		give_up(qp, IBV_WC_LOC_PROT_ERR);
		return;
	}
	wqe->read_bytes += bytes;
	/* One response may stand for more PSNs than one (a quirk). */
	if (last)
		wqe->answered = wqe->packets - 1;
	answered(qp, wqe);
}

/* An ATOMIC WRITE is answered by a READ response of nothing. */
static void receive_write_response(struct sim_qp *qp, struct sim_send_wqe *wqe,
				   const struct sim_packet *packet)
{
	if (packet->payload_bytes || !(sim_opcodes[packet->opcode].flags & SIM_OP_END))
		give_up(qp, IBV_WC_BAD_RESP_ERR);
	else
		answered(qp, wqe);
}

static void receive_atomic_ack(struct sim_qp *qp, struct sim_send_wqe *wqe,
			       const struct sim_packet *packet)
{
	const struct sim_span from = {&packet->original, sizeof(packet->original)};

	if (!(wqe->info_flags & SIM_WR_ATOMIC))
		give_up(qp, IBV_WC_BAD_RESP_ERR);
	else if (!store(qp, wqe, 0, &from, 1, sizeof(packet->original)))
		give_up(qp, IBV_WC_LOC_PROT_ERR);
	else
		answered(qp, wqe);
}

/* A response covers what stands before it, and must be the next of the oldest send. */
static void receive_response(struct sim_qp *qp, const struct sim_packet *packet, uint32_t flags)
{
	struct sim_send_wqe *wqe;

	if (!acknowledge(qp, packet->psn)) {
		repeat(qp, false);
		return;
	}
	if (qp->sq.tail == qp->sq.head || qp->state == IBV_QPS_ERR)
		return;
	wqe = sim_qp_send_wqe(qp, qp->sq.tail);
	if (!unanswered(wqe))
		give_up(qp, IBV_WC_BAD_RESP_ERR);
	else if (flags & SIM_OP_ATOMIC_ACK)
		receive_atomic_ack(qp, wqe, packet);
	else if (wqe->opcode == IBV_WR_ATOMIC_WRITE)
		receive_write_response(qp, wqe, packet);
	else
		receive_read_response(qp, wqe, packet);
}

/* The last PSN that had been sent when the peer acknowledged: SoftRoCE answers each packet before the
 * next is sent. */
static uint32_t last_sent(const struct sim_qp *qp, const struct sim_packet *ack)
{
	if (ack->flags & SIM_PACKET_REPEATED &&
	    sim_psn_distance(ack->repeated_psn, qp->comp.psn) <
		    sim_psn_distance(qp->req.sent_psn, qp->comp.psn))
		return ack->repeated_psn;
	return sim_psn_add(qp->req.sent_psn, SIM_PSN_MASK);
}

/* Whether an ACK is of what had not been sent by then, and of more than the oldest message (a quirk). */
static bool is_early(const struct sim_qp *qp, const struct sim_packet *ack)
{
	const struct sim_send_wqe *oldest = sim_qp_send_wqe(qp, qp->sq.tail);

	return qp->device->quirks.acks_of_unsent_complete &&
	       sim_psn_diff(ack->psn, last_sent(qp, ack)) > 0 &&
	       sim_psn_distance(ack->psn, oldest->first_psn) >= oldest->packets;
}

/* An ACK of what was never sent: of a QP that was connected before, to what it takes for duplicates.
 * Nothing, or (a quirk) an ACK of all that was sent, once the oldest message has been: Linux
 * drivers/infiniband/sw/rxe/rxe_comp.c, check_psn. */
static void receive_stray(struct sim_qp *qp, const struct sim_packet *packet)
{
	struct sim_packet last = *packet;
	const struct sim_send_wqe *oldest;

	if (!qp->device->quirks.acks_of_unsent_complete || qp->req.sent_psn == qp->comp.psn ||
	    !(sim_opcodes[packet->opcode].flags & SIM_OP_ACK) ||
	    (packet->syndrome & SIM_AETH_TYPE) != SIM_AETH_ACK)
		return;
	last.psn = last_sent(qp, packet);
	if (sim_psn_diff(packet->psn, last.psn) <= 0)
		return;
	oldest = sim_qp_send_wqe(qp, qp->sq.tail);
	if (sim_psn_distance(last.psn, oldest->first_psn) + 1 < oldest->packets)
		return;
	qp->comp.ahead = true;
	qp->comp.ahead_psn = sim_psn_add(packet->psn, 1);
	qp->comp.ahead_send = qp->sq.tail;
	sim_completer_receive(qp, &last);
}

void sim_completer_receive(struct sim_qp *qp, const struct sim_packet *packet)
{
	struct sim_completer *comp = &qp->comp;
	uint32_t flags = sim_opcodes[packet->opcode].flags;
	uint32_t before = comp->psn;

	/* Neither an answer to anything sent, nor one that is still waited for. */
	if (sim_psn_distance(packet->psn, comp->psn) >=
		    sim_psn_distance(qp->req.sent_psn, comp->psn) ||
	    (packet->flags & SIM_PACKET_REPEATED && is_early(qp, packet))) {
		receive_stray(qp, packet);
		return;
	}
	if (flags & SIM_OP_ACK)
		receive_ack(qp, packet, before);
	else if (flags & (SIM_OP_READ_RESPONSE | SIM_OP_ATOMIC_ACK))
		receive_response(qp, packet, flags);
	if (qp->state == IBV_QPS_ERR)
		return;
	if (comp->psn != before && qp->req.waits_rnr && comp->psn == qp->req.sent_psn)
		qp->req.waits_rnr = false;
	if (comp->psn != before)
		sim_completer_rewatch(qp, true);
	/* A WQE in error waited for those before it; others may have waited for credit. */
	if (qp->req.stopped && qp->sq.tail == qp->req.next) {
		qp->req.stopped = false;
		give_up(qp, sim_qp_send_wqe(qp, qp->sq.tail)->status);
	} else if (qp->req.next != qp->sq.head || qp->sq_draining) {
		sim_qp_wake_requester(qp);
	}
}

void sim_completer_timeout(struct sim_timer *timer)
{
	struct sim_qp *qp =
		(struct sim_qp *)((char *)timer - offsetof(struct sim_qp, comp.ack_timer));

	qp->device->counters.ack_timeouts++;
	repeat(qp, true);
}
