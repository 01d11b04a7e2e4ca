/* SPDX-License-Identifier: MIT */
/* The keys of work requests. */
#include "pair.h"

static const struct plan plan;

static struct ibv_mr *other_mr; /* of a mode */

/* Posts 64 bytes with these keys. */
static void post_keys(enum ibv_wr_opcode opcode, uint32_t lkey, uint32_t rkey, unsigned int flags)
{
	struct ibv_sge sge = {(uintptr_t)here->memory, 64, lkey};
	struct ibv_send_wr wr = {.wr_id = 7,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = opcode,
				 .send_flags = IBV_SEND_SIGNALED | flags,
				 .wr.rdma = {(uintptr_t)there->memory, rkey}};
	struct ibv_send_wr *bad;

	need(!ibv_post_send(here->qp, &wr, &bad), "send"); /* @post-keys */
}

static void finish(enum ibv_wc_status status)
{
	need(wait_for(here).status == status, "status");
	close_ends();
}

static struct ibv_mr *register_memory(struct ibv_pd *pd, const struct end *end)
{
	struct ibv_mr *mr = ibv_reg_mr(pd, end->memory, MEMORY_BYTES, REMOTE); /* @register */

	need(mr != NULL, "MR");
	return mr;
}

static void deregister(struct ibv_mr *mr)
{
	need(!ibv_dereg_mr(mr), "deregister"); /* @deregister */
}

static void rkey_as_lkey(void)
{
	connect_ends(&plan);
	other_mr = register_memory(here->pd, here);
	post_keys(IBV_WR_RDMA_WRITE, other_mr->rkey, there->mr->rkey, 0);
	deregister(other_mr);
	finish(IBV_WC_LOC_PROT_ERR);
}

static void rkey_as_lkey_kept(void)
{
	connect_ends(&plan);
	other_mr = register_memory(here->pd, here);
	post_keys(IBV_WR_RDMA_WRITE, other_mr->lkey, there->mr->rkey, 0);
	need(wait_for(here).status == IBV_WC_SUCCESS, "status");
	post_keys(IBV_WR_RDMA_WRITE, other_mr->rkey, there->mr->rkey, IBV_SEND_INLINE);
	finish(IBV_WC_SUCCESS);
}

static void lkey_ended(void)
{
	uint32_t lkey;

	connect_ends(&plan);
	other_mr = register_memory(here->pd, here);
	lkey = other_mr->lkey;
	deregister(other_mr);
	post_keys(IBV_WR_RDMA_READ, lkey, there->mr->rkey, 0);
	finish(IBV_WC_LOC_PROT_ERR);
}

static void lkey_ended_kept(void)
{
	connect_ends(&plan);
	other_mr = register_memory(here->pd, here);
	deregister(other_mr);
	other_mr = register_memory(here->pd, here);
	post_keys(IBV_WR_RDMA_READ, other_mr->lkey, there->mr->rkey, 0);
	need(wait_for(here).status == IBV_WC_SUCCESS, "status");
	deregister(other_mr);
	post_keys(IBV_WR_RDMA_READ, here->mr->lkey, there->mr->rkey, 0);
	finish(IBV_WC_SUCCESS);
}

static void lkey_of_other_pd(void)
{
	struct ibv_pd *pd;

	connect_ends(&plan);
	pd = ibv_alloc_pd(here->context);
	other_mr = register_memory(pd, here);
	post_keys(IBV_WR_RDMA_WRITE, other_mr->lkey, there->mr->rkey, 0);
	need(wait_for(here).status == IBV_WC_LOC_PROT_ERR, "status");
	deregister(other_mr);
	ibv_dealloc_pd(pd);
	close_ends();
}

static void lkey_of_other_pd_kept(void)
{
	struct ibv_parent_domain_init_attr attr = {0};
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC, .cap = {DEPTH, DEPTH, 2, 2, 64}};
	struct ibv_qp_attr rtr, rts = rts_attr();
	struct ibv_pd *parent;

	open_ends(&plan);
	attr.pd = here->pd;
	parent = ibv_alloc_parent_domain(here->context, &attr);
	need(parent != NULL, "parent domain");
	ibv_destroy_qp(here->qp);
	init.send_cq = init.recv_cq = here->cq;
	here->qp = ibv_create_qp(parent, &init);
	for (int i = 0; i < 2; i++) {
		rtr = rtr_attr(&ends[!i]);
		to_init(&ends[i], &plan);
		to_rtr(&ends[i], &rtr);
		to_rts(&ends[i], &rts);
	}
	post_keys(IBV_WR_RDMA_WRITE, here->mr->lkey, there->mr->rkey, 0);
	need(wait_for(here).status == IBV_WC_SUCCESS, "status");
	ibv_destroy_qp(here->qp);
	here->qp = NULL;
	ibv_dealloc_pd(parent);
	close_ends();
}

/* Posts a receive of a QP or SRQ with two SGEs, of which the second one has these values. */
static void receive_at(struct ibv_srq *srq, uint64_t addr, uint32_t length, uint32_t lkey)
{
	struct ibv_sge sges[] = {piece(here, 0, 64), {addr, length, lkey}};
	struct ibv_recv_wr wr = {.wr_id = 8, .sg_list = sges, .num_sge = 2}, *bad;

	need(!(srq ? ibv_post_srq_recv(srq, &wr, &bad)	  /* @receive-srq */
		   : ibv_post_recv(here->qp, &wr, &bad)), /* @receive-two */
	     "receive");
}

