/* SPDX-License-Identifier: MIT */
#include "test/support/completion_watch.h"

#include "test/support/completion_check.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define POSTED_MAX (1 << 20) /* a longer list must be a loop */

/* A context of the program and the calls that the hooks replaced. */
struct context_note {
	struct context_note *next;
	struct ibv_context *context;
	struct ibv_context_ops ops; /* before the hooks */
	struct verbs_context verbs; /* before the hooks; zero if the context has none */
};

/* The notes of CQs and QPs outlive them: a wrong program may use a destroyed object. */
struct cq_watch {
	struct cq_watch *next;
	struct ibv_cq *cq;
	const struct ibv_context *context;
	bool gone;
	int (*start_poll)(struct ibv_cq_ex *cq, struct ibv_poll_cq_attr *attr);
	int (*next_poll)(struct ibv_cq_ex *cq);
};

/* A WR between wr_start and wr_complete. */
struct begun {
	uint64_t wr_id;
	enum ibv_wr_opcode opcode;
	unsigned int flags;
};

struct qp_watch {
	struct qp_watch *next;
	struct ibv_qp *qp;
	const struct ibv_context *context;
	bool gone;
	bool extended;
	struct ibv_qp_ex calls; /* before the hooks */
	struct begun *begun;
	size_t count, room;
};

/* The hooks have the arguments of verbs only, so the process has one watch. */
static struct {
	struct completion_check *check;
	struct vb_backend *backend;
	struct vb_backend original;
	struct context_note *contexts;
	struct cq_watch *cqs;
	struct qp_watch *qps;
	bool binding; /* set while bind_mw runs, which may call the other bind_mw */
} watch;

/* Held while a verb posts or polls, so that the checker sees the right order. */
static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

static void enter(void)
{
	pthread_mutex_lock(&lock);
}

static void leave(void)
{
	int saved = errno;

	pthread_mutex_unlock(&lock);
	errno = saved;
}

static void *blank(size_t bytes)
{
	void *memory = calloc(1, bytes);

	if (!memory)
		abort();
	return memory;
}

static struct context_note *note_of(const struct ibv_context *context)
{
	struct context_note *note;

	enter();
	note = watch.contexts;
	while (note && note->context != context)
		note = note->next;
	if (!note)
		note = watch.contexts; /* the program uses a copy of a context */
	leave();
	if (!note)
		abort(); /* a hook is called, but no context has hooks */
	return note;
}

static struct cq_watch *cq_of(const void *cq)
{
	struct cq_watch *found = watch.cqs;

	while (found && (void *)found->cq != cq)
		found = found->next;
	return found;
}

static bool is_watched_cq(const struct ibv_cq *cq)
{
	const struct cq_watch *found = cq_of(cq);

	return found && !found->gone;
}

static struct qp_watch *qp_of(const void *qp)
{
	struct qp_watch *found = watch.qps;

	while (found && (void *)found->qp != qp)
		found = found->next;
	return found;
}

/* --- posting and polling --- */

/*
 * A device may leave bad_wr as it is when it refuses a list, and what the test's variable then holds
 * says nothing: the device gets a variable of ours that points here. Such a device may have queued
 * the list, so the list counts as posted.
 */
static struct ibv_send_wr unset_send;
static struct ibv_recv_wr unset_recv;

/* Both kinds of WR begin with wr_id and next. */
static size_t count_posted(const struct ibv_recv_wr *wr, int err, const void *bad_wr)
{
	size_t count = 0;

	while (wr && !(err && wr == bad_wr) && count < POSTED_MAX) {
		count++;
		wr = wr->next;
	}
	/* A bad_wr outside the list tells nothing. */
	return err && wr != bad_wr ? 0 : count;
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	int (*call)(struct ibv_qp *, struct ibv_send_wr *, struct ibv_send_wr **) =
		note_of(qp->context)->ops.post_send;
	struct ibv_send_wr *bad = &unset_send;
	size_t count;
	int err;

	enter();
	err = call(qp, wr, &bad);
	if (bad == &unset_send)
		bad = NULL;
	else
		*bad_wr = bad;
	count = watch.check ? count_posted((void *)wr, err, bad) : 0;
	for (; count--; wr = wr->next)
		completion_check_send(watch.check, qp, wr->wr_id, wr->opcode, wr->send_flags);
	leave();
	return err;
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	int (*call)(struct ibv_qp *, struct ibv_recv_wr *, struct ibv_recv_wr **) =
		note_of(qp->context)->ops.post_recv;
	struct ibv_recv_wr *bad = &unset_recv;
	size_t count;
	int err;

	enter();
	err = call(qp, wr, &bad);
	if (bad == &unset_recv)
		bad = NULL;
	else
		*bad_wr = bad;
	count = watch.check ? count_posted((void *)wr, err, bad) : 0;
	for (; count--; wr = wr->next)
		completion_check_recv(watch.check, qp, wr);
	leave();
	return err;
}

