/* SPDX-License-Identifier: MIT */
/*
 * The responder: takes requests in PSN order, checks them, does them, and answers.
 *
 * A request goes through the states of enum sim_responder_state; each is one function that returns
 * the next. A check that fails gives a verdict; consequence.c carries out its consequences.
 */
#include "sim/qp/private.h"
#include "sim/wire/psn.h"

const char *const sim_responder_state_names[SIM_RESPONDER_STATES] = {
	[SIM_RESPONDER_CHECK_PSN] = "CHECK_PSN", [SIM_RESPONDER_CHECK_SEQUENCE] = "CHECK_SEQUENCE",
	[SIM_RESPONDER_CHECK_SRQ] = "CHECK_SRQ", [SIM_RESPONDER_CHECK_REQUEST] = "CHECK_REQUEST",
	[SIM_RESPONDER_EXECUTE] = "EXECUTE",	 [SIM_RESPONDER_INVALIDATE] = "INVALIDATE",
	[SIM_RESPONDER_COMPLETE] = "COMPLETE",	 [SIM_RESPONDER_ACKNOWLEDGE] = "ACKNOWLEDGE",
	[SIM_RESPONDER_REPEAT] = "REPEAT",	 [SIM_RESPONDER_REFUSE] = "REFUSE",
	[SIM_RESPONDER_DONE] = "DONE",
};

/* The way of most requests is one function without calls. */
#define INLINE __attribute__((always_inline)) static inline

/* A request on its way through the states. */
struct request {
	struct sim_qp *qp;
	const struct sim_packet *packet;
	uint32_t flags; /* enum sim_opcode_flag */
	enum sim_verdict verdict;
};

/* --- what others ask of the responder --- */

void sim_responder_init(struct sim_qp *qp)
{
	qp->resp = (struct sim_responder){.ack_psn = SIM_PSN_MASK};
}

void sim_responder_reset(struct sim_qp *qp)
{
	sim_responder_free_resources(qp);
	qp->resp = (struct sim_responder){.ack_psn = qp->resp.ack_psn};
	sim_relay_reset(qp);
}

void sim_responder_set_psn(struct sim_qp *qp, uint32_t psn)
{
	qp->resp.psn = psn;
	if (sim_rule_holds(qp, SIM_RULE_ACK_OF_CONNECTION))
		qp->resp.ack_psn = sim_psn_add(psn, SIM_PSN_MASK);
}

void sim_responder_set_ack_psn(struct sim_qp *qp, uint32_t psn)
{
	qp->resp.ack_psn = psn;
}

void sim_responder_nak_again(struct sim_qp *qp)
{
	qp->resp.nak_outstanding = false;
}

void sim_responder_establish(struct sim_qp *qp)
{
	if (qp->resp.established)
		return;
	qp->resp.established = true;
	if (qp->state == IBV_QPS_RTR)
		sim_qp_event(qp, IBV_EVENT_COMM_EST);
}

void sim_responder_revive(struct sim_qp *proxy)
{
	proxy->resp.established = true;
	if (proxy->state == IBV_QPS_RTR)
		return;
	proxy->resp.nak_pending = false;
	proxy->resp.ack = SIM_ACK_NONE;
	proxy->state = IBV_QPS_RTR;
}

bool sim_responder_resume(struct sim_qp *proxy, uint32_t psn, uint32_t msn, uint32_t flags)
{
	struct sim_responder *resp = &proxy->resp;

	sim_responder_revive(proxy);
	if (!(flags & SIM_OP_START))
		return resp->in_message && psn == resp->psn;
	resp->in_message = 0;
	resp->received = 0;
	sim_receive_untake(proxy);
	resp->psn = psn;
	resp->msn = msn;
	return true;
}

void sim_responder_refuse_read(struct sim_qp *proxy, const struct sim_packet *packet, uint32_t part,
			       uint32_t msn, enum sim_verdict verdict)
{
	proxy->resp.psn = sim_psn_add(packet->psn, part);
	proxy->resp.msn = msn;
	sim_responder_refuse(proxy, packet, verdict);
}

