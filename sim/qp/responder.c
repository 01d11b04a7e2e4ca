/* SPDX-License-Identifier: MIT */
/*
 * The responder: takes requests in PSN order, checks them, does them, and answers.
 *
 * Checks stand in the order in which they are made. Each gives a verdict; what a verdict means is
 * one row of sim_consequences.
 */
#include "sim/qp/qp.h"
#include "sim/qp/verdict.h"
#include "sim/wire/psn.h"

#include <string.h>

#define MESSAGE_BYTES_MAX (UINT32_C(1) << 31)

static void *remote(struct sim_qp *qp, uint32_t rkey, uint64_t addr, uint64_t length, int access)
{
	return sim_memory_at(&qp->remote_reach, SIM_KEY_REMOTE, rkey, addr, length, access);
}

static void use_pd(struct sim_qp *qp, uint32_t pd)
{
	if (qp->remote_reach.pd == pd)
		return;
	qp->remote_reach.pd = pd;
	qp->remote_reach.epoch = 0;
}

static void send_nak(struct sim_qp *qp, uint8_t syndrome)
{
	qp->resp.nak_pending = true;
	qp->resp.nak_outstanding = true;
	qp->resp.nak_syndrome = syndrome;
	qp->resp.nak_psn = qp->resp.psn;
	sim_qp_wake_responder(qp);
}

/* Forgets the message in progress; its receive WQE is the next message's. */
static void abandon(struct sim_qp *qp)
{
	qp->resp.in_message = 0;
	qp->resp.received = 0;
	qp->resp.recv_taken = false;
}

static enum sim_verdict check_psn_rc(struct sim_qp *qp, const struct sim_packet *packet)
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

	if (packet->psn != resp->psn) {
		abandon(qp);
		resp->dropping = true;
	}
	resp->psn = sim_psn_add(packet->psn, 1);
	if (flags & SIM_OP_START)
		resp->dropping = resp->jammed;
	return resp->dropping ? SIM_DROP : SIM_ACCEPT;
}

/* A message's packets are FIRST, MIDDLE..., LAST of one kind, or ONLY. */
static bool in_sequence(const struct sim_responder *resp, uint32_t flags)
{
	return flags & SIM_OP_START ? !resp->in_message : resp->in_message == (flags & SIM_OP_KIND);
}

static bool grants(const struct sim_qp *qp, unsigned int access)
{
	return qp->access & access;
}

/* The packets of a message before its last are full, and a last one carries at least a byte. */
static bool payload_fits(const struct sim_qp *qp, uint32_t bytes, uint32_t flags)
{
	if ((flags & SIM_OP_SEND) && qp->device->quirks.packet_sizes_unchecked)
		return true;
	if (!(flags & SIM_OP_END))
		return bytes == qp->mtu_bytes;
	return bytes <= qp->mtu_bytes && (bytes || (flags & SIM_OP_START));
}

/* Where no byte is touched, nothing is checked. */
static bool needs_no_memory(const struct sim_qp *qp, uint32_t bytes)
{
	return bytes == 0 && !qp->device->quirks.empty_accesses_checked;
}

static enum sim_verdict check_send(struct sim_qp *qp, const struct sim_packet *packet,
				   uint32_t flags)
{
	uint64_t total = (uint64_t)qp->resp.received + packet->payload_bytes;

	if ((flags & SIM_OP_RECV) && !sim_qp_take_recv(qp))
		return SIM_NO_RECEIVE;
	if (!payload_fits(qp, packet->payload_bytes, flags))
		return SIM_INVALID_REQUEST;
	return total > qp->resp.recv->length ? SIM_TOO_LONG : SIM_ACCEPT;
}

