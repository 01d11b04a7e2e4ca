/* SPDX-License-Identifier: MIT */
#include "sim/object/memory.h"

#include "sim/base/refuse.h"
#include "sim/object/device.h"
#include "sim/object/rules.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#define REMOTE_CHANGE (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)

/* The scratch of a null region: NULL_BYTES zeros to read, then NULL_BYTES to write to. Both are
 * longer than a packet's payload. */
#define NULL_BYTES 8192u

/* The size of the host's pages, for the quirk empty_regions_refused. */
#define PAGE_BYTES 4096u

static int refuse(const struct sim_device *device, enum vb_reason reason, uint64_t first,
		  uint64_t second)
{
	return sim_refuse(device->engine, (struct vb_why){reason, {first, second}});
}

static int check_access(const struct sim_device *device, int access)
{
	const int special =
		access & (IBV_ACCESS_ZERO_BASED | IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB);
	const int unknown = access & ~SIM_ACCESS_KNOWN;

	if (device->quirks.special_regions_refused && special)
		return refuse(device, VB_WHY_MR_SPECIAL, (unsigned int)special, 0);
	/* ibv_reg_mr(3): remote write and remote atomic need local write. */
	if ((access & REMOTE_CHANGE) && !(access & IBV_ACCESS_LOCAL_WRITE) &&
	    !device->quirks.local_write_not_required)
		return refuse(device, VB_WHY_MR_LOCAL_WRITE, (unsigned int)(access & REMOTE_CHANGE),
			      0);
	if ((access & IBV_ACCESS_ON_DEMAND) && device->profile->lacks & SIM_LACKS_ON_DEMAND)
		return refuse(device, VB_WHY_MR_ON_DEMAND, 0, 0);
	return unknown ? refuse(device, VB_WHY_MR_ACCESS_UNKNOWN, (unsigned int)unknown, 0) : 0;
}

/* ibv_reg_mr(3): address 0 and SIZE_MAX with ON_DEMAND reach everything. */
static bool is_implicit(const struct sim_mr_init *init)
{
	return (init->access & IBV_ACCESS_ON_DEMAND) && !init->addr && init->length == SIZE_MAX;
}

/* Says where the memory cannot be touched. */
static int refuse_fault(const struct sim_device *device, const void *addr, size_t length_bytes,
			bool write)
{
	const struct sim_memory_ops *memory = &device->engine->host.memory;
	struct vb_why why = {VB_WHY_MEMORY_FAULT, {length_bytes, (uintptr_t)addr}};
	uintptr_t hole = 0;
	size_t hole_bytes = 0;

	if (memory->find_hole)
		why.text = memory->find_hole(addr, length_bytes, write, &hole, &hole_bytes);
	if (!why.text)
		why.reason = VB_WHY_MEMORY_BEHIND_FILE;
	why.values[2] = hole_bytes;
	why.values[3] = hole;
	return sim_refuse(device->engine, why);
}

int sim_memory_probe(const struct sim_device *device, const void *addr, size_t length_bytes,
		     bool write)
{
	const int err = device->engine->host.memory.probe(addr, length_bytes, write);
	const enum vb_reason reason = sim_descriptor_reason(err);

	if (err == EFAULT)
		return refuse_fault(device, addr, length_bytes, write);
	if (reason == VB_WHY_NONE)
		return err;
	return sim_refuse(device->engine,
			  (struct vb_why){.reason = reason, .text = "to read /proc/self/maps"});
}

static int check_range(const struct sim_device *device, const struct sim_mr_init *init)
{
	const uint64_t limit = device->profile->limits.max_mr_size;
	uintptr_t base = (uintptr_t)init->addr;

	if (init->length == 0 && !init->null && base % PAGE_BYTES == 0 &&
	    device->quirks.empty_regions_refused)
		return refuse(device, VB_WHY_MR_EMPTY, 0, 0);
	if (init->null || init->trusted || is_implicit(init) || init->length == 0)
		return 0;
	if (init->length > limit)
		return refuse(device, VB_WHY_MR_TOO_LONG, init->length, limit);
	if (base + init->length - 1 < base)
		return refuse(device, VB_WHY_MR_ADDRESS_WRAPS, init->length, base);
	if (!(init->access & IBV_ACCESS_ZERO_BASED) && init->iova + init->length - 1 < init->iova)
		return refuse(device, VB_WHY_MR_IOVA_WRAPS, init->length, init->iova);
	/* Pages on demand may be mapped later. */
	if (init->access & IBV_ACCESS_ON_DEMAND)
		return 0;
	return sim_memory_probe(device, init->addr, init->length,
				init->access & IBV_ACCESS_LOCAL_WRITE);
}

