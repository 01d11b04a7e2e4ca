/* SPDX-License-Identifier: MIT */
/*
 * The IP addresses at which services are reserved, and which of them exclude each other. An address has
 * the form of a GID: IPv4 is mapped. ::ffff:0.0.0.0 stands for all IPv4 addresses; zeros stand for all
 * addresses, or with SIM_SERVICE_AFONLY for all IPv6 addresses.
 */
#ifndef SIM_NET_SERVICE_ADDRESS_H
#define SIM_NET_SERVICE_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>

enum sim_service_flag {
	SIM_SERVICE_SHARED = 1 << 0, /* a service that is shared, too, may have the service ID */
	SIM_SERVICE_AFONLY = 1 << 1, /* the service is for the family of its address only */
	SIM_SERVICE_UNIQUE = 1 << 2, /* of a new reservation: SHARED and AFONLY are ignored */
	/* The address is a GID: the service is for all requests to its port. */
	SIM_SERVICE_INFINIBAND = 1 << 3,
};

/*
 * Returns 0 if a new reservation of a service ID and one that exists do not exclude each other:
 * EADDRNOTAVAIL if one of the addresses stands for others, EADDRINUSE if they are equal. Linux
 * drivers/infiniband/core/cma.c, cma_check_port.
 */
int sim_service_conflict(const uint8_t address[16], uint32_t flags, const uint8_t other[16],
			 uint32_t other_flags);

/*
 * Returns how well a service suits a request to an address: 0: not at all; the more, the better. 1: the
 * service is for all addresses of the other family. Its owner rejects the request, as Linux
 * drivers/infiniband/core/cma.c, cma_match_private_data does, because a program listens for the service ID.
 * requested NULL: the request names no IP address, and a service of InfiniBand suits it.
 */
unsigned int sim_service_suits(const uint8_t address[16], uint32_t flags,
			       const uint8_t requested[16]);

#endif
