/* SPDX-License-Identifier: MIT */
/*
 * The wire `udp`: RoCEv2 over UDP sockets on port 4791, to other machines, network namespaces, and the
 * kernel's SoftRoCE. Each device has an address of its own, which is its GID.
 */
#ifndef BACKENDS_SIM_WIRE_UDP_H
#define BACKENDS_SIM_WIRE_UDP_H

#include "backends/sim/wire/wire.h"

#include <stddef.h>

/* Makes a wire without devices; what comes rings the bell. 0, or an errno value with a sentence. */
int udp_open(struct bell *bell, struct wire **wire);

/*
 * Claims an address for a device: binds port 4791 there. text is an IPv4 or IPv6 address, the name of an
 * interface, or "" for a free address of the loopback network. gid takes the address; the caller makes
 * the device with this GID, and then calls udp_join().
 *
 * 0, or an errno value with a sentence: EADDRINUSE, whose sentence names the process that has the
 * address; EADDRNOTAVAIL, ENODEV (no such interface), EINVAL (neither), EACCES.
 */
int udp_claim(struct wire *wire, const char *text, union ibv_gid *gid);

/* Gives the last claimed address to port 1 of a device. */
void udp_join(struct wire *wire, struct sim_device *device);

/* Counts of the datagrams that a wire has dropped before they became packets, and of marks that it only
 * counts. */
struct udp_counters {
	uint64_t sent, received;
	uint64_t unsent;    /* the socket's buffer was full, or the kernel refused */
	uint64_t foreign;   /* from a source port or address that no RoCE peer has */
	uint64_t truncated; /* longer than a packet may be */
	uint64_t
		odd_identification; /* the ICRC was right for an IPv4 identification other than 0 */
	uint64_t congestion_marks;  /* ECN */
	uint64_t congestion_notifications; /* CNP */
};

const struct udp_counters *udp_counters(const struct wire *wire);

#endif
