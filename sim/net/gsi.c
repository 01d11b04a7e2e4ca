/* SPDX-License-Identifier: MIT */
#include "sim/net/gsi.h"

#include "sim/base/note.h"
#include "sim/net/net.h"
#include "sim/object/device.h"
#include "sim/qp/outlet.h"
#include "sim/qp/qp.h"

#include <string.h>
#include <verbena/packet.h>

/* The bit of a P_Key that makes a full member. */
#define PKEY_FULL 0x8000u

void sim_gsi_set(struct sim_engine *engine, const struct sim_gsi *gsi)
{
	engine->net->gsi = gsi ? *gsi : (struct sim_gsi){0};
}

/* --- sending --- */

static void send_now(struct sim_engine *engine, struct sim_path *path, uint16_t pkey,
		     const uint8_t *mad)
{
	const struct sim_span span = {mad, SIM_MAD_BYTES};
	const struct sim_packet packet = {
		.opcode = sim_opcode_request(SIM_TRANSPORT_UD, IBV_WR_SEND, true, true),
		.flags = SIM_PACKET_MIGRATED,
		.pkey = pkey,
		.dest_qpn = SIM_GSI_QPN,
		.source_qpn = SIM_GSI_QPN,
		.psn = path->source->gsi_psn++ & 0xffffff,
		.payload_bytes = SIM_MAD_BYTES,
		.span_count = 1,
		.spans = &span,
		.qkey = SIM_GSI_QKEY,
		.slid = path->route.infiniband ? path->source->lid : 0,
		.sl = path->route.sl,
	};

	engine->outlet->send(engine, path, &packet);
}

/* Returns the process that takes a message to QP 1 of a port; 0: this one. */
static uint64_t server_of(const struct sim_net *net, const struct sim_port *port,
			  const uint8_t *mad)
{
	return net->way ? net->gsi.server(net->gsi.arg, port, mad) : 0;
}

/* Returns true if a message leaves the engine, and sets *receiver. */
static bool leaves(struct sim_engine *engine, struct sim_path *path, const uint8_t *mad,
		   struct sim_gsi_receiver *receiver)
{
	*receiver = (struct sim_gsi_receiver){0};
	if (!engine->net->way)
		return false;
	sim_fabric_find_way(engine, path);
	if (path->beyond)
		memcpy(receiver->gid, path->route.dest_gid, sizeof(receiver->gid));
	else if (path->dest)
		receiver->process = server_of(engine->net, path->dest, mad);
	return path->beyond || receiver->process;
}

void sim_gsi_send(struct sim_engine *engine, struct sim_path *path, uint16_t pkey,
		  const uint8_t *mad)
{
	struct sim_net *net = engine->net;
	struct sim_gsi_receiver receiver;
	struct sim_gsi_letter *letter = NULL;

	if (leaves(engine, path, mad, &receiver) &&
	    (sim_gsi_lines_have(&net->gsi_lines, &receiver) ||
	     !sim_way_out_has_room(net->way, path, SIM_GSI_QPN, receiver.process)))
		letter = sim_gsi_lines_add(&net->gsi_lines, &receiver);
	if (!letter) {
		send_now(engine, path, pkey, mad);
		return;
	}
	letter->path = *path;
	letter->pkey = pkey;
	memcpy(letter->mad, mad, sizeof(letter->mad));
}

static bool send_letter(void *arg, const struct sim_gsi_receiver *receiver,
			struct sim_gsi_letter *letter)
{
	struct sim_engine *engine = arg;
	const struct sim_way_out *way = engine->net->way;

	sim_fabric_find_way(engine, &letter->path);
	if (way && (letter->path.dest || letter->path.beyond) &&
	    !sim_way_out_has_room(way, &letter->path, SIM_GSI_QPN, receiver->process))
		return false;
	send_now(engine, &letter->path, letter->pkey, letter->mad);
	return true;
}

void sim_gsi_release(struct sim_net *net)
{
	sim_gsi_lines_release(&net->gsi_lines, send_letter, net->engine);
}

void sim_gsi_forget(struct sim_engine *engine)
{
	sim_gsi_lines_clear(&engine->net->gsi_lines);
}

/* --- dropped messages --- */

static void note(const struct sim_port *port, const struct sim_packet *packet,
		 const struct sim_route *route, const struct vb_why *why)
{
	struct vb_packet shown;

	sim_packet_show(packet, route, &shown);
	sim_note_drop(port->device, port, NULL, &shown, why);
}

static void drop(const struct sim_port *port, const struct sim_packet *packet,
		 const struct sim_route *route, enum sim_discard cause, struct vb_why why)
{
	sim_discard(&port->device->counters, cause);
	port->device->counters.refused_packets++;
	if (!sim_watched(port->device->engine))
		return;
	why.text = sim_opcodes[packet->opcode].name;
	note(port, packet, route, &why);
}

void sim_gsi_drop(const struct sim_gsi_message *message, enum sim_discard cause,
		  enum vb_reason reason, uint64_t first, uint64_t second)
{
	struct sim_device *device = message->port->device;
	const struct vb_why why = {
		.reason = reason,
		.values = {first, second},
		.text = sim_cm_message_info[sim_mad_message(message->mad)].name,
	};

	sim_discard(&device->counters, cause);
	if (sim_watched(device->engine))
		sim_note_drop(device, message->port, NULL, NULL, &why);
}

/* --- arrival --- */

