/* SPDX-License-Identifier: MIT */
/*
 * Every field of a completion, for each operation on each QP type: with values that are not the
 * usual ones, for the first message and the second, and with two QPs on one CQ, so that no field can
 * come from another message, another QP or nowhere.
 *
 * ibv_poll_cq(3) promises src_qp, pkey_index, slid, sl and dlid_path_bits for datagrams only. That
 * receives of connections have them, too, is unsourced.
 */
#include "test/conformance/sources.h"
#include "test/support/keep.h"
#include "test/support/linked_pair.h"
#include "test/support/need.h"
#include "test/support/own_world.h"
#include "test/support/window.h"

#include <arpa/inet.h>

#define LINKS	 2
#define MESSAGES 3u

static const struct operation {
	const char *name;
	enum ibv_wr_opcode opcode;
	enum ibv_wc_opcode done, received;
	unsigned int types; /* bits 1 << enum ts_type, of A */
	unsigned int wc_flags;
	bool takes_receive;
	bool fixed; /* 8 bytes long */
} operations[] = {
	{"SEND", IBV_WR_SEND, IBV_WC_SEND, IBV_WC_RECV, ~0u, 0, true, false},
	{"SEND with immediate", IBV_WR_SEND_WITH_IMM, IBV_WC_SEND, IBV_WC_RECV, ~0u,
	 IBV_WC_WITH_IMM, true, false},
	{"WRITE", IBV_WR_RDMA_WRITE, IBV_WC_RDMA_WRITE, 0, ~(1u << TS_TYPE_UD), 0, false, false},
	{"WRITE with immediate", IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WC_RDMA_WRITE,
	 IBV_WC_RECV_RDMA_WITH_IMM, ~(1u << TS_TYPE_UD), IBV_WC_WITH_IMM, true, false},
	{"READ", IBV_WR_RDMA_READ, IBV_WC_RDMA_READ, 0, 1u << TS_TYPE_RC | 1u << TS_TYPE_XRC_SEND,
	 0, false, false},
	{"COMPARE SWAP", IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WC_COMP_SWAP, 0,
	 1u << TS_TYPE_RC | 1u << TS_TYPE_XRC_SEND, 0, false, true},
	{"FETCH ADD", IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WC_FETCH_ADD, 0,
	 1u << TS_TYPE_RC | 1u << TS_TYPE_XRC_SEND, 0, false, true},
	{"ATOMIC WRITE", IBV_WR_ATOMIC_WRITE, IBV_WC_ATOMIC_WRITE, 0,
	 1u << TS_TYPE_RC | 1u << TS_TYPE_XRC_SEND, 0, false, true},
};

/* Connections of one type whose QPs of a node share a CQ. XRC SRQs have CQs of their own. */
struct scene {
	struct vt *t;
	struct ts_link *links[LINKS];
	struct ibv_cq *cq[2]; /* of A and of B */
	enum ts_type type;
};

static uint32_t length_of(const struct operation *op, int link, unsigned int n)
{
	return op->fixed ? 8 : 40u + 100u * (unsigned int)link + 7u * n;
}

static uint32_t imm_of(int link, unsigned int n)
{
	return 0xa0b0c000u + 16u * (unsigned int)link + n;
}

static uint64_t wr_id_of(int link, unsigned int n)
{
	return UINT64_C(0x1234567800000000) + 256u * (unsigned int)link + n;
}

static void share_cq(struct ts_link *link, int which, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr_ex init = {.qp_type = ts_types[link->types[which]]};

	if (link->types[which] == TS_TYPE_XRC_RECV)
		return;
	init.send_cq = init.recv_cq = cq;
	link->ends[which]->send_cq = link->ends[which]->recv_cq = cq;
	ts_remake_qp(link->ends[which], &init);
	link->values[!which].dest_qp_num = link->ends[which]->qp->qp_num;
}

/* The links differ in P_Key index and service level. */
static struct scene begin(struct vt *t, enum ts_type type)
{
	struct scene s = {.t = t, .type = type};

