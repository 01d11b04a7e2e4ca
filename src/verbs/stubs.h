/* SPDX-License-Identifier: MIT */
/*
 * What answers for a verb that is not there: one function for each, in that verb's own convention.
 */
#ifndef SRC_VERBS_STUBS_H
#define SRC_VERBS_STUBS_H

#include <verbena/backend.h>

/*
 * A backend of stubs alone. Called in a verb that found no backend, they answer EINVAL; else,
 * EOPNOTSUPP (see refusal_errno() in dispatch.h).
 */
extern const struct vb_backend stubs;

/* Puts stubs in the places of the verbs that @backend leaves NULL. */
void stubs_fill(struct vb_backend *backend);

#endif /* SRC_VERBS_STUBS_H */
