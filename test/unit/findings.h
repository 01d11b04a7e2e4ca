/* SPDX-License-Identifier: MIT */
/* The findings of vb_sim_report(), as lines "DEVICE: TEXT". */
#ifndef TEST_UNIT_FINDINGS_H
#define TEST_UNIT_FINDINGS_H

#include "unity.h"

#include <stdio.h>
#include <string.h>
#include <verbena/sim.h>

static char found[8192];

static inline void note_finding(void *arg, const struct vb_sim_finding *finding)
{
	const size_t used = strlen(found);
	char text[256];

	(void)arg;
	snprintf(found + used, sizeof(found) - used, "%s: %s\n", finding->device,
		 vb_sim_finding_text(finding, text, sizeof(text)));
}

/* Collects the findings of a world. */
static inline void collect_findings(struct vb_sim *world)
{
	found[0] = '\0';
	vb_sim_report(world, note_finding, NULL);
}

static inline void expect_found(const char *line)
{
	TEST_ASSERT_NOT_NULL_MESSAGE(strstr(found, line), found);
}

#endif
