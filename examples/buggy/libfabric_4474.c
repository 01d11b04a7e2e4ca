/* SPDX-License-Identifier: MIT */
/*
 * usage: libfabric_4474 [--fixed]
 * A replay of https://github.com/ofiwg/libfabric/pull/4474. The patch did not set sq_sig_all any more, so that
 * an application that wants no completions gets none. The review found what it breaks: without a signalled
 * work request from time to time, no slot of the send queue becomes free, and the queue is full for ever.
 */
#include "ends.h"

#include <stdio.h>
#include <string.h>

#define UPDATES	     40 /* more than the send queue has slots */
#define UPDATE_BYTES 8

static bool post_update(struct end *end, const struct ibv_mr *target, bool signalled)
{
	struct ibv_sge sge = end_piece(end, 0, UPDATE_BYTES);
	struct ibv_send_wr wr = {
		.wr_id = 1,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = signalled ? IBV_SEND_SIGNALED : 0,
		.wr.rdma = {(uintptr_t)target->addr, target->rkey},
	};
	struct ibv_send_wr *bad;

	return !ibv_post_send(end->qp, &wr, &bad); /* @post */
}

/* Writes updates that nobody waits for. Returns how many were posted. */
static int update(struct end *end, const struct ibv_mr *target, bool fixed)
{
	for (int i = 0; i < UPDATES; i++) {
		/* Fixed: the last one of each round is signalled, and its completion frees all slots. */
		const bool last = fixed && i % END_DEPTH == END_DEPTH - 1;

		if (!post_update(end, target, last))
			return i;
		if (last)
			end_need(end_wait(end->send_cq).status == IBV_WC_SUCCESS, "WRITE");
	}
	return UPDATES;
}

int main(int argc, char **argv)
{
	const bool fixed = end_wants_fixed(argc, argv);
	struct end ends[2];
	struct ibv_mr *target;
	int posted;

	ends_open(ends);
	ends_connect(ends);
	target = ibv_reg_mr(ends[1].pd, ends[1].memory, UPDATE_BYTES,
			    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	end_need(target, "the memory cannot be registered");
	posted = update(&ends[0], target, fixed);
	printf("%d of %d updates are posted\n", posted, UPDATES);
	ibv_dereg_mr(target);
	ends_close(ends);
	return posted < UPDATES;
}
