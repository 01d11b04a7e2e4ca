/* SPDX-License-Identifier: MIT */
/*
 * The runner of the conformance suites: chooses tests, runs each in a process of its own, reports.
 * It knows conformance.h and result.h, but no suite: its caller hands it the suites.
 *
 *	runner.c	choice and order, the exit status
 *	runner_place.c	the devices to run on, the world to run in
 *	runner_nodes.c	A and B: opening them, what they have, closing them
 *	runner_test.c	one test from its world to its verdict
 *	runner_trace.c	the file that a test's packets go to
 *	runner_verify.c	the checkers of completions and traces that every test runs under
 *	runner_two.c	B's process, and what one process says
 *	runner_process.c	child processes, which may crash or hang
 *	runner_known.c	the list of tests that are known to fail
 *	runner_report.c	results on standard output, for people and as TAP
 *	runner_junit.c	results as JUnit XML
 */
#ifndef TEST_CONFORMANCE_RUNNER_H
#define TEST_CONFORMANCE_RUNNER_H

#include "test/conformance/result.h"

#include <stdio.h>
#include <verbena/sim.h>

enum vt_exit {
	VT_EXIT_PASSED = 0,
	VT_EXIT_FAILED = 1,
	VT_EXIT_USAGE = 2,
	VT_EXIT_NO_DEVICE = 77,
};

#define VT_SUITES_CHOSEN_MAX 64
#define VT_TRACE_BYTES_MAX   (UINT64_C(256) << 20)

/* B in another process: test/peer/peer.h. */
struct vt_two {
	const char *backend;		 /* of B's process */
	const struct vb_sim_config *sim; /* B's process's world, if it is simulated */
	const char *network;		 /* the path of its network namespace; NULL: the same */
	bool both;			 /* A is in B's process, too: a proof of the relay */
	const struct vb_sim_config *one; /* of one process, to compare with; NULL: do not compare */
	bool without_groups;		 /* multicasts of A do not reach B */
	uint64_t at_least;		 /* so many tests must pass with a QP of B's process */
};

/* Prints the last rows of a log or of a trace as lines. */
typedef void vt_show_fn(const char *path, FILE *out);

struct vt_options {
	const struct vt_suite *const *all_suites; /* in their order, up to NULL */
	const char *backend;			  /* a name that vb_find_backend() knows */
	const char *device;			  /* NULL: the backend's first */
	const char *peer_device; /* NULL: device; on the simulator its second, if it has two */
	unsigned int suite_count;
	const char *suites[VT_SUITES_CHOSEN_MAX]; /* the chosen ones; none: all */
	const char *filter;			  /* fnmatch(3) on "suite.test"; NULL: all */
	const char *from;			  /* "suite.test", the first to run; NULL: any */
	uint64_t seed;
	const char *known;		 /* a list of tests that fail at a place; NULL: none */
	const char *place;		 /* that place: a profile, or A's:B's; NULL: none */
	const struct vb_sim_config *sim; /* the simulator's world; its trace is not used */
	const struct vt_two *two;	 /* NULL: the tests run in one process */
	vt_show_fn *show;      /* of a failed test's log or trace; NULL: nobody shows it */
	const char *trace_dir; /* NULL: traces are kept of failed tests only */
	/* What is kept of the end of a trace; both 0: the last VT_TRACE_BYTES_MAX. */
	uint64_t trace_bytes_max, trace_packets_max;
	const char *junit; /* the path of the JUnit file; NULL: none */
	const char *again; /* options that repeat this run, beside seed and filter */
	bool tap;
	bool verbose; /* a line for each test */
	bool no_fork;
	unsigned int timeout_s; /* of real time, for each test; 0: none */
};

/* The devices and ports to run on. */
struct vt_place {
	char device[IBV_SYSFS_NAME_MAX], peer_device[IBV_SYSFS_NAME_MAX];
	uint8_t port, peer_port;
	int link_layer;		 /* of both ports; IBV_LINK_LAYER_UNSPECIFIED if they differ */
	char error[VT_LINE_MAX]; /* why there is no place, and what to do; "" if there is one */
	char traces[3072];	 /* where failed tests leave their packets; "": nowhere */
};

