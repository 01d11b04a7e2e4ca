/* SPDX-License-Identifier: MIT */
/* The quirk completions_come_late: completions that can be polled some time after their work is done. */
#include "test/conformance/sources.h"
#include "test/support/keep.h"
#include "test/support/quirks.h"

#define LATE_NS 30000

/* Lets everything happen that needs no time. */
static void run(struct vt *t)
{
	VT_OK(t, vb_sim_run(ts_sim(t), 0));
}

static void completions_come_late(struct vt *t)
{
	struct ts_pair *pair;
	struct ibv_wc wc[2];
	uint64_t since_ns;

	ts_quirks(t, "completions_come_late", NULL);
	pair = ts_pair_with_channels(t);
	VT_OK(t, ibv_req_notify_cq(pair->b.recv_cq, 0));
	ts_recv(&pair->b, .wr_id = 50, .length = 8);
	ts_recv(&pair->b, .wr_id = 51, .length = 8);
	since_ns = ts_now_ns(t);
	ts_send(&pair->a, .wr_id = 1, .length = 8);
	ts_pause(t, 10000);
	ts_verify(t, pair->b.buffer, 8, 1); /* the data are there */
	ts_send(&pair->a, .wr_id = 2, .length = 8);
	VT_CHECK(t, ts_cq_event(t, pair->b.recv_channel, NULL));
	VT_EQ(t, ts_now_ns(t) - since_ns, LATE_NS);
	VT_EQ(t, ts_wait(t, pair->b.recv_cq, 2, wc), 2);
	VT_EQ(t, wc[0].wr_id, 50);
	VT_EQ(t, wc[1].wr_id, 51);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_SEND);
	ts_done(t, pair->a.send_cq, 2, IBV_WC_SEND);
}

/* A CQ that is armed for solicited completions raises an event only if one of the late completions is solicited. */
static void late_solicited_completions_raise_events(struct vt *t)
{
	struct ts_pair *pair;
	struct ibv_wc wc[2];

	ts_quirks(t, "completions_come_late", NULL);
	pair = ts_pair_with_channels(t);
	for (int solicited = 0; solicited < 2; solicited++) {
		vt_row(t, "%s solicited completion", solicited ? "a" : "no");
		VT_OK(t, ibv_req_notify_cq(pair->b.recv_cq, 1));
		ts_recv(&pair->b, .wr_id = 50, .length = 8);
		ts_recv(&pair->b, .wr_id = 51, .length = 8);
		ts_send(&pair->a, .wr_id = 1, .length = 8,
			.flags = solicited ? IBV_SEND_SOLICITED : 0);
		ts_send(&pair->a, .wr_id = 2, .length = 8);
		VT_EQ(t, ts_wait(t, pair->b.recv_cq, 2, wc), 2);
		VT_EQ(t, ts_cq_event(t, pair->b.recv_channel, NULL), solicited);
	}
}

/* When a QP is destroyed, its late completions can be polled at once. */
static void late_completions_do_not_outlive_their_qp(struct vt *t)
{
	struct ts_pair *pair;
	uint64_t since_ns;

	ts_quirks(t, "completions_come_late", NULL);
	pair = ts_connected(t, IBV_QPT_RC);
	ts_write(&pair->a, .wr_id = 1, .length = 8);
	run(t);
	since_ns = ts_now_ns(t);
	ts_destroy_qp(&pair->a);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_RDMA_WRITE);
	VT_EQ(t, ts_now_ns(t), since_ns);
}

/* Late completions take entries of the CQ before they can be polled. */
static void late_completions_overrun_their_cq(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;
	struct ibv_wc wc;

	ts_quirks(t, "completions_come_late", NULL);
	options.send_cqe = 2;
	pair = ts_pair(t, &options);
	for (uint64_t i = 0; i < 3; i++)
		ts_write(&pair->a, .wr_id = i, .length = 8);
	run(t);
	ts_event(t, &t->a, IBV_EVENT_CQ_ERR, pair->a.send_cq);
	ts_done(t, pair->a.send_cq, 0, IBV_WC_RDMA_WRITE);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_RDMA_WRITE);
	ts_drain_events(&t->a);
	/* The CQ takes no more. */
	ts_write(&pair->a, .wr_id = 3, .length = 8);
	ts_pause(t, 2 * LATE_NS);
	VT_EQ(t, ibv_poll_cq(pair->a.send_cq, 1, &wc), -1);
}

