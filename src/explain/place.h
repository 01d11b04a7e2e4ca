/* SPDX-License-Identifier: MIT */
/*
 * Where the program called the verb that is running: the first frame of the calling thread's stack
 * outside Verbena's libraries, and outside the inline functions of <infiniband/verbs.h>.
 */
#ifndef SRC_EXPLAIN_PLACE_H
#define SRC_EXPLAIN_PLACE_H

#include "src/explain/symbol.h"

struct place {
	char text[SYMBOL_TEXT_BYTES]; /* see struct symbol; "" if the place is unknown */
	char verb[SYMBOL_VERB_BYTES]; /* the program's name for the verb; "" if it is unknown */
};

/*
 * Opens the libraries that place_find() needs. Call this once, before the first place_find(), while
 * the process has one thread: later, a thread that holds the lock of the places would wait for the
 * loader's lock.
 */
void place_start(void);

/*
 * Finds the place of the call of a verb, such as "modify_qp". Any thread may call it. Changes errno.
 */
void place_find(const char *verb, struct place *place);

/* Hold the lock of the places, for fork(2). */
void place_lock(void);
void place_unlock(void);

#endif /* SRC_EXPLAIN_PLACE_H */
