/* SPDX-License-Identifier: MIT */
/*
 * SRQs, CQs and tables of ports that change between and under messages, and objects whose
 * completions outlive them.
 */
#include "test/conformance/sources.h"
#include "test/support/keep.h"
#include "test/support/linked_pair.h"
#include "test/support/need.h"
#include "test/support/own_world.h"
#include "test/support/quirks.h"
#include "test/support/srq.h"

#include <poll.h>
#include <verbena/fault.h>
#include <verbena/sim.h>

#define LONG_BYTES 2500u /* three packets */

/* --- SRQs --- */

static void resize_srq(struct vt *t, struct ibv_srq *srq, uint32_t max_wr)
{
	struct ibv_srq_attr attr = {.max_wr = max_wr};

	VT_OK(t, vb_modify_srq(srq, &attr, IBV_SRQ_MAX_WR));
}

/* Posts until the SRQ is full, from wr_id on; returns how many. */
static unsigned int fill_srq(struct ts_shared *shared, uint64_t wr_id)
{
	unsigned int count = 0;

	while (!ts_post_srq(shared, &(struct ts_rr){.wr_id = wr_id + count, .length = 64}))
		count++;
	return count;
}

/* The sizes come one after the other; at each, the SRQ takes as many WRs as it says. */
static void srq_sizes_follow_each_other(struct vt *t)
{
	static const uint32_t sizes[] = {4, 9, 100, 7, 1, 33};
	struct ts_shared *shared = ts_shared_of(t, 4, 1);
	struct ts_pair *pair = ts_pair_on(shared, IBV_QPT_RC);
	uint64_t wr_id = 100;

	ts_need_caps(t, IBV_DEVICE_SRQ_RESIZE, "SRQ that can be resized");
	for (size_t i = 0; i < TS_COUNT(sizes); i++) {
		unsigned int room;

		vt_row(t, "size %u", sizes[i]);
		resize_srq(t, shared->srq, sizes[i]);
		room = ts_query_srq(t, shared->srq).max_wr;
		VT_CHECK(t, room >= sizes[i]);
		if (ts_is_spec(t))
			VT_EXPECT_EQ(t, room, sizes[i]);
		VT_EQ(t, fill_srq(shared, wr_id), room);
		for (unsigned int n = 0; n < room; n++)
			ts_send_over(pair, wr_id + n, 8);
		wr_id += room;
	}
}

/* The SRQ grows while WRs are posted, and while completions of others are unpolled. */
static void srq_grows_under_use(struct vt *t)
{
	struct ts_shared *shared = ts_shared_of(t, 8, 1);
	struct ts_pair *pair = ts_pair_on(shared, IBV_QPT_RC);
	unsigned int room;

	ts_need_caps(t, IBV_DEVICE_SRQ_RESIZE, "SRQ that can be resized");
	for (uint64_t i = 0; i < 6; i++)
		ts_srq_recv(shared, .wr_id = i, .length = 64);
	for (uint64_t i = 0; i < 3; i++)
		ts_send(&pair->a, .wr_id = i, .length = 8);
	for (uint64_t i = 0; i < 3; i++)
		ts_done(t, pair->a.send_cq, i, IBV_WC_SEND);
	resize_srq(t, shared->srq, 20);
	room = ts_query_srq(t, shared->srq).max_wr;
	/* Three WRs are posted; three have completions that nobody has polled. */
	for (uint64_t i = 0; i < 3; i++)
		ts_received(t, pair->b.recv_cq, i, 8);
	VT_EQ(t, fill_srq(shared, 6), room - 3);
	for (unsigned int i = 3; i < 3 + room; i++)
		ts_send_over(pair, i, 8);
	VT_EQ(t, fill_srq(shared, 1000), room);
}

