/* SPDX-License-Identifier: MIT */
/*
 * Errors of a connection: what each side sees, and what becomes of the work around them.
 *
 * In each row A has a receive posted (wr_id 60), and posts a good write (1), the bad request (2)
 * and a write behind it (3). B has two receives posted (50, 51). Write 1 succeeds; write 3 and the
 * receives are flushed.
 */
#include "test/conformance/sources.h"
#include "test/support/keep.h"
#include "test/support/support.h"

#define RESP SRC_RXE "rxe_resp.c, rxe_responder: "

enum spoil {
	NOTHING,
	RKEY,	    /* a key of no region */
	RKEY_BYTE,  /* a good key with another low byte */
	PAST_END,   /* one byte past the region */
	BEHIND,	    /* behind the region, aligned */
	BEFORE,	    /* one byte before the region */
	WRAP,	    /* at the end of the address space */
	OTHER_PD,   /* B's region is of another protection domain */
	DEREG,	    /* B's region is gone */
	MISALIGNED, /* an atomic at an odd address */
	SHORT_RECV, /* B's receives are of 99 bytes */
	RECV_KEY,   /* B's receives have a bad lkey */
	RECV_RIGHT, /* B's receives are in memory without local write */
	RECV_PD,    /* B's receives are in another protection domain */
	LKEY,	    /* A's lkey is bad */
	LKEY_BYTE,
	LKEY_PAST_END,
	LKEY_BEFORE,
	LKEY_PD,
	LKEY_DEREG,
	LKEY_RIGHT, /* A's memory is not writable */
};

struct row {
	const char *name;
	enum ibv_wr_opcode opcode;
	uint32_t length;
	enum spoil spoil;
	int mr_lacks, qp_lacks; /* rights that are not given */
	enum ibv_wc_status requester;
};

static struct ts_pair *row_pair(struct vt *t, const struct row *row)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);

	options.mr_access &= ~row->mr_lacks;
	options.qp_access &= ~row->qp_lacks;
	return ts_pair(t, &options);
}

static struct ibv_mr *another_mr(struct ts_end *end, struct ibv_pd *pd, int access)
{
	return ts_mr(end->t, pd, end->buffer, end->options.buffer_bytes, access);
}

/* Returns a key of a region of the end's buffer that its QP may not use. */
static uint32_t unusable_key(struct ts_end *end, enum spoil spoil, bool remote)
{
	uint32_t key = remote ? end->mr->rkey : end->mr->lkey;
	struct ibv_mr *mr;

	switch (spoil) {
	case RKEY_BYTE:
	case LKEY_BYTE:
		return key ^ 1;
	case OTHER_PD:
	case RECV_PD:
	case LKEY_PD:
		mr = another_mr(end, ts_pd(end->t, end->node), TS_ACCESS_ALL);
		return remote ? mr->rkey : mr->lkey;
	case RECV_RIGHT:
	case LKEY_RIGHT:
		return another_mr(end, end->pd, 0)->lkey;
	case DEREG:
	case LKEY_DEREG:
		mr = another_mr(end, end->pd, TS_ACCESS_ALL);
		key = remote ? mr->rkey : mr->lkey;
		VT_OK(end->t, vb_dereg_mr(mr));
		ts_gone(end->t, mr);
		return key;
	default:
		return ts_wrong_key(key);
	}
}

static bool is_receive(enum spoil spoil)
{
	return spoil == RECV_KEY || spoil == RECV_RIGHT || spoil == RECV_PD;
}

static bool is_remote(enum spoil spoil)
{
	return spoil == RKEY || spoil == RKEY_BYTE || spoil == OTHER_PD || spoil == DEREG;
}

static bool is_local(enum spoil spoil)
{
	return spoil >= LKEY;
}

static void post_receives(struct ts_pair *pair, const struct row *row)
{
	uint32_t length = row->spoil == SHORT_RECV ? 99 : 10000;
	uint32_t lkey = is_receive(row->spoil) ? unusable_key(&pair->b, row->spoil, false) : 0;

	ts_recv(&pair->b, .wr_id = 50, .offset = 20000, .length = length, .lkey = lkey);
	ts_recv(&pair->b, .wr_id = 51, .offset = 40000, .length = length, .lkey = lkey);
	ts_recv(&pair->a, .wr_id = 60, .offset = 40000, .length = 10000);
}

