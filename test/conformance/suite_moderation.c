/* SPDX-License-Identifier: MIT */
/*
 * Moderated CQs: one event for several completions. ibv_modify_cq(3) says only "number of
 * completions per event" and "in micro seconds". These tests decide the rest:
 *  - The event comes after cq_count completions or cq_period after the first of them, whichever is
 *    earlier. If either is 0, or cq_count is 1, the event comes at once.
 *  - The CQ counts the completions that would give the event without moderation: those since the
 *    arming and, if it is armed for solicited ones, only solicited and failed ones.
 *  - Polling leaves the count as it is. The next arming starts the count at 0.
 *  - New values apply to an event that is already waiting.
 */
#include "test/support/keep.h"
#include "test/support/quirks.h"
#include "test/support/support.h"

#include <fcntl.h>
#include <verbena/sim.h>

#define MAN	 "ibv_modify_cq(3)"
#define LIMIT_NS 3000000000ull
/*
 * The largest cq_period of mlx5, which has 12 bits. On the virtual clock a test takes no real
 * time.
 */
#define PERIOD_US 4000u

static struct ibv_cq_moderation_caps caps_of(struct vt *t, struct vt_node *node)
{
	struct ibv_device_attr_ex attr = {0};

	VT_OK(t, vb_query_device_ex(node->ctx, NULL, &attr, sizeof(attr)));
	return attr.cq_mod_caps;
}

static int moderate(struct ibv_cq *cq, uint16_t count, uint16_t period_us)
{
	struct ibv_modify_cq_attr attr = {
		.attr_mask = IBV_CQ_ATTR_MODERATE,
		.moderate = {.cq_count = count, .cq_period = period_us},
	};

	return vb_modify_cq(cq, &attr);
}

static struct ts_pair *with_channels(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);

	ts_prompt(t);
	if (!caps_of(t, &t->a).max_cq_count || !caps_of(t, &t->b).max_cq_count)
		VT_SKIP(t, "the device has no CQ moderation");
	options.channels = true;
	return ts_pair(t, &options);
}

/* Lets A complete `count` writes into its send CQ; none is polled. */
static void complete(struct ts_pair *pair, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		ts_write(&pair->a, .length = 8);
	if (ts_virtual(pair->a.t))
		VT_OK(pair->a.t, vb_sim_run(ts_sim(pair->a.t), 0));
}

static bool may_come(struct vt *t, uint64_t since_ns)
{
	if (ts_virtual(t))
		return vb_sim_next_ns(ts_sim(t)) != VB_SIM_NEVER;
	ts_pause(t, 1000000);
	return ts_now_ns(t) - since_ns < LIMIT_NS;
}

/* Waits for an event. Returns how long it took, or VB_SIM_NEVER if none came. */
static uint64_t event_after_ns(struct vt *t, struct ibv_comp_channel *channel)
{
	uint64_t since_ns = ts_now_ns(t);
	struct ibv_cq *cq;
	void *context;
	bool more;

	do {
		more = may_come(t, since_ns);
		if (!vb_get_cq_event(channel, &cq, &context)) {
			vb_ack_cq_events(cq, 1);
			return ts_now_ns(t) - since_ns;
		}
	} while (more);
	return VB_SIM_NEVER;
}

static void event_waits_for_count_or_period(struct vt *t)
{
	static const struct {
		const char *name;
		uint16_t count, period_us;
		unsigned int completions;
		uint64_t wait_us;
	} rows[] = {
		{"both are 0", 0, 0, 1, 0},
		{"no count", 0, PERIOD_US, 1, 0},
		{"no period", 4, 0, 1, 0},
		{"a count of 1", 1, PERIOD_US, 1, 0},
		{"one of two", 2, PERIOD_US, 1, PERIOD_US},
		{"two of two", 2, PERIOD_US, 2, 0},
		{"three of four", 4, PERIOD_US, 3, PERIOD_US},
		{"four of four", 4, PERIOD_US, 4, 0},
		{"five of four", 4, PERIOD_US, 5, 0},
		{"a period of 1 us", 4, 1, 1, 1},
	};
	struct ts_pair *pair = with_channels(t);
	struct ibv_wc wc[8];
	uint64_t before_ns, after_ns;

	for (size_t i = 0; i < TS_COUNT(rows); i++) {
		vt_row(t, "%s", rows[i].name);
		VT_OK(t, moderate(pair->a.send_cq, rows[i].count, rows[i].period_us));
		VT_OK(t, ibv_req_notify_cq(pair->a.send_cq, 0));
		before_ns = ts_now_ns(t);
		complete(pair, rows[i].completions);
		VT_CHECK(t, event_after_ns(t, pair->a.send_channel) != VB_SIM_NEVER);
		after_ns = ts_now_ns(t) - before_ns;
		VT_EXPECT(t, after_ns >= rows[i].wait_us * 1000);
		if (ts_virtual(t))
			VT_EXPECT_EQ(t, after_ns, rows[i].wait_us * 1000);
		VT_EQ(t, ts_wait(t, pair->a.send_cq, (int)rows[i].completions, wc),
		      rows[i].completions);
	}
}

