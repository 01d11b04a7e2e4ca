/* SPDX-License-Identifier: MIT */
#include "src/log/call.h"

#include "src/log/connection.h"
#include "src/log/structure.h"

#include <infiniband/verbs.h>
#include <verbena/verbs.h>

static const void *pointer(const struct layer_call *call, unsigned int index)
{
	return (const void *)(uintptr_t)call->arguments[index];
}

/* A verb that has succeeded got a device that is valid: its name may be read. */
const char *call_device(const struct layer_call *call)
{
	const struct layer_verb_info *info = layer_verb_info(call->verb);
	const struct ibv_device *device;

	if (call->device || call->err || !info->parameter_count ||
	    strcmp(info->parameters[0].type, "struct ibv_device *") != 0)
		return call->device;
	device = pointer(call, 0);
	return device ? device->name : NULL;
}

static void add_pointer_result(struct line *line, const struct layer_call *call)
{
	const void *result = (const void *)(uintptr_t)call->result;

	if (!result)
		line_plain(line, "null");
	else if (call->verb == LAYER_get_device_name)
		line_text(line, result);
	else if (call->verb == LAYER_open_device || call->verb == LAYER_import_device)
		line_text(line, ((const struct ibv_context *)result)->device->name);
	else
		structure_add_object(line, result);
}

bool call_result(struct line *line, const void *arg)
{
	const struct layer_call *call = arg;

	switch (layer_verb_info(call->verb)->convention) {
	case LAYER_NOTHING:
		return false;
	case LAYER_POINTER:
	case LAYER_OPTIONAL:
		/* The list is an array of the program's, which has no name. */
		if ((call->verb == LAYER_get_device_list || call->verb == LAYER_cm_get_devices) &&
		    call->result)
			return false;
		add_pointer_result(line, call);
		return true;
	case LAYER_ANSWER:
		if (call->verb == LAYER_get_device_guid)
			line_hex(line, be64toh(call->result));
		else
			line_signed(line, (int64_t)call->result);
		return true;
	default:
		line_signed(line, (int64_t)call->result);
		return true;
	}
}

uint32_t call_qpn(const struct layer_call *call)
{
	const struct layer_verb_info *info = layer_verb_info(call->verb);
	const bool makes = info->convention == LAYER_POINTER || info->convention == LAYER_OPTIONAL;
	struct layer_object found;

	if (info->parameter_count && layer_object_find(pointer(call, 0), &found) && found.qpn)
		return found.qpn;
	if (makes && layer_object_find((const void *)(uintptr_t)call->result, &found))
		return found.qpn;
	return connection_qpn(call);
}
