/* SPDX-License-Identifier: MIT */
/*
 * ATOMIC WRITE: it writes eight bytes at once, in order with READs and atomics.
 */
#include "test/conformance/sources.h"
#include "test/support/support.h"

#include <verbena/fault.h>
#include <verbena/sim.h>

/* IB_UVERBS_DEVICE_ATOMIC_WRITE of Linux include/uapi/rdma/ib_user_verbs.h, since 6.2 */
#define CAP_ATOMIC_WRITE (1ull << 40)

#define VALUE 0x0123456789abcdefull

static bool has_it(struct vt *t, struct vt_node *node)
{
	struct ibv_device_attr_ex attr;

	VT_OK(t, vb_query_device_ex(node->ctx, NULL, &attr, sizeof(attr)));
	return attr.device_cap_flags_ex & CAP_ATOMIC_WRITE;
}

static struct ts_options options_of(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);

	options.timeout = 12;
	return options;
}

/* A pair in RTS; A's QP has ibv_wr_atomic_write(). */
static struct ts_pair *pair_with(struct vt *t, const struct ts_options *options)
{
	const struct ibv_qp_init_attr_ex init = {
		.comp_mask = IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_ATOMIC_WRITE | IBV_QP_EX_WITH_RDMA_WRITE,
	};
	struct ts_pair *pair;

	if (!has_it(t, &t->a) || !has_it(t, &t->b))
		VT_SKIP(t, "the device has no ATOMIC WRITE");
	pair = ts_pair_reset(t, options);
	ts_remake_qp(&pair->a, &init);
	ts_connect_both(pair);
	return pair;
}

static struct ts_pair *plain_pair(struct vt *t)
{
	const struct ts_options options = options_of(t);

	return pair_with(t, &options);
}

static void put(struct ts_pair *pair, uint64_t wr_id, size_t offset, uint32_t rkey, uint64_t value)
{
	struct ibv_qp_ex *ex = VT_PTR(pair->a.t, vb_qp_to_qp_ex(pair->a.qp));

	ibv_wr_start(ex);
	ex->wr_id = wr_id;
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_atomic_write(ex, rkey, (uintptr_t)pair->b.buffer + offset, &value);
	value = 0; /* the call copied it */
	VT_OK(pair->a.t, ibv_wr_complete(ex));
}

static uint64_t at(const struct ts_pair *pair, size_t offset)
{
	uint64_t value;

	memcpy(&value, pair->b.buffer + offset, sizeof(value));
	return value;
}

static void eight_bytes_change(struct vt *t)
{
	struct ts_pair *pair = plain_pair(t);

	put(pair, 1, 64, pair->b.mr->rkey, VALUE);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_ATOMIC_WRITE);
	VT_EQ(t, at(pair, 64), VALUE);
	ts_blank(t, pair->b.buffer, 64);
	ts_blank(t, pair->b.buffer + 72, 64);
	ts_no_more(t, pair->a.send_cq);
	ts_no_more(t, pair->b.recv_cq);
}

static void creation_agrees_with_the_capability(struct vt *t)
{
	struct ts_options options = options_of(t);
	struct ts_pair *pair = ts_pair(t, &options);
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_RC,
		.send_cq = pair->a.send_cq,
		.recv_cq = pair->a.recv_cq,
		.cap = {.max_send_wr = 1, .max_send_sge = 1},
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = pair->a.pd,
		.send_ops_flags = IBV_QP_EX_WITH_ATOMIC_WRITE,
	};
	struct ibv_qp *qp = vb_create_qp_ex(t->a.ctx, &init);
	const int error = errno;

	VT_EQ(t, qp != NULL, has_it(t, &t->a));
	if (qp)
		VT_OK(t, vb_destroy_qp(qp));
	else
		VT_EQ(t, error, EOPNOTSUPP);
}

