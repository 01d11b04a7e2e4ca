/* SPDX-License-Identifier: MIT */
/*
 * The connection manager of the real librdmacm, which the first call loads with dlopen().
 *
 * The environment variable VERBENA_LIBRDMACM names the file, if it is not librdmacm.so.1. If the
 * library cannot be loaded, or the kernel has no connection manager, the calls that make the first
 * objects fail with ENOSYS, and load_last_why() says what is missing.
 */
#ifndef BACKENDS_IBVERBS_RDMACM_H
#define BACKENDS_IBVERBS_RDMACM_H

#include <verbena/cm_backend.h>

extern const struct vb_cm_backend rdmacm_backend;

#endif /* BACKENDS_IBVERBS_RDMACM_H */
