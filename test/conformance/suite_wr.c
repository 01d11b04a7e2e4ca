/* SPDX-License-Identifier: MIT */
/*
 * Posting by calls: ibv_wr_start() to ibv_wr_complete().
 */
#include "test/conformance/sources.h"
#include "test/support/quirks.h"
#include "test/support/window.h"
#include "test/support/xrc.h"

#include <arpa/inet.h>

#define SENDS  (IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM)
#define WRITES (IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM)
#define ANSWERED                                                        \
	(IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | \
	 IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD)
#define WINDOWS (IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_SEND_WITH_INV)

/* The operations that every device with ibv_wr_* has on a QP type. */
static uint64_t ops_of(enum ibv_qp_type type)
{
	if (type == IBV_QPT_UD)
		return SENDS;
	return type == IBV_QPT_UC ? SENDS | WRITES : SENDS | WRITES | ANSWERED;
}

/* A pair in RTS; A's QP has the ibv_wr_* calls for the operations. */
static struct ts_pair *pair_with(struct vt *t, enum ibv_qp_type type, uint64_t ops)
{
	const struct ibv_qp_init_attr_ex init = {
		.comp_mask = IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = ops,
	};
	struct ts_options options = ts_defaults(t, type);
	struct ts_pair *pair;

	options.mr_access |= ops & WINDOWS ? IBV_ACCESS_MW_BIND : 0;
	pair = ts_pair_reset(t, &options);
	ts_remake_qp(&pair->a, &init);
	ts_connect_both(pair);
	return pair;
}

static struct ibv_qp_ex *ex_of(struct ts_end *end)
{
	return VT_PTR(end->t, vb_qp_to_qp_ex(end->qp));
}

/* Starts the next WR, signalled. */
static void begin(struct ibv_qp_ex *ex, uint64_t wr_id)
{
	ex->wr_id = wr_id;
	ex->wr_flags = IBV_SEND_SIGNALED;
}

static void set_data(struct ts_end *end, struct ibv_qp_ex *ex, size_t offset, uint32_t length)
{
	ibv_wr_set_sge(ex, end->mr->lkey, (uintptr_t)end->buffer + offset, length);
	if (end->options.type == IBV_QPT_UD)
		ibv_wr_set_ud_addr(ex, end->ah, end->peer->qp->qp_num, TS_QKEY);
}

static void sends(struct vt *t, enum ibv_qp_type type)
{
	struct ts_pair *pair = pair_with(t, type, ops_of(type));
	struct ibv_qp_ex *ex = ex_of(&pair->a);
	uint32_t grh = type == IBV_QPT_UD ? TS_GRH : 0;
	struct ibv_wc wc;

	ts_recv(&pair->b, .wr_id = 50, .length = 1000);
	ts_recv(&pair->b, .wr_id = 51, .offset = 2000, .length = 1000);
	ibv_wr_start(ex);
	begin(ex, 1);
	ibv_wr_send(ex);
	set_data(&pair->a, ex, 0, 700);
	begin(ex, 2);
	ibv_wr_send_imm(ex, htonl(0x1234));
	set_data(&pair->a, ex, 0, 800);
	VT_OK(t, ibv_wr_complete(ex));
	ts_done(t, pair->a.send_cq, 1, IBV_WC_SEND);
	ts_done(t, pair->a.send_cq, 2, IBV_WC_SEND);
	ts_received(t, pair->b.recv_cq, 50, 700 + grh);
	wc = ts_received(t, pair->b.recv_cq, 51, 800 + grh);
	VT_EQ(t, ntohl(wc.imm_data), 0x1234);
	ts_verify(t, pair->b.buffer + grh, 700, 1);
	ts_verify(t, pair->b.buffer + 2000 + grh, 800, 1);
}

static void sends_on_each_type(struct vt *t)
{
	static const enum ibv_qp_type types[] = {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD};
	size_t i;

	/* Datagrams need not come in order. */
	ts_prompt(t);
	for (i = 0; i < 3; i++) {
		vt_row(t, "type %d", types[i]);
		sends(t, types[i]);
	}
}

