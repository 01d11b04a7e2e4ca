/* SPDX-License-Identifier: MIT */
#ifndef SRC_CONNECT_CQ_H
#define SRC_CONNECT_CQ_H

#include <verbena/connect.h>

/* The time of the clock by which waits on the CQ end: the world's virtual clock or
 * CLOCK_MONOTONIC. */
uint64_t cq_now_ns(const struct vb_cq *cq);

/* The deadline of a wait that begins now, and the time that is left until a deadline. VB_FOREVER is
 * no limit. */
uint64_t cq_deadline_ns(const struct vb_cq *cq, uint64_t timeout_ns);
uint64_t cq_left_ns(const struct vb_cq *cq, uint64_t deadline_ns);

/* The world whose virtual clock the device runs on; NULL on the real clock. */
struct vb_sim;
struct vb_sim *virtual_clock_of(const struct vb_device *device);

/* Takes all notifications from the channel of the CQ. */
void cq_drain(struct vb_cq *cq);

/* How a wait looks for completions and how it sleeps. */
struct cq_waiter {
	int (*look)(void *arg); /* returns how many completions were taken, or a negative errno */
	void (*sleep)(void *arg, uint64_t left_ns);
	void *arg;
};

/* Looks for a while, then arms the CQ, sleeps once and looks again. Returns as look(). For the real
 * clock. */
int cq_look_or_sleep(struct vb_cq *cq, const struct cq_waiter *waiter, uint64_t left_ns);

#endif /* SRC_CONNECT_CQ_H */