	s.cq[TS_A] = ts_cq(t, &t->a, 200);
	s.cq[TS_B] = ts_cq(t, &t->b, 200);
	for (int i = 0; i < LINKS; i++) {
		struct ts_link *link = s.links[i] = ts_link(t, type);

		share_cq(link, TS_A, s.cq[TS_A]);
		share_cq(link, TS_B, s.cq[TS_B]);
		link->values[TS_A].pkey_index = link->values[TS_B].pkey_index = (uint16_t)(i + 1);
		link->values[TS_A].ah_attr.sl = (uint8_t)(4 * i + 3);
		link->values[TS_B].ah_attr.sl = (uint8_t)(4 * i + 1);
		ts_link_connect(link);
	}
	return s;
}

static void check_send(struct scene *s, const struct operation *op, const struct ibv_wc *wc,
		       int link, unsigned int n)
{
	struct vt *t = s->t;

	VT_EXPECT_EQ(t, wc->wr_id, wr_id_of(link, n));
	VT_EXPECT_STATUS(t, wc->status, IBV_WC_SUCCESS);
	VT_EXPECT_EQ(t, wc->opcode, op->done);
	VT_EXPECT_EQ(t, wc->qp_num, s->links[link]->ends[TS_A]->qp->qp_num);
	VT_EXPECT_EQ(t, wc->wc_flags, 0);
	VT_EXPECT_EQ(t, wc->vendor_err, 0);
	if (op->opcode == IBV_WR_RDMA_READ || op->fixed)
		VT_EXPECT_EQ(t, wc->byte_len, length_of(op, link, n));
}

static void check_receive(struct scene *s, const struct operation *op, const struct ibv_wc *wc,
			  int link, unsigned int n)
{
	const struct ts_link *l = s->links[link];
	const bool ud = s->type == TS_TYPE_UD;
	struct vt *t = s->t;

	VT_EXPECT_EQ(t, wc->wr_id, wr_id_of(link, n) ^ 0xff000000);
	VT_EXPECT_STATUS(t, wc->status, IBV_WC_SUCCESS);
	VT_EXPECT_EQ(t, wc->opcode, op->received);
	VT_EXPECT_EQ(t, wc->byte_len, length_of(op, link, n) + (ud ? TS_GRH : 0));
	VT_EXPECT_EQ(t, wc->qp_num, l->ends[TS_B]->qp->qp_num);
	VT_EXPECT_EQ(t, wc->src_qp, l->ends[TS_A]->qp->qp_num);
	VT_EXPECT_EQ(t, wc->pkey_index, link + 1);
	VT_EXPECT_EQ(t, wc->slid, t->a.port_attr.lid);
	if (t->have & VT_NEEDS_INFINIBAND)
		VT_EXPECT_EQ(t, wc->sl, l->values[TS_A].ah_attr.sl);
	VT_EXPECT_EQ(t, wc->dlid_path_bits, 0);
	VT_EXPECT_EQ(t, wc->vendor_err, 0);
	VT_EXPECT_EQ(t, wc->wc_flags,
		     op->wc_flags | (ud && l->values[TS_A].ah_attr.is_global ? IBV_WC_GRH : 0u));
	if (op->wc_flags & IBV_WC_WITH_IMM)
		VT_EXPECT_EQ(t, ntohl(wc->imm_data), imm_of(link, n));
}

static void post(struct scene *s, const struct operation *op, int link, unsigned int n)
{
	const size_t place = 1024 * ((size_t)n + 8 * (size_t)link);

	if (op->takes_receive)
		TS_LINK_RECV(s->links[link], .wr_id = wr_id_of(link, n) ^ 0xff000000,
			     .offset = place, .length = 1024);
	TS_LINK_POST(s->links[link], op->opcode, .wr_id = wr_id_of(link, n),
		     .offset = 32768 + place, .remote_offset = 32768 + place,
		     .length = length_of(op, link, n), .imm = imm_of(link, n));
}

/* Takes the next completion, which is of one of the links, and returns which link it is. */
static int next(struct scene *s, struct ibv_cq *cq, int which, struct ibv_wc *wc)
{
	memset(wc, 0x5a, sizeof(*wc));
	VT_EQ(s->t, ts_wait(s->t, cq, 1, wc), 1);
	for (int i = 0; i < LINKS; i++)
		if (s->links[i]->ends[which]->qp->qp_num == wc->qp_num)
			return i;
	VT_FAIL(s->t, "a completion has the QPN 0x%x, which is of no QP", wc->qp_num);
}

