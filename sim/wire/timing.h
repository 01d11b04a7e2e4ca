/* SPDX-License-Identifier: MIT */
/*
 * The times that the 5-bit codes of QP attributes stand for: ibv_modify_qp(3).
 */
#ifndef SIM_WIRE_TIMING_H
#define SIM_WIRE_TIMING_H

#include <stdint.h>

/* Returns the time of a min_rnr_timer in nanoseconds: 10 us for code 1, 655.36 ms for code 0. */
uint64_t sim_rnr_timer_ns(unsigned int code);

/* Returns the time of a timeout in nanoseconds: 4.096 us * 2^code; 0 (no timeout) for code 0. */
uint64_t sim_ack_timeout_ns(unsigned int code);

#endif
