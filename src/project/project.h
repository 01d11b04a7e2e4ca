/* SPDX-License-Identifier: MIT */
/*
 * Verbena's configuration: the simulated devices, links, faults, events and failing calls, clock,
 * seed, trace, log, suites. It is read from the section ":verbena:" of project.yml, which project.yml(5) describes. environment.h
 * changes it by variables.
 *
 * There is no global state: threads may load projects at the same time.
 */
#ifndef SRC_PROJECT_PROJECT_H
#define SRC_PROJECT_PROJECT_H

#include <limits.h>
#include <stddef.h>
#include <verbena/fault.h>
#include <verbena/sim.h>

#define VB_PROJECT_SUITES_MAX 64
#define VB_PROJECT_FILE	      "project.yml"
#define VB_PROJECT_SIZE_MAX   (1 << 20) /* bytes of a file */
#define VB_PROJECT_DEVICES    2		/* where neither project nor variable names devices */

struct vb_project_suite {
	char name[VB_SIM_NAME_MAX];
	unsigned int line;
};

/* The wire of a device. */
struct vb_project_wire {
	bool given; /* false: not named, which means memory */
	enum vb_sim_wire wire;
	char address[VB_SIM_ADDRESS_MAX];
};

/* A rule of failing calls. Copies have a pointer to the device of the original. */
struct vb_failure {
	struct vb_fail_rule rule;
	char device[VB_SIM_NAME_MAX]; /* what rule.device points to */
};

struct vb_failures {
	unsigned int count;
	struct vb_failure failures[VB_FAIL_RULES_MAX];
};

struct vb_project {
	char file[PATH_MAX]; /* empty: no file was read, and all values are the defaults */
	struct vb_sim_config sim;
	bool wire_given[VB_SIM_DEVICES_MAX]; /* of each device: the file names its wire */
	/* What sim.trace points to. With the room for a name that is too long, which open(2) then
	 * refuses. */
	char trace[PATH_MAX + 1];
	/* What sim.faults and sim.events point to. */
	struct vb_fault_rule faults[VB_SIM_FAULTS_MAX];
	struct vb_sim_event events[VB_SIM_EVENTS_MAX];
	struct vb_failures failures; /* of the file alone: src/failing/ reads VERBENA_FAIL */
	char log[PATH_MAX + 1];	     /* the file of vb_log_open(), with "%p"; empty: none */
	/* The suites to run, in this order; with suite_count 0 all suites. */
	unsigned int suite_count;
	struct vb_project_suite suites[VB_PROJECT_SUITES_MAX];
};

/* One line without newline: "FILE:LINE: KEY: what is wrong (what is allowed)". */
struct vb_project_error {
	char text[1024];
};

/*
 * Reads a project file: path if it is not NULL, else the file that VERBENA_PROJECT names, else
 * project.yml in the working directory. If that file does not exist, all values are the defaults.
 *
 * The caller frees the project with vb_project_free(). NULL with errno and error->text: EINVAL for
 * a wrong file, ENOMEM, or the errno of open(2) or read(2).
 */
struct vb_project *vb_project_load(const char *path, struct vb_project_error *error);

/* As vb_project_load(), from length_bytes of text; messages name it by file, which is not NULL.
 * EINVAL or ENOMEM. */
struct vb_project *vb_project_parse(const char *file, const char *text, size_t length_bytes,
				    struct vb_project_error *error);

/* The words for a clock, whose index is the enum vb_sim_clock, and for a link layer. */
const char *vb_project_clock_name(unsigned int index);
const char *vb_project_link_layer_name(unsigned int index);

/* The word for a wire, whose index is the enum vb_sim_wire. */
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

/* Returns the first device whose wire is not memory; NULL if there is none. */
const struct vb_sim_device_config *vb_project_wired(const struct vb_project *project);

/* The IBV_LINK_LAYER_* of the word at an index. */
int vb_project_link_layer(unsigned int index);

/* If the configuration names no devices: adds count default ones, named sim0, sim1 and so on. */
void vb_project_add_devices(struct vb_sim_config *sim, unsigned int count);

/* Gives all devices the profile. */
void vb_project_set_profile(struct vb_sim_config *sim, const char *profile);

/* Adds the project's rules of failing calls to those of the process. Returns 0, or an errno value with a
 * sentence of vb_last_error(). */
int vb_project_fail(const struct vb_project *project);

/* project may be NULL. */
void vb_project_free(struct vb_project *project);

#endif
