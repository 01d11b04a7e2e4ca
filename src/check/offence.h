/* SPDX-License-Identifier: MIT */
/* What the sanitizer has found: it is printed, counted, and decides how the process exits. */
#ifndef SRC_CHECK_OFFENCE_H
#define SRC_CHECK_OFFENCE_H

#include "src/check/spot.h"

#include <verbena/check.h>

/* A place that a finding names. */
struct offence_place {
	const char *label; /* such as "posted"; NULL: none, and none follow */
	struct spot spot;
	/* Of a change that no verb has made: spot and until are the verbs before and after it. */
	const struct spot *until;
};

#define OFFENCE_PLACES_MAX 3

/* Reads the options. Returns 0, or an errno with a sentence for vb_last_error(). */
int offence_start(const struct vb_check_options *options);

/*
 * Reports a finding, unless it is suppressed or has been reported at these places. format says what
 * has happened, and to which object. Any thread may call it; it changes no errno.
 */
void offence_report(enum vb_rule rule, const struct offence_place places[OFFENCE_PLACES_MAX],
		    const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Prints how often findings were repeated. Returns the status with which the process is to exit; 0:
 * its own. */
int offence_end(void);

/* Forgets all findings that were reported, for the child of fork(2). Call this with the lock held. */
void offence_forget(void);

/* Hold the lock of the findings, for fork(2). */
void offence_lock(void);
void offence_unlock(void);

#endif /* SRC_CHECK_OFFENCE_H */
