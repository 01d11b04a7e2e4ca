/* SPDX-License-Identifier: MIT */
/*
 * A context's numbers for its objects of one kind. A verb asks whether the object it was given is
 * the one that its number leads to.
 */
#ifndef BACKENDS_SIM_OBJECT_HANDLES_H
#define BACKENDS_SIM_OBJECT_HANDLES_H

#include <stdbool.h>
#include <stdint.h>

struct handles {
	void **slots; /* an object, or the next free number, marked by its lowest bit */
	uint32_t count;
	uint32_t capacity;
	uint32_t free_head; /* INT32_MAX for none */
	uint32_t live;
};

void handles_init(struct handles *handles);
void handles_end(struct handles *handles);

/* 0 or ENOMEM. */
int handles_add(struct handles *handles, void *object, uint32_t *handle);
void handles_remove(struct handles *handles, uint32_t handle);

static inline bool handles_has(const struct handles *handles, uint32_t handle, const void *object)
{
	return handle < handles->count && handles->slots[handle] == object;
}

/* The live object of a handle; NULL for none. */
void *handles_at(const struct handles *handles, uint32_t handle);

/* Every live object in turn; start with *handle = 0; NULL at the end. */
void *handles_next(const struct handles *handles, uint32_t *handle);

#endif
