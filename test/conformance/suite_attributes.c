/* SPDX-License-Identifier: MIT */
/*
 * Every attribute takes effect: in every transition that takes it, on every QP type, after traffic
 * with another value, and again after RESET with the first value.
 *
 * `effects` says how an attribute is seen. The transitions come from transitions.h, so an attribute
 * needs no row for each of them. An attribute without an effect has a reason in `reasons`; the test
 * every_attribute_has_a_row finds one that has neither.
 *
 * Parts of an address vector that no test can see: src_path_bits (the simulated ports have LMC 0)
 * and static_rate (links have the rate of their configuration).
 */
#include "test/conformance/sources.h"
#include "test/support/linked_pair.h"
#include "test/support/need.h"
#include "test/support/own_world.h"
#include "test/support/tap.h"

#include <verbena/fault.h>
#include <verbena/sim.h>

#define CORE "Linux drivers/infiniband/core/verbs.c, qp_state_table; ibv_modify_qp(3)"

enum { OLD, NEW };

struct scene {
	struct vt *t;
	struct ts_link *link;
	struct ts_tap *tap;
	int subject; /* TS_A or TS_B: the end whose attribute changes */
	int which;   /* OLD or NEW: the value that is set or looked for */
};

static struct ibv_qp_attr *mine(const struct scene *s)
{
	return &s->link->values[s->subject];
}

static struct ibv_qp_attr *others(const struct scene *s)
{
	return &s->link->values[!s->subject];
}

static uint32_t qpn(const struct scene *s, int which)
{
	return s->link->ends[which]->qp->qp_num;
}

static struct ibv_cq *send_cq(const struct scene *s)
{
	return s->link->ends[TS_A]->send_cq;
}

/* --- the values --- */

static void set_pkey(struct scene *s)
{
	mine(s)->pkey_index = others(s)->pkey_index = s->which == NEW ? 2 : 0;
}

/* The address from one port to another by the GIDs of an index. */
static struct ibv_ah_attr route(struct scene *s, const struct vt_node *from,
				const struct vt_node *to, uint8_t gid_index)
{
	struct ibv_ah_attr av = ts_av((struct vt_node *)from, (struct vt_node *)to);

	if (av.is_global) {
		av.grh.sgid_index = gid_index;
		VT_OK(s->t, vb_query_gid(to->ctx, to->port, gid_index, &av.grh.dgid));
	}
	return av;
}

/* The subject moves to port 2, which has a link-local GID only. */
static void set_port(struct scene *s)
{
	const struct vt_node *here = s->link->ends[s->subject]->node;
	const struct vt_node *there = s->link->ends[!s->subject]->node;
	const struct vt_node second = ts_second_port(s->t, here);

	if (s->which == NEW)
		here = &second;
	mine(s)->port_num = here->port;
	mine(s)->ah_attr = route(s, here, there, 0);
	others(s)->ah_attr = route(s, there, here, 0);
}

/* The fields of a GRH, and on InfiniBand the service level. */
static void decorate(struct ibv_ah_attr *av)
{
	av->sl = 5;
	av->grh.traffic_class = 0x68;
	av->grh.hop_limit = 33;
	av->grh.flow_label = 0x54321;
}

static void set_av(struct scene *s)
{
	const struct vt_node *here = s->link->ends[s->subject]->node;
	const struct vt_node *there = s->link->ends[!s->subject]->node;
	const bool ethernet = s->t->have & VT_NEEDS_ETHERNET;
	const uint8_t old_index = ethernet ? 1 : 0, new_index = ethernet ? 2 : 0;

	mine(s)->ah_attr = route(s, here, there, s->which == NEW ? new_index : old_index);
	others(s)->ah_attr = route(s, there, here, s->which == NEW ? new_index : old_index);
	if (s->which == OLD)
		return;
	if (!ethernet) {
		mine(s)->ah_attr.is_global = others(s)->ah_attr.is_global = 1;
		mine(s)->ah_attr.grh.dgid = there->gid;
		others(s)->ah_attr.grh.dgid = here->gid;
	}
	decorate(&mine(s)->ah_attr);
}

static void set_mtu(struct scene *s)
{
	mine(s)->path_mtu = others(s)->path_mtu = s->which == NEW ? IBV_MTU_256 : IBV_MTU_1024;
}

/* The other end is another QP each time. */
static void set_dest(struct scene *s)
{
	ts_link_renew(s->link, !s->subject);
}

static void set_sq_psn(struct scene *s)
{
	mine(s)->sq_psn = others(s)->rq_psn = s->which == NEW ? 0xabcdef : 0x1000;
}

static void set_rq_psn(struct scene *s)
{
	mine(s)->rq_psn = others(s)->sq_psn = s->which == NEW ? 0xfffffe : 0x1000;
}

static void set_qkey(struct scene *s)
{
	mine(s)->qkey = s->which == NEW ? 0x02345678 : TS_QKEY;
}

static void set_timeout(struct scene *s)
{
	mine(s)->timeout = s->which == NEW ? 11 : 8;
}

static void set_retry_cnt(struct scene *s)
{
	mine(s)->retry_cnt = s->which == NEW ? 5 : 2;
}

static void set_rnr_retry(struct scene *s)
{
	mine(s)->rnr_retry = s->which == NEW ? 6 : 2;
}

static void set_reads_out(struct scene *s)
{
	mine(s)->max_rd_atomic = s->which == NEW ? 2 : 4;
}

