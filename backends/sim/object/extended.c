/* SPDX-License-Identifier: MIT */
#include "backends/sim/object/extended.h"

#include "backends/sim/verb/data.h"
#include "backends/sim/world/say.h"
#include "backends/sim/world/world.h"

#include <errno.h>

static struct cq *self(struct ibv_cq_ex *ex)
{
	return (struct cq *)ex;
}

/* Makes the oldest entry the current one. ENOENT for none; EIO once an overrun CQ is drained. */
static int take(struct cq *cq)
{
	const struct sim_cqe *cqe = sim_cq_peek(cq->engine);

	if (!cqe)
		return cq->engine->overrun
			       ? say(EIO, "start_poll: CQ %u has overrun and is drained",
				     cq->ibv.handle)
			       : ENOENT;
	cq->current = *cqe;
	cq->ex.wr_id = cqe->wc.wr_id;
	cq->ex.status = cqe->wc.status;
	sim_cq_pop(cq->engine);
	return 0;
}

/* The poll mutex keeps a batch to one thread, from here to end_poll. */
static int start_poll(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr)
{
	struct vb_sim *world = context_of(ex->context)->world;
	struct cq *cq = cq_of((struct ibv_cq *)ex);
	bool locked, poll_locked;
	int err;

	if (!cq || attr->comp_mask)
		return say(EINVAL, "start_poll: no such CQ, or a comp_mask");
	poll_locked = !__libc_single_threaded && !cq->single_threaded;
	if (poll_locked)
		pthread_mutex_lock(&cq->poll_mutex);
	locked = world_lock(world);
	err = take(cq);
	if (err == ENOENT) {
		data_wait_a_little(world, cq);
		err = take(cq);
	}
	if (!err)
		cq->poll_locked = poll_locked;
	world_unlock(world, locked);
	if (err && poll_locked)
		pthread_mutex_unlock(&cq->poll_mutex);
	return err;
}

static int next_poll(struct ibv_cq_ex *ex)
{
	struct vb_sim *world = context_of(ex->context)->world;
	bool locked = world_lock(world);
	struct cq *cq = cq_of((struct ibv_cq *)ex);
	int err = cq ? take(cq) : say(EINVAL, "next_poll: no such CQ");

	world_unlock(world, locked);
	return err;
}

static void end_poll(struct ibv_cq_ex *ex)
{
	struct cq *cq = self(ex);

	if (cq->poll_locked) {
		cq->poll_locked = false;
		pthread_mutex_unlock(&cq->poll_mutex);
	}
}

static enum ibv_wc_opcode read_opcode(struct ibv_cq_ex *ex)
{
	return self(ex)->current.wc.opcode;
}

static uint32_t read_vendor_err(struct ibv_cq_ex *ex)
{
	return self(ex)->current.wc.vendor_err;
}

static uint32_t read_byte_len(struct ibv_cq_ex *ex)
{
	return self(ex)->current.wc.byte_len;
}

static __be32 read_imm_data(struct ibv_cq_ex *ex)
{
	return self(ex)->current.wc.imm_data;
}

static uint32_t read_qp_num(struct ibv_cq_ex *ex)
{
	return self(ex)->current.wc.qp_num;
}

static uint32_t read_src_qp(struct ibv_cq_ex *ex)
{
	return self(ex)->current.wc.src_qp;
}

static unsigned int read_wc_flags(struct ibv_cq_ex *ex)
{
	return self(ex)->current.wc.wc_flags;
}

static uint32_t read_slid(struct ibv_cq_ex *ex)
{
	return self(ex)->current.wc.slid;
}

static uint8_t read_sl(struct ibv_cq_ex *ex)
{
	return self(ex)->current.wc.sl;
}

static uint8_t read_dlid_path_bits(struct ibv_cq_ex *ex)
{
	return self(ex)->current.wc.dlid_path_bits;
}

/* In ticks of hca_core_clock, which is 1 GHz here. */
static uint64_t read_completion_ts(struct ibv_cq_ex *ex)
{
	return self(ex)->current.timestamp_ns;
}

/* What CLOCK_REALTIME said when the world was made, and the world's time since then: so stamps are
 * as far apart as the events were, whatever sets that clock meanwhile. */
static uint64_t read_completion_wallclock_ns(struct ibv_cq_ex *ex)
{
	return context_of(ex->context)->world->driver.wall_base_ns + self(ex)->current.timestamp_ns;
}

void extended_fill_cq(struct cq *cq, uint64_t wc_flags)
{
	struct ibv_cq_ex *ex = &cq->ex;

	ex->start_poll = start_poll;
	ex->next_poll = next_poll;
	ex->end_poll = end_poll;
	ex->read_opcode = read_opcode;
	ex->read_vendor_err = read_vendor_err;
	ex->read_wc_flags = read_wc_flags;
	/* The standard fields cost nothing to serve, asked for or not. */
	ex->read_byte_len = read_byte_len;
	ex->read_imm_data = read_imm_data;
	ex->read_qp_num = read_qp_num;
	ex->read_src_qp = read_src_qp;
	ex->read_slid = read_slid;
	ex->read_sl = read_sl;
	ex->read_dlid_path_bits = read_dlid_path_bits;
	if (wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP)
		ex->read_completion_ts = read_completion_ts;
	if (wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)
		ex->read_completion_wallclock_ns = read_completion_wallclock_ns;
}
