/* SPDX-License-Identifier: MIT */
/*
 * Links, and the way of a packet from a port to a port.
 *
 * A packet on a link without delay that nobody looks at is handed over as a descriptor. One that is
 * traced, offered to fault rules or delayed becomes bytes first.
 */
#ifndef SIM_NET_FABRIC_H
#define SIM_NET_FABRIC_H

#include "sim/base/clock.h"
#include "sim/net/fault.h"
#include "sim/net/trace.h"
#include "sim/object/device.h"

struct sim_flight;
struct sim_qp;

/* A QP in a multicast group. */
struct sim_member {
	struct sim_member *next;
	struct sim_qp *qp;
	union ibv_gid gid;
	uint16_t lid; /* InfiniBand; else 0 */
};

struct sim_link {
	struct sim_link *next;
	struct sim_port *a;
	struct sim_port *b;
	uint64_t delay_ns;
	uint64_t bits_per_second;  /* 0: unlimited */
	uint64_t busy_until_ns[2]; /* each way */
};

struct sim_fabric {
	struct sim_link *links;		/* given ones */
	bool meshed;			/* no link was given: all ports are joined by `direct` */
	struct sim_link direct;		/* no delay: a port to itself, and the mesh */
	bool observed;			/* something must see bytes: a sink or a rule */
	struct sim_trace_sink sinks[2]; /* the file, the watcher; frame NULL for none */
	struct sim_faults faults;
	struct sim_member *members;
	uint64_t address_epoch;	    /* changes with the ports' addresses */
	struct sim_flight *flights; /* all buffers for what is on its way */
	struct sim_flight *spare;   /* those that are free */
	uint8_t frame[SIM_FRAME_BYTES_MAX];
};

struct sim_engine;

void sim_fabric_init(struct sim_engine *engine);
void sim_fabric_destroy(struct sim_engine *engine);

/* Joins port 1 of two devices. ENOMEM, EEXIST; EINVAL for two link layers. */
int sim_fabric_join(struct sim_engine *engine, struct sim_device *a, struct sim_device *b,
		    uint64_t delay_ns, uint64_t bits_per_second);

/* Sets a sink (0: the trace file, 1: the watcher); NULL ends it. Lost frames are flagged, and on
 * Ethernet carry sim_trace_lost_mac as their destination. */
void sim_fabric_sink(struct sim_engine *engine, unsigned int which,
		     const struct sim_trace_sink *sink);

/* Notes whether anything must see bytes, after a change of sinks or rules. */
void sim_fabric_observe(struct sim_engine *engine);

/* What joins two ports; NULL for nothing. Ethernet and InfiniBand are never joined. */
struct sim_link *sim_fabric_link(struct sim_engine *engine, struct sim_port *a, struct sim_port *b);

/* The port of Ethernet with a GID of a type, or of InfiniBand with a LID; NULL for none. */
struct sim_port *sim_fabric_find(struct sim_engine *engine, const union ibv_gid *gid,
				 enum ibv_gid_type type);
struct sim_port *sim_fabric_find_lid(struct sim_engine *engine, uint16_t lid);

/* Sends a packet. Its spans are read now, at once or into a buffer. */
void sim_fabric_send(struct sim_engine *engine, struct sim_path *path, struct sim_packet *packet);

/* A QP ends: it leaves its multicast groups. */
void sim_fabric_forget(struct sim_qp *qp);

/* Finds a connected QP's peer again where nothing but its admission stands between them, and
 * notes the engine's epoch; false where the packet has to go the whole way. */
bool sim_fabric_reach(struct sim_qp *qp, uint64_t *epoch, const struct sim_packet *packet);

#endif