/* The descriptor becomes readable when the period ends, though nobody calls a verb then. */
static void blocking_get_waits_for_the_period(struct vt *t)
{
	struct ts_pair *pair = with_channels(t);
	int fd = pair->a.send_channel->fd;
	uint64_t before_ns;
	struct ibv_cq *cq;
	void *context;

	VT_OK(t, fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK));
	VT_OK(t, moderate(pair->a.send_cq, 8, PERIOD_US));
	VT_OK(t, ibv_req_notify_cq(pair->a.send_cq, 0));
	before_ns = ts_now_ns(t);
	ts_write(&pair->a, .length = 8);
	VT_OK(t, vb_get_cq_event(pair->a.send_channel, &cq, &context));
	vb_ack_cq_events(cq, 1);
	VT_CHECK(t, ts_now_ns(t) - before_ns >= PERIOD_US * 1000);
}

/* A later completion does not restart the period that the first one started. */
static void period_begins_with_the_first(struct vt *t)
{
	struct ts_pair *pair = with_channels(t);
	uint64_t before_ns;

	VT_OK(t, moderate(pair->a.send_cq, 8, 100));
	VT_OK(t, ibv_req_notify_cq(pair->a.send_cq, 0));
	VT_OK(t, vb_sim_run(ts_sim(t), 50000));
	before_ns = ts_now_ns(t);
	for (int i = 0; i < 3; i++) {
		complete(pair, 1);
		VT_OK(t, vb_sim_run(ts_sim(t), 30000));
	}
	VT_EQ(t, event_after_ns(t, pair->a.send_channel), 10000);
	VT_EQ(t, ts_now_ns(t) - before_ns, 100000);
}

static void each_arming_begins_anew(struct vt *t)
{
	struct ts_pair *pair = with_channels(t);

	VT_OK(t, moderate(pair->a.send_cq, 4, 100));
	complete(pair, 3);
	VT_EQ(t, event_after_ns(t, pair->a.send_channel), VB_SIM_NEVER);
	for (int i = 0; i < 2; i++) {
		VT_OK(t, ibv_req_notify_cq(pair->a.send_cq, 0));
		VT_EQ(t, event_after_ns(t, pair->a.send_channel), VB_SIM_NEVER);
		complete(pair, 1);
		/* Arming an armed CQ again changes nothing. */
		VT_OK(t, ibv_req_notify_cq(pair->a.send_cq, 0));
		VT_EQ(t, event_after_ns(t, pair->a.send_channel), 100000);
		VT_EQ(t, event_after_ns(t, pair->a.send_channel), VB_SIM_NEVER);
	}
	VT_OK(t, ibv_req_notify_cq(pair->a.send_cq, 0));
	complete(pair, 4);
	VT_EQ(t, event_after_ns(t, pair->a.send_channel), 0);
	complete(pair, 1);
	VT_EQ(t, event_after_ns(t, pair->a.send_channel), VB_SIM_NEVER);
}

static void polling_takes_nothing_from_the_count(struct vt *t)
{
	struct ts_pair *pair = with_channels(t);
	struct ibv_wc wc;

	VT_OK(t, moderate(pair->a.send_cq, 2, 100));
	VT_OK(t, ibv_req_notify_cq(pair->a.send_cq, 0));
	complete(pair, 1);
	VT_EQ(t, ibv_poll_cq(pair->a.send_cq, 1, &wc), 1);
	complete(pair, 1);
	VT_EQ(t, event_after_ns(t, pair->a.send_channel), 0);
}

