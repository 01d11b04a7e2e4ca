/* SPDX-License-Identifier: MIT */
#include "src/verbs/registry.h"

#include "backends/ibverbs/backend.h"
#include "backends/sim/backend.h"
#include "src/base/count.h"
#include "src/verbs/dispatch.h"
#include "src/verbs/stubs.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static const struct vb_backend *const built_in[] = {
	&vb_backend_sim,
	&vb_backend_ibverbs,
};

static struct vb_backend slots[REGISTRY_MAX];
static atomic_uint slot_count; /* the slots below it are complete; only layers change them */
static pthread_mutex_t add_lock = PTHREAD_MUTEX_INITIALIZER;
static void (*dresser)(struct vb_backend *slot); /* under add_lock */
static pthread_once_t built_in_once = PTHREAD_ONCE_INIT;

static struct vb_backend *find_added(const char *name)
{
	unsigned int count = atomic_load(&slot_count);

	for (unsigned int i = 0; i < count; i++)
		if (!strcmp(slots[i].name, name))
			return &slots[i];
	return NULL;
}

static int add(const struct vb_backend *backend)
{
	unsigned int count;
	int err = 0;

	if (!backend->name || !*backend->name)
		return EINVAL;

	pthread_mutex_lock(&add_lock);
	count = atomic_load(&slot_count);
	if (find_added(backend->name)) {
		err = EEXIST;
	} else if (count == REGISTRY_MAX) {
		err = ENOSPC;
	} else {
		slots[count] = *backend;
		stubs_fill(&slots[count]);
		if (dresser)
			dresser(&slots[count]);
		if (backend->listen)
			backend->listen(dispatch_heard);
		atomic_store(&slot_count, count + 1);
	}
	pthread_mutex_unlock(&add_lock);
	return err;
}

static void add_built_in(void)
{
	for (size_t i = 0; i < COUNT(built_in); i++)
		add(built_in[i]);
}

/* Before main(): functions that are no verbs, as those of <verbena/sim.h>, may fail first. */
__attribute__((constructor)) static void begin(void)
{
	pthread_once(&built_in_once, add_built_in);
}

int vb_backend_add(const struct vb_backend *backend)
{
	pthread_once(&built_in_once, add_built_in);
	return add(backend);
}

void registry_dress(void (*dress)(struct vb_backend *slot))
{
	pthread_once(&built_in_once, add_built_in);
	pthread_mutex_lock(&add_lock);
	dresser = dress;
	for (unsigned int i = 0; dress && i < atomic_load(&slot_count); i++)
		dress(&slots[i]);
	if (dress)
		dress(&stubs);
	pthread_mutex_unlock(&add_lock);
}

const char *registry_resolve(const char *name)
{
	if (name && *name)
		return name;
	name = getenv(REGISTRY_VARIABLE);
	return name && *name ? name : REGISTRY_DEFAULT;
}

struct vb_backend *registry_find(const char *name)
{
	pthread_once(&built_in_once, add_built_in);
	return find_added(registry_resolve(name));
}

const struct vb_backend *registry_at(unsigned int index)
{
	pthread_once(&built_in_once, add_built_in);
	return index < atomic_load(&slot_count) ? &slots[index] : NULL;
}
