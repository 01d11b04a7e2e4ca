/* SPDX-License-Identifier: MIT */
/*
 * Programs that misuse the verbs: they get an errno or an error completion, never a crash.
 */
#include "test/conformance/sources.h"
#include "test/support/keep.h"
#include "test/support/srq.h"
#include "test/support/window.h"

/* --- chains --- */

static struct ts_pair *small_queues(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);

	options.send_wr = 8;
	options.recv_wr = 8;
	return ts_pair(t, &options);
}

/* Each atomic adds one, so the sum counts the WRs that were taken. */
static void looping_chain_of_sends(struct vt *t)
{
	struct ts_pair *pair = small_queues(t);
	struct ibv_send_wr wrs[2], *bad = NULL;
	struct ibv_sge sges[2];
	uint64_t sum = 0;
	uint32_t i;

	memcpy(pair->b.buffer, &sum, 8);
	for (i = 0; i < 2; i++) {
		const struct ts_wr wr = {.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
					 .length = 8,
					 .unsignalled = true,
					 .compare_add = 1};

		ts_fill_wr(&pair->a, &wr, &sges[i], &wrs[i]);
		wrs[i].next = &wrs[1 - i];
	}
	VT_ERRNO(t, ibv_post_send(pair->a.qp, wrs, &bad), ENOMEM);
	VT_CHECK(t, bad == &wrs[pair->a.cap.max_send_wr % 2]);
	ts_no_more(t, pair->a.send_cq);
	memcpy(&sum, pair->b.buffer, 8);
	VT_EQ(t, sum, pair->a.cap.max_send_wr);
}

static void looping_chain_of_receives(struct vt *t)
{
	struct ts_pair *pair = small_queues(t);
	struct ibv_recv_wr wr = {.wr_id = 5, .next = &wr}, *bad = NULL;
	uint32_t i;

	VT_ERRNO(t, ibv_post_recv(pair->b.qp, &wr, &bad), ENOMEM);
	VT_CHECK(t, bad == &wr);
	VT_ERRNO(t, ts_post_rr(&pair->b, &(struct ts_rr){.wr_id = 1}), ENOMEM);
	VT_OK(t, ts_to(&pair->b, IBV_QPS_RESET));
	ts_to_init(&pair->b);
	for (i = 0; i < pair->b.cap.max_recv_wr; i++)
		ts_recv(&pair->b, .wr_id = i, .length = 8);
}

static void looping_chain_to_an_srq(struct vt *t)
{
	struct ts_shared *shared = ts_shared(t);
	struct ibv_recv_wr wr = {.wr_id = 5, .next = &wr}, *bad = NULL;

	VT_ERRNO(t, ibv_post_srq_recv(shared->srq, &wr, &bad), ENOMEM);
	VT_CHECK(t, bad == &wr);
}

static void negative_number_of_sges(struct vt *t)
{
	static const int counts[] = {-1, -1000, INT32_MIN};
	struct ts_shared *shared = ts_shared(t);
	struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);
	size_t i;

	for (i = 0; i < 3; i++) {
		struct ibv_send_wr send = {.opcode = IBV_WR_SEND, .num_sge = counts[i]}, *bad_send;
		struct ibv_recv_wr recv = {.num_sge = counts[i]}, *bad_recv = NULL;

		vt_row(t, "%d", counts[i]);
		VT_EXPECT_ERRNO(t, ibv_post_send(pair->a.qp, &send, &bad_send), EINVAL);
		VT_EXPECT_ERRNO(t, ibv_post_recv(pair->b.qp, &recv, &bad_recv), EINVAL);
		VT_EXPECT(t, bad_recv == &recv);
		VT_EXPECT_ERRNO(t, ibv_post_srq_recv(shared->srq, &recv, &bad_recv), EINVAL);
	}
	vt_row(t, NULL);
	ts_transfer(pair, IBV_WR_SEND, 100);
}