/* Remote memory is checked whole, when its address comes; nothing at all where no byte is. */
__attribute__((noinline)) static enum sim_verdict check_write(struct sim_qp *qp,
							      const struct sim_packet *packet,
							      uint32_t flags)
{
	uint32_t announced = flags & SIM_OP_RETH ? packet->dma_bytes : qp->resp.length;
	uint64_t total = (uint64_t)qp->resp.received + packet->payload_bytes;
	bool fits = total <= announced && (total == announced) == !!(flags & SIM_OP_END) &&
		    payload_fits(qp, packet->payload_bytes, flags);

	if (!grants(qp, IBV_ACCESS_REMOTE_WRITE))
		return SIM_INVALID_REQUEST;
	if ((flags & SIM_OP_RECV) && !sim_qp_take_recv(qp))
		return SIM_NO_RECEIVE;
	if (announced > MESSAGE_BYTES_MAX || (!fits && !qp->device->quirks.packet_sizes_unchecked))
		return SIM_INVALID_REQUEST;
	if ((flags & SIM_OP_RETH) && !needs_no_memory(qp, announced) &&
	    !remote(qp, packet->rkey, packet->remote_addr, announced, IBV_ACCESS_REMOTE_WRITE))
		return SIM_ACCESS_DENIED;
	return fits ? SIM_ACCEPT : SIM_INVALID_REQUEST;
}

__attribute__((noinline)) static enum sim_verdict check_read(struct sim_qp *qp,
							     const struct sim_packet *packet)
{
	if (!grants(qp, IBV_ACCESS_REMOTE_READ) ||
	    qp->resp.resources_new >= qp->resp.resource_size ||
	    packet->dma_bytes > MESSAGE_BYTES_MAX || packet->payload_bytes)
		return SIM_INVALID_REQUEST;
	if (needs_no_memory(qp, packet->dma_bytes))
		return SIM_ACCEPT;
	return remote(qp, packet->rkey, packet->remote_addr, packet->dma_bytes,
		      IBV_ACCESS_REMOTE_READ)
		       ? SIM_ACCEPT
		       : SIM_ACCESS_DENIED;
}

/* ATOMIC WRITE asks for the right to write: Linux drivers/infiniband/sw/rxe/rxe_resp.c, check_rkey.
 */
static int atomic_access(uint32_t flags)
{
	return flags & SIM_OP_STORE ? IBV_ACCESS_REMOTE_WRITE : IBV_ACCESS_REMOTE_ATOMIC;
}

/* Whether an atomic has the payload that it must have, on a device that knows it. */
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
	const int access = atomic_access(flags);

	if (!grants(qp, (unsigned int)access) || qp->resp.resources_new >= qp->resp.resource_size ||
	    !atomic_fits(qp, packet, flags) || packet->remote_addr % SIM_ATOMIC_BYTES)
		return SIM_INVALID_REQUEST;
	return remote(qp, packet->rkey, packet->remote_addr, SIM_ATOMIC_BYTES, access)
		       ? SIM_ACCEPT
		       : SIM_ACCESS_DENIED;
}

__attribute__((always_inline)) static inline enum sim_verdict do_send(
	struct sim_qp *qp, const struct sim_packet *packet)
{
	struct sim_span to[SIM_SPANS_MAX];
	int count;

	if (packet->payload_bytes == 0)
		return SIM_ACCEPT;
	count = sim_qp_scatter(qp, qp->resp.recv, qp->resp.received, packet->payload_bytes, to);
	if (count < 0 ||
	    sim_copy_spans(qp->device, packet->spans, packet->span_count, to, (unsigned int)count))
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
	to.base = remote(qp, resp->rkey, resp->remote_addr + resp->received, packet->payload_bytes,
			 IBV_ACCESS_REMOTE_WRITE);
	to.length_bytes = packet->payload_bytes;
	if (!to.base || sim_copy_spans(qp->device, packet->spans, packet->span_count, &to, 1))
		return SIM_ACCESS_DENIED;
	return SIM_ACCEPT;
}

static struct sim_resource *push_resource(struct sim_qp *qp, const struct sim_packet *packet,
					  uint32_t packets)
{
	struct sim_responder *resp = &qp->resp;
	struct sim_resource *resource = &resp->resources[resp->resource_head];

	if (++resp->resource_head == resp->resource_size)
		resp->resource_head = 0;
	if (resp->resource_count < resp->resource_size)
		resp->resource_count++;
	/* Only a repeated answer can still stand there, and its asker has gone on. */
	if (resource->pending)
		resp->resources_pending--;
	resp->resources_pending++;
	resp->resources_new++;
	*resource = (struct sim_resource){
		.remote_addr = packet->remote_addr,
		.rkey = packet->rkey,
		.length = packet->dma_bytes,
		.first_psn = packet->psn,
		.packets = packets,
		.end = packets,
		.limit = packet->dma_bytes,
		.msn = (resp->msn + 1) & 0xffffff,
		.pd = qp->remote_reach.pd,
		.opcode = packet->opcode,
		.pending = true,
	};
	sim_qp_wake_responder(qp);
	return resource;
}

