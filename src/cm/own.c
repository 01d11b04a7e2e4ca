/* SPDX-License-Identifier: MIT */
/*
 * The functions that find their backend in their own way, because they make or end what owner.c
 * remembers: channels, identifiers, events and lists.
 */
#include <verbena/cm.h>

#include "src/cm/dispatch.h"
#include "src/cm/owner.h"
#include "src/verbs/dispatch.h"
#include "src/verbs/stubs.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

/* Says that owner.c has no memory for a new object. Returns ENOMEM. */
static int say_no_memory(void)
{
	dispatch_why((struct vb_why){VB_WHY_NO_MEMORY});
	return errno = ENOMEM;
}

/* --- event channels and events --- */

struct rdma_event_channel *vb_cm_create_event_channel(const char *backend)
{
	const struct vb_backend *slot = enter_backend(__func__, backend);
	struct rdma_event_channel *channel = CM(slot, create_event_channel)();

	if (channel && owner_add(channel, OWNER_CHANNEL, slot)) {
		slot->cm->destroy_event_channel(channel);
		channel = NULL;
		say_no_memory();
	}
	return leave_pointer(channel);
}

void vb_cm_destroy_event_channel(struct rdma_event_channel *channel)
{
	const struct vb_backend *slot;

	if (!channel)
		return;
	slot = enter_slot(__func__, owner_of(channel, OWNER_CHANNEL));
	if (slot == &stubs)
		dispatch_why((struct vb_why){VB_WHY_CM_CHANNEL_UNKNOWN, {(uintptr_t)channel}});
	CM(slot, destroy_event_channel)(channel);
	owner_forget(channel, OWNER_CHANNEL, slot);
	leave();
}

/* Remembers the identifier of a connection request. Without memory for that, ends it. */
static int receive_request(struct rdma_cm_event *event, const struct vb_backend *slot)
{
	struct rdma_cm_id *id = event->id;

	if (!owner_add(id, OWNER_ID, slot))
		return 0;
	slot->cm->ack_cm_event(event);
	slot->cm->destroy_id(id);
	say_no_memory();
	return -1;
}

int vb_cm_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event)
{
	const struct vb_backend *slot = enter_channel(__func__, channel);
	int answer = CM(slot, get_cm_event)(channel, event);

	if (!answer && (*event)->event == RDMA_CM_EVENT_CONNECT_REQUEST)
		answer = receive_request(*event, slot);
	if (!answer)
		note_device((*event)->id, slot);
	return leave_signed(answer);
}

int vb_cm_ack_cm_event(struct rdma_cm_event *event)
{
	return leave_signed(CM(enter_event(__func__, event), ack_cm_event)(event));
}

/* --- identifiers --- */

int vb_cm_create_id(const char *backend, struct rdma_event_channel *channel, struct rdma_cm_id **id,
		    void *context, enum rdma_port_space ps)
{
	const struct vb_backend *slot =
		channel ? enter_channel(__func__, channel) : enter_backend(__func__, backend);
	struct rdma_cm_id *made = NULL;
	int answer = CM(slot, create_id)(channel, id ? &made : NULL, context, ps);

	if (!answer && owner_add(made, OWNER_ID, slot)) {
		slot->cm->destroy_id(made);
		say_no_memory();
		answer = -1;
	}
	if (!answer && id)
		*id = made;
	return leave_signed(answer);
}

/* Remembers an identifier of create_ep or get_request. Without memory for that, ends it. */
static int receive_endpoint(struct rdma_cm_id *id, const struct vb_backend *slot)
{
	note_device(id, slot);
	if (!owner_add(id, OWNER_ID, slot))
		return 0;
	slot->cm->destroy_ep(id);
	say_no_memory();
	return -1;
}

int vb_cm_create_ep(const char *backend, struct rdma_cm_id **id, struct rdma_addrinfo *res,
		    struct ibv_pd *pd, struct ibv_qp_init_attr *qp_init_attr)
{
	const struct vb_backend *slot = enter_backend(__func__, backend);
	struct rdma_cm_id *made = NULL;
	int answer = CM(slot, create_ep)(id ? &made : NULL, res, pd, qp_init_attr);

	if (!answer)
		answer = receive_endpoint(made, slot);
	if (!answer && id)
		*id = made;
	return leave_signed(answer);
}

/* The QP of a request could not be made. The program finds the identifier in the listener's event, and ends
 * it: rdma-core librdmacm/cma.c, rdma_get_request. */
