/* SPDX-License-Identifier: MIT */
/*
 * Peers and addresses that worked until a moment ago. A device remembers where its packets went and
 * whether the peer took them; each test here lets it do so, changes something on the way, and sends
 * again.
 *
 * Each test runs twice: with the runner's trace, and without a trace, where packets take another
 * way.
 */
#include "test/conformance/sources.h"
#include "test/support/keep.h"
#include "test/support/own_world.h"
#include "test/support/quirks.h"
#include "test/support/support.h"

#include <verbena/fault.h>
#include <verbena/sim.h>

#define OTHER_PKEY 0x8123
#define OUTAGE_NS  3000000u /* shorter than six retries after 1 ms each */

static void twice(struct vt *t, void (*run)(struct vt *t))
{
	run(t);
	ts_untraced(t);
	run(t);
	vt_row(t, NULL);
}

static const struct {
	const char *name;
	enum ibv_wr_opcode opcode;
	enum ibv_wc_opcode done;
} operations[] = {
	{"SEND", IBV_WR_SEND, IBV_WC_SEND},
	{"WRITE", IBV_WR_RDMA_WRITE, IBV_WC_RDMA_WRITE},
	{"READ", IBV_WR_RDMA_READ, IBV_WC_RDMA_READ},
	{"FETCH ADD", IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WC_FETCH_ADD},
};

#define OPERATIONS TS_COUNT(operations)

struct scene {
	struct vt *t;
	struct ts_pair *pair;
	union ibv_gid gid; /* that a broken end had */
	uint16_t lid;
};

static void post(struct scene *s, size_t op)
{
	memset(s->pair->b.buffer, TS_BLANK, 8);
	TS_POST(&s->pair->a, operations[op].opcode, .wr_id = 1, .offset = op < 2 ? 0 : 8192,
		.length = 8);
}

static void finish(struct scene *s, size_t op)
{
	ts_done(s->t, s->pair->a.send_cq, 1, operations[op].done);
	if (op == 0)
		ts_received(s->t, s->pair->b.recv_cq, 2, 8);
	if (op < 2)
		ts_verify(s->t, s->pair->b.buffer, 8, 1);
}

/* One of each operation, and a message back: both ends know the way. */
static void warm(struct scene *s)
{
	for (size_t op = 0; op < OPERATIONS; op++) {
		if (op == 0)
			ts_recv(&s->pair->b, .wr_id = 2, .length = 8);
		post(s, op);
		finish(s, op);
	}
	ts_write(&s->pair->b, .wr_id = 3, .length = 8, .remote_offset = 16384);
	ts_done(s->t, s->pair->b.send_cq, 3, IBV_WC_RDMA_WRITE);
}

static struct scene begin(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct scene s = {.t = t};

	options.timeout = 8;
	options.retry_cnt = 6;
	s.pair = ts_pair(t, &options);
	warm(&s);
	return s;
}

static void forget_events(struct vt *t)
{
	ts_drain_events(&t->a);
	ts_drain_events(&t->b);
}

/* --- what breaks the way, and repairs it --- */

static void port(struct vt_node *node, bool up)
{
	vb_sim_port_state(node->ctx, node->port, up);
}

static void break_port_a(struct scene *s)
{
	port(&s->t->a, false);
}

static void mend_port_a(struct scene *s)
{
	port(&s->t->a, true);
}

static void break_port_b(struct scene *s)
{
	port(&s->t->b, false);
}

static void mend_port_b(struct scene *s)
{
	port(&s->t->b, true);
}

static void set_pkey(struct scene *s, struct vt_node *node, uint16_t pkey)
{
	VT_OK(s->t, vb_sim_set_pkey(node->ctx, node->port, node->pkey_index, pkey));
}

static void break_pkey_a(struct scene *s)
{
	set_pkey(s, &s->t->a, OTHER_PKEY);
}

static void mend_pkey_a(struct scene *s)
{
	set_pkey(s, &s->t->a, 0xffff);
}

