/* SPDX-License-Identifier: MIT */
/*
 * Extended completion queues.
 */
#include "test/conformance/sources.h"
#include "test/support/keep.h"
#include "test/support/need.h"
#include "test/support/quirks.h"
#include "test/support/window.h"

#include <arpa/inet.h>

#define EVERY_FIELD                                                             \
	(IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_IMM | IBV_WC_EX_WITH_QP_NUM | \
	 IBV_WC_EX_WITH_SRC_QP | IBV_WC_EX_WITH_SLID | IBV_WC_EX_WITH_SL |      \
	 IBV_WC_EX_WITH_DLID_PATH_BITS)

static struct ibv_cq_ex *cq_ex_on(struct vt *t, struct vt_node *node, uint32_t cqe,
				  uint64_t wc_flags, uint32_t flags,
				  struct ibv_comp_channel *channel)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = cqe,
		.channel = channel,
		.wc_flags = wc_flags,
		.comp_mask = flags ? IBV_CQ_INIT_ATTR_MASK_FLAGS : 0,
		.flags = flags,
	};
	struct ibv_cq_ex *cq = TS_PTR_OR_SKIP(t, vb_create_cq_ex(node->ctx, &attr));

	ts_keep(t, TS_CQ, ibv_cq_ex_to_cq(cq));
	return cq;
}

static struct ibv_cq_ex *cq_ex(struct vt *t, struct vt_node *node, uint32_t cqe, uint64_t wc_flags,
			       uint32_t flags)
{
	return cq_ex_on(t, node, cqe, wc_flags, flags, NULL);
}

/* A pair whose A sends to, or whose B receives from, an extended CQ. */
static struct ts_pair *pair_on(struct ibv_cq_ex *send, struct ibv_cq_ex *recv, struct vt *t,
			       enum ibv_qp_type type)
{
	const struct ts_options options = ts_defaults(t, type);
	struct ts_pair *pair = ts_pair_reset(t, &options);

	if (send) {
		const struct ibv_qp_init_attr_ex init = {.send_cq = ibv_cq_ex_to_cq(send)};

		pair->a.send_cq = init.send_cq;
		ts_remake_qp(&pair->a, &init);
	}
	if (recv) {
		const struct ibv_qp_init_attr_ex init = {.recv_cq = ibv_cq_ex_to_cq(recv)};

		pair->b.recv_cq = init.recv_cq;
		ts_remake_qp(&pair->b, &init);
	}
	ts_connect_both(pair);
	return pair;
}

/* Waits for a completion and leaves the batch of ibv_start_poll() open. */
static void start(struct vt *t, struct ibv_cq_ex *cq)
{
	struct ibv_poll_cq_attr attr = {0};

	ts_settle(t);
	VT_OK(t, ibv_start_poll(cq, &attr));
}

static void create_returns_its_attributes(struct vt *t)
{
	int mine;
	struct ibv_cq_init_attr_ex attr = {.cqe = 5, .cq_context = &mine};
	struct ibv_cq_ex *cq = TS_PTR_OR_SKIP(t, vb_create_cq_ex(t->a.ctx, &attr));

	ts_keep(t, TS_CQ, ibv_cq_ex_to_cq(cq));
	VT_CHECK(t, cq->cqe >= 5);
	VT_CHECK(t, cq->cq_context == &mine);
	VT_CHECK(t, cq->context == t->a.ctx);
	VT_EQ(t, ibv_cq_ex_to_cq(cq)->cqe, cq->cqe);
}

