/* SPDX-License-Identifier: MIT */
/* Pacing of the wire `udp`: how much may fly to a peer, and what makes room again. */
#include "backends/sim/wire/udp_private.h"
#include "sim/wire/bytes.h"
#include "sim/wire/opcode.h"
#include "sim/wire/packet.h"
#include "test/unit/udp_namespace.h"

#include <infiniband/opcode.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

/* A datagram of up to 256 bytes occupies so much, and the buffer of an unknown size has room for so many. */
#define COST_BYTES  768
#define LIMIT_BYTES (212992 / 3)
#define LIMIT	    ((LIMIT_BYTES + COST_BYTES - 1) / COST_BYTES)

#define QPN	  0x11
#define OTHER_QPN 0x12

static struct udp_pace pace;
static uint8_t peer[16] = {[10] = 0xff, 0xff, 127, 0, 0, 2};
static uint8_t other_peer[16] = {[10] = 0xff, 0xff, 127, 0, 0, 3};
static uint64_t now_ns;
static uint32_t next_psn;

int __wrap_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
	(void)clock;
	*now = (struct timespec){(time_t)(now_ns / 1000000000), (long)(now_ns % 1000000000)};
	return 0;
}

void setUp(void)
{
	now_ns = 1000000000;
	next_psn = 0xfffff0;
	udp_pace_init(&pace, -1);
}

void tearDown(void)
{
	udp_pace_end(&pace);
}

static bool has_room(const uint8_t gid[16])
{
	return udp_pace_room(&pace, gid) != 0;
}

struct bth {
	uint8_t bytes[32];
};

static struct bth bth_of(uint8_t opcode, uint32_t dest_qpn, uint32_t psn, bool asks)
{
	struct bth bth = {{opcode}};

	sim_store_be24(bth.bytes + 5, dest_qpn);
	bth.bytes[8] = asks ? 0x80 : 0;
	sim_store_be24(bth.bytes + 9, psn & 0xffffff);
	return bth;
}

/* Sends a SEND of a QP (0: of none), which asks for an ACK or not, and returns its PSN. */
static uint32_t send_one(uint32_t qpn, bool asks)
{
	const uint32_t psn = next_psn++ & 0xffffff;
	const struct bth bth = bth_of(IBV_OPCODE_RC_SEND_ONLY, 0x99, psn, asks);

	udp_pace_sent(&pace, peer, qpn, bth.bytes, 100);
	return psn;
}

static unsigned int fill(uint32_t qpn, bool asks)
{
	unsigned int count = 0;

	for (; has_room(peer); count++)
		send_one(qpn, asks);
	return count;
}

static bool hear(uint8_t opcode, uint32_t qpn, uint32_t psn)
{
	const struct bth bth = bth_of(opcode, qpn, psn, false);

	return udp_pace_heard(&pace, peer, bth.bytes);
}

static bool hear_ack(uint32_t qpn, uint32_t psn)
{
	return hear(IBV_OPCODE_RC_ACKNOWLEDGE, qpn, psn);
}

static bool hear_nak(uint32_t qpn, uint32_t psn)
{
	struct bth bth = bth_of(IBV_OPCODE_RC_ACKNOWLEDGE, qpn, psn, false);

	bth.bytes[12] = SIM_NAK_PSN_SEQUENCE;
	return udp_pace_heard(&pace, peer, bth.bytes);
}

/* --- answers --- */

void test_what_fits_a_part_of_the_buffer_may_fly(void)
{
	TEST_ASSERT_EQUAL_UINT(LIMIT, fill(QPN, true));
	TEST_ASSERT_TRUE(has_room(other_peer));
}

void test_an_ack_makes_room_for_what_was_sent_up_to_its_request(void)
{
	const uint32_t first = send_one(QPN, true);
	unsigned int room;

	fill(QPN, false);
	TEST_ASSERT_FALSE(hear_ack(QPN, first - 1));
	TEST_ASSERT_FALSE(has_room(peer));
	TEST_ASSERT_TRUE(hear_ack(QPN, first));
	room = fill(QPN, false);
	TEST_ASSERT_EQUAL_UINT(1, room);
}

void test_probes_cover_what_flies(void)
{
	fill(QPN, true);
	TEST_ASSERT_TRUE(hear_ack(QPN, next_psn - 1));
	TEST_ASSERT_GREATER_OR_EQUAL(LIMIT - LIMIT / UDP_PROBES - 1, fill(QPN, true));
	TEST_ASSERT_TRUE(hear_ack(QPN, next_psn - 1));
	TEST_ASSERT_GREATER_OR_EQUAL(LIMIT - 2 * (LIMIT / UDP_PROBES + 1), fill(QPN, true));
}

