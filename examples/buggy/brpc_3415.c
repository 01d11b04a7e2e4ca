/* SPDX-License-Identifier: MIT */
/*
 * usage: brpc_3415 [--fixed]
 * A replay of https://github.com/apache/brpc/issues/3415. PollCq() found both CQs empty, armed both, and
 * polled only the CQ of sends again. A message that came between the last poll of the CQ of receives and
 * its arming raised no event, so it stayed there until its RPC had timed out.
 *
 * On the real clock the program waits for ever; `verbena run --clock virtual` ends the wait.
 */
#include "ends.h"

#include <stdio.h>

#define MESSAGE_BYTES 64

static void send_message(struct end *client)
{
	struct ibv_sge sge = end_piece(client, 0, MESSAGE_BYTES);
	struct ibv_send_wr wr = {
		.wr_id = 1,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED | IBV_SEND_SOLICITED,
	};
	struct ibv_send_wr *bad;

	end_need(!ibv_post_send(client->qp, &wr, &bad), "the send cannot be posted");
	end_need(end_wait(client->send_cq).status == IBV_WC_SUCCESS, "the send has failed");
}

/* Takes all completions of the CQ. Returns how many there were. */
static int empty_cq(struct ibv_cq *cq)
{
	struct ibv_wc wc;
	int count = 0;

	while (ibv_poll_cq(cq, 1, &wc) > 0)
		count++;
	return count;
}

static void arm(struct end *server)
{
	end_need(!ibv_req_notify_cq(server->recv_cq, 1), "the CQ cannot be armed"); /* @arm */
	end_need(!ibv_req_notify_cq(server->send_cq, 0), "the CQ cannot be armed");
}

/* Returns false if no event comes. */
static bool wait_for_event(struct end *server)
{
	struct ibv_cq *cq;
	void *context;

	if (ibv_get_cq_event(server->channel, &cq, &context)) /* @wait */
		return false;
	ibv_ack_cq_events(cq, 1);
	return true;
}

/* Serves until there were so many messages. Between the polls and the arming comes the client's message. */
static void serve(struct end *server, struct end *client, int wanted, bool fixed)
{
	int count = 0;

	for (;;) {
		count += empty_cq(server->recv_cq);
		empty_cq(server->send_cq);
		send_message(client);
		arm(server);
		if (fixed)
			count += empty_cq(server->recv_cq);
		empty_cq(server->send_cq);
		if (count >= wanted)
			break;
		if (!wait_for_event(server)) {
			printf("the server waits, and its CQ has a message\n");
			return;
		}
	}
	printf("the server has all messages\n");
}

int main(int argc, char **argv)
{
	const bool fixed = end_wants_fixed(argc, argv);
	struct end ends[2];
	struct end *client = &ends[0], *server = &ends[1];

	ends_open(ends);
	ends_connect(ends);
	for (uint32_t i = 0; i < 4; i++)
		end_receive(server, i * MESSAGE_BYTES, MESSAGE_BYTES);
	send_message(client);
	serve(server, client, 2, fixed);
	ends_close(ends);
	return 0;
}
