/* SPDX-License-Identifier: MIT */
/*
 * The requester: takes WQEs in order, cuts them into packets, and stops where it has to wait.
 */
#include "sim/qp/private.h"
#include "sim/wire/psn.h"

/* The way of most packets is one function without calls. */
#define INLINE __attribute__((always_inline)) static inline

const char *const sim_gate_names[SIM_GATES] = {
	[SIM_GATE_OPEN] = "open",   [SIM_GATE_EMPTY] = "empty",	  [SIM_GATE_RNR] = "RNR wait",
	[SIM_GATE_ERROR] = "error", [SIM_GATE_DRAIN] = "drain",	  [SIM_GATE_FENCE] = "fence",
	[SIM_GATE_READS] = "READs", [SIM_GATE_WINDOW] = "window", [SIM_GATE_STATE] = "state",
};

/* --- what others ask of the requester --- */

static void note_rnr(struct sim_qp *qp, const char *what, uint64_t wait_ns)
{
	if (sim_watched(qp->engine))
		sim_qp_note_timer(qp, "rnr", what, wait_ns, qp->comp.rnr_retries_left);
}

static void rnr_over(struct sim_timer *timer)
{
	struct sim_qp *qp =
		(struct sim_qp *)((char *)timer - offsetof(struct sim_qp, req.rnr_timer));

	if (qp->req.waits_rnr)
		note_rnr(qp, "expired", 0);
	qp->req.waits_rnr = false;
	if (qp->hooks)
		qp->hooks->rnr_over(qp);
	else
		sim_qp_wake_requester(qp);
}

void sim_requester_init(struct sim_qp *qp)
{
	sim_timer_init(&qp->req.rnr_timer, rnr_over);
}

void sim_requester_reset(struct sim_qp *qp)
{
	qp->req = (struct sim_requester){.rnr_timer = qp->req.rnr_timer};
}

void sim_requester_set_psn(struct sim_qp *qp, uint32_t psn)
{
	qp->req.psn = qp->req.sent_psn = psn;
}

void sim_requester_datagram_sent(struct sim_qp *qp)
{
	qp->req.sent_psn = qp->req.psn;
	qp->req.next++;
}

static void note_rewind(struct sim_qp *qp, uint32_t psn, const char *by)
{
	struct vb_event event = {
		.kind = VB_EVENT_REWIND, .values = {psn, qp->req.sent_psn}, .texts = {by}};

	sim_qp_note(qp, &event);
}

void sim_requester_rewind(struct sim_qp *qp, uint32_t psn, const char *by)
{
	struct sim_requester *req = &qp->req;

	if (sim_watched(qp->engine))
		note_rewind(qp, psn, by);
	req->since_ack_request = 0;
	for (uint32_t i = qp->sq.tail; i != qp->sq.head; i++) {
		const struct sim_send_wqe *wqe = sim_qp_send_wqe(qp, i);

		if (!wqe->started)
			return;
		if (sim_psn_distance(psn, wqe->first_psn) < wqe->packets) {
			req->next = i;
			req->offset = sim_psn_distance(psn, wqe->first_psn);
			/* The requester comes to the WQE in error again. */
			req->stopped = false;
			break;
		}
	}
	sim_qp_wake_requester(qp);
}

void sim_requester_skip(struct sim_qp *qp, uint32_t psn)
{
	struct sim_requester *req = &qp->req;
	const struct sim_send_wqe *wqe;

	if (req->next != qp->sq.tail || req->next == qp->sq.head)
		return;
	wqe = sim_qp_send_wqe(qp, req->next);
	if (wqe->started && sim_psn_distance(psn, wqe->first_psn) > req->offset)
		req->offset = sim_psn_distance(psn, wqe->first_psn);
}

void sim_requester_release(struct sim_qp *qp, struct sim_send_wqe *wqe)
{
	struct sim_requester *req = &qp->req;

	if (wqe->credited)
		req->reads_outstanding--;
	/* Do not send again what has ended. */
	if ((int32_t)(qp->sq.tail - req->next) > 0) {
		req->next = qp->sq.tail;
		req->offset = 0;
	}
}

void sim_requester_resume(struct sim_qp *qp)
{
	qp->req.stopped = false;
}

