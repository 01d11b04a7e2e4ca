/* SPDX-License-Identifier: MIT */
#include "src/cli/options.h"
#include "src/cli/repeat.h"
#include "src/cli/trace.h"
#include "src/parts/merge.h"
#include "src/project/environment.h"
#include "src/project/project.h"
#include "test/conformance/runner.h"
#include "test/conformance/suites.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <verbena/error.h>
#include <verbena/verbs.h>

/* The seed if neither --seed nor the project gives one: runs are repeatable. */
#define SEED_DEFAULT	  1
#define TIMEOUT_DEFAULT_S 30
#define TIMEOUT_MAX_S	  86400

/* What is shown of the log, or of the packets, of a failed test. */
#define SHOWN_ROWS  12
#define SHOWN_WIDTH 100

/* The command line, and the options that repeat a run. */
struct arguments {
	struct vt_options run;
	const char *project_path;
	struct vb_sim_config sim; /* the project's, with --profile */
	uint64_t timeout_s;
	bool seed_given, list, two_processes;
	const char *profile, *peer_profile;
	char place[64];
	const char *wire, *peer_wire;
	bool compare;
	struct vt_two two;
	struct vb_sim_config peer_sim, one_sim;
	char again[4096];
};

/* Adds an option to arguments->again, quoted for a shell if necessary. */
static void say_again(struct arguments *arguments, const char *option, const char *value)
{
	size_t used = strlen(arguments->again);
	bool plain = value && *value;

	if (!value)
		return;
	for (const char *c = value; *c; c++)
		plain = plain && (isalnum((unsigned char)*c) || strchr("_-./:+,@", *c));
	snprintf(arguments->again + used, sizeof(arguments->again) - used, " --%s %s%s%s", option,
		 plain ? "" : "'", value, plain ? "" : "'");
}

static void say_flag_again(struct arguments *arguments, const char *option)
{
	size_t used = strlen(arguments->again);

	snprintf(arguments->again + used, sizeof(arguments->again) - used, " --%s", option);
}

/* Takes names with commas between. The arguments stay whole, for repeat_test(). */
static int take_suite_names(const struct cli_command *command, const struct cli_option *option,
			    const char *value, void *into)
{
	struct vt_options *run = &((struct arguments *)into)->run;
	char name[64];

	for (const char *at = value;; at++) {
		const size_t length = strcspn(at, ",");
		const struct vt_suite *suite;

		snprintf(name, sizeof(name), "%.*s", (int)length, at);
		suite = vt_find_suite(vt_suites, name);
		if (!suite)
			return cli_bad_usage(command,
					     "there is no suite '%s': 'verbena test --list' "
					     "names them",
					     name);
		if (run->suite_count == VT_SUITES_CHOSEN_MAX)
			return cli_bad_usage(command, "more than %d suites", VT_SUITES_CHOSEN_MAX);
		run->suites[run->suite_count++] = suite->name;
		at += length;
		if (!*at)
			return CLI_EXIT_OK;
	}
}

static int take_seed(const struct cli_command *command, const struct cli_option *option,
		     const char *value, void *into)
{
	((struct arguments *)into)->seed_given = true;
	return cli_take_seed(command, option, value, into);
}

static int take_limit(const struct cli_command *command, const struct cli_option *option,
		      const char *value, void *into)
{
	struct vt_options *run = &((struct arguments *)into)->run;
	struct vb_limit limit;

	if (!vb_limit_read(value, &limit))
		return cli_bad_usage(command, "--%s '%s' is not understood (" VB_LIMIT_ALLOWED ")",
				     option->name, value);
	run->trace_bytes_max = limit.bytes_max;
	run->trace_packets_max = limit.count_max;
	if (!limit.bytes_max && !limit.count_max)
		run->trace_bytes_max = UINT64_MAX;
	return CLI_EXIT_OK;
}

#define AT(field) offsetof(struct arguments, field)