static void bad_attributes_are_refused(struct vt *t)
{
	const struct {
		const char *name;
		struct ibv_cq_init_attr_ex attr;
	} rows[] = {
		{"no entries", {.cqe = 0}},
		{"too many entries", {.cqe = (uint32_t)t->a.device_attr.max_cqe + 1}},
		{"comp_vector", {.cqe = 1, .comp_vector = (uint32_t)t->a.ctx->num_comp_vectors}},
		{"unknown fields", {.cqe = 1, .wc_flags = 1ull << 40}},
		{"unknown comp_mask", {.cqe = 1, .comp_mask = 1 << 20}},
		{"unknown flags",
		 {.cqe = 1, .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS, .flags = 1 << 20}},
	};
	size_t i;

	cq_ex(t, &t->a, 1, 0, 0);
	for (i = 0; i < TS_COUNT(rows); i++) {
		struct ibv_cq_init_attr_ex attr = rows[i].attr;

		vt_row(t, "%s", rows[i].name);
		VT_EXPECT(t, !vb_create_cq_ex(t->a.ctx, &attr));
		VT_EXPECT(t, errno == EINVAL || errno == EOPNOTSUPP);
	}
}

static void empty_is_enoent(struct vt *t)
{
	struct ibv_cq_ex *cq = cq_ex(t, &t->a, 4, EVERY_FIELD, 0);
	struct ts_pair *pair = pair_on(cq, NULL, t, IBV_QPT_RC);
	struct ibv_poll_cq_attr attr = {0};
	int i;

	for (i = 0; i < 3; i++)
		VT_ERRNO(t, ibv_start_poll(cq, &attr), ENOENT);
	ts_write(&pair->a, .wr_id = 7, .length = 8);
	start(t, cq);
	VT_EQ(t, cq->wr_id, 7);
	VT_ERRNO(t, ibv_next_poll(cq), ENOENT);
	ibv_end_poll(cq);
	VT_ERRNO(t, ibv_start_poll(cq, &attr), ENOENT);
}

static void batch_comes_in_order(struct vt *t)
{
	struct ibv_cq_ex *cq = cq_ex(t, &t->a, 16, EVERY_FIELD, 0);
	struct ts_pair *pair = pair_on(cq, NULL, t, IBV_QPT_RC);
	unsigned int i;

	for (i = 0; i < 10; i++)
		ts_write(&pair->a, .wr_id = 100 + i, .length = 8);
	start(t, cq);
	for (i = 0; i < 10; i++) {
		if (i)
			VT_OK(t, ibv_next_poll(cq));
		VT_EQ(t, cq->wr_id, 100 + i);
		VT_STATUS(t, cq->status, IBV_WC_SUCCESS);
		VT_EQ(t, ibv_wc_read_opcode(cq), IBV_WC_RDMA_WRITE);
		VT_EQ(t, ibv_wc_read_qp_num(cq), pair->a.qp->qp_num);
	}
	VT_ERRNO(t, ibv_next_poll(cq), ENOENT);
	ibv_end_poll(cq);
}

static void batch_may_end_early(struct vt *t)
{
	struct ibv_cq_ex *cq = cq_ex(t, &t->a, 16, EVERY_FIELD, 0);
	struct ts_pair *pair = pair_on(cq, NULL, t, IBV_QPT_RC);
	unsigned int i;

	for (i = 0; i < 4; i++)
		ts_write(&pair->a, .wr_id = i, .length = 8);
	start(t, cq);
	VT_OK(t, ibv_next_poll(cq));
	ibv_end_poll(cq);
	start(t, cq);
	VT_EQ(t, cq->wr_id, 2);
	ibv_end_poll(cq);
	start(t, cq);
	VT_EQ(t, cq->wr_id, 3);
	ibv_end_poll(cq);
}

static void fields_of_a_receive(struct vt *t)
{
	struct ibv_cq_ex *cq = cq_ex(t, &t->b, 4, EVERY_FIELD, 0);
	struct ts_pair *pair = pair_on(NULL, cq, t, IBV_QPT_RC);

	ts_recv(&pair->b, .wr_id = 50, .length = 3000);
	ts_send_imm(&pair->a, .wr_id = 1, .length = 2500, .imm = 0x12345678);
	start(t, cq);
	VT_EQ(t, cq->wr_id, 50);
	VT_STATUS(t, cq->status, IBV_WC_SUCCESS);
	VT_EQ(t, ibv_wc_read_opcode(cq), IBV_WC_RECV);
	VT_EQ(t, ibv_wc_read_byte_len(cq), 2500);
	VT_EQ(t, ntohl(ibv_wc_read_imm_data(cq)), 0x12345678);
	VT_EQ(t, ibv_wc_read_qp_num(cq), pair->b.qp->qp_num);
	VT_EQ(t, ibv_wc_read_wc_flags(cq) & (IBV_WC_WITH_IMM | IBV_WC_GRH), IBV_WC_WITH_IMM);
	ibv_end_poll(cq);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_SEND);
}

