/* SPDX-License-Identifier: MIT */
#include "src/layer/slots.h"

#include "src/verbs/objects.h"
#include "src/verbs/registry.h"
#include "src/verbs/stubs.h"

#include <stdatomic.h>

/* A row for each slot that has ever had wrappers, and for the stubs. A row stays: a thread that has
 * read a wrapper from a slot may call it later. */
static struct {
	struct vb_backend *slot;
	struct vb_backend original;
} rows[REGISTRY_MAX + 1];
static atomic_uint row_count; /* the registry's lock is held while it changes */

/* Returns the number of the row, or row_count. */
static unsigned int find(const struct vb_backend *slot)
{
	unsigned int count = atomic_load_explicit(&row_count, memory_order_acquire), i = 0;

	while (i < count && rows[i].slot != slot)
		i++;
	return i;
}

static void dress(struct vb_backend *slot)
{
	unsigned int i = find(slot);

	if (i == atomic_load(&row_count)) {
		rows[i].slot = slot;
		rows[i].original = *slot;
		atomic_store_explicit(&row_count, i + 1, memory_order_release);
	}
	wrap_put(slot, &rows[i].original, i);
}

void slots_dress(void)
{
	registry_dress(dress);
}

void slots_undress(void)
{
	registry_dress(NULL);
	for (unsigned int i = 0; i < atomic_load(&row_count); i++)
		wrap_take_out(rows[i].slot, &rows[i].original, i);
}

const struct vb_backend *slots_original(const struct vb_backend *slot)
{
	unsigned int i = find(slot ? slot : &stubs);

	return i < atomic_load(&row_count) ? &rows[i].original : &stubs;
}

const struct vb_backend *slots_at(unsigned int number)
{
	return &rows[number].original;
}

const struct vb_backend *slots_context_original(const struct ibv_context *context)
{
	return slots_original(context ? objects_context_slot(context) : NULL);
}
