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

/* Returns true if the address is in Verbena's library or drop-in. Any thread may call it. */
bool place_is_own(const void *address);

/*
 * Finds the addresses of the present calls: of the outermost one inside Verbena, if there is one, and of
 * the innermost ones outside. The rest are NULL. Any thread may call it.
 */
void place_callers(const void **frames, int count);

/* The same in a handler that the C library calls: the calls outside Verbena and outside that library. */
void place_callers_of_handler(const void **frames, int count);

/* As place_find(), for the place of an earlier call: frames are those of place_callers(), or the calls
 * outside Verbena of a verb that was called through a pointer in an object. */
void place_describe(const char *verb, const void *const *frames, int count, struct place *place);

/* Hold the lock of the places, for fork(2). */
void place_lock(void);
void place_unlock(void);

#endif /* SRC_EXPLAIN_PLACE_H */
