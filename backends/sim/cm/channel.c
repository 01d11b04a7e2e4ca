/* SPDX-License-Identifier: MIT */
/* Event channels, and how the program takes events and gives them back. */
#include "backends/sim/cm/private.h"

#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* --- channels --- */

struct cm_channel *cm_channel_new(struct cm *cm, const char *call)
{
	struct cm_channel *channel = pool_take(&cm->channels);
	int err;

	if (!channel)
		return null_errno(refuse_plainly(call, VB_WHY_NO_MEMORY));
	err = event_queue_init(&channel->queue, world_waiting_owner(cm->world));
	if (err) {
		pool_give(&cm->channels, channel);
		return null_errno(refuse_descriptor(call, err, "for an event channel"));
	}
	channel->rdma.fd = channel->queue.fd;
	channel->cm = cm;
	channel->next = cm->first_channel;
	cm->first_channel = channel;
	cm->world->cm.live++;
	return channel;
}

void cm_channel_end(struct cm_channel *channel)
{
	struct cm *cm = channel->cm;
	struct cm_channel **link = &cm->first_channel;

	while (*link != channel)
		link = &(*link)->next;
	*link = channel->next;
	event_queue_end(&channel->queue);
	pool_give(&cm->channels, channel);
	cm->world->cm.live--;
}

struct rdma_event_channel *cm_create_event_channel(void)
{
	static const char call[] = "create_event_channel";
	struct cm *cm = cm_default(call);
	struct cm_channel *channel;

	if (!cm)
		return NULL;
	HOLD hold = world_hold(cm->world);

	channel = cm_channel_new(cm, call);
	return channel ? &channel->rdma : NULL;
}

/*
 * Pauses, so that another thread can run. A thread that has acknowledged the last event of an identifier,
 * for which rdma_destroy_id(3) was waiting, is about to wait at the channel again (rdma-core
 * librdmacm/examples/rping.c, cm_thread). On a real machine it has the time to do so, because the calls in
 * between take longer.
 */
static void let_threads_wait(const struct vb_sim *world)
{
	static const struct timespec pause = {.tv_nsec = 200000};

	if (world->driver.real)
		nanosleep(&pause, NULL);
}

void cm_destroy_event_channel(struct rdma_event_channel *rdma)
{
	struct cm_channel *channel = cm_channel_of(rdma);

	let_threads_wait(channel->cm->world);
	HOLD hold = world_hold(channel->cm->world);

	for (struct cm_id *id = channel->cm->first_id; id; id = id->next)
		if (id->channel == channel) {
			cm_drop_events(id);
			id->orphaned = true;
		}
	cm_channel_end(channel);
}

/* --- the waiting events of an identifier --- */

static bool is_of_id(const void *event, const void *id)
{
	return ((const struct cm_event *)event)->id == id;
}

static bool is_of_group(const void *event, const void *group)
{
	return ((const struct cm_event *)event)->group == group;
}

/* Returns the oldest event of the identifier in its queue; NULL if the queue has none. */
static struct cm_event *find_event(const struct cm_id *id)
{
	return event_queue_find(&id->channel->queue, is_of_id, id);
}

/* The identifier of a request has the channel from which the program takes the request: rdma-core
 * librdmacm/cma.c, ucma_process_conn_req. */
static void move_event(struct cm_event *event, struct cm_channel *to)
{
	event_queue_push(&to->queue, &(struct queued_event){.object = event});
	if (!event->fresh)
		return;
	event->fresh->channel = to;
	event->fresh->rdma.channel = &to->rdma;
}

void cm_move_events(struct cm_id *id, struct cm_channel *to)
{
	struct cm_event *event;

	if (to == id->channel)
		return;
	while ((event = find_event(id))) {
		event_queue_forget(&id->channel->queue, event);
		move_event(event, to);
	}
}

void cm_drop_events(struct cm_id *id)
{
	struct cm_event *event;

	while ((event = find_event(id))) {
		event_queue_forget(&id->channel->queue, event);
		if (event->fresh)
			cm_id_end(event->fresh);
		pool_give(&id->cm->events, event);
	}
}

