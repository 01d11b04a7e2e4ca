/* SPDX-License-Identifier: MIT */
/*
 * Resources come back: after a call that failed, after the end of an object, and after an object
 * has moved to other users.
 */
#include "test/conformance/sources.h"
#include "test/support/keep.h"
#include "test/support/need.h"
#include "test/support/quirks.h"
#include "test/support/srq.h"
#include "test/support/window.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
#include <verbena/sim.h>

#define TURNS 3

/* An SRQ of a device that does what the specification says. */
static struct ts_shared *shared_of(struct vt *t, uint32_t max_wr)
{
	ts_quirks(t, "", NULL);
	return ts_shared_of(t, max_wr, 1);
}

/* --- calls that fail --- */

static void failed_ah_takes_no_slot(struct vt *t)
{
	struct ibv_pd *pd = ts_pd(t, &t->a);
	struct ibv_ah_attr bad = {.port_num = 99};
	struct ibv_ah_attr good = ts_av(&t->a, &t->b);
	struct ibv_ah *ah;

	VT_OK(t, vb_sim_lower_limit(t->a.ctx, "max_ah", 1));
	for (int i = 0; i < TURNS; i++)
		VT_NULL_ERRNO(t, vb_create_ah(pd, &bad), EINVAL);
	ah = VT_PTR(t, vb_create_ah(pd, &good));
	ts_keep(t, TS_AH, ah);
}

static void failed_window_takes_no_slot(struct vt *t)
{
	struct ibv_pd *pd = ts_pd(t, &t->a);
	struct ibv_mw *mw;

	ts_need_windows(t, IBV_MW_TYPE_1);
	VT_OK(t, vb_sim_lower_limit(t->a.ctx, "max_mw", 1));
	for (int i = 0; i < TURNS; i++) {
		vt_row(t, "turn %d", i + 1);
		mw = VT_PTR(t, vb_alloc_mw(pd, IBV_MW_TYPE_1));
		VT_NULL_ERRNO(t, vb_alloc_mw(pd, IBV_MW_TYPE_1), ENOMEM);
		VT_OK(t, vb_dealloc_mw(mw));
	}
}

/* What cannot be made leaves what it was to be made from as it was. */
static void failed_objects_keep_nothing_busy(struct vt *t)
{
	struct ibv_pd *pd = VT_PTR(t, vb_alloc_pd(t->a.ctx));
	struct ibv_cq *cq = VT_PTR(t, vb_create_cq(t->a.ctx, 1, NULL, NULL, 0));
	struct ibv_srq_init_attr srq = {.attr = {.max_wr = UINT32_MAX, .max_sge = 1}};
	struct ibv_qp_init_attr qp = {
		.send_cq = cq, .recv_cq = cq, .cap = {1, 1, 1, 1, 0}, .qp_type = IBV_QPT_RC};
	void *page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	VT_CHECK(t, page != MAP_FAILED);
	VT_NULL_ERRNO(t, vb_reg_mr(pd, page, 4096, IBV_ACCESS_LOCAL_WRITE), EFAULT);
	munmap(page, 4096);
	VT_NULL_ERRNO(t, vb_create_srq(pd, &srq), EINVAL);
	VT_OK(t, vb_sim_lower_limit(t->a.ctx, "max_qp", 0));
	VT_NULL_ERRNO(t, vb_create_qp(pd, &qp), ENOMEM);
	VT_OK(t, vb_sim_lower_limit(t->a.ctx, "max_mw", 0));
	VT_CHECK(t, !vb_alloc_mw(pd, IBV_MW_TYPE_1));
	VT_OK(t, vb_destroy_cq(cq));
	VT_OK(t, vb_dealloc_pd(pd));
}

static void refused_receive_takes_no_srq_slot(struct vt *t)
{
	struct ts_shared *shared = shared_of(t, 4);
	struct ibv_sge sge[8] = {{.addr = (uintptr_t)shared->buffer, .length = 1}};
	const struct ts_rr bad = {.sge = sge, .num_sge = (int)shared->attr.max_sge + 1};

	VT_CHECK(t, shared->attr.max_sge < TS_COUNT(sge));
	for (int i = 0; i < 10; i++)
		VT_ERRNO(t, ts_post_srq(shared, &bad), EINVAL);
	for (uint32_t i = 0; i < shared->attr.max_wr; i++)
		ts_srq_recv(shared, .wr_id = i, .length = 8);
	VT_ERRNO(t, ts_post_srq(shared, &(struct ts_rr){.length = 8}), ENOMEM);
}

