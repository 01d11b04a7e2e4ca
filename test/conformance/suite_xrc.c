/* SPDX-License-Identifier: MIT */
/*
 * Extended reliable connections: many SRQs behind one target QP.
 */
#include "test/conformance/sources.h"
#include "test/support/keep.h"
#include "test/support/xrc.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <verbena/fault.h>

/* --- domains --- */

static void close_fd(void *arg)
{
	close(*(int *)arg);
}

static int file(struct vt *t)
{
	int *fd = vt_alloc(t, sizeof(*fd));

	*fd = memfd_create("xrcd", 0);
	VT_CHECK(t, *fd >= 0);
	vt_defer(t, close_fd, fd);
	return *fd;
}

static struct ibv_xrcd *try_open(struct ibv_context *ctx, int fd, int oflags)
{
	struct ibv_xrcd_init_attr init = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = fd,
		.oflags = oflags,
	};

	return vb_open_xrcd(ctx, &init);
}

static void domain_without_a_file(struct vt *t)
{
	struct ibv_xrcd *xrcd;

	ts_need_xrc(t);
	xrcd = VT_PTR(t, try_open(t->a.ctx, -1, O_CREAT));
	VT_CHECK(t, xrcd->context == t->a.ctx);
	VT_OK(t, vb_close_xrcd(xrcd));
}

static void domain_is_shared_by_its_file(struct vt *t)
{
	struct ibv_context *other;
	struct ibv_xrcd *first, *second;
	int fd;

	ts_need_xrc(t);
	fd = file(t);
	other = ts_context(t, &t->a);
	VT_CHECK(t, !try_open(t->a.ctx, fd, 0));
	first = ts_xrcd(t, t->a.ctx, fd, O_CREAT | O_EXCL);
	second = ts_xrcd(t, other, fd, 0);
	VT_CHECK(t, !try_open(other, fd, O_CREAT | O_EXCL));
	VT_OK(t, vb_close_xrcd(first));
	ts_gone(t, first);
	VT_CHECK(t, !try_open(t->a.ctx, fd, O_CREAT | O_EXCL));
	VT_OK(t, vb_close_xrcd(second));
	ts_gone(t, second);
	VT_CHECK(t, !try_open(t->a.ctx, fd, 0));
}

static void domain_in_use_is_ebusy(struct vt *t)
{
	struct ibv_xrcd *xrcd;
	struct ts_shared *shared;
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_XRC_RECV,
		.comp_mask = IBV_QP_INIT_ATTR_XRCD,
	};
	struct ibv_qp *qp;

	ts_need_xrc(t);
	xrcd = ts_xrcd(t, t->b.ctx, -1, O_CREAT);
	shared = ts_xrc_srq(t, xrcd, ts_cq(t, &t->b, 4));
	VT_ERRNO(t, vb_close_xrcd(xrcd), EBUSY);
	VT_OK(t, vb_destroy_srq(shared->srq));
	ts_gone(t, shared->srq);
	init.xrcd = xrcd;
	qp = VT_PTR(t, vb_create_qp_ex(t->b.ctx, &init));
	VT_ERRNO(t, vb_close_xrcd(xrcd), EBUSY);
	VT_OK(t, vb_destroy_qp(qp));
	VT_OK(t, vb_close_xrcd(xrcd));
	ts_gone(t, xrcd);
}

static void bad_domain_attributes(struct vt *t)
{
	struct ibv_xrcd_init_attr init = {.fd = -1, .oflags = O_CREAT};

	ts_need_xrc(t);
	VT_CHECK(t, !try_open(t->a.ctx, 1000000, O_CREAT));
	VT_CHECK(t, !vb_open_xrcd(t->a.ctx, &init));
}

/* --- SRQs and QPs --- */

static void srqs_have_numbers(struct vt *t)
{
	struct ts_xrc *xrc = ts_xrc(t);
	uint32_t number = 0;

	VT_CHECK(t, xrc->srqn[0] != xrc->srqn[1]);
	VT_EQ(t, xrc->srqn[0] & ~(uint32_t)TS_PSN_MASK, 0);
	VT_CHECK(t, vb_get_srq_num(ts_shared(t)->srq, &number) != 0);
}

