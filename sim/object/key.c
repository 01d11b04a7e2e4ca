/* SPDX-License-Identifier: MIT */
#include "sim/object/key.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

/* A free place is used again after so many more places have become free: stale numbers are found
 * longer. */
#define FREE_PLACES_MIN 256

#define NO_PLACE UINT32_MAX
/* The next_free of a live object's place whose block has been given up: the place is not used again. */
#define LOST_PLACE (UINT32_MAX - 1)

void sim_table_init(struct sim_table *table, unsigned int place_bits, unsigned int generation_bits,
		    uint32_t first, uint32_t limit)
{
	*table = (struct sim_table){
		.place_bits = (uint8_t)place_bits,
		.generation_bits = (uint8_t)generation_bits,
		.first = first,
		.limit = limit,
		.step = 1,
		.free_head = NO_PLACE,
		.free_tail = NO_PLACE,
	};
}

void sim_table_claim(struct sim_table *table, const struct sim_claim *claim)
{
	table->claim = *claim;
}

void sim_table_destroy(struct sim_table *table)
{
	free(table->places);
	free(table->blocks);
	table->places = NULL;
	table->blocks = NULL;
	table->count = 0;
	table->block_count = 0;
}

/* Keeps the blocks in which objects live, for sim_table_next(). */
static void give_up_blocks(struct sim_table *table)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < table->block_count; i++) {
		struct sim_place *place = &table->places[table->blocks[i].index * SIM_BLOCK_PLACES];
		bool lives = false;

		for (unsigned int at = 0; at < SIM_BLOCK_PLACES; at++, place++) {
			if (!place->object)
				continue;
			place->next_free = LOST_PLACE;
			lives = true;
		}
		table->blocks[i].given_up = true;
		if (lives)
			table->blocks[kept++] = table->blocks[i];
	}
	table->block_count = kept;
	table->free_head = table->free_tail = NO_PLACE;
	table->free_count = 0;
	table->unused = table->unused_end = 0;
}

void sim_table_renumber(struct sim_table *table, uint32_t random)
{
	const uint32_t generations = 1u << table->generation_bits;
	const uint32_t step = table->step;
	/* From 1, so that each number differs from the one that it would have been. */
	const uint32_t shift = 1 + (random >> table->place_bits) % (generations - 1);

	if (table->claim.take) {
		give_up_blocks(table);
		return;
	}
	if (!table->live) {
		free(table->places);
		sim_table_init(table, table->place_bits, table->generation_bits, table->first,
			       table->limit);
		table->step = step;
		table->base = random & ((1u << table->place_bits) - 1);
	}
	table->generation = (uint16_t)((table->generation + shift) % generations);
	for (uint32_t i = 0; i < table->capacity; i++)
		if (!table->places[i].object)
			table->places[i].generation =
				(uint16_t)((table->places[i].generation + shift) % generations);
}

