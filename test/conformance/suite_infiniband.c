/* SPDX-License-Identifier: MIT */
/*
 * Ports whose link layer is InfiniBand: LIDs, and a GRH only if the address asks for one.
 */
#include "test/conformance/sources.h"
#include "test/support/keep.h"
#include "test/support/support.h"

#include <stdlib.h>
#include <unistd.h>
#include <verbena/sim.h>

#define IB     VT_NEEDS_INFINIBAND
#define IB_TWO (IB | VT_NEEDS_TWO_DEVICES)
#define WIRE   (IB | VT_NEEDS_SIM)

#define NOBODYS_LID 0xbf00
#define NEXT_BTH    0x1b /* next header of a GRH */

/* --- ports --- */

static void ports_have_lids(struct vt *t)
{
	struct ibv_port_attr *a = &t->a.port_attr, *b = &t->b.port_attr;

	VT_CHECK(t, a->lid > 0 && a->lid < 0xc000);
	VT_CHECK(t, b->lid > 0 && b->lid < 0xc000);
	VT_CHECK(t, a->sm_lid > 0 && a->sm_lid < 0xc000);
	VT_EQ(t, a->sm_lid, b->sm_lid);
	VT_CHECK(t, !(a->flags & IBV_QPF_GRH_REQUIRED));
	VT_CHECK(t, a->max_msg_sz > 0);
	if (t->have & VT_NEEDS_TWO_DEVICES)
		VT_CHECK(t, a->lid != b->lid);
}

static void gid_0_is_the_subnet_and_the_port(struct vt *t)
{
	struct ibv_gid_entry entry;

	VT_OK(t, vb_query_gid_ex(t->a.ctx, t->a.port, 0, &entry, 0, sizeof(entry)));
	VT_EQ(t, entry.gid_type, IBV_GID_TYPE_IB);
	VT_EQ(t, entry.ndev_ifindex, 0);
	VT_CHECK(t, entry.gid.global.interface_id != 0);
	VT_CHECK(t, entry.gid.global.subnet_prefix != 0);
}

static void bad_address_vectors_are_refused(struct vt *t)
{
	static const union ibv_gid zero, group = {.raw = {0xff, 0x12, [15] = 1}};
	const struct {
		struct ibv_ah_attr attr;
		const char *what;
	} rows[] = {
		{{.dlid = 0}, "LID 0"},
		{{.dlid = 0xc001}, "a group's LID without a GRH"},
		{{.dlid = t->b.port_attr.lid, .sl = 16}, "service level 16"},
		{{.dlid = t->b.port_attr.lid, .is_global = 1, .grh = {.dgid = zero}}, "no GID"},
		{{.dlid = t->b.port_attr.lid,
		  .is_global = 1,
		  .grh = {.dgid = group, .sgid_index = 255}},
		 "a GID index that is not there"},
	};
	struct ibv_pd *pd = ts_pd(t, &t->a);
	unsigned int i;

	for (i = 0; i < TS_COUNT(rows); i++) {
		struct ibv_ah_attr attr = rows[i].attr;

		vt_row(t, "%s", rows[i].what);
		attr.port_num = t->a.port;
		VT_EXPECT_NULL_ERRNO(t, vb_create_ah(pd, &attr), EINVAL);
	}
}

/* --- connections --- */

struct ib_row {
	bool a_has_grh, b_has_grh;
	bool a_misses; /* a's GRH names a GID that b's port does not have */
	bool b_waits;  /* b waits for packets from another LID than a's */
	bool arrives;
};

static void give_grh(struct ibv_ah_attr *av, const struct vt_node *from, const struct vt_node *to)
{
	av->is_global = 1;
	av->grh = (struct ibv_global_route){
		.dgid = to->gid, .sgid_index = (uint8_t)from->gid_index, .hop_limit = 1};
}

static void connect_with(struct ts_end *end, bool grh, bool misses, uint16_t dlid)
{
	struct ibv_qp_attr attr;
	int mask;

	ts_to_init(end);
	mask = ts_rtr_attr(end, &attr);
	if (grh)
		give_grh(&attr.ah_attr, end->node, end->peer->node);
	if (misses)
		attr.ah_attr.grh.dgid.raw[15] ^= 0x55;
	attr.ah_attr.dlid = dlid;
	VT_OK(end->t, vb_modify_qp(end->qp, &attr, mask));
	ts_to_rts(end);
}

static struct ts_pair *pair_with(struct vt *t, enum ibv_qp_type type, const struct ib_row *row)
{
	struct ts_options options = ts_defaults(t, type);
	struct ts_pair *pair;