/* One test, and where it runs. */
struct vt_job {
	const struct vt_options *options;
	const struct vt_place *place;
	const struct vt_suite *suite;
	const struct vt_test *test;
	struct vt_result *result;
	char trace[4096]; /* the path of its trace; "" for none */
	char log[4096];	  /* the path of its event log; "" for none */
};

/* A test that has been run, for reports. */
struct vt_record {
	const struct vt_suite *suite;
	const struct vt_test *test;
	enum vt_outcome outcome;
	const char *quirks; /* from the list of known failures; NULL if the test is not on it */
	double seconds;
	bool b_can_receive; /* the test has moved a QP of B's process to RTR */
	bool differs;	    /* from one process, in its outcome */
	char *text;	    /* failures, or the reason of a skip */
	char *output;	    /* what it wrote itself; "" without fork */
};

struct vt_report;

/* --- runner.c --- */

/* Runs what the options choose. Messages on usage go to stderr. Returns enum vt_exit. */
int vt_run_all(const struct vt_options *options);

/* Prints what the options choose: each test and its source. Returns enum vt_exit. */
int vt_list_all(const struct vt_options *options);

/* NULL if no suite has the name. */
const struct vt_suite *vt_find_suite(const struct vt_suite *const *suites, const char *name);

#define VT_UNFIT_BACKEND    "for the simulator only"
#define VT_UNFIT_LINK_LAYER "for another link layer"
/*
 * Returns one of these, why the suite cannot run at the place; NULL if it can. place may be NULL,
 * as long as it is not known.
 */
const char *vt_suite_unfit(const struct vt_options *options, const struct vt_place *place,
			   const struct vt_suite *suite);

/* --- runner_place.c --- */

/* Returns true if the chosen backend is the simulator. */
bool vt_simulated(const struct vt_options *options);

/* Returns true if the test has the whole simulated world in its process. */
bool vt_has_world(const struct vt_options *options);

/* The backends whose devices A and B are. */
const char *vt_backend_a(const struct vt_options *options);
const char *vt_backend_b(const struct vt_options *options);

/* Finds the devices to run on, or says in place->error what is missing. */
void vt_find_place(const struct vt_options *options, struct vt_place *place);

/* Returns the device of the name from the list, or NULL. */
struct ibv_device *vt_device_named(struct ibv_device **list, const char *name);

/* Makes a fresh default world on the simulator. False with VT_LINE_MAX bytes of error. */
bool vt_make_world(const struct vt_options *options, char *error);
/* Returns a world's configuration with the seed of the run. */
struct vb_sim_config vt_world_of(const struct vt_options *options, const struct vb_sim_config *sim);

/* --- runner_nodes.c --- */

/* Opens A and B and finds out what they have. Ends the test if it cannot. */
void vt_open_nodes(struct vt *t, const struct vt_job *job);
/* On the simulator, objects that are left are failures. */
void vt_close_nodes(struct vt *t, const struct vt_job *job);

/* --- runner_test.c --- */

/* Runs one test at a place of vt_find_place() and fills the record. False: out of memory. */
bool vt_run_one(const struct vt_options *options, const struct vt_place *place,
		struct vt_record *record, struct vt_result *shared);

/* Fills the record of a test that is not run. False: out of memory. */
bool vt_leave_out(struct vt_record *record, const char *reason);

/* --- runner_trace.c --- */

/*
 * Sets place->traces: without --trace, a folder in $TMPDIR. Removes what earlier runs left there,
 * unless another run is using the folder.
 */
