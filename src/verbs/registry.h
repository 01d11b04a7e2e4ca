/* SPDX-License-Identifier: MIT */
/*
 * The backends of the process. Each has a slot with a copy of its table in which the verbs it does
 * not have are stubs; the rest of src/ knows backends by the address of their slot.
 */
#ifndef SRC_VERBS_REGISTRY_H
#define SRC_VERBS_REGISTRY_H

#include <verbena/backend.h>

/* The environment variable that names the default backend, and the one that holds without it. */
#define REGISTRY_VARIABLE "VERBENA_BACKEND"
#define REGISTRY_DEFAULT  "sim"

/* As many backends as can be: two are built in, and tests add a few. */
#define REGISTRY_MAX 16

/*
 * Adds a backend, for the life of the process; its strings must live as long. Returns 0, or EINVAL
 * (no name), EEXIST (the name is taken) or ENOSPC. Any thread.
 */
int registry_add(const struct vb_backend *backend);

/* The slot of a name (NULL or "": the default one), or NULL. It leaves errno alone. */
const struct vb_backend *registry_find(const char *name);

/* The same for a layer that stacks on the backend: see vb_backend_slot(). */
struct vb_backend *registry_slot(const char *name);

/* The name that registry_find() looks for when it is given @name. */
const char *registry_resolve(const char *name);

/* Slot number @index, or NULL past the last. They stay where they are. */
const struct vb_backend *registry_at(unsigned int index);

#endif /* SRC_VERBS_REGISTRY_H */
