/* SPDX-License-Identifier: MIT */
/* A number that stands for the bytes of a work's buffers: it changes when they do. */
#ifndef SRC_CHECK_SUM_H
#define SRC_CHECK_SUM_H

#include "src/check/work.h"

/*
 * Sums the SGEs whose memory is known: of each one at most `bytes` bytes, half of them at its end.
 * Returns false if memory is not mapped any more: then *missing is the first such address.
 */
bool sum_work(const struct work *work, uint32_t bytes, uint64_t *sum, const void **missing);

/*
 * Sums the end of the last SGE: at most half of it. Returns how many bytes that were; 0: its memory is
 * unknown or not mapped, or the SGE is too short.
 */
uint32_t sum_tail(const struct work *work, uint64_t *sum);

#endif /* SRC_CHECK_SUM_H */
