/* SPDX-License-Identifier: MIT */
/*
 * Keys that worked until a moment ago. A device remembers the memory behind the keys that it used
 * last; each test here lets it do so, changes what the key stands for, and uses the key again.
 *
 * On the simulator each test runs twice: with the runner's trace, and without a trace, where packets
 * take another way.
 */
#include "test/conformance/sources.h"
#include "test/support/keep.h"
#include "test/support/need.h"
#include "test/support/own_world.h"
#include "test/support/srq.h"
#include "test/support/window.h"
#include "test/support/xrc.h"

#define PLACE	    4096u /* where the key reaches at first, in B's buffer */
#define OTHER_PLACE 32768u
#define KEY_BYTES   4096u

/* Runs a test, and on the simulator runs it again without a trace. */
static void twice(struct vt *t, void (*run)(struct vt *t))
{
	run(t);
	if (!(t->have & VT_NEEDS_SIM))
		return;
	ts_untraced(t);
	run(t);
	vt_row(t, NULL);
}

/* --- remote keys --- */

struct scene {
	struct vt *t;
	struct ts_pair *pair;
	struct ibv_pd *other_pd; /* of B */
	struct ibv_mr *mr;	 /* of a row whose key is a region's */
	struct ibv_mw *mw;	 /* of a row whose key is a window's */
	uint32_t rkey;		 /* the key that A uses */
};

static const struct {
	const char *name;
	enum ibv_wr_opcode opcode;
	enum ibv_wc_opcode done;
	int right;
} operations[] = {
	{"WRITE", IBV_WR_RDMA_WRITE, IBV_WC_RDMA_WRITE, IBV_ACCESS_REMOTE_WRITE},
	{"READ", IBV_WR_RDMA_READ, IBV_WC_RDMA_READ, IBV_ACCESS_REMOTE_READ},
	{"FETCH ADD", IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WC_FETCH_ADD, IBV_ACCESS_REMOTE_ATOMIC},
};

#define OPERATIONS TS_COUNT(operations)
#define RIGHTS	   (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

static void post_operation(struct scene *s, size_t op, uint32_t rkey, size_t place)
{
	memset(s->pair->b.buffer + place, TS_BLANK, 8);
	memset(s->pair->a.buffer + 8192, 0, 8);
	TS_POST(&s->pair->a, operations[op].opcode, .wr_id = 1, .rkey = rkey,
		.offset = operations[op].opcode == IBV_WR_RDMA_WRITE ? 0 : 8192, .length = 8,
		.remote_offset = place, .compare_add = 1);
}

static void reaches_at(struct scene *s, struct vt_at at, size_t op, uint32_t rkey, size_t place)
{
	post_operation(s, op, rkey, place);
	ts_expect_at(s->t, at, s->pair->a.send_cq, 1, IBV_WC_SUCCESS, operations[op].done);
	if (operations[op].opcode == IBV_WR_RDMA_WRITE)
		ts_verify_at(s->t, at, s->pair->b.buffer + place, 8, 1);
	else
		ts_blank_at(s->t, at, s->pair->a.buffer + 8192, 8);
}

static void refused_at(struct scene *s, struct vt_at at, size_t op, uint32_t rkey, size_t place)
{
	post_operation(s, op, rkey, place);
	ts_expect_at(s->t, at, s->pair->a.send_cq, 1, IBV_WC_REM_ACCESS_ERR, 0);
	ts_blank_at(s->t, at, s->pair->b.buffer + place, 8);
	ts_drain_events(&s->t->a);
	ts_drain_events(&s->t->b);
}

#define reaches(s, op, rkey, place) reaches_at(s, VT_HERE, op, rkey, place)
#define refused(s, op, rkey, place) refused_at(s, VT_HERE, op, rkey, place)

static void make_region(struct scene *s)
{
	s->mr = ts_mr(s->t, s->pair->b.pd, s->pair->b.buffer + PLACE, KEY_BYTES,
		      TS_ACCESS_ALL | IBV_ACCESS_MW_BIND);
	s->rkey = s->mr->rkey;
}

static void bind(struct scene *s, size_t place)
{
	ts_bound(&s->pair->b, s->mw, .wr_id = 9, .offset = place, .length = KEY_BYTES,
		 .access = RIGHTS);
}