void sim_responder_go_back(struct sim_qp *qp, uint32_t psn, uint32_t msn, uint32_t message)
{
	struct sim_responder *resp = &qp->resp;

	resp->psn = psn;
	resp->ack_psn = sim_psn_add(psn, SIM_PSN_MASK);
	resp->ack = SIM_ACK_NONE;
	resp->msn = msn;
	resp->in_message = message;
}

void sim_responder_nak(struct sim_qp *qp, uint8_t syndrome)
{
	qp->resp.nak_pending = true;
	qp->resp.nak_outstanding = true;
	qp->resp.nak_syndrome = syndrome;
	qp->resp.nak_psn = qp->resp.psn;
	sim_qp_wake_responder(qp);
}

void sim_responder_owe_ack(struct sim_qp *qp)
{
	qp->resp.ack = SIM_ACK_IN_ORDER;
	sim_qp_wake_responder(qp);
}

void sim_responder_count_message(struct sim_qp *qp)
{
	qp->resp.msn = (qp->resp.msn + 1) & SIM_PSN_MASK;
}

void sim_responder_abandon(struct sim_qp *qp)
{
	qp->resp.in_message = 0;
	qp->resp.received = 0;
	sim_receive_untake(qp);
}

void sim_responder_drop_rest(struct sim_qp *qp)
{
	sim_responder_abandon(qp);
	qp->resp.dropping = true;
}

/* --- parts of the states --- */

/* A request of an old PSN is a duplicate; a gap draws one NAK until the expected PSN comes. */
INLINE enum sim_verdict check_psn_rc(struct sim_qp *qp, const struct sim_packet *packet)
{
	int32_t ahead = sim_psn_diff(packet->psn, qp->resp.psn);

	if (ahead < 0)
		return SIM_DUPLICATE;
	if (ahead > 0)
		return SIM_OUT_OF_SEQUENCE;
	qp->resp.nak_outstanding = false;
	return SIM_ACCEPT;
}

/* UC has no retransmission: a gap costs the message that it is in. */
static enum sim_verdict check_psn_uc(struct sim_qp *qp, const struct sim_packet *packet,
				     uint32_t flags)
{
	struct sim_responder *resp = &qp->resp;

	if (packet->psn != resp->psn)
		sim_responder_drop_rest(qp);
	resp->psn = sim_psn_add(packet->psn, 1);
	if (flags & SIM_OP_START)
		resp->dropping = qp->hooks && qp->hooks->uc_drops(qp);
	return resp->dropping ? SIM_DROP : SIM_ACCEPT;
}

static bool grants(const struct sim_qp *qp, unsigned int access)
{
	return qp->access & access;
}

/* A remote access of no bytes is not checked. */
static bool needs_no_memory(const struct sim_qp *qp, uint32_t bytes)
{
	return bytes == 0 && !qp->device->quirks.empty_accesses_checked;
}

INLINE enum sim_verdict check_send(struct sim_qp *qp, const struct sim_packet *packet,
				   uint32_t flags)
{
	uint64_t total = (uint64_t)qp->resp.received + packet->payload_bytes;

	if ((flags & SIM_OP_RECV) && !sim_receive_take(qp))
		return SIM_NO_RECEIVE;
	if (!sim_payload_fits(qp, packet->payload_bytes, flags))
		return SIM_INVALID_REQUEST;
	return total > qp->rx.wqe->length ? SIM_TOO_LONG : SIM_ACCEPT;
}

