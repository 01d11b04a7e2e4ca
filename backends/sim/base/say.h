/* SPDX-License-Identifier: MIT */
/*
 * One sentence about the calling thread's last failed call, for vb_last_error().
 */
#ifndef BACKENDS_SIM_BASE_SAY_H
#define BACKENDS_SIM_BASE_SAY_H

/* Keeps the sentence and returns error, so that `return say(EINVAL, ...)` reads well. */
int say(int error, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* As say(), and set errno: for verbs that return NULL or -1. */
void *say_null(int error, const char *format, ...) __attribute__((format(printf, 2, 3)));
int say_minus(int error, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Returns the sentence; "" if no call has failed. */
const char *said(void);

#endif
