/* SPDX-License-Identifier: MIT */
/*
 * A test that runs, as the functions of conformance.h see it: what it has found so far, what it has
 * to clean up, where it ends.
 *
 *	check.c		the checks, and the text of their failures
 *	cleanup.c	vt_defer(), vt_alloc()
 *	random.c	the test's random numbers
 *	names.c		names of statuses, states and events
 */
#ifndef TEST_CONFORMANCE_RESULT_H
#define TEST_CONFORMANCE_RESULT_H

#include "test/conformance/conformance.h"

#include <setjmp.h>

enum vt_outcome { VT_RUNNING, VT_PASSED, VT_FAILED, VT_SKIPPED, VT_KNOWN, VT_OUTCOMES };

/* A table with a thousand bad rows says enough with its first ones. */
#define VT_FAILURES_SHOWN_MAX 20
#define VT_TEXT_MAX	      16384
#define VT_LINE_MAX	      512

/* A check that failed, as lists of known failures have it: "ibv_poll_cq(cq, 1, &wc) => 0". */
struct vt_found {
	unsigned int count; /* how often */
	char what[VT_LINE_MAX];
};

/* Further checks are counted in the last entry. */
#define VT_FOUND_MAX 40

/* The test's process writes it. The runner reads it, even if that process died. */
struct vt_result {
	enum vt_outcome outcome;
	unsigned int failures;
	bool ending;	    /* set when the test itself is over and its cleanup runs */
	bool b_can_receive; /* it has moved a QP of B's process to RTR */
	bool died;	    /* its process crashed, exited, or was ended by the time limit */
	unsigned int found_count;
	struct vt_found found[VT_FOUND_MAX]; /* each check and value once, in their order */
	char row[VT_LINE_MAX];
	char reason[VT_LINE_MAX];      /* why the test was skipped */
	char trace_error[VT_LINE_MAX]; /* why the trace could not be written; "" if it was */
	size_t text_bytes;
	char text[VT_TEXT_MAX]; /* failures and notes */
};

struct vt_deferred {
	struct vt_deferred *next;
	void (*fn)(void *arg);
	void *arg;
};

struct vt_run {
	struct vt_result *result;
	struct vt_deferred *deferred;
	uint64_t random;
	bool stopped; /* B's process has ended: no verb of B can be called */
	jmp_buf end;  /* of the test, or of the deferred function that runs */
};

/* Adds a line to the result's text, unless the text is full. */
void vt_result_line(struct vt_result *result, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Counts a failed check and what it got, which may be "". */
void vt_find(struct vt_result *result, const char *check, const char *got);

/*
 * Counts a failure and begins its text: the line, and the row of the table that runs. Returns
 * false, and adds no text, if VT_FAILURES_SHOWN_MAX failures have been shown.
 */
bool vt_begin_failure(struct vt_result *result, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Runs what was deferred. */
void vt_run_deferred(struct vt *t);

/* The numbers depend on these three alone, and not on which tests are chosen. */
void vt_seed_random(struct vt_run *run, uint64_t seed, const char *suite, const char *test);

#endif
