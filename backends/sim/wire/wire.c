/* SPDX-License-Identifier: MIT */
/* Gives the engine one way out that leads to all wires of a world. */
#include "backends/sim/wire/wire.h"

#include "sim/object/device.h"

#include <stddef.h>
#include <string.h>

/* A device gets its wire once, and keeps it until wires_close(). A device without a wire may get one later. */
static struct wire *look_up(struct wires *wires, const struct sim_device *device)
{
	struct wire *wire = wires->first;

	while (wire && !wire->has(wire, device))
		wire = wire->next;
	if (wire)
		wires->known[device->index % WIRES_KNOWN] = (struct wires_known){device, wire};
	return wire;
}

static inline struct wire *wire_of(struct wires *wires, const struct sim_device *device)
{
	const struct wires_known *known = &wires->known[device->index % WIRES_KNOWN];

	return known->device == device ? known->wire : look_up(wires, device);
}

/*
 * Returns the wire by which packets leave a port; NULL if they cannot leave. A port that the engine knows
 * (dest) is reached by its own wire, and only if other processes have QPs on it.
 */
static struct wire *way_to(struct wires *wires, const struct sim_port *source,
			   const struct sim_port *dest)
{
	struct wire *wire = wire_of(wires, dest ? dest->device : source->device);

	return wire && (!dest || (wire->shares_ports && wire_of(wires, source->device))) ? wire
											 : NULL;
}

/* --- struct sim_way_out; arg is the struct wires --- */

static bool reaches(void *arg, struct sim_path *path)
{
	const struct wire *wire = way_to(arg, path->source, NULL);

	return wire && wire->way.reaches(wire->way.arg, path);
}

static unsigned int room(void *arg, const struct sim_path *path, uint32_t dest_qpn)
{
	const struct wire *wire = way_to(arg, path->source, path->dest);

	return wire ? wire->way.room(wire->way.arg, path, dest_qpn) : UINT32_MAX;
}

static bool room_for_ack(void *arg, const struct sim_path *path, uint32_t dest_qpn)
{
	const struct wire *wire = way_to(arg, path->source, path->dest);

	return !wire ||
	       (wire->way.room_for_ack && wire->way.room_for_ack(wire->way.arg, path, dest_qpn));
}

static bool send(void *arg, const struct sim_departure *departure)
{
	const struct wire *wire = way_to(arg, departure->source, departure->dest);

	return wire && wire->way.send(wire->way.arg, departure);
}

static bool lane(void *arg, const struct sim_path *path, uint32_t dest_qpn, struct sim_lane *found)
{
	const struct wire *wire = way_to(arg, path->source, path->dest);

	return wire && wire->way.lane && wire->way.lane(wire->way.arg, path, dest_qpn, found);
}

static bool has_members(void *arg, const struct sim_port *port)
{
	const struct wire *wire = wire_of(arg, port->device);

	return wire && wire->way.has_members(wire->way.arg, port);
}

static void joined(void *arg, const struct sim_device *device, uint32_t memberships)
{
	const struct wire *wire = wire_of(arg, device);

	if (wire)
		wire->way.joined(wire->way.arg, device, memberships);
}

static int join(void *arg, const struct sim_device *device, const union ibv_gid *group)
{
	const struct wire *wire = wire_of(arg, device);

	return wire && wire->way.join ? wire->way.join(wire->way.arg, device, group) : 0;
}

static void leave(void *arg, const struct sim_device *device, const union ibv_gid *group)
{
	const struct wire *wire = wire_of(arg, device);

	if (wire && wire->way.leave)
		wire->way.leave(wire->way.arg, device, group);
}

static enum sim_presence find(void *arg, const struct sim_path *path, uint32_t dest_qpn)
{
	const struct wire *wire = way_to(arg, path->source, path->dest);

	return wire ? wire->way.find(wire->way.arg, path, dest_qpn) : SIM_PRESENCE_NOBODY;
}

static struct vb_why hindrance(void *arg, const struct sim_path *path, uint32_t dest_qpn)
{
	const struct wire *wire = way_to(arg, path->source, path->dest);

	return wire && wire->way.hindrance ? wire->way.hindrance(wire->way.arg, path, dest_qpn)
					   : (struct vb_why){.reason = VB_WHY_NONE};
}

static enum vb_reason barrier(void *arg, const struct sim_path *path)
{
	const struct wire *wire = way_to(arg, path->source, NULL);

	return wire && wire->way.barrier ? wire->way.barrier(wire->way.arg, path) : VB_WHY_NONE;
}

static bool lags(void *arg, const struct sim_path *path, uint32_t dest_qpn)
{
	const struct wire *wire = way_to(arg, path->source, path->dest);

	return wire && wire->way.lags && wire->way.lags(wire->way.arg, path, dest_qpn);
}

static uint64_t holder(void *arg, const struct sim_device *device, unsigned int numbers,
		       uint32_t number)
{
	const struct wire *wire = wire_of(arg, device);

	return wire && wire->way.holder ? wire->way.holder(wire->way.arg, device, numbers, number)
					: 0;
}

