/* SPDX-License-Identifier: MIT */
/*
 * What `verbena run` and the drop-in libibverbs agree on: the simulated world of a program that knows
 * nothing of Verbena, told by environment variables.
 *
 *	VERBENA_PROJECT     a project file [none: the working directory is not searched]
 *	VERBENA_DEVICES     that many devices, sim0 and so on, where the project lists none [2]
 *	VERBENA_LINK_LAYER  of all devices: ethernet or infiniband
 *	VERBENA_PROFILE     of all devices
 *	VERBENA_QUIRKS      of all devices, beside the profile's: names with commas between
 *	                    [reset_removes_completions where there is no project and no profile]
 *	VERBENA_TRACE       the pcap file; %p in it is the process number [none]
 *	VERBENA_SEED        [the project's, else the system's randomness]
 *	VERBENA_CLOCK       real or virtual [real; the project's clock is that of `verbena test`]
 *
 * An empty variable is as good as none, but for VERBENA_QUIRKS, where it means none at all.
 */
#ifndef SRC_PROJECT_ENVIRONMENT_H
#define SRC_PROJECT_ENVIRONMENT_H

#include "src/project/project.h"

#define VB_ENVIRONMENT_PROJECT	  "VERBENA_PROJECT"
#define VB_ENVIRONMENT_DEVICES	  "VERBENA_DEVICES"
#define VB_ENVIRONMENT_LINK_LAYER "VERBENA_LINK_LAYER"
#define VB_ENVIRONMENT_PROFILE	  "VERBENA_PROFILE"
#define VB_ENVIRONMENT_QUIRKS	  "VERBENA_QUIRKS"
#define VB_ENVIRONMENT_TRACE	  "VERBENA_TRACE"
#define VB_ENVIRONMENT_SEED	  "VERBENA_SEED"
#define VB_ENVIRONMENT_CLOCK	  "VERBENA_CLOCK"

/*
 * The project that the variables make. The caller ends it with vb_project_free(). NULL with errno and
 * error->text, which names the variable, as vb_project_load().
 */
struct vb_project *vb_environment_load(struct vb_project_error *error);

#endif
