/* SPDX-License-Identifier: MIT */
/* Functions of the status, the access rights and the attributes of a file. */
#include "src/redirect/redirect.h"

#include "src/files/plant.h"
#include "src/guard/readable.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

/* Programs that were linked before glibc 2.33 call these. @version is that of struct stat. */
int __xstat(int version, const char *path, struct stat *status);
int __xstat64(int version, const char *path, struct stat64 *status);
int __lxstat(int version, const char *path, struct stat *status);
int __lxstat64(int version, const char *path, struct stat64 *status);
int __fxstat(int version, int fd, struct stat *status);
int __fxstat64(int version, int fd, struct stat64 *status);
int __fxstatat(int version, int folder, const char *path, struct stat *status, int flags);
int __fxstatat64(int version, int folder, const char *path, struct stat64 *status, int flags);

/* --- open character devices --- */

#define DEV_FULL makedev(1, 7)

/*
 * /dev/full stands for each character device (FILES_CHARACTER_DEVICE). The mark of such an open file is its signal
 * of asynchronous I/O (F_SETSIG of fcntl(2)), which /dev/full never sends: the number of the device plus 1, at most
 * 64. The kernel keeps it with the open file, so all descriptors of the file have it, in all processes.
 */
void redirect_mark_character_device(int fd, int number)
{
	const int err = errno;

	fcntl(fd, F_SETSIG, number + 1); /* fails if the file was opened with O_PATH */
	errno = err;
}

/* Returns true if the open file is marked, and sets *number. @device is its st_rdev. */
static bool is_marked(int fd, dev_t device, int *number)
{
	const int err = errno;

	if (device != DEV_FULL)
		return false;
	*number = fcntl(fd, F_GETSIG) - 1;
	errno = err;
	return *number >= 0;
}

/* The same for a path below @folder: an empty path, or NULL, is @folder itself (AT_EMPTY_PATH of openat(2)). */
static bool is_marked_below(int folder, const char *path, dev_t device, int *number)
{
	return device == DEV_FULL && guard_string_length(path, 1) <= 0 &&
	       is_marked(folder, device, number);
}

#define UVERBS(number) makedev(FILES_UVERBS_MAJOR, FILES_UVERBS_MINOR + (unsigned int)(number))

/*
 * Defines a function that returns the status of a path. For a character device it returns the status of the file
 * that stands for the device, with the device number that the kernel gives to uverbsN. That file is a symbolic
 * link, so the function @followed is called with @following: it follows links.
 */
#define STATUS(name, folder, parameters, arguments, followed, following)                \
	static __attribute__((noinline)) int name##_elsewhere parameters;               \
	static inline int name##_plainly parameters                                     \
	{                                                                               \
		NEXT(name);                                                             \
		const int result = next arguments;                                      \
		int number;                                                             \
                                                                                        \
		if (!result && is_marked_below(folder, path, status->st_rdev, &number)) \
			status->st_rdev = UVERBS(number);                               \
		return result;                                                          \
	}                                                                               \
	static int name##_elsewhere parameters                                          \
	{                                                                               \
		NEXT(followed);                                                         \
		char buffer[PATH_MAX];                                                  \
		int number, result;                                                     \
                                                                                        \
		path = redirect_path(folder, path, buffer);                             \
		number = redirect_character_device(path);                               \
		if (number < 0)                                                         \
			return name##_plainly arguments;                                \
		result = next following;                                                \
		if (!result)                                                            \
			status->st_rdev = UVERBS(number);                               \
		return result;                                                          \
	}                                                                               \
	EXPORT int name parameters                                                      \
	{                                                                               \
		if (redirect_concerns(path))                                            \
			return name##_elsewhere arguments;                              \
		return name##_plainly arguments;                                        \
	}

STATUS(stat, AT_FDCWD, (const char *path, struct stat *status), (path, status), stat,
       (path, status))
STATUS(stat64, AT_FDCWD, (const char *path, struct stat64 *status), (path, status), stat64,
       (path, status))
STATUS(lstat, AT_FDCWD, (const char *path, struct stat *status), (path, status), stat,
       (path, status))
STATUS(lstat64, AT_FDCWD, (const char *path, struct stat64 *status), (path, status), stat64,
       (path, status))
STATUS(__xstat, AT_FDCWD, (int version, const char *path, struct stat *status),
       (version, path, status), __xstat, (version, path, status))