static void make_window(struct scene *s, enum ibv_mw_type type)
{
	s->mw = ts_mw(&s->pair->b, type);
	bind(s, PLACE);
	s->rkey = s->mw->rkey;
}

static void make_type_1(struct scene *s)
{
	make_window(s, IBV_MW_TYPE_1);
}

static void make_type_2(struct scene *s)
{
	make_window(s, IBV_MW_TYPE_2);
}

static void rereg(struct scene *s, int flags, struct ibv_pd *pd, void *address, int access)
{
	errno = 0;
	if (vb_rereg_mr(s->mr, flags, pd, address, KEY_BYTES, access)) {
		if (errno == EOPNOTSUPP || errno == ENOSYS)
			VT_SKIP(s->t, "the device does not support rereg_mr");
		VT_FAIL(s->t, "rereg_mr: %s", vt_errno_name(errno));
	}
}

static void dereg(struct scene *s)
{
	VT_OK(s->t, vb_dereg_mr(s->mr));
	ts_gone(s->t, s->mr);
}

/* The new region gets the memory, in the heap and in the device's table, that the old one had. */
static void dereg_and_register(struct scene *s)
{
	dereg(s);
	ts_mr(s->t, s->pair->b.pd, s->pair->b.buffer + PLACE, KEY_BYTES, TS_ACCESS_ALL);
}

static void change_pd(struct scene *s)
{
	rereg(s, IBV_REREG_MR_CHANGE_PD, s->other_pd, NULL, 0);
}

static void take_rights(struct scene *s)
{
	rereg(s, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, IBV_ACCESS_LOCAL_WRITE);
}

static void move_region(struct scene *s)
{
	rereg(s, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, s->pair->b.buffer + OTHER_PLACE, 0);
}

static void rebind_elsewhere(struct scene *s)
{
	bind(s, OTHER_PLACE);
}

static void rebind_there(struct scene *s)
{
	bind(s, PLACE);
}

static void unbind(struct scene *s)
{
	ts_bound(&s->pair->b, s->mw, .wr_id = 9, .no_mr = true, .no_length = true,
		 .no_access = true);
}

static void dealloc(struct scene *s)
{
	VT_OK(s->t, vb_dealloc_mw(s->mw));
	ts_gone(s->t, s->mw);
}

/* The new window gets the memory, in the heap and in the device's table, that the old one had. */
static void dealloc_and_bind_another(struct scene *s)
{
	const enum ibv_mw_type type = s->mw->type;

	dealloc(s);
	s->mw = ts_mw(&s->pair->b, type);
	bind(s, PLACE);
}

static void invalidate(struct scene *s)
{
	VT_OK(s->t, ts_local_inv(&s->pair->b, 9, s->rkey));
	ts_done(s->t, s->pair->b.send_cq, 9, IBV_WC_LOCAL_INV);
}

static void invalidate_from_a(struct scene *s)
{
	ts_recv(&s->pair->b, .wr_id = 8, .offset = 60000, .length = 8);
	ts_send_inv(&s->pair->a, .wr_id = 9, .length = 8, .invalidate_rkey = s->rkey);
	ts_done(s->t, s->pair->a.send_cq, 9, IBV_WC_SEND);
	ts_received(s->t, s->pair->b.recv_cq, 8, 8);
}

static void invalidate_and_bind_there(struct scene *s)
{
	invalidate(s);
	bind(s, PLACE);
}

enum kind { REGION, REREGISTERED, WINDOW };

