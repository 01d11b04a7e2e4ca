/* SPDX-License-Identifier: MIT */
/*
 * The functions by which the files of a QP's parts call one another, by the file that has them.
 * Private to sim/qp/ and sim/rxe/.
 *
 * What a packet that meets no error never calls is cold: GCC keeps the calls of cold functions, and what leads to
 * them, apart from the way of most packets.
 */
#ifndef SIM_QP_PRIVATE_H
#define SIM_QP_PRIVATE_H

#include "sim/base/note.h"
#include "sim/object/cq.h"
#include "sim/object/rules.h"
#include "sim/qp/failure.h"
#include "sim/qp/hooks.h"
#include "sim/qp/outlet.h"
#include "sim/qp/parts.h"
#include "sim/qp/verdict.h"

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

/* Gives an event of the QP to the owner: fills in what the event says of the QP. Call this only while
 * sim_watched(). */
static inline void sim_qp_note(struct sim_qp *qp, struct vb_event *event)
{
	event->device = qp->device->name;
	event->port = qp->port_num;
	event->qpn = qp->number;
	sim_note(qp->engine, event, NULL);
}

/* --- qp.c --- */

/* Notes that the QP has another state than before, or (from SQD to SQD) has drained its send queue. */
__attribute__((cold)) void sim_qp_note_state(struct sim_qp *qp, enum ibv_qp_state from,
					     enum sim_by by);

static inline void sim_qp_changed_state(struct sim_qp *qp, enum ibv_qp_state from, enum sim_by by)
{
	if (sim_watched(qp->engine))
		sim_qp_note_state(qp, from, by);
}

/* Raises an asynchronous event of the QP. */
__attribute__((cold)) void sim_qp_event(struct sim_qp *qp, enum ibv_event_type type);

/* Ends all work without completions and forgets all but the attributes of creation. */
__attribute__((cold)) void sim_qp_reset(struct sim_qp *qp);

/* A completion did not fit its CQ, which is dead now: ends the QP, so that no completion is lost in
 * silence. */
__attribute__((cold)) void sim_qp_cq_died(struct sim_qp *qp);

/* Notes a flush of one queue, and returns whether it is the first: a cause for the vendor_err. */
static inline enum sim_cause sim_qp_first_flush(struct sim_qp *qp, enum sim_flush queue)
{
	const bool first = qp->first_flush & queue;

	qp->first_flush &= (uint8_t)~queue;
	return first ? SIM_CAUSE_FIRST_FLUSH : SIM_CAUSE_ANY;
}

/* --- attr.c --- */

/* IBV_EVENT_SQ_DRAINED is raised although the program did not ask for it. */
void sim_qp_ask_drained_event(struct sim_qp *qp);

/* --- turn.c --- */

static inline void sim_qp_wake_requester(struct sim_qp *qp)
{
	if (!qp->turns[SIM_TURN_REQUESTER].asked)
		sim_turn_ask(qp, SIM_TURN_REQUESTER);
}

static inline void sim_qp_wake_responder(struct sim_qp *qp)
{
	if (!qp->turns[SIM_TURN_RESPONDER].asked)
		sim_turn_ask(qp, SIM_TURN_RESPONDER);
}

/* A QP that is reset or ends has no turns. */
__attribute__((cold)) void sim_turn_cancel(struct sim_qp *qp);

/* Takes the QP off a list, if it is on the list. */
void sim_turn_leave(struct sim_qp *qp, enum sim_turns which);

/* Copies the bytes of spans, as sim_copy_spans(), and counts a fault of memory. */
static inline int sim_qp_copy(struct sim_qp *qp, const struct sim_span *from,
			      unsigned int from_count, const struct sim_span *to,
			      unsigned int to_count)
{
	if (__builtin_expect(!sim_copy_spans(qp->engine, from, from_count, to, to_count), true))
		return 0;
	qp->device->counters.guarded_faults++;
	return -1;
}

/* --- room.c: the QP's packets may need room in the engine's way out --- */

/* Returns how many packets may be sent on a path now. */
unsigned int sim_room_ask(struct sim_qp *qp, struct sim_path *path, uint32_t dest_qpn);

