/* SPDX-License-Identifier: MIT */
/* The names of values in messages, as src/base has them. */
#include "test/conformance/conformance.h"

#include <string.h>
#include <verbena/verbs.h>

const char *vt_wc_status_name(int status)
{
	return vb_wc_status_name((enum ibv_wc_status)status);
}

const char *vt_qp_state_name(int state)
{
	return vb_qp_state_name((enum ibv_qp_state)state);
}

const char *vt_event_name(int event)
{
	return vb_event_type_name((enum ibv_event_type)event);
}

const char *vt_errno_name(int error)
{
	const char *name = strerrorname_np(error);

	return name ? name : "unknown";
}
