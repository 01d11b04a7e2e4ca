/* SPDX-License-Identifier: MIT */
/*
 * Tables of rows that are taken and given back. Each taking of a row has a generation, so a handle
 * (index and generation) of an earlier taking finds nothing.
 *
 * A channel has a table of its works, an agent one of its operations. A group has a table of its
 * channels, an agent a second one of its connections. A wr_id is the key of a channel or connection
 * with the number of a work in the low 24 bits.
 */
#ifndef SRC_CONNECT_HANDLE_H
#define SRC_CONNECT_HANDLE_H

#include <stddef.h>
#include <stdint.h>

/* The first member of each row. */
struct handle_row {
	uint32_t index;
	uint32_t generation; /* counts takings, from 1 */
	uint32_t next_free;  /* an index, NO_ROW, or ROW_TAKEN */
};

/* A row of a table whose objects are allocated elsewhere. */
struct handle_owner {
	struct handle_row row;
	void *object; /* NULL while the row is free */
};

struct handle_table {
	void *rows;
	size_t row_bytes;
	uint32_t count, taken;
	uint32_t first_free;
};

#define NO_ROW	  UINT32_MAX
#define ROW_TAKEN (UINT32_MAX - 1)

/* A wr_id: 16 bits of generation, 24 of the owner's index, 24 of the work's number. */
#define WORK_BITS  24
#define OWNER_BITS 24
#define WORKS_MAX  (1u << WORK_BITS)

static inline void *handle_row_at(const struct handle_table *table, uint32_t index)
{
	return (char *)table->rows + index * table->row_bytes;
}

/* Makes or enlarges a table to count rows, whose new rows are zeroed and free. A table that grows
 * moves its rows. Ended by free(table->rows). Returns 0 or ENOMEM, without a sentence. */
int handle_table_resize(struct handle_table *table, uint32_t count, size_t row_bytes);

/* Takes a free row; NULL if all are taken. */
void *handle_take(struct handle_table *table);
void handle_give_back(struct handle_table *table, struct handle_row *row);

/* The row of a handle; NULL if the handle is stale. */
static inline void *handle_find(const struct handle_table *table, uint32_t index,
				uint32_t generation)
{
	struct handle_row *row;

	if (index >= table->count)
		return NULL;
	row = handle_row_at(table, index);
	return row->next_free == ROW_TAKEN && row->generation == generation ? row : NULL;
}

/* Takes a row of a table of struct handle_owner for the object. Returns its key for wr_ids; 0 if
 * all rows are taken. */
uint64_t handle_own(struct handle_table *table, void *object);
void handle_disown(struct handle_table *table, uint64_t key);

/* The row of a key or wr_id. */
static inline uint32_t handle_owner_index(uint64_t key)
{
	return (uint32_t)(key >> WORK_BITS) & ((1u << OWNER_BITS) - 1);
}

/* The object of a wr_id; NULL if the wr_id belongs to an object that has gone. */
static inline void *handle_owner_of(const struct handle_table *table, uint64_t wr_id)
{
	uint32_t index = handle_owner_index(wr_id);
	const struct handle_owner *owner;

	if (index >= table->count)
		return NULL;
	owner = (const struct handle_owner *)table->rows + index;
	return (uint16_t)owner->row.generation == wr_id >> 48 ? owner->object : NULL;
}

static inline uint32_t handle_work_of(uint64_t wr_id)
{
	return (uint32_t)wr_id & (WORKS_MAX - 1);
}

/* The object in row i of a table of struct handle_owner, or NULL. */
static inline void *handle_object(const struct handle_table *table, uint32_t i)
{
	return ((const struct handle_owner *)table->rows)[i].object;
}

#endif /* SRC_CONNECT_HANDLE_H */
