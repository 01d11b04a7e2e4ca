/* SPDX-License-Identifier: MIT */
#include "backends/sim/wire/shared_watch.h"

#include "backends/sim/base/thread.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

enum { CLOSED, STOP };

static void *run(void *arg)
{
	struct shared_watch *watch = arg;
	struct pollfd fds[] = {{.fd = watch->fds[CLOSED], .events = POLLIN},
			       {.fd = watch->fds[STOP], .events = POLLIN}};
	struct inotify_event events[64];

	pthread_barrier_wait(&watch->began);
	for (;;) {
		const int ready = poll(fds, 2, -1);

		if (ready < 0 && errno == EINTR)
			continue;
		/* poll() fails if the program has lowered the limit of its descriptors (RLIMIT_NOFILE) to nearly none:
		 * nothing is watched then. */
		if (ready <= 0 || fds[STOP].revents)
			return NULL;
		/* The content of the events does not matter: each says that a process has closed the file. */
		if (read(watch->fds[CLOSED], events, sizeof(events)) <= 0)
			continue;
		atomic_store(&watch->ended, true);
		bell_wake(watch->bell);
	}
}

static void close_fds(const struct shared_watch *watch)
{
	for (unsigned int i = 0; i < 2; i++)
		if (watch->fds[i] >= 0)
			close(watch->fds[i]);
}

/* Opens by the descriptor's path in /proc, which leads to the same file even if another file has its name
 * now. */
static bool open_fds(struct shared_watch *watch, int file_fd)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", file_fd);
	watch->fds[CLOSED] = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	watch->fds[STOP] = eventfd(0, EFD_CLOEXEC);
	return watch->fds[CLOSED] >= 0 && watch->fds[STOP] >= 0 &&
	       inotify_add_watch(watch->fds[CLOSED], path, IN_CLOSE_WRITE) >= 0;
}

/* Starts the thread, and returns when it runs. A thread that begins holds locks of the C library; a child
 * that is forked at this moment would find them locked for ever. */
static bool start_thread(struct shared_watch *watch)
{
	bool started;

	if (pthread_barrier_init(&watch->began, NULL, 2))
		return false;
	started = !thread_start(&watch->thread, run, watch);
	if (started)
		pthread_barrier_wait(&watch->began);
	pthread_barrier_destroy(&watch->began);
	return started;
}

bool shared_watch_start(struct shared_watch *watch, int file_fd, struct bell *bell)
{
	watch->bell = bell;
	atomic_store(&watch->ended, false);
	watch->runs = open_fds(watch, file_fd) && start_thread(watch);
	if (!watch->runs)
		close_fds(watch);
	return watch->runs;
}

void shared_watch_stop(struct shared_watch *watch)
{
	static const uint64_t one = 1;

	if (!watch->runs || write(watch->fds[STOP], &one, sizeof(one)) < 0)
		return;
	pthread_join(watch->thread, NULL);
	shared_watch_forget(watch);
}

void shared_watch_forget(struct shared_watch *watch)
{
	if (watch->runs)
		close_fds(watch);
	watch->runs = false;
	atomic_store(&watch->ended, false);
}
