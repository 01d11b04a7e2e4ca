/* SPDX-License-Identifier: MIT */
/*
 * Packet sequence numbers: 24 bits, compared in half a window.
 */
#ifndef SIM_WIRE_PSN_H
#define SIM_WIRE_PSN_H

#include <stdint.h>

#define SIM_PSN_MASK 0xffffffu
#define SIM_PSN_HALF 0x800000u

static inline uint32_t sim_psn_add(uint32_t psn, uint32_t count)
{
	return (psn + count) & SIM_PSN_MASK;
}

/* How far a lies ahead of b: from -2^23 (behind) to 2^23 - 1 (ahead). */
static inline int32_t sim_psn_diff(uint32_t a, uint32_t b)
{
	return (int32_t)((a - b) << 8) >> 8;
}

/* How far behind `from` a PSN lies, from 0 to 2^24 - 1. */
static inline uint32_t sim_psn_distance(uint32_t psn, uint32_t from)
{
	return (psn - from) & SIM_PSN_MASK;
}

#endif
