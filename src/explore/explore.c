/* SPDX-License-Identifier: MIT */
/* vb_explore(): the stages, and the smallest schedule that fails. */
#include "src/explore/crew.h"
#include "src/explore/report.h"
#include "src/explore/run.h"
#include "src/explore/space.h"

#include "src/base/failure.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define KINDS_OF_PACKETS  ((1u << (VB_DECIDE_CORRUPT + 1)) - 1)
#define KINDS_ALL	  ((1u << VB_DECISION_KINDS) - 1)
#define TIMEOUT_DEFAULT_S 30
#define VIRTUAL_DEFAULT_S 3600

struct exploration {
	struct vb_explore explore; /* with the defaults */
	struct vb_explore_result *result;
	struct space space;
	struct crew *crew;
	struct report report;
	struct outcome *outcomes; /* of the stage */
	enum stage stage;
	uint64_t began_ns; /* the stage, in real time */
};

static struct vb_explore with_defaults(const struct vb_explore *given)
{
	struct vb_explore explore = *given;

	if (!explore.name)
		explore.name = "test";
	if (!explore.kinds)
		explore.kinds = KINDS_OF_PACKETS;
	if (!explore.pair_kinds)
		explore.pair_kinds = explore.kinds;
	explore.pair_kinds &= explore.kinds & KINDS_OF_PACKETS;
	if (!explore.seed)
		explore.seed = 1;
	if (!explore.timeout_s)
		explore.timeout_s = TIMEOUT_DEFAULT_S;
	if (!explore.virtual_s_max)
		explore.virtual_s_max = VIRTUAL_DEFAULT_S;
	if (!explore.folder)
		explore.folder = "verbena-explore";
	return explore;
}

/* --- lists of runs --- */

static void schedule_of_stage(const void *arg, uint64_t index, struct vb_schedule *schedule)
{
	const struct exploration *exploration = arg;

	space_schedule(&exploration->space, exploration->stage, index, schedule);
}

static void given_schedule(const void *arg, uint64_t index, struct vb_schedule *schedule)
{
	*schedule = *(const struct vb_schedule *)arg;
}

/* Adds the runs of a list to the result, and returns the index of the first that has failed, or count. */
static uint64_t add_runs(struct exploration *exploration, uint64_t count)
{
	uint64_t first = count;

	for (uint64_t i = count; i-- > 0;) {
		const struct outcome *outcome = &exploration->outcomes[i];

		exploration->result->runs += outcome->ran;
		if (!outcome->failed)
			continue;
		exploration->result->failed++;
		first = i;
	}
	return first;
}

static void progress(void *arg, uint64_t done)
{
	const struct exploration *exploration = arg;

	report_progress(&exploration->report, exploration->stage, done,
			space_count(&exploration->space, exploration->stage),
			crew_now_ns() - exploration->began_ns);
}

/* Runs one schedule; log, trace and output may be NULL. */
static int run_one(struct exploration *exploration, const struct vb_schedule *schedule,
		   const char *log, const char *trace, const char *output, struct outcome *outcome)
{
	struct outcome *shared = crew_memory(sizeof(*shared));
	const struct runs runs = {
		.count = 1,
		.schedule = given_schedule,
		.arg = schedule,
		.log = log,
		.trace = trace,
		.output = output,
		.outcomes = shared,
	};
	int err;

	if (!shared)
		return errno;
	err = crew_run(exploration->crew, &runs);
	*outcome = *shared;
	crew_forget(shared, sizeof(*shared));
	exploration->result->runs++;
	return err;
}

/* --- the smallest schedule that fails --- */

static int fails_without(struct exploration *exploration, unsigned int left_out, bool *fails)
{
	struct vb_schedule less = exploration->result->schedule;
	struct outcome outcome = {.ran = false};
	int err;

	less.count--;
	memmove(&less.decisions[left_out], &less.decisions[left_out + 1],
		(less.count - left_out) * sizeof(*less.decisions));
	err = run_one(exploration, &less, NULL, NULL, NULL, &outcome);
	*fails = !err && outcome.failed;
	if (*fails)
		exploration->result->schedule = less;
	return err;
}