static void set_range(struct sim_mr *mr, const struct sim_mr_init *init)
{
	mr->base = (uintptr_t)init->addr;
	mr->length = init->null || is_implicit(init) ? UINT64_MAX : init->length;
	mr->iova = init->access & IBV_ACCESS_ZERO_BASED || init->null ? 0 : init->iova;
}

/* Inserts a region or window into the device's table and gives it its keys. */
static int enlist(struct sim_mr *mr)
{
	struct sim_engine *engine = mr->device->engine;
	const int err = sim_table_insert(&mr->device->regions, mr, &mr->number);

	if (err)
		return err == ENOSPC ? sim_refuse_numbers(engine, "memory keys")
				     : sim_refuse_memory(engine);
	mr->lkey = sim_key_make(mr->number, SIM_KEY_LOCAL);
	mr->rkey = sim_key_make(mr->number, SIM_KEY_REMOTE);
	return 0;
}

/* Returns a region's rkey; with a quirk, 0 if the region has no remote rights. */
static uint32_t rkey_of(const struct sim_mr *mr)
{
	const int remote = REMOTE_CHANGE | IBV_ACCESS_REMOTE_READ;

	if (mr->device->quirks.local_regions_have_no_rkey && !(mr->access & remote))
		return 0;
	if (mr->device->quirks.keys_are_equal)
		return mr->lkey;
	return sim_key_make(mr->number, SIM_KEY_REMOTE);
}

int sim_mr_create(struct sim_device *device, const struct sim_mr_init *init, struct sim_mr **out)
{
	const int limit = device->profile->limits.max_mr;
	struct sim_mr *mr;
	int err = check_access(device, init->access);

	if (err)
		return err;
	err = check_range(device, init);
	if (err)
		return err;
	if (device->region_count >= (uint32_t)limit)
		return sim_refuse_limit(device->engine, "max_mr", limit);
	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return sim_refuse_memory(device->engine);
	mr->device = device;
	mr->kind = init->null ? SIM_MR_NULL : SIM_MR_REGION;
	mr->pd = init->pd;
	mr->access = init->access;
	set_range(mr, init);
	mr->scratch = init->null ? calloc(2, NULL_BYTES) : NULL;
	err = init->null && !mr->scratch ? sim_refuse_memory(device->engine) : enlist(mr);
	if (err) {
		free(mr->scratch);
		free(mr);
		return err;
	}
	mr->rkey = rkey_of(mr);
	device->region_count++;
	*out = mr;
	return 0;
}

int sim_mr_adopt(struct sim_device *device, const struct sim_mr_init *init,
		 const struct sim_adoption *adoption, struct sim_mr **out)
{
	struct sim_mr *mr = calloc(1, sizeof(*mr));

	if (!mr)
		return sim_refuse_memory(device->engine);
	mr->device = device;
	mr->kind = SIM_MR_REGION;
	mr->pd = init->pd;
	mr->access = init->access;
	mr->base = (uintptr_t)init->addr;
	mr->length = init->length;
	mr->iova = init->iova;
	mr->lkey = adoption->lkey;
	mr->rkey = adoption->rkey;
	mr->adoption = adoption;
	mr->next_adopted = device->adopted;
	device->adopted = mr;
	/* A key of a region that this engine has, too, leads to the adopted one from now on. */
	device->memory_epoch++;
	*out = mr;
	return 0;
}

static void delist(struct sim_mr *mr)
{
	struct sim_mr **at = &mr->device->adopted;

	if (!mr->adoption) {
		mr->device->region_count--;
		sim_table_remove(&mr->device->regions, mr->number);
		return;
	}
	while (*at != mr)
		at = &(*at)->next_adopted;
	*at = mr->next_adopted;
}

/* Says how many windows are bound to the region, and names the first. */
static int refuse_bound(const struct sim_mr *mr, enum vb_reason reason)
{
	const struct sim_mr *other;
	uint32_t place = 0, rkey = 0;

	while (!rkey && (other = sim_table_next(&mr->device->regions, &place)))
		if (other->region == mr)
			rkey = other->rkey;
	return sim_refuse(mr->device->engine,
			  (struct vb_why){reason, {mr->lkey, mr->windows, rkey}});
}

int sim_mr_destroy(struct sim_mr *mr)
{
	if (mr->windows)
		return refuse_bound(mr, mr->device->quirks.bound_regions_are_einval
						? VB_WHY_MR_BOUND_RXE
						: VB_WHY_MR_BOUND);
	mr->device->memory_epoch++;
	delist(mr);
	free(mr->scratch);
	free(mr);
	return 0;
}

