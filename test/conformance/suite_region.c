/* SPDX-License-Identifier: MIT */
/*
 * Memory regions beyond ibv_reg_mr(): reregistered, paged on demand, null, in device memory.
 */
#include "test/conformance/sources.h"
#include "test/support/keep.h"
#include "test/support/need.h"
#include "test/support/quirks.h"
#include "test/support/support.h"
#include "test/support/window.h"

#include <sys/mman.h>
#include <unistd.h>
#include <verbena/fault.h>

/* --- ibv_rereg_mr --- */

static int rereg(struct vt *t, struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr,
		 size_t length, int access)
{
	int code;

	errno = 0;
	code = vb_rereg_mr(mr, flags, pd, addr, length, access);
	if (code && (errno == EOPNOTSUPP || errno == ENOSYS))
		VT_SKIP(t, "the device does not support rereg_mr");
	return code;
}

#define FLIGHT_BYTES 20480u
#define FLIGHT_MTU   256u
#define ARRIVED	     (8 * FLIGHT_MTU)

/* A change of a region while a message is under way, and whether the message survives. */
static const struct {
	const char *name;
	int flags;
	bool other_pd, other_place, wider;
	int access;
	bool goes_on;
} changes[] = {
	{"moved away", IBV_REREG_MR_CHANGE_TRANSLATION, .other_place = true},
	{"more of the same place", IBV_REREG_MR_CHANGE_TRANSLATION, .wider = true, .goes_on = true},
	{"rights taken away", IBV_REREG_MR_CHANGE_ACCESS, .access = 0},
	{"rights added", IBV_REREG_MR_CHANGE_ACCESS, .access = TS_ACCESS_ALL | IBV_ACCESS_MW_BIND,
	 .goes_on = true},
	{"another PD", IBV_REREG_MR_CHANGE_PD, .other_pd = true},
	{"the same PD", IBV_REREG_MR_CHANGE_PD, .goes_on = true},
};

static void change(struct ts_end *end, struct ibv_mr *mr, size_t row, struct ibv_pd *pd,
		   uint8_t *other)
{
	VT_EQ(end->t,
	      rereg(end->t, mr, changes[row].flags, changes[row].other_pd ? pd : end->pd,
		    changes[row].other_place ? other : end->buffer,
		    changes[row].wider ? end->options.buffer_bytes : FLIGHT_BYTES,
		    changes[row].access),
	      0);
}

/* A pair in which a message towards one end is delayed after its first 8 packets. */
static struct ts_pair *held_up(struct vt *t, bool towards_b)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;

	ts_prompt(t);
	options.mtu = IBV_MTU_256;
	pair = ts_pair(t, &options);
	ts_fault(t, &(struct vb_fault_rule){.action = VB_FAULT_DELAY,
					    .dest_qpn = towards_b ? pair->b.qp->qp_num
								  : pair->a.qp->qp_num,
					    .skip = 8,
					    .count = FLIGHT_BYTES / FLIGHT_MTU - 8,
					    .delay_ns = 50000});
	return pair;
}

/* B changes the region that a WRITE is going to. */
static void rereg_under_a_write(struct vt *t)
{
	for (size_t i = 0; i < TS_COUNT(changes); i++) {
		struct ts_pair *pair = held_up(t, true);
		struct ibv_pd *pd = ts_pd(t, &t->b);
		uint8_t *other = ts_memory(t, FLIGHT_BYTES);
		struct ibv_mr *mr = ts_mr(t, pair->b.pd, pair->b.buffer, FLIGHT_BYTES,
					  pair->b.options.mr_access);

		vt_row(t, "%s", changes[i].name);
		memset(other, TS_BLANK, FLIGHT_BYTES);
		ts_write(&pair->a, .wr_id = 1, .length = FLIGHT_BYTES, .rkey = mr->rkey);
		VT_OK(t, vb_sim_run(ts_sim(t), 0));
		ts_verify(t, pair->b.buffer, ARRIVED, 1);
		ts_blank(t, pair->b.buffer + ARRIVED, FLIGHT_BYTES - ARRIVED);
		change(&pair->b, mr, i, pd, other);
		if (changes[i].goes_on) {
			ts_done(t, pair->a.send_cq, 1, IBV_WC_RDMA_WRITE);
			ts_verify(t, pair->b.buffer, FLIGHT_BYTES, 1);
		} else {
			ts_failed(t, pair->a.send_cq, 1, IBV_WC_REM_ACCESS_ERR);
			ts_verify(t, pair->b.buffer, ARRIVED, 1);
			ts_blank(t, pair->b.buffer + ARRIVED, FLIGHT_BYTES - ARRIVED);
		}
		ts_blank(t, other, FLIGHT_BYTES);
		ts_drain_events(&t->b);
	}
}

/*
 * A changes the region that the data of its READ goes to, which may end the READ with a local
 * error.
 */
