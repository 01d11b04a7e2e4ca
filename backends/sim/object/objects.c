/* SPDX-License-Identifier: MIT */
#include "backends/sim/object/objects.h"

#include "backends/sim/object/refuse.h"

#include <errno.h>
#include <string.h>

/*
 * A program may write to the public structure of an object. So the simulator keeps each object's
 * number outside it, and only compares the public handle with that number.
 */
static const struct {
	size_t bytes;
	size_t slot;	    /* where the object keeps its number in its context */
	size_t handle;	    /* the public handle; 0 if the kind has none */
	size_t root;	    /* where an import keeps its root; 0 if the kind has no imports */
	size_t events_read; /* counters of asynchronous events */
	size_t events_acked;
	enum description_table table; /* in which its kind is described */
	size_t stamp;
} kinds[KINDS] = {
	[KIND_QP] = {sizeof(struct qp), offsetof(struct qp, slot), offsetof(struct qp, ibv.handle),
		     .events_read = offsetof(struct qp, async_events_read),
		     .events_acked = offsetof(struct qp, ibv.events_completed)},
	[KIND_SRQ] = {sizeof(struct srq), offsetof(struct srq, slot),
		      offsetof(struct srq, ibv.handle),
		      .events_read = offsetof(struct srq, async_events_read),
		      .events_acked = offsetof(struct srq, ibv.events_completed)},
	[KIND_CQ] = {sizeof(struct cq), offsetof(struct cq, slot), offsetof(struct cq, ibv.handle),
		     .events_read = offsetof(struct cq, async_events_read),
		     .events_acked = offsetof(struct cq, ibv.async_events_completed)},
	[KIND_AH] = {sizeof(struct ah), offsetof(struct ah, slot), offsetof(struct ah, ibv.handle)},
	[KIND_MW] = {sizeof(struct mw), offsetof(struct mw, slot), offsetof(struct mw, ibv.handle)},
	[KIND_MR] = {sizeof(struct mr), offsetof(struct mr, slot), offsetof(struct mr, ibv.handle),
		     offsetof(struct mr, root), .table = DESCRIBED_MR,
		     .stamp = offsetof(struct mr, stamp)},
	[KIND_DM] = {sizeof(struct dm), offsetof(struct dm, slot), offsetof(struct dm, ibv.handle),
		     offsetof(struct dm, root), .table = DESCRIBED_DM,
		     .stamp = offsetof(struct dm, stamp)},
	[KIND_XRCD] = {sizeof(struct xrcd), offsetof(struct xrcd, slot)},
	[KIND_PD] = {sizeof(struct pd), offsetof(struct pd, slot), offsetof(struct pd, ibv.handle),
		     offsetof(struct pd, root), .table = DESCRIBED_PD,
		     .stamp = offsetof(struct pd, stamp)},
	[KIND_TD] = {sizeof(struct td), offsetof(struct td, slot)},
	[KIND_CHANNEL] = {sizeof(struct channel), offsetof(struct channel, slot)},
	[KIND_CONTEXT] = {sizeof(struct context), offsetof(struct context, handle)},
};

const char *kind_name(enum kind kind)
{
	static const char *const names[KINDS] = {
		[KIND_QP] = "QP", [KIND_SRQ] = "SRQ",	      [KIND_CQ] = "CQ",
		[KIND_AH] = "AH", [KIND_MW] = "MW",	      [KIND_MR] = "MR",
		[KIND_DM] = "DM", [KIND_XRCD] = "XRCD",	      [KIND_PD] = "PD",
		[KIND_TD] = "TD", [KIND_CHANNEL] = "channel", [KIND_CONTEXT] = "context",
	};

	return names[kind];
}

static void *field(const void *object, size_t offset)
{
	return (char *)object + offset;
}

static uint32_t *slot_of(enum kind kind, const void *object)
{
	return field(object, kinds[kind].slot);
}

void *object_root(enum kind kind, const void *object)
{
	void *root = kinds[kind].root ? *(void **)field(object, kinds[kind].root) : NULL;

	return root ? root : (void *)object;
}

