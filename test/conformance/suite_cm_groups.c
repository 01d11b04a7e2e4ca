/* SPDX-License-Identifier: MIT */
/*
 * Connections: multicast groups of identifiers.
 */
#include "test/conformance/sources.h"
#include "test/support/keep.h"
#include "test/support/manager.h"

#include <endian.h>

#define SRC_CMA	    SRC_CORE "cma.c, "
#define SRC_LIBRARY SRC_RDMA_CORE "librdmacm/cma.c, "

enum { BYTES = 64, ROOM = TS_GRH + BYTES };

/* --- members --- */

struct member {
	struct vt *t;
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	uint8_t *buffer;
	struct ibv_mr *mr;
};

static struct sockaddr_in group(uint32_t address)
{
	return (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htobe32(address)};
}

/* An identifier at the node's address, without a QP. */
static struct member *bound(struct vt *t, const struct vt_node *node, enum rdma_port_space ps)
{
	struct member *member = vt_alloc(t, sizeof(*member));
	struct tc_address here = tc_address(node, 0);

	*member = (struct member){.t = t, .channel = tc_channel(t)};
	member->id = tc_id(t, member->channel, ps);
	VT_OK(t, vb_cm_bind_addr(member->id, tc_sockaddr(&here)));
	return member;
}

static struct member *with_qp(struct vt *t, const struct vt_node *node)
{
	struct member *member = bound(t, node, RDMA_PS_UDP);

	tc_qp(t, member->id);
	member->buffer = ts_memory(t, ROOM);
	member->mr = ts_mr(t, member->id->pd, member->buffer, ROOM, IBV_ACCESS_LOCAL_WRITE);
	return member;
}

/* Takes the event of a join. */
static struct rdma_ud_param joined(struct member *member, const void *context)
{
	struct rdma_ud_param param =
		tc_expect(member->t, member->channel, member->id, RDMA_CM_EVENT_MULTICAST_JOIN)
			.event.param.ud;

	VT_CHECK(member->t, param.private_data == context);
	VT_EQ(member->t, param.qp_num, TS_MULTICAST_QPN);
	VT_EQ(member->t, param.qkey, RDMA_UDP_QKEY);
	VT_EQ(member->t, param.ah_attr.port_num, member->id->port_num);
	VT_EQ(member->t, param.ah_attr.is_global, 1);
	return param;
}

static int ask(struct member *member, struct sockaddr *address, uint32_t mask, uint32_t flags)
{
	struct rdma_cm_join_mc_attr_ex attr = {
		.comp_mask = mask, .join_flags = flags, .addr = address};

	return vb_cm_join_multicast_ex(member->id, &attr, member);
}

static struct rdma_ud_param join(struct member *member, struct sockaddr_in address, uint32_t flags)
{
	VT_OK(member->t,
	      ask(member, (struct sockaddr *)&address,
		  RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS, flags));
	return joined(member, member);
}

static void leave(struct member *member, struct sockaddr_in address)
{
	VT_OK(member->t, vb_cm_leave_multicast(member->id, (struct sockaddr *)&address));
}

/* --- messages --- */

static void receive(struct member *member)
{
	struct ibv_sge sge = {(uintptr_t)member->buffer, ROOM, member->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = 1, .sg_list = &sge, .num_sge = 1}, *bad;

	memset(member->buffer, 0, ROOM);
	VT_OK(member->t, vb_post_recv(member->id->qp, &wr, &bad));
}

static void send_to(struct member *member, struct rdma_ud_param *to, uint32_t seed)
{
	struct vt *t = member->t;
	uint8_t *bytes = ts_memory(t, BYTES);
	struct ibv_mr *mr = ts_mr(t, member->id->pd, bytes, BYTES, 0);
	struct ibv_ah *ah = VT_PTR(t, vb_create_ah(member->id->pd, &to->ah_attr));
	struct ibv_sge sge = {(uintptr_t)bytes, BYTES, mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND,
				 .wr.ud = {ah, to->qp_num, to->qkey}},
			   *bad;
	struct ibv_wc wc;

	ts_keep(t, TS_AH, ah);
	ts_fill(bytes, BYTES, seed);
	VT_OK(t, vb_post_send(member->id->qp, &wr, &bad));
	VT_EQ(t, ts_wait(t, member->id->send_cq, 1, &wc), 1);
	VT_STATUS(t, wc.status, IBV_WC_SUCCESS);
}

static void received(struct member *member, const struct member *from, uint32_t seed)
{
	struct vt *t = member->t;
	struct ibv_wc wc;

	VT_EQ(t, ts_wait(t, member->id->recv_cq, 1, &wc), 1);
	VT_STATUS(t, wc.status, IBV_WC_SUCCESS);
	VT_EQ(t, wc.byte_len, ROOM);
	VT_EQ(t, wc.src_qp, from->id->qp->qp_num);
	ts_verify(t, member->buffer + TS_GRH, BYTES, seed);
	ts_no_more(t, member->id->recv_cq);
}

