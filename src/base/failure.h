/* SPDX-License-Identifier: MIT */
/*
 * How the functions above the verbs report a failure: by errno, and by a sentence for
 * vb_last_error() that begins with the kind of the failure.
 */
#ifndef SRC_BASE_FAILURE_H
#define SRC_BASE_FAILURE_H

#include <verbena/error.h>

struct ibv_context;

/* Sets errno and the sentence, and returns err. */
int fail(int err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The same; the sentence ends with the sentence of the verb that has just failed. */
int fail_because(int err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The same after an inline verb, which calls the object directly. */
int fail_inline(int err, struct ibv_context *context, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif /* SRC_BASE_FAILURE_H */