static void failed_rereg_changes_no_pd(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);
	struct ibv_pd *other = VT_PTR(t, vb_alloc_pd(t->b.ctx));
	int flags = IBV_REREG_MR_CHANGE_PD | IBV_REREG_MR_CHANGE_TRANSLATION;
	void *page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	VT_CHECK(t, page != MAP_FAILED);
	VT_CHECK(t, vb_rereg_mr(pair->b.mr, flags, other, page, 4096, 0) != 0);
	munmap(page, 4096);
	ts_transfer(pair, IBV_WR_RDMA_WRITE, 100);
	ts_transfer(pair, IBV_WR_SEND, 100);
	VT_OK(t, vb_dealloc_pd(other));
}

/* --- objects that end --- */

static void ended_objects_leave_their_limit(struct vt *t)
{
	struct ibv_pd *pd = ts_pd(t, &t->a);
	struct ibv_cq *cq = ts_cq(t, &t->a, 4);
	struct ibv_srq_init_attr srq_init = {.attr = {.max_wr = 1, .max_sge = 1}};
	struct ibv_qp_init_attr init = {
		.send_cq = cq, .recv_cq = cq, .cap = {1, 1, 1, 1, 0}, .qp_type = IBV_QPT_RC};
	void *memory = ts_memory(t, 4096);

	VT_OK(t, vb_sim_lower_limit(t->a.ctx, "max_qp", 1));
	VT_OK(t, vb_sim_lower_limit(t->a.ctx, "max_srq", 1));
	VT_OK(t, vb_sim_lower_limit(t->a.ctx, "max_mr", 1));
	VT_OK(t, vb_sim_lower_limit(t->a.ctx, "max_cq", 2));
	VT_OK(t, vb_sim_lower_limit(t->a.ctx, "max_pd", 2));
	for (int i = 0; i < TURNS; i++) {
		struct ibv_qp *qp = VT_PTR(t, vb_create_qp(pd, &init));
		struct ibv_srq *srq = VT_PTR(t, vb_create_srq(pd, &srq_init));
		struct ibv_mr *mr = VT_PTR(t, vb_reg_mr(pd, memory, 4096, 0));
		struct ibv_cq *second_cq = VT_PTR(t, vb_create_cq(t->a.ctx, 1, NULL, NULL, 0));
		struct ibv_pd *second_pd = VT_PTR(t, vb_alloc_pd(t->a.ctx));

		vt_row(t, "turn %d", i + 1);
		VT_OK(t, vb_destroy_qp(qp));
		VT_OK(t, vb_destroy_srq(srq));
		VT_OK(t, vb_dereg_mr(mr));
		VT_OK(t, vb_destroy_cq(second_cq));
		VT_OK(t, vb_dealloc_pd(second_pd));
	}
}

/* Each limit is lowered by itself, and the others stay lowered. */
static void lowered_limits_hold_together(struct vt *t)
{
	struct ibv_device_attr attr;

	VT_OK(t, vb_sim_lower_limit(t->a.ctx, "max_qp", 7));
	VT_OK(t, vb_sim_lower_limit(t->a.ctx, "max_cq", 8));
	VT_OK(t, vb_sim_lower_limit(t->a.ctx, "max_pd", 9));
	VT_OK(t, vb_query_device(t->a.ctx, &attr));
	VT_EQ(t, attr.max_qp, 7);
	VT_EQ(t, attr.max_cq, 8);
	VT_EQ(t, attr.max_pd, 9);
	VT_OK(t, vb_query_device(t->b.ctx, &attr));
	VT_CHECK(t, attr.max_qp > 9 && attr.max_cq > 9 && attr.max_pd > 9);
}

static void limit_of_pds_is_the_devices(struct vt *t)
{
	struct ibv_context *other = ts_context(t, &t->a);
	struct ibv_pd *pd;

	VT_OK(t, vb_sim_lower_limit(t->a.ctx, "max_pd", 2));
	ts_pd(t, &t->a);
	pd = VT_PTR(t, vb_alloc_pd(other));
	ts_keep(t, TS_PD, pd);
	VT_NULL_ERRNO(t, vb_alloc_pd(t->a.ctx), ENOMEM);
	VT_NULL_ERRNO(t, vb_alloc_pd(other), ENOMEM);
}

