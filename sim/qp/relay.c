/* SPDX-License-Identifier: MIT */
#include "sim/qp/relay.h"

#include "sim/object/port.h"
#include "sim/object/xrcd.h"
#include "sim/qp/private.h"
#include "sim/wire/psn.h"

#include <stdlib.h>
#include <string.h>

/* Requests that the front relays before the first of them is answered. */
#define AHEAD_MAX 256

/* The most proxies of a device: a process that ends leaves its proxies behind. */
#define PROXIES_MAX 1024

/* Packets of a READ that the front asks for at once. */
#define FETCH_MAX 16

enum kind {
	KIND_REQUEST, /* a frame follows */
	KIND_ANSWER,
	KIND_DATA,  /* the payload of a read response, or the value that an atomic found, follows */
	KIND_EVENT, /* an asynchronous event */
	KIND_END,   /* the proxy has failed, with or without a NAK */
};

/* The message in progress, when a request is refused. */
enum message { MESSAGE_NONE, MESSAGE_SEND, MESSAGE_WRITE };

/* The relays of two processes send this before each frame, payload or value, or alone. */
struct head {
	uint64_t domain[2];
	uint32_t target; /* the QPN of the front */
	uint32_t peer;	 /* the QPN of the requester */
	uint32_t
		psn; /* of an answer, or of data; of a READ: of the first packet that is asked for */
	uint32_t msn;
	uint32_t access;
	uint16_t pkey_index, slid;
	uint8_t kind, epoch, mtu, syndrome, message;
	uint8_t asked; /* of a READ: packets that are asked for */
	uint8_t event; /* enum ibv_event_type */
	uint8_t again; /* an atomic was done, and its value is asked for */
};

_Static_assert(sizeof(struct head) + 8 + 12 + 56 + SIM_PATH_MTU_MAX + 4 + 4 <= SIM_RELAY_BYTES_MAX,
	       "a request and its head fit a frame");
_Static_assert(SIM_RELAY_BYTES_MAX <= SIM_FRAME_BYTES_MAX, "a relay's bytes fit a frame");

static bool send_bytes(const struct sim_qp *qp, const struct sim_port *port, uint64_t process,
		       const uint8_t *bytes, size_t length)
{
	return qp->engine->outlet->relay(qp->engine, port, process, bytes, length);
}

/* --- the front --- */

uint64_t sim_relay_holder(const struct sim_qp *qp, uint32_t srq_number)
{
	const struct sim_outlet *outlet = qp->engine->outlet;

	if (!outlet->holder || !qp->xrcd->shared)
		return 0;
	return outlet->holder(qp->engine, qp->device, SIM_NUMBERS_SRQ, srq_number);
}

static struct head request_head(const struct sim_qp *qp, const struct sim_packet *packet)
{
	return (struct head){
		.domain = {qp->xrcd->key[0], qp->xrcd->key[1]},
		.target = qp->number,
		.peer = qp->dest_qpn,
		.psn = packet->psn,
		.msn = qp->resp.msn,
		.access = qp->access,
		.pkey_index = qp->pkey_index,
		.slid = packet->slid,
		.kind = KIND_REQUEST,
		.epoch = qp->relay.epoch,
		.mtu = qp->mtu,
	};
}

/* The proxy ignores the headers before the BTH, so they are InfiniBand's, which are the shortest. Returns false if
 * there is no room, or the packet cannot be read. */
static bool send_request(const struct sim_qp *qp, uint64_t holder, const struct head *head,
			 const struct sim_packet *packet)
{
	const struct sim_route route = {.infiniband = true};
	uint8_t bytes[SIM_RELAY_BYTES_MAX];
	struct sim_packet sent = *packet;
	bool readable = true;
	size_t length;

	/* The front waits for an answer to each message. */
	if (sim_opcodes[packet->opcode].flags & SIM_OP_END)
		sent.flags |= SIM_PACKET_ACK_REQUEST;
	memcpy(bytes, head, sizeof(*head));
	length = sim_packet_write(&sent, &route, qp->engine->host.memory.copy,
				  bytes + sizeof(*head), &readable);
	return readable && send_bytes(qp, qp->path.source, holder, bytes, sizeof(*head) + length);
}

