/* SPDX-License-Identifier: MIT */
#include "src/cm/dispatch.h"

#include "src/cm/owner.h"
#include "src/verbs/convention.h"
#include "src/verbs/dispatch.h"
#include "src/verbs/objects.h"
#include "src/verbs/stubs.h"

#include <errno.h>
#include <netdb.h>
#include <stdint.h>

/* The name of a stub makes refuse() name the function "cm_<name>". */
#define VB_CM(result, name, parameters, arguments, convention, by, object, version) \
	static result stub_cm_##name parameters                                     \
	{                                                                           \
		return FAILED(convention, refuse(__func__), UNPACK arguments);      \
	}
#include <verbena/cm.def>

const struct vb_cm_backend cm_stubs = {
#define VB_CM(result, name, parameters, arguments, convention, by, object, version) \
	.name = stub_cm_##name,
#include <verbena/cm.def>
};

void explain_gai(int answer)
{
	if (!answer || answer == -1 || dispatch_said())
		return;
	if (answer != EAI_SYSTEM)
		errno = answer == EAI_MEMORY ? ENOMEM : EINVAL;
	dispatch_why((struct vb_why){VB_WHY_CM_NAME, .text = gai_strerror(answer)});
}

/* Begins the function on an object, which belongs to @slot, or else is refused for @unknown. */
static const struct vb_backend *enter_object(const char *function, const void *object,
					     const struct vb_backend *slot, enum vb_reason unknown)
{
	const struct vb_backend *entered = enter_slot(function, slot);

	if (!object)
		dispatch_why((struct vb_why){VB_WHY_CM_NULL});
	else if (!slot)
		dispatch_why((struct vb_why){unknown, {(uintptr_t)object}});
	return entered;
}

const struct vb_backend *enter_channel(const char *function,
				       const struct rdma_event_channel *channel)
{
	return enter_object(function, channel, channel ? owner_of_channel(channel) : NULL,
			    VB_WHY_CM_CHANNEL_UNKNOWN);
}

const struct vb_backend *enter_id(const char *function, const struct rdma_cm_id *id)
{
	return enter_object(function, id, id ? owner_of(id, OWNER_ID) : NULL, VB_WHY_CM_ID_UNKNOWN);
}

const struct vb_backend *enter_event(const char *function, const struct rdma_cm_event *event)
{
	return enter_object(function, event, event ? owner_of_event(event) : NULL,
			    VB_WHY_CM_EVENT_UNKNOWN);
}

/* Without memory the call has done its work; verbs on the context then find no backend. */
void note_context(struct ibv_context *context, const struct vb_backend *slot)
{
	const int saved = errno;

	if (context && !slot->owns_context && !objects_context_slot(context))
		objects_add_context(context, slot);
	errno = saved;
}

/* Without a backend, the identifier may have been freed. */
void note_device(const struct rdma_cm_id *id, const struct vb_backend *slot)
{
	if (slot != &stubs)
		note_context(id->verbs, slot);
}