	/* A peer in another process may answer late. */
	if (!row->arrives) {
		options.timeout = 8;
		options.retry_cnt = 1;
	}
	pair = ts_pair_reset(t, &options);
	connect_with(&pair->a, row->a_has_grh, row->a_misses, t->b.port_attr.lid);
	connect_with(&pair->b, row->b_has_grh, false,
		     row->b_waits ? NOBODYS_LID : t->a.port_attr.lid);
	return pair;
}

static const struct ib_row ib_rows[] = {
	{.arrives = true},
	{.a_has_grh = true, .b_has_grh = true, .arrives = true},
	{.a_has_grh = true},
	{.b_has_grh = true},
	{.a_has_grh = true, .b_has_grh = true, .a_misses = true},
	{.b_waits = true},
};

static void grh_and_lids_must_be_the_connections(struct vt *t)
{
	unsigned int i;

	for (i = 0; i < TS_COUNT(ib_rows); i++) {
		const struct ib_row *row = &ib_rows[i];
		struct ts_pair *pair = pair_with(t, IBV_QPT_RC, row);

		vt_row(t, "GRH of A %d, of B %d, A's for another %d, B waits for another %d",
		       row->a_has_grh, row->b_has_grh, row->a_misses, row->b_waits);
		ts_write(&pair->a, .wr_id = 1, .length = 100);
		if (row->arrives)
			ts_done(t, pair->a.send_cq, 1, IBV_WC_RDMA_WRITE);
		else
			ts_failed(t, pair->a.send_cq, 1, IBV_WC_RETRY_EXC_ERR);
		if (!row->arrives)
			ts_blank(t, pair->b.buffer, 100);
	}
}

static void every_operation_with_a_grh(struct vt *t)
{
	struct ts_pair *pair = pair_with(t, IBV_QPT_RC, &ib_rows[1]);

	ts_transfer(pair, IBV_WR_SEND, 10000);
	ts_transfer(pair, IBV_WR_SEND_WITH_IMM, 1);
	ts_transfer(pair, IBV_WR_RDMA_WRITE, 9999);
	ts_transfer(pair, IBV_WR_RDMA_WRITE_WITH_IMM, 0);
	ts_transfer(pair, IBV_WR_RDMA_READ, 9998);
}

static void packets_to_an_unknown_lid_are_lost(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;

	options.timeout = 8;
	options.retry_cnt = 1;
	t->b.port_attr.lid = NOBODYS_LID;
	pair = ts_pair(t, &options);
	ts_write(&pair->a, .wr_id = 1, .length = 100);
	ts_failed(t, pair->a.send_cq, 1, IBV_WC_RETRY_EXC_ERR);
}

static void lid_that_changes(struct vt *t)
{
	struct ts_pair *old = pair_with(t, IBV_QPT_RC, &ib_rows[0]), *new;
	uint16_t lid = (uint16_t)(t->b.port_attr.lid + 100);
	struct ibv_async_event event;

	ts_transfer(old, IBV_WR_RDMA_WRITE, 100);
	VT_OK(t, vb_sim_set_lid(t->b.ctx, t->b.port, lid));
	VT_OK(t, vb_get_async_event(t->b.ctx, &event));
	vb_ack_async_event(&event);
	VT_EVENT(t, event.event_type, IBV_EVENT_LID_CHANGE);
	VT_EQ(t, event.element.port_num, t->b.port);
	VT_OK(t, vb_query_port(t->b.ctx, t->b.port, &t->b.port_attr, sizeof(t->b.port_attr)));
	VT_EQ(t, t->b.port_attr.lid, lid);
	ts_write(&old->a, .wr_id = 1, .length = 100);
	ts_failed(t, old->a.send_cq, 1, IBV_WC_RETRY_EXC_ERR);
	new = pair_with(t, IBV_QPT_RC, &ib_rows[0]);
	ts_transfer(new, IBV_WR_SEND, 100);
}

/* --- datagrams --- */

/* Gives A's end another AH until the test ends. */
static void aim(struct ts_pair *pair, const struct ibv_ah_attr *given)
{
	struct vt *t = pair->a.t;
	struct ibv_ah_attr attr = *given;

	VT_OK(t, vb_destroy_ah(pair->a.ah));
	ts_gone(t, pair->a.ah);
	pair->a.ah = VT_PTR(t, vb_create_ah(pair->a.pd, &attr));
}

