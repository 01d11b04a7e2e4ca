/* SPDX-License-Identifier: MIT */
/* The normal form of an event: what `verbena trace diff` compares of it. */
#ifndef SRC_PICTURE_NORMAL_H
#define SRC_PICTURE_NORMAL_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define NORMAL_FIELDS_MAX  32
#define NORMAL_FIELD_BYTES 32

/* What is not compared. */
struct normal_choice {
	bool time;	/* times and durations */
	bool addresses; /* addresses of the program's memory: from 2^32 */
	bool numbers;	/* which number a QP, a key, a GID or the first PSN has */
	char fields[NORMAL_FIELDS_MAX][NORMAL_FIELD_BYTES]; /* names of members */
	unsigned int field_count;
};

/* Adds the name of a member, of @length bytes. Returns false if there is no room, or the name is too long. */
bool normal_ignore(struct normal_choice *choice, const char *name, size_t length);

/* One of the two sides. */
struct normal {
	const struct normal_choice *choice;
	json_t *seen; /* the numbers of this side in the order in which they came */
};

/* Returns the event's normal form, which the caller releases; NULL if there is no memory. */
json_t *normal_event(struct normal *normal, const json_t *event);

void normal_free(struct normal *normal);

/* Returns a number that is the same for equal normal forms. */
uint64_t normal_sum(const json_t *form);

/* Writes a line for each member whose values differ: its path, and both values. */
void normal_print_difference(const json_t *a, const json_t *b, FILE *out);

#endif /* SRC_PICTURE_NORMAL_H */
