/* SPDX-License-Identifier: MIT */
/* Follows polls: a completion ends its work, and the unsignalled sends before it. */
#include "src/check/tell.h"
#include "src/check/track.h"

#include <verbena/explain.h>

static struct work_queue *receives_of(struct check_qp *qp)
{
	return qp->srq ? &qp->srq->receives : &qp->receives;
}

/* Sends that are not signalled end with a later one. */
static __attribute__((noinline)) void end_earlier(struct check_call *check, struct check_qp *qp,
						  uint64_t count)
{
	for (uint64_t i = 0; i < count; i++) {
		track_leave_cq(qp->send_cq, work_at(&qp->sends, i));
		tell_done(check, qp, work_at(&qp->sends, i), NULL, false);
	}
}

/* Ends the send `work`, which has that index in its queue. */
static inline __attribute__((always_inline)) void end_send(struct check_call *check,
							   struct check_qp *qp, struct work *work,
							   uint64_t index, const struct ibv_wc *wc,
							   bool failed)
{
	if (index)
		end_earlier(check, qp, index);
	track_leave_cq(qp->send_cq, work);
	tell_done(check, qp, work, wc, failed);
	work_leave(&qp->sends, index + 1);
}

/* Receives of an SRQ complete in any order. */
static inline __attribute__((always_inline)) void end_receive(struct check_call *check,
							      struct check_qp *qp,
							      struct work_queue *queue,
							      struct work *work,
							      const struct ibv_wc *wc, bool failed)
{
	if (!qp->srq)
		track_leave_cq(qp->recv_cq, work);
	tell_done(check, qp, work, wc, failed);
	work->done = true;
	while (work_count(queue) && work_at(queue, 0)->done)
		work_leave(queue, 1);
}

/* Returns true if a failed completion is of the send queue. The completion itself does not say so. */
static CHECK_RARE bool is_of_send(const struct check_call *check, const struct check_qp *qp,
				  const struct ibv_wc *wc, uint64_t send, uint64_t receive)
{
	struct vb_completion_why why;

	if (send == UINT64_MAX || receive == UINT64_MAX)
		return receive == UINT64_MAX;
	if (qp->send_cq != qp->recv_cq)
		return check->cq == qp->send_cq;
	return vb_completion_why(qp->object.context, wc, &why) || why.send;
}

static CHECK_RARE void end_failed(struct check_call *check, struct check_qp *qp,
				  const struct ibv_wc *wc)
{
	const uint64_t send = work_find(&qp->sends, wc->wr_id, true);
	const uint64_t receive = work_find(receives_of(qp), wc->wr_id, true);

	if (send == UINT64_MAX && receive == UINT64_MAX)
		return;
	if (is_of_send(check, qp, wc, send, receive))
		end_send(check, qp, work_at(&qp->sends, send), send, wc, true);
	else
		end_receive(check, qp, receives_of(qp), work_at(receives_of(qp), receive), wc,
			    true);
}

static inline __attribute__((always_inline)) void end_work(struct check_call *check,
							   struct check_qp *qp,
							   const struct ibv_wc *wc)
{
	const bool receive = wc->opcode & IBV_WC_RECV;
	struct work_queue *queue = receive ? receives_of(qp) : &qp->sends;
	struct work *work = work_at(queue, 0);
	uint64_t index = 0;

	/* Most completions are of the oldest work. */
	if (!work_count(queue) || !work_ends(work, wc->wr_id, false)) {
		index = work_find(queue, wc->wr_id, false);
		if (index == UINT64_MAX)
			return;
		work = work_at(queue, index);
	}
	if (receive)
		end_receive(check, qp, queue, work, wc, false);
	else
		end_send(check, qp, work, index, wc, false);
}

/* qp is the QP of the completion, or NULL. */
static inline __attribute__((always_inline)) void see_completion_of(struct check_call *check,
								    struct check_qp *qp,
								    struct ibv_wc *wc)
{
	if (qp && wc->status == IBV_WC_SUCCESS) {
		end_work(check, qp, wc);
	} else if (qp) {
		end_failed(check, qp, wc);
		if (!qp->failed)
			qp->failure_polled = check->spot;
		qp->failed = true;
	}
	if (check_alerts || wc->status != IBV_WC_SUCCESS)
		tell_polled(check, qp, wc);
}

static __attribute__((noinline)) void see_completion(struct check_call *check, struct ibv_wc *wc)
{
	see_completion_of(check, object_find_qpn(check->call->context, wc->qp_num), wc);
}

/* Completions in a row are often of one QP, which is then looked up once. */
static void after_poll(struct check_call *check)
{
	struct ibv_wc *wc = check_pointer(check, 2);
	struct check_qp *qp = NULL;

	for (int64_t i = 0; i < (int64_t)check->call->result; i++) {
		if (!qp || qp->qpn != wc[i].qp_num)
			qp = object_find_qpn(check->call->context, wc[i].qp_num);
		see_completion_of(check, qp, &wc[i]);
	}
}

/* After ibv_start_poll() and ibv_next_poll(). The completion is NULL if the CQ was empty. */
static void after_step(struct check_call *check)
{
	struct ibv_wc *wc = check_pointer(check, 1);

	if (!track_failed(check) && wc)
		see_completion(check, wc);
}

const struct check_hook track_completion_hooks[] = {
	{LAYER_poll_cq, NULL, after_poll},
	{LAYER_start_poll, NULL, after_step},
	{LAYER_next_poll, NULL, after_step},
	{0},
};
