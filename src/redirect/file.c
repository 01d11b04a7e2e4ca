/* SPDX-License-Identifier: MIT */
/* Functions that open files. */
#include "src/redirect/redirect.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/types.h>

/* Programs that were compiled with _FORTIFY_SOURCE call these. */
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int folder, const char *path, int flags);
int __openat64_2(int folder, const char *path, int flags);

/* Marks the descriptor of a character device, for fstat(). */
static int mark(int fd, const char *path)
{
	const int number = fd >= 0 ? redirect_character_device(path) : -1;

	if (number >= 0)
		redirect_mark_character_device(fd, number);
	return fd;
}

/* Like REDIRECTED, for functions that return a descriptor. */
#define OPENING(name, folder, parameters, arguments)                      \
	static __attribute__((noinline)) int name##_elsewhere parameters; \
	static int name##_elsewhere parameters                            \
	{                                                                 \
		NEXT(name);                                               \
		char buffer[PATH_MAX];                                    \
                                                                          \
		path = redirect_path(folder, path, buffer);               \
		return mark(next arguments, path);                        \
	}

/* Reads the argument `mode` of open(2), which exists only with these flags. */
#define MODE(flags)                                                     \
	({                                                              \
		mode_t given = 0;                                       \
		va_list list;                                           \
                                                                        \
		if ((flags) & (O_CREAT | (O_TMPFILE & ~O_DIRECTORY))) { \
			va_start(list, flags);                          \
			given = va_arg(list, mode_t);                   \
			va_end(list);                                   \
		}                                                       \
		given;                                                  \
	})

#define OPEN(name)                                                                               \
	OPENING(name, AT_FDCWD, (const char *path, int flags, mode_t mode), (path, flags, mode)) \
	EXPORT int name(const char *path, int flags, ...)                                        \
	{                                                                                        \
		const mode_t mode = MODE(flags);                                                 \
                                                                                                 \
		if (redirect_concerns(path))                                                     \
			return name##_elsewhere(path, flags, mode);                              \
		return REAL(name)(path, flags, mode);                                            \
	}

#define OPENAT(name)                                                                  \
	OPENING(name, folder, (int folder, const char *path, int flags, mode_t mode), \
		(folder, path, flags, mode))                                          \
	EXPORT int name(int folder, const char *path, int flags, ...)                 \
	{                                                                             \
		const mode_t mode = MODE(flags);                                      \
                                                                                      \
		if (redirect_concerns(path))                                          \
			return name##_elsewhere(folder, path, flags, mode);           \
		return REAL(name)(folder, path, flags, mode);                         \
	}

OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)

#define OPEN_2(name)                                                          \
	OPENING(name, AT_FDCWD, (const char *path, int flags), (path, flags)) \
	EXPORT int name(const char *path, int flags)                          \
	{                                                                     \
		if (redirect_concerns(path))                                  \
			return name##_elsewhere(path, flags);                 \
		return REAL(name)(path, flags);                               \
	}

#define OPENAT_2(name)                                                                          \
	OPENING(name, folder, (int folder, const char *path, int flags), (folder, path, flags)) \
	EXPORT int name(int folder, const char *path, int flags)                                \
	{                                                                                       \
		if (redirect_concerns(path))                                                    \
			return name##_elsewhere(folder, path, flags);                           \
		return REAL(name)(folder, path, flags);                                         \
	}

OPEN_2(__open_2)
OPEN_2(__open64_2)
OPENAT_2(__openat_2)
OPENAT_2(__openat64_2)

REDIRECTED(int, creat, AT_FDCWD, (const char *path, mode_t mode), (path, mode))
REDIRECTED(int, creat64, AT_FDCWD, (const char *path, mode_t mode), (path, mode))
REDIRECTED(FILE *, fopen, AT_FDCWD, (const char *path, const char *mode), (path, mode))
REDIRECTED(FILE *, fopen64, AT_FDCWD, (const char *path, const char *mode), (path, mode))
REDIRECTED(FILE *, freopen, AT_FDCWD, (const char *path, const char *mode, FILE *file),
	   (path, mode, file))
REDIRECTED(FILE *, freopen64, AT_FDCWD, (const char *path, const char *mode, FILE *file),
	   (path, mode, file))
