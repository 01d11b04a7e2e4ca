/* SPDX-License-Identifier: MIT */
/*
 * Objects of the verbs that end with the test, and connected pairs of them.
 */
#include "test/peer/peer.h"
#include "test/support/keep.h"
#include "test/support/need.h"
#include "test/support/support.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

static void no_block(struct vt *t, int fd)
{
	VT_OK(t, fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK));
}

struct ibv_pd *ts_pd(struct vt *t, struct vt_node *node)
{
	struct ibv_pd *pd = VT_PTR(t, vb_alloc_pd(node->ctx));

	ts_keep(t, TS_PD, pd);
	/* Tests look for events on both nodes. */
	no_block(t, t->a.ctx->async_fd);
	no_block(t, t->b.ctx->async_fd);
	return pd;
}

struct ibv_comp_channel *ts_channel(struct vt *t, struct vt_node *node)
{
	struct ibv_comp_channel *channel = VT_PTR(t, vb_create_comp_channel(node->ctx));

	ts_keep(t, TS_CHANNEL, channel);
	no_block(t, channel->fd);
	return channel;
}

struct ibv_cq *ts_cq_on(struct vt *t, struct vt_node *node, int cqe,
			struct ibv_comp_channel *channel)
{
	struct ibv_cq *cq = VT_PTR(t, vb_create_cq(node->ctx, cqe, NULL, channel, 0));

	ts_keep(t, TS_CQ, cq);
	return cq;
}

struct ibv_cq *ts_cq(struct vt *t, struct vt_node *node, int cqe)
{
	return ts_cq_on(t, node, cqe, NULL);
}

struct ibv_mr *ts_mr(struct vt *t, struct ibv_pd *pd, void *address, size_t length_bytes,
		     int access)
{
	struct ibv_mr *mr = VT_PTR(t, vb_reg_mr(pd, address, length_bytes, access));

	ts_keep(t, TS_MR, mr);
	return mr;
}

struct ibv_ah *ts_ah(struct vt *t, struct ibv_pd *pd, struct vt_node *from, struct vt_node *to)
{
	struct ibv_ah_attr attr = ts_av(from, to);
	struct ibv_ah *ah = VT_PTR(t, vb_create_ah(pd, &attr));

	ts_keep(t, TS_AH, ah);
	return ah;
}

struct mapping {
	struct vt *t;
	void *memory;
	size_t length_bytes;
};

static void unmap(void *arg)
{
	struct mapping *mapping = arg;

	VT_EXPECT_OK(mapping->t, munmap(mapping->memory, mapping->length_bytes));
}

/*
 * Where the memory of tests begins, and the distance of two blocks. RETHs carry addresses, so the
 * places decide the bytes of a trace. Elsewhere the kernel chooses, and would choose anew for each
 * process.
 */
#define FIRST_PLACE 0x210000000000u
#define PLACE_BYTES 0x20000u

void *ts_memory(struct vt *t, size_t length_bytes)
{
	static uintptr_t next_place = FIRST_PLACE;
	struct mapping *mapping = vt_alloc(t, sizeof(*mapping));
	void *memory = peer_active()
			       ? peer_place(length_bytes)
			       : mmap((void *)next_place, length_bytes, PROT_READ | PROT_WRITE,
				      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (!memory)
		VT_FAIL(t, "no shared memory for %zu bytes", length_bytes);
	next_place += (length_bytes / PLACE_BYTES + 1) * PLACE_BYTES;
	VT_CHECK(t, memory != MAP_FAILED);
	*mapping = (struct mapping){t, memory, length_bytes};
	vt_defer(t, unmap, mapping);
	return memory;
}

void ts_protect(struct vt *t, void *memory, size_t length_bytes, int protection)
{
	VT_OK(t, mprotect(memory, length_bytes, protection));
	if (peer_active())
		VT_OK(t, peer_protect(memory, length_bytes, protection));
}

static struct ibv_qp *create_qp(struct vt *t, struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
	struct ibv_qp *qp = VT_PTR(t, vb_create_qp(pd, init));

	ts_keep(t, TS_QP, qp);
	return qp;
}

struct ibv_qp *ts_qp(struct vt *t, struct ibv_pd *pd, struct ibv_cq *cq, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = type,
	};

	return create_qp(t, pd, &init);
}

void ts_destroy_qp(struct ts_end *end)
{
	VT_OK(end->t, vb_destroy_qp(end->qp));
	ts_gone(end->t, end->qp);
	end->qp = NULL;
}

struct ts_options ts_defaults(struct vt *t, enum ibv_qp_type type)
{
	enum ibv_mtu a = t->a.port_attr.active_mtu;
	enum ibv_mtu b = t->b.port_attr.active_mtu;

	return (struct ts_options){
		.type = type,
		.buffer_bytes = 64 * 1024,
		.send_wr = 16,
		.recv_wr = 16,
		.send_sge = 4,
		.recv_sge = 4,
		.inline_bytes = 64,
		.send_cqe = 64,
		.recv_cqe = 64,
		.mr_access = TS_ACCESS_ALL,
		.qp_access =
			IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
		.mtu = a < b ? a : b,
		.a_psn = 0x1000,
		.b_psn = 0x2000,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.min_rnr_timer = 12,
		.max_rd_atomic = 4,
		.max_dest_rd_atomic = 4,
	};
}