static const struct cli_option options[] = {
	{"backend", 0, "B", "the backend [VERBENA_BACKEND, else sim]", "Where", cli_take_text,
	 AT(run.backend), .words = cli_backend},
	{"device", 0, "D", "node A's device [the first]", NULL, cli_take_text, AT(run.device)},
	{"peer-device", 0, "D", "node B's device [A's; on the simulator the second]", NULL,
	 cli_take_text, AT(run.peer_device)},
	{"project", 0, "FILE",
	 "simulated devices, seed and suites [VERBENA_PROJECT, else\n./project.yml if it exists, "
	 "else sim0 and sim1]",
	 NULL, cli_take_text, AT(project_path)},
	{"profile", 0, "P",
	 "of all simulated devices, instead of the project's; with\nanother backend only the "
	 "place for --known",
	 NULL, cli_take_text, AT(profile), .words = vb_sim_profile_name},
	{"suite", 0, "S[,S...]", "run these suites; may be repeated [all]", "Which",
	 take_suite_names},
	{"filter", 0, "GLOB", "run tests whose SUITE.TEST matches [all]", NULL, cli_take_text,
	 AT(run.filter)},
	{"from", 0, "SUITE.TEST", "run this test and those after it in --list [the first]", NULL,
	 cli_take_text, AT(run.from)},
	{"list", 0, NULL, "print the chosen tests and their sources; run nothing", NULL,
	 cli_take_flag, AT(list)},
	{"seed", 0, "N",
	 "of the tests' and the simulator's random numbers, or\n\"random\" [the project's, else 1]",
	 "How", take_seed, AT(run.seed)},
	{"timeout", 0, "SECONDS", "of real time, for each test; 0 is none [30]", NULL,
	 cli_take_number, AT(timeout_s), TIMEOUT_MAX_S},
	{"no-fork", 0, NULL, "run in one process without time limit, for debuggers", NULL,
	 cli_take_flag, AT(run.no_fork)},
	{"known", 0, "FILE",
	 "the tests that fail with --profile (and --peer-profile):\nthese may fail, others may "
	 "not, "
	 "and a listed test that\npasses fails",
	 NULL, cli_take_text, AT(run.known)},
	{"two-processes", 0, NULL,
	 "open B's device in another process, on the real clock; tests\nthat control the simulator "
	 "are left out",
	 "Two processes", cli_take_flag, AT(two_processes)},
	{"wire", 0, "W",
	 "of A's device: shared, udp, udp=ADDRESS; or memory, where A\nis in B's process, too "
	 "[shared]",
	 NULL, cli_take_text, AT(wire)},
	{"peer-wire", 0, "W", "of B's device [that of --wire, with an address of its own]", NULL,
	 cli_take_text, AT(peer_wire)},
	{"peer-backend", 0, "B", "of B's process [that of --backend]", NULL, cli_take_text,
	 AT(two.backend), .words = cli_backend},
	{"peer-profile", 0, "P",
	 "of B's device, if it is simulated; and for --known the second\nhalf of the place "
	 "[that of --profile]",
	 NULL, cli_take_text, AT(peer_profile), .words = vb_sim_profile_name},
	{"peer-network", 0, "P",
	 "the path of the network namespace of B's process, such as\n/run/netns/NAME [the same]",
	 NULL, cli_take_text, AT(two.network)},
	{"compare", 0, NULL, "run each test in one process, too; another outcome is a failure",
	 NULL, cli_take_flag, AT(compare)},
	{"at-least", 0, "N", "fail if fewer tests pass in which a QP of B can receive [0]", NULL,
	 cli_take_number, AT(two.at_least), UINT32_MAX},
	{"trace", 0, "DIR", "write each test's packets to DIR/SUITE.TEST.pcap", "Output",
	 cli_take_text, AT(run.trace_dir)},
	{"trace-limit", 0, "L",
	 "keep the end of each trace: the last 10000 packets, or\nof 100M (bytes; also K, G) at "
	 "least the last half [256M]",
	 NULL, take_limit},
	{"junit", 0, "FILE", "write results as JUnit XML", NULL, cli_take_text, AT(run.junit)},
	{"tap", 0, NULL, "write results as TAP to standard output", NULL, cli_take_flag,
	 AT(run.tap)},
	{"verbose", 'v', NULL, "print a line for each test", NULL, cli_take_flag, AT(run.verbose)},
	{0},
};

/* Takes the project's suites if the command line names none. */
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

/* Returns CLI_EXIT_USAGE after a message if no device can be made with the profile. */
static int check_profile(const struct vb_sim_config *sim, const char *option, const char *profile)
{
	struct vb_sim *world;
	char allowed[160];

	if (vb_words_find(vb_sim_profile_name, profile) < 0)
		return cli_bad_usage(&cli_test, "%s '%s' is unknown (allowed: %s)", option, profile,
				     vb_words_list(vb_sim_profile_name, allowed, sizeof(allowed)));
	world = vb_sim_open(sim);
	if (!world)
		return cli_bad_usage(&cli_test, "%s '%s': %s", option, profile, vb_last_error());
	vb_sim_close(world);
	return CLI_EXIT_OK;
}