/* The sum of the SGEs' lengths is beyond 32 bits. */
static void lengths_that_overflow(struct vt *t)
{
	static const struct {
		const char *name;
		uint32_t first, second;
	} rows[] = {
		{"sum is 2^32", 0xffffffff, 1},
		{"sum is 2^32 + 100", 0x80000000, 0x80000064},
		{"sum is nearly 2^33", 0xffffffff, 0xffffffff},
	};
	static const enum ibv_wr_opcode opcodes[] = {IBV_WR_SEND, IBV_WR_RDMA_WRITE,
						     IBV_WR_RDMA_READ};
	size_t i, op;

	for (i = 0; i < TS_COUNT(rows); i++)
		for (op = 0; op < 3; op++) {
			struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);
			struct ibv_sge sges[2] = {
				{(uintptr_t)pair->a.buffer, rows[i].first, pair->a.mr->lkey},
				{(uintptr_t)pair->a.buffer, rows[i].second, pair->a.mr->lkey}};
			struct ibv_wc wc = {0};
			int error;

			vt_row(t, "opcode %d, %s", opcodes[op], rows[i].name);
			ts_recv(&pair->b, .wr_id = 50, .length = 1000);
			error = ts_post(&pair->a, &(struct ts_wr){.wr_id = 1,
								  .opcode = opcodes[op],
								  .sge = sges,
								  .num_sge = 2});
			if (error)
				VT_EXPECT_EQ(t, error, EINVAL);
			else if (VT_EXPECT_EQ(t, ts_wait(t, pair->a.send_cq, 1, &wc), 1))
				VT_EXPECT(t, wc.status != IBV_WC_SUCCESS);
			ts_blank(t, pair->b.buffer, 1000);
		}
}

static void receive_whose_lengths_overflow(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);
	uint64_t at = (uintptr_t)pair->b.buffer;
	struct ibv_sge sges[2] = {{at, 100, pair->b.mr->lkey}, {at, 0xffffffff, pair->b.mr->lkey}};

	ts_recv(&pair->b, .wr_id = 50, .sge = sges, .num_sge = 2);
	ts_send(&pair->a, .wr_id = 1, .length = 100);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_SEND);
	ts_received(t, pair->b.recv_cq, 50, 100);
	ts_verify(t, pair->b.buffer, 100, 1);
}

static void addresses_that_overflow(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);

	ts_write(&pair->a, .wr_id = 1, .length = 100, .remote_address = UINT64_MAX - 50);
	ts_failed(t, pair->a.send_cq, 1, IBV_WC_REM_ACCESS_ERR);
	pair = ts_connected(t, IBV_QPT_RC);
	ts_write(&pair->a, .wr_id = 1, .length = 100, .address = UINT64_MAX - 50);
	ts_failed(t, pair->a.send_cq, 1, IBV_WC_LOC_PROT_ERR);
}

/* --- handles of others --- */

static void qp_with_objects_of_two_contexts(struct vt *t)
{
	struct ibv_cq *cq = ts_cq(t, &t->a, 4), *other = ts_cq(t, &t->b, 4);
	struct ibv_srq_init_attr srq_init = {.attr = {.max_wr = 1, .max_sge = 1}};
	struct ibv_pd *pd = ts_pd(t, &t->a), *pd_b = ts_pd(t, &t->b);
	struct ibv_srq *srq = VT_PTR(t, vb_create_srq(pd_b, &srq_init));
	const struct {
		const char *name;
		struct ibv_cq *send, *recv;
		struct ibv_srq *srq;
	} rows[] = {
		{"send CQ", other, cq, NULL},
		{"receive CQ", cq, other, NULL},
		{"SRQ", cq, cq, srq},
	};
	size_t i;

	ts_keep(t, TS_SRQ, srq);
	for (i = 0; i < 3; i++) {
		struct ibv_qp_init_attr init = {
			.send_cq = rows[i].send,
			.recv_cq = rows[i].recv,
			.srq = rows[i].srq,
			.cap = {.max_send_wr = 1, .max_send_sge = 1},
			.qp_type = IBV_QPT_RC,
		};

		vt_row(t, "%s", rows[i].name);
		VT_EXPECT_NULL_ERRNO(t, vb_create_qp(pd, &init), EINVAL);
	}
}

