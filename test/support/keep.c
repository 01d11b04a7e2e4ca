/* SPDX-License-Identifier: MIT */
#include "test/support/keep.h"

#include <fcntl.h>

struct kept {
	struct vt *t;
	struct kept *next;
	enum ts_kind kind;
	void *object;
};

/* Those of the test that runs; each takes itself off when the test ends. */
static struct kept *all_kept;

static int destroy(enum ts_kind kind, void *object)
{
	switch (kind) {
	case TS_PD:
		return vb_dealloc_pd(object);
	case TS_CQ:
		return vb_destroy_cq(object);
	case TS_MR:
		return vb_dereg_mr(object);
	case TS_QP:
		return vb_destroy_qp(object);
	case TS_SRQ:
		return vb_destroy_srq(object);
	case TS_XRCD:
		return vb_close_xrcd(object);
	case TS_MW:
		return vb_dealloc_mw(object);
	case TS_DM:
		return vb_free_dm(object);
	case TS_TD:
		return vb_dealloc_td(object);
	case TS_CONTEXT:
		return vb_close_device(object);
	}
	return EINVAL;
}

static void give_back(void *arg)
{
	struct kept *kept = arg;

	all_kept = kept->next;
	if (!kept->object)
		return;
	/* An event got and not acknowledged would hold up the object. */
	ts_drain_events(&kept->t->a);
	ts_drain_events(&kept->t->b);
	VT_EXPECT_OK(kept->t, destroy(kept->kind, kept->object));
}

static void no_block(struct vt *t, int fd)
{
	VT_OK(t, fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK));
}

void ts_keep(struct vt *t, enum ts_kind kind, void *object)
{
	struct kept *kept = vt_alloc(t, sizeof(*kept));

	no_block(t, t->a.ctx->async_fd);
	no_block(t, t->b.ctx->async_fd);
	*kept = (struct kept){.t = t, .next = all_kept, .kind = kind, .object = object};
	all_kept = kept;
	vt_defer(t, give_back, kept);
}

void ts_kept_gone(void *object)
{
	struct kept *kept;

	for (kept = all_kept; kept; kept = kept->next)
		if (kept->object == object)
			kept->object = NULL;
}

void ts_need_caps(struct vt *t, unsigned int flags, const char *what)
{
	if ((t->a.device_attr.device_cap_flags & t->b.device_attr.device_cap_flags & flags) !=
	    flags)
		VT_SKIP(t, "no %s", what);
}

void ts_need_verb(struct vt *t, const void *object, int error, const char *what)
{
	if (object)
		return;
	if (error == EOPNOTSUPP || error == ENOSYS)
		VT_SKIP(t, "not supported: %s", what);
	VT_FAIL(t, "%s: %s", what, vt_errno_name(error));
}

struct ibv_context *ts_context(struct vt *t, struct vt_node *node)
{
	struct ibv_context *ctx = VT_PTR(t, vb_open_device(node->ctx->device));

	no_block(t, ctx->async_fd);
	ts_keep(t, TS_CONTEXT, ctx);
	return ctx;
}

static struct ibv_qp_cap cap_of(const struct ts_options *options)
{
	return (struct ibv_qp_cap){
		.max_send_wr = options->send_wr,
		.max_recv_wr = options->recv_wr,
		.max_send_sge = options->send_sge,
		.max_recv_sge = options->recv_sge,
		.max_inline_data = options->inline_bytes,
	};
}

void ts_remake_qp(struct ts_end *end, const struct ibv_qp_init_attr_ex *asked)
{
	struct ibv_qp_init_attr_ex init = *asked;

	if (end->qp)
		ts_end_qp(end);
	if (!init.qp_type)
		init.qp_type = end->options.type;
	if (init.qp_type != IBV_QPT_XRC_RECV) {
		init.comp_mask |= IBV_QP_INIT_ATTR_PD;
		init.pd = init.pd ? init.pd : end->pd;
		init.send_cq = init.send_cq ? init.send_cq : end->send_cq;
		if (!init.cap.max_send_wr)
			init.cap = cap_of(&end->options);
	}
	if (init.qp_type != IBV_QPT_XRC_RECV && init.qp_type != IBV_QPT_XRC_SEND)
		init.recv_cq = init.recv_cq ? init.recv_cq : end->recv_cq;
	init.sq_sig_all = end->options.signal_all;
	end->qp = TS_PTR_OR_SKIP(end->t, vb_create_qp_ex(end->node->ctx, &init));
	end->options.type = init.qp_type;
	end->cap = init.cap;
	if (init.pd)
		end->pd = init.pd;
	ts_keep(end->t, TS_QP, end->qp);
}

void ts_end_qp(struct ts_end *end)
{
	VT_OK(end->t, vb_destroy_qp(end->qp));
	ts_kept_gone(end->qp);
	ts_gone(end->t, end->qp);
	end->qp = NULL;
}

struct ts_pair *ts_pair_in_pd(struct vt *t, const struct ts_options *options, struct ts_end *other)
{
	const struct ibv_qp_init_attr_ex init = {.pd = other->pd};
	struct ts_pair *pair = ts_pair_reset(t, options);

	ts_remake_qp(&pair->b, &init);
	pair->b.mr = ts_mr(t, other->pd, pair->b.buffer, options->buffer_bytes, options->mr_access);
	ts_connect(&pair->a);
	ts_connect(&pair->b);
	return pair;
}