static int post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	int (*call)(struct ibv_srq *, struct ibv_recv_wr *, struct ibv_recv_wr **) =
		note_of(srq->context)->ops.post_srq_recv;
	struct ibv_recv_wr *bad = &unset_recv;
	size_t count;
	int err;

	enter();
	err = call(srq, wr, &bad);
	if (bad == &unset_recv)
		bad = NULL;
	else
		*bad_wr = bad;
	count = watch.check ? count_posted(wr, err, bad) : 0;
	for (; count--; wr = wr->next)
		completion_check_srq_recv(watch.check, srq, wr);
	leave();
	return err;
}

static int poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc)
{
	int (*call)(struct ibv_cq *, int, struct ibv_wc *) = note_of(cq->context)->ops.poll_cq;
	int got;

	enter();
	got = call(cq, num_entries, wc);
	for (int i = 0; watch.check && i < got; i++)
		completion_check_wc(watch.check, cq, &wc[i]);
	if (watch.check && got < 0 && num_entries >= 0 && is_watched_cq(cq))
		completion_check_overrun(watch.check, cq);
	leave();
	return got;
}

/* Reports the completion that the extended CQ shows. A failed one has no valid opcode. */
static void see(struct ibv_cq_ex *ex)
{
	struct ibv_wc wc = {.wr_id = ex->wr_id, .status = ex->status};

	if (!watch.check || !ex->read_qp_num)
		return;
	wc.qp_num = ex->read_qp_num(ex);
	if (ex->status == IBV_WC_SUCCESS) {
		wc.opcode = ex->read_opcode(ex);
		/* Without byte_len in the CQ, take a length that breaks no rule. */
		wc.byte_len = ex->read_byte_len ? ex->read_byte_len(ex) : 40;
		if (!ex->read_byte_len && wc.opcode == IBV_WC_RECV)
			wc.opcode = IBV_WC_RECV_RDMA_WITH_IMM;
	}
	completion_check_wc(watch.check, ibv_cq_ex_to_cq(ex), &wc);
}

/* start_poll() may wait for end_poll() of another thread, which needs the lock. */
static int start_poll(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr)
{
	struct cq_watch *cq;
	int err;

	enter();
	cq = cq_of(ex);
	leave();
	err = cq->start_poll(ex, attr);
	enter();
	if (!err)
		see(ex);
	leave();
	return err;
}

static int next_poll(struct ibv_cq_ex *ex)
{
	int err;

	enter();
	err = cq_of(ex)->next_poll(ex);
	if (!err)
		see(ex);
	leave();
	return err;
}

static int bind(int (*call)(struct ibv_qp *, struct ibv_mw *, struct ibv_mw_bind *),
		struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *mw_bind)
{
	bool outer;
	int err;

	enter();
	outer = !watch.binding;
	watch.binding = true;
	err = call(qp, mw, mw_bind);
	if (outer && !err && watch.check)
		completion_check_send(watch.check, qp, mw_bind->wr_id, IBV_WR_BIND_MW,
				      mw_bind->send_flags);
	watch.binding = !outer;
	leave();
	return err;
}

static int ops_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *mw_bind)
{
	return bind(note_of(qp->context)->ops.bind_mw, qp, mw, mw_bind);
}

static int bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *mw_bind)
{
	return bind(watch.original.bind_mw, qp, mw, mw_bind);
}

/* --- the extended way to post --- */

/* Notes the WR. wr_complete posts it. */
static const struct ibv_qp_ex *begin(struct ibv_qp_ex *ex, enum ibv_wr_opcode opcode)
{
	struct qp_watch *qp;

	enter();
	qp = qp_of(ex);
	if (qp->count == qp->room) {
		qp->room = qp->room ? 2 * qp->room : 16;
		qp->begun = realloc(qp->begun, qp->room * sizeof(*qp->begun));
		if (!qp->begun)
			abort();
	}
	qp->begun[qp->count++] = (struct begun){ex->wr_id, opcode, ex->wr_flags};
	leave();
	return &qp->calls;
}

