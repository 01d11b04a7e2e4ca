/* SPDX-License-Identifier: MIT */
/*
 * The connection manager of a world: what librdmacm (rdma-core librdmacm/cma.c) and the kernel (Linux
 * drivers/infiniband/core/cma.c and ucma.c) do between a program and the messages, which are the engine's
 * (sim/cm/cm.h).
 *
 * Two kinds of fields. Those of struct rdma_cm_id are the program's view, and change when the program
 * calls, or takes an event. All others are under the world's lock and change when a message comes.
 */
#ifndef BACKENDS_SIM_CM_PRIVATE_H
#define BACKENDS_SIM_CM_PRIVATE_H

#include "backends/sim/base/event_queue.h"
#include "backends/sim/base/pool.h"
#include "backends/sim/object/refuse.h"
#include "backends/sim/verb/verbs.h"
#include "backends/sim/world/world.h"

#include "sim/cm/cm.h"
#include "sim/cm/ip.h"

#include <rdma/rdma_cma.h>
#include <verbena/cm_backend.h>

/* cm_<name>() is rdma_<name>(3), in the file of its subject. */
#define VB_CM(result, name, parameters, arguments, convention, by, object, version) \
	result cm_##name parameters;
#include <verbena/cm.def>

/* Linux drivers/infiniband/core/cma.c */
#define CM_RESPONSE_TIMEOUT 20 /* CMA_CM_RESPONSE_TIMEOUT: 4.3 s */
#define CM_SERVICE_TIMEOUT  24 /* CMA_CM_MRA_SETTING: 69 s that the peer of a slow program waits */
#define CM_RETRIES	    15 /* CMA_MAX_CM_RETRIES */
#define CM_ROCE_LIFE_TIME   16 /* CMA_IBOE_PACKET_LIFETIME */
#define CM_DATAGRAM_QPN	    0xffffff
/* RDMA_MAX_PRIVATE_DATA of rdma-core librdmacm/cma.c: the length of the public field is a byte. */
#define CM_PRIVATE_BYTES 256

/* Linux drivers/infiniband/core/cma_priv.h, enum rdma_cm_state. */
enum cm_state {
	CM_IDLE,
	CM_ADDR_QUERY,
	CM_ADDR_RESOLVED,
	CM_ROUTE_QUERY,
	CM_ROUTE_RESOLVED,
	CM_CONNECT,
	CM_DISCONNECT,
	CM_ADDR_BOUND,
	CM_LISTEN,
	CM_DEVICE_REMOVAL,
	CM_STATES,
};

/* A device as the connection manager uses it: opened once, and never closed by the program. */
struct cm_device {
	struct device *device;
	struct ibv_context *context; /* NULL until it is needed */
	struct ibv_pd *pd;	     /* the identifiers' default PD; NULL until one needs it */
	struct ibv_xrcd *xrcd;
	uint32_t users; /* counts the identifiers that have `pd` */
};

struct cm {
	struct sim_timer
		ending_look; /* first: the next look at identifiers whose peers have disconnected */
	uint64_t ending_patience_ns; /* see ending.c; 0: DISCONNECTED is raised at once */
	struct cm_id *first_ending;
	struct vb_sim *world;
	struct pool ids, channels, events, groups;
	struct cm_id *first_id;
	struct cm_channel *first_channel;
	struct cm_device *devices; /* one for each of the world's */
	bool started; /* this process has started the world's clock for the connection manager */
	uint16_t next_port;
	uint64_t random;
};

struct cm_channel {
	struct rdma_event_channel rdma;
	struct cm *cm;
	struct cm_channel *next;
	struct event_queue queue; /* of struct cm_event */
};

/* A place in the simulated network: an entry of the GID table of a port. */
struct cm_place {
	struct device *device;
	struct sim_port *port;
	uint8_t index;
};

struct cm_group {
	struct cm_group *next;
	struct cm_id *id;
	struct sockaddr_storage address;
	void *context;
	union ibv_gid gid;
	uint16_t lid;
	bool send_only;
	bool attached; /* the QP of the identifier is a member */
	uint32_t events_read, events_acked;
};