/* Returns true if the front may remember a READ or atomic, and take the payload of a SEND or WRITE. */
static bool is_taken(const struct sim_qp *qp, const struct sim_packet *packet, uint32_t flags)
{
	if (!(flags & (SIM_OP_READ | SIM_OP_ATOMIC)))
		return sim_payload_fits(qp, packet->payload_bytes, flags);
	if (qp->resp.resources_new >= qp->resp.resource_size)
		return false;
	return flags & SIM_OP_ATOMIC ||
	       (!packet->payload_bytes && packet->dma_bytes <= SIM_MESSAGE_BYTES_MAX);
}

/* The front answers a READ or atomic when the data or the value has come. */
static void remember(struct sim_qp *qp, const struct sim_packet *packet, const struct head *head,
		     uint32_t packets)
{
	struct sim_resource *resource = sim_answer_push(qp, packet, packets);

	resource->holder = qp->relay.holder;
	resource->srq_number = packet->xrc_srqn;
	resource->asked = head->asked;
}

/* Asks for no data while an earlier READ or atomic is not answered: responses are in the order of requests. */
static uint8_t first_fetch(const struct sim_qp *qp, uint32_t packets)
{
	if (qp->resp.resources_pending)
		return 0;
	return (uint8_t)(packets < FETCH_MAX ? packets : FETCH_MAX);
}

enum sim_relayed sim_relay_request(struct sim_qp *qp, const struct sim_packet *packet,
				   uint32_t flags)
{
	const uint64_t holder = sim_relay_holder(qp, packet->xrc_srqn);
	uint32_t packets = 1;
	struct head head;

	if (!holder || !is_taken(qp, packet, flags))
		return SIM_RELAY_NOBODY;
	if (qp->relay.ahead && (qp->relay.holder != holder || qp->relay.ahead >= AHEAD_MAX))
		return SIM_RELAY_LATER;
	head = request_head(qp, packet);
	if (flags & SIM_OP_READ) {
		packets = sim_response_packets(qp, packet->dma_bytes);
		head.asked = first_fetch(qp, packets);
	}
	if (!send_request(qp, holder, &head, packet))
		return SIM_RELAY_LATER;
	if (!qp->relay.ahead)
		qp->relay.acked = sim_psn_add(packet->psn, SIM_PSN_MASK);
	qp->relay.holder = holder;
	qp->relay.ahead += packets;
	if (flags & (SIM_OP_READ | SIM_OP_ATOMIC))
		remember(qp, packet, &head, packets);
	return SIM_RELAY_SENT;
}

/* Sends a request that the front has relayed before, and remembers. */
static bool send_again(const struct sim_qp *qp, const struct sim_resource *resource, uint8_t asked)
{
	const struct sim_packet packet = {
		.opcode = resource->opcode,
		.psn = resource->first_psn,
		.dest_qpn = qp->number,
		.xrc_srqn = resource->srq_number,
		.remote_addr = resource->remote_addr,
		.rkey = resource->rkey,
		.dma_bytes = resource->limit,
	};
	struct head head = request_head(qp, &packet);

	head.psn = sim_psn_add(resource->first_psn, resource->asked);
	head.msn = (resource->msn + SIM_PSN_MASK) & SIM_PSN_MASK;
	head.asked = asked;
	head.again = true;
	return send_request(qp, resource->holder, &head, &packet);
}

void sim_relay_fetch(struct sim_qp *qp, struct sim_resource *resource, unsigned int room)
{
	uint32_t asked = resource->end - resource->asked;

	if (!(sim_opcodes[resource->opcode].flags & SIM_OP_READ) ||
	    resource->asked - resource->next >= FETCH_MAX)
		return;
	if (asked > FETCH_MAX)
		asked = FETCH_MAX;
	if (asked > room)
		asked = room;
	if (asked && send_again(qp, resource, (uint8_t)asked))
		resource->asked += asked;
}

