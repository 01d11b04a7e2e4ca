/* SPDX-License-Identifier: MIT */
/* Quirks of READs and atomics. */
#include "test/conformance/sources.h"
#include "test/support/quirks.h"

static void reads_without_room_wait(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;

	ts_quirks(t, "reads_without_room_wait", NULL);
	options.max_rd_atomic = 0;
	pair = ts_pair(t, &options);
	ts_read(&pair->a, .wr_id = 1, .length = 8);
	ts_no_more(t, pair->a.send_cq);
	ts_state(&pair->a, IBV_QPS_RTS);
	VT_OK(t, ts_to(&pair->a, IBV_QPS_ERR));
	ts_flushed(t, pair->a.send_cq, 1);
}

static void atomics_tell_all_bytes(struct vt *t)
{
	struct ibv_send_wr wr, *bad;
	struct ts_pair *pair;
	struct ibv_sge sge;
	struct ibv_wc wc;

	ts_quirks(t, "atomics_tell_all_bytes", NULL);
	pair = ts_connected(t, IBV_QPT_RC);
	ts_fill_wr(&pair->a, &(struct ts_wr){.wr_id = 1, .length = 32}, &sge, &wr);
	wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
	wr.wr.atomic.remote_addr = (uintptr_t)pair->b.buffer;
	wr.wr.atomic.rkey = pair->b.mr->rkey;
	wr.wr.atomic.compare_add = 1;
	VT_OK(t, ibv_post_send(pair->a.qp, &wr, &bad));
	VT_EQ(t, ts_wait(t, pair->a.send_cq, 1, &wc), 1);
	VT_EQ(t, wc.status, IBV_WC_SUCCESS);
	VT_EQ(t, wc.byte_len, 32);
}

static void long_read_responses_taken(struct vt *t)
{
	const struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair = ts_pair_reset(t, &options);

	ts_quirks(t, "long_read_responses_taken", NULL);
	pair->a.options.mtu = IBV_MTU_256;
	pair->b.options.mtu = IBV_MTU_1024;
	ts_connect_both(pair);
	ts_transfer(pair, IBV_WR_RDMA_READ, 3000);
}

/* A starts at its first PSN again, so B takes its second READ for a repetition of the first. */
static void repeated_reads_may_differ(struct vt *t)
{
	struct ts_pair *pair;

	ts_quirks(t, "repeated_reads_may_differ", NULL);
	pair = ts_connected(t, IBV_QPT_RC);
	ts_fill(pair->b.buffer, 8192, 7);
	ts_read(&pair->a, .wr_id = 1, .length = 5000, .remote_offset = 1000,
		.rkey = pair->b.mr->rkey);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_RDMA_READ);
	VT_OK(t, ts_to(&pair->a, IBV_QPS_RESET));
	ts_connect(&pair->a);
	ts_read(&pair->a, .wr_id = 2, .length = 255, .remote_offset = 3333,
		.rkey = pair->b.mr->rkey);
	ts_done(t, pair->a.send_cq, 2, IBV_WC_RDMA_READ);
	VT_EQ(t, memcmp(pair->a.buffer, pair->b.buffer + 3333, 255), 0);
}

static const struct vt_test tests[] = {
	{"reads_without_room_wait", MEASURED_BOTH, VT_NEEDS_SIM, reads_without_room_wait},
	{"long_read_responses_taken", FOUND_BOTH "; " SRC_RXE "rxe_comp.c, do_read", VT_NEEDS_SIM,
	 long_read_responses_taken},
	{"repeated_reads_may_differ", FOUND_BOTH "; " SRC_RXE "rxe_resp.c, duplicate_request",
	 VT_NEEDS_SIM, repeated_reads_may_differ, VT_MAY_RECONNECT},
	{"atomics_tell_all_bytes", FOUND_BOTH "; " SRC_RXE "rxe_comp.c, make_send_cqe",
	 VT_NEEDS_SIM, atomics_tell_all_bytes},
	{NULL},
};

const struct vt_suite vt_suite_quirks_read = {"quirks_read", "quirks: READs and atomics", tests,
					      .simulator = true};
