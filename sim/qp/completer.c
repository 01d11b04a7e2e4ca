/* SPDX-License-Identifier: MIT */
/*
 * The completer: what an answer does to the sends that wait for it, and what the lack of one does.
 *
 * An answer goes through the states of enum sim_completer_state; each is one function that returns
 * the next.
 */
#include "sim/qp/private.h"
#include "sim/wire/psn.h"

const char *const sim_completer_state_names[SIM_COMPLETER_STATES] = {
	[SIM_COMPLETER_CHECK_PSN] = "CHECK_PSN", [SIM_COMPLETER_ACKNOWLEDGE] = "ACKNOWLEDGE",
	[SIM_COMPLETER_CHECK_ACK] = "CHECK_ACK", [SIM_COMPLETER_READ] = "READ",
	[SIM_COMPLETER_ATOMIC] = "ATOMIC",	 [SIM_COMPLETER_WRITE] = "WRITE",
	[SIM_COMPLETER_RNR_NAK] = "RNR_NAK",	 [SIM_COMPLETER_SEQUENCE_NAK] = "SEQUENCE_NAK",
	[SIM_COMPLETER_RETRY] = "RETRY",	 [SIM_COMPLETER_FAIL] = "FAIL",
	[SIM_COMPLETER_UPDATE] = "UPDATE",	 [SIM_COMPLETER_DONE] = "DONE",
};

/* An answer on its way through the states. */
struct answer {
	struct sim_qp *qp;
	const struct sim_packet *packet;
	uint32_t flags;		   /* enum sim_opcode_flag */
	uint32_t from;		   /* the oldest unacknowledged PSN when the answer came */
	enum ibv_wc_status status; /* in SIM_COMPLETER_FAIL */
};

/* --- the ack timer and retries --- */

/* True while the ack timer must be stopped: a send waits for the peer's receive WR. */
static bool timer_stands(const struct sim_qp *qp)
{
	return qp->hooks ? qp->hooks->timer_stands(qp, qp->req.waits_rnr) : qp->req.waits_rnr;
}

void sim_completer_rewatch(struct sim_qp *qp, bool progress)
{
	struct sim_completer *comp = &qp->comp;

	if (qp->req.sent_psn == comp->psn || qp->timeout == 0 || timer_stands(qp))
		sim_timer_disarm(&comp->ack_timer);
	else if (progress || comp->ack_timer.deadline_ns == SIM_NEVER)
		sim_timer_arm(&qp->engine->clock, &comp->ack_timer, sim_wait_ack_deadline(qp));
}

void sim_completer_stop(struct sim_qp *qp)
{
	sim_timer_disarm(&qp->comp.ack_timer);
}

void sim_completer_restore_retries(struct sim_qp *qp)
{
	qp->comp.retries_left = sim_wait_retries(qp);
	qp->comp.rnr_retries_left = qp->rnr_retry;
}

static void progress(struct sim_qp *qp)
{
	qp->comp.repeating = false;
	qp->comp.timeouts = 0;
	sim_completer_restore_retries(qp);
}

/* The oldest send ends in error. */
static void give_up(struct sim_qp *qp, enum ibv_wc_status status)
{
	if (qp->sq.tail != qp->sq.head)
		sim_requester_give_up(qp, status);
}

/* Goes back to the oldest PSN that is not acknowledged. */
static void repeat(struct sim_qp *qp, const char *by)
{
	qp->device->counters.retries++;
	qp->comp.repeating = true;
	sim_requester_rewind(qp, qp->comp.psn, by);
	sim_completer_watch(qp, true);
}

/* Why the requester goes back. */
struct cause {
	const char *name;      /* for VB_EVENT_REWIND */
	enum vb_reason reason; /* if no retry is left */
};

static const struct cause by_timeout = {"timeout", VB_WHY_RETRY_TIMEOUT};
static const struct cause by_nak = {"sequence_nak", VB_WHY_RETRY_SEQUENCE};
static const struct cause by_lost_response = {"lost_response", VB_WHY_RETRY_RESPONSE};

/* Counts a retry and goes back, or ends the oldest send if no more retries are left than `kept`. */
static void retry(struct sim_qp *qp, unsigned int kept, const struct cause *by)
{
	struct sim_completer *comp = &qp->comp;
	unsigned int instead;

	if (comp->retries_left <= kept) {
		qp->device->counters.retries_exceeded++;
		sim_failure_find_retries(qp, by->reason);
		give_up(qp, IBV_WC_RETRY_EXC_ERR);
		return;
	}
	instead = qp->hooks ? qp->hooks->retry(qp, false) : 0;
	if (instead & SIM_RETRY_NEVER)
		return;
	if (!(instead & SIM_RETRY_FREE))
		comp->retries_left--;
	if (!(instead & SIM_RETRY_LATER)) {
		repeat(qp, by->name);
		return;
	}
	qp->device->counters.retries++;
	comp->repeating = true;
	sim_completer_watch(qp, true);
}

