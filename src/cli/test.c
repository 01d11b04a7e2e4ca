/* SPDX-License-Identifier: MIT */
#include "src/cli/cli.h"
#include "src/project/project.h"
#include "test/conformance/runner.h"
#include "test/conformance/suites.h"

#include <ctype.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <verbena/error.h>

/* The seed where neither --seed nor the project gives one: runs are to be repeatable. */
#define SEED_DEFAULT	  1
#define TIMEOUT_DEFAULT_S 30
#define TIMEOUT_MAX_S	  86400

static const char usage[] =
	"Usage: verbena test [OPTION...]\n\n"
	"Runs the conformance suites on a backend: each test in a process of its own, on\n"
	"the simulator in a world of its own.\n\n"
	"Where:\n"
	"      --backend B        sim or ibverbs [VERBENA_BACKEND, else sim]\n"
	"      --device D         node A's device [the first]\n"
	"      --peer-device D    node B's device [A's; on the simulator the second]\n"
	"      --project FILE     simulated devices, seed and suites [VERBENA_PROJECT, else\n"
	"                         ./project.yml if it exists, else sim0 and sim1]\n"
	"      --profile P        of all simulated devices, over the project's; with another\n"
	"                         backend only the place of --known\n"
	"Which:\n"
	"      --suite S[,S...]   these suites; may be repeated [all]\n"
	"      --filter GLOB      tests whose SUITE.TEST matches [all]\n"
	"      --from SUITE.TEST  this test and those that follow it in --list [the first]\n"
	"      --list             print the chosen tests and their sources, run nothing\n"
	"How:\n"
	"      --seed N           of the tests' and the simulator's random numbers\n"
	"                         [the project's, else 1]\n"
	"      --timeout SECONDS  of real time, for each test; 0 is none [30]\n"
	"      --no-fork          in one process and with no time limit, for debuggers\n"
	"      --known FILE       of the tests that fail with --profile: these may, others\n"
	"                         may not, and each that passes against the list fails\n"
	"What is written:\n"
	"      --trace DIR        each test's packets to DIR/SUITE.TEST.pcap\n"
	"      --junit FILE       results as JUnit XML\n"
	"      --tap              results as TAP on standard output\n"
	"  -v, --verbose          a line for each test\n"
	"  -h, --help             print this\n";

enum option_value {
	OPTION_BACKEND = 1000,
	OPTION_DEVICE,
	OPTION_PEER_DEVICE,
	OPTION_PROJECT,
	OPTION_PROFILE,
	OPTION_KNOWN,
	OPTION_SUITE,
	OPTION_FILTER,
	OPTION_FROM,
	OPTION_LIST,
	OPTION_SEED,
	OPTION_TIMEOUT,
	OPTION_NO_FORK,
	OPTION_TRACE,
	OPTION_JUNIT,
	OPTION_TAP,
};

static const struct option options[] = {
	{"backend", required_argument, NULL, OPTION_BACKEND},
	{"device", required_argument, NULL, OPTION_DEVICE},
	{"peer-device", required_argument, NULL, OPTION_PEER_DEVICE},
	{"project", required_argument, NULL, OPTION_PROJECT},
	{"profile", required_argument, NULL, OPTION_PROFILE},
	{"known", required_argument, NULL, OPTION_KNOWN},
	{"suite", required_argument, NULL, OPTION_SUITE},
	{"filter", required_argument, NULL, OPTION_FILTER},
	{"from", required_argument, NULL, OPTION_FROM},
	{"list", no_argument, NULL, OPTION_LIST},
	{"seed", required_argument, NULL, OPTION_SEED},
	{"timeout", required_argument, NULL, OPTION_TIMEOUT},
	{"no-fork", no_argument, NULL, OPTION_NO_FORK},
	{"trace", required_argument, NULL, OPTION_TRACE},
	{"junit", required_argument, NULL, OPTION_JUNIT},
	{"tap", no_argument, NULL, OPTION_TAP},
	{"verbose", no_argument, NULL, 'v'},
	{NULL, 0, NULL, 0},
};

