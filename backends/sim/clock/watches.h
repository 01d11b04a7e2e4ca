/* SPDX-License-Identifier: MIT */
/*
 * Whether the progress thread watches its bell before it sleeps. A watch pays if the bell rings meanwhile: the peer
 * needs no system call, and the thread no time to wake up. Where other threads need the processor, the watch keeps them
 * from running, or the scheduler ends it: then it is in vain, and sleeps without a watch follow.
 */
#ifndef BACKENDS_SIM_CLOCK_WATCHES_H
#define BACKENDS_SIM_CLOCK_WATCHES_H

#include <stdbool.h>
#include <stdint.h>

struct watches {
	uint32_t pause;	     /* so many sleeps follow the last watch */
	uint32_t pause_left; /* so many of them are to come */
};

/* Returns true if the next sleep begins with a watch. */
bool watches_begin(struct watches *watches);

/* A watch has ended. paid: the bell rang before its end. */
void watches_end(struct watches *watches, bool paid);

#endif