static void rereg_under_a_read(struct vt *t)
{
	for (size_t i = 0; i < TS_COUNT(changes); i++) {
		struct ts_pair *pair = held_up(t, false);
		struct ibv_pd *pd = ts_pd(t, &t->a);
		uint8_t *other = ts_memory(t, FLIGHT_BYTES);
		struct ibv_mr *mr =
			ts_mr(t, pair->a.pd, pair->a.buffer, FLIGHT_BYTES, IBV_ACCESS_LOCAL_WRITE);

		vt_row(t, "%s", changes[i].name);
		memset(other, TS_BLANK, FLIGHT_BYTES);
		memset(pair->a.buffer, TS_BLANK, FLIGHT_BYTES);
		ts_fill(pair->b.buffer, FLIGHT_BYTES, 3);
		ts_read(&pair->a, .wr_id = 1, .length = FLIGHT_BYTES, .lkey = mr->lkey);
		VT_OK(t, vb_sim_run(ts_sim(t), 0));
		ts_verify(t, pair->a.buffer, ARRIVED, 3);
		ts_blank(t, pair->a.buffer + ARRIVED, FLIGHT_BYTES - ARRIVED);
		change(&pair->a, mr, i, pd, other);
		if (changes[i].goes_on) {
			ts_done(t, pair->a.send_cq, 1, IBV_WC_RDMA_READ);
			ts_verify(t, pair->a.buffer, FLIGHT_BYTES, 3);
		} else {
			ts_failed(t, pair->a.send_cq, 1, IBV_WC_LOC_PROT_ERR);
			ts_verify(t, pair->a.buffer, ARRIVED, 3);
			ts_blank(t, pair->a.buffer + ARRIVED, FLIGHT_BYTES - ARRIVED);
		}
		ts_blank(t, other, FLIGHT_BYTES);
	}
}

/* A writes 8 bytes to B with B's key. */
static void expect_write(struct ts_pair *pair, uint8_t *at, enum ibv_wc_status status)
{
	struct vt *t = pair->a.t;

	memset(at, TS_BLANK, 8);
	ts_write(&pair->a, .wr_id = 1, .length = 8, .remote_address = (uintptr_t)at);
	if (status == IBV_WC_SUCCESS) {
		ts_done(t, pair->a.send_cq, 1, IBV_WC_RDMA_WRITE);
		ts_verify(t, at, 8, 1);
	} else {
		ts_failed(t, pair->a.send_cq, 1, status);
		ts_blank(t, at, 8);
	}
}

static void rereg_moves_it(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);
	uint8_t *other = ts_memory(t, 8192);

	expect_write(pair, pair->b.buffer, IBV_WC_SUCCESS);
	VT_EQ(t, rereg(t, pair->b.mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, other, 8192, 0), 0);
	VT_CHECK(t, pair->b.mr->addr == other);
	VT_EQ(t, pair->b.mr->length, 8192);
	expect_write(pair, other + 8184, IBV_WC_SUCCESS);
	ts_recv(&pair->b, .wr_id = 5, .address = (uintptr_t)other, .length = 100);
	ts_send(&pair->a, .wr_id = 2, .length = 100);
	ts_done(t, pair->a.send_cq, 2, IBV_WC_SEND);
	ts_received(t, pair->b.recv_cq, 5, 100);
	expect_write(pair, pair->b.buffer, IBV_WC_REM_ACCESS_ERR);
}

static void rereg_changes_rights(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;

	options.mr_access = IBV_ACCESS_LOCAL_WRITE;
	pair = ts_pair(t, &options);
	VT_EQ(t,
	      rereg(t, pair->b.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
		    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE),
	      0);
	expect_write(pair, pair->b.buffer, IBV_WC_SUCCESS);
	VT_EQ(t,
	      rereg(t, pair->b.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
		    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ),
	      0);
	expect_write(pair, pair->b.buffer, IBV_WC_REM_ACCESS_ERR);
}

static void rereg_changes_the_pd(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);
	struct ts_pair *other = ts_connected(t, IBV_QPT_RC);
	struct ibv_mr *mr = VT_PTR(t, vb_reg_mr(pair->b.pd, pair->b.buffer, 4096, TS_ACCESS_ALL));

	ts_keep(t, TS_MR, mr);
	VT_EQ(t, rereg(t, mr, IBV_REREG_MR_CHANGE_PD, other->b.pd, NULL, 0, 0), 0);
	VT_CHECK(t, mr->pd == other->b.pd);
	ts_write(&other->a, .wr_id = 1, .length = 8, .rkey = mr->rkey,
		 .remote_address = (uintptr_t)pair->b.buffer);
	ts_done(t, other->a.send_cq, 1, IBV_WC_RDMA_WRITE);
	ts_write(&pair->a, .wr_id = 2, .length = 8, .rkey = mr->rkey);
	ts_failed(t, pair->a.send_cq, 2, IBV_WC_REM_ACCESS_ERR);
}

static void rereg_changes_all_at_once(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);
	uint8_t *other = ts_memory(t, 4096);
	struct ibv_pd *pd = ts_pd(t, &t->b);
	struct ibv_mr *mr = VT_PTR(t, vb_reg_mr(pd, pair->b.buffer, 4096, 0));

	ts_keep(t, TS_MR, mr);
	VT_EQ(t,
	      rereg(t, mr,
		    IBV_REREG_MR_CHANGE_PD | IBV_REREG_MR_CHANGE_TRANSLATION |
			    IBV_REREG_MR_CHANGE_ACCESS,
		    pair->b.pd, other, 4096, TS_ACCESS_ALL),
	      0);
	ts_write(&pair->a, .wr_id = 1, .length = 4096, .rkey = mr->rkey,
		 .remote_address = (uintptr_t)other);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_RDMA_WRITE);
	ts_verify(t, other, 4096, 1);
	VT_OK(t, vb_dealloc_pd(pd));
	ts_gone(t, pd);
}

