/* SPDX-License-Identifier: MIT */
/*
 * usage: fastdeploy_8091 [--fixed]
 * A replay of https://github.com/PaddlePaddle/FastDeploy/pull/8091. When ibv_post_send() failed because the
 * send queue was full, the program posted the list again from its head, and not from *bad_wr. So each try
 * sent the blocks before *bad_wr once more, and filled the queue again.
 */
#include "ends.h"

#include <stdio.h>

#define BLOCKS	    24 /* more than the send queue has slots */
#define BLOCK_BYTES 64
#define TRIES	    7

/* A list of WRITEs, one for each block. */
struct list {
	struct ibv_send_wr wr[BLOCKS];
	struct ibv_sge sge[BLOCKS];
};

static void fill(struct list *list, struct end *from, const struct ibv_mr *target)
{
	for (uint32_t i = 0; i < BLOCKS; i++) {
		list->sge[i] = end_piece(from, i * BLOCK_BYTES, BLOCK_BYTES);
		list->wr[i] = (struct ibv_send_wr){
			.wr_id = i,
			.next = i + 1 < BLOCKS ? &list->wr[i + 1] : NULL,
			.sg_list = &list->sge[i],
			.num_sge = 1,
			.opcode = IBV_WR_RDMA_WRITE,
			.send_flags = IBV_SEND_SIGNALED,
			.wr.rdma = {(uintptr_t)target->addr + (uint64_t)i * BLOCK_BYTES,
				    target->rkey},
		};
	}
}

/* Returns true if the whole list is posted. Counts completions in *done. */
static bool post(struct end *end, struct list *list, int *done, bool fixed)
{
	struct ibv_send_wr *first = list->wr, *bad = NULL;
	struct ibv_wc wc;

	for (int try = 0; try < TRIES; try++) {
		if (!ibv_post_send(end->qp, first, &bad)) /* @post */
			return true;
		if (fixed)
			first = bad;
		/* Some slots become free. */
		wc = end_wait(end->send_cq);
		do
			*done += wc.status == IBV_WC_SUCCESS;
		while (fixed && ibv_poll_cq(end->send_cq, 1, &wc) > 0);
	}
	return false;
}

int main(int argc, char **argv)
{
	const bool fixed = end_wants_fixed(argc, argv);
	struct list list;
	struct end ends[2];
	struct ibv_mr *target;
	int done = 0;
	bool good;

	ends_open(ends);
	ends_connect(ends);
	target = ibv_reg_mr(ends[1].pd, ends[1].memory, BLOCKS * BLOCK_BYTES,
			    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	end_need(target, "the memory cannot be registered");
	fill(&list, &ends[0], target);
	good = post(&ends[0], &list, &done, fixed);
	printf("the list is %sposted\n", good ? "" : "not ");
	for (; good && done < BLOCKS; done++)
		end_need(end_wait(ends[0].send_cq).status == IBV_WC_SUCCESS, "a WRITE has failed");
	ibv_dereg_mr(target);
	ends_close(ends);
	return !good;
}
