/* SPDX-License-Identifier: MIT */
/*
 * Unreliable datagrams: the 40 bytes in front of the data, addresses, and what is dropped.
 */
#include "test/conformance/sources.h"
#include "test/support/support.h"

#include <arpa/inet.h>

static void each_size(struct vt *t)
{
	uint32_t bytes = ts_mtu_bytes(t->a.port_attr.active_mtu);
	const uint32_t sizes[] = {0, 1, 3, 255, 256, 257, bytes - 1, bytes};
	struct ts_pair *pair = ts_connected(t, IBV_QPT_UD);
	size_t i;

	for (i = 0; i < TS_COUNT(sizes); i++) {
		vt_row(t, "%u bytes", sizes[i]);
		ts_transfer(pair, IBV_WR_SEND, sizes[i]);
		ts_transfer(pair, IBV_WR_SEND_WITH_IMM, sizes[i]);
	}
}

static void longer_than_the_mtu_is_not_sent(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_UD);
	uint32_t bytes = ts_mtu_bytes(t->a.port_attr.active_mtu) + 1;

	ts_recv(&pair->b, .wr_id = 5, .length = bytes + TS_GRH);
	ts_send(&pair->a, .wr_id = 1, .length = bytes);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_SEND);
	ts_no_more(t, pair->b.recv_cq);
	ts_state(&pair->a, IBV_QPS_RTS);
}

static void pieces_on_both_sides(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_UD);
	uint8_t *a = pair->a.buffer, *b = pair->b.buffer;
	struct ibv_sge from[3] = {{(uintptr_t)a, 7, pair->a.mr->lkey},
				  {(uintptr_t)a + 7, 0, pair->a.mr->lkey},
				  {(uintptr_t)a + 7, 93, pair->a.mr->lkey}};
	struct ibv_sge to[3] = {{(uintptr_t)b + 1000, 13, pair->b.mr->lkey},
				{(uintptr_t)b + 2000, 27 + 11, pair->b.mr->lkey},
				{(uintptr_t)b + 3000, 89, pair->b.mr->lkey}};

	ts_recv(&pair->b, .wr_id = 5, .sge = to, .num_sge = 3);
	ts_send(&pair->a, .wr_id = 1, .sge = from, .num_sge = 3);
	ts_received(t, pair->b.recv_cq, 5, 100 + TS_GRH);
	memmove(b, b + 2027, 11);
	memmove(b + 11, b + 3000, 89);
	ts_verify(t, b, 100, 1);
	ts_blank(t, b + 3089, 50);
}

static void completion_names_the_sender(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_UD);
	struct ibv_wc wc;

	ts_recv(&pair->b, .wr_id = 5, .length = 100);
	ts_send(&pair->a, .wr_id = 1, .length = 10);
	wc = ts_received(t, pair->b.recv_cq, 5, 10 + TS_GRH);
	VT_EQ(t, wc.src_qp, pair->a.qp->qp_num);
	VT_EQ(t, wc.qp_num, pair->b.qp->qp_num);
	if (t->a.port_attr.link_layer == IBV_LINK_LAYER_ETHERNET)
		VT_CHECK(t, wc.wc_flags & IBV_WC_GRH);
	else
		VT_EQ(t, wc.slid, t->a.port_attr.lid);
}