static void set_reads_in(struct scene *s)
{
	mine(s)->max_dest_rd_atomic = s->which == NEW ? 4 : 2;
}

static void set_rnr_timer(struct scene *s)
{
	mine(s)->min_rnr_timer = s->which == NEW ? 14 : 1;
}

static void set_access(struct scene *s)
{
	mine(s)->qp_access_flags = s->which == NEW
					   ? IBV_ACCESS_REMOTE_READ
					   : IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
}

/* --- what shows them --- */

static const struct ts_packet *request(struct scene *s, unsigned int index)
{
	const struct ts_packet *packet = ts_tap_request(s->tap, qpn(s, TS_B), index);

	if (!packet)
		VT_FAIL(s->t, "request %u to B was not sent", index);
	return packet;
}

static const struct ts_packet *answer(struct scene *s, unsigned int index)
{
	const struct ts_packet *packet = ts_tap_answer(s->tap, qpn(s, TS_A), index);

	if (!packet)
		VT_FAIL(s->t, "answer %u to A was not sent", index);
	return packet;
}

/* A message arrives. Returns a packet that the subject sent; NULL for a B that sends none. */
static const struct ts_packet *exchange(struct scene *s)
{
	s->tap->count = 0;
	ts_link_send(s->link, 100);
	if (s->subject == TS_A)
		return request(s, 0);
	return s->link->reliable ? answer(s, 0) : NULL;
}

static void see_arrival(struct scene *s)
{
	exchange(s);
}

static void see_pkey(struct scene *s)
{
	const struct ts_packet *packet = exchange(s);
	struct ibv_wc wc = ts_link_send(s->link, 8);

	VT_EXPECT_EQ(s->t, wc.pkey_index, s->link->values[TS_B].pkey_index);
	if (packet)
		VT_EXPECT_EQ(s->t, packet->pkey, ts_world_pkeys[mine(s)->pkey_index]);
}

static void check_grh(struct scene *s, const struct ts_packet *packet, const struct ibv_ah_attr *av)
{
	union ibv_gid source;

	VT_OK(s->t, vb_query_gid(s->link->ends[s->subject]->node->ctx, av->port_num,
				 av->grh.sgid_index, &source));
	VT_EXPECT_EQ_MEM(s->t, packet->source_gid, source.raw, 16);
	VT_EXPECT_EQ_MEM(s->t, packet->dest_gid, av->grh.dgid.raw, 16);
	VT_EXPECT_EQ(s->t, packet->traffic_class, av->grh.traffic_class);
	VT_EXPECT_EQ(s->t, packet->hop_limit, av->grh.hop_limit);
	if (packet->has_grh)
		VT_EXPECT_EQ(s->t, packet->flow_label, av->grh.flow_label);
	if (av->grh.flow_label && packet->udp_source_port)
		VT_EXPECT_EQ(s->t, packet->udp_source_port,
			     ibv_flow_label_to_udp_sport(av->grh.flow_label));
}

static void see_route(struct scene *s)
{
	const struct ts_packet *packet = exchange(s);
	const struct ibv_ah_attr *av = &mine(s)->ah_attr;
	struct ibv_port_attr port;

	if (!packet)
		return;
	if (s->t->have & VT_NEEDS_INFINIBAND) {
		VT_OK(s->t, vb_query_port(s->link->ends[s->subject]->node->ctx, av->port_num, &port,
					  sizeof(port)));
		VT_EXPECT_EQ(s->t, packet->slid, port.lid);
		VT_EXPECT_EQ(s->t, packet->dlid, av->dlid);
		VT_EXPECT_EQ(s->t, packet->sl, av->sl);
		VT_EXPECT_EQ(s->t, packet->has_grh, av->is_global);
	}
	if (av->is_global)
		check_grh(s, packet, av);
}

#define LONG_BYTES 1000u

static unsigned int packets_of_long(const struct scene *s)
{
	const uint32_t mtu_bytes = ts_mtu_bytes(mine(s)->path_mtu);

	return (LONG_BYTES + mtu_bytes - 1) / mtu_bytes;
}

static void see_mtu_of_requests(struct scene *s)
{
	s->tap->count = 0;
	ts_link_send(s->link, LONG_BYTES);
	VT_EXPECT_EQ(s->t, ts_tap_requests(s->tap, qpn(s, TS_B)), packets_of_long(s));
}

static void see_mtu_of_responses(struct scene *s)
{
	s->tap->count = 0;
	TS_LINK_POST(s->link, IBV_WR_RDMA_READ, .wr_id = 1, .offset = 50000, .length = LONG_BYTES);
	ts_done(s->t, send_cq(s), 1, IBV_WC_RDMA_READ);
	VT_EXPECT_EQ(s->t, ts_tap_answers(s->tap, qpn(s, TS_A)), packets_of_long(s));
}

static void see_dest(struct scene *s)
{
	const struct ts_packet *packet = exchange(s);

	if (packet)
		VT_EXPECT_EQ(s->t, packet->dest_qpn, mine(s)->dest_qp_num);
}

static void see_sq_psn(struct scene *s)
{
	VT_EXPECT_EQ(s->t, exchange(s)->psn, mine(s)->sq_psn);
}

/* The first message is acknowledged at once. */
static void see_rq_psn(struct scene *s)
{
	VT_EXPECT_EQ(s->t, exchange(s)->psn, mine(s)->rq_psn);
	VT_EXPECT_EQ(s->t, ts_tap_requests(s->tap, qpn(s, TS_B)), 1);
}

