/* SPDX-License-Identifier: MIT */
/*
 * The calling thread's last failure: an errno value and the sentence that vb_last_error() returns.
 */
#ifndef SRC_BASE_FAILURE_H
#define SRC_BASE_FAILURE_H

#include <stdarg.h>
#include <verbena/error.h>
#include <verbena/why.h>

/* --- for the functions above the verbs --- */

/*
 * Notes a failure, sets errno to @err and returns @err. The sentence begins with the kind of the
 * failure, such as "invalid input".
 */
int fail(int err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Like fail(); the sentence ends with the sentence of the verb that has just failed, and
 * vb_last_reason() returns the reason of that verb. */
int fail_because(int err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Like fail(); the sentence ends with @why, which may be NULL. */
int fail_for(int err, const char *why, const char *format, va_list arguments)
	__attribute__((format(printf, 3, 0)));

/* --- for the verbs; these leave errno alone --- */

void failure_set_err(int err);

/* Sets the sentence. No argument may be the string that vb_last_error() returns. */
void failure_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
void failure_vsay(const char *format, va_list arguments) __attribute__((format(printf, 1, 0)));

/* Sets the reason, of which vb_last_error() makes the sentence. Copies @why and its text. */
void failure_why(const struct vb_why *why);

/* Returns the reason of which vb_last_error() makes its sentence; NULL if it has a sentence alone. */
const struct vb_why *failure_last_why(void);

/* Makes vb_last_error() return what @explain returns, until the next sentence is set. */
void failure_ask(const char *(*explain)(void));

/* The same for a reason, which vb_last_error() turns into a sentence. */
void failure_ask_why(const struct vb_why *(*explain)(void));

#endif /* SRC_BASE_FAILURE_H */
