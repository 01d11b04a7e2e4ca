/* SPDX-License-Identifier: MIT */
/* Areas for rings in a shared world: who lets go of an end, and when the area is free. */
#include "test/unit/free_room.h"
#include "test/unit/shared_world.h"

static struct segment a, b, c;

void setUp(void)
{
	name_world();
	attach(&a);
	attach(&b);
	attach(&c);
}

void tearDown(void)
{
	places_leave(&a);
	places_leave(&b);
	places_leave(&c);
	TEST_ASSERT_FALSE(world_exists());
}

static void take(struct segment *producer, segment_id consumer, struct area *area)
{
	TEST_ASSERT_TRUE(segment_lock(producer, 0));
	TEST_ASSERT_TRUE(areas_take(producer, consumer, area));
	segment_unlock(producer);
}

/* Makes a ring from a to b. */
static void join_ends(struct area *out, struct area *in)
{
	take(&a, b.id, out);
	TEST_ASSERT_TRUE(areas_map(&b, out->index, in));
	in->index = out->index;
	TEST_ASSERT_TRUE(areas_whole(&a, out->index));
}

static bool holds(const struct segment *segment, enum area_state end, uint32_t index)
{
	uint32_t cursor = 0, found;

	while (areas_next(segment, end, &cursor, &found))
		if (found == index)
			return true;
	return false;
}

/* Each end is let go by itself, in any order; then the next ring takes the area. */
void test_an_area_is_free_when_both_ends_have_let_go(void)
{
	for (unsigned int round = 0; round < 4; round++) {
		struct area out, in;

		join_ends(&out, &in);
		TEST_ASSERT_EQUAL_UINT32(0, out.index);
		if (round % 2) {
			TEST_ASSERT_TRUE(areas_release(&a, &out, AREA_PRODUCER, 0));
			TEST_ASSERT_FALSE(holds(&a, AREA_PRODUCER, 0));
			TEST_ASSERT_TRUE(holds(&b, AREA_CONSUMER, 0));
		}
		TEST_ASSERT_FALSE(areas_whole(&a, 0) && round % 2);
		TEST_ASSERT_TRUE(areas_release(&b, &in, AREA_CONSUMER, 0));
		TEST_ASSERT_NULL(in.memory);
		TEST_ASSERT_FALSE(holds(&b, AREA_CONSUMER, 0));
		if (round % 2 == 0) {
			TEST_ASSERT_TRUE(holds(&a, AREA_PRODUCER, 0));
			TEST_ASSERT_FALSE(areas_whole(&a, 0));
			TEST_ASSERT_TRUE(areas_release(&a, &out, AREA_PRODUCER, 0));
		}
		TEST_ASSERT_NULL(out.memory);
	}
}

/* An end that was taken from a process, which others thought dead, is not given back a second time: the area
 * has a new ring meanwhile. */
void test_an_end_that_another_process_has_is_left_alone(void)
{
	struct area out, in, next, next_in;

	join_ends(&out, &in);
	TEST_ASSERT_TRUE(segment_lock(&b, 0));
	areas_free(&b, a.id);
	segment_unlock(&b);
	TEST_ASSERT_TRUE(areas_release(&b, &in, AREA_CONSUMER, 0));
	take(&c, b.id, &next);
	TEST_ASSERT_EQUAL_UINT32(out.index, next.index);
	TEST_ASSERT_TRUE(areas_map(&b, next.index, &next_in));
	next_in.index = next.index;
	TEST_ASSERT_TRUE(areas_release(&a, &out, AREA_PRODUCER, 0));
	TEST_ASSERT_TRUE(areas_whole(&c, next.index));
	TEST_ASSERT_TRUE(areas_producer(&b, next.index) == c.id);
	TEST_ASSERT_TRUE(areas_release(&b, &next_in, AREA_CONSUMER, 0));
	TEST_ASSERT_TRUE(areas_release(&c, &next, AREA_PRODUCER, 0));
}

/* Who does not get the lock keeps the end, and may let go later. */
void test_a_busy_lock_changes_nothing(void)
{
	struct area out, in;

	join_ends(&out, &in);
	TEST_ASSERT_TRUE(segment_lock(&c, 0));
	TEST_ASSERT_FALSE(areas_release(&b, &in, AREA_CONSUMER, 0));
	TEST_ASSERT_NOT_NULL(in.memory);
	TEST_ASSERT_TRUE(areas_whole(&a, out.index));
	segment_unlock(&c);
	TEST_ASSERT_TRUE(areas_release(&b, &in, AREA_CONSUMER, 0));
	TEST_ASSERT_FALSE(areas_whole(&a, out.index));
	/* The lock is free again. */
	TEST_ASSERT_TRUE(segment_lock(&c, 0));
	segment_unlock(&c);
	TEST_ASSERT_TRUE(areas_release(&a, &out, AREA_PRODUCER, 0));
}

