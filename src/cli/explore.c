/* SPDX-License-Identifier: MIT */
#include "src/base/count.h"
#include "src/cli/options.h"
#include "src/cli/program.h"
#include "src/cli/session.h"
#include "src/cli/trace.h"
#include "src/project/environment.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <verbena/error.h>
#include <verbena/explore.h>

enum { EXIT_CANNOT_RUN = 126, EXIT_NOT_FOUND = 127 };

#define STATUS_MAX    255
#define SECONDS_MAX   86400
#define JOBS_MAX      256
#define NUMBER_MAX    1000000000
#define RUNS_PLAIN    2 /* without a decision */
#define KINDS_PACKETS ((1u << (VB_DECIDE_CORRUPT + 1)) - 1)
#define STATUS_NONE   0

struct arguments {
	uint64_t kinds, singles, pairs, walks, seed, jobs, timeout_s, virtual_s, status;
	bool all, leaks;
	const char *schedule, *folder, *name;
	char **program; /* its path, and its arguments */
	char *path;
	char again[4096];
	char picture[PATH_MAX];
};

/* --- options --- */

static int take_kinds(const struct cli_command *command, const struct cli_option *option,
		      const char *value, void *into)
{
	uint64_t *kinds = (uint64_t *)((char *)into + option->offset);
	char allowed[128], *word, *rest = (char *)value;

	*kinds = 0;
	while ((word = strsep(&rest, ","))) {
		const int kind = vb_words_find(vb_decision_name, word);

		if (kind < 0)
			return cli_bad_usage(
				command, "--kinds '%s' is unknown (allowed: %s)", word,
				vb_words_list(vb_decision_name, allowed, sizeof(allowed)));
		*kinds |= 1u << kind;
	}
	return CLI_EXIT_OK;
}

#define AT(field) offsetof(struct arguments, field)

static const struct cli_option options[] = {
	{"kinds", 0, "K[,K...]", "what goes wrong, one thing in each run [all kinds of packets]",
	 "What is explored", take_kinds, AT(kinds), .words = vb_decision_name},
	{"pairs", 0, "N", "also N pairs of packets, spread over all pairs [0]", NULL,
	 cli_take_number, AT(pairs), NUMBER_MAX},
	{"walks", 0, "N", "also N random schedules [0]", NULL, cli_take_number, AT(walks),
	 NUMBER_MAX},
	{"seed", 0, "N", "of the random schedules [1]", NULL, cli_take_seed, AT(seed)},
	{"schedule", 0, "S", "this schedule only, such as drop:3,call:7", NULL, cli_take_text,
	 AT(schedule)},
	{"singles", 0, "N", "so many single decisions, spread over all of them [all]", NULL,
	 cli_take_number, AT(singles), NUMBER_MAX},
	{"all", 0, NULL, "go on after a failure [stop]", NULL, cli_take_flag, AT(all)},
	{"status", 0, "N", "an exit status of the program that is a success, as 0 is [none]",
	 "What is right", cli_take_number, AT(status), STATUS_MAX},
	{"leaks", 0, NULL, "a program that leaves objects at its end has failed", NULL,
	 cli_take_flag, AT(leaks)},
	{"timeout", 0, "SECONDS", "of real time, for each run [30]", "How", cli_take_number,
	 AT(timeout_s), SECONDS_MAX},
	{"virtual", 0, "SECONDS", "of virtual time, for each run [3600]", NULL, cli_take_number,
	 AT(virtual_s), NUMBER_MAX},
	{"jobs", 0, "N", "runs at a time [one for each processor]", NULL, cli_take_number, AT(jobs),
	 JOBS_MAX},
	{"folder", 0, "DIR", "for the files of the run that fails [verbena-explore]", NULL,
	 cli_take_text, AT(folder)},
	{"trace-limit", 0, "L",
	 "keep the end of the trace: the last N packets, or of 100M\n(bytes; also K, G) at least "
	 "the "
	 "last half [10000]",
	 NULL, cli_take_limit},
	{"log-limit", 0, "L", "keep the end of the log: N events, or 100M [10000]", NULL,
	 cli_take_limit},
	{"name", 0, "NAME", "of these files [the program's name]", NULL, cli_take_text, AT(name)},
	{0},
};

/* --- one run of the program --- */

