/* SPDX-License-Identifier: MIT */
/*
 * Measures a message between agents and a write to a requested region, and the same by the bare
 * verbs between the same devices; one operation at a time.
 */
#include "bench.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <verbena/rdma.h>

struct run {
	uint64_t size, count, writes, write_size, only;
	struct vb_rdma_hall *hall;
	struct vb_rdma_agent *agent[2];
	struct vb_rdma_listener *listener;
	struct vb_rdma *rdma[2];
	struct vb_local_mr *local;
	struct vb_remote_mr *remote;
	struct bench_pair bare;
};

static struct vb_rdma_result finish(struct run *run, struct vb_rdma_op op)
{
	struct vb_rdma_result result;
	int err = EAGAIN;

	while (err == EAGAIN) {
		vb_rdma_progress(run->agent[0], 0);
		vb_rdma_progress(run->agent[1], 0);
		err = vb_rdma_poll(op, &result);
	}
	bench_check("operation", err);
	return result;
}

static struct vb_rdma_result do_it(struct run *run, const struct vb_rdma_request *request)
{
	struct vb_rdma_op op;

	bench_check("start", vb_rdma_start(request, &op));
	return finish(run, op);
}

static void set_up(struct run *run)
{
	static const char *const names[] = {"sim0", "sim1"};
	struct vb_rdma_options options;

	run->hall = bench_need("hall", vb_rdma_hall_open());
	vb_rdma_options_init(&options);
	options.backend = "sim";
	options.exchange = vb_rdma_exchange_local();
	options.exchange_arg = run->hall;
	for (int i = 0; i < 2; i++) {
		options.device = names[i];
		run->agent[i] = bench_need("agent", vb_rdma_agent_open(&options));
	}
	run->listener = bench_need("listener", vb_rdma_listen(run->agent[1], "server"));
	run->rdma[0] = do_it(run, &(struct vb_rdma_request){.operation = VB_RDMA_CONNECT,
							    .agent = run->agent[0],
							    .address = "server"})
			       .rdma;
	run->rdma[1] = do_it(run, &(struct vb_rdma_request){.operation = VB_RDMA_ACCEPT,
							    .listener = run->listener})
			       .rdma;
	run->local = bench_need("region", vb_alloc_local_mr(run->agent[0], run->write_size, 0));
	run->remote = do_it(run, &(struct vb_rdma_request){.operation = VB_RDMA_REQUEST_REMOTE_MR,
							   .rdma = run->rdma[0],
							   .length_bytes = run->write_size,
							   .access = VB_MR_WRITE})
			      .remote;
	bench_open(&run->bare, run->write_size, BENCH_DEPTH_MAX);
	bench_join(&run->bare, BENCH_DEPTH_MAX);
}

static void close_all(struct run *run)
{
	bench_close(&run->bare);
	vb_remote_mr_put(run->remote);
	vb_local_mr_put(run->local);
	for (int i = 0; i < 2; i++)
		bench_check("close", vb_rdma_close(run->rdma[i]));
	bench_check("listener", vb_rdma_listener_close(run->listener));
	for (int i = 0; i < 2; i++)
		bench_check("agent", vb_rdma_agent_close(run->agent[i]));
	vb_rdma_hall_close(run->hall);
}

static void sends(void *arg, uint64_t count)
{
	static char from[4096], into[4096];
	struct run *run = arg;

	for (uint64_t i = 0; i < count; i++) {
		bench_check("send", vb_rdma_send(run->rdma[0], from, run->size, VB_FOREVER));
		bench_check("receive",
			    vb_rdma_receive(run->rdma[1], into, sizeof(into), NULL, VB_FOREVER));
	}
}

static void writes(void *arg, uint64_t count)
{
	struct run *run = arg;
	const struct vb_local_slice slice = {run->local, 0, run->write_size};

	for (uint64_t i = 0; i < count; i++)
		bench_check("write",
			    vb_rdma_write(run->rdma[0], &slice, run->remote, 0, VB_FOREVER));
}

static void post(struct bench_node *node, uint64_t size, enum ibv_wr_opcode opcode,
		 const struct bench_node *peer)
{
	struct ibv_sge sge = {(uintptr_t)node->buffer, (uint32_t)size, node->mr->lkey};
	struct ibv_send_wr *bad, wr = {.sg_list = &sge,
				       .num_sge = 1,
				       .opcode = opcode,
				       .send_flags = IBV_SEND_SIGNALED};

	wr.wr.rdma.remote_addr = (uintptr_t)peer->buffer;
	wr.wr.rdma.rkey = peer->mr->rkey;
	bench_check("post_send", ibv_post_send(node->qp, &wr, &bad));
}

static void bare_sends(void *arg, uint64_t count)
{
	struct run *run = arg;
	struct bench_node *a = &run->bare.a, *b = &run->bare.b;
	struct ibv_sge sge = {(uintptr_t)b->buffer, (uint32_t)run->size, b->mr->lkey};
	struct ibv_recv_wr *bad, recv = {.sg_list = &sge, .num_sge = 1};

	for (uint64_t i = 0; i < count; i++) {
		bench_check("post_recv", ibv_post_recv(b->qp, &recv, &bad));
		post(a, run->size, IBV_WR_SEND, b);
		bench_poll_one(b->cq);
		bench_poll_one(a->cq);
	}
}

static void bare_writes(void *arg, uint64_t count)
{
	struct run *run = arg;

	for (uint64_t i = 0; i < count; i++) {
		post(&run->bare.a, run->write_size, IBV_WR_RDMA_WRITE, &run->bare.b);
		bench_poll_one(run->bare.a.cq);
	}
}

static void compare(struct run *run, const char *name, bench_way *ours, bench_way *theirs,
		    uint64_t count)
{
	const struct bench_comparison found = bench_compare(
		run->only == 2 ? NULL : ours, run->only == 1 ? NULL : theirs, run, count);

	printf("%s: %.1f ns each; reference: %.1f ns by the bare verbs\n", name, found.ours_ns,
	       found.theirs_ns);
	if (!run->only)
		printf("%s ratio: %.2f\n", name, found.ratio);
}

int main(int argc, char **argv)
{
	struct run run = {.size = 64, .count = 1000000, .writes = 2000, .write_size = 1 << 20};
	const struct bench_option options[] = {
		{"--size", "bytes of a message", &run.size, 1, 4096, NULL},
		{"--count", "messages", &run.count, 1, UINT64_C(1) << 40, NULL},
		{"--writes", "writes", &run.writes, 0, UINT64_C(1) << 40, NULL},
		{"--write-size", "bytes of a write", &run.write_size, 4096, 1 << 24, NULL},
		{"--only", "1: the agents alone, 2: the verbs alone", &run.only, 0, 2, NULL},
		{0},
	};

	bench_options(argc, argv, "Time of messages and writes between agents.", options);
	set_up(&run);
	compare(&run, "send", sends, bare_sends, run.count);
	if (run.writes)
		compare(&run, "write", writes, bare_writes, run.writes);
	close_all(&run);
	return 0;
}
