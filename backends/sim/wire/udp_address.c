/* SPDX-License-Identifier: MIT */
/* Addresses of the wire `udp`: as texts, as GIDs, as socket addresses, and those of interfaces. */
#include "backends/sim/object/refuse.h"
#include "backends/sim/wire/udp_private.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/*
 * What an interface's MTU has to hold beside the payload: Linux include/rdma/ib_addr.h, iboe_get_mtu,
 * adds the GRH, UDP, BTH, XRCETH, AtomicETH and ICRC. SoftRoCE's ports have the same active MTU on
 * usual interfaces, so that both ends agree.
 */
#define HEADERS_BYTES (40 + 8 + 12 + 4 + 28 + 4)

/* The MTU of an interface that cannot be asked: that of Ethernet. */
#define MTU_BYTES_DEFAULT 1500

bool udp_gid_is_ipv6(const uint8_t gid[16])
{
	return !sim_gid_is_ipv4(gid);
}

socklen_t udp_sockaddr(const uint8_t gid[16], union udp_sockaddr *to)
{
	memset(to, 0, sizeof(*to));
	if (sim_gid_is_ipv4(gid)) {
		to->v4.sin_family = AF_INET;
		to->v4.sin_port = htons(SIM_UDP_PORT);
		memcpy(&to->v4.sin_addr, gid + 12, 4);
		return sizeof(to->v4);
	}
	to->v6.sin6_family = AF_INET6;
	to->v6.sin6_port = htons(SIM_UDP_PORT);
	memcpy(&to->v6.sin6_addr, gid, 16);
	return sizeof(to->v6);
}

static void map_ipv4(const struct in_addr *from, union ibv_gid *gid)
{
	memset(gid, 0, sizeof(*gid));
	memset(gid->raw + 10, 0xff, 2);
	memcpy(gid->raw + 12, from, 4);
}

void udp_address_init(struct udp_address *address, const union ibv_gid *gid)
{
	address->gid = *gid;
	address->interface = 0;
	address->ipv6 = udp_gid_is_ipv6(gid->raw);
	address->mtu = IBV_MTU_1024;
	inet_ntop(address->ipv6 ? AF_INET6 : AF_INET, gid->raw + (address->ipv6 ? 0 : 12),
		  address->text, sizeof(address->text));
}

/* --- interfaces --- */

/* Reads the GID of an interface's address. Returns false if it is neither IPv4 nor IPv6. */
static bool gid_of(const struct ifaddrs *entry, union ibv_gid *gid)
{
	if (!entry->ifa_addr)
		return false;
	if (entry->ifa_addr->sa_family == AF_INET) {
		map_ipv4(&((const struct sockaddr_in *)(const void *)entry->ifa_addr)->sin_addr,
			 gid);
		return true;
	}
	if (entry->ifa_addr->sa_family != AF_INET6)
		return false;
	memcpy(gid, &((const struct sockaddr_in6 *)(const void *)entry->ifa_addr)->sin6_addr, 16);
	return true;
}

static bool is_link_local(const union ibv_gid *gid)
{
	return gid->raw[0] == 0xfe && (gid->raw[1] & 0xc0) == 0x80;
}

/* Finds the first IPv4 address of an interface, else a global IPv6 one. Returns false if the interface
 * has neither. */
static bool find_address_of(const struct ifaddrs *entries, const char *name, union ibv_gid *gid)
{
	bool found = false;

	for (const struct ifaddrs *entry = entries; entry; entry = entry->ifa_next) {
		union ibv_gid one;

		if (strcmp(entry->ifa_name, name) != 0 || !gid_of(entry, &one))
			continue;
		if (sim_gid_is_ipv4(one.raw)) {
			*gid = one;
			return true;
		}
		if (!found && !is_link_local(&one)) {
			*gid = one;
			found = true;
		}
	}
	return found;
}

/* Returns the name of the interface that has the address; NULL if none has. All of 127.0.0.0/8 is the
 * loopback interface's. */
