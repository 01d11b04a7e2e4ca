/* SPDX-License-Identifier: MIT */
/*
 * libverbena-files.so: in programs of `verbena run` it stands in front of libc, and leads the
 * paths of the devices' files in /sys and /dev into the folder where the files of the simulated
 * devices are. The first process that looks for such a file has the folder made. A path that does
 * not contain the name of one of these files goes to libc unchanged.
 *
 * Each function of libc that takes a path is defined here with the same name. Those that wait for descriptors are
 * in src/wait/.
 */
#ifndef SRC_REDIRECT_REDIRECT_H
#define SRC_REDIRECT_REDIRECT_H

#include <limits.h>
#include <stdbool.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

/* The definition behind this library's: libc's, or that of a sanitizer. */
#define REAL(name)                                                 \
	({                                                         \
		static void *next_;                                \
		(__typeof__(&(name)))redirect_next(&next_, #name); \
	})

/* Declares `next`, that definition. */
#define NEXT(name) __typeof__(&(name)) next = REAL(name)

/* Returns the next definition of a symbol, and keeps it in *found. */
void *redirect_next(void **found, const char *symbol);

/*
 * Defines a function of libc whose parameter @path is a path, relative to the folder of the
 * descriptor @folder. The buffer of a changed path is not in the frame of the function that all
 * paths go through: programs call these functions on the small stacks of signal handlers, too.
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

/* Returns true if the path may be one of a device's files. */
static inline bool redirect_concerns(const char *path)
{
	return path && (strstr(path, "infiniband") || strstr(path, "uverbs"));
}

/*
 * Returns where the file is: in @buffer, of PATH_MAX bytes, or the path itself. Makes the folder if
 * need be. errno stays.
 */
const char *redirect_path(int folder, const char *path, char *buffer);

/* Returns how many bytes at the beginning of a path name the folder: programs do not know them. */
size_t redirect_hidden(const char *path);

/* Turns a path into the folder to the path that programs know. Returns its new length. */
size_t redirect_back(char *path, size_t length);

/* Returns the number of the character device at a path from redirect_path(), or -1. */
int redirect_character_device(const char *path);

/* Writes the path without its "." and "..", or returns false: it is relative, or too long. */
bool redirect_plain(const char *path, char *plain);

/* --- status.c --- */

/* Marks an open file as the character device with a number. */
void redirect_mark_character_device(int fd, int number);

/* --- place.c: the folder --- */

/*
 * Returns the folder, which stays while this process lives, and sets *length; makes it if need
 * be. NULL if there is none. errno may change.
 */
const char *place_hold(size_t *length);

/* The same, but does not make it. */
const char *place_held(size_t *length);

/* Removes the folder if no other process uses it. The process ends. */
void place_leave(void);

#endif
