/* SPDX-License-Identifier: MIT */
/* A place where the program has called a verb. It is kept as addresses and described only in a report. */
#ifndef SRC_CHECK_SPOT_H
#define SRC_CHECK_SPOT_H

#include "src/explain/place.h"
#include "src/layer/layer.h"

#include <stdatomic.h>
#include <stdint.h>

/* Places that are no call of a verb. */
#define SPOT_NO_VERB ((enum layer_verb)LAYER_VERBS)
#define SPOT_FORK    ((enum layer_verb)(LAYER_VERBS + 1))

/* All members are 0 if the place is unknown. */
struct spot {
	/* See place_callers(). Without optimisation, the innermost call outside Verbena is in a verb
	 * that a header defines, and the program's is the next one. */
	const void *frames[3];
	enum layer_verb verb; /* or one of the two below */
};

/* Call this once, while the process has one thread. */
void spot_start(void);

#define SPOT_OUTSIDE	256   /* a power of two */
#define FRAME_BYTES_MAX 65536 /* a larger distance is no frame */
#define PAGE_BYTES	4096  /* the smallest one */

/* For spot_take(): callers outside Verbena, of which a program has few; and the parts that are rare. */
extern const void *_Atomic spot_outside[SPOT_OUTSIDE];
void spot_take_new(const struct layer_call *call, struct spot *spot);
const void *spot_read_frame(uintptr_t frame);

static inline const void *_Atomic *spot_outside_of(const void *caller)
{
	return &spot_outside[((uintptr_t)caller >> 1) % SPOT_OUTSIDE];
}

/* Returns the caller's caller if the caller keeps a frame pointer; else any value. */
static inline const void *spot_next_caller(const void *const *frame)
{
	const uintptr_t above = (uintptr_t)frame[0];

	if (above - (uintptr_t)frame - 1 >= FRAME_BYTES_MAX || above % sizeof(void *))
		return NULL;
	/* The page of a live frame can be read. */
	if (((uintptr_t)frame ^ (above + 2 * sizeof(void *) - 1)) < PAGE_BYTES)
		return ((const void *const *)above)[1];
	return spot_read_frame(above);
}

/* Any thread may call it. */
static inline void spot_take(const struct layer_call *call, struct spot *spot)
{
	if (atomic_load_explicit(spot_outside_of(call->caller), memory_order_relaxed) !=
	    call->caller) {
		spot_take_new(call, spot);
		return;
	}
	spot->verb = call->verb;
	spot->frames[0] = call->caller;
	spot->frames[1] = spot_next_caller(call->frame);
	spot->frames[2] = NULL;
}

/* Call this in a handler of pthread_atfork(3), before fork(2). */
void spot_take_fork(struct spot *spot);

/* Describes the place and the program's name for the verb. Any thread may call it. */
void spot_describe(const struct spot *spot, struct place *place);

#endif /* SRC_CHECK_SPOT_H */
