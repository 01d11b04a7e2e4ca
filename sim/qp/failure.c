/* SPDX-License-Identifier: MIT */
#include "sim/qp/failure.h"

#include "sim/qp/private.h"
#include "sim/wire/psn.h"

#include <stdlib.h>
#include <verbena/explain.h>

/* Failures are rare: the record is allocated with the first one. NULL if memory is out. */
static struct sim_failures *record_of(struct sim_qp *qp)
{
	if (!qp->failures)
		qp->failures = calloc(1, sizeof(*qp->failures));
	return qp->failures;
}

void sim_failure_forget(struct sim_qp *qp)
{
	free(qp->failures);
	qp->failures = NULL;
}

const struct sim_port *sim_failure_way(struct sim_qp *qp)
{
	if (qp->type == IBV_QPT_UD || !qp->path.source)
		return NULL;
	qp->engine->outlet->find_way(qp->engine, &qp->path);
	return qp->path.dest;
}

struct sim_qp *sim_failure_peer(struct sim_qp *qp)
{
	const struct sim_port *port = sim_failure_way(qp);
	struct sim_qp *peer = port ? sim_table_find(&port->device->qps, qp->dest_qpn) : NULL;

	return peer && peer->port_num == port->number ? peer : NULL;
}

/* A finding of this side, with the name of the peer. */
static struct sim_finding finding_of(struct sim_qp *qp, struct vb_why why)
{
	const struct sim_port *port = sim_failure_way(qp);

	return (struct sim_finding){
		.why = why,
		.peer = port ? port->device : NULL,
		.peer_qpn = qp->dest_qpn,
	};
}

void sim_failure_find(struct sim_qp *qp, const struct sim_finding *finding)
{
	struct sim_failures *record = record_of(qp);

	if (record)
		record->found = *finding;
}

static void find(struct sim_qp *qp, struct vb_why why)
{
	const struct sim_finding finding = finding_of(qp, why);

	sim_failure_find(qp, &finding);
}

/* --- sends that fail here --- */

static struct vb_why operation_why(const struct sim_qp *qp, const struct sim_send_wqe *wqe)
{
	enum vb_reason reason = VB_WHY_OPERATION_NO_READS;

	if (!(wqe->info.flags & SIM_WR_LEGAL))
		reason = VB_WHY_OPERATION_TYPE;
	else if (qp->type == IBV_QPT_UD)
		reason = VB_WHY_OPERATION_AH;
	else if (wqe->opcode == IBV_WR_ATOMIC_WRITE && !qp->device->profile->atomic_write)
		reason = VB_WHY_OPERATION_ATOMIC_WRITE;
	return (struct vb_why){reason, {qp->type, wqe->opcode}};
}

static struct vb_why length_why(const struct sim_qp *qp, const struct sim_send_wqe *wqe)
{
	const bool inlined = wqe->send_flags & IBV_SEND_INLINE;
	const uint64_t bytes = inlined ? wqe->length : sim_take_sges(NULL, wqe->sge, wqe->num_sge);
	const struct sim_profile *profile = qp->device->profile;

	if (wqe->info.flags & SIM_WR_RESPONSE && bytes <= profile->max_message_bytes)
		return (struct vb_why){VB_WHY_LENGTH_ATOMIC, {bytes, wqe->opcode}};
	if (qp->type == IBV_QPT_UD && bytes <= profile->max_message_bytes)
		return (struct vb_why){VB_WHY_LENGTH_DATAGRAM,
				       {bytes, sim_mtu_bytes(wqe->ud.ah->path.source->mtu)}};
	return (struct vb_why){VB_WHY_LENGTH_MESSAGE, {bytes, profile->max_message_bytes}};
}

static struct vb_why binding_why(const struct sim_qp *qp, const struct sim_send_wqe *wqe)
{
	const struct sim_mw_bind bind = {
		.old_rkey = wqe->bind.old_rkey,
		.new_rkey = wqe->rkey,
		.region_lkey = wqe->bind.lkey,
		.addr = wqe->remote_addr,
		.length = wqe->bind.length,
		.access = wqe->bind.access,
	};

