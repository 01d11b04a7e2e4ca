/* SPDX-License-Identifier: MIT */
/*
 * The environment variables by which `verbena run` and the drop-in libibverbs agree on the
 * simulated world of a program that was not written for Verbena. They change the configuration of a
 * project.
 *
 *	VERBENA_PROJECT     a project file [none; the working directory is not searched]
 *	VERBENA_DEVICES     the number of devices, sim0 and so on; not with a project's list [2]
 *	VERBENA_LINK_LAYER  of all devices: ethernet or infiniband
 *	VERBENA_PROFILE     of all devices
 *	VERBENA_QUIRKS      of all devices, beside the profile's: names with commas between
 *	                    [if neither project nor profile is given: reset_removes_completions and
 *	                    sl_is_packet_type]
 *	VERBENA_TRACE       a pcap file; %p in the name is the process number [none]
 *	VERBENA_LOG         the event log; %p in the name is the process number [the project's log]
 *	VERBENA_TRACE_LIMIT how much a trace keeps of its end: "10000" packets, "100M" [the project's, else all]
 *	VERBENA_LOG_LIMIT   how much a log keeps of its end: "10000" events, "100M" [the project's, else all]
 *	VERBENA_SEED        [the project's, else random]
 *	VERBENA_CLOCK       real or virtual [real; the project's clock is for `verbena test`]
 *	VERBENA_WIRE        of all devices: memory, shared, udp or udp=ADDRESS [the project's; else
 *	                    shared on the real clock, memory on the virtual one]
 *	VERBENA_WORLD       the world of the wire shared; "new" makes one [the project's, else the user's
 *	                    world of this configuration]
 *	VERBENA_FAULT       fault rules with ';' between them, behind the project's [none]
 *	VERBENA_FAIL        rules of failing calls with ';' between them, before the project's [none]
 *	VERBENA_EVENTS      events with ';' between them, beside the project's [none]
 *
 * src/failing/ reads VERBENA_FAIL, for all programs; here it is only checked.
 * src/explain/ reads VERBENA_EXPLAIN and VERBENA_REPORT, for all programs: see verbena-run(1).
 *
 * An empty variable counts as not set, except VERBENA_QUIRKS, where it means no quirks.
 */
#ifndef SRC_PROJECT_ENVIRONMENT_H
#define SRC_PROJECT_ENVIRONMENT_H

#include "src/project/project.h"

#define VB_ENVIRONMENT_PROJECT	   "VERBENA_PROJECT"
#define VB_ENVIRONMENT_DEVICES	   "VERBENA_DEVICES"
#define VB_ENVIRONMENT_LINK_LAYER  "VERBENA_LINK_LAYER"
#define VB_ENVIRONMENT_PROFILE	   "VERBENA_PROFILE"
#define VB_ENVIRONMENT_QUIRKS	   "VERBENA_QUIRKS"
#define VB_ENVIRONMENT_TRACE	   "VERBENA_TRACE"
#define VB_ENVIRONMENT_LOG	   "VERBENA_LOG"
#define VB_ENVIRONMENT_TRACE_LIMIT "VERBENA_TRACE_LIMIT"
#define VB_ENVIRONMENT_LOG_LIMIT   "VERBENA_LOG_LIMIT"
#define VB_ENVIRONMENT_SEED	   "VERBENA_SEED"
#define VB_ENVIRONMENT_CLOCK	   "VERBENA_CLOCK"
#define VB_ENVIRONMENT_WIRE	   "VERBENA_WIRE"
#define VB_ENVIRONMENT_WORLD	   "VERBENA_WORLD"
#define VB_ENVIRONMENT_FAULT	   "VERBENA_FAULT"
#define VB_ENVIRONMENT_FAIL	   "VERBENA_FAIL"
#define VB_ENVIRONMENT_EVENTS	   "VERBENA_EVENTS"

/*
 * Returns the configuration that the variables describe. The caller frees it with vb_project_free(). Returns NULL
 * with errno and error->text as vb_project_load(); the text names the variable. No other thread may change the
 * environment meanwhile.
 */
struct vb_project *vb_environment_load(struct vb_project_error *error);

/* Gives a project the devices that the variables describe, with what has a default there. Returns false as
 * vb_project_set_wire(). */
bool vb_environment_set_devices(struct vb_project *project, struct vb_project_error *error);

/* If the project asks for a new world, names one by VERBENA_WORLD, so that all programs that get the environment are
 * in the same one. Returns 0 or ENOMEM. */
int vb_environment_settle_world(const struct vb_project *project);

#endif
