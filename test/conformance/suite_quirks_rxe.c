/* SPDX-License-Identifier: MIT */
/*
 * Where SoftRoCE leaves the specification, as this suite found it to: each quirk, and what is so
 * where it holds. "measured" is a run of scripts/softroce-suite.
 */
#include "test/support/quirks.h"
#include "test/support/srq.h"
#include "test/support/window.h"

#include <verbena/sim.h>

#define RXE_6_1	  "measured on Linux 6.1 rxe"
#define RXE_6_12  "measured on Linux 6.12 rxe"
#define RXE_BOTH  RXE_6_1 " and " RXE_6_12
#define MULTICAST 0xffffff

static struct ibv_qp_attr query(struct ts_end *end)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	VT_OK(end->t, vb_query_qp(end->qp, &attr, IBV_QP_STATE | IBV_QP_CAP, &init));
	return attr;
}

/* --- sizes --- */

static struct ts_pair *pair_of_four(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);

	options.send_wr = options.recv_wr = 4;
	return ts_pair(t, &options);
}

static int write_one(struct ts_end *end)
{
	return ts_post(end, &(struct ts_wr){.opcode = IBV_WR_RDMA_WRITE, .length = 8});
}

static void hold_seven(struct ts_pair *pair)
{
	struct vt *t = pair->a.t;
	int i;

	VT_EQ(t, query(&pair->a).cap.max_send_wr, 7);
	VT_EQ(t, query(&pair->a).cap.max_recv_wr, 7);
	for (i = 0; i < 7; i++) {
		VT_OK(t, write_one(&pair->a));
		ts_recv(&pair->a, .length = 8);
	}
	VT_ERRNO(t, write_one(&pair->a), ENOMEM);
	VT_ERRNO(t, ts_post_rr(&pair->a, &(struct ts_rr){.length = 8}), ENOMEM);
}

static void queue_sizes_round_up(struct vt *t)
{
	struct ibv_srq_attr attr = {.max_wr = 8};
	struct ts_shared *shared;
	struct ts_pair *pair;

	ts_only(t, "queue_sizes_round_up", NULL);
	pair = pair_of_four(t);
	VT_EQ(t, pair->a.cap.max_send_wr, 7);
	VT_EQ(t, pair->a.cap.max_recv_wr, 7);
	hold_seven(pair);
	shared = ts_shared_of(t, 7, 1);
	VT_EQ(t, shared->attr.max_wr, 7);
	if (!(t->a.device_attr.device_cap_flags & IBV_DEVICE_SRQ_RESIZE))
		return;
	VT_OK(t, vb_modify_srq(shared->srq, &attr, IBV_SRQ_MAX_WR));
	VT_EQ(t, ts_query_srq(t, shared->srq).max_wr, 15);
}

static void asked_sizes_told(struct vt *t)
{
	struct ts_shared *shared;
	struct ts_pair *pair;

	ts_only(t, "asked_sizes_told", "queue_sizes_round_up");
	pair = pair_of_four(t);
	VT_EQ(t, pair->a.cap.max_send_wr, 4);
	VT_EQ(t, pair->a.cap.max_recv_wr, 4);
	hold_seven(pair);
	shared = ts_shared_of(t, 4, 1);
	VT_EQ(t, shared->attr.max_wr, 4);
	VT_EQ(t, ts_query_srq(t, shared->srq).max_wr, 7);
}

/* --- posting --- */

