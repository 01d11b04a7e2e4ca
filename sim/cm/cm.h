/* SPDX-License-Identifier: MIT */
/*
 * The connection manager of an engine: the communication management of chapter 12 of the InfiniBand
 * specification, by datagrams of QP 1. A communication is one end of a connection that is made, held or
 * ended; or a service that waits for requests; or a query for the QP of a datagram service (SIDR).
 *
 * Nothing here blocks, and nothing calls back but struct sim_cm_owner. A function that sends a message
 * returns as soon as the message is on its way; repetitions are the timers' work. Errors are errno
 * values, each with its reason (sim_refuse()): EINVAL for a communication that is in another state, or
 * for a value that its message cannot hold, ENOMEM, and those that the functions name.
 */
#ifndef SIM_CM_CM_H
#define SIM_CM_CM_H

#include "sim/object/device.h"
#include "sim/wire/mad.h"

#include <infiniband/verbs.h>

struct sim_cm;

/* The bytes of private data that each message has: InfiniBand, chapter 12.6. */
enum {
	SIM_CM_REQ_PRIVATE_BYTES = 92,
	SIM_CM_MRA_PRIVATE_BYTES = 222,
	SIM_CM_REJ_PRIVATE_BYTES = 148,
	SIM_CM_REP_PRIVATE_BYTES = 196,
	SIM_CM_RTU_PRIVATE_BYTES = 224,
	SIM_CM_DREQ_PRIVATE_BYTES = 220,
	SIM_CM_DREP_PRIVATE_BYTES = 224,
	SIM_CM_SIDR_REQ_PRIVATE_BYTES = 216,
	SIM_CM_SIDR_REP_PRIVATE_BYTES = 136,
	SIM_CM_REJ_ARI_BYTES = 72,
	SIM_CM_SIDR_REP_INFO_BYTES = 72,
};

/* The most communications of an engine, and the most messages that may be queued. Further ones are dropped
 * and counted (SIM_DISCARD_CM_FULL). */
#define SIM_CM_MAX	   65536u
#define SIM_CM_WAITING_MAX 1024u

/* Linux include/rdma/ib_cm.h, enum ib_cm_rej_reason: those that the connection manager itself gives. */
enum sim_cm_reject {
	SIM_CM_REJ_TIMEOUT = 4,
	SIM_CM_REJ_INVALID_SERVICE_ID = 8,
	SIM_CM_REJ_INVALID_TRANSPORT = 9,
	SIM_CM_REJ_STALE_CONNECTION = 10,
	SIM_CM_REJ_INVALID_GID = 12,
	SIM_CM_REJ_INVALID_LID = 13,
	SIM_CM_REJ_INVALID_MTU = 26,
	SIM_CM_REJ_CONSUMER = 28,
};

/* Linux include/rdma/ib_cm.h, enum ib_cm_sidr_status. */
enum sim_cm_sidr_status {
	SIM_CM_SIDR_SUCCESS = 0,
	SIM_CM_SIDR_UNSUPPORTED = 1,
	SIM_CM_SIDR_REJECT = 2,
};

enum sim_cm_state {
	SIM_CM_IDLE,
	SIM_CM_LISTEN,
	SIM_CM_REQ_SENT,
	SIM_CM_REQ_RCVD,
	SIM_CM_MRA_REQ_SENT,
	SIM_CM_MRA_REQ_RCVD,
	SIM_CM_REP_SENT,
	SIM_CM_REP_RCVD,
	SIM_CM_MRA_REP_SENT,
	SIM_CM_MRA_REP_RCVD,
	SIM_CM_ESTABLISHED,
	SIM_CM_DREQ_SENT,
	SIM_CM_DREQ_RCVD,
	SIM_CM_TIMEWAIT,
	SIM_CM_SIDR_REQ_SENT,
	SIM_CM_SIDR_REQ_RCVD,
	SIM_CM_STATES,
};

/* Private data of a message. Shorter data are padded with zeros. */
struct sim_cm_private {
	const void *data;
	size_t bytes;
};

/* The way of a connection, as the REQ describes it. */
struct sim_cm_path {
	/* The destination, the source GID's index and the port of this side. */
	struct ibv_ah_attr attr;
	uint16_t pkey;
	enum ibv_mtu mtu;
	uint8_t packet_life_time; /* 4.096 us * 2^n; six bits */
};

/* A REQ. In an event, the fields have the values of the sender, and the path leads back to the sender. */
struct sim_cm_request {
	uint64_t service_id;
	struct sim_cm_path path;
	uint64_t ca_guid; /* of the sender; filled in by sim_cm_send_req() */
	uint32_t qpn;
	enum ibv_qp_type qp_type; /* RC, UC, XRC_SEND */
	uint32_t starting_psn;
	uint32_t qkey;
	uint8_t responder_resources;
	uint8_t initiator_depth;
	uint8_t remote_response_timeout; /* 4.096 us * 2^n, from here on */
	uint8_t local_response_timeout;
	uint8_t retry_count;	 /* of the QPs */
	uint8_t rnr_retry_count; /* of the QPs */
	uint8_t max_cm_retries;
	bool flow_control;
	bool srq;
	uint32_t vendor_id;   /* of ECE; 0: none. Linux ibta_vol1_c12.h, CM_REQ_VENDOR_ID */
	uint32_t ece_options; /* the message's attribute modifier */
	struct sim_cm_private private_data;
};