/* B takes datagrams with its Q_Key only. With the high bit, B sends its own Q_Key. */
static void see_qkey(struct scene *s)
{
	struct ts_end *b = s->link->ends[TS_B];

	ts_link_send(s->link, 100);
	ts_recv(b, .wr_id = 1, .length = 100);
	TS_LINK_POST(s->link, IBV_WR_SEND, .wr_id = 2, .length = 8,
		     .remote_qkey = mine(s)->qkey ^ 0x10);
	ts_done(s->t, send_cq(s), 2, IBV_WC_SEND);
	ts_no_more(s->t, b->recv_cq);
	s->tap->count = 0;
	ts_send(b, .wr_id = 3, .length = 8, .remote_qkey = 0x80000000);
	ts_done(s->t, b->send_cq, 3, IBV_WC_SEND);
	VT_EXPECT_EQ(s->t, ts_tap_word(ts_tap_request(s->tap, qpn(s, TS_A), 0), 0), mine(s)->qkey);
}

/* Sends a message into a wire that loses everything, until A gives up. */
static void lose_all(struct scene *s)
{
	unsigned int id = ts_fault(
		s->t, &(struct vb_fault_rule){.action = VB_FAULT_DROP, .dest_qpn = qpn(s, TS_B)});

	s->tap->count = 0;
	TS_LINK_POST(s->link, IBV_WR_SEND, .wr_id = 1, .length = 8);
	ts_failed(s->t, send_cq(s), 1, IBV_WC_RETRY_EXC_ERR);
	VT_OK(s->t, vb_fault_remove(ts_sim(s->t), id));
}

static void see_timeout(struct scene *s)
{
	lose_all(s);
	for (unsigned int i = 0; i < mine(s)->retry_cnt; i++)
		VT_EXPECT_EQ(s->t, request(s, i + 1)->now_ns - request(s, i)->now_ns,
			     UINT64_C(4096) << mine(s)->timeout);
}

static void see_retry_cnt(struct scene *s)
{
	lose_all(s);
	VT_EXPECT_EQ(s->t, ts_tap_requests(s->tap, qpn(s, TS_B)), mine(s)->retry_cnt + 1u);
}

static void see_rnr_retry(struct scene *s)
{
	s->tap->count = 0;
	TS_LINK_POST(s->link, IBV_WR_SEND, .wr_id = 1, .length = 8);
	ts_failed(s->t, send_cq(s), 1, IBV_WC_RNR_RETRY_EXC_ERR);
	VT_EXPECT_EQ(s->t, ts_tap_requests(s->tap, qpn(s, TS_B)), mine(s)->rnr_retry + 1u);
}

/* An RNR NAK has 001 in the top three bits of its syndrome, and the timer below them. */
static void see_rnr_timer(struct scene *s)
{
	const uint64_t wait_ns = mine(s)->min_rnr_timer == 14 ? 1280000 : 10000;

	s->tap->count = 0;
	TS_LINK_POST(s->link, IBV_WR_SEND, .wr_id = 1, .length = 8);
	ts_failed(s->t, send_cq(s), 1, IBV_WC_RNR_RETRY_EXC_ERR);
	VT_EXPECT_EQ(s->t, ts_tap_word(answer(s, 0), 0) >> 24, 0x20u | mine(s)->min_rnr_timer);
	VT_EXPECT_EQ(s->t, request(s, 1)->now_ns - answer(s, 0)->now_ns, wait_ns);
}

#define READS 6u

/* Answers are late, so A sends as many READs and atomics as may be outstanding. */
static void see_reads_out(struct scene *s)
{
	unsigned int id = ts_fault(s->t, &(struct vb_fault_rule){.action = VB_FAULT_DELAY,
								 .dest_qpn = qpn(s, TS_A),
								 .delay_ns = 10000});

	s->tap->count = 0;
	for (unsigned int i = 0; i < READS; i++)
		TS_LINK_POST(s->link, i & 1 ? IBV_WR_ATOMIC_FETCH_AND_ADD : IBV_WR_RDMA_READ,
			     .wr_id = i, .offset = 50000 + 8 * i, .length = 8);
	VT_OK(s->t, vb_sim_run(ts_sim(s->t), 0));
	VT_EXPECT_EQ(s->t, ts_tap_requests(s->tap, qpn(s, TS_B)), mine(s)->max_rd_atomic);
	for (unsigned int i = 0; i < READS; i++)
		ts_done(s->t, send_cq(s), i, i & 1 ? IBV_WC_FETCH_ADD : IBV_WC_RDMA_READ);
	VT_OK(s->t, vb_fault_remove(ts_sim(s->t), id));
}

/* A sends four READs at once: B serves them, or refuses those above its number. */
static void see_reads_in(struct scene *s)
{
	const unsigned int sent = s->link->values[TS_A].max_rd_atomic;
	enum ibv_wc_status worst = IBV_WC_SUCCESS;
	struct ibv_wc wc;

	for (unsigned int i = 0; i < sent; i++)
		TS_LINK_POST(s->link, IBV_WR_RDMA_READ, .wr_id = i, .offset = 50000, .length = 8);
	for (unsigned int i = 0; i < sent; i++) {
		VT_EQ(s->t, ts_wait(s->t, send_cq(s), 1, &wc), 1);
		if (worst == IBV_WC_SUCCESS)
			worst = wc.status;
	}
	VT_EXPECT_STATUS(s->t, worst,
			 mine(s)->max_dest_rd_atomic < sent ? IBV_WC_REM_INV_REQ_ERR
							    : IBV_WC_SUCCESS);
}