static void break_pkey_b(struct scene *s)
{
	set_pkey(s, &s->t->b, OTHER_PKEY);
}

static void mend_pkey_b(struct scene *s)
{
	set_pkey(s, &s->t->b, 0xffff);
}

/* Gives a node another GID, or on InfiniBand another LID. */
static void break_address(struct scene *s, struct vt_node *node)
{
	s->gid = node->gid;
	s->lid = node->port_attr.lid;
	if (s->t->have & VT_NEEDS_INFINIBAND) {
		VT_OK(s->t, vb_sim_set_lid(node->ctx, node->port, (uint16_t)(s->lid + 100)));
		return;
	}
	s->gid.raw[15] ^= 0x40;
	VT_OK(s->t, vb_sim_set_gid(node->ctx, node->port, (unsigned int)node->gid_index, &s->gid));
}

static void mend_address(struct scene *s, struct vt_node *node)
{
	if (s->t->have & VT_NEEDS_INFINIBAND)
		VT_OK(s->t, vb_sim_set_lid(node->ctx, node->port, node->port_attr.lid));
	else
		VT_OK(s->t, vb_sim_set_gid(node->ctx, node->port, (unsigned int)node->gid_index,
					   &node->gid));
}

static void break_address_a(struct scene *s)
{
	break_address(s, &s->t->a);
}

static void mend_address_a(struct scene *s)
{
	mend_address(s, &s->t->a);
}

static void break_address_b(struct scene *s)
{
	break_address(s, &s->t->b);
}

static void mend_address_b(struct scene *s)
{
	mend_address(s, &s->t->b);
}

static void break_wire(struct scene *s)
{
	VT_OK(s->t,
	      vb_fault_add(ts_sim(s->t), &(struct vb_fault_rule){.action = VB_FAULT_DROP}, NULL));
}

static void mend_wire(struct scene *s)
{
	vb_fault_clear(ts_sim(s->t));
}

static void break_state_b(struct scene *s)
{
	VT_OK(s->t, ts_to(&s->pair->b, IBV_QPS_RESET));
}

/* B expects what A sends next; A and B have sent as many messages as warm() says. */
static void mend_state_b(struct scene *s)
{
	struct ts_end *b = &s->pair->b;

	b->recv_psn = s->pair->a.options.a_psn + OPERATIONS;
	b->send_psn = b->options.b_psn + 1;
	ts_connect(b);
}

static void break_state_b_in_init(struct scene *s)
{
	break_state_b(s);
	ts_to_init(&s->pair->b);
}

static void mend_state_b_in_init(struct scene *s)
{
	break_state_b(s);
	mend_state_b(s);
}

/* Gives a QP in SQD a path to another address, or the right one. */
static void set_path(struct ts_end *end, bool right)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_SQD,
				   .ah_attr = ts_av(end->node, end->peer->node)};

	if (!right) {
		attr.ah_attr.grh.dgid.raw[15] ^= 0x40;
		attr.ah_attr.dlid ^= 0x40;
	}
	VT_OK(end->t, ts_to(end, IBV_QPS_SQD));
	VT_OK(end->t, vb_modify_qp(end->qp, &attr, IBV_QP_STATE | IBV_QP_AV));
	VT_OK(end->t, ts_to(end, IBV_QPS_RTS));
}

static void break_path_a(struct scene *s)
{
	set_path(&s->pair->a, false);
}

static void mend_path_a(struct scene *s)
{
	set_path(&s->pair->a, true);
}

static void break_path_b(struct scene *s)
{
	set_path(&s->pair->b, false);
}

static void mend_path_b(struct scene *s)
{
	set_path(&s->pair->b, true);
}

/* So many rows at the end are for connections only. */
#define CONNECTED_OUTAGES 4

