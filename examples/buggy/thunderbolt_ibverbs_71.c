/* SPDX-License-Identifier: MIT */
/*
 * usage: thunderbolt_ibverbs_71 [--fixed]
 * A replay of https://github.com/hellas-ai/thunderbolt-ibverbs/pull/71. With rnr_retry 0, one message that comes
 * before its receive ends the connection with IBV_WC_RNR_RETRY_EXC_ERR: a race of a few microseconds between
 * two machines that post sends and receives by turns.
 *
 * Here the server posts its receive again when its answer has completed. Mostly that is before the client's
 * next request comes; not if the ACK of an answer is lost.
 */
#include "ends.h"

#include <stdio.h>

#define REQUESTS      4
#define MESSAGE_BYTES 64
#define RECEIVE	      0 /* wr_ids */
#define SEND	      1

static void use_one_cq(struct end *end)
{
	ibv_destroy_cq(end->recv_cq);
	end->recv_cq = end->send_cq;
}

static void connect_end(struct end ends[2], int self, bool fixed)
{
	struct ibv_qp_attr rtr = end_rtr(&ends[!self]), rts = end_rts();

	rts.rnr_retry = fixed ? 7 : 0; /* 7: without end */
	end_need(!ibv_modify_qp(ends[self].qp, &rtr, END_RTR_MASK), "RTR");
	end_need(!ibv_modify_qp(ends[self].qp, &rts, END_RTS_MASK), "RTS");
}

static void send_message(struct end *from)
{
	struct ibv_sge sge = end_piece(from, MESSAGE_BYTES, MESSAGE_BYTES);
	struct ibv_send_wr wr = {
		.wr_id = SEND,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
	};
	struct ibv_send_wr *bad;

	end_need(!ibv_post_send(from->qp, &wr, &bad), "the send cannot be posted");
}

/* Returns true if there is a completion of this wr_id. */
static bool poll(struct end *end, uint64_t wr_id)
{
	struct ibv_wc wc;

	if (ibv_poll_cq(end->send_cq, 1, &wc) < 1)
		return false;
	end_need(wc.status == IBV_WC_SUCCESS, ibv_wc_status_str(wc.status));
	return wc.wr_id == wr_id;
}

/* Sends the next request when the answer has come. Returns how many answers have come. */
static int run_client(struct end *client, int answers)
{
	if (!poll(client, RECEIVE))
		return answers;
	if (answers + 1 < REQUESTS) {
		end_receive(client, RECEIVE, MESSAGE_BYTES);
		send_message(client);
	}
	return answers + 1;
}

/* Answers a request, and posts a receive for the next one when the answer has completed. */
static void run_server(struct end *server)
{
	struct ibv_wc wc;

	if (ibv_poll_cq(server->send_cq, 1, &wc) < 1 || wc.status != IBV_WC_SUCCESS)
		return;
	if (wc.wr_id == RECEIVE)
		send_message(server);
	else
		end_receive(server, RECEIVE, MESSAGE_BYTES);
}

int main(int argc, char **argv)
{
	const bool fixed = end_wants_fixed(argc, argv);
	struct end ends[2];
	struct end *client = &ends[0], *server = &ends[1];
	int answers = 0;

	ends_open(ends);
	for (int i = 0; i < 2; i++) {
		use_one_cq(&ends[i]);
		end_make_qp(&ends[i]);
	}
	for (int i = 0; i < 2; i++)
		connect_end(ends, i, fixed);
	for (int i = 0; i < 2; i++)
		end_receive(&ends[i], RECEIVE, MESSAGE_BYTES);
	send_message(client);
	while (answers < REQUESTS) {
		answers = run_client(client, answers);
		run_server(server);
	}
	printf("all requests are answered\n");
	ends_close(ends);
	return 0;
}