bool object_is_foreign(enum kind kind, const void *object)
{
	const void *root = object_root(kind, object);

	return root != object && object_context(root)->foreign;
}

void store_init(struct store *store)
{
	for (unsigned int i = 0; i < KINDS; i++)
		pool_init(&store->pools[i], kinds[i].bytes);
	handles_init(&store->contexts);
}

void store_end(struct store *store)
{
	for (unsigned int i = 0; i < KINDS; i++)
		pool_end(&store->pools[i]);
	handles_end(&store->contexts);
}

bool context_live(const struct context *context)
{
	return handles_has(&context->store->contexts, context->handle, context);
}

void *object_new(struct context *context, enum kind kind, const char *verb)
{
	struct store *store = context->store;
	void *object = pool_take(&store->pools[kind]);

	if (object && handles_add(&context->handles[kind], object, slot_of(kind, object))) {
		pool_give(&store->pools[kind], object);
		object = NULL;
	}
	if (!object)
		return null_errno(refuse_plainly(verb, VB_WHY_NO_MEMORY));
	*(struct ibv_context **)object = &context->verbs.context;
	if (kinds[kind].handle)
		*(uint32_t *)field(object, kinds[kind].handle) = *slot_of(kind, object);
	store->live[kind]++;
	/*
	 * A program that makes objects between two queries of a port is not waiting for the port.
	 */
	memset(context->port_answer, 0, sizeof(context->port_answer));
	return object;
}

void object_describe(enum kind kind, const void *object, const struct described *described)
{
	description_put(&object_context(object)->description, kinds[kind].table,
			*slot_of(kind, object), described);
}

void object_end(enum kind kind, void *object)
{
	struct context *context = object_context(object);

	description_clear(&context->description, kinds[kind].table, *slot_of(kind, object));
	handles_remove(&context->handles[kind], *slot_of(kind, object));
	pool_give(&context->store->pools[kind], object);
	context->store->live[kind]--;
}

/* Returns true if the imported object is live. */
static bool root_lives(enum kind kind, void *root)
{
	const struct context *context = object_context(root);

	if (!context->foreign)
		return object_at(kind, *slot_of(kind, root), root);
	return description_has(&context->description, kinds[kind].table, *slot_of(kind, root),
			       *(uint64_t *)field(root, kinds[kind].stamp));
}

void *object_of(enum kind kind, void *ibv)
{
	const uint32_t slot = *slot_of(kind, ibv);
	void *root;

	if (!object_at(kind, slot, ibv))
		return NULL;
	root = object_root(kind, ibv);
	if (root != ibv && !root_lives(kind, root))
		return NULL;
	if (kinds[kind].handle &&
	    *(uint32_t *)field(ibv, kinds[kind].handle) != *slot_of(kind, root))
		return NULL;
	return ibv;
}

bool object_live(enum kind kind, void *object)
{
	return object_at(kind, *slot_of(kind, object), object);
}

struct object_handles object_handles(enum kind kind, void *ibv)
{
	const uint32_t own = *slot_of(kind, object_root(kind, ibv));

	return (struct object_handles){
		.given = kinds[kind].handle ? *(uint32_t *)field(ibv, kinds[kind].handle) : own,
		.own = own,
	};
}

int object_missing(const struct ibv_context *context, const void *ibv)
{
	return ibv && *(struct ibv_context *const *)ibv == context ? ENOENT : EINVAL;
}

struct mr *region_in(const struct ibv_context *context, struct ibv_mr *ibv)
{
	struct mr *mr = mr_in(context, ibv);

	return mr && mr->engine->kind == SIM_MR_REGION ? mr : NULL;
}

/* --- asynchronous events --- */

enum kind event_kind(enum ibv_event_type type)
{
	switch (type) {
	case IBV_EVENT_CQ_ERR:
		return KIND_CQ;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		return KIND_QP;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		return KIND_SRQ;
	default:
		return KINDS;
	}
}

uint32_t *object_events_read(enum kind kind, void *object)
{
	return field(object, kinds[kind].events_read);
}

uint32_t *object_events_acked(enum kind kind, void *object)
{
	return field(object, kinds[kind].events_acked);
}
