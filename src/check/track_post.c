/* SPDX-License-Identifier: MIT */
/* Follows posts: each posted work request becomes a work of its queue, unless the device refuses it. */
#include "src/check/tell.h"
#include "src/check/track.h"

#define SGES_MAX  256 /* of a WR, if the QP's limit is unknown: more are taken for a wrong number */
#define WORKS_MAX 65536 /* of a chain, if the queue's limit is unknown: the chain may be a loop */

static uint64_t posts; /* counts the posts of the process */

/* Returns the largest number of WRs of a chain that the device may take. */
static uint64_t chain_max(const struct check_qp *qp, uint32_t limit)
{
	return qp && qp->knows_caps ? limit : WORKS_MAX;
}

/* Copies an SGE. mr is the MR of its lkey; NULL: unknown. */
static inline void record_sge(struct work *work, uint32_t index, const struct ibv_sge *sge,
			      const struct check_mr *mr, const struct ibv_pd *pd)
{
	struct work_sge *to = &work->sges[index];

	to->sge = *sge;
	to->memory = NULL;
	to->mr_number = mr ? mr->number : 0;
	work->length_bytes += sge->length;
	if (!mr || !object_contains(mr, sge->addr, sge->length)) {
		work->fits = false;
		return;
	}
	if (mr->memory)
		to->memory = (const char *)mr->memory + (sge->addr - mr->addr);
	work->fits &= mr->pd == pd;
}

/* Copies what posts of all kinds have. Returns NULL if the verb will refuse the WR. */
static inline __attribute__((always_inline)) struct work *record(struct check_call *check,
								 struct work_queue *queue,
								 const struct ibv_pd *pd,
								 const struct ibv_sge *sges,
								 int sge_count, uint32_t sges_max)
{
	struct work *work;

	/* As an unsigned number, a negative one is too large. */
	if ((uint32_t)sge_count > (sges_max ? sges_max : SGES_MAX) || (sge_count && !sges))
		return NULL;
	work = work_add(queue, (uint32_t)sge_count);
	if (!work)
		return NULL;
	work->fits = true;
	for (uint32_t i = 0; i < (uint32_t)sge_count; i++)
		record_sge(work, i, &sges[i],
			   object_find_lkey(check->call->context, sges[i].lkey, pd), pd);
	work->number = ++posts;
	work->posted = check->spot;
	return work;
}

