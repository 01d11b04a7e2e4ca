/* SPDX-License-Identifier: MIT */
/*
 * Completion queues: order, size, overrun, resizing, and events.
 */
#include "test/conformance/sources.h"
#include "test/support/keep.h"
#include "test/support/support.h"

#include <fcntl.h>

static void holds_at_least_the_entries_asked_for(struct vt *t)
{
	static const int sizes[] = {1, 2, 3, 4, 7, 8, 100, 1000};
	struct ibv_cq *cq;
	size_t i;

	for (i = 0; i < TS_COUNT(sizes); i++) {
		vt_row(t, "%d entries", sizes[i]);
		cq = ts_cq(t, &t->a, sizes[i]);
		VT_EXPECT(t, cq->cqe >= sizes[i]);
		VT_EXPECT(t, cq->context == t->a.ctx);
	}
}

static void bad_sizes_are_einval(struct vt *t)
{
	const int sizes[] = {0, -1, t->a.device_attr.max_cqe + 1};
	size_t i;

	for (i = 0; i < TS_COUNT(sizes); i++) {
		vt_row(t, "%d entries", sizes[i]);
		VT_EXPECT_NULL_ERRNO(t, vb_create_cq(t->a.ctx, sizes[i], NULL, NULL, 0), EINVAL);
	}
}

static void comp_vector_is_checked(struct vt *t)
{
	int past = t->a.ctx->num_comp_vectors;

	VT_NULL_ERRNO(t, vb_create_cq(t->a.ctx, 1, NULL, NULL, past), EINVAL);
	VT_NULL_ERRNO(t, vb_create_cq(t->a.ctx, 1, NULL, NULL, -1), EINVAL);
}

static void context_pointer_is_kept(struct vt *t)
{
	int mine;
	struct ibv_cq *cq = VT_PTR(t, vb_create_cq(t->a.ctx, 1, &mine, NULL, 0));

	VT_CHECK(t, cq->cq_context == &mine);
	VT_CHECK(t, cq->channel == NULL);
	VT_OK(t, vb_destroy_cq(cq));
}

/* A pair whose A has completed `count` writes: each has raised an event, so its completion is in the CQ. */
static struct ts_pair *written(struct vt *t, struct ts_options *options, unsigned int count)
{
	struct ts_pair *pair;
	unsigned int i, tries;

	options->channels = true;
	pair = ts_pair(t, options);
	for (i = 0; i < count; i++) {
		VT_OK(t, ibv_req_notify_cq(pair->a.send_cq, 0));
		ts_write(&pair->a, .wr_id = i, .length = 8);
		for (tries = 0; !ts_cq_event(t, pair->a.send_channel, NULL); tries++)
			VT_CHECK(t, tries < 100);
	}
	return pair;
}

static void poll_takes_as_many_as_asked(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair = written(t, &options, 10);
	struct ibv_wc wc[16];

	VT_EQ(t, ibv_poll_cq(pair->a.send_cq, 0, wc), 0);
	VT_EQ(t, ibv_poll_cq(pair->a.send_cq, 3, wc), 3);
	VT_EQ(t, wc[0].wr_id, 0);
	VT_EQ(t, wc[2].wr_id, 2);
	VT_EQ(t, ibv_poll_cq(pair->a.send_cq, 1, wc), 1);
	VT_EQ(t, wc[0].wr_id, 3);
	VT_EQ(t, ibv_poll_cq(pair->a.send_cq, 16, wc), 6);
	VT_EQ(t, wc[0].wr_id, 4);
	VT_EQ(t, wc[5].wr_id, 9);
	VT_EQ(t, ibv_poll_cq(pair->a.send_cq, 16, wc), 0);
}

static void one_queue_for_sends_and_receives(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_end *end;
	struct ibv_wc wc[2];

	options.one_cq = true;
	end = ts_end(t, &t->a, &options);
	ts_connect(end);
	ts_recv(end, .wr_id = 5, .offset = 1000, .length = 100);
	ts_send(end, .wr_id = 1, .length = 100);
	VT_EQ(t, ts_wait(t, end->send_cq, 2, wc), 2);
	VT_EQ(t, wc[0].wr_id + wc[1].wr_id, 6);
	VT_EQ(t, wc[0].opcode + wc[1].opcode, IBV_WC_SEND + IBV_WC_RECV);
}

