/* SPDX-License-Identifier: MIT */
/* Interfaces of the wire `udp`: which address a name stands for, and which MTU an address has. The interfaces are the
 * test's own (--wrap). */
#include "test/unit/udp_peer.h"

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdarg.h>
#include <sys/ioctl.h>

#define ENTRIES_MAX 8

static struct ifaddrs entries[ENTRIES_MAX];
static union udp_sockaddr addresses[ENTRIES_MAX];
static unsigned int entry_count;
static int far_mtu;

int __wrap_getifaddrs(struct ifaddrs **first);
void __wrap_freeifaddrs(struct ifaddrs *first);
int __wrap_ioctl(int fd, unsigned long request, ...);

int __wrap_getifaddrs(struct ifaddrs **first)
{
	*first = entry_count ? entries : NULL;
	return 0;
}

void __wrap_freeifaddrs(struct ifaddrs *first)
{
	TEST_ASSERT_EQUAL_PTR(entry_count ? entries : NULL, first);
}

/* The interface far0 has the test's MTU, and lo that of Linux. */
int __wrap_ioctl(int fd, unsigned long request, ...)
{
	struct ifreq *asked;
	va_list args;

	(void)fd;
	va_start(args, request);
	asked = va_arg(args, struct ifreq *);
	va_end(args);
	TEST_ASSERT_EQUAL_UINT(SIOCGIFMTU, request);
	asked->ifr_mtu = strcmp(asked->ifr_name, "far0") == 0 ? far_mtu : 65536;
	return 0;
}

void setUp(void)
{
	entry_count = 0;
	far_mtu = 1500;
}

void tearDown(void)
{
}

/* Adds an address of an interface; NULL: an entry that has none. */
static void add(const char *interface, const char *address)
{
	struct ifaddrs *entry = &entries[entry_count];

	*entry = (struct ifaddrs){.ifa_name = (char *)interface};
	entry->ifa_flags = strcmp(interface, "lo") == 0 ? IFF_LOOPBACK : 0;
	if (address) {
		const union ibv_gid gid = udp_gid(address);

		udp_sockaddr(gid.raw, &addresses[entry_count]);
		entry->ifa_addr = &addresses[entry_count].any;
	}
	if (entry_count)
		entries[entry_count - 1].ifa_next = entry;
	entry_count++;
}

/* --- names --- */

static void expect_address(const char *name, const char *expected)
{
	struct udp_address address;

	TEST_ASSERT_EQUAL_INT(0, udp_address_find(name, &address));
	TEST_ASSERT_EQUAL_STRING(expected, address.text);
}

void test_a_name_stands_for_the_first_ipv4_address(void)
{
	add("far0", "10.9.9.9");
	add("lo", NULL);
	add("lo", "fd00::1");
	add("lo", "10.0.0.1");
	add("lo", "10.0.0.2");
	expect_address("lo", "10.0.0.1");
}

void test_a_name_stands_for_the_first_global_ipv6_address(void)
{
	add("far0", "fd00::9");
	add("lo", "fe80::1");
	add("lo", "fd00::1");
	add("lo", "fd00::2");
	add("far0", "10.9.9.9");
	expect_address("lo", "fd00::1");
}

void test_a_link_local_address_is_no_global_one(void)
{
	struct udp_address address;

	add("lo", "fe80::1");
	TEST_ASSERT_EQUAL_INT(EADDRNOTAVAIL, udp_address_find("lo", &address));
}

/* RFC 4291: fe80::/10. */
void test_which_addresses_are_link_local(void)
{
	struct udp_address address;

	TEST_ASSERT_EQUAL_INT(EINVAL, udp_address_find("fe80::1", &address));
	TEST_ASSERT_EQUAL_INT(EINVAL, udp_address_find("febf::1", &address));
	expect_address("fe7f::1", "fe7f::1");
	expect_address("fec0::1", "fec0::1");
}

/* --- MTU --- */

static enum ibv_mtu mtu_of(const char *text)
{
	struct udp_address address;

	TEST_ASSERT_EQUAL_INT(0, udp_address_find(text, &address));
	udp_address_find_interface(&address);
	return address.mtu;
}

/* Linux include/rdma/ib_addr.h, iboe_get_mtu: a packet has up to 96 bytes of headers. A path MTU of 256 is the
 * least. */
void test_the_path_mtu_fits_the_interface(void)
{
	static const struct {
		int bytes;
		enum ibv_mtu mtu;
	} rows[] = {
		{65536, IBV_MTU_4096}, {4192, IBV_MTU_4096}, {4191, IBV_MTU_2048},
		{2144, IBV_MTU_2048},  {2143, IBV_MTU_1024}, {1500, IBV_MTU_1024},
		{1120, IBV_MTU_1024},  {1119, IBV_MTU_512},  {608, IBV_MTU_512},
		{607, IBV_MTU_256},    {352, IBV_MTU_256},   {68, IBV_MTU_256},
	};

	add("far0", "10.0.0.1");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		far_mtu = rows[i].bytes;
		TEST_ASSERT_EQUAL_INT(rows[i].mtu, mtu_of("10.0.0.1"));
	}
}

/* All of 127.0.0.0/8 is the loopback interface's; an IPv6 address with a byte of 127 is not. */
void test_the_mtu_is_that_of_the_interface_with_the_address(void)
{
	add("far0", "10.0.0.1");
	add("lo", "127.0.0.1");
	add("lo", "10.0.0.2");
	add("far0", "fd00::7f00:1");
	TEST_ASSERT_EQUAL_INT(IBV_MTU_4096, mtu_of("127.5.6.7"));
	TEST_ASSERT_EQUAL_INT(IBV_MTU_1024, mtu_of("10.0.0.1"));
	TEST_ASSERT_EQUAL_INT(IBV_MTU_4096, mtu_of("10.0.0.2"));
	TEST_ASSERT_EQUAL_INT(IBV_MTU_1024, mtu_of("fd00::7f00:1"));
}
