/* SPDX-License-Identifier: MIT */
/* The wire `shared`: packets between two attachments of this process, and to and from children. The
 * functions of the engine that the wire calls are replaced, so that each frame is seen. */
#include "sim/base/core.h"
#include "test/unit/free_room.h"
#include "test/unit/seed.h"
#include "test/unit/shared_ends.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>

static struct end a, b, c;

/* Stands still while threads run: a thread that gets no processor for long is not dead. */
static uint64_t now_ns;
static bool in_threads;

uint64_t __wrap_segment_now_ns(void);
uint64_t __wrap_segment_now_ns(void)
{
	return in_threads ? now_ns : (now_ns += 1000);
}

/* --- frames of test_two_threads_lose_no_frame_and_no_call() --- */

static size_t bytes_of_frame(uint32_t number)
{
	return number % 7 ? 40 + number % 100 : SIM_FRAME_BYTES_MAX - number % 50;
}

static uint8_t value_of_frame(uint32_t number)
{
	return (uint8_t)(number | 1);
}

static bool is_frame(uint32_t number, const uint8_t *frame, size_t frame_bytes)
{
	if (frame_bytes != bytes_of_frame(number))
		return false;
	for (size_t i = 0; i < frame_bytes; i++)
		if (frame[i] != value_of_frame(number))
			return false;
	return true;
}

static void check_frame(struct end *end, const uint8_t *frame, size_t frame_bytes)
{
	end->wrong += !is_frame(end->arrived, frame, frame_bytes);
}

void setUp(void)
{
	one_route = (struct sim_route){.udp_source_port = 0xc123, .hop_limit = 64};
	route_unreadable = false;
	name_world();
	open_end(&a);
	open_end(&b);
}

void tearDown(void)
{
	close_end(&a);
	close_end(&b);
	close_end(&c);
	TEST_ASSERT_FALSE(world_exists());
}

static bool lags_to(struct end *end, uint32_t qpn)
{
	const struct sim_path path = path_from(end);

	return end->wire->way.lags(end->wire->way.arg, &path, qpn);
}

static void fill_ring(struct end *end, uint32_t qpn)
{
	for (unsigned int i = 0; room_to(end, qpn); i++) {
		TEST_ASSERT_TRUE(i < 1000);
		TEST_ASSERT_TRUE(send_to(end, qpn, SIM_FRAME_BYTES_MAX, 1));
	}
}

/* --- packets --- */

static void expect_last(const struct end *end, size_t bytes, uint8_t value)
{
	TEST_ASSERT_EQUAL_UINT(bytes, end->bytes);
	for (size_t i = 0; i < bytes; i++)
		TEST_ASSERT_EQUAL_HEX8(value, end->last[i]);
}

void test_a_packet_reaches_the_process_that_has_the_qpn(void)
{
	TEST_ASSERT_FALSE(receive(&b));
	TEST_ASSERT_TRUE(send_to(&a, b.qpn + 3, 100, 7));
	TEST_ASSERT_TRUE(receive(&b));
	TEST_ASSERT_EQUAL_UINT(1, b.arrived);
	expect_last(&b, 100, 7);
	TEST_ASSERT_EQUAL_UINT(2, b.port);
	TEST_ASSERT_TRUE(b.device == &b.devices[0]);
	TEST_ASSERT_TRUE(b.checked);
	TEST_ASSERT_FALSE(receive(&b));
	TEST_ASSERT_FALSE(receive(&a));
}

/* Each device has QPNs of its own: two processes have the same one. */
void test_a_qpn_is_of_one_device(void)
{
	static const uint8_t frame[] = "frame";
	struct sim_departure departure = {
		.dest = &a.devices[1].ports[0], .frame = frame, .frame_bytes = sizeof(frame)};

	open_end(&c);
	do
		departure.dest_qpn = claim_qpn(&c, 1);
	while (departure.dest_qpn != b.qpn);
	for (unsigned int i = 1; i < 4; i++) {
		TEST_ASSERT_TRUE(send_to(&a, b.qpn, 100, 7));
		TEST_ASSERT_TRUE(a.wire->way.send(a.wire->way.arg, &departure));
		receive(&b);
		receive(&c);
		TEST_ASSERT_EQUAL_UINT(i, b.arrived);
		TEST_ASSERT_TRUE(b.device == &b.devices[0]);
		TEST_ASSERT_EQUAL_UINT(i, c.arrived);
		TEST_ASSERT_TRUE(c.device == &c.devices[1]);
	}
}

void test_a_frame_that_a_filter_has_encoded_is_checked_by_the_receiver(void)
{
	static const uint8_t frame[] = "frame";
	const struct sim_departure departure = {.dest = &a.devices[1].ports[0],
						.dest_qpn = claim_qpn(&b, 1),
						.frame = frame,
						.frame_bytes = sizeof(frame)};

	TEST_ASSERT_TRUE(a.wire->way.send(a.wire->way.arg, &departure));
	TEST_ASSERT_TRUE(receive(&b));
	TEST_ASSERT_FALSE(b.checked);
	TEST_ASSERT_EQUAL_MEMORY(frame, b.last, sizeof(frame));
	TEST_ASSERT_EQUAL_UINT(1, b.port);
	TEST_ASSERT_TRUE(b.device == &b.devices[1]);
}

static void receive_all(struct end *end)
{
	while (receive(end))
		;
}

/* Sends a packet and returns true if it came without network headers. */
static bool comes_bare(void)
{
	const unsigned int before = b.arrived;

	TEST_ASSERT_TRUE(send_to(&a, b.qpn, 100, 7));
	receive(&b);
	TEST_ASSERT_EQUAL_UINT(before + 1, b.arrived);
	expect_last(&b, 100, 7);
	TEST_ASSERT_TRUE(b.checked);
	return b.bare;
}

void test_packets_of_a_known_route_come_without_network_headers(void)
{
	const struct sim_route first = one_route;
	struct sim_route second = one_route;

	TEST_ASSERT_FALSE(comes_bare());
	TEST_ASSERT_TRUE(comes_bare());
	TEST_ASSERT_TRUE(comes_bare());
	/* Another connection has another port; both routes are known. */
	second.udp_source_port++;
	one_route = second;
	TEST_ASSERT_FALSE(comes_bare());
	TEST_ASSERT_TRUE(comes_bare());
	one_route = first;
	TEST_ASSERT_TRUE(comes_bare());
	one_route = second;
	TEST_ASSERT_TRUE(comes_bare());
	/* A route that takes the number of another one. */
	one_route.hop_limit--;
	TEST_ASSERT_FALSE(comes_bare());
	TEST_ASSERT_TRUE(comes_bare());
	one_route = second;
	TEST_ASSERT_FALSE(comes_bare());
	one_route = first;
	TEST_ASSERT_TRUE(comes_bare());
}

