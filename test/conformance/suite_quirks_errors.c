/* SPDX-License-Identifier: MIT */
/* Quirks of errors and their events. */
#include "test/conformance/sources.h"
#include "test/support/quirks.h"
#include "test/support/srq.h"

static void withheld_after(struct vt *t, int access, uint32_t key, enum ibv_wc_status status)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;

	options.qp_access = access;
	pair = ts_pair(t, &options);
	ts_write(&pair->a, .wr_id = 1, .length = 8, .rkey = pair->b.mr->rkey ^ key);
	ts_failed(t, pair->a.send_cq, 1, status);
	ts_state(&pair->b, IBV_QPS_ERR);
	ts_no_event(t, &t->b);
}

static void no_affiliated_events(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;

	ts_quirks(t, "no_affiliated_events", NULL);
	vt_row(t, "QP_ACCESS_ERR");
	withheld_after(t, options.qp_access, ts_wrong_key(0), IBV_WC_REM_ACCESS_ERR);
	vt_row(t, "QP_REQ_ERR");
	withheld_after(t, 0, 0, IBV_WC_REM_INV_REQ_ERR);

	vt_row(t, "COMM_EST");
	pair = ts_pair_reset(t, &options);
	ts_connect(&pair->a);
	ts_to_init(&pair->b);
	ts_to_rtr(&pair->b);
	ts_write(&pair->a, .wr_id = 1, .length = 8);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_RDMA_WRITE);
	ts_no_event(t, &t->b);

	vt_row(t, "QP_FATAL");
	pair = ts_overrun(t, 1);
	ts_event(t, &t->a, IBV_EVENT_CQ_ERR, pair->a.send_cq);
	ts_no_event(t, &t->a);
	ts_state(&pair->a, IBV_QPS_ERR);
}

static void no_last_wqe_event(struct vt *t)
{
	struct ts_pair *pair;

	ts_quirks(t, "no_last_wqe_event", NULL);
	pair = ts_pair_on(ts_shared(t), IBV_QPT_RC);
	VT_OK(t, ts_to(&pair->b, IBV_QPS_ERR));
	ts_settle(t);
	ts_no_event(t, &t->b);
}

static void send_errors_end_qp(struct vt *t)
{
	static const enum ibv_qp_type types[] = {IBV_QPT_UC, IBV_QPT_UD};
	struct ts_pair *pair;
	size_t i;

	ts_quirks(t, "send_errors_end_qp", NULL);
	for (i = 0; i < TS_COUNT(types); i++) {
		vt_row(t, "type %d", types[i]);
		pair = ts_connected(t, types[i]);
		ts_recv(&pair->a, .wr_id = 60, .length = 100);
		ts_send(&pair->a, .wr_id = 1, .length = 8, .lkey = ts_wrong_key(pair->a.mr->lkey));
		ts_send(&pair->a, .wr_id = 2, .length = 8);
		ts_failed(t, pair->a.send_cq, 1, IBV_WC_LOC_PROT_ERR);
		ts_flushed(t, pair->a.send_cq, 2);
		ts_flushed(t, pair->a.recv_cq, 60);
		ts_state(&pair->a, IBV_QPS_ERR);
	}
}

enum spoil { KEY, OTHER_PD, PAST_END };

struct local_row {
	const char *name;
	enum ibv_wr_opcode opcode;
	uint32_t length;
	enum spoil spoil;
	enum ibv_wc_status status;
};

static void run_local_row(struct vt *t, const struct local_row *row)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);
	struct ts_wr wr = {.wr_id = 2, .opcode = row->opcode, .length = row->length};
	struct ts_end *a = &pair->a;

	vt_row(t, "%s", row->name);
	if (row->spoil == KEY)
		wr.lkey = ts_wrong_key(a->mr->lkey);
	else if (row->spoil == OTHER_PD)
		wr.lkey =
			ts_mr(t, ts_pd(t, &t->a), a->buffer, a->options.buffer_bytes, TS_ACCESS_ALL)
				->lkey;
	else
		wr.offset = a->options.buffer_bytes - row->length + 1;
	ts_write(a, .wr_id = 1);
	VT_OK(t, ts_post(a, &wr));
	ts_write(a, .wr_id = 3);
	ts_done(t, a->send_cq, 1, IBV_WC_RDMA_WRITE);
	ts_failed(t, a->send_cq, 2, row->status);
	ts_flushed(t, a->send_cq, 3);
	ts_state(a, IBV_QPS_ERR);
	ts_state(&pair->b, IBV_QPS_RTS);
}

static void bad_lkey_is_operation_error(struct vt *t)
{
	static const struct local_row rows[] = {
		{"send", IBV_WR_SEND, 100, KEY, IBV_WC_LOC_QP_OP_ERR},
		{"write", IBV_WR_RDMA_WRITE, 100, KEY, IBV_WC_LOC_QP_OP_ERR},
		{"write of several packets", IBV_WR_RDMA_WRITE, 20000, KEY, IBV_WC_LOC_QP_OP_ERR},
		{"send, other PD", IBV_WR_SEND, 100, OTHER_PD, IBV_WC_LOC_QP_OP_ERR},
		{"send, past the end", IBV_WR_SEND, 100, PAST_END, IBV_WC_LOC_PROT_ERR},
		{"read", IBV_WR_RDMA_READ, 100, KEY, IBV_WC_LOC_PROT_ERR},
	};
	size_t i;

	ts_quirks(t, "bad_lkey_is_operation_error", NULL);
	for (i = 0; i < TS_COUNT(rows); i++)
		run_local_row(t, &rows[i]);
}

