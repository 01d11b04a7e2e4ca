/* SPDX-License-Identifier: MIT */
/*
 * Two of everything: ports, groups, handles, QPs, rules. What happens to one leaves the other as it
 * is, and each has its own.
 */
#include "test/conformance/sources.h"
#include "test/support/keep.h"
#include "test/support/other_world.h"
#include "test/support/quirks.h"
#include "test/support/window.h"
#include "test/support/xrc.h"

#include <fcntl.h>
#include <poll.h>
#include <verbena/fault.h>

/* --- two ports --- */

static void at_port_2(struct vt *t)
{
	struct vb_sim_config *config = vt_alloc(t, sizeof(*config));

	*config = (struct vb_sim_config){
		.device_count = 2,
		.devices = {{.name = "two0", .ports = 2}, {.name = "two1", .ports = 2}},
	};
	ts_other_world(t, config, 2);
}

static void second_port_connects(struct vt *t)
{
	at_port_2(t);
	ts_transfer(ts_connected(t, IBV_QPT_RC), IBV_WR_RDMA_READ, 5000);
	ts_transfer(ts_connected(t, IBV_QPT_UC), IBV_WR_SEND, 5000);
	ts_transfer(ts_connected(t, IBV_QPT_UD), IBV_WR_SEND, 500);
}

static void address_from_a_completion_has_its_port(struct vt *t)
{
	struct ibv_ah_attr attr;
	struct ts_pair *pair;
	struct ibv_wc wc;

	at_port_2(t);
	pair = ts_connected(t, IBV_QPT_UD);
	ts_recv(&pair->b, .wr_id = 50, .length = 1000);
	ts_send(&pair->a, .wr_id = 1, .length = 100);
	wc = ts_received(t, pair->b.recv_cq, 50, 100 + TS_GRH);
	VT_OK(t, vb_init_ah_from_wc(t->b.ctx, 2, &wc, (struct ibv_grh *)pair->b.buffer, &attr));
	VT_EQ(t, attr.port_num, 2);
	VT_EQ_MEM(t, &attr.grh.dgid, &t->a.gid, sizeof(t->a.gid));
}

/* Takes the next event of the device, which must name the port. */
static void port_event(struct vt *t, struct ibv_context *ctx, enum ibv_event_type type, int port)
{
	struct ibv_async_event event = {0};

	VT_OK(t, vb_get_async_event(ctx, &event));
	vb_ack_async_event(&event);
	VT_EVENT(t, event.event_type, type);
	VT_EQ(t, event.element.port_num, port);
}

static void events_name_their_port(struct vt *t)
{
	struct ibv_port_attr attr;

	at_port_2(t);
	VT_OK(t, vb_sim_port_state(t->a.ctx, 2, false));
	port_event(t, t->a.ctx, IBV_EVENT_PORT_ERR, 2);
	VT_OK(t, vb_sim_port_event(t->a.ctx, 1, IBV_EVENT_SM_CHANGE));
	port_event(t, t->a.ctx, IBV_EVENT_SM_CHANGE, 1);
	VT_OK(t, vb_query_port(t->a.ctx, 1, &attr, sizeof(attr)));
	VT_EQ(t, attr.state, IBV_PORT_ACTIVE);
	VT_OK(t, vb_query_port(t->a.ctx, 2, &attr, sizeof(attr)));
	VT_EQ(t, attr.state, IBV_PORT_DOWN);
}

static void gid_table_lists_both_ports(struct vt *t)
{
	struct ibv_gid_entry entries[128];
	unsigned int of_port[3] = {0};
	union ibv_gid gid;
	ssize_t count;

	at_port_2(t);
	count = vb_query_gid_table(t->a.ctx, entries, TS_COUNT(entries), 0, sizeof(entries[0]));
	VT_CHECK(t, count > 0);
	for (ssize_t i = 0; i < count; i++) {
		VT_CHECK(t, entries[i].port_num == 1 || entries[i].port_num == 2);
		of_port[entries[i].port_num]++;
		VT_OK(t, vb_query_gid(t->a.ctx, (uint8_t)entries[i].port_num,
				      (int)entries[i].gid_index, &gid));
		VT_EQ_MEM(t, &entries[i].gid, &gid, sizeof(gid));
	}
	VT_CHECK(t, of_port[1] && of_port[2]);
}

