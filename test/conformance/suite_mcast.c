/* SPDX-License-Identifier: MIT */
/*
 * Multicast groups of datagram queue pairs.
 */
#include "test/conformance/sources.h"
#include "test/support/own_world.h"
#include "test/support/support.h"

#define MEMBERS 4
#define MLID	0xc001

static void need_groups(struct vt *t)
{
	if (!t->a.device_attr.max_mcast_grp || !t->b.device_attr.max_mcast_grp)
		VT_SKIP(t, "the device has no multicast groups");
}

/* Returns group number `group` in the address family of the node's GID. */
static union ibv_gid group(struct vt *t, uint8_t number)
{
	union ibv_gid gid = {.raw = {0xff, 0x0e, [15] = number}};

	if (t->a.port_attr.link_layer == IBV_LINK_LAYER_ETHERNET && ts_gid_is_ipv4(&t->a.gid)) {
		memset(gid.raw, 0, 10);
		memset(gid.raw + 10, 0xff, 2);
		gid.raw[12] = 239;
		gid.raw[13] = 1;
		gid.raw[14] = 2;
	}
	return gid;
}

static uint16_t mlid(struct vt *t)
{
	return t->a.port_attr.link_layer == IBV_LINK_LAYER_ETHERNET ? 0 : MLID;
}

static struct ts_end *end_on(struct vt *t, struct vt_node *node)
{
	const struct ts_options options = ts_defaults(t, IBV_QPT_UD);
	struct ts_end *end = ts_end(t, node, &options);

	ts_connect(end);
	memset(end->buffer, TS_BLANK, 1000);
	return end;
}

static void leave(void *arg)
{
	struct ts_end *end = arg;
	unsigned int i;

	for (i = 1; end->qp && i <= 2; i++) {
		union ibv_gid gid = group(end->t, (uint8_t)i);

		vb_detach_mcast(end->qp, &gid, mlid(end->t));
	}
}

static void join(struct ts_end *end, uint8_t number)
{
	union ibv_gid gid = group(end->t, number);

	VT_OK(end->t, vb_attach_mcast(end->qp, &gid, mlid(end->t)));
	vt_defer(end->t, leave, end);
}

/* Sends 100 bytes of A's pattern to a group. */
static void send_to(struct ts_end *from, uint8_t number, uint32_t qkey)
{
	struct vt *t = from->t;
	struct ibv_ah_attr attr = ts_av(from->node, from->node);
	struct ibv_ah *own = from->ah;

	attr.is_global = 1;
	attr.grh.dgid = group(t, number);
	attr.grh.sgid_index = (uint8_t)from->node->gid_index;
	attr.grh.hop_limit = 64;
	attr.dlid = mlid(t);
	from->ah = VT_PTR(t, vb_create_ah(from->pd, &attr));
	ts_fill(from->buffer + 2000, 100, 5);
	ts_send(from, .wr_id = 1, .offset = 2000, .length = 100, .remote_qpn = TS_MULTICAST_QPN,
		.remote_qkey = qkey);
	ts_done(t, from->send_cq, 1, IBV_WC_SEND);
	VT_OK(t, vb_destroy_ah(from->ah));
	from->ah = own;
}

static struct ibv_wc got(struct ts_end *end, uint64_t wr_id)
{
	struct ibv_wc wc;

	if (end->node == &end->t->b)
		vt_need(end->t, VT_NEEDS_GROUPS);
	wc = ts_received(end->t, end->recv_cq, wr_id, 100 + TS_GRH);
	ts_verify(end->t, end->buffer + TS_GRH, 100, 5);
	return wc;
}

static void reaches_every_member(struct vt *t)
{
	struct ts_end *from, *members[MEMBERS];
	int i;

	need_groups(t);
	from = end_on(t, &t->a);
	for (i = 0; i < MEMBERS; i++) {
		members[i] = end_on(t, i % 2 ? &t->a : &t->b);
		join(members[i], 1);
		ts_recv(members[i], .wr_id = 50, .length = 1000);
	}
	send_to(from, 1, TS_QKEY);
	for (i = 0; i < MEMBERS; i++) {
		vt_row(t, "member %d", i);
		VT_EQ(t, got(members[i], 50).src_qp, from->qp->qp_num);
	}
}

