/* SPDX-License-Identifier: MIT */
/* Memory, address handles and QPs that end while work requests use them. */
#include "pair.h"

#include <sys/mman.h>

static const struct plan plan = {0};
static const struct plan datagrams = {.type = IBV_QPT_UD, .access = IBV_ACCESS_LOCAL_WRITE};

static void deregister(struct end *end)
{
	need(!ibv_dereg_mr(end->mr), "dereg"); /* @dereg */
	end->mr = NULL;
}

/* A message goes through, so that the QPs have had traffic. */
static void exchange(void)
{
	receive(there, 100);
	post(here, IBV_WR_SEND, 101);
	wait_for(here);
	wait_for(there);
}

static void move(struct end *end, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = {.qp_state = state};

	need(!ibv_modify_qp(end->qp, &attr, IBV_QP_STATE), "modify"); /* @modify */
}

static enum ibv_qp_state state_of(struct end *end)
{
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;

	need(!ibv_query_qp(end->qp, &attr, IBV_QP_STATE, &init), "query");
	return attr.qp_state;
}

static void destroy(struct end *end)
{
	need(!ibv_destroy_qp(end->qp), "destroy"); /* @destroy */
	end->qp = NULL;
}

/* --- MRs --- */

static void send_deregistered(void)
{
	connect_ends(&plan);
	exchange();
	receive(there, 8);
	post(here, IBV_WR_SEND, 7);
	deregister(here);
	close_ends();
}

/* A signalled work request behind it would complete this one, too; this one is the last. */
static void send_quietly(void)
{
	struct ibv_sge sge = piece(here, 0, 64);
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;

	receive(there, 8);
	need(!ibv_post_send(here->qp, &wr, &bad), "send");
}

static void send_deregistered_kept(void)
{
	connect_ends(&plan);
	receive(there, 8);
	post(here, IBV_WR_SEND, 7);
	wait_for(here);
	wait_for(there);
	deregister(here);
	deregister(there);
	close_ends();

	/* The peer may have said that it has the message. */
	connect_ends(&plan);
	send_quietly();
	wait_for(there);
	deregister(here);
	close_ends();
}

/* The receive has no message yet. */
static void receive_deregistered(void)
{
	connect_ends(&plan);
	exchange();
	receive(there, 8);
	deregister(there);
	close_ends();
}

/* Neither a QP in IBV_QPS_ERR nor an unconnected one uses the buffers. */
static void receive_deregistered_kept(void)
{
	connect_ends(&plan);
	exchange();
	receive(there, 8);
	move(there, IBV_QPS_ERR);
	deregister(there);
	destroy(there);
	deregister(here);
	close_ends();

	open_ends(&plan);
	to_init(here, &plan);
	receive(here, 8);
	deregister(here);
	close_ends();
}

/* The completions that a failed QP owes are not polled. */
static void failed_deregistered_kept(void)
{
	connect_ends(&plan);
	exchange();
	receive(here, 8);
	post(here, IBV_WR_SEND, 7);
	destroy(there);
	post(here, IBV_WR_SEND, 8);
	need(wait_for(here).status != IBV_WC_SUCCESS, "the send has succeeded");
	deregister(here);
	close_ends();

	/* No completion is polled. */
	connect_ends(&plan);
	exchange();
	receive(here, 8);
	destroy(there);
	post(here, IBV_WR_SEND, 7);
	while (state_of(here) == IBV_QPS_RTS)
		;
	deregister(here);
	close_ends();
}

static void failed_deregistered(void)
{
	connect_ends(&plan);
	exchange();
	post(here, IBV_WR_SEND, 7);
	deregister(here);
	close_ends();
}

