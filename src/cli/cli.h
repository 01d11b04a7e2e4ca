/* SPDX-License-Identifier: MIT */
/*
 * The program `verbena`: one file a command, each with its own options and help.
 */
#ifndef SRC_CLI_CLI_H
#define SRC_CLI_CLI_H

#include <stdbool.h>

struct vb_project;

/* Exit statuses of all commands; also in verbena(1). */
enum cli_exit {
	CLI_EXIT_OK = 0,
	CLI_EXIT_FAILED = 1,
	CLI_EXIT_USAGE = 2,
	CLI_EXIT_NO_DEVICE = 77,
};

struct cli_command {
	const char *name;
	const char *summary;		   /* one line, for the list of commands */
	const char *usage;		   /* the text of --help */
	int (*run)(int argc, char **argv); /* argv[0] is the command's name */
	bool helps_itself;		   /* it looks for -h: what follows may not be its own */
};

extern const struct cli_command cli_devices, cli_differ, cli_run, cli_test;

/* Says which option getopt_long() (with a leading ':' and opterr 0) refused. CLI_EXIT_USAGE. */
int cli_bad_option(const struct cli_command *command, int option, char **argv);

/* A wrong argument in one line, then where help is. CLI_EXIT_USAGE. */
int cli_bad_usage(const struct cli_command *command, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* NULL after a message. The caller ends it with vb_project_free(). */
struct vb_project *cli_load_project(const char *path);

/* The backend's full name, from the argument, VERBENA_BACKEND or the default; NULL after a message. */
const char *cli_find_backend(const struct cli_command *command, const char *name);

#endif
