/* SPDX-License-Identifier: MIT */
#include "src/layer/passage.h"

#include "src/base/failure.h"
#include "src/layer/shadow.h"
#include "src/layer/slots.h"
#include "src/layer/steps.h"
#include "src/verbs/dispatch.h"
#include "src/verbs/objects.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <verbena/error.h>

struct layer *_Atomic passage_layers[LAYERS_MAX];
static atomic_uint layer_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* held while the two above change */

_Thread_local struct passage_thread passage_thread;

/* --- adding and removing --- */

static void shadow_open_context(struct ibv_context *context, const struct vb_backend *slot)
{
	struct layer_entry *entry = table_enter(context, LAYER_CONTEXT, context);

	if (entry)
		shadow_context(entry, slots_original(slot));
}

static bool is_added(const struct layer *layer)
{
	for (unsigned int i = 0; i < atomic_load(&layer_count); i++)
		if (atomic_load(&passage_layers[i]) == layer)
			return true;
	return false;
}

bool passage_may_change(void)
{
	for (unsigned int i = 0; i < atomic_load(&layer_count); i++) {
		const struct layer *layer = atomic_load(&passage_layers[i]);

		if (layer && layer->change)
			return true;
	}
	return false;
}

/* Inserts the layer after `count` others, but before the lowest. */
static void put(struct layer *layer, unsigned int count)
{
	struct layer *last = count ? atomic_load(&passage_layers[count - 1]) : NULL;

	if (last && last->lowest) {
		atomic_store(&passage_layers[count], last);
		atomic_store(&passage_layers[count - 1], layer);
	} else {
		atomic_store(&passage_layers[count], layer);
	}
	atomic_store(&layer_count, count + 1);
}

int layer_add(struct layer *layer)
{
	unsigned int count;
	int err = 0;

	pthread_mutex_lock(&lock);
	count = atomic_load(&layer_count);
	if (is_added(layer))
		err = EEXIST;
	else if (count == LAYERS_MAX)
		err = ENOMEM;
	if (!err)
		put(layer, count);
	if (!err && !count) {
		role_start();
		slots_dress();
		objects_each_context(shadow_open_context);
	}
	pthread_mutex_unlock(&lock);
	return err;
}

static void forget(struct layer_entry *entry, const void *arg)
{
	shadow_hide(entry);
	shadow_drop(entry);
	table_remove(entry, entry->serial);
}

void layer_remove(struct layer *layer)
{
	unsigned int count, i = 0;

	pthread_mutex_lock(&lock);
	count = atomic_load(&layer_count);
	while (i < count && atomic_load(&passage_layers[i]) != layer)
		i++;
	if (i < count) {
		for (; i + 1 < count; i++)
			atomic_store(&passage_layers[i], atomic_load(&passage_layers[i + 1]));
		atomic_store(&layer_count, count - 1);
		atomic_store(&passage_layers[count - 1], NULL);
		if (count == 1) {
			slots_undress();
			table_each(forget, NULL);
			shadow_regain_sight();
		}
	}
	pthread_mutex_unlock(&lock);
}

/* --- a call --- */

static void say_refused(const struct layer *layer, const struct layer_call *call, int err)
{
	const char *verb = layer_verb_info(call->verb)->name;

	if (call->why)
		dispatch_why(*call->why);
	else if (call->refusal)
		dispatch_say("%s: layer %s: %s", verb, layer->name, call->refusal);
	else
		dispatch_say("%s: the layer %s makes the call fail with %s", verb, layer->name,
			     strerrorname_np(err) ?: "an errno that does not exist");
}

/* wr_abort and end_poll release a lock. */
bool passage_refuse(struct passage *passage, const struct layer *layer, int err)
{
	if (passage->call.verb == LAYER_wr_abort || passage->call.verb == LAYER_end_poll)
		return false;
	passage->refused = err;
	say_refused(layer, &passage->call, err);
	return true;
}

int passage_begin(struct passage *passage, enum layer_verb verb, const struct route *route,
		  const uint64_t *arguments)
{
	return steps_begin(passage, &passage_thread, verb, route, arguments);
}