/* A port takes a packet another way while nothing traces it. */
static void reaches_every_member_without_a_trace(struct vt *t)
{
	ts_untraced(t);
	reaches_every_member(t);
}

static void reaches_members_over_ipv6(struct vt *t)
{
	ts_use_ipv6(t);
	reaches_every_member(t);
}

static void reaches_only_members(struct vt *t)
{
	struct ts_end *from, *member, *other, *none;

	need_groups(t);
	from = end_on(t, &t->a);
	member = end_on(t, &t->b);
	other = end_on(t, &t->b);
	none = end_on(t, &t->b);
	join(member, 1);
	join(other, 2);
	ts_recv(member, .wr_id = 50, .length = 1000);
	ts_recv(other, .wr_id = 51, .length = 1000);
	ts_recv(none, .wr_id = 52, .length = 1000);
	send_to(from, 1, TS_QKEY);
	got(member, 50);
	ts_no_more(t, other->recv_cq);
	ts_no_more(t, none->recv_cq);
	send_to(from, 2, TS_QKEY);
	got(other, 51);
}

static void datagram_to_an_empty_group_is_sent(struct vt *t)
{
	need_groups(t);
	send_to(end_on(t, &t->a), 1, TS_QKEY);
}

static void attached_twice_receives_once(struct vt *t)
{
	struct ts_end *from, *member;

	need_groups(t);
	from = end_on(t, &t->a);
	member = end_on(t, &t->b);
	join(member, 1);
	join(member, 1);
	ts_recv(member, .wr_id = 50, .length = 1000);
	ts_recv(member, .wr_id = 51, .length = 1000);
	send_to(from, 1, TS_QKEY);
	got(member, 50);
	ts_no_more(t, member->recv_cq);
}

static void detached_receives_no_more(struct vt *t)
{
	struct ts_end *from, *member;
	union ibv_gid gid = group(t, 1);

	need_groups(t);
	from = end_on(t, &t->a);
	member = end_on(t, &t->b);
	join(member, 1);
	ts_recv(member, .wr_id = 50, .length = 1000);
	VT_OK(t, vb_detach_mcast(member->qp, &gid, mlid(t)));
	send_to(from, 1, TS_QKEY);
	ts_no_more(t, member->recv_cq);
	join(member, 1);
	send_to(from, 1, TS_QKEY);
	got(member, 50);
}

static void detach_of_a_stranger_is_einval(struct vt *t)
{
	union ibv_gid gid = group(t, 1);
	struct ts_end *end;

	need_groups(t);
	end = end_on(t, &t->a);
	VT_ERRNO(t, vb_detach_mcast(end->qp, &gid, mlid(t)), EINVAL);
}

static void wrong_qkey_is_dropped(struct vt *t)
{
	struct ts_end *from, *member;

	need_groups(t);
	from = end_on(t, &t->a);
	member = end_on(t, &t->b);
	join(member, 1);
	ts_recv(member, .wr_id = 50, .length = 1000);
	send_to(from, 1, TS_QKEY + 1);
	ts_no_more(t, member->recv_cq);
	send_to(from, 1, TS_QKEY);
	got(member, 50);
}

static void member_without_a_receive_does_not_harm_the_others(struct vt *t)
{
	struct ts_end *from, *dry, *member;

	need_groups(t);
	from = end_on(t, &t->a);
	dry = end_on(t, &t->b);
	member = end_on(t, &t->b);
	join(dry, 1);
	join(member, 1);
	ts_recv(member, .wr_id = 50, .length = 1000);
	send_to(from, 1, TS_QKEY);
	got(member, 50);
	ts_no_more(t, dry->recv_cq);
	ts_state(dry, IBV_QPS_RTS);
}

static void sender_that_is_a_member_receives_too(struct vt *t)
{
	struct ts_end *end;

	need_groups(t);
	end = end_on(t, &t->a);
	join(end, 1);
	ts_recv(end, .wr_id = 50, .length = 1000);
	send_to(end, 1, TS_QKEY);
	VT_EQ(t, got(end, 50).src_qp, end->qp->qp_num);
}