static void cq_of_an_srq_is_ebusy(struct vt *t)
{
	struct ts_xrc *xrc = ts_xrc(t);

	VT_ERRNO(t, vb_destroy_cq(xrc->cq[0]), EBUSY);
	VT_OK(t, vb_destroy_srq(xrc->shared[0]->srq));
	ts_gone(t, xrc->shared[0]->srq);
	VT_OK(t, vb_destroy_cq(xrc->cq[0]));
	ts_gone(t, xrc->cq[0]);
}

static void srq_needs_its_domain_and_cq(struct vt *t)
{
	static const uint32_t missing[] = {IBV_SRQ_INIT_ATTR_XRCD, IBV_SRQ_INIT_ATTR_CQ,
					   IBV_SRQ_INIT_ATTR_PD};
	struct ibv_srq_init_attr_ex init = {
		.attr = {.max_wr = 1, .max_sge = 1},
		.srq_type = IBV_SRQT_XRC,
	};
	size_t i;

	ts_need_xrc(t);
	init.pd = ts_pd(t, &t->b);
	init.cq = ts_cq(t, &t->b, 1);
	init.xrcd = ts_xrcd(t, t->b.ctx, -1, O_CREAT);
	for (i = 0; i < TS_COUNT(missing); i++) {
		vt_row(t, "without 0x%x", missing[i]);
		init.comp_mask = (IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
				  IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ) &
				 ~missing[i];
		VT_EXPECT_NULL_ERRNO(t, vb_create_srq_ex(t->b.ctx, &init), EINVAL);
	}
}

static void target_needs_a_domain(struct vt *t)
{
	struct ibv_qp_init_attr_ex init = {.qp_type = IBV_QPT_XRC_RECV};

	ts_need_xrc(t);
	VT_NULL_ERRNO(t, vb_create_qp_ex(t->b.ctx, &init), EINVAL);
}

/* Tries a step without one of its required attributes, or with one that it forbids. */
static void expect_strict(struct ts_end *end, const struct ibv_qp_attr *attr, int required,
			  int forbidden)
{
	struct vt *t = end->t;
	int bit;

	for (bit = IBV_QP_ACCESS_FLAGS; bit <= IBV_QP_DEST_QPN; bit <<= 1) {
		struct ibv_qp_attr copy = *attr;

		vt_row(t, "type %d, %s, bit 0x%x", end->options.type,
		       vt_qp_state_name((int)attr->qp_state), bit);
		if (required & bit)
			VT_EXPECT_ERRNO(t, vb_modify_qp(end->qp, &copy, required & ~bit), EINVAL);
		if (forbidden & bit)
			VT_EXPECT_ERRNO(t, vb_modify_qp(end->qp, &copy, required | bit), EINVAL);
	}
	vt_row(t, NULL);
}

static void steps_of_the_initiator(struct vt *t)
{
	const struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ibv_qp_attr attr;
	struct ts_end *end;
	int mask;

	ts_need_xrc(t);
	end = &ts_xrc_reset(t, &options)->pair->a;
	mask = ts_init_attr(end, &attr);
	expect_strict(end, &attr, mask, IBV_QP_QKEY);
	ts_to_init(end);
	mask = ts_rtr_attr(end, &attr);
	expect_strict(end, &attr, mask, IBV_QP_QKEY);
	ts_to_rtr(end);
	mask = ts_rts_attr(end, &attr) | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
	       IBV_QP_MAX_QP_RD_ATOMIC;
	expect_strict(end, &attr, mask, IBV_QP_QKEY);
	VT_OK(t, vb_modify_qp(end->qp, &attr, mask));
	ts_state(end, IBV_QPS_RTS);
}

static void steps_of_the_target(struct vt *t)
{
	const struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ibv_qp_attr attr;
	struct ts_end *end;
	int mask;

	ts_need_xrc(t);
	end = &ts_xrc_reset(t, &options)->pair->b;
	mask = ts_init_attr(end, &attr);
	expect_strict(end, &attr, mask, IBV_QP_QKEY);
	ts_to_init(end);
	mask = ts_target_rtr_attr(end, &attr);
	expect_strict(end, &attr, mask, IBV_QP_QKEY);
	VT_OK(t, vb_modify_qp(end->qp, &attr, mask));
	mask = ts_target_rts_attr(end, &attr);
	expect_strict(end, &attr, mask, IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_QKEY);
	VT_OK(t, vb_modify_qp(end->qp, &attr, mask));
	ts_state(end, IBV_QPS_RTS);
}