static void drop_aim(struct ts_pair *pair)
{
	VT_OK(pair->a.t, vb_destroy_ah(pair->a.ah));
	pair->a.ah = NULL;
}

static void datagram_without_a_grh(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_UD);
	struct ibv_ah_attr attr = ts_av(&t->a, &t->b);
	struct ibv_ah_attr back;
	struct ibv_wc wc;

	attr.sl = 5;
	aim(pair, &attr);
	ts_recv(&pair->b, .wr_id = 5, .length = 1000);
	ts_send(&pair->a, .wr_id = 1, .length = 101);
	wc = ts_received(t, pair->b.recv_cq, 5, 101 + TS_GRH);
	VT_CHECK(t, !(wc.wc_flags & IBV_WC_GRH));
	VT_EQ(t, wc.slid, t->a.port_attr.lid);
	VT_EQ(t, wc.sl, 5);
	VT_EQ(t, wc.src_qp, pair->a.qp->qp_num);
	ts_verify(t, pair->b.buffer + TS_GRH, 101, 1);

	memset(&back, 0xff, sizeof(back));
	VT_OK(t, vb_init_ah_from_wc(t->b.ctx, t->b.port, &wc, (void *)pair->b.buffer, &back));
	VT_EQ(t, back.is_global, 0);
	VT_EQ(t, back.dlid, t->a.port_attr.lid);
	VT_EQ(t, back.sl, 5);
	VT_EQ(t, back.port_num, t->b.port);
	drop_aim(pair);
}

static void datagram_with_a_grh(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_UD);
	struct ibv_ah_attr attr = ts_av(&t->a, &t->b), back;
	const struct ibv_grh *grh = (void *)pair->b.buffer;
	struct ibv_wc wc;

	give_grh(&attr, &t->a, &t->b);
	attr.grh.traffic_class = 0x5a;
	attr.grh.flow_label = 0xabcde;
	aim(pair, &attr);
	ts_recv(&pair->b, .wr_id = 5, .length = 1000);
	ts_send(&pair->a, .wr_id = 1, .length = 101);
	wc = ts_received(t, pair->b.recv_cq, 5, 101 + TS_GRH);
	VT_CHECK(t, wc.wc_flags & IBV_WC_GRH);
	VT_EQ(t, wc.slid, t->a.port_attr.lid);
	VT_EQ(t, be32toh(grh->version_tclass_flow), 0x65aabcde);
	VT_EQ(t, grh->next_hdr, NEXT_BTH);
	/* BTH 12, DETH 8, data and pad, ICRC 4 */
	VT_EQ(t, be16toh(grh->paylen), 12 + 8 + 104 + 4);
	VT_EQ(t, grh->hop_limit, 1);
	VT_EQ_MEM(t, &grh->sgid, &t->a.gid, 16);
	VT_EQ_MEM(t, &grh->dgid, &t->b.gid, 16);
	ts_verify(t, pair->b.buffer + TS_GRH, 101, 1);

	memset(&back, 0xff, sizeof(back));
	VT_OK(t, vb_init_ah_from_wc(t->b.ctx, t->b.port, &wc, (void *)pair->b.buffer, &back));
	VT_EQ(t, back.is_global, 1);
	VT_EQ(t, back.dlid, t->a.port_attr.lid);
	VT_EQ(t, back.grh.sgid_index, t->b.gid_index);
	VT_EQ(t, back.grh.traffic_class, 0x5a);
	VT_EQ(t, back.grh.flow_label, 0xabcde);
	VT_EQ_MEM(t, &back.grh.dgid, &t->a.gid, 16);
	drop_aim(pair);
}

static void datagram_whose_grh_is_for_another(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_UD);
	struct ibv_ah_attr attr = ts_av(&t->a, &t->b);

	give_grh(&attr, &t->a, &t->b);
	attr.grh.dgid.raw[15] ^= 0x55;
	aim(pair, &attr);
	ts_recv(&pair->b, .wr_id = 5, .length = 1000);
	ts_send(&pair->a, .wr_id = 1, .length = 101);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_SEND);
	ts_no_more(t, pair->b.recv_cq);
	drop_aim(pair);
}

/* --- groups --- */

