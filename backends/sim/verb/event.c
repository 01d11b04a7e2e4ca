/* SPDX-License-Identifier: MIT */
/* Completion channels and asynchronous events. */
#include "backends/sim/verb/verbs.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* --- waiting --- */

static bool has_event(const void *queue)
{
	return ((const struct event_queue *)queue)->count > 0;
}

/*
 * Waits on the virtual clock. 0; EAGAIN if the program set O_NONBLOCK; EDEADLK if nothing can come.
 */
static int wait_virtual(struct driver *driver, const struct event_queue *queue)
{
	int err = 0;

	while (!queue->count && !err) {
		if (!event_queue_is_nonblocking(queue)) {
			err = driver_wait(driver, has_event, queue);
		} else {
			driver_step(driver, has_event, queue);
			err = driver->ended ? ENODEV : queue->count ? 0 : EAGAIN;
		}
	}
	return err;
}

static void gone(void *arg)
{
	struct driver *driver = arg;

	pthread_mutex_lock(&driver->mutex);
	driver_awake(driver);
	pthread_mutex_unlock(&driver->mutex);
}

/* Reads the descriptor's count. pthread_cancel() may end the thread here. 0 or errno. */
static int read_count(struct driver *driver, int fd)
{
	uint64_t one;
	int err;

	pthread_cleanup_push(gone, driver);
	err = read(fd, &one, sizeof(one)) < 0 ? errno : 0;
	pthread_cleanup_pop(0);
	return err;
}

/*
 * Waits on the real clock, in read(2) and without the lock. read(2) takes one from the descriptor's
 * count, and sets *counted. The queue may be empty then: the event's object has been destroyed.
 */
static int wait_real(struct hold *hold, const struct event_queue *queue, bool *counted)
{
	int err;

	driver_listen(&hold->world->driver);
	while (!queue->count) {
		struct vb_sim *world = hold->world;

		driver_asleep(&world->driver);
		world_release(hold);
		hold->locked = false;
		err = read_count(&world->driver, queue->fd);
		*hold = world_hold(world);
		driver_awake(&world->driver);
		if (world->driver.ended)
			return ENODEV;
		if (err)
			return err;
		*counted = queue->count > 0;
	}
	return 0;
}

int verb_next_event(struct hold *hold, struct event_queue *queue, struct queued_event *event)
{
	struct driver *driver = &hold->world->driver;
	bool counted = false;
	int err;

	driver_catch_up(driver);
	err = driver->real ? wait_real(hold, queue, &counted) : wait_virtual(driver, queue);
	if (err)
		return err;
	if (!counted)
		event_queue_take_count(queue);
	*event = event_queue_pop(queue);
	return 0;
}

int verb_refuse_event(const char *verb, int error, int fd, struct vb_why silence)
{
	static const struct {
		int error;
		enum vb_reason reason;
	} rows[] = {
		{EAGAIN, VB_WHY_NO_EVENT},
		{EINTR, VB_WHY_EVENT_INTERRUPTED},
		{EBADF, VB_WHY_EVENT_DESCRIPTOR},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].error == error)
			return refuse_why(verb, (struct vb_why){rows[i].reason, {(uint64_t)fd}});
	if (error == EDEADLK || error == ENODEV)
		return refuse_wait(verb, error, silence);
	return refuse_system(verb, error, "reading the descriptor of the events");
}

/* --- completion channels --- */

#define CREATE "create_comp_channel"

struct ibv_comp_channel *verb_create_comp_channel(struct ibv_context *ibv)
{
	HOLD hold = context_hold(ibv);
	struct context *context = context_of(ibv);
	struct channel *channel;
	int err;

	if (!context_live(context))
		return null_errno(refuse_plainly(CREATE, VB_WHY_CONTEXT_CLOSED));
	channel = object_new(context, KIND_CHANNEL, CREATE);
	if (!channel)
		return NULL;
	err = event_queue_init(&channel->events, world_waiting_owner(context->world));
	if (err) {
		object_end(KIND_CHANNEL, channel);
		return null_errno(refuse_descriptor(CREATE, err, "for a completion channel"));
	}
	channel->ibv.fd = channel->events.fd;
	return &channel->ibv;
}

void verb_end_channel(void *object)
{
	struct channel *channel = object;

	event_queue_end(&channel->events);
	object_end(KIND_CHANNEL, channel);
}

