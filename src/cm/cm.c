/* SPDX-License-Identifier: MIT */
/*
 * vb_cm_<name>() for the rows of cm.def that find their backend by an identifier. The others are in
 * own.c and plain.c.
 */
#include <verbena/cm.h>

#include "src/cm/dispatch.h"
#include "src/verbs/dispatch.h"

/* How a function ends, by its convention. The identifier may have got a device. */
#define RETURN_MINUS_ONE(call, id, slot) \
	const int answer = call;         \
                                         \
	note_device(id, slot);           \
	return leave_signed(answer)
#define RETURN_NOTHING(call, id, slot) \
	call;                          \
	leave()

/* The function of a row, by the way in which the row finds its backend. */
#define BY_ID(result, name, parameters, arguments, convention, id)      \
	result vb_cm_##name parameters                                  \
	{                                                               \
		const struct vb_backend *slot = enter_id(__func__, id); \
		__typeof__(cm_stubs.name) function = CM(slot, name);    \
                                                                        \
		RETURN_##convention(function arguments, id, slot);      \
	}
#define BY_NAMED(...)
#define BY_BY_HAND(...)

#define VB_CM(result, name, parameters, arguments, convention, by, object, version) \
	BY_##by(result, name, parameters, arguments, convention, object)
#include <verbena/cm.def>
