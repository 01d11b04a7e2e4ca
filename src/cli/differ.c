/* SPDX-License-Identifier: MIT */
#include "src/cli/options.h"
#include "src/differ/walk/walk.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <verbena/error.h>
#include <verbena/sim.h>
#include <verbena/verbs.h>

#define WAIT_MAX 1000000

struct arguments {
	struct vd_walk walk;
	uint64_t limit_ms, quiet_us;
	const char *profile;
};

static int take_site(const struct cli_command *command, const struct cli_option *option,
		     const char *value, void *into)
{
	struct vd_site *site = (struct vd_site *)((char *)into + option->offset);

	return vd_site_read(site, value) ? CLI_EXIT_OK
					 : cli_bad_usage(command, "%s", vb_last_error());
}

static const char *avoided(unsigned int index)
{
	return index < VD_AVOIDS ? vd_avoids[index] : NULL;
}

static int take_avoid(const struct cli_command *command, const struct cli_option *option,
		      const char *value, void *into)
{
	int index = vb_words_find(option->words, value);

	if (index < 0)
		return cli_bad_usage(command, "there is nothing named '%s' to avoid", value);
	((struct arguments *)into)->walk.avoid |= 1u << index;
	return CLI_EXIT_OK;
}

static const char *quirk(unsigned int index)
{
	return vb_sim_quirk_name(index, NULL);
}

static int take_plant(const struct cli_command *command, const struct cli_option *option,
		      const char *value, void *into)
{
	struct vd_site *left = &((struct arguments *)into)->walk.left;

	if (vb_words_find(quirk, value) < 0)
		return cli_bad_usage(command,
				     "there is no quirk '%s': docs/semantics.md lists them", value);
	if (left->quirk_count == VD_QUIRKS_MAX)
		return cli_bad_usage(command, "more than %d quirks", VD_QUIRKS_MAX);
	left->quirks[left->quirk_count++] = value;
	return CLI_EXIT_OK;
}

#define AT(field) offsetof(struct arguments, field)

static const struct cli_option options[] = {
	{"left", 0, "B[:D]", "backend and device; without D the first device [sim]", "Where",
	 take_site, AT(walk.left)},
	{"right", 0, "B[:D]", "the other side, which has to answer as the left one [sim]", NULL,
	 take_site, AT(walk.right)},
	{"profile", 0, "P", "of simulated devices [spec]", NULL, cli_take_word, AT(profile),
	 .words = vb_sim_profile_name},
	{"plant", 0, "QUIRK", "invert a quirk of the left side's profile; may be repeated", NULL,
	 take_plant},
	{"seed", 0, "N", "of the first program; the next has N + 1, and so on; or\n\"random\" [1]",
	 "What", cli_take_seed, AT(walk.seed)},
	{"steps", 0, "M", "end with the program that reaches this number of steps [10000]", NULL,
	 cli_take_number, AT(walk.steps), UINT32_MAX},
	{"avoid", 0, "NAME", "leave something out, see verbena-differ(1); may be repeated", NULL,
	 take_avoid, .words = avoided},
	{"limit", 0, "MS", "on a real clock, how long to wait for what the left\nside saw [3000]",
	 "How", cli_take_number, AT(limit_ms), WAIT_MAX},
	{"quiet", 0, "US",
	 "on a real clock, how long nothing must arrive before\na step has ended "
	 "[10000]",
	 NULL, cli_take_number, AT(quiet_us), WAIT_MAX},
	{"tries", 0, "N", "the most programs to run to reduce a difference [2000]", NULL,
	 cli_take_number, AT(walk.tries), UINT32_MAX},
	{"keep-going", 0, NULL, "print each difference in one line and continue", NULL,
	 cli_take_flag, AT(walk.keep_going)},
	{"print", 0, NULL, "print the programs as C tests; run the left side only", NULL,
	 cli_take_flag, AT(walk.print)},
	{"verbose", 'v', NULL, "print a line for each program", NULL, cli_take_flag,
	 AT(walk.verbose)},
	{0},
};

/* Checks that a side opens. A simulated device gets the MTU of the other side, if that is not
 * simulated. */
static int look_at(struct vd_site *site, struct vd_site *other)
{
	struct ibv_context *context = vd_site_open(site);
	struct ibv_port_attr attr;

	if (!context) {
		int error = errno;

		vd_site_report(site, error);
		return error == EINVAL ? CLI_EXIT_USAGE : CLI_EXIT_NO_DEVICE;
	}
	if (!vd_site_virtual(site) && !vb_query_port(context, 1, &attr, sizeof(attr)))
		other->mtu = attr.active_mtu;
	vd_site_close(site, context);
	return CLI_EXIT_OK;
}

static int walk_and_report(struct vd_walk *walk)
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
		printf("%lu programs differed once and not again: a matter of timing\n",
		       walk->unrepeated);
	printf("%lu differences, %lu programs left early where devices may differ\n",
	       walk->differences, walk->open);
	return walk->differences ? CLI_EXIT_FAILED : CLI_EXIT_OK;
}

static int run_differ(int argc, char **argv)
{
	static struct arguments arguments; /* too large for the stack */
	struct vd_walk *walk = &arguments.walk;
	struct vd_site *const sides[] = {&walk->left, &walk->right};
	int status;

	walk->seed = 1;
	walk->steps = 10000;
	walk->tries = 2000;
	walk->out = stdout;
	arguments.limit_ms = 3000;
	arguments.quiet_us = 10000;
	for (unsigned int i = 0; i < 2; i++) {
		vd_site_read(sides[i], "sim");
		/* Less than the largest path MTU, so that programs can ask for too much. */
		sides[i]->mtu = IBV_MTU_1024;
	}
	status = cli_read_options(&cli_differ, argc, argv, &arguments);
	for (unsigned int i = 0; i < 2; i++) {
		sides[i]->profile = arguments.profile;
		sides[i]->limit_ns = arguments.limit_ms * 1000000;
		sides[i]->quiet_ns = arguments.quiet_us * 1000;
	}
	return status ? status : walk_and_report(walk);
}

const struct cli_command cli_differ = {
	.name = "differ",
	.summary = "compare two devices by random programs",
	.synopsis = "[OPTION...]",
	.about =
		"Runs random verbs programs on two devices and compares their answers, up to what\n"
		"the specification leaves open. The first difference ends the walk: its program "
		"is\n"
		"reduced and printed as a C test.\n",
	.exits = "   0  no difference, or none that appeared again\n"
		 "   1  a difference, or a minimum of the coverage was missed\n"
		 "   2  wrong usage\n"
		 "  77  there is no such device\n",
	.options = options,
	.run = run_differ,
};
