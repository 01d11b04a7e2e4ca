/* SPDX-License-Identifier: MIT */
/*
 * What a QP consists of. Private to sim/qp/ and sim/rxe/.
 *
 * Each part has one file that writes it; other files call that file's functions, which stand behind
 * the part here:
 *
 *     req    requester.c    what was sent, and what is sent next
 *     comp   completer.c    what was acknowledged, and the ack timer
 *     resp   responder.c    what is expected, and what has to be answered
 *     rx     receive.c      the receive WQE of the message in progress
 *     sq     send.c, post.c the send queue: its tail, its head
 *     peer   admission.c    the QP at the other end
 */
#ifndef SIM_QP_PRIVATE_H
#define SIM_QP_PRIVATE_H

#include "sim/object/cq.h"
#include "sim/object/payload.h"
#include "sim/object/queue.h"
#include "sim/object/rules.h"
#include "sim/qp/hooks.h"
#include "sim/qp/outlet.h"
#include "sim/qp/qp.h"
#include "sim/qp/verdict.h"
#include "sim/wire/opcode.h"

/* The most PSNs that a requester has unacknowledged. */
#define SIM_WINDOW_PACKETS 4096
/* The most packets that a QP sends before another QP has its turn. */
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
			uint32_t sge_bytes; /* the sum of the SGEs */
		} atomic;
		struct {
			uint64_t read_bytes; /* that have come */
		} read;
		struct {
			struct sim_ah *ah; /* NULL for a WQE in error */
			uint32_t remote_qpn;
			uint32_t remote_qkey;
		} ud;
		struct {
			uint64_t length;
			uint32_t mw;	   /* its number */
			uint32_t lkey;	   /* of the region */
			uint32_t old_rkey; /* as the program has it */
			int access;
		} bind;
	};
	uint32_t rkey;
	uint32_t length; /* of the message */
	union {
		__be32 imm_data;
		uint32_t invalidate_rkey;
	};
	uint32_t xrc_srqn;
	uint32_t first_psn;
	uint32_t packets;  /* PSNs that the message takes */
	uint32_t answered; /* PSNs of a READ whose response has come */
	struct sim_wr_info info;
	uint8_t opcode;	    /* enum ibv_wr_opcode */
	uint8_t send_flags; /* enum ibv_send_flags */
	uint8_t status;	    /* enum ibv_wc_status, once it is not SUCCESS */
	bool started;	    /* it has its PSNs */
	bool done;	    /* a local operation, while sends before it are unanswered */
	bool credited;	    /* counted in reads_outstanding */
	uint8_t num_sge;
	struct ibv_sge sge[]; /* or the inline data */
};

/* What keeps the requester's next packet back. */
enum sim_gate {
	SIM_GATE_OPEN,
	SIM_GATE_EMPTY,	 /* no work */
	SIM_GATE_RNR,	 /* the peer had no receive WR */
	SIM_GATE_ERROR,	 /* a WQE in error waits for those before it */
	SIM_GATE_DRAIN,	 /* SQD starts nothing new */
	SIM_GATE_FENCE,	 /* IBV_SEND_FENCE behind READs and atomics */
	SIM_GATE_READS,	 /* max_rd_atomic are outstanding */
	SIM_GATE_WINDOW, /* too much is unacknowledged */
	SIM_GATE_STATE,	 /* the QP's state sends nothing */
	SIM_GATES,
};

extern const char *const sim_gate_names[SIM_GATES];

struct sim_requester {
	uint32_t psn;	   /* of the next message that starts */
	uint32_t sent_psn; /* behind the last that was ever sent */
	uint32_t next;	   /* the WQE that is being sent, a count of the send queue */
	uint32_t offset;   /* PSNs of it that are sent */
	uint8_t reads_outstanding;
	uint8_t since_ack_request;
	bool waits_rnr;
	bool stopped; /* a WQE is in error and waits for those before it */
	struct sim_timer rnr_timer;
};

/* The steps of the completer on an answer. */
enum sim_completer_state {
	SIM_COMPLETER_CHECK_PSN,
	SIM_COMPLETER_ACKNOWLEDGE, /* what stands before the answer's PSN, or with an ACK at it */
	SIM_COMPLETER_CHECK_ACK,
	SIM_COMPLETER_READ,
	SIM_COMPLETER_ATOMIC,
	SIM_COMPLETER_WRITE, /* ATOMIC WRITE */
	SIM_COMPLETER_RNR_NAK,
	SIM_COMPLETER_SEQUENCE_NAK,
	SIM_COMPLETER_RETRY,
	SIM_COMPLETER_FAIL,   /* the oldest send ends in error */
	SIM_COMPLETER_UPDATE, /* the timer, and the requester */
	SIM_COMPLETER_DONE,
	SIM_COMPLETER_STATES,
};