static void no_receives_on_their_qps(struct vt *t)
{
	struct ts_xrc *xrc = ts_xrc(t);

	VT_ERRNO(t, ts_post_rr(&xrc->pair->a, &(struct ts_rr){.wr_id = 1}), EINVAL);
	VT_ERRNO(t, ts_post_rr(&xrc->pair->b, &(struct ts_rr){.wr_id = 1}), EINVAL);
}

static void target_sends_nothing(struct vt *t)
{
	struct ts_xrc *xrc = ts_xrc(t);

	VT_ERRNO(t, ts_post(&xrc->pair->b, &(struct ts_wr){.opcode = IBV_WR_SEND}), EINVAL);
}

/* --- operations --- */

/* Sends one message to an SRQ, where the WR with the id receives it. */
static void send_into(struct ts_xrc *xrc, int srq, uint64_t recv_wr_id, uint32_t bytes)
{
	struct vt *t = xrc->t;
	struct ibv_wc wc;

	TS_XRC_POST(xrc, xrc->srqn[srq], IBV_WR_SEND_WITH_IMM, .wr_id = 1, .length = bytes,
		    .imm = 0x1234 + (uint32_t)srq);
	ts_done(t, xrc->pair->a.send_cq, 1, IBV_WC_SEND);
	wc = ts_received(t, xrc->cq[srq], recv_wr_id, bytes);
	VT_CHECK(t, wc.wc_flags & IBV_WC_WITH_IMM);
	VT_EQ(t, ntohl(wc.imm_data), 0x1234 + srq);
}

static void sends_of_each_size(struct vt *t)
{
	static const uint32_t sizes[] = {0, 1, 4096, 4097, 30000};
	struct ts_xrc *xrc = ts_xrc(t);
	size_t i;

	for (i = 0; i < TS_COUNT(sizes); i++) {
		vt_row(t, "%u bytes", sizes[i]);
		memset(xrc->shared[0]->buffer, TS_BLANK, 40000);
		ts_srq_recv(xrc->shared[0], .wr_id = 50 + i, .offset = 8, .length = 30000);
		send_into(xrc, 0, 50 + i, sizes[i]);
		ts_verify(t, xrc->shared[0]->buffer + 8, sizes[i], 1);
		ts_blank(t, xrc->shared[0]->buffer + 8 + sizes[i], 64);
	}
}

static void two_srqs_through_one_target(struct vt *t)
{
	struct ts_xrc *xrc = ts_xrc(t);
	unsigned int i;

	for (i = 0; i < 8; i++)
		ts_srq_recv(xrc->shared[i % 2], .wr_id = 50 + i, .offset = 1000 * i,
			    .length = 1000);
	for (i = 0; i < 8; i++) {
		send_into(xrc, i % 2, 50 + i, 700);
		ts_verify(t, xrc->shared[i % 2]->buffer + 1000 * i, 700, 1);
	}
	ts_no_more(t, xrc->cq[0]);
	ts_no_more(t, xrc->cq[1]);
}

#define FAULTY_MESSAGES 120u
#define FAULTY_BYTES	1500u

