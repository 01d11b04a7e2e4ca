/* SPDX-License-Identifier: MIT */
#include "sim/base/clock.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

static bool before(const struct sim_timer *a, const struct sim_timer *b)
{
	return a->heap_ns != b->heap_ns ? a->heap_ns < b->heap_ns : a->heap_order < b->heap_order;
}

static void put(struct sim_clock *clock, uint32_t place, struct sim_timer *timer)
{
	clock->heap[place] = timer;
	timer->place = place;
}

static void sift_up(struct sim_clock *clock, struct sim_timer *timer)
{
	uint32_t place = timer->place;

	while (place > 1 && before(timer, clock->heap[place / 2])) {
		put(clock, place, clock->heap[place / 2]);
		place /= 2;
	}
	put(clock, place, timer);
}

static void sift_down(struct sim_clock *clock, struct sim_timer *timer)
{
	uint32_t place = timer->place;

	for (;;) {
		uint32_t child = 2 * place;

		if (child > clock->count)
			break;
		if (child < clock->count && before(clock->heap[child + 1], clock->heap[child]))
			child++;
		if (!before(clock->heap[child], timer))
			break;
		put(clock, place, clock->heap[child]);
		place = child;
	}
	put(clock, place, timer);
}

static void take_out(struct sim_clock *clock, struct sim_timer *timer)
{
	uint32_t place = timer->place;
	struct sim_timer *last = clock->heap[clock->count--];

	timer->place = 0;
	if (last == timer)
		return;
	put(clock, place, last);
	sift_up(clock, last);
	sift_down(clock, last);
}

int sim_clock_reserve(struct sim_clock *clock)
{
	if (clock->reserved + 2 > clock->capacity) {
		uint32_t capacity = clock->capacity ? 2 * clock->capacity : 64;
		struct sim_timer **heap =
			realloc(clock->heap, capacity * sizeof(struct sim_timer *));

		if (!heap)
			return ENOMEM;
		clock->heap = heap;
		clock->capacity = capacity;
	}
	clock->reserved++;
	return 0;
}

void sim_clock_release(struct sim_clock *clock, struct sim_timer *timer)
{
	if (timer->place)
		take_out(clock, timer);
	clock->reserved--;
}

void sim_clock_destroy(struct sim_clock *clock)
{
	free(clock->heap);
	clock->heap = NULL;
}

void sim_timer_init(struct sim_timer *timer, sim_timer_fn *fire)
{
	*timer = (struct sim_timer){.deadline_ns = SIM_NEVER, .fire = fire};
}

void sim_timer_place(struct sim_clock *clock, struct sim_timer *timer)
{
	timer->heap_ns = timer->deadline_ns;
	timer->heap_order = timer->order;
	if (timer->place == 0) {
		assert(clock->count < clock->reserved);
		timer->place = ++clock->count;
	}
	sift_up(clock, timer);
}

/* Returns the timer with the earliest deadline; moves timers with a later deadline down. */
static struct sim_timer *settle(struct sim_clock *clock)
{
	while (clock->count) {
		struct sim_timer *top = clock->heap[1];

		if (top->deadline_ns == SIM_NEVER) {
			take_out(clock, top);
		} else if (top->deadline_ns != top->heap_ns || top->order != top->heap_order) {
			top->heap_ns = top->deadline_ns;
			top->heap_order = top->order;
			sift_down(clock, top);
		} else {
			return top;
		}
	}
	return NULL;
}

uint64_t sim_clock_next(struct sim_clock *clock)
{
	struct sim_timer *top = settle(clock);

	return top ? top->deadline_ns : SIM_NEVER;
}

uint64_t sim_clock_ask(struct sim_clock *clock)
{
	sim_clock_tell(clock, clock->ask(clock->ask_arg));
	return clock->told_ns;
}

/* Deadlines keep their order, so the heap stays as it is. A disarmed timer stays disarmed. */
void sim_clock_postpone(struct sim_clock *clock, uint64_t duration_ns)
{
	for (uint32_t place = 1; place <= clock->count; place++) {
		struct sim_timer *timer = clock->heap[place];

		timer->heap_ns += duration_ns;
		if (timer->deadline_ns != SIM_NEVER)
			timer->deadline_ns += duration_ns;
	}
}

struct sim_timer *sim_clock_take(struct sim_clock *clock)
{
	struct sim_timer *top = settle(clock);

	if (!top || top->deadline_ns > clock->told_ns)
		return NULL;
	take_out(clock, top);
	top->deadline_ns = SIM_NEVER;
	return top;
}
