/* SPDX-License-Identifier: MIT */
/* The way out: what leaves the engine, what comes from outside, and the QPs that wait for room. */
#include "sim/net/wire.h"

#include "sim/base/note.h"
#include "sim/base/refuse.h"
#include "sim/net/arrival.h"
#include "sim/net/net.h"
#include "sim/qp/qp.h"
#include "sim/qp/relay.h"

#include <limits.h>
#include <string.h>

void sim_way_out_joined(const struct sim_device *device)
{
	const struct sim_way_out *way = device->engine->net->way;

	if (way)
		way->joined(way->arg, device, device->attachment_count);
}

int sim_way_out_join(const struct sim_device *device, const union ibv_gid *group)
{
	const struct sim_way_out *way = device->engine->net->way;

	return way && way->join ? way->join(way->arg, device, group) : 0;
}

void sim_way_out_leave(const struct sim_device *device, const union ibv_gid *group)
{
	const struct sim_way_out *way = device->engine->net->way;

	if (way && way->leave)
		way->leave(way->arg, device, group);
}

static int check_address(struct sim_engine *engine, const struct sim_path *path)
{
	struct vb_why why = {.reason = VB_WHY_PATH_UNREACHABLE};
	struct sim_path way = *path;

	sim_fabric_find_way(engine, &way);
	if (way.dest || way.beyond)
		return 0;
	if (engine->net->way->barrier)
		why.reason = engine->net->way->barrier(engine->net->way->arg, &way);
	if (why.reason == VB_WHY_NONE)
		why.reason = VB_WHY_PATH_UNREACHABLE;
	why.values[2] = path->sgid_index;
	memcpy(why.values, path->route.dest_gid, sizeof(path->route.dest_gid));
	return sim_refuse(engine, why);
}

void sim_way_out_set(struct sim_engine *engine, const struct sim_way_out *way)
{
	struct sim_net *net = engine->net;

	net->way = NULL;
	if (way) {
		net->given_way = *way;
		net->way = &net->given_way;
	}
	/* Each path finds out again whether it leads beyond the engine. */
	engine->address_epoch++;
	sim_engine_changed(engine);
	engine->check_address = way ? check_address : NULL;
	sim_net_meter(engine, way);
	sim_way_out_ready(engine);
	for (struct sim_device *device = engine->devices; device; device = device->next)
		if (device->attachment_count)
			sim_way_out_joined(device);
}

unsigned int sim_net_room(struct sim_engine *engine, struct sim_path *path, uint32_t dest_qpn)
{
	const struct sim_way_out *way = engine->net->way;

	sim_fabric_find_way(engine, path);
	if (!path->beyond && (!path->dest || sim_table_find(&path->dest->device->qps, dest_qpn)))
		return UINT_MAX;
	return way->room(way->arg, path, dest_qpn);
}

bool sim_net_room_for_ack(struct sim_engine *engine, struct sim_path *path, uint32_t dest_qpn)
{
	const struct sim_way_out *way = engine->net->way;

	return sim_net_room(engine, path, dest_qpn) ||
	       (way->room_for_ack && way->room_for_ack(way->arg, path, dest_qpn));
}

bool sim_net_lags(struct sim_engine *engine, const struct sim_path *path, uint32_t dest_qpn)
{
	const struct sim_way_out *way = engine->net->way;

	if (!way->lags || !path->dest || sim_table_find(&path->dest->device->qps, dest_qpn))
		return false;
	return way->lags(way->arg, path, dest_qpn);
}

enum sim_presence sim_net_presence(struct sim_engine *engine, const struct sim_path *path,
				   uint32_t dest_qpn)
{
	const struct sim_way_out *way = engine->net->way;

	if (path->dest && sim_table_owns(&path->dest->device->qps, dest_qpn))
		return SIM_PRESENCE_NOBODY;
	return way->find(way->arg, path, dest_qpn);
}

struct vb_why sim_net_hindrance(struct sim_engine *engine, const struct sim_path *path,
				uint32_t dest_qpn)
{
	const struct sim_way_out *way = engine->net->way;
	struct sim_path found = *path;

	sim_fabric_find_way(engine, &found);
	if (!way->hindrance || !found.dest || sim_table_owns(&found.dest->device->qps, dest_qpn))
		return (struct vb_why){.reason = VB_WHY_NONE};
	return way->hindrance(way->arg, &found, dest_qpn);
}

