/* SPDX-License-Identifier: MIT */
#include "backends/sim/guard/distant.h"

#include "src/guard/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* A copy from one window to another goes through a buffer of so many bytes. */
#define STEP_BYTES 4096u

struct window {
	struct window *next;
	uintptr_t base;
	size_t mapped_bytes;
	struct distant_range range;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct window *windows;

int distant_open(uint32_t pid)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%u/mem", (unsigned int)pid);
	return open(path, O_RDWR | O_CLOEXEC);
}

void *distant_map(const struct distant_range *range)
{
	const size_t mapped_bytes = range->length_bytes ? range->length_bytes : 1;
	struct window *window = malloc(sizeof(*window));
	void *base;

	if (!window)
		return NULL;
	base = mmap(NULL, mapped_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
		    0);
	if (base == MAP_FAILED) {
		free(window);
		return NULL;
	}
	*window = (struct window){
		.base = (uintptr_t)base, .mapped_bytes = mapped_bytes, .range = *range};
	pthread_mutex_lock(&mutex);
	window->next = windows;
	windows = window;
	pthread_mutex_unlock(&mutex);
	return base;
}

void distant_unmap(void *base)
{
	struct window **at = &windows, *window;

	pthread_mutex_lock(&mutex);
	while (*at && (*at)->base != (uintptr_t)base)
		at = &(*at)->next;
	window = *at;
	if (window)
		*at = window->next;
	pthread_mutex_unlock(&mutex);
	if (!window)
		return;
	munmap(base, window->mapped_bytes);
	free(window);
}

/* --- copies; the caller holds the mutex --- */

/* Returns the window that all bytes are in, or NULL. */
static const struct window *find(const void *addr, size_t length_bytes)
{
	const struct window *window = windows;

	while (window &&
	       ((uintptr_t)addr - window->base > window->range.length_bytes ||
		length_bytes > window->range.length_bytes - ((uintptr_t)addr - window->base)))
		window = window->next;
	return window;
}

static off_t offset_of(const struct window *window, const void *addr)
{
	return (off_t)(window->range.addr + ((uintptr_t)addr - window->base));
}

static bool is_valid(const struct distant_range *range)
{
	return atomic_load_explicit(range->stamp, memory_order_acquire) == range->stamp_then;
}

/* Nonzero if not all bytes could be read, or the memory is no longer the window's. */
static int read_window(const struct window *window, const void *addr, void *dst,
		       size_t length_bytes)
{
	off_t at = offset_of(window, addr);

	for (ssize_t done; length_bytes; dst = (char *)dst + done, at += done) {
		done = pread(window->range.memory, dst, length_bytes, at);
		if (done < 0 && errno == EINTR)
			done = 0;
		else if (done <= 0)
			return 1;
		length_bytes -= (size_t)done;
	}
	return !is_valid(&window->range);
}

static int write_window(const struct window *window, void *addr, const void *src,
			size_t length_bytes)
{
	off_t at = offset_of(window, addr);

	if (!is_valid(&window->range))
		return 1;
	for (ssize_t done; length_bytes; src = (const char *)src + done, at += done) {
		done = pwrite(window->range.memory, src, length_bytes, at);
		if (done < 0 && errno == EINTR)
			done = 0;
		else if (done <= 0)
			return 1;
		length_bytes -= (size_t)done;
	}
	return 0;
}

static int copy_between(const struct window *to, void *dst, const struct window *from,
			const void *src, size_t length_bytes)
{
	uint8_t bytes[STEP_BYTES];
	int err = 0;

	while (length_bytes && !err) {
		const size_t step = length_bytes < sizeof(bytes) ? length_bytes : sizeof(bytes);

		err = read_window(from, src, bytes, step) || write_window(to, dst, bytes, step);
		src = (const char *)src + step;
		dst = (char *)dst + step;
		length_bytes -= step;
	}
	return err;
}

static int copy(void *dst, const void *src, size_t length_bytes)
{
	const struct window *to = find(dst, length_bytes), *from = find(src, length_bytes);

	if (to && from)
		return copy_between(to, dst, from, src, length_bytes);
	if (to)
		return write_window(to, dst, src, length_bytes);
	return from ? read_window(from, src, dst, length_bytes) : 1;
}

int distant_copy(void *dst, const void *src, size_t length_bytes)
{
	int cancel, err;

	if (!guard_copy(dst, src, length_bytes))
		return 0;
	/* A thread that is cancelled in read(2) would keep the locks. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	pthread_mutex_lock(&mutex);
	err = copy(dst, src, length_bytes);
	pthread_mutex_unlock(&mutex);
	pthread_setcancelstate(cancel, NULL);
	return err;
}
