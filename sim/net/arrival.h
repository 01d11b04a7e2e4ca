/* SPDX-License-Identifier: MIT */
/*
 * Packets arrive at a port at the end of a path, from a wire of a backend, or injected by a test. The port decodes and
 * checks an encoded packet, checks the destination address, and gives the packet to its QP. A packet that no QP takes is
 * counted by its cause.
 */
#ifndef SIM_NET_ARRIVAL_H
#define SIM_NET_ARRIVAL_H

#include "sim/wire/packet.h"

#include <stdbool.h>
#include <stddef.h>

struct sim_inlet;
struct sim_port;

/* A packet arrives at a port without having been encoded. */
void sim_arrival_packet(struct sim_port *port, const struct sim_packet *packet,
			const struct sim_route *route);

/* A frame arrives at a port. checked: its checksums are known to be right, and the port does not compute them.
 * process: as sim_way_out_arrive() says. */
void sim_arrival_frame(struct sim_port *port, const uint8_t *frame, size_t frame_bytes,
		       bool checked, uint64_t process);

/* The bytes of sim_packet_write_bare() arrive at a port. The inlet has the route of the packet. */
void sim_arrival_bare(struct sim_port *port, struct sim_inlet *inlet, const uint8_t *bytes,
		      size_t length_bytes);

/* A train of `count` packets arrives at a port. The inlet has the route of the packets. */
void sim_arrival_train(struct sim_port *port, struct sim_inlet *inlet, const uint8_t *bytes,
		       size_t length_bytes, unsigned int count);

/*
 * Injects a frame, which arrives at a port as if it came from the network. The trace shows the frame. The frame is copied.
 * EINVAL: it is longer than SIM_FRAME_BYTES_MAX. EFAULT: it cannot be read. ENETDOWN: the port is
 * down.
 */
int sim_net_inject(struct sim_port *port, const void *frame, size_t frame_bytes);

/* Returns true if an InfiniBand packet has the LID of the port, but its GRH has a GID that the port does not have.
 * Returns false for a packet to a group. */
bool sim_arrival_is_misrouted(const struct sim_port *port, const struct sim_route *route);

/* Decodes a frame of the port's link layer, as sim_packet_decode() does. */
enum sim_decode sim_arrival_decode(const struct sim_port *port, const uint8_t *frame,
				   size_t frame_bytes, struct sim_packet *packet,
				   struct sim_span *span, struct sim_route *route);

#endif
