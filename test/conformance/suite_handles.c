/* SPDX-License-Identifier: MIT */
/*
 * How verbs find the objects that they are given, and how they report a failure: tables over all
 * verbs of verbs.def.
 */
#include "test/conformance/sources.h"
#include "test/support/keep.h"
#include "test/support/support.h"
#include "test/support/window.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <verbena/backend.h>
#include <verbena/sim.h>

/* --- the objects --- */

/* An object for each parameter. An object that the device does not have is NULL; so are xrc_cq and
 * dm_pd where a call needs XRC or device memory besides. */
struct set {
	struct vt *t;
	const struct vb_backend *backend;
	struct ibv_context *ctx, *closed;
	struct ts_pair *pair;
	struct ibv_pd *pd, *parent, *dm_pd;
	struct ibv_mr *mr;
	struct ibv_mw *mw;
	struct ibv_srq *srq, *xrc_srq;
	struct ibv_qp *qp;
	struct ibv_cq *cq, *xrc_cq;
	struct ibv_ah *ah;
	struct ibv_dm *dm;
	struct ibv_xrcd *xrcd, *closed_xrcd;
	struct ibv_td *freed_td;
	struct ibv_comp_channel *destroyed_channel;
	/* Of verbs that the simulator does not have. */
	struct ibv_wq wq;
	struct ibv_rwq_ind_table table;
	struct ibv_flow flow;
	struct ibv_flow_action action;
	struct ibv_counters counters;
	/* Arguments. */
	struct ibv_srq_init_attr srq_init;
	struct ibv_srq_init_attr_ex srq_init_ex;
	struct ibv_qp_init_attr qp_init;
	struct ibv_qp_init_attr_ex qp_init_ex;
	struct ibv_cq_init_attr_ex cq_init;
	struct ibv_parent_domain_init_attr domain_init;
	struct ibv_mw_bind bind;
	struct ibv_ah_attr ah_attr;
	struct ibv_modify_cq_attr cq_attr;
	struct ibv_srq_attr srq_attr;
	struct ibv_qp_attr qp_attr;
	struct ibv_sge sge;
	struct ibv_send_wr send, *bad_send;
	struct ibv_recv_wr recv, *bad_recv;
	union ibv_gid group;
	struct ibv_gid_entry entry;
	union {
		struct ibv_device_attr device;
		struct ibv_device_attr_ex device_ex;
		struct ibv_port_attr port;
		struct ibv_values_ex values;
		struct ibv_ece ece;
		struct ibv_qp_rate_limit_attr rate;
		uint32_t number;
	} out;
	struct ibv_wc wc;
	struct ibv_grh grh;
};

static void make_srqs(struct set *s)
{
	struct vt *t = s->t;
	struct ibv_xrcd_init_attr xrcd_init = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1};

	s->srq_init.attr = (struct ibv_srq_attr){.max_wr = 4, .max_sge = 1};
	s->srq = VT_PTR(t, vb_create_srq(s->pd, &s->srq_init));
	ts_keep(t, TS_SRQ, s->srq);
	s->xrcd = vb_open_xrcd(s->ctx, &xrcd_init);
	s->srq_init_ex = (struct ibv_srq_init_attr_ex){
		.attr = s->srq_init.attr,
		.comp_mask = IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_CQ |
			     IBV_SRQ_INIT_ATTR_XRCD,
		.srq_type = s->xrcd ? IBV_SRQT_XRC : IBV_SRQT_BASIC,
		.pd = s->pd,
		.cq = s->cq,
		.xrcd = s->xrcd,
	};
	if (!s->xrcd)
		return;
	ts_keep(t, TS_XRCD, s->xrcd);
	s->xrc_cq = s->cq;
	s->xrc_srq = VT_PTR(t, vb_create_srq_ex(s->ctx, &s->srq_init_ex));
	ts_keep(t, TS_SRQ, s->xrc_srq);
}

static void make_domains(struct set *s)
{
	struct ibv_alloc_dm_attr dm_attr = {.length = 64};

	s->dm = vb_alloc_dm(s->ctx, &dm_attr);
	if (s->dm) {
		ts_keep(s->t, TS_DM, s->dm);
		s->dm_pd = s->pd;
	}
	s->domain_init.pd = s->pd;
	s->parent = vb_alloc_parent_domain(s->ctx, &s->domain_init);
	if (s->parent)
		ts_keep(s->t, TS_PD, s->parent);
}

