/* SPDX-License-Identifier: MIT */
/* Device memory (ibv_alloc_dm(3)): memory of this process that the program cannot see. */
#include "backends/sim/guard/guard.h"
#include "backends/sim/verb/control.h"
#include "backends/sim/world/say.h"
#include "backends/sim/world/world.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LOG_ALIGN_MIN 6 /* a cache line */
#define LOG_ALIGN_MAX 20

/* Copies go by words of 4 bytes, as on the adapters that have such memory. */
#define COPY_ALIGN 4

static bool inside(const struct dm *dm, uint64_t offset, size_t length_bytes)
{
	return offset <= dm->length_bytes && length_bytes <= dm->length_bytes - offset;
}

static bool can_copy(const struct dm *dm, uint64_t offset, size_t length_bytes)
{
	return offset % COPY_ALIGN == 0 && length_bytes % COPY_ALIGN == 0 &&
	       inside(dm, offset, length_bytes);
}

/*
 * EFAULT outside of it: rdma-core providers/mlx5/verbs.c, mlx5_access_dm; also where the program's
 * memory cannot be touched.
 */
static int copy_to(struct ibv_dm *ibv, uint64_t dm_offset, const void *host_addr, size_t length)
{
	struct vb_sim *world = context_of(ibv->context)->world;
	bool locked = world_lock(world);
	struct dm *dm = dm_of(ibv);
	int err = EINVAL;

	if (dm)
		err = !can_copy(dm, dm_offset, length) ||
				      guard_copy(dm->bytes + dm_offset, host_addr, length)
			      ? EFAULT
			      : 0;
	world_unlock(world, locked);
	return err ? say(err, "memcpy_to_dm: no such DM, outside of it, or not by words of 4 bytes")
		   : 0;
}

static int copy_from(void *host_addr, struct ibv_dm *ibv, uint64_t dm_offset, size_t length)
{
	struct vb_sim *world = context_of(ibv->context)->world;
	bool locked = world_lock(world);
	struct dm *dm = dm_of(ibv);
	int err = EINVAL;

	if (dm)
		err = !can_copy(dm, dm_offset, length) ||
				      guard_copy(host_addr, dm->bytes + dm_offset, length)
			      ? EFAULT
			      : 0;
	world_unlock(world, locked);
	return err ? say(err,
			 "memcpy_from_dm: no such DM, outside of it, or not by words of 4 bytes")
		   : 0;
}

static uint8_t *take_bytes(size_t length_bytes, uint32_t log_align)
{
	void *bytes;

	if (log_align < LOG_ALIGN_MIN)
		log_align = LOG_ALIGN_MIN;
	if (posix_memalign(&bytes, (size_t)1 << log_align, length_bytes))
		return NULL;
	return memset(bytes, 0, length_bytes);
}

static struct dm *new_dm(struct context *context, const struct ibv_alloc_dm_attr *attr)
{
	struct device *device = context->device;
	struct dm *dm;
	uint32_t handle;

	if (!context_live(context) || attr->comp_mask || !attr->length ||
	    attr->log_align_req > LOG_ALIGN_MAX)
		return say_null(EINVAL, "alloc_dm: %zu bytes, alignment 2^%u, comp_mask 0x%x",
				attr->length, attr->log_align_req, attr->comp_mask);
	if (attr->length > DEVICE_MEMORY_BYTES - device->dm_bytes)
		return say_null(ENOMEM, "alloc_dm: %s has %llu bytes left", device->ibv.name,
				(unsigned long long)(DEVICE_MEMORY_BYTES - device->dm_bytes));
	dm = object_new(context, KIND_DM, &handle);
	if (!dm)
		return say_null(ENOMEM, "alloc_dm: out of memory");
	dm->bytes = take_bytes(attr->length, attr->log_align_req);
	if (!dm->bytes) {
		object_end(context, KIND_DM, handle, dm);
		return say_null(ENOMEM, "alloc_dm: out of memory");
	}
	dm->length_bytes = attr->length;
	dm->slot = handle;
	control_fill_dm(dm, &context->verbs.context, handle);
	device->dm_bytes += attr->length;
	return dm;
}

struct ibv_dm *control_alloc_dm(struct ibv_context *ibv, struct ibv_alloc_dm_attr *attr)
{
	struct context *context = context_of(ibv);
	bool locked = world_lock(context->world);
	struct dm *dm;

	guard_install();
	dm = new_dm(context, attr);

	world_unlock(context->world, locked);
	return dm ? &dm->ibv : NULL;
}

void control_end_dm(struct context *context, struct dm *dm)
{
	if (!dm->root) {
		context->device->dm_bytes -= dm->length_bytes;
		free(dm->bytes);
	}
	object_end(context, KIND_DM, dm->slot, dm);
}

int control_free_dm(struct ibv_dm *ibv)
{
	struct context *context = context_of(ibv->context);
	bool locked = world_lock(context->world);
	struct dm *dm = dm_of(ibv);
	struct dm *root = dm ? dm->root : NULL;
	int err = 0;

	if (!dm)
		err = say(EINVAL, "free_dm: no such DM");
	else if ((root ? root : dm)->users)
		err = say(EBUSY, "free_dm: DM %u: %u MRs are of it", ibv->handle,
			  (root ? root : dm)->users);
	else
		control_end_dm(context, dm);
	if (!err && root)
		control_end_dm(context_of(root->ibv.context), root);
	world_unlock(context->world, locked);
	return err;
}

void control_fill_dm(struct dm *dm, struct ibv_context *context, uint32_t handle)
{
	dm->ibv = (struct ibv_dm){
		.context = context,
		.memcpy_to_dm = copy_to,
		.memcpy_from_dm = copy_from,
		.handle = handle,
	};
}

struct ibv_mr *control_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *ibv, uint64_t dm_offset,
				 size_t length, unsigned int access)
{
	struct vb_sim *world = context_of(pd->context)->world;
	bool locked = world_lock(world);
	struct dm *dm = ibv->context == pd->context ? dm_of(ibv) : NULL;
	struct mr *mr = NULL;

	if (!dm || !(access & IBV_ACCESS_ZERO_BASED) || !inside(dm, dm_offset, length)) {
		say_null(EINVAL, "reg_dm_mr: no such DM, outside of it, or not ZERO_BASED");
	} else {
		const struct sim_mr_init init = {
			.addr = dm->bytes + dm_offset,
			.length = length,
			.access = (int)access,
			.trusted = true,
		};

		mr = control_new_mr_locked(pd, &init, "reg_dm_mr");
	}
	if (mr) {
		mr->ibv.addr = NULL; /* the program cannot see it */
		mr->dm = dm->root ? dm->root : dm;
		mr->dm->users++;
	}
	world_unlock(world, locked);
	return mr ? &mr->ibv : NULL;
}
