/* SPDX-License-Identifier: MIT */
/* Queues that are too small for their work, and chains that are posted twice. */
#include "pair.h"

#define WRITE_BYTES 8

static const struct plan plan = {0};
static const struct plan small = {.cqe = 4};

/* Posts `count` RDMA WRITEs, the last one signalled if asked. Returns what ibv_post_send() returns. */
static int write_some(int count, int signalled, struct ibv_send_wr **bad)
{
	static struct ibv_send_wr wrs[2 * DEPTH];
	static struct ibv_sge sges[2 * DEPTH];

	for (int i = 0; i < count; i++) {
		sges[i] = piece(here, (uint32_t)(WRITE_BYTES * i), WRITE_BYTES);
		wrs[i] = (struct ibv_send_wr){
			.wr_id = (uint64_t)i,
			.next = i < count - 1 ? &wrs[i + 1] : NULL,
			.sg_list = &sges[i],
			.num_sge = 1,
			.opcode = IBV_WR_RDMA_WRITE,
			.send_flags = signalled && i == count - 1 ? IBV_SEND_SIGNALED : 0,
			.wr.rdma = {(uintptr_t)there->memory + (uintptr_t)(WRITE_BYTES * i),
				    there->mr->rkey},
		};
	}
	return ibv_post_send(here->qp, wrs, bad); /* @write-some */
}

/* --- a send queue without signalled sends --- */

static void unsignalled(void)
{
	struct ibv_send_wr *bad;

	connect_ends(&plan);
	for (int i = 0; i < DEPTH; i++)
		need(!write_some(1, 0, &bad), "write");
	need(write_some(1, 0, &bad), "a full queue took a send"); /* @one-more */
	close_ends();
}

/* As many as there is room for; before that, traffic that is signalled. */
static void unsignalled_kept(void)
{
	struct ibv_send_wr *bad;

	connect_ends(&plan);
	for (int i = 0; i < 3 * DEPTH; i++) {
		need(!write_some(1, i % DEPTH == DEPTH - 1, &bad), "write");
		if (i % DEPTH == DEPTH - 1)
			wait_for(here);
	}
	for (int i = 0; i < DEPTH; i++)
		need(!write_some(1, 0, &bad), "write");
	close_ends();
}

/* The WR that is refused would be the first signalled one. */
static void interval(void)
{
	struct ibv_send_wr *bad;

	connect_ends(&plan);
	need(!write_some(5, 1, &bad), "write");
	wait_for(here);
	need(write_some(DEPTH + 1, 1, &bad), "a full queue took a chain");
	close_ends();
}

/* The queue is full, and its oldest send is signalled. */
static void interval_kept(void)
{
	struct ibv_send_wr *bad;

	connect_ends(&plan);
	need(!write_some(5, 1, &bad), "write");
	wait_for(here);
	need(!write_some(1, 1, &bad), "write");
	need(!write_some(DEPTH - 1, 0, &bad), "write");
	need(write_some(1, 1, &bad), "a full queue took a send");
	wait_for(here);
	need(!write_some(1, 1, &bad), "write");
	wait_for(here);
	close_ends();
}

static void to_error(struct end *end)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	need(!ibv_modify_qp(end->qp, &attr, IBV_QP_STATE), "ERR");
}

static void connect_both(void)
{
	for (int i = 0; i < 2; i++) {
		struct ibv_qp_attr rtr = rtr_attr(&ends[!i]), rts = rts_attr();

		to_init(&ends[i], &plan);
		to_rtr(&ends[i], &rtr);
		to_rts(&ends[i], &rts);
	}
}

/* The sends of a reset QP do not count. */
static void reset_queue(void)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};
	struct ibv_send_wr *bad;

	connect_ends(&plan);
	need(!write_some(DEPTH, 0, &bad), "write");
	need(!ibv_modify_qp(here->qp, &attr, IBV_QP_STATE), "RESET");
	need(!ibv_modify_qp(there->qp, &attr, IBV_QP_STATE), "RESET");
	connect_both();
}

static void reset(void)
{
	struct ibv_send_wr *bad;

	reset_queue();
	need(!write_some(DEPTH, 0, &bad), "write");
	need(write_some(1, 0, &bad), "a full queue took a send");
	close_ends();
}

static void reset_kept(void)
{
	struct ibv_send_wr *bad;

	reset_queue();
	need(!write_some(DEPTH, 1, &bad), "write");
	need(write_some(1, 0, &bad), "a full queue took a send");
	wait_for(here);
	close_ends();
}

/* In ERR unsignalled sends complete, too. */
static void full_in_error(int in_error)
{
	struct ibv_send_wr *bad;

	connect_ends(&plan);
	need(!write_some(DEPTH, 0, &bad), "write");
	if (in_error)
		to_error(here);
	need(write_some(1, 0, &bad), "a full queue took a send");
	close_ends();
}

