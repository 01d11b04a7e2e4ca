/* SPDX-License-Identifier: MIT */
#include "test/conformance/runner.h"
#include "test/peer/peer.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <verbena/error.h>
#include <verbena/log.h>

#define OUTPUT_MAX 65536

/* Of the log of a failed test, of which only the end is shown. */
#define LOGGED_EVENTS_MAX 10000

/* --- in the process of the test --- */

struct stage {
	const struct vt_job *job;
	struct vt *test; /* while it runs */
};

static void run_in_world(struct vt *t, const struct vt_job *job)
{
	if (setjmp(t->run->end))
		return;
	if (job->options->two && job->test->may & VT_MAY_THREAD)
		VT_SKIP(t, "two processes: threads of the test would call B's verbs at once");
	if (job->options->two && job->test->may & VT_MAY_FORK)
		VT_SKIP(t, "two processes: a child of the test would have the same stack");
	vt_open_nodes(t, job);
	vt_need(t, job->test->needs);
	job->test->run(t);
}

static void clean_up(struct vt *t, const struct vt_job *job)
{
	vt_run_deferred(t);
	if (!setjmp(t->run->end) && !t->run->stopped)
		vt_close_nodes(t, job);
	/* In one process with the runner, the next test makes a world. */
	if (t->run->stopped)
		vb_sim_reset();
}

static void run_watched(struct vt *t, const struct vt_job *job)
{
	bool watched = !(job->test->may & (VT_MAY_LOOP | VT_MAY_THREAD));

	if (watched)
		vt_watch_completions(t->backend, t->run->result);
	run_in_world(t, job);
	if (watched && !t->run->stopped)
		vt_settle_completions(t->run->result);
	t->run->result->b_can_receive = peer_can_receive();
	clean_up(t, job);
	if (watched)
		vt_end_completions();
}

static void run_stage(void *arg)
{
	struct stage *stage = arg;
	const struct vt_job *job = stage->job;
	const struct vt_options *options = job->options;
	struct vt_run run = {.result = job->result};
	struct vt t = {.backend = vt_backend_a(options),
		       .seed = options->seed,
		       .suites = options->all_suites,
		       .run = &run};
	char error[VT_LINE_MAX];
	bool traced;

	stage->test = &t;
	vt_seed_random(&run, options->seed, job->suite->name, job->test->name);
	if (vt_make_world(options, error)) {
		traced = vt_open_trace(job);
		run_watched(&t, job);
		if (traced)
			vt_close_trace(job, t.a.port_attr.link_layer == IBV_LINK_LAYER_ETHERNET);
	} else {
		run.result->failures++;
		run.result->died = true;
		vt_result_line(run.result, "%s", error);
	}
	stage->test = NULL;
}

static void run_job(void *arg)
{
	const struct vt_job *job = arg;
	struct stage stage = {.job = job};
	struct vt_result *result = job->result;
	char error[VT_LINE_MAX] = "";

	if (job->log[0] && !getenv("VERBENA_LOG_LIMIT"))
		vb_log_limit(0, LOGGED_EVENTS_MAX);
	if (job->log[0] && vb_log_open(job->log))
		fprintf(stderr, "%s\n", vb_last_error());
	if (!vt_run_beside(job->options, run_stage, &stage, &stage.test, error)) {
		result->failures++;
		result->died = true;
		vt_result_line(result, "%s", error);
	}
	if (result->failures > VT_FAILURES_SHOWN_MAX)
		vt_result_line(result, "and %u failures more",
			       result->failures - VT_FAILURES_SHOWN_MAX);
	if (result->failures)
		result->outcome = VT_FAILED;
	else if (result->outcome == VT_RUNNING)
		result->outcome = VT_PASSED;
}

/* --- in the process of the runner --- */

/* Adds what only the end of the process shows: a crash, an exit, the time limit. */
static void judge(struct vt_result *result, const struct vt_ending *ending, unsigned int timeout_s)
{
	int status = ending->status;
	bool crashed = WIFSIGNALED(status);

	if (!ending->timed_out && !status && result->outcome != VT_RUNNING)
		return;
	result->failures++;
	result->died = true;
	if (ending->timed_out)
		vt_result_line(result, "ended by the time limit of %u s%s", timeout_s,
			       result->ending ? ", cleaning up" : "");
	else if (crashed)
		vt_result_line(result, "crashed: SIG%s (%s)%s", sigabbrev_np(WTERMSIG(status)),
			       strsignal(WTERMSIG(status)),
			       result->outcome != VT_RUNNING ? ", after its end" : "");
	else
		vt_result_line(result, "its process ended with exit status %d%s",
			       WEXITSTATUS(status),
			       result->outcome == VT_RUNNING ? " before the test did" : "");
	if (result->row[0] && !result->ending)
		vt_result_line(result, "    row:    %s", result->row);
	result->outcome = VT_FAILED;
}

