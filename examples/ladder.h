/* SPDX-License-Identifier: MIT */
/*
 * A ladder diagram on the terminal: the rails are two nodes, and each packet is a rung between them.
 */
#ifndef EXAMPLES_LADDER_H
#define EXAMPLES_LADDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ladder_side { LADDER_LEFT, LADDER_RIGHT };

struct ladder {
	bool colour;
	int inner_columns;    /* between the rails */
	unsigned int naks[2]; /* counts the NAKs that each side has sent */
	unsigned int packets;
};

/* Lines are as wide as the terminal, or have the columns of the variable COLUMNS. */
void ladder_start(struct ladder *ladder);

/* Prints a heading above the next rungs. */
void ladder_chapter(const struct ladder *ladder, const char *title);

/* Prints the names of the rails. */
void ladder_rails(const struct ladder *ladder, const char *left, const char *right);

/* GOOD and BAD are the outcome of a completion or an event. */
enum ladder_mood { LADDER_PLAIN, LADDER_GOOD, LADDER_BAD };

/* Prints what happens at one node. */
void ladder_note(const struct ladder *ladder, uint64_t now_ns, enum ladder_side side,
		 enum ladder_mood mood, const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* Prints a RoCEv2 frame. The left node is the one whose MAC address ends in 1. A vb_sim_frame_fn
 * whose arg is a struct ladder. */
void ladder_frame(void *arg, uint64_t now_ns, const uint8_t *frame, size_t length_bytes, bool lost);

#endif
