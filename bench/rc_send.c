/* SPDX-License-Identifier: MIT */
/*
 * Measures messages a second: RC SEND from sim0 to sim1, in one thread. For each message it posts a
 * receive and a send, and polls both completions. Each work queue holds `depth` WRs; a post has one
 * WR; a poll takes at most 16 completions.
 */
#include "bench.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <verbena/backend.h>
#include <verbena/error.h>
#include <verbena/fault.h>
#include <verbena/log.h>
#include <verbena/verbs.h>

struct run {
	struct bench_pair pair;
	uint64_t size, count, depth, drop, watch;
	const char *trace, *log;
	uint64_t events;
	uint64_t sent, received; /* completions */
	struct ibv_sge recv_sge, send_sge;
	struct ibv_recv_wr recv;
	struct ibv_send_wr send;
};

/* The offset of message i in both buffers, which hold `depth` messages. */
static uint64_t place(const struct run *run, uint64_t i)
{
	return i % run->depth * run->size;
}

/* Fills in the WRs once, as programs that post often do; only wr_id and addresses change later. */
static void prepare(struct run *run)
{
	struct bench_node *a = &run->pair.a, *b = &run->pair.b;

	run->recv_sge = (struct ibv_sge){.length = (uint32_t)run->size, .lkey = b->mr->lkey};
	run->recv = (struct ibv_recv_wr){.sg_list = &run->recv_sge, .num_sge = 1};
	run->send_sge = (struct ibv_sge){.length = (uint32_t)run->size, .lkey = a->mr->lkey};
	run->send = (struct ibv_send_wr){.sg_list = &run->send_sge,
					 .num_sge = 1,
					 .opcode = IBV_WR_SEND,
					 .send_flags = IBV_SEND_SIGNALED};
}

static void post_recv(struct run *run, uint64_t i, uint64_t at)
{
	struct ibv_recv_wr *bad;
	int err;

	run->recv.wr_id = i;
	run->recv_sge.addr = (uintptr_t)run->pair.b.buffer + at;
	err = ibv_post_recv(run->pair.b.qp, &run->recv, &bad);
	if (err)
		bench_fail("post_recv", err);
}

static void post_send(struct run *run, uint64_t i, uint64_t at)
{
	struct ibv_send_wr *bad;
	int err;

	run->send.wr_id = i;
	run->send_sge.addr = (uintptr_t)run->pair.a.buffer + at;
	err = ibv_post_send(run->pair.a.qp, &run->send, &bad);
	if (err)
		bench_fail("post_send", err);
}

static void wrong(const struct ibv_wc *wc, uint64_t wanted)
{
	fprintf(stderr, "completion %" PRIu64 ": wr_id %" PRIu64 ", %s\n", wanted, wc->wr_id,
		vb_wc_status_str(wc->status));
	exit(1);
}

/* Polls once, and checks that the completions are successful and in order. */
static void poll(struct ibv_cq *cq, uint64_t *done)
{
	struct ibv_wc wc[BENCH_POLL_MAX];
	int taken = ibv_poll_cq(cq, BENCH_POLL_MAX, wc);
	uint64_t next = *done;

	if (taken < 0)
		bench_fail("poll_cq", EIO);
	for (int i = 0; i < taken; i++, next++)
		if (wc[i].status != IBV_WC_SUCCESS || wc[i].wr_id != next)
			wrong(&wc[i], next);
	*done = next;
}

static void send_all(struct run *run)
{
	for (uint64_t i = 0; i < run->count;) {
		uint64_t end = i + run->depth < run->count ? i + run->depth : run->count;

		/* Each batch begins at the start of the buffers. */
		for (uint64_t at = 0; i < end; i++, at += run->size) {
			post_recv(run, i, at);
			post_send(run, i, at);
		}
		while (run->sent < end)
			poll(run->pair.a.cq, &run->sent);
		while (run->received < end)
			poll(run->pair.b.cq, &run->received);
	}
}

static void check_data(const struct run *run)
{
	uint64_t places = run->count < run->depth ? run->count : run->depth;

	if (memcmp(run->pair.a.buffer, run->pair.b.buffer, places * run->size) == 0)
		return;
	fprintf(stderr, "rc_send: the received data differ from the sent data\n");
	exit(1);
}

/* --- the reference: the least that any implementation has to do --- */

/* Called through a volatile pointer, so that the compiler cannot inline it. */
static int nothing(void *object, void *wr, void *bad)
{
	return object && wr && bad;
}

/* Enough for a steady figure, but few beside the instructions of the run. */
#define REFERENCE_ROUNDS 4000

static int (*volatile empty_call)(void *, void *, void *) = nothing;