void sim_relay_ask_value(struct sim_qp *qp, const struct sim_resource *resource)
{
	send_again(qp, resource, 0);
}

void sim_relay_reset(struct sim_qp *qp)
{
	qp->relay = (struct sim_relay){.epoch = (uint8_t)(qp->relay.epoch + 1)};
}

static void take_answer(struct sim_qp *qp, const struct head *head)
{
	static const uint32_t messages[] = {
		[MESSAGE_NONE] = 0, [MESSAGE_SEND] = SIM_OP_SEND, [MESSAGE_WRITE] = SIM_OP_WRITE};

	if (qp->relay.ahead && head->message <= MESSAGE_WRITE)
		sim_responder_relayed(qp, head->psn & SIM_PSN_MASK, head->syndrome,
				      head->msn & SIM_PSN_MASK, messages[head->message]);
}

static bool is_event(uint8_t event)
{
	return event == IBV_EVENT_QP_FATAL || event == IBV_EVENT_QP_REQ_ERR ||
	       event == IBV_EVENT_QP_ACCESS_ERR;
}

/* The front takes a message of its proxy. */
static void hear_proxy(struct sim_qp *qp, uint64_t process, const struct head *head,
		       const uint8_t *bytes, size_t length)
{
	const bool is_holder = qp->relay.holder == process;

	if (head->kind == KIND_DATA)
		sim_answer_fetched(qp, process, head->psn & SIM_PSN_MASK, bytes, (uint32_t)length);
	else if (head->kind == KIND_ANSWER && is_holder)
		take_answer(qp, head);
	else if (head->kind == KIND_EVENT && is_holder && is_event(head->event))
		sim_qp_event(qp, head->event);
	else if (head->kind == KIND_END && is_holder)
		sim_responder_relay_failed(qp);
}

/* --- the proxy --- */

/* Sends a head, and the bytes that follow it. Returns false if there is no room. */
static bool send_to_front(const struct sim_qp *proxy, struct head head, const void *bytes,
			  size_t length)
{
	uint8_t sent[SIM_RELAY_BYTES_MAX];

	head.target = proxy->number;
	head.epoch = proxy->relay.epoch;
	memcpy(sent, &head, sizeof(head));
	if (length)
		memcpy(sent + sizeof(head), bytes, length);
	return send_bytes(proxy, sim_device_port(proxy->device, proxy->port_num),
			  proxy->relay.holder, sent, sizeof(head) + length);
}

void sim_relay_answer(struct sim_qp *proxy, uint8_t syndrome, uint32_t psn)
{
	const uint32_t message = proxy->resp.in_message;
	const struct head head = {
		.psn = psn,
		.msn = proxy->resp.msn,
		.kind = KIND_ANSWER,
		.syndrome = syndrome,
		.message = message == SIM_OP_SEND    ? MESSAGE_SEND
			   : message == SIM_OP_WRITE ? MESSAGE_WRITE
						     : MESSAGE_NONE,
	};

	send_to_front(proxy, head, NULL, 0);
}

void sim_relay_event(const struct sim_qp *proxy, enum ibv_event_type type)
{
	send_to_front(proxy, (struct head){.kind = KIND_EVENT, .event = (uint8_t)type}, NULL, 0);
}

/* Returns false if there is no room. */
static bool send_data(const struct sim_qp *proxy, uint32_t psn, const void *bytes, size_t length)
{
	return send_to_front(proxy, (struct head){.psn = psn, .kind = KIND_DATA}, bytes, length);
}

void sim_relay_value(struct sim_qp *proxy, const struct sim_resource *resource)
{
	send_data(proxy, resource->first_psn, &resource->original, sizeof(resource->original));
}

static void end_proxy(struct sim_device *device, struct sim_qp **at)
{
	struct sim_qp *proxy = *at;

	*at = proxy->next_proxy;
	device->proxy_count--;
	sim_qp_destroy(proxy);
}

