/* SPDX-License-Identifier: MIT */
/*
 * Memory regions, and every touch of the application's memory.
 */
#ifndef SIM_OBJECT_MEMORY_H
#define SIM_OBJECT_MEMORY_H

#include "sim/object/key.h"

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sim_device;

struct sim_mr_init {
	uint32_t pd;
	void *addr;
	size_t length;
	uint64_t iova; /* what SGEs and remote peers call addr */
	int access;    /* enum ibv_access_flags */
	bool null;     /* reads are zeros, writes go nowhere; addr and length are not looked at */
	bool trusted;  /* our own memory, which needs no look (device memory) */
};

enum sim_mr_kind {
	SIM_MR_REGION,
	SIM_MR_NULL,
	SIM_MR_WINDOW_1, /* type 1: bound by ibv_bind_mw */
	SIM_MR_WINDOW_2, /* type 2: bound by a posted WR; usable through the QP that bound it */
};

/* A region, or a window onto one. A window that is not bound has no rights and no length. */
struct sim_mr {
	struct sim_device *device;
	uint8_t kind;		/* enum sim_mr_kind */
	struct sim_mr *region;	/* of a bound window */
	uint32_t windows;	/* bound to this region */
	uint32_t promised_rkey; /* of the last binding of a type 1 window that was posted */
	uint32_t owner_qpn;	/* the QP that a bound type 2 window belongs to; 0 for any */
	uint32_t pd;
	uint32_t number;
	uint32_t lkey;
	uint32_t rkey;
	int access;
	uint64_t iova;
	uint64_t length;
	uintptr_t base;
	uint8_t *scratch; /* a null region's */
	void *user;
};

/* EINVAL for access flags that do not fit, EFAULT for a range that cannot be used, ENOMEM. */
int sim_mr_create(struct sim_device *device, const struct sim_mr_init *init, struct sim_mr **mr);
/* EBUSY while a window is bound to it. */
int sim_mr_destroy(struct sim_mr *mr);

/*
 * ibv_rereg_mr(3): changes what flags (enum ibv_rereg_mr_flags) say; nothing on an error. EINVAL,
 * EFAULT, EBUSY (windows). Its keys stay.
 */
int sim_mr_change(struct sim_mr *mr, int flags, const struct sim_mr_init *init);

/* Windows: ibv_alloc_mw(3). ENOMEM. type IBV_MW_TYPE_1 or _2. The window is a sim_mr whose rkey
 * changes with each binding. */
int sim_mw_create(struct sim_device *device, uint32_t pd, enum ibv_mw_type type,
		  struct sim_mr **mw);
void sim_mw_destroy(struct sim_mr *mw);

/* What a binding asks for; length 0 unbinds. */
struct sim_mw_bind {
	uint32_t old_rkey; /* as the program's ibv_mw has it */
	uint32_t new_rkey; /* as sim_mw_next_rkey() gives it (type 1); as the WR says (type 2) */
	uint32_t region_lkey;
	uint64_t addr;
	uint64_t length;
	int access;
};

/* The key of the next binding of a type 1 window that is posted. */
uint32_t sim_mw_next_rkey(const struct sim_mr *mw);

/* Binds or unbinds; false where the keys, PDs, rights, bounds or the window's state forbid it. */
bool sim_mw_bind(struct sim_device *device, uint32_t pd, uint32_t qpn, uint32_t mw_number,
		 const struct sim_mw_bind *bind);

/* Invalidates a bound type 2 window by its rkey; false where there is none that the QP may end. */
bool sim_mw_invalidate(struct sim_device *device, uint32_t pd, uint32_t qpn, uint32_t rkey);

/* Who reaches for memory, and the MR that it used last: most work uses it again. */
struct sim_reach {
	const struct sim_device *device;
	uint32_t pd;
	uint32_t qpn; /* windows of type 2 are one QP's */
	const struct sim_mr *mr;
	uint32_t key;
	uint32_t epoch; /* of the device's memory; 0 for nothing */
};

/* The MR of a key, whichever PD and rights; NULL for none. */
const struct sim_mr *sim_mr_find(const struct sim_device *device, enum sim_key_kind kind,
				 uint32_t key);

/* Looks the key up where it is not the one remembered; false for a wrong key, PD or QP. */
bool sim_reach_find(struct sim_reach *reach, enum sim_key_kind kind, uint32_t key);

/* Behind a null region: zeros to read, and somewhere to write. */
void *sim_mr_null(const struct sim_mr *mr, int access);

static inline void *sim_mr_at(const struct sim_mr *mr, uint64_t addr, uint64_t length, int access)
{
	/* clang-tidy does not know that no device's epoch is 0, which is an empty memo's. */
	uint64_t offset = addr - mr->iova; /* NOLINT(clang-analyzer-core.NullDereference) */

	if ((mr->access & access) != access || offset > mr->length || length > mr->length - offset)
		return NULL;
	if (mr->kind == SIM_MR_NULL)
		return sim_mr_null(mr, access);
	return (void *)(mr->base + offset);
}

#endif
