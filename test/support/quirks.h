/* SPDX-License-Identifier: MIT */
/*
 * Simulated devices with chosen quirks.
 */
#ifndef TEST_SUPPORT_QUIRKS_H
#define TEST_SUPPORT_QUIRKS_H

#include "test/support/support.h"

#include <verbena/sim.h>

/*
 * Gives one device, or both devices of the test, exactly these quirks: "" is none, second may be
 * NULL.
 */
void ts_quirks_of(struct vt *t, struct ibv_context *context, const char *first, const char *second);
void ts_quirks(struct vt *t, const char *first, const char *second);

/* An end on a device of another configuration, in a world of its own, until the test ends. */
struct ts_end *ts_other_device(struct vt *t, const struct vb_sim_device_config *device,
			       const struct ts_options *options);

/*
 * The test's nodes become the first two devices of a world of this configuration, until the test
 * ends. Needs VT_NEEDS_VIRTUAL_CLOCK, or a configuration with the clock of the run.
 */
void ts_enter_world(struct vt *t, const struct vb_sim_config *config);

/* ts_enter_world() with two devices of a profile. */
void ts_profile(struct vt *t, const char *profile);

#endif