static void wr_atomic_cmp_swp(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr,
			      uint64_t compare, uint64_t swap)
{
	begin(ex, IBV_WR_ATOMIC_CMP_AND_SWP)
		->wr_atomic_cmp_swp(ex, rkey, remote_addr, compare, swap);
}

static void wr_atomic_fetch_add(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr,
				uint64_t add)
{
	begin(ex, IBV_WR_ATOMIC_FETCH_AND_ADD)->wr_atomic_fetch_add(ex, rkey, remote_addr, add);
}

static void wr_bind_mw(struct ibv_qp_ex *ex, struct ibv_mw *mw, uint32_t rkey,
		       const struct ibv_mw_bind_info *bind_info)
{
	begin(ex, IBV_WR_BIND_MW)->wr_bind_mw(ex, mw, rkey, bind_info);
}

static void wr_local_inv(struct ibv_qp_ex *ex, uint32_t invalidate_rkey)
{
	begin(ex, IBV_WR_LOCAL_INV)->wr_local_inv(ex, invalidate_rkey);
}

static void wr_rdma_read(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr)
{
	begin(ex, IBV_WR_RDMA_READ)->wr_rdma_read(ex, rkey, remote_addr);
}

static void wr_rdma_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr)
{
	begin(ex, IBV_WR_RDMA_WRITE)->wr_rdma_write(ex, rkey, remote_addr);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr,
			      __be32 imm_data)
{
	begin(ex, IBV_WR_RDMA_WRITE_WITH_IMM)->wr_rdma_write_imm(ex, rkey, remote_addr, imm_data);
}

static void wr_send(struct ibv_qp_ex *ex)
{
	begin(ex, IBV_WR_SEND)->wr_send(ex);
}

static void wr_send_imm(struct ibv_qp_ex *ex, __be32 imm_data)
{
	begin(ex, IBV_WR_SEND_WITH_IMM)->wr_send_imm(ex, imm_data);
}

static void wr_send_inv(struct ibv_qp_ex *ex, uint32_t invalidate_rkey)
{
	begin(ex, IBV_WR_SEND_WITH_INV)->wr_send_inv(ex, invalidate_rkey);
}

static void wr_send_tso(struct ibv_qp_ex *ex, void *hdr, uint16_t hdr_sz, uint16_t mss)
{
	begin(ex, IBV_WR_TSO)->wr_send_tso(ex, hdr, hdr_sz, mss);
}

static void wr_atomic_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr,
			    const void *atomic_wr)
{
	begin(ex, IBV_WR_ATOMIC_WRITE)->wr_atomic_write(ex, rkey, remote_addr, atomic_wr);
}

static struct qp_watch *locked_qp_of(struct ibv_qp_ex *ex)
{
	struct qp_watch *qp;

	enter();
	qp = qp_of(ex);
	leave();
	return qp;
}

/* Like start_poll(), it may wait for another thread. */
static void wr_start(struct ibv_qp_ex *ex)
{
	struct qp_watch *qp = locked_qp_of(ex);

	qp->calls.wr_start(ex);
	qp->count = 0;
}

static void wr_abort(struct ibv_qp_ex *ex)
{
	struct qp_watch *qp = locked_qp_of(ex);

	qp->count = 0;
	qp->calls.wr_abort(ex);
}

/* All WRs are posted, or none: ibv_wr_complete(3). */
static int wr_complete(struct ibv_qp_ex *ex)
{
	struct qp_watch *qp;
	size_t count;
	int err;

	enter();
	qp = qp_of(ex);
	count = qp->count;
	err = qp->calls.wr_complete(ex);
	for (size_t i = 0; watch.check && !err && i < count; i++)
		completion_check_send(watch.check, qp->qp, qp->begun[i].wr_id, qp->begun[i].opcode,
				      qp->begun[i].flags);
	leave();
	return err;
}

static void shadow_qp_ex(struct qp_watch *qp, struct ibv_qp_ex *ex)
{
	if (!ex || qp->extended)
		return;
	qp->extended = true;
	qp->calls = *ex;
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
	ex->wr_atomic_write = wr_atomic_write;
	ex->wr_start = wr_start;
	ex->wr_complete = wr_complete;
	ex->wr_abort = wr_abort;
}

/* --- objects --- */

/* The table's call may call that of the context, whose hook has noted the QP already. */
static struct ibv_qp *made_qp(struct ibv_qp *qp, bool signal_all)
{
	struct qp_watch *made = qp ? qp_of(qp) : NULL;