static const struct row {
	const char *name;
	enum kind kind;
	enum ibv_mw_type window;
	void (*make)(struct scene *s);
	void (*spoil)(struct scene *s);
} rows[] = {
	{"region deregistered", REGION, 0, make_region, dereg},
	{"region deregistered, another registered", REGION, 0, make_region, dereg_and_register},
	{"region moved to another PD", REREGISTERED, 0, make_region, change_pd},
	{"region without its rights", REREGISTERED, 0, make_region, take_rights},
	{"region moved", REREGISTERED, 0, make_region, move_region},
	{"window of type 1 bound elsewhere", WINDOW, IBV_MW_TYPE_1, make_type_1, rebind_elsewhere},
	{"window of type 1 bound there again", WINDOW, IBV_MW_TYPE_1, make_type_1, rebind_there},
	{"window of type 1 unbound", WINDOW, IBV_MW_TYPE_1, make_type_1, unbind},
	{"window of type 1 deallocated", WINDOW, IBV_MW_TYPE_1, make_type_1, dealloc},
	{"window of type 1 deallocated, another bound", WINDOW, IBV_MW_TYPE_1, make_type_1,
	 dealloc_and_bind_another},
	{"window of type 2 invalidated", WINDOW, IBV_MW_TYPE_2, make_type_2, invalidate},
	{"window of type 2 invalidated by A", WINDOW, IBV_MW_TYPE_2, make_type_2,
	 invalidate_from_a},
	{"window of type 2 invalidated and bound again", WINDOW, IBV_MW_TYPE_2, make_type_2,
	 invalidate_and_bind_there},
	{"window of type 2 deallocated", WINDOW, IBV_MW_TYPE_2, make_type_2, dealloc},
	{"window of type 2 deallocated, another bound", WINDOW, IBV_MW_TYPE_2, make_type_2,
	 dealloc_and_bind_another},
};

static struct scene begin(struct vt *t, const struct row *row)
{
	struct scene s = {.t = t};

	if (row->window)
		ts_need_windows(t, row->window);
	s.pair = ts_window_pair(t);
	s.other_pd = ts_pd(t, &t->b);
	row->make(&s);
	return s;
}

static void try_ended_keys(struct vt *t, enum kind kind)
{
	for (size_t i = 0; i < TS_COUNT(rows); i++)
		for (size_t op = 0; op < OPERATIONS; op++) {
			struct scene s;

			if (rows[i].kind != kind)
				continue;
			vt_row(t, "%s, %s", rows[i].name, operations[op].name);
			s = begin(t, &rows[i]);
			for (int n = 0; n < 2; n++)
				reaches(&s, op, s.rkey, PLACE + 8 * (size_t)n);
			rows[i].spoil(&s);
			refused(&s, op, s.rkey, PLACE);
		}
}

static void keys_of_ended_regions(struct vt *t)
{
	try_ended_keys(t, REGION);
}

static void keys_of_reregistered_regions(struct vt *t)
{
	try_ended_keys(t, REREGISTERED);
}

static void keys_of_ended_windows(struct vt *t)
{
	try_ended_keys(t, WINDOW);
}

static void ended_region_keys_reach_nothing(struct vt *t)
{
	twice(t, keys_of_ended_regions);
}

static void reregistered_keys_reach_nothing_old(struct vt *t)
{
	twice(t, keys_of_reregistered_regions);
}

static void ended_window_keys_reach_nothing(struct vt *t)
{
	twice(t, keys_of_ended_windows);
}

/* A key that is in use keeps its bounds. */
static void try_bounds(struct vt *t, void (*make)(struct scene *s), const char *name)
{
	const struct row row = {.make = make,
				.window = make == make_type_1	? IBV_MW_TYPE_1
					  : make == make_type_2 ? IBV_MW_TYPE_2
								: 0};

	for (size_t op = 0; op < OPERATIONS; op++) {
		struct scene s;

		vt_row(t, "%s, %s", name, operations[op].name);
		s = begin(t, &row);
		reaches(&s, op, s.rkey, PLACE);
		reaches(&s, op, s.rkey, PLACE + KEY_BYTES - 8);
		refused(&s, op, s.rkey, PLACE + KEY_BYTES);
		s = begin(t, &row);
		reaches(&s, op, s.rkey, PLACE);
		refused(&s, op, s.rkey, PLACE - 8);
	}
}

static void region_bounds(struct vt *t)
{
	try_bounds(t, make_region, "region");
}

static void window_bounds(struct vt *t)
{
	try_bounds(t, make_type_1, "window of type 1");
	try_bounds(t, make_type_2, "window of type 2");
}

static void used_region_keys_have_bounds(struct vt *t)
{
	twice(t, region_bounds);
}

static void used_window_keys_have_bounds(struct vt *t)
{
	twice(t, window_bounds);
}

