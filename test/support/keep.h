/* SPDX-License-Identifier: MIT */
/*
 * Objects that are destroyed when the test ends, the last one first.
 */
#ifndef TEST_SUPPORT_KEEP_H
#define TEST_SUPPORT_KEEP_H

#include "test/conformance/conformance.h"

enum ts_kind {
	TS_PD,
	TS_CHANNEL,
	TS_CQ,
	TS_MR,
	TS_AH,
	TS_QP,
	TS_SRQ,
	TS_XRCD,
	TS_MW,
	TS_DM,
	TS_TD,
	TS_CONTEXT,
};

/* Destroys the object when the test ends. */
void ts_keep(struct vt *t, enum ts_kind kind, void *object);

/* Call this when the test has destroyed a kept object, or an object of support.h, itself. */
void ts_gone(struct vt *t, const void *object);

#endif