static union ibv_gid group(uint8_t number)
{
	return (union ibv_gid){.raw = {0xff, 0x0e, [15] = number}};
}

/* An AH from A to a group. */
static struct ibv_ah *to_group(struct ts_end *end, uint8_t number)
{
	struct ibv_ah_attr attr = ts_av(end->node, end->node);
	struct ibv_ah *ah;

	attr.grh.dgid = group(number);
	ah = VT_PTR(end->t, vb_create_ah(end->pd, &attr));
	ts_keep(end->t, TS_AH, ah);
	return ah;
}

/* A sends to a group; B, a member or not, has a receive posted. */
static void send_to_group(struct ts_pair *pair, uint8_t number, bool arrives)
{
	struct vt *t = pair->a.t;
	struct ibv_ah *own = pair->a.ah;

	pair->a.ah = to_group(&pair->a, number);
	ts_send(&pair->a, .wr_id = 1, .length = 100, .remote_qpn = TS_MULTICAST_QPN);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_SEND);
	pair->a.ah = own;
	if (arrives)
		ts_received(t, pair->b.recv_cq, 50, 100 + TS_GRH);
	ts_no_more(t, pair->b.recv_cq);
}

static void multicast_reaches_the_second_port(struct vt *t)
{
	union ibv_gid gid = group(1);
	struct ts_pair *pair;

	at_port_2(t);
	pair = ts_connected(t, IBV_QPT_UD);
	ts_recv(&pair->b, .wr_id = 50, .length = 1000);
	VT_OK(t, vb_attach_mcast(pair->b.qp, &gid, 0));
	send_to_group(pair, 1, true);
	VT_OK(t, vb_detach_mcast(pair->b.qp, &gid, 0));
}

/* The link-local GID of a port is made from its MAC: RFC 4291, appendix A. */
static void mac_of(const union ibv_gid *link_local, uint8_t mac[6])
{
	const uint8_t *raw = link_local->raw;

	memcpy(mac, (uint8_t[6]){raw[8] ^ 2, raw[9], raw[10], raw[13], raw[14], raw[15]}, 6);
}

static void each_port_has_its_mac(struct vt *t)
{
	struct ibv_ah_attr attr;
	uint8_t mac[6], want[6];

	at_port_2(t);
	for (uint8_t port = 1; port <= 2; port++) {
		attr = ts_av(&t->a, &t->b);
		VT_OK(t, vb_query_gid(t->b.ctx, port, 0, &attr.grh.dgid));
		mac_of(&attr.grh.dgid, want);
		VT_EQ(t, vb_resolve_eth_l2_from_gid(t->a.ctx, &attr, mac, NULL), 0);
		VT_EQ_MEM(t, mac, want, sizeof(mac));
	}
	attr.grh.dgid.raw[12] ^= 1;
	VT_EQ(t, vb_resolve_eth_l2_from_gid(t->a.ctx, &attr, mac, NULL), -EHOSTUNREACH);
	/* RFC 2464: the MAC of a group. */
	attr.grh.dgid = (union ibv_gid){.raw = {0xff, 0x0e, [12] = 1, 2, 3, 4}};
	VT_EQ(t, vb_resolve_eth_l2_from_gid(t->a.ctx, &attr, mac, NULL), 0);
	VT_EQ_MEM(t, mac, ((uint8_t[]){0x33, 0x33, 1, 2, 3, 4}), sizeof(mac));
}

static void pkeys_of_the_ports_are_separate(struct vt *t)
{
	struct ts_pair *pair;
	__be16 pkey;

	at_port_2(t);
	pair = ts_connected(t, IBV_QPT_RC);
	VT_OK(t, vb_sim_set_pkey(t->a.ctx, 1, 0, 0x8123));
	ts_transfer(pair, IBV_WR_SEND, 100);
	VT_OK(t, vb_query_pkey(t->a.ctx, 2, 0, &pkey));
	VT_EQ(t, be16toh(pkey), 0xffff);
}

/* --- two QPs --- */

