/* SPDX-License-Identifier: MIT */
/*
 * The types of GIDs, and RoCE v1: Ethernet type 0x8915, a GRH, no IP and no UDP.
 */
#include "test/support/quirks.h"
#include "test/support/xrc.h"

#include <arpa/inet.h>
#include <verbena/fault.h>
#include <verbena/sim.h>

#define ROCE_V1_TYPE   0x8915
#define ETHERNET_BYTES 14
#define NEXT_BTH       0x1b /* next header of a GRH */

/*
 * Returns the index of the entry with the node's GID, or its first GID of the other family, and
 * the type; or -1.
 */
static int find(struct vt_node *node, uint32_t type, bool ipv4, struct ibv_gid_entry *entry)
{
	int i;

	for (i = 0; i < node->port_attr.gid_tbl_len; i++)
		if (!vb_query_gid_ex(node->ctx, node->port, (uint32_t)i, entry, 0,
				     sizeof(*entry)) &&
		    entry->gid_type == type && ts_gid_is_ipv4(&entry->gid) == ipv4 &&
		    entry->gid.raw[0] != 0xfe)
			return i;
	return -1;
}

static void use(struct vt *t, struct vt_node *node, uint32_t type, bool ipv4)
{
	struct ibv_gid_entry entry;
	int index = find(node, type, ipv4, &entry);

	if (index < 0)
		VT_SKIP(t, "a node has no such GID");
	node->gid_index = index;
	node->gid = entry.gid;
}

static void use_v1(struct vt *t)
{
	use(t, &t->a, IBV_GID_TYPE_ROCE_V1, true);
	use(t, &t->b, IBV_GID_TYPE_ROCE_V1, true);
}

/* --- the table --- */

/* Every entry has a type of the port's link layer, and the index at which it stands. */
static void table_has_types(struct vt *t)
{
	struct ibv_gid_entry entries[256], one;
	ssize_t count, i;

	count = vb_query_gid_table(t->a.ctx, entries, 256, 0, sizeof(one));
	VT_CHECK(t, count > 0);
	for (i = 0; i < count; i++) {
		vt_row(t, "entry %zd", i);
		VT_OK(t, vb_query_gid_ex(t->a.ctx, entries[i].port_num, entries[i].gid_index, &one,
					 0, sizeof(one)));
		VT_EQ_MEM(t, &one, &entries[i], sizeof(one));
		if (entries[i].port_num == t->a.port)
			VT_EXPECT(t, (t->a.port_attr.link_layer == IBV_LINK_LAYER_ETHERNET) ==
					     (entries[i].gid_type != IBV_GID_TYPE_IB));
	}
}

/*
 * Each address has an entry of each type. Entries of v2 come first.
 */
static void each_address_has_both_types(struct vt *t)
{
	struct ibv_gid_entry entries[64];
	ssize_t count, i;

	use_v1(t);
	count = vb_query_gid_table(t->a.ctx, entries, TS_COUNT(entries), 0, sizeof(entries[0]));
	VT_CHECK(t, count > 2 && count % 2 == 0);
	for (i = 0; i < count / 2; i++) {
		const struct ibv_gid_entry *v2 = &entries[i], *v1 = &entries[count / 2 + i];

		vt_row(t, "index %u", v2->gid_index);
		VT_EQ(t, v2->gid_type, IBV_GID_TYPE_ROCE_V2);
		VT_EQ(t, v1->gid_type, IBV_GID_TYPE_ROCE_V1);
		VT_EQ_MEM(t, &v1->gid, &v2->gid, sizeof(v1->gid));
	}
}

static void set_type(struct vt *t, uint32_t index, uint32_t type, int err)
{
	VT_ERRNO(t, vb_sim_set_gid_type(t->a.ctx, t->a.port, index, &t->a.gid, type), err);
}