static void timeout(struct sim_timer *timer)
{
	struct sim_qp *qp =
		(struct sim_qp *)((char *)timer - offsetof(struct sim_qp, comp.ack_timer));
	enum sim_timeout what;

	qp->device->counters.ack_timeouts++;
	if (qp->state == IBV_QPS_ERR)
		return;
	if (sim_watched(qp->engine))
		sim_qp_note_timer(qp, "ack", "expired", 0, qp->comp.retries_left);
	/* The requests wait for a process that does not run: repeating them would make it later. */
	if (sim_room_lags(qp)) {
		sim_completer_watch(qp, true);
		return;
	}
	what = sim_wait_over(qp);
	if (qp->comp.timeouts < UINT8_MAX)
		qp->comp.timeouts++;
	if (what == SIM_TIMEOUT_WAITS)
		sim_completer_watch(qp, true);
	else if (what == SIM_TIMEOUT_REPEATS)
		repeat(qp, by_timeout.name);
	else
		retry(qp, what == SIM_TIMEOUT_KEEPS_ONE, &by_timeout);
}

void sim_completer_init(struct sim_qp *qp)
{
	sim_timer_init(&qp->comp.ack_timer, timeout);
}

void sim_completer_reset(struct sim_qp *qp, bool repeating)
{
	qp->comp = (struct sim_completer){.repeating = repeating, .ack_timer = qp->comp.ack_timer};
}

void sim_completer_set_psn(struct sim_qp *qp, uint32_t psn)
{
	qp->comp.psn = psn;
}

/* --- the sends that an answer ends --- */

static bool is_unanswered(const struct sim_send_wqe *wqe)
{
	return (wqe->info.flags & SIM_WR_RESPONSE) && wqe->answered < wqe->packets;
}

/* The oldest send has all its answers. */
static void finish(struct sim_qp *qp, const struct sim_send_wqe *wqe)
{
	qp->comp.psn = sim_psn_add(wqe->first_psn, wqe->packets);
	sim_send_complete(qp);
}

/* Ends the local operations that waited for the sends before them. */
static void finish_locals(struct sim_qp *qp)
{
	while (qp->sq.tail != qp->sq.head) {
		const struct sim_send_wqe *wqe = sim_qp_send_wqe(qp, qp->sq.tail);

		if (!(wqe->info.flags & SIM_WR_LOCAL) || !wqe->done)
			return;
		sim_send_complete(qp);
	}
}

/*
 * Acknowledges everything before a PSN. False if a READ or atomic among it has not had its
 * response: that response was lost.
 */
static bool acknowledge(struct sim_qp *qp, uint32_t before)
{
	struct sim_completer *comp = &qp->comp;
	uint32_t start = comp->psn;

	while (comp->psn != before) {
		const struct sim_send_wqe *wqe = sim_qp_send_wqe(qp, qp->sq.tail);
		uint32_t end = sim_psn_add(wqe->first_psn, wqe->packets);

		if (is_unanswered(wqe))
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
		sim_requester_skip(qp, comp->psn);
	}
	return comp->psn == before;
}

/* --- the states --- */

/* Takes only an answer to a packet that was sent and is not acknowledged. */
static inline enum sim_completer_state check_psn(const struct answer *answer)
{
	const struct sim_qp *qp = answer->qp;

	if (sim_psn_distance(answer->packet->psn, qp->comp.psn) >=
	    sim_psn_distance(qp->req.sent_psn, qp->comp.psn))
		return SIM_COMPLETER_DONE;
	return SIM_COMPLETER_ACKNOWLEDGE;
}

