/* SPDX-License-Identifier: MIT */
#include "backends/sim/object/channel.h"

#include "backends/sim/object/objects.h"
#include "backends/sim/world/say.h"
#include "backends/sim/world/world.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* --- a queue and its descriptor --- */

int event_queue_init(struct event_queue *queue)
{
	int fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);

	*queue = (struct event_queue){.fd = fd};
	return fd < 0 ? errno : 0;
}

void event_queue_end(struct event_queue *queue)
{
	close(queue->fd);
	free(queue->ring);
	*queue = (struct event_queue){.fd = -1};
}

/* As the kernel does when it is out of memory, an event that cannot be kept is lost. */
static void push(struct event_queue *queue, const struct queued_event *event)
{
	static const uint64_t one = 1;

	if (queue->count == queue->capacity) {
		uint32_t capacity = queue->capacity ? queue->capacity * 2 : 16;
		struct queued_event *ring = malloc(capacity * sizeof(*ring));

		if (!ring)
			return;
		for (uint32_t i = 0; i < queue->count; i++)
			ring[i] = queue->ring[(queue->head + i) % queue->capacity];
		free(queue->ring);
		queue->ring = ring;
		queue->capacity = capacity;
		queue->head = 0;
	}
	queue->ring[(queue->head + queue->count++) % queue->capacity] = *event;
	/* A full counter would need 2^64 events. */
	(void)!write(queue->fd, &one, sizeof(one));
}

/* Takes one from the descriptor's count, unless the program has read it away. */
static void take_count(const struct event_queue *queue)
{
	struct pollfd readable = {.fd = queue->fd, .events = POLLIN};
	uint64_t one;

	if (poll(&readable, 1, 0) == 1)
		(void)!read(queue->fd, &one, sizeof(one));
}

static struct queued_event pop(struct event_queue *queue)
{
	struct queued_event event = queue->ring[queue->head];

	queue->head = (queue->head + 1) % queue->capacity;
	queue->count--;
	return event;
}

void event_queue_forget(struct event_queue *queue, const void *object)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < queue->count; i++) {
		struct queued_event event = queue->ring[(queue->head + i) % queue->capacity];

		if (event.object == object)
			take_count(queue);
		else
			queue->ring[(queue->head + kept++) % queue->capacity] = event;
	}
	queue->count = kept;
}

static bool has_event(const void *queue)
{
	return ((const struct event_queue *)queue)->count > 0;
}

static bool does_not_block(const struct event_queue *queue)
{
	return fcntl(queue->fd, F_GETFL) & O_NONBLOCK;
}

/*
 * Takes the oldest event, waiting for one unless the program set O_NONBLOCK. The lock is held on
 * entry and on return, but not while the thread sleeps in read(2).
 * 0 or errno; EDEADLK where nothing can come.
 */
static int next_event(struct vb_sim *world, struct event_queue *queue, bool *locked,
		      struct queued_event *event)
{
	uint64_t one;
	int err;

	driver_catch_up(world);
	while (!queue->count) {
		if (!world->driver.real) {
			if (does_not_block(queue)) {
				driver_step(world, has_event, queue);
				err = queue->count ? 0 : EAGAIN;
			} else {
				err = driver_wait(world, has_event, queue);
			}
			if (err)
				return err;
			continue;
		}
		/* What read(2) takes is an event in the queue, unless its object was destroyed. */
		world_unlock(world, *locked);
		err = read(queue->fd, &one, sizeof(one)) < 0 ? errno : 0;
		*locked = world_lock(world);
		if (err)
			return err;
		if (queue->count) {
			*event = pop(queue);
			return 0;
		}
	}
	take_count(queue);
	*event = pop(queue);
	return 0;
}

/* --- from the engine --- */

void channel_cq_event(void *arg, struct sim_cq *engine)
{
	struct cq *cq = engine->user;
	const struct queued_event event = {.object = cq};

	if (!cq->ibv.channel)
		return;
	push(&((struct channel *)cq->ibv.channel)->events, &event);
	driver_changed(arg);
}

