/* SPDX-License-Identifier: MIT */
/* Quirks of datagrams. */
#include "test/conformance/sources.h"
#include "test/support/keep.h"
#include "test/support/quirks.h"

static void long_datagrams_fail(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_UD);
	uint32_t bytes = ts_mtu_bytes(t->a.port_attr.active_mtu) + 1;

	ts_quirks(t, "long_datagrams_fail", NULL);
	ts_recv(&pair->b, .wr_id = 5, .length = bytes + TS_GRH);
	ts_send(&pair->a, .wr_id = 1, .length = bytes);
	ts_failed(t, pair->a.send_cq, 1, IBV_WC_LOC_LEN_ERR);
	ts_no_more(t, pair->b.recv_cq);
	ts_state(&pair->a, IBV_QPS_SQE);
}

static void short_datagram_receive_fails(struct vt *t)
{
	struct ts_pair *pair;

	ts_quirks(t, "short_datagram_receive_fails", NULL);
	pair = ts_connected(t, IBV_QPT_UD);
	ts_recv(&pair->b, .wr_id = 50, .length = 100);
	ts_recv(&pair->b, .wr_id = 51, .length = 200);
	ts_send(&pair->a, .wr_id = 1, .length = 100);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_SEND);
	ts_failed(t, pair->b.recv_cq, 50, IBV_WC_LOC_QP_OP_ERR);
	ts_flushed(t, pair->b.recv_cq, 51);
	ts_state(&pair->b, IBV_QPS_ERR);
}

static void high_qkey_is_sent(struct vt *t)
{
	struct ts_pair *pair;

	ts_quirks(t, "high_qkey_is_sent", NULL);
	pair = ts_connected(t, IBV_QPT_UD);
	ts_recv(&pair->b, .wr_id = 5, .length = 1000);
	ts_send(&pair->a, .wr_id = 1, .length = 100, .remote_qkey = TS_QKEY | 0x80000000);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_SEND);
	ts_no_more(t, pair->b.recv_cq);
}

static void own_datagrams_lack_checksum(struct vt *t)
{
	const struct ts_options options = ts_defaults(t, IBV_QPT_UD);
	struct ts_pair *pair;
	struct ts_end *self;

	ts_quirks(t, "own_datagrams_lack_checksum", NULL);
	self = ts_end(t, &t->a, &options);
	ts_connect(self);
	ts_recv(self, .wr_id = 5, .offset = 1000, .length = 1000);
	ts_send(self, .wr_id = 1, .length = 100);
	ts_received(t, self->recv_cq, 5, 100 + TS_GRH);
	VT_EQ(t, self->buffer[1030] | self->buffer[1031], 0);
	if (!(t->have & VT_NEEDS_TWO_DEVICES))
		return;
	pair = ts_connected(t, IBV_QPT_UD);
	ts_recv(&pair->b, .wr_id = 5, .length = 1000);
	ts_send(&pair->a, .wr_id = 1, .length = 100);
	ts_received(t, pair->b.recv_cq, 5, 100 + TS_GRH);
	VT_CHECK(t, (pair->b.buffer[30] | pair->b.buffer[31]) != 0);
}

static void leave_group(void *arg)
{
	struct ts_end *end = arg;
	const union ibv_gid group = {.raw = {[10] = 0xff, 0xff, 239, 1, 1, 1}};

	vb_detach_mcast(end->qp, &group, 0);
}

static void multicast_leaves_device(struct vt *t)
{
	const union ibv_gid group = {.raw = {[10] = 0xff, 0xff, 239, 1, 1, 1}};
	struct ts_options options = ts_defaults(t, IBV_QPT_UD);
	struct ibv_ah_attr attr = ts_av(&t->a, &t->a);
	struct ts_end *ends[2];
	int i;

	ts_quirks(t, "multicast_leaves_device", NULL);
	for (i = 0; i < 2; i++) {
		ends[i] = ts_end(t, i ? &t->b : &t->a, &options);
		ts_connect(ends[i]);
		VT_OK(t, vb_attach_mcast(ends[i]->qp, &group, 0));
		vt_defer(t, leave_group, ends[i]);
		ts_recv(ends[i], .wr_id = 5, .offset = 1000, .length = 1000);
	}
	attr.grh.dgid = group;
	VT_OK(t, vb_destroy_ah(ends[0]->ah));
	ts_gone(t, ends[0]->ah);
	ends[0]->ah = VT_PTR(t, vb_create_ah(ends[0]->pd, &attr));
	ts_send(ends[0], .wr_id = 1, .length = 100, .remote_qpn = TS_MULTICAST_QPN);
	ts_done(t, ends[0]->send_cq, 1, IBV_WC_SEND);
	VT_OK(t, vb_destroy_ah(ends[0]->ah));
	ts_no_more(t, ends[0]->recv_cq);
	if (t->have & VT_NEEDS_TWO_DEVICES)
		ts_received(t, ends[1]->recv_cq, 5, 100 + TS_GRH);
}

