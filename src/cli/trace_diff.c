/* SPDX-License-Identifier: MIT */
/* `verbena trace diff`: the first event that differs between two logs, two captures or two annotated captures. */
#include "src/base/count.h"
#include "src/cli/trace.h"
#include "src/parts/tail.h"
#include "src/picture/event.h"
#include "src/picture/normal.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SAME = 0, DIFFERENT = 1, TROUBLE = 2 };

#define CONTEXT_DEFAULT 3

struct arguments {
	struct trace_choice choice; /* the first member, as TRACE_CHOICE_OPTIONS wants it */
	struct normal_choice normal;
	uint64_t context;
	bool quiet;
	struct trace_look look;
};

/* One of the two files, which is read twice. */
struct side {
	const char *name;
	FILE *file;
	enum { LOG, CAPTURE, ANNOTATED } kind;
	struct trace_choice choice;
	struct normal normal;
	/* first reading */
	uint64_t *sums; /* of the events that are chosen */
	size_t count, room;
	bool no_memory;
	/* second reading */
	size_t first;	/* the event that differs */
	size_t context; /* counts the rows shown before the event that differs, and behind it */
	size_t at;
	json_t *form; /* of the event that differs; NULL: the file ends before */
	struct ladder before, from;
};

/* --- options --- */

/* The words of --ignore that stand for several members. */
static const struct {
	const char *word;
	size_t offset;
} groups[] = {
	{"time", offsetof(struct normal_choice, time)},
	{"address", offsetof(struct normal_choice, addresses)},
	{"number", offsetof(struct normal_choice, numbers)},
};

/* Returns true if the word of @length bytes is a group. */
static bool take_group(struct normal_choice *normal, const char *word, size_t length)
{
	for (size_t i = 0; i < COUNT(groups); i++) {
		if (strlen(groups[i].word) != length || strncmp(groups[i].word, word, length) != 0)
			continue;
		*(bool *)((char *)normal + groups[i].offset) = true;
		return true;
	}
	return false;
}

/* Adds words with commas between. The option may be repeated. */
static int take_ignore(const struct cli_command *command, const struct cli_option *option,
		       const char *value, void *into)
{
	struct normal_choice *normal = &((struct arguments *)into)->normal;

	for (const char *at = value;; at++) {
		const size_t length = strcspn(at, ",");

		if (!length)
			return cli_bad_usage(command, "--ignore '%s' has an empty word", value);
		if (!take_group(normal, at, length) && !normal_ignore(normal, at, length))
			return cli_bad_usage(command,
					     "--ignore '%s': at most %d fields of %d letters can "
					     "be ignored",
					     value, NORMAL_FIELDS_MAX, NORMAL_FIELD_BYTES - 1);
		at += length;
		if (!*at)
			return CLI_EXIT_OK;
	}
}

#define AT(field) offsetof(struct arguments, field)

static const struct cli_option options[] = {
	TRACE_CHOICE_OPTIONS,
	{"ignore", 0, "WORD[,WORD...]",
	 "do not compare: time, address (of the program's memory), number\n"
	 "(which number a QP, a key, a GID or the first PSN has), or a\nfield such as wr_id; may "
	 "be repeated [nothing]",
	 "What is compared", take_ignore},
	{"context", 0, "N", "events before the first difference, and behind it [3]", "Output",
	 cli_take_number, AT(context), 1000},
	{"quiet", 'q', NULL, "print nothing: the exit status says it", NULL, cli_take_flag,
	 AT(quiet)},
	TRACE_LOOK_OPTIONS(AT(look)),
	{0},
};

/* --- the files --- */

/* Returns a copy that can be read twice; NULL: errno says why. */
static FILE *copy_of(FILE *pipe)
{
	FILE *copy = tmpfile();
	char bytes[1 << 16];
	size_t size;

	while (copy && (size = fread(bytes, 1, sizeof(bytes), pipe)) > 0)
		fwrite(bytes, 1, size, copy);
	if (pipe != stdin)
		fclose(pipe);
	if (!copy || (!ferror(copy) && !fflush(copy)))
		return copy;
	fclose(copy);
	return NULL;
}

/* Returns false after a message. */
static bool open_side(struct side *side, const char *name)
{
	struct stat what;
	int first;

	side->name = strcmp(name, "-") == 0 ? "standard input" : name;
	side->file = strcmp(name, "-") == 0 ? stdin : tail_open_log(name);
	if (side->file &&
	    (side->file == stdin || (!fstat(fileno(side->file), &what) && !S_ISREG(what.st_mode))))
		side->file = copy_of(side->file);
	if (!side->file || fseek(side->file, 0, SEEK_SET)) {
		fprintf(stderr, "verbena trace diff: %s: %s\n", name, strerror(errno));
		return false;
	}
	first = getc(side->file);
	side->kind = first == '{' || first == EOF     ? LOG
		     : trace_is_annotated(side->file) ? ANNOTATED
						      : CAPTURE;
	return true;
}