/* The same for the path of a connected QP to its peer. */
unsigned int sim_room_ask_peer(struct sim_qp *qp);

/* Returns how many packets the QP's lane takes now. 0: none, or there is no lane: the network is to be asked. */
static inline unsigned int sim_room_in_lane(const struct sim_qp *qp)
{
	return qp->lane.epoch == qp->engine->epoch ? qp->lane.ops->room(&qp->lane) : 0;
}

/* Returns true if an ACK or NAK may be sent to the peer now. */
bool sim_room_for_ack(struct sim_qp *qp);

/* Returns true while packets of the QP wait for a receiver that does not run. */
bool sim_room_lags(const struct sim_qp *qp);

/* A part of the QP waits for room, and has its turn when there may be room. */
__attribute__((cold)) void sim_room_wait(struct sim_qp *qp, enum sim_turns part);

static inline bool sim_room_is_awaited(const struct sim_qp *qp, enum sim_turns part)
{
	return qp->awaiting & 1u << part;
}

/* The QP waits no more: it is in ERR, or it is reset. */
void sim_room_leave(struct sim_qp *qp);

/* --- send.c: the oldest sends end --- */

/* Ends the oldest send WQE with success, with a completion if one is due. */
void sim_send_complete(struct sim_qp *qp);

/* Ends the oldest send WQE in error. */
__attribute__((cold)) void sim_send_fail(struct sim_qp *qp, enum ibv_wc_status status);

/* Ends all sends with IBV_WC_WR_FLUSH_ERR. */
__attribute__((cold)) void sim_send_flush(struct sim_qp *qp);

/* Ends all sends without completions. */
__attribute__((cold)) void sim_send_drop(struct sim_qp *qp);

/* --- receive.c: receive WQEs are taken and end --- */

void sim_receive_init(struct sim_qp *qp, struct sim_cq *cq);
void sim_receive_reset(struct sim_qp *qp);

/* The CQ that may hold completions of receives. XRC: that of the last message's SRQ, NULL if that has ended. */
const struct sim_cq *sim_receive_cq(const struct sim_qp *qp);

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
__attribute__((cold)) void sim_receive_refind(struct sim_qp *qp);

/* XRC: the message's receives come from an SRQ of the QP's domain; false if the number is of no
 * such SRQ. */
bool sim_receive_enter_srq(struct sim_qp *qp, uint32_t srq_number);

/* In ERR: notes that receives are to be flushed; flushes them. */
__attribute__((cold)) void sim_receive_flush_later(struct sim_qp *qp);
__attribute__((cold)) void sim_receive_flush(struct sim_qp *qp);

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
__attribute__((cold)) void sim_receive_died(struct sim_qp *qp);

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
	/* Linux drivers/infiniband/hw/qib/qib_rc.c, qib_rc_rcv: the QPN of the connection. */
	wc->src_qp = qp->type == IBV_QPT_UD ? packet->source_qpn : qp->dest_qpn;
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
	if (status != IBV_WC_SUCCESS)
		cqe->wc.vendor_err = sim_failure_of_receive(qp, status);
	if (packet)
		sim_receive_describe(qp, cqe, packet);
	sim_cq_stamp(cq, cqe, &qp->engine->clock);
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

/* Goes back to a PSN that was sent: the next packet is that one. by is the cause for
 * VB_EVENT_REWIND. */
__attribute__((cold)) void sim_requester_rewind(struct sim_qp *qp, uint32_t psn, const char *by);

/* Does not send again what was just acknowledged. */
void sim_requester_skip(struct sim_qp *qp, uint32_t psn);

/* A send WQE ends. */
void sim_requester_release(struct sim_qp *qp, struct sim_send_wqe *wqe);

/* In RTS again: a WQE in error no longer stops the sends behind it. */
void sim_requester_resume(struct sim_qp *qp);

/* The peer had no receive WR: waits as long as the syndrome's timer says. */
__attribute__((cold)) void sim_requester_wait_rnr(struct sim_qp *qp, unsigned int timer_code);
__attribute__((cold)) void sim_requester_end_rnr_wait(struct sim_qp *qp);

