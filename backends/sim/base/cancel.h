/* SPDX-License-Identifier: MIT */
/*
 * pthread_cancel(3) and the world's lock. A thread is cancelled only where a verb sleeps; it then
 * gives the lock back. The other functions under the lock that are cancellation points (write(2),
 * stdio; pthreads(7) lists them) run between cancel_off() and cancel_restore().
 */
#ifndef BACKENDS_SIM_BASE_CANCEL_H
#define BACKENDS_SIM_BASE_CANCEL_H

#include <pthread.h>

/* Returns the state for cancel_restore(). Keeps errno. */
static inline int cancel_off(void)
{
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	return state;
}

static inline void cancel_restore(int state)
{
	pthread_setcancelstate(state, NULL);
}

#endif
