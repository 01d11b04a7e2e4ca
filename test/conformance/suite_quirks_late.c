/* SPDX-License-Identifier: MIT */
/* Quirks of devices that do everything as late, and in as strange an order, as they may. */
#include "test/conformance/sources.h"
#include "test/support/keep.h"
#include "test/support/quirks.h"
#include "test/support/srq.h"

#define LATE_NS 30000

/* Lets everything happen that needs no time. */
static void run(struct vt *t)
{
	VT_OK(t, vb_sim_run(ts_sim(t), 0));
}

/* --- completions --- */

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
	VT_EQ(t, ts_wait(t, pair->b.recv_cq, 2, wc), 2);
	VT_EQ(t, ts_now_ns(t) - since_ns, LATE_NS);
	VT_EQ(t, wc[0].wr_id, 50);
	VT_EQ(t, wc[1].wr_id, 51);
	VT_CHECK(t, ts_cq_event(t, pair->b.recv_channel, NULL));
	ts_done(t, pair->a.send_cq, 1, IBV_WC_SEND);
	ts_done(t, pair->a.send_cq, 2, IBV_WC_SEND);
}

/* A QP that is gone completes nothing: what it has completed can be polled. */
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

/* Completions that nobody can poll yet take room. */
static void late_completions_overrun_their_cq(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;

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
	for (uint64_t i = 0; i < 4; i++)
		ts_done(t, pair->a.send_cq, i, IBV_WC_RDMA_WRITE);
	ts_no_more(t, pair->a.send_cq);
}

/* --- answers --- */

static void answers_come_late(struct vt *t)
{
	struct ts_pair *pair;
	struct ts_log *log;
	uint64_t since_ns;

	ts_quirks(t, "answers_come_late", NULL);
	pair = ts_connected(t, IBV_QPT_RC);
	log = ts_watch(t);
	since_ns = ts_now_ns(t);
	for (uint64_t i = 0; i < 3; i++) {
		ts_write(&pair->a, .wr_id = i, .length = 8);
		ts_pause(t, 1000);
	}
	for (uint64_t i = 0; i < 3; i++)
		ts_done(t, pair->a.send_cq, i, IBV_WC_RDMA_WRITE);
	VT_EQ(t, ts_now_ns(t) - since_ns, LATE_NS);
	VT_EQ(t, ts_count(log, TS_ACK, pair->a.qp->qp_num), 1);
	ts_transfer(pair, IBV_WR_RDMA_READ, 100);
	ts_fetch_add(&pair->a, .wr_id = 4, .compare_add = 1);
	ts_done(t, pair->a.send_cq, 4, IBV_WC_FETCH_ADD);
}

/* Without a fence, a READ may find what a later WRITE has left. */
static void late_reads_find_later_writes(struct vt *t)
{
	ts_quirks(t, "answers_come_late", NULL);
	for (int fenced = 0; fenced < 2; fenced++) {
		struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);

		vt_row(t, "%s a fence", fenced ? "with" : "without");
		memset(pair->b.buffer, 1, 8);
		memset(pair->a.buffer + 100, 2, 8);
		ts_read(&pair->a, .wr_id = 1, .length = 8);
		ts_write(&pair->a, .wr_id = 2, .offset = 100, .length = 8,
			 .flags = fenced ? IBV_SEND_FENCE : 0);
		ts_done(t, pair->a.send_cq, 1, IBV_WC_RDMA_READ);
		VT_EQ(t, pair->a.buffer[0], fenced ? 1 : 2);
		ts_done(t, pair->a.send_cq, 2, IBV_WC_RDMA_WRITE);
	}
}

/* Returns the syndrome of the first ACK. */
static unsigned int first_syndrome(struct vt *t, const struct ts_log *log)
{
	unsigned int i = 0;

	while (i < log->count && log->frames[i].opcode != TS_ACK)
		i++;
	VT_CHECK(t, i < log->count);
	return log->frames[i].syndrome;
}