/* Delays all packets of a message behind the first `skip`. */
static unsigned int delay(struct vt *t, uint32_t qpn, uint64_t skip)
{
	return ts_fault(t, &(struct vb_fault_rule){.action = VB_FAULT_DELAY,
						   .dest_qpn = qpn,
						   .skip = skip,
						   .count = 3 - skip,
						   .delay_ns = 50000});
}

static const enum ts_type srq_types[] = {TS_TYPE_RC, TS_TYPE_XRC_SEND};

/* What happens to the SRQ under a message. */
static void change_srq(struct vt *t, struct ts_shared *shared, int change)
{
	struct ibv_srq_attr attr = {.max_wr = 1000, .srq_limit = 1};

	if (change == 0)
		resize_srq(t, shared->srq, 2000);
	else if (change == 1)
		VT_OK(t, vb_modify_srq(shared->srq, &attr, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT));
	else
		ts_arm_srq(t, shared->srq, 1);
	/* The memory that the SRQ had before is used by others. */
	for (uint64_t i = 0; i < 4; i++)
		ts_srq_recv(shared, .wr_id = 200 + i, .offset = 32768, .length = 64);
}

/* The receive that a message has taken stays the message's. */
static void srq_changes_under_a_message(struct vt *t)
{
	ts_world(t);
	ts_need_caps(t, IBV_DEVICE_SRQ_RESIZE, "SRQ that can be resized");
	for (size_t i = 0; i < TS_COUNT(srq_types); i++)
		for (int change = 0; change < 3; change++)
			for (uint64_t arrived = 1; arrived < 3; arrived++) {
				struct ts_link *link;
				struct ts_shared *shared;

				vt_row(t, "%s, change %d behind packet %d",
				       ts_type_names[srq_types[i]], change, (int)arrived);
				link = ts_link(t, srq_types[i]);
				shared = link->xrc ? link->xrc->shared[0] : ts_shared(t);
				if (!link->xrc) {
					const struct ibv_qp_init_attr_ex init = {.srq = shared->srq,
										 .pd = shared->pd};

					ts_remake_qp(link->ends[TS_B], &init);
					link->values[TS_A].dest_qp_num =
						link->ends[TS_B]->qp->qp_num;
				}
				ts_link_connect(link);
				VT_OK(t, ts_post_srq(shared, &(struct ts_rr){.wr_id = 50,
									     .offset = 64,
									     .length = 4096}));
				delay(t, link->ends[TS_B]->qp->qp_num, arrived);
				TS_LINK_POST(link, IBV_WR_SEND, .wr_id = 1, .length = LONG_BYTES);
				VT_OK(t, vb_sim_run(ts_sim(t), 0));
				change_srq(t, shared, change);
				ts_done(t, link->ends[TS_A]->send_cq, 1, IBV_WC_SEND);
				ts_received(t, link->ends[TS_B]->recv_cq, 50, LONG_BYTES);
				ts_verify(t, shared->buffer + 64, LONG_BYTES, 1);
				ts_blank(t, shared->buffer + 32768, 64);
				vb_fault_clear(ts_sim(t));
				ts_drain_events(&t->b);
			}
}

