/* SPDX-License-Identifier: MIT */
/*
 * Memory regions, and every touch of the application's memory.
 */
#ifndef SIM_MEMORY_H
#define SIM_MEMORY_H

#include "sim/key.h"

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sim_device;

/* How the world's owner reaches the application's memory, which may be gone. */
struct sim_memory_ops {
	/* Copies; nonzero where either side cannot be touched (some bytes may have been copied). */
	int (*copy)(void *dst, const void *src, size_t length_bytes);
	/* Whether [addr, addr + length) is mapped, and writable if asked; 0 or EFAULT. */
	int (*probe)(const void *addr, size_t length_bytes, bool write);
};

struct sim_mr_init {
	uint32_t pd;
	void *addr;
	size_t length;
	uint64_t iova; /* what SGEs and remote peers call addr */
	int access;    /* enum ibv_access_flags */
};

struct sim_mr {
	struct sim_device *device;
	uint32_t pd;
	uint32_t number;
	uint32_t lkey;
	uint32_t rkey;
	int access;
	uint64_t iova;
	uint64_t length;
	uintptr_t base;
	void *user;
};

/* EINVAL for access flags that do not fit, EFAULT for a range that cannot be used, ENOMEM. */
int sim_mr_create(struct sim_device *device, const struct sim_mr_init *init, struct sim_mr **mr);
void sim_mr_destroy(struct sim_mr *mr);

/* The last MR that a queue used: most work uses it again. */
struct sim_mr_memo {
	const struct sim_mr *mr;
	uint32_t key;
	uint32_t epoch; /* of the device's memory; 0 for nothing */
};

/* The MR of a key, whichever PD and rights; NULL for none. */
const struct sim_mr *sim_mr_find(const struct sim_device *device, enum sim_key_kind kind,
				 uint32_t key);

/* Looks the key up where it is not the one remembered; false for a wrong key or PD. */
bool sim_mr_recall(const struct sim_device *device, struct sim_mr_memo *memo,
		   enum sim_key_kind kind, uint32_t pd, uint32_t key);

static inline void *sim_mr_at(const struct sim_mr *mr, uint64_t addr, uint64_t length, int access)
{
	/* clang-tidy does not know that no device's epoch is 0, which is an empty memo's. */
	uint64_t offset = addr - mr->iova; /* NOLINT(clang-analyzer-core.NullDereference) */

	if ((mr->access & access) != access || offset > mr->length || length > mr->length - offset)
		return NULL;
	return (void *)(mr->base + offset);
}

/*
 * Host memory behind a local or remote range, checked: key, PD, rights (all of access), bounds.
 * NULL where it may not be touched. A range of 0 bytes is not to be asked for.
 */
static inline void *sim_memory_at(const struct sim_device *device, uint32_t epoch,
				  struct sim_mr_memo *memo, enum sim_key_kind kind, uint32_t pd,
				  uint32_t key, uint64_t addr, uint64_t length, int access)
{
	if ((memo->key != key || memo->epoch != epoch) &&
	    !sim_mr_recall(device, memo, kind, pd, key))
		return NULL;
	return sim_mr_at(memo->mr, addr, length, access);
}

#endif
