/* SPDX-License-Identifier: MIT */
/* The parts of `verbena trace`: reading events, choosing among them, printing them. */
#ifndef SRC_CLI_TRACE_H
#define SRC_CLI_TRACE_H

#include "src/cli/options.h"
#include "src/picture/ladder.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* --- trace_read.c --- */

/* Gets an event, and its line of JSON. Returns false to stop the reading. */
typedef bool trace_take_fn(void *arg, const json_t *event, const char *line);

/*
 * Reads a log, a capture file (pcap) or an annotated capture, calls take() for each event, and closes the file. @name is
 * for messages; NULL: none are printed. Returns 0, or 1 after a message: the file is neither, its schema is newer, or lines were wrong.
 */
int trace_read(FILE *file, const char *name, trace_take_fn *take, void *arg);

/* The same, without the first @skip frames of a capture. */
int trace_read_from(FILE *file, const char *name, uint64_t skip, trace_take_fn *take, void *arg);

/* The frame of a capture from which an event was decoded. */
struct trace_frame {
	const uint8_t *bytes;
	size_t length_bytes;
	bool infiniband;
	uint64_t
		start_ns; /* what the times of the capture's events count from, since 1970; 0: its own 0 */
};

/* Gets an event, its line of JSON, and its frame; NULL for an event of a log. Returns false to stop the
 * reading. */
typedef bool trace_take_frame_fn(void *arg, const json_t *event, const char *line,
				 const struct trace_frame *frame);

/* The same as trace_read(), with the frames of a capture. */
int trace_read_frames(FILE *file, const char *name, trace_take_frame_fn *take, void *arg);

/* Returns true if verbena trace annotate wrote the file, from which one can read twice. */
bool trace_is_annotated(FILE *file);

/* Returns how many frames a capture has. */
uint64_t trace_count_frames(const char *path);

/* --- trace_choose.c --- */

struct trace_choice {
	const char *device; /* NULL: any */
	const char *object; /* "mr3", "qp 0x11"; NULL: any */
	const char *kinds;  /* with commas between; NULL: any */
	uint64_t qpn;	    /* only if has_qpn */
	uint64_t ends[2];   /* the QPs of a connection, only if has_connection */
	uint64_t from_ns, to_ns;
	uint64_t last_ns; /* of the last event that had a time */
	bool has_qpn;
	bool has_connection;
	bool failed; /* only what has failed */
};

/* Returns true if the event is chosen. */
bool trace_chosen(struct trace_choice *choice, const json_t *event);

/* --- trace_options.c --- */

cli_take_fn trace_take_qp, trace_take_connection, trace_take_kinds, trace_take_time;

/* The words of the kinds, without the gaps between their numbers. */
vb_words_fn trace_kind;

/* Rows of options that fill in a struct trace_choice, the first member of the command's structure. */
#define TRACE_AT(field) offsetof(struct trace_choice, field)
#define TRACE_CHOICE_OPTIONS                                                                    \
	{"device",	  0, "D", "events of this device [all]", "Which events", cli_take_text, \
	 TRACE_AT(device)},                                                                     \
		{"qp", 0,                                                                       \
		 "N",  "events of the QP with this number, and packets to it [all]",            \
		 NULL, trace_take_qp},                                                          \
		{"connection", 0,                                                               \
		 "N,M",	       "events of these two QPs, and packets between them [all]",       \
		 NULL,	       trace_take_connection},                                          \
		{"object",                                                                      \
		 0,                                                                             \
		 "NAME",                                                                        \
		 "events that name this object, such as mr3 or \"qp 0x11\" [all]",              \
		 NULL,                                                                          \
		 cli_take_text,                                                                 \
		 TRACE_AT(object)},                                                             \
		{"kind",                                                                        \
		 0,                                                                             \
		 "K[,K...]",                                                                    \
		 "events of these kinds [all]",                                                 \
		 NULL,                                                                          \
		 trace_take_kinds,                                                              \
		 .words = trace_kind},                                                          \
		{"from",                                                                        \
		 0,                                                                             \
		 "TIME",                                                                        \
		 "events at this time or later, such as 1.5ms [0]",                             \
		 NULL,                                                                          \
		 trace_take_time,                                                               \
		 TRACE_AT(from_ns)},                                                            \
		{"to",		 0,                                                             \
		 "TIME",	 "events at this time or before [the end]",                     \
		 NULL,		 trace_take_time,                                               \
		 TRACE_AT(to_ns)},                                                              \
	{                                                                                       \
		"failed", 0, NULL, "only failures, errors, lost and dropped packets", NULL,     \
			cli_take_flag, TRACE_AT(failed)                                         \
	}

/* Opens the one file of the command line; "-" is standard input. Returns enum cli_exit. */
int trace_open(const struct cli_command *command, int argc, char **argv, FILE **file,
	       const char **name);

/* Opens a file; "-" is standard input. Sets *shown to its name for messages. Returns NULL after a message. */
FILE *trace_open_file(const char *name, const char **shown);

/* Returns true if standard output is a terminal that shows colours. */
bool trace_wants_colour(void);

/* The options --width and --color of pictures as text. */
struct trace_look {
	uint64_t width; /* 0: the terminal's, else 100 */
	const char *colour;
};

cli_take_fn trace_take_width; /* sets the uint64_t at the option's offset */
vb_words_fn trace_colour_word;

struct ladder_style trace_style(const struct trace_look *look);

#define TRACE_LOOK_OPTIONS(offset)                                                                 \
	{"width",                                                                                  \
	 0,                                                                                        \
	 "N",                                                                                      \
	 "columns of a line [the terminal's, else 100]",                                           \
	 "Output",                                                                                 \
	 trace_take_width,                                                                         \
	 (offset) + offsetof(struct trace_look, width)},                                           \
	{                                                                                          \
		"color", 0, "WHEN", "colours [auto: on a terminal, unless NO_COLOR is set]", NULL, \
			cli_take_word, (offset) + offsetof(struct trace_look, colour),             \
			.words = trace_colour_word                                                 \
	}

/* Flushes standard output. A pager that ends before the output is no error; @write_error is the errno
 * value of the first line that was not written, or 0. */
void trace_forget_pager(int write_error);

/* --- trace_show.c --- */

/*
 * Prints the last rows of a log or a capture as a ladder of @width columns. It is for a test that has
 * failed, so it prints nothing, also no message, if the file cannot be read.
 */
void trace_show_last(const char *path, unsigned int rows, int width, FILE *out);

/* Prints the last rows of a log, and writes all as a picture (SVG) and as a page (HTML), to which the capture adds
 * the packets' bytes. Returns 0, or 1 if a file cannot be read or written. */
int trace_picture(const char *log, const char *capture, const char *svg, const char *page,
		  FILE *out);

/* --- trace_text.c --- */

/* The widths of columns, which grow with the events. */
struct trace_text {
	int device_width;
	bool colour;
};

/* Prints the event as one line. */
void trace_print(struct trace_text *text, const json_t *event, FILE *out);

#endif /* SRC_CLI_TRACE_H */
