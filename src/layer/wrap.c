/* SPDX-License-Identifier: MIT */
/*
 * The wrappers, two for each verb, made from the rows of verbs.def:
 *
 *	slot_<name>	in the slots of all backends: finds the backend as vb_<name>() has found it
 *	object_<name>	in the objects of a context: finds the original in the shadow of the context
 */
#include "src/layer/pass.h"
#include "src/layer/shadow.h"
#include "src/layer/slots.h"
#include "src/verbs/dispatch.h"
#include "src/verbs/registry.h"
#include "src/verbs/stubs.h"

#include <stdlib.h>
#include <sys/types.h>

/* --- the way from a verb's parameters to its backend --- */

/* The original functions of a context. */
struct context_shadow {
	struct shadow shadow;
	struct ibv_context_ops ops;
	struct verbs_context verbs;
};

static const struct context_shadow *shadow_of(const struct layer_entry *entry)
{
	return entry ? atomic_load_explicit(&entry->shadow, memory_order_acquire) : NULL;
}

/* The number of the slot whose function the thread has called, for verbs without a context. */
static _Thread_local unsigned int named;

static struct route route_named(const struct ibv_device *device)
{
	struct route route = {.backend = slots_at(named)};

	/* A device of no backend may be any pointer, so its name is not read. */
	if (device && route.backend != slots_original(NULL))
		route.device = device->name;
	return route;
}

/*
 * Finds the backend of a context. A program that calls the slot's function itself has not been dispatched:
 * then the context tells the backend, if it was opened under layers or if the verbs layer knows it.
 */
static struct route route_to(struct ibv_context *context)
{
	const struct vb_backend *slot = dispatch_slot();
	const struct layer_entry *entry = table_find(context, LAYER_CONTEXT);
	const struct context_shadow *shadow = slot ? NULL : shadow_of(entry);

	return (struct route){
		.backend = shadow ? shadow->shadow.backend
			   : slot ? slots_original(slot)
				  : slots_context_original(context),
		.context = context,
		.entry = entry,
	};
}

static struct route route_event(const struct ibv_async_event *event)
{
	const struct ibv_context *context = NULL;

	if (event && dispatch_slot() != &stubs)
		dispatch_event_context(event, &context);
	return route_to((struct ibv_context *)context);
}

/* The verbs layer calls the stubs with an object of no backend, which may be any pointer. */
#define ROUTE_CONTEXT(name, object)	     route_to(dispatch_slot() == &stubs ? NULL : (object))
#define ROUTE_OBJECT(name, object)	     ROUTE_CONTEXT(name, (object)->context)
#define ROUTE_INLINE(name, object)	     ROUTE_CONTEXT(name, (object)->context)
#define ROUTE_DEVICE(name, object)	     route_named(object)
#define ROUTE_NAMED(name, object)	     route_named(NULL)
#define ROUTE_BY_HAND(name, object)	     ROUTE_BY_HAND_##name(object)
#define ROUTE_BY_HAND_free_device_list(list) route_named(NULL)
#define ROUTE_BY_HAND_open_device(device)    route_named(device)
#define ROUTE_BY_HAND_close_device(context)  ROUTE_CONTEXT(close_device, context)
#define ROUTE_BY_HAND_ack_async_event(event) route_event(event)

/* --- in the slots --- */

#define VB_VERB(result, name, parameters, arguments, convention, by, object)  \
	static result slot_##name parameters                                  \
	{                                                                     \
		const struct route route = ROUTE_##by(name, object);          \
                                                                              \
		PASS_##convention(result, name, arguments, convention, route, \
				  route.backend->name);                       \
	}
#include <verbena/verbs.def>

/* Verbs without a context have a wrapper for each slot, by the number of its row in slots.c. */
#define EACH_SLOT(X, ...)  \
	X(0, __VA_ARGS__)  \
	X(1, __VA_ARGS__)  \
	X(2, __VA_ARGS__)  \
	X(3, __VA_ARGS__)  \
	X(4, __VA_ARGS__)  \
	X(5, __VA_ARGS__)  \
	X(6, __VA_ARGS__)  \
	X(7, __VA_ARGS__)  \
	X(8, __VA_ARGS__)  \
	X(9, __VA_ARGS__)  \
	X(10, __VA_ARGS__) \
	X(11, __VA_ARGS__) \
	X(12, __VA_ARGS__) \
	X(13, __VA_ARGS__) \
	X(14, __VA_ARGS__) \
	X(15, __VA_ARGS__) \
	X(16, __VA_ARGS__)
