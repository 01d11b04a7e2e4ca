/* SPDX-License-Identifier: MIT */
#include "sides.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

struct order {
	uint64_t way, count;
};

void bench_expect(bool good, const char *what)
{
	if (!good)
		bench_fail(what, errno);
}

void bench_split(struct bench_side *side)
{
	int pair[2];
	pid_t child;

	bench_expect(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair), "socketpair");
	child = fork();
	bench_expect(child >= 0, "fork");
	side->parent = child;
	side->peer = pair[!side->parent];
	close(pair[side->parent]);
}

int bench_unite(const struct bench_side *side)
{
	int status = 0;

	if (side->parent)
		bench_expect(wait(&status) > 0, "wait");
	return status ? 1 : 0;
}

void bench_tell(const struct bench_side *side, const void *bytes, size_t length)
{
	bench_expect(write(side->peer, bytes, length) == (ssize_t)length,
		     "write to the other process");
}

void bench_hear(const struct bench_side *side, void *bytes, size_t length)
{
	bench_expect(recv(side->peer, bytes, length, MSG_WAITALL) == (ssize_t)length,
		     "read from the other process");
}

void bench_meet(const struct bench_side *side)
{
	char byte = 0;

	bench_tell(side, &byte, 1);
	bench_hear(side, &byte, 1);
}

void bench_go(const struct bench_side *side, const struct bench_ways *ways, unsigned int way,
	      void *arg, uint64_t count)
{
	const struct order order = {way, count};

	bench_tell(side, &order, sizeof(order));
	ways->ways[way](arg, count);
	bench_meet(side);
}

void bench_dismiss(const struct bench_side *side, const struct bench_ways *ways)
{
	const struct order end = {ways->count, 0};

	bench_tell(side, &end, sizeof(end));
}

void bench_obey(const struct bench_side *side, const struct bench_ways *ways, void *arg)
{
	struct order order;

	for (bench_hear(side, &order, sizeof(order)); order.way < ways->count;
	     bench_hear(side, &order, sizeof(order))) {
		ways->ways[order.way](arg, order.count);
		bench_meet(side);
	}
}

void bench_post_sends(struct bench_node *node, uint64_t offset, uint64_t bytes, uint64_t count)
{
	struct ibv_sge sge = {(uintptr_t)node->buffer + offset, (uint32_t)bytes, node->mr->lkey};
	struct ibv_send_wr sends[BENCH_LIST_MAX], *bad;

	for (uint64_t i = 0; i < count; i++)
		sends[i] =
			(struct ibv_send_wr){.next = i + 1 < count ? &sends[i + 1] : NULL,
					     .sg_list = &sge,
					     .num_sge = 1,
					     .opcode = IBV_WR_SEND,
					     .send_flags = i + 1 < count ? 0 : IBV_SEND_SIGNALED};
	bench_check("post_send", ibv_post_send(node->qp, sends, &bad));
}
