/* SPDX-License-Identifier: MIT */
/*
 * The wire `udp` without an engine: frames that leave it, and datagrams that come to it. The functions of
 * the engine that the wire calls are the test's own (--wrap).
 */
#include "test/unit/udp_ends.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>

void setUp(void)
{
	arrivals = readies = 0;
	memset(&bell, 0, sizeof(bell));
	random_state = SEED;
	open_wires("", "");
}

void tearDown(void)
{
	close_wires();
}

/* --- packets between two wires --- */

/* The frame that has come is the frame that was sent, from the IP header on. The UDP checksum, which the
 * kernel has looked at, is left out. */
static void expect_sent(unsigned int index, size_t frame_bytes)
{
	uint8_t *frame = arrived[index].frame;
	const size_t checksum_at = 14 + (frame[12] == 0x86 ? 40 : 20) + 6;

	TEST_ASSERT_EQUAL_UINT(frame_bytes, arrived[index].bytes);
	TEST_ASSERT_TRUE(arrived[index].checked);
	TEST_ASSERT_EQUAL_PTR(&device_b.ports[0], arrived[index].port);
	memset(frame + checksum_at, 0, 2);
	memset(frame_sent + checksum_at, 0, 2);
	TEST_ASSERT_EQUAL_MEMORY(frame_sent + 12, frame + 12, frame_bytes - 12);
}

static void check_way(uint8_t traffic_class, uint8_t hop_limit, uint32_t flow_label)
{
	struct sim_route by = udp_route(&gid_a, &gid_b);
	size_t bytes;

	by.traffic_class = traffic_class;
	by.hop_limit = hop_limit;
	by.flow_label = flow_label;
	arrivals = 0;
	bytes = send_packet(&by, 7, 100);
	wire_a->flush(wire_a);
	TEST_ASSERT_TRUE(receive_all(wire_b));
	TEST_ASSERT_EQUAL_UINT(1, arrivals);
	expect_sent(0, bytes);
}

void test_ipv4_fields_of_the_way_arrive(void)
{
	check_way(0, 64, 0);
	check_way(0x88, 64, 0);
	check_way(0, 1, 0);
	check_way(0x21, 255, 0);
	check_way(0x02, 64, 0);
	check_way(0, 64, 0);
}

/* The kernel does not tell the flow label, which the ICRC leaves out. */
void test_ipv6_fields_of_the_way_arrive(void)
{
	open_wires("::1", "");
	close_wires();
	wire_a = wire_b = open_wire("::1", &device_b, &gid_a);
	device_a = device_b;
	gid_b = gid_a;
	device_b.ports[0].device = &device_b;
	device_a.ports[0].device = &device_b;
	check_way(0, 64, 0);
	check_way(0x88, 3, 0);
	wire_b = NULL;
}

void test_a_batch_arrives_in_order(void)
{
	const struct sim_route by = udp_route(&gid_a, &gid_b);
	const struct udp_counters *counters = udp_counters(wire_a, &device_a);

	for (uint32_t psn = 0; psn < 200; psn++)
		send_packet(&by, psn, psn % 64);
	TEST_ASSERT_EQUAL_UINT(192, counters->sent); /* three full queues */
	wire_a->flush(wire_a);
	TEST_ASSERT_EQUAL_UINT(200, counters->sent);
	receive_all(wire_b);
	TEST_ASSERT_EQUAL_UINT(200, arrivals);
	TEST_ASSERT_EQUAL_UINT(200, udp_counters(wire_b, &device_b)->received);
	for (uint32_t psn = 0; psn < 200; psn++)
		TEST_ASSERT_EQUAL_UINT(psn, sim_load_be24(arrived[psn].frame + 42 + 9));
}

void test_the_longest_packet_arrives(void)
{
	static uint8_t bytes[SIM_PATH_MTU_MAX];
	const struct sim_route by = udp_route(&gid_a, &gid_b);
	const struct sim_span span = {bytes, sizeof(bytes)};
	const struct sim_packet longest = {
		.opcode = IBV_OPCODE_UC_RDMA_WRITE_ONLY_WITH_IMMEDIATE,
		.payload_bytes = sizeof(bytes),
		.spans = &span,
		.span_count = 1,
	};
	size_t frame_bytes;

	random_bytes(bytes, sizeof(bytes));
	frame_bytes = sim_packet_encode(&longest, &by, udp_copy, frame_sent, NULL);
	TEST_ASSERT_EQUAL_INT(IBV_MTU_4096, udp_mtu(wire_a));
	TEST_ASSERT_TRUE(send_frame(&by, frame_sent, frame_bytes));
	wire_a->flush(wire_a);
	wire_b->receive(wire_b);
	TEST_ASSERT_EQUAL_UINT(1, arrivals);
	expect_sent(0, frame_bytes);
}

/* --- which paths leave --- */

static struct sim_path path_to(const union ibv_gid *dest)
{
	struct sim_path path = {.source = &device_a.ports[0], .route = udp_route(&gid_a, dest)};

	path.route.udp_source_port = 0xc123;
	return path;
}