int sim_mr_change(struct sim_mr *mr, int flags, const struct sim_mr_init *init)
{
	struct sim_mr_init next = {
		.pd = flags & IBV_REREG_MR_CHANGE_PD ? init->pd : mr->pd,
		.access = flags & IBV_REREG_MR_CHANGE_ACCESS ? init->access : mr->access,
		.addr = (void *)mr->base,
		.length = mr->length,
		.iova = mr->iova,
	};
	int err;

	if (mr->kind != SIM_MR_REGION)
		return sim_refuse(mr->device->engine, (struct vb_why){.reason = VB_WHY_REREG_KIND,
								      .text = "a null MR"});
	if (mr->windows)
		return refuse_bound(mr, VB_WHY_MR_BOUND);
	if (flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
		next.addr = init->addr;
		next.length = init->length;
		next.iova = init->iova;
	}
	err = check_access(mr->device, next.access);
	if (!err)
		err = check_range(mr->device, &next);
	if (err)
		return err;
	mr->pd = next.pd;
	mr->access = next.access;
	if (flags & (IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_ACCESS))
		set_range(mr, &next);
	mr->device->memory_epoch++;
	return 0;
}

void *sim_mr_null(const struct sim_mr *mr, int access)
{
	return access & IBV_ACCESS_LOCAL_WRITE ? mr->scratch + NULL_BYTES : mr->scratch;
}

static bool is_current(const struct sim_mr *mr)
{
	return atomic_load_explicit(mr->adoption->stamp, memory_order_acquire) ==
	       mr->adoption->stamp_then;
}

static const struct sim_mr *find_adopted(const struct sim_device *device, enum sim_key_kind kind,
					 uint32_t key)
{
	const struct sim_mr *mr = device->adopted;

	while (mr && (key != (kind == SIM_KEY_LOCAL ? mr->lkey : mr->rkey) || !is_current(mr)))
		mr = mr->next_adopted;
	return mr;
}

/* The owner of a type 2 window chooses the low byte of its key, so the whole key is compared and
 * not the table's generation. The kind of the key is not compared: lkey and rkey may be equal
 * (keys_are_equal). */
const struct sim_mr *sim_mr_find(const struct sim_device *device, enum sim_key_kind kind,
				 uint32_t key)
{
	enum sim_key_kind found;
	const struct sim_mr *mr = find_adopted(device, kind, key);

	if (mr)
		return mr;
	mr = sim_table_at(&device->regions, sim_key_number(key, &found));
	return mr && key == (kind == SIM_KEY_LOCAL ? mr->lkey : mr->rkey) ? mr : NULL;
}

bool sim_reach_find(struct sim_reach *reach, enum sim_key_kind kind, uint32_t key)
{
	const struct sim_mr *mr = sim_mr_find(reach->device, kind, key);

	if (!mr || mr->pd != reach->pd || (mr->owner_qpn && mr->owner_qpn != reach->qpn))
		return false;
	reach->mr = mr;
	reach->key = key;
	/* An adopted region may end at any time: it is looked up each time. */
	reach->epoch = mr->adoption ? 0 : reach->device->memory_epoch;
	return true;
}

int sim_mw_create(struct sim_device *device, uint32_t pd, enum ibv_mw_type type,
		  struct sim_mr **out)
{
	struct sim_mr *mw;
	int err;

	if (device->window_count >= (uint32_t)device->profile->limits.max_mw)
		return sim_refuse_limit(device->engine, "max_mw", device->profile->limits.max_mw);
	mw = calloc(1, sizeof(*mw));
	if (!mw)
		return sim_refuse_memory(device->engine);
	mw->device = device;
	mw->kind = type == IBV_MW_TYPE_1 ? SIM_MR_WINDOW_1 : SIM_MR_WINDOW_2;
	mw->pd = pd;
	err = enlist(mw);
	if (err) {
		free(mw);
		return err;
	}
	mw->lkey = 0;
	mw->promised_rkey = mw->rkey;
	device->window_count++;
	*out = mw;
	return 0;
}

static void unbind(struct sim_mr *mw)
{
	if (mw->region)
		mw->region->windows--;
	mw->region = NULL;
	mw->access = 0;
	mw->length = 0;
	mw->owner_qpn = 0;
	mw->device->memory_epoch++;
}

