/* SPDX-License-Identifier: MIT */
/*
 * Paths: an address vector that was checked, and the way that packets take. The network fills in
 * the way before the first packet and after each change of an address.
 */
#ifndef SIM_OBJECT_PATH_H
#define SIM_OBJECT_PATH_H

#include "sim/object/port.h"
#include "sim/wire/packet.h"

struct sim_link;

struct sim_path {
	struct sim_port *source;
	struct sim_port
		*dest; /* NULL: no port has this address, and packets are lost. On InfiniBand
				 * the DLID leads there, whatever the GRH says */
	struct sim_link *link;	/* NULL if no link joins the two */
	uint64_t address_epoch; /* the engine's, when dest and link were found; 0: not yet */
	bool multicast;		/* to the members of a group, wherever they are */
	struct sim_route route;
	uint8_t sgid_index;
	uint8_t service_level;
};

/*
 * Checks an address vector and makes a path of it. EINVAL for a port, GID index, missing GRH, LID or
 * service level that cannot be; ENODATA for an empty place of the GID table. An address that no port
 * has is no error.
 */
int sim_path_resolve(struct sim_device *device, const struct ibv_ah_attr *attr,
		     struct sim_path *path);

/* True if the path's source GID is of type RoCE v1 now. */
static inline bool sim_path_is_roce_v1(const struct sim_path *path)
{
	return path->source->gid_types[path->sgid_index] == IBV_GID_TYPE_ROCE_V1;
}

#endif
