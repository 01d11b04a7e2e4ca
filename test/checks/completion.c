/* SPDX-License-Identifier: MIT */
/* Fields of failed completions. */
#include "pair.h"

#include <arpa/inet.h>
#include <errno.h>

static const struct plan plan = {0};

/* Fails a send whose peer is gone, after one that has succeeded. */
static struct ibv_wc fail(void)
{
	struct ibv_wc wc;

	connect_ends(&plan);
	receive(there, 8);
	post(here, IBV_WR_SEND, 6);
	need(wait_for(here).status == IBV_WC_SUCCESS, "the send has failed");
	ibv_destroy_qp(there->qp);
	there->qp = NULL;
	post(here, IBV_WR_SEND, 7);
	wc = wait_for(here);
	need(wc.status == IBV_WC_RETRY_EXC_ERR && wc.wr_id == 7 && wc.qp_num == here->qp->qp_num,
	     "the send has not failed");
	return wc;
}

static struct ibv_wc succeed(void)
{
	connect_ends(&plan);
	receive(there, 8);
	post(here, IBV_WR_SEND_WITH_IMM, 7);
	wait_for(here);
	return wait_for(there);
}

static void send_with(uint64_t wr_id, uint32_t length, uint32_t imm)
{
	struct ibv_sge sge = piece(here, 0, length);
	struct ibv_send_wr wr = {
		.wr_id = wr_id, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND_WITH_IMM};
	struct ibv_send_wr *bad;

	wr.imm_data = imm;
	wr.send_flags = IBV_SEND_SIGNALED;
	ibv_post_send(here->qp, &wr, &bad); /* @send-with */
}

static void receive_with(struct ibv_sge *sge, uint64_t wr_id)
{
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = sge, .num_sge = 1}, *bad;

	ibv_post_recv(here->qp, &wr, &bad); /* @receive-with */
}

static void length(void)
{
	send_with(9, fail().byte_len, 0);
	wait_for(here);
	close_ends();
}

static void length_kept(void)
{
	const struct ibv_wc wc = succeed();

	send_with(9, wc.byte_len, 0);
	close_ends();
}

static void immediate(void)
{
	const uint32_t imm = ntohl(fail().imm_data);

	send_with(9, 64, imm);
	wait_for(here);
	close_ends();
}

static void immediate_kept(void)
{
	const struct ibv_wc wc = succeed();

	send_with(9, 64, ntohl(wc.imm_data));
	send_with(9, 64, wc.imm_data);
	close_ends();
}

/* The identifier of a receive. */
static void identifier(void)
{
	const struct ibv_wc wc = fail();
	struct ibv_sge sge = piece(here, 0, 64);

	receive_with(&sge, wc.imm_data);
	wait_for(here);
	close_ends();
}

/* A failed completion has these fields. */
static void identifier_kept(void)
{
	const struct ibv_wc wc = fail();
	struct ibv_sge sge = piece(here, 0, 64);

	receive_with(&sge, wc.wr_id);
	receive_with(&sge, wc.qp_num);
	receive_with(&sge, wc.vendor_err);
	receive_with(&sge, wc.status);
	for (int i = 0; i < 4; i++)
		wait_for(here);
	close_ends();
}

/* A send of another QP, which has not failed. It is refused, since the QP is not connected. */
static void send_elsewhere(uint64_t wr_id)
{
	struct ibv_qp_init_attr init = {
		.send_cq = there->cq,
		.recv_cq = there->cq,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_sge sge = piece(there, 0, 64);
	struct ibv_send_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad;

	there->qp = ibv_create_qp(there->pd, &init);
	need(there->qp != NULL, "QP");
	need(ibv_post_send(there->qp, &wr, &bad) == EINVAL, "refusal"); /* @send-elsewhere */
	close_ends();
}

static void elsewhere(void)
{
	send_elsewhere(fail().byte_len);
}

static void elsewhere_kept(void)
{
	send_elsewhere(fail().wr_id);
}

/* --- struct ibv_cq_ex --- */

static struct ibv_cq_ex *open_extended(void)
{
	struct ibv_cq_init_attr_ex attr = {.cqe = 16,
					   .wc_flags = IBV_WC_EX_WITH_BYTE_LEN |
						       IBV_WC_EX_WITH_IMM | IBV_WC_EX_WITH_QP_NUM};
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC, .cap = {DEPTH, DEPTH, 2, 2, 64}};
	struct ibv_cq_ex *cq;

	open_ends(&plan);
	cq = ibv_create_cq_ex(here->context, &attr);
	need(cq != NULL, "CQ");
	init.send_cq = init.recv_cq = ibv_cq_ex_to_cq(cq);
	ibv_destroy_qp(here->qp);
	here->qp = ibv_create_qp(here->pd, &init);
	for (int i = 0; i < 2; i++) {
		struct ibv_qp_attr rtr = rtr_attr(&ends[!i]), rts = rts_attr();

		to_init(&ends[i], &plan);
		to_rtr(&ends[i], &rtr);
		to_rts(&ends[i], &rts);
	}
	return cq;
}

static void start(struct ibv_cq_ex *cq)
{
	struct ibv_poll_cq_attr attr = {0};
	int err;

	do
		err = ibv_start_poll(cq, &attr); /* @start-poll */
	while (err == ENOENT);
	need(!err, "poll");
}

static void extended(int reads)
{
	struct ibv_cq_ex *cq = open_extended();

	receive(there, 8);
	post(here, IBV_WR_SEND, 6);
	start(cq);
	need(cq->status == IBV_WC_SUCCESS && ibv_wc_read_opcode(cq) == IBV_WC_SEND, "the send");
	ibv_end_poll(cq);
	ibv_destroy_qp(there->qp);
	there->qp = NULL;
	post(here, IBV_WR_SEND, 7);
	start(cq);
	need(cq->status == IBV_WC_RETRY_EXC_ERR && cq->wr_id == 7 &&
		     ibv_wc_read_qp_num(cq) == here->qp->qp_num,
	     "the send has not failed");
	ibv_wc_read_vendor_err(cq);
	if (reads) {
		ibv_wc_read_opcode(cq);	  /* @read-opcode */
		ibv_wc_read_byte_len(cq); /* @read-byte-len */
	}
	ibv_end_poll(cq);
	ibv_destroy_qp(here->qp);
	here->qp = NULL;
	ibv_destroy_cq(ibv_cq_ex_to_cq(cq));
	close_ends();
}

static void extended_read(void)
{
	extended(1);
}

static void extended_read_kept(void)
{
	extended(0);
}

static const struct mode modes[] = {
	{"failed-length", length},
	{"failed-length-kept", length_kept},
	{"failed-immediate", immediate},
	{"failed-immediate-kept", immediate_kept},
	{"failed-identifier", identifier},
	{"failed-identifier-kept", identifier_kept},
	{"failed-elsewhere", elsewhere},
	{"failed-elsewhere-kept", elsewhere_kept},
	{"failed-read", extended_read},
	{"failed-read-kept", extended_read_kept},
	{0},
};

int main(int argc, char **argv)
{
	return run_mode(argc, argv, modes);
}
