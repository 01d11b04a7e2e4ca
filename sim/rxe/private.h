/* SPDX-License-Identifier: MIT */
/* What the hooks keep for a QP, and the hooks by the part of the QP that they change. */
#ifndef SIM_RXE_PRIVATE_H
#define SIM_RXE_PRIVATE_H

#include "sim/qp/private.h"
#include "sim/rxe/rxe.h"

struct sim_rxe {
	/* attributes: the values as they were given, which a query answers */
	uint16_t pkey_index;
	uint32_t dest_qpn;
	/* errored_sends_may_wait */
	uint32_t ring_place; /* the requester's place, a count of the send queue */
	bool flush_due;	     /* ERR was entered */
	/* resets_leave_ghosts: empty requests that go before all others */
	uint32_t ghosts;
	/* acks_of_unsent_complete: the PSN up to which a stray ACK acknowledged, while ahead_send is
	 * the oldest send */
	bool ahead;
	uint32_t ahead_psn;
	uint32_t ahead_send;
	/* cut_writes_jam_uc: every message is dropped */
	bool jammed;
};

static inline const struct sim_quirks *quirks_of(const struct sim_qp *qp)
{
	return &qp->device->quirks;
}

/* The hooks, by file. */
bool rxe_takes_value(const struct sim_qp *qp, const struct sim_port *port, int attr_bit,
		     const struct ibv_qp_attr *attr);
bool rxe_ignores_path_state(const struct sim_qp *qp, enum ibv_qp_state to);
void rxe_adapt(struct sim_qp *qp, struct ibv_qp_attr *attr, int attr_mask);
void rxe_query(const struct sim_qp *qp, struct ibv_qp_attr *attr);
void rxe_entered(struct sim_qp *qp, enum ibv_qp_state from, enum ibv_qp_state to);
bool rxe_reset(struct sim_qp *qp);
void rxe_fail(struct sim_qp *qp);

int rxe_vet_send(const struct sim_qp *qp, const struct ibv_send_wr *wr, bool full);
void rxe_posted_in_error(struct sim_qp *qp);
bool rxe_turn(struct sim_qp *qp);
enum sim_gate rxe_gate(const struct sim_qp *qp, const struct sim_send_wqe *wqe, enum sim_gate gate);
bool rxe_is_drained(const struct sim_qp *qp);
bool rxe_send_failed(struct sim_qp *qp, const struct sim_send_wqe *wqe, enum ibv_wc_status *status);
bool rxe_send_error_ends(const struct sim_qp *qp);
bool rxe_repeat_local(const struct sim_qp *qp, const struct sim_send_wqe *wqe);
void rxe_rnr_over(struct sim_qp *qp);
void rxe_send_completed(const struct sim_qp *qp, const struct sim_send_wqe *wqe,
			struct sim_cqe *cqe);
/* True if a fenced send waits for the READs and atomics behind it to be sent again. */
bool rxe_fence_jams(const struct sim_qp *qp, const struct sim_send_wqe *wqe);
/* Behind a send that failed here nothing is repeated, and no answer is taken any more. Returns false
 * unless it is so. */
bool rxe_jam(struct sim_qp *qp);

bool rxe_timer_stands(const struct sim_qp *qp, bool stands);
unsigned int rxe_retry(struct sim_qp *qp, bool for_rnr);
bool rxe_answer(struct sim_qp *qp, struct sim_packet *packet);
bool rxe_takes_response(const struct sim_qp *qp, const struct sim_send_wqe *wqe, uint32_t bytes,
			bool *last);

void rxe_judged(const struct sim_qp *qp, enum sim_verdict verdict,
		struct sim_consequence *consequence);
bool rxe_uc_refused(struct sim_qp *qp, const struct sim_packet *packet, enum sim_verdict verdict);
bool rxe_uc_drops(const struct sim_qp *qp);
void rxe_rnr_nak(struct sim_qp *qp);
bool rxe_acks_at_once(const struct sim_qp *qp);
void rxe_atomic_answered(struct sim_qp *qp, uint32_t psn);
void rxe_recv_completed(const struct sim_qp *qp, const struct sim_packet *packet,
			struct sim_cqe *cqe);
void rxe_grh(const struct sim_qp *qp, const struct sim_route *route, uint8_t grh[40]);
void rxe_refused(struct sim_qp *qp, const struct sim_packet *packet, const struct sim_route *route);

#endif
