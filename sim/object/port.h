/* SPDX-License-Identifier: MIT */
/*
 * Ports: their addresses, P_Keys and state.
 */
#ifndef SIM_OBJECT_PORT_H
#define SIM_OBJECT_PORT_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#define SIM_GIDS_MAX  64
#define SIM_PKEYS_MAX 16

struct sim_device;
struct sim_device_config;

struct sim_port {
	struct sim_device *device;
	uint8_t number; /* from 1 */
	uint8_t link_layer;
	uint8_t state;	 /* enum ibv_port_state */
	uint8_t mtu;	 /* enum ibv_mtu: max_mtu and active_mtu */
	uint16_t lid;	 /* of an InfiniBand port, with LMC 0; else 0 */
	uint16_t sm_lid; /* of the port of the subnet manager; 0 on Ethernet */
	uint8_t mac[6];	 /* on InfiniBand the port GUID comes from it */
	uint16_t gid_count;
	uint16_t pkey_count;
	union ibv_gid gids[SIM_GIDS_MAX];
	uint8_t gid_types[SIM_GIDS_MAX]; /* enum ibv_gid_type; no meaning for a GID of zeros */
	uint16_t pkeys[SIM_PKEYS_MAX];
	uint16_t
		gid_found; /* an index: most packets have the GID that sim_port_has_gid() found last */
	uint32_t gsi_psn; /* of the next message that QP 1 sends */
};

static inline bool sim_port_is_infiniband(const struct sim_port *port)
{
	return port->link_layer == IBV_LINK_LAYER_INFINIBAND;
}

/* Returns the type that GIDs of a port have by default. */
static inline enum ibv_gid_type sim_port_gid_type(const struct sim_port *port)
{
	return sim_port_is_infiniband(port) ? IBV_GID_TYPE_IB : IBV_GID_TYPE_ROCE_V2;
}

/* Returns the bytes of an enum ibv_mtu. */
static inline uint32_t sim_mtu_bytes(unsigned int mtu)
{
	return 128u << mtu;
}

/* Returns the link-local address of the port's GUID, which is the first GID that it has. */
union ibv_gid sim_port_link_local(const struct sim_port *port);

/* Returns the index of the default P_Key, 0xffff; 0 if the port does not have it. */
unsigned int sim_port_default_pkey(const struct sim_port *port);

/* Fills one port of a new device. */
void sim_port_init(struct sim_port *port, struct sim_device *device, unsigned int number,
		   const struct sim_device_config *config);

/* ibv_query_port(3). */
void sim_port_query(const struct sim_port *port, struct ibv_port_attr *attr);

/* Returns the index of a GID of a type in the port's table; -1 if the port does not have it. */
int sim_port_find_gid(const struct sim_port *port, const union ibv_gid *gid,
		      enum ibv_gid_type type);

/* Returns the index of the first GID that is not empty; 0 if there is none. */
unsigned int sim_port_first_gid(const struct sim_port *port);

/* Returns true if the port has a GID of a type. */
bool sim_port_has_gid(struct sim_port *port, const union ibv_gid *gid, enum ibv_gid_type type);

/* Returns true if the port has a GID of the type. */
bool sim_port_has_type(const struct sim_port *port, enum ibv_gid_type type);

/* Returns true if the port can send and receive. */
bool sim_port_is_up(const struct sim_port *port);

/*
 * These change a port and raise IBV_EVENT_PORT_ACTIVE or IBV_EVENT_PORT_ERR, IBV_EVENT_LID_CHANGE,
 * or IBV_EVENT_GID_CHANGE. EINVAL for an index beyond the table, or a GID type that the port cannot
 * have.
 */
void sim_port_set_state(struct sim_port *port, enum ibv_port_state state);
void sim_port_set_lid(struct sim_port *port, uint16_t lid);
int sim_port_set_gid(struct sim_port *port, unsigned int index, const union ibv_gid *gid,
		     enum ibv_gid_type type);

/* Raises an asynchronous event of the port. */
void sim_port_event(struct sim_port *port, enum ibv_event_type type);

#endif
