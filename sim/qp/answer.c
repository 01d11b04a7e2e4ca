/* SPDX-License-Identifier: MIT */
/*
 * The responder's answers: READs and atomics are remembered for their duplicates, and answered in the
 * responder's turn, with the ACK or NAK that waits.
 */
#include "sim/qp/private.h"
#include "sim/wire/psn.h"

#include <stdlib.h>
#include <string.h>

void sim_responder_free_resources(struct sim_qp *qp)
{
	if (!qp->proxy)
		qp->device->resource_count -= qp->resp.resource_size;
	free(qp->resp.resources);
}

void sim_responder_set_resources(struct sim_qp *qp, struct sim_resource *resources, uint8_t count)
{
	struct sim_responder *resp = &qp->resp;

	sim_responder_free_resources(qp);
	if (!qp->proxy)
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

/* Returns the resource that came `age` resources before the last one. */
static struct sim_resource *resource_at(const struct sim_qp *qp, unsigned int age)
{
	const struct sim_responder *resp = &qp->resp;

	return &resp->resources[(resp->resource_head + 2u * resp->resource_size - 1 - age) %
				resp->resource_size];
}

/* Searches from the newest: a proxy also has READs and atomics of earlier connections. */
static struct sim_resource *find_resource(const struct sim_qp *qp, uint32_t psn)
{
	for (unsigned int i = 0; i < qp->resp.resource_count; i++) {
		struct sim_resource *resource = resource_at(qp, i);

		if (((psn - resource->first_psn) & SIM_PSN_MASK) < resource->packets)
			return resource;
	}
	return NULL;
}

/* With `relayed`, returns only a resource that another process holds. */
static struct sim_resource *oldest_pending(const struct sim_qp *qp, bool relayed)
{
	for (unsigned int i = qp->resp.resources_pending ? qp->resp.resource_count : 0; i-- > 0;) {
		struct sim_resource *resource = resource_at(qp, i);

		if (resource->pending && (resource->holder || !relayed))
			return resource;
	}
	return NULL;
}

const struct sim_resource *sim_answer_oldest_relayed(const struct sim_qp *qp)
{
	return oldest_pending(qp, true);
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
	resource->next = resource->asked = offset;
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
	if (resource->holder && flags & SIM_OP_ATOMIC && !resource->known)
		sim_relay_ask_value(qp, resource);
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
		.syndrome = sim_ack_syndrome(qp),
		.psn = resource->first_psn,
		.msn = resource->msn,
		.original = resource->original,
	};

	answer(qp, &packet);
}

/* The bytes of the next packet of a read response. */
static uint32_t next_bytes(const struct sim_qp *qp, const struct sim_resource *resource)
{
	const uint32_t bytes = resource->limit - resource->next * qp->mtu_bytes;

	return bytes > qp->mtu_bytes ? qp->mtu_bytes : bytes;
}

/* Sends one packet of a read response. */
static void send_read(struct sim_qp *qp, struct sim_resource *resource, void *base, uint32_t bytes)
{
	const bool first = resource->next == 0 || resource->restarted;
	const bool last = resource->next + 1 == resource->end;
	const struct sim_span span = {base, bytes};
	struct sim_packet packet = {
		.opcode = sim_opcode_read_response(qp->transport, first, last),
		.syndrome = sim_ack_syndrome(qp),
		.psn = sim_psn_add(resource->first_psn, resource->next),
		.msn = resource->msn,
		.spans = &span,
		.span_count = bytes ? 1 : 0,
		.payload_bytes = bytes,
	};

	resource->next++;
	resource->restarted = false;
	answer(qp, &packet);
}

/* Sends one packet of a read response; false if its memory may no longer be read. */
static bool answer_read(struct sim_qp *qp, struct sim_resource *resource)
{
	const uint32_t bytes = next_bytes(qp, resource);
	void *base = NULL;

	if (bytes) {
		sim_responder_use_pd(qp, resource->pd);
		base = sim_responder_memory(qp, resource->rkey,
					    resource->remote_addr +
						    (uint64_t)resource->next * qp->mtu_bytes,
					    bytes, IBV_ACCESS_REMOTE_READ);
		if (!base)
			return false;
	}
	send_read(qp, resource, base, bytes);
	return true;
}

/* Returns how many packets the next train of a read response may have: the first and the last packet are no part of a
 * train (sim/wire/packet.h). */