static void in_error(void)
{
	full_in_error(0);
}

static void in_error_kept(void)
{
	full_in_error(1);
}

/* --- ibv_wr_*() --- */

static void open_batches(void)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_RC,
		.cap = {DEPTH, DEPTH, 2, 2, 64},
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE,
	};

	open_ends(&plan);
	for (int i = 0; i < 2; i++) {
		struct end *end = &ends[i];

		ibv_destroy_qp(end->qp);
		init.pd = end->pd;
		init.send_cq = init.recv_cq = end->cq;
		end->qp = ibv_create_qp_ex(end->context, &init);
		need(end->qp != NULL, "QP");
	}
	connect_both();
}

static int write_batch(int count, int signalled)
{
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(here->qp);

	ibv_wr_start(qp);
	for (int i = 0; i < count; i++) {
		qp->wr_id = (uint64_t)i;
		qp->wr_flags = signalled && i == count - 1 ? IBV_SEND_SIGNALED : 0;
		ibv_wr_rdma_write(qp, there->mr->rkey, (uintptr_t)there->memory);
		ibv_wr_set_sge(qp, here->mr->lkey, (uintptr_t)here->memory, WRITE_BYTES);
	}
	return ibv_wr_complete(qp); /* @complete */
}

static void batch(void)
{
	open_batches();
	need(!write_batch(DEPTH - 1, 0), "batch");
	need(!write_batch(1, 0), "batch");
	need(write_batch(2, 1), "a full queue took a batch");
	close_ends();
}

/* A batch is longer than the free part of the queue, and then the queue has a signalled send. */
static void batch_kept(void)
{
	open_batches();
	need(!write_batch(1, 0), "batch");
	need(write_batch(DEPTH + 1, 1), "the queue took a batch that is too long");
	need(!write_batch(DEPTH - 2, 1), "batch");
	need(write_batch(2, 0), "a full queue took a batch");
	wait_for(here);
	need(!write_batch(2, 1), "batch");
	wait_for(here);
	close_ends();
}

/* --- a CQ that is too small --- */

static void small_cq_with(int receives, int sends)
{
	struct ibv_send_wr *bad;

	connect_ends(&small);
	for (int i = 0; i < receives; i++)
		receive(here, (uint64_t)i);
	for (int i = 0; i < sends; i++)
		need(!write_some(1, 1, &bad), "write");
}

static void small_receives(void)
{
	const int entries = 4;

	small_cq_with(entries + 1, 0);
	close_ends();
}

static void small_receives_kept(void)
{
	struct ibv_send_wr *bad;

	small_cq_with(3, 1);
	wait_for(here);
	need(!write_some(DEPTH - 1, 1, &bad), "write"); /* One of them is signalled. */
	wait_for(here);
	receive(here, 3);
	close_ends();
}

static void small_both(void)
{
	small_cq_with(2, 2);
	receive(here, 2);
	receive(here, 3);
	close_ends();
}

/* Works that were dropped, and then completions that were polled, make room. */
static void small_both_kept(void)
{
	struct ibv_wc wc[4];
	int found = 0;

	small_cq_with(3, 1);
	to_error(here);
	while (found < 4) {
		int more = ibv_poll_cq(here->cq, 4, wc);

		need(more >= 0, "poll");
		found += more;
	}
	for (int i = 0; i < 4; i++)
		receive(here, 4);
	for (int i = 0; i < 4; i++)
		wait_for(here);
	close_ends();
}

/* --- shared receive queues --- */

static struct ibv_srq *open_shared(struct ibv_cq *other)
{
	struct ibv_srq_init_attr srq_init = {.attr = {.max_wr = DEPTH, .max_sge = 1}};
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC, .cap = {DEPTH, 0, 2, 0, 64}};
	struct ibv_srq *srq = ibv_create_srq(here->pd, &srq_init);

	need(srq != NULL, "SRQ");
	ibv_destroy_qp(here->qp);
	init.srq = srq;
	init.send_cq = init.recv_cq = here->cq;
	here->qp = ibv_create_qp(here->pd, &init);
	if (other) {
		init.recv_cq = other;
		need(ibv_create_qp(here->pd, &init) != NULL, "QP");
	}
	return srq;
}

static int receive_shared(struct ibv_srq *srq, int count, struct ibv_recv_wr **bad)
{
	static struct ibv_recv_wr wrs[2 * DEPTH];
	static struct ibv_sge sges[2 * DEPTH];

	for (int i = 0; i < count; i++) {
		sges[i] = piece(here, (uint32_t)(64 * i), 64);
		wrs[i] = (struct ibv_recv_wr){
			.wr_id = (uint64_t)i,
			.next = i < count - 1 ? &wrs[i + 1] : NULL,
			.sg_list = &sges[i],
			.num_sge = 1,
		};
	}
	return ibv_post_srq_recv(srq, wrs, bad); /* @receive-shared */
}

