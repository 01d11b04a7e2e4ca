/* SPDX-License-Identifier: MIT */
/* Addresses of IP and of InfiniBand, those of this machine, and the devices' GIDs that stand for them. */
#include "backends/sim/cm/private.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <infiniband/ib.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

static const struct sockaddr_in *in4(const struct sockaddr *address)
{
	return (const struct sockaddr_in *)(const void *)address;
}

static const struct sockaddr_in6 *in6(const struct sockaddr *address)
{
	return (const struct sockaddr_in6 *)(const void *)address;
}

static const struct sockaddr_ib *in_ib(const struct sockaddr *address)
{
	return (const struct sockaddr_ib *)(const void *)address;
}

/* Returns the 16 bytes of an address of IPv6 or InfiniBand. */
static const void *bytes_of(const struct sockaddr *address)
{
	return address->sa_family == AF_IB ? (const void *)&in_ib(address)->sib_addr
					   : &in6(address)->sin6_addr;
}

socklen_t cm_address_bytes(const struct sockaddr *address)
{
	if (!address)
		return 0;
	switch (address->sa_family) {
	case AF_INET:
		return sizeof(struct sockaddr_in);
	case AF_INET6:
		return sizeof(struct sockaddr_in6);
	case AF_IB:
		return sizeof(struct sockaddr_ib);
	default:
		return 0;
	}
}

bool cm_address_is_any(const struct sockaddr *address)
{
	if (address->sa_family == AF_INET)
		return in4(address)->sin_addr.s_addr == htonl(INADDR_ANY);
	/* Linux cma.c, cma_any_addr. */
	if (address->sa_family == AF_IB && cm_address_is_loopback(address))
		return true;
	return IN6_IS_ADDR_UNSPECIFIED((const struct in6_addr *)bytes_of(address));
}

