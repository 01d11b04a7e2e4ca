/* SPDX-License-Identifier: MIT */
/*
 * Simulated devices with chosen quirks.
 */
#ifndef TEST_SUPPORT_QUIRKS_H
#define TEST_SUPPORT_QUIRKS_H

#include "test/support/support.h"

/* A device, or both of a test's, are as the specification says but for these; second may be NULL. */
void ts_only_on(struct vt *t, struct ibv_context *context, const char *first, const char *second);
void ts_only(struct vt *t, const char *first, const char *second);

#endif