/* Objects that have been destroyed, of the kinds without a handle. */
static void make_ended(struct set *s)
{
	struct ibv_xrcd_init_attr xrcd_init = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1};
	struct ibv_td_init_attr td_init = {0};

	s->destroyed_channel = VT_PTR(s->t, vb_create_comp_channel(s->ctx));
	VT_OK(s->t, vb_destroy_comp_channel(s->destroyed_channel));
	s->closed_xrcd = vb_open_xrcd(s->ctx, &xrcd_init);
	if (s->closed_xrcd)
		VT_OK(s->t, vb_close_xrcd(s->closed_xrcd));
	s->freed_td = vb_alloc_td(s->ctx, &td_init);
	if (s->freed_td)
		VT_OK(s->t, vb_dealloc_td(s->freed_td));
	s->closed = ts_context(s->t, &s->t->a);
	ts_gone(s->t, s->closed);
	VT_OK(s->t, vb_close_device(s->closed));
}

static void fill_arguments(struct set *s)
{
	s->qp_init = (struct ibv_qp_init_attr){
		.send_cq = s->cq,
		.recv_cq = s->cq,
		.srq = s->srq,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
	};
	s->qp_init_ex = (struct ibv_qp_init_attr_ex){
		.send_cq = s->cq,
		.recv_cq = s->cq,
		.srq = s->srq,
		.cap = s->qp_init.cap,
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = s->pd,
	};
	s->cq_init = (struct ibv_cq_init_attr_ex){
		.cqe = 1, .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD, .parent_domain = s->parent};
	s->bind = (struct ibv_mw_bind){.bind_info = {.mr = s->mr,
						     .addr = (uintptr_t)s->mr->addr,
						     .length = 64,
						     .mw_access_flags = IBV_ACCESS_REMOTE_READ}};
	s->ah_attr = ts_av(&s->t->a, &s->t->b);
	s->cq_attr.attr_mask = IBV_CQ_ATTR_MODERATE;
	s->sge = (struct ibv_sge){(uintptr_t)s->mr->addr, 8, s->mr->lkey};
	s->group.raw[0] = 0xff;
	s->wq.context = s->table.context = s->flow.context = s->ctx;
	s->action.context = s->counters.context = s->ctx;
}

static struct set *make_set(struct vt *t)
{
	struct set *s = vt_alloc(t, sizeof(*s));

	s->t = t;
	s->backend = vb_find_backend(t->backend);
	s->pair = ts_window_pair(t);
	s->ctx = t->a.ctx;
	s->pd = s->pair->a.pd;
	s->mr = s->pair->a.mr;
	s->qp = s->pair->a.qp;
	s->cq = s->pair->a.send_cq;
	s->mw = ts_mw(&s->pair->a, IBV_MW_TYPE_1);
	s->ah = ts_ah(t, s->pd, &t->a, &t->b);
	make_srqs(s);
	make_domains(s);
	make_ended(s);
	fill_arguments(s);
	return s;
}

/* --- the calls --- */

/* What a call returns, as an errno value, by the verb's convention. */
static int errno_of(int returned)
{
	return returned;
}

static int negated_of(ssize_t returned)
{
	return returned < 0 ? (int)-returned : 0;
}

static int null_of(const void *returned)
{
	return returned ? 0 : errno;
}

static int code_of(int returned)
{
	return returned ? errno : 0;
}

#define BYTES(s) (s)->mr->addr, 64

/*
 * CALL(verb, object, how, arguments): the verb looks up the object `object` of struct set. Those that
 * a profile may lack are in CALLS_OF_OPTIONS.
 */