void test_each_probe_is_answered_for_itself(void)
{
	uint32_t psns[4];

	for (unsigned int i = 0; i < 4; i++) {
		psns[i] = send_one(QPN, true);
		for (unsigned int k = 0; k < LIMIT / 4 - 1; k++)
			send_one(QPN, false);
	}
	fill(QPN, false);
	for (unsigned int i = 1; i < 4; i++) {
		unsigned int room;

		TEST_ASSERT_TRUE(hear_ack(QPN, psns[i]));
		room = fill(QPN, false);
		TEST_ASSERT_GREATER_OR_EQUAL(LIMIT / 4 - 2, room);
		TEST_ASSERT_LESS_OR_EQUAL(LIMIT / 4 + 2, room);
	}
}

void test_a_nak_and_a_response_answer(void)
{
	uint32_t psn = send_one(QPN, true);

	fill(QPN, false);
	TEST_ASSERT_TRUE(hear_nak(QPN, psn - 5));
	TEST_ASSERT_TRUE(has_room(peer));
	tearDown();
	setUp();
	psn = send_one(QPN, true);
	fill(QPN, false);
	TEST_ASSERT_TRUE(hear(IBV_OPCODE_RC_RDMA_READ_RESPONSE_ONLY, QPN, psn));
	TEST_ASSERT_TRUE(has_room(peer));
}

/* Both send at the same time: the peer's requests say nothing about what it has taken. */
void test_requests_of_the_peer_make_no_room(void)
{
	fill(QPN, true);
	TEST_ASSERT_FALSE(hear(IBV_OPCODE_RC_SEND_ONLY, QPN, next_psn));
	TEST_ASSERT_FALSE(hear(IBV_OPCODE_UD_SEND_ONLY, 0x50, 0));
	TEST_ASSERT_FALSE(has_room(peer));
}

void test_answers_to_another_qp_make_no_room(void)
{
	fill(QPN, true);
	TEST_ASSERT_FALSE(hear_ack(OTHER_QPN, next_psn));
	TEST_ASSERT_FALSE(hear_nak(OTHER_QPN, next_psn));
	TEST_ASSERT_FALSE(has_room(peer));
}

void test_another_peer_makes_no_room(void)
{
	struct bth bth;

	fill(QPN, true);
	bth = bth_of(IBV_OPCODE_RC_ACKNOWLEDGE, QPN, next_psn, false);
	TEST_ASSERT_FALSE(udp_pace_heard(&pace, other_peer, bth.bytes));
	TEST_ASSERT_FALSE(has_room(peer));
}

/* Nothing answers an unreliable QP: whatever comes shows that the peer runs. */
void test_without_requests_for_acks_anything_makes_room(void)
{
	TEST_ASSERT_EQUAL_UINT(LIMIT, fill(QPN, false));
	TEST_ASSERT_TRUE(hear(IBV_OPCODE_UC_SEND_ONLY, QPN, 3));
	TEST_ASSERT_EQUAL_UINT(LIMIT, fill(0, true));
	TEST_ASSERT_TRUE(hear(IBV_OPCODE_UD_SEND_ONLY, QPN, 3));
	TEST_ASSERT_EQUAL_UINT(LIMIT, fill(QPN, false));
}

/* An RNR NAK comes from a QP that has taken the requests before, as any NAK. */
void test_an_rnr_nak_answers(void)
{
	const uint32_t psn = send_one(QPN, true);
	struct bth bth = bth_of(IBV_OPCODE_RC_ACKNOWLEDGE, QPN, psn - 1, false);

	fill(QPN, false);
	bth.bytes[12] = SIM_AETH_RNR_NAK;
	TEST_ASSERT_TRUE(udp_pace_heard(&pace, peer, bth.bytes));
	TEST_ASSERT_TRUE(has_room(peer));
}

/* A response from the middle of a READ has no AETH: its payload follows the BTH. */
void test_the_payload_of_a_response_is_no_nak(void)
{
	const uint32_t psn = send_one(QPN, true);
	struct bth bth = bth_of(IBV_OPCODE_RC_RDMA_READ_RESPONSE_MIDDLE, QPN, psn - 1, false);

	fill(QPN, false);
	memset(bth.bytes + 12, SIM_NAK_PSN_SEQUENCE, sizeof(bth.bytes) - 12);
	TEST_ASSERT_FALSE(udp_pace_heard(&pace, peer, bth.bytes));
	TEST_ASSERT_FALSE(has_room(peer));
}