static void types_can_be_changed(struct vt *t)
{
	uint32_t index = (uint32_t)t->a.gid_index;
	struct ibv_gid_entry entry;

	use_v1(t);
	set_type(t, index, IBV_GID_TYPE_ROCE_V1, 0);
	VT_OK(t, vb_query_gid_ex(t->a.ctx, t->a.port, index, &entry, 0, sizeof(entry)));
	VT_EQ(t, entry.gid_type, IBV_GID_TYPE_ROCE_V1);
	set_type(t, index, IBV_GID_TYPE_IB, EINVAL);
	set_type(t, index, 77, EINVAL);
	VT_OK(t, vb_query_gid_ex(t->a.ctx, t->a.port, index, &entry, 0, sizeof(entry)));
	VT_EQ(t, entry.gid_type, IBV_GID_TYPE_ROCE_V1);
	VT_OK(t, vb_sim_set_gid(t->a.ctx, t->a.port, index, &t->a.gid));
	VT_OK(t, vb_query_gid_ex(t->a.ctx, t->a.port, index, &entry, 0, sizeof(entry)));
	VT_EQ(t, entry.gid_type, IBV_GID_TYPE_ROCE_V2);
	ts_drain_events(&t->a);
}

/* --- traffic --- */

/* Counts the frames on the wire with the Ethernet type of RoCE v1, and the others. */
struct types {
	struct vt *t;
	unsigned int v1, others;
	uint8_t frame[512]; /* the first frame of v1 */
};

static void saw(void *arg, uint64_t now_ns, const uint8_t *frame, size_t length_bytes, bool lost)
{
	struct types *types = arg;
	bool v1 = length_bytes > ETHERNET_BYTES && (frame[12] << 8 | frame[13]) == ROCE_V1_TYPE;

	(void)now_ns;
	(void)lost;
	if (v1 && !types->v1)
		memcpy(types->frame, frame,
		       length_bytes < sizeof(types->frame) ? length_bytes : sizeof(types->frame));
	types->v1 += v1;
	types->others += !v1;
}

static void unwatch(void *arg)
{
	struct types *types = arg;

	vb_sim_watch(ts_sim(types->t), NULL, NULL);
}

static struct types *watch(struct vt *t)
{
	struct types *types = vt_alloc(t, sizeof(*types));

	ts_prompt(t);
	types->t = t;
	vb_sim_watch(ts_sim(t), saw, types);
	vt_defer(t, unwatch, types);
	return types;
}

static const enum ibv_wr_opcode on_rc[] = {
	IBV_WR_SEND,	  IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM,
	IBV_WR_RDMA_READ,
};

/* All packets are RoCE v1, whether a trace is written or not. */
static void operations(struct vt *t, enum ibv_qp_type type, unsigned int count, uint32_t bytes)
{
	struct ts_pair *pair;
	struct types *types;
	unsigned int i;

	use_v1(t);
	pair = ts_connected(t, type);
	for (i = 0; i < count; i++) {
		vt_row(t, "operation %u, unseen", i);
		ts_transfer(pair, on_rc[i], bytes);
	}
	types = watch(t);
	for (i = 0; i < count; i++) {
		vt_row(t, "operation %u", i);
		ts_transfer(pair, on_rc[i], bytes);
	}
	VT_CHECK(t, types->v1 >= count);
	VT_EQ(t, types->others, 0);
}

static void reliable_connection(struct vt *t)
{
	operations(t, IBV_QPT_RC, 5, 20000);
}

static void unreliable_connection(struct vt *t)
{
	operations(t, IBV_QPT_UC, 4, 20000);
}

static void datagrams(struct vt *t)
{
	operations(t, IBV_QPT_UD, 2, 1000);
}

