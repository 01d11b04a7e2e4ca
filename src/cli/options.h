/* SPDX-License-Identifier: MIT */
/*
 * The options of a command: a row is the option's name, its help and where its value goes. The help
 * text and the reading both come from the rows.
 */
#ifndef SRC_CLI_OPTIONS_H
#define SRC_CLI_OPTIONS_H

#include "src/base/words.h"
#include "src/cli/cli.h"

#include <stddef.h>
#include <stdint.h>

struct cli_option;

/* Takes the value of an option, which is NULL if the option stands without argument, into the
 * command's structure. Returns enum cli_exit. */
typedef int cli_take_fn(const struct cli_command *command, const struct cli_option *option,
			const char *value, void *into);

struct cli_option {
	const char *name;     /* "seed" */
	char letter;	      /* 0: none */
	const char *argument; /* "N"; "[=N]": the option may stand without it; NULL: none */
	const char *help;     /* lines end with '\n', except the last; the default is in brackets */
	const char *group;    /* a heading before this option, or NULL */
	cli_take_fn *take;
	size_t offset;	    /* of the field that cli_take_*() set */
	uint64_t max;	    /* of a number */
	vb_words_fn *words; /* what the value may be; NULL: any text */
};

/* Set a field: a const char *, a const char * that is one of the words, a bool, a uint64_t. */
cli_take_fn cli_take_text, cli_take_word, cli_take_flag, cli_take_number;

/* Sets VERBENA_LOG_LIMIT, or the variable of another option's name, to what is kept of a log or a trace. */
cli_take_fn cli_take_limit;

/* Sets a uint64_t to a number, or for "random" to a random number. */
cli_take_fn cli_take_seed;

/* The backends. */
const char *cli_backend(unsigned int index);

/*
 * Reads the command's options from argv into its structure. Other arguments are an error, except for
 * a command that takes a file, where optind is the first of them in the end, and for a command that
 * runs a program, where reading stops at the first. Returns CLI_EXIT_OK,
 * CLI_EXIT_USAGE after a message, or CLI_HELPED after -h.
 */
int cli_read_options(const struct cli_command *command, int argc, char **argv, void *into);

/* Prints exit statuses; NULL: those of all commands. */
void cli_print_exits(const char *exits);

/* Prints the command's help. */
void cli_print_help(const struct cli_command *command);

#endif
