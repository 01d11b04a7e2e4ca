/* SPDX-License-Identifier: MIT */
/* Changing, querying and ending a QP, and posting to it. */
#include "backends/sim/verb/batch.h"
#include "backends/sim/verb/verbs.h"

#include "sim/qp/state.h"

#include <string.h>

#define unlikely(x) __builtin_expect(!!(x), 0)

int verb_modify_qp(struct ibv_qp *ibv, struct ibv_qp_attr *attr, int attr_mask)
{
	HOLD hold = context_hold(ibv->context);
	struct qp *qp = qp_of(ibv);
	int err;

	if (!qp)
		return refuse_gone("modify_qp", KIND_QP, ibv);
	driver_catch_up(&hold.world->driver);
	if (qp->process)
		err = verb_modify_far_target(qp, attr, attr_mask);
	else if ((err = sim_qp_modify(qp->engine, attr, attr_mask)))
		say_refused(hold.world, "modify_qp", err);
	if (!err && attr_mask & IBV_QP_STATE)
		ibv->state = attr->qp_state;
	qp->answer.given = false;
	driver_catch_up(&hold.world->driver);
	return err;
}

/* --- query --- */

/* What the QP changes by itself: its state, and the end of draining. */
static uint64_t digest_qp(const void *of)
{
	const struct qp *qp = of;

	return (uint64_t)sim_qp_state(qp->engine) << 1 | sim_qp_is_draining(qp->engine);
}

static void fill_init_attr(const struct qp *qp, const struct ibv_qp_attr *attr,
			   struct ibv_qp_init_attr *init_attr)
{
	*init_attr = (struct ibv_qp_init_attr){
		.qp_context = qp->ibv.qp_context,
		.send_cq = qp->ibv.send_cq,
		.recv_cq = qp->ibv.recv_cq,
		.srq = qp->ibv.srq,
		.cap = attr->cap,
		.qp_type = qp->ibv.qp_type,
		.sq_sig_all = sim_qp_signals_all(qp->engine),
	};
}

int verb_query_qp(struct ibv_qp *ibv, struct ibv_qp_attr *attr, int attr_mask,
		  struct ibv_qp_init_attr *init_attr)
{
	HOLD hold = context_hold(ibv->context);
	struct qp *qp = qp_of(ibv);
	int err;

	if (!qp)
		return refuse_gone("query_qp", KIND_QP, ibv);
	driver_catch_up(&hold.world->driver);
	verb_ask(&hold.world->driver, &(struct question){digest_qp, qp, &qp->answer});
	memset(attr, 0, sizeof(*attr));
	if (!qp->process)
		sim_qp_query(qp->engine, attr);
	else if ((err = verb_query_far_target(qp, attr)))
		return err;
	fill_init_attr(qp, attr, init_attr);
	ibv->state = attr->qp_state;
	return 0;
}

/* --- post --- */

int verb_post_send(struct ibv_qp *ibv, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	HOLD hold = context_hold_to_post(ibv->context);
	struct qp *qp = qp_of(ibv);
	int err;

	if (unlikely(!qp)) {
		*bad_wr = wr;
		return refuse_queue("post_send", KIND_QP, ibv);
	}
	err = sim_qp_post_send(qp->engine, wr, bad_wr);
	if (unlikely(err))
		say_refused(hold.world, "post_send", err);
	if (hold.world->driver.real)
		driver_run_posted(&hold.world->driver);
	return err;
}

int verb_post_recv(struct ibv_qp *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	HOLD hold = context_hold_to_receive(ibv->context);
	struct qp *qp = qp_of(ibv);
	int err;

	if (unlikely(!qp)) {
		*bad_wr = wr;
		return refuse_queue("post_recv", KIND_QP, ibv);
	}
	err = sim_qp_post_recv(qp->engine, wr, bad_wr);
	if (unlikely(err))
		say_refused(hold.world, "post_recv", err);
	if (hold.world->driver.real)
		driver_run_received(&hold.world->driver);
	return err;
}

/* --- destroy --- */

bool verb_leave_ring(struct qp *qp)
{
	struct qp *before = qp;

	if (qp->next_handle == qp)
		return true;
	while (before->next_handle != qp)
		before = before->next_handle;
	before->next_handle = qp->next_handle;
	sim_qp_set_user(qp->engine, before);
	return false;
}

void verb_end_qp(void *object)
{
	struct qp *qp = object;

	event_queue_forget(&object_context(qp)->async, qp);
	if (qp->process)
		verb_close_far_target(qp);
	if (verb_leave_ring(qp))
		sim_qp_destroy(qp->engine);
	if (qp->pd)
		qp->pd->users--;
	if (qp->xrcd)
		qp->xrcd->users--;
	batch_free(qp);
	object_end(KIND_QP, qp);
}

static bool all_acknowledged(const void *arg)
{
	const struct qp *qp = arg;

	return qp->async_events_read == qp->ibv.events_completed;
}

/* ibv_get_async_event(3): waits until every event that was read is acknowledged. */
int verb_destroy_qp(struct ibv_qp *ibv)
{
	HOLD hold = context_hold(ibv->context);
	struct qp *qp = qp_of(ibv);
	int err;

	if (!qp)
		return refuse_gone("destroy_qp", KIND_QP, ibv);
	if (sim_multicast_has(qp->engine))
		return refuse_why("destroy_qp", (struct vb_why){VB_WHY_QP_IN_MULTICAST,
								{sim_qp_number(qp->engine)}});
	err = driver_wait_for_others(&hold.world->driver, all_acknowledged, qp);
	if (err)
		return refuse_events("destroy_qp", err, KIND_QP, qp);
	if (qp->xrcd)
		verb_bury_openers(hold.world);
	verb_end_qp(qp);
	return 0;
}
