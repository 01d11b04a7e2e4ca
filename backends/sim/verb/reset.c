/* SPDX-License-Identifier: MIT */
/* vb_sim_reset(): the end of a world that is in use. */
#include "backends/sim/base/cancel.h"
#include "backends/sim/verb/verbs.h"
#include "backends/sim/world/process.h"

/* On the real clock, threads wait for events in read(2). */
static void wake_all_readers(void *arg)
{
	const struct vb_sim *world = arg;
	const struct context *context;
	const struct channel *channel;
	uint32_t at = 0;

	while ((context = handles_next(&world->store.contexts, &at))) {
		uint32_t channel_at = 0;

		event_queue_wake(&context->async);
		while ((channel = handles_next(&context->handles[KIND_CHANNEL], &channel_at)))
			event_queue_wake(&channel->events);
	}
	if (world->cm.wake)
		world->cm.wake(world->cm.arg);
}

/* Returns an open context of the world, or NULL. */
static struct context *first_context(struct vb_sim *world)
{
	HOLD hold = world_hold(world);
	uint32_t at = 0;

	return handles_next(&world->store.contexts, &at);
}

/* The lock is taken even if the process has one thread: see verb_open_device(). */
static void end_waits(struct vb_sim *world)
{
	pthread_mutex_lock(&world->driver.mutex);
	world->retired = true;
	world->kept = world->store.contexts.live || world->cm.live || world->driver.asleep;
	driver_end_waits(&world->driver, wake_all_readers, world);
	pthread_mutex_unlock(&world->driver.mutex);
}

void vb_sim_reset(void)
{
	struct vb_sim *world = process_take_default();
	struct context *context;
	int state;

	if (!world)
		return;
	/* The waits are short; a thread that is cancelled in one would leave half a world. */
	state = cancel_off();
	end_waits(world);
	while ((context = first_context(world)))
		verb_close_device(&context->verbs.context);
	process_retire(world);
	cancel_restore(state);
}
