/* SPDX-License-Identifier: MIT */
/*
 * The simulated world of a program that was not written for Verbena. The first verb that asks for
 * devices makes the world: a process that only loads the library writes no trace and starts no
 * thread.
 */
#include "src/dropin/dropin.h"

#include "src/project/environment.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <verbena/error.h>
#include <verbena/log.h>

static struct vb_project *project;

void dropin_tell(const char *sentence)
{
	static atomic_flag told = ATOMIC_FLAG_INIT;

	if (!atomic_flag_test_and_set(&told))
		fprintf(stderr, "verbena: %s\n", sentence);
}

/* What a project asks of the whole process. The library itself has done what the variables ask. */
static void begin(void)
{
	const char *given = getenv(VB_ENVIRONMENT_LOG);
	struct vb_project_error error;
	/* from_environment() complains of a wrong project. */
	struct vb_project *named = vb_environment_load(&error);

	if (named)
		vb_log_limit(named->log_limit.bytes_max, named->log_limit.count_max);
	if (named && named->log[0] && !(given && *given) && vb_log_open(named->log))
		dropin_tell(vb_last_error());
	if (named && vb_project_fail(named))
		dropin_tell(vb_last_error());
	vb_project_free(named);
}

void dropin_begin(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, begin);
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
