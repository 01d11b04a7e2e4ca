/* SPDX-License-Identifier: MIT */
/*
 * The wire `udp`: RoCEv2 over UDP sockets on port 4791, to other machines, network namespaces, and the
 * kernel's SoftRoCE. Each device has an address of its own, which is its GID.
 */
#ifndef BACKENDS_SIM_WIRE_UDP_H
#define BACKENDS_SIM_WIRE_UDP_H

#include "backends/sim/wire/wire.h"

#include <stddef.h>

/* Makes a wire without devices. Arriving datagrams ring the bell. Returns 0, or an errno value with a
 * sentence. */
int udp_open(struct bell *bell, struct wire **wire);

/* Replaces the bell that arriving datagrams ring. */
void udp_set_bell(struct wire *wire, struct bell *bell);

/*
 * Claims an address for a device: binds port 4791 there. text is an IPv4 or IPv6 address, the name of an
 * interface, or "" for a free address of the loopback network. gid takes the address; the caller makes
 * the device with this GID, and then calls udp_join().
 *
 * 0, or an errno value with a sentence: EADDRINUSE, whose sentence names the process that has the
 * address; EADDRNOTAVAIL, ENODEV (no such interface), EINVAL (neither), EACCES.
 */
int udp_claim(struct wire *wire, const char *text, union ibv_gid *gid);

/* Finds the GID and the MTU of the device that claims an address, and claims nothing. The text is that of
 * udp_claim(); "" is the address that this process would try first. 0, or an errno value with a sentence. */
int udp_describe(const char *text, union ibv_gid *gid, enum ibv_mtu *mtu);

/* Returns the largest path MTU whose packets fit the interface of the last claimed address: the active
 * MTU of the device's port. */
enum ibv_mtu udp_mtu(const struct wire *wire);

/* Gives the last claimed address to port 1 of a device. */
void udp_join(struct wire *wire, struct sim_device *device);

/* Counts of the datagrams of a device. */
struct udp_counters {
	uint64_t sent, received;
	/* Datagrams that the kernel has refused to send. Each one also counts as a lost packet of the
	 * device. */
	uint64_t too_long;    /* longer than the MTU of the way */
	uint64_t unreachable; /* no way leads to the address */
	uint64_t unsent; /* no room in the socket's buffer or in the kernel, or another error */
	/* Received datagrams that are no packet. */
	uint64_t truncated; /* longer than a packet may be */
	uint64_t foreign;   /* from an address or port that no peer can have */
	uint64_t own;	    /* of this process, to a group: its QPs have the packet */
	uint64_t congestion_notifications; /* CNP */
	/* Received packets that are only counted. */
	uint64_t congestion_marks; /* ECN: congestion experienced */
	uint64_t identified;	   /* the ICRC was right for an IPv4 identification other than 0 */
};

/* Returns the counters of a device of the wire. */
const struct udp_counters *udp_counters(const struct wire *wire, const struct sim_device *device);

/* Returns the name of the counter at index, from 0, such as "datagrams sent", and sets *value; NULL behind
 * the last counter. The name is constant. */
const char *udp_counter(const struct udp_counters *counters, unsigned int index, uint64_t *value);

#endif
