/* SPDX-License-Identifier: MIT */
/*
 * usage: lci_24 [--fixed]
 * A replay of https://github.com/uiuc-hpc/lci/issues/24. Without its debug mode, the library did not check
 * whether a send had failed, and could not tell its caller. Under load, sends failed because the send queue was
 * full, and the caller took them for sent.
 *
 * A test with few messages passes. The receiver waits for ever when a post fails.
 */
#include "ends.h"

#include <stdio.h>

#define MESSAGES      12
#define MESSAGE_BYTES 64

static int in_flight;

static bool post(struct end *end)
{
	struct ibv_sge sge = end_piece(end, 0, MESSAGE_BYTES);
	struct ibv_send_wr wr = {
		.wr_id = 1,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
	};
	struct ibv_send_wr *bad;
	const int err = ibv_post_send(end->qp, &wr, &bad); /* @post */

	in_flight += !err;
	return !err;
}

/* Waits for the completion of a send, if one is in flight. */
static void make_room(struct end *end)
{
	if (!in_flight)
		return;
	end_need(end_wait(end->send_cq).status == IBV_WC_SUCCESS, "a send has failed");
	in_flight--;
}

static void send_message(struct end *end, bool fixed)
{
	if (!fixed) {
		post(end);
		return;
	}
	if (in_flight == END_DEPTH)
		make_room(end);
	while (!post(end))
		make_room(end);
}

/* Returns false if no message comes. */
static bool take(struct end *end)
{
	struct ibv_cq *cq = end->recv_cq;
	struct ibv_wc wc;
	void *context;

	while (ibv_poll_cq(cq, 1, &wc) < 1) {
		end_need(!ibv_req_notify_cq(cq, 0), "the CQ cannot be armed");
		if (ibv_poll_cq(cq, 1, &wc) > 0)
			break;
		if (ibv_get_cq_event(end->channel, &cq, &context))
			return false;
		ibv_ack_cq_events(cq, 1);
	}
	end_need(wc.status == IBV_WC_SUCCESS, "a receive has failed");
	return true;
}

int main(int argc, char **argv)
{
	const bool fixed = end_wants_fixed(argc, argv);
	struct end ends[2];
	int count = 0;

	ends_open(ends);
	ends_connect(ends);
	for (uint32_t i = 0; i < END_DEPTH; i++)
		end_receive(&ends[1], i * MESSAGE_BYTES, MESSAGE_BYTES);
	for (int i = 0; i < MESSAGES; i++)
		send_message(&ends[0], fixed);
	for (; count < MESSAGES && take(&ends[1]); count++)
		end_receive(&ends[1], 0, MESSAGE_BYTES);
	printf("%d messages are sent, and %d have come\n", MESSAGES, count);
	while (in_flight)
		make_room(&ends[0]);
	ends_close(ends);
	return count < MESSAGES;
}