/* One MR of two, in the middle of a chain of three work requests. */
static void chain(int waits)
{
	struct ibv_mr *second;
	struct ibv_sge sges[2];
	struct ibv_send_wr wrs[3] = {{0}}, *bad;

	connect_ends(&plan);
	second = ibv_reg_mr(here->pd, here->memory + 8192, 4096, 0);
	sges[0] = piece(here, 0, 64);
	sges[1] = (struct ibv_sge){(uintptr_t)here->memory + 8192, 64, second->lkey};
	for (int i = 0; i < 3; i++) {
		receive(there, 8);
		wrs[i].wr_id = (uint64_t)i + 1;
		wrs[i].next = i < 2 ? &wrs[i + 1] : NULL;
		wrs[i].sg_list = sges;
		wrs[i].num_sge = i == 1 ? 2 : 1;
		wrs[i].opcode = IBV_WR_SEND;
	}
	wrs[2].send_flags = IBV_SEND_SIGNALED;
	need(!ibv_post_send(here->qp, wrs, &bad), "chain"); /* @chain */
	if (waits)
		wait_for(here);
	need(!ibv_dereg_mr(second), "dereg"); /* @dereg-second */
	wait_for(waits ? there : here);
	close_ends();
}

static void chain_deregistered(void)
{
	chain(0);
}

static void chain_deregistered_kept(void)
{
	chain(1);
}

/* The adapter has the bytes of an inline send. */
static void inline_deregistered_kept(void)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;

	connect_ends(&plan);
	sge = piece(here, 0, 64);
	wr.send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED;
	receive(there, 8);
	need(!ibv_post_send(here->qp, &wr, &bad), "send");
	deregister(here);
	wait_for(here);
	close_ends();
}

static void inline_deregistered(void)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;

	connect_ends(&plan);
	sge = piece(here, 0, 64);
	wr.send_flags = IBV_SEND_SIGNALED;
	receive(there, 8);
	need(!ibv_post_send(here->qp, &wr, &bad), "send"); /* @not-inline */
	deregister(here);
	close_ends();
}

static void rereg(int waits)
{
	const int moves = IBV_REREG_MR_CHANGE_TRANSLATION;

	connect_ends(&plan);
	post(here, IBV_WR_RDMA_READ, 7);
	if (waits)
		wait_for(here);
	need(!ibv_rereg_mr(here->mr, moves, NULL, here->memory, 4096, 0), "rereg"); /* @rereg */
	close_ends();
}

static void read_reregistered(void)
{
	rereg(0);
}

static void read_reregistered_kept(void)
{
	rereg(1);

	/* Only the access changes. */
	connect_ends(&plan);
	post(here, IBV_WR_RDMA_READ, 7);
	need(!ibv_rereg_mr(here->mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, REMOTE), "rereg");
	wait_for(here);
	close_ends();
}

/* --- SRQs --- */

static struct ibv_srq *attach_srq(struct end *end)
{
	struct ibv_srq_init_attr init = {.attr = {DEPTH, 1, 0}};
	struct ibv_sge sge = piece(end, MEMORY_BYTES / 2, 64);
	struct ibv_recv_wr wr = {.wr_id = 9, .sg_list = &sge, .num_sge = 1}, *bad;
	struct ibv_qp_init_attr qp = {.qp_type = IBV_QPT_RC, .cap = {DEPTH, 0, 2, 0, 0}};

	qp.send_cq = qp.recv_cq = end->cq;
	qp.srq = ibv_create_srq(end->pd, &init);
	need(qp.srq && !ibv_destroy_qp(end->qp), "SRQ");
	end->qp = ibv_create_qp(end->pd, &qp);
	need(end->qp && !ibv_post_srq_recv(qp.srq, &wr, &bad), "receive"); /* @srq-receive */
	return qp.srq;
}

static void srq(int connected, int destroyed)
{
	struct ibv_srq *srq;
	struct ibv_qp_attr attr;

	open_ends(&plan);
	srq = attach_srq(there);
	if (connected) {
		to_init(there, &plan);
		attr = rtr_attr(here);
		to_rtr(there, &attr);
	}
	if (destroyed)
		destroy(there);
	deregister(there);
	if (there->qp)
		destroy(there);
	need(!ibv_destroy_srq(srq), "SRQ");
	close_ends();
}

