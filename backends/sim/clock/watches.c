/* SPDX-License-Identifier: MIT */
#include "backends/sim/clock/watches.h"

/* The scheduler may give a processor back after several ms: divided by so many sleeps, that is less than it takes to
 * wake up. */
#define PAUSE_MAX 1023

bool watches_begin(struct watches *watches)
{
	if (!watches->pause_left)
		return true;
	watches->pause_left--;
	return false;
}

void watches_end(struct watches *watches, bool paid)
{
	if (paid)
		watches->pause /= 2;
	else if (watches->pause < PAUSE_MAX)
		watches->pause = 2 * watches->pause + 1;
	watches->pause_left = watches->pause;
}