extern const char *const sim_completer_state_names[SIM_COMPLETER_STATES];

struct sim_completer {
	uint32_t psn; /* the oldest that is not acknowledged */
	uint8_t retries_left;
	uint8_t rnr_retries_left;
	bool repeating; /* set while the requester went back and nothing was acknowledged since */
	struct sim_timer ack_timer;
};

/* A READ or atomic that the responder answers, and remembers for its duplicates. */
struct sim_resource {
	uint64_t remote_addr;
	uint64_t original; /* the value that an atomic found */
	uint32_t rkey;
	uint32_t length;
	uint32_t first_psn;
	uint32_t packets;
	uint32_t next;	/* the packet to be sent next */
	uint32_t end;	/* the packets up to which it is sent */
	uint32_t limit; /* the bytes up to which the requester asks for it */
	uint32_t msn;
	uint32_t pd;
	uint8_t opcode; /* of the request */
	bool pending;
	bool replayed;	/* not for the first time */
	bool restarted; /* the requester asks again, perhaps from the middle: the next is a FIRST */
};

/* The steps of the responder on a request. */
enum sim_responder_state {
	SIM_RESPONDER_CHECK_PSN,
	SIM_RESPONDER_CHECK_SEQUENCE,
	SIM_RESPONDER_CHECK_SRQ,
	SIM_RESPONDER_CHECK_REQUEST, /* rights, lengths, receive WR, memory */
	SIM_RESPONDER_EXECUTE,
	SIM_RESPONDER_INVALIDATE,
	SIM_RESPONDER_COMPLETE,
	SIM_RESPONDER_ACKNOWLEDGE,
	SIM_RESPONDER_REPEAT,
	SIM_RESPONDER_REFUSE,
	SIM_RESPONDER_DONE,
	SIM_RESPONDER_STATES,
};

extern const char *const sim_responder_state_names[SIM_RESPONDER_STATES];

/* Which packets an ACK that waits is for. */
enum sim_ack {
	SIM_ACK_NONE,
	SIM_ACK_DUPLICATE, /* packets that came again, and nothing else */
	SIM_ACK_IN_ORDER,
};

struct sim_responder {
	uint32_t psn; /* expected */
	uint32_t msn;
	uint32_t ack_psn;    /* of the last SEND or WRITE packet that came in order */
	uint32_t in_message; /* SIM_OP_SEND or SIM_OP_WRITE of the message in progress; else 0 */
	uint8_t ack;	     /* enum sim_ack */
	bool nak_pending;
	bool nak_outstanding; /* a NAK was sent; the responder is silent until the expected PSN comes */
	bool dropping;	      /* UC: the rest of this message is lost */
	bool established;     /* a packet has come */
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

/* The receive side: where receive WQEs come from, and the one of the message in progress. */
struct sim_receive {
	struct sim_srq *srq; /* the QP's own, or (XRC) the message's; NULL: the receive queue */
	struct sim_cq *cq;   /* NULL: XRC_SEND; XRC_RECV before the first message */
	struct sim_reach *reach;
	struct sim_recv_wqe *wqe; /* while taken or held */
	uint32_t slot;		  /* of the SRQ, while held */
	uint32_t srq_number;	  /* XRC: the SRQ may end while a message is in progress */
	bool taken;		  /* wqe belongs to the message in progress */
	bool held;		  /* wqe has been taken from the SRQ */
	bool flush_due;		  /* in ERR: receives are to be flushed */
	bool last_wqe_raised;	  /* IBV_EVENT_QP_LAST_WQE_REACHED */
};

/*
 * The QP at the other end of a connection without delay: it admits our requests or responses while
 * the engine's epoch is this.
 */
struct sim_peer {
	struct sim_qp *qp;
	uint64_t request_epoch;
	uint64_t response_epoch;
};

struct sim_qp {
	struct sim_device *device;
	struct sim_engine *engine;
	const struct sim_hooks *hooks; /* NULL: the QP does what the specification says */
	struct sim_rxe *rxe;	       /* what the hooks keep */
	void *user;
	uint32_t number;
	uint32_t pd;
	uint8_t type;	   /* enum ibv_qp_type */
	uint8_t state;	   /* enum ibv_qp_state */
	uint8_t transport; /* enum sim_transport */
	uint8_t sig_all;   /* IBV_SEND_SIGNALED, for every send, or 0 */
	bool block_self_multicast;
	bool posts_batch; /* set while ibv_wr_complete(3) posts, not ibv_post_send(3) */
	bool reliable;	  /* RC and XRC: requests are answered */
	bool sq_draining;
	bool drain_event; /* the program asked for IBV_EVENT_SQ_DRAINED */
	bool requester_listed;
	bool responder_listed;
	struct sim_cq *send_cq; /* NULL: XRC_RECV */
	struct sim_srq *srq;
	struct sim_xrcd *xrcd; /* XRC_RECV */
	struct sim_qp *next_requester;
	struct sim_qp *next_responder;

