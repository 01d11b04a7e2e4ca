/* SPDX-License-Identifier: MIT */
/*
 * The arrival of packets at a port: from the end of a path, by a wire of a backend, or injected. The port decodes and
 * checks the bytes of a packet that was encoded, looks at its address, and gives the packet to its QP, or counts why
 * no QP takes it.
 */
#ifndef SIM_NET_ARRIVAL_H
#define SIM_NET_ARRIVAL_H

#include "sim/wire/packet.h"

#include <stdbool.h>
#include <stddef.h>

struct sim_inlet;
struct sim_port;

/* A packet that was not encoded arrives at a port. */
void sim_arrival_packet(struct sim_port *port, const struct sim_packet *packet,
			const struct sim_route *route);

/* A frame arrives at a port: decodes and checks it, and gives the packet to its QP. Its checksums are not
 * looked at if it is `checked`. */
void sim_arrival_frame(struct sim_port *port, const uint8_t *frame, size_t frame_bytes,
		       bool checked);

/* The same for the bytes of sim_packet_write_bare(), by an inlet that has the route of the packet. */
void sim_arrival_bare(struct sim_port *port, struct sim_inlet *inlet, const uint8_t *bytes,
		      size_t length_bytes);

/* The same for a train of `count` packets. */
void sim_arrival_train(struct sim_port *port, struct sim_inlet *inlet, const uint8_t *bytes,
		       size_t length_bytes, unsigned int count);

/*
 * A frame that no QP has sent arrives at a port; the trace shows it. The frame is copied.
 * EINVAL: it is longer than SIM_FRAME_BYTES_MAX. EFAULT: it cannot be read. ENETDOWN: the port is
 * down.
 */
int sim_net_inject(struct sim_port *port, const void *frame, size_t frame_bytes);

/* Returns true if an InfiniBand packet came by its LID to a port that does not have the GID of its GRH. A group
 * has a LID and a GID that no port has. */
bool sim_arrival_is_misrouted(const struct sim_port *port, const struct sim_route *route);

/* Decodes a frame of the port's link layer, as sim_packet_decode() does. */
enum sim_decode sim_arrival_decode(const struct sim_port *port, const uint8_t *frame,
				   size_t frame_bytes, struct sim_packet *packet,
				   struct sim_span *span, struct sim_route *route);

#endif
