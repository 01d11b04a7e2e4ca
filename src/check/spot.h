/* SPDX-License-Identifier: MIT */
/* Where the program has called a verb: kept as addresses, described only in a report. */
#ifndef SRC_CHECK_SPOT_H
#define SRC_CHECK_SPOT_H

#include "src/explain/place.h"
#include "src/layer/layer.h"

/* Places that are no call of a verb. */
#define SPOT_NO_VERB ((enum layer_verb)LAYER_VERBS)
#define SPOT_FORK    ((enum layer_verb)(LAYER_VERBS + 1))

/* All 0: unknown. */
struct spot {
	/* See place_callers(). Without optimisation, the innermost call outside Verbena is in a verb
	 * that a header defines, and the program's is the next one. */
	const void *frames[3];
	enum layer_verb verb; /* or one of the two below */
};

/* Call this once, while the process has one thread. */
void spot_start(void);

/* Any thread may call it. */
void spot_take(const struct layer_call *call, struct spot *spot);

/* Call this in a handler of pthread_atfork(3), before fork(2). */
void spot_take_fork(struct spot *spot);

/* Describes the place and the program's name for the verb. Any thread may call it. */
void spot_describe(const struct spot *spot, struct place *place);

#endif /* SRC_CHECK_SPOT_H */
