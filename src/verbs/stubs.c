/* SPDX-License-Identifier: MIT */
#include "src/verbs/stubs.h"

#include "src/verbs/dispatch.h"

#include <errno.h>
#include <string.h>

/* From this member on, the structure has function pointers only. */
#define FIRST_VERB offsetof(struct vb_backend, get_device_list)

typedef void (*any_function)(void);

/* The body of a stub, by the verb's convention; called with the verb's arguments. */
#define REFUSE_ERRNO(...) return refuse(__func__)
#define REFUSE_POSTED(queue, request, bad) \
	*(bad) = (request);                \
	return refuse(__func__)
#define REFUSE_NEGATED(...) return (-refuse(__func__))
#define REFUSE_NOTHING(...) errno = refuse(__func__)
#define REFUSE_WITH(answer)       \
	errno = refuse(__func__); \
	return answer
#define REFUSE_POINTER(...)   REFUSE_WITH(NULL)
#define REFUSE_OPTIONAL(...)  REFUSE_WITH(NULL)
#define REFUSE_MINUS_ONE(...) REFUSE_WITH(-1)
#define REFUSE_REREG(...)     REFUSE_WITH(IBV_REREG_MR_ERR_INPUT)
#define REFUSE_ANSWER(...)    REFUSE_WITH(0)

#define VB_VERB(result, name, parameters, arguments, convention, by, object) \
	static result stub_##name parameters                                 \
	{                                                                    \
		REFUSE_##convention arguments;                               \
	}
#include <verbena/verbs.def>

const struct vb_backend stubs = {
	.name = "none",
	.description = "refuses every verb",
#define VB_VERB(result, name, parameters, arguments, convention, by, object) .name = stub_##name,
#include <verbena/verbs.def>
};

/* The initialiser above holds each row to its member; this holds that each member has a row. */
enum {
#define VB_VERB(result, name, parameters, arguments, convention, by, object) ROW_##name,
#include <verbena/verbs.def>
	ROWS
};
_Static_assert(FIRST_VERB + ROWS * sizeof(any_function) == sizeof(struct vb_backend),
	       "each function pointer of struct vb_backend has a row in verbs.def");

void stubs_fill(struct vb_backend *backend)
{
	for (size_t at = FIRST_VERB; at < sizeof(*backend); at += sizeof(any_function)) {
		char *place = (char *)backend + at;
		any_function verb;

		memcpy(&verb, place, sizeof(verb));
		if (!verb)
			memcpy(place, (const char *)&stubs + at, sizeof(verb));
	}
}