/* Keys that differ from the used key in one bit stand for nothing. */
static void neighbours(struct vt *t)
{
	static const uint32_t bits[] = {1, 0x80, 0x100, 0x800000, 0x80000000};

	for (size_t i = 0; i < TS_COUNT(bits); i++)
		for (size_t op = 0; op < OPERATIONS; op++) {
			struct scene s = {.t = t};

			vt_row(t, "bit 0x%x, %s", bits[i], operations[op].name);
			s.pair = ts_window_pair(t);
			make_region(&s);
			reaches(&s, op, s.rkey, PLACE);
			refused(&s, op, s.rkey ^ bits[i], PLACE);
		}
}

static void neighbour_of_a_used_key_is_refused(struct vt *t)
{
	twice(t, neighbours);
}

/* B's other rights do not follow from the one that A used. */
static void used_right(struct vt *t)
{
	for (size_t granted = 0; granted < OPERATIONS; granted++)
		for (size_t op = 0; op < OPERATIONS; op++) {
			struct scene s = {.t = t};

			if (op == granted)
				continue;
			vt_row(t, "%s behind %s", operations[op].name, operations[granted].name);
			s.pair = ts_window_pair(t);
			s.mr = ts_mr(t, s.pair->b.pd, s.pair->b.buffer + PLACE, KEY_BYTES,
				     IBV_ACCESS_LOCAL_WRITE | operations[granted].right);
			reaches(&s, granted, s.mr->rkey, PLACE);
			refused(&s, op, s.mr->rkey, PLACE);
		}
}

static void used_right_gives_no_other(struct vt *t)
{
	twice(t, used_right);
}

/* A key that QPs of one PD use is refused to a QP of another PD, on the same device. */
static void key_used_by_others(struct vt *t)
{
	for (size_t op = 0; op < OPERATIONS; op++) {
		struct ts_options options = ts_defaults(t, IBV_QPT_RC);
		struct scene s = {.t = t}, other = {.t = t}, same = {.t = t};

		vt_row(t, "%s", operations[op].name);
		s.pair = ts_window_pair(t);
		make_region(&s);
		same.pair = ts_pair_in_pd(t, &options, &s.pair->b);
		other.pair = ts_window_pair(t);
		reaches(&s, op, s.rkey, PLACE);
		reaches(&other, op, other.pair->b.mr->rkey, PLACE);
		same.pair->b.buffer = other.pair->b.buffer = s.pair->b.buffer;
		reaches(&same, op, s.rkey, PLACE);
		refused(&other, op, s.rkey, PLACE);
	}
}

static void key_used_by_others_is_refused(struct vt *t)
{
	twice(t, key_used_by_others);
}

/* --- what new bindings grant --- */

static void new_place(struct vt *t)
{
	static const struct row cells[] = {
		{"region moved", REREGISTERED, 0, make_region, move_region},
		{"type 1 bound elsewhere", WINDOW, IBV_MW_TYPE_1, make_type_1, rebind_elsewhere},
	};

	for (size_t i = 0; i < TS_COUNT(cells); i++)
		for (size_t op = 0; op < OPERATIONS; op++) {
			struct scene s;
			uint32_t rkey;

			vt_row(t, "%s, %s", cells[i].name, operations[op].name);
			s = begin(t, &cells[i]);
			reaches(&s, op, s.rkey, PLACE);
			cells[i].spoil(&s);
			rkey = s.mw ? s.mw->rkey : s.rkey;
			reaches(&s, op, rkey, OTHER_PLACE);
			refused(&s, op, rkey, PLACE);
		}
}

static void moved_keys_reach_their_new_place(struct vt *t)
{
	twice(t, new_place);
}

/* A type 2 window is bound, used and invalidated under one key, then bound under that key to
 * another place. */
static void key_of_another_place(struct vt *t)
{
	ts_need_windows(t, IBV_MW_TYPE_2);
	for (size_t op = 0; op < OPERATIONS; op++) {
		struct scene s = {.t = t};

		vt_row(t, "%s", operations[op].name);
		s.pair = ts_window_pair(t);
		make_type_2(&s);
		reaches(&s, op, s.rkey, PLACE);
		invalidate(&s);
		ts_bound(&s.pair->b, s.mw, .wr_id = 9, .offset = OTHER_PLACE, .length = KEY_BYTES,
			 .access = RIGHTS, .rkey = s.rkey);
		reaches(&s, op, s.rkey, OTHER_PLACE);
		refused(&s, op, s.rkey, PLACE);
	}
}

static void used_key_is_bound_to_another_place(struct vt *t)
{
	twice(t, key_of_another_place);
}

