/* SPDX-License-Identifier: MIT */
/* Posting: a work request becomes a WQE. */
#include "sim/base/refuse.h"
#include "sim/qp/private.h"

/* The way of most WRs is one function without calls. */
#define INLINE __attribute__((always_inline)) static inline

/* The values of the reason begin with the QP's number. */
__attribute__((noinline, cold)) static int refuse(const struct sim_qp *qp, enum vb_reason reason,
						  uint64_t first, uint64_t second)
{
	return sim_refuse(qp->engine, (struct vb_why){reason, {qp->number, first, second}});
}

/* A WR does not fit the send queue. An XRC target has no send queue. */
__attribute__((noinline, cold)) static int refuse_send(const struct sim_qp *qp,
						       enum vb_reason reason, uint64_t first,
						       uint64_t second)
{
	if (qp->type == IBV_QPT_XRC_RECV)
		return refuse(qp, VB_WHY_SEND_TARGET, 0, 0);
	return refuse(qp, reason, first, second);
}

__attribute__((noinline)) static int copy_inline(struct sim_qp *qp, const struct ibv_send_wr *wr,
						 struct sim_send_wqe *wqe)
{
	const struct sim_memory_ops *memory = &qp->engine->host.memory;
	uint8_t *to = (uint8_t *)wqe->sge;

	for (int i = 0; i < wr->num_sge; i++) {
		const struct ibv_sge *sge = &wr->sg_list[i];

		if (sge->length &&
		    memory->copy(to, (const void *)(uintptr_t)sge->addr, sge->length))
			return refuse(qp, VB_WHY_SEND_INLINE_FAULT, (uint64_t)i, sge->addr);
		to += sge->length;
	}
	return 0;
}

/* A WQE has room for the 8 bytes of an ATOMIC WRITE, however little inline data the QP asked for. */
static uint32_t inline_max(const struct sim_qp *qp, const struct sim_send_wqe *wqe)
{
	if (wqe->opcode == IBV_WR_ATOMIC_WRITE && qp->max_inline < SIM_ATOMIC_BYTES)
		return SIM_ATOMIC_BYTES;
	return qp->max_inline;
}

/* True for a message above the port's limit, which is at most 2^31 bytes. */
__attribute__((noinline)) static bool too_long(const struct sim_qp *qp, uint64_t length)
{
	if (!sim_rule_holds(qp, SIM_RULE_MESSAGE_LENGTH))
		return false;
	return length > SIM_MESSAGE_BYTES_MAX || sim_rule_holds(qp, SIM_RULE_MESSAGE_LIMIT);
}

INLINE int set_data(struct sim_qp *qp, const struct ibv_send_wr *wr, struct sim_send_wqe *wqe)
{
	uint64_t length;

	if (wr->send_flags & IBV_SEND_INLINE) {
		length = sim_take_sges(NULL, wr->sg_list, wr->num_sge);
		if (!(wqe->info.flags & SIM_WR_INLINE))
			return refuse(qp, VB_WHY_SEND_INLINE_OPCODE, wqe->opcode, 0);
		if (length > inline_max(qp, wqe))
			return refuse(qp, VB_WHY_SEND_INLINE_LENGTH, length, inline_max(qp, wqe));
		wqe->length = (uint32_t)length;
		return copy_inline(qp, wr, wqe);
	}
	length = sim_take_sges(wqe->sge, wr->sg_list, wr->num_sge);
	if (length > qp->device->profile->max_message_bytes && too_long(qp, length)) {
		wqe->status = IBV_WC_LOC_LEN_ERR;
		length = 0;
	}
	wqe->length = (uint32_t)length;
	return 0;
}

/* Unsourced: a wrong length ends like that of another atomic. */
static void check_atomic_write(const struct sim_qp *qp, struct sim_send_wqe *wqe)
{
	if (!qp->device->profile->atomic_write)
		wqe->status = IBV_WC_LOC_QP_OP_ERR;
	else if (wqe->length != SIM_ATOMIC_BYTES)
		wqe->status = IBV_WC_LOC_LEN_ERR;
	/* A WQE in error is not sent, and counts as one packet. */
	wqe->length = SIM_ATOMIC_BYTES;
}