/* Each message arrives once and in order at its SRQ, with a fault on a tenth of the packets. */
static void under_faults(struct vt *t, enum vb_fault_action action)
{
	struct ts_xrc *xrc = ts_xrc(t);
	struct ts_end *a = &xrc->pair->a;
	uint8_t *at;
	struct ibv_wc wc;

	ts_fault(t,
		 &(struct vb_fault_rule){.action = action, .probability = 0.1, .delay_ns = 20000});
	for (uint32_t i = 0; i < FAULTY_MESSAGES; i++) {
		int srq = (int)vt_random_below(t, TS_XRC_SRQS);
		bool write = vt_random_below(t, 2);
		struct ts_shared *to = xrc->shared[srq];

		vt_row(t, "message %u, SRQ %d", i, srq);
		at = to->buffer + 4096 * (1 + vt_random_below(t, 8));
		ts_fill(a->buffer, FAULTY_BYTES, i);
		ts_srq_recv(to, .wr_id = i, .address = (uintptr_t)at, .length = FAULTY_BYTES);
		TS_XRC_POST(xrc, xrc->srqn[srq],
			    write ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_SEND_WITH_IMM, .wr_id = i,
			    .length = FAULTY_BYTES, .imm = i, .remote_address = (uintptr_t)at,
			    .rkey = to->mr->rkey);
		ts_done(t, a->send_cq, i, write ? IBV_WC_RDMA_WRITE : IBV_WC_SEND);
		VT_EQ(t, ts_wait(t, xrc->cq[srq], 1, &wc), 1);
		VT_STATUS(t, wc.status, IBV_WC_SUCCESS);
		VT_EQ(t, wc.wr_id, i);
		VT_EQ(t, ntohl(wc.imm_data), i);
		ts_verify(t, at, FAULTY_BYTES, i);
	}
	vt_row(t, NULL);
	ts_no_more(t, xrc->cq[0]);
	ts_no_more(t, xrc->cq[1]);
	ts_state(a, IBV_QPS_RTS);
	ts_state(&xrc->pair->b, IBV_QPS_RTS);
}

static void one_in_ten_lost(struct vt *t)
{
	under_faults(t, VB_FAULT_DROP);
}

static void one_in_ten_twice(struct vt *t)
{
	under_faults(t, VB_FAULT_DUPLICATE);
}

static void one_in_ten_late(struct vt *t)
{
	under_faults(t, VB_FAULT_DELAY);
}

/* A repeated atomic is answered but not done again. The atomics reach regions of both SRQs' PDs. */
static void atomics_under_loss(struct vt *t)
{
	struct ts_xrc *xrc = ts_xrc(t);
	struct ts_end *a = &xrc->pair->a;
	uint64_t sums[TS_XRC_SRQS] = {0};

	for (int i = 0; i < TS_XRC_SRQS; i++)
		memcpy(xrc->shared[i]->buffer, &sums[i], 8);
	ts_fault(t, &(struct vb_fault_rule){.action = VB_FAULT_DROP, .probability = 0.1});
	ts_fault(t, &(struct vb_fault_rule){.action = VB_FAULT_DUPLICATE, .probability = 0.1});
	for (uint32_t i = 0; i < FAULTY_MESSAGES; i++) {
		int srq = (int)(i % TS_XRC_SRQS);
		struct ts_shared *to = xrc->shared[srq];

		vt_row(t, "atomic %u, SRQ %d", i, srq);
		TS_XRC_POST(xrc, xrc->srqn[srq], IBV_WR_ATOMIC_FETCH_AND_ADD, .wr_id = i,
			    .length = 8, .remote_address = (uintptr_t)to->buffer,
			    .rkey = to->mr->rkey, .compare_add = i + 1);
		ts_done(t, a->send_cq, i, IBV_WC_FETCH_ADD);
		VT_EQ_MEM(t, a->buffer, &sums[srq], 8);
		sums[srq] += i + 1;
		VT_EQ_MEM(t, to->buffer, &sums[srq], 8);
	}
}

static void completion_names_the_target(struct vt *t)
{
	struct ts_xrc *xrc = ts_xrc(t);
	struct ibv_wc wc;

	ts_srq_recv(xrc->shared[1], .wr_id = 50, .length = 100);
	TS_XRC_POST(xrc, xrc->srqn[1], IBV_WR_SEND, .wr_id = 1, .length = 100);
	wc = ts_done(t, xrc->pair->a.send_cq, 1, IBV_WC_SEND);
	VT_EQ(t, wc.qp_num, xrc->pair->a.qp->qp_num);
	VT_EQ(t, ts_received(t, xrc->cq[1], 50, 100).qp_num, xrc->pair->b.qp->qp_num);
}