/* The first packet of an RDMA WRITE names the memory of the whole message. */
__attribute__((noinline)) static enum sim_verdict check_write(struct sim_qp *qp,
							      const struct sim_packet *packet,
							      uint32_t flags)
{
	uint32_t announced = flags & SIM_OP_RETH ? packet->dma_bytes : qp->resp.length;
	uint64_t total = (uint64_t)qp->resp.received + packet->payload_bytes;
	bool fits = total <= announced && (total == announced) == !!(flags & SIM_OP_END) &&
		    sim_payload_fits(qp, packet->payload_bytes, flags);

	if (!grants(qp, IBV_ACCESS_REMOTE_WRITE))
		return SIM_INVALID_REQUEST;
	if ((flags & SIM_OP_RECV) && !sim_receive_take(qp))
		return SIM_NO_RECEIVE;
	if (announced > SIM_MESSAGE_BYTES_MAX ||
	    (!fits && sim_rule_holds(qp, SIM_RULE_PACKET_SIZE)))
		return SIM_INVALID_REQUEST;
	if ((flags & SIM_OP_RETH) && !needs_no_memory(qp, announced) &&
	    !sim_responder_memory(qp, packet->rkey, packet->remote_addr,
				  qp->device->quirks.writes_checked_by_packet && announced
					  ? packet->payload_bytes
					  : announced,
				  IBV_ACCESS_REMOTE_WRITE))
		return SIM_ACCESS_DENIED;
	return fits ? SIM_ACCEPT : SIM_INVALID_REQUEST;
}

enum sim_verdict sim_responder_check_read(struct sim_qp *qp, const struct sim_packet *packet)
{
	if (!grants(qp, IBV_ACCESS_REMOTE_READ) ||
	    qp->resp.resources_new >= qp->resp.resource_size ||
	    packet->dma_bytes > SIM_MESSAGE_BYTES_MAX || packet->payload_bytes)
		return SIM_INVALID_REQUEST;
	if (needs_no_memory(qp, packet->dma_bytes))
		return SIM_ACCEPT;
	return sim_responder_memory(qp, packet->rkey, packet->remote_addr, packet->dma_bytes,
				    IBV_ACCESS_REMOTE_READ)
		       ? SIM_ACCEPT
		       : SIM_ACCESS_DENIED;
}

/* True if an atomic has the payload that it must have, and the device knows it. */
static bool atomic_fits(const struct sim_qp *qp, const struct sim_packet *packet, uint32_t flags)
{
	if (!(flags & SIM_OP_STORE))
		return packet->payload_bytes == 0;
	return qp->device->profile->atomic_write && packet->dma_bytes == SIM_ATOMIC_BYTES &&
	       packet->payload_bytes == SIM_ATOMIC_BYTES;
}

__attribute__((noinline)) static enum sim_verdict check_atomic(struct sim_qp *qp,
							       const struct sim_packet *packet,
							       uint32_t flags)
{
	const int access = sim_request_access(flags);

	if (!grants(qp, (unsigned int)access) || qp->resp.resources_new >= qp->resp.resource_size ||
	    !atomic_fits(qp, packet, flags) || packet->remote_addr % SIM_ATOMIC_BYTES)
		return SIM_INVALID_REQUEST;
	return sim_responder_memory(qp, packet->rkey, packet->remote_addr, SIM_ATOMIC_BYTES, access)
		       ? SIM_ACCEPT
		       : SIM_ACCESS_DENIED;
}

INLINE enum sim_verdict do_send(struct sim_qp *qp, const struct sim_packet *packet)
{
	struct sim_span to[SIM_SPANS_MAX];
	int count;

	if (packet->payload_bytes == 0)
		return SIM_ACCEPT;
	count = sim_receive_scatter(qp, qp->rx.wqe, qp->resp.received, packet->payload_bytes, to);
	if (count < 0 ||
	    sim_qp_copy(qp, packet->spans, packet->span_count, to, (unsigned int)count))
		return SIM_BAD_RECEIVE;
	return SIM_ACCEPT;
}

