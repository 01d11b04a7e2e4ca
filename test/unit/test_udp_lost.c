/* SPDX-License-Identifier: MIT */
/*
 * Datagrams of the wire `udp` that the kernel does not send, and those that the wire drops: each is counted by its
 * cause, and those around it arrive. The calls of the system that send and receive are the test's own (--wrap), and so
 * is the clock, which stands still.
 */
#include "test/unit/udp_ends.h"

#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <time.h>

#define NEVER UINT_MAX

/* What sendmmsg() does. */
static struct {
	unsigned int passes; /* how many datagrams the kernel takes before it refuses one; NEVER */
	int error;	     /* the errno value of the refusal */
	bool refuses_labels; /* the kernel wants a lease for each flow label */
	unsigned int refusals;
} kernel;
static void (*forge)(union udp_sockaddr *source); /* changes where a datagram comes from */

int __real_sendmmsg(int fd, struct mmsghdr *messages, unsigned int count, int flags);
int __wrap_sendmmsg(int fd, struct mmsghdr *messages, unsigned int count, int flags);
int __real_recvmmsg(int fd, struct mmsghdr *messages, unsigned int count, int flags,
		    struct timespec *timeout);
int __wrap_recvmmsg(int fd, struct mmsghdr *messages, unsigned int count, int flags,
		    struct timespec *timeout);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);

static bool has_label(const struct mmsghdr *message)
{
	const union udp_sockaddr *to = message->msg_hdr.msg_name;

	return to->any.sa_family == AF_INET6 && to->v6.sin6_flowinfo;
}

static int refuse(int error)
{
	kernel.refusals++;
	errno = error;
	return -1;
}

/* As the kernel does, a call ends before the first datagram that is refused. */
int __wrap_sendmmsg(int fd, struct mmsghdr *messages, unsigned int count, int flags)
{
	unsigned int taken = 0;

	if (kernel.passes == 0) {
		kernel.passes = NEVER;
		return refuse(kernel.error);
	}
	while (taken < count && taken < kernel.passes &&
	       !(kernel.refuses_labels && has_label(&messages[taken])))
		taken++;
	if (!taken)
		return refuse(EINVAL);
	if (kernel.passes != NEVER)
		kernel.passes -= taken;
	return __real_sendmmsg(fd, messages, taken, flags);
}

int __wrap_recvmmsg(int fd, struct mmsghdr *messages, unsigned int count, int flags,
		    struct timespec *timeout)
{
	const int received = __real_recvmmsg(fd, messages, count, flags, timeout);

	for (int i = 0; i < received && forge; i++)
		forge(messages[i].msg_hdr.msg_name);
	return received;
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
	(void)clock;
	*now = (struct timespec){.tv_sec = 1000};
	return 0;
}

void setUp(void)
{
	arrivals = readies = 0;
	memset(&bell, 0, sizeof(bell));
	memset(&kernel, 0, sizeof(kernel));
	kernel.passes = NEVER;
	forge = NULL;
	open_wires("", "");
}

void tearDown(void)
{
	close_wires();
}

/* --- datagrams that the kernel refuses --- */

/* Of three datagrams, the kernel refuses the second one. */
static void expect_lost(int error, size_t counter)
{
	const struct sim_route by = udp_route(&gid_a, &gid_b);
	struct udp_counters expected = {.sent = 2};

	*(uint64_t *)((char *)&expected + counter) = 1;
	kernel.passes = 1;
	kernel.error = error;
	for (uint32_t psn = 1; psn <= 3; psn++)
		send_packet(&by, psn, 10);
	arrivals = 0;
	wire_a->flush(wire_a);
	receive_all(wire_b);
	TEST_ASSERT_EQUAL_UINT(2, arrivals);
	TEST_ASSERT_EQUAL_UINT(1, psn_of(0));
	TEST_ASSERT_EQUAL_UINT(3, psn_of(1));
	TEST_ASSERT_EQUAL_MEMORY(&expected, udp_counters(wire_a, &device_a), sizeof(expected));
	TEST_ASSERT_EQUAL_UINT(1, device_a.counters.lost_packets);
}

