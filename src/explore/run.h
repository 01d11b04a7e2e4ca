/* SPDX-License-Identifier: MIT */
/* One run of the test, in the process that calls. */
#ifndef SRC_EXPLORE_RUN_H
#define SRC_EXPLORE_RUN_H

#include "src/explore/tally.h"

struct run {
	const struct vb_schedule *schedule;
	struct explore_tally *tally;
	int tally_fd;		 /* the descriptor of the tally, for programs; -1: none */
	const char *log, *trace; /* NULL: none */
	bool aborts;		 /* a hang calls abort(3) */
};

/* Returns enum vb_explore_end. */
uint32_t run_test(const struct vb_explore *explore, const struct run *run);

/* Returns true if a run that ended so has failed. */
bool run_failed(const struct vb_explore *explore, const struct vb_schedule *schedule, uint32_t end);

/* Writes what was wrong. */
void run_say(const struct explore_tally *tally, uint32_t end, int signal_number, char *words,
	     size_t size_bytes);

#endif /* SRC_EXPLORE_RUN_H */
