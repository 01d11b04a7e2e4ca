/* SPDX-License-Identifier: MIT */
/* The section ":verbena:" of project.yml: its keys, and how their values become a configuration. */
#ifndef SRC_PROJECT_SECTION_H
#define SRC_PROJECT_SECTION_H

#include "src/project/config.h"
#include "src/project/project.h"

/* Reads the section of a document into a project, which holds zeros. A document without the section leaves it as it
 * is. Returns false with a message in config->error. */
bool section_read(struct vb_project *project, const struct config *config);

#endif
