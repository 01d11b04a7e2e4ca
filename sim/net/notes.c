/* SPDX-License-Identifier: MIT */
#include "sim/net/notes.h"

#include "sim/base/note.h"
#include "sim/net/net.h"
#include "sim/object/device.h"

/* The values of VB_EVENT_PACKET; the value and the text of VB_EVENT_FAULT. */
enum { LOST, INJECTED, RULE = 0, ACTION = 0 };

/* Fills in the packet as it travels, and where it comes from. */
static struct vb_event event_of(const struct sim_transit *transit, enum vb_event_kind kind,
				struct vb_packet *shown)
{
	const struct sim_path *path = transit->path;

	if (transit->changed)
		sim_frame_show(transit->frame, transit->frame_bytes, path->route.infiniband, shown);
	else
		sim_packet_show(transit->packet, &path->route, shown);
	/* A fault rule may have made a datagram of it. */
	if (!(shown->has & VB_PACKET_HAS_DETH))
		shown->source_qpn = path->qpn;
	shown->lost = transit->lost;
	return (struct vb_event){
		.kind = kind,
		.device = path->source->device->name,
		.port = path->source->number,
		.qpn = path->qpn ? path->qpn : transit->packet->source_qpn,
		.packet = shown,
	};
}

void sim_notes_pass(struct sim_filter *filter, struct sim_transit *transit)
{
	struct vb_packet shown;
	struct vb_event event;

	sim_net_check_way(transit);
	/* The packet is lost if its payload cannot be read. */
	if (!transit->lost && sim_delivery_needs_bytes(transit->path, transit))
		sim_net_encode(filter->net, transit);
	event = event_of(transit, VB_EVENT_PACKET, &shown);
	event.values[LOST] = transit->lost;
	sim_note(filter->net->engine, &event, NULL);
	sim_filter_next(filter, transit);
}

void sim_notes_fault(struct sim_engine *engine, const struct sim_transit *transit,
		     const char *action, unsigned int rule)
{
	struct vb_packet shown;
	struct vb_event event = event_of(transit, VB_EVENT_FAULT, &shown);

	event.values[RULE] = rule;
	event.texts[ACTION] = action;
	sim_note(engine, &event, NULL);
}

void sim_notes_injected(struct sim_port *port, const uint8_t *frame, size_t frame_bytes)
{
	struct vb_packet shown;
	struct vb_event event = {
		.kind = VB_EVENT_PACKET,
		.device = port->device->name,
		.port = port->number,
		.values = {[INJECTED] = true},
		.packet = &shown,
	};

	sim_frame_show(frame, frame_bytes, sim_port_is_infiniband(port), &shown);
	sim_note(port->device->engine, &event, NULL);
}

void sim_notes_watch(struct sim_engine *engine, bool on)
{
	engine->watched = on;
	sim_filter_activate(&engine->net->notes.filter, on);
}