static void refused_posts_name_no_wr(struct vt *t)
{
	const struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ibv_send_wr send = {.opcode = IBV_WR_SEND}, *bad_send = NULL;
	struct ibv_recv_wr recv = {0}, *bad_recv = NULL;
	struct ibv_qp_init_attr_ex init = {0};
	struct ts_pair *pair;

	ts_only(t, "refused_posts_name_no_wr", NULL);
	pair = ts_pair_reset(t, &options);
	VT_ERRNO(t, ibv_post_send(pair->a.qp, &send, &bad_send), EINVAL);
	VT_ERRNO(t, ibv_post_recv(pair->a.qp, &recv, &bad_recv), EINVAL);
	VT_CHECK(t, !bad_send && !bad_recv);
	ts_connect_both(pair);
	send.num_sge = 1000;
	VT_ERRNO(t, ibv_post_send(pair->a.qp, &send, &bad_send), EINVAL);
	VT_CHECK(t, bad_send == &send);
	init.srq = ts_shared(t)->srq;
	ts_remake_qp(&pair->b, &init);
	ts_to_init(&pair->b);
	VT_ERRNO(t, ibv_post_recv(pair->b.qp, &recv, &bad_recv), EINVAL);
	VT_CHECK(t, !bad_recv);
}

/* The sum of the lengths is 2^32 + 8. */
static void message_lengths_unchecked(struct vt *t)
{
	struct ts_pair *pair;
	struct ibv_sge sges[2];

	ts_only(t, "message_lengths_unchecked", NULL);
	pair = ts_connected(t, IBV_QPT_RC);
	sges[0] = (struct ibv_sge){(uintptr_t)pair->a.buffer, 8, pair->a.mr->lkey};
	sges[1] = (struct ibv_sge){(uintptr_t)pair->a.buffer, UINT32_MAX - 7, pair->a.mr->lkey};
	ts_write(&pair->a, .wr_id = 1, .sge = sges, .num_sge = 2);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_RDMA_WRITE);
	ts_blank(t, pair->b.buffer, 8);
	sges[1].length = UINT32_MAX - 3;
	ts_write(&pair->a, .wr_id = 2, .sge = sges, .num_sge = 2);
	ts_done(t, pair->a.send_cq, 2, IBV_WC_RDMA_WRITE);
	ts_verify(t, pair->b.buffer, 4, 1);
	ts_blank(t, pair->b.buffer + 4, 8);
}

/* --- states --- */

static void drained_event_unasked(struct vt *t)
{
	struct ts_pair *pair;

	ts_only(t, "drained_event_unasked", NULL);
	pair = ts_connected(t, IBV_QPT_RC);
	VT_OK(t, ts_to(&pair->a, IBV_QPS_SQD));
	ts_event(t, &t->a, IBV_EVENT_SQ_DRAINED, pair->a.qp);
	ts_no_event(t, &t->a);
}

static void draining_sends_nothing(struct vt *t)
{
	struct ts_pair *pair;

	ts_only(t, "draining_sends_nothing", NULL);
	pair = ts_connected(t, IBV_QPT_RC);
	ts_send(&pair->a, .wr_id = 1, .length = 10);
	ts_pause(t, 100000);
	VT_OK(t, ts_to(&pair->a, IBV_QPS_SQD));
	ts_recv(&pair->b, .wr_id = 5, .length = 10);
	ts_no_more(t, pair->a.send_cq);
	VT_OK(t, ts_to(&pair->a, IBV_QPS_RTS));
	ts_done(t, pair->a.send_cq, 1, IBV_WC_SEND);
	ts_received(t, pair->b.recv_cq, 5, 10);
}

static void rts_starts_nothing(struct vt *t)
{
	struct ts_pair *pair;

	ts_only(t, "rts_starts_nothing", NULL);
	pair = ts_connected(t, IBV_QPT_RC);
	VT_OK(t, ts_to(&pair->a, IBV_QPS_SQD));
	ts_write(&pair->a, .wr_id = 1, .length = 8);
	ts_no_more(t, pair->a.send_cq);
	VT_OK(t, ts_to(&pair->a, IBV_QPS_RTS));
	ts_no_more(t, pair->a.send_cq);
	ts_write(&pair->a, .wr_id = 2, .length = 8);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_RDMA_WRITE);
	ts_done(t, pair->a.send_cq, 2, IBV_WC_RDMA_WRITE);
}