static void extended_reliable_connection(struct vt *t)
{
	struct types *types = watch(t);
	struct ts_xrc *xrc;

	use_v1(t);
	ts_need_xrc(t);
	xrc = ts_xrc(t);
	ts_srq_recv(xrc->shared[1], .wr_id = 50, .length = 1000);
	ts_fill(xrc->pair->a.buffer, 100, 1);
	TS_XRC_POST(xrc, xrc->srqn[1], IBV_WR_SEND, .wr_id = 1, .length = 100);
	ts_done(t, xrc->pair->a.send_cq, 1, IBV_WC_SEND);
	ts_received(t, xrc->cq[1], 50, 100);
	ts_verify(t, xrc->shared[1]->buffer, 100, 1);
	VT_EQ(t, types->v1, 2);
	VT_EQ(t, types->others, 0);
}

/* A GRH has no address family, so an IPv4 address may send to an IPv6 address. */
static void families_may_differ(struct vt *t)
{
	use(t, &t->a, IBV_GID_TYPE_ROCE_V1, true);
	use(t, &t->b, IBV_GID_TYPE_ROCE_V1, false);
	ts_transfer(ts_connected(t, IBV_QPT_RC), IBV_WR_SEND, 1000);
}

static void lost_packet_is_sent_again(struct vt *t)
{
	struct ts_pair *pair;

	use_v1(t);
	pair = ts_connected(t, IBV_QPT_RC);
	ts_fault(t, &(struct vb_fault_rule){.action = VB_FAULT_DROP, .count = 1});
	ts_transfer(pair, IBV_WR_RDMA_WRITE, 10000);
}

static void corrupt_packet_counts_as_lost(struct vt *t)
{
	struct ts_pair *pair;

	use_v1(t);
	pair = ts_connected(t, IBV_QPT_RC);
	ts_fault(t, &(struct vb_fault_rule){.action = VB_FAULT_CORRUPT, .count = 1});
	ts_transfer(pair, IBV_WR_RDMA_WRITE, 10000);
}

/* --- v1 and v2 do not meet --- */

static void types_part(struct vt *t, uint32_t a, uint32_t b)
{
	struct ts_pair *pair;

	use_v1(t); /* skips the test if a node has no GID of v1 */
	use(t, &t->a, a, true);
	use(t, &t->b, b, true);
	pair = ts_connected(t, IBV_QPT_RC);
	ts_write(&pair->a, .wr_id = 1, .length = 8);
	ts_failed(t, pair->a.send_cq, 1, IBV_WC_RETRY_EXC_ERR);
	ts_state(&pair->b, IBV_QPS_RTS);
	ts_blank(t, pair->b.buffer, 8);
}

static void v1_does_not_reach_v2(struct vt *t)
{
	types_part(t, IBV_GID_TYPE_ROCE_V1, IBV_GID_TYPE_ROCE_V2);
}

static void v2_does_not_reach_v1(struct vt *t)
{
	types_part(t, IBV_GID_TYPE_ROCE_V2, IBV_GID_TYPE_ROCE_V1);
}

/* B's address has one type only, so a datagram of the other type reaches nobody. */
static void address_of_one_type_gets_no_other(struct vt *t)
{
	static const union ibv_gid none;
	struct ts_pair *pair;
	int v2 = t->b.gid_index;

	use_v1(t);
	pair = ts_connected(t, IBV_QPT_UD);
	ts_recv(&pair->b, .wr_id = 50, .length = 1000);
	VT_OK(t, vb_sim_set_gid(t->b.ctx, t->b.port, (uint32_t)t->b.gid_index, &none));
	ts_send(&pair->a, .wr_id = 1, .length = 100);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_SEND);
	ts_no_more(t, pair->b.recv_cq);
	VT_OK(t, vb_sim_set_gid_type(t->b.ctx, t->b.port, (uint32_t)v2, &t->b.gid,
				     IBV_GID_TYPE_ROCE_V1));
	ts_send(&pair->a, .wr_id = 2, .length = 100);
	ts_received(t, pair->b.recv_cq, 50, 100 + TS_GRH);
	ts_drain_events(&t->b);
}

