/* SPDX-License-Identifier: MIT */
/* Quirks of shared receive queues. */
#include "test/conformance/sources.h"
#include "test/support/quirks.h"
#include "test/support/srq.h"

static void unknown_srq_bits_taken(struct vt *t)
{
	struct ibv_srq_attr attr = {.srq_limit = 2};
	struct ts_shared *shared;

	ts_quirks(t, "unknown_srq_bits_taken", NULL);
	shared = ts_shared(t);
	VT_OK(t, vb_modify_srq(shared->srq, &attr, IBV_SRQ_LIMIT | 1 << 5));
	VT_EQ(t, ts_query_srq(t, shared->srq).srq_limit, 2);
}

static void srqs_on_uc(struct vt *t)
{
	struct ts_shared *shared;
	struct ts_pair *pair;

	ts_quirks(t, "srqs_on_uc", NULL);
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

	ts_quirks(t, "srq_memory_is_of_the_qp", NULL);
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

static const struct vt_test tests[] = {
	{"unknown_srq_bits_taken", MEASURED_BOTH, VT_NEEDS_SIM | VT_NEEDS_SRQ,
	 unknown_srq_bits_taken},
	{"srqs_on_uc", MEASURED_BOTH " that there is one; its use: unsourced",
	 VT_NEEDS_SIM | VT_NEEDS_SRQ, srqs_on_uc},
	{"srq_memory_is_of_the_qp", MEASURED_BOTH, VT_NEEDS_SIM | VT_NEEDS_SRQ,
	 srq_memory_is_of_the_qp},
	{NULL},
};

const struct vt_suite vt_suite_quirks_srq = {"quirks_srq", "quirks: shared receive queues", tests,
					     .simulator = true};