void cm_drop_group_event(struct cm_id *id, const struct cm_group *group)
{
	struct cm_event *event = event_queue_find(&id->channel->queue, is_of_group, group);

	if (!event)
		return;
	event_queue_forget(&id->channel->queue, event);
	pool_give(&id->cm->events, event);
}

/* --- taking an event --- */

/* Counts an event that the program holds from now on. */
static void count_read(struct cm_event *event)
{
	event->id->events_read++;
	if (event->group)
		event->group->events_read++;
}

static void count_acked(struct cm_event *event)
{
	event->id->events_acked++;
	if (event->group)
		event->group->events_acked++;
}

static bool is_open(const struct cm *cm, const struct cm_channel *channel)
{
	const struct cm_channel *open = cm->first_channel;

	while (open && open != channel)
		open = open->next;
	return open;
}

/* Returns EINTR after a signal. */
static int wait_for_a_signal(struct hold *hold)
{
	world_release(hold);
	hold->locked = false;
	pause();
	return EINTR;
}

/*
 * Waits for an event of the channel. A thread that waits while another one destroys the channel waits until a signal
 * comes: the kernel does not wake it (Linux drivers/infiniband/core/ucma.c, ucma_get_event). The thread may also have
 * waited for the world's lock, or not yet have begun to read from the descriptor. 0 or errno.
 */
static int wait_for_event(struct hold *hold, struct cm *cm, struct cm_channel *channel,
			  struct queued_event *queued)
{
	const bool real = hold->world->driver.real;
	int err;

	if (hold->world->retired)
		return ENODEV;
	if (real && !is_open(cm, channel))
		return wait_for_a_signal(hold);
	err = verb_next_event(hold, &channel->queue, queued);
	if (err && real && !hold->world->retired && !is_open(cm, channel))
		return wait_for_a_signal(hold);
	return err;
}

/* Waits for the oldest event of the channel. Returns NULL with errno and a sentence. */
static struct cm_event *take_event(struct cm_channel *channel, const char *call)
{
	struct cm *cm = channel->cm;
	HOLD hold = world_hold(cm->world);
	struct queued_event queued;
	struct cm_event *event;
	int err = wait_for_event(&hold, cm, channel, &queued);

	if (err)
		return null_errno(verb_refuse_event(
			call, err, channel->rdma.fd,
			(struct vb_why){VB_WHY_CM_SILENT, {(uint64_t)channel->rdma.fd}}));
	event = queued.object;
	count_read(event);
	if (event->rdma.event == RDMA_CM_EVENT_CONNECT_REQUEST && event->fresh)
		event->id->backlog++;
	return event;
}

/* Acknowledges an event that the program does not get to see. */
static void discard(struct cm_event *event)
{
	struct cm *cm = event->id->cm;
	HOLD hold = world_hold(cm->world);

	count_acked(event);
	pool_give(&cm->events, event);
	driver_changed(&hold.world->driver);
}

/* Copies the resolved address or route to the program's identifier. */
static void follow_resolved(struct cm_event *event, enum rdma_cm_event_type failed)
{
	event->rdma.status = cm_publish(event->id, "get_cm_event") ? -1 : 0;
	if (event->rdma.status)
		event->rdma.event = failed;
}

/* Publishes the identifier of a request to the program. Returns false if that fails: the request is lost. */
static bool follow_request(struct cm_event *event)
{
	struct cm_id *fresh = event->fresh;
	int err = 0;

	if (event->id->sync)
		err = cm_id_migrate(fresh, NULL);
	if (!err)
		err = cm_publish(fresh, "get_cm_event");
	if (!err)
		return true;
	HOLD hold = world_hold(fresh->cm->world);

	cm_id_end(fresh);
	return false;
}

static void follow_response(struct cm_event *event)
{
	if (!event->id->rdma.qp)
		return;
	event->rdma.status = cm_follow_reply(event->id, "get_cm_event");
	event->rdma.event =
		event->rdma.status ? RDMA_CM_EVENT_CONNECT_ERROR : RDMA_CM_EVENT_ESTABLISHED;
	event->id->connect_error = event->rdma.status != 0;
}

static void follow_join(struct cm_event *event)
{
	event->rdma.status = cm_group_attach(event->group);
	if (event->rdma.status)
		event->rdma.event = RDMA_CM_EVENT_MULTICAST_ERROR;
}

