/* SPDX-License-Identifier: MIT */
/*
 * What every verb does before and after it calls its backend: finding the backend of the object,
 * and noting for vb_last_error() who knows why the call failed.
 *
 *	const struct vb_backend *backend = enter(__func__, pd ? pd->context : NULL);
 *
 *	return leave_errno(backend->dealloc_pd(pd));
 *
 * enter() never answers NULL: where there is no backend, it is one of stubs that answer EINVAL.
 */
#ifndef SRC_VERBS_DISPATCH_H
#define SRC_VERBS_DISPATCH_H

#include <verbena/backend.h>

#include <sys/types.h>

/* Begins the verb @function (its __func__) on a context, a device or a named backend. */
const struct vb_backend *enter(const char *function, const struct ibv_context *context);
const struct vb_backend *enter_device(const char *function, const struct ibv_device *device);
const struct vb_backend *enter_backend(const char *function, const char *name);

/* Begins it on a backend that is already known; NULL: on none, which the caller has explained. */
const struct vb_backend *enter_slot(const char *function, const struct vb_backend *slot);

/*
 * End it, handing through the backend's answer. A failure is an errno; NULL with errno; negative
 * with errno; a negated errno. leave() is for answers that cannot tell. errno stays as the backend
 * left it.
 */
int leave_errno(int answer);
void *leave_pointer(const void *answer);
int leave_signed(int answer);
ssize_t leave_negated(ssize_t answer);
void leave(void);

/* Says in a sentence why the present verb fails, instead of the backend. */
void dispatch_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Notes a failure outside of any verb, with its sentence, which must not be vb_last_error(). */
void dispatch_fail(int err, const char *sentence);

/* The errno of the last failure; 0 where nothing failed yet. */
int dispatch_err(void);

/*
 * For a stub, with its __func__: says that the verb is refused, unless it was said already, and
 * returns the errno: EINVAL where enter() found no backend, else EOPNOTSUPP.
 */
int refuse(const char *function);

#endif /* SRC_VERBS_DISPATCH_H */
