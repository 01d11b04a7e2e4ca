/* SPDX-License-Identifier: MIT */
#include "backends/sim/verb/wr_api.h"

#include "backends/sim/guard/guard.h"
#include "backends/sim/world/say.h"
#include "backends/sim/world/world.h"
#include "sim/object/rules.h"

#include "sim/qp/state.h"
#include "sim/wire/opcode.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What a work request still needs, or may have, of setters. */
enum {
	NEEDS_DATA = 1 << 0,
	NEEDS_ADDRESS = 1 << 1, /* UD: an AH; XRC: an SRQ's number */
	MAY_INLINE = 1 << 2,
};

/* The work requests of a batch, each with room for its SGEs and inline data behind it. */
struct batch {
	pthread_mutex_t mutex;
	bool locks;
	bool open;	    /* between start and complete or abort */
	int error;	    /* the first, which ibv_wr_complete() returns */
	uint64_t ops;	    /* that the QP was made with */
	unsigned int lacks; /* of the newest work request */
	uint32_t count;
	uint32_t capacity;
	uint32_t max_wr;
	uint32_t max_sge;
	uint32_t max_inline;
	/* Of each in `sges` and `bytes`: an ATOMIC WRITE needs neither max_sge nor max_inline. */
	uint32_t sge_room;
	uint32_t inline_room;
	struct ibv_send_wr *wrs;
	struct ibv_sge *sges;
	uint8_t *bytes;
};

static const struct operation {
	uint64_t flag;
	enum ibv_wr_opcode opcode;
} operations[] = {
	{IBV_QP_EX_WITH_RDMA_WRITE, IBV_WR_RDMA_WRITE},
	{IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_WRITE_WITH_IMM},
	{IBV_QP_EX_WITH_SEND, IBV_WR_SEND},
	{IBV_QP_EX_WITH_SEND_WITH_IMM, IBV_WR_SEND_WITH_IMM},
	{IBV_QP_EX_WITH_RDMA_READ, IBV_WR_RDMA_READ},
	{IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_CMP_AND_SWP},
	{IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_FETCH_AND_ADD},
	{IBV_QP_EX_WITH_LOCAL_INV, IBV_WR_LOCAL_INV},
	{IBV_QP_EX_WITH_BIND_MW, IBV_WR_BIND_MW},
	{IBV_QP_EX_WITH_SEND_WITH_INV, IBV_WR_SEND_WITH_INV},
	{IBV_QP_EX_WITH_ATOMIC_WRITE, IBV_WR_ATOMIC_WRITE},
};

bool wr_api_supports(const struct sim_device *device, enum ibv_qp_type type,
		     uint64_t send_ops_flags)
{
	uint64_t left = send_ops_flags;

	if (send_ops_flags & IBV_QP_EX_WITH_ATOMIC_WRITE && !device->profile->atomic_write &&
	    sim_device_obeys(device, SIM_RULE_OPERATIONS_KNOWN))
		return false;
	for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++)
		if (sim_wr_info(type, operations[i].opcode)->flags & SIM_WR_LEGAL)
			left &= ~operations[i].flag;
	return left == 0;
}

static struct qp *self(struct ibv_qp_ex *ex)
{
	return (struct qp *)ex;
}

/* --- the batch --- */

static void fail(struct batch *batch, int err)
{
	if (!batch->error)
		batch->error = err;
}

static int resize_array(void **array, size_t count, size_t bytes)
{
	void *fresh = realloc(*array, count * bytes + 1);

	if (!fresh)
		return ENOMEM;
	*array = fresh;
	return 0;
}

static int grow(struct batch *batch)
{
	uint32_t capacity = batch->capacity ? batch->capacity * 2 : 8;

	if (capacity > batch->max_wr)
		capacity = batch->max_wr;
	if (resize_array((void **)&batch->wrs, capacity, sizeof(*batch->wrs)) ||
	    resize_array((void **)&batch->sges, (size_t)capacity * batch->sge_room,
			 sizeof(*batch->sges)) ||
	    resize_array((void **)&batch->bytes, (size_t)capacity * batch->inline_room, 1))
		return ENOMEM;
	batch->capacity = capacity;
	return 0;
}

