/* SPDX-License-Identifier: MIT */
/* The wire to a simulated device, on the virtual clock. The peer is a port that no QP uses. */
#include "src/script/script.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <verbena/error.h>
#include <verbena/fault.h>
#include <verbena/sim.h>

#define MAC_BYTES 6

struct sim_wire {
	struct script_wire wire; /* the first member */
	struct vb_sim *sim;	 /* NULL: the default world, which the connection manager uses */
	bool is_default;
	const uint8_t *injected;
	size_t injected_bytes;
};

static struct sim_wire *own(struct script_wire *wire)
{
	return (struct sim_wire *)wire;
}

bool script_wire_keep(struct script_wire *wire, uint64_t time_ns, bool from_peer,
		      const uint8_t *frame, size_t length_bytes)
{
	struct script_frame *kept;

	if (wire->frame_count == wire->frame_room) {
		const unsigned int room = wire->frame_room ? wire->frame_room * 2 : 32;
		struct script_frame *more = realloc(wire->frames, room * sizeof(*more));

		if (!more)
			return false;
		wire->frames = more;
		wire->frame_room = room;
	}
	kept = &wire->frames[wire->frame_count];
	if (length_bytes > sizeof(kept->bytes))
		return false;
	wire->frame_count++;
	kept->time_ns = time_ns;
	kept->from_peer = from_peer;
	kept->length_bytes = length_bytes;
	memcpy(kept->bytes, frame, length_bytes);
	return true;
}

static void watch(void *arg, uint64_t now_ns, const uint8_t *frame, size_t length_bytes, bool lost)
{
	struct sim_wire *wire = arg;
	uint8_t copy[VB_FRAME_BYTES_MAX]; /* without the mark of a lost packet */

	if (lost && !wire->wire.infiniband && length_bytes <= sizeof(copy)) {
		memcpy(copy, frame, length_bytes);
		memset(copy, 0, MAC_BYTES);
		frame = copy;
	}
	script_wire_keep(&wire->wire, now_ns,
			 wire->injected && wire->injected_bytes == length_bytes &&
				 memcmp(wire->injected, frame, length_bytes) == 0,
			 frame, length_bytes);
}

static uint64_t now(struct script_wire *wire)
{
	return vb_sim_now_ns(own(wire)->sim);
}

static int inject(struct script_wire *wire, const uint8_t *frame, size_t length_bytes)
{
	int err;

	own(wire)->injected = frame;
	own(wire)->injected_bytes = length_bytes;
	err = vb_sim_inject(wire->context, 1, frame, length_bytes);
	own(wire)->injected = NULL;
	return err;
}

static void pass(struct script_wire *wire, uint64_t until_ns)
{
	struct vb_sim *sim = own(wire)->sim;
	const uint64_t now_ns = vb_sim_now_ns(sim);
	uint64_t next_ns;

	vb_sim_run(sim, 0);
	if (until_ns <= now_ns)
		return;
	next_ns = vb_sim_next_ns(sim);
	vb_sim_run(sim, (next_ns < until_ns ? next_ns : until_ns) - now_ns);
}

static int poll_cq(struct script_wire *wire, struct ibv_cq *cq, struct ibv_wc *wc)
{
	(void)wire;
	return vb_sim_wait_cq(cq, 1, wc, 0);
}

static void end(struct script_wire *wire)
{
	struct sim_wire *sim_wire = own(wire);

	if (sim_wire->sim || sim_wire->is_default)
		vb_sim_watch(sim_wire->sim, NULL, NULL);
	if (wire->context)
		vb_close_device(wire->context);
	if (sim_wire->is_default)
		vb_sim_reset();
	else if (sim_wire->sim)
		vb_sim_close(sim_wire->sim);
	free(wire->frames);
	free(sim_wire);
}

/* Opens a device by its place in the world's list. */
static struct ibv_context *open_device(struct vb_sim *sim, int index)
{
	struct ibv_device **list = vb_sim_device_list(sim, NULL);
	struct ibv_context *context = list ? vb_open_device(list[index]) : NULL;

	if (list)
		vb_free_device_list(list);
	return context;
}

/* Groups: an IPv6 multicast address of the subnet, or 239.1.0.N. */
static const uint8_t group_infiniband[16] = {0xff, 0x12, 0x40, 0x1b, 0xff, 0xff};
static const uint8_t group_ethernet[16] = {[10] = 0xff, [11] = 0xff, [12] = 239, [13] = 1};

static bool find_addresses(struct script_wire *wire)
{
	struct ibv_port_attr attr;
	union ibv_gid gids[2];

	if (vb_query_port(wire->context, 1, &attr, sizeof(attr)))
		return false;
	wire->mtu = attr.active_mtu;
	wire->lid = attr.lid;
	wire->peer_lid = attr.lid + 1;
	wire->gid_index = 1;
	memcpy(wire->group.raw, wire->infiniband ? group_infiniband : group_ethernet, 16);
	if (wire->infiniband)
		return true;
	vb_sim_default_gids(2, gids);
	wire->peer_gid = gids[0];
	return !vb_query_gid(wire->context, 1, wire->gid_index, &wire->gid);
}

/* Opens a world of its own; for the connection manager the default world, which is NULL. There the messages of
 * the device are lost on the way: the simulated peer has a connection manager, which would answer. */
static struct vb_sim *open_world(struct vb_sim_config *config, bool is_default)
{
	static const struct vb_fault_rule silent_peer = {.action = VB_FAULT_DROP, .from = "sim0"};

	if (!is_default)
		return vb_sim_open(config);
	config->fault_count = 1;
	config->faults = &silent_peer;
	vb_sim_reset();
	vb_sim_configure(config);
	return NULL;
}

struct script_wire *script_wire_sim(const struct script_place *place, char *why, size_t why_bytes)
{
	struct vb_sim_config config = {
		.clock = VB_SIM_CLOCK_VIRTUAL,
		.seed_given = true,
		.seed = 1,
		.device_count = 2,
		.devices = {{.name = "sim0"}, {.name = "peer"}},
	};
	struct sim_wire *wire = calloc(1, sizeof(*wire));

	if (!wire) {
		snprintf(why, why_bytes, "no memory is left");
		return NULL;
	}
	for (unsigned int i = 0; i < 2; i++)
		config.devices[i].link_layer =
			place->infiniband ? IBV_LINK_LAYER_INFINIBAND : IBV_LINK_LAYER_ETHERNET;
	snprintf(config.devices[0].profile, sizeof(config.devices[0].profile), "%s",
		 place->profile ? place->profile : "spec");
	wire->wire = (struct script_wire){
		.exact = true,
		.backend = "sim",
		.peer_guid = 1,
		.ip = {10, 0, 0, 1},
		.peer_ip = {10, 0, 0, 2},
		.infiniband = place->infiniband,
		.now = now,
		.inject = inject,
		.pass = pass,
		.poll = poll_cq,
		.close = end,
	};
	wire->is_default = place->connects;
	wire->sim = open_world(&config, wire->is_default);
	wire->wire.context = wire->sim || wire->is_default ? open_device(wire->sim, 0) : NULL;
	if (!wire->wire.context || !find_addresses(&wire->wire)) {
		snprintf(why, why_bytes, "%s", vb_last_error());
		end(&wire->wire);
		return NULL;
	}
	vb_sim_watch(wire->sim, watch, wire);
	return &wire->wire;
}