static bool limit_event(struct vt *t)
{
	struct ibv_async_event event;

	ts_settle(t);
	if (vb_get_async_event(t->b.ctx, &event))
		return false;
	vb_ack_async_event(&event);
	VT_EVENT(t, event.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
	return true;
}

/* Limits come one after the other, with messages between them. */
static void srq_limits_follow_each_other(struct vt *t)
{
	static const struct {
		uint32_t limit;
		unsigned int messages; /* after which the event is due; 0: none comes */
	} rows[] = {{5, 4}, {0, 0}, {2, 7}, {8, 1}, {0, 0}, {1, 8}};
	struct ts_shared *shared = ts_shared(t);
	struct ts_pair *pair = ts_pair_on(shared, IBV_QPT_RC);

	for (size_t i = 0; i < TS_COUNT(rows); i++) {
		unsigned int sent = 0;

		vt_row(t, "limit %u", rows[i].limit);
		for (uint64_t n = 0; n < 8; n++)
			ts_srq_recv(shared, .wr_id = n, .length = 64);
		ts_arm_srq(t, shared->srq, rows[i].limit);
		while (sent < 8) {
			ts_send_over(pair, sent++, 8);
			VT_EXPECT_EQ(t, limit_event(t), sent == rows[i].messages);
		}
		VT_EXPECT_EQ(t, ts_query_srq(t, shared->srq).srq_limit, 0);
	}
}

/* An armed SRQ is armed anew: the last limit holds. */
static void last_srq_limit_holds(struct vt *t)
{
	static const uint32_t limits[][2] = {{2, 6}, {6, 2}, {3, 0}, {0, 3}};
	struct ts_shared *shared = ts_shared(t);
	struct ts_pair *pair = ts_pair_on(shared, IBV_QPT_RC);

	for (size_t i = 0; i < TS_COUNT(limits); i++) {
		const uint32_t limit = limits[i][1];

		vt_row(t, "limit %u, then %u", limits[i][0], limit);
		for (uint64_t n = 0; n < 8; n++)
			ts_srq_recv(shared, .wr_id = n, .length = 64);
		ts_arm_srq(t, shared->srq, limits[i][0]);
		ts_arm_srq(t, shared->srq, limit);
		VT_EXPECT_EQ(t, ts_query_srq(t, shared->srq).srq_limit, limit);
		for (uint32_t left = 8; left-- > 0;) {
			ts_send_over(pair, 7 - left, 8);
			VT_EXPECT_EQ(t, limit_event(t), limit && left == limit - 1);
		}
	}
}

/* --- CQs --- */

/* Completes `count` writes into A's send CQ; none is polled. */
static void complete(struct ts_pair *pair, int first, int count)
{
	for (int i = 0; i < count; i++)
		ts_write(&pair->a, .wr_id = (uint64_t)(first + i), .length = 8);
	ts_settle(pair->a.t);
}

static void poll_all(struct ts_pair *pair, int first, int count)
{
	for (int i = 0; i < count; i++)
		ts_done(pair->a.t, pair->a.send_cq, (uint64_t)(first + i), IBV_WC_RDMA_WRITE);
}

/* The sizes come one after the other; each holds what it says, with old entries in it. */
static void cq_sizes_follow_each_other(struct vt *t)
{
	static const int sizes[] = {4, 30, 9, 60, 5};
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;
	int next = 0;

	options.send_cqe = 4;
	options.send_wr = 128;
	pair = ts_pair(t, &options);
	for (size_t i = 0; i < TS_COUNT(sizes); i++) {
		int old, size;

		vt_row(t, "size %d", sizes[i]);
		complete(pair, next, 2);
		VT_OK(t, vb_resize_cq(pair->a.send_cq, sizes[i]));
		size = pair->a.send_cq->cqe;
		VT_CHECK(t, size >= sizes[i]);
		if (ts_is_spec(t))
			VT_EXPECT_EQ(t, size, sizes[i]);
		old = next;
		next += 2;
		complete(pair, next, size - 2);
		next += size - 2;
		ts_no_event(t, &t->a);
		poll_all(pair, old, next - old);
	}
}

/* A smaller CQ overruns at its new size. */
static void smaller_cq_overruns_at_its_size(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;
	struct ibv_wc wc;
	int size;

	options.send_cqe = 100;
	options.send_wr = 128;
	pair = ts_pair(t, &options);
	complete(pair, 0, 50);
	poll_all(pair, 0, 50);
	VT_OK(t, vb_resize_cq(pair->a.send_cq, 5));
	size = pair->a.send_cq->cqe;
	VT_CHECK(t, size < 100);
	complete(pair, 50, size + 1);
	ts_event(t, &t->a, IBV_EVENT_CQ_ERR, pair->a.send_cq);
	for (int i = 0; i < size; i++)
		ts_done(t, pair->a.send_cq, (uint64_t)(50 + i), IBV_WC_RDMA_WRITE);
	VT_EQ(t, ibv_poll_cq(pair->a.send_cq, 1, &wc), -1);
	ts_drain_events(&t->a);
}

/* Polling after the change frees the slots of the send queue as before it. */
static void resized_cq_gives_slots_back(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	const struct ts_wr wr = {.opcode = IBV_WR_RDMA_WRITE, .length = 8};
	struct ts_pair *pair;
	uint32_t room, again = 0;

	options.send_wr = 8;
	pair = ts_pair(t, &options);
	room = pair->a.cap.max_send_wr;
	complete(pair, 0, (int)room);
	VT_OK(t, vb_resize_cq(pair->a.send_cq, 200));
	poll_all(pair, 0, (int)room);
	while (again < room && !ts_post(&pair->a, &wr))
		again++;
	VT_EQ(t, again, room);
	VT_EQ(t, ts_post(&pair->a, &wr), ENOMEM);
}

/* An arming, for all or for solicited completions, outlives the change. */
static void resized_cq_stays_armed(struct vt *t)
{
	for (int solicited = 0; solicited < 2; solicited++) {
		struct ts_pair *pair = ts_pair_with_channels(t);

		vt_row(t, "armed for %s completions", solicited ? "solicited" : "all");
		for (uint64_t i = 0; i < 3; i++)
			ts_recv(&pair->b, .wr_id = i, .length = 64);
		ts_send(&pair->a, .wr_id = 0, .length = 8);
		ts_received(t, pair->b.recv_cq, 0, 8);
		VT_OK(t, ibv_req_notify_cq(pair->b.recv_cq, solicited));
		VT_OK(t, vb_resize_cq(pair->b.recv_cq, 200));
		VT_EXPECT(t, !ts_cq_event(t, pair->b.recv_channel, NULL));
		ts_send(&pair->a, .wr_id = 1, .length = 8);
		VT_EXPECT_EQ(t, ts_cq_event(t, pair->b.recv_channel, NULL), !solicited);
		ts_send(&pair->a, .wr_id = 2, .length = 8, .flags = IBV_SEND_SOLICITED);
		VT_EXPECT_EQ(t, ts_cq_event(t, pair->b.recv_channel, NULL), solicited);
	}
}

/* Both CQs change under a message of three packets. */
static void cq_changes_under_a_message(struct vt *t)
{
	static const int sizes[] = {1, 500};

	ts_world(t);
	for (size_t i = 0; i < TS_COUNT(sizes); i++) {
		struct ts_link *link = ts_link(t, TS_TYPE_RC);

		vt_row(t, "size %d", sizes[i]);
		ts_link_connect(link);
		ts_link_warm(link);
		TS_LINK_RECV(link, .wr_id = 50, .length = LONG_BYTES);
		delay(t, link->ends[TS_B]->qp->qp_num, 1);
		TS_LINK_POST(link, IBV_WR_SEND, .wr_id = 1, .length = LONG_BYTES);
		VT_OK(t, vb_sim_run(ts_sim(t), 0));
		VT_OK(t, vb_resize_cq(link->ends[TS_A]->send_cq, sizes[i]));
		VT_OK(t, vb_resize_cq(link->ends[TS_B]->recv_cq, sizes[i]));
		ts_done(t, link->ends[TS_A]->send_cq, 1, IBV_WC_SEND);
		ts_received(t, link->ends[TS_B]->recv_cq, 50, LONG_BYTES);
		vb_fault_clear(ts_sim(t));
		ts_link_warm(link);
	}
}

static int moderate(struct ibv_cq *cq, uint16_t count, uint16_t period_us)
{
	struct ibv_modify_cq_attr attr = {
		.attr_mask = IBV_CQ_ATTR_MODERATE,
		.moderate = {.cq_count = count, .cq_period = period_us},
	};

	return vb_modify_cq(cq, &attr);
}

/* Counts come one after the other; the event comes with the last completion of the count. */
static void moderation_follows_the_last_modify(struct vt *t)
{
	static const uint16_t counts[] = {1, 4, 2, 0, 3, 1};
	struct ibv_device_attr_ex device = {0};
	struct ts_pair *pair;

	ts_prompt(t);
	VT_OK(t, vb_query_device_ex(t->a.ctx, NULL, &device, sizeof(device)));
	if (!device.cq_mod_caps.max_cq_count)
		VT_SKIP(t, "the device has no CQ moderation");
	pair = ts_pair_with_channels(t);
	for (size_t i = 0; i < TS_COUNT(counts); i++) {
		const unsigned int due = counts[i] ? counts[i] : 1;

		vt_row(t, "count %u", counts[i]);
		VT_OK(t, moderate(pair->a.send_cq, counts[i], counts[i] ? 4000 : 0));
		VT_OK(t, vb_resize_cq(pair->a.send_cq, 64 + (int)i));
		VT_OK(t, ibv_req_notify_cq(pair->a.send_cq, 0));
		for (unsigned int n = 1; n <= due; n++) {
			/* Asking the channel for an event would let the period pass. */
			struct pollfd fd = {.fd = pair->a.send_channel->fd, .events = POLLIN};

			ts_write(&pair->a, .wr_id = n, .length = 8);
			VT_OK(t, vb_sim_run(ts_sim(t), 0));
			VT_EXPECT_EQ(t, poll(&fd, 1, 0), n == due);
		}
		VT_EXPECT(t, ts_cq_event(t, pair->a.send_channel, NULL));
		poll_all(pair, 1, (int)due);
	}
}

/* --- tables of ports --- */

/* Two connections use two entries of a table; a change of one entry ends the other's traffic not. */
static void write_ends(struct vt *t, struct ts_link *link, bool arrives)
{
	struct ibv_wc wc;

	TS_LINK_POST(link, IBV_WR_RDMA_WRITE, .wr_id = 1, .length = 8);
	VT_EQ(t, ts_wait(t, link->ends[TS_A]->send_cq, 1, &wc), 1);
	VT_EXPECT_STATUS(t, wc.status, arrives ? IBV_WC_SUCCESS : IBV_WC_RETRY_EXC_ERR);
}

static void pkey_entries_are_apart(struct vt *t)
{
	struct ts_link *links[2];

	ts_world(t);
	for (int i = 0; i < 2; i++) {
		links[i] = ts_link(t, TS_TYPE_RC);
		links[i]->values[TS_A].pkey_index = links[i]->values[TS_B].pkey_index =
			(uint16_t)(1 + i);
		ts_link_connect(links[i]);
		ts_link_warm(links[i]);
	}
	VT_OK(t, vb_sim_set_pkey(t->b.ctx, 1, 2, 0x8777));
	write_ends(t, links[0], true);
	write_ends(t, links[1], false);
	write_ends(t, links[0], true);
	VT_OK(t, vb_sim_set_pkey(t->a.ctx, 1, 2, 0x8777));
	ts_link_connect(links[1]);
	ts_link_warm(links[1]);
	ts_link_warm(links[0]);
}

/* Entries of the two ends may stand at different indices: only the P_Keys count. */
static void pkey_indices_may_differ(struct vt *t)
{
	static const enum ts_type types[] = {TS_TYPE_RC, TS_TYPE_UC, TS_TYPE_UD, TS_TYPE_XRC_SEND};

	ts_world(t);
	VT_OK(t, vb_sim_set_pkey(t->b.ctx, 1, 3, ts_world_pkeys[1]));
	for (size_t i = 0; i < TS_COUNT(types); i++) {
		struct ts_link *link = ts_link(t, types[i]);

		vt_row(t, "%s", ts_type_names[types[i]]);
		link->values[TS_A].pkey_index = 1;
		link->values[TS_B].pkey_index = 3;
		ts_link_connect(link);
		ts_link_warm(link);
		VT_EXPECT_EQ(t, ts_link_send(link, 8).pkey_index, 3);
	}
}

static void gid_entries_are_apart(struct vt *t)
{
	struct ts_link *links[2];
	union ibv_gid gid;

	ts_world(t);
	for (uint8_t i = 0; i < 2; i++) {
		links[i] = ts_link(t, TS_TYPE_RC);
		for (int which = 0; which < 2; which++) {
			struct ibv_ah_attr *av = &links[i]->values[which].ah_attr;
			const struct vt_node *other = links[i]->ends[!which]->node;

			av->grh.sgid_index = (uint8_t)(1 + i);
			VT_OK(t, vb_query_gid(other->ctx, 1, 1 + i, &av->grh.dgid));
		}
		ts_link_connect(links[i]);
		ts_link_warm(links[i]);
	}
	VT_OK(t, vb_query_gid(t->b.ctx, 1, 2, &gid));
	gid.raw[15] ^= 0x40;
	VT_OK(t, vb_sim_set_gid(t->b.ctx, 1, 2, &gid));
	write_ends(t, links[0], true);
	write_ends(t, links[1], false);
	write_ends(t, links[0], true);
}

/* The state of port 2 is no matter to a connection of port 1, and the other way round. */
static void ports_are_apart(struct vt *t)
{
	struct ts_link *link;

	ts_world(t);
	link = ts_link(t, TS_TYPE_RC);
	ts_link_connect(link);
	ts_link_warm(link);
	VT_OK(t, vb_sim_port_state(t->a.ctx, 2, false));
	VT_OK(t, vb_sim_port_state(t->b.ctx, 2, false));
	ts_link_warm(link);
	VT_OK(t, vb_sim_port_state(t->b.ctx, 1, false));
	write_ends(t, link, false);
	VT_OK(t, vb_sim_port_state(t->b.ctx, 2, true));
	ts_link_connect(link);
	write_ends(t, link, false);
	VT_OK(t, vb_sim_port_state(t->b.ctx, 1, true));
	ts_link_connect(link);
	ts_link_warm(link);
}

/* --- completions that outlive what they are of --- */

/* Posts receives until the queue is full; returns how many. */
static unsigned int fill_receives(struct ts_end *end)
{
	unsigned int count = 0;

	while (!ts_post_rr(end, &(struct ts_rr){.wr_id = 100 + count, .length = 64}))
		count++;
	return count;
}

static void receive_four(struct ts_pair *pair)
{
	struct vt *t = pair->a.t;

	for (uint64_t i = 0; i < 4; i++) {
		ts_recv(&pair->b, .wr_id = i, .length = 64);
		ts_send(&pair->a, .wr_id = i, .length = 8);
		ts_done(t, pair->a.send_cq, i, IBV_WC_SEND);
	}
}

/* Polling completions of an earlier life of the QP frees no slot of the present one. */
static void old_completions_free_no_slots(struct vt *t)
{
	const struct ibv_qp_init_attr_ex same = {0};

	for (int destroyed = 0; destroyed < 2; destroyed++) {
		struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);
		unsigned int room;
		struct ibv_wc wc[4];

		vt_row(t, "the QP was %s", destroyed ? "destroyed" : "reset");
		receive_four(pair);
		if (destroyed)
			ts_remake_qp(&pair->b, &same);
		else
			VT_OK(t, ts_to(&pair->b, IBV_QPS_RESET));
		ts_to_init(&pair->b);
		room = fill_receives(&pair->b);
		VT_EXPECT(t, room >= pair->b.cap.max_recv_wr);
		ts_wait(t, pair->b.recv_cq, 4, wc);
		VT_EXPECT_EQ(t, fill_receives(&pair->b), 0);
	}
}

