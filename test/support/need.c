/* SPDX-License-Identifier: MIT */
#include "test/support/need.h"

void ts_need_caps(struct vt *t, unsigned int flags, const char *what)
{
	if ((t->a.device_attr.device_cap_flags & t->b.device_attr.device_cap_flags & flags) !=
	    flags)
		VT_SKIP(t, "the device has no %s", what);
}

void ts_need_verb(struct vt *t, const void *object, int error, const char *what)
{
	if (object)
		return;
	if (error == EOPNOTSUPP || error == ENOSYS)
		VT_SKIP(t, "the device does not support %s", what);
	VT_FAIL(t, "%s: %s", what, vt_errno_name(error));
}
