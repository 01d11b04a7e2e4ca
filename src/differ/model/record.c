/* SPDX-License-Identifier: MIT */
#include "src/differ/model/record.h"

#include <stdio.h>
#include <string.h>
#include <verbena/verbs.h>

int vd_maker(const struct vd_program *program, const struct vd_record *record, unsigned int step,
	     enum vd_kind kind, unsigned int slot)
{
	for (int i = (int)step - 1; i >= 0; i--) {
		const struct vd_step *made = &program->steps[i];

		if (vd_makes(made->verb) && vd_verbs[made->verb].kind == kind &&
		    made->slot == slot && !record->outcomes[i].answer)
			return i;
	}
	return -1;
}

const char *vd_answer_name(int answer, char buffer[16])
{
	const char *name = strerrorname_np(answer);

	if (answer == VD_SKIPPED)
		return "skipped";
	if (name)
		return name;
	snprintf(buffer, 16, "%d", answer);
	return buffer;
}

static const char *without(const char *prefix, const char *name)
{
	size_t length = strlen(prefix);

	return strncmp(name, prefix, length) ? name : name + length;
}

const char *vd_status_name(int status)
{
	return without("IBV_WC_", vb_wc_status_name((enum ibv_wc_status)status));
}

const char *vd_event_name(int type)
{
	if (type == VD_EVENT_COMPLETION)
		return "completion event";
	return without("IBV_EVENT_", vb_event_type_name((enum ibv_event_type)type));
}
