/* SPDX-License-Identifier: MIT */
/*
 * The crew: processes that run the test with one schedule after the other. A run that ends its process is a
 * finding; another process then takes the next schedule.
 */
#ifndef SRC_EXPLORE_CREW_H
#define SRC_EXPLORE_CREW_H

#include "src/explore/tally.h"

/* How a run has ended. */
struct outcome {
	bool ran;
	uint32_t end; /* enum vb_explore_end */
	int signal;   /* with VB_ENDED_KILLED */
	bool failed;
	uint64_t seen[COUNTED];
};

/* A list of runs. */
struct runs {
	uint64_t count;
	void (*schedule)(const void *arg, uint64_t index, struct vb_schedule *schedule);
	const void *arg;
	bool goes_on; /* set: no failure ends the list */
	/* Files of a list of one run. NULL: none. */
	const char *log, *trace, *output;
	bool shows_output; /* set: the output of the test stays where it goes */
	void (*progress)(void *arg, uint64_t done); /* a few times a second; NULL: never */
	void *progress_arg;
	/* One for each run, in memory of crew_memory(), filled with zeros. */
	struct outcome *outcomes;
};

struct crew; /* crew.c */

/* NULL with errno. What explore points to stays until crew_end(). */
struct crew *crew_begin(const struct vb_explore *explore);
void crew_end(struct crew *crew);

/* Runs the schedules in their order; starts none behind one that has failed. Returns 0 or an errno value. */
int crew_run(struct crew *crew, const struct runs *runs);

/* Returns what the last run of a list of one has left. */
const struct explore_tally *crew_tally(const struct crew *crew);

/* Real time. */
uint64_t crew_now_ns(void);

/* Memory that the processes of the crew share; NULL with errno. */
void *crew_memory(size_t size_bytes);
void crew_forget(void *memory, size_t size_bytes);

#endif /* SRC_EXPLORE_CREW_H */
