/* SPDX-License-Identifier: MIT */
#include "src/base/count.h"
#include "src/check/options.h"
#include "src/cli/options.h"
#include "src/cli/program.h"
#include "src/cli/repeat.h"
#include "src/cli/session.h"
#include "src/cli/wait_for.h"
#include "src/project/environment.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { EXIT_CANNOT_RUN = 126, EXIT_NOT_FOUND = 127 };

/* Sets the variable of the option's name, which the library reads. */
static int take_value(const struct cli_command *command, const struct cli_option *option,
		      const char *value, void *into)
{
	char variable[32] = "VERBENA_";
	size_t used = strlen(variable);

	for (const char *c = option->name; *c && used < sizeof(variable) - 1; c++)
		variable[used++] = (char)(*c == '-' ? '_' : toupper((unsigned char)*c));
	variable[used] = '\0';
	return setenv(variable, value, 1) ? session_no_memory() : CLI_EXIT_OK;
}

/* The same with an absolute path, since programs change their working directory. */
static int take_path(const struct cli_command *command, const struct cli_option *option,
		     const char *path, void *into)
{
	char *folder = *path == '/' ? strdup("") : getcwd(NULL, 0);
	char *whole;
	int status;

	if (!folder || asprintf(&whole, "%s%s%s", folder, *folder ? "/" : "", path) < 0) {
		free(folder);
		return session_no_memory();
	}
	status = take_value(command, option, whole, into);
	free(whole);
	free(folder);
	return status;
}

/* What the options say beside the variables that they set. */
struct lines {
	bool emptied[2];   /* of the options that write lines */
	bool continued[3]; /* of the options that may be repeated */
	const char *files; /* the folder to make, or NULL */
	uint64_t wait_for; /* the TCP port of the server, or 0 */
};

static bool is_standard_error(const char *path)
{
	return !strcmp(path, "1") || !strcmp(path, "-") || !strcmp(path, "stderr");
}

/* Notes that the option's file is to be emptied, and takes the path. */
static int take_lines(const struct cli_command *command, const struct cli_option *option,
		      const char *value, void *into)
{
	if (value && is_standard_error(value))
		value = NULL;
	*(bool *)((char *)into + option->offset) = value;
	return value ? take_path(command, option, value, into)
		     : take_value(command, option, "stderr", into);
}

/* Returns the path in a setting that names a file by a relative path, else NULL. */
static const char *relative_path(const char *setting)
{
	static const char *const names[] = {"file=", "suppressions="};

	for (size_t i = 0; i < COUNT(names); i++) {
		const char *path = setting + strlen(names[i]);

		if (!strncmp(setting, names[i], strlen(names[i])))
			return *path == '/' || is_standard_error(path) ? NULL : path;
	}
	return NULL;
}

/* Writes the settings with absolute paths. Changes value. */
static void write_settings(FILE *out, char *value, const char *folder)
{
	char *rest;

	for (char *one = strtok_r(value, ",", &rest); one; one = strtok_r(NULL, ",", &rest)) {
		const char *path = relative_path(one);

		if (path)
			fprintf(out, "%.*s%s/%s", (int)(path - one), one, folder, path);
		else
			fputs(one, out);
		if (*rest)
			fputc(',', out);
	}
}

/* Returns the settings with absolute paths, as a string that the caller frees; NULL: no memory. */
static char *settle_paths(const char *value)
{
	char *copy = strdup(value), *folder = getcwd(NULL, 0), *whole = NULL;
	size_t size_bytes;
	FILE *out = copy && folder ? open_memstream(&whole, &size_bytes) : NULL;
	bool good = out;

	if (out) {
		write_settings(out, copy, folder);
		good = !ferror(out) && !fclose(out);
	}
	free(folder);
	free(copy);
	return good ? whole : NULL;
}

/* Refuses wrong settings before the program runs. */
static int take_check(const struct cli_command *command, const struct cli_option *option,
		      const char *value, void *into)
{
	struct check_settings settings;
	char *whole;
	int status;

	if (!value || !*value)
		value = "1";
	if (!check_settings_read(&settings, value)) {
		fprintf(stderr, "verbena run: %s\n", settings.error);
		return CLI_EXIT_USAGE;
	}
	whole = settle_paths(value);
	status = whole ? take_value(command, option, whole, into) : session_no_memory();
	free(whole);
	return status;
}

