/* SPDX-License-Identifier: MIT */
/*
 * The allocations, descriptors and threads of libverbena.so, which can fail. The linker leads each call of an allocating function
 * in the library to its __wrap_ function here, and __real_ to the function itself (ld(1), --wrap; the list
 * is in src/meson.build). So no source of the library knows of it, and the program's own calls do not come
 * here.
 *
 * A program that is linked with Verbena's static libraries has no __real_ functions, and calls none here.
 */
#include "src/failing/rules.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>

/* Set while a rule of an allocation, a descriptor or a thread exists. */
static atomic_bool watching;

/* Link-time optimisation does not see that the linker uses these names. A test that wraps a function itself
 * has another definition. */
#define WRAPPED(result, name, parameters)                                   \
	/* NOLINTNEXTLINE(bugprone-reserved-identifier) */                  \
	extern result __real_##name parameters __attribute__((weak));       \
	/* NOLINTNEXTLINE(bugprone-reserved-identifier) */                  \
	extern result __wrap_##name parameters __attribute__((used, weak)); \
	/* NOLINTNEXTLINE(bugprone-reserved-identifier) */                  \
	result __wrap_##name parameters

/* Returns true, with errno, if the library is not to get what it asks for. */
static bool fails_to(enum vb_fail_action action)
{
	const struct fail_question question = {.action = action};
	struct fail_rule fired;

	if (!atomic_load_explicit(&watching, memory_order_relaxed))
		return false;
	if (!rules_ask(&question, &fired))
		return false;
	errno = fired.err;
	return true;
}

static bool fails(void)
{
	return fails_to(VB_FAIL_ALLOCATION);
}

static bool no_descriptor(void)
{
	return fails_to(VB_FAIL_DESCRIPTOR);
}

/* --- memory --- */

WRAPPED(void *, malloc, (size_t bytes))
{
	return fails() ? NULL : __real_malloc(bytes);
}

WRAPPED(void *, calloc, (size_t count, size_t bytes))
{
	return fails() ? NULL : __real_calloc(count, bytes);
}

WRAPPED(void *, realloc, (void *old, size_t bytes))
{
	return fails() ? NULL : __real_realloc(old, bytes);
}

WRAPPED(void *, reallocarray, (void *old, size_t count, size_t bytes))
{
	return fails() ? NULL : __real_reallocarray(old, count, bytes);
}

WRAPPED(void *, aligned_alloc, (size_t alignment, size_t bytes))
{
	return fails() ? NULL : __real_aligned_alloc(alignment, bytes);
}

/* It returns the errno value. */
WRAPPED(int, posix_memalign, (void **memory, size_t alignment, size_t bytes))
{
	return fails() ? ENOMEM : __real_posix_memalign(memory, alignment, bytes);
}

WRAPPED(char *, strdup, (const char *text))
{
	return fails() ? NULL : __real_strdup(text);
}

WRAPPED(char *, strndup, (const char *text, size_t bytes))
{
	return fails() ? NULL : __real_strndup(text, bytes);
}

WRAPPED(int, vasprintf, (char **text, const char *format, va_list arguments))
{
	return fails() ? -1 : __real_vasprintf(text, format, arguments);
}

WRAPPED(int, asprintf, (char **text, const char *format, ...))
{
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = fails() ? -1 : __real_vasprintf(text, format, arguments);
	va_end(arguments);
	return length;
}

WRAPPED(FILE *, open_memstream, (char **text, size_t *bytes))
{
	return fails() ? NULL : __real_open_memstream(text, bytes);
}

WRAPPED(void *, mmap64, (void *address, size_t bytes, int rights, int flags, int fd, off_t offset))
{
	return fails() ? MAP_FAILED : __real_mmap64(address, bytes, rights, flags, fd, offset);
}

/* --- descriptors --- */

WRAPPED(int, accept4, (int fd, struct sockaddr *from, socklen_t *bytes, int flags))
{
	return no_descriptor() ? -1 : __real_accept4(fd, from, bytes, flags);
}

WRAPPED(int, epoll_create1, (int flags))
{
	return no_descriptor() ? -1 : __real_epoll_create1(flags);
}

WRAPPED(int, eventfd, (unsigned int count, int flags))
{
	return no_descriptor() ? -1 : __real_eventfd(count, flags);
}

WRAPPED(FILE *, fopen64, (const char *path, const char *mode))
{
	return no_descriptor() ? NULL : __real_fopen64(path, mode);
}

WRAPPED(int, inotify_init1, (int flags))
{
	return no_descriptor() ? -1 : __real_inotify_init1(flags);
}

WRAPPED(int, memfd_create, (const char *name, unsigned int flags))
{
	return no_descriptor() ? -1 : __real_memfd_create(name, flags);
}

/* Reads the argument `mode` of open(2). Only a file that open(2) may create has a mode. */
static mode_t mode_of(int flags, va_list arguments)
{
	return flags & O_CREAT ? va_arg(arguments, mode_t) : 0;
}

WRAPPED(int, open64, (const char *path, int flags, ...))
{
	va_list arguments;
	mode_t mode;

	va_start(arguments, flags);
	mode = mode_of(flags, arguments);
	va_end(arguments);
	return no_descriptor() ? -1 : __real_open64(path, flags, mode);
}

WRAPPED(int, openat64, (int folder, const char *path, int flags, ...))
{
	va_list arguments;
	mode_t mode;

	va_start(arguments, flags);
	mode = mode_of(flags, arguments);
	va_end(arguments);
	return no_descriptor() ? -1 : __real_openat64(folder, path, flags, mode);
}

WRAPPED(DIR *, opendir, (const char *path))
{
	return no_descriptor() ? NULL : __real_opendir(path);
}

WRAPPED(int, pipe2, (int fds[2], int flags))
{
	return no_descriptor() ? -1 : __real_pipe2(fds, flags);
}

WRAPPED(int, socket, (int family, int type, int protocol))
{
	return no_descriptor() ? -1 : __real_socket(family, type, protocol);
}

/* --- threads --- */

/* It returns the errno value. */
WRAPPED(int, pthread_create,
	(pthread_t * thread, const pthread_attr_t *attributes, void *(*run)(void *), void *arg))
{
	return fails_to(VB_FAIL_THREAD) ? EAGAIN
					: __real_pthread_create(thread, attributes, run, arg);
}

bool allocation_watch(bool wanted)
{
	if (!__real_malloc)
		return false;
	atomic_store(&watching, wanted);
	return true;
}