void test_each_cause_of_a_loss_has_its_counter(void)
{
	static const struct {
		int error;
		size_t counter;
	} rows[] = {
		{EMSGSIZE, offsetof(struct udp_counters, too_long)},
		{ENETUNREACH, offsetof(struct udp_counters, unreachable)},
		{EHOSTUNREACH, offsetof(struct udp_counters, unreachable)},
		{ENETDOWN, offsetof(struct udp_counters, unreachable)},
		{EADDRNOTAVAIL, offsetof(struct udp_counters, unreachable)},
		{EAGAIN, offsetof(struct udp_counters, unsent)}, /* the socket's buffer is full */
		{ENOBUFS, offsetof(struct udp_counters, unsent)},
		{EPERM, offsetof(struct udp_counters, unsent)},
		{EINVAL, offsetof(struct udp_counters, unsent)},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		open_wires("", "");
		expect_lost(rows[i].error, rows[i].counter);
	}
}

/* The report shows each counter by its name. */
void test_each_counter_has_its_name(void)
{
	static const struct udp_counters of = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
	static const char *const names[] = {
		"datagrams sent",
		"datagrams received",
		"datagrams not sent: longer than the MTU of the way",
		"datagrams not sent: no way to the address",
		"datagrams not sent: the kernel had no room",
		"datagrams dropped: longer than a packet",
		"datagrams dropped: from an address or port that no peer can have",
		"datagrams dropped: of this process, to a group",
		"congestion notifications received",
		"packets received with a mark of congestion",
		"packets received with an IPv4 identification other than 0",
	};
	const unsigned int count = sizeof(names) / sizeof(names[0]);
	uint64_t value;

	for (unsigned int i = 0; i < count; i++) {
		TEST_ASSERT_EQUAL_STRING(names[i], udp_counter(&of, i, &value));
		TEST_ASSERT_EQUAL_UINT(i + 1, value);
	}
	TEST_ASSERT_NULL(udp_counter(&of, count, &value));
}

/* --- flow labels --- */

static void send_labelled(uint32_t psn)
{
	struct sim_route by = udp_route(&gid_a, &gid_b);

	by.flow_label = 0x12345;
	send_packet(&by, psn, 10);
}

/* Flushes the queue of a. Expects `count` packets at b, whose PSNs count up from `first`. */
static void expect_arrivals(unsigned int count, uint32_t first)
{
	arrivals = 0;
	wire_a->flush(wire_a);
	receive_all(wire_b);
	TEST_ASSERT_EQUAL_UINT(count, arrivals);
	for (unsigned int i = 0; i < count; i++)
		TEST_ASSERT_EQUAL_UINT(first + i, psn_of(i));
}

static void send_without_labels(void)
{
	const struct udp_counters *counters;

	add_address("fd00::1");
	add_address("fd00::2");
	open_wires("fd00::1", "fd00::2");
	counters = udp_counters(wire_a, &device_a);
	/* The kernel refuses a datagram for its length: the wire still sends flow labels. */
	kernel.passes = 0;
	kernel.error = EMSGSIZE;
	send_labelled(1);
	expect_arrivals(0, 0);
	TEST_ASSERT_EQUAL_UINT(1, counters->too_long);
	kernel.refuses_labels = true;
	for (uint32_t psn = 1; psn <= 4; psn++)
		send_labelled(psn);
	expect_arrivals(4, 1);
	TEST_ASSERT_EQUAL_UINT(2, kernel.refusals);
	/* The wire tries no label again. */
	send_labelled(5);
	expect_arrivals(1, 5);
	TEST_ASSERT_EQUAL_UINT(2, kernel.refusals);
	TEST_ASSERT_EQUAL_UINT(0, counters->unsent);
	/* Another reason for the same error is a loss. */
	kernel.passes = 0;
	kernel.error = EINVAL;
	send_labelled(6);
	send_labelled(7);
	expect_arrivals(1, 7);
	TEST_ASSERT_EQUAL_UINT(1, counters->unsent);
	TEST_ASSERT_EQUAL_UINT(2, device_a.counters.lost_packets);
}

