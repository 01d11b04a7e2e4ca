/* SPDX-License-Identifier: MIT */
/*
 * A ladder: the events of a log or a capture as rows between nodes, which are columns. A node is a
 * device, or an address whose device the log does not name.
 *
 *	ladder.c	the rows, and the nodes of packets
 *	row_text.c	the text of a row, by the kind of its event
 *	ladder_wrap.c	a text that is broken into lines
 *	ladder_text.c	the ladder as lines
 *	ladder_svg.c	the ladder as SVG
 */
#ifndef SRC_PICTURE_LADDER_H
#define SRC_PICTURE_LADDER_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define LADDER_NOWHERE	 (-1)
#define LADDER_WIDTH_MAX 1000

/* What a row shows. */
enum row_kind {
	ROW_NONE, /* the event has no row */
	ROW_PACKET,
	ROW_POST,
	ROW_COMPLETION,
	ROW_STATE,
	ROW_EVENT, /* asynchronous, or of the connection manager */
	ROW_TIMER,
	ROW_FAULT,
	ROW_FAILURE,
	ROW_DROP,
	ROW_VERB,
	ROW_OTHER,
	ROW_KINDS,
};

struct row {
	uint64_t number; /* "n" of the event */
	uint64_t time_ns;
	enum row_kind kind;
	int node; /* where it happened, or LADDER_NOWHERE */
	int peer; /* of a packet: the node that it is for; LADDER_NOWHERE: none or several */
	bool has_time;
	bool lost;   /* a packet that did not arrive */
	bool failed; /* event_is_failure() */
	char *text;
};

/* An address of packets. Until ladder_end() names all, its node may be unknown. */
struct address {
	char *text;
	int node;
};

struct ladder {
	bool with_verbs; /* also the verbs that are no posts and have not failed */
	uint64_t last;	 /* keep the last rows only, so many; 0: all */
	struct row *rows;
	size_t row_count, row_room;
	char **nodes; /* their names */
	size_t node_count;
	struct address *addresses;
	size_t address_count;
	uint64_t left_out; /* rows before the last ones */
};

/* Adds the row of an event. With !@chosen the event has no row, but says which addresses a device has. */
void ladder_take(struct ladder *ladder, const json_t *event, bool chosen);

/* After the last event: finds the nodes of all packets, and leaves out nodes without a row. */
void ladder_end(struct ladder *ladder);

void ladder_free(struct ladder *ladder);

/* --- row_text.c --- */

/* The name of a kind in CSS classes. */
const char *row_kind_name(enum row_kind kind);

/* Returns how the event is shown. */
enum row_kind row_kind_of(const json_t *event, bool with_verbs);

/* Returns the row's text, which the caller frees. */
char *row_text(const json_t *event);

/* Returns true if the packet is for a group. */
bool packet_is_multicast(const json_t *packet);

/* --- ladder_wrap.c --- */

/* A part of a text that is one line. */
struct piece {
	const char *text;
	size_t bytes;
	int columns;
};

/*
 * Takes the next piece of at most @columns columns from *text, and advances *text behind it. Lines
 * break between words. Returns false at the end of the text.
 */
bool ladder_piece(const char **text, int columns, struct piece *piece);

/* Returns how many columns a text has. */
int ladder_columns(const char *text);

/* Terminals obey control characters, which the texts of a program may have: they become '?'. */
void ladder_clean(char *text);

/* --- ladder_text.c --- */

struct ladder_style {
	int width; /* columns of a line, at most LADDER_WIDTH_MAX */
	bool colour;
};

void ladder_print(const struct ladder *ladder, const struct ladder_style *style, FILE *out);

/* --- ladder_svg.c --- */

void ladder_print_svg(const struct ladder *ladder, FILE *out);

#endif /* SRC_PICTURE_LADDER_H */