static void writes_on_rc_and_uc(struct vt *t)
{
	static const enum ibv_qp_type types[] = {IBV_QPT_RC, IBV_QPT_UC};
	struct ts_pair *pair;
	struct ibv_qp_ex *ex;
	size_t i;

	for (i = 0; i < 2; i++) {
		vt_row(t, "type %d", types[i]);
		pair = pair_with(t, types[i], ops_of(types[i]));
		ex = ex_of(&pair->a);
		ts_recv(&pair->b, .wr_id = 50, .offset = 60000, .length = 8);
		ibv_wr_start(ex);
		begin(ex, 1);
		ibv_wr_rdma_write(ex, pair->b.mr->rkey, (uintptr_t)pair->b.buffer + 64);
		set_data(&pair->a, ex, 0, 9000);
		begin(ex, 2);
		ibv_wr_rdma_write_imm(ex, pair->b.mr->rkey, (uintptr_t)pair->b.buffer + 20000,
				      htonl(7));
		set_data(&pair->a, ex, 0, 5000);
		VT_OK(t, ibv_wr_complete(ex));
		ts_done(t, pair->a.send_cq, 1, IBV_WC_RDMA_WRITE);
		ts_done(t, pair->a.send_cq, 2, IBV_WC_RDMA_WRITE);
		VT_EQ(t, ntohl(ts_written(t, pair->b.recv_cq, 50, 5000).imm_data), 7);
		ts_verify(t, pair->b.buffer + 64, 9000, 1);
		ts_verify(t, pair->b.buffer + 20000, 5000, 1);
	}
}

static void read_and_atomics(struct vt *t)
{
	struct ts_pair *pair = pair_with(t, IBV_QPT_RC, ops_of(IBV_QPT_RC));
	struct ibv_qp_ex *ex = ex_of(&pair->a);
	uint32_t rkey = pair->b.mr->rkey;
	uint64_t at = (uintptr_t)pair->b.buffer;
	uint64_t value = 40;

	memcpy(pair->b.buffer, &value, 8);
	ts_fill(pair->b.buffer + 1000, 9000, 2);
	ibv_wr_start(ex);
	begin(ex, 1);
	ibv_wr_rdma_read(ex, rkey, at + 1000);
	set_data(&pair->a, ex, 20000, 9000);
	begin(ex, 2);
	ibv_wr_atomic_fetch_add(ex, rkey, at, 2);
	set_data(&pair->a, ex, 0, 8);
	begin(ex, 3);
	ibv_wr_atomic_cmp_swp(ex, rkey, at, 42, 99);
	set_data(&pair->a, ex, 8, 8);
	VT_OK(t, ibv_wr_complete(ex));
	ts_done(t, pair->a.send_cq, 1, IBV_WC_RDMA_READ);
	ts_done(t, pair->a.send_cq, 2, IBV_WC_FETCH_ADD);
	ts_done(t, pair->a.send_cq, 3, IBV_WC_COMP_SWAP);
	ts_verify(t, pair->a.buffer + 20000, 9000, 2);
	memcpy(&value, pair->a.buffer + 8, 8);
	VT_EQ(t, value, 42);
	memcpy(&value, pair->b.buffer, 8);
	VT_EQ(t, value, 99);
}

static void xrc_send_names_its_srq(struct vt *t)
{
	const struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_XRC_SEND,
		.comp_mask = IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = SENDS,
	};
	const struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ibv_qp_attr attr;
	struct ibv_qp_ex *ex;
	struct ts_xrc *xrc;
	int mask;

	ts_need_xrc(t);
	xrc = ts_xrc_reset(t, &options);
	ts_remake_qp(&xrc->pair->a, &init);
	ts_to_init(&xrc->pair->a);
	ts_to_rtr(&xrc->pair->a);
	mask = ts_rts_attr(&xrc->pair->a, &attr) | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
	       IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
	VT_OK(t, vb_modify_qp(xrc->pair->a.qp, &attr, mask));
	ts_connect_target(&xrc->pair->b);
	ts_srq_recv(xrc->shared[1], .wr_id = 50, .length = 100);
	ex = ex_of(&xrc->pair->a);
	ibv_wr_start(ex);
	begin(ex, 1);
	ibv_wr_send(ex);
	ibv_wr_set_xrc_srqn(ex, xrc->srqn[1]);
	set_data(&xrc->pair->a, ex, 0, 100);
	VT_OK(t, ibv_wr_complete(ex));
	ts_done(t, xrc->pair->a.send_cq, 1, IBV_WC_SEND);
	ts_received(t, xrc->cq[1], 50, 100);
}

