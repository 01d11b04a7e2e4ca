/* SPDX-License-Identifier: MIT */
/*
 * The responder's answers: READs and atomics are remembered for their duplicates, and answered in the
 * responder's turn, with the ACK or NAK that waits.
 */
#include "sim/qp/private.h"
#include "sim/wire/psn.h"

#include <stdlib.h>

void sim_responder_free_resources(struct sim_qp *qp)
{
	qp->device->resource_count -= qp->resp.resource_size;
	free(qp->resp.resources);
}

void sim_responder_set_resources(struct sim_qp *qp, struct sim_resource *resources, uint8_t count)
{
	struct sim_responder *resp = &qp->resp;

	sim_responder_free_resources(qp);
	qp->device->resource_count += count;
	resp->resources = resources;
	resp->resource_size = count;
	resp->resource_head = 0;
	resp->resource_count = 0;
	resp->resources_pending = 0;
}

struct sim_resource *sim_answer_push(struct sim_qp *qp, const struct sim_packet *packet,
				     uint32_t packets)
{
	struct sim_responder *resp = &qp->resp;
	struct sim_resource *resource = &resp->resources[resp->resource_head];

	if (++resp->resource_head == resp->resource_size)
		resp->resource_head = 0;
	if (resp->resource_count < resp->resource_size)
		resp->resource_count++;
	/* Only a repeated answer can be pending there, and its requester has gone on. */
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

/* True if a repeated READ asks for any part of the first request, which then begins there. */
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

void sim_answer_replay(struct sim_qp *qp, const struct sim_packet *packet, uint32_t flags)
{
	struct sim_resource *resource = find_resource(qp, packet->psn);
	uint32_t offset;

	if (!resource)
		return;
	offset = (packet->psn - resource->first_psn) & SIM_PSN_MASK;
	if (!same_request(qp, resource, packet, offset) &&
	    !(flags & SIM_OP_READ && !sim_rule_holds(qp, SIM_RULE_READ_REPEATED_EXACTLY) &&
	      part_of_request(resource, packet, offset * qp->mtu_bytes)))
		return;
	resource->next = offset;
	resource->restarted = true;
	resource->limit = offset * qp->mtu_bytes + packet->dma_bytes;
	resource->end =
		offset + (flags & SIM_OP_READ ? sim_response_packets(qp, packet->dma_bytes) : 1);
	if (!resource->pending)
		qp->resp.resources_pending++;
	else if (!resource->replayed)
		qp->resp.resources_new--;
	resource->pending = true;
	resource->replayed = true;
	sim_qp_wake_responder(qp);
}

static void answer(struct sim_qp *qp, struct sim_packet *packet)
{
	packet->flags |= SIM_PACKET_MIGRATED;
	packet->pkey = qp->pkey;
	packet->dest_qpn = qp->dest_qpn;
	sim_send_response(qp, packet);
}

static void send_aeth(struct sim_qp *qp, uint8_t syndrome, uint32_t psn)
{
	struct sim_packet packet;

	packet.opcode = (uint8_t)(SIM_RC_ACK | qp->transport);
	packet.flags = 0;
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

/* Sends one packet of a read response; false if its memory may no longer be read. */
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
		sim_responder_use_pd(qp, resource->pd);
		span.base = sim_responder_memory(qp, resource->rkey, resource->remote_addr + done,
						 bytes, IBV_ACCESS_REMOTE_READ);
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

/* The memory of a READ is gone: the READ and the requests behind it are not answered. */
static void cannot_serve(struct sim_qp *qp, const struct sim_resource *resource)
{
	struct sim_responder *resp = &qp->resp;

	const uint32_t done = resource->next * qp->mtu_bytes;
	const uint32_t left = resource->limit - done;

	sim_failure_find_unserved(qp, resource, done, left > qp->mtu_bytes ? qp->mtu_bytes : left);
	for (unsigned int i = 0; i < resp->resource_count; i++)
		resp->resources[i].pending = false;
	resp->resources_pending = 0;
	resp->resources_new = 0;
	resp->psn = sim_psn_add(resource->first_psn, resource->next);
	sim_responder_refuse(qp, NULL, SIM_ACCESS_DENIED);
}

/* Answers one READ or atomic as far as the budget goes. */
static void serve(struct sim_qp *qp, struct sim_resource *resource, unsigned int *budget)
{
	bool first = resource->next == 0 || resource->restarted;

	if (sim_opcodes[resource->opcode].flags & SIM_OP_ATOMIC) {
		settle(qp, resource);
		answer_atomic(qp, resource);
		if (qp->hooks)
			qp->hooks->atomic_answered(qp, resource->first_psn);
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
			resp->ack = SIM_ACK_NONE;
		serve(qp, resource, budget);
		if (resource->pending)
			return;
	}
}

/* A NAK acknowledges what stands before its PSN; hooks may make an ACK cover more. */
static bool owes_ack(const struct sim_responder *resp)
{
	return resp->ack && (!resp->nak_pending || sim_psn_diff(resp->ack_psn, resp->nak_psn) >= 0);
}

bool sim_responder_owes_ack(const struct sim_qp *qp)
{
	return qp->resp.ack == SIM_ACK_IN_ORDER && !qp->resp.nak_pending &&
	       !qp->resp.resources_pending;
}

/* The turn of a proxy, which answers no READs. */
static void answer_front(struct sim_qp *proxy)
{
	struct sim_responder *resp = &proxy->resp;

	if (owes_ack(resp))
		sim_relay_answer(proxy, SIM_AETH_ACK | SIM_ACK_CREDIT_NONE, resp->ack_psn);
	resp->ack = SIM_ACK_NONE;
	if (resp->nak_pending)
		sim_relay_answer(proxy, resp->nak_syndrome, resp->nak_psn);
	resp->nak_pending = false;
}

/* The turn of a QP that asks for room. */
__attribute__((noinline)) static bool run_with_room(struct sim_qp *qp)
{
	struct sim_responder *resp = &qp->resp;
	unsigned int budget;

	if (!resp->resources_pending && !resp->ack && !resp->nak_pending)
		return false;
	if (qp->proxy) {
		answer_front(qp);
		return false;
	}
	if (resp->resources_pending)
		budget = sim_room_ask(qp, &qp->path, qp->dest_qpn);
	else
		budget = sim_room_for_ack(qp) ? 1 : 0;
	if (!budget) {
		sim_room_wait(qp, SIM_TURN_RESPONDER);
		return false;
	}
	if (budget > SIM_BURST_PACKETS)
		budget = SIM_BURST_PACKETS;
	if (resp->resources_pending)
		serve_all(qp, &budget);
	if (resp->resources_pending)
		return true;
	if (owes_ack(resp)) {
		if (!budget--)
			return true;
		send_aeth(qp, SIM_AETH_ACK | SIM_ACK_CREDIT_NONE, resp->ack_psn);
	}
	resp->ack = SIM_ACK_NONE;
	if (resp->nak_pending && !budget)
		return true;
	if (resp->nak_pending)
		send_aeth(qp, resp->nak_syndrome, resp->nak_psn);
	resp->nak_pending = false;
	return false;
}

bool sim_responder_run(struct sim_qp *qp)
{
	struct sim_responder *resp = &qp->resp;
	unsigned int budget = qp->burst;

	if (!budget)
		return run_with_room(qp);
	if (resp->resources_pending) {
		serve_all(qp, &budget);
		if (resp->resources_pending)
			return true;
	}
	if (owes_ack(resp))
		send_aeth(qp, SIM_AETH_ACK | SIM_ACK_CREDIT_NONE, resp->ack_psn);
	resp->ack = SIM_ACK_NONE;
	if (resp->nak_pending)
		send_aeth(qp, resp->nak_syndrome, resp->nak_psn);
	resp->nak_pending = false;
	return false;
}
