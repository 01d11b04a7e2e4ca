/* SPDX-License-Identifier: MIT */
/*
 * Numbers that lead to objects: QPNs, memory keys. A number that is given up does not come back
 * before all generations of its place have gone round.
 */
#ifndef SIM_OBJECT_KEY_H
#define SIM_OBJECT_KEY_H

#include <stddef.h>
#include <stdint.h>

struct sim_place {
	void *object;
	uint32_t next_free;
	uint16_t generation;
};

struct sim_table {
	struct sim_place *places;
	uint32_t count; /* places in use or once used */
	uint32_t capacity;
	uint32_t live;
	uint32_t free_head, free_tail, free_count;
	uint32_t first; /* lowest place */
	uint32_t limit; /* most live objects */
	uint8_t place_bits;
	uint8_t generation_bits;
};

/* A table of at most limit objects, in numbers of place_bits + generation_bits from first up. */
void sim_table_init(struct sim_table *table, unsigned int place_bits, unsigned int generation_bits,
		    uint32_t first, uint32_t limit);
void sim_table_destroy(struct sim_table *table);

/* Gives object a number. ENOMEM when the table is full or memory is out. */
int sim_table_insert(struct sim_table *table, void *object, uint32_t *number);
void sim_table_remove(struct sim_table *table, uint32_t number);

static inline void *sim_table_find(const struct sim_table *table, uint32_t number)
{
	uint32_t place = number & ((1u << table->place_bits) - 1);

	if (place >= table->count || table->places[place].generation != number >> table->place_bits)
		return NULL;
	return table->places[place].object;
}

/* The object of a number's place, whatever the generation. */
static inline void *sim_table_at(const struct sim_table *table, uint32_t number)
{
	uint32_t place = number & ((1u << table->place_bits) - 1);

	return place < table->count ? table->places[place].object : NULL;
}

/* Every live object in turn; start with *place = 0; NULL at the end. */
void *sim_table_next(const struct sim_table *table, uint32_t *place);

/*
 * A memory key: [ generation, high 4 | place and kind, scrambled, 20 | generation, low 8 ]. The low
 * byte is the one that the owner of a type 2 window changes.
 */
enum sim_key_kind {
	SIM_KEY_LOCAL,
	SIM_KEY_REMOTE,
};

uint32_t sim_key_make(uint32_t number, enum sim_key_kind kind);

/* Back to the table's number. */
uint32_t sim_key_number(uint32_t key, enum sim_key_kind *kind);

#define SIM_KEY_PLACE_BITS	19
#define SIM_KEY_GENERATION_BITS 12

#endif