static void device_memory_comes_back(struct vt *t)
{
	struct ibv_device_attr_ex attr = {0};
	struct ibv_pd *pd = ts_pd(t, &t->a);
	struct ibv_alloc_dm_attr init = {0};
	const int access = IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE;

	VT_OK(t, vb_query_device_ex(t->a.ctx, NULL, &attr, sizeof(attr)));
	if (!attr.max_dm_size)
		VT_SKIP(t, "the device has no device memory");
	init.length = attr.max_dm_size;
	for (int i = 0; i < TURNS; i++) {
		struct ibv_dm *dm = VT_PTR(t, vb_alloc_dm(t->a.ctx, &init));
		struct ibv_mr *mr = VT_PTR(t, vb_reg_dm_mr(pd, dm, 0, 64, access));

		vt_row(t, "turn %d", i + 1);
		VT_ERRNO(t, vb_free_dm(dm), EBUSY);
		VT_OK(t, vb_dereg_mr(mr));
		VT_OK(t, vb_free_dm(dm));
	}
}

static void domains_come_back(struct vt *t)
{
	struct ibv_td_init_attr td_init = {0};
	struct ibv_td *td = TS_PTR_OR_SKIP(t, vb_alloc_td(t->a.ctx, &td_init));
	struct ibv_pd *pd = VT_PTR(t, vb_alloc_pd(t->a.ctx));
	struct ibv_parent_domain_init_attr parent_init = {.pd = pd, .td = td};
	struct ibv_pd *parent = VT_PTR(t, vb_alloc_parent_domain(t->a.ctx, &parent_init));
	struct ibv_cq_init_attr_ex init = {
		.cqe = 4, .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD, .parent_domain = parent};
	struct ibv_cq_ex *cq = VT_PTR(t, vb_create_cq_ex(t->a.ctx, &init));

	VT_ERRNO(t, vb_dealloc_td(td), EBUSY);
	VT_ERRNO(t, vb_dealloc_pd(parent), EBUSY);
	VT_OK(t, vb_destroy_cq(ibv_cq_ex_to_cq(cq)));
	VT_OK(t, vb_dealloc_pd(parent));
	VT_OK(t, vb_dealloc_td(td));
	VT_OK(t, vb_dealloc_pd(pd));
}

static void last_member_frees_the_group(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_UD);
	struct ts_end *end = ts_end(t, &t->a, &options);
	union ibv_gid gid;

	VT_OK(t, vb_sim_lower_limit(t->a.ctx, "max_mcast_grp", 1));
	for (int i = 0; i < TURNS; i++) {
		char name[32];

		vt_row(t, "group %d", i + 1);
		snprintf(name, sizeof(name), "::ffff:239.0.0.%d", i + 1);
		VT_EQ(t, inet_pton(AF_INET6, name, gid.raw), 1);
		VT_OK(t, vb_attach_mcast(end->qp, &gid, 0));
		VT_OK(t, vb_detach_mcast(end->qp, &gid, 0));
	}
}

/* --- objects that move --- */

static void moved_region_frees_its_pd(struct vt *t)
{
	struct ibv_pd *first = VT_PTR(t, vb_alloc_pd(t->a.ctx));
	struct ibv_pd *second = VT_PTR(t, vb_alloc_pd(t->a.ctx));
	struct ibv_mr *mr = VT_PTR(t, vb_reg_mr(first, ts_memory(t, 4096), 4096, 0));
	int err = vb_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, second, NULL, 0, 0);

	if (err == IBV_REREG_MR_ERR_CMD && errno == EOPNOTSUPP) {
		vb_dereg_mr(mr);
		vb_dealloc_pd(second);
		vb_dealloc_pd(first);
		VT_SKIP(t, "the device does not reregister");
	}
	VT_EQ(t, err, 0);
	VT_OK(t, vb_dealloc_pd(first));
	VT_ERRNO(t, vb_dealloc_pd(second), EBUSY);
	VT_OK(t, vb_dereg_mr(mr));
	VT_OK(t, vb_dealloc_pd(second));
}

