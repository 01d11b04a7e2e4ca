/* SPDX-License-Identifier: MIT */
/*
 * Rules of failing calls (vb_fail_add() of <verbena/fault.h>) as texts, as of `verbena run --fail`, and as
 * mappings of project.yml.
 */
#ifndef SRC_PROJECT_FAILURE_H
#define SRC_PROJECT_FAILURE_H

#include "src/project/config.h"
#include "src/project/project.h"

/* Adds an entry of a list; into is the struct vb_failures. */
config_entry_fn failure_take;

/* Adds the entries of a text with ';' between them. Returns false with a message. */
bool failure_read(struct vb_failures *failures, const char *text, struct vb_project_error *error);

/* As vb_project_fail(). */
int failure_apply(const struct vb_failures *failures);

#endif
