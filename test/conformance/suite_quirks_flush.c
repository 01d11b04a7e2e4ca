/* SPDX-License-Identifier: MIT */
/* Quirks of flushing and the state ERR. */
#include "test/conformance/sources.h"
#include "test/support/quirks.h"
#include "test/support/window.h"

static void receives_flush_first(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;
	unsigned int i;

	ts_quirks(t, "receives_flush_first", NULL);
	options.one_cq = true;
	pair = ts_pair(t, &options);
	VT_OK(t, ts_to(&pair->a, IBV_QPS_SQD));
	for (i = 0; i < 4; i++) {
		ts_send(&pair->a, .wr_id = i, .length = 8);
		ts_recv(&pair->a, .wr_id = 100 + i, .length = 8);
	}
	VT_OK(t, ts_to(&pair->a, IBV_QPS_ERR));
	for (i = 0; i < 4; i++)
		ts_flushed(t, pair->a.send_cq, 100 + i);
	for (i = 0; i < 4; i++)
		ts_flushed(t, pair->a.send_cq, i);
}

static void errored_receives_wait(struct vt *t)
{
	struct ts_pair *pair;

	ts_quirks(t, "errored_receives_wait", NULL);
	pair = ts_connected(t, IBV_QPT_RC);
	ts_recv(&pair->a, .wr_id = 4, .length = 8);
	VT_OK(t, ts_to(&pair->a, IBV_QPS_ERR));
	ts_flushed(t, pair->a.recv_cq, 4);
	ts_recv(&pair->a, .wr_id = 5, .length = 8);
	ts_send(&pair->a, .wr_id = 6, .length = 8);
	ts_flushed(t, pair->a.send_cq, 6);
	ts_no_more(t, pair->a.recv_cq);
	VT_OK(t, ts_to(&pair->a, IBV_QPS_ERR));
	ts_flushed(t, pair->a.recv_cq, 5);
	ts_no_more(t, pair->a.recv_cq);
}

static void post_list(struct ts_end *end, unsigned int count)
{
	struct ibv_send_wr wrs[3], *bad;
	struct ibv_sge sge;
	unsigned int i;

	for (i = 0; i < count; i++) {
		ts_fill_wr(end, &(struct ts_wr){.wr_id = i, .length = 8}, &sge, &wrs[i]);
		wrs[i].next = i + 1 < count ? &wrs[i + 1] : NULL;
	}
	VT_OK(end->t, ibv_post_send(end->qp, wrs, &bad));
}

/*
 * The send queue is a ring of 4. The lists end at slots 2, 0 and 2, while the requester stands at
 * 0, 1 and 2: the third list is flushed by the post behind it.
 */
static void errored_sends_may_wait(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;
	unsigned int i, list;

	ts_quirks(t, "errored_sends_may_wait", NULL);
	options.send_wr = 3;
	pair = ts_pair(t, &options);
	VT_OK(t, ts_to(&pair->a, IBV_QPS_ERR));
	for (list = 0; list < 2; list++) {
		post_list(&pair->a, 2);
		for (i = 0; i < 2; i++)
			ts_flushed(t, pair->a.send_cq, i);
	}
	post_list(&pair->a, 2);
	ts_no_more(t, pair->a.send_cq);
	post_list(&pair->a, 1);
	ts_flushed(t, pair->a.send_cq, 0);
	ts_flushed(t, pair->a.send_cq, 1);
	ts_flushed(t, pair->a.send_cq, 0);
}

static void errors_repeat(struct vt *t)
{
	struct ts_pair *pair;

	ts_quirks(t, "errors_repeat", "errored_receives_wait");
	pair = ts_connected(t, IBV_QPT_RC);
	VT_OK(t, ts_to(&pair->b, IBV_QPS_ERR));
	ts_recv(&pair->b, .wr_id = 5, .length = 100);
	ts_no_more(t, pair->b.recv_cq);
	ts_send(&pair->b, .wr_id = 1, .length = 8);
	ts_flushed(t, pair->b.send_cq, 1);
	ts_flushed(t, pair->b.recv_cq, 5);
	ts_recv(&pair->b, .wr_id = 6, .length = 100);
	ts_no_more(t, pair->b.recv_cq);
	ts_send(&pair->a, .wr_id = 2, .length = 8);
	ts_flushed(t, pair->b.recv_cq, 6);
}

