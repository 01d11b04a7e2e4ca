/* SPDX-License-Identifier: MIT */
/* The simulator's own threads: the program's signals are handled by the program's threads. */
#ifndef BACKENDS_SIM_BASE_THREAD_H
#define BACKENDS_SIM_BASE_THREAD_H

#include <pthread.h>
#include <signal.h>

/*
 * As pthread_create(3), for a thread that blocks all signals but those that a fault raises: blocked,
 * these would end the process before the guard's handler ran.
 */
static inline int thread_start(pthread_t *thread, void *(*run)(void *arg), void *arg)
{
	sigset_t all, kept;
	int err;

	sigfillset(&all);
	sigdelset(&all, SIGSEGV);
	sigdelset(&all, SIGBUS);
	sigdelset(&all, SIGILL);
	sigdelset(&all, SIGFPE);
	pthread_sigmask(SIG_SETMASK, &all, &kept);
	err = pthread_create(thread, NULL, run, arg);
	pthread_sigmask(SIG_SETMASK, &kept, NULL);
	return err;
}

#endif
