/* SPDX-License-Identifier: MIT */
/*
 * Paths: a checked address vector, and the destination and link that it leads to.
 * sim_fabric_find_way() fills in the destination and link before the first packet, and after each
 * change of an address.
 */
#ifndef SIM_OBJECT_PATH_H
#define SIM_OBJECT_PATH_H

#include "sim/object/port.h"
#include "sim/wire/packet.h"

struct sim_link;

/* Who has a QPN, as far as the engine knows. */
enum sim_presence {
	SIM_PRESENCE_UNKNOWN, /* the engine cannot know: another machine */
	SIM_PRESENCE_NOBODY,  /* no process has this QPN, or the one that had it has ended */
	SIM_PRESENCE_OTHER,   /* a living process has the numbers around this QPN */
};

struct sim_path {
	struct sim_port *source;
	/* Found by the GID (Ethernet) or by the DLID (InfiniBand). NULL: no port has the address,
	 * and packets are lost unless the path leads beyond the engine. */
	struct sim_port *dest;
	struct sim_link *link; /* NULL if no link joins the two */
	bool beyond; /* no port has the address, and the way out reaches it (sim/net/wire.h) */
	uint64_t address_epoch; /* the engine's address_epoch when dest and link were found; or 0 */
	bool multicast;		/* packets go to all members of a group */
	struct sim_route route;
	uint32_t qpn; /* the connected QP that sends on this path; 0: the path of an AH */
	uint8_t sgid_index;
	uint8_t service_level;
};

/*
 * Checks an address vector and makes a path from it. EINVAL for a wrong port, GID index, LID or
 * service level, or a missing GRH; ENODATA for an empty entry of the GID table. An address that no
 * port has is no error, unless the engine has a way out: ENETUNREACH on Ethernet.
 */
int sim_path_resolve(struct sim_device *device, const struct ibv_ah_attr *attr,
		     struct sim_path *path);

/* Returns true if the entry of the path's source GID has the type RoCE v1 now. */
static inline bool sim_path_is_roce_v1(const struct sim_path *path)
{
	return path->source->gid_types[path->sgid_index] == IBV_GID_TYPE_ROCE_V1;
}

#endif