STATUS(__xstat64, AT_FDCWD, (int version, const char *path, struct stat64 *status),
       (version, path, status), __xstat64, (version, path, status))
STATUS(__lxstat, AT_FDCWD, (int version, const char *path, struct stat *status),
       (version, path, status), __xstat, (version, path, status))
STATUS(__lxstat64, AT_FDCWD, (int version, const char *path, struct stat64 *status),
       (version, path, status), __xstat64, (version, path, status))
STATUS(fstatat, folder, (int folder, const char *path, struct stat *status, int flags),
       (folder, path, status, flags), fstatat, (folder, path, status, flags & ~AT_SYMLINK_NOFOLLOW))
STATUS(fstatat64, folder, (int folder, const char *path, struct stat64 *status, int flags),
       (folder, path, status, flags), fstatat64,
       (folder, path, status, flags & ~AT_SYMLINK_NOFOLLOW))
STATUS(__fxstatat, folder,
       (int version, int folder, const char *path, struct stat *status, int flags),
       (version, folder, path, status, flags), __fxstatat,
       (version, folder, path, status, flags & ~AT_SYMLINK_NOFOLLOW))
STATUS(__fxstatat64, folder,
       (int version, int folder, const char *path, struct stat64 *status, int flags),
       (version, folder, path, status, flags), __fxstatat64,
       (version, folder, path, status, flags & ~AT_SYMLINK_NOFOLLOW))

/* Defines a function that returns the status of a descriptor. */
#define FSTATUS(name, parameters, arguments)                            \
	EXPORT int name parameters                                      \
	{                                                               \
		NEXT(name);                                             \
		const int result = next arguments;                      \
		int number;                                             \
                                                                        \
		if (!result && is_marked(fd, status->st_rdev, &number)) \
			status->st_rdev = UVERBS(number);               \
		return result;                                          \
	}

FSTATUS(fstat, (int fd, struct stat *status), (fd, status))
FSTATUS(fstat64, (int fd, struct stat64 *status), (fd, status))
FSTATUS(__fxstat, (int version, int fd, struct stat *status), (version, fd, status))
FSTATUS(__fxstat64, (int version, int fd, struct stat64 *status), (version, fd, status))

static void set_device(struct statx *status, int number)
{
	status->stx_rdev_major = FILES_UVERBS_MAJOR;
	status->stx_rdev_minor = FILES_UVERBS_MINOR + (unsigned int)number;
}

static __attribute__((noinline)) int statx_elsewhere(int folder, const char *path, int flags,
						     unsigned int mask, struct statx *status)
{
	char buffer[PATH_MAX];
	int number, result;

	path = redirect_path(folder, path, buffer);
	number = redirect_character_device(path);
	if (number >= 0)
		flags &= ~AT_SYMLINK_NOFOLLOW;
	result = REAL(statx)(folder, path, flags, mask, status);
	if (!result && number >= 0)
		set_device(status, number);
	return result;
}

EXPORT int statx(int folder, const char *path, int flags, unsigned int mask, struct statx *status)
{
	int number, result;

	if (redirect_concerns(path))
		return statx_elsewhere(folder, path, flags, mask, status);
	result = REAL(statx)(folder, path, flags, mask, status);
	if (!result &&
	    is_marked_below(folder, path, makedev(status->stx_rdev_major, status->stx_rdev_minor),
			    &number))
		set_device(status, number);
	return result;
}

/* --- rights and attributes --- */

REDIRECTED(int, access, AT_FDCWD, (const char *path, int mode), (path, mode))
REDIRECTED(int, eaccess, AT_FDCWD, (const char *path, int mode), (path, mode))
REDIRECTED(int, euidaccess, AT_FDCWD, (const char *path, int mode), (path, mode))
REDIRECTED(int, faccessat, folder, (int folder, const char *path, int mode, int flags),
	   (folder, path, mode, flags))
REDIRECTED(ssize_t, getxattr, AT_FDCWD,
	   (const char *path, const char *name, void *value, size_t size),
	   (path, name, value, size))
REDIRECTED(ssize_t, lgetxattr, AT_FDCWD,
	   (const char *path, const char *name, void *value, size_t size),
	   (path, name, value, size))
REDIRECTED(ssize_t, listxattr, AT_FDCWD, (const char *path, char *list, size_t size),
	   (path, list, size))
REDIRECTED(ssize_t, llistxattr, AT_FDCWD, (const char *path, char *list, size_t size),
	   (path, list, size))
