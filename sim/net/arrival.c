/* SPDX-License-Identifier: MIT */
#include "sim/net/arrival.h"

#include "sim/base/note.h"
#include "sim/net/net.h"
#include "sim/object/rules.h"
#include "sim/qp/qp.h"
#include "sim/wire/psn.h"

#include <errno.h>
#include <string.h>
#include <verbena/packet.h>

bool sim_arrival_is_misrouted(const struct sim_port *port, const struct sim_route *route)
{
	union ibv_gid dgid;

	if (!route->infiniband || !route->has_grh || sim_lid_is_multicast(route->dlid))
		return false;
	memcpy(dgid.raw, route->dest_gid, sizeof(dgid));
	return sim_port_find_gid(port, &dgid, IBV_GID_TYPE_IB) < 0;
}

/* Returns true if the port does not have the destination GID of a frame, or, on InfiniBand, its destination LID. This
 * happens if the port has lost the address while the frame was under way, or if the frame was changed. */
static bool is_misaddressed(struct sim_port *port, const struct sim_route *route)
{
	union ibv_gid dgid;

	if (route->infiniband)
		return !sim_lid_is_multicast(route->dlid) &&
		       (route->dlid != port->lid || sim_arrival_is_misrouted(port, route));
	memcpy(dgid.raw, route->dest_gid, sizeof(dgid));
	return !sim_gid_is_multicast(dgid.raw) &&
	       !sim_port_has_gid(port, &dgid,
				 route->roce_v1 ? IBV_GID_TYPE_ROCE_V1 : IBV_GID_TYPE_ROCE_V2);
}

static bool is_to_group(const struct sim_route *route)
{
	return route->infiniband ? sim_lid_is_multicast(route->dlid)
				 : sim_gid_is_multicast(route->dest_gid);
}

static void arrive_at_group(struct sim_port *port, const struct sim_packet *packet,
			    const struct sim_route *route)
{
	struct sim_member *next;

	for (struct sim_member *member = port->device->engine->net->members; member;
	     member = next) {
		next = member->next;
		if (sim_multicast_matches(member, port, route) &&
		    sim_qp_objects(member->qp, port, packet, route) == SIM_DISCARD_NONE)
			sim_datagram_receive(member->qp, packet, route);
	}
}

/* Counts a packet that no QP takes. qp is NULL if no QP has its QPN. */
static void refuse(const struct sim_port *port, const struct sim_qp *qp,
		   const struct sim_packet *packet, const struct sim_route *route,
		   enum sim_discard cause)
{
	sim_qp_discard(qp, port, packet, route, cause);
	port->device->counters.refused_packets++;
}

/* The drop counter and the reason of each decoding error. */
static const struct {
	enum sim_discard cause;
	enum vb_reason reason;
} decode_errors[] = {
	[SIM_DECODE_TRUNCATED] = {SIM_DISCARD_TRUNCATED, VB_WHY_DROP_TRUNCATED},
	[SIM_DECODE_NOT_ROCE] = {SIM_DISCARD_NETWORK_HEADER, VB_WHY_DROP_NETWORK_HEADER},
	[SIM_DECODE_NOT_INFINIBAND] = {SIM_DISCARD_NETWORK_HEADER, VB_WHY_DROP_NETWORK_HEADER},
	[SIM_DECODE_BAD_VERSION] = {SIM_DISCARD_VERSION, VB_WHY_DROP_VERSION},
	[SIM_DECODE_BAD_OPCODE] = {SIM_DISCARD_OPCODE, VB_WHY_DROP_OPCODE},
	[SIM_DECODE_BAD_PAD] = {SIM_DISCARD_PAD, VB_WHY_DROP_PAD},
	[SIM_DECODE_BAD_ICRC] = {SIM_DISCARD_ICRC, VB_WHY_DROP_ICRC},
	[SIM_DECODE_BAD_VCRC] = {SIM_DISCARD_VCRC, VB_WHY_DROP_VCRC},
};

static void note_undecoded(const struct sim_port *port, size_t frame_bytes, enum vb_reason reason,
			   const struct vb_packet *shown)
{
	struct vb_why why = {.reason = reason, .text = shown->opcode_name};

	if (reason == VB_WHY_DROP_OPCODE)
		why.values[0] = shown->opcode;
	else if (reason == VB_WHY_DROP_ICRC || reason == VB_WHY_DROP_VCRC)
		why.values[0] = shown->psn;
	else
		why.values[0] = frame_bytes;
	sim_note_drop(port->device, port, NULL, shown, &why);
}

/* Counts bytes that cannot be decoded. Returns true if the drop must be noted. */
static bool count_undecoded(const struct sim_port *port, enum sim_decode error)
{
	struct sim_device *device = port->device;

	sim_discard(&device->counters, decode_errors[error].cause);
	device->counters.refused_packets++;
	return sim_watched(device->engine);
}

