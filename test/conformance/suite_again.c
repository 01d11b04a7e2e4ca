/* SPDX-License-Identifier: MIT */
/*
 * What is used a second time: a slot of a queue by another operation, a QP after RESET in the middle
 * of its work, an address handle after another one.
 */
#include "test/conformance/sources.h"
#include "test/support/keep.h"
#include "test/support/linked_pair.h"
#include "test/support/need.h"
#include "test/support/own_world.h"
#include "test/support/srq.h"
#include "test/support/tap.h"
#include "test/support/window.h"

#include <arpa/inet.h>
#include <verbena/fault.h>
#include <verbena/sim.h>

/* --- one slot --- */

#define IMM	     0x55667788
#define TARGET	     16384u /* in B's buffer */
#define RESULT	     32768u /* in A's buffer */
#define SHORT_BYTES  24u
#define LONG_BYTES   9000u
#define ATOMIC_BYTES 8u

struct scene {
	struct vt *t;
	struct ts_pair *pair;
	struct ibv_mw *mw; /* A's own, of type 2 */
	bool bound;
};

static void expect_send(struct scene *s, enum ibv_wc_opcode opcode)
{
	struct ibv_wc wc = ts_done(s->t, s->pair->a.send_cq, 1, opcode);

	VT_EXPECT_EQ(s->t, wc.qp_num, s->pair->a.qp->qp_num);
}

static void do_send(struct scene *s, unsigned int flags, bool imm, uint32_t length)
{
	struct ibv_wc wc;

	memset(s->pair->b.buffer, TS_BLANK, length + 64);
	ts_recv(&s->pair->b, .wr_id = 2, .length = length + 64);
	if (imm)
		ts_send_imm(&s->pair->a, .wr_id = 1, .length = length, .flags = flags, .imm = IMM);
	else
		ts_send(&s->pair->a, .wr_id = 1, .length = length, .flags = flags);
	expect_send(s, IBV_WC_SEND);
	wc = ts_received(s->t, s->pair->b.recv_cq, 2, length);
	VT_EXPECT_EQ(s->t, wc.wc_flags & IBV_WC_WITH_IMM, imm ? IBV_WC_WITH_IMM : 0u);
	if (imm)
		VT_EXPECT_EQ(s->t, ntohl(wc.imm_data), IMM);
	ts_verify(s->t, s->pair->b.buffer, length, 1);
	ts_blank(s->t, s->pair->b.buffer + length, 64);
}

static void plain_send(struct scene *s)
{
	do_send(s, 0, false, SHORT_BYTES);
}

static void long_send(struct scene *s)
{
	do_send(s, 0, false, LONG_BYTES);
}

static void inline_send(struct scene *s)
{
	do_send(s, IBV_SEND_INLINE, false, SHORT_BYTES);
}

static void imm_send(struct scene *s)
{
	do_send(s, IBV_SEND_SOLICITED, true, SHORT_BYTES);
}

static void empty_send(struct scene *s)
{
	do_send(s, IBV_SEND_FENCE, false, 0);
}

static void do_write(struct scene *s, unsigned int flags, uint32_t length)
{
	uint8_t *to = s->pair->b.buffer + TARGET;

	memset(to, TS_BLANK, length + 64);
	ts_write(&s->pair->a, .wr_id = 1, .length = length, .remote_offset = TARGET,
		 .flags = flags);
	expect_send(s, IBV_WC_RDMA_WRITE);
	ts_verify(s->t, to, length, 1);
	ts_blank(s->t, to + length, 64);
}

static void plain_write(struct scene *s)
{
	do_write(s, 0, LONG_BYTES);
}

static void inline_write(struct scene *s)
{
	do_write(s, IBV_SEND_INLINE, SHORT_BYTES);
}

static void imm_write(struct scene *s)
{
	struct ibv_wc wc;

	memset(s->pair->b.buffer + TARGET, TS_BLANK, LONG_BYTES);
	ts_recv(&s->pair->b, .wr_id = 2, .length = 8);
	ts_write_imm(&s->pair->a, .wr_id = 1, .length = LONG_BYTES, .remote_offset = TARGET,
		     .imm = IMM);
	expect_send(s, IBV_WC_RDMA_WRITE);
	wc = ts_written(s->t, s->pair->b.recv_cq, 2, LONG_BYTES);
	VT_EXPECT_EQ(s->t, ntohl(wc.imm_data), IMM);
	ts_verify(s->t, s->pair->b.buffer + TARGET, LONG_BYTES, 1);
}