static void windows_are_bound_and_invalidated(struct vt *t)
{
	struct ts_pair *pair;
	struct ibv_mw_bind_info info;
	struct ibv_qp_ex *ex;
	struct ibv_mw *mw;
	uint32_t rkey;

	ts_need_windows(t, IBV_MW_TYPE_2);
	pair = pair_with(t, IBV_QPT_RC, ops_of(IBV_QPT_RC) | WINDOWS);
	ex = ex_of(&pair->a);
	mw = ts_mw(&pair->a, IBV_MW_TYPE_2);
	rkey = (mw->rkey & 0xffffff00) | ((mw->rkey + 1) & 0xff);
	info = (struct ibv_mw_bind_info){pair->a.mr, (uintptr_t)pair->a.buffer, 4096,
					 IBV_ACCESS_REMOTE_WRITE};
	ibv_wr_start(ex);
	begin(ex, 1);
	ibv_wr_bind_mw(ex, mw, rkey, &info);
	VT_OK(t, ibv_wr_complete(ex));
	ts_done(t, pair->a.send_cq, 1, IBV_WC_BIND_MW);
	ts_write(&pair->b, .wr_id = 2, .length = 8, .rkey = rkey);
	ts_done(t, pair->b.send_cq, 2, IBV_WC_RDMA_WRITE);
	ibv_wr_start(ex);
	begin(ex, 3);
	ibv_wr_local_inv(ex, rkey);
	VT_OK(t, ibv_wr_complete(ex));
	ts_done(t, pair->a.send_cq, 3, IBV_WC_LOCAL_INV);
	ts_write(&pair->b, .wr_id = 4, .length = 8, .rkey = rkey);
	ts_failed(t, pair->b.send_cq, 4, IBV_WC_REM_ACCESS_ERR);
}

static void send_inv_invalidates(struct vt *t)
{
	struct ts_pair *pair;
	struct ibv_qp_ex *ex;
	struct ibv_mw *mw;
	struct ibv_wc wc;

	ts_need_windows(t, IBV_MW_TYPE_2);
	pair = pair_with(t, IBV_QPT_RC, ops_of(IBV_QPT_RC) | WINDOWS);
	ex = ex_of(&pair->a);
	mw = ts_mw(&pair->b, IBV_MW_TYPE_2);
	ts_bound(&pair->b, mw, .wr_id = 9);
	ts_recv(&pair->b, .wr_id = 50, .offset = 8192, .length = 100);
	ibv_wr_start(ex);
	begin(ex, 1);
	ibv_wr_send_inv(ex, mw->rkey);
	set_data(&pair->a, ex, 0, 100);
	VT_OK(t, ibv_wr_complete(ex));
	ts_done(t, pair->a.send_cq, 1, IBV_WC_SEND);
	wc = ts_received(t, pair->b.recv_cq, 50, 100);
	VT_CHECK(t, wc.wc_flags & IBV_WC_WITH_INV);
	VT_EQ(t, wc.invalidated_rkey, mw->rkey);
}

/* --- data --- */

static void list_of_sges(struct vt *t)
{
	struct ts_pair *pair = pair_with(t, IBV_QPT_RC, ops_of(IBV_QPT_RC));
	struct ibv_qp_ex *ex = ex_of(&pair->a);
	struct ibv_sge sges[4];
	unsigned int i;

	for (i = 0; i < 4; i++)
		sges[i] = (struct ibv_sge){(uintptr_t)pair->a.buffer + 1000 * i, 1000,
					   pair->a.mr->lkey};
	ibv_wr_start(ex);
	begin(ex, 1);
	ibv_wr_rdma_write(ex, pair->b.mr->rkey, (uintptr_t)pair->b.buffer);
	ibv_wr_set_sge_list(ex, 4, sges);
	memset(sges, 0, sizeof(sges));
	VT_OK(t, ibv_wr_complete(ex));
	ts_done(t, pair->a.send_cq, 1, IBV_WC_RDMA_WRITE);
	ts_verify(t, pair->b.buffer, 4000, 1);
	ts_blank(t, pair->b.buffer + 4000, 100);
}