_Static_assert(REGISTRY_MAX == 16, "EACH_SLOT() has a row for each slot and one for the stubs");

#define NAMED_FUNCTION(number, result, name, parameters, arguments) \
	static result slot_##name##_##number parameters             \
	{                                                           \
		named = number;                                     \
		return slot_##name arguments;                       \
	}
#define NAMED_ADDRESS(number, name) slot_##name##_##number,
#define NAMED(result, name, parameters, arguments)                     \
	EACH_SLOT(NAMED_FUNCTION, result, name, parameters, arguments) \
	static __typeof__(result parameters) *const named_##name[] = { \
		EACH_SLOT(NAMED_ADDRESS, name)};

#define BY_CONTEXT(...)
#define BY_OBJECT(...)
#define BY_INLINE(...)
#define BY_DEVICE(...) NAMED(__VA_ARGS__)
#define BY_NAMED(...)  NAMED(__VA_ARGS__)
#define BY_BY_HAND(result, name, parameters, ...) \
	BY_HAND_##name(result, name, parameters, __VA_ARGS__)
#define BY_HAND_free_device_list(...) NAMED(__VA_ARGS__)
#define BY_HAND_open_device(...)      NAMED(__VA_ARGS__)
#define BY_HAND_close_device(...)
#define BY_HAND_ack_async_event(...)
#define VB_VERB(result, name, parameters, arguments, convention, by, object) \
	BY_##by(result, name, parameters, arguments)
#include <verbena/verbs.def>

/* The wrapper of a verb in slot number `number`. */
#define IN_SLOT_CONTEXT(name, number)		       slot_##name
#define IN_SLOT_OBJECT(name, number)		       slot_##name
#define IN_SLOT_INLINE(name, number)		       slot_##name
#define IN_SLOT_DEVICE(name, number)		       named_##name[number]
#define IN_SLOT_NAMED(name, number)		       named_##name[number]
#define IN_SLOT_BY_HAND(name, number)		       IN_SLOT_BY_HAND_##name(name, number)
#define IN_SLOT_BY_HAND_free_device_list(name, number) named_##name[number]
#define IN_SLOT_BY_HAND_open_device(name, number)      named_##name[number]
#define IN_SLOT_BY_HAND_close_device(name, number)     slot_##name
#define IN_SLOT_BY_HAND_ack_async_event(name, number)  slot_##name