struct cm_id {
	struct rdma_cm_id rdma;
	struct cm *cm;
	struct cm_id *next, **link; /* in the list of the world */
	struct cm_channel *channel; /* the object of rdma.channel */
	bool sync;		    /* made without a channel: its calls wait for their events */
	enum cm_state state;
	struct cm_device *device; /* bound to it; NULL: to none */
	bool has_pd;		  /* counted in device->users */
	struct sim_port *port;
	struct sim_cm *comm; /* NULL: no message has been sent or awaited */
	struct sockaddr_storage source, dest;
	union ibv_gid dgid;
	struct sim_cm_path path;
	bool routed;	  /* `path` is known */
	bool own_address; /* `source` is in the GID table of the port */
	bool reserved;
	uint64_t service_id;	     /* reserved */
	uint8_t service_address[16]; /* reserved */
	bool reuse, afonly, afonly_set, tos_set, ack_timeout_set;
	uint8_t tos, ack_timeout;
	uint32_t backlog; /* counts the requests in the queue; its limit is the backlog */
	uint8_t initiator_depth, responder_resources;
	uint32_t qpn;
	uint32_t starting_psn; /* of the packets that the QP receives */
	bool srq;
	bool unaccepted;    /* of a request: no event comes before rdma_accept(3) */
	bool orphaned;	    /* the channel has been destroyed: events have no place */
	bool connect_error; /* the QP could not follow a REP: later messages raise no event */
	struct cm_group *groups;
	struct cm_id *next_ending;
	uint64_t ending_until_ns; /* DISCONNECTED waits until then; 0: it does not wait */
	uint32_t events_read, events_acked;
	struct ibv_qp_init_attr
		*qp_init_attr; /* rdma_create_ep(3): for the identifiers of requests */
	void *connect;	       /* of rdma_create_ep(3): goes before the private data */
	size_t connect_bytes;
	struct ibv_ece local_ece, remote_ece;
};

/* An event that waits in a channel or that the program holds. */
struct cm_event {
	struct rdma_cm_event rdma;
	struct cm_id *id;    /* the identifier that counts the event: for a request, the listener */
	struct cm_id *fresh; /* for a request: the new identifier; else NULL */
	struct cm_group *group;
	uint8_t private_data[CM_PRIVATE_BYTES];
};

static inline struct cm_id *cm_id_of(struct rdma_cm_id *id)
{
	return (struct cm_id *)id;
}

static inline struct cm_channel *cm_channel_of(struct rdma_event_channel *channel)
{
	return (struct cm_channel *)channel;
}

static inline struct cm_event *cm_event_of(struct rdma_cm_event *event)
{
	return (struct cm_event *)event;
}

static inline bool cm_is_datagram(const struct cm_id *id)
{
	return id->rdma.qp_type == IBV_QPT_UD;
}

static inline struct sim_engine *cm_engine(const struct cm *cm)
{
	return cm->world->driver.engine;
}

/* Unless a comment says that it holds the world itself, the caller of a function holds the world. */

/* --- world.c --- */

/* Returns the connection manager of the default world, ready for use. Holds the world itself. NULL with
 * errno and a sentence. */
struct cm *cm_default(const char *call);

/* --- state.c --- */

/* Returns 0 if the identifier is in a state in which the call is allowed; else EINVAL with a sentence,
 * ENXIO if the device was removed, or ENODEV if the world has ended. */
int cm_check_state(const struct cm_id *id, const char *call);

/* Returns the identifier's state as a word of rdma_cm(7)'s source. */
const char *cm_state_name(enum cm_state state);

/* Returns the name of an event, such as "ADDR_RESOLVED". */
const char *cm_event_name(enum rdma_cm_event_type event);

/* --- channel.c --- */

/* Returns a channel; NULL with errno and a sentence. */
struct cm_channel *cm_channel_new(struct cm *cm, const char *call);
void cm_channel_end(struct cm_channel *channel);

/*
 * For a synchronous identifier: waits for the next event, which becomes id->event. Holds the world itself.
 * Returns 0, or -1 with errno: that of the event's status.
 */
int cm_complete(struct cm_id *id, const char *call);

/* Moves the waiting events of an identifier to another channel. */
void cm_move_events(struct cm_id *id, struct cm_channel *to);

/* Ends the waiting events of an identifier, with the identifiers of its requests. */
void cm_drop_events(struct cm_id *id);

/* Ends the waiting event of a group. */
void cm_drop_group_event(struct cm_id *id, const struct cm_group *group);

/* --- event.c --- */

/* Returns an event for the identifier, without parameters; NULL if out of memory. */
struct cm_event *cm_event_new(struct cm_id *id, enum rdma_cm_event_type type, int status);
/* Puts it into the queue of the identifier's channel. */
void cm_event_push(struct cm_event *event);
/* Both for an event without parameters. */
void cm_event_tell(struct cm_id *id, enum rdma_cm_event_type type, int status);

/* As event() of struct sim_cm_owner. */
enum sim_cm_verdict cm_event_heard(void *arg, struct sim_cm *comm,
				   const struct sim_cm_event *event);
