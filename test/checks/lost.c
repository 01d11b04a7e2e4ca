/* SPDX-License-Identifier: MIT */
/* Work that is posted to a QP which the program knows to be in error. */
#include "pair.h"

static const struct plan plan = {0};

/* Nobody receives the message: the send fails, and the QP moves to ERR. */
static void fail(uint64_t wr_id)
{
	connect_ends(&plan);
	receive(there, 1);
	post(here, IBV_WR_SEND, 2);
	need(wait_for(here).status == IBV_WC_SUCCESS, "send");
	need(wait_for(there).status == IBV_WC_SUCCESS, "receive");
	post(here, IBV_WR_SEND, wr_id);
	need(wait_for(here).status != IBV_WC_SUCCESS, "a send without a receive succeeded");
}

static void move(struct end *end, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = {.qp_state = state};

	need(!ibv_modify_qp(end->qp, &attr, IBV_QP_STATE), "modify"); /* @move */
}

static void after_failure(void)
{
	fail(7);
	receive(here, 8);
	close_ends();
}

static void after_failure_kept(void)
{
	fail(7);
	receive(here, 8);
	wait_for(here);
	close_ends();
}

static void at_exit(void)
{
	fail(7);
	post(here, IBV_WR_SEND, 8);
}

/* Work that was in flight before the failure need not be polled. */
static void at_exit_kept(void)
{
	connect_ends(&plan);
	receive(here, 1);
	receive(there, 1);
	post(here, IBV_WR_SEND, 2);
	wait_for(here);
	post(here, IBV_WR_SEND, 3);
	post(here, IBV_WR_SEND, 4);
	need(wait_for(here).status != IBV_WC_SUCCESS, "a send without a receive succeeded");
}

static void after_error(void)
{
	connect_ends(&plan);
	move(here, IBV_QPS_ERR);
	receive(here, 1);
	post(here, IBV_WR_SEND, 2);
	wait_for(here);
	move(here, IBV_QPS_RESET);
	close_ends();
}

/* The last send of a drained QP is a marker. */
static void after_error_kept(void)
{
	struct ibv_wc wc;

	connect_ends(&plan);
	receive(here, 1);
	move(here, IBV_QPS_ERR);
	post(here, IBV_WR_SEND, 2);
	do
		wc = wait_for(here);
	while (wc.wr_id != 2);
	move(here, IBV_QPS_RESET);
	close_ends();
}

static void reconnect(void)
{
	for (int i = 0; i < 2; i++)
		move(&ends[i], IBV_QPS_RESET);
	for (int i = 0; i < 2; i++) {
		struct ibv_qp_attr rtr = rtr_attr(&ends[!i]), rts = rts_attr();

		to_init(&ends[i], &plan);
		to_rtr(&ends[i], &rtr);
		to_rts(&ends[i], &rts);
	}
}

static void reset(void)
{
	fail(7);
	receive(here, 8);
	reconnect();
	close_ends();
}

/* A QP that has been reset works again. */
static void reset_kept(void)
{
	fail(7);
	reconnect();
	receive(here, 8);
	receive(there, 8);
	post(here, IBV_WR_SEND, 9);
	wait_for(here);
	post(here, IBV_WR_SEND, 9);
	close_ends();
}

/*
 * Two sends, of which the second one fails. The program polls both completions at once, and posts a
 * receive for the first one before it looks at the second one.
 */
static void poll_both(int again)
{
	struct ibv_wc wc[2];

	connect_ends(&plan);
	receive(there, 1);
	post(here, IBV_WR_SEND, 2);
	post(here, IBV_WR_SEND, 3);
	wait_for(there);
	for (int i = 0; i < 100; i++) /* The clock goes on with each call of ibv_poll_cq(). */
		ibv_poll_cq(there->cq, 1, wc);
	need(ibv_poll_cq(here->cq, 2, wc) == 2, "two completions"); /* @poll-both */
	need(!wc[0].status && wc[1].status, "the second send fails");
	if (again)
		ibv_poll_cq(here->cq, 2, wc);
	receive(here, 4);
	close_ends();
}

static void both(void)
{
	poll_both(1);
}

static void both_kept(void)
{
	poll_both(0);
}

/* An unsignalled send need not be polled. */
static void unsignalled(int flags)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;

	fail(7);
	sge = piece(here, 0, 64);
	wr.send_flags = (unsigned int)flags;
	need(!ibv_post_send(here->qp, &wr, &bad), "send"); /* @post-flags */
	close_ends();
}

static void signalled_only(void)
{
	unsignalled(IBV_SEND_SIGNALED);
}

static void signalled_only_kept(void)
{
	unsignalled(0);
}

/* --- datagrams --- */

static void to_ud(struct end *end)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_UD,
		.send_cq = end->cq,
		.recv_cq = end->cq,
		.cap = {DEPTH, DEPTH, 2, 2, 64},
	};
	struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR}, rts = {.qp_state = IBV_QPS_RTS};

	ibv_destroy_qp(end->qp);
	end->qp = ibv_create_qp(end->pd, &init);
	need(end->qp != NULL, "QP");
	to_init(end, &plan);
	to_rtr(end, &rtr);
	to_rts(end, &rts);
}

/* A datagram that fails stops the sends of its QP, which still receives. */
static void datagram(int in_error)
{
	struct ibv_ah_attr path;
	struct ibv_sge sge;
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;

	open_ends(&plan);
	to_ud(here);
	path = path_to(here);
	sge = piece(here, 0, 64);
	sge.lkey++;
	wr.wr.ud.ah = ibv_create_ah(here->pd, &path);
	wr.wr.ud.remote_qpn = here->qp->qp_num;
	wr.wr.ud.remote_qkey = QKEY;
	wr.send_flags = IBV_SEND_SIGNALED;
	need(!ibv_post_send(here->qp, &wr, &bad), "send");
	need(wait_for(here).status != IBV_WC_SUCCESS, "a send without an MR succeeded");
	if (in_error)
		move(here, IBV_QPS_ERR);
	receive(here, 8);
	ibv_destroy_ah(wr.wr.ud.ah);
	close_ends();
}

static void datagrams(void)
{
	datagram(1);
}

static void datagrams_kept(void)
{
	datagram(0);
}

static const struct mode modes[] = {
	{"after-failure", after_failure},
	{"after-failure-kept", after_failure_kept},
	{"at-exit", at_exit},
	{"at-exit-kept", at_exit_kept},
	{"after-error", after_error},
	{"after-error-kept", after_error_kept},
	{"before-reset", reset},
	{"before-reset-kept", reset_kept},
	{"polled-both", both},
	{"polled-both-kept", both_kept},
	{"signalled", signalled_only},
	{"signalled-kept", signalled_only_kept},
	{"datagrams", datagrams},
	{"datagrams-kept", datagrams_kept},
	{0},
};

int main(int argc, char **argv)
{
	return run_mode(argc, argv, modes);
}