static void rereg_keeps_the_keys(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);
	uint32_t lkey = pair->b.mr->lkey, rkey = pair->b.mr->rkey;

	VT_EQ(t,
	      rereg(t, pair->b.mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, ts_memory(t, 4096), 4096,
		    0),
	      0);
	VT_EQ(t, pair->b.mr->lkey, lkey);
	VT_EQ(t, pair->b.mr->rkey, rkey);
}

static void rereg_refuses_bad_input(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);
	uint8_t *buffer = pair->b.buffer;
	const struct {
		const char *name;
		int flags;
		void *addr;
		size_t length;
		int access;
	} rows[] = {
		{"unknown flag", 1 << 5, NULL, 0, 0},
		{"no address", IBV_REREG_MR_CHANGE_TRANSLATION, NULL, 4096, 0},
		{"no length", IBV_REREG_MR_CHANGE_TRANSLATION, buffer, 0, 0},
		{"access without its flag", IBV_REREG_MR_CHANGE_TRANSLATION, buffer, 4096,
		 IBV_ACCESS_LOCAL_WRITE},
	};
	size_t i;

	for (i = 0; i < TS_COUNT(rows); i++) {
		vt_row(t, "%s", rows[i].name);
		VT_EXPECT_EQ(t,
			     rereg(t, pair->b.mr, rows[i].flags, NULL, rows[i].addr, rows[i].length,
				   rows[i].access),
			     IBV_REREG_MR_ERR_INPUT);
		VT_EXPECT_EQ(t, errno, EINVAL);
	}
	vt_row(t, NULL);
	expect_write(pair, buffer + 60000, IBV_WC_SUCCESS);
}

static void rereg_that_the_device_refuses(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);
	const struct {
		const char *name;
		int flags;
		void *addr;
		int access;
	} rows[] = {
		{"remote write without local", IBV_REREG_MR_CHANGE_ACCESS, NULL,
		 IBV_ACCESS_REMOTE_WRITE},
		{"unmapped", IBV_REREG_MR_CHANGE_TRANSLATION, (void *)4096, 0},
	};
	size_t i;

	for (i = 0; i < 2; i++) {
		struct ibv_mr *mr = ts_mr(t, pair->b.pd, pair->b.buffer, 4096, TS_ACCESS_ALL);

		vt_row(t, "%s", rows[i].name);
		VT_EXPECT_EQ(t,
			     rereg(t, mr, rows[i].flags, NULL, rows[i].addr, 4096, rows[i].access),
			     IBV_REREG_MR_ERR_CMD);
		VT_OK(t, vb_dereg_mr(mr));
		ts_gone(t, mr);
	}
}

/* --- importing --- */

static void imported_region_is_the_same(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	int fd = dup(t->b.ctx->cmd_fd);

	if (fd < 0)
		VT_SKIP(t, "contexts have no command descriptor");
	ctx = vb_import_device(vb_context_backend(t->b.ctx)->name, fd);
	if (!ctx) {
		int error = errno;

		close(fd);
		ts_need_verb(t, NULL, error, "import_device");
	}
	ts_keep(t, TS_CONTEXT, ctx);
	pd = VT_PTR(t, vb_import_pd(ctx, pair->b.pd->handle));
	mr = VT_PTR(t, vb_import_mr(pd, pair->b.mr->handle));
	VT_EQ(t, mr->lkey, pair->b.mr->lkey);
	VT_EQ(t, mr->rkey, pair->b.mr->rkey);
	VT_CHECK(t, mr->addr == NULL);
	vb_unimport_mr(mr);
	vb_unimport_pd(pd);
	expect_write(pair, pair->b.buffer, IBV_WC_SUCCESS);
}

/* --- paging on demand --- */

static struct ibv_device_attr_ex extended_attr(struct vt *t, struct vt_node *node)
{
	struct ibv_device_attr_ex attr = {0};

	VT_OK(t, vb_query_device_ex(node->ctx, NULL, &attr, sizeof(attr)));
	return attr;
}

static void need_odp(struct vt *t, uint64_t general)
{
	const uint32_t all = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_WRITE |
			     IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_ATOMIC;
	struct ibv_odp_caps a = extended_attr(t, &t->a).odp_caps;
	struct ibv_odp_caps b = extended_attr(t, &t->b).odp_caps;

	if ((a.general_caps & b.general_caps & general) != general)
		VT_SKIP(t, "the device does not page on demand with the capabilities 0x%llx",
			(unsigned long long)general);
	if ((a.per_transport_caps.rc_odp_caps & b.per_transport_caps.rc_odp_caps & all) != all)
		VT_SKIP(t, "the device does not do every operation of RC with paging on demand");
}

static void each_operation(struct ts_pair *pair)
{
	static const enum ibv_wr_opcode opcodes[] = {IBV_WR_SEND, IBV_WR_RDMA_WRITE,
						     IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_READ};
	size_t i;

	for (i = 0; i < TS_COUNT(opcodes); i++) {
		vt_row(pair->a.t, "opcode %d", opcodes[i]);
		ts_transfer(pair, opcodes[i], 9000);
	}
	vt_row(pair->a.t, NULL);
}

