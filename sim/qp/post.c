/* SPDX-License-Identifier: MIT */
/* Posting: from a work request to a WQE. */
#include "sim/qp/qp.h"

#include <errno.h>

__attribute__((noinline)) static int copy_inline(struct sim_qp *qp, const struct ibv_send_wr *wr,
						 struct sim_send_wqe *wqe)
{
	const struct sim_memory_ops *memory = &qp->engine->host.memory;
	uint8_t *to = (uint8_t *)wqe->sge;

	for (int i = 0; i < wr->num_sge; i++) {
		const struct ibv_sge *sge = &wr->sg_list[i];

		if (sge->length &&
		    memory->copy(to, (const void *)(uintptr_t)sge->addr, sge->length))
			return EFAULT;
		to += sge->length;
	}
	return 0;
}

/* An ATOMIC WRITE's 8 bytes always have room in its WQE, whatever inline data the QP asked for. */
static uint32_t inline_max(const struct sim_qp *qp, const struct sim_send_wqe *wqe)
{
	if (wqe->opcode == IBV_WR_ATOMIC_WRITE && qp->max_inline < SIM_ATOMIC_BYTES)
		return SIM_ATOMIC_BYTES;
	return qp->max_inline;
}

__attribute__((noinline)) static bool too_long(const struct sim_qp *qp, uint64_t length)
{
	const struct sim_quirks *quirks = &qp->device->quirks;

	return !quirks->message_lengths_unchecked &&
	       (!quirks->message_limit_unchecked || length > SIM_MESSAGE_BYTES_MAX);
}

__attribute__((always_inline)) static inline int set_data(struct sim_qp *qp,
							  const struct ibv_send_wr *wr,
							  struct sim_send_wqe *wqe)
{
	uint64_t length;

