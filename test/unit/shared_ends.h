/* SPDX-License-Identifier: MIT */
/*
 * Ends of the wire `shared` in a test's own world. The functions of the engine that the wire calls are
 * replaced (the linker's --wrap), so that each frame is seen.
 */
#ifndef TEST_UNIT_SHARED_ENDS_H
#define TEST_UNIT_SHARED_ENDS_H

#include "backends/sim/wire/shared.h"

#include "sim/object/device.h"
#include "test/unit/shared_world.h"

#include <string.h>

#define MULTICAST_QPN 0xffffffu

/* An attachment with two devices of two ports. The engine of the devices is the end. */
struct end {
	struct wire *wire;
	struct sim_device devices[2];
	uint32_t qpn;
	unsigned int arrived, ready, wrong;
	size_t all_bytes, bytes; /* of all frames and of the last one */
	uint8_t last[SIM_TRAIN_BYTES_MAX];
	unsigned int train_packets; /* of the last one; 0: it was no train */
	unsigned int port;
	const struct sim_device *device;
	bool checked, bare;
	uint64_t inlet_uses; /* of the last packet's route, since the route came */
};

/* The route of all packets. */
static struct sim_route one_route = {.udp_source_port = 0xc123, .hop_limit = 64};
static bool route_unreadable;

/* Sees each frame; NULL: nothing more is done with it. */
static void (*on_arrival)(struct end *end, const uint8_t *frame, size_t frame_bytes);

/* --- the engine --- */

size_t __wrap_sim_departure_write(const struct sim_departure *departure, bool sealed,
				  uint8_t *room);
size_t __wrap_sim_departure_write(const struct sim_departure *departure, bool sealed, uint8_t *room)
{
	TEST_ASSERT_FALSE(sealed);
	if (departure->packet) {
		memset(room, departure->packet->opcode, departure->packet->payload_bytes);
		return departure->packet->payload_bytes;
	}
	memcpy(room, departure->frame, departure->frame_bytes);
	return departure->frame_bytes;
}

size_t __wrap_sim_departure_write_bare(const struct sim_departure *departure, uint8_t *room);
size_t __wrap_sim_departure_write_bare(const struct sim_departure *departure, uint8_t *room)
{
	return __wrap_sim_departure_write(departure, false, room);
}

/* All packets have one route. */
enum sim_decode __wrap_sim_route_read(const uint8_t *frame, size_t frame_bytes, bool infiniband,
				      struct sim_route *route);
enum sim_decode __wrap_sim_route_read(const uint8_t *frame, size_t frame_bytes, bool infiniband,
				      struct sim_route *route)
{
	(void)frame;
	(void)frame_bytes;
	TEST_ASSERT_FALSE(infiniband);
	*route = one_route;
	return route_unreadable ? SIM_DECODE_TRUNCATED : SIM_DECODE_OK;
}

static inline void see(struct sim_port *port, const uint8_t *frame, size_t frame_bytes,
		       bool checked)
{
	struct end *end = (struct end *)port->device->engine;

	if (on_arrival)
		on_arrival(end, frame, frame_bytes);
	end->arrived++;
	end->bytes = frame_bytes;
	end->all_bytes += frame_bytes;
	memcpy(end->last, frame, frame_bytes);
	end->port = port->number;
	end->device = port->device;
	end->checked = checked;
	end->bare = false;
	end->train_packets = 0;
}

void __wrap_sim_way_out_arrive(struct sim_port *port, const uint8_t *frame, size_t frame_bytes,
			       bool checked, uint64_t process);
void __wrap_sim_way_out_arrive(struct sim_port *port, const uint8_t *frame, size_t frame_bytes,
			       bool checked, uint64_t process)
{
	(void)process;
	see(port, frame, frame_bytes, checked);
}

void __wrap_sim_way_out_arrive_bare(struct sim_port *port, struct sim_inlet *inlet,
				    const uint8_t *bytes, size_t length);
void __wrap_sim_way_out_arrive_bare(struct sim_port *port, struct sim_inlet *inlet,
				    const uint8_t *bytes, size_t length)
{
	struct end *end = (struct end *)port->device->engine;

	TEST_ASSERT_EQUAL_MEMORY(&one_route, &inlet->route, sizeof(one_route));
	see(port, bytes, length, true);
	end->bare = true;
	end->inlet_uses = ++inlet->admitted[0].epoch;
}