/* When the GIDs of both ends change their type, the connection goes on with the new type. */
static void connections_follow_their_gid(struct vt *t)
{
	uint32_t a = (uint32_t)t->a.gid_index, b = (uint32_t)t->b.gid_index;
	struct ts_pair *pair = ts_connected(t, IBV_QPT_UC);
	struct types *types;
	struct ibv_gid_entry entry;

	if (find(&t->a, IBV_GID_TYPE_ROCE_V1, true, &entry) < 0)
		VT_SKIP(t, "the device has no RoCE v1");
	ts_transfer(pair, IBV_WR_SEND, 100);
	VT_OK(t, vb_sim_set_gid_type(t->a.ctx, t->a.port, a, &t->a.gid, IBV_GID_TYPE_ROCE_V1));
	VT_OK(t, vb_sim_set_gid_type(t->b.ctx, t->b.port, b, &t->b.gid, IBV_GID_TYPE_ROCE_V1));
	ts_transfer(pair, IBV_WR_SEND, 100);
	types = watch(t);
	ts_transfer(pair, IBV_WR_SEND, 100);
	VT_EQ(t, types->v1, 1);
	VT_EQ(t, types->others, 0);
	ts_drain_events(&t->a);
	ts_drain_events(&t->b);
}

/* --- bytes --- */

static void frame_is_ethernet_and_a_grh(struct vt *t)
{
	struct types *types;
	struct ts_pair *pair;
	const uint8_t *grh;

	use_v1(t);
	pair = ts_connected(t, IBV_QPT_RC);
	types = watch(t);
	ts_transfer(pair, IBV_WR_SEND, 101);
	VT_EQ(t, types->v1, 2);
	grh = types->frame + ETHERNET_BYTES;
	VT_EQ(t, grh[0] >> 4, 6);
	VT_EQ(t, grh[4] << 8 | grh[5], 12 + 104 + 4); /* BTH, data and pad, ICRC */
	VT_EQ(t, grh[6], NEXT_BTH);
	VT_EQ(t, grh[7], 64); /* the hop limit of the path */
	VT_EQ_MEM(t, grh + 8, t->a.gid.raw, 16);
	VT_EQ_MEM(t, grh + 24, t->b.gid.raw, 16);
	VT_EQ(t, grh[40], TS_SEND_ONLY);
}

/* The GRH fills all 40 bytes, even with IPv4 addresses. */
static void grh_is_before_a_datagram(struct vt *t)
{
	struct types *types;
	struct ts_pair *pair;
	struct ibv_wc wc;

	use_v1(t);
	pair = ts_connected(t, IBV_QPT_UD);
	types = watch(t);
	ts_recv(&pair->b, .wr_id = 5, .length = 1000);
	ts_send(&pair->a, .wr_id = 1, .length = 101);
	wc = ts_received(t, pair->b.recv_cq, 5, 101 + TS_GRH);
	VT_CHECK(t, wc.wc_flags & IBV_WC_GRH);
	VT_EQ_MEM(t, pair->b.buffer, types->frame + ETHERNET_BYTES, TS_GRH);
	VT_EQ(t, pair->b.buffer[6], NEXT_BTH);
	VT_EQ_MEM(t, pair->b.buffer + 8, t->a.gid.raw, 16);
	VT_EQ_MEM(t, pair->b.buffer + 24, t->b.gid.raw, 16);
	ts_verify(t, pair->b.buffer + TS_GRH, 101, 1);
}

/*
 * B's address has entries of v1 and v2. The next header of the GRH says that the AH must take v1.
 */