/* Two P_Keys match if their low bits are equal and one of them is a full member's: Linux
 * drivers/infiniband/sw/rxe/rxe_hdr.h and rxe_recv.c. */
static bool has_pkey(const struct sim_port *port, uint16_t pkey)
{
	for (unsigned int i = 0; i < port->pkey_count; i++)
		if (!((port->pkeys[i] ^ pkey) & ~PKEY_FULL & 0xffff) &&
		    (port->pkeys[i] | pkey) & PKEY_FULL)
			return true;
	return false;
}

static bool is_datagram(const struct sim_packet *packet)
{
	return packet->opcode == sim_opcode_request(SIM_TRANSPORT_UD, IBV_WR_SEND, true, true);
}

/* Returns false if the packet is no message of the connection manager, and why. */
static bool check_packet(const struct sim_port *port, const struct sim_packet *packet,
			 enum sim_discard *cause, struct vb_why *why)
{
	if (!is_datagram(packet)) {
		*cause = SIM_DISCARD_TRANSPORT;
		*why = (struct vb_why){.reason = VB_WHY_DROP_MAD_OPCODE};
	} else if (!has_pkey(port, packet->pkey)) {
		*cause = SIM_DISCARD_PKEY;
		*why = (struct vb_why){VB_WHY_DROP_MAD_PKEY, {packet->pkey, port->number}};
	} else if (packet->qkey != SIM_GSI_QKEY) {
		*cause = SIM_DISCARD_QKEY;
		*why = (struct vb_why){VB_WHY_DROP_MAD_QKEY, {packet->qkey, SIM_GSI_QKEY}};
	} else if (packet->source_qpn != SIM_GSI_QPN) {
		*cause = SIM_DISCARD_MAD_SOURCE;
		*why = (struct vb_why){VB_WHY_DROP_MAD_SOURCE, {packet->source_qpn}};
	} else if (packet->payload_bytes != SIM_MAD_BYTES) {
		*cause = SIM_DISCARD_MAD_LENGTH;
		*why = (struct vb_why){VB_WHY_DROP_MAD_LENGTH,
				       {packet->payload_bytes, SIM_MAD_BYTES}};
	} else {
		return true;
	}
	return false;
}

static bool check_header(const uint8_t *mad, enum sim_discard *cause, struct vb_why *why)
{
	static const struct {
		enum sim_cm_field field;
		uint64_t value;
		enum sim_discard cause;
		enum vb_reason reason;
	} rows[] = {
		{SIM_CM_NONE_BASE_VERSION, SIM_MAD_BASE_VERSION, SIM_DISCARD_MAD_VERSION,
		 VB_WHY_DROP_MAD_BASE_VERSION},
		{SIM_CM_NONE_CLASS, SIM_MAD_CLASS_CM, SIM_DISCARD_MAD_CLASS, VB_WHY_DROP_MAD_CLASS},
		{SIM_CM_NONE_CLASS_VERSION, SIM_MAD_CM_VERSION, SIM_DISCARD_MAD_VERSION,
		 VB_WHY_DROP_MAD_CLASS_VERSION},
		{SIM_CM_NONE_METHOD, SIM_MAD_METHOD_SEND, SIM_DISCARD_MAD_METHOD,
		 VB_WHY_DROP_MAD_METHOD},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const uint64_t found = sim_mad_get(mad, rows[i].field);

		if (found == rows[i].value)
			continue;
		*cause = rows[i].cause;
		*why = (struct vb_why){rows[i].reason, {found, rows[i].value}};
		return false;
	}
	return true;
}

/* Copies the message out of the packet's memory, which may be a program's. */
static bool read_mad(struct sim_engine *engine, const struct sim_packet *packet, uint8_t *mad)
{
	uint32_t at = 0;

	for (unsigned int i = 0; i < packet->span_count; i++) {
		const struct sim_span *span = &packet->spans[i];

		if (span->length_bytes > SIM_MAD_BYTES - at ||
		    engine->host.memory.copy(mad + at, span->base, span->length_bytes))
			return false;
		at += span->length_bytes;
	}
	return at == SIM_MAD_BYTES;
}

void sim_gsi_arrive(struct sim_port *port, const struct sim_packet *packet,
		    const struct sim_route *route, uint64_t process)
{
	struct sim_engine *engine = port->device->engine;
	const struct sim_gsi *gsi = &engine->net->gsi;
	enum sim_discard cause = SIM_DISCARD_MAD_LENGTH;
	struct vb_why why = {VB_WHY_DROP_MAD_LENGTH, {packet->payload_bytes, SIM_MAD_BYTES}};
	uint8_t mad[SIM_MAD_BYTES];

	if (check_packet(port, packet, &cause, &why) && read_mad(engine, packet, mad) &&
	    check_header(mad, &cause, &why))
		gsi->receive(gsi->arg,
			     &(struct sim_gsi_message){port, mad, route, packet->pkey, process});
	else
		drop(port, packet, route, cause, why);
}

uint64_t sim_gsi_server(const struct sim_net *net, const struct sim_port *port,
			const struct sim_packet *packet)
{
	uint8_t mad[SIM_MAD_BYTES];

	return read_mad(net->engine, packet, mad) ? server_of(net, port, mad) : 0;
}

void sim_gsi_sent(const struct sim_net *net, const struct sim_packet *packet, uint64_t process)
{
	uint8_t mad[SIM_MAD_BYTES];

	if (read_mad(net->engine, packet, mad))
		net->gsi.sent(net->gsi.arg, mad, process);
}