static const struct {
	unsigned int right;
	enum ibv_wr_opcode opcode;
	enum ibv_wc_opcode done;
} operations[] = {
	{IBV_ACCESS_REMOTE_WRITE, IBV_WR_RDMA_WRITE, IBV_WC_RDMA_WRITE},
	{IBV_ACCESS_REMOTE_READ, IBV_WR_RDMA_READ, IBV_WC_RDMA_READ},
	{IBV_ACCESS_REMOTE_ATOMIC, IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WC_COMP_SWAP},
};

/* The operations that B allows succeed; then one that B forbids is refused. */
static void see_access(struct scene *s)
{
	for (size_t i = 0; i < TS_COUNT(operations); i++) {
		if (!(mine(s)->qp_access_flags & operations[i].right))
			continue;
		TS_LINK_POST(s->link, operations[i].opcode, .wr_id = i, .offset = 50000,
			     .length = 8);
		ts_done(s->t, send_cq(s), i, operations[i].done);
	}
	for (size_t i = 0; i < TS_COUNT(operations); i++) {
		if (mine(s)->qp_access_flags & operations[i].right)
			continue;
		TS_LINK_POST(s->link, operations[i].opcode, .wr_id = i, .offset = 50000,
			     .length = 8);
		ts_failed(s->t, send_cq(s), i, IBV_WC_REM_INV_REQ_ERR);
		return;
	}
}

/* On UC a WRITE without the right is lost in silence. */
static void see_access_of_uc(struct scene *s)
{
	uint8_t *to = s->link->ends[TS_B]->buffer;

	memset(to, TS_BLANK, 8);
	TS_LINK_POST(s->link, IBV_WR_RDMA_WRITE, .wr_id = 1, .length = 8);
	ts_done(s->t, send_cq(s), 1, IBV_WC_RDMA_WRITE);
	ts_settle(s->t);
	if (mine(s)->qp_access_flags & IBV_ACCESS_REMOTE_WRITE)
		ts_verify(s->t, to, 8, 1);
	else
		ts_blank(s->t, to, 8);
}

/* --- the table --- */

enum {
	RC = 1 << TS_TYPE_RC,
	UC = 1 << TS_TYPE_UC,
	UD = 1 << TS_TYPE_UD,
	INI = 1 << TS_TYPE_XRC_SEND,
	TGT = 1 << TS_TYPE_XRC_RECV,
	ALL = RC | UC | UD | INI | TGT,
};

static const struct effect {
	int bit;
	unsigned int types;
	int subject;
	void (*set)(struct scene *s);
	void (*see)(struct scene *s);
	bool both; /* the other end has to change, too */
	int with;  /* set together with the bit where the transition takes both */
} effects[] = {
	{IBV_QP_PKEY_INDEX, RC | UC | UD | INI, TS_A, set_pkey, see_pkey, true, 0},
	{IBV_QP_PKEY_INDEX, RC | UC | UD | TGT, TS_B, set_pkey, see_pkey, true, 0},
	{IBV_QP_PORT, RC | UC | INI, TS_A, set_port, see_route, true, IBV_QP_AV},
	{IBV_QP_PORT, RC | UC | UD | TGT, TS_B, set_port, see_route, true, IBV_QP_AV},
	{IBV_QP_AV, RC | UC | INI, TS_A, set_av, see_route, true, 0},
	{IBV_QP_AV, RC | UC | TGT, TS_B, set_av, see_route, true, 0},
	{IBV_QP_PATH_MTU, RC | UC | INI, TS_A, set_mtu, see_mtu_of_requests, false, 0},
	{IBV_QP_PATH_MTU, RC | TGT, TS_B, set_mtu, see_mtu_of_responses, false, 0},
	{IBV_QP_PATH_MTU, UC, TS_B, set_mtu, see_mtu_of_requests, false, 0},
	{IBV_QP_DEST_QPN, RC | UC | INI, TS_A, set_dest, see_dest, false, 0},
	{IBV_QP_DEST_QPN, RC | UC | TGT, TS_B, set_dest, see_dest, false, 0},
	{IBV_QP_SQ_PSN, RC | UC | UD | INI, TS_A, set_sq_psn, see_sq_psn, false, 0},
	{IBV_QP_RQ_PSN, RC | TGT, TS_B, set_rq_psn, see_rq_psn, false, 0},
	{IBV_QP_RQ_PSN, UC, TS_B, set_rq_psn, see_arrival, false, 0},
	{IBV_QP_QKEY, UD, TS_B, set_qkey, see_qkey, false, 0},
	{IBV_QP_TIMEOUT, RC | INI, TS_A, set_timeout, see_timeout, false, 0},
	{IBV_QP_RETRY_CNT, RC | INI, TS_A, set_retry_cnt, see_retry_cnt, false, 0},
	{IBV_QP_RNR_RETRY, RC | INI, TS_A, set_rnr_retry, see_rnr_retry, false, 0},
	{IBV_QP_MAX_QP_RD_ATOMIC, RC | INI, TS_A, set_reads_out, see_reads_out, false, 0},
	{IBV_QP_MAX_DEST_RD_ATOMIC, RC | TGT, TS_B, set_reads_in, see_reads_in, false, 0},
	{IBV_QP_MIN_RNR_TIMER, RC | TGT, TS_B, set_rnr_timer, see_rnr_timer, false, 0},
	{IBV_QP_ACCESS_FLAGS, RC | TGT, TS_B, set_access, see_access, false, 0},
	{IBV_QP_ACCESS_FLAGS, UC, TS_B, set_access, see_access_of_uc, false, 0},
};

