/* SPDX-License-Identifier: MIT */
/* What exploration says to people, and the files that it names. */
#ifndef SRC_EXPLORE_REPORT_H
#define SRC_EXPLORE_REPORT_H

#include "src/explore/keep.h"
#include "src/explore/space.h"

struct report {
	const struct vb_explore *explore;
	bool terminal;	 /* the progress is shown */
	uint64_t before; /* counts the schedules before the one that fails */
};

/* The files of a failing run. */
struct files {
	char *log, *trace; /* NULL: none */
	char *output;
	struct kept kept; /* of the log and the trace */
};

void report_begin(struct report *report, const struct vb_explore *explore);

/* elapsed_ns: real time since the stage began. */
void report_progress(const struct report *report, enum stage stage, uint64_t done, uint64_t count,
		     uint64_t elapsed_ns);
void report_progress_end(const struct report *report);

void report_success(const struct report *report, const struct vb_explore_result *result,
		    const struct space *space);
void report_failure(const struct report *report, const struct vb_explore_result *result,
		    const struct files *files);
/* Of a run with a given schedule. */
void report_given(const struct report *report, const struct vb_explore_result *result,
		  const struct files *files);

/*
 * Makes the folder, and names the files in it. 0, or an errno value with a sentence. A run in which an
 * allocation fails has no log and no trace, which allocate memory, too.
 */
int report_name_files(const struct vb_explore *explore, const struct vb_schedule *schedule,
		      struct files *files);
void report_forget_files(struct files *files);

/* Writes the command that repeats a run. */
void report_command(const struct vb_explore *explore, const struct vb_schedule *schedule,
		    char *text, size_t size_bytes);

#endif /* SRC_EXPLORE_REPORT_H */
