/* SPDX-License-Identifier: MIT */
#include "test/conformance/runner.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <verbena/verbs.h>

enum colour { PLAIN, RED, GREEN, YELLOW, COLOURS };

struct vt_report {
	const struct vt_options *options;
	FILE *junit;
	bool progress; /* on a terminal, a line shows the test that runs */
	bool colour;
	unsigned int tests, done;
	unsigned int counts[VT_OUTCOMES];
	unsigned int in_two, different; /* with --two-processes */
	/* The suite that runs, for its summary line. */
	const struct vt_suite *suite;
	unsigned int suite_counts[VT_OUTCOMES];
	double suite_seconds;
	const struct vt_record *first_failure;
	const char *traces; /* the folder in which failed tests left packets; "": none */
};

static const char *coloured(const struct vt_report *report, enum colour colour)
{
	static const char *const codes[COLOURS] = {"\033[0m", "\033[31m", "\033[32m", "\033[33m"};

	return report->colour ? codes[colour] : "";
}

static void clear_progress(const struct vt_report *report)
{
	if (report->progress)
		printf("\r\033[K");
}

/* Prints each line of the text behind the prefix. */
static void print_lines(const char *prefix, const char *text)
{
	while (*text) {
		int length = strcspn(text, "\n");

		printf("%s%.*s\n", prefix, length, text);
		text += length + (text[length] == '\n');
	}
}

/* Prints a line with the suites that are left out for one reason. */
static void print_left_out(const struct vt_report *report, const struct vt_place *place,
			   const char *reason)
{
	const struct vt_suite *const *suite = report->options->all_suites;
	const char *between = ":";

	for (; *suite; suite++) {
		const char *why = vt_suite_unfit(report->options, place, *suite);

		if (!why || strcmp(why, reason) != 0)
			continue;
		if (*between == ':')
			printf("%sleft out, %s", report->options->tap ? "# " : "", reason);
		printf("%s %s", between, (*suite)->name);
		between = ",";
	}
	if (*between == ',')
		printf("\n");
}

static void print_head(const struct vt_report *report, const struct vt_place *place)
{
	const char *mark = report->options->tap ? "# " : "";

	printf("%sseed %llu\n", mark, (unsigned long long)report->options->seed);
	printf("%sbackend %s, A is %s port %u, B is %s port %u", mark, report->options->backend,
	       place->device, place->port, place->peer_device, place->peer_port);
	if (report->options->two)
		printf(" of backend %s in another process", report->options->two->backend);
	printf("\n");
	print_left_out(report, place, VT_UNFIT_BACKEND);
	print_left_out(report, place, VT_UNFIT_LINK_LAYER);
}

static void warn_no_trace(const struct vt_options *options)
{
	const struct vb_backend *backend = vb_find_backend(options->backend);

	if (options->trace_dir && !(backend->capabilities & VB_BACKEND_SIMULATED))
		fprintf(stderr, "verbena test: backend %s writes no traces: --trace is ignored\n",
			options->backend);
}

struct vt_report *vt_report_open(const struct vt_options *options, const struct vt_place *place,
				 unsigned int tests)
{
	struct vt_report *report = calloc(1, sizeof(*report));
	const char *no_colour = getenv("NO_COLOR"), *term = getenv("TERM");
	bool terminal = isatty(STDOUT_FILENO) && term && strcmp(term, "dumb") != 0;

	if (!report)
		return NULL;
	*report = (struct vt_report){.options = options, .tests = tests, .traces = place->traces};
	report->progress = terminal && !options->tap;
	report->colour = report->progress && !(no_colour && *no_colour);
	if (options->junit) {
		report->junit = fopen(options->junit, "we");
		if (!report->junit) {
			fprintf(stderr, "verbena test: --junit %s: %s\n", options->junit,
				strerror(errno));
			free(report);
			return NULL;
		}
	}
	warn_no_trace(options);
	if (options->tap)
		printf("TAP version 13\n1..%u\n", tests);
	print_head(report, place);
	return report;
}

void vt_report_start(struct vt_report *report, const struct vt_suite *suite,
		     const struct vt_test *test)
{
	if (report->progress)
		printf("\r\033[K[%u/%u] %s.%s", report->done + 1, report->tests, suite->name,
		       test->name);
	fflush(stdout);
}

static void report_tap(const struct vt_report *report, const struct vt_record *record)
{
	static const char *const directives[VT_OUTCOMES] = {
		[VT_SKIPPED] = " # SKIP ", [VT_KNOWN] = " # TODO known: "};
	const char *directive = directives[record->outcome];
	bool good = record->outcome == VT_PASSED || record->outcome == VT_SKIPPED;

	printf("%sok %u - %s.%s%s%s\n", good ? "" : "not ", report->done, record->suite->name,
	       record->test->name, directive ? directive : "",
	       record->outcome == VT_SKIPPED ? record->text
	       : record->outcome == VT_KNOWN ? record->quirks
					     : "");
	if (record->outcome != VT_FAILED)
		return;
	print_lines("#   ", record->text);
	print_lines("#   | ", record->output);
}

