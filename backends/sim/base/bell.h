/* SPDX-License-Identifier: MIT */
/*
 * A bell: a word in memory, of this process or shared with others, on which one thread sleeps until
 * somebody rings. A sleeper that is awake costs its callers no system call:
 *
 *	sleeper                                 caller
 *	    seen = bell_listen(bell)                publishes work
 *	    looks for work once more                if (bell_is_heard(bell))
 *	    bell_wait(bell, seen, until)                bell_ring(bell)
 *	    bell_ignore(bell)
 *
 * Nothing here locks. In shared memory the values of the words are untrusted: a wrong one costs sleep
 * or wakefulness, nothing else. So a sleeper on shared memory sleeps for a limited time, and its own process wakes it
 * by bell_wake(), again and again until it has left the bell.
 */
#ifndef BACKENDS_SIM_BASE_BELL_H
#define BACKENDS_SIM_BASE_BELL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct bell {
	_Atomic uint32_t rings;	   /* counts; the futex */
	_Atomic uint32_t listened; /* 1 while the sleeper sleeps, or is about to */
	/* Counts the threads that sleep in the kernel; one that was killed stays counted. */
	_Atomic uint32_t asleep;
};

/* The sleeper listens from now on. Returns what bell_wait() takes. A full barrier: what others publish
 * after it, they ring for. */
uint32_t bell_listen(struct bell *bell);
void bell_ignore(struct bell *bell);

/* Returns true if the sleeper listens. A full barrier: work that was published before is seen by a
 * sleeper that begins to listen after it. */
bool bell_is_heard(struct bell *bell);

/*
 * The two halves of bell_is_heard(), for a caller that has published work for several sleepers: one
 * barrier, then a look at each bell.
 */
void bell_barrier(void);

static inline bool bell_is_listened(const struct bell *bell)
{
	return atomic_load_explicit(&bell->listened, memory_order_relaxed);
}

/* Wakes the sleeper; no system call unless it sleeps. */
void bell_ring(struct bell *bell);

/* Wakes the sleeper, whatever the words say, if it sleeps already. For threads of its own process, which know by other
 * means that it may sleep. */
void bell_wake(struct bell *bell);

/* Wakes one of several sleepers. Returns false if none slept. */
bool bell_ring_one(struct bell *bell);

/* Returns true once the bell has rung since bell_listen(), and false at a time of CLOCK_MONOTONIC, also if the bell has
 * rung but the thread had no processor to see it before. Does not sleep, but lets other threads have the processor. */
bool bell_watch(const struct bell *bell, uint32_t seen, uint64_t until_ns);

/* Sleeps until the bell has rung since bell_listen(), or until a time of CLOCK_MONOTONIC (UINT64_MAX:
 * without end). May return early. */
void bell_wait(struct bell *bell, uint32_t seen, uint64_t until_ns);

#endif