static void entries_are_used_again(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;
	unsigned int i;

	options.send_cqe = 3;
	pair = ts_pair(t, &options);
	for (i = 0; i < 100; i++) {
		ts_write(&pair->a, .wr_id = 2 * i, .length = 8);
		ts_write(&pair->a, .wr_id = 2 * i + 1, .length = 8);
		ts_done(t, pair->a.send_cq, 2 * i, IBV_WC_RDMA_WRITE);
		ts_done(t, pair->a.send_cq, 2 * i + 1, IBV_WC_RDMA_WRITE);
	}
}

/* --- overrun --- */

static void overrun_kills_the_cq_and_its_qps(struct vt *t)
{
	struct ts_pair *pair = ts_overrun(t, 1);

	ts_event(t, &t->a, IBV_EVENT_CQ_ERR, pair->a.send_cq);
	ts_event(t, &t->a, IBV_EVENT_QP_FATAL, pair->a.qp);
	ts_no_event(t, &t->a);
	ts_state(&pair->a, IBV_QPS_ERR);
	ts_flushed(t, pair->a.recv_cq, 60);
}

static void overrun_keeps_earlier_completions(struct vt *t)
{
	struct ts_pair *pair = ts_overrun(t, 1);
	struct ibv_wc wc;
	int i;

	for (i = 0; i < pair->a.send_cq->cqe; i++) {
		VT_EQ(t, ibv_poll_cq(pair->a.send_cq, 1, &wc), 1);
		VT_EQ(t, wc.wr_id, i);
		VT_STATUS(t, wc.status, IBV_WC_SUCCESS);
	}
	VT_CHECK(t, ibv_poll_cq(pair->a.send_cq, 1, &wc) < 0);
	VT_CHECK(t, ibv_poll_cq(pair->a.send_cq, 1, &wc) < 0);
	ts_drain_events(&t->a);
}

static void overrun_raises_one_event(struct vt *t)
{
	struct ts_pair *pair = ts_overrun(t, 1);

	ts_event(t, &t->a, IBV_EVENT_CQ_ERR, pair->a.send_cq);
	ts_event(t, &t->a, IBV_EVENT_QP_FATAL, pair->a.qp);
	ts_post(&pair->a, &(struct ts_wr){.wr_id = 99, .opcode = IBV_WR_RDMA_WRITE});
	ts_no_event(t, &t->a);
}

static void receive_cq_overruns_too(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;
	int i;

	options.recv_cqe = 4;
	options.recv_wr = 64;
	options.send_wr = 64;
	pair = ts_pair(t, &options);
	for (i = 0; i <= pair->b.recv_cq->cqe; i++) {
		ts_recv(&pair->b, .wr_id = (uint64_t)i, .length = 8);
		ts_send(&pair->a, .wr_id = (uint64_t)i, .length = 8);
	}
	ts_settle(t);
	ts_event(t, &t->b, IBV_EVENT_CQ_ERR, pair->b.recv_cq);
	ts_event(t, &t->b, IBV_EVENT_QP_FATAL, pair->b.qp);
	ts_state(&pair->b, IBV_QPS_ERR);
}

/* A datagram QP on the same CQ, in RTS. */
static struct ibv_qp *neighbour(struct ts_end *end)
{
	struct ibv_qp *qp = ts_qp(end->t, end->pd, end->send_cq, IBV_QPT_UD);
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
				   .pkey_index = end->node->pkey_index,
				   .port_num = end->node->port,
				   .qkey = TS_QKEY};

	VT_OK(end->t, vb_modify_qp(qp, &attr,
				   IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_QKEY));
	attr.qp_state = IBV_QPS_RTR;
	VT_OK(end->t, vb_modify_qp(qp, &attr, IBV_QP_STATE));
	attr.qp_state = IBV_QPS_RTS;
	VT_OK(end->t, vb_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN));
	return qp;
}