static uint32_t response_packets(const struct sim_qp *qp, uint32_t bytes)
{
	return bytes ? (bytes - 1) / qp->mtu_bytes + 1 : 1;
}

__attribute__((noinline)) static enum sim_verdict do_atomic(struct sim_qp *qp,
							    const struct sim_packet *packet,
							    uint32_t flags)
{
	const struct sim_memory_ops *memory = &qp->engine->host.memory;
	void *target = remote(qp, packet->rkey, packet->remote_addr, SIM_ATOMIC_BYTES,
			      atomic_access(flags));
	uint64_t original = 0;
	uint64_t value;
	const struct sim_span to = {&value, sizeof(value)};

	if (!target ||
	    (!(flags & SIM_OP_STORE) && memory->copy(&original, target, sizeof(original))))
		return SIM_ACCESS_DENIED;
	if (flags & SIM_OP_STORE) {
		if (sim_copy_spans(qp->device, packet->spans, packet->span_count, &to, 1))
			return SIM_ACCESS_DENIED;
	} else if (flags & SIM_OP_ADD)
		value = original + packet->swap_add;
	else
		value = original == packet->compare ? packet->swap_add : original;
	if (memory->copy(target, &value, sizeof(value)))
		return SIM_ACCESS_DENIED;
	push_resource(qp, packet, 1)->original = original;
	return SIM_ACCEPT;
}

/* How a receive is told that a window was invalidated. */
static unsigned int invalidated(const struct sim_qp *qp)
{
	return qp->device->quirks.invalidation_told_as_checksum ? IBV_WC_IP_CSUM_OK
								: IBV_WC_WITH_INV;
}

static void finish_message(struct sim_qp *qp, const struct sim_packet *packet, uint32_t flags)
{
	struct sim_responder *resp = &qp->resp;
	bool write = flags & SIM_OP_WRITE;
	unsigned int wc_flags = qp->device->quirks.grh_flag_on_connections ? IBV_WC_GRH : 0;

	/* No opcode has both. */
	if (flags & (SIM_OP_IMMDT | SIM_OP_IETH))
		wc_flags |= flags & SIM_OP_IMMDT ? IBV_WC_WITH_IMM : invalidated(qp);
	if (flags & SIM_OP_COMPLETES) {
		qp->device->counters.receives_completed++;
		sim_qp_complete_recv(qp, packet, IBV_WC_SUCCESS,
				     write ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV,
				     write ? resp->length : resp->received, wc_flags);
	}
	resp->msn = (resp->msn + 1) & 0xffffff;
	abandon(qp);
}

/* A SEND or WRITE packet has been done. */
static void move_on(struct sim_qp *qp, const struct sim_packet *packet, uint32_t flags)
{
	struct sim_responder *resp = &qp->resp;

	resp->received += packet->payload_bytes;
	resp->in_message = flags & SIM_OP_KIND;
	if (flags & SIM_OP_END)
		finish_message(qp, packet, flags);
	if (!qp->reliable)
		return;
	/* A completion that was lost has ended the QP, and the message is not acknowledged: Linux
	 * drivers/infiniband/sw/rxe/rxe_resp.c, RESPST_ERR_CQ_OVERFLOW. */
	if (qp->state == IBV_QPS_ERR) {
		if (!resp->ack_pending)
			resp->ack_psn = packet->psn;
		return;
	}
	resp->ack_psn = packet->psn;
	resp->psn = sim_psn_add(resp->psn, 1);
	if (packet->flags & SIM_PACKET_ACK_REQUEST) {
		resp->ack_pending = true;
		resp->ack_repeated = false;
		sim_qp_wake_responder(qp);
	}
}

__attribute__((always_inline)) static inline enum sim_verdict execute(
	struct sim_qp *qp, const struct sim_packet *packet, uint32_t flags)
{
	struct sim_responder *resp = &qp->resp;
	enum sim_verdict verdict = SIM_ACCEPT;
	uint32_t packets = 1;