/* Codes of Linux drivers/infiniband/sw/rdmavt/rc.c, credit_table. */
static void acks_tell_credits(struct vt *t)
{
	static const struct {
		unsigned int receives, code;
	} rows[] = {{0, 0}, {1, 1}, {3, 3}, {4, 4},  {5, 4},
		    {6, 5}, {7, 5}, {8, 6}, {13, 7}, {16, 8}};

	ts_quirks(t, "acks_tell_credits", NULL);
	for (size_t i = 0; i < TS_COUNT(rows); i++) {
		struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);
		struct ts_log *log = ts_watch(t);

		vt_row(t, "%u receives", rows[i].receives);
		for (unsigned int n = 0; n < rows[i].receives; n++)
			ts_recv(&pair->b, .wr_id = n, .length = 8);
		ts_write(&pair->a, .wr_id = 1, .length = 8);
		ts_done(t, pair->a.send_cq, 1, IBV_WC_RDMA_WRITE);
		VT_EXPECT_EQ(t, first_syndrome(t, log), rows[i].code);
	}
}

/* --- receives --- */

static void first_attempts_find_no_receive(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;

	ts_quirks(t, "first_attempts_find_no_receive", NULL);
	options.rnr_retry = 1;
	pair = ts_pair(t, &options);
	for (int i = 0; i < 3; i++) {
		ts_transfer(pair, IBV_WR_SEND, 10000);
		ts_transfer(pair, IBV_WR_RDMA_WRITE_WITH_IMM, 10000);
	}
	options.rnr_retry = 0;
	pair = ts_pair(t, &options);
	ts_transfer(pair, IBV_WR_RDMA_WRITE, 100);
	ts_recv(&pair->b, .wr_id = 50, .length = 8);
	ts_send(&pair->a, .wr_id = 1, .length = 8);
	ts_failed(t, pair->a.send_cq, 1, IBV_WC_RNR_RETRY_EXC_ERR);
	ts_no_more(t, pair->b.recv_cq);
}

/* --- data --- */

static void writes_end_first(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	static const struct {
		uint32_t bytes, late;
	} rows[] = {{600, 256}, {256, 255}, {100, 99}, {1, 0}};

	ts_quirks(t, "writes_end_first", NULL);
	options.mtu = IBV_MTU_256;
	for (size_t i = 0; i < TS_COUNT(rows); i++) {
		const uint32_t bytes = rows[i].bytes, late = rows[i].late;
		struct ts_pair *pair = ts_pair(t, &options);

		vt_row(t, "%u bytes", bytes);
		ts_write(&pair->a, .wr_id = 1, .length = bytes);
		run(t);
		ts_blank(t, pair->b.buffer, late);
		VT_EQ_MEM(t, pair->b.buffer + late, pair->a.buffer + late, bytes - late);
		ts_done(t, pair->a.send_cq, 1, IBV_WC_RDMA_WRITE);
		ts_verify(t, pair->b.buffer, bytes, 1);
		ts_blank(t, pair->b.buffer + bytes, 8);
	}
}

/* The receive of a later SEND, a later READ and immediate data say that the data are there. */
static void later_requests_see_the_data(struct vt *t)
{
	struct ts_pair *pair;

	ts_quirks(t, "writes_end_first", NULL);
	pair = ts_connected(t, IBV_QPT_RC);
	ts_recv(&pair->b, .wr_id = 50, .offset = 8192, .length = 8);
	ts_recv(&pair->b, .wr_id = 51, .offset = 8192, .length = 8);
	ts_write(&pair->a, .wr_id = 1, .length = 100);
	ts_send(&pair->a, .wr_id = 2, .length = 8);
	ts_received(t, pair->b.recv_cq, 50, 8);
	ts_verify(t, pair->b.buffer, 100, 1);
	memset(pair->b.buffer, TS_BLANK, 100);
	ts_write_imm(&pair->a, .wr_id = 3, .length = 20000);
	ts_written(t, pair->b.recv_cq, 51, 20000);
	ts_verify(t, pair->b.buffer, 20000, 1);
	memset(pair->b.buffer, TS_BLANK, 100);
	ts_write(&pair->a, .wr_id = 4, .length = 100);
	ts_read(&pair->a, .wr_id = 5, .offset = 30000, .length = 100);
	for (uint64_t i = 1; i < 5; i++)
		ts_done(t, pair->a.send_cq, i, i == 2 ? IBV_WC_SEND : IBV_WC_RDMA_WRITE);
	ts_done(t, pair->a.send_cq, 5, IBV_WC_RDMA_READ);
	ts_verify(t, pair->a.buffer + 30000, 100, 1);
}

