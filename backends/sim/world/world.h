/* SPDX-License-Identifier: MIT */
/*
 * A simulated world in this process: the engine's, its devices as libibverbs sees them, its lock.
 */
#ifndef BACKENDS_SIM_WORLD_WORLD_H
#define BACKENDS_SIM_WORLD_WORLD_H

#include "backends/sim/clock/driver.h"
#include "backends/sim/object/objects.h"
#include "backends/sim/object/pool.h"

#include <pthread.h>
#include <sys/single_threaded.h>
#include <verbena/sim.h>

struct pcapfile;

struct vb_sim {
	pthread_mutex_t mutex;
	struct sim_engine *engine;
	struct driver driver;
	struct device *devices;
	unsigned int device_count;
	struct pool pools[KINDS];
	struct handles contexts;
	uint32_t live[KINDS];
	uint32_t last_pd;
	struct domain *domains; /* of XRC */
	unsigned int lists;	/* device lists that are not freed yet */
	bool retired;		/* replaced: it lasts as long as its lists */
	struct pcapfile *trace;
	vb_sim_frame_fn *watch;
	void *watch_arg;
	struct vb_sim *next; /* of all worlds (fork.c) */
};

/*
 * Takes the lock, unless no other thread exists (glibc's word for it): then nobody can come in
 * between, and the two atomic operations are spared. The answer is for world_unlock().
 *
 * On the real clock, whose world has a thread, what the caller does happens now: not at the time at
 * which the world was last looked at.
 */
static inline bool world_lock(struct vb_sim *world)
{
	if (__libc_single_threaded)
		return false;
	pthread_mutex_lock(&world->mutex);
	if (world->driver.real)
		driver_catch_up(world);
	return true;
}

static inline void world_unlock(struct vb_sim *world, bool locked)
{
	if (locked)
		pthread_mutex_unlock(&world->mutex);
}

/* Stands in the private operations of our devices, and in nobody else's. */
struct ibv_context *world_device_mark(struct ibv_device *device, int cmd_fd);

/* NULL with errno and a sentence. config NULL: the defaults. */
struct vb_sim *world_create(const struct vb_sim_config *config);

/* Ends a world without open devices; one whose lists are still out ends with them. */
void world_retire(struct vb_sim *world);

/* What is not of one world: held while fork() copies the process. */
void world_lock_tables(void);
void world_unlock_tables(void);

/* As vb_sim_set_default(). */
void world_set_default(vb_sim_default_fn *fn);

/* The default world, made if need be; NULL with errno. */
struct vb_sim *world_default(void);

/* The world that a public function means; NULL stands for the default one. */
struct vb_sim *world_or_default(struct vb_sim *sim);

/* Makes the default world anew. 0 or errno. */
int world_replace_default(const struct vb_sim_config *config);

/* As ibv_get_device_list() and ibv_free_device_list(). */
struct ibv_device **world_list(struct vb_sim *world, int *num_devices);
void world_free_list(struct ibv_device **list);

/* Whether it is a list of any world's devices that is not freed; the pointer is not followed. */
bool world_owns_list(struct ibv_device *const *list);

/* The trace file and the watcher. */
int world_trace_open(struct vb_sim *world, const char *path);
int world_trace_close(struct vb_sim *world);
void world_watch(struct vb_sim *world, vb_sim_frame_fn *fn, void *arg);

#endif