static void ah_from_a_completion_has_the_type_of_the_datagram(struct vt *t)
{
	struct ts_pair *pair;
	struct ibv_ah_attr attr;
	struct ibv_grh *grh;
	struct ibv_wc wc;

	use_v1(t);
	pair = ts_connected(t, IBV_QPT_UD);
	grh = (void *)pair->b.buffer;
	ts_recv(&pair->b, .wr_id = 5, .length = 1000);
	ts_send(&pair->a, .wr_id = 1, .length = 100);
	wc = ts_received(t, pair->b.recv_cq, 5, 100 + TS_GRH);
	VT_OK(t, vb_init_ah_from_wc(t->b.ctx, t->b.port, &wc, grh, &attr));
	VT_EQ(t, attr.grh.sgid_index, t->b.gid_index);
	VT_EQ_MEM(t, &attr.grh.dgid, &t->a.gid, 16);
	grh->next_hdr = 17; /* UDP: the AH takes the entry of v2, which stands before */
	VT_OK(t, vb_init_ah_from_wc(t->b.ctx, t->b.port, &wc, grh, &attr));
	VT_CHECK(t, attr.grh.sgid_index < t->b.gid_index);
}

/* --- groups --- */

static struct ts_end *member(struct vt *t, struct vt_node *node, const union ibv_gid *group)
{
	const struct ts_options options = ts_defaults(t, IBV_QPT_UD);
	struct ts_end *end = ts_end(t, node, &options);

	ts_connect(end);
	VT_OK(t, vb_attach_mcast(end->qp, group, 0));
	ts_recv(end, .wr_id = 50, .length = 1000);
	return end;
}

static void send_to(struct ts_end *from, const union ibv_gid *group)
{
	struct vt *t = from->t;
	struct ibv_ah_attr attr = ts_av(from->node, from->node);
	struct ibv_ah *own = from->ah;

	attr.grh.dgid = *group;
	from->ah = VT_PTR(t, vb_create_ah(from->pd, &attr));
	ts_fill(from->buffer + 2000, 100, 5);
	ts_send(from, .wr_id = 1, .offset = 2000, .length = 100, .remote_qpn = TS_MULTICAST_QPN,
		.remote_qkey = TS_QKEY);
	ts_done(t, from->send_cq, 1, IBV_WC_SEND);
	VT_OK(t, vb_destroy_ah(from->ah));
	from->ah = own;
}

/* The group's MAC follows from its GID by the RFCs of IP multicast. */
static const struct {
	union ibv_gid gid;
	uint8_t mac[6];
} groups[] = {
	{{.raw = {[10] = 0xff, 0xff, 239, 0x81, 2, 3}}, {1, 0, 0x5e, 1, 2, 3}},
	{{.raw = {0xff, 0x0e, [12] = 9, 8, 7, 6}}, {0x33, 0x33, 9, 8, 7, 6}},
};

static void group_is_reached_by_its_mac(struct vt *t)
{
	unsigned int i;

	use_v1(t);
	for (i = 0; i < 2; i++) {
		struct ts_end *here = member(t, &t->a, &groups[i].gid);
		struct ts_end *there = member(t, &t->b, &groups[i].gid);
		struct types *types = watch(t);

		vt_row(t, "group %u", i);
		send_to(here, &groups[i].gid);
		ts_received(t, here->recv_cq, 50, 100 + TS_GRH);
		ts_received(t, there->recv_cq, 50, 100 + TS_GRH);
		ts_verify(t, there->buffer + TS_GRH, 100, 5);
		VT_EQ_MEM(t, there->buffer + 24, groups[i].gid.raw, 16);
		VT_EQ(t, types->v1, 1);
		VT_EQ_MEM(t, types->frame, groups[i].mac, 6);
		VT_OK(t, vb_detach_mcast(here->qp, &groups[i].gid, 0));
		VT_OK(t, vb_detach_mcast(there->qp, &groups[i].gid, 0));
	}
}

