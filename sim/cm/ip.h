/* SPDX-License-Identifier: MIT */
/*
 * The RDMA IP CM service: annex A11 of the InfiniBand specification. IP addresses and ports travel in
 * the first bytes of a REQ's or SIDR_REQ's private data, and a service ID names port space and port.
 */
#ifndef SIM_CM_IP_H
#define SIM_CM_IP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The bytes that the header takes from the private data: 56 of a REQ's 92 are left to the program. */
#define SIM_CM_IP_BYTES 36

/* Port spaces, as enum rdma_port_space of <rdma/rdma_cma.h> has them. */
enum sim_cm_port_space {
	SIM_CM_PS_TCP = 0x0106,
	SIM_CM_PS_UDP = 0x0111,
	SIM_CM_PS_IB = 0x013f,
};

/* Addresses are GIDs: IPv4 is mapped (RFC 4291). Ports are in host order. */
struct sim_cm_ip {
	bool ipv6;
	uint16_t source_port;
	uint8_t source[16], dest[16];
};

/* Linux include/rdma/rdma_cm_ib.h, rdma_get_service_id(). */
uint64_t sim_cm_service_id(enum sim_cm_port_space space, uint16_t port);

/* Returns the port of a service ID of a port space. */
uint16_t sim_cm_service_port(uint64_t service_id);

/* Returns true if a service ID is of a port space: the private data of its requests begins with the header. */
bool sim_cm_service_is_ip(uint64_t service_id);

void sim_cm_ip_write(const struct sim_cm_ip *ip, uint8_t bytes[SIM_CM_IP_BYTES]);

/* Returns false if the version or the IP version is unknown: Linux cma.c, cma_save_net_info(). */
bool sim_cm_ip_read(const uint8_t bytes[SIM_CM_IP_BYTES], struct sim_cm_ip *ip);

#endif