static void fields_of_a_datagram(struct vt *t)
{
	struct ibv_cq_ex *cq = cq_ex(t, &t->b, 4, EVERY_FIELD, 0);
	struct ts_pair *pair = pair_on(NULL, cq, t, IBV_QPT_UD);

	ts_recv(&pair->b, .wr_id = 50, .length = 1000);
	ts_send(&pair->a, .wr_id = 1, .length = 100);
	start(t, cq);
	VT_EQ(t, ibv_wc_read_opcode(cq), IBV_WC_RECV);
	VT_EQ(t, ibv_wc_read_byte_len(cq), 100 + TS_GRH);
	VT_EQ(t, ibv_wc_read_src_qp(cq), pair->a.qp->qp_num);
	VT_EQ(t, ibv_wc_read_sl(cq), 0);
	VT_EQ(t, ibv_wc_read_dlid_path_bits(cq), 0);
	if (t->a.port_attr.link_layer == IBV_LINK_LAYER_ETHERNET)
		VT_CHECK(t, ibv_wc_read_wc_flags(cq) & IBV_WC_GRH);
	else
		VT_EQ(t, ibv_wc_read_slid(cq), t->a.port_attr.lid);
	ibv_end_poll(cq);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_SEND);
}

static void field_of_an_invalidation(struct vt *t)
{
	struct ibv_cq_ex *cq = cq_ex(t, &t->b, 4, EVERY_FIELD, 0);
	struct ts_pair *pair;
	struct ibv_mw *mw;

	ts_need_windows(t, IBV_MW_TYPE_2);
	pair = pair_on(NULL, cq, t, IBV_QPT_RC);
	pair->b.mr =
		ts_mr(t, pair->b.pd, pair->b.buffer, 65536, TS_ACCESS_ALL | IBV_ACCESS_MW_BIND);
	mw = ts_mw(&pair->b, IBV_MW_TYPE_2);
	ts_bound(&pair->b, mw, .wr_id = 9);
	ts_recv(&pair->b, .wr_id = 50, .offset = 8192, .length = 100);
	ts_send_inv(&pair->a, .wr_id = 1, .length = 100, .invalidate_rkey = mw->rkey);
	start(t, cq);
	VT_EQ(t, cq->wr_id, 50);
	VT_CHECK(t, ibv_wc_read_wc_flags(cq) & IBV_WC_WITH_INV);
	VT_EQ(t, ibv_wc_read_invalidated_rkey(cq), mw->rkey);
	ibv_end_poll(cq);
}

static void fields_of_an_error(struct vt *t)
{
	struct ibv_cq_ex *cq = cq_ex(t, &t->a, 4, EVERY_FIELD, 0);
	struct ts_pair *pair = pair_on(cq, NULL, t, IBV_QPT_RC);

	ts_write(&pair->a, .wr_id = 1, .length = 8, .rkey = ts_wrong_key(pair->b.mr->rkey));
	ts_write(&pair->a, .wr_id = 2, .length = 8);
	start(t, cq);
	VT_EQ(t, cq->wr_id, 1);
	VT_STATUS(t, cq->status, IBV_WC_REM_ACCESS_ERR);
	VT_EQ(t, ibv_wc_read_qp_num(cq), pair->a.qp->qp_num);
	ibv_wc_read_vendor_err(cq);
	VT_OK(t, ibv_next_poll(cq));
	VT_EQ(t, cq->wr_id, 2);
	VT_STATUS(t, cq->status, IBV_WC_WR_FLUSH_ERR);
	ibv_end_poll(cq);
}