static void rereg_to_a_pd_of_another_context(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_end *end = ts_end(t, &t->a, &options);
	struct ibv_pd *other = ts_pd(t, &t->b);

	VT_CHECK(t, vb_rereg_mr(end->mr, IBV_REREG_MR_CHANGE_PD, other, NULL, 0, 0) != 0);
	VT_CHECK(t, end->mr->pd == end->pd);
	VT_OK(t, vb_dealloc_pd(other));
	ts_gone(t, other);
}

static void ah_of_another_pd_or_device(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_UD);
	struct ibv_ah *own = pair->a.ah;
	struct ibv_ah *others[] = {
		ts_ah(t, ts_pd(t, &t->a), &t->a, &t->b),
		ts_ah(t, ts_pd(t, &t->b), &t->b, &t->a),
		NULL,
	};
	size_t i;

	ts_recv(&pair->b, .wr_id = 50, .length = 1000);
	for (i = 0; i < 3; i++) {
		vt_row(t, "%zu", i);
		pair->a.ah = others[i];
		VT_EXPECT_ERRNO(
			t, ts_post(&pair->a, &(struct ts_wr){.opcode = IBV_WR_SEND, .length = 8}),
			EINVAL);
	}
	pair->a.ah = own;
	ts_send(&pair->a, .wr_id = 1, .length = 8);
	ts_received(t, pair->b.recv_cq, 50, 8 + TS_GRH);
}

static void window_of_another_context(struct vt *t)
{
	struct ts_pair *pair;
	struct ibv_mw *mw;

	ts_need_windows(t, IBV_MW_TYPE_2);
	pair = ts_window_pair(t);
	mw = ts_mw(&pair->a, IBV_MW_TYPE_2);
	VT_ERRNO(t, ts_bind(&pair->b, mw, &(struct ts_bind){.wr_id = 1}), EINVAL);
	mw = ts_mw(&pair->a, IBV_MW_TYPE_1);
	VT_ERRNO(t, ts_bind(&pair->b, mw, &(struct ts_bind){.wr_id = 1}), EINVAL);
	ts_state(&pair->b, IBV_QPS_RTS);
}

/* --- objects that are gone --- */

static void destroyed_qp_used_again(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	struct ibv_qp *qp = pair->a.qp;
	struct ibv_qp_init_attr init;

	ts_destroy_qp(&pair->a);
	VT_EXPECT_ERRNO(t, vb_modify_qp(qp, &attr, IBV_QP_STATE), ENOENT);
	VT_EXPECT_ERRNO(t, vb_query_qp(qp, &attr, IBV_QP_STATE, &init), ENOENT);
	VT_EXPECT_ERRNO(t, vb_destroy_qp(qp), ENOENT);
	pair->a.qp = qp;
	VT_EXPECT_ERRNO(t, ts_post(&pair->a, &(struct ts_wr){.opcode = IBV_WR_SEND}), EINVAL);
	VT_EXPECT_ERRNO(t, ts_post_rr(&pair->a, &(struct ts_rr){.wr_id = 1}), EINVAL);
}

static void destroyed_cq_used_again(struct vt *t)
{
	struct ibv_cq *cq = VT_PTR(t, vb_create_cq(t->a.ctx, 4, NULL, NULL, 0));
	struct ibv_pd *pd = ts_pd(t, &t->a);
	struct ibv_qp_init_attr init = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC};
	struct ibv_wc wc;

	VT_OK(t, vb_destroy_cq(cq));
	VT_EXPECT(t, ibv_poll_cq(cq, 1, &wc) < 0);
	VT_EXPECT_ERRNO(t, ibv_req_notify_cq(cq, 0), ENOENT);
	VT_EXPECT_ERRNO(t, vb_resize_cq(cq, 8), ENOENT);
	VT_EXPECT_ERRNO(t, vb_destroy_cq(cq), ENOENT);
	VT_EXPECT_NULL_ERRNO(t, vb_create_qp(pd, &init), ENOENT);
}