__attribute__((noinline)) static enum sim_verdict do_write(struct sim_qp *qp,
							   const struct sim_packet *packet,
							   uint32_t flags)
{
	struct sim_responder *resp = &qp->resp;
	struct sim_span to;

	if (flags & SIM_OP_RETH) {
		resp->remote_addr = packet->remote_addr;
		resp->rkey = packet->rkey;
		resp->length = packet->dma_bytes;
	}
	if (packet->payload_bytes == 0)
		return SIM_ACCEPT;
	to.base = sim_responder_memory(qp, resp->rkey, resp->remote_addr + resp->received,
				       packet->payload_bytes, IBV_ACCESS_REMOTE_WRITE);
	to.length_bytes = packet->payload_bytes;
	if (to.base && qp->late && sim_late_write(qp, packet, flags, &to))
		return SIM_ACCEPT;
	if (!to.base || sim_qp_copy(qp, packet->spans, packet->span_count, &to, 1))
		return SIM_ACCESS_DENIED;
	return SIM_ACCEPT;
}

__attribute__((noinline)) static enum sim_verdict do_atomic(struct sim_qp *qp,
							    const struct sim_packet *packet,
							    uint32_t flags)
{
	const struct sim_memory_ops *memory = &qp->engine->host.memory;
	void *target = sim_responder_memory(qp, packet->rkey, packet->remote_addr, SIM_ATOMIC_BYTES,
					    sim_request_access(flags));
	uint64_t original = 0;
	uint64_t value;
	const struct sim_span to = {&value, sizeof(value)};

	if (!target ||
	    (!(flags & SIM_OP_STORE) && memory->copy(&original, target, sizeof(original))))
		return SIM_ACCESS_DENIED;
	if (flags & SIM_OP_STORE) {
		if (sim_qp_copy(qp, packet->spans, packet->span_count, &to, 1))
			return SIM_ACCESS_DENIED;
	} else if (flags & SIM_OP_ADD)
		value = original + packet->swap_add;
	else
		value = original == packet->compare ? packet->swap_add : original;
	if (memory->copy(target, &value, sizeof(value)))
		return SIM_ACCESS_DENIED;
	sim_answer_push(qp, packet, 1)->original = original;
	return SIM_ACCEPT;
}

INLINE void finish_message(struct sim_qp *qp, const struct sim_packet *packet, uint32_t flags,
			   uint32_t received)
{
	struct sim_responder *resp = &qp->resp;
	bool write = flags & SIM_OP_WRITE;
	unsigned int wc_flags = 0;

	if (flags & SIM_OP_IMMDT)
		wc_flags = IBV_WC_WITH_IMM;
	else if (flags & SIM_OP_IETH)
		wc_flags = IBV_WC_WITH_INV;
	if (flags & SIM_OP_COMPLETES) {
		qp->device->counters.receives_completed++;
		sim_receive_finish(qp, packet, IBV_WC_SUCCESS,
				   write ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV,
				   write ? resp->length : received, wc_flags);
	}
	sim_responder_count_message(qp);
	sim_responder_abandon(qp);
}

/* --- the states --- */

static enum sim_responder_state refused_as(struct request *request, enum sim_verdict verdict)
{
	request->verdict = verdict;
	return SIM_RESPONDER_REFUSE;
}

INLINE enum sim_responder_state check_psn(struct request *request)
{
	struct sim_qp *qp = request->qp;
	enum sim_verdict verdict = qp->reliable ? check_psn_rc(qp, request->packet)
						: check_psn_uc(qp, request->packet, request->flags);

	if (verdict == SIM_ACCEPT)
		return SIM_RESPONDER_CHECK_SEQUENCE;
	return verdict == SIM_DUPLICATE ? SIM_RESPONDER_REPEAT : refused_as(request, verdict);
}

INLINE enum sim_responder_state check_sequence(struct request *request)
{
	struct sim_qp *qp = request->qp;

	if (!sim_in_sequence(&qp->resp, request->flags))
		return refused_as(request, SIM_INVALID_REQUEST);
	if (qp->rx.held)
		sim_receive_refind(qp);
	return qp->xrcd && !qp->rx.held ? SIM_RESPONDER_CHECK_SRQ : SIM_RESPONDER_CHECK_REQUEST;
}

