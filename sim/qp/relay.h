/* SPDX-License-Identifier: MIT */
/*
 * XRC targets whose messages are for SRQs of other processes. The target QP (the front) takes the requests
 * of its connection in the order of their PSNs. It relays a request for an SRQ of another process to that
 * process. There, a proxy of the target does the request as any responder does, and answers the front, which
 * answers the requester. Meanwhile, the front takes the next requests. If the proxy refuses a request, the front
 * goes back to the PSN of this request.
 *
 * The front remembers READs and atomics, and sends their responses. It asks for the data of a READ a few
 * packets at a time, as its way to the requester has room; the proxy checks the whole READ when it comes,
 * and again each time. The proxy does an atomic once, and remembers its value.
 *
 * The proxy has the number of the target and is in no table. It has no handle; the front raises its events.
 */
#ifndef SIM_QP_RELAY_H
#define SIM_QP_RELAY_H

#include <stddef.h>
#include <stdint.h>

struct sim_device;
struct sim_port;

/* Bytes of another process's relay have come to a port. They are untrusted; the caller has copied them from shared
 * memory. */
void sim_relay_arrive(struct sim_port *port, uint64_t process, const uint8_t *bytes, size_t length);

/* The most bytes that a relay sends at once. */
#define SIM_RELAY_BYTES_MAX 4234

/* The device ends: its proxies end before. */
void sim_relay_end(struct sim_device *device);

#endif
