/* SPDX-License-Identifier: MIT */
#include "sim/object/denial.h"

#include "sim/base/core.h"
#include "sim/object/device.h"
#include "sim/object/rules.h"

/* The values of a reason that are alike for all accesses. */
enum { KEY = 1, ADDR, LENGTH, EXCESS, BOUND };

/* --- accesses --- */

static enum sim_denial denial_of_key(const struct sim_device *device, enum sim_key_kind kind,
				     uint32_t key)
{
	const enum sim_key_kind other = kind == SIM_KEY_LOCAL ? SIM_KEY_REMOTE : SIM_KEY_LOCAL;
	enum sim_key_kind found;
	const uint32_t number = sim_key_number(key, &found);
	const struct sim_mr *mr = sim_table_at(&device->regions, number);

	if (sim_mr_find(device, other, key))
		return SIM_DENIAL_KIND;
	if (found != kind)
		return SIM_DENIAL_UNKNOWN;
	/* A window keeps the upper 24 bits of its rkey. */
	if (sim_table_had(&device->regions, number) ||
	    (mr && mr->kind >= SIM_MR_WINDOW_1 && (mr->rkey ^ key) >> 8 == 0))
		return SIM_DENIAL_STALE;
	return SIM_DENIAL_UNKNOWN;
}

static enum sim_denial denial_of_range(const struct sim_mr *mr, const struct sim_access *access,
				       struct vb_why *why)
{
	const uint64_t offset = access->addr - mr->iova;

	if (access->addr < mr->iova) {
		why->values[EXCESS] = mr->iova - access->addr;
		why->values[BOUND] = mr->iova;
		return SIM_DENIAL_BEFORE;
	}
	if (offset <= mr->length && access->length <= mr->length - offset)
		return SIM_DENIAL_UNMAPPED;
	why->values[EXCESS] = offset + access->length - mr->length;
	why->values[BOUND] = mr->iova + mr->length;
	return SIM_DENIAL_BEHIND;
}

enum sim_denial sim_access_denial(const struct sim_reach *reach, const struct sim_access *access,
				  struct vb_why *why)
{
	const struct sim_mr *mr = sim_mr_find(reach->device, access->kind, access->key);

	why->values[KEY] = access->key;
	why->values[ADDR] = access->addr;
	why->values[LENGTH] = access->length;
	if (!mr)
		return denial_of_key(reach->device, access->kind, access->key);
	if (mr->pd != reach->pd)
		return SIM_DENIAL_PD;
	if (mr->owner_qpn && mr->owner_qpn != reach->qpn) {
		why->values[BOUND] = mr->owner_qpn;
		return SIM_DENIAL_OWNER;
	}
	if (mr->kind >= SIM_MR_WINDOW_1 && !mr->region)
		return SIM_DENIAL_UNBOUND;
	if ((mr->access & access->rights) != access->rights) {
		why->values[EXCESS] = (uint64_t)(access->rights & ~mr->access);
		return SIM_DENIAL_RIGHT;
	}
	return denial_of_range(mr, access, why);
}

bool sim_access_is_mapped(const struct sim_reach *reach, const struct sim_access *access)
{
	const struct sim_memory_ops *memory = &reach->device->engine->host.memory;
	const struct sim_mr *mr = sim_mr_find(reach->device, access->kind, access->key);
	const uintptr_t base = mr->base + (access->addr - mr->iova);

	return mr->kind == SIM_MR_NULL ||
	       memory->probe((const void *)base, access->length,
			     access->rights & IBV_ACCESS_LOCAL_WRITE) == 0;
}

/* --- windows --- */

static struct vb_why window_why(const struct sim_device *device, const struct sim_mr *mw,
				uint32_t pd, const struct sim_mw_bind *bind)
{
	const bool type_1 = mw->kind == SIM_MR_WINDOW_1;
	struct vb_why why = {.values = {mw->rkey, bind->old_rkey}};
	const int refused =
		bind->access & (~SIM_WINDOW_ACCESS | (type_1 ? IBV_ACCESS_ZERO_BASED : 0));

	if (mw->pd != pd && (!type_1 || sim_device_obeys(device, SIM_RULE_WINDOW_PD)))
		why.reason = VB_WHY_BIND_WINDOW_PD;
	else if (!type_1 && mw->region)
		why.reason = VB_WHY_BIND_WINDOW_BOUND;
	else if (!type_1 && !bind->length)
		why.reason = VB_WHY_BIND_EMPTY;
	else if (bind->old_rkey != mw->rkey && !sim_device_obeys(device, SIM_RULE_WINDOW_REBOUND))
		why.reason = VB_WHY_BIND_OLD_RKEY;
	else if (refused)
		why = (struct vb_why){VB_WHY_BIND_FLAGS, {0, type_1 ? 1 : 2, (uint32_t)refused}};
	return why;
}

static struct vb_why region_why(const struct sim_device *device, const struct sim_mr *region,
				uint32_t pd, const struct sim_mw_bind *bind)
{
	const int changes = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
	const int needed =
		IBV_ACCESS_MW_BIND | (bind->access & changes ? IBV_ACCESS_LOCAL_WRITE : 0);
	struct vb_why why = {.values = {0, bind->region_lkey}};

	if (!region || region->kind != SIM_MR_REGION) {
		why.reason = VB_WHY_BIND_REGION;
	} else if (region->pd != pd && sim_device_obeys(device, SIM_RULE_WINDOW_PD)) {
		why.reason = VB_WHY_BIND_REGION_PD;
	} else if ((region->access & needed) != needed) {
		why.reason = VB_WHY_BIND_REGION_RIGHT;
		why.values[2] = (uint64_t)(needed & ~region->access);
	} else {
		why = (struct vb_why){VB_WHY_BIND_RANGE,
				      {0, bind->region_lkey, bind->length, bind->addr, region->iova,
				       region->length}};
	}
	return why;
}

struct vb_why sim_mw_bind_why(const struct sim_device *device, uint32_t pd, uint32_t mw_number,
			      const struct sim_mw_bind *bind)
{
	const struct sim_mr *mw = sim_table_find(&device->regions, mw_number);
	struct vb_why why = {VB_WHY_BIND_NO_WINDOW, {bind->old_rkey}};

	if (!mw || mw->kind < SIM_MR_WINDOW_1)
		return why;
	why = window_why(device, mw, pd, bind);
	if (why.reason)
		return why;
	return region_why(device, sim_mr_find(device, SIM_KEY_LOCAL, bind->region_lkey), pd, bind);
}

struct vb_why sim_mw_invalidate_why(const struct sim_device *device, uint32_t rkey)
{
	const struct sim_mr *mw = sim_mr_find(device, SIM_KEY_REMOTE, rkey);
	enum vb_reason reason = VB_WHY_INVALIDATE_OWNER;

	if (!mw)
		reason = VB_WHY_INVALIDATE_UNKNOWN;
	else if (mw->kind != SIM_MR_WINDOW_2)
		reason = VB_WHY_INVALIDATE_TYPE;
	else if (!mw->region)
		reason = VB_WHY_INVALIDATE_UNBOUND;
	return (struct vb_why){reason, {rkey, mw ? mw->owner_qpn : 0}};
}
