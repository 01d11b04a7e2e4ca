/* SPDX-License-Identifier: MIT */
#include "src/explore/report.h"

#include "src/base/failure.h"
#include "src/explore/tally.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CLEAR_LINE "\r\033[K"
#define NS_OF_S	   1000000000u

/* Of a test that sends nothing. */
#define NOTHING                                                                                  \
	"explore %s: nothing is explored: the run has no packet, or nothing else of the chosen " \
	"kinds; "                                                                                \
	"let it send on simulated devices: a program does that if it uses libibverbs or "        \
	"libverbena\n"

static const char *const stages[] = {
	[STAGE_PLAIN] = "without a decision",
	[STAGE_SINGLES] = "single decisions",
	[STAGE_PAIRS] = "pairs",
	[STAGE_WALKS] = "random schedules",
};

void report_begin(struct report *report, const struct vb_explore *explore)
{
	*report = (struct report){
		.explore = explore,
		.terminal = !explore->quiet && isatty(STDERR_FILENO),
	};
}

/* --- the progress --- */

void report_progress(const struct report *report, enum stage stage, uint64_t done, uint64_t count,
		     uint64_t elapsed_ns)
{
	const uint64_t left_s = done ? elapsed_ns / done * (count - done) / NS_OF_S : 0;

	if (!report->terminal || !count)
		return;
	fprintf(stderr, CLEAR_LINE "explore %s: %s: %" PRIu64 " of %" PRIu64 " (%" PRIu64 " %%)",
		report->explore->name, stages[stage], done, count, 100 * done / count);
	if (left_s)
		fprintf(stderr, ", about %" PRIu64 " s left", left_s);
}

void report_progress_end(const struct report *report)
{
	if (report->terminal)
		fputs(CLEAR_LINE, stderr);
}

/* --- the end --- */

static void print_kinds(const struct vb_explore *explore)
{
	const char *between = "";

	for (unsigned int kind = 0; kind < VB_DECISION_KINDS; kind++) {
		if (!(explore->kinds & 1u << kind))
			continue;
		fprintf(stderr, "%s%s", between, vb_decision_name(kind));
		between = ", ";
	}
}

static void print_counts(const struct vb_explore *explore, const struct vb_explore_result *result)
{
	fprintf(stderr, "%" PRIu64 " packets", result->packets);
	if (explore->kinds & 1u << VB_DECIDE_CALL)
		fprintf(stderr, ", %" PRIu64 " calls", result->calls);
	if (explore->kinds & 1u << VB_DECIDE_ALLOCATION)
		fprintf(stderr, ", %" PRIu64 " allocations", result->allocations);
}

static void print_share(const char *between, uint64_t part, uint64_t whole, const char *what)
{
	fprintf(stderr, "%s%" PRIu64 " of %" PRIu64 " %s (%" PRIu64 " %%)", between, part, whole,
		what, 100 * part / whole);
}

static void print_singles(const struct vb_explore *explore, const struct space *space)
{
	if (space->singles == space->singles_all)
		fprintf(stderr, "; all of %" PRIu64 " single decisions", space->singles);
	else
		print_share("; ", space->singles, space->singles_all, "single decisions");
	fprintf(stderr, " (");
	print_kinds(explore);
	fprintf(stderr, ")");
}

void report_success(const struct report *report, const struct vb_explore_result *result,
		    const struct space *space)
{
	const struct vb_explore *explore = report->explore;
	const uint64_t schedules = space->singles ? result->space - 1 : 0;

	if (explore->quiet)
		return;
	if (!schedules) {
		fprintf(stderr, NOTHING, explore->name);
		return;
	}
	fprintf(stderr, "explore %s: %" PRIu64 " schedule%s well: ", explore->name, schedules,
		schedules == 1 ? " ends" : "s end");
	print_counts(explore, result);
	print_singles(explore, space);
	if (space_pairs(space))
		print_share("; ", space_count(space, STAGE_PAIRS), space_pairs(space), "pairs");
	if (explore->walks)
		fprintf(stderr, "; %" PRIu64 " random schedules", explore->walks);
	fprintf(stderr, "\n");
}

static void print_files(const struct files *files)
{
	if (files->log && !access(files->log, R_OK))
		fprintf(stderr, "  log:     %s (verbena trace show %s)\n", files->log, files->log);
	if (files->trace && !access(files->trace, R_OK))
		fprintf(stderr, "  packets: %s\n", files->trace);
	if (files->kept.disk_full)
		fprintf(stderr, "  the disk is full: the end of the run may be missing in the "
				"files; make room, "
				"or name another folder\n");
	if (files->kept.events)
		fprintf(stderr,
			"  left out: events at the begin of the log: %" PRIu64
			"; raise --log-limit (VERBENA_LOG_LIMIT) to keep them\n",
			files->kept.events);
	if (files->kept.packets)
		fprintf(stderr,
			"  left out: all packets but the last %" PRIu64
			"; raise --trace-limit (VERBENA_TRACE_LIMIT) to keep them\n",
			files->kept.packets);
}

