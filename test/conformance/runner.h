/* SPDX-License-Identifier: MIT */
/*
 * The runner of the conformance suites: chooses tests, runs each in a process of its own, reports.
 *
 *	runner.c	choice and order, the exit status
 *	runner_place.c	the devices to run on, the world to run in
 *	runner_child.c	one test: its nodes, its end, its trace
 *	runner_process.c	processes that may crash or hang
 *	runner_check.c	the checks of conformance.h
 *	runner_verify.c	the checkers of completions and traces that every test runs under
 *	runner_known.c	the list of what is known to fail
 *	runner_report.c	what people and machines read
 */
#ifndef TEST_CONFORMANCE_RUNNER_H
#define TEST_CONFORMANCE_RUNNER_H

#include "conformance.h"

#include <setjmp.h>
#include <stdio.h>
#include <verbena/sim.h>

enum vt_exit {
	VT_EXIT_PASSED = 0,
	VT_EXIT_FAILED = 1,
	VT_EXIT_USAGE = 2,
	VT_EXIT_NO_DEVICE = 77,
};

#define VT_SUITES_CHOSEN_MAX 64

struct vt_options {
	const char *backend;	 /* a name that vb_find_backend() knows */
	const char *device;	 /* NULL: the backend's first */
	const char *peer_device; /* NULL: device; on the simulator its second where there is one */
	unsigned int suite_count;
	const char *suites[VT_SUITES_CHOSEN_MAX]; /* none: all */
	const char *filter;			  /* fnmatch(3) on "suite.test"; NULL: all */
	const char *from;			  /* "suite.test", the first to run; NULL: any */
	uint64_t seed;
	const char *known;		 /* a list of tests that fail at a place; NULL: none */
	const char *profile;		 /* that place; NULL: none */
	const struct vb_sim_config *sim; /* the simulator's world; its trace is not used */
	const char *trace_dir;		 /* NULL: no traces */
	const char *junit;		 /* NULL: no file */
	const char *again; /* the options that repeat this run, but seed and filter; may be "" */
	bool tap;
	bool verbose; /* a line a test */
	bool no_fork;
	unsigned int timeout_s; /* of real time, a test; 0: none */
};

enum vt_outcome { VT_RUNNING, VT_PASSED, VT_FAILED, VT_SKIPPED, VT_KNOWN, VT_OUTCOMES };

/* A table with a thousand bad rows says enough with its first ones. */
#define VT_FAILURES_SHOWN_MAX 20
#define VT_TEXT_MAX	      16384
#define VT_LINE_MAX	      512

/* Written by the test's process, read by the runner also when that process died. */
struct vt_result {
	enum vt_outcome outcome;
	unsigned int failures;
	bool ending; /* the test itself is over: what fails now is its cleaning up */
	char row[VT_LINE_MAX];
	char reason[VT_LINE_MAX];      /* of a skip */
	char trace_error[VT_LINE_MAX]; /* a trace that could not be written */
	size_t text_bytes;
	char text[VT_TEXT_MAX]; /* failures and notes */
};

/* What a backend offers to run on. */
struct vt_place {
	char device[IBV_SYSFS_NAME_MAX], peer_device[IBV_SYSFS_NAME_MAX];
	uint8_t port, peer_port;
	int link_layer;		 /* of both ports; IBV_LINK_LAYER_UNSPECIFIED where they differ */
	char error[VT_LINE_MAX]; /* why there is none; "" otherwise */
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
	jmp_buf end; /* of the test, or of the deferred function that runs */
};

/* A test that has been run, for reports. */
struct vt_record {
	const struct vt_suite *suite;
	const struct vt_test *test;
	enum vt_outcome outcome;
	const char *quirks; /* of the list that says that it fails; NULL: none does */
	double seconds;
	char *text;   /* failures, or the reason of a skip */
	char *output; /* what it wrote itself; "" without fork */
};

struct vt_report;

/* --- runner.c --- */