	if (wqe->opcode != IBV_WR_BIND_MW)
		return sim_mw_invalidate_why(qp->device, wqe->invalidate_rkey);
	if (wqe->done)
		return (struct vb_why){.reason = VB_WHY_BIND_REPEATED};
	return sim_mw_bind_why(qp->device, qp->pd, wqe->bind.mw, &bind);
}

void sim_failure_find_local(struct sim_qp *qp, const struct sim_send_wqe *wqe,
			    enum ibv_wc_status status)
{
	struct sim_failures *record = record_of(qp);
	struct vb_why why;

	if (!record)
		return;
	switch (status) {
	case IBV_WC_LOC_QP_OP_ERR:
		why = operation_why(qp, wqe);
		break;
	case IBV_WC_LOC_LEN_ERR:
		why = length_why(qp, wqe);
		break;
	case IBV_WC_MW_BIND_ERR:
		why = binding_why(qp, wqe);
		break;
	default:
		why = sim_sges_why(&qp->sq_reach, wqe->sge, wqe->num_sge, 0, "send");
	}
	record->waiting = record->found = finding_of(qp, why);
}

void sim_failure_recall(struct sim_qp *qp)
{
	if (qp->failures)
		qp->failures->found = qp->failures->waiting;
}

void sim_failure_find_store(struct sim_qp *qp, const struct sim_send_wqe *wqe,
			    const struct sim_packet *packet)
{
	struct vb_why why =
		sim_sges_why(&qp->sq_reach, wqe->sge, wqe->num_sge, IBV_ACCESS_LOCAL_WRITE, "send");

	if (why.reason == VB_WHY_LKEY_UNMAPPED && !sim_payload_is_readable(qp, packet))
		why = (struct vb_why){VB_WHY_RESPONSE_UNREADABLE, {packet->psn}};
	find(qp, why);
}

/* --- sends that fail by answers, or by their lack --- */

void sim_failure_find_retries(struct sim_qp *qp, enum vb_reason reason)
{
	const uint64_t wait_ns = sim_wait_ack_deadline(qp) - sim_clock_now_ns(&qp->engine->clock);
	struct sim_finding finding =
		finding_of(qp, (struct vb_why){reason,
					       {qp->comp.psn, qp->comp.timeouts, wait_ns,
						qp->timeout, qp->retry_cnt, qp->port_num}});

	if (reason == VB_WHY_RETRY_TIMEOUT && !sim_port_is_up(qp->path.source))
		finding.why.reason = VB_WHY_RETRY_PORT_DOWN;
	/* A peer that answers later requests is there. */
	else if (reason != VB_WHY_RETRY_RESPONSE)
		sim_diagnose(qp, &finding);
	sim_failure_find(qp, &finding);
}

void sim_failure_find_rnr(struct sim_qp *qp)
{
	struct sim_finding finding =
		finding_of(qp, (struct vb_why){VB_WHY_RNR_RETRY,
					       {qp->comp.psn, qp->rnr_retry + 1u, qp->rnr_retry}});
	const struct sim_qp *peer;

	peer = sim_failure_peer(qp);
	if (peer)
		finding.peer_why = (struct vb_why){VB_WHY_PEER_NO_RECEIVE, {qp->comp.psn}};
	if (peer && peer->late && peer->late->refused)
		finding.peer_why = (struct vb_why){VB_WHY_PEER_REFUSES_FIRST,
						   {qp->comp.psn, sim_qp_receives(peer)}};
	sim_failure_find(qp, &finding);
}

static struct vb_why nak_why(const struct sim_send_wqe *wqe, uint32_t psn,
			     enum ibv_wc_status status)
{
	struct vb_why why = {VB_WHY_NAK_INVALID_REQUEST, {psn, wqe->opcode, wqe->length}};