static void post_requests(struct ts_pair *pair, const struct row *row)
{
	size_t end = pair->a.options.buffer_bytes;
	struct ts_wr bad = {.wr_id = 2, .opcode = row->opcode, .length = row->length};

	if (is_remote(row->spoil))
		bad.rkey = unusable_key(&pair->b, row->spoil, true);
	if (is_local(row->spoil))
		bad.lkey = unusable_key(&pair->a, row->spoil, false);
	if (row->spoil == PAST_END)
		bad.remote_offset = end - row->length + 1;
	if (row->spoil == BEHIND)
		bad.remote_offset = end;
	if (row->spoil == BEFORE)
		bad.remote_address = (uintptr_t)pair->b.buffer - 1;
	if (row->spoil == WRAP)
		bad.remote_address = UINT64_MAX - row->length / 2;
	if (row->spoil == MISALIGNED)
		bad.remote_offset = 4;
	if (row->spoil == LKEY_PAST_END)
		bad.offset = end - row->length + 1;
	if (row->spoil == LKEY_BEFORE)
		bad.address = (uintptr_t)pair->a.buffer - 1;
	ts_write(&pair->a, .wr_id = 1);
	VT_OK(pair->a.t, ts_post(&pair->a, &bad));
	ts_write(&pair->a, .wr_id = 3);
}

/* A sees success of 1, the error of 2, and the rest flushed. */
static void check_requester(struct ts_pair *pair, const struct row *row)
{
	struct vt *t = pair->a.t;

	ts_done(t, pair->a.send_cq, 1, IBV_WC_RDMA_WRITE);
	ts_failed(t, pair->a.send_cq, 2, row->requester);
	ts_flushed(t, pair->a.send_cq, 3);
	ts_flushed(t, pair->a.recv_cq, 60);
	ts_state(&pair->a, IBV_QPS_ERR);
	ts_no_more(t, pair->a.send_cq);
}

/* B sees the error event. first is the status of the receive that the message was using. */
static void check_responder(struct ts_pair *pair, enum ibv_wc_status first)
{
	struct vt *t = pair->a.t;

	ts_failed(t, pair->b.recv_cq, 50, first);
	ts_flushed(t, pair->b.recv_cq, 51);
	ts_state(&pair->b, IBV_QPS_ERR);
	ts_no_more(t, pair->b.recv_cq);
}

static void run_row(struct vt *t, const struct row *row, struct ts_pair **pair)
{
	vt_row(t, "%s", row->name);
	*pair = row_pair(t, row);
	post_receives(*pair, row);
	post_requests(*pair, row);
	check_requester(*pair, row);
}

/* --- the responder's memory --- */

static const struct row access_rows[] = {
	{"write, bad rkey", IBV_WR_RDMA_WRITE, 100, RKEY, 0, 0, IBV_WC_REM_ACCESS_ERR},
	{"write, bad key byte", IBV_WR_RDMA_WRITE, 100, RKEY_BYTE, 0, 0, IBV_WC_REM_ACCESS_ERR},
	{"write, past the end", IBV_WR_RDMA_WRITE, 100, PAST_END, 0, 0, IBV_WC_REM_ACCESS_ERR},
	{"write, before the start", IBV_WR_RDMA_WRITE, 100, BEFORE, 0, 0, IBV_WC_REM_ACCESS_ERR},
	{"write, address wraps", IBV_WR_RDMA_WRITE, 100, WRAP, 0, 0, IBV_WC_REM_ACCESS_ERR},
	{"write, other PD", IBV_WR_RDMA_WRITE, 100, OTHER_PD, 0, 0, IBV_WC_REM_ACCESS_ERR},
	{"write, region gone", IBV_WR_RDMA_WRITE, 100, DEREG, 0, 0, IBV_WC_REM_ACCESS_ERR},
	{"long write, last byte past the end", IBV_WR_RDMA_WRITE, 20000, PAST_END, 0, 0,
	 IBV_WC_REM_ACCESS_ERR},
	{"write, region not writable", IBV_WR_RDMA_WRITE, 100, NOTHING, IBV_ACCESS_REMOTE_WRITE, 0,
	 IBV_WC_REM_ACCESS_ERR},
	{"read, bad rkey", IBV_WR_RDMA_READ, 100, RKEY, 0, 0, IBV_WC_REM_ACCESS_ERR},
	{"read, past the end", IBV_WR_RDMA_READ, 100, PAST_END, 0, 0, IBV_WC_REM_ACCESS_ERR},
	{"read, other PD", IBV_WR_RDMA_READ, 100, OTHER_PD, 0, 0, IBV_WC_REM_ACCESS_ERR},
	{"read, region gone", IBV_WR_RDMA_READ, 100, DEREG, 0, 0, IBV_WC_REM_ACCESS_ERR},
	{"read, region not readable", IBV_WR_RDMA_READ, 100, NOTHING, IBV_ACCESS_REMOTE_READ, 0,
	 IBV_WC_REM_ACCESS_ERR},
};