/* Attributes that have no effect of their own, or whose effect another test of this file shows. */
static const struct {
	int bit;
	unsigned int types;
	const char *reason;
} reasons[] = {
	{IBV_QP_CUR_STATE, ALL, "current_state_is_checked"},
	{IBV_QP_EN_SQD_ASYNC_NOTIFY, ALL, "drained_event_follows_the_last_request_for_it"},
	{IBV_QP_ACCESS_FLAGS, INI, "an initiator gets no requests; every_attribute_is_reported"},
	{IBV_QP_RQ_PSN, INI, "an initiator gets no requests; every_attribute_is_reported"},
	{IBV_QP_SQ_PSN, TGT, "a target sends no requests; every_attribute_is_reported"},
	{IBV_QP_TIMEOUT, TGT, "a target sends no requests; every_attribute_is_reported"},
};

/* --- the walk --- */

/* Moves a QP from RTS to the state from which it is modified. */
static void bring(struct scene *s, int which, enum ibv_qp_state state)
{
	struct ts_end *end = s->link->ends[which];

	if (state == IBV_QPS_SQD) {
		VT_OK(s->t, ts_to(end, IBV_QPS_SQD));
		ts_drained(end);
	} else if (state == IBV_QPS_SQE) {
		ts_send(end, .wr_id = 90, .length = 8, .lkey = ts_wrong_key(end->mr->lkey));
		ts_failed(s->t, end->send_cq, 90, IBV_WC_LOC_PROT_ERR);
		ts_state(end, IBV_QPS_SQE);
	}
}

/* The bits of a mask that a type takes from SQD to SQD. */
static int taken_in_sqd(enum ts_type type, int mask)
{
	int taken = 0;

	for (size_t i = 0; i < ts_transition_count; i++)
		if (ts_transitions[i].types & 1u << type && ts_transitions[i].from == IBV_QPS_SQD &&
		    ts_transitions[i].to == IBV_QPS_SQD)
			taken |= ts_transitions[i].optional;
	return mask & taken;
}

static void change_the_other(struct scene *s, int mask)
{
	const int other = !s->subject;

	mask = taken_in_sqd(s->link->types[other], mask);
	if (!mask)
		return;
	bring(s, other, IBV_QPS_SQD);
	ts_link_modify(s->link, other, IBV_QPS_SQD, IBV_QPS_SQD, others(s), mask);
	ts_link_modify(s->link, other, IBV_QPS_SQD, IBV_QPS_RTS, others(s), 0);
}

/* The change comes when the link has carried traffic. */
static void change_connected(struct scene *s, const struct effect *effect,
			     const struct ts_transition *cell, int mask)
{
	s->which = NEW;
	effect->set(s);
	bring(s, s->subject, cell->from);
	ts_link_modify(s->link, s->subject, cell->from, cell->to, mine(s), mask);
	if (effect->both)
		change_the_other(s, mask);
	if (cell->to == IBV_QPS_SQD)
		ts_link_modify(s->link, s->subject, IBV_QPS_SQD, IBV_QPS_RTS, mine(s), 0);
}

/* The change comes in a step towards RTS; the steps before it set the old value. */
static void change_on_the_way(struct scene *s, const struct effect *effect,
			      const struct ts_transition *cell, int mask)
{
	const struct ibv_qp_attr old = *mine(s);
	const struct ibv_qp_attr *attr = &old;
	const enum ts_type type = s->link->types[s->subject];

	s->which = NEW;
	effect->set(s);
	ts_link_reset(s->link);
	ts_link_walk(s->link, !s->subject);
	for (int at = IBV_QPS_RESET; at < IBV_QPS_RTS; at++) {
		const enum ibv_qp_state from = (enum ibv_qp_state)at;
		const enum ibv_qp_state to = (enum ibv_qp_state)(at + 1);
		int more = 0;

		if (cell->from == from) {
			attr = mine(s);
			more = mask;
		}
		if (cell->from == from && cell->to == from) {
			ts_link_modify(s->link, s->subject, from, from, attr, mask);
			more = 0;
		}
		ts_link_modify(s->link, s->subject, from, to, attr,
			       ts_required(type, from, to) | more);
	}
}

static void connect_with_old(struct scene *s, const struct effect *effect)
{
	s->which = OLD;
	effect->set(s);
	ts_link_connect(s->link);
}

static void try_effect(struct scene *s, const struct effect *effect,
		       const struct ts_transition *cell)
{
	const int mask = effect->bit | (effect->with & (cell->required | cell->optional));

	connect_with_old(s, effect);
	effect->see(s);
	connect_with_old(s, effect);
	ts_link_warm(s->link);
	if (cell->from >= IBV_QPS_RTS)
		change_connected(s, effect, cell, mask);
	else
		change_on_the_way(s, effect, cell, mask);
	effect->see(s);
	connect_with_old(s, effect);
	effect->see(s);
}

static void try_cell(struct vt *t, enum ts_type type, const struct effect *effect,
		     const struct ts_transition *cell)
{
	struct scene s = {.t = t, .subject = effect->subject};

	vt_row(t, "%s of %s %c, %s->%s", ts_attribute_name(effect->bit), ts_type_names[type],
	       "AB"[effect->subject], vt_qp_state_name(cell->from), vt_qp_state_name(cell->to));
	s.link = ts_link(t, type);
	s.tap = ts_tap(t);
	try_effect(&s, effect, cell);
}