	if (status == IBV_WC_REM_ACCESS_ERR) {
		why = (struct vb_why){VB_WHY_NAK_ACCESS,
				      {psn, wqe->opcode, wqe->rkey, wqe->remote_addr, wqe->length}};
	} else if (status == IBV_WC_REM_OP_ERR) {
		why.reason = VB_WHY_NAK_OPERATION;
	} else if (status == IBV_WC_REM_INV_RD_REQ_ERR) {
		why.reason = VB_WHY_NAK_DATAGRAM;
	}
	return why;
}

void sim_failure_find_nak(struct sim_qp *qp, const struct sim_packet *packet,
			  enum ibv_wc_status status)
{
	const struct sim_qp *peer = sim_failure_peer(qp);
	struct sim_finding finding;

	if (qp->sq.tail == qp->sq.head)
		return;
	finding = finding_of(qp, nak_why(sim_qp_send_wqe(qp, qp->sq.tail), packet->psn, status));
	/* The peer keeps the refusal of its last NAK. */
	if (peer && peer->failures && peer->dest_qpn == qp->number &&
	    peer->failures->refusal_psn == packet->psn)
		finding.peer_why = peer->failures->refusal;
	sim_failure_find(qp, &finding);
}

void sim_failure_find_response(struct sim_qp *qp, const struct sim_packet *packet)
{
	const struct sim_send_wqe *wqe = sim_qp_send_wqe(qp, qp->sq.tail);
	struct vb_why why = {VB_WHY_RESPONSE_KIND, {packet->psn, wqe->opcode}};
	uint64_t left = wqe->length;

	why.text = sim_opcodes[packet->opcode].name;
	if (wqe->opcode == IBV_WR_RDMA_READ &&
	    sim_opcodes[packet->opcode].flags & SIM_OP_READ_RESPONSE) {
		left -= wqe->read.read_bytes;
		if (wqe->answered + 1 < wqe->packets)
			left = qp->mtu_bytes;
		why = (struct vb_why){VB_WHY_RESPONSE_SIZE,
				      {packet->psn, packet->payload_bytes, qp->mtu_bytes, left}};
	}
	find(qp, why);
}

/* --- receives, and requests that are refused --- */

/* What the peer in this engine knows of the message that a packet belongs to. */
static struct vb_why sender_why(struct sim_qp *qp, uint32_t psn)
{
	const struct sim_qp *peer = sim_failure_peer(qp);

	if (!peer || peer->dest_qpn != qp->number)
		return (struct vb_why){.reason = VB_WHY_NONE};
	for (uint32_t i = peer->sq.tail; i != peer->sq.head; i++) {
		const struct sim_send_wqe *wqe = sim_qp_send_wqe(peer, i);

		if (wqe->started && sim_psn_distance(psn, wqe->first_psn) < wqe->packets)
			return (struct vb_why){VB_WHY_PEER_SENT,
					       {wqe->wr_id, wqe->opcode, wqe->length}};
	}
	return (struct vb_why){.reason = VB_WHY_NONE};
}

void sim_failure_find_refusal(struct sim_qp *qp, const struct sim_packet *packet,
			      enum sim_verdict verdict)
{
	struct sim_failures *record = record_of(qp);

	if (!record)
		return;
	if (packet) {
		record->found = finding_of(qp, sim_refusal_why(qp, packet, verdict));
		record->found.peer_why = sender_why(qp, packet->psn);
	}
	record->refusal = record->found.why;
	record->refusal_psn = qp->resp.psn;
}

void sim_failure_find_datagram(struct sim_qp *qp, const struct sim_packet *packet,
			       enum sim_verdict verdict)
{
	const struct sim_recv_wqe *wqe = sim_receive_peek(qp);
	const uint32_t bytes = packet->payload_bytes;

	if (verdict == SIM_TOO_LONG)
		find(qp, (struct vb_why){VB_WHY_LENGTH_DATAGRAM_RECEIVE,
					 {bytes, SIM_GRH_BYTES + (uint64_t)bytes, wqe->length}});
	else
		find(qp, sim_refusal_why(qp, packet, verdict));
}