static bool reaches(struct sim_path *path)
{
	return wire_a->way.reaches(wire_a->way.arg, path);
}

void test_reaches_what_the_address_reaches(void)
{
	const union ibv_gid far = udp_gid("192.0.2.1"), v6 = udp_gid("fd00::1");
	struct sim_path path = path_to(&gid_b);

	TEST_ASSERT_TRUE(reaches(&path));
	TEST_ASSERT_EQUAL_UINT(4791, path.route.udp_source_port);
	/* The kernel sends from loopback addresses to loopback addresses only. */
	path = path_to(&far);
	TEST_ASSERT_FALSE(reaches(&path));
	path = path_to(&v6);
	TEST_ASSERT_FALSE(reaches(&path));
}

void test_does_not_reach_by_other_gids(void)
{
	struct sim_path path = path_to(&gid_b);

	path.route.roce_v1 = true;
	TEST_ASSERT_FALSE(reaches(&path));
	path = path_to(&gid_b);
	path.route.source_gid[15] ^= 1;
	TEST_ASSERT_FALSE(reaches(&path));
	path = path_to(&gid_b);
	path.multicast = true;
	TEST_ASSERT_FALSE(reaches(&path));
	path = path_to(&gid_b);
	path.source = &device_b.ports[0];
	TEST_ASSERT_FALSE(reaches(&path));
}

static enum vb_reason barrier_to(const char *text)
{
	const union ibv_gid dest = udp_gid(text);
	const struct sim_path path = path_to(&dest);

	return wire_a->way.barrier(wire_a->way.arg, &path);
}

void test_a_path_of_infiniband_does_not_leave(void)
{
	struct sim_path path = path_to(&gid_b);

	TEST_ASSERT_EQUAL_INT(VB_WHY_NONE, wire_a->way.barrier(wire_a->way.arg, &path));
	path.route.infiniband = true;
	TEST_ASSERT_FALSE(reaches(&path));
	TEST_ASSERT_EQUAL_INT(VB_WHY_PATH_UNREACHABLE, wire_a->way.barrier(wire_a->way.arg, &path));
}

/* In a namespace. As over IPv4, the kernel sends from loopback addresses to loopback addresses only. */
static void reach_ipv6_addresses(void)
{
	add_address("fd00::1");
	wire_a = open_wire("fd00::1", &device_a, &gid_a);
	TEST_ASSERT_EQUAL_INT(VB_WHY_NONE, barrier_to("fd00::2"));
	TEST_ASSERT_EQUAL_INT(VB_WHY_NONE, barrier_to("fd00::1"));
	TEST_ASSERT_EQUAL_INT(VB_WHY_UDP_LOOPBACK, barrier_to("::1"));
	close_wires();
	wire_a = open_wire("::1", &device_a, &gid_a);
	TEST_ASSERT_EQUAL_INT(VB_WHY_NONE, barrier_to("::1"));
	TEST_ASSERT_EQUAL_INT(VB_WHY_UDP_LOOPBACK, barrier_to("fd00::1"));
}

void test_reaches_what_an_ipv6_address_reaches(void)
{
	in_namespace(65536, reach_ipv6_addresses);
}

/* Groups of the device's IP version are reached, from the loopback network too. */
void test_reaches_groups_of_its_ip_version(void)
{
	static const uint8_t mac[] = {0x01, 0x00, 0x5e, 0x01, 0x02, 0x03};
	const union ibv_gid v4 = udp_gid("239.129.2.3"), v6 = udp_gid("ff0e::1");
	struct sim_path path = path_to(&v4);

	path.multicast = true;
	TEST_ASSERT_TRUE(reaches(&path));
	TEST_ASSERT_EQUAL_UINT(4791, path.route.udp_source_port);
	TEST_ASSERT_EQUAL_MEMORY(mac, path.route.dest_mac, sizeof(mac));
	path.route.source_gid[15] ^= 1;
	TEST_ASSERT_FALSE(reaches(&path));
	path = path_to(&v6);
	path.multicast = true;
	TEST_ASSERT_FALSE(reaches(&path));
	path = path_to(&v4);
	path.multicast = true;
	path.route.roce_v1 = true;
	TEST_ASSERT_FALSE(reaches(&path));
}

static union ibv_gid joined; /* the group that b has joined */

/* The group depends on the process: tests that run at the same time have different groups. */
static union ibv_gid own_group(uint8_t first)
{
	return (union ibv_gid){.raw = {[10] = 0xff,
				       [11] = 0xff,
				       [12] = first,
				       [13] = (uint8_t)(getpid() >> 16 & 0x7f),
				       [14] = (uint8_t)(getpid() >> 8),
				       [15] = (uint8_t)getpid()}};
}

static void join_group(void)
{
	joined = own_group(237);
	TEST_ASSERT_EQUAL_INT(0, wire_b->way.join(wire_b->way.arg, &device_b, &joined));
}

/* Returns true if wire b gets what a sends to the group. */
static bool hears_group(const union ibv_gid *to)
{
	const struct sim_route by = udp_route(&gid_a, to);

	arrivals = 0;
	send_packet(&by, 1, 10);
	wire_a->flush(wire_a);
	receive_all(wire_b);
	return arrivals == 1 && arrived[0].checked;
}

