/* SPDX-License-Identifier: MIT */
#ifndef SRC_DIFFER_MACHINE_RUN_H
#define SRC_DIFFER_MACHINE_RUN_H

#include "src/differ/machine/site.h"
#include "src/differ/model/record.h"

/*
 * Runs the program on fresh objects of the site's device and fills the record. With expected, which
 * may be NULL, it waits for what expected contains, within the site's limit, and stops after the
 * first step that is not the same. Returns 0 or the errno of opening the device; vb_last_error()
 * has the sentence.
 */
int vd_run(struct vd_site *site, const struct vd_program *program, const struct vd_record *expected,
	   struct vd_record *record);

#endif