static void refuse_frame(const struct sim_port *port, const uint8_t *frame, size_t frame_bytes,
			 enum sim_decode error)
{
	struct vb_packet shown;

	if (!count_undecoded(port, error))
		return;
	sim_frame_show(frame, frame_bytes, sim_port_is_infiniband(port), &shown);
	note_undecoded(port, frame_bytes, decode_errors[error].reason, &shown);
}

/* Gives a packet that has come to a port from a process to its QP, or counts why no QP takes the packet. Returns the QP
 * that has the packet's QPN and has taken the packet, or NULL. */
static struct sim_qp *admit(struct sim_port *port, const struct sim_packet *packet,
			    const struct sim_route *route, uint64_t process)
{
	struct sim_device *device = port->device;
	struct sim_qp *qp = sim_table_find(&device->qps, packet->dest_qpn);
	enum sim_discard cause;

	if (packet->dest_qpn == SIM_MULTICAST_QPN && is_to_group(route)) {
		arrive_at_group(port, packet, route);
		return NULL;
	}
	if (packet->dest_qpn == SIM_GSI_QPN && device->engine->net->gsi.receive) {
		sim_gsi_arrive(port, packet, route, process);
		return NULL;
	}
	cause = sim_qp_take_packet(qp, port, packet, route);
	if (cause == SIM_DISCARD_NONE)
		return qp;
	refuse(port, qp, packet, route, cause);
	return NULL;
}

void sim_arrival_packet(struct sim_port *port, const struct sim_packet *packet,
			const struct sim_route *route)
{
	port->device->counters.received_packets++;
	if (sim_arrival_is_misrouted(port, route))
		refuse(port, NULL, packet, route, SIM_DISCARD_ADDRESS);
	else
		admit(port, packet, route, 0);
}

enum sim_decode sim_arrival_decode(const struct sim_port *port, const uint8_t *frame,
				   size_t frame_bytes, struct sim_packet *packet,
				   struct sim_span *span, struct sim_route *route)
{
	return (sim_port_is_infiniband(port) ? sim_packet_decode_infiniband : sim_packet_decode)(
		frame, frame_bytes, packet, span, route);
}

void sim_arrival_frame(struct sim_port *port, const uint8_t *frame, size_t frame_bytes,
		       bool checked, uint64_t process)
{
	struct sim_packet packet;
	struct sim_route route;
	struct sim_span span;
	enum sim_decode result =
		checked ? sim_packet_read(frame, frame_bytes, sim_port_is_infiniband(port), &packet,
					  &span, &route)
			: sim_arrival_decode(port, frame, frame_bytes, &packet, &span, &route);

	port->device->counters.received_packets++;
	if (result != SIM_DECODE_OK)
		refuse_frame(port, frame, frame_bytes, result);
	else if (is_misaddressed(port, &route))
		refuse(port, NULL, &packet, &route, SIM_DISCARD_ADDRESS);
	else
		admit(port, &packet, &route, process);
}

static void refuse_bare(const struct sim_port *port, const struct sim_packet *packet,
			const struct sim_route *route, size_t length_bytes, enum sim_decode error)
{
	struct vb_packet shown;

	if (!count_undecoded(port, error))
		return;
	sim_packet_show(packet, route, &shown);
	note_undecoded(port, length_bytes, decode_errors[error].reason, &shown);
}

/* An inlet remembers the last admitted request and the last admitted answer. Returns the one of the packet's kind. */
static struct sim_admitted *admitted_of(struct sim_inlet *inlet, const struct sim_packet *packet)
{
	return &inlet->admitted[!!(sim_opcodes[packet->opcode].flags & SIM_OP_REQUEST)];
}

/* Returns true if this packet passes the same checks as the last admitted packet of its inlet. */
static bool is_admitted(const struct sim_admitted *last, const struct sim_port *port,
			const struct sim_packet *packet)
{
	return last->epoch == port->device->engine->epoch && last->port == port &&
	       last->dest_qpn == packet->dest_qpn && last->pkey == packet->pkey &&
	       last->transport == (packet->opcode & SIM_TRANSPORT_MASK);
}

/* Checks the packet of an inlet and gives it to its QP. Remembers a connected QP, so that its next packets need no
 * checks until the engine's epoch changes. The packet itself may change the epoch, so the epoch is read first. */