	if (!qp || !watch.check || (made && !made->gone))
		return qp;
	if (!made) {
		made = blank(sizeof(*made));
		made->qp = qp;
		made->next = watch.qps;
		watch.qps = made;
	}
	made->context = qp->context;
	made->gone = false;
	made->extended = false;
	made->count = 0;
	completion_check_qp(watch.check, qp, signal_all);
	return qp;
}

static struct ibv_qp *create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
	struct ibv_qp *qp;

	enter();
	qp = made_qp(watch.original.create_qp(pd, init), init && init->sq_sig_all);
	leave();
	return qp;
}

/*
 * create_qp_ex, open_qp, create_cq_ex and create_srq_ex are in the backend's table and in struct
 * verbs_context. Both hooks use one function, whose argument is the original call.
 */
static struct ibv_qp *see_qp_ex(struct ibv_qp *(*call)(struct ibv_context *,
						       struct ibv_qp_init_attr_ex *),
				struct ibv_context *context, struct ibv_qp_init_attr_ex *init)
{
	struct ibv_qp *qp;

	enter();
	qp = made_qp(call(context, init), init && init->sq_sig_all);
	if (qp && init && watch.check && init->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)
		shadow_qp_ex(qp_of(qp), watch.original.qp_to_qp_ex(qp));
	leave();
	return qp;
}

static struct ibv_qp *create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *init)
{
	return see_qp_ex(watch.original.create_qp_ex, context, init);
}

static struct ibv_qp *verbs_create_qp_ex(struct ibv_context *context,
					 struct ibv_qp_init_attr_ex *init)
{
	return see_qp_ex(note_of(context)->verbs.create_qp_ex, context, init);
}

static struct ibv_qp *see_open_qp(struct ibv_qp *(*call)(struct ibv_context *,
							 struct ibv_qp_open_attr *),
				  struct ibv_context *context, struct ibv_qp_open_attr *attr)
{
	struct ibv_qp *qp;

	enter();
	qp = made_qp(call(context, attr), false);
	leave();
	return qp;
}

static struct ibv_qp *open_qp(struct ibv_context *context, struct ibv_qp_open_attr *attr)
{
	return see_open_qp(watch.original.open_qp, context, attr);
}

static struct ibv_qp *verbs_open_qp(struct ibv_context *context, struct ibv_qp_open_attr *attr)
{
	return see_open_qp(note_of(context)->verbs.open_qp, context, attr);
}

static int modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask)
{
	int err;

	enter();
	err = watch.original.modify_qp(qp, attr, attr_mask);
	if (!err && watch.check && attr_mask & IBV_QP_STATE)
		completion_check_state(watch.check, qp, attr->qp_state);
	leave();
	return err;
}

/* The lock is not held: destroying waits until events are acknowledged. */
static int destroy_qp(struct ibv_qp *qp)
{
	int err = watch.original.destroy_qp(qp);
	struct qp_watch *gone;

	enter();
	gone = err ? NULL : qp_of(qp);
	if (gone)
		gone->gone = true;
	if (!err && watch.check)
		completion_check_no_qp(watch.check, qp);
	leave();
	return err;
}

static void made_cq(struct ibv_cq *cq)
{
	struct cq_watch *made = cq ? cq_of(cq) : NULL;

	if (!cq || !watch.check || (made && !made->gone))
		return;
	if (!made) {
		made = blank(sizeof(*made));
		made->cq = cq;
		made->next = watch.cqs;
		watch.cqs = made;
	}
	made->context = cq->context;
	made->gone = false;
}

static struct ibv_cq *create_cq(struct ibv_context *context, int cqe, void *cq_context,
				struct ibv_comp_channel *channel, int comp_vector)
{
	struct ibv_cq *cq;

	enter();
	cq = watch.original.create_cq(context, cqe, cq_context, channel, comp_vector);
	made_cq(cq);
	leave();
	return cq;
}

static void made_cq_ex(struct ibv_cq_ex *ex, const struct ibv_cq_init_attr_ex *init)
{
	struct ibv_cq *cq = (struct ibv_cq *)ex;

	if (!ex || !watch.check || is_watched_cq(cq))
		return;
	made_cq(cq);
	cq_of(ex)->start_poll = ex->start_poll;
	cq_of(ex)->next_poll = ex->next_poll;
	ex->start_poll = start_poll;
	ex->next_poll = next_poll;
	/* Such a CQ loses completions: ibv_create_cq_ex(3). */
	if (init->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS &&
	    init->flags & IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN)
		completion_check_overrun(watch.check, cq);
}

