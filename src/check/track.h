/* SPDX-License-Identifier: MIT */
/* Follows the verbs: keeps the objects and the works in flight, and calls the rules. */
#ifndef SRC_CHECK_TRACK_H
#define SRC_CHECK_TRACK_H

#include "src/check/check.h"

/* The hooks of the verbs that change objects or works. before() comes after that of the rules, after()
 * comes before it. */
extern const struct check_hook track_hooks[];

/* --- check.c calls the rules --- */

/* The first object of the program exists. */
void check_watch_forks(void);

void check_dropped(struct check_call *check, struct check_qp *qp, struct work *work);
void check_refused(struct check_call *check, struct check_qp *qp, struct work *work);

#endif /* SRC_CHECK_TRACK_H */