	if (wr->send_flags & IBV_SEND_INLINE) {
		length = sim_take_sges(NULL, wr->sg_list, wr->num_sge);
		if (!(wqe->info_flags & SIM_WR_INLINE) || length > inline_max(qp, wqe))
			return EINVAL;
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

/* Unsourced: a length that cannot be ends as that of the other atomics does. */
static void check_atomic_write(const struct sim_qp *qp, struct sim_send_wqe *wqe)
{
	if (!qp->device->profile->atomic_write)
		wqe->status = IBV_WC_LOC_QP_OP_ERR;
	else if (wqe->length != SIM_ATOMIC_BYTES)
		wqe->status = IBV_WC_LOC_LEN_ERR;
	/* What fails is not sent; it counts as the one packet that it would be. */
	wqe->length = SIM_ATOMIC_BYTES;
}

/* rdma-core providers/rxe/rxe.c, validate_send_wr: what ibv_wr_complete() does not look at. */
static bool atomic_fits(const struct sim_qp *qp, uint64_t length, uint64_t remote_addr)
{
	return !qp->device->quirks.atomics_checked_when_posted || qp->posts_batch ||
	       (length >= SIM_ATOMIC_BYTES && remote_addr % SIM_ATOMIC_BYTES == 0);
}

__attribute__((noinline)) static int set_remote(const struct sim_qp *qp,
						const struct ibv_send_wr *wr,
						struct sim_send_wqe *wqe)
{
	if (wqe->opcode == IBV_WR_ATOMIC_WRITE)
		check_atomic_write(qp, wqe);
	if (!(wqe->info_flags & SIM_WR_ATOMIC)) {
		wqe->remote_addr = wr->wr.rdma.remote_addr;
		wqe->rkey = wr->wr.rdma.rkey;
		return 0;
	}
	/* An atomic's answer is 8 bytes; what the SGEs have beyond that stays as it is. */
	wqe->remote_addr = wr->wr.atomic.remote_addr;
	wqe->rkey = wr->wr.atomic.rkey;
	wqe->compare_add = wr->wr.atomic.compare_add;
	wqe->swap = wr->wr.atomic.swap;
	if (!atomic_fits(qp, wqe->length, wqe->remote_addr))
		return EINVAL;
	if (wqe->length < SIM_ATOMIC_BYTES)
		wqe->status = IBV_WC_LOC_LEN_ERR;
	if (qp->device->quirks.atomics_tell_all_bytes)
		wqe->sge_bytes = wqe->length;
	wqe->length = SIM_ATOMIC_BYTES;
	return 0;
}

__attribute__((noinline)) static int set_address(struct sim_qp *qp, const struct ibv_send_wr *wr,
						 struct sim_send_wqe *wqe)
{
	const struct sim_host *host = &qp->engine->host;

	wqe->ah = host->find_ah(host->arg, qp, wr->wr.ud.ah);
	if (!wqe->ah)
		return EINVAL;
	wqe->ah->holders++;
	wqe->remote_qpn = wr->wr.ud.remote_qpn & 0xffffff;
	wqe->remote_qkey = wr->wr.ud.remote_qkey;
	return 0;
}

static bool is_odd_binding(const struct sim_qp *qp, const struct ibv_send_wr *wr)
{
	return wr->opcode == IBV_WR_BIND_MW && qp->device->quirks.odd_bindings_refused &&
	       (qp->type == IBV_QPT_UD || wr->num_sge || wr->imm_data);
}

__attribute__((noinline)) static int set_local(struct sim_qp *qp, const struct ibv_send_wr *wr,
					       struct sim_send_wqe *wqe)
{
	const struct sim_host *host = &qp->engine->host;
	const struct ibv_mw_bind_info *info = &wr->bind_mw.bind_info;

	if (wr->opcode == IBV_WR_LOCAL_INV) {
		wqe->invalidate_rkey = wr->invalidate_rkey;
		return 0;
	}
	if (is_odd_binding(qp, wr))
		return EINVAL;
	/* ibv_post_send(3): windows of type 2 only; ibv_bind_mw(3) has the others. */
	if (!wr->bind_mw.mw ||
	    (wr->bind_mw.mw->type != IBV_MW_TYPE_2 && !qp->device->quirks.type_1_bound_by_sends) ||
	    !host->find_mw(host->arg, qp, wr->bind_mw.mw, info->mr, &wqe->bind_mw, &wqe->bind_lkey))
		return EINVAL;
	wqe->bind_old_rkey = wr->bind_mw.mw->rkey;
	wqe->rkey = wr->bind_mw.rkey;
	wqe->remote_addr = info->addr;
	wqe->bind_length = info->length;
	wqe->bind_access = (int)info->mw_access_flags;
	return 0;
}

/* Whether all of it is in its WQE: ibv_wr_atomic_write() on a QP that asked for no SGE. */
static bool is_held(const struct ibv_send_wr *wr)
{
	return wr->opcode == IBV_WR_ATOMIC_WRITE && wr->send_flags & IBV_SEND_INLINE &&
	       wr->num_sge == 1;
}

/* A WR for which there is no room; what is wrong with it besides may come first (a quirk). */
__attribute__((noinline)) static int refuse_for_room(const struct sim_qp *qp,
						     const struct ibv_send_wr *wr,
						     const struct sim_wr_info *info)
{
	uint64_t length = sim_take_sges(NULL, wr->sg_list, wr->num_sge);

	if (!qp->device->quirks.room_is_checked_last)
		return ENOMEM;
	if (is_odd_binding(qp, wr))
		return EINVAL;
	if (wr->send_flags & IBV_SEND_INLINE && length > qp->max_inline)
		return EINVAL;
	if (info->flags & SIM_WR_ATOMIC && !atomic_fits(qp, length, wr->wr.atomic.remote_addr))
		return EINVAL;
	return ENOMEM;
}

__attribute__((always_inline)) static inline int post_one(struct sim_qp *qp,
							  const struct ibv_send_wr *wr)
{
	const struct sim_wr_info *info = sim_wr_info(qp->type, wr->opcode);
	struct sim_send_wqe *wqe;
	int err;

	if (wr->num_sge < 0 || ((uint32_t)wr->num_sge > qp->sq.max_sge && !is_held(wr)))
		return EINVAL;
	if (sim_queue_full(&qp->sq))
		return refuse_for_room(qp, wr, info);
	wqe = sim_qp_send_wqe(qp, qp->sq.head);
	wqe->wr_id = wr->wr_id;
	wqe->ah = NULL;
	wqe->length = 0;
	wqe->imm_data = wr->imm_data;
	wqe->xrc_srqn = wr->qp_type.xrc.remote_srqn;
	wqe->answered = 0;
	wqe->opcode = (uint8_t)wr->opcode;
	wqe->info_flags = (uint8_t)info->flags;
	wqe->wc_opcode = (uint8_t)info->wc_opcode;
	wqe->send_flags = (uint8_t)(wr->send_flags | qp->sig_all);
	wqe->status = IBV_WC_SUCCESS;
	wqe->num_sge = (uint8_t)wr->num_sge;
	wqe->started = false;
	wqe->credited = false;
	wqe->done = false;
	if (!(info->flags & SIM_WR_LEGAL)) {
		if (qp->device->quirks.forbidden_opcodes_refused || is_odd_binding(qp, wr))
			return EINVAL;
		wqe->status = IBV_WC_LOC_QP_OP_ERR;
		qp->sq.head++;
		return 0;
	}
	if (info->flags & SIM_WR_LOCAL) {
		err = set_local(qp, wr, wqe);
		if (!err)
			qp->sq.head++;
		return err;
	}
	err = set_data(qp, wr, wqe);
	if (!err && qp->type == IBV_QPT_UD)
		err = set_address(qp, wr, wqe);
	if (err)
		return err;
	if (info->flags & SIM_WR_REMOTE) {
		err = set_remote(qp, wr, wqe);
		if (err)
			return err;
	}
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
		return EINVAL;
	if (qp->state < IBV_QPS_RTS && !qp->device->quirks.refused_sends_stay_queued) {
		if (!qp->device->quirks.posts_ignored_in_wrong_state)
			return EINVAL;
		/* The program gets its key, as of each binding that is taken; it leads nowhere. */
		mw->promised_rkey = rkey;
		*new_rkey = rkey;
		return 0;
	}
	if (sim_queue_full(&qp->sq))
		return ENOMEM;
	wqe = sim_qp_send_wqe(qp, qp->sq.head++);
	*wqe = (struct sim_send_wqe){
		.wr_id = bind->wr_id,
		.remote_addr = bind->bind_info.addr,
		.bind_length = bind->bind_info.length,
		.bind_mw = mw->number,
		.bind_lkey = region_lkey,
		.bind_access = (int)bind->bind_info.mw_access_flags,
		.rkey = rkey,
		.bind_old_rkey = mw->promised_rkey,
		.opcode = IBV_WR_BIND_MW,
		.info_flags = SIM_WR_LEGAL | SIM_WR_LOCAL,
		.wc_opcode = IBV_WC_BIND_MW,
		.send_flags = (uint8_t)(bind->send_flags | qp->sig_all),
	};
	if (qp->state < IBV_QPS_RTS)
		return EINVAL;
	mw->promised_rkey = rkey;
	*new_rkey = rkey;
	return 0;
}

__attribute__((noinline)) static void posted_in_error(struct sim_qp *qp)
{
	sim_qp_wake_requester(qp);
	if (qp->sq.tail != qp->sq.head && qp->device->quirks.errors_repeat)
		sim_qp_fail_again(qp);
}

static inline void posted(struct sim_qp *qp)
{
	if (qp->state == IBV_QPS_ERR)
		posted_in_error(qp);
	else if (qp->sq.tail != qp->sq.head)
		sim_qp_wake_requester(qp);
}

int sim_qp_post_bind(struct sim_qp *qp, struct sim_mr *mw, const struct ibv_mw_bind *bind,
		     uint32_t region_lkey, uint32_t *new_rkey)
{
	int err = post_bind(qp, mw, bind, region_lkey, new_rkey);

	posted(qp);
	return err;
}

__attribute__((noinline)) static int post_in_wrong_state(struct sim_qp *qp, struct ibv_send_wr *wr,
							 struct ibv_send_wr **bad)
{
	const struct sim_quirks *quirks = &qp->device->quirks;

	if (quirks->posts_ignored_in_wrong_state)
		return 0;
	if (!quirks->refused_posts_name_no_wr)
		*bad = wr;
	return EINVAL;
}

int sim_qp_post_send(struct sim_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	int err = qp->type == IBV_QPT_XRC_RECV ? EINVAL : 0;

	if (qp->state < IBV_QPS_RTS && !err && !qp->device->quirks.refused_sends_stay_queued)
		return post_in_wrong_state(qp, wr, bad);

	for (; wr; wr = wr->next) {
		if (!err)
			err = post_one(qp, wr);
		if (err) {
			*bad = wr;
			break;
		}
	}
	/* The quirk looks at the state last: rdma-core providers/rxe/rxe.c, rxe_post_send. */
	if (qp->state < IBV_QPS_RTS)
		return EINVAL;
	posted(qp);
	return err;
}

__attribute__((always_inline)) static inline int post_recv_one(struct sim_qp *qp,
							       const struct ibv_recv_wr *wr)
{
	if (sim_queue_full(&qp->rq))
		return ENOMEM;
	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > qp->rq.max_sge)
		return EINVAL;
	sim_recv_wqe_fill(sim_qp_recv_wqe(qp, qp->rq.head), wr);
	qp->rq.head++;
	return 0;
}

int sim_qp_post_recv(struct sim_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	int err = qp->srq || qp->xrcd || !qp->recv_cq ? EINVAL : 0;

	if (err && qp->device->quirks.refused_posts_name_no_wr)
		return err;
	if (qp->state == IBV_QPS_RESET) {
		if (qp->device->quirks.posts_ignored_in_wrong_state)
			return 0;
		if (qp->device->quirks.refused_posts_name_no_wr)
			return EINVAL;
		err = EINVAL;
	}

	for (; wr; wr = wr->next) {
		if (!err)
			err = post_recv_one(qp, wr);
		if (err) {
			*bad = wr;
			break;
		}
	}
	if (qp->state == IBV_QPS_ERR && !qp->device->quirks.errored_receives_wait) {
		qp->flush_recvs = true;
		sim_qp_wake_requester(qp);
	}
	return err;
}
