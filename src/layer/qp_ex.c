/* SPDX-License-Identifier: MIT */
/*
 * Posting through struct ibv_qp_ex: ibv_wr_post(3). The wrappers gather the work requests between
 * wr_start and wr_complete, so that a layer sees them as the list that ibv_post_send() would get.
 */
#include "src/layer/shadow.h"
#include "src/verbs/dispatch.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/*
 * The work requests of one batch. A thread has the batch from wr_start to the end of wr_complete:
 * the provider lets one thread at a time be between the two. Layers still read the batch when the
 * provider has let the next thread in, which then takes another one.
 */
struct batch {
	struct batch *next; /* of the spare ones */
	_Atomic(pthread_t) owner;
	uint32_t count, sge_count;
	struct ibv_sge *sges;
	struct ibv_send_wr wrs[];
};

struct qp_shadow {
	struct shadow shadow;
	struct ibv_qp_ex calls; /* the originals */
	uint32_t max_wr, max_sges;
	struct batch *_Atomic open; /* between wr_start and wr_complete; else NULL */
	pthread_mutex_t lock;
	struct batch *spare; /* under the lock */
};

/* The QP and the errno of this thread's last wr_start that a layer has failed: that batch is lost. */
static _Thread_local struct {
	const struct ibv_qp_ex *qp;
	int err;
} lost;

static struct qp_shadow *shadow_of(const struct ibv_qp_ex *qp)
{
	return (struct qp_shadow *)shadow_find(qp, LAYER_QP);
}

/* --- batches --- */

static struct batch *new_batch(const struct qp_shadow *shadow)
{
	const size_t bytes = sizeof(struct batch) + shadow->max_wr * sizeof(struct ibv_send_wr);
	struct batch *batch = malloc(bytes + shadow->max_sges * sizeof(struct ibv_sge));

	if (!batch)
		return NULL;
	batch->next = NULL;
	batch->sges = (struct ibv_sge *)((char *)batch + bytes);
	return batch;
}

/* Opens a batch. Without memory the layers do not see the work requests. */
static void open_batch(struct qp_shadow *shadow)
{
	struct batch *batch = atomic_load(&shadow->open);

	/* The program has not completed its last batch. */
	if (!batch) {
		pthread_mutex_lock(&shadow->lock);
		batch = shadow->spare;
		if (batch)
			shadow->spare = batch->next;
		pthread_mutex_unlock(&shadow->lock);
	}
	if (!batch)
		batch = new_batch(shadow);
	if (!batch)
		return;
	batch->count = 0;
	batch->sge_count = 0;
	atomic_store(&batch->owner, pthread_self());
	atomic_store(&shadow->open, batch);
}

/* Returns this thread's batch; NULL: it has none. */
static struct batch *own_batch(const struct qp_shadow *shadow)
{
	struct batch *batch = atomic_load(&shadow->open);

	return batch && pthread_equal(atomic_load(&batch->owner), pthread_self()) ? batch : NULL;
}

static void give_back(struct qp_shadow *shadow, struct batch *batch)
{
	if (!batch)
		return;
	pthread_mutex_lock(&shadow->lock);
	batch->next = shadow->spare;
	shadow->spare = batch;
	pthread_mutex_unlock(&shadow->lock);
}

/* Links the work requests. Returns the first; NULL: there are none. */
static struct ibv_send_wr *chain(struct batch *batch)
{
	if (!batch || !batch->count)
		return NULL;
	for (uint32_t i = 0; i < batch->count; i++)
		batch->wrs[i].next = i + 1 < batch->count ? &batch->wrs[i + 1] : NULL;
	return batch->wrs;
}

/* --- gathering --- */

/* The wrappers write here if there is no batch, or no room in it: the provider fails a batch of more than
 * max_send_wr. */
static _Thread_local struct ibv_send_wr unseen;

static struct ibv_send_wr *add(const struct qp_shadow *shadow, const struct ibv_qp_ex *qp,
			       enum ibv_wr_opcode opcode)
{
	struct batch *batch = own_batch(shadow);
	struct ibv_send_wr *wr =
		batch && batch->count < shadow->max_wr ? &batch->wrs[batch->count++] : &unseen;

	*wr = (struct ibv_send_wr){
		.wr_id = qp->wr_id, .opcode = opcode, .send_flags = qp->wr_flags};
	return wr;
}

static struct ibv_send_wr *newest(const struct qp_shadow *shadow)
{
	struct batch *batch = own_batch(shadow);

	return batch && batch->count ? &batch->wrs[batch->count - 1] : &unseen;
}

