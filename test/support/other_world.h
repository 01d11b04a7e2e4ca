/* SPDX-License-Identifier: MIT */
/*
 * A test in a simulated world of its own configuration.
 */
#ifndef TEST_SUPPORT_OTHER_WORLD_H
#define TEST_SUPPORT_OTHER_WORLD_H

#include "test/support/support.h"

#include <verbena/sim.h>

/*
 * Until the test ends, A and B are the first two devices of a new world, at the given port. Call this
 * before the test makes any object. Needs VT_NEEDS_VIRTUAL_CLOCK, or a configuration with the clock of
 * the run.
 */
void ts_other_world(struct vt *t, const struct vb_sim_config *config, uint8_t port);

#endif
