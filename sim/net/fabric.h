/* SPDX-License-Identifier: MIT */
/*
 * Links between ports, and the search for the port that has an address.
 */
#ifndef SIM_NET_FABRIC_H
#define SIM_NET_FABRIC_H

#include "sim/object/path.h"

struct sim_link {
	struct sim_link *next;
	struct sim_port *a;
	struct sim_port *b;
	uint64_t delay_ns;
	uint64_t bits_per_second;  /* 0: unlimited */
	uint64_t busy_until_ns[2]; /* each way */
};

struct sim_links {
	struct sim_link *given;
	struct sim_link
		direct; /* without delay: a port to itself, and any two while none is given */
};

struct sim_engine;

void sim_links_init(struct sim_links *links);
void sim_links_destroy(struct sim_links *links);

/* Joins port 1 of two devices. From the first call on only joined ports reach one another.
 * ENOMEM, EEXIST; EINVAL for two link layers. */
int sim_fabric_join(struct sim_engine *engine, struct sim_device *a, struct sim_device *b,
		    uint64_t delay_ns, uint64_t bits_per_second);

/* The link of two ports; NULL if they are not joined. Ethernet and InfiniBand never are. */
struct sim_link *sim_fabric_link(struct sim_engine *engine, struct sim_port *a, struct sim_port *b);

/* The port of Ethernet with a GID of a type, or of InfiniBand with a LID; NULL if there is none. */
struct sim_port *sim_fabric_find(struct sim_engine *engine, const union ibv_gid *gid,
				 enum ibv_gid_type type);
struct sim_port *sim_fabric_find_lid(struct sim_engine *engine, uint16_t lid);

/* Fills in a path's destination and link, unless they are known since the last change of an
 * address. */
void sim_fabric_find_way(struct sim_engine *engine, struct sim_path *path);

/* True if a packet can go from one end of the path to the other now. */
bool sim_fabric_is_passable(const struct sim_path *path);

#endif