/*
 * A sender that blocks its own datagrams receives those of other QPs, even of a QP with the same
 * QPN.
 */
static void sender_that_blocks_loopback_receives_from_others(struct vt *t)
{
	const struct ibv_qp_init_attr_ex init = {
		.comp_mask = IBV_QP_INIT_ATTR_CREATE_FLAGS,
		.create_flags = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB,
	};
	struct ts_end *end, *near, *far;

	need_groups(t);
	end = end_on(t, &t->a);
	near = end_on(t, &t->a);
	far = end_on(t, &t->b);
	ts_remake_qp(end, &init);
	ts_connect(end);
	while (far->qp->qp_num < end->qp->qp_num)
		far = end_on(t, &t->b);
	join(end, 1);
	join(near, 1);
	ts_recv(end, .wr_id = 50, .length = 1000);
	ts_recv(end, .wr_id = 51, .length = 1000);
	ts_recv(near, .wr_id = 52, .length = 1000);
	send_to(end, 1, TS_QKEY);
	got(near, 52);
	ts_no_more(t, end->recv_cq);
	send_to(near, 1, TS_QKEY);
	VT_EQ(t, got(end, 50).src_qp, near->qp->qp_num);
	send_to(far, 1, TS_QKEY);
	VT_EQ(t, got(end, 51).src_qp, far->qp->qp_num);
}

static void only_ud_qps_can_block_loopback(struct vt *t)
{
	struct ibv_qp *qp;
	static const enum ibv_qp_type types[] = {IBV_QPT_RC, IBV_QPT_UC};
	struct ibv_cq *cq = ts_cq(t, &t->a, 4);
	struct ibv_qp_init_attr_ex init = {
		.send_cq = cq,
		.recv_cq = cq,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS,
		.pd = ts_pd(t, &t->a),
		.create_flags = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB,
	};

	init.cap = (struct ibv_qp_cap){1, 1, 1, 1, 0};
	init.qp_type = IBV_QPT_UD;
	qp = vb_create_qp_ex(t->a.ctx, &init);
	if (!qp)
		VT_SKIP(t, "the device does not support IBV_QP_CREATE_BLOCK_SELF_MCAST_LB");
	VT_OK(t, vb_destroy_qp(qp));
	for (int i = 0; i < 2; i++) {
		init.qp_type = types[i];
		VT_NULL_ERRNO(t, vb_create_qp_ex(t->a.ctx, &init), EINVAL);
	}
}

static void grh_names_the_group(struct vt *t)
{
	union ibv_gid gid = group(t, 1);
	struct ts_end *from, *member;
	struct ibv_wc wc;

	need_groups(t);
	from = end_on(t, &t->a);
	member = end_on(t, &t->b);
	join(member, 1);
	ts_recv(member, .wr_id = 50, .length = 1000);
	send_to(from, 1, TS_QKEY);
	wc = got(member, 50);
	VT_CHECK(t, wc.wc_flags & IBV_WC_GRH);
	if (ts_gid_is_ipv4(&gid))
		VT_EQ_MEM(t, member->buffer + 36, gid.raw + 12, 4);
	else
		VT_EQ_MEM(t, member->buffer + 24, gid.raw, 16);
}

static void grh_names_the_group_over_ipv6(struct vt *t)
{
	ts_use_ipv6(t);
	grh_names_the_group(t);
}

static void member_still_has_its_own_address(struct vt *t)
{
	struct ts_pair *pair;

	need_groups(t);
	pair = ts_connected(t, IBV_QPT_UD);
	join(&pair->b, 1);
	ts_transfer(pair, IBV_WR_SEND, 500);
}

static void connected_qps_are_refused(struct vt *t)
{
	static const enum ibv_qp_type types[] = {IBV_QPT_RC, IBV_QPT_UC};
	union ibv_gid gid = group(t, 1);
	struct ts_pair *pair;
	int i;

	need_groups(t);
	for (i = 0; i < 2; i++) {
		vt_row(t, "type %d", types[i]);
		pair = ts_connected(t, types[i]);
		VT_EXPECT_ERRNO(t, vb_attach_mcast(pair->b.qp, &gid, mlid(t)), EINVAL);
		VT_EXPECT_ERRNO(t, vb_detach_mcast(pair->b.qp, &gid, mlid(t)), EINVAL);
	}
}

