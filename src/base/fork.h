/* SPDX-License-Identifier: MIT */
/* Locks that are free in the child of a fork(2). */
#ifndef SRC_BASE_FORK_H
#define SRC_BASE_FORK_H

#include <pthread.h>

/*
 * fork(2) takes a mutex of this file before and releases it afterwards: the child has the forking thread only, so no
 * other thread may hold the mutex then. pthread_atfork(3) passes no argument, so each file has functions of its own.
 * They are registered before those of worlds: fork() takes this mutex after the locks of worlds.
 */
#define HOLD_DURING_FORK(mutex)                                      \
	static void before_fork(void)                                \
	{                                                            \
		pthread_mutex_lock(&(mutex));                        \
	}                                                            \
                                                                     \
	static void after_fork(void)                                 \
	{                                                            \
		pthread_mutex_unlock(&(mutex));                      \
	}                                                            \
                                                                     \
	__attribute__((constructor)) static void watch_fork(void)    \
	{                                                            \
		pthread_atfork(before_fork, after_fork, after_fork); \
	}                                                            \
	_Static_assert(sizeof(mutex) == sizeof(pthread_mutex_t), "a mutex")

#endif /* SRC_BASE_FORK_H */