static void print_failure(const struct vt_report *report, const struct vt_record *record)
{
	printf("%sFAILED%s %s.%s (%s)\n", coloured(report, RED), coloured(report, PLAIN),
	       record->suite->name, record->test->name, record->test->source);
	print_lines("  ", record->text);
	if (record->output[0]) {
		printf("  it wrote:\n");
		print_lines("    | ", record->output);
	}
}

static void report_human(const struct vt_report *report, const struct vt_record *record)
{
	bool verbose = report->options->verbose;

	if (record->outcome != VT_PASSED || verbose)
		clear_progress(report);
	if (record->outcome == VT_FAILED)
		print_failure(report, record);
	else if (record->outcome == VT_SKIPPED)
		printf("%sskipped%s %s.%s: %s\n", coloured(report, YELLOW), coloured(report, PLAIN),
		       record->suite->name, record->test->name, record->text);
	else if (record->outcome == VT_KNOWN)
		printf("%sknown%s   %s.%s (%s): %.*s\n", coloured(report, YELLOW),
		       coloured(report, PLAIN), record->suite->name, record->test->name,
		       record->quirks, (int)strcspn(record->text, "\n"), record->text);
	else if (verbose)
		printf("%spassed%s  %s.%s (%.3f s)\n", coloured(report, GREEN),
		       coloured(report, PLAIN), record->suite->name, record->test->name,
		       record->seconds);
}

/* Prints the summary line of the suite that has ended. */
static void end_suite(struct vt_report *report)
{
	const unsigned int *counts = report->suite_counts;

	if (report->suite && !report->options->tap) {
		clear_progress(report);
		printf("%-16s %4u passed", report->suite->name, counts[VT_PASSED]);
		if (counts[VT_FAILED])
			printf(", %s%u failed%s", coloured(report, RED), counts[VT_FAILED],
			       coloured(report, PLAIN));
		if (counts[VT_KNOWN])
			printf(", %u known", counts[VT_KNOWN]);
		if (counts[VT_SKIPPED])
			printf(", %u skipped", counts[VT_SKIPPED]);
		printf("  (%s, %.2f s)\n", report->suite->about, report->suite_seconds);
	}
	report->suite = NULL;
	report->suite_seconds = 0;
	memset(report->suite_counts, 0, sizeof(report->suite_counts));
}

void vt_report_test(struct vt_report *report, const struct vt_record *record)
{
	if (record->suite != report->suite) {
		end_suite(report);
		report->suite = record->suite;
	}
	report->done++;
	report->counts[record->outcome]++;
	report->suite_counts[record->outcome]++;
	report->suite_seconds += record->seconds;
	report->in_two += record->b_can_receive && record->outcome == VT_PASSED;
	report->different += record->differs;
	if (record->outcome == VT_FAILED && !report->first_failure)
		report->first_failure = record;
	if (report->options->tap)
		report_tap(report, record);
	else
		report_human(report, record);
	fflush(stdout);
}

/* Returns true if the suite may fail because of the profile alone. */
static bool needs_list(const struct vt_options *options)
{
	return options->place && strcmp(options->place, "spec") != 0 && !options->known;
}

static bool too_few(const struct vt_report *report)
{
	const struct vt_two *two = report->options->two;

	return two && report->in_two < two->at_least;
}

static void print_two(const struct vt_report *report)
{
	const struct vt_two *two = report->options->two;

	if (!two)
		return;
	if (two->one)
		printf(", %u differ from one process", report->different);
	printf(", %u passed between two processes", report->in_two);
	if (too_few(report))
		printf(" (fewer than --at-least %llu)", (unsigned long long)two->at_least);
}

static void print_end(const struct vt_report *report)
{
	const struct vt_record *failure = report->first_failure;
	const char *mark = report->options->tap ? "# " : "";

	if (failure)
		printf("%sagain: verbena test%s --seed %llu --filter %s.%s\n", mark,
		       report->options->again, (unsigned long long)report->options->seed,
		       failure->suite->name, failure->test->name);
	if (failure && report->traces[0])
		printf("%slogs and packets of failed tests: %s (the next run removes them)\n", mark,
		       report->traces);
	if (failure && needs_list(report->options))
		printf("%sThe profile %s differs from the specification: --known "
		       "test/data/divergences.txt takes the failures that its device has, too\n",
		       mark, report->options->place);
	printf("%s%u passed, %u failed, %u skipped", mark, report->counts[VT_PASSED],
	       report->counts[VT_FAILED], report->counts[VT_SKIPPED]);
	if (report->options->known)
		printf(", %u known", report->counts[VT_KNOWN]);
	print_two(report);
	printf("\n");
}

int vt_report_close(struct vt_report *report, const struct vt_record *records, unsigned int count)
{
	bool written;
	int status;

	end_suite(report);
	written = !report->junit || vt_write_junit(report->junit, report->options, records, count);
	print_end(report);
	status = report->counts[VT_FAILED] || too_few(report) ? VT_EXIT_FAILED : VT_EXIT_PASSED;
	if (!written || fflush(stdout))
		status = VT_EXIT_FAILED;
	free(report);
	return status;
}