/* Takes events with the bytes of their frames. */
struct with_frames {
	trace_take_fn *take;
	struct side *side;
};

static json_t *in_hex(const struct trace_frame *frame)
{
	static const char digits[] = "0123456789abcdef";
	char *text = malloc(2 * frame->length_bytes + 1);
	json_t *string;

	for (size_t i = 0; text && i < frame->length_bytes; i++) {
		text[2 * i] = digits[frame->bytes[i] >> 4];
		text[2 * i + 1] = digits[frame->bytes[i] & 0xf];
	}
	string = text ? json_stringn(text, 2 * frame->length_bytes) : NULL;
	free(text);
	return string;
}

/* An event of a capture gets a member "frame", its bytes in hexadecimal. */
static bool take_with_frame(void *arg, const json_t *event, const char *line,
			    const struct trace_frame *frame)
{
	const struct with_frames *to = arg;
	json_t *whole = frame ? json_copy((json_t *)event) : NULL;
	bool goes_on;

	if (whole)
		json_object_set_new(whole, "frame", in_hex(frame));
	goes_on = to->take(to->side, whole ? whole : event, line);
	json_decref(whole);
	return goes_on;
}

/* Reads the file from its beginning. Returns false after messages, which the first reading prints. */
static bool read_side(struct side *side, bool first, trace_take_fn *take)
{
	struct with_frames to = {take, side};
	const int fd = dup(fileno(side->file));
	FILE *again = fd >= 0 ? fdopen(fd, "r") : NULL;

	if (!again || fseek(again, 0, SEEK_SET)) {
		fprintf(stderr, "verbena trace diff: %s: %s\n", side->name, strerror(errno));
		return false;
	}
	side->choice.last_ns = 0;
	normal_free(&side->normal);
	return !trace_read_frames(again, first ? side->name : NULL, take_with_frame, &to);
}

/* --- comparing --- */

/* The first line of a log says who wrote it, and when; the second one may count what is left out. */
static bool is_compared(struct side *side, const json_t *event)
{
	const char *kind = event_string(event, "kind");

	return strcmp(kind, "log") != 0 && strcmp(kind, "left_out") != 0 &&
	       trace_chosen(&side->choice, event);
}

static bool take_sum(void *arg, const json_t *event, const char *line)
{
	struct side *side = arg;
	json_t *form;

	if (!is_compared(side, event))
		return true;
	if (side->count == side->room) {
		const size_t room = side->room ? 2 * side->room : 1024;
		uint64_t *sums = realloc(side->sums, room * sizeof(*sums));

		side->no_memory = !sums;
		if (!sums)
			return false;
		side->sums = sums;
		side->room = room;
	}
	form = normal_event(&side->normal, event);
	side->sums[side->count++] = normal_hash(form);
	json_decref(form);
	return true;
}

/* Reads both sides. Returns false after a message. */
static bool sum_up(struct side sides[2])
{
	for (int i = 0; i < 2; i++) {
		if (!read_side(&sides[i], true, take_sum))
			return false;
		if (!sides[i].no_memory)
			continue;
		fprintf(stderr, "verbena trace diff: out of memory; choose fewer events\n");
		return false;
	}
	return true;
}

static size_t first_difference(const struct side sides[2])
{
	size_t at = 0;

	while (at < sides[0].count && at < sides[1].count && sides[0].sums[at] == sides[1].sums[at])
		at++;
	return at;
}

/* --- showing --- */

static bool take_row(void *arg, const json_t *event, const char *line)
{
	struct side *side = arg;
	const bool is_chosen = is_compared(side, event);
	const size_t at = side->at;
	json_t *form;

	side->at += is_chosen;
	ladder_take(&side->before, event,
		    is_chosen && at < side->first && at + side->context >= side->first);
	ladder_take(&side->from, event,
		    is_chosen && at >= side->first && at <= side->first + side->context);
	if (!is_chosen)
		return true;
	/* Called also for earlier events, because it numbers what it has seen. */
	form = normal_event(&side->normal, event);
	if (at == side->first)
		side->form = json_incref(form);
	json_decref(form);
	return at < side->first + side->context;
}

static void read_rows(struct side *side, size_t first, size_t context)
{
	side->first = first;
	side->context = context;
	side->before.with_verbs = side->from.with_verbs = true;
	read_side(side, false, take_row);
	ladder_end(&side->before);
	ladder_end(&side->from);
}

static void print_side(const struct side *side, const struct ladder_style *style)
{
	printf("\n%s:\n", side->name);
	if (side->form)
		ladder_print(&side->from, style, stdout);
	else
		printf("  no event: the file ends after %zu\n", side->count);
}

