/* SPDX-License-Identifier: MIT */
/*
 * Tests that need more of a device than every device has: they are skipped if it is missing.
 */
#ifndef TEST_SUPPORT_NEED_H
#define TEST_SUPPORT_NEED_H

#include "test/conformance/conformance.h"

/* Skips the test unless both devices have all these bits of enum ibv_device_cap_flags. */
void ts_need_caps(struct vt *t, unsigned int flags, const char *what);

/* Skips the test if object is NULL and error says that the backend or driver has no such verb. */
void ts_need_verb(struct vt *t, const void *object, int error, const char *what);

#define TS_PTR_OR_SKIP(t, call)                         \
	({                                              \
		errno = 0;                              \
		__typeof__(call) ts_got_ = (call);      \
		ts_need_verb(t, ts_got_, errno, #call); \
		ts_got_;                                \
	})

#endif