	/* What ibv_modify_qp sets. */
	uint16_t pkey_index;
	uint16_t pkey; /* at that index of the port's table */
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
	struct ibv_ah_attr ah_attr;
	struct sim_path path;

	struct sim_peer peer;

	/* The queues that completions give slots back to; NULL: slots are free at once (a quirk). */
	struct sim_queue *sq_retires;
	struct sim_queue *rq_retires;

	uint32_t max_inline;
	bool has_rq; /* receives are posted to the QP itself */
	struct sim_reach sq_reach;
	struct sim_reach rq_reach;
	struct sim_reach remote_reach; /* in the PD that remote keys are checked against */
	struct sim_queue sq;
	struct sim_queue rq;
	struct sim_requester req;
	struct sim_completer comp;
	struct sim_responder resp;
	struct sim_receive rx;
};

/* True unless the device leaves out a rule of the specification. */
static inline bool sim_rule_holds(const struct sim_qp *qp, enum sim_rule rule)
{
	return !qp->hooks || sim_device_obeys(qp->device, rule);
}

static inline struct sim_send_wqe *sim_qp_send_wqe(const struct sim_qp *qp, uint32_t count)
{
	return sim_queue_slot(&qp->sq, count);
}

static inline struct sim_recv_wqe *sim_qp_recv_wqe(const struct sim_qp *qp, uint32_t count)
{
	return sim_queue_slot(&qp->rq, count);
}

/* --- qp.c --- */

/* Raises an asynchronous event of the QP. */
void sim_qp_event(struct sim_qp *qp, enum ibv_event_type type);

/* Ends all work without completions and forgets all but the attributes of creation. */
void sim_qp_reset(struct sim_qp *qp);

/* A completion did not fit its CQ, which is dead now: ends the QP, so that no completion is lost in
 * silence. */
void sim_qp_cq_died(struct sim_qp *qp);

/* --- attr.c --- */

/* IBV_EVENT_SQ_DRAINED is raised although the program did not ask for it. */
void sim_qp_ask_drained_event(struct sim_qp *qp);

/* --- turn.c --- */

static inline void sim_qp_wake_requester(struct sim_qp *qp)
{
	if (!qp->requester_listed)
		sim_turn_ask_requester(qp);
}

static inline void sim_qp_wake_responder(struct sim_qp *qp)
{
	if (!qp->responder_listed)
		sim_turn_ask_responder(qp);
}

/* A QP that is reset or ends has no turns. */
void sim_turn_cancel(struct sim_qp *qp);

/* --- send.c: the oldest sends end --- */

/* Ends the oldest send WQE, with a completion if one is due. */
void sim_send_complete(struct sim_qp *qp, enum ibv_wc_status status);

/* Ends all sends with IBV_WC_WR_FLUSH_ERR. */
void sim_send_flush(struct sim_qp *qp);

/* Ends all sends without completions. */
void sim_send_drop(struct sim_qp *qp);

/* --- receive.c: receive WQEs are taken and end --- */

void sim_receive_init(struct sim_qp *qp, struct sim_cq *cq);
void sim_receive_reset(struct sim_qp *qp);

/* The next receive WQE without taking it; NULL if there is none. */
const struct sim_recv_wqe *sim_receive_peek(const struct sim_qp *qp);

/* Takes a receive WQE from the SRQ: the one that an abandoned message left, or the oldest. */
bool sim_receive_take_shared(struct sim_qp *qp);
bool sim_receive_take_queued(struct sim_qp *qp);

/* Takes a receive WQE for the message in progress; false if there is none. */
static inline bool sim_receive_take(struct sim_qp *qp)
{
	return qp->rx.srq ? sim_receive_take_shared(qp) : sim_receive_take_queued(qp);
}

/* The message in progress is abandoned: its receive WQE is the next message's. */
void sim_receive_untake(struct sim_qp *qp);

/* Finds the WQE of the message in progress again: its SRQ may have grown, or (XRC) have ended. */
void sim_receive_refind(struct sim_qp *qp);

/* XRC: the message's receives come from an SRQ of the QP's domain; false if the number is of no
 * such SRQ. */
bool sim_receive_enter_srq(struct sim_qp *qp, uint32_t srq_number);

/* In ERR: notes that receives are to be flushed; flushes them. */
void sim_receive_flush_later(struct sim_qp *qp);
void sim_receive_flush(struct sim_qp *qp);

/* IBV_EVENT_QP_LAST_WQE_REACHED is raised once more by the next flush. */
void sim_receive_rearm_last_wqe(struct sim_qp *qp);

/* Fills spans for [offset, offset + bytes) of a receive WQE; -1 if it may not be written. */
static inline int sim_receive_scatter(struct sim_qp *qp, const struct sim_recv_wqe *wqe,
				      uint32_t offset, uint32_t bytes, struct sim_span *spans)
{
	return sim_gather(qp->rx.reach, wqe->sge, wqe->num_sge, offset, bytes,
			  IBV_ACCESS_LOCAL_WRITE, spans);
}

/* Ends the receive WQE of the message in progress. packet has the immediate data or the key, and
 * whether the completion is solicited; NULL: flushed, or failed here. */
void sim_receive_complete(struct sim_qp *qp, const struct sim_packet *packet,
			  enum ibv_wc_status status, enum ibv_wc_opcode opcode, uint32_t byte_len,
			  unsigned int wc_flags);

/* The completion did not fit its CQ: gives the slot back that no completion will give back, and ends
 * the QP. */
void sim_receive_died(struct sim_qp *qp);

/* The SRQ's slot is free when the completion is polled, or (a quirk) at once. */
void sim_receive_retire_shared(struct sim_qp *qp, struct sim_cqe *cqe);

static inline void sim_receive_retire(struct sim_qp *qp, struct sim_cqe *cqe)
{
	if (qp->rx.srq) {
		sim_receive_retire_shared(qp, cqe);
		return;
	}
	qp->rq.tail++;
	cqe->retires = qp->rq_retires;
	cqe->retire_to = qp->rq.tail;
	if (!qp->rq_retires)
		qp->rq.freed = qp->rq.tail;
}

/* What the completion of a receive says of the packet that ended it. */
static inline void sim_receive_describe(const struct sim_qp *qp, struct sim_cqe *cqe,
					const struct sim_packet *packet)
{
	struct ibv_wc *wc = &cqe->wc;

	if (wc->wc_flags & IBV_WC_WITH_IMM)
		wc->imm_data = packet->imm_data;
	else if (wc->wc_flags & IBV_WC_WITH_INV)
		wc->invalidated_rkey = packet->rkey;
	wc->src_qp = packet->source_qpn;
	wc->pkey_index = qp->pkey_index;
	wc->slid = packet->slid;
	wc->sl = packet->sl;
	cqe->solicited = packet->flags & SIM_PACKET_SOLICITED;
}

/* sim_receive_complete(), inline: the last packet of each message comes here. */
__attribute__((always_inline)) static inline void sim_receive_finish(
	struct sim_qp *qp, const struct sim_packet *packet, enum ibv_wc_status status,
	enum ibv_wc_opcode opcode, uint32_t byte_len, unsigned int wc_flags)
{
	struct sim_receive *rx = &qp->rx;
	struct sim_cq *cq = rx->cq;
	struct sim_cqe *cqe;

