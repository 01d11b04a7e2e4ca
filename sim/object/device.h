/* SPDX-License-Identifier: MIT */
/*
 * Devices, ports, and the paths between ports.
 */
#ifndef SIM_OBJECT_DEVICE_H
#define SIM_OBJECT_DEVICE_H

#include "sim/object/counter.h"
#include "sim/object/key.h"
#include "sim/profile/profile.h"
#include "sim/wire/packet.h"

#include <infiniband/verbs.h>

#define SIM_PORTS_MAX 4
#define SIM_GIDS_MAX  64
#define SIM_PKEYS_MAX 16
#define SIM_NAME_MAX  32

struct sim_engine;
struct sim_device;
struct sim_link;

struct sim_port {
	struct sim_device *device;
	uint8_t number; /* from 1 */
	uint8_t link_layer;
	uint8_t state;	 /* enum ibv_port_state */
	uint8_t mtu;	 /* enum ibv_mtu: largest, and active */
	uint16_t lid;	 /* InfiniBand: LMC 0, one LID a port */
	uint16_t sm_lid; /* the port on whose node the subnet manager is */
	uint8_t mac[6];	 /* InfiniBand: what the port GUID is made from */
	uint16_t gid_count;
	uint16_t pkey_count;
	union ibv_gid gids[SIM_GIDS_MAX];
	uint8_t gid_types[SIM_GIDS_MAX]; /* enum ibv_gid_type; of a GID of zeros: nothing */
	uint16_t pkeys[SIM_PKEYS_MAX];
};

struct sim_device {
	struct sim_engine *engine;
	struct sim_device *next;
	const struct sim_profile *profile;
	struct sim_profile own_profile; /* what profile leads to once a limit was lowered */
	struct sim_quirks quirks;	/* the profile's, and what a test set */
	void *user;
	char name[SIM_NAME_MAX];
	uint64_t node_guid;    /* host order */
	uint32_t index;	       /* from 0 in its engine */
	bool dead;	       /* sim_device_kill() */
	uint32_t memory_epoch; /* changes whenever a checked range may have become wrong */
	struct sim_counters counters;
	struct sim_table qps;
	struct sim_table regions;
	struct sim_table srqs;
	uint32_t cq_count, ah_count, xrcd_count, region_count, window_count;
	uint32_t group_count, attachment_count; /* of multicast */
	uint32_t resource_count;		/* of READs and atomics, over the QPs */
	unsigned int port_count;
	struct sim_port ports[SIM_PORTS_MAX];
};

struct sim_device_config {
	const char *name;
	const struct sim_profile *profile;
	unsigned int port_count;
	uint8_t link_layer;
	enum ibv_mtu mtu;
	unsigned int gid_count; /* of port 1, behind the link-local one; with roce_v1 all twice */
	const union ibv_gid *gids;
	unsigned int pkey_count;
	const uint16_t *pkeys;
};

/* Makes a device of a engine; it ends with the engine. The ports of InfiniBand have the LIDs 1, 2, 3
 * and so on, in the order in which they are made. ENOMEM, EINVAL. */
int sim_device_create(struct sim_engine *engine, const struct sim_device_config *config, void *user,
		      struct sim_device **device);

static inline bool sim_port_is_infiniband(const struct sim_port *port)
{
	return port->link_layer == IBV_LINK_LAYER_INFINIBAND;
}

/* The type that a port's GIDs have where nothing else is said. */
static inline enum ibv_gid_type sim_port_gid_type(const struct sim_port *port)
{
	return sim_port_is_infiniband(port) ? IBV_GID_TYPE_IB : IBV_GID_TYPE_ROCE_V2;
}

/* The place of a GID of a type in a port's table; -1 for none. */
int sim_port_find_gid(const struct sim_port *port, const union ibv_gid *gid,
		      enum ibv_gid_type type);

/* NULL for a number that the device has no port of. */
struct sim_port *sim_device_port(struct sim_device *device, unsigned int number);

void sim_device_query(const struct sim_device *device, struct ibv_device_attr *attr);
void sim_port_query(const struct sim_port *port, struct ibv_port_attr *attr);

static inline uint32_t sim_mtu_bytes(unsigned int mtu)
{
	return 128u << mtu;
}

/*
 * The engine acts on a port. Each raises the event that programs know (PORT_ACTIVE, PORT_ERR,
 * LID_CHANGE, GID_CHANGE, PKEY_CHANGE, SM_CHANGE, CLIENT_REREGISTER). EINVAL for an index, or a
 * GID type of this port, that cannot be.
 */
void sim_port_set_state(struct sim_port *port, enum ibv_port_state state);
void sim_port_set_lid(struct sim_port *port, uint16_t lid);
int sim_port_set_gid(struct sim_port *port, unsigned int index, const union ibv_gid *gid,
		     enum ibv_gid_type type);
int sim_port_set_pkey(struct sim_port *port, unsigned int index, uint16_t pkey);
void sim_port_event(struct sim_port *port, enum ibv_event_type type);

/* The device dies: IBV_EVENT_DEVICE_FATAL; its QPs go to ERR, nothing moves in or out. */
void sim_device_kill(struct sim_device *device);

/*
 * Lowers a limit, by the name of its field in struct ibv_device_attr; what is there already stays.
 * EINVAL for an unknown name, and for a value below 0 or above the present one.
 */
int sim_device_lower_limit(struct sim_device *device, const char *name, int value);

/* Where packets go: resolved once, asked for every packet. */
struct sim_path {
	struct sim_port *source;
	struct sim_port *dest;	/* NULL: no port has this address; packets are lost. On InfiniBand
				 * the DLID leads there, whatever the GRH says */
	struct sim_link *link;	/* NULL where the two are not joined */
	uint64_t address_epoch; /* of the fabric, when dest was found */
	bool multicast;		/* to the members of a group, wherever they are */
	struct sim_route route;
	uint8_t sgid_index;
	uint8_t service_level;
};

/*
 * Checks an address vector and finds the way. EINVAL for a port, GID index, missing GRH, LID or
 * service level that cannot be; an address that nobody has is no error.
 */
int sim_path_resolve(struct sim_device *device, const struct ibv_ah_attr *attr,
		     struct sim_path *path);

/* An XRC domain: its SRQs and target QPs find one another. */
struct sim_xrcd {
	struct sim_device *device;
	uint32_t users; /* SRQs and QPs */
};

int sim_xrcd_create(struct sim_device *device, struct sim_xrcd **xrcd);

/* EBUSY while SRQs or QPs are in it. */
int sim_xrcd_destroy(struct sim_xrcd *xrcd);

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
