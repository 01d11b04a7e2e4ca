/* SPDX-License-Identifier: MIT */
#include "backends/sim/base/bell.h"

#include "backends/sim/base/clock_now.h"

#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* GCC warns that ThreadSanitizer does not see the barrier. The loads and stores that the barrier orders
 * are atomic, so ThreadSanitizer finds no race in them without it. */
#if defined(__SANITIZE_THREAD__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wtsan"
#endif

/*
 * The sleeper stores `listened` and then looks for work; a caller publishes work and then loads
 * `listened`. A full barrier on each side keeps the two loads behind the two stores, so at least one of
 * the two sees the other's store.
 */
void bell_barrier(void)
{
	atomic_thread_fence(memory_order_seq_cst);
}

uint32_t bell_listen(struct bell *bell)
{
	uint32_t seen = atomic_load_explicit(&bell->rings, memory_order_acquire);

	atomic_store_explicit(&bell->listened, 1, memory_order_relaxed);
	bell_barrier();
	return seen;
}

void bell_ignore(struct bell *bell)
{
	atomic_store_explicit(&bell->listened, 0, memory_order_relaxed);
}

bool bell_is_heard(struct bell *bell)
{
	bell_barrier();
	return bell_is_listened(bell);
}

/* The futex is not private: the word may be in memory that processes share. */
static long futex(struct bell *bell, int operation, uint32_t value, const struct timespec *until)
{
	return syscall(SYS_futex, &bell->rings, operation, value, until, NULL,
		       FUTEX_BITSET_MATCH_ANY);
}

/* Wakes up to `count` sleepers and returns how many. The kernel compares `rings` after `asleep` was counted:
 * a sleeper that is not counted here sees the ring there. */
static long wake(struct bell *bell, uint32_t count)
{
	atomic_fetch_add(&bell->rings, 1);
	return atomic_load(&bell->asleep) ? futex(bell, FUTEX_WAKE, count, NULL) : 0;
}

void bell_ring(struct bell *bell)
{
	wake(bell, INT_MAX);
}

void bell_wake(struct bell *bell)
{
	atomic_fetch_add(&bell->rings, 1);
	futex(bell, FUTEX_WAKE, INT_MAX, NULL);
}

bool bell_ring_one(struct bell *bell)
{
	return wake(bell, 1) > 0;
}

bool bell_watch(const struct bell *bell, uint32_t seen, uint64_t until_ns)
{
	while (clock_now_ns(CLOCK_MONOTONIC) < until_ns) {
		if (atomic_load_explicit(&bell->rings, memory_order_acquire) != seen)
			return true;
		sched_yield();
	}
	return false;
}

void bell_wait(struct bell *bell, uint32_t seen, uint64_t until_ns)
{
	const struct timespec until = {.tv_sec = (time_t)(until_ns / 1000000000),
				       .tv_nsec = (long)(until_ns % 1000000000)};

	/* FUTEX_WAIT_BITSET takes an absolute time of CLOCK_MONOTONIC (futex(2)). */
	atomic_fetch_add(&bell->asleep, 1);
	futex(bell, FUTEX_WAIT_BITSET, seen, until_ns == UINT64_MAX ? NULL : &until);
	atomic_fetch_sub(&bell->asleep, 1);
}