/* Returns true if a call or an allocation fails in the run: a program may then end as it likes. */
static bool may_report(void)
{
	const char *schedule = getenv("VERBENA_SCHEDULE");

	return schedule && (strstr(schedule, "call:") || strstr(schedule, "alloc:"));
}

static int judge(const struct arguments *arguments, int status)
{
	if (WIFSIGNALED(status))
		return vb_explore_wrong("the program was killed by signal %d, %s", WTERMSIG(status),
					strsignal(WTERMSIG(status)));
	if (!WEXITSTATUS(status))
		return VB_ENDED_WELL;
	if (may_report() || (arguments->status && WEXITSTATUS(status) == (int)arguments->status))
		return VB_ENDED_REPORTED;
	return vb_explore_wrong("the program has ended with status %d", WEXITSTATUS(status));
}

/* Runs in a process of the crew, which may be killed. */
static int run_once(void *arg)
{
	const struct arguments *arguments = arg;
	const pid_t child = fork();
	int status;

	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execv(arguments->path, arguments->program);
		_exit(EXIT_CANNOT_RUN);
	}
	if (child < 0)
		return vb_explore_wrong("fork: %s", strerror(errno));
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return vb_explore_wrong("waitpid: %s", strerror(errno));
	return judge(arguments, status);
}

/* --- the environment --- */

static int set_default(const char *variable, const char *value)
{
	const char *given = getenv(variable);

	if (given && *given)
		return CLI_EXIT_OK;
	return setenv(variable, value, 1) ? session_no_memory() : CLI_EXIT_OK;
}

/* Schedules count the packets of one process on the virtual clock. */
static int check_repeats(const struct vb_project *project)
{
	if (project->sim.clock != VB_SIM_CLOCK_REAL)
		return CLI_EXIT_OK;
	fprintf(stderr,
		"verbena explore: " VB_ENVIRONMENT_CLOCK
		" is real, and a run repeats on the virtual clock only, where one process has all "
		"devices; unset the variable. For a program of several processes, lose packets by "
		"rules: verbena run --fault drop,skip=N,count=1\n");
	return CLI_EXIT_USAGE;
}

/* Repeated runs need the virtual clock, a wire of the process, and one seed. */
static int prepare(void)
{
	struct vb_project_error error;
	struct vb_project *project;
	char folder[PATH_MAX];
	int status = set_default(VB_ENVIRONMENT_CLOCK, "virtual");

	if (!status)
		status = set_default(VB_ENVIRONMENT_WIRE, "memory");
	if (!status)
		status = set_default(VB_ENVIRONMENT_SEED, "1");
	if (status)
		return status;
	project = vb_environment_load(&error);
	if (!project) {
		fprintf(stderr, "verbena explore: %s\n", error.text);
		return CLI_EXIT_USAGE;
	}
	status = check_repeats(project);
	vb_project_free(project);
	if (status)
		return status;
	return session_find_folder("explore", folder) ? session_begin(folder) : CLI_EXIT_FAILED;
}

/* --- the command that repeats a run --- */

static void put_word(FILE *out, const char *word)
{
	bool plain = *word;

	for (const char *c = word; *c; c++)
		plain = plain && (isalnum((unsigned char)*c) || strchr("_-./:+,@=", *c));
	fprintf(out, plain ? " %s" : " '", word);
	for (const char *c = word; *c && !plain; c++)
		fprintf(out, *c == '\'' ? "'\\''" : "%c", *c);
	if (!plain)
		fputc('\'', out);
}

static void put_number(FILE *out, const char *option, uint64_t number)
{
	if (number)
		fprintf(out, " --%s %llu", option, (unsigned long long)number);
}

static void put_kinds(FILE *out, uint64_t kinds)
{
	const char *between = " --kinds ";

	for (unsigned int kind = 0; kind < VB_DECISION_KINDS; kind++) {
		if (!(kinds & 1u << kind))
			continue;
		fprintf(out, "%s%s", between, vb_decision_name(kind));
		between = ",";
	}
}

