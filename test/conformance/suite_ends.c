/* SPDX-License-Identifier: MIT */
/*
 * The end of objects that others still use: a device that is closed with all its objects, and
 * address handles of datagrams that are not sent yet.
 */
#include "test/conformance/sources.h"
#include "test/support/keep.h"
#include "test/support/quirks.h"
#include "test/support/srq.h"
#include "test/support/support.h"

#include <fcntl.h>
#include <verbena/sim.h>

/* --- closing a device --- */

/* A pair whose A lives in a second context of its device. */
static struct ts_pair *pair_in(struct vt *t, struct ibv_context *ctx)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ibv_context *own = t->a.ctx;
	struct ts_pair *pair;

	options.channels = true;
	options.timeout = 8;
	options.retry_cnt = 1;
	t->a.ctx = ctx;
	pair = ts_pair(t, &options);
	t->a.ctx = own;
	return pair;
}

static void forget(struct vt *t, const struct ts_end *end)
{
	const void *const objects[] = {end->qp,	     end->mr,		end->send_cq,
				       end->recv_cq, end->send_channel, end->recv_channel,
				       end->pd};

	for (size_t i = 0; i < TS_COUNT(objects); i++)
		ts_gone(t, objects[i]);
}

static struct vb_sim_objects count_objects(struct vt *t)
{
	struct vb_sim_objects counts = {0};

	vb_sim_count_objects(ts_sim(t), &counts);
	return counts;
}

static void closed_device_answers_no_more(struct vt *t)
{
	struct ibv_context *ctx = VT_PTR(t, vb_open_device(t->a.ctx->device));
	struct vb_sim_objects before = count_objects(t), after;
	struct ts_pair *pair = pair_in(t, ctx);

	ts_recv(&pair->a, .wr_id = 1, .length = 100);
	ts_write(&pair->b, .wr_id = 2, .length = 8);
	ts_done(t, pair->b.send_cq, 2, IBV_WC_RDMA_WRITE);
	VT_OK(t, vb_close_device(ctx));
	forget(t, &pair->a);
	ts_write(&pair->b, .wr_id = 3, .length = 8);
	ts_failed(t, pair->b.send_cq, 3, IBV_WC_RETRY_EXC_ERR);
	after = count_objects(t);
	/* What is left is B's: a PD, two CQs with channels, a region and a QP. */
	VT_EQ(t, after.contexts, before.contexts - 1);
	VT_EQ(t, after.qps, before.qps + 1);
	VT_EQ(t, after.cqs, before.cqs + 2);
	VT_EQ(t, after.channels, before.channels + 2);
	VT_EQ(t, after.mrs, before.mrs + 1);
	VT_EQ(t, after.pds, before.pds + 1);
}

/* The device's region is gone, too: another context's QP cannot reach it by its keys. */
static void closed_device_leaves_no_key(struct vt *t)
{
	struct ibv_context *ctx = VT_PTR(t, vb_open_device(t->b.ctx->device));
	struct ibv_pd *pd = VT_PTR(t, vb_alloc_pd(ctx));
	uint8_t *memory = ts_memory(t, 4096);
	struct ibv_mr *mr = VT_PTR(t, vb_reg_mr(pd, memory, 4096, TS_ACCESS_ALL));
	uint32_t rkey = mr->rkey;
	struct ts_pair *pair;

	VT_OK(t, vb_close_device(ctx));
	pair = ts_connected(t, IBV_QPT_RC);
	ts_write(&pair->a, .wr_id = 1, .length = 8, .rkey = rkey,
		 .remote_address = (uintptr_t)memory);
	ts_failed(t, pair->a.send_cq, 1, IBV_WC_REM_ACCESS_ERR);
	VT_EQ(t, memory[0], 0);
}

struct srq_parts {
	struct ibv_srq *srq;
	struct ibv_xrcd *xrcd;
};