static const struct {
	const char *name;
	void (*break_it)(struct scene *s);
	void (*mend)(struct scene *s);
} outages[] = {
	{"A's port is down", break_port_a, mend_port_a},
	{"B's port is down", break_port_b, mend_port_b},
	{"A has another P_Key", break_pkey_a, mend_pkey_a},
	{"B has another P_Key", break_pkey_b, mend_pkey_b},
	{"A has another address", break_address_a, mend_address_a},
	{"B has another address", break_address_b, mend_address_b},
	{"the wire loses all", break_wire, mend_wire},
	{"A's path leads elsewhere", break_path_a, mend_path_a},
	{"B's path leads elsewhere", break_path_b, mend_path_b},
	{"B is in RESET", break_state_b, mend_state_b},
	{"B is in INIT", break_state_b_in_init, mend_state_b_in_init},
};

static void outage(struct vt *t)
{
	for (size_t i = 0; i < TS_COUNT(outages); i++)
		for (size_t op = 0; op < OPERATIONS; op++) {
			struct scene s = begin(t);

			vt_row(t, "%s, %s", outages[i].name, operations[op].name);
			outages[i].break_it(&s);
			post(&s, op);
			VT_OK(t, vb_sim_run(ts_sim(t), OUTAGE_NS));
			ts_blank(t, s.pair->b.buffer, 8);
			outages[i].mend(&s);
			if (op == 0)
				ts_recv(&s.pair->b, .wr_id = 2, .length = 8);
			finish(&s, op);
			warm(&s);
			forget_events(t);
		}
}

static void outages_stop_and_end_at_once(struct vt *t)
{
	twice(t, outage);
}

/* --- a peer that is gone --- */

static void destroy_b(struct scene *s)
{
	ts_destroy_qp(&s->pair->b);
}

/* New QPs get the memory, in the heap and in the device's table, that B had. */
static void replace_b(struct scene *s)
{
	destroy_b(s);
	for (int i = 0; i < 3; i++)
		ts_qp(s->t, s->pair->b.pd, s->pair->b.recv_cq, IBV_QPT_RC);
}

static void end_b_in_err(struct scene *s)
{
	VT_OK(s->t, ts_to(&s->pair->b, IBV_QPS_ERR));
}

/* B's own send ends in error, which moves B to ERR without a modify. */
static void fail_b(struct scene *s)
{
	struct ts_end *b = &s->pair->b;

	ts_send(b, .wr_id = 90, .length = 8, .lkey = ts_wrong_key(b->mr->lkey));
	ts_failed(s->t, b->send_cq, 90, IBV_WC_LOC_PROT_ERR);
}

/*
 * Many QPs come and go, then new QPs are connected to A. One of them may stand where B stood in the
 * device's table.
 */
#define GONE_QPS 300
#define NEW_QPS	 100

static void replace_b_by_many(struct scene *s)
{
	struct ts_end *b = &s->pair->b;
	struct ibv_qp *gone[GONE_QPS];

	destroy_b(s);
	for (int i = 0; i < GONE_QPS; i++)
		gone[i] = ts_qp(s->t, b->pd, b->recv_cq, IBV_QPT_RC);
	for (int i = 0; i < GONE_QPS; i++) {
		b->qp = gone[i];
		ts_destroy_qp(b);
	}
	b->recv_psn = s->pair->a.options.a_psn + OPERATIONS;
	for (int i = 0; i < NEW_QPS; i++) {
		b->qp = ts_qp(s->t, b->pd, b->recv_cq, IBV_QPT_RC);
		ts_connect(b);
	}
}

/* QPNs have a limited number of bits: after many QPs a new one has B's number. */
#define QPS_MAX 100000

