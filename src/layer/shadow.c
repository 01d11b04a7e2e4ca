/* SPDX-License-Identifier: MIT */
#include "src/layer/shadow.h"

static atomic_bool lost_sight;

void shadow_lose_sight(void)
{
	atomic_store(&lost_sight, true);
}

void shadow_regain_sight(void)
{
	atomic_store(&lost_sight, false);
}

bool layer_lost_sight(void)
{
	return atomic_load(&lost_sight);
}

void shadow_begin(struct layer_entry *entry, struct shadow *shadow)
{
	atomic_store_explicit(&entry->shadow, shadow, memory_order_release);
	shadow->act(entry, shadow, SHADOW_PUT);
}

static void act(struct layer_entry *entry, enum shadow_act what)
{
	struct shadow *shadow = atomic_load(&entry->shadow);

	if (shadow)
		shadow->act(entry, shadow, what);
}

void shadow_hide(struct layer_entry *entry)
{
	act(entry, SHADOW_HIDE);
}

void shadow_show(struct layer_entry *entry)
{
	act(entry, SHADOW_SHOW);
}

void shadow_drop(struct layer_entry *entry)
{
	struct shadow *shadow = atomic_exchange(&entry->shadow, NULL);

	if (shadow)
		shadow->end(shadow);
}

struct shadow *shadow_find(const void *object, enum layer_kind kind)
{
	struct layer_entry *entry = table_find(object, kind);

	return entry ? atomic_load_explicit(&entry->shadow, memory_order_acquire) : NULL;
}