void sim_mw_destroy(struct sim_mr *mw)
{
	unbind(mw);
	mw->device->window_count--;
	sim_table_remove(&mw->device->regions, mw->number);
	free(mw);
}

uint32_t sim_mw_rkey(const struct sim_mr *mw, uint32_t asked)
{
	return (mw->rkey & 0xffffff00) | (asked & 0xff);
}

uint32_t sim_mw_next_rkey(const struct sim_mr *mw)
{
	return sim_mw_rkey(mw, mw->promised_rkey + 1);
}

/* True if the region's PD, rights and bounds allow the binding. */
static bool region_allows(const struct sim_mr *region, uint32_t pd, const struct sim_mw_bind *bind)
{
	const struct sim_device *device = region->device;
	uint64_t offset = bind->addr - region->iova;

	if (region->kind != SIM_MR_REGION ||
	    (region->pd != pd && sim_device_obeys(device, SIM_RULE_WINDOW_PD)) ||
	    !(region->access & IBV_ACCESS_MW_BIND) || (bind->access & ~SIM_WINDOW_ACCESS))
		return false;
	if ((bind->access & REMOTE_CHANGE) && !(region->access & IBV_ACCESS_LOCAL_WRITE))
		return false;
	if (!sim_device_obeys(device, SIM_RULE_WINDOW_RANGE))
		return bind->addr >= region->iova &&
		       bind->addr + bind->length <= region->iova + region->length;
	return offset <= region->length && bind->length <= region->length - offset;
}

/* Linux drivers/infiniband/sw/rxe/rxe_mw.c, rxe_check_bind_mw: a window of type 1 is not zero-based;
 * a bound window of type 2 has to be invalidated first, and a binding of 0 bytes does not unbind
 * it. */
static bool may_bind(const struct sim_mr *mw, uint32_t pd, const struct sim_mw_bind *bind)
{
	if (mw->kind == SIM_MR_WINDOW_1)
		return !(bind->access & IBV_ACCESS_ZERO_BASED) &&
		       (mw->pd == pd || !sim_device_obeys(mw->device, SIM_RULE_WINDOW_PD));
	return mw->pd == pd && !mw->region && bind->length;
}

/* Gives a window all of its region; a zero-based window keeps its own first byte at address 0: Linux
 * drivers/infiniband/sw/rxe/rxe_resp.c, check_rkey, adds the window's address. */
static void widen(struct sim_mr *mw, const struct sim_mw_bind *bind)
{
	mw->iova = mw->region->iova - (bind->access & IBV_ACCESS_ZERO_BASED ? bind->addr : 0);
	mw->base = mw->region->base;
	mw->length = mw->region->length;
}

bool sim_mw_bind(struct sim_device *device, uint32_t pd, uint32_t qpn, uint32_t mw_number,
		 const struct sim_mw_bind *bind)
{
	struct sim_mr *mw = sim_table_find(&device->regions, mw_number);
	struct sim_mr *region = NULL;

	if (!mw || mw->kind < SIM_MR_WINDOW_1 || !may_bind(mw, pd, bind))
		return false;
	if (bind->old_rkey != mw->rkey && !sim_device_obeys(device, SIM_RULE_WINDOW_REBOUND))
		return false;
	if (bind->length) {
		region = (struct sim_mr *)sim_mr_find(device, SIM_KEY_LOCAL, bind->region_lkey);
		if (!region || !region_allows(region, pd, bind))
			return false;
	}
	unbind(mw);
	mw->rkey = sim_mw_rkey(mw, bind->new_rkey);
	if (!region)
		return true;
	mw->region = region;
	region->windows++;
	mw->access = bind->access;
	mw->length = bind->length;
	mw->base = region->base + (bind->addr - region->iova);
	mw->iova = bind->access & IBV_ACCESS_ZERO_BASED ? 0 : bind->addr;
	mw->owner_qpn = mw->kind == SIM_MR_WINDOW_2 ? qpn : 0;
	if (!sim_device_obeys(device, SIM_RULE_WINDOW_BOUNDS))
		widen(mw, bind);
	return true;
}

bool sim_mw_invalidate(struct sim_device *device, uint32_t pd, uint32_t qpn, uint32_t rkey)
{
	struct sim_mr *mw = (struct sim_mr *)sim_mr_find(device, SIM_KEY_REMOTE, rkey);

	if (!mw || mw->kind != SIM_MR_WINDOW_2 || !mw->region)
		return false;
	if ((mw->pd != pd || mw->owner_qpn != qpn) &&
	    sim_device_obeys(device, SIM_RULE_WINDOW_OWNER))
		return false;
	unbind(mw);
	return true;
}