static void stateless_modify_unchecked(struct vt *t)
{
	const struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ibv_qp_attr attr = {.min_rnr_timer = 9};
	struct ts_pair *pair;

	ts_only(t, "stateless_modify_unchecked", NULL);
	pair = ts_pair_reset(t, &options);
	ts_to_init(&pair->a);
	ts_to_rtr(&pair->a);
	VT_OK(t, vb_modify_qp(pair->a.qp, &attr, IBV_QP_MIN_RNR_TIMER));
	VT_EQ(t, query(&pair->a).min_rnr_timer, 9);
	ts_state(&pair->a, IBV_QPS_RTR);
	attr.qp_state = IBV_QPS_RTR;
	VT_ERRNO(t, vb_modify_qp(pair->a.qp, &attr, IBV_QP_STATE | IBV_QP_MIN_RNR_TIMER), EINVAL);
}

static void wide_qpns_told(struct vt *t)
{
	const struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ibv_qp_attr attr;
	struct ts_pair *pair;
	int mask;

	ts_only(t, "wide_qpns_told", NULL);
	pair = ts_pair_reset(t, &options);
	ts_to_init(&pair->a);
	mask = ts_rtr_attr(&pair->a, &attr);
	attr.dest_qp_num |= 0x5000000;
	VT_OK(t, vb_modify_qp(pair->a.qp, &attr, mask));
	VT_EQ(t, query(&pair->a).dest_qp_num, pair->b.qp->qp_num | 0x5000000);
	ts_to_rts(&pair->a);
	ts_connect(&pair->b);
	ts_transfer(pair, IBV_WR_SEND, 100);
}

static void reads_round_up(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;

	ts_only(t, "reads_round_up", NULL);
	options.max_rd_atomic = 3;
	options.max_dest_rd_atomic = 5;
	pair = ts_pair(t, &options);
	VT_EQ(t, query(&pair->a).max_rd_atomic, 4);
	VT_EQ(t, query(&pair->a).max_dest_rd_atomic, 8);
	ts_transfer(pair, IBV_WR_RDMA_READ, 100);
}

/* --- datagrams --- */

static void high_qkey_is_sent(struct vt *t)
{
	struct ts_pair *pair;

	ts_only(t, "high_qkey_is_sent", NULL);
	pair = ts_connected(t, IBV_QPT_UD);
	ts_recv(&pair->b, .wr_id = 5, .length = 1000);
	ts_send(&pair->a, .wr_id = 1, .length = 100, .remote_qkey = TS_QKEY | 0x80000000);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_SEND);
	ts_no_more(t, pair->b.recv_cq);
}

static void own_datagrams_lack_checksum(struct vt *t)
{
	const struct ts_options options = ts_defaults(t, IBV_QPT_UD);
	struct ts_pair *pair;
	struct ts_end *self;

	ts_only(t, "own_datagrams_lack_checksum", NULL);
	self = ts_end(t, &t->a, &options);
	ts_connect(self);
	ts_recv(self, .wr_id = 5, .offset = 1000, .length = 1000);
	ts_send(self, .wr_id = 1, .length = 100);
	ts_received(t, self->recv_cq, 5, 100 + TS_GRH);
	VT_EQ(t, self->buffer[1030] | self->buffer[1031], 0);
	if (!(t->have & VT_NEEDS_TWO_DEVICES))
		return;
	pair = ts_connected(t, IBV_QPT_UD);
	ts_recv(&pair->b, .wr_id = 5, .length = 1000);
	ts_send(&pair->a, .wr_id = 1, .length = 100);
	ts_received(t, pair->b.recv_cq, 5, 100 + TS_GRH);
	VT_CHECK(t, (pair->b.buffer[30] | pair->b.buffer[31]) != 0);
}

static void leave_group(void *arg)
{
	struct ts_end *end = arg;
	const union ibv_gid group = {.raw = {[10] = 0xff, 0xff, 239, 1, 1, 1}};

	vb_detach_mcast(end->qp, &group, 0);
}

