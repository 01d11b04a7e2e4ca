/* SPDX-License-Identifier: MIT */
#include "backends/sim/verb/batch.h"

#include "backends/sim/verb/verbs.h"

#include "sim/base/refuse.h"
#include "sim/qp/state.h"
#include "sim/wire/opcode.h"

#include <stdlib.h>

const uint64_t batch_flags[BATCH_OPCODES] = {
	[IBV_WR_RDMA_WRITE] = IBV_QP_EX_WITH_RDMA_WRITE,
	[IBV_WR_RDMA_WRITE_WITH_IMM] = IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM,
	[IBV_WR_SEND] = IBV_QP_EX_WITH_SEND,
	[IBV_WR_SEND_WITH_IMM] = IBV_QP_EX_WITH_SEND_WITH_IMM,
	[IBV_WR_RDMA_READ] = IBV_QP_EX_WITH_RDMA_READ,
	[IBV_WR_ATOMIC_CMP_AND_SWP] = IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP,
	[IBV_WR_ATOMIC_FETCH_AND_ADD] = IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD,
	[IBV_WR_LOCAL_INV] = IBV_QP_EX_WITH_LOCAL_INV,
	[IBV_WR_BIND_MW] = IBV_QP_EX_WITH_BIND_MW,
	[IBV_WR_SEND_WITH_INV] = IBV_QP_EX_WITH_SEND_WITH_INV,
	[IBV_WR_TSO] = IBV_QP_EX_WITH_TSO,
	[IBV_WR_ATOMIC_WRITE] = IBV_QP_EX_WITH_ATOMIC_WRITE,
};

static struct batch *batch_of(struct ibv_qp_ex *ex)
{
	return ((struct qp *)ex)->batch;
}

int batch_new(struct qp *qp, uint64_t send_ops_flags, bool locks)
{
	struct ibv_qp_attr attr;
	struct batch *batch = calloc(1, sizeof(*batch));
	pthread_mutexattr_t checked;

	if (!batch)
		return ENOMEM;
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
	return 0;
}

void batch_free(struct qp *qp)
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

/* --- gathering --- */

static void keep(struct batch *batch, const struct vb_why *why)
{
	if (batch->error)
		return;
	batch->error = sim_reason_errno(why->reason);
	batch->why = *why;
}

static struct vb_why newest_why(const struct batch *batch, enum vb_reason reason)
{
	const uint32_t newest = batch->count - 1;

	if (!batch->count)
		return (struct vb_why){reason};
	return (struct vb_why){reason, {0, newest, batch->wrs[newest].opcode}};
}

void batch_fail(struct batch *batch, enum vb_reason reason, uint64_t third, uint64_t fourth)
{
	struct vb_why why = newest_why(batch, reason);

	why.values[3] = third;
	why.values[4] = fourth;
	keep(batch, &why);
}