	if (flags & (SIM_OP_SEND | SIM_OP_WRITE)) {
		verdict = flags & SIM_OP_SEND ? do_send(qp, packet) : do_write(qp, packet, flags);
		if (verdict == SIM_ACCEPT && (flags & SIM_OP_IETH) &&
		    !sim_mw_invalidate(qp->device, qp->remote_reach.pd, qp->number, packet->rkey))
			verdict = SIM_BAD_INVALIDATION;
		if (verdict == SIM_ACCEPT)
			move_on(qp, packet, flags);
		return verdict;
	}
	if (flags & SIM_OP_READ) {
		packets = response_packets(qp, packet->dma_bytes);
		push_resource(qp, packet, packets);
	} else {
		verdict = do_atomic(qp, packet, flags);
	}
	if (verdict == SIM_ACCEPT) {
		resp->psn = sim_psn_add(resp->psn, packets);
		resp->msn = (resp->msn + 1) & 0xffffff;
	}
	return verdict;
}

/* The SRQ of an XRC message, and the PD that comes with it. */
__attribute__((noinline)) static bool enter_srq(struct sim_qp *qp, uint32_t number)
{
	struct sim_srq *srq = sim_table_find(&qp->device->srqs, number);

	if (!srq || srq->xrcd != qp->xrcd)
		return false;
	qp->resp.srq = srq;
	qp->resp.recv_reach = &srq->reach;
	qp->recv_cq = srq->cq;
	use_pd(qp, srq->pd);
	return true;
}

static enum sim_verdict judge(struct sim_qp *qp, const struct sim_packet *packet, uint32_t flags)
{
	enum sim_verdict verdict =
		qp->reliable ? check_psn_rc(qp, packet) : check_psn_uc(qp, packet, flags);

	if (verdict != SIM_ACCEPT)
		return verdict;
	if (!in_sequence(&qp->resp, flags))
		return SIM_INVALID_REQUEST;
	if (qp->xrcd && !qp->resp.recv_held && !enter_srq(qp, packet->xrc_srqn))
		return SIM_INVALID_REQUEST;
	if (flags & SIM_OP_SEND)
		return check_send(qp, packet, flags);
	if (flags & SIM_OP_WRITE)
		return check_write(qp, packet, flags);
	if (flags & SIM_OP_READ)
		return check_read(qp, packet);
	return flags & SIM_OP_ATOMIC ? check_atomic(qp, packet, flags) : SIM_INVALID_REQUEST;
}

static struct sim_resource *find_resource(struct sim_qp *qp, uint32_t psn)
{
	struct sim_responder *resp = &qp->resp;

	for (unsigned int i = 0; i < resp->resource_count; i++) {
		struct sim_resource *resource = &resp->resources[i];

		if (((psn - resource->first_psn) & SIM_PSN_MASK) < resource->packets)
			return resource;
	}
	return NULL;
}

/* A READ may come again from its middle; it must ask for what it asked for at first. */
static bool same_request(const struct sim_qp *qp, const struct sim_resource *resource,
			 const struct sim_packet *packet, uint32_t offset)
{
	uint64_t done = (uint64_t)offset * qp->mtu_bytes;

	if (resource->opcode != packet->opcode || resource->rkey != packet->rkey)
		return false;
	if (sim_opcodes[packet->opcode].flags & SIM_OP_ATOMIC)
		return resource->remote_addr == packet->remote_addr;
	return resource->remote_addr + done == packet->remote_addr &&
	       packet->dma_bytes <= resource->length - done;
}

/* A part of what was asked for at first, wherever it begins (a quirk): Linux
 * drivers/infiniband/sw/rxe/rxe_resp.c, duplicate_request. */
static bool part_of_request(struct sim_resource *resource, const struct sim_packet *packet,
			    uint32_t before_bytes)
{
	uint64_t from = packet->remote_addr - resource->remote_addr;

	if (resource->opcode != packet->opcode || resource->rkey != packet->rkey ||
	    from > resource->length || packet->dma_bytes > resource->length - from)
		return false;
	resource->remote_addr = packet->remote_addr - before_bytes;
	return true;
}

