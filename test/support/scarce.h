/* SPDX-License-Identifier: MIT */
/*
 * Allocations that fail when a test says so. Included by one file of a test program: it replaces
 * malloc(3) and its kin for the whole process. The sanitizers have an allocator of their own, so
 * SCARCE is 0 with them, and such a test is skipped.
 */
#ifndef TEST_SUPPORT_SCARCE_H
#define TEST_SUPPORT_SCARCE_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SCARCE 0
#else
#define SCARCE 1
#endif

static struct {
	bool on;       /* counts and fails */
	bool once;     /* only one allocation fails; else all from then on */
	long left;     /* allocations that still succeed */
	long failures; /* counts allocations that failed */
} scarce;

/* Returns true if this allocation must fail. */
static inline bool scarce_fails(void)
{
	if (!scarce.on || scarce.left-- > 0)
		return false;
	scarce.on = !scarce.once;
	scarce.failures++;
	errno = ENOMEM;
	return true;
}

/* The first `good` allocations succeed while scarce.on is set. */
static inline void scarce_after(long good, bool once)
{
	scarce.left = good;
	scarce.once = once;
	scarce.failures = 0;
}

#if SCARCE
/* glibc's own names. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);

void *malloc(size_t size)
{
	return scarce_fails() ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
	return scarce_fails() ? NULL : __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
	return scarce_fails() ? NULL : __libc_realloc(old, size);
}
#endif

#endif