static void overrun_ends_each_qp_that_completes_there(struct vt *t)
{
	struct ts_pair *pair = ts_overrun(t, 1);
	struct ibv_qp *other = neighbour(&pair->a);
	struct ibv_send_wr wr = {
		.wr_id = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
	struct ibv_send_wr *bad;

	ts_drain_events(&t->a);
	VT_STATE(t, ts_query_state(t, other), IBV_QPS_RTS);
	wr.wr.ud.ah = ts_ah(t, pair->a.pd, &t->a, &t->b);
	wr.wr.ud.remote_qpn = 0xfffff0;
	VT_OK(t, ibv_post_send(other, &wr, &bad));
	ts_event(t, &t->a, IBV_EVENT_QP_FATAL, other);
	VT_STATE(t, ts_query_state(t, other), IBV_QPS_ERR);
	ts_no_event(t, &t->a);
}

/* --- resizing --- */

static void resize_keeps_completions(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;
	struct ibv_wc wc[16];
	int i;

	options.send_cqe = 10;
	pair = written(t, &options, 8);
	VT_OK(t, vb_resize_cq(pair->a.send_cq, 100));
	VT_CHECK(t, pair->a.send_cq->cqe >= 100);
	VT_EQ(t, ibv_poll_cq(pair->a.send_cq, 3, wc), 3);
	VT_OK(t, vb_resize_cq(pair->a.send_cq, 5));
	VT_CHECK(t, pair->a.send_cq->cqe >= 5);
	VT_EQ(t, ibv_poll_cq(pair->a.send_cq, 16, wc), 5);
	for (i = 0; i < 5; i++)
		VT_EQ(t, wc[i].wr_id, i + 3);
	ts_transfer(pair, IBV_WR_RDMA_WRITE, 100);
}

static void resize_below_the_completions_is_einval(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair = written(t, &options, 8);
	int before = pair->a.send_cq->cqe;
	struct ibv_wc wc[16];

	VT_ERRNO(t, vb_resize_cq(pair->a.send_cq, 7), EINVAL);
	VT_ERRNO(t, vb_resize_cq(pair->a.send_cq, 0), EINVAL);
	VT_ERRNO(t, vb_resize_cq(pair->a.send_cq, -1), EINVAL);
	VT_ERRNO(t, vb_resize_cq(pair->a.send_cq, t->a.device_attr.max_cqe + 1), EINVAL);
	VT_EQ(t, pair->a.send_cq->cqe, before);
	VT_EQ(t, ibv_poll_cq(pair->a.send_cq, 16, wc), 8);
}

/* --- events --- */

/* One message from A to B, polled at A; its completion stays in B's receive CQ. */
static void message(struct ts_pair *pair, unsigned int flags)
{
	ts_recv(&pair->b, .wr_id = 5, .length = 100);
	ts_send(&pair->a, .wr_id = 1, .length = 100, .flags = flags);
	ts_done(pair->a.t, pair->a.send_cq, 1, IBV_WC_SEND);
	ts_settle(pair->a.t);
}

static bool got_event(struct ts_pair *pair)
{
	struct ibv_cq *cq = NULL;
	bool got = ts_cq_event(pair->a.t, pair->b.recv_channel, &cq);

	if (got)
		VT_CHECK(pair->a.t, cq == pair->b.recv_cq);
	return got;
}

static void unarmed_cq_raises_no_event(struct vt *t)
{
	struct ts_pair *pair = ts_pair_with_channels(t);

	message(pair, IBV_SEND_SOLICITED);
	VT_CHECK(t, !got_event(pair));
}

static void one_event_for_one_arming(struct vt *t)
{
	struct ts_pair *pair = ts_pair_with_channels(t);

	VT_OK(t, ibv_req_notify_cq(pair->b.recv_cq, 0));
	message(pair, 0);
	message(pair, 0);
	VT_CHECK(t, got_event(pair));
	VT_CHECK(t, !got_event(pair));
	VT_OK(t, ibv_req_notify_cq(pair->b.recv_cq, 0));
	message(pair, 0);
	VT_CHECK(t, got_event(pair));
}

static void arming_twice_is_arming_once(struct vt *t)
{
	struct ts_pair *pair = ts_pair_with_channels(t);

	VT_OK(t, ibv_req_notify_cq(pair->b.recv_cq, 0));
	VT_OK(t, ibv_req_notify_cq(pair->b.recv_cq, 0));
	message(pair, 0);
	message(pair, 0);
	VT_CHECK(t, got_event(pair));
	VT_CHECK(t, !got_event(pair));
}

static void arming_raises_no_event_for_earlier_completions(struct vt *t)
{
	struct ts_pair *pair = ts_pair_with_channels(t);

	message(pair, 0);
	VT_OK(t, ibv_req_notify_cq(pair->b.recv_cq, 0));
	VT_CHECK(t, !got_event(pair));
	message(pair, 0);
	VT_CHECK(t, got_event(pair));
}

static void arming_for_solicited_waits_for_a_solicited_one(struct vt *t)
{
	struct ts_pair *pair = ts_pair_with_channels(t);

	VT_OK(t, ibv_req_notify_cq(pair->b.recv_cq, 1));
	message(pair, 0);
	VT_CHECK(t, !got_event(pair));
	message(pair, IBV_SEND_SOLICITED);
	VT_CHECK(t, got_event(pair));
}

static void solicited_write_with_imm(struct vt *t)
{
	struct ts_pair *pair = ts_pair_with_channels(t);

	VT_OK(t, ibv_req_notify_cq(pair->b.recv_cq, 1));
	ts_recv(&pair->b, .wr_id = 5);
	ts_write_imm(&pair->a, .wr_id = 1, .length = 10000, .flags = IBV_SEND_SOLICITED);
	ts_written(t, pair->b.recv_cq, 5, 10000);
	VT_CHECK(t, got_event(pair));
}

static void long_solicited_message(struct vt *t)
{
	struct ts_pair *pair = ts_pair_with_channels(t);

	VT_OK(t, ibv_req_notify_cq(pair->b.recv_cq, 1));
	ts_recv(&pair->b, .wr_id = 5, .length = 20000);
	ts_send(&pair->a, .wr_id = 1, .length = 20000, .flags = IBV_SEND_SOLICITED);
	ts_received(t, pair->b.recv_cq, 5, 20000);
	VT_CHECK(t, got_event(pair));
}

static void error_counts_as_solicited(struct vt *t)
{
	struct ts_pair *pair = ts_pair_with_channels(t);

	ts_recv(&pair->b, .wr_id = 5, .length = 100);
	VT_OK(t, ibv_req_notify_cq(pair->b.recv_cq, 1));
	VT_OK(t, ts_to(&pair->b, IBV_QPS_ERR));
	VT_CHECK(t, got_event(pair));
}

static void successful_send_is_not_solicited(struct vt *t)
{
	struct ts_pair *pair = ts_pair_with_channels(t);
	struct ibv_cq *cq;

	VT_OK(t, ibv_req_notify_cq(pair->a.send_cq, 1));
	message(pair, IBV_SEND_SOLICITED);
	VT_CHECK(t, !ts_cq_event(t, pair->a.send_channel, &cq));
}

static void arming_for_all_overrides_solicited(struct vt *t)
{
	struct ts_pair *pair = ts_pair_with_channels(t);

	VT_OK(t, ibv_req_notify_cq(pair->b.recv_cq, 1));
	VT_OK(t, ibv_req_notify_cq(pair->b.recv_cq, 0));
	message(pair, 0);
	VT_CHECK(t, got_event(pair));
}

static void arming_for_solicited_does_not_override_all(struct vt *t)
{
	struct ts_pair *pair = ts_pair_with_channels(t);

	VT_OK(t, ibv_req_notify_cq(pair->b.recv_cq, 0));
	VT_OK(t, ibv_req_notify_cq(pair->b.recv_cq, 1));
	message(pair, 0);
	VT_CHECK(t, got_event(pair));
}

static void two_cqs_on_one_channel(struct vt *t)
{
	struct ibv_comp_channel *channel = ts_channel(t, &t->a);
	struct ibv_cq *one = ts_cq_on(t, &t->a, 4, channel);
	struct ibv_cq *two = ts_cq_on(t, &t->a, 4, channel);
	struct ibv_pd *pd = ts_pd(t, &t->a);
	struct ibv_qp *qps[2] = {ts_qp(t, pd, one, IBV_QPT_UD), ts_qp(t, pd, two, IBV_QPT_UD)};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	struct ibv_recv_wr wr = {0}, *bad;
	struct ibv_cq *got;
	int i;

	for (i = 0; i < 2; i++) {
		VT_OK(t,
		      vb_modify_qp(qps[i],
				   &(struct ibv_qp_attr){.qp_state = IBV_QPS_INIT,
							 .pkey_index = t->a.pkey_index,
							 .port_num = t->a.port,
							 .qkey = TS_QKEY},
				   IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_QKEY));
		VT_OK(t, ibv_post_recv(qps[i], &wr, &bad));
		VT_OK(t, ibv_req_notify_cq(i ? two : one, 0));
	}
	VT_EQ(t, channel->refcnt, 2);
	VT_OK(t, vb_modify_qp(qps[1], &attr, IBV_QP_STATE));
	VT_CHECK(t, ts_cq_event(t, channel, &got));
	VT_CHECK(t, got == two);
	VT_OK(t, vb_modify_qp(qps[0], &attr, IBV_QP_STATE));
	VT_CHECK(t, ts_cq_event(t, channel, &got));
	VT_CHECK(t, got == one);
	VT_CHECK(t, !ts_cq_event(t, channel, &got));
}

static void empty_channel_is_eagain(struct vt *t)
{
	struct ibv_comp_channel *channel = ts_channel(t, &t->a);
	struct ibv_cq *cq;
	void *context;

	VT_MINUS_ERRNO(t, vb_get_cq_event(channel, &cq, &context), EAGAIN);
}

static void blocking_get_waits_for_the_message(struct vt *t)
{
	struct ts_pair *pair = ts_pair_with_channels(t);
	int fd = pair->b.recv_channel->fd;
	struct ibv_cq *cq;
	void *context;

	VT_OK(t, fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK));
	VT_OK(t, ibv_req_notify_cq(pair->b.recv_cq, 0));
	ts_recv(&pair->b, .wr_id = 5, .length = 100);
	ts_send(&pair->a, .wr_id = 1, .length = 100);
	VT_OK(t, vb_get_cq_event(pair->b.recv_channel, &cq, &context));
	VT_CHECK(t, cq == pair->b.recv_cq);
	vb_ack_cq_events(cq, 1);
	ts_received(t, pair->b.recv_cq, 5, 100);
}