static void group_has_a_lid_and_a_gid(struct vt *t)
{
	static const union ibv_gid group = {.raw = {0xff, 0x12, [15] = 1}};
	static const union ibv_gid other = {.raw = {0xff, 0x12, [15] = 2}};
	static const struct {
		uint16_t lid;
		const union ibv_gid *gid;
		bool comes;
	} rows[] = {{0xc001, &group, true}, {0xc002, &group, false}, {0xc001, &other, false}};
	struct ts_pair *pair = ts_connected(t, IBV_QPT_UD);
	struct ibv_wc wc;
	unsigned int i;

	VT_OK(t, vb_attach_mcast(pair->b.qp, &group, 0xc001));
	for (i = 0; i < TS_COUNT(rows); i++) {
		struct ibv_ah_attr attr = {.dlid = rows[i].lid, .port_num = t->a.port};

		vt_row(t, "LID 0x%04x, GID ...%u", rows[i].lid, rows[i].gid->raw[15]);
		give_grh(&attr, &t->a, &t->b);
		attr.grh.dgid = *rows[i].gid;
		if (i == 0)
			aim(pair, &attr);
		else
			pair->a.ah = VT_PTR(t, vb_create_ah(pair->a.pd, &attr));
		ts_recv(&pair->b, .wr_id = i, .length = 1000);
		ts_send(&pair->a, .wr_id = i, .length = 100, .remote_qpn = TS_MULTICAST_QPN);
		ts_done(t, pair->a.send_cq, i, IBV_WC_SEND);
		if (!rows[i].comes) {
			ts_no_more(t, pair->b.recv_cq);
		} else {
			wc = ts_received(t, pair->b.recv_cq, i, 100 + TS_GRH);
			VT_CHECK(t, wc.wc_flags & IBV_WC_GRH);
			VT_EQ_MEM(t, pair->b.buffer + 24, &group, 16);
		}
		drop_aim(pair);
	}
	vt_row(t, NULL);
	VT_OK(t, vb_detach_mcast(pair->b.qp, &group, 0xc001));
}

static void group_needs_a_lid_of_groups(struct vt *t)
{
	static const union ibv_gid group = {.raw = {0xff, 0x12, [15] = 1}};
	static const uint16_t lids[] = {0, 1, 0xbfff, 0xffff};
	struct ts_pair *pair = ts_connected(t, IBV_QPT_UD);
	unsigned int i;

	for (i = 0; i < TS_COUNT(lids); i++) {
		vt_row(t, "LID 0x%04x", lids[i]);
		VT_EXPECT_ERRNO(t, vb_attach_mcast(pair->b.qp, &group, lids[i]), EINVAL);
	}
}

/* --- the wire --- */

struct ib_log {
	unsigned int count;
	uint8_t first[8]; /* LRH */
	size_t first_bytes;
};

static void note(void *arg, uint64_t now_ns, const uint8_t *frame, size_t length_bytes, bool lost)
{
	struct ib_log *log = arg;

	(void)now_ns;
	(void)lost;
	if (log->count++)
		return;
	memcpy(log->first, frame, sizeof(log->first));
	log->first_bytes = length_bytes;
}

static void frame_begins_with_the_lrh(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_UC);
	struct ts_pair *pair = ts_pair_reset(t, &options);
	struct ib_log log = {0};
	struct ibv_qp_attr attr;
	int mask;

	ts_to_init(&pair->a);
	mask = ts_rtr_attr(&pair->a, &attr);
	attr.ah_attr.sl = 9;
	VT_OK(t, vb_modify_qp(pair->a.qp, &attr, mask));
	ts_to_rts(&pair->a);
	vb_sim_watch(ts_sim(t), note, &log);
	ts_write(&pair->a, .wr_id = 1, .length = 101);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_RDMA_WRITE);
	vb_sim_watch(ts_sim(t), NULL, NULL);
	VT_EQ(t, log.count, 1);
	VT_EQ(t, log.first[0], 0);	    /* virtual lane, version */
	VT_EQ(t, log.first[1], 9 << 4 | 2); /* service level 9; a BTH is next */
	VT_EQ(t, log.first[2] << 8 | log.first[3], t->b.port_attr.lid);
	VT_EQ(t, log.first[6] << 8 | log.first[7], t->a.port_attr.lid);
	/* in words of 4 bytes: LRH 8, BTH 12, RETH 16, data and pad 104, ICRC 4; then the VCRC */
	VT_EQ(t, log.first[4] << 8 | log.first[5], (8 + 12 + 16 + 104 + 4) / 4);
	VT_EQ(t, log.first_bytes, 8 + 12 + 16 + 104 + 4 + 2);
}