__attribute__((noinline)) static void set_remote(const struct sim_qp *qp,
						 const struct ibv_send_wr *wr,
						 struct sim_send_wqe *wqe)
{
	if (wqe->opcode == IBV_WR_ATOMIC_WRITE)
		check_atomic_write(qp, wqe);
	if (!(wqe->info.flags & SIM_WR_ATOMIC)) {
		wqe->remote_addr = wr->wr.rdma.remote_addr;
		wqe->rkey = wr->wr.rdma.rkey;
		wqe->read.read_bytes = 0;
		return;
	}
	/* An atomic's answer fills the first 8 bytes of the SGEs. */
	wqe->remote_addr = wr->wr.atomic.remote_addr;
	wqe->rkey = wr->wr.atomic.rkey;
	wqe->atomic.compare_add = wr->wr.atomic.compare_add;
	wqe->atomic.swap = wr->wr.atomic.swap;
	wqe->atomic.sge_bytes = wqe->length;
	if (wqe->length < SIM_ATOMIC_BYTES)
		wqe->status = IBV_WC_LOC_LEN_ERR;
	wqe->length = SIM_ATOMIC_BYTES;
}

__attribute__((noinline)) static int set_address(struct sim_qp *qp, const struct ibv_send_wr *wr,
						 struct sim_send_wqe *wqe)
{
	const struct sim_host *host = &qp->engine->host;

	wqe->ud.ah = host->find_ah(host->arg, qp, wr->wr.ud.ah);
	if (!wqe->ud.ah)
		return refuse(qp, VB_WHY_SEND_AH, 0, 0);
	wqe->ud.ah->holders++;
	wqe->ud.remote_qpn = wr->wr.ud.remote_qpn & 0xffffff;
	wqe->ud.remote_qkey = wr->wr.ud.remote_qkey;
	return 0;
}

__attribute__((noinline)) static int set_local(struct sim_qp *qp, const struct ibv_send_wr *wr,
					       struct sim_send_wqe *wqe)
{
	const struct sim_host *host = &qp->engine->host;
	const struct ibv_mw_bind_info *info = &wr->bind_mw.bind_info;

	wqe->length = 0;
	if (wr->opcode == IBV_WR_LOCAL_INV) {
		wqe->invalidate_rkey = wr->invalidate_rkey;
		return 0;
	}
	/* ibv_post_send(3): windows of type 2 only; ibv_bind_mw(3) has the others. */
	if (!wr->bind_mw.mw ||
	    (wr->bind_mw.mw->type != IBV_MW_TYPE_2 &&
	     sim_rule_holds(qp, SIM_RULE_SENDS_BIND_TYPE_2)) ||
	    !host->find_mw(host->arg, qp, wr->bind_mw.mw, info->mr, &wqe->bind.mw, &wqe->bind.lkey))
		return refuse(qp, VB_WHY_SEND_BIND, 0, 0);
	wqe->bind.old_rkey = wr->bind_mw.mw->rkey;
	/* At the post, as rdma-core providers/irdma/uverbs.c, irdma_upost_send. */
	if (!qp->device->quirks.bindings_leave_mw_rkey)
		wr->bind_mw.mw->rkey = sim_mw_rkey(
			sim_table_find(&qp->device->regions, wqe->bind.mw), wr->bind_mw.rkey);
	wqe->rkey = wr->bind_mw.rkey;
	wqe->remote_addr = info->addr;
	wqe->bind.length = info->length;
	wqe->bind.access = (int)info->mw_access_flags;
	return 0;
}

/* A WR that the QP type forbids is posted, and fails when its turn comes (a quirk: EINVAL). */
__attribute__((noinline)) static int post_forbidden(struct sim_qp *qp, struct sim_send_wqe *wqe)
{
	if (qp->device->quirks.forbidden_opcodes_refused)
		return refuse(qp, VB_WHY_SEND_OPCODE, qp->type, wqe->opcode);
	wqe->ud.ah = NULL;
	wqe->length = 0;
	wqe->status = IBV_WC_LOC_QP_OP_ERR;
	qp->sq.head++;
	return 0;
}

