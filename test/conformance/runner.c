/* SPDX-License-Identifier: MIT */
#include "test/conformance/runner.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

const struct vt_suite *vt_find_suite(const struct vt_suite *const *suites, const char *name)
{
	for (; *suites; suites++)
		if (!strcmp((*suites)->name, name))
			return *suites;
	return NULL;
}

const char *vt_suite_unfit(const struct vt_options *options, const struct vt_place *place,
			   const struct vt_suite *suite)
{
	if (suite->simulator && !vt_has_world(options))
		return VT_UNFIT_BACKEND;
	if (place && suite->link_layer && suite->link_layer != place->link_layer)
		return VT_UNFIT_LINK_LAYER;
	return NULL;
}

static bool suite_chosen(const struct vt_options *options, const struct vt_suite *suite)
{
	for (unsigned int i = 0; i < options->suite_count; i++)
		if (!strcmp(options->suites[i], suite->name))
			return true;
	return !options->suite_count;
}

/* Sets *begun once the test that options->from names has come. */
static bool test_chosen(const struct vt_options *options, const struct vt_suite *suite,
			const struct vt_test *test, bool *begun)
{
	char name[256];

	snprintf(name, sizeof(name), "%s.%s", suite->name, test->name);
	*begun = *begun || !options->from || !strcmp(options->from, name);
	return *begun && (!options->filter || !fnmatch(options->filter, name, 0));
}

/*
 * Fills records unless it is NULL. Returns how many tests the options choose at the place, or at
 * any where it is NULL.
 */
static unsigned int choose(const struct vt_options *options, const struct vt_place *place,
			   struct vt_record *records)
{
	unsigned int count = 0;
	bool begun = false;

	for (const struct vt_suite *const *suite = options->all_suites; *suite; suite++) {
		bool fit = suite_chosen(options, *suite) && !vt_suite_unfit(options, place, *suite);

		for (const struct vt_test *test = (*suite)->tests; test->name; test++) {
			if (!test_chosen(options, *suite, test, &begun) || !fit)
				continue;
			if (records)
				records[count] = (struct vt_record){.suite = *suite, .test = test};
			count++;
		}
	}
	return count;
}

/* Makes the directory of the traces if it does not exist, but not its parents. */
static bool make_trace_dir(const char *path)
{
	struct stat st;

	if (!mkdir(path, 0777) || (errno == EEXIST && !stat(path, &st) && S_ISDIR(st.st_mode)))
		return true;
	fprintf(stderr, "verbena test: --trace %s: %s\n", path,
		strerror(errno == EEXIST ? ENOTDIR : errno));
	return false;
}

static void free_records(struct vt_record *records, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++) {
		free(records[i].text);
		free(records[i].output);
	}
	free(records);
}

/* Reports the first trace that cannot be written: the cause is the same for all of them. */
static void report_trace_error(const struct vt_result *result, bool *reported)
{
	if (!result->trace_error[0] || *reported)
		return;
	*reported = true;
	fprintf(stderr, "verbena test: a trace could not be written: %s (the tests continue)\n",
		result->trace_error);
}

/* False: out of memory. */
static bool run_or_leave_out(const struct vt_options *options, const struct vt_place *place,
			     const struct vt_known *known, struct vt_record *record,
			     struct vt_result *shared)
{
	const char *crash = vt_known_crash(known, record->test);

	if (crash)
		return vt_leave_out(record, crash);
	return vt_run_one(options, place, record, shared) &&
	       (!known || vt_known_judge(known, record, shared)) &&
	       (!options->two || vt_compare_one(options, place, record, shared));
}

