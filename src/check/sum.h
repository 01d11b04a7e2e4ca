/* SPDX-License-Identifier: MIT */
/* A hash of the bytes of a work's buffers, to notice changes. */
#ifndef SRC_CHECK_SUM_H
#define SRC_CHECK_SUM_H

#include "src/check/work.h"

/*
 * Hashes the SGEs whose memory is known: of each SGE at most `bytes` bytes, half of them at its end. Returns
 * false if memory is not mapped any more: then *missing is the first such address.
 */
bool sum_work(const struct work *work, uint32_t bytes, uint64_t *sum, const void **missing);

/*
 * Hashes the end of the last SGE, at most half of the SGE. Returns how many bytes were hashed; 0: its memory
 * is unknown or not mapped, or the SGE is too short.
 */
uint32_t sum_tail(const struct work *work, uint64_t *sum);

#endif /* SRC_CHECK_SUM_H */