static struct srq_parts make_srqs(struct vt *t, struct ibv_context *ctx, struct ibv_pd *pd,
				  struct ibv_cq *cq)
{
	struct ibv_srq_init_attr init = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct ibv_xrcd_init_attr xrcd = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = O_CREAT,
	};
	struct srq_parts parts = {.srq = VT_PTR(t, vb_create_srq(pd, &init)),
				  .xrcd = vb_open_xrcd(ctx, &xrcd)};
	struct ibv_srq_init_attr_ex ex = {
		.attr = {.max_wr = 4, .max_sge = 1},
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC,
		.pd = pd,
		.xrcd = parts.xrcd,
		.cq = cq,
	};

	if (parts.xrcd)
		VT_PTR(t, vb_create_srq_ex(ctx, &ex));
	else
		VT_EQ(t, errno, EOPNOTSUPP);
	return parts;
}

/* Some profiles have no domains, no device memory and no XRC. */
static void make_domains(struct vt *t, struct ibv_context *ctx, struct ibv_pd *pd)
{
	struct ibv_td_init_attr td = {0};
	struct ibv_parent_domain_init_attr parent = {.pd = pd, .td = vb_alloc_td(ctx, &td)};
	struct ibv_alloc_dm_attr dm = {.length = 64};

	if (!parent.td) {
		VT_EQ(t, errno, EOPNOTSUPP);
		return;
	}
	VT_PTR(t, vb_alloc_parent_domain(ctx, &parent));
	VT_PTR(t, vb_alloc_dm(ctx, &dm));
}

/* A bound window, an AH, and a datagram QP that is a member of a group. */
static void make_users(struct vt *t, struct ibv_context *ctx, struct ibv_pd *pd, struct ibv_cq *cq)
{
	static const union ibv_gid group = {.raw = {0xff, 0x0e, [15] = 9}};
	struct ibv_context *own = t->a.ctx;
	struct ts_options options = ts_defaults(t, IBV_QPT_UD);
	struct ibv_ah_attr av = ts_av(&t->a, &t->b);
	uint16_t lid = t->have & VT_NEEDS_INFINIBAND ? 0xc001 : 0;
	struct ts_end *end;

	t->a.ctx = ctx;
	end = ts_end(t, &t->a, &options);
	t->a.ctx = own;
	ts_connect(end);
	VT_OK(t, vb_attach_mcast(end->qp, &group, lid));
	ts_recv(end, .wr_id = 1, .length = 200);
	ts_gone(t, end->ah);
	forget(t, end);
	VT_PTR(t, vb_create_ah(pd, &av));
	VT_PTR(t, vb_alloc_mw(pd, IBV_MW_TYPE_2));
}

/* Closing ends the users of an object before the object, whatever the program's order was. */
static void closing_ends_each_kind(struct vt *t)
{
	struct vb_sim_objects before = count_objects(t), after;
	struct ibv_context *ctx = VT_PTR(t, vb_open_device(t->a.ctx->device));
	struct ibv_pd *pd = VT_PTR(t, vb_alloc_pd(ctx));
	struct ibv_comp_channel *channel = VT_PTR(t, vb_create_comp_channel(ctx));
	struct ibv_cq *cq = VT_PTR(t, vb_create_cq(ctx, 4, NULL, channel, 0));
	struct srq_parts parts = make_srqs(t, ctx, pd, cq);
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.srq = parts.srq,
		.cap = {.max_send_wr = 1, .max_send_sge = 1},
		.qp_type = IBV_QPT_RC,
	};

	VT_PTR(t, vb_create_qp(pd, &init));
	make_domains(t, ctx, pd);
	make_users(t, ctx, pd, cq);
	VT_OK(t, vb_close_device(ctx));
	after = count_objects(t);
	VT_EQ_MEM(t, &after, &before, sizeof(after));
}

/* --- address handles --- */