static void srq_deregistered(void)
{
	srq(1, 0);
}

static void srq_deregistered_kept(void)
{
	srq(0, 0);
	srq(1, 1);
}

/* --- address handles and memory windows --- */

static void datagram(int waits, unsigned int flags)
{
	struct ibv_ah_attr path;
	struct ibv_ah *ah;
	struct ibv_sge sge;
	struct ibv_send_wr wr = {.wr_id = 7, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND};
	struct ibv_send_wr *bad;

	connect_ends(&datagrams);
	path = path_to(there);
	ah = ibv_create_ah(here->pd, &path);
	need(ah != NULL, "address handle");
	sge = piece(here, 0, 64);
	wr.send_flags = flags;
	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = there->qp->qp_num;
	wr.wr.ud.remote_qkey = QKEY;
	wr.wr.ud.remote_qkey = 0x11111111;
	need(!ibv_post_send(here->qp, &wr, &bad), "send"); /* @datagram */
	if (waits)
		wait_for(here);
	if (!flags) {
		/* A later one is signalled, and its completion is not polled. */
		wr.send_flags = IBV_SEND_SIGNALED;
		wr.wr.ud.ah = ibv_create_ah(here->pd, &path);
		need(!ibv_post_send(here->qp, &wr, &bad), "send");
	}
	need(!ibv_destroy_ah(ah), "address handle"); /* @destroy-ah */
	if (!flags) {
		wait_for(here);
		ibv_destroy_ah(wr.wr.ud.ah);
	}
	close_ends();
}

static void handle_destroyed(void)
{
	datagram(0, IBV_SEND_SIGNALED);
}

static void handle_destroyed_kept(void)
{
	datagram(1, IBV_SEND_SIGNALED);
	datagram(0, 0);
}

static void window(int waits)
{
	struct ibv_mr *mr;
	struct ibv_mw *mw;
	struct ibv_sge sge;
	struct ibv_send_wr wr = {.wr_id = 7, .opcode = IBV_WR_BIND_MW}, *bad;

	connect_ends(&plan);
	mr = ibv_reg_mr(here->pd, here->memory, 4096, REMOTE | IBV_ACCESS_MW_BIND);
	mw = ibv_alloc_mw(here->pd, IBV_MW_TYPE_2);
	need(mr && mw, "memory window");
	wr.send_flags = IBV_SEND_SIGNALED;
	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
	wr.bind_mw.bind_info =
		(struct ibv_mw_bind_info){mr, (uintptr_t)here->memory, 64, IBV_ACCESS_REMOTE_READ};
	need(!ibv_post_send(here->qp, &wr, &bad), "bind"); /* @bind */
	if (waits)
		wait_for(here);
	if (waits) {
		/* The MR cannot end while the window is bound to it. */
		sge = (struct ibv_sge){(uintptr_t)here->memory, 64, mr->lkey};
		wr = (struct ibv_send_wr){.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND};
		wr.send_flags = IBV_SEND_SIGNALED;
		receive(there, 8);
		need(!ibv_post_send(here->qp, &wr, &bad), "send");
		need(ibv_dereg_mr(mr), "the MR has ended");
		wait_for(here);
	}
	need(!ibv_dealloc_mw(mw), "memory window"); /* @dealloc-mw */
	ibv_destroy_qp(here->qp);
	here->qp = NULL;
	ibv_dereg_mr(mr);
	close_ends();
}

static void window_deallocated(void)
{
	window(0);
}

static void window_deallocated_kept(void)
{
	window(1);
}

/* --- memory that is unmapped --- */

enum when { BEFORE_POST, BEFORE_COMPLETION, BEFORE_POLL, AFTER_COMPLETION };