static void on_demand_region_serves_each_operation(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);

	need_odp(t, IBV_ODP_SUPPORT);
	options.mr_access |= IBV_ACCESS_ON_DEMAND;
	each_operation(ts_pair(t, &options));
}

static void implicit_region_reaches_everything(struct vt *t)
{
	struct ts_pair *pair;
	struct ts_end *ends[2];
	int i;

	need_odp(t, IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT);
	pair = ts_connected(t, IBV_QPT_RC);
	ends[0] = &pair->a;
	ends[1] = &pair->b;
	for (i = 0; i < 2; i++)
		ends[i]->mr =
			ts_mr(t, ends[i]->pd, NULL, SIZE_MAX, TS_ACCESS_ALL | IBV_ACCESS_ON_DEMAND);
	each_operation(pair);
	pair->b.buffer = ts_memory(t, 65536);
	each_operation(pair);
}

/* The memory is mapped only after it was registered. */
static void on_demand_memory_may_come_later(struct vt *t)
{
	struct ts_pair *pair;
	uint8_t *later;

	need_odp(t, IBV_ODP_SUPPORT);
	pair = ts_connected(t, IBV_QPT_RC);
	later = ts_memory(t, 8192);
	ts_protect(t, later, 8192, PROT_NONE);
	pair->b.mr = ts_mr(t, pair->b.pd, later, 8192, TS_ACCESS_ALL | IBV_ACCESS_ON_DEMAND);
	ts_protect(t, later, 8192, PROT_READ | PROT_WRITE);
	expect_write(pair, later + 4096, IBV_WC_SUCCESS);
}

static void nothing_is_behind_unmapped_addresses(struct vt *t)
{
	struct ts_pair *pair;
	struct ibv_wc wc;

	need_odp(t, IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT);
	pair = ts_connected(t, IBV_QPT_RC);
	pair->b.mr = ts_mr(t, pair->b.pd, NULL, SIZE_MAX, TS_ACCESS_ALL | IBV_ACCESS_ON_DEMAND);
	ts_write(&pair->a, .wr_id = 1, .length = 8, .remote_address = 4096);
	VT_EQ(t, ts_wait(t, pair->a.send_cq, 1, &wc), 1);
	VT_CHECK(t, wc.status == IBV_WC_REM_ACCESS_ERR || wc.status == IBV_WC_REM_OP_ERR);
}

static void advise_mr_takes_and_refuses(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_end *end;
	struct ibv_pd *other = ts_pd(t, &t->a);
	struct ibv_mr *mr, *constant, *pinned;
	struct ibv_sge sge, outside, unknown, read_only, not_odp, remote, window;
	struct ibv_mw *mw;

	need_odp(t, IBV_ODP_SUPPORT);
	ts_need_windows(t, IBV_MW_TYPE_2);
	end = ts_end(t, &t->a, &options);
	mr = ts_mr(t, end->pd, end->buffer, 8192, TS_ACCESS_ALL | IBV_ACCESS_ON_DEMAND);
	constant = ts_mr(t, end->pd, end->buffer, 8192, IBV_ACCESS_ON_DEMAND);
	pinned = ts_mr(t, end->pd, end->buffer, 8192, TS_ACCESS_ALL);
	sge = (struct ibv_sge){(uintptr_t)end->buffer, 8192, mr->lkey};
	outside = (struct ibv_sge){(uintptr_t)end->buffer + 1, 8192, mr->lkey};
	unknown = (struct ibv_sge){(uintptr_t)end->buffer, 8, ts_wrong_key(mr->lkey)};
	read_only = (struct ibv_sge){(uintptr_t)end->buffer, 8, constant->lkey};
	not_odp = (struct ibv_sge){(uintptr_t)end->buffer, 8, pinned->lkey};
	remote = (struct ibv_sge){(uintptr_t)end->buffer, 8, mr->rkey};
	mw = ts_mw(end, IBV_MW_TYPE_2);
	window = (struct ibv_sge){(uintptr_t)end->buffer, 8, mw->rkey};
	const struct {
		const char *name;
		struct ibv_pd *pd;
		int advice;
		uint32_t flags;
		struct ibv_sge *sge;
		int error;
	} rows[] = {
		{"read", end->pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 0},
		{"flushed", end->pd, IBV_ADVISE_MR_ADVICE_PREFETCH, IBV_ADVISE_MR_FLAG_FLUSH, &sge,
		 0},
		{"write", end->pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, 0, &sge, 0},
		{"no fault", end->pd, IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT, 0, &sge, 0},
		{"read of a constant one", end->pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &read_only,
		 0},
		{"unknown advice", end->pd, 77, 0, &sge, ENOTSUP},
		{"unknown flags", end->pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 1 << 9, &sge, EINVAL},
		{"out of bounds", end->pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &outside, EFAULT},
		{"unknown key", end->pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &unknown, ENOENT},
		{"key of a window", end->pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &window, EINVAL},
		{"write to a constant one", end->pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, 0,
		 &read_only, EPERM},
		{"another PD's key", other, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, EPERM},
		{"not on demand", end->pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &not_odp, ENOENT},
		{"not on demand, of another PD", other, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &not_odp,
		 ENOENT},
	};
	size_t i;

	for (i = 0; i < TS_COUNT(rows); i++) {
		vt_row(t, "%s", rows[i].name);
		VT_EXPECT_ERRNO(t,
				vb_advise_mr(rows[i].pd, (enum ibv_advise_mr_advice)rows[i].advice,
					     rows[i].flags, rows[i].sge, 1),
				rows[i].error);
	}
	/* On some devices, an MR has one key for both. */
	if (mr->rkey != mr->lkey)
		VT_EXPECT_ERRNO(t,
				vb_advise_mr(end->pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &remote, 1),
				ENOENT);
}

