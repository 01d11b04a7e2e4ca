/* SPDX-License-Identifier: MIT */
/* Messages for which no receive is posted. */
#include "pair.h"

static const struct plan plan = {0};

static void connect_with(uint8_t min_rnr_timer, uint8_t rnr_retry)
{
	for (int i = 0; i < 2; i++) {
		struct ibv_qp_attr rtr = rtr_attr(&ends[!i]), rts = rts_attr();

		rtr.min_rnr_timer = min_rnr_timer;
		rts.rnr_retry = rnr_retry;
		to_init(&ends[i], &plan);
		to_rtr(&ends[i], &rtr);
		to_rts(&ends[i], &rts);
	}
}

static void reset(void)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};

	for (int i = 0; i < 2; i++)
		need(!ibv_modify_qp(ends[i].qp, &attr, IBV_QP_STATE), "RESET");
}

/* --- receives that are missing --- */

/* Receives before the first connection, and after the QP was reset. */
static void send_after_reset(int before, int after)
{
	connect_ends(&plan);
	for (int i = 0; i < before; i++)
		receive(there, 1);
	reset();
	connect_with(1, 2);
	for (int i = 0; i < after; i++)
		receive(there, 1);
	post(here, IBV_WR_SEND, 2);
	wait_for(here);
	close_ends();
}

static void after_reset(void)
{
	send_after_reset(2, 0);
}

static void after_reset_kept(void)
{
	send_after_reset(2, 1);
}

static void never(void)
{
	send_after_reset(0, 0);
}

/* A receive was posted, and used: the peer is only too slow. */
static void never_kept(void)
{
	connect_ends(&plan);
	receive(there, 1);
	for (int i = 0; i < 2; i++) {
		post(here, IBV_WR_SEND, 2);
		wait_for(here);
	}
	close_ends();
}

/* --- sends that wait long --- */

/* The receive is posted when the message has been refused. */
static void wait_with(uint8_t min_rnr_timer, uint8_t rnr_retry, enum ibv_wr_opcode opcode,
		      int early)
{
	struct ibv_wc wc;

	open_ends(&plan);
	connect_with(min_rnr_timer, rnr_retry);
	receive(there, 1);
	post(here, IBV_WR_SEND, 2);
	wait_for(here);
	wait_for(there);
	if (early)
		receive(there, 1);
	post(here, opcode, 3);
	for (int i = 0; i < 20; i++)
		need(ibv_poll_cq(there->cq, 1, &wc) >= 0, "poll");
	if (!early)
		receive(there, 1);
	wait_for(here);
	close_ends();
}

static void timer(void)
{
	wait_with(0, 7, IBV_WR_SEND, 0);
}

static void timer_kept(void)
{
	wait_with(12, 7, IBV_WR_SEND, 0);
}

static void retries(void)
{
	wait_with(0, 7, IBV_WR_RDMA_WRITE_WITH_IMM, 0);
}

static void retries_kept(void)
{
	wait_with(0, 6, IBV_WR_RDMA_WRITE_WITH_IMM, 0);
}

static void early(void)
{
	wait_with(0, 7, IBV_WR_SEND_WITH_IMM, 0);
}

static void early_kept(void)
{
	wait_with(0, 7, IBV_WR_SEND_WITH_IMM, 1);
	wait_with(0, 7, IBV_WR_RDMA_WRITE, 0);
}

static const struct mode modes[] = {
	{"after-reset", after_reset},
	{"after-reset-kept", after_reset_kept},
	{"never", never},
	{"never-kept", never_kept},
	{"timer", timer},
	{"timer-kept", timer_kept},
	{"retries", retries},
	{"retries-kept", retries_kept},
	{"early", early},
	{"early-kept", early_kept},
	{0},
};

int main(int argc, char **argv)
{
	return run_mode(argc, argv, modes);
}
