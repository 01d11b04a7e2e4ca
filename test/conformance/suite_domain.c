/* SPDX-License-Identifier: MIT */
/*
 * Thread domains and parent domains.
 */
#include "test/conformance/sources.h"
#include "test/support/keep.h"
#include "test/support/need.h"
#include "test/support/support.h"

static struct ibv_td *thread_domain(struct vt *t, struct vt_node *node)
{
	struct ibv_td_init_attr attr = {0};
	struct ibv_td *td = TS_PTR_OR_SKIP(t, vb_alloc_td(node->ctx, &attr));

	ts_keep(t, TS_TD, td);
	return td;
}

static struct ibv_pd *parent_of(struct vt *t, struct ibv_pd *pd, struct ibv_td *td)
{
	struct ibv_parent_domain_init_attr attr = {.pd = pd, .td = td};
	struct ibv_pd *parent = TS_PTR_OR_SKIP(t, vb_alloc_parent_domain(pd->context, &attr));

	ts_keep(t, TS_PD, parent);
	return parent;
}

static void parent_domain_is_a_pd(struct vt *t)
{
	struct ibv_pd *pd = ts_pd(t, &t->a);
	struct ibv_td *td = thread_domain(t, &t->a);
	struct ibv_pd *parent = parent_of(t, pd, td);

	VT_CHECK(t, td->context == t->a.ctx);
	VT_CHECK(t, parent->context == t->a.ctx);
	VT_CHECK(t, parent != pd);
}

static void thread_domain_is_optional(struct vt *t)
{
	parent_of(t, ts_pd(t, &t->a), NULL);
}

/* The QP is made in the parent domain and the memory in its PD, or the other way round. */
static void parent_and_its_pd_are_interchangeable(struct vt *t)
{
	struct ts_pair *pair;
	struct ibv_pd *parent;
	int i;

	for (i = 0; i < 2; i++) {
		struct ibv_qp_init_attr_ex init = {0};
		const struct ts_options options = ts_defaults(t, IBV_QPT_RC);

		vt_row(t, i ? "the memory is the parent's" : "the QP is the parent's");
		pair = ts_pair_reset(t, &options);
		parent = parent_of(t, pair->b.pd, thread_domain(t, &t->b));
		if (i)
			pair->b.mr = ts_mr(t, parent, pair->b.buffer, options.buffer_bytes,
					   TS_ACCESS_ALL);
		else
			init.pd = parent;
		ts_remake_qp(&pair->b, &init);
		ts_connect_both(pair);
		ts_transfer(pair, IBV_WR_SEND, 5000);
		ts_transfer(pair, IBV_WR_RDMA_WRITE, 5000);
		ts_transfer(pair, IBV_WR_RDMA_READ, 5000);
	}
}

static void parent_of_another_pd_is_another(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);
	struct ibv_pd *other = parent_of(t, ts_pd(t, &t->b), NULL);
	struct ibv_mr *mr = ts_mr(t, other, pair->b.buffer, 4096, TS_ACCESS_ALL);

	ts_write(&pair->a, .wr_id = 1, .length = 8, .rkey = mr->rkey);
	ts_failed(t, pair->a.send_cq, 1, IBV_WC_REM_ACCESS_ERR);
}

static void domains_of_a_parent_are_ebusy(struct vt *t)
{
	struct ibv_pd *pd = ts_pd(t, &t->a);
	struct ibv_td *td = thread_domain(t, &t->a);
	struct ibv_pd *parent = parent_of(t, pd, td);

	VT_ERRNO(t, vb_dealloc_pd(pd), EBUSY);
	VT_ERRNO(t, vb_dealloc_td(td), EBUSY);
	VT_OK(t, vb_dealloc_pd(parent));
	ts_gone(t, parent);
	VT_OK(t, vb_dealloc_td(td));
	ts_gone(t, td);
	VT_OK(t, vb_dealloc_pd(pd));
	ts_gone(t, pd);
}

static void parent_with_objects_is_ebusy(struct vt *t)
{
	struct ibv_pd *parent = parent_of(t, ts_pd(t, &t->a), thread_domain(t, &t->a));
	struct ibv_ah_attr attr = ts_av(&t->a, &t->b);
	struct ibv_cq *cq = ts_cq(t, &t->a, 4);
	struct ibv_qp *qp = ts_qp(t, parent, cq, IBV_QPT_RC);
	struct ibv_mr *mr;
	struct ibv_ah *ah;

	VT_ERRNO(t, vb_dealloc_pd(parent), EBUSY);
	VT_CHECK(t, qp->pd == parent);
	VT_OK(t, vb_destroy_qp(qp));
	ts_gone(t, qp);
	mr = VT_PTR(t, vb_reg_mr(parent, ts_memory(t, 4096), 4096, 0));
	VT_ERRNO(t, vb_dealloc_pd(parent), EBUSY);
	VT_OK(t, vb_dereg_mr(mr));
	ah = VT_PTR(t, vb_create_ah(parent, &attr));
	VT_OK(t, vb_destroy_ah(ah));
	VT_OK(t, vb_dealloc_pd(parent));
	ts_gone(t, parent);
}

static void bad_attributes_are_refused(struct vt *t)
{
	struct ibv_pd *pd = ts_pd(t, &t->a);
	struct ibv_td_init_attr td_attr = {.comp_mask = 1 << 20};
	struct ibv_parent_domain_init_attr attr = {0};

	parent_of(t, pd, thread_domain(t, &t->a));
	VT_EXPECT(t, !vb_alloc_td(t->a.ctx, &td_attr));
	VT_EXPECT_NULL_ERRNO(t, vb_alloc_parent_domain(t->a.ctx, &attr), EINVAL);
	attr.pd = pd;
	attr.comp_mask = 1 << 20;
	VT_EXPECT(t, !vb_alloc_parent_domain(t->a.ctx, &attr));
}

static const struct vt_test tests[] = {
	{"parent_domain_is_a_pd", "ibv_alloc_td(3), ibv_alloc_parent_domain(3)", 0,
	 parent_domain_is_a_pd},
	{"thread_domain_is_optional", "ibv_alloc_parent_domain(3): td or NULL", 0,
	 thread_domain_is_optional},
	{"parent_and_its_pd_are_interchangeable",
	 "ibv_alloc_parent_domain(3): completely interchangeable", 0,
	 parent_and_its_pd_are_interchangeable},
	{"parent_of_another_pd_is_another", "ibv_alloc_parent_domain(3): extends a PD", 0,
	 parent_of_another_pd_is_another},
	{"domains_of_a_parent_are_ebusy",
	 "ibv_alloc_td(3), ibv_alloc_parent_domain(3): destroyed prior; EBUSY: " SRC_RDMA_CORE
	 "providers/mlx5/verbs.c, mlx5_dealloc_td",
	 0, domains_of_a_parent_are_ebusy},
	{"parent_with_objects_is_ebusy",
	 "ibv_alloc_parent_domain(3): destroyed prior; EBUSY: unsourced", 0,
	 parent_with_objects_is_ebusy},
	{"bad_attributes_are_refused", "ibv_alloc_parent_domain(3): pd can't be NULL", 0,
	 bad_attributes_are_refused},
	{NULL},
};

const struct vt_suite vt_suite_domain = {"domain", "thread and parent domains", tests};