static void inline_data_is_copied_by_the_setter(struct vt *t)
{
	struct ts_pair *pair = pair_with(t, IBV_QPT_RC, ops_of(IBV_QPT_RC));
	struct ibv_qp_ex *ex = ex_of(&pair->a);
	uint8_t bytes[60];
	const struct ibv_data_buf list[3] = {{bytes, 10}, {bytes + 10, 0}, {bytes + 10, 50}};

	ts_fill(bytes, sizeof(bytes), 3);
	ibv_wr_start(ex);
	begin(ex, 1);
	ibv_wr_rdma_write(ex, pair->b.mr->rkey, (uintptr_t)pair->b.buffer);
	ibv_wr_set_inline_data(ex, bytes, sizeof(bytes));
	ts_fill(bytes, sizeof(bytes), 4);
	begin(ex, 2);
	ibv_wr_rdma_write(ex, pair->b.mr->rkey, (uintptr_t)pair->b.buffer + 1000);
	ibv_wr_set_inline_data_list(ex, 3, list);
	memset(bytes, 0, sizeof(bytes));
	VT_OK(t, ibv_wr_complete(ex));
	ts_done(t, pair->a.send_cq, 1, IBV_WC_RDMA_WRITE);
	ts_done(t, pair->a.send_cq, 2, IBV_WC_RDMA_WRITE);
	ts_verify(t, pair->b.buffer, 60, 3);
	ts_verify(t, pair->b.buffer + 1000, 60, 4);
}

static void each_request_has_its_own_flags(struct vt *t)
{
	struct ts_pair *pair = pair_with(t, IBV_QPT_RC, ops_of(IBV_QPT_RC));
	struct ibv_qp_ex *ex = ex_of(&pair->a);
	unsigned int i;

	ibv_wr_start(ex);
	for (i = 0; i < 6; i++) {
		ex->wr_id = i;
		ex->wr_flags = i % 2 ? IBV_SEND_SIGNALED : 0;
		ibv_wr_rdma_write(ex, pair->b.mr->rkey, (uintptr_t)pair->b.buffer);
		set_data(&pair->a, ex, 0, 8);
	}
	VT_OK(t, ibv_wr_complete(ex));
	for (i = 1; i < 6; i += 2)
		ts_done(t, pair->a.send_cq, i, IBV_WC_RDMA_WRITE);
	ts_no_more(t, pair->a.send_cq);
}

/* --- batches --- */

static void add_write(struct ts_pair *pair, struct ibv_qp_ex *ex, uint64_t wr_id, size_t offset)
{
	begin(ex, wr_id);
	ibv_wr_rdma_write(ex, pair->b.mr->rkey, (uintptr_t)pair->b.buffer + offset);
	set_data(&pair->a, ex, 0, 8);
}

static void nothing_runs_before_complete(struct vt *t)
{
	struct ts_pair *pair = pair_with(t, IBV_QPT_RC, ops_of(IBV_QPT_RC));
	struct ibv_qp_ex *ex = ex_of(&pair->a);

	ibv_wr_start(ex);
	add_write(pair, ex, 1, 0);
	ts_no_more(t, pair->a.send_cq);
	ts_blank(t, pair->b.buffer, 8);
	VT_OK(t, ibv_wr_complete(ex));
	ts_done(t, pair->a.send_cq, 1, IBV_WC_RDMA_WRITE);
}

static void abort_posts_nothing(struct vt *t)
{
	struct ts_pair *pair = pair_with(t, IBV_QPT_RC, ops_of(IBV_QPT_RC));
	struct ibv_qp_ex *ex = ex_of(&pair->a);
	uint32_t i;

	ibv_wr_start(ex);
	for (i = 0; i < pair->a.cap.max_send_wr; i++)
		add_write(pair, ex, i, 0);
	ibv_wr_abort(ex);
	ts_no_more(t, pair->a.send_cq);
	ts_blank(t, pair->b.buffer, 8);
	ibv_wr_start(ex);
	for (i = 0; i < pair->a.cap.max_send_wr; i++)
		add_write(pair, ex, i, 0);
	VT_OK(t, ibv_wr_complete(ex));
	for (i = 0; i < pair->a.cap.max_send_wr; i++)
		ts_done(t, pair->a.send_cq, i, IBV_WC_RDMA_WRITE);
}

