/* SPDX-License-Identifier: MIT */
/*
 * Judges completions by what was posted: it knows libibverbs' structures and no backend.
 *
 * A caller tells it what happens, in the order in which it happens, and it reports:
 *
 *	twice	  a completion of a WR that has completed
 *	unknown	  a completion of a WR or a QP number that does not exist
 *	order	  a completion before that of a WR which its queue got earlier
 *	unsignalled  success of a WR that did not ask for a completion
 *	dead	  success, or another error than a flush, behind a WR of the queue that failed
 *	opcode	  success of another operation than the one that was posted
 *	bytes	  more bytes received than the WR has room for, or a datagram without its GRH
 *	queue	  a completion in another CQ than the queue's
 *	lost	  a WR of a QP in ERR that never completes
 *
 * Sends end in posting order per QP, receives in posting order per receive queue; an SRQ's in any
 * order. WRs may share a wr_id. Of a failed completion only wr_id, status and qp_num are looked at
 * (ibv_poll_cq(3)); where that leaves open which queue or which WR of one wr_id it belongs to,
 * every possibility is followed until the last one fails.
 *
 * A WR may end without a completion when its QP is reset or destroyed, when the device is lost,
 * when it was posted in a state that takes no such work, and when its CQ may have overrun: more
 * WRs were under way than it holds, or it was said to have. WRs that were not polled at the end
 * are no fault but for `lost`.
 *
 * One report a QP and SRQ: what follows a fault says nothing. WQs (ibv_create_wq) and tag matching
 * are not known. Not thread-safe.
 */
#ifndef TEST_SUPPORT_COMPLETION_CHECK_H
#define TEST_SUPPORT_COMPLETION_CHECK_H

#include <infiniband/verbs.h>
#include <stdbool.h>

struct completion_check;

/* report is called with one sentence for each fault. Ends by completion_check_free(). */
struct completion_check *completion_check_new(void (*report)(void *arg, const char *sentence),
					      void *arg);
void completion_check_free(struct completion_check *c);

/* A QP that was just made or opened; signal_all is its sq_sig_all. */
void completion_check_qp(struct completion_check *c, const struct ibv_qp *qp, bool signal_all);
/* It was modified into a state, from the one that the caller knows or does not. */
void completion_check_state(struct completion_check *c, const struct ibv_qp *qp,
			    enum ibv_qp_state state);
/* An SRQ that was just made; cq is its own, of an XRC SRQ, or NULL. */
void completion_check_srq(struct completion_check *c, const struct ibv_srq *srq,
			  const struct ibv_cq *cq);

/* The object is gone; its memory may become another's. */
void completion_check_no_qp(struct completion_check *c, const void *qp);
void completion_check_no_srq(struct completion_check *c, const void *srq);
void completion_check_no_cq(struct completion_check *c, const void *cq);

/* Completions of the CQ, or of a whole context, may be missing from now on. */
void completion_check_overrun(struct completion_check *c, const struct ibv_cq *cq);
void completion_check_fatal(struct completion_check *c, const struct ibv_context *context);

/* WRs that were posted, one a call. */
void completion_check_send(struct completion_check *c, const struct ibv_qp *qp, uint64_t wr_id,
			   enum ibv_wr_opcode opcode, unsigned int send_flags);
void completion_check_recv(struct completion_check *c, const struct ibv_qp *qp,
			   const struct ibv_recv_wr *wr);
void completion_check_srq_recv(struct completion_check *c, const struct ibv_srq *srq,
			       const struct ibv_recv_wr *wr);

/* A completion that was polled. */
void completion_check_wc(struct completion_check *c, const struct ibv_cq *cq,
			 const struct ibv_wc *wc);

/* How many WRs of the QP's own queues must complete still, if it is in ERR. */
size_t completion_check_owed(const struct completion_check *c, const struct ibv_qp *qp);
/* The QP is in ERR and its CQs are empty and stay so: reports `lost`. */
void completion_check_lost(struct completion_check *c, const struct ibv_qp *qp);

#endif