static char *read_output(int fd)
{
	char *text = calloc(1, OUTPUT_MAX + 1);
	size_t used = 0;
	ssize_t got;

	while (text && used < OUTPUT_MAX &&
	       (got = pread(fd, text + used, OUTPUT_MAX - used, used)) > 0)
		used += got;
	return text;
}

static void run_forked(const struct vt_job *job, int output)
{
	struct vt_ending ending;

	if (vt_in_child(run_job, (void *)job, output, job->options->timeout_s, &ending)) {
		judge(job->result, &ending, job->options->timeout_s);
		return;
	}
	job->result->outcome = VT_FAILED;
	job->result->died = true;
	vt_result_line(job->result, "cannot make a process for the test: %s", strerror(errno));
}

/* --- the log of a failed test --- */

/* Of a test that hangs: the second run may take so long. */
#define HANG_TIMEOUT_S 5

static bool is_same_failure(const struct vt_result *first, const struct vt_result *second)
{
	return second->outcome == VT_FAILED && first->failures == second->failures &&
	       first->died == second->died;
}

/* Runs the job in a process of its own. Returns true if it fails as the result says. */
static bool fails_again(const struct vt_job *job, const struct vt_result *first)
{
	struct vt_ending ending;
	unsigned int timeout_s = job->options->timeout_s;
	int output = memfd_create("output", MFD_CLOEXEC);

	if (first->died && timeout_s > HANG_TIMEOUT_S)
		timeout_s = HANG_TIMEOUT_S;
	if (vt_in_child(run_job, (void *)job, output, timeout_s, &ending))
		judge(job->result, &ending, timeout_s);
	if (output >= 0)
		close(output);
	return is_same_failure(first, job->result);
}

/*
 * Runs a failed test once more, with an event log: on the virtual clock the same things happen. So tests that
 * pass run without a log. Sets job->log, unless the second run ended otherwise. Not for tests that a list
 * of known failures may expect.
 */
static void log_failure(struct vt_job *job)
{
	struct vt_job again = *job;
	struct vt_result *result;

	if (job->result->outcome != VT_FAILED || !job->trace[0] || job->options->no_fork ||
	    job->options->known)
		return;
	result = vt_shared(sizeof(*result));
	if (!result)
		return;
	again.result = result;
	again.trace[0] = '\0';
	vt_choose_log(job);
	memcpy(again.log, job->log, sizeof(again.log));
	if (!fails_again(&again, job->result)) {
		unlink(job->log);
		job->log[0] = '\0';
	}
	munmap(result, sizeof(*result));
}

bool vt_leave_out(struct vt_record *record, const char *reason)
{
	record->outcome = VT_SKIPPED;
	if (asprintf(&record->text, "not run here, because it crashes: %s", reason) < 0)
		record->text = NULL;
	record->output = strdup("");
	return record->text && record->output;
}

bool vt_run_one(const struct vt_options *options, const struct vt_place *place,
		struct vt_record *record, struct vt_result *shared)
{
	struct vt_job job = {options, place, record->suite, record->test, shared, "", ""};
	double start_s = vt_now_s();
	int output = options->no_fork ? -1 : memfd_create("output", MFD_CLOEXEC);

	memset(shared, 0, sizeof(*shared));
	vt_choose_trace(&job);
	if (options->no_fork)
		run_job(&job);
	else
		run_forked(&job, output);
	log_failure(&job);
	vt_drop_trace(&job);
	record->outcome = shared->outcome;
	record->b_can_receive = shared->b_can_receive;
	record->seconds = vt_now_s() - start_s;
	record->text = strdup(shared->outcome == VT_SKIPPED ? shared->reason : shared->text);
	record->output = output < 0 ? strdup("") : read_output(output);
	if (output >= 0)
		close(output);
	return record->text && record->output;
}
