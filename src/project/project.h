/* SPDX-License-Identifier: MIT */
/*
 * Verbena's section of project.yml: the simulated devices and links, clock, seed, trace, suites.
 * What may be written there is described in project.yml(5).
 *
 * Nothing here has state; different threads may load different projects at the same time.
 */
#ifndef SRC_PROJECT_PROJECT_H
#define SRC_PROJECT_PROJECT_H

#include <stddef.h>
#include <verbena/sim.h>

#define VB_PROJECT_SUITES_MAX 64
#define VB_PROJECT_FILE	      "project.yml"
#define VB_PROJECT_SIZE_MAX   (1 << 20) /* bytes of a file */

struct vb_project_suite {
	char name[VB_SIM_NAME_MAX];
	unsigned int line;
};

struct vb_project {
	/* A copy of the file's name; NULL when there is no file and all is default. */
	char *file;
	/* sim.trace points to memory of the project. */
	struct vb_sim_config sim;
	/* The suites to run, in this order; none means all. */
	unsigned int suite_count;
	struct vb_project_suite suites[VB_PROJECT_SUITES_MAX];
};

/* One line without newline: "FILE:LINE: KEY: what is wrong (what is allowed)". */
struct vb_project_error {
	char text[512];
};

/*
 * Reads the project file: path if it is not NULL, else the one that VERBENA_PROJECT names, else
 * project.yml of the working directory if it exists, else nothing, which is the default world.
 *
 * Returns a project that vb_project_free() ends; or NULL with errno EINVAL for a file that says
 * something wrong, ENOMEM, or the errno of open(2) or read(2), each with error->text filled.
 */
struct vb_project *vb_project_load(const char *path, struct vb_project_error *error);

/* As vb_project_load(), from length_bytes of text; file is its name for messages, not NULL. */
struct vb_project *vb_project_parse(const char *file, const char *text, size_t length_bytes,
				    struct vb_project_error *error);

/* NULL is allowed. */
void vb_project_free(struct vb_project *project);

#endif
