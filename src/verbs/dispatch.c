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
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static _Thread_local struct dispatch_call present;

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

void dispatch_why(struct vb_why why)
{
	const int error = vb_reason_info(why.reason)->error;

	why.verb = why.verb ? why.verb : present.verb;
	failure_why(&why);
	if (error)
		failure_set_err(error);
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
		dispatch_why((struct vb_why){VB_WHY_NULL_OBJECT});
	else if (!slot)
		dispatch_why((struct vb_why){VB_WHY_FOREIGN_CONTEXT, {(uintptr_t)context}});
	return present.slot;
}

const struct vb_backend *enter_device(const char *function, const struct ibv_device *device)
{
	const struct vb_backend *slot = device ? objects_device_slot(device) : NULL;

	enter_slot(function, slot);
	if (!device)
		dispatch_why((struct vb_why){VB_WHY_NULL_DEVICE});
	else if (!slot)
		dispatch_why((struct vb_why){VB_WHY_FOREIGN_DEVICE, {(uintptr_t)device}});
	return present.slot;
}

const struct vb_backend *dispatch_slot(void)
{
	return present.verb ? present.slot : NULL;
}

struct dispatch_call *dispatch_own_call(void)
{
	return &present;
}

bool dispatch_said(void)
{
	return present.said;
}

static void say_unknown(const char *name)
{
	char text[512];
	const char *between = "";
	const struct vb_backend *slot;
	size_t used = (size_t)snprintf(text, sizeof(text), "\"%.64s\"; the known ones are ",
				       registry_resolve(name));

	for (unsigned int i = 0; (slot = registry_at(i)) && used < sizeof(text); i++) {
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s", between,
					 slot->name);
		between = ", ";
	}
	dispatch_why((struct vb_why){.reason = VB_WHY_BACKEND_UNKNOWN, .text = text});
}

const struct vb_backend *enter_backend(const char *function, const char *name)
{
	const struct vb_backend *slot = registry_find(name);

	enter_slot(function, slot);
	if (!slot)
		say_unknown(name);
	return present.slot;
}

/* Says that the backend of the present verb, or an unknown one, does not have the verb. */
static void say_lacking(const char *verb)
{
	char text[128] = "the backend";
	struct vb_why why = {.reason = VB_WHY_VERB_LACKING, .verb = verb, .text = text};

	if (present.verb)
		snprintf(text, sizeof(text), "the backend %.64s", present.slot->name);
	failure_why(&why);
	present.said = true;
}

int refuse(const char *function)
{
	/* enter() and its like have said why there is no backend. */
	if (present.verb && present.slot == &stubs)
		return errno = EINVAL;
	if (!present.verb || !present.said)
		say_lacking(verb_of(function));
	return errno = EOPNOTSUPP;
}

/*
 * Asks the backend for its reason or its sentence. A backend with `listen` has told its reason
 * already, so that its last_why() would be about an earlier call. Returns false without either.
 */
static bool ask_backend(const struct vb_backend *slot)
{
	const char *why;

	if (slot->listen)
		return false;
	if (slot->last_why && slot->last_why()->reason != VB_WHY_NONE) {
		failure_ask_why(slot->last_why);
		return true;
	}
	why = slot->last_error ? slot->last_error() : NULL;
	if (!why || !*why)
		return false;
	failure_ask(slot->last_error);
	return true;
}

/*
 * Notes a failure and keeps errno. If neither dispatch_why() nor the backend explains the failure,
 * the sentence describes the errno value.
 */
static void note_failure(int err)
{
	int saved = errno;

	failure_set_err(err);
	if (!present.said && !ask_backend(present.slot))
		dispatch_why((struct vb_why){
			VB_WHY_ERRNO_ONLY, {(uint64_t)err}, .text = present.slot->name});
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