void __wrap_sim_way_out_arrive_train(struct sim_port *port, struct sim_inlet *inlet,
				     const uint8_t *bytes, size_t length, unsigned int count);
void __wrap_sim_way_out_arrive_train(struct sim_port *port, struct sim_inlet *inlet,
				     const uint8_t *bytes, size_t length, unsigned int count)
{
	__wrap_sim_way_out_arrive_bare(port, inlet, bytes, length);
	((struct end *)port->device->engine)->train_packets = count;
}

void __wrap_sim_way_out_ready(struct sim_engine *engine);
void __wrap_sim_way_out_ready(struct sim_engine *engine)
{
	((struct end *)engine)->ready++;
}

/* --- ends --- */

/* The first QPN of the next block of a device. */
static inline uint32_t claim_qpn(struct end *end, unsigned int device)
{
	uint32_t block;
	uint16_t generation;

	TEST_ASSERT_TRUE(shared_claim(end->wire, device, SIM_NUMBERS_QP, &block, &generation));
	return block * SIM_BLOCK_PLACES + ((uint32_t)(generation % 64) << 18);
}

static inline void join(struct end *end)
{
	for (unsigned int i = 0; i < 2; i++) {
		struct sim_device *device = &end->devices[i];

		device->index = i;
		device->engine = (struct sim_engine *)end;
		device->port_count = 2;
		sim_table_init(&device->qps, 18, 6, 0, 1000);
		for (unsigned int j = 0; j < 2; j++) {
			device->ports[j].device = device;
			device->ports[j].number = (uint8_t)(j + 1);
		}
		shared_join(end->wire, device);
	}
}

static inline void open_end(struct end *end)
{
	const struct shared_config config = {world_name, "devices\n"};

	*end = (struct end){0};
	TEST_ASSERT_EQUAL_INT(0, shared_open(&config, &end->wire));
	join(end);
	end->qpn = claim_qpn(end, 0);
}

static inline void close_end(struct end *end)
{
	if (end->wire)
		end->wire->close(end->wire);
	end->wire = NULL;
}

static inline struct sim_path path_from(struct end *end)
{
	return (struct sim_path){.source = &end->devices[0].ports[0],
				 .dest = &end->devices[0].ports[1]};
}

/* Sends a packet of `bytes` bytes to a QPN at port 2. */
static inline bool send_to(struct end *end, uint32_t qpn, size_t bytes, uint8_t value)
{
	const struct sim_packet packet = {.opcode = value, .payload_bytes = (uint32_t)bytes};
	const struct sim_departure departure = {.source = &end->devices[0].ports[0],
						.dest = &end->devices[0].ports[1],
						.route = &one_route,
						.dest_qpn = qpn,
						.packet = &packet};

	return end->wire->way.send(end->wire->way.arg, &departure);
}

/* Sends a frame as it stands. */
static inline bool send_frame(struct end *end, uint32_t qpn, const void *frame, size_t bytes)
{
	const struct sim_departure departure = {.source = &end->devices[0].ports[0],
						.dest = &end->devices[0].ports[1],
						.dest_qpn = qpn,
						.frame = frame,
						.frame_bytes = bytes};

	return end->wire->way.send(end->wire->way.arg, &departure);
}

static inline unsigned int room_to(struct end *end, uint32_t qpn)
{
	const struct sim_path path = path_from(end);

	return end->wire->way.room(end->wire->way.arg, &path, qpn);
}

static inline enum sim_presence find_from(struct end *end, uint32_t qpn)
{
	const struct sim_path path = path_from(end);

	return end->wire->way.find(end->wire->way.arg, &path, qpn);
}

static inline struct vb_why hindrance_from(struct end *end, uint32_t qpn)
{
	const struct sim_path path = path_from(end);

	return end->wire->way.hindrance(end->wire->way.arg, &path, qpn);
}

static inline bool receive(struct end *end)
{
	return end->wire->receive(end->wire);
}

static inline void flush(struct end *end)
{
	end->wire->flush(end->wire);
}

#endif