bool cm_address_is_loopback(const struct sockaddr *address)
{
	if (address->sa_family == AF_INET)
		return ntohl(in4(address)->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
	return IN6_IS_ADDR_LOOPBACK((const struct in6_addr *)bytes_of(address));
}

bool cm_address_is_home(const struct sockaddr *address)
{
	return cm_address_is_loopback(address) &&
	       (address->sa_family != AF_INET ||
		ntohl(in4(address)->sin_addr.s_addr) == INADDR_LOOPBACK);
}

bool cm_address_is_group(const struct sockaddr *address)
{
	if (address->sa_family == AF_INET)
		return IN_MULTICAST(ntohl(in4(address)->sin_addr.s_addr));
	return IN6_IS_ADDR_MULTICAST((const struct in6_addr *)bytes_of(address));
}

bool cm_address_is_same(const struct sockaddr *a, const struct sockaddr *b)
{
	const union ibv_gid first = cm_address_gid(a), second = cm_address_gid(b);

	return a->sa_family == b->sa_family && memcmp(&first, &second, sizeof(first)) == 0;
}

bool cm_address_is_local(const struct sockaddr *address)
{
	struct ifaddrs *interfaces;
	bool found = false;

	if (cm_address_is_loopback(address))
		return true;
	if (getifaddrs(&interfaces))
		return false;
	for (const struct ifaddrs *i = interfaces; i && !found; i = i->ifa_next)
		found = cm_address_bytes(i->ifa_addr) && cm_address_is_same(i->ifa_addr, address);
	freeifaddrs(interfaces);
	return found;
}

uint16_t cm_address_port(const struct sockaddr *address)
{
	if (address->sa_family == AF_IB)
		return (uint16_t)be64toh(in_ib(address)->sib_sid & in_ib(address)->sib_sid_mask);
	return ntohs(address->sa_family == AF_INET ? in4(address)->sin_port
						   : in6(address)->sin6_port);
}

/* Linux cma.c, cma_bind_port. */
static void set_ib_port(struct sockaddr_ib *address, uint16_t port)
{
	const uint64_t kept = be64toh(address->sib_sid & address->sib_sid_mask);

	address->sib_sid = htobe64((kept & ~(uint64_t)UINT16_MAX) | port);
	address->sib_sid_mask = htobe64(UINT64_MAX);
}

void cm_address_set_port(struct sockaddr *address, uint16_t port)
{
	if (address->sa_family == AF_IB)
		set_ib_port((struct sockaddr_ib *)(void *)address, port);
	else if (address->sa_family == AF_INET)
		((struct sockaddr_in *)(void *)address)->sin_port = htons(port);
	else
		((struct sockaddr_in6 *)(void *)address)->sin6_port = htons(port);
}

union ibv_gid cm_address_gid(const struct sockaddr *address)
{
	union ibv_gid gid = {.raw = {0}};

	if (address->sa_family == AF_INET) {
		memset(gid.raw + 10, 0xff, 2);
		memcpy(gid.raw + 12, &in4(address)->sin_addr, 4);
	} else {
		memcpy(gid.raw, bytes_of(address), sizeof(gid.raw));
	}
	return gid;
}

void cm_address_from_gid(const union ibv_gid *gid, int family, struct sockaddr_storage *address)
{
	memset(address, 0, sizeof(*address));
	address->ss_family = (sa_family_t)family;
	if (family == AF_INET)
		memcpy(&((struct sockaddr_in *)address)->sin_addr, gid->raw + 12, 4);
	else if (family == AF_IB)
		memcpy(&((struct sockaddr_ib *)address)->sib_addr, gid->raw, sizeof(gid->raw));
	else
		memcpy(&((struct sockaddr_in6 *)address)->sin6_addr, gid->raw, sizeof(gid->raw));
}

const char *cm_address_text(const struct sockaddr *address, char *text, size_t size_bytes)
{
	const bool ipv4 = address->sa_family == AF_INET;
	const void *bytes = ipv4 ? &in4(address)->sin_addr : bytes_of(address);

	if (!inet_ntop(ipv4 ? AF_INET : AF_INET6, bytes, text, (socklen_t)size_bytes))
		snprintf(text, size_bytes, "?");
	return text;
}

/* --- the devices' addresses --- */

static bool is_zero(const union ibv_gid *gid)
{
	static const union ibv_gid zero;

	return memcmp(gid, &zero, sizeof(zero)) == 0;
}

/* Prefers RoCE v2, as the kernel does: Linux cma.c, CMA_PREFERRED_ROCE_GID_TYPE. */
static bool find_in_port(struct sim_port *port, const union ibv_gid *gid, struct cm_place *place)
{
	int index = sim_port_find_gid(port, gid, sim_port_gid_type(port));

	if (index < 0 && !sim_port_is_infiniband(port))
		index = sim_port_find_gid(port, gid, IBV_GID_TYPE_ROCE_V1);
	if (index < 0)
		return false;
	*place = (struct cm_place){port->device->user, port, (uint8_t)index};
	return true;
}

bool cm_find_gid(struct cm *cm, const union ibv_gid *gid, struct cm_place *place)
{
	for (unsigned int i = 0; i < cm->world->device_count; i++) {
		struct sim_device *device = cm->world->devices[i].engine;

		for (unsigned int number = 1; number <= device->port_count && !device->dead;
		     number++)
			if (find_in_port(sim_device_port(device, number), gid, place))
				return true;
	}
	return false;
}

bool cm_gid_is_link_local(const union ibv_gid *gid)
{
	return gid->raw[0] == 0xfe && gid->raw[1] >> 6 == 2;
}

/* Returns how well an entry of the GID table suits packets to the destination; 0: not at all. */
static unsigned int suitability(const struct sim_port *port, unsigned int index,
				const union ibv_gid *dest)
{
	const union ibv_gid *gid = &port->gids[index];

	if (is_zero(gid))
		return 0;
	if (sim_port_is_infiniband(port))
		return 1;
	if (sim_gid_is_ipv4(gid->raw) != sim_gid_is_ipv4(dest->raw))
		return 0;
	return 1 + 2u * (port->gid_types[index] == IBV_GID_TYPE_ROCE_V2) +
	       (cm_gid_is_link_local(gid) == cm_gid_is_link_local(dest));
}

bool cm_find_source(struct device *device, const union ibv_gid *dest, struct cm_place *place)
{
	unsigned int best = 0;

	for (unsigned int number = 1; number <= device->engine->port_count; number++) {
		struct sim_port *port = sim_device_port(device->engine, number);

		for (unsigned int i = 0; i < port->gid_count && sim_port_is_up(port); i++) {
			const unsigned int suits = suitability(port, i, dest);

			if (suits <= best)
				continue;
			best = suits;
			*place = (struct cm_place){device, port, (uint8_t)i};
		}
	}
	return best > 0;
}

struct device *cm_first_device(struct cm *cm)
{
	for (unsigned int i = 0; i < cm->world->device_count; i++) {
		struct sim_device *device = cm->world->devices[i].engine;

		for (unsigned int number = 1; number <= device->port_count; number++)
			if (!device->dead && sim_port_is_up(sim_device_port(device, number)))
				return &cm->world->devices[i];
	}
	return NULL;
}