static void rebound_window_frees_its_region(struct vt *t)
{
	struct ts_pair *pair = ts_window_pair(t);
	const int access = TS_ACCESS_ALL | IBV_ACCESS_MW_BIND;
	struct ibv_mr *other = VT_PTR(t, vb_reg_mr(pair->b.pd, ts_memory(t, 4096), 4096, access));
	struct ibv_mw *mw;

	ts_quirks(t, "", NULL);
	ts_need_windows(t, IBV_MW_TYPE_1);
	mw = ts_mw(&pair->b, IBV_MW_TYPE_1);
	ts_bound(&pair->b, mw, .mr = other, .address = (uintptr_t)other->addr);
	VT_ERRNO(t, vb_dereg_mr(other), EBUSY);
	ts_bound(&pair->b, mw, .wr_id = 2);
	VT_OK(t, vb_dereg_mr(other));
	ts_reaches(pair, mw->rkey, 0);
}

/* --- slots of an SRQ --- */

/* Posts as many receives as the SRQ has room for, which is as many as it had at first. */
static void fills_up(struct ts_shared *shared)
{
	for (uint32_t i = 0; i < shared->attr.max_wr; i++)
		ts_srq_recv(shared, .wr_id = 100 + i, .length = 8);
	VT_ERRNO(shared->t, ts_post_srq(shared, &(struct ts_rr){.length = 8}), ENOMEM);
}

static void destroyed_cq_gives_srq_slots_back(struct vt *t)
{
	struct ts_shared *shared = shared_of(t, 4);
	struct ts_pair *pair = ts_pair_on(shared, IBV_QPT_RC);

	for (int i = 0; i < 3; i++) {
		ts_srq_recv(shared, .wr_id = 50, .length = 8);
		ts_send(&pair->a, .wr_id = 1, .length = 8);
		ts_done(t, pair->a.send_cq, 1, IBV_WC_SEND);
	}
	ts_destroy_qp(&pair->b);
	VT_OK(t, vb_destroy_cq(pair->b.recv_cq));
	ts_gone(t, pair->b.recv_cq);
	fills_up(shared);
}

static void overrun_gives_its_srq_slot_back(struct vt *t)
{
	struct ts_shared *shared = shared_of(t, 4);
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;
	struct ibv_wc wc;
	int room;

	options.recv_cqe = 1;
	pair = ts_pair_on_reset(shared, &options);
	ts_connect_both(pair);
	room = pair->b.recv_cq->cqe;
	if (room > 3)
		VT_SKIP(t, "the device has no CQ of less than 4 entries");
	for (int i = 0; i <= room; i++)
		ts_srq_recv(shared, .wr_id = (uint64_t)i, .length = 8);
	for (int i = 0; i <= room; i++)
		ts_send(&pair->a, .wr_id = 1, .length = 8);
	ts_settle(t);
	ts_drain_events(&t->b);
	for (int i = 0; i < room; i++)
		VT_EQ(t, ibv_poll_cq(pair->b.recv_cq, 1, &wc), 1);
	fills_up(shared);
}

static void removed_completions_give_srq_slots_back(struct vt *t)
{
	struct ts_shared *shared;
	struct ts_pair *pair;

	ts_quirks(t, "reset_removes_completions", NULL);
	shared = ts_shared_of(t, 4, 1);
	pair = ts_pair_on(shared, IBV_QPT_RC);
	for (int i = 0; i < 3; i++) {
		ts_srq_recv(shared, .wr_id = 50, .length = 8);
		ts_send(&pair->a, .wr_id = 1, .length = 8);
		ts_done(t, pair->a.send_cq, 1, IBV_WC_SEND);
	}
	VT_OK(t, ts_to(&pair->b, IBV_QPS_RESET));
	fills_up(shared);
}

/* --- objects in the place of others --- */

/* Devices hand the place of an ended object to a later one, which begins as a new one does. */
static void later_objects_begin_anew(struct vt *t)
{
	struct ibv_pd *pd = ts_pd(t, &t->a);
	struct ibv_alloc_dm_attr init = {.length = 64};
	const int access = IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE;
	struct ibv_dm *dm = TS_PTR_OR_SKIP(t, vb_alloc_dm(t->a.ctx, &init));
	uint8_t *memory = ts_memory(t, 8192);
	int err;

	ts_quirks(t, "", NULL);
	ts_keep(t, TS_DM, dm);
	for (int i = 0; i < 400; i++) {
		struct ibv_mr *mr = VT_PTR(t, vb_reg_dm_mr(pd, dm, 0, 64, access));

		VT_OK(t, vb_dereg_mr(mr));
	}
	for (int i = 0; i < 800; i++) {
		struct ibv_mr *mr = VT_PTR(t, vb_reg_mr(pd, memory, 4096, 0));

		vt_row(t, "region %d", i);
		err = vb_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, memory + 4096, 4096,
				  0);
		VT_OK(t, vb_dereg_mr(mr));
		if (err == IBV_REREG_MR_ERR_CMD)
			VT_SKIP(t, "the device does not reregister");
		VT_EQ(t, err, 0);
	}
}