static void unmap(struct end *end, enum ibv_wr_opcode opcode, enum when when)
{
	struct ibv_wc wc;
	char *memory;
	struct ibv_mr *mr;
	struct ibv_sge sge;
	struct ibv_send_wr wr = {.wr_id = 7, .sg_list = &sge, .num_sge = 1, .opcode = opcode}, *bad;

	connect_ends(&plan);
	memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	mr = ibv_reg_mr(end->pd, memory, 4096, REMOTE);
	sge = (struct ibv_sge){(uintptr_t)memory, 64, mr->lkey};
	wr.send_flags = IBV_SEND_SIGNALED;
	wr.wr.rdma.remote_addr = (uintptr_t)there->memory;
	wr.wr.rdma.rkey = there->mr->rkey;
	if (when == BEFORE_POST)
		munmap(memory, 4096);
	need(!ibv_post_send(end->qp, &wr, &bad), "send"); /* @unmapped-send */
	/* Empty polls let time pass. */
	for (int i = 0; i < 100 && when == BEFORE_POLL; i++)
		need(!ibv_poll_cq(there->cq, 1, &wc), "a completion");
	if (when == BEFORE_COMPLETION || when == BEFORE_POLL)
		munmap(memory, 4096);
	wc = wait_for(end);
	need(wc.status == IBV_WC_SUCCESS || when != BEFORE_POLL, "the work request has failed");
	if (when == AFTER_COMPLETION)
		munmap(memory, 4096);
	ibv_dereg_mr(mr);
	close_ends();
}

static void write_unmapped(void)
{
	unmap(here, IBV_WR_RDMA_WRITE, BEFORE_COMPLETION);
}

static void write_unmapped_kept(void)
{
	unmap(here, IBV_WR_RDMA_WRITE, AFTER_COMPLETION);
}

static void unmapped_posted(void)
{
	unmap(here, IBV_WR_RDMA_WRITE, BEFORE_POST);
}

static void read_unmapped(void)
{
	unmap(here, IBV_WR_RDMA_READ, BEFORE_COMPLETION);
}

static void completed_unmapped(void)
{
	unmap(here, IBV_WR_RDMA_READ, BEFORE_POLL);
}

static void read_unmapped_kept(void)
{
	unmap(here, IBV_WR_RDMA_READ, AFTER_COMPLETION);
}

/* --- QPs --- */

static void connect_again(void)
{
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC, .cap = {DEPTH, DEPTH, 2, 2, 64}};

	for (int i = 0; i < 2; i++) {
		if (ends[i].qp)
			destroy(&ends[i]);
		init.send_cq = init.recv_cq = ends[i].cq;
		ends[i].qp = ibv_create_qp(ends[i].pd, &init);
	}
	for (int i = 0; i < 2; i++) {
		struct ibv_qp_attr rtr = rtr_attr(&ends[!i]), rts = rts_attr();

		to_init(&ends[i], &plan);
		to_rtr(&ends[i], &rtr);
		to_rts(&ends[i], &rts);
	}
}

static void destroyed(void)
{
	connect_ends(&plan);
	exchange();
	receive(there, 8);
	post(here, IBV_WR_SEND, 7);
	connect_again();
	receive(there, 8);
	post(here, IBV_WR_SEND, 9);
	wait_for(here);
	close_ends();
}

static void destroyed_kept(void)
{
	connect_ends(&plan);
	receive(here, 5);
	receive(there, 8);
	post(here, IBV_WR_SEND, 7);
	wait_for(here);
	connect_again();
	receive(here, 5);
	receive(there, 8);
	post(here, IBV_WR_SEND, 9);
	wait_for(here);
	/* The QP is in IBV_QPS_ERR. */
	post(here, IBV_WR_SEND, 10);
	move(here, IBV_QPS_ERR);
	connect_again();
	receive(there, 8);
	post(here, IBV_WR_SEND, 11);
	wait_for(here);
	/* Other bytes. */
	post(here, IBV_WR_SEND, 12);
	connect_again();
	receive(here, 8);
	close_ends();

	/* A send that is not signalled. */
	connect_ends(&plan);
	send_quietly();
	connect_again();
	receive(there, 8);
	post(here, IBV_WR_SEND, 11);
	wait_for(here);
	close_ends();

	/* The buffer is registered again: the program has given it back. */
	connect_ends(&plan);
	post(here, IBV_WR_RDMA_WRITE, 7);
	destroy(here);
	ibv_dereg_mr(here->mr);
	here->mr = ibv_reg_mr(here->pd, here->memory, MEMORY_BYTES, REMOTE);
	connect_again();
	post(here, IBV_WR_RDMA_WRITE, 11);
	wait_for(here);
	close_ends();
}