static void try_type(struct vt *t, enum ts_type type, int link_layer)
{
	ts_world_of(t, link_layer);
	for (size_t i = 0; i < TS_COUNT(effects); i++)
		for (size_t j = 0; j < ts_transition_count; j++) {
			const struct ts_transition *cell = &ts_transitions[j];

			if (effects[i].types & cell->types & 1u << type &&
			    effects[i].bit & (cell->required | cell->optional))
				try_cell(t, type, &effects[i], cell);
		}
	vt_row(t, NULL);
}

static void rc_attributes_on_ethernet(struct vt *t)
{
	try_type(t, TS_TYPE_RC, IBV_LINK_LAYER_ETHERNET);
}

static void uc_attributes_on_ethernet(struct vt *t)
{
	try_type(t, TS_TYPE_UC, IBV_LINK_LAYER_ETHERNET);
}

static void ud_attributes_on_ethernet(struct vt *t)
{
	try_type(t, TS_TYPE_UD, IBV_LINK_LAYER_ETHERNET);
}

static void initiator_attributes_on_ethernet(struct vt *t)
{
	try_type(t, TS_TYPE_XRC_SEND, IBV_LINK_LAYER_ETHERNET);
}

static void target_attributes_on_ethernet(struct vt *t)
{
	try_type(t, TS_TYPE_XRC_RECV, IBV_LINK_LAYER_ETHERNET);
}

static void rc_attributes_on_infiniband(struct vt *t)
{
	try_type(t, TS_TYPE_RC, IBV_LINK_LAYER_INFINIBAND);
}

static void uc_attributes_on_infiniband(struct vt *t)
{
	try_type(t, TS_TYPE_UC, IBV_LINK_LAYER_INFINIBAND);
}

static void ud_attributes_on_infiniband(struct vt *t)
{
	try_type(t, TS_TYPE_UD, IBV_LINK_LAYER_INFINIBAND);
}

static void initiator_attributes_on_infiniband(struct vt *t)
{
	try_type(t, TS_TYPE_XRC_SEND, IBV_LINK_LAYER_INFINIBAND);
}

static void target_attributes_on_infiniband(struct vt *t)
{
	try_type(t, TS_TYPE_XRC_RECV, IBV_LINK_LAYER_INFINIBAND);
}

/* --- attributes whose effect is not in the traffic --- */

static int end_of(enum ts_type type)
{
	return type == TS_TYPE_XRC_RECV ? TS_B : TS_A;
}

static void check_drained(struct vt *t, struct ts_link *link, int which, bool asked)
{
	struct ts_end *end = link->ends[which];
	const struct ibv_qp_attr attr = {.en_sqd_async_notify = asked};

	ts_drain_events(end->node);
	ts_link_modify(link, which, IBV_QPS_RTS, IBV_QPS_SQD, &attr, IBV_QP_EN_SQD_ASYNC_NOTIFY);
	if (asked)
		ts_event(t, end->node, IBV_EVENT_SQ_DRAINED, end->qp);
	ts_no_event(t, end->node);
	ts_link_modify(link, which, IBV_QPS_SQD, IBV_QPS_RTS, &attr, 0);
}

static void drained_event_follows_the_last_request_for_it(struct vt *t)
{
	ts_world(t);
	for (enum ts_type type = 0; type < TS_TYPES; type++) {
		struct ts_link *link = ts_link(t, type);

		vt_row(t, "%s", ts_type_names[type]);
		ts_link_connect(link);
		ts_link_warm(link);
		for (int i = 0; i < 2; i++) {
			check_drained(t, link, end_of(type), true);
			check_drained(t, link, end_of(type), false);
		}
		ts_link_connect(link);
		check_drained(t, link, end_of(type), false);
		check_drained(t, link, end_of(type), true);
	}
}

/* A wrong current state is refused in each step that takes one, and the right one is taken. */
static void current_state_is_checked(struct vt *t)
{
	ts_world(t);
	for (enum ts_type type = 0; type < TS_TYPES; type++) {
		struct ts_link *link = ts_link(t, type);
		struct ts_end *end = link->ends[end_of(type)];
		struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS, .cur_qp_state = IBV_QPS_SQD};

		vt_row(t, "%s", ts_type_names[type]);
		ts_link_connect(link);
		VT_EXPECT_ERRNO(t, vb_modify_qp(end->qp, &attr, IBV_QP_STATE | IBV_QP_CUR_STATE),
				EINVAL);
		attr.cur_qp_state = IBV_QPS_RTS;
		VT_EXPECT_ERRNO(t, vb_modify_qp(end->qp, &attr, IBV_QP_STATE | IBV_QP_CUR_STATE),
				0);
		ts_link_warm(link);
		VT_OK(t, ts_to(end, IBV_QPS_SQD));
		ts_drained(end);
		VT_EXPECT_ERRNO(t, vb_modify_qp(end->qp, &attr, IBV_QP_STATE | IBV_QP_CUR_STATE),
				EINVAL);
		ts_state(end, IBV_QPS_SQD);
	}
}

#define QUERY_ALL                                                                             \
	(IBV_QP_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY | \
	 IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | \
	 IBV_QP_RQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER | IBV_QP_SQ_PSN |     \
	 IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_DEST_QPN)