/* The command line, and what of it has to be said again to repeat a run. */
struct arguments {
	struct vt_options run;
	const char *project_path;
	struct vb_sim_config sim; /* the project's, with --profile */
	bool seed_given, list;
	char again[4096];
};

/* Quoted for a shell where it needs to be. */
static void say_again(struct arguments *arguments, const char *option, const char *value)
{
	size_t used = strlen(arguments->again);
	bool plain = value && *value;

	for (const char *c = value; c && *c; c++)
		plain = plain && (isalnum((unsigned char)*c) || strchr("_-./:+,@", *c));
	snprintf(arguments->again + used, sizeof(arguments->again) - used, " --%s%s%s%s%s", option,
		 value ? " " : "", value && !plain ? "'" : "", value ? value : "",
		 value && !plain ? "'" : "");
}

static bool read_number(const char *text, uint64_t max, uint64_t *number)
{
	char *end;

	errno = 0;
	*number = strtoull(text, &end, 0);
	return isdigit((unsigned char)*text) && !*end && !errno && *number <= max;
}

/* "a,b": the text is cut where it stands. */
static int add_suites(struct vt_options *run, char *text)
{
	char *name, *rest = text;

	while ((name = strsep(&rest, ","))) {
		if (!vt_find_suite(vt_suites, name))
			return cli_bad_usage(&cli_test,
					     "there is no suite '%s': 'verbena test --list' "
					     "names them",
					     name);
		if (run->suite_count == VT_SUITES_CHOSEN_MAX)
			return cli_bad_usage(&cli_test, "more than %d suites",
					     VT_SUITES_CHOSEN_MAX);
		run->suites[run->suite_count++] = name;
	}
	return CLI_EXIT_OK;
}

static int read_seed(struct arguments *arguments, const char *text)
{
	arguments->seed_given = true;
	if (read_number(text, UINT64_MAX, &arguments->run.seed))
		return CLI_EXIT_OK;
	return cli_bad_usage(&cli_test, "--seed '%s' is no number from 0 to 2^64 - 1", text);
}

static int read_timeout(struct arguments *arguments, const char *text)
{
	uint64_t number;

	if (!read_number(text, TIMEOUT_MAX_S, &number))
		return cli_bad_usage(&cli_test, "--timeout '%s' is no number from 0 to %d", text,
				     TIMEOUT_MAX_S);
	arguments->run.timeout_s = number;
	return CLI_EXIT_OK;
}

/* Options that only choose a place; they belong to what repeats a run. */
static int read_place(struct arguments *arguments, int option)
{
	switch (option) {
	case OPTION_BACKEND:
		arguments->run.backend = optarg;
		return CLI_EXIT_OK;
	case OPTION_DEVICE:
		arguments->run.device = optarg;
		say_again(arguments, "device", optarg);
		return CLI_EXIT_OK;
	case OPTION_PEER_DEVICE:
		arguments->run.peer_device = optarg;
		say_again(arguments, "peer-device", optarg);
		return CLI_EXIT_OK;
	case OPTION_PROFILE:
		arguments->run.profile = optarg;
		say_again(arguments, "profile", optarg);
		return CLI_EXIT_OK;
	default:
		arguments->project_path = optarg;
		say_again(arguments, "project", optarg);
		return CLI_EXIT_OK;
	}
}

static int read_option(struct arguments *arguments, int option, char **argv)
{
	struct vt_options *run = &arguments->run;

	switch (option) {
	case OPTION_BACKEND:
	case OPTION_DEVICE:
	case OPTION_PEER_DEVICE:
	case OPTION_PROFILE:
	case OPTION_PROJECT:
		return read_place(arguments, option);
	case OPTION_SUITE:
		return add_suites(run, optarg);
	case OPTION_SEED:
		return read_seed(arguments, optarg);
	case OPTION_TIMEOUT:
		return read_timeout(arguments, optarg);
	case OPTION_FILTER:
		run->filter = optarg;
		return CLI_EXIT_OK;
	case OPTION_FROM:
		run->from = optarg;
		return CLI_EXIT_OK;
	case OPTION_KNOWN:
		run->known = optarg;
		return CLI_EXIT_OK;
	case OPTION_TRACE:
		run->trace_dir = optarg;
		return CLI_EXIT_OK;
	case OPTION_JUNIT:
		run->junit = optarg;
		return CLI_EXIT_OK;
	case OPTION_LIST:
		arguments->list = true;
		return CLI_EXIT_OK;
	case OPTION_NO_FORK:
		run->no_fork = true;
		return CLI_EXIT_OK;
	case OPTION_TAP:
		run->tap = true;
		return CLI_EXIT_OK;
	case 'v':
		run->verbose = true;
		return CLI_EXIT_OK;
	default:
		return cli_bad_option(&cli_test, option, argv);
	}
}

