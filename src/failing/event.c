/* SPDX-License-Identifier: MIT */
/* Events that a rule raises when a call returns, by the functions of <verbena/sim.h>. */
#include "src/failing/rules.h"

#include <verbena/sim.h>

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
		return false;
	}
}

static void raise_one(struct ibv_context *context, const struct fail_rule *rule)
{
	switch (rule->event) {
	case IBV_EVENT_PORT_ERR:
	case IBV_EVENT_PORT_ACTIVE:
		vb_sim_port_state(context, rule->port_num, rule->event == IBV_EVENT_PORT_ACTIVE);
		return;
	case IBV_EVENT_DEVICE_FATAL:
		vb_sim_kill_device(context);
		return;
	default:
		vb_sim_port_event(context, rule->port_num, rule->event);
	}
}

void event_raise(const struct layer_call *call)
{
	const struct fail_question question = {.action = VB_FAIL_EVENT, .call = call};
	struct fail_rule rule;

	if (call->context && rules_ask(&question, &rule))
		raise_one(call->context, &rule);
}