static void replay(struct sim_qp *qp, const struct sim_packet *packet, uint32_t flags)
{
	struct sim_resource *resource = find_resource(qp, packet->psn);
	uint32_t offset;

	if (!resource)
		return;
	offset = (packet->psn - resource->first_psn) & SIM_PSN_MASK;
	if (!same_request(qp, resource, packet, offset) &&
	    !(flags & SIM_OP_READ && qp->device->quirks.repeated_reads_may_differ &&
	      part_of_request(resource, packet, offset * qp->mtu_bytes)))
		return;
	resource->next = offset;
	resource->restarted = true;
	resource->limit = offset * qp->mtu_bytes + packet->dma_bytes;
	resource->end =
		offset + (flags & SIM_OP_READ ? response_packets(qp, packet->dma_bytes) : 1);
	if (!resource->pending)
		qp->resp.resources_pending++;
	else if (!resource->replayed)
		qp->resp.resources_new--;
	resource->pending = true;
	resource->replayed = true;
	sim_qp_wake_responder(qp);
}

/* Done before: acknowledged or answered again, never executed again. */
static void repeat(struct sim_qp *qp, const struct sim_packet *packet, uint32_t flags)
{
	qp->device->counters.duplicate_requests++;
	if (flags & (SIM_OP_READ | SIM_OP_ATOMIC)) {
		replay(qp, packet, flags);
	} else {
		if (!qp->resp.ack_pending)
			qp->resp.ack_repeated = true;
		qp->resp.repeated_psn = packet->psn;
		qp->resp.ack_pending = true;
		sim_qp_wake_responder(qp);
	}
}

/* The receive in progress, or an event, tells the program; the NAK tells the peer. */
static void refuse(struct sim_qp *qp, const struct sim_packet *packet, enum sim_verdict verdict)
{
	const struct sim_consequence consequence = sim_consequence_of(verdict, &qp->device->quirks);
	bool taken = qp->resp.recv_taken;

	/* A quirk: what is refused here counts as done there. */
	if (consequence.syndrome == (SIM_AETH_ACK | SIM_ACK_CREDIT_NONE))
		qp->resp.msn = (qp->resp.msn + 1) & 0xffffff;
	if (taken)
		sim_qp_complete_recv(qp, packet, consequence.recv_status, IBV_WC_RECV, 0, 0);
	abandon(qp);
	/* A completion that was lost has ended the QP: see move_on(). */
	if (qp->state == IBV_QPS_ERR)
		return;
	if (qp->reliable)
		send_nak(qp, consequence.syndrome);
	sim_qp_fail(qp);
	if (!taken)
		sim_qp_event(qp, consequence.event);
}

/* What an unreliable connection does not accept costs the message and nothing else; its own
 * receive WR's fault is its own. */
static void refuse_uc(struct sim_qp *qp, const struct sim_packet *packet, enum sim_verdict verdict)
{
	if (sim_consequences[verdict].fatal_on_uc) {
		refuse(qp, packet, verdict);
		return;
	}
	/* Linux drivers/infiniband/sw/rxe/rxe_resp.c, RESPST_ERR_RKEY_VIOLATION: on an SRQ the receive
	 * is told. */
	if (qp->srq && qp->resp.recv_taken &&
	    (verdict == SIM_ACCESS_DENIED || verdict == SIM_INVALID_REQUEST)) {
		sim_qp_complete_recv(qp, packet,
				     verdict == SIM_ACCESS_DENIED ? IBV_WC_REM_ACCESS_ERR
								  : IBV_WC_REM_INV_REQ_ERR,
				     IBV_WC_RECV, 0, 0);
		abandon(qp);
		qp->resp.dropping = true;
		return;
	}
	/* Linux drivers/infiniband/sw/rxe/rxe_resp.c, check_op_seq: it waits for that message's end. */
	if (verdict == SIM_NO_RECEIVE && qp->resp.in_message == SIM_OP_WRITE)
		qp->resp.jammed = qp->device->quirks.cut_writes_jam_uc;
	qp->device->counters.dropped_packets++;
	abandon(qp);
	qp->resp.dropping = true;
}

static void refuse_rc(struct sim_qp *qp, const struct sim_packet *packet, uint32_t flags,
		      enum sim_verdict verdict)
{
	struct sim_counters *counters = &qp->device->counters;

