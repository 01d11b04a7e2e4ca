/* SPDX-License-Identifier: MIT */
/*
 * Which verbs make and end objects: the table of objects follows them.
 */
#ifndef SRC_LAYER_ROLE_H
#define SRC_LAYER_ROLE_H

#include "src/layer/passage.h"

/* Call this when the first layer is added, before any other function. */
void role_start(void);

/* This belongs to role.c. */
extern bool role_table[LAYER_VERBS];

/* Returns true if the verb makes or ends an object. For other verbs the functions below do nothing. */
static inline bool role_has(enum layer_verb verb)
{
	return role_table[verb];
}

/* Returns the kind of the objects that the verb makes; LAYER_NO_KIND: it makes none. */
enum layer_kind role_makes(enum layer_verb verb);

/*
 * Before the backend is called: an object that the verb is to end gets its own functions back, since
 * its memory may be gone afterwards, or another object's.
 */
void role_begin(struct passage *passage);

/* After the backend: enters a new object; shadows an object again that has not ended. */
void role_ended(struct passage *passage);

/* After the layers, which may name an object that has ended: takes it out of the table. */
void role_end(struct passage *passage);

#endif /* SRC_LAYER_ROLE_H */
