/* SPDX-License-Identifier: MIT */
/*
 * What a kind of adapter can do, and how it behaves where adapters differ.
 */
#ifndef SIM_PROFILE_H
#define SIM_PROFILE_H

#include <infiniband/verbs.h>
#include <stdbool.h>

struct sim_profile {
	const char *name;
	const char *about;
	struct ibv_device_attr limits; /* GUIDs are the device's own */
	uint32_t max_inline_bytes;
	uint32_t max_message_bytes;
};

/* NULL for a name that there is none of. */
const struct sim_profile *sim_profile_find(const char *name);

/* The known profiles, from 0 up; NULL at the end. */
const struct sim_profile *sim_profile_at(unsigned int index);

#endif