/* Takes the project's devices, with --profile as all devices' profile. The project's wires, faults and
 * events are for programs: each test has a world of its own, and causes its own faults. */
static int take_devices(struct arguments *arguments, const struct vb_project *project)
{
	struct vb_sim_config *sim = &arguments->sim;

	*sim = project->sim;
	sim->trace = NULL;
	sim->fault_count = 0;
	sim->event_count = 0;
	for (unsigned int i = 0; i < sim->device_count; i++) {
		sim->devices[i].wire = VB_SIM_WIRE_MEMORY;
		sim->devices[i].address[0] = '\0';
	}
	arguments->run.sim = sim;
	if (!arguments->profile || !vt_simulated(&arguments->run))
		return CLI_EXIT_OK;
	vb_project_add_devices(sim, VB_PROJECT_DEVICES);
	vb_project_set_profile(sim, arguments->profile);
	return check_profile(sim, "--profile", arguments->profile);
}

/* --- two processes --- */

/* Returns the index of the device of that name; `other` if there is no name. */
static unsigned int device_index(const struct vb_sim_config *sim, const char *name,
				 unsigned int other)
{
	for (unsigned int i = 0; name && i < sim->device_count; i++)
		if (!strcmp(sim->devices[i].name, name))
			return i;
	return other;
}

/* Reads a wire into a device. */
static int read_wire(const char *option, const char *text, struct vb_sim_device_config *device)
{
	struct vb_project one = {.sim = {.device_count = 1}};
	struct vb_project_error error;

	if (!vb_project_set_wire(&one, option, text, &error))
		return cli_bad_usage(&cli_test, "%s", error.text);
	device->wire = one.sim.devices[0].wire;
	memcpy(device->address, one.sim.devices[0].address, sizeof(device->address));
	return CLI_EXIT_OK;
}

/* All devices of the world shared are in both processes; one that claims an address is in one. */
static void set_wire(struct vb_sim_config *sim, const struct vb_sim_device_config *wire,
		     unsigned int own)
{
	for (unsigned int i = 0; i < sim->device_count; i++) {
		if (wire->wire == VB_SIM_WIRE_UDP && i != own)
			continue;
		sim->devices[i].wire = wire->wire;
		memcpy(sim->devices[i].address, wire->address, sizeof(wire->address));
	}
}

static bool is_simulated(const char *backend)
{
	return vb_find_backend(backend)->capabilities & VB_BACKEND_SIMULATED;
}

/* B's device has its profile in the worlds of both processes. */
static int take_peer_profile(struct arguments *arguments, unsigned int own)
{
	const char *profile = arguments->peer_profile;
	struct vb_sim_config *sim = &arguments->sim;

	if (!profile || !is_simulated(arguments->two.backend))
		return CLI_EXIT_OK;
	snprintf(sim->devices[own].profile, sizeof(sim->devices[own].profile), "%s", profile);
	return check_profile(sim, "--peer-profile", profile);
}

/* Without an address of its own, B takes the kind of A's wire. */
static int read_wires(const struct arguments *arguments, struct vb_sim_device_config *a,
		      struct vb_sim_device_config *b)
{
	int status = read_wire("--wire", arguments->wire ? arguments->wire : "shared", a);

	if (!status && arguments->peer_wire)
		return read_wire("--peer-wire", arguments->peer_wire, b);
	*b = *a;
	if (is_simulated(arguments->run.backend))
		b->address[0] = '\0';
	return status;
}

