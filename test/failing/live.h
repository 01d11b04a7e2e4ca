/* SPDX-License-Identifier: MIT */
/*
 * Counts the allocations of the process that live. Included by one file of a test program: it replaces
 * malloc(3) and its kin for the whole process. The sanitizers have an allocator of their own, and
 * AddressSanitizer finds leaks itself: the count is 0 with them.
 */
#ifndef TEST_FAILING_LIVE_H
#define TEST_FAILING_LIVE_H

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>

static atomic_long live_count;

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
/* glibc's own names. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *memory);

static void *live(void *memory)
{
	atomic_fetch_add(&live_count, memory != NULL);
	return memory;
}

void *malloc(size_t size)
{
	return live(__libc_malloc(size));
}

void *calloc(size_t count, size_t size)
{
	return live(__libc_calloc(count, size));
}

void *aligned_alloc(size_t alignment, size_t size)
{
	return live(__libc_memalign(alignment, size));
}

int posix_memalign(void **memory, size_t alignment, size_t size)
{
	*memory = live(__libc_memalign(alignment, size));
	return *memory ? 0 : ENOMEM;
}

void *realloc(void *old, size_t size)
{
	void *memory = __libc_realloc(old, size);

	/* realloc(old, 0) frees. */
	atomic_fetch_add(&live_count, (memory != NULL && !old) - (old && !memory && !size));
	return memory;
}

void free(void *memory)
{
	atomic_fetch_sub(&live_count, memory != NULL);
	__libc_free(memory);
}
#endif

#endif
