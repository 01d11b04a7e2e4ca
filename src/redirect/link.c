/* SPDX-License-Identifier: MIT */
/* Functions that read symbolic links and return paths. */
#include "src/redirect/redirect.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Programs that were compiled with _FORTIFY_SOURCE call these. */
ssize_t __readlink_chk(const char *path, char *target, size_t size, size_t room);
ssize_t __readlinkat_chk(int folder, const char *path, char *target, size_t size, size_t room);
char *__realpath_chk(const char *path, char *resolved, size_t room);
char *__getcwd_chk(char *path, size_t size, size_t room);

/* Shortens the target of a link that is in the folder, such as /proc/self/cwd or /proc/self/fd/5. */
static ssize_t target_back(char *target, ssize_t length)
{
	size_t shorter;

	if (length <= 0)
		return length;
	shorter = redirect_back(target, (size_t)length);
	memset(target + shorter, 0, (size_t)length - shorter);
	return (ssize_t)shorter;
}

/* A @size above @room is libc's, which ends the program. */
#define READLINK(name, folder, parameters, arguments, room)                   \
	static __attribute__((noinline)) ssize_t name##_elsewhere parameters; \
	static ssize_t name##_elsewhere parameters                            \
	{                                                                     \
		NEXT(name);                                                   \
		char buffer[PATH_MAX];                                        \
                                                                              \
		path = redirect_path(folder, path, buffer);                   \
		if (redirect_character_device(path) >= 0 && size <= (room)) { \
			errno = EINVAL;                                       \
			return -1;                                            \
		}                                                             \
		return next arguments;                                        \
	}                                                                     \
	EXPORT ssize_t name parameters                                        \
	{                                                                     \
		NEXT(name);                                                   \
		if (redirect_concerns(path))                                  \
			return name##_elsewhere arguments;                    \
		return target_back(target, next arguments);                   \
	}

READLINK(readlink, AT_FDCWD, (const char *path, char *target, size_t size), (path, target, size),
	 size)
READLINK(readlinkat, folder, (int folder, const char *path, char *target, size_t size),
	 (folder, path, target, size), size)
READLINK(__readlink_chk, AT_FDCWD, (const char *path, char *target, size_t size, size_t room),
	 (path, target, size, room), room)
READLINK(__readlinkat_chk, folder,
	 (int folder, const char *path, char *target, size_t size, size_t room),
	 (folder, path, target, size, room), room)

/* Shortens a path that a function returns. */
static char *path_back(char *path)
{
	if (path)
		path[redirect_back(path, strlen(path))] = '\0';
	return path;
}

/* Returns the path of a character device as realpath() would: in @resolved, or in memory that the program
 * frees if that is NULL. */
static char *name_device(int number, char *resolved)
{
	char path[64];

	snprintf(path, sizeof(path), "/dev/infiniband/uverbs%d", number);
	return resolved ? strcpy(resolved, path) : strdup(path);
}

/* A @room below PATH_MAX is libc's, which ends the program. */
#define REALPATH(name, parameters, arguments, resolved, room)                       \
	static __attribute__((noinline)) char *name##_elsewhere parameters;         \
	static char *name##_elsewhere parameters                                    \
	{                                                                           \
		NEXT(name);                                                         \
		char buffer[PATH_MAX];                                              \
		int number;                                                         \
                                                                                    \
		path = redirect_path(AT_FDCWD, path, buffer);                       \
		number = redirect_character_device(path);                           \
		if (number >= 0 && (room) >= PATH_MAX && !REAL(access)(path, F_OK)) \
			return name_device(number, resolved);                       \
		return path_back(next arguments);                                   \
	}                                                                           \
	EXPORT char *name parameters                                                \
	{                                                                           \
		NEXT(name);                                                         \
		if (redirect_concerns(path))                                        \
			return name##_elsewhere arguments;                          \
		return path_back(next arguments);                                   \
	}

REALPATH(realpath, (const char *path, char *resolved), (path, resolved), resolved, PATH_MAX)
REALPATH(__realpath_chk, (const char *path, char *resolved, size_t room), (path, resolved, room),
	 resolved, room)
REALPATH(canonicalize_file_name, (const char *path), (path), NULL, PATH_MAX)

/* --- the working directory --- */

REDIRECTED(int, chdir, AT_FDCWD, (const char *path), (path))

EXPORT char *getcwd(char *path, size_t size)
{
	return path_back(REAL(getcwd)(path, size));
}

EXPORT char *__getcwd_chk(char *path, size_t size, size_t room)
{
	return path_back(REAL(__getcwd_chk)(path, size, room));
}

EXPORT char *get_current_dir_name(void)
{
	return path_back(REAL(get_current_dir_name)());
}