static struct ibv_device_attr_ex extended_attr(struct vt *t, struct vt_node *node)
{
	struct ibv_device_attr_ex attr = {0};

	VT_OK(t, vb_query_device_ex(node->ctx, NULL, &attr, sizeof(attr)));
	return attr;
}

#define STAMPS 5

/* Waits until the CQ has a completion that has come since it was armed, and leaves the completion. */
static void await_event(struct vt *t, struct ibv_comp_channel *channel)
{
	for (unsigned int i = 0; i < 100; i++)
		if (ts_cq_event(t, channel, NULL))
			return;
	VT_FAIL(t, "no completion came");
}

/* Fills in the timestamps of writes, each of which is posted a millisecond after the completion of the
 * one before. */
static void take_stamps(struct vt *t, uint64_t wc_flag, uint64_t stamps[STAMPS])
{
	struct ibv_comp_channel *channel = ts_channel(t, &t->a);
	struct ibv_cq_ex *cq = cq_ex_on(t, &t->a, 16, EVERY_FIELD | wc_flag, 0, channel);
	struct ts_pair *pair = pair_on(cq, NULL, t, IBV_QPT_RC);
	unsigned int i;

	for (i = 0; i < STAMPS; i++) {
		VT_OK(t, ibv_req_notify_cq(ibv_cq_ex_to_cq(cq), 0));
		ts_write(&pair->a, .wr_id = i, .length = 8);
		await_event(t, channel);
		ts_pause(t, 1000000);
	}
	start(t, cq);
	for (i = 0; i < STAMPS; i++) {
		if (i)
			VT_OK(t, ibv_next_poll(cq));
		stamps[i] = wc_flag == IBV_WC_EX_WITH_COMPLETION_TIMESTAMP
				    ? ibv_wc_read_completion_ts(cq)
				    : ibv_wc_read_completion_wallclock_ns(cq);
	}
	ibv_end_poll(cq);
}

static void timestamps_rise(struct vt *t)
{
	struct ibv_device_attr_ex attr = extended_attr(t, &t->a);
	uint64_t stamps[STAMPS];
	unsigned int i;

	if (!attr.completion_timestamp_mask)
		VT_SKIP(t, "the device has no timestamps");
	VT_CHECK(t, attr.hca_core_clock);
	take_stamps(t, IBV_WC_EX_WITH_COMPLETION_TIMESTAMP, stamps);
	for (i = 1; i < STAMPS; i++)
		VT_CHECK(t, stamps[i] - stamps[i - 1] >= attr.hca_core_clock);
}

static void timestamps_are_the_virtual_clocks(struct vt *t)
{
	struct ibv_device_attr_ex attr;
	uint64_t stamps[STAMPS];
	unsigned int i;

	ts_prompt(t);
	attr = extended_attr(t, &t->a);
	take_stamps(t, IBV_WC_EX_WITH_COMPLETION_TIMESTAMP, stamps);
	for (i = 1; i < STAMPS; i++)
		VT_EQ(t, stamps[i] - stamps[i - 1], attr.hca_core_clock);
	VT_CHECK(t, stamps[STAMPS - 1] * 1000000 / attr.hca_core_clock <= ts_now_ns(t));
}

static void wallclock_timestamps_rise(struct vt *t)
{
	uint64_t stamps[STAMPS];
	unsigned int i;

	take_stamps(t, IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK, stamps);
	for (i = 1; i < STAMPS; i++)
		VT_CHECK(t, stamps[i] - stamps[i - 1] >= 900000);
}