/* What the engine remembers of a route ends with the route. */
void test_a_new_route_begins_with_nothing(void)
{
	TEST_ASSERT_FALSE(comes_bare());
	TEST_ASSERT_TRUE(comes_bare());
	TEST_ASSERT_EQUAL_UINT64(1, b.inlet_uses);
	TEST_ASSERT_TRUE(comes_bare());
	TEST_ASSERT_EQUAL_UINT64(2, b.inlet_uses);
	one_route.hop_limit--;
	TEST_ASSERT_FALSE(comes_bare());
	TEST_ASSERT_TRUE(comes_bare());
	TEST_ASSERT_EQUAL_UINT64(1, b.inlet_uses);
	one_route.hop_limit++;
	TEST_ASSERT_FALSE(comes_bare());
	TEST_ASSERT_TRUE(comes_bare());
	TEST_ASSERT_EQUAL_UINT64(1, b.inlet_uses);
}

/* Frames that a filter has encoded are read by the engine only. */
void test_an_encoded_frame_teaches_no_route(void)
{
	static const uint8_t frame[] = "frame";

	TEST_ASSERT_TRUE(send_frame(&a, b.qpn, frame, sizeof(frame)));
	receive(&b);
	TEST_ASSERT_FALSE(comes_bare());
	TEST_ASSERT_TRUE(send_frame(&a, b.qpn, frame, sizeof(frame)));
	receive(&b);
	TEST_ASSERT_FALSE(b.bare);
	TEST_ASSERT_TRUE(comes_bare());
}

/* The flags of such a frame have no number of a route, which is as the number 0. */
void test_an_encoded_frame_ends_no_route(void)
{
	static const uint8_t frame[] = "frame";

	one_route.udp_source_port = 0xc100;
	TEST_ASSERT_FALSE(comes_bare());
	TEST_ASSERT_TRUE(comes_bare());
	route_unreadable = true;
	TEST_ASSERT_TRUE(send_frame(&a, b.qpn, frame, sizeof(frame)));
	receive_all(&b);
	TEST_ASSERT_TRUE(comes_bare());
}

void test_a_packet_of_an_unknown_route_is_lost(void)
{
	route_unreadable = true;
	TEST_ASSERT_TRUE(send_to(&a, b.qpn, 100, 7));
	TEST_ASSERT_TRUE(send_to(&a, b.qpn, 100, 7));
	receive_all(&b);
	TEST_ASSERT_EQUAL_UINT(1, b.arrived);
}

/* A frame that cannot be read takes the number of a route that is known. */
void test_a_frame_that_cannot_be_read_ends_the_route_of_its_number(void)
{
	TEST_ASSERT_FALSE(comes_bare());
	TEST_ASSERT_TRUE(comes_bare());
	one_route.hop_limit--;
	route_unreadable = true;
	TEST_ASSERT_FALSE(comes_bare());
	b.arrived = 0;
	TEST_ASSERT_TRUE(send_to(&a, b.qpn, 100, 7));
	receive_all(&b);
	TEST_ASSERT_EQUAL_UINT(0, b.arrived);
	/* Another number is not touched. */
	route_unreadable = false;
	one_route.udp_source_port++;
	TEST_ASSERT_FALSE(comes_bare());
	TEST_ASSERT_TRUE(comes_bare());
}

/* The memory of a payload may be gone when the packet leaves: the ring and its routes stay as they were. */
void test_a_packet_that_cannot_be_read_is_not_sent(void)
{
	TEST_ASSERT_FALSE(send_to(&a, b.qpn, 0, 7));
	TEST_ASSERT_FALSE(receive(&b));
	TEST_ASSERT_FALSE(comes_bare());
	TEST_ASSERT_FALSE(send_to(&a, b.qpn, 0, 7));
	TEST_ASSERT_FALSE(receive(&b));
	TEST_ASSERT_TRUE(comes_bare());
	TEST_ASSERT_EQUAL_UINT(2, b.arrived);
}

/* A new ring begins without routes. */
void test_a_new_ring_knows_no_route(void)
{
	TEST_ASSERT_FALSE(comes_bare());
	TEST_ASSERT_TRUE(comes_bare());
	close_end(&b);
	open_end(&b);
	TEST_ASSERT_FALSE(comes_bare());
	TEST_ASSERT_TRUE(comes_bare());
}

void test_a_qpn_of_nobody_takes_nothing(void)
{
	TEST_ASSERT_FALSE(send_to(&a, a.qpn, 100, 7));
	TEST_ASSERT_FALSE(send_to(&a, 0x3ff00, 100, 7));
	TEST_ASSERT_EQUAL_UINT(UINT_MAX, room_to(&a, 0x3ff00));
	TEST_ASSERT_EQUAL_INT(SIM_PRESENCE_NOBODY, find_from(&a, 0x3ff00));
	TEST_ASSERT_EQUAL_INT(SIM_PRESENCE_NOBODY, find_from(&a, a.qpn));
	TEST_ASSERT_EQUAL_INT(SIM_PRESENCE_OTHER, find_from(&a, b.qpn));
}

/* Returns the bytes that are needed and those that are there; "": nothing is in the way. */
static const char *hindrance(uint32_t qpn)
{
	const struct vb_why why = hindrance_from(&a, qpn);
	static char text[64];

	if (why.reason == VB_WHY_NONE)
		return "";
	TEST_ASSERT_EQUAL_INT(VB_WHY_SHARED_NO_SPACE, why.reason);
	snprintf(text, sizeof(text), "%u %u %u", (unsigned int)why.values[0],
		 (unsigned int)why.values[1], (unsigned int)why.values[2]);
	return text;
}

/* A ring of the smallest class has 24 KiB, and its entry in the table may need a page. */
void test_a_connection_needs_room_for_the_rings_that_are_missing(void)
{
	whole_room_bytes = 64 << 10;
	free_room_bytes = 48 << 10;
	TEST_ASSERT_EQUAL_STRING("53248 49152 65536", hindrance(b.qpn));
	/* Nobody has the QPN, or this process has it. */
	TEST_ASSERT_EQUAL_STRING("", hindrance(0x3ff00));
	TEST_ASSERT_EQUAL_STRING("", hindrance(a.qpn));
	free_room_bytes = 52 << 10;
	TEST_ASSERT_EQUAL_STRING("", hindrance(b.qpn));
	TEST_ASSERT_TRUE(send_to(&a, b.qpn, 100, 7));
	free_room_bytes = 24 << 10;
	TEST_ASSERT_EQUAL_STRING("28672 24576 65536", hindrance(b.qpn));
	TEST_ASSERT_TRUE(send_to(&b, a.qpn, 100, 7));
	flush(&b);
	TEST_ASSERT_TRUE(receive(&a));
	TEST_ASSERT_EQUAL_STRING("", hindrance(b.qpn));
	/* A file system without a limit has neither blocks nor free ones. */
	close_end(&b);
	open_end(&b);
	whole_room_bytes = 0;
	free_room_bytes = 1;
	TEST_ASSERT_EQUAL_STRING("", hindrance(b.qpn));
	free_room_bytes = 0;
}

/* All lengths, so that slots of all sizes meet the end of the ring. */
void test_packets_keep_their_order_and_bytes_around_the_ring(void)
{
	size_t bytes = 1;

	for (unsigned int i = 0; i < 5000; i++) {
		TEST_ASSERT_TRUE(send_to(&a, b.qpn, bytes, (uint8_t)(i | 1)));
		flush(&a);
		TEST_ASSERT_TRUE(receive(&b));
		TEST_ASSERT_EQUAL_UINT(i + 1, b.arrived);
		expect_last(&b, bytes, (uint8_t)(i | 1));
		bytes = bytes * 5 % SIM_FRAME_BYTES_MAX + 1;
	}
}