/* The requests that were relayed are answered first; then a NAK asks for this one. */
static enum sim_responder_state later(struct sim_qp *qp)
{
	qp->relay.gap = qp->relay.ahead;
	qp->resp.nak_outstanding = qp->relay.gap;
	return SIM_RESPONDER_DONE;
}

/* The SRQ may be one of another process. */
static enum sim_responder_state relay(struct request *request)
{
	const uint32_t packets =
		request->flags & SIM_OP_READ
			? sim_response_packets(request->qp, request->packet->dma_bytes)
			: 1;
	struct sim_qp *qp = request->qp;
	struct sim_responder *resp = &qp->resp;

	switch (sim_relay_request(qp, request->packet, request->flags)) {
	case SIM_RELAY_SENT:
		resp->psn = sim_psn_add(resp->psn, packets);
		resp->in_message = request->flags & SIM_OP_END ? 0 : request->flags & SIM_OP_KIND;
		if (request->flags & SIM_OP_END)
			sim_responder_count_message(qp);
		return SIM_RESPONDER_DONE;
	case SIM_RELAY_LATER:
		return later(qp);
	case SIM_RELAY_NOBODY:
	default:
		return qp->relay.ahead ? later(qp) : refused_as(request, SIM_INVALID_REQUEST);
	}
}

/* The SRQ of an XRC message brings its PD. */
static enum sim_responder_state check_srq(struct request *request)
{
	struct sim_qp *qp = request->qp;

	if (!sim_receive_enter_srq(qp, request->packet->xrc_srqn))
		return relay(request);
	/* An ACK would acknowledge the requests that are not answered, too. */
	if (qp->relay.ahead)
		return later(qp);
	sim_responder_use_pd(qp, qp->rx.srq->pd);
	return SIM_RESPONDER_CHECK_REQUEST;
}

INLINE enum sim_responder_state check_request(struct request *request)
{
	const struct sim_packet *packet = request->packet;
	const uint32_t flags = request->flags;
	struct sim_qp *qp = request->qp;
	enum sim_verdict verdict = SIM_INVALID_REQUEST;

	if (flags & SIM_OP_SEND)
		verdict = check_send(qp, packet, flags);
	else if (flags & SIM_OP_WRITE)
		verdict = check_write(qp, packet, flags);
	else if (flags & SIM_OP_READ)
		verdict = sim_responder_check_read(qp, packet);
	else if (flags & SIM_OP_ATOMIC)
		verdict = check_atomic(qp, packet, flags);
	return verdict == SIM_ACCEPT ? SIM_RESPONDER_EXECUTE : refused_as(request, verdict);
}

/* A READ or atomic that was accepted is answered in the responder's turn. */
static enum sim_responder_state remember(struct request *request)
{
	const struct sim_packet *packet = request->packet;
	struct sim_qp *qp = request->qp;
	enum sim_verdict verdict = SIM_ACCEPT;
	uint32_t packets = 1;

	if (request->flags & SIM_OP_READ) {
		packets = sim_response_packets(qp, packet->dma_bytes);
		sim_answer_push(qp, packet, packets);
	} else {
		verdict = do_atomic(qp, packet, request->flags);
	}
	if (verdict != SIM_ACCEPT)
		return refused_as(request, verdict);
	qp->resp.psn = sim_psn_add(qp->resp.psn, packets);
	sim_responder_count_message(qp);
	return SIM_RESPONDER_DONE;
}