/* The value of an attribute; of an address vector, a part that the tests here change. */
static uint64_t value_of(const struct ibv_qp_attr *attr, int bit)
{
	switch (bit) {
	case IBV_QP_ACCESS_FLAGS:
		return attr->qp_access_flags;
	case IBV_QP_PKEY_INDEX:
		return attr->pkey_index;
	case IBV_QP_PORT:
		return attr->port_num;
	case IBV_QP_QKEY:
		return attr->qkey;
	case IBV_QP_AV:
		return (uint64_t)attr->ah_attr.grh.traffic_class << 32 | attr->ah_attr.sl;
	case IBV_QP_PATH_MTU:
		return attr->path_mtu;
	case IBV_QP_TIMEOUT:
		return attr->timeout;
	case IBV_QP_RETRY_CNT:
		return attr->retry_cnt;
	case IBV_QP_RNR_RETRY:
		return attr->rnr_retry;
	case IBV_QP_RQ_PSN:
		return attr->rq_psn;
	case IBV_QP_MAX_QP_RD_ATOMIC:
		return attr->max_rd_atomic;
	case IBV_QP_MIN_RNR_TIMER:
		return attr->min_rnr_timer;
	case IBV_QP_SQ_PSN:
		return attr->sq_psn;
	case IBV_QP_MAX_DEST_RD_ATOMIC:
		return attr->max_dest_rd_atomic;
	case IBV_QP_DEST_QPN:
		return attr->dest_qp_num;
	default:
		return 0;
	}
}

/* Other values of everything that ts_link() sets. */
static void change_everything(struct ts_link *link, int which)
{
	struct ibv_qp_attr *attr = &link->values[which];

	attr->qp_access_flags = IBV_ACCESS_REMOTE_READ;
	attr->pkey_index = 3;
	attr->qkey = 0x7654321;
	attr->ah_attr.grh.traffic_class = link->t->have & VT_NEEDS_ETHERNET ? 0x44 : 0;
	attr->ah_attr.sl = 3;
	attr->path_mtu = IBV_MTU_512;
	attr->timeout = 13;
	attr->retry_cnt = 4;
	attr->rnr_retry = 5;
	attr->rq_psn = 0x123456;
	attr->max_rd_atomic = 3;
	attr->min_rnr_timer = 22;
	attr->sq_psn = 0x654321;
	attr->max_dest_rd_atomic = 5;
	attr->dest_qp_num = 0x777777;
}

static void compare_reported(struct vt *t, struct ts_link *link, int which, int mask)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr got;

	VT_OK(t, vb_query_qp(link->ends[which]->qp, &got, QUERY_ALL, &init));
	for (int bit = 1; bit <= IBV_QP_DEST_QPN; bit <<= 1)
		if (mask & bit && value_of(&got, bit) != value_of(&link->values[which], bit))
			VT_FAIL(t, "query_qp: %s is 0x%llx, not 0x%llx", ts_attribute_name(bit),
				(unsigned long long)value_of(&got, bit),
				(unsigned long long)value_of(&link->values[which], bit));
}

static int mask_of_connecting(enum ts_type type)
{
	int mask = 0;

	for (int at = IBV_QPS_RESET; at < IBV_QPS_RTS; at++)
		mask |= ts_required(type, (enum ibv_qp_state)at, (enum ibv_qp_state)(at + 1));
	return mask;
}

/* ibv_query_qp() reports each new value, also where nothing else shows it. */
static void every_attribute_is_reported(struct vt *t)
{
	ts_world(t);
	for (enum ts_type type = 0; type < TS_TYPES; type++) {
		struct ts_link *link = ts_link(t, type);
		const int which = end_of(type);
		const int mask = mask_of_connecting(type);

		vt_row(t, "%s", ts_type_names[type]);
		ts_link_connect(link);
		compare_reported(t, link, which, mask);
		ts_link_warm(link);
		compare_reported(t, link, which, mask);
		change_everything(link, which);
		VT_OK(t, ts_to(link->ends[which], IBV_QPS_RESET));
		ts_link_walk(link, which);
		compare_reported(t, link, which, mask);
	}
}

/* Modifies of RTS to RTS and SQD to SQD are reported, too. */
static void each_modify_is_reported(struct vt *t)
{
	ts_world(t);
	for (size_t i = 0; i < ts_transition_count; i++) {
		const struct ts_transition *cell = &ts_transitions[i];

		for (enum ts_type type = 0; type < TS_TYPES; type++) {
			struct scene s = {.t = t, .subject = end_of(type)};
			const int mask = cell->optional & QUERY_ALL & ~IBV_QP_PORT;

			if (!(cell->types & 1u << type) || cell->from < IBV_QPS_RTS || !mask)
				continue;
			vt_row(t, "%s %s->%s", ts_type_names[type], vt_qp_state_name(cell->from),
			       vt_qp_state_name(cell->to));
			s.link = ts_link(t, type);
			ts_link_connect(s.link);
			ts_link_warm(s.link);
			bring(&s, s.subject, cell->from);
			change_everything(s.link, s.subject);
			ts_link_modify(s.link, s.subject, cell->from, cell->to, mine(&s), mask);
			compare_reported(t, s.link, s.subject, mask);
		}
	}
}

/* --- the table is whole --- */

static bool has_row(enum ts_type type, int bit)
{
	for (size_t i = 0; i < TS_COUNT(effects); i++)
		if (effects[i].types & 1u << type && effects[i].bit == bit)
			return true;
	for (size_t i = 0; i < TS_COUNT(reasons); i++)
		if (reasons[i].types & 1u << type && reasons[i].bit == bit)
			return true;
	return false;
}

