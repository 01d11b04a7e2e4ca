/* SPDX-License-Identifier: MIT */
#include "sim/object/key.h"
#include "unity.h"

#include <errno.h>
#include <stdlib.h>

static struct sim_table table;
static char objects[4096];

void setUp(void)
{
	sim_table_init(&table, 12, 4, 16, 4000);
}

void tearDown(void)
{
	sim_table_destroy(&table);
}

static uint32_t insert(void *object)
{
	uint32_t number;

	TEST_ASSERT_EQUAL_INT(0, sim_table_insert(&table, object, &number));
	return number;
}

void test_numbers_lead_to_their_objects(void)
{
	uint32_t numbers[1000];

	for (unsigned int i = 0; i < 1000; i++)
		numbers[i] = insert(&objects[i]);
	for (unsigned int i = 0; i < 1000; i++)
		TEST_ASSERT_EQUAL_PTR(&objects[i], sim_table_find(&table, numbers[i]));
	TEST_ASSERT_EQUAL_UINT32(1000, table.live);
}

void test_numbers_begin_at_the_first(void)
{
	TEST_ASSERT_EQUAL_UINT32(16, insert(objects));
	for (uint32_t i = 0; i < 16; i++)
		TEST_ASSERT_NULL(sim_table_find(&table, i));
}

void test_numbers_of_nothing(void)
{
	uint32_t number = insert(objects);

	TEST_ASSERT_NULL(sim_table_find(&table, number + 1));
	TEST_ASSERT_NULL(sim_table_find(&table, number | 1u << 12));
	TEST_ASSERT_NULL(sim_table_find(&table, number | 1u << 16)); /* beyond all generations */
	TEST_ASSERT_NULL(sim_table_find(&table, number | 1u << 31));
	TEST_ASSERT_NULL(sim_table_find(&table, UINT32_MAX));
}

void test_an_empty_table_has_nothing(void)
{
	uint32_t place = 0;

	TEST_ASSERT_NULL(sim_table_find(&table, 0));
	TEST_ASSERT_NULL(sim_table_find(&table, 16));
	TEST_ASSERT_NULL(sim_table_next(&table, &place));
}

void test_limit(void)
{
	uint32_t number;

	sim_table_destroy(&table);
	sim_table_init(&table, 12, 4, 16, 3);
	insert(objects);
	number = insert(objects);
	insert(objects);
	TEST_ASSERT_EQUAL_INT(ENOMEM, sim_table_insert(&table, objects, &number));
	sim_table_remove(&table, number);
	insert(objects);
	TEST_ASSERT_EQUAL_INT(ENOMEM, sim_table_insert(&table, objects, &number));
}

/* The table gives out all its places and no more, even if the limit is higher. */
void test_every_place_can_be_used(void)
{
	uint32_t number;

	sim_table_destroy(&table);
	sim_table_init(&table, 9, 4, 1, UINT32_MAX);
	for (unsigned int i = 1; i < 512; i++)
		TEST_ASSERT_EQUAL_UINT32(i, insert(&objects[i]));
	TEST_ASSERT_EQUAL_INT(ENOMEM, sim_table_insert(&table, objects, &number));
	sim_table_remove(&table, 7);
	number = insert(&objects[7]);
	TEST_ASSERT_EQUAL_UINT32(7 | 1u << 9, number);
	TEST_ASSERT_NULL(sim_table_find(&table, 7));
	TEST_ASSERT_EQUAL_PTR(&objects[7], sim_table_find(&table, number));
}

/* Freed places are used again in turn, so that a stale number stays invalid for long. */
void test_places_come_back_in_the_order_they_went(void)
{
	uint32_t numbers[600];
	uint32_t seen[300];
	unsigned int count = 0;

	for (unsigned int i = 0; i < 600; i++)
		numbers[i] = insert(&objects[i]);
	for (unsigned int i = 0; i < 600; i += 2)
		sim_table_remove(&table, numbers[i]);
	for (unsigned int i = 0; i < 300; i++) {
		uint32_t number = insert(objects);

		if ((number & 0xfff) < 616)
			seen[count++] = number;
	}
	TEST_ASSERT_GREATER_THAN(10u, count);
	for (unsigned int i = 0; i < count; i++) {
		TEST_ASSERT_EQUAL_UINT32(numbers[2 * i] | 1u << 12, seen[i]);
		TEST_ASSERT_NULL(sim_table_find(&table, numbers[2 * i]));
	}
}

