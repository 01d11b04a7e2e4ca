/* SPDX-License-Identifier: MIT */
/*
 * usage: mooncake_1567 [--fixed]
 * A replay of https://github.com/kvcache-ai/Mooncake/pull/1567. sendNotification() wrote each notification
 * into one send buffer, and counted only how many sends were in flight. So a notification could be
 * overwritten while the adapter was still reading it, and the peer received corrupted bytes.
 */
#include "ends.h"

#include <stdio.h>
#include <string.h>

#define NOTIFICATIONS	   4
#define NOTIFICATION_BYTES 64

/* The peer finds out what it has received. */
static void print_received(struct end *receiver)
{
	for (int i = 0; i < NOTIFICATIONS; i++) {
		struct ibv_wc wc = end_wait(receiver->recv_cq);

		end_need(wc.status == IBV_WC_SUCCESS, "a receive has failed");
		printf("received: %s\n", receiver->memory + wc.wr_id);
	}
}

static void notify(struct end *sender, unsigned int number, bool fixed)
{
	/* Fixed: a ring of buffers. No more sends are in flight than the ring has buffers. */
	const uint32_t offset = fixed ? number % NOTIFICATIONS * NOTIFICATION_BYTES : 0;
	struct ibv_sge sge = end_piece(sender, offset, NOTIFICATION_BYTES);
	struct ibv_send_wr wr = {
		.wr_id = number,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
	};
	struct ibv_send_wr *bad;

	snprintf(sender->memory + offset, NOTIFICATION_BYTES, "notification %u", number);
	end_need(!ibv_post_send(sender->qp, &wr, &bad), "the send cannot be posted"); /* @notify */
}

int main(int argc, char **argv)
{
	const bool fixed = end_wants_fixed(argc, argv);
	struct end ends[2];

	ends_open(ends);
	ends_connect(ends);
	for (uint32_t i = 0; i < NOTIFICATIONS; i++)
		end_receive(&ends[1], i * NOTIFICATION_BYTES, NOTIFICATION_BYTES);
	for (unsigned int i = 0; i < NOTIFICATIONS; i++)
		notify(&ends[0], i, fixed);
	for (unsigned int i = 0; i < NOTIFICATIONS; i++)
		end_need(end_wait(ends[0].send_cq).status == IBV_WC_SUCCESS, "a send has failed");
	print_received(&ends[1]);
	ends_close(ends);
	return 0;
}
