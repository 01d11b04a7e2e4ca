/* SPDX-License-Identifier: MIT */
/* Posting by calls (ibv_wr_post(3)): the builders and setters of an ibv_qp_ex. */
#include "backends/sim/object/objects.h"
#include "backends/sim/verb/batch.h"
#include "backends/sim/verb/verbs.h"
#include "src/guard/guard.h"

#include "sim/object/rules.h"
#include "sim/wire/opcode.h"

#include <string.h>

uint64_t verb_wr_lacks(const struct sim_device *device, enum ibv_qp_type type,
		       uint64_t send_ops_flags)
{
	uint64_t left = send_ops_flags;

	for (unsigned int opcode = 0; opcode < BATCH_OPCODES; opcode++)
		if (sim_wr_info(type, opcode)->flags & SIM_WR_LEGAL)
			left &= ~batch_flags[opcode];
	if (send_ops_flags & IBV_QP_EX_WITH_ATOMIC_WRITE && !device->profile->atomic_write &&
	    sim_device_obeys(device, SIM_RULE_OPERATIONS_KNOWN))
		left |= IBV_QP_EX_WITH_ATOMIC_WRITE;
	return left;
}

/* --- builders --- */

static void wr_atomic_cmp_swp(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr,
			      uint64_t compare, uint64_t swap)
{
	struct ibv_send_wr *wr = batch_add(ex, IBV_WR_ATOMIC_CMP_AND_SWP);

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
	struct ibv_send_wr *wr = batch_add(ex, IBV_WR_ATOMIC_FETCH_AND_ADD);

	if (!wr)
		return;
	wr->wr.atomic.remote_addr = remote_addr;
	wr->wr.atomic.rkey = rkey;
	wr->wr.atomic.compare_add = addend;
}

static void wr_bind_mw(struct ibv_qp_ex *ex, struct ibv_mw *mw, uint32_t rkey,
		       const struct ibv_mw_bind_info *bind_info)
{
	struct ibv_send_wr *wr = batch_add(ex, IBV_WR_BIND_MW);

	if (!wr)
		return;
	wr->bind_mw.mw = mw;
	wr->bind_mw.rkey = rkey;
	wr->bind_mw.bind_info = *bind_info;
}

static void wr_local_inv(struct ibv_qp_ex *ex, uint32_t invalidate_rkey)
{
	struct ibv_send_wr *wr = batch_add(ex, IBV_WR_LOCAL_INV);

	if (wr)
		wr->invalidate_rkey = invalidate_rkey;
}

static struct ibv_send_wr *add_rdma(struct ibv_qp_ex *ex, enum ibv_wr_opcode opcode, uint32_t rkey,
				    uint64_t remote_addr)
{
	struct ibv_send_wr *wr = batch_add(ex, opcode);

	if (wr) {
		wr->wr.rdma.rkey = rkey;
		wr->wr.rdma.remote_addr = remote_addr;
	}
	return wr;
}

static void wr_rdma_read(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr)
{
	add_rdma(ex, IBV_WR_RDMA_READ, rkey, remote_addr);
}

static void wr_rdma_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr)
{
	add_rdma(ex, IBV_WR_RDMA_WRITE, rkey, remote_addr);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr,
			      __be32 imm_data)
{
	struct ibv_send_wr *wr = add_rdma(ex, IBV_WR_RDMA_WRITE_WITH_IMM, rkey, remote_addr);

	if (wr)
		wr->imm_data = imm_data;
}

static void wr_send(struct ibv_qp_ex *ex)
{
	batch_add(ex, IBV_WR_SEND);
}

static void wr_send_imm(struct ibv_qp_ex *ex, __be32 imm_data)
{
	struct ibv_send_wr *wr = batch_add(ex, IBV_WR_SEND_WITH_IMM);

	if (wr)
		wr->imm_data = imm_data;
}

static void wr_send_inv(struct ibv_qp_ex *ex, uint32_t invalidate_rkey)
{
	struct ibv_send_wr *wr = batch_add(ex, IBV_WR_SEND_WITH_INV);

	if (wr)
		wr->invalidate_rkey = invalidate_rkey;
}