/* After the end of its root an import can only be unimported. */
static void imports_end_with_their_roots(struct vt *t)
{
	int fd = dup(t->b.ctx->cmd_fd);
	struct ibv_context *ctx = TS_PTR_OR_SKIP(t, vb_import_device(t->backend, fd));
	struct ibv_pd *root_pd = VT_PTR(t, vb_alloc_pd(t->b.ctx)), *pd;
	void *memory = ts_memory(t, 4096);
	struct ibv_mr *root_mr = VT_PTR(t, vb_reg_mr(root_pd, memory, 4096, 0)), *mr;

	ts_keep(t, TS_CONTEXT, ctx);
	pd = VT_PTR(t, vb_import_pd(ctx, root_pd->handle));
	mr = VT_PTR(t, vb_import_mr(pd, root_mr->handle));
	VT_OK(t, vb_dereg_mr(root_mr));
	VT_CHECK(t, vb_dereg_mr(mr) != 0);
	vb_unimport_mr(mr);
	VT_OK(t, vb_dealloc_pd(root_pd));
	VT_CHECK(t, !vb_reg_mr(pd, memory, 4096, 0));
	vb_unimport_pd(pd);
}

static const struct vt_test tests[] = {
	{"failed_ah_takes_no_slot", "ibv_create_ah(3)", VT_NEEDS_SIM, failed_ah_takes_no_slot},
	{"failed_window_takes_no_slot", "ibv_alloc_mw(3)", VT_NEEDS_SIM,
	 failed_window_takes_no_slot},
	{"failed_objects_keep_nothing_busy", "ibv_dealloc_pd(3), ibv_destroy_cq(3)", VT_NEEDS_SIM,
	 failed_objects_keep_nothing_busy},
	{"refused_receive_takes_no_srq_slot", "ibv_post_srq_recv(3)", VT_NEEDS_SRQ,
	 refused_receive_takes_no_srq_slot},
	{"failed_rereg_changes_no_pd", "ibv_rereg_mr(3)", VT_NEEDS_SIM, failed_rereg_changes_no_pd},
	{"ended_objects_leave_their_limit", "ibv_query_device(3)", VT_NEEDS_SIM,
	 ended_objects_leave_their_limit},
	{"lowered_limits_hold_together", "unsourced", VT_NEEDS_SIM | VT_NEEDS_TWO_DEVICES,
	 lowered_limits_hold_together},
	{"limit_of_pds_is_the_devices", "ibv_query_device(3)", VT_NEEDS_SIM,
	 limit_of_pds_is_the_devices},
	{"device_memory_comes_back", "ibv_alloc_dm(3)", 0, device_memory_comes_back},
	{"domains_come_back", "ibv_alloc_td(3), ibv_alloc_parent_domain(3)", 0, domains_come_back},
	{"last_member_frees_the_group", "ibv_query_device(3): max_mcast_grp",
	 VT_NEEDS_SIM | VT_NEEDS_ETHERNET, last_member_frees_the_group},
	{"moved_region_frees_its_pd", "ibv_rereg_mr(3), ibv_dealloc_pd(3)", 0,
	 moved_region_frees_its_pd},
	{"rebound_window_frees_its_region", "ibv_bind_mw(3), ibv_dereg_mr(3)", 0,
	 rebound_window_frees_its_region},
	{"destroyed_cq_gives_srq_slots_back", "unsourced", VT_NEEDS_SRQ,
	 destroyed_cq_gives_srq_slots_back},
	{"overrun_gives_its_srq_slot_back", "unsourced", VT_NEEDS_SIM | VT_NEEDS_SRQ,
	 overrun_gives_its_srq_slot_back},
	{"removed_completions_give_srq_slots_back", "unsourced", VT_NEEDS_SIM | VT_NEEDS_SRQ,
	 removed_completions_give_srq_slots_back},
	{"imports_end_with_their_roots", "ibv_import_pd(3), ibv_import_mr(3)", 0,
	 imports_end_with_their_roots},
	{"later_objects_begin_anew", "unsourced", 0, later_objects_begin_anew},
	{NULL},
};

const struct vt_suite vt_suite_returned = {"returned", "resources that come back", tests,
					   .simulator = true};
