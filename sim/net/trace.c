/* SPDX-License-Identifier: MIT */
#include "sim/net/trace.h"

/* Locally administered; the last two bytes say what they mean. */
const uint8_t sim_trace_lost_mac[6] = {0x02, 0, 0, 0, 0xde, 0xad};
