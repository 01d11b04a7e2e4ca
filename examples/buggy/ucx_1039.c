/* SPDX-License-Identifier: MIT */
/*
 * usage: ucx_1039 [--fixed]
 * A replay of https://github.com/openucx/ucx/issues/1039. Two CQs had one channel. The program got the events
 * of both in a loop, and acknowledged their number at the CQ of the last event. The other CQ kept an event
 * without acknowledgement, so ibv_destroy_cq() waited for ever when the worker ended.
 *
 * On the real clock the program waits for ever; `verbena run --clock virtual` ends the wait.
 */
#include "ends.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#define MESSAGE_BYTES 64

static void send_message(struct end *from)
{
	struct ibv_sge sge = end_piece(from, 0, MESSAGE_BYTES);
	struct ibv_send_wr wr = {
		.wr_id = 1,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
	};
	struct ibv_send_wr *bad;

	end_need(!ibv_post_send(from->qp, &wr, &bad), "the send cannot be posted");
}

/* Takes all events of the channel. Returns how many there were. */
static unsigned int take_events(struct end *end, bool fixed)
{
	struct ibv_cq *cq, *last = NULL;
	unsigned int count = 0;
	void *context;

	while (!ibv_get_cq_event(end->channel, &cq, &context)) { /* @get */
		last = cq;
		count++;
		if (fixed)
			ibv_ack_cq_events(cq, 1);
	}
	if (count && !fixed)
		ibv_ack_cq_events(last, count); /* @acknowledge */
	return count;
}

int main(int argc, char **argv)
{
	const bool fixed = end_wants_fixed(argc, argv);
	struct end ends[2];
	struct end *end = &ends[0], *peer = &ends[1];

	ends_open(ends);
	ends_connect(ends);
	fcntl(end->channel->fd, F_SETFL, fcntl(end->channel->fd, F_GETFL) | O_NONBLOCK);
	end_need(!ibv_req_notify_cq(end->send_cq, 0), "the CQ of sends cannot be armed");
	end_need(!ibv_req_notify_cq(end->recv_cq, 0), "the CQ of receives cannot be armed");
	for (int i = 0; i < 2; i++) {
		end_receive(&ends[i], MESSAGE_BYTES, MESSAGE_BYTES);
		send_message(&ends[!i]);
	}
	end_wait(end->recv_cq);
	end_wait(end->send_cq);
	end_wait(peer->recv_cq);
	printf("%u events\n", take_events(end, fixed));
	ends_close(ends);
	printf("the connection is closed\n");
	return 0;
}
