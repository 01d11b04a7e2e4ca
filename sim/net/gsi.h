/* SPDX-License-Identifier: MIT */
/*
 * QP 1 of the ports, the general services interface (GSI). No program has this QP: the connection manager
 * sends by it, and receives what is a message of its class. Messages pass filters, links and the way out
 * as the packets of any QP.
 */
#ifndef SIM_NET_GSI_H
#define SIM_NET_GSI_H

#include "sim/object/counter.h"
#include "sim/object/path.h"
#include "sim/wire/mad.h"

#include <verbena/why.h>

struct sim_engine;
struct sim_net;

/* A message that has come to QP 1 of a port. The pointers are valid during the call. */
struct sim_gsi_message {
	struct sim_port *port;
	const uint8_t *mad; /* SIM_MAD_BYTES */
	const struct sim_route *route;
	uint16_t pkey;
	uint64_t process; /* the sender, as sim_way_out_arrive() says */
};

/* Whom a message is for, where several processes have the port that it goes to. */
struct sim_gsi_target {
	enum sim_gsi_kind {
		SIM_GSI_COMMUNICATION, /* the process that has the communication ID */
		SIM_GSI_REQUEST, /* the process that has taken the request of this engine's communication ID */
		SIM_GSI_SERVICE, /* the process that listens for the service ID at the address */
		SIM_GSI_EVERYBODY,
	} kind;
	uint32_t communication_id;
	uint64_t service_id;
	bool has_address;    /* the request names an IP address */
	uint8_t address[16]; /* the IP address as a GID */
};

/* Returns the IP address that a request names, for sim_service_suits(); NULL: none. */
static inline const uint8_t *sim_gsi_address(const struct sim_gsi_target *target)
{
	return target->has_address ? target->address : NULL;
}

struct sim_gsi {
	void *arg;
	/* Takes a message whose Q_Key, P_Key, length, class, versions and method are right. */
	void (*receive)(void *arg, const struct sim_gsi_message *message);
	/* Returns the process that takes a message to QP 1 of a port, as sim_way_out.server() says; 0: this one. Called
	 * if there is a way out. */
	uint64_t (*server)(void *arg, const struct sim_port *port, const uint8_t *mad);
	/* A message has left for the process that server() has returned, or has come to this one. Called if there is
	 * a way out. */
	void (*sent)(void *arg, const uint8_t *mad, uint64_t process);
};

/* Gives QP 1 of all ports a receiver; NULL: packets to QP 1 are dropped. The structure is copied. */
void sim_gsi_set(struct sim_engine *engine, const struct sim_gsi *gsi);

/* Sends a message from QP 1 of the path's port to QP 1 at its end. While the way out has no room for it, the
 * message waits (sim/net/gsi_line.h). */
void sim_gsi_send(struct sim_engine *engine, struct sim_path *path, uint16_t pkey,
		  const uint8_t *mad);

/* Forgets the messages that wait for room. */
void sim_gsi_forget(struct sim_engine *engine);

/* Counts and notes a message that the receiver drops: reason is a VB_LOSS of messages. */
void sim_gsi_drop(const struct sim_gsi_message *message, enum sim_discard cause,
		  enum vb_reason reason, uint64_t first, uint64_t second);

/* Private to sim/net: sends the messages that have waited for room, if there is room. */
void sim_gsi_release(struct sim_net *net);

/* Private to sim/net: a packet to QP 1 has come to a port; process: as sim_way_out_arrive() says. */
void sim_gsi_arrive(struct sim_port *port, const struct sim_packet *packet,
		    const struct sim_route *route, uint64_t process);

/* Private to sim/net: returns the process that takes a packet to QP 1 of a port; 0: this one. */
uint64_t sim_gsi_server(const struct sim_net *net, const struct sim_port *port,
			const struct sim_packet *packet);

/* Private to sim/net: a packet to QP 1 has left for a process, or has come to this one (0). */
void sim_gsi_sent(const struct sim_net *net, const struct sim_packet *packet, uint64_t process);

#endif