static void reuse_number(struct scene *s)
{
	const uint32_t number = s->pair->b.qp->qp_num;
	struct ts_end *b = &s->pair->b;
	struct ibv_qp_init_attr init = {
		.send_cq = b->send_cq,
		.recv_cq = b->recv_cq,
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
	};

	ts_destroy_qp(b);
	for (int i = 0; i < QPS_MAX; i++) {
		b->qp = VT_PTR(s->t, vb_create_qp(b->pd, &init));
		if (b->qp->qp_num == number)
			break;
		VT_OK(s->t, vb_destroy_qp(b->qp));
		b->qp = NULL;
	}
	if (!b->qp)
		VT_SKIP(s->t, "the device does not use a QPN again so soon");
	ts_keep(s->t, TS_QP, b->qp);
}

/* The new QP with B's number is connected to a QP of its own device: to another address than A's. */
static void reuse_number_for_another_peer(struct scene *s)
{
	struct ts_pair *other = ts_connected(s->t, IBV_QPT_RC);
	struct ts_end *b = &s->pair->b;

	reuse_number(s);
	b->peer = &other->b;
	b->recv_psn = s->pair->a.options.a_psn + OPERATIONS;
	ts_connect(b);
	b->peer = &s->pair->a;
}

static const struct {
	const char *name;
	void (*end)(struct scene *s);
} ends[] = {
	{"B is destroyed", destroy_b},
	{"B is destroyed, others are made", replace_b},
	{"B is in ERR", end_b_in_err},
	{"B is in ERR of itself", fail_b},
};

/* A gets no answer; connected to a new QP, A works with that. */
static void try_end(struct vt *t, void (*end)(struct scene *s), size_t op)
{
	const struct ibv_qp_init_attr_ex new_qp = {0};
	struct scene s = begin(t);

	end(&s);
	post(&s, op);
	ts_failed(t, s.pair->a.send_cq, 1, IBV_WC_RETRY_EXC_ERR);
	ts_blank(t, s.pair->b.buffer, 8);
	ts_remake_qp(&s.pair->b, &new_qp);
	VT_OK(t, ts_to(&s.pair->a, IBV_QPS_RESET));
	s.pair->b.recv_psn = s.pair->a.send_psn;
	ts_connect_both(s.pair);
	forget_events(t);
	warm(&s);
}

static void gone_peer(struct vt *t)
{
	for (size_t i = 0; i < TS_COUNT(ends); i++)
		for (size_t op = 0; op < OPERATIONS; op++) {
			vt_row(t, "%s, %s", ends[i].name, operations[op].name);
			try_end(t, ends[i].end, op);
		}
}

static void gone_peer_gets_nothing(struct vt *t)
{
	twice(t, gone_peer);
}

static void number_used_again_is_another_qp(struct vt *t)
{
	ts_untraced(t);
	vt_row(t, "many new QPs");
	try_end(t, replace_b_by_many, 1);
	vt_row(t, "another connection has B's number");
	try_end(t, reuse_number_for_another_peer, 1);
}

static void dead_device(struct vt *t)
{
	struct scene s = begin(t);

	VT_OK(t, vb_sim_kill_device(t->b.ctx));
	post(&s, 1);
	ts_failed(t, s.pair->a.send_cq, 1, IBV_WC_RETRY_EXC_ERR);
	ts_blank(t, s.pair->b.buffer, 8);
	forget_events(t);
}

static void dead_device_gets_nothing(struct vt *t)
{
	ts_untraced(t);
	dead_device(t);
}

/* A is connected to one QP of B's device, then to another, and back. */
static void other_peer(struct vt *t)
{
	struct scene s = begin(t), other = begin(t);
	struct ts_end *first = &s.pair->b, *second = &other.pair->b;
	struct ts_pair joined = {.a = s.pair->a, .b = other.pair->b};

	for (int i = 0; i < 3; i++) {
		struct ts_end *peer = i & 1 ? first : second;

		vt_row(t, "connection %d", i);
		VT_OK(t, ts_to(&s.pair->a, IBV_QPS_RESET));
		VT_OK(t, ts_to(peer, IBV_QPS_RESET));
		joined.b = *peer;
		joined.a.peer = &joined.b;
		joined.b.peer = &joined.a;
		ts_connect_both(&joined);
		memset(first->buffer, TS_BLANK, 100);
		memset(second->buffer, TS_BLANK, 100);
		ts_write(&joined.a, .wr_id = 1, .length = 100);
		ts_done(t, joined.a.send_cq, 1, IBV_WC_RDMA_WRITE);
		ts_verify(t, peer->buffer, 100, 1);
		ts_blank(t, i & 1 ? second->buffer : first->buffer, 100);
		ts_write(&joined.b, .wr_id = 2, .length = 8, .remote_offset = 16384);
		ts_done(t, joined.b.send_cq, 2, IBV_WC_RDMA_WRITE);
	}
}

