/* SPDX-License-Identifier: MIT */
/*
 * The verbs that make and end what a backend is found by: device lists and contexts; and the one
 * that finds it through an event.
 */
#include <verbena/verbs.h>

#include "src/verbs/dispatch.h"
#include "src/verbs/objects.h"
#include "src/verbs/stubs.h"

#include <errno.h>

struct ibv_device **vb_get_device_list(const char *backend, int *num_devices)
{
	const struct vb_backend *slot = enter_backend(__func__, backend);
	struct ibv_device **list;

	if (num_devices)
		*num_devices = 0;
	list = slot->get_device_list(num_devices);
	if (list && objects_add_list(list, slot)) {
		slot->free_device_list(list);
		if (num_devices)
			*num_devices = 0;
		list = NULL;
		errno = ENOMEM;
		dispatch_say("get_device_list: no memory for the devices of backend %s",
			     slot->name);
	}
	return leave_pointer(list);
}

void vb_free_device_list(struct ibv_device **list)
{
	const struct vb_backend *slot;

	if (!list)
		return;
	slot = enter_slot(__func__, objects_take_list(list));
	if (slot != &stubs)
		slot->free_device_list(list);
	else
		dispatch_say("free_device_list: the list %p is of no backend, or freed already",
			     (void *)list);
	leave();
}

/* Remembers a new context, or ends it if there is no memory for that. */
static struct ibv_context *remember(struct ibv_context *context, const struct vb_backend *slot)
{
	if (!context || !objects_add_context(context, slot))
		return context;
	slot->close_device(context);
	errno = ENOMEM;
	dispatch_say("open_device: no memory for the context");
	return NULL;
}

struct ibv_context *vb_open_device(struct ibv_device *device)
{
	const struct vb_backend *slot = enter_device(__func__, device);

	return leave_pointer(remember(slot->open_device(device), slot));
}

struct ibv_context *vb_import_device(const char *backend, int cmd_fd)
{
	const struct vb_backend *slot = enter_backend(__func__, backend);

	return leave_pointer(remember(slot->import_device(cmd_fd), slot));
}

int vb_close_device(struct ibv_context *context)
{
	const struct vb_backend *slot = enter(__func__, context);
	int answer;
	int saved;

	if (slot == &stubs)
		return leave_signed(slot->close_device(context));

	objects_forget_context(context);
	answer = slot->close_device(context);
	saved = errno;
	/* Then it is still open. Without memory for it, it cannot be found again. */
	if (answer)
		objects_add_context(context, slot);
	errno = saved;
	return leave_signed(answer);
}

enum event_object { NO_OBJECT, CQ, QP, SRQ, WQ };

/* What an event is about: man ibv_get_async_event(3). */
static enum event_object object_of(enum ibv_event_type type)
{
	switch (type) {
	case IBV_EVENT_CQ_ERR:
		return CQ;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		return QP;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		return SRQ;
	case IBV_EVENT_WQ_FATAL:
		return WQ;
	default:
		return NO_OBJECT;
	}
}

static const struct ibv_context *event_context(const struct ibv_async_event *event)
{
	switch (object_of(event->event_type)) {
	case CQ:
		return event->element.cq ? event->element.cq->context : NULL;
	case QP:
		return event->element.qp ? event->element.qp->context : NULL;
	case SRQ:
		return event->element.srq ? event->element.srq->context : NULL;
	case WQ:
		return event->element.wq ? event->element.wq->context : NULL;
	default:
		return NULL;
	}
}

/* Events without an object are not counted: man ibv_get_async_event(3). */
void vb_ack_async_event(struct ibv_async_event *event)
{
	if (event && object_of(event->event_type) == NO_OBJECT)
		return;
	enter(__func__, event ? event_context(event) : NULL)->ack_async_event(event);
	leave();
}
