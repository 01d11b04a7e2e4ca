/* SPDX-License-Identifier: MIT */
#include "sim/object/key.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

/* A free place is used again after so many more places have become free: stale numbers are found
 * longer. */
#define FREE_PLACES_MIN 256

#define NO_PLACE UINT32_MAX

void sim_table_init(struct sim_table *table, unsigned int place_bits, unsigned int generation_bits,
		    uint32_t first, uint32_t limit)
{
	*table = (struct sim_table){
		.place_bits = (uint8_t)place_bits,
		.generation_bits = (uint8_t)generation_bits,
		.first = first,
		.limit = limit,
		.free_head = NO_PLACE,
		.free_tail = NO_PLACE,
	};
}

void sim_table_destroy(struct sim_table *table)
{
	free(table->places);
	table->places = NULL;
	table->count = 0;
}

void sim_table_renumber(struct sim_table *table, uint32_t random)
{
	const uint32_t generations = 1u << table->generation_bits;
	/* From 1, so that each number differs from the one that it would have been. */
	const uint32_t shift = 1 + (random >> table->place_bits) % (generations - 1);

	if (!table->live) {
		free(table->places);
		sim_table_init(table, table->place_bits, table->generation_bits, table->first,
			       table->limit);
		table->base = random & ((1u << table->place_bits) - 1);
	}
	table->generation = (uint16_t)((table->generation + shift) % generations);
	for (uint32_t i = 0; i < table->capacity; i++)
		if (!table->places[i].object)
			table->places[i].generation =
				(uint16_t)((table->places[i].generation + shift) % generations);
}

static uint32_t number_of(const struct sim_table *table, uint32_t place)
{
	const uint32_t mask = (1u << table->place_bits) - 1;

	return ((place + table->base) & mask) | (uint32_t)table->places[place].generation
							<< table->place_bits;
}

/* Returns the next place that was never used, past the places whose numbers are below the first one. */
static uint32_t next_unused(const struct sim_table *table)
{
	const uint32_t mask = (1u << table->place_bits) - 1;
	uint32_t place = table->count;

	while (place <= mask && ((place + table->base) & mask) < table->first)
		place++;
	return place;
}

/* Makes room for a place. */
static int grow(struct sim_table *table, uint32_t place)
{
	uint32_t capacity = table->capacity ? 2 * table->capacity : 64;
	struct sim_place *places;

	while (capacity <= place)
		capacity *= 2;
	places = realloc(table->places, capacity * sizeof(*places));
	if (!places)
		return ENOMEM;
	for (uint32_t i = table->capacity; i < capacity; i++)
		places[i] =
			(struct sim_place){.next_free = NO_PLACE, .generation = table->generation};
	table->places = places;
	table->capacity = capacity;
	return 0;
}

static uint32_t take_free(struct sim_table *table)
{
	uint32_t place = table->free_head;

	table->free_head = table->places[place].next_free;
	if (table->free_head == NO_PLACE)
		table->free_tail = NO_PLACE;
	table->free_count--;
	return place;
}

int sim_table_insert(struct sim_table *table, void *object, uint32_t *number)
{
	const unsigned int bits = table->place_bits + table->generation_bits;
	const uint32_t last = (uint32_t)((UINT64_C(1) << bits) - 1);
	const uint32_t unused = next_unused(table);
	const bool full = unused >> table->place_bits;
	uint32_t place;

	if (table->live >= table->limit)
		return ENOMEM;
	if (table->free_count > FREE_PLACES_MIN || (table->free_count && full)) {
		place = take_free(table);
	} else {
		if (full || (unused >= table->capacity && grow(table, unused)))
			return ENOMEM;
		place = unused;
		table->count = unused + 1;
	}
	if (number_of(table, place) == last)
		table->places[place].generation = 0;
	table->places[place].object = object;
	table->live++;
	*number = number_of(table, place);
	return 0;
}

void sim_table_remove(struct sim_table *table, uint32_t number)
{
	uint32_t index = sim_table_place(table, number);
	struct sim_place *place = &table->places[index];

	place->object = NULL;
	place->generation = (place->generation + 1) & ((1u << table->generation_bits) - 1);
	place->next_free = NO_PLACE;
	if (table->free_tail == NO_PLACE)
		table->free_head = index;
	else
		table->places[table->free_tail].next_free = index;
	table->free_tail = index;
	table->free_count++;
	table->live--;
}

void *sim_table_next(const struct sim_table *table, uint32_t *place)
{
	while (*place < table->count) {
		void *object = table->places ? table->places[*place].object : NULL;

		++*place;
		if (object)
			return object;
	}
	return NULL;
}

/* Multiplying by an odd factor permutes the 20 bits, so that keys made in a row look unlike.
 * UNSCRAMBLE is the inverse of SCRAMBLE. */
#define SCRAMBLE_BITS 20
#define SCRAMBLE_MASK ((1u << SCRAMBLE_BITS) - 1)
#define SCRAMBLE      0x9e375u
#define UNSCRAMBLE    0xb94ddu

_Static_assert(((SCRAMBLE * UNSCRAMBLE) & SCRAMBLE_MASK) == 1, "the factors are inverse");

uint32_t sim_key_make(uint32_t number, enum sim_key_kind kind)
{
	uint32_t place = number & ((1u << SIM_KEY_PLACE_BITS) - 1);
	uint32_t generation = number >> SIM_KEY_PLACE_BITS;
	uint32_t scrambled = ((place << 1 | kind) * SCRAMBLE) & SCRAMBLE_MASK;

	return (generation >> 8) << 28 | scrambled << 8 | (generation & 0xff);
}

uint32_t sim_key_number(uint32_t key, enum sim_key_kind *kind)
{
	uint32_t plain = (((key >> 8) & SCRAMBLE_MASK) * UNSCRAMBLE) & SCRAMBLE_MASK;
	uint32_t generation = (key >> 28) << 8 | (key & 0xff);

	*kind = plain & 1 ? SIM_KEY_REMOTE : SIM_KEY_LOCAL;
	return plain >> 1 | generation << SIM_KEY_PLACE_BITS;
}