static uint16_t checksum(const uint8_t *bytes, size_t length_bytes)
{
	uint32_t sum = 0;
	size_t i;

	for (i = 0; i < length_bytes; i += 2)
		sum += (uint32_t)bytes[i] << 8 | bytes[i + 1];
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

static void ipv4_header_is_in_the_last_20_bytes_of_the_grh(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_UD);
	const uint8_t *ip = pair->b.buffer + 20;

	if (!ts_gid_is_ipv4(&t->a.gid) || !ts_gid_is_ipv4(&t->b.gid))
		VT_SKIP(t, "the nodes have no IPv4 addresses");
	ts_recv(&pair->b, .wr_id = 5, .length = 1000);
	ts_send(&pair->a, .wr_id = 1, .length = 101);
	ts_received(t, pair->b.recv_cq, 5, 101 + TS_GRH);
	VT_EQ(t, ip[0], 0x45);
	VT_EQ(t, ip[9], 17);
	/* UDP 8, BTH 12, DETH 8, data and pad, ICRC 4 */
	VT_EQ(t, ip[2] << 8 | ip[3], 20 + 8 + 12 + 8 + 104 + 4);
	VT_EQ_MEM(t, ip + 12, t->a.gid.raw + 12, 4);
	VT_EQ_MEM(t, ip + 16, t->b.gid.raw + 12, 4);
	VT_EQ(t, checksum(ip, 20), 0);
	ts_verify(t, pair->b.buffer + TS_GRH, 101, 1);
}

static void ipv6_header_is_the_grh(struct vt *t)
{
	struct ts_pair *pair;
	const uint8_t *ip;

	ts_use_ipv6(t);
	pair = ts_connected(t, IBV_QPT_UD);
	ip = pair->b.buffer;
	ts_recv(&pair->b, .wr_id = 5, .length = 1000);
	ts_send(&pair->a, .wr_id = 1, .length = 101);
	ts_received(t, pair->b.recv_cq, 5, 101 + TS_GRH);
	VT_EQ(t, ip[0] >> 4, 6);
	VT_EQ(t, ip[4] << 8 | ip[5], 8 + 12 + 8 + 104 + 4);
	VT_EQ_MEM(t, ip + 8, t->a.gid.raw, 16);
	VT_EQ_MEM(t, ip + 24, t->b.gid.raw, 16);
	ts_verify(t, pair->b.buffer + TS_GRH, 101, 1);
}

/* Answers the datagram in B's buffer through an AH made from its completion. */
static void answer(struct ts_pair *pair, struct ibv_wc *wc)
{
	struct vt *t = pair->a.t;
	struct ibv_grh *grh = (void *)pair->b.buffer;
	struct ibv_ah *ah = VT_PTR(t, vb_create_ah_from_wc(pair->b.pd, wc, grh, t->b.port));
	struct ibv_ah *own = pair->b.ah;

	pair->b.ah = ah;
	ts_recv(&pair->a, .wr_id = 6, .offset = 2000, .length = 1000);
	ts_send(&pair->b, .wr_id = 2, .offset = TS_GRH, .length = 100, .remote_qpn = wc->src_qp);
	ts_done(t, pair->b.send_cq, 2, IBV_WC_SEND);
	ts_received(t, pair->a.recv_cq, 6, 100 + TS_GRH);
	ts_verify(t, pair->a.buffer + 2000 + TS_GRH, 100, 1);
	pair->b.ah = own;
	VT_OK(t, vb_destroy_ah(ah));
}

static void ask_and_answer(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_UD);
	struct ibv_wc wc;

	ts_recv(&pair->b, .wr_id = 5, .length = 1000);
	ts_send(&pair->a, .wr_id = 1, .length = 100);
	wc = ts_received(t, pair->b.recv_cq, 5, 100 + TS_GRH);
	answer(pair, &wc);
}

static void ah_from_a_completion_reaches_the_sender(struct vt *t)
{
	ask_and_answer(t);
}

static void ah_from_a_completion_over_ipv6(struct vt *t)
{
	ts_use_ipv6(t);
	ask_and_answer(t);
}

static void ah_attributes_from_a_completion(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_UD);
	struct ibv_ah_attr attr;
	struct ibv_wc wc;

	ts_recv(&pair->b, .wr_id = 5, .length = 1000);
	ts_send(&pair->a, .wr_id = 1, .length = 100);
	wc = ts_received(t, pair->b.recv_cq, 5, 100 + TS_GRH);
	memset(&attr, 0xff, sizeof(attr));
	VT_OK(t, vb_init_ah_from_wc(t->b.ctx, t->b.port, &wc, (void *)pair->b.buffer, &attr));
	VT_EQ(t, attr.port_num, t->b.port);
	VT_EQ(t, attr.is_global, 1);
	VT_EQ(t, attr.grh.sgid_index, t->b.gid_index);
	VT_EQ_MEM(t, &attr.grh.dgid, &t->a.gid, sizeof(t->a.gid));
}

