/* SPDX-License-Identifier: MIT */
#include "src/cli/trace.h"

#include "src/picture/ladder.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

struct arguments {
	struct trace_choice choice; /* the first member, as TRACE_CHOICE_OPTIONS wants it */
	bool with_verbs;
	uint64_t last;
	struct trace_look look;
	const char *svg;
	struct ladder ladder;
};

/* --- options --- */

#define AT(field) offsetof(struct arguments, field)

static const struct cli_option options[] = {
	TRACE_CHOICE_OPTIONS,
	{"verbs", 0, NULL, "all verbs [posts, and verbs that failed]", NULL, cli_take_flag,
	 AT(with_verbs)},
	{"last", 0, "N", "the last N rows only [0: all]", NULL, cli_take_number, AT(last),
	 UINT32_MAX},
	TRACE_LOOK_OPTIONS(AT(look)),
	{"svg", 0, "FILE", "write an SVG picture instead of text; - is standard output", NULL,
	 cli_take_text, AT(svg)},
	{0},
};

/* --- reading --- */

static bool take(void *arg, const json_t *event, const char *line)
{
	struct arguments *arguments = arg;

	ladder_take(&arguments->ladder, event, trace_chosen(&arguments->choice, event));
	return true;
}

void trace_show_last(const char *path, unsigned int rows, int width, FILE *out)
{
	struct arguments arguments = {.choice = {.to_ns = UINT64_MAX}};
	const struct ladder_style style = {.width = width};
	const uint64_t count = trace_count_frames(path);
	FILE *file = count ? fopen(path, "re") : NULL;

	if (!file)
		return;
	arguments.ladder.left_out = count > rows ? count - rows : 0;
	trace_read_from(file, NULL, arguments.ladder.left_out, take, &arguments);
	ladder_end(&arguments.ladder);
	ladder_print(&arguments.ladder, &style, out);
	ladder_free(&arguments.ladder);
}

/* --- writing --- */

static int write_svg(const struct arguments *arguments)
{
	const bool to_stdout = strcmp(arguments->svg, "-") == 0;
	FILE *out = to_stdout ? stdout : fopen(arguments->svg, "we");
	bool failed = !out;

	if (out) {
		ladder_print_svg(&arguments->ladder, out);
		failed = ferror(out) || (to_stdout ? fflush(out) : fclose(out));
	}
	if (failed)
		fprintf(stderr, "verbena trace show: %s: %s\n", arguments->svg, strerror(errno));
	return failed ? CLI_EXIT_FAILED : CLI_EXIT_OK;
}

static void write_text(const struct arguments *arguments)
{
	const struct ladder_style style = trace_style(&arguments->look);

	ladder_print(&arguments->ladder, &style, stdout);
	trace_forget_pager(ferror(stdout) ? errno : 0);
}

static int run(int argc, char **argv)
{
	struct arguments arguments = {.choice = {.to_ns = UINT64_MAX}};
	int status = cli_read_options(&cli_trace_show, argc, argv, &arguments);
	const char *name;
	FILE *file;

	if (!status)
		status = trace_open(&cli_trace_show, argc, argv, &file, &name);
	if (status)
		return status;
	signal(SIGPIPE, SIG_IGN);
	arguments.ladder.with_verbs = arguments.with_verbs;
	arguments.ladder.last = arguments.last;
	status = trace_read(file, name, take, &arguments) ? CLI_EXIT_FAILED : CLI_EXIT_OK;
	ladder_end(&arguments.ladder);
	if (!arguments.svg)
		write_text(&arguments);
	else if (write_svg(&arguments))
		status = CLI_EXIT_FAILED;
	ladder_free(&arguments.ladder);
	return status;
}

const struct cli_command cli_trace_show = {
	.name = "trace show",
	.summary = "print a log or a capture as a ladder",
	.synopsis = "[OPTION...] FILE",
	.about = "Prints the events of a log or the packets of a capture (pcap) as a ladder: nodes "
		 "are\n"
		 "columns, packets are arrows between them, and all else stands beside its node. A "
		 "node is\n"
		 "a device, or an address whose device the file does not name.\n",
	.exits = "   0  success\n"
		 "   1  the file cannot be read, or has a wrong line; the picture cannot be "
		 "written\n"
		 "   2  wrong usage\n",
	.options = options,
	.run = run,
	.takes_file = true,
	.word = "show",
	.next = &cli_trace_merge,
};
