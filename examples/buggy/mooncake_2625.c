/* SPDX-License-Identifier: MIT */
/*
 * usage: mooncake_2625 [--fixed]
 * A replay of https://github.com/kvcache-ai/Mooncake/pull/2625. The passive end moved its QP to RTS, answered
 * the handshake, and sent at once. The active end had to read the answer before it could move its own QP to
 * RTR, so the first messages met a QP that was not ready to receive.
 */
#include "ends.h"

#include <stdio.h>

#define MESSAGE_BYTES 64

static void to_rts(struct end ends[2], int self)
{
	struct ibv_qp_attr rtr = end_rtr(&ends[!self]), rts = end_rts();

	end_need(!ibv_modify_qp(ends[self].qp, &rtr, END_RTR_MASK), "RTR");
	end_need(!ibv_modify_qp(ends[self].qp, &rts, END_RTS_MASK), "RTS");
}

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

int main(int argc, char **argv)
{
	const bool fixed = end_wants_fixed(argc, argv);
	struct end ends[2];
	struct end *active = &ends[0], *passive = &ends[1];
	enum ibv_wc_status status;

	ends_open(ends);
	for (int i = 0; i < 2; i++)
		end_make_qp(&ends[i]);
	end_receive(active, 0, MESSAGE_BYTES);
	/* The request of the handshake has come. */
	to_rts(ends, 1);
	if (fixed) {
		to_rts(ends, 0); /* The active end has read the answer, and says so. */
		send_message(passive);
	} else {
		send_message(passive);
		/* The active end is busy: it reads the answer after the send has failed. */
	}
	status = end_wait(passive->send_cq).status;
	printf("the send: %s\n", ibv_wc_status_str(status));
	ends_close(ends);
	return status != IBV_WC_SUCCESS;
}