static void message(struct ts_pair *pair, uint64_t wr_id, unsigned int flags)
{
	ts_recv(&pair->b, .wr_id = wr_id, .length = 64);
	ts_send(&pair->a, .wr_id = wr_id, .length = 64, .flags = flags);
	VT_OK(pair->a.t, vb_sim_run(ts_sim(pair->a.t), 0));
}

/* If the CQ is armed for solicited completions, others do not count and start no period. */
static void unsolicited_completions_do_not_count(struct vt *t)
{
	struct ts_pair *pair = with_channels(t);

	VT_OK(t, moderate(pair->b.recv_cq, 2, 100));
	VT_OK(t, ibv_req_notify_cq(pair->b.recv_cq, 1));
	for (uint64_t i = 0; i < 3; i++)
		message(pair, i, 0);
	VT_EQ(t, event_after_ns(t, pair->b.recv_channel), VB_SIM_NEVER);
	message(pair, 3, IBV_SEND_SOLICITED);
	message(pair, 4, 0);
	VT_EQ(t, event_after_ns(t, pair->b.recv_channel), 100000);
	VT_OK(t, ibv_req_notify_cq(pair->b.recv_cq, 1));
	message(pair, 5, IBV_SEND_SOLICITED);
	message(pair, 6, IBV_SEND_SOLICITED);
	VT_EQ(t, event_after_ns(t, pair->b.recv_channel), 0);
}

/* A failed completion counts as a solicited one. */
static void failed_completions_count_as_solicited(struct vt *t)
{
	struct ts_pair *pair = with_channels(t);

	for (uint64_t i = 0; i < 2; i++)
		ts_recv(&pair->b, .wr_id = i, .length = 64);
	VT_OK(t, moderate(pair->b.recv_cq, 2, 100));
	VT_OK(t, ibv_req_notify_cq(pair->b.recv_cq, 1));
	VT_OK(t, ts_to(&pair->b, IBV_QPS_ERR));
	VT_EQ(t, event_after_ns(t, pair->b.recv_channel), 0);
	VT_OK(t, ibv_req_notify_cq(pair->b.recv_cq, 1));
	ts_recv(&pair->b, .wr_id = 2, .length = 64);
	VT_EQ(t, event_after_ns(t, pair->b.recv_channel), 100000);
}

static void new_values_apply_to_a_waiting_event(struct vt *t)
{
	static const struct {
		const char *name;
		uint16_t count, period_us;
		uint64_t after_us; /* after the 50 us that have passed */
	} rows[] = {
		{"fewer than wait", 2, 100, 0}, {"as many as wait", 3, 100, 0},
		{"more than wait", 5, 100, 50}, {"longer", 4, 200, 150},
		{"shorter", 4, 60, 10},		{"over already", 4, 40, 0},
		{"over just now", 4, 50, 0},	{"off", 0, 0, 0},
		{"off by its period", 4, 0, 0},
	};
	struct ts_pair *pair = with_channels(t);
	struct ibv_wc wc[4];

	for (size_t i = 0; i < TS_COUNT(rows); i++) {
		vt_row(t, "%s", rows[i].name);
		VT_OK(t, moderate(pair->a.send_cq, 4, 100));
		VT_OK(t, ibv_req_notify_cq(pair->a.send_cq, 0));
		complete(pair, 3);
		VT_OK(t, vb_sim_run(ts_sim(t), 50000));
		VT_OK(t, moderate(pair->a.send_cq, rows[i].count, rows[i].period_us));
		VT_EXPECT_EQ(t, event_after_ns(t, pair->a.send_channel), rows[i].after_us * 1000);
		VT_EQ(t, ts_wait(t, pair->a.send_cq, 3, wc), 3);
	}
	/* No completion waits, so there is no event. */
	VT_OK(t, ibv_req_notify_cq(pair->a.send_cq, 0));
	VT_OK(t, moderate(pair->a.send_cq, 0, 0));
	VT_EQ(t, event_after_ns(t, pair->a.send_channel), VB_SIM_NEVER);
}

