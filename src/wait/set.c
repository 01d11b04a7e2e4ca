/* SPDX-License-Identifier: MIT */
/* Finds out which descriptors of a set are Verbena's. */
#include "src/wait/wait.h"

#include "src/guard/readable.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define DEPTH_MAX 5 /* of epoll descriptors in epoll descriptors: epoll_ctl(2), ELOOP */

/* A file that is read line by line, without memory of malloc(3): a signal handler may wait. */
struct lines {
	int fd;
	char text[1024]; /* longer than a line */
	size_t begin;	 /* of the next line in text */
	size_t end;	 /* of what has been read */
};

static void add(struct wait_set *set, const struct wait_world *world, int fd, int depth);

/* Returns the descriptor in a line "tfd:       5 events: ..." of proc_pid_fdinfo(5); -1 for another line. */
static int target_of(const char *line)
{
	return strncmp(line, "tfd:", 4) ? -1 : (int)strtol(line + 4, NULL, 10);
}

/* Returns the next line, with a 0 in place of its end; NULL at the end of the file. */
static const char *next_line(struct lines *lines)
{
	const char *line;
	ssize_t count;
	char *newline;

	while (!(newline = memchr(lines->text + lines->begin, '\n', lines->end - lines->begin))) {
		lines->end -= lines->begin;
		memmove(lines->text, lines->text + lines->begin, lines->end);
		lines->begin = 0;
		count = syscall(SYS_read, lines->fd, lines->text + lines->end,
				sizeof(lines->text) - lines->end);
		if (count <= 0)
			return NULL;
		lines->end += (size_t)count;
	}
	*newline = '\0';
	line = lines->text + lines->begin;
	lines->begin = (size_t)(newline + 1 - lines->text);
	return line;
}

/* Adds the descriptors that an epoll(7) descriptor waits for. Returns false if it waits for none, or is no
 * epoll descriptor. */
static bool add_targets(struct wait_set *set, const struct wait_world *world, int fd, int depth)
{
	struct lines lines;
	char path[64];
	bool found = false;
	const char *line;
	int target;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	/* Not by open(), which is a cancellation point, and may be a function of Verbena. */
	lines.fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	lines.begin = lines.end = 0;
	if (lines.fd < 0)
		return false;
	while ((line = next_line(&lines))) {
		target = target_of(line);
		if (target < 0)
			continue;
		found = true;
		add(set, world, target, depth + 1);
	}
	syscall(SYS_close, lines.fd);
	return found;
}

static void add(struct wait_set *set, const struct wait_world *world, int fd, int depth)
{
	if (world->has_fd(fd)) {
		if (set->fd < 0)
			set->fd = fd;
	} else if (depth >= DEPTH_MAX || !add_targets(set, world, fd, depth)) {
		set->others = true;
	}
}

void wait_set_add(struct wait_set *set, const struct wait_world *world, int fd)
{
	const int saved = errno;

	add(set, world, fd, 0);
	errno = saved;
}

void wait_set_add_poll(struct wait_set *set, const struct wait_world *world,
		       const struct pollfd *fds, nfds_t count)
{
	/* Otherwise the kernel refuses the call. */
	if (count > INT_MAX || !guard_is_readable(fds, count * sizeof(*fds)))
		return;
	for (nfds_t i = 0; i < count; i++)
		if (fds[i].fd >= 0)
			wait_set_add(set, world, fds[i].fd);
}

void wait_set_add_select(struct wait_set *set, const struct wait_world *world, int count,
			 const fd_set sets[3])
{
	for (int fd = 0; fd < count && fd < FD_SETSIZE; fd++)
		for (int i = 0; i < 3; i++)
			if (FD_ISSET(fd, &sets[i])) {
				wait_set_add(set, world, fd);
				break;
			}
}