/* No QP has this operation: ibv_wr_complete() returns EOPNOTSUPP. */
static void wr_send_tso(struct ibv_qp_ex *ex, void *hdr, uint16_t hdr_sz, uint16_t mss)
{
	batch_add(ex, IBV_WR_TSO);
}

static void wr_atomic_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr,
			    const void *atomic_wr)
{
	struct batch *batch = ((struct qp *)ex)->batch;
	struct ibv_send_wr *wr = add_rdma(ex, IBV_WR_ATOMIC_WRITE, rkey, remote_addr);

	if (!wr)
		return;
	batch->lacks &= NEEDS_ADDRESS;
	if (guard_copy(batch_bytes(batch), atomic_wr, SIM_ATOMIC_BYTES))
		batch_fail(batch, VB_WHY_BATCH_ATOMIC_FAULT, (uintptr_t)atomic_wr, 0);
	else
		batch_inlined(batch, wr, SIM_ATOMIC_BYTES);
}

/* --- setters --- */

static void wr_set_ud_addr(struct ibv_qp_ex *ex, struct ibv_ah *ah, uint32_t remote_qpn,
			   uint32_t remote_qkey)
{
	struct batch *batch;
	struct ibv_send_wr *wr = batch_newest(ex, &batch, NEEDS_ADDRESS);

	if (!wr)
		return;
	if (ex->qp_base.qp_type != IBV_QPT_UD)
		batch_fail_setter(batch, "an AH");
	wr->wr.ud.ah = ah;
	wr->wr.ud.remote_qpn = remote_qpn;
	wr->wr.ud.remote_qkey = remote_qkey;
}

static void wr_set_xrc_srqn(struct ibv_qp_ex *ex, uint32_t remote_srqn)
{
	struct batch *batch;
	struct ibv_send_wr *wr = batch_newest(ex, &batch, NEEDS_ADDRESS);

	if (!wr)
		return;
	if (ex->qp_base.qp_type != IBV_QPT_XRC_SEND)
		batch_fail_setter(batch, "an SRQ number");
	wr->qp_type.xrc.remote_srqn = remote_srqn;
}

static void wr_set_sge_list(struct ibv_qp_ex *ex, size_t num_sge, const struct ibv_sge *sg_list)
{
	struct batch *batch;
	struct ibv_send_wr *wr = batch_newest(ex, &batch, NEEDS_DATA);

	if (!wr)
		return;
	if (num_sge > batch->max_sge) {
		batch_fail(batch, VB_WHY_BATCH_SGES, num_sge, batch->max_sge);
		return;
	}
	wr->num_sge = (int)num_sge;
	if (num_sge)
		memcpy(batch_sges(batch), sg_list, num_sge * sizeof(*sg_list));
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
	struct ibv_send_wr *wr = batch_newest(ex, &batch, NEEDS_DATA | MAY_INLINE);
	uint32_t length = 0;
	uint8_t *to;

	if (!wr)
		return;
	to = batch_bytes(batch);
	for (size_t i = 0; i < num_buf; i++) {
		if (buf_list[i].length > batch->max_inline - length) {
			batch_fail(batch, VB_WHY_BATCH_INLINE_LENGTH, batch->max_inline, 0);
			return;
		}
		if (guard_copy(to + length, buf_list[i].addr, buf_list[i].length)) {
			batch_fail(batch, VB_WHY_BATCH_INLINE_FAULT, i,
				   (uintptr_t)buf_list[i].addr);
			return;
		}
		length += (uint32_t)buf_list[i].length;
	}
	batch_inlined(batch, wr, length);
}

static void wr_set_inline_data(struct ibv_qp_ex *ex, void *addr, size_t length)
{
	const struct ibv_data_buf buf = {.addr = addr, .length = length};

	wr_set_inline_data_list(ex, 1, &buf);
}

/* --- a QP --- */

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
	ex->wr_start = batch_start;
	ex->wr_complete = batch_complete;
	ex->wr_abort = batch_abort;
	ex->wr_atomic_write = wr_atomic_write;
}

int verb_wr_fill(struct qp *qp, uint64_t send_ops_flags, bool locks)
{
	int err = batch_new(qp, send_ops_flags, locks);

	if (err)
		return err;
	guard_install();
	fill(&qp->ex);
	return 0;
}
