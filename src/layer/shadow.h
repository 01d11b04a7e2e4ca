/* SPDX-License-Identifier: MIT */
/*
 * Contexts, QPs and CQs with functions of their own, which a program calls through the object. A
 * shadowed object has wrappers in their place, and its entry keeps the original functions. A NULL
 * stays NULL. The wrappers are put in and taken out by one who knows that the object is live.
 */
#ifndef SRC_LAYER_SHADOW_H
#define SRC_LAYER_SHADOW_H

#include "src/layer/passage.h"

/* Puts wrappers into an object that has just been entered. Without memory the object keeps its own. */
void shadow_context(struct layer_entry *entry, const struct vb_backend *backend);

/* Takes the wrappers out of the object, or puts them in again. A function that somebody else has
 * replaced meanwhile stays. For an object without shadow they do nothing. */
void shadow_hide(struct layer_entry *entry);
void shadow_show(struct layer_entry *entry);

/* Frees the shadow of an object that has ended. */
void shadow_drop(struct layer_entry *entry);

#endif /* SRC_LAYER_SHADOW_H */
