/* SPDX-License-Identifier: MIT */
#include "src/cli/cli.h"
#include "src/differ/generate/generate.h"
#include "src/differ/walk/walk.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <verbena/error.h>
#include <verbena/sim.h>
#include <verbena/verbs.h>

#define STEPS_DEFAULT	 10000
#define TRIES_DEFAULT	 2000
#define LIMIT_MS_DEFAULT 3000
#define QUIET_US_DEFAULT 10000
#define NUMBER_MS_MAX	 1000000

static const char usage[] =
	"Usage: verbena differ [OPTION...]\n\n"
	"Runs random verbs programs on two devices and compares what they answer, up to\n"
	"what the specification leaves open. A difference ends the walk: it is reduced and\n"
	"printed as a C test.\n\n"
	"Where:\n"
	"      --left B[:D]       backend and device; the first device without D [sim]\n"
	"      --right B[:D]      the other side, for which the left one's answers are the\n"
	"                         expected ones [sim]\n"
	"      --profile P        of simulated devices [spec]\n"
	"      --plant QUIRK      turns a quirk of the left side's profile round; may be\n"
	"                         repeated\n"
	"What:\n"
	"      --seed N           of the first program; the next has N + 1, and so on [1]\n"
	"      --steps M          the walk ends with the program that reaches them [10000]\n"
	"      --avoid NAME       leaves something out; may be repeated: invalidate, dereg,\n"
	"                         rereg (see verbena-differ(1))\n"
	"How:\n"
	"      --limit MS         on a real clock, to wait for what the left side saw [3000]\n"
	"      --quiet US         on a real clock, to wait for what it did not see [10000]\n"
	"      --tries N          programs to run at most to reduce a difference [2000]\n"
	"      --keep-going       prints differences in one line and goes on\n"
	"      --print            prints the programs as C tests and runs the left side only\n"
	"  -v, --verbose          a line for each program\n"
	"  -h, --help             print this\n";

enum option_value {
	OPTION_LEFT = 1000,
	OPTION_RIGHT,
	OPTION_PROFILE,
	OPTION_PLANT,
	OPTION_SEED,
	OPTION_STEPS,
	OPTION_AVOID,
	OPTION_LIMIT,
	OPTION_QUIET,
	OPTION_TRIES,
	OPTION_KEEP_GOING,
	OPTION_PRINT,
};

static const struct option options[] = {
	{"left", required_argument, NULL, OPTION_LEFT},
	{"right", required_argument, NULL, OPTION_RIGHT},
	{"profile", required_argument, NULL, OPTION_PROFILE},
	{"plant", required_argument, NULL, OPTION_PLANT},
	{"seed", required_argument, NULL, OPTION_SEED},
	{"steps", required_argument, NULL, OPTION_STEPS},
	{"avoid", required_argument, NULL, OPTION_AVOID},
	{"limit", required_argument, NULL, OPTION_LIMIT},
	{"quiet", required_argument, NULL, OPTION_QUIET},
	{"tries", required_argument, NULL, OPTION_TRIES},
	{"keep-going", no_argument, NULL, OPTION_KEEP_GOING},
	{"print", no_argument, NULL, OPTION_PRINT},
	{"verbose", no_argument, NULL, 'v'},
	{0},
};

static int read_number(const char *option, uint64_t max, uint64_t *number)
{
	char *end;

	errno = 0;
	*number = strtoull(optarg, &end, 0);
	if (isdigit((unsigned char)*optarg) && !*end && !errno && *number <= max)
		return CLI_EXIT_OK;
	return cli_bad_usage(&cli_differ, "--%s '%s' is no number from 0 to %llu", option, optarg,
			     (unsigned long long)max);
}

static int read_site(struct vd_site *site)
{
	if (vd_site_read(site, optarg))
		return CLI_EXIT_OK;
	return cli_bad_usage(&cli_differ, "%s", vb_last_error());
}

static int read_avoid(struct vd_walk *walk)
{
	for (unsigned int i = 0; i < VD_AVOIDS; i++)
		if (!strcmp(vd_avoids[i], optarg)) {
			walk->avoid |= 1u << i;
			return CLI_EXIT_OK;
		}
	return cli_bad_usage(&cli_differ, "there is nothing named '%s' to avoid", optarg);
}

static int read_plant(struct vd_walk *walk)
{
	const char *name;

	for (unsigned int i = 0; (name = vb_sim_quirk_name(i, NULL)); i++)
		if (!strcmp(name, optarg))
			break;
	if (!name)
		return cli_bad_usage(&cli_differ, "there is no quirk '%s'", optarg);
	if (walk->left.quirk_count == VD_QUIRKS_MAX)
		return cli_bad_usage(&cli_differ, "more than %d quirks", VD_QUIRKS_MAX);
	walk->left.quirks[walk->left.quirk_count++] = name;
	return CLI_EXIT_OK;
}

