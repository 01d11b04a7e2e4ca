/* SPDX-License-Identifier: MIT */
/* A ring of the wire `shared`: when the consumer finds frames, and that their bytes are whole. */
#include "backends/sim/wire/shared_ring.h"
#include "sim/base/core.h"
#include "test/unit/seed.h"
#include "unity.h"

#include <stdlib.h>
#include <string.h>

#define CAPACITY   (64u << 10)
#define LONG_BYTES 4096u

/* So many long frames come to the consumer together. */
#define TOGETHER 8u

static struct ring_memory *memory;
static struct ring_out out;
static struct ring_in in;
static unsigned int written, found;
static uint32_t lengths[1u << 16];

void setUp(void)
{
	memory = aligned_alloc(128, RING_BYTES(CAPACITY));
	TEST_ASSERT_NOT_NULL(memory);
	/* What an earlier ring has left in its area is no frame of this one. */
	memset(memory, 0xb5, RING_BYTES(CAPACITY));
	ring_init(memory);
	out = (struct ring_out){.memory = memory, .capacity = CAPACITY};
	in = (struct ring_in){.memory = memory, .capacity = CAPACITY};
	written = found = 0;
}

void tearDown(void)
{
	free(memory);
}

static void fill(uint8_t *frame, unsigned int number, uint32_t bytes)
{
	for (uint32_t i = 0; i < bytes; i++)
		frame[i] = (uint8_t)(number * 7 + i * 31 + i / 251);
}

static uint8_t kind_of(uint32_t bytes)
{
	return bytes > SIM_FRAME_BYTES_MAX ? RING_TRAIN : RING_BARE;
}

/* Returns false without room. */
static bool write_one(uint32_t bytes)
{
	uint8_t *frame = ring_reserve(&out);

	if (!frame)
		return false;
	fill(frame, written, bytes);
	ring_publish(&out, &(struct ring_slot){.frame_bytes = bytes,
					       .device = 3,
					       .port = 2,
					       .kind = kind_of(bytes),
					       .route = written % RING_ROUTES});
	lengths[written++] = bytes;
	return true;
}

/* Takes a frame and checks it. Returns false if the ring is empty. */
static bool read_one(void)
{
	uint8_t expected[CAPACITY];
	struct ring_slot slot;
	const enum ring_look look = ring_look(&in, &slot);

	TEST_ASSERT_TRUE(look != RING_BROKEN);
	TEST_ASSERT_EQUAL_INT(look == RING_EMPTY, ring_is_empty(&in));
	if (look == RING_EMPTY)
		return false;
	TEST_ASSERT_TRUE(found < written);
	TEST_ASSERT_EQUAL_UINT32(lengths[found], slot.frame_bytes);
	TEST_ASSERT_EQUAL_UINT8(3, slot.device);
	TEST_ASSERT_EQUAL_UINT8(2, slot.port);
	TEST_ASSERT_EQUAL_UINT8(kind_of(slot.frame_bytes), slot.kind);
	TEST_ASSERT_EQUAL_UINT8(found % RING_ROUTES, slot.route);
	fill(expected, found++, slot.frame_bytes);
	TEST_ASSERT_EQUAL_MEMORY(expected, slot.frame, slot.frame_bytes);
	ring_next(&in, &slot);
	ring_tell(&in);
	return true;
}

/* The consumer takes all that it finds, up to the frame of this number. */
static void expect_found(unsigned int count)
{
	while (read_one())
		;
	TEST_ASSERT_EQUAL_UINT(count, found);
}

void test_long_frames_come_together(void)
{
	for (unsigned int round = 0; round < 40; round++) {
		const unsigned int before = written;

		while (written < before + TOGETHER) {
			expect_found(before);
			TEST_ASSERT_TRUE(write_one(LONG_BYTES));
		}
		expect_found(before + TOGETHER);
	}
}

/* After each number of withheld frames, in each place of the ring. */
void test_a_flush_hands_over_the_frames_that_are_withheld(void)
{
	for (unsigned int round = 0; round < 60; round++) {
		const unsigned int before = written;

		ring_flush(&out);
		expect_found(before);
		for (unsigned int i = 0; i <= round % (TOGETHER - 1); i++)
			TEST_ASSERT_TRUE(write_one(LONG_BYTES));
		expect_found(before);
		ring_flush(&out);
		expect_found(written);
	}
}

void test_a_short_frame_hands_over_the_long_ones_before_it(void)
{
	for (unsigned int round = 0; round < 60; round++) {
		for (unsigned int i = 0; i < round % TOGETHER; i++)
			TEST_ASSERT_TRUE(write_one(LONG_BYTES));
		TEST_ASSERT_TRUE(write_one(64));
		expect_found(written);
	}
}

/* The consumer has not taken withheld frames, even if it has taken all before them. */
void test_withheld_frames_are_not_taken(void)
{
	TEST_ASSERT_TRUE(ring_is_taken(&out));
	TEST_ASSERT_TRUE(write_one(LONG_BYTES));
	expect_found(0);
	TEST_ASSERT_FALSE(ring_is_taken(&out));
	ring_flush(&out);
	expect_found(1);
	TEST_ASSERT_TRUE(ring_is_taken(&out));
}