static void pkey_change_reaches_every_qp(struct vt *t)
{
	enum { QPS = 3 };
	struct ts_pair *pairs[QPS];

	for (size_t i = 0; i < QPS; i++) {
		pairs[i] = ts_connected(t, IBV_QPT_RC);
		ts_transfer(pairs[i], IBV_WR_SEND, 100);
	}
	VT_OK(t, vb_sim_set_pkey(t->a.ctx, t->a.port, 0, 0x8123));
	VT_OK(t, vb_sim_set_pkey(t->b.ctx, t->b.port, 0, 0x8123));
	for (size_t i = 0; i < QPS; i++) {
		vt_row(t, "QP %zu", i + 1);
		memset(pairs[i]->b.buffer, TS_BLANK, 1000);
		ts_transfer(pairs[i], IBV_WR_SEND, 100);
		memset(pairs[i]->b.buffer, TS_BLANK, 1000);
		ts_transfer(pairs[i], IBV_WR_RDMA_READ, 100);
	}
}

static void quirk_reaches_qps_that_exist(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);
	struct ibv_wc wc;

	VT_OK(t, vb_sim_set_quirk(t->b.ctx, "grh_flag_on_connections", true));
	for (int on = 1; on >= 0; on--) {
		vt_row(t, "the quirk is %s", on ? "on" : "off");
		VT_OK(t, vb_sim_set_quirk(t->b.ctx, "grh_flag_on_connections", on));
		ts_recv(&pair->b, .wr_id = 50, .length = 8);
		ts_send(&pair->a, .wr_id = 1, .length = 8);
		ts_done(t, pair->a.send_cq, 1, IBV_WC_SEND);
		wc = ts_received(t, pair->b.recv_cq, 50, 8);
		VT_EQ(t, !!(wc.wc_flags & IBV_WC_GRH), on);
	}
}

/* --- two groups --- */

static void detach_leaves_the_other_group(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_UD);
	union ibv_gid first = group(1), second = group(2);

	ts_recv(&pair->b, .wr_id = 50, .length = 1000);
	VT_OK(t, vb_attach_mcast(pair->b.qp, &first, 0));
	VT_OK(t, vb_attach_mcast(pair->b.qp, &second, 0));
	VT_OK(t, vb_detach_mcast(pair->b.qp, &second, 0));
	ts_use_ipv6(t);
	send_to_group(pair, 2, false);
	send_to_group(pair, 1, true);
	VT_OK(t, vb_detach_mcast(pair->b.qp, &first, 0));
}

/* --- two handles --- */

static struct ibv_qp *open_target(struct ts_xrc *xrc)
{
	struct ibv_qp_open_attr attr = {
		.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE,
		.qp_num = xrc->pair->b.qp->qp_num,
		.xrcd = xrc->xrcd,
		.qp_type = IBV_QPT_XRC_RECV,
	};
	struct ibv_qp *qp = VT_PTR(xrc->t, vb_open_qp(xrc->t->b.ctx, &attr));

	ts_keep(xrc->t, TS_QP, qp);
	return qp;
}

/* A writes through a wrong key, which ends the target with an event. */
static void end_target(struct ts_xrc *xrc)
{
	TS_XRC_POST(xrc, xrc->srqn[0], IBV_WR_RDMA_WRITE, .wr_id = 1, .length = 8,
		    .rkey = ts_wrong_key(xrc->shared[0]->mr->rkey));
	ts_failed(xrc->t, xrc->pair->a.send_cq, 1, IBV_WC_REM_ACCESS_ERR);
}

static void each_handle_of_a_shared_qp_gets_its_events(struct vt *t)
{
	struct ts_xrc *xrc = ts_xrc(t);
	struct ibv_qp *handles[2] = {xrc->pair->b.qp, open_target(xrc)};
	struct ibv_async_event event;

	end_target(xrc);
	for (int i = 0; i < 2; i++) {
		VT_OK(t, vb_get_async_event(t->b.ctx, &event));
		vb_ack_async_event(&event);
		VT_EVENT(t, event.event_type, IBV_EVENT_QP_ACCESS_ERR);
		VT_CHECK(t, event.element.qp == handles[0] || event.element.qp == handles[1]);
		handles[event.element.qp == handles[1]] = NULL;
	}
	VT_CHECK(t, !handles[0] && !handles[1]);
	ts_no_event(t, &t->b);
}

