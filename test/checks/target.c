/* SPDX-License-Identifier: MIT */
/* Buffers of receives that the program writes to before the completion, at bytes that no message changes. */
#include "pair.h"

#define TAIL (MEMORY_BYTES / 2 + 60) /* an offset in the buffer of receive() */

static const struct plan plan = {.access = IBV_ACCESS_LOCAL_WRITE};
static const struct plan remote = {0};

static void send_bytes(struct end *end, uint32_t length, enum ibv_wr_opcode opcode)
{
	const struct end *peer = end == here ? there : here;
	struct ibv_sge sge = piece(end, 0, length);
	struct ibv_send_wr wr = {.wr_id = 7,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = opcode,
				 .send_flags = IBV_SEND_SIGNALED,
				 .wr.rdma = {(uintptr_t)peer->memory + TAIL - 4, peer->mr->rkey}};
	struct ibv_send_wr *bad;

	need(!ibv_post_send(end->qp, &wr, &bad), "send"); /* @send */
}

/* Two messages, so that the second receive is of a QP with traffic. */
static void tail_of(const struct plan *how, int early)
{
	connect_ends(how);
	memset(here->memory, 0x11, 64);
	for (int i = 0; i < 2; i++) {
		receive(there, (uint64_t)i);
		if (i && early)
			there->memory[TAIL] = 1;
		send_bytes(here, 16, IBV_WR_SEND);
		wait_for(here);
		wait_for(there);
		if (!early)
			there->memory[TAIL] = (char)i;
	}
	close_ends();
}

static void tail(void)
{
	tail_of(&plan, 1);
}

/* The peer of the last one may have written there. */
static void tail_kept(void)
{
	tail_of(&plan, 0);
	tail_of(&remote, 1);
}

static void datagram_of(int early)
{
	static const struct plan datagrams = {.type = IBV_QPT_UD, .access = IBV_ACCESS_LOCAL_WRITE};
	struct ibv_ah_attr path;
	struct ibv_sge sge;
	struct ibv_send_wr wr = {.wr_id = 7, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND};
	struct ibv_send_wr *bad;

	connect_ends(&datagrams);
	path = path_to(there);
	sge = piece(here, 0, 8);
	wr.send_flags = IBV_SEND_SIGNALED;
	wr.wr.ud.ah = ibv_create_ah(here->pd, &path);
	wr.wr.ud.remote_qpn = there->qp->qp_num;
	wr.wr.ud.remote_qkey = QKEY;
	wr.wr.ud.remote_qkey = 0x11111111;
	receive(there, 8);
	if (early)
		there->memory[TAIL] = 1;
	need(!ibv_post_send(here->qp, &wr, &bad), "send");
	wait_for(here);
	need(wait_for(there).byte_len == GRH_BYTES + 8, "no datagram");
	there->memory[TAIL] = 2;
	ibv_destroy_ah(wr.wr.ud.ah);
	close_ends();
}

/* 48 of 64 bytes are those of the datagram; the last 32 are watched. */
static void shorter_of(int early)
{
	struct ibv_sge sge;
	struct ibv_recv_wr wr = {.wr_id = 8, .sg_list = &sge, .num_sge = 1}, *bad;

	connect_ends(&plan);
	sge = piece(there, 0, 8192);
	need(!ibv_post_recv(there->qp, &wr, &bad), "receive"); /* @receive-long */
	there->memory[early ? 8191 : 100] = 1;
	send_bytes(here, 128, IBV_WR_SEND);
	wait_for(here);
	wait_for(there);
	close_ends();
}

static void shorter(void)
{
	shorter_of(1);
}

/* A message is over the bytes, and the datagram ends within those that are watched. */
static void shorter_kept(void)
{
	shorter_of(0);
	datagram_of(1);
	datagram_of(0);
}

/* A message with RDMA WRITE changes no buffer of the receive. */
static void immediate_of(int early)
{
	static const struct plan writes = {.access = IBV_ACCESS_LOCAL_WRITE |
						     IBV_ACCESS_REMOTE_WRITE};
	struct ibv_mr *own;
	struct ibv_sge sge;
	struct ibv_recv_wr wr = {.wr_id = 8, .sg_list = &sge, .num_sge = 1}, *bad;
	char *memory = calloc(1, 64);

	connect_ends(&writes);
	own = ibv_reg_mr(there->pd, memory, 64, IBV_ACCESS_LOCAL_WRITE);
	sge = (struct ibv_sge){(uintptr_t)memory, 64, own->lkey};
	need(!ibv_post_recv(there->qp, &wr, &bad), "receive"); /* @receive-own */
	if (early)
		memory[40] = 1;
	send_bytes(here, 64, IBV_WR_RDMA_WRITE_WITH_IMM);
	wait_for(here);
	wait_for(there);
	memory[40] = 2;
	ibv_destroy_qp(there->qp);
	there->qp = NULL;
	ibv_dereg_mr(own);
	close_ends();
	free(memory);
}

static void immediate(void)
{
	immediate_of(1);
}

static void immediate_kept(void)
{
	immediate_of(0);
}

/* Adapters write to the end of the first buffer for the second receive, and for a READ. */
static void shared_kept(void)
{
	connect_ends(&remote);
	memset(here->memory, 0x22, 128);
	receive(there, 1);
	receive(there, 2);
	send_bytes(here, 16, IBV_WR_SEND);
	send_bytes(here, 64, IBV_WR_SEND);
	wait_for(here);
	wait_for(here);
	wait_for(there);
	wait_for(there);
	close_ends();

	connect_ends(&plan);
	memset(here->memory, 0x22, 128);
	receive(there, 1);
	receive(there, 2);
	send_bytes(here, 64, IBV_WR_SEND);
	send_bytes(here, 16, IBV_WR_SEND);
	for (int i = 0; i < 2; i++) {
		wait_for(here);
		wait_for(there);
	}
	close_ends();
}

/* --- a QP that is not ready to receive --- */

static void init_to(enum ibv_qp_state state, int early)
{
	struct ibv_qp_attr attr = {.qp_state = state};

	open_ends(&plan);
	to_init(there, &plan);
	to_init(here, &plan);
	there->memory[TAIL] = 1;
	receive(there, 8);
	if (early)
		there->memory[TAIL - 60] = 1;
	if (state == IBV_QPS_RTR) {
		attr = rtr_attr(here);
		to_rtr(there, &attr);
	} else {
		need(!ibv_modify_qp(there->qp, &attr, IBV_QP_STATE), "modify"); /* @modify */
	}
	there->memory[TAIL - 60] = 2;
	close_ends();
}

static void before_rtr(void)
{
	init_to(IBV_QPS_RTR, 1);
}

static void before_rtr_kept(void)
{
	init_to(IBV_QPS_RTR, 0);
}

static void before_err(void)
{
	init_to(IBV_QPS_ERR, 1);
}

static void before_err_kept(void)
{
	init_to(IBV_QPS_ERR, 0);
}

static const struct mode modes[] = {
	{"tail-written", tail},
	{"tail-written-kept", tail_kept},
	{"long-tail-written", shorter},
	{"long-tail-written-kept", shorter_kept},
	{"immediate-written", immediate},
	{"immediate-written-kept", immediate_kept},
	{"shared", tail},
	{"shared-kept", shared_kept},
	{"init-written", before_rtr},
	{"init-written-kept", before_rtr_kept},
	{"init-written-err", before_err},
	{"init-written-err-kept", before_err_kept},
	{0},
};

int main(int argc, char **argv)
{
	return run_mode(argc, argv, modes);
}
