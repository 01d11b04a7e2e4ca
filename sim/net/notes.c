/* SPDX-License-Identifier: MIT */
#include "sim/net/notes.h"

#include "sim/base/note.h"
#include "sim/net/net.h"
#include "sim/object/device.h"

/* The values of VB_EVENT_PACKET. */
enum { LOST, INJECTED };

static void note(const struct sim_port *port, uint32_t qpn, const struct vb_packet *shown,
		 bool injected)
{
	struct vb_event event = {
		.kind = VB_EVENT_PACKET,
		.device = port->device->name,
		.port = port->number,
		.qpn = qpn,
		.values = {[LOST] = shown->lost, [INJECTED] = injected},
		.packet = shown,
	};

	sim_note(port->device->engine, &event, NULL);
}

void sim_notes_pass(struct sim_filter *filter, struct sim_transit *transit)
{
	const struct sim_path *path = transit->path;
	struct vb_packet shown;

	sim_net_check_way(transit);
	if (transit->changed)
		sim_frame_show(transit->frame, transit->frame_bytes, path->route.infiniband,
			       &shown);
	else
		sim_packet_show(transit->packet, &path->route, &shown);
	if (path->qpn)
		shown.source_qpn = path->qpn;
	shown.lost = transit->lost;
	note(path->source, path->qpn ? path->qpn : transit->packet->source_qpn, &shown, false);
	sim_filter_next(filter, transit);
}

void sim_notes_injected(struct sim_port *port, const uint8_t *frame, size_t frame_bytes)
{
	struct vb_packet shown;

	sim_frame_show(frame, frame_bytes, sim_port_is_infiniband(port), &shown);
	note(port, 0, &shown, true);
}

void sim_notes_watch(struct sim_engine *engine, bool on)
{
	engine->watched = on;
	sim_filter_activate(&engine->net->notes.filter, on);
}