static struct ibv_cq_ex *see_cq_ex(struct ibv_cq_ex *(*call)(struct ibv_context *,
							     struct ibv_cq_init_attr_ex *),
				   struct ibv_context *context, struct ibv_cq_init_attr_ex *init)
{
	struct ibv_cq_ex *ex;

	enter();
	ex = call(context, init);
	made_cq_ex(ex, init);
	leave();
	return ex;
}

static struct ibv_cq_ex *create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *init)
{
	return see_cq_ex(watch.original.create_cq_ex, context, init);
}

static struct ibv_cq_ex *verbs_create_cq_ex(struct ibv_context *context,
					    struct ibv_cq_init_attr_ex *init)
{
	return see_cq_ex(note_of(context)->verbs.create_cq_ex, context, init);
}

static int destroy_cq(struct ibv_cq *cq)
{
	int err = watch.original.destroy_cq(cq);
	struct cq_watch *gone;

	enter();
	gone = err ? NULL : cq_of(cq);
	if (gone)
		gone->gone = true;
	if (!err && watch.check)
		completion_check_no_cq(watch.check, cq);
	leave();
	return err;
}

static struct ibv_srq *create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *init)
{
	struct ibv_srq *srq;

	enter();
	srq = watch.original.create_srq(pd, init);
	if (srq && watch.check)
		completion_check_srq(watch.check, srq, NULL);
	leave();
	return srq;
}

static struct ibv_srq *see_srq_ex(struct ibv_srq *(*call)(struct ibv_context *,
							  struct ibv_srq_init_attr_ex *),
				  struct ibv_context *context, struct ibv_srq_init_attr_ex *init)
{
	struct ibv_srq *srq;

	enter();
	srq = call(context, init);
	if (srq && watch.check)
		completion_check_srq(watch.check, srq,
				     init->comp_mask & IBV_SRQ_INIT_ATTR_CQ ? init->cq : NULL);
	leave();
	return srq;
}

static struct ibv_srq *create_srq_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *init)
{
	return see_srq_ex(watch.original.create_srq_ex, context, init);
}

static struct ibv_srq *verbs_create_srq_ex(struct ibv_context *context,
					   struct ibv_srq_init_attr_ex *init)
{
	return see_srq_ex(note_of(context)->verbs.create_srq_ex, context, init);
}

static int destroy_srq(struct ibv_srq *srq)
{
	int err = watch.original.destroy_srq(srq);

	enter();
	if (!err && watch.check)
		completion_check_no_srq(watch.check, srq);
	leave();
	return err;
}

static int get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	int err = watch.original.get_async_event(context, event);

	enter();
	if (!err && watch.check && event->event_type == IBV_EVENT_CQ_ERR)
		completion_check_overrun(watch.check, event->element.cq);
	if (!err && watch.check && event->event_type == IBV_EVENT_DEVICE_FATAL)
		completion_check_fatal(watch.check, context);
	leave();
	return err;
}

/* --- contexts --- */

static struct ibv_context *opened(struct ibv_context *context)
{
	struct context_note *note;
	struct verbs_context *verbs;

	if (!context)
		return NULL;
	note = blank(sizeof(*note));
	note->context = context;
	note->ops = context->ops;
	context->ops.post_send = post_send;
	context->ops.post_recv = post_recv;
	context->ops.post_srq_recv = post_srq_recv;
	context->ops.poll_cq = poll_cq;
	context->ops.bind_mw = ops_bind_mw;
	verbs = verbs_get_ctx(context);
	if (verbs) {
		note->verbs = *verbs;
		if (verbs->create_qp_ex)
			verbs->create_qp_ex = verbs_create_qp_ex;
		if (verbs->create_cq_ex)
			verbs->create_cq_ex = verbs_create_cq_ex;
		if (verbs->open_qp)
			verbs->open_qp = verbs_open_qp;
		if (verbs->create_srq_ex)
			verbs->create_srq_ex = verbs_create_srq_ex;
	}
	enter();
	note->next = watch.contexts;
	watch.contexts = note;
	leave();
	return context;
}

static struct ibv_context *open_device(struct ibv_device *device)
{
	return opened(watch.original.open_device(device));
}

static struct ibv_context *import_device(int cmd_fd)
{
	return opened(watch.original.import_device(cmd_fd));
}