static void check_access_rows(struct vt *t, const struct row *rows, size_t count)
{
	struct ts_pair *pair;
	size_t i;

	for (i = 0; i < count; i++) {
		run_row(t, &rows[i], &pair);
		check_responder(pair, IBV_WC_WR_FLUSH_ERR);
		ts_event(t, &t->b, IBV_EVENT_QP_ACCESS_ERR, pair->b.qp);
		ts_no_event(t, &t->b);
		ts_no_event(t, &t->a);
	}
}

static void access_violation(struct vt *t)
{
	check_access_rows(t, access_rows, TS_COUNT(access_rows));
}

static const struct row atomic_access_rows[] = {
	{"atomic, bad rkey", IBV_WR_ATOMIC_FETCH_AND_ADD, 8, RKEY, 0, 0, IBV_WC_REM_ACCESS_ERR},
	{"atomic, behind the end", IBV_WR_ATOMIC_FETCH_AND_ADD, 8, BEHIND, 0, 0,
	 IBV_WC_REM_ACCESS_ERR},
	{"atomic, other PD", IBV_WR_ATOMIC_CMP_AND_SWP, 8, OTHER_PD, 0, 0, IBV_WC_REM_ACCESS_ERR},
	{"atomic, region lacks the right", IBV_WR_ATOMIC_CMP_AND_SWP, 8, NOTHING,
	 IBV_ACCESS_REMOTE_ATOMIC, 0, IBV_WC_REM_ACCESS_ERR},
};

static void access_violation_by_atomics(struct vt *t)
{
	check_access_rows(t, atomic_access_rows, TS_COUNT(atomic_access_rows));
}

static void nothing_is_written_by_a_refused_write(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);
	size_t at = pair->b.options.buffer_bytes - 19999;

	ts_write(&pair->a, .wr_id = 1, .length = 20000, .remote_offset = at);
	ts_failed(t, pair->a.send_cq, 1, IBV_WC_REM_ACCESS_ERR);
	ts_blank(t, pair->b.buffer, pair->b.options.buffer_bytes);
}

static void write_imm_in_error_ends_its_receive(struct vt *t)
{
	struct row row = {"write with immediate", IBV_WR_RDMA_WRITE_WITH_IMM, 100, RKEY, 0, 0,
			  IBV_WC_REM_ACCESS_ERR};
	struct ts_pair *pair;
	struct ibv_wc wc;

	run_row(t, &row, &pair);
	VT_EQ(t, ts_wait(t, pair->b.recv_cq, 1, &wc), 1);
	VT_EQ(t, wc.wr_id, 50);
	VT_CHECK(t, wc.status != IBV_WC_SUCCESS);
	ts_flushed(t, pair->b.recv_cq, 51);
	ts_state(&pair->b, IBV_QPS_ERR);
}

/* --- invalid requests --- */

static void check_invalid_rows(struct vt *t, const struct row *rows, size_t count)
{
	struct ts_pair *pair;
	size_t i;

	for (i = 0; i < count; i++) {
		run_row(t, &rows[i], &pair);
		check_responder(pair, IBV_WC_WR_FLUSH_ERR);
		ts_event(t, &t->b, IBV_EVENT_QP_REQ_ERR, pair->b.qp);
		ts_no_event(t, &t->b);
	}
}

static void read_not_enabled_on_the_qp(struct vt *t)
{
	static const struct row rows[] = {{"read", IBV_WR_RDMA_READ, 100, NOTHING, 0,
					   IBV_ACCESS_REMOTE_READ, IBV_WC_REM_INV_REQ_ERR}};

	check_invalid_rows(t, rows, TS_COUNT(rows));
}

