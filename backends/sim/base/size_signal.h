/* SPDX-License-Identifier: MIT */
/*
 * Calls that make a file longer. At the limit of RLIMIT_FSIZE they fail with EFBIG, and the kernel sends SIGXFSZ, whose
 * default ends the program. A thread that holds the signal takes it back.
 */
#ifndef BACKENDS_SIM_BASE_SIZE_SIGNAL_H
#define BACKENDS_SIM_BASE_SIZE_SIGNAL_H

#include <errno.h>
#include <signal.h>
#include <time.h>

struct size_signal {
	sigset_t before, pending;
};

static inline sigset_t size_signal_set(void)
{
	sigset_t over;

	sigemptyset(&over);
	sigaddset(&over, SIGXFSZ);
	return over;
}

static inline void size_signal_hold(struct size_signal *held)
{
	const sigset_t over = size_signal_set();

	pthread_sigmask(SIG_BLOCK, &over, &held->before);
	sigpending(&held->pending);
}

/* err: of the call. Keeps errno. */
static inline void size_signal_release(const struct size_signal *held, int err)
{
	const sigset_t over = size_signal_set();
	const int kept = errno;

	if (err == EFBIG && !sigismember(&held->pending, SIGXFSZ))
		sigtimedwait(&over, NULL, &(struct timespec){0});
	pthread_sigmask(SIG_SETMASK, &held->before, NULL);
	errno = kept;
}

#endif
