/* SPDX-License-Identifier: MIT */
#include "backends/sim/base/handles.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#define NO_HANDLE INT32_MAX /* one bit is for the mark */

static void *free_mark(uint32_t next)
{
	return (void *)((uintptr_t)next << 1 | 1);
}

static bool is_free(const void *slot)
{
	return (uintptr_t)slot & 1;
}

void handles_init(struct handles *handles)
{
	*handles = (struct handles){.free_head = NO_HANDLE};
}

void handles_end(struct handles *handles)
{
	free(handles->slots);
	handles_init(handles);
}

int handles_add(struct handles *handles, void *object, uint32_t *handle)
{
	if (handles->free_head != NO_HANDLE) {
		*handle = handles->free_head;
		handles->free_head = (uint32_t)((uintptr_t)handles->slots[*handle] >> 1);
	} else {
		if (handles->count == handles->capacity) {
			uint32_t capacity = handles->capacity ? handles->capacity * 2 : 8;
			void **slots = realloc(handles->slots, capacity * sizeof(*slots));

			if (!slots)
				return ENOMEM;
			handles->slots = slots;
			handles->capacity = capacity;
		}
		*handle = handles->count++;
	}
	handles->slots[*handle] = object;
	handles->live++;
	return 0;
}

void handles_remove(struct handles *handles, uint32_t handle)
{
	handles->slots[handle] = free_mark(handles->free_head);
	handles->free_head = handle;
	handles->live--;
}

void *handles_at(const struct handles *handles, uint32_t handle)
{
	if (handle >= handles->count || is_free(handles->slots[handle]))
		return NULL;
	return handles->slots[handle];
}

void *handles_next(const struct handles *handles, uint32_t *handle)
{
	while (*handle < handles->count) {
		void *slot = handles->slots[(*handle)++];

		if (!is_free(slot))
			return slot;
	}
	return NULL;
}
