/* SPDX-License-Identifier: MIT */
#include "src/layer/role_cm.h"

#include "src/layer/shadow.h"
#include "src/verbs/dispatch.h"
#include "src/verbs/stubs.h"

#include <rdma/rdma_cma.h>
#include <string.h>

static const bool functions[LAYER_VERBS] = {
#define VB_CM(result, name, parameters, arguments, convention, by, object, version) \
	[LAYER_cm_##name] = true,
#include <verbena/cm.def>
};

bool role_cm_has(enum layer_verb verb)
{
	return functions[verb];
}

static void *argument(const struct layer_call *call, unsigned int index)
{
	return (void *)(uintptr_t)call->arguments[index];
}

/* --- before the backend --- */

static void take_out(const void *object, enum layer_kind kind)
{
	struct layer_entry *entry = table_find(object, kind);

	if (!entry)
		return;
	shadow_hide(entry);
	shadow_drop(entry);
	table_remove(entry, entry->serial);
}

static void take_out_qp(const struct rdma_cm_id *id)
{
	take_out(id->qp, LAYER_QP);
	take_out(id->send_cq, LAYER_CQ);
	take_out(id->recv_cq, LAYER_CQ);
	take_out(id->send_cq_channel, LAYER_CHANNEL);
	take_out(id->recv_cq_channel, LAYER_CHANNEL);
}

static void take_out_srq(const struct rdma_cm_id *id)
{
	take_out(id->srq, LAYER_SRQ);
}

void role_cm_begin(const struct passage *passage)
{
	/* The stubs get identifiers of no backend, which may be any pointer. */
	const struct rdma_cm_id *id =
		dispatch_slot() == &stubs ? NULL : argument(&passage->call, 0);

	if (!id)
		return;
	switch (passage->call.verb) {
	case LAYER_cm_destroy_ep:
		take_out_srq(id);
		/* fall through */
	case LAYER_cm_destroy_qp:
		take_out_qp(id);
		break;
	case LAYER_cm_destroy_srq:
		take_out_srq(id);
		break;
	default:
		break;
	}
}

/* --- after the backend --- */

static bool takes_id(const struct layer_verb_info *info)
{
	return info->parameter_count &&
	       strcmp(info->parameters[0].type, "struct rdma_cm_id *") == 0;
}

/* Returns the identifier of a call that has succeeded; NULL if the call has none. */
static struct rdma_cm_id *id_of(const struct layer_call *call)
{
	switch (call->verb) {
	case LAYER_cm_destroy_id:
	case LAYER_cm_destroy_ep:
		return NULL;
	case LAYER_cm_create_ep:
		return *(struct rdma_cm_id **)argument(call, 0);
	case LAYER_cm_create_id:
	case LAYER_cm_get_request:
		return *(struct rdma_cm_id **)argument(call, 1);
	case LAYER_cm_get_cm_event:
		return (*(struct rdma_cm_event **)argument(call, 1))->id;
	default:
		return takes_id(layer_verb_info(call->verb)) ? argument(call, 0) : NULL;
	}
}

static void meet(const void *object, enum layer_kind kind, struct ibv_context *context)
{
	if (object)
		table_enter_unknown(object, kind, context);
}

static void enter_objects(const struct rdma_cm_id *id)
{
	meet(id->pd, LAYER_PD, id->verbs);
	meet(id->send_cq, LAYER_CQ, id->verbs);
	meet(id->recv_cq, LAYER_CQ, id->verbs);
	meet(id->send_cq_channel, LAYER_CHANNEL, id->verbs);
	meet(id->recv_cq_channel, LAYER_CHANNEL, id->verbs);
	meet(id->srq, LAYER_SRQ, id->verbs);
	meet(id->qp, LAYER_QP, id->verbs);
}

/* The context lives as long as the process: rdma-core librdmacm/cma.c, ucma_put_device. */
static void enter_context(struct layer_call *call, struct ibv_context *context)
{
	struct layer_entry *entry = table_enter_unknown(context, LAYER_CONTEXT, context);

	if (entry)
		shadow_context(entry, call->backend);
	entry = table_find(context, LAYER_CONTEXT);
	call->context = context;
	call->device = entry && entry->device ? entry->device->name : NULL;
}

void role_cm_ended(struct passage *passage)
{
	struct layer_call *call = &passage->call;
	struct rdma_cm_id *id;

	if (!functions[call->verb] || call->err)
		return;
	id = id_of(call);
	if (!id)
		return;
	meet(id, LAYER_ID, NULL);
	if (!id->verbs)
		return;
	enter_context(call, id->verbs);
	enter_objects(id);
}