static int child_joins_again(void)
{
	const union ibv_gid left = own_group(236);

	if (wire_b->way.join(wire_b->way.arg, &device_b, &left) || wire_a->resume(wire_a) ||
	    wire_b->resume(wire_b) || !hears_group(&joined) || !hears_group(&left))
		return 1;
	wire_b->way.leave(wire_b->way.arg, &device_b, &left);
	return !hears_group(&joined) || hears_group(&left);
}

/* A program that shares nothing has the group first. Then the child has neither the group nor the address of its
 * device, and tries again later. */
static int child_waits_for_a_group(void)
{
	const int fd = udp_plain(&joined, SIM_UDP_PORT);

	if (wire_a->resume(wire_a) || wire_b->resume(wire_b) != EADDRINUSE)
		return 1;
	close(udp_plain(&gid_b, SIM_UDP_PORT));
	close(fd);
	return wire_b->resume(wire_b) || !hears_group(&joined);
}

/* Runs the function in the child of a fork(), once the parent has closed its wires. `early` runs in the parent while
 * the child waits. */
static void in_child_that_outlives(int (*run)(void), void (*early)(void))
{
	int ready[2], status, pid;
	char byte = 0;

	TEST_ASSERT_EQUAL_INT(0, pipe(ready));
	pid = fork();
	if (!pid) {
		wire_a->forked(wire_a);
		wire_b->forked(wire_b);
		_exit(read(ready[0], &byte, 1) == 1 ? run() : 99);
	}
	if (early)
		early();
	close_wires();
	TEST_ASSERT_EQUAL_INT(1, write(ready[1], &byte, 1));
	TEST_ASSERT_EQUAL_INT(pid, waitpid(pid, &status, 0));
	TEST_ASSERT_EQUAL_INT(0, status);
	close(ready[0]);
	close(ready[1]);
}

static void parent_hears(void)
{
	TEST_ASSERT_TRUE(hears_group(&joined));
}

/* The child of a fork() joins what the parent had joined, and what it joins itself before it has a socket,
 * once the parent has left the addresses. */
void test_a_child_joins_the_groups_again(void)
{
	join_group();
	in_child_that_outlives(child_joins_again, parent_hears);
}

void test_a_child_that_cannot_join_has_no_address(void)
{
	join_group();
	in_child_that_outlives(child_waits_for_a_group, NULL);
}

/* In a namespace. One wire has a device of each IP version, and receives for both with the same buffers. */
static void receive_both_versions(void)
{
	static struct sim_device device_c, device_d;
	union ibv_gid gid_c, gid_d;

	add_address("fd00::1");
	add_address("fd00::2");
	open_wires("", "");
	wire_a->close(wire_a);
	wire_a = open_wire("fd00::1", &device_a, &gid_a);
	device_c = device_b;
	device_c.ports[0].device = &device_c;
	TEST_ASSERT_EQUAL_INT(0, udp_claim(wire_b, "fd00::2", &gid_c));
	udp_join(wire_b, &device_c);
	device_d = device_a;
	device_d.ports[0].device = &device_d;
	TEST_ASSERT_EQUAL_INT(0, udp_claim(wire_a, "", &gid_d));
	udp_join(wire_a, &device_d);
	for (unsigned int i = 0; i < 4; i++) {
		const struct sim_route by =
			udp_route(i % 2 ? &gid_a : &gid_d, i % 2 ? &gid_c : &gid_b);
		struct sim_departure departure = {.source = i % 2 ? &device_a.ports[0]
								  : &device_d.ports[0],
						  .route = &by,
						  .frame = frame_sent};

		arrivals = 0;
		departure.frame_bytes = udp_encode(&by, i, 10, frame_sent);
		TEST_ASSERT_TRUE(wire_a->way.send(wire_a->way.arg, &departure));
		wire_a->flush(wire_a);
		receive_all(wire_b);
		TEST_ASSERT_EQUAL_UINT(1, arrivals);
		TEST_ASSERT_TRUE(arrived[0].checked);
		TEST_ASSERT_EQUAL_PTR(i % 2 ? &device_c.ports[0] : &device_b.ports[0],
				      arrived[0].port);
	}
}

void test_devices_of_both_ip_versions(void)
{
	in_namespace(65536, receive_both_versions);
}

/* More groups have datagrams than one look at them returns. */
void test_many_groups(void)
{
	union ibv_gid group = udp_gid("239.1.2.0");

	for (uint8_t i = 0; i < 100; i++) {
		group.raw[15] = i;
		TEST_ASSERT_EQUAL_INT(0, wire_b->way.join(wire_b->way.arg, &device_b, &group));
	}
	for (uint8_t i = 0; i < 100; i++) {
		struct sim_route by;

		group.raw[15] = i;
		by = udp_route(&gid_a, &group);
		send_packet(&by, i, 10);
	}
	wire_a->flush(wire_a);
	receive_all(wire_b);
	TEST_ASSERT_EQUAL_UINT(100, arrivals);
	TEST_ASSERT_EQUAL_UINT(100, udp_counters(wire_b, &device_b)->received);
}

