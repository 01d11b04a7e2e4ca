/* SPDX-License-Identifier: MIT */
/*
 * The normal form of an event, which `verbena trace diff` compares: the event without the members that are not
 * compared, and with numbers that do not depend on what a device happened to choose.
 */
#ifndef SRC_PICTURE_NORMAL_H
#define SRC_PICTURE_NORMAL_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define NORMAL_FIELDS_MAX  32
#define NORMAL_FIELD_BYTES 32

/* What is ignored. */
struct normal_choice {
	bool time;	/* times and durations */
	bool addresses; /* numbers from 2^32 on, which are addresses of the program's memory */
	bool numbers;	/* the values of QPNs, keys, GIDs and first PSNs; their order is compared */
	char fields[NORMAL_FIELDS_MAX][NORMAL_FIELD_BYTES]; /* names of more members */
	unsigned int field_count;
};

/* Adds the name of a member to ignore, of @length bytes. Returns false if there is no room, or the name is too
 * long. */
bool normal_ignore(struct normal_choice *choice, const char *name, size_t length);

/* The state of one of the two files that are compared. The caller sets `choice` and zeroes the rest. */
struct normal {
	const struct normal_choice *choice;
	json_t *seen; /* the numbers of this file, in the order in which they came */
};

/* Returns the event's normal form, which the caller releases with json_decref(); NULL if there is no memory.
 * Give it the events of a file in their order. */
json_t *normal_event(struct normal *normal, const json_t *event);

void normal_free(struct normal *normal);

/* Returns a hash of a normal form. */
uint64_t normal_hash(const json_t *form);

/* Writes a line for each member whose values differ: its path, and both values. */
void normal_print_difference(const json_t *a, const json_t *b, FILE *out);

#endif /* SRC_PICTURE_NORMAL_H */