/* An ACK covers its PSN; a NAK and a response cover what stands before it. */
static inline enum sim_completer_state check_acknowledged(const struct answer *answer)
{
	const struct sim_packet *packet = answer->packet;
	const bool is_ack = answer->flags & SIM_OP_ACK;
	const bool covers = is_ack && (packet->syndrome & SIM_AETH_TYPE) == SIM_AETH_ACK;
	struct sim_qp *qp = answer->qp;
	const struct sim_send_wqe *wqe;

	if (!acknowledge(qp, covers ? sim_psn_add(packet->psn, 1) : packet->psn))
		return SIM_COMPLETER_RETRY;
	/* A completion may have killed the CQ, and with it the QP. */
	if (qp->state == IBV_QPS_ERR)
		return SIM_COMPLETER_DONE;
	if (is_ack)
		return covers ? SIM_COMPLETER_UPDATE : SIM_COMPLETER_CHECK_ACK;
	if (qp->sq.tail == qp->sq.head)
		return SIM_COMPLETER_UPDATE;
	wqe = sim_qp_send_wqe(qp, qp->sq.tail);
	if (is_unanswered(wqe) && answer->flags & SIM_OP_ATOMIC_ACK)
		return SIM_COMPLETER_ATOMIC;
	return wqe->opcode == IBV_WR_ATOMIC_WRITE ? SIM_COMPLETER_WRITE : SIM_COMPLETER_READ;
}

static enum sim_completer_state fail_with(struct answer *answer, enum ibv_wc_status status)
{
	answer->status = status;
	return SIM_COMPLETER_FAIL;
}

/* The answer does not fit the oldest send. */
static enum sim_completer_state misfits(struct answer *answer)
{
	sim_failure_find_response(answer->qp, answer->packet);
	return fail_with(answer, IBV_WC_BAD_RESP_ERR);
}

static enum sim_completer_state cannot_store(struct answer *answer, const struct sim_send_wqe *wqe)
{
	sim_failure_find_store(answer->qp, wqe, answer->packet);
	return fail_with(answer, IBV_WC_LOC_PROT_ERR);
}

static enum sim_completer_state check_ack(struct answer *answer)
{
	uint8_t syndrome = answer->packet->syndrome;
	enum ibv_wc_status status;

	if ((syndrome & SIM_AETH_TYPE) == SIM_AETH_RNR_NAK)
		return SIM_COMPLETER_RNR_NAK;
	if (syndrome == SIM_NAK_PSN_SEQUENCE)
		return SIM_COMPLETER_SEQUENCE_NAK;
	status = (syndrome & SIM_AETH_TYPE) == SIM_AETH_NAK ? sim_nak_status(syndrome)
							    : IBV_WC_SUCCESS;
	if (status == IBV_WC_SUCCESS)
		return SIM_COMPLETER_UPDATE;
	sim_failure_find_nak(answer->qp, answer->packet, status);
	return fail_with(answer, status);
}

/* Fills spans for [offset, offset + bytes) of an answer; -1 if their place may not be written. */
static int scatter(struct sim_qp *qp, const struct sim_send_wqe *wqe, uint32_t offset,
		   uint32_t bytes, struct sim_span *spans)
{
	return sim_gather(&qp->sq_reach, wqe->sge, wqe->num_sge, offset, bytes,
			  IBV_ACCESS_LOCAL_WRITE, spans);
}

/* Stores bytes of an answer; false if their place may not be written. */
static bool store(struct sim_qp *qp, const struct sim_send_wqe *wqe, uint32_t offset,
		  const struct sim_span *from, unsigned int from_count, uint32_t bytes)
{
	struct sim_span to[SIM_SPANS_MAX];
	int count = scatter(qp, wqe, offset, bytes, to);

	return count >= 0 &&
	       (bytes == 0 || sim_qp_copy(qp, from, from_count, to, (unsigned int)count) == 0);
}

/* Stores the payload of a train; false if its place may not be written. Counts no fault: the packets then come one by
 * one. */
static bool store_train(struct sim_qp *qp, const struct sim_send_wqe *wqe,
			const struct sim_packet *train)
{
	struct sim_span to[SIM_SPANS_MAX];
	int count = scatter(qp, wqe, (uint32_t)wqe->read.read_bytes, train->payload_bytes, to);

	return count >= 0 && sim_copy_spans(qp->engine, train->spans, train->span_count, to,
					    (unsigned int)count) == 0;
}

/* The oldest send has one more of its answers. */
static enum sim_completer_state answered(struct sim_qp *qp, struct sim_send_wqe *wqe)
{
	wqe->answered++;
	qp->comp.psn = sim_psn_add(qp->comp.psn, 1);
	progress(qp);
	if (wqe->answered == wqe->packets) {
		finish(qp, wqe);
		finish_locals(qp);
	} else {
		sim_requester_skip(qp, qp->comp.psn);
	}
	return SIM_COMPLETER_UPDATE;
}