/* --- frames that a filter has changed --- */

/* Changes one byte of the frame. Returns true if the wire sends the frame. */
static bool sends_changed(size_t at)
{
	const struct sim_route by = udp_route(&gid_a, &gid_b);
	const size_t bytes = udp_encode(&by, 1, 64, frame_sent);

	frame_sent[at] ^= 0x04;
	return send_frame(&by, frame_sent, bytes);
}

/* What the kernel writes cannot be sent wrong: such a packet is lost. */
void test_a_changed_network_header_is_lost(void)
{
	static const size_t at[] = {12, 14, 16, 18, 20, 22, 23, 24, 26, 29, 30, 33, 34, 36, 38};

	for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++)
		TEST_ASSERT_FALSE(sends_changed(at[i]));
	wire_a->flush(wire_a);
	TEST_ASSERT_FALSE(wire_b->receive(wire_b));
}

void test_a_changed_transport_header_is_sent(void)
{
	TEST_ASSERT_TRUE(sends_changed(42 + 5));
	TEST_ASSERT_TRUE(sends_changed(42 + 12 + 10));
	wire_a->flush(wire_a);
	TEST_ASSERT_TRUE(wire_b->receive(wire_b));
	TEST_ASSERT_EQUAL_UINT(2, arrivals);
	TEST_ASSERT_FALSE(arrived[0].checked);
	TEST_ASSERT_FALSE(arrived[1].checked);
}

/* --- datagrams of peers --- */

void test_any_identification_is_right(void)
{
	static const uint16_t identifications[] = {0, 1, 0x1234, 0x8000, 0xffff};

	open_peer();
	for (unsigned int i = 0; i < 5; i++) {
		peer_sends(identifications[i], NULL, 0);
		TEST_ASSERT_EQUAL_UINT(i + 1, arrivals);
		TEST_ASSERT_TRUE(arrived[i].checked);
		TEST_ASSERT_EQUAL_MEMORY(frame_sent + 12, arrived[i].frame + 12,
					 arrived[i].bytes - 12);
	}
	TEST_ASSERT_EQUAL_UINT(4, udp_counters(wire_b, &device_b)->identified);
	close(peer);
}

/* SoftRoCE sends no UDP checksum over IPv6. */
void test_ipv6_without_a_udp_checksum_arrives(void)
{
	static const int on = 1;
	struct sim_route by;
	size_t bytes;

	close_wires();
	wire_a = wire_b = open_wire("::1", &device_b, &gid_b);
	peer = udp_plain(&gid_b, 0xc001);
	TEST_ASSERT_EQUAL_INT(0, setsockopt(peer, IPPROTO_UDP, UDP_NO_CHECK6_TX, &on, sizeof(on)));
	by = udp_route(&gid_b, &gid_b);
	by.udp_source_port = 0xc001;
	bytes = udp_encode(&by, 1, 64, frame_sent);
	udp_plain_send(peer, &gid_b, frame_sent + 62, bytes - 62);
	receive_all(wire_b);
	TEST_ASSERT_EQUAL_UINT(1, arrivals);
	TEST_ASSERT_TRUE(arrived[0].checked);
	close(peer);
	wire_b = NULL;
}

void test_congestion_is_counted_only(void)
{
	static const uint8_t cnp = 0x81;
	const int marked = 0x03;

	open_peer();
	peer_sends(0, &cnp, 0);
	TEST_ASSERT_EQUAL_UINT(0, arrivals);
	TEST_ASSERT_EQUAL_UINT(1, udp_counters(wire_b, &device_b)->congestion_notifications);
	setsockopt(peer, IPPROTO_IP, IP_TOS, &marked, sizeof(marked));
	peer_sends(0, NULL, 0);
	TEST_ASSERT_EQUAL_UINT(1, arrivals);
	TEST_ASSERT_EQUAL_UINT(3, arrived[0].frame[15]);
	TEST_ASSERT_EQUAL_UINT(1, udp_counters(wire_b, &device_b)->congestion_marks);
	close(peer);
}

void test_a_long_datagram_is_dropped(void)
{
	static const uint8_t bytes[UDP_DATAGRAM_BYTES_MAX + 1];

	open_peer();
	udp_plain_send(peer, &gid_b, bytes, sizeof(bytes));
	receive_all(wire_b);
	TEST_ASSERT_EQUAL_UINT(0, arrivals);
	TEST_ASSERT_EQUAL_UINT(1, udp_counters(wire_b, &device_b)->truncated);
	udp_plain_send(peer, &gid_b, bytes, sizeof(bytes) - 1);
	receive_all(wire_b);
	TEST_ASSERT_EQUAL_UINT(1, arrivals);
	TEST_ASSERT_FALSE(arrived[0].checked);
	close(peer);
}

