/* SPDX-License-Identifier: MIT */
/*
 * Devices, ports, and the paths between ports.
 */
#ifndef SIM_DEVICE_H
#define SIM_DEVICE_H

#include "sim/key.h"
#include "sim/packet.h"
#include "sim/profile.h"

#include <infiniband/verbs.h>

#define SIM_PORTS_MAX 4
#define SIM_GIDS_MAX  32
#define SIM_PKEYS_MAX 16
#define SIM_NAME_MAX  32

struct sim_world;
struct sim_device;
struct sim_link;

struct sim_counters {
	uint64_t sent_packets;
	uint64_t received_packets;
	uint64_t lost_packets;
	uint64_t dropped_packets;
	uint64_t duplicate_requests;
	uint64_t out_of_sequence_requests;
	uint64_t rnr_naks_sent;
	uint64_t rnr_naks_received;
	uint64_t sequence_naks_sent;
	uint64_t sequence_naks_received;
	uint64_t ack_timeouts;
	uint64_t retransmitted_packets;
	uint64_t guarded_faults;
};

struct sim_port {
	struct sim_device *device;
	uint8_t number; /* from 1 */
	uint8_t link_layer;
	uint8_t state; /* enum ibv_port_state */
	uint8_t mtu;   /* enum ibv_mtu: largest, and active */
	uint16_t lid;
	uint8_t mac[6];
	uint16_t gid_count;
	uint16_t pkey_count;
	union ibv_gid gids[SIM_GIDS_MAX];
	uint16_t pkeys[SIM_PKEYS_MAX];
};

struct sim_device {
	struct sim_world *world;
	struct sim_device *next;
	const struct sim_profile *profile;
	void *user;
	char name[SIM_NAME_MAX];
	uint64_t node_guid;    /* host order */
	uint32_t index;	       /* from 0 in its world */
	uint32_t memory_epoch; /* changes whenever a checked range may have become wrong */
	struct sim_counters counters;
	struct sim_table qps;
	struct sim_table regions;
	uint32_t cq_count, ah_count;
	unsigned int port_count;
	struct sim_port ports[SIM_PORTS_MAX];
};

struct sim_device_config {
	const char *name;
	const struct sim_profile *profile;
	unsigned int port_count;
	uint8_t link_layer;
	enum ibv_mtu mtu;
	unsigned int gid_count; /* of port 1, behind the link-local one */
	const union ibv_gid *gids;
	unsigned int pkey_count;
	const uint16_t *pkeys;
};

/* Makes a device of a world; it ends with the world. ENOMEM, EINVAL. */
int sim_device_create(struct sim_world *world, const struct sim_device_config *config, void *user,
		      struct sim_device **device);

/* NULL for a number that the device has no port of. */
struct sim_port *sim_device_port(struct sim_device *device, unsigned int number);

void sim_device_query(const struct sim_device *device, struct ibv_device_attr *attr);
void sim_port_query(const struct sim_port *port, struct ibv_port_attr *attr);

static inline uint32_t sim_mtu_bytes(unsigned int mtu)
{
	return 128u << mtu;
}

/* Where packets go: resolved once, asked for every packet. */
struct sim_path {
	struct sim_port *source;
	struct sim_port *dest; /* NULL: no port has this address; packets are lost */
	struct sim_link *link; /* NULL where the two are not joined */
	struct sim_route route;
	uint8_t sgid_index;
	uint8_t service_level;
};

/*
 * Checks an address vector and finds the way. EINVAL for a port, GID index or missing GRH that
 * cannot be; an address that nobody has is no error.
 */
int sim_path_resolve(struct sim_device *device, const struct ibv_ah_attr *attr,
		     struct sim_path *path);

struct sim_ah {
	struct sim_device *device;
	uint32_t pd;
	uint32_t holders; /* the program, and each posted send that names it */
	struct sim_path path;
	struct ibv_ah_attr attr;
};

int sim_ah_create(struct sim_device *device, uint32_t pd, const struct ibv_ah_attr *attr,
		  struct sim_ah **ah);

/* The program's hold or a send's ends; the last one frees. */
void sim_ah_release(struct sim_ah *ah);

#endif
