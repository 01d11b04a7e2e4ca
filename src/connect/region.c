/* SPDX-License-Identifier: MIT */
#include "src/connect/region.h"

#include "src/connect/object.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* gcc and clang announce AddressSanitizer in different ways. */
#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif

#ifdef SANITIZED
#include <sanitizer/asan_interface.h>
#else
#define SANITIZED				0
#define ASAN_POISON_MEMORY_REGION(addr, size)	((void)(addr), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(addr, size) ((void)(addr), (void)(size))
#endif

#define ACCESS_FOUR                                                                  \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC)

static size_t page_bytes(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

static size_t whole_pages(size_t length_bytes)
{
	return (length_bytes + page_bytes() - 1) / page_bytes();
}

/* --- checked regions: one memory, mapped for the program and for the device --- */

static bool is_checked_build(void)
{
	const char *wanted = getenv("VERBENA_CHECKED");

	return SANITIZED || (wanted && *wanted && strcmp(wanted, "0") != 0);
}

/*
 * RDMA requests carry addresses, so the places of regions decide the bytes of a trace. The kernel
 * would choose other places in each process; it takes these unless something is there.
 */
#define FIRST_PLACE 0x220000000000u
#define PLACE_BYTES 0x10000u

static void *next_place(size_t length_bytes)
{
	static _Atomic uintptr_t next = FIRST_PLACE;

	return (void *)atomic_fetch_add(&next, (length_bytes / PLACE_BYTES + 1) * PLACE_BYTES);
}

static void *map(int fd, size_t length_bytes)
{
	void *addr = mmap(next_place(length_bytes), length_bytes, PROT_READ | PROT_WRITE,
			  fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, fd, 0);

	return addr == MAP_FAILED ? NULL : addr;
}

static void unmap(struct vb_region *region)
{
	size_t length_bytes = whole_pages(region->length_bytes) * page_bytes();

	if (region->guard->device_view)
		munmap(region->guard->device_view, length_bytes);
	if (region->addr)
		munmap(region->addr, length_bytes);
	region->addr = region->guard->device_view = NULL;
}

/* Maps the region twice. Returns false if the kernel refuses; nothing is mapped then. */
static bool map_twice(struct vb_region *region)
{
	size_t pages = whole_pages(region->length_bytes);
	size_t length_bytes = pages * page_bytes();
	struct vb_region_guard *guard = region->guard;
	int fd = memfd_create("verbena-region", MFD_CLOEXEC);

	guard->readers = calloc(pages * 2, sizeof(*guard->readers));
	if (fd >= 0 && guard->readers && ftruncate(fd, (off_t)length_bytes) == 0) {
		region->addr = map(fd, length_bytes);
		guard->device_view = map(fd, length_bytes);
	}
	if (fd >= 0)
		close(fd);
	if (region->addr && guard->device_view) {
		guard->exclusives = guard->readers + pages;
		return true;
	}
	unmap(region);
	free(guard->readers);
	guard->readers = NULL;
	return false;
}

static int protection_of(const struct vb_region_guard *guard, size_t page)
{
	if (guard->exclusives[page])
		return PROT_NONE;
	return guard->readers[page] ? PROT_READ : PROT_READ | PROT_WRITE;
}

/* Changes the holds of each page that lies within the piece. */
void region_hold_pages(struct vb_region *region, size_t offset_bytes, size_t length_bytes,
		       bool exclusive, enum hold change)
{
	void *piece = (char *)region->addr + offset_bytes;
	struct vb_region_guard *guard = region->guard;
	size_t page = page_bytes();
	size_t end = offset_bytes + length_bytes;

	/* The rest of the last page behind the region is not used. */
	if (end == region->length_bytes)
		end = whole_pages(end) * page;
	for (size_t i = whole_pages(offset_bytes); (i + 1) * page <= end; i++) {
		unsigned int *holds = exclusive ? &guard->exclusives[i] : &guard->readers[i];
		int before = protection_of(guard, i);
		int err = 0;

		*holds += (unsigned int)change;
		if (protection_of(guard, i) != before)
			err = mprotect((char *)region->addr + i * page, page,
				       protection_of(guard, i));
		/* mprotect(2) splits mappings and fails when there are too many. A page that stays
		 * open misses an access; a page that stays closed would break the program. */
		assert(!err || change == REGION_HOLD);
	}
	/* Without AddressSanitizer both macros are empty. */
	if (exclusive && change == REGION_HOLD)
		ASAN_POISON_MEMORY_REGION(piece, length_bytes); /* NOLINT(bugprone-branch-clone) */
	else if (exclusive)
		ASAN_UNPOISON_MEMORY_REGION(piece, length_bytes);
}

/* --- making and ending --- */

static struct vb_region *region_new(size_t length_bytes)
{
	struct vb_region *region = object_new(sizeof(*region), "region");

	if (!region)
		return NULL;
	region->guard = object_new(sizeof(*region->guard), "region");
	if (!region->guard)
		return object_drop(region, ENOMEM);
	region->length_bytes = length_bytes;
	return region;
}

static void region_drop(struct vb_region *region)
{
	free(region->guard->readers);
	free(region->guard);
	free(region);
}

static int flags_of(const struct vb_device *device, int access)
{
	if (access != VB_ACCESS_DEFAULT)
		return access;
	return device->attr.atomic_cap == IBV_ATOMIC_NONE ? ACCESS_FOUR & ~IBV_ACCESS_REMOTE_ATOMIC
							  : ACCESS_FOUR;
}

static int enroll(struct vb_region *region, struct ibv_pd *pd, int access)
{
	void *seen = region->checked ? region->guard->device_view : region->addr;

	if (region->checked)
		region->mr = vb_reg_mr_iova(pd, seen, region->length_bytes, (uintptr_t)region->addr,
					    access);
	else
		region->mr = vb_reg_mr(pd, seen, region->length_bytes, access);
	if (region->mr)
		return 0;
	return fail_because(errno, "region of %zu bytes, access 0x%x", region->length_bytes,
			    (unsigned int)access);
}

static struct vb_region *end_with(struct vb_region *region, int err)
{
	if (!err)
		return region;
	if (region->guard->owned)
		unmap(region);
	region_drop(region);
	errno = err;
	return NULL;
}

struct vb_region *vb_region_alloc(struct vb_device *device, struct ibv_pd *pd, size_t length_bytes,
				  int access)
{
	struct vb_region *region;

	if (!length_bytes || length_bytes > SIZE_MAX / 2) {
		fail(EINVAL, "region: its length cannot be %zu bytes", length_bytes);
		return NULL;
	}
	region = region_new(length_bytes);
	if (!region)
		return NULL;
	region->guard->owned = true;
	region->checked = is_checked_build() && map_twice(region);
	if (!region->addr)
		region->addr = map(-1, whole_pages(length_bytes) * page_bytes());
	return end_with(region, region->addr ? enroll(region, pd, flags_of(device, access))
					     : fail(ENOMEM, "region: no memory for %zu bytes",
						    length_bytes));
}

struct vb_region *vb_region_register(struct vb_device *device, struct ibv_pd *pd, void *addr,
				     size_t length_bytes, int access)
{
	struct vb_region *region;

	if (!length_bytes || !addr) {
		fail(EINVAL, "region: %zu bytes at %p", length_bytes, addr);
		return NULL;
	}
	region = region_new(length_bytes);
	if (!region)
		return NULL;
	region->addr = addr;
	return end_with(region, enroll(region, pd, flags_of(device, access)));
}

int vb_region_free(struct vb_region *region)
{
	int err;

	if (!region)
		return 0;
	if (region->guard->held)
		return fail(EBUSY, "region at %p: %u buffers in it belong to work under way",
			    region->addr, region->guard->held);
	err = vb_dereg_mr(region->mr);
	if (err)
		return fail_because(err, "region at %p", region->addr);
	if (region->guard->owned)
		unmap(region);
	region_drop(region);
	return 0;
}

/* --- keys --- */

int vb_remote_part(const struct vb_remote *whole, uint64_t offset_bytes, uint64_t length_bytes,
		   struct vb_remote *part)
{
	if (offset_bytes > whole->length_bytes || length_bytes > whole->length_bytes - offset_bytes)
		return fail(EINVAL, "remote 0x%x: %llu bytes from %llu are not in its %llu",
			    whole->rkey, (unsigned long long)length_bytes,
			    (unsigned long long)offset_bytes,
			    (unsigned long long)whole->length_bytes);
	*part = (struct vb_remote){whole->addr + offset_bytes, length_bytes, whole->rkey};
	return 0;
}

int vb_region_remote(const struct vb_region *region, size_t offset_bytes, size_t length_bytes,
		     struct vb_remote *remote)
{
	const struct vb_remote whole = {(uintptr_t)region->addr, region->length_bytes,
					region->mr->rkey};

	return vb_remote_part(&whole, offset_bytes, length_bytes, remote);
}
