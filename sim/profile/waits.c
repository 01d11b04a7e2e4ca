/* SPDX-License-Identifier: MIT */
#include "sim/profile/waits.h"

/* CONFIG_HZ=250 of Debian's kernels. */
const uint64_t sim_tick_ns = 4000000;

/*
 * ConnectX-6, firmware 20.43.4100, one fault after the other in one process: repository
 * unionxic/rdma-fault-characterization/harness/ack_timeout/NOTES.md, sections A1 and A2. The first
 * fault of a process ends up to 0.2 s (timeout 14) or 2 s (timeout 20) from these times.
 */
const struct sim_ack_floor sim_ack_floor = {
	.lowest = 16,
	.timeouts = 2,
	.retries_for_0 = 4,
	.early_count = 11,
	.early_us = {12400, 8600, 16600, 33700, 67100, 100600, 201400, 536800, 805300, 2147800,
		     4294800},
	.tolerance_us = 500,
};

/* The same file, section B, for timeouts 8, 10, 12, 14, 16, 17, 18 and 20. The other timeouts are
 * not measured; they have the mean. */
const uint8_t sim_first_wait_percent[SIM_TIMEOUT_CODES] = {
	79, 79, 79, 79, 79, 79, 79, 79, 110, 79, 101, 79, 76, 79, 57, 79,
	64, 82, 59, 79, 83, 79, 79, 79, 79,  79, 79,  79, 79, 79, 79, 79,
};