INLINE enum sim_responder_state execute(struct request *request)
{
	const uint32_t flags = request->flags;
	enum sim_verdict verdict;

	if (flags & SIM_OP_SEND)
		verdict = do_send(request->qp, request->packet);
	else if (flags & SIM_OP_WRITE)
		verdict = do_write(request->qp, request->packet, flags);
	else
		return remember(request);
	if (verdict != SIM_ACCEPT)
		return refused_as(request, verdict);
	return flags & SIM_OP_IETH ? SIM_RESPONDER_INVALIDATE : SIM_RESPONDER_COMPLETE;
}

static enum sim_responder_state invalidate(struct request *request)
{
	struct sim_qp *qp = request->qp;

	if (!sim_mw_invalidate(qp->device, qp->remote_reach.pd, qp->number, request->packet->rkey))
		return refused_as(request, SIM_BAD_INVALIDATION);
	return SIM_RESPONDER_COMPLETE;
}

/* A SEND or WRITE packet has been done. */
INLINE enum sim_responder_state complete(struct request *request)
{
	struct sim_qp *qp = request->qp;

	const uint32_t received = qp->resp.received + request->packet->payload_bytes;

	if (request->flags & SIM_OP_END) {
		finish_message(qp, request->packet, request->flags, received);
	} else {
		qp->resp.received = received;
		qp->resp.in_message = request->flags & SIM_OP_KIND;
	}
	return qp->reliable ? SIM_RESPONDER_ACKNOWLEDGE : SIM_RESPONDER_DONE;
}

INLINE enum sim_responder_state acknowledge(struct request *request)
{
	const struct sim_packet *packet = request->packet;
	struct sim_qp *qp = request->qp;
	struct sim_responder *resp = &qp->resp;

	/* The completion did not fit its CQ and has ended the QP; the message is not acknowledged:
	 * Linux drivers/infiniband/sw/rxe/rxe_resp.c, RESPST_ERR_CQ_OVERFLOW. */
	if (qp->state == IBV_QPS_ERR) {
		if (!resp->ack)
			resp->ack_psn = packet->psn;
		return SIM_RESPONDER_DONE;
	}
	resp->ack_psn = packet->psn;
	resp->psn = sim_psn_add(resp->psn, 1);
	if (packet->flags & SIM_PACKET_ACK_REQUEST)
		sim_responder_owe_ack(qp);
	return SIM_RESPONDER_DONE;
}

/* A request that was done before is acknowledged or answered again, never executed again. */
static enum sim_responder_state repeat(struct request *request)
{
	struct sim_qp *qp = request->qp;

	qp->device->counters.duplicate_requests++;
	if (request->flags & (SIM_OP_READ | SIM_OP_ATOMIC)) {
		sim_answer_replay(qp, request->packet, request->flags);
		return SIM_RESPONDER_DONE;
	}
	if (!qp->resp.ack)
		qp->resp.ack = SIM_ACK_DUPLICATE;
	sim_qp_wake_responder(qp);
	if (qp->hooks && qp->hooks->acks_at_once(qp))
		sim_responder_run(qp);
	return SIM_RESPONDER_DONE;
}

/* Takes a request from one state to the next until it is done. The states stand in the order in
 * which a request comes to them. */
INLINE void step(struct request *request, enum sim_responder_state state)
{
	if (state == SIM_RESPONDER_CHECK_PSN)
		state = check_psn(request);
	if (state == SIM_RESPONDER_CHECK_SEQUENCE)
		state = check_sequence(request);
	if (state == SIM_RESPONDER_CHECK_SRQ)
		state = check_srq(request);
	if (state == SIM_RESPONDER_CHECK_REQUEST)
		state = check_request(request);
	if (state == SIM_RESPONDER_EXECUTE)
		state = execute(request);
	if (state == SIM_RESPONDER_INVALIDATE)
		state = invalidate(request);
	if (state == SIM_RESPONDER_COMPLETE)
		state = complete(request);
	if (state == SIM_RESPONDER_ACKNOWLEDGE)
		state = acknowledge(request);
	if (state == SIM_RESPONDER_REPEAT)
		state = repeat(request);
	if (state == SIM_RESPONDER_REFUSE)
		sim_responder_not_accepted(request->qp, request->packet, request->verdict);
}

