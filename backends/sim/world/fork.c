/* SPDX-License-Identifier: MIT */
#include "backends/sim/world/fork.h"

#include "backends/sim/guard/guard.h"
#include "backends/sim/world/world.h"

static pthread_mutex_t worlds_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct vb_sim *worlds;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* The order of locks everywhere: the tables of worlds, this list, a world, the guard. */
static void before(void)
{
	world_lock_tables();
	pthread_mutex_lock(&worlds_mutex);
	for (struct vb_sim *world = worlds; world; world = world->next)
		pthread_mutex_lock(&world->mutex);
	guard_lock();
}

static void after(void)
{
	guard_unlock();
	for (struct vb_sim *world = worlds; world; world = world->next)
		pthread_mutex_unlock(&world->mutex);
	pthread_mutex_unlock(&worlds_mutex);
	world_unlock_tables();
}

static void after_in_child(void)
{
	for (struct vb_sim *world = worlds; world; world = world->next)
		driver_forked(world);
	after();
}

static void install(void)
{
	pthread_atfork(before, after, after_in_child);
}

void fork_watch(struct vb_sim *world)
{
	pthread_once(&once, install);
	pthread_mutex_lock(&worlds_mutex);
	world->next = worlds;
	worlds = world;
	pthread_mutex_unlock(&worlds_mutex);
}

void fork_forget(struct vb_sim *world)
{
	struct vb_sim **link = &worlds;

	pthread_mutex_lock(&worlds_mutex);
	while (*link && *link != world)
		link = &(*link)->next;
	if (*link)
		*link = world->next;
	pthread_mutex_unlock(&worlds_mutex);
}
