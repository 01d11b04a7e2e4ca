/* SPDX-License-Identifier: MIT */
/* XRC domains: an XRC receive QP may use the XRC SRQs of its own domain. */
#ifndef SIM_OBJECT_XRCD_H
#define SIM_OBJECT_XRCD_H

#include <stdbool.h>
#include <stdint.h>

struct sim_device;

struct sim_xrcd {
	struct sim_device *device;
	uint32_t users; /* counts SRQs and QPs */
	bool shared;	/* other engines have the domain, too: key names it in all of them */
	uint64_t key[2];
};

/* Makes a domain. ENOMEM. */
int sim_xrcd_create(struct sim_device *device, struct sim_xrcd **xrcd);

/* Destroys a domain. EBUSY while an SRQ or a QP uses it. */
int sim_xrcd_destroy(struct sim_xrcd *xrcd);

#endif
