/* SPDX-License-Identifier: MIT */
/* Objects that a program has made and not ended, and where it has made them: a layer. */
#include "src/expect/leak.h"

#include "src/base/fork.h"
#include "src/expect/report.h"
#include "src/explain/place.h"
#include "src/layer/layer.h"

#include <rdma/rdma_cma.h>
#include <stdlib.h>
#include <string.h>

#define FRAMES	  3
#define SHOWN_MAX 20

/* An object that was made. */
struct made {
	const void *object;
	enum layer_verb verb;
	const void *frames[FRAMES];
	char name[32];
	struct layer_object about;
	bool orphan; /* set when its context was closed */
};

static struct {
	pthread_mutex_t mutex;
	bool on;
	bool has_places; /* set once: place_start() may be called once only */
	struct made *list;
	size_t count, capacity;
} state = {.mutex = PTHREAD_MUTEX_INITIALIZER};

HOLD_DURING_FORK(state.mutex);

/* --- the objects --- */

/* The caller holds the mutex. */
static struct made *add(void)
{
	size_t capacity = state.capacity ? 2 * state.capacity : 64;
	struct made *list;

	if (state.count == state.capacity) {
		list = realloc(state.list, capacity * sizeof(*list));
		if (!list)
			return NULL;
		state.list = list;
		state.capacity = capacity;
	}
	return &state.list[state.count++];
}

/* An object that has the address of one that was made before takes its place. The caller holds the mutex. */
static struct made *place_for(const void *object)
{
	for (size_t i = 0; i < state.count; i++)
		if (state.list[i].object == object && !state.list[i].orphan)
			return &state.list[i];
	return add();
}

static void remember(const struct layer_call *call, const void *object)
{
	struct made *made;

	pthread_mutex_lock(&state.mutex);
	made = place_for(object);
	if (made) {
		*made = (struct made){.object = object, .verb = call->verb};
		place_callers(made->frames, FRAMES);
		layer_object_name(object, made->name, sizeof(made->name));
		layer_object_find(object, &made->about);
	}
	pthread_mutex_unlock(&state.mutex);
}

/* The table of the layers says which of the objects are left; see vb_expect_no_leaks(). */
static bool is_left(const struct made *made)
{
	struct layer_object found;

	if (made->orphan)
		return true;
	return layer_object_find(made->object, &found) && found.number == made->about.number &&
	       !strcmp(found.kind, made->about.kind);
}

static void forget_ended(void)
{
	size_t kept = 0;

	pthread_mutex_lock(&state.mutex);
	for (size_t i = 0; i < state.count; i++)
		if (is_left(&state.list[i]))
			state.list[kept++] = state.list[i];
	state.count = kept;
	pthread_mutex_unlock(&state.mutex);
}

/* --- the layer --- */

/* What a function of the connection manager has made: in the place that an argument points to, or as the QP of
 * its identifier. */
static const void *made_by_cm(const struct layer_call *call)
{
	const uint64_t *arguments = call->arguments;

	switch (call->verb) {
	case LAYER_cm_create_id:
	case LAYER_cm_get_request:
		return *(const void *const *)(uintptr_t)arguments[1];
	case LAYER_cm_create_ep:
		return *(const void *const *)(uintptr_t)arguments[0];
	case LAYER_cm_create_qp:
	case LAYER_cm_create_qp_ex:
		return ((const struct rdma_cm_id *)(uintptr_t)arguments[0])->qp;
	default:
		return NULL;
	}
}

/* Returns the object that the call has made; NULL: none. */
static const void *made_by(const struct layer_call *call)
{
	const enum layer_convention convention = layer_verb_info(call->verb)->convention;
	const void *object;
	struct layer_object found;

	if (call->err)
		return NULL;
	if (convention == LAYER_POINTER || convention == LAYER_OPTIONAL)
		object = (const void *)(uintptr_t)call->result;
	else
		object = made_by_cm(call);
	return object && layer_object_find(object, &found) ? object : NULL;
}

/*
 * Closing a device ends the objects that the program has left in it, and takes them out of the table. The
 * program has not ended them: they are leaks.
 */
static void mark(const void *context, bool orphan)
{
	pthread_mutex_lock(&state.mutex);
	for (size_t i = 0; i < state.count; i++) {
		struct made *made = &state.list[i];

		if (made->about.context == context && made->object != context &&
		    (!orphan || is_left(made)))
			made->orphan = orphan;
	}
	pthread_mutex_unlock(&state.mutex);
}

static void after(const struct layer_call *call)
{
	const void *object = made_by(call);

	if (call->verb == LAYER_close_device && call->err)
		mark((const void *)(uintptr_t)call->arguments[0], false);
	if (object)
		remember(call, object);
}

static int before(struct layer_call *call)
{
	if (call->verb == LAYER_close_device)
		mark((const void *)(uintptr_t)call->arguments[0], true);
	return 0;
}

static struct layer layer = {.name = "leaks", .before = before, .after = after};

int leak_begin(void)
{
	int err = state.on ? 0 : layer_add(&layer);

	if (err)
		return err;
	if (!state.has_places)
		place_start();
	state.has_places = true;
	state.on = true;
	state.count = 0;
	return 0;
}

void leak_end(void)
{
	if (!state.on)
		return;
	layer_remove(&layer);
	state.on = false;
	free(state.list);
	state.list = NULL;
	state.count = state.capacity = 0;
}

/* --- the check --- */

static void say(const struct made *made)
{
	struct place place;

	place_describe(layer_verb_info(made->verb)->name, made->frames, FRAMES, &place);
	expect_say("\n  %s", made->name);
	if (made->about.device)
		expect_say(" of %s", made->about.device);
	expect_say(", made by %s", place.verb[0] ? place.verb : layer_verb_info(made->verb)->name);
	if (place.text[0])
		expect_say(" in %s", place.text);
}

bool vb_expect_no_leaks_at(const char *file, int line)
{
	const struct expect_place place = {file, line};
	size_t count;

	if (!state.on)
		return expect_fail_with(place,
					"no objects are watched; call vb_expect_begin() before "
					"the verbs that make them");
	forget_ended();
	count = state.count;
	if (!count)
		return true;
	expect_begin_message();
	expect_say("%zu object%s left, which the program has made and not destroyed:", count,
		   count == 1 ? " is" : "s are");
	for (size_t i = 0; i < count && i < SHOWN_MAX; i++)
		say(&state.list[i]);
	if (count > SHOWN_MAX)
		expect_say("\n  ... and %zu more", count - SHOWN_MAX);
	/* The next test begins without them. */
	state.count = 0;
	return expect_fail(place);
}