/* What was sent and not acknowledged is never sent again, and no answer to it is expected. */
void sim_requester_forget_sent(struct sim_qp *qp);

/* Stops the timer of a QP in ERR or RESET. */
void sim_requester_stop(struct sim_qp *qp);

/* The oldest send WQE is in error: ends it, and stops the QP. */
__attribute__((cold)) void sim_requester_give_up(struct sim_qp *qp, enum ibv_wc_status status);

/* Flushes a QP in ERR or SQE: the sends, and in ERR the receives. */
__attribute__((cold)) void sim_requester_flush(struct sim_qp *qp, bool sends);

/* Sends an RDMA WRITE of no bytes that no WQE asked for. */
__attribute__((cold)) void sim_requester_send_empty(struct sim_qp *qp);

/* --- completer.c --- */

void sim_completer_init(struct sim_qp *qp);
void sim_completer_reset(struct sim_qp *qp, bool repeating);
void sim_completer_set_psn(struct sim_qp *qp, uint32_t psn);

/* The counts of retries begin anew. */
void sim_completer_restore_retries(struct sim_qp *qp);

/* An answer has come. */
void sim_completer_receive(struct sim_qp *qp, const struct sim_packet *packet);

/* Takes a train of a read response, as sim_qp_take_train() does. */
bool sim_completer_take_train(struct sim_qp *qp, const struct sim_packet *train,
			      unsigned int count);

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

/* --- wait.c --- */

/* Notes what has happened to a timer. wait_ns is the time of a timer that starts; 0: it does not start. */
__attribute__((cold)) void sim_qp_note_timer(struct sim_qp *qp, const char *timer, const char *what,
					     uint64_t wait_ns, unsigned int retries_left);

/* Return the time at which the RNR timer or the ack timer runs out if it starts now. */
uint64_t sim_wait_rnr_deadline(const struct sim_qp *qp, unsigned int timer_code);
uint64_t sim_wait_ack_deadline(const struct sim_qp *qp);

enum sim_timeout {
	SIM_TIMEOUT_RETRIES,   /* costs a retry; the send ends if no retry is left */
	SIM_TIMEOUT_KEEPS_ONE, /* costs a retry; the send ends if only one retry is left */
	SIM_TIMEOUT_REPEATS,   /* retransmits, and costs no retry */
	SIM_TIMEOUT_WAITS,     /* starts the timer anew, and nothing else */
};

/* Returns what the ack timeout that has come does. */
enum sim_timeout sim_wait_over(const struct sim_qp *qp);

/* Returns how often the requester retries. */
uint8_t sim_wait_retries(const struct sim_qp *qp);

/* --- responder.c --- */

void sim_responder_init(struct sim_qp *qp);
void sim_responder_reset(struct sim_qp *qp);
void sim_responder_set_psn(struct sim_qp *qp, uint32_t psn);
void sim_responder_set_ack_psn(struct sim_qp *qp, uint32_t psn);

/* The memory behind an rkey, if it grants the access; else NULL. */
static inline void *sim_responder_memory(struct sim_qp *qp, uint32_t rkey, uint64_t addr,
					 uint64_t length, int access)
{
	return sim_memory_at(&qp->remote_reach, SIM_KEY_REMOTE, rkey, addr, length, access);
}

/* The PD that rkeys are checked against: with XRC, the SRQ's. */
static inline void sim_responder_use_pd(struct sim_qp *qp, uint32_t pd)
{
	if (qp->remote_reach.pd == pd)
		return;
	qp->remote_reach.pd = pd;
	qp->remote_reach.epoch = 0;
}

/* The access that a request needs, of the QP and of the memory; 0 for a SEND. ATOMIC WRITE asks for
 * the right to write: Linux drivers/infiniband/sw/rxe/rxe_resp.c, check_rkey. */
static inline int sim_request_access(uint32_t flags)
{
	if (flags & (SIM_OP_WRITE | SIM_OP_STORE))
		return IBV_ACCESS_REMOTE_WRITE;
	if (flags & SIM_OP_ATOMIC)
		return IBV_ACCESS_REMOTE_ATOMIC;
	return flags & SIM_OP_READ ? IBV_ACCESS_REMOTE_READ : 0;
}