static void receive_failed_request(const struct rdma_cm_id *listen, const struct vb_backend *slot)
{
	const struct rdma_cm_event *event = listen ? listen->event : NULL;

	if (event && event->event == RDMA_CM_EVENT_CONNECT_REQUEST &&
	    !owner_of(event->id, OWNER_ID))
		owner_add(event->id, OWNER_ID, slot);
}

int vb_cm_get_request(struct rdma_cm_id *listen, struct rdma_cm_id **id)
{
	const struct vb_backend *slot = enter_id(__func__, listen);
	struct rdma_cm_id *made = NULL;
	int answer = CM(slot, get_request)(listen, id ? &made : NULL);

	if (!answer)
		answer = receive_endpoint(made, slot);
	else if (slot != &stubs)
		receive_failed_request(listen, slot);
	if (!answer && id)
		*id = made;
	return leave_signed(answer);
}

int vb_cm_destroy_id(struct rdma_cm_id *id)
{
	const struct vb_backend *slot = enter_id(__func__, id);
	const int answer = CM(slot, destroy_id)(id);

	if (!answer)
		owner_forget(id, OWNER_ID, slot);
	return leave_signed(answer);
}

void vb_cm_destroy_ep(struct rdma_cm_id *id)
{
	const struct vb_backend *slot = enter_id(__func__, id);

	CM(slot, destroy_ep)(id);
	owner_forget(id, OWNER_ID, slot);
	leave();
}

/* Returns true if the channel may get identifiers of @slot; NULL may. Else says why not. */
static bool may_migrate(struct rdma_event_channel *channel, const struct vb_backend *slot)
{
	const struct vb_backend *owner = channel ? owner_of(channel, OWNER_CHANNEL) : slot;

	if (slot == &stubs || owner == slot)
		return true;
	if (owner)
		dispatch_why((struct vb_why){
			VB_WHY_CM_CHANNEL_FOREIGN, {(uintptr_t)channel}, .text = owner->name});
	else
		dispatch_why((struct vb_why){VB_WHY_CM_CHANNEL_UNKNOWN, {(uintptr_t)channel}});
	errno = EINVAL;
	return false;
}

int vb_cm_migrate_id(struct rdma_cm_id *id, struct rdma_event_channel *channel)
{
	const struct vb_backend *slot = enter_id(__func__, id);
	const int answer = may_migrate(channel, slot) ? CM(slot, migrate_id)(id, channel) : -1;

	if (!answer)
		owner_note_channel(id);
	return leave_signed(answer);
}

/* --- addresses and devices --- */

int vb_cm_getaddrinfo(const char *backend, const char *node, const char *service,
		      const struct rdma_addrinfo *hints, struct rdma_addrinfo **res)
{
	const struct vb_backend *slot = enter_backend(__func__, backend);
	struct rdma_addrinfo *made = NULL;
	int answer = CM(slot, getaddrinfo)(node, service, hints, res ? &made : NULL);

	if (!answer && owner_add(made, OWNER_ADDRESSES, slot)) {
		slot->cm->freeaddrinfo(made);
		say_no_memory();
		answer = -1;
	}
	if (!answer && res)
		*res = made;
	explain_gai(answer);
	leave_signed(answer ? -1 : 0);
	return answer;
}

void vb_cm_freeaddrinfo(struct rdma_addrinfo *res)
{
	const struct vb_backend *slot;

	if (!res)
		return;
	slot = enter_slot(__func__, owner_take(res, OWNER_ADDRESSES));
	if (slot == &stubs)
		dispatch_why((struct vb_why){VB_WHY_CM_LIST_UNKNOWN, {(uintptr_t)res}});
	CM(slot, freeaddrinfo)(res);
	leave();
}

struct ibv_context **vb_cm_get_devices(const char *backend, int *num_devices)
{
	const struct vb_backend *slot = enter_backend(__func__, backend);
	struct ibv_context **list;

	if (num_devices)
		*num_devices = 0;
	list = CM(slot, get_devices)(num_devices);
	if (list && owner_add(list, OWNER_DEVICES, slot)) {
		slot->cm->free_devices(list);
		if (num_devices)
			*num_devices = 0;
		list = NULL;
		say_no_memory();
	}
	for (size_t i = 0; list && list[i]; i++)
		note_context(list[i], slot);
	return leave_pointer(list);
}

void vb_cm_free_devices(struct ibv_context **list)
{
	const struct vb_backend *slot;

	if (!list)
		return;
	slot = enter_slot(__func__, owner_take(list, OWNER_DEVICES));
	if (slot == &stubs)
		dispatch_why((struct vb_why){VB_WHY_CM_LIST_UNKNOWN, {(uintptr_t)list}});
	CM(slot, free_devices)(list);
	leave();
}
