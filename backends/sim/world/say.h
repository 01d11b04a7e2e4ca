/* SPDX-License-Identifier: MIT */
/*
 * One sentence on the calling thread's last failed call.
 */
#ifndef BACKENDS_SIM_WORLD_SAY_H
#define BACKENDS_SIM_WORLD_SAY_H

/* Keeps the sentence and returns error, so that `return say(EINVAL, ...)` reads well. */
int say(int error, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* As say(), and sets errno: for verbs that return NULL (void) or -1. */
void *say_null(int error, const char *format, ...) __attribute__((format(printf, 2, 3)));
int say_minus(int error, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The sentence; "" for none. */
const char *said(void);

#endif
