/* SPDX-License-Identifier: MIT */
#include "sim/object/xrcd.h"

#include "sim/object/device.h"

#include <errno.h>
#include <stdlib.h>

int sim_xrcd_create(struct sim_device *device, struct sim_xrcd **out)
{
	struct sim_xrcd *xrcd = calloc(1, sizeof(*xrcd));

	if (!xrcd)
		return ENOMEM;
	xrcd->device = device;
	device->xrcd_count++;
	*out = xrcd;
	return 0;
}

int sim_xrcd_destroy(struct sim_xrcd *xrcd)
{
	if (xrcd->users)
		return EBUSY;
	xrcd->device->xrcd_count--;
	free(xrcd);
	return 0;
}
