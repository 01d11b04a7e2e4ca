/* SPDX-License-Identifier: MIT */
/*
 * Which backend owns an event channel, an identifier, an event, a list of devices or a list of
 * addresses.
 *
 * A table remembers what vb_cm_*() has handed out. An event is found by its identifiers. Any thread
 * may call these functions.
 */
#ifndef SRC_CM_OWNER_H
#define SRC_CM_OWNER_H

#include <rdma/rdma_cma.h>
#include <verbena/backend.h>

enum owner_kind { OWNER_CHANNEL, OWNER_ID, OWNER_DEVICES, OWNER_ADDRESSES };

/*
 * Return the slot of the backend that owns the object, or NULL if no backend owns it. A channel may
 * also be that of a synchronous identifier, which no program has made.
 */
const struct vb_backend *owner_of(const void *object, enum owner_kind kind);
const struct vb_backend *owner_of_channel(const struct rdma_event_channel *channel);
const struct vb_backend *owner_of_event(const struct rdma_cm_event *event);

/* Remembers an object. Returns 0, or ENOMEM, which changes nothing. */
int owner_add(const void *object, enum owner_kind kind, const struct vb_backend *slot);

/* Notes the channel of an identifier, which may have changed. */
void owner_note_channel(const struct rdma_cm_id *id);

/* Forgets a list before the backend frees it. Returns the slot of its owner, or NULL. */
const struct vb_backend *owner_take(const void *object, enum owner_kind kind);

/*
 * Forgets a channel or an identifier of the backend @slot after the backend has freed it. Until
 * then other threads acknowledge its events. Another thread may have got a new object at the same
 * address, even from another backend: the oldest one of @slot is forgotten.
 */
void owner_forget(const void *object, enum owner_kind kind, const struct vb_backend *slot);

#endif /* SRC_CM_OWNER_H */
