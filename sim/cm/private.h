/* SPDX-License-Identifier: MIT */
/* The parts of a communication and of the connection manager. Private to sim/cm. */
#ifndef SIM_CM_PRIVATE_H
#define SIM_CM_PRIVATE_H

#include "sim/base/core.h"
#include "sim/cm/cm.h"
#include "sim/cm/index.h"
#include "sim/net/gsi.h"
#include "sim/object/device.h"
#include "sim/wire/mad.h"

struct sim_cm {
	struct sim_timer timer; /* first: until an answer is due, or until the end of TIMEWAIT */
	struct sim_engine *engine;
	void *user;
	enum sim_cm_state state;
	uint32_t local_id;
	uint32_t remote_id; /* 0: not known */
	uint64_t peer;	    /* the process of the peer, while this one watches it; 0: none */
	/* The peer is dead, and its farewell waits until then for the answer of this side's program. 0: not known. */
	uint64_t farewell_ns;
	/* The process whose request this side has taken, while the way out knows that; 0: none. */
	uint64_t requester;
	uint64_t transaction_id;

	/* The path to the peer's QP 1. */
	struct sim_path path;
	uint16_t pkey; /* of the messages */

	/* The last message of this side. It is sent again when the peer repeats its message, and by the
	 * timer in a state that waits for an answer. */
	uint8_t mad[SIM_MAD_BYTES];
	uint64_t timeout_ns; /* the timeout of one message, without an MRA */
	uint64_t wait_ns;    /* the time until the timer fires next */
	uint8_t max_cm_retries;
	uint8_t repetitions; /* that are left */

	/* The connection. */
	enum ibv_qp_type qp_type; /* of this side */
	struct ibv_ah_attr attr;
	enum ibv_mtu mtu;
	uint16_t pkey_index;
	uint32_t local_qpn, remote_qpn;
	uint32_t sq_psn, rq_psn;
	uint8_t responder_resources, initiator_depth; /* of this side */
	uint8_t retry_count, rnr_retry_count;
	uint8_t ack_timeout; /* of the QP; also the length of TIMEWAIT. 4.096 us * 2^n */
	bool alternate_path; /* the REQ names one, which is refused */
	struct sim_cm_node by_remote_id;  /* the peer's CA GUID and communication ID */
	struct sim_cm_node by_remote_qpn; /* the peer's CA GUID and QPN */

	/* The service ID of a listener or of a request. */
	uint64_t service_id;
	uint8_t address[16];
	uint32_t service_flags;		 /* enum sim_service_flag, of a listener */
	const struct sim_device *device; /* NULL: of any */
	bool reserved_by_listen;
	struct sim_cm_node by_service; /* a listener's service ID */
	struct sim_cm_node by_request; /* of a SIDR_REQ: the sender's address and request ID */
};

/* A received message that is queued for sim_cm_run(). */
struct sim_cm_arrival {
	struct sim_cm_arrival *next;
	struct sim_port *port;
	struct sim_route route;
	uint64_t process;  /* the sender, as in struct sim_gsi_message */
	uint64_t until_ns; /* of a request that waits for a listener: the end of the wait; else 0 */
	uint16_t pkey;
	uint8_t mad[SIM_MAD_BYTES];
};

/* A service ID that this engine has reserved. */
struct sim_cm_reservation {
	struct sim_cm_reservation *next; /* of the bucket */
	uint64_t service_id;
	uint8_t address[16];
	uint32_t flags; /* enum sim_service_flag */
	bool listens;	/* a communication listens */
};

struct sim_cm_manager {
	struct sim_timer watch; /* first: until the next look at the processes of peers */
	bool watch_is_told; /* the way out reports ended processes: looks are needed only until watch_until_ns */
	uint64_t watch_until_ns, watch_wait_ns;
	struct sim_timer patience;	/* until the next look for listeners */
	uint64_t patience_ns;		/* the time that a request waits for a listener */
	struct sim_cm_arrival *patient; /* requests that wait for a listener */
	uint32_t patient_count;
	struct sim_engine *engine;
	struct sim_cm_owner owner;
	struct sim_table table; /* communications by their ID */
	uint32_t random;	/* the high half of transaction IDs */
	struct sim_cm_arrival *first, **end, *spare;
	uint32_t arrivals; /* counts the allocated arrivals; at most SIM_CM_WAITING_MAX */
	/* By sim_cm_index_bucket() of the service ID. */
	struct sim_cm_reservation *reservations[SIM_CM_BUCKETS];
	struct sim_cm_index by_remote_id, by_remote_qpn, by_service, by_request;
};

/* Returns 4.096 us * 2^code; for codes of six bits, at most 2.4 hours. */
static inline uint64_t sim_cm_time_ns(unsigned int code)
{
	return UINT64_C(4096) << (code < 31 ? code : 31);
}

/* Linux drivers/infiniband/core/cm.c, cm_ack_timeout: the code of twice the life time of a packet and the
 * delay of an ACK, rounded up where one is half of the other or more. */
uint8_t sim_cm_ack_timeout(unsigned int ack_delay, unsigned int packet_life_time);

/* --- cm.c --- */

/* Raises an event with the owner, and returns the owner's answer. */
enum sim_cm_verdict sim_cm_tell(struct sim_cm *cm, const struct sim_cm_event *event);
void sim_cm_tell_plainly(struct sim_cm *cm, enum sim_cm_event_kind kind,
			 const uint8_t *private_data, size_t private_bytes);