/* A burst of long packets has come when the sender's flush returns, also behind packets that came before. */
void test_long_packets_come_with_the_flush(void)
{
	for (unsigned int count = 1; count <= 9; count++) {
		const unsigned int before = b.arrived;

		for (unsigned int i = 0; i < count; i++)
			TEST_ASSERT_TRUE(send_to(&a, b.qpn, 4000, (uint8_t)count));
		flush(&a);
		while (receive(&b))
			;
		TEST_ASSERT_EQUAL_UINT(before + count, b.arrived);
		expect_last(&b, 4000, (uint8_t)count);
	}
}

/* The frames behind the first one wait for the next call. */
void test_after_an_empty_look_one_frame_is_taken_at_first(void)
{
	for (unsigned int round = 0; round < 3; round++) {
		b.arrived = 0;
		for (unsigned int i = 0; i < 40; i++)
			TEST_ASSERT_TRUE(send_to(&a, b.qpn, 100, 7));
		TEST_ASSERT_TRUE(receive(&b));
		TEST_ASSERT_EQUAL_UINT(1, b.arrived);
		TEST_ASSERT_TRUE(receive(&b));
		TEST_ASSERT_EQUAL_UINT(40, b.arrived);
		TEST_ASSERT_FALSE(receive(&b));
	}
}

/* --- room --- */

void test_a_full_ring_has_room_when_its_receiver_has_taken_packets(void)
{
	unsigned int sent = 0, received = 0;

	for (unsigned int round = 0; round < 10; round++) {
		while (room_to(&a, b.qpn)) {
			TEST_ASSERT_TRUE(send_to(&a, b.qpn, SIM_FRAME_BYTES_MAX, 1));
			sent++;
		}
		flush(&a);
		TEST_ASSERT_FALSE(receive(&a));
		TEST_ASSERT_EQUAL_UINT(round, a.ready);
		while (receive(&b))
			;
		received = b.arrived;
		TEST_ASSERT_EQUAL_UINT(sent, received);
		TEST_ASSERT_TRUE(receive(&a));
		TEST_ASSERT_EQUAL_UINT(round + 1, a.ready);
		TEST_ASSERT_FALSE(receive(&a));
	}
	TEST_ASSERT_TRUE(sent >= 100);
}

/* A process that only looks whether something has come finds the room, too. */
void test_waiting_for_room_is_work(void)
{
	TEST_ASSERT_FALSE(a.wire->arrived(a.wire));
	fill_ring(&a, b.qpn);
	TEST_ASSERT_TRUE(a.wire->arrived(a.wire));
	TEST_ASSERT_FALSE(receive(&a));
	TEST_ASSERT_TRUE(a.wire->arrived(a.wire));
	receive_all(&b);
	TEST_ASSERT_TRUE(receive(&a));
	TEST_ASSERT_FALSE(a.wire->arrived(a.wire));
}

/* The rings to b and c are full, and b takes its packets first. */
void test_each_of_two_full_rings_is_waited_for(void)
{
	open_end(&c);
	fill_ring(&a, b.qpn);
	fill_ring(&a, c.qpn);
	TEST_ASSERT_FALSE(receive(&a));
	receive_all(&b);
	TEST_ASSERT_TRUE(receive(&a));
	TEST_ASSERT_EQUAL_UINT(1, a.ready);
	TEST_ASSERT_FALSE(receive(&a));
	TEST_ASSERT_TRUE(a.wire->arrived(a.wire));
	receive_all(&c);
	TEST_ASSERT_TRUE(receive(&a));
	TEST_ASSERT_EQUAL_UINT(2, a.ready);
	TEST_ASSERT_FALSE(receive(&a));
	TEST_ASSERT_FALSE(a.wire->arrived(a.wire));
}

/* A process that only looks whether something has come finds a ring that it has never seen. */
void test_a_new_ring_is_work(void)
{
	TEST_ASSERT_FALSE(b.wire->arrived(b.wire));
	TEST_ASSERT_TRUE(send_to(&a, b.qpn, 100, 7));
	flush(&a);
	TEST_ASSERT_TRUE(b.wire->arrived(b.wire));
	TEST_ASSERT_TRUE(receive(&b));
	TEST_ASSERT_FALSE(b.wire->arrived(b.wire));
}

static unsigned int rooms[2];

static void note_room(struct end *end, const uint8_t *frame, size_t frame_bytes)
{
	(void)frame;
	(void)frame_bytes;
	if (end->arrived % 8 == 0 && end->arrived < 16)
		rooms[end->arrived / 8] = room_to(&a, b.qpn);
}

/* The sender need not wait for the end of a batch. */
void test_a_ring_has_room_while_its_receiver_takes_a_batch(void)
{
	fill_ring(&a, b.qpn);
	TEST_ASSERT_TRUE(receive(&b));
	b.arrived = 0;
	on_arrival = note_room;
	TEST_ASSERT_TRUE(receive(&b));
	on_arrival = NULL;
	TEST_ASSERT_TRUE(b.arrived >= 16);
	TEST_ASSERT_TRUE(rooms[1] > rooms[0]);
}

/* room() promises packets of any length. */
void test_room_is_kept(void)
{
	unsigned int room;

	TEST_ASSERT_TRUE(send_to(&a, b.qpn, 1, 1));
	while ((room = room_to(&a, b.qpn)) != 0)
		while (room--)
			TEST_ASSERT_TRUE(send_to(&a, b.qpn, SIM_FRAME_BYTES_MAX, 1));
}

void test_a_receiver_that_takes_nothing_for_long_loses_packets(void)
{
	fill_ring(&a, b.qpn);
	TEST_ASSERT_EQUAL_UINT(0, room_to(&a, b.qpn));
	for (unsigned int looks = 0; looks < 19; looks++) {
		now_ns += 101000000;
		TEST_ASSERT_FALSE(receive(&a));
		TEST_ASSERT_EQUAL_UINT(0, room_to(&a, b.qpn));
	}
	now_ns += 101000000;
	TEST_ASSERT_TRUE(receive(&a));
	TEST_ASSERT_EQUAL_UINT(1, a.ready);
	TEST_ASSERT_EQUAL_UINT(UINT_MAX, room_to(&a, b.qpn));
	TEST_ASSERT_FALSE(send_to(&a, b.qpn, SIM_FRAME_BYTES_MAX, 1));
	TEST_ASSERT_EQUAL_INT(SIM_PRESENCE_OTHER, find_from(&a, b.qpn));
	while (receive(&b))
		;
	TEST_ASSERT_TRUE(room_to(&a, b.qpn) < UINT_MAX);
	fill_ring(&a, b.qpn);
	TEST_ASSERT_EQUAL_UINT(0, room_to(&a, b.qpn));
}