/* A datagram with an unknown opcode is no answer. */
void test_an_unknown_opcode_answers_nothing(void)
{
	fill(QPN, true);
	TEST_ASSERT_FALSE(hear(0xff, QPN, next_psn));
	TEST_ASSERT_FALSE(has_room(peer));
}

/* --- how much flies --- */

/* Returns how many datagrams of this length may fly to a peer. */
static unsigned int fill_with(size_t datagram_bytes)
{
	const struct bth bth = bth_of(IBV_OPCODE_UC_SEND_ONLY, 0x99, 1, false);
	unsigned int count = 0;

	udp_pace_end(&pace);
	udp_pace_init(&pace, -1);
	for (; has_room(peer); count++)
		udp_pace_sent(&pace, peer, 0, bth.bytes, datagram_bytes);
	return count;
}

/* The kernel takes a block of a power of two for a datagram and its own 512 bytes. */
void test_long_datagrams_take_more_room(void)
{
	TEST_ASSERT_EQUAL_UINT(LIMIT, fill_with(256));
	TEST_ASSERT_EQUAL_UINT(LIMIT_BYTES / 1536 + 1, fill_with(257));
	TEST_ASSERT_EQUAL_UINT(LIMIT_BYTES / 1536 + 1, fill_with(1024));
	TEST_ASSERT_EQUAL_UINT(LIMIT_BYTES / 3072 + 1, fill_with(1025));
	TEST_ASSERT_EQUAL_UINT(LIMIT_BYTES / 6144 + 1, fill_with(UDP_DATAGRAM_BYTES_MAX));
}

/* udp_pace_room() counts packets of the greatest length. */
void test_the_room_is_for_the_longest_packets(void)
{
	const unsigned int fit = fill_with(UDP_DATAGRAM_BYTES_MAX);

	setUp();
	TEST_ASSERT_LESS_OR_EQUAL(fit, udp_pace_room(&pace, peer));
	TEST_ASSERT_GREATER_THAN(fit / 2, udp_pace_room(&pace, peer));
}

/* Returns how many short datagrams fit if the buffers have the size of this socket's. */
static unsigned int fill_by_socket(int bytes_asked, int *bytes)
{
	const int fd = socket(AF_INET, SOCK_DGRAM, 0);
	socklen_t size = sizeof(*bytes);
	unsigned int count;

	TEST_ASSERT_EQUAL_INT(
		0, setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes_asked, sizeof(bytes_asked)));
	TEST_ASSERT_EQUAL_INT(0, getsockopt(fd, SOL_SOCKET, SO_RCVBUF, bytes, &size));
	udp_pace_end(&pace);
	udp_pace_init(&pace, fd);
	count = fill(QPN, false);
	close(fd);
	return count;
}

void test_a_third_of_the_buffer_may_be_filled(void)
{
	static const int sizes[] = {30000, 60000, 100000};

	for (unsigned int i = 0; i < 3; i++) {
		int bytes;
		const unsigned int count = fill_by_socket(sizes[i], &bytes);

		TEST_ASSERT_EQUAL_UINT((bytes / 3 + COST_BYTES - 1) / COST_BYTES, count);
	}
}

/* The kernel takes the first datagram however small the buffer is; a short one leaves room for more. */
void test_the_smallest_buffer_has_room_for_short_datagrams(void)
{
	int bytes;

	TEST_ASSERT_GREATER_OR_EQUAL(2, fill_by_socket(1, &bytes));
	TEST_ASSERT_LESS_THAN(10000, bytes);
}

/* Two addresses share an entry of the table. */
void test_the_room_of_an_address_is_its_own(void)
{
	static const uint8_t same_entry[16] = {[10] = 0xff, 0xff, 126, 0, 0, 2};
	static const struct bth bth;
	struct bth ack;

	fill(QPN, true);
	ack = bth_of(IBV_OPCODE_RC_ACKNOWLEDGE, QPN, next_psn - 1, false);
	TEST_ASSERT_TRUE(has_room(same_entry));
	TEST_ASSERT_FALSE(udp_pace_heard(&pace, same_entry, ack.bytes));
	TEST_ASSERT_FALSE(has_room(peer));
	TEST_ASSERT_FALSE(udp_pace_resumes(&pace));
	udp_pace_sent(&pace, same_entry, QPN, bth.bytes, 100);
	/* The second address has taken the entry: nothing counts as in flight to the first one, and the QPs that have
	 * waited for it may send. */
	TEST_ASSERT_TRUE(udp_pace_resumes(&pace));
	TEST_ASSERT_FALSE(udp_pace_resumes(&pace));
	TEST_ASSERT_EQUAL_UINT(LIMIT, fill(QPN, true));
}

