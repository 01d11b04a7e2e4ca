/* SPDX-License-Identifier: MIT */
/*
 * libibverbs' objects around the engine's.
 *
 * Each begins with the structure that the program holds. Zeroed space follows where a newer
 * libibverbs has more fields at the end. All live in pools, so a stale pointer of a program can be
 * read; whether it is live is asked of its context's handles.
 */
#ifndef BACKENDS_SIM_OBJECT_OBJECTS_H
#define BACKENDS_SIM_OBJECT_OBJECTS_H

#include "backends/sim/object/channel.h"
#include "backends/sim/object/handles.h"

#include "sim/engine.h"

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define BEYOND_BYTES 64

struct vb_sim;
struct batch;

enum kind {
	KIND_PD,
	KIND_MR,
	KIND_CQ,
	KIND_QP,
	KIND_AH,
	KIND_CHANNEL,
	KIND_SRQ,
	KIND_MW,
	KIND_DM,
	KIND_TD,
	KIND_XRCD,
	KIND_CONTEXT, /* its handles are the world's */
	KINDS,
};

struct device {
	struct ibv_device ibv;
	uint8_t beyond[BEYOND_BYTES];
	struct vb_sim *world;
	struct sim_device *engine;
	uint64_t dm_bytes; /* device memory that is allocated */
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
	struct context *origin; /* that it shares the file of; itself unless it was imported */
	struct handles handles[KINDS];
	struct event_queue async;
	struct answer port_answer[SIM_PORTS_MAX];
	struct answer clock_answer;
};

struct td {
	struct ibv_td ibv;
	uint32_t handle;
	uint32_t users; /* parent domains */
};

/* A parent domain has the number of the PD that it extends, and stands in for it everywhere. */
struct pd {
	struct ibv_pd ibv;
	uint32_t number;    /* the engine's name for it */
	uint32_t users;	    /* what was made in it, parent domains included */
	uint32_t ahs;	    /* which need not go first (but for a quirk) */
	struct pd *extends; /* a parent domain's PD; else NULL */
	struct td *td;	    /* a parent domain's, or NULL */
	struct pd *root;    /* an imported one's; else NULL */
	struct pd *views;   /* a root's imports, by next_view */
	struct pd *next_view;
	uint32_t slot; /* its number in its context; an import shows its root's in ibv.handle */
};

/* Device memory, which is memory of this process. */
struct dm {
	struct ibv_dm ibv;
	uint8_t beyond[BEYOND_BYTES];
	uint8_t *bytes;
	size_t length_bytes;
	uint32_t users;	 /* MRs */
	struct dm *root; /* an imported one's; else NULL */
	uint32_t slot;
};

struct mr {
	struct ibv_mr ibv;
	uint8_t beyond[BEYOND_BYTES];
	struct sim_mr *engine;
	struct dm *dm;	 /* whose memory it is; NULL for the program's */
	struct mr *root; /* an imported one's; else NULL */
	uint32_t slot;
};

struct mw {
	struct ibv_mw ibv;
	struct sim_mr *engine;
};

/* What the XRC domains of one inode share; without an inode there is one handle only. */
struct domain {
	struct domain *next;
	struct sim_xrcd *engine;
	struct sim_device *device;
	uint32_t handles;
	bool has_inode;
	dev_t st_dev;
	ino_t st_ino;
};

struct xrcd {
	struct ibv_xrcd ibv;
	uint8_t beyond[BEYOND_BYTES];
	uint32_t handle;
	uint32_t users; /* SRQs, and handles of target QPs */
	struct domain *domain;
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
	bool single_threaded; /* no poll mutex */
	struct pd *parent;    /* the parent domain that it was made with, or NULL */
	struct sim_cqe current;
};

struct srq {
	struct ibv_srq ibv;
	uint8_t beyond[BEYOND_BYTES];
	struct sim_srq *engine;
	struct xrcd *xrcd; /* of an XRC SRQ; else NULL */
	uint32_t async_events_read;
};

/* A multicast group that a QP is in. */
struct group {
	struct group *next;
	union ibv_gid gid;
	uint16_t lid;
};

/* rdma-core's own objects have a mask here, in whose lowest bit the real ibv_qp_to_qp_ex() looks. */
#define QP_IS_EXTENDED 1u

struct qp {
	union {
		struct ibv_qp ibv;
		struct ibv_qp_ex ex;
	};
	uint32_t extended; /* QP_IS_EXTENDED where it was made with send_ops_flags */
	uint8_t beyond[BEYOND_BYTES];
	struct sim_qp *engine;
	uint32_t async_events_read;
	struct answer answer;
	struct batch *batch; /* ibv_wr_start() to ibv_wr_complete(); NULL without send_ops_flags */
	struct group *groups;
	struct xrcd *xrcd;	/* of a target QP; else NULL */
	struct qp *next_handle; /* the handles of one QP, in a ring (ibv_open_qp) */
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
struct td *td_of(struct ibv_td *ibv);
struct dm *dm_of(struct ibv_dm *ibv);
struct mw *mw_of(struct ibv_mw *ibv);
struct srq *srq_of(struct ibv_srq *ibv);
struct xrcd *xrcd_of(struct ibv_xrcd *ibv);
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