/*
 * If one object is made and destroyed repeatedly, its number comes back only after all
 * generations.
 */
void test_a_stale_number_stays_stale_for_all_generations(void)
{
	uint32_t old = insert(objects);
	uint32_t rounds = 0;

	sim_table_remove(&table, old);
	for (;;) {
		uint32_t number = insert(objects);

		if (number == old)
			break;
		TEST_ASSERT_NULL(sim_table_find(&table, old));
		sim_table_remove(&table, number);
		rounds++;
		TEST_ASSERT_LESS_THAN(1000000u, rounds);
	}
	/* There are 16 generations and at least 256 free places. */
	TEST_ASSERT_GREATER_OR_EQUAL(16u * 256u, rounds + 1);
}

void test_next_visits_every_live_object_once(void)
{
	uint32_t numbers[100];
	unsigned int visits[100] = {0};
	uint32_t place = 0;
	char *object;

	for (unsigned int i = 0; i < 100; i++)
		numbers[i] = insert(&objects[i]);
	for (unsigned int i = 0; i < 100; i += 3)
		sim_table_remove(&table, numbers[i]);
	while ((object = sim_table_next(&table, &place)))
		visits[object - objects]++;
	for (unsigned int i = 0; i < 100; i++)
		TEST_ASSERT_EQUAL_UINT(i % 3 ? 1 : 0, visits[i]);
}

static void roundtrip(uint32_t number)
{
	enum sim_key_kind kind;
	uint32_t local = sim_key_make(number, SIM_KEY_LOCAL);
	uint32_t remote = sim_key_make(number, SIM_KEY_REMOTE);

	TEST_ASSERT_NOT_EQUAL(local, remote);
	TEST_ASSERT_EQUAL_HEX32(number, sim_key_number(local, &kind));
	TEST_ASSERT_EQUAL_INT(SIM_KEY_LOCAL, kind);
	TEST_ASSERT_EQUAL_HEX32(number, sim_key_number(remote, &kind));
	TEST_ASSERT_EQUAL_INT(SIM_KEY_REMOTE, kind);
}

void test_keys_lead_back_to_numbers(void)
{
	for (uint32_t place = 0; place < 1u << SIM_KEY_PLACE_BITS; place += 13)
		roundtrip(place | place % 4096 << SIM_KEY_PLACE_BITS);
	for (uint32_t generation = 0; generation < 1u << SIM_KEY_GENERATION_BITS; generation++)
		roundtrip(5 | generation << SIM_KEY_PLACE_BITS);
	roundtrip(UINT32_MAX >> (32 - SIM_KEY_PLACE_BITS - SIM_KEY_GENERATION_BITS));
}

/* Keys and numbers map one to one; the test takes samples of all 2^32. */
void test_keys_are_one_to_one(void)
{
	for (uint64_t key = 0; key < UINT64_C(1) << 32; key += 40009) {
		enum sim_key_kind kind;
		uint32_t number = sim_key_number((uint32_t)key, &kind);

		TEST_ASSERT_EQUAL_HEX32((uint32_t)key, sim_key_make(number, kind));
	}
}

/* Keys of MRs are not consecutive, so that a wrong key is not valid by chance. */
void test_keys_in_a_row_look_unlike(void)
{
	for (uint32_t place = 1; place < 1000; place++) {
		uint32_t key = sim_key_make(place, SIM_KEY_REMOTE);
		uint32_t next = sim_key_make(place + 1, SIM_KEY_REMOTE);

		TEST_ASSERT_GREATER_THAN(1u << 12, next > key ? next - key : key - next);
	}
}

/* Every start: the numbers lead to their objects, none is below the first one, and all places are
 * used. The first number of the table that begins at its end is behind those that do not exist. */