/* --- what a profile lacks --- */

/* Each calls a verb, by vb_* or inline, and undoes it. 0 or errno. */
static int try_dm(struct ts_end *end, bool inline_call)
{
	struct ibv_alloc_dm_attr attr = {.length = 64};
	struct ibv_context *ctx = end->node->ctx;
	struct ibv_dm *made = inline_call ? ibv_alloc_dm(ctx, &attr) : vb_alloc_dm(ctx, &attr);

	return made ? vb_free_dm(made) : errno;
}

static int try_td(struct ts_end *end, bool inline_call)
{
	struct ibv_td_init_attr attr = {0};
	struct ibv_context *ctx = end->node->ctx;
	struct ibv_td *made = inline_call ? ibv_alloc_td(ctx, &attr) : vb_alloc_td(ctx, &attr);

	return made ? vb_dealloc_td(made) : errno;
}

static int try_parent_domain(struct ts_end *end, bool inline_call)
{
	struct ibv_parent_domain_init_attr attr = {.pd = end->pd};
	struct ibv_context *ctx = end->node->ctx;
	struct ibv_pd *made = inline_call ? ibv_alloc_parent_domain(ctx, &attr)
					  : vb_alloc_parent_domain(ctx, &attr);

	return made ? vb_dealloc_pd(made) : errno;
}

static int try_null_mr(struct ts_end *end, bool inline_call)
{
	struct ibv_mr *made = inline_call ? ibv_alloc_null_mr(end->pd) : vb_alloc_null_mr(end->pd);

	return made ? vb_dereg_mr(made) : errno;
}

static int try_advice(struct ts_end *end, bool inline_call)
{
	const enum ibv_advise_mr_advice fetch = IBV_ADVISE_MR_ADVICE_PREFETCH;
	struct ibv_sge sge = {(uintptr_t)end->buffer, 8, end->mr->lkey};

	return inline_call ? ibv_advise_mr(end->pd, fetch, 0, &sge, 1)
			   : vb_advise_mr(end->pd, fetch, 0, &sge, 1);
}

static int try_clock(struct ts_end *end, bool inline_call)
{
	struct ibv_values_ex values = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK};
	struct ibv_context *ctx = end->node->ctx;

	return inline_call ? ibv_query_rt_values_ex(ctx, &values)
			   : vb_query_rt_values_ex(ctx, &values);
}

/* The MR of the advice is not on demand. */
static void expect_options(struct ts_end *end, const char *profile, bool lacking)
{
	static const struct {
		const char *verb;
		int (*try_it)(struct ts_end *end, bool inline_call);
		int error;
	} rows[] = {{"alloc_dm", try_dm, 0},
		    {"alloc_td", try_td, 0},
		    {"alloc_parent_domain", try_parent_domain, 0},
		    {"alloc_null_mr", try_null_mr, 0},
		    {"advise_mr", try_advice, ENOENT},
		    {"query_rt_values_ex", try_clock, 0}};

	for (size_t i = 0; i < TS_COUNT(rows); i++)
		for (int inline_call = 0; inline_call < 2; inline_call++) {
			vt_row(end->t, "%s: %s_%s", profile, inline_call ? "ibv" : "vb",
			       rows[i].verb);
			VT_EXPECT_ERRNO(end->t, rows[i].try_it(end, inline_call),
					lacking ? EOPNOTSUPP : rows[i].error);
		}
}

/* The provider of rxe in rdma-core has none of these verbs, that of mlx5 has all. */
static void profile_decides_what_is_lacking(struct vt *t)
{
	static const struct {
		const char *profile;
		bool lacking;
	} rows[] = {{"spec", false}, {"mlx5", false}, {"rxe-6.1", true}, {"rxe-6.12", true}};

	for (size_t i = 0; i < TS_COUNT(rows); i++) {
		struct vb_sim_device_config device = {.name = "other"};
		struct ts_options options = ts_defaults(t, IBV_QPT_RC);

		strcpy(device.profile, rows[i].profile);
		options.mtu = IBV_MTU_1024;
		expect_options(ts_other_device(t, &device, &options), rows[i].profile,
			       rows[i].lacking);
	}
}

/* --- flags --- */

static void optional_flags_change_nothing(struct vt *t)
{
	static const int flags[] = {IBV_ACCESS_RELAXED_ORDERING,
				    (int)IBV_ACCESS_OPTIONAL_FIRST << 5};
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	int access = options.mr_access;
	size_t i;

	for (i = 0; i < 2; i++) {
		vt_row(t, "flag 0x%x", (unsigned int)flags[i]);
		options.mr_access = access | flags[i];
		each_operation(ts_pair(t, &options));
	}
}