static void print_summary(const struct side sides[2])
{
	const size_t first = sides[0].first;

	printf("event %zu differs", first + 1);
	if (first)
		printf("; the %zu before %s the same", first, first == 1 ? "is" : "are");
	printf("\n");
	if (sides[0].form && sides[1].form)
		normal_print_difference(sides[0].form, sides[1].form, stdout);
}

static void show(struct side sides[2], size_t first, const struct arguments *arguments)
{
	const struct ladder_style style = trace_style(&arguments->look);

	for (int i = 0; i < 2; i++)
		read_rows(&sides[i], first, arguments->context);
	print_summary(sides);
	if (sides[0].before.row_count) {
		printf("\nboth, before:\n");
		ladder_print(&sides[0].before, &style, stdout);
	}
	print_side(&sides[0], &style);
	print_side(&sides[1], &style);
	trace_forget_pager(ferror(stdout) ? errno : 0);
}

/* --- the command --- */

/* A capture has only packets, and says less of them than a log; in an annotated capture, they are the capture's. */
static int compare_packets_only(struct arguments *arguments)
{
	static const char *const absent[] = {"device", "port", "qp", "source_qp", "injected"};

	if (arguments->choice.kinds && strcmp(arguments->choice.kinds, "packet") != 0)
		return cli_bad_usage(&cli_trace_diff,
				     "files of two kinds (log, capture, annotated capture) have "
				     "only packets in common: --kind %s compares nothing",
				     arguments->choice.kinds);
	arguments->choice.kinds = "packet";
	for (size_t i = 0; i < COUNT(absent); i++)
		if (!normal_ignore(&arguments->normal, absent[i], strlen(absent[i])))
			return cli_bad_usage(&cli_trace_diff, "--ignore has more than %d fields",
					     NORMAL_FIELDS_MAX - (int)COUNT(absent));
	return CLI_EXIT_OK;
}

static int compare(struct side sides[2], const struct arguments *arguments)
{
	size_t first;

	for (int i = 0; i < 2; i++) {
		sides[i].choice = arguments->choice;
		sides[i].normal.choice = &arguments->normal;
	}
	if (!sum_up(sides))
		return TROUBLE;
	first = first_difference(sides);
	if (first == sides[0].count && first == sides[1].count)
		return SAME;
	if (!arguments->quiet)
		show(sides, first, arguments);
	return DIFFERENT;
}

static void free_side(struct side *side)
{
	if (side->file)
		fclose(side->file);
	free(side->sums);
	normal_free(&side->normal);
	json_decref(side->form);
	ladder_free(&side->before);
	ladder_free(&side->from);
}

static int compare_files(struct arguments *arguments, char *const *names)
{
	struct side sides[2] = {0};
	int status = TROUBLE;

	if (open_side(&sides[0], names[0]) && open_side(&sides[1], names[1])) {
		status = CLI_EXIT_OK;
		if (sides[0].kind != sides[1].kind)
			status = compare_packets_only(arguments);
		if (!status)
			status = compare(sides, arguments);
	}
	free_side(&sides[0]);
	free_side(&sides[1]);
	return status;
}

static int run(int argc, char **argv)
{
	struct arguments arguments = {.choice = {.to_ns = UINT64_MAX}, .context = CONTEXT_DEFAULT};
	int status = cli_read_options(&cli_trace_diff, argc, argv, &arguments);

	if (status)
		return status;
	if (argc - optind < 2)
		return cli_bad_usage(&cli_trace_diff,
				     "two files are needed, a log or a capture each");
	if (argc - optind > 2)
		return cli_bad_usage(&cli_trace_diff, "unexpected argument '%s'", argv[optind + 2]);
	if (strcmp(argv[optind], "-") == 0 && strcmp(argv[optind + 1], "-") == 0)
		return cli_bad_usage(&cli_trace_diff,
				     "only one of the files can be standard input");
	signal(SIGPIPE, SIG_IGN);
	return compare_files(&arguments, argv + optind);
}

const struct cli_command cli_trace_diff = {
	.name = "trace diff",
	.summary = "find the first event that differs",
	.synopsis = "[OPTION...] A B",
	.about = "Compares two logs, or two captures (pcap), event by event, and shows the first "
		 "event that\n"
		 "differs, with the events around it in each file. Of captures, the bytes of the "
		 "frames are\n"
		 "compared, too; of a log, a capture and a capture of verbena trace annotate, the\n"
		 "packets. The first line of a log is not compared.\n",
	.exits = "   0  the files have the same events\n"
		 "   1  an event differs\n"
		 "   2  a file cannot be read, or has a wrong line; wrong usage\n",
	.options = options,
	.run = run,
	.takes_file = true,
	.word = "diff",
	.next = &cli_trace_annotate,
};
