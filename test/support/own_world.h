/* SPDX-License-Identifier: MIT */
/*
 * A simulated world of a test's own: two devices of the profile `spec` with two ports each and
 * several P_Keys, which the default world does not have. Nothing watches its packets, so they take
 * the short way from QP to QP as in a program without a trace. The default world always has a
 * trace: the runner's.
 */
#ifndef TEST_SUPPORT_OWN_WORLD_H
#define TEST_SUPPORT_OWN_WORLD_H

#include "test/support/support.h"

#define TS_WORLD_PKEYS 4
extern const uint16_t ts_world_pkeys[TS_WORLD_PKEYS];

/*
 * Puts the devices of a new world in the place of t->a and t->b until the test ends; the link layer
 * stays. Call it first in a test that needs VT_NEEDS_VIRTUAL_CLOCK. Skips the test if the device of
 * the default world has quirks: the results would be those of another device.
 */
void ts_world(struct vt *t);

/* As ts_world(), with the link layer of the caller's choice, which t->have tells, too. */
void ts_world_of(struct vt *t, int link_layer);

/* Returns true if the devices are simulated and neither has a quirk. */
bool ts_is_spec(const struct vt *t);
/* Skips the test if the simulated device A or B has a quirk. */
void ts_need_spec(struct vt *t);

/* Port 2 of a device of ts_world(), as a node. */
struct vt_node ts_second_port(struct vt *t, const struct vt_node *node);

/* Ends the trace of the default world, so that its packets take the short way, too. */
void ts_untraced(struct vt *t);

#endif