static void close_shared(struct ibv_srq *srq)
{
	ibv_destroy_qp(here->qp);
	here->qp = NULL;
	ibv_destroy_srq(srq);
	close_ends();
}

static void small_shared(void)
{
	struct ibv_recv_wr *bad;
	struct ibv_srq *srq;

	open_ends(&small);
	srq = open_shared(NULL);
	need(!receive_shared(srq, 4, &bad), "receives");
	need(!receive_shared(srq, 1, &bad), "receives");
	close_shared(srq);
}

/* Receives that have completed do not count, nor those of a call that was refused. */
static void small_shared_used(int more)
{
	static const struct plan four = {.cqe = 4};
	struct ibv_recv_wr *bad;
	struct ibv_srq *srq;

	open_ends(&four);
	srq = open_shared(NULL);
	connect_both();
	for (int i = 0; i < 3 * DEPTH; i++) {
		need(!receive_shared(srq, 3, &bad), "receives");
		for (int k = 0; k < 3; k++) {
			post(there, IBV_WR_SEND, 1);
			wait_for(there);
			wait_for(here);
		}
	}
	need(!receive_shared(srq, more, &bad), "receives");
	close_shared(srq);
}

static void small_shared_traffic(void)
{
	small_shared_used(5);
}

static void small_shared_traffic_kept(void)
{
	small_shared_used(4);
}

/* A send takes an entry of the CQ, too. */
static void small_shared_send(void)
{
	struct ibv_recv_wr *bad;
	struct ibv_send_wr *bad_send;
	struct ibv_srq *srq;

	open_ends(&small);
	srq = open_shared(NULL);
	connect_both();
	need(!receive_shared(srq, 4, &bad), "receives");
	need(!write_some(1, 1, &bad_send), "write");
	close_shared(srq);
}

static void small_shared_send_kept(void)
{
	struct ibv_recv_wr *bad;
	struct ibv_send_wr *bad_send;
	struct ibv_srq *srq;

	open_ends(&small);
	srq = open_shared(NULL);
	connect_both();
	need(!receive_shared(srq, 3, &bad), "receives");
	need(!write_some(1, 1, &bad_send), "write");
	close_shared(srq);
}

/* An SRQ that no QP uses completes no receive. */
static void small_unused(int used)
{
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC, .cap = {DEPTH, DEPTH, 2, 2, 64}};
	struct ibv_recv_wr *bad;
	struct ibv_srq *srq;
	struct ibv_qp *qp;

	open_ends(&small);
	srq = open_shared(NULL);
	need(!receive_shared(srq, 4, &bad), "receives");
	qp = here->qp;
	init.send_cq = init.recv_cq = here->cq;
	here->qp = ibv_create_qp(here->pd, &init);
	if (!used)
		ibv_destroy_qp(qp);
	connect_both();
	receive(here, 1);
	if (used)
		ibv_destroy_qp(qp);
	close_shared(srq);
}

static void small_shared_used_still(void)
{
	small_unused(1);
}

static void small_shared_used_still_kept(void)
{
	small_unused(0);
}

static void small_shared_kept(void)
{
	struct ibv_recv_wr *bad;
	struct ibv_cq *other;
	struct ibv_srq *srq;

	open_ends(&small);
	other = ibv_create_cq(here->context, 4, NULL, NULL, 0);
	srq = open_shared(other);
	need(!receive_shared(srq, 5, &bad), "receives");
	exit(0);
}

/* --- chains --- */

static void repeated(void)
{
	struct ibv_send_wr *bad, *refused;

	connect_ends(&plan);
	need(!write_some(DEPTH - 3, 1, &bad), "write");
	need(write_some(5, 1, &bad), "a full queue took a chain");
	refused = bad;
	need(write_some(5, 1, &bad), "a full queue took a chain");
	need(refused != bad, "the queue took a send");
	wait_for(here);
	need(!write_some(5, 1, &bad), "write");
	wait_for(here);
	close_ends();
}

static void repeated_kept(void)
{
	struct ibv_send_wr *bad;

	connect_ends(&plan);
	need(!write_some(DEPTH - 3, 1, &bad), "write");
	need(write_some(5, 1, &bad), "a full queue took a chain");
	wait_for(here);
	need(!ibv_post_send(here->qp, bad, &bad), "write");
	wait_for(here);
	need(!write_some(5, 1, &bad), "write");
	wait_for(here);
	close_ends();
}

/* Returns a chain of receives; all alike if asked. */
static struct ibv_recv_wr *receive_chain(int count, int alike)
{
	static struct ibv_recv_wr wrs[DEPTH];
	static struct ibv_sge sges[DEPTH];

