/* SPDX-License-Identifier: MIT */
#include "src/guard/held.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum state {
	FREE,
	WAITS, /* no adapter has written to the range */
	CAME,
	OPEN, /* the program has touched a page: the range is no longer held */
};

struct range {
	_Atomic int state; /* enum state */
	uint8_t *memory;
	size_t length_bytes;
	uint8_t *bytes; /* the new bytes, at the offsets of the range */
	size_t capacity_bytes;
	size_t from, to; /* the new bytes are [from, to); equal: there are none */
};

typedef int copy_fn(void *dst, const void *src, size_t length_bytes);

static pthread_mutex_t mutex =
	PTHREAD_MUTEX_INITIALIZER; /* the handler of faults does not take it */
static struct range ranges[HELD_MAX];
static _Atomic unsigned int range_count; /* numbers below it may be in use */
static const struct held_watch *watch;	 /* NULL: nothing is held */
static uintptr_t page_bytes;

/* --- pages --- */

/* Changes the protection of the whole pages in a part of a range. */
static void protect(const struct range *range, size_t from, size_t to, int rights)
{
	const uintptr_t begin = ((uintptr_t)range->memory + from + page_bytes - 1) & -page_bytes;
	const uintptr_t end = ((uintptr_t)range->memory + to) & -page_bytes;

	if (begin < end)
		mprotect((void *)begin, end - begin, rights);
}

static bool is_held(const struct range *range)
{
	const int state = atomic_load_explicit(&range->state, memory_order_acquire);

	return state == WAITS || state == CAME;
}

static struct range *find_page(const uint8_t *address)
{
	for (unsigned int i = 0; i < atomic_load(&range_count); i++)
		if (atomic_load(&ranges[i].state) == CAME &&
		    (uintptr_t)address - (uintptr_t)ranges[i].memory < ranges[i].length_bytes)
			return &ranges[i];
	return NULL;
}

/* The access is repeated, and finds the new bytes. */
static bool on_fault(const struct guard_fault *fault)
{
	struct range *range = find_page(fault->address);
	int state = CAME;

	if (!range)
		return false;
	if (!atomic_compare_exchange_strong(&range->state, &state, OPEN))
		return true;
	protect(range, 0, range->length_bytes, PROT_READ | PROT_WRITE);
	memcpy(range->memory + range->from, range->bytes + range->from, range->to - range->from);
	if (!fault->own)
		watch->touched((unsigned int)(range - ranges), fault);
	return true;
}

/* --- beginning and end --- */

void held_start(const struct held_watch *with)
{
	page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
	watch = with;
	guard_watch_faults(on_fault);
	guard_install();
}

void held_stop(void)
{
	for (unsigned int i = 0; i < atomic_load(&range_count); i++)
		held_release(i);
	guard_watch_faults(NULL);
	watch = NULL;
}

bool held_wanted(void)
{
	return watch;
}

/* --- ranges; the caller holds the mutex --- */

static void release(struct range *range)
{
	int state = CAME;

	if (atomic_compare_exchange_strong(&range->state, &state, OPEN)) {
		protect(range, 0, range->length_bytes, PROT_READ | PROT_WRITE);
		guard_copy(range->memory + range->from, range->bytes + range->from,
			   range->to - range->from);
	}
	atomic_store(&range->state, FREE);
}

static bool overlap(const struct range *range, const uint8_t *memory, size_t length_bytes)
{
	return range->memory < memory + length_bytes &&
	       memory < range->memory + range->length_bytes;
}

/* Returns NULL if there is no room. */
static struct range *find_free(void)
{
	const unsigned int count = atomic_load(&range_count);

	for (unsigned int i = 0; i < count; i++)
		if (atomic_load(&ranges[i].state) == FREE)
			return &ranges[i];
	if (count == HELD_MAX)
		return NULL;
	atomic_store(&range_count, count + 1);
	return &ranges[count];
}

static bool make_room(struct range *range, size_t length_bytes)
{
	uint8_t *bytes;

	if (range->capacity_bytes >= length_bytes)
		return true;
	if (length_bytes > HELD_BYTES_MAX)
		return false;
	bytes = realloc(range->bytes, length_bytes);
	if (!bytes)
		return false;
	range->bytes = bytes;
	range->capacity_bytes = length_bytes;
	return true;
}

