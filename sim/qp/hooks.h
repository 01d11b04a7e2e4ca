/* SPDX-License-Identifier: MIT */
/*
 * Where a device may leave the specification: a QP without hooks does what the specification says.
 * sim/rxe/ fills the table with SoftRoCE's bugs.
 */
#ifndef SIM_QP_HOOKS_H
#define SIM_QP_HOOKS_H

#include "sim/object/path.h"
#include "sim/qp/qp.h"

struct sim_cqe;
struct sim_consequence;
struct sim_resource;
struct sim_send_wqe;
enum sim_verdict;

/* What happens instead of a retry. */
enum sim_retry {
	SIM_RETRY_FREE = 1 << 0,  /* the retry is not counted */
	SIM_RETRY_LATER = 1 << 1, /* the requester goes back when the RNR timer has fired */
	SIM_RETRY_NEVER = 1 << 2, /* nothing is repeated */
};

enum sim_gate;

/* Every function is there. */
struct sim_hooks {
	/* The QP is made: allocates what the hooks keep for it. ENOMEM. */
	int (*attach)(struct sim_qp *qp);
	void (*detach)(struct sim_qp *qp);
	/* True if the device does not raise an event. */
	bool (*withholds)(const struct sim_qp *qp, enum ibv_event_type type);

	/* Attributes: true if the device takes a value that the specification refuses. */
	bool (*takes_value)(const struct sim_qp *qp, const struct sim_port *port, int attr_bit,
			    const struct ibv_qp_attr *attr);
	/* True if IBV_QP_PATH_MIG_STATE may be set on the way to a state, and means nothing. */
	bool (*ignores_path_state)(const struct sim_qp *qp, enum ibv_qp_state to);
	/* The attributes that a modify is about to set; the hook may change them. */
	void (*adapt)(struct sim_qp *qp, struct ibv_qp_attr *attr, int attr_mask);
	/* What ibv_query_qp(3) answers; the hook may change it. */
	void (*query)(const struct sim_qp *qp, struct ibv_qp_attr *attr);
	/* The QP has entered a state by a modify. */
	void (*entered)(struct sim_qp *qp, enum ibv_qp_state from, enum ibv_qp_state to);
	/* The QP is about to be reset; true if its completer goes on as if it repeated. */
	bool (*reset)(struct sim_qp *qp);
	/* The QP enters ERR of itself or by a modify. */
	void (*fail)(struct sim_qp *qp);

	/* Posting: an errno for a WR that the device refuses; full: the queue has no room. */
	int (*vet_send)(const struct sim_qp *qp, const struct ibv_send_wr *wr, bool full);
	/* A send was posted in ERR. */
	void (*posted_in_error)(struct sim_qp *qp);

	/* The requester's turn begins; true if the hook did all of it. */
	bool (*turn)(struct sim_qp *qp);
	/* What keeps the next packet back, given what the specification says. */
	enum sim_gate (*gate)(const struct sim_qp *qp, const struct sim_send_wqe *wqe,
			      enum sim_gate gate);
	/* False if the send queue still drains. */
	bool (*is_drained)(const struct sim_qp *qp);
	/* A send has failed here; the hook may change the status. True if this ended the QP. */
	bool (*send_failed)(struct sim_qp *qp, const struct sim_send_wqe *wqe,
			    enum ibv_wc_status *status);
	/* True if a local error moves a UC or UD QP to ERR. */
	bool (*send_error_ends)(const struct sim_qp *qp);
	/* A local operation comes again behind a send that is repeated; false if it fails now. */
	bool (*repeat_local)(const struct sim_qp *qp, const struct sim_send_wqe *wqe);
	/* The RNR timer has fired; the hook wakes the requester. */
	void (*rnr_over)(struct sim_qp *qp);

	/* True if the ack timer must be stopped, given what the specification says. */
	bool (*timer_stands)(const struct sim_qp *qp, bool stands);
	/* The requester is about to go back: enum sim_retry. */
	unsigned int (*retry)(struct sim_qp *qp, bool for_rnr);
	/* An answer has come; false if it is dropped. The hook may change the packet. */
	bool (*answer)(struct sim_qp *qp, struct sim_packet *packet);
	/* True if a READ response is taken whatever the path MTU is; *last if it ends the READ. */
	bool (*takes_response)(const struct sim_qp *qp, const struct sim_send_wqe *wqe,
			       uint32_t bytes, bool *last);
	/* A send's completion; the hook may change it. */
	void (*send_completed)(const struct sim_qp *qp, const struct sim_send_wqe *wqe,
			       struct sim_cqe *cqe);

	/* The responder: what follows from a verdict; the hook may change it. */
	void (*judged)(const struct sim_qp *qp, enum sim_verdict verdict,
		       struct sim_consequence *consequence);
	/* UC refuses a packet; true if the hook has done what follows. */
	bool (*uc_refused)(struct sim_qp *qp, const struct sim_packet *packet,
			   enum sim_verdict verdict);
	/* True if UC drops the message that begins. */
	bool (*uc_drops)(const struct sim_qp *qp);
	/* An RNR NAK waits to be sent. */
	void (*rnr_nak)(struct sim_qp *qp);
	/* True if the ACK that a repeated packet draws leaves before the next packet comes. */
	bool (*acks_at_once)(const struct sim_qp *qp);
	/* An atomic has been answered. */
	void (*atomic_answered)(struct sim_qp *qp, uint32_t psn);
	/* A receive's completion, NULL packet: flushed or failed here; the hook may change it. */
	void (*recv_completed)(const struct sim_qp *qp, const struct sim_packet *packet,
			       struct sim_cqe *cqe);

	/* A datagram's GRH as it is stored; the hook may change it. */
	void (*grh)(const struct sim_qp *qp, const struct sim_route *route, uint8_t grh[40]);
	/* A packet that the QP does not admit. */
	void (*refused)(struct sim_qp *qp, const struct sim_packet *packet,
			const struct sim_route *route);
};

#endif