/* A message's packets are FIRST, MIDDLE..., LAST of one kind, or ONLY. */
static inline bool sim_in_sequence(const struct sim_responder *resp, uint32_t flags)
{
	return flags & SIM_OP_START ? !resp->in_message : resp->in_message == (flags & SIM_OP_KIND);
}

/* The packets of a message before its last are full, and a last one carries at least a byte. */
__attribute__((always_inline)) static inline bool sim_payload_fits(const struct sim_qp *qp,
								   uint32_t bytes, uint32_t flags)
{
	if (flags & SIM_OP_END ? bytes <= qp->mtu_bytes && (bytes || (flags & SIM_OP_START))
			       : bytes == qp->mtu_bytes)
		return true;
	return (flags & SIM_OP_SEND) && !sim_rule_holds(qp, SIM_RULE_PACKET_SIZE);
}

/* A request has come. */
void sim_responder_receive(struct sim_qp *qp, const struct sim_packet *packet);

/* Takes a train of requests, as sim_qp_take_train() does. */
bool sim_responder_take_train(struct sim_qp *qp, const struct sim_packet *train,
			      unsigned int count);

/* The first packet of a connection, or of a UD QP, has come: IBV_EVENT_COMM_EST in RTR. */
void sim_responder_establish(struct sim_qp *qp);

/* Checks an RDMA READ request. Returns SIM_ACCEPT if the responder may answer it. */
enum sim_verdict sim_responder_check_read(struct sim_qp *qp, const struct sim_packet *packet);

/* Ends the silence after a NAK: the next gap draws another sequence NAK. */
void sim_responder_nak_again(struct sim_qp *qp);

/* Asks the responder to send a NAK with this syndrome for the expected PSN. */
void sim_responder_nak(struct sim_qp *qp, uint8_t syndrome);

/* Asks the responder to send an ACK for the packets up to ack_psn. */
void sim_responder_owe_ack(struct sim_qp *qp);

/*
 * Sets the expected PSN back to that of an earlier request, and drops a waiting ACK. msn and message are those before
 * this request: the MSN, and SIM_OP_SEND or SIM_OP_WRITE of the message in progress, or 0.
 */
void sim_responder_go_back(struct sim_qp *qp, uint32_t psn, uint32_t msn, uint32_t message);

/* Counts a finished message: adds 1 to the MSN. */
void sim_responder_count_message(struct sim_qp *qp);

/* Forgets the message in progress. The next message takes the same receive WQE. */
void sim_responder_abandon(struct sim_qp *qp);

/* UC: forgets the message in progress, and drops the rest of its packets. */
void sim_responder_drop_rest(struct sim_qp *qp);

/* Lets a proxy that has refused a request take requests. */
void sim_responder_revive(struct sim_qp *proxy);

/* Prepares a proxy for a request. The first packet of a message may have any PSN. Returns false if the request
 * continues a message of which the proxy does not have the beginning. */
bool sim_responder_resume(struct sim_qp *proxy, uint32_t psn, uint32_t msn, uint32_t flags);

/* Refuses a READ at a proxy whose response fails at packet number `part`, counted from 0. */
void sim_responder_refuse_read(struct sim_qp *proxy, const struct sim_packet *packet, uint32_t part,
			       uint32_t msn, enum sim_verdict verdict);

/* --- consequence.c --- */

/* Counts an RNR NAK with the QP's min_rnr_timer, and asks the responder to send it for the expected PSN. */
void sim_responder_rnr_nak(struct sim_qp *qp);

/* The responder does not accept a request: sends a NAK (RC, XRC), drops the message (UC), or ends the QP, as the row of
 * the verdict in sim_consequences says. */
void sim_responder_not_accepted(struct sim_qp *qp, const struct sim_packet *packet,
				enum sim_verdict verdict);

/* Refuses the message in progress, or a READ whose response fails: completes the receive in progress with an error or
 * raises an event, sends a NAK, and moves the QP to ERR, as the row of the verdict says. */