static void multicast_leaves_device(struct vt *t)
{
	const union ibv_gid group = {.raw = {[10] = 0xff, 0xff, 239, 1, 1, 1}};
	struct ts_options options = ts_defaults(t, IBV_QPT_UD);
	struct ibv_ah_attr attr = ts_av(&t->a, &t->a);
	struct ts_end *ends[2];
	int i;

	ts_only(t, "multicast_leaves_device", NULL);
	for (i = 0; i < 2; i++) {
		ends[i] = ts_end(t, i ? &t->b : &t->a, &options);
		ts_connect(ends[i]);
		VT_OK(t, vb_attach_mcast(ends[i]->qp, &group, 0));
		vt_defer(t, leave_group, ends[i]);
		ts_recv(ends[i], .wr_id = 5, .offset = 1000, .length = 1000);
	}
	attr.grh.dgid = group;
	VT_OK(t, vb_destroy_ah(ends[0]->ah));
	ts_gone(t, ends[0]->ah);
	ends[0]->ah = VT_PTR(t, vb_create_ah(ends[0]->pd, &attr));
	ts_send(ends[0], .wr_id = 1, .length = 100, .remote_qpn = MULTICAST);
	ts_done(t, ends[0]->send_cq, 1, IBV_WC_SEND);
	VT_OK(t, vb_destroy_ah(ends[0]->ah));
	ts_no_more(t, ends[0]->recv_cq);
	if (t->have & VT_NEEDS_TWO_DEVICES)
		ts_received(t, ends[1]->recv_cq, 5, 100 + TS_GRH);
}

/* --- shared receive queues --- */

static void unknown_srq_bits_taken(struct vt *t)
{
	struct ibv_srq_attr attr = {.srq_limit = 2};
	struct ts_shared *shared;

	ts_only(t, "unknown_srq_bits_taken", NULL);
	shared = ts_shared(t);
	VT_OK(t, vb_modify_srq(shared->srq, &attr, IBV_SRQ_LIMIT | 1 << 5));
	VT_EQ(t, ts_query_srq(t, shared->srq).srq_limit, 2);
}

static void srqs_on_uc(struct vt *t)
{
	struct ts_shared *shared;
	struct ts_pair *pair;

	ts_only(t, "srqs_on_uc", NULL);
	shared = ts_shared(t);
	pair = ts_pair_on(shared, IBV_QPT_UC);
	ts_srq_recv(shared, .wr_id = 50, .length = 100);
	ts_send_over(pair, 50, 100);
	ts_verify(t, shared->buffer, 100, 1);
	ts_srq_recv(shared, .wr_id = 51, .length = 100);
	ts_write_imm(&pair->a, .wr_id = 2, .length = 8, .rkey = pair->b.mr->rkey ^ 0xff00);
	ts_done(t, pair->a.send_cq, 2, IBV_WC_RDMA_WRITE);
	ts_failed(t, pair->b.recv_cq, 51, IBV_WC_REM_ACCESS_ERR);
	ts_srq_recv(shared, .wr_id = 52, .length = 100);
	ts_send_over(pair, 52, 100);
}

static void srq_memory_is_of_the_qp(struct vt *t)
{
	const struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ibv_qp_init_attr_ex init = {0};
	struct ts_shared *shared;
	struct ts_pair *pair;

	ts_only(t, "srq_memory_is_of_the_qp", NULL);
	shared = ts_shared(t);
	pair = ts_pair_reset(t, &options);
	init.srq = shared->srq;
	ts_remake_qp(&pair->b, &init);
	ts_connect_both(pair);
	ts_srq_recv(shared, .wr_id = 50, .address = (uintptr_t)pair->b.buffer,
		    .lkey = pair->b.mr->lkey, .length = 100);
	ts_send_over(pair, 50, 100);
	ts_srq_recv(shared, .wr_id = 51, .length = 100);
	ts_send(&pair->a, .wr_id = 2, .length = 100);
	ts_failed(t, pair->a.send_cq, 2, IBV_WC_REM_OP_ERR);
	ts_failed(t, pair->b.recv_cq, 51, IBV_WC_LOC_PROT_ERR);
}

