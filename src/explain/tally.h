/* SPDX-License-Identifier: MIT */
/* Counts sentences, so that a failure that repeats is printed rarely. */
#ifndef SRC_EXPLAIN_TALLY_H
#define SRC_EXPLAIN_TALLY_H

#include <stdint.h>

/*
 * Counts a sentence at a place. Returns how often it has come if it is to be printed: 1, 10, 100 and
 * so on; else 0. Any thread may call it.
 */
uint64_t tally_count(const char *place, const char *sentence);

/* Hold the lock of the counts, for fork(2). */
void tally_lock(void);
void tally_unlock(void);

#endif /* SRC_EXPLAIN_TALLY_H */