void test_numbers_that_begin_elsewhere(void)
{
	static const uint32_t starts[] = {0, 1, 15, 16, 17, 200, 500, 510, 511, 511 | 0xf << 9};
	uint32_t numbers[512];
	uint32_t number;

	for (unsigned int i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
		const uint32_t first = starts[i] < 16 ? 16 : starts[i] & 511;

		sim_table_destroy(&table);
		sim_table_init(&table, 9, 4, 16, UINT32_MAX);
		sim_table_renumber(&table, starts[i]);
		for (unsigned int j = 0; j < 512 - 16; j++) {
			numbers[j] = insert(&objects[j]);
			TEST_ASSERT_TRUE((numbers[j] & 511) >= 16);
		}
		TEST_ASSERT_EQUAL_UINT32(first, numbers[0] & 511);
		TEST_ASSERT_EQUAL_INT(ENOMEM, sim_table_insert(&table, objects, &number));
		for (unsigned int j = 0; j < 512 - 16; j++)
			TEST_ASSERT_EQUAL_PTR(&objects[j], sim_table_find(&table, numbers[j]));
		sim_table_remove(&table, numbers[300]);
		TEST_ASSERT_NULL(sim_table_find(&table, numbers[300]));
		TEST_ASSERT_EQUAL_PTR(&objects[300], sim_table_find(&table, insert(&objects[300])));
	}
}

/* The generation differs from that of a table that was not renumbered, whatever the random number
 * is. */
void test_renumbering_changes_every_number(void)
{
	for (uint32_t random = 0; random < 1u << 16; random += 4096) {
		uint32_t number;

		sim_table_destroy(&table);
		sim_table_init(&table, 12, 4, 16, 4000);
		sim_table_renumber(&table, random);
		number = insert(objects);
		TEST_ASSERT_NOT_EQUAL(16, number);
		TEST_ASSERT_EQUAL_PTR(objects, sim_table_find(&table, number));
	}
}

/* Live objects keep their numbers, and freed places get others than they would have had. */
void test_renumbering_with_live_objects(void)
{
	const uint32_t live = insert(&objects[0]), freed = insert(&objects[1]);
	uint32_t number;

	sim_table_remove(&table, freed);
	sim_table_renumber(&table, 0x5123);
	TEST_ASSERT_EQUAL_PTR(&objects[0], sim_table_find(&table, live));
	TEST_ASSERT_NULL(sim_table_find(&table, freed));
	for (unsigned int i = 2; i < 1000; i++) {
		number = insert(&objects[i]);
		TEST_ASSERT_NOT_EQUAL(0, number >> 12);
		TEST_ASSERT_EQUAL_PTR(&objects[i], sim_table_find(&table, number));
	}
	sim_table_remove(&table, live);
	TEST_ASSERT_NULL(sim_table_find(&table, live));
}

/* The number whose bits are all set is the multicast QPN. */
void test_the_last_number_is_never_given(void)
{
	uint32_t number;

	sim_table_destroy(&table);
	sim_table_init(&table, 2, 2, 1, UINT32_MAX);
	for (unsigned int i = 0; i < 100; i++) {
		number = insert(objects);
		TEST_ASSERT_NOT_EQUAL(15, number);
		TEST_ASSERT_EQUAL_PTR(objects, sim_table_find(&table, number));
		sim_table_remove(&table, number);
	}
}

/* The numbers that do not exist come behind 512 places, where the memory of the table ends. A freed
 * place that is used again leaves them alone. */
void test_reserved_places_take_no_memory_before_their_turn(void)
{
	uint32_t numbers[512];

	sim_table_destroy(&table);
	sim_table_init(&table, 12, 4, 16, 4000);
	sim_table_renumber(&table, 4096 - 512);
	for (unsigned int i = 0; i < 512; i++)
		numbers[i] = insert(&objects[i]);
	for (unsigned int i = 0; i < 300; i++)
		sim_table_remove(&table, numbers[i]);
	insert(&objects[0]);
	TEST_ASSERT_EQUAL_UINT32(512, table.capacity);
	TEST_ASSERT_EQUAL_UINT32(512, table.count);
	for (uint32_t number = 0; number < 16; number++)
		TEST_ASSERT_NULL(sim_table_find(&table, number));
}

/* --- blocks --- */

/* Several tables share the numbers of a device: who has a block, and the generation that it begins with. */
#define BLOCKS 16u

static struct sim_table others[3];
static unsigned int owners[BLOCKS]; /* a table, from 1 */
static uint32_t next_block;
static uint16_t next_generation;
static unsigned int asked;