/* --- ends --- */

static void cq_in_use_is_ebusy(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);

	VT_ERRNO(t, vb_destroy_cq(pair->a.send_cq), EBUSY);
	VT_ERRNO(t, vb_destroy_cq(pair->a.recv_cq), EBUSY);
	ts_transfer(pair, IBV_WR_SEND, 100);
}

static void channel_in_use_is_ebusy(struct vt *t)
{
	struct ibv_comp_channel *channel = ts_channel(t, &t->a);
	struct ibv_cq *cq = ts_cq_on(t, &t->a, 4, channel);

	VT_ERRNO(t, vb_destroy_comp_channel(channel), EBUSY);
	VT_OK(t, vb_destroy_cq(cq));
	ts_gone(t, cq);
}

static void cq_with_completions_can_be_destroyed(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair = written(t, &options, 4);

	ts_destroy_qp(&pair->a);
	VT_OK(t, vb_destroy_cq(pair->a.send_cq));
	ts_gone(t, pair->a.send_cq);
}

static void unread_event_ends_with_its_cq(struct vt *t)
{
	struct ts_pair *pair = ts_pair_with_channels(t);
	struct ibv_cq *cq;
	void *context;

	VT_OK(t, ibv_req_notify_cq(pair->b.recv_cq, 0));
	message(pair, 0);
	ts_destroy_qp(&pair->b);
	VT_OK(t, vb_destroy_cq(pair->b.recv_cq));
	ts_gone(t, pair->b.recv_cq);
	VT_MINUS_ERRNO(t, vb_get_cq_event(pair->b.recv_channel, &cq, &context), EAGAIN);
}

