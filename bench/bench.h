/* SPDX-License-Identifier: MIT */
/*
 * What the benchmarks share: two simulated nodes joined by an RC connection, options, the time.
 * Everything ends the program with a sentence when it fails.
 */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <verbena/sim.h>

#define BENCH_POLL_MAX	16
#define BENCH_DEPTH_MAX 128

struct bench_node {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t *buffer;
	union ibv_gid gid;
};

struct bench_pair {
	struct bench_node a, b; /* on sim0 and sim1 */
};

/* One command line option, which takes a number, or text where text is not NULL. */
struct bench_option {
	const char *name; /* "--size" */
	const char *help;
	uint64_t *number;
	uint64_t min, max;
	const char **text;
};

/* Reads the options; -h and --help print them. A row without a name ends the table. */
void bench_options(int argc, char **argv, const char *about, const struct bench_option *options);

/* Nanoseconds of CLOCK_MONOTONIC. */
uint64_t bench_now_ns(void);

_Noreturn void bench_fail(const char *what, int err);

/* Opens sim0 and sim1; buffers of buffer_bytes are registered for everything remote. */
void bench_open(struct bench_pair *pair, size_t buffer_bytes, int cqe);
void bench_close(struct bench_pair *pair);

/* An RC QP of the node, in state RESET. */
struct ibv_qp *bench_qp(struct bench_node *node, uint32_t depth);

/* Brings a QP to RTS, towards the QP qpn of the peer. */
void bench_connect(struct ibv_qp *qp, const struct bench_node *peer, uint32_t qpn);

/* Both nodes' QPs made and joined. */
void bench_join(struct bench_pair *pair, uint32_t depth);

/*
 * Two ways to the same end, compared in rounds that take turns, so that both have the machine in the
 * same mood: medians of the nanoseconds each, and of the rounds' ratios.
 */
struct bench_comparison {
	double ours_ns, theirs_ns, ratio;
};

typedef void bench_way(void *arg, uint64_t count);

/* way NULL: that side is left out. count is of all rounds together. */
struct bench_comparison bench_compare(bench_way *ours, bench_way *theirs, void *arg,
				      uint64_t count);

/* Prints the packets that each device counted. */
void bench_print_packets(const struct bench_pair *pair);

#endif