static bool writes_here(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_RDMA_READ || opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
	       opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

static bool is_datagram(enum ibv_qp_type type)
{
	return type == IBV_QPT_UD;
}

static void note_remote(const struct check_qp *qp, const struct ibv_send_wr *wr, struct work *work)
{
	if (is_datagram(qp->type)) {
		work->ah = wr->wr.ud.ah;
		work->remote_qpn = wr->wr.ud.remote_qpn;
		work->remote_qkey = wr->wr.ud.remote_qkey;
	} else if (wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
		   wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		work->remote_addr = wr->wr.atomic.remote_addr;
		work->rkey = wr->wr.atomic.rkey;
	} else if (wr->opcode == IBV_WR_BIND_MW) {
		work->mw = wr->bind_mw.mw;
	} else {
		work->remote_addr = wr->wr.rdma.remote_addr;
		work->rkey = wr->wr.rdma.rkey;
	}
}

static void record_send(struct check_call *check, struct check_qp *qp, const struct ibv_send_wr *wr,
			struct work *work)
{
	work->wr_id = wr->wr_id;
	work->send = true;
	work->signalled = qp->signals_all || wr->send_flags & IBV_SEND_SIGNALED;
	work->inlined = wr->send_flags & IBV_SEND_INLINE;
	work->target = writes_here(wr->opcode);
	work->opcode = wr->opcode;
	work->wr = wr;
	note_remote(qp, wr, work);
	if (work->signalled && qp->send_cq)
		qp->send_cq->in_flight++;
	tell_posted(check, qp, work);
}

/* The batch of ibv_wr_complete() has one pointer more than the list of ibv_post_send(). */
static void before_sends(struct check_call *check)
{
	struct check_qp *qp = check->qp;
	uint64_t count = 0, max;

	if (!qp)
		return;
	max = chain_max(qp, qp->cap.max_send_wr);
	for (const struct ibv_send_wr *wr = check_pointer(check, 1); wr && count < max;
	     wr = wr->next) {
		struct work *work = record(check, &qp->sends, qp->pd, wr->sg_list, wr->num_sge,
					   qp->cap.max_send_sge);

		if (!work)
			break;
		record_send(check, qp, wr, work);
		count++;
	}
	*check->state = count;
}

static void before_receives_of(struct check_call *check, struct work_queue *queue,
			       const struct ibv_pd *pd, uint32_t sges_max, struct check_cq *cq)
{
	const uint64_t max = chain_max(check->qp, check->qp ? check->qp->cap.max_recv_wr : 0);
	uint64_t count = 0;

	for (const struct ibv_recv_wr *wr = check_pointer(check, 1); wr && count < max;
	     wr = wr->next) {
		struct work *work = record(check, queue, pd, wr->sg_list, wr->num_sge, sges_max);

		if (!work)
			break;
		work->wr_id = wr->wr_id;
		work->signalled = work->target = true;
		work->wr = wr;
		if (cq)
			cq->in_flight++;
		tell_posted(check, check->qp, work);
		count++;
	}
	*check->state = count;
}

static void before_receives(struct check_call *check)
{
	if (check->qp)
		before_receives_of(check, &check->qp->receives, check->qp->pd,
				   check->qp->cap.max_recv_sge, check->qp->recv_cq);
}

/* Removes the works that were recorded for a post and not accepted by the device. */
static void take_back(struct check_call *check, struct check_qp *qp, struct work_queue *queue,
		      uint64_t recorded, uint64_t accepted)
{
	for (uint64_t i = work_count(queue); recorded > accepted && i; recorded--) {
		struct work *work = work_at(queue, --i);
		struct check_cq *cq = !qp ? NULL : work->send ? qp->send_cq : qp->recv_cq;

		if (cq && work->signalled && cq->in_flight)
			cq->in_flight--;
		tell_refused(check, qp, work);
		work_take_back(queue, 1);
	}
}

static void before_srq_receives(struct check_call *check)
{
	struct check_srq *srq = object_find_srq(check_pointer(check, 0));

	if (!srq)
		return;
	before_receives_of(check, &srq->receives, srq->pd, 0, NULL);
	if (!srq->xrc)
		return;
	take_back(check, NULL, &srq->receives, *check->state, 0);
	*check->state = 0;
}

/* After a failure *bad_wr is the first WR that was not accepted. */
static void after_sends(struct check_call *check)
{
	const struct ibv_send_wr *wr = check_pointer(check, 1);
	struct ibv_send_wr *const *bad;
	uint64_t accepted = 0;

	if (!check->qp || !track_failed(check))
		return;
	if (check->call->verb == LAYER_post_send) {
		bad = check_pointer(check, 2);
		for (; bad && wr && wr != *bad && accepted < *check->state; wr = wr->next)
			accepted++;
	}
	take_back(check, check->qp, &check->qp->sends, *check->state, accepted);
}

static void after_receives_of(struct check_call *check, struct work_queue *queue)
{
	const struct ibv_recv_wr *wr = check_pointer(check, 1);
	struct ibv_recv_wr *const *bad = check_pointer(check, 2);
	uint64_t accepted = 0;

	if (!track_failed(check))
		return;
	for (; bad && wr && wr != *bad && accepted < *check->state; wr = wr->next)
		accepted++;
	take_back(check, check->qp, queue, *check->state, accepted);
}

static void after_receives(struct check_call *check)
{
	if (check->qp)
		after_receives_of(check, &check->qp->receives);
}

static void after_srq_receives(struct check_call *check)
{
	struct check_srq *srq = object_find_srq(check_pointer(check, 0));

	if (srq)
		after_receives_of(check, &srq->receives);
}

const struct check_hook track_post_hooks[] = {
	{LAYER_post_send, before_sends, after_sends, .after_failure_only = true},
	{LAYER_wr_complete, before_sends, after_sends, .after_failure_only = true},
	{LAYER_post_recv, before_receives, after_receives, .after_failure_only = true},
	{LAYER_post_srq_recv, before_srq_receives, after_srq_receives, .after_failure_only = true},
	{0},
};