/* Where flow labels are exclusive, packets go without one, and none is lost. */
void test_packets_go_without_a_label_that_the_kernel_refuses(void)
{
	in_namespace(65536, send_without_labels);
}

/* The wire does not read the flow labels of received datagrams. A plain socket does. */
static void read_label(void)
{
	static const int on = 1;
	union ibv_gid gid = udp_gid("fd00::2");
	_Alignas(struct cmsghdr) uint8_t control[128];
	uint8_t datagram[256];
	struct iovec part = {datagram, sizeof(datagram)};
	struct msghdr message = {.msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = control,
				 .msg_controllen = sizeof(control)};
	uint32_t label;
	int fd;

	add_address("fd00::1");
	add_address("fd00::2");
	wire_a = open_wire("fd00::1", &device_a, &gid_a);
	gid_b = gid;
	fd = udp_plain(&gid, SIM_UDP_PORT);
	TEST_ASSERT_EQUAL_INT(0,
			      setsockopt(fd, IPPROTO_IPV6, 11 /* IPV6_FLOWINFO of <linux/in6.h> */,
					 &on, sizeof(on)));
	send_labelled(1);
	wire_a->flush(wire_a);
	TEST_ASSERT_GREATER_THAN(0, recvmsg(fd, &message, 0));
	TEST_ASSERT_NOT_NULL(CMSG_FIRSTHDR(&message));
	memcpy(&label, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(label));
	TEST_ASSERT_EQUAL_HEX(0x12345, ntohl(label));
	close(fd);
}

void test_the_flow_label_of_a_packet_is_sent(void)
{
	in_namespace(65536, read_label);
}

/* --- datagrams that no peer has sent --- */

static void without_port(union udp_sockaddr *source)
{
	source->v4.sin_port = 0;
}

static void from_a_group(union udp_sockaddr *source)
{
	source->v4.sin_addr.s_addr = htonl(0xef010203);
}

static void from_an_ipv6_group(union udp_sockaddr *source)
{
	const union ibv_gid group = udp_gid("ff0e::1");

	udp_sockaddr(group.raw, source);
}

void test_datagrams_from_where_no_peer_is(void)
{
	static void (*const forgeries[])(union udp_sockaddr * source) = {without_port, from_a_group,
									 from_an_ipv6_group};
	const struct udp_counters *counters = udp_counters(wire_b, &device_b);

	open_peer();
	for (unsigned int i = 0; i < 3; i++) {
		struct udp_counters expected = {.received = 2 * i + 1, .foreign = i + 1};

		forge = forgeries[i];
		arrivals = 0;
		peer_sends(0, NULL, 0);
		TEST_ASSERT_EQUAL_UINT(0, arrivals);
		TEST_ASSERT_EQUAL_MEMORY(&expected, counters, sizeof(expected));
		forge = NULL;
		peer_sends(0, NULL, 0);
		TEST_ASSERT_EQUAL_UINT(1, arrivals);
	}
	close(peer);
}

/* --- datagrams with a wrong ICRC --- */

/* Sends a datagram with this first byte, and a wrong ICRC, from the peer to b. */
static void peer_sends_wrong(uint8_t opcode)
{
	const struct sim_route by = udp_route(&peer_gid, &gid_b);
	const size_t bytes = udp_encode(&by, 1, 64, frame_sent);

	frame_sent[42] = opcode;
	frame_sent[bytes - 1] ^= 1;
	udp_plain_send(peer, &gid_b, frame_sent + 42, bytes - 42);
	receive_all(wire_b);
}

/* The wire does not count a congestion notification with a wrong ICRC. The decoder gets the frame and counts it. */
void test_a_damaged_notification_is_not_counted(void)
{
	const struct udp_counters *counters = udp_counters(wire_b, &device_b);

	open_peer();
	peer_sends_wrong(0x81);
	TEST_ASSERT_EQUAL_UINT(1, arrivals);
	TEST_ASSERT_FALSE(arrived[0].checked);
	TEST_ASSERT_EQUAL_UINT(0, counters->congestion_notifications);
	TEST_ASSERT_EQUAL_UINT(0, counters->identified);
	close(peer);
}

