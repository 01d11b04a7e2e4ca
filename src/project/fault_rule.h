/* SPDX-License-Identifier: MIT */
/*
 * Reads fault rules. Each is a text, as of `verbena run --fault`, or a mapping of project.yml. The devices that it
 * names must be in project->sim before.
 */
#ifndef SRC_PROJECT_FAULT_RULE_H
#define SRC_PROJECT_FAULT_RULE_H

#include "src/project/config.h"
#include "src/project/project.h"

/* Adds an entry of a list in project.yml; into is the struct vb_project. */
config_entry_fn fault_rule_take;

/* Adds the rules of a text, which are separated by ';'. Returns false with a message in error->text. */
bool fault_rule_add(struct vb_project *project, const char *text, struct vb_project_error *error);

#endif