/* --- memory windows --- */

static void invalidation_told_as_checksum(struct vt *t)
{
	struct ibv_send_wr wr, *bad;
	struct ts_pair *pair;
	struct ibv_sge sge;
	struct ibv_mw *mw;
	struct ibv_wc wc;

	ts_only(t, "invalidation_told_as_checksum", NULL);
	pair = ts_window_pair(t);
	mw = ts_mw(&pair->b, IBV_MW_TYPE_2);
	ts_bound(&pair->b, mw, .wr_id = 9);
	ts_recv(&pair->b, .wr_id = 5, .offset = 8192, .length = 8);
	ts_fill_wr(&pair->a, &(struct ts_wr){.wr_id = 1, .length = 8}, &sge, &wr);
	wr.opcode = IBV_WR_SEND_WITH_INV;
	wr.invalidate_rkey = mw->rkey;
	VT_OK(t, ibv_post_send(pair->a.qp, &wr, &bad));
	wc = ts_received(t, pair->b.recv_cq, 5, 8);
	VT_EQ(t, wc.wc_flags & (IBV_WC_IP_CSUM_OK | IBV_WC_WITH_INV), IBV_WC_IP_CSUM_OK);
	VT_EQ(t, wc.invalidated_rkey, mw->rkey);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_SEND);
	ts_refused(pair, mw->rkey, 0);
}

static void window_rkeys_masked(struct vt *t)
{
	struct ts_pair *pair;
	struct ibv_mw *mw;
	uint32_t rkey;

	ts_only(t, "window_rkeys_masked", NULL);
	pair = ts_window_pair(t);
	mw = ts_mw(&pair->b, IBV_MW_TYPE_2);
	rkey = mw->rkey ^ 0x1;
	ts_bound(&pair->b, mw, .wr_id = 9, .rkey = rkey ^ 0x12300);
	ts_reaches(pair, rkey, 0);
	ts_refused(pair, rkey ^ 0x12300, 0);
}

static void window_ranges_wrap(struct vt *t)
{
	struct ts_pair *pair;
	struct ibv_mw *mw;

	ts_only(t, "window_ranges_wrap", NULL);
	pair = ts_window_pair(t);
	mw = ts_mw(&pair->b, IBV_MW_TYPE_1);
	ts_bound(&pair->b, mw, .wr_id = 9, .offset = 8, .length = UINT64_MAX);
	ts_bind_fails(&pair->b, ts_mw(&pair->b, IBV_MW_TYPE_1), .wr_id = 10,
		      .length = 64 * 1024 + 1);
}

static void window_regions_of_any_pd(struct vt *t)
{
	struct ts_pair *pair, *other;
	struct ibv_mw *mw;

	ts_only(t, "window_regions_of_any_pd", NULL);
	pair = ts_window_pair(t);
	other = ts_window_pair(t);
	mw = ts_mw(&pair->b, IBV_MW_TYPE_2);
	ts_bound(&pair->b, mw, .wr_id = 9, .mr = other->b.mr,
		 .address = (uintptr_t)other->b.buffer);
}

static void bound_regions_are_einval(struct vt *t)
{
	struct ts_pair *pair;
	struct ibv_mw *mw;

	ts_only(t, "bound_regions_are_einval", NULL);
	pair = ts_window_pair(t);
	mw = ts_mw(&pair->b, IBV_MW_TYPE_2);
	ts_bound(&pair->b, mw, .wr_id = 9);
	VT_ERRNO(t, vb_dereg_mr(pair->b.mr), EINVAL);
	ts_reaches(pair, mw->rkey, 0);
}