/* Remote keys are looked up in the PD of the SRQ. */
static void writes_and_reads(struct vt *t)
{
	struct ts_xrc *xrc = ts_xrc(t);
	struct ts_shared *to = xrc->shared[0];

	TS_XRC_POST(xrc, xrc->srqn[0], IBV_WR_RDMA_WRITE, .wr_id = 1, .length = 9000,
		    .remote_address = (uintptr_t)to->buffer, .rkey = to->mr->rkey);
	ts_done(t, xrc->pair->a.send_cq, 1, IBV_WC_RDMA_WRITE);
	ts_verify(t, to->buffer, 9000, 1);
	ts_fill(to->buffer, 9000, 2);
	TS_XRC_POST(xrc, xrc->srqn[0], IBV_WR_RDMA_READ, .wr_id = 2, .offset = 20000,
		    .length = 9000, .remote_address = (uintptr_t)to->buffer, .rkey = to->mr->rkey);
	ts_done(t, xrc->pair->a.send_cq, 2, IBV_WC_RDMA_READ);
	ts_verify(t, xrc->pair->a.buffer + 20000, 9000, 2);
	ts_no_more(t, xrc->cq[0]);
}

static void write_with_imm_takes_from_its_srq(struct vt *t)
{
	struct ts_xrc *xrc = ts_xrc(t);
	struct ts_shared *to = xrc->shared[1];

	ts_srq_recv(to, .wr_id = 50, .offset = 50000, .length = 8);
	TS_XRC_POST(xrc, xrc->srqn[1], IBV_WR_RDMA_WRITE_WITH_IMM, .wr_id = 1, .length = 9000,
		    .remote_address = (uintptr_t)to->buffer, .rkey = to->mr->rkey, .imm = 5);
	ts_done(t, xrc->pair->a.send_cq, 1, IBV_WC_RDMA_WRITE);
	ts_written(t, xrc->cq[1], 50, 9000);
	ts_verify(t, to->buffer, 9000, 1);
}

static void atomics(struct vt *t)
{
	struct ts_xrc *xrc = ts_xrc(t);
	struct ts_shared *to = xrc->shared[0];
	uint64_t value = 41;

	memcpy(to->buffer, &value, 8);
	TS_XRC_POST(xrc, xrc->srqn[0], IBV_WR_ATOMIC_FETCH_AND_ADD, .wr_id = 1, .length = 8,
		    .remote_address = (uintptr_t)to->buffer, .rkey = to->mr->rkey,
		    .compare_add = 1);
	ts_done(t, xrc->pair->a.send_cq, 1, IBV_WC_FETCH_ADD);
	TS_XRC_POST(xrc, xrc->srqn[0], IBV_WR_ATOMIC_CMP_AND_SWP, .wr_id = 2, .offset = 8,
		    .length = 8, .remote_address = (uintptr_t)to->buffer, .rkey = to->mr->rkey,
		    .compare_add = 42, .swap = 7);
	ts_done(t, xrc->pair->a.send_cq, 2, IBV_WC_COMP_SWAP);
	memcpy(&value, xrc->pair->a.buffer + 8, 8);
	VT_EQ(t, value, 42);
	memcpy(&value, to->buffer, 8);
	VT_EQ(t, value, 7);
}

static void rkey_of_another_pd_is_refused(struct vt *t)
{
	struct ts_xrc *xrc = ts_xrc(t);
	struct ts_shared *other = xrc->shared[1];

	TS_XRC_POST(xrc, xrc->srqn[0], IBV_WR_RDMA_WRITE, .wr_id = 1, .length = 8,
		    .remote_address = (uintptr_t)other->buffer, .rkey = other->mr->rkey);
	ts_failed(t, xrc->pair->a.send_cq, 1, IBV_WC_REM_ACCESS_ERR);
	ts_blank(t, other->buffer, 8);
}

/* --- errors --- */

static void wrong_srq_number_is_an_error(struct vt *t)
{
	struct ts_xrc *xrc = ts_xrc(t);

	ts_srq_recv(xrc->shared[0], .wr_id = 50, .length = 100);
	TS_XRC_POST(xrc, 0xfffff0, IBV_WR_SEND, .wr_id = 1, .length = 8);
	ts_failed(t, xrc->pair->a.send_cq, 1, IBV_WC_REM_INV_REQ_ERR);
	ts_state(&xrc->pair->a, IBV_QPS_ERR);
	ts_state(&xrc->pair->b, IBV_QPS_ERR);
	ts_no_more(t, xrc->cq[0]);
}

