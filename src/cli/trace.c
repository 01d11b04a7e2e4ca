/* SPDX-License-Identifier: MIT */
#include "src/cli/trace.h"

#include "src/base/measure.h"
#include "src/base/number.h"
#include "src/cli/options.h"
#include "src/log/form.h"
#include "src/picture/event.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct arguments {
	struct trace_choice choice; /* the first member, as TRACE_CHOICE_OPTIONS wants it */
	const char *format;
	struct trace_text text;
	int write_error; /* the errno value of the first line that was not written */
};

/* --- options --- */

static const char *format_name(unsigned int index)
{
	static const char *const names[] = {"text", "json", NULL};

	return names[index];
}

#define AT(field) offsetof(struct arguments, field)

static const struct cli_option options[] = {
	TRACE_CHOICE_OPTIONS,
	{"format", 0, "F", "how events are printed [text]", "Output", cli_take_word, AT(format),
	 .words = format_name},
	{0},
};

/* --- printing --- */

/* Prints an event that is chosen. Returns false once nobody reads the output. */
static bool take(void *arg, const json_t *event, const char *line)
{
	struct arguments *arguments = arg;
	const char *kind = event_string(event, "kind");
	const bool is_head = !strcmp(kind, "log") || !strcmp(kind, "left_out");
	const bool is_json = arguments->format && strcmp(arguments->format, "json") == 0;

	/* The first lines stay: what is printed as JSON is a log. */
	if (!(is_head && is_json) && !trace_chosen(&arguments->choice, event))
		return true;
	if (is_json)
		puts(line);
	else
		trace_print(&arguments->text, event, stdout);
	if (ferror(stdout))
		arguments->write_error = errno;
	return !ferror(stdout);
}

static int run(int argc, char **argv)
{
	struct arguments arguments = {.choice = {.to_ns = UINT64_MAX}};
	int status = cli_read_options(&cli_trace, argc, argv, &arguments);
	const char *name;
	FILE *file;

	if (status)
		return status;
	status = trace_open(&cli_trace, argc, argv, &file, &name);
	if (status)
		return status;
	signal(SIGPIPE, SIG_IGN);
	arguments.text.colour = trace_wants_colour();
	status = trace_read(file, name, take, &arguments);
	trace_forget_pager(arguments.write_error);
	return status ? CLI_EXIT_FAILED : CLI_EXIT_OK;
}

const struct cli_command cli_trace = {
	.name = "trace",
	.summary = "print an event log or a packet capture",
	.synopsis =
		"[OPTION...] FILE\n       verbena trace show [OPTION...] FILE...\n       verbena "
		"trace merge [-o FILE] FILE...\n       verbena trace diff [OPTION...] A B\n    "
		"   verbena trace annotate -o FILE CAPTURE LOG...\n       verbena trace to-script "
		"[OPTION...] FILE",
	.about = "Prints the events of a log (verbena run --log, vb_log_open) or the packets of a "
		 "capture\n"
		 "(pcap), a line each. FILE - is standard input. `verbena trace show` prints "
		 "them as a\n"
		 "ladder; `verbena trace merge` joins the parts of a capture; `verbena trace diff` "
		 "finds\nthe first event that differs; `verbena trace annotate` puts the events of "
		 "a log into "
		 "a\ncapture; `verbena trace to-script` turns a capture into a packet script.\n",
	.exits = "   0  success\n"
		 "   1  the file cannot be read, or has a wrong line\n"
		 "   2  wrong usage\n",
	.options = options,
	.run = run,
	.takes_file = true,
	.part = &cli_trace_show,
};
