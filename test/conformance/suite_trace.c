/* SPDX-License-Identifier: MIT */
/*
 * The trace as a reader of it sees it.
 */
#include "test/support/support.h"

static const struct vt_test tests[] = {
	{NULL},
};

const struct vt_suite vt_suite_trace = {"trace", "the packets in the capture file", tests};
