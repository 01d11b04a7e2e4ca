/* SPDX-License-Identifier: MIT */
/* Device memory (ibv_alloc_dm(3)): memory of this process that the program cannot see. */
#include "backends/sim/base/say.h"
#include "backends/sim/guard/guard.h"
#include "backends/sim/verb/verbs.h"
#include "backends/sim/world/world.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LOG_ALIGN_MIN 6 /* a cache line */
#define LOG_ALIGN_MAX 20

/* Copies have whole words of 4 bytes, as on adapters with device memory. */
#define COPY_ALIGN 4

static bool inside(const struct dm *dm, uint64_t offset, size_t length_bytes)
{
	return offset <= dm->length_bytes && length_bytes <= dm->length_bytes - offset;
}

/*
 * Finds the bytes of a copy. EFAULT if the copy is not inside the DM, as rdma-core
 * providers/mlx5/verbs.c, mlx5_access_dm.
 */
static int find_bytes(struct ibv_dm *ibv, uint64_t offset, size_t length_bytes, uint8_t **bytes)
{
	struct dm *dm = dm_of(ibv);

	if (!dm)
		return EINVAL;
	if (offset % COPY_ALIGN || length_bytes % COPY_ALIGN || !inside(dm, offset, length_bytes))
		return EFAULT;
	*bytes = dm->bytes + offset;
	return 0;
}

static int copy_to(struct ibv_dm *ibv, uint64_t dm_offset, const void *host_addr, size_t length)
{
	HOLD hold = context_hold(ibv->context);
	uint8_t *bytes;
	int err = find_bytes(ibv, dm_offset, length, &bytes);

	if (!err && guard_copy(bytes, host_addr, length))
		err = EFAULT;
	return err ? say(err, "memcpy_to_dm: no such DM, or not whole words of 4 bytes in it") : 0;
}

static int copy_from(void *host_addr, struct ibv_dm *ibv, uint64_t dm_offset, size_t length)
{
	HOLD hold = context_hold(ibv->context);
	uint8_t *bytes;
	int err = find_bytes(ibv, dm_offset, length, &bytes);

	if (!err && guard_copy(host_addr, bytes, length))
		err = EFAULT;
	return err ? say(err, "memcpy_from_dm: no such DM, or not whole words of 4 bytes in it")
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

void verb_fill_dm(struct dm *dm, struct ibv_context *context, uint32_t handle)
{
	dm->ibv = (struct ibv_dm){
		.context = context,
		.memcpy_to_dm = copy_to,
		.memcpy_from_dm = copy_from,
		.handle = handle,
	};
}

struct ibv_dm *verb_alloc_dm(struct ibv_context *ibv, struct ibv_alloc_dm_attr *attr)
{
	HOLD hold = context_hold(ibv);
	struct context *context = context_of(ibv);
	struct device *device = context->device;
	struct dm *dm;
	uint32_t handle;

	guard_install();
	if (!context_live(context) || attr->comp_mask || !attr->length ||
	    attr->log_align_req > LOG_ALIGN_MAX)
		return say_null(EINVAL,
				"alloc_dm: cannot be %zu bytes with alignment 2^%u, comp_mask 0x%x",
				attr->length, attr->log_align_req, attr->comp_mask);
	if (attr->length > DEVICE_MEMORY_BYTES - device->dm_bytes)
		return say_null(ENOMEM, "alloc_dm: %s has %llu bytes left", device->ibv.name,
				(unsigned long long)(DEVICE_MEMORY_BYTES - device->dm_bytes));
	dm = object_new(context, KIND_DM, &handle, "alloc_dm");
	if (!dm)
		return NULL;
	dm->bytes = take_bytes(attr->length, attr->log_align_req);
	if (!dm->bytes) {
		object_end(context, KIND_DM, handle, dm);
		return say_null(ENOMEM, "alloc_dm: out of memory");
	}
	dm->length_bytes = attr->length;
	dm->slot = handle;
	verb_fill_dm(dm, ibv, handle);
	device->dm_bytes += attr->length;
	return &dm->ibv;
}

void verb_end_dm(struct dm *dm)
{
	struct context *context = context_of(dm->ibv.context);

	if (!dm->root) {
		context->device->dm_bytes -= dm->length_bytes;
		free(dm->bytes);
	}
	object_end(context, KIND_DM, dm->slot, dm);
}

/* With an import, its root ends as well. */
int verb_free_dm(struct ibv_dm *ibv)
{
	HOLD hold = context_hold(ibv->context);
	struct dm *dm = dm_of(ibv), *root;

	if (!dm)
		return say(EINVAL, "free_dm: no such DM");
	root = dm->root ? dm->root : dm;
	if (root->users)
		return say(EBUSY, "free_dm: DM %u: %u MRs cover it; deregister them first",
			   ibv->handle, root->users);
	if (dm != root)
		verb_end_dm(dm);
	verb_end_dm(root);
	return 0;
}

struct ibv_mr *verb_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *ibv, uint64_t dm_offset,
			      size_t length, unsigned int access)
{
	HOLD hold = context_hold(pd->context);
	struct dm *dm = ibv->context == pd->context ? dm_of(ibv) : NULL;
	struct sim_mr_init init = {.length = length, .access = (int)access, .trusted = true};
	struct mr *mr;

	if (!dm || !(access & IBV_ACCESS_ZERO_BASED) || !inside(dm, dm_offset, length))
		return say_null(EINVAL,
				"reg_dm_mr: no such DM, a range outside it, or no ZERO_BASED");
	init.addr = dm->bytes + dm_offset;
	mr = verb_new_mr(pd, &init, "reg_dm_mr");
	if (!mr)
		return NULL;
	mr->ibv.addr = NULL; /* the program cannot see it */
	mr->dm = dm->root ? dm->root : dm;
	mr->dm->users++;
	return &mr->ibv;
}