void sim_requester_wait_rnr(struct sim_qp *qp, unsigned int timer_code)
{
	const uint64_t deadline_ns = sim_wait_rnr_deadline(qp, timer_code);

	qp->req.waits_rnr = true;
	sim_timer_arm(&qp->engine->clock, &qp->req.rnr_timer, deadline_ns);
	note_rnr(qp, "started", deadline_ns - sim_clock_now_ns(&qp->engine->clock));
}

void sim_requester_end_rnr_wait(struct sim_qp *qp)
{
	note_rnr(qp, "ended", 0);
	qp->req.waits_rnr = false;
}

void sim_requester_forget_sent(struct sim_qp *qp)
{
	qp->req.sent_psn = qp->comp.psn;
}

void sim_requester_stop(struct sim_qp *qp)
{
	sim_timer_disarm(&qp->req.rnr_timer);
}

void sim_requester_give_up(struct sim_qp *qp, enum ibv_wc_status status)
{
	sim_send_fail(qp, status);
	if (qp->reliable || (qp->hooks && qp->hooks->send_error_ends(qp))) {
		sim_qp_fail(qp, SIM_BY_SEND);
	} else if (qp->state == IBV_QPS_RTS || qp->state == IBV_QPS_SQD) {
		const enum ibv_qp_state from = qp->state;

		/* Only the send queue of an unreliable QP is in error. */
		qp->state = IBV_QPS_SQE;
		sim_failure_ends_sends(qp);
		sim_qp_changed_state(qp, from, SIM_BY_SEND);
		/* A WQE that was not sent has used no PSN. */
		qp->req.psn = qp->req.sent_psn;
		qp->sq_draining = false;
		sim_engine_changed(qp->engine);
		sim_qp_wake_requester(qp);
	}
}

void sim_requester_flush(struct sim_qp *qp, bool sends)
{
	const bool receives = qp->state == IBV_QPS_ERR && qp->rx.flush_due;
	const bool receives_first = qp->device->quirks.receives_flush_first;

	if (receives && receives_first)
		sim_receive_flush(qp);
	if (sends)
		sim_send_flush(qp);
	if (receives && !receives_first)
		sim_receive_flush(qp);
}

/* --- gates --- */

static enum sim_gate gate_start(const struct sim_qp *qp, const struct sim_send_wqe *wqe)
{
	const struct sim_requester *req = &qp->req;

	if (qp->state == IBV_QPS_SQD)
		return SIM_GATE_DRAIN;
	if ((wqe->send_flags & IBV_SEND_FENCE) && req->reads_outstanding)
		return SIM_GATE_FENCE;
	/* With max_rd_atomic 0 the WQE starts, and fails. */
	if ((wqe->info.flags & SIM_WR_RESPONSE) && req->reads_outstanding &&
	    req->reads_outstanding >= qp->max_rd_atomic)
		return SIM_GATE_READS;
	return SIM_GATE_OPEN;
}

/* *next is the next WQE if the gate is open. */
INLINE enum sim_gate gate(const struct sim_qp *qp, struct sim_send_wqe **next)
{
	const struct sim_requester *req = &qp->req;
	struct sim_send_wqe *wqe;
	enum sim_gate gate;
	uint32_t psn;

	if (req->next == qp->sq.head)
		return SIM_GATE_EMPTY;
	if (qp->state != IBV_QPS_RTS && qp->state != IBV_QPS_SQD)
		return SIM_GATE_STATE;
	if (req->stopped)
		return SIM_GATE_ERROR;
	if (req->waits_rnr && sim_rule_holds(qp, SIM_RULE_RNR_WAIT_SENDS_NOTHING))
		return SIM_GATE_RNR;
	wqe = *next = sim_qp_send_wqe(qp, req->next);
	psn = wqe->started ? wqe->first_psn + req->offset : req->psn;
	if (qp->reliable && sim_psn_distance(psn, qp->comp.psn) >= SIM_WINDOW_PACKETS)
		return SIM_GATE_WINDOW;
	gate = wqe->started ? SIM_GATE_OPEN : gate_start(qp, wqe);
	return qp->hooks ? qp->hooks->gate(qp, wqe, gate) : gate;
}

/* --- a message begins --- */

/* PSNs of a message: a READ takes one for each packet of its response. */
static uint32_t packets_of(const struct sim_qp *qp, const struct sim_send_wqe *wqe)
{
	if (wqe->info.flags & SIM_WR_LOCAL)
		return 0;
	if (qp->type == IBV_QPT_UD || (wqe->info.flags & SIM_WR_ATOMIC) ||
	    wqe->length <= qp->mtu_bytes)
		return 1;
	return (wqe->length - 1) / qp->mtu_bytes + 1;
}

