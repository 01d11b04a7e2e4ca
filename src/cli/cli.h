/* SPDX-License-Identifier: MIT */
/*
 * The program `verbena`: one file for each command.
 */
#ifndef SRC_CLI_CLI_H
#define SRC_CLI_CLI_H

#include <stdbool.h>

struct cli_option;
struct vb_project;

/* Exit statuses of all commands; also in verbena(1). */
enum cli_exit {
	CLI_EXIT_OK = 0,
	CLI_EXIT_FAILED = 1,
	CLI_EXIT_USAGE = 2,
	CLI_EXIT_NO_DEVICE = 77,
	CLI_HELPED = -1, /* no status: the help was printed, and nothing is left to do */
};

struct cli_command {
	const char *name;
	const char *summary;		   /* one line, for the list of commands */
	const char *synopsis;		   /* what follows the name in the usage line */
	const char *about;		   /* a paragraph for --help */
	const char *exits;		   /* exit statuses; NULL: those of all commands */
	const struct cli_option *options;  /* ends with a NULL name */
	int (*run)(int argc, char **argv); /* argv[0] is the command's name */
	bool runs_program;		   /* options end at the first other argument */
	bool takes_file;		   /* an argument may stand beside the options */
	const char *word;		   /* of a part of a command: the word behind the command */
	const struct cli_command *part;	   /* the first part; NULL: the command has none */
	const struct cli_command *next;	   /* of a part: the next one, or NULL */
};

extern const struct cli_command cli_devices, cli_differ, cli_explore, cli_run, cli_script, cli_test,
	cli_trace, cli_trace_annotate, cli_trace_diff, cli_trace_merge, cli_trace_script,
	cli_trace_show, cli_wireshark, cli_wireshark_install, cli_wireshark_uninstall;

/* Prints a wrong argument in one line, then where help is. Returns CLI_EXIT_USAGE. */
int cli_bad_usage(const struct cli_command *command, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* NULL after a message. The caller frees the project with vb_project_free(). */
struct vb_project *cli_load_project(const char *path);

/* The backend's full name, from the argument, VERBENA_BACKEND or the default; NULL after a
 * message. */
const char *cli_find_backend(const struct cli_command *command, const char *name);

#endif