void sim_failure_find_unserved(struct sim_qp *qp, const struct sim_resource *resource,
			       uint32_t done, uint32_t bytes)
{
	const struct sim_packet packet = {
		.opcode = resource->opcode,
		.psn = sim_psn_add(resource->first_psn, resource->next),
		.rkey = resource->rkey,
		.remote_addr = resource->remote_addr + done,
		.dma_bytes = bytes,
	};

	find(qp, sim_refusal_why(qp, &packet, SIM_ACCESS_DENIED));
}

/* --- completions --- */

/* The cause by which a profile's measured vendor_err differ. */
static enum sim_cause cause_of(enum vb_reason reason)
{
	switch (reason) {
	case VB_WHY_LKEY_UNKNOWN:
	case VB_WHY_LKEY_STALE:
	case VB_WHY_LKEY_IS_RKEY:
		return SIM_CAUSE_KEY;
	case VB_WHY_LKEY_PD:
		return SIM_CAUSE_PD;
	case VB_WHY_LKEY_BEFORE:
	case VB_WHY_LKEY_BEHIND:
		return SIM_CAUSE_RANGE;
	case VB_WHY_LKEY_RIGHT:
		return SIM_CAUSE_RIGHTS;
	default:
		return SIM_CAUSE_ANY;
	}
}

static uint32_t vendor_err(const struct sim_qp *qp, enum ibv_wc_status status,
			   enum vb_reason reason, enum sim_cause cause)
{
	const enum sim_codes codes = qp->device->profile->codes;

	return codes == SIM_CODES_SPEC ? (uint32_t)reason : sim_vendor_err(codes, status, cause);
}

static void note(struct sim_qp *qp, uint64_t wr_id, enum ibv_wc_status status, const char *queue,
		 const struct sim_finding *finding)
{
	struct vb_event event = {
		.kind = VB_EVENT_FAILURE,
		.values = {wr_id, status},
		.texts = {queue},
		.why = finding->why.reason ? &finding->why : NULL,
		.peer_why = finding->peer_why.reason ? &finding->peer_why : NULL,
	};

	sim_qp_note(qp, &event);
}

static uint32_t flush(struct sim_qp *qp, uint64_t wr_id, enum sim_flush queue)
{
	const enum sim_cause cause = sim_qp_first_flush(qp, queue);
	const enum vb_reason reason = qp->failures ? qp->failures->flush : VB_WHY_NONE;
	const struct sim_finding finding = {.why = {.reason = reason}};

	if (sim_watched(qp->engine))
		note(qp, wr_id, IBV_WC_WR_FLUSH_ERR, queue == SIM_FLUSH_SENDS ? "send" : "receive",
		     &finding);
	return vendor_err(qp, IBV_WC_WR_FLUSH_ERR, reason, cause);
}

/* Records a failure of a queue for what was found. */
static uint32_t fail(struct sim_qp *qp, struct sim_failed *failed, struct sim_cq *cq,
		     uint64_t wr_id, enum ibv_wc_status status)
{
	const struct sim_finding *found = &qp->failures->found;

	*failed = (struct sim_failed){
		.wr_id = wr_id,
		.status = status,
		.ambiguous = failed->status != IBV_WC_SUCCESS &&
			     sim_cq_holds(cq, qp->number, status, &wr_id),
		.finding = *found,
	};
	if (sim_watched(qp->engine))
		note(qp, wr_id, status, failed == &qp->failures->send ? "send" : "receive", found);
	return vendor_err(qp, status, found->why.reason, cause_of(found->why.reason));
}

uint32_t sim_failure_of_send(struct sim_qp *qp, const struct sim_send_wqe *wqe,
			     enum ibv_wc_status status)
{
	if (!record_of(qp))
		return vendor_err(qp, status, VB_WHY_NONE, SIM_CAUSE_ANY);
	if (status == IBV_WC_WR_FLUSH_ERR && !qp->failures->found.why.reason)
		return flush(qp, wqe->wr_id, SIM_FLUSH_SENDS);
	return fail(qp, &qp->failures->send, qp->send_cq, wqe->wr_id, status);
}