void sim_table_scatter(struct sim_table *table, uint32_t from, uint32_t step)
{
	if (table->claim.take)
		return;
	table->base = (table->base + from) & ((1u << table->place_bits) - 1);
	table->step = step;
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
	uint32_t place = table->count ? table->count - 1 + table->step : 0;

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

/* Allocates all places at once: memory that is never touched costs nothing, and a place stays where its
 * number says. */
static int allocate_all(struct sim_table *table)
{
	const uint32_t count = 1u << table->place_bits;

	if (table->places)
		return 0;
	table->places = calloc(count, sizeof(*table->places));
	if (!table->places)
		return ENOMEM;
	table->count = table->capacity = count;
	return 0;
}

static int reserve_block(struct sim_table *table)
{
	const uint32_t room = table->block_room ? 2 * table->block_room : 4;
	struct sim_block *blocks;

	if (table->block_count < table->block_room)
		return 0;
	blocks = realloc(table->blocks, room * sizeof(*blocks));
	if (!blocks)
		return ENOMEM;
	table->blocks = blocks;
	table->block_room = room;
	return 0;
}

static struct sim_block *find_block(const struct sim_table *table, uint32_t index)
{
	for (uint32_t i = 0; i < table->block_count; i++)
		if (table->blocks[i].index == index)
			return &table->blocks[i];
	return NULL;
}

/* Makes the places of a block the ones that the next numbers come from. Objects that a fork() has left in
 * the block keep their places. */
static void open_block(struct sim_table *table, struct sim_block block)
{
	struct sim_block *known = find_block(table, block.index);
	const uint32_t begin = block.index * SIM_BLOCK_PLACES;

	if (known)
		*known = block;
	else
		table->blocks[table->block_count++] = block;
	for (uint32_t place = begin; place < begin + SIM_BLOCK_PLACES; place++)
		if (!table->places[place].object)
			table->places[place].generation = block.generation;
	table->unused = begin;
	table->unused_end = begin + SIM_BLOCK_PLACES;
}

static int claim_block(struct sim_table *table)
{
	const struct sim_claim *claim = &table->claim;
	struct sim_block block = {0};

	if (allocate_all(table) || reserve_block(table))
		return ENOMEM;
	if (!claim->take(claim->arg, claim->device_index, claim->numbers, &block.index,
			 &block.generation) ||
	    block.index >= table->count / SIM_BLOCK_PLACES)
		return ENOSPC;
	block.generation &= (uint16_t)((1u << table->generation_bits) - 1);
	open_block(table, block);
	return 0;
}

/* Takes a place of a claimed block that was never used. */
static int take_claimed(struct sim_table *table, uint32_t *place)
{
	for (;;) {
		int err = 0;

		while (table->unused < table->unused_end &&
		       (table->unused < table->first || table->places[table->unused].object))
			table->unused++;
		if (table->unused < table->unused_end)
			break;
		err = claim_block(table);
		if (err)
			return err;
	}
	*place = table->unused++;
	return 0;
}

/* Takes a place that was never used. */
static int take_unused(struct sim_table *table, uint32_t *place)
{
	const uint32_t unused = next_unused(table);

	if (table->claim.take)
		return take_claimed(table, place);
	if (unused >> table->place_bits || (unused >= table->capacity && grow(table, unused)))
		return ENOMEM;
	*place = unused;
	table->count = unused + 1;
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
	uint32_t place;

	if (table->live >= table->limit)
		return ENOMEM;
	if (table->free_count > FREE_PLACES_MIN) {
		place = take_free(table);
	} else {
		int err = take_unused(table, &place);

		if (err && !table->free_count)
			return err;
		if (err)
			place = take_free(table);
	}
	if (number_of(table, place) == last)
		table->places[place].generation = 0;
	table->places[place].object = object;
	table->places[place].next_free = NO_PLACE;
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
	table->live--;
	if (place->next_free == LOST_PLACE)
		return;
	place->next_free = NO_PLACE;
	if (table->free_tail == NO_PLACE)
		table->free_head = index;
	else
		table->places[table->free_tail].next_free = index;
	table->free_tail = index;
	table->free_count++;
}

/* Returns the place at a cursor, which counts the places of the blocks, or (without a claim) all. */
static struct sim_place *place_at(const struct sim_table *table, uint32_t cursor)
{
	const uint32_t block = cursor / SIM_BLOCK_PLACES;

	if (!table->claim.take)
		return cursor < table->count && table->places ? &table->places[cursor] : NULL;
	if (block >= table->block_count)
		return NULL;
	return &table->places[table->blocks[block].index * SIM_BLOCK_PLACES +
			      cursor % SIM_BLOCK_PLACES];
}

void *sim_table_next(const struct sim_table *table, uint32_t *cursor)
{
	const struct sim_place *place;

	while ((place = place_at(table, *cursor))) {
		++*cursor;
		if (place->object)
			return place->object;
	}
	return NULL;
}

bool sim_table_owns(const struct sim_table *table, uint32_t number)
{
	const struct sim_block *block =
		find_block(table, sim_table_place(table, number) / SIM_BLOCK_PLACES);

	return block && !block->given_up;
}

bool sim_table_had(const struct sim_table *table, uint32_t number)
{
	const uint32_t mask = (1u << table->generation_bits) - 1;
	const uint32_t place = sim_table_place(table, number);
	const struct sim_block *block = find_block(table, place / SIM_BLOCK_PLACES);
	const uint32_t first = block ? block->generation : table->generation;
	uint32_t age, ages;

	if (place >= table->count || (table->claim.take && !block))
		return false;
	age = (number >> table->place_bits) - first;
	ages = (uint32_t)table->places[place].generation - first;
	return (age & mask) < (ages & mask);
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
