/* SPDX-License-Identifier: MIT */
/*
 * Objects that end with the test, and connected pairs of them.
 */
#include "test/support/support.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

/* An object that is destroyed when the test ends, unless ts_gone() has been told. */
struct owned {
	struct vt *t;
	struct owned *next;
	void *object;
	size_t length_bytes;
	int (*destroy)(struct owned *owned);
};

static int destroy_pd(struct owned *owned)
{
	return vb_dealloc_pd(owned->object);
}

static int destroy_cq(struct owned *owned)
{
	return vb_destroy_cq(owned->object);
}

static int destroy_channel(struct owned *owned)
{
	return vb_destroy_comp_channel(owned->object);
}

static int destroy_mr(struct owned *owned)
{
	return vb_dereg_mr(owned->object);
}

static int destroy_ah(struct owned *owned)
{
	return vb_destroy_ah(owned->object);
}

static int destroy_qp(struct owned *owned)
{
	/* An event got and not acknowledged would hold up the QP. */
	ts_drain_events(&owned->t->a);
	ts_drain_events(&owned->t->b);
	return vb_destroy_qp(owned->object);
}

static int destroy_memory(struct owned *owned)
{
	return munmap(owned->object, owned->length_bytes);
}

static void let_go(void *arg)
{
	struct owned *owned = arg;

	if (owned->object)
		VT_EXPECT_OK(owned->t, owned->destroy(owned));
}

static struct owned *own(struct vt *t, void *object, int (*destroy)(struct owned *owned))
{
	struct owned *owned = vt_alloc(t, sizeof(*owned));

	*owned = (struct owned){.t = t, .next = t->support, .object = object, .destroy = destroy};
	t->support = owned;
	vt_defer(t, let_go, owned);
	return owned;
}

void ts_gone(struct vt *t, void *object)
{
	struct owned *owned;

	for (owned = t->support; owned; owned = owned->next)
		if (owned->object == object)
			owned->object = NULL;
}

static void no_block(struct vt *t, int fd)
{
	VT_OK(t, fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK));
}

struct ibv_pd *ts_pd(struct vt *t, struct vt_node *node)
{
	struct ibv_pd *pd = VT_PTR(t, vb_alloc_pd(node->ctx));

	own(t, pd, destroy_pd);
	/* both: cleaning up looks for events on both */
	no_block(t, t->a.ctx->async_fd);
	no_block(t, t->b.ctx->async_fd);
	return pd;
}

struct ibv_comp_channel *ts_channel(struct vt *t, struct vt_node *node)
{
	struct ibv_comp_channel *channel = VT_PTR(t, vb_create_comp_channel(node->ctx));

	own(t, channel, destroy_channel);
	no_block(t, channel->fd);
	return channel;
}

struct ibv_cq *ts_cq_on(struct vt *t, struct vt_node *node, int cqe,
			struct ibv_comp_channel *channel)
{
	struct ibv_cq *cq = VT_PTR(t, vb_create_cq(node->ctx, cqe, NULL, channel, 0));

	own(t, cq, destroy_cq);
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

	own(t, mr, destroy_mr);
	return mr;
}

struct ibv_ah *ts_ah(struct vt *t, struct ibv_pd *pd, struct vt_node *from, struct vt_node *to)
{
	struct ibv_ah_attr attr = ts_av(from, to);
	struct ibv_ah *ah = VT_PTR(t, vb_create_ah(pd, &attr));

	own(t, ah, destroy_ah);
	return ah;
}

void *ts_memory(struct vt *t, size_t length_bytes)
{
	void *memory = mmap(NULL, length_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			    -1, 0);

	VT_CHECK(t, memory != MAP_FAILED);
	own(t, memory, destroy_memory)->length_bytes = length_bytes;
	return memory;
}

static struct ibv_qp *create_qp(struct vt *t, struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
	struct ibv_qp *qp = VT_PTR(t, vb_create_qp(pd, init));

	own(t, qp, destroy_qp);
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

static void make_qp(struct ts_end *end)
{
	const struct ts_options *options = &end->options;
	struct ibv_qp_init_attr init = {
		.qp_context = end,
		.send_cq = end->send_cq,
		.recv_cq = end->recv_cq,
		.cap = {.max_send_wr = options->send_wr,
			.max_recv_wr = options->recv_wr,
			.max_send_sge = options->send_sge,
			.max_recv_sge = options->recv_sge,
			.max_inline_data = options->inline_bytes},
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
 * Numbers are per device. Equal ones would make a fault rule or a log take one end for the other.
 */
static void tell_apart(struct ts_pair *pair)
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
	tell_apart(pair);
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