__attribute__((noinline)) static void admit_by_inlet(struct sim_port *port, struct sim_inlet *inlet,
						     const struct sim_packet *packet)
{
	const uint64_t epoch = port->device->engine->epoch;
	const struct sim_route *route = &inlet->route;
	struct sim_qp *qp;

	if (route->infiniband != sim_port_is_infiniband(port) || is_misaddressed(port, route)) {
		refuse(port, NULL, packet, route, SIM_DISCARD_ADDRESS);
		return;
	}
	qp = admit(port, packet, route, inlet->process);
	if (qp && sim_qp_is_connected(qp))
		*admitted_of(inlet, packet) = (struct sim_admitted){
			.epoch = epoch,
			.port = port,
			.qp = qp,
			.dest_qpn = packet->dest_qpn,
			.pkey = packet->pkey,
			.transport = packet->opcode & SIM_TRANSPORT_MASK,
		};
}

/* Gives the packet of an inlet to its QP, or counts why no QP takes the packet. */
static inline void take(struct sim_port *port, struct sim_inlet *inlet,
			const struct sim_packet *packet)
{
	const struct sim_admitted *last = admitted_of(inlet, packet);

	port->device->counters.received_packets++;
	if (is_admitted(last, port, packet))
		sim_qp_give_packet(last->qp, packet);
	else
		admit_by_inlet(port, inlet, packet);
}

void sim_arrival_bare(struct sim_port *port, struct sim_inlet *inlet, const uint8_t *bytes,
		      size_t length_bytes)
{
	struct sim_packet packet;
	struct sim_span span;
	const enum sim_decode result =
		sim_packet_read_bare(bytes, length_bytes, &inlet->route, &packet, &span);

	if (result == SIM_DECODE_OK) {
		take(port, inlet, &packet);
		return;
	}
	port->device->counters.received_packets++;
	refuse_bare(port, &packet, &inlet->route, length_bytes, result);
}

/* --- trains --- */

static bool is_train(const struct sim_packet *train, unsigned int count)
{
	const uint32_t flags = sim_opcodes[train->opcode].flags;

	return flags & SIM_OP_MIDDLE && count > 1 && train->payload_bytes &&
	       train->payload_bytes % count == 0 &&
	       train->payload_bytes / count <= SIM_PATH_MTU_MAX;
}

/* Takes the packets of a train one by one. */
__attribute__((noinline)) static void take_each(struct sim_port *port, struct sim_inlet *inlet,
						const struct sim_packet *train, unsigned int count)
{
	const uint32_t bytes = train->payload_bytes / count;
	const uint8_t *payload = train->spans->base;

	for (unsigned int i = 0; i < count; i++) {
		const struct sim_span span = {payload + (size_t)i * bytes, bytes};
		struct sim_packet packet = *train;

		packet.psn = sim_psn_add(train->psn, i);
		packet.payload_bytes = bytes;
		packet.spans = &span;
		if (i + 1 < count)
			packet.flags &= (uint8_t)~SIM_PACKET_ACK_REQUEST;
		take(port, inlet, &packet);
	}
}

/* Returns true if the QP of the inlet has taken the whole train. */
static bool take_whole(struct sim_port *port, struct sim_inlet *inlet,
		       const struct sim_packet *train, unsigned int count)
{
	const struct sim_admitted *last = admitted_of(inlet, train);

	if (!is_admitted(last, port, train) || !sim_qp_take_train(last->qp, train, count))
		return false;
	port->device->counters.received_packets += count;
	return true;
}

void sim_arrival_train(struct sim_port *port, struct sim_inlet *inlet, const uint8_t *bytes,
		       size_t length_bytes, unsigned int count)
{
	struct sim_packet train;
	struct sim_span span;
	enum sim_decode result =
		sim_packet_read_bare(bytes, length_bytes, &inlet->route, &train, &span);

	if (result == SIM_DECODE_OK && !is_train(&train, count))
		result = SIM_DECODE_TRUNCATED;
	if (result != SIM_DECODE_OK) {
		port->device->counters.received_packets++;
		refuse_bare(port, &train, &inlet->route, length_bytes, result);
	} else if (!take_whole(port, inlet, &train, count)) {
		take_each(port, inlet, &train, count);
	}
}

int sim_net_inject(struct sim_port *port, const void *frame, size_t frame_bytes)
{
	struct sim_engine *engine = port->device->engine;
	uint8_t copy[SIM_FRAME_BYTES_MAX];

	if (frame_bytes > sizeof(copy))
		return EINVAL;
	if (engine->host.memory.copy(copy, frame, frame_bytes))
		return EFAULT;
	if (!sim_port_is_up(port))
		return ENETDOWN;
	sim_trace_show(engine->net, copy, frame_bytes,
		       sim_port_is_infiniband(port) ? SIM_FRAME_INFINIBAND : 0);
	if (sim_watched(engine))
		sim_notes_injected(port, copy, frame_bytes);
	sim_arrival_frame(port, copy, frame_bytes, false, 0);
	return 0;
}
