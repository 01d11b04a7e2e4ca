/* SPDX-License-Identifier: MIT */
#include "sim/cm/ip.h"

#include "sim/wire/bytes.h"

#include <string.h>

/* Linux drivers/infiniband/core/cma_priv.h and cma.c, struct cma_hdr: version, IP version in the high
 * bits of a byte, port, and two addresses of 16 bytes, of which IPv4 uses the last four. */
enum {
	VERSION_AT = 0,
	IP_VERSION_AT = 1,
	PORT_AT = 2,
	SOURCE_AT = 4,
	DEST_AT = 20,
	IPV4_AT = 12,
};

#define VERSION 0

static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

/* The prefix of the service IDs of the IP service: InfiniBand, A11.2; Linux include/rdma/rdma_cm_ib.h. */
#define SERVICE_PREFIX UINT64_C(0x0000000001)

uint64_t sim_cm_service_id(enum sim_cm_port_space space, uint16_t port)
{
	return (uint64_t)space << 16 | port;
}

uint16_t sim_cm_service_port(uint64_t service_id)
{
	return (uint16_t)service_id;
}

bool sim_cm_service_is_ip(uint64_t service_id)
{
	return service_id >> 24 == SERVICE_PREFIX;
}

static void write_address(uint8_t *at, const uint8_t gid[16], bool ipv6)
{
	if (ipv6)
		memcpy(at, gid, 16);
	else
		memcpy(at + IPV4_AT, gid + IPV4_AT, 4);
}

static void read_address(uint8_t gid[16], const uint8_t *at, bool ipv6)
{
	memcpy(gid, at, 16);
	if (!ipv6)
		memcpy(gid, mapped, sizeof(mapped));
}

void sim_cm_ip_write(const struct sim_cm_ip *ip, uint8_t bytes[SIM_CM_IP_BYTES])
{
	memset(bytes, 0, SIM_CM_IP_BYTES);
	bytes[VERSION_AT] = VERSION;
	bytes[IP_VERSION_AT] = (ip->ipv6 ? 6 : 4) << 4;
	sim_store_be16(bytes + PORT_AT, ip->source_port);
	write_address(bytes + SOURCE_AT, ip->source, ip->ipv6);
	write_address(bytes + DEST_AT, ip->dest, ip->ipv6);
}

bool sim_cm_ip_read(const uint8_t bytes[SIM_CM_IP_BYTES], struct sim_cm_ip *ip)
{
	const unsigned int ip_version = bytes[IP_VERSION_AT] >> 4;

	if (bytes[VERSION_AT] != VERSION || (ip_version != 4 && ip_version != 6))
		return false;
	ip->ipv6 = ip_version == 6;
	ip->source_port = sim_load_be16(bytes + PORT_AT);
	read_address(ip->source, bytes + SOURCE_AT, ip->ipv6);
	read_address(ip->dest, bytes + DEST_AT, ip->ipv6);
	return true;
}
