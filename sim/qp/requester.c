/* SPDX-License-Identifier: MIT */
/*
 * The requester: takes WQEs in order, cuts them into packets, and stops where it has to wait.
 */
#include "sim/qp/qp.h"
#include "sim/wire/psn.h"
#include "sim/wire/timing.h"

/* What keeps the next packet back. */
enum gate {
	GATE_OPEN,
	GATE_EMPTY,  /* no work */
	GATE_RNR,    /* the peer had no receive WR */
	GATE_ERROR,  /* a WQE in error waits for those before it */
	GATE_DRAIN,  /* SQD starts nothing new */
	GATE_FENCE,  /* IBV_SEND_FENCE behind READs and atomics */
	GATE_READS,  /* max_rd_atomic are outstanding */
	GATE_WINDOW, /* too much is unacknowledged */
};

static enum gate gate_start(const struct sim_qp *qp, const struct sim_send_wqe *wqe)
{
	const struct sim_requester *req = &qp->req;

	if (qp->state == IBV_QPS_SQD)
		return GATE_DRAIN;
	if ((wqe->send_flags & IBV_SEND_FENCE) && req->reads_outstanding)
		return GATE_FENCE;
	if ((wqe->info_flags & SIM_WR_RESPONSE) && req->reads_outstanding >= qp->max_rd_atomic &&
	    (req->reads_outstanding || qp->device->quirks.reads_without_room_wait))
		return GATE_READS;
	return GATE_OPEN;
}

__attribute__((always_inline)) static inline enum gate gate(const struct sim_qp *qp)
{
	const struct sim_requester *req = &qp->req;
	const struct sim_send_wqe *wqe;
	uint32_t psn;

	if (req->next == qp->sq.head)
		return GATE_EMPTY;
	if (req->stopped)
		return GATE_ERROR;
	if (req->waits_rnr && !qp->device->quirks.rnr_naks_stop_nothing)
		return GATE_RNR;
	wqe = sim_qp_send_wqe(qp, req->next);
	psn = wqe->started ? wqe->first_psn + req->offset : req->psn;
	if (qp->reliable && sim_psn_distance(psn, qp->comp.psn) >= SIM_WINDOW_PACKETS)
		return GATE_WINDOW;
	if (wqe->started)
		return sim_requester_jams(qp, wqe) ? GATE_FENCE : GATE_OPEN;
	return gate_start(qp, wqe);
}

/* PSNs of a message: a READ takes one for each packet of its response. */
static uint32_t packets_of(const struct sim_qp *qp, const struct sim_send_wqe *wqe)
{
	if (wqe->info_flags & SIM_WR_LOCAL)
		return 0;
	if (qp->type == IBV_QPT_UD || (wqe->info_flags & SIM_WR_ATOMIC) ||
	    wqe->length <= qp->mtu_bytes)
		return 1;
	return (wqe->length - 1) / qp->mtu_bytes + 1;
}

/* All memory of a message in several packets, before the first is sent. */
__attribute__((noinline)) static enum ibv_wc_status check_memory(struct sim_qp *qp,
								 const struct sim_send_wqe *wqe)
{
	struct sim_span spans[SIM_SPANS_MAX];

	if (sim_gather(&qp->sq_reach, wqe->sge, wqe->num_sge, 0, wqe->length, 0, spans) < 0)
		return IBV_WC_LOC_PROT_ERR;
	return IBV_WC_SUCCESS;
}

/* The local error of a WQE that is about to start; SUCCESS for none. */
static enum ibv_wc_status fault_of(struct sim_qp *qp, const struct sim_send_wqe *wqe)
{
	if (wqe->status)
		return wqe->status;
	/* Lkeys of READs and atomics are checked when the response comes. */
	if (wqe->info_flags & SIM_WR_RESPONSE)
		return qp->max_rd_atomic ? IBV_WC_SUCCESS : IBV_WC_LOC_QP_OP_ERR;
	/* One packet's memory is checked as it is sent. */
	if (wqe->packets <= 1 || (wqe->send_flags & IBV_SEND_INLINE))
		return IBV_WC_SUCCESS;
	return check_memory(qp, wqe);
}

