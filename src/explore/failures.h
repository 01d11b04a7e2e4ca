/* SPDX-License-Identifier: MIT */
/* The calls and allocations of a schedule fail in this process. */
#ifndef SRC_EXPLORE_FAILURES_H
#define SRC_EXPLORE_FAILURES_H

#include "src/explore/schedule.h"

/* kinds: bits of enum vb_decision_kind; those of calls and allocations are counted. */
void failures_begin(const struct vb_schedule *schedule, unsigned int kinds);

/* Removes the rules. Sets how many calls and allocations the run had. */
void failures_end(uint64_t seen[COUNTED]);

#endif /* SRC_EXPLORE_FAILURES_H */
