/* SPDX-License-Identifier: MIT */
/*
 * The table of objects follows the objects that the connection manager makes itself: identifiers of
 * connection requests, and the contexts, PDs, CQs, QPs and SRQs of identifiers.
 */
#ifndef SRC_LAYER_ROLE_CM_H
#define SRC_LAYER_ROLE_CM_H

#include "src/layer/passage.h"

/* Returns true if the verb is a function of the connection manager. For others the functions below
 * do nothing. */
bool role_cm_has(enum layer_verb verb);

/* Before the backend: takes the objects that the call ends out of the table. */
void role_cm_begin(const struct passage *passage);

/*
 * After the backend: enters the identifier of the call and the identifier's objects into the table,
 * unless the table has them, and gives the call the identifier's context.
 */
void role_cm_ended(struct passage *passage);

#endif /* SRC_LAYER_ROLE_CM_H */