static void unknown_cq_flags_taken(struct vt *t)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 1, .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS, .flags = 1 << 20};
	struct ibv_cq_ex *cq;

	ts_only(t, "unknown_cq_flags_taken", NULL);
	cq = VT_PTR(t, vb_create_cq_ex(t->a.ctx, &attr));
	VT_OK(t, vb_destroy_cq(ibv_cq_ex_to_cq(cq)));
}

/* --- as a probe of libibverbs found it --- */

static struct ibv_qp_cap cap_of(struct vt *t, uint32_t sges, uint32_t inline_bytes)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);

	options.send_sge = sges;
	options.inline_bytes = inline_bytes;
	return ts_pair(t, &options)->a.cap;
}

static void inline_shares_room(struct vt *t)
{
	struct ibv_qp_cap cap;

	ts_only(t, "inline_shares_room", NULL);
	cap = cap_of(t, 4, 200);
	VT_EQ(t, cap.max_send_sge, 12);
	VT_EQ(t, cap.max_inline_data, 200);
	cap = cap_of(t, 3, 1);
	VT_EQ(t, cap.max_send_sge, 3);
	VT_EQ(t, cap.max_inline_data, 48);
}

static void completions_round_up(struct vt *t)
{
	struct ibv_cq *cq;

	ts_only(t, "queue_sizes_round_up", NULL);
	cq = VT_PTR(t, vb_create_cq(t->a.ctx, 4, NULL, NULL, 0));
	VT_EQ(t, cq->cqe, 7);
	VT_OK(t, vb_resize_cq(cq, 100));
	VT_EQ(t, cq->cqe, 127);
	VT_OK(t, vb_resize_cq(cq, 1));
	VT_EQ(t, cq->cqe, 1);
	VT_OK(t, vb_destroy_cq(cq));
}

static struct ibv_mr *region(struct ts_end *end, int access)
{
	return vb_reg_mr(end->pd, end->buffer, 4096, access);
}

static void local_regions_have_no_rkey(struct vt *t)
{
	struct ts_pair *pair;
	struct ibv_mr *mr;

	ts_only(t, "local_regions_have_no_rkey", NULL);
	pair = ts_connected(t, IBV_QPT_RC);
	mr = VT_PTR(t, region(&pair->a, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND));
	VT_EQ(t, mr->rkey, 0);
	VT_CHECK(t, mr->lkey);
	VT_OK(t, vb_dereg_mr(mr));
	mr = VT_PTR(t, region(&pair->a, IBV_ACCESS_REMOTE_READ));
	VT_CHECK(t, mr->rkey);
	VT_OK(t, vb_dereg_mr(mr));
	ts_transfer(pair, IBV_WR_RDMA_WRITE, 100);
}

static void special_regions_refused(struct vt *t)
{
	static const int special[] = {IBV_ACCESS_ZERO_BASED, IBV_ACCESS_ON_DEMAND,
				      IBV_ACCESS_HUGETLB};
	struct ts_pair *pair;
	size_t i;

	ts_only(t, "special_regions_refused", NULL);
	pair = ts_connected(t, IBV_QPT_RC);
	for (i = 0; i < sizeof(special) / sizeof(special[0]); i++) {
		vt_row(t, "access 0x%x", special[i]);
		errno = 0;
		VT_CHECK(t, !region(&pair->a, IBV_ACCESS_LOCAL_WRITE | special[i]));
		VT_EQ(t, errno, EOPNOTSUPP);
	}
}

static void sends_tell_immediate(struct vt *t)
{
	struct ts_pair *pair;
	struct ibv_wc wc;

	ts_only(t, "sends_tell_immediate", NULL);
	pair = ts_connected(t, IBV_QPT_RC);
	ts_recv(&pair->b, .wr_id = 5, .length = 8);
	ts_send_imm(&pair->a, .wr_id = 1, .length = 8, .imm = 77);
	wc = ts_done(t, pair->a.send_cq, 1, IBV_WC_SEND);
	VT_EQ(t, wc.wc_flags, IBV_WC_WITH_IMM);
	VT_EQ(t, wc.imm_data, 0);
	ts_received(t, pair->b.recv_cq, 5, 8);
	ts_write(&pair->a, .wr_id = 2, .length = 8);
	wc = ts_done(t, pair->a.send_cq, 2, IBV_WC_RDMA_WRITE);
	VT_EQ(t, wc.wc_flags, 0);
}