static bool claim(void *arg, uint32_t device_index, unsigned int numbers, uint32_t *block,
		  uint16_t *generation)
{
	TEST_ASSERT_EQUAL_UINT32(7, device_index);
	TEST_ASSERT_EQUAL_UINT(SIM_NUMBERS_SRQ, numbers);
	asked++;
	if (next_block >= BLOCKS)
		return false;
	owners[next_block] = (unsigned int)(uintptr_t)arg;
	*block = next_block++;
	*generation = next_generation;
	return true;
}

/* Makes table i of the others, of 12 place bits and 4 generation bits. */
static void share(unsigned int i)
{
	const struct sim_claim shared = {claim, (void *)(uintptr_t)(i + 1), 7, SIM_NUMBERS_SRQ};

	sim_table_init(&others[i], 12, 4, 16, 4096);
	sim_table_claim(&others[i], &shared);
}

static void share_all(void)
{
	next_block = 0;
	next_generation = 5;
	asked = 0;
	for (unsigned int i = 0; i < 3; i++)
		share(i);
}

static void end_sharing(void)
{
	for (unsigned int i = 0; i < 3; i++)
		sim_table_destroy(&others[i]);
}

static uint32_t insert_into(unsigned int i, void *object)
{
	uint32_t number;

	TEST_ASSERT_EQUAL_INT(0, sim_table_insert(&others[i], object, &number));
	TEST_ASSERT_EQUAL_PTR(object, sim_table_find(&others[i], number));
	TEST_ASSERT_EQUAL_UINT(i + 1, owners[(number & 0xfff) / SIM_BLOCK_PLACES]);
	TEST_ASSERT_TRUE(sim_table_owns(&others[i], number));
	return number;
}

/* Tables that claim blocks by turns have no number in common, and find none of the others' objects. */
void test_tables_with_blocks_share_no_number(void)
{
	static bool given[1u << 16];

	share_all();
	for (unsigned int i = 0; i < 1200; i++) {
		const unsigned int at = i % 3;
		const uint32_t number = insert_into(at, &objects[i]);

		TEST_ASSERT_FALSE(given[number]);
		given[number] = true;
		TEST_ASSERT_EQUAL_UINT32(5, number >> 12);
		TEST_ASSERT_GREATER_OR_EQUAL(16, number & 0xfff);
		for (unsigned int other = 0; other < 3; other++) {
			if (other != at)
				TEST_ASSERT_NULL(sim_table_find(&others[other], number));
			TEST_ASSERT_EQUAL_INT(other == at, sim_table_owns(&others[other], number));
		}
	}
	/* 400 objects each need two blocks. */
	TEST_ASSERT_EQUAL_UINT(6, asked);
	end_sharing();
}

void test_next_visits_the_claimed_blocks_only(void)
{
	uint32_t cursor = 0;
	unsigned int seen = 0;

	share_all();
	for (unsigned int i = 0; i < 3; i++)
		TEST_ASSERT_NULL(sim_table_next(&others[i], &cursor));
	for (unsigned int i = 0; i < 600; i++)
		insert_into(i % 2, &objects[i]);
	while (sim_table_next(&others[1], &cursor))
		seen++;
	TEST_ASSERT_EQUAL_UINT(300, seen);
	TEST_ASSERT_LESS_OR_EQUAL(2 * SIM_BLOCK_PLACES, cursor);
	end_sharing();
}

/* Places come back only after 256 others, as in a table of its own; then no further block is claimed. */
void test_free_places_of_blocks_come_back(void)
{
	uint32_t first;

	share_all();
	first = insert_into(0, &objects[0]);
	sim_table_remove(&others[0], first);
	for (unsigned int i = 0; i < 5000; i++) {
		const uint32_t number = insert_into(0, &objects[1]);

		if (i < 256)
			TEST_ASSERT_NOT_EQUAL((first & 0xfff), (number & 0xfff));
		TEST_ASSERT_NULL(sim_table_find(&others[0], first));
		TEST_ASSERT_EQUAL_INT(number != first, !sim_table_had(&others[0], number));
		sim_table_remove(&others[0], number);
		TEST_ASSERT_TRUE(sim_table_had(&others[0], number));
		/* All 16 generations of the place come before the first one again. */
		if (i > 256 * 13)
			break;
	}
	TEST_ASSERT_EQUAL_UINT(2, asked);
	end_sharing();
}

