/* SPDX-License-Identifier: MIT */
/*
 * Tables of objects by number (QPNs, SRQ numbers, memory keys). A number has a place in the table
 * and a generation. Each removal counts the generation of the place up, so a removed number is used
 * again only after all generations of its place.
 */
#ifndef SIM_OBJECT_KEY_H
#define SIM_OBJECT_KEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The kinds of numbers that are unique in a device. */
enum sim_numbers {
	SIM_NUMBERS_QP,
	SIM_NUMBERS_SRQ,
	SIM_NUMBERS_KEY,
	SIM_NUMBERS_COMMUNICATION, /* of the engine: claimed at device 0 */
	SIM_NUMBERS,
};

/*
 * Places come in blocks of so many where several engines share the numbers of a device. The first block
 * begins at place 0.
 */
#define SIM_BLOCK_PLACES 256u

/*
 * Takes a block that no other engine has: sets its index and the generation that its numbers begin with,
 * which differs from that of the block's last owner. Returns false if no block is left.
 */
typedef bool sim_claim_fn(void *arg, uint32_t device_index, unsigned int numbers, uint32_t *block,
			  uint16_t *generation);

struct sim_place {
	void *object;
	uint32_t next_free;
	uint16_t generation;
};

/* A block of a table, and the generation that its numbers began with. */
struct sim_block {
	uint32_t index;
	uint16_t generation;
	bool given_up; /* another engine has the block, and objects of this one still live in it */
};

/* Where a table gets its blocks; take NULL: all numbers are the table's. */
struct sim_claim {
	sim_claim_fn *take;
	void *arg;
	uint32_t device_index;
	enum sim_numbers numbers;
};

struct sim_table {
	struct sim_place *places;
	uint32_t
		count; /* places in use or once used; with a claim, all places once there is a block */
	uint32_t capacity;
	uint32_t live; /* objects in the table */
	uint32_t free_head, free_tail, free_count;
	uint32_t base;	     /* the number of place 0, without its generation */
	uint32_t first;	     /* the lowest number */
	uint32_t limit;	     /* the most live objects */
	uint32_t step;	     /* from a place to the next one that was never used, without a claim */
	uint16_t generation; /* of a place that was never used, without a claim */
	uint8_t place_bits;
	uint8_t generation_bits;
	struct sim_claim claim;
	struct sim_block *blocks; /* in the order in which they were claimed */
	uint32_t block_count, block_room;
	uint32_t unused,
		unused_end; /* with a claim: places of the last block that were never used */
};

/* Makes a table of at most limit objects. Numbers begin with first and have place_bits +
 * generation_bits. sim_table_destroy() frees the table, not the objects. */
void sim_table_init(struct sim_table *table, unsigned int place_bits, unsigned int generation_bits,
		    uint32_t first, uint32_t limit);
void sim_table_destroy(struct sim_table *table);

/* Lets an empty table take its numbers from blocks that it claims. The number of place 0 is 0 then. */
void sim_table_claim(struct sim_table *table, const struct sim_claim *claim);

/*
 * Lets the next numbers begin elsewhere, by a random number. Live objects keep theirs. With live
 * objects, only the generations change. A table with a claim gives up its blocks instead, since they are
 * another engine's from now on, as after fork(): the next numbers come from new blocks.
 */
void sim_table_renumber(struct sim_table *table, uint32_t random);

/* Lets the numbers of an empty table begin far on, and be some apart; with a claim nothing changes. */
void sim_table_scatter(struct sim_table *table, uint32_t from, uint32_t step);

/* Gives an object a number; never the one whose bits are all set, which is the multicast QPN.
 * ENOMEM if the table is full or memory is out; ENOSPC if no block is left. */
int sim_table_insert(struct sim_table *table, void *object, uint32_t *number);
/* Returns true if the table has as many objects as the device's limit allows. */
static inline bool sim_table_is_full(const struct sim_table *table)
{
	return table->live >= table->limit;
}

/* Removes the object of a number. */
void sim_table_remove(struct sim_table *table, uint32_t number);

static inline uint32_t sim_table_place(const struct sim_table *table, uint32_t number)
{
	return (number - table->base) & ((1u << table->place_bits) - 1);
}

/* Returns the object of a number; NULL if no object has it. */
static inline void *sim_table_find(const struct sim_table *table, uint32_t number)
{
	uint32_t place = sim_table_place(table, number);

	if (place >= table->count || table->places[place].generation != number >> table->place_bits)
		return NULL;
	return table->places[place].object;
}

/* Returns the object at a number's place, of any generation; NULL if the place is empty. */
static inline void *sim_table_at(const struct sim_table *table, uint32_t number)
{
	uint32_t place = sim_table_place(table, number);

	return place < table->count ? table->places[place].object : NULL;
}

/* Returns the objects one by one, then NULL. Begin with *cursor = 0. */
void *sim_table_next(const struct sim_table *table, uint32_t *cursor);

/* Returns true if the number is of a block that the table has claimed, and has not given up. */
bool sim_table_owns(const struct sim_table *table, uint32_t number);

/* Returns true if an object had the number at its place before the present generation. */
bool sim_table_had(const struct sim_table *table, uint32_t number);

/*
 * A memory key: [ generation, high 4 bits | place and kind, scrambled, 20 bits | generation, low 8
 * bits ]. The owner of a type 2 window chooses the low byte.
 */
enum sim_key_kind {
	SIM_KEY_LOCAL,
	SIM_KEY_REMOTE,
};

/* Returns the key of a number in the table of regions. */
uint32_t sim_key_make(uint32_t number, enum sim_key_kind kind);

/* Returns the number and the kind of a key. */
uint32_t sim_key_number(uint32_t key, enum sim_key_kind *kind);

#define SIM_KEY_PLACE_BITS	19
#define SIM_KEY_GENERATION_BITS 12

#endif