__attribute__((cold)) void sim_responder_refuse(struct sim_qp *qp, const struct sim_packet *packet,
						enum sim_verdict verdict);

/* --- relayed.c --- */

/*
 * A proxy has acknowledged the requests up to a PSN, or has refused the request with this PSN. message: SIM_OP_SEND or
 * SIM_OP_WRITE of the message in progress before the refused request, or 0.
 */
void sim_responder_relayed(struct sim_qp *qp, uint32_t psn, uint8_t syndrome, uint32_t msn,
			   uint32_t message);

/* The proxy has failed: moves the QP to ERR. Does nothing if the proxy's NAK has done so before. */
void sim_responder_relay_failed(struct sim_qp *qp);

/* The responder has sent the answers of relayed READs and atomics up to a PSN. */
void sim_responder_relay_settled(struct sim_qp *qp, uint32_t psn);

/* --- relay.c --- */

enum sim_relayed {
	SIM_RELAY_SENT,
	SIM_RELAY_LATER,  /* the request has to come again */
	SIM_RELAY_NOBODY, /* no other process does such a request */
};

/* Returns the other process that has an SRQ's number; 0: none. */
uint64_t sim_relay_holder(const struct sim_qp *qp, uint32_t srq_number);

/* Relays a request of the expected PSN. A READ or an atomic is remembered, as sim_answer_push() does. */
enum sim_relayed sim_relay_request(struct sim_qp *qp, const struct sim_packet *packet,
				   uint32_t flags);

/* The requests that are not answered are another connection's, or come again. */
void sim_relay_reset(struct sim_qp *qp);

/* Asks the holder of a READ for the next packets, at most `room`. */
void sim_relay_fetch(struct sim_qp *qp, struct sim_resource *resource, unsigned int room);

/* Asks the holder of an atomic for the value that the atomic found. */
void sim_relay_ask_value(struct sim_qp *qp, const struct sim_resource *resource);

/* A proxy sends its front an ACK or a NAK, or the value that an atomic found. */
void sim_relay_answer(struct sim_qp *proxy, uint8_t syndrome, uint32_t psn);
void sim_relay_value(struct sim_qp *proxy, const struct sim_resource *resource);

/* The front raises an asynchronous event for its proxy. */
void sim_relay_event(const struct sim_qp *proxy, enum ibv_event_type type);

/* --- answer.c --- */

/* Takes memory for the READs and atomics that the responder may hold. */
void sim_responder_set_resources(struct sim_qp *qp, struct sim_resource *resources, uint8_t count);
void sim_responder_free_resources(struct sim_qp *qp);

/* Remembers a READ or atomic, which the responder's turn answers. */
struct sim_resource *sim_answer_push(struct sim_qp *qp, const struct sim_packet *packet,
				     uint32_t packets);

/* Answers a READ or atomic that has come again from what was remembered. */
void sim_answer_replay(struct sim_qp *qp, const struct sim_packet *packet, uint32_t flags);

/* The holder of an SRQ has sent the data of a READ's packet, or the value that an atomic found. */
void sim_answer_fetched(struct sim_qp *qp, uint64_t holder, uint32_t psn, const uint8_t *bytes,
			uint32_t length);

/* Forgets the READs and atomics that end at a PSN or behind it. The front asks once more for the data of the
 * other ones that are not answered. */
void sim_answer_go_back(struct sim_qp *qp, uint32_t psn);

/* Returns the oldest READ or atomic that waits for another process; NULL for none. */
const struct sim_resource *sim_answer_oldest_relayed(const struct sim_qp *qp);

static inline uint32_t sim_response_packets(const struct sim_qp *qp, uint32_t bytes)
{
	return bytes ? (bytes - 1) / qp->mtu_bytes + 1 : 1;
}

/* --- late.c: a reliable QP's answers and data are as late as they may be (quirks) --- */

/* Prepares a new QP. ENOMEM. */
int sim_late_attach(struct sim_qp *qp);
void sim_late_detach(struct sim_qp *qp);

