/* SPDX-License-Identifier: MIT */
/*
 * Address handles (AH).
 */
#ifndef SIM_OBJECT_AH_H
#define SIM_OBJECT_AH_H

#include "sim/object/path.h"

struct sim_ah {
	struct sim_device *device;
	uint32_t pd;
	uint32_t holders; /* counts the program and each posted send that names the AH */
	struct sim_path path;
	struct ibv_ah_attr attr;
};

/* ibv_create_ah(3): makes an AH with one holder. ENOMEM, and the errors of sim_path_resolve(). */
int sim_ah_create(struct sim_device *device, uint32_t pd, const struct ibv_ah_attr *attr,
		  struct sim_ah **ah);

/* Takes one holder from an AH; without holders it is freed. */
void sim_ah_release(struct sim_ah *ah);

#endif
