/* SPDX-License-Identifier: MIT */
/* Events that a rule raises when a call returns, by the functions of <verbena/sim.h>. */
#include "src/failing/rules.h"

#include "src/base/async_event.h"
#include "src/layer/role.h"
#include "src/layer/table.h"

#include <verbena/sim.h>

/* Returns the kind of the object that an event is of; LAYER_NO_KIND: of a port or device. */
static enum layer_kind kind_of(enum ibv_event_type event)
{
	switch (async_event_of(event)) {
	case EVENT_OF_QP:
		return LAYER_QP;
	case EVENT_OF_CQ:
		return LAYER_CQ;
	case EVENT_OF_SRQ:
		return LAYER_SRQ;
	default:
		return LAYER_NO_KIND;
	}
}

bool event_has_object(enum ibv_event_type event)
{
	return kind_of(event) != LAYER_NO_KIND;
}

bool event_has_qp(enum ibv_event_type event)
{
	return kind_of(event) == LAYER_QP;
}

bool event_is_known(enum ibv_event_type event)
{
	switch (event) {
	case IBV_EVENT_PORT_ERR:
	case IBV_EVENT_PORT_ACTIVE:
	case IBV_EVENT_SM_CHANGE:
	case IBV_EVENT_CLIENT_REREGISTER:
	case IBV_EVENT_DEVICE_FATAL:
		return true;
	default:
		return event_has_object(event);
	}
}

/* Returns the object that the call has made, or that its first argument names; NULL: none of the kind. */
static const void *own_object(const struct layer_call *call, enum layer_kind kind)
{
	const void *first = (const void *)(uintptr_t)call->arguments[0];

	if (role_makes(call->verb) != LAYER_NO_KIND)
		return role_makes(call->verb) == kind ? (const void *)(uintptr_t)call->result
						      : NULL;
	return table_find(first, kind) ? first : NULL;
}

/* Returns the object of the rule's event; NULL: there is none. The caller may hold the lock of the rules: the
 * table of objects is read without a lock. */
static const void *target_of(const struct layer_call *call, const struct fail_rule *rule)
{
	const enum layer_kind kind = kind_of(rule->event);

	if (!call->device || layer_verb_ends(call->verb))
		return NULL;
	if (rule->qpn)
		return table_find_qpn(call->device, rule->qpn);
	if (rule->object)
		return table_find_place(kind, call->device, rule->object);
	return own_object(call, kind);
}

bool event_reaches(const struct layer_call *call, const struct fail_rule *rule)
{
	return !event_has_object(rule->event) || target_of(call, rule);
}

static void raise_for_object(const void *object, enum ibv_event_type type)
{
	struct ibv_async_event event = {.event_type = type};

	/* A union of pointers: also of a QP and an SRQ. */
	event.element.cq = (struct ibv_cq *)(uintptr_t)object;
	if (object)
		vb_sim_object_event(&event);
}

static void raise_one(const struct layer_call *call, const struct fail_rule *rule)
{
	struct ibv_context *context = call->context;

	switch (rule->event) {
	case IBV_EVENT_PORT_ERR:
	case IBV_EVENT_PORT_ACTIVE:
		vb_sim_port_state(context, rule->port_num, rule->event == IBV_EVENT_PORT_ACTIVE);
		return;
	case IBV_EVENT_DEVICE_FATAL:
		vb_sim_kill_device(context);
		return;
	default:
		if (event_has_object(rule->event))
			raise_for_object(target_of(call, rule), rule->event);
		else
			vb_sim_port_event(context, rule->port_num, rule->event);
	}
}

void event_raise(const struct layer_call *call)
{
	const struct fail_question question = {.action = VB_FAIL_EVENT, .call = call};
	struct fail_rule rule;

	if (call->context && rules_ask(&question, &rule))
		raise_one(call, &rule);
}