static void query_rt_values_tells_the_clock(struct vt *t)
{
	struct ibv_values_ex first = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK};
	struct ibv_values_ex second = first;
	int error = vb_query_rt_values_ex(t->a.ctx, &first);

	if (error == EOPNOTSUPP)
		VT_SKIP(t, "the device has no raw clock");
	VT_OK(t, error);
	VT_EQ(t, first.comp_mask, IBV_VALUES_MASK_RAW_CLOCK);
	ts_pause(t, 5000000);
	VT_OK(t, vb_query_rt_values_ex(t->a.ctx, &second));
	VT_CHECK(t, second.raw_clock.tv_sec > first.raw_clock.tv_sec ||
			    second.raw_clock.tv_nsec > first.raw_clock.tv_nsec);
}

static void mixes_with_poll_cq(struct vt *t)
{
	struct ibv_cq_ex *cq = cq_ex(t, &t->a, 16, EVERY_FIELD, 0);
	struct ts_pair *pair = pair_on(cq, NULL, t, IBV_QPT_RC);
	unsigned int i;

	for (i = 0; i < 4; i++)
		ts_write(&pair->a, .wr_id = i, .length = 8);
	ts_done(t, ibv_cq_ex_to_cq(cq), 0, IBV_WC_RDMA_WRITE);
	start(t, cq);
	VT_EQ(t, cq->wr_id, 1);
	ibv_end_poll(cq);
	ts_done(t, ibv_cq_ex_to_cq(cq), 2, IBV_WC_RDMA_WRITE);
	ts_done(t, ibv_cq_ex_to_cq(cq), 3, IBV_WC_RDMA_WRITE);
}

static void single_threaded_one_works_alike(struct vt *t)
{
	struct ibv_cq_ex *cq = cq_ex(t, &t->a, 4, EVERY_FIELD, IBV_CREATE_CQ_ATTR_SINGLE_THREADED);
	struct ts_pair *pair = pair_on(cq, NULL, t, IBV_QPT_RC);

	ts_write(&pair->a, .wr_id = 7, .length = 8);
	start(t, cq);
	VT_EQ(t, cq->wr_id, 7);
	ibv_end_poll(cq);
}

/*
 * With IGNORE_OVERRUN, a CQ that got more completions than it holds works on, and so does its QP.
 */
static void ignored_overrun_kills_nothing(struct vt *t)
{
	struct ibv_cq_ex *cq = cq_ex(t, &t->a, 4, EVERY_FIELD, IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN);
	struct ts_pair *pair = pair_on(cq, NULL, t, IBV_QPT_RC);
	struct ibv_wc wc[64];
	int i, count;

	VT_CHECK(t, cq->cqe < 12);
	for (i = 0; i < 12; i++)
		ts_write(&pair->a, .wr_id = (uint64_t)i, .length = 8);
	ts_no_event(t, &t->a);
	ts_state(&pair->a, IBV_QPS_RTS);
	count = ibv_poll_cq(ibv_cq_ex_to_cq(cq), 64, wc);
	VT_CHECK(t, count >= 1 && count <= cq->cqe);
	VT_EQ(t, wc[count - 1].wr_id, 11);
	for (i = 1; i < count; i++)
		VT_EQ(t, wc[i].wr_id, wc[i - 1].wr_id + 1);
	ts_write(&pair->a, .wr_id = 50, .length = 8);
	ts_done(t, ibv_cq_ex_to_cq(cq), 50, IBV_WC_RDMA_WRITE);
}

static void overrun_without_ignore_overrun_ends_it(struct vt *t)
{
	struct ibv_cq_ex *cq = cq_ex(t, &t->a, 4, EVERY_FIELD, 0);
	struct ts_pair *pair = pair_on(cq, NULL, t, IBV_QPT_RC);
	struct ibv_poll_cq_attr attr = {0};
	int i, error;

	for (i = 0; i <= cq->cqe; i++)
		ts_write(&pair->a, .wr_id = (uint64_t)i, .length = 8);
	ts_event(t, &t->a, IBV_EVENT_CQ_ERR, ibv_cq_ex_to_cq(cq));
	ts_event(t, &t->a, IBV_EVENT_QP_FATAL, pair->a.qp);
	for (i = 0; i < cq->cqe; i++) {
		VT_OK(t, ibv_start_poll(cq, &attr));
		VT_EQ(t, cq->wr_id, i);
		ibv_end_poll(cq);
	}
	error = ibv_start_poll(cq, &attr);
	VT_CHECK(t, error != 0 && error != ENOENT);
}

