/* SPDX-License-Identifier: MIT */
/*
 * The simulated world of a program that was not written for Verbena. The first verb that asks for
 * devices makes the world: a process that only loads the library writes no trace and starts no
 * thread.
 */
#include "src/dropin/dropin.h"

#include "src/project/environment.h"

#include <stdatomic.h>
#include <stdio.h>

static struct vb_project *project;

void dropin_tell(const char *sentence)
{
	static atomic_flag told = ATOMIC_FLAG_INIT;

	if (!atomic_flag_test_and_set(&told))
		fprintf(stderr, "verbena: %s\n", sentence);
}

/* Reads the world's configuration. The simulator holds a lock around the call. */
static const struct vb_sim_config *from_environment(void)
{
	struct vb_project_error error;

	vb_project_free(project);
	project = vb_environment_load(&error);
	if (project)
		return &project->sim;
	dropin_tell(error.text);
	return NULL;
}

__attribute__((constructor)) static void set_world(void)
{
	vb_sim_set_default(from_environment);
}

__attribute__((destructor)) static void forget_world(void)
{
	vb_sim_set_default(NULL);
	vb_project_free(project);
}