static void do_read(struct scene *s, uint32_t length)
{
	uint8_t *to = s->pair->a.buffer + RESULT;

	ts_fill(s->pair->b.buffer + TARGET, LONG_BYTES, 7);
	memset(to, TS_BLANK, length + 64);
	ts_read(&s->pair->a, .wr_id = 1, .length = length, .offset = RESULT,
		.remote_offset = TARGET);
	expect_send(s, IBV_WC_RDMA_READ);
	ts_verify(s->t, to, length, 7);
	ts_blank(s->t, to + length, 64);
}

static void long_read(struct scene *s)
{
	do_read(s, LONG_BYTES);
}

static void short_read(struct scene *s)
{
	do_read(s, SHORT_BYTES);
}

static void do_atomic(struct scene *s, bool add)
{
	const uint64_t before = 0x1122334455667788;
	const uint64_t after = add ? before + 3 : 99;

	memcpy(s->pair->b.buffer + TARGET, &before, ATOMIC_BYTES);
	if (add)
		ts_fetch_add(&s->pair->a, .wr_id = 1, .offset = RESULT, .remote_offset = TARGET,
			     .compare_add = 3);
	else
		ts_swap(&s->pair->a, .wr_id = 1, .offset = RESULT, .remote_offset = TARGET,
			.compare_add = before, .swap = 99);
	expect_send(s, add ? IBV_WC_FETCH_ADD : IBV_WC_COMP_SWAP);
	VT_EXPECT_EQ_MEM(s->t, s->pair->a.buffer + RESULT, &before, ATOMIC_BYTES);
	VT_EXPECT_EQ_MEM(s->t, s->pair->b.buffer + TARGET, &after, ATOMIC_BYTES);
}

static void fetch_add(struct scene *s)
{
	do_atomic(s, true);
}

static void compare_swap(struct scene *s)
{
	do_atomic(s, false);
}

/* A binds its window, or invalidates it. */
static void local_operation(struct scene *s)
{
	if (s->bound) {
		VT_OK(s->t, ts_local_inv(&s->pair->a, 1, s->mw->rkey));
		expect_send(s, IBV_WC_LOCAL_INV);
	} else {
		VT_OK(s->t, ts_bind(&s->pair->a, s->mw, &(struct ts_bind){.wr_id = 1}));
		expect_send(s, IBV_WC_BIND_MW);
	}
	s->bound = !s->bound;
}

static const struct {
	const char *name;
	void (*run)(struct scene *s);
	bool needs_window;
} uses[] = {
	{"SEND", plain_send},
	{"long SEND", long_send},
	{"inline SEND", inline_send},
	{"SEND with immediate", imm_send},
	{"empty SEND", empty_send},
	{"WRITE", plain_write},
	{"inline WRITE", inline_write},
	{"WRITE with immediate", imm_write},
	{"long READ", long_read},
	{"short READ", short_read},
	{"FETCH ADD", fetch_add},
	{"COMPARE SWAP", compare_swap},
	{"local operation", local_operation, true},
};

static bool has_windows(struct vt *t)
{
	return t->a.device_attr.device_cap_flags &
	       (IBV_DEVICE_MEM_WINDOW_TYPE_2A | IBV_DEVICE_MEM_WINDOW_TYPE_2B);
}

/* The send queue has one slot, so each operation is in the slot of the one before it. */
static void one_slot(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct scene s = {.t = t};

	options.send_wr = options.recv_wr = 1;
	options.mr_access |= IBV_ACCESS_MW_BIND;
	s.pair = ts_pair(t, &options);
	if (has_windows(t))
		s.mw = ts_mw(&s.pair->a, IBV_MW_TYPE_2);
	for (size_t i = 0; i < TS_COUNT(uses); i++)
		for (size_t j = 0; j < TS_COUNT(uses); j++) {
			if (!s.mw && (uses[i].needs_window || uses[j].needs_window))
				continue;
			vt_row(t, "%s, then %s", uses[i].name, uses[j].name);
			uses[i].run(&s);
			uses[j].run(&s);
		}
	vt_row(t, NULL);
}