/* Checks all memory of a message in several packets before the first is sent. */
__attribute__((noinline)) static enum ibv_wc_status check_memory(struct sim_qp *qp,
								 const struct sim_send_wqe *wqe)
{
	struct sim_span spans[SIM_SPANS_MAX];

	if (sim_gather(&qp->sq_reach, wqe->sge, wqe->num_sge, 0, wqe->length, 0, spans) < 0)
		return IBV_WC_LOC_PROT_ERR;
	return IBV_WC_SUCCESS;
}

/* The local error of a WQE that is about to start; SUCCESS if it has none. */
static enum ibv_wc_status fault_of(struct sim_qp *qp, const struct sim_send_wqe *wqe)
{
	if (wqe->status)
		return wqe->status;
	/* Lkeys of READs and atomics are checked when the response comes. */
	if (wqe->info.flags & SIM_WR_RESPONSE)
		return qp->max_rd_atomic ? IBV_WC_SUCCESS : IBV_WC_LOC_QP_OP_ERR;
	/* The memory of a single packet is checked as it is sent. */
	if (wqe->packets <= 1 || (wqe->send_flags & IBV_SEND_INLINE))
		return IBV_WC_SUCCESS;
	return check_memory(qp, wqe);
}

__attribute__((noinline)) static void fail(struct sim_qp *qp, struct sim_send_wqe *wqe,
					   enum ibv_wc_status status)
{
	bool ended;

	sim_failure_find_local(qp, wqe, status);
	ended = qp->hooks && qp->hooks->send_failed(qp, wqe, &status);

	wqe->status = (uint8_t)status;
	if (ended)
		return;
	if (qp->sq.tail == qp->req.next)
		sim_requester_give_up(qp, status);
	else
		qp->req.stopped = true;
}

static bool start(struct sim_qp *qp, struct sim_send_wqe *wqe)
{
	enum ibv_wc_status status;

	wqe->packets = packets_of(qp, wqe);
	status = fault_of(qp, wqe);
	if (status != IBV_WC_SUCCESS) {
		fail(qp, wqe, status);
		return false;
	}
	wqe->started = true;
	wqe->first_psn = qp->req.psn;
	qp->req.psn = sim_psn_add(qp->req.psn, wqe->packets);
	if (wqe->info.flags & SIM_WR_RESPONSE) {
		wqe->credited = true;
		qp->req.reads_outstanding++;
	}
	return true;
}

/* --- packets --- */

__attribute__((noinline)) static void set_remote(struct sim_packet *packet,
						 const struct sim_send_wqe *wqe, uint32_t done)
{
	packet->remote_addr = wqe->remote_addr + done;
	packet->rkey = wqe->rkey;
	packet->dma_bytes = wqe->length - done;
	if (wqe->info.flags & SIM_WR_ATOMIC) {
		bool swaps = wqe->opcode == IBV_WR_ATOMIC_CMP_AND_SWP;

		packet->swap_add = swaps ? wqe->atomic.swap : wqe->atomic.compare_add;
		packet->compare = swaps ? wqe->atomic.compare_add : 0;
	}
}

/* The payload [done, done + bytes) of the message; false if its memory may not be read. */
INLINE bool set_payload(struct sim_qp *qp, const struct sim_send_wqe *wqe, uint32_t done,
			uint32_t bytes, struct sim_packet *packet, struct sim_span *spans)
{
	int count;

	packet->payload_bytes = bytes;
	packet->spans = spans;
	if (wqe->send_flags & IBV_SEND_INLINE) {
		spans[0] = (struct sim_span){(const uint8_t *)wqe->sge + done, bytes};
		packet->span_count = bytes ? 1 : 0;
		return true;
	}
	count = sim_gather(&qp->sq_reach, wqe->sge, wqe->num_sge, done, bytes, 0, spans);
	packet->span_count = (uint8_t)count;
	return count >= 0;
}

static inline uint8_t flags_of(struct sim_qp *qp, const struct sim_send_wqe *wqe, uint32_t op_flags)
{
	uint8_t flags = SIM_PACKET_MIGRATED;

	if ((op_flags & SIM_OP_COMPLETES) && (wqe->send_flags & IBV_SEND_SOLICITED))
		flags |= SIM_PACKET_SOLICITED;
	if (!qp->reliable)
		return flags;
	if ((op_flags & SIM_OP_END) || ++qp->req.since_ack_request >= SIM_ACK_REQUEST_EVERY) {
		flags |= SIM_PACKET_ACK_REQUEST;
		qp->req.since_ack_request = 0;
	}
	return flags;
}

