/* SPDX-License-Identifier: MIT */
/*
 * The allocations of libverbena.so, which can fail. The linker leads each call of an allocating function
 * in the library to its __wrap_ function here, and __real_ to the function itself (ld(1), --wrap; the list
 * is in src/meson.build). So no source of the library knows of it, and the program's own calls do not come
 * here.
 *
 * A program that is linked with Verbena's static libraries has no __real_ functions, and calls none here.
 */
#include "src/failing/rules.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>

/* Set while a rule of an allocation exists. */
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

/* Returns true, with errno, if the allocation is to fail. */
static bool fails(void)
{
	static const struct fail_question question = {.action = VB_FAIL_ALLOCATION};
	struct fail_rule fired;

	if (!atomic_load_explicit(&watching, memory_order_relaxed))
		return false;
	if (!rules_ask(&question, &fired))
		return false;
	errno = fired.err;
	return true;
}

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

bool allocation_watch(bool wanted)
{
	if (!__real_malloc)
		return false;
	atomic_store(&watching, wanted);
	return true;
}
