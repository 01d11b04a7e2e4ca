/* SPDX-License-Identifier: MIT */
/*
 * The backends of the process. A slot holds a copy of a backend's table, with stubs for the verbs
 * that the backend does not have. The rest of src/ knows a backend by the address of its slot,
 * which never changes.
 */
#ifndef SRC_VERBS_REGISTRY_H
#define SRC_VERBS_REGISTRY_H

#include <verbena/backend.h>

/* The environment variable that names the default backend, and the default without it. */
#define REGISTRY_VARIABLE "VERBENA_BACKEND"
#define REGISTRY_DEFAULT  "sim"

/* The number of slots of vb_backend_add(): two backends are built in, and tests add a few. */
#define REGISTRY_MAX 16

/*
 * Returns the slot of a name (NULL or "": the default backend), or NULL. Does not change errno. Only
 * a layer that stacks on the backend writes to the slot: see vb_backend_slot().
 */
struct vb_backend *registry_find(const char *name);

/*
 * Calls dress(slot) for each slot, for the stubs, and for each slot that is added later, before
 * anybody finds it. NULL ends that.
 */
void registry_dress(void (*dress)(struct vb_backend *slot));

/* Returns the name that registry_find(@name) looks for. */
const char *registry_resolve(const char *name);

/* Returns slot number @index, counted from 0, or NULL past the last. */
const struct vb_backend *registry_at(unsigned int index);

#endif /* SRC_VERBS_REGISTRY_H */