#define CALLS(CALL)                                                                  \
	CALL(dealloc_pd, pd, errno_of, (s->pd))                                      \
	CALL(reg_mr, pd, null_of, (s->pd, BYTES(s), 0))                              \
	CALL(reg_mr_iova, pd, null_of, (s->pd, BYTES(s), 0, 0))                      \
	CALL(reg_mr_iova2, pd, null_of, (s->pd, BYTES(s), 0, 0))                     \
	CALL(import_mr, pd, null_of, (s->pd, s->mr->handle))                         \
	CALL(alloc_mw, pd, null_of, (s->pd, IBV_MW_TYPE_1))                          \
	CALL(create_srq, pd, null_of, (s->pd, &s->srq_init))                         \
	CALL(create_srq_ex, pd, null_of, (s->ctx, &s->srq_init_ex))                  \
	CALL(create_qp, pd, null_of, (s->pd, &s->qp_init))                           \
	CALL(create_qp_ex, pd, null_of, (s->ctx, &s->qp_init_ex))                    \
	CALL(create_ah, pd, null_of, (s->pd, &s->ah_attr))                           \
	CALL(create_ah_from_wc, pd, null_of, (s->pd, &s->wc, &s->grh, s->t->a.port)) \
	CALL(dereg_mr, mr, errno_of, (s->mr))                                        \
	CALL(bind_mw, mr, errno_of, (s->qp, s->mw, &s->bind))                        \
	CALL(bind_mw, mw, errno_of, (s->qp, s->mw, &s->bind))                        \
	CALL(bind_mw, qp, errno_of, (s->qp, s->mw, &s->bind))                        \
	CALL(dealloc_mw, mw, errno_of, (s->mw))                                      \
	CALL(resize_cq, cq, errno_of, (s->cq, 100))                                  \
	CALL(modify_cq, cq, errno_of, (s->cq, &s->cq_attr))                          \
	CALL(destroy_cq, cq, errno_of, (s->cq))                                      \
	CALL(req_notify_cq, cq, errno_of, (s->cq, 0))                                \
	CALL(create_qp, cq, null_of, (s->pd, &s->qp_init))                           \
	CALL(create_qp_ex, cq, null_of, (s->ctx, &s->qp_init_ex))                    \
	CALL(modify_srq, srq, errno_of, (s->srq, &s->srq_attr, IBV_SRQ_LIMIT))       \
	CALL(query_srq, srq, errno_of, (s->srq, &s->srq_attr))                       \
	CALL(get_srq_num, srq, errno_of, (s->srq, &s->out.number))                   \
	CALL(destroy_srq, srq, errno_of, (s->srq))                                   \
	CALL(create_qp, srq, null_of, (s->pd, &s->qp_init))                          \
	CALL(create_qp_ex, srq, null_of, (s->ctx, &s->qp_init_ex))                   \
	CALL(modify_qp, qp, errno_of, (s->qp, &s->qp_attr, IBV_QP_STATE))            \
	CALL(query_qp, qp, errno_of, (s->qp, &s->qp_attr, 0, &s->qp_init))           \
	CALL(destroy_qp, qp, errno_of, (s->qp))                                      \
	CALL(attach_mcast, qp, errno_of, (s->qp, &s->group, 0))                      \
	CALL(detach_mcast, qp, errno_of, (s->qp, &s->group, 0))                      \
	CALL(destroy_ah, ah, errno_of, (s->ah))

#define CALLS_OF_OPTIONS(CALL)                                                               \
	CALL(rereg_mr, mr, code_of,                                                          \
	     (s->mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_LOCAL_WRITE))     \
	CALL(rereg_mr, pd, code_of, (s->mr, IBV_REREG_MR_CHANGE_PD, s->pd, NULL, 0, 0))      \
	CALL(alloc_null_mr, pd, null_of, (s->pd))                                            \
	CALL(advise_mr, pd, errno_of, (s->pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &s->sge, 1)) \
	CALL(alloc_parent_domain, pd, null_of, (s->ctx, &s->domain_init))                    \
	CALL(create_cq_ex, parent, null_of, (s->ctx, &s->cq_init))                           \
	CALL(dealloc_pd, parent, errno_of, (s->parent))                                      \
	CALL(create_srq_ex, xrc_cq, null_of, (s->ctx, &s->srq_init_ex))                      \
	CALL(get_srq_num, xrc_srq, errno_of, (s->xrc_srq, &s->out.number))                   \
	CALL(destroy_srq, xrc_srq, errno_of, (s->xrc_srq))                                   \
	CALL(free_dm, dm, errno_of, (s->dm))                                                 \
	CALL(reg_dm_mr, dm, null_of, (s->pd, s->dm, 0, 64, IBV_ACCESS_ZERO_BASED))           \
	CALL(reg_dm_mr, dm_pd, null_of, (s->pd, s->dm, 0, 64, IBV_ACCESS_ZERO_BASED))

/*
 * Verbs that fail for another reason than a handle: CALL(verb, why, how, arguments).
 */
