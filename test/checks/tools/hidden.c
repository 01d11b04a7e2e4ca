/* SPDX-License-Identifier: MIT */
/* Targets that the program touches before the completion, and memory that it frees: AddressSanitizer and
 * memcheck see it. */
#include "pair.h"

#include <fcntl.h>

static const struct plan plan = {0};

/* A use that no compiler takes out. */
static volatile char used;

static void use(const char *byte)
{
	if (*byte) /* @use */
		used = 1;
}

static void send_own(struct end *end, enum ibv_wr_opcode opcode, char *memory, struct ibv_mr *mr)
{
	const struct end *peer = end == here ? there : here;
	struct ibv_sge sge = {(uintptr_t)memory, 64, mr->lkey};
	struct ibv_send_wr wr = {.wr_id = 7,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = opcode,
				 .send_flags = IBV_SEND_SIGNALED,
				 .wr.rdma = {(uintptr_t)peer->memory, peer->mr->rkey}};
	struct ibv_send_wr *bad;

	need(!ibv_post_send(end->qp, &wr, &bad), "send"); /* @send-own */
}

/* After an exchange, so that the buffer was hidden and shown before. */
static void receive_of(int early)
{
	connect_ends(&plan);
	memset(here->memory, 1, 64);
	for (int i = 0; i < 2; i++) {
		receive(there, 8);
		if (i && early)
			use(there->memory + MEMORY_BYTES / 2 + 8);
		post(here, IBV_WR_SEND, 7);
		wait_for(here);
		wait_for(there);
		use(there->memory + MEMORY_BYTES / 2 + 8);
		there->memory[MEMORY_BYTES / 2 + 8] = 5;
	}
	close_ends();
}

static void receive_read(void)
{
	receive_of(1);
}

static void receive_read_kept(void)
{
	receive_of(0);
}

static void read_of(int early)
{
	connect_ends(&plan);
	memset(there->memory, 1, 64);
	post(here, IBV_WR_RDMA_READ, 6);
	wait_for(here);
	post(here, IBV_WR_RDMA_READ, 7);
	if (early)
		use(here->memory + 40);
	wait_for(here);
	use(here->memory + 40);
	close_ends();
}

static void read_read(void)
{
	read_of(1);
}

static void read_read_kept(void)
{
	read_of(0);
}

/* Other bytes; a refused work request; two receives with one buffer; a QP in IBV_QPS_ERR; an MR that has
 * ended. Its twin touches the buffer of the second receive after the first has completed. */
static void others_kept(void)
{
	struct ibv_sge sge;
	struct ibv_recv_wr wr = {.wr_id = 1, .sg_list = &sge, .num_sge = 1}, *bad;
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	connect_ends(&plan);
	memset(here->memory, 1, MEMORY_BYTES);
	receive(there, 8);
	use(there->memory + MEMORY_BYTES / 2 + 64);
	use(there->memory + MEMORY_BYTES / 2 - 1);
	sge = piece(there, 4096, 64);
	wr.num_sge = 1000;
	need(ibv_post_recv(there->qp, &wr, &bad), "the receive is accepted");
	use(there->memory + 4096 + 8);
	sge = piece(there, 3, 2);
	wr.num_sge = 1;
	need(!ibv_post_recv(there->qp, &wr, &bad), "receive");
	use(there->memory + 2);
	use(there->memory + 5);
	sge = piece(there, 4099, 59);
	need(!ibv_post_recv(there->qp, &wr, &bad), "receive");
	use(there->memory + 4098);
	use(there->memory + 4158);
	post(here, IBV_WR_SEND, 7);
	wait_for(here);
	wait_for(there);
	close_ends();

	connect_ends(&plan);
	memset(here->memory, 1, MEMORY_BYTES);
	memset(there->memory, 1, MEMORY_BYTES);
	for (int i = 0; i < 3; i++)
		receive(there, 8);
	post(here, IBV_WR_SEND, 7);
	wait_for(here);
	wait_for(there);
	use(there->memory + MEMORY_BYTES / 2 + 8);
	receive(there, 8);
	for (int i = 0; i < 3; i++) {
		post(here, IBV_WR_SEND, 7);
		wait_for(here);
		wait_for(there);
		use(there->memory + MEMORY_BYTES / 2 + 8);
	}
	receive(there, 8);
	need(!ibv_modify_qp(there->qp, &attr, IBV_QP_STATE), "modify");
	use(there->memory + MEMORY_BYTES / 2 + 8);
	close_ends();

	/* A QP in IBV_QPS_RESET takes no receives. */
	open_ends(&plan);
	memset(there->memory, 1, MEMORY_BYTES);
	sge = piece(there, MEMORY_BYTES / 2, 64);
	need(ibv_post_recv(there->qp, &wr, &bad), "the receive is accepted");
	use(there->memory + MEMORY_BYTES / 2 + 8);
	to_init(there, &plan);
	receive(there, 8);
	ibv_dereg_mr(there->mr);
	there->mr = NULL;
	use(there->memory + MEMORY_BYTES / 2 + 8);
	close_ends();
}

static void others(void)
{
	connect_ends(&plan);
	memset(there->memory, 1, MEMORY_BYTES);
	receive(there, 8);
	post(here, IBV_WR_SEND, 7);
	wait_for(here);
	wait_for(there);
	receive(there, 8);
	receive(there, 9);
	post(here, IBV_WR_SEND, 7);
	wait_for(here);
	wait_for(there);
	post(here, IBV_WR_SEND, 7);
	wait_for(here);
	wait_for(there);
	receive(there, 10);
	use(there->memory + MEMORY_BYTES / 2 + 8);
	close_ends();
}

