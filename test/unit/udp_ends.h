/* SPDX-License-Identifier: MIT */
/*
 * Two wires `udp` without an engine: frames leave one and arrive at the other. The functions of the engine that the
 * wire calls are the test's own (--wrap).
 */
#ifndef TEST_UNIT_UDP_ENDS_H
#define TEST_UNIT_UDP_ENDS_H

#include "test/unit/random_packet.h"
#include "test/unit/udp_namespace.h"

#include <sys/wait.h>

#define FRAMES_MAX 512

/* What has come from the wire. */
static struct {
	const struct sim_port *port;
	size_t bytes;
	bool checked;
	uint8_t frame[SIM_FRAME_BYTES_MAX + 64];
} arrived[FRAMES_MAX];
static unsigned int arrivals, readies;

static struct bell bell;
static struct wire *wire_a, *wire_b;
static struct sim_device device_a, device_b;
static union ibv_gid gid_a, gid_b;
static uint8_t frame_sent[SIM_FRAME_BYTES_MAX];

void __wrap_sim_way_out_arrive(struct sim_port *port, const uint8_t *frame, size_t frame_bytes,
			       bool checked, uint64_t process);
void __wrap_sim_way_out_ready(struct sim_engine *engine);
size_t __wrap_sim_departure_write(const struct sim_departure *departure, bool sealed,
				  uint8_t *room_for_frame);

void __wrap_sim_way_out_arrive(struct sim_port *port, const uint8_t *frame, size_t frame_bytes,
			       bool checked, uint64_t process)
{
	(void)process;
	TEST_ASSERT_LESS_THAN(FRAMES_MAX, arrivals);
	TEST_ASSERT_LESS_OR_EQUAL(sizeof(arrived[0].frame), frame_bytes);
	arrived[arrivals].port = port;
	arrived[arrivals].bytes = frame_bytes;
	arrived[arrivals].checked = checked;
	memcpy(arrived[arrivals].frame, frame, frame_bytes);
	arrivals++;
}

void __wrap_sim_way_out_ready(struct sim_engine *engine)
{
	(void)engine;
	readies++;
}

size_t __wrap_sim_departure_write(const struct sim_departure *departure, bool sealed,
				  uint8_t *room_for_frame)
{
	TEST_ASSERT_TRUE(sealed);
	memcpy(room_for_frame, departure->frame, departure->frame_bytes);
	return departure->frame_bytes;
}

/* Makes a wire with a device at the address. */
static inline struct wire *open_wire(const char *text, struct sim_device *device,
				     union ibv_gid *gid)
{
	struct wire *wire;

	memset(device, 0, sizeof(*device));
	device->port_count = 1;
	device->ports[0].device = device;
	device->qps.live = 1;
	TEST_ASSERT_EQUAL_INT(0, udp_open(&bell, &wire));
	TEST_ASSERT_EQUAL_INT(0, udp_claim(wire, text, gid));
	udp_join(wire, device);
	return wire;
}

static inline void close_wires(void)
{
	if (wire_a)
		wire_a->close(wire_a);
	if (wire_b && wire_b != wire_a)
		wire_b->close(wire_b);
	wire_a = wire_b = NULL;
}

static inline void open_wires(const char *a, const char *b)
{
	close_wires();
	wire_a = open_wire(a, &device_a, &gid_a);
	wire_b = open_wire(b, &device_b, &gid_b);
}

/* Sends the frame from a to b. */
static inline bool send_frame(const struct sim_route *by, const uint8_t *frame, size_t frame_bytes)
{
	const struct sim_departure departure = {
		.source = &device_a.ports[0],
		.route = by,
		.frame = frame,
		.frame_bytes = frame_bytes,
	};

	return wire_a->way.send(wire_a->way.arg, &departure);
}

static inline size_t send_packet(const struct sim_route *by, uint32_t psn, uint32_t payload_bytes)
{
	const size_t bytes = udp_encode(by, psn, payload_bytes, frame_sent);

	TEST_ASSERT_TRUE(send_frame(by, frame_sent, bytes));
	return bytes;
}

/* Sends the first bytes of frame_sent from b. */
static inline void send_frame_from_b(const struct sim_route *by, size_t frame_bytes)
{
	const struct sim_departure departure = {.source = &device_b.ports[0],
						.route = by,
						.frame = frame_sent,
						.frame_bytes = frame_bytes};

	TEST_ASSERT_TRUE(wire_b->way.send(wire_b->way.arg, &departure));
	wire_b->flush(wire_b);
}

static inline void send_from_b(const struct sim_route *by)
{
	send_frame_from_b(by, udp_encode(by, 1, 10, frame_sent));
}

/* Returns how many packets a has room for on the way to b. */
static inline unsigned int room_to_b(void)
{
	const struct sim_path path = {
		.source = &device_a.ports[0], .route = udp_route(&gid_a, &gid_b), .qpn = 0x11};

	return wire_a->way.room(wire_a->way.arg, &path, 0x12);
}

/* Returns the PSN of a packet that has arrived. */
static inline uint32_t psn_of(unsigned int index)
{
	const uint8_t *frame = arrived[index].frame;

	return sim_load_be24(frame + 14 + (frame[12] == 0x86 ? 40 : 20) + 8 + 9);
}

/* Receives until nothing comes: a socket rests for a few calls after a batch. Returns true if something
 * came. */
static inline bool receive_all(struct wire *wire)
{
	bool came = false;

	for (unsigned int calls = 0; calls < 8; calls++)
		if (wire->receive(wire)) {
			came = true;
			calls = 0;
		}
	return came;
}

/* --- a peer that is a plain socket --- */

static int peer;
static union ibv_gid peer_gid;

static inline void open_peer(void)
{
	struct udp_address address;
	int fd = udp_claim_address("", &address);

	peer_gid = address.gid;
	close(fd);
	peer = udp_plain(&peer_gid, 0xc001);
}

/* Sends the datagram of a packet, whose ICRC is that of an identification, to b. */
static inline void peer_sends(uint16_t identification, const uint8_t *change, size_t at)
{
	struct sim_route by = udp_route(&peer_gid, &gid_b);
	size_t bytes;

	by.udp_source_port = 0xc001;
	by.ip_id = identification;
	bytes = udp_encode(&by, 1, 64, frame_sent);
	if (change) {
		frame_sent[42 + at] = *change;
		sim_packet_seal(frame_sent, bytes, &by);
	}
	udp_plain_send(peer, &gid_b, frame_sent + 42, bytes - 42);
	receive_all(wire_b);
}

/* --- network namespaces --- */

/* Runs the function in a child that has a network namespace of its own. */
static inline void in_namespace(int mtu, void (*run)(void))
{
	const int pid = fork_into_namespace(mtu);

	if (!pid) {
		wire_a->forked(wire_a);
		wire_b->forked(wire_b);
		close_wires();
		run();
		close_wires();
		_exit(0);
	}
	expect_namespace_end(pid);
}

#endif
