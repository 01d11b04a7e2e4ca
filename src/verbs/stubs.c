/* SPDX-License-Identifier: MIT */
#include "src/verbs/stubs.h"

#include "src/verbs/convention.h"
#include "src/verbs/dispatch.h"

#define VB_VERB(result, name, parameters, arguments, convention, by, object)   \
	static result stub_##name parameters                                   \
	{                                                                      \
		return FAILED(convention, refuse(__func__), UNPACK arguments); \
	}
#include <verbena/verbs.def>

struct vb_backend stubs = {
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
