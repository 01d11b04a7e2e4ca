/* SPDX-License-Identifier: MIT */
#include "src/cli/options.h"
#include "src/project/project.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <verbena/error.h>
#include <verbena/verbs.h>

static const struct cli_command *const commands[] = {&cli_devices, &cli_run,	   &cli_test,
						     &cli_script,  &cli_trace,	   &cli_explore,
						     &cli_differ,  &cli_wireshark, NULL};

/* Finds the command of the first words, and sets how many words name the command. */
static const struct cli_command *find_command(int argc, char **argv, int *words)
{
	*words = 1;
	for (const struct cli_command *const *at = commands; *at; at++) {
		if (strcmp((*at)->name, argv[0]) != 0)
			continue;
		for (const struct cli_command *part = (*at)->part; part && argc > 1;
		     part = part->next) {
			if (strcmp(part->word, argv[1]) != 0)
				continue;
			*words = 2;
			return part;
		}
		return *at;
	}
	return NULL;
}

static void print_usage(void)
{
	printf("Usage: verbena COMMAND [OPTION...]\n\n"
	       "Tests and simulates RDMA verbs code, with or without an adapter.\n\n"
	       "Commands:\n");
	for (const struct cli_command *const *command = commands; *command; command++)
		printf("  %-10s %s\n", (*command)->name, (*command)->summary);
	printf("  %-10s %s\n\n", "help", "print this, or the help of a command");
	printf("Options:\n  -h, --help     print this\n  -V, --version  print the version\n\n");
	cli_print_exits(NULL);
}

static int try_help(const char *name)
{
	fprintf(stderr, "Try 'verbena %s%s--help'.\n", name, *name ? " " : "");
	return CLI_EXIT_USAGE;
}

int cli_bad_usage(const struct cli_command *command, const char *fmt, ...)
{
	va_list args;

	fprintf(stderr, "verbena %s: ", command->name);
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fprintf(stderr, "\n");
	return try_help(command->name);
}

struct vb_project *cli_load_project(const char *path)
{
	struct vb_project_error error;
	struct vb_project *project = vb_project_load(path, &error);

	if (!project)
		fprintf(stderr, "verbena: %s\n", error.text);
	return project;
}

const char *cli_find_backend(const struct cli_command *command, const char *name)
{
	const struct vb_backend *backend = vb_find_backend(name);

	if (backend)
		return backend->name;
	cli_bad_usage(command, "%s", vb_last_error());
	return NULL;
}

/* Looks for -h and --help before any option is read, so that they work beside wrong options. */
static bool wants_help(int argc, char **argv)
{
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
		if (!strcmp(argv[i], "-h") || !strcmp(argv[i], "--help"))
			return true;
	return false;
}

static int help(int argc, char **argv)
{
	const struct cli_command *command;
	int words;

	if (argc < 2 || wants_help(argc, argv)) {
		print_usage();
		return CLI_EXIT_OK;
	}
	command = find_command(argc - 1, argv + 1, &words);
	if (!command) {
		fprintf(stderr, "verbena: unknown command '%s'\n", argv[1]);
		return try_help("");
	}
	cli_print_help(command);
	return CLI_EXIT_OK;
}

static int run_command(int argc, char **argv)
{
	int words, status;
	const struct cli_command *command = find_command(argc, argv, &words);

	if (!command) {
		fprintf(stderr, "verbena: unknown %s '%s'\n",
			argv[0][0] == '-' ? "option" : "command", argv[0]);
		return try_help("");
	}
	if (!command->runs_program && wants_help(argc, argv)) {
		cli_print_help(command);
		return CLI_EXIT_OK;
	}
	status = command->run(argc - words + 1, argv + words - 1);
	return status == CLI_HELPED ? CLI_EXIT_OK : status;
}

int main(int argc, char **argv)
{
	int status;

	if (argc < 2) {
		fprintf(stderr, "verbena: no command is given\n");
		return try_help("");
	}
	if (!strcmp(argv[1], "-h") || !strcmp(argv[1], "--help")) {
		print_usage();
		status = CLI_EXIT_OK;
	} else if (!strcmp(argv[1], "-V") || !strcmp(argv[1], "--version")) {
		printf("verbena %s\n", VERBENA_VERSION);
		status = CLI_EXIT_OK;
	} else if (!strcmp(argv[1], "help")) {
		status = help(argc - 1, argv + 1);
	} else {
		status = run_command(argc - 1, argv + 1);
	}
	if (fflush(stdout) || ferror(stdout)) {
		perror("verbena: standard output");
		status = status ? status : CLI_EXIT_FAILED;
	}
	return status;
}