/* More datagrams leave than there is room for, because answers do not wait for room. Each one asks for an ACK. */
void test_more_datagrams_than_fit_disturb_no_other_peer(void)
{
	const struct bth bth = bth_of(IBV_OPCODE_RC_SEND_ONLY, 0x99, 1, true);

	while (has_room(other_peer))
		udp_pace_sent(&pace, other_peer, QPN, bth.bytes, 100);
	for (unsigned int i = 0; i < 4 * LIMIT; i++)
		send_one(QPN, true);
	TEST_ASSERT_FALSE(has_room(other_peer));
	TEST_ASSERT_FALSE(has_room(peer));
	TEST_ASSERT_TRUE(hear_ack(QPN, next_psn - 1));
	TEST_ASSERT_FALSE(has_room(other_peer));
}

/* --- pauses --- */

static void expect_pause(uint64_t pause_ns)
{
	TEST_ASSERT_FALSE(has_room(peer));
	now_ns += pause_ns - 1;
	TEST_ASSERT_FALSE(udp_pace_resumes(&pace));
	TEST_ASSERT_FALSE(has_room(peer));
	now_ns += 1;
	TEST_ASSERT_TRUE(udp_pace_resumes(&pace));
	TEST_ASSERT_FALSE(udp_pace_resumes(&pace));
}

/* A peer that is busy for 50 ms still has room for what was sent meanwhile. */
void test_pauses_become_longer_while_no_answer_comes(void)
{
	unsigned int sent = fill(QPN, true);
	uint64_t pause_ns = UDP_PAUSE_NS, waited_ns = 0;

	for (unsigned int i = 0; i < 9; i++) {
		expect_pause(pause_ns);
		waited_ns += pause_ns;
		pause_ns = pause_ns < UDP_PAUSE_NS_MAX ? 2 * pause_ns : UDP_PAUSE_NS_MAX;
		TEST_ASSERT_FALSE(hear(IBV_OPCODE_RC_SEND_ONLY, QPN, 7));
		sent += fill(QPN, true);
	}
	TEST_ASSERT_GREATER_THAN(50000000, waited_ns);
	TEST_ASSERT_LESS_OR_EQUAL(3 * LIMIT, sent);
	TEST_ASSERT_TRUE(hear_ack(QPN, next_psn));
	fill(QPN, true);
	expect_pause(UDP_PAUSE_NS);
}

void test_unreliable_qps_send_as_much_after_each_pause(void)
{
	fill(QPN, false);
	for (unsigned int i = 0; i < 3; i++) {
		expect_pause(UDP_PAUSE_NS);
		TEST_ASSERT_EQUAL_UINT(LIMIT, fill(QPN, false));
	}
}

/* The program changes from a reliable QP to an unreliable one. */
void test_requests_for_acks_are_forgotten_when_none_fly(void)
{
	fill(QPN, true);
	expect_pause(UDP_PAUSE_NS);
	fill(QPN, false);
	expect_pause(2 * UDP_PAUSE_NS);
	fill(QPN, false);
	TEST_ASSERT_TRUE(hear(IBV_OPCODE_UC_SEND_ONLY, QPN, 3));
	TEST_ASSERT_EQUAL_UINT(LIMIT, fill(QPN, false));
}

void test_each_peer_has_its_pause(void)
{
	struct bth bth = bth_of(IBV_OPCODE_RC_SEND_ONLY, 0x99, 1, true);

	fill(QPN, true);
	now_ns += UDP_PAUSE_NS / 2;
	while (has_room(other_peer))
		udp_pace_sent(&pace, other_peer, QPN, bth.bytes, 100);
	now_ns += UDP_PAUSE_NS / 2;
	TEST_ASSERT_TRUE(udp_pace_resumes(&pace));
	TEST_ASSERT_TRUE(has_room(peer));
	TEST_ASSERT_FALSE(has_room(other_peer));
	now_ns += UDP_PAUSE_NS / 2;
	TEST_ASSERT_TRUE(udp_pace_resumes(&pace));
	TEST_ASSERT_TRUE(has_room(other_peer));
}

