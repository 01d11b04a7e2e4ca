/* SPDX-License-Identifier: MIT */
/* The connection manager of a world: its beginning and end. */
#include "backends/sim/cm/private.h"
#include "backends/sim/world/process.h"

#include <stdlib.h>

/* Linux net/ipv4/af_inet.c, ip_local_ports: the first of the ports for programs that ask for any port. On
 * the real clock the first port is random, so that processes seldom try the same one. */
#define FIRST_PORT  32768
#define FIRST_PORTS 28232

/* Real clock: how long a request waits for its listener, whose process may wait for a processor meanwhile. */
#define PATIENCE_NS UINT64_C(100000000)

/* Real clock: how long a program may take to poll completions before it learns that the peer has
 * disconnected. */
#define ENDING_PATIENCE_NS UINT64_C(50000000)

static void wake(void *arg)
{
	const struct cm *cm = arg;

	for (const struct cm_channel *channel = cm->first_channel; channel; channel = channel->next)
		event_queue_wake(&channel->queue);
}

/* Only the connection manager uses the context, but the program may have left objects in it. */
static void close_devices(struct cm *cm)
{
	for (unsigned int i = 0; i < cm->world->device_count; i++) {
		struct ibv_context *context = cm->devices[i].context;

		if (context && context_live(context_of(context)))
			verb_close_device(context);
	}
}

/* Called by vb_sim_reset(): frees the identifiers and channels that are left. */
static void end(void *arg)
{
	struct cm *cm = arg;
	struct cm_id *id;

	close_devices(cm);
	while ((id = cm->first_id))
		cm_id_end(id);
	while (cm->first_channel)
		cm_channel_end(cm->first_channel);
	if (cm->started)
		driver_stop(&cm->world->driver);
	sim_clock_release(&cm_engine(cm)->clock, &cm->ending_look);
	pool_end(&cm->ids);
	pool_end(&cm->channels);
	pool_end(&cm->events);
	pool_end(&cm->groups);
	cm->world->cm = (struct world_cm){.arg = NULL};
	free(cm->devices);
	free(cm);
}

static struct cm *new_cm(struct vb_sim *world)
{
	struct cm *cm = calloc(1, sizeof(*cm));

	if (!cm)
		return NULL;
	cm->devices = calloc(world->device_count, sizeof(*cm->devices));
	if (!cm->devices || sim_clock_reserve(&world->driver.engine->clock)) {
		free(cm->devices);
		free(cm);
		return NULL;
	}
	cm->world = world;
	cm_ending_init(cm);
	for (unsigned int i = 0; i < world->device_count; i++)
		cm->devices[i].device = &world->devices[i];
	pool_init(&cm->ids, sizeof(struct cm_id));
	pool_init(&cm->channels, sizeof(struct cm_channel));
	pool_init(&cm->events, sizeof(struct cm_event));
	pool_init(&cm->groups, sizeof(struct cm_group));
	return cm;
}

/* Makes the connection manager of a world. NULL with errno and a sentence. */
static struct cm *make(struct vb_sim *world, const char *call)
{
	struct cm *cm = new_cm(world);
	const struct sim_cm_owner owner = {.arg = cm, .event = cm_event_heard};
	int err;

	if (!cm)
		return null_errno(refuse_plainly(call, VB_WHY_NO_MEMORY));
	err = sim_cm_start(world->driver.engine, &owner);
	if (err) {
		sim_clock_release(&world->driver.engine->clock, &cm->ending_look);
		free(cm->devices);
		free(cm);
		return null_errno(say_refused(world, call, err));
	}
	sim_cm_set_patience(world->driver.engine, world->driver.real ? PATIENCE_NS : 0);
	cm->ending_patience_ns = world->driver.real ? ENDING_PATIENCE_NS : 0;
	cm->random = sim_random(world->driver.engine);
	cm->next_port =
		(uint16_t)(FIRST_PORT + (world->driver.real ? cm->random % FIRST_PORTS : 0));
	world->cm =
		(struct world_cm){.arg = cm, .event = cm_event_of_device, .wake = wake, .end = end};
	return cm;
}

/* Drops the devices that the parent of a fork() has opened. */
static void leave_parent(struct cm *cm)
{
	for (unsigned int i = 0; i < cm->world->device_count; i++)
		cm->devices[i] = (struct cm_device){.device = &cm->world->devices[i]};
	cm->started = false;
}

/* Real clock: the progress thread runs while there may be messages, even if no device is open. */
static int start(struct cm *cm, const char *call)
{
	struct vb_sim *world = cm->world;
	int err;

	if (world->inherited)
		leave_parent(cm);
	if (cm->started)
		return 0;
	err = world_resume_wires(world);
	if (err)
		return err;
	err = driver_start(&world->driver);
	if (err)
		return refuse_system(call, err, "making the thread of the real clock");
	world->inherited = false;
	cm->started = true;
	return 0;
}

/* Takes the lock even if the process has one thread: this call may start a second one. */
struct cm *cm_default(const char *call)
{
	struct vb_sim *world = process_default();
	struct cm *cm;

	if (!world)
		return NULL;
	pthread_mutex_lock(&world->driver.mutex);
	cm = world->cm.arg ? world->cm.arg : make(world, call);
	if (cm && start(cm, call))
		cm = NULL;
	pthread_mutex_unlock(&world->driver.mutex);
	return cm;
}