/* The same with an SRQ: its completions are polled when it is gone and another one is there. */
static void completions_outlive_their_srq(struct vt *t)
{
	struct ts_shared *first = ts_shared(t), *second;
	struct ts_pair *pair = ts_pair_on(first, IBV_QPT_RC);
	struct ibv_cq *cq = pair->b.recv_cq;
	unsigned int room;

	for (uint64_t i = 0; i < 4; i++) {
		ts_srq_recv(first, .wr_id = 10 + i, .length = 64);
		ts_send(&pair->a, .wr_id = i, .length = 8);
		ts_done(t, pair->a.send_cq, i, IBV_WC_SEND);
	}
	ts_destroy_qp(&pair->b);
	VT_OK(t, vb_destroy_srq(first->srq));
	ts_gone(t, first->srq);
	second = ts_shared(t);
	room = fill_srq(second, 100);
	VT_EXPECT(t, room >= second->attr.max_wr);
	for (uint64_t i = 0; i < 4; i++)
		ts_received(t, cq, 10 + i, 8);
	VT_EXPECT_EQ(t, fill_srq(second, 200), 0);
}

#define SRQ	VT_NEEDS_SRQ
#define VIRTUAL (VT_NEEDS_SIM | VT_NEEDS_FAULTS | VT_NEEDS_VIRTUAL_CLOCK | VT_NEEDS_MTU_1024)

