/* SPDX-License-Identifier: MIT */
/*
 * Measures the memory of a connected idle RC QP, and the time to create it, at two counts.
 *
 * Each measurement runs in a process of its own. The memory of the work queues is the difference
 * between a QP of twice the depth and a QP of the depth.
 */
#include "bench.h"

#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <verbena/verbs.h>

#define TRIES 5

struct measure {
	uint64_t heap_bytes; /* allocated by malloc() */
	uint64_t resident_bytes;
	uint64_t spent_ns;
};

static uint64_t heap_bytes(void)
{
	struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
}

static uint64_t resident_bytes(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	unsigned long long pages = 0;

	if (!file || fscanf(file, "%*u %llu", &pages) != 1)
		bench_fail("/proc/self/statm", errno);
	fclose(file);
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Creates and connects `count` QPs, half of them on each node. */
static void make_qps(struct bench_pair *pair, struct ibv_qp **qps, uint64_t count, uint32_t depth)
{
	for (uint64_t i = 0; i < count; i += 2) {
		qps[i] = bench_qp(&pair->a, depth);
		qps[i + 1] = bench_qp(&pair->b, depth);
		bench_connect(qps[i], &pair->b, qps[i + 1]->qp_num);
		bench_connect(qps[i + 1], &pair->a, qps[i]->qp_num);
	}
}

static void measure(uint64_t count, uint32_t depth, struct measure *result)
{
	struct ibv_qp **qps = calloc(count, sizeof(struct ibv_qp *));
	struct bench_pair pair;
	uint64_t began_ns;

	if (!qps)
		bench_fail("memory", ENOMEM);
	for (uint64_t i = 0; i < count; i++)
		qps[i] =
			(struct
			 ibv_qp *)&pair; /* touches the page, so that it is resident before the measurement */
	bench_open(&pair, 0, BENCH_DEPTH_MAX);
	result->heap_bytes = heap_bytes();
	result->resident_bytes = resident_bytes();
	began_ns = bench_now_ns();
	make_qps(&pair, qps, count, depth);
	result->spent_ns = bench_now_ns() - began_ns;
	result->heap_bytes = heap_bytes() - result->heap_bytes;
	result->resident_bytes = resident_bytes() - result->resident_bytes;
	for (uint64_t i = 0; i < count; i++)
		if (vb_destroy_qp(qps[i]))
			bench_fail("destroy QP", errno);
	free(qps);
	bench_close(&pair);
}

static void measure_apart(uint64_t count, uint32_t depth, struct measure *result)
{
	pid_t child = fork();
	int status;

	if (child < 0)
		bench_fail("fork", errno);
	if (child == 0) {
		measure(count, depth, result);
		exit(0);
	}
	if (waitpid(child, &status, 0) != child || status != 0)
		exit(1);
}

/* Keeps the shortest of several times: the load of the machine only adds to them. */
static void measure_best(uint64_t count, uint32_t depth, struct measure *result)
{
	uint64_t best_ns = UINT64_MAX;

	for (unsigned int i = 0; i < TRIES; i++) {
		measure_apart(count, depth, result);
		if (result->spent_ns < best_ns)
			best_ns = result->spent_ns;
	}
	result->spent_ns = best_ns;
}

static void print_memory(const char *what, uint64_t one, uint64_t two, uint64_t count)
{
	double all = (double)one / (double)count, queues = (double)(two - one) / (double)count;

	printf("%s: %.0f bytes a QP: work queues %.0f, beside them %.0f\n", what, all, queues,
	       all - queues);
}

int main(int argc, char **argv)
{
	uint64_t count = 10000, depth = 16;
	const struct bench_option options[] = {
		{"--count", "QPs, an even number", &count, 2, 1 << 20, NULL},
		{"--depth", "WRs that a queue holds", &depth, 1, BENCH_DEPTH_MAX, NULL},
		{0},
	};
	struct measure *results;

	bench_options(argc, argv, "Memory and creation time of connected idle RC QPs.", options);
	count &= ~UINT64_C(1);
	results = mmap(NULL, 3 * sizeof(*results), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (results == MAP_FAILED)
		bench_fail("memory", errno);
	measure_best(count, (uint32_t)depth, &results[0]);
	measure_best(count, (uint32_t)depth * 2, &results[1]);
	measure_best(count * 2, (uint32_t)depth, &results[2]);
	printf("idle_qps: %" PRIu64 " connected RC QPs, depth %" PRIu64 ", one SGE\n", count,
	       depth);
	print_memory("heap", results[0].heap_bytes, results[1].heap_bytes, count);
	print_memory("resident", results[0].resident_bytes, results[1].resident_bytes, count);
	printf("creation: %.2f us a QP; of twice as many %.2f us a QP (best of %u)\n",
	       (double)results[0].spent_ns / 1e3 / (double)count,
	       (double)results[2].spent_ns / 2e3 / (double)count, TRIES);
	return 0;
}