/* The first peer has been silent for long. The pause of another one ends earlier. */
void test_a_short_pause_ends_during_a_long_one(void)
{
	const struct bth bth = bth_of(IBV_OPCODE_RC_SEND_ONLY, 0x99, 1, true);

	fill(QPN, true);
	expect_pause(UDP_PAUSE_NS);
	fill(QPN, true);
	expect_pause(2 * UDP_PAUSE_NS);
	fill(QPN, true);
	TEST_ASSERT_FALSE(has_room(peer));
	while (has_room(other_peer))
		udp_pace_sent(&pace, other_peer, QPN, bth.bytes, 100);
	now_ns += UDP_PAUSE_NS;
	TEST_ASSERT_TRUE(udp_pace_resumes(&pace));
	TEST_ASSERT_TRUE(has_room(other_peer));
	TEST_ASSERT_FALSE(has_room(peer));
}

/* --- the socket of a peer on this machine --- */

enum { DATAGRAMS = 64 };

/* Claims an address for the peer, and sends datagrams to the socket, which is returned. */
static int fill_socket_of_peer(void)
{
	static const uint8_t datagram[100];
	struct udp_address address;
	union udp_sockaddr to;
	const int fd = udp_claim_address("", &address), from = socket(AF_INET, SOCK_DGRAM, 0);
	const socklen_t to_bytes = udp_sockaddr(address.gid.raw, &to);

	TEST_ASSERT_GREATER_OR_EQUAL(0, fd);
	memcpy(peer, address.gid.raw, sizeof(peer));
	for (unsigned int i = 0; i < DATAGRAMS; i++)
		TEST_ASSERT_EQUAL_INT(sizeof(datagram), sendto(from, datagram, sizeof(datagram), 0,
							       &to.any, to_bytes));
	close(from);
	return fd;
}

static void empty_socket(int fd)
{
	uint8_t datagram[100];

	for (unsigned int i = 0; i < DATAGRAMS; i++)
		TEST_ASSERT_EQUAL_INT(sizeof(datagram), recv(fd, datagram, sizeof(datagram), 0));
}

static bool resumes_after(uint64_t pause_ns)
{
	now_ns += pause_ns;
	return udp_pace_resumes(&pace);
}

void test_a_peer_that_takes_nothing_makes_no_room(void)
{
	const int fd = fill_socket_of_peer();

	fill(QPN, false);
	for (unsigned int i = 0; i < 100; i++)
		TEST_ASSERT_FALSE(resumes_after(UDP_PAUSE_NS));
	TEST_ASSERT_FALSE(has_room(peer));
	empty_socket(fd);
	TEST_ASSERT_TRUE(resumes_after(UDP_PAUSE_NS));
	TEST_ASSERT_EQUAL_UINT(LIMIT, fill(QPN, false));
	close(fd);
}

/* Both ends send on unreliable QPs. The peer's datagrams do not show that the peer empties its socket. */
void test_datagrams_of_a_peer_that_takes_nothing_make_no_room(void)
{
	const int fd = fill_socket_of_peer();

	fill(QPN, false);
	for (unsigned int i = 0; i < 100; i++) {
		TEST_ASSERT_FALSE(hear(IBV_OPCODE_UC_SEND_ONLY, QPN, i));
		TEST_ASSERT_FALSE(resumes_after(UDP_PAUSE_NS));
	}
	TEST_ASSERT_FALSE(has_room(peer));
	empty_socket(fd);
	TEST_ASSERT_TRUE(resumes_after(UDP_PAUSE_NS));
	fill(QPN, false);
	TEST_ASSERT_TRUE(hear(IBV_OPCODE_UC_SEND_ONLY, QPN, 100));
	TEST_ASSERT_EQUAL_UINT(LIMIT, fill(QPN, false));
	close(fd);
}

void test_a_peer_that_takes_nothing_for_long_loses_packets(void)
{
	const int fd = fill_socket_of_peer();

	fill(QPN, false);
	TEST_ASSERT_FALSE(resumes_after(UDP_PAUSE_NS));
	TEST_ASSERT_FALSE(resumes_after(UDP_LAG_NS - 1));
	TEST_ASSERT_TRUE(resumes_after(UDP_PAUSE_NS));
	TEST_ASSERT_EQUAL_UINT(LIMIT, fill(QPN, false));
	close(fd);
}