/* Counts the PSNs of a packet as sent, and moves on to the next WQE behind the last packet. */
static inline void sent(struct sim_qp *qp, const struct sim_send_wqe *wqe, uint32_t psn,
			uint32_t packets)
{
	struct sim_requester *req = &qp->req;

	if (psn == req->sent_psn)
		req->sent_psn = sim_psn_add(psn, packets);
	else
		qp->device->counters.retransmitted_packets++;
	packets += req->offset;
	if (packets >= wqe->packets) {
		req->next++;
		packets = 0;
	}
	req->offset = packets;
}

static void address(struct sim_qp *qp, uint32_t psn, struct sim_packet *packet)
{
	packet->pkey = qp->pkey;
	packet->dest_qpn = qp->dest_qpn;
	packet->slid = qp->path.route.slid;
	packet->sl = qp->path.route.sl;
	packet->psn = psn;
}

/* Starts the ack timer behind a request, which does not wait for a reading of the clock. The request may have ended
 * the QP: one that is connected to itself, or whose peer has the same CQ. */
static inline void watch(struct sim_qp *qp)
{
	if (qp->state != IBV_QPS_ERR)
		sim_completer_watch(qp, false);
}

/* Sends the request of a READ, from where its response has come to, of an atomic or ATOMIC WRITE. */
__attribute__((noinline)) static void send_response_request(struct sim_qp *qp,
							    struct sim_send_wqe *wqe)
{
	struct sim_packet packet = {
		.opcode = sim_opcode_request(qp->transport, wqe->opcode, true, true),
		.xrc_srqn = wqe->xrc_srqn};
	struct sim_span spans[SIM_SPANS_MAX];

	address(qp, sim_psn_add(wqe->first_psn, wqe->answered), &packet);
	set_remote(&packet, wqe, wqe->answered * qp->mtu_bytes);
	if (wqe->opcode == IBV_WR_ATOMIC_WRITE &&
	    !set_payload(qp, wqe, 0, wqe->length, &packet, spans)) {
		fail(qp, wqe, IBV_WC_LOC_PROT_ERR);
		return;
	}
	packet.flags = flags_of(qp, wqe, sim_opcodes[packet.opcode].flags);
	qp->req.offset = wqe->answered;
	sent(qp, wqe, packet.psn, wqe->packets - wqe->answered);
	sim_send_request(qp, &packet);
	watch(qp);
}

/* Sends the next packet of a message that carries data. */
INLINE void send_data(struct sim_qp *qp, struct sim_send_wqe *wqe)
{
	uint32_t offset = qp->req.offset;
	uint32_t done = offset * qp->mtu_bytes;
	bool last = offset + 1 == wqe->packets;
	uint8_t opcode = sim_opcode_request(qp->transport, wqe->opcode, offset == 0, last);
	const uint32_t op_flags = sim_opcodes[opcode].flags;
	struct sim_span spans[SIM_SPANS_MAX];
	struct sim_packet packet;

	packet.opcode = opcode;
	address(qp, sim_psn_add(wqe->first_psn, offset), &packet);
	packet.imm_data = wqe->imm_data;
	packet.xrc_srqn = wqe->xrc_srqn;
	if (op_flags & SIM_OP_RETH)
		set_remote(&packet, wqe, done);
	if (op_flags & SIM_OP_IETH)
		packet.rkey = wqe->invalidate_rkey;
	if (!set_payload(qp, wqe, done, last ? wqe->length - done : qp->mtu_bytes, &packet,
			 spans)) {
		fail(qp, wqe, IBV_WC_LOC_PROT_ERR);
		return;
	}
	packet.flags = flags_of(qp, wqe, op_flags);
	sent(qp, wqe, packet.psn, 1);
	sim_send_request(qp, &packet);
	if (qp->reliable)
		watch(qp);
	/* No answer comes on an unreliable connection: the message is done when it is sent. */
	if (qp->type == IBV_QPT_UC && last && qp->sq.tail != qp->sq.head)
		sim_send_complete(qp);
}

