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

/*
 * Takes the quirks away by which a device answers, completes or places data later than it could, sends more
 * packets, or lets packets overtake each other: for tests that count packets or measure times. Call this before
 * objects are made. Does nothing if the devices are not simulated.
 */
void ts_prompt(struct vt *t);

/* An end on a device of another configuration, in a world of its own, until the test ends. */
struct ts_end *ts_other_device(struct vt *t, const struct vb_sim_device_config *device,
			       const struct ts_options *options);

/* Enters a world of two devices of a profile, until the test ends; see ts_other_world(). */
void ts_profile(struct vt *t, const char *profile);

#endif
