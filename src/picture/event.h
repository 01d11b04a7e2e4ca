/* SPDX-License-Identifier: MIT */
/* Reads an event: a line of a log (docs/event-log.md) that jansson has parsed. */
#ifndef SRC_PICTURE_EVENT_H
#define SRC_PICTURE_EVENT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Returns the string of a member, which belongs to the object; "" if the object has no such string. */
static inline const char *event_string(const json_t *object, const char *key)
{
	const char *string = json_string_value(json_object_get(object, key));

	return string ? string : "";
}

/* Reads a number, or a string such as "0x11". Returns false if the value is neither. */
bool event_number(const json_t *value, uint64_t *number);

/* Returns true for an event that reports a failed verb, work request or completion, a lost or dropped
 * packet, an error event, or a QP that has entered ERR or SQE. */
bool event_is_failure(const json_t *event);

/* Writes the event as text for people, without time, device, kind, QP and newline. */
void event_text(const json_t *event, FILE *out);

#endif /* SRC_PICTURE_EVENT_H */