static void one_file_has_one_link_layer(struct vt *t)
{
	struct vb_sim_config *config = vt_alloc(t, sizeof(*config));
	struct vb_sim *sim;
	char path[] = "/tmp/verbena-both-XXXXXX";
	int fd = mkstemp(path);

	VT_CHECK(t, fd >= 0);
	close(fd);
	config->device_count = 2;
	strcpy(config->devices[0].name, "one");
	strcpy(config->devices[1].name, "two");
	config->devices[1].link_layer = IBV_LINK_LAYER_INFINIBAND;
	sim = VT_PTR(t, vb_sim_open(config));
	VT_EXPECT_ERRNO(t, vb_sim_trace_open(sim, path), ENOTSUP);
	VT_EXPECT_OK(t, vb_sim_close(sim));
	config->trace = path;
	VT_EXPECT_NULL_ERRNO(t, vb_sim_open(config), ENOTSUP);
	config->trace = NULL;
	config->link_count = 1;
	strcpy(config->links[0].a, "one");
	strcpy(config->links[0].b, "two");
	VT_EXPECT_NULL_ERRNO(t, vb_sim_open(config), EINVAL);
	unlink(path);
}

/* An AH that has sent before tells the LID that its port has now. */
static void datagram_tells_the_lid_of_its_port(struct vt *t)
{
	static const uint16_t lids[] = {0x41, 0x42, 0x43};
	struct ts_pair *pair = ts_connected(t, IBV_QPT_UD);
	struct ibv_wc wc;

	for (size_t i = 0; i < TS_COUNT(lids); i++) {
		vt_row(t, "LID 0x%x", lids[i]);
		VT_OK(t, vb_sim_set_lid(t->a.ctx, t->a.port, lids[i]));
		ts_recv(&pair->b, .wr_id = 50, .length = 1000);
		ts_send(&pair->a, .wr_id = 1, .length = 100);
		ts_done(t, pair->a.send_cq, 1, IBV_WC_SEND);
		wc = ts_received(t, pair->b.recv_cq, 50, 100 + TS_GRH);
		VT_EQ(t, wc.slid, lids[i]);
	}
	ts_drain_events(&t->a);
}

static const struct vt_test tests[] = {
	{"ports_have_lids", "ibv_query_port(3)", IB, ports_have_lids},
	{"gid_0_is_the_subnet_and_the_port", "ibv_query_gid_ex(3)", IB,
	 gid_0_is_the_subnet_and_the_port},
	{"bad_address_vectors_are_refused", SRC_QIB "qib_verbs.c, qib_check_ah", WIRE,
	 bad_address_vectors_are_refused},
	{"grh_and_lids_must_be_the_connections", SRC_QIB "qib_ruc.c, qib_ruc_check_hdr", IB_TWO,
	 grh_and_lids_must_be_the_connections},
	{"every_operation_with_a_grh", "ibv_modify_qp(3): ah_attr.is_global", IB,
	 every_operation_with_a_grh},
	{"packets_to_an_unknown_lid_are_lost", "unsourced", IB, packets_to_an_unknown_lid_are_lost},
	{"lid_that_changes", "ibv_get_async_event(3): IBV_EVENT_LID_CHANGE",
	 WIRE | VT_NEEDS_TWO_DEVICES, lid_that_changes},
	{"datagram_without_a_grh", "ibv_poll_cq(3): slid, sl; ibv_init_ah_from_wc(3)", IB,
	 datagram_without_a_grh},
	{"datagram_tells_the_lid_of_its_port", "ibv_poll_cq(3): slid", WIRE | VT_NEEDS_TWO_DEVICES,
	 datagram_tells_the_lid_of_its_port},
	{"datagram_with_a_grh", "ibv_poll_cq(3): IBV_WC_GRH; ibv_init_ah_from_wc(3)", IB,
	 datagram_with_a_grh},
	{"datagram_whose_grh_is_for_another", "unsourced", WIRE, datagram_whose_grh_is_for_another},
	{"group_has_a_lid_and_a_gid", "ibv_attach_mcast(3)", IB, group_has_a_lid_and_a_gid},
	{"group_needs_a_lid_of_groups", SRC_CORE "verbs.c, is_valid_mcast_lid", IB,
	 group_needs_a_lid_of_groups},
	{"frame_begins_with_the_lrh", "verbena/sim.h, vb_sim_watch", WIRE,
	 frame_begins_with_the_lrh},
	{"one_file_has_one_link_layer", "verbena/sim.h, vb_sim_trace_open", VT_NEEDS_SIM,
	 one_file_has_one_link_layer},
	{NULL},
};

const struct vt_suite vt_suite_infiniband = {"infiniband", "ports of the link layer InfiniBand",
					     tests, .link_layer = IBV_LINK_LAYER_INFINIBAND};