/* Each frame that the receiver takes begins the two seconds anew. */
void test_a_receiver_that_takes_something_now_and_then_loses_nothing(void)
{
	fill_ring(&a, b.qpn);
	for (unsigned int i = 0; i < 3; i++) {
		now_ns += 1700000000;
		TEST_ASSERT_FALSE(receive(&a));
		TEST_ASSERT_EQUAL_UINT(0, room_to(&a, b.qpn));
		receive_all(&b);
		flush(&b);
		/* Another QP fills the ring again before those that wait are woken. */
		fill_ring(&a, b.qpn);
		now_ns += 200000000;
		TEST_ASSERT_FALSE(receive(&a));
		TEST_ASSERT_EQUAL_UINT(0, room_to(&a, b.qpn));
	}
}

/* A process that lives and moves on is late; one that stands still for two seconds never answers. */
void test_a_receiver_that_is_late(void)
{
	TEST_ASSERT_FALSE(lags_to(&a, b.qpn));
	TEST_ASSERT_TRUE(send_to(&a, b.qpn, 50, 3));
	now_ns += 5000000000;
	TEST_ASSERT_TRUE(lags_to(&a, b.qpn));
	now_ns += 1900000000;
	TEST_ASSERT_TRUE(lags_to(&a, b.qpn));
	now_ns += 200000000;
	TEST_ASSERT_FALSE(lags_to(&a, b.qpn));
	TEST_ASSERT_TRUE(receive(&b));
	flush(&b);
	TEST_ASSERT_FALSE(lags_to(&a, b.qpn));
	TEST_ASSERT_TRUE(send_to(&a, b.qpn, 50, 3));
	TEST_ASSERT_TRUE(lags_to(&a, b.qpn));
	TEST_ASSERT_FALSE(lags_to(&a, a.qpn));
	TEST_ASSERT_FALSE(lags_to(&a, 0x3ff00));
}

void test_a_receiver_that_is_late_and_moves_on(void)
{
	for (unsigned int i = 0; i < 2; i++)
		TEST_ASSERT_TRUE(send_to(&a, b.qpn, 50, 3));
	TEST_ASSERT_TRUE(lags_to(&a, b.qpn));
	now_ns += 1500000000;
	TEST_ASSERT_TRUE(receive(&b));
	TEST_ASSERT_EQUAL_UINT(1, b.arrived);
	TEST_ASSERT_TRUE(lags_to(&a, b.qpn));
	now_ns += 1500000000;
	TEST_ASSERT_TRUE(lags_to(&a, b.qpn));
	now_ns += 600000000;
	TEST_ASSERT_FALSE(lags_to(&a, b.qpn));
}

/* --- rings that cannot be mapped, or closed, for now --- */

/* Allocations of pages from this length on find the file system full; 0: none. */
static off_t full_from_bytes;

int __real_posix_fallocate64(int fd, off_t offset, off_t length);
int __wrap_posix_fallocate64(int fd, off_t offset, off_t length);
int __wrap_posix_fallocate64(int fd, off_t offset, off_t length)
{
	if (full_from_bytes && length >= full_from_bytes)
		return ENOSPC;
	return __real_posix_fallocate64(fd, offset, length);
}

static bool has_work(struct end *end)
{
	return end->wire->arrived(end->wire);
}

/* Counts the rings of the world. */
static unsigned int count_rings(void)
{
	struct segment probe;
	unsigned int count = 0;

	attach(&probe);
	for (uint32_t i = 0; i < atomic_load(&probe.header->areas_used); i++)
		count += atomic_load(&segment_area_at(&probe, i)->state) != 0;
	places_leave(&probe);
	return count;
}

void test_a_ring_that_cannot_be_mapped_is_mapped_later(void)
{
	TEST_ASSERT_TRUE(send_to(&a, b.qpn, 100, 7));
	flush(&a);
	full_from_bytes = 1;
	for (unsigned int i = 0; i < 3; i++) {
		TEST_ASSERT_FALSE(receive(&b));
		TEST_ASSERT_TRUE(has_work(&b));
		now_ns += 300000000;
	}
	full_from_bytes = 0;
	TEST_ASSERT_TRUE(receive(&b));
	TEST_ASSERT_EQUAL_UINT(1, b.arrived);
	TEST_ASSERT_FALSE(has_work(&b));
}

/* Its sender has left before the receiver has seen it. */
void test_a_ring_ends_with_its_last_packet(void)
{
	TEST_ASSERT_TRUE(send_to(&b, a.qpn, 50, 3));
	TEST_ASSERT_TRUE(send_to(&b, a.qpn, 60, 4));
	close_end(&b);
	receive_all(&a);
	TEST_ASSERT_EQUAL_UINT(2, a.arrived);
	TEST_ASSERT_EQUAL_UINT(0, count_rings());
	TEST_ASSERT_FALSE(has_work(&a));
}

/* The ring could be closed while another process has the lock of the world. */
void test_a_ring_that_cannot_be_closed_is_closed_later(void)
{
	struct segment probe;

	TEST_ASSERT_TRUE(send_to(&b, a.qpn, 50, 3));
	close_end(&b);
	attach(&probe);
	TEST_ASSERT_TRUE(segment_lock(&probe, 0));
	receive_all(&a);
	TEST_ASSERT_EQUAL_UINT(1, a.arrived);
	TEST_ASSERT_TRUE(has_work(&a));
	segment_unlock(&probe);
	receive_all(&a);
	TEST_ASSERT_FALSE(has_work(&a));
	places_leave(&probe);
	TEST_ASSERT_EQUAL_UINT(0, count_rings());
	TEST_ASSERT_EQUAL_UINT(1, a.arrived);
}

/* --- bells --- */

static uint32_t rings(const struct end *end)
{
	return atomic_load(&shared_bell(end->wire)->rings);
}

void test_only_a_process_that_listens_is_woken(void)
{
	uint32_t before;

	TEST_ASSERT_TRUE(send_to(&a, b.qpn, 1, 1));
	flush(&a);
	receive(&b);
	before = rings(&b);
	TEST_ASSERT_TRUE(send_to(&a, b.qpn, 1, 1));
	flush(&a);
	TEST_ASSERT_EQUAL_UINT32(before, rings(&b));
	bell_listen(shared_bell(b.wire));
	flush(&a);
	TEST_ASSERT_EQUAL_UINT32(before, rings(&b));
	TEST_ASSERT_TRUE(send_to(&a, b.qpn, 1, 1));
	TEST_ASSERT_TRUE(send_to(&a, b.qpn, 1, 1));
	TEST_ASSERT_EQUAL_UINT32(before, rings(&b));
	flush(&a);
	TEST_ASSERT_EQUAL_UINT32(before + 1, rings(&b));
	bell_ignore(shared_bell(b.wire));
	TEST_ASSERT_TRUE(send_to(&a, b.qpn, 1, 1));
	flush(&a);
	TEST_ASSERT_EQUAL_UINT32(before + 1, rings(&b));
}

void test_a_sender_that_sleeps_is_woken_when_there_is_room(void)
{
	uint32_t before;

	fill_ring(&a, b.qpn);
	before = rings(&a);
	receive(&b);
	flush(&b);
	TEST_ASSERT_EQUAL_UINT32(before, rings(&a));
	while (receive(&b))
		;
	TEST_ASSERT_TRUE(receive(&a));
	fill_ring(&a, b.qpn);
	bell_listen(shared_bell(a.wire));
	TEST_ASSERT_FALSE(receive(&a));
	receive(&b);
	flush(&b);
	TEST_ASSERT_EQUAL_UINT32(before + 1, rings(&a));
	/* Once: the sender has not asked again. */
	receive(&b);
	flush(&b);
	TEST_ASSERT_EQUAL_UINT32(before + 1, rings(&a));
	TEST_ASSERT_TRUE(receive(&a));
}