/* On a virtual clock, nothing is sent before the program waits. */
static void ah_ends_under_posted_sends(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_UD);
	struct ts_pair *pair;
	int i;

	/* Datagrams need not come in order. */
	ts_prompt(t);
	pair = ts_pair(t, &options);
	for (i = 0; i < 4; i++) {
		ts_recv(&pair->b, .wr_id = (uint64_t)i, .offset = 1000 * (size_t)i, .length = 1000);
		ts_send(&pair->a, .wr_id = 10 + (uint64_t)i, .offset = 100 * (size_t)i,
			.length = 100);
	}
	VT_OK(t, vb_destroy_ah(pair->a.ah));
	ts_gone(t, pair->a.ah);
	for (i = 0; i < 4; i++) {
		ts_done(t, pair->a.send_cq, 10 + (uint64_t)i, IBV_WC_SEND);
		ts_received(t, pair->b.recv_cq, (uint64_t)i, 140);
		VT_EQ_MEM(t, pair->b.buffer + 1000 * i + TS_GRH, pair->a.buffer + 100 * i, 100);
	}
}

/* The memory of an AH that has ended is used again, and the send still has its own address. */
static void ah_made_anew_leaves_posted_sends_alone(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_UD);
	struct ts_pair *pair = ts_pair(t, &options);
	struct ibv_ah *to_itself;

	ts_recv(&pair->b, .wr_id = 1, .length = 1000);
	ts_send(&pair->a, .wr_id = 2, .length = 100);
	VT_OK(t, vb_destroy_ah(pair->a.ah));
	ts_gone(t, pair->a.ah);
	to_itself = ts_ah(t, pair->a.pd, &t->a, &t->a);
	VT_CHECK(t, to_itself != NULL);
	ts_done(t, pair->a.send_cq, 2, IBV_WC_SEND);
	ts_received(t, pair->b.recv_cq, 1, 140);
}

/* --- unacknowledged events --- */

/* Another thread could still acknowledge; there is none, so that the wait would never end. */
static void destroy_srq_waits_for_the_acknowledgement(struct vt *t)
{
	struct ts_shared *shared = ts_shared(t);
	struct ts_pair *pair = ts_pair_on(shared, IBV_QPT_RC);
	struct ibv_async_event event;

	ts_srq_recv(shared, .wr_id = 0, .length = 100);
	ts_arm_srq(t, shared->srq, 1);
	ts_send_over(pair, 0, 8);
	VT_OK(t, vb_get_async_event(t->b.ctx, &event));
	VT_EVENT(t, event.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
	ts_destroy_qp(&pair->b);
	VT_ERRNO(t, vb_destroy_srq(shared->srq), EDEADLK);
	vb_ack_async_event(&event);
	VT_OK(t, vb_destroy_srq(shared->srq));
	ts_gone(t, shared->srq);
}

#define CLOSE "Linux drivers/infiniband/core/rdma_core.c, uverbs_destroy_ufile_hw: "
#define AH    "rdma-core providers/mlx5/qp.c, set_datagram_seg: the WQE has the address"

static const struct vt_test tests[] = {
	{"closed_device_answers_no_more",
	 CLOSE "it ends all objects (where the queues are mapped, as by librxe, only with them)",
	 VT_NEEDS_SIM, closed_device_answers_no_more},
	{"closed_device_leaves_no_key", CLOSE "it ends all objects", 0,
	 closed_device_leaves_no_key},
	{"closing_ends_each_kind", CLOSE "in the order of their use", VT_NEEDS_SIM,
	 closing_ends_each_kind},
	{"ah_ends_under_posted_sends", AH, VT_NEEDS_VIRTUAL_CLOCK, ah_ends_under_posted_sends},
	{"ah_made_anew_leaves_posted_sends_alone", AH, VT_NEEDS_VIRTUAL_CLOCK,
	 ah_made_anew_leaves_posted_sends_alone},
	{"destroy_srq_waits_for_the_acknowledgement", "ibv_get_async_event(3), Notes",
	 VT_NEEDS_SIM | VT_NEEDS_VIRTUAL_CLOCK, destroy_srq_waits_for_the_acknowledgement},
	{NULL},
};

const struct vt_suite vt_suite_ends = {"ends", "objects that end while others use them", tests};