/* The QP has failed by itself, and its completions are not polled. */
static void failed_destroyed_kept(void)
{
	connect_ends(&plan);
	exchange();
	destroy(there);
	post(here, IBV_WR_SEND, 7);
	post(here, IBV_WR_SEND, 8);
	need(wait_for(here).status != IBV_WC_SUCCESS, "the send has succeeded");
	connect_again();
	receive(there, 8);
	post(here, IBV_WR_SEND, 9);
	wait_for(here);
	close_ends();
}

static void failed_destroyed(void)
{
	connect_ends(&plan);
	exchange();
	destroy(there);
	post(here, IBV_WR_SEND, 7);
	connect_again();
	receive(there, 8);
	post(here, IBV_WR_SEND, 9);
	wait_for(here);
	close_ends();
}

static void reset_with(int waits)
{
	struct ibv_qp_attr rtr, rts = rts_attr();

	connect_ends(&plan);
	rtr = rtr_attr(there);
	exchange();
	receive(there, 8);
	post(here, IBV_WR_RDMA_WRITE, 7);
	if (waits)
		wait_for(here);
	move(here, IBV_QPS_RESET);
	to_init(here, &plan);
	to_rtr(here, &rtr);
	to_rts(here, &rts);
	post(here, IBV_WR_RDMA_READ, 9);
	close_ends();
}

static void reset(void)
{
	reset_with(0);
}

static void reset_kept(void)
{
	reset_with(1);
}

static const struct mode modes[] = {
	{"send-deregistered", send_deregistered},
	{"send-deregistered-kept", send_deregistered_kept},
	{"receive-deregistered", receive_deregistered},
	{"receive-deregistered-kept", receive_deregistered_kept},
	{"failed-deregistered", failed_deregistered},
	{"failed-deregistered-kept", failed_deregistered_kept},
	{"chain-deregistered", chain_deregistered},
	{"chain-deregistered-kept", chain_deregistered_kept},
	{"inline-deregistered", inline_deregistered},
	{"inline-deregistered-kept", inline_deregistered_kept},
	{"read-reregistered", read_reregistered},
	{"read-reregistered-kept", read_reregistered_kept},
	{"srq-deregistered", srq_deregistered},
	{"srq-deregistered-kept", srq_deregistered_kept},
	{"handle-destroyed", handle_destroyed},
	{"handle-destroyed-kept", handle_destroyed_kept},
	{"window-deallocated", window_deallocated},
	{"window-deallocated-kept", window_deallocated_kept},
	{"write-unmapped", write_unmapped},
	{"write-unmapped-kept", write_unmapped_kept},
	{"unmapped-posted", unmapped_posted},
	{"unmapped-posted-kept", write_unmapped_kept},
	{"read-unmapped", read_unmapped},
	{"read-unmapped-kept", read_unmapped_kept},
	{"completed-unmapped", completed_unmapped},
	{"completed-unmapped-kept", read_unmapped_kept},
	{"qp-destroyed", destroyed},
	{"qp-destroyed-kept", destroyed_kept},
	{"failed-qp-destroyed", failed_destroyed},
	{"failed-qp-destroyed-kept", failed_destroyed_kept},
	{"qp-reset", reset},
	{"qp-reset-kept", reset_kept},
	{0},
};

int main(int argc, char **argv)
{
	return run_mode(argc, argv, modes);
}