void sim_requester_send_empty(struct sim_qp *qp)
{
	struct sim_packet packet = {
		.opcode = sim_opcode_request(qp->transport, IBV_WR_RDMA_WRITE, true, true),
		.flags = SIM_PACKET_MIGRATED | (qp->reliable ? SIM_PACKET_ACK_REQUEST : 0),
	};

	address(qp, qp->req.psn, &packet);
	sim_requester_set_psn(qp, sim_psn_add(qp->req.psn, 1));
	sim_completer_set_psn(qp, qp->req.psn);
	sim_send_request(qp, &packet);
}

/* --- local operations --- */

static bool bind_window(struct sim_qp *qp, const struct sim_send_wqe *wqe)
{
	const struct sim_mw_bind bind = {
		.old_rkey = wqe->bind.old_rkey,
		.new_rkey = wqe->rkey,
		.region_lkey = wqe->bind.lkey,
		.addr = wqe->remote_addr,
		.length = wqe->bind.length,
		.access = wqe->bind.access,
	};

	return sim_mw_bind(qp->device, qp->pd, qp->number, wqe->bind.mw, &bind);
}

/* Does a WQE that sends nothing, once; the WQE ends when all before it have ended. */
__attribute__((noinline)) static void do_local(struct sim_qp *qp, struct sim_send_wqe *wqe)
{
	bool done =
		wqe->opcode == IBV_WR_BIND_MW
			? bind_window(qp, wqe)
			: sim_mw_invalidate(qp->device, qp->pd, qp->number, wqe->invalidate_rkey);

	if (!done) {
		fail(qp, wqe, IBV_WC_MW_BIND_ERR);
		return;
	}
	wqe->done = true;
	qp->req.next++;
	if (qp->sq.tail + 1 == qp->req.next)
		sim_send_complete(qp);
}

/* The requester comes to a WQE again that it has done, behind one that is repeated. */
static void pass_local(struct sim_qp *qp, struct sim_send_wqe *wqe)
{
	if (!qp->hooks || qp->hooks->repeat_local(qp, wqe)) {
		qp->req.next++;
		return;
	}
	fail(qp, wqe, IBV_WC_MW_BIND_ERR);
	wqe->done = false;
}

/* --- trains --- */

static unsigned int at_most(unsigned int count, unsigned int limit)
{
	return count < limit ? count : limit;
}

/* Returns true if the next packet of a message is one of its middle, and no repetition: such packets may leave as a
 * train (sim/wire/packet.h). A message with one request only, such as a READ, has no middle. */
static inline bool may_send_train(const struct sim_qp *qp, const struct sim_send_wqe *wqe)
{
	return qp->req.offset && wqe->packets > 3 && qp->lane.epoch == qp->engine->epoch &&
	       !qp->hooks && sim_psn_add(wqe->first_psn, qp->req.offset) == qp->req.sent_psn;
}

/* Returns how many packets the next train may have. The message's last packet is no part of a train, and no packet of
 * a train but the last one asks for an ACK. */
static unsigned int train_packets(const struct sim_qp *qp, const struct sim_send_wqe *wqe,
				  unsigned int budget)
{
	unsigned int count = at_most(budget, wqe->packets - 1 - qp->req.offset);

	if (qp->reliable) {
		count = at_most(count, SIM_ACK_REQUEST_EVERY - qp->req.since_ack_request);
		count = at_most(count, SIM_WINDOW_PACKETS -
					       sim_psn_distance(qp->req.sent_psn, qp->comp.psn));
	}
	return at_most(count, sim_train_bytes(qp) / qp->mtu_bytes);
}

/* Sends the next packets of a message together. Returns their number; 0: none was sent. */
__attribute__((noinline)) static unsigned int send_train(struct sim_qp *qp,
							 struct sim_send_wqe *wqe,
							 unsigned int budget)
{
	struct sim_packet train = {
		.opcode = sim_opcode_request(qp->transport, wqe->opcode, false, false),
		.flags = SIM_PACKET_MIGRATED,
		.xrc_srqn = wqe->xrc_srqn,
	};
	const unsigned int count = train_packets(qp, wqe, budget);
	const bool asks = qp->req.since_ack_request + count >= SIM_ACK_REQUEST_EVERY;
	struct sim_span spans[SIM_SPANS_MAX];

	if (count < 2)
		return 0;
	address(qp, qp->req.sent_psn, &train);
	if (!set_payload(qp, wqe, qp->req.offset * qp->mtu_bytes, count * qp->mtu_bytes, &train,
			 spans))
		return 0;
	if (qp->reliable && asks)
		train.flags |= SIM_PACKET_ACK_REQUEST;
	if (!sim_send_train(qp, &train, count))
		return 0;
	sent(qp, wqe, train.psn, count);
	if (!qp->reliable)
		return count;
	qp->req.since_ack_request = asks ? 0 : (uint8_t)(qp->req.since_ack_request + count);
	watch(qp);
	return count;
}

