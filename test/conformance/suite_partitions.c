/* SPDX-License-Identifier: MIT */
/*
 * P_Key indexes above 0: which entry of the table a QP sends with, accepts and reports.
 */
#include "test/conformance/sources.h"
#include "test/support/support.h"

#include <arpa/inet.h>
#include <verbena/sim.h>

#define SIM (VT_NEEDS_SIM | VT_NEEDS_VIRTUAL_CLOCK)

/* Each end has the P_Keys in another order, so that an index of the peer is a wrong one. */
static const uint16_t table_a[] = {0xffff, 0x8123, 0x8456}, table_b[] = {0xffff, 0x8456, 0x8123};

/* A world with these tables takes the place of A and B. */
struct world {
	struct vt *t;
	struct vt_node a, b; /* the runner's */
	struct vb_sim *sim;
};

static void leave_world(void *arg)
{
	struct world *world = arg;
	struct vt *t = world->t;

	if (t->a.ctx != world->a.ctx)
		VT_EXPECT_OK(t, vb_close_device(t->a.ctx));
	if (t->b.ctx != world->b.ctx)
		VT_EXPECT_OK(t, vb_close_device(t->b.ctx));
	VT_EXPECT_OK(t, vb_sim_close(world->sim));
	t->a = world->a;
	t->b = world->b;
}

/* The new device's GIDs have the indexes of the old one's. */
static void move_node(struct vt *t, struct vt_node *node, struct ibv_device *device)
{
	node->ctx = VT_PTR(t, vb_open_device(device));
	node->port = 1;
	VT_OK(t, vb_query_port(node->ctx, 1, &node->port_attr, sizeof(node->port_attr)));
	VT_OK(t, vb_query_gid(node->ctx, 1, node->gid_index, &node->gid));
	VT_CHECK(t, node->port_attr.pkey_tbl_len == 3);
}

static void enter_world(struct vt *t)
{
	struct vb_sim_config *config = vt_alloc(t, sizeof(*config));
	struct world *world = vt_alloc(t, sizeof(*world));
	struct ibv_device **list;

	config->device_count = 2;
	for (unsigned int i = 0; i < 2; i++) {
		config->devices[i] =
			(struct vb_sim_device_config){.name = {'p', (char)('0' + i)},
						      .link_layer = t->a.port_attr.link_layer,
						      .pkey_count = 3};
		memcpy(config->devices[i].pkeys, i ? table_b : table_a, sizeof(table_a));
	}
	*world = (struct world){t, t->a, t->b, VT_PTR(t, vb_sim_open(config))};
	vt_defer(t, leave_world, world);
	list = VT_PTR(t, vb_sim_device_list(world->sim, NULL));
	move_node(t, &t->a, list[0]);
	move_node(t, &t->b, list[1]);
	vb_free_device_list(list);
}

static void to_init(struct ts_end *end, uint16_t index)
{
	struct ibv_qp_attr attr;
	int mask = ts_init_attr(end, &attr);

	attr.pkey_index = index;
	VT_OK(end->t, vb_modify_qp(end->qp, &attr, mask));
}

static void connect_with(struct ts_end *end, uint16_t index)
{
	to_init(end, index);
	ts_to_rtr(end);
	ts_to_rts(end);
}

static struct ts_pair *pair_with(struct vt *t, enum ibv_qp_type type, uint16_t a, uint16_t b)
{
	struct ts_options options = ts_defaults(t, type);
	struct ts_pair *pair;

	options.timeout = 8;
	options.retry_cnt = 1;
	pair = ts_pair_reset(t, &options);
	connect_with(&pair->a, a);
	connect_with(&pair->b, b);
	return pair;
}

/* The P_Keys of the frames that were sent, each once. */
struct seen {
	unsigned int count;
	uint16_t pkeys[8];
};

/* The BTH follows the Ethernet, IPv4 and UDP headers; its P_Key is in bytes 2 and 3. */
#define BTH_OFFSET (14 + 20 + 8)

static void see(void *arg, uint64_t now_ns, const uint8_t *frame, size_t length_bytes, bool lost)
{
	struct seen *seen = arg;
	uint16_t pkey = (uint16_t)(frame[BTH_OFFSET + 2] << 8 | frame[BTH_OFFSET + 3]);

	for (unsigned int i = 0; i < seen->count; i++)
		if (seen->pkeys[i] == pkey)
			return;
	if (seen->count < TS_COUNT(seen->pkeys))
		seen->pkeys[seen->count++] = pkey;
}

static void stop_watching(void *arg)
{
	vb_sim_watch(ts_sim(arg), NULL, NULL);
}

static const enum ibv_qp_type connected[] = {IBV_QPT_RC, IBV_QPT_UC};

