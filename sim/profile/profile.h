/* SPDX-License-Identifier: MIT */
/*
 * What a kind of adapter can do, and how it behaves where adapters differ.
 */
#ifndef SIM_PROFILE_PROFILE_H
#define SIM_PROFILE_PROFILE_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>

/* True where a device differs from the specification. */
struct sim_quirks {
#define QUIRK(name, group, profiles, about, right) bool name;
#include "sim/profile/quirks.def"
#undef QUIRK
};

/* What no device exceeds: a DMA length has 31 bits, and 2^31 itself. */
#define SIM_MESSAGE_BYTES_MAX (UINT32_C(1) << 31)

enum sim_quirk_group {
	SIM_QUIRK_POLICY, /* adapters may differ */
	SIM_QUIRK_BUG,	  /* SoftRoCE alone; imitated by sim/rxe/ */
};

struct sim_quirk_info {
	const char *name;
	const char *about; /* what the device does */
	const char *right; /* who is right, and by which source */
	enum sim_quirk_group group;
	size_t offset; /* in struct sim_quirks */
};

/* A row for each quirk; a row with a NULL name ends the table. */
extern const struct sim_quirk_info sim_quirk_info[];

/* Returns the place of a quirk in `quirks`, NULL if no quirk has the name. */
bool *sim_quirk_find(struct sim_quirks *quirks, const char *name);

/* Returns the place of the limit in `limits` that has the field name, NULL if there is none. */
int *sim_limit_find(struct ibv_device_attr *limits, const char *name);

/* Verbs and options of verbs that a kind of adapter does not have. */
enum sim_lack {
	SIM_LACKS_DEVICE_MEMORY = 1 << 0,
	SIM_LACKS_DOMAINS = 1 << 1, /* of threads, and parents of PDs */
	SIM_LACKS_NULL_REGIONS = 1 << 2,
	SIM_LACKS_REREGISTRATION = 1 << 3,
	SIM_LACKS_ON_DEMAND = 1 << 4,
	SIM_LACKS_TIMESTAMPS = 1 << 5, /* of completions, and the clock they are of */
	SIM_LACKS_IGNORED_OVERRUN = 1 << 6,
};

struct sim_profile {
	const char *name;
	const char *about;
	struct ibv_device_attr limits; /* GUIDs are the device's own */
	uint32_t max_inline_bytes;
	uint32_t max_message_bytes; /* of a port: ibv_query_port(3) */
	bool atomic_write;	    /* takes ATOMIC WRITE, and asks for it */
	uint16_t gid_table; /* entries that a port tells; more than SIM_GIDS_MAX stay empty */
	unsigned int lacks; /* enum sim_lack */
	bool roce_v1;	    /* besides v2: each address of Ethernet has a GID of either type */
	struct ibv_cq_moderation_caps moderation; /* zeros: none */
	uint32_t create_flags;			  /* enum ibv_qp_create_flags that it takes */
	const struct sim_quirks *quirks;
};

/* Returns NULL if no profile has the name. */
const struct sim_profile *sim_profile_find(const char *name);

/* Returns the profile at index, from 0; NULL behind the last one. */
const struct sim_profile *sim_profile_at(unsigned int index);

#endif
