/* SPDX-License-Identifier: MIT */
/*
 * The engine's time and its timers. Time moves when the engine's owner says so.
 */
#ifndef SIM_BASE_CLOCK_H
#define SIM_BASE_CLOCK_H

#include <stddef.h>
#include <stdint.h>

#define SIM_NEVER UINT64_MAX

struct sim_timer;
typedef void sim_timer_fn(struct sim_timer *timer);

/*
 * A timer stands in its owner. Arming one that stands in the heap at an earlier time only notes
 * the new deadline: it is moved when it comes to the top. So restarting a timer on every packet
 * costs a store.
 */
struct sim_timer {
	uint64_t deadline_ns; /* SIM_NEVER while disarmed */
	uint64_t order;	      /* of arming, between equal times */
	uint64_t heap_ns;     /* what the heap is ordered by */
	uint64_t heap_order;
	sim_timer_fn *fire;
	uint32_t place; /* in the heap, from 1; 0 for none */
};

struct sim_clock {
	uint64_t now_ns;
	uint64_t order;
	struct sim_timer **heap; /* from 1 */
	uint32_t count;
	uint32_t capacity;
	uint32_t reserved;
};

/* Room for one more timer that exists, so that arming never allocates. ENOMEM. */
int sim_clock_reserve(struct sim_clock *clock);

/* The timer's owner ends: the timer leaves the heap and its room is given back. */
void sim_clock_release(struct sim_clock *clock, struct sim_timer *timer);

void sim_clock_destroy(struct sim_clock *clock);

void sim_timer_init(struct sim_timer *timer, sim_timer_fn *fire);
void sim_timer_place(struct sim_clock *clock, struct sim_timer *timer);

static inline void sim_timer_arm(struct sim_clock *clock, struct sim_timer *timer,
				 uint64_t deadline_ns)
{
	timer->deadline_ns = deadline_ns;
	timer->order = clock->order++;
	if (timer->place == 0 || timer->heap_ns > deadline_ns)
		sim_timer_place(clock, timer);
}

static inline void sim_timer_disarm(struct sim_timer *timer)
{
	timer->deadline_ns = SIM_NEVER;
}

/* The earliest deadline; SIM_NEVER for none. */
uint64_t sim_clock_next(struct sim_clock *clock);

/* Takes out one timer that is due now, disarmed; NULL for none. */
struct sim_timer *sim_clock_take(struct sim_clock *clock);

#endif
