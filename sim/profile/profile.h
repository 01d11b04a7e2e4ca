/* SPDX-License-Identifier: MIT */
/*
 * Profiles: the limits and abilities of a kind of adapter, and its quirks.
 */
#ifndef SIM_PROFILE_PROFILE_H
#define SIM_PROFILE_PROFILE_H

#include "sim/profile/vendor_err.h"

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>

/* True where a device differs from the specification. */
struct sim_quirks {
#define QUIRK(name, group, profiles, about, right) bool name;
#include "sim/profile/quirks.def"
#undef QUIRK
};

/* The longest message that a packet header can describe. */
#define SIM_MESSAGE_BYTES_MAX (UINT32_C(1) << 31)

enum sim_quirk_group {
	SIM_QUIRK_POLICY, /* adapters may differ */
	SIM_QUIRK_BUG,	  /* a bug of SoftRoCE; sim/rxe/ imitates it */
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

/* Verbs, and options of verbs, that a kind of adapter does not have. */
enum sim_lack {
	SIM_LACKS_DEVICE_MEMORY = 1 << 0,
	SIM_LACKS_DOMAINS = 1 << 1, /* thread domains and parent domains */
	SIM_LACKS_NULL_REGIONS = 1 << 2,
	SIM_LACKS_REREGISTRATION = 1 << 3,
	SIM_LACKS_ON_DEMAND = 1 << 4,
	SIM_LACKS_TIMESTAMPS = 1 << 5, /* of completions, and the HCA clock */
	SIM_LACKS_IGNORED_OVERRUN = 1 << 6,
	SIM_LACKS_IMPORTS = 1 << 7,
};

struct sim_profile {
	const char *name;
	const char *about;
	struct ibv_device_attr limits; /* without GUIDs */
	uint32_t max_inline_bytes;
	uint32_t max_message_bytes; /* max_msg_sz of ibv_query_port(3) */
	bool atomic_write;	    /* has IBV_WR_ATOMIC_WRITE */
	uint16_t
		gid_table; /* gid_tbl_len of ibv_query_port(3); entries from SIM_GIDS_MAX on stay empty */
	unsigned int lacks; /* enum sim_lack */
	bool roce_v1; /* each address of an Ethernet port has a GID of RoCE v1 and one of v2 */
	struct ibv_cq_moderation_caps moderation; /* zeros: none */
	enum sim_codes codes;			  /* the column of vendor_err.def */
	uint32_t create_flags; /* the enum ibv_qp_create_flags that the device knows */
	const struct sim_quirks *quirks;
};

/* Returns NULL if no profile has the name. */
const struct sim_profile *sim_profile_find(const char *name);

/* Returns the profile at index, from 0; NULL behind the last one. */
const struct sim_profile *sim_profile_at(unsigned int index);

#endif
