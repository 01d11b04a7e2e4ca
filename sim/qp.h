/* SPDX-License-Identifier: MIT */
/*
 * Queue pairs: the work queues, the attributes, and the parts of the requester, the responder and
 * the completer, each of which is written by its own file.
 */
#ifndef SIM_QP_H
#define SIM_QP_H

#include "sim/clock.h"
#include "sim/device.h"
#include "sim/memory.h"
#include "sim/opcode.h"

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

struct sim_world;
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
		struct {
			struct sim_ah *ah;
			uint32_t remote_qpn;
			uint32_t remote_qkey;
		};
	};
	uint32_t rkey;
	uint32_t length; /* of the message */
	union {
		__be32 imm_data;
		uint32_t invalidate_rkey;
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
	bool credited;	      /* counted in reads_outstanding */
	struct ibv_sge sge[]; /* or the inline data */
};

struct sim_recv_wqe {
	uint64_t wr_id;
	uint32_t num_sge;
	uint32_t length; /* of all SGEs, at most UINT32_MAX */
	struct ibv_sge sge[];
};

/* A ring of slots of one size; the counts run on and wrap at 2^32. */
struct sim_queue {
	uint8_t *slots;
	uint32_t stride;
	uint32_t mask;
	uint32_t max_wr;
	uint32_t max_sge;
	uint32_t head;	/* posted */
	uint32_t tail;	/* oldest that has not ended (send), next to be taken (receive) */
	uint32_t freed; /* what the program has polled: slots before it may be used again */
};

static inline void *sim_queue_slot(const struct sim_queue *queue, uint32_t count)
{
	return queue->slots + (size_t)(count & queue->mask) * queue->stride;
}

static inline bool sim_queue_full(const struct sim_queue *queue)
{
	return queue->head - queue->freed >= queue->max_wr;
}

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

struct sim_completer {
	uint32_t psn; /* the oldest that is not acknowledged */
	uint8_t retries_left;
	uint8_t rnr_retries_left;
	bool repeating; /* went back, and nothing has been acknowledged since */
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
	uint8_t opcode; /* of the request */
	bool pending;
	bool replayed;	/* not for the first time */
	bool restarted; /* asked for again, perhaps from its middle: the next packet is a FIRST */
};

struct sim_responder {
	uint32_t psn; /* expected */
	uint32_t msn;
	uint32_t ack_psn;    /* of the last SEND or WRITE packet that came in order */
	uint32_t in_message; /* SIM_OP_SEND or SIM_OP_WRITE of the message in progress; else 0 */
	bool ack_pending;
	bool nak_pending;
	bool nak_outstanding; /* one was sent; silent until the expected PSN comes */
	bool dropping;	      /* UC: the rest of this message is lost */
	bool established;     /* a packet has come */
	bool recv_taken;      /* the receive WQE at rq.tail belongs to the message in progress */
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
 * or responses while the world's epoch is this.
 */
struct sim_peer {
	struct sim_qp *qp;
	uint64_t request_epoch;
	uint64_t response_epoch;
};

struct sim_qp {
	struct sim_device *device;
	struct sim_world *world;
	void *user;
	uint32_t number;
	uint32_t pd;
	uint8_t type;	   /* enum ibv_qp_type */
	uint8_t state;	   /* enum ibv_qp_state */
	uint8_t transport; /* enum sim_transport */
	uint8_t sig_all;   /* IBV_SEND_SIGNALED, for every send, or 0 */
	bool sq_draining;
	bool drain_event; /* IBV_EVENT_SQ_DRAINED is asked for */
	bool requester_listed;
	bool responder_listed;
	struct sim_cq *send_cq;
	struct sim_cq *recv_cq;
	struct sim_qp *next_requester;
	struct sim_qp *next_responder;

	/* What ibv_modify_qp sets. */
	uint16_t pkey_index;
	uint16_t pkey; /* what stands there */
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

	uint32_t max_inline;
	struct sim_mr_memo sq_memo;
	struct sim_mr_memo rq_memo;
	struct sim_mr_memo remote_memo;
	struct sim_queue sq;
	struct sim_queue rq;
	struct sim_requester req;
	struct sim_completer comp;
	struct sim_responder resp;
};

struct sim_qp_init {
	enum ibv_qp_type type;
	uint32_t pd;
	struct sim_cq *send_cq;
	struct sim_cq *recv_cq;
	struct ibv_qp_cap cap;
	bool sig_all;
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
 * with *bad at the first WR that was not taken. Nothing runs before sim_world_run(). */
int sim_qp_post_send(struct sim_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int sim_qp_post_recv(struct sim_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

static inline struct sim_send_wqe *sim_qp_send_wqe(const struct sim_qp *qp, uint32_t count)
{
	return sim_queue_slot(&qp->sq, count);
}

static inline struct sim_recv_wqe *sim_qp_recv_wqe(const struct sim_qp *qp, uint32_t count)
{
	return sim_queue_slot(&qp->rq, count);
}

/* Puts the QP on the world's list, for sim_world_run(). */
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

/* Starts, restarts after progress, or stops the ack timer as there are unacknowledged packets. */
void sim_completer_rewatch(struct sim_qp *qp, bool progress);

static inline void sim_completer_watch(struct sim_qp *qp, bool progress)
{
	/* Sending while the timer runs changes nothing. */
	if (progress || qp->comp.ack_timer.deadline_ns == SIM_NEVER)
		sim_completer_rewatch(qp, progress);
}

/* Timers, given to sim_timer_init(). */
void sim_requester_rnr_over(struct sim_timer *timer);
void sim_completer_timeout(struct sim_timer *timer);

/* sim_gather() in its general form. */
int sim_gather_pieces(const struct sim_qp *qp, struct sim_mr_memo *memo, const struct ibv_sge *sge,
		      unsigned int n, uint32_t offset, uint32_t bytes, int access,
		      struct sim_span *spans);

/*
 * Checks SGEs [0, n) of a work request for its local access (0: read) and fills spans for
 * [offset, offset + bytes) of the message. Returns the number of spans; -1 for a protection error.
 */
static inline int sim_gather(const struct sim_qp *qp, struct sim_mr_memo *memo,
			     const struct ibv_sge *sge, unsigned int n, uint32_t offset,
			     uint32_t bytes, int access, struct sim_span *spans)
{
	/* Mostly one SGE has it all. */
	if (n == 1 && bytes && (uint64_t)offset + bytes <= sge->length) {
		spans->base =
			sim_memory_at(qp->device, qp->device->memory_epoch, memo, SIM_KEY_LOCAL,
				      qp->pd, sge->lkey, sge->addr + offset, bytes, access);
		spans->length_bytes = bytes;
		return spans->base ? 1 : -1;
	}
	return sim_gather_pieces(qp, memo, sge, n, offset, bytes, access, spans);
}

/* sim_copy_spans() in its general form. */
int sim_copy_pieces(struct sim_device *device, const struct sim_span *from, unsigned int from_count,
		    const struct sim_span *to, unsigned int to_count);

/* Ends the receive WQE at rq.tail. */
struct sim_recv_done {
	const struct sim_packet *packet; /* immediate data, solicited; NULL for none */
	enum ibv_wc_status status;
	enum ibv_wc_opcode opcode;
	uint32_t byte_len;
	unsigned int wc_flags;
};

void sim_qp_complete_recv(struct sim_qp *qp, const struct sim_recv_done *done);

/* The send WQE at sq.tail is in error and nothing stands before it: ends it, and stops the QP. */
void sim_requester_give_up(struct sim_qp *qp, enum ibv_wc_status status);

#endif