static void slot_serves_each_operation_behind_each_other(struct vt *t)
{
	one_slot(t);
	if (!(t->have & VT_NEEDS_SIM))
		return;
	ts_untraced(t);
	one_slot(t);
}

/* Signalled and unsignalled sends take turns; only the former complete. */
static void signals_take_turns(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);

	for (uint64_t i = 0; i < 40; i += 4) {
		ts_write(&pair->a, .wr_id = i, .length = 8, .unsignalled = true);
		ts_write(&pair->a, .wr_id = i + 1, .length = 8);
		ts_read(&pair->a, .wr_id = i + 2, .offset = RESULT, .length = 8,
			.unsignalled = true);
		ts_read(&pair->a, .wr_id = i + 3, .offset = RESULT, .length = 8);
		ts_done(t, pair->a.send_cq, i + 1, IBV_WC_RDMA_WRITE);
		ts_done(t, pair->a.send_cq, i + 3, IBV_WC_RDMA_READ);
	}
	ts_no_more(t, pair->a.send_cq);
}

/* --- RESET in the middle --- */

static const struct {
	const char *name;
	enum ibv_wr_opcode opcode;
	bool on_uc;
	bool takes_receive;
} works[] = {
	{"SEND", IBV_WR_SEND, true, true},
	{"SEND without a receive", IBV_WR_SEND, true, false},
	{"WRITE", IBV_WR_RDMA_WRITE, true, false},
	{"WRITE with immediate", IBV_WR_RDMA_WRITE_WITH_IMM, true, true},
	{"READ", IBV_WR_RDMA_READ, false, false},
	{"FETCH ADD", IBV_WR_ATOMIC_FETCH_AND_ADD, false, false},
};

static const enum ts_type reset_types[] = {TS_TYPE_RC, TS_TYPE_UC, TS_TYPE_XRC_SEND};

/* Posts work that is stopped by the loss of all packets towards an end behind the first few. */
static void begin_work(struct ts_link *link, size_t work, int towards, uint64_t passed)
{
	struct vt *t = link->t;

	ts_fault(t, &(struct vb_fault_rule){.action = VB_FAULT_DROP,
					    .dest_qpn = link->ends[towards]->qp->qp_num,
					    .skip = passed});
	if (works[work].takes_receive)
		TS_LINK_RECV(link, .wr_id = 50, .length = LONG_BYTES);
	for (uint64_t n = 0; n < 2; n++)
		TS_LINK_POST(link, works[work].opcode, .wr_id = n, .offset = RESULT,
			     .length = works[work].opcode == IBV_WR_ATOMIC_FETCH_AND_ADD
					       ? ATOMIC_BYTES
					       : 3000,
			     .remote_offset = TARGET);
	VT_OK(t, vb_sim_run(ts_sim(t), passed & 1 ? 1500000 : 0));
	vb_fault_clear(ts_sim(t));
}

/* A fence waits for no READ of the time before; a gap draws a NAK at once, and no timeout. */
static void check_fence_and_nak(struct ts_link *link)
{
	struct vt *t = link->t;
	const uint64_t since_ns = ts_now_ns(t);

	ts_fault(t, &(struct vb_fault_rule){.action = VB_FAULT_DROP,
					    .dest_qpn = link->ends[TS_B]->qp->qp_num,
					    .count = 1});
	ts_link_send(link, 2500);
	TS_LINK_POST(link, IBV_WR_RDMA_WRITE, .wr_id = 1, .length = 8, .remote_offset = TARGET,
		     .flags = IBV_SEND_FENCE);
	ts_done(t, link->ends[TS_A]->send_cq, 1, IBV_WC_RDMA_WRITE);
	VT_EXPECT_EQ(t, ts_now_ns(t), since_ns);
}

