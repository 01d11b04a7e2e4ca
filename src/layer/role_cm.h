/* SPDX-License-Identifier: MIT */
/*
 * What the connection manager makes by itself: identifiers of connection requests, and the contexts,
 * PDs, CQs, QPs and SRQs of identifiers. The table of objects follows them.
 */
#ifndef SRC_LAYER_ROLE_CM_H
#define SRC_LAYER_ROLE_CM_H

#include "src/layer/passage.h"

/* Returns true if the verb is a function of the connection manager. For others the functions below
 * do nothing. */
bool role_cm_has(enum layer_verb verb);

/* Before the backend: takes out the objects of the identifier that the call ends. */
void role_cm_begin(const struct passage *passage);

/*
 * After the backend: enters the identifier that the call is about and its objects, as far as they are
 * unknown, and gives the call the identifier's context.
 */
void role_cm_ended(struct passage *passage);

#endif /* SRC_LAYER_ROLE_CM_H */