static void write_again(struct arguments *arguments, const char *self)
{
	FILE *out = fmemopen(arguments->again, sizeof(arguments->again), "w");

	if (!out)
		return;
	fprintf(out, "%s explore --schedule %%s", self);
	put_kinds(out, arguments->kinds);
	put_number(out, "status", arguments->status);
	if (arguments->leaks)
		fputs(" --leaks", out);
	fputs(" --", out);
	for (char **word = arguments->program; *word; word++)
		put_word(out, *word);
	fclose(out);
}

/* --- the command --- */

static int find_program(struct arguments *arguments)
{
	const char *name = arguments->program[0];
	const char *slash = strrchr(name, '/');

	arguments->path = program_find(name);
	if (!arguments->path) {
		const int err = errno;

		fprintf(stderr, "verbena explore: %s: %s\n", name, strerror(err));
		return err == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN;
	}
	if (!arguments->name)
		arguments->name = slash ? slash + 1 : name;
	return CLI_EXIT_OK;
}

static void name_file(const struct vb_explore *explore, const char *ending, char path[PATH_MAX])
{
	snprintf(path, PATH_MAX, "%s/%s.%s", explore->folder, explore->name, ending);
}

static void show_failure(const struct arguments *arguments, const struct vb_explore *explore)
{
	char log[PATH_MAX], capture[PATH_MAX], picture[PATH_MAX], page[PATH_MAX];

	name_file(explore, "jsonl", log);
	name_file(explore, "pcap", capture);
	name_file(explore, "svg", picture);
	name_file(explore, "html", page);
	if (!access(log, R_OK) &&
	    !trace_picture(log, access(capture, R_OK) ? NULL : capture, picture, page, stderr))
		fprintf(stderr, "  picture: %s, and for a browser %s\n", picture, page);
}

static int explore_program(struct arguments *arguments)
{
	const struct vb_explore explore = {
		.name = arguments->name,
		.test = run_once,
		.arg = arguments,
		.kinds = (unsigned int)arguments->kinds,
		.singles_max = arguments->singles,
		.pairs_max = arguments->pairs,
		.walks = arguments->walks,
		.seed = arguments->seed,
		.reports_allowed = arguments->status,
		.leaks_allowed = !arguments->leaks,
		.goes_on = arguments->all,
		.runs_program = true,
		.jobs = (unsigned int)arguments->jobs,
		.timeout_s = arguments->timeout_s,
		.virtual_s_max = arguments->virtual_s,
		.folder = arguments->folder ? arguments->folder : "verbena-explore",
		.schedule = arguments->schedule,
		.command = arguments->again,
	};
	struct vb_explore_result result;
	int failed;

	unsetenv("VERBENA_SCHEDULE");
	failed = vb_explore(&explore, &result);
	if (result.failed)
		show_failure(arguments, &explore);
	/* Runs without a packet say nothing of the program. */
	return failed || (!arguments->schedule && result.runs <= RUNS_PLAIN) ? CLI_EXIT_FAILED
									     : CLI_EXIT_OK;
}

static int run(int argc, char **argv)
{
	struct arguments arguments = {.seed = 1};
	int status = cli_read_options(&cli_explore, argc, argv, &arguments);

	if (status)
		return status;
	if (optind == argc)
		return cli_bad_usage(&cli_explore, "no program is given");
	arguments.program = argv + optind;
	status = find_program(&arguments);
	if (!status)
		status = prepare();
	if (!status) {
		write_again(&arguments, program_invocation_name);
		status = explore_program(&arguments);
	}
	free(arguments.path);
	return status;
}

const struct cli_command cli_explore = {
	.name = "explore",
	.summary = "repeat a program with every packet lost or late, every call failing",
	.synopsis = "[OPTION...] [--] PROGRAM [ARGUMENT...]",
	.about = "Runs a program that uses libibverbs or libverbena on simulated devices again and "
		 "again,\n"
		 "each time with another schedule of what goes wrong, such as drop:3, the loss of "
		 "its third\n"
		 "packet. Reports the smallest schedule with which the program fails, and the "
		 "command that\n"
		 "repeats this run.\n",
	.exits = "   0  the program has ended well with each schedule\n"
		 "   1  it has not, or it fails without a schedule, or nothing is explored, or an "
		 "error "
		 "occurred\n"
		 "   2  wrong usage, or a wrong variable or project file\n"
		 " 126  the program cannot be run\n"
		 " 127  there is no such program\n",
	.options = options,
	.run = run,
	.runs_program = true,
};
