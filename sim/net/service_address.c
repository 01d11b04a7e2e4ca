/* SPDX-License-Identifier: MIT */
#include "sim/net/service_address.h"

#include <errno.h>
#include <string.h>

static const uint8_t all[16];
static const uint8_t all_ipv4[16] = {[10] = 0xff, [11] = 0xff};

static bool equal(const uint8_t a[16], const uint8_t b[16])
{
	return memcmp(a, b, 16) == 0;
}

static bool is_ipv4(const uint8_t address[16])
{
	return memcmp(address, all_ipv4, 12) == 0;
}

static bool is_wildcard(const uint8_t address[16])
{
	return equal(address, all) || equal(address, all_ipv4);
}

int sim_service_conflict(const uint8_t address[16], uint32_t flags, const uint8_t other[16],
			 uint32_t other_flags)
{
	const uint32_t both = flags & SIM_SERVICE_UNIQUE ? 0 : flags & other_flags;

	if (both & SIM_SERVICE_SHARED)
		return 0;
	if (both & SIM_SERVICE_AFONLY && is_ipv4(address) != is_ipv4(other))
		return 0;
	if (is_wildcard(address) || is_wildcard(other))
		return EADDRNOTAVAIL;
	return equal(address, other) ? EADDRINUSE : 0;
}

unsigned int sim_service_suits(const uint8_t address[16], uint32_t flags,
			       const uint8_t requested[16])
{
	bool ipv4;

	if (!requested)
		return flags & SIM_SERVICE_INFINIBAND ? 4 : 1;
	if (flags & SIM_SERVICE_INFINIBAND)
		return 2;
	ipv4 = is_ipv4(requested);
	if (equal(address, requested))
		return 4;
	if (equal(address, all_ipv4))
		return ipv4 ? 3 : 1;
	if (equal(address, all))
		return ipv4 && flags & SIM_SERVICE_AFONLY ? 1 : 2;
	return 0;
}