INLINE int post_one(struct sim_qp *qp, const struct ibv_send_wr *wr)
{
	const struct sim_wr_info *info = sim_wr_info(qp->type, wr->opcode);
	const bool full = sim_queue_full(&qp->sq);
	struct sim_send_wqe *wqe;
	int err;

	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > qp->sq.max_sge)
		return refuse_send(qp, VB_WHY_SEND_SGES, (uint64_t)wr->num_sge, qp->sq.max_sge);
	if (qp->hooks) {
		err = qp->hooks->vet_send(qp, wr, full);
		if (err)
			return err;
	}
	if (full)
		return refuse_send(qp, VB_WHY_SEND_FULL, qp->sq.max_wr, 0);
	wqe = sim_qp_send_wqe(qp, qp->sq.head);
	wqe->wr_id = wr->wr_id;
	/* Or invalidate_rkey: both structures have the two in a union. */
	wqe->imm_data = wr->imm_data;
	wqe->xrc_srqn = wr->qp_type.xrc.remote_srqn;
	wqe->answered = 0;
	wqe->opcode = (uint8_t)wr->opcode;
	wqe->info = *info;
	wqe->send_flags = (uint8_t)(wr->send_flags | qp->sig_all);
	wqe->status = IBV_WC_SUCCESS;
	wqe->started = false;
	wqe->done = false;
	wqe->credited = false;
	wqe->num_sge = (uint8_t)wr->num_sge;
	if (!(info->flags & SIM_WR_LEGAL))
		return post_forbidden(qp, wqe);
	if (info->flags & SIM_WR_LOCAL)
		err = set_local(qp, wr, wqe);
	else
		err = set_data(qp, wr, wqe);
	if (!err && qp->type == IBV_QPT_UD)
		err = set_address(qp, wr, wqe);
	if (err)
		return err;
	if (info->flags & SIM_WR_REMOTE)
		set_remote(qp, wr, wqe);
	qp->sq.head++;
	return 0;
}

static int post_bind(struct sim_qp *qp, struct sim_mr *mw, const struct ibv_mw_bind *bind,
		     uint32_t region_lkey, uint32_t *new_rkey)
{
	const uint32_t rkey = sim_mw_next_rkey(mw);
	struct sim_send_wqe *wqe;

	if (mw->kind != SIM_MR_WINDOW_1 ||
	    !(sim_wr_info(qp->type, IBV_WR_BIND_MW)->flags & SIM_WR_LEGAL))
		return refuse(qp, VB_WHY_BIND_TYPE, qp->type, 0);
	if (qp->state < IBV_QPS_RTS && sim_rule_holds(qp, SIM_RULE_EARLY_SENDS_VANISH)) {
		if (!qp->device->quirks.posts_ignored_in_wrong_state)
			return refuse(qp, VB_WHY_SEND_STATE, qp->state, 0);
		/* The program gets a key, as if the binding were taken; the key leads nowhere. */
		mw->promised_rkey = rkey;
		*new_rkey = rkey;
		return 0;
	}
	if (sim_queue_full(&qp->sq))
		return refuse(qp, VB_WHY_SEND_FULL, qp->sq.max_wr, 0);
	wqe = sim_qp_send_wqe(qp, qp->sq.head++);
	*wqe = (struct sim_send_wqe){
		.wr_id = bind->wr_id,
		.remote_addr = bind->bind_info.addr,
		.bind = {.length = bind->bind_info.length,
			 .mw = mw->number,
			 .lkey = region_lkey,
			 .old_rkey = mw->promised_rkey,
			 .access = (int)bind->bind_info.mw_access_flags},
		.rkey = rkey,
		.opcode = IBV_WR_BIND_MW,
		.info = {SIM_WR_LEGAL | SIM_WR_LOCAL, IBV_WC_BIND_MW},
		.send_flags = (uint8_t)(bind->send_flags | qp->sig_all),
	};
	if (qp->state < IBV_QPS_RTS)
		return refuse(qp, VB_WHY_SEND_STATE, qp->state, 0);
	mw->promised_rkey = rkey;
	*new_rkey = rkey;
	return 0;
}

static inline void posted(struct sim_qp *qp)
{
	const bool empty = qp->sq.tail == qp->sq.head;

	if (qp->state == IBV_QPS_ERR || !empty)
		sim_qp_wake_requester(qp);
	if (qp->hooks && qp->state == IBV_QPS_ERR && !empty)
		qp->hooks->posted_in_error(qp);
}

int sim_qp_post_bind(struct sim_qp *qp, struct sim_mr *mw, const struct ibv_mw_bind *bind,
		     uint32_t region_lkey, uint32_t *new_rkey)
{
	int err = post_bind(qp, mw, bind, region_lkey, new_rkey);

	posted(qp);
	return err;
}

/* Posts WRs up to the first that is not taken. */
INLINE int post_all(struct sim_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	for (; wr; wr = wr->next) {
		int err = post_one(qp, wr);

		if (err) {
			*bad = wr;
			return err;
		}
	}
	return 0;
}

