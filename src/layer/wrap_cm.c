/* SPDX-License-Identifier: MIT */
/*
 * The wrappers of the connection manager's functions, made from the rows of cm.def. A slot has one
 * table of them in place of its own.
 */
#include "src/cm/dispatch.h"
#include "src/layer/pass.h"
#include "src/layer/slots.h"
#include "src/verbs/dispatch.h"
#include "src/verbs/stubs.h"

/* --- the way from a function's parameters to its backend --- */

static struct route route_plain(void)
{
	return (struct route){.backend = slots_original(dispatch_slot())};
}

/* With the stubs, the identifier may be any pointer. */
static struct route route_id(const struct rdma_cm_id *id)
{
	struct route route = route_plain();

	if (dispatch_slot() != &stubs) {
		route.context = id->verbs;
		route.entry = table_find(id->verbs, LAYER_CONTEXT);
	}
	return route;
}

#define ROUTE_ID(name, object)			    route_id(object)
#define ROUTE_NAMED(name, object)		    route_plain()
#define ROUTE_BY_HAND(name, object)		    ROUTE_BY_HAND_##name(object)
#define ROUTE_BY_HAND_destroy_event_channel(object) route_plain()
#define ROUTE_BY_HAND_get_cm_event(object)	    route_plain()
#define ROUTE_BY_HAND_ack_cm_event(object)	    route_plain()
#define ROUTE_BY_HAND_destroy_id(object)	    route_id(object)
#define ROUTE_BY_HAND_destroy_ep(object)	    route_id(object)
#define ROUTE_BY_HAND_migrate_id(object)	    route_id(object)
#define ROUTE_BY_HAND_get_request(object)	    route_id(object)
#define ROUTE_BY_HAND_freeaddrinfo(object)	    route_plain()
#define ROUTE_BY_HAND_free_devices(object)	    route_plain()

/* --- the wrappers --- */

/* Layers see the reason of a failure. */
static int explained_getaddrinfo(const char *node, const char *service,
				 const struct rdma_addrinfo *hints, struct rdma_addrinfo **res)
{
	const int answer =
		CM(slots_original(dispatch_slot()), getaddrinfo)(node, service, hints, res);

	explain_gai(answer);
	return answer;
}

#define ORIGINAL_MINUS_ONE(backend, name) CM(backend, name)
#define ORIGINAL_POINTER(backend, name)	  CM(backend, name)
#define ORIGINAL_NOTHING(backend, name)	  CM(backend, name)
#define ORIGINAL_GAI(backend, name)	  explained_##name

#define VB_CM(result, name, parameters, arguments, convention, by, object, version) \
	static result pass_##name parameters                                        \
	{                                                                           \
		const struct route route = ROUTE_##by(name, object);                \
                                                                                    \
		PASS_##convention(result, cm_##name, arguments, convention, route,  \
				  (ORIGINAL_##convention(route.backend, name)));    \
	}
#include <verbena/cm.def>

static const struct vb_cm_backend wrappers = {
#define VB_CM(result, name, parameters, arguments, convention, by, object, version) \
	.name = pass_##name,
#include <verbena/cm.def>
};

void wrap_put_cm(struct vb_backend *slot, struct vb_backend *original)
{
	if (slot->cm != &wrappers)
		original->cm = slot->cm;
	slot->cm = &wrappers;
}

void wrap_take_out_cm(struct vb_backend *slot, const struct vb_backend *original)
{
	if (slot->cm == &wrappers)
		slot->cm = original->cm;
}
