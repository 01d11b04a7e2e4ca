/* SPDX-License-Identifier: MIT */
/*
 * Measures a message through a channel, and the same message by the bare verbs on the same nodes.
 * Posts a receive, posts a send, waits for both; one message at a time.
 */
#include "bench.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <verbena/channel.h>

struct run {
	uint64_t size, count, only;
	struct vb_device *device[2];
	struct vb_group *group[2];
	struct vb_region *region[2];
	struct vb_channel *channel[2];
};

static void set_up(struct run *run)
{
	static const char *const names[] = {"sim0", "sim1"};

	for (int i = 0; i < 2; i++) {
		run->device[i] = bench_need(
			"device", vb_device_open_named("sim", names[i], 0, VB_GID_INDEX_ANY));
		run->group[i] = bench_need("group", vb_group_open(run->device[i], NULL));
		run->region[i] = bench_need("region", vb_group_alloc(run->group[i], run->size));
		run->channel[i] = bench_need("channel", vb_channel_prepare(run->group[i], NULL));
	}
	bench_check("connect", vb_channel_connect_pair(run->channel[0], run->channel[1]));
}

static void close_all(struct run *run)
{
	for (int i = 0; i < 2; i++) {
		bench_check("channel", vb_channel_close(run->channel[i]));
		bench_check("region", vb_region_free(run->region[i]));
		bench_check("group", vb_group_close(run->group[i]));
		bench_check("device", vb_device_close(run->device[i]));
	}
}

static void by_channel(void *arg, uint64_t count)
{
	struct run *run = arg;
	const struct vb_slice from = {run->region[0], 0, (uint32_t)run->size};
	const struct vb_slice into = {run->region[1], 0, (uint32_t)run->size};
	struct vb_work sent, received;

	for (uint64_t i = 0; i < count; i++) {
		bench_check("receive", vb_channel_receive(run->channel[1], &into, &received));
		bench_check("send", vb_channel_send(run->channel[0], &from, &sent));
		bench_check("received", vb_work_wait(received, VB_FOREVER, NULL));
		bench_check("sent", vb_work_wait(sent, VB_FOREVER, NULL));
	}
}

static void by_verbs(void *arg, uint64_t count)
{
	struct run *run = arg;
	struct ibv_sge sges[2];
	struct ibv_recv_wr *bad_recv, recv = {.sg_list = &sges[1], .num_sge = 1};
	struct ibv_send_wr *bad_send, send = {.sg_list = &sges[0],
					      .num_sge = 1,
					      .opcode = IBV_WR_SEND,
					      .send_flags = IBV_SEND_SIGNALED};

	for (int i = 0; i < 2; i++)
		sges[i] = (struct ibv_sge){(uintptr_t)run->region[i]->addr, (uint32_t)run->size,
					   run->region[i]->mr->lkey};
	for (uint64_t i = 0; i < count; i++) {
		bench_check("post_recv",
			    ibv_post_recv(vb_channel_qp(run->channel[1]), &recv, &bad_recv));
		bench_check("post_send",
			    ibv_post_send(vb_channel_qp(run->channel[0]), &send, &bad_send));
		bench_poll_one(vb_group_cq(run->group[1])->cq);
		bench_poll_one(vb_group_cq(run->group[0])->cq);
	}
}

int main(int argc, char **argv)
{
	struct run run = {.size = 64, .count = 1000000};
	const struct bench_option options[] = {
		{"--size", "bytes of a message", &run.size, 1, 1 << 20, NULL},
		{"--count", "messages", &run.count, 1, UINT64_C(1) << 40, NULL},
		{"--only", "1: the channel alone, 2: the verbs alone", &run.only, 0, 2, NULL},
		{0},
	};
	struct bench_comparison found;

	bench_options(argc, argv, "Time of a message through a channel.", options);
	set_up(&run);
	found = bench_compare(run.only == 2 ? NULL : by_channel, run.only == 1 ? NULL : by_verbs,
			      &run, run.count);
	printf("channel_send: %" PRIu64 " messages of %" PRIu64 " bytes, one at a time\n",
	       run.count, run.size);
	printf("speed: %.1f ns each; reference: %.1f ns by the bare verbs\n", found.ours_ns,
	       found.theirs_ns);
	if (!run.only)
		printf("ratio: %.2f\n", found.ratio);
	close_all(&run);
	return 0;
}
