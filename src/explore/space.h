/* SPDX-License-Identifier: MIT */
/*
 * The schedules that are to be explored, in stages: the empty schedule, twice; single decisions; pairs;
 * random schedules. The size of a stage is known when the stages before it have run.
 */
#ifndef SRC_EXPLORE_SPACE_H
#define SRC_EXPLORE_SPACE_H

#include "src/explore/schedule.h"

enum stage { STAGE_PLAIN, STAGE_SINGLES, STAGE_PAIRS, STAGE_WALKS, STAGES };

#define PLAIN_RUNS 2

struct space {
	unsigned int kinds, pair_kinds; /* bits of enum vb_decision_kind */
	uint64_t singles_max;		/* 0: no limit */
	uint64_t pairs_max, walks, seed;
	uint64_t seen[COUNTED]; /* by the run without a decision */
	uint64_t singles;	/* counts those that are explored */
	uint64_t singles_all;	/* counts all */
	/* By the number of a single decision: the packets of its run. Set by the owner. */
	const uint64_t *single_packets;
	uint64_t *pairs_before; /* by the number of a single decision, and the sum at the end */
};

/* Returns how many schedules a stage has. */
uint64_t space_count(const struct space *space, enum stage stage);

/* Returns how many pairs there are, beyond pairs_max too. */
uint64_t space_pairs(const struct space *space);

/* Fills in the schedule of an index, from 0. */
void space_schedule(const struct space *space, enum stage stage, uint64_t index,
		    struct vb_schedule *schedule);

/* After the run without a decision: counts the singles. */
void space_take_plain(struct space *space, const uint64_t seen[COUNTED]);

/* After the singles: counts the pairs. Returns false if there is no memory. */
bool space_take_singles(struct space *space, const uint64_t *single_packets);

void space_end(struct space *space);

#endif /* SRC_EXPLORE_SPACE_H */
