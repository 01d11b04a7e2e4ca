/* SPDX-License-Identifier: MIT */
/*
 * Packet sequence numbers (PSN) have 24 bits and wrap. A PSN is ahead of another one if it follows
 * by less than 2^23.
 */
#ifndef SIM_WIRE_PSN_H
#define SIM_WIRE_PSN_H

#include <stdint.h>

#define SIM_PSN_MASK 0xffffffu
#define SIM_PSN_HALF 0x800000u

/* Returns the PSN that follows psn by count packets. */
static inline uint32_t sim_psn_add(uint32_t psn, uint32_t count)
{
	return (psn + count) & SIM_PSN_MASK;
}

/* Returns by how many packets a is ahead of b: from -2^23 (behind) to 2^23 - 1 (ahead). */
static inline int32_t sim_psn_diff(uint32_t a, uint32_t b)
{
	return (int32_t)((a - b) << 8) >> 8;
}

/* Returns by how many packets psn follows `from`: from 0 to 2^24 - 1. */
static inline uint32_t sim_psn_distance(uint32_t psn, uint32_t from)
{
	return (psn - from) & SIM_PSN_MASK;
}

#endif
