/* SPDX-License-Identifier: MIT */
#include "src/verbs/stubs.h"

#include "src/verbs/dispatch.h"

/* The body of a stub, by the verb's convention; called with the verb's arguments. */
#define REFUSE_ERRNO(...) return refuse(__func__)
#define REFUSE_POSTED(queue, request, bad) \
	*(bad) = (request);                \
	return refuse(__func__)
#define REFUSE_NEGATED(...) return (-refuse(__func__))
#define REFUSE_NOTHING(...) refuse(__func__)
#define REFUSE_WITH(answer) \
	refuse(__func__);   \
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

void stubs_fill(struct vb_backend *backend)
{
#define VB_VERB(result, name, parameters, arguments, convention, by, object) \
	backend->name = backend->name ?: stub_##name;
#include <verbena/verbs.def>
}
