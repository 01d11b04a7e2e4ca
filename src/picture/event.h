/* SPDX-License-Identifier: MIT */
/* An event of a log (docs/event-log.md), as jansson has read the line: its values, and its text. */
#ifndef SRC_PICTURE_EVENT_H
#define SRC_PICTURE_EVENT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Returns the string of a member; "" if there is none. */
static inline const char *event_string(const json_t *object, const char *key)
{
	const char *string = json_string_value(json_object_get(object, key));

	return string ? string : "";
}

/* Reads a number, or a string such as "0x11". Returns false if the value is neither. */
bool event_number(const json_t *value, uint64_t *number);

/* Returns true for a failure, an error, a loss or a drop. */
bool event_is_failure(const json_t *event);

/* Writes what has happened, without newline. */
void event_text(const json_t *event, FILE *out);

#endif /* SRC_PICTURE_EVENT_H */