/* If one WR of a batch is bad, ibv_wr_complete() fails and posts nothing of the batch. */
static void expect_aborted(struct ts_pair *pair, struct ibv_qp_ex *ex)
{
	struct vt *t = pair->a.t;

	VT_EXPECT(t, ibv_wr_complete(ex) != 0);
	ts_no_more(t, pair->a.send_cq);
	ts_blank(t, pair->b.buffer, 8);
	ts_state(&pair->a, IBV_QPS_RTS);
	ibv_wr_start(ex);
	add_write(pair, ex, 9, 1000);
	VT_OK(t, ibv_wr_complete(ex));
	ts_done(t, pair->a.send_cq, 9, IBV_WC_RDMA_WRITE);
}

static void too_many_sges_abort_the_batch(struct vt *t)
{
	struct ts_pair *pair = pair_with(t, IBV_QPT_RC, ops_of(IBV_QPT_RC));
	struct ibv_qp_ex *ex = ex_of(&pair->a);
	size_t count = pair->a.cap.max_send_sge + 1;
	struct ibv_sge *sges = vt_alloc(t, count * sizeof(*sges));

	ibv_wr_start(ex);
	add_write(pair, ex, 1, 0);
	begin(ex, 2);
	ibv_wr_rdma_write(ex, pair->b.mr->rkey, (uintptr_t)pair->b.buffer);
	ibv_wr_set_sge_list(ex, count, sges);
	add_write(pair, ex, 3, 0);
	expect_aborted(pair, ex);
}

static void too_much_inline_aborts_the_batch(struct vt *t)
{
	struct ts_pair *pair = pair_with(t, IBV_QPT_RC, ops_of(IBV_QPT_RC));
	struct ibv_qp_ex *ex = ex_of(&pair->a);

	ibv_wr_start(ex);
	add_write(pair, ex, 1, 0);
	begin(ex, 2);
	ibv_wr_rdma_write(ex, pair->b.mr->rkey, (uintptr_t)pair->b.buffer);
	ibv_wr_set_inline_data(ex, pair->a.buffer, pair->a.cap.max_inline_data + 1);
	expect_aborted(pair, ex);
}

/* mlx5 returns ENOMEM, rxe returns ENOSPC. */
static void more_than_fits_aborts_the_batch(struct vt *t)
{
	struct ts_pair *pair = pair_with(t, IBV_QPT_RC, ops_of(IBV_QPT_RC));
	struct ibv_qp_ex *ex = ex_of(&pair->a);
	uint32_t i;
	int error;

	ibv_wr_start(ex);
	for (i = 0; i <= pair->a.cap.max_send_wr; i++)
		add_write(pair, ex, i, 0);
	error = ibv_wr_complete(ex);
	VT_CHECK(t, error == ENOMEM || error == ENOSPC);
	ts_no_more(t, pair->a.send_cq);
	ibv_wr_start(ex);
	add_write(pair, ex, 9, 1000);
	VT_OK(t, ibv_wr_complete(ex));
	ts_done(t, pair->a.send_cq, 9, IBV_WC_RDMA_WRITE);
}

static void mixes_with_post_send(struct vt *t)
{
	struct ts_pair *pair = pair_with(t, IBV_QPT_RC, ops_of(IBV_QPT_RC));
	struct ibv_qp_ex *ex = ex_of(&pair->a);
	unsigned int i;

	for (i = 0; i < 6; i += 2) {
		ts_write(&pair->a, .wr_id = i, .length = 8);
		ibv_wr_start(ex);
		add_write(pair, ex, i + 1, 0);
		VT_OK(t, ibv_wr_complete(ex));
	}
	for (i = 0; i < 6; i++)
		ts_done(t, pair->a.send_cq, i, IBV_WC_RDMA_WRITE);
}