void sim_requester_give_up(struct sim_qp *qp, enum ibv_wc_status status)
{
	sim_qp_complete_send(qp, status);
	if (qp->reliable || qp->device->quirks.send_errors_end_qp) {
		sim_qp_fail(qp);
	} else if (qp->state == IBV_QPS_RTS || qp->state == IBV_QPS_SQD) {
		/* Only the send queue of an unreliable QP is in error. */
		qp->state = IBV_QPS_SQE;
		/* What was not sent has used no PSN. */
		qp->req.psn = qp->req.sent_psn;
		qp->sq_draining = false;
		sim_engine_changed(qp->engine);
		sim_qp_wake_requester(qp);
	}
}

/* Whether each SGE's key is one, whatever its range. */
static bool keys_fit(const struct sim_qp *qp, const struct sim_send_wqe *wqe)
{
	for (unsigned int i = 0; i < wqe->num_sge; i++) {
		const struct sim_mr *mr = sim_mr_find(qp->device, SIM_KEY_LOCAL, wqe->sge[i].lkey);

		if (!mr || mr->pd != qp->pd)
			return false;
	}
	return true;
}

/* What a local error is called. */
static enum ibv_wc_status quirky(const struct sim_qp *qp, const struct sim_send_wqe *wqe,
				 enum ibv_wc_status status)
{
	const struct sim_quirks *quirks = &qp->device->quirks;

	if (quirks->bad_lkey_is_flush)
		return IBV_WC_WR_FLUSH_ERR;
	if (quirks->bad_lkey_is_operation_error && status == IBV_WC_LOC_PROT_ERR &&
	    !keys_fit(qp, wqe))
		return IBV_WC_LOC_QP_OP_ERR;
	return status;
}

__attribute__((noinline)) static void fail(struct sim_qp *qp, struct sim_send_wqe *wqe,
					   enum ibv_wc_status status)
{
	status = quirky(qp, wqe, status);
	wqe->status = (uint8_t)status;
	if (qp->device->quirks.local_errors_flush_all) {
		sim_qp_fail(qp);
		return;
	}
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
	if (wqe->info_flags & SIM_WR_RESPONSE) {
		wqe->credited = true;
		qp->req.reads_outstanding++;
	}
	return true;
}

__attribute__((noinline)) static void set_remote(struct sim_packet *packet,
						 const struct sim_send_wqe *wqe, uint32_t done)
{
	packet->remote_addr = wqe->remote_addr + done;
	packet->rkey = wqe->rkey;
	packet->dma_bytes = wqe->length - done;
	if (wqe->info_flags & SIM_WR_ATOMIC) {
		bool swaps = wqe->opcode == IBV_WR_ATOMIC_CMP_AND_SWP;

		packet->swap_add = swaps ? wqe->swap : wqe->compare_add;
		packet->compare = swaps ? wqe->compare_add : 0;
	}
}

/* The payload [done, done + bytes) of the message; false where its memory may not be read. */
__attribute__((always_inline)) static inline bool set_payload(struct sim_qp *qp,
							      const struct sim_send_wqe *wqe,
							      uint32_t done, uint32_t bytes,
							      struct sim_packet *packet,
							      struct sim_span *spans)
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

static uint8_t flags_of(struct sim_qp *qp, const struct sim_send_wqe *wqe,
			const struct sim_opcode_info *info)
{
	uint8_t flags = SIM_PACKET_MIGRATED;

	if ((info->flags & SIM_OP_COMPLETES) && (wqe->send_flags & IBV_SEND_SOLICITED))
		flags |= SIM_PACKET_SOLICITED;
	if (!qp->reliable)
		return flags;
	if ((info->flags & SIM_OP_END) || ++qp->req.since_ack_request >= SIM_ACK_REQUEST_EVERY) {
		flags |= SIM_PACKET_ACK_REQUEST;
		qp->req.since_ack_request = 0;
	}
	return flags;
}