static void srq_of_another_domain_is_an_error(struct vt *t)
{
	struct ts_xrc *xrc = ts_xrc(t);
	struct ibv_xrcd *xrcd = ts_xrcd(t, t->b.ctx, -1, O_CREAT);
	struct ibv_cq *cq = ts_cq(t, &t->b, 4);
	struct ts_shared *other = ts_xrc_srq(t, xrcd, cq);

	ts_srq_recv(other, .wr_id = 50, .length = 100);
	TS_XRC_POST(xrc, ts_srqn(t, other->srq), IBV_WR_SEND, .wr_id = 1, .length = 8);
	ts_failed(t, xrc->pair->a.send_cq, 1, IBV_WC_REM_INV_REQ_ERR);
	ts_no_more(t, cq);
	ts_blank(t, other->buffer, 8);
}

static void empty_srq_is_rnr_until_one_is_posted(struct vt *t)
{
	struct ts_xrc *xrc = ts_xrc(t);

	ts_srq_recv(xrc->shared[1], .wr_id = 51, .length = 100);
	TS_XRC_POST(xrc, xrc->srqn[0], IBV_WR_SEND, .wr_id = 1, .length = 100);
	ts_pause(t, 5000000);
	VT_EQ(t, ibv_poll_cq(xrc->pair->a.send_cq, 1, &(struct ibv_wc){0}), 0);
	VT_EQ(t, ibv_poll_cq(xrc->cq[1], 1, &(struct ibv_wc){0}), 0);
	ts_srq_recv(xrc->shared[0], .wr_id = 50, .length = 100);
	ts_done(t, xrc->pair->a.send_cq, 1, IBV_WC_SEND);
	ts_received(t, xrc->cq[0], 50, 100);
}

static void target_in_err_leaves_the_srqs_work(struct vt *t)
{
	struct ts_xrc *xrc = ts_xrc(t);

	ts_srq_recv(xrc->shared[0], .wr_id = 50, .length = 100);
	VT_OK(t, ts_to(&xrc->pair->b, IBV_QPS_ERR));
	ts_no_more(t, xrc->cq[0]);
	ts_state(&xrc->pair->b, IBV_QPS_ERR);
}

/* The SRQ and its CQ end after a message. The target, which received it, is in use, is reset and destroyed. */
static void target_outlives_its_srq(struct vt *t)
{
	struct ts_xrc *xrc = ts_xrc(t);

	ts_srq_recv(xrc->shared[0], .wr_id = 50, .length = 100);
	send_into(xrc, 0, 50, 100);
	VT_OK(t, vb_destroy_srq(xrc->shared[0]->srq));
	ts_gone(t, xrc->shared[0]->srq);
	VT_OK(t, vb_destroy_cq(xrc->cq[0]));
	ts_gone(t, xrc->cq[0]);
	ts_srq_recv(xrc->shared[1], .wr_id = 51, .length = 100);
	send_into(xrc, 1, 51, 100);
	VT_OK(t, vb_destroy_srq(xrc->shared[1]->srq));
	ts_gone(t, xrc->shared[1]->srq);
	VT_OK(t, vb_destroy_cq(xrc->cq[1]));
	ts_gone(t, xrc->cq[1]);
	VT_OK(t, ts_to(&xrc->pair->b, IBV_QPS_ERR));
	VT_OK(t, ts_to(&xrc->pair->b, IBV_QPS_RESET));
	ts_destroy_qp(&xrc->pair->b);
}

static void completions_outlive_the_target(struct vt *t)
{
	struct ts_xrc *xrc = ts_xrc(t);

	for (unsigned int i = 0; i < 2; i++)
		ts_srq_recv(xrc->shared[0], .wr_id = 50 + i, .length = 100);
	for (unsigned int i = 0; i < 2; i++) {
		TS_XRC_POST(xrc, xrc->srqn[0], IBV_WR_SEND, .wr_id = i, .length = 100);
		ts_done(t, xrc->pair->a.send_cq, i, IBV_WC_SEND);
	}
	VT_OK(t, ts_to(&xrc->pair->b, IBV_QPS_RESET));
	ts_received(t, xrc->cq[0], 50, 100);
	ts_destroy_qp(&xrc->pair->b);
	ts_received(t, xrc->cq[0], 51, 100);
	ts_no_more(t, xrc->cq[0]);
}

