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
	struct trace_choice choice;
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

/* The kinds without the gaps between their numbers. */
static const char *kind_name(unsigned int index)
{
	for (unsigned int i = 0; i < FORM_KINDS; i++)
		if (form_kinds[i].word && !index--)
			return form_kinds[i].word;
	return NULL;
}

static int take_qp(const struct cli_command *command, const struct cli_option *option,
		   const char *value, void *into)
{
	struct trace_choice *choice = &((struct arguments *)into)->choice;

	choice->has_qpn = true;
	if (vb_number_read(value, 0, (1 << 24) - 1, &choice->qpn) == VB_NUMBER_GOOD)
		return CLI_EXIT_OK;
	return cli_bad_usage(command, "--qp '%s' is no number of a QP (0 to 0xffffff)", value);
}

static int take_kinds(const struct cli_command *command, const struct cli_option *option,
		      const char *value, void *into)
{
	struct trace_choice *choice = &((struct arguments *)into)->choice;
	char kind[32], allowed[256];

	for (const char *at = value; *at;) {
		const size_t length = strcspn(at, ",");

		snprintf(kind, sizeof(kind), "%.*s", (int)length, at);
		if (vb_words_find(kind_name, kind) < 0)
			return cli_bad_usage(command, "--kind '%s' is unknown (allowed: %s)", kind,
					     vb_words_list(kind_name, allowed, sizeof(allowed)));
		at += length + (at[length] == ',');
	}
	choice->kinds = value;
	return CLI_EXIT_OK;
}

static int take_time(const struct cli_command *command, const struct cli_option *option,
		     const char *value, void *into)
{
	uint64_t *time_ns = (uint64_t *)((char *)into + option->offset);

	if (vb_measure_read(value, &vb_measure_times, time_ns) == VB_MEASURED)
		return CLI_EXIT_OK;
	return cli_bad_usage(command, "--%s '%s' is no time (%s)", option->name, value,
			     vb_measure_times.allowed);
}

#define AT(field) offsetof(struct arguments, field)

static const struct cli_option options[] = {
	{"device", 0, "D", "events of this device [all]", "Which events", cli_take_text,
	 AT(choice.device)},
	{"qp", 0, "N", "events of the QP with this number, and packets to it [all]", NULL, take_qp},
	{"object", 0, "NAME", "events that name this object, such as mr3 or \"qp 0x11\" [all]",
	 NULL, cli_take_text, AT(choice.object)},
	{"kind", 0, "K[,K...]", "events of these kinds [all]", NULL, take_kinds,
	 .words = kind_name},
	{"from", 0, "TIME", "events at this time or later, such as 1.5ms [0]", NULL, take_time,
	 AT(choice.from_ns)},
	{"to", 0, "TIME", "events at this time or before [the end]", NULL, take_time,
	 AT(choice.to_ns)},
	{"failed", 0, NULL, "only failures, errors, lost and dropped packets", NULL, cli_take_flag,
	 AT(choice.failed)},
	{"format", 0, "F", "how events are printed [text]", "Output", cli_take_word, AT(format),
	 .words = format_name},
	{0},
};

/* --- printing --- */

/* Prints an event that is chosen. Returns false once nobody reads the output. */
static bool take(void *arg, const json_t *event, const char *line)
{
	struct arguments *arguments = arg;
	const bool is_head = strcmp(event_string(event, "kind"), "log") == 0;
	const bool is_json = arguments->format && strcmp(arguments->format, "json") == 0;

	/* The first line stays: what is printed as JSON is a log. */
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

static bool wants_colour(void)
{
	const char *plain = getenv("NO_COLOR"), *terminal = getenv("TERM");

	return isatty(STDOUT_FILENO) && !(plain && *plain) && terminal &&
	       strcmp(terminal, "dumb") != 0;
}

/* A pager that ends before the output is no error. A line may have failed before the last flush, which then
 * succeeds. */
static void forget_pager(int write_error)
{
	if (!write_error && fflush(stdout))
		write_error = errno;
	if (write_error != EPIPE)
		return;
	__fpurge(stdout);
	clearerr(stdout);
}

static int run(int argc, char **argv)
{
	struct arguments arguments = {.choice = {.to_ns = UINT64_MAX}};
	int status = cli_read_options(&cli_trace, argc, argv, &arguments);
	const char *name;
	FILE *file;

	if (status)
		return status;
	if (optind == argc)
		return cli_bad_usage(&cli_trace, "no file is given");
	if (optind + 1 < argc)
		return cli_bad_usage(&cli_trace, "unexpected argument '%s'", argv[optind + 1]);
	name = argv[optind];
	file = strcmp(name, "-") == 0 ? stdin : fopen(name, "re");
	if (!file) {
		fprintf(stderr, "verbena trace: %s: %s\n", name, strerror(errno));
		return CLI_EXIT_FAILED;
	}
	signal(SIGPIPE, SIG_IGN);
	arguments.text.colour = wants_colour();
	status = trace_read(file, file == stdin ? "standard input" : name, take, &arguments);
	forget_pager(arguments.write_error);
	return status ? CLI_EXIT_FAILED : CLI_EXIT_OK;
}

const struct cli_command cli_trace = {
	.name = "trace",
	.summary = "print an event log or a packet capture",
	.synopsis = "[OPTION...] FILE\n       verbena trace merge [-o FILE] FILE...",
	.about = "Prints the events of a log (verbena run --log, vb_log_open) or the packets of a "
		 "capture\n"
		 "(pcap), a line each. FILE - is standard input. `verbena trace merge` joins the "
		 "parts of a\n"
		 "capture.\n",
	.exits = "   0  success\n"
		 "   1  the file cannot be read, or has a wrong line\n"
		 "   2  wrong usage\n",
	.options = options,
	.run = run,
	.takes_file = true,
	.part = &cli_trace_merge,
};
