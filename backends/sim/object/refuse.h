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

/* The same for a reason that has only a text. */
int refuse_name(const char *verb, enum vb_reason reason, const char *text);

/* EIO: an overrun CQ has no completions left. */
int refuse_overrun(const char *verb, const struct cq *cq);

/*
 * The wait for the acknowledgement of an object's asynchronous events has ended with error: EDEADLK
 * or ENODEV of driver_wait_for_others().
 */
int refuse_events(const char *verb, int error, enum kind kind, void *object);
/* ENOMEM: the device has as many objects as its limit allows; @name is the limit's field of struct
 * ibv_device_attr. */
int refuse_limit(const char *verb, const char *name, int limit);

/* EINVAL: comp_mask has bits that the verb does not know. */
int refuse_comp_mask(const char *verb, uint32_t unknown);

/* The object has users, which users_text() names. @number is value 0 of the reason. */
int refuse_busy(const char *verb, enum vb_reason reason, uint64_t number, enum kind kind,
		const void *object);

/* @error: a call of the system or the C library has failed; @call says which, such as "reading the
 * descriptor". */
int refuse_system(const char *verb, int error, const char *call);

/* EMFILE, ENFILE or ENOMEM of a call that has to open a descriptor, with @purpose behind "no free
 * file descriptor", such as "to read /proc/self/maps". */
int refuse_descriptor(const char *verb, int error, const char *purpose);

/* A wait has ended with an error of driver_wait(): ENODEV or EDEADLK, for which why is the reason. */
int refuse_wait(const char *verb, int error, struct vb_why why);

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