/* Without a block that is left, free places are used at once; then the table is full. */
void test_no_block_is_left(void)
{
	uint32_t numbers[SIM_BLOCK_PLACES], number;

	share_all();
	next_block = BLOCKS - 1;
	for (unsigned int i = 0; i < SIM_BLOCK_PLACES; i++)
		numbers[i] = insert_into(0, &objects[i]);
	TEST_ASSERT_EQUAL_INT(ENOSPC, sim_table_insert(&others[0], objects, &number));
	sim_table_remove(&others[0], numbers[9]);
	TEST_ASSERT_EQUAL_UINT32(numbers[9] & 0xfff, insert_into(0, objects) & 0xfff);
	TEST_ASSERT_EQUAL_INT(ENOSPC, sim_table_insert(&others[1], objects, &number));
	end_sharing();
}

/* The owner's answer may be wrong: a block beyond the table is none. */
void test_a_block_beyond_the_table_is_refused(void)
{
	struct sim_table small;
	uint32_t number;
	const struct sim_claim shared = {claim, NULL, 7, SIM_NUMBERS_SRQ};

	share_all();
	next_block = 2;
	sim_table_init(&small, 9, 4, 1, 512);
	sim_table_claim(&small, &shared);
	TEST_ASSERT_EQUAL_INT(ENOSPC, sim_table_insert(&small, objects, &number));
	sim_table_destroy(&small);
	end_sharing();
}

/* The generation of the owner has more bits than the number. */
void test_the_last_number_of_a_block_is_never_given(void)
{
	share_all();
	next_block = BLOCKS - 1;
	next_generation = 0xfff7;
	for (unsigned int i = 0; i < 40 * SIM_BLOCK_PLACES; i++) {
		const uint32_t number = insert_into(0, &objects[0]);

		if (i == 0)
			TEST_ASSERT_EQUAL_HEX32(0x7f00, number);
		TEST_ASSERT_NOT_EQUAL(0xffff, number);
		sim_table_remove(&others[0], number);
	}
	end_sharing();
}

/* After fork(): the child keeps the objects, and no number that the parent may still give. */
void test_a_child_gives_its_blocks_up(void)
{
	uint32_t given[600], live, freed, number, cursor = 0;
	unsigned int seen = 0;

	share_all();
	live = insert_into(0, &objects[0]);
	freed = insert_into(0, &objects[1]);
	sim_table_remove(&others[0], freed);
	freed = insert_into(0, &objects[1]);
	sim_table_renumber(&others[0], 99);
	owners[0] = 9; /* the parent */
	TEST_ASSERT_EQUAL_PTR(&objects[0], sim_table_find(&others[0], live));
	/* The next numbers of the block are the parent's. */
	TEST_ASSERT_FALSE(sim_table_owns(&others[0], live));
	TEST_ASSERT_FALSE(sim_table_owns(&others[0], live + 2));
	sim_table_remove(&others[0], freed);
	TEST_ASSERT_NULL(sim_table_find(&others[0], freed));
	for (unsigned int i = 2; i < 600; i++)
		given[i - 2] = insert_into(0, &objects[i]);
	while (sim_table_next(&others[0], &cursor))
		seen++;
	TEST_ASSERT_EQUAL_UINT(599, seen);
	/* The places that are free are the child's own. */
	for (unsigned int i = 0; i < 400; i++)
		sim_table_remove(&others[0], given[i]);
	for (unsigned int i = 2; i < 402; i++)
		insert_into(0, &objects[i]);
	/* The parent has ended, and the child claims its block: what lives there stays. */
	next_block = 0;
	owners[0] = 1;
	next_generation = 11;
	for (unsigned int i = 600; i < 1200; i++) {
		number = insert_into(0, &objects[i]);
		TEST_ASSERT_NOT_EQUAL((live & 0xfff), (number & 0xfff));
	}
	TEST_ASSERT_EQUAL_PTR(&objects[0], sim_table_find(&others[0], live));
	TEST_ASSERT_TRUE(sim_table_owns(&others[0], live));
	end_sharing();
}

/* A child without live objects begins anew. */
void test_an_empty_child_claims_anew(void)
{
	uint32_t number;

	share_all();
	number = insert_into(0, &objects[0]);
	sim_table_remove(&others[0], number);
	sim_table_renumber(&others[0], 1);
	owners[0] = 9;
	TEST_ASSERT_EQUAL_UINT32(1, insert_into(0, &objects[0]) / SIM_BLOCK_PLACES % BLOCKS);
	end_sharing();
}