/* The QP's state forbids sends. Sends that do not vanish run when the QP is in RTS. */
__attribute__((noinline)) static int post_early(struct sim_qp *qp, struct ibv_send_wr *wr,
						struct ibv_send_wr **bad)
{
	if (qp->type == IBV_QPT_XRC_RECV) {
		*bad = wr;
		return refuse(qp, VB_WHY_SEND_TARGET, 0, 0);
	}
	if (!sim_rule_holds(qp, SIM_RULE_EARLY_SENDS_VANISH)) {
		post_all(qp, wr, bad);
		return refuse(qp, VB_WHY_SEND_STATE, qp->state, 0);
	}
	if (qp->device->quirks.posts_ignored_in_wrong_state)
		return 0;
	if (sim_rule_holds(qp, SIM_RULE_BAD_WR_NAMED))
		*bad = wr;
	return refuse(qp, VB_WHY_SEND_STATE, qp->state, 0);
}

int sim_qp_post_send(struct sim_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	int err;

	if (qp->state < IBV_QPS_RTS)
		return post_early(qp, wr, bad);
	err = post_all(qp, wr, bad);
	posted(qp);
	return err;
}

/* Finds the error that sim_qp_post_send() would find in the middle of the chain. */
static int check_owner(const struct sim_qp *qp, const struct ibv_send_wr *wr)
{
	const struct sim_host *host = &qp->engine->host;
	uint32_t number, lkey;

	if (qp->type == IBV_QPT_UD && !host->find_ah(host->arg, qp, wr->wr.ud.ah))
		return refuse(qp, VB_WHY_SEND_AH, 0, 0);
	if (wr->opcode == IBV_WR_BIND_MW &&
	    !host->find_mw(host->arg, qp, wr->bind_mw.mw, wr->bind_mw.bind_info.mr, &number, &lkey))
		return refuse(qp, VB_WHY_SEND_BIND, 0, 0);
	return 0;
}

int sim_qp_post_batch(struct sim_qp *qp, struct ibv_send_wr *wr, uint32_t count)
{
	struct ibv_send_wr *bad;
	int err = 0;

	if (qp->state < IBV_QPS_RTS)
		return qp->device->quirks.posts_ignored_in_wrong_state
			       ? 0
			       : refuse(qp, VB_WHY_SEND_STATE, qp->state, 0);
	if (count > qp->sq.max_wr - (qp->sq.head - qp->sq.freed))
		return refuse(qp, VB_WHY_SEND_FULL, qp->sq.max_wr, 0);
	for (uint32_t i = 0; i < count && !err; i++)
		err = check_owner(qp, &wr[i]);
	if (err || !count)
		return err;
	qp->posts_batch = true;
	err = sim_qp_post_send(qp, wr, &bad);
	qp->posts_batch = false;
	return err;
}

INLINE int post_recv_one(struct sim_qp *qp, const struct ibv_recv_wr *wr)
{
	if (sim_queue_full(&qp->rq))
		return refuse(qp, VB_WHY_RECV_FULL, qp->rq.max_wr, 0);
	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > qp->rq.max_sge)
		return refuse(qp, VB_WHY_RECV_SGES, (uint64_t)wr->num_sge, qp->rq.max_sge);
	sim_recv_wqe_fill(sim_qp_recv_wqe(qp, qp->rq.head), wr);
	qp->rq.head++;
	return 0;
}

/* The QP takes no receives, or not in its state. */
__attribute__((noinline)) static int refuse_recv(const struct sim_qp *qp, struct ibv_recv_wr *wr,
						 struct ibv_recv_wr **bad)
{
	const bool names_bad = sim_rule_holds(qp, SIM_RULE_BAD_WR_NAMED);

	if (!qp->has_rq && !names_bad)
		return refuse(qp, VB_WHY_RECV_NONE, qp->type, 0);
	if (qp->state == IBV_QPS_RESET && qp->device->quirks.posts_ignored_in_wrong_state)
		return 0;
	if (names_bad)
		*bad = wr;
	return qp->has_rq ? refuse(qp, VB_WHY_RECV_STATE, 0, 0)
			  : refuse(qp, VB_WHY_RECV_NONE, qp->type, 0);
}

int sim_qp_post_recv(struct sim_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	int err = 0;

	if (!qp->has_rq || qp->state == IBV_QPS_RESET)
		return refuse_recv(qp, wr, bad);
	for (; wr && !err; wr = wr->next) {
		err = post_recv_one(qp, wr);
		if (err)
			*bad = wr;
	}
	if (qp->state == IBV_QPS_ERR && sim_rule_holds(qp, SIM_RULE_RECEIVES_FLUSH)) {
		sim_receive_flush_later(qp);
		sim_qp_wake_requester(qp);
	}
	return err;
}
