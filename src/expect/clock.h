/* SPDX-License-Identifier: MIT */
/* Waiting on the clock of a device. */
#ifndef SRC_EXPECT_CLOCK_H
#define SRC_EXPECT_CLOCK_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

/* How a wait has ended. */
enum expect_end {
	EXPECT_CAME,
	EXPECT_TIME_UP,
	EXPECT_NOTHING_CAN_COME, /* virtual clock: no packet or timer is due */
	EXPECT_BROKEN,		 /* a verb has failed: vb_last_error() */
};

/* Waits for a completion and takes it. If nothing can come, the wait ends without moving the virtual clock. */
enum expect_end expect_wait_cq(struct ibv_cq *cq, struct ibv_wc *wc, uint64_t timeout_ns);

/* Waits until the descriptor can be read, in the same way. */
enum expect_end expect_wait_fd(int fd, uint64_t timeout_ns);

/* The same, but if nothing comes, the whole duration passes. */
enum expect_end expect_wait_cq_whole(struct ibv_cq *cq, struct ibv_wc *wc, uint64_t duration_ns);
enum expect_end expect_wait_fd_whole(int fd, uint64_t duration_ns);

/* Adds why nothing came, and what is in flight in the context's world (NULL: in all worlds). */
void expect_say_nothing(enum expect_end end, uint64_t timeout_ns, struct ibv_context *context);

/* Real clock: the time, and a short sleep. */
uint64_t expect_real_ns(void);
void expect_rest(void);

#endif