/* After RESET each message takes its own packets and no time. */
static void check_like_new(struct ts_link *link, struct ts_tap *tap)
{
	struct vt *t = link->t;
	const uint64_t since_ns = ts_now_ns(t);

	tap->count = 0;
	for (int i = 0; i < 3; i++)
		ts_link_send(link, 2500);
	VT_EXPECT_EQ(t, ts_now_ns(t), since_ns);
	VT_EXPECT_EQ(t, ts_tap_requests(tap, link->ends[TS_B]->qp->qp_num), 9);
	VT_EXPECT_EQ(t, ts_tap_request(tap, link->ends[TS_B]->qp->qp_num, 0)->psn,
		     link->values[TS_A].sq_psn);
	if (link->reliable)
		check_fence_and_nak(link);
	vb_fault_clear(ts_sim(t));
	ts_link_warm(link);
}

/* An SRQ keeps the receive that the message has not used up. */
static void empty_srq(struct ts_link *link)
{
	if (!link->xrc)
		return;
	link->xrc->shared[0] = ts_xrc_srq(link->t, link->xrc->xrcd, link->xrc->cq[0]);
	link->xrc->srqn[0] = ts_srqn(link->t, link->xrc->shared[0]->srq);
	link->pair->b.buffer = link->xrc->shared[0]->buffer;
	link->pair->b.mr = link->xrc->shared[0]->mr;
}

static void reset_and_check(struct vt *t, enum ts_type type, size_t work, int towards,
			    uint64_t passed, bool by_way_of_err)
{
	struct ts_link *link = ts_link(t, type);
	struct ts_tap *tap;

	vt_row(t, "%s %s, %d packets pass towards %c, RESET%s", ts_type_names[type],
	       works[work].name, (int)passed, "AB"[towards], by_way_of_err ? " behind ERR" : "");
	ts_link_connect(link);
	begin_work(link, work, towards, passed);
	if (by_way_of_err)
		for (int i = 0; i < 2; i++)
			VT_OK(t, ts_to(link->ends[i], IBV_QPS_ERR));
	empty_srq(link);
	ts_link_connect(link);
	tap = ts_tap(t);
	check_like_new(link, tap);
}

static void reset_in_the_middle_begins_anew(struct vt *t)
{
	ts_world(t);
	for (size_t i = 0; i < TS_COUNT(reset_types); i++)
		for (size_t work = 0; work < TS_COUNT(works); work++)
			for (int variant = 0; variant < 16; variant++)
				if (reset_types[i] != TS_TYPE_UC || works[work].on_uc)
					reset_and_check(t, reset_types[i], work, variant & 1,
							(uint64_t)(variant >> 1 & 3), variant & 8);
	vt_row(t, NULL);
}

/* The ack timer of the time before does not run on: an answer that comes in time is awaited. */
static void old_timer_ends_with_reset(struct vt *t)
{
	ts_world(t);
	for (size_t i = 0; i < TS_COUNT(reset_types); i++) {
		struct ts_link *link = ts_link(t, reset_types[i]);
		struct ts_tap *tap;

		if (!link->reliable)
			continue;
		vt_row(t, "%s", ts_type_names[reset_types[i]]);
		ts_link_connect(link);
		begin_work(link, 2, TS_B, 0);
		/* Not ts_link_connect(), which polls: that would let the time pass. */
		for (int which = 0; which < 2; which++)
			VT_OK(t, ts_to(link->ends[which], IBV_QPS_RESET));
		for (int which = 0; which < 2; which++)
			ts_link_walk(link, which);
		/* The old timer is due after 1049 us, the new one after 1549 us, the ACK after 1400. */
		VT_OK(t, vb_sim_run(ts_sim(t), 500000));
		tap = ts_tap(t);
		ts_fault(t, &(struct vb_fault_rule){.action = VB_FAULT_DELAY,
						    .dest_qpn = link->ends[TS_A]->qp->qp_num,
						    .delay_ns = 900000});
		ts_link_send(link, 8);
		VT_EXPECT_EQ(t, ts_tap_requests(tap, link->ends[TS_B]->qp->qp_num), 1);
		vb_fault_clear(ts_sim(t));
	}
}