struct sim_cm_reply {
	uint64_t ca_guid; /* filled in by sim_cm_send_rep() */
	uint32_t qpn;
	uint32_t starting_psn;
	uint32_t qkey;
	uint8_t responder_resources;
	uint8_t initiator_depth;
	uint8_t target_ack_delay;
	uint8_t failover_accepted;
	uint8_t rnr_retry_count;
	bool flow_control;
	bool srq;
	uint32_t vendor_id;
	uint32_t ece_options; /* the message's attribute modifier */
	struct sim_cm_private private_data;
};

struct sim_cm_rejection {
	uint16_t reason; /* InfiniBand, 12.6.7.2: IB_CM_REJ_* of Linux ib_cm.h */
	const void *ari;
	size_t ari_bytes;
	struct sim_cm_private private_data;
};

/* A SIDR_REQ. */
struct sim_cm_query {
	uint64_t service_id;
	struct sim_cm_path path;
	uint8_t timeout; /* 4.096 us * 2^n for each of max_cm_retries + 1 messages */
	uint8_t max_cm_retries;
	struct sim_cm_private private_data;
};

/* A SIDR_REP. */
struct sim_cm_answer {
	uint8_t status; /* InfiniBand, 12.11.2.1; 0: the QP serves */
	uint32_t vendor_id, ece_options;
	uint32_t qpn, qkey;
	const void *info;
	size_t info_bytes;
	struct sim_cm_private private_data;
};

/* The events of a communication. */
enum sim_cm_event_kind {
	SIM_CM_EVENT_REQ, /* of a listener: `cm` is a new communication, in REQ_RCVD */
	SIM_CM_EVENT_REP, /* in REP_RCVD */
	SIM_CM_EVENT_RTU, /* an RTU, or a packet that shows the connection: ESTABLISHED */
	SIM_CM_EVENT_REJ, /* in IDLE or TIMEWAIT */
	SIM_CM_EVENT_MRA,
	SIM_CM_EVENT_DREQ,	/* in DREQ_RCVD */
	SIM_CM_EVENT_DREP,	/* in TIMEWAIT */
	SIM_CM_EVENT_REQ_ERROR, /* no answer to a REQ or REP has arrived: IDLE or TIMEWAIT */
	SIM_CM_EVENT_REP_ERROR,
	SIM_CM_EVENT_DREQ_ERROR,
	SIM_CM_EVENT_TIMEWAIT_EXIT, /* in IDLE: the QP may be used again */
	SIM_CM_EVENT_SIDR_REQ,	    /* of a listener: `cm` is new, in SIDR_REQ_RCVD */
	SIM_CM_EVENT_SIDR_REP,
	SIM_CM_EVENT_SIDR_ERROR,
};

/* The pointers are valid during the call. The private data are padded to their full length. */
struct sim_cm_event {
	enum sim_cm_event_kind kind;
	struct sim_cm *listener; /* of REQ and SIDR_REQ */
	union {
		struct sim_cm_request request;
		struct sim_cm_reply reply;
		struct sim_cm_rejection rejection;
		struct sim_cm_query query;
		struct sim_cm_answer answer;
		struct sim_cm_private private_data; /* of all others */
	};
};

/* The owner's answer to a REQ or SIDR_REQ. */
enum sim_cm_verdict {
	SIM_CM_TAKEN,
	SIM_CM_REFUSED, /* the new communication ends with a REJ (reason 28, consumer), or a SIDR_REP (status 2) */
	SIM_CM_NO_ROOM, /* a REQ is dropped and counted, and the peer repeats the REQ; a SIDR_REQ is refused */
};

struct sim_cm_owner {
	void *arg;
	/* An event of a communication. The owner may call any function of this header but sim_cm_destroy()
	 * of `cm` and its listener. The answer matters for a REQ or SIDR_REQ only. */
	enum sim_cm_verdict (*event)(void *arg, struct sim_cm *cm,
				     const struct sim_cm_event *event);
};

/* Gives the engine an owner of its communications, and QP 1 of its ports to the connection manager. Call it
 * once, before any communication is made. Returns 0 or ENOMEM. */
int sim_cm_start(struct sim_engine *engine, const struct sim_cm_owner *owner);

/* Sets the time that a request without a listener waits for a listener, before the REJ or the SIDR_REP. The
 * default is 0, as in Linux. */
void sim_cm_set_patience(struct sim_engine *engine, uint64_t patience_ns);

/* Ends the connection manager, without a message; no communication may be left. sim_engine_destroy() calls
 * this. */
void sim_cm_stop(struct sim_engine *engine);

