/* SPDX-License-Identifier: MIT */
/*
 * The numbers behind the quirks of waiting: timers_tick, ack_timeout_floor and
 * first_timeout_repeats_nothing.
 */
#ifndef SIM_PROFILE_WAITS_H
#define SIM_PROFILE_WAITS_H

#include <stdint.h>

#define SIM_TIMEOUT_CODES 32

/* The length of a tick of the kernel's timers, in ns. */
extern const uint64_t sim_tick_ns;

/*
 * How an adapter with ack_timeout_floor waits. Early waits come first, each followed by a
 * retransmission. The early waits that are no longer than the timeout are taken; the last of them
 * costs a retry. Then come regular waits, and each costs a retry.
 */
struct sim_ack_floor {
	uint8_t lowest;	       /* a lower timeout counts as this one */
	uint8_t timeouts;      /* the length of a regular wait, in timeouts */
	uint8_t retries_for_0; /* how often the adapter retries with retry_cnt 0 */
	uint8_t early_count;
	uint32_t early_us[11];
	uint32_t tolerance_us; /* an early wait may be longer than the timeout by this time */
};

extern const struct sim_ack_floor sim_ack_floor;

/* With first_timeout_repeats_nothing: the first wait, in percent of the timeout, by its code. */
extern const uint8_t sim_first_wait_percent[SIM_TIMEOUT_CODES];

#endif