/* A receive that was in progress is not the one of a request that is refused after RESET. */
static void refusal_after_reset_ends_no_old_receive(struct vt *t)
{
	ts_world(t);
	for (uint64_t passed = 1; passed < 3; passed++) {
		struct ts_link *link = ts_link(t, TS_TYPE_RC);

		ts_link_connect(link);
		begin_work(link, 0, TS_B, passed);
		ts_link_connect(link);
		TS_LINK_POST(link, IBV_WR_RDMA_WRITE, .wr_id = 1, .length = 8,
			     .rkey = ts_wrong_key(link->ends[TS_B]->mr->rkey));
		ts_failed(t, link->ends[TS_A]->send_cq, 1, IBV_WC_REM_ACCESS_ERR);
		ts_event(t, &t->b, IBV_EVENT_QP_ACCESS_ERR, link->ends[TS_B]->qp);
		ts_no_more(t, link->ends[TS_B]->recv_cq);
	}
}

/* B has sent a NAK and A has repeated, both in vain; the first gap after RESET draws a new NAK. */
static void first_gap_after_reset_draws_a_nak(struct vt *t)
{
	ts_world(t);
	for (size_t i = 0; i < TS_COUNT(reset_types); i++) {
		struct ts_link *link = ts_link(t, reset_types[i]);

		if (!link->reliable)
			continue;
		vt_row(t, "%s", ts_type_names[reset_types[i]]);
		ts_link_connect(link);
		ts_fault(t, &(struct vb_fault_rule){.action = VB_FAULT_DROP,
						    .dest_qpn = link->ends[TS_A]->qp->qp_num});
		ts_fault(t, &(struct vb_fault_rule){.action = VB_FAULT_DROP,
						    .dest_qpn = link->ends[TS_B]->qp->qp_num,
						    .psn_given = true,
						    .psn = link->values[TS_A].sq_psn + 1});
		TS_LINK_POST(link, IBV_WR_RDMA_WRITE, .wr_id = 1, .length = 3000);
		VT_OK(t, vb_sim_run(ts_sim(t), 1500000));
		vb_fault_clear(ts_sim(t));
		ts_link_connect(link);
		check_fence_and_nak(link);
		vb_fault_clear(ts_sim(t));
	}
}

/* RESET from SQD while draining, and from SQE. */
static void reset_of_a_stopped_queue_begins_anew(struct vt *t)
{
	ts_world(t);
	for (enum ts_type type = 0; type < TS_TYPES; type++) {
		struct ts_link *link = ts_link(t, type);
		struct ts_end *a = link->ends[TS_A];

		vt_row(t, "%s", ts_type_names[type]);
		ts_link_connect(link);
		ts_link_warm(link);
		if (link->reliable) {
			begin_work(link, 2, TS_B, 0);
			VT_OK(t, ts_to(a, IBV_QPS_SQD));
		} else {
			ts_send(a, .wr_id = 90, .length = 8, .lkey = ts_wrong_key(a->mr->lkey));
			ts_failed(t, a->send_cq, 90, IBV_WC_LOC_PROT_ERR);
			ts_state(a, IBV_QPS_SQE);
		}
		VT_OK(t, ts_to(a, IBV_QPS_RESET));
		VT_EXPECT(t, !ts_query(a).sq_draining);
		ts_link_connect(link);
		ts_link_warm(link);
		ts_no_event(t, &t->a);
	}
}

/* --- events --- */

/* Brings a new connection up to B in RTR, and A in RTS. */
static void connect_b_to_rtr(struct ts_pair *pair)
{
	VT_OK(pair->a.t, ts_to(&pair->a, IBV_QPS_RESET));
	VT_OK(pair->a.t, ts_to(&pair->b, IBV_QPS_RESET));
	ts_connect(&pair->a);
	ts_to_init(&pair->b);
	ts_to_rtr(&pair->b);
}