/* The batch of a live QP that a builder or setter may add to; NULL once it is lost. */
static struct batch *open_batch(struct ibv_qp_ex *ex)
{
	struct batch *batch = self(ex)->batch;

	return batch && batch->open && !batch->error ? batch : NULL;
}

static void check_complete(struct batch *batch)
{
	if (batch->count && batch->lacks & (NEEDS_DATA | NEEDS_ADDRESS))
		fail(batch, EINVAL);
}

static unsigned int needs_of(const struct qp *qp, enum ibv_wr_opcode opcode)
{
	const unsigned int flags = sim_wr_info(qp->ibv.qp_type, opcode)->flags;
	unsigned int needs = NEEDS_DATA;

	if (flags & SIM_WR_LOCAL)
		return 0;
	if (qp->ibv.qp_type == IBV_QPT_UD || qp->ibv.qp_type == IBV_QPT_XRC_SEND)
		needs |= NEEDS_ADDRESS;
	if (flags & SIM_WR_INLINE)
		needs |= MAY_INLINE;
	return needs;
}

static struct ibv_send_wr *add(struct ibv_qp_ex *ex, uint64_t flag, enum ibv_wr_opcode opcode)
{
	struct batch *batch = open_batch(ex);
	struct ibv_send_wr *wr;

	if (!batch)
		return NULL;
	check_complete(batch);
	if (!(batch->ops & flag))
		fail(batch, EOPNOTSUPP);
	else if (batch->count == batch->max_wr || (batch->count == batch->capacity && grow(batch)))
		fail(batch, ENOMEM);
	if (batch->error)
		return NULL;
	wr = &batch->wrs[batch->count++];
	*wr = (struct ibv_send_wr){
		.wr_id = ex->wr_id,
		.opcode = opcode,
		.send_flags = ex->wr_flags & ~(unsigned int)IBV_SEND_INLINE,
	};
	batch->lacks = needs_of(self(ex), opcode);
	return wr;
}

/* The newest work request, for a setter that gives it `what`: once. */
static struct ibv_send_wr *newest(struct ibv_qp_ex *ex, struct batch **batch, unsigned int what)
{
	*batch = open_batch(ex);
	if (!*batch)
		return NULL;
	if (!(*batch)->count || ((*batch)->lacks & what) != what) {
		fail(*batch, EINVAL);
		return NULL;
	}
	(*batch)->lacks &= ~(what & (NEEDS_DATA | NEEDS_ADDRESS));
	return &(*batch)->wrs[(*batch)->count - 1];
}

/* Where the inline data of the newest work request goes. */
static uint8_t *inline_room(const struct batch *batch)
{
	return &batch->bytes[(size_t)(batch->count - 1) * batch->inline_room];
}

/* It has come: one piece of our copy; chain() says where it is. */
static void inlined(const struct batch *batch, struct ibv_send_wr *wr, uint32_t length)
{
	wr->send_flags |= IBV_SEND_INLINE;
	wr->num_sge = length ? 1 : 0;
	if (length)
		batch->sges[(size_t)(batch->count - 1) * batch->sge_room].length = length;
}

/* --- builders --- */

static void wr_atomic_cmp_swp(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr,
			      uint64_t compare, uint64_t swap)
{
	struct ibv_send_wr *wr =
		add(ex, IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_CMP_AND_SWP);

	if (!wr)
		return;
	wr->wr.atomic.remote_addr = remote_addr;
	wr->wr.atomic.rkey = rkey;
	wr->wr.atomic.compare_add = compare;
	wr->wr.atomic.swap = swap;
}

static void wr_atomic_fetch_add(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr,
				uint64_t addend)
{
	struct ibv_send_wr *wr =
		add(ex, IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_FETCH_AND_ADD);

	if (!wr)
		return;
	wr->wr.atomic.remote_addr = remote_addr;
	wr->wr.atomic.rkey = rkey;
	wr->wr.atomic.compare_add = addend;
}

