/* SPDX-License-Identifier: MIT */
/* Polls of extended CQs. */
#include "pair.h"

#include <errno.h>

static struct ibv_cq_ex *cq;

static void start(int expected)
{
	struct ibv_poll_cq_attr attr = {0};

	need(ibv_start_poll(cq, &attr) == expected, "start"); /* @start */
}

static void next(int expected)
{
	need(ibv_next_poll(cq) == expected, "next"); /* @next */
}

static void end(void)
{
	ibv_end_poll(cq); /* @end */
}

/* The QP here completes into an extended CQ. */
static void connect_extended(void)
{
	static const struct plan plan;
	struct ibv_cq_init_attr_ex attr = {.cqe = DEPTH, .wc_flags = IBV_WC_STANDARD_FLAGS};
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC, .cap = {DEPTH, DEPTH, 2, 2, 64}};

	open_ends(&plan);
	ibv_destroy_qp(here->qp);
	cq = ibv_create_cq_ex(here->context, &attr);
	need(cq != NULL, "CQ");
	init.send_cq = init.recv_cq = ibv_cq_ex_to_cq(cq);
	here->qp = ibv_create_qp(here->pd, &init);
	need(here->qp != NULL, "QP");
	for (int i = 0; i < 2; i++) {
		struct ibv_qp_attr rtr = rtr_attr(&ends[!i]), rts = rts_attr();

		to_init(&ends[i], &plan);
		to_rtr(&ends[i], &rtr);
		to_rts(&ends[i], &rts);
	}
}

static void close_extended(void)
{
	ibv_destroy_qp(here->qp);
	here->qp = NULL;
	ibv_destroy_cq(ibv_cq_ex_to_cq(cq)); /* @destroy */
	close_ends();
}

static void send_some(int count)
{
	for (int i = 0; i < count; i++) {
		receive(there, 1);
		post(here, IBV_WR_SEND, 2);
	}
	for (int i = 0; i < count; i++)
		wait_for(there);
}

static void ended_without_start(void)
{
	connect_extended();
	end();
	close_extended();
}

static void ended_without_start_kept(void)
{
	connect_extended();
	send_some(1);
	start(0);
	end();
	close_extended();
}

static void ended_when_empty(void)
{
	connect_extended();
	start(ENOENT);
	end();
	close_extended();
}

static void ended_when_empty_kept(void)
{
	connect_extended();
	start(ENOENT);
	send_some(2);
	start(0);
	next(0);
	next(ENOENT);
	end();
	start(ENOENT);
	close_extended();
}

static void ended_twice(void)
{
	connect_extended();
	send_some(1);
	start(0);
	end();
	end();
	close_extended();
}

static void ended_twice_kept(void)
{
	connect_extended();
	for (int i = 0; i < 2; i++) {
		send_some(1);
		start(0);
		end();
	}
	close_extended();
}

static void started_twice(void)
{
	connect_extended();
	send_some(2);
	start(0);
	start(0);
	end();
	close_extended();
}

static void started_twice_kept(void)
{
	connect_extended();
	send_some(2);
	start(0);
	end();
	start(0);
	end();
	close_extended();
}

static void continued_without_start(void)
{
	connect_extended();
	start(ENOENT);
	next(ENOENT);
	close_extended();
}

static void continued_without_start_kept(void)
{
	connect_extended();
	send_some(1);
	start(0);
	next(ENOENT);
	end();
	close_extended();
}

static void left_open(void)
{
	connect_extended();
	send_some(1);
	start(0);
	close_extended();
}

static void left_open_kept(void)
{
	connect_extended();
	send_some(1);
	start(0);
	post(here, IBV_WR_RDMA_WRITE, 3);
	end();
	close_extended();
}

#define PAIR(name, function)                  \
	{name, function},                     \
	{                                     \
		name "-kept", function##_kept \
	}

static const struct mode modes[] = {
	PAIR("ended-without-start", ended_without_start),
	PAIR("ended-when-empty", ended_when_empty),
	PAIR("ended-twice", ended_twice),
	PAIR("started-twice", started_twice),
	PAIR("continued-without-start", continued_without_start),
	PAIR("left-open", left_open),
	{0},
};

int main(int argc, char **argv)
{
	return run_mode(argc, argv, modes);
}
