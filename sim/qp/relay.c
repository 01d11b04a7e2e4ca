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

enum kind {
	KIND_REQUEST, /* a frame follows */
	KIND_ANSWER,
};

/* The message in progress, when a request is refused. */
enum message { MESSAGE_NONE, MESSAGE_SEND, MESSAGE_WRITE };

/* What the relays of two processes tell each other. */
struct head {
	uint64_t domain[2];
	uint32_t target; /* the QPN of the front */
	uint32_t peer;	 /* the QPN of the requester */
	uint32_t psn;	 /* of an answer */
	uint32_t msn;
	uint32_t access;
	uint16_t pkey_index, slid;
	uint8_t kind, epoch, mtu, syndrome, message;
	uint8_t spare[3];
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

static uint64_t holder_of(const struct sim_qp *qp, uint32_t srq_number)
{
	const struct sim_outlet *outlet = qp->engine->outlet;

	if (!outlet->holder || !qp->xrcd->shared)
		return 0;
	return outlet->holder(qp->engine, qp->device, SIM_NUMBERS_SRQ, srq_number);
}

/* InfiniBand's headers are the shortest; the proxy reads none of them but the BTH and what follows. */
static size_t write_request(struct sim_qp *qp, const struct sim_packet *packet, uint32_t flags,
			    uint8_t *bytes)
{
	const struct sim_route route = {.infiniband = true};
	struct sim_packet sent = *packet;
	struct head head = {
		.domain = {qp->xrcd->key[0], qp->xrcd->key[1]},
		.target = qp->number,
		.peer = qp->dest_qpn,
		.msn = qp->resp.msn,
		.access = qp->access,
		.pkey_index = qp->pkey_index,
		.slid = packet->slid,
		.kind = KIND_REQUEST,
		.epoch = qp->relay.epoch,
		.mtu = qp->mtu,
	};
	bool readable = true;
	size_t length;

	/* The front waits for an answer to each message. */
	if (flags & SIM_OP_END)
		sent.flags |= SIM_PACKET_ACK_REQUEST;
	memcpy(bytes, &head, sizeof(head));
	length = sim_packet_write(&sent, &route, qp->engine->host.memory.copy, bytes + sizeof(head),
				  &readable);
	return readable ? sizeof(head) + length : 0;
}

enum sim_relayed sim_relay_request(struct sim_qp *qp, const struct sim_packet *packet,
				   uint32_t flags)
{
	const uint64_t holder = holder_of(qp, packet->xrc_srqn);
	uint8_t bytes[SIM_RELAY_BYTES_MAX];
	size_t length;

	if (!holder || !(flags & (SIM_OP_SEND | SIM_OP_WRITE)))
		return SIM_RELAY_NOBODY;
	if (!sim_payload_fits(qp, packet->payload_bytes, flags))
		return SIM_RELAY_NOBODY;
	if (qp->relay.ahead && (qp->relay.holder != holder || qp->relay.ahead >= AHEAD_MAX))
		return SIM_RELAY_LATER;
	length = write_request(qp, packet, flags, bytes);
	if (!length || !send_bytes(qp, qp->path.source, holder, bytes, length))
		return SIM_RELAY_LATER;
	qp->relay.holder = holder;
	qp->relay.ahead++;
	return SIM_RELAY_SENT;
}

void sim_relay_reset(struct sim_qp *qp)
{
	qp->relay = (struct sim_relay){.epoch = (uint8_t)(qp->relay.epoch + 1)};
}

static void take_answer(struct sim_device *device, uint64_t process, const struct head *head)
{
	static const uint32_t messages[] = {
		[MESSAGE_NONE] = 0, [MESSAGE_SEND] = SIM_OP_SEND, [MESSAGE_WRITE] = SIM_OP_WRITE};
	struct sim_qp *qp = sim_table_find(&device->qps, head->target);

	if (qp && qp->xrcd && qp->relay.ahead && qp->relay.holder == process &&
	    qp->relay.epoch == head->epoch && head->message <= MESSAGE_WRITE)
		sim_responder_relayed(qp, head->psn & SIM_PSN_MASK, head->syndrome,
				      head->msn & SIM_PSN_MASK, messages[head->message]);
}

/* --- the proxy --- */

void sim_relay_answer(struct sim_qp *proxy, uint8_t syndrome, uint32_t psn)
{
	const uint32_t message = proxy->resp.in_message;
	struct head head = {
		.target = proxy->number,
		.psn = psn,
		.msn = proxy->resp.msn,
		.kind = KIND_ANSWER,
		.epoch = proxy->relay.epoch,
		.syndrome = syndrome,
		.message = message == SIM_OP_SEND    ? MESSAGE_SEND
			   : message == SIM_OP_WRITE ? MESSAGE_WRITE
						     : MESSAGE_NONE,
	};

	send_bytes(proxy, sim_device_port(proxy->device, proxy->port_num), proxy->relay.holder,
		   (const uint8_t *)&head, sizeof(head));
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

static void serve(struct sim_port *port, uint64_t process, const struct head *head,
		  struct sim_packet *packet)
{
	const uint32_t flags = sim_opcodes[packet->opcode].flags;
	const struct sim_srq *srq = srq_of(port->device, head, packet->xrc_srqn);
	struct sim_qp *proxy = proxy_of(port->device, process, head->target);

	if (!proxy || (proxy->relay.refused && proxy->relay.epoch == head->epoch &&
		       proxy->state != IBV_QPS_RESET))
		return;
	follow(proxy, port, head);
	if (!srq) {
		sim_relay_answer(proxy, SIM_NAK_INVALID_REQUEST, packet->psn);
		proxy->relay.refused = true;
		return;
	}
	proxy->xrcd = srq->xrcd;
	packet->slid = head->slid;
	if (sim_responder_resume(proxy, packet->psn, head->msn & SIM_PSN_MASK, flags))
		sim_responder_receive(proxy, packet);
	/* The answer follows in the proxy's turn, which comes after the next requests. */
	proxy->relay.refused = proxy->resp.nak_pending;
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
	if ((packet.opcode & SIM_TRANSPORT_MASK) == SIM_TRANSPORT_XRC && flags & SIM_OP_REQUEST &&
	    flags & (SIM_OP_SEND | SIM_OP_WRITE))
		serve(port, process, head, &packet);
}

/* --- both --- */

void sim_relay_arrive(struct sim_port *port, uint64_t process, const uint8_t *bytes, size_t length)
{
	struct head head;

	if (length < sizeof(head) || !port->device->engine->outlet->holder)
		return;
	memcpy(&head, bytes, sizeof(head));
	if (head.kind == KIND_ANSWER)
		take_answer(port->device, process, &head);
	else if (head.kind == KIND_REQUEST)
		take_request(port, process, &head, bytes + sizeof(head), length - sizeof(head));
}
