/* SPDX-License-Identifier: MIT */
/*
 * libverbena-files.so, which `verbena run` preloads into programs (LD_PRELOAD). It defines the functions of libc
 * that take a path, with the same names. A path of a device's file in /sys or /dev is redirected: libc gets the
 * path of the same file in a folder that has the files of the simulated devices. The first process that looks for
 * such a file makes the folder. A path without "infiniband" and "uverbs" goes to libc unchanged.
 *
 * The functions are as thread-safe as libc's. Those that wait for descriptors are in src/wait/.
 */
#ifndef SRC_REDIRECT_REDIRECT_H
#define SRC_REDIRECT_REDIRECT_H

#include "src/wait/next.h"

#include <limits.h>
#include <stdbool.h>
#include <string.h>

/*
 * Defines a function of libc whose parameter @path is a path, relative to the folder of the descriptor @folder.
 * name_elsewhere() handles paths of devices. It is a function of its own, and never inlined, because its buffer is
 * large: programs call these functions on the small stacks of signal handlers, too.
 */
#define REDIRECTED(result, name, folder, parameters, arguments)              \
	static __attribute__((noinline)) result name##_elsewhere parameters; \
	static result name##_elsewhere parameters                            \
	{                                                                    \
		NEXT(name);                                                  \
		char buffer[PATH_MAX];                                       \
                                                                             \
		path = redirect_path(folder, path, buffer);                  \
		return next arguments;                                       \
	}                                                                    \
	EXPORT result name parameters                                        \
	{                                                                    \
		NEXT(name);                                                  \
                                                                             \
		if (redirect_concerns(path))                                 \
			return name##_elsewhere arguments;                   \
		return next arguments;                                       \
	}

/* --- path.c --- */

/* Returns true if the path may be that of a device's file. A path that cannot be read, such as NULL, is libc's: the
 * kernel answers EFAULT. The functions below need a path for which this function returned true. */
bool redirect_concerns(const char *path);

/*
 * Returns the redirected path, in @buffer of PATH_MAX bytes, or @path itself if it is not redirected. @folder is a
 * descriptor or AT_FDCWD, as in openat(2). Makes the folder of the files if need be. errno stays.
 */
const char *redirect_path(int folder, const char *path, char *buffer);

/* Returns the length in bytes of the folder's name, if a path begins with it; 0 if not. Programs must not see
 * that part. */
size_t redirect_hidden(const char *path);

/* Removes the folder's name from the beginning of a path. Returns the new length; does not write a 0 there. */
size_t redirect_back(char *path, size_t length);

/* Returns the number of the character device at a path from redirect_path(), or -1. */
int redirect_character_device(const char *path);

/* Writes the path without its "." and "..", to PATH_MAX bytes. Returns false if it is relative or too long. */
bool redirect_plain(const char *path, char *plain);

/* --- status.c --- */

/* Marks an open file as the character device uverbsN, for fstat(). */
void redirect_mark_character_device(int fd, int number);

/* --- place.c: the folder of the files --- */

/*
 * Returns the folder's path, and sets *length. Makes the folder if need be; it then stays while this process
 * lives. Returns NULL if it cannot be made. errno may change.
 */
const char *place_hold(size_t *length);

/* Returns the folder's path and sets *length, if this process holds the folder; else NULL. */
const char *place_held(size_t *length);

/* Call this when the process ends: removes the folder if no other process uses it. */
void place_leave(void);

#endif
