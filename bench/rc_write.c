/* SPDX-License-Identifier: MIT */
/*
 * Measures bandwidth: RDMA WRITE from sim0 to sim1, path MTU 4096, in one thread, and memcpy() of
 * the same buffers. The two alternate, so that the load of the machine affects both.
 */
#include "bench.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <verbena/verbs.h>

#define TURNS 16

struct run {
	struct bench_pair pair;
	uint64_t size, count, depth;
	uint64_t written;
	uint64_t write_ns, copy_ns;
};

static void post_write(struct run *run, uint64_t i)
{
	struct bench_node *a = &run->pair.a, *b = &run->pair.b;
	struct ibv_sge sge = {
		.addr = (uintptr_t)a->buffer, .length = (uint32_t)run->size, .lkey = a->mr->lkey};
	struct ibv_send_wr wr = {
		.wr_id = i,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = {.remote_addr = (uintptr_t)b->buffer, .rkey = b->mr->rkey},
	};
	struct ibv_send_wr *bad;
	int err = ibv_post_send(a->qp, &wr, &bad);

	if (err)
		bench_fail("post_send", err);
}

static void poll(struct run *run)
{
	struct ibv_wc wc[BENCH_POLL_MAX];
	int taken = ibv_poll_cq(run->pair.a.cq, BENCH_POLL_MAX, wc);

	if (taken < 0)
		bench_fail("poll_cq", EIO);
	for (int i = 0; i < taken; i++, run->written++) {
		if (wc[i].status == IBV_WC_SUCCESS && wc[i].wr_id == run->written)
			continue;
		fprintf(stderr, "write %" PRIu64 ": wr_id %" PRIu64 ", %s\n", run->written,
			wc[i].wr_id, vb_wc_status_str(wc[i].status));
		exit(1);
	}
}

static void write_some(struct run *run, uint64_t end)
{
	uint64_t began_ns = bench_now_ns();

	for (uint64_t i = run->written; i < end;) {
		uint64_t stop = i + run->depth < end ? i + run->depth : end;

		for (; i < stop; i++)
			post_write(run, i);
		while (run->written < stop)
			poll(run);
	}
	run->write_ns += bench_now_ns() - began_ns;
}

static void copy_some(struct run *run, uint64_t copies)
{
	uint64_t began_ns = bench_now_ns();

	for (uint64_t i = 0; i < copies; i++) {
		memcpy(run->pair.b.buffer, run->pair.a.buffer, run->size);
		__asm__ volatile("" ::: "memory");
	}
	run->copy_ns += bench_now_ns() - began_ns;
}

static void check_data(struct run *run)
{
	if (memcmp(run->pair.a.buffer, run->pair.b.buffer, run->size) == 0)
		return;
	fprintf(stderr, "rc_write: the data at sim1 differ from the written data\n");
	exit(1);
}

static void measure(struct run *run)
{
	for (uint64_t turn = 1; turn <= TURNS; turn++) {
		uint64_t end = run->count * turn / TURNS, before = run->written;

		memset(run->pair.b.buffer, 0, run->size);
		write_some(run, end);
		if (end > before)
			check_data(run);
		copy_some(run, end - before);
	}
}

static double gigabytes_per_second(const struct run *run, uint64_t spent_ns)
{
	return (double)run->size * (double)run->count / (double)spent_ns;
}

int main(int argc, char **argv)
{
	struct run run = {.size = 1 << 20, .count = 8000, .depth = 16};
	const struct bench_option options[] = {
		{"--size", "bytes of a message", &run.size, 1, 1 << 30, NULL},
		{"--count", "messages", &run.count, 1, UINT64_C(1) << 40, NULL},
		{"--depth", "writes posted at a time", &run.depth, 1, BENCH_DEPTH_MAX, NULL},
		{0},
	};

	bench_options(argc, argv, "Bandwidth of RDMA WRITE against memcpy().", options);
	bench_open(&run.pair, run.size, BENCH_DEPTH_MAX);
	bench_join(&run.pair, (uint32_t)run.depth);
	for (uint64_t i = 0; i < run.size; i++)
		run.pair.a.buffer[i] = (uint8_t)(i * 31 + i / 251);
	measure(&run);
	printf("rc_write: %" PRIu64 " messages of %" PRIu64 " bytes, path MTU 4096, no trace\n",
	       run.count, run.size);
	printf("speed: %.2f GB/s\n", gigabytes_per_second(&run, run.write_ns));
	printf("reference: memcpy of the same buffers %.2f GB/s\n",
	       gigabytes_per_second(&run, run.copy_ns));
	printf("ratio: %.3f\n", (double)run.copy_ns / (double)run.write_ns);
	bench_print_packets(&run.pair);
	bench_close(&run.pair);
	return 0;
}