/* As event() of struct world_cm. */
void cm_event_of_device(void *arg, const struct sim_device *device, enum ibv_event_type type);

/* --- ending.c --- */

void cm_ending_init(struct cm *cm);
/* Raises DISCONNECTED for a connection that the peer has ended, behind the completions of its QP. */
void cm_ending_tell(struct cm_id *id);
/* Ends the wait of DISCONNECTED. Returns true if it was waiting: then the caller raises it, or ends the
 * identifier. */
bool cm_ending_stop(struct cm_id *id);

/* --- id.c --- */

/* Returns an identifier of the channel; NULL if out of memory. */
struct cm_id *cm_id_new(struct cm *cm, struct cm_channel *channel, void *context,
			enum rdma_port_space ps, enum ibv_qp_type qp_type);
/* Ends an identifier whose events the program has all acknowledged. Its channel stays. */
void cm_id_end(struct cm_id *id);
/* As rdma_migrate_id(3), and makes the identifier synchronous if channel is NULL. Holds the world
 * itself. */
int cm_id_migrate(struct cm_id *id, struct cm_channel *channel);

/* --- device.c --- */

/* Opens the device for the program. Holds the world itself. Returns 0, or an errno with a sentence. */
int cm_device_open(struct cm *cm, struct cm_device *device, const char *call);
/* Fills in what the program sees of the identifier's device and addresses, and opens the device if need
 * be. Holds the world itself. Returns 0, or an errno with a sentence. */
int cm_publish(struct cm_id *id, const char *call);
/* Releases the identifier's share of the device and its PD. */
void cm_device_release(struct cm_id *id);
/* Returns the XRC domain of all identifiers of the device. Holds the world itself. NULL with errno. */
struct ibv_xrcd *cm_device_xrcd(struct cm_device *device);
struct cm_device *cm_device_of(struct cm *cm, const struct sim_device *device);

/* --- address.c --- */

/* Returns the length of an address; 0 for NULL and for unknown families. */
socklen_t cm_address_bytes(const struct sockaddr *address);
bool cm_address_is_any(const struct sockaddr *address);
bool cm_address_is_loopback(const struct sockaddr *address);
bool cm_address_is_home(const struct sockaddr *address);  /* 127.0.0.1 or ::1 */
bool cm_address_is_group(const struct sockaddr *address); /* a multicast address */
bool cm_address_is_same(const struct sockaddr *a, const struct sockaddr *b);
/* Returns true if an interface of this machine has the address, or it is a loopback address. */
bool cm_address_is_local(const struct sockaddr *address);
uint16_t cm_address_port(const struct sockaddr *address); /* host order */
void cm_address_set_port(struct sockaddr *address, uint16_t port);
/* Return the address as a GID (IPv4 is mapped), and a GID as an address with port 0. */
union ibv_gid cm_address_gid(const struct sockaddr *address);
void cm_address_from_gid(const union ibv_gid *gid, int family, struct sockaddr_storage *address);
bool cm_gid_is_link_local(const union ibv_gid *gid); /* of IPv6 */
/* Writes the address as text; returns `text`. */
const char *cm_address_text(const struct sockaddr *address, char *text, size_t size_bytes);

/* Finds the entry of a device's GID table that is the address. */
bool cm_find_gid(struct cm *cm, const union ibv_gid *gid, struct cm_place *place);
/* Finds an entry of the device's GID tables for packets to the destination: of the same family on
 * Ethernet. */
bool cm_find_source(struct device *device, const union ibv_gid *dest, struct cm_place *place);
/* Returns the device that stands for addresses that no device has: the first one with a port that is up. */
struct device *cm_first_device(struct cm *cm);

/* --- resolve.c --- */

/* Reserves a port for the identifier, whose source address is set. 0, or an errno with a sentence. */
int cm_bind_port(struct cm_id *id, const char *call);

/* --- qp.c --- */

/* Move the identifier's QP, if it has one. They hold the world themselves. 0, or -1 with errno. */
int cm_qp_to_rtr(struct cm_id *id, uint8_t responder_resources);
int cm_qp_to_rts(struct cm_id *id, uint8_t initiator_depth);
int cm_qp_to_err(struct cm_id *id);

/* --- connect.c --- */

/* Takes the steps after a REP: moves the QP to RTS and sends the RTU. Holds the world itself. Returns 0, or
 * -1 with errno. */
int cm_follow_reply(struct cm_id *id, const char *call);

/* --- multicast.c --- */

/* Attaches the identifier's QP when the program takes the event of a join. Holds the world itself. */
int cm_group_attach(struct cm_group *group);
/* The memberships end with the identifier. */
void cm_groups_end(struct cm_id *id);

#endif
