/* SPDX-License-Identifier: MIT */
/*
 * Why the calling thread's last call was refused, for vb_last_error().
 */
#ifndef BACKENDS_SIM_BASE_SAY_H
#define BACKENDS_SIM_BASE_SAY_H

#include <errno.h>
#include <stddef.h>
#include <verbena/why.h>

/* Is called on the thread whose call has failed; explain() returns why. */
typedef void say_heard_fn(int error, const struct vb_why *(*explain)(void));

/* Calls heard() after each say_why() from now on. Call it before a second thread runs. */
void say_listen(say_heard_fn *heard);

/* Keeps the reason and a copy of its text, sets errno to error and returns error. */
int say_why(int error, const struct vb_why *why);

/* For verbs that return NULL or -1: `return null_errno(err)`. */
static inline void *null_errno(int error)
{
	errno = error;
	return NULL;
}

static inline int minus_errno(int error)
{
	errno = error;
	return -1;
}

/* Returns the reason; its number is VB_WHY_NONE if no call has failed. */
const struct vb_why *said(void);

#endif