uint64_t sim_net_holder(struct sim_engine *engine, const struct sim_device *device,
			unsigned int numbers, uint32_t number)
{
	const struct sim_way_out *way = engine->net->way;

	return way->holder ? way->holder(way->arg, device, numbers, number) : 0;
}

bool sim_net_relay(struct sim_engine *engine, const struct sim_port *port, uint64_t process,
		   const uint8_t *bytes, size_t length)
{
	const struct sim_way_out *way = engine->net->way;

	return way->relay && way->relay(way->arg, port, process, bytes, length);
}

void sim_way_out_relayed(struct sim_port *port, uint64_t process, const uint8_t *bytes,
			 size_t length)
{
	uint8_t copy[SIM_RELAY_BYTES_MAX];

	if (!sim_port_is_up(port) || length > sizeof(copy))
		return;
	/* The sender may change bytes in shared memory meanwhile. */
	memcpy(copy, bytes, length);
	sim_relay_arrive(port, process, copy, length);
}

static size_t count_unreadable(const struct sim_departure *departure)
{
	departure->source->device->counters.guarded_faults++;
	return 0;
}

size_t sim_departure_write(const struct sim_departure *departure, bool sealed, uint8_t *room)
{
	size_t frame_bytes = departure->frame_bytes;
	bool readable = true;

	if (frame_bytes)
		memcpy(room, departure->frame, frame_bytes);
	else
		frame_bytes = (sealed ? sim_packet_encode : sim_packet_write)(
			departure->packet, departure->route, departure->copy, room, &readable);
	return readable ? frame_bytes : count_unreadable(departure);
}

size_t sim_departure_write_bare(const struct sim_departure *departure, uint8_t *room)
{
	bool readable;
	const size_t length =
		sim_packet_write_bare(departure->packet, departure->copy, room, &readable);

	return readable ? length : count_unreadable(departure);
}

/* The sender may change bytes in shared memory at any time, so bytes that are read twice are copied. Returns the
 * bytes to read. Cuts *length to that of the longest frame: longer frames are malformed anyway. */
static const uint8_t *settle(const uint8_t *bytes, size_t *length, bool read_twice, uint8_t *copy)
{
	if (*length > SIM_FRAME_BYTES_MAX)
		*length = SIM_FRAME_BYTES_MAX;
	return read_twice ? memcpy(copy, bytes, *length) : bytes;
}

void sim_way_out_arrive(struct sim_port *port, const uint8_t *frame, size_t frame_bytes,
			bool checked, uint64_t process)
{
	const bool read_twice = !checked || sim_watched(port->device->engine);
	uint8_t copy[SIM_FRAME_BYTES_MAX];

	if (!sim_port_is_up(port))
		return;
	frame = settle(frame, &frame_bytes, read_twice, copy);
	sim_arrival_frame(port, frame, frame_bytes, checked, process);
}

void sim_way_out_arrive_bare(struct sim_port *port, struct sim_inlet *inlet, const uint8_t *bytes,
			     size_t length)
{
	uint8_t copy[SIM_FRAME_BYTES_MAX];

	if (!sim_port_is_up(port))
		return;
	bytes = settle(bytes, &length, sim_watched(port->device->engine), copy);
	sim_arrival_bare(port, inlet, bytes, length);
}

void sim_way_out_arrive_train(struct sim_port *port, struct sim_inlet *inlet, const uint8_t *bytes,
			      size_t length, unsigned int count)
{
	if (sim_port_is_up(port))
		sim_arrival_train(port, inlet, bytes, length, count);
}

void sim_way_out_ready(struct sim_engine *engine)
{
	sim_delivery_release(engine->net);
	sim_gsi_release(engine->net);
	sim_room_ready(engine);
}

bool sim_way_out_is_awaited(const struct sim_engine *engine)
{
	const struct sim_net *net = engine->net;

	return engine->turns[SIM_TURN_ROOM].head || net->delivery.held || net->gsi_lines.first;
}