	switch (verdict) {
	case SIM_DUPLICATE:
		repeat(qp, packet, flags);
		break;
	case SIM_OUT_OF_SEQUENCE:
		counters->out_of_sequence_requests++;
		if (qp->resp.nak_outstanding)
			break;
		counters->sequence_naks_sent++;
		/* An RNR NAK stands before it (a quirk). */
		if (qp->resp.nak_pending)
			sim_responder_run(qp);
		send_nak(qp, sim_consequences[verdict].syndrome);
		break;
	case SIM_NO_RECEIVE:
		counters->rnr_naks_sent++;
		send_nak(qp, (uint8_t)(sim_consequences[verdict].syndrome |
				       (qp->min_rnr_timer & SIM_AETH_VALUE)));
		if (qp->device->quirks.rnr_naks_stop_nothing)
			qp->resp.nak_outstanding = false;
		break;
	default:
		refuse(qp, packet, verdict);
	}
}

void sim_responder_receive(struct sim_qp *qp, const struct sim_packet *packet)
{
	uint32_t flags = sim_opcodes[packet->opcode].flags;
	enum sim_verdict verdict;

	if (!qp->resp.established) {
		qp->resp.established = true;
		if (qp->state == IBV_QPS_RTR)
			sim_qp_event(qp, IBV_EVENT_COMM_EST);
	}
	verdict = judge(qp, packet, flags);
	if (verdict == SIM_ACCEPT)
		verdict = execute(qp, packet, flags);
	if (verdict == SIM_ACCEPT)
		return;
	if (qp->reliable)
		refuse_rc(qp, packet, flags, verdict);
	else
		refuse_uc(qp, packet, verdict);
}

static void answer(struct sim_qp *qp, struct sim_packet *packet)
{
	packet->flags |= SIM_PACKET_MIGRATED;
	packet->pkey = qp->pkey;
	packet->dest_qpn = qp->dest_qpn;
	packet->source_qpn = qp->number;
	sim_send_response(qp, packet);
}

static void answer_aeth(struct sim_qp *qp, uint8_t syndrome, uint32_t psn)
{
	struct sim_packet packet;

	packet.opcode = (uint8_t)(SIM_RC_ACK | qp->transport);
	packet.flags = qp->resp.ack_repeated ? SIM_PACKET_REPEATED : 0;
	packet.repeated_psn = qp->resp.repeated_psn;
	packet.span_count = 0;
	packet.payload_bytes = 0;
	packet.spans = NULL;
	packet.syndrome = syndrome;
	packet.psn = psn;
	packet.msn = qp->resp.msn;
	answer(qp, &packet);
}

/* ATOMIC WRITE's is the response to a READ of nothing: Linux drivers/infiniband/sw/rxe/rxe_resp.c,
 * send_read_response_ack. */
static void answer_atomic(struct sim_qp *qp, const struct sim_resource *resource)
{
	const bool store = sim_opcodes[resource->opcode].flags & SIM_OP_STORE;
	struct sim_packet packet = {
		.opcode = (uint8_t)((store ? SIM_RC_READ_RESPONSE_ONLY : SIM_RC_ATOMIC_ACK) |
				    qp->transport),
		.syndrome = SIM_AETH_ACK | SIM_ACK_CREDIT_NONE,
		.psn = resource->first_psn,
		.msn = resource->msn,
		.original = resource->original,
	};

	answer(qp, &packet);
}

/* One packet of a read response; false where the memory is no longer to be read. */
static bool answer_read(struct sim_qp *qp, struct sim_resource *resource, bool first)
{
	uint32_t done = resource->next * qp->mtu_bytes;
	bool last = resource->next + 1 == resource->end;
	uint32_t bytes = resource->limit - done;
	struct sim_span span;
	struct sim_packet packet = {
		.opcode = sim_opcode_read_response(qp->transport, first, last),
		.syndrome = SIM_AETH_ACK | SIM_ACK_CREDIT_NONE,
		.psn = sim_psn_add(resource->first_psn, resource->next),
		.msn = resource->msn,
		.spans = &span,
	};

	if (bytes > qp->mtu_bytes)
		bytes = qp->mtu_bytes;
	if (bytes) {
		use_pd(qp, resource->pd);
		span.base = remote(qp, resource->rkey, resource->remote_addr + done, bytes,
				   IBV_ACCESS_REMOTE_READ);
		span.length_bytes = bytes;
		if (!span.base)
			return false;
		packet.span_count = 1;
		packet.payload_bytes = bytes;
	}
	resource->next++;
	answer(qp, &packet);
	return true;
}

