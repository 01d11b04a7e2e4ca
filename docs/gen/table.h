/* SPDX-License-Identifier: MIT */
/*
 * Tables of text for Markdown: columns line up, and a cell that is too wide goes on in the next row.
 */
#ifndef DOCS_GEN_TABLE_H
#define DOCS_GEN_TABLE_H

#include <stdio.h>

#define TABLE_COLUMNS_MAX 10
#define TABLE_ROWS_MAX	  160
#define CELL_BYTES	  512

struct table {
	unsigned int columns, rows; /* the first row is the heading */
	unsigned int widest[TABLE_COLUMNS_MAX];
	char cells[TABLE_ROWS_MAX][TABLE_COLUMNS_MAX][CELL_BYTES];
};

/* Empties a table and gives it its headings; widest: of each column, 0 for no limit. */
void table_begin(struct table *table, unsigned int columns, const char *const *headings,
		 const unsigned int *widest);

/* Adds a row of empty cells. */
void table_row(struct table *table);

/* Adds to a cell of the last row; a space comes between what is added. */
__attribute__((format(printf, 3, 4))) void table_add(struct table *table, unsigned int column,
						     const char *format, ...);

void table_print(const struct table *table, FILE *out);

#endif
