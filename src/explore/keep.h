/* SPDX-License-Identifier: MIT */
/* How much of a run's log and trace is kept. */
#ifndef SRC_EXPLORE_KEEP_H
#define SRC_EXPLORE_KEEP_H

#include "src/base/limit.h"

struct keep {
	struct vb_limit log, trace;
};

/* What was left out of the files of a run. */
struct kept {
	uint64_t events;  /* the first ones of the log */
	uint64_t packets; /* all but so many; 0: nothing */
	bool disk_full;	  /* what the run did last may be missing, too */
};

/* Returns the limits of VERBENA_LOG_LIMIT and VERBENA_TRACE_LIMIT; the last 10000 events or packets, unless a variable
 * says how much. */
struct keep keep_limits(void);

/* Sets the two variables for a program that is started. */
void keep_by_programs(void);

/* Sets the limit for the log of a run in this process, and takes it back. */
void keep_limit_log(void);
void keep_release_log(void);

/*
 * Joins what the run has left of its files: the process of a run that hangs ends without joining them. `packets` is how
 * many the run had. log and trace may be NULL.
 */
struct kept keep_files(const char *log, const char *trace, uint64_t packets);

#endif /* SRC_EXPLORE_KEEP_H */
