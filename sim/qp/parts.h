/* SPDX-License-Identifier: MIT */
/*
 * What a QP consists of, as data. Private to sim/qp/ and sim/rxe/, like private.h, which has the
 * functions.
 *
 * Each part has one file that writes it; other files call that file's functions:
 *
 *     req    requester.c             the PSNs that were sent, and the next WQE to send
 *     comp   completer.c             the PSNs that were acknowledged, and the ack timer
 *     resp   responder.c, answer.c   the expected PSN, and the answers that are due
 *     rx     receive.c               the receive WQE of the message in progress
 *     sq     send.c, post.c          the send queue: its tail, its head
 *     burst, awaiting  room.c        whether the QP asks for room, and waits for it
 *     lane   room.c                  where the connection leads beyond the engine
 *     peer   admission.c             the QP at the other end
 *     relay  relay.c, relayed.c, responder.c
 *                                    requests for SRQs of other processes
 *     failures  failure.c            why work failed
 *     late   late.c                  the answers and the data of WRITEs that are kept back
 */
#ifndef SIM_QP_PARTS_H
#define SIM_QP_PARTS_H

#include "sim/object/lane.h"
#include "sim/object/payload.h"
#include "sim/object/queue.h"
#include "sim/qp/qp.h"
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
	uint8_t timeouts; /* counts ack timeouts since something was acknowledged */
	bool repeating;	  /* set while the requester went back and nothing was acknowledged since */
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
	bool known;	/* of an atomic with a holder: `original` has come */
	bool replayed;	/* not for the first time */
	bool restarted; /* the requester asks again, perhaps from the middle: the next is a FIRST */
	/* XRC, of an SRQ of another process: sim/qp/relay.h. */
	uint64_t holder;     /* the process; 0: this one */
	uint32_t srq_number; /* the SRQ */
	uint32_t asked;	     /* counts the packets whose data the holder was asked for */
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
	bool usual;	      /* requests need no look before they are taken */
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
	bool awaits_relay;	   /* the oldest pending READ or atomic waits for another process */
};

/* What a responder keeps back by its quirks: sim/qp/late.c. */
struct sim_late {
	struct sim_qp *qp;
	struct sim_timer timer;
	bool due;     /* the answers may leave */
	bool refused; /* the message at refused_psn drew an RNR NAK at its first attempt */
	uint32_t refused_psn;
	/* The data of an RDMA WRITE that are not in memory. */
	uint32_t bytes;
	uint32_t rkey;
	uint64_t addr;
	uint8_t data[SIM_PATH_MTU_MAX];
};

/* Requests of an XRC target for SRQs of another process: sim/qp/relay.h. */
struct sim_relay {
	uint64_t
		holder; /* the process that has the SRQ; of a proxy: the process that has the target */
	uint32_t
		ahead; /* PSNs from the oldest relayed request without an answer to the expected PSN */
	uint32_t acked; /* the last PSN that the proxy has answered; valid while ahead */
	uint8_t epoch;	/* counts refusals and resets; an answer to an older epoch is dropped */
	bool gap;	/* a request was dropped: a NAK asks for it after the last answer */
	bool refused;	/* a proxy: takes no request of this epoch any more */
};

/* The receive side: where receive WQEs come from, and the one of the message in progress. */
struct sim_receive {
	struct sim_srq *srq; /* the QP's own, or (XRC) the message's; NULL: the receive queue */
	/* NULL: XRC_SEND; XRC_RECV before the first message. Between an XRC target's messages the SRQ may have
	 * ended, and its CQ with it. */
	struct sim_cq *cq;
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
 * the engine's epoch is this. While an epoch is the complement of the engine's, no such QP was found.
 */
struct sim_peer {
	struct sim_qp *qp;
	uint64_t request_epoch;
	uint64_t response_epoch;
};

enum sim_flush {
	SIM_FLUSH_SENDS = 1 << 0,
	SIM_FLUSH_RECEIVES = 1 << 1,
};

/* A QP's place on a list of struct sim_engine. */
struct sim_turn {
	struct sim_qp *next;
	bool asked; /* the QP is on the list */
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
	uint8_t first_flush; /* enum sim_flush: queues whose next flush is the first since the program
				moved the QP to ERR */
	bool drain_event;    /* the program asked for IBV_EVENT_SQ_DRAINED */
	struct sim_cq *send_cq; /* NULL: XRC_RECV */
	struct sim_srq *srq;
	struct sim_xrcd *xrcd; /* XRC_RECV */
	struct sim_turn turns[SIM_TURNS];
	uint8_t burst;	  /* SIM_BURST_PACKETS; 0: the QP asks for room */
	uint8_t awaiting; /* the parts that wait for room: bits of enum sim_turns */

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
	struct sim_lane lane;

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
	bool proxy; /* of another process's XRC target */
	struct sim_relay relay;
	struct sim_qp *next_proxy;
	struct sim_late *late;	       /* NULL: the QP keeps nothing back */
	struct sim_failures *failures; /* NULL until something fails; see sim/qp/failure.h */
};

#endif
