/* SPDX-License-Identifier: MIT */
/*
 * Reads the events that happen to devices and ports at given times. Each is a text, as of `verbena run --event`,
 * or a mapping of project.yml. The devices that it names must be in project->sim before.
 */
#ifndef SRC_PROJECT_INCIDENT_H
#define SRC_PROJECT_INCIDENT_H

#include "src/project/config.h"
#include "src/project/project.h"

/* Adds an entry of a list in project.yml; into is the struct vb_project. */
config_entry_fn incident_take;

/* Adds the events of a text, which are separated by ';'. Returns false with a message in error->text. */
bool incident_add(struct vb_project *project, const char *text, struct vb_project_error *error);

#endif
