/* SPDX-License-Identifier: MIT */
/*
 * Verbena's configuration: the simulated devices, links, faults, events and failing calls, clock, seed, trace, log,
 * suites. It is read from the section ":verbena:" of project.yml, which project.yml(5) describes. environment.h
 * changes it by environment variables.
 *
 * There is no global state: threads may load projects at the same time, and one thread uses a project.
 */
#ifndef SRC_PROJECT_PROJECT_H
#define SRC_PROJECT_PROJECT_H

#include "src/base/limit.h"

#include <limits.h>
#include <stddef.h>
#include <verbena/fault.h>
#include <verbena/sim.h>

#define VB_PROJECT_SUITES_MAX 64
#define VB_PROJECT_FILE	      "project.yml"
#define VB_PROJECT_SIZE_MAX   (1 << 20) /* bytes of a file */
#define VB_PROJECT_DEVICES    2		/* if neither project nor variable says how many */

struct vb_project_suite {
	char name[VB_SIM_NAME_MAX];
	unsigned int line; /* of the file, for messages */
};

/* The wire of a device. */
struct vb_project_wire {
	bool given; /* false if the file names no wire: then the wire is memory */
	enum vb_sim_wire wire;
	char address[VB_SIM_ADDRESS_MAX];
};

/* A rule of failing calls. rule.device points to `device` of the same structure, so a copy must set it anew. */
struct vb_failure {
	struct vb_fail_rule rule;
	char device[VB_SIM_NAME_MAX];
};

struct vb_failures {
	unsigned int count;
	struct vb_failure failures[VB_FAIL_RULES_MAX];
};

struct vb_project {
	char file[PATH_MAX]; /* empty: no file was read, and all values are the defaults */
	struct vb_sim_config sim;
	bool wire_given[VB_SIM_DEVICES_MAX]; /* of each device: true if the file names its wire */
	/* sim.trace points here. One byte longer than a path may be, so that open(2) refuses a longer name
	 * rather than opens a shortened one. */
	char trace[PATH_MAX + 1];
	/* sim.faults and sim.events point here. */
	struct vb_fault_rule faults[VB_SIM_FAULTS_MAX];
	struct vb_sim_event events[VB_SIM_EVENTS_MAX];
	struct vb_failures failures; /* those of the file: src/failing/ reads VERBENA_FAIL */
	char log[PATH_MAX + 1];	     /* for vb_log_open(), may have "%p"; empty: no log */
	struct vb_limit log_limit;   /* for vb_log_limit() */
	/* The suites to run, in this order; with suite_count 0 all suites. */
	unsigned int suite_count;
	struct vb_project_suite suites[VB_PROJECT_SUITES_MAX];
};

/* One line without newline: "FILE:LINE: KEY: what is wrong (what is allowed)". */
struct vb_project_error {
	char text[1024];
};

/*
 * Reads a project file: @path if it is not NULL, else the file that VERBENA_PROJECT names, else
 * project.yml in the working directory. If there is no project.yml, all values are the defaults.
 *
 * The caller frees the project with vb_project_free(). Returns NULL with errno and error->text: EINVAL for
 * a wrong file, ENOMEM, or the errno of open(2) or read(2).
 */
struct vb_project *vb_project_load(const char *path, struct vb_project_error *error);

/* As vb_project_load(), but reads @length_bytes of @text. Messages call it @file, which is not NULL. errno is
 * EINVAL or ENOMEM. */
struct vb_project *vb_project_parse(const char *file, const char *text, size_t length_bytes,
				    struct vb_project_error *error);

/* The words for a clock, by enum vb_sim_clock, and for a link layer, by the index of vb_project_link_layer(). NULL
 * behind the last word. */
const char *vb_project_clock_name(unsigned int index);
const char *vb_project_link_layer_name(unsigned int index);

/* The word for a wire, by enum vb_sim_wire; NULL behind the last word. */
const char *vb_project_wire_name(unsigned int index);

/*
 * Gives all devices the wire that a text names, such as "shared" or "udp=192.0.2.1". Returns false with
 * error->text, which begins with the name of the variable or option that has the text.
 */
bool vb_project_set_wire(struct vb_project *project, const char *name, const char *text,
			 struct vb_project_error *error);

/* Names the world of the wire shared. Returns false as vb_project_set_wire(). */
bool vb_project_set_world(struct vb_project *project, const char *name, const char *text,
			  struct vb_project_error *error);

/* Writes a name that no other world has. */
void vb_project_new_world(char name[VB_SIM_NAME_MAX]);

/* Returns the first device whose wire is not memory; NULL if there is none. */
const struct vb_sim_device_config *vb_project_wired(const struct vb_project *project);

/* Returns the IBV_LINK_LAYER_* of vb_project_link_layer_name(index). */
int vb_project_link_layer(unsigned int index);

/* Adds @count default devices, named sim0, sim1 and so on, if the configuration has no devices. */
void vb_project_add_devices(struct vb_sim_config *sim, unsigned int count);

/* Gives all devices the profile. */
void vb_project_set_profile(struct vb_sim_config *sim, const char *profile);

/* Adds the project's rules of failing calls to those of the process. Returns 0, or an errno value with a
 * sentence of vb_last_error(). */
int vb_project_fail(const struct vb_project *project);

/* project may be NULL. */
void vb_project_free(struct vb_project *project);

#endif