/* Leaves out each decision without which the schedule fails, too. */
static int shrink(struct exploration *exploration)
{
	bool fails = true;
	int err = 0;

	while (fails && !err) {
		fails = false;
		for (unsigned int i = 0; i < exploration->result->schedule.count && !fails && !err;
		     i++)
			err = fails_without(exploration, i, &fails);
	}
	return err;
}

/* Fills in the sentence of the run that was repeated. */
static void say_failure(const struct exploration *exploration, const struct outcome *outcome)
{
	struct vb_explore_result *result = exploration->result;

	if (outcome->failed)
		run_say(crew_tally(exploration->crew), outcome->end, outcome->signal, result->words,
			sizeof(result->words));
	else
		snprintf(result->words, sizeof(result->words),
			 "a run has failed, and its repetition has not: something beside the "
			 "schedule decides what happens, such as real time, another thread or "
			 "another process");
}

/* Repeats the run, and keeps its files. */
static int keep_failure(struct exploration *exploration)
{
	const struct vb_explore *explore = &exploration->explore;
	struct vb_explore_result *result = exploration->result;
	struct files files;
	struct outcome outcome = {.ran = false};
	int err = report_name_files(explore, &result->schedule, &files);

	if (!err)
		err = run_one(exploration, &result->schedule, files.log, files.trace, files.output,
			      &outcome);
	if (!err) {
		files.kept = keep_files(files.log, files.trace, outcome.seen[COUNTED_PACKETS]);
		result->end = outcome.end;
		say_failure(exploration, &outcome);
		report_command(explore, &result->schedule, result->command,
			       sizeof(result->command));
		report_failure(&exploration->report, result, &files);
	}
	report_forget_files(&files);
	return err;
}

/* --- the stages --- */

/* Returns an errno value; 0 with *failed set if a schedule has failed. */
static int run_stage(struct exploration *exploration, enum stage stage)
{
	const uint64_t count = space_count(&exploration->space, stage);
	const size_t size_bytes = (count + 1) * sizeof(*exploration->outcomes);
	struct vb_explore_result *result = exploration->result;
	const uint64_t failed = result->failed;
	struct runs runs = {
		.count = count,
		.schedule = schedule_of_stage,
		.arg = exploration,
		.goes_on = exploration->explore.goes_on && stage != STAGE_PLAIN,
		.progress = progress,
		.progress_arg = exploration,
	};
	uint64_t first;
	int err;

	exploration->stage = stage;
	exploration->began_ns = crew_now_ns();
	exploration->outcomes = runs.outcomes = crew_memory(size_bytes);
	if (!runs.outcomes)
		return errno;
	err = crew_run(exploration->crew, &runs);
	first = add_runs(exploration, count);
	result->space += count;
	if (first < count && !failed) {
		schedule_of_stage(exploration, first, &result->schedule);
		exploration->report.before = result->space - count + first - 1;
	}
	return err;
}

static void end_stage(struct exploration *exploration)
{
	const uint64_t count = space_count(&exploration->space, exploration->stage);

	crew_forget(exploration->outcomes, (count + 1) * sizeof(*exploration->outcomes));
	exploration->outcomes = NULL;
}

