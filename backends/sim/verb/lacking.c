/* SPDX-License-Identifier: MIT */
/*
 * The verbs that a device lacks, for the inline functions of <infiniband/verbs.h>. Those answer
 * EOPNOTSUPP for a NULL pointer, too, but leave no sentence.
 */
#include "backends/sim/verb/verbs.h"

static int refuse(const char *function)
{
	return say(EOPNOTSUPP, "%s: simulated devices do not have this verb",
		   function + sizeof("lacking"));
}

int verb_lacks(const struct context *context, unsigned int lack, const char *verb)
{
	const struct device *device = context->device;

	if (!(device->engine->profile->lacks & lack))
		return 0;
	return say(EOPNOTSUPP, "%s: %s with the profile \"%s\" does not have this verb", verb,
		   device->ibv.name, device->engine->profile->name);
}

/* The bodies, by the verb's convention; called with the verb's arguments. */
#define REFUSE_ERRNO(...)   return refuse(__func__)
#define REFUSE_POINTER(...) return null_errno(refuse(__func__))
#define REFUSE_POSTED(queue, request, bad) \
	*(bad) = (request);                \
	return refuse(__func__)

#define VB_VERB(result, name, parameters, arguments, convention, by, object)
#define VB_EXTENDED(result, name, parameters, arguments, convention, by, object, op) \
	static result lacking_##name parameters                                      \
	{                                                                            \
		REFUSE_##convention arguments;                                       \
	}
#include <verbena/verbs.def>

void verb_fill_lacking(struct verbs_context *verbs)
{
#define VB_VERB(result, name, parameters, arguments, convention, by, object)
#define VB_EXTENDED(result, name, parameters, arguments, convention, by, object, op) \
	verbs->op = verbs->op ?: lacking_##name;
#include <verbena/verbs.def>
}
