/* SPDX-License-Identifier: MIT */
/* Whole sentences of refusals, for tests of the backend sim. */
#ifndef TEST_UNIT_SIM_SENTENCE_H
#define TEST_UNIT_SIM_SENTENCE_H

#include "test/unit/sim_pair.h"

#include <stdarg.h>
#include <stdio.h>

/* The last refusal has this reason and this whole sentence. */
__attribute__((format(printf, 2, 3))) static inline void expect_reason(enum vb_reason reason,
								       const char *format, ...)
{
	char expected[512];
	va_list args;

	va_start(args, format);
	vsnprintf(expected, sizeof(expected), format, args);
	va_end(args);
	TEST_ASSERT_EQUAL_STRING(expected, sentence());
	TEST_ASSERT_EQUAL_HEX(reason, B.last_why()->reason);
}

#endif
