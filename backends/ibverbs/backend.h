/* SPDX-License-Identifier: MIT */
/*
 * The real libibverbs, which the first use loads with dlopen(); rdmacm.h has the real librdmacm.
 *
 * The environment variable VERBENA_LIBIBVERBS names the file, if it is not libibverbs.so.1. If the
 * library cannot be loaded, get_device_list returns NULL with ENOSYS, like libibverbs on a kernel
 * without RDMA support, and last_why says what is missing.
 */
#ifndef BACKENDS_IBVERBS_BACKEND_H
#define BACKENDS_IBVERBS_BACKEND_H

#include <verbena/backend.h>

extern const struct vb_backend vb_backend_ibverbs;

#endif /* BACKENDS_IBVERBS_BACKEND_H */
