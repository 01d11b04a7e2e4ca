/* SPDX-License-Identifier: MIT */
/* The states of an identifier, and the calls that each of them allows. */
#include "backends/sim/cm/private.h"

#include <stdio.h>
#include <string.h>

static const char *const names[CM_STATES] = {
	[CM_IDLE] = "IDLE",
	[CM_ADDR_QUERY] = "ADDR_QUERY",
	[CM_ADDR_RESOLVED] = "ADDR_RESOLVED",
	[CM_ROUTE_QUERY] = "ROUTE_QUERY",
	[CM_ROUTE_RESOLVED] = "ROUTE_RESOLVED",
	[CM_CONNECT] = "CONNECT",
	[CM_DISCONNECT] = "DISCONNECT",
	[CM_ADDR_BOUND] = "ADDR_BOUND",
	[CM_LISTEN] = "LISTEN",
	[CM_DEVICE_REMOVAL] = "DEVICE_REMOVAL",
};

#define IN(state) (1u << CM_##state)

/* Linux drivers/infiniband/core/cma.c: the arguments of cma_comp() and cma_comp_exch(). A call that is not
 * here is allowed in all states but DEVICE_REMOVAL. */
static const struct {
	const char *call;
	unsigned int states;
} rules[] = {
	{"bind_addr", IN(IDLE)},
	{"resolve_addr", IN(IDLE) | IN(ADDR_BOUND)},
	{"resolve_route", IN(ADDR_RESOLVED)},
	{"listen", IN(IDLE) | IN(ADDR_BOUND)},
	{"connect", IN(ROUTE_RESOLVED)},
	{"accept", IN(CONNECT)},
	{"establish", IN(CONNECT)},
	{"join_multicast", IN(ADDR_BOUND) | IN(ADDR_RESOLVED)},
};

static unsigned int allowed(const char *call)
{
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		if (strcmp(rules[i].call, call) == 0)
			return rules[i].states;
	return UINT32_MAX;
}

const char *cm_state_name(enum cm_state state)
{
	return names[state];
}

/* Writes the names of the states: "IDLE or ADDR_BOUND". */
static void list_states(unsigned int states, char *text, size_t size_bytes)
{
	size_t used = 0;

	text[0] = '\0';
	for (enum cm_state state = 0; state < CM_STATES; state++)
		if (states & 1u << state && used < size_bytes)
			used += (size_t)snprintf(text + used, size_bytes - used, "%s%s",
						 used ? " or " : "", names[state]);
}

int cm_check_state(const struct cm_id *id, const char *call)
{
	const unsigned int states = allowed(call);
	char text[128];
	char wanted[64];

	if (id->cm->world->retired)
		return refuse_plainly(call, VB_WHY_WORLD_ENDED);
	if (id->state == CM_DEVICE_REMOVAL)
		return refuse_name(call, VB_WHY_CM_REMOVED, call);
	if (states & 1u << id->state)
		return 0;
	list_states(states, wanted, sizeof(wanted));
	snprintf(text, sizeof(text), "%s, and %s needs %s", names[id->state], call, wanted);
	return refuse_name(call, VB_WHY_CM_ID_STATE, text);
}

const char *cm_event_name(enum rdma_cm_event_type event)
{
	static const char *const events[] = {
		[RDMA_CM_EVENT_ADDR_RESOLVED] = "ADDR_RESOLVED",
		[RDMA_CM_EVENT_ADDR_ERROR] = "ADDR_ERROR",
		[RDMA_CM_EVENT_ROUTE_RESOLVED] = "ROUTE_RESOLVED",
		[RDMA_CM_EVENT_ROUTE_ERROR] = "ROUTE_ERROR",
		[RDMA_CM_EVENT_CONNECT_REQUEST] = "CONNECT_REQUEST",
		[RDMA_CM_EVENT_CONNECT_RESPONSE] = "CONNECT_RESPONSE",
		[RDMA_CM_EVENT_CONNECT_ERROR] = "CONNECT_ERROR",
		[RDMA_CM_EVENT_UNREACHABLE] = "UNREACHABLE",
		[RDMA_CM_EVENT_REJECTED] = "REJECTED",
		[RDMA_CM_EVENT_ESTABLISHED] = "ESTABLISHED",
		[RDMA_CM_EVENT_DISCONNECTED] = "DISCONNECTED",
		[RDMA_CM_EVENT_DEVICE_REMOVAL] = "DEVICE_REMOVAL",
		[RDMA_CM_EVENT_MULTICAST_JOIN] = "MULTICAST_JOIN",
		[RDMA_CM_EVENT_MULTICAST_ERROR] = "MULTICAST_ERROR",
		[RDMA_CM_EVENT_ADDR_CHANGE] = "ADDR_CHANGE",
		[RDMA_CM_EVENT_TIMEWAIT_EXIT] = "TIMEWAIT_EXIT",
	};

	return events[event];
}
