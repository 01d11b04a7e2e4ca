/* SPDX-License-Identifier: MIT */
#include "sim/object/ah.h"

#include "sim/base/refuse.h"
#include "sim/object/device.h"

#include <stdlib.h>

int sim_ah_create(struct sim_device *device, uint32_t pd, const struct ibv_ah_attr *attr,
		  struct sim_ah **out)
{
	struct sim_ah *ah;
	int err;

	if (device->ah_count >= (uint32_t)device->profile->limits.max_ah)
		return sim_refuse_limit(device->engine, "max_ah", device->profile->limits.max_ah);
	ah = calloc(1, sizeof(*ah));
	if (!ah)
		return sim_refuse_memory(device->engine);
	err = sim_path_resolve(device, attr, &ah->path);
	if (err) {
		free(ah);
		return err;
	}
	ah->device = device;
	ah->pd = pd;
	ah->holders = 1;
	ah->attr = *attr;
	device->ah_count++;
	*out = ah;
	return 0;
}

void sim_ah_release(struct sim_ah *ah)
{
	if (--ah->holders)
		return;
	ah->device->ah_count--;
	free(ah);
}
