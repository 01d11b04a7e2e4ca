/* SPDX-License-Identifier: MIT */
#include "src/check/track.h"

#include <string.h>
#include <verbena/cm.h>
#include <verbena/explain.h>

#define SGES_MAX  256 /* of a WR, if the QP's limit is unknown: more are taken for a wrong number */
#define WORKS_MAX 65536 /* of a chain, if the queue's limit is unknown: the chain may be a loop */

static uint64_t posts; /* counts the posts of the process */

static bool failed(const struct check_call *check)
{
	return check->call->err;
}

/* --- the rules --- */

/*
 * Each of these functions calls one function of all rules that have it. They name the rules instead of going
 * through a table, so that link-time optimisation leaves only the calls that are needed.
 */

static CHECK_RARE void call_rare(struct check_call *check, struct check_qp *qp, struct work *work)
{
#define CALL(name)                                           \
	if (rule_##name.posted && rule_##name.posted_rarely) \
		rule_##name.posted(check, qp, work);
	CHECK_RULES(CALL)
#undef CALL
}

static inline __attribute__((always_inline)) void tell_posted(struct check_call *check,
							      struct check_qp *qp,
							      struct work *work)
{
#define CALL(name)                                            \
	if (rule_##name.posted && !rule_##name.posted_rarely) \
		rule_##name.posted(check, qp, work);
	CHECK_RULES(CALL)
#undef CALL
	if (check_alerts || !work->fits || !qp || qp->alerts)
		call_rare(check, qp, work);
}

static CHECK_RARE void call_rare_done(struct check_call *check, struct check_qp *qp,
				      struct work *work, const struct ibv_wc *wc)
{
#define CALL(name)                                       \
	if (rule_##name.done && rule_##name.done_rarely) \
		rule_##name.done(check, qp, work, wc);
	CHECK_RULES(CALL)
#undef CALL
}

static inline __attribute__((always_inline)) void tell_done(struct check_call *check,
							    struct check_qp *qp, struct work *work,
							    const struct ibv_wc *wc, bool failed)
{
	const bool alerted = failed || check_alerts;
	const bool targets = work->target || alerted;

#define CALL(name)                                                                     \
	if (rule_##name.done && !rule_##name.done_rarely && !rule_##name.done_targets) \
		rule_##name.done(check, qp, work, wc);
	CHECK_RULES(CALL)
#undef CALL
#define CALL(name)                                                   \
	if (targets && rule_##name.done && rule_##name.done_targets) \
		rule_##name.done(check, qp, work, wc);
	CHECK_RULES(CALL)
#undef CALL
	if (alerted || qp->alerts || qp->srq)
		call_rare_done(check, qp, work, wc);
}

static CHECK_RARE void tell_polled(struct check_call *check, struct check_qp *qp, struct ibv_wc *wc)
{
#define CALL(name)              \
	if (rule_##name.polled) \
		rule_##name.polled(check, qp, wc);
	CHECK_RULES(CALL)
#undef CALL
}

/* --- posts --- */

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

	*to = (struct work_sge){.sge = *sge};
	work->length_bytes += sge->length;
	if (mr)
		to->mr_number = mr->number;
	if (mr && object_contains(mr, sge->addr, sge->length)) {
		to->memory = mr->memory ? (const char *)mr->memory + (sge->addr - mr->addr) : NULL;
		work->fits &= mr->pd == pd;
	} else {
		work->fits = false;
	}
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

/* Takes back what was recorded and not accepted. */
static void take_back(struct check_call *check, struct check_qp *qp, struct work_queue *queue,
		      uint64_t recorded, uint64_t accepted)
{
	for (uint64_t i = work_count(queue); recorded > accepted && i; recorded--) {
		struct work *work = work_at(queue, --i);
		struct check_cq *cq = !qp ? NULL : work->send ? qp->send_cq : qp->recv_cq;

		if (cq && work->signalled && cq->in_flight)
			cq->in_flight--;
		check_refused(check, qp, work);
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

	if (!check->qp || !failed(check))
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

	if (!failed(check))
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

/* --- completions --- */

static struct work_queue *receives_of(struct check_qp *qp)
{
	return qp->srq ? &qp->srq->receives : &qp->receives;
}

static void leave_cq(struct check_cq *cq, const struct work *work)
{
	if (cq && work->signalled && cq->in_flight)
		cq->in_flight--;
}

/* Sends that are not signalled end with a later one. */
static __attribute__((noinline)) void end_earlier(struct check_call *check, struct check_qp *qp,
						  uint64_t count)
{
	for (uint64_t i = 0; i < count; i++) {
		leave_cq(qp->send_cq, work_at(&qp->sends, i));
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
	leave_cq(qp->send_cq, work);
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
		leave_cq(qp->recv_cq, work);
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

	if (!failed(check) && wc)
		see_completion(check, wc);
}

/* --- works that get no completion --- */

static void drop(struct check_call *check, struct check_qp *qp, struct work_queue *queue,
		 struct check_cq *cq)
{
	for (uint64_t i = 0; i < work_count(queue); i++) {
		struct work *work = work_at(queue, i);

		if (work->done)
			continue;
		leave_cq(cq, work);
		check_dropped(check, qp, work);
	}
	work_leave(queue, work_count(queue));
}

static void drop_all(struct check_call *check, struct check_qp *qp)
{
	drop(check, qp, &qp->sends, qp->send_cq);
	drop(check, qp, &qp->receives, qp->recv_cq);
}

/* --- objects that functions out of sight have ended --- */

/* QPs that ended without a verb may still name the CQ. */
static void forget_cq(const struct check_cq *cq)
{
	for (struct object *object = object_first(OBJECT_QP); object;
	     object = object->next_of_kind) {
		struct check_qp *qp = (struct check_qp *)object;

		if (qp->send_cq == cq)
			qp->send_cq = NULL;
		if (qp->recv_cq == cq)
			qp->recv_cq = NULL;
	}
}

static void forget_srq(const struct check_srq *srq)
{
	for (struct object *object = object_first(OBJECT_QP); object;
	     object = object->next_of_kind) {
		struct check_qp *qp = (struct check_qp *)object;

		if (qp->srq == srq)
			qp->srq = NULL;
	}
}

/* Forgets an old object at the address of a new one. NULL: there is none. */
static void end_stale(struct object *object)
{
	if (!object)
		return;
	if (object->kind == OBJECT_CQ)
		forget_cq((struct check_cq *)object);
	else if (object->kind == OBJECT_SRQ)
		forget_srq((struct check_srq *)object);
	object_hide(object);
	object_free(object);
}

/* --- QPs --- */

static void enter_qp(struct check_call *check, struct ibv_qp *qp, const struct ibv_qp_cap *cap,
		     bool signals_all)
{
	struct check_qp *known;

	end_stale((struct object *)object_find_qp(qp));
	known = object_enter_qp(qp, cap, signals_all);
	if (known)
		known->object.made = check->spot;
	check_watch_forks();
}

static void after_create_qp(struct check_call *check)
{
	const struct ibv_qp_init_attr *attr = check_pointer(check, 1);

	if (!failed(check))
		enter_qp(check, (struct ibv_qp *)(uintptr_t)check->call->result, &attr->cap,
			 attr->sq_sig_all);
}

static void after_create_qp_ex(struct check_call *check)
{
	const struct ibv_qp_init_attr_ex *attr = check_pointer(check, 1);

	if (!failed(check))
		enter_qp(check, (struct ibv_qp *)(uintptr_t)check->call->result, &attr->cap,
			 attr->sq_sig_all);
}

static void after_cm_create_qp(struct check_call *check)
{
	const struct rdma_cm_id *id = check_pointer(check, 0);
	const struct ibv_qp_init_attr *attr = check_pointer(check, 2);

	if (!failed(check) && id->qp)
		enter_qp(check, id->qp, &attr->cap, attr->sq_sig_all);
}

static void after_cm_create_qp_ex(struct check_call *check)
{
	const struct rdma_cm_id *id = check_pointer(check, 0);
	const struct ibv_qp_init_attr_ex *attr = check_pointer(check, 1);

	if (!failed(check) && id->qp)
		enter_qp(check, id->qp, &attr->cap, attr->sq_sig_all);
}

static void hide(struct check_call *check, struct object *object)
{
	*check->state = (uintptr_t)object;
	if (object)
		object_hide(object);
}

static void before_destroy_qp(struct check_call *check)
{
	hide(check, check->qp ? &check->qp->object : NULL);
}

static void before_cm_destroy_qp(struct check_call *check)
{
	const struct rdma_cm_id *id = check_pointer(check, 0);
	struct layer_object known;
	struct check_qp *qp;

	/* An identifier that is unknown may be any pointer. */
	if (!layer_object_find(id, &known))
		return;
	qp = object_find_qp(id->qp);
	hide(check, qp ? &qp->object : NULL);
}

static void after_destroy_qp(struct check_call *check)
{
	struct check_qp *qp = (struct check_qp *)(uintptr_t)*check->state;

	if (!qp)
		return;
	if (failed(check)) {
		object_show(&qp->object);
		return;
	}
	drop_all(check, qp);
	object_free(&qp->object);
}

static void after_modify_qp(struct check_call *check)
{
	const struct ibv_qp_attr *attr = check_pointer(check, 1);
	const int mask = (int)check->call->arguments[2];
	struct check_qp *qp = check->qp;

	if (failed(check) || !qp)
		return;
	if (mask & IBV_QP_STATE && attr->qp_state == IBV_QPS_RESET) {
		drop_all(check, qp);
		qp->attr_mask = 0;
		qp->failed = false;
	}
	object_set_attr(qp, attr, mask);
	if (mask & IBV_QP_STATE) {
		qp->state = attr->qp_state;
		qp->modified = check->spot;
	}
}

/* --- CQs and SRQs --- */

static struct check_cq *enter_cq(struct check_call *check, struct ibv_cq *cq)
{
	struct check_cq *known;

	end_stale((struct object *)object_find_cq(cq));
	known = object_cq(cq);
	if (known)
		known->object.made = check->spot;
	check_watch_forks();
	return known;
}

static void after_create_cq(struct check_call *check)
{
	if (!failed(check))
		enter_cq(check, (struct ibv_cq *)(uintptr_t)check->call->result);
}

static void after_create_cq_ex(struct check_call *check)
{
	const struct ibv_cq_init_attr_ex *attr = check_pointer(check, 1);
	struct check_cq *cq;

	if (failed(check))
		return;
	cq = enter_cq(check, (struct ibv_cq *)(uintptr_t)check->call->result);
	if (cq)
		cq->single_threaded = attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS &&
				      attr->flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED;
}

static void after_resize_cq(struct check_call *check)
{
	const struct ibv_cq *cq = check_pointer(check, 0);

	if (!failed(check) && check->cq)
		check->cq->cqe = (uint32_t)cq->cqe;
}

static void before_destroy_cq(struct check_call *check)
{
	hide(check, check->cq ? &check->cq->object : NULL);
}

static void after_destroy_cq(struct check_call *check)
{
	struct object *object = (struct object *)(uintptr_t)*check->state;

	if (!object)
		return;
	if (failed(check)) {
		object_show(object);
		return;
	}
	forget_cq((struct check_cq *)object);
	object_free(object);
}

static bool is_xrc(const struct check_call *check)
{
	const struct ibv_srq_init_attr_ex *attr = check_pointer(check, 1);

	return check->call->verb == LAYER_create_srq_ex &&
	       attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE && attr->srq_type == IBV_SRQT_XRC;
}

static void after_create_srq(struct check_call *check)
{
	struct ibv_srq *srq = (struct ibv_srq *)(uintptr_t)check->call->result;
	struct check_srq *known;

	if (failed(check))
		return;
	end_stale((struct object *)object_find_srq(srq));
	known = object_srq(srq);
	if (!known)
		return;
	known->object.made = check->spot;
	known->xrc = is_xrc(check);
}

static void before_destroy_srq(struct check_call *check)
{
	struct check_srq *srq = object_find_srq(check_pointer(check, 0));

	hide(check, srq ? &srq->object : NULL);
}

static void after_destroy_srq(struct check_call *check)
{
	struct check_srq *srq = (struct check_srq *)(uintptr_t)*check->state;

	if (!srq)
		return;
	if (failed(check)) {
		object_show(&srq->object);
		return;
	}
	drop(check, NULL, &srq->receives, NULL);
	forget_srq(srq);
	object_free(&srq->object);
}

/* --- MRs --- */

/* Returns NULL if the verb has failed, or without memory. */
static struct check_mr *enter_mr(struct check_call *check, int access)
{
	struct ibv_mr *mr = (struct ibv_mr *)(uintptr_t)check->call->result;
	struct check_mr *known = failed(check) ? NULL : object_mr(mr, access);

	if (known)
		known->object.made = check->spot;
	check_watch_forks();
	return known;
}

static void after_reg_mr(struct check_call *check)
{
	const int access = (int)check->call->arguments[3];
	struct check_mr *known = enter_mr(check, access);

	if (!known)
		return;
	known->addr = access & IBV_ACCESS_ZERO_BASED ? 0 : check->call->arguments[1];
	known->memory = check_pointer(check, 1);
}

/* A null MR has all addresses and lengths. */
static void after_null_mr(struct check_call *check)
{
	struct check_mr *known = enter_mr(check, 0);

	if (!known)
		return;
	known->addr = 0;
	known->length_bytes = UINT64_MAX;
	known->memory = NULL;
}

/* Memory of the device, or of another driver, is not in this process. */
static void after_reg_other_mr(struct check_call *check)
{
	const struct layer_call *call = check->call;
	const bool dmabuf = call->verb == LAYER_reg_dmabuf_mr;
	struct check_mr *known = enter_mr(check, (int)call->arguments[dmabuf ? 5 : 4]);

	if (!known)
		return;
	known->addr = dmabuf ? call->arguments[3] : 0;
	known->length_bytes = call->arguments[dmabuf ? 2 : 3];
	known->memory = NULL;
}

/* Work requests address this MR from iova on. */
static void after_reg_mr_iova(struct check_call *check)
{
	struct check_mr *known = enter_mr(check, (int)check->call->arguments[4]);

	if (!known)
		return;
	known->addr = check->call->arguments[3];
	known->memory = check_pointer(check, 1);
}

static void before_dereg_mr(struct check_call *check)
{
	struct check_mr *mr = object_find_mr(check_pointer(check, 0));

	hide(check, mr ? &mr->object : NULL);
}

static void after_dereg_mr(struct check_call *check)
{
	struct object *object = (struct object *)(uintptr_t)*check->state;

	if (!object)
		return;
	if (failed(check))
		object_show(object);
	else
		object_end_mr((struct check_mr *)object, &check->spot);
}

static void after_rereg_mr(struct check_call *check)
{
	const struct ibv_mr *mr = check_pointer(check, 0);
	struct object *object = (struct object *)(uintptr_t)*check->state;
	struct check_mr *known;

	if (!object)
		return;
	object_show(object);
	if (failed(check))
		return;
	object_hide(object);
	known = (struct check_mr *)object;
	known->pd = mr->pd;
	if (check->call->arguments[1] & IBV_REREG_MR_CHANGE_TRANSLATION) {
		known->addr = check->call->arguments[3];
		known->memory = check_pointer(check, 3);
		known->length_bytes = check->call->arguments[4];
	}
	known->lkey = mr->lkey;
	known->rkey = mr->rkey;
	if (check->call->arguments[1] & IBV_REREG_MR_CHANGE_ACCESS)
		known->access = (int)check->call->arguments[5];
	object_show(object);
}

const struct check_hook track_hooks[] = {
	{LAYER_post_send, before_sends, after_sends, .after_failure_only = true},
	{LAYER_wr_complete, before_sends, after_sends, .after_failure_only = true},
	{LAYER_post_recv, before_receives, after_receives, .after_failure_only = true},
	{LAYER_post_srq_recv, before_srq_receives, after_srq_receives, .after_failure_only = true},
	{LAYER_poll_cq, NULL, after_poll},
	{LAYER_start_poll, NULL, after_step},
	{LAYER_next_poll, NULL, after_step},
	{LAYER_create_qp, NULL, after_create_qp},
	{LAYER_create_qp_ex, NULL, after_create_qp_ex},
	{LAYER_cm_create_qp, NULL, after_cm_create_qp},
	{LAYER_cm_create_qp_ex, NULL, after_cm_create_qp_ex},
	{LAYER_destroy_qp, before_destroy_qp, after_destroy_qp},
	{LAYER_cm_destroy_qp, before_cm_destroy_qp, after_destroy_qp},
	{LAYER_cm_destroy_ep, before_cm_destroy_qp, after_destroy_qp},
	{LAYER_modify_qp, NULL, after_modify_qp},
	{LAYER_create_cq, NULL, after_create_cq},
	{LAYER_create_cq_ex, NULL, after_create_cq_ex},
	{LAYER_resize_cq, NULL, after_resize_cq},
	{LAYER_destroy_cq, before_destroy_cq, after_destroy_cq},
	{LAYER_create_srq, NULL, after_create_srq},
	{LAYER_create_srq_ex, NULL, after_create_srq},
	{LAYER_destroy_srq, before_destroy_srq, after_destroy_srq},
	{LAYER_reg_mr, NULL, after_reg_mr},
	{LAYER_reg_mr_iova, NULL, after_reg_mr_iova},
	{LAYER_reg_mr_iova2, NULL, after_reg_mr_iova},
	{LAYER_reg_dmabuf_mr, NULL, after_reg_other_mr},
	{LAYER_alloc_null_mr, NULL, after_null_mr},
	{LAYER_import_mr, NULL, after_null_mr},
	{LAYER_unimport_mr, before_dereg_mr, after_dereg_mr},
	{LAYER_reg_dm_mr, NULL, after_reg_other_mr},
	{LAYER_rereg_mr, before_dereg_mr, after_rereg_mr},
	{LAYER_dereg_mr, before_dereg_mr, after_dereg_mr},
	{0},
};