/* The other end learns that something has changed. */
void test_letting_go_is_news_for_the_other_end(void)
{
	struct area out, in;
	uint32_t news;

	join_ends(&out, &in);
	news = atomic_load(&segment_place_at(&a, a.place)->news);
	TEST_ASSERT_TRUE(areas_release(&b, &in, AREA_CONSUMER, 0));
	TEST_ASSERT_NOT_EQUAL(news, atomic_load(&segment_place_at(&a, a.place)->news));
	TEST_ASSERT_TRUE(areas_release(&a, &out, AREA_PRODUCER, 0));
}

/* A process was killed while it freed an area: nobody holds an end any more. The next process that buries another
 * one frees the area. */
void test_an_area_that_is_half_freed_is_free_after_the_next_burial(void)
{
	struct area out, in, next;

	join_ends(&out, &in);
	areas_unmap(&out);
	areas_unmap(&in);
	atomic_store(&segment_area_at(&a, out.index)->state, AREA_TAKEN);
	TEST_ASSERT_TRUE(segment_lock(&c, 0));
	areas_free(&c, a.id);
	segment_unlock(&c);
	take(&b, c.id, &next);
	TEST_ASSERT_EQUAL_UINT32(out.index, next.index);
	TEST_ASSERT_TRUE(areas_release(&b, &next, AREA_PRODUCER, 0));
}

/* So many rings, which nobody holds. */
static void pretend(uint32_t rings)
{
	const size_t bytes = (rings + 1) * sizeof(struct segment_area);

	TEST_ASSERT_EQUAL_INT(0, segment_allocate(&a, SEGMENT_TABLE_AT, bytes));
	for (uint32_t i = 0; i < rings; i++)
		atomic_store(&segment_area_at(&a, i)->state, AREA_TAKEN);
	atomic_store(&a.header->areas_used, rings);
}

/* The more rings there are and the less room, the smaller is the next ring. */
void test_rings_fit_into_what_is_free(void)
{
	static const struct {
		uint32_t rings;
		uint64_t room_mib;
		uint32_t capacity_kib;
	} rows[] = {
		{0, 1024, 2048},  {7, 1024, 2048},  {8, 1024, 1024}, {15, 1024, 1024},
		{16, 1024, 512},  {31, 1024, 512},  {32, 1024, 256}, {63, 1024, 256},
		{64, 1024, 128},  {511, 1024, 128}, {512, 1024, 64}, {2047, 1024, 64},
		{2048, 1024, 32}, {9000, 1024, 32}, {0, 512, 2048},  {0, 256, 1024},
		{0, 64, 256},	  {0, 32, 128},	    {0, 8, 32},	     {0, 2, 16},
		{0, 1, 16},	  {100, 8, 32},	    {600, 4, 16},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct area out, in;

		pretend(rows[i].rings);
		free_room_bytes = rows[i].room_mib << 20;
		take(&a, b.id, &out);
		free_room_bytes = 0;
		TEST_ASSERT_EQUAL_UINT32(rows[i].capacity_kib << 10, out.capacity);
		/* The whole ring is memory, at both ends. */
		TEST_ASSERT_TRUE(areas_map(&b, out.index, &in));
		in.index = out.index;
		memset(out.memory->slots, (int)i + 1, out.capacity);
		TEST_ASSERT_EQUAL_MEMORY(out.memory->slots, in.memory->slots, out.capacity);
		TEST_ASSERT_TRUE(areas_release(&b, &in, AREA_CONSUMER, 0));
		TEST_ASSERT_TRUE(areas_release(&a, &out, AREA_PRODUCER, 0));
	}
	pretend(0);
}

/* The next larger class would reach into the next area. */
void test_a_class_that_no_process_stores_is_not_mapped(void)
{
	static const uint32_t classes[] = {8, 9, 32, UINT32_MAX};
	struct area out, in;
	_Atomic uint32_t *size_class;

	join_ends(&out, &in);
	size_class = &segment_area_at(&a, out.index)->size_class;
	areas_unmap(&in);
	for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++) {
		atomic_store(size_class, classes[i]);
		TEST_ASSERT_FALSE(areas_map(&b, out.index, &in));
	}
	atomic_store(size_class, 0);
	TEST_ASSERT_TRUE(areas_map(&b, out.index, &in));
	TEST_ASSERT_TRUE(areas_release(&b, &in, AREA_CONSUMER, 0));
	TEST_ASSERT_TRUE(areas_release(&a, &out, AREA_PRODUCER, 0));
}
