/* SPDX-License-Identifier: MIT */
/* Children of fork(2) that do something and live on. */
#ifndef TEST_UNIT_CHILD_H
#define TEST_UNIT_CHILD_H

#include "unity.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Runs a function in a child, which does not end before this process has read what the function returns
 * through the pipe; the child then waits to be killed. */
static inline pid_t child_begin(int (*run)(void))
{
	int ends[2];
	char word;
	pid_t child;

	TEST_ASSERT_EQUAL_INT(0, pipe(ends));
	child = fork();
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		word = run() ? 'f' : 'k';
		_exit(write(ends[1], &word, 1) == 1 && pause());
	}
	close(ends[1]);
	TEST_ASSERT_EQUAL_INT(1, read(ends[0], &word, 1));
	TEST_ASSERT_EQUAL_INT('k', word);
	close(ends[0]);
	return child;
}

static inline void child_kill(pid_t child)
{
	int status;

	kill(child, SIGKILL);
	TEST_ASSERT_EQUAL_INT(child, waitpid(child, &status, 0));
}

#endif