static void what_the_responder_refuses(struct vt *t)
{
	const int write = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	const int other = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
	const struct {
		const char *name;
		size_t offset;
		uint32_t key_change;
		int mr_access, qp_access;
		enum ibv_wc_status status;
	} rows[] = {
		{"the right to write is enough", 0, 0, write, write, IBV_WC_SUCCESS},
		{"misaligned", 4, 0, write, write, IBV_WC_REM_INV_REQ_ERR},
		{"wrong rkey", 0, 0x1000, write, write, IBV_WC_REM_ACCESS_ERR},
		{"no right of the region", 0, 0, other, write, IBV_WC_REM_ACCESS_ERR},
		{"no right of the QP", 0, 0, write, other, IBV_WC_REM_INV_REQ_ERR},
	};
	struct ts_options options = options_of(t);
	struct ts_pair *pair;
	size_t i;

	for (i = 0; i < TS_COUNT(rows); i++) {
		vt_row(t, "%s", rows[i].name);
		options.mr_access = rows[i].mr_access;
		options.qp_access = rows[i].qp_access;
		pair = pair_with(t, &options);
		put(pair, 1, rows[i].offset, pair->b.mr->rkey ^ rows[i].key_change, VALUE);
		if (rows[i].status == IBV_WC_SUCCESS) {
			ts_done(t, pair->a.send_cq, 1, IBV_WC_ATOMIC_WRITE);
			VT_EQ(t, at(pair, 0), VALUE);
		} else {
			ts_failed(t, pair->a.send_cq, 1, rows[i].status);
			ts_blank(t, pair->b.buffer, 64);
		}
	}
}

static void posted_by_post_send(struct vt *t)
{
	static const struct {
		uint32_t length;
		unsigned int flags;
		enum ibv_wc_status status;
	} rows[] = {
		{8, 0, IBV_WC_SUCCESS},	     {8, IBV_SEND_INLINE, IBV_WC_SUCCESS},
		{0, 0, IBV_WC_LOC_LEN_ERR},  {7, 0, IBV_WC_LOC_LEN_ERR},
		{16, 0, IBV_WC_LOC_LEN_ERR},
	};
	struct ts_pair *pair;
	size_t i;

	for (i = 0; i < TS_COUNT(rows); i++) {
		vt_row(t, "%u bytes, flags %u", rows[i].length, rows[i].flags);
		pair = plain_pair(t);
		TS_POST(&pair->a, IBV_WR_ATOMIC_WRITE, .wr_id = 1, .length = rows[i].length,
			.flags = rows[i].flags);
		if (rows[i].status == IBV_WC_SUCCESS) {
			ts_done(t, pair->a.send_cq, 1, IBV_WC_ATOMIC_WRITE);
			ts_verify(t, pair->b.buffer, 8, 1);
		} else {
			ts_failed(t, pair->a.send_cq, 1, rows[i].status);
		}
		ts_blank(t, pair->b.buffer + 8, 8);
	}
}

static void once(struct vt *t, enum vb_fault_action action, uint8_t opcode, uint32_t qpn)
{
	ts_fault(t, &(struct vb_fault_rule){.action = action,
					    .opcode_given = true,
					    .opcode = opcode,
					    .dest_qpn = qpn,
					    .count = 1});
}

/* The responder answers the repeated request again, but does not write again. */
static void lost_answer_is_given_again(struct vt *t)
{
	struct ts_pair *pair = plain_pair(t);

	once(t, VB_FAULT_DROP, TS_READ_ONLY, pair->a.qp->qp_num);
	put(pair, 1, 0, pair->b.mr->rkey, VALUE);
	ts_pause(t, 100000); /* before the timeout of 1 ms */
	VT_EQ(t, at(pair, 0), VALUE);
	memset(pair->b.buffer, TS_BLANK, 8);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_ATOMIC_WRITE);
	ts_blank(t, pair->b.buffer, 8);
}