/* Late completions and unpolled completions together overrun the CQ. */
static void late_completions_overrun_a_cq_with_others(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;

	ts_quirks(t, "completions_come_late", NULL);
	options.send_cqe = 2;
	pair = ts_pair(t, &options);
	for (uint64_t i = 0; i < 2; i++) {
		ts_write(&pair->a, .wr_id = i, .length = 8);
		ts_pause(t, 2 * LATE_NS);
	}
	ts_no_event(t, &t->a);
	ts_write(&pair->a, .wr_id = 2, .length = 8);
	run(t);
	ts_event(t, &t->a, IBV_EVENT_CQ_ERR, pair->a.send_cq);
	ts_drain_events(&t->a);
}

/* IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN: the oldest completion makes room, and the others stay in order. */
static void late_completions_may_overrun_their_cq(struct vt *t)
{
	struct ibv_cq_init_attr_ex attr = {.cqe = 2,
					   .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
					   .flags = IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN};
	struct ts_options options;
	struct ibv_qp_init_attr_ex init = {0};
	struct ts_pair *pair;

	ts_profile(t, "spec");
	ts_quirks(t, "completions_come_late", NULL);
	init.send_cq = ibv_cq_ex_to_cq(VT_PTR(t, vb_create_cq_ex(t->a.ctx, &attr)));
	ts_keep(t, TS_CQ, init.send_cq);
	options = ts_defaults(t, IBV_QPT_RC);
	pair = ts_pair_reset(t, &options);
	pair->a.send_cq = init.send_cq;
	ts_remake_qp(&pair->a, &init);
	ts_connect_both(pair);
	for (uint64_t i = 0; i < 3; i++)
		ts_write(&pair->a, .wr_id = i, .length = 8);
	run(t);
	ts_done(t, init.send_cq, 1, IBV_WC_RDMA_WRITE);
	ts_done(t, init.send_cq, 2, IBV_WC_RDMA_WRITE);
	ts_no_more(t, init.send_cq);
}

static void late_completions_survive_a_resize(struct vt *t)
{
	struct ts_pair *pair;

	ts_quirks(t, "completions_come_late", NULL);
	pair = ts_connected(t, IBV_QPT_RC);
	for (uint64_t i = 0; i < 4; i++)
		ts_write(&pair->a, .wr_id = i, .length = 8);
	run(t);
	VT_ERRNO(t, vb_resize_cq(pair->a.send_cq, 3), EINVAL);
	VT_OK(t, vb_resize_cq(pair->a.send_cq, 100));
	ts_write(&pair->a, .wr_id = 4, .length = 8);
	run(t);
	for (uint64_t i = 0; i < 5; i++)
		ts_done(t, pair->a.send_cq, i, IBV_WC_RDMA_WRITE);
	ts_no_more(t, pair->a.send_cq);
}

#define NEEDS (VT_NEEDS_SIM | VT_NEEDS_VIRTUAL_CLOCK)

static const struct vt_test tests[] = {
	{"completions_come_late", "unsourced", NEEDS, completions_come_late},
	{"late_solicited_completions_raise_events", "ibv_req_notify_cq(3)", NEEDS,
	 late_solicited_completions_raise_events},
	{"late_completions_do_not_outlive_their_qp", "unsourced", NEEDS,
	 late_completions_do_not_outlive_their_qp},
	{"late_completions_overrun_their_cq", "ibv_poll_cq(3), Notes", NEEDS,
	 late_completions_overrun_their_cq},
	{"late_completions_overrun_a_cq_with_others", "ibv_poll_cq(3), Notes", NEEDS,
	 late_completions_overrun_a_cq_with_others},
	{"late_completions_may_overrun_their_cq", "ibv_create_cq_ex(3): IGNORE_OVERRUN", NEEDS,
	 late_completions_may_overrun_their_cq},
	{"late_completions_survive_a_resize", "ibv_resize_cq(3)", NEEDS,
	 late_completions_survive_a_resize},
	{NULL},
};

const struct vt_suite vt_suite_quirks_late_cq = {"quirks_late_cq", "quirks: completions come late",
						 tests, .simulator = true};
