/* SPDX-License-Identifier: MIT */
#include "test/explore/program.h"

#include <infiniband/verbs.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <verbena/sim.h>

static bool is_chosen(const char *name, char **names)
{
	if (!*names)
		return true;
	while (*names && strcmp(*names, name) != 0)
		names++;
	return *names;
}

/* Worlds have InfiniBand devices. */
static const struct vb_sim_config *infiniband(void)
{
	static struct vb_sim_config config = {
		.device_count = 2,
		.devices = {{.name = "sim0", .link_layer = IBV_LINK_LAYER_INFINIBAND},
			    {.name = "sim1", .link_layer = IBV_LINK_LAYER_INFINIBAND}},
	};

	return &config;
}

/* Returns false after a wrong option. */
static bool read_options(int argc, char **argv, struct vb_explore *explore)
{
	int option;

	while ((option = getopt(argc, argv, "p:w:j:k:ri")) != -1) {
		const uint64_t number = optarg ? strtoull(optarg, NULL, 0) : 0;

		if (option == '?')
			return false;
		if (option == 'p')
			explore->pairs_max = number;
		if (option == 'w')
			explore->walks = number;
		if (option == 'j')
			explore->jobs = (unsigned int)number;
		if (option == 'k')
			explore->kinds = (unsigned int)number;
		if (option == 'r')
			explore->reports_allowed = true;
		if (option == 'i')
			vb_sim_set_default(infiniband);
	}
	return true;
}

int explore_program(int argc, char **argv, const struct explored *tests)
{
	struct vb_explore explore = {.name = NULL};
	int status = 0;

	if (!read_options(argc, argv, &explore))
		return 2;
	for (; tests->name; tests++) {
		if (!is_chosen(tests->name, argv + optind))
			continue;
		explore.name = tests->name;
		explore.test = tests->test;
		explore.arg = tests->arg;
		if (vb_explore(&explore, NULL))
			status = 1;
	}
	return status;
}
