/* SPDX-License-Identifier: MIT */
/*
 * Where lines for a person go: standard error, or a file. Each line is one write(2), so that the
 * lines of several threads and processes do not mix.
 */
#ifndef SRC_EXPLAIN_SINK_H
#define SRC_EXPLAIN_SINK_H

#include <limits.h>
#include <stdbool.h>

#define SINK_LINE_BYTES 4096 /* PIPE_BUF: what a pipe takes as one piece */

struct sink {
	char path[PATH_MAX]; /* with %p; "": standard error */
	bool coloured;
};

/*
 * Reads the value of a variable: returns false for NULL, "" and "0", which ask for no lines. "1",
 * "-" and "stderr" stand for standard error, any other text for a file, to whose end lines go.
 * Lines still go to the present standard error after the program has closed or replaced it.
 */
bool sink_init(struct sink *sink, const char *value);

/*
 * Writes "verbena: ", the place if it is not "", and the sentence as one line. A line is lost if
 * nobody can take it. Any thread may call it; it changes no errno.
 */
void sink_write(const struct sink *sink, const char *place, const char *sentence);

#endif /* SRC_EXPLAIN_SINK_H */
