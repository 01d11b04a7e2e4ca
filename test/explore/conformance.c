/* SPDX-License-Identifier: MIT */
/*
 * usage: explore-conformance [-s SINGLES] [-p PAIRS] [-w WALKS] [-j JOBS] [-i] [-v] [-c | -r] LIST [SUITE[.TEST]...]
 *
 * Explores the conformance tests: whatever single packet is lost, repeated, late or corrupted, a test has the
 * same verdict. LIST (test/data/unexplored.txt) names the tests whose verdict some of these change. SINGLES is the
 * number of single decisions of a test; of more, those are explored that are spread evenly. With -i, the devices
 * are of InfiniBand; with -v, each test has a line. -c checks the list: a listed kind must change the verdict. -r
 * prints the lines that the list would have, without causes.
 */
#include "test/conformance/runner.h"
#include "test/conformance/suites.h"
#include "test/explore/excluded.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <verbena/error.h>
#include <verbena/explore.h>

#define KINDS_PACKETS ((1u << (VB_DECIDE_CORRUPT + 1)) - 1)
#define NAME_BYTES    128
#define WORK_PACKETS  50000 /* of all schedules of a test */

/* What all explorations add up to. */
struct sum {
	unsigned int tests, suites; /* counts those that were explored */
	unsigned int spread;	    /* counts the tests with more single decisions than explored */
	unsigned int fewer;	    /* counts the tests without some kinds */
	unsigned int left_out, silent, skipped;
	uint64_t schedules;
};

struct conformance {
	struct vt_options options;
	struct vt_place place;
	struct vt_result result;
	struct exclusions list;
	struct sum sum;
	struct vb_explore explore; /* what all tests have in common */
	bool checks, records, verbose;
	char **chosen; /* suites and tests, up to NULL; none: all */
	bool *skips;   /* in memory that the runs share: the test was skipped */
	bool failed;
};

struct one {
	struct conformance *conformance;
	const struct vt_suite *suite;
	const struct vt_test *test;
	char name[NAME_BYTES];
};

/* --- one run --- */

/* The first line says what was expected. */
static int fail_with(char *text)
{
	for (char *c = text; *c; c++)
		if (*c == '\n' || *c == '\t')
			*c = ' ';
	return vb_explore_wrong("%s", text);
}

static int run(void *arg)
{
	const struct one *one = arg;
	struct conformance *conformance = one->conformance;
	struct vt_record record = {.suite = one->suite, .test = one->test};
	int end = VB_ENDED_WELL;

	if (!vt_run_one(&conformance->options, &conformance->place, &record, &conformance->result))
		return vb_explore_wrong("there is no memory");
	*conformance->skips = record.outcome == VT_SKIPPED;
	if (record.outcome == VT_FAILED)
		end = fail_with(record.text);
	free(record.text);
	free(record.output);
	return end;
}

/* --- one test --- */

/* Of a test with very many packets, fewer schedules are explored. Returns how many. */
static uint64_t affordable(const struct vb_explore *explore, uint64_t packets)
{
	const uint64_t runs = WORK_PACKETS / (packets + 1) + 1;

	return explore->singles_max && explore->singles_max < runs ? explore->singles_max : runs;
}

/* Returns what vb_explore() returns. */
static int explore(struct one *one, unsigned int kinds, struct vb_explore_result *result)
{
	struct vb_explore explore = one->conformance->explore, first;
	int failed;

	explore.name = one->name;
	explore.test = run;
	explore.arg = one;
	explore.kinds = kinds;
	*one->conformance->skips = false;
	first = explore;
	first.singles_max = 1;
	first.pairs_max = first.walks = 0;
	failed = vb_explore(&first, result);
	if (failed || !result->packets)
		return failed;
	explore.singles_max = affordable(&explore, result->packets);
	return vb_explore(&explore, result);
}