static int read_count(struct vd_walk *walk, int option)
{
	uint64_t number;
	int status;

	switch (option) {
	case OPTION_SEED:
		return read_number("seed", UINT64_MAX, &walk->seed);
	case OPTION_STEPS:
		status = read_number("steps", UINT32_MAX, &number);
		walk->steps = number;
		return status;
	case OPTION_TRIES:
		status = read_number("tries", UINT32_MAX, &number);
		walk->tries = (unsigned int)number;
		return status;
	case OPTION_LIMIT:
		status = read_number("limit", NUMBER_MS_MAX, &number);
		walk->left.limit_ns = walk->right.limit_ns = number * 1000000;
		return status;
	default:
		status = read_number("quiet", NUMBER_MS_MAX, &number);
		walk->left.quiet_ns = walk->right.quiet_ns = number * 1000;
		return status;
	}
}

static int read_option(struct vd_walk *walk, int option, char **argv)
{
	switch (option) {
	case OPTION_LEFT:
		return read_site(&walk->left);
	case OPTION_RIGHT:
		return read_site(&walk->right);
	case OPTION_PROFILE:
		walk->left.profile = walk->right.profile = optarg;
		return CLI_EXIT_OK;
	case OPTION_PLANT:
		return read_plant(walk);
	case OPTION_AVOID:
		return read_avoid(walk);
	case OPTION_SEED:
	case OPTION_STEPS:
	case OPTION_TRIES:
	case OPTION_LIMIT:
	case OPTION_QUIET:
		return read_count(walk, option);
	case OPTION_KEEP_GOING:
		walk->keep_going = true;
		return CLI_EXIT_OK;
	case OPTION_PRINT:
		walk->print = true;
		return CLI_EXIT_OK;
	case 'v':
		walk->verbose = true;
		return CLI_EXIT_OK;
	default:
		return cli_bad_option(&cli_differ, option, argv);
	}
}

/* A device that is not simulated has the MTU that it has; a simulated one takes it over. */
static int look_at(struct vd_site *site, struct vd_site *other)
{
	struct ibv_context *context = vd_site_open(site);
	struct ibv_port_attr attr;

	if (!context) {
		int error = errno;

		vd_site_tell(site, error);
		return error == EINVAL ? CLI_EXIT_USAGE : CLI_EXIT_NO_DEVICE;
	}
	if (!vd_site_virtual(site) && !vb_query_port(context, 1, &attr, sizeof(attr)))
		other->mtu = attr.active_mtu;
	vd_site_close(site, context);
	return CLI_EXIT_OK;
}

static int walk_and_tell(struct vd_walk *walk)
{
	bool is_spec = !walk->left.profile || !strcmp(walk->left.profile, "spec");
	int status = look_at(&walk->left, &walk->right);

	if (!status)
		status = walk->print ? CLI_EXIT_OK : look_at(&walk->right, &walk->left);
	if (status)
		return status;
	if (!walk->print)
		printf("seed %llu\nleft %s:%s, right %s:%s\n", (unsigned long long)walk->seed,
		       walk->left.backend, walk->left.device, walk->right.backend,
		       walk->right.device);
	if (vd_walk(walk))
		return CLI_EXIT_FAILED;
	if (walk->print)
		return CLI_EXIT_OK;
	vd_print_coverage(&walk->coverage, stdout);
	if (!walk->differences && vd_check_minima(&walk->coverage, is_spec, stdout))
		return CLI_EXIT_FAILED;
	if (walk->unrepeated)
		printf("%lu differed and did not when they ran again: a matter of timing\n",
		       walk->unrepeated);
	printf("%lu differences, %lu programs left early where devices may part\n",
	       walk->differences, walk->open);
	return walk->differences ? CLI_EXIT_FAILED : CLI_EXIT_OK;
}

static int run_differ(int argc, char **argv)
{
	struct vd_walk *walk = calloc(1, sizeof(*walk));
	int option, status = CLI_EXIT_OK;

	if (!walk)
		return CLI_EXIT_FAILED;
	*walk = (struct vd_walk){
		.seed = 1, .steps = STEPS_DEFAULT, .tries = TRIES_DEFAULT, .out = stdout};
	walk->left.limit_ns = walk->right.limit_ns = LIMIT_MS_DEFAULT * UINT64_C(1000000);
	walk->left.quiet_ns = walk->right.quiet_ns = QUIET_US_DEFAULT * UINT64_C(1000);
	/* Below the largest path MTU, so that there is one that the port has not. */
	walk->left.mtu = walk->right.mtu = IBV_MTU_1024;
	vd_site_read(&walk->left, "sim");
	vd_site_read(&walk->right, "sim");
	while (!status && (option = getopt_long(argc, argv, ":v", options, NULL)) != -1)
		status = read_option(walk, option, argv);
	if (!status && optind < argc)
		status = cli_bad_usage(&cli_differ, "'%s' is one argument too many", argv[optind]);
	if (!status)
		status = walk_and_tell(walk);
	free(walk);
	return status;
}

const struct cli_command cli_differ = {
	.name = "differ",
	.summary = "compare two devices by random programs",
	.usage = usage,
	.run = run_differ,
};
