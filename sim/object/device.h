/* SPDX-License-Identifier: MIT */
/*
 * Devices: their limits, ports, counters, and the tables of their QPs, SRQs and memory regions.
 */
#ifndef SIM_OBJECT_DEVICE_H
#define SIM_OBJECT_DEVICE_H

#include "sim/object/counter.h"
#include "sim/object/key.h"
#include "sim/object/port.h"
#include "sim/profile/profile.h"

#define SIM_PORTS_MAX 4
#define SIM_NAME_MAX  32

struct sim_engine;
struct sim_qp;

struct sim_device {
	struct sim_engine *engine;
	struct sim_device *next;
	const struct sim_profile *profile;
	struct sim_profile own_profile; /* after a limit was lowered: a copy of the profile */
	struct sim_quirks quirks;	/* of the profile, as sim_device_set_quirk() changed them */
	/* Both are NULL if the device does what the specification says. See sim/object/rules.h and
	 * sim/qp/hooks.h. */
	bool (*leaves_out)(const struct sim_device *device, unsigned int rule);
	const struct sim_hooks *hooks;
	void *user;
	char name[SIM_NAME_MAX];
	uint64_t node_guid;    /* host order */
	uint32_t index;	       /* from 0 in its engine */
	bool dead;	       /* after sim_device_kill() */
	uint32_t memory_epoch; /* from 1; counts changes that may make a checked range wrong */
	struct sim_counters counters;
	struct sim_table qps;
	struct sim_table regions;
	struct sim_qp *proxies; /* of XRC targets of other processes; see sim/qp/relay.h */
	uint32_t proxy_count;
	struct sim_mr *adopted; /* regions of other engines; see sim_mr_adopt() */
	struct sim_table srqs;
	uint32_t cq_count, ah_count, xrcd_count, region_count, window_count;
	uint32_t group_count, attachment_count; /* multicast groups and their members */
	uint32_t resource_count; /* responder resources for READs and atomics, of all QPs */
	unsigned int port_count;
	struct sim_port ports[SIM_PORTS_MAX];
};

struct sim_device_config {
	const char *name;
	const struct sim_profile *profile;
	unsigned int port_count;
	uint8_t link_layer;
	enum ibv_mtu mtu;
	unsigned int gid_count; /* of port 1, behind the link-local GID; roce_v1 doubles them */
	const union ibv_gid *gids;
	const struct sim_quirks *quirks; /* NULL: the profile's */
	unsigned int pkey_count;
	const uint16_t *pkeys;
	uint16_t lids_before; /* how many LIDs the fabric has before those of this engine */
	uint64_t
		identity; /* see sim_device_renumber(); 0: numbers and MACs begin at their lowest */
};

/* Makes a device; sim_engine_destroy() frees it. InfiniBand ports get the LIDs
 * lids_before + 1, + 2, + 3, ... in the order in which they are made. EINVAL for a configuration beyond the limits, ENOMEM. */
int sim_device_create(struct sim_engine *engine, const struct sim_device_config *config, void *user,
		      struct sim_device **device);

/* Lets QPNs, SRQ numbers and memory keys that are made from now on begin at numbers that depend on
 * the identity. Objects keep the numbers that they have. */
void sim_device_renumber(struct sim_device *device, uint64_t identity);

/* Frees a device that has no QPs and no regions; only sim_engine_destroy() calls this. */
void sim_device_free(struct sim_device *device);

/* Returns a port by its number, from 1; NULL if the device has no such port. */
struct sim_port *sim_device_port(struct sim_device *device, unsigned int number);

/* ibv_query_device(3). */
void sim_device_query(const struct sim_device *device, struct ibv_device_attr *attr);

/* Switches a quirk on or off. ENOENT if no quirk has that name, ENOMEM. */
int sim_device_set_quirk(struct sim_device *device, const char *name, bool on);

/*
 * Lowers a limit by the name of its field in struct ibv_device_attr; existing objects stay. EINVAL
 * if no limit has that name, and for a value below 0 or above the present limit.
 */
int sim_device_lower_limit(struct sim_device *device, const char *name, int value);

#endif