/* A QP that fails or ends leaves no data behind that come later. */
static void data_do_not_outlive_their_qp(struct vt *t)
{
	struct ts_pair *pair;

	ts_quirks(t, "writes_end_first", NULL);
	pair = ts_connected(t, IBV_QPT_RC);
	ts_write(&pair->a, .wr_id = 1, .length = 100);
	run(t);
	ts_destroy_qp(&pair->b);
	memset(pair->b.buffer, TS_BLANK, 100);
	ts_pause(t, 1000000);
	ts_blank(t, pair->b.buffer, 100);
	ts_failed(t, pair->a.send_cq, 1, IBV_WC_RETRY_EXC_ERR);
}

/* --- packets --- */

/* Packets to the QP with the odd number take longer. */
static void packets_overtake(struct vt *t)
{
	struct ts_pair *slow, *fast;
	uint64_t since_ns;

	ts_quirks(t, "packets_overtake", NULL);
	slow = ts_connected(t, IBV_QPT_UC);
	do
		fast = ts_connected(t, IBV_QPT_UC);
	while ((fast->b.qp->qp_num ^ slow->b.qp->qp_num) % 2 == 0);
	if (fast->b.qp->qp_num % 2) {
		struct ts_pair *other = fast;

		fast = slow;
		slow = other;
	}
	ts_recv(&slow->b, .wr_id = 50, .length = 8);
	ts_recv(&fast->b, .wr_id = 51, .length = 8);
	since_ns = ts_now_ns(t);
	ts_send(&slow->a, .wr_id = 1, .length = 8);
	ts_send(&fast->a, .wr_id = 2, .length = 8);
	ts_received(t, fast->b.recv_cq, 51, 8);
	VT_EQ(t, ts_now_ns(t), since_ns);
	ts_received(t, slow->b.recv_cq, 50, 8);
	VT_EQ(t, ts_now_ns(t) - since_ns, 5000);
	ts_done(t, slow->a.send_cq, 1, IBV_WC_SEND);
	ts_transfer(slow, IBV_WR_SEND, 60000);
}

static void datagrams_overtake(struct vt *t)
{
	struct ts_pair *pair;

	ts_quirks(t, "packets_overtake", NULL);
	pair = ts_connected(t, IBV_QPT_UD);
	ts_recv(&pair->b, .wr_id = 50, .length = 100);
	ts_recv(&pair->b, .wr_id = 51, .length = 100);
	ts_send(&pair->a, .wr_id = 1, .length = 1);
	ts_send(&pair->a, .wr_id = 2, .length = 2);
	ts_received(t, pair->b.recv_cq, 50, TS_GRH + 2);
	ts_received(t, pair->b.recv_cq, 51, TS_GRH + 1);
}

#define NEEDS (VT_NEEDS_SIM | VT_NEEDS_VIRTUAL_CLOCK)

static const struct vt_test tests[] = {
	{"completions_come_late", "unsourced", NEEDS, completions_come_late},
	{"late_completions_do_not_outlive_their_qp", "unsourced", NEEDS,
	 late_completions_do_not_outlive_their_qp},
	{"late_completions_overrun_their_cq", "ibv_poll_cq(3), Notes", NEEDS,
	 late_completions_overrun_their_cq},
	{"late_completions_survive_a_resize", "ibv_resize_cq(3)", NEEDS,
	 late_completions_survive_a_resize},
	{"answers_come_late", "ibv_query_device(3): local_ca_ack_delay", NEEDS, answers_come_late},
	{"late_reads_find_later_writes", "ibv_post_send(3): IBV_SEND_FENCE", NEEDS,
	 late_reads_find_later_writes},
	{"acks_tell_credits", "Linux drivers/infiniband/sw/rdmavt/rc.c, rvt_compute_aeth", NEEDS,
	 acks_tell_credits},
	{"first_attempts_find_no_receive", "ibv_modify_qp(3): rnr_retry", NEEDS,
	 first_attempts_find_no_receive},
	{"writes_end_first", "unsourced", NEEDS, writes_end_first},
	{"later_requests_see_the_data", "ibv_reg_mr(3), IBV_ACCESS_RELAXED_ORDERING: completions",
	 NEEDS, later_requests_see_the_data},
	{"data_do_not_outlive_their_qp", "unsourced", NEEDS, data_do_not_outlive_their_qp},
	{"packets_overtake", "unsourced", NEEDS | VT_NEEDS_TWO_DEVICES, packets_overtake},
	{"datagrams_overtake", "unsourced", NEEDS, datagrams_overtake},
	{NULL},
};

const struct vt_suite vt_suite_quirks_late = {"quirks_late", "quirks: as late as it may be", tests,
					      .simulator = true};
