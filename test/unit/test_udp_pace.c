/* SPDX-License-Identifier: MIT */
/* Pacing of the wire `udp`: how much may fly to a peer, and what makes room again. */
#include "backends/sim/wire/udp_private.h"
#include "sim/wire/bytes.h"
#include "sim/wire/opcode.h"
#include "sim/wire/packet.h"
#include "unity.h"

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

/* The address is of this machine, and no socket is bound to it. */
void test_nothing_is_known_of_an_address_without_a_socket(void)
{
	static const uint8_t nobody[16] = {[10] = 0xff, 0xff, 127, 99, 99, 99};
	uint32_t bytes;

	TEST_ASSERT_FALSE(udp_queued_bytes(pace.queue_fd, nobody, &bytes));
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