static void other_peer_gets_all(struct vt *t)
{
	twice(t, other_peer);
}

/* --- watching --- */

static void count_frame(void *arg, uint64_t now_ns, const uint8_t *frame, size_t length_bytes,
			bool lost)
{
	++*(unsigned int *)arg;
}

/* A watcher that comes while the QPs work sees each packet from then on; when it has gone, none. */
static void watcher_comes_and_goes(struct vt *t)
{
	struct scene s;
	unsigned int frames = 0;

	ts_untraced(t);
	s = begin(t);
	for (int i = 0; i < 3; i++) {
		VT_OK(t, (vb_sim_watch(ts_sim(t), count_frame, &frames), 0));
		frames = 0;
		post(&s, 1);
		finish(&s, 1);
		VT_EXPECT_EQ(t, frames, 2);
		vb_sim_watch(ts_sim(t), NULL, NULL);
		post(&s, 1);
		finish(&s, 1);
		VT_EXPECT_EQ(t, frames, 2);
	}
}

/* --- datagrams --- */

static void ud_arrives(struct vt *t, struct ts_pair *pair, bool arrives)
{
	ts_send(&pair->a, .wr_id = 1, .length = 8);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_SEND);
	if (arrives)
		ts_received(t, pair->b.recv_cq, 2, 8 + TS_GRH);
	else
		ts_no_more(t, pair->b.recv_cq);
}

static void ud_outage(struct vt *t)
{
	for (size_t i = 0; i < TS_COUNT(outages) - CONNECTED_OUTAGES; i++) {
		struct scene s = {.t = t, .pair = ts_connected(t, IBV_QPT_UD)};

		/* A's own address is no matter to B. */
		if (outages[i].break_it == break_address_a)
			continue;
		vt_row(t, "%s", outages[i].name);
		for (int n = 0; n < 5; n++)
			ts_recv(&s.pair->b, .wr_id = 2, .length = 100);
		ud_arrives(t, s.pair, true);
		ud_arrives(t, s.pair, true);
		outages[i].break_it(&s);
		ud_arrives(t, s.pair, false);
		outages[i].mend(&s);
		ud_arrives(t, s.pair, true);
		forget_events(t);
	}
}

static void datagrams_follow_the_way_at_once(struct vt *t)
{
	twice(t, ud_outage);
}

/* The receiver sees A's new address in the first datagram. */
static void ud_source(struct vt *t)
{
	struct scene s = {.t = t, .pair = ts_connected(t, IBV_QPT_UD)};
	const uint8_t *grh = s.pair->b.buffer;
	struct ibv_wc wc;

	for (int i = 0; i < 2; i++) {
		ts_recv(&s.pair->b, .wr_id = 2, .length = 100);
		ud_arrives(t, s.pair, true);
	}
	break_address_a(&s);
	ts_recv(&s.pair->b, .wr_id = 2, .length = 100);
	ts_send(&s.pair->a, .wr_id = 1, .length = 8);
	wc = ts_received(t, s.pair->b.recv_cq, 2, 8 + TS_GRH);
	if (t->have & VT_NEEDS_INFINIBAND)
		VT_EXPECT_EQ(t, wc.slid, s.lid + 100);
	else if (ts_gid_is_ipv4(&s.gid))
		VT_EXPECT_EQ_MEM(t, grh + 20 + 12, s.gid.raw + 12, 4);
	else
		VT_EXPECT_EQ_MEM(t, grh + 8, s.gid.raw, 16);
	ts_done(t, s.pair->a.send_cq, 1, IBV_WC_SEND);
	mend_address_a(&s);
	forget_events(t);
}