	for (int i = 0; i < count; i++) {
		sges[i] = piece(here, alike ? 0 : (uint32_t)(64 * i), 64);
		wrs[i] = (struct ibv_recv_wr){
			.wr_id = alike ? 0 : (uint64_t)i,
			.next = i < count - 1 ? &wrs[i + 1] : NULL,
			.sg_list = &sges[i],
			.num_sge = 1,
		};
	}
	return wrs;
}

static int post_chain(struct ibv_srq *srq, struct ibv_recv_wr *chain, struct ibv_recv_wr **bad)
{
	return srq ? ibv_post_srq_recv(srq, chain, bad)	  /* @post-shared-chain */
		   : ibv_post_recv(here->qp, chain, bad); /* @post-chain */
}

/* A chain is refused at its third receive. A message frees a slot, and the next call is accepted. */
static void repeat_receives(int shared, int alike, int from_head)
{
	struct ibv_recv_wr *chain, *bad;
	struct ibv_srq *srq = NULL;

	open_ends(&plan);
	if (shared)
		srq = open_shared(NULL);
	connect_both();
	for (int i = 0; i < DEPTH - 2; i++) {
		if (srq)
			need(!receive_shared(srq, 1, &bad), "receive");
		else
			receive(here, 100);
	}
	chain = receive_chain(4, alike);
	need(post_chain(srq, chain, &bad), "a full queue took receives");
	for (int i = 0; i < 2; i++) {
		post(there, IBV_WR_SEND_WITH_IMM, 1);
		wait_for(there);
		wait_for(here);
	}
	need(!post_chain(srq, from_head ? chain : bad, &bad) || from_head, "receives");
	if (srq)
		close_shared(srq);
	else
		close_ends();
}

static void repeated_receives(void)
{
	repeat_receives(0, 0, 1);
}

static void repeated_receives_kept(void)
{
	repeat_receives(0, 0, 0);
}

static void repeated_shared(void)
{
	repeat_receives(1, 0, 1);
}

static void repeated_shared_kept(void)
{
	repeat_receives(1, 0, 0);
}

/* The next call posts other work in the structures of the refused chain. */
static void repeat_changed(int changed)
{
	struct ibv_recv_wr *chain, *bad;

	connect_ends(&plan);
	chain = receive_chain(4, 0);
	for (int i = 0; i < DEPTH - 2; i++)
		receive(here, 100);
	need(post_chain(NULL, chain, &bad), "a full queue took receives");
	post(there, IBV_WR_SEND_WITH_IMM, 1);
	wait_for(there);
	wait_for(here);
	chain->wr_id += (uint64_t)changed;
	post_chain(NULL, chain, &bad);
	close_ends();
}

static void repeated_changed(void)
{
	repeat_changed(0);
}

static void repeated_changed_kept(void)
{
	repeat_changed(1);
}

static void repeated_alike(void)
{
	repeat_receives(0, 0, 1);
}

/* Receives that are all alike may be posted as often as one likes. */
static void repeated_alike_kept(void)
{
	repeat_receives(0, 1, 1);
}

static const struct mode modes[] = {
	{"unsignalled", unsignalled},
	{"unsignalled-kept", unsignalled_kept},
	{"interval", interval},
	{"interval-kept", interval_kept},
	{"unsignalled-after-reset", reset},
	{"unsignalled-after-reset-kept", reset_kept},
	{"unsignalled-in-error", in_error},
	{"unsignalled-in-error-kept", in_error_kept},
	{"unsignalled-batch", batch},
	{"unsignalled-batch-kept", batch_kept},
	{"small-cq-receives", small_receives},
	{"small-cq-receives-kept", small_receives_kept},
	{"small-cq-both", small_both},
	{"small-cq-both-kept", small_both_kept},
	{"small-cq-shared", small_shared},
	{"small-cq-shared-kept", small_shared_kept},
	{"small-cq-shared-traffic", small_shared_traffic},
	{"small-cq-shared-traffic-kept", small_shared_traffic_kept},
	{"small-cq-shared-send", small_shared_send},
	{"small-cq-shared-send-kept", small_shared_send_kept},
	{"small-cq-shared-unused", small_shared_used_still},
	{"small-cq-shared-unused-kept", small_shared_used_still_kept},
	{"chain-repeated", repeated},
	{"chain-repeated-kept", repeated_kept},
	{"chain-repeated-receives", repeated_receives},
	{"chain-repeated-receives-kept", repeated_receives_kept},
	{"chain-repeated-shared", repeated_shared},
	{"chain-repeated-shared-kept", repeated_shared_kept},
	{"chain-repeated-changed", repeated_changed},
	{"chain-repeated-changed-kept", repeated_changed_kept},
	{"chain-repeated-alike", repeated_alike},
	{"chain-repeated-alike-kept", repeated_alike_kept},
	{0},
};

int main(int argc, char **argv)
{
	return run_mode(argc, argv, modes);
}