/* Adds a message to the end of sim_cm_run()'s queue. */
void sim_cm_queue(struct sim_cm_manager *manager, struct sim_cm_arrival *arrival);
/* Keeps the memory of a message for the next message. */
void sim_cm_spare(struct sim_cm_manager *manager, struct sim_cm_arrival *arrival);

/* Changes the state and stops the timer. In IDLE it forgets the peer, after TIMEWAIT the QPN. */
void sim_cm_enter(struct sim_cm *cm, enum sim_cm_state state);

/* Enters TIMEWAIT and starts its timer. */
void sim_cm_enter_timewait(struct sim_cm *cm);

/* --- send.c --- */

/* Sends the last message again. */
void sim_cm_repeat(struct sim_cm *cm);

/* Answers a message without a communication: a REJ, DREP, APR or SIDR_REP. */
void sim_cm_refuse(const struct sim_gsi_message *message, const uint8_t *answer);

/* Fills in the attributes of the path by which answers to a message go. Nonzero if the port does not have the
 * address that the message came to. */
int sim_cm_answer_attr(const struct sim_gsi_message *message, struct ibv_ah_attr *attr);

/* Returns the path by which answers to a message go. Nonzero if there is none. */
int sim_cm_answer_path(const struct sim_gsi_message *message, struct sim_path *path);

/* The timer of a state that waits for an answer. */
sim_timer_fn sim_cm_expire;

/* --- request.c --- */

/* Writes the path and the connection into a REQ. */
void sim_cm_write_req(struct sim_cm *cm, const struct sim_cm_request *request, uint8_t *mad);

/* Reads a REQ that came to a port. Returns the reason of a REJ, with its additional information; 0: the REQ
 * is right. */
unsigned int sim_cm_read_req(struct sim_cm *cm, const struct sim_gsi_message *message,
			     struct sim_cm_request *request, const void **info, size_t *info_bytes);

/* Checks the attributes of a path to a peer, and resolves the way to the peer's QP 1. */
int sim_cm_resolve(struct sim_cm *cm, struct sim_device *device, const struct sim_cm_path *path);

/* --- service.c --- */

/* Returns the listener for a request; NULL if nobody listens in this engine. */
struct sim_cm *sim_cm_find_listener(const struct sim_cm_manager *manager,
				    const struct sim_device *device,
				    const struct sim_gsi_target *target);

/* Returns the service ID and IP address for which a REQ or SIDR_REQ asks. */
struct sim_gsi_target sim_cm_request_target(const uint8_t *mad);

/* A listener ends. */
void sim_cm_close_service(struct sim_cm *cm);

/* Removes all reservations; or only forgets them, if they belong to another process. */
void sim_cm_services_destroy(struct sim_cm_manager *manager);
void sim_cm_services_forget(struct sim_cm_manager *manager);

/* --- find.c --- */

/* Finds the communication that a message is for; NULL: none. */
struct sim_cm *sim_cm_find(const struct sim_cm_manager *manager, const uint8_t *mad,
			   enum sim_cm_message message);

/* Returns the communication that was made for a REQ or SIDR_REQ that came by a route; NULL: none. */
struct sim_cm *sim_cm_find_taken(const struct sim_cm_manager *manager, const uint8_t *mad,
				 const struct sim_route *route);

/* The key of a SIDR_REQ in by_request. */
struct sim_cm_key sim_cm_request_key(const uint8_t *mad, const struct sim_route *route);

/* Returns the communication of this engine that has sent a REQ or SIDR_REQ and waits for the answer; NULL:
 * none. */
struct sim_cm *sim_cm_find_sender(const struct sim_cm_manager *manager, const uint8_t *mad);

static inline bool sim_cm_is_request(enum sim_cm_message message)
{
	return message == SIM_CM_REQ || message == SIM_CM_SIDR_REQ;
}

/* Returns the communication ID of the sender of a REQ or SIDR_REQ. */
uint32_t sim_cm_sender_id(const uint8_t *mad);

/* Returns the process that takes a message of this engine to a port; 0: this one, or the engine has no way out. */
uint64_t sim_cm_server(const struct sim_cm_manager *manager, const struct sim_port *port,
		       const uint8_t *mad);

/* The communication was made for a request of a process (0: one that the way out does not know), which sends
 * repetitions of the request here until the communication forgets the request. */
void sim_cm_take_request(struct sim_cm *cm, uint64_t process);
void sim_cm_forget_request(struct sim_cm *cm);

/* --- peer.c --- */

/* Watches the process that a request goes to, or that has sent a message; 0: watches none. If the process dies, or is
 * dead, the communication takes the message that a kernel would have sent. */
void sim_cm_watch(struct sim_cm *cm, uint64_t process);

/* The function of the timer `watch`. */
sim_timer_fn sim_cm_look_at_peers;

/* --- patience.c --- */

/* Puts a request without a listener into the list of waiting requests. Returns false if the message does not
 * wait: the caller receives it now. */
bool sim_cm_wait_for_listener(struct sim_cm_manager *manager, struct sim_cm_arrival *arrival);

/* Drops the waiting requests. */
void sim_cm_drop_patient(struct sim_cm_manager *manager);

/* The function of the timer `patience`. */
sim_timer_fn sim_cm_look_for_listeners;

/* --- receive.c --- */

/* Takes the step that the table has for the state and a message. */
void sim_cm_step(struct sim_cm *cm, enum sim_cm_message kind,
		 const struct sim_gsi_message *message);

/* Finds the communication of a message, and takes the step that the table has for its state and the
 * message. */
void sim_cm_receive(struct sim_cm_manager *manager, const struct sim_gsi_message *message);

#endif
