/* SPDX-License-Identifier: MIT */
/*
 * Queue pairs, as the engine's owner and the network see them. What a QP consists of is in
 * sim/qp/private.h.
 */
#ifndef SIM_QP_QP_H
#define SIM_QP_QP_H

#include "sim/base/core.h"
#include "sim/object/ah.h"
#include "sim/object/cq.h"
#include "sim/object/device.h"
#include "sim/object/memory.h"
#include "sim/object/srq.h"
#include "sim/object/xrcd.h"

struct vb_completion_why;
struct vb_packet;
struct sim_hooks;
struct sim_path;
struct sim_qp;

struct sim_qp_init {
	/* RC, UC, UD, XRC_SEND (no recv_cq), XRC_RECV (an xrcd, no CQ, no PD) */
	enum ibv_qp_type type;
	struct sim_srq *srq; /* receives come from there, or NULL */
	struct sim_xrcd *xrcd;
	uint32_t pd;
	struct sim_cq *send_cq;
	struct sim_cq *recv_cq;
	struct ibv_qp_cap cap;
	bool sig_all;
	uint32_t create_flags; /* those of the device's profile */
	void *user;
	uint32_t proxy_of; /* sim_qp_create_proxy() sets it */
};

/* On success init->cap holds what the QP really has. EINVAL, ENOMEM, EOPNOTSUPP (type). */
int sim_qp_create(struct sim_device *device, struct sim_qp_init *init, struct sim_qp **qp);
void sim_qp_destroy(struct sim_qp *qp);

/* Makes a proxy of another process's XRC target: see sim/qp/relay.h. */
int sim_qp_create_proxy(struct sim_device *device, uint32_t number, struct sim_qp **proxy);

uint32_t sim_qp_number(const struct sim_qp *qp);
enum ibv_qp_type sim_qp_type(const struct sim_qp *qp);
enum ibv_qp_state sim_qp_state(const struct sim_qp *qp);
struct sim_device *sim_qp_device(const struct sim_qp *qp);
uint32_t sim_qp_pd(const struct sim_qp *qp);
struct sim_xrcd *sim_qp_xrcd(const struct sim_qp *qp); /* of an XRC target; else NULL */
bool sim_qp_is_draining(const struct sim_qp *qp);

/* Returns true if a successful completion of the QP can be polled. */
bool sim_qp_has_completed(const struct sim_qp *qp);
bool sim_qp_signals_all(const struct sim_qp *qp);
uint32_t sim_qp_sends(const struct sim_qp *qp);	   /* posted, and not completed */
uint32_t sim_qp_receives(const struct sim_qp *qp); /* the same of its own receive queue */
void *sim_qp_user(const struct sim_qp *qp);
void sim_qp_set_user(struct sim_qp *qp, void *user);

/* ibv_modify_qp(3): EINVAL, ENOMEM, ENODATA; nothing is changed on an error. */
int sim_qp_modify(struct sim_qp *qp, const struct ibv_qp_attr *attr, int attr_mask);

/* Answers all attributes. */
void sim_qp_query(const struct sim_qp *qp, struct ibv_qp_attr *attr);

/* ibv_post_send(3), ibv_post_recv(3): EINVAL, ENOMEM, EFAULT (inline data that cannot be read),
 * with *bad at the first WR that was not taken. Nothing runs before sim_engine_run(). */