#define FAILURES(CALL)                                                                        \
	CALL(query_device, closed, errno_of, (s->closed, &s->out.device))                     \
	CALL(query_device_ex, closed, errno_of,                                               \
	     (s->closed, NULL, &s->out.device_ex, sizeof(s->out.device_ex)))                  \
	CALL(query_port, no_port, errno_of, (s->ctx, 0, &s->out.port, sizeof(s->out.port)))   \
	CALL(query_gid_ex, flags, errno_of,                                                   \
	     (s->ctx, s->t->a.port, 0, &s->entry, 1, sizeof(s->entry)))                       \
	CALL(query_gid_table, flags, negated_of, (s->ctx, &s->entry, 1, 1, sizeof(s->entry))) \
	CALL(query_rt_values_ex, closed, errno_of, (s->closed, &s->out.values))               \
	CALL(dealloc_td, freed, errno_of, (s->freed_td))                                      \
	CALL(close_xrcd, closed, errno_of, (s->closed_xrcd))                                  \
	CALL(destroy_comp_channel, destroyed, errno_of, (s->destroyed_channel))               \
	CALL(post_send, sges, errno_of, (s->pair->b.qp, &s->send, &s->bad_send))              \
	CALL(post_recv, sges, errno_of, (s->pair->b.qp, &s->recv, &s->bad_recv))              \
	CALL(post_srq_recv, sges, errno_of, (s->srq, &s->recv, &s->bad_recv))                 \
	CALL(post_srq_ops, lacking, errno_of, (s->srq, NULL, (struct ibv_ops_wr *[]){NULL}))  \
	CALL(modify_qp_rate_limit, lacking, errno_of, (s->qp, &s->out.rate))                  \
	CALL(set_ece, lacking, errno_of, (s->qp, &s->out.ece))                                \
	CALL(query_ece, lacking, errno_of, (s->qp, &s->out.ece))                              \
	CALL(modify_wq, lacking, errno_of, (&s->wq, NULL))                                    \
	CALL(destroy_wq, lacking, errno_of, (&s->wq))                                         \
	CALL(destroy_rwq_ind_table, lacking, errno_of, (&s->table))                           \
	CALL(destroy_flow, lacking, errno_of, (&s->flow))                                     \
	CALL(modify_flow_action_esp, lacking, errno_of, (&s->action, NULL))                   \
	CALL(destroy_flow_action, lacking, errno_of, (&s->action))                            \
	CALL(destroy_counters, lacking, errno_of, (&s->counters))                             \
	CALL(attach_counters_point_flow, lacking, errno_of, (&s->counters, NULL, NULL))       \
	CALL(read_counters, lacking, errno_of, (&s->counters, NULL, 0, 0))

/* The backend's verb, as the inline functions of <infiniband/verbs.h> call it, and vb_<name>(). */
#define DEFINE(verb, object, how, arguments)               \
	static int direct_##verb##_##object(struct set *s) \
	{                                                  \
		return how(s->backend->verb arguments);    \
	}                                                  \
	static int public_##verb##_##object(struct set *s) \
	{                                                  \
		return how(vb_##verb arguments);           \
	}

CALLS(DEFINE)
CALLS_OF_OPTIONS(DEFINE)
FAILURES(DEFINE)

struct call {
	const char *verb, *object;
	int (*call[2])(struct set *s); /* the backend's and vb_<name>() */
	size_t at;		       /* of the object in struct set */
	bool optional;
};

#define ROW(name, what, ...) \
	.verb = #name, .object = #what, .call = {direct_##name##_##what, public_##name##_##what}
#define LOOKED_UP(name, what, ...) {ROW(name, what), .at = offsetof(struct set, what)},
#define OPTION(name, what, ...) \
	{ROW(name, what), .at = offsetof(struct set, what), .optional = true},
#define FAILING(name, what, ...) {ROW(name, what)},

static const struct call calls[] = {CALLS(LOOKED_UP) CALLS_OF_OPTIONS(OPTION)};
static const struct call failures[] = {FAILURES(FAILING)};

/* Returns true for the name of an object, and with a word before it: "cq" and "xrc_cq". */
static bool is_named(const char *object, const char *name)
{
	const size_t length = strlen(object), tail = strlen(name);

	return !strcmp(object, name) || (length > tail + 1 && object[length - tail - 1] == '_' &&
					 !strcmp(object + length - tail, name));
}

/* object NULL: any. */
static bool has_row(const struct call *rows, size_t count, const char *verb, const char *object)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(rows[i].verb, verb) && (!object || is_named(rows[i].object, object)))
			return true;
	return false;
}

/* --- changed handles --- */