static void start_poll_frees_slots_of_the_send_queue(struct vt *t)
{
	struct ibv_cq_ex *cq = cq_ex(t, &t->a, 64, EVERY_FIELD, 0);
	struct ts_pair *pair = pair_on(cq, NULL, t, IBV_QPT_RC);
	uint32_t i, round;

	for (round = 0; round < 3; round++) {
		for (i = 1; i <= pair->a.cap.max_send_wr; i++)
			ts_write(&pair->a, .wr_id = i, .length = 8,
				 .unsignalled = i < pair->a.cap.max_send_wr);
		ts_settle(t);
		VT_ERRNO(t, ts_post(&pair->a, &(struct ts_wr){.opcode = IBV_WR_RDMA_WRITE}),
			 ENOMEM);
		start(t, cq);
		VT_EQ(t, cq->wr_id, pair->a.cap.max_send_wr);
		ibv_end_poll(cq);
	}
}

#define MAN "ibv_create_cq_ex(3)"

static const struct vt_test tests[] = {
	{"create_returns_its_attributes", MAN, 0, create_returns_its_attributes},
	{"bad_attributes_are_refused",
	 "ibv_create_cq_ex(3); sizes: " SRC_RXE "rxe_cq.c, rxe_cq_chk_attr; comp_vector: " SRC_CORE
	 "uverbs_std_types.c, uverbs_create_cq_handler; the rest: unsourced",
	 0, bad_attributes_are_refused},
	{"empty_is_enoent", MAN ": ibv_start_poll, ibv_next_poll", 0, empty_is_enoent},
	{"batch_comes_in_order", MAN ": ibv_next_poll", 0, batch_comes_in_order},
	{"batch_may_end_early", MAN ": ibv_end_poll", 0, batch_may_end_early},
	{"fields_of_a_receive", MAN ", Polling fields", 0, fields_of_a_receive},
	{"fields_of_a_datagram", MAN ", Polling fields", 0, fields_of_a_datagram},
	{"field_of_an_invalidation", MAN ": ibv_wc_read_invalidated_rkey", 0,
	 field_of_an_invalidation},
	{"fields_of_an_error", MAN ", Polling fields; ibv_poll_cq(3)", 0, fields_of_an_error},
	{"timestamps_rise", MAN ": HCA clock units; ibv_query_device_ex(3): hca_core_clock", 0,
	 timestamps_rise},
	{"timestamps_are_the_virtual_clocks", "unsourced", VT_NEEDS_VIRTUAL_CLOCK,
	 timestamps_are_the_virtual_clocks},
	{"wallclock_timestamps_rise", MAN ": wall clock nanoseconds", 0, wallclock_timestamps_rise},
	{"query_rt_values_tells_the_clock", "ibv_query_rt_values_ex(3)", 0,
	 query_rt_values_tells_the_clock},
	{"mixes_with_poll_cq", "unsourced", 0, mixes_with_poll_cq},
	{"single_threaded_one_works_alike", MAN ": SINGLE_THREADED", 0,
	 single_threaded_one_works_alike},
	{"ignored_overrun_kills_nothing", MAN ": IGNORE_OVERRUN", 0, ignored_overrun_kills_nothing},
	{"overrun_without_ignore_overrun_ends_it", "ibv_get_async_event(3): CQ_ERR, QP_FATAL", 0,
	 overrun_without_ignore_overrun_ends_it},
	{"start_poll_frees_slots_of_the_send_queue", "unsourced", 0,
	 start_poll_frees_slots_of_the_send_queue},
	{NULL},
};

const struct vt_suite vt_suite_cq_ex = {"cq_ex", "extended completion queues", tests};