void vt_prepare_traces(const struct vt_options *options, struct vt_place *place);
/* Chooses the path. Without --trace it is a file in place->traces, which only a failed test leaves. */
void vt_choose_trace(struct vt_job *job);
/* Returns true if the trace is being written. */
bool vt_open_trace(const struct vt_job *job);
/* Ends the trace and, on Ethernet, judges it. */
void vt_close_trace(const struct vt_job *job, bool ethernet);
/* Chooses the path of the log, beside the trace. */
void vt_choose_log(struct vt_job *job);
/*
 * Deletes a temporary file. Of a failed test, shows the last rows of its log, or else of its trace, and says
 * where both are.
 */
void vt_drop_trace(const struct vt_job *job);

/* --- runner_verify.c --- */

/* Every completion from now on is judged: test/support/completion_check.h. */
void vt_watch_completions(const char *backend, struct vt_result *result);
/*
 * The test has ended and its objects are still there. If it passed, every WR must have completed.
 */
void vt_settle_completions(const struct vt_result *result);
void vt_end_completions(void);

/* Judges a trace that is closed: test/support/trace_check.h. may is the test's. */
void vt_check_trace(const char *path, unsigned int may, struct vt_result *result);

/* --- runner_two.c --- */

/*
 * Calls fn(arg), with B's process beside it if the options ask for one. *test is the test that runs
 * then, or NULL. Returns false with VT_LINE_MAX bytes of error if B's process cannot be made, and if it
 * does not end as it should.
 */
bool vt_run_beside(const struct vt_options *options, void (*fn)(void *arg), void *arg,
		   struct vt **test, char *error);

/*
 * Runs a test that did not skip in one process, too, if the options ask for it. Another outcome there
 * makes the record VT_FAILED and adds a line to its text. False: out of memory.
 */
bool vt_compare_one(const struct vt_options *options, const struct vt_place *place,
		    struct vt_record *record, struct vt_result *shared);

/* --- runner_process.c --- */

/* How a child ended. */
struct vt_ending {
	bool timed_out;
	int status; /* of waitpid(2) */
};

/*
 * Runs fn(arg) in a child whose output goes to the descriptor (-1: where ours goes), and waits for
 * it, with timeout_s 0 for ever. False with errno if no child can be made.
 */
bool vt_in_child(void (*fn)(void *arg), void *arg, int output, unsigned int timeout_s,
		 struct vt_ending *ending);

/* Returns memory that is shared with children, or NULL with errno. */
void *vt_shared(size_t length_bytes);

/* Real time, for limits and reports only. */
double vt_now_s(void);

/* --- runner_known.c --- */

struct vt_known;

/* Reads the lines of options->known that name options->place. NULL after a message. */
struct vt_known *vt_known_load(const struct vt_options *options);
/* known may be NULL. Records that were judged refer to it. */
void vt_known_free(struct vt_known *known);
/*
 * Returns the sentence of a line of the kind "crash": the test would end its process or the device's
 * driver, so it is not run. Else, and if known is NULL, returns NULL.
 */
const char *vt_known_crash(const struct vt_known *known, const struct vt_test *test);
/*
 * Makes a failure that is on the list VT_KNOWN if exactly the recorded checks failed. A test that is
 * on the list and passes, or whose process died, is VT_FAILED. False: out of memory.
 */
bool vt_known_judge(const struct vt_known *known, struct vt_record *record,
		    const struct vt_result *result);

/* --- runner_report.c --- */

/* NULL after a message if the JUnit file cannot be made. */
struct vt_report *vt_report_open(const struct vt_options *options, const struct vt_place *place,
				 unsigned int tests);
/* A test is about to run: the progress line. */
void vt_report_start(struct vt_report *report, const struct vt_suite *suite,
		     const struct vt_test *test);
/* A test has been run. */
void vt_report_test(struct vt_report *report, const struct vt_record *record);
/* The end: reproduction, summary, JUnit file. Frees the report. Returns enum vt_exit. */
int vt_report_close(struct vt_report *report, const struct vt_record *records, unsigned int count);

/* --- runner_junit.c --- */

/* Writes the records as JUnit XML and closes the file. False after a message. */
bool vt_write_junit(FILE *file, const struct vt_options *options, const struct vt_record *records,
		    unsigned int count);

#endif
