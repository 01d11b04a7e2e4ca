/* SPDX-License-Identifier: MIT */
/*
 * A ladder on the terminal: the left rail is one node, the right rail the other, packets are
 * rungs between them.
 */
#ifndef EXAMPLES_LADDER_H
#define EXAMPLES_LADDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ladder_side { LADDER_LEFT, LADDER_RIGHT };

struct ladder {
	bool colour;
	unsigned int naks[2]; /* negative acknowledgements that a side has sent */
	unsigned int packets;
};

void ladder_start(struct ladder *ladder);

/* A heading over the rungs to come. */
void ladder_chapter(const struct ladder *ladder, const char *title);

/* The names of the rails. */
void ladder_rails(const struct ladder *ladder, const char *left, const char *right);

/* What happens at one node; good or bad is a completion's or an event's. */
enum ladder_mood { LADDER_PLAIN, LADDER_GOOD, LADDER_BAD };

void ladder_note(const struct ladder *ladder, uint64_t now_ns, enum ladder_side side,
		 enum ladder_mood mood, const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* A RoCEv2 frame, sent by the node whose MAC ends in 1 (left) or another (right); a vb_sim_frame_fn
 * whose arg is a struct ladder. */
void ladder_frame(void *arg, uint64_t now_ns, const uint8_t *frame, size_t length_bytes, bool lost);

#endif
