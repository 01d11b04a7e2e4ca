/* SPDX-License-Identifier: MIT */
/* Follows the verbs: keeps the objects and the works in flight, and calls the rules' functions for works. */
#ifndef SRC_CHECK_TRACK_H
#define SRC_CHECK_TRACK_H

#include "src/check/check.h"

/* The hooks of the verbs that change objects or works. Their before() is called after those of the rules,
 * their after() before those of the rules. */
extern const struct check_hook track_hooks[];

/* --- check.c calls the rules --- */

/* Call this when the program makes its first object: registers the handlers of fork(2). */
void check_watch_forks(void);

void check_dropped(struct check_call *check, struct check_qp *qp, struct work *work);
void check_refused(struct check_call *check, struct check_qp *qp, struct work *work);

#endif /* SRC_CHECK_TRACK_H */
