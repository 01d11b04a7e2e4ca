/* SPDX-License-Identifier: MIT */
/*
 * Judges completions by the WRs that were posted. It knows the structures of libibverbs and no
 * backend.
 *
 * The caller reports what happens in the order in which it happens. The checker reports:
 *
 *	twice	  a completion of a WR that has completed
 *	unknown	  a completion of a WR or a QP number that does not exist
 *	order	  a completion before that of an earlier WR of the queue
 *	unsignalled  a successful completion of a WR that did not ask for one
 *	dead	  a status other than a flush error, behind a WR of the queue that failed
 *	opcode	  success with another opcode than that of the WR
 *	bytes	  more bytes than the receive has room for, or fewer than the GRH of a datagram
 *	queue	  a completion in a CQ that is not the queue's
 *	lost	  a WR of a QP in ERR that never completes
 *
 * The sends of a QP complete in posting order, and so do the receives of a receive queue; those of
 * an SRQ complete in any order. WRs may share a wr_id. Of a failed completion only wr_id, status
 * and qp_num are valid (ibv_poll_cq(3)). If these fit several queues or WRs, the checker follows
 * every possibility until the last one fails.
 *
 * A WR may end without a completion when its QP is reset or destroyed, when the device is lost,
 * when it was posted in a state that takes no such work, and when its CQ may have overrun: because
 * more WRs were under way than it holds, or because the caller says so. A WR that was not polled
 * at the end is no fault, unless it is `lost`.
 *
 * Each QP and SRQ is reported once, since later faults follow from the first. WQs (ibv_create_wq)
 * and tag matching are not supported. Not thread-safe.
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
/* The QP was modified into a state. */
void completion_check_state(struct completion_check *c, const struct ibv_qp *qp,
			    enum ibv_qp_state state);
/* An SRQ that was just made; cq is the CQ of an XRC SRQ, or NULL. */
void completion_check_srq(struct completion_check *c, const struct ibv_srq *srq,
			  const struct ibv_cq *cq);

/* The object was destroyed; another object may get its address. */
void completion_check_no_qp(struct completion_check *c, const void *qp);
void completion_check_no_srq(struct completion_check *c, const void *srq);
void completion_check_no_cq(struct completion_check *c, const void *cq);

/* Completions of the CQ, or of a whole context, may be missing from now on. */
void completion_check_overrun(struct completion_check *c, const struct ibv_cq *cq);
void completion_check_fatal(struct completion_check *c, const struct ibv_context *context);

/* A WR was posted; one call for each WR. */
void completion_check_send(struct completion_check *c, const struct ibv_qp *qp, uint64_t wr_id,
			   enum ibv_wr_opcode opcode, unsigned int send_flags);
void completion_check_recv(struct completion_check *c, const struct ibv_qp *qp,
			   const struct ibv_recv_wr *wr);
void completion_check_srq_recv(struct completion_check *c, const struct ibv_srq *srq,
			       const struct ibv_recv_wr *wr);

/* A completion was polled. */
void completion_check_wc(struct completion_check *c, const struct ibv_cq *cq,
			 const struct ibv_wc *wc);

/* Counts the WRs of the QP's own queues that must still complete if the QP is in ERR. */
size_t completion_check_owed(const struct completion_check *c, const struct ibv_qp *qp);
/* Call this when the QP is in ERR and its CQs are and stay empty: reports `lost`. */
void completion_check_lost(struct completion_check *c, const struct ibv_qp *qp);

#endif