/* A train is at most an eighth of the ring, with its word, and ends before the ring. */
void test_trains_come_at_once_and_stay_within_the_ring(void)
{
	unsigned int longest = 0, shorter = 0;

	for (unsigned int round = 0; round < 600; round++) {
		const uint32_t at = out.tail % CAPACITY;
		const uint32_t bytes = ring_longest(&out);

		TEST_ASSERT_TRUE(bytes <= CAPACITY / 8 - 8);
		TEST_ASSERT_TRUE(at + 8 + bytes <= CAPACITY);
		longest += bytes == CAPACITY / 8 - 8;
		shorter += bytes < CAPACITY / 8 - 8;
		if (round % 3 == 0)
			TEST_ASSERT_TRUE(write_one(LONG_BYTES));
		else if (bytes > SIM_FRAME_BYTES_MAX)
			TEST_ASSERT_TRUE(write_one(bytes));
		else
			TEST_ASSERT_TRUE(write_one(64));
		if (round % 3)
			expect_found(written);
	}
	TEST_ASSERT_TRUE(longest > 100 && shorter > 10);
}

/* No train is written over a frame that the consumer has not taken. */
void test_trains_that_fill_the_ring_stay_whole(void)
{
	unsigned int trains = 0;

	for (unsigned int lap = 0; lap < 7; lap++) {
		for (uint32_t bytes; (bytes = ring_longest(&out)) > SIM_FRAME_BYTES_MAX; trains++)
			TEST_ASSERT_TRUE(write_one(bytes));
		TEST_ASSERT_TRUE(ring_longest(&out) <= SIM_FRAME_BYTES_MAX);
		expect_found(written);
		for (unsigned int i = 0; i <= lap; i++)
			write_one(LONG_BYTES - 64 * lap);
		ring_flush(&out);
		expect_found(written);
	}
	TEST_ASSERT_TRUE(trains > 7 * 3);
}

/* The consumer takes no slot that reaches beyond the ring or is longer than any producer makes it. */
void test_words_that_no_producer_stores(void)
{
	static const struct {
		uint32_t at, bytes;
		uint8_t kind;
		enum ring_look look;
	} rows[] = {
		{0, SIM_FRAME_BYTES_MAX, RING_BARE, RING_FRAME},
		{0, SIM_FRAME_BYTES_MAX + 1, RING_BARE, RING_BROKEN},
		{0, SIM_FRAME_BYTES_MAX + 1, RING_WHOLE, RING_BROKEN},
		{0, SIM_FRAME_BYTES_MAX + 1, RING_TRAIN, RING_FRAME},
		{0, RING_TRAIN_HEAD_BYTES + SIM_TRAIN_BYTES_MAX, RING_TRAIN, RING_FRAME},
		{0, RING_TRAIN_HEAD_BYTES + SIM_TRAIN_BYTES_MAX + 1, RING_TRAIN, RING_BROKEN},
		{CAPACITY - 5 * 1024, 5 * 1024 - 8, RING_TRAIN, RING_FRAME},
		{CAPACITY - 5 * 1024, 5 * 1024 - 7, RING_TRAIN, RING_BROKEN},
		{CAPACITY - RING_LINE, SIM_FRAME_BYTES_MAX, RING_TRAIN, RING_FRAME},
		{0, 100, RING_KINDS - 1, RING_FRAME},
		{0, 100, RING_KINDS, RING_BROKEN},
		{0, 100, RING_KIND_MASK, RING_BROKEN},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct ring_slot slot = {.frame_bytes = rows[i].bytes, .kind = rows[i].kind};

		out.tail = out.head = in.head = rows[i].at;
		ring_publish(&out, &slot);
		ring_flush(&out);
		TEST_ASSERT_EQUAL_INT(rows[i].look, ring_look(&in, &slot));
	}
}

/* A full ring: no frame is written over one that the consumer has not taken. */
void test_frames_that_fill_the_ring_stay_whole(void)
{
	for (unsigned int lap = 0; lap < 5; lap++) {
		while (write_one(LONG_BYTES - 64 * lap))
			;
		TEST_ASSERT_FALSE(write_one(64));
		ring_flush(&out);
		expect_found(written);
	}
}

void test_frames_of_any_length_come_in_order(void)
{
	uint64_t random = choose_seed();

	for (unsigned int i = 0; i < 40000; i++) {
		const uint64_t draw = sim_random_next(&random);
		const bool is_long = draw & 1;
		const uint32_t least = is_long ? RING_LONG_BYTES : 1;
		const uint32_t most = is_long ? SIM_FRAME_BYTES_MAX : RING_LONG_BYTES;

		if ((draw >> 44) % 5 || ring_longest(&out) <= SIM_FRAME_BYTES_MAX)
			write_one(least + (uint32_t)(draw >> 8) % (most - least + 1));
		else
			write_one(SIM_FRAME_BYTES_MAX + 1 +
				  (uint32_t)(draw >> 8) %
					  (ring_longest(&out) - SIM_FRAME_BYTES_MAX));
		if ((draw >> 40) % 7 == 0)
			ring_flush(&out);
		for (unsigned int taken = (draw >> 48) % 3; taken && read_one(); taken--)
			;
	}
	ring_flush(&out);
	expect_found(written);
	TEST_ASSERT_TRUE(written > 10000);
}