static void bad_lkey_is_flush(struct vt *t)
{
	static const struct local_row rows[] = {
		{"send", IBV_WR_SEND, 100, KEY, IBV_WC_WR_FLUSH_ERR},
		{"write", IBV_WR_RDMA_WRITE, 100, KEY, IBV_WC_WR_FLUSH_ERR},
		{"write of several packets", IBV_WR_RDMA_WRITE, 20000, KEY, IBV_WC_WR_FLUSH_ERR},
		{"send, other PD", IBV_WR_SEND, 100, OTHER_PD, IBV_WC_WR_FLUSH_ERR},
		{"send, past the end", IBV_WR_SEND, 100, PAST_END, IBV_WC_WR_FLUSH_ERR},
		{"read", IBV_WR_RDMA_READ, 100, KEY, IBV_WC_LOC_PROT_ERR},
	};
	size_t i;

	ts_quirks(t, "bad_lkey_is_flush", NULL);
	for (i = 0; i < TS_COUNT(rows); i++)
		run_local_row(t, &rows[i]);
}

struct receive_row {
	const char *name;
	enum ibv_qp_type type;
	uint32_t length; /* of the message */
};

static const struct receive_row receive_rows[] = {
	{"one packet", IBV_QPT_RC, 100},
	{"several packets", IBV_QPT_RC, 9000},
	{"unreliable", IBV_QPT_UC, 100},
};

/* Sends to receives of `room` bytes in memory with the rights `access`. UC sends A no error. */
static void fail_receives(struct vt *t, uint32_t room, int access)
{
	const struct receive_row *row;
	struct ts_pair *pair;
	struct ibv_mr *mr;

	for (row = receive_rows; row < receive_rows + TS_COUNT(receive_rows); row++) {
		vt_row(t, "%s", row->name);
		pair = ts_connected(t, row->type);
		mr = ts_mr(t, pair->b.pd, pair->b.buffer, pair->b.options.buffer_bytes, access);
		ts_recv(&pair->b, .wr_id = 50, .length = room, .lkey = mr->lkey);
		ts_recv(&pair->b, .wr_id = 51, .length = room, .lkey = mr->lkey);
		ts_send(&pair->a, .wr_id = 1, .length = row->length);
		if (row->type == IBV_QPT_RC)
			ts_failed(t, pair->a.send_cq, 1, IBV_WC_REM_OP_ERR);
		else
			ts_done(t, pair->a.send_cq, 1, IBV_WC_SEND);
		ts_failed(t, pair->b.recv_cq, 50, IBV_WC_LOC_QP_OP_ERR);
		ts_flushed(t, pair->b.recv_cq, 51);
		ts_state(&pair->b, IBV_QPS_ERR);
	}
}

static void short_receive_is_operation_error(struct vt *t)
{
	ts_quirks(t, "short_receive_is_operation_error", NULL);
	fail_receives(t, 99, IBV_ACCESS_LOCAL_WRITE);
}

static void bad_receive_is_operation_error(struct vt *t)
{
	struct ts_pair *pair;

	ts_quirks(t, "bad_receive_is_operation_error", NULL);
	fail_receives(t, 10000, 0);
	pair = ts_connected(t, IBV_QPT_UD);
	ts_recv(&pair->b, .wr_id = 50, .length = 100, .lkey = pair->b.mr->lkey ^ 0x80);
	ts_send(&pair->a, .wr_id = 1, .length = 8);
	ts_failed(t, pair->b.recv_cq, 50, IBV_WC_LOC_QP_OP_ERR);
}

static void imm_write_receive_is_remote_error(struct vt *t)
{
	struct ts_pair *pair;

	ts_quirks(t, "imm_write_receive_is_remote_error", NULL);
	pair = ts_connected(t, IBV_QPT_RC);
	ts_recv(&pair->b, .wr_id = 50, .length = 100);
	ts_recv(&pair->b, .wr_id = 51, .length = 100);
	ts_write_imm(&pair->a, .wr_id = 1, .length = 100, .rkey = ts_wrong_key(pair->b.mr->rkey));
	ts_failed(t, pair->a.send_cq, 1, IBV_WC_REM_ACCESS_ERR);
	ts_failed(t, pair->b.recv_cq, 50, IBV_WC_REM_ACCESS_ERR);
	ts_flushed(t, pair->b.recv_cq, 51);
	ts_state(&pair->b, IBV_QPS_ERR);
}

static const struct vt_test tests[] = {
	{"send_errors_end_qp", MEASURED_6_1, VT_NEEDS_SIM, send_errors_end_qp},
	{"bad_lkey_is_operation_error", MEASURED_6_1, VT_NEEDS_SIM, bad_lkey_is_operation_error},
	{"bad_lkey_is_flush", MEASURED_6_12, VT_NEEDS_SIM, bad_lkey_is_flush},
	{"short_receive_is_operation_error", MEASURED_BOTH, VT_NEEDS_SIM,
	 short_receive_is_operation_error},
	{"bad_receive_is_operation_error", MEASURED_BOTH, VT_NEEDS_SIM,
	 bad_receive_is_operation_error},
	{"imm_write_receive_is_remote_error", MEASURED_BOTH, VT_NEEDS_SIM,
	 imm_write_receive_is_remote_error},
	{"no_affiliated_events", MEASURED_BOTH, VT_NEEDS_SIM, no_affiliated_events},
	{"no_last_wqe_event", MEASURED_6_1, VT_NEEDS_SIM | VT_NEEDS_SRQ, no_last_wqe_event},
	{NULL},
};

const struct vt_suite vt_suite_quirks_errors = {"quirks_errors", "quirks: errors and their events",
						tests, .simulator = true};
