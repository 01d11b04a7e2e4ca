/* SPDX-License-Identifier: MIT */
/*
 * Programs that use bytes of an RDMA WRITE because they have seen others of it, or because a message of another
 * QP has come, and twins that wait for a completion that promises the bytes. The setting is order=1.
 */
#include "pair.h"

#define LONG	  16384 /* whole pages */
#define SHORT	  256	/* a part of a page */
#define FLAG_SIZE 8

static const struct plan plan = {0};

/* A use that no compiler takes out. */
static volatile char used;

static void use(const char *byte)
{
	used = *byte; /* @use */
}

/* Writes the first bytes of the memory to the same place of the peer. */
static void write_bytes(uint32_t offset, uint32_t length, enum ibv_wr_opcode opcode)
{
	struct ibv_sge sge = piece(here, offset, length);
	struct ibv_send_wr wr = {
		.wr_id = 3,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = {(uintptr_t)there->memory + offset, there->mr->rkey},
	};
	struct ibv_send_wr *bad;

	need(!ibv_post_send(here->qp, &wr, &bad), "write"); /* @write */
}

/* The peer looks at its CQ, in which nothing is, and at a byte of its memory until it has changed. */
static void wait_for_byte(uint32_t offset)
{
	const volatile char *byte = there->memory + offset;
	struct ibv_wc wc;

	while (!*byte)
		need(!ibv_poll_cq(there->cq, 1, &wc), "a completion");
}

static void begin(void)
{
	connect_ends(&plan);
	memset(here->memory, 1, MEMORY_BYTES / 2);
}

static void end(void)
{
	close_ends();
}

/* --- the last byte of the message --- */

static void last_byte(void)
{
	begin();
	write_bytes(0, LONG, IBV_WR_RDMA_WRITE);
	wait_for_byte(LONG - 1);
	use(there->memory);
	wait_for(here);
	use(there->memory);
	end();
}

static void last_byte_kept(void)
{
	begin();
	write_bytes(0, LONG, IBV_WR_RDMA_WRITE);
	wait_for_byte(LONG - 1);
	wait_for(here);
	use(there->memory);
	need(used == 1, "no bytes");
	end();
}

/* The peer gives the bytes to its adapter. */
static void forward_of(int early)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = {.wr_id = 4, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND};
	struct ibv_send_wr *bad;

	begin();
	receive(here, 5);
	write_bytes(0, SHORT, IBV_WR_RDMA_WRITE);
	wait_for_byte(SHORT - 1);
	if (!early)
		wait_for(here);
	sge = piece(there, 0, 64);
	wr.send_flags = IBV_SEND_SIGNALED;
	need(!ibv_post_send(there->qp, &wr, &bad), "send"); /* @forward */
	wait_for(there);
	wait_for(here);
	if (early)
		wait_for(here);
	end();
}

static void forward(void)
{
	forward_of(1);
}

static void forward_kept(void)
{
	forward_of(0);
}

/* --- a flag by another WRITE --- */

static void flag(void)
{
	static char copy[8192];

	begin();
	write_bytes(0, LONG, IBV_WR_RDMA_WRITE);
	write_bytes(LONG, FLAG_SIZE, IBV_WR_RDMA_WRITE);
	wait_for_byte(LONG);
	memcpy(copy, there->memory + 4096, 8192); /* @copy */
	wait_for(here);
	wait_for(here);
	end();
}

/* The requester writes the flag after the completion of the bytes. */
static void flag_kept(void)
{
	begin();
	write_bytes(0, LONG, IBV_WR_RDMA_WRITE);
	wait_for(here);
	write_bytes(LONG, FLAG_SIZE, IBV_WR_RDMA_WRITE);
	wait_for_byte(LONG);
	use(there->memory + 4096);
	need(used == 1, "no bytes");
	wait_for(here);
	end();
}

/* --- a message --- */

static struct end others[2];

/* Two more connected QPs of the same devices, with a CQ of their own at the peer. */
static void connect_others(void)
{
	for (int i = 0; i < 2; i++) {
		struct ibv_qp_init_attr init = {
			.qp_type = IBV_QPT_RC,
			.cap = {DEPTH, DEPTH, 2, 2, 64},
		};

		others[i] = ends[i];
		others[i].cq = ibv_create_cq(ends[i].context, DEPTH, NULL, NULL, 0);
		init.send_cq = init.recv_cq = others[i].cq;
		others[i].qp = ibv_create_qp(ends[i].pd, &init);
		need(others[i].cq && others[i].qp, "no other QP");
	}
	for (int i = 0; i < 2; i++) {
		struct ibv_qp_attr rtr = rtr_attr(&others[!i]), rts = rts_attr();

		to_init(&others[i], &plan);
		to_rtr(&others[i], &rtr);
		to_rts(&others[i], &rts);
	}
}

static void close_others(void)
{
	for (int i = 0; i < 2; i++) {
		ibv_destroy_qp(others[i].qp);
		ibv_destroy_cq(others[i].cq);
	}
}

/* The message of another QP may come before the bytes of this one. */
static void message_of(int early)
{
	begin();
	connect_others();
	receive(&others[1], 6);
	write_bytes(0, LONG, IBV_WR_RDMA_WRITE);
	if (!early)
		wait_for(here);
	post(&others[0], IBV_WR_SEND, 7);
	wait_for(&others[1]);
	use(there->memory);
	if (early)
		wait_for(here);
	need(early || used == 1, "no bytes");
	wait_for(&others[0]);
	close_others();
	end();
}