static int run_chosen(const struct vt_options *options, const struct vt_place *place,
		      const struct vt_known *known, struct vt_record *records, unsigned int count)
{
	struct vt_report *report;
	struct vt_result *shared = vt_shared(sizeof(*shared));
	bool trace_reported = false;
	unsigned int i = 0;

	report = shared ? vt_report_open(options, place, count) : NULL;
	if (!report)
		return VT_EXIT_USAGE;
	for (i = 0; i < count; i++) {
		vt_report_start(report, records[i].suite, records[i].test);
		if (!run_or_leave_out(options, place, known, &records[i], shared))
			break;
		report_trace_error(shared, &trace_reported);
		vt_report_test(report, &records[i]);
	}
	munmap(shared, sizeof(*shared));
	if (i == count)
		return vt_report_close(report, records, count);
	fprintf(stderr, "verbena test: out of memory\n");
	vt_report_close(report, records, i);
	return VT_EXIT_FAILED;
}

static void refuse_choice(const struct vt_options *options, const struct vt_place *place)
{
	fprintf(stderr, "verbena test: no test is chosen%s by",
		place ? " that is for this place" : "");
	for (unsigned int i = 0; i < options->suite_count; i++)
		fprintf(stderr, "%s%s", i ? "," : " --suite ", options->suites[i]);
	if (options->filter)
		fprintf(stderr, " --filter '%s'", options->filter);
	if (options->from)
		fprintf(stderr, " --from '%s'", options->from);
	fprintf(stderr, ": 'verbena test --list' names all tests as SUITE.TEST\n");
}

/*
 * Chooses at least one test, or returns another status than VT_EXIT_PASSED after a message. The
 * caller frees the records.
 */
static int choose_all(const struct vt_options *options, const struct vt_place *place,
		      struct vt_record **records, unsigned int *count)
{
	*count = choose(options, place, NULL);
	if (!*count) {
		refuse_choice(options, place);
		return VT_EXIT_USAGE;
	}
	*records = calloc(*count, sizeof(**records));
	if (!*records) {
		fprintf(stderr, "verbena test: out of memory\n");
		return VT_EXIT_FAILED;
	}
	*count = choose(options, place, *records);
	return VT_EXIT_PASSED;
}

static int run_at(const struct vt_options *options, const struct vt_place *place)
{
	struct vt_known *known = NULL;
	struct vt_record *records;
	unsigned int count;
	int status = choose_all(options, place, &records, &count);

	if (status)
		return status;
	if (options->known)
		known = vt_known_load(options);
	if ((options->known && !known) ||
	    (options->trace_dir && !make_trace_dir(options->trace_dir)))
		status = VT_EXIT_USAGE;
	else
		status = run_chosen(options, place, known, records, count);
	free_records(records, count);
	vt_known_free(known);
	return status;
}

int vt_run_all(const struct vt_options *options)
{
	struct vt_place place;
	struct vt_record *records;
	unsigned int count;
	int status = choose_all(options, NULL, &records, &count);

	if (status)
		return status;
	free_records(records, count);
	vt_find_place(options, &place);
	if (!place.error[0]) {
		vt_prepare_traces(options, &place);
		return run_at(options, &place);
	}
	fprintf(stderr, "verbena test: %s\n", place.error);
	return VT_EXIT_NO_DEVICE;
}

static unsigned int name_length(const struct vt_record *record)
{
	return strlen(record->suite->name) + 1 + strlen(record->test->name);
}

static void print_list(const struct vt_record *records, unsigned int count)
{
	unsigned int width = 0, length;

	for (unsigned int i = 0; i < count; i++) {
		length = name_length(&records[i]);
		width = length > width ? length : width;
	}
	for (unsigned int i = 0; i < count; i++)
		printf("%s.%s%*s  %s\n", records[i].suite->name, records[i].test->name,
		       (int)(width - name_length(&records[i])), "", records[i].test->source);
}

int vt_list_all(const struct vt_options *options)
{
	struct vt_record *records;
	unsigned int count;
	int status = choose_all(options, NULL, &records, &count);

	if (status)
		return status;
	print_list(records, count);
	free_records(records, count);
	return VT_EXIT_PASSED;
}