static void zero_based_region_begins_at_0(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;
	struct ibv_sge from[2];

	options.mr_access |= IBV_ACCESS_ZERO_BASED;
	pair = ts_pair(t, &options);
	/*
	 * struct ts_wr takes address 0 for the buffer, so the test uses SGEs and starts at address
	 * 1.
	 */
	from[0] = (struct ibv_sge){0, 100, pair->a.mr->lkey};
	from[1] = (struct ibv_sge){100, 200, pair->a.mr->lkey};
	ts_write(&pair->a, .wr_id = 1, .sge = from, .num_sge = 2, .remote_address = 1);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_RDMA_WRITE);
	ts_verify(t, pair->b.buffer + 1, 300, 1);
	ts_blank(t, pair->b.buffer, 1);
	ts_write(&pair->a, .wr_id = 2, .sge = from, .num_sge = 1,
		 .remote_address = options.buffer_bytes - 99);
	ts_failed(t, pair->a.send_cq, 2, IBV_WC_REM_ACCESS_ERR);
}

/* --- the null region --- */

static struct ibv_mr *null_mr(struct ts_end *end)
{
	struct ibv_mr *mr = TS_PTR_OR_SKIP(end->t, vb_alloc_null_mr(end->pd));

	ts_keep(end->t, TS_MR, mr);
	return mr;
}

static void null_region_reads_zeros(struct vt *t)
{
	static const uint8_t zeros[20000];
	struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);
	struct ibv_mr *null = null_mr(&pair->a);

	ts_write(&pair->a, .wr_id = 1, .lkey = null->lkey, .address = 0x123456789000,
		 .length = 20000);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_RDMA_WRITE);
	VT_EQ_MEM(t, pair->b.buffer, zeros, 20000);
	ts_blank(t, pair->b.buffer + 20000, 100);
}

static void null_region_discards_what_is_written(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);
	struct ibv_mr *null = null_mr(&pair->b);
	struct ibv_sge to[2] = {{(uintptr_t)pair->b.buffer, 10000, null->lkey},
				{(uintptr_t)pair->b.buffer + 10000, 100, pair->b.mr->lkey}};
	uint8_t bytes[10100];

	ts_recv(&pair->b, .wr_id = 5, .sge = to, .num_sge = 2);
	ts_send(&pair->a, .wr_id = 1, .length = 10100);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_SEND);
	ts_received(t, pair->b.recv_cq, 5, 10100);
	ts_blank(t, pair->b.buffer, 10000);
	ts_fill(bytes, sizeof(bytes), 1);
	VT_EQ_MEM(t, pair->b.buffer + 10000, bytes + 10000, 100);
	ts_read(&pair->b, .wr_id = 2, .lkey = null->lkey, .address = 8, .length = 9000);
	ts_done(t, pair->b.send_cq, 2, IBV_WC_RDMA_READ);
}

static void null_region_is_not_for_peers(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);
	struct ibv_mr *null = null_mr(&pair->b);

	VT_CHECK(t, rereg(t, null, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
			  IBV_ACCESS_LOCAL_WRITE) != 0);
	ts_write(&pair->a, .wr_id = 1, .length = 8, .rkey = null->rkey ? null->rkey : null->lkey);
	ts_failed(t, pair->a.send_cq, 1, IBV_WC_REM_ACCESS_ERR);
}

/* --- device memory --- */

#define DM_BYTES 4096

static struct ibv_dm *dm(struct ts_end *end)
{
	struct ibv_alloc_dm_attr attr = {.length = DM_BYTES, .log_align_req = 6};
	struct ibv_dm *got;

	if (extended_attr(end->t, end->node).max_dm_size < DM_BYTES)
		VT_SKIP(end->t, "no %d bytes of device memory", DM_BYTES);
	got = VT_PTR(end->t, vb_alloc_dm(end->node->ctx, &attr));
	ts_keep(end->t, TS_DM, got);
	return got;
}

static struct ibv_mr *dm_mr(struct ts_end *end, struct ibv_dm *of, uint64_t offset, size_t length)
{
	struct ibv_mr *mr = VT_PTR(end->t, vb_reg_dm_mr(end->pd, of, offset, length,
							TS_ACCESS_ALL | IBV_ACCESS_ZERO_BASED));

	ts_keep(end->t, TS_MR, mr);
	return mr;
}

static void device_memory_is_copied(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_end *end = ts_end(t, &t->a, &options);
	struct ibv_dm *memory = dm(end);
	uint8_t bytes[1000];

	VT_CHECK(t, memory->context == t->a.ctx);
	VT_OK(t, vb_memcpy_to_dm(memory, 100, end->buffer, 1000));
	memset(bytes, TS_BLANK, sizeof(bytes));
	VT_OK(t, vb_memcpy_from_dm(bytes, memory, 100, 900));
	ts_verify(t, bytes, 900, 1);
	ts_blank(t, bytes + 900, 100);
	VT_OK(t, vb_memcpy_to_dm(memory, DM_BYTES - 8, end->buffer, 8));
}

