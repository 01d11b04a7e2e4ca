/* SPDX-License-Identifier: MIT */
#include "backends/sim/base/handles.h"
#include "backends/sim/base/pool.h"
#include "unity.h"

#include <stdlib.h>

static struct pool pool;
static struct handles handles;

void setUp(void)
{
	pool_init(&pool, 100);
	handles_init(&handles);
}

void tearDown(void)
{
	pool_end(&pool);
	handles_end(&handles);
}

void test_an_object_that_was_given_back_rests(void)
{
	uint8_t *first = pool_take(&pool);

	TEST_ASSERT_EQUAL_INT(0, (uintptr_t)first % 64);
	TEST_ASSERT_EQUAL_INT(0, (uintptr_t)pool_take(&pool) % 64);
	memset(first, 0xaa, 100);
	pool_give(&pool, first);
	TEST_ASSERT_EQUAL_HEX8(0xaa, first[50]);
	for (int i = 0; i < 200; i++) {
		void *next = pool_take(&pool);

		TEST_ASSERT_TRUE(next != first);
		pool_give(&pool, next);
	}
}

/* Two objects never share a cache line. */
void test_small_objects_are_aligned_too(void)
{
	struct pool small;

	pool_init(&small, 20);
	for (int i = 0; i < 4; i++)
		TEST_ASSERT_EQUAL_INT(0, (uintptr_t)pool_take(&small) % 64);
	pool_end(&small);
}

void test_objects_come_back_in_the_end_and_zeroed(void)
{
	uint8_t *first = pool_take(&pool);
	bool came = false;

	memset(first, 0xaa, 100);
	pool_give(&pool, first);
	for (int i = 0; i < 2000 && !came; i++) {
		uint8_t *next = pool_take(&pool);

		came = next == first;
		for (int b = 0; b < 100; b++)
			TEST_ASSERT_EQUAL_HEX8(0, next[b]);
		memset(next, 0xbb, 100);
		pool_give(&pool, next);
	}
	TEST_ASSERT_TRUE(came);
}

void test_live_objects_are_distinct(void)
{
	static uint32_t *all[1000];

	for (uint32_t i = 0; i < 1000; i++) {
		all[i] = pool_take(&pool);
		*all[i] = i;
	}
	for (uint32_t i = 0; i < 1000; i += 2)
		pool_give(&pool, all[i]);
	for (uint32_t i = 0; i < 1000; i += 2) {
		all[i] = pool_take(&pool);
		*all[i] = i;
	}
	for (uint32_t i = 0; i < 1000; i++)
		TEST_ASSERT_EQUAL_UINT32(i, *all[i]);
}

void test_a_handle_leads_to_its_object_only(void)
{
	static long objects[100];
	uint32_t numbers[100];
	uint32_t again;

	for (int i = 0; i < 100; i++)
		TEST_ASSERT_EQUAL_INT(0, handles_add(&handles, &objects[i], &numbers[i]));
	for (int i = 0; i < 100; i++) {
		TEST_ASSERT_TRUE(handles_has(&handles, numbers[i], &objects[i]));
		TEST_ASSERT_FALSE(handles_has(&handles, numbers[i], &objects[(i + 1) % 100]));
	}
	TEST_ASSERT_FALSE(handles_has(&handles, 100, &objects[0]));
	TEST_ASSERT_FALSE(handles_has(&handles, UINT32_MAX, &objects[0]));
	handles_remove(&handles, numbers[7]);
	TEST_ASSERT_FALSE(handles_has(&handles, numbers[7], &objects[7]));
	TEST_ASSERT_EQUAL_UINT32(99, handles.live);
	TEST_ASSERT_EQUAL_INT(0, handles_add(&handles, &objects[8], &again));
	TEST_ASSERT_FALSE(handles_has(&handles, again, &objects[7]));
}

void test_a_free_handle_leads_nowhere(void)
{
	static long objects[3];
	uint32_t numbers[3];

	TEST_ASSERT_NULL(handles_at(&handles, 0));
	for (int i = 0; i < 3; i++)
		TEST_ASSERT_EQUAL_INT(0, handles_add(&handles, &objects[i], &numbers[i]));
	handles_remove(&handles, numbers[1]);
	TEST_ASSERT_EQUAL_PTR(&objects[0], handles_at(&handles, numbers[0]));
	TEST_ASSERT_NULL(handles_at(&handles, numbers[1]));
	TEST_ASSERT_EQUAL_PTR(&objects[2], handles_at(&handles, numbers[2]));
	TEST_ASSERT_NULL(handles_at(&handles, 3));
	TEST_ASSERT_NULL(handles_at(&handles, UINT32_MAX));
}

void test_next_visits_the_live_ones(void)
{
	static long objects[10];
	uint32_t numbers[10], at = 0;
	int seen = 0;

	for (int i = 0; i < 10; i++)
		handles_add(&handles, &objects[i], &numbers[i]);
	for (int i = 0; i < 10; i += 3)
		handles_remove(&handles, numbers[i]);
	for (long *object; (object = handles_next(&handles, &at)); seen++)
		TEST_ASSERT_NOT_EQUAL(0, (object - objects) % 3);
	TEST_ASSERT_EQUAL_INT(6, seen);
}
