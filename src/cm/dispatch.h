/* SPDX-License-Identifier: MIT */
/*
 * What vb_cm_<name>() does before and after the call of its backend, beside src/verbs/dispatch.h.
 */
#ifndef SRC_CM_DISPATCH_H
#define SRC_CM_DISPATCH_H

#include <rdma/rdma_cma.h>
#include <verbena/backend.h>
#include <verbena/cm_backend.h>

/*
 * These begin the function @function (its __func__) on a channel, an identifier or an event.
 * Without a backend they return the stubs of the verbs, and say why.
 */
const struct vb_backend *enter_channel(const char *function,
				       const struct rdma_event_channel *channel);
const struct vb_backend *enter_id(const char *function, const struct rdma_cm_id *id);
const struct vb_backend *enter_event(const char *function, const struct rdma_cm_event *event);

/*
 * Note a context that the backend has opened by itself, such as that of an identifier that has got
 * a device in this call: verbs then find its backend. Keep errno.
 */
void note_context(struct ibv_context *context, const struct vb_backend *slot);
void note_device(const struct rdma_cm_id *id, const struct vb_backend *slot);

/*
 * Gives the reason of a failed getaddrinfo, unless the backend has given one, and sets errno. answer: the
 * backend's result; with 0 or -1 the function does nothing.
 */
void explain_gai(int answer);

/* Stands in for functions that a backend does not have: each of its functions fails. */
extern const struct vb_cm_backend cm_stubs;

/* The function @name of the backend of @slot, or its stub. */
#define CM(slot, name) ((slot)->cm && (slot)->cm->name ? (slot)->cm->name : cm_stubs.name)

#endif /* SRC_CM_DISPATCH_H */
