/* SPDX-License-Identifier: MIT */
/* `verbena trace merge`: joins the parts of a trace. */
#include "src/cli/options.h"
#include "src/parts/merge.h"
#include "src/parts/part.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct arguments {
	const char *output;
};

static const struct cli_option options[] = {
	{"output", 'o', "FILE", "the new capture; - is standard output [FILE itself]", NULL,
	 cli_take_text, offsetof(struct arguments, output)},
	{0},
};

static int fail(const char *sentence)
{
	fprintf(stderr, "verbena trace merge: %s\n", sentence);
	return CLI_EXIT_FAILED;
}

static int fail_path(const char *path, int err)
{
	fprintf(stderr, "verbena trace merge: %s: %s\n", path, strerror(err));
	return CLI_EXIT_FAILED;
}

/* Finds the absolute path of a file, which need not exist. Returns 0 or an errno value. */
static int find_whole(const char *name, char whole[PART_NAME_BYTES])
{
	char folder[PATH_MAX];
	const char *base = strrchr(name, '/');

	if (realpath(name, whole))
		return 0;
	if (errno != ENOENT)
		return errno;
	base = base ? base + 1 : name;
	snprintf(folder, sizeof(folder), "%.*s.", (int)(base - name), name);
	if (!realpath(folder, whole))
		return errno;
	snprintf(whole + strlen(whole), PART_NAME_BYTES - strlen(whole), "/%s", base);
	return 0;
}

/* --- one trace, in its own file --- */

/* Says which parts are left because their processes still run. */
static int report_left(const char *whole)
{
	struct parts parts;
	int err = parts_list(whole, &parts), status = CLI_EXIT_OK;

	if (err)
		return fail_path(whole, err);
	for (unsigned int i = 0; i < parts.count; i++) {
		fprintf(stderr,
			"verbena trace merge: %s: a process still writes this part; join it when "
			"the process "
			"has ended\n",
			parts.names[i]);
		status = CLI_EXIT_FAILED;
	}
	parts_free(&parts);
	return status;
}

static int join_parts(const char *name)
{
	char whole[PART_NAME_BYTES], sentence[MERGE_SENTENCE_BYTES];
	struct parts parts;
	int err = find_whole(name, whole);
	unsigned int count;

	if (!err)
		err = parts_list(whole, &parts);
	if (err)
		return fail_path(name, err);
	count = parts.count;
	parts_free(&parts);
	if (!count && access(whole, F_OK))
		return fail_path(name, errno);
	if (!count) {
		fprintf(stderr, "verbena trace merge: %s has no parts; the file stays as it is\n",
			name);
		return CLI_EXIT_OK;
	}
	if (merge_parts(whole, sentence))
		return fail(sentence);
	return report_left(whole);
}

/* --- many files, into another one --- */

struct list {
	const char **names;
	struct stat *files;
	unsigned int count;
};

/* Adds a file, unless it is in the list already. Returns 0 or an errno value. */
static int add(struct list *list, const char *name)
{
	const char **names = realloc(list->names, (list->count + 1) * sizeof(*names));
	struct stat *files = realloc(list->files, (list->count + 1) * sizeof(*files));

	list->names = names ? names : list->names;
	list->files = files ? files : list->files;
	if (!names || !files)
		return ENOMEM;
	if (stat(name, &files[list->count]))
		return errno;
	for (unsigned int i = 0; i < list->count; i++)
		if (files[i].st_dev == files[list->count].st_dev &&
		    files[i].st_ino == files[list->count].st_ino)
			return 0;
	names[list->count] = strdup(name);
	return names[list->count++] ? 0 : ENOMEM;
}

/* Adds a file and its parts. A file that is gone may have parts. */
static int add_trace(struct list *list, const char *name)
{
	char whole[PART_NAME_BYTES];
	struct parts parts = {0};
	int err = find_whole(name, whole), missing;

	if (!err)
		err = parts_list(whole, &parts);
	missing = err ? err : add(list, name);
	if (missing && (missing != ENOENT || !parts.count))
		err = missing;
	for (unsigned int i = 0; i < parts.count && !err; i++)
		err = add(list, parts.names[i]);
	parts_free(&parts);
	return err ? fail_path(name, err) : CLI_EXIT_OK;
}

static int write_output(const char *output, const struct list *list)
{
	const struct merge_files files = {list->names, list->count};
	char sentence[MERGE_SENTENCE_BYTES];
	int err;

	signal(SIGPIPE, SIG_IGN);
	if (strcmp(output, "-") == 0)
		err = merge_write(fdopen(dup(STDOUT_FILENO), "w"), &files, sentence);
	else
		err = merge_to(output, &files, sentence);
	return err && err != EPIPE ? fail(sentence) : CLI_EXIT_OK;
}

static int join_files(const char *output, char *const *names)
{
	struct list list = {0};
	int status = CLI_EXIT_OK;

	for (; *names && !status; names++)
		status = add_trace(&list, *names);
	if (!status)
		status = write_output(output, &list);
	for (unsigned int i = 0; i < list.count; i++)
		free((char *)list.names[i]);
	free(list.names);
	free(list.files);
	return status;
}

static int run(int argc, char **argv)
{
	struct arguments arguments = {0};
	int status = cli_read_options(&cli_trace_merge, argc, argv, &arguments);

	if (status)
		return status;
	if (optind == argc)
		return cli_bad_usage(&cli_trace_merge, "no file is given");
	if (arguments.output)
		return join_files(arguments.output, argv + optind);
	if (optind + 1 < argc)
		return cli_bad_usage(&cli_trace_merge,
				     "%d files need -o FILE, which names the new capture",
				     argc - optind);
	return join_parts(argv[optind]);
}

const struct cli_command cli_trace_merge = {
	.name = "trace merge",
	.summary = "join the parts of a packet capture",
	.synopsis = "[-o FILE] FILE...",
	.about =
		"Joins the parts of a trace, which several processes wrote, into the trace's file "
		"in time\n"
		"order. The last process to end does so by itself; this command joins what killed\n"
		"processes left. With -o it writes a new capture from any captures (pcap) of one "
		"link\n"
		"layer, and from their parts: then the processes may still run, and the parts "
		"stay.\n",
	.exits = "   0  success\n"
		 "   1  a file cannot be read or written, or a process still writes\n"
		 "   2  wrong usage\n",
	.options = options,
	.run = run,
	.takes_file = true,
	.word = "merge",
	.next = &cli_trace_diff,
};