void batch_fail_setter(struct batch *batch, const char *what)
{
	struct vb_why why = newest_why(batch, VB_WHY_BATCH_SETTER);

	why.text = what;
	keep(batch, &why);
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

/* Returns the batch if a builder or setter may add to it; NULL if it is lost or not open. */
static struct batch *open_batch(struct ibv_qp_ex *ex)
{
	struct batch *batch = batch_of(ex);

	return batch && batch->open && !batch->error ? batch : NULL;
}

static void check_complete(struct batch *batch)
{
	if (!batch->count)
		return;
	if (batch->lacks & NEEDS_DATA)
		batch_fail(batch, VB_WHY_BATCH_NO_DATA, 0, 0);
	else if (batch->lacks & NEEDS_ADDRESS)
		batch_fail(batch, VB_WHY_BATCH_NO_ADDRESS, 0, 0);
}

/* The batch gets no work request of the opcode. */
static void refuse_wr(struct batch *batch, enum ibv_wr_opcode opcode)
{
	struct vb_why why = {.reason = VB_WHY_NO_MEMORY};

	if (!(batch->ops & batch_flags[opcode]))
		why = (struct vb_why){VB_WHY_BATCH_OPERATION,
				      {0, batch->count, opcode, batch_flags[opcode]}};
	else if (batch->count == batch->max_wr)
		why = (struct vb_why){VB_WHY_BATCH_FULL, {0, batch->max_wr}};
	keep(batch, &why);
}

/* Returns true if the batch may get a work request of the opcode, and has room for it. */
static bool has_room(struct batch *batch, enum ibv_wr_opcode opcode)
{
	if (!(batch->ops & batch_flags[opcode]) || batch->count == batch->max_wr)
		return false;
	return batch->count < batch->capacity || !grow(batch);
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

struct ibv_send_wr *batch_add(struct ibv_qp_ex *ex, enum ibv_wr_opcode opcode)
{
	struct batch *batch = open_batch(ex);
	struct ibv_send_wr *wr;

	if (!batch)
		return NULL;
	check_complete(batch);
	if (!batch->error && !has_room(batch, opcode))
		refuse_wr(batch, opcode);
	if (batch->error)
		return NULL;
	wr = &batch->wrs[batch->count++];
	*wr = (struct ibv_send_wr){
		.wr_id = ex->wr_id,
		.opcode = opcode,
		.send_flags = ex->wr_flags & ~(unsigned int)IBV_SEND_INLINE,
	};
	batch->lacks = needs_of((struct qp *)ex, opcode);
	return wr;
}

static const char *name_of(unsigned int what)
{
	if (what & NEEDS_ADDRESS)
		return "a destination";
	return what & MAY_INLINE ? "inline data" : "data";
}

struct ibv_send_wr *batch_newest(struct ibv_qp_ex *ex, struct batch **batch, unsigned int what)
{
	*batch = open_batch(ex);
	if (!*batch)
		return NULL;
	if (!(*batch)->count) {
		batch_fail(*batch, VB_WHY_BATCH_NO_WR, 0, 0);
		return NULL;
	}
	if (((*batch)->lacks & what) != what) {
		batch_fail_setter(*batch, name_of(what));
		return NULL;
	}
	(*batch)->lacks &= ~(what & (NEEDS_DATA | NEEDS_ADDRESS));
	return &(*batch)->wrs[(*batch)->count - 1];
}

struct ibv_sge *batch_sges(const struct batch *batch)
{
	return &batch->sges[(size_t)(batch->count - 1) * batch->sge_room];
}

uint8_t *batch_bytes(const struct batch *batch)
{
	return &batch->bytes[(size_t)(batch->count - 1) * batch->inline_room];
}

/* chain() sets the SGE's address. */
void batch_inlined(const struct batch *batch, struct ibv_send_wr *wr, uint32_t length)
{
	wr->send_flags |= IBV_SEND_INLINE;
	wr->num_sge = length ? 1 : 0;
	if (length)
		batch_sges(batch)->length = length;
}

/* --- start, complete, abort --- */

void batch_start(struct ibv_qp_ex *ex)
{
	struct batch *batch = batch_of(ex);
	bool again;

	if (!batch)
		return;
	again = batch->locks ? pthread_mutex_lock(&batch->mutex) == EDEADLK : batch->open;
	if (again) {
		batch_fail(batch, VB_WHY_BATCH_TWICE, 0, 0);
		return;
	}
	batch->open = true;
	batch->error = 0;
	batch->count = 0;
	batch->lacks = 0;
}

/* Returns true if this thread has opened the batch: it cannot lock the mutex twice. */
static bool is_ours(struct batch *batch)
{
	if (!batch->locks)
		return batch->open;
	if (pthread_mutex_lock(&batch->mutex) == EDEADLK)
		return true;
	pthread_mutex_unlock(&batch->mutex);
	return false;
}

/* Closes the batch and returns its error. */
static int leave(struct batch *batch)
{
	int err = batch->error;

	batch->open = false;
	if (batch->locks)
		pthread_mutex_unlock(&batch->mutex);
	return err;
}

/* Links the work requests and their SGEs, once the arrays do not move any more. */
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
	HOLD hold = context_hold_to_post(ex->qp_base.context);
	struct qp *qp = qp_of(&ex->qp_base);
	int err;

	if (!qp)
		return refuse_queue("wr_complete", KIND_QP, &ex->qp_base);
	chain(batch);
	err = sim_qp_post_batch(qp->engine, batch->wrs, batch->count);
	if (err)
		say_refused(hold.world, "wr_complete", err);
	driver_run_posted(&hold.world->driver);
	return err;
}

int batch_complete(struct ibv_qp_ex *ex)
{
	struct batch *batch = batch_of(ex);

	if (!batch || !is_ours(batch))
		return refuse_why("wr_complete",
				  (struct vb_why){batch ? VB_WHY_BATCH_CLOSED : VB_WHY_BATCH_NONE,
						  {ex->qp_base.qp_num}});
	if (!batch->error)
		check_complete(batch);
	if (batch->error) {
		batch->why.values[0] = ex->qp_base.qp_num;
		refuse_why("wr_complete", batch->why);
	} else {
		batch->error = post(ex, batch);
	}
	return leave(batch);
}

void batch_abort(struct ibv_qp_ex *ex)
{
	struct batch *batch = batch_of(ex);

	if (batch && is_ours(batch))
		leave(batch);
}