static unsigned int train_packets(const struct sim_qp *qp, const struct sim_resource *resource,
				  unsigned int budget)
{
	const unsigned int left = resource->end - 1 - resource->next;
	uint32_t limit;

	if (!resource->next || resource->restarted || left < 2 || qp->hooks)
		return 0;
	limit = sim_train_bytes(qp) / qp->mtu_bytes;
	if (limit > budget)
		limit = budget;
	return limit < left ? limit : left;
}

/* Sends the next packets of a read response together. Returns their number; 0: none was sent. */
static unsigned int answer_train(struct sim_qp *qp, struct sim_resource *resource,
				 unsigned int budget)
{
	const unsigned int count = train_packets(qp, resource, budget);
	struct sim_span span = {.length_bytes = count * qp->mtu_bytes};
	const struct sim_packet train = {
		.opcode = sim_opcode_read_response(qp->transport, false, false),
		.flags = SIM_PACKET_MIGRATED,
		.pkey = qp->pkey,
		.dest_qpn = qp->dest_qpn,
		.psn = sim_psn_add(resource->first_psn, resource->next),
		.spans = &span,
		.span_count = 1,
		.payload_bytes = span.length_bytes,
	};

	if (count < 2)
		return 0;
	sim_responder_use_pd(qp, resource->pd);
	span.base = sim_responder_memory(qp, resource->rkey,
					 resource->remote_addr +
						 (uint64_t)resource->next * qp->mtu_bytes,
					 span.length_bytes, IBV_ACCESS_REMOTE_READ);
	if (!span.base || !sim_send_train(qp, &train, count))
		return 0;
	resource->next += count;
	return count;
}

/* The response of a pending READ or atomic is sent, or is not needed. */
static void end_pending(struct sim_qp *qp, struct sim_resource *resource)
{
	resource->pending = false;
	qp->resp.resources_pending--;
	if (!resource->replayed)
		qp->resp.resources_new--;
}

