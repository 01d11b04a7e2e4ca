/* SPDX-License-Identifier: MIT */
#include "src/check/spot.h"

#include "src/base/count.h"
#include "src/guard/guard.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

void spot_start(void)
{
	place_start();
	guard_install();
}

const void *_Atomic spot_outside[SPOT_OUTSIDE];

const void *spot_read_frame(uintptr_t frame)
{
	const void *callers[2];

	return guard_copy(callers, (const void *)frame, sizeof(callers)) ? NULL : callers[1];
}

void spot_take_new(const struct layer_call *call, struct spot *spot)
{
	spot->verb = call->verb;
	if (place_is_own(call->caller)) {
		/* The program is somewhere above Verbena's own functions. */
		place_callers(spot->frames, COUNT(spot->frames));
		return;
	}
	atomic_store_explicit(spot_outside_of(call->caller), call->caller, memory_order_relaxed);
	spot_take(call, spot);
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
