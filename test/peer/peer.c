/* SPDX-License-Identifier: MIT */
#include "test/peer/peer.h"

#include "test/peer/exchange.h"
#include "test/peer/memory.h"
#include "test/peer/relay.h"
#include "test/peer/serve.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t process; /* 0: there is no peer */

bool peer_active(void)
{
	return process;
}

void *peer_alloc(size_t length_bytes)
{
	return memory_alloc(length_bytes);
}

void *peer_place(size_t length_bytes)
{
	return memory_place(length_bytes);
}

static void give_up(void)
{
	exchange_end();
	memory_end();
	process = 0;
}

/* A crash of B's process is its end, whatever the test's process does with its own. */
static void forget_handlers(void)
{
	static const int signals[] = {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV};

	for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++)
		signal(signals[i], SIG_DFL);
}

/* The test's process may end at any time, and B's then ends with it. */
static pid_t fork_server(const struct peer_setup *setup)
{
	pid_t parent = getpid(), pid;

	fflush(NULL);
	pid = fork();
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	forget_handlers();
	serve(setup);
}

bool peer_begin(const struct peer_setup *setup, char *error, size_t size_bytes)
{
	if (vb_backend_add(&relay_backend) == ENOSPC || !memory_begin() || !mirror_begin() ||
	    !exchange_begin() || (process = fork_server(setup)) < 0) {
		snprintf(error, size_bytes, "B's process cannot be made: %s", strerror(errno));
		give_up();
		return false;
	}
	relay_begin(setup, process);
	if (exchange_wait_ready(process))
		return true;
	snprintf(error, size_bytes, "B's process cannot begin: %s",
		 exchange()->text[0] ? exchange()->text : "it has ended");
	kill(process, SIGKILL);
	waitpid(process, NULL, 0);
	give_up();
	return false;
}

/* --- a thread on the shared stack --- */

struct run {
	void (*fn)(void *arg);
	void *arg;
};

static void *run_thread(void *arg)
{
	const struct run *run = arg;

	run->fn(run->arg);
	return NULL;
}

void peer_run(void (*fn)(void *arg), void *arg)
{
	struct run run = {fn, arg};
	size_t stack_bytes;
	void *stack = memory_stack(&stack_bytes);
	pthread_attr_t attr;
	pthread_t thread;

	pthread_attr_init(&attr);
	pthread_attr_setstack(&attr, stack, stack_bytes);
	if (!pthread_create(&thread, &attr, run_thread, &run))
		pthread_join(thread, NULL);
	pthread_attr_destroy(&attr);
}

/* --- the end --- */

/* A death in a call has been reported, and waited for. */
static bool is_gone(void)
{
	return waitpid(process, NULL, WNOHANG) < 0;
}

bool peer_end(char *error, size_t size_bytes)
{
	int status = 0;
	bool good;

	if (is_gone()) {
		give_up();
		return true;
	}
	exchange()->row = ROW_END;
	good = exchange_ask(process) && waitpid(process, &status, 0) == process && !status;
	if (!good)
		snprintf(error, size_bytes, "B's process has not ended as it should: %s",
			 WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "see its output");
	give_up();
	return good;
}