	rx->taken = false;
	if (!sim_cq_has_room(cq)) {
		sim_receive_died(qp);
		return;
	}
	cqe = sim_cq_next(cq);
	cqe->wc = (struct ibv_wc){
		.wr_id = rx->wqe->wr_id,
		.status = status,
		.opcode = opcode,
		.byte_len = byte_len,
		.qp_num = qp->number,
		.wc_flags = wc_flags,
	};
	cqe->solicited = false;
	if (packet)
		sim_receive_describe(qp, cqe, packet);
	cqe->timestamp_ns = qp->engine->clock.now_ns;
	if (qp->hooks)
		qp->hooks->recv_completed(qp, packet, cqe);
	sim_receive_retire(qp, cqe);
	sim_cq_commit(cq, cqe);
}

/* --- requester.c --- */

void sim_requester_init(struct sim_qp *qp);
void sim_requester_reset(struct sim_qp *qp);

/* The PSN of the first packet that is sent. */
void sim_requester_set_psn(struct sim_qp *qp, uint32_t psn);

/* A datagram has left. */
void sim_requester_datagram_sent(struct sim_qp *qp);

/* Goes back to a PSN that was sent: the next packet is that one. */
void sim_requester_rewind(struct sim_qp *qp, uint32_t psn);

/* Does not send again what was just acknowledged. */
void sim_requester_skip(struct sim_qp *qp, uint32_t psn);

/* A send WQE ends. */
void sim_requester_release(struct sim_qp *qp, struct sim_send_wqe *wqe);

/* In RTS again: a WQE in error no longer stops the sends behind it. */
void sim_requester_resume(struct sim_qp *qp);

/* The peer had no receive WR: waits as long as the syndrome's timer says. */
void sim_requester_wait_rnr(struct sim_qp *qp, unsigned int timer_code);
void sim_requester_end_rnr_wait(struct sim_qp *qp);

/* What was sent and not acknowledged is never sent again, and no answer to it is expected. */
void sim_requester_forget_sent(struct sim_qp *qp);

/* Stops the timer of a QP in ERR or RESET. */
void sim_requester_stop(struct sim_qp *qp);

/* The oldest send WQE is in error: ends it, and stops the QP. */
void sim_requester_give_up(struct sim_qp *qp, enum ibv_wc_status status);

/* Flushes a QP in ERR or SQE: the sends, and in ERR the receives. */
void sim_requester_flush(struct sim_qp *qp, bool sends);

/* Sends an RDMA WRITE of no bytes that no WQE asked for. */
void sim_requester_send_empty(struct sim_qp *qp);

/* --- completer.c --- */

void sim_completer_init(struct sim_qp *qp);
void sim_completer_reset(struct sim_qp *qp, bool repeating);
void sim_completer_set_psn(struct sim_qp *qp, uint32_t psn);

/* The counts of retries begin anew. */
void sim_completer_restore_retries(struct sim_qp *qp);

/* An answer has come. */
void sim_completer_receive(struct sim_qp *qp, const struct sim_packet *packet);

/* Stops the ack timer. */
void sim_completer_stop(struct sim_qp *qp);

/* Starts the ack timer, restarts it after progress, or stops it if nothing is unacknowledged. */
void sim_completer_rewatch(struct sim_qp *qp, bool progress);

static inline void sim_completer_watch(struct sim_qp *qp, bool progress)
{
	/* Sending while the timer runs changes nothing. */
	if (progress || qp->comp.ack_timer.deadline_ns == SIM_NEVER)
		sim_completer_rewatch(qp, progress);
}

/* --- responder.c --- */

void sim_responder_init(struct sim_qp *qp);
void sim_responder_reset(struct sim_qp *qp);
void sim_responder_set_psn(struct sim_qp *qp, uint32_t psn);
void sim_responder_set_ack_psn(struct sim_qp *qp, uint32_t psn);

/* Takes memory for the READs and atomics that the responder may hold. */
void sim_responder_set_resources(struct sim_qp *qp, struct sim_resource *resources, uint8_t count);
void sim_responder_free_resources(struct sim_qp *qp);

/* A request has come. */
void sim_responder_receive(struct sim_qp *qp, const struct sim_packet *packet);

/* The first packet of a connection, or of a UD QP, has come: IBV_EVENT_COMM_EST in RTR. */
void sim_responder_establish(struct sim_qp *qp);

/* A sequence NAK may follow the NAK that waits. */
void sim_responder_nak_again(struct sim_qp *qp);

/* --- datagram.c --- */

/* Sends one WQE of a UD QP: SUCCESS once it is sent, or its local error. */
enum ibv_wc_status sim_datagram_send(struct sim_qp *qp, struct sim_send_wqe *wqe);

/* --- admission.c --- */

/* True if the packet is from the other end of the QP's connection. */
bool sim_qp_is_from_peer(const struct sim_qp *qp, const struct sim_packet *packet,
			 const struct sim_route *route);

/* Finds the peer of a connected QP again, if packets reach it at once and it admits this one, and
 * notes the epoch; false if the packet has to go through the network. */
bool sim_peer_find(struct sim_qp *qp, uint64_t *epoch, const struct sim_packet *packet);

/* True if a packet may be handed to the peer as it is; counts the packet. */
static inline bool sim_hand_over(struct sim_qp *qp, uint64_t *epoch,
				 const struct sim_packet *packet)
{
	if (*epoch != qp->engine->epoch && !sim_peer_find(qp, epoch, packet))
		return false;
	qp->device->counters.sent_packets++;
	qp->peer.qp->device->counters.received_packets++;
	return true;
}

/* Sends a connected QP's packet to the peer's responder, or to the peer's completer. */
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