/* Adds a value to a variable of values with ';' between them. The option's first value replaces what
 * the variable was before. */
static int add_value(const char *variable, const char *value, bool *continued)
{
	const char *before = *continued ? getenv(variable) : NULL;
	char *all;
	int status = CLI_EXIT_OK;

	if (asprintf(&all, "%s%s%s", before ? before : "", before ? ";" : "", value) < 0)
		return session_no_memory();
	if (setenv(variable, all, 1))
		status = session_no_memory();
	free(all);
	*continued = true;
	return status;
}

static int take_fault(const struct cli_command *command, const struct cli_option *option,
		      const char *value, void *into)
{
	return add_value(VB_ENVIRONMENT_FAULT, value, (bool *)((char *)into + option->offset));
}

static int take_event(const struct cli_command *command, const struct cli_option *option,
		      const char *value, void *into)
{
	return add_value(VB_ENVIRONMENT_EVENTS, value, (bool *)((char *)into + option->offset));
}

static int take_fail(const struct cli_command *command, const struct cli_option *option,
		     const char *value, void *into)
{
	return add_value(VB_ENVIRONMENT_FAIL, value, (bool *)((char *)into + option->offset));
}

static const struct cli_option options[] = {
	{"project", 0, "FILE", "devices and links [VERBENA_PROJECT, else none]",
	 "The simulated world", take_path},
	{"devices", 0, "N", "the number of devices, sim0 and so on [2]", NULL, take_value},
	{"link-layer", 0, "L", "of all devices [ethernet]", NULL, take_value,
	 .words = vb_project_link_layer_name},
	{"profile", 0, "P",
	 "of all devices: behaviour where adapters differ\n[spec, see verbena-run(1)]", NULL,
	 take_value, .words = vb_sim_profile_name},
	{"quirks", 0, "A[,B...]", "of all devices, beside the profile's ['' is none]", NULL,
	 take_value},
	{"trace", 0, "FILE", "every packet as pcap; %p is the process number [none]", NULL,
	 take_path},
	{"trace-limit", 0, "L",
	 "keep the end of the trace: the last 10000 packets, or of 100M\n(bytes; also K, G) at "
	 "least "
	 "the last half [all]",
	 NULL, cli_take_limit},
	{"log", 0, "FILE",
	 "every event as a line of JSON, for verbena trace; %p is the\nprocess number [none]", NULL,
	 take_path},
	{"log-limit", 0, "L", "keep the end of the log: the last 10000 events, or 100M [all]", NULL,
	 cli_take_limit},
	{"wire", 0, "W",
	 "how packets reach other processes: memory (not at all),\nshared, udp[=ADDRESS|INTERFACE] "
	 "[shared]",
	 NULL, take_value},
	{"world", 0, "NAME",
	 "processes with the same NAME share the devices; new: only\nthis program and its children "
	 "[all of this user's with the\nsame devices]",
	 NULL, take_value},
	{"seed", 0, "N", "of all random numbers [random]", NULL, take_value},
	{"clock", 0, "C", "the clock, see verbena-run(1) [real]", NULL, take_value,
	 .words = vb_project_clock_name},
	{"fault", 0, "RULE",
	 "what happens to packets, such as \"drop,from=sim0,count=1\";\nmay be repeated, see "
	 "verbena-run(1) [none]",
	 "What goes wrong", take_fault, offsetof(struct lines, continued[0])},
	{"event", 0, "EVENT",
	 "what happens to a device at a time, such as\n\"at=5ms,port=sim0/1,state=down\"; may be "
	 "repeated [none]",
	 NULL, take_event, offsetof(struct lines, continued[1])},
	{"fail", 0, "RULE",
	 "which calls, completions and descriptors fail, and which\nevents come, such as "
	 "\"create_qp,skip=2,errno=ENOMEM\"; may be\nrepeated [none]",
	 NULL, take_fail, offsetof(struct lines, continued[2])},
	{"explain", 0, "[=FILE]",
	 "why each verb and completion fails, with the place\nin the program, to stderr or the "
	 "file",
	 "What the program does wrong", take_lines, offsetof(struct lines, emptied[0])},
	{"report", 0, "[=FILE]", "at exit: what is left, counters, dropped packets", NULL,
	 take_lines, offsetof(struct lines, emptied[1])},
	{"check", 0, "[=SETTINGS]",
	 "mistakes that no status shows, such as a buffer that changes\nbefore its completion; "
	 "exits with 99 if there are any",
	 NULL, take_check},
	{"wait-for", 0, "PORT",
	 "begins when a server listens at the TCP port, for a client that\nis started with its "
	 "server",
	 "When it begins", cli_take_number, offsetof(struct lines, wait_for), .max = UINT16_MAX},
	{"files", 0, "FOLDER",
	 "makes a folder with the devices' files of /sys and /dev,\nand runs no program",
	 "Instead of a program", cli_take_text, offsetof(struct lines, files)},
	{0},
};

