/* SPDX-License-Identifier: MIT */
/*
 * Which backend owns a device list, a device or a context.
 *
 * A table remembers all open contexts, the lists of backends that do not know their own, and the
 * devices that each of them holds. An object is looked up in the table first, and only then shown to the
 * backends that know their own: a backend sees a foreign object only if a program uses an object
 * that has been freed. Any thread may call these functions.
 */
#ifndef SRC_VERBS_OBJECTS_H
#define SRC_VERBS_OBJECTS_H

#include <verbena/backend.h>

/* Return the slot of the backend that owns the object, or NULL if no backend owns it. */
const struct vb_backend *objects_context_slot(const struct ibv_context *context);
const struct vb_backend *objects_device_slot(const struct ibv_device *device);

/*
 * Remember a list and its devices, or a context and its device. Return 0, or ENOMEM, which changes
 * nothing.
 */
int objects_add_list(struct ibv_device **list, const struct vb_backend *slot);
int objects_add_context(struct ibv_context *context, const struct vb_backend *slot);

/*
 * Forget a list or a context, if it is remembered. Call them before the backend frees the object:
 * afterwards another thread may get a new object at the same address. objects_take_list() returns
 * the slot of the backend that owns the list, or NULL if no backend owns it.
 */
const struct vb_backend *objects_take_list(struct ibv_device **list);
void objects_forget_context(struct ibv_context *context);

/* Calls see() for each open context, with a lock held: see() may call nothing of this header. */
void objects_each_context(void (*see)(struct ibv_context *context, const struct vb_backend *slot));

#endif /* SRC_VERBS_OBJECTS_H */
