/* SPDX-License-Identifier: MIT */
/*
 * The verbs that a device lacks, for the inline functions of <infiniband/verbs.h>. Those answer
 * EOPNOTSUPP for a NULL pointer, too, but leave no sentence.
 */
#include "backends/sim/verb/verbs.h"

#include <stdio.h>

static int refuse(const char *function)
{
	return refuse_name(function + sizeof("lacking"), VB_WHY_VERB_LACKING, "a simulated device");
}

int verb_lacks(const struct context *context, unsigned int lack, const char *verb)
{
	const struct device *device = context->device;
	char text[2 * VB_SIM_NAME_MAX + 32];

	if (!(device->engine->profile->lacks & lack))
		return 0;
	snprintf(text, sizeof(text), "%s with the profile \"%s\"", device->ibv.name,
		 device->engine->profile->name);
	return refuse_name(verb, VB_WHY_VERB_LACKING_PROFILE, text);
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