/* The window has fewer rights, or is shorter, when it is bound again. */
static void fewer_rights(struct vt *t)
{
	ts_need_windows(t, IBV_MW_TYPE_1);
	for (size_t op = 0; op < OPERATIONS; op++) {
		struct scene s = {.t = t};
		const size_t kept = (op + 1) % OPERATIONS;

		vt_row(t, "%s", operations[op].name);
		s.pair = ts_window_pair(t);
		make_type_1(&s);
		reaches(&s, op, s.rkey, PLACE);
		ts_bound(&s.pair->b, s.mw, .wr_id = 9, .offset = PLACE, .length = 64,
			 .access = (unsigned int)operations[kept].right);
		reaches(&s, kept, s.mw->rkey, PLACE);
		refused(&s, op, s.mw->rkey, PLACE);
		s.pair = ts_window_pair(t);
		make_type_1(&s);
		reaches(&s, op, s.rkey, PLACE + 64);
		ts_bound(&s.pair->b, s.mw, .wr_id = 9, .offset = PLACE, .length = 64,
			 .access = RIGHTS);
		reaches(&s, op, s.mw->rkey, PLACE);
		refused(&s, op, s.mw->rkey, PLACE + 64);
	}
}

static void rebound_window_has_its_new_rights(struct vt *t)
{
	twice(t, fewer_rights);
}

/* Rights that B adds hold at once, for a QP that used the key before. */
static void more_rights(struct vt *t)
{
	for (size_t op = 0; op < OPERATIONS; op++) {
		const size_t first = (op + 1) % OPERATIONS;
		struct scene s = {.t = t};

		vt_row(t, "%s", operations[op].name);
		s.pair = ts_window_pair(t);
		s.mr = ts_mr(t, s.pair->b.pd, s.pair->b.buffer + PLACE, KEY_BYTES,
			     IBV_ACCESS_LOCAL_WRITE | operations[first].right);
		reaches(&s, first, s.mr->rkey, PLACE);
		rereg(&s, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, TS_ACCESS_ALL);
		reaches(&s, op, s.mr->rkey, PLACE);
	}
}

static void added_rights_hold_at_once(struct vt *t)
{
	twice(t, more_rights);
}

/* --- local keys --- */

/* Who uses a local key: A's SEND and READ, B's receive in a QP or an SRQ. */
enum user { SEND, READ, RECEIVE, SRQ_RECEIVE, USERS };

static const char *const user_names[USERS] = {"SEND", "READ", "receive", "receive of an SRQ"};

struct local {
	struct vt *t;
	enum user user;
	struct ts_shared *shared;
	struct ts_pair *pair;
	struct ts_end *end; /* whose memory it is */
	struct ibv_pd *pd, *other_pd;
	uint8_t *memory;
	struct ibv_mr *mr;
};

static struct local begin_local(struct vt *t, enum user user)
{
	struct local l = {.t = t, .user = user};

	if (user == SRQ_RECEIVE) {
		if (!(t->have & VT_NEEDS_SRQ))
			VT_SKIP(t, "the device has no SRQ (max_srq)");
		l.shared = ts_shared(t);
		l.pair = ts_pair_on(l.shared, IBV_QPT_RC);
	} else {
		l.pair = ts_connected(t, IBV_QPT_RC);
	}
	l.end = user == SEND || user == READ ? &l.pair->a : &l.pair->b;
	l.pd = l.end->pd;
	l.other_pd = ts_pd(t, l.end->node);
	l.memory = ts_memory(t, 2 * KEY_BYTES);
	ts_fill(l.memory, 2 * KEY_BYTES, 1);
	l.mr = ts_mr(t, l.pd, l.memory, KEY_BYTES, TS_ACCESS_ALL);
	return l;
}

/* Uses the key; returns how the WR that uses it ends. */
static enum ibv_wc_status use(struct local *l, const uint8_t *at)
{
	const bool receives = l->user == RECEIVE || l->user == SRQ_RECEIVE;
	const struct ts_rr rr = {.wr_id = 2,
				 .length = 64,
				 .address = receives ? (uintptr_t)at : 0,
				 .lkey = receives ? l->mr->lkey : 0};
	const struct ts_wr wr = {.wr_id = 1,
				 .opcode = l->user == READ ? IBV_WR_RDMA_READ : IBV_WR_SEND,
				 .length = 64,
				 .address = receives ? 0 : (uintptr_t)at,
				 .lkey = receives ? 0 : l->mr->lkey};
	struct ibv_wc sent, received;