static void unicast_gid_is_refused(struct vt *t)
{
	struct ts_end *end;

	need_groups(t);
	end = end_on(t, &t->b);
	VT_ERRNO(t, vb_attach_mcast(end->qp, &t->b.gid, mlid(t)), EINVAL);
}

static void attached_qp_is_ebusy(struct vt *t)
{
	union ibv_gid gid = group(t, 1);
	struct ts_end *end;

	need_groups(t);
	end = end_on(t, &t->b);
	join(end, 1);
	VT_ERRNO(t, vb_destroy_qp(end->qp), EBUSY);
	ts_state(end, IBV_QPS_RTS);
	VT_OK(t, vb_detach_mcast(end->qp, &gid, mlid(t)));
	ts_destroy_qp(end);
}

#define MAN  "ibv_attach_mcast(3)"
#define CORE SRC_CORE "verbs.c, ib_attach_mcast"

static const struct vt_test tests[] = {
	{"reaches_every_member", MAN, 0, reaches_every_member},
	{"reaches_every_member_without_a_trace", MAN, VT_NEEDS_SIM | VT_NEEDS_TWO_DEVICES,
	 reaches_every_member_without_a_trace},
	{"reaches_members_over_ipv6", MAN, VT_NEEDS_ETHERNET, reaches_members_over_ipv6},
	{"grh_names_the_group_over_ipv6", "ibv_post_recv(3), Notes", VT_NEEDS_ETHERNET,
	 grh_names_the_group_over_ipv6},
	{"reaches_only_members", MAN, 0, reaches_only_members},
	{"datagram_to_an_empty_group_is_sent", "unsourced", 0, datagram_to_an_empty_group_is_sent},
	{"attached_twice_receives_once", MAN ", Notes: a single copy", 0,
	 attached_twice_receives_once},
	{"detached_receives_no_more", MAN, 0, detached_receives_no_more},
	{"detach_of_a_stranger_is_einval", SRC_RXE "rxe_mcast.c, rxe_detach_mcast", 0,
	 detach_of_a_stranger_is_einval},
	{"wrong_qkey_is_dropped", SRC_RXE "rxe_recv.c, rxe_rcv_mcast_pkt", 0,
	 wrong_qkey_is_dropped},
	{"member_without_a_receive_does_not_harm_the_others",
	 SRC_RXE "rxe_recv.c, rxe_rcv_mcast_pkt; " SRC_RXE
		 "rxe_resp.c, rxe_responder: ERR_RNR on UD",
	 0, member_without_a_receive_does_not_harm_the_others},
	{"sender_that_is_a_member_receives_too",
	 "ibv_create_qp_ex(3): IBV_QP_CREATE_BLOCK_SELF_MCAST_LB prevents it", 0,
	 sender_that_is_a_member_receives_too},
	{"sender_that_blocks_loopback_receives_from_others",
	 "ibv_create_qp_ex(3): IBV_QP_CREATE_BLOCK_SELF_MCAST_LB", VT_NEEDS_SIM,
	 sender_that_blocks_loopback_receives_from_others},
	{"only_ud_qps_can_block_loopback", "unsourced", VT_NEEDS_SIM,
	 only_ud_qps_can_block_loopback},
	{"grh_names_the_group", "ibv_post_recv(3), Notes", 0, grh_names_the_group},
	{"member_still_has_its_own_address", "unsourced", 0, member_still_has_its_own_address},
	{"connected_qps_are_refused", MAN ", Notes: only IBV_QPT_UD; " CORE, 0,
	 connected_qps_are_refused},
	{"unicast_gid_is_refused", CORE, VT_NEEDS_ETHERNET, unicast_gid_is_refused},
	{"attached_qp_is_ebusy",
	 "ibv_create_qp(3), Notes; EBUSY: " SRC_CORE "uverbs_std_types.c, uverbs_free_qp", 0,
	 attached_qp_is_ebusy},
	{NULL},
};

const struct vt_suite vt_suite_mcast = {"mcast", "multicast groups", tests};