/* Counts what is sent with a PSN, and moves on to the next WQE behind the last packet. */
static inline void sent(struct sim_qp *qp, const struct sim_send_wqe *wqe, uint32_t psn,
			uint32_t packets)
{
	struct sim_requester *req = &qp->req;

	if (psn == req->sent_psn)
		req->sent_psn = sim_psn_add(psn, packets);
	else
		qp->device->counters.retransmitted_packets++;
	req->offset += packets;
	if (req->offset >= wqe->packets) {
		req->next++;
		req->offset = 0;
	}
}

static void address(struct sim_qp *qp, const struct sim_send_wqe *wqe, uint32_t offset,
		    struct sim_packet *packet)
{
	packet->pkey = qp->pkey;
	packet->dest_qpn = qp->dest_qpn;
	packet->source_qpn = qp->number;
	packet->slid = qp->path.route.slid;
	packet->sl = qp->path.route.sl;
	packet->psn = sim_psn_add(wqe->first_psn, offset);
	packet->imm_data = wqe->imm_data;
	packet->xrc_srqn = wqe->xrc_srqn;
}

/* The request of a READ, from where its response has come to, of an atomic or ATOMIC WRITE. */
__attribute__((noinline)) static void send_response_request(struct sim_qp *qp,
							    struct sim_send_wqe *wqe)
{
	struct sim_packet packet = {
		.opcode = sim_opcode_request(qp->transport, wqe->opcode, true, true)};
	struct sim_span spans[SIM_SPANS_MAX];

	address(qp, wqe, wqe->answered, &packet);
	set_remote(&packet, wqe, wqe->answered * qp->mtu_bytes);
	if (wqe->opcode == IBV_WR_ATOMIC_WRITE &&
	    !set_payload(qp, wqe, 0, wqe->length, &packet, spans)) {
		fail(qp, wqe, IBV_WC_LOC_PROT_ERR);
		return;
	}
	packet.flags = flags_of(qp, wqe, &sim_opcodes[packet.opcode]);
	qp->req.offset = wqe->answered;
	sent(qp, wqe, packet.psn, wqe->packets - wqe->answered);
	sim_completer_watch(qp, false);
	sim_send_request(qp, &packet);
}

/* The next packet of a message that carries data. */
__attribute__((always_inline)) static inline void send_data(struct sim_qp *qp,
							    struct sim_send_wqe *wqe)
{
	uint32_t offset = qp->req.offset;
	uint32_t done = offset * qp->mtu_bytes;
	bool last = offset + 1 == wqe->packets;
	uint8_t opcode = sim_opcode_request(qp->transport, wqe->opcode, offset == 0, last);
	const struct sim_opcode_info *info = &sim_opcodes[opcode];
	struct sim_span spans[SIM_SPANS_MAX];
	struct sim_packet packet;

	packet.opcode = opcode;
	address(qp, wqe, offset, &packet);
	if (info->flags & SIM_OP_RETH)
		set_remote(&packet, wqe, done);
	if (info->flags & SIM_OP_IETH)
		packet.rkey = wqe->invalidate_rkey;
	if (!set_payload(qp, wqe, done, last ? wqe->length - done : qp->mtu_bytes, &packet,
			 spans)) {
		fail(qp, wqe, IBV_WC_LOC_PROT_ERR);
		return;
	}
	packet.flags = flags_of(qp, wqe, info);
	sent(qp, wqe, packet.psn, 1);
	if (qp->reliable)
		sim_completer_watch(qp, false);
	sim_send_request(qp, &packet);
	/* Nobody answers on an unreliable connection: the message is done when it is sent. */
	if (qp->type == IBV_QPT_UC && last && qp->sq.tail != qp->sq.head)
		sim_qp_complete_send(qp, IBV_WC_SUCCESS);
}

/* Whether the oldest send is still under way; not where it would be repeated, and is not (a quirk):
 * Linux drivers/infiniband/sw/rxe/rxe_req.c, req_check_sq_drain. */