struct place {
	const char *object;
	size_t at;
	size_t handle; /* in the object */
};

static const struct place places[] = {
	{"pd", offsetof(struct set, pd), offsetof(struct ibv_pd, handle)},
	{"parent", offsetof(struct set, parent), offsetof(struct ibv_pd, handle)},
	{"mr", offsetof(struct set, mr), offsetof(struct ibv_mr, handle)},
	{"mw", offsetof(struct set, mw), offsetof(struct ibv_mw, handle)},
	{"srq", offsetof(struct set, srq), offsetof(struct ibv_srq, handle)},
	{"xrc_srq", offsetof(struct set, xrc_srq), offsetof(struct ibv_srq, handle)},
	{"qp", offsetof(struct set, qp), offsetof(struct ibv_qp, handle)},
	{"cq", offsetof(struct set, cq), offsetof(struct ibv_cq, handle)},
	{"dm_pd", offsetof(struct set, dm_pd), offsetof(struct ibv_pd, handle)},
	{"xrc_cq", offsetof(struct set, xrc_cq), offsetof(struct ibv_cq, handle)},
	{"ah", offsetof(struct set, ah), offsetof(struct ibv_ah, handle)},
	{"dm", offsetof(struct set, dm), offsetof(struct ibv_dm, handle)},
};

/* NULL if the device does not have the object. */
static uint32_t *handle_of(struct set *s, const char *object)
{
	for (size_t i = 0; i < TS_COUNT(places); i++)
		if (!strcmp(places[i].object, object)) {
			char *found = *(char **)((char *)s + places[i].at);

			return found ? (uint32_t *)(found + places[i].handle) : NULL;
		}
	VT_FAIL(s->t, "no object is called %s", object);
}

/* Expects the call to fail, with the same value in errno. */
static void expect_failure(struct set *s, const struct call *row, int via, int error)
{
	int got;

	errno = 4242;
	got = row->call[via](s);
	/* A device that lacks the verb says so. */
	if (row->optional && got == EOPNOTSUPP)
		error = EOPNOTSUPP;
	VT_EXPECT_EQ(s->t, errno, got);
	if (error)
		VT_EXPECT_EQ(s->t, got, error);
	else
		VT_EXPECT(s->t, got > 0 && got != 4242);
}

/* The last change gives the handle of another object of its kind. */
static void changed_handle_is_enoent(struct vt *t)
{
	struct set *s = make_set(t), *other = make_set(t);

	for (size_t i = 0; i < TS_COUNT(calls); i++) {
		uint32_t *handle = handle_of(s, calls[i].object);
		const uint32_t own = handle ? *handle : 0;
		const uint32_t changes[] = {own + 1000, ~own, own ^ 0x80000000, UINT32_MAX,
					    handle ? *handle_of(other, calls[i].object) : 0};

		for (size_t j = 0; handle && j < TS_COUNT(changes); j++)
			for (int via = 0; via < 2; via++) {
				vt_row(t, "%s%s: handle 0x%x of the %s", via ? "vb_" : "",
				       calls[i].verb, changes[j], calls[i].object);
				*handle = changes[j];
				expect_failure(s, &calls[i], via, ENOENT);
				*handle = own;
			}
	}
	vt_row(t, NULL);
	ts_transfer(s->pair, IBV_WR_SEND, 100);
	ts_transfer(other->pair, IBV_WR_RDMA_WRITE, 100);
}

