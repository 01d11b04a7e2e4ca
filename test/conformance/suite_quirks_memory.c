/* SPDX-License-Identifier: MIT */
/* Quirks of protection domains and memory regions. */
#include "test/conformance/sources.h"
#include "test/support/keep.h"
#include "test/support/quirks.h"
#include "test/support/window.h"

/* The quirk is about InfiniBand: on Ethernet, the PD stays busy. */
static void ahs_in_user_space(struct vt *t)
{
	static const struct {
		int link_layer, error;
	} rows[] = {{IBV_LINK_LAYER_ETHERNET, EBUSY}, {IBV_LINK_LAYER_INFINIBAND, 0}};
	size_t i;

	for (i = 0; i < TS_COUNT(rows); i++) {
		const struct vb_sim_device_config device = {.name = "other",
							    .quirks = "ahs_in_user_space",
							    .link_layer = rows[i].link_layer};
		const struct ts_options options = ts_defaults(t, IBV_QPT_UD);
		struct ts_end *end = ts_other_device(t, &device, &options);
		struct ibv_pd *pd = VT_PTR(t, vb_alloc_pd(end->node->ctx));
		struct ibv_ah_attr attr = ts_av(end->node, end->node);
		struct ibv_ah *ah = VT_PTR(t, vb_create_ah(pd, &attr));

		vt_row(t, "link layer %d", rows[i].link_layer);
		VT_ERRNO(t, vb_dealloc_pd(pd), rows[i].error);
		VT_OK(t, vb_destroy_ah(ah));
		if (rows[i].error)
			VT_OK(t, vb_dealloc_pd(pd));
	}
}

static void empty_regions_refused(struct vt *t)
{
	struct ibv_mr *mr;
	struct ibv_pd *pd;
	uint8_t *memory;

	ts_quirks(t, "empty_regions_refused", NULL);
	pd = ts_pd(t, &t->a);
	memory = ts_memory(t, 4096);
	VT_NULL_ERRNO(t, vb_reg_mr(pd, memory, 0, IBV_ACCESS_LOCAL_WRITE), EINVAL);
	mr = VT_PTR(t, vb_reg_mr(pd, memory + 1, 0, IBV_ACCESS_LOCAL_WRITE));
	VT_OK(t, vb_dereg_mr(mr));
}

static void local_write_not_required(struct vt *t)
{
	struct ts_pair *pair;
	struct ibv_mr *mr;

	ts_quirks(t, "local_write_not_required", NULL);
	pair = ts_connected(t, IBV_QPT_RC);
	mr = ts_mr(t, pair->b.pd, pair->b.buffer, 4096,
		   IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC);
	ts_write(&pair->a, .wr_id = 1, .length = 100, .rkey = mr->rkey);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_RDMA_WRITE);
	ts_verify(t, pair->b.buffer, 100, 1);
	ts_fetch_add(&pair->a, .wr_id = 2, .rkey = mr->rkey);
	ts_done(t, pair->a.send_cq, 2, IBV_WC_FETCH_ADD);
}

static void bound_regions_are_einval(struct vt *t)
{
	struct ts_pair *pair;
	struct ibv_mw *mw;

	ts_quirks(t, "bound_regions_are_einval", NULL);
	pair = ts_window_pair(t);
	mw = ts_mw(&pair->b, IBV_MW_TYPE_2);
	ts_bound(&pair->b, mw, .wr_id = 9);
	VT_ERRNO(t, vb_dereg_mr(pair->b.mr), EINVAL);
	ts_reaches(pair, mw->rkey, 0);
}

static struct ibv_mr *region(struct ts_end *end, int access)
{
	return vb_reg_mr(end->pd, end->buffer, 4096, access);
}

static void local_regions_have_no_rkey(struct vt *t)
{
	struct ts_pair *pair;
	struct ibv_mr *mr;

	ts_quirks(t, "local_regions_have_no_rkey", NULL);
	pair = ts_connected(t, IBV_QPT_RC);
	mr = VT_PTR(t, region(&pair->a, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND));
	VT_EQ(t, mr->rkey, 0);
	VT_CHECK(t, mr->lkey);
	VT_OK(t, vb_dereg_mr(mr));
	mr = VT_PTR(t, region(&pair->a, IBV_ACCESS_REMOTE_READ));
	VT_CHECK(t, mr->rkey);
	VT_OK(t, vb_dereg_mr(mr));
	ts_transfer(pair, IBV_WR_RDMA_WRITE, 100);
}

static void special_regions_refused(struct vt *t)
{
	static const int special[] = {IBV_ACCESS_ZERO_BASED, IBV_ACCESS_ON_DEMAND,
				      IBV_ACCESS_HUGETLB};
	struct ts_pair *pair;
	size_t i;

	ts_quirks(t, "special_regions_refused", NULL);
	pair = ts_connected(t, IBV_QPT_RC);
	for (i = 0; i < TS_COUNT(special); i++) {
		vt_row(t, "access 0x%x", special[i]);
		errno = 0;
		VT_CHECK(t, !region(&pair->a, IBV_ACCESS_LOCAL_WRITE | special[i]));
		VT_EQ(t, errno, EOPNOTSUPP);
	}
}

static void keys_are_equal(struct vt *t)
{
	struct ts_pair *pair;

	ts_quirks(t, "keys_are_equal", NULL);
	pair = ts_connected(t, IBV_QPT_RC);
	VT_EQ(t, pair->a.mr->lkey, pair->a.mr->rkey);
	VT_EQ(t, pair->b.mr->lkey, pair->b.mr->rkey);
	ts_transfer(pair, IBV_WR_RDMA_WRITE, 100);
	ts_transfer(pair, IBV_WR_RDMA_READ, 100);
	ts_transfer(pair, IBV_WR_SEND, 100);
}

static const struct vt_test tests[] = {
	{"ahs_in_user_space", SRC_RDMA_CORE "providers/mlx5/verbs.c, mlx5_create_ah", VT_NEEDS_SIM,
	 ahs_in_user_space},
	{"empty_regions_refused", MEASURED_BOTH, VT_NEEDS_SIM, empty_regions_refused},
	{"special_regions_refused", MEASURED_6_12, VT_NEEDS_SIM, special_regions_refused},
	{"local_regions_have_no_rkey", MEASURED_6_1, VT_NEEDS_SIM, local_regions_have_no_rkey},
	{"local_write_not_required", "unsourced", VT_NEEDS_SIM | VT_NEEDS_ATOMICS,
	 local_write_not_required},
	{"keys_are_equal", "Linux drivers/infiniband/hw/mlx5/mr.c, set_mr_fields", VT_NEEDS_SIM,
	 keys_are_equal},
	{"bound_regions_are_einval", MEASURED_BOTH, VT_NEEDS_SIM, bound_regions_are_einval},
	{NULL},
};

const struct vt_suite vt_suite_quirks_memory = {
	"quirks_memory", "quirks: protection domains and memory regions", tests, .simulator = true};