static void add_sge(const struct qp_shadow *shadow, struct ibv_send_wr *wr, uint64_t addr,
		    size_t length, uint32_t lkey)
{
	struct batch *batch = own_batch(shadow);
	struct ibv_sge *sge;

	if (!batch || wr == &unseen || batch->sge_count == shadow->max_sges)
		return;
	sge = &batch->sges[batch->sge_count++];
	*sge = (struct ibv_sge){.addr = addr, .length = (uint32_t)length, .lkey = lkey};
	if (!wr->num_sge++)
		wr->sg_list = sge;
}

/* --- the wrappers of builders and setters --- */

/* The arguments of `call` are those of the function; `note` notes them in wr. */
#define GATHER(call, parameters, arguments, found, note)  \
	static void call parameters                       \
	{                                                 \
		struct qp_shadow *shadow = shadow_of(qp); \
		struct ibv_send_wr *wr;                   \
                                                          \
		if (!shadow || lost.qp == qp)             \
			return;                           \
		if (!passage_inside()) {                  \
			wr = found;                       \
			note;                             \
		}                                         \
		shadow->calls.call arguments;             \
	}

#define BUILDER(call, opcode, parameters, arguments, note) \
	GATHER(call, parameters, arguments, add(shadow, qp, opcode), note)
#define SETTER(call, parameters, arguments, note) \
	GATHER(call, parameters, arguments, newest(shadow), note)

static void note_rdma(struct ibv_send_wr *wr, uint32_t rkey, uint64_t remote_addr)
{
	wr->wr.rdma.rkey = rkey;
	wr->wr.rdma.remote_addr = remote_addr;
}

static void note_atomic(struct ibv_send_wr *wr, uint32_t rkey, uint64_t remote_addr,
			uint64_t compare_add, uint64_t swap)
{
	wr->wr.atomic.rkey = rkey;
	wr->wr.atomic.remote_addr = remote_addr;
	wr->wr.atomic.compare_add = compare_add;
	wr->wr.atomic.swap = swap;
}

/* The address is that of the program's data, which the provider copies at once. */
static void note_inline(const struct qp_shadow *shadow, struct ibv_send_wr *wr, const void *addr,
			size_t length)
{
	wr->send_flags |= IBV_SEND_INLINE;
	add_sge(shadow, wr, (uintptr_t)addr, length, 0);
}

static void note_bind(struct ibv_send_wr *wr, struct ibv_mw *mw, uint32_t rkey,
		      const struct ibv_mw_bind_info *info)
{
	wr->bind_mw.mw = mw;
	wr->bind_mw.rkey = rkey;
	wr->bind_mw.bind_info = *info;
}

static void note_tso(struct ibv_send_wr *wr, void *hdr, uint16_t hdr_sz, uint16_t mss)
{
	wr->tso.hdr = hdr;
	wr->tso.hdr_sz = hdr_sz;
	wr->tso.mss = mss;
}

static void note_ud(struct ibv_send_wr *wr, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey)
{
	wr->wr.ud.ah = ah;
	wr->wr.ud.remote_qpn = qpn;
	wr->wr.ud.remote_qkey = qkey;
}

static void note_inline_list(const struct qp_shadow *shadow, struct ibv_send_wr *wr, size_t count,
			     const struct ibv_data_buf *list)
{
	wr->send_flags |= IBV_SEND_INLINE;
	for (size_t i = 0; i < count; i++)
		add_sge(shadow, wr, (uintptr_t)list[i].addr, list[i].length, 0);
}

static void note_sge_list(const struct qp_shadow *shadow, struct ibv_send_wr *wr, size_t count,
			  const struct ibv_sge *list)
{
	for (size_t i = 0; i < count; i++)
		add_sge(shadow, wr, list[i].addr, list[i].length, list[i].lkey);
}

BUILDER(wr_atomic_cmp_swp, IBV_WR_ATOMIC_CMP_AND_SWP,
	(struct ibv_qp_ex * qp, uint32_t rkey, uint64_t remote_addr, uint64_t compare,
	 uint64_t swap),
	(qp, rkey, remote_addr, compare, swap), note_atomic(wr, rkey, remote_addr, compare, swap))
BUILDER(wr_atomic_fetch_add, IBV_WR_ATOMIC_FETCH_AND_ADD,
	(struct ibv_qp_ex * qp, uint32_t rkey, uint64_t remote_addr, uint64_t addend),
	(qp, rkey, remote_addr, addend), note_atomic(wr, rkey, remote_addr, addend, 0))
BUILDER(wr_bind_mw, IBV_WR_BIND_MW,
	(struct ibv_qp_ex * qp, struct ibv_mw *mw, uint32_t rkey,
	 const struct ibv_mw_bind_info *info),
	(qp, mw, rkey, info), note_bind(wr, mw, rkey, info))
BUILDER(wr_local_inv, IBV_WR_LOCAL_INV, (struct ibv_qp_ex * qp, uint32_t rkey), (qp, rkey),
	wr->invalidate_rkey = rkey)