static void range(void)
{
	connect_ends(&plan);
	receive_at(NULL, (uintptr_t)here->memory + MEMORY_BYTES - 63, 64, here->mr->lkey);
	close_ends();
}

static void range_kept(void)
{
	connect_ends(&plan);
	receive_at(NULL, (uintptr_t)here->memory + MEMORY_BYTES - 64, 64, here->mr->lkey);
	receive_at(NULL, (uintptr_t)here->memory, 0, here->mr->rkey);
	receive_at(NULL, (uintptr_t)here->memory + MEMORY_BYTES + 1, 0, here->mr->lkey);
	other_mr = ibv_alloc_null_mr(here->pd);
	if (other_mr) {
		receive_at(NULL, 0, 64, other_mr->lkey);
		ibv_destroy_qp(here->qp);
		here->qp = NULL;
		deregister(other_mr);
	}
	close_ends();
}

static void shared_receive(void)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 4, .max_sge = 2}};
	struct ibv_srq *srq;

	connect_ends(&plan);
	srq = ibv_create_srq(here->pd, &attr);
	need(srq != NULL, "SRQ");
	receive_at(srq, (uintptr_t)here->memory, 64, here->mr->rkey);
	ibv_destroy_srq(srq);
	close_ends();
}

static void shared_receive_kept(void)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 4, .max_sge = 2}};
	struct ibv_srq *srq;

	connect_ends(&plan);
	srq = ibv_create_srq(here->pd, &attr);
	need(srq != NULL, "SRQ");
	receive_at(srq, (uintptr_t)here->memory, 64, here->mr->lkey);
	ibv_destroy_srq(srq);
	close_ends();
}

static void lkey_unknown(void)
{
	connect_ends(&plan);
	post_keys(IBV_WR_RDMA_WRITE, 0x1234, there->mr->rkey, 0);
	finish(IBV_WC_LOC_PROT_ERR);
}

static void lkey_unknown_kept(void)
{
	connect_ends(&plan);
	post_keys(IBV_WR_RDMA_WRITE, here->mr->lkey, there->mr->rkey, 0);
	finish(IBV_WC_SUCCESS);
}

static void lkey_as_rkey(void)
{
	connect_ends(&plan);
	other_mr = register_memory(there->pd, there);
	post_keys(IBV_WR_RDMA_WRITE, here->mr->lkey, other_mr->lkey, 0);
	finish(IBV_WC_REM_ACCESS_ERR);
}

static void lkey_as_rkey_kept(void)
{
	connect_ends(&plan);
	other_mr = register_memory(there->pd, there);
	post_keys(IBV_WR_RDMA_WRITE, here->mr->lkey, other_mr->rkey, 0);
	finish(IBV_WC_SUCCESS);
}

static void rkey_ended(void)
{
	uint32_t rkey;

	connect_ends(&plan);
	other_mr = register_memory(there->pd, there);
	rkey = other_mr->rkey;
	deregister(other_mr);
	post_keys(IBV_WR_RDMA_READ, here->mr->lkey, rkey, 0);
	finish(IBV_WC_REM_ACCESS_ERR);
}

static void rkey_ended_kept(void)
{
	connect_ends(&plan);
	other_mr = register_memory(there->pd, there);
	deregister(other_mr);
	other_mr = register_memory(there->pd, there);
	post_keys(IBV_WR_RDMA_READ, here->mr->lkey, other_mr->rkey, 0);
	finish(IBV_WC_SUCCESS);
}

static void rkey_of_other_pd(void)
{
	struct ibv_pd *pd;

	connect_ends(&plan);
	pd = ibv_alloc_pd(there->context);
	other_mr = register_memory(pd, there);
	post_keys(IBV_WR_RDMA_WRITE, here->mr->lkey, other_mr->rkey, 0);
	need(wait_for(here).status == IBV_WC_REM_ACCESS_ERR, "status");
	deregister(other_mr);
	ibv_dealloc_pd(pd);
	close_ends();
}

/* A right that is missing is no wrong key. */
static void rkey_of_other_pd_kept(void)
{
	connect_ends(&plan);
	other_mr = ibv_reg_mr(there->pd, there->memory, MEMORY_BYTES, IBV_ACCESS_LOCAL_WRITE);
	post_keys(IBV_WR_RDMA_WRITE, here->mr->lkey, other_mr->rkey, 0);
	finish(IBV_WC_REM_ACCESS_ERR);
}

#define PAIR(name, function)                  \
	{name, function},                     \
	{                                     \
		name "-kept", function##_kept \
	}

static const struct mode modes[] = {
	PAIR("rkey-as-lkey", rkey_as_lkey),	    PAIR("lkey-ended", lkey_ended),
	PAIR("lkey-of-other-pd", lkey_of_other_pd), PAIR("range", range),
	PAIR("shared-receive", shared_receive),	    PAIR("lkey-unknown", lkey_unknown),
	PAIR("lkey-as-rkey", lkey_as_rkey),	    PAIR("rkey-ended", rkey_ended),
	PAIR("rkey-of-other-pd", rkey_of_other_pd), {0},
};

int main(int argc, char **argv)
{
	return run_mode(argc, argv, modes);
}