static void write_not_enabled_on_the_qp(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;

	options.qp_access = IBV_ACCESS_REMOTE_READ;
	pair = ts_pair(t, &options);
	ts_write(&pair->a, .wr_id = 1, .length = 100);
	ts_failed(t, pair->a.send_cq, 1, IBV_WC_REM_INV_REQ_ERR);
	ts_state(&pair->a, IBV_QPS_ERR);
	ts_state(&pair->b, IBV_QPS_ERR);
	ts_event(t, &t->b, IBV_EVENT_QP_REQ_ERR, pair->b.qp);
	ts_blank(t, pair->b.buffer, 100);
}

static void atomic_not_enabled_on_the_qp(struct vt *t)
{
	static const struct row rows[] = {
		{"swap", IBV_WR_ATOMIC_CMP_AND_SWP, 8, NOTHING, 0, IBV_ACCESS_REMOTE_ATOMIC,
		 IBV_WC_REM_INV_REQ_ERR},
		{"add", IBV_WR_ATOMIC_FETCH_AND_ADD, 8, NOTHING, 0, IBV_ACCESS_REMOTE_ATOMIC,
		 IBV_WC_REM_INV_REQ_ERR},
	};

	check_invalid_rows(t, rows, TS_COUNT(rows));
}

static void misaligned_atomic(struct vt *t)
{
	static const struct row rows[] = {
		{"swap", IBV_WR_ATOMIC_CMP_AND_SWP, 8, MISALIGNED, 0, 0, IBV_WC_REM_INV_REQ_ERR},
		{"add", IBV_WR_ATOMIC_FETCH_AND_ADD, 8, MISALIGNED, 0, 0, IBV_WC_REM_INV_REQ_ERR},
	};

	check_invalid_rows(t, rows, TS_COUNT(rows));
}

static void read_without_responder_resources(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;

	options.max_dest_rd_atomic = 0;
	pair = ts_pair(t, &options);
	ts_read(&pair->a, .wr_id = 1, .length = 100);
	ts_failed(t, pair->a.send_cq, 1, IBV_WC_REM_INV_REQ_ERR);
	ts_state(&pair->b, IBV_QPS_ERR);
	ts_event(t, &t->b, IBV_EVENT_QP_REQ_ERR, pair->b.qp);
}

/* --- the responder's receive --- */

static const struct row receive_rows[] = {
	{"one packet", IBV_WR_SEND, 100, SHORT_RECV, 0, 0, IBV_WC_REM_INV_REQ_ERR},
	{"several packets", IBV_WR_SEND, 9000, SHORT_RECV, 0, 0, IBV_WC_REM_INV_REQ_ERR},
	{"with immediate", IBV_WR_SEND_WITH_IMM, 100, SHORT_RECV, 0, 0, IBV_WC_REM_INV_REQ_ERR},
};

static void message_longer_than_the_receive(struct vt *t)
{
	struct ts_pair *pair;
	size_t i;

	for (i = 0; i < TS_COUNT(receive_rows); i++) {
		run_row(t, &receive_rows[i], &pair);
		check_responder(pair, IBV_WC_LOC_LEN_ERR);
		ts_blank(t, pair->b.buffer + 20000 + 99, 100);
	}
}

static const struct row bad_receive_rows[] = {
	{"bad lkey", IBV_WR_SEND, 100, RECV_KEY, 0, 0, IBV_WC_REM_OP_ERR},
	{"not writable", IBV_WR_SEND, 100, RECV_RIGHT, 0, 0, IBV_WC_REM_OP_ERR},
	{"other PD", IBV_WR_SEND, 100, RECV_PD, 0, 0, IBV_WC_REM_OP_ERR},
	{"several packets", IBV_WR_SEND, 9000, RECV_KEY, 0, 0, IBV_WC_REM_OP_ERR},
};

static void receive_that_cannot_be_written(struct vt *t)
{
	struct ts_pair *pair;
	size_t i;

	for (i = 0; i < TS_COUNT(bad_receive_rows); i++) {
		run_row(t, &bad_receive_rows[i], &pair);
		check_responder(pair, IBV_WC_LOC_PROT_ERR);
		ts_blank(t, pair->b.buffer + 20000, 10000);
	}
}

/* --- the requester's own memory --- */