static const struct vt_test tests[] = {
	{"srq_sizes_follow_each_other", "ibv_modify_srq(3): IBV_SRQ_MAX_WR", SRQ,
	 srq_sizes_follow_each_other},
	{"srq_grows_under_use", "ibv_modify_srq(3): IBV_SRQ_MAX_WR", SRQ, srq_grows_under_use},
	{"srq_changes_under_a_message", "ibv_modify_srq(3)", SRQ | VIRTUAL,
	 srq_changes_under_a_message},
	{"srq_limits_follow_each_other", "ibv_modify_srq(3): IBV_SRQ_LIMIT", SRQ,
	 srq_limits_follow_each_other},
	{"last_srq_limit_holds", "ibv_modify_srq(3): IBV_SRQ_LIMIT", SRQ, last_srq_limit_holds},
	{"cq_sizes_follow_each_other", "ibv_resize_cq(3)", 0, cq_sizes_follow_each_other},
	{"smaller_cq_overruns_at_its_size", "ibv_resize_cq(3), ibv_poll_cq(3)", 0,
	 smaller_cq_overruns_at_its_size},
	{"resized_cq_gives_slots_back", "ibv_resize_cq(3)", 0, resized_cq_gives_slots_back},
	{"resized_cq_stays_armed", "ibv_resize_cq(3), ibv_req_notify_cq(3)", 0,
	 resized_cq_stays_armed},
	{"cq_changes_under_a_message", "ibv_resize_cq(3)", VIRTUAL, cq_changes_under_a_message},
	{"moderation_follows_the_last_modify", "ibv_modify_cq(3)", VIRTUAL,
	 moderation_follows_the_last_modify},
	{"pkey_entries_are_apart", "ibv_query_pkey(3)", VIRTUAL, pkey_entries_are_apart},
	{"pkey_indices_may_differ", SRC_RXE "rxe_recv.c, check_keys", VIRTUAL,
	 pkey_indices_may_differ},
	{"gid_entries_are_apart", "ibv_query_gid(3)", VIRTUAL | VT_NEEDS_ETHERNET,
	 gid_entries_are_apart},
	{"ports_are_apart", "ibv_query_port(3)", VIRTUAL, ports_are_apart},
	{"old_completions_free_no_slots", "unsourced", 0, old_completions_free_no_slots},
	{"completions_outlive_their_srq", "unsourced", SRQ, completions_outlive_their_srq},
	{NULL},
};

const struct vt_suite vt_suite_changes = {"changes", "SRQs, CQs and ports that change in use",
					  tests};
