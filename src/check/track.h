/* SPDX-License-Identifier: MIT */
/*
 * Follows the verbs: keeps the objects and the works in flight, and calls the rules' functions for works. A file
 * for each kind of verb has a table of hooks. All functions are called with the sanitizer's lock held.
 */
#ifndef SRC_CHECK_TRACK_H
#define SRC_CHECK_TRACK_H

#include "src/check/check.h"

/* The hooks of the verbs that change objects or works. Their before() is called after those of the rules,
 * their after() before those of the rules. */
extern const struct check_hook track_post_hooks[];
extern const struct check_hook track_completion_hooks[];
extern const struct check_hook track_queue_hooks[];
extern const struct check_hook track_mr_hooks[];

/* check.c: call this when the program makes its first object. Registers the handlers of fork(2). */
void check_watch_forks(void);

/* --- for the files track_*.c --- */

static inline bool track_failed(const struct check_call *check)
{
	return check->call->err;
}

/* A work leaves its queue: its completion takes no entry of the CQ any more. A NULL CQ is unknown. */
static inline void track_leave_cq(struct check_cq *cq, const struct work *work)
{
	if (cq && work->signalled && cq->in_flight)
		cq->in_flight--;
}

/* In before() of a verb that ends an object: hides the object, and keeps it for after(), in check->state.
 * NULL: unknown. */
static inline void track_hide(struct check_call *check, struct object *object)
{
	*check->state = (uintptr_t)object;
	if (object)
		object_hide(object);
}

#endif /* SRC_CHECK_TRACK_H */
