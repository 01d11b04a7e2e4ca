/* SPDX-License-Identifier: MIT */
/*
 * Queue pairs: the work queues, the attributes, and the parts of the requester, the responder and
 * the completer, each of which is written by its own file.
 */
#ifndef SIM_QP_QP_H
#define SIM_QP_QP_H

#include "sim/base/clock.h"
#include "sim/object/ah.h"
#include "sim/object/cq.h"
#include "sim/object/payload.h"
#include "sim/object/queue.h"
#include "sim/object/srq.h"
#include "sim/object/xrcd.h"
#include "sim/qp/outlet.h"
#include "sim/wire/opcode.h"

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

struct sim_engine;
struct sim_cq;

/* The most PSNs that a requester has unacknowledged. */
#define SIM_WINDOW_PACKETS 4096
/* The most packets that a QP sends before another has its turn. */
#define SIM_BURST_PACKETS 64
/* A requester asks for an acknowledgement at the end of a message and after this many packets. */
#define SIM_ACK_REQUEST_EVERY 32

struct sim_send_wqe {
	uint64_t wr_id;
	uint64_t remote_addr;
	union {
		struct {
			uint64_t compare_add;
			uint64_t swap;
		};
		uint64_t read_bytes; /* that a READ has, where responses may be long (a quirk) */
		struct {
			struct sim_ah *ah;
			uint32_t remote_qpn;
			uint32_t remote_qkey;
		};
		struct {
			uint64_t bind_length;
			uint32_t bind_mw;   /* its number */
			uint32_t bind_lkey; /* of the region */
		};
	};
	uint32_t rkey;
	uint32_t length; /* of the message */
	union {
		__be32 imm_data;
		uint32_t invalidate_rkey;
		int bind_access;
	};
	union {
		uint32_t xrc_srqn;
		uint32_t bind_old_rkey; /* as the program has it */
		uint32_t sge_bytes;	/* of an atomic (a quirk) */
	};
	uint32_t first_psn;
	uint32_t packets;   /* PSNs that the message takes */
	uint32_t answered;  /* PSNs of a READ whose response has come */
	uint8_t opcode;	    /* enum ibv_wr_opcode */
	uint8_t info_flags; /* enum sim_wr_flag */
	uint8_t wc_opcode;
	uint8_t send_flags; /* enum ibv_send_flags */
	uint8_t status;	    /* enum ibv_wc_status, once it is not SUCCESS */
	uint8_t num_sge;
	bool started;
	bool done;	      /* a local operation, while sends before it are unanswered */
	bool credited;	      /* counted in reads_outstanding */
	struct ibv_sge sge[]; /* or the inline data */
};

struct sim_requester {
	uint32_t psn;	   /* of the next message that starts */
	uint32_t sent_psn; /* behind the last that was ever sent */
	uint32_t next;	   /* the WQE that is being sent, a count of the send queue */
	uint32_t offset;   /* PSNs of it that are sent */
	uint8_t reads_outstanding;
	uint8_t since_ack_request;
	uint32_t ring_place; /* in ERR (a quirk): a count of the send queue */
	uint32_t ghosts;     /* empty requests that go before all others (a quirk) */
	bool flush_due;	     /* ERR was entered */
	bool waits_rnr;
	bool stopped; /* a WQE is in error and waits for those before it */
	struct sim_timer rnr_timer;
};

struct sim_completer {
	uint32_t psn; /* the oldest that is not acknowledged */
	uint8_t retries_left;
	uint8_t rnr_retries_left;
	bool repeating; /* went back, and nothing has been acknowledged since */
	/* Up to where an ACK acknowledged what was not sent (a quirk), and of which send. */
	bool ahead;
	uint32_t ahead_psn;
	uint32_t ahead_send;
	struct sim_timer ack_timer;
};

/* A READ or atomic that the responder answers, and remembers for its duplicates. */
struct sim_resource {
	uint64_t remote_addr;
	uint64_t original; /* what an atomic found */
	uint32_t rkey;
	uint32_t length;
	uint32_t first_psn;
	uint32_t packets;
	uint32_t next;	/* the packet to be sent next */
	uint32_t end;	/* the packets up to which it is sent */
	uint32_t limit; /* the bytes up to which it was asked for */
	uint32_t msn;
	uint32_t pd;
	uint8_t opcode; /* of the request */
	bool pending;
	bool replayed;	/* not for the first time */
	bool restarted; /* asked for again, perhaps from its middle: the next packet is a FIRST */
};