/* The project's suites, where the command line names none. */
static bool take_suites(struct vt_options *run, const struct vb_project *project)
{
	if (run->suite_count)
		return true;
	for (unsigned int i = 0; i < project->suite_count; i++) {
		const struct vb_project_suite *suite = &project->suites[i];

		if (!vt_find_suite(vt_suites, suite->name)) {
			fprintf(stderr,
				"verbena: %s:%u: suites[%u]: there is no suite '%s' ('verbena "
				"test --list' names them)\n",
				project->file, suite->line, i, suite->name);
			return false;
		}
		run->suites[run->suite_count++] = suite->name;
	}
	return true;
}

/* All devices of the project, or the two that there are without one, get the profile. */
static int take_profile(struct arguments *arguments, const struct vb_project *project)
{
	struct vb_sim_config *sim = &arguments->sim;
	struct vb_sim *world;

	*sim = project->sim;
	sim->trace = NULL;
	arguments->run.sim = sim;
	if (!arguments->run.profile || !vt_simulated(&arguments->run))
		return CLI_EXIT_OK;
	for (; sim->device_count < 2 && !project->sim.device_count; sim->device_count++)
		snprintf(sim->devices[sim->device_count].name, VB_SIM_NAME_MAX, "sim%u",
			 sim->device_count);
	for (unsigned int i = 0; i < sim->device_count; i++)
		snprintf(sim->devices[i].profile, VB_SIM_NAME_MAX, "%s", arguments->run.profile);
	world = vb_sim_open(sim);
	if (!world)
		return cli_bad_usage(&cli_test, "--profile '%s': %s", arguments->run.profile,
				     vb_last_error());
	vb_sim_close(world);
	return CLI_EXIT_OK;
}

static int run_project(struct arguments *arguments, const struct vb_project *project)
{
	struct vt_options *run = &arguments->run;
	int status;

	if (!take_suites(run, project))
		return CLI_EXIT_USAGE;
	if (arguments->list)
		return vt_list_all(run);
	status = take_profile(arguments, project);
	if (status)
		return status;
	run->again = arguments->again;
	if (!arguments->seed_given)
		run->seed = project->sim.seed_given ? project->sim.seed : SEED_DEFAULT;
	return vt_run_all(run);
}

static int run_test(int argc, char **argv)
{
	struct arguments arguments = {
		.run = {.all_suites = vt_suites, .timeout_s = TIMEOUT_DEFAULT_S}};
	struct vb_project *project;
	int option, status;

	while ((option = getopt_long(argc, argv, ":v", options, NULL)) != -1) {
		status = read_option(&arguments, option, argv);
		if (status)
			return status;
	}
	if (optind < argc)
		return cli_bad_usage(&cli_test, "'%s' is one argument too many", argv[optind]);
	if (arguments.run.known && !arguments.run.profile)
		return cli_bad_usage(&cli_test, "--known needs the place, which --profile names");
	arguments.run.backend = cli_find_backend(&cli_test, arguments.run.backend);
	if (!arguments.run.backend)
		return CLI_EXIT_USAGE;
	say_again(&arguments, "backend", arguments.run.backend);
	project = cli_load_project(arguments.project_path);
	if (!project)
		return CLI_EXIT_USAGE;
	status = run_project(&arguments, project);
	vb_project_free(project);
	return status;
}

const struct cli_command cli_test = {
	.name = "test",
	.summary = "run the conformance suites",
	.usage = usage,
	.run = run_test,
};
