/* SPDX-License-Identifier: MIT */
/*
 * Measures how many schedules vb_explore() explores with one process, for a test of 20 packets that makes
 * and ends its world; and how much faster than real time the virtual clock is for a send whose peer does not
 * answer.
 */
#include "bench.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>
#include <verbena/explore.h>
#include <verbena/verbs.h>

#define MESSAGES      19 /* and one ACK */
#define MESSAGE_BYTES 64
#define NS_OF_S	      1000000000.0

static void post(struct bench_node *node, unsigned int flags)
{
	struct ibv_sge sge = {(uintptr_t)node->buffer, MESSAGE_BYTES, node->mr->lkey};
	struct ibv_send_wr *bad,
		wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = flags};

	bench_check("post_send", vb_post_send(node->qp, &wr, &bad));
}

static void post_receive(struct bench_node *node)
{
	struct ibv_sge sge = {(uintptr_t)node->buffer, MESSAGE_BYTES, node->mr->lkey};
	struct ibv_recv_wr *bad, wr = {.sg_list = &sge, .num_sge = 1};

	bench_check("post_recv", vb_post_recv(node->qp, &wr, &bad));
}

static int send_messages(void *arg)
{
	struct bench_pair pair;

	bench_open(&pair, 4096, 32);
	bench_join(&pair, 32);
	for (unsigned int i = 0; i < MESSAGES; i++)
		post_receive(&pair.b);
	for (unsigned int i = 0; i < MESSAGES; i++)
		post(&pair.a, i + 1 == MESSAGES ? IBV_SEND_SIGNALED : 0);
	bench_poll_one(pair.a.cq);
	for (unsigned int i = 0; i < MESSAGES; i++)
		bench_poll_one(pair.b.cq);
	bench_close(&pair);
	return VB_ENDED_WELL;
}

static double seconds_of_children(void)
{
	struct rusage usage;

	getrusage(RUSAGE_CHILDREN, &usage);
	return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
	       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static void measure_schedules(uint64_t walks)
{
	const struct vb_explore explore = {
		.name = "bench", .test = send_messages, .walks = walks, .jobs = 1, .quiet = true};
	const uint64_t began_ns = bench_now_ns();
	struct vb_explore_result result;
	double real_s, spent_s;

	if (vb_explore(&explore, &result))
		bench_fail(result.words, 0);
	real_s = (double)(bench_now_ns() - began_ns) / NS_OF_S;
	spent_s = seconds_of_children();
	printf("explored: %.0f schedules a minute of processor time, %.0f of real time, %" PRIu64
	       " packets each\n",
	       60 * (double)result.runs / spent_s, 60 * (double)result.runs / real_s,
	       result.packets);
}

/* The peer is gone: eight timeouts of 67 ms or more pass before the send ends. */
static void measure_virtual_time(uint64_t count)
{
	const uint64_t began_ns = bench_now_ns();
	uint64_t virtual_ns = 0;

	for (uint64_t i = 0; i < count; i++) {
		struct bench_pair pair;
		struct ibv_wc wc;

		bench_open(&pair, 4096, 32);
		bench_join(&pair, 32);
		vb_destroy_qp(pair.b.qp);
		pair.b.qp = NULL;
		post(&pair.a, IBV_SEND_SIGNALED);
		while (!vb_poll_cq(pair.a.cq, 1, &wc))
			;
		virtual_ns += vb_sim_now_ns(NULL);
		bench_close(&pair);
		vb_sim_reset();
	}
	printf("virtual time: %.0f times as fast as real time\n",
	       (double)virtual_ns / (double)(bench_now_ns() - began_ns));
}

/* For callgrind: the runs of a process. */
static void run_here(uint64_t count)
{
	for (uint64_t i = 0; i < count; i++) {
		send_messages(NULL);
		vb_sim_reset();
	}
}

int main(int argc, char **argv)
{
	uint64_t walks = 20000, timeouts = 200, here = 0;
	const struct bench_option options[] = {
		{"--walks", "random schedules", &walks, 1, UINT32_MAX, NULL},
		{"--timeouts", "sends without an answer", &timeouts, 1, UINT32_MAX, NULL},
		{"--here", "runs of the test in this process, and nothing else", &here, 0,
		 UINT32_MAX, NULL},
		{NULL},
	};

	bench_options(argc, argv, "Measures exploration.", options);
	run_here(here);
	if (here)
		return 0;
	measure_schedules(walks);
	measure_virtual_time(timeouts);
	return 0;
}