static void connections_use_the_entry_of_their_index(struct vt *t)
{
	struct seen seen;

	enter_world(t);
	if (!ts_gid_is_ipv4(&t->a.gid))
		VT_SKIP(t, "the frames are not of IPv4");
	vt_defer(t, stop_watching, t);
	for (size_t i = 0; i < TS_COUNT(connected); i++)
		for (uint16_t a = 1; a <= 2; a++) {
			struct ts_pair *pair;

			vt_row(t, "%s, index %u", i ? "UC" : "RC", a);
			pair = pair_with(t, connected[i], a, (uint16_t)(3 - a));
			VT_EXPECT_EQ(t, ts_query(&pair->a).pkey_index, a);
			seen.count = 0;
			vb_sim_watch(ts_sim(t), see, &seen);
			ts_recv(&pair->b, .wr_id = 1, .length = 100);
			ts_send(&pair->a, .wr_id = 2, .length = 100);
			ts_done(t, pair->a.send_cq, 2, IBV_WC_SEND);
			ts_received(t, pair->b.recv_cq, 1, 100);
			vb_sim_watch(ts_sim(t), NULL, NULL);
			VT_EXPECT_EQ(t, seen.count, 1);
			VT_EXPECT_EQ(t, seen.pkeys[0], table_a[a]);
		}
}

/* The same index is another P_Key at the other end. */
static void other_entries_do_not_meet(struct vt *t)
{
	struct ts_pair *pair;

	enter_world(t);
	for (uint16_t index = 1; index <= 2; index++) {
		vt_row(t, "RC, index %u", index);
		pair = pair_with(t, IBV_QPT_RC, index, index);
		ts_write(&pair->a, .wr_id = 1, .length = 8);
		ts_failed(t, pair->a.send_cq, 1, IBV_WC_RETRY_EXC_ERR);
		ts_blank_at(t, VT_HERE, pair->b.buffer, 8);
		vt_row(t, "UD, index %u", index);
		pair = pair_with(t, IBV_QPT_UD, index, index);
		ts_recv(&pair->b, .wr_id = 2, .length = 200);
		ts_send(&pair->a, .wr_id = 3, .length = 8);
		ts_done(t, pair->a.send_cq, 3, IBV_WC_SEND);
		ts_settle(t);
		ts_no_more(t, pair->b.recv_cq);
	}
}

static void datagram_completion_has_the_receivers_index(struct vt *t)
{
	struct ibv_wc wc;

	enter_world(t);
	for (uint16_t b = 1; b <= 2; b++) {
		struct ts_pair *pair = pair_with(t, IBV_QPT_UD, (uint16_t)(3 - b), b);

		vt_row(t, "index %u", b);
		ts_recv(&pair->b, .wr_id = 1, .length = 200);
		ts_send(&pair->a, .wr_id = 2, .length = 100);
		wc = ts_received(t, pair->b.recv_cq, 1, 140);
		VT_EXPECT_EQ(t, wc.pkey_index, b);
	}
}

/* INIT to INIT and INIT to RTR take another index (ibv_modify_qp(3)): the last one counts. */
static void index_given_later_replaces_the_first(struct vt *t)
{
	static const char *const ways[] = {"INIT to INIT", "INIT to RTR"};
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ibv_qp_attr attr;

	enter_world(t);
	options.timeout = 8;
	for (size_t way = 0; way < TS_COUNT(ways); way++) {
		struct ts_pair *pair = ts_pair_reset(t, &options);
		int mask;

		vt_row(t, "%s", ways[way]);
		to_init(&pair->a, 2);
		if (way == 0) {
			to_init(&pair->a, 1);
			ts_to_rtr(&pair->a);
		} else {
			mask = ts_rtr_attr(&pair->a, &attr) | IBV_QP_PKEY_INDEX;
			attr.pkey_index = 1;
			VT_OK(t, vb_modify_qp(pair->a.qp, &attr, mask));
		}
		ts_to_rts(&pair->a);
		connect_with(&pair->b, 2);
		ts_write(&pair->a, .wr_id = 1, .length = 8);
		ts_done(t, pair->a.send_cq, 1, IBV_WC_RDMA_WRITE);
		/* Answers have the P_Key of the QP that answers. */
		ts_write(&pair->b, .wr_id = 2, .length = 8);
		ts_done(t, pair->b.send_cq, 2, IBV_WC_RDMA_WRITE);
	}
}

#define MODIFY "ibv_modify_qp(3): pkey_index; "

static const struct vt_test tests[] = {
	{"connections_use_the_entry_of_their_index",
	 MODIFY SRC_RVT "qp.c, and " SRC_QIB "qib_rc.c: qib_get_pkey(ibp, qp->s_pkey_index)",
	 SIM | VT_NEEDS_ETHERNET, connections_use_the_entry_of_their_index},
	{"other_entries_do_not_meet", MODIFY SRC_QIB "qib_ruc.c, qib_ruc_check_hdr", SIM,
	 other_entries_do_not_meet},
	{"datagram_completion_has_the_receivers_index",
	 "ibv_poll_cq(3): pkey_index; " SRC_QIB "qib_ud.c: wc.pkey_index", SIM,
	 datagram_completion_has_the_receivers_index},
	{"index_given_later_replaces_the_first",
	 MODIFY SRC_CORE "verbs.c, qp_state_table: IB_QP_PKEY_INDEX is optional", SIM,
	 index_given_later_replaces_the_first},
	{NULL},
};

const struct vt_suite vt_suite_partitions = {"partitions", "P_Key indexes above 0", tests};