/* Each verb that takes an object with a handle, and each such object, has a row. */
static void every_verb_is_in_the_table(struct vt *t)
{
	static const struct {
		const char *verb, *by, *object, *convention;
	} verbs[] = {
#define VB_VERB(result, name, parameters, arguments, convention, by, object) \
	{#name, #by, #object, #convention},
#include <verbena/verbs.def>
	};
	/* The simulator does not have these. */
	static const char lacking[] = " reg_dmabuf_mr post_srq_ops query_qp_data_in_order "
				      "modify_qp_rate_limit set_ece query_ece create_flow ";
	char word[64];

	for (size_t i = 0; i < TS_COUNT(verbs); i++) {
		const char *how = verbs[i].convention;
		bool has_handle = false;

		vt_row(t, "%s", verbs[i].verb);
		for (size_t j = 0; j < TS_COUNT(places); j++)
			has_handle |= !strcmp(places[j].object, verbs[i].object);
		snprintf(word, sizeof(word), " %s ", verbs[i].verb);
		if (has_handle && !strcmp(verbs[i].by, "OBJECT") && strcmp(how, "NOTHING") != 0 &&
		    strcmp(how, "OPTIONAL") != 0 && !strstr(lacking, word))
			VT_EXPECT(t,
				  has_row(calls, TS_COUNT(calls), verbs[i].verb, verbs[i].object));
		/* vb_fork_init() fails only for a backend that does not exist. */
		if ((!strcmp(how, "ERRNO") || !strcmp(how, "POSTED") || !strcmp(how, "NEGATED")) &&
		    strcmp(verbs[i].verb, "fork_init") != 0)
			VT_EXPECT(t, has_row(calls, TS_COUNT(calls), verbs[i].verb, NULL) ||
					     has_row(failures, TS_COUNT(failures), verbs[i].verb,
						     NULL));
	}
}

static void errno_holds_what_a_verb_returns(struct vt *t)
{
	struct set *s = make_set(t);

	/* More SGEs than the queues have room for. */
	s->recv.num_sge = s->send.num_sge = 1000;
	for (size_t i = 0; i < TS_COUNT(failures); i++)
		for (int via = 0; via < 2; via++) {
			vt_row(t, "%s%s: %s", via ? "vb_" : "", failures[i].verb,
			       failures[i].object);
			if ((!strcmp(failures[i].verb, "dealloc_td") && !s->freed_td) ||
			    (!strcmp(failures[i].verb, "close_xrcd") && !s->closed_xrcd))
				continue;
			expect_failure(s, &failures[i], via,
				       !strcmp(failures[i].object, "lacking") ? EOPNOTSUPP : 0);
		}
	vt_row(t, "vb_fork_init");
	errno = 0;
	VT_EXPECT_ERRNO(t, vb_fork_init("no such backend"), EINVAL);
	VT_EXPECT_EQ(t, errno, EINVAL);
}

/* --- other fields --- */

/* The program may write what it likes into its structures: the simulator keeps its own links. */
static void changed_links_harm_nothing(struct vt *t)
{
	struct ibv_comp_channel *channel = ts_channel(t, &t->a);
	struct ibv_srq_init_attr srq_init = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct ibv_pd *pd = ts_pd(t, &t->a), *other = ts_pd(t, &t->a);
	struct ibv_cq *cq = VT_PTR(t, vb_create_cq(t->a.ctx, 4, NULL, channel, 0));
	struct ibv_srq *srq = VT_PTR(t, vb_create_srq(pd, &srq_init));
	struct ibv_qp_init_attr init = {.send_cq = cq,
					.recv_cq = cq,
					.srq = srq,
					.cap = {.max_send_wr = 1, .max_send_sge = 1},
					.qp_type = IBV_QPT_RC};
	struct ibv_qp *qp = VT_PTR(t, vb_create_qp(pd, &init));
	struct ibv_mr *mr = VT_PTR(t, vb_reg_mr(pd, ts_memory(t, 4096), 4096, 0));
	struct ibv_mw *mw = VT_PTR(t, vb_alloc_mw(pd, IBV_MW_TYPE_1));
	struct ibv_ah_attr attr = ts_av(&t->a, &t->b);
	struct ibv_ah *ah = VT_PTR(t, vb_create_ah(pd, &attr));

	mr->pd = NULL;
	mw->pd = qp->pd = srq->pd = ah->pd = other;
	cq->channel = NULL;
	qp->srq = NULL;
	qp->send_cq = qp->recv_cq = NULL;
	VT_ERRNO(t, vb_destroy_comp_channel(channel), EBUSY);
	VT_ERRNO(t, vb_destroy_cq(cq), EBUSY);
	VT_ERRNO(t, vb_destroy_srq(srq), EBUSY);
	VT_OK(t, vb_dealloc_pd(other));
	ts_gone(t, other);
	VT_OK(t, vb_destroy_qp(qp));
	VT_OK(t, vb_destroy_srq(srq));
	VT_OK(t, vb_destroy_ah(ah));
	VT_OK(t, vb_dealloc_mw(mw));
	VT_ERRNO(t, vb_dealloc_pd(pd), EBUSY);
	VT_OK(t, vb_dereg_mr(mr));
	VT_OK(t, vb_dealloc_pd(pd));
	ts_gone(t, pd);
	VT_OK(t, vb_destroy_cq(cq));
}

/* Closing the device ends the objects by their own numbers. */
static void close_ends_objects_with_changed_handles(struct vt *t)
{
	struct ibv_context *ctx = ts_context(t, &t->a);
	struct ibv_srq_init_attr srq_init = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct ibv_ah_attr attr = ts_av(&t->a, &t->b);
	struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);
	struct vb_sim_objects before, after;
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC};
	struct ibv_srq *srq;
	struct ibv_qp *qp;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_mw *mw;
	struct ibv_ah *ah;
	struct ibv_pd *pd;

	vb_sim_count_objects(ts_sim(t), &before);
	pd = VT_PTR(t, vb_alloc_pd(ctx));
	cq = VT_PTR(t, vb_create_cq(ctx, 4, NULL, NULL, 0));
	srq = VT_PTR(t, vb_create_srq(pd, &srq_init));
	init.send_cq = init.recv_cq = cq;
	qp = VT_PTR(t, vb_create_qp(pd, &init));
	mr = VT_PTR(t, vb_reg_mr(pd, ts_memory(t, 4096), 4096, 0));
	mw = VT_PTR(t, vb_alloc_mw(pd, IBV_MW_TYPE_1));
	ah = VT_PTR(t, vb_create_ah(pd, &attr));
	pd->handle = cq->handle = srq->handle = qp->handle = 0x40000000;
	mr->handle = mw->handle = ah->handle = 0x40000000;
	mr->pd = mw->pd = ah->pd = qp->pd = srq->pd = NULL;
	pd->context = mr->context = qp->context = cq->context = NULL;
	VT_OK(t, vb_close_device(ctx));
	ts_gone(t, ctx);
	vb_sim_count_objects(ts_sim(t), &after);
	before.contexts--;
	VT_EQ_MEM(t, &after, &before, sizeof(after));
	ts_transfer(pair, IBV_WR_SEND, 100);
}