static void wr_bind_mw(struct ibv_qp_ex *ex, struct ibv_mw *mw, uint32_t rkey,
		       const struct ibv_mw_bind_info *bind_info)
{
	struct ibv_send_wr *wr = add(ex, IBV_QP_EX_WITH_BIND_MW, IBV_WR_BIND_MW);

	if (!wr)
		return;
	wr->bind_mw.mw = mw;
	wr->bind_mw.rkey = rkey;
	wr->bind_mw.bind_info = *bind_info;
}

static void wr_local_inv(struct ibv_qp_ex *ex, uint32_t invalidate_rkey)
{
	struct ibv_send_wr *wr = add(ex, IBV_QP_EX_WITH_LOCAL_INV, IBV_WR_LOCAL_INV);

	if (wr)
		wr->invalidate_rkey = invalidate_rkey;
}

static struct ibv_send_wr *add_rdma(struct ibv_qp_ex *ex, uint64_t flag, enum ibv_wr_opcode opcode,
				    uint32_t rkey, uint64_t remote_addr)
{
	struct ibv_send_wr *wr = add(ex, flag, opcode);

	if (wr) {
		wr->wr.rdma.rkey = rkey;
		wr->wr.rdma.remote_addr = remote_addr;
	}
	return wr;
}

static void wr_rdma_read(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr)
{
	add_rdma(ex, IBV_QP_EX_WITH_RDMA_READ, IBV_WR_RDMA_READ, rkey, remote_addr);
}

static void wr_rdma_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr)
{
	add_rdma(ex, IBV_QP_EX_WITH_RDMA_WRITE, IBV_WR_RDMA_WRITE, rkey, remote_addr);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr,
			      __be32 imm_data)
{
	struct ibv_send_wr *wr = add_rdma(ex, IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM,
					  IBV_WR_RDMA_WRITE_WITH_IMM, rkey, remote_addr);

	if (wr)
		wr->imm_data = imm_data;
}

static void wr_send(struct ibv_qp_ex *ex)
{
	add(ex, IBV_QP_EX_WITH_SEND, IBV_WR_SEND);
}

static void wr_send_imm(struct ibv_qp_ex *ex, __be32 imm_data)
{
	struct ibv_send_wr *wr = add(ex, IBV_QP_EX_WITH_SEND_WITH_IMM, IBV_WR_SEND_WITH_IMM);

	if (wr)
		wr->imm_data = imm_data;
}

static void wr_send_inv(struct ibv_qp_ex *ex, uint32_t invalidate_rkey)
{
	struct ibv_send_wr *wr = add(ex, IBV_QP_EX_WITH_SEND_WITH_INV, IBV_WR_SEND_WITH_INV);

	if (wr)
		wr->invalidate_rkey = invalidate_rkey;
}

/* No QP is made with it; a program that calls it all the same is told at the end. */
static void wr_send_tso(struct ibv_qp_ex *ex, void *hdr, uint16_t hdr_sz, uint16_t mss)
{
	add(ex, IBV_QP_EX_WITH_TSO, IBV_WR_TSO);
}

static void wr_atomic_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr,
			    const void *atomic_wr)
{
	struct batch *batch = self(ex)->batch;
	struct ibv_send_wr *wr =
		add_rdma(ex, IBV_QP_EX_WITH_ATOMIC_WRITE, IBV_WR_ATOMIC_WRITE, rkey, remote_addr);

	if (!wr)
		return;
	batch->lacks &= NEEDS_ADDRESS;
	if (guard_copy(inline_room(batch), atomic_wr, SIM_ATOMIC_BYTES))
		fail(batch, EFAULT);
	else
		inlined(batch, wr, SIM_ATOMIC_BYTES);
}

/* --- setters --- */

static void wr_set_ud_addr(struct ibv_qp_ex *ex, struct ibv_ah *ah, uint32_t remote_qpn,
			   uint32_t remote_qkey)
{
	struct batch *batch;
	struct ibv_send_wr *wr = newest(ex, &batch, NEEDS_ADDRESS);

	if (!wr)
		return;
	if (self(ex)->ibv.qp_type != IBV_QPT_UD)
		fail(batch, EINVAL);
	wr->wr.ud.ah = ah;
	wr->wr.ud.remote_qpn = remote_qpn;
	wr->wr.ud.remote_qkey = remote_qkey;
}

