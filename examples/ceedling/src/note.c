/* SPDX-License-Identifier: MIT */
#include "note.h"

#include <stdint.h>
#include <stdio.h>

static char *out(const struct note_box *box)
{
	return box->mr->addr;
}

static char *in(const struct note_box *box)
{
	return (char *)box->mr->addr + NOTE_BYTES;
}

static enum ibv_wc_status wait_for(struct ibv_cq *cq)
{
	struct ibv_wc wc;
	int taken;

	do
		taken = ibv_poll_cq(cq, 1, &wc);
	while (!taken);
	return taken < 0 ? IBV_WC_FATAL_ERR : wc.status;
}

int note_expect(const struct note_box *box)
{
	struct ibv_sge sge = {(uintptr_t)in(box), NOTE_BYTES, box->mr->lkey};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

	return ibv_post_recv(box->qp, &wr, &bad);
}

enum ibv_wc_status note_send(const struct note_box *box, const char *text)
{
	struct ibv_sge sge = {(uintptr_t)out(box), NOTE_BYTES, box->mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_SIGNALED},
			   *bad;

	snprintf(out(box), NOTE_BYTES, "%s", text);
	if (ibv_post_send(box->qp, &wr, &bad))
		return IBV_WC_FATAL_ERR;
	return wait_for(box->qp->send_cq);
}

const char *note_take(const struct note_box *box)
{
	return wait_for(box->qp->recv_cq) == IBV_WC_SUCCESS ? in(box) : NULL;
}
