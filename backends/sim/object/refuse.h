/* SPDX-License-Identifier: MIT */
/* Refusals by a verb itself, and those that a stale or foreign object causes. */
#ifndef BACKENDS_SIM_OBJECT_REFUSE_H
#define BACKENDS_SIM_OBJECT_REFUSE_H

#include "backends/sim/base/say.h"
#include "backends/sim/object/objects.h"

/*
 * Keeps why as the reason of the verb, sets errno to the error of the reason's row and returns the
 * error: `return refuse_why("create_cq", (struct vb_why){VB_WHY_CQ_SIZE, {cqe, limit}})`.
 */
int refuse_why(const char *verb, struct vb_why why);

/* The same for a reason that has no values. */
int refuse_plainly(const char *verb, enum vb_reason reason);

/* ENOENT: X_of() has found that the object is not live. */
int refuse_gone(const char *verb, enum kind kind, void *ibv);

/* As refuse_gone(), with EINVAL, for the verbs of the data path: those of a QP, SRQ or CQ. */
int refuse_queue(const char *verb, enum kind kind, void *ibv);

/*
 * X_in() has not found the object in the context: EINVAL for NULL and for an object of another
 * context; ENOENT, as the kernel's lookup of the handle (Linux drivers/infiniband/core/rdma_core.c,
 * lookup_get_idr_uobject), for an object that is not live.
 */
int refuse_missing(const char *verb, enum kind kind, const struct ibv_context *context, void *ibv);

#endif
