/* SPDX-License-Identifier: MIT */
/*
 * libibverbs' objects around the engine's.
 *
 * Each object begins with the structure that the program holds. Zeroed space follows it if a newer
 * libibverbs has more fields at the end. All objects live in pools, so that a stale pointer of a
 * program can be read; the handles of its context say whether the object is live.
 */
#ifndef BACKENDS_SIM_OBJECT_OBJECTS_H
#define BACKENDS_SIM_OBJECT_OBJECTS_H

#include "backends/sim/base/event_queue.h"
#include "backends/sim/base/handles.h"
#include "backends/sim/base/pool.h"

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
	KIND_CONTEXT, /* its handles are in the store */
	KINDS,
};

/* The objects of a world. */
struct store {
	struct pool pools[KINDS];
	uint32_t live[KINDS]; /* counts the live objects of each kind */
	struct handles contexts;
};

struct device {
	struct ibv_device ibv;
	uint8_t beyond[BEYOND_BYTES];
	struct vb_sim *world;
	struct sim_device *engine;
	uint64_t dm_bytes;	/* allocated device memory */
	struct domain *domains; /* XRC domains */
};

/* The last answer of a query. A query that would give the same answer again waits. */
struct answer {
	uint64_t digest;
	bool given;
};

struct context {
	struct verbs_context verbs; /* ends with the ibv_context */
	uint8_t beyond[BEYOND_BYTES];
	uint32_t handle;
	struct vb_sim *world;
	struct store *store;
	struct device *device;
	struct context
		*origin; /* the context whose file it shares; itself unless it was imported */
	struct handles handles[KINDS];
	struct event_queue async;
	struct answer port_answer[SIM_PORTS_MAX];
	struct answer clock_answer;
};

struct td {
	struct ibv_td ibv;
	uint32_t handle;
	uint32_t users; /* counts the parent domains that use it */
};

/* A parent domain has the number of the PD that it extends, and can take the PD's place. */
struct pd {
	struct ibv_pd ibv;
	uint32_t number;    /* the PD's number in the engine */
	uint32_t users;	    /* counts the objects made in it, parent domains included, AHs not */
	uint32_t ahs;	    /* counts its AHs; dealloc_pd ignores them unless a quirk is set */
	struct pd *extends; /* the PD of a parent domain; else NULL */
	struct td *td;	    /* the thread domain of a parent domain, or NULL */
	struct pd *root;    /* the PD that an import stands for; else NULL */
	struct pd *views;   /* the imports of a root, linked by next_view */
	struct pd *next_view;
	uint32_t slot; /* its number in its context; ibv.handle of an import is the root's number */
};

/* Device memory is memory of this process. */
struct dm {
	struct ibv_dm ibv;
	uint8_t beyond[BEYOND_BYTES];
	uint8_t *bytes;
	size_t length_bytes;
	uint32_t users;	 /* counts the MRs of it */
	struct dm *root; /* the DM that an import stands for; else NULL */
	uint32_t slot;	 /* as in struct pd */
};

struct mr {
	struct ibv_mr ibv;
	uint8_t beyond[BEYOND_BYTES];
	struct sim_mr *engine;
	struct dm *dm;	 /* the device memory that it covers; NULL for the program's memory */
	struct mr *root; /* the MR that an import stands for; else NULL */
	uint32_t slot;	 /* as in struct pd */
};

struct mw {
	struct ibv_mw ibv;
	struct sim_mr *engine;
};

/* An XRC domain of a device. All XRCDs that are opened with one inode share the domain; a domain
 * without an inode has one XRCD. */
struct domain {
	struct domain *next;
	struct sim_xrcd *engine;
	uint32_t handles; /* counts its XRCDs */
	bool has_inode;
	dev_t st_dev;
	ino_t st_ino;
};

struct xrcd {
	struct ibv_xrcd ibv;
	uint8_t beyond[BEYOND_BYTES];
	uint32_t handle;
	uint32_t users; /* counts SRQs and handles of target QPs */
	struct domain *domain;
};

