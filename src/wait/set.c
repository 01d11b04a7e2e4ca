/* SPDX-License-Identifier: MIT */
/* Finds out which descriptors of a set are Verbena's. */
#include "src/wait/wait.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEPTH_MAX 5 /* of epoll descriptors in epoll descriptors: epoll_ctl(2), ELOOP */

static void add(struct wait_set *set, const struct wait_world *world, int fd, int depth);

/* Returns the descriptor in a line "tfd:       5 events: ..." of proc_pid_fdinfo(5); -1 for another line. */
static int target_of(const char *line)
{
	return strncmp(line, "tfd:", 4) ? -1 : (int)strtol(line + 4, NULL, 10);
}

/* Adds the descriptors that an epoll(7) descriptor waits for. Returns false if it waits for none, or is no
 * epoll descriptor. */
static bool add_targets(struct wait_set *set, const struct wait_world *world, int fd, int depth)
{
	char path[64], line[256];
	bool found = false;
	FILE *file;
	int target;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	file = fopen(path, "re");
	if (!file)
		return false;
	while (fgets(line, sizeof(line), file)) {
		target = target_of(line);
		if (target < 0)
			continue;
		found = true;
		add(set, world, target, depth + 1);
	}
	fclose(file);
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
	for (nfds_t i = 0; i < count; i++)
		if (fds[i].fd >= 0)
			wait_set_add(set, world, fds[i].fd);
}

void wait_set_add_select(struct wait_set *set, const struct wait_world *world, int count,
			 const fd_set *const sets[3])
{
	for (int fd = 0; fd < count && fd < FD_SETSIZE; fd++)
		for (int i = 0; i < 3; i++)
			if (sets[i] && FD_ISSET(fd, sets[i])) {
				wait_set_add(set, world, fd);
				break;
			}
}