static void first_datagram_has_the_new_source(struct vt *t)
{
	twice(t, ud_source);
}

static void move_peer(struct ts_end *end, uint16_t dlid)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_SQD,
				   .ah_attr = ts_av(end->node, end->peer->node)};

	VT_OK(end->t, ts_to(end, IBV_QPS_SQD));
	ts_drained(end);
	attr.ah_attr.dlid = dlid;
	VT_OK(end->t, vb_modify_qp(end->qp, &attr, IBV_QP_STATE | IBV_QP_AV));
	VT_OK(end->t, ts_to(end, IBV_QPS_RTS));
}

/* A has another LID, which B gets to know: the first message of the connection has that source. */
static void rc_source(struct vt *t)
{
	struct scene s = begin(t);
	const uint16_t lid = (uint16_t)(t->a.port_attr.lid + 100);

	VT_OK(t, vb_sim_set_lid(t->a.ctx, t->a.port, lid));
	move_peer(&s.pair->b, lid);
	ts_recv(&s.pair->b, .wr_id = 2, .length = 8);
	ts_send(&s.pair->a, .wr_id = 1, .length = 8);
	VT_EXPECT_EQ(t, ts_received(t, s.pair->b.recv_cq, 2, 8).slid, lid);
	ts_done(t, s.pair->a.send_cq, 1, IBV_WC_SEND);
	VT_OK(t, vb_sim_set_lid(t->a.ctx, t->a.port, t->a.port_attr.lid));
	forget_events(t);
}

static void first_message_has_the_new_lid(struct vt *t)
{
	twice(t, rc_source);
}

/* --- what the responder remembers of READs and atomics --- */

static unsigned int lose_one_answer(struct scene *s, uint8_t opcode)
{
	return ts_fault(s->t, &(struct vb_fault_rule){.action = VB_FAULT_DROP,
						      .opcode_given = true,
						      .opcode = opcode,
						      .dest_qpn = s->pair->a.qp->qp_num,
						      .count = 1});
}

/* The region ends between an operation and its repetition. */
static void region_ends_before_a_repetition(struct vt *t)
{
	static const struct {
		uint8_t answer;
		size_t op;
		enum ibv_wc_status status;
	} rows[] = {
		{TS_READ_ONLY, 2, IBV_WC_REM_ACCESS_ERR},
		{TS_ATOMIC_ACK, 3, IBV_WC_SUCCESS},
		{TS_ACK, 1, IBV_WC_SUCCESS},
	};

	ts_prompt(t);
	for (size_t i = 0; i < TS_COUNT(rows); i++) {
		struct scene s = begin(t);
		uint64_t before, after;
		struct ibv_wc wc;

		vt_row(t, "%s", operations[rows[i].op].name);
		lose_one_answer(&s, rows[i].answer);
		post(&s, rows[i].op);
		VT_OK(t, vb_sim_run(ts_sim(t), 0));
		memcpy(&before, s.pair->b.buffer, 8);
		VT_OK(t, vb_dereg_mr(s.pair->b.mr));
		ts_gone(t, s.pair->b.mr);
		VT_EQ(t, ts_wait(t, s.pair->a.send_cq, 1, &wc), 1);
		VT_EXPECT_STATUS(t, wc.status, rows[i].status);
		memcpy(&after, s.pair->b.buffer, 8);
		VT_EXPECT(t, before == after);
		forget_events(t);
	}
}