/* --- tests --- */

static void a_sender_does_not_receive(struct vt *t)
{
	struct member *sender = with_qp(t, &t->a), *member = with_qp(t, &t->b);
	const struct sockaddr_in address = group(0xef010203);
	struct rdma_ud_param to, of_member;

	of_member = join(member, address, RDMA_MC_JOIN_FLAG_FULLMEMBER);
	to = join(sender, address, RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER);
	receive(sender);
	receive(member);
	send_to(sender, &to, 1);
	received(member, sender, 1);
	ts_no_more(t, sender->id->recv_cq);
	leave(sender, address);
	join(sender, address, RDMA_MC_JOIN_FLAG_FULLMEMBER);
	send_to(member, &of_member, 2);
	received(sender, member, 2);
	leave(sender, address);
	leave(member, address);
}

static void a_member_leaves_one_group_of_several(struct vt *t)
{
	struct member *sender = with_qp(t, &t->a), *member = with_qp(t, &t->b);
	struct rdma_ud_param to[3];

	for (uint32_t i = 0; i < 3; i++) {
		join(member, group(0xef010203 + i), RDMA_MC_JOIN_FLAG_FULLMEMBER);
		to[i] = join(sender, group(0xef010203 + i), RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER);
	}
	receive(member);
	send_to(sender, &to[1], 1);
	received(member, sender, 1);
	leave(member, group(0xef010204));
	receive(member);
	send_to(sender, &to[1], 2);
	ts_no_more(t, member->id->recv_cq);
	send_to(sender, &to[0], 3);
	received(member, sender, 3);
	receive(member);
	send_to(sender, &to[2], 4);
	received(member, sender, 4);
	leave(member, group(0xef010203));
	leave(member, group(0xef010205));
}

static void attributes_of_a_join(struct vt *t)
{
	static const struct {
		const char *name;
		uint32_t mask, flags;
		int error;
	} rows[] = {
		{"an unknown attribute", 7, RDMA_MC_JOIN_FLAG_FULLMEMBER, ENOTSUP},
		{"an unknown attribute alone", 4, RDMA_MC_JOIN_FLAG_FULLMEMBER, ENOTSUP},
		{"no address", RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS, RDMA_MC_JOIN_FLAG_FULLMEMBER,
		 EINVAL},
		{"no flags", RDMA_CM_JOIN_MC_ATTR_ADDRESS, RDMA_MC_JOIN_FLAG_FULLMEMBER, EINVAL},
		{"no attribute", 0, RDMA_MC_JOIN_FLAG_FULLMEMBER, EINVAL},
		{"the first unknown flags", 3, RDMA_MC_JOIN_FLAG_RESERVED, EINVAL},
		{"unknown flags", 3, 77, EINVAL},
		{"a member", 3, RDMA_MC_JOIN_FLAG_FULLMEMBER, 0},
	};
	struct member *member = bound(t, &t->b, RDMA_PS_UDP);
	struct sockaddr_in address = group(0xef010203);

	for (size_t i = 0; i < TS_COUNT(rows); i++) {
		int got;

		vt_row(t, "%s", rows[i].name);
		got = ask(member, (struct sockaddr *)&address, rows[i].mask, rows[i].flags);
		VT_EXPECT_ERRNO(t, got ? errno : 0, rows[i].error);
		if (got)
			VT_MINUS_ERRNO(
				t, vb_cm_leave_multicast(member->id, (struct sockaddr *)&address),
				EADDRNOTAVAIL);
		else
			joined(member, member);
	}
	leave(member, address);
}

/* The address of a group, and its GIDs on both link layers. */
struct place {
	const char *name;
	bool ipv6;
	uint8_t address[16];
	uint8_t ethernet[16];
	uint8_t infiniband[16];
};

static const struct place places[] = {
	{"IPv4",
	 false,
	 {239, 1, 2, 3},
	 {[10] = 0xff, 0xff, 239, 1, 2, 3},
	 {0xff, 0x12, 0x40, 0x01, 0xff, 0xff, [12] = 0x0f, 1, 2, 3}},
	{"IPv4 with a high second byte",
	 false,
	 {224, 0x9a, 0xbc, 0xde},
	 {[10] = 0xff, 0xff, 224, 0x9a, 0xbc, 0xde},
	 {0xff, 0x12, 0x40, 0x01, 0xff, 0xff, [12] = 0x00, 0x9a, 0xbc, 0xde}},
	{"IPv6",
	 true,
	 {0xff, 0x0e, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16},
	 {0xff, 0x0e, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16},
	 {0xff, 0x12, 0x60, 0x01, 0xff, 0xff, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}},
	{"a GID of the subnet manager",
	 true,
	 {0xff, 0x1e, 0xa0, 0x1b, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16},
	 {0xff, 0x1e, 0xa0, 0x1b, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16},
	 {0xff, 0x1e, 0xa0, 0x1b, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}},
	{"nearly a GID of the subnet manager",
	 true,
	 {0xff, 0x0e, 0xa0, 0x1b, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16},
	 {0xff, 0x0e, 0xa0, 0x1b, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16},
	 {0xff, 0x12, 0x60, 0x01, 0xff, 0xff, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}},
};