int sim_qp_post_send(struct sim_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int sim_qp_post_recv(struct sim_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

/* ibv_wr_complete(3): posts all of count WRs, or none. */
int sim_qp_post_batch(struct sim_qp *qp, struct ibv_send_wr *wr, uint32_t count);

/*
 * ibv_bind_mw(3) on a type 1 window: posts the binding (IBV_WR_BIND_MW is for type 2). *new_rkey
 * is the window's key from then on. EINVAL, ENOMEM.
 */
int sim_qp_post_bind(struct sim_qp *qp, struct sim_mr *mw, const struct ibv_mw_bind *bind,
		     uint32_t region_lkey, uint32_t *new_rkey);

/* What changes the state of a QP. */
enum sim_by {
	SIM_BY_MODIFY,
	SIM_BY_SEND,	/* a send has failed */
	SIM_BY_RECEIVE, /* a receive has failed, or a request was refused */
	SIM_BY_CQ,	/* a CQ has overrun */
	SIM_BY_DEVICE,	/* the device is dead */
	SIM_BY_DRAINED, /* the send queue is drained */
	SIM_BY_EVENT,	/* a test has raised an event that ends a QP */
	SIM_BYS,
};

/* Moves the QP to ERR; the requester's next turn flushes the QP's work. */
__attribute__((cold)) void sim_qp_fail(struct sim_qp *qp, enum sim_by by);

/* Reads the P_Key again after a change of the port's table. */
void sim_qp_read_pkey(struct sim_qp *qp);

/* Makes a QP follow its device's hooks, which have changed. ENOMEM. */
int sim_qp_set_hooks(struct sim_qp *qp, const struct sim_hooks *hooks);

/* Returns why the QP does not take a packet that has come to a port of its device;
 * SIM_DISCARD_NONE if the QP takes the packet. */
enum sim_discard sim_qp_objects(const struct sim_qp *qp, const struct sim_port *port,
				const struct sim_packet *packet, const struct sim_route *route);

/* Returns true if the QP takes packets of one peer only: it is no UD QP. */
bool sim_qp_is_connected(const struct sim_qp *qp);

/* Gives a packet that a connected QP takes to the QP. */
void sim_qp_give_packet(struct sim_qp *qp, const struct sim_packet *packet);

/* The same for a train of `count` packets (sim/wire/packet.h). Returns false if nothing has changed, and the packets
 * are to be given one by one: unless all of them are the expected ones, and none meets an error. */
bool sim_qp_take_train(struct sim_qp *qp, const struct sim_packet *train, unsigned int count);

/* Gives a packet to the QP, or returns why the QP (or NULL) does not take it. */
enum sim_discard sim_qp_take_packet(struct sim_qp *qp, const struct sim_port *port,
				    const struct sim_packet *packet, const struct sim_route *route);

/* Counts a packet that a port or a QP drops, and notes why. qp is NULL if no QP has the packet's
 * QPN. */
__attribute__((cold)) void sim_qp_discard(const struct sim_qp *qp, const struct sim_port *port,
					  const struct sim_packet *packet,
					  const struct sim_route *route, enum sim_discard cause);

/* Notes that a device drops a packet; packet, port and qp may be NULL. */
__attribute__((cold)) void sim_note_drop(struct sim_device *device, const struct sim_port *port,
					 const struct sim_qp *qp, const struct vb_packet *packet,
					 const struct vb_why *why);

/* Returns what the QP knows of a failed completion: fills in *why but for the QP's own name, which
 * is there, like why->send. Returns false if nothing is known. */
bool sim_qp_why(const struct sim_qp *qp, const struct ibv_wc *wc, struct vb_completion_why *why);

/* Gives a datagram that the QP admits to the QP. */
void sim_datagram_receive(struct sim_qp *qp, const struct sim_packet *packet,
			  const struct sim_route *route);

/* The turns of a QP's parts, which sim_engine_run() gives; true if there is more to do now. */
bool sim_requester_run(struct sim_qp *qp);
bool sim_responder_run(struct sim_qp *qp);

/* Returns true if an ACK is all that the responder has to send. */
bool sim_responder_owes_ack(const struct sim_qp *qp);

/* The QP asks the engine's outlet for room from now on, or does not: as the outlet has it. */
void sim_room_follow(struct sim_qp *qp);

/* There may be room: QPs that wait for room have their turns. */
void sim_room_ready(struct sim_engine *engine);

/* Takes the next QP off a list; NULL if the list is empty. Puts a QP on a list, once. */
struct sim_qp *sim_turn_take(struct sim_engine *engine, enum sim_turns which);
void sim_turn_ask(struct sim_qp *qp, enum sim_turns which);

#endif