	if (l->user == SRQ_RECEIVE)
		VT_OK(l->t, ts_post_srq(l->shared, &rr));
	else if (l->user != READ)
		VT_OK(l->t, ts_post_rr(&l->pair->b, &rr));
	VT_OK(l->t, ts_post(&l->pair->a, &wr));
	VT_EQ(l->t, ts_wait(l->t, l->pair->a.send_cq, 1, &sent), 1);
	if (!receives)
		return sent.status;
	VT_EQ(l->t, ts_wait(l->t, l->pair->b.recv_cq, 1, &received), 1);
	return received.status;
}

/* Takes the completions of an earlier receive, which A's SEND filled. */
static void use_well(struct local *l, const uint8_t *at)
{
	struct ibv_wc wc;

	VT_STATUS(l->t, use(l, at), IBV_WC_SUCCESS);
	if (l->user == SEND)
		VT_EQ(l->t, ts_wait(l->t, l->pair->b.recv_cq, 1, &wc), 1);
}

static void rereg_local(struct local *l, int flags, struct ibv_pd *pd, void *address, int access)
{
	errno = 0;
	if (!vb_rereg_mr(l->mr, flags, pd, address, KEY_BYTES, access))
		return;
	if (errno == EOPNOTSUPP || errno == ENOSYS)
		VT_SKIP(l->t, "the device does not support rereg_mr");
	VT_FAIL(l->t, "rereg_mr: %s", vt_errno_name(errno));
}

static void dereg_local(struct local *l)
{
	/* Another region tells the key. */
	struct ibv_mr *other = ts_mr(l->t, l->pd, l->memory + KEY_BYTES, KEY_BYTES, TS_ACCESS_ALL);
	const uint32_t lkey = l->mr->lkey;

	VT_OK(l->t, vb_dereg_mr(l->mr));
	ts_gone(l->t, l->mr);
	other->lkey = lkey;
	l->mr = other;
}

static void other_pd_local(struct local *l)
{
	rereg_local(l, IBV_REREG_MR_CHANGE_PD, l->other_pd, NULL, 0);
}

static void move_local(struct local *l)
{
	rereg_local(l, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, l->memory + KEY_BYTES, 0);
}

static void read_only_local(struct local *l)
{
	rereg_local(l, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0);
}

static const struct {
	const char *name;
	void (*spoil)(struct local *l);
	bool writes_only; /* a SEND is not concerned */
} local_rows[] = {
	{"moved to another PD", other_pd_local, false},
	{"moved", move_local, false},
	{"without local write", read_only_local, true},
};

static void try_local(struct vt *t, enum user user, void (*spoil)(struct local *l),
		      const char *name, bool refuses)
{
	struct local l = begin_local(t, user);

	vt_row(t, "%s, %s", user_names[user], name);
	use_well(&l, l.memory);
	use_well(&l, l.memory + 64);
	spoil(&l);
	if (refuses)
		VT_STATUS(t, use(&l, l.memory), IBV_WC_LOC_PROT_ERR);
	else
		use_well(&l, l.memory);
	ts_drain_events(&t->a);
	ts_drain_events(&t->b);
}

static void local_keys(struct vt *t)
{
	for (enum user user = 0; user < USERS; user++)
		try_local(t, user, dereg_local, "deregistered", true);
}

static void reregistered_local_keys(struct vt *t)
{
	for (size_t i = 0; i < TS_COUNT(local_rows); i++)
		for (enum user user = 0; user < USERS; user++)
			try_local(t, user, local_rows[i].spoil, local_rows[i].name,
				  !(local_rows[i].writes_only && user == SEND));
}

static void ended_local_keys_are_refused(struct vt *t)
{
	twice(t, local_keys);
}

static void reregistered_local_keys_are_refused(struct vt *t)
{
	twice(t, reregistered_local_keys);
}