/* --- groups --- */

void test_a_packet_to_a_group_reaches_each_process_with_members(void)
{
	struct wire *wire = a.wire;

	open_end(&c);
	TEST_ASSERT_FALSE(wire->way.has_members(wire->way.arg, &a.devices[0].ports[1]));
	TEST_ASSERT_FALSE(send_to(&a, MULTICAST_QPN, 10, 9));
	a.wire->way.joined(a.wire->way.arg, &a.devices[0], 1);
	TEST_ASSERT_FALSE(wire->way.has_members(wire->way.arg, &a.devices[0].ports[1]));
	b.wire->way.joined(b.wire->way.arg, &b.devices[0], 2);
	c.wire->way.joined(c.wire->way.arg, &c.devices[0], 1);
	TEST_ASSERT_TRUE(wire->way.has_members(wire->way.arg, &a.devices[0].ports[1]));
	TEST_ASSERT_FALSE(wire->way.has_members(wire->way.arg, &a.devices[1].ports[1]));
	TEST_ASSERT_TRUE(send_to(&a, MULTICAST_QPN, 10, 9));
	TEST_ASSERT_EQUAL_UINT(UINT_MAX, room_to(&a, MULTICAST_QPN));
	receive(&a);
	receive(&b);
	receive(&c);
	TEST_ASSERT_EQUAL_UINT(0, a.arrived);
	TEST_ASSERT_EQUAL_UINT(1, b.arrived);
	TEST_ASSERT_EQUAL_UINT(1, c.arrived);
	b.wire->way.joined(b.wire->way.arg, &b.devices[0], 0);
	TEST_ASSERT_TRUE(send_to(&a, MULTICAST_QPN, 10, 9));
	receive(&b);
	TEST_ASSERT_EQUAL_UINT(1, b.arrived);
}

/* --- ends of processes --- */

void test_what_a_process_has_sent_before_it_leaves_arrives(void)
{
	TEST_ASSERT_TRUE(send_to(&b, a.qpn, 50, 3));
	TEST_ASSERT_TRUE(send_to(&b, a.qpn, 60, 4));
	close_end(&b);
	while (receive(&a))
		;
	TEST_ASSERT_EQUAL_UINT(2, a.arrived);
	TEST_ASSERT_EQUAL_UINT(60, a.bytes);
}

/* More processes than a world has at once, one after the other. */
void test_many_processes_that_come_and_go(void)
{
	for (unsigned int i = 1; i <= 3 * SHARED_PROCESSES_MAX; i++) {
		open_end(&c);
		TEST_ASSERT_TRUE(send_to(&c, a.qpn, 50, (uint8_t)(i | 1)));
		close_end(&c);
		receive_all(&a);
		TEST_ASSERT_EQUAL_UINT(i, a.arrived);
		expect_last(&a, 50, (uint8_t)(i | 1));
	}
}

/* Two rings, and a new process at the place of one that has left. */
void test_a_new_process_at_a_place_has_rings_of_its_own(void)
{
	const uint32_t old_qpn = b.qpn;

	TEST_ASSERT_TRUE(send_to(&a, b.qpn, 50, 3));
	TEST_ASSERT_TRUE(send_to(&b, a.qpn, 50, 3));
	close_end(&b);
	open_end(&b);
	TEST_ASSERT_TRUE(b.qpn != old_qpn);
	TEST_ASSERT_FALSE(send_to(&a, old_qpn, 50, 5));
	TEST_ASSERT_TRUE(send_to(&a, b.qpn, 70, 6));
	TEST_ASSERT_TRUE(send_to(&b, a.qpn, 80, 8));
	while (receive(&b))
		;
	while (receive(&a))
		;
	TEST_ASSERT_EQUAL_UINT(1, b.arrived);
	TEST_ASSERT_EQUAL_UINT(70, b.bytes);
	TEST_ASSERT_EQUAL_UINT(2, a.arrived);
	TEST_ASSERT_EQUAL_UINT(50 + 80, a.all_bytes);
}

/* The first thing that a child does, as after pthread_atfork(3). */
static void let_go(void)
{
	a.wire->forked(a.wire);
	b.wire->forked(b.wire);
}

static int be_c(void)
{
	let_go();
	open_end(&c);
	return 0;
}

static uint32_t next_qpn(void)
{
	return 2 * SIM_BLOCK_PLACES; /* a and b have the blocks 0 and 1 */
}

void test_a_dead_process_is_found_out(void)
{
	const pid_t child = child_begin(be_c);

	TEST_ASSERT_EQUAL_INT(SIM_PRESENCE_OTHER, find_from(&a, next_qpn()));
	TEST_ASSERT_TRUE(send_to(&a, next_qpn(), 50, 3));
	TEST_ASSERT_TRUE(lags_to(&a, next_qpn()));
	child_kill(child);
	TEST_ASSERT_FALSE(lags_to(&a, next_qpn()));
	TEST_ASSERT_EQUAL_INT(SIM_PRESENCE_NOBODY, find_from(&b, next_qpn()));
	TEST_ASSERT_FALSE(send_to(&a, next_qpn(), 50, 3));
	TEST_ASSERT_EQUAL_UINT(UINT_MAX, room_to(&a, next_qpn()));
	receive(&a);
}

void test_a_full_ring_of_a_dead_process_holds_nobody_up(void)
{
	const pid_t child = child_begin(be_c);

	fill_ring(&a, next_qpn());
	child_kill(child);
	TEST_ASSERT_EQUAL_UINT(0, room_to(&a, next_qpn()));
	now_ns += 110000000;
	TEST_ASSERT_TRUE(receive(&a));
	TEST_ASSERT_EQUAL_UINT(1, a.ready);
	TEST_ASSERT_EQUAL_UINT(UINT_MAX, room_to(&a, next_qpn()));
	TEST_ASSERT_FALSE(send_to(&a, next_qpn(), 50, 3));
	TEST_ASSERT_EQUAL_INT(SIM_PRESENCE_NOBODY, find_from(&a, next_qpn()));
}

void test_a_full_ring_of_a_process_that_leaves_holds_nobody_up(void)
{
	fill_ring(&a, b.qpn);
	TEST_ASSERT_EQUAL_UINT(0, room_to(&a, b.qpn));
	TEST_ASSERT_FALSE(receive(&a));
	close_end(&b);
	TEST_ASSERT_TRUE(a.wire->arrived(a.wire));
	TEST_ASSERT_TRUE(receive(&a));
	TEST_ASSERT_EQUAL_UINT(1, a.ready);
	TEST_ASSERT_EQUAL_UINT(UINT_MAX, room_to(&a, b.qpn));
	TEST_ASSERT_FALSE(receive(&a));
}

/* --- fork() --- */

