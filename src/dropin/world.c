/* SPDX-License-Identifier: MIT */
/*
 * The world of a program that knows nothing of Verbena. It is made when the first verb asks for
 * devices, so that processes which only load the library write no trace and start no thread.
 */
#include "src/environment.h"

#include <errno.h>
#include <stdio.h>

static struct vb_project *project;

/* The simulator calls it under a lock of its own. */
static const struct vb_sim_config *from_environment(void)
{
	struct vb_project_error error;

	vb_project_free(project);
	project = vb_environment_load(&error);
	if (project)
		return &project->sim;
	/* An unmodified program would only say that there are no devices. */
	fprintf(stderr, "verbena: %s\n", error.text);
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
