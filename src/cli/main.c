/* SPDX-License-Identifier: MIT */
#include "src/cli/cli.h"
#include "src/project/project.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <verbena/error.h>
#include <verbena/verbs.h>

static const struct cli_command *const commands[] = {&cli_devices, &cli_run, &cli_test, &cli_differ,
						     NULL};

static const char exit_statuses[] = "Exit status:\n"
				    "   0  all went well; of tests: all passed or were skipped\n"
				    "   1  a test failed, or something went wrong\n"
				    "   2  wrong usage or a wrong project file\n"
				    "  77  there is no such device\n";

static const struct cli_command *find_command(const char *name)
{
	for (const struct cli_command *const *command = commands; *command; command++)
		if (!strcmp((*command)->name, name))
			return *command;
	return NULL;
}

static void print_usage(void)
{
	printf("Usage: verbena COMMAND [OPTION...]\n\n"
	       "Tests and simulates RDMA verbs code, with an adapter or without.\n\n"
	       "Commands:\n");
	for (const struct cli_command *const *command = commands; *command; command++)
		printf("  %-10s %s\n", (*command)->name, (*command)->summary);
	printf("  %-10s %s\n\n", "help", "print this, or the help of a command");
	printf("Options:\n  -h, --help     print this\n  -V, --version  print the version\n\n%s",
	       exit_statuses);
}

static void print_command_usage(const struct cli_command *command)
{
	printf("%s\n%s", command->usage, exit_statuses);
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

int cli_bad_option(const struct cli_command *command, int option, char **argv)
{
	char letter[] = {'-', optopt, '\0'};
	/* getopt_long() tells a long option's mistake with optopt 0 or the option's own value. */
	bool is_long = !strncmp(argv[optind - 1], "--", 2);

	return cli_bad_usage(command, "%s '%s'",
			     option == ':' ? "no argument is given to"
			     : is_long && strchr(argv[optind - 1], '=') && optopt
				     ? "no argument is taken by"
				     : "there is no option",
			     is_long ? argv[optind - 1] : letter);
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

static int help(int argc, char **argv)
{
	const struct cli_command *command;

	if (argc < 2) {
		print_usage();
		return CLI_EXIT_OK;
	}
	command = find_command(argv[1]);
	if (!command) {
		fprintf(stderr, "verbena: there is no command '%s'\n", argv[1]);
		return try_help("");
	}
	print_command_usage(command);
	return CLI_EXIT_OK;
}

/* -h and --help before any other option is read, so that they work beside wrong ones. */
static bool wants_help(int argc, char **argv)
{
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
		if (!strcmp(argv[i], "-h") || !strcmp(argv[i], "--help"))
			return true;
	return false;
}

static int run_command(int argc, char **argv)
{
	const struct cli_command *command = find_command(argv[0]);

	if (!command) {
		fprintf(stderr, "verbena: there is no %s '%s'\n",
			argv[0][0] == '-' ? "option" : "command", argv[0]);
		return try_help("");
	}
	if (!command->helps_itself && wants_help(argc, argv)) {
		print_command_usage(command);
		return CLI_EXIT_OK;
	}
	opterr = 0;
	return command->run(argc, argv);
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
