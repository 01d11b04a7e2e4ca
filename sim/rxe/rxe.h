/* SPDX-License-Identifier: MIT */
/*
 * SoftRoCE's bugs: what the kernel's driver rxe does and the specification does not say. A device
 * has these hooks if its profile has a quirk of the group "bug" (sim/profile/quirks.def); each hook
 * asks for its quirks.
 */
#ifndef SIM_RXE_RXE_H
#define SIM_RXE_RXE_H

#include "sim/qp/hooks.h"
#include "sim/qp/verdict.h"

/* Gives a device and its QPs the hooks, or takes them away, as the device's quirks are now. ENOMEM. */
int sim_rxe_give_hooks(struct sim_device *device);

/* What follows from a verdict on a device with quirks. */
struct sim_consequence sim_rxe_consequence(enum sim_verdict verdict,
					   const struct sim_quirks *quirks);

#endif