/* The peer was given up, and takes datagrams later: then its own datagrams make room at once. */
void test_a_peer_that_was_given_up_makes_room_again(void)
{
	const int fd = fill_socket_of_peer();

	fill(QPN, false);
	TEST_ASSERT_FALSE(resumes_after(UDP_PAUSE_NS));
	TEST_ASSERT_TRUE(resumes_after(UDP_LAG_NS));
	empty_socket(fd);
	fill(QPN, false);
	TEST_ASSERT_TRUE(hear(IBV_OPCODE_UC_SEND_ONLY, QPN, 1));
	TEST_ASSERT_TRUE(has_room(peer));
	close(fd);
}

/* The address is of this machine, and no socket is bound to it. */
void test_nothing_is_known_of_an_address_without_a_socket(void)
{
	static const uint8_t nobody[16] = {[10] = 0xff, 0xff, 127, 99, 99, 99};
	uint32_t bytes;

	TEST_ASSERT_FALSE(udp_queued_bytes(pace.queue_fd, nobody, &bytes));
}

static void send_to_claimed(const char *text)
{
	const union ibv_gid gid = udp_gid(text);
	union udp_sockaddr to;
	const socklen_t bytes = udp_sockaddr(gid.raw, &to);
	const int fd = socket(to.any.sa_family, SOCK_DGRAM, 0);

	TEST_ASSERT_EQUAL_INT(1, sendto(fd, "x", 1, 0, &to.any, bytes));
	close(fd);
}

static bool queued(int fd, const char *text, uint32_t *bytes)
{
	return udp_queued_bytes(fd, udp_gid(text).raw, bytes);
}

/* In a namespace. Addresses that differ in the last byte are different sockets. */
static void look_at_ipv6_peers(void)
{
	const int fd = udp_queue_open();
	struct udp_address address;
	uint32_t bytes;

	add_address("fd00::1");
	add_address("fd00::2");
	TEST_ASSERT_GREATER_OR_EQUAL(0, udp_claim_address("fd00::1", &address));
	TEST_ASSERT_FALSE(queued(fd, "fd00::2", &bytes));
	TEST_ASSERT_GREATER_OR_EQUAL(0, udp_claim_address("fd00::2", &address));
	send_to_claimed("fd00::2");
	TEST_ASSERT_TRUE(queued(fd, "fd00::1", &bytes));
	TEST_ASSERT_EQUAL_UINT(0, bytes);
	TEST_ASSERT_TRUE(queued(fd, "fd00::2", &bytes));
	TEST_ASSERT_GREATER_THAN(0, bytes);
	close(fd);
}

/* In a namespace. A socket at all addresses, as SoftRoCE's, is not that of a peer on another machine. */
static void look_beside_a_socket_of_all_addresses(void)
{
	const int fd = udp_queue_open();
	const union ibv_gid all = udp_gid("0.0.0.0"), far = udp_gid("192.0.2.1");
	uint32_t bytes;

	udp_plain(&all, SIM_UDP_PORT);
	send_to_claimed("127.0.0.1");
	TEST_ASSERT_FALSE(udp_queued_bytes(fd, far.raw, &bytes));
	TEST_ASSERT_FALSE(queued(fd, "127.0.0.1", &bytes));
	close(fd);
}

static void in_namespace(void (*run)(void))
{
	const int pid = fork_into_namespace(65536);

	if (!pid) {
		run();
		_exit(0);
	}
	expect_namespace_end(pid);
}

void test_the_sockets_of_ipv6_peers(void)
{
	in_namespace(look_at_ipv6_peers);
}

void test_a_socket_at_all_addresses_is_no_peers(void)
{
	in_namespace(look_beside_a_socket_of_all_addresses);
}

/* A program that has used up its descriptors loses no datagrams for it. */
void test_a_look_at_the_peer_needs_no_further_descriptor(void)
{
	const int fd = fill_socket_of_peer();
	struct rlimit limit, none;

	fill(QPN, false);
	TEST_ASSERT_EQUAL_INT(0, getrlimit(RLIMIT_NOFILE, &limit));
	none = limit;
	none.rlim_cur = 0;
	TEST_ASSERT_EQUAL_INT(0, setrlimit(RLIMIT_NOFILE, &none));
	for (unsigned int i = 0; i < 100; i++)
		TEST_ASSERT_FALSE(resumes_after(UDP_PAUSE_NS));
	TEST_ASSERT_EQUAL_INT(0, setrlimit(RLIMIT_NOFILE, &limit));
	empty_socket(fd);
	TEST_ASSERT_TRUE(resumes_after(UDP_PAUSE_NS));
	close(fd);
}