static void settle(struct sim_qp *qp, struct sim_resource *resource)
{
	end_pending(qp, resource);
	if (resource->holder)
		sim_responder_relay_settled(
			qp, sim_psn_add(resource->first_psn, resource->packets - 1));
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

/* A response acknowledges all requests before it. */
static void acknowledge_before(struct sim_qp *qp, const struct sim_resource *resource)
{
	if (sim_psn_diff(resource->first_psn, qp->resp.ack_psn) > 0)
		qp->resp.ack = SIM_ACK_NONE;
}

/* Answers one READ or atomic as far as the budget goes. */
static void serve(struct sim_qp *qp, struct sim_resource *resource, unsigned int *budget)
{
	acknowledge_before(qp, resource);
	if (sim_opcodes[resource->opcode].flags & SIM_OP_ATOMIC) {
		settle(qp, resource);
		if (qp->proxy)
			sim_relay_value(qp, resource);
		else
			answer_atomic(qp, resource);
		if (qp->hooks)
			qp->hooks->atomic_answered(qp, resource->first_psn);
		--*budget;
		return;
	}
	while (resource->next < resource->end && *budget) {
		const unsigned int count = answer_train(qp, resource, *budget);

		if (!count && !answer_read(qp, resource)) {
			cannot_serve(qp, resource);
			return;
		}
		*budget -= count ? count : 1;
	}
	if (resource->next >= resource->end)
		settle(qp, resource);
}

/* Returns true if the READ's data or the atomic's value has to come from another process. */
static bool awaits_relay(const struct sim_resource *resource)
{
	return resource->holder && !resource->known;
}

/* READs and atomics in the order in which they came. */
static void serve_all(struct sim_qp *qp, unsigned int *budget)
{
	struct sim_responder *resp = &qp->resp;
	unsigned int at = resp->resource_count < resp->resource_size ? 0 : resp->resource_head;

	resp->awaits_relay = false;
	for (unsigned int i = 0; i < resp->resource_count && resp->resources_pending; i++) {
		struct sim_resource *resource = &resp->resources[at];

		if (++at == resp->resource_size)
			at = 0;
		if (!resource->pending)
			continue;
		if (*budget == 0)
			return;
		if (awaits_relay(resource)) {
			resp->awaits_relay = true;
			sim_relay_fetch(qp, resource, *budget);
			return;
		}
		serve(qp, resource, budget);
		if (resource->pending)
			return;
	}
}

/* Sends the data of a READ's next packet. Without room, drops the data: the front asks for
 * it again. */
static void forward(struct sim_qp *qp, struct sim_resource *resource, const uint8_t *bytes,
		    uint32_t length)
{
	if (!qp->burst && !sim_room_ask_peer(qp)) {
		resource->asked = resource->next;
		sim_room_wait(qp, SIM_TURN_RESPONDER);
		return;
	}
	acknowledge_before(qp, resource);
	send_read(qp, resource, (void *)bytes, length);
	if (resource->asked < resource->next)
		resource->asked = resource->next;
	if (resource->next >= resource->end)
		settle(qp, resource);
	sim_qp_wake_responder(qp);
}

void sim_answer_fetched(struct sim_qp *qp, uint64_t holder, uint32_t psn, const uint8_t *bytes,
			uint32_t length)
{
	struct sim_resource *resource = find_resource(qp, psn);

	if (!resource || !resource->pending || resource->holder != holder)
		return;
	if (sim_opcodes[resource->opcode].flags & SIM_OP_READ) {
		if (resource == oldest_pending(qp, false) &&
		    psn == sim_psn_add(resource->first_psn, resource->next) &&
		    length == next_bytes(qp, resource))
			forward(qp, resource, bytes, length);
	} else if (length == sizeof(resource->original)) {
		memcpy(&resource->original, bytes, sizeof(resource->original));
		resource->known = true;
		sim_qp_wake_responder(qp);
	}
}

void sim_answer_go_back(struct sim_qp *qp, uint32_t psn)
{
	struct sim_responder *resp = &qp->resp;

	while (resp->resource_count) {
		struct sim_resource *last = resource_at(qp, 0);

		if (sim_psn_diff(sim_psn_add(last->first_psn, last->packets - 1), psn) < 0)
			break;
		if (last->pending)
			end_pending(qp, last);
		resp->resource_count--;
		if (!resp->resource_head)
			resp->resource_head = resp->resource_size;
		resp->resource_head--;
	}
	for (unsigned int i = 0; i < resp->resource_count; i++)
		resource_at(qp, i)->asked = resource_at(qp, i)->next;
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

/* The turn of a proxy. A proxy answers READs at once, and the other requests here. */
static bool answer_front(struct sim_qp *proxy)
{
	struct sim_responder *resp = &proxy->resp;
	unsigned int budget = SIM_BURST_PACKETS;

	if (resp->resources_pending)
		serve_all(proxy, &budget);
	if (resp->resources_pending)
		return true;
	if (owes_ack(resp))
		sim_relay_answer(proxy, SIM_AETH_ACK | SIM_ACK_CREDIT_NONE, resp->ack_psn);
	resp->ack = SIM_ACK_NONE;
	if (resp->nak_pending)
		sim_relay_answer(proxy, resp->nak_syndrome, resp->nak_psn);
	resp->nak_pending = false;
	return false;
}

/* The turn of a QP that asks for room. */
__attribute__((noinline)) static bool run_with_room(struct sim_qp *qp)
{
	struct sim_responder *resp = &qp->resp;
	unsigned int budget;

	if (!resp->resources_pending && !resp->ack && !resp->nak_pending)
		return false;
	if (qp->proxy)
		return answer_front(qp);
	if (qp->late && sim_late_holds(qp))
		return false;
	if (resp->resources_pending)
		budget = sim_room_ask_peer(qp);
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
		return !resp->awaits_relay;
	if (owes_ack(resp)) {
		if (!budget--)
			return true;
		send_aeth(qp, sim_ack_syndrome(qp), resp->ack_psn);
	}
	resp->ack = SIM_ACK_NONE;
	if (resp->nak_pending && !budget)
		return true;
	if (resp->nak_pending)
		send_aeth(qp, resp->nak_syndrome, resp->nak_psn);
	resp->nak_pending = false;
	if (qp->late)
		sim_late_answered(qp);
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
			return !resp->awaits_relay;
	}
	if (owes_ack(resp))
		send_aeth(qp, SIM_AETH_ACK | SIM_ACK_CREDIT_NONE, resp->ack_psn);
	resp->ack = SIM_ACK_NONE;
	if (resp->nak_pending)
		send_aeth(qp, resp->nak_syndrome, resp->nak_psn);
	resp->nak_pending = false;
	return false;
}
