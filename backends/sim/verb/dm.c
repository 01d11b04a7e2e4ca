/* SPDX-License-Identifier: MIT */
/* Device memory (ibv_alloc_dm(3)): memory of this process that the program cannot see. */
#include "backends/sim/guard/distant.h"
#include "backends/sim/verb/verbs.h"
#include "src/guard/guard.h"

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
static int check_copy(const char *verb, struct ibv_dm *ibv, uint64_t offset, size_t length_bytes)
{
	const struct dm *dm = dm_of(ibv);

	if (!dm)
		return refuse_gone(verb, KIND_DM, ibv);
	if (offset % COPY_ALIGN || length_bytes % COPY_ALIGN)
		return refuse_why(verb,
				  (struct vb_why){VB_WHY_DM_COPY_ALIGNMENT,
						  {ibv->handle, offset, length_bytes, COPY_ALIGN}});
	if (!inside(dm, offset, length_bytes))
		return refuse_why(verb, (struct vb_why){VB_WHY_DM_COPY_RANGE,
							{ibv->handle, length_bytes, offset,
							 dm->length_bytes}});
	return 0;
}

static int copy(struct ibv_dm *ibv, uint64_t offset, void *host, size_t length_bytes, bool to_dm)
{
	HOLD hold = context_hold(ibv->context);
	const char *verb = to_dm ? "memcpy_to_dm" : "memcpy_from_dm";
	const struct dm *dm = (struct dm *)ibv;
	int err = check_copy(verb, ibv, offset, length_bytes);

	if (err)
		return err;
	if (to_dm ? distant_copy(dm->bytes + offset, host, length_bytes)
		  : distant_copy(host, dm->bytes + offset, length_bytes))
		return refuse_why(verb, (struct vb_why){VB_WHY_DM_COPY_HOST,
							{length_bytes, (uintptr_t)host},
							.text = to_dm ? "read" : "written"});
	return 0;
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

#define ALLOC "alloc_dm"

static int check_attr(const struct context *context, const struct ibv_alloc_dm_attr *attr)
{
	const uint64_t left = DEVICE_MEMORY_BYTES - context->device->dm_bytes;
	int err = verb_lacks(context, SIM_LACKS_DEVICE_MEMORY, ALLOC);

	if (err)
		return err;
	if (!context_live(context))
		return refuse_plainly(ALLOC, VB_WHY_CONTEXT_CLOSED);
	if (attr->comp_mask)
		return refuse_comp_mask(ALLOC, attr->comp_mask);
	if (!attr->length)
		return refuse_plainly(ALLOC, VB_WHY_DM_EMPTY);
	if (attr->log_align_req > LOG_ALIGN_MAX)
		return refuse_why(ALLOC, (struct vb_why){VB_WHY_DM_ALIGNMENT,
							 {attr->log_align_req, LOG_ALIGN_MAX}});
	if (attr->length > left)
		return refuse_why(
			ALLOC,
			(struct vb_why){VB_WHY_DM_FULL, {attr->length, left, DEVICE_MEMORY_BYTES}});
	return 0;
}

struct ibv_dm *verb_alloc_dm(struct ibv_context *ibv, struct ibv_alloc_dm_attr *attr)
{
	HOLD hold = context_hold(ibv);
	struct context *context = context_of(ibv);
	struct dm *dm;
	int err;

	guard_install();
	err = check_attr(context, attr);
	if (err)
		return null_errno(err);
	dm = object_new(context, KIND_DM, ALLOC);
	if (!dm)
		return NULL;
	dm->bytes = take_bytes(attr->length, attr->log_align_req);
	if (!dm->bytes) {
		object_end(KIND_DM, dm);
		return null_errno(refuse_plainly(ALLOC, VB_WHY_NO_MEMORY));
	}
	dm->length_bytes = attr->length;
	verb_fill_dm(dm, dm->slot);
	object_describe(KIND_DM, dm,
			&(struct described){.addr = (uintptr_t)dm->bytes, .length = attr->length});
	context->device->dm_bytes += attr->length;
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
		return refuse_gone("free_dm", KIND_DM, ibv);
	root = dm->root ? dm->root : dm;
	if (root->users)
		return refuse_busy("free_dm", VB_WHY_DM_BUSY, ibv->handle, KIND_DM, dm);
	if (object_is_foreign(KIND_DM, dm))
		return verb_destroy_foreign("free_dm", KIND_DM, dm);
	if (dm != root)
		verb_end_dm(dm);
	verb_end_dm(root);
	return 0;
}

#define REGISTER "reg_dm_mr"

struct ibv_mr *verb_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *ibv, uint64_t dm_offset,
			      size_t length, unsigned int access)
{
	HOLD hold = context_hold(pd->context);
	struct dm *dm = dm_in(pd->context, ibv);
	struct sim_mr_init init = {.length = length, .access = (int)access, .trusted = true};
	struct mr *mr;

	if (!dm)
		return null_errno(refuse_missing(REGISTER, KIND_DM, pd->context, ibv));
	if (!(access & IBV_ACCESS_ZERO_BASED))
		return null_errno(refuse_plainly(REGISTER, VB_WHY_DM_MR_ZERO_BASED));
	if (!inside(dm, dm_offset, length))
		return null_errno(refuse_why(
			REGISTER,
			(struct vb_why){VB_WHY_DM_MR_RANGE,
					{ibv->handle, length, dm_offset, dm->length_bytes}}));
	init.addr = dm->bytes + dm_offset;
	mr = verb_new_mr(pd, &init, REGISTER);
	if (!mr)
		return NULL;
	mr->ibv.addr = NULL; /* the program cannot see it */
	mr->dm = dm->root ? dm->root : dm;
	mr->dm->users++;
	return &mr->ibv;
}