static void destroyed_while_an_event_waits(struct vt *t)
{
	struct ts_pair *pair = with_channels(t);

	VT_OK(t, moderate(pair->a.send_cq, 4, 100));
	VT_OK(t, ibv_req_notify_cq(pair->a.send_cq, 0));
	complete(pair, 1);
	ts_destroy_qp(&pair->a);
	VT_OK(t, vb_destroy_cq(pair->a.send_cq));
	ts_gone(t, pair->a.send_cq);
	VT_EQ(t, event_after_ns(t, pair->a.send_channel), VB_SIM_NEVER);
}

static void limits_are_the_devices(struct vt *t)
{
	struct ibv_cq_moderation_caps caps = caps_of(t, &t->a);
	struct ibv_cq *cq = ts_cq(t, &t->a, 16);

	if (!caps.max_cq_count)
		VT_SKIP(t, "the device has no CQ moderation");
	VT_OK(t, moderate(cq, caps.max_cq_count, caps.max_cq_period));
	VT_OK(t, moderate(cq, 0, 0));
	if (caps.max_cq_count < UINT16_MAX)
		VT_ERRNO(t, moderate(cq, caps.max_cq_count + 1, 1), EINVAL);
	if (caps.max_cq_period < UINT16_MAX)
		VT_ERRNO(t, moderate(cq, 1, caps.max_cq_period + 1), EINVAL);
}

static void masks_are_checked(struct vt *t)
{
	struct ibv_cq *cq = ts_cq(t, &t->a, 16);
	struct ibv_modify_cq_attr attr = {.attr_mask = 0};

	if (!caps_of(t, &t->a).max_cq_count)
		VT_SKIP(t, "the device has no CQ moderation");
	VT_ERRNO(t, vb_modify_cq(cq, &attr), EINVAL);
	attr.attr_mask = IBV_CQ_ATTR_MODERATE << 1;
	VT_ERRNO(t, vb_modify_cq(cq, &attr), EOPNOTSUPP);
	attr.attr_mask |= IBV_CQ_ATTR_MODERATE;
	VT_ERRNO(t, vb_modify_cq(cq, &attr), EOPNOTSUPP);
}

#define VIRTUAL (VT_NEEDS_SIM | VT_NEEDS_VIRTUAL_CLOCK)

static const struct vt_test tests[] = {
	{"event_waits_for_count_or_period", MAN "; what 0 means: unsourced", VT_NEEDS_SIM,
	 event_waits_for_count_or_period},
	{"blocking_get_waits_for_the_period", MAN "; ibv_get_cq_event(3)", VT_NEEDS_SIM,
	 blocking_get_waits_for_the_period},
	{"period_begins_with_the_first", "unsourced", VIRTUAL, period_begins_with_the_first},
	{"each_arming_begins_anew", "ibv_req_notify_cq(3), Notes: one shot", VIRTUAL,
	 each_arming_begins_anew},
	{"polling_takes_nothing_from_the_count", "unsourced", VIRTUAL,
	 polling_takes_nothing_from_the_count},
	{"unsolicited_completions_do_not_count", "ibv_req_notify_cq(3)", VIRTUAL,
	 unsolicited_completions_do_not_count},
	{"failed_completions_count_as_solicited",
	 "ibv_req_notify_cq(3): the status is not successful", VIRTUAL,
	 failed_completions_count_as_solicited},
	{"new_values_apply_to_a_waiting_event", "unsourced", VIRTUAL,
	 new_values_apply_to_a_waiting_event},
	{"destroyed_while_an_event_waits", "unsourced", VIRTUAL, destroyed_while_an_event_waits},
	{"limits_are_the_devices",
	 "ibv_query_device_ex(3): cq_mod_caps; EINVAL: Linux drivers/infiniband/hw/mlx5/cq.c", 0,
	 limits_are_the_devices},
	{"masks_are_checked", "Linux drivers/infiniband/core/uverbs_cmd.c, ib_uverbs_ex_modify_cq",
	 0, masks_are_checked},
	{NULL},
};

const struct vt_suite vt_suite_moderation = {"moderation", "moderated completion events", tests};