static void try_operation(struct scene *s, const struct operation *op)
{
	unsigned int sends[LINKS] = {0}, receives[LINKS] = {0};
	struct ibv_wc wc;
	int link;

	for (unsigned int n = 0; n < MESSAGES; n++)
		for (link = 0; link < LINKS; link++)
			post(s, op, link, n);
	for (unsigned int i = 0; i < LINKS * MESSAGES; i++) {
		link = next(s, s->cq[TS_A], TS_A, &wc);
		check_send(s, op, &wc, link, sends[link]++);
	}
	for (unsigned int i = 0; op->takes_receive && i < LINKS * MESSAGES; i++) {
		link = s->links[0]->xrc ? (int)(i / MESSAGES) : next(s, s->cq[TS_B], TS_B, &wc);
		if (s->links[0]->xrc)
			VT_EQ(s->t, next(s, s->links[link]->xrc->cq[0], TS_B, &wc), link);
		check_receive(s, op, &wc, link, receives[link]++);
	}
}

static void try_type(struct vt *t, enum ts_type type, int link_layer)
{
	struct scene s;

	ts_world_of(t, link_layer);
	s = begin(t, type);
	/* Twice: an operation comes behind each other one. */
	for (int round = 0; round < 2; round++)
		for (size_t op = 0; op < TS_COUNT(operations); op++) {
			if (!(operations[op].types & 1u << type))
				continue;
			vt_row(t, "%s, round %d", operations[op].name, round);
			try_operation(&s, &operations[op]);
		}
	vt_row(t, NULL);
}

static void fields_of_rc_on_ethernet(struct vt *t)
{
	try_type(t, TS_TYPE_RC, IBV_LINK_LAYER_ETHERNET);
}

static void fields_of_uc_on_ethernet(struct vt *t)
{
	try_type(t, TS_TYPE_UC, IBV_LINK_LAYER_ETHERNET);
}

static void fields_of_ud_on_ethernet(struct vt *t)
{
	try_type(t, TS_TYPE_UD, IBV_LINK_LAYER_ETHERNET);
}

static void fields_of_xrc_on_ethernet(struct vt *t)
{
	try_type(t, TS_TYPE_XRC_SEND, IBV_LINK_LAYER_ETHERNET);
}

static void fields_of_rc_on_infiniband(struct vt *t)
{
	try_type(t, TS_TYPE_RC, IBV_LINK_LAYER_INFINIBAND);
}

static void fields_of_uc_on_infiniband(struct vt *t)
{
	try_type(t, TS_TYPE_UC, IBV_LINK_LAYER_INFINIBAND);
}

static void fields_of_ud_on_infiniband(struct vt *t)
{
	try_type(t, TS_TYPE_UD, IBV_LINK_LAYER_INFINIBAND);
}

static void fields_of_xrc_on_infiniband(struct vt *t)
{
	try_type(t, TS_TYPE_XRC_SEND, IBV_LINK_LAYER_INFINIBAND);
}

/* SENDs with invalidation between other SENDs: the key, and no key. */
static void invalidated_key_is_told(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;
	struct ibv_mw *mw[2];
	struct ibv_wc wc;

	ts_need_windows(t, IBV_MW_TYPE_2);
	options.mr_access |= IBV_ACCESS_MW_BIND;
	options.one_cq = true;
	pair = ts_pair(t, &options);
	for (uint64_t i = 0; i < 2; i++) {
		mw[i] = ts_mw(&pair->b, IBV_MW_TYPE_2);
		ts_bound(&pair->b, mw[i], .wr_id = 9, .offset = 8192 * i);
	}
	for (uint64_t i = 0; i < 4; i++) {
		ts_recv(&pair->b, .wr_id = 50 + i, .offset = 32768, .length = 64);
		if (i & 1)
			ts_send_inv(&pair->a, .wr_id = i, .length = 10 + (uint32_t)i,
				    .invalidate_rkey = mw[i / 2]->rkey);
		else
			ts_send(&pair->a, .wr_id = i, .length = 10 + (uint32_t)i);
	}
	for (uint64_t i = 0; i < 4; i++) {
		wc = ts_done(t, pair->a.send_cq, i, IBV_WC_SEND);
		VT_EXPECT_EQ(t, wc.qp_num, pair->a.qp->qp_num);
		wc = ts_received(t, pair->b.recv_cq, 50 + i, 10 + (uint32_t)i);
		VT_EXPECT_EQ(t, wc.qp_num, pair->b.qp->qp_num);
		VT_EXPECT_EQ(t, wc.wc_flags, i & 1 ? IBV_WC_WITH_INV : 0u);
		if (i & 1)
			VT_EXPECT_EQ(t, wc.invalidated_rkey, mw[i / 2]->rkey);
	}
}