static const struct vt_test tests[] = {
	{"holds_at_least_the_entries_asked_for", "ibv_create_cq(3)", 0,
	 holds_at_least_the_entries_asked_for},
	{"bad_sizes_are_einval", SRC_RXE "rxe_cq.c, rxe_cq_chk_attr", 0, bad_sizes_are_einval},
	{"comp_vector_is_checked",
	 "ibv_create_cq(3): comp_vector; EINVAL: " SRC_CORE
	 "uverbs_std_types.c, uverbs_create_cq_handler",
	 0, comp_vector_is_checked},
	{"context_pointer_is_kept", "ibv_create_cq(3): cq_context", 0, context_pointer_is_kept},
	{"poll_takes_as_many_as_asked", "ibv_poll_cq(3)", 0, poll_takes_as_many_as_asked},
	{"one_queue_for_sends_and_receives", "ibv_create_qp(3): send_cq, recv_cq", 0,
	 one_queue_for_sends_and_receives},
	{"entries_are_used_again", "ibv_poll_cq(3)", 0, entries_are_used_again},
	{"overrun_kills_the_cq_and_its_qps",
	 "ibv_poll_cq(3), Notes: CQ_ERR; ibv_get_async_event(3): QP_FATAL", 0,
	 overrun_kills_the_cq_and_its_qps},
	{"overrun_keeps_earlier_completions", "ibv_poll_cq(3), Notes: the CQ cannot be used", 0,
	 overrun_keeps_earlier_completions},
	{"overrun_raises_one_event", "unsourced", 0, overrun_raises_one_event},
	{"receive_cq_overruns_too", "ibv_poll_cq(3), Notes: CQ_ERR", 0, receive_cq_overruns_too},
	{"overrun_ends_each_qp_that_completes_there",
	 "receives: " SRC_RXE "rxe_resp.c, rxe_responder: ERR_CQ_OVERFLOW; sends: unsourced", 0,
	 overrun_ends_each_qp_that_completes_there},
	{"resize_keeps_completions", "ibv_resize_cq(3)", 0, resize_keeps_completions},
	{"resize_below_the_completions_is_einval",
	 "ibv_resize_cq(3): at least the number of unpolled entries; EINVAL: " SRC_RXE
	 "rxe_cq.c, rxe_cq_chk_attr",
	 0, resize_below_the_completions_is_einval},
	{"unarmed_cq_raises_no_event", "ibv_req_notify_cq(3)", 0, unarmed_cq_raises_no_event},
	{"one_event_for_one_arming", "ibv_req_notify_cq(3), Notes: one shot", 0,
	 one_event_for_one_arming},
	{"arming_twice_is_arming_once", SRC_RVT "cq.c, rvt_req_notify_cq: cq->notify is a state", 0,
	 arming_twice_is_arming_once},
	{"arming_raises_no_event_for_earlier_completions",
	 "ibv_req_notify_cq(3): upon the addition of a new CQ entry", 0,
	 arming_raises_no_event_for_earlier_completions},
	{"arming_for_solicited_waits_for_a_solicited_one", "ibv_req_notify_cq(3)", 0,
	 arming_for_solicited_waits_for_a_solicited_one},
	{"solicited_write_with_imm", "ibv_post_send(3): IBV_SEND_SOLICITED", 0,
	 solicited_write_with_imm},
	{"long_solicited_message", "ibv_req_notify_cq(3)", 0, long_solicited_message},
	{"error_counts_as_solicited", "ibv_req_notify_cq(3): the status is not successful", 0,
	 error_counts_as_solicited},
	{"successful_send_is_not_solicited",
	 "ibv_req_notify_cq(3): any successful send completion is unsolicited", 0,
	 successful_send_is_not_solicited},
	{"arming_for_all_overrides_solicited", SRC_RVT "cq.c, rvt_req_notify_cq", 0,
	 arming_for_all_overrides_solicited},
	{"arming_for_solicited_does_not_override_all",
	 SRC_RVT "cq.c, rvt_req_notify_cq: \"Don't change IB_CQ_NEXT_COMP to IB_CQ_SOLICITED\"", 0,
	 arming_for_solicited_does_not_override_all},
	{"two_cqs_on_one_channel", "ibv_create_comp_channel(3)", 0, two_cqs_on_one_channel},
	{"empty_channel_is_eagain", "ibv_get_cq_event(3), Examples", 0, empty_channel_is_eagain},
	{"blocking_get_waits_for_the_message", "ibv_get_cq_event(3)", 0,
	 blocking_get_waits_for_the_message},
	{"cq_in_use_is_ebusy", "ibv_create_cq(3), Notes; EBUSY: " SRC_CORE "verbs.c, ib_destroy_cq",
	 0, cq_in_use_is_ebusy},
	{"channel_in_use_is_ebusy",
	 "ibv_create_comp_channel(3), Notes; EBUSY: " SRC_RDMA_CORE
	 "libibverbs/verbs.c, ibv_destroy_comp_channel",
	 0, channel_in_use_is_ebusy},
	{"cq_with_completions_can_be_destroyed",
	 SRC_CORE "verbs.c, ib_destroy_cq: usecnt is all that holds it", 0,
	 cq_with_completions_can_be_destroyed},
	{"unread_event_ends_with_its_cq", SRC_CORE "uverbs_main.c, ib_uverbs_release_ucq", 0,
	 unread_event_ends_with_its_cq},
	{NULL},
};

const struct vt_suite vt_suite_cq = {"cq", "completion queues and their events", tests};
