/* SPDX-License-Identifier: MIT */
#include "src/check/options.h"

#include "src/base/count.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STATUS_MAX 255

static bool read_number(const char *text, unsigned long max, unsigned long *number)
{
	char *end;

	errno = 0;
	*number = strtoul(text, &end, 10);
	return *text >= '0' && *text <= '9' && !*end && !errno && *number <= max;
}

static bool set_status(struct check_settings *settings, const char *text)
{
	unsigned long number;

	if (!read_number(text, STATUS_MAX, &number))
		return false;
	settings->options.exit_status = number ? (int)number : -1;
	return true;
}

static bool set_abort(struct check_settings *settings, const char *text)
{
	settings->options.abort = !strcmp(text, "1");
	return !strcmp(text, "0") || !strcmp(text, "1");
}

static bool set_order(struct check_settings *settings, const char *text)
{
	settings->options.order = !strcmp(text, "1");
	return !strcmp(text, "0") || !strcmp(text, "1");
}

static bool set_bytes(struct check_settings *settings, const char *text)
{
	unsigned long number;

	if (!read_number(text, UINT32_MAX, &number) || !number)
		return false;
	settings->options.buffer_bytes = (uint32_t)number;
	return true;
}

static bool set_file(struct check_settings *settings, const char *text)
{
	settings->options.file = settings->file;
	return *text && snprintf(settings->file, sizeof(settings->file), "%s", text) < PATH_MAX;
}

static bool set_suppressions(struct check_settings *settings, const char *text)
{
	settings->options.suppressions = settings->suppressions;
	return *text && snprintf(settings->suppressions, sizeof(settings->suppressions), "%s",
				 text) < PATH_MAX;
}

static const struct {
	const char *name, *values;
	bool (*set)(struct check_settings *settings, const char *text);
} rows[] = {
	{"exit-status", "a number from 0 to 255; 0 is the program's own", set_status},
	{"abort", "0 or 1", set_abort},
	{"bytes", "a number of bytes of each buffer", set_bytes},
	{"order", "0 or 1", set_order},
	{"file", "a file for the findings", set_file},
	{"suppressions", "a file of suppressions", set_suppressions},
};

static bool read_setting(struct check_settings *settings, const char *text)
{
	const size_t length = strcspn(text, "=");

	for (size_t i = 0; i < COUNT(rows); i++) {
		if (strlen(rows[i].name) != length || memcmp(rows[i].name, text, length) != 0)
			continue;
		if (text[length] && rows[i].set(settings, text + length + 1))
			return true;
		snprintf(settings->error, sizeof(settings->error),
			 "check: %.64s: the value is wrong; %s takes %s", text, rows[i].name,
			 rows[i].values);
		return false;
	}
	snprintf(settings->error, sizeof(settings->error),
		 "check: %.64s: there is no such setting; take exit-status=N, abort=1, bytes=N, "
		 "order=1, file=FILE or suppressions=FILE",
		 text);
	return false;
}

bool check_settings_wanted(const char *value)
{
	return value && *value && strcmp(value, "0") != 0;
}

bool check_settings_read(struct check_settings *settings, const char *value)
{
	char *copy, *rest, *text;
	bool right = true;

	memset(settings, 0, sizeof(*settings));
	if (!strcmp(value, "1"))
		return true;
	copy = strdup(value);
	if (!copy) {
		snprintf(settings->error, sizeof(settings->error), "check: no memory");
		return false;
	}
	for (text = strtok_r(copy, ",", &rest); text && right; text = strtok_r(NULL, ",", &rest))
		right = read_setting(settings, text);
	free(copy);
	return right;
}
