/* SPDX-License-Identifier: MIT */
/*
 * Memory regions (MR) and memory windows (MW), their keys, and the checks of every access to
 * memory.
 */
#ifndef SIM_OBJECT_MEMORY_H
#define SIM_OBJECT_MEMORY_H

#include "sim/object/key.h"

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sim_device;

/* The flags that ibv_reg_mr(3) knows. Relaxed ordering and huge pages change nothing here. */
#define SIM_ACCESS_KNOWN                                                             \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED |     \
	 IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB | IBV_ACCESS_OPTIONAL_RANGE)

/* The flags that a window takes. Programs give local write beside remote write; it grants no right
 * that the region does not have. */
#define SIM_WINDOW_ACCESS                                                            \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_ZERO_BASED)

struct sim_mr_init {
	uint32_t pd;
	void *addr;
	size_t length;
	uint64_t iova; /* the address of addr in SGEs and packets */
	int access;    /* enum ibv_access_flags */
	bool null;     /* reads give zeros, writes are discarded; addr and length are ignored */
	bool trusted;  /* memory of the owner, which is not probed (device memory) */
};

enum sim_mr_kind {
	SIM_MR_REGION,
	SIM_MR_NULL,
	SIM_MR_WINDOW_1, /* type 1: ibv_bind_mw(3) binds it */
	SIM_MR_WINDOW_2, /* type 2: a posted WR binds it; usable through the QP of that WR */
};

/* A region or a window. A window that is not bound has no rights and length 0. */
struct sim_mr {
	struct sim_device *device;
	uint8_t kind;		/* enum sim_mr_kind */
	struct sim_mr *region;	/* the region of a bound window */
	uint32_t windows;	/* counts the windows that are bound to this region */
	uint32_t promised_rkey; /* of the last binding that was posted for a type 1 window */
	uint32_t owner_qpn;	/* the QP that may use a bound type 2 window; 0: any QP */
	uint32_t pd;
	uint32_t number;
	uint32_t lkey;
	uint32_t rkey;
	int access;
	uint64_t iova;
	uint64_t length;
	uintptr_t base;
	uint8_t *scratch; /* of a null region */
	/* Of another engine's region, which is in the device's list, not in its table; else NULL. */
	const struct sim_adoption *adoption;
	struct sim_mr *next_adopted;
};

/*
 * Returns 0 if the application's memory can be read, and written with `write`; else refuses with
 * EFAULT, or with the errno that kept the owner from looking.
 */
int sim_memory_probe(const struct sim_device *device, const void *addr, size_t length_bytes,
		     bool write);

/* Makes a region. EINVAL or EOPNOTSUPP for its access flags, EINVAL or EFAULT for its range,
 * ENOMEM. */
int sim_mr_create(struct sim_device *device, const struct sim_mr_init *init, struct sim_mr **mr);

/* A region that another engine has made. */
struct sim_adoption {
	uint32_t lkey, rkey;
	/* The keys lead to the region while the number at `stamp`, which the other engine's owner may
	 * change at any time, is `stamp_then`. */
	const _Atomic uint64_t *stamp;
	uint64_t stamp_then;
};

/*
 * Makes a region of another engine's one. init->addr is where the owner reaches its memory, which is not
 * probed; the access flags are those that the other engine has checked. The region does not count for
 * max_mr. *adoption must stay as long as the region. ENOMEM.
 */
int sim_mr_adopt(struct sim_device *device, const struct sim_mr_init *init,
		 const struct sim_adoption *adoption, struct sim_mr **mr);
/* Destroys a region. EBUSY while a window is bound to it. */
int sim_mr_destroy(struct sim_mr *mr);

/*
 * ibv_rereg_mr(3): changes PD, access and range by flags (enum ibv_rereg_mr_flags); the keys stay.
 * EINVAL, EFAULT; EBUSY while a window is bound to the region. An error changes nothing.
 */
int sim_mr_change(struct sim_mr *mr, int flags, const struct sim_mr_init *init);

/* ibv_alloc_mw(3): makes a window that is not bound. Each binding changes its rkey. ENOMEM. */
int sim_mw_create(struct sim_device *device, uint32_t pd, enum ibv_mw_type type,
		  struct sim_mr **mw);
void sim_mw_destroy(struct sim_mr *mw);

/* A binding of a window to a range of a region; length 0 unbinds. */
struct sim_mw_bind {
	uint32_t old_rkey; /* the rkey in the program's ibv_mw */
	uint32_t new_rkey; /* its low 8 bits become those of the window's rkey */
	uint32_t region_lkey;
	uint64_t addr;
	uint64_t length;
	int access;
};

/* Returns the window's rkey after a binding that asks for an rkey: a binding takes the low 8 bits and
 * keeps the window's upper 24 (rdma-core providers/irdma/uverbs.c, calc_type2_mw_stag). */
uint32_t sim_mw_rkey(const struct sim_mr *mw, uint32_t asked);

/* Returns the rkey of the next binding that is posted for a type 1 window. */
uint32_t sim_mw_next_rkey(const struct sim_mr *mw);

/* Binds or unbinds. False if the keys, PDs, rights, bounds or the window's state forbid it. */
bool sim_mw_bind(struct sim_device *device, uint32_t pd, uint32_t qpn, uint32_t mw_number,
		 const struct sim_mw_bind *bind);

/* Invalidates a bound type 2 window by its rkey. False if the QP may not invalidate it. */
bool sim_mw_invalidate(struct sim_device *device, uint32_t pd, uint32_t qpn, uint32_t rkey);

/* The identity that accesses memory, and the MR of its last access, which most work uses again. */
struct sim_reach {
	const struct sim_device *device;
	uint32_t pd;
	uint32_t qpn; /* decides which type 2 windows may be used */
	const struct sim_mr *mr;
	uint32_t key;
	uint32_t epoch; /* the device's memory_epoch when mr was looked up; 0: mr is not set */
};

/* Returns the MR of a key without a check of PD and rights; NULL if no MR has the key. */
const struct sim_mr *sim_mr_find(const struct sim_device *device, enum sim_key_kind kind,
				 uint32_t key);

/* Looks a key up and remembers its MR in *reach. False for a wrong key, PD or QP. */
bool sim_reach_find(struct sim_reach *reach, enum sim_key_kind kind, uint32_t key);

/* Returns the zeros of a null region, or with local write the memory that discards writes. */
void *sim_mr_null(const struct sim_mr *mr, int access);

/* Returns the memory at addr; NULL if the MR lacks a right of `access` or does not cover the
 * range. */
static inline void *sim_mr_at(const struct sim_mr *mr, uint64_t addr, uint64_t length, int access)
{
	/* clang-tidy does not know that mr is set: no device has epoch 0, which says that it is
	 * not. */
	uint64_t offset = addr - mr->iova; /* NOLINT(clang-analyzer-core.NullDereference) */

	if ((mr->access & access) != access || offset > mr->length || length > mr->length - offset)
		return NULL;
	if (mr->kind == SIM_MR_NULL)
		return sim_mr_null(mr, access);
	return (void *)(mr->base + offset);
}

#endif
