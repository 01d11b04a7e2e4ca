/* SPDX-License-Identifier: MIT */
/*
 * Asynchronous events: which are raised, which object they name, and when destroying waits for
 * them.
 */
#include "test/conformance/sources.h"
#include "test/support/keep.h"
#include "test/support/support.h"

#include <fcntl.h>
#include <poll.h>

static void first_packet_in_rtr_is_comm_est(struct vt *t)
{
	static const enum ibv_qp_type types[] = {IBV_QPT_RC, IBV_QPT_UC};
	struct ts_options options;
	struct ts_pair *pair;
	size_t i;

	for (i = 0; i < 2; i++) {
		vt_row(t, "type %d", types[i]);
		options = ts_defaults(t, types[i]);
		pair = ts_pair_reset(t, &options);
		ts_connect(&pair->a);
		ts_to_init(&pair->b);
		ts_to_rtr(&pair->b);
		ts_no_event(t, &t->b);
		ts_write(&pair->a, .wr_id = 1, .length = 8);
		ts_write(&pair->a, .wr_id = 2, .length = 8);
		ts_event(t, &t->b, IBV_EVENT_COMM_EST, pair->b.qp);
		ts_no_event(t, &t->b);
		ts_state(&pair->b, IBV_QPS_RTR);
	}
}

static void first_packet_in_rts_raises_none(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);

	ts_transfer(pair, IBV_WR_SEND, 100);
	ts_no_event(t, &t->a);
	ts_no_event(t, &t->b);
}

static void modify_to_err_raises_none(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);

	VT_OK(t, ts_to(&pair->a, IBV_QPS_ERR));
	ts_no_event(t, &t->a);
}

static void event_goes_to_its_own_context(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);

	ts_write(&pair->a, .wr_id = 1, .length = 8, .rkey = ts_wrong_key(pair->b.mr->rkey));
	ts_failed(t, pair->a.send_cq, 1, IBV_WC_REM_ACCESS_ERR);
	ts_no_event(t, &t->a);
	ts_event(t, &t->b, IBV_EVENT_QP_ACCESS_ERR, pair->b.qp);
}

static void events_come_in_order(struct vt *t)
{
	struct ts_pair *pairs[4];
	int i;

	for (i = 0; i < 4; i++)
		pairs[i] = ts_connected(t, IBV_QPT_RC);
	for (i = 0; i < 4; i++) {
		ts_write(&pairs[i]->a, .wr_id = 1, .length = 8,
			 .rkey = ts_wrong_key(pairs[i]->b.mr->rkey));
		ts_failed(t, pairs[i]->a.send_cq, 1, IBV_WC_REM_ACCESS_ERR);
	}
	for (i = 0; i < 4; i++)
		ts_event(t, &t->b, IBV_EVENT_QP_ACCESS_ERR, pairs[i]->b.qp);
}

static void descriptor_is_readable_while_an_event_waits(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);
	struct pollfd fd = {.fd = t->b.ctx->async_fd, .events = POLLIN};

	VT_EQ(t, poll(&fd, 1, 0), 0);
	ts_write(&pair->a, .wr_id = 1, .length = 8, .rkey = ts_wrong_key(pair->b.mr->rkey));
	ts_failed(t, pair->a.send_cq, 1, IBV_WC_REM_ACCESS_ERR);
	ts_settle(t);
	VT_EQ(t, poll(&fd, 1, 0), 1);
	ts_event(t, &t->b, IBV_EVENT_QP_ACCESS_ERR, pair->b.qp);
	VT_EQ(t, poll(&fd, 1, 0), 0);
}

static void no_event_is_eagain(struct vt *t)
{
	struct ibv_async_event event;

	ts_pd(t, &t->a);
	VT_MINUS_ERRNO(t, vb_get_async_event(t->a.ctx, &event), EAGAIN);
}

static void unread_event_ends_with_its_qp(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);

	ts_write(&pair->a, .wr_id = 1, .length = 8, .rkey = ts_wrong_key(pair->b.mr->rkey));
	ts_failed(t, pair->a.send_cq, 1, IBV_WC_REM_ACCESS_ERR);
	ts_settle(t);
	ts_destroy_qp(&pair->b);
	ts_no_event(t, &t->b);
}

/* --- waits that nothing can end, on the virtual clock --- */

static void block(struct vt *t, int fd)
{
	VT_OK(t, fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK));
}

static void hopeless_wait_for_a_completion(struct vt *t)
{
	struct ibv_comp_channel *channel = ts_channel(t, &t->a);
	struct ibv_cq *cq = ts_cq_on(t, &t->a, 4, channel);
	struct ibv_cq *got;
	void *context;

	block(t, channel->fd);
	VT_OK(t, ibv_req_notify_cq(cq, 0));
	VT_MINUS_ERRNO(t, vb_get_cq_event(channel, &got, &context), EDEADLK);
}

