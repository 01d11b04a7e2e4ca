/* SPDX-License-Identifier: MIT */
/*
 * The engine's time and its timers. The engine's owner moves the time with sim_engine_advance(). On a real clock,
 * reading the time takes long: the owner may leave the clock behind, and is then asked for the time where it is
 * needed.
 */
#ifndef SIM_BASE_CLOCK_H
#define SIM_BASE_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIM_NEVER UINT64_MAX

struct sim_timer;
typedef void sim_timer_fn(struct sim_timer *timer);

/*
 * A timer is a member of the object that owns it. The heap may hold a timer at an earlier time than
 * its deadline; sim_clock_next() and sim_clock_take() move it when it comes to the top. So
 * restarting a timer on every packet costs two stores.
 */
struct sim_timer {
	uint64_t deadline_ns; /* SIM_NEVER while disarmed */
	uint64_t order;	  /* timers of one deadline fire in the order in which they were armed */
	uint64_t heap_ns; /* the heap is ordered by heap_ns, then by heap_order */
	uint64_t heap_order;
	sim_timer_fn *fire;
	uint32_t place; /* index in the heap, from 1; 0 while the timer is not in the heap */
};

/* Returns the time. */
typedef uint64_t sim_ask_fn(void *arg);

struct sim_clock {
	uint64_t told_ns; /* the time that the owner has told last */
	bool behind;	  /* the time has moved since then: sim_clock_now_ns() asks for it */
	sim_ask_fn *ask;
	void *ask_arg;
	uint64_t order;		 /* counts the arming of timers */
	struct sim_timer **heap; /* heap[1] is the top */
	uint32_t count;		 /* timers in the heap */
	uint32_t capacity;
	uint32_t reserved; /* timers that exist */
};

/* Reserves the room of one more timer, so that arming never allocates. ENOMEM. */
int sim_clock_reserve(struct sim_clock *clock);

/* Disarms a timer for good and gives back its room. */
void sim_clock_release(struct sim_clock *clock, struct sim_timer *timer);

void sim_clock_destroy(struct sim_clock *clock);

/* Makes a disarmed timer; sim_engine_advance() calls fire when the timer runs out. */
void sim_timer_init(struct sim_timer *timer, sim_timer_fn *fire);

/* Private to sim_timer_arm(): puts a timer into the heap, or moves it towards the top. */
void sim_timer_place(struct sim_clock *clock, struct sim_timer *timer);

/* Arms a timer, or changes the deadline of an armed one. */
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

/* Returns a time before which no timer is due, which is no later than the earliest deadline. */
static inline uint64_t sim_clock_floor(const struct sim_clock *clock)
{
	return clock->count ? clock->heap[1]->heap_ns : SIM_NEVER;
}

/* Returns the earliest deadline; SIM_NEVER if no timer is armed. */
uint64_t sim_clock_next(struct sim_clock *clock);

/* Moves the time to now_ns, never back. Timers that are due then fire when the owner lets them. */
static inline void sim_clock_tell(struct sim_clock *clock, uint64_t now_ns)
{
	clock->behind = false;
	if (now_ns > clock->told_ns)
		clock->told_ns = now_ns;
}

/* Asks the owner for the time. */
uint64_t sim_clock_ask(struct sim_clock *clock);

/* Returns the engine's time. */
static inline uint64_t sim_clock_now_ns(struct sim_clock *clock)
{
	return __builtin_expect(clock->behind, false) ? sim_clock_ask(clock) : clock->told_ns;
}

/* All armed timers fire later by a duration. */
void sim_clock_postpone(struct sim_clock *clock, uint64_t duration_ns);

/* Disarms and returns a timer that is due now; NULL if none is. */
struct sim_timer *sim_clock_take(struct sim_clock *clock);

#endif