static void wr_set_xrc_srqn(struct ibv_qp_ex *ex, uint32_t remote_srqn)
{
	struct batch *batch;
	struct ibv_send_wr *wr = newest(ex, &batch, NEEDS_ADDRESS);

	if (!wr)
		return;
	if (self(ex)->ibv.qp_type != IBV_QPT_XRC_SEND)
		fail(batch, EINVAL);
	wr->qp_type.xrc.remote_srqn = remote_srqn;
}

static void wr_set_sge_list(struct ibv_qp_ex *ex, size_t num_sge, const struct ibv_sge *sg_list)
{
	struct batch *batch;
	struct ibv_send_wr *wr = newest(ex, &batch, NEEDS_DATA);

	if (!wr)
		return;
	if (num_sge > batch->max_sge) {
		fail(batch, EINVAL);
		return;
	}
	wr->num_sge = (int)num_sge;
	if (num_sge)
		memcpy(&batch->sges[(size_t)(batch->count - 1) * batch->sge_room], sg_list,
		       num_sge * sizeof(*sg_list));
}

static void wr_set_sge(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t addr, uint32_t length)
{
	const struct ibv_sge sge = {.addr = addr, .length = length, .lkey = lkey};

	wr_set_sge_list(ex, 1, &sge);
}

static void wr_set_inline_data_list(struct ibv_qp_ex *ex, size_t num_buf,
				    const struct ibv_data_buf *buf_list)
{
	struct batch *batch;
	struct ibv_send_wr *wr = newest(ex, &batch, NEEDS_DATA | MAY_INLINE);
	uint32_t length = 0;
	uint8_t *to;

	if (!wr)
		return;
	to = inline_room(batch);
	for (size_t i = 0; i < num_buf; i++) {
		if (buf_list[i].length > batch->max_inline - length) {
			fail(batch, EINVAL);
			return;
		}
		if (guard_copy(to + length, buf_list[i].addr, buf_list[i].length)) {
			fail(batch, EFAULT);
			return;
		}
		length += (uint32_t)buf_list[i].length;
	}
	inlined(batch, wr, length);
}

static void wr_set_inline_data(struct ibv_qp_ex *ex, void *addr, size_t length)
{
	const struct ibv_data_buf buf = {.addr = addr, .length = length};

	wr_set_inline_data_list(ex, 1, &buf);
}

/* --- start, complete, abort --- */

static void wr_start(struct ibv_qp_ex *ex)
{
	struct batch *batch = self(ex)->batch;
	bool again;

	if (!batch)
		return;
	again = batch->locks ? pthread_mutex_lock(&batch->mutex) == EDEADLK : batch->open;
	if (again) {
		fail(batch, EINVAL);
		return;
	}
	batch->open = true;
	batch->error = 0;
	batch->count = 0;
	batch->lacks = 0;
}

/* Whether this thread is between start and end: it cannot lock again what it has. */
static bool is_ours(struct batch *batch)
{
	if (!batch->locks)
		return batch->open;
	if (pthread_mutex_lock(&batch->mutex) == EDEADLK)
		return true;
	pthread_mutex_unlock(&batch->mutex);
	return false;
}

/* Ends the critical region; the batch's error. */
static int leave(struct batch *batch)
{
	int err = batch->error;

	batch->open = false;
	if (batch->locks)
		pthread_mutex_unlock(&batch->mutex);
	return err;
}

/* The arrays have stopped moving: chains the work requests. */
static void chain(struct batch *batch)
{
	for (uint32_t i = 0; i < batch->count; i++) {
		struct ibv_send_wr *wr = &batch->wrs[i];

		wr->sg_list = &batch->sges[(size_t)i * batch->sge_room];
		if (wr->send_flags & IBV_SEND_INLINE && wr->num_sge)
			wr->sg_list->addr =
				(uintptr_t)&batch->bytes[(size_t)i * batch->inline_room];
		wr->next = i + 1 < batch->count ? wr + 1 : NULL;
	}
}

