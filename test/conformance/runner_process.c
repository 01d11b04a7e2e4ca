/* SPDX-License-Identifier: MIT */
#include "test/conformance/runner.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* From SIGABRT, after which the child can still write its trace out, to SIGKILL. */
#define GRACE_MS 2000

double vt_now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

void *vt_shared(size_t length_bytes)
{
	void *memory =
		mmap(NULL, length_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

/* SIGCHLD, which is blocked while there is a child. */
static sigset_t child_signal(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	return set;
}

/* Waits until the child has ended. Returns false if deadline_s (0: none) came first. */
static bool wait_gone(pid_t pid, double deadline_s, int *status)
{
	sigset_t set = child_signal();
	struct timespec left;

	/* No SIGCHLD is missed: one that came before sigtimedwait() is pending. */
	while (waitpid(pid, status, deadline_s ? WNOHANG : 0) != pid) {
		double left_s = deadline_s - vt_now_s();

		if (deadline_s && left_s <= 0)
			return false;
		if (!deadline_s)
			continue;
		left.tv_sec = left_s;
		left.tv_nsec = (left_s - left.tv_sec) * 1e9;
		sigtimedwait(&set, NULL, &left);
	}
	return true;
}

static void wait_child(pid_t pid, unsigned int timeout_s, struct vt_ending *ending)
{
	double deadline_s = timeout_s ? vt_now_s() + timeout_s : 0;

	if (!wait_gone(pid, deadline_s, &ending->status)) {
		ending->timed_out = true;
		kill(pid, SIGABRT);
		if (!wait_gone(pid, vt_now_s() + GRACE_MS / 1000.0, &ending->status)) {
			kill(pid, SIGKILL);
			wait_gone(pid, 0, &ending->status);
		}
	}
	/* Ends the processes that the test started and left behind. */
	kill(-pid, SIGKILL);
}

static void begin_child(pid_t parent, int output, const sigset_t *signals)
{
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	if (output >= 0) {
		dup2(output, STDOUT_FILENO);
		dup2(output, STDERR_FILENO);
	}
	sigprocmask(SIG_SETMASK, signals, NULL);
}

bool vt_in_child(void (*fn)(void *arg), void *arg, int output, unsigned int timeout_s,
		 struct vt_ending *ending)
{
	sigset_t set = child_signal(), before;
	pid_t parent = getpid(), pid;

	*ending = (struct vt_ending){0};
	fflush(NULL);
	sigprocmask(SIG_BLOCK, &set, &before);
	pid = fork();
	if (pid == 0) {
		begin_child(parent, output, &before);
		fn(arg);
		exit(0);
	}
	if (pid > 0) {
		setpgid(pid, pid);
		wait_child(pid, timeout_s, ending);
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
	return pid > 0;
}
