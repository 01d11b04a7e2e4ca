/* SPDX-License-Identifier: MIT */
/*
 * What passage_begin() and passage_end() do, for wrappers into which it is inlined: those of the functions
 * that programs call for each message.
 */
#ifndef SRC_LAYER_STEPS_H
#define SRC_LAYER_STEPS_H

#include "src/layer/passage.h"
#include "src/layer/role.h"
#include "src/verbs/dispatch.h"

#include <errno.h>

/* Fails the verb for a layer. Returns false if the verb must be called all the same, because it releases a
 * lock. */
bool passage_refuse(struct passage *passage, const struct layer *layer, int err);

/* Returns the errno of a verb's result; 0 if the verb has succeeded. */
int passage_error(const struct passage *passage, int64_t result);

/* After a failure: finds out why, for the layers. */
void passage_find_why(struct passage *passage);

/* Calls after() of the layers. */
void passage_tell(struct passage *passage);

/* As role_has(). The compiler knows that the verbs of messages have none. */
static inline __attribute__((always_inline)) bool steps_have_role(enum layer_verb verb)
{
	return verb != LAYER_post_send && verb != LAYER_post_recv && verb != LAYER_post_srq_recv &&
	       verb != LAYER_poll_cq && verb != LAYER_req_notify_cq && role_has(verb);
}

/* Sets each member of its own, so that the caller, which is set already, stays. */
static inline __attribute__((always_inline)) void steps_describe(struct layer_call *call,
								 enum layer_verb verb,
								 const struct route *route,
								 const uint64_t *arguments)
{
	const struct layer_entry *entry = route->entry;

	call->verb = verb;
	call->backend = route->backend;
	call->context = route->context;
	call->device = entry && entry->device ? entry->device->name : route->device;
	call->arguments = arguments;
	call->result = 0;
	call->err = 0;
	call->why = NULL;
}

/* Calls before() of the layers. Returns 0, or the errno with which a layer fails the verb. */
static inline __attribute__((always_inline)) int steps_ask(struct passage *passage)
{
	struct layer_call *call = &passage->call;
	unsigned int i = 0;

	passage->tells = 0;
	passage->changer = NULL;
	for (; i < LAYERS_MAX; i++) {
		struct layer *layer =
			atomic_load_explicit(&passage_layers[i], memory_order_acquire);

		if (!layer)
			break;
		call->state = 0;
		call->refusal = NULL;
		call->why = NULL;
		call->skips_after = false;
		if (layer->change)
			passage->changer = layer;
		if (layer->before) {
			const int err = layer->before(call);

			if (err && passage_refuse(passage, layer, err)) {
				passage->count = i;
				return err;
			}
		}
		if (!call->skips_after)
			passage->tells |= 1U << i;
		passage->states[i] = call->state;
		passage->layers[i] = layer;
	}
	passage->count = i;
	return 0;
}

/* See passage_begin(). */
static inline __attribute__((always_inline)) int steps_begin(struct passage *passage,
							     struct passage_thread *thread,
							     enum layer_verb verb,
							     const struct route *route,
							     const uint64_t *arguments)
{
	int refused;

	steps_describe(&passage->call, verb, route, arguments);
	passage->refused = 0;
	if (steps_have_role(verb))
		passage->ending = NULL;
	passage->saved_errno = errno;
	thread->inside = true;
	if (!thread->call)
		thread->call = dispatch_own_call();
	dispatch_begin_inline(thread->call);
	refused = steps_ask(passage);
	if (steps_have_role(verb) && !refused)
		role_begin(passage);
	errno = 0;
	return refused;
}

/* Returns true if the result alone says that the verb has succeeded. */
static inline __attribute__((always_inline)) bool steps_have_succeeded(
	enum layer_convention convention, int64_t result)
{
	switch (convention) {
	case LAYER_ERRNO:
	case LAYER_POSTED:
	case LAYER_GAI:
		return !result;
	case LAYER_POINTER:
		return result;
	case LAYER_MINUS_ONE:
	case LAYER_REREG:
	case LAYER_NEGATED:
		return result >= 0;
	default:
		return false;
	}
}

/* See passage_end_with(). convention: that of the verb. */
static inline __attribute__((always_inline)) void steps_end(
	struct passage *passage, struct passage_thread *thread, enum layer_verb verb,
	enum layer_convention convention, uint64_t result, const uint64_t *arguments)
{
	int err;

	passage->call.result = result;
	passage->call.arguments = arguments;
	if (passage->refused)
		errno = passage->refused;
	if (passage->changer)
		passage->call.result = result = passage->changer->change(&passage->call);
	if (!steps_have_succeeded(convention, (int64_t)result))
		passage->call.err = passage_error(passage, (int64_t)result);
	err = errno;
	if (passage->call.err)
		passage_find_why(passage);
	if (steps_have_role(verb))
		role_ended(passage);
	if (passage->tells || passage->call.err)
		passage_tell(passage);
	if (steps_have_role(verb) && passage->ending)
		role_end(passage);
	thread->inside = false;
	errno = err ? err : passage->saved_errno;
}

/* Returns what the verb returns, after steps_end(). */
static inline uint64_t steps_result(const struct passage *passage)
{
	return passage->call.result;
}

#endif /* SRC_LAYER_STEPS_H */