/*
 * In the child of a fork(), where other processes have the same ports: the connections, requests and
 * services now belong to the parent only. The child's communications go to IDLE without a message, its
 * listeners get no requests, and its next communication IDs are new ones.
 */
void sim_cm_forked(struct sim_engine *engine);

/* Call this when the owner's process ends. Sends the messages of sim_cm_destroy() to all peers, and keeps
 * the communications. Returns true if a message was sent. */
bool sim_cm_leave(struct sim_engine *engine);

/* Call this when a process of the world may have ended or is about to. Communications with peers in it are
 * told. */
void sim_cm_processes_ended(struct sim_engine *engine);

/* Handles the oldest message that waits; sim_engine_run() calls this. Returns true if there is more
 * to do. */
bool sim_cm_run(struct sim_engine *engine);

/* Makes a communication in IDLE. `user` belongs to the owner. */
int sim_cm_create(struct sim_engine *engine, void *user, struct sim_cm **cm);

/* Ends a communication in any state as Linux drivers/infiniband/core/cm.c, cm_destroy_id() does: a REQ
 * that waits is rejected, a connection is asked to end. Its QPN's timewait goes on without it. */
void sim_cm_destroy(struct sim_cm *cm);

enum sim_cm_state sim_cm_state(const struct sim_cm *cm);

/* Returns a state's name: "REQ_SENT". */
const char *sim_cm_state_name(enum sim_cm_state state);

/* Returns what a communication in a state does with a message, in a few words; NULL: it drops the
 * message. */
const char *sim_cm_step_about(enum sim_cm_state state, enum sim_cm_message message);

/* Returns the device by which the messages go; of a request, the device to which it came. NULL before the
 * first message. */
struct sim_device *sim_cm_device(const struct sim_cm *cm);

void *sim_cm_user(const struct sim_cm *cm);
void sim_cm_set_user(struct sim_cm *cm, void *user);

/* --- services --- */

/*
 * Reserves a service ID at an address (sim/net/service_address.h, with its flags) for this engine, in all
 * processes of its world, until sim_cm_unreserve(). EADDRINUSE: the service ID is reserved at this address.
 * EADDRNOTAVAIL: the service ID is reserved at another address, and one of the two addresses stands for all
 * addresses. A listener does not share its service ID.
 */
int sim_cm_reserve(struct sim_engine *engine, uint64_t service_id, const uint8_t address[16],
		   uint32_t flags);
void sim_cm_unreserve(struct sim_engine *engine, uint64_t service_id, const uint8_t address[16]);

/* Listens for requests to a service ID that come to any device (NULL) or to one, and whose private data
 * names the IP address; a wildcard stands for many addresses. EADDRINUSE, EADDRNOTAVAIL: the service ID has
 * another reservation, shared or not. */
int sim_cm_listen(struct sim_cm *cm, uint64_t service_id, const struct sim_device *device,
		  const uint8_t address[16]);

/* --- messages --- */

int sim_cm_send_req(struct sim_cm *cm, struct sim_device *device,
		    const struct sim_cm_request *request);
int sim_cm_send_rep(struct sim_cm *cm, const struct sim_cm_reply *reply);
int sim_cm_send_rtu(struct sim_cm *cm, const struct sim_cm_private *private_data);
int sim_cm_send_rej(struct sim_cm *cm, const struct sim_cm_rejection *rejection);
/* service_timeout: 4.096 us * 2^n that the peer shall wait. */
int sim_cm_send_mra(struct sim_cm *cm, uint8_t service_timeout,
		    const struct sim_cm_private *private_data);
/* As sim_cm_send_mra(), but sends the MRA when the first duplicate of the peer's message comes. A program that
 * answers before costs no MRA. Linux include/rdma/ib_cm.h, IB_CM_MRA_FLAG_DELAY. */
int sim_cm_prepare_mra(struct sim_cm *cm, uint8_t service_timeout);
int sim_cm_send_dreq(struct sim_cm *cm, const struct sim_cm_private *private_data);
int sim_cm_send_drep(struct sim_cm *cm, const struct sim_cm_private *private_data);
int sim_cm_send_sidr_req(struct sim_cm *cm, struct sim_device *device,
			 const struct sim_cm_query *query);
int sim_cm_send_sidr_rep(struct sim_cm *cm, const struct sim_cm_answer *answer);

/*
 * Call this when the QP has received a packet before the RTU (IBV_EVENT_COMM_EST): the connection is
 * established. Raises SIM_CM_EVENT_RTU before it returns. Returns EISCONN if the connection was established
 * before.
 */
int sim_cm_notify(struct sim_cm *cm);

/* Fills in the attributes for the step of the QP to attr->qp_state (INIT, RTR, RTS), and their mask. */
int sim_cm_init_qp_attr(const struct sim_cm *cm, struct ibv_qp_attr *attr, int *attr_mask);

/* Return the communication's ID and the peer's (0: not known), for messages and logs. */
uint32_t sim_cm_local_id(const struct sim_cm *cm);
uint32_t sim_cm_remote_id(const struct sim_cm *cm);

#endif