static struct tc_address address_of(const struct place *place)
{
	struct tc_address address = {0};
	struct sockaddr_in *in = (struct sockaddr_in *)&address;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&address;

	if (place->ipv6) {
		in6->sin6_family = AF_INET6;
		memcpy(&in6->sin6_addr, place->address, 16);
	} else {
		in->sin_family = AF_INET;
		memcpy(&in->sin_addr, place->address, 4);
	}
	return address;
}

/* Linux joins no group of IPv6 on RoCE v2: cma.c, cma_iboe_join_multicast, ENOTSUPP. */
static bool may_join(const struct vt *t, const struct place *place)
{
	return !place->ipv6 || (t->have & (VT_NEEDS_SIM | VT_NEEDS_INFINIBAND));
}

static void the_gid_of_a_group(struct vt *t)
{
	const bool ethernet = t->b.port_attr.link_layer == IBV_LINK_LAYER_ETHERNET;
	struct member *member = bound(t, &t->b, RDMA_PS_UDP);

	for (size_t i = 0; i < TS_COUNT(places); i++) {
		struct tc_address address = address_of(&places[i]);
		struct rdma_ud_param to;

		if (!may_join(t, &places[i]))
			continue;
		vt_row(t, "%s", places[i].name);
		VT_OK(t, vb_cm_join_multicast(member->id, tc_sockaddr(&address), t));
		to = joined(member, t);
		VT_EQ_MEM(t, &to.ah_attr.grh.dgid,
			  ethernet ? places[i].ethernet : places[i].infiniband, 16);
		VT_EQ(t, to.ah_attr.grh.sgid_index, t->b.gid_index);
		if (!ethernet)
			VT_CHECK(t, to.ah_attr.dlid >= 0xc000 && to.ah_attr.dlid < 0xffff);
		VT_OK(t, vb_cm_leave_multicast(member->id, tc_sockaddr(&address)));
	}
}

static void the_group_of_ip_over_infiniband(struct vt *t)
{
	static const uint8_t expected[16] = {0xff, 0x12,	0x40, 0x1b, 0xff,
					     0xff, [12] = 0x0f, 1,    2,    3};
	struct member *member = bound(t, &t->b, RDMA_PS_IPOIB);
	struct sockaddr_in address = group(0xef010203);
	struct rdma_cm_event *event;

	VT_OK(t, vb_cm_join_multicast(member->id, (struct sockaddr *)&address, NULL));
	VT_OK(t, vb_cm_get_cm_event(member->channel, &event));
	VT_EQ(t, event->event, RDMA_CM_EVENT_MULTICAST_JOIN);
	VT_EQ_MEM(t, &event->param.ud.ah_attr.grh.dgid, expected, sizeof(expected));
	VT_OK(t, vb_cm_ack_cm_event(event));
}

/* A member that joins before it has a QP attaches no QP; to leave detaches none. */
static void a_member_without_a_qp(struct vt *t)
{
	struct member *member = bound(t, &t->b, RDMA_PS_UDP);
	const struct sockaddr_in address = group(0xef010203);

	join(member, address, RDMA_MC_JOIN_FLAG_FULLMEMBER);
	tc_qp(t, member->id);
	leave(member, address);
	join(member, address, RDMA_MC_JOIN_FLAG_FULLMEMBER);
	leave(member, address);
}

/* rxe does not give a multicast to members on the device that sends it: suite mcast holds that. */
static const struct vt_test tests[] = {
	{"a_sender_does_not_receive", SRC_LIBRARY "ucma_process_join: send only",
	 VT_NEEDS_GROUPS | VT_NEEDS_TWO_DEVICES, a_sender_does_not_receive},
	{"a_member_leaves_one_group_of_several", "rdma_leave_multicast(3)",
	 VT_NEEDS_GROUPS | VT_NEEDS_TWO_DEVICES, a_member_leaves_one_group_of_several},
	{"attributes_of_a_join", SRC_LIBRARY "rdma_join_multicast_ex", 0, attributes_of_a_join},
	{"the_gid_of_a_group", SRC_CMA "cma_iboe_set_mgid, cma_set_mgid", 0, the_gid_of_a_group},
	{"the_group_of_ip_over_infiniband", SRC_CMA "cma_set_mgid",
	 VT_NEEDS_SIM | VT_NEEDS_INFINIBAND, the_group_of_ip_over_infiniband},
	{"a_member_without_a_qp", "rdma_join_multicast(3)", 0, a_member_without_a_qp},
	{NULL},
};

const struct vt_suite vt_suite_cm_groups = {"cm_groups", "connections: multicast groups", tests};