static void limit_event_of_an_xrc_srq(struct vt *t)
{
	struct ts_xrc *xrc = ts_xrc(t);

	ts_srq_recv(xrc->shared[0], .wr_id = 50, .length = 100);
	ts_srq_recv(xrc->shared[0], .wr_id = 51, .length = 100);
	ts_arm_srq(t, xrc->shared[0]->srq, 2);
	send_into(xrc, 0, 50, 8);
	ts_event(t, &t->b, IBV_EVENT_SRQ_LIMIT_REACHED, xrc->shared[0]->srq);
}

/* --- ibv_open_qp --- */

static struct ibv_qp *try_open_qp(struct ibv_xrcd *xrcd, uint32_t number, enum ibv_qp_type type)
{
	struct ibv_qp_open_attr attr = {
		.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE,
		.qp_num = number,
		.xrcd = xrcd,
		.qp_type = type,
	};

	return vb_open_qp(xrcd->context, &attr);
}

static void opened_target_outlives_the_first_handle(struct vt *t)
{
	struct ts_xrc *xrc = ts_xrc(t);
	uint32_t number = xrc->pair->b.qp->qp_num;
	struct ibv_qp *opened = VT_PTR(t, try_open_qp(xrc->xrcd, number, IBV_QPT_XRC_RECV));

	VT_EQ(t, opened->qp_num, number);
	VT_STATE(t, ts_query_state(t, opened), IBV_QPS_RTS);
	ts_destroy_qp(&xrc->pair->b);
	ts_srq_recv(xrc->shared[0], .wr_id = 50, .length = 100);
	send_into(xrc, 0, 50, 100);
	VT_OK(t, vb_destroy_qp(opened));
	VT_CHECK(t, !try_open_qp(xrc->xrcd, number, IBV_QPT_XRC_RECV));
}

static void opened_target_can_be_modified(struct vt *t)
{
	struct ts_xrc *xrc = ts_xrc(t);
	uint32_t number = xrc->pair->b.qp->qp_num;
	struct ibv_qp *opened = VT_PTR(t, try_open_qp(xrc->xrcd, number, IBV_QPT_XRC_RECV));
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	ts_keep(t, TS_QP, opened);
	VT_OK(t, vb_modify_qp(opened, &attr, IBV_QP_STATE));
	ts_state(&xrc->pair->b, IBV_QPS_ERR);
}

static void open_qp_refuses_bad_attributes(struct vt *t)
{
	struct ts_xrc *xrc = ts_xrc(t);
	struct ibv_xrcd *other = ts_xrcd(t, t->b.ctx, -1, O_CREAT);
	uint32_t number = xrc->pair->b.qp->qp_num;

	VT_EXPECT(t, !try_open_qp(xrc->xrcd, 0xfffff0, IBV_QPT_XRC_RECV));
	VT_EXPECT(t, !try_open_qp(other, number, IBV_QPT_XRC_RECV));
	VT_EXPECT(t, !try_open_qp(xrc->xrcd, number, IBV_QPT_RC));
}

#define CORE SRC_CORE "verbs.c, qp_state_table"

#define FAULTY (VT_NEEDS_FAULTS | VT_NEEDS_VIRTUAL_CLOCK)