static bool drains_oldest(const struct sim_qp *qp)
{
	const struct sim_send_wqe *wqe = sim_qp_send_wqe(qp, qp->sq.tail);

	if (qp->sq.tail == qp->sq.head || !wqe->started)
		return false;
	return !qp->device->quirks.draining_sends_nothing ||
	       qp->req.offset != sim_psn_distance(qp->comp.psn, wqe->first_psn);
}

/* All sends before the first unstarted one have ended. */
static void check_drained(struct sim_qp *qp)
{
	if (qp->state != IBV_QPS_SQD || !qp->sq_draining || qp->sq.tail != qp->req.next)
		return;
	if (drains_oldest(qp) || qp->req.ghosts)
		return;
	qp->sq_draining = false;
	if (qp->drain_event)
		sim_qp_event(qp, IBV_EVENT_SQ_DRAINED);
}

static bool bind_window(struct sim_qp *qp, const struct sim_send_wqe *wqe)
{
	const struct sim_mw_bind bind = {
		.old_rkey = wqe->bind_old_rkey,
		.new_rkey = wqe->rkey,
		.region_lkey = wqe->bind_lkey,
		.addr = wqe->remote_addr,
		.length = wqe->bind_length,
		.access = wqe->bind_access,
	};

	return sim_mw_bind(qp->device, qp->pd, qp->number, wqe->bind_mw, &bind);
}

/* What sends nothing is done in its turn, once, and ends when all before it has. */
__attribute__((noinline)) static void do_local(struct sim_qp *qp, struct sim_send_wqe *wqe)
{
	bool done =
		wqe->opcode == IBV_WR_BIND_MW
			? bind_window(qp, wqe)
			: sim_mw_invalidate(qp->device, qp->pd, qp->number, wqe->invalidate_rkey);

	if (!done) {
		fail(qp, wqe,
		     wqe->opcode == IBV_WR_LOCAL_INV &&
				     qp->device->quirks.bad_invalidation_is_operation_error
			     ? IBV_WC_LOC_QP_OP_ERR
			     : IBV_WC_MW_BIND_ERR);
		return;
	}
	wqe->done = true;
	qp->req.next++;
	if (qp->sq.tail + 1 == qp->req.next)
		sim_qp_complete_send(qp, IBV_WC_SUCCESS);
}

/* What was done stays so, when what is before it is repeated. */
static void repeat_local(struct sim_qp *qp, struct sim_send_wqe *wqe)
{
	if (wqe->opcode != IBV_WR_BIND_MW || !qp->device->quirks.repeated_bindings_fail) {
		qp->req.next++;
		return;
	}
	wqe->done = false;
	fail(qp, wqe, IBV_WC_MW_BIND_ERR);
}

__attribute__((always_inline)) static inline void send_one(struct sim_qp *qp)
{
	struct sim_send_wqe *wqe = sim_qp_send_wqe(qp, qp->req.next);

	if (!wqe->started && !start(qp, wqe))
		return;
	if (wqe->info_flags & SIM_WR_LOCAL) {
		if (wqe->done)
			repeat_local(qp, wqe);
		else
			do_local(qp, wqe);
		return;
	}
	if (wqe->info_flags & SIM_WR_RESPONSE) {
		send_response_request(qp, wqe);
	} else if (qp->type != IBV_QPT_UD) {
		send_data(qp, wqe);
	} else {
		enum ibv_wc_status status = sim_datagram_send(qp, wqe);

		if (status != IBV_WC_SUCCESS) {
			fail(qp, wqe, status);
			return;
		}
		sim_qp_complete_send(qp, IBV_WC_SUCCESS);
	}
}

/* Linux 6.1 drivers/infiniband/sw/rxe/rxe_req.c, rxe_requester: it does not see how far the completer
 * flushed, and takes its own place for the oldest send, or for the end of the queue. */
