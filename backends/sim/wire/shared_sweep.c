/* SPDX-License-Identifier: MIT */
#include "backends/sim/wire/shared_sweep.h"

#include "backends/sim/wire/shared_layout.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Takes the lock of the world's processes. Returns false if another process has it. */
static bool lock(int fd)
{
	struct flock lock = {
		.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = SEGMENT_LOCK_BYTE, .l_len = 1};

	return !fcntl(fd, F_OFD_SETLK, &lock);
}

/* Returns true if another open file description has a lock on any byte, as a process on its place. */
static bool has_others(int fd)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

	return fcntl(fd, F_OFD_GETLK, &lock) || lock.l_type != F_UNLCK;
}

/* Returns true if the name still leads to the open file, which a process of this user has made. */
static bool is_own(int folder, const char *name, int fd)
{
	struct stat named, opened;

	return !fstat(fd, &opened) && !fstatat(folder, name, &named, AT_SYMLINK_NOFOLLOW) &&
	       opened.st_mode == (S_IFREG | 0600) && opened.st_uid == geteuid() &&
	       named.st_dev == opened.st_dev && named.st_ino == opened.st_ino;
}

/* Returns true if no process has a lock on the file. The file is opened for reading: inotify(7) tells the processes
 * of a world of each close() of a file that was opened for writing, and they would look for a killed process. */
static bool looks_dead(int folder, const char *name)
{
	const int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	const bool dead = fd >= 0 && !has_others(fd);

	if (fd >= 0)
		close(fd);
	return dead;
}

/*
 * Removes a world's file if no process has it. A process that has opened the file meanwhile and waits for
 * the lock finds, when it has the lock, that the file has no name, and makes a new one: segment_open().
 */
static void remove_if_dead(int folder, const char *name)
{
	int fd;

	if (!looks_dead(folder, name))
		return;
	fd = openat(folder, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return;
	if (lock(fd) && !has_others(fd) && is_own(folder, name, fd))
		unlinkat(folder, name, 0);
	close(fd);
}

void shared_sweep(void)
{
	DIR *folder = opendir(SEGMENT_FOLDER);
	const struct dirent *entry;
	char prefix[32];

	snprintf(prefix, sizeof(prefix), "verbena-%u-", geteuid());
	while (folder && (entry = readdir(folder)))
		if (!strncmp(entry->d_name, prefix, strlen(prefix)))
			remove_if_dead(dirfd(folder), entry->d_name);
	if (folder)
		closedir(folder);
}
