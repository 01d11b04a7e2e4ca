/* SPDX-License-Identifier: MIT */
/*
 * usage: phoenix_83 [--fixed]
 * A replay of https://github.com/phoenix-dataplane/phoenix/issues/83. In Rust, post_send() was safe to call,
 * and a program could drop the MR right after it. The adapter may read the buffer by DMA later, when its
 * registration has ended.
 */
#include "ends.h"

#include <stdio.h>

#define MESSAGE_BYTES 4096

static void post(struct end *end, const struct ibv_mr *mr)
{
	struct ibv_sge sge = {(uintptr_t)mr->addr, MESSAGE_BYTES, mr->lkey};
	struct ibv_send_wr wr = {
		.wr_id = 1,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
	};
	struct ibv_send_wr *bad;

	end_need(!ibv_post_send(end->qp, &wr, &bad), "the send cannot be posted"); /* @post */
}

static void drop(struct ibv_mr *mr)
{
	ibv_dereg_mr(mr); /* @drop */
}

int main(int argc, char **argv)
{
	const bool fixed = end_wants_fixed(argc, argv);
	struct end ends[2];
	struct ibv_mr *mr;
	struct ibv_wc wc;

	ends_open(ends);
	ends_connect(ends);
	end_receive(&ends[1], 0, MESSAGE_BYTES);
	mr = ibv_reg_mr(ends[0].pd, ends[0].memory, MESSAGE_BYTES, 0);
	end_need(mr, "the memory cannot be registered");
	post(&ends[0], mr);
	if (!fixed)
		drop(mr);
	wc = end_wait(ends[0].send_cq);
	if (fixed)
		drop(mr);
	printf("the send: %s\n", ibv_wc_status_str(wc.status));
	ends_close(ends);
	return wc.status != IBV_WC_SUCCESS;
}
