/* SPDX-License-Identifier: MIT */
/*
 * Links between ports, and the search for a port by its address.
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
	uint64_t busy_until_ns[2]; /* the end of the last frame from a, and from b */
};

struct sim_links {
	struct sim_link *given; /* the links that sim_fabric_join() made */
	/* Has no delay; joins the ports of one device, and all ports while no link is given. */
	struct sim_link direct;
};

struct sim_engine;

/* Frees the links. */
void sim_links_destroy(struct sim_links *links);

/* Frames that are on a link arrive later by a duration (sim_engine_postpone()). */
void sim_links_postpone(struct sim_links *links, uint64_t duration_ns);

/* Joins port 1 of two devices. After the first call, only joined ports reach one another. ENOMEM;
 * EEXIST if they are joined; EINVAL if their link layers differ. */
int sim_fabric_join(struct sim_engine *engine, struct sim_device *a, struct sim_device *b,
		    uint64_t delay_ns, uint64_t bits_per_second);

/* Returns the link of two ports; NULL if they are not joined or their link layers differ. */
struct sim_link *sim_fabric_link(struct sim_engine *engine, struct sim_port *a, struct sim_port *b);

/* Returns the Ethernet port with a GID of a type, or the InfiniBand port with a LID; NULL if no
 * port has that address. */
struct sim_port *sim_fabric_find(struct sim_engine *engine, const union ibv_gid *gid,
				 enum ibv_gid_type type);
struct sim_port *sim_fabric_find_lid(struct sim_engine *engine, uint16_t lid);

/* Fills in a path's destination, link and addresses, if an address or link has changed since the
 * last call. */
void sim_fabric_find_way(struct sim_engine *engine, struct sim_path *path);

/* Returns true if the path has a destination and a link, and both ports are up, or if the path leads
 * beyond the engine from a port that is up. */
bool sim_fabric_is_passable(const struct sim_path *path);

#endif
