/* SPDX-License-Identifier: MIT */
/* XRC domains: an XRC SRQ and a target QP work together if they share one. */
#ifndef SIM_OBJECT_XRCD_H
#define SIM_OBJECT_XRCD_H

#include <stdint.h>

struct sim_device;

struct sim_xrcd {
	struct sim_device *device;
	uint32_t users; /* SRQs and QPs */
};

/* ENOMEM. */
int sim_xrcd_create(struct sim_device *device, struct sim_xrcd **xrcd);

/* EBUSY while SRQs or QPs are in it. */
int sim_xrcd_destroy(struct sim_xrcd *xrcd);

#endif