static int add(uint8_t *memory, size_t length_bytes)
{
	struct range *range;

	for (unsigned int i = 0; i < atomic_load(&range_count); i++)
		if (is_held(&ranges[i]) && overlap(&ranges[i], memory, length_bytes))
			release(&ranges[i]);
	range = find_free();
	if (!range || !make_room(range, length_bytes))
		return -1;
	range->memory = memory;
	range->length_bytes = length_bytes;
	range->from = range->to = 0;
	atomic_store(&range->state, WAITS);
	return (int)(range - ranges);
}

int held_add(void *memory, size_t length_bytes)
{
	int number;

	pthread_mutex_lock(&mutex);
	number = add(memory, length_bytes);
	pthread_mutex_unlock(&mutex);
	return number;
}

void held_release(unsigned int number)
{
	pthread_mutex_lock(&mutex);
	release(&ranges[number]);
	pthread_mutex_unlock(&mutex);
}

bool held_has_come(unsigned int number)
{
	return atomic_load(&ranges[number].state) == CAME;
}

/* --- copies; the caller holds the mutex --- */

static size_t smaller(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Returns the range that holds the byte, and shortens the length to its part of the range; NULL: no range
 * does, and the length ends before the next range. */
static struct range *find_holder(const uint8_t *at, size_t *length_bytes)
{
	for (unsigned int i = 0; i < atomic_load(&range_count); i++) {
		struct range *range = &ranges[i];

		if (!is_held(range) || !overlap(range, at, *length_bytes))
			continue;
		if (at >= range->memory) {
			*length_bytes = smaller(*length_bytes,
						(size_t)(range->memory + range->length_bytes - at));
			return range;
		}
		*length_bytes = (size_t)(range->memory - at);
	}
	return NULL;
}

/* Returns where an adapter finds the byte, and shortens the length to the bytes that are there. */
static const uint8_t *find_source(const uint8_t *at, size_t *length_bytes)
{
	const struct range *range = find_holder(at, length_bytes);
	size_t offset;

	if (!range)
		return at;
	offset = (size_t)(at - range->memory);
	if (offset >= range->from && offset < range->to) {
		*length_bytes = smaller(*length_bytes, range->to - offset);
		return range->bytes + offset;
	}
	if (offset < range->from)
		*length_bytes = smaller(*length_bytes, range->from - offset);
	return at;
}

/* New bytes are one run: the bytes between two writes are as the program has left them. */
static int fill_gap(copy_fn *copy, struct range *range, size_t from, size_t to)
{
	return from < to && copy(range->bytes + from, range->memory + from, to - from);
}

static int keep(copy_fn *copy, struct range *range, size_t offset, const uint8_t *src,
		size_t length_bytes)
{
	const bool first = range->from == range->to;
	const size_t end = offset + length_bytes;

	if (copy(range->bytes + offset, src, length_bytes))
		return 1;
	if (!first &&
	    (fill_gap(copy, range, range->to, offset) || fill_gap(copy, range, end, range->from)))
		return 1;
	if (first || offset < range->from)
		range->from = offset;
	if (first || end > range->to)
		range->to = end;
	atomic_store(&range->state, CAME);
	if (watch->protects)
		protect(range, range->from, range->to, PROT_NONE);
	watch->came((unsigned int)(range - ranges), range->memory + offset, length_bytes);
	return 0;
}

static int copy_piece(copy_fn *copy, uint8_t *dst, const uint8_t *src, size_t length_bytes)
{
	struct range *range;
	int err = 0;

	for (size_t part; length_bytes && !err; dst += part, src += part, length_bytes -= part) {
		part = length_bytes;
		range = find_holder(dst, &part);
		err = range ? keep(copy, range, (size_t)(dst - range->memory), src, part)
			    : copy(dst, src, part);
	}
	return err;
}

static int copy_pieces(copy_fn *copy, uint8_t *dst, const uint8_t *src, size_t length_bytes)
{
	int err = 0;

	for (size_t part; length_bytes && !err; dst += part, src += part, length_bytes -= part) {
		const uint8_t *from;

		part = length_bytes;
		from = find_source(src, &part);
		err = copy_piece(copy, dst, from, part);
	}
	return err;
}

int held_copy(copy_fn *copy, void *dst, const void *src, size_t length_bytes)
{
	int err;

	if (!watch)
		return copy(dst, src, length_bytes);
	pthread_mutex_lock(&mutex);
	err = copy_pieces(copy, dst, src, length_bytes);
	pthread_mutex_unlock(&mutex);
	return err;
}