/* Returns errno for conventions that do not return it; EIO if the backend has set none. */
static int errno_or_eio(void)
{
	return errno ? errno : EIO;
}

int passage_error(const struct passage *passage, int64_t result)
{
	switch (layer_convention_of(passage->call.verb)) {
	case LAYER_ERRNO:
	case LAYER_POSTED:
		/* Not a failure: the CQ is empty. */
		if (result == ENOENT && (passage->call.verb == LAYER_start_poll ||
					 passage->call.verb == LAYER_next_poll))
			return 0;
		return result < 0 ? errno_or_eio() : (int)result;
	case LAYER_POINTER:
		return result ? 0 : errno_or_eio();
	case LAYER_MINUS_ONE:
	case LAYER_REREG:
		return result < 0 ? errno_or_eio() : 0;
	case LAYER_GAI:
		return result ? errno_or_eio() : 0;
	case LAYER_NEGATED:
		return result < 0 ? (int)-result : 0;
	default:
		/* The result does not tell a failure from a success. */
		return dispatch_said() ? errno : 0;
	}
}

/* The sentence that the thread has now. */
static const struct vb_why *present_sentence(struct vb_why *why, const char *text)
{
	*why = (struct vb_why){.reason = VB_WHY_SAID, .text = text};
	return why;
}

/* Returns the reason of this call's failure, not that of an earlier call. */
static const struct vb_why *why_of(struct passage *passage)
{
	const struct vb_backend *backend = passage->call.backend;
	const struct vb_why *why;
	const char *text;

	if (dispatch_said()) {
		why = failure_last_why();
		return why ? why : present_sentence(&passage->why, vb_last_error());
	}
	/* A backend with listen() reports each failure itself; this time it has reported none. */
	if (backend->listen)
		return NULL;
	why = backend->last_why ? backend->last_why() : NULL;
	if (why && why->reason != VB_WHY_NONE)
		return why;
	text = backend->last_error ? backend->last_error() : NULL;
	return text && *text ? present_sentence(&passage->why, text) : NULL;
}

void passage_tell(struct passage *passage)
{
	struct layer_call *call = &passage->call;
	const unsigned int tells = call->err ? ~0U : passage->tells;

	for (unsigned int i = passage->count; i--;) {
		struct layer *layer = passage->layers[i];

		call->state = passage->states[i];
		/* A layer may have been removed while the verb waited. */
		if (tells >> i & 1 && layer->after &&
		    (atomic_load(&passage_layers[i]) == layer || is_added(layer)))
			layer->after(call);
	}
}

void passage_find_why(struct passage *passage)
{
	passage->call.why = why_of(passage);
}

void passage_end_with(struct passage *passage, uint64_t result, const uint64_t *arguments)
{
	const enum layer_verb verb = passage->call.verb;

	steps_end(passage, &passage_thread, verb, layer_convention_of(verb), result, arguments);
}

void passage_end(struct passage *passage, uint64_t result)
{
	passage_end_with(passage, result, passage->call.arguments);
}

uint64_t layer_now_ns(const struct layer_call *call)
{
	struct timespec now;

	if (call->backend->now_ns && call->context)
		return call->backend->now_ns(call->context);
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* --- names of objects --- */

bool layer_object_find(const void *object, struct layer_object *found)
{
	const struct layer_entry *entry = table_find(object, LAYER_NO_KIND);

	if (!entry)
		return false;
	*found = (struct layer_object){
		.kind = layer_kind_names[entry->kind],
		.number = entry->number,
		.qpn = entry->kind == LAYER_QP ? entry->number : 0,
		.context = entry->context,
		.device = entry->device ? entry->device->name : NULL,
	};
	return true;
}

const char *layer_object_name(const void *object, char *text, size_t size_bytes)
{
	struct layer_object found;

	if (!layer_object_find(object, &found))
		snprintf(text, size_bytes, "%s", "");
	else if (strcmp(found.kind, layer_kind_names[LAYER_QP]) == 0)
		snprintf(text, size_bytes, "qp 0x%x", found.qpn);
	else
		snprintf(text, size_bytes, "%s%u", found.kind, found.number);
	return text;
}
