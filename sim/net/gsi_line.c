/* SPDX-License-Identifier: MIT */
#include "sim/net/gsi_line.h"

#include <stdlib.h>
#include <string.h>

struct sim_gsi_waiting {
	struct sim_gsi_waiting *next;	   /* of the line; or spare */
	struct sim_gsi_waiting *next_line; /* of a line's first: the first of the next line */
	struct sim_gsi_waiting *last;	   /* of a line's first: the line's last */
	struct sim_gsi_receiver receiver;
	struct sim_gsi_letter letter;
};

static bool is_same(const struct sim_gsi_receiver *a, const struct sim_gsi_receiver *b)
{
	return a->process == b->process && memcmp(a->gid, b->gid, sizeof(a->gid)) == 0;
}

/* Returns the place of a receiver's line; *place is NULL if there is none. */
static struct sim_gsi_waiting **find(struct sim_gsi_lines *lines,
				     const struct sim_gsi_receiver *receiver)
{
	struct sim_gsi_waiting **line = &lines->first;

	while (*line && !is_same(&(*line)->receiver, receiver))
		line = &(*line)->next_line;
	return line;
}

bool sim_gsi_lines_have(const struct sim_gsi_lines *lines, const struct sim_gsi_receiver *receiver)
{
	return *find((struct sim_gsi_lines *)lines, receiver);
}

static struct sim_gsi_waiting *take_spare(struct sim_gsi_lines *lines)
{
	struct sim_gsi_waiting *waiting = lines->spare;

	if (waiting) {
		lines->spare = waiting->next;
	} else if (lines->made < SIM_GSI_WAITING_MAX) {
		waiting = malloc(sizeof(*waiting));
		lines->made += waiting != NULL;
	}
	return waiting;
}

struct sim_gsi_letter *sim_gsi_lines_add(struct sim_gsi_lines *lines,
					 const struct sim_gsi_receiver *receiver)
{
	struct sim_gsi_waiting **line = find(lines, receiver);
	struct sim_gsi_waiting *waiting = take_spare(lines);

	if (!waiting)
		return NULL;
	waiting->next = waiting->next_line = NULL;
	waiting->receiver = *receiver;
	if (*line) {
		(*line)->last->next = waiting;
		(*line)->last = waiting;
	} else {
		waiting->last = waiting;
		*line = waiting;
	}
	return &waiting->letter;
}

/* Takes the first message of a line out. The next one becomes the line's first. */
static void take_first(struct sim_gsi_lines *lines, struct sim_gsi_waiting **line)
{
	struct sim_gsi_waiting *first = *line;

	if (first->next) {
		first->next->next_line = first->next_line;
		first->next->last = first->last;
		*line = first->next;
	} else {
		*line = first->next_line;
	}
	first->next = lines->spare;
	lines->spare = first;
}

void sim_gsi_lines_release(struct sim_gsi_lines *lines,
			   bool (*send)(void *arg, const struct sim_gsi_receiver *receiver,
					struct sim_gsi_letter *letter),
			   void *arg)
{
	struct sim_gsi_waiting **line = &lines->first;

	while (*line) {
		struct sim_gsi_waiting *const next_line = (*line)->next_line;

		while (*line != next_line && send(arg, &(*line)->receiver, &(*line)->letter))
			take_first(lines, line);
		if (*line != next_line)
			line = &(*line)->next_line;
	}
}

void sim_gsi_lines_clear(struct sim_gsi_lines *lines)
{
	while (lines->first)
		take_first(lines, &lines->first);
}

void sim_gsi_lines_end(struct sim_gsi_lines *lines)
{
	sim_gsi_lines_clear(lines);
	while (lines->spare) {
		struct sim_gsi_waiting *waiting = lines->spare;

		lines->spare = waiting->next;
		free(waiting);
	}
	lines->made = 0;
}
