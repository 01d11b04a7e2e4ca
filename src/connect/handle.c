/* SPDX-License-Identifier: MIT */
#include "src/connect/handle.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int handle_table_resize(struct handle_table *table, uint32_t count, size_t row_bytes)
{
	uint32_t before = table->count;
	char *rows = reallocarray(table->rows, count, row_bytes);

	if (!rows)
		return ENOMEM;
	memset(rows + before * row_bytes, 0, (count - before) * row_bytes);
	table->rows = rows;
	table->row_bytes = row_bytes;
	table->count = count;
	if (!before)
		table->first_free = NO_ROW;
	for (uint32_t i = count; i-- > before;) {
		struct handle_row *row = handle_row_at(table, i);

		row->index = i;
		row->next_free = table->first_free;
		table->first_free = i;
	}
	return 0;
}

void *handle_take(struct handle_table *table)
{
	struct handle_row *row;

	if (table->first_free == NO_ROW)
		return NULL;
	row = handle_row_at(table, table->first_free);
	table->first_free = row->next_free;
	table->taken++;
	row->next_free = ROW_TAKEN;
	row->generation++;
	return row;
}

void handle_give_back(struct handle_table *table, struct handle_row *row)
{
	row->next_free = table->first_free;
	table->first_free = row->index;
	table->taken--;
}

uint64_t handle_own(struct handle_table *table, void *object)
{
	struct handle_owner *owner = handle_take(table);

	if (!owner)
		return 0;
	owner->object = object;
	/* A key is never 0. */
	if (!(uint16_t)owner->row.generation)
		owner->row.generation++;
	return (uint64_t)(uint16_t)owner->row.generation << 48 | (uint64_t)owner->row.index
									 << WORK_BITS;
}

void handle_disown(struct handle_table *table, uint64_t key)
{
	struct handle_owner *owner = handle_row_at(table, handle_owner_index(key));

	owner->object = NULL;
	handle_give_back(table, &owner->row);
}
