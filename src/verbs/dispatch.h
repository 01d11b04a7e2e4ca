/* SPDX-License-Identifier: MIT */
/*
 * What every verb does before and after the call of its backend: it finds the backend of the
 * object, and it notes for vb_last_error() who can explain a failure.
 *
 *	const struct vb_backend *slot = enter(__func__, pd ? pd->context : NULL);
 *
 *	return leave_errno(slot->dealloc_pd(pd));
 *
 * enter() never returns NULL: without a backend it returns the stubs, which answer EINVAL.
 */
#ifndef SRC_VERBS_DISPATCH_H
#define SRC_VERBS_DISPATCH_H

#include <verbena/backend.h>

#include <stdbool.h>
#include <sys/types.h>

/* These begin the verb @function (its __func__) on a context, a device or a named backend. */
const struct vb_backend *enter(const char *function, const struct ibv_context *context);
const struct vb_backend *enter_device(const char *function, const struct ibv_device *device);
const struct vb_backend *enter_backend(const char *function, const char *name);

/*
 * Begins the verb on @slot; NULL stands for the stubs, and the caller says why with dispatch_why().
 */
const struct vb_backend *enter_slot(const char *function, const struct vb_backend *slot);

/*
 * These end the verb and return the backend's answer. They note a failure: an errno value; NULL
 * with errno; a negative value with errno; a negated errno value. leave() ends a verb whose answer
 * never is a failure. errno has the value of the failure, in every convention.
 */
int leave_errno(int answer);
void *leave_pointer(const void *answer);
int leave_signed(int answer);
ssize_t leave_negated(ssize_t answer);
void leave(void);

/*
 * Notes a failure that a backend tells by itself, of whatever function. Changes no errno. See
 * `listen` in <verbena/backend.h>.
 */
void dispatch_heard(int err, const struct vb_why *(*explain)(void));

/* Says why the present verb fails; the backend is then not asked for its reason. Sets why.verb if it is
 * NULL. */
void dispatch_why(struct vb_why why);

/* The same in words, for layers, whose sentences come from the program. */
void dispatch_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/*
 * For a stub: says that the backend lacks the verb @function, unless a reason has been said. Sets errno,
 * and returns the value: EINVAL if enter() found no backend, else EOPNOTSUPP.
 */
int refuse(const char *function);

/* --- for layers --- */

/*
 * Finds the context of the object that an event names, which is NULL if the object is NULL. Returns
 * false if the event names no object.
 */
bool dispatch_event_context(const struct ibv_async_event *event,
			    const struct ibv_context **context);

/* Returns the slot of the calling thread's present verb; NULL if no vb_<name>() is running. */
const struct vb_backend *dispatch_slot(void);

/* The calling thread's present verb. */
struct dispatch_call {
	const char *verb;	       /* NULL between verbs */
	const struct vb_backend *slot; /* &stubs if there is no backend */
	bool said; /* set once the verbs layer, a layer or the backend has explained the failure */
};

/* Returns that of the calling thread; it stays where it is. */
struct dispatch_call *dispatch_own_call(void);

/* Begins a call that no vb_<name>() has begun: dispatch_said() is false until a sentence is said. */
static inline void dispatch_begin_inline(struct dispatch_call *call)
{
	if (!call->verb)
		call->said = false;
}

/* Returns true if the present call has been explained, by dispatch_say() or by its backend. */
bool dispatch_said(void);

#endif /* SRC_VERBS_DISPATCH_H */
