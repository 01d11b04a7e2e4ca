/* SPDX-License-Identifier: MIT */
/*
 * A table of numbers for objects. A verb that gets a pointer and a number checks that the number
 * leads to the pointer: a stale or foreign pointer is an error, not a crash.
 */
#ifndef BACKENDS_SIM_BASE_HANDLES_H
#define BACKENDS_SIM_BASE_HANDLES_H

#include <stdbool.h>
#include <stdint.h>

struct handles {
	void **slots; /* an object, or the next free number, marked by the lowest bit */
	uint32_t count;
	uint32_t capacity;
	uint32_t free_head; /* the first free number; INT32_MAX for none */
	uint32_t live;	    /* counts the objects in the table */
};

void handles_init(struct handles *handles);
void handles_end(struct handles *handles);

/* Adds an object and sets *handle to its number. 0 or ENOMEM. */
int handles_add(struct handles *handles, void *object, uint32_t *handle);
void handles_remove(struct handles *handles, uint32_t handle);

/* Returns true if the number leads to the object. */
static inline bool handles_has(const struct handles *handles, uint32_t handle, const void *object)
{
	return handle < handles->count && handles->slots[handle] == object;
}

/* Returns the object of a number; NULL for none. */
void *handles_at(const struct handles *handles, uint32_t handle);

/*
 * Returns the next object: start with *handle = 0; NULL ends. Between two calls, the object that
 * was returned last may be removed; its number is *handle - 1.
 */
void *handles_next(const struct handles *handles, uint32_t *handle);

#endif
