/* SPDX-License-Identifier: MIT */
#include "src/verbs/dispatch.h"

#include "src/verbs/objects.h"
#include "src/verbs/registry.h"
#include "src/verbs/stubs.h"

#include <verbena/error.h>
#include <verbena/verbs.h>

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Room for one sentence with the names of all backends in it. */
#define SENTENCE_BYTES 1024

/* One thread's present verb and last failure. */
struct thread {
	const char *verb;		 /* the present verb, NULL between verbs */
	const struct vb_backend *slot;	 /* its backend, &stubs where there is none */
	bool said;			 /* dispatch_say() spoke for it */
	int err;			 /* of the last failure */
	const struct vb_backend *source; /* who explains the last failure; NULL: the sentence */
	char sentence[SENTENCE_BYTES];
};

static _Thread_local struct thread self;

/* "vb_modify_qp" and "stub_modify_qp" are "modify_qp". */
static const char *verb_of(const char *function)
{
	const char *underscore = strchr(function, '_');

	return underscore ? underscore + 1 : function;
}

const struct vb_backend *enter_slot(const char *function, const struct vb_backend *slot)
{
	self.verb = verb_of(function);
	self.slot = slot ? slot : &stubs;
	self.said = false;
	return self.slot;
}

const struct vb_backend *enter(const char *function, const struct ibv_context *context)
{
	const struct vb_backend *slot = context ? objects_context_slot(context) : NULL;

	enter_slot(function, slot);
	if (!context)
		dispatch_say("%s: the object, or the context in it, is NULL", self.verb);
	else if (!slot)
		dispatch_say("%s: the context %p belongs to no backend", self.verb,
			     (const void *)context);
	return self.slot;
}

const struct vb_backend *enter_device(const char *function, const struct ibv_device *device)
{
	const struct vb_backend *slot = device ? objects_device_slot(device) : NULL;

	enter_slot(function, slot);
	if (!device)
		dispatch_say("%s: the device is NULL", self.verb);
	else if (!slot)
		dispatch_say("%s: the device %p belongs to no backend; is its list freed?",
			     self.verb, (const void *)device);
	return self.slot;
}

static void say_unknown(const char *name)
{
	char known[SENTENCE_BYTES / 2] = "";
	const struct vb_backend *slot;
	size_t used = 0;

	for (unsigned int i = 0; (slot = registry_at(i)) && used < sizeof(known); i++)
		used += (size_t)snprintf(known + used, sizeof(known) - used, "%s%s", i ? ", " : "",
					 slot->name);
	dispatch_say("%s: there is no backend \"%.64s\"; the known ones are %s", self.verb,
		     registry_resolve(name), known);
}

const struct vb_backend *enter_backend(const char *function, const char *name)
{
	const struct vb_backend *slot = registry_find(name);

	enter_slot(function, slot);
	if (!slot)
		say_unknown(name);
	return self.slot;
}

void dispatch_say(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(self.sentence, sizeof(self.sentence), format, arguments);
	va_end(arguments);
	self.source = NULL;
	self.said = true;
}

int refuse(const char *function)
{
	if (self.verb && self.slot == &stubs) {
		if (!self.said)
			dispatch_say("%s: there is no backend", self.verb);
		return EINVAL;
	}
	if (!self.verb)
		dispatch_say("%s: the backend does not have this verb", verb_of(function));
	else if (!self.said)
		dispatch_say("%s: the backend %s does not have this verb", self.verb,
			     self.slot->name);
	return EOPNOTSUPP;
}

/* The backend explains the failure; for one that does not, errno has to do. */
static void note_failure(int err)
{
	const char *why;

	self.err = err;
	if (self.said)
		return;
	why = self.slot->last_error ? self.slot->last_error() : NULL;
	if (why && *why)
		self.source = self.slot;
	else
		dispatch_say("%s: %s (backend %s)", self.verb,
			     strerrordesc_np(err) ?: "unknown error", self.slot->name);
}

void leave(void)
{
	self.verb = NULL;
}

int leave_errno(int answer)
{
	int saved = errno;

	if (answer)
		note_failure(answer);
	leave();
	errno = saved;
	return answer;
}

void *leave_pointer(const void *answer)
{
	int saved = errno;

	if (!answer)
		note_failure(saved);
	leave();
	errno = saved;
	return (void *)answer;
}

int leave_signed(int answer)
{
	int saved = errno;

	if (answer < 0)
		note_failure(saved);
	leave();
	errno = saved;
	return answer;
}

ssize_t leave_negated(ssize_t answer)
{
	int saved = errno;

	if (answer < 0)
		note_failure((int)-answer);
	leave();
	errno = saved;
	return answer;
}

int dispatch_err(void)
{
	return self.err;
}

void dispatch_fail(int err, const char *sentence)
{
	dispatch_say("%s", sentence);
	self.err = err;
}

const char *vb_last_error(void)
{
	const char *why = self.source ? self.source->last_error() : self.sentence;

	return why ? why : "";
}

const struct vb_backend *vb_find_backend(const char *name)
{
	const struct vb_backend *slot = enter_backend(__func__, name);

	leave();
	if (slot != &stubs)
		return slot;
	self.err = errno = EINVAL;
	return NULL;
}

struct vb_backend *vb_backend_slot(const char *name)
{
	return vb_find_backend(name) ? registry_slot(name) : NULL;
}

const struct vb_backend *vb_backend_at(unsigned int index)
{
	return registry_at(index);
}

const struct vb_backend *vb_context_backend(const struct ibv_context *context)
{
	const struct vb_backend *slot = enter(__func__, context);

	leave();
	if (slot != &stubs)
		return slot;
	self.err = errno = EINVAL;
	return NULL;
}

const struct vb_backend *vb_device_backend(const struct ibv_device *device)
{
	const struct vb_backend *slot = enter_device(__func__, device);

	leave();
	if (slot != &stubs)
		return slot;
	self.err = errno = EINVAL;
	return NULL;
}
