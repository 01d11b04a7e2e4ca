/* SPDX-License-Identifier: MIT */
/*
 * libibverbs' objects around the engine's.
 *
 * Each begins with the structure that the program holds. Zeroed space follows where a newer
 * libibverbs has more fields at the end. All live in pools, so a stale pointer of a program can be
 * read; whether it is live is asked of its context's handles.
 */
#ifndef BACKENDS_SIM_OBJECTS_H
#define BACKENDS_SIM_OBJECTS_H

#include "channel.h"
#include "handles.h"

#include "sim/world.h"

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BEYOND_BYTES 64

struct vb_sim;

enum kind {
	KIND_PD,
	KIND_MR,
	KIND_CQ,
	KIND_QP,
	KIND_AH,
	KIND_CHANNEL,
	KIND_CONTEXT, /* its handles are the world's */
	KINDS,
};

struct device {
	struct ibv_device ibv;
	uint8_t beyond[BEYOND_BYTES];
	struct vb_sim *world;
	struct sim_device *engine;
};

/* What a query answered last: the same answer again is a wait. */
struct answer {
	uint64_t digest;
	bool given;
};

struct context {
	struct verbs_context verbs; /* ends with the ibv_context */
	uint8_t beyond[BEYOND_BYTES];
	uint32_t handle;
	struct vb_sim *world;
	struct device *device;
	struct handles handles[KINDS];
	struct event_queue async;
	struct answer port_answer[SIM_PORTS_MAX];
	struct answer clock_answer;
};

struct pd {
	struct ibv_pd ibv;
	uint32_t number; /* the engine's name for it */
	uint32_t users;	 /* MRs and QPs */
};

struct mr {
	struct ibv_mr ibv;
	uint8_t beyond[BEYOND_BYTES];
	struct sim_mr *engine;
};

struct channel {
	struct ibv_comp_channel ibv;
	uint32_t handle;
	uint32_t users; /* CQs */
	struct event_queue events;
};

struct cq {
	union {
		struct ibv_cq ibv;
		struct ibv_cq_ex ex;
	};
	uint8_t beyond[BEYOND_BYTES];
	struct sim_cq *engine;
	uint32_t comp_events_read;
	uint32_t async_events_read;
	/* ibv_start_poll() to ibv_end_poll(). */
	pthread_mutex_t poll_mutex;
	bool poll_locked;
	struct sim_cqe current;
};

struct qp {
	union {
		struct ibv_qp ibv;
		struct ibv_qp_ex ex;
	};
	uint8_t beyond[BEYOND_BYTES];
	struct sim_qp *engine;
	uint32_t async_events_read;
	struct answer answer;
};

struct ah {
	struct ibv_ah ibv;
	struct sim_ah *engine;
};

static inline struct context *context_of(struct ibv_context *context)
{
	return (struct context *)((char *)context - offsetof(struct context, verbs.context));
}

/* A verb's look at an object: NULL where it is not a live one of its context. */
static inline struct qp *qp_of(struct ibv_qp *ibv)
{
	struct context *context = context_of(ibv->context);

	return handles_has(&context->handles[KIND_QP], ibv->handle, ibv) ? (struct qp *)ibv : NULL;
}

static inline struct cq *cq_of(struct ibv_cq *ibv)
{
	struct context *context = context_of(ibv->context);

	return handles_has(&context->handles[KIND_CQ], ibv->handle, ibv) ? (struct cq *)ibv : NULL;
}

struct pd *pd_of(struct ibv_pd *ibv);
struct mr *mr_of(struct ibv_mr *ibv);
struct ah *ah_of(struct ibv_ah *ibv);
struct channel *channel_of(struct ibv_comp_channel *ibv);

/* True while the context is open. */
bool context_live(const struct context *context);

/* A zeroed object with its handle, or NULL. */
void *object_new(struct context *context, enum kind kind, uint32_t *handle);

/* The object's number leads nowhere from now on; its bytes stay. */
void object_end(struct context *context, enum kind kind, uint32_t handle, void *object);

/* The bytes of an object of a kind. */
size_t object_bytes(enum kind kind);

#endif