static void errors_repeat_when_a_binding_is_posted(struct vt *t)
{
	struct ibv_mw_bind bind = {.wr_id = 1, .send_flags = IBV_SEND_SIGNALED};
	struct ts_pair *pair;
	struct ibv_mw *mw;

	ts_quirks(t, "errors_repeat", "errored_receives_wait");
	pair = ts_window_pair(t);
	mw = ts_mw(&pair->a, IBV_MW_TYPE_1);
	bind.bind_info = (struct ibv_mw_bind_info){pair->a.mr, (uintptr_t)pair->a.buffer, 8,
						   IBV_ACCESS_REMOTE_READ};
	VT_OK(t, ts_to(&pair->a, IBV_QPS_ERR));
	ts_recv(&pair->a, .wr_id = 5, .length = 100);
	ts_no_more(t, pair->a.recv_cq);
	VT_OK(t, vb_bind_mw(pair->a.qp, mw, &bind));
	ts_flushed(t, pair->a.send_cq, 1);
	ts_flushed(t, pair->a.recv_cq, 5);
}

/* A datagram with another Q_Key is dropped before it can repeat the error. */
static void errors_repeat_for_a_datagram_with_the_right_qkey(struct vt *t)
{
	struct ts_pair *pair;

	ts_quirks(t, "errors_repeat", "errored_receives_wait");
	pair = ts_connected(t, IBV_QPT_UD);
	VT_OK(t, ts_to(&pair->b, IBV_QPS_ERR));
	ts_recv(&pair->b, .wr_id = 5, .length = 100);
	ts_send(&pair->a, .wr_id = 1, .length = 8, .remote_qkey = TS_QKEY ^ 1);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_SEND);
	ts_no_more(t, pair->b.recv_cq);
	ts_send(&pair->a, .wr_id = 2, .length = 8);
	ts_done(t, pair->a.send_cq, 2, IBV_WC_SEND);
	ts_flushed(t, pair->b.recv_cq, 5);
}

/* The first send waits for a receive when the second fails. */
static void local_errors_flush_all(struct vt *t)
{
	struct ts_pair *pair;

	ts_quirks(t, "local_errors_flush_all", NULL);
	pair = ts_connected(t, IBV_QPT_RC);
	ts_send(&pair->a, .wr_id = 1, .length = 8);
	ts_send(&pair->a, .wr_id = 2, .length = 8, .lkey = pair->a.mr->lkey ^ 0xff);
	ts_flushed(t, pair->a.send_cq, 1);
	ts_flushed(t, pair->a.send_cq, 2);
	ts_state(&pair->a, IBV_QPS_ERR);
}

static const struct vt_test tests[] = {
	{"receives_flush_first", MEASURED_6_1, VT_NEEDS_SIM, receives_flush_first},
	{"errored_receives_wait", MEASURED_6_1, VT_NEEDS_SIM, errored_receives_wait},
	{"errored_sends_may_wait",
	 FOUND_6_1 "; Linux 6.1 drivers/infiniband/sw/rxe/rxe_req.c, rxe_requester", VT_NEEDS_SIM,
	 errored_sends_may_wait},
	{"errors_repeat",
	 MEASURED_6_12 "; Linux 6.12 drivers/infiniband/sw/rxe/rxe_resp.c, flush_recv_queue",
	 VT_NEEDS_SIM, errors_repeat},
	{"errors_repeat_when_a_binding_is_posted",
	 MEASURED_6_12 "; " SRC_RXE "rxe_verbs.c, rxe_post_send", VT_NEEDS_SIM,
	 errors_repeat_when_a_binding_is_posted},
	{"errors_repeat_for_a_datagram_with_the_right_qkey",
	 MEASURED_6_12 "; " SRC_RXE "rxe_recv.c, check_keys", VT_NEEDS_SIM,
	 errors_repeat_for_a_datagram_with_the_right_qkey},
	{"local_errors_flush_all",
	 MEASURED_6_12
	 "; Linux 6.12 drivers/infiniband/sw/rxe/rxe_req.c, rxe_requester: rxe_qp_error",
	 VT_NEEDS_SIM, local_errors_flush_all},
	{NULL},
};

const struct vt_suite vt_suite_quirks_flush = {"quirks_flush", "quirks: flushing and the state ERR",
					       tests, .simulator = true};