/* The decoder must be able to read whatever comes, and the buffer holds every header. */
void test_hostile_datagrams(void)
{
	uint8_t datagram[UDP_DATAGRAM_BYTES_MAX];
	struct sim_route by = udp_route(&gid_b, &gid_b);

	open_peer();
	for (unsigned int i = 0; i < 20000; i++) {
		size_t bytes = random_u64() % (i % 8 ? 128 : sizeof(datagram));
		struct sim_packet read;
		struct sim_span span;

		random_bytes(datagram, bytes);
		if (i % 2 && bytes > 24) { /* a packet that was changed, or cut */
			memcpy(by.source_gid, peer_gid.raw, 16);
			udp_encode(&by, i, 64, frame_sent);
			memcpy(datagram, frame_sent + 42, bytes < 76 ? bytes : 76);
			datagram[random_u64() % 24] ^= (uint8_t)(1 << random_u64() % 8);
		}
		udp_plain_send(peer, &gid_b, datagram, bytes);
		arrivals = 0;
		receive_all(wire_b);
		TEST_ASSERT_EQUAL_UINT(1, arrivals);
		TEST_ASSERT_EQUAL_UINT(bytes + 42, arrived[0].bytes);
		sim_packet_decode(arrived[0].frame, arrived[0].bytes, &read, &span, &by);
		by = udp_route(&gid_b, &gid_b);
	}
	close(peer);
}

/* --- what the kernel does not send --- */

/* A datagram that is too long for the interface is lost and counted; those around it arrive. */
static void send_long_frame(const char *a, const char *b)
{
	const struct udp_counters expected = {.sent = 2, .too_long = 1};
	struct sim_route by;

	open_wires(a, b);
	by = udp_route(&gid_a, &gid_b);
	arrivals = 0;
	send_packet(&by, 1, 64);
	send_packet(&by, 2, 2000);
	send_packet(&by, 3, 64);
	wire_a->flush(wire_a);
	receive_all(wire_b);
	TEST_ASSERT_EQUAL_INT(IBV_MTU_1024, udp_mtu(wire_a));
	TEST_ASSERT_EQUAL_UINT(2, arrivals);
	TEST_ASSERT_EQUAL_UINT(1, device_a.counters.lost_packets);
	TEST_ASSERT_EQUAL_MEMORY(&expected, udp_counters(wire_a, &device_a), sizeof(expected));
}

static void send_long_frames(void)
{
	send_long_frame("", "127.0.0.9");
	add_address("fd00::1");
	add_address("fd00::2");
	send_long_frame("fd00::1", "fd00::2");
}

void test_the_mtu_is_the_interfaces(void)
{
	in_namespace(1500, send_long_frames);
}

/* --- full buffers --- */

/* The kernel drops what does not fit the receiver's buffer; what fits arrives whole and in order. */
void test_a_full_buffer_loses_packets(void)
{
	const struct sim_route by = udp_route(&gid_a, &gid_b);
	uint32_t last = 0;
	unsigned int came = 0;

	for (uint32_t psn = 1; psn <= 40000; psn++)
		send_packet(&by, psn, 1024);
	wire_a->flush(wire_a);
	for (unsigned int calls = 0; calls < 8; calls++) {
		arrivals = 0;
		if (wire_b->receive(wire_b))
			calls = 0;
		for (unsigned int i = 0; i < arrivals; i++) {
			const uint32_t psn = sim_load_be24(arrived[i].frame + 42 + 9);

			TEST_ASSERT_TRUE(arrived[i].checked);
			TEST_ASSERT_GREATER_THAN(last, psn);
			last = psn;
		}
		came += arrivals;
	}
	TEST_ASSERT_GREATER_THAN(63, came);
	TEST_ASSERT_LESS_THAN(40000, came);
}

/* A QP (0: one that sends datagrams) gets room for what fits the buffer, and room again after the peer has emptied its
 * socket and sent a datagram. */
static void expect_pacing(uint32_t qpn)
{
	const struct sim_route back = udp_route(&gid_b, &gid_a);
	struct sim_path path = path_to(&gid_b);
	const struct sim_departure answer = {.source = &device_b.ports[0],
					     .route = &back,
					     .frame = frame_sent,
					     .frame_bytes = udp_encode(&back, 0, 0, frame_sent)};
	unsigned int sent = 0;

	path.qpn = qpn;
	readies = 0;
	while (wire_a->way.room(wire_a->way.arg, &path, 0x12) && sent < 100000) {
		send_packet(&path.route, sent++, 1024);
		path.route = udp_route(&gid_a, &gid_b);
	}
	wire_a->flush(wire_a);
	TEST_ASSERT_LESS_THAN(100000, sent);
	TEST_ASSERT_TRUE(wire_a->way.room_for_ack(wire_a->way.arg, &path, 0x12));
	/* What was sent fits the buffer. */
	for (unsigned int calls = 0; calls < 8; calls++) {
		arrivals = 0;
		if (wire_b->receive(wire_b))
			calls = 0;
		sent -= arrivals;
	}
	TEST_ASSERT_EQUAL_UINT(0, sent);
	udp_encode(&back, 0, 0, frame_sent);
	TEST_ASSERT_TRUE(wire_b->way.send(wire_b->way.arg, &answer));
	wire_b->flush(wire_b);
	TEST_ASSERT_TRUE(wire_a->receive(wire_a));
	TEST_ASSERT_EQUAL_UINT(1, readies);
	TEST_ASSERT_NOT_EQUAL(0, wire_a->way.room(wire_a->way.arg, &path, 0x12));
}

