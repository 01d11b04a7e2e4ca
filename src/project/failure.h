/* SPDX-License-Identifier: MIT */
/*
 * Rules of failing calls (vb_fail_add() of <verbena/fault.h>) as texts, as of `verbena run --fail`, and as
 * mappings of project.yml.
 */
#ifndef SRC_PROJECT_FAILURE_H
#define SRC_PROJECT_FAILURE_H

#include "src/project/config.h"
#include "src/project/project.h"

/* Adds an entry of a list in project.yml; into is the struct vb_failures. */
config_entry_fn failure_take;

/* Adds the rules of a text, which are separated by ';'. Returns false with a message in error->text. */
bool failure_read(struct vb_failures *failures, const char *text, struct vb_project_error *error);

/* Makes the rules take effect: see vb_project_fail(). */
int failure_apply(const struct vb_failures *failures);

#endif