static const struct vt_test tests[] = {
	{"domain_without_a_file", "ibv_open_xrcd(3): fd -1", 0, domain_without_a_file},
	{"domain_is_shared_by_its_file", "ibv_open_xrcd(3): O_CREAT, O_EXCL", 0,
	 domain_is_shared_by_its_file},
	{"domain_in_use_is_ebusy",
	 "ibv_open_xrcd(3), Notes; EBUSY: " SRC_CORE "uverbs_std_types.c, uverbs_free_xrcd", 0,
	 domain_in_use_is_ebusy},
	{"bad_domain_attributes",
	 "ibv_open_xrcd(3); the errnos: " SRC_CORE "uverbs_cmd.c, ib_uverbs_open_xrcd", 0,
	 bad_domain_attributes},
	{"srqs_have_numbers", "ibv_get_srq_num(3)", VT_NEEDS_SRQ, srqs_have_numbers},
	{"cq_of_an_srq_is_ebusy",
	 "ibv_create_srq_ex(3): cq; EBUSY: " SRC_CORE
	 "verbs.c, ib_create_srq and ib_destroy_cq: usecnt",
	 0, cq_of_an_srq_is_ebusy},
	{"srq_needs_its_domain_and_cq", "ibv_create_srq_ex(3); EINVAL: unsourced", 0,
	 srq_needs_its_domain_and_cq},
	{"target_needs_a_domain", "ibv_create_qp_ex(3): xrcd; EINVAL: unsourced", 0,
	 target_needs_a_domain},
	{"steps_of_the_initiator", CORE, 0, steps_of_the_initiator},
	{"steps_of_the_target", CORE, 0, steps_of_the_target},
	{"no_receives_on_their_qps", "unsourced", 0, no_receives_on_their_qps},
	{"target_sends_nothing", "ibv_post_send(3), table of opcodes; EINVAL: unsourced", 0,
	 target_sends_nothing},
	{"sends_of_each_size", "ibv_post_send(3): IBV_QPT_XRC_SEND", 0, sends_of_each_size},
	{"two_srqs_through_one_target", "ibv_post_send(3): remote_srqn", 0,
	 two_srqs_through_one_target},
	{"one_in_ten_lost", "unsourced", FAULTY, one_in_ten_lost},
	{"one_in_ten_twice", "unsourced", FAULTY, one_in_ten_twice},
	{"one_in_ten_late", "unsourced", FAULTY, one_in_ten_late},
	{"atomics_under_loss", "Linux drivers/infiniband/sw/rxe/rxe_resp.c, duplicate_request",
	 FAULTY | VT_NEEDS_ATOMICS, atomics_under_loss},
	{"completion_names_the_target", "unsourced", 0, completion_names_the_target},
	{"writes_and_reads", "ibv_post_send(3), table of opcodes; the PD: unsourced", 0,
	 writes_and_reads},
	{"write_with_imm_takes_from_its_srq", "ibv_post_send(3), table of opcodes", 0,
	 write_with_imm_takes_from_its_srq},
	{"atomics", "ibv_post_send(3), table of opcodes", VT_NEEDS_ATOMICS, atomics},
	{"rkey_of_another_pd_is_refused", "unsourced", 0, rkey_of_another_pd_is_refused},
	{"wrong_srq_number_is_an_error", "unsourced", 0, wrong_srq_number_is_an_error},
	{"srq_of_another_domain_is_an_error", "unsourced", 0, srq_of_another_domain_is_an_error},
	{"empty_srq_is_rnr_until_one_is_posted", "unsourced", 0,
	 empty_srq_is_rnr_until_one_is_posted},
	{"target_in_err_leaves_the_srqs_work", "unsourced", 0, target_in_err_leaves_the_srqs_work},
	{"target_outlives_its_srq", "unsourced", 0, target_outlives_its_srq},
	{"completions_outlive_the_target",
	 SRC_RDMA_CORE "providers/mlx5/verbs.c, mlx5_modify_qp: an XRC target has no CQ to clean",
	 0, completions_outlive_the_target},
	{"limit_event_of_an_xrc_srq", "ibv_modify_srq(3), Notes", 0, limit_event_of_an_xrc_srq},
	{"opened_target_outlives_the_first_handle",
	 "ibv_open_qp(3): destroys the QP if it has no other references", 0,
	 opened_target_outlives_the_first_handle},
	{"opened_target_can_be_modified", "ibv_open_qp(3)", 0, opened_target_can_be_modified},
	{"open_qp_refuses_bad_attributes", "ibv_open_qp(3), Notes", 0,
	 open_qp_refuses_bad_attributes},
	{NULL},
};

const struct vt_suite vt_suite_xrc = {"xrc", "extended reliable connections", tests};
