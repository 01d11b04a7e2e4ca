/* SPDX-License-Identifier: MIT */
/*
 * Markdown tables whose columns line up. A wide cell continues in the next row.
 */
#ifndef DOCS_GEN_TABLE_H
#define DOCS_GEN_TABLE_H

#include <stdio.h>

#define TABLE_COLUMNS_MAX 10
#define TABLE_ROWS_MAX	  160
#define CELL_BYTES	  512

struct table {
	unsigned int columns, rows; /* the first row has the headings */
	unsigned int widest[TABLE_COLUMNS_MAX];
	char cells[TABLE_ROWS_MAX][TABLE_COLUMNS_MAX][CELL_BYTES];
};

/* Empties the table and sets its headings. widest has the most characters of each column; 0: no limit. */
void table_begin(struct table *table, unsigned int columns, const char *const *headings,
		 const unsigned int *widest);

/* Adds a row of empty cells. */
void table_row(struct table *table);

/* Appends to a cell of the last row, after a space if the cell is not empty. */
__attribute__((format(printf, 3, 4))) void table_add(struct table *table, unsigned int column,
						     const char *format, ...);

void table_print(const struct table *table, FILE *out);

#endif
