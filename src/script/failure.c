/* SPDX-License-Identifier: MIT */
/* Prints a failure: the line, the sentence, and what was expected beside what has happened. */
#include "src/script/script.h"

#include <stdarg.h>
#include <string.h>

bool script_fail(struct script_failure *failure, const struct script_line *line, const char *fmt,
		 ...)
{
	va_list args;

	if (line) {
		failure->number = line->number;
		failure->column = line->column;
		strcpy(failure->line, line->text);
	}
	va_start(args, fmt);
	vsnprintf(failure->text, sizeof(failure->text), fmt, args);
	va_end(args);
	return false;
}

void script_row(struct script_failure *failure, const char *name, const char *expected,
		const char *actual, bool differs)
{
	struct script_row *row = &failure->rows[failure->row_count];

	if (failure->row_count == SCRIPT_ROWS_MAX)
		return;
	failure->row_count++;
	row->name = name;
	row->differs = differs;
	snprintf(row->expected, sizeof(row->expected), "%s", expected ? expected : "-");
	snprintf(row->actual, sizeof(row->actual), "%s", actual ? actual : "-");
}

const char *script_time_text(uint64_t duration_ns, char *text, size_t size_bytes)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = {{"s", 1000000000}, {"ms", 1000000}, {"us", 1000}, {"ns", 1}};
	unsigned int i = 0;
	char digits[24];
	size_t length;

	while (units[i].ns > 1 && duration_ns < units[i].ns)
		i++;
	snprintf(digits, sizeof(digits), "%09llu",
		 (unsigned long long)duration_ns % units[i].ns * (1000000000 / units[i].ns));
	for (length = 9; length && digits[length - 1] == '0'; length--)
		digits[length - 1] = '\0';
	snprintf(text, size_bytes, "%llu%s%s%s", (unsigned long long)(duration_ns / units[i].ns),
		 length ? "." : "", digits, units[i].name);
	return text;
}

void script_print_failure(const struct script_failure *failure, const char *path, FILE *out)
{
	if (!failure->number) {
		fprintf(out, "%s: %s\n", path, failure->text);
		return;
	}
	fprintf(out, "%s:%u:%u: %s\n", path, failure->number, failure->column, failure->text);
	fprintf(out, "  %4u | %s\n", failure->number, failure->line);
	if (failure->row_count)
		fprintf(out, "         %-14s %-32s %s\n", "", "expected", "actual");
	for (unsigned int i = 0; i < failure->row_count; i++) {
		const struct script_row *row = &failure->rows[i];

		fprintf(out, "       %c %-14s %-32s %s\n", row->differs ? '*' : ' ', row->name,
			row->expected, row->actual);
	}
}