static void lost_and_repeated_requests_are_done_once(struct vt *t)
{
	struct ts_pair *pair = plain_pair(t);

	once(t, VB_FAULT_DROP, TS_ATOMIC_WRITE, pair->b.qp->qp_num);
	put(pair, 1, 0, pair->b.mr->rkey, VALUE);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_ATOMIC_WRITE);
	VT_EQ(t, at(pair, 0), VALUE);
	once(t, VB_FAULT_DUPLICATE, TS_ATOMIC_WRITE, pair->b.qp->qp_num);
	put(pair, 2, 0, pair->b.mr->rkey, VALUE + 1);
	put(pair, 3, 0, pair->b.mr->rkey, VALUE + 2);
	ts_done(t, pair->a.send_cq, 2, IBV_WC_ATOMIC_WRITE);
	ts_done(t, pair->a.send_cq, 3, IBV_WC_ATOMIC_WRITE);
	VT_EQ(t, at(pair, 0), VALUE + 2);
	ts_no_more(t, pair->a.send_cq);
}

/* While the answer is lost, a fenced WR waits, and a WR without a fence is sent. */
static void fence_waits_for_it(struct vt *t)
{
	struct ts_pair *pair;
	unsigned int fence;

	for (fence = 0; fence < 2; fence++) {
		vt_row(t, "%s fence", fence ? "a" : "no");
		pair = plain_pair(t);
		once(t, VB_FAULT_DROP, TS_READ_ONLY, pair->a.qp->qp_num);
		put(pair, 1, 0, pair->b.mr->rkey, VALUE);
		ts_write(&pair->a, .wr_id = 2, .length = 100, .remote_offset = 64,
			 .flags = fence ? IBV_SEND_FENCE : 0);
		ts_pause(t, 100000); /* before the timeout of 1 ms */
		if (fence)
			ts_blank(t, pair->b.buffer + 64, 100);
		else
			ts_verify(t, pair->b.buffer + 64, 100, 1);
		ts_done(t, pair->a.send_cq, 1, IBV_WC_ATOMIC_WRITE);
		ts_done(t, pair->a.send_cq, 2, IBV_WC_RDMA_WRITE);
		ts_verify(t, pair->b.buffer + 64, 100, 1);
	}
}

/*
 * ATOMIC WRITEs count against max_rd_atomic as READs do; those beyond wait, and all are done in
 * order.
 */
static void those_beyond_max_rd_atomic_wait(struct vt *t)
{
	struct ts_options options = options_of(t);
	struct ts_pair *pair;
	unsigned int i;

	options.max_rd_atomic = 1;
	options.max_dest_rd_atomic = 1;
	pair = pair_with(t, &options);
	for (i = 0; i < 12; i++)
		put(pair, i, 0, pair->b.mr->rkey, i);
	for (i = 0; i < 12; i++)
		ts_done(t, pair->a.send_cq, i, IBV_WC_ATOMIC_WRITE);
	VT_EQ(t, at(pair, 0), 11);
}

#define RESP SRC_RXE "rxe_resp.c, "
#define WIRE (VT_NEEDS_FAULTS | VT_NEEDS_SIM)

static const struct vt_test tests[] = {
	{"eight_bytes_change", "ibv_wr_post(3); " RESP "atomic_write_reply", 0, eight_bytes_change},
	{"creation_agrees_with_the_capability", "ibv_wr_post(3): creation fails", 0,
	 creation_agrees_with_the_capability},
	{"what_the_responder_refuses", RESP "check_op_valid, check_rkey, atomic_write_reply", 0,
	 what_the_responder_refuses},
	{"posted_by_post_send", "unsourced: ibv_post_send(3) does not name it", VT_NEEDS_SIM,
	 posted_by_post_send},
	{"lost_answer_is_given_again", RESP "duplicate_request: saved results",
	 WIRE | VT_NEEDS_VIRTUAL_CLOCK, lost_answer_is_given_again},
	{"lost_and_repeated_requests_are_done_once", RESP "duplicate_request: saved results", WIRE,
	 lost_and_repeated_requests_are_done_once},
	{"fence_waits_for_it", SRC_RXE "rxe_req.c, check_init_depth; the fence: unsourced",
	 WIRE | VT_NEEDS_VIRTUAL_CLOCK, fence_waits_for_it},
	{"those_beyond_max_rd_atomic_wait", SRC_RXE "rxe_req.c, check_init_depth", 0,
	 those_beyond_max_rd_atomic_wait},
	{NULL},
};

const struct vt_suite vt_suite_atomic_write = {"atomic_write", "ATOMIC WRITE", tests};