static void events_of_a_shared_qp_go_to_the_handle_that_is_left(struct vt *t)
{
	struct ts_xrc *xrc = ts_xrc(t);
	struct ibv_qp *opened = open_target(xrc);

	ts_destroy_qp(&xrc->pair->b);
	end_target(xrc);
	ts_event(t, &t->b, IBV_EVENT_QP_ACCESS_ERR, opened);
	ts_no_event(t, &t->b);
}

/* --- two windows' bindings --- */

static void bindings_that_are_posted_together_have_keys_of_their_own(struct vt *t)
{
	struct ts_pair *pair = ts_window_pair(t);
	struct ibv_mw *mw;
	uint32_t first;

	ts_need_windows(t, IBV_MW_TYPE_1);
	mw = ts_mw(&pair->b, IBV_MW_TYPE_1);
	VT_OK(t, ts_bind(&pair->b, mw, &(struct ts_bind){.wr_id = 1, .length = 64}));
	first = mw->rkey;
	VT_OK(t,
	      ts_bind(&pair->b, mw, &(struct ts_bind){.wr_id = 2, .offset = 1024, .length = 64}));
	VT_CHECK(t, mw->rkey != first);
	ts_done(t, pair->b.send_cq, 1, IBV_WC_BIND_MW);
	ts_done(t, pair->b.send_cq, 2, IBV_WC_BIND_MW);
	ts_reaches(pair, mw->rkey, 1024);
	ts_refused(pair, first, 0);
}

static void rebound_window_of_type_2_belongs_to_its_last_qp(struct vt *t)
{
	struct ts_pair *pair = ts_window_pair(t), *other;
	struct ibv_mw *mw;

	ts_need_windows(t, IBV_MW_TYPE_2);
	other = ts_pair_in_pd(t, &pair->b.options, &pair->b);
	mw = ts_mw(&pair->b, IBV_MW_TYPE_2);
	ts_bound(&pair->b, mw, .wr_id = 1);
	ts_reaches(pair, mw->rkey, 0);
	VT_OK(t, ts_local_inv(&pair->b, 2, mw->rkey));
	ts_done(t, pair->b.send_cq, 2, IBV_WC_LOCAL_INV);
	ts_bound(&other->b, mw, .wr_id = 3);
	ts_reaches(other, mw->rkey, 0);
	ts_refused(pair, mw->rkey, 0);
}

/* --- two READs of a null region --- */

static void null_region_forgets_what_is_written(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);
	struct ibv_mr *null = vb_alloc_null_mr(pair->a.pd);

	if (!null)
		VT_SKIP(t, "the device has no null regions");
	ts_keep(t, TS_MR, null);
	ts_fill(pair->b.buffer, 100, 7);
	ts_read(&pair->a, .wr_id = 1, .length = 100, .lkey = null->lkey, .address = 4096);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_RDMA_READ);
	ts_write(&pair->a, .wr_id = 2, .length = 100, .lkey = null->lkey, .address = 4096,
		 .remote_offset = 1000);
	ts_done(t, pair->a.send_cq, 2, IBV_WC_RDMA_WRITE);
	for (int i = 0; i < 100; i++)
		VT_EQ(t, pair->b.buffer[1000 + i], 0);
}

/* --- two CQs, two events --- */

static bool is_readable(int fd)
{
	struct pollfd readable = {.fd = fd, .events = POLLIN};

	return poll(&readable, 1, 0) == 1;
}

/* A QP in ERR, whose receives are flushed as soon as they are posted. */
static struct ibv_qp *flushing(struct vt *t, struct ibv_cq *cq)
{
	struct ibv_qp *qp = ts_qp(t, ts_pd(t, &t->a), cq, IBV_QPT_UD);
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
				   .pkey_index = t->a.pkey_index,
				   .port_num = t->a.port,
				   .qkey = TS_QKEY};

	VT_OK(t, vb_modify_qp(qp, &attr,
			      IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_QKEY));
	attr.qp_state = IBV_QPS_ERR;
	VT_OK(t, vb_modify_qp(qp, &attr, IBV_QP_STATE));
	return qp;
}

/* Lets a flushing QP's CQ raise one event. */
static void raise_event(struct vt *t, struct ibv_qp *qp)
{
	struct ibv_recv_wr wr = {0}, *bad;

	VT_OK(t, ibv_req_notify_cq(qp->recv_cq, 0));
	VT_OK(t, ibv_post_recv(qp, &wr, &bad));
	ts_settle(t);
}

