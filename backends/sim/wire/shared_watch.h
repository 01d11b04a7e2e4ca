/* SPDX-License-Identifier: MIT */
/*
 * Notices that a process of a shared world has ended. A thread sleeps until another process closes the
 * world's file, which the kernel also does for a killed process. The thread then rings the bell of this
 * process.
 */
#ifndef BACKENDS_SIM_WIRE_SHARED_WATCH_H
#define BACKENDS_SIM_WIRE_SHARED_WATCH_H

#include "backends/sim/base/bell.h"

#include <pthread.h>

struct shared_watch {
	bool runs;
	int fds[2]; /* a descriptor of inotify(7); an eventfd that ends the thread */
	pthread_t thread;
	pthread_barrier_t began;
	struct bell *bell;
	_Atomic bool ended; /* a process has closed the file */
};

/* Starts to watch the file of a descriptor. Returns false if the system lacks a descriptor, a thread, or an
 * instance of inotify(7), which are limited for each user. */
bool shared_watch_start(struct shared_watch *watch, int file_fd, struct bell *bell);

/* Returns true if a process has closed the file since the last call. That process may still hold its locks:
 * the kernel reports the close before it releases them. */
static inline bool shared_watch_take(struct shared_watch *watch)
{
	return atomic_load_explicit(&watch->ended, memory_order_relaxed) &&
	       atomic_exchange(&watch->ended, false);
}

/* Ends the thread. */
void shared_watch_stop(struct shared_watch *watch);

/* Call this in the child of a fork(), which does not have the thread. */
void shared_watch_forget(struct shared_watch *watch);

#endif