static int close_device(struct ibv_context *context)
{
	int err = watch.original.close_device(context);
	struct context_note **link, *gone;

	enter();
	for (link = &watch.contexts; !err && *link; link = &(*link)->next) {
		if ((*link)->context != context)
			continue;
		gone = *link;
		*link = gone->next;
		free(gone);
		break;
	}
	for (struct qp_watch *qp = watch.qps; !err && qp; qp = qp->next)
		qp->gone |= qp->context == context;
	for (struct cq_watch *cq = watch.cqs; !err && cq; cq = cq->next)
		cq->gone |= cq->context == context;
	leave();
	return err;
}

/* --- the watch --- */

void completion_watch_begin(struct vb_backend *backend,
			    void (*report)(void *arg, const char *sentence), void *arg)
{
	watch.check = completion_check_new(report, arg);
	watch.backend = backend;
	watch.original = *backend;
	backend->open_device = open_device;
	backend->import_device = import_device;
	backend->close_device = close_device;
	backend->get_async_event = get_async_event;
	backend->bind_mw = bind_mw;
	backend->create_cq = create_cq;
	backend->create_cq_ex = create_cq_ex;
	backend->destroy_cq = destroy_cq;
	backend->create_srq = create_srq;
	backend->create_srq_ex = create_srq_ex;
	backend->destroy_srq = destroy_srq;
	backend->create_qp = create_qp;
	backend->create_qp_ex = create_qp_ex;
	backend->open_qp = open_qp;
	backend->modify_qp = modify_qp;
	backend->destroy_qp = destroy_qp;
}

static void poll_all(void)
{
	struct ibv_wc wc;

	for (struct cq_watch *cq = watch.cqs; cq; cq = cq->next)
		while (!cq->gone && poll_cq(cq->cq, 1, &wc) > 0)
			;
}

/* Returns true if the backend says that the QP is in ERR; a dead device owes no completion. */
static bool in_error(const struct qp_watch *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	return !qp->gone && !watch.original.query_qp(qp->qp, &attr, IBV_QP_STATE, &init) &&
	       attr.qp_state == IBV_QPS_ERR;
}

static bool any_owed(void)
{
	for (struct qp_watch *qp = watch.qps; qp; qp = qp->next)
		if (completion_check_owed(watch.check, qp->qp) && in_error(qp))
			return true;
	return false;
}

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Some adapters flush WRs that are posted in ERR only at the next modify to ERR. */
static void flush_again(void)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	for (struct qp_watch *qp = watch.qps; qp; qp = qp->next)
		if (in_error(qp) && completion_check_owed(watch.check, qp->qp))
			watch.original.modify_qp(qp->qp, &attr, IBV_QP_STATE);
}

void completion_watch_settle(unsigned int wait_ms)
{
	uint64_t since_ms = now_ms();

	enter();
	poll_all();
	flush_again();
	while (any_owed() && now_ms() - since_ms < wait_ms)
		poll_all();
	for (struct qp_watch *qp = watch.qps; qp; qp = qp->next)
		if (in_error(qp))
			completion_check_lost(watch.check, qp->qp);
	leave();
}

static void unshadow_context(struct context_note *note)
{
	struct verbs_context *verbs = verbs_get_ctx(note->context);

	note->context->ops.post_send = note->ops.post_send;
	note->context->ops.post_recv = note->ops.post_recv;
	note->context->ops.post_srq_recv = note->ops.post_srq_recv;
	note->context->ops.poll_cq = note->ops.poll_cq;
	note->context->ops.bind_mw = note->ops.bind_mw;
	if (!verbs)
		return;
	verbs->create_qp_ex = note->verbs.create_qp_ex;
	verbs->create_cq_ex = note->verbs.create_cq_ex;
	verbs->open_qp = note->verbs.open_qp;
	verbs->create_srq_ex = note->verbs.create_srq_ex;
}

void completion_watch_end(void)
{
	enter();
	*watch.backend = watch.original;
	completion_check_free(watch.check);
	watch.check = NULL;
	while (watch.contexts) {
		struct context_note *note = watch.contexts;

		watch.contexts = note->next;
		unshadow_context(note);
		free(note);
	}
	while (watch.qps) {
		struct qp_watch *qp = watch.qps;

		watch.qps = qp->next;
		free(qp->begun);
		free(qp);
	}
	while (watch.cqs) {
		struct cq_watch *cq = watch.cqs;

		watch.cqs = cq->next;
		free(cq);
	}
	leave();
}
