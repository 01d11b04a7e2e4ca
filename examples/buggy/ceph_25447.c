/* SPDX-License-Identifier: MIT */
/*
 * usage: ceph_25447 [--fixed]
 * A replay of https://github.com/ceph/ceph/pull/25447. A QP was destroyed while work was in flight. Only a QP
 * in ERR gives back the completions of all its work. Fixed: the program moves the QP to ERR, posts a last work
 * request, and destroys the QP after the completion of that one, which comes last.
 */
#include "ends.h"

#include <stdio.h>

#define CHUNKS	    4
#define CHUNK_BYTES 64
#define LAST	    CHUNKS /* the wr_id of the last work request */

/* Sends a chunk of the pool that all connections share; LAST: sends nothing. */
static void send_chunk(struct end *end, uint32_t chunk)
{
	struct ibv_sge sge = end_piece(end, chunk * CHUNK_BYTES, CHUNK_BYTES);
	struct ibv_send_wr wr = {
		.wr_id = chunk,
		.sg_list = &sge,
		.num_sge = chunk < CHUNKS,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
	};
	struct ibv_send_wr *bad;

	end_need(!ibv_post_send(end->qp, &wr, &bad), "the send cannot be posted"); /* @send */
}

/* Ends the connection: its chunks are free then. Returns how many completions there were. */
static int disconnect(struct end *end, bool fixed)
{
	struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};
	int count = 0;

	if (fixed) {
		end_need(!ibv_modify_qp(end->qp, &error, IBV_QP_STATE), "ERR");
		send_chunk(end, LAST);
		while (end_wait(end->send_cq).wr_id != LAST)
			count++;
	}
	ibv_destroy_qp(end->qp); /* @destroy */
	return count;
}

int main(int argc, char **argv)
{
	const bool fixed = end_wants_fixed(argc, argv);
	struct end ends[2];

	ends_open(ends);
	ends_connect(ends);
	for (uint32_t i = 0; i < CHUNKS; i++)
		send_chunk(&ends[0], i);
	printf("%d of %d sends have completed\n", disconnect(&ends[0], fixed), CHUNKS);
	ibv_destroy_qp(ends[1].qp);

	/* The next connection takes the same chunks. */
	ends_connect(ends);
	end_receive(&ends[1], 0, CHUNK_BYTES);
	send_chunk(&ends[0], 0);
	end_need(end_wait(ends[0].send_cq).status == IBV_WC_SUCCESS, "a send has failed");
	printf("the next connection works\n");
	ends_close(ends);
	return 0;
}