static void destroyed_pd_and_mr_used_again(struct vt *t)
{
	struct ibv_pd *pd = VT_PTR(t, vb_alloc_pd(t->a.ctx));
	uint8_t *memory = ts_memory(t, 4096);
	struct ibv_mr *mr = VT_PTR(t, vb_reg_mr(pd, memory, 4096, 0));
	struct ibv_ah_attr attr = ts_av(&t->a, &t->b);

	VT_OK(t, vb_dereg_mr(mr));
	VT_EXPECT_ERRNO(t, vb_dereg_mr(mr), ENOENT);
	VT_OK(t, vb_dealloc_pd(pd));
	VT_EXPECT_ERRNO(t, vb_dealloc_pd(pd), ENOENT);
	VT_EXPECT_NULL_ERRNO(t, vb_reg_mr(pd, memory, 4096, 0), ENOENT);
	VT_EXPECT_NULL_ERRNO(t, vb_create_ah(pd, &attr), ENOENT);
}

static void destroyed_srq_and_window_used_again(struct vt *t)
{
	struct ibv_srq_init_attr init = {.attr = {.max_wr = 1, .max_sge = 1}};
	struct ibv_pd *pd = ts_pd(t, &t->a);
	struct ibv_srq *srq = VT_PTR(t, vb_create_srq(pd, &init));
	struct ibv_mw *mw = VT_PTR(t, vb_alloc_mw(pd, IBV_MW_TYPE_1));
	struct ibv_recv_wr wr = {0}, *bad;
	struct ibv_srq_attr attr;

	VT_OK(t, vb_destroy_srq(srq));
	VT_EXPECT_ERRNO(t, vb_destroy_srq(srq), ENOENT);
	VT_EXPECT_ERRNO(t, vb_query_srq(srq, &attr), ENOENT);
	VT_EXPECT_ERRNO(t, ibv_post_srq_recv(srq, &wr, &bad), EINVAL);
	VT_OK(t, vb_dealloc_mw(mw));
	VT_EXPECT_ERRNO(t, vb_dealloc_mw(mw), ENOENT);
}

static void destroyed_ah_and_channel_used_again(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_UD);
	struct ibv_comp_channel *channel = VT_PTR(t, vb_create_comp_channel(t->a.ctx));
	struct ibv_ah *own = pair->a.ah;
	struct ibv_ah_attr attr = ts_av(&t->a, &t->b);
	struct ibv_ah *ah = VT_PTR(t, vb_create_ah(pair->a.pd, &attr));

	VT_OK(t, vb_destroy_ah(ah));
	VT_EXPECT_ERRNO(t, vb_destroy_ah(ah), ENOENT);
	pair->a.ah = ah;
	VT_EXPECT_ERRNO(t, ts_post(&pair->a, &(struct ts_wr){.opcode = IBV_WR_SEND}), EINVAL);
	pair->a.ah = own;
	VT_OK(t, vb_destroy_comp_channel(channel));
	VT_EXPECT_ERRNO(t, vb_destroy_comp_channel(channel), ENOENT);
	VT_EXPECT_NULL_ERRNO(t, vb_create_cq(t->a.ctx, 1, NULL, channel, 0), ENOENT);
}

/* The handle of a destroyed QP must not reach the QP that was made after it. */
static void handle_of_a_destroyed_qp_reaches_no_new_qp(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);
	struct ibv_qp *dead = pair->a.qp;
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	struct ts_pair *other;

	ts_destroy_qp(&pair->a);
	other = ts_connected(t, IBV_QPT_RC);
	if (other->a.qp == dead)
		VT_SKIP(t, "the new QP has the address of the old one");
	VT_ERRNO(t, vb_modify_qp(dead, &attr, IBV_QP_STATE), ENOENT);
	ts_transfer(other, IBV_WR_SEND, 100);
}

/* --- attributes --- */

static void unknown_bits_are_refused(struct vt *t)
{
	struct ibv_pd *pd = ts_pd(t, &t->a);
	struct ibv_cq *cq = ts_cq(t, &t->a, 4);
	struct ibv_qp_init_attr_ex qp = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD | 1u << 30,
		.pd = pd,
	};
	struct ibv_srq_init_attr_ex srq = {
		.attr = {.max_wr = 1, .max_sge = 1},
		.comp_mask = IBV_SRQ_INIT_ATTR_PD | 1u << 30,
		.pd = pd,
	};
	struct ibv_alloc_dm_attr dm = {.length = 64, .comp_mask = 1u << 30};

	VT_EXPECT(t, !vb_create_qp_ex(t->a.ctx, &qp));
	qp.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS;
	qp.create_flags = 1u << 30;
	VT_EXPECT(t, !vb_create_qp_ex(t->a.ctx, &qp));
	VT_EXPECT(t, !vb_create_srq_ex(t->a.ctx, &srq));
	VT_EXPECT(t, !vb_alloc_dm(t->a.ctx, &dm));
	VT_EXPECT(t, !vb_alloc_mw(pd, (enum ibv_mw_type)9));
}

