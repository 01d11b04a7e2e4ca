/* SPDX-License-Identifier: MIT */
/* Reports findings: prints and counts them, and computes the exit status of the process. */
#ifndef SRC_CHECK_OFFENCE_H
#define SRC_CHECK_OFFENCE_H

#include "src/check/spot.h"

#include <verbena/check.h>

/* A place that a finding names. */
struct offence_place {
	const char *label; /* such as "posted"; NULL: none, and none follow */
	struct spot spot;
	/* For a change that no verb has made: `spot` and `until` are the verbs before and after it. Else
	 * NULL. */
	const struct spot *until;
};

#define OFFENCE_PLACES_MAX 3

/* Reads the options. Returns 0, or an errno with a sentence for vb_last_error(). */
int offence_start(const struct vb_check_options *options);

/*
 * Reports a finding, unless it is suppressed or was reported at the same places. `format` says what has
 * happened, and to which object. Any thread may call it; errno stays.
 */
void offence_report(enum vb_rule rule, const struct offence_place places[OFFENCE_PLACES_MAX],
		    const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Prints a sentence that is no finding. Takes no lock. */
void offence_say(const char *sentence);

/* Prints how many findings there were. Returns the status with which the process is to exit; 0: the
 * program's own status counts. */
int offence_end(void);

/* Forgets all findings that were reported, for the child of fork(2). Call this with the lock held. */
void offence_forget(void);

/* Take and release the lock of the findings, for fork(2). */
void offence_lock(void);
void offence_unlock(void);

#endif /* SRC_CHECK_OFFENCE_H */