static int post_add(struct ts_end *end, size_t remote_offset, uint32_t length)
{
	return ts_post(end, &(struct ts_wr){.wr_id = 1,
					    .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
					    .length = length,
					    .remote_offset = remote_offset});
}

static void atomics_checked_when_posted(struct vt *t)
{
	struct ts_pair *pair;

	ts_only(t, "atomics_checked_when_posted", NULL);
	pair = ts_connected(t, IBV_QPT_RC);
	VT_ERRNO(t, post_add(&pair->a, 4, 8), EINVAL);
	VT_ERRNO(t, post_add(&pair->a, 0, 4), EINVAL);
	VT_OK(t, post_add(&pair->a, 8, 8));
	ts_done(t, pair->a.send_cq, 1, IBV_WC_FETCH_ADD);
	ts_state(&pair->a, IBV_QPS_RTS);
}

static void reads_without_room_wait(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;

	ts_only(t, "reads_without_room_wait", NULL);
	options.max_rd_atomic = 0;
	pair = ts_pair(t, &options);
	ts_read(&pair->a, .wr_id = 1, .length = 8);
	ts_no_more(t, pair->a.send_cq);
	ts_state(&pair->a, IBV_QPS_RTS);
	VT_OK(t, ts_to(&pair->a, IBV_QPS_ERR));
	ts_flushed(t, pair->a.send_cq, 1);
}

static void invalidate(struct ts_end *end, enum ibv_wr_opcode opcode)
{
	struct ibv_send_wr wr, *bad;
	struct ibv_sge sge;

	ts_fill_wr(end, &(struct ts_wr){.wr_id = 1, .length = 8}, &sge, &wr);
	wr.opcode = opcode;
	wr.invalidate_rkey = end->peer->mr->rkey ^ 0xffff00;
	VT_OK(end->t, ibv_post_send(end->qp, &wr, &bad));
}

static void bad_invalidation_is_operation_error(struct vt *t)
{
	struct ts_pair *pair;

	ts_only(t, "bad_invalidation_is_operation_error", NULL);
	pair = ts_connected(t, IBV_QPT_RC);
	invalidate(&pair->a, IBV_WR_LOCAL_INV);
	ts_failed(t, pair->a.send_cq, 1, IBV_WC_LOC_QP_OP_ERR);
	ts_state(&pair->a, IBV_QPS_ERR);
}

static void refused_invalidations_acknowledged(struct vt *t)
{
	struct ts_pair *pair;

	ts_only(t, "refused_invalidations_acknowledged", NULL);
	pair = ts_connected(t, IBV_QPT_RC);
	ts_recv(&pair->b, .wr_id = 5, .length = 8);
	invalidate(&pair->a, IBV_WR_SEND_WITH_INV);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_SEND);
	ts_failed(t, pair->b.recv_cq, 5, IBV_WC_REM_INV_REQ_ERR);
	ts_state(&pair->a, IBV_QPS_RTS);
	ts_state(&pair->b, IBV_QPS_ERR);
}

