/* SPDX-License-Identifier: MIT */
/*
 * usage: rccl_1374 [--fixed]
 * A replay of https://github.com/ROCm/rccl/pull/1374. A request to receive has up to three completions: two of
 * sends, and one of the receive. All go to one CQ, which had entries for two of each request. If the program
 * polls late, the CQ overruns: completions are lost, and the QP goes to ERR.
 */
#include "ends.h"

#include <stdio.h>

#define REQUESTS    8 /* in flight at most */
#define ENTRY_BYTES 32
#define POLLS	    1000

/* Puts one CQ into the place of the end's two CQs. */
static void share_cq(struct end *end, int entries)
{
	ibv_destroy_cq(end->send_cq);
	ibv_destroy_cq(end->recv_cq);
	end->send_cq = ibv_create_cq(end->context, entries, NULL, NULL, 0); /* @create */
	end->recv_cq = end->send_cq;
	end_need(end->send_cq, "there is no CQ");
}

static void send_entry(struct end *end, uint32_t offset)
{
	struct ibv_sge sge = end_piece(end, offset, ENTRY_BYTES);
	struct ibv_send_wr wr = {
		.wr_id = offset,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
	};
	struct ibv_send_wr *bad;

	end_need(!ibv_post_send(end->qp, &wr, &bad), "the send cannot be posted"); /* @send */
}

/* Posts the receive for the data, and tells the peer in two sends where the data goes. */
static void request(struct end *end, uint32_t number)
{
	const uint32_t offset = 3 * number * ENTRY_BYTES;

	end_receive(end, offset, ENTRY_BYTES);
	send_entry(end, offset + ENTRY_BYTES);
	send_entry(end, offset + 2 * ENTRY_BYTES);
}

/* Polls until so many work requests have completed with success. Returns how many have; the others are lost. */
static unsigned int take(struct end *end, unsigned int count)
{
	struct ibv_wc wc[3 * REQUESTS];
	unsigned int good = 0;

	for (int polls = 0; good < count && polls < POLLS; polls++) {
		const int found = ibv_poll_cq(end->send_cq, 3 * REQUESTS, wc);

		for (int i = 0; i < found; i++)
			good += wc[i].status == IBV_WC_SUCCESS;
	}
	return good;
}

int main(int argc, char **argv)
{
	const bool fixed = end_wants_fixed(argc, argv);
	struct end ends[2];
	struct end *end = &ends[0], *peer = &ends[1];
	unsigned int done;

	ends_open(ends);
	share_cq(end, (fixed ? 3 : 2) * REQUESTS);
	ends_connect(ends);
	for (uint32_t i = 0; i < 2 * REQUESTS; i++)
		end_receive(peer, i * ENTRY_BYTES, ENTRY_BYTES);
	for (uint32_t i = 0; i < REQUESTS; i++)
		request(end, i);
	/* The peer answers all requests before the program polls. */
	for (uint32_t i = 0; i < 2 * REQUESTS; i++)
		end_wait(peer->recv_cq);
	for (uint32_t i = 0; i < REQUESTS; i++)
		send_entry(peer, i * ENTRY_BYTES);
	for (uint32_t i = 0; i < REQUESTS; i++)
		end_wait(peer->send_cq);
	done = take(end, 3 * REQUESTS);
	printf("%u of %d completions\n", done, 3 * REQUESTS);
	ends_close(ends);
	return done < 3 * REQUESTS;
}
