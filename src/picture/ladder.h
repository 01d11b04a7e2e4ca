/* SPDX-License-Identifier: MIT */
/*
 * A ladder: the events of a log or a capture as rows between nodes, which are columns. A node is a
 * device, or an address whose device the log does not name.
 *
 *	ladder.c	the rows, and the nodes of packets
 *	ladder_join.c	the rows of several files, in the order of their times
 *	row_text.c	the text of a row, by the kind of its event
 *	ladder_wrap.c	a text that is broken into lines
 *	ladder_text.c	the ladder as lines
 *	ladder_svg.c	the ladder as SVG
 *	page.h		the ladder as a page for browsers
 */
#ifndef SRC_PICTURE_LADDER_H
#define SRC_PICTURE_LADDER_H

#include <jansson.h>
#include <limits.h>
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
	int source, dest; /* of an event with a packet: its addresses, or LADDER_NOWHERE */
	unsigned int file;
	uint64_t order_ns;   /* the time, or that of the row before it in the file */
	uint64_t sequence;   /* counts the rows of all files from 0 */
	uint64_t packet_sum; /* of a packet: equal for the same packet in another file */
	bool has_time;
	bool lost;   /* a packet that did not arrive */
	bool failed; /* event_is_failure() */
	char *text;
	size_t kept, kept_too; /* its entry in struct page, and that of the same packet in another
				  file; 0: none */
};

/* An address of packets. Until ladder_end() names all, its node may be unknown. */
struct address {
	char *text;
	int node;
};

/* Where a node comes from. */
struct origin {
	unsigned int file; /* LADDER_NO_FILE: the node is an address */
	int same;	/* the first node that is the same one; the node itself if there is none */
	bool addressed; /* an address of the device is known */
};

#define LADDER_NO_FILE UINT_MAX

/* A log or a capture that rows come from. */
struct ladder_file {
	char *name;
	uint64_t start_ns; /* what its times count from, since 1970; 0: its own 0 */
};

struct ladder {
	bool with_verbs; /* also the verbs that are no posts and have not failed */
	uint64_t last;	 /* keep the last rows only, so many; 0: all */
	struct row *rows;
	size_t row_count, row_room;
	char **nodes;		/* their names */
	struct origin *origins; /* of the nodes; until ladder_end() */
	size_t node_count;
	struct address *addresses;
	size_t address_count;
	uint64_t left_out; /* rows before the last ones */
	struct ladder_file *files;
	unsigned int file_count;
	uint64_t sequence;     /* of the next row */
	uint64_t last_time_ns; /* of the file's last row that has a time */
};

/* The events that follow are of this file. Without a call there is one file. With several, a device of the
 * same name is the same node, unless its addresses differ. */
void ladder_begin_file(struct ladder *ladder, const char *name);

/* The times of the present file count from @start_ns, since 1970. */
void ladder_set_start(struct ladder *ladder, uint64_t start_ns);

/* Adds the row of an event. With !@chosen the event has no row, but says which addresses a device has.
 * Returns the row, which is valid up to the next call; NULL: there is none. */
struct row *ladder_take(struct ladder *ladder, const json_t *event, bool chosen);

/* After the last event: finds the nodes of all packets, and leaves out nodes without a row. */
void ladder_end(struct ladder *ladder);

void ladder_free(struct ladder *ladder);

/* --- ladder_join.c --- */

/* Orders the rows of several files by time. A packet that two files have is one row: the first. */
void ladder_sort(struct ladder *ladder);

/* Finds out which devices of several files are the same node, and names the others by their file. */
void ladder_unify(struct ladder *ladder);

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
