/* SPDX-License-Identifier: MIT */
#include "backends/sim/object/refuse.h"

#include "backends/sim/object/users.h"

#include "sim/base/refuse.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

int refuse_why(const char *verb, struct vb_why why)
{
	why.verb = verb;
	return say_why(sim_reason_errno(why.reason), &why);
}

int refuse_plainly(const char *verb, enum vb_reason reason)
{
	return refuse_why(verb, (struct vb_why){.reason = reason});
}

int refuse_name(const char *verb, enum vb_reason reason, const char *text)
{
	return refuse_why(verb, (struct vb_why){.reason = reason, .text = text});
}

int refuse_overrun(const char *verb, const struct cq *cq)
{
	return refuse_why(verb,
			  (struct vb_why){VB_WHY_CQ_OVERRUN, {cq->slot, (uint64_t)cq->ibv.cqe}});
}

int refuse_events(const char *verb, int error, enum kind kind, void *object)
{
	const uint32_t unacked =
		*object_events_read(kind, object) - *object_events_acked(kind, object);

	return refuse_wait(
		verb, error,
		(struct vb_why){VB_WHY_EVENTS_UNACKED, {unacked}, .text = kind_name(kind)});
}

int refuse_limit(const char *verb, const char *name, int limit)
{
	return refuse_why(verb,
			  (struct vb_why){VB_WHY_DEVICE_LIMIT, {(uint64_t)limit}, .text = name});
}

int refuse_comp_mask(const char *verb, uint32_t unknown)
{
	return refuse_why(verb, (struct vb_why){VB_WHY_COMP_MASK, {unknown}});
}

int refuse_busy(const char *verb, enum vb_reason reason, uint64_t number, enum kind kind,
		const void *object)
{
	return refuse_why(verb,
			  (struct vb_why){reason, {number}, .text = users_text(kind, object)});
}

int refuse_system(const char *verb, int error, const char *call)
{
	return say_why(error,
		       &(struct vb_why){
			       VB_WHY_SYSTEM_CALL, {(uint64_t)error}, .verb = verb, .text = call});
}

int refuse_descriptor(const char *verb, int error, const char *purpose)
{
	const enum vb_reason reason = sim_descriptor_reason(error);
	char call[128];

	if (reason != VB_WHY_NONE)
		return refuse_name(verb, reason, purpose);
	snprintf(call, sizeof(call), "making a file descriptor %s", purpose);
	return refuse_system(verb, error, call);
}

int refuse_wait(const char *verb, int error, struct vb_why why)
{
	return error == ENODEV ? refuse_plainly(verb, VB_WHY_WORLD_ENDED) : refuse_why(verb, why);
}

int refuse_gone(const char *verb, enum kind kind, void *ibv)
{
	const struct object_handles handles = object_handles(kind, ibv);
	enum vb_reason reason = VB_WHY_OBJECT_GONE;

	if (object_live(kind, ibv))
		reason = handles.given != handles.own ? VB_WHY_OBJECT_HANDLE : VB_WHY_IMPORT_GONE;
	return refuse_why(
		verb,
		(struct vb_why){reason, {handles.given, handles.own}, .text = kind_name(kind)});
}

int refuse_queue(const char *verb, enum kind kind, void *ibv)
{
	const struct object_handles handles = object_handles(kind, ibv);

	return refuse_why(
		verb, (struct vb_why){VB_WHY_QUEUE_GONE, {handles.given}, .text = kind_name(kind)});
}

int refuse_missing(const char *verb, enum kind kind, const struct ibv_context *context, void *ibv)
{
	const struct vb_why why = {.reason = ibv ? VB_WHY_OBJECT_FOREIGN : VB_WHY_OBJECT_NULL,
				   .text = kind_name(kind)};

	if (ibv && &object_context(ibv)->verbs.context == context)
		return refuse_gone(verb, kind, ibv);
	return refuse_why(verb, why);
}
