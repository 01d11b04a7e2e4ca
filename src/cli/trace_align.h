/* SPDX-License-Identifier: MIT */
/* Gives the events of logs the clock of a capture. */
#ifndef SRC_CLI_TRACE_ALIGN_H
#define SRC_CLI_TRACE_ALIGN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TRACE_OPCODE_BYTES 48

/* What a packet of a log and a frame of the capture have in common. */
struct trace_mark {
	uint64_t time_ns;
	uint64_t psn, dest_qpn;
	char opcode[TRACE_OPCODE_BYTES];
	bool is_found; /* of a frame: a log has the packet */
};

struct trace_event {
	struct trace_mark mark; /* only the time, unless the event is a packet */
	char *text; /* of the frame; NULL: the event is a packet, whose frame is in the capture */
};

struct trace_log {
	const char *name;
	struct trace_event *events;
	size_t count, room;
	size_t next;	     /* the first event that is not written */
	uint64_t last_ns;    /* an event without a time has that of the event before */
	uint64_t started_ns; /* when the log began, since 1970; 0: the log does not say */
	bool no_memory;
};

/* The frames of the capture, in their order. */
struct trace_marks {
	struct trace_mark *marks;
	size_t count, room;
};

/* Returns true if both are the same packet, whose times are not compared. */
bool trace_same_packet(const struct trace_mark *a, const struct trace_mark *b);

/*
 * The times of a capture of a simulated world are those of its log. A capture of a network has the time of day: the
 * log's packets that are in the capture get the capture's times, and all other events stay before the packets behind
 * them.
 * The log of an adapter has no packets: its times count from the moment that the log names. Returns NULL, or why the
 * log and the capture have no common clock.
 */
const char *trace_align(struct trace_log *log, const struct trace_marks *frames);

#endif /* SRC_CLI_TRACE_ALIGN_H */
