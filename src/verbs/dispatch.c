/* SPDX-License-Identifier: MIT */
#include "src/verbs/dispatch.h"

#include "src/base/failure.h"
#include "src/verbs/objects.h"
#include "src/verbs/registry.h"
#include "src/verbs/stubs.h"

#include <verbena/verbs.h>

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* The calling thread's present verb. */
struct call {
	const char *verb;	       /* NULL between verbs */
	const struct vb_backend *slot; /* &stubs if there is no backend */
	bool said; /* set once dispatch_say() or the backend has explained the failure */
};

static _Thread_local struct call present;

/* "vb_modify_qp" and "stub_modify_qp" are "modify_qp". */
static const char *verb_of(const char *function)
{
	const char *underscore = strchr(function, '_');

	return underscore ? underscore + 1 : function;
}

void dispatch_say(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	failure_vsay(format, arguments);
	va_end(arguments);
	present.said = true;
}

void dispatch_heard(int err, const struct vb_why *(*explain)(void))
{
	failure_set_err(err);
	failure_ask_why(explain);
	present.said = true;
}

const struct vb_backend *enter_slot(const char *function, const struct vb_backend *slot)
{
	present.verb = verb_of(function);
	present.slot = slot ? slot : &stubs;
	present.said = false;
	return present.slot;
}

const struct vb_backend *enter(const char *function, const struct ibv_context *context)
{
	const struct vb_backend *slot = context ? objects_context_slot(context) : NULL;

	enter_slot(function, slot);
	if (!context)
		dispatch_say("%s: the object, or the context in it, is NULL", present.verb);
	else if (!slot)
		dispatch_say("%s: the context %p belongs to no backend", present.verb,
			     (const void *)context);
	return present.slot;
}

const struct vb_backend *enter_device(const char *function, const struct ibv_device *device)
{
	const struct vb_backend *slot = device ? objects_device_slot(device) : NULL;

	enter_slot(function, slot);
	if (!device)
		dispatch_say("%s: the device is NULL", present.verb);
	else if (!slot)
		dispatch_say("%s: the device %p belongs to no backend; is its list freed?",
			     present.verb, (const void *)device);
	return present.slot;
}

const struct vb_backend *dispatch_slot(void)
{
	return present.verb ? present.slot : NULL;
}

void dispatch_begin_inline(void)
{
	if (!present.verb)
		present.said = false;
}

bool dispatch_said(void)
{
	return present.said;
}

static void say_unknown(const char *name)
{
	char known[512] = "";
	const struct vb_backend *slot;
	size_t used = 0;

	for (unsigned int i = 0; (slot = registry_at(i)) && used < sizeof(known); i++)
		used += (size_t)snprintf(known + used, sizeof(known) - used, "%s%s", i ? ", " : "",
					 slot->name);
	dispatch_say("%s: there is no backend \"%.64s\"; the known ones are %s", present.verb,
		     registry_resolve(name), known);
}

const struct vb_backend *enter_backend(const char *function, const char *name)
{
	const struct vb_backend *slot = registry_find(name);

	enter_slot(function, slot);
	if (!slot)
		say_unknown(name);
	return present.slot;
}

int refuse(const char *function)
{
	if (present.verb && present.slot == &stubs) {
		if (!present.said)
			dispatch_say("%s: there is no backend", present.verb);
		return errno = EINVAL;
	}
	if (!present.verb)
		dispatch_say("%s: the backend does not have this verb", verb_of(function));
	else if (!present.said)
		dispatch_say("%s: the backend %s does not have this verb", present.verb,
			     present.slot->name);
	return errno = EOPNOTSUPP;
}

/*
 * Notes a failure and keeps errno. If neither dispatch_say() nor the backend explains the failure,
 * the sentence describes the errno value. A backend with `listen` has told its sentence already, so
 * that its last_error() would be about an earlier call.
 */
static void note_failure(int err)
{
	const char *(*explain)(void) = present.slot->listen ? NULL : present.slot->last_error;
	int saved = errno;
	const char *why;

	failure_set_err(err);
	if (present.said)
		return;
	why = explain ? explain() : NULL;
	if (why && *why)
		failure_ask(explain);
	else
		dispatch_say("%s: %s (backend %s)", present.verb,
			     strerrordesc_np(err) ?: "unknown error", present.slot->name);
	errno = saved;
}

void leave(void)
{
	present.verb = NULL;
}

int leave_errno(int answer)
{
	if (answer) {
		note_failure(answer);
		errno = answer;
	}
	leave();
	return answer;
}

void *leave_pointer(const void *answer)
{
	if (!answer)
		note_failure(errno);
	leave();
	return (void *)answer;
}

int leave_signed(int answer)
{
	if (answer < 0)
		note_failure(errno);
	leave();
	return answer;
}

ssize_t leave_negated(ssize_t answer)
{
	if (answer < 0) {
		note_failure((int)-answer);
		errno = (int)-answer;
	}
	leave();
	return answer;
}

/* Ends a question for a backend. */
static const struct vb_backend *leave_found(const struct vb_backend *slot)
{
	leave();
	if (slot != &stubs)
		return slot;
	errno = EINVAL;
	failure_set_err(EINVAL);
	return NULL;
}

const struct vb_backend *vb_find_backend(const char *name)
{
	return leave_found(enter_backend(__func__, name));
}

struct vb_backend *vb_backend_slot(const char *name)
{
	return vb_find_backend(name) ? registry_find(name) : NULL;
}

const struct vb_backend *vb_backend_at(unsigned int index)
{
	return registry_at(index);
}

const struct vb_backend *vb_context_backend(const struct ibv_context *context)
{
	return leave_found(enter(__func__, context));
}

const struct vb_backend *vb_device_backend(const struct ibv_device *device)
{
	return leave_found(enter_device(__func__, device));
}