static bool flushes_sends(struct sim_qp *qp)
{
	struct sim_requester *req = &qp->req;
	bool behind = (req->ring_place ^ qp->sq.head) & sim_queue_rounded(qp->sq.max_wr);
	bool due = req->flush_due || behind;

	if (qp->state != IBV_QPS_ERR || !qp->device->quirks.errored_sends_may_wait)
		return true;
	req->flush_due = false;
	req->ring_place += behind;
	return due;
}

static void flush(struct sim_qp *qp)
{
	bool recvs = qp->state == IBV_QPS_ERR && qp->flush_recvs;

	if (recvs && qp->device->quirks.receives_flush_first)
		sim_qp_flush_recvs(qp);
	if (flushes_sends(qp))
		sim_qp_flush_sends(qp);
	if (recvs && !qp->device->quirks.receives_flush_first)
		sim_qp_flush_recvs(qp);
}

/* Whether what has begun goes on. */
static bool drains(const struct sim_qp *qp)
{
	return qp->state == IBV_QPS_SQD && !qp->device->quirks.draining_sends_nothing;
}

/* One for each send that a reset dropped: Linux 6.12 drivers/infiniband/sw/rxe/rxe_qp.c, rxe_qp_reset, puts
 * the requester back first and empties the queue then; what it finds there is an empty RDMA WRITE. */
__attribute__((noinline)) static void send_ghosts(struct sim_qp *qp)
{
	struct sim_requester *req = &qp->req;

	if (qp->type == IBV_QPT_UD) {
		req->ghosts = 0;
		sim_qp_fail(qp);
	}
	for (; req->ghosts; req->ghosts--) {
		const struct sim_send_wqe ghost = {.first_psn = req->psn};
		struct sim_packet packet = {
			.opcode = sim_opcode_request(qp->transport, IBV_WR_RDMA_WRITE, true, true),
			.flags = SIM_PACKET_MIGRATED | (qp->reliable ? SIM_PACKET_ACK_REQUEST : 0),
		};

		address(qp, &ghost, 0, &packet);
		req->psn = sim_psn_add(req->psn, 1);
		/* Nobody waits for the answer. */
		req->sent_psn = qp->comp.psn = req->psn;
		sim_send_request(qp, &packet);
	}
}

bool sim_requester_run(struct sim_qp *qp)
{
	unsigned int budget = SIM_BURST_PACKETS;

	if (qp->req.ghosts && qp->state == IBV_QPS_RTS && qp->sq.tail != qp->sq.head)
		send_ghosts(qp);
	if (qp->state == IBV_QPS_ERR || qp->state == IBV_QPS_SQE) {
		flush(qp);
		return false;
	}
	while ((qp->state == IBV_QPS_RTS || drains(qp)) && gate(qp) == GATE_OPEN) {
		if (budget-- == 0)
			return true;
		send_one(qp);
	}
	check_drained(qp);
	return false;
}

void sim_requester_rewind(struct sim_qp *qp, uint32_t psn)
{
	struct sim_requester *req = &qp->req;

	req->since_ack_request = 0;
	for (uint32_t i = qp->sq.tail; i != qp->sq.head; i++) {
		const struct sim_send_wqe *wqe = sim_qp_send_wqe(qp, i);

		if (!wqe->started)
			return;
		if (sim_psn_distance(psn, wqe->first_psn) < wqe->packets) {
			req->next = i;
			req->offset = sim_psn_distance(psn, wqe->first_psn);
			/* A WQE in error behind it is come to again. */
			req->stopped = false;
			break;
		}
	}
	sim_qp_wake_requester(qp);
}

void sim_requester_rnr_over(struct sim_timer *timer)
{
	struct sim_qp *qp =
		(struct sim_qp *)((char *)timer - offsetof(struct sim_qp, req.rnr_timer));

	qp->req.waits_rnr = false;
	if (sim_completer_jam(qp))
		return;
	if (qp->device->quirks.rnr_naks_stop_nothing)
		sim_requester_rewind(qp, qp->comp.psn);
	sim_qp_wake_requester(qp);
}