/* What the element of an asynchronous event is, by its type; KINDS for a port or device. */
static enum kind element_kind(enum ibv_event_type type)
{
	switch (type) {
	case IBV_EVENT_CQ_ERR:
		return KIND_CQ;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		return KIND_QP;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		return KIND_SRQ;
	default:
		return KINDS;
	}
}

/*
 * Each handle of a shared QP gets the event: Linux drivers/infiniband/core/verbs.c,
 * __ib_shared_qp_event_handler.
 */
static void push_to_handles(struct qp *first, struct queued_event queued)
{
	struct qp *qp = first;

	do {
		queued.object = qp;
		push(&context_of(qp->ibv.context)->async, &queued);
		qp = qp->next_handle;
	} while (qp != first);
}

void channel_async_event(void *arg, struct sim_device *device, const struct sim_event *event)
{
	struct vb_sim *world = arg;
	struct queued_event queued = {
		.object = event->element,
		.type = event->type,
		.port_num = (int)event->port_num,
	};
	struct context *context;
	uint32_t at = 0;

	switch (element_kind(event->type)) {
	case KIND_CQ:
		context = context_of(((struct cq *)event->element)->ibv.context);
		push(&context->async, &queued);
		break;
	case KIND_SRQ:
		context = context_of(((struct srq *)event->element)->ibv.context);
		push(&context->async, &queued);
		break;
	case KIND_QP:
		push_to_handles(event->element, queued);
		break;
	default:
		while ((context = handles_next(&world->contexts, &at)))
			if (context->device->engine == device)
				push(&context->async, &queued);
		break;
	}
	driver_changed(world);
}

/* --- completion channels --- */

struct ibv_comp_channel *channel_create(struct ibv_context *ibv)
{
	struct context *context = context_of(ibv);
	struct vb_sim *world = context->world;
	bool locked = world_lock(world);
	struct channel *channel = NULL;
	uint32_t handle;
	int err = EINVAL;

	if (!context_live(context))
		say(err, "create_comp_channel: the context is closed");
	else if (!(channel = object_new(context, KIND_CHANNEL, &handle)))
		err = say(ENOMEM, "create_comp_channel: out of memory");
	if (channel) {
		err = event_queue_init(&channel->events);
		if (err) {
			object_end(context, KIND_CHANNEL, handle, channel);
			channel = NULL;
			say(err, "create_comp_channel: no descriptor");
		}
	}
	if (channel) {
		channel->handle = handle;
		channel->ibv.context = ibv;
		channel->ibv.fd = channel->events.fd;
	}
	world_unlock(world, locked);
	if (!channel)
		errno = err;
	return channel ? &channel->ibv : NULL;
}

int channel_destroy(struct ibv_comp_channel *ibv)
{
	struct context *context = context_of(ibv->context);
	struct vb_sim *world = context->world;
	bool locked = world_lock(world);
	struct channel *channel = channel_of(ibv);
	int err = 0;

	if (!channel) {
		err = say(EINVAL, "destroy_comp_channel: no such channel");
	} else if (channel->users) {
		err = say(EBUSY, "destroy_comp_channel: channel of fd %d: %u CQs use it", ibv->fd,
			  channel->users);
	} else {
		event_queue_end(&channel->events);
		object_end(context, KIND_CHANNEL, channel->handle, channel);
	}
	world_unlock(world, locked);
	return err;
}

/* What nothing can come to: the CQs of the channel, and what their queues hold. */
static void say_awaited(const struct channel *channel)
{
	const struct context *context = context_of(channel->ibv.context);
	static const char *const armed[] = {"not armed", "armed for solicited", "armed"};
	char list[300] = "";
	size_t used = 0;
	uint32_t at = 0;
	const struct cq *cq;

	while ((cq = handles_next(&context->handles[KIND_CQ], &at)) && used < sizeof(list) - 1)
		if (cq->ibv.channel == &channel->ibv)
			used += (size_t)snprintf(
				list + used, sizeof(list) - used,
				"%sCQ %u (%s, %u completions in it)", used ? ", " : "",
				cq->ibv.handle, armed[cq->engine->armed], sim_cq_count(cq->engine));
	say(EDEADLK,
	    "get_cq_event: channel of fd %d: nothing can come: %s; no timer or packet is due",
	    channel->ibv.fd, used ? list : "no CQ uses it");
}

