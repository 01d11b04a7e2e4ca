/* SPDX-License-Identifier: MIT */
#include "backends/sim/verb/data.h"

#include "backends/sim/world/say.h"
#include "backends/sim/world/world.h"

#include "sim/qp/state.h"

#include <errno.h>

#define unlikely(x) __builtin_expect(!!(x), 0)

int data_post_send(struct ibv_qp *ibv, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	struct vb_sim *world = context_of(ibv->context)->world;
	bool locked = world_lock(world);
	struct qp *qp = qp_of(ibv);
	int err;

	if (unlikely(!qp)) {
		*bad_wr = wr;
		err = say(EINVAL, "post_send: no such QP");
	} else {
		err = sim_qp_post_send(qp->engine, wr, bad_wr);
		if (unlikely(err))
			say(err, "post_send: QP 0x%x in %s", ibv->qp_num,
			    sim_qp_state_str(sim_qp_state(qp->engine)));
		if (world->driver.real)
			driver_catch_up(world);
	}
	world_unlock(world, locked);
	return err;
}

int data_post_recv(struct ibv_qp *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	struct vb_sim *world = context_of(ibv->context)->world;
	bool locked = world_lock(world);
	struct qp *qp = qp_of(ibv);
	int err;

	if (unlikely(!qp)) {
		*bad_wr = wr;
		err = say(EINVAL, "post_recv: no such QP");
	} else {
		err = sim_qp_post_recv(qp->engine, wr, bad_wr);
		if (unlikely(err))
			say(err, "post_recv: QP 0x%x in %s", ibv->qp_num,
			    sim_qp_state_str(sim_qp_state(qp->engine)));
		/* In ERR it is flushed at once. */
		if (world->driver.real)
			driver_catch_up(world);
	}
	world_unlock(world, locked);
	return err;
}

static bool has_entry(const void *arg)
{
	return sim_cq_count(((const struct cq *)arg)->engine) > 0;
}

void data_wait_a_little(struct vb_sim *world, struct cq *cq)
{
	driver_step(world, has_entry, cq);
}

int data_poll_cq(struct ibv_cq *ibv, int num_entries, struct ibv_wc *wc)
{
	struct vb_sim *world = context_of(ibv->context)->world;
	bool locked = world_lock(world);
	struct cq *cq = cq_of(ibv);
	int taken;

	if (unlikely(!cq || num_entries < 0)) {
		taken = say_minus(EINVAL, "poll_cq: no such CQ, or a negative count");
	} else {
		if (!sim_cq_count(cq->engine) && !cq->engine->overrun && num_entries > 0)
			data_wait_a_little(world, cq);
		taken = sim_cq_poll(cq->engine, num_entries, wc);
		if (unlikely(taken < 0))
			say(EIO, "poll_cq: CQ %u has overrun and is drained", ibv->handle);
	}
	world_unlock(world, locked);
	return taken;
}

int data_req_notify_cq(struct ibv_cq *ibv, int solicited_only)
{
	struct vb_sim *world = context_of(ibv->context)->world;
	bool locked = world_lock(world);
	struct cq *cq = cq_of(ibv);

	if (cq)
		sim_cq_arm(cq->engine, solicited_only);
	world_unlock(world, locked);
	return cq ? 0 : say(EINVAL, "req_notify_cq: no such CQ");
}