/* An event is acknowledged whatever the handle is; destroying the CQ waits for that. */
static void acknowledging_needs_no_handle(struct vt *t)
{
	struct ts_pair *pair = ts_pair_with_channels(t);
	struct ibv_cq *cq;
	uint32_t handle;
	void *context;

	ts_recv(&pair->b, .wr_id = 1, .length = 8);
	VT_OK(t, ibv_req_notify_cq(pair->b.recv_cq, 0));
	ts_send(&pair->a, .wr_id = 2, .length = 8);
	ts_done(t, pair->a.send_cq, 2, IBV_WC_SEND);
	VT_OK(t, vb_get_cq_event(pair->b.recv_channel, &cq, &context));
	handle = cq->handle;
	cq->handle = 0x40000000;
	vb_ack_cq_events(cq, 1);
	cq->handle = handle;
	ts_destroy_qp(&pair->b);
	VT_OK(t, vb_destroy_cq(cq));
	ts_gone(t, cq);
}

static const struct vt_test tests[] = {
	{"changed_handle_is_enoent", SRC_LOOKUP ": ENOENT", VT_NEEDS_SIM | VT_NEEDS_SRQ,
	 changed_handle_is_enoent},
	{"every_verb_is_in_the_table", "verbena/verbs.def", VT_NEEDS_SIM,
	 every_verb_is_in_the_table},
	{"errno_holds_what_a_verb_returns",
	 "ibv_post_send(3), ibv_dereg_mr(3) and others: \"the value of errno\"; " SRC_RDMA_CORE
	 "libibverbs/cmd_ioctl.c, execute_ioctl: return errno",
	 VT_NEEDS_SIM | VT_NEEDS_SRQ, errno_holds_what_a_verb_returns},
	{"changed_links_harm_nothing",
	 SRC_RDMA_CORE "libibverbs/cmd.c: verbs that end an object send its handle only",
	 VT_NEEDS_SIM | VT_NEEDS_SRQ, changed_links_harm_nothing},
	{"close_ends_objects_with_changed_handles",
	 SRC_CORE "rdma_core.c, uverbs_destroy_ufile_hw: the kernel's own objects",
	 VT_NEEDS_SIM | VT_NEEDS_SRQ, close_ends_objects_with_changed_handles},
	{"acknowledging_needs_no_handle",
	 SRC_RDMA_CORE "libibverbs/verbs.c, ibv_ack_cq_events: comp_events_completed", VT_NEEDS_SIM,
	 acknowledging_needs_no_handle},
	{NULL},
};

const struct vt_suite vt_suite_handles = {"handles", "how verbs find objects and report failures",
					  tests};
