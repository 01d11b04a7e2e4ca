/* SPDX-License-Identifier: MIT */
/*
 * What a run leaves behind: memory that the run's process shares with the process that explores, so that
 * it survives a process that is killed.
 */
#ifndef SRC_EXPLORE_TALLY_H
#define SRC_EXPLORE_TALLY_H

#include "src/base/limit.h"
#include "src/explore/schedule.h"

#define TALLY_VERSION 2

/* The exit status of a process that has found out that it hangs. */
#define EXIT_STUCK 98

struct explore_tally {
	uint32_t version;
	uint32_t stuck;		/* 1 + enum vb_stuck; 0: the run does not hang */
	uint64_t stuck_ns;	/* the virtual time of that */
	uint64_t seen[COUNTED]; /* by the run */
	int32_t process;	/* the process that has a world; 0: none */
	bool crowded;		/* two processes had one at the same time */
	uint64_t left;		/* counts the findings VB_SIM_LEFT_* at the end */
	char left_words[256];	/* the first of them */
	char words[512];	/* of vb_explore_wrong() */
};

/* What a run follows. */
struct follow {
	const struct vb_schedule *schedule;
	struct explore_tally *tally;
	unsigned int kinds; /* bits of enum vb_decision_kind: what is counted */
	uint64_t time_ns_max;
	const char *trace; /* a pcap file for each world; NULL: none */
	struct vb_limit trace_limit;
	bool aborts; /* a hang calls abort(3); otherwise it ends the process */
};

/* The process follows a schedule from now on, and counts into the tally, of which only the version is not zero. */
void follow_begin(const struct follow *follow);

/* vb_explore_wrong() writes into this tally from now on. */
void follow_keep(struct explore_tally *tally);

/* Stops following the schedule: no fault happens from now on. */
void follow_end(void);

/* Notes what the process has left. */
void follow_look_at_left(struct explore_tally *tally);

/* A sentence on a hang. */
void tally_say_stuck(const struct explore_tally *tally, char *words, size_t size_bytes);

/* The variables by which a program follows: the schedule, and the descriptor of the tally. */
#define VARIABLE_SCHEDULE "VERBENA_SCHEDULE"
#define VARIABLE_TALLY	  "VERBENA_TALLY"

/* Sets the variables for the programs that this process starts, or removes them. */
void follow_by_programs(const struct follow *follow, int tally_fd);

#endif /* SRC_EXPLORE_TALLY_H */