static void device_memory_has_bounds(struct vt *t)
{
	static const struct {
		uint64_t offset;
		size_t length;
	} rows[] = {{0, DM_BYTES + 1}, {DM_BYTES, 1}, {DM_BYTES - 8, 9}, {UINT64_MAX - 7, 8}};
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_end *end = ts_end(t, &t->a, &options);
	struct ibv_dm *memory = dm(end);
	size_t i;

	for (i = 0; i < TS_COUNT(rows); i++) {
		vt_row(t, "%zu bytes at %llu", rows[i].length, (unsigned long long)rows[i].offset);
		VT_EXPECT(t, vb_memcpy_to_dm(memory, rows[i].offset, end->buffer, rows[i].length) !=
				     0);
		VT_EXPECT(t, vb_memcpy_from_dm(end->buffer, memory, rows[i].offset,
					       rows[i].length) != 0);
		VT_EXPECT(t, !vb_reg_dm_mr(end->pd, memory, rows[i].offset, rows[i].length,
					   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ZERO_BASED));
	}
	ts_verify(t, end->buffer, DM_BYTES + 1, 1);
}

static void device_memory_is_zero_based(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_end *end = ts_end(t, &t->a, &options);
	struct ibv_dm *memory = dm(end);

	VT_NULL_ERRNO(t, vb_reg_dm_mr(end->pd, memory, 0, 8, IBV_ACCESS_LOCAL_WRITE), EINVAL);
}

static void device_memory_serves_peers(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);
	struct ibv_dm *memory = dm(&pair->b);
	struct ibv_mr *mr = dm_mr(&pair->b, memory, 64, 1024);
	uint8_t bytes[1000];

	ts_write(&pair->a, .wr_id = 1, .length = 1000, .rkey = mr->rkey, .remote_address = 24);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_RDMA_WRITE);
	VT_OK(t, vb_memcpy_from_dm(bytes, memory, 64 + 24, 1000));
	ts_verify(t, bytes, 1000, 1);
	ts_read(&pair->a, .wr_id = 2, .offset = 30000, .length = 1000, .rkey = mr->rkey,
		.remote_address = 24);
	ts_done(t, pair->a.send_cq, 2, IBV_WC_RDMA_READ);
	ts_verify(t, pair->a.buffer + 30000, 1000, 1);
	ts_write(&pair->a, .wr_id = 3, .length = 8, .rkey = mr->rkey, .remote_address = 1017);
	ts_failed(t, pair->a.send_cq, 3, IBV_WC_REM_ACCESS_ERR);
}

static void device_memory_is_counted(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);
	struct ibv_dm *memory = dm(&pair->b);
	struct ibv_mr *mr = dm_mr(&pair->b, memory, 0, 1024);
	uint64_t value = 40;
	unsigned int i;

	VT_OK(t, vb_memcpy_to_dm(memory, 8, &value, 8));
	for (i = 0; i < 3; i++) {
		ts_fetch_add(&pair->a, .wr_id = i, .rkey = mr->rkey, .remote_address = 8,
			     .compare_add = 2);
		ts_done(t, pair->a.send_cq, i, IBV_WC_FETCH_ADD);
	}
	VT_OK(t, vb_memcpy_from_dm(&value, memory, 8, 8));
	VT_EQ(t, value, 46);
}

static void device_memory_in_sges(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);
	struct ibv_dm *from = dm(&pair->a), *to = dm(&pair->b);
	struct ibv_sge from_sge = {0, 2000, dm_mr(&pair->a, from, 0, 2000)->lkey};
	struct ibv_sge to_sge = {16, 2000, dm_mr(&pair->b, to, 0, 2016)->lkey};
	uint8_t bytes[2000];

	VT_OK(t, vb_memcpy_to_dm(from, 0, pair->a.buffer, 2000));
	ts_recv(&pair->b, .wr_id = 5, .sge = &to_sge, .num_sge = 1);
	ts_send(&pair->a, .wr_id = 1, .sge = &from_sge, .num_sge = 1);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_SEND);
	ts_received(t, pair->b.recv_cq, 5, 2000);
	VT_OK(t, vb_memcpy_from_dm(bytes, to, 16, 2000));
	ts_verify(t, bytes, 2000, 1);
}

static void device_memory_in_use_is_ebusy(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_end *end = ts_end(t, &t->a, &options);
	struct ibv_dm *memory = dm(end);
	struct ibv_mr *mr = dm_mr(end, memory, 0, 64);

	VT_ERRNO(t, vb_free_dm(memory), EBUSY);
	VT_OK(t, vb_dereg_mr(mr));
	ts_gone(t, mr);
	VT_OK(t, vb_free_dm(memory));
	ts_gone(t, memory);
}

static void device_memory_runs_out(struct vt *t)
{
	uint64_t most = extended_attr(t, &t->a).max_dm_size;
	struct ibv_alloc_dm_attr attr = {.length = most};
	struct ibv_dm *memory;

	if (!most)
		VT_SKIP(t, "the device has no device memory");
	memory = VT_PTR(t, vb_alloc_dm(t->a.ctx, &attr));
	attr.length = 1;
	VT_CHECK(t, !vb_alloc_dm(t->a.ctx, &attr));
	VT_OK(t, vb_free_dm(memory));
	memory = VT_PTR(t, vb_alloc_dm(t->a.ctx, &attr));
	VT_OK(t, vb_free_dm(memory));
	attr.length = most + 1;
	VT_CHECK(t, !vb_alloc_dm(t->a.ctx, &attr));
}