/* --- XRC: the completion names the target QP, and not the SRQ --- */

static struct ibv_srq *srq;
static struct ibv_xrcd *domain;

static void open_shared(void)
{
	struct ibv_xrcd_init_attr init = {.comp_mask =
						  IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
					  .fd = -1,
					  .oflags = O_CREAT};
	struct ibv_srq_init_attr_ex shared = {
		.attr = {DEPTH, 1, 0},
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC,
		.pd = there->pd,
		.cq = there->cq};

	domain = shared.xrcd = ibv_open_xrcd(there->context, &init);
	srq = ibv_create_srq_ex(there->context, &shared);
	need(domain && srq, "no SRQ");
}

/* In the place of the QPs of open_ends(). */
static void connect_xrc(void)
{
	struct ibv_qp_init_attr_ex target = {
		.qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = domain};
	struct ibv_qp_init_attr initiator = {.qp_type = IBV_QPT_XRC_SEND,
					     .cap = {DEPTH, 0, 1, 0, 0},
					     .send_cq = here->cq,
					     .recv_cq = here->cq};
	const int target_only = IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	struct ibv_qp_attr rtr, rts = rts_attr();

	for (int i = 0; i < 2; i++)
		need(!ibv_destroy_qp(ends[i].qp), "destroy");
	there->qp = ibv_create_qp_ex(there->context, &target);
	here->qp = ibv_create_qp(here->pd, &initiator);
	need(there->qp && here->qp, "no QPs");
	to_init(here, &plan);
	to_init(there, &plan);
	rtr = rtr_attr(here);
	to_rtr(there, &rtr);
	rtr = rtr_attr(there);
	need(!ibv_modify_qp(here->qp, &rtr, RTR_MASK & ~target_only), "RTR of the initiator");
	to_rts(here, &rts);
}

static void xrc_kept(void)
{
	struct ibv_sge to, from;
	struct ibv_recv_wr receive = {.sg_list = &to, .num_sge = 1}, *bad_receive;
	struct ibv_send_wr send = {.opcode = IBV_WR_SEND,
				   .sg_list = &from,
				   .num_sge = 1,
				   .send_flags = IBV_SEND_SIGNALED},
			   *bad;

	open_ends(&plan);
	open_shared();
	connect_xrc();
	to = piece(there, MEMORY_BYTES / 2, 64);
	from = piece(here, 0, 64);
	need(!ibv_get_srq_num(srq, &send.qp_type.xrc.remote_srqn), "no number");
	need(!ibv_post_srq_recv(srq, &receive, &bad_receive), "receive");
	need(!ibv_post_send(here->qp, &send, &bad), "send");
	wait_for(here);
	wait_for(there);
	use(there->memory + MEMORY_BYTES / 2 + 8);
	need(!ibv_destroy_qp(there->qp) && !ibv_destroy_srq(srq) && !ibv_close_xrcd(domain),
	     "the end");
	there->qp = NULL;
	close_ends();
}

/* --- memory that is freed --- */

static void free_of(enum ibv_wr_opcode opcode, int early)
{
	char *memory = calloc(1, 64);
	struct ibv_mr *mr;

	connect_ends(&plan);
	mr = ibv_reg_mr(here->pd, memory, 64, IBV_ACCESS_LOCAL_WRITE);
	post(here, IBV_WR_RDMA_WRITE, 6);
	wait_for(here);
	if (early == 2)
		free(memory);
	send_own(here, opcode, memory, mr);
	if (early == 1)
		free(memory);
	wait_for(here);
	if (!early)
		free(memory);
	ibv_dereg_mr(mr);
	close_ends();
}

static void write_freed(void)
{
	free_of(IBV_WR_RDMA_WRITE, 1);
}

static void read_freed(void)
{
	free_of(IBV_WR_RDMA_READ, 1);
}

static void freed_posted(void)
{
	free_of(IBV_WR_RDMA_WRITE, 2);
}

static void write_freed_kept(void)
{
	free_of(IBV_WR_RDMA_WRITE, 0);
}

static void read_freed_kept(void)
{
	free_of(IBV_WR_RDMA_READ, 0);
}

/* With order=1: a WRITE of less than a page, whose last bytes have come. */
static void order_of(int early)
{
	struct ibv_wc wc;

	connect_ends(&plan);
	memset(here->memory, 1, 64);
	post(here, IBV_WR_RDMA_WRITE, 7);
	while (!*(volatile char *)(there->memory + 63))
		ibv_poll_cq(there->cq, 1, &wc);
	if (early)
		use(there->memory + 8);
	wait_for(here);
	use(there->memory + 8);
	close_ends();
}

static void order_write(void)
{
	order_of(1);
}

static void order_write_kept(void)
{
	order_of(0);
}

static const struct mode modes[] = {
	{"receive-read", receive_read},
	{"receive-read-kept", receive_read_kept},
	{"read-read", read_read},
	{"read-read-kept", read_read_kept},
	{"others", others},
	{"others-kept", others_kept},
	{"xrc-kept", xrc_kept},
	{"write-freed", write_freed},
	{"write-freed-kept", write_freed_kept},
	{"read-freed", read_freed},
	{"read-freed-kept", read_freed_kept},
	{"freed-posted", freed_posted},
	{"freed-posted-kept", write_freed_kept},
	{"order-write", order_write},
	{"order-write-kept", order_write_kept},
	{0},
};

int main(int argc, char **argv)
{
	return run_mode(argc, argv, modes);
}