/* Ends the oldest proxy, which is the last one of the list. */
static void end_oldest(struct sim_device *device)
{
	struct sim_qp **at = &device->proxies;

	while (*at && (*at)->next_proxy)
		at = &(*at)->next_proxy;
	if (*at)
		end_proxy(device, at);
}

void sim_relay_end(struct sim_device *device)
{
	while (device->proxies)
		end_proxy(device, &device->proxies);
}

/* Returns the proxy of a target, which is made if need be; NULL without memory. */
static struct sim_qp *proxy_of(struct sim_device *device, uint64_t process, uint32_t target)
{
	struct sim_qp *proxy = device->proxies;

	while (proxy && (proxy->number != target || proxy->relay.holder != process))
		proxy = proxy->next_proxy;
	if (proxy)
		return proxy;
	if (device->proxy_count >= PROXIES_MAX)
		end_oldest(device);
	if (sim_qp_create_proxy(device, target, &proxy))
		return NULL;
	proxy->relay.holder = process;
	proxy->relay.refused = true;
	proxy->next_proxy = device->proxies;
	device->proxies = proxy;
	device->proxy_count++;
	return proxy;
}

/* The proxy has the attributes that the target has now. */
static void follow(struct sim_qp *proxy, const struct sim_port *port, const struct head *head)
{
	proxy->port_num = (uint8_t)port->number;
	proxy->dest_qpn = head->peer;
	proxy->access = head->access;
	proxy->mtu = head->mtu;
	proxy->mtu_bytes = 128u << head->mtu;
	proxy->pkey_index = head->pkey_index;
	/* The answers that wait belong to the epoch before. */
	if (proxy->relay.epoch != head->epoch)
		sim_responder_run(proxy);
	proxy->relay.epoch = head->epoch;
	proxy->relay.refused = false;
}

/* Returns the SRQ of a request if it is of the target's domain. */
static const struct sim_srq *srq_of(const struct sim_device *device, const struct head *head,
				    uint32_t number)
{
	const struct sim_srq *srq = sim_table_find(&device->srqs, number);

	return srq && srq->xrcd && srq->xrcd->shared &&
			       !memcmp(srq->xrcd->key, head->domain, sizeof(head->domain))
		       ? srq
		       : NULL;
}

/* Sends the data of one packet of a READ. Returns false if its memory cannot be read. *room is false if there
 * was no room. */
static bool send_part(struct sim_qp *proxy, const struct sim_packet *read, uint32_t part,
		      bool *room)
{
	const uint32_t done = part * proxy->mtu_bytes;
	uint8_t bytes[SIM_PATH_MTU_MAX];
	struct sim_span from = {.length_bytes = read->dma_bytes - done};
	struct sim_span to = {.base = bytes};

	if (from.length_bytes > proxy->mtu_bytes)
		from.length_bytes = proxy->mtu_bytes;
	to.length_bytes = from.length_bytes;
	if (from.length_bytes) {
		from.base = sim_responder_memory(proxy, read->rkey, read->remote_addr + done,
						 from.length_bytes, IBV_ACCESS_REMOTE_READ);
		if (!from.base || sim_qp_copy(proxy, &from, 1, &to, 1))
			return false;
	}
	*room = send_data(proxy, sim_psn_add(read->psn, part), bytes, from.length_bytes);
	return true;
}

/* Answers the packets of a READ that the front asks for. Does not change a message in progress,
 * which continues behind the READ. */
static void serve_read(struct sim_qp *proxy, const struct head *head,
		       const struct sim_packet *packet)
{
	enum sim_verdict verdict = sim_responder_check_read(proxy, packet);
	const uint32_t packets = sim_response_packets(proxy, packet->dma_bytes);
	uint32_t part = (head->psn - packet->psn) & SIM_PSN_MASK;
	bool room = true;

	for (uint32_t left = head->asked; left && room && verdict == SIM_ACCEPT; left--, part++) {
		if (part >= packets)
			return;
		if (!send_part(proxy, packet, part, &room))
			verdict = SIM_ACCESS_DENIED;
	}
	if (verdict == SIM_ACCEPT)
		return;
	sim_responder_refuse_read(proxy, packet, part, head->msn & SIM_PSN_MASK, verdict);
}