static void message_of_another_qp(void)
{
	message_of(1);
}

static void message_of_another_qp_kept(void)
{
	message_of(0);
}

/* The second message promises the bytes, and the first one does not. */
static void message_before_of(int early)
{
	begin();
	receive(there, 6);
	receive(there, 7);
	post(here, IBV_WR_SEND, 8);
	write_bytes(0, LONG, IBV_WR_RDMA_WRITE);
	post(here, IBV_WR_SEND, 9);
	wait_for(there);
	if (early)
		use(there->memory);
	wait_for(there);
	use(there->memory);
	need(used == 1, "no bytes");
	for (int i = 0; i < 3; i++)
		wait_for(here);
	end();
}

static void message_before(void)
{
	message_before_of(1);
}

static void message_before_kept(void)
{
	message_before_of(0);
}

/* A WRITE with immediate data promises the WRITE before it and itself. */
static void immediate_of(int early)
{
	begin();
	receive(there, 6);
	write_bytes(0, LONG, IBV_WR_RDMA_WRITE);
	if (early) {
		wait_for_byte(LONG - 1);
		use(there->memory);
	}
	write_bytes(LONG, LONG / 2, IBV_WR_RDMA_WRITE_WITH_IMM);
	wait_for(there);
	use(there->memory);
	use(there->memory + LONG);
	need(used == 1, "no bytes");
	wait_for(here);
	wait_for(here);
	end();
}

static void immediate(void)
{
	immediate_of(1);
}

static void immediate_kept(void)
{
	immediate_of(0);
}

/* --- READs and receives --- */

/* The bytes of a READ come to the end of the memory. */
static void read_of(int early)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = {
		.wr_id = 8, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_READ};
	struct ibv_send_wr *bad;
	const char *last;

	begin();
	memset(there->memory, 1, LONG);
	sge = piece(here, MEMORY_BYTES / 2, LONG);
	last = here->memory + MEMORY_BYTES / 2 + LONG - 1;
	wr.send_flags = IBV_SEND_SIGNALED;
	wr.wr.rdma.remote_addr = (uintptr_t)there->memory;
	wr.wr.rdma.rkey = there->mr->rkey;
	need(!ibv_post_send(here->qp, &wr, &bad), "read"); /* @read */
	while (early && !*(const volatile char *)last)
		ibv_poll_cq(there->cq, 1, &(struct ibv_wc){0});
	if (early)
		use(here->memory + MEMORY_BYTES / 2);
	wait_for(here);
	use(here->memory + MEMORY_BYTES / 2);
	need(used == 1, "no bytes");
	end();
}

static void read_early(void)
{
	read_of(1);
}

static void read_early_kept(void)
{
	read_of(0);
}

/* The sender has polled its completion, and the receiver has not. */
static void received_of(int early)
{
	struct ibv_sge sge;
	struct ibv_recv_wr receive = {.wr_id = 9, .sg_list = &sge, .num_sge = 1}, *bad_receive;
	struct ibv_send_wr wr = {.wr_id = 10, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND};
	struct ibv_send_wr *bad;

	begin();
	sge = piece(there, 0, LONG);
	need(!ibv_post_recv(there->qp, &receive, &bad_receive), "receive"); /* @receive-long */
	sge = piece(here, 0, LONG);
	wr.send_flags = IBV_SEND_SIGNALED;
	need(!ibv_post_send(here->qp, &wr, &bad), "send");
	wait_for(here);
	if (early)
		use(there->memory);
	wait_for(there);
	use(there->memory);
	need(used == 1, "no bytes");
	end();
}

static void received(void)
{
	received_of(1);
}

static void received_kept(void)
{
	received_of(0);
}

/* --- the program writes --- */

/* A word of its own is whole: nothing depends on it but itself. */
static void overwrite_of(int early)
{
	begin();
	write_bytes(LONG, FLAG_SIZE, IBV_WR_RDMA_WRITE);
	wait_for_byte(LONG);
	wait_for_byte(LONG + FLAG_SIZE - 1);
	write_bytes(0, LONG, IBV_WR_RDMA_WRITE);
	wait_for_byte(LONG - 1);
	if (early)
		there->memory[0] = 2; /* @overwrite */
	wait_for(here);
	wait_for(here);
	there->memory[0] = 2;
	end();
}

static void overwrite(void)
{
	overwrite_of(1);
}

static void overwrite_kept(void)
{
	overwrite_of(0);
}

int main(int argc, char **argv)
{
	static const struct mode modes[] = {
		{"last-byte", last_byte},
		{"last-byte-kept", last_byte_kept},
		{"forward", forward},
		{"forward-kept", forward_kept},
		{"flag", flag},
		{"flag-kept", flag_kept},
		{"message-of-another-qp", message_of_another_qp},
		{"message-of-another-qp-kept", message_of_another_qp_kept},
		{"message-before", message_before},
		{"message-before-kept", message_before_kept},
		{"immediate", immediate},
		{"immediate-kept", immediate_kept},
		{"read", read_early},
		{"read-kept", read_early_kept},
		{"received", received},
		{"received-kept", received_kept},
		{"overwrite", overwrite},
		{"overwrite-kept", overwrite_kept},
		{0},
	};

	return run_mode(argc, argv, modes);
}
