/* SPDX-License-Identifier: MIT */
#include "src/cli/trace.h"

#include "src/parts/tail.h"
#include "src/picture/ladder.h"
#include "src/picture/page.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* What trace_picture() prints. */
#define PICTURE_ROWS  12
#define PICTURE_WIDTH 100

struct arguments {
	struct trace_choice choice; /* the first member, as TRACE_CHOICE_OPTIONS wants it */
	bool with_verbs;
	uint64_t last;
	struct trace_look look;
	const char *svg, *html;
	struct ladder ladder;
	struct page page; /* only with --html */
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
	{"html", 0, "FILE",
	 "write a page for browsers instead of text: one file, which needs no\nnetwork; - is "
	 "standard output",
	 NULL, cli_take_text, AT(html)},
	{0},
};

/* --- reading --- */

static bool take(void *arg, const json_t *event, const char *line, const struct trace_frame *frame)
{
	struct arguments *arguments = arg;
	struct row *row =
		ladder_take(&arguments->ladder, event, trace_chosen(&arguments->choice, event));

	if (frame)
		ladder_set_start(&arguments->ladder, frame->start_ns);
	if (row && arguments->html && frame)
		page_take(
			&arguments->page, row, event, line,
			&(struct page_frame){frame->bytes, frame->length_bytes, frame->infiniband});
	else if (row && arguments->html)
		page_take(&arguments->page, row, event, line, NULL);
	return true;
}

/* Reads a file. Returns enum cli_exit. */
static int read_one(struct arguments *arguments, const char *path)
{
	const char *name;
	FILE *file = trace_open_file(path, &name);

	if (!file)
		return CLI_EXIT_FAILED;
	ladder_begin_file(&arguments->ladder, name);
	arguments->choice.last_ns = 0;
	return trace_read_frames(file, name, take, arguments) ? CLI_EXIT_FAILED : CLI_EXIT_OK;
}

static bool take_last(void *arg, const json_t *event, const char *line)
{
	return take(arg, event, line, NULL);
}

/* Returns true if the file begins as a log does. */
static bool is_log(FILE *file)
{
	const int first = getc(file);

	ungetc(first, file);
	return first == '{';
}

void trace_show_last(const char *path, unsigned int rows, int width, FILE *out)
{
	struct arguments arguments = {.choice = {.to_ns = UINT64_MAX}, .ladder = {.last = rows}};
	const struct ladder_style style = {.width = width};
	FILE *file = tail_open_log(path);
	uint64_t count;

	if (!file)
		return;
	/* The first frames of a capture are skipped, since decoding takes long. */
	count = is_log(file) ? 0 : trace_count_frames(path);
	arguments.ladder.left_out = count > rows ? count - rows : 0;
	trace_read_from(file, NULL, arguments.ladder.left_out, take_last, &arguments);
	ladder_end(&arguments.ladder);
	if (arguments.ladder.row_count)
		ladder_print(&arguments.ladder, &style, out);
	ladder_free(&arguments.ladder);
}

/* --- writing --- */

/* Writes the picture to a file; "-" is standard output. Returns enum cli_exit. */
static int write_file(struct arguments *arguments, const char *name)
{
	const bool to_stdout = strcmp(name, "-") == 0;
	FILE *out = to_stdout ? stdout : fopen(name, "we");
	int err = out ? 0 : errno;

	if (out && arguments->html)
		err = page_write(&arguments->page, &arguments->ladder, out);
	else if (out)
		ladder_print_svg(&arguments->ladder, out);
	if (out && ((ferror(out) | (to_stdout ? fflush(out) : fclose(out))) && !err))
		err = errno;
	if (err)
		fprintf(stderr, "verbena trace show: %s: %s\n", name, strerror(err));
	return err ? CLI_EXIT_FAILED : CLI_EXIT_OK;
}

/* Reads a file without a message. Returns false if it cannot be read. */
static bool read_quietly(struct arguments *arguments, const char *path)
{
	FILE *file = tail_open_log(path);

	if (!file)
		return false;
	ladder_begin_file(&arguments->ladder, path);
	arguments->choice.last_ns = 0;
	return !trace_read_frames(file, NULL, take, arguments);
}

/* Writes one picture of the files; capture may be NULL. */
static bool draw(struct arguments *arguments, const char *log, const char *capture,
		 const char *path)
{
	bool good = read_quietly(arguments, log);

	if (good && capture)
		good = read_quietly(arguments, capture);
	if (good) {
		ladder_end(&arguments->ladder);
		good = !write_file(arguments, path);
	}
	ladder_free(&arguments->ladder);
	page_free(&arguments->page);
	return good;
}

int trace_picture(const char *log, const char *capture, const char *svg, const char *page,
		  FILE *out)
{
	struct arguments picture = {.choice = {.to_ns = UINT64_MAX}, .svg = svg};
	struct arguments pages = {.choice = {.to_ns = UINT64_MAX}, .html = page};
	bool good;

	trace_show_last(log, PICTURE_ROWS, PICTURE_WIDTH, out);
	good = draw(&picture, log, NULL, svg);
	return draw(&pages, log, capture, page) && good ? 0 : 1;
}

static void write_text(const struct arguments *arguments)
{
	const struct ladder_style style = trace_style(&arguments->look);

	ladder_print(&arguments->ladder, &style, stdout);
	trace_forget_pager(ferror(stdout) ? errno : 0);
}

static int write_picture(struct arguments *arguments)
{
	if (arguments->html)
		return write_file(arguments, arguments->html);
	if (arguments->svg)
		return write_file(arguments, arguments->svg);
	write_text(arguments);
	return CLI_EXIT_OK;
}

static int run(int argc, char **argv)
{
	struct arguments arguments = {.choice = {.to_ns = UINT64_MAX}};
	int status = cli_read_options(&cli_trace_show, argc, argv, &arguments);

	if (status)
		return status;
	if (optind == argc)
		return cli_bad_usage(&cli_trace_show, "no file is given");
	if (arguments.svg && arguments.html)
		return cli_bad_usage(&cli_trace_show, "--svg and --html are two pictures: "
						      "choose one");
	signal(SIGPIPE, SIG_IGN);
	arguments.ladder.with_verbs = arguments.with_verbs;
	arguments.ladder.last = arguments.last;
	for (int i = optind; i < argc; i++)
		if (read_one(&arguments, argv[i]))
			status = CLI_EXIT_FAILED;
	/* Without any row of a file that cannot be opened, an empty picture would hide the failure. */
	if (status && !arguments.ladder.file_count)
		return status;
	ladder_end(&arguments.ladder);
	if (write_picture(&arguments))
		status = CLI_EXIT_FAILED;
	ladder_free(&arguments.ladder);
	page_free(&arguments.page);
	return status;
}

const struct cli_command cli_trace_show = {
	.name = "trace show",
	.summary = "print a log or a capture as a ladder",
	.synopsis = "[OPTION...] FILE...",
	.about = "Prints the events of logs and the packets of captures (pcap) as a ladder: nodes "
		 "are\n"
		 "columns, packets are arrows between them, and all else stands beside its node. A "
		 "node is\n"
		 "a device, or an address whose device no file names. Several files are joined in "
		 "the order\n"
		 "of their times; a packet of a log that a capture has, too, is one row.\n",
	.exits = "   0  success\n"
		 "   1  a file cannot be read, or has a wrong line; the picture cannot be "
		 "written\n"
		 "   2  wrong usage\n",
	.options = options,
	.run = run,
	.takes_file = true,
	.word = "show",
	.next = &cli_trace_merge,
};