void wrap_put(struct vb_backend *slot, struct vb_backend *original, unsigned int number)
{
#define VB_VERB(result, name, parameters, arguments, convention, by, object) \
	if (slot->name != IN_SLOT_##by(name, number))                        \
		original->name = slot->name;                                 \
	slot->name = IN_SLOT_##by(name, number);
#include <verbena/verbs.def>
	wrap_put_cm(slot, original);
}

void wrap_take_out(struct vb_backend *slot, const struct vb_backend *original, unsigned int number)
{
#define VB_VERB(result, name, parameters, arguments, convention, by, object) \
	if (slot->name == IN_SLOT_##by(name, number))                        \
		slot->name = original->name;
#include <verbena/verbs.def>
	wrap_take_out_cm(slot, original);
}

/* --- in the objects of a context --- */

/* A context without a shadow is a program's copy of one, or all layers are gone. */
static inline __attribute__((always_inline)) struct route route_of_inline(
	struct ibv_context *context)
{
	const struct layer_entry *entry = table_find(context, LAYER_CONTEXT);
	const struct context_shadow *shadow = shadow_of(entry);

	return (struct route){
		.backend = shadow ? shadow->shadow.backend : slots_context_original(context),
		.context = context,
		.entry = entry,
	};
}

static struct route route_of(struct ibv_context *context)
{
	return route_of_inline(context);
}

/* The original function in the shadow; without a shadow, that of the backend. */
#define ORIGINAL(route, member, name)                                              \
	({                                                                         \
		const struct context_shadow *shadow = shadow_of((route).entry);    \
		shadow && shadow->member ? shadow->member : (route).backend->name; \
	})

#define OBJECT_WRAPPER(result, name, parameters, arguments, convention, context, member) \
	static result object_##name parameters                                           \
	{                                                                                \
		const struct route route = route_of(context);                            \
		__typeof__(result parameters) *original = ORIGINAL(route, member, name); \
                                                                                         \
		PASS_##convention(result, name, arguments, convention, route, original); \
	}

#define INLINE_WRAPPER(result, name, parameters, arguments, convention, context)           \
	static result object_##name parameters                                             \
	{                                                                                  \
		const struct route route = route_of_inline(context);                       \
		__typeof__(result parameters) *original = ORIGINAL(route, ops.name, name); \
                                                                                           \
		PASS_INLINE(result, name, arguments, convention, route, original);         \
	}

#define CONTEXT_OF_CONTEXT(object) (object)
#define CONTEXT_OF_OBJECT(object)  ((object)->context)
#define CONTEXT_OF_INLINE(object)  ((object)->context)

#define VB_VERB(...)
#define VB_EXPORT(...)
#define VB_EXTENDED(result, name, parameters, arguments, convention, by, object, op)             \
	OBJECT_WRAPPER(result, name, parameters, arguments, convention, CONTEXT_OF_##by(object), \
		       verbs.op)
#define VB_BASIC(result, name, parameters, arguments, convention, by, object) \
	INLINE_WRAPPER(result, name, parameters, arguments, convention, CONTEXT_OF_##by(object))
#include <verbena/verbs.def>

/*
 * These two are for programs that were built with an old libibverbs, where ibv_query_device() and
 * ibv_query_port() were inline: rdma-core libibverbs/device.c, set_lib_ops.
 */
static int object_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	const struct route route = route_of(context);
	__typeof__(int(struct ibv_context *, struct ibv_device_attr *)) *original =
		ORIGINAL(route, ops._compat_query_device, query_device);

	PASS_VALUE(int, query_device, (context, attr), ERRNO, route, original);
}

/* The structure of these programs ends before port_cap_flags2. */
static int query_short_port(struct ibv_context *context, uint8_t port_num,
			    struct ibv_port_attr *attr, size_t attr_size)
{
	const struct route route = route_of(context);
	const struct context_shadow *shadow = shadow_of(route.entry);

	if (shadow && shadow->ops._compat_query_port)
		return shadow->ops._compat_query_port(context, port_num,
						      (struct _compat_ibv_port_attr *)attr);
	return route.backend->query_port(context, port_num, attr, attr_size);
}

static int pass_short_port(struct ibv_context *context, uint8_t port_num,
			   struct ibv_port_attr *attr, size_t attr_size)
{
	const struct route route = route_of(context);

	PASS_VALUE(int, query_port, (context, port_num, attr, attr_size), ERRNO, route,
		   query_short_port);
}

static int object_query_short_port(struct ibv_context *context, uint8_t port_num,
				   struct _compat_ibv_port_attr *attr)
{
	return pass_short_port(context, port_num, (struct ibv_port_attr *)attr,
			       offsetof(struct ibv_port_attr, port_cap_flags2));
}

static void act(struct layer_entry *entry, struct shadow *shadow, enum shadow_act what)
{
	struct context_shadow *kept = (struct context_shadow *)shadow;
	struct ibv_context *context = entry->context;

	SHADOW_POINTER(what, context->ops._compat_query_device, kept->ops._compat_query_device,
		       object_query_device);
	SHADOW_POINTER(what, context->ops._compat_query_port, kept->ops._compat_query_port,
		       object_query_short_port);
	/* struct verbs_context may be shorter than ours: verbs_get_ctx_op() compares the size. */
#define VB_VERB(...)
#define VB_EXPORT(...)
#define VB_EXTENDED(result, name, parameters, arguments, convention, by, object, op)    \
	{                                                                               \
		struct verbs_context *verbs = verbs_get_ctx_op(context, op);            \
                                                                                        \
		if (verbs)                                                              \
			SHADOW_POINTER(what, verbs->op, kept->verbs.op, object_##name); \
	}
#define VB_BASIC(result, name, parameters, arguments, convention, by, object) \
	SHADOW_POINTER(what, context->ops.name, kept->ops.name, object_##name);
#include <verbena/verbs.def>
}

static void end_shadow(struct shadow *shadow)
{
	free(shadow);
}

void shadow_context(struct layer_entry *entry, const struct vb_backend *backend)
{
	struct context_shadow *context = calloc(1, sizeof(*context));

	if (!context) {
		shadow_lose_sight();
		return;
	}
	context->shadow = (struct shadow){.act = act, .end = end_shadow, .backend = backend};
	shadow_begin(entry, &context->shadow);
}