static const struct vt_test tests[] = {
	{"queue_sizes_round_up", RXE_BOTH, VT_NEEDS_SIM | VT_NEEDS_SRQ, queue_sizes_round_up},
	{"asked_sizes_told", RXE_6_1, VT_NEEDS_SIM | VT_NEEDS_SRQ, asked_sizes_told},
	{"refused_posts_name_no_wr", RXE_BOTH, VT_NEEDS_SIM | VT_NEEDS_SRQ,
	 refused_posts_name_no_wr},
	{"message_lengths_unchecked", RXE_BOTH, VT_NEEDS_SIM, message_lengths_unchecked},
	{"drained_event_unasked", RXE_BOTH, VT_NEEDS_SIM, drained_event_unasked},
	{"draining_sends_nothing", RXE_BOTH, VT_NEEDS_SIM, draining_sends_nothing},
	{"rts_starts_nothing", RXE_BOTH, VT_NEEDS_SIM, rts_starts_nothing},
	{"stateless_modify_unchecked", RXE_6_12, VT_NEEDS_SIM, stateless_modify_unchecked},
	{"wide_qpns_told", RXE_BOTH, VT_NEEDS_SIM, wide_qpns_told},
	{"reads_round_up", RXE_BOTH, VT_NEEDS_SIM, reads_round_up},
	{"high_qkey_is_sent", RXE_BOTH, VT_NEEDS_SIM, high_qkey_is_sent},
	{"own_datagrams_lack_checksum", RXE_BOTH, VT_NEEDS_SIM | VT_NEEDS_ETHERNET,
	 own_datagrams_lack_checksum},
	{"multicast_leaves_device", RXE_BOTH, VT_NEEDS_SIM | VT_NEEDS_ETHERNET,
	 multicast_leaves_device},
	{"unknown_srq_bits_taken", RXE_BOTH, VT_NEEDS_SIM | VT_NEEDS_SRQ, unknown_srq_bits_taken},
	{"srqs_on_uc", RXE_BOTH " that there is one; its use: unsourced",
	 VT_NEEDS_SIM | VT_NEEDS_SRQ, srqs_on_uc},
	{"srq_memory_is_of_the_qp", RXE_BOTH, VT_NEEDS_SIM | VT_NEEDS_SRQ, srq_memory_is_of_the_qp},
	{"invalidation_told_as_checksum",
	 RXE_BOTH "; which flag: Linux include/rdma/ib_verbs.h, enum ib_wc_flags", VT_NEEDS_SIM,
	 invalidation_told_as_checksum},
	{"window_rkeys_masked", RXE_BOTH, VT_NEEDS_SIM, window_rkeys_masked},
	{"window_ranges_wrap", RXE_6_1, VT_NEEDS_SIM, window_ranges_wrap},
	{"window_regions_of_any_pd", RXE_6_1, VT_NEEDS_SIM, window_regions_of_any_pd},
	{"bound_regions_are_einval", RXE_BOTH, VT_NEEDS_SIM, bound_regions_are_einval},
	{"unknown_cq_flags_taken", RXE_BOTH, VT_NEEDS_SIM, unknown_cq_flags_taken},
	{"inline_shares_room", RXE_BOTH, VT_NEEDS_SIM, inline_shares_room},
	{"completions_round_up", RXE_BOTH, VT_NEEDS_SIM, completions_round_up},
	{"local_regions_have_no_rkey", RXE_6_1, VT_NEEDS_SIM, local_regions_have_no_rkey},
	{"special_regions_refused", RXE_6_12, VT_NEEDS_SIM, special_regions_refused},
	{"sends_tell_immediate", RXE_BOTH, VT_NEEDS_SIM, sends_tell_immediate},
	{"atomics_checked_when_posted", RXE_BOTH, VT_NEEDS_SIM | VT_NEEDS_ATOMICS,
	 atomics_checked_when_posted},
	{"reads_without_room_wait", RXE_BOTH, VT_NEEDS_SIM, reads_without_room_wait},
	{"bad_invalidation_is_operation_error", RXE_6_1, VT_NEEDS_SIM,
	 bad_invalidation_is_operation_error},
	{"refused_invalidations_acknowledged", RXE_BOTH, VT_NEEDS_SIM,
	 refused_invalidations_acknowledged},
	{NULL},
};

const struct vt_suite vt_suite_quirks_rxe = {
	"quirks_rxe", "where SoftRoCE leaves the specification", tests, .simulator = true};