static void foreign_ahs_end_sends(struct vt *t)
{
	struct ibv_send_wr wr, *bad;
	struct ts_pair *pair;
	struct ibv_sge sge;

	ts_quirks(t, "foreign_ahs_end_sends", NULL);
	pair = ts_connected(t, IBV_QPT_UD);
	ts_fill_wr(&pair->a, &(struct ts_wr){.wr_id = 1, .length = 8}, &sge, &wr);
	wr.opcode = IBV_WR_SEND;
	wr.wr.ud.ah = ts_ah(t, ts_pd(t, &t->a), &t->a, &t->b);
	VT_OK(t, ibv_post_send(pair->a.qp, &wr, &bad));
	ts_failed(t, pair->a.send_cq, 1, IBV_WC_LOC_QP_OP_ERR);
	ts_state(&pair->a, IBV_QPS_SQE);
}

/* RoCE v2 over both families; the service level of the AH is 0. suite_mlx5.c has RoCE v1. */
static void sl_is_packet_type(struct vt *t)
{
	struct ts_pair *pair;
	unsigned int ipv6;

	ts_quirks(t, "sl_is_packet_type", NULL);
	for (ipv6 = 0; ipv6 < 2; ipv6++) {
		if (ipv6)
			ts_use_ipv6(t);
		pair = ts_connected(t, IBV_QPT_UD);
		ts_recv(&pair->b, .wr_id = 5, .length = 1000);
		ts_send(&pair->a, .wr_id = 1, .length = 100);
		VT_EQ(t, ts_received(t, pair->b.recv_cq, 5, 100 + TS_GRH).sl,
		      ts_gid_is_ipv4(&t->a.gid) ? 10 : 9);
	}
	pair = ts_connected(t, IBV_QPT_RC);
	ts_recv(&pair->b, .wr_id = 5, .length = 1000);
	ts_send(&pair->a, .wr_id = 1, .length = 100);
	VT_EQ(t, ts_received(t, pair->b.recv_cq, 5, 100).sl, 0);
}

static void sl_stays_on_infiniband(struct vt *t)
{
	struct ts_pair *pair;

	ts_quirks(t, "sl_is_packet_type", NULL);
	pair = ts_connected(t, IBV_QPT_UD);
	ts_recv(&pair->b, .wr_id = 5, .length = 1000);
	ts_send(&pair->a, .wr_id = 1, .length = 100);
	VT_EQ(t, ts_received(t, pair->b.recv_cq, 5, 100 + TS_GRH).sl, 0);
}

static const struct vt_test tests[] = {
	{"long_datagrams_fail", "unsourced", VT_NEEDS_SIM, long_datagrams_fail},
	{"short_datagram_receive_fails", MEASURED_6_1, VT_NEEDS_SIM, short_datagram_receive_fails},
	{"foreign_ahs_end_sends",
	 FOUND_BOTH
	 "; \"an error CQE\": Shanley, InfiniBand Network Architecture, ch. 20, PD Check",
	 VT_NEEDS_SIM, foreign_ahs_end_sends},
	{"high_qkey_is_sent", MEASURED_BOTH, VT_NEEDS_SIM, high_qkey_is_sent},
	{"sl_is_packet_type",
	 SRC_UCX
	 "src/uct/ib/ud/base/ud_iface.h, uct_ud_iface_check_grh: \"sl represents RoCE packet "
	 "type\"",
	 VT_NEEDS_SIM | VT_NEEDS_ETHERNET, sl_is_packet_type},
	{"sl_stays_on_infiniband", "ibv_poll_cq(3): sl", VT_NEEDS_SIM | VT_NEEDS_INFINIBAND,
	 sl_stays_on_infiniband},
	{"own_datagrams_lack_checksum", MEASURED_BOTH, VT_NEEDS_SIM | VT_NEEDS_ETHERNET,
	 own_datagrams_lack_checksum},
	{"multicast_leaves_device", MEASURED_BOTH, VT_NEEDS_SIM | VT_NEEDS_ETHERNET,
	 multicast_leaves_device},
	{NULL},
};

const struct vt_suite vt_suite_quirks_ud = {"quirks_ud", "quirks: datagrams", tests,
					    .simulator = true};