/* Does a request, as any responder. */
static void serve_checked(struct sim_qp *proxy, const struct sim_srq *srq, const struct head *head,
			  struct sim_packet *packet)
{
	const uint32_t flags = sim_opcodes[packet->opcode].flags;

	sim_responder_use_pd(proxy, srq->pd);
	if (flags & SIM_OP_READ) {
		sim_responder_revive(proxy);
		serve_read(proxy, head, packet);
	} else if (flags & SIM_OP_ATOMIC && head->again) {
		sim_answer_replay(proxy, packet, flags);
	} else if (sim_responder_resume(proxy, packet->psn, head->msn & SIM_PSN_MASK, flags)) {
		sim_responder_receive(proxy, packet);
	}
}

static void serve(struct sim_port *port, uint64_t process, const struct head *head,
		  struct sim_packet *packet)
{
	const struct sim_srq *srq = srq_of(port->device, head, packet->xrc_srqn);
	struct sim_qp *proxy = proxy_of(port->device, process, head->target);

	if (!proxy || (proxy->relay.refused && proxy->relay.epoch == head->epoch &&
		       proxy->state != IBV_QPS_RESET))
		return;
	follow(proxy, port, head);
	if (!srq) {
		sim_relay_event(proxy, IBV_EVENT_QP_REQ_ERR);
		sim_relay_answer(proxy, SIM_NAK_INVALID_REQUEST, packet->psn);
		proxy->relay.refused = true;
		return;
	}
	proxy->xrcd = srq->xrcd;
	packet->slid = head->slid;
	serve_checked(proxy, srq, head, packet);
	/* The answer follows in the proxy's turn, which comes after the next requests. */
	proxy->relay.refused = proxy->resp.nak_pending || proxy->state == IBV_QPS_ERR;
	if (proxy->state != IBV_QPS_ERR)
		return;
	sim_responder_run(proxy);
	send_to_front(proxy, (struct head){.kind = KIND_END}, NULL, 0);
}

static void take_request(struct sim_port *port, uint64_t process, const struct head *head,
			 const uint8_t *frame, size_t frame_bytes)
{
	const struct sim_outlet *outlet = port->device->engine->outlet;
	struct sim_packet packet;
	struct sim_route route;
	struct sim_span span;
	uint32_t flags;

	if (head->mtu < IBV_MTU_256 || head->mtu > IBV_MTU_4096 ||
	    outlet->holder(port->device->engine, port->device, SIM_NUMBERS_QP, head->target) !=
		    process ||
	    sim_packet_read(frame, frame_bytes, true, &packet, &span, &route) != SIM_DECODE_OK)
		return;
	flags = sim_opcodes[packet.opcode].flags;
	if ((packet.opcode & SIM_TRANSPORT_MASK) == SIM_TRANSPORT_XRC && flags & SIM_OP_REQUEST)
		serve(port, process, head, &packet);
}

/* --- both --- */

void sim_relay_arrive(struct sim_port *port, uint64_t process, const uint8_t *bytes, size_t length)
{
	const uint8_t *rest = bytes + sizeof(struct head);
	struct head head;
	struct sim_qp *qp;

	if (length < sizeof(head) || !port->device->engine->outlet->holder)
		return;
	memcpy(&head, bytes, sizeof(head));
	if (head.kind == KIND_REQUEST) {
		take_request(port, process, &head, rest, length - sizeof(head));
		return;
	}
	qp = sim_table_find(&port->device->qps, head.target);
	if (qp && qp->xrcd && qp->relay.epoch == head.epoch && qp->state >= IBV_QPS_RTR)
		hear_proxy(qp, process, &head, rest, length - sizeof(head));
}