/* The runs without a decision end well, and are the same. */
static int explore_plain(struct exploration *exploration)
{
	const struct vb_explore_result *result = exploration->result;
	const struct outcome *outcomes;
	int err = run_stage(exploration, STAGE_PLAIN);

	if (err)
		return err;
	outcomes = exploration->outcomes;
	if (result->failed) {
		err = keep_failure(exploration);
		return err ? err
			   : fail(EINVAL, "the test fails without a decision: %s; correct it first",
				  result->words);
	}
	for (enum counted i = 0; i < COUNTED; i++)
		if (outcomes[0].seen[i] != outcomes[1].seen[i])
			return fail(
				ENOTSUP,
				"two runs without a decision differ: one has %llu packets, calls "
				"or "
				"allocations, the other %llu; let the test take its random numbers "
				"from a fixed seed, and use the virtual clock",
				(unsigned long long)outcomes[0].seen[i],
				(unsigned long long)outcomes[1].seen[i]);
	space_take_plain(&exploration->space, outcomes[0].seen);
	exploration->result->packets = outcomes[0].seen[COUNTED_PACKETS];
	exploration->result->calls = outcomes[0].seen[COUNTED_CALLS];
	exploration->result->allocations = outcomes[0].seen[COUNTED_ALLOCATIONS];
	end_stage(exploration);
	return 0;
}

static int explore_singles(struct exploration *exploration)
{
	const uint64_t count = exploration->space.singles;
	uint64_t *packets = calloc(count + 1, sizeof(*packets));
	int err = packets ? run_stage(exploration, STAGE_SINGLES) : ENOMEM;

	for (uint64_t i = 0; i < count && !err; i++)
		packets[i] = exploration->outcomes[i].seen[COUNTED_PACKETS];
	if (!err && !space_take_singles(&exploration->space, packets))
		err = ENOMEM;
	exploration->result->all_singles =
		!err && (!exploration->result->failed || exploration->explore.goes_on) &&
		count == exploration->space.singles_all;
	exploration->space.single_packets = NULL;
	free(packets);
	end_stage(exploration);
	return err;
}

static bool is_over(const struct exploration *exploration)
{
	return exploration->result->failed && !exploration->explore.goes_on;
}

static int explore_all(struct exploration *exploration)
{
	int err = explore_plain(exploration);

	if (!err)
		err = explore_singles(exploration);
	for (enum stage stage = STAGE_PAIRS; stage < STAGES && !err && !is_over(exploration);
	     stage++) {
		err = run_stage(exploration, stage);
		end_stage(exploration);
	}
	report_progress_end(&exploration->report);
	if (!err && exploration->result->failed)
		err = shrink(exploration);
	if (!err && exploration->result->failed)
		err = keep_failure(exploration);
	else if (!err)
		report_success(&exploration->report, exploration->result, &exploration->space);
	return err;
}

static int explore_space(const struct vb_explore *explore, struct vb_explore_result *result)
{
	struct exploration exploration = {
		.explore = *explore,
		.result = result,
		.space =
			{
				.kinds = explore->kinds,
				.pair_kinds = explore->pair_kinds,
				.singles_max = explore->singles_max,
				.pairs_max = explore->pairs_max,
				.walks = explore->walks,
				.seed = explore->seed,
			},
	};
	int err;

	exploration.crew = crew_begin(&exploration.explore);
	if (!exploration.crew)
		return fail(ENOMEM, "the processes of exploration have no memory");
	report_begin(&exploration.report, &exploration.explore);
	err = explore_all(&exploration);
	report_progress_end(&exploration.report);
	crew_end(exploration.crew);
	space_end(&exploration.space);
	return err;
}

/* --- one schedule --- */

/* Returns the schedule that the caller or the environment gives, without the name of the test before it.
 * NULL: none. Sets *other if it is of another test. */
static const char *given_text(const struct vb_explore *explore, bool *other)
{
	const char *text = explore->schedule;
	const char *slash;

	*other = false;
	if (!text && !getenv(VARIABLE_TALLY))
		text = getenv(VARIABLE_SCHEDULE);
	if (!text || !*text)
		return NULL;
	slash = strchr(text, '/');
	if (!slash)
		return text;
	*other = strlen(explore->name) != (size_t)(slash - text) ||
		 strncmp(explore->name, text, (size_t)(slash - text)) != 0;
	return slash + 1;
}