void test_pacing_waits_for_the_peer(void)
{
	expect_pacing(0x11);
}

/* The last message of a connection leaves however full the peer's buffer is: the process may end behind it. */
void test_messages_to_qp_1_never_wait(void)
{
	struct sim_path path = path_to(&gid_b);

	while (wire_a->way.room(wire_a->way.arg, &path, 0x12)) {
		send_packet(&path.route, 1, 1024);
		path.route = udp_route(&gid_a, &gid_b);
	}
	TEST_ASSERT_NOT_EQUAL(0, wire_a->way.room(wire_a->way.arg, &path, 1));
}

/* On this machine no datagram is lost, as on a link with flow control. */
void test_datagrams_wait_for_the_peer(void)
{
	expect_pacing(0);
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Datagrams to a group use no room of a peer, not even of one whose place in the table the group's address
 * has; and those from a group say nothing of what the peer has taken. */
void test_groups_leave_the_room_of_peers(void)
{
	const struct sim_route by = udp_route(&gid_a, &gid_b);
	union ibv_gid group = gid_b;
	struct sim_path path = path_to(&gid_b);
	struct sim_route to_group, back;
	unsigned int room;

	group.raw[12] = 239;
	to_group = udp_route(&gid_a, &group);
	back = udp_route(&gid_b, &group);
	path.qpn = 0x11;
	for (uint32_t psn = 0; psn < 8; psn++)
		send_packet(&by, psn, 1024);
	room = wire_a->way.room(wire_a->way.arg, &path, 0x12);
	send_packet(&to_group, 9, 1024);
	TEST_ASSERT_EQUAL_UINT(room, wire_a->way.room(wire_a->way.arg, &path, 0x12));
	TEST_ASSERT_EQUAL_INT(0, wire_a->way.join(wire_a->way.arg, &device_a, &group));
	send_from_b(&back);
	TEST_ASSERT_TRUE(receive_all(wire_a));
	TEST_ASSERT_EQUAL_UINT(room, wire_a->way.room(wire_a->way.arg, &path, 0x12));
}

static unsigned int whole_room;

static int child_has_whole_room(void)
{
	return wire_a->resume(wire_a) || room_to_b() != whole_room;
}

/* The child of a fork() has sent nothing, whatever its parent has, and waits for no peer of its parent. */
void test_a_child_has_the_whole_room(void)
{
	const struct sim_route by = udp_route(&gid_a, &gid_b);

	whole_room = room_to_b();
	while (room_to_b())
		send_packet(&by, 1, 1024);
	in_child_that_outlives(child_has_whole_room, NULL);
}

/* A peer that is silent is tried again after a pause, for which the bell rings. */
void test_pacing_ends_after_a_pause(void)
{
	struct sim_path path = path_to(&gid_b);
	uint32_t seen;

	path.qpn = 0x11;
	while (wire_a->way.room(wire_a->way.arg, &path, 0x12))
		send_packet(&path.route, 1, 1024);
	seen = bell_listen(&bell);
	wire_a->listen(wire_a, true);
	bell_wait(&bell, seen, now_ns() + 10000000000u);
	TEST_ASSERT_NOT_EQUAL(seen, bell.rings);
	while (!readies)
		wire_a->receive(wire_a);
	TEST_ASSERT_NOT_EQUAL(0, wire_a->way.room(wire_a->way.arg, &path, 0x12));
	wire_a->listen(wire_a, false);
}

/* The listener thread already sleeps when the room ends. It rings the bell when the pause ends, and then no more. */
void test_pacing_wakes_the_thread_that_sleeps(void)
{
	const struct sim_route by = udp_route(&gid_a, &gid_b);
	uint32_t rings;

	wire_a->listen(wire_a, true);
	for (unsigned int round = 1; round <= 2; round++) {
		const uint32_t seen = bell_listen(&bell);

		while (room_to_b())
			send_packet(&by, 1, 1024);
		bell_wait(&bell, seen, now_ns() + 10000000000u);
		TEST_ASSERT_NOT_EQUAL(seen, bell.rings);
		bell_ignore(&bell);
		while (readies < round)
			wire_a->receive(wire_a);
	}
	wire_a->flush(wire_a);
	rings = bell_listen(&bell);
	for (unsigned int calls = 0; calls < 10000; calls++)
		TEST_ASSERT_FALSE(wire_a->receive(wire_a));
	TEST_ASSERT_EQUAL_UINT(rings, bell.rings);
	wire_a->listen(wire_a, false);
}

/* --- ACKs --- */

/* Sends a positive ACK of a's to b. */
static void send_ack(uint32_t psn)
{
	const struct sim_route by = udp_route(&gid_a, &gid_b);
	const struct sim_packet ack = {.opcode = IBV_OPCODE_RC_ACKNOWLEDGE,
				       .syndrome = SIM_AETH_ACK | SIM_ACK_CREDIT_NONE,
				       .psn = psn};
	const size_t bytes = sim_packet_encode(&ack, &by, udp_copy, frame_sent, NULL);

	TEST_ASSERT_TRUE(send_frame(&by, frame_sent, bytes));
}

/* Sends the queued packets from a. They arrive at b in the order of these PSNs. */
static void expect_order(const uint32_t *psns, unsigned int count)
{
	arrivals = 0;
	wire_a->flush(wire_a);
	receive_all(wire_b);
	TEST_ASSERT_EQUAL_UINT(count, arrivals);
	for (unsigned int i = 0; i < count; i++)
		TEST_ASSERT_EQUAL_UINT(psns[i], psn_of(i));
}

/* An ACK waits for the program's next request, which goes first, each time. */
void test_acks_go_behind_a_request(void)
{
	static const uint32_t requests_first[] = {3, 4, 1, 2};
	const struct sim_route by = udp_route(&gid_a, &gid_b);
	const struct udp_counters *counted = udp_counters(wire_a, &device_a);

	for (unsigned int round = 0; round < 3; round++) {
		send_ack(1);
		send_ack(2);
		wire_a->flush(wire_a);
		TEST_ASSERT_EQUAL_UINT(4 * round, counted->sent);
		send_packet(&by, 3, 4);
		send_packet(&by, 4, 4);
		expect_order(requests_first, 4);
	}
}

/* A few polls later the ACK goes anyway. */
void test_acks_wait_for_a_few_polls_only(void)
{
	send_ack(1);
	for (unsigned int polls = 0; polls < 4; polls++) {
		wire_a->flush(wire_a);
		TEST_ASSERT_EQUAL_UINT(0, udp_counters(wire_a, &device_a)->sent);
		wire_a->receive(wire_a);
	}
	wire_a->flush(wire_a);
	TEST_ASSERT_EQUAL_UINT(1, udp_counters(wire_a, &device_a)->sent);
}

/* While nobody polls, nothing would come after the ACK. */
void test_acks_do_not_wait_while_nobody_polls(void)
{
	wire_a->listen(wire_a, true);
	send_ack(1);
	wire_a->flush(wire_a);
	TEST_ASSERT_EQUAL_UINT(1, udp_counters(wire_a, &device_a)->sent);
}

/* ACKs wait for the next request for a few polls. Later ACKs do not make the first one wait longer. */
void test_acks_of_a_stream_wait_for_a_few_polls_only(void)
{
	for (uint32_t polls = 0; polls < 8; polls++) {
		send_ack(polls);
		wire_a->flush(wire_a);
		wire_a->receive(wire_a);
	}
	TEST_ASSERT_GREATER_THAN(0, udp_counters(wire_a, &device_a)->sent);
}

static void send_nak(uint32_t psn)
{
	const struct sim_route by = udp_route(&gid_a, &gid_b);
	const struct sim_packet nak = {
		.opcode = IBV_OPCODE_RC_ACKNOWLEDGE, .syndrome = SIM_NAK_PSN_SEQUENCE, .psn = psn};
	const size_t bytes = sim_packet_encode(&nak, &by, udp_copy, frame_sent, NULL);

	TEST_ASSERT_TRUE(send_frame(&by, frame_sent, bytes));
}

/* A NAK stops the peer's requester: it does not wait. */
void test_naks_do_not_wait(void)
{
	send_nak(1);
	wire_a->flush(wire_a);
	TEST_ASSERT_EQUAL_UINT(1, udp_counters(wire_a, &device_a)->sent);
}

/* Each call of sendmmsg() has the requests first, also if all answers are NAKs. */
void test_requests_go_before_all_answers(void)
{
	static const uint32_t requests_first[] = {2, 4, 1, 3};
	const struct sim_route by = udp_route(&gid_a, &gid_b);

	send_nak(1);
	send_packet(&by, 2, 4);
	send_nak(3);
	send_packet(&by, 4, 4);
	expect_order(requests_first, 4);
}

static int child_sorts_its_own(void)
{
	static const uint32_t requests_first[] = {3, 1, 2};
	const struct sim_route by = udp_route(&gid_a, &gid_b);

	if (wire_a->resume(wire_a) || wire_b->resume(wire_b))
		return 1;
	send_ack(1);
	send_ack(2);
	send_packet(&by, 3, 4);
	expect_order(requests_first, 3);
	return 0;
}

/* The child's queue has no packets of its parent. */
void test_a_child_has_a_queue_of_its_own(void)
{
	const struct sim_route by = udp_route(&gid_a, &gid_b);

	send_packet(&by, 9, 4);
	send_ack(8);
	in_child_that_outlives(child_sorts_its_own, NULL);
}

/* --- the bell --- */

static void send_one(void)
{
	const struct sim_route by = udp_route(&gid_a, &gid_b);

	send_packet(&by, 1, 4);
	wire_a->flush(wire_a);
}

static void wait_for_bell(uint32_t seen)
{
	bell_wait(&bell, seen, now_ns() + 10000000000u);
	TEST_ASSERT_NOT_EQUAL_MESSAGE(seen, bell.rings, "the bell has not rung for 10 s");
}

void test_bell_rings_for_each_datagram(void)
{
	wire_b->listen(wire_b, true);
	for (unsigned int i = 1; i <= 20; i++) {
		const uint32_t seen = bell_listen(&bell);

		TEST_ASSERT_FALSE(wire_b->receive(wire_b));
		send_one();
		wait_for_bell(seen);
		TEST_ASSERT_TRUE(
			wire_b->receive(wire_b)); /* nothing rests while somebody listens */
		TEST_ASSERT_EQUAL_UINT(i, arrivals);
		bell_ignore(&bell);
	}
	wire_b->listen(wire_b, false);
}

/* A datagram that is there before somebody listens rings the bell, too. */
void test_bell_rings_for_what_has_come(void)
{
	uint32_t seen;

	send_one();
	seen = bell_listen(&bell);
	wire_b->listen(wire_b, true);
	wait_for_bell(seen);
}

/* Who polls does not pay for a bell that rings. */
void test_bell_is_silent_while_somebody_polls(void)
{
	wire_b->listen(wire_b, true);
	wire_b->listen(wire_b, false);
	bell_listen(&bell);
	for (unsigned int i = 0; i < 1000; i++) {
		send_one();
		while (!wire_b->receive(wire_b))
			;
		arrivals = 0;
	}
	TEST_ASSERT_EQUAL_UINT(0, bell.rings);
}

/* A device gets its address while somebody listens. */
void test_bell_rings_for_a_new_device(void)
{
	static struct sim_device devices[10];

	wire_b->listen(wire_b, true);
	for (unsigned int i = 0; i < 10; i++) {
		union ibv_gid gid;
		struct sim_route by;
		uint32_t seen;

		devices[i] = device_b;
		devices[i].ports[0].device = &devices[i];
		TEST_ASSERT_FALSE(wire_b->receive(wire_b));
		TEST_ASSERT_EQUAL_INT(0, udp_claim(wire_b, "", &gid));
		udp_join(wire_b, &devices[i]);
		by = udp_route(&gid_a, &gid);
		seen = bell_listen(&bell);
		send_packet(&by, 1, 4);
		wire_a->flush(wire_a);
		wait_for_bell(seen);
		TEST_ASSERT_TRUE(wire_b->receive(wire_b));
		TEST_ASSERT_EQUAL_PTR(&devices[i].ports[0], arrived[i].port);
		bell_ignore(&bell);
	}
	wire_b->listen(wire_b, false);
}

void test_bell_rings_for_a_group(void)
{
	const union ibv_gid group = udp_gid("239.1.2.3");
	const struct sim_route by = udp_route(&gid_a, &group);

	TEST_ASSERT_EQUAL_INT(0, wire_b->way.join(wire_b->way.arg, &device_b, &group));
	for (unsigned int i = 0; i < 50; i++) {
		const uint32_t seen = bell_listen(&bell);

		wire_b->listen(wire_b, true);
		send_packet(&by, i, 10);
		wire_a->flush(wire_a);
		wait_for_bell(seen);
		TEST_ASSERT_TRUE(wire_b->receive(wire_b));
		bell_ignore(&bell);
	}
	TEST_ASSERT_EQUAL_UINT(50, arrivals);
	wire_b->listen(wire_b, false);
}

void test_another_bell_rings(void)
{
	struct bell other = {0};
	const uint32_t seen = bell_listen(&other);

	udp_set_bell(wire_b, &other);
	wire_b->listen(wire_b, true);
	send_one();
	bell_wait(&other, seen, now_ns() + 10000000000u);
	TEST_ASSERT_NOT_EQUAL(seen, other.rings);
	wire_b->close(wire_b);
	wire_b = NULL;
	TEST_ASSERT_EQUAL_UINT(0, bell.rings);
}

/* --- descriptors --- */

static unsigned int count_descriptors(void)
{
	unsigned int count = 0;

	for (int fd = 0; fd < 1024; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

static void open_all(void)
{
	open_wires("", "");
	join_group();
	TEST_ASSERT_TRUE(hears_group(&joined));
}

void test_a_wire_that_ends_closes_its_descriptors(void)
{
	unsigned int before;

	close_wires();
	before = count_descriptors();
	open_all();
	TEST_ASSERT_GREATER_THAN(before, count_descriptors());
	close_wires();
	TEST_ASSERT_EQUAL_UINT(before, count_descriptors());
}

/* The child of a fork() that opens no device has no copies of its parent's descriptors. */
void test_a_child_closes_the_descriptors_of_its_parent(void)
{
	unsigned int before;
	int status, pid;

	close_wires();
	before = count_descriptors();
	open_all();
	pid = fork();
	if (!pid) {
		wire_a->forked(wire_a);
		wire_b->forked(wire_b);
		_exit(count_descriptors() != before);
	}
	TEST_ASSERT_EQUAL_INT(pid, waitpid(pid, &status, 0));
	TEST_ASSERT_EQUAL_INT(0, status);
	TEST_ASSERT_TRUE(hears_group(&joined));
}