/* Local operations have an opcode and a QP, too. */
static void local_operations_are_told(struct vt *t)
{
	struct ts_pair *pair;
	struct ibv_mw *mw;
	struct ibv_wc wc;

	ts_need_windows(t, IBV_MW_TYPE_2);
	pair = ts_window_pair(t);
	mw = ts_mw(&pair->b, IBV_MW_TYPE_2);
	for (uint64_t i = 0; i < 3; i++) {
		VT_OK(t, ts_bind(&pair->b, mw, &(struct ts_bind){.wr_id = 10 + i}));
		VT_OK(t, ts_local_inv(&pair->b, 20 + i, mw->rkey));
		wc = ts_done(t, pair->b.send_cq, 10 + i, IBV_WC_BIND_MW);
		VT_EXPECT_EQ(t, wc.qp_num, pair->b.qp->qp_num);
		wc = ts_done(t, pair->b.send_cq, 20 + i, IBV_WC_LOCAL_INV);
		VT_EXPECT_EQ(t, wc.qp_num, pair->b.qp->qp_num);
	}
}

/* Two QPs of one CQ are flushed: each completion has the wr_id and the QPN of its own queue. */
static void flushed_work_names_its_qp(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pairs[2];
	unsigned int seen[2] = {0};
	struct ibv_wc wc;

	options.one_cq = true;
	for (int i = 0; i < 2; i++)
		pairs[i] = ts_pair(t, &options);
	ts_remake_qp(&pairs[1]->a, &(struct ibv_qp_init_attr_ex){.send_cq = pairs[0]->a.send_cq,
								 .recv_cq = pairs[0]->a.send_cq});
	ts_to_init(&pairs[1]->a);
	for (unsigned int n = 0; n < MESSAGES; n++)
		for (int i = 0; i < 2; i++)
			ts_recv(&pairs[i]->a, .wr_id = wr_id_of(i, n), .length = 64);
	for (int i = 0; i < 2; i++)
		VT_OK(t, ts_to(&pairs[i]->a, IBV_QPS_ERR));
	for (unsigned int n = 0; n < 2 * MESSAGES; n++) {
		int i;

		VT_EQ(t, ts_wait(t, pairs[0]->a.send_cq, 1, &wc), 1);
		i = wc.qp_num == pairs[1]->a.qp->qp_num;
		VT_EXPECT_EQ(t, wc.qp_num, pairs[i]->a.qp->qp_num);
		VT_EXPECT_EQ(t, wc.wr_id, wr_id_of(i, seen[i]++));
		VT_EXPECT_STATUS(t, wc.status, IBV_WC_WR_FLUSH_ERR);
	}
}

#define EVERY_FIELD                                                             \
	(IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_IMM | IBV_WC_EX_WITH_QP_NUM | \
	 IBV_WC_EX_WITH_SRC_QP | IBV_WC_EX_WITH_SLID | IBV_WC_EX_WITH_SL |      \
	 IBV_WC_EX_WITH_DLID_PATH_BITS)

/* Reads one completion of an extended CQ as a struct ibv_wc; pkey_index has no reader. */
static struct ibv_wc read_wc(struct ibv_cq_ex *cq, uint16_t pkey_index)
{
	return (struct ibv_wc){
		.wr_id = cq->wr_id,
		.status = cq->status,
		.opcode = ibv_wc_read_opcode(cq),
		.vendor_err = ibv_wc_read_vendor_err(cq),
		.byte_len = ibv_wc_read_byte_len(cq),
		.imm_data = ibv_wc_read_imm_data(cq),
		.qp_num = ibv_wc_read_qp_num(cq),
		.src_qp = ibv_wc_read_src_qp(cq),
		.wc_flags = ibv_wc_read_wc_flags(cq),
		.pkey_index = pkey_index,
		.slid = (uint16_t)ibv_wc_read_slid(cq),
		.sl = ibv_wc_read_sl(cq),
		.dlid_path_bits = ibv_wc_read_dlid_path_bits(cq),
	};
}