static const struct row local_rows[] = {
	{"send, bad lkey", IBV_WR_SEND, 100, LKEY, 0, 0, IBV_WC_LOC_PROT_ERR},
	{"send, bad key byte", IBV_WR_SEND, 100, LKEY_BYTE, 0, 0, IBV_WC_LOC_PROT_ERR},
	{"send, past the end", IBV_WR_SEND, 100, LKEY_PAST_END, 0, 0, IBV_WC_LOC_PROT_ERR},
	{"send, before the start", IBV_WR_SEND, 100, LKEY_BEFORE, 0, 0, IBV_WC_LOC_PROT_ERR},
	{"send, other PD", IBV_WR_SEND, 100, LKEY_PD, 0, 0, IBV_WC_LOC_PROT_ERR},
	{"send, region gone", IBV_WR_SEND, 100, LKEY_DEREG, 0, 0, IBV_WC_LOC_PROT_ERR},
	{"write, bad lkey", IBV_WR_RDMA_WRITE, 100, LKEY, 0, 0, IBV_WC_LOC_PROT_ERR},
	{"write, past the end", IBV_WR_RDMA_WRITE, 100, LKEY_PAST_END, 0, 0, IBV_WC_LOC_PROT_ERR},
	{"long write, bad lkey", IBV_WR_RDMA_WRITE, 20000, LKEY, 0, 0, IBV_WC_LOC_PROT_ERR},
	{"read, bad lkey", IBV_WR_RDMA_READ, 100, LKEY, 0, 0, IBV_WC_LOC_PROT_ERR},
	{"read, past the end", IBV_WR_RDMA_READ, 100, LKEY_PAST_END, 0, 0, IBV_WC_LOC_PROT_ERR},
	{"read, not writable", IBV_WR_RDMA_READ, 100, LKEY_RIGHT, 0, 0, IBV_WC_LOC_PROT_ERR},
	{"read, other PD", IBV_WR_RDMA_READ, 9000, LKEY_PD, 0, 0, IBV_WC_LOC_PROT_ERR},
};

static void sges_of_the_requester_are_checked(struct vt *t)
{
	struct ts_pair *pair;
	size_t i;

	for (i = 0; i < TS_COUNT(local_rows); i++) {
		run_row(t, &local_rows[i], &pair);
		ts_state(&pair->b, IBV_QPS_RTS);
		ts_no_more(t, pair->b.recv_cq);
		ts_no_event(t, &t->b);
		ts_blank(t, pair->b.buffer, 65536);
	}
}

/* The responder does the atomic; only the requester finds out that the answer has no place. */
static void atomic_with_a_bad_lkey_is_executed(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);
	uint64_t value = 5;

	memcpy(pair->b.buffer, &value, sizeof(value));
	ts_fetch_add(&pair->a, .wr_id = 1, .compare_add = 2,
		     .lkey = ts_wrong_key(pair->a.mr->lkey));
	ts_failed(t, pair->a.send_cq, 1, IBV_WC_LOC_PROT_ERR);
	memcpy(&value, pair->b.buffer, sizeof(value));
	VT_EQ(t, value, 7);
	ts_state(&pair->a, IBV_QPS_ERR);
	ts_state(&pair->b, IBV_QPS_RTS);
}

static void empty_access_needs_no_rkey(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);

	ts_write(&pair->a, .wr_id = 1, .rkey = 0xdeadbeef, .remote_address = 1);
	ts_read(&pair->a, .wr_id = 2, .rkey = 0xdeadbeef, .remote_address = UINT64_MAX);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_RDMA_WRITE);
	ts_done(t, pair->a.send_cq, 2, IBV_WC_RDMA_READ);
	ts_state(&pair->b, IBV_QPS_RTS);
}

static void empty_send_needs_no_lkey(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);

	ts_recv(&pair->b, .wr_id = 5, .lkey = 0xdeadbeef);
	ts_send(&pair->a, .wr_id = 1, .lkey = 0xdeadbeef);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_SEND);
	ts_received(t, pair->b.recv_cq, 5, 0);
}

static void second_sge_is_checked_too(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);
	uint64_t at = (uintptr_t)pair->a.buffer;
	struct ibv_sge sges[2] = {{at, 50, pair->a.mr->lkey},
				  {at + 50, 50, ts_wrong_key(pair->a.mr->lkey)}};

	ts_recv(&pair->b, .wr_id = 5, .length = 100);
	ts_send(&pair->a, .wr_id = 1, .sge = sges, .num_sge = 2);
	ts_failed(t, pair->a.send_cq, 1, IBV_WC_LOC_PROT_ERR);
	ts_no_more(t, pair->b.recv_cq);
}

