/* SPDX-License-Identifier: MIT */
#include "src/cli/cli.h"
#include "src/cli/program.h"
#include "src/project/environment.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
	"Usage: verbena run [OPTION...] [--] PROGRAM [ARGUMENT...]\n\n"
	"Runs a program that uses libibverbs, as it is, on simulated devices: the program and its\n"
	"children load Verbena's " PROGRAM_LIBRARY " instead of the system's.\n\n"
	"The simulated world:\n"
	"      --project FILE     devices and links [VERBENA_PROJECT, else none]\n"
	"      --devices N        N devices, sim0 and so on [2]\n"
	"      --link-layer L     ethernet or infiniband [ethernet]\n"
	"      --profile P        spec, rxe-6.1, rxe-6.12 or mlx5 [spec, see verbena-run(1)]\n"
	"      --quirks A[,B...]  quirks beside the profile's ['' is none]\n"
	"      --trace FILE       every packet as pcap; %p is the process number\n"
	"      --seed N           of all random numbers [the system's randomness]\n"
	"      --clock C          real or virtual [real]\n"
	"  -h, --help             print this\n\n"
	"Exit status: the program's own; before it runs\n"
	"   2  wrong usage, or a wrong project file\n"
	" 126  it cannot be run, or not on simulated devices\n"
	" 127  there is no such program\n";

enum { EXIT_CANNOT_RUN = 126, EXIT_NOT_FOUND = 127 };

/* Each option is the variable that the library reads. */
static const struct {
	const char *option;
	const char *variable;
	bool is_path;
} settings[] = {
	{"project", VB_ENVIRONMENT_PROJECT, true},
	{"devices", VB_ENVIRONMENT_DEVICES, false},
	{"link-layer", VB_ENVIRONMENT_LINK_LAYER, false},
	{"profile", VB_ENVIRONMENT_PROFILE, false},
	{"quirks", VB_ENVIRONMENT_QUIRKS, false},
	{"trace", VB_ENVIRONMENT_TRACE, true},
	{"seed", VB_ENVIRONMENT_SEED, false},
	{"clock", VB_ENVIRONMENT_CLOCK, false},
};

#define SETTINGS     (sizeof(settings) / sizeof(settings[0]))
#define OPTION_FIRST 1000

static int no_memory(void)
{
	fprintf(stderr, "verbena run: no memory\n");
	return CLI_EXIT_FAILED;
}

/* Programs change their working directory: a path is handed on from the root. */
static int set_path(const char *variable, const char *path)
{
	char *folder = *path == '/' ? strdup("") : getcwd(NULL, 0);
	char *whole;
	int status = CLI_EXIT_OK;

	if (!folder || asprintf(&whole, "%s%s%s", folder, *folder ? "/" : "", path) < 0) {
		free(folder);
		return no_memory();
	}
	if (setenv(variable, whole, 1))
		status = no_memory();
	free(whole);
	free(folder);
	return status;
}

static int read_options(int argc, char **argv)
{
	struct option options[SETTINGS + 2] = {0};
	int option, status = CLI_EXIT_OK;

	for (size_t i = 0; i < SETTINGS; i++)
		options[i] = (struct option){settings[i].option, required_argument, NULL,
					     OPTION_FIRST + (int)i};
	options[SETTINGS] = (struct option){"help", no_argument, NULL, 'h'};
	while (!status && (option = getopt_long(argc, argv, "+:h", options, NULL)) != -1) {
		if (option == 'h') {
			fputs(usage, stdout);
			return -1;
		}
		if (option < OPTION_FIRST)
			return cli_bad_option(&cli_run, option, argv);
		if (settings[option - OPTION_FIRST].is_path)
			status = set_path(settings[option - OPTION_FIRST].variable, optarg);
		else if (setenv(settings[option - OPTION_FIRST].variable, optarg, 1))
			status = no_memory();
	}
	return status;
}

/* The folder of our libibverbs: beside this program where it was built, else where it is installed. */
static bool find_folder(char *folder)
{
	static const char *const places[] = {"/src/dropin", "/../" VERBENA_LIBDIR "/verbena"};
	char self[PATH_MAX], library[PATH_MAX + 32];
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *end;

	if (length < 0)
		return false;
	self[length] = '\0';
	end = strrchr(self, '/');
	*end = '\0';
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(library, sizeof(library), "%s%s", self, places[i]);
		if (!realpath(library, folder))
			continue;
		snprintf(library, sizeof(library), "%s/" PROGRAM_LIBRARY, folder);
		if (!access(library, R_OK))
			return true;
	}
	fprintf(stderr,
		"verbena run: " PROGRAM_LIBRARY " of Verbena is neither in %s%s nor in %s%s\n",
		self, places[0], self, places[1]);
	return false;
}

static int put_first(const char *folder)
{
	const char *others = getenv("LD_LIBRARY_PATH");
	char *folders;
	int status = CLI_EXIT_OK;

	if (asprintf(&folders, "%s%s%s", folder, others && *others ? ":" : "",
		     others ? others : "") < 0)
		return no_memory();
	if (setenv("LD_LIBRARY_PATH", folders, 1))
		status = no_memory();
	free(folders);
	return status;
}

/* Wrong settings are told here, once, and not by each child. */
static int check_settings(void)
{
	struct vb_project_error error;
	struct vb_project *project = vb_environment_load(&error);

	if (!project) {
		fprintf(stderr, "verbena run: %s\n", error.text);
		return CLI_EXIT_USAGE;
	}
	vb_project_free(project);
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
	if (path) {
		/* By its path and not by execvp(), so that it is the file that was looked at. */
		execv(path, argv);
		err = errno;
		/* A script without "#!", as execvp() runs it. */
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
	char folder[PATH_MAX];
	int status = read_options(argc, argv);

	if (status)
		return status < 0 ? CLI_EXIT_OK : status;
	if (optind == argc)
		return cli_bad_usage(&cli_run, "no program is given");
	status = check_settings();
	if (status)
		return status;
	if (!find_folder(folder))
		return CLI_EXIT_FAILED;
	status = put_first(folder);
	return status ? status : execute(argv + optind, folder);
}

const struct cli_command cli_run = {
	.name = "run",
	.summary = "run a program of libibverbs on simulated devices",
	.usage = usage,
	.run = run,
	.helps_itself = true,
};
