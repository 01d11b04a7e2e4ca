/* SPDX-License-Identifier: MIT */
/* Headers of the wire `udp`: the MACs that frames show, and what a filter may change in a frame that leaves. */
#include "test/unit/udp_peer.h"

static union ibv_gid gid_a, gid_b;
static uint8_t frame[SIM_FRAME_BYTES_MAX];

void setUp(void)
{
	gid_a = udp_gid("127.0.0.1");
	gid_b = udp_gid("127.0.0.2");
}

void tearDown(void)
{
}

/* --- MACs --- */

static void expect_mac(const char *address, const uint8_t expected[6])
{
	const union ibv_gid gid = udp_gid(address);
	uint8_t mac[6];

	udp_frame_mac(gid.raw, mac);
	TEST_ASSERT_EQUAL_MEMORY_MESSAGE(expected, mac, sizeof(mac), address);
}

/* RFC 1112: 23 bits of an IPv4 group; RFC 2464: 32 bits of an IPv6 group. */
void test_the_mac_of_a_group(void)
{
	expect_mac("239.1.2.3", (const uint8_t[]){0x01, 0x00, 0x5e, 1, 2, 3});
	expect_mac("224.255.254.253", (const uint8_t[]){0x01, 0x00, 0x5e, 0x7f, 0xfe, 0xfd});
	expect_mac("ff0e::8182:8384", (const uint8_t[]){0x33, 0x33, 0x81, 0x82, 0x83, 0x84});
}

/* IEEE 802: of local administration, and not that of a group. Each address has its own. */
void test_the_mac_of_an_adapter(void)
{
	static const char *const addresses[] = {"127.0.0.1", "127.0.0.2", "10.0.1.1", "fd00::1",
						"fd00::1:0:2"};
	uint8_t macs[5][6];

	for (unsigned int i = 0; i < 5; i++) {
		const union ibv_gid gid = udp_gid(addresses[i]);

		udp_frame_mac(gid.raw, macs[i]);
		TEST_ASSERT_EQUAL_HEX8(0x02, macs[i][0] & 0x03);
		for (unsigned int k = 0; k < i; k++)
			TEST_ASSERT_TRUE_MESSAGE(memcmp(macs[k], macs[i], 6) != 0, addresses[i]);
	}
}

/* --- frames that a filter has changed --- */

/* Returns true if a frame with the headers of `changed` leaves by a path with the headers of *by. */
static bool leaves(const struct sim_route *changed, struct sim_route *by)
{
	return udp_frame_reads(frame, udp_encode(changed, 1, 64, frame), by);
}

static void expect_taken_from_the_frame(const char *a, const char *b)
{
	const union ibv_gid from = udp_gid(a), to = udp_gid(b);
	struct sim_route by = udp_route(&from, &to), changed = by;

	changed.traffic_class = 0x89;
	changed.hop_limit = 3;
	changed.flow_label = sim_gid_is_ipv4(from.raw) ? 0 : 0x54321;
	TEST_ASSERT_TRUE(leaves(&changed, &by));
	TEST_ASSERT_EQUAL_HEX8(0x89, by.traffic_class);
	TEST_ASSERT_EQUAL_UINT8(3, by.hop_limit);
	TEST_ASSERT_EQUAL_HEX32(changed.flow_label, by.flow_label);
}

/* The kernel writes the fields that it is asked for. */
void test_fields_that_a_filter_may_change(void)
{
	expect_taken_from_the_frame("127.0.0.1", "127.0.0.2");
	expect_taken_from_the_frame("fd00::1", "fd00::2");
}

/* The socket is bound to the device's address, and the datagram goes to the peer of the path. */
void test_addresses_that_a_filter_cannot_change(void)
{
	struct sim_route by = udp_route(&gid_a, &gid_b), changed = by;

	TEST_ASSERT_TRUE(leaves(&changed, &by));
	changed.source_gid[15] ^= 2;
	TEST_ASSERT_FALSE(leaves(&changed, &by));
	changed = by;
	changed.dest_gid[15] ^= 4;
	TEST_ASSERT_FALSE(leaves(&changed, &by));
	changed = by;
	changed.udp_source_port++;
	TEST_ASSERT_FALSE(leaves(&changed, &by));
	TEST_ASSERT_TRUE(leaves(&by, &by));
}