/* An atomic of a new connection has the PSN of one of the old connection. */
static void reset_forgets_answers(struct vt *t)
{
	struct scene s = begin(t);
	uint64_t value = 0, got;

	ts_untraced(t);
	for (uint64_t i = 0; i < 4; i++) {
		VT_OK(t, ts_to(&s.pair->a, IBV_QPS_RESET));
		VT_OK(t, ts_to(&s.pair->b, IBV_QPS_RESET));
		ts_connect_both(s.pair);
		if (i == 0)
			memcpy(s.pair->b.buffer, &value, 8);
		lose_one_answer(&s, TS_ATOMIC_ACK);
		ts_fetch_add(&s.pair->a, .wr_id = 1, .offset = 8192, .compare_add = 1 + i);
		ts_done(t, s.pair->a.send_cq, 1, IBV_WC_FETCH_ADD);
		memcpy(&got, s.pair->a.buffer + 8192, 8);
		VT_EXPECT(t, got == value);
		value += 1 + i;
		memcpy(&got, s.pair->b.buffer, 8);
		VT_EXPECT(t, got == value);
	}
}

/* A repeated READ reads the memory again: SoftRoCE does so, and keeps no copy. */
static void repeated_read_gets_the_bytes_of_now(struct vt *t)
{
	struct scene s = begin(t);

	ts_untraced(t);
	ts_fill(s.pair->b.buffer, 8, 5);
	lose_one_answer(&s, TS_READ_ONLY);
	ts_read(&s.pair->a, .wr_id = 1, .offset = 8192, .length = 8);
	VT_OK(t, vb_sim_run(ts_sim(t), 0));
	ts_fill(s.pair->b.buffer, 8, 6);
	ts_done(t, s.pair->a.send_cq, 1, IBV_WC_RDMA_READ);
	ts_verify(t, s.pair->a.buffer + 8192, 8, 6);
}

#define NEEDS                                                                             \
	(VT_NEEDS_SIM | VT_NEEDS_FAULTS | VT_NEEDS_VIRTUAL_CLOCK | VT_NEEDS_TWO_DEVICES | \
	 VT_NEEDS_ATOMICS)

static const struct vt_test tests[] = {
	{"outages_stop_and_end_at_once", "unsourced", NEEDS, outages_stop_and_end_at_once,
	 VT_MAY_RECONNECT},
	{"gone_peer_gets_nothing", SRC_RXE "rxe_recv.c, check_type_state", NEEDS,
	 gone_peer_gets_nothing, VT_MAY_RECONNECT},
	{"number_used_again_is_another_qp", "unsourced", NEEDS, number_used_again_is_another_qp},
	{"dead_device_gets_nothing", "unsourced", NEEDS, dead_device_gets_nothing},
	{"other_peer_gets_all", "unsourced", NEEDS, other_peer_gets_all, VT_MAY_RECONNECT},
	{"watcher_comes_and_goes", "unsourced", NEEDS, watcher_comes_and_goes},
	{"datagrams_follow_the_way_at_once", "unsourced", NEEDS, datagrams_follow_the_way_at_once},
	{"first_datagram_has_the_new_source", "unsourced", NEEDS,
	 first_datagram_has_the_new_source},
	{"first_message_has_the_new_lid", "ibv_poll_cq(3): slid", NEEDS | VT_NEEDS_INFINIBAND,
	 first_message_has_the_new_lid},
	{"region_ends_before_a_repetition", SRC_RXE "rxe_resp.c, duplicate_request, rxe_recheck_mr",
	 NEEDS, region_ends_before_a_repetition},
	{"reset_forgets_answers", SRC_RXE "rxe_qp.c, rxe_qp_reset", NEEDS, reset_forgets_answers},
	{"repeated_read_gets_the_bytes_of_now", SRC_RXE "rxe_resp.c, read_reply", NEEDS,
	 repeated_read_gets_the_bytes_of_now},
	{NULL},
};

const struct vt_suite vt_suite_caches_path = {
	"caches_path", "peers and addresses that worked until now", tests, .simulator = true};