BUILDER(wr_rdma_read, IBV_WR_RDMA_READ,
	(struct ibv_qp_ex * qp, uint32_t rkey, uint64_t remote_addr), (qp, rkey, remote_addr),
	note_rdma(wr, rkey, remote_addr))
BUILDER(wr_rdma_write, IBV_WR_RDMA_WRITE,
	(struct ibv_qp_ex * qp, uint32_t rkey, uint64_t remote_addr), (qp, rkey, remote_addr),
	note_rdma(wr, rkey, remote_addr))
BUILDER(wr_rdma_write_imm, IBV_WR_RDMA_WRITE_WITH_IMM,
	(struct ibv_qp_ex * qp, uint32_t rkey, uint64_t remote_addr, __be32 imm_data),
	(qp, rkey, remote_addr, imm_data), note_rdma(wr, rkey, remote_addr);
	wr->imm_data = imm_data)
BUILDER(wr_send, IBV_WR_SEND, (struct ibv_qp_ex * qp), (qp), (void)wr)
BUILDER(wr_send_imm, IBV_WR_SEND_WITH_IMM, (struct ibv_qp_ex * qp, __be32 imm_data), (qp, imm_data),
	wr->imm_data = imm_data)
BUILDER(wr_send_inv, IBV_WR_SEND_WITH_INV, (struct ibv_qp_ex * qp, uint32_t rkey), (qp, rkey),
	wr->invalidate_rkey = rkey)
BUILDER(wr_send_tso, IBV_WR_TSO, (struct ibv_qp_ex * qp, void *hdr, uint16_t hdr_sz, uint16_t mss),
	(qp, hdr, hdr_sz, mss), note_tso(wr, hdr, hdr_sz, mss))
BUILDER(wr_atomic_write, IBV_WR_ATOMIC_WRITE,
	(struct ibv_qp_ex * qp, uint32_t rkey, uint64_t remote_addr, const void *data),
	(qp, rkey, remote_addr, data), note_rdma(wr, rkey, remote_addr);
	note_inline(shadow, wr, data, sizeof(uint64_t)))

SETTER(wr_set_ud_addr,
       (struct ibv_qp_ex * qp, struct ibv_ah *ah, uint32_t remote_qpn, uint32_t remote_qkey),
       (qp, ah, remote_qpn, remote_qkey), note_ud(wr, ah, remote_qpn, remote_qkey))
SETTER(wr_set_xrc_srqn, (struct ibv_qp_ex * qp, uint32_t remote_srqn), (qp, remote_srqn),
       wr->qp_type.xrc.remote_srqn = remote_srqn)
SETTER(wr_set_inline_data, (struct ibv_qp_ex * qp, void *addr, size_t length), (qp, addr, length),
       note_inline(shadow, wr, addr, length))
SETTER(wr_set_inline_data_list,
       (struct ibv_qp_ex * qp, size_t count, const struct ibv_data_buf *list), (qp, count, list),
       note_inline_list(shadow, wr, count, list))
SETTER(wr_set_sge, (struct ibv_qp_ex * qp, uint32_t lkey, uint64_t addr, uint32_t length),
       (qp, lkey, addr, length), add_sge(shadow, wr, addr, length, lkey))
SETTER(wr_set_sge_list, (struct ibv_qp_ex * qp, size_t count, const struct ibv_sge *list),
       (qp, count, list), note_sge_list(shadow, wr, count, list))

/* --- start, complete, abort --- */

static int begin(struct passage *passage, enum layer_verb verb, struct ibv_qp_ex *qp,
		 const struct qp_shadow *shadow, const uint64_t *arguments)
{
	struct ibv_context *context = qp->qp_base.context;
	const struct route route = {.backend = shadow->shadow.backend,
				    .context = context,
				    .entry = table_find(context, LAYER_CONTEXT)};

	return passage_begin(passage, verb, &route, arguments);
}

static void wr_start(struct ibv_qp_ex *qp)
{
	struct qp_shadow *shadow = shadow_of(qp);
	const uint64_t arguments[1] = {(uintptr_t)qp};
	struct passage passage;

	if (!shadow)
		return;
	if (passage_inside()) {
		shadow->calls.wr_start(qp);
		return;
	}
	passage_note_caller(&passage);
	lost.err = begin(&passage, LAYER_wr_start, qp, shadow, arguments);
	lost.qp = lost.err ? qp : NULL;
	if (!lost.err) {
		shadow->calls.wr_start(qp);
		open_batch(shadow);
	}
	passage_end(&passage, 0);
}

