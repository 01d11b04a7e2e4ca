/* SPDX-License-Identifier: MIT */
/*
 * usage: story [FILE.pcap]
 * A short story of two nodes, told by their packets. A cable of 1 us and 100 Gbit/s joins sim0 and
 * sim1. Nothing sleeps: vb_sim_run() moves the time.
 */
#include "node.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <verbena/fault.h>
#include <verbena/sim.h>
#include <verbena/verbs.h>

#define CABLE_NS       1000
#define CABLE_BITS     UINT64_C(100000000000)
#define SMALL_CQE      2
#define RC_SEND_MIDDLE 0x01
#define STORY_NS_MAX   UINT64_C(1000000000)

struct story {
	struct ladder ladder;
	struct node a, b;
	unsigned int awaited_a, awaited_b; /* the completions that end a chapter */
};

/* --- time --- */

typedef bool until_fn(const struct story *story);

/* Runs the simulator from event to event until the condition holds. */
static void run_until(struct story *story, until_fn *until)
{
	uint64_t now_ns, next_ns;

	vb_sim_run(NULL, 0);
	for (;;) {
		node_look(&story->a);
		node_look(&story->b);
		if (until(story))
			return;
		now_ns = vb_sim_now_ns(NULL);
		next_ns = vb_sim_next_ns(NULL);
		if (next_ns == VB_SIM_NEVER || next_ns > STORY_NS_MAX)
			node_fail("the story waits for an event that cannot come", EDEADLK);
		vb_sim_run(NULL, next_ns - now_ns);
	}
}

static bool all_done(const struct story *story)
{
	return story->a.completions >= story->awaited_a && story->b.completions >= story->awaited_b;
}

static void run_to_completions(struct story *story, unsigned int a, unsigned int b)
{
	story->awaited_a = story->a.completions + a;
	story->awaited_b = story->b.completions + b;
	run_until(story, all_done);
}

/* --- the chapters --- */

static void connect_nodes(struct story *story, int b_cqe)
{
	node_make_qp(&story->a, 16);
	node_make_qp(&story->b, b_cqe);
	node_to_init(&story->a);
	node_to_init(&story->b);
	node_to_rtr(&story->a, &story->b);
	node_to_rtr(&story->b, &story->a);
	node_to_rts(&story->a);
	node_to_rts(&story->b);
}

static void tell_sends(struct story *story)
{
	memcpy(story->a.buffer, "good morning", 12);
	node_post_recv(&story->b, 1, 0, 1024);
	node_post(&story->a, IBV_WR_SEND, 1, 0, 12, NULL);
	run_to_completions(story, 1, 1);
	node_post_recv(&story->b, 2, 0, 4096);
	node_post(&story->a, IBV_WR_SEND, 2, 0, 2500, NULL);
	run_to_completions(story, 1, 1);
}

static void tell_one_sided(struct story *story)
{
	uint64_t counter = 41;

	node_post(&story->a, IBV_WR_RDMA_WRITE, 3, 0, 200, &story->b);
	run_to_completions(story, 1, 0);
	node_post(&story->a, IBV_WR_RDMA_READ, 4, 4096, 1500, &story->b);
	run_to_completions(story, 1, 0);
	memcpy(story->b.buffer + 512, &counter, sizeof(counter));
	node_post(&story->a, IBV_WR_ATOMIC_FETCH_AND_ADD, 5, 512, 8, &story->b);
	run_to_completions(story, 1, 0);
	memcpy(&counter, story->b.buffer + 512, sizeof(counter));
	ladder_note(&story->ladder, vb_sim_now_ns(NULL), LADDER_RIGHT, LADDER_PLAIN,
		    "the counter was 41 and is %llu", (unsigned long long)counter);
}

static bool b_sent_nak(const struct story *story)
{
	return story->ladder.naks[LADDER_RIGHT] > 0;
}

static void tell_rnr(struct story *story)
{
	node_post(&story->a, IBV_WR_SEND, 6, 0, 64, NULL);
	run_until(story, b_sent_nak);
	node_post_recv(&story->b, 6, 0, 1024);
	run_to_completions(story, 1, 1);
}

