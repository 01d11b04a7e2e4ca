/* SPDX-License-Identifier: MIT */
/* An event as a line of the log. */
#ifndef SRC_LOG_RECORD_H
#define SRC_LOG_RECORD_H

#include "src/log/line.h"

#include <verbena/event.h>

/* Bytes that suffice for each line. */
#define RECORD_BYTES_MAX 65536

/* What a line has besides the members of struct vb_event. */
struct record {
	uint64_t number; /* the event's place in the log, from 1; 0: the first line */
	bool no_time;	 /* the event has no "t", since no device has a clock for it */
	/* The fields of the forms ARGUMENTS and RESULT: write adds a value and returns true, or adds
	 * nothing and returns false, if the event does not have the field. NULL: neither. */
	bool (*arguments)(struct line *line, const void *arg);
	bool (*result)(struct line *line, const void *arg);
	const void *arg;
};

/* Adds the event as one JSON object, without newline. */
void record_write(struct line *line, const struct vb_event *event, const struct record *record);

#endif /* SRC_LOG_RECORD_H */