static int resume_a(void)
{
	const uint32_t qpn_of_b = b.qpn;

	let_go();
	if (send_to(&a, qpn_of_b, 50, 3) || receive(&a) || room_to(&a, qpn_of_b) != UINT_MAX ||
	    find_from(&a, qpn_of_b) == SIM_PRESENCE_OTHER)
		return 1;
	flush(&a);
	/* The second call finds the child attached. */
	for (unsigned int i = 0; i < 2; i++)
		if (a.wire->resume(a.wire))
			return 1;
	a.qpn = claim_qpn(&a, 0);
	if (a.qpn != next_qpn() || !send_to(&a, qpn_of_b, 90, 9))
		return 1;
	flush(&a);
	return 0;
}

void test_the_child_of_a_fork_becomes_a_process_of_its_own(void)
{
	const uint64_t identity = shared_identity(a.wire);
	const pid_t child = child_begin(resume_a);

	TEST_ASSERT_TRUE(receive(&b));
	TEST_ASSERT_EQUAL_UINT(90, b.bytes);
	TEST_ASSERT_TRUE(send_to(&b, a.qpn, 40, 4));
	TEST_ASSERT_TRUE(receive(&a));
	TEST_ASSERT_EQUAL_UINT(40, a.bytes);
	TEST_ASSERT_EQUAL_INT(SIM_PRESENCE_OTHER, find_from(&b, next_qpn()));
	child_kill(child);
	TEST_ASSERT_EQUAL_INT(SIM_PRESENCE_NOBODY, find_from(&b, next_qpn()));
	TEST_ASSERT_EQUAL_INT(SIM_PRESENCE_OTHER, find_from(&b, a.qpn));
	TEST_ASSERT_TRUE(identity == shared_identity(a.wire));
}

/* The child sends to itself, by a second attachment. */
static int begin_anew(void)
{
	let_go();
	occupy_mappings();
	if (a.wire->resume(a.wire) || has_work(&a) || receive(&a))
		return 1;
	a.qpn = claim_qpn(&a, 0);
	open_end(&c);
	if (!send_to(&c, a.qpn, 90, 9))
		return 1;
	flush(&c);
	return !has_work(&a) || !receive(&a) || a.bytes != 90;
}

/* The parent has received, and waits for room. */
void test_the_child_of_a_fork_begins_with_no_ring(void)
{
	TEST_ASSERT_TRUE(send_to(&b, a.qpn, 50, 3));
	TEST_ASSERT_TRUE(receive(&a));
	fill_ring(&a, b.qpn);
	child_kill(child_begin(begin_anew));
	TEST_ASSERT_FALSE(receive(&a));
	receive_all(&b);
	TEST_ASSERT_TRUE(receive(&a));
}

static pid_t *grandchild;

/* Returns when the grandchild has let go. */
static int fork_and_stay(void)
{
	int ends[2];
	char word;
	pid_t pid;

	let_go();
	open_end(&c);
	if (pipe(ends))
		return 1;
	pid = fork();
	if (!pid) {
		c.wire->forked(c.wire);
		alarm(60);
		_exit(write(ends[1], "", 1) == 1 && pause());
	}
	*grandchild = pid;
	return read(ends[0], &word, 1) != 1;
}

