/* SPDX-License-Identifier: MIT */
#include "docs/gen/table.h"

#include <assert.h>
#include <stdarg.h>
#include <string.h>

void table_begin(struct table *table, unsigned int columns, const char *const *headings,
		 const unsigned int *widest)
{
	assert(columns <= TABLE_COLUMNS_MAX);
	table->columns = columns;
	table->rows = 0;
	table_row(table);
	for (unsigned int i = 0; i < columns; i++) {
		/* Headings must fit, since Markdown allows one row of headings only. */
		assert(!widest[i] || strlen(headings[i]) <= widest[i]);
		table->widest[i] = widest[i];
		table_add(table, i, "%s", headings[i]);
	}
}

void table_row(struct table *table)
{
	assert(table->rows < TABLE_ROWS_MAX);
	memset(table->cells[table->rows++], 0, sizeof(table->cells[0]));
}

void table_add(struct table *table, unsigned int column, const char *format, ...)
{
	char *cell = table->cells[table->rows - 1][column];
	size_t used = strlen(cell);
	va_list args;
	int length;

	assert(column < table->columns);
	if (used)
		cell[used++] = ' ';
	va_start(args, format);
	length = vsnprintf(cell + used, CELL_BYTES - used, format, args);
	va_end(args);
	assert(length >= 0 && (size_t)length < CELL_BYTES - used);
	(void)length;
}

/* Returns how many bytes of the text fit in a line, up to the last space. */
static size_t line_bytes(const char *text, size_t width)
{
	size_t length = strlen(text);

	if (!width || length <= width)
		return length;
	for (size_t i = width; i; i--)
		if (text[i] == ' ')
			return i;
	return strcspn(text, " ");
}

static const char *behind(const char *text, size_t bytes)
{
	return text + bytes + (text[bytes] == ' ');
}

static size_t width_of(const struct table *table, unsigned int column)
{
	size_t width = 1;

	for (unsigned int row = 0; row < table->rows; row++) {
		const char *text = table->cells[row][column];

		while (*text) {
			size_t bytes = line_bytes(text, table->widest[column]);

			if (bytes > width)
				width = bytes;
			text = behind(text, bytes);
		}
	}
	return width;
}

static void print_row(const struct table *table, unsigned int row, const size_t *widths, FILE *out)
{
	const char *left[TABLE_COLUMNS_MAX];
	int more = 1;

	for (unsigned int i = 0; i < TABLE_COLUMNS_MAX; i++)
		left[i] = table->cells[row][i];
	while (more) {
		more = 0;
		for (unsigned int i = 0; i < table->columns; i++) {
			size_t bytes = line_bytes(left[i], table->widest[i]);

			fprintf(out, "| %-*.*s ", (int)widths[i], (int)bytes, left[i]);
			left[i] = behind(left[i], bytes);
			more |= *left[i];
		}
		fprintf(out, "|\n");
	}
}

void table_print(const struct table *table, FILE *out)
{
	size_t widths[TABLE_COLUMNS_MAX] = {0};

	for (unsigned int i = 0; i < table->columns; i++)
		widths[i] = width_of(table, i);
	for (unsigned int row = 0; row < table->rows; row++) {
		print_row(table, row, widths, out);
		if (row)
			continue;
		for (unsigned int i = 0; i < table->columns; i++) {
			fprintf(out, "| ");
			for (size_t dash = 0; dash < widths[i]; dash++)
				fputc('-', out);
			fputc(' ', out);
		}
		fprintf(out, "|\n");
	}
}
