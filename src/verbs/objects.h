/* SPDX-License-Identifier: MIT */
/*
 * Which backend a device list, device or context is of.
 *
 * Some backends tell their own lists, devices and contexts. What others handed out is remembered in
 * a table, with the number of lists and contexts that hold a device. The table is looked at first,
 * so that a backend is shown another's object only where a program uses one that is gone. All
 * functions are for any thread.
 */
#ifndef SRC_VERBS_OBJECTS_H
#define SRC_VERBS_OBJECTS_H

#include <verbena/backend.h>

/* The slot of an object, or NULL if it is nobody's. */
const struct vb_backend *objects_context_slot(const struct ibv_context *context);
const struct vb_backend *objects_device_slot(const struct ibv_device *device);

/* Remembers a list and its devices, or a context and its device. 0, or ENOMEM: nothing changed. */
int objects_add_list(struct ibv_device **list, const struct vb_backend *slot);
int objects_add_context(struct ibv_context *context, const struct vb_backend *slot);

/*
 * Forgets them, where they are remembered. To be called before the backend frees them, since
 * another thread may be handed the same address at once. The slot of a list is told, or NULL if it
 * is nobody's.
 */
const struct vb_backend *objects_take_list(struct ibv_device **list);
void objects_forget_context(struct ibv_context *context);

#endif /* SRC_VERBS_OBJECTS_H */
