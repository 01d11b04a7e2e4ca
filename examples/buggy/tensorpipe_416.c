/* SPDX-License-Identifier: MIT */
/*
 * usage: tensorpipe_416 [--fixed]
 * A replay of https://github.com/pytorch/tensorpipe/pull/416. The opcode of each completion decided whether
 * a send or a receive had ended, also of failed ones, whose opcode is undefined. After a failure the
 * opcode was neither, and an assertion ended the process instead of an error of the connection.
 *
 * tensorpipe reads the opcode from struct ibv_wc, which only Valgrind sees (docs/checks.md). The replay reads
 * it by ibv_wc_read_opcode(), which the sanitizer sees.
 */
#include "ends.h"

#include <stdio.h>

#define MESSAGE_BYTES 64

enum kind { KIND_SEND, KIND_RECEIVE, KINDS };

static unsigned int completions[KINDS];

/* Puts a CQ for both queues, with functions that read fields, into the place of the end's two CQs. */
static struct ibv_cq_ex *replace_cqs(struct end *end)
{
	struct ibv_cq_init_attr_ex attr = {.cqe = 2 * END_DEPTH, .channel = end->channel};
	struct ibv_cq_ex *cq = ibv_create_cq_ex(end->context, &attr);

	end_need(cq, "there is no CQ");
	ibv_destroy_cq(end->send_cq);
	ibv_destroy_cq(end->recv_cq);
	end->send_cq = end->recv_cq = ibv_cq_ex_to_cq(cq);
	return cq;
}

/* Starts a receive and a send, and fails both: the peer has no receive. */
static void fail_works(struct end *end)
{
	struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};
	struct ibv_sge sge = end_piece(end, 0, MESSAGE_BYTES);
	struct ibv_send_wr wr = {
		.wr_id = KIND_SEND,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
	};
	struct ibv_recv_wr receive = {.wr_id = KIND_RECEIVE}, *bad_receive;
	struct ibv_send_wr *bad;

	end_need(!ibv_post_recv(end->qp, &receive, &bad_receive), "the receive");
	end_need(!ibv_post_send(end->qp, &wr, &bad), "the send");
	end_need(!ibv_modify_qp(end->qp, &error, IBV_QP_STATE), "ERR");
}

/* Returns what has ended; KINDS: unknown. */
static enum kind kind_of(struct ibv_cq_ex *cq, bool fixed)
{
	if (fixed) /* The program keeps the kind itself. */
		return (enum kind)cq->wr_id;
	switch (ibv_wc_read_opcode(cq)) { /* @read */
	case IBV_WC_SEND:
		return KIND_SEND;
	case IBV_WC_RECV:
		return KIND_RECEIVE;
	default:
		return KINDS;
	}
}

static void take_completion(struct ibv_cq_ex *cq, bool fixed)
{
	const enum kind kind = kind_of(cq, fixed);

	if (kind == KINDS)
		printf("a completion of no known kind\n"); /* tensorpipe aborts. */
	else
		completions[kind]++;
}

static void take_completions(struct ibv_cq_ex *cq, bool fixed)
{
	struct ibv_poll_cq_attr attr = {0};
	int err = ibv_start_poll(cq, &attr); /* @poll */

	end_need(!err, "there is no completion");
	while (!err) {
		take_completion(cq, fixed);
		err = ibv_next_poll(cq); /* @next */
	}
	ibv_end_poll(cq);
}

int main(int argc, char **argv)
{
	const bool fixed = end_wants_fixed(argc, argv);
	struct end ends[2];
	struct ibv_cq_ex *cq;

	ends_open(ends);
	cq = replace_cqs(&ends[0]);
	ends_connect(ends);
	fail_works(&ends[0]);
	take_completions(cq, fixed);
	printf("%u sends and %u receives have ended\n", completions[KIND_SEND],
	       completions[KIND_RECEIVE]);
	ends_close(ends);
	return 0;
}