/* Reports wrong settings once, before each child would, and makes the new world of all children. */
static int check_settings(void)
{
	struct vb_project_error error;
	struct vb_project *project = vb_environment_load(&error);
	int err;

	if (!project) {
		fprintf(stderr, "verbena run: %s\n", error.text);
		return CLI_EXIT_USAGE;
	}
	err = vb_environment_settle_world(project);
	vb_project_free(project);
	return err ? session_no_memory() : CLI_EXIT_OK;
}

/* A run begins with empty files, to whose end each process writes. */
static int empty_files(const struct lines *lines)
{
	static const char *const variables[] = {"VERBENA_EXPLAIN", "VERBENA_REPORT"};

	for (size_t i = 0; i < COUNT(variables); i++) {
		const char *path = getenv(variables[i]);
		int fd;

		if (!lines->emptied[i] || !path || strstr(path, "%p"))
			continue;
		/* O_NONBLOCK: opening a pipe that nobody reads fails, and does not hang. */
		fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
			  0666);
		if (fd < 0) {
			fprintf(stderr,
				"verbena run: %s: %s; name a regular file that may be written\n",
				path, strerror(errno));
			return CLI_EXIT_FAILED;
		}
		close(fd);
	}
	return CLI_EXIT_OK;
}

static int execute(char **argv, const char *folder)
{
	char reason[2 * PATH_MAX];
	char *path = program_find(argv[0]);
	int err = errno;

	if (path && !program_takes(path, folder, reason, sizeof(reason))) {
		fprintf(stderr, "verbena run: %s\n", reason);
		free(path);
		return EXIT_CANNOT_RUN;
	}
	repeat_run();
	if (path) {
		/* By its path and not by execvp(), so that the file that was checked runs. */
		execv(path, argv);
		err = errno;
		/* A script without "#!": execvp() runs it by a shell. */
		if (err == ENOEXEC) {
			execvp(argv[0], argv);
			err = errno;
		}
	}
	fprintf(stderr, "verbena run: %s: %s\n", argv[0], strerror(err));
	free(path);
	return err == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN;
}

static int run(int argc, char **argv)
{
	struct lines lines = {0};
	char folder[PATH_MAX];
	int status = cli_read_options(&cli_run, argc, argv, &lines);

	/* The rules of VERBENA_FAIL are for the program. */
	vb_fail_clear();
	if (status)
		return status;
	if (lines.files && optind < argc)
		return cli_bad_usage(&cli_run, "--files runs no program");
	if (lines.files)
		return session_make(lines.files);
	if (optind == argc)
		return cli_bad_usage(&cli_run, "no program is given");
	status = check_settings();
	if (status)
		return status;
	if (!session_find_folder("run", folder))
		return CLI_EXIT_FAILED;
	status = empty_files(&lines);
	if (!status)
		status = session_begin(folder);
	if (!status && lines.wait_for)
		status = wait_for_listener((uint16_t)lines.wait_for);
	return status ? status : execute(argv + optind, folder);
}

const struct cli_command cli_run = {
	.name = "run",
	.summary = "run a program of libibverbs on simulated devices",
	.synopsis = "[OPTION...] [--] PROGRAM [ARGUMENT...]",
	.about = "Runs a program that uses libibverbs on simulated devices, without a change: the "
		 "program\n"
		 "and its children load Verbena's " PROGRAM_LIBRARY " instead of the system's.\n",
	.exits = "  the program's own; with --check and findings 99; before the program runs\n"
		 "   1  Verbena's library was not found, a file cannot be written, no server "
		 "listens,\n"
		 "      or there is no memory\n"
		 "   2  wrong usage, a wrong variable or setting, or a wrong project file or file "
		 "of\n"
		 "      suppressions\n"
		 " 126  the program cannot be run, or not on simulated devices\n"
		 " 127  there is no such program\n",
	.options = options,
	.run = run,
	.runs_program = true,
};