/* Fills the worlds of both processes. */
static int take_two(struct arguments *arguments)
{
	struct vt_options *run = &arguments->run;
	struct vt_two *two = &arguments->two;
	struct vb_sim_config *sim = &arguments->sim, *peer = &arguments->peer_sim;
	struct vb_sim_device_config a = {0}, b = {0};
	unsigned int own;
	int status;

	if (!two->backend)
		two->backend = run->backend;
	status = read_wires(arguments, &a, &b);
	if (status)
		return status;
	if (arguments->compare && strcmp(two->backend, run->backend) != 0)
		return cli_bad_usage(&cli_test,
				     "--compare runs one process on one backend: it does not go "
				     "with --peer-backend %s",
				     two->backend);
	vb_project_add_devices(sim, VB_PROJECT_DEVICES);
	own = device_index(sim, run->peer_device, is_simulated(run->backend));
	status = take_peer_profile(arguments, own);
	if (status)
		return status;
	sim->clock = VB_SIM_CLOCK_REAL;
	vb_project_new_world(sim->world);
	*peer = arguments->one_sim = *sim;
	two->one = arguments->compare ? &arguments->one_sim : NULL;
	set_wire(sim, &a, device_index(sim, run->device, 0));
	set_wire(peer, &b, own);
	two->sim = is_simulated(two->backend) ? peer : NULL;
	/* The kernel joins no IP multicast group for the verbs of an adapter. */
	two->without_groups = (a.wire == VB_SIM_WIRE_UDP || b.wire == VB_SIM_WIRE_UDP) &&
			      !(is_simulated(run->backend) && is_simulated(two->backend));
	two->both = a.wire == VB_SIM_WIRE_MEMORY;
	run->two = two;
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
	status = take_devices(arguments, project);
	if (status)
		return status;
	if (arguments->two_processes)
		status = take_two(arguments);
	if (status)
		return status;
	run->again = arguments->again;
	if (!arguments->seed_given)
		run->seed = project->sim.seed_given ? project->sim.seed : SEED_DEFAULT;
	return vt_run_all(run);
}

static bool needs_two(const struct arguments *arguments)
{
	const struct vt_two *two = &arguments->two;

	return arguments->wire || arguments->peer_wire || arguments->peer_profile ||
	       arguments->compare || two->backend || two->network || two->at_least;
}

/* Fills the place of known failures: the profile of both nodes, or A:B if they differ. */
static void name_place(struct arguments *arguments)
{
	const char *a = arguments->profile, *b = arguments->peer_profile;
	bool differ = a && b && strcmp(a, b) != 0;

	if (!a)
		return;
	snprintf(arguments->place, sizeof(arguments->place), "%s%s%s", a, differ ? ":" : "",
		 differ ? b : "");
	arguments->run.place = arguments->place;
}

/* A test that was ended by its time limit may have left its trace in parts. */
static void show_last(const char *path, FILE *out)
{
	char whole[PATH_MAX], sentence[MERGE_SENTENCE_BYTES];

	if (realpath(path, whole))
		merge_parts(whole, sentence);
	trace_show_last(path, SHOWN_ROWS, SHOWN_WIDTH, out);
}

static int run_test(int argc, char **argv)
{
	struct arguments arguments = {.run = {.all_suites = vt_suites, .show = show_last},
				      .timeout_s = TIMEOUT_DEFAULT_S};
	struct vt_options *run = &arguments.run;
	struct vb_project *project;
	int status = cli_read_options(&cli_test, argc, argv, &arguments);

	if (status)
		return status;
	if (run->known && !arguments.profile)
		return cli_bad_usage(&cli_test, "--known needs the place, which --profile names");
	if (!arguments.two_processes && needs_two(&arguments))
		return cli_bad_usage(&cli_test, "an option of two processes needs --two-processes");
	name_place(&arguments);
	run->timeout_s = arguments.timeout_s;
	run->backend = cli_find_backend(&cli_test, run->backend);
	if (!run->backend)
		return CLI_EXIT_USAGE;
	if (is_simulated(run->backend) && !arguments.two_processes)
		repeat_test(argc, argv);
	say_again(&arguments, "device", run->device);
	say_again(&arguments, "peer-device", run->peer_device);
	say_again(&arguments, "profile", arguments.profile);
	say_again(&arguments, "project",
		  arguments.project_path ? arguments.project_path : getenv(VB_ENVIRONMENT_PROJECT));
	say_again(&arguments, "backend", run->backend);
	if (arguments.two_processes)
		say_flag_again(&arguments, "two-processes");
	say_again(&arguments, "wire", arguments.wire);
	say_again(&arguments, "peer-wire", arguments.peer_wire);
	say_again(&arguments, "peer-backend", arguments.two.backend);
	say_again(&arguments, "peer-profile", arguments.peer_profile);
	say_again(&arguments, "peer-network", arguments.two.network);
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
	.synopsis = "[OPTION...]",
	.about = "Runs the conformance suites on a backend: each test in a process of its own, and "
		 "on\n"
		 "the simulator in a world of its own.\n",
	.options = options,
	.run = run_test,
};