/* --- the turn --- */

INLINE void send_one(struct sim_qp *qp, struct sim_send_wqe *wqe)
{
	enum ibv_wc_status status;

	if (!wqe->started && !start(qp, wqe))
		return;
	if (wqe->info.flags & SIM_WR_LOCAL) {
		if (wqe->done)
			pass_local(qp, wqe);
		else
			do_local(qp, wqe);
		return;
	}
	if (wqe->info.flags & SIM_WR_RESPONSE) {
		send_response_request(qp, wqe);
		return;
	}
	if (qp->type != IBV_QPT_UD) {
		send_data(qp, wqe);
		return;
	}
	status = sim_datagram_send(qp, wqe);
	if (status == IBV_WC_SUCCESS)
		sim_send_complete(qp);
	else
		fail(qp, wqe, status);
}

/* True if all sends before the first unstarted one have ended. */
static bool is_drained(const struct sim_qp *qp)
{
	if (qp->sq.tail != qp->req.next)
		return false;
	if (qp->hooks)
		return qp->hooks->is_drained(qp);
	return qp->sq.tail == qp->sq.head || !sim_qp_send_wqe(qp, qp->sq.tail)->started;
}

static void check_drained(struct sim_qp *qp)
{
	if (qp->state != IBV_QPS_SQD || !qp->sq_draining || !is_drained(qp))
		return;
	qp->sq_draining = false;
	sim_qp_changed_state(qp, qp->state, SIM_BY_DRAINED);
	if (qp->drain_event)
		sim_qp_event(qp, IBV_EVENT_SQ_DRAINED);
}

/* Sends until the gate closes. Returns true if the budget is used up and the gate is open. */
static bool send_burst(struct sim_qp *qp, unsigned int budget)
{
	struct sim_send_wqe *wqe;
	unsigned int count;

	while (gate(qp, &wqe) == SIM_GATE_OPEN) {
		if (budget == 0)
			return true;
		count = may_send_train(qp, wqe) ? send_train(qp, wqe, budget) : 0;
		if (!count) {
			send_one(qp, wqe);
			count = 1;
		}
		budget -= count;
	}
	check_drained(qp);
	return false;
}

/* Returns how many packets may be sent from the next WQE on. A datagram has a path of its own. What sends
 * no packet needs no room: local operations, and a WQE in error. */
static unsigned int next_room(struct sim_qp *qp)
{
	const struct sim_send_wqe *wqe = sim_qp_send_wqe(qp, qp->req.next);

	if (wqe->info.flags & SIM_WR_LOCAL || wqe->status)
		return 1;
	if (qp->type != IBV_QPT_UD)
		return sim_room_ask_peer(qp);
	return sim_room_ask(qp, &wqe->ud.ah->path, wqe->ud.remote_qpn) ? 1 : 0;
}

/* The turn of a QP that asks for room. A QP that has sent something asks again after the others have asked: QPs wait in
 * the order in which they have sent last. */
__attribute__((noinline)) static bool run_with_room(struct sim_qp *qp)
{
	unsigned int room = at_most(sim_room_in_lane(qp), SIM_BURST_PACKETS);
	unsigned int left = SIM_BURST_PACKETS - room;
	bool open = send_burst(qp, room);

	while (open && left) {
		room = at_most(next_room(qp), left);
		if (!room && left < SIM_BURST_PACKETS)
			return true;
		if (!room) {
			sim_room_wait(qp, SIM_TURN_REQUESTER);
			return false;
		}
		left -= room;
		open = send_burst(qp, room);
	}
	return open;
}

bool sim_requester_run(struct sim_qp *qp)
{
	if (qp->hooks && qp->hooks->turn(qp))
		return false;
	if (qp->state == IBV_QPS_ERR || qp->state == IBV_QPS_SQE) {
		sim_requester_flush(qp, true);
		return false;
	}
	return qp->burst ? send_burst(qp, qp->burst) : run_with_room(qp);
}
