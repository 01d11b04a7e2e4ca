/* SPDX-License-Identifier: MIT */
/*
 * Contexts, QPs and CQs have functions of their own, which a program calls through the object. A
 * shadowed object has wrappers in their place; its shadow keeps the originals. A NULL stays NULL.
 */
#ifndef SRC_LAYER_SHADOW_H
#define SRC_LAYER_SHADOW_H

#include "src/layer/passage.h"

/* What is done to each pointer of an object. */
enum shadow_act {
	SHADOW_PUT,  /* keep the original and put the wrapper in: once, when the shadow is made */
	SHADOW_HIDE, /* put the original back, unless somebody else has put a function there */
	SHADOW_SHOW, /* put the wrapper in again, after SHADOW_HIDE; with the same exception */
};

/* The shadow of each kind of object begins with this. */
struct shadow {
	void (*act)(struct layer_entry *entry, struct shadow *shadow, enum shadow_act act);
	void (*end)(struct shadow *shadow); /* frees what the shadow has, and the shadow */
	const struct vb_backend *backend;   /* the original */
};

/* Does `act` to the pointer `place`, whose original is kept in `kept`. Other threads may be reading
 * the pointer: it is written at once. */
#define SHADOW_POINTER(act, place, kept, wrapper)                                               \
	do {                                                                                    \
		if ((act) == SHADOW_PUT)                                                        \
			(kept) = (place);                                                       \
		if ((act) == SHADOW_HIDE ? (place) == (wrapper) : (place) && (place) == (kept)) \
			__atomic_store_n(&(place), (act) == SHADOW_HIDE ? (kept) : (wrapper),   \
					 __ATOMIC_RELEASE);                                     \
	} while (0)

/* Gives an entry a shadow whose members are complete, and puts the wrappers in. */
void shadow_begin(struct layer_entry *entry, struct shadow *shadow);

/* Hides or shows the wrappers of an object; nothing for an object without a shadow. The object must
 * be live. */
void shadow_hide(struct layer_entry *entry);
void shadow_show(struct layer_entry *entry);

/* Ends the shadow, if there is one, of an object that has ended or whose wrappers are hidden. */
void shadow_drop(struct layer_entry *entry);

/* Returns the shadow of a live object of a kind; NULL: it has none. Any thread may call it. */
struct shadow *shadow_find(const void *object, enum layer_kind kind);

/* Notes that memory was lacking for the sight of an object: layer_lost_sight(). */
void shadow_lose_sight(void);

/* No object has wrappers any more. */
void shadow_regain_sight(void);

/* --- the kinds; without memory an object has no shadow --- */

/* wrap.c: context->ops and struct verbs_context */
void shadow_context(struct layer_entry *entry, const struct vb_backend *backend);

/* cq_ex.c: start_poll, next_poll and end_poll. wc_flags: those that the CQ was created with. */
void shadow_cq(struct layer_entry *entry, const struct vb_backend *backend, uint64_t wc_flags);

/* qp_ex.c: wr_start and all that follow. cap: the capabilities of the QP. */
void shadow_qp(struct layer_entry *entry, const struct vb_backend *backend,
	       const struct ibv_qp_cap *cap);

#endif /* SRC_LAYER_SHADOW_H */