static void settle(struct sim_qp *qp, struct sim_resource *resource)
{
	resource->pending = false;
	qp->resp.resources_pending--;
	if (!resource->replayed)
		qp->resp.resources_new--;
}

/* The memory of a READ is gone: neither it nor what came after it is answered. */
static void cannot_serve(struct sim_qp *qp, const struct sim_resource *resource)
{
	struct sim_responder *resp = &qp->resp;

	for (unsigned int i = 0; i < resp->resource_count; i++)
		resp->resources[i].pending = false;
	resp->resources_pending = 0;
	resp->resources_new = 0;
	resp->psn = sim_psn_add(resource->first_psn, resource->next);
	refuse(qp, NULL, SIM_ACCESS_DENIED);
}

/* A duplicate's ACK is of an atomic too, if that came last, and then of no old connection. */
static void note_atomic(struct sim_qp *qp, uint32_t psn)
{
	struct sim_responder *resp = &qp->resp;
	uint32_t before = sim_psn_add(qp->rq_psn, SIM_PSN_MASK);
	bool is_old =
		sim_psn_distance(resp->ack_psn, before) >= sim_psn_distance(resp->psn, before);

	if (is_old || sim_psn_diff(psn, resp->ack_psn) > 0)
		resp->ack_psn = psn;
}

/* Answers one READ or atomic as far as the budget goes. */
static void serve(struct sim_qp *qp, struct sim_resource *resource, unsigned int *budget)
{
	bool first = resource->next == 0 || resource->restarted;

	if (sim_opcodes[resource->opcode].flags & SIM_OP_ATOMIC) {
		settle(qp, resource);
		answer_atomic(qp, resource);
		if (qp->device->quirks.acks_of_old_connections && !qp->resp.ack_pending)
			note_atomic(qp, resource->first_psn);
		--*budget;
		return;
	}
	for (; resource->next < resource->end && *budget; --*budget) {
		if (!answer_read(qp, resource, first)) {
			cannot_serve(qp, resource);
			return;
		}
		first = false;
		resource->restarted = false;
	}
	if (resource->next >= resource->end)
		settle(qp, resource);
}

/* READs and atomics in the order in which they came. */
static void serve_all(struct sim_qp *qp, unsigned int *budget)
{
	struct sim_responder *resp = &qp->resp;
	unsigned int at = resp->resource_count < resp->resource_size ? 0 : resp->resource_head;

	for (unsigned int i = 0; i < resp->resource_count && resp->resources_pending; i++) {
		struct sim_resource *resource = &resp->resources[at];

		if (++at == resp->resource_size)
			at = 0;
		if (!resource->pending)
			continue;
		if (*budget == 0)
			return;
		/* A response acknowledges what came before it. */
		if (sim_psn_diff(resource->first_psn, resp->ack_psn) > 0)
			resp->ack_pending = false;
		serve(qp, resource, budget);
		if (resource->pending)
			return;
	}
}

bool sim_responder_run(struct sim_qp *qp)
{
	struct sim_responder *resp = &qp->resp;
	unsigned int budget = SIM_BURST_PACKETS;

	if (resp->resources_pending)
		serve_all(qp, &budget);
	if (resp->resources_pending)
		return true;
	/* A NAK acknowledges what stands before its PSN (and by a quirk the ACK may be of more). */
	if (resp->ack_pending &&
	    (!resp->nak_pending || sim_psn_diff(resp->ack_psn, resp->nak_psn) >= 0))
		answer_aeth(qp, SIM_AETH_ACK | SIM_ACK_CREDIT_NONE, resp->ack_psn);
	resp->ack_pending = false;
	resp->ack_repeated = false;
	if (resp->nak_pending)
		answer_aeth(qp, resp->nak_syndrome, resp->nak_psn);
	resp->nak_pending = false;
	return false;
}