struct sim_responder {
	uint32_t psn; /* expected */
	uint32_t msn;
	uint32_t ack_psn;      /* of the last SEND or WRITE packet that came in order */
	uint32_t repeated_psn; /* of the last that came again */
	uint32_t in_message;   /* SIM_OP_SEND or SIM_OP_WRITE of the message in progress; else 0 */
	bool ack_pending;
	bool ack_repeated; /* and nothing but what came again draws it */
	bool nak_pending;
	bool nak_outstanding; /* one was sent; silent until the expected PSN comes */
	bool dropping;	      /* UC: the rest of this message is lost */
	bool jammed;	      /* UC: every message is (a quirk) */
	bool established;     /* a packet has come */
	bool recv_taken;      /* the receive WQE belongs to the message in progress */
	bool recv_held;	      /* recv_slot has been taken from the SRQ */
	bool last_wqe_told;   /* IBV_EVENT_QP_LAST_WQE_REACHED */
	struct sim_srq *srq;  /* that receives come from: the QP's own, or (XRC) the message's */
	uint32_t recv_slot;
	struct sim_recv_wqe *recv; /* while recv_taken or recv_held */
	struct sim_reach *recv_reach;
	uint8_t nak_syndrome;
	uint32_t nak_psn;
	/* The message in progress. */
	uint32_t received; /* bytes so far */
	uint32_t length;   /* of an RDMA WRITE */
	uint32_t rkey;
	uint64_t remote_addr; /* where an RDMA WRITE's first byte went */
	/* READs and atomics, oldest first, in a ring of max_dest_rd_atomic. */
	struct sim_resource *resources;
	uint8_t resource_size;
	uint8_t resource_head; /* where the next goes */
	uint8_t resource_count;
	uint8_t resources_pending; /* to be answered */
	uint8_t resources_new;	   /* those of them that have not been answered before */
};

/*
 * The QP at the other end of a connection without delay, as it was found: it admits our requests
 * or responses while the engine's epoch is this.
 */
struct sim_peer {
	struct sim_qp *qp;
	uint64_t request_epoch;
	uint64_t response_epoch;
};

struct sim_qp {
	struct sim_device *device;
	struct sim_engine *engine;
	void *user;
	uint32_t number;
	uint32_t pd;
	uint8_t type;	   /* enum ibv_qp_type */
	uint8_t state;	   /* enum ibv_qp_state */
	uint8_t transport; /* enum sim_transport */
	uint8_t sig_all;   /* IBV_SEND_SIGNALED, for every send, or 0 */
	bool block_self_multicast;
	bool posts_batch; /* ibv_wr_complete(3) posts, not ibv_post_send(3) */
	bool reliable;	  /* RC and XRC: requests are answered */
	bool sq_draining;
	bool drain_event; /* IBV_EVENT_SQ_DRAINED is asked for */
	bool flush_recvs; /* in ERR, receives are to be flushed */
	bool requester_listed;
	bool responder_listed;
	struct sim_cq *send_cq; /* none: XRC_RECV */
	struct sim_cq *recv_cq; /* none: XRC_SEND, XRC_RECV */
	struct sim_srq *srq;
	struct sim_xrcd *xrcd; /* XRC_RECV */
	struct sim_qp *next_requester;
	struct sim_qp *next_responder;

	/* What ibv_modify_qp sets. */
	uint16_t pkey_index;
	uint16_t pkey;		  /* what stands there */
	uint16_t pkey_index_told; /* by a query: pkey_index, or what was given (a quirk) */
	uint8_t port_num;
	uint8_t mtu; /* enum ibv_mtu */
	uint32_t mtu_bytes;
	uint32_t qkey;
	uint32_t dest_qpn;
	uint32_t rq_psn;
	uint32_t sq_psn;
	uint32_t access;
	uint8_t timeout;
	uint8_t retry_cnt;
	uint8_t rnr_retry;
	uint8_t min_rnr_timer;
	uint8_t max_rd_atomic;
	uint8_t max_dest_rd_atomic;
	uint32_t dest_qpn_told; /* by a query: dest_qpn, or what was given (a quirk) */
	struct ibv_ah_attr ah_attr;
	struct sim_path path;

	struct sim_peer peer;

	/* What completions give back: the queues; NULL where slots are free at once (a quirk). */
	struct sim_queue *sq_retires;
	struct sim_queue *rq_retires;

	uint32_t max_inline;
	struct sim_reach sq_reach;
	struct sim_reach rq_reach;
	struct sim_reach remote_reach; /* in the PD that remote keys are checked against */
	struct sim_queue sq;
	struct sim_queue rq;
	struct sim_requester req;
	struct sim_completer comp;
	struct sim_responder resp;
};

struct sim_qp_init {
	enum ibv_qp_type
		type; /* RC, UC, UD, XRC_SEND (no recv_cq), XRC_RECV (an xrcd, no CQ, no PD) */
	struct sim_srq *srq; /* receives come from there, or NULL */
	struct sim_xrcd *xrcd;
	uint32_t pd;
	struct sim_cq *send_cq;
	struct sim_cq *recv_cq;
	struct ibv_qp_cap cap;
	bool sig_all;
	uint32_t create_flags; /* of the profile's */
	void *user;
};

