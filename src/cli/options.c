/* SPDX-License-Identifier: MIT */
#include "src/cli/options.h"

#include "src/base/limit.h"
#include "src/base/number.h"

#include <ctype.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define OPTIONS_MAX  32
#define OPTION_FIRST 1000
#define HELP_COLUMN  25
#define LINE_COLUMNS 90

static const char exits_of_all[] = "   0  success; all tests passed or were skipped\n"
				   "   1  a test failed, or an error occurred\n"
				   "   2  wrong usage, or a wrong project file\n"
				   "  77  there is no such device\n";

const char *cli_backend(unsigned int index)
{
	static const char *const names[] = {"sim", "ibverbs", NULL};

	return names[index];
}

/* --- values --- */

int cli_take_text(const struct cli_command *command, const struct cli_option *option,
		  const char *value, void *into)
{
	*(const char **)((char *)into + option->offset) = value;
	return CLI_EXIT_OK;
}

int cli_take_flag(const struct cli_command *command, const struct cli_option *option,
		  const char *value, void *into)
{
	*(bool *)((char *)into + option->offset) = true;
	return CLI_EXIT_OK;
}

int cli_take_number(const struct cli_command *command, const struct cli_option *option,
		    const char *value, void *into)
{
	uint64_t *number = (uint64_t *)((char *)into + option->offset);

	if (vb_number_read(value, 0, option->max, number) == VB_NUMBER_GOOD)
		return CLI_EXIT_OK;
	return cli_bad_usage(command, "--%s '%s' is not a number from 0 to %llu", option->name,
			     value, (unsigned long long)option->max);
}

int cli_take_seed(const struct cli_command *command, const struct cli_option *option,
		  const char *value, void *into)
{
	uint64_t *seed = (uint64_t *)((char *)into + option->offset);

	if (!strcmp(value, "random"))
		return getrandom(seed, sizeof(*seed), 0) == sizeof(*seed) ? CLI_EXIT_OK
									  : CLI_EXIT_FAILED;
	if (vb_number_read(value, 0, UINT64_MAX, seed) == VB_NUMBER_GOOD)
		return CLI_EXIT_OK;
	return cli_bad_usage(command, "--%s '%s' is not \"random\" or a number from 0 to %llu",
			     option->name, value, (unsigned long long)UINT64_MAX);
}

int cli_take_limit(const struct cli_command *command, const struct cli_option *option,
		   const char *value, void *into)
{
	char variable[32] = "VERBENA_";
	size_t used = strlen(variable);
	struct vb_limit limit;

	if (!vb_limit_read(value, &limit))
		return cli_bad_usage(command, "--%s '%s' is not understood (" VB_LIMIT_ALLOWED ")",
				     option->name, value);
	for (const char *c = option->name; *c && used < sizeof(variable) - 1; c++)
		variable[used++] = (char)(*c == '-' ? '_' : toupper((unsigned char)*c));
	variable[used] = '\0';
	if (!setenv(variable, value, 1))
		return CLI_EXIT_OK;
	perror("verbena");
	return CLI_EXIT_FAILED;
}

int cli_take_word(const struct cli_command *command, const struct cli_option *option,
		  const char *value, void *into)
{
	char allowed[256];

	if (vb_words_find(option->words, value) >= 0)
		return cli_take_text(command, option, value, into);
	return cli_bad_usage(command, "--%s '%s' is unknown (allowed: %s)", option->name, value,
			     vb_words_list(option->words, allowed, sizeof(allowed)));
}

/* --- the command line --- */

static int bad_option(const struct cli_command *command, int option, char **argv)
{
	char letter[] = {'-', optopt, '\0'};
	/* For a wrong long option getopt_long() sets optopt to 0 or to the option's own value. */
	bool is_long = !strncmp(argv[optind - 1], "--", 2);

	const char *name = is_long ? argv[optind - 1] : letter;

	if (option == ':')
		return cli_bad_usage(command, "option '%s' needs an argument", name);
	if (is_long && strchr(name, '=') && optopt)
		return cli_bad_usage(command, "option '%s' takes no argument", name);
	return cli_bad_usage(command, "unknown option '%s'", name);
}

static int argument_of(const struct cli_option *option)
{
	if (!option->argument)
		return no_argument;
	return option->argument[0] == '[' ? optional_argument : required_argument;
}

int cli_read_options(const struct cli_command *command, int argc, char **argv, void *into)
{
	struct option longs[OPTIONS_MAX] = {{"help", no_argument, NULL, 'h'}};
	char letters[OPTIONS_MAX + 8];
	int option, status = CLI_EXIT_OK;

	snprintf(letters, sizeof(letters), "%s:h", command->runs_program ? "+" : "");
	for (unsigned int i = 0; command->options[i].name; i++) {
		const struct cli_option *row = &command->options[i];

		longs[i + 1] =
			(struct option){row->name, argument_of(row), NULL, OPTION_FIRST + (int)i};
		if (row->letter)
			strncat(letters, &row->letter, 1);
		if (row->letter && argument_of(row) == required_argument)
			strcat(letters, ":");
	}
	opterr = 0;
	while (!status && (option = getopt_long(argc, argv, letters, longs, NULL)) != -1) {
		const struct cli_option *row = command->options;

		if (option == 'h') {
			cli_print_help(command);
			return CLI_HELPED;
		}
		if (option == '?' || option == ':')
			return bad_option(command, option, argv);
		if (option >= OPTION_FIRST)
			row += option - OPTION_FIRST;
		else
			while (row->letter != option)
				row++;
		status = row->take(command, row, optarg, into);
	}
	if (!status && optind < argc && !command->runs_program && !command->takes_file)
		status = cli_bad_usage(command, "unexpected argument '%s'", argv[optind]);
	return status;
}

/* --- help --- */

/* Prints "one of: A, B, C" in lines of at most LINE_COLUMNS columns. */
static void print_words(vb_words_fn *words)
{
	int column = printf("%*sone of:", HELP_COLUMN, "");
	const char *word;

	for (unsigned int i = 0; (word = words(i)); i++) {
		const char *comma = words(i + 1) ? "," : "";

		if (column + 1 + (int)strlen(word) + (int)strlen(comma) > LINE_COLUMNS)
			column = printf("\n%*s", HELP_COLUMN - 1, "") - 1;
		column += printf(" %s%s", word, comma);
	}
	printf("\n");
}

static void print_option(const struct cli_option *option)
{
	char letter[] = {'-', option->letter, ',', '\0'};
	int used = printf("  %-3s --%s%s%s", option->letter ? letter : "", option->name,
			  argument_of(option) == required_argument ? " " : "",
			  option->argument ? option->argument : "");

	for (const char *line = option->help, *end; *line; line = end + (*end != '\0')) {
		end = strchrnul(line, '\n');
		printf("%*s%.*s\n", used < HELP_COLUMN ? HELP_COLUMN - used : 1, "",
		       (int)(end - line), line);
		used = 0;
	}
	if (option->words)
		print_words(option->words);
}

void cli_print_exits(const char *exits)
{
	printf("Exit status:\n%s", exits ? exits : exits_of_all);
}

void cli_print_help(const struct cli_command *command)
{
	static const struct cli_option help = {.name = "help", .letter = 'h', .help = "print this"};

	printf("Usage: verbena %s %s\n\n%s\n", command->name, command->synopsis, command->about);
	if (!command->options[0].group)
		printf("Options:\n");
	for (const struct cli_option *option = command->options; option->name; option++) {
		if (option->group)
			printf("%s:\n", option->group);
		print_option(option);
	}
	print_option(&help);
	printf("\n");
	cli_print_exits(command->exits);
}
