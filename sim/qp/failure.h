/* SPDX-License-Identifier: MIT */
/*
 * Why the work of a QP failed: what the QP's own side found, and what the peer's found. The record is
 * made by the first failure and kept until the QP is reset or destroyed. Private to sim/qp/ and
 * sim/rxe/.
 */
#ifndef SIM_QP_FAILURE_H
#define SIM_QP_FAILURE_H

#include "sim/object/denial.h"
#include "sim/qp/parts.h"
#include "sim/qp/verdict.h"

/* What both sides know of a failure. */
struct sim_finding {
	struct vb_why why; /* VB_WHY_NONE: nothing has been found */
	const struct sim_device *peer;
	uint32_t peer_qpn;
	struct vb_why peer_why;
};

/* The last completion of a queue that failed with a cause of its own, and was not flushed. */
struct sim_failed {
	uint64_t wr_id;
	enum ibv_wc_status status; /* IBV_WC_SUCCESS: none has failed */
	bool ambiguous; /* an older completion of the same wr_id and status was not polled yet */
	struct sim_finding finding;
};

struct sim_failures {
	struct sim_finding found;   /* of the work request that is about to fail */
	struct sim_finding waiting; /* of the WQE in error that waits for those before it */
	struct sim_failed send;
	struct sim_failed receive;
	enum vb_reason flush;	  /* why work is flushed: the row of vendor_err */
	struct sim_finding first; /* the failure that moved the QP to ERR or SQE */
	bool flush_ambiguous;	  /* older flushed completions were not polled yet */
	struct vb_why refusal;	  /* of the last request that the responder refused */
	uint32_t refusal_psn;
};

/* Keeps why the next work request that fails does so. */
void sim_failure_find(struct sim_qp *qp, const struct sim_finding *finding);

/* Keeps the local error of a WQE that is about to be sent; sim_failure_recall() makes it the finding
 * again when the WQE's turn to end has come. */
void sim_failure_find_local(struct sim_qp *qp, const struct sim_send_wqe *wqe,
			    enum ibv_wc_status status);
void sim_failure_recall(struct sim_qp *qp);

/* Keeps that the place of an answer may not be written, or that the peer's memory cannot be read. */
void sim_failure_find_store(struct sim_qp *qp, const struct sim_send_wqe *wqe,
			    const struct sim_packet *packet);

/* Keeps why the oldest send ends after too many retries (@reason: RETRY_*), or RNR NAKs. */
void sim_failure_find_retries(struct sim_qp *qp, enum vb_reason reason);
void sim_failure_find_rnr(struct sim_qp *qp);

/* Keeps why the oldest send ends by an answer: a NAK, or a response that does not fit. */
void sim_failure_find_nak(struct sim_qp *qp, const struct sim_packet *packet,
			  enum ibv_wc_status status);
void sim_failure_find_response(struct sim_qp *qp, const struct sim_packet *packet);

/* Keeps why a receive fails, or why a request is refused. packet NULL: the finding stays. */
void sim_failure_find_refusal(struct sim_qp *qp, const struct sim_packet *packet,
			      enum sim_verdict verdict);
void sim_failure_find_datagram(struct sim_qp *qp, const struct sim_packet *packet,
			       enum sim_verdict verdict);
/* Keeps why a READ that was accepted cannot be answered from byte `done` on. */
void sim_failure_find_unserved(struct sim_qp *qp, const struct sim_resource *resource,
			       uint32_t done, uint32_t bytes);

/*
 * A work request ends in error for what was found: records the failure, and returns the vendor_err of
 * its completion.
 */
uint32_t sim_failure_of_send(struct sim_qp *qp, const struct sim_send_wqe *wqe,
			     enum ibv_wc_status status);
uint32_t sim_failure_of_receive(struct sim_qp *qp, enum ibv_wc_status status);

/* The QP goes to ERR, or by a failed send to SQE: what is flushed from now on has this cause. */
void sim_failure_ends_qp(struct sim_qp *qp, enum sim_by by);
void sim_failure_ends_sends(struct sim_qp *qp);

/* Forgets everything. */
void sim_failure_forget(struct sim_qp *qp);

/* Return the port and the QP at the other end of a connection in this engine; NULL if there is none
 * now. */
const struct sim_port *sim_failure_way(struct sim_qp *qp);
struct sim_qp *sim_failure_peer(struct sim_qp *qp);

/* --- refusal.c --- */

/* Returns why a responder's verdict on a request is what it is. */
struct vb_why sim_refusal_why(const struct sim_qp *qp, const struct sim_packet *packet,
			      enum sim_verdict verdict);

/* Returns why the memory of SGEs [0, n) may not be accessed; @queue is "send" or "receive". */
struct vb_why sim_sges_why(const struct sim_reach *reach, const struct ibv_sge *sge, unsigned int n,
			   int access, const char *queue);

/* Returns true if the process can read all bytes of the payload. */
bool sim_payload_is_readable(const struct sim_qp *qp, const struct sim_packet *packet);

/* --- diagnose.c --- */

/* Finds out from both ends why no answer came to the oldest PSN. The finding's own side is given. */
void sim_diagnose(struct sim_qp *qp, struct sim_finding *finding);

#endif
