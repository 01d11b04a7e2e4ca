/* SPDX-License-Identifier: MIT */
/*
 * The real libibverbs, loaded with dlopen at first use.
 *
 * VERBENA_LIBIBVERBS names another file than libibverbs.so.1; it is read once, at first use. Where
 * the library cannot be loaded, get_device_list answers NULL with ENOSYS, as libibverbs itself does
 * without the kernel's support, and last_error says what is missing.
 */
#ifndef BACKENDS_IBVERBS_BACKEND_H
#define BACKENDS_IBVERBS_BACKEND_H

#include <verbena/backend.h>

extern const struct vb_backend vb_backend_ibverbs;

#endif /* BACKENDS_IBVERBS_BACKEND_H */