static void local_grants(struct vt *t)
{
	for (enum user user = 0; user < USERS; user++) {
		struct local l = begin_local(t, user);

		vt_row(t, "%s", user_names[user]);
		use_well(&l, l.memory);
		move_local(&l);
		use_well(&l, l.memory + KEY_BYTES);
		other_pd_local(&l);
		rereg_local(&l, IBV_REREG_MR_CHANGE_PD, l.pd, NULL, 0);
		use_well(&l, l.memory + KEY_BYTES);
		rereg_local(&l, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0);
		rereg_local(&l, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, IBV_ACCESS_LOCAL_WRITE);
		use_well(&l, l.memory + KEY_BYTES);
	}
}

static void reregistered_local_keys_work_at_once(struct vt *t)
{
	twice(t, local_grants);
}

/* A list whose pieces are in three regions: each piece is checked by its own key. */
#define PIECES 3

struct list {
	struct ibv_mr *mrs[PIECES];
	struct ibv_sge sge[PIECES];
};

static struct list make_list(struct ts_end *end)
{
	struct list list;

	for (int i = 0; i < PIECES; i++) {
		uint8_t *memory = ts_memory(end->t, KEY_BYTES);

		ts_fill(memory, KEY_BYTES, 1);
		list.mrs[i] = ts_mr(end->t, end->pd, memory, KEY_BYTES, TS_ACCESS_ALL);
		list.sge[i] = (struct ibv_sge){
			.addr = (uintptr_t)memory, .length = 64, .lkey = list.mrs[i]->lkey};
	}
	return list;
}

static void use_list(struct ts_end *a, struct list *list, enum ibv_wr_opcode opcode,
		     enum ibv_wc_status status)
{
	struct ibv_wc wc;

	TS_POST(a, opcode, .wr_id = 1, .sge = list->sge, .num_sge = PIECES);
	VT_EQ(a->t, ts_wait(a->t, a->send_cq, 1, &wc), 1);
	VT_EXPECT_STATUS(a->t, wc.status, status);
}

static void try_list(struct vt *t, enum ibv_wr_opcode opcode, int ended)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);
	struct list list = make_list(&pair->a);

	vt_row(t, "%s, piece %d", opcode == IBV_WR_RDMA_READ ? "READ" : "WRITE", ended);
	for (int i = 0; i < 2; i++)
		use_list(&pair->a, &list, opcode, IBV_WC_SUCCESS);
	VT_OK(t, vb_dereg_mr(list.mrs[ended]));
	ts_gone(t, list.mrs[ended]);
	use_list(&pair->a, &list, opcode, IBV_WC_LOC_PROT_ERR);
}

static void lists(struct vt *t)
{
	for (int ended = 0; ended < PIECES; ended++) {
		try_list(t, IBV_WR_RDMA_WRITE, ended);
		try_list(t, IBV_WR_RDMA_READ, ended);
	}
}

static void pieces_have_keys_of_their_own(struct vt *t)
{
	twice(t, lists);
}

/* --- XRC: the PD of the SRQ that a message names --- */

static void xrc_one(struct ts_xrc *xrc, int srq, enum ibv_wr_opcode opcode, int memory,
		    uint64_t wr_id)
{
	struct ts_shared *to = xrc->shared[memory];

	TS_XRC_POST(xrc, xrc->srqn[srq], opcode, .wr_id = wr_id, .offset = 8192 + 1024 * wr_id,
		    .length = 8, .remote_address = (uintptr_t)to->buffer, .rkey = to->mr->rkey);
}

/* Operations of two SRQs wait for their answers at one time. */
static void xrc_mixture(struct vt *t)
{
	struct ts_xrc *xrc = ts_xrc(t);
	static const struct {
		int srq;
		enum ibv_wr_opcode opcode;
		enum ibv_wc_opcode done;
	} work[] = {
		{0, IBV_WR_RDMA_READ, IBV_WC_RDMA_READ},
		{1, IBV_WR_RDMA_WRITE, IBV_WC_RDMA_WRITE},
		{0, IBV_WR_RDMA_READ, IBV_WC_RDMA_READ},
		{1, IBV_WR_RDMA_READ, IBV_WC_RDMA_READ},
		{0, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WC_FETCH_ADD},
		{1, IBV_WR_RDMA_READ, IBV_WC_RDMA_READ},
		{0, IBV_WR_RDMA_WRITE, IBV_WC_RDMA_WRITE},
		{1, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WC_FETCH_ADD},
	};

	for (size_t i = 0; i < TS_COUNT(work); i++)
		xrc_one(xrc, work[i].srq, work[i].opcode, work[i].srq, i);
	for (size_t i = 0; i < TS_COUNT(work); i++)
		ts_done(t, xrc->pair->a.send_cq, i, work[i].done);
}