/* Nanoseconds of one message: empty calls for two posts and an eighth of a poll, and one copy. */
static double reference_ns(const struct run *run)
{
	uint64_t rounds = REFERENCE_ROUNDS, began_ns = bench_now_ns();
	uint8_t *to = run->pair.b.buffer;

	for (uint64_t i = 0; i < rounds; i++) {
		empty_call(to, &began_ns, &rounds);
		empty_call(to, &began_ns, &rounds);
		if (i % (BENCH_POLL_MAX / 2) == 0)
			empty_call(to, &began_ns, &rounds);
		memcpy(to + place(run, i), run->pair.a.buffer + place(run, i), run->size);
		__asm__ volatile("" ::: "memory");
	}
	return (double)(bench_now_ns() - began_ns) / (double)rounds;
}

static double lock_pair_ns(void)
{
	pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	uint64_t rounds = REFERENCE_ROUNDS, began_ns = bench_now_ns();

	for (uint64_t i = 0; i < rounds; i++) {
		pthread_mutex_lock(&mutex);
		pthread_mutex_unlock(&mutex);
	}
	return (double)(bench_now_ns() - began_ns) / (double)rounds;
}

/* --- the run --- */

/* The least that a watcher can do. */
static void take_event(void *arg, const struct vb_event *event)
{
	uint64_t *events = arg;

	++*events;
}

static void set_up(struct run *run)
{
	struct vb_fault_rule drop = {.action = VB_FAULT_DROP, .from = "sim0", .count = 1};
	size_t bytes = run->size * run->depth;
	int err;

	bench_open(&run->pair, bytes ? bytes : 1, (int)run->depth);
	bench_join(&run->pair, (uint32_t)run->depth);
	prepare(run);
	for (size_t i = 0; i < bytes; i++)
		run->pair.a.buffer[i] = (uint8_t)(i * 31 + i / 251);
	if (run->trace) {
		err = vb_sim_trace_open(NULL, run->trace);
		if (err)
			bench_fail(run->trace, err);
	}
	if (run->watch)
		vb_find_backend("sim")->watch(take_event, &run->events);
	if (run->log)
		bench_check(run->log, vb_log_open(run->log));
	if (run->drop) {
		drop.skip = run->drop - 1;
		err = vb_fault_add(NULL, &drop, NULL);
		if (err)
			bench_fail("fault rule", err);
	}
}

static void report(const struct run *run, uint64_t spent_ns)
{
	double each_ns = (double)spent_ns / (double)run->count;

	printf("rc_send: %" PRIu64 " messages of %" PRIu64 " bytes, depth %" PRIu64 ", %s%s\n",
	       run->count, run->size, run->depth, run->trace ? "traced to " : "no trace",
	       run->trace ? run->trace : "");
	printf("speed: %.3f million messages/s, %.1f ns each\n", 1e3 / each_ns, each_ns);
	if (run->watch)
		printf("events: %.3f million/s, %" PRIu64 " in all\n",
		       1e3 * (double)run->events / (double)spent_ns, run->events);
	printf("reference: %.1f ns for empty calls and one copy; %.1f ns a mutex pair\n",
	       reference_ns(run), lock_pair_ns());
	bench_print_packets(&run->pair);
}

int main(int argc, char **argv)
{
	struct run run = {.size = 64, .count = 4000000, .depth = BENCH_DEPTH_MAX};
	const struct bench_option options[] = {
		{"--size", "bytes of a message", &run.size, 0, 1 << 20, NULL},
		{"--count", "messages", &run.count, 1, UINT64_C(1) << 40, NULL},
		{"--depth", "WRs that a queue holds", &run.depth, 1, BENCH_DEPTH_MAX, NULL},
		{"--trace", "FILE write every packet to a pcap file", NULL, 0, 0, &run.trace},
		{"--watch", "1: a watcher takes the events, and does nothing with them", &run.watch,
		 0, 1, NULL},
		{"--log", "FILE write every event to a log", NULL, 0, 0, &run.log},
		{"--drop", "lose the Nth packet of sim0; 0 for none", &run.drop, 0, UINT32_MAX,
		 NULL},
		{0},
	};
	uint64_t began_ns, spent_ns;
	int err = 0;

	bench_options(argc, argv, "Messages a second of RC SEND.", options);
	set_up(&run);
	began_ns = bench_now_ns();
	send_all(&run);
	if (run.trace)
		err = vb_sim_trace_close(NULL);
	if (run.log)
		bench_check(run.log, vb_log_close());
	spent_ns = bench_now_ns() - began_ns;
	if (run.watch)
		vb_find_backend("sim")->watch(NULL, NULL);
	check_data(&run);
	report(&run, spent_ns);
	bench_close(&run.pair);
	if (err)
		bench_fail(run.trace, err);
	return 0;
}
