/* SPDX-License-Identifier: MIT */
/*
 * What the benchmarks share: two simulated nodes joined by an RC connection, options, the time.
 * A function that fails prints what failed and why, and exits the program.
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

/* One command line option. Its argument is text if text is not NULL, else a number. */
struct bench_option {
	const char *name; /* "--size" */
	const char *help;
	uint64_t *number;
	uint64_t min, max;
	const char **text;
};

/* Reads the options; -h and --help print them and exit. A row without a name ends the table. */
void bench_options(int argc, char **argv, const char *about, const struct bench_option *options);

/* Nanoseconds of CLOCK_MONOTONIC. */
uint64_t bench_now_ns(void);

/* Prints what failed, the text of err, and Verbena's reason; exits. */
_Noreturn void bench_fail(const char *what, int err);

/* Fails if err is not 0. */
void bench_check(const char *what, int err);

/* Returns the object; fails with errno if it is NULL. */
void *bench_need(const char *what, void *object);

/* Polls until the CQ has one completion; fails unless its status is success. */
void bench_poll_one(struct ibv_cq *cq);

/* Opens a device. Unless buffer_bytes is 0, registers a buffer for remote access. */
void bench_open_node(struct bench_node *node, const char *name, size_t buffer_bytes, int cqe);
void bench_close_node(struct bench_node *node);

/* Opens sim0 and sim1. Unless buffer_bytes is 0, registers a buffer of each for remote access. */
void bench_open(struct bench_pair *pair, size_t buffer_bytes, int cqe);
void bench_close(struct bench_pair *pair);

/* Creates an RC QP on the node, in state RESET. */
struct ibv_qp *bench_qp(struct bench_node *node, uint32_t depth);

/* Connects a QP to the QP qpn of the peer, and moves it to RTS. */
void bench_connect(struct ibv_qp *qp, const struct bench_node *peer, uint32_t qpn);

/* Creates a QP on each node and connects them. */
void bench_join(struct bench_pair *pair, uint32_t depth);

/*
 * The result of a comparison of two ways to do the same. The rounds of both alternate, so that the
 * load of the machine affects both.
 */
struct bench_comparison {
	double ours_ns, theirs_ns; /* medians of the nanoseconds of one message */
	double ratio;		   /* median of the ratios of the rounds */
};

typedef void bench_way(void *arg, uint64_t count);

/* Leaves out a way that is NULL. count is the sum of all rounds. */
struct bench_comparison bench_compare(bench_way *ours, bench_way *theirs, void *arg,
				      uint64_t count);

/* Prints the packet counters of each device. */
void bench_print_packets(const struct bench_pair *pair);

#endif