int verb_destroy_comp_channel(struct ibv_comp_channel *ibv)
{
	HOLD hold = context_hold(ibv->context);
	struct channel *channel = channel_of(ibv);

	if (!channel)
		return refuse_gone("destroy_comp_channel", KIND_CHANNEL, ibv);
	if (channel->users)
		return refuse_busy("destroy_comp_channel", VB_WHY_CHANNEL_BUSY, (uint64_t)ibv->fd,
				   KIND_CHANNEL, channel);
	verb_end_channel(channel);
	return 0;
}

/* Returns the CQs of a channel to which nothing can come, and what their queues hold. */
static const char *awaited(const struct channel *channel)
{
	static const char *const armed[] = {"not armed", "armed for solicited", "armed"};
	static _Thread_local char list[300];
	const struct context *context = context_of(channel->ibv.context);
	size_t used = 0;
	uint32_t at = 0;
	const struct cq *cq;

	while ((cq = handles_next(&context->handles[KIND_CQ], &at)) && used < sizeof(list) - 1)
		if (cq->channel == channel)
			used += (size_t)snprintf(list + used, sizeof(list) - used,
						 "%sCQ %u (%s, %u completions in it)",
						 used ? ", " : "", cq->ibv.handle,
						 armed[cq->engine->armed & SIM_CQ_ARM_MASK],
						 sim_cq_count(cq->engine));
	return used ? list : "no CQ uses it";
}

int verb_get_cq_event(struct ibv_comp_channel *ibv, struct ibv_cq **cq, void **cq_context)
{
	HOLD hold = context_hold(ibv->context);
	struct channel *channel = channel_of(ibv);
	struct queued_event event;
	struct cq *owner;
	int err;

	if (!channel)
		return minus_errno(refuse_gone("get_cq_event", KIND_CHANNEL, ibv));
	err = verb_next_event(&hold, &channel->events, &event);
	if (err)
		return minus_errno(verb_refuse_event(
			"get_cq_event", err, ibv->fd,
			(struct vb_why){VB_WHY_CHANNEL_SILENT,
					{(uint64_t)ibv->fd},
					.text = err == EDEADLK ? awaited(channel) : NULL}));
	owner = event.object;
	owner->comp_events_read++;
	*cq = &owner->ibv;
	*cq_context = owner->ibv.cq_context;
	return 0;
}

void verb_ack_cq_events(struct ibv_cq *ibv, unsigned int nevents)
{
	HOLD hold = context_hold(ibv->context);

	if (!object_live(KIND_CQ, ibv)) {
		refuse_gone("ack_cq_events", KIND_CQ, ibv);
		return;
	}
	ibv->comp_events_completed += nevents;
	driver_changed(&hold.world->driver);
}

/* --- asynchronous events --- */

int verb_get_async_event(struct ibv_context *ibv, struct ibv_async_event *event)
{
	HOLD hold = context_hold(ibv);
	struct context *context = context_of(ibv);
	struct queued_event queued;
	enum kind kind;
	int err;

	if (!context_live(context))
		return minus_errno(refuse_plainly("get_async_event", VB_WHY_CONTEXT_CLOSED));
	err = verb_next_event(&hold, &context->async, &queued);
	if (err)
		return minus_errno(
			verb_refuse_event("get_async_event", err, ibv->async_fd,
					  (struct vb_why){.reason = VB_WHY_ASYNC_SILENT}));
	event->event_type = queued.type;
	kind = event_kind(queued.type);
	if (kind != KINDS) {
		(*object_events_read(kind, queued.object))++;
		event->element.cq = queued.object; /* or qp, or srq: a union of pointers */
	} else {
		event->element.port_num = queued.port_num;
	}
	return 0;
}

static void acknowledge(enum kind kind, void *object)
{
	HOLD hold = world_hold(object_context(object)->world);

	if (object_live(kind, object))
		(*object_events_acked(kind, object))++;
	else
		refuse_gone("ack_async_event", kind, object);
	driver_changed(&hold.world->driver);
}

void verb_ack_async_event(struct ibv_async_event *event)
{
	const enum kind kind = event_kind(event->event_type);

	if (kind != KINDS)
		acknowledge(kind, event->element.cq); /* or qp, or srq */
}
