/* SPDX-License-Identifier: MIT */
#include "src/check/spot.h"

#include "src/base/count.h"
#include "src/guard/guard.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define FRAME_BYTES_MAX 65536 /* of a function that keeps no frame pointer, or of a wrong number */

void spot_start(void)
{
	place_start();
	guard_install();
}

/* The caller's caller, if the caller keeps a frame pointer; else the value is any number. */
static const void *next_caller(const void *const *frame)
{
	const uintptr_t above = (uintptr_t)frame[0];
	const void *callers[2];

	if (above - (uintptr_t)frame - 1 >= FRAME_BYTES_MAX || above % sizeof(void *) ||
	    guard_copy(callers, (const void *)above, sizeof(callers)))
		return NULL;
	return callers[1];
}

void spot_take(const struct layer_call *call, struct spot *spot)
{
	spot->verb = call->verb;
	if (place_is_own(call->caller)) {
		place_callers(spot->frames, COUNT(spot->frames));
		return;
	}
	spot->frames[0] = call->caller;
	spot->frames[1] = next_caller(call->frame);
	spot->frames[2] = NULL;
}

void spot_take_fork(struct spot *spot)
{
	spot->verb = SPOT_FORK;
	place_callers_of_handler(spot->frames, COUNT(spot->frames));
}

void spot_describe(const struct spot *spot, struct place *place)
{
	if (!spot->frames[0]) {
		*place = (struct place){0};
		return;
	}
	if (spot->verb < LAYER_VERBS) {
		place_describe(layer_verb_info(spot->verb)->name, spot->frames, COUNT(spot->frames),
			       place);
		return;
	}
	place_describe("", spot->frames, COUNT(spot->frames), place);
	if (spot->verb == SPOT_FORK)
		snprintf(place->verb, sizeof(place->verb), "fork");
	else if (place->verb[0] && place->verb[strlen(place->verb) - 1] == '_')
		place->verb[0] = '\0'; /* the place is in no function of a header of verbs */
}