static bool in_table(enum ts_type type, enum ibv_qp_state from, enum ibv_qp_state to, int bit)
{
	for (size_t i = 0; i < ts_transition_count; i++) {
		const struct ts_transition *cell = &ts_transitions[i];

		if (cell->types & 1u << type && cell->from == from && cell->to == to &&
		    (cell->required | cell->optional) & bit)
			return true;
	}
	return false;
}

/* Takes a QP from RESET to a state. False if its type has no such state. */
static bool reach(struct scene *s, enum ts_type type, enum ibv_qp_state state)
{
	struct ts_link *link = s->link;

	if (state == IBV_QPS_SQE && type != TS_TYPE_UC && type != TS_TYPE_UD)
		return false;
	ts_link_reset(link);
	for (int at = IBV_QPS_RESET; at < (int)state && at < IBV_QPS_RTS; at++)
		ts_link_modify(
			link, s->subject, (enum ibv_qp_state)at, (enum ibv_qp_state)(at + 1),
			mine(s),
			ts_required(type, (enum ibv_qp_state)at, (enum ibv_qp_state)(at + 1)));
	if (type == TS_TYPE_UD && state == IBV_QPS_SQE && !link->ends[s->subject]->ah)
		return false;
	bring(s, s->subject, state);
	return true;
}

/* Finds the bits that the device takes in a step, one by one, and looks for the row of each. */
static void probe(struct scene *s, enum ts_type type, enum ibv_qp_state from, enum ibv_qp_state to)
{
	const int required = ts_required(type, from, to);

	for (int bit = IBV_QP_CUR_STATE; bit <= IBV_QP_RATE_LIMIT; bit <<= 1) {
		struct ibv_qp_attr attr = *mine(s);

		if (ts_ignored(type) & bit & ~required)
			continue;
		if (!reach(s, type, from))
			return;
		vt_row(s->t, "%s %s->%s with %s", ts_type_names[type], vt_qp_state_name(from),
		       vt_qp_state_name(to), ts_attribute_name(bit));
		attr.qp_state = to;
		attr.cur_qp_state = from;
		if (vb_modify_qp(s->link->ends[s->subject]->qp, &attr,
				 IBV_QP_STATE | required | bit))
			continue;
		VT_EXPECT(s->t, in_table(type, from, to, bit));
		VT_EXPECT(s->t, has_row(type, bit));
	}
}

static void every_attribute_has_a_row(struct vt *t)
{
	static const enum ibv_qp_state states[] = {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR,
						   IBV_QPS_RTS,	  IBV_QPS_SQD,	IBV_QPS_SQE};

	ts_world(t);
	for (size_t i = 0; i < ts_transition_count; i++)
		for (enum ts_type type = 0; type < TS_TYPES; type++)
			for (int bit = 1; bit <= IBV_QP_RATE_LIMIT; bit <<= 1)
				if (ts_transitions[i].types & 1u << type &&
				    (ts_transitions[i].required | ts_transitions[i].optional) & bit)
					VT_EXPECT(t, has_row(type, bit));
	for (enum ts_type type = 0; type < TS_TYPES; type++) {
		struct scene s = {.t = t, .subject = end_of(type)};

		s.link = ts_link(t, type);
		for (size_t i = 0; i < TS_COUNT(states); i++)
			for (size_t j = 0; j < TS_COUNT(states); j++)
				if (states[j] != IBV_QPS_RESET)
					probe(&s, type, states[i], states[j]);
	}
	vt_row(t, NULL);
}

#define VIRTUAL (VT_NEEDS_SIM | VT_NEEDS_FAULTS | VT_NEEDS_VIRTUAL_CLOCK | VT_NEEDS_MTU_1024)

static const struct vt_test tests[] = {
	{"every_attribute_has_a_row", CORE, VIRTUAL, every_attribute_has_a_row},
	{"rc_attributes_on_ethernet", CORE, VIRTUAL, rc_attributes_on_ethernet},
	{"uc_attributes_on_ethernet", CORE, VIRTUAL, uc_attributes_on_ethernet},
	{"ud_attributes_on_ethernet", CORE, VIRTUAL, ud_attributes_on_ethernet},
	{"initiator_attributes_on_ethernet", CORE, VIRTUAL, initiator_attributes_on_ethernet},
	{"target_attributes_on_ethernet", CORE, VIRTUAL, target_attributes_on_ethernet},
	{"rc_attributes_on_infiniband", CORE, VIRTUAL, rc_attributes_on_infiniband},
	{"uc_attributes_on_infiniband", CORE, VIRTUAL, uc_attributes_on_infiniband},
	{"ud_attributes_on_infiniband", CORE, VIRTUAL, ud_attributes_on_infiniband},
	{"initiator_attributes_on_infiniband", CORE, VIRTUAL, initiator_attributes_on_infiniband},
	{"target_attributes_on_infiniband", CORE, VIRTUAL, target_attributes_on_infiniband},
	{"drained_event_follows_the_last_request_for_it", "ibv_modify_qp(3): en_sqd_async_notify",
	 VIRTUAL, drained_event_follows_the_last_request_for_it},
	{"current_state_is_checked", "ibv_modify_qp(3): cur_qp_state", VIRTUAL,
	 current_state_is_checked},
	{"every_attribute_is_reported", "ibv_query_qp(3)", VIRTUAL, every_attribute_is_reported},
	{"each_modify_is_reported", "ibv_query_qp(3)", VIRTUAL, each_modify_is_reported},
	{NULL},
};

const struct vt_suite vt_suite_attributes = {"attributes", "attributes of a QP take effect", tests,
					     .simulator = true};