/* The datagram of wr_id 1 is dropped, and receive 5 takes the next datagram. */
static void expect_dropped(struct ts_pair *pair)
{
	struct vt *t = pair->a.t;

	ts_done(t, pair->a.send_cq, 1, IBV_WC_SEND);
	ts_no_more(t, pair->b.recv_cq);
	ts_no_event(t, &t->b);
	ts_state(&pair->b, IBV_QPS_RTS);
}

static void wrong_qkey_is_dropped(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_UD);

	ts_recv(&pair->b, .wr_id = 5, .length = 1000);
	ts_send(&pair->a, .wr_id = 1, .length = 100, .remote_qkey = TS_QKEY + 1);
	expect_dropped(pair);
	ts_send(&pair->a, .wr_id = 2, .length = 50);
	ts_received(t, pair->b.recv_cq, 5, 50 + TS_GRH);
}

static void datagram_without_a_receive_is_dropped(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_UD);

	ts_send(&pair->a, .wr_id = 1, .length = 100);
	expect_dropped(pair);
	ts_transfer(pair, IBV_WR_SEND, 100);
}

static void datagram_longer_than_the_receive_is_dropped(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_UD);

	ts_recv(&pair->b, .wr_id = 5, .length = 100 + TS_GRH);
	ts_send(&pair->a, .wr_id = 1, .length = 101);
	expect_dropped(pair);
	ts_send(&pair->a, .wr_id = 2, .length = 100);
	ts_received(t, pair->b.recv_cq, 5, 100 + TS_GRH);
}

static void datagram_to_no_qp_is_dropped(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_UD);

	ts_recv(&pair->b, .wr_id = 5, .length = 1000);
	ts_send(&pair->a, .wr_id = 1, .length = 100, .remote_qpn = 0xfffff0);
	expect_dropped(pair);
}

static void qkey_with_the_high_bit_sends_the_qps_own(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_UD);

	ts_recv(&pair->b, .wr_id = 5, .length = 1000);
	ts_send(&pair->a, .wr_id = 1, .length = 100, .remote_qkey = 0x80001234);
	ts_received(t, pair->b.recv_cq, 5, 100 + TS_GRH);
}

static void qp_in_rtr_receives(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_UD);
	struct ts_pair *pair = ts_pair_reset(t, &options);

	ts_connect(&pair->a);
	ts_to_init(&pair->b);
	ts_recv(&pair->b, .wr_id = 5, .length = 1000);
	ts_to_rtr(&pair->b);
	ts_send(&pair->a, .wr_id = 1, .length = 100);
	ts_received(t, pair->b.recv_cq, 5, 100 + TS_GRH);
}

static void many_senders_one_receiver(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_UD);
	struct ts_end *to = ts_end(t, &t->b, &options);
	struct ts_end *from[6];
	unsigned int i;

	ts_connect(to);
	for (i = 0; i < 6; i++) {
		from[i] = ts_end(t, &t->a, &options);
		ts_connect(from[i]);
		from[i]->peer = to;
		from[i]->ah = ts_ah(t, from[i]->pd, &t->a, &t->b);
		ts_recv(to, .wr_id = 50 + i, .offset = 200 * i, .length = 200);
	}
	for (i = 0; i < 6; i++) {
		ts_fill(from[i]->buffer, 100, 70 + i);
		ts_send(from[i], .wr_id = i, .length = 100);
		ts_done(t, from[i]->send_cq, i, IBV_WC_SEND);
		VT_EQ(t, ts_received(t, to->recv_cq, 50 + i, 100 + TS_GRH).src_qp,
		      from[i]->qp->qp_num);
		ts_verify(t, to->buffer + 200 * i + TS_GRH, 100, 70 + i);
	}
}

