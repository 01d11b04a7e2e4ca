/* SPDX-License-Identifier: MIT */
#include "src/files/remove.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A record of getdents64(2). */
struct entry {
	uint64_t inode;
	int64_t next;
	unsigned short size_bytes;
	unsigned char type;
	char name[];
};

/* The folders of sysfs are less deep. */
enum { DEPTH_MAX = 16 };

static void empty(long folder, unsigned int depth);

static void remove_entry(long folder, const struct entry *entry, unsigned int depth)
{
	long below;

	if (!strcmp(entry->name, ".") || !strcmp(entry->name, ".."))
		return;
	if (entry->type != DT_DIR) {
		syscall(SYS_unlinkat, folder, entry->name, 0);
		return;
	}
	below = syscall(SYS_openat, folder, entry->name,
			O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (below >= 0) {
		empty(below, depth + 1);
		syscall(SYS_close, below);
	}
	syscall(SYS_unlinkat, folder, entry->name, AT_REMOVEDIR);
}

/* Removes all that is in an open folder. */
static void empty(long folder, unsigned int depth)
{
	_Alignas(struct entry) char records[1024];
	long length;

	while (depth < DEPTH_MAX &&
	       (length = syscall(SYS_getdents64, folder, records, sizeof(records))) > 0)
		for (long at = 0; at < length;) {
			const struct entry *entry = (const struct entry *)(records + at);

			remove_entry(folder, entry, depth);
			at += entry->size_bytes;
		}
}

void files_remove(const char *folder)
{
	long fd = syscall(SYS_openat, AT_FDCWD, folder,
			  O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd >= 0) {
		empty(fd, 0);
		syscall(SYS_close, fd);
	}
	syscall(SYS_unlinkat, AT_FDCWD, folder, AT_REMOVEDIR);
}

/* Gives a folder a name by which no process looks for it. Returns true, with the name, if it
 * did. */
static bool hide(const char *folder, char *hidden)
{
	const size_t length = strlen(folder);

	if (length + 2 > PATH_MAX)
		return false;
	memcpy(hidden, folder, length);
	memcpy(hidden + length, "~", 2);
	files_remove(hidden); /* what a process left that was killed here */
	return syscall(SYS_renameat2, AT_FDCWD, folder, AT_FDCWD, hidden, 0) == 0;
}

bool files_is_named(long folder, const char *name, ino_t *inode)
{
	struct stat open_, named;

	if (syscall(SYS_newfstatat, folder, "", &open_, AT_EMPTY_PATH))
		return false;
	if (inode)
		*inode = open_.st_ino;
	return !syscall(SYS_newfstatat, AT_FDCWD, name, &named, AT_SYMLINK_NOFOLLOW) &&
	       open_.st_ino == named.st_ino && open_.st_dev == named.st_dev;
}

void files_take_back(const char *folder)
{
	char hidden[PATH_MAX];
	long fd = syscall(SYS_openat, AT_FDCWD, folder,
			  O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return;
	if (syscall(SYS_flock, fd, LOCK_EX | LOCK_NB) == 0 && files_is_named(fd, folder, NULL))
		files_remove(hide(folder, hidden) ? hidden : folder);
	syscall(SYS_close, fd);
}
