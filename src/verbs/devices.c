/* SPDX-License-Identifier: MIT */
/*
 * The verbs that find their backend in their own way: by the backend's name, because they have no
 * object; by the list, device or context that the verb creates or ends, which objects.c remembers;
 * and by the object that an event names.
 */
#include <verbena/verbs.h>

#include "src/base/async_event.h"
#include "src/verbs/dispatch.h"
#include "src/verbs/objects.h"
#include "src/verbs/stubs.h"

#include <errno.h>
#include <stdbool.h>

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
		dispatch_why((struct vb_why){VB_WHY_NO_MEMORY});
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
		dispatch_why((struct vb_why){VB_WHY_LIST_UNKNOWN, {(uintptr_t)list}});
	leave();
}

/* Remembers a new context. Without memory for that, closes the context and returns NULL. */
static struct ibv_context *remember(struct ibv_context *context, const struct vb_backend *slot)
{
	if (!context || !objects_add_context(context, slot))
		return context;
	slot->close_device(context);
	errno = ENOMEM;
	dispatch_why((struct vb_why){VB_WHY_NO_MEMORY});
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
	/* A context that failed to close is still open. Without memory here, no verb finds it. */
	if (answer)
		objects_add_context(context, slot);
	errno = saved;
	return leave_signed(answer);
}

int vb_fork_init(const char *backend)
{
	return leave_errno(enter_backend(__func__, backend)->fork_init());
}

enum ibv_fork_status vb_is_fork_initialized(const char *backend)
{
	enum ibv_fork_status answer = enter_backend(__func__, backend)->is_fork_initialized();

	leave();
	return answer;
}

#define CONTEXT_OF(object) ((object) ? (object)->context : NULL)

bool dispatch_event_context(const struct ibv_async_event *event, const struct ibv_context **context)
{
	switch (async_event_of(event->event_type)) {
	case EVENT_OF_CQ:
		*context = CONTEXT_OF(event->element.cq);
		return true;
	case EVENT_OF_QP:
		*context = CONTEXT_OF(event->element.qp);
		return true;
	case EVENT_OF_SRQ:
		*context = CONTEXT_OF(event->element.srq);
		return true;
	case EVENT_OF_WQ:
		*context = CONTEXT_OF(event->element.wq);
		return true;
	default:
		return false;
	}
}

/* Events without an object need no acknowledgement: man ibv_get_async_event(3). */
void vb_ack_async_event(struct ibv_async_event *event)
{
	const struct ibv_context *context = NULL;

	if (event && !dispatch_event_context(event, &context))
		return;
	enter(__func__, context)->ack_async_event(event);
	leave();
}