/* On success init->cap holds what the QP really has. EINVAL, ENOMEM, EOPNOTSUPP (type). */
int sim_qp_create(struct sim_device *device, struct sim_qp_init *init, struct sim_qp **qp);
void sim_qp_destroy(struct sim_qp *qp);

/* Ends all work without completions and forgets all but the attributes of creation. */
void sim_qp_reset(struct sim_qp *qp);

/* ibv_modify_qp(3): EINVAL, ENOMEM; nothing is changed on an error. */
int sim_qp_modify(struct sim_qp *qp, const struct ibv_qp_attr *attr, int attr_mask);

/* All attributes, whatever was asked for. */
void sim_qp_query(const struct sim_qp *qp, struct ibv_qp_attr *attr);

/* ibv_post_send(3), ibv_post_recv(3): EINVAL, ENOMEM, EFAULT (inline data that cannot be read),
 * with *bad at the first WR that was not taken. Nothing runs before sim_engine_run(). */
int sim_qp_post_send(struct sim_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int sim_qp_post_recv(struct sim_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

/*
 * ibv_bind_mw(3) on a type 1 window: posts the binding (IBV_WR_BIND_MW is for type 2). *new_rkey
 * is the window's key from then on. EINVAL, ENOMEM.
 */
int sim_qp_post_bind(struct sim_qp *qp, struct sim_mr *mw, const struct ibv_mw_bind *bind,
		     uint32_t region_lkey, uint32_t *new_rkey);

static inline struct sim_device *sim_qp_device(const struct sim_qp *qp)
{
	return qp->device;
}

static inline enum ibv_qp_type sim_qp_type(const struct sim_qp *qp)
{
	return qp->type;
}

static inline enum ibv_qp_state sim_qp_state(const struct sim_qp *qp)
{
	return qp->state;
}

/* Reads the P_Key again after a change of the port's table. */
void sim_qp_read_pkey(struct sim_qp *qp);

/* True if the QP takes a packet that has come to a port of its device. */
bool sim_qp_admits(const struct sim_qp *qp, const struct sim_port *port,
		   const struct sim_packet *packet, const struct sim_route *route);

/* Gives a packet to the QP; false if the QP (or NULL) does not admit it. */
bool sim_qp_take_packet(struct sim_qp *qp, const struct sim_port *port,
			const struct sim_packet *packet, const struct sim_route *route);

static inline struct sim_send_wqe *sim_qp_send_wqe(const struct sim_qp *qp, uint32_t count)
{
	return sim_queue_slot(&qp->sq, count);
}

static inline struct sim_recv_wqe *sim_qp_recv_wqe(const struct sim_qp *qp, uint32_t count)
{
	return sim_queue_slot(&qp->rq, count);
}

/* The next receive WQE without taking it; NULL for none. */
struct sim_recv_wqe *sim_qp_peek_recv(const struct sim_qp *qp);

/* From the SRQ: one that a lost message left, or the oldest. */
bool sim_qp_take_shared(struct sim_qp *qp);

/* Takes it, from the SRQ if there is one, for the message in progress; false for none. */
static inline bool sim_qp_take_recv(struct sim_qp *qp)
{
	struct sim_responder *resp = &qp->resp;

	if (resp->srq)
		return sim_qp_take_shared(qp);
	if (qp->rq.tail == qp->rq.head)
		return false;
	resp->recv = sim_qp_recv_wqe(qp, qp->rq.tail);
	resp->recv_taken = true;
	return true;
}

/* Puts the QP on the engine's list, for sim_engine_run(). */
void sim_qp_list_requester(struct sim_qp *qp);
void sim_qp_list_responder(struct sim_qp *qp);

static inline void sim_qp_wake_requester(struct sim_qp *qp)
{
	if (!qp->requester_listed)
		sim_qp_list_requester(qp);
}

static inline void sim_qp_wake_responder(struct sim_qp *qp)
{
	if (!qp->responder_listed)
		sim_qp_list_responder(qp);
}

/* Moves the QP to ERR of itself; its work is flushed by the requester's next turn. */
void sim_qp_fail(struct sim_qp *qp);
/* In ERR already, as if it were entered (a quirk). */
void sim_qp_fail_again(struct sim_qp *qp);

/* Raises an asynchronous event of the QP. */
void sim_qp_event(struct sim_qp *qp, enum ibv_event_type type);

/* Ends the oldest send WQE, with a completion where one is due. */
void sim_qp_complete_send(struct sim_qp *qp, enum ibv_wc_status status);

/* Ends all sends, or all receives, with IBV_WC_WR_FLUSH_ERR. */
void sim_qp_flush_sends(struct sim_qp *qp);
void sim_qp_flush_recvs(struct sim_qp *qp);

/* The turns of the parts; true where there is more to do now. */
bool sim_requester_run(struct sim_qp *qp);
bool sim_responder_run(struct sim_qp *qp);

/* A packet for the QP has come. */
void sim_responder_receive(struct sim_qp *qp, const struct sim_packet *packet);
void sim_completer_receive(struct sim_qp *qp, const struct sim_packet *packet);
void sim_datagram_receive(struct sim_qp *qp, const struct sim_packet *packet,
			  const struct sim_route *route);

/* One WQE of an unconnected QP: SUCCESS once it is sent, or its local error. */
enum ibv_wc_status sim_datagram_send(struct sim_qp *qp, struct sim_send_wqe *wqe);

/* Goes back to a PSN that was sent: the next packet is that one. */
void sim_requester_rewind(struct sim_qp *qp, uint32_t psn);

/* Behind a send that failed here nothing is repeated, and no answer is taken any more (a quirk):
 * Linux 6.1 drivers/infiniband/sw/rxe/rxe_req.c, rxe_requester, and rxe_comp.c, need_retry. False where
 * it is not so. */
bool sim_completer_jam(struct sim_qp *qp);

/* Starts, restarts after progress, or stops the ack timer as there are unacknowledged packets. */
void sim_completer_rewatch(struct sim_qp *qp, bool progress);

static inline void sim_completer_watch(struct sim_qp *qp, bool progress)
{
	/* Sending while the timer runs changes nothing. */
	if (progress || qp->comp.ack_timer.deadline_ns == SIM_NEVER)
		sim_completer_rewatch(qp, progress);
}

/* Whether a send that was sent waits for READs and atomics behind it to be sent again (a quirk). */
static inline bool sim_requester_jams(const struct sim_qp *qp, const struct sim_send_wqe *wqe)
{
	return (wqe->send_flags & IBV_SEND_FENCE) && qp->req.reads_outstanding &&
	       qp->device->quirks.repeated_fences_wait_for_all;
}

/* Timers, given to sim_timer_init(). */
void sim_requester_rnr_over(struct sim_timer *timer);
void sim_completer_timeout(struct sim_timer *timer);

/* Fills spans for [offset, offset + bytes) of a receive WQE; -1 where it may not be written. */
static inline int sim_qp_scatter(struct sim_qp *qp, const struct sim_recv_wqe *wqe, uint32_t offset,
				 uint32_t bytes, struct sim_span *spans)
{
	return sim_gather(qp->resp.recv_reach, wqe->sge, wqe->num_sge, offset, bytes,
			  IBV_ACCESS_LOCAL_WRITE, spans);
}

/*
 * Ends the receive WQE of the message in progress. packet has the immediate data or the key, and
 * whether it is solicited; NULL for none.
 */
void sim_qp_complete_recv(struct sim_qp *qp, const struct sim_packet *packet,
			  enum ibv_wc_status status, enum ibv_wc_opcode opcode, uint32_t byte_len,
			  unsigned int wc_flags);

/* The send WQE at sq.tail is in error and nothing stands before it: ends it, and stops the QP. */
void sim_requester_give_up(struct sim_qp *qp, enum ibv_wc_status status);

/* Finds the peer of a connected QP again, if packets reach it at once and it admits this one, and
 * notes the epoch; false if the packet has to go through the network. */
bool sim_peer_find(struct sim_qp *qp, uint64_t *epoch, const struct sim_packet *packet);

/* True if a packet may be handed to the peer as it is; counts the packet. */
static inline bool sim_hand_over(struct sim_qp *qp, uint64_t *epoch,
				 const struct sim_packet *packet)
{
	struct sim_engine *engine = qp->engine;

	if (*epoch != engine->epoch && !sim_peer_find(qp, epoch, packet))
		return false;
	qp->device->counters.sent_packets++;
	qp->peer.qp->device->counters.received_packets++;
	return true;
}

/* A connected QP's packet to its peer: to the peer's responder, or to its completer. */
static inline void sim_send_request(struct sim_qp *qp, struct sim_packet *packet)
{
	if (sim_hand_over(qp, &qp->peer.request_epoch, packet))
		sim_responder_receive(qp->peer.qp, packet);
	else
		qp->engine->outlet->send(qp->engine, &qp->path, packet);
}

static inline void sim_send_response(struct sim_qp *qp, struct sim_packet *packet)
{
	if (sim_hand_over(qp, &qp->peer.response_epoch, packet))
		sim_completer_receive(qp->peer.qp, packet);
	else
		qp->engine->outlet->send(qp->engine, &qp->path, packet);
}

#endif