static void hopeless_wait_for_an_event(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);
	struct ibv_async_event event;

	ts_transfer(pair, IBV_WR_SEND, 100);
	block(t, t->a.ctx->async_fd);
	VT_MINUS_ERRNO(t, vb_get_async_event(t->a.ctx, &event), EDEADLK);
	VT_OK(t, fcntl(t->a.ctx->async_fd, F_SETFL, O_NONBLOCK));
}

static void wait_for_an_event_runs_the_clock(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair = ts_pair_reset(t, &options);
	struct ibv_async_event event;

	ts_connect(&pair->a);
	ts_to_init(&pair->b);
	ts_to_rtr(&pair->b);
	ts_write(&pair->a, .wr_id = 1, .length = 8);
	block(t, t->b.ctx->async_fd);
	VT_OK(t, vb_get_async_event(t->b.ctx, &event));
	VT_EVENT(t, event.event_type, IBV_EVENT_COMM_EST);
	vb_ack_async_event(&event);
	VT_OK(t, fcntl(t->b.ctx->async_fd, F_SETFL, O_NONBLOCK));
}

static void destroy_qp_waits_for_the_acknowledgement(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);
	struct ibv_async_event event;

	ts_write(&pair->a, .wr_id = 1, .length = 8, .rkey = ts_wrong_key(pair->b.mr->rkey));
	ts_failed(t, pair->a.send_cq, 1, IBV_WC_REM_ACCESS_ERR);
	ts_settle(t);
	VT_OK(t, vb_get_async_event(t->b.ctx, &event));
	VT_ERRNO(t, vb_destroy_qp(pair->b.qp), EDEADLK);
	ts_state(&pair->b, IBV_QPS_ERR);
	vb_ack_async_event(&event);
	ts_destroy_qp(&pair->b);
}

static void destroy_cq_waits_for_the_acknowledgement(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;
	struct ibv_cq *cq;
	void *context;

	options.channels = true;
	pair = ts_pair(t, &options);
	VT_OK(t, ibv_req_notify_cq(pair->a.send_cq, 0));
	ts_write(&pair->a, .wr_id = 1, .length = 8);
	ts_settle(t);
	VT_OK(t, vb_get_cq_event(pair->a.send_channel, &cq, &context));
	ts_destroy_qp(&pair->a);
	VT_ERRNO(t, vb_destroy_cq(pair->a.send_cq), EDEADLK);
	VT_EQ(t, ibv_poll_cq(pair->a.send_cq, 1, &(struct ibv_wc){0}), 1);
	vb_ack_cq_events(cq, 1);
	VT_OK(t, vb_destroy_cq(pair->a.send_cq));
	ts_gone(t, pair->a.send_cq);
}

static const struct vt_test tests[] = {
	{"first_packet_in_rtr_is_comm_est", "ibv_get_async_event(3): COMM_EST", 0,
	 first_packet_in_rtr_is_comm_est},
	{"first_packet_in_rts_raises_none", SRC_QIB "qib_rc.c, qib_rc_rcv: COMM_EST in RTR only", 0,
	 first_packet_in_rts_raises_none},
	{"modify_to_err_raises_none", SRC_RVT "qp.c, rvt_modify_qp: lastwqe, with an SRQ only", 0,
	 modify_to_err_raises_none},
	{"event_goes_to_its_own_context", "ibv_get_async_event(3)", 0,
	 event_goes_to_its_own_context},
	{"events_come_in_order", "unsourced", 0, events_come_in_order},
	{"descriptor_is_readable_while_an_event_waits", "ibv_get_async_event(3), Examples", 0,
	 descriptor_is_readable_while_an_event_waits},
	{"no_event_is_eagain", "ibv_get_async_event(3), Examples", 0, no_event_is_eagain},
	{"unread_event_ends_with_its_qp", SRC_CORE "uverbs_main.c, ib_uverbs_release_uevent", 0,
	 unread_event_ends_with_its_qp},
	{"hopeless_wait_for_a_completion", "unsourced", VT_NEEDS_VIRTUAL_CLOCK,
	 hopeless_wait_for_a_completion},
	{"hopeless_wait_for_an_event", "unsourced", VT_NEEDS_VIRTUAL_CLOCK,
	 hopeless_wait_for_an_event},
	{"wait_for_an_event_runs_the_clock", "unsourced", VT_NEEDS_VIRTUAL_CLOCK,
	 wait_for_an_event_runs_the_clock},
	{"destroy_qp_waits_for_the_acknowledgement",
	 "ibv_get_async_event(3), Notes: destroying waits; EDEADLK: unsourced",
	 VT_NEEDS_VIRTUAL_CLOCK, destroy_qp_waits_for_the_acknowledgement},
	{"destroy_cq_waits_for_the_acknowledgement",
	 "ibv_get_cq_event(3), Notes: destroying waits; EDEADLK: unsourced", VT_NEEDS_VIRTUAL_CLOCK,
	 destroy_cq_waits_for_the_acknowledgement},
	{NULL},
};

const struct vt_suite vt_suite_events = {"events", "asynchronous events", tests};