/* Each connection of a QP raises its events, whatever the one before it raised. */
static void events_come_in_each_connection(struct vt *t)
{
	struct ts_shared *shared = ts_shared(t);
	struct ts_pair *pair = ts_pair_on(shared, IBV_QPT_RC);
	struct ibv_qp *b = pair->b.qp;

	for (int i = 0; i < 3; i++) {
		vt_row(t, "connection %d", i);
		connect_b_to_rtr(pair);
		ts_write(&pair->a, .wr_id = 1, .length = 8);
		ts_done(t, pair->a.send_cq, 1, IBV_WC_RDMA_WRITE);
		ts_event(t, &t->b, IBV_EVENT_COMM_EST, b);
		ts_to_rts(&pair->b);
		ts_write(&pair->a, .wr_id = 2, .length = 8, .rkey = ts_wrong_key(pair->b.mr->rkey));
		ts_failed(t, pair->a.send_cq, 2, IBV_WC_REM_ACCESS_ERR);
		ts_event(t, &t->b, IBV_EVENT_QP_ACCESS_ERR, b);
		ts_event(t, &t->b, IBV_EVENT_QP_LAST_WQE_REACHED, b);
		connect_b_to_rtr(pair);
		ts_to_rts(&pair->b);
		ts_swap(&pair->a, .wr_id = 3, .offset = RESULT, .remote_offset = 4);
		ts_failed(t, pair->a.send_cq, 3, IBV_WC_REM_INV_REQ_ERR);
		ts_event(t, &t->b, IBV_EVENT_QP_REQ_ERR, b);
		ts_event(t, &t->b, IBV_EVENT_QP_LAST_WQE_REACHED, b);
		ts_no_event(t, &t->b);
	}
}

/* --- windows --- */

/* Bindings of one window are posted at once: only the key of the last one gives access. */
static void last_of_many_bindings_holds(struct vt *t)
{
	struct ts_pair *pair;
	struct ibv_mw *mw;
	uint32_t keys[4];

	ts_need_windows(t, IBV_MW_TYPE_1);
	for (uint64_t old = 0; old < 3; old++) {
		vt_row(t, "key %d", (int)old);
		pair = ts_window_pair(t);
		mw = ts_mw(&pair->b, IBV_MW_TYPE_1);
		for (uint64_t i = 0; i < 4; i++) {
			VT_OK(t, ts_bind(&pair->b, mw,
					 &(struct ts_bind){
						 .wr_id = i, .offset = 4096 * i, .length = 4096}));
			keys[i] = mw->rkey;
			VT_CHECK(t, i == 0 || keys[i] != keys[i - 1]);
		}
		for (uint64_t i = 0; i < 4; i++)
			ts_done(t, pair->b.send_cq, i, IBV_WC_BIND_MW);
		ts_reaches(pair, keys[3], 3 * 4096);
		ts_refused(pair, keys[old], 4096 * old);
		ts_drain_events(&t->b);
	}
}

/* --- datagrams --- */

/* One QP sends to two QPs by turns, with different address handles, Q_Keys and lengths. */
static void datagram_destinations_take_turns(struct vt *t)
{
	struct ts_link *links[2];
	struct ts_end *a;
	struct ibv_ah *ah[2];
	struct ts_tap *tap;

	ts_world(t);
	for (int i = 0; i < 2; i++) {
		links[i] = ts_link(t, TS_TYPE_UD);
		links[i]->values[TS_B].qkey = 0x1000u + (uint32_t)i;
		links[i]->values[TS_A].ah_attr.grh.traffic_class = (uint8_t)(4 + 8 * i);
		links[i]->values[TS_A].ah_attr.sl = (uint8_t)(i + 2);
		ts_link_connect(links[i]);
	}
	a = links[0]->ends[TS_A];
	for (int i = 0; i < 2; i++) {
		ah[i] = VT_PTR(t, vb_create_ah(a->pd, &links[i]->values[TS_A].ah_attr));
		ts_keep(t, TS_AH, ah[i]);
	}
	tap = ts_tap(t);
	for (unsigned int n = 0; n < 6; n++) {
		struct ts_end *to = links[n & 1]->ends[TS_B];
		const struct ts_packet *packet;
		struct ibv_wc wc;

		vt_row(t, "datagram %u", n);
		tap->count = 0;
		ts_recv(to, .wr_id = n, .length = 200);
		a->ah = ah[n & 1];
		if (n & 2)
			ts_send_imm(a, .wr_id = n, .length = 10 + n, .imm = IMM + n,
				    .remote_qpn = to->qp->qp_num, .remote_qkey = 0x1000 + (n & 1),
				    .flags = n & 1 ? IBV_SEND_INLINE : 0);
		else
			ts_send(a, .wr_id = n, .length = 10 + n, .remote_qpn = to->qp->qp_num,
				.remote_qkey = 0x1000 + (n & 1),
				.flags = n & 1 ? 0 : IBV_SEND_SOLICITED);
		ts_done(t, a->send_cq, n, IBV_WC_SEND);
		wc = ts_received(t, to->recv_cq, n, 10 + n + TS_GRH);
		VT_EXPECT_EQ(t, wc.src_qp, a->qp->qp_num);
		VT_EXPECT_EQ(t, wc.wc_flags & IBV_WC_WITH_IMM, n & 2 ? IBV_WC_WITH_IMM : 0u);
		if (n & 2)
			VT_EXPECT_EQ(t, ntohl(wc.imm_data), IMM + n);
		packet = ts_tap_request(tap, to->qp->qp_num, 0);
		if (!packet)
			VT_FAIL(t, "no datagram was sent");
		VT_EXPECT_EQ(t, packet->solicited, !(n & 3));
		if (t->have & VT_NEEDS_ETHERNET)
			VT_EXPECT_EQ(t, packet->traffic_class, 4 + 8 * (n & 1));
		else
			VT_EXPECT_EQ(t, packet->sl, (n & 1) + 2);
	}
}

