/* SPDX-License-Identifier: MIT */
/*
 * A ladder: the events of a log or a capture as rows between nodes, which are columns. A node is a
 * device, or an address whose device the log does not name.
 *
 *	ladder.c	the rows, and the nodes of packets
 *	ladder_join.c	the rows of several files, in the order of their times
 *	row_text.c	the text of a row, by the kind of its event
 *	ladder_wrap.c	breaks a text into lines
 *	ladder_text.c	the ladder as lines
 *	ladder_svg.c	the ladder as SVG
 *	page.h		the ladder as a page for browsers
 *
 * The caller owns a struct ladder, zeroed before the first call, and one thread uses it. Without memory the
 * program ends (bytes.h).
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
	int peer; /* of a packet: the destination node; LADDER_NOWHERE: a group, or no packet. Until
		     ladder_end(), an index in ladder->addresses. */
	int source,
		dest; /* of an event with a packet: indices in ladder->addresses, or LADDER_NOWHERE */
	unsigned int file; /* an index in ladder->files */
	uint64_t
		order_ns; /* for sorting: the time, or that of the file's last event that has one */
	uint64_t sequence;    /* numbers the events of all files from 0 */
	uint64_t packet_hash; /* of a packet: equal for the same packet in another file */
	bool has_time;
	bool lost;   /* a packet that did not arrive */
	bool failed; /* event_is_failure() */
	char *text;
	size_t page_event;	 /* the index of its event in struct page; 0: none */
	size_t page_event_other; /* that of the same packet in another file; 0: none */
};

/* An address that a packet comes from or goes to. */
struct address {
	char *text; /* a GID, or "LID 5" */
	int node;   /* LADDER_NOWHERE until it is known; ladder_end() finds a node for each */
};

/* Where a node comes from. */
struct origin {
	unsigned int file; /* LADDER_NO_FILE: the node is an address */
	int same;	/* the first node that stands for the same device; often the node itself */
	bool addressed; /* an address of the device is known */
};

#define LADDER_NO_FILE UINT_MAX

/* A log or a capture that rows come from. */
struct ladder_file {
	char *name;
	uint64_t start_ns; /* the moment that its times count from, in ns since 1970; 0: unknown */
};

struct ladder {
	bool with_verbs; /* also show verbs that succeed and post nothing */
	uint64_t last;	 /* keep only this many rows, the last ones; 0: all */
	struct row *rows;
	size_t row_count, row_room;
	char **nodes;		/* the names of the nodes */
	struct origin *origins; /* of each node; valid until ladder_end() */
	size_t node_count;
	struct address *addresses;
	size_t address_count;
	uint64_t left_out; /* counts the rows that `last` has removed */
	struct ladder_file *files;
	unsigned int file_count;
	uint64_t sequence;     /* of the next event */
	uint64_t last_time_ns; /* of the present file's last event that has a time */
};

/* Events that ladder_take() gets from now on belong to this file. Without a call there is one file. Devices
 * of the same name in two files are one node, unless the files know different addresses of them. */
void ladder_begin_file(struct ladder *ladder, const char *name);

/* Says that the times of the present file count from @start_ns, in ns since 1970. */
void ladder_set_start(struct ladder *ladder, uint64_t start_ns);

/* Learns from an event which addresses a device has, and adds its row if it is @chosen and its kind has one.
 * Returns the row, which is valid up to the next call; NULL if none was added. */
struct row *ladder_take(struct ladder *ladder, const json_t *event, bool chosen);

/* Call this after the last event: finds the nodes of all packets, and removes nodes without a row. */
void ladder_end(struct ladder *ladder);

void ladder_free(struct ladder *ladder);

/* --- ladder_join.c --- */

/* Sorts the rows of several files by time, and joins the two rows of a packet that is in two files. */
void ladder_sort(struct ladder *ladder);

/* Finds the devices that are in several files, and adds the file's name to devices that share only their
 * name. */
void ladder_unify(struct ladder *ladder);

/* --- row_text.c --- */

/* A verb that posts work requests. */
struct post_verb {
	const char *verb;
	const char *requests; /* the argument that has them */
	bool receives;
};

/* Returns NULL if the event is no call of a verb that posts. */
const struct post_verb *post_verb_of(const json_t *event);

/* Returns the name of a kind, which is also its CSS class. */
const char *row_kind_name(enum row_kind kind);

/* Returns the kind of the event's row; ROW_NONE if it has no row. */
enum row_kind row_kind_of(const json_t *event, bool with_verbs);

/* Returns the row's text, which the caller frees. */
char *row_text(const json_t *event);

/* Returns true if the packet's destination is a multicast group. */
bool packet_is_multicast(const json_t *packet);

/* --- ladder_wrap.c --- */

/* A line of a text. It points into the text. */
struct piece {
	const char *text;
	size_t bytes;
	int columns;
};

/*
 * Takes the next line, of at most @columns columns, from *text, and sets *text to its end. Lines
 * break between words; a longer word is cut. Returns false at the end of the text.
 */
bool ladder_piece(const char **text, int columns, struct piece *piece);

/* Counts the columns of a text in UTF-8, with one for each character. */
int ladder_columns(const char *text);

/* Replaces control characters by '?': a terminal would obey those in a program's names and texts. */
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
