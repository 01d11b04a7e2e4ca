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
#include "backends/sim/object/description.h"

#include "sim/engine.h"

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define BEYOND_BYTES 64

struct vb_sim;
struct batch;
struct foreign;

/* In the order in which a context that is closed ends its objects: users before what they use. */
enum kind {
	KIND_QP,
	KIND_SRQ,
	KIND_CQ,
	KIND_AH,
	KIND_MW,
	KIND_MR,
	KIND_DM,
	KIND_XRCD,
	KIND_PD,
	KIND_TD,
	KIND_CHANNEL,
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
	bool of_cm;	 /* opened by the connection manager */
	struct handles handles[KINDS];
	/* What other processes may import. Unmapped unless the device is shared with other processes. */
	struct description description;
	/* Set in the stand-in for another process's context, which has no ibv_* of its own: it is the
	 * origin of the contexts imported from there, and its description is the other process's. */
	struct foreign *foreign;
	struct event_queue async;
	struct answer port_answer[SIM_PORTS_MAX];
	struct answer clock_answer;
	/* poll_cq() of the backend: while layers watch, ops has another one. */
	int (*poll_cq)(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc);
};

struct td {
	struct ibv_td ibv;
	uint32_t slot;
	uint32_t users; /* counts the parent domains that use it */
};

/* A parent domain has the number of the PD that it extends, and can take the PD's place. */
struct pd {
	struct ibv_pd ibv;
	uint32_t number;    /* the PD's number in the engine */
	uint32_t users;	    /* counts the objects made in it, parent domains included */
	struct pd *extends; /* the PD of a parent domain; else NULL */
	struct td *td;	    /* the thread domain of a parent domain, or NULL */
	struct pd *root;    /* the PD that an import stands for; else NULL */
	struct pd *views;   /* the imports of a root, linked by next_view */
	struct pd *next_view;
	uint32_t slot; /* its number in its context; ibv.handle of an import is the root's number */
	uint64_t stamp; /* of a root in another process: as it was when it was imported */
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
	uint64_t stamp;	 /* as in struct pd */
};

struct mr {
	struct ibv_mr ibv;
	uint8_t beyond[BEYOND_BYTES];
	struct sim_mr *engine;
	struct pd *pd;	 /* its PD; of an import, the root has it */
	struct dm *dm;	 /* the device memory that it covers; NULL for the program's memory */
	struct mr *root; /* the MR that an import stands for; else NULL */
	uint32_t slot;	 /* as in struct pd */
	uint64_t stamp;	 /* as in struct pd */
};

struct mw {
	struct ibv_mw ibv;
	struct sim_mr *engine;
	struct pd *pd;
	uint32_t slot;
};

/* An XRC domain of a device. All XRCDs that are opened with one inode share the domain; a domain
 * without an inode has one XRCD. */
struct domain {
	struct domain *next;
	struct sim_xrcd *engine;
	uint32_t handles; /* counts its XRCDs */
	uint32_t entry;	  /* in the table of the processes that share the device */
	bool has_inode;
	dev_t st_dev;
	ino_t st_ino;
};

struct xrcd {
	struct ibv_xrcd ibv;
	uint8_t beyond[BEYOND_BYTES];
	uint32_t slot;
	uint32_t users; /* counts SRQs and handles of target QPs */
	struct domain *domain;
};

struct channel {
	struct ibv_comp_channel ibv;
	uint32_t slot;
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
	struct channel *channel; /* NULL if it has none */
	uint32_t slot;
	uint32_t comp_events_read;
	uint32_t async_events_read;
	pthread_mutex_t poll_mutex; /* held from ibv_start_poll() to ibv_end_poll() */
	bool poll_locked;	    /* set while poll_mutex is held */
	bool single_threaded;	    /* polled without poll_mutex */
	bool awaited;		    /* armed, and its event goes to the channel */
	struct pd *parent;	    /* the parent domain that it was made with, or NULL */
	struct sim_cqe current;	    /* the entry that ibv_wc_read_*() read */
};

struct srq {
	struct ibv_srq ibv;
	uint8_t beyond[BEYOND_BYTES];
	struct sim_srq *engine;
	struct pd *pd;
	struct xrcd *xrcd; /* the domain of an XRC SRQ; else NULL */
	struct cq *cq;	   /* the CQ of an XRC SRQ; else NULL */
	uint32_t slot;
	uint32_t async_events_read;
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
	struct pd *pd; /* NULL for a target QP */
	uint32_t slot;
	uint32_t async_events_read;
	struct answer answer;
	struct batch *batch;	/* the WRs since ibv_wr_start(); NULL without send_ops_flags */
	struct xrcd *xrcd;	/* the domain of a target QP; else NULL */
	struct qp *next_handle; /* a ring of the handles of one QP (ibv_open_qp) */
	/* A handle of another process's target QP: the process. The engine's QP is a stand-in. Else 0. */
	uint64_t process;
};

