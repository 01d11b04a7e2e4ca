/* SPDX-License-Identifier: MIT */
/*
 * The slots of the backends while there are layers: they hold the wrappers of wrap.c, and the
 * originals are here.
 */
#ifndef SRC_LAYER_SLOTS_H
#define SRC_LAYER_SLOTS_H

#include <verbena/backend.h>

/* Puts wrappers into all slots and into those that are added later; takes them out. */
void slots_dress(void);
void slots_undress(void);

/* Returns the original of a slot; that of the stubs if the slot is NULL. */
const struct vb_backend *slots_original(const struct vb_backend *slot);

/* Returns the original of the backend that owns a context. */
const struct vb_backend *slots_context_original(const struct ibv_context *context);

/* Returns the original of the slot in row `number`. */
const struct vb_backend *slots_at(unsigned int number);

/*
 * In wrap.c. Puts wrappers into the slot of row `number`, and the slot's functions into original;
 * puts the functions of original back where the slot has a wrapper.
 */
void wrap_put(struct vb_backend *slot, struct vb_backend *original, unsigned int number);
void wrap_take_out(struct vb_backend *slot, const struct vb_backend *original, unsigned int number);

/* In wrap_cm.c, which wrap.c calls: the same for the connection manager. */
void wrap_put_cm(struct vb_backend *slot, struct vb_backend *original);
void wrap_take_out_cm(struct vb_backend *slot, const struct vb_backend *original);

#endif /* SRC_LAYER_SLOTS_H */