/* B receives to an extended CQ, which is read in one batch. */
static void try_extended(struct vt *t, enum ts_type type)
{
	struct ibv_cq_init_attr_ex attr = {.cqe = 200, .wc_flags = EVERY_FIELD};
	struct ibv_cq_ex *ex = TS_PTR_OR_SKIP(t, vb_create_cq_ex(t->b.ctx, &attr));
	struct ibv_poll_cq_attr poll = {0};
	struct scene s = {.t = t, .type = type};
	unsigned int receives[LINKS] = {0};
	const struct operation *op = &operations[1];

	ts_keep(t, TS_CQ, ibv_cq_ex_to_cq(ex));
	s = begin(t, type);
	for (int i = 0; i < LINKS; i++) {
		share_cq(s.links[i], TS_B, ibv_cq_ex_to_cq(ex));
		s.links[i]->ends[TS_B]->recv_cq = s.cq[TS_B];
		ts_link_connect(s.links[i]);
	}
	for (unsigned int n = 0; n < MESSAGES; n++)
		for (int i = 0; i < LINKS; i++)
			post(&s, op, i, n);
	ts_settle(t);
	VT_OK(t, ibv_start_poll(ex, &poll));
	for (unsigned int n = 0; n < LINKS * MESSAGES; n++) {
		const int link = ibv_wc_read_qp_num(ex) == s.links[1]->ends[TS_B]->qp->qp_num;
		const struct ibv_wc wc = read_wc(ex, (uint16_t)(link + 1));

		vt_row(t, "%s, completion %u", ts_type_names[type], n);
		check_receive(&s, op, &wc, link, receives[link]++);
		if (n + 1 < LINKS * MESSAGES)
			VT_EXPECT_ERRNO(t, ibv_next_poll(ex), 0);
	}
	ibv_end_poll(ex);
	vt_row(t, NULL);
}

static void extended_cq_tells_the_same(struct vt *t)
{
	ts_world(t);
	try_extended(t, TS_TYPE_RC);
	try_extended(t, TS_TYPE_UC);
	try_extended(t, TS_TYPE_UD);
}

#define MAN	"ibv_poll_cq(3)"
#define VIRTUAL (VT_NEEDS_SIM | VT_NEEDS_VIRTUAL_CLOCK | VT_NEEDS_MTU_1024)

static const struct vt_test tests[] = {
	{"fields_of_rc_on_ethernet", MAN, VIRTUAL, fields_of_rc_on_ethernet},
	{"fields_of_uc_on_ethernet", MAN, VIRTUAL, fields_of_uc_on_ethernet},
	{"fields_of_ud_on_ethernet", MAN, VIRTUAL, fields_of_ud_on_ethernet},
	{"fields_of_xrc_on_ethernet", MAN, VIRTUAL, fields_of_xrc_on_ethernet},
	{"fields_of_rc_on_infiniband", MAN, VIRTUAL, fields_of_rc_on_infiniband},
	{"fields_of_uc_on_infiniband", MAN, VIRTUAL, fields_of_uc_on_infiniband},
	{"fields_of_ud_on_infiniband", MAN, VIRTUAL, fields_of_ud_on_infiniband},
	{"fields_of_xrc_on_infiniband", MAN, VIRTUAL, fields_of_xrc_on_infiniband},
	{"invalidated_key_is_told", MAN ": IBV_WC_WITH_INV", 0, invalidated_key_is_told},
	{"local_operations_are_told", MAN ": IBV_WC_BIND_MW, IBV_WC_LOCAL_INV", 0,
	 local_operations_are_told},
	{"flushed_work_names_its_qp", MAN ": wr_id, status, qp_num", 0, flushed_work_names_its_qp},
	{"extended_cq_tells_the_same", "ibv_create_cq_ex(3)", VIRTUAL, extended_cq_tells_the_same},
	{NULL},
};

const struct vt_suite vt_suite_wc = {"wc", "fields of completions", tests};
