/* SPDX-License-Identifier: MIT */
/*
 * Why memory may not be accessed, and why a window cannot be bound or invalidated. These functions
 * are called after a check of sim/object/memory.h has failed, and before anything has changed.
 */
#ifndef SIM_OBJECT_DENIAL_H
#define SIM_OBJECT_DENIAL_H

#include "sim/object/memory.h"

#include <verbena/why.h>

/* Causes; the order is that of the checks. */
enum sim_denial {
	SIM_DENIAL_UNMAPPED, /* key, rights and range are right: the process has unmapped the memory */
	SIM_DENIAL_UNKNOWN, /* no MR or window has the key */
	SIM_DENIAL_STALE,   /* an MR or window had the key */
	SIM_DENIAL_KIND,    /* an rkey in the place of an lkey, or the reverse */
	SIM_DENIAL_PD,
	SIM_DENIAL_OWNER, /* a window of type 2 that was bound on another QP */
	SIM_DENIAL_UNBOUND,
	SIM_DENIAL_RIGHT,
	SIM_DENIAL_BEFORE, /* the range begins before the region */
	SIM_DENIAL_BEHIND, /* the range ends behind the region */
	SIM_DENIALS,
};

/* An access to memory. */
struct sim_access {
	enum sim_key_kind kind;
	uint32_t key;
	uint64_t addr;
	uint64_t length;
	int rights; /* enum ibv_access_flags */
};

/*
 * Returns why an access by the identity of @reach is denied. values[1] to values[3] of @why become
 * key, address and length; values[4] the rights that are lacking, or how many bytes are outside the
 * region; values[5] the region's begin or end, or the QP that owns the window.
 */
enum sim_denial sim_access_denial(const struct sim_reach *reach, const struct sim_access *access,
				  struct vb_why *why);

/* Returns true if the process has the memory of an access that SIM_DENIAL_UNMAPPED denies. */
bool sim_access_is_mapped(const struct sim_reach *reach, const struct sim_access *access);

/* Returns why sim_mw_bind() or sim_mw_invalidate() has returned false. */
struct vb_why sim_mw_bind_why(const struct sim_device *device, uint32_t pd, uint32_t mw_number,
			      const struct sim_mw_bind *bind);
struct vb_why sim_mw_invalidate_why(const struct sim_device *device, uint32_t rkey);

#endif
