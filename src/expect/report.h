/* SPDX-License-Identifier: MIT */
/* The message of a failed check, and the handler that gets it. */
#ifndef SRC_EXPECT_REPORT_H
#define SRC_EXPECT_REPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <verbena/expect.h>

/* Where a check stands in the user's test. */
struct expect_place {
	const char *file;
	int line;
};

/*
 * The message is one of the calling thread: a handler that leaves by longjmp(3) leaves nothing allocated.
 * expect_begin_message() begins it, expect_say() adds to it, and expect_fail() calls the handler. A message
 * that is too long is cut.
 */
void expect_begin_message(void);
void expect_say(const char *format, ...) VB_EXPECT_PRINTF(1, 2);

/* Returns false, if the handler returns. */
bool expect_fail(struct expect_place place);

/* expect_begin_message(), expect_say() and expect_fail(). */
bool expect_fail_with(struct expect_place place, const char *format, ...) VB_EXPECT_PRINTF(2, 3);

/* Returns how long a check waits. */
uint64_t expect_timeout_ns(void);

/* Adds a time as people write it, such as "67.1 ms". */
void expect_say_time(uint64_t ns);

#endif