uint32_t sim_failure_of_receive(struct sim_qp *qp, enum ibv_wc_status status)
{
	const uint64_t wr_id = qp->rx.wqe->wr_id;

	if (!record_of(qp))
		return vendor_err(qp, status, VB_WHY_NONE, SIM_CAUSE_ANY);
	if (status == IBV_WC_WR_FLUSH_ERR)
		return flush(qp, wr_id, SIM_FLUSH_RECEIVES);
	return fail(qp, &qp->failures->receive, qp->rx.cq, wr_id, status);
}

/* --- the end of a QP --- */

static const enum vb_reason flushes[SIM_BYS] = {
	[SIM_BY_MODIFY] = VB_WHY_FLUSH_MODIFY,	 [SIM_BY_SEND] = VB_WHY_FLUSH_SEND,
	[SIM_BY_RECEIVE] = VB_WHY_FLUSH_RECEIVE, [SIM_BY_CQ] = VB_WHY_FLUSH_CQ,
	[SIM_BY_DEVICE] = VB_WHY_FLUSH_DEVICE,	 [SIM_BY_EVENT] = VB_WHY_FLUSH_EVENT,
};

static bool flushes_wait(const struct sim_qp *qp)
{
	const struct sim_cq *recv_cq = sim_receive_cq(qp);

	return (qp->send_cq && sim_cq_holds(qp->send_cq, qp->number, IBV_WC_WR_FLUSH_ERR, NULL)) ||
	       (recv_cq && sim_cq_holds(recv_cq, qp->number, IBV_WC_WR_FLUSH_ERR, NULL));
}

/* Flushes have a cause from now on, which may be the failure that was found last. */
static void end(struct sim_qp *qp, enum vb_reason flush, bool found)
{
	struct sim_failures *record = record_of(qp);

	if (!record)
		return;
	record->flush_ambiguous = record->flush && flushes_wait(qp);
	record->flush = flush;
	record->first = found ? record->found : (struct sim_finding){0};
	record->found = (struct sim_finding){0};
}

void sim_failure_ends_qp(struct sim_qp *qp, enum sim_by by)
{
	end(qp, flushes[by], by == SIM_BY_SEND || by == SIM_BY_RECEIVE);
}

void sim_failure_ends_sends(struct sim_qp *qp)
{
	end(qp, VB_WHY_FLUSH_SQE, true);
}

/* --- the owner's question --- */

static void name_peer(const struct sim_finding *finding, const char **name, uint32_t *qpn)
{
	*name = finding->peer ? finding->peer->name : NULL;
	*qpn = finding->peer ? finding->peer_qpn : 0;
}

static bool fill_failed(struct vb_completion_why *out, const struct sim_failed *failed,
			const struct ibv_wc *wc)
{
	if (failed->status != wc->status || failed->wr_id != wc->wr_id || failed->ambiguous ||
	    !failed->finding.why.reason)
		return false;
	name_peer(&failed->finding, &out->peer, &out->peer_qpn);
	out->why = failed->finding.why;
	out->peer_why = failed->finding.peer_why;
	return true;
}

bool sim_qp_why(const struct sim_qp *qp, const struct ibv_wc *wc, struct vb_completion_why *out)
{
	const struct sim_failures *record = qp->failures;

	if (!record)
		return false;
	if (fill_failed(out, out->send ? &record->send : &record->receive, wc))
		return true;
	if (wc->status != IBV_WC_WR_FLUSH_ERR || !record->flush || record->flush_ambiguous)
		return false;
	name_peer(&record->first, &out->peer, &out->peer_qpn);
	out->why.reason = record->flush;
	out->first = record->first.why;
	out->first_peer = record->first.peer_why;
	return true;
}