static void events_that_wait_together_name_their_cqs(struct vt *t)
{
	static const int order[] = {0, 1, 0, 0, 1, 1};
	struct ibv_comp_channel *channel = ts_channel(t, &t->a);
	struct ibv_cq *got, *cqs[2];
	struct ibv_qp *qps[2];

	ts_quirks(t, "", NULL);
	for (int i = 0; i < 2; i++) {
		cqs[i] = ts_cq_on(t, &t->a, 16, channel);
		qps[i] = flushing(t, cqs[i]);
	}
	for (size_t i = 0; i < TS_COUNT(order); i++)
		raise_event(t, qps[order[i]]);
	for (size_t i = 0; i < TS_COUNT(order); i++) {
		vt_row(t, "event %zu", i + 1);
		VT_CHECK(t, ts_cq_event(t, channel, &got));
		VT_CHECK(t, got == cqs[order[i]]);
	}
	VT_CHECK(t, !ts_cq_event(t, channel, &got));
}

static void destroyed_cq_takes_all_its_events(struct vt *t)
{
	struct ibv_comp_channel *channel = ts_channel(t, &t->a);
	struct ibv_cq *got, *gone = ts_cq_on(t, &t->a, 16, channel);
	struct ibv_cq *kept = ts_cq_on(t, &t->a, 16, channel);
	struct ibv_qp *first = flushing(t, gone), *second = flushing(t, kept);

	ts_quirks(t, "", NULL);
	raise_event(t, first);
	raise_event(t, first);
	raise_event(t, second);
	raise_event(t, first);
	VT_OK(t, vb_destroy_qp(first));
	ts_gone(t, first);
	VT_OK(t, vb_destroy_cq(gone));
	ts_gone(t, gone);
	VT_CHECK(t, is_readable(channel->fd));
	VT_CHECK(t, ts_cq_event(t, channel, &got));
	VT_CHECK(t, got == kept);
	VT_CHECK(t, !is_readable(channel->fd));
	VT_CHECK(t, !ts_cq_event(t, channel, &got));
}

/* --- two rules --- */

static unsigned int lose_all(struct vt *t, uint8_t opcode)
{
	const struct vb_fault_rule rule = {
		.action = VB_FAULT_DROP, .opcode_given = true, .opcode = opcode, .count = 1};
	unsigned int id;

	VT_OK(t, vb_fault_add(ts_sim(t), &rule, &id));
	return id;
}

static void fault_rules_keep_their_numbers(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);
	unsigned int first = lose_all(t, TS_WRITE_ONLY);
	unsigned int second = lose_all(t, TS_SEND_ONLY), third;

	ts_transfer(pair, IBV_WR_RDMA_WRITE, 100);
	VT_EQ(t, vb_fault_hits(ts_sim(t), first), 1);
	VT_EQ(t, vb_fault_hits(ts_sim(t), second), 0);
	VT_OK(t, vb_fault_remove(ts_sim(t), first));
	VT_EQ(t, vb_fault_hits(ts_sim(t), second), 0);
	third = lose_all(t, TS_READ_REQUEST);
	VT_CHECK(t, third != second && third != first);
	ts_transfer(pair, IBV_WR_SEND, 100);
	VT_EQ(t, vb_fault_hits(ts_sim(t), second), 1);
	VT_EQ(t, vb_fault_hits(ts_sim(t), third), 0);
	vb_fault_clear(ts_sim(t));
}

/* --- two directions --- */