/* The QP is reset: forgets what is kept back. */
void sim_late_reset(struct sim_qp *qp);

/* The QP has failed: its answers are due. */
void sim_late_hurry(struct sim_qp *qp);

/* Returns true if the answers that are due have to wait. */
bool sim_late_holds(struct sim_qp *qp);

/* All answers have left. */
void sim_late_answered(struct sim_qp *qp);

/* A request has come. Returns true if the QP refuses the request by an RNR NAK. */
bool sim_late_refuses(struct sim_qp *qp, const struct sim_packet *packet, uint32_t flags);

/* Takes the data of a packet of a WRITE for `to`, and puts some of them into memory later. Returns false if the
 * data are not taken. */
bool sim_late_write(struct sim_qp *qp, const struct sim_packet *packet, uint32_t flags,
		    const struct sim_span *to);

/* Returns the credits of an ACK: the code for the receives that are posted. */
uint8_t sim_late_credits(const struct sim_qp *qp);

/* The syndrome of an ACK. */
static inline uint8_t sim_ack_syndrome(const struct sim_qp *qp)
{
	return SIM_AETH_ACK | (qp->late ? sim_late_credits(qp) : SIM_ACK_CREDIT_NONE);
}

/* --- datagram.c --- */

/* Sends one WQE of a UD QP: SUCCESS once it is sent, or its local error. */
enum ibv_wc_status sim_datagram_send(struct sim_qp *qp, struct sim_send_wqe *wqe);

/* --- loss.c --- */

/* Returns why a packet is dropped. qp is NULL if no QP has the packet's QPN. */
struct vb_why sim_loss_why(const struct sim_qp *qp, const struct sim_port *port,
			   const struct sim_packet *packet, const struct sim_route *route,
			   enum sim_discard cause);

/* --- admission.c --- */

/* True if the packet is from the other end of the QP's connection. */
bool sim_qp_is_from_peer(const struct sim_qp *qp, const struct sim_route *route);

/*
 * Finds the peer of a connected QP again, if packets reach it at once and it admits this one, and
 * notes the epoch. Otherwise sends the packet through the network, and returns false.
 */
bool sim_peer_find(struct sim_qp *qp, uint64_t *epoch, struct sim_packet *packet);

/* Sends a packet by the QP's lane. Returns false if the lane cannot; a QP whose packets reach the peer at once has
 * no lane. */
static inline bool sim_send_by_lane(struct sim_qp *qp, const struct sim_packet *packet)
{
	if (qp->lane.epoch != qp->engine->epoch ||
	    !qp->lane.ops->send(&qp->lane, &qp->path, packet))
		return false;
	qp->device->counters.sent_packets++;
	return true;
}

/* Returns how many bytes of payload a train of the QP may have now (sim/wire/packet.h); 0: the packets are to be sent one
 * by one. */
static inline uint32_t sim_train_bytes(const struct sim_qp *qp)
{
	return qp->lane.epoch == qp->engine->epoch && qp->lane.ops->train_bytes
		       ? qp->lane.ops->train_bytes(&qp->lane, &qp->path)
		       : 0;
}

/* Sends a train. Returns false if nothing was sent, and the packets are to be sent one by one. */
static inline bool sim_send_train(struct sim_qp *qp, const struct sim_packet *train,
				  unsigned int count)
{
	if (!qp->lane.ops->send_train(&qp->lane, &qp->path, train, count))
		return false;
	qp->device->counters.sent_packets += count;
	return true;
}

/* True if a packet is to be handed to the peer as it is; counts the packet. False: the packet was sent. */
static inline bool sim_hand_over(struct sim_qp *qp, uint64_t *epoch, struct sim_packet *packet)
{
	if (*epoch != qp->engine->epoch &&
	    (sim_send_by_lane(qp, packet) || !sim_peer_find(qp, epoch, packet)))
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
}

static inline void sim_send_response(struct sim_qp *qp, struct sim_packet *packet)
{
	if (sim_hand_over(qp, &qp->peer.response_epoch, packet))
		sim_completer_receive(qp->peer.qp, packet);
}

#endif
