/* SPDX-License-Identifier: MIT */
/* The conformance suites, for the program that runs them. */
#ifndef TEST_CONFORMANCE_SUITES_H
#define TEST_CONFORMANCE_SUITES_H

#include "test/conformance/conformance.h"

/* In the order in which they run, up to NULL. */
extern const struct vt_suite *const vt_suites[];

#endif
