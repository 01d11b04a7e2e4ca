/* SPDX-License-Identifier: MIT */
/*
 * usage: nbs_5790 [--fixed]
 * A replay of https://github.com/ydb-platform/nbs/issues/5790. The client had more requests in flight than
 * the server had receives, retried them without end, and the server's min_rnr_timer was 0, which is the
 * longest wait, 655 ms. Requests took up to 5 seconds, and no verb failed: 700 a second instead of 200,000.
 */
#include "ends.h"

#include <stdio.h>

#define REQUESTS      16
#define IO_DEPTH      8 /* requests in flight */
#define RECEIVES      2 /* of the server */
#define REQUEST_BYTES 64
#define RNR_640_US    12

/* Counts the client's requests. */
struct load {
	unsigned int posted, completed;
};

static void connect_end(struct end ends[2], int self, bool fixed)
{
	struct ibv_qp_attr rtr = end_rtr(&ends[!self]), rts = end_rts();

	/* rdma_cm leaves the timer at 0. */
	rtr.min_rnr_timer = fixed ? RNR_640_US : 0;
	rts.rnr_retry = 7;						    /* without end */
	end_need(!ibv_modify_qp(ends[self].qp, &rtr, END_RTR_MASK), "RTR"); /* @rtr */
	end_need(!ibv_modify_qp(ends[self].qp, &rts, END_RTS_MASK), "RTS"); /* @rts */
}

static void request(struct end *client, unsigned int number)
{
	struct ibv_sge sge = end_piece(client, number * REQUEST_BYTES, REQUEST_BYTES);
	struct ibv_send_wr wr = {
		.wr_id = number,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
	};
	struct ibv_send_wr *bad;

	end_need(!ibv_post_send(client->qp, &wr, &bad), "the send cannot be posted"); /* @send */
}

/* Posts requests until so many are in flight. */
static void fill(struct end *client, struct load *load)
{
	struct ibv_wc wc[IO_DEPTH];
	int count = ibv_poll_cq(client->send_cq, IO_DEPTH, wc);

	end_need(count >= 0, "the CQ cannot be polled");
	for (int i = 0; i < count; i++)
		end_need(wc[i].status == IBV_WC_SUCCESS, "a send has failed");
	load->completed += (unsigned int)count;
	while (load->posted < REQUESTS && load->posted - load->completed < IO_DEPTH)
		request(client, load->posted++ % IO_DEPTH);
}

/* The server takes the requests that have come, and posts their receives again when it has served them.
 * Meanwhile the client posts more. Returns how many requests there were. */
static unsigned int serve(struct end *server, struct end *client, struct load *load)
{
	struct ibv_wc wc[RECEIVES] = {end_wait(server->recv_cq)};
	int count = 1 + ibv_poll_cq(server->recv_cq, RECEIVES - 1, wc + 1);

	fill(client, load);
	for (int i = 0; i < count; i++)
		end_receive(server, (uint32_t)wc[i].wr_id, REQUEST_BYTES);
	return (unsigned int)count;
}

int main(int argc, char **argv)
{
	const bool fixed = end_wants_fixed(argc, argv);
	struct end ends[2];
	struct end *client = &ends[0], *server = &ends[1];
	struct load load = {0};
	unsigned int served = 0;

	ends_open(ends);
	for (int i = 0; i < 2; i++)
		end_make_qp(&ends[i]);
	for (uint32_t i = 0; i < RECEIVES; i++)
		end_receive(server, i * REQUEST_BYTES, REQUEST_BYTES);
	for (int i = 0; i < 2; i++)
		connect_end(ends, i, fixed);
	fill(client, &load);
	while (served < REQUESTS)
		served += serve(server, client, &load);
	while (load.completed < REQUESTS)
		fill(client, &load);
	printf("the server has all requests\n");
	ends_close(ends);
	return 0;
}