static void qp_sends_to_itself(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_UD);
	struct ts_end *end = ts_end(t, &t->a, &options);

	ts_connect(end);
	ts_recv(end, .wr_id = 5, .offset = 1000, .length = 200);
	ts_send(end, .wr_id = 1, .length = 100);
	ts_done(t, end->send_cq, 1, IBV_WC_SEND);
	VT_EQ(t, ts_received(t, end->recv_cq, 5, 100 + TS_GRH).src_qp, end->qp->qp_num);
	ts_verify(t, end->buffer + 1000 + TS_GRH, 100, 1);
}

static const struct vt_test tests[] = {
	{"each_size", "ibv_post_recv(3), Notes: 40 bytes in front", 0, each_size},
	{"longer_than_the_mtu_is_not_sent",
	 "C10-93.1.1, quoted in " SRC_RXE "rxe_req.c, rxe_requester", 0,
	 longer_than_the_mtu_is_not_sent},
	{"pieces_on_both_sides", "ibv_post_recv(3), Notes: the first 40 bytes of the buffer(s)", 0,
	 pieces_on_both_sides},
	{"completion_names_the_sender", "ibv_poll_cq(3): src_qp, IBV_WC_GRH, slid", 0,
	 completion_names_the_sender},
	{"ipv4_header_is_in_the_last_20_bytes_of_the_grh",
	 SRC_CORE "verbs.c, ib_get_rdma_header_version", VT_NEEDS_ETHERNET,
	 ipv4_header_is_in_the_last_20_bytes_of_the_grh},
	{"ipv6_header_is_the_grh", "ibv_post_recv(3), Notes", VT_NEEDS_ETHERNET,
	 ipv6_header_is_the_grh},
	{"ah_from_a_completion_reaches_the_sender", "ibv_create_ah_from_wc(3)", 0,
	 ah_from_a_completion_reaches_the_sender},
	{"ah_from_a_completion_over_ipv6", "ibv_create_ah_from_wc(3)", VT_NEEDS_ETHERNET,
	 ah_from_a_completion_over_ipv6},
	{"ah_attributes_from_a_completion", "ibv_init_ah_from_wc(3)", VT_NEEDS_ETHERNET,
	 ah_attributes_from_a_completion},
	{"wrong_qkey_is_dropped", SRC_RXE "rxe_recv.c, check_keys", 0, wrong_qkey_is_dropped},
	{"datagram_without_a_receive_is_dropped",
	 SRC_RXE "rxe_resp.c, rxe_responder: ERR_RNR on UD, class D", 0,
	 datagram_without_a_receive_is_dropped},
	{"datagram_longer_than_the_receive_is_dropped",
	 SRC_QIB "qib_ud.c, qib_ud_rcv: RVT_R_REUSE_SGE", 0,
	 datagram_longer_than_the_receive_is_dropped},
	{"datagram_to_no_qp_is_dropped", SRC_QIB "qib_ud.c, qib_ud_loopback: drop", 0,
	 datagram_to_no_qp_is_dropped},
	{"qkey_with_the_high_bit_sends_the_qps_own",
	 SRC_QIB "qib_ud.c, qib_make_ud_req: \"Qkeys with the high order bit set\"", 0,
	 qkey_with_the_high_bit_sends_the_qps_own},
	{"qp_in_rtr_receives", SRC_STATE_OPS ": RTR", 0, qp_in_rtr_receives},
	{"many_senders_one_receiver", "ibv_poll_cq(3): src_qp", 0, many_senders_one_receiver},
	{"qp_sends_to_itself", "unsourced", 0, qp_sends_to_itself},
	{NULL},
};

const struct vt_suite vt_suite_ud = {"ud", "unreliable datagrams", tests};
