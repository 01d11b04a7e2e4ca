/* SPDX-License-Identifier: MIT */
#include "control.h"
#include "say.h"
#include "world.h"

#include "sim/qp_state.h"

#include <errno.h>
#include <string.h>

static struct cq *cq_in(const struct context *context, struct ibv_cq *ibv)
{
	return ibv && ibv->context == &context->verbs.context ? cq_of(ibv) : NULL;
}

static void fill_qp(struct qp *qp, struct ibv_pd *pd, const struct ibv_qp_init_attr *attr,
		    uint32_t handle)
{
	qp->ibv = (struct ibv_qp){
		.context = pd->context,
		.qp_context = attr->qp_context,
		.pd = pd,
		.send_cq = attr->send_cq,
		.recv_cq = attr->recv_cq,
		.handle = handle,
		.qp_num = qp->engine->number,
		.state = IBV_QPS_RESET,
		.qp_type = attr->qp_type,
	};
	pthread_mutex_init(&qp->ibv.mutex, NULL);
	pthread_cond_init(&qp->ibv.cond, NULL);
}

static struct qp *new_qp(struct ibv_pd *ibv_pd, struct ibv_qp_init_attr *attr)
{
	struct context *context = context_of(ibv_pd->context);
	struct pd *pd = pd_of(ibv_pd);
	struct cq *send_cq = cq_in(context, attr->send_cq);
	struct cq *recv_cq = cq_in(context, attr->recv_cq);
	struct sim_qp_init init;
	struct qp *qp;
	uint32_t handle;
	int err;

	if (!pd || !send_cq || !recv_cq)
		return say_null(EINVAL, "create_qp: no such %s in this context",
				!pd	   ? "PD"
				: !send_cq ? "send CQ"
					   : "receive CQ");
	if (attr->srq)
		return say_null(EOPNOTSUPP, "create_qp: shared receive queues are not built yet");
	qp = object_new(context, KIND_QP, &handle);
	if (!qp)
		return say_null(ENOMEM, "create_qp: out of memory");
	init = (struct sim_qp_init){
		.type = attr->qp_type,
		.pd = pd->number,
		.send_cq = send_cq->engine,
		.recv_cq = recv_cq->engine,
		.cap = attr->cap,
		.sig_all = attr->sq_sig_all,
		.user = qp,
	};
	err = sim_qp_create(context->device->engine, &init, &qp->engine);
	if (err) {
		object_end(context, KIND_QP, handle, qp);
		return say_null(err, "create_qp: type %d with %u+%u WRs, %u+%u SGEs, %u inline",
				attr->qp_type, attr->cap.max_send_wr, attr->cap.max_recv_wr,
				attr->cap.max_send_sge, attr->cap.max_recv_sge,
				attr->cap.max_inline_data);
	}
	fill_qp(qp, ibv_pd, attr, handle);
	attr->cap = init.cap;
	pd->users++;
	return qp;
}

struct ibv_qp *control_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct vb_sim *world = context_of(pd->context)->world;
	bool locked = world_lock(world);
	struct qp *qp = new_qp(pd, attr);

	world_unlock(world, locked);
	return qp ? &qp->ibv : NULL;
}

/* The first fields of ibv_qp_init_attr_ex are ibv_qp_init_attr's, which libibverbs relies on too. */
struct ibv_qp *control_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
	if (attr->comp_mask & ~(uint32_t)IBV_QP_INIT_ATTR_PD)
		return say_null(EOPNOTSUPP, "create_qp_ex: comp_mask 0x%x", attr->comp_mask);
	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD) || !attr->pd || attr->pd->context != context)
		return say_null(EINVAL, "create_qp_ex: no PD of this context");
	return control_create_qp(attr->pd, (struct ibv_qp_init_attr *)attr);
}

int control_modify_qp(struct ibv_qp *ibv, struct ibv_qp_attr *attr, int attr_mask)
{
	struct vb_sim *world = context_of(ibv->context)->world;
	bool locked = world_lock(world);
	struct qp *qp = qp_of(ibv);
	int err = EINVAL;

	if (!qp) {
		say(err, "modify_qp: no such QP");
	} else {
		enum ibv_qp_state from = qp->engine->state;

		driver_catch_up(world);
		err = sim_qp_modify(qp->engine, attr, attr_mask);
		if (err)
			say(err, "modify_qp: QP 0x%x in %s to %s with mask 0x%x: refused",
			    ibv->qp_num, sim_qp_state_str(from),
			    attr_mask & IBV_QP_STATE ? sim_qp_state_str(attr->qp_state)
						     : "the same",
			    (unsigned int)attr_mask);
		else if (attr_mask & IBV_QP_STATE)
			ibv->state = attr->qp_state;
		qp->answer.given = false;
		driver_catch_up(world);
	}
	world_unlock(world, locked);
	return err;
}

/* --- query --- */

/* What a QP does of itself: its state, and the end of draining. */
static uint64_t digest_of(const struct qp *qp)
{
	return (uint64_t)qp->engine->state << 1 | qp->engine->sq_draining;
}

static bool answer_differs(const void *arg)
{
	const struct qp *qp = arg;

	return digest_of(qp) != qp->answer.digest;
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
		.sq_sig_all = qp->engine->sig_all != 0,
	};
}

int control_query_qp(struct ibv_qp *ibv, struct ibv_qp_attr *attr, int attr_mask,
		     struct ibv_qp_init_attr *init_attr)
{
	struct vb_sim *world = context_of(ibv->context)->world;
	bool locked = world_lock(world);
	struct qp *qp = qp_of(ibv);

	if (qp) {
		driver_catch_up(world);
		if (qp->answer.given && !answer_differs(qp))
			driver_step(world, answer_differs, qp);
		qp->answer = (struct answer){.digest = digest_of(qp), .given = true};
		memset(attr, 0, sizeof(*attr));
		sim_qp_query(qp->engine, attr);
		fill_init_attr(qp, attr, init_attr);
		ibv->state = attr->qp_state;
	}
	world_unlock(world, locked);
	return qp ? 0 : say(EINVAL, "query_qp: no such QP");
}

/* --- destroy --- */

void control_end_qp(struct context *context, struct qp *qp)
{
	event_queue_forget(&context->async, qp);
	sim_qp_destroy(qp->engine);
	((struct pd *)qp->ibv.pd)->users--;
	object_end(context, KIND_QP, qp->ibv.handle, qp);
}

static bool all_acknowledged(const void *arg)
{
	const struct qp *qp = arg;

	return qp->async_events_read == qp->ibv.events_completed;
}

/* ibv_get_async_event(3): destroying waits for the acknowledgement of every event that was read. */
static int wait_for_acks(struct vb_sim *world, const struct qp *qp)
{
	if (all_acknowledged(qp))
		return 0;
	if (world->driver.real || driver_has_others(world)) {
		if (!driver_wait(world, all_acknowledged, qp))
			return 0;
	}
	return say(EDEADLK, "destroy_qp: QP 0x%x: %u events are read and not acknowledged",
		   qp->ibv.qp_num, qp->async_events_read - qp->ibv.events_completed);
}

int control_destroy_qp(struct ibv_qp *ibv)
{
	struct context *context = context_of(ibv->context);
	bool locked = world_lock(context->world);
	struct qp *qp = qp_of(ibv);
	int err;

	err = qp ? wait_for_acks(context->world, qp) : say(EINVAL, "destroy_qp: no such QP");
	if (!err)
		control_end_qp(context, qp);
	world_unlock(context->world, locked);
	return err;
}