/* Runs what the options choose. Messages on usage go to stderr. Returns enum vt_exit. */
int vt_run_all(const struct vt_options *options);

/* Prints what the options choose: each test and its source. Returns enum vt_exit. */
int vt_list_all(const struct vt_options *options);

/* NULL when there is none of the name. */
const struct vt_suite *vt_find_suite(const char *name);

#define VT_UNFIT_BACKEND    "for the simulator only"
#define VT_UNFIT_LINK_LAYER "for another link layer"
/* One of these, why the suite is not for this place; NULL when it is. place may be NULL: not known. */
const char *vt_suite_unfit(const struct vt_options *options, const struct vt_place *place,
			   const struct vt_suite *suite);

/* --- runner_place.c --- */

bool vt_simulated(const struct vt_options *options);

/* Finds the devices to run on. place->error says what is missing and what to do about it. */
void vt_find_place(const struct vt_options *options, struct vt_place *place);

/* NULL when the list has none of the name. */
struct ibv_device *vt_device_named(struct ibv_device **list, const char *name);

/* A fresh default world where the backend is simulated. False with VT_LINE_MAX bytes of error. */
bool vt_make_world(const struct vt_options *options, char *error);

/* --- runner_child.c --- */

/* Runs one test; fills all of record. place is of vt_find_place(). False: out of memory. */
bool vt_run_one(const struct vt_options *options, const struct vt_place *place,
		struct vt_record *record, struct vt_result *shared);

/* --- runner_process.c --- */

/* How a child ended. */
struct vt_ending {
	bool timed_out;
	int status; /* of waitpid(2) */
};

/*
 * Runs fn(arg) in a child whose output goes to the descriptor (-1: where ours goes), and waits for
 * it, with timeout_s 0 for ever. False with errno when there can be no child.
 */
bool vt_in_child(void (*fn)(void *arg), void *arg, int output, unsigned int timeout_s,
		 struct vt_ending *ending);

/* Memory that is shared with children. NULL with errno. */
void *vt_shared(size_t length_bytes);

/* Real time, for limits and reports only. */
double vt_now_s(void);

/* --- runner_check.c --- */

/* Adds a line to the result's text; nothing when it is full. */
void vt_result_line(struct vt_result *result, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* --- runner_verify.c --- */

/* Every completion from now on is judged: test/support/completion_check.h. */
void vt_watch_completions(const char *backend, struct vt_result *result);
/* The test is over and its objects are there: if it passed, nothing may be owed to it. */
void vt_settle_completions(const struct vt_result *result);
void vt_end_completions(void);

/* Judges a trace that is closed: test/support/trace_check.h. may is the test's. */
void vt_check_trace(const char *path, unsigned int may, struct vt_result *result);

/* Makes an empty file in $TMPDIR. False with errno, and path "". */
bool vt_temporary_trace(char *path, size_t size_bytes);

/* --- runner_known.c --- */

struct vt_known;

/* The lines of options->known that are of options->profile. NULL after a message. */
struct vt_known *vt_known_load(const struct vt_options *options);
/* NULL is allowed. Records that were judged refer to it. */
void vt_known_free(struct vt_known *known);
/*
 * A failure that the list has becomes VT_KNOWN, and a test that passes against it VT_FAILED. False:
 * out of memory.
 */
bool vt_known_judge(const struct vt_known *known, struct vt_record *record);

/* --- runner_report.c --- */

/* NULL after a message when the JUnit file cannot be made. */
struct vt_report *vt_report_open(const struct vt_options *options, const struct vt_place *place,
				 unsigned int tests);
/* records so far, the last one new. */
void vt_report_test(struct vt_report *report, const struct vt_record *record);
/* A test is about to run: the progress line. */
void vt_report_start(struct vt_report *report, const struct vt_suite *suite,
		     const struct vt_test *test);
/* The end: reproduction, summary, JUnit file. Ends the report. Returns enum vt_exit. */
int vt_report_close(struct vt_report *report, const struct vt_record *records, unsigned int count);

#endif