#define FLIGHT (VT_NEEDS_SIM | VT_NEEDS_FAULTS | VT_NEEDS_VIRTUAL_CLOCK)
#define REREG  SRC_RDMA_CORE "libibverbs/verbs.c, ibv_rereg_mr"

static const struct vt_test tests[] = {
	{"rereg_moves_it", "ibv_rereg_mr(3): CHANGE_TRANSLATION", 0, rereg_moves_it},
	{"rereg_changes_rights", "ibv_rereg_mr(3): CHANGE_ACCESS", 0, rereg_changes_rights},
	{"rereg_changes_the_pd", "ibv_rereg_mr(3): CHANGE_PD", 0, rereg_changes_the_pd},
	{"rereg_changes_all_at_once", "ibv_rereg_mr(3)", 0, rereg_changes_all_at_once},
	{"rereg_under_a_write", "unsourced", FLIGHT, rereg_under_a_write},
	{"rereg_under_a_read", "unsourced", FLIGHT, rereg_under_a_read},
	{"rereg_keeps_the_keys", "unsourced", VT_NEEDS_SIM, rereg_keeps_the_keys},
	{"rereg_refuses_bad_input", "ibv_rereg_mr(3): ERR_INPUT, Old MR is valid; " REREG, 0,
	 rereg_refuses_bad_input},
	{"rereg_that_the_device_refuses", "ibv_rereg_mr(3): ERR_CMD, and Notes: dereg_mr", 0,
	 rereg_that_the_device_refuses},
	{"imported_region_is_the_same", "ibv_import_mr(3), ibv_import_pd(3)", 0,
	 imported_region_is_the_same},
	{"on_demand_region_serves_each_operation",
	 "ibv_reg_mr(3): IBV_ACCESS_ON_DEMAND; ibv_query_device_ex(3): odp_caps", 0,
	 on_demand_region_serves_each_operation},
	{"implicit_region_reaches_everything", "ibv_reg_mr(3): addr 0 and length SIZE_MAX", 0,
	 implicit_region_reaches_everything},
	{"on_demand_memory_may_come_later", "unsourced", VT_NEEDS_SIM,
	 on_demand_memory_may_come_later},
	{"nothing_is_behind_unmapped_addresses", "unsourced", 0,
	 nothing_is_behind_unmapped_addresses},
	{"advise_mr_takes_and_refuses",
	 "ibv_advise_mr(3), Return value; keys: Linux drivers/infiniband/hw/mlx5/odp.c, "
	 "get_prefetchable_mr",
	 0, advise_mr_takes_and_refuses},
	{"profile_decides_what_is_lacking",
	 SRC_RDMA_CORE "providers/rxe/rxe.c, rxe_ctx_ops, and providers/mlx5/mlx5.c, "
		       "mlx5_ctx_common_ops; EOPNOTSUPP: libibverbs/dummy_ops.c",
	 VT_NEEDS_SIM, profile_decides_what_is_lacking},
	{"optional_flags_change_nothing",
	 "ibv_reg_mr(3): RELAXED_ORDERING; <infiniband/verbs.h>: IBV_ACCESS_OPTIONAL_RANGE", 0,
	 optional_flags_change_nothing},
	{"zero_based_region_begins_at_0", "ibv_reg_mr(3): IBV_ACCESS_ZERO_BASED", VT_NEEDS_SIM,
	 zero_based_region_begins_at_0},
	{"null_region_reads_zeros", "ibv_alloc_null_mr(3)", 0, null_region_reads_zeros},
	{"null_region_discards_what_is_written", "ibv_alloc_null_mr(3)", 0,
	 null_region_discards_what_is_written},
	{"null_region_is_not_for_peers",
	 "ibv_alloc_null_mr(3): not exposed as an rkey; rereg_mr is invalid", 0,
	 null_region_is_not_for_peers},
	{"device_memory_is_copied", "ibv_alloc_dm(3)", 0, device_memory_is_copied},
	{"device_memory_has_bounds", "ibv_alloc_dm(3): dm_offset, length", 0,
	 device_memory_has_bounds},
	{"device_memory_is_zero_based",
	 "ibv_reg_dm_mr(3); EINVAL: " SRC_CORE "uverbs_std_types_mr.c, UVERBS_METHOD_DM_MR_REG", 0,
	 device_memory_is_zero_based},
	{"device_memory_serves_peers", "ibv_alloc_dm(3): Device memory registration", 0,
	 device_memory_serves_peers},
	{"device_memory_is_counted", "ibv_alloc_dm(3): atomic operations", VT_NEEDS_ATOMICS,
	 device_memory_is_counted},
	{"device_memory_in_sges", "ibv_alloc_dm(3): lkey inside sge", 0, device_memory_in_sges},
	{"device_memory_in_use_is_ebusy",
	 "ibv_alloc_dm(3), Notes; EBUSY: " SRC_CORE "uverbs_std_types_dm.c, uverbs_free_dm", 0,
	 device_memory_in_use_is_ebusy},
	{"device_memory_runs_out", "ibv_alloc_dm(3), Notes: max_dm_size", 0,
	 device_memory_runs_out},
	{NULL},
};

const struct vt_suite vt_suite_region = {"region", "memory regions beyond ibv_reg_mr", tests};