/* True if a response has the size that the next one of a READ must have; *last if it ends. */
static bool size_fits(const struct sim_qp *qp, const struct sim_send_wqe *wqe, uint32_t bytes,
		      bool *last)
{
	if (qp->hooks && qp->hooks->takes_response(qp, wqe, bytes, last))
		return true;
	*last = wqe->answered + 1 == wqe->packets;
	return bytes == (*last ? wqe->length - (uint32_t)wqe->read.read_bytes : qp->mtu_bytes);
}

static enum sim_completer_state receive_read_response(struct answer *answer)
{
	const struct sim_packet *packet = answer->packet;
	struct sim_qp *qp = answer->qp;
	struct sim_send_wqe *wqe = sim_qp_send_wqe(qp, qp->sq.tail);
	const bool ends = answer->flags & SIM_OP_END;
	const uint32_t bytes = packet->payload_bytes;
	bool last;

	if (!is_unanswered(wqe) || wqe->opcode != IBV_WR_RDMA_READ ||
	    !size_fits(qp, wqe, bytes, &last) || ends != last)
		return misfits(answer);
	if (!store(qp, wqe, (uint32_t)wqe->read.read_bytes, packet->spans, packet->span_count,
		   bytes))
		return cannot_store(answer, wqe);
	wqe->read.read_bytes += bytes;
	if (last)
		wqe->answered = wqe->packets - 1;
	return answered(qp, wqe);
}

/* An ATOMIC WRITE is answered by a READ response of no bytes. */
static enum sim_completer_state receive_write_response(struct answer *answer)
{
	struct sim_qp *qp = answer->qp;
	struct sim_send_wqe *wqe = sim_qp_send_wqe(qp, qp->sq.tail);

	if (!is_unanswered(wqe) || answer->packet->payload_bytes || !(answer->flags & SIM_OP_END))
		return misfits(answer);
	return answered(qp, wqe);
}

static enum sim_completer_state receive_atomic_ack(struct answer *answer)
{
	const uint64_t *original = &answer->packet->original;
	const struct sim_span from = {original, sizeof(*original)};
	struct sim_qp *qp = answer->qp;
	struct sim_send_wqe *wqe = sim_qp_send_wqe(qp, qp->sq.tail);

	if (!(wqe->info.flags & SIM_WR_ATOMIC))
		return misfits(answer);
	if (!store(qp, wqe, 0, &from, 1, sizeof(*original)))
		return cannot_store(answer, wqe);
	return answered(qp, wqe);
}

static enum sim_completer_state receive_rnr_nak(struct answer *answer)
{
	struct sim_qp *qp = answer->qp;
	struct sim_completer *comp = &qp->comp;
	unsigned int instead;

	qp->device->counters.rnr_naks_received++;
	if (qp->req.waits_rnr)
		return SIM_COMPLETER_UPDATE;
	/* rnr_retry 7 is endless. */
	if (comp->rnr_retries_left == 0) {
		qp->device->counters.rnr_retries_exceeded++;
		sim_failure_find_rnr(qp);
		return fail_with(answer, IBV_WC_RNR_RETRY_EXC_ERR);
	}
	if (comp->rnr_retries_left != 7)
		comp->rnr_retries_left--;
	instead = qp->hooks ? qp->hooks->retry(qp, true) : 0;
	if (instead & SIM_RETRY_NEVER)
		return SIM_COMPLETER_UPDATE;
	sim_requester_wait_rnr(qp, answer->packet->syndrome & SIM_AETH_VALUE);
	if (timer_stands(qp))
		sim_timer_disarm(&comp->ack_timer);
	if (!(instead & SIM_RETRY_LATER))
		sim_requester_rewind(qp, comp->psn, "rnr_nak");
	return SIM_COMPLETER_UPDATE;
}

/* True if a sequence NAK acknowledged the first part of a message, too: what Linux
 * drivers/infiniband/sw/rxe/rxe_comp.c, check_ack, counts as rcvd_seq_err. */
static bool shows_progress(const struct answer *answer)
{
	const struct sim_qp *qp = answer->qp;

	return answer->packet->psn != answer->from &&
	       answer->packet->psn != sim_qp_send_wqe(qp, qp->sq.tail)->first_psn;
}

static enum sim_completer_state receive_sequence_nak(const struct answer *answer)
{
	struct sim_counters *counters = &answer->qp->device->counters;

	counters->sequence_naks_received++;
	if (shows_progress(answer))
		counters->advancing_naks_received++;
	return SIM_COMPLETER_RETRY;
}

