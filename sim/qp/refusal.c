/* SPDX-License-Identifier: MIT */
/*
 * Why the responder refuses a request: the checks of sim/qp/responder.c once more, in their order,
 * with the values that they found. Nothing has changed since the verdict.
 */
#include "sim/qp/failure.h"
#include "sim/qp/private.h"

/* What a request is called in a sentence. */
static const char *name_of(uint32_t flags)
{
	if (flags & SIM_OP_SEND)
		return "SEND";
	if (flags & SIM_OP_WRITE)
		return "RDMA WRITE";
	if (flags & SIM_OP_READ)
		return "RDMA READ";
	if (flags & SIM_OP_STORE)
		return "ATOMIC WRITE";
	return flags & SIM_OP_ADD ? "FETCH ADD" : "COMPARE SWAP";
}

/* --- memory --- */

struct vb_why sim_sges_why(const struct sim_reach *reach, const struct ibv_sge *sge, unsigned int n,
			   int rights, const char *queue)
{
	static const enum vb_reason reasons[SIM_DENIALS] = {
		[SIM_DENIAL_UNMAPPED] = VB_WHY_LKEY_UNMAPPED,
		[SIM_DENIAL_UNKNOWN] = VB_WHY_LKEY_UNKNOWN,
		[SIM_DENIAL_STALE] = VB_WHY_LKEY_STALE,
		[SIM_DENIAL_KIND] = VB_WHY_LKEY_IS_RKEY,
		[SIM_DENIAL_PD] = VB_WHY_LKEY_PD,
		[SIM_DENIAL_OWNER] = VB_WHY_LKEY_UNKNOWN,
		[SIM_DENIAL_UNBOUND] = VB_WHY_LKEY_UNKNOWN,
		[SIM_DENIAL_RIGHT] = VB_WHY_LKEY_RIGHT,
		[SIM_DENIAL_BEFORE] = VB_WHY_LKEY_BEFORE,
		[SIM_DENIAL_BEHIND] = VB_WHY_LKEY_BEHIND,
	};
	struct vb_why why = {.reason = VB_WHY_NONE};

	for (unsigned int i = 0; i < n; i++) {
		const struct sim_access access = {SIM_KEY_LOCAL, sge[i].lkey, sge[i].addr,
						  sge[i].length, rights};
		struct vb_why found = {.values = {i}, .text = queue};

		if (!sge[i].length)
			continue;
		found.reason = reasons[sim_access_denial(reach, &access, &found)];
		if (found.reason != VB_WHY_LKEY_UNMAPPED)
			return found;
		if (why.reason == VB_WHY_NONE || !sim_access_is_mapped(reach, &access))
			why = found;
	}
	return why;
}

static struct vb_why memory_why(const struct sim_qp *qp, const struct sim_packet *packet,
				uint32_t flags)
{
	static const enum vb_reason reasons[SIM_DENIALS] = {
		[SIM_DENIAL_UNMAPPED] = VB_WHY_RKEY_UNMAPPED,
		[SIM_DENIAL_UNKNOWN] = VB_WHY_RKEY_UNKNOWN,
		[SIM_DENIAL_STALE] = VB_WHY_RKEY_STALE,
		[SIM_DENIAL_KIND] = VB_WHY_RKEY_IS_LKEY,
		[SIM_DENIAL_PD] = VB_WHY_RKEY_PD,
		[SIM_DENIAL_OWNER] = VB_WHY_RKEY_OWNER,
		[SIM_DENIAL_UNBOUND] = VB_WHY_RKEY_UNBOUND,
		[SIM_DENIAL_RIGHT] = VB_WHY_RKEY_RIGHT,
		[SIM_DENIAL_BEFORE] = VB_WHY_RKEY_BEFORE,
		[SIM_DENIAL_BEHIND] = VB_WHY_RKEY_BEHIND,
	};
	const struct sim_responder *resp = &qp->resp;
	struct sim_access access = {SIM_KEY_REMOTE, packet->rkey, packet->remote_addr,
				    packet->dma_bytes, sim_request_access(flags)};
	struct vb_why why = {.values = {packet->psn}, .text = name_of(flags)};

	if (flags & SIM_OP_ATOMIC)
		access.length = SIM_ATOMIC_BYTES;
	if (flags & SIM_OP_WRITE && !(flags & SIM_OP_RETH)) {
		access.key = resp->rkey;
		access.addr = resp->remote_addr + resp->received;
		access.length = packet->payload_bytes;
	}
	why.reason = reasons[sim_access_denial(&qp->remote_reach, &access, &why)];
	return why;
}

bool sim_payload_is_readable(const struct sim_qp *qp, const struct sim_packet *packet)
{
	const struct sim_memory_ops *memory = &qp->engine->host.memory;

	for (unsigned int i = 0; i < packet->span_count; i++)
		if (memory->probe(packet->spans[i].base, packet->spans[i].length_bytes, false))
			return false;
	return true;
}

/* The memory of the receive is at fault, or that of the sender. */
static struct vb_why receive_why(const struct sim_qp *qp, const struct sim_packet *packet)
{
	const struct sim_recv_wqe *wqe = sim_receive_peek(qp);
	const struct vb_why why = sim_sges_why(qp->rx.reach, wqe->sge, wqe->num_sge,
					       IBV_ACCESS_LOCAL_WRITE, "receive");