/* Fails wr_complete: a layer has failed wr_start, which cannot report a failure. */
static int complete_lost(void)
{
	int err = lost.err;

	lost.qp = NULL;
	dispatch_say("wr_complete: a layer has made wr_start fail with %s, so that no WR is posted",
		     strerrorname_np(err) ?: "an errno that does not exist");
	return errno = err;
}

/* Completes a batch. err is the errno with which a layer fails the call: then the provider's wr_abort ends
 * the batch instead of wr_complete. */
static int complete(const struct qp_shadow *shadow, struct ibv_qp_ex *qp, int err)
{
	if (!err)
		return shadow->calls.wr_complete(qp);
	shadow->calls.wr_abort(qp);
	return err;
}

static int wr_complete(struct ibv_qp_ex *qp)
{
	struct qp_shadow *shadow = shadow_of(qp);
	struct batch *batch;
	uint64_t arguments[2] = {(uintptr_t)qp, 0};
	struct passage passage;
	int err;

	if (!shadow)
		return EINVAL;
	if (passage_inside())
		return shadow->calls.wr_complete(qp);
	batch = lost.qp == qp ? NULL : own_batch(shadow);
	arguments[1] = (uintptr_t)chain(batch);
	passage_note_caller(&passage);
	err = begin(&passage, LAYER_wr_complete, qp, shadow, arguments);
	/* Closes the batch while the provider still keeps other threads out. It stays this thread's until
	 * the layers have seen the result. */
	if (batch)
		atomic_store(&shadow->open, NULL);
	err = lost.qp == qp ? complete_lost() : complete(shadow, qp, err);
	passage_end(&passage, (uint64_t)err);
	give_back(shadow, batch);
	return err;
}

static void wr_abort(struct ibv_qp_ex *qp)
{
	struct qp_shadow *shadow = shadow_of(qp);
	const uint64_t arguments[1] = {(uintptr_t)qp};
	struct batch *batch;
	struct passage passage;

	if (!shadow)
		return;
	if (passage_inside()) {
		shadow->calls.wr_abort(qp);
		return;
	}
	passage_note_caller(&passage);
	begin(&passage, LAYER_wr_abort, qp, shadow, arguments);
	if (lost.qp == qp) {
		lost.qp = NULL;
	} else {
		batch = own_batch(shadow);
		if (batch)
			atomic_store(&shadow->open, NULL);
		give_back(shadow, batch);
		shadow->calls.wr_abort(qp);
	}
	passage_end(&passage, 0);
}

/* --- the shadow --- */

#define EACH_CALL(X)               \
	X(wr_atomic_cmp_swp)       \
	X(wr_atomic_fetch_add)     \
	X(wr_bind_mw)              \
	X(wr_local_inv)            \
	X(wr_rdma_read)            \
	X(wr_rdma_write)           \
	X(wr_rdma_write_imm)       \
	X(wr_send)                 \
	X(wr_send_imm)             \
	X(wr_send_inv)             \
	X(wr_send_tso)             \
	X(wr_set_ud_addr)          \
	X(wr_set_xrc_srqn)         \
	X(wr_set_inline_data)      \
	X(wr_set_inline_data_list) \
	X(wr_set_sge)              \
	X(wr_set_sge_list)         \
	X(wr_start)                \
	X(wr_complete)             \
	X(wr_abort)                \
	X(wr_atomic_write)

static void act(struct layer_entry *entry, struct shadow *shadow, enum shadow_act what)
{
	struct ibv_qp_ex *ex = (struct ibv_qp_ex *)atomic_load(&entry->object);
	struct ibv_qp_ex *calls = &((struct qp_shadow *)shadow)->calls;

#define ACT(call) SHADOW_POINTER(what, ex->call, calls->call, call);
	EACH_CALL(ACT)
}

static void end_shadow(struct shadow *shadow)
{
	struct qp_shadow *qp = (struct qp_shadow *)shadow;

	free(atomic_load(&qp->open));
	while (qp->spare) {
		struct batch *batch = qp->spare;

		qp->spare = batch->next;
		free(batch);
	}
	pthread_mutex_destroy(&qp->lock);
	free(qp);
}

void shadow_qp(struct layer_entry *entry, const struct vb_backend *backend,
	       const struct ibv_qp_cap *cap)
{
	struct qp_shadow *qp = calloc(1, sizeof(*qp));

	if (!qp) {
		shadow_lose_sight();
		return;
	}
	qp->shadow = (struct shadow){.act = act, .end = end_shadow, .backend = backend};
	qp->max_wr = cap->max_send_wr;
	/* Inline data and the 8 bytes of an ATOMIC WRITE take an SGE, too. */
	qp->max_sges = cap->max_send_wr * (cap->max_send_sge ? cap->max_send_sge : 1);
	pthread_mutex_init(&qp->lock, NULL);
	qp->spare = new_batch(qp);
	shadow_begin(entry, &qp->shadow);
}