static enum sim_completer_state retry_on_answer(const struct answer *answer)
{
	struct sim_qp *qp = answer->qp;
	/* If a response was lost, less is acknowledged than stands before the answer. */
	const bool by_loss = answer->packet->psn != qp->comp.psn;

	/* Several signs of one loss cost one retry: the packets under way must have their time. */
	if (qp->state != IBV_QPS_ERR && !qp->comp.repeating)
		retry(qp, 0, by_loss ? &by_lost_response : &by_nak);
	return SIM_COMPLETER_UPDATE;
}

/* Sets the timer, and lets the requester go on. */
static void update(const struct answer *answer)
{
	struct sim_qp *qp = answer->qp;
	const bool advanced = qp->comp.psn != answer->from;

	if (qp->state == IBV_QPS_ERR)
		return;
	if (advanced && qp->req.waits_rnr && qp->comp.psn == qp->req.sent_psn)
		sim_requester_end_rnr_wait(qp);
	if (advanced)
		sim_completer_rewatch(qp, true);
	/* A WQE in error has waited for those before it; others may have waited for credit. */
	if (qp->req.stopped && qp->sq.tail == qp->req.next) {
		sim_requester_resume(qp);
		sim_failure_recall(qp);
		give_up(qp, sim_qp_send_wqe(qp, qp->sq.tail)->status);
	} else if ((qp->req.next != qp->sq.head && !sim_room_is_awaited(qp, SIM_TURN_REQUESTER)) ||
		   qp->sq_draining) {
		sim_qp_wake_requester(qp);
	}
}

static enum sim_completer_state fail(const struct answer *answer)
{
	give_up(answer->qp, answer->status);
	return SIM_COMPLETER_UPDATE;
}

/* Takes an answer from one state to the next until it is done. The states stand in the order in
 * which an answer comes to them. */
static inline void step(struct answer *answer, enum sim_completer_state state)
{
	if (state == SIM_COMPLETER_CHECK_PSN)
		state = check_psn(answer);
	if (state == SIM_COMPLETER_ACKNOWLEDGE)
		state = check_acknowledged(answer);
	if (state == SIM_COMPLETER_CHECK_ACK)
		state = check_ack(answer);
	if (state == SIM_COMPLETER_READ)
		state = receive_read_response(answer);
	if (state == SIM_COMPLETER_ATOMIC)
		state = receive_atomic_ack(answer);
	if (state == SIM_COMPLETER_WRITE)
		state = receive_write_response(answer);
	if (state == SIM_COMPLETER_RNR_NAK)
		state = receive_rnr_nak(answer);
	if (state == SIM_COMPLETER_SEQUENCE_NAK)
		state = receive_sequence_nak(answer);
	if (state == SIM_COMPLETER_RETRY)
		state = retry_on_answer(answer);
	if (state == SIM_COMPLETER_FAIL)
		state = fail(answer);
	if (state == SIM_COMPLETER_UPDATE)
		update(answer);
}

void sim_completer_receive(struct sim_qp *qp, const struct sim_packet *packet)
{
	struct answer answer = {.qp = qp, .packet = packet, .from = qp->comp.psn};
	struct sim_packet changed;

	if (qp->hooks) {
		changed = *packet;
		if (!qp->hooks->answer(qp, &changed))
			return;
		answer.packet = &changed;
	}
	answer.flags = sim_opcodes[answer.packet->opcode].flags;
	step(&answer, SIM_COMPLETER_CHECK_PSN);
}

/* The packets of a train are the next ones of the oldest READ, but not its last one. The oldest WQE was sent if
 * sent_psn is beyond the train. */
bool sim_completer_take_train(struct sim_qp *qp, const struct sim_packet *train, unsigned int count)
{
	const struct answer answer = {.qp = qp, .packet = train, .from = qp->comp.psn};
	const uint32_t bytes = train->payload_bytes;
	struct sim_send_wqe *wqe = sim_qp_send_wqe(qp, qp->sq.tail);

	if (qp->hooks || train->psn != qp->comp.psn ||
	    sim_psn_distance(qp->req.sent_psn, qp->comp.psn) < count ||
	    wqe->opcode != IBV_WR_RDMA_READ || count >= wqe->packets - wqe->answered ||
	    bytes != count * qp->mtu_bytes || !store_train(qp, wqe, train))
		return false;
	wqe->read.read_bytes += bytes;
	wqe->answered += count;
	qp->comp.psn = sim_psn_add(qp->comp.psn, count);
	progress(qp);
	sim_requester_skip(qp, qp->comp.psn);
	update(&answer);
	return true;
}