/* Does what librdmacm does when a program takes an event: rdma-core librdmacm/cma.c,
 * rdma_get_cm_event. Returns false for an event that the program does not see. */
static bool follow(struct cm_event *event)
{
	switch (event->rdma.event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		follow_resolved(event, RDMA_CM_EVENT_ADDR_ERROR);
		return true;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		follow_resolved(event, RDMA_CM_EVENT_ROUTE_ERROR);
		return true;
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		return follow_request(event);
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
		follow_response(event);
		return true;
	case RDMA_CM_EVENT_REJECTED:
		if (event->id->connect_error)
			return false;
		cm_qp_to_err(event->id);
		return true;
	case RDMA_CM_EVENT_DISCONNECTED:
		return !event->id->connect_error;
	case RDMA_CM_EVENT_MULTICAST_JOIN:
		follow_join(event);
		return true;
	default:
		return true;
	}
}

/* Waits for the next event that the program gets to see. Returns NULL with errno and a sentence. */
static struct cm_event *next_event(struct cm_channel *channel, const char *call)
{
	struct cm_event *event;

	while ((event = take_event(channel, call))) {
		if (follow(event))
			return event;
		discard(event);
	}
	return NULL;
}

int cm_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event)
{
	struct cm_event *next;

	if (!event)
		return minus_errno(refuse_plainly("get_cm_event", VB_WHY_CM_EVENT_NULL));
	next = next_event(cm_channel_of(channel), "get_cm_event");
	if (!next)
		return -1;
	*event = &next->rdma;
	return 0;
}

int cm_ack_cm_event(struct rdma_cm_event *event)
{
	discard(cm_event_of(event));
	return 0;
}

/* --- synchronous identifiers --- */

/* A call of a synchronous identifier fails with the status of its event: rdma-core librdmacm/cma.c,
 * ucma_complete. */
static int refuse_status(const struct rdma_cm_event *event, const char *call)
{
	const int status = event->status < 0 ? -event->status : event->status;
	struct vb_why why = {VB_WHY_CM_EVENT_STATUS,
			     {(uint64_t)status},
			     .verb = call,
			     .text = cm_event_name(event->event)};

	if (event->event != RDMA_CM_EVENT_REJECTED)
		return say_why(status, &why);
	why.reason = VB_WHY_CM_REJECTED;
	return say_why(ECONNREFUSED, &why);
}

int cm_complete(struct cm_id *id, const char *call)
{
	struct cm_event *event;

	if (!id->sync)
		return 0;
	if (id->rdma.event)
		cm_ack_cm_event(id->rdma.event);
	id->rdma.event = NULL;
	event = next_event(id->channel, call);
	if (!event)
		return -1;
	id->rdma.event = &event->rdma;
	return event->rdma.status ? minus_errno(refuse_status(&event->rdma, call)) : 0;
}

/* Waits for a connection request, and makes its QP if rdma_create_ep(3) has given attributes. */
static int take_request(struct cm_id *listener, struct cm_event *event)
{
	struct ibv_qp_init_attr attr;

	if (event->rdma.status)
		return minus_errno(refuse_status(&event->rdma, "get_request"));
	if (event->rdma.event != RDMA_CM_EVENT_CONNECT_REQUEST)
		return minus_errno(refuse_name("get_request", VB_WHY_CM_NO_REQUEST,
					       cm_event_name(event->rdma.event)));
	if (!listener->qp_init_attr)
		return 0;
	attr = *listener->qp_init_attr;
	return cm_create_qp(event->rdma.id, listener->rdma.pd, &attr);
}

int cm_get_request(struct rdma_cm_id *listen, struct rdma_cm_id **id)
{
	struct cm_id *listener = cm_id_of(listen);
	struct cm_event *event;

	if (!listener->sync)
		return minus_errno(refuse_plainly("get_request", VB_WHY_CM_NOT_SYNC));
	if (listen->event)
		cm_ack_cm_event(listen->event);
	listen->event = NULL;
	event = next_event(listener->channel, "get_request");
	if (!event)
		return -1;
	if (take_request(listener, event)) {
		listen->event = &event->rdma;
		return -1;
	}
	*id = event->rdma.id;
	(*id)->event = &event->rdma;
	return 0;
}