static int post(struct ibv_qp_ex *ex, struct batch *batch)
{
	struct vb_sim *world = context_of(ex->qp_base.context)->world;
	bool locked = world_lock(world);
	struct qp *qp = qp_of(&ex->qp_base);
	int err = EINVAL;

	if (qp) {
		chain(batch);
		err = sim_qp_post_batch(qp->engine, batch->wrs, batch->count);
		if (world->driver.real)
			driver_catch_up(world);
	}
	world_unlock(world, locked);
	return err;
}

static int wr_complete(struct ibv_qp_ex *ex)
{
	struct batch *batch = self(ex)->batch;
	int err;

	if (!batch || !is_ours(batch))
		return say(EINVAL, "wr_complete: no such QP, or no ibv_wr_start() before");
	if (!batch->error)
		check_complete(batch);
	if (!batch->error)
		batch->error = post(ex, batch);
	err = leave(batch);
	if (err)
		say(err, "wr_complete: QP 0x%x in %s: none of the WRs is posted",
		    ex->qp_base.qp_num, sim_qp_state_str(sim_qp_state(self(ex)->engine)));
	return err;
}

static void wr_abort(struct ibv_qp_ex *ex)
{
	struct batch *batch = self(ex)->batch;

	if (batch && is_ours(batch))
		leave(batch);
}

/* --- a QP's life --- */

static void fill(struct ibv_qp_ex *ex)
{
	ex->wr_atomic_cmp_swp = wr_atomic_cmp_swp;
	ex->wr_atomic_fetch_add = wr_atomic_fetch_add;
	ex->wr_bind_mw = wr_bind_mw;
	ex->wr_local_inv = wr_local_inv;
	ex->wr_rdma_read = wr_rdma_read;
	ex->wr_rdma_write = wr_rdma_write;
	ex->wr_rdma_write_imm = wr_rdma_write_imm;
	ex->wr_send = wr_send;
	ex->wr_send_imm = wr_send_imm;
	ex->wr_send_inv = wr_send_inv;
	ex->wr_send_tso = wr_send_tso;
	ex->wr_set_ud_addr = wr_set_ud_addr;
	ex->wr_set_xrc_srqn = wr_set_xrc_srqn;
	ex->wr_set_inline_data = wr_set_inline_data;
	ex->wr_set_inline_data_list = wr_set_inline_data_list;
	ex->wr_set_sge = wr_set_sge;
	ex->wr_set_sge_list = wr_set_sge_list;
	ex->wr_start = wr_start;
	ex->wr_complete = wr_complete;
	ex->wr_abort = wr_abort;
	ex->wr_atomic_write = wr_atomic_write;
}

int wr_api_fill(struct qp *qp, uint64_t send_ops_flags, bool locks)
{
	struct ibv_qp_attr attr;
	struct batch *batch = calloc(1, sizeof(*batch));
	pthread_mutexattr_t checked;

	if (!batch)
		return ENOMEM;
	guard_install();
	batch->ops = send_ops_flags;
	batch->locks = locks;
	sim_qp_query(qp->engine, &attr);
	batch->max_wr = attr.cap.max_send_wr;
	batch->max_sge = attr.cap.max_send_sge;
	batch->max_inline = attr.cap.max_inline_data;
	batch->sge_room = batch->max_sge ? batch->max_sge : 1;
	batch->inline_room =
		batch->max_inline < SIM_ATOMIC_BYTES ? SIM_ATOMIC_BYTES : batch->max_inline;
	pthread_mutexattr_init(&checked);
	pthread_mutexattr_settype(&checked, PTHREAD_MUTEX_ERRORCHECK);
	pthread_mutex_init(&batch->mutex, &checked);
	pthread_mutexattr_destroy(&checked);
	qp->batch = batch;
	fill(&qp->ex);
	return 0;
}

void wr_api_end(struct qp *qp)
{
	struct batch *batch = qp->batch;

	if (!batch)
		return;
	qp->batch = NULL;
	pthread_mutex_destroy(&batch->mutex);
	free(batch->wrs);
	free(batch->sges);
	free(batch->bytes);
	free(batch);
}
