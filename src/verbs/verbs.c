/* SPDX-License-Identifier: MIT */
/*
 * vb_<name>() for every verb of verbs.def that has an object: finds the backend of the object,
 * calls the backend's verb, and notes a failure for vb_last_error(). The other verbs are in
 * devices.c, or inline in <verbena/verbs.h>.
 */
#include <verbena/verbs.h>

#include "src/verbs/dispatch.h"

/* How a verb ends, by its convention. */
#define RETURN_ERRNO(result, call)     return leave_errno(call)
#define RETURN_POSTED(result, call)    return leave_errno(call)
#define RETURN_POINTER(result, call)   return leave_pointer(call)
#define RETURN_MINUS_ONE(result, call) return leave_signed(call)
#define RETURN_REREG(result, call)     return leave_signed(call)
#define RETURN_NEGATED(result, call)   return leave_negated(call)
#define RETURN_OPTIONAL(result, call)  RETURN_ANSWER(result, call)
#define RETURN_ANSWER(result, call) \
	result answer = call;       \
	leave();                    \
	return answer
#define RETURN_NOTHING(result, call) \
	call;                        \
	leave()

#define DISPATCH(result, name, parameters, arguments, convention, entered) \
	result vb_##name parameters                                        \
	{                                                                  \
		const struct vb_backend *slot = entered;                   \
                                                                           \
		RETURN_##convention(result, slot->name arguments);         \
	}

/* What a row becomes, by how its backend is found. */
#define BY_CONTEXT(result, name, parameters, arguments, convention, context) \
	DISPATCH(result, name, parameters, arguments, convention, enter(__func__, context))
#define BY_DEVICE(result, name, parameters, arguments, convention, device) \
	DISPATCH(result, name, parameters, arguments, convention, enter_device(__func__, device))
#define BY_OBJECT(result, name, parameters, arguments, convention, object) \
	DISPATCH(result, name, parameters, arguments, convention,          \
		 enter(__func__, (object) ? (object)->context : NULL))
#define BY_INLINE(...)
#define BY_NAMED(...)
#define BY_BY_HAND(...)

#define VB_VERB(result, name, parameters, arguments, convention, by, object) \
	BY_##by(result, name, parameters, arguments, convention, object)
#include <verbena/verbs.def>
