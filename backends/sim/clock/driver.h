/* SPDX-License-Identifier: MIT */
/*
 * What moves a world's time. On the virtual clock that is waiting; on the real one it is
 * CLOCK_MONOTONIC, which posting, polling and a thread of the world look at.
 *
 * The world's lock is held in all of these unless they say otherwise.
 */
#ifndef BACKENDS_SIM_CLOCK_DRIVER_H
#define BACKENDS_SIM_CLOCK_DRIVER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct vb_sim;

/* A thread in vb_sim_run(), which waits for a time. */
struct driver_runner {
	uint64_t until_ns;
	struct driver_runner *next;
};

struct driver {
	bool real;
	uint64_t base_ns;      /* CLOCK_MONOTONIC when the world was made */
	uint64_t wall_base_ns; /* CLOCK_REALTIME then; 0 in a virtual world, so that runs repeat */

	/* Virtual: time moves while all registered threads wait. */
	pthread_t *threads;
	uint32_t thread_count, thread_capacity;
	uint32_t waiting;
	uint64_t epoch; /* of waking: a waiter looks again when it changes */
	uint64_t told;	/* how often a thread told the others of something of their own */
	struct driver_runner *runners;

	pthread_cond_t changed;

	/* Real: the world's thread, while a device is open. */
	pthread_t progress;
	pthread_cond_t kicked;
	uint64_t asleep_until_ns;
	bool running, stop, stopping;
};

typedef bool driver_ready(const void *arg);

int driver_init(struct driver *driver, bool real);
void driver_end(struct driver *driver);

/* In the child of a fork(), which has neither the progress thread nor those that waited. */
void driver_forked(struct vb_sim *world);

/* Real: brings the clock up to now and runs the present instant. Virtual: nothing. */
void driver_catch_up(struct vb_sim *world);

/* A poll or query that found nothing: runs the present instant and, if that does not help, moves
 * time to the next event. */
void driver_step(struct vb_sim *world, driver_ready *ready, const void *arg);

/* Waits until ready; EDEADLK where nothing can come (virtual clock). */
int driver_wait(struct vb_sim *world, driver_ready *ready, const void *arg);

/* Virtual clock: as driver_wait(), but not beyond a time: ETIMEDOUT. SIM_NEVER is no limit. */
int driver_wait_until(struct vb_sim *world, driver_ready *ready, const void *arg,
		      uint64_t until_ns);

/* As driver_wait(), for what only another thread can do: EDEADLK at once where there is none. */
int driver_wait_for_others(struct vb_sim *world, driver_ready *ready, const void *arg);

/* True where a thread other than this one may still act on a virtual world. */
bool driver_has_others(struct vb_sim *world);

/* Something that a waiting thread may look for has changed. */
void driver_changed(struct vb_sim *world);

/* Carries virtual time by a duration. EINVAL on the real clock. */
int driver_run(struct vb_sim *world, uint64_t duration_ns);

/* 0 or ENOMEM. */
int driver_enter(struct vb_sim *world);
void driver_leave(struct vb_sim *world);

/* Real: starts the world's thread with the first device; 0 or errno. The mutex is really locked. */
int driver_start(struct vb_sim *world);
/* Ends it with the last one. The lock is not held, so that the thread can be joined. */
void driver_stop(struct vb_sim *world);

#endif