/* A port without a GID of v1 takes part in no group of v1. */
static void group_needs_a_gid_of_the_type(struct vt *t)
{
	static const union ibv_gid none;
	struct ts_end *here, *there;
	struct ibv_gid_entry entry;
	uint32_t i;

	use_v1(t);
	here = member(t, &t->a, &groups[0].gid);
	there = member(t, &t->b, &groups[0].gid);
	for (i = 0; i < (uint32_t)t->b.port_attr.gid_tbl_len; i++)
		if (!vb_query_gid_ex(t->b.ctx, t->b.port, i, &entry, 0, sizeof(entry)) &&
		    entry.gid_type == IBV_GID_TYPE_ROCE_V1)
			VT_OK(t, vb_sim_set_gid_type(t->b.ctx, t->b.port, i, &none,
						     IBV_GID_TYPE_ROCE_V1));
	send_to(here, &groups[0].gid);
	ts_received(t, here->recv_cq, 50, 100 + TS_GRH);
	ts_no_more(t, there->recv_cq);
	VT_OK(t, vb_detach_mcast(here->qp, &groups[0].gid, 0));
	VT_OK(t, vb_detach_mcast(there->qp, &groups[0].gid, 0));
	ts_drain_events(&t->b);
}

#define TABLE	"ibv_query_gid_ex(3), ibv_query_gid_table(3): gid_type"
#define WIRE	"Linux drivers/infiniband/core/ud_header.c, ib_ud_header_init: ETH_P_IBOE, GRH"
#define SIM	(VT_NEEDS_SIM | VT_NEEDS_ETHERNET)
#define SIM_TWO (SIM | VT_NEEDS_TWO_DEVICES)

static const struct vt_test tests[] = {
	{"table_has_types", TABLE, 0, table_has_types},
	{"each_address_has_both_types", "unsourced", SIM, each_address_has_both_types},
	{"types_can_be_changed", "unsourced", SIM, types_can_be_changed},
	{"reliable_connection", WIRE, SIM, reliable_connection},
	{"unreliable_connection", WIRE, SIM, unreliable_connection},
	{"datagrams", WIRE, SIM, datagrams},
	{"extended_reliable_connection", WIRE, SIM, extended_reliable_connection},
	{"families_may_differ", "unsourced", SIM, families_may_differ},
	{"lost_packet_is_sent_again", "unsourced", SIM, lost_packet_is_sent_again},
	{"corrupt_packet_counts_as_lost", "unsourced", SIM, corrupt_packet_counts_as_lost,
	 VT_MAY_CORRUPT},
	{"v1_does_not_reach_v2", "unsourced", SIM, v1_does_not_reach_v2},
	{"v2_does_not_reach_v1",
	 "Linux drivers/infiniband/sw/rxe/rxe_recv.c, rxe_match_dgid: the GID's type", SIM,
	 v2_does_not_reach_v1},
	{"address_of_one_type_gets_no_other",
	 "Linux drivers/infiniband/sw/rxe/rxe_recv.c, rxe_match_dgid: the GID's type", SIM_TWO,
	 address_of_one_type_gets_no_other},
	{"connections_follow_their_gid", "unsourced", SIM_TWO, connections_follow_their_gid},
	{"frame_is_ethernet_and_a_grh", WIRE, SIM, frame_is_ethernet_and_a_grh},
	{"grh_is_before_a_datagram", "ibv_post_recv(3), Notes", SIM, grh_is_before_a_datagram},
	{"ah_from_a_completion_has_the_type_of_the_datagram",
	 "rdma-core libibverbs/verbs.c, set_ah_attr_by_ipv6: next_hdr", SIM_TWO,
	 ah_from_a_completion_has_the_type_of_the_datagram},
	{"group_is_reached_by_its_mac",
	 "Linux drivers/infiniband/core/verbs.c, ib_resolve_eth_dmac", SIM_TWO,
	 group_is_reached_by_its_mac},
	{"group_needs_a_gid_of_the_type", "unsourced", SIM_TWO, group_needs_a_gid_of_the_type},
	{NULL},
};

const struct vt_suite vt_suite_roce = {"roce", "GID types and RoCE v1", tests};