static void unsignalled_error_completes(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);
	struct ibv_wc wc;

	ts_write(&pair->a, .wr_id = 1, .length = 8, .unsignalled = true);
	ts_write(&pair->a, .wr_id = 2, .length = 8, .unsignalled = true,
		 .rkey = ts_wrong_key(pair->b.mr->rkey));
	ts_write(&pair->a, .wr_id = 3, .length = 8, .unsignalled = true);
	wc = ts_failed(t, pair->a.send_cq, 2, IBV_WC_REM_ACCESS_ERR);
	VT_EQ(t, wc.qp_num, pair->a.qp->qp_num);
	ts_flushed(t, pair->a.send_cq, 3);
}

/* --- invalidation --- */

/* As run_row(), with a SEND with Invalidate of a forbidden key as the bad request: the responder
 * neither acknowledges nor refuses it. */
static void invalidate(struct ts_pair *pair, uint32_t length, uint32_t key)
{
	static const struct row row = {.requester = IBV_WC_RETRY_EXC_ERR};
	struct vt *t = pair->a.t;

	post_receives(pair, &row);
	ts_write(&pair->a, .wr_id = 1);
	ts_send_inv(&pair->a, .wr_id = 2, .length = length, .invalidate_rkey = key);
	ts_write(&pair->a, .wr_id = 3);
	check_requester(pair, &row);
	check_responder(pair, IBV_WC_MW_BIND_ERR);
	ts_no_event(t, &t->b);
}

static void invalidation_of_a_key_of_no_window(struct vt *t)
{
	static const uint32_t lengths[] = {0, 100, 9000}; /* 9000: several packets */
	struct ts_pair *pair;
	size_t i;

	for (i = 0; i < TS_COUNT(lengths); i++) {
		vt_row(t, "%u bytes, an unknown key", lengths[i]);
		pair = ts_connected(t, IBV_QPT_RC);
		invalidate(pair, lengths[i], ts_wrong_key(pair->b.mr->rkey));

		vt_row(t, "%u bytes, a region's key", lengths[i]);
		pair = ts_connected(t, IBV_QPT_RC);
		invalidate(pair, lengths[i], pair->b.mr->rkey);
		VT_OK(t, vb_dereg_mr(pair->b.mr));
		ts_gone(t, pair->b.mr);
	}
}

/* B answers what came before the SEND, and nothing from the SEND on: each retry is lost on B. */
static void refused_invalidation_draws_no_answer(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_log *log = ts_watch(t);
	struct ts_pair *pair;

	options.retry_cnt = 3;
	pair = ts_pair(t, &options);
	ts_recv(&pair->b, .wr_id = 50, .offset = 20000, .length = 100);
	ts_write(&pair->a, .wr_id = 1, .length = 8);
	ts_send_inv(&pair->a, .wr_id = 2, .length = 100,
		    .invalidate_rkey = ts_wrong_key(pair->b.mr->rkey));
	ts_done(t, pair->a.send_cq, 1, IBV_WC_RDMA_WRITE);
	ts_failed(t, pair->b.recv_cq, 50, IBV_WC_MW_BIND_ERR);
	ts_state(&pair->a, IBV_QPS_RTS);
	log->count = 0;
	ts_failed(t, pair->a.send_cq, 2, IBV_WC_RETRY_EXC_ERR);
	/* Nothing goes either way but the repeated SEND. */
	VT_CHECK(t, log->count >= options.retry_cnt);
	VT_EQ(t, ts_count(log, TS_SEND_ONLY_INV, pair->b.qp->qp_num), log->count);
	ts_state(&pair->a, IBV_QPS_ERR);
	ts_state(&pair->b, IBV_QPS_ERR);
}

/* --- other connections --- */

static void other_connections_live_on(struct vt *t)
{
	struct ts_pair *bad = ts_connected(t, IBV_QPT_RC);
	struct ts_pair *good = ts_connected(t, IBV_QPT_RC);

	ts_write(&bad->a, .wr_id = 1, .length = 8, .rkey = ts_wrong_key(bad->b.mr->rkey));
	ts_failed(t, bad->a.send_cq, 1, IBV_WC_REM_ACCESS_ERR);
	ts_transfer(good, IBV_WR_SEND, 5000);
	ts_transfer(good, IBV_WR_RDMA_READ, 5000);
}