/* The first packet of a connection, or a packet to a QP that keeps something back. Returns true if the request is
 * refused. */
__attribute__((noinline)) static bool look(struct sim_qp *qp, const struct sim_packet *packet,
					   uint32_t flags)
{
	sim_responder_establish(qp);
	if (!qp->late) {
		qp->resp.usual = true;
		return false;
	}
	if (!sim_late_refuses(qp, packet, flags))
		return false;
	sim_responder_not_accepted(qp, packet, SIM_NO_RECEIVE);
	return true;
}

void sim_responder_receive(struct sim_qp *qp, const struct sim_packet *packet)
{
	struct request request = {
		.qp = qp, .packet = packet, .flags = sim_opcodes[packet->opcode].flags};

	if (!qp->resp.usual && look(qp, packet, request.flags))
		return;
	step(&request, SIM_RESPONDER_CHECK_PSN);
}

/* --- trains ---
 *
 * A train is taken whole if each of its packets would pass all states without a refusal. Otherwise the packets come
 * one by one, and the states find the one that is refused.
 */

/* Returns true if the packets of a train are the expected ones of the message in progress. */
static bool train_is_expected(const struct sim_qp *qp, const struct sim_packet *train,
			      uint32_t flags, unsigned int count)
{
	const struct sim_responder *resp = &qp->resp;

	return resp->usual && !qp->hooks && !qp->xrcd && train->psn == resp->psn &&
	       resp->in_message == (flags & SIM_OP_KIND) &&
	       train->payload_bytes == count * qp->mtu_bytes;
}

/* Finds the memory for a train of a SEND. Returns the number of spans; -1: the packets have to come one by one. */
static int train_scatter(struct sim_qp *qp, const struct sim_packet *train, struct sim_span *to)
{
	const uint64_t total = (uint64_t)qp->resp.received + train->payload_bytes;

	if (qp->rx.held)
		sim_receive_refind(qp);
	if (total > qp->rx.wqe->length)
		return -1;
	return sim_receive_scatter(qp, qp->rx.wqe, qp->resp.received, train->payload_bytes, to);
}

/* The same for a train of an RDMA WRITE, whose last packet is still to come. */
static int train_target(struct sim_qp *qp, const struct sim_packet *train, struct sim_span *to)
{
	const struct sim_responder *resp = &qp->resp;
	const uint64_t total = (uint64_t)resp->received + train->payload_bytes;

	if (!grants(qp, IBV_ACCESS_REMOTE_WRITE) || total >= resp->length)
		return -1;
	to->base = sim_responder_memory(qp, resp->rkey, resp->remote_addr + resp->received,
					train->payload_bytes, IBV_ACCESS_REMOTE_WRITE);
	to->length_bytes = train->payload_bytes;
	return to->base ? 1 : -1;
}

bool sim_responder_take_train(struct sim_qp *qp, const struct sim_packet *train, unsigned int count)
{
	const uint32_t flags = sim_opcodes[train->opcode].flags;
	struct sim_responder *resp = &qp->resp;
	struct sim_span to[SIM_SPANS_MAX];
	int spans;

	if (!train_is_expected(qp, train, flags, count))
		return false;
	spans = flags & SIM_OP_SEND ? train_scatter(qp, train, to) : train_target(qp, train, to);
	if (spans < 0 ||
	    sim_copy_spans(qp->engine, train->spans, train->span_count, to, (unsigned int)spans))
		return false;
	resp->received += train->payload_bytes;
	resp->psn = sim_psn_add(resp->psn, count);
	if (!qp->reliable)
		return true;
	resp->nak_outstanding = false;
	resp->ack_psn = sim_psn_add(train->psn, count - 1);
	if (train->flags & SIM_PACKET_ACK_REQUEST)
		sim_responder_owe_ack(qp);
	return true;
}
