/* SPDX-License-Identifier: MIT */
#include "test/peer/memory.h"

#include "test/peer/peer.h"

#include <errno.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

/* Where the first buffer of a conformance test is, as in one process, and the distance of two. */
#define FIRST_PLACE 0x210000000000u
#define PLACE_BYTES 0x20000u

enum { HEAP, PLACES, SLOTS, STACK, REGIONS };

/* Pages that nobody touches cost nothing. */
static struct region {
	size_t size_bytes;
	uintptr_t wanted; /* 0: anywhere */
	unsigned char *begin;
	size_t used_bytes;
} regions[REGIONS] = {
	[HEAP] = {.size_bytes = (size_t)4 << 30},
	[PLACES] = {.size_bytes = (size_t)4 << 30, .wanted = FIRST_PLACE},
	[SLOTS] = {.size_bytes = (size_t)1 << 30},
	[STACK] = {.size_bytes = (size_t)8 << 20},
};

bool memory_begin(void)
{
	for (struct region *region = regions; region < regions + REGIONS; region++) {
		void *memory =
			mmap((void *)region->wanted, region->size_bytes, PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

		if (memory == MAP_FAILED) {
			memory_end();
			return false;
		}
		region->begin = memory;
		region->used_bytes = 0;
	}
	return true;
}

void memory_end(void)
{
	int saved = errno;

	for (struct region *region = regions; region < regions + REGIONS; region++) {
		if (region->begin)
			munmap(region->begin, region->size_bytes);
		region->begin = NULL;
	}
	errno = saved;
}

static void *take(struct region *region, size_t length_bytes, size_t unit_bytes)
{
	/* As ts_memory() does in one process: a block of whole units has an empty unit behind it. */
	size_t whole_bytes = (length_bytes / unit_bytes + 1) * unit_bytes;
	void *memory = region->begin + region->used_bytes;

	if (whole_bytes > region->size_bytes - region->used_bytes)
		return NULL;
	region->used_bytes += whole_bytes;
	return memory;
}

void *memory_alloc(size_t length_bytes)
{
	return take(&regions[HEAP], length_bytes, 64);
}

void *memory_place(size_t length_bytes)
{
	return take(&regions[PLACES], length_bytes, PLACE_BYTES);
}

void *memory_slot(void)
{
	return take(&regions[SLOTS], MEMORY_SLOT_BYTES - 1, MEMORY_SLOT_BYTES);
}

void *memory_slot_of(const void *address)
{
	const struct region *region = &regions[SLOTS];
	size_t offset = (size_t)((const unsigned char *)address - region->begin);

	return region->begin && offset < region->size_bytes
		       ? region->begin + offset / MEMORY_SLOT_BYTES * MEMORY_SLOT_BYTES
		       : NULL;
}

void *memory_stack(size_t *length_bytes)
{
	*length_bytes = regions[STACK].size_bytes;
	return regions[STACK].begin;
}

static bool is_shared(const void *address)
{
	const unsigned char *byte = address;

	for (const struct region *region = regions; region < regions + REGIONS; region++)
		if (byte >= region->begin && byte < region->begin + region->size_bytes)
			return true;
	return false;
}

/* The linker's: what lies between them is never written after the program's start. */
extern const char __executable_start[], __data_start[];

static bool is_constant(const void *address)
{
	return (uintptr_t)address >= (uintptr_t)__executable_start &&
	       (uintptr_t)address < (uintptr_t)__data_start;
}

static bool is_mapped(const void *address)
{
	uintptr_t page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
	unsigned char resident;

	return !mincore((void *)((uintptr_t)address & ~(page_bytes - 1)), 1, &resident);
}

bool memory_is_common(const void *address)
{
	return is_shared(address) || is_constant(address) || !is_mapped(address);
}