struct ah {
	struct ibv_ah ibv;
	struct sim_ah *engine;
	struct pd *pd; /* the PD that it keeps busy, or NULL */
	uint32_t slot;
};

static inline struct context *context_of(struct ibv_context *context)
{
	return (struct context *)((char *)context - offsetof(struct context, verbs.context));
}

/* Returns the context of an object of any kind: each begins with a pointer to it. */
static inline struct context *object_context(const void *object)
{
	return context_of(*(struct ibv_context *const *)object);
}

/* Returns the object behind the program's pointer; NULL if it is not live, or its public handle is
 * not its own. An import lives as long as its root. */
void *object_of(enum kind kind, void *ibv);

/* Returns true if the object is live, whatever its public handle is. */
bool object_live(enum kind kind, void *object);

/*
 * The errno for an object that was not found in the context: ENOENT, as the kernel's lookup of the
 * handle (Linux drivers/infiniband/core/rdma_core.c, lookup_get_idr_uobject); EINVAL for NULL and
 * for an object of another context.
 */
int object_missing(const struct ibv_context *context, const void *ibv);

/* As object_of(), with the object's number. For a kind without imports this is the public handle. */
static inline void *object_at(enum kind kind, uint32_t number, void *ibv)
{
	return handles_has(&object_context(ibv)->handles[kind], number, ibv) ? ibv : NULL;
}

/*
 * X_of() is object_of() with types, and X_in() also checks that the object belongs to a context;
 * X_in() returns NULL for NULL, too. Each work request looks up a QP or a CQ: these are inlined.
 */
#define ACCESSORS(x, ibv_x, find)                                                            \
	static inline struct x *x##_of(struct ibv_x *ibv)                                    \
	{                                                                                    \
		return find;                                                                 \
	}                                                                                    \
	static inline struct x *x##_in(const struct ibv_context *context, struct ibv_x *ibv) \
	{                                                                                    \
		return ibv && ibv->context == context ? x##_of(ibv) : NULL;                  \
	}

ACCESSORS(qp, ibv_qp, object_at(KIND_QP, ibv->handle, ibv))
ACCESSORS(srq, ibv_srq, object_of(KIND_SRQ, ibv))
ACCESSORS(cq, ibv_cq, object_at(KIND_CQ, ibv->handle, ibv))
ACCESSORS(ah, ibv_ah, object_of(KIND_AH, ibv))
ACCESSORS(mw, ibv_mw, object_of(KIND_MW, ibv))
ACCESSORS(mr, ibv_mr, object_of(KIND_MR, ibv))
ACCESSORS(dm, ibv_dm, object_of(KIND_DM, ibv))
ACCESSORS(xrcd, ibv_xrcd, object_of(KIND_XRCD, ibv))
ACCESSORS(pd, ibv_pd, object_of(KIND_PD, ibv))
ACCESSORS(td, ibv_td, object_of(KIND_TD, ibv))
ACCESSORS(channel, ibv_comp_channel, object_of(KIND_CHANNEL, ibv))
#undef ACCESSORS

/* As X_in(), for an MR that has an rkey: a null MR is none. */
struct mr *region_in(const struct ibv_context *context, struct ibv_mr *ibv);

/* Returns the object that an import stands for; the object itself if it is not imported. */
void *object_root(enum kind kind, const void *object);

/* Returns true if the object is an import whose root is in another process. */
bool object_is_foreign(enum kind kind, const void *object);

/* Describes an object to other processes. Does nothing if the context has no description. */
void object_describe(enum kind kind, const void *object, const struct described *described);

/* Returns what messages call an object of the kind, such as "PD". */
const char *kind_name(enum kind kind);

struct object_handles {
	uint32_t
		given; /* what the public structure has, or the object's number if it has no handle */
	uint32_t own; /* what the simulator gave it */
};

/* Returns the handles of an object, live or not. */
struct object_handles object_handles(enum kind kind, void *ibv);

/* Returns true while the context is open. */
bool context_live(const struct context *context);

/*
 * Returns an object that is zero but for its context and its handle; NULL with errno ENOMEM and a
 * sentence that names the verb.
 */
void *object_new(struct context *context, enum kind kind, const char *verb);

/* Ends an object: its handle leads nowhere from now on; its bytes stay. */
void object_end(enum kind kind, void *object);

void store_init(struct store *store);
void store_end(struct store *store);

/* The kind of object that an asynchronous event names; KINDS for an event of a port or device. */
enum kind event_kind(enum ibv_event_type type);

/* The counters of the asynchronous events of a QP, SRQ or CQ that the program has read and that it
 * has acknowledged. */
uint32_t *object_events_read(enum kind kind, void *object);
uint32_t *object_events_acked(enum kind kind, void *object);

#endif