int channel_get_cq_event(struct ibv_comp_channel *ibv, struct ibv_cq **cq, void **cq_context)
{
	struct vb_sim *world = context_of(ibv->context)->world;
	bool locked = world_lock(world);
	struct channel *channel = channel_of(ibv);
	struct queued_event event;
	int err;

	err = channel ? next_event(world, &channel->events, &locked, &event) : EINVAL;
	if (!channel) {
		say(err, "get_cq_event: no such channel");
	} else if (err == EDEADLK) {
		say_awaited(channel);
	} else if (err) {
		say(err, "get_cq_event: channel of fd %d: no event is there", ibv->fd);
	} else {
		struct cq *owner = event.object;

		owner->comp_events_read++;
		*cq = &owner->ibv;
		*cq_context = owner->ibv.cq_context;
	}
	world_unlock(world, locked);
	if (err)
		errno = err;
	return err ? -1 : 0;
}

void channel_ack_cq_events(struct ibv_cq *ibv, unsigned int nevents)
{
	struct vb_sim *world = context_of(ibv->context)->world;
	bool locked = world_lock(world);
	struct cq *cq = cq_of(ibv);

	if (cq) {
		cq->ibv.comp_events_completed += nevents;
		driver_changed(world);
	} else {
		say(EINVAL, "ack_cq_events: no such CQ");
	}
	world_unlock(world, locked);
}

/* --- asynchronous events --- */

static void hand_over(const struct queued_event *queued, struct ibv_async_event *event)
{
	event->event_type = queued->type;
	switch (element_kind(queued->type)) {
	case KIND_CQ:
		((struct cq *)queued->object)->async_events_read++;
		event->element.cq = queued->object;
		break;
	case KIND_QP:
		((struct qp *)queued->object)->async_events_read++;
		event->element.qp = queued->object;
		break;
	case KIND_SRQ:
		((struct srq *)queued->object)->async_events_read++;
		event->element.srq = queued->object;
		break;
	default:
		event->element.port_num = queued->port_num;
		break;
	}
}

int channel_get_async_event(struct ibv_context *ibv, struct ibv_async_event *event)
{
	struct context *context = context_of(ibv);
	struct vb_sim *world = context->world;
	bool locked = world_lock(world);
	struct queued_event queued;
	int err = EINVAL;

	if (!context_live(context)) {
		say(err, "get_async_event: the context is closed");
	} else {
		err = next_event(world, &context->async, &locked, &queued);
		if (err == EDEADLK)
			say(err, "get_async_event: %s: nothing can come: no timer or packet is due",
			    context->device->ibv.name);
		else if (err)
			say(err, "get_async_event: %s: no event is there",
			    context->device->ibv.name);
		else
			hand_over(&queued, event);
	}
	world_unlock(world, locked);
	if (err)
		errno = err;
	return err ? -1 : 0;
}

static struct ibv_context *context_of_element(enum kind kind, const struct ibv_async_event *event)
{
	switch (kind) {
	case KIND_CQ:
		return event->element.cq->context;
	case KIND_QP:
		return event->element.qp->context;
	default:
		return event->element.srq->context;
	}
}

void channel_ack_async_event(struct ibv_async_event *event)
{
	enum kind kind = element_kind(event->event_type);
	struct ibv_context *ibv;
	struct vb_sim *world;
	bool locked;

	if (kind == KINDS)
		return;
	ibv = context_of_element(kind, event);
	world = context_of(ibv)->world;
	locked = world_lock(world);
	if (kind == KIND_CQ && cq_of(event->element.cq))
		event->element.cq->async_events_completed++;
	else if (kind == KIND_QP && qp_of(event->element.qp))
		event->element.qp->events_completed++;
	else if (kind == KIND_SRQ && srq_of(event->element.srq))
		event->element.srq->events_completed++;
	driver_changed(world);
	world_unlock(world, locked);
}