static void make_cqs(struct ts_end *end)
{
	const struct ts_options *options = &end->options;
	struct vt *t = end->t;

	if (options->channels) {
		end->send_channel = ts_channel(t, end->node);
		end->recv_channel = options->one_cq ? end->send_channel : ts_channel(t, end->node);
	}
	end->send_cq = ts_cq_on(t, end->node, options->send_cqe, end->send_channel);
	end->recv_cq = options->one_cq
			       ? end->send_cq
			       : ts_cq_on(t, end->node, options->recv_cqe, end->recv_channel);
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

static void make_qp(struct ts_end *end)
{
	const struct ts_options *options = &end->options;
	struct ibv_qp_init_attr init = {
		.qp_context = end,
		.send_cq = end->send_cq,
		.recv_cq = end->recv_cq,
		.cap = cap_of(options),
		.qp_type = options->type,
		.sq_sig_all = options->signal_all,
	};

	end->qp = create_qp(end->t, end->pd, &init);
	end->cap = init.cap;
}

static void make_end(struct ts_end *end, struct vt *t, struct vt_node *node, struct ts_end *peer,
		     const struct ts_options *options)
{
	end->t = t;
	end->node = node;
	end->peer = peer;
	end->options = *options;
	end->pd = ts_pd(t, node);
	make_cqs(end);
	end->buffer = ts_memory(t, options->buffer_bytes);
	end->mr = ts_mr(t, end->pd, end->buffer, options->buffer_bytes, options->mr_access);
	make_qp(end);
	if (options->type == IBV_QPT_UD)
		end->ah = ts_ah(t, end->pd, node, peer->node ? peer->node : node);
}

struct ts_end *ts_end(struct vt *t, struct vt_node *node, const struct ts_options *options)
{
	struct ts_end *end = vt_alloc(t, sizeof(*end));

	make_end(end, t, node, end, options);
	end->send_psn = options->a_psn;
	end->recv_psn = options->a_psn;
	ts_fill(end->buffer, options->buffer_bytes, 1);
	return end;
}

/*
 * Gives the QPs different numbers. Two devices may use the same number, but fault rules and logs
 * know an end by its number alone.
 */
static void number_apart(struct ts_pair *pair)
{
	while (pair->a.qp->qp_num == pair->b.qp->qp_num) {
		ts_destroy_qp(&pair->b);
		make_qp(&pair->b);
	}
}

struct ts_pair *ts_pair_reset(struct vt *t, const struct ts_options *options)
{
	struct ts_pair *pair = vt_alloc(t, sizeof(*pair));

	pair->a.node = &t->a;
	pair->b.node = &t->b;
	make_end(&pair->a, t, &t->a, &pair->b, options);
	make_end(&pair->b, t, &t->b, &pair->a, options);
	number_apart(pair);
	pair->a.send_psn = pair->b.recv_psn = options->a_psn;
	pair->b.send_psn = pair->a.recv_psn = options->b_psn;
	ts_fill(pair->a.buffer, options->buffer_bytes, 1);
	memset(pair->b.buffer, TS_BLANK, options->buffer_bytes);
	return pair;
}

void ts_connect(struct ts_end *end)
{
	ts_to_init(end);
	ts_to_rtr(end);
	ts_to_rts(end);
}

void ts_connect_both(struct ts_pair *pair)
{
	ts_connect(&pair->a);
	ts_connect(&pair->b);
}

struct ts_pair *ts_pair(struct vt *t, const struct ts_options *options)
{
	struct ts_pair *pair = ts_pair_reset(t, options);

	ts_connect_both(pair);
	return pair;
}

struct ts_pair *ts_connected(struct vt *t, enum ibv_qp_type type)
{
	struct ts_options options = ts_defaults(t, type);

	return ts_pair(t, &options);
}

struct ts_pair *ts_pair_with_channels(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);

	options.channels = true;
	return ts_pair(t, &options);
}

struct ibv_context *ts_context(struct vt *t, struct vt_node *node)
{
	struct ibv_context *ctx = VT_PTR(t, vb_open_device(node->ctx->device));

	no_block(t, ctx->async_fd);
	ts_keep(t, TS_CONTEXT, ctx);
	return ctx;
}

void ts_remake_qp(struct ts_end *end, const struct ibv_qp_init_attr_ex *asked)
{
	struct ibv_qp_init_attr_ex init = *asked;

	if (end->qp)
		ts_destroy_qp(end);
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

struct ts_pair *ts_pair_in_pd(struct vt *t, const struct ts_options *options, struct ts_end *other)
{
	const struct ibv_qp_init_attr_ex init = {.pd = other->pd};
	struct ts_pair *pair = ts_pair_reset(t, options);

	ts_remake_qp(&pair->b, &init);
	pair->b.mr = ts_mr(t, other->pd, pair->b.buffer, options->buffer_bytes, options->mr_access);
	ts_connect_both(pair);
	return pair;
}