struct channel {
	struct ibv_comp_channel ibv;
	uint32_t handle;
	uint32_t users; /* counts the CQs that use it */
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
	pthread_mutex_t poll_mutex; /* held from ibv_start_poll() to ibv_end_poll() */
	bool poll_locked;	    /* set while poll_mutex is held */
	bool single_threaded;	    /* polled without poll_mutex */
	struct pd *parent;	    /* the parent domain that it was made with, or NULL */
	struct sim_cqe current;	    /* the entry that ibv_wc_read_*() read */
};

struct srq {
	struct ibv_srq ibv;
	uint8_t beyond[BEYOND_BYTES];
	struct sim_srq *engine;
	struct xrcd *xrcd; /* the domain of an XRC SRQ; else NULL */
	uint32_t async_events_read;
};

/* A multicast group that a QP is in. */
struct group {
	struct group *next;
	union ibv_gid gid;
	uint16_t lid;
};

/* The real ibv_qp_to_qp_ex() tests the lowest bit of a mask that rdma-core keeps at this place. */
#define QP_IS_EXTENDED 1u

struct qp {
	union {
		struct ibv_qp ibv;
		struct ibv_qp_ex ex;
	};
	uint32_t extended; /* QP_IS_EXTENDED if it was made with send_ops_flags */
	uint8_t beyond[BEYOND_BYTES];
	struct sim_qp *engine;
	uint32_t async_events_read;
	struct answer answer;
	struct batch *batch; /* the WRs since ibv_wr_start(); NULL without send_ops_flags */
	struct group *groups;
	struct xrcd *xrcd;	/* the domain of a target QP; else NULL */
	struct qp *next_handle; /* a ring of the handles of one QP (ibv_open_qp) */
};

struct ah {
	struct ibv_ah ibv;
	struct sim_ah *engine;
};

static inline struct context *context_of(struct ibv_context *context)
{
	return (struct context *)((char *)context - offsetof(struct context, verbs.context));
}

/*
 * X_of() returns the object behind the program's pointer, and X_in() also checks that it belongs to
 * a context. Both return NULL if the object is not live; X_in() returns NULL for NULL, too.
 */

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
struct mr *mr_of(struct ibv_mr *ibv);
struct mw *mw_of(struct ibv_mw *ibv);
struct ah *ah_of(struct ibv_ah *ibv);
struct srq *srq_of(struct ibv_srq *ibv);
struct xrcd *xrcd_of(struct ibv_xrcd *ibv);
struct channel *channel_of(struct ibv_comp_channel *ibv);

struct pd *pd_in(const struct ibv_context *context, struct ibv_pd *ibv);
struct cq *cq_in(const struct ibv_context *context, struct ibv_cq *ibv);
struct mw *mw_in(const struct ibv_context *context, struct ibv_mw *ibv);
struct xrcd *xrcd_in(const struct ibv_context *context, struct ibv_xrcd *ibv);

/* As X_in(), for an MR that has an rkey: a null MR is none. */
struct mr *region_in(const struct ibv_context *context, struct ibv_mr *ibv);

/* Returns true while the context is open. */
bool context_live(const struct context *context);

/*
 * Returns a zeroed object and its handle; NULL with errno ENOMEM and a sentence that names the
 * verb.
 */
void *object_new(struct context *context, enum kind kind, uint32_t *handle, const char *verb);

/* Ends an object: its handle leads nowhere from now on; its bytes stay. */
void object_end(struct context *context, enum kind kind, uint32_t handle, void *object);

void store_init(struct store *store);
void store_end(struct store *store);

/* The CQ, QP or SRQ that an asynchronous event names. */
struct element {
	struct context *context;
	enum kind kind;
	uint32_t handle;
	uint32_t *read;	 /* counts the events that the program has read */
	uint32_t *acked; /* counts the events that the program has acknowledged */
};

/* Fills *element. Returns false for an event of a port or device. */
bool element_of(enum ibv_event_type type, void *object, struct element *element);

#endif
