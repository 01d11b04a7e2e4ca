/* SPDX-License-Identifier: MIT */
/*
 * Benchmarks of two processes: the parent measures, the child has a part in what the parent asks for. A
 * function that fails prints what failed and why, and exits the program.
 */
#ifndef BENCH_SIDES_H
#define BENCH_SIDES_H

#include "bench.h"

#define BENCH_LIST_MAX 64

/* One of the two processes. */
struct bench_side {
	bool parent;
	int peer; /* of a pair of sockets, for what is not measured */
};

/* Forks. */
void bench_split(struct bench_side *side);

/* The parent waits for the child. Returns the exit status of the program. */
int bench_unite(const struct bench_side *side);

/* Fails with errno unless `good`. */
void bench_expect(bool good, const char *what);

void bench_tell(const struct bench_side *side, const void *bytes, size_t length);
void bench_hear(const struct bench_side *side, void *bytes, size_t length);

/* Both processes are here. */
void bench_meet(const struct bench_side *side);

/* What the parent asks for. Both processes have the same table, and call the way that the parent names with
 * their own arg. */
struct bench_ways {
	bench_way *const *ways;
	unsigned int count;
};

/* In the parent. */
void bench_go(const struct bench_side *side, const struct bench_ways *ways, unsigned int way,
	      void *arg, uint64_t count);
void bench_dismiss(const struct bench_side *side, const struct bench_ways *ways);

/* In the child: until bench_dismiss(). */
void bench_obey(const struct bench_side *side, const struct bench_ways *ways, void *arg);

/* Posts `count` sends of the same bytes of the node's buffer at once, BENCH_LIST_MAX at most. Only the last is
 * signalled. */
void bench_post_sends(struct bench_node *node, uint64_t offset, uint64_t bytes, uint64_t count);

#endif