static void xrc_messages_of_two_pds_at_once(struct vt *t)
{
	twice(t, xrc_mixture);
}

/* The PD of the message before is no help. */
static void xrc_foreign(struct vt *t)
{
	for (size_t op = 0; op < OPERATIONS; op++)
		for (size_t before = 0; before < OPERATIONS; before++) {
			struct ts_xrc *xrc = ts_xrc(t);

			vt_row(t, "%s behind %s of the other SRQ", operations[op].name,
			       operations[before].name);
			xrc_one(xrc, 0, operations[op].opcode, 0, 1);
			ts_done(t, xrc->pair->a.send_cq, 1, operations[op].done);
			xrc_one(xrc, 1, operations[before].opcode, 1, 2);
			xrc_one(xrc, 0, operations[op].opcode, 1, 3);
			ts_done(t, xrc->pair->a.send_cq, 2, operations[before].done);
			ts_failed(t, xrc->pair->a.send_cq, 3, IBV_WC_REM_ACCESS_ERR);
			ts_drain_events(&t->b);
		}
}

static void xrc_message_is_checked_in_the_pd_of_its_srq(struct vt *t)
{
	twice(t, xrc_foreign);
}

#define DEREG  "ibv_dereg_mr(3)"
#define WINDOW "ibv_bind_mw(3), ibv_post_send(3): IBV_WR_LOCAL_INV; ibv_dealloc_mw(3)"
#define ALL    VT_NEEDS_ATOMICS

static const struct vt_test tests[] = {
	{"ended_region_keys_reach_nothing", DEREG, ALL, ended_region_keys_reach_nothing},
	{"reregistered_keys_reach_nothing_old", "ibv_rereg_mr(3)", ALL,
	 reregistered_keys_reach_nothing_old},
	{"ended_window_keys_reach_nothing", WINDOW, ALL, ended_window_keys_reach_nothing},
	{"used_region_keys_have_bounds", "ibv_reg_mr(3)", ALL, used_region_keys_have_bounds},
	{"used_window_keys_have_bounds", "ibv_bind_mw(3)", ALL, used_window_keys_have_bounds},
	{"neighbour_of_a_used_key_is_refused", "ibv_reg_mr(3): rkey", ALL,
	 neighbour_of_a_used_key_is_refused},
	{"used_right_gives_no_other", "ibv_reg_mr(3)", ALL, used_right_gives_no_other},
	{"key_used_by_others_is_refused", "ibv_reg_mr(3): pd", ALL, key_used_by_others_is_refused},
	{"moved_keys_reach_their_new_place", "ibv_rereg_mr(3), ibv_bind_mw(3)", ALL,
	 moved_keys_reach_their_new_place},
	{"used_key_is_bound_to_another_place", "ibv_post_send(3): IBV_WR_BIND_MW", ALL,
	 used_key_is_bound_to_another_place},
	{"rebound_window_has_its_new_rights", "ibv_bind_mw(3)", ALL,
	 rebound_window_has_its_new_rights},
	{"added_rights_hold_at_once", "ibv_rereg_mr(3)", ALL, added_rights_hold_at_once},
	{"ended_local_keys_are_refused", DEREG, 0, ended_local_keys_are_refused},
	{"reregistered_local_keys_are_refused", "ibv_rereg_mr(3)", 0,
	 reregistered_local_keys_are_refused},
	{"reregistered_local_keys_work_at_once", "ibv_rereg_mr(3)", 0,
	 reregistered_local_keys_work_at_once},
	{"pieces_have_keys_of_their_own", "ibv_post_send(3): sg_list", 0,
	 pieces_have_keys_of_their_own},
	{"xrc_messages_of_two_pds_at_once", "unsourced", ALL, xrc_messages_of_two_pds_at_once},
	{"xrc_message_is_checked_in_the_pd_of_its_srq", "unsourced", ALL,
	 xrc_message_is_checked_in_the_pd_of_its_srq},
	{NULL},
};

const struct vt_suite vt_suite_caches_memory = {"caches_memory", "keys that worked until now",
						tests};