/* A program is a process of its own, and so is the run. */
static int run_given_program(const struct vb_explore *explore, struct files *files,
			     struct vb_explore_result *result)
{
	struct crew *crew = crew_begin(explore);
	struct outcome *outcome = crew_memory(sizeof(*outcome));
	const struct runs runs = {
		.count = 1,
		.schedule = given_schedule,
		.arg = &result->schedule,
		.log = files->log,
		.trace = files->trace,
		.shows_output = true,
		.outcomes = outcome,
	};
	int err = crew && outcome ? crew_run(crew, &runs) : ENOMEM;

	if (!err) {
		files->kept = keep_files(files->log, files->trace, outcome->seen[COUNTED_PACKETS]);
		result->end = outcome->end;
		run_say(crew_tally(crew), outcome->end, outcome->signal, result->words,
			sizeof(result->words));
	}
	crew_forget(outcome, sizeof(*outcome));
	if (crew)
		crew_end(crew);
	return err ? fail(err, "the run could not begin") : 0;
}

/* In this process, for debuggers. */
static void run_given_here(const struct vb_explore *explore, struct files *files,
			   struct vb_explore_result *result)
{
	struct explore_tally tally = {.version = TALLY_VERSION};

	result->end = run_test(explore, &(struct run){
						.schedule = &result->schedule,
						.tally = &tally,
						.tally_fd = -1,
						.log = files->log,
						.trace = files->trace,
						.aborts = true,
					});
	files->kept = keep_files(files->log, files->trace, tally.seen[COUNTED_PACKETS]);
	run_say(&tally, result->end, 0, result->words, sizeof(result->words));
}

static int run_given(const struct vb_explore *explore, const char *text,
		     struct vb_explore_result *result)
{
	struct report report;
	struct files files;
	int err = vb_schedule_parse(text, &result->schedule);

	if (!err)
		err = report_name_files(explore, &result->schedule, &files);
	if (err)
		return err;
	report_begin(&report, explore);
	if (explore->runs_program)
		err = run_given_program(explore, &files, result);
	else
		run_given_here(explore, &files, result);
	if (!err) {
		result->runs = result->space = 1;
		result->failed = run_failed(explore, &result->schedule, result->end);
		report_command(explore, &result->schedule, result->command,
			       sizeof(result->command));
		report_given(&report, result, &files);
	}
	report_forget_files(&files);
	return err;
}

/* --- the public function --- */

static bool is_name(const char *name)
{
	for (const char *c = name; *c; c++)
		if (!isalnum((unsigned char)*c) && !strchr("_-.", *c))
			return false;
	return *name && *name != '.' && strlen(name) < 128;
}

static int check(const struct vb_explore *explore)
{
	if (!explore || !explore->test)
		return fail(EINVAL, "vb_explore: there is no test; set the field test");
	if (explore->name && !is_name(explore->name))
		return fail(
			EINVAL,
			"vb_explore: '%s' is no name of a test; write letters, digits, '_', '-' "
			"and '.'",
			explore->name);
	if (explore->kinds & ~KINDS_ALL || explore->pair_kinds & ~KINDS_ALL)
		return fail(EINVAL, "vb_explore: kinds is %#x, with bits of no decision",
			    explore->kinds | explore->pair_kinds);
	return 0;
}

int vb_explore(const struct vb_explore *explore, struct vb_explore_result *result)
{
	struct vb_explore_result own, *into = result ? result : &own;
	struct vb_explore whole;
	const char *text;
	bool other;
	int err;

	memset(into, 0, sizeof(*into));
	err = check(explore);
	if (err)
		return -1;
	whole = with_defaults(explore);
	text = given_text(&whole, &other);
	if (other)
		return 0;
	err = text ? run_given(&whole, text, into) : explore_space(&whole, into);
	if (!err)
		return into->failed ? 1 : 0;
	if (!whole.quiet)
		fprintf(stderr, "explore %s: %s\n", whole.name, vb_last_error());
	errno = err;
	return -1;
}