static const struct vt_test tests[] = {
	{"access_violation", RESP "ERR_RKEY_VIOLATION; ibv_get_async_event(3): QP_ACCESS_ERR", 0,
	 access_violation},
	{"access_violation_by_atomics",
	 RESP "ERR_RKEY_VIOLATION; ibv_get_async_event(3): QP_ACCESS_ERR", VT_NEEDS_ATOMICS,
	 access_violation_by_atomics},
	{"nothing_is_written_by_a_refused_write", RESP "check_rkey of the whole length", 0,
	 nothing_is_written_by_a_refused_write},
	{"write_imm_in_error_ends_its_receive",
	 SRC_RXE "rxe_resp.c: check_resource takes it, do_complete ends it", 0,
	 write_imm_in_error_ends_its_receive},
	{"read_not_enabled_on_the_qp", RESP "ERR_UNSUPPORTED_OPCODE", 0,
	 read_not_enabled_on_the_qp},
	{"write_not_enabled_on_the_qp", RESP "ERR_UNSUPPORTED_OPCODE", 0,
	 write_not_enabled_on_the_qp},
	{"atomic_not_enabled_on_the_qp", RESP "ERR_UNSUPPORTED_OPCODE", VT_NEEDS_ATOMICS,
	 atomic_not_enabled_on_the_qp},
	{"misaligned_atomic", RESP "ERR_MISALIGNED_ATOMIC", VT_NEEDS_ATOMICS, misaligned_atomic},
	{"read_without_responder_resources", RESP "ERR_TOO_MANY_RDMA_ATM_REQ", 0,
	 read_without_responder_resources},
	{"message_longer_than_the_receive",
	 "the NAK: " SRC_QIB "qib_rc.c, qib_rc_rcv: nack_inv; the receive's status: unsourced", 0,
	 message_longer_than_the_receive},
	{"receive_that_cannot_be_written",
	 SRC_RVT "qp.c, init_sge: LOC_PROT_ERR; " SRC_QIB "qib_rc.c, qib_rc_rcv: nack_op_err", 0,
	 receive_that_cannot_be_written},
	{"sges_of_the_requester_are_checked", "unsourced", 0, sges_of_the_requester_are_checked},
	{"atomic_with_a_bad_lkey_is_executed",
	 SRC_RXE "rxe_comp.c, do_atomic: after the answer; the status: unsourced", VT_NEEDS_ATOMICS,
	 atomic_with_a_bad_lkey_is_executed},
	{"empty_access_needs_no_rkey",
	 SRC_RXE "rxe_resp.c, check_rkey: \"A zero-byte op is not required "
		 "to set an addr or rkey\"",
	 0, empty_access_needs_no_rkey},
	{"empty_send_needs_no_lkey",
	 SRC_RVT "qp.c, rvt_post_one_wr and init_sge: length 0 is passed over", 0,
	 empty_send_needs_no_lkey},
	{"second_sge_is_checked_too",
	 SRC_RXE "rxe_mr.c, copy_data: each SGE; the status: unsourced", 0,
	 second_sge_is_checked_too},
	{"unsignalled_error_completes",
	 SRC_RXE "rxe_comp.c, quoting: \"if a completion error occurs, a "
		 "Work Completion will always be generated\"",
	 0, unsignalled_error_completes},
	{"invalidation_of_a_key_of_no_window",
	 "google/rdma-unit-test unit/rc_test.cc, SendWithInvalidateBadRkey: \"the responder should "
	 "not "
	 "send out a NAK code, see IB spec 9.9.6.3 responder error behavior (class J error). The "
	 "requester should not send out a completion\"; the receive's status: unsourced",
	 0, invalidation_of_a_key_of_no_window},
	{"refused_invalidation_draws_no_answer",
	 "google/rdma-unit-test unit/rc_test.cc, SendWithInvalidateType1Rkey: no NAK, no "
	 "completion; " RESP "ERR_INVALIDATE_RKEY, class J",
	 VT_NEEDS_SIM, refused_invalidation_draws_no_answer},
	{"other_connections_live_on", "unsourced", 0, other_connections_live_on},
	{NULL},
};

const struct vt_suite vt_suite_errors = {"errors", "errors of a connection", tests};
