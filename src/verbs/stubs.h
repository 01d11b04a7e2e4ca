/* SPDX-License-Identifier: MIT */
/*
 * The stubs: a function for each verb, which refuses the call in the verb's convention.
 */
#ifndef SRC_VERBS_STUBS_H
#define SRC_VERBS_STUBS_H

#include <verbena/backend.h>

/*
 * The backend of all verbs that find no backend. A stub answers EINVAL in such a verb, and
 * EOPNOTSUPP in the slot of a backend that does not have the verb; see refuse() in dispatch.h. Only
 * layers write to it, as to a slot.
 */
extern struct vb_backend stubs;

/* Replaces each NULL verb of @backend with its stub. */
void stubs_fill(struct vb_backend *backend);

#endif /* SRC_VERBS_STUBS_H */