static void report_failure(struct one *one, const struct vb_explore_result *result)
{
	char text[VB_SCHEDULE_TEXT];

	one->conformance->failed = true;
	printf("explore %s: %s fails: %s\n  repeat: %s\n", one->name,
	       vb_schedule_print(&result->schedule, text),
	       result->words[0] ? result->words : vb_last_error(), result->command);
}

static void add(struct one *one, unsigned int kinds, const struct vb_explore_result *result)
{
	struct sum *sum = &one->conformance->sum;

	if (*one->conformance->skips) {
		sum->skipped++;
	} else if (!result->packets) {
		sum->silent++;
	} else {
		sum->tests++;
		sum->spread += !result->all_singles;
		sum->fewer += kinds != KINDS_PACKETS;
		sum->schedules += result->space - 1;
	}
	if (one->conformance->verbose)
		printf("explore %s: %llu packets, %llu schedules end well\n", one->name,
		       (unsigned long long)result->packets, (unsigned long long)result->space - 1);
}

static void explore_test(struct one *one, const struct excluded *excluded)
{
	const unsigned int kinds = KINDS_PACKETS & ~(excluded ? excluded->kinds : 0);
	struct vb_explore_result result;

	if (!kinds) {
		one->conformance->sum.left_out++;
		return;
	}
	if (explore(one, kinds, &result))
		report_failure(one, &result);
	else
		add(one, kinds, &result);
}

/* Each listed kind changes the verdict. */
static void check_line(struct one *one, const struct excluded *excluded)
{
	struct vb_explore_result result;

	if (excluded->kinds == EXCLUDED_ALL)
		return;
	for (unsigned int kind = 0; kind <= VB_DECIDE_CORRUPT; kind++) {
		if (!(excluded->kinds & 1u << kind) || explore(one, 1u << kind, &result) ||
		    *one->conformance->skips)
			continue;
		printf("line %u: %s ends well with each %s: remove the word\n", excluded->line,
		       one->name, vb_decision_name(kind));
		one->conformance->failed = true;
	}
}

/* Prints which kinds change the verdict. */
static void record_test(struct one *one)
{
	const char *between = "";
	struct vb_explore_result result;
	char words[sizeof(result.words)] = "";

	for (unsigned int kind = 0; kind <= VB_DECIDE_CORRUPT; kind++) {
		const int failed = explore(one, 1u << kind, &result);

		if (!failed)
			continue;
		printf("%s%s", *between ? between : one->name, *between ? "" : " CAUSE ");
		printf("%s", failed < 0 ? "all" : vb_decision_name(kind));
		if (!*words)
			snprintf(words, sizeof(words), "%s", result.words);
		between = ",";
		if (failed < 0)
			break;
	}
	if (*between)
		printf(" # %s\n", words);
	fflush(stdout);
}

static void take_test(struct one *one)
{
	struct conformance *conformance = one->conformance;
	const struct excluded *excluded = exclusions_find(&conformance->list, one->name);

	if (conformance->records && !excluded)
		record_test(one);
	else if (conformance->checks && excluded)
		check_line(one, excluded);
	else if (!conformance->checks && !conformance->records)
		explore_test(one, excluded);
}

/* --- all tests --- */

static bool is_chosen(const struct conformance *conformance, const struct one *one)
{
	char **name = conformance->chosen;

	while (*name && strcmp(*name, one->suite->name) != 0 && strcmp(*name, one->name) != 0)
		name++;
	return *name || !conformance->chosen[0];
}

static void name_test(struct one *one, const struct vt_suite *suite, const struct vt_test *test)
{
	one->suite = suite;
	one->test = test;
	snprintf(one->name, sizeof(one->name), "%s.%s", suite->name, test->name);
}

static void take_suite(struct conformance *conformance, const struct vt_suite *suite)
{
	const unsigned int before = conformance->sum.tests;
	struct one one = {.conformance = conformance};

	if (vt_suite_unfit(&conformance->options, &conformance->place, suite))
		return;
	for (const struct vt_test *test = suite->tests; test->name; test++) {
		name_test(&one, suite, test);
		if (is_chosen(conformance, &one))
			take_test(&one);
	}
	conformance->sum.suites += conformance->sum.tests > before;
}