static void tell_loss(struct story *story)
{
	struct vb_fault_rule rule = {
		.action = VB_FAULT_DROP,
		.from = "sim0",
		.opcode_given = true,
		.opcode = RC_SEND_MIDDLE,
		.count = 1,
	};
	int err = vb_fault_add(NULL, &rule, NULL);

	if (err)
		node_fail("fault rule", err);
	node_post_recv(&story->b, 7, 0, 4096);
	node_post(&story->a, IBV_WR_SEND, 7, 0, 3000, NULL);
	run_to_completions(story, 1, 1);
	vb_fault_clear(NULL);
}

static bool a_gave_up(const struct story *story)
{
	return story->a.last_status != IBV_WC_SUCCESS;
}

static void tell_overrun(struct story *story)
{
	unsigned int cqe;

	connect_nodes(story, SMALL_CQE);
	cqe = (unsigned int)story->b.cq->cqe;
	ladder_note(&story->ladder, vb_sim_now_ns(NULL), LADDER_RIGHT, LADDER_PLAIN,
		    "the CQ has room for %u, and nobody polls it", cqe);
	story->b.watched = false;
	for (unsigned int i = 0; i <= cqe; i++)
		node_post_recv(&story->b, 8 + i, 0, 64);
	for (unsigned int i = 0; i <= cqe; i++)
		node_post(&story->a, IBV_WR_SEND, 8 + i, 0, 64, NULL);
	run_to_completions(story, cqe + 1, 0);
	node_post(&story->a, IBV_WR_SEND, 9 + cqe, 0, 64, NULL);
	run_until(story, a_gave_up);
}

static void tell(struct story *story)
{
	ladder_chapter(&story->ladder, "Two nodes connect");
	ladder_rails(&story->ladder, story->a.name, story->b.name);
	connect_nodes(story, 16);
	ladder_chapter(&story->ladder, "Sends: one packet, then three, for the path MTU is 1024");
	tell_sends(story);
	ladder_chapter(&story->ladder,
		       "A write, a read and an atomic: sim1's program does nothing");
	tell_one_sided(story);
	ladder_chapter(&story->ladder,
		       "A send that meets no receive: RNR NAK, a wait, then success");
	tell_rnr(story);
	ladder_chapter(&story->ladder, "A lost packet: sim1 misses it, sim0 sends it again");
	tell_loss(story);
	ladder_chapter(&story->ladder,
		       "A CQ that overruns: its QP dies with it, and sim0 finds out");
	tell_overrun(story);
}

/* --- the world --- */

static void make_world(const char *trace)
{
	struct vb_sim_config config = {
		.clock = VB_SIM_CLOCK_VIRTUAL,
		.device_count = 2,
		.devices = {{.name = "sim0"}, {.name = "sim1"}},
		.link_count = 1,
		.links = {{.a = "sim0",
			   .b = "sim1",
			   .delay_ns = CABLE_NS,
			   .bits_per_second = CABLE_BITS}},
	};
	int err = vb_sim_configure(&config);

	if (err)
		node_fail("the world", err);
	err = trace ? vb_sim_trace_open(NULL, trace) : 0;
	if (err)
		node_fail(trace, err);
}

int main(int argc, char **argv)
{
	static struct story story;
	int err;

	if (argc > 2 || (argc == 2 && argv[1][0] == '-')) {
		fprintf(stderr, "usage: %s [FILE.pcap]\n", argv[0]);
		return 2;
	}
	make_world(argv[1]);
	ladder_start(&story.ladder);
	node_open(&story.a, "sim0", LADDER_LEFT, &story.ladder);
	node_open(&story.b, "sim1", LADDER_RIGHT, &story.ladder);
	vb_sim_watch(NULL, ladder_frame, &story.ladder);
	tell(&story);
	vb_sim_watch(NULL, NULL, NULL);
	node_close(&story.a);
	node_close(&story.b);
	err = vb_sim_trace_close(NULL);
	if (err)
		node_fail(argv[1], err);
	printf("\n%u packets in %.3f simulated ms\n", story.ladder.packets,
	       (double)vb_sim_now_ns(NULL) / 1e6);
	return 0;
}
