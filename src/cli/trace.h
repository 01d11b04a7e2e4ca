/* SPDX-License-Identifier: MIT */
/* The parts of `verbena trace`: where events come from, which are chosen, how they are printed. */
#ifndef SRC_CLI_TRACE_H
#define SRC_CLI_TRACE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* --- trace_read.c --- */

/* Takes an event, and its line of JSON. Returns false to stop. */
typedef bool trace_take_fn(void *arg, const json_t *event, const char *line);

/*
 * Reads a log or a capture file (pcap) and calls take() for each event. @name is for messages.
 * Returns 0, or 1 after a message: the file is neither, its schema is newer, or lines were wrong.
 */
int trace_read(FILE *file, const char *name, trace_take_fn *take, void *arg);

/* --- trace_choose.c --- */

struct trace_choice {
	const char *device; /* NULL: any */
	const char *object; /* "mr3", "qp 0x11"; NULL: any */
	const char *kinds;  /* with commas between; NULL: any */
	uint64_t qpn;	    /* only if has_qpn */
	uint64_t from_ns, to_ns;
	uint64_t last_ns; /* of the last event that had a time */
	bool has_qpn;
	bool failed; /* only what has failed */
};

/* Returns true if the event is chosen. */
bool trace_chosen(struct trace_choice *choice, const json_t *event);

/* --- trace_text.c --- */

/* The widths of columns, which grow with the events. */
struct trace_text {
	int device_width;
	bool colour;
};

/* Prints the event as one line. */
void trace_print(struct trace_text *text, const json_t *event, FILE *out);

#endif /* SRC_CLI_TRACE_H */
