/* SPDX-License-Identifier: MIT */
#include "backends/sim/object/refuse.h"

#include "sim/base/refuse.h"

int refuse_why(const char *verb, struct vb_why why)
{
	why.verb = verb;
	return say_why(sim_reason_errno(why.reason), &why);
}

int refuse_plainly(const char *verb, enum vb_reason reason)
{
	return refuse_why(verb, (struct vb_why){.reason = reason});
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