static void operation_that_the_type_lacks(struct vt *t)
{
	static const struct {
		enum ibv_qp_type type;
		uint64_t op;
	} rows[] = {
		{IBV_QPT_UD, IBV_QP_EX_WITH_RDMA_WRITE},
		{IBV_QPT_UD, IBV_QP_EX_WITH_RDMA_READ},
		{IBV_QPT_UD, IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD},
		{IBV_QPT_UD, IBV_QP_EX_WITH_BIND_MW},
		{IBV_QPT_UC, IBV_QP_EX_WITH_RDMA_READ},
		{IBV_QPT_UC, IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP},
		{IBV_QPT_RC, IBV_QP_EX_WITH_TSO},
		{IBV_QPT_RC, 1ull << 60},
	};
	struct ts_pair *pair = pair_with(t, IBV_QPT_RC, ops_of(IBV_QPT_RC));
	size_t i;

	for (i = 0; i < TS_COUNT(rows); i++) {
		struct ibv_qp_init_attr_ex init = {
			.qp_type = rows[i].type,
			.send_cq = pair->a.send_cq,
			.recv_cq = pair->a.recv_cq,
			.cap = {.max_send_wr = 1, .max_send_sge = 1},
			.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
			.pd = pair->a.pd,
			.send_ops_flags = rows[i].op,
		};

		vt_row(t, "type %d, operation 0x%llx", rows[i].type,
		       (unsigned long long)rows[i].op);
		VT_EXPECT(t, !vb_create_qp_ex(t->a.ctx, &init));
		VT_EXPECT(t, errno == EINVAL || errno == EOPNOTSUPP);
	}
}

#define MAN "ibv_wr_post(3)"

static const struct vt_test tests[] = {
	{"sends_on_each_type", MAN ": ibv_wr_send, ibv_wr_send_imm", 0, sends_on_each_type},
	{"writes_on_rc_and_uc", MAN ": ibv_wr_rdma_write, ibv_wr_rdma_write_imm", 0,
	 writes_on_rc_and_uc},
	{"read_and_atomics", MAN ", Atomic operations, RDMA", VT_NEEDS_ATOMICS, read_and_atomics},
	{"xrc_send_names_its_srq", MAN ": ibv_wr_set_xrc_srqn", 0, xrc_send_names_its_srq},
	{"windows_are_bound_and_invalidated", MAN ", Memory Windows", 0,
	 windows_are_bound_and_invalidated},
	{"send_inv_invalidates", MAN ": ibv_wr_send_inv", 0, send_inv_invalidates},
	{"list_of_sges", MAN ": ibv_wr_set_sge_list", 0, list_of_sges},
	{"inline_data_is_copied_by_the_setter", MAN ", DATA transfer setters", 0,
	 inline_data_is_copied_by_the_setter},
	{"each_request_has_its_own_flags", MAN ", Flags", 0, each_request_has_its_own_flags},
	{"nothing_runs_before_complete", MAN ": no work is executed until ibv_wr_complete", 0,
	 nothing_runs_before_complete},
	{"abort_posts_nothing", MAN ": ibv_wr_abort discards all", 0, abort_posts_nothing},
	{"too_many_sges_abort_the_batch", MAN ", Return value: the entire posting is aborted", 0,
	 too_many_sges_abort_the_batch},
	{"too_much_inline_aborts_the_batch", MAN ", Return value: the entire posting is aborted", 0,
	 too_much_inline_aborts_the_batch},
	{"more_than_fits_aborts_the_batch", MAN ", Return value; ENOMEM: unsourced", 0,
	 more_than_fits_aborts_the_batch},
	{"mixes_with_post_send", "ibv_wr_post(3), Description: batches can interleave", 0,
	 mixes_with_post_send},
	{"operation_that_the_type_lacks",
	 "ibv_wr_post(3), table of operations; the errno: " SRC_RDMA_CORE
	 "providers/mlx5/qp.c, mlx5_qp_fill_wr_pfns",
	 0, operation_that_the_type_lacks},
	{NULL},
};

const struct vt_suite vt_suite_wr = {"wr", "posting by ibv_wr_start and ibv_wr_complete", tests};
