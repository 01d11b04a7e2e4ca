/* SPDX-License-Identifier: MIT */
/*
 * The times that QP attributes stand for.
 */
#ifndef SIM_WIRE_TIMING_H
#define SIM_WIRE_TIMING_H

#include <stdint.h>

/* min_rnr_timer: 5 bits to nanoseconds (ibv_modify_qp(3)). */
uint64_t sim_rnr_timer_ns(unsigned int code);

/* timeout: 4.096 us * 2^code; 0 (never) for code 0. */
uint64_t sim_ack_timeout_ns(unsigned int code);

#endif