static void directions_of_a_link_do_not_wait_for_one_another(struct vt *t)
{
	struct vb_sim_config *config = vt_alloc(t, sizeof(*config));
	uint64_t alone_ns, both_ns;
	struct ts_pair *pair;

	*config = (struct vb_sim_config){
		.device_count = 2,
		.devices = {{.name = "two0"}, {.name = "two1"}},
		.link_count = 1,
		.links = {{.a = "two0", .b = "two1", .bits_per_second = 1000000}},
	};
	ts_other_world(t, config, 1);
	pair = ts_connected(t, IBV_QPT_UD);
	ts_recv(&pair->b, .wr_id = 50, .length = 2000);
	ts_recv(&pair->b, .wr_id = 51, .length = 2000);
	ts_recv(&pair->a, .wr_id = 60, .length = 2000);
	alone_ns = ts_now_ns(t);
	ts_send(&pair->a, .wr_id = 1, .length = 1000);
	ts_received(t, pair->b.recv_cq, 50, 1000 + TS_GRH);
	alone_ns = ts_now_ns(t) - alone_ns;
	VT_CHECK(t, alone_ns > 8000000);
	both_ns = ts_now_ns(t);
	ts_send(&pair->a, .wr_id = 2, .length = 1000);
	ts_send(&pair->b, .wr_id = 3, .length = 1000);
	ts_received(t, pair->b.recv_cq, 51, 1000 + TS_GRH);
	ts_received(t, pair->a.recv_cq, 60, 1000 + TS_GRH);
	VT_EQ(t, ts_now_ns(t) - both_ns, alone_ns);
}

#define SIM (VT_NEEDS_SIM | VT_NEEDS_VIRTUAL_CLOCK)

static const struct vt_test tests[] = {
	{"second_port_connects", "ibv_modify_qp(3): port_num", SIM, second_port_connects},
	{"address_from_a_completion_has_its_port", "ibv_create_ah_from_wc(3): port_num", SIM,
	 address_from_a_completion_has_its_port},
	{"events_name_their_port", "ibv_get_async_event(3): port_num", SIM, events_name_their_port},
	{"gid_table_lists_both_ports", "ibv_query_gid_table(3)", SIM, gid_table_lists_both_ports},
	{"multicast_reaches_the_second_port", "ibv_attach_mcast(3)", SIM,
	 multicast_reaches_the_second_port},
	{"each_port_has_its_mac", SRC_RDMA_CORE "libibverbs/verbs.c, ibv_resolve_eth_l2_from_gid",
	 SIM, each_port_has_its_mac},
	{"pkeys_of_the_ports_are_separate", "ibv_query_pkey(3): port_num", SIM,
	 pkeys_of_the_ports_are_separate},
	{"pkey_change_reaches_every_qp", "unsourced", SIM | VT_NEEDS_TWO_DEVICES,
	 pkey_change_reaches_every_qp},
	{"quirk_reaches_qps_that_exist", "unsourced", SIM, quirk_reaches_qps_that_exist},
	{"detach_leaves_the_other_group", "ibv_attach_mcast(3)",
	 SIM | VT_NEEDS_ETHERNET | VT_NEEDS_TWO_DEVICES, detach_leaves_the_other_group},
	{"each_handle_of_a_shared_qp_gets_its_events",
	 SRC_CORE "verbs.c, __ib_shared_qp_event_handler", SIM,
	 each_handle_of_a_shared_qp_gets_its_events},
	{"events_of_a_shared_qp_go_to_the_handle_that_is_left",
	 SRC_CORE "verbs.c, __ib_shared_qp_event_handler", SIM,
	 events_of_a_shared_qp_go_to_the_handle_that_is_left},
	{"bindings_that_are_posted_together_have_keys_of_their_own", "ibv_bind_mw(3)", 0,
	 bindings_that_are_posted_together_have_keys_of_their_own},
	{"rebound_window_of_type_2_belongs_to_its_last_qp",
	 "ibv_alloc_mw(3), ibv_post_send(3): IBV_WR_BIND_MW", 0,
	 rebound_window_of_type_2_belongs_to_its_last_qp},
	{"null_region_forgets_what_is_written", "ibv_alloc_null_mr(3)", 0,
	 null_region_forgets_what_is_written},
	{"events_that_wait_together_name_their_cqs", "ibv_get_cq_event(3)", 0,
	 events_that_wait_together_name_their_cqs},
	{"destroyed_cq_takes_all_its_events", SRC_CORE "uverbs_main.c, ib_uverbs_release_ucq", 0,
	 destroyed_cq_takes_all_its_events},
	{"fault_rules_keep_their_numbers", "unsourced", SIM | VT_NEEDS_FAULTS,
	 fault_rules_keep_their_numbers},
	{"directions_of_a_link_do_not_wait_for_one_another", "unsourced", SIM,
	 directions_of_a_link_do_not_wait_for_one_another},
	{NULL},
};

const struct vt_suite vt_suite_two = {"two", "two ports, handles, groups, events", tests,
				      .simulator = true};