static const char *interface_of(const struct ifaddrs *entries, const struct udp_address *address)
{
	const bool loopback = !address->ipv6 && address->gid.raw[12] == 127;

	for (const struct ifaddrs *entry = entries; entry; entry = entry->ifa_next) {
		union ibv_gid one;

		if ((loopback && entry->ifa_flags & IFF_LOOPBACK) ||
		    (gid_of(entry, &one) && memcmp(&one, &address->gid, sizeof(one)) == 0))
			return entry->ifa_name;
	}
	return NULL;
}

static int mtu_bytes_of(const char *interface)
{
	struct ifreq request;
	const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int bytes = MTU_BYTES_DEFAULT;

	memset(&request, 0, sizeof(request));
	strncpy(request.ifr_name, interface, sizeof(request.ifr_name) - 1);
	if (fd >= 0 && ioctl(fd, SIOCGIFMTU, &request) == 0)
		bytes = request.ifr_mtu;
	if (fd >= 0)
		close(fd);
	return bytes;
}

void udp_address_find_interface(struct udp_address *address)
{
	struct ifaddrs *entries = NULL;
	int bytes = MTU_BYTES_DEFAULT;

	if (getifaddrs(&entries) == 0) {
		const char *interface = interface_of(entries, address);

		if (interface) {
			bytes = mtu_bytes_of(interface);
			address->interface = if_nametoindex(interface);
		}
		freeifaddrs(entries);
	}
	address->mtu = IBV_MTU_4096;
	while (address->mtu > IBV_MTU_256 &&
	       (int)sim_mtu_bytes(address->mtu) + HEADERS_BYTES > bytes)
		address->mtu--;
}

/* --- texts --- */

/* Returns true if a text can only be meant as an address: it has digits, colons and dots. */
static bool looks_like_address(const char *text)
{
	return strpbrk(text, ".:") && strspn(text, "0123456789abcdefABCDEF.:%") == strlen(text);
}

static bool parse(const char *text, union ibv_gid *gid)
{
	struct in_addr v4;

	if (inet_pton(AF_INET, text, &v4) == 1) {
		map_ipv4(&v4, gid);
		return true;
	}
	return inet_pton(AF_INET6, text, gid->raw) == 1;
}

/* Returns what an address is that no device can have; NULL if a device can have it. */
static const char *unusable(const union ibv_gid *gid)
{
	static const uint8_t zeros[16];

	if (sim_gid_is_multicast(gid->raw))
		return "the address of a group";
	if (is_link_local(gid))
		return "a link-local address";
	if (memcmp(gid->raw + (sim_gid_is_ipv4(gid->raw) ? 12 : 0), zeros,
		   sim_gid_is_ipv4(gid->raw) ? 4 : 16) == 0)
		return "the address that stands for all of a machine's";
	return NULL;
}

static int refuse_unusable(const char *text, const char *what)
{
	char sentence[256];

	snprintf(sentence, sizeof(sentence), "%s is %s", text, what);
	return refuse_name(NULL, VB_WHY_UDP_ADDRESS_KIND, sentence);
}

static int find_interface(const char *name, struct udp_address *address)
{
	struct ifaddrs *entries;
	union ibv_gid gid;
	bool found;

	if (!if_nametoindex(name))
		return refuse_name(NULL, VB_WHY_UDP_INTERFACE, name);
	if (getifaddrs(&entries))
		return refuse_system(NULL, errno, "getifaddrs");
	found = find_address_of(entries, name, &gid);
	freeifaddrs(entries);
	if (!found)
		return refuse_name(NULL, VB_WHY_UDP_INTERFACE_BARE, name);
	udp_address_init(address, &gid);
	return 0;
}

int udp_address_find(const char *text, struct udp_address *address)
{
	union ibv_gid gid;

	if (!parse(text, &gid))
		return looks_like_address(text) ? refuse_name(NULL, VB_WHY_UDP_ADDRESS, text)
						: find_interface(text, address);
	if (unusable(&gid))
		return refuse_unusable(text, unusable(&gid));
	udp_address_init(address, &gid);
	return 0;
}