static bool is_a_test(const char *name)
{
	struct one one;

	for (const struct vt_suite *const *suite = vt_suites; *suite; suite++)
		for (const struct vt_test *test = (*suite)->tests; test->name; test++) {
			name_test(&one, *suite, test);
			if (!strcmp(one.name, name))
				return true;
		}
	return false;
}

/* A line of the list names a test that exists. */
static bool check_names(const struct exclusions *list)
{
	bool good = true;

	for (size_t i = 0; i < list->count; i++)
		if (!is_a_test(list->tests[i].name)) {
			printf("line %u: there is no test %s: correct the name\n",
			       list->tests[i].line, list->tests[i].name);
			good = false;
		}
	return good;
}

static void print_sum(const struct conformance *conformance)
{
	const struct sum *sum = &conformance->sum;

	printf("%u tests of %u suites: %llu schedules; %u of the tests without some kinds of "
	       "decisions, %u "
	       "with a part of their single decisions. Beside them, %u tests send no packets, "
	       "%u are listed with all kinds, %u are skipped here\n",
	       sum->tests, sum->suites, (unsigned long long)sum->schedules, sum->fewer, sum->spread,
	       sum->silent, sum->left_out, sum->skipped);
}

/* --- the program --- */

static bool read_options(int argc, char **argv, struct conformance *conformance,
			 struct vb_sim_config *sim)
{
	struct vb_explore *explore = &conformance->explore;
	int option;

	while ((option = getopt(argc, argv, "s:p:w:j:ivcr")) != -1) {
		const uint64_t number = optarg ? strtoull(optarg, NULL, 0) : 0;

		if (option == '?')
			return false;
		if (option == 's')
			explore->singles_max = number;
		if (option == 'p')
			explore->pairs_max = number;
		if (option == 'w')
			explore->walks = number;
		if (option == 'j')
			explore->jobs = (unsigned int)number;
		if (option == 'i')
			sim->devices[0].link_layer = sim->devices[1].link_layer =
				IBV_LINK_LAYER_INFINIBAND;
		conformance->verbose |= option == 'v';
		conformance->checks |= option == 'c';
		conformance->records |= option == 'r';
	}
	return optind < argc;
}

/* Finds A and B once, for all runs. */
static bool find_place(struct conformance *conformance)
{
	vt_find_place(&conformance->options, &conformance->place);
	vb_sim_reset();
	conformance->skips = vt_shared(sizeof(*conformance->skips));
	if (conformance->place.error[0])
		fprintf(stderr, "%s\n", conformance->place.error);
	return !conformance->place.error[0] && conformance->skips;
}

int main(int argc, char **argv)
{
	static struct conformance conformance;
	struct vb_sim_config sim = {
		.clock = VB_SIM_CLOCK_VIRTUAL,
		.device_count = 2,
		.devices = {{.name = "sim0"}, {.name = "sim1"}},
	};
	bool ready;

	conformance.options = (struct vt_options){
		.all_suites = vt_suites,
		.backend = "sim",
		.seed = 1,
		.sim = &sim,
		.no_fork = true,
	};
	conformance.explore = (struct vb_explore){.quiet = true, .leaks_allowed = true};
	if (!read_options(argc, argv, &conformance, &sim))
		return 2;
	conformance.chosen = argv + optind + 1;
	conformance.failed = !exclusions_read(&conformance.list, argv[optind]) ||
			     !check_names(&conformance.list) || !find_place(&conformance);
	ready = !conformance.failed;
	for (size_t i = 0; vt_suites[i] && ready; i++)
		take_suite(&conformance, vt_suites[i]);
	if (ready && !conformance.checks && !conformance.records)
		print_sum(&conformance);
	exclusions_free(&conformance.list);
	return conformance.failed;
}
