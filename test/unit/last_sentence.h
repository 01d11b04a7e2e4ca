/* SPDX-License-Identifier: MIT */
/* The whole sentence of vb_last_error(), for tests above the verbs layer. */
#ifndef TEST_UNIT_LAST_SENTENCE_H
#define TEST_UNIT_LAST_SENTENCE_H

#include "unity.h"

#include <stdarg.h>
#include <stdio.h>
#include <verbena/error.h>

/* The calling thread's last failure has this reason and this whole sentence. */
__attribute__((format(printf, 2, 3))) static inline void expect_reason(enum vb_reason reason,
								       const char *format, ...)
{
	char expected[512];
	va_list args;

	va_start(args, format);
	vsnprintf(expected, sizeof(expected), format, args);
	va_end(args);
	TEST_ASSERT_EQUAL_STRING(expected, vb_last_error());
	TEST_ASSERT_EQUAL_HEX(reason, vb_last_reason());
}

#endif