static void qp_without_a_pd(struct vt *t)
{
	struct ibv_cq *cq = ts_cq(t, &t->a, 4);
	struct ibv_qp_init_attr_ex qp = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC};

	VT_NULL_ERRNO(t, vb_create_qp_ex(t->a.ctx, &qp), EINVAL);
}

#define SIM VT_NEEDS_SIM
/* Channels have no handle, and posting asks no kernel. */
#define GONE SRC_LOOKUP ": ENOENT; channels and posts: unsourced"

static const struct vt_test tests[] = {
	{"looping_chain_of_sends",
	 "ibv_post_send(3): stops at the first failure; ENOMEM: " SRC_RXE
	 "rxe_verbs.c, post_one_send",
	 VT_NEEDS_ATOMICS, looping_chain_of_sends, VT_MAY_LOOP},
	{"looping_chain_of_receives",
	 "ibv_post_recv(3): stops at the first failure; ENOMEM: " SRC_RXE
	 "rxe_verbs.c, post_one_recv",
	 0, looping_chain_of_receives, VT_MAY_LOOP},
	{"looping_chain_to_an_srq",
	 "ibv_post_srq_recv(3): stops at the first failure; ENOMEM: " SRC_RXE
	 "rxe_verbs.c, post_one_recv",
	 VT_NEEDS_SRQ, looping_chain_to_an_srq, VT_MAY_LOOP},
	{"negative_number_of_sges",
	 "receives: " SRC_RVT
	 "qp.c, rvt_post_recv and rvt_post_srq_recv: unsigned; sends: unsourced",
	 VT_NEEDS_SRQ | SIM, negative_number_of_sges},
	{"lengths_that_overflow", "unsourced", 0, lengths_that_overflow},
	{"receive_whose_lengths_overflow", "unsourced", SIM, receive_whose_lengths_overflow},
	{"addresses_that_overflow", SRC_RXE "rxe_mr.c, mr_check_range", 0, addresses_that_overflow},
	{"qp_with_objects_of_two_contexts", "unsourced", SIM | VT_NEEDS_SRQ,
	 qp_with_objects_of_two_contexts},
	{"rereg_to_a_pd_of_another_context", "unsourced", SIM, rereg_to_a_pd_of_another_context},
	{"ah_of_another_pd_or_device",
	 "\"does not post the WR to the QP's SQ and returns an immediate error\" (Shanley, "
	 "InfiniBand Network Architecture, ch. 20, PD Check); EINVAL: " SRC_RVT
	 "qp.c, rvt_qp_valid_operation: ah->pd",
	 SIM, ah_of_another_pd_or_device},
	{"window_of_another_context", "unsourced", SIM, window_of_another_context},
	{"destroyed_qp_used_again", GONE, SIM, destroyed_qp_used_again},
	{"destroyed_cq_used_again", GONE, SIM, destroyed_cq_used_again},
	{"destroyed_pd_and_mr_used_again", GONE, SIM, destroyed_pd_and_mr_used_again},
	{"destroyed_srq_and_window_used_again", GONE, SIM, destroyed_srq_and_window_used_again},
	{"destroyed_ah_and_channel_used_again", GONE, SIM, destroyed_ah_and_channel_used_again},
	{"handle_of_a_destroyed_qp_reaches_no_new_qp", GONE, SIM,
	 handle_of_a_destroyed_qp_reaches_no_new_qp},
	{"unknown_bits_are_refused", "unsourced", 0, unknown_bits_are_refused},
	{"qp_without_a_pd", "ibv_create_qp_ex(3): pd; EINVAL: unsourced", 0, qp_without_a_pd},
	{NULL},
};

const struct vt_suite vt_suite_misuse = {"misuse", "programs that misuse verbs", tests};