static bool relay(void *arg, const struct sim_port *port, uint64_t process, const uint8_t *bytes,
		  size_t length)
{
	const struct wire *wire = wire_of(arg, port->device);

	return wire && wire->way.relay &&
	       wire->way.relay(wire->way.arg, port, process, bytes, length);
}

static uint64_t server(void *arg, const struct sim_device *device,
		       const struct sim_gsi_target *target)
{
	const struct wire *wire = wire_of(arg, device);

	return wire && wire->way.server ? wire->way.server(wire->way.arg, device, target) : 0;
}

static unsigned int room_at(void *arg, const struct sim_path *path, uint64_t process)
{
	const struct wire *wire = way_to(arg, path->source, path->dest);

	return wire && wire->way.room_at ? wire->way.room_at(wire->way.arg, path, process)
					 : UINT32_MAX;
}

/* Returns the wire whose other processes have the same ports; NULL if there is none. */
static const struct wire *wire_of_services(const struct wires *wires)
{
	const struct wire *wire = wires->first;

	while (wire && !wire->way.reserve)
		wire = wire->next;
	return wire;
}

static bool lives(void *arg, uint64_t process)
{
	const struct wire *wire = wire_of_services(arg);

	return wire && wire->way.lives(wire->way.arg, process);
}

static bool watches(void *arg)
{
	const struct wire *wire = wire_of_services(arg);

	return wire && wire->way.watches && wire->way.watches(wire->way.arg);
}

static int reserve(void *arg, uint64_t service_id, const uint8_t address[16], uint32_t flags)
{
	const struct wire *wire = wire_of_services(arg);

	return wire ? wire->way.reserve(wire->way.arg, service_id, address, flags) : 0;
}

static const char *taken_by(void *arg)
{
	const struct wire *wire = wire_of_services(arg);

	return wire && wire->way.taken_by ? wire->way.taken_by(wire->way.arg) : NULL;
}

static void unreserve(void *arg, uint64_t service_id, const uint8_t address[16])
{
	const struct wire *wire = wire_of_services(arg);

	if (wire)
		wire->way.unreserve(wire->way.arg, service_id, address);
}

static int listen_on(void *arg, uint64_t service_id, const uint8_t address[16], bool on)
{
	const struct wire *wire = wire_of_services(arg);

	return wire ? wire->way.listen(wire->way.arg, service_id, address, on) : 0;
}

static void take(void *arg, uint64_t sender, uint32_t communication_id, bool on)
{
	const struct wire *wire = wire_of_services(arg);

	if (wire)
		wire->way.take(wire->way.arg, sender, communication_id, on);
}

/* --- all wires --- */

void wires_add(struct wires *wires, struct sim_engine *engine, struct wire *wire)
{
	const struct sim_way_out all = {
		.arg = wires,
		.reaches = reaches,
		.room = room,
		.room_for_ack = room_for_ack,
		.lags = lags,
		.send = send,
		.lane = lane,
		.has_members = has_members,
		.joined = joined,
		.join = join,
		.leave = leave,
		.find = find,
		.hindrance = hindrance,
		.barrier = barrier,
		.holder = holder,
		.relay = relay,
		.server = server,
		.room_at = room_at,
		.lives = lives,
		.watches = watches,
		.reserve = reserve,
		.unreserve = unreserve,
		.listen = listen_on,
		.take = take,
		.taken_by = taken_by,
	};
	struct wire **link = &wires->first;

	while (*link)
		link = &(*link)->next;
	*link = wire;
	wire->next = NULL;
	wires->engine = engine;
	sim_way_out_set(engine, &all);
}

bool wires_have_arrivals(const struct wires *wires)
{
	for (const struct wire *wire = wires->first; wire; wire = wire->next)
		if (!wire->arrived || wire->arrived(wire))
			return true;
	return false;
}

bool wires_receive(struct wires *wires)
{
	bool came = false;

	for (struct wire *wire = wires->first; wire; wire = wire->next)
		came |= wire->receive(wire);
	return came;
}

void wires_flush(struct wires *wires)
{
	for (struct wire *wire = wires->first; wire; wire = wire->next)
		wire->flush(wire);
}

void wires_listen(struct wires *wires, bool on)
{
	for (struct wire *wire = wires->first; wire; wire = wire->next)
		wire->listen(wire, on);
}

void wires_forked(struct wires *wires)
{
	for (struct wire *wire = wires->first; wire; wire = wire->next)
		wire->forked(wire);
}

int wires_resume(struct wires *wires)
{
	int err = 0;

	for (struct wire *wire = wires->first; wire && !err; wire = wire->next)
		err = wire->resume(wire);
	return err;
}

void wires_abandon(struct wires *wires)
{
	for (struct wire *wire = wires->first; wire; wire = wire->next)
		if (wire->abandon)
			wire->abandon(wire);
}

void wires_close(struct wires *wires)
{
	if (wires->first && wires->engine)
		sim_way_out_set(wires->engine, NULL);
	memset(wires->known, 0, sizeof(wires->known));
	while (wires->first) {
		struct wire *wire = wires->first;

		wires->first = wire->next;
		wire->close(wire);
	}
}
