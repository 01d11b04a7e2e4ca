/* SPDX-License-Identifier: MIT */
/* Held memory: the program sees the old bytes until they are released, and adapters the new ones. */
#include "src/guard/guard.h"
#include "src/guard/held.h"
#include "unity.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define OLD 1
#define NEW 2

static size_t page;
static uint8_t *map; /* four pages */
static uint8_t source[16384];
static unsigned int came_count, touched_count, touched_number;
static size_t came_bytes;
static bool touched_writes;

static void came(unsigned int number, const void *memory, size_t length_bytes)
{
	came_count++;
	came_bytes += length_bytes;
}

static void touched(unsigned int number, const struct guard_fault *fault)
{
	touched_count++;
	touched_number = number;
	touched_writes = fault->writes;
}

static struct held_watch watch = {.came = came, .touched = touched};

void setUp(void)
{
	page = (size_t)sysconf(_SC_PAGESIZE);
	map = mmap(NULL, 4 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	TEST_ASSERT_TRUE(map != MAP_FAILED);
	memset(map, OLD, 4 * page);
	memset(source, NEW, sizeof(source));
	came_count = touched_count = touched_number = 0;
	came_bytes = 0;
	watch.protects = false;
	held_start(&watch);
}

void tearDown(void)
{
	held_stop();
	munmap(map, 4 * page);
}

static void adapter_writes(uint8_t *to, size_t length_bytes)
{
	TEST_ASSERT_EQUAL_INT(0, held_copy(guard_copy, to, source, length_bytes));
}

/* What an adapter reads. */
static uint8_t adapter_reads(const uint8_t *from)
{
	uint8_t byte = 0;

	TEST_ASSERT_EQUAL_INT(0, held_copy(guard_copy, &byte, from, 1));
	return byte;
}

/* The test runner installs its handler before each test. */
static void protect_pages(void)
{
	guard_install();
	watch.protects = true;
}

static unsigned int hold(uint8_t *memory, size_t length_bytes)
{
	const int number = held_add(memory, length_bytes);

	TEST_ASSERT_TRUE(number >= 0);
	return (unsigned int)number;
}

void test_program_sees_old_bytes_and_adapters_new_ones(void)
{
	const unsigned int number = hold(map + 100, 200);

	TEST_ASSERT_FALSE(held_has_come(number));
	adapter_writes(map + 90, 220);
	TEST_ASSERT_TRUE(held_has_come(number));
	TEST_ASSERT_EQUAL_UINT(1, came_count);
	TEST_ASSERT_EQUAL_UINT64(200, came_bytes);
	for (size_t i = 80; i < 320; i++) {
		const bool written = i >= 90 && i < 310, held = i >= 100 && i < 300;

		TEST_ASSERT_EQUAL_UINT8(written && !held ? NEW : OLD, map[i]);
		TEST_ASSERT_EQUAL_UINT8(written ? NEW : OLD, adapter_reads(map + i));
	}
	held_release(number);
	TEST_ASSERT_EQUAL_UINT8(OLD, map[89]);
	TEST_ASSERT_EQUAL_UINT8(NEW, map[100]);
	TEST_ASSERT_EQUAL_UINT8(NEW, map[299]);
	TEST_ASSERT_EQUAL_UINT8(OLD, map[310]);
}

/* A packet that is written behind a gap, and one before it. */
void test_bytes_between_writes_stay_as_the_program_has_left_them(void)
{
	const unsigned int number = hold(map, 100);

	adapter_writes(map + 40, 10);
	map[20] = 7;
	map[55] = 8;
	adapter_writes(map + 60, 10);
	adapter_writes(map, 10);
	TEST_ASSERT_EQUAL_UINT8(OLD, map[0]);
	held_release(number);
	for (size_t i = 0; i < 100; i++) {
		const bool written = i < 10 || (i >= 40 && i < 50) || (i >= 60 && i < 70);

		TEST_ASSERT_EQUAL_UINT8(i == 20 ? 7 : i == 55 ? 8 : written ? NEW : OLD, map[i]);
	}
}

void test_copy_goes_through_several_ranges(void)
{
	const unsigned int first = hold(map + 10, 10), second = hold(map + 30, 10);
	uint8_t found[50];

	adapter_writes(map, 50);
	TEST_ASSERT_EQUAL_UINT(2, came_count);
	TEST_ASSERT_EQUAL_INT(0, held_copy(guard_copy, found, map, sizeof(found)));
	TEST_ASSERT_EQUAL_INT(0, memcmp(found, source, sizeof(found)));
	held_release(first);
	TEST_ASSERT_EQUAL_UINT8(NEW, map[19]);
	TEST_ASSERT_EQUAL_UINT8(OLD, map[30]);
	held_release(second);
	TEST_ASSERT_EQUAL_INT(0, memcmp(map, source, 50));
}

void test_new_range_releases_those_it_overlaps(void)
{
	const unsigned int first = hold(map, 100);

	adapter_writes(map, 100);
	hold(map + 50, 100);
	TEST_ASSERT_EQUAL_INT(0, memcmp(map, source, 100));
	TEST_ASSERT_FALSE(held_has_come(first));
}

void test_whole_pages_are_protected_until_the_first_access(void)
{
#if defined(__x86_64__)
	volatile uint8_t *bytes = map;
	unsigned int number;

	protect_pages();
	number = hold(map + 1, 3 * page);
	adapter_writes(map + 1, 3 * page);
	TEST_ASSERT_EQUAL_UINT8(OLD, bytes[page - 1]); /* a part of a page */
	TEST_ASSERT_EQUAL_UINT8(OLD, bytes[3 * page]);
	TEST_ASSERT_EQUAL_UINT(0, touched_count);
	TEST_ASSERT_EQUAL_UINT8(NEW, adapter_reads(map + page));
	TEST_ASSERT_EQUAL_UINT8(NEW, bytes[2 * page]);
	TEST_ASSERT_EQUAL_UINT(1, touched_count);
	TEST_ASSERT_EQUAL_UINT(number, touched_number);
	TEST_ASSERT_FALSE(touched_writes);
	bytes[page] = 9;
	held_release(number);
	TEST_ASSERT_EQUAL_UINT8(9, bytes[page]);
	TEST_ASSERT_EQUAL_UINT8(NEW, bytes[page - 1]);
	TEST_ASSERT_EQUAL_UINT(1, touched_count);
#else
	TEST_IGNORE_MESSAGE("the handler does not know who has made an access");
#endif
}

void test_writes_are_known(void)
{
#if defined(__x86_64__)
	protect_pages();
	hold(map, 2 * page);
	adapter_writes(map, 2 * page);
	*(volatile uint8_t *)map = 5;
	TEST_ASSERT_TRUE(touched_writes);
	TEST_ASSERT_EQUAL_UINT8(5, map[0]);
	TEST_ASSERT_EQUAL_UINT8(NEW, map[1]);
#endif
}

/* The library itself looks, such as for a sum: no use by the program. */
void test_own_access_is_no_touch(void)
{
	uint8_t byte;

	protect_pages();
	hold(map, page);
	adapter_writes(map, page);
	TEST_ASSERT_EQUAL_INT(0, guard_copy(&byte, map, 1));
	TEST_ASSERT_EQUAL_UINT8(NEW, byte);
	TEST_ASSERT_EQUAL_UINT(0, touched_count);
}

void test_memory_that_is_gone_is_left_alone(void)
{
	const unsigned int number = hold(map, page);

	protect_pages();
	adapter_writes(map, page);
	munmap(map, 4 * page);
	held_release(number);
	map = mmap(NULL, 4 * page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

void test_room_is_limited(void)
{
	uint8_t *memory = malloc(HELD_MAX + 1);

	for (unsigned int i = 0; i < HELD_MAX; i++)
		TEST_ASSERT_EQUAL_INT((int)i, held_add(memory + i, 1));
	TEST_ASSERT_EQUAL_INT(-1, held_add(memory + HELD_MAX, 1));
	held_release(5);
	TEST_ASSERT_EQUAL_INT(-1, held_add(map, (size_t)HELD_BYTES_MAX + 1));
	TEST_ASSERT_EQUAL_INT(5, held_add(memory + HELD_MAX, 1));
	held_stop();
	held_start(&watch);
	free(memory);
}
