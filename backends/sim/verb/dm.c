/* SPDX-License-Identifier: MIT */
/* Device memory (ibv_alloc_dm(3)): memory of this process that the program cannot see. */
#include "backends/sim/guard/guard.h"
#include "backends/sim/verb/verbs.h"

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

/* The errors are those of rdma-core providers/mlx5/verbs.c, mlx5_access_dm. */
static int copy(struct ibv_dm *ibv, uint64_t offset, void *host, size_t length_bytes, bool to_dm)
{
	HOLD hold = context_hold(ibv->context);
	struct dm *dm = dm_of(ibv);
	const bool fits = dm && offset % COPY_ALIGN == 0 && length_bytes % COPY_ALIGN == 0 &&
			  inside(dm, offset, length_bytes);
	void *to, *from;

	if (fits) {
		to = to_dm ? dm->bytes + offset : host;
		from = to_dm ? host : dm->bytes + offset;
		if (guard_copy(to, from, length_bytes) == 0)
			return 0;
	}
	return say(dm ? EFAULT : ENOENT,
		   "memcpy_%s_dm: no such DM, or not whole words of 4 bytes in it",
		   to_dm ? "to" : "from");
}

static int copy_to(struct ibv_dm *ibv, uint64_t dm_offset, const void *host_addr, size_t length)
{
	return copy(ibv, dm_offset, (void *)host_addr, length, true);
}

static int copy_from(void *host_addr, struct ibv_dm *ibv, uint64_t dm_offset, size_t length)
{
	return copy(ibv, dm_offset, host_addr, length, false);
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

void verb_fill_dm(struct dm *dm, uint32_t handle)
{
	dm->ibv.memcpy_to_dm = copy_to;
	dm->ibv.memcpy_from_dm = copy_from;
	dm->ibv.handle = handle;
}

struct ibv_dm *verb_alloc_dm(struct ibv_context *ibv, struct ibv_alloc_dm_attr *attr)
{
	HOLD hold = context_hold(ibv);
	struct context *context = context_of(ibv);
	struct device *device = context->device;
	struct dm *dm;

	guard_install();
	if (verb_lacks(context, SIM_LACKS_DEVICE_MEMORY, "alloc_dm"))
		return NULL;
	if (!context_live(context) || attr->comp_mask || !attr->length ||
	    attr->log_align_req > LOG_ALIGN_MAX)
		return say_null(EINVAL,
				"alloc_dm: cannot be %zu bytes with alignment 2^%u, comp_mask 0x%x",
				attr->length, attr->log_align_req, attr->comp_mask);
	if (attr->length > DEVICE_MEMORY_BYTES - device->dm_bytes)
		return say_null(ENOMEM, "alloc_dm: %s has %llu bytes left", device->ibv.name,
				(unsigned long long)(DEVICE_MEMORY_BYTES - device->dm_bytes));
	dm = object_new(context, KIND_DM, "alloc_dm");
	if (!dm)
		return NULL;
	dm->bytes = take_bytes(attr->length, attr->log_align_req);
	if (!dm->bytes) {
		object_end(KIND_DM, dm);
		return say_null(ENOMEM, "alloc_dm: out of memory");
	}
	dm->length_bytes = attr->length;
	verb_fill_dm(dm, dm->slot);
	device->dm_bytes += attr->length;
	return &dm->ibv;
}

void verb_end_dm(void *object)
{
	struct dm *dm = object;

	if (!dm->root) {
		object_context(dm)->device->dm_bytes -= dm->length_bytes;
		free(dm->bytes);
	}
	object_end(KIND_DM, dm);
}

/* With an import, its root ends as well. */
int verb_free_dm(struct ibv_dm *ibv)
{
	HOLD hold = context_hold(ibv->context);
	struct dm *dm = dm_of(ibv), *root;

	if (!dm)
		return say(ENOENT, "free_dm: no such DM");
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
	struct dm *dm = dm_in(pd->context, ibv);
	struct sim_mr_init init = {.length = length, .access = (int)access, .trusted = true};
	struct mr *mr;

	if (!dm)
		return say_null(object_missing(pd->context, ibv), "reg_dm_mr: no such DM");
	if (!(access & IBV_ACCESS_ZERO_BASED) || !inside(dm, dm_offset, length))
		return say_null(EINVAL, "reg_dm_mr: a range outside the DM, or no ZERO_BASED");
	init.addr = dm->bytes + dm_offset;
	mr = verb_new_mr(pd, &init, "reg_dm_mr");
	if (!mr)
		return NULL;
	mr->ibv.addr = NULL; /* the program cannot see it */
	mr->dm = dm->root ? dm->root : dm;
	mr->dm->users++;
	return &mr->ibv;
}