/* A child that has let go does not keep its dead parent alive for others. */
void test_a_parent_that_dies_before_its_child_is_dead(void)
{
	grandchild = mmap(NULL, sizeof(*grandchild), PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	child_kill(child_begin(fork_and_stay));
	TEST_ASSERT_EQUAL_INT(0, kill(*grandchild, 0));
	TEST_ASSERT_EQUAL_INT(SIM_PRESENCE_NOBODY, find_from(&a, next_qpn()));
	kill(*grandchild, SIGKILL);
	munmap(grandchild, sizeof(*grandchild));
}

/* --- threads --- */

#define THREAD_FRAMES 30000u

/* What a thread sends from one end to another. */
struct stream {
	struct end *from, *to;
	uint32_t next;
};

/* Sends as many frames as there is room for, a few at a time. */
static void send_some(struct stream *stream)
{
	for (unsigned int i = 0; i < 20 && stream->next < THREAD_FRAMES; i++) {
		if (!room_to(stream->from, stream->to->qpn))
			return;
		TEST_ASSERT_TRUE(send_to(stream->from, stream->to->qpn,
					 bytes_of_frame(stream->next),
					 value_of_frame(stream->next)));
		stream->next++;
	}
}

/* Sleeps when there is nothing to do. A bell that does not ring would let the test hang. */
static void *exchange(void *arg)
{
	struct stream *stream = arg;
	struct end *end = stream->from;
	struct bell *bell = shared_bell(end->wire);

	while (stream->next < THREAD_FRAMES || end->arrived < THREAD_FRAMES) {
		uint32_t seen, before = stream->next;

		send_some(stream);
		flush(end);
		if (receive(end) || stream->next != before)
			continue;
		flush(end);
		seen = bell_listen(bell);
		if (!receive(end))
			bell_wait(bell, seen, UINT64_MAX);
		bell_ignore(bell);
	}
	flush(end);
	return NULL;
}

void test_two_threads_lose_no_frame_and_no_call(void)
{
	struct stream forth = {.from = &a, .to = &b}, back = {.from = &b, .to = &a};
	pthread_t thread;

	TEST_ASSERT_TRUE(room_to(&a, b.qpn) < UINT_MAX);
	TEST_ASSERT_TRUE(room_to(&b, a.qpn) < UINT_MAX);
	in_threads = true;
	on_arrival = check_frame;
	alarm(120);
	TEST_ASSERT_EQUAL_INT(0, pthread_create(&thread, NULL, exchange, &back));
	exchange(&forth);
	pthread_join(thread, NULL);
	alarm(0);
	on_arrival = NULL;
	in_threads = false;
	TEST_ASSERT_EQUAL_UINT(THREAD_FRAMES, a.arrived);
	TEST_ASSERT_EQUAL_UINT(THREAD_FRAMES, b.arrived);
	TEST_ASSERT_EQUAL_UINT(0, a.wrong);
	TEST_ASSERT_EQUAL_UINT(0, b.wrong);
}

/* --- a full /dev/shm --- */

void test_a_ring_is_smaller_where_there_is_little_room(void)
{
	unsigned int room, small_room;

	room = room_to(&a, b.qpn);
	full_from_bytes = 30000;
	small_room = room_to(&b, a.qpn);
	full_from_bytes = 0;
	TEST_ASSERT_TRUE(small_room >= 3 && small_room < room);
	for (unsigned int i = 0; i < small_room; i++)
		TEST_ASSERT_TRUE(send_to(&b, a.qpn, SIM_FRAME_BYTES_MAX, 5));
	flush(&b);
	while (receive(&a))
		;
	TEST_ASSERT_EQUAL_UINT(small_room, a.arrived);
	expect_last(&a, SIM_FRAME_BYTES_MAX, 5);
}

void test_without_room_for_a_ring_packets_are_lost(void)
{
	full_from_bytes = 1;
	TEST_ASSERT_EQUAL_UINT(UINT_MAX, room_to(&a, b.qpn));
	TEST_ASSERT_FALSE(send_to(&a, b.qpn, 100, 5));
	full_from_bytes = 0;
	TEST_ASSERT_FALSE(send_to(&a, b.qpn, 100, 5));
	now_ns += 300000000;
	TEST_ASSERT_TRUE(send_to(&a, b.qpn, 100, 5));
	TEST_ASSERT_TRUE(receive(&b));
}

/* --- a world's lock that another process has --- */

/* Takes the lock as a process that makes its rings. Returns the descriptor that has it. */
static int take_lock(void)
{
	struct flock lock = {
		.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = SEGMENT_LOCK_BYTE, .l_len = 1};
	const int fd = open(world_path, O_RDWR | O_CLOEXEC);

	TEST_ASSERT_EQUAL_INT(0, fcntl(fd, F_OFD_SETLK, &lock));
	return fd;
}

/* At a crowded start, another process may have the lock for long. */
void test_packets_wait_for_the_lock_that_a_ring_needs(void)
{
	const int fd = take_lock();

	TEST_ASSERT_EQUAL_UINT(0, room_to(&a, b.qpn));
	TEST_ASSERT_TRUE(a.wire->arrived(a.wire));
	for (unsigned int looks = 0; looks < 10; looks++) {
		now_ns += 101000000;
		TEST_ASSERT_FALSE(receive(&a));
		TEST_ASSERT_EQUAL_UINT(0, room_to(&a, b.qpn));
	}
	close(fd);
	TEST_ASSERT_TRUE(receive(&a));
	TEST_ASSERT_EQUAL_UINT(1, a.ready);
	TEST_ASSERT_FALSE(a.wire->arrived(a.wire));
	TEST_ASSERT_NOT_EQUAL(0, room_to(&a, b.qpn));
	TEST_ASSERT_TRUE(send_to(&a, b.qpn, 100, 5));
	flush(&a);
	TEST_ASSERT_TRUE(receive(&b));
	expect_last(&b, 100, 5);
}

/* Many processes give the lock to each other, for longer than a process may keep it. */
void test_packets_wait_while_others_take_turns_with_the_lock(void)
{
	struct segment other;

	attach(&other);
	TEST_ASSERT_TRUE(segment_lock(&other, 0));
	TEST_ASSERT_EQUAL_UINT(0, room_to(&a, b.qpn));
	for (unsigned int turns = 0; turns < 100; turns++) {
		now_ns += 101000000;
		TEST_ASSERT_FALSE(receive(&a));
		TEST_ASSERT_EQUAL_UINT(0, room_to(&a, b.qpn));
		segment_unlock(&other);
		TEST_ASSERT_TRUE(segment_lock(&other, 0));
	}
	segment_unlock(&other);
	TEST_ASSERT_TRUE(receive(&a));
	TEST_ASSERT_TRUE(send_to(&a, b.qpn, 100, 5));
	places_leave(&other);
}

/* A process that is stopped while it has the lock holds up nobody for ever. */
void test_packets_do_not_wait_for_ever_for_the_lock(void)
{
	const int fd = take_lock();

	TEST_ASSERT_EQUAL_UINT(0, room_to(&a, b.qpn));
	now_ns += 4900000000;
	TEST_ASSERT_FALSE(receive(&a));
	now_ns += 101000000;
	TEST_ASSERT_TRUE(receive(&a));
	TEST_ASSERT_EQUAL_UINT(1, a.ready);
	TEST_ASSERT_EQUAL_UINT(UINT_MAX, room_to(&a, b.qpn));
	TEST_ASSERT_FALSE(send_to(&a, b.qpn, 100, 5));
	close(fd);
	now_ns += 300000000;
	TEST_ASSERT_TRUE(send_to(&a, b.qpn, 100, 5));
	flush(&a);
	TEST_ASSERT_TRUE(receive(&b));
}

/* The process that packets wait for ends before it has a ring. */
void test_packets_do_not_wait_for_a_process_that_leaves_before_it_has_a_ring(void)
{
	const uint32_t qpn = b.qpn;
	const int fd = take_lock();

	TEST_ASSERT_EQUAL_UINT(0, room_to(&a, qpn));
	close(fd);
	close_end(&b);
	TEST_ASSERT_TRUE(receive(&a));
	TEST_ASSERT_EQUAL_UINT(1, a.ready);
	TEST_ASSERT_EQUAL_UINT(UINT_MAX, room_to(&a, qpn));
}

/* --- processes that write nonsense --- */

static uint64_t state; /* of the random numbers */

static uint32_t random_below(uint32_t limit)
{
	return (uint32_t)(sim_random_next(&state) >> 33) % limit;
}

/* Numbers that are more likely to be taken for right than random ones. */
static uint64_t random_word(void)
{
	switch (random_below(4)) {
	case 0:
		return random_below(5);
	case 1:
		return UINT64_MAX << random_below(64);
	case 2:
		return segment_id_make(random_below(4), 1 + 2 * random_below(3));
	default:
		return sim_random_next(&state);
	}
}

static void scribble(uint8_t *bytes, size_t size)
{
	const uint64_t word = random_word();
	const size_t length = 1u << random_below(4);

	memcpy(bytes + random_below((uint32_t)(size / length)) * length, &word, length);
}

static void begin_nonsense(void)
{
	const uint64_t seed = choose_seed();

	signal(SIGALRM, on_alarm);
	alarm(120);
	state = seed;
}

/* The rings between a and b are not those that c writes over. */
void test_a_process_that_writes_over_its_rings_loses_its_own_packets_only(void)
{
	struct segment probe;
	struct area area;

	begin_nonsense();
	on_arrival = NULL;
	open_end(&c);
	attach(&probe);
	for (unsigned int i = 0; i < 3000; i++) {
		const unsigned int before_a = a.arrived, before_b = b.arrived;

		TEST_ASSERT_TRUE(send_to(&a, b.qpn, 100, 5));
		TEST_ASSERT_TRUE(send_to(&b, a.qpn, 100, 5));
		receive(&a);
		receive(&b);
		TEST_ASSERT_TRUE(a.arrived > before_a && b.arrived > before_b);
		room_to(&c, a.qpn);
		for (unsigned int j = random_below(3); j > 0; j--)
			send_to(&c, a.qpn, 1 + random_below(SIM_FRAME_BYTES_MAX), 9);
		receive(&c);
		for (uint32_t j = 0; j < atomic_load(&probe.header->areas_used); j++) {
			if (segment_id_place(areas_producer(&probe, j)) != 2 ||
			    !areas_whole(&probe, j) || random_below(3) ||
			    !areas_map(&probe, j, &area))
				continue;
			scribble((uint8_t *)area.memory, random_below(2) ? 4096 : area.capacity);
			areas_unmap(&area);
		}
		now_ns += 10000000;
	}
	places_leave(&probe);
	alarm(0);
}

/* Maps the ring from A to B. */
static void map_ring(struct segment *probe, struct area *area)
{
	uint32_t i = 0;

	attach(probe);
	while (areas_producer(probe, i) != shared_process(a.wire) || !areas_whole(probe, i))
		i++;
	TEST_ASSERT_TRUE(areas_map(probe, i, area));
}

static void unmap_ring(struct segment *probe, struct area *area)
{
	areas_unmap(area);
	places_leave(probe);
}

/* The word of the slot that B takes next: backends/sim/wire/shared_ring.c. */
static void change_word(uint64_t cleared, uint64_t flipped)
{
	struct segment probe;
	struct area area;
	uint64_t *word;

	map_ring(&probe, &area);
	word = (uint64_t *)(area.memory->slots +
			    (atomic_load(&area.memory->head) & (area.capacity - 1)));
	*word = (*word & ~cleared) ^ flipped;
	unmap_ring(&probe, &area);
}

/* The ring ends, and gives way to another one. */
void test_a_word_that_no_sender_writes(void)
{
	static const struct {
		uint64_t cleared, flipped;
	} rows[] = {
		{0, UINT64_C(1) << 16},	     /* another mark */
		{0, 1},			     /* another place in the ring */
		{UINT64_C(0xffff) << 48, 0}, /* no byte */
		{UINT64_C(0xffff) << 48, (SIM_FRAME_BYTES_MAX + UINT64_C(1)) << 48}, /* too many */
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		TEST_ASSERT_FALSE(comes_bare());
		TEST_ASSERT_TRUE(comes_bare());
		b.arrived = 0;
		TEST_ASSERT_TRUE(send_to(&a, b.qpn, 100, 7));
		change_word(rows[i].cleared, rows[i].flipped);
		receive_all(&b);
		TEST_ASSERT_EQUAL_UINT(0, b.arrived);
		receive_all(&a);
	}
	TEST_ASSERT_FALSE(comes_bare());
}

/* The bytes of a train are fewer than those of the number of its packets. */
void test_a_train_without_its_number(void)
{
	const uint64_t kinds = (uint64_t)(RING_BARE ^ RING_TRAIN) << 24;
	const uint64_t lengths = UINT64_C(0xffff) << 48;

	TEST_ASSERT_FALSE(comes_bare());
	TEST_ASSERT_TRUE(comes_bare());
	for (uint64_t length = 1; length < 6; length++) {
		b.arrived = 0;
		TEST_ASSERT_TRUE(send_to(&a, b.qpn, 100, 7));
		change_word(lengths, length << 48 ^ kinds);
		receive_all(&b);
		TEST_ASSERT_EQUAL_UINT(length >= RING_TRAIN_COUNT_BYTES, b.arrived);
		if (b.arrived)
			TEST_ASSERT_EQUAL_UINT(length - RING_TRAIN_COUNT_BYTES, b.bytes);
		/* The consumer goes on behind a shorter slot than the producer has written. */
		receive_all(&a);
		TEST_ASSERT_FALSE(comes_bare());
		TEST_ASSERT_TRUE(comes_bare());
	}
}

/* The route of a train's number is not known. */
void test_a_train_without_a_route(void)
{
	b.arrived = 0;
	TEST_ASSERT_TRUE(send_to(&a, b.qpn, 100, 7));
	change_word(0, (uint64_t)(RING_WHOLE ^ RING_TRAIN) << 24);
	receive_all(&b);
	TEST_ASSERT_EQUAL_UINT(0, b.arrived);
}

/* The word of the slot is right but for the device or the port, which the world does not have. */
void test_a_frame_for_nothing_of_the_world(void)
{
	static const uint64_t flipped[] = {
		UINT64_C(2) << 40,   UINT64_C(63) << 40, UINT64_C(64) << 40, UINT64_C(65) << 40,
		UINT64_C(255) << 40, UINT64_C(2) << 32,	 UINT64_C(1) << 32,  UINT64_C(255) << 32};

	TEST_ASSERT_FALSE(comes_bare());
	for (size_t i = 0; i < sizeof(flipped) / sizeof(flipped[0]); i++) {
		b.arrived = 0;
		TEST_ASSERT_TRUE(send_to(&a, b.qpn, 100, 7));
		change_word(0, flipped[i]);
		receive_all(&b);
		TEST_ASSERT_EQUAL_UINT(0, b.arrived);
		TEST_ASSERT_TRUE(comes_bare());
	}
}

/* --- calls --- */

static void count_call(void *arg, uint64_t from, const uint8_t *bytes, size_t length)
{
	unsigned int *calls = arg;

	(void)bytes;
	TEST_ASSERT_TRUE(from == shared_process(a.wire));
	TEST_ASSERT_TRUE(length <= SHARED_CALL_BYTES);
	(*calls)++;
}

void test_a_call_has_a_length(void)
{
	static const uint8_t bytes[SHARED_CALL_BYTES + 1];
	unsigned int calls = 0;

	shared_take_calls(b.wire, count_call, &calls);
	TEST_ASSERT_TRUE(shared_call(a.wire, shared_process(b.wire), bytes, SHARED_CALL_BYTES));
	TEST_ASSERT_TRUE(shared_call(a.wire, shared_process(b.wire), bytes, sizeof(bytes)));
	receive_all(&b);
	TEST_ASSERT_EQUAL_UINT(1, calls);
}

/* A place whose ring is another one since the last flush is woken once. */
void test_a_new_process_at_a_place_is_woken_once(void)
{
	uint32_t before;

	TEST_ASSERT_TRUE(send_to(&a, b.qpn, 1, 1));
	close_end(&b);
	open_end(&b);
	bell_listen(shared_bell(b.wire));
	/* The news of a ring wakes its receiver, too. */
	TEST_ASSERT_TRUE(send_to(&a, b.qpn, 1, 1));
	before = rings(&b);
	flush(&a);
	TEST_ASSERT_EQUAL_UINT32(before + 1, rings(&b));
}

/* Packets are lost and blocks are nobody's; nothing hangs, and memory is not touched. */
static void do_everything(struct end *end, uint32_t qpn)
{
	uint32_t block;
	uint16_t generation;

	room_to(end, qpn);
	send_to(end, qpn, 1 + random_below(SIM_FRAME_BYTES_MAX), 9);
	send_to(end, MULTICAST_QPN, 10, 9);
	find_from(end, qpn);
	find_from(end, random_below(1u << 24));
	end->wire->way.joined(end->wire->way.arg, &end->devices[0], random_below(2));
	end->wire->way.has_members(end->wire->way.arg, &end->devices[0].ports[0]);
	if (!random_below(4))
		shared_claim(end->wire, random_below(3), random_below(SIM_NUMBERS), &block,
			     &generation);
	receive(end);
	flush(end);
}

void test_a_process_that_writes_over_the_world_hangs_nobody(void)
{
	begin_nonsense();
	for (unsigned int i = 0; i < 60; i++) {
		struct segment hostile;

		attach(&hostile);
		for (unsigned int j = 0; j < 100; j++) {
			static const struct {
				size_t at, bytes;
			} parts[] = {{0, SEGMENT_PAGE},
				     {0, 256},
				     {SEGMENT_PLACES_AT, 2048},
				     {SEGMENT_ROWS_AT, 64},
				     {SEGMENT_TABLE_AT, 256}};
			const unsigned int part = random_below(5);

			scribble(hostile.map + parts[part].at, parts[part].bytes);
			do_everything(&a, b.qpn);
			do_everything(&b, a.qpn);
			now_ns += 50000000;
		}
		segment_drop(&hostile);
		close_end(&a);
		close_end(&b);
		TEST_ASSERT_FALSE(world_exists());
		open_end(&a);
		open_end(&b);
	}
	alarm(0);
}