	if (why.reason == VB_WHY_LKEY_UNMAPPED && !sim_payload_is_readable(qp, packet))
		return (struct vb_why){.reason = VB_WHY_PAYLOAD_UNREADABLE};
	return why;
}

/* --- requests that are wrong --- */

struct request {
	const struct sim_qp *qp;
	const struct sim_packet *packet;
	uint32_t flags;
};

static struct vb_why wrong(const struct request *request, enum vb_reason reason, uint64_t first,
			   uint64_t second)
{
	return (struct vb_why){
		.reason = reason,
		.values = {request->packet->psn, first, second},
		.text = name_of(request->flags),
	};
}

static struct vb_why size_why(const struct request *request)
{
	const uint32_t bytes = request->packet->payload_bytes;

	return wrong(request,
		     request->flags & SIM_OP_END && !bytes ? VB_WHY_REQUEST_EMPTY
							   : VB_WHY_REQUEST_MTU,
		     bytes, request->qp->mtu_bytes);
}

static struct vb_why write_why(const struct request *request)
{
	const struct sim_packet *packet = request->packet;
	const struct sim_responder *resp = &request->qp->resp;
	const uint64_t total = (uint64_t)resp->received + packet->payload_bytes;
	const uint32_t announced = request->flags & SIM_OP_RETH ? packet->dma_bytes : resp->length;

	if (announced > SIM_MESSAGE_BYTES_MAX)
		return wrong(request, VB_WHY_REQUEST_HUGE, announced, 0);
	if (!sim_payload_fits(request->qp, packet->payload_bytes, request->flags))
		return size_why(request);
	return wrong(request, VB_WHY_REQUEST_LENGTH, announced, total);
}

static struct vb_why answered_why(const struct request *request)
{
	const struct sim_packet *packet = request->packet;
	const struct sim_qp *qp = request->qp;
	const bool store = request->flags & SIM_OP_STORE;

	if (qp->resp.resources_new >= qp->resp.resource_size)
		return wrong(request, VB_WHY_REQUEST_READS, qp->resp.resource_size, 0);
	if (request->flags & SIM_OP_READ && packet->dma_bytes > SIM_MESSAGE_BYTES_MAX)
		return wrong(request, VB_WHY_REQUEST_HUGE, packet->dma_bytes, 0);
	if (store && !qp->device->profile->atomic_write)
		return wrong(request, VB_WHY_REQUEST_ATOMIC_WRITE, 0, 0);
	if (packet->payload_bytes != (store ? SIM_ATOMIC_BYTES : 0))
		return wrong(request, VB_WHY_REQUEST_PAYLOAD, packet->payload_bytes,
			     store ? SIM_ATOMIC_BYTES : 0);
	if (store && packet->dma_bytes != SIM_ATOMIC_BYTES)
		return wrong(request, VB_WHY_REQUEST_LENGTH, packet->dma_bytes, SIM_ATOMIC_BYTES);
	return wrong(request, VB_WHY_REQUEST_ALIGNMENT, packet->remote_addr, 0);
}

static bool lacks_srq(const struct request *request)
{
	const struct sim_qp *qp = request->qp;
	const struct sim_srq *srq;

	if (!qp->xrcd || qp->rx.held)
		return false;
	srq = sim_table_find(&qp->device->srqs, request->packet->xrc_srqn);
	if (!srq && sim_relay_holder(qp, request->packet->xrc_srqn))
		return false;
	return !srq || srq->xrcd != qp->xrcd;
}

static struct vb_why invalid_why(const struct request *request)
{
	const struct sim_qp *qp = request->qp;
	const uint32_t flags = request->flags;
	const int rights = sim_request_access(flags);

	if (!sim_in_sequence(&qp->resp, flags))
		return wrong(request,
			     flags & SIM_OP_START ? VB_WHY_REQUEST_NOT_ENDED
						  : VB_WHY_REQUEST_NOT_BEGUN,
			     0, 0);
	if (lacks_srq(request))
		return wrong(request, VB_WHY_REQUEST_SRQ, request->packet->xrc_srqn, 0);
	if (rights && !(qp->access & (unsigned int)rights))
		return wrong(request, VB_WHY_REQUEST_QP_RIGHT, (uint64_t)rights, 0);
	if (flags & SIM_OP_SEND)
		return size_why(request);
	if (flags & SIM_OP_WRITE)
		return write_why(request);
	return answered_why(request);
}

struct vb_why sim_refusal_why(const struct sim_qp *qp, const struct sim_packet *packet,
			      enum sim_verdict verdict)
{
	const struct request request = {qp, packet, sim_opcodes[packet->opcode].flags};

	switch (verdict) {
	case SIM_ACCESS_DENIED:
		return memory_why(qp, packet, request.flags);
	case SIM_TOO_LONG:
		return (struct vb_why){VB_WHY_LENGTH_RECEIVE,
				       {qp->resp.received + (uint64_t)packet->payload_bytes,
					packet->psn, qp->rx.wqe->length}};
	case SIM_BAD_RECEIVE:
		return receive_why(qp, packet);
	case SIM_BAD_INVALIDATION:
		return sim_mw_invalidate_why(qp->device, packet->rkey);
	default:
		return invalid_why(&request);
	}
}
