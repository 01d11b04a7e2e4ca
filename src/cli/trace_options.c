/* SPDX-License-Identifier: MIT */
/* The options that choose events, the file, and the output of `verbena trace` and `verbena trace show`. */
#include "src/cli/trace.h"

#include "src/base/measure.h"
#include "src/base/number.h"
#include "src/log/form.h"
#include "src/parts/part.h"
#include "src/parts/tail.h"

#include <errno.h>
#include <getopt.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define WIDTH_MIN     60
#define WIDTH_DEFAULT 100 /* without a terminal */

/* --- which events --- */

/* The kinds without the gaps between their numbers. */
const char *trace_kind(unsigned int index)
{
	for (unsigned int i = 0; i < FORM_KINDS; i++)
		if (form_kinds[i].word && !index--)
			return form_kinds[i].word;
	return NULL;
}

int trace_take_qp(const struct cli_command *command, const struct cli_option *option,
		  const char *value, void *into)
{
	struct trace_choice *choice = into;

	choice->has_qpn = true;
	if (vb_number_read(value, 0, (1 << 24) - 1, &choice->qpn) == VB_NUMBER_GOOD)
		return CLI_EXIT_OK;
	return cli_bad_usage(command, "--qp '%s' is no number of a QP (0 to 0xffffff)", value);
}

int trace_take_kinds(const struct cli_command *command, const struct cli_option *option,
		     const char *value, void *into)
{
	struct trace_choice *choice = into;
	char kind[32], allowed[256];

	for (const char *at = value; *at;) {
		const size_t length = strcspn(at, ",");

		snprintf(kind, sizeof(kind), "%.*s", (int)length, at);
		if (vb_words_find(trace_kind, kind) < 0)
			return cli_bad_usage(command, "--kind '%s' is unknown (allowed: %s)", kind,
					     vb_words_list(trace_kind, allowed, sizeof(allowed)));
		at += length + (at[length] == ',');
	}
	choice->kinds = value;
	return CLI_EXIT_OK;
}

int trace_take_time(const struct cli_command *command, const struct cli_option *option,
		    const char *value, void *into)
{
	uint64_t *time_ns = (uint64_t *)((char *)into + option->offset);

	if (vb_measure_read(value, &vb_measure_times, time_ns) == VB_MEASURED)
		return CLI_EXIT_OK;
	return cli_bad_usage(command, "--%s '%s' is no time (%s)", option->name, value,
			     vb_measure_times.allowed);
}

#define QPN_MAX ((1 << 24) - 1)

/* Takes "N,M", the numbers of two QPs. */
int trace_take_connection(const struct cli_command *command, const struct cli_option *option,
			  const char *value, void *into)
{
	struct trace_choice *choice = into;
	const size_t length = strcspn(value, ",");
	char first[32] = "";

	if (length < sizeof(first))
		memcpy(first, value, length);
	choice->has_connection = true;
	if (value[length] &&
	    vb_number_read(first, 0, QPN_MAX, &choice->ends[0]) == VB_NUMBER_GOOD &&
	    vb_number_read(value + length + 1, 0, QPN_MAX, &choice->ends[1]) == VB_NUMBER_GOOD)
		return CLI_EXIT_OK;
	return cli_bad_usage(command,
			     "--connection '%s' is not the numbers of two QPs with a comma "
			     "between, such as 0x11,0x12",
			     value);
}

/* --- the file --- */

/* A process that was killed has left the packets of a trace that has a limit in parts. */
static void mention_parts(const char *name)
{
	char whole[PATH_MAX];
	struct parts parts;

	if (!realpath(name, whole) || parts_list(whole, &parts))
		return;
	if (parts.count)
		fprintf(stderr,
			"verbena trace: %s: %u part%s of this trace %s not joined; `verbena trace "
			"merge %s` does that when the processes have ended\n",
			name, parts.count, parts.count == 1 ? "" : "s",
			parts.count == 1 ? "is" : "are", name);
	parts_free(&parts);
}

FILE *trace_open_file(const char *name, const char **shown)
{
	FILE *file = strcmp(name, "-") == 0 ? stdin : tail_open_log(name);

	*shown = file == stdin ? "standard input" : name;
	if (!file)
		fprintf(stderr, "verbena trace: %s: %s\n", name, strerror(errno));
	else if (file != stdin)
		mention_parts(name);
	return file;
}

int trace_open(const struct cli_command *command, int argc, char **argv, FILE **file,
	       const char **name)
{
	if (optind == argc)
		return cli_bad_usage(command, "no file is given");
	if (optind + 1 < argc)
		return cli_bad_usage(command, "unexpected argument '%s'", argv[optind + 1]);
	*file = trace_open_file(argv[optind], name);
	return *file ? CLI_EXIT_OK : CLI_EXIT_FAILED;
}

/* --- the output --- */

bool trace_wants_colour(void)
{
	const char *never = getenv("NO_COLOR"), *terminal = getenv("TERM");

	return isatty(STDOUT_FILENO) && !(never && *never) && terminal &&
	       strcmp(terminal, "dumb") != 0;
}

const char *trace_colour_word(unsigned int index)
{
	static const char *const words[] = {"auto", "always", "never", NULL};

	return index < 4 ? words[index] : NULL;
}

int trace_take_width(const struct cli_command *command, const struct cli_option *option,
		     const char *value, void *into)
{
	if (vb_number_read(value, WIDTH_MIN, LADDER_WIDTH_MAX,
			   (uint64_t *)((char *)into + option->offset)) == VB_NUMBER_GOOD)
		return CLI_EXIT_OK;
	return cli_bad_usage(command, "--width '%s' is not a number from %d to %d", value,
			     WIDTH_MIN, LADDER_WIDTH_MAX);
}

/* The variable COLUMNS, else the terminal's width. */
static int line_width(void)
{
	const char *text = getenv("COLUMNS");
	struct winsize size;
	uint64_t columns;

	if (!text || vb_number_read(text, 1, UINT16_MAX, &columns) != VB_NUMBER_GOOD)
		columns = !ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_col ? size.ws_col
										  : WIDTH_DEFAULT;
	if (columns < WIDTH_MIN)
		return WIDTH_MIN;
	return columns < LADDER_WIDTH_MAX ? (int)columns : LADDER_WIDTH_MAX;
}

struct ladder_style trace_style(const struct trace_look *look)
{
	const bool is_auto = !look->colour || strcmp(look->colour, "auto") == 0;

	return (struct ladder_style){
		.width = look->width ? (int)look->width : line_width(),
		.colour = is_auto ? trace_wants_colour() : strcmp(look->colour, "always") == 0,
	};
}

/* A pager that ends before the output is no error. A line may have failed before the last flush, which then
 * succeeds. */
void trace_forget_pager(int write_error)
{
	if (!write_error && fflush(stdout))
		write_error = errno;
	if (write_error != EPIPE)
		return;
	__fpurge(stdout);
	clearerr(stdout);
}