/* Of the four values of the ECN field, one is a mark of congestion: RFC 3168. */
void test_one_ecn_value_is_a_mark(void)
{
	const struct udp_counters *counters = udp_counters(wire_b, &device_b);

	open_peer();
	for (int ecn = 0; ecn < 4; ecn++) {
		TEST_ASSERT_EQUAL_INT(0, setsockopt(peer, IPPROTO_IP, IP_TOS, &ecn, sizeof(ecn)));
		TEST_ASSERT_EQUAL_UINT(0, counters->congestion_marks);
		peer_sends(0, NULL, 0);
		TEST_ASSERT_EQUAL_UINT(ecn, arrived[ecn].frame[15]);
	}
	TEST_ASSERT_EQUAL_UINT(1, counters->congestion_marks);
	close(peer);
}

static void b_takes_all(void)
{
	for (unsigned int calls = 0; calls < 8; calls++) {
		arrivals = 0;
		if (wire_b->receive(wire_b))
			calls = 0;
	}
}

/* Sends a datagram from b to a, whose ICRC is right or wrong. */
static void b_sends(bool right)
{
	const struct sim_route by = udp_route(&gid_b, &gid_a);
	const size_t bytes = udp_encode(&by, 1, 10, frame_sent);

	frame_sent[bytes - 1] ^= !right;
	send_frame_from_b(&by, bytes);
	receive_all(wire_a);
}

/* A packet with a wrong ICRC does not prove that the peer takes datagrams: a has no room for more. */
void test_a_damaged_packet_makes_no_room(void)
{
	const struct sim_route by = udp_route(&gid_a, &gid_b);

	while (room_to_b())
		send_packet(&by, 1, 1024);
	wire_a->flush(wire_a);
	b_takes_all();
	b_sends(false);
	TEST_ASSERT_EQUAL_UINT(0, readies);
	TEST_ASSERT_EQUAL_UINT(0, room_to_b());
	b_sends(true);
	TEST_ASSERT_EQUAL_UINT(1, readies);
	TEST_ASSERT_NOT_EQUAL(0, room_to_b());
}

/* A congestion notification proves that the peer takes datagrams. */
void test_a_notification_makes_room(void)
{
	const struct sim_route by = udp_route(&gid_a, &gid_b);
	struct sim_route back = udp_route(&gid_b, &gid_a);
	size_t bytes;

	while (room_to_b())
		send_packet(&by, 1, 1024);
	wire_a->flush(wire_a);
	b_takes_all();
	bytes = udp_encode(&back, 1, 10, frame_sent);
	frame_sent[42] = 0x81;
	sim_packet_seal(frame_sent, bytes, &back);
	send_frame_from_b(&back, bytes);
	receive_all(wire_a);
	TEST_ASSERT_EQUAL_UINT(1, udp_counters(wire_a, &device_a)->congestion_notifications);
	TEST_ASSERT_EQUAL_UINT(1, readies);
	TEST_ASSERT_NOT_EQUAL(0, room_to_b());
}

/* --- devices --- */

/* A datagram that comes between udp_claim() and udp_join() waits in the socket. */
void test_a_datagram_waits_for_its_device(void)
{
	struct sim_route by;

	wire_b->close(wire_b);
	TEST_ASSERT_EQUAL_INT(0, udp_open(&bell, &wire_b));
	TEST_ASSERT_EQUAL_INT(0, udp_claim(wire_b, "", &gid_b));
	by = udp_route(&gid_a, &gid_b);
	send_packet(&by, 1, 10);
	wire_a->flush(wire_a);
	TEST_ASSERT_FALSE(receive_all(wire_b));
	udp_join(wire_b, &device_b);
	TEST_ASSERT_TRUE(receive_all(wire_b));
	TEST_ASSERT_EQUAL_UINT(1, arrivals);
	TEST_ASSERT_TRUE(arrived[0].checked);
}