void report_failure(const struct report *report, const struct vb_explore_result *result,
		    const struct files *files)
{
	char text[VB_SCHEDULE_TEXT];

	if (report->explore->quiet)
		return;
	fprintf(stderr, "explore %s: %s fails: %s\n", report->explore->name,
		vb_schedule_print(&result->schedule, text), result->words);
	if (report->explore->goes_on)
		fprintf(stderr, "  failed:  %" PRIu64 " of %" PRIu64 " schedules\n", result->failed,
			result->space);
	else if (result->schedule.count)
		fprintf(stderr, "  before:  %" PRIu64 " schedule%s well\n", report->before,
			report->before == 1 ? " ends" : "s end");
	print_files(files);
	fprintf(stderr, "  output:  %s\n", files->output);
	fprintf(stderr, "  repeat:  %s\n", result->command);
}

void report_given(const struct report *report, const struct vb_explore_result *result,
		  const struct files *files)
{
	char text[VB_SCHEDULE_TEXT];

	if (report->explore->quiet)
		return;
	fprintf(stderr, "explore %s: %s %s: %s\n", report->explore->name,
		vb_schedule_print(&result->schedule, text), result->failed ? "fails" : "ends well",
		result->words);
	print_files(files);
}

/* --- files --- */

static char *path_of(const struct vb_explore *explore, const char *ending)
{
	char *path;

	if (asprintf(&path, "%s/%s.%s", explore->folder, explore->name, ending) < 0)
		return NULL;
	/* The file of an earlier run is not this one's. */
	unlink(path);
	return path;
}

static bool has_allocation(const struct vb_schedule *schedule)
{
	return schedule->count &&
	       schedule->decisions[schedule->count - 1].kind == VB_DECIDE_ALLOCATION;
}

int report_name_files(const struct vb_explore *explore, const struct vb_schedule *schedule,
		      struct files *files)
{
	const bool bare = has_allocation(schedule);

	*files = (struct files){.log = NULL};
	if (mkdir(explore->folder, 0777) && errno != EEXIST)
		return fail(errno, "the folder %s cannot be made: %s", explore->folder,
			    strerror(errno));
	files->log = bare ? NULL : path_of(explore, "jsonl");
	files->trace = bare ? NULL : path_of(explore, "pcap");
	files->output = path_of(explore, "out");
	if (files->output && (bare || (files->log && files->trace)))
		return 0;
	report_forget_files(files);
	return fail(ENOMEM, "there is no memory for the names of files");
}

void report_forget_files(struct files *files)
{
	free(files->log);
	free(files->trace);
	free(files->output);
}

/* --- the command --- */

static void put_quoted(FILE *out, const char *word)
{
	bool plain = *word;

	for (const char *c = word; *c; c++)
		plain = plain && (isalnum((unsigned char)*c) || strchr("_-./:+,@%=", *c));
	if (plain) {
		fputs(word, out);
		return;
	}
	fputc('\'', out);
	for (const char *c = word; *c; c++)
		if (*c == '\'')
			fputs("'\\''", out);
		else
			fputc(*c, out);
	fputc('\'', out);
}

/* The words of this process's command line. */
static void put_program(FILE *out)
{
	FILE *in = fopen("/proc/self/cmdline", "re");
	char *word = NULL;
	size_t size_bytes = 0;

	while (in && getdelim(&word, &size_bytes, '\0', in) > 0) {
		fputc(' ', out);
		put_quoted(out, word);
	}
	free(word);
	if (in)
		fclose(in);
}

/* Replaces "%s" of the caller's command. */
static void put_given(FILE *out, const char *command, const char *schedule)
{
	const char *at = strstr(command, "%s");

	if (at)
		fprintf(out, "%.*s%s%s", (int)(at - command), command, schedule, at + 2);
	else
		fputs(command, out);
}

void report_command(const struct vb_explore *explore, const struct vb_schedule *schedule,
		    char *text, size_t size_bytes)
{
	char printed[VB_SCHEDULE_TEXT];
	FILE *out = fmemopen(text, size_bytes, "w");

	if (!out)
		return;
	vb_schedule_print(schedule, printed);
	if (explore->command) {
		put_given(out, explore->command, printed);
	} else {
		fprintf(out, "%s=%s/%s", VARIABLE_SCHEDULE, explore->name, printed);
		put_program(out);
	}
	fclose(out);
}
