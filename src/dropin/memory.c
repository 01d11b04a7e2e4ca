/* SPDX-License-Identifier: MIT */
#include "src/dropin/dropin.h"

#include <verbena/verbs.h>

struct ibv_pd *dropin_alloc_pd(struct ibv_context *context)
{
	return vb_alloc_pd(context);
}

int dropin_dealloc_pd(struct ibv_pd *pd)
{
	return vb_dealloc_pd(pd);
}

struct ibv_pd *dropin_import_pd(struct ibv_context *context, uint32_t pd_handle)
{
	return vb_import_pd(context, pd_handle);
}

void dropin_unimport_pd(struct ibv_pd *pd)
{
	vb_unimport_pd(pd);
}

struct ibv_mr *dropin_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	return vb_reg_mr(pd, addr, length, access);
}

struct ibv_mr *dropin_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				  int access)
{
	return vb_reg_mr_iova(pd, addr, length, iova, access);
}

struct ibv_mr *dropin_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				   unsigned int access)
{
	return vb_reg_mr_iova2(pd, addr, length, iova, access);
}

struct ibv_mr *dropin_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length,
				    uint64_t iova, int fd, int access)
{
	return vb_reg_dmabuf_mr(pd, offset, length, iova, fd, access);
}

int dropin_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length,
		    int access)
{
	return vb_rereg_mr(mr, flags, pd, addr, length, access);
}

int dropin_dereg_mr(struct ibv_mr *mr)
{
	return vb_dereg_mr(mr);
}

struct ibv_mr *dropin_import_mr(struct ibv_pd *pd, uint32_t mr_handle)
{
	return vb_import_mr(pd, mr_handle);
}

void dropin_unimport_mr(struct ibv_mr *mr)
{
	vb_unimport_mr(mr);
}

struct ibv_dm *dropin_import_dm(struct ibv_context *context, uint32_t dm_handle)
{
	return vb_import_dm(context, dm_handle);
}

void dropin_unimport_dm(struct ibv_dm *dm)
{
	vb_unimport_dm(dm);
}
