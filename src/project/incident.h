/* SPDX-License-Identifier: MIT */
/*
 * What goes wrong in a world from outside: its fault rules, and the events of its timeline. A rule or
 * an event is a text, as of `verbena run --fault` and `--event`, or a mapping of project.yml.
 * Names of devices refer to project->sim, which has them before.
 */
#ifndef SRC_PROJECT_INCIDENT_H
#define SRC_PROJECT_INCIDENT_H

#include "src/project/config.h"
#include "src/project/project.h"

/* Adds an entry of a list; into is the struct vb_project. */
config_entry_fn incident_take_fault, incident_take_event;

/* Adds the entries of a text with ';' between them. Returns false with a message. */
bool incident_add_faults(struct vb_project *project, const char *text,
			 struct vb_project_error *error);
bool incident_add_events(struct vb_project *project, const char *text,
			 struct vb_project_error *error);

#endif