/* --- packets that nobody watches --- */

/* The runner's trace sends packets another way than a program without a trace has. */
static void every_size_without_a_trace(struct vt *t)
{
	static const uint32_t sizes[] = {0, 1, 255, 4096, 4097, 60000};
	static const enum ibv_wr_opcode opcodes[] = {IBV_WR_SEND, IBV_WR_SEND_WITH_IMM,
						     IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM,
						     IBV_WR_RDMA_READ};

	ts_untraced(t);
	for (int uc = 0; uc < 2; uc++) {
		struct ts_pair *pair = ts_connected(t, uc ? IBV_QPT_UC : IBV_QPT_RC);

		for (size_t op = 0; op < TS_COUNT(opcodes); op++)
			for (size_t i = 0; i < TS_COUNT(sizes); i++) {
				if (uc && opcodes[op] == IBV_WR_RDMA_READ)
					continue;
				vt_row(t, "%s, opcode %d, %u bytes", uc ? "UC" : "RC",
				       (int)opcodes[op], sizes[i]);
				ts_transfer(pair, opcodes[op], sizes[i]);
			}
	}
}

#define VIRTUAL (VT_NEEDS_SIM | VT_NEEDS_FAULTS | VT_NEEDS_VIRTUAL_CLOCK | VT_NEEDS_MTU_1024)

static const struct vt_test tests[] = {
	{"slot_serves_each_operation_behind_each_other", "ibv_post_send(3)", VT_NEEDS_ATOMICS,
	 slot_serves_each_operation_behind_each_other},
	{"signals_take_turns", "ibv_post_send(3): IBV_SEND_SIGNALED", 0, signals_take_turns},
	{"reset_in_the_middle_begins_anew", "ibv_modify_qp(3): IBV_QPS_RESET", VIRTUAL,
	 reset_in_the_middle_begins_anew},
	{"old_timer_ends_with_reset", "ibv_modify_qp(3): IBV_QPS_RESET", VIRTUAL,
	 old_timer_ends_with_reset},
	{"first_gap_after_reset_draws_a_nak", "ibv_modify_qp(3): IBV_QPS_RESET", VIRTUAL,
	 first_gap_after_reset_draws_a_nak},
	{"refusal_after_reset_ends_no_old_receive", "ibv_modify_qp(3): IBV_QPS_RESET", VIRTUAL,
	 refusal_after_reset_ends_no_old_receive},
	{"reset_of_a_stopped_queue_begins_anew", "ibv_modify_qp(3): IBV_QPS_RESET", VIRTUAL,
	 reset_of_a_stopped_queue_begins_anew},
	{"events_come_in_each_connection", "ibv_get_async_event(3)",
	 VT_NEEDS_SRQ | VT_NEEDS_ATOMICS, events_come_in_each_connection, VT_MAY_RECONNECT},
	{"last_of_many_bindings_holds", "ibv_bind_mw(3): the new rkey", 0,
	 last_of_many_bindings_holds},
	{"datagram_destinations_take_turns", "ibv_post_send(3): wr.ud", VIRTUAL,
	 datagram_destinations_take_turns},
	{"every_size_without_a_trace", "ibv_post_send(3)", VT_NEEDS_SIM,
	 every_size_without_a_trace},
	{NULL},
};

const struct vt_suite vt_suite_again = {"again", "what is used a second time", tests};
