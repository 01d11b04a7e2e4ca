/* SPDX-License-Identifier: MIT */
/* Quirks of acknowledgements. */
#include "test/conformance/sources.h"
#include "test/support/quirks.h"

/* A starts at its first PSN again, so B takes its write for a duplicate and acknowledges it. */
static void acks_of_unsent_complete(struct vt *t)
{
	struct ts_pair *pair;
	int i;

	ts_quirks(t, "acks_of_unsent_complete", NULL);
	pair = ts_connected(t, IBV_QPT_RC);
	for (i = 0; i < 3; i++) {
		ts_write(&pair->a, .wr_id = 1, .length = 8);
		ts_done(t, pair->a.send_cq, 1, IBV_WC_RDMA_WRITE);
	}
	VT_OK(t, ts_to(&pair->a, IBV_QPS_RESET));
	ts_connect(&pair->a);
	ts_write(&pair->a, .wr_id = 2, .length = 8, .remote_offset = 1000);
	ts_done(t, pair->a.send_cq, 2, IBV_WC_RDMA_WRITE);
	ts_blank(t, pair->b.buffer + 1000, 8);
}

/* A pair in which A sends its first packet with one PSN and B expects another. */
static struct ts_pair *with_psns(struct vt *t, const struct ts_options *options, uint32_t sent,
				 uint32_t expected)
{
	struct ts_pair *pair = ts_pair_reset(t, options);

	pair->a.send_psn = sent;
	pair->b.recv_psn = expected;
	ts_connect_both(pair);
	return pair;
}

/* A writes 8 packets from PSN 0xfffffe on, and never repeats; B expects a later PSN. */
static void fail_from_psn(struct vt *t, uint32_t expected, enum ibv_wc_status status)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;

	ts_quirks(t, "acks_of_unsent_complete", "acks_of_old_connections");
	options.mtu = IBV_MTU_256;
	options.timeout = 8;
	options.retry_cnt = 0;
	pair = with_psns(t, &options, 0xfffffe, expected);
	ts_write(&pair->a, .wr_id = 1, .length = 2000);
	ts_failed(t, pair->a.send_cq, 1, status);
}

/*
 * B takes the first packet for a duplicate, and its ACK names the PSN of the second. The second
 * packet is a MIDDLE without a FIRST, but A ignores the NAK for a PSN that was acknowledged.
 */
static void nak_of_an_acknowledged_psn_is_ignored(struct vt *t)
{
	fail_from_psn(t, 0xffffff, IBV_WC_RETRY_EXC_ERR);
}

/* B takes two packets for duplicates. The ACK names the second one's PSN, so the NAK for the third
 * one's PSN counts. */
static void nak_of_the_next_psn_counts(struct vt *t)
{
	fail_from_psn(t, 0, IBV_WC_REM_INV_REQ_ERR);
}

/*
 * B's ACK for the duplicate names a PSN of the old connection, beyond the message. A ignores such
 * an ACK while it is sending the message, so the NAK that follows ends the message.
 */
static void nak_within_a_message_counts(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;

	ts_quirks(t, "acks_of_unsent_complete", "acks_of_old_connections");
	options.mtu = IBV_MTU_256;
	pair = with_psns(t, &options, 0x4000, 0x4000);
	ts_write(&pair->a, .wr_id = 1, .length = 8);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_RDMA_WRITE);
	VT_OK(t, ts_to(&pair->a, IBV_QPS_RESET));
	VT_OK(t, ts_to(&pair->b, IBV_QPS_RESET));
	pair->a.send_psn = 0x1000;
	pair->b.recv_psn = 0x1003;
	ts_connect_both(pair);
	ts_write(&pair->a, .wr_id = 2, .length = 2000);
	ts_failed(t, pair->a.send_cq, 2, IBV_WC_REM_INV_REQ_ERR);
}

/*
 * Posts a write that B takes for a duplicate and a second WR. B acknowledges the write with the
 * last PSN of an old connection, which is the PSN of the second WR.
 */
static struct ts_pair *after_a_duplicate(struct vt *t, enum ibv_wr_opcode second,
					 uint32_t rkey_flip)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ibv_send_wr wrs[2], *bad;
	struct ibv_sge sges[2];
	struct ts_pair *pair;

	ts_quirks(t, "acks_of_unsent_complete", "acks_of_old_connections");
	options.retry_cnt = 0;
	pair = with_psns(t, &options, 0xfffffe, 0xffffff);
	for (int i = 0; i < 2; i++) {
		ts_fill_wr(&pair->a, &(struct ts_wr){.wr_id = 1 + i, .length = 8}, &sges[i],
			   &wrs[i]);
		wrs[i].opcode = i ? second : IBV_WR_RDMA_WRITE;
		wrs[i].wr.rdma.rkey = pair->b.mr->rkey ^ (i ? rkey_flip : 0);
		wrs[i].wr.rdma.remote_addr = (uintptr_t)pair->b.buffer;
	}
	wrs[0].next = &wrs[1];
	VT_OK(t, ibv_post_send(pair->a.qp, wrs, &bad));
	ts_done(t, pair->a.send_cq, 1, IBV_WC_RDMA_WRITE);
	return pair;
}

/* A had not sent the READ when the ACK for its PSN came. */
static void nak_after_an_early_ack_counts(struct vt *t)
{
	struct ts_pair *pair = after_a_duplicate(t, IBV_WR_RDMA_READ, 0x5500);

	ts_failed(t, pair->a.send_cq, 2, IBV_WC_REM_ACCESS_ERR);
}

static void ack_after_an_early_ack_counts(struct vt *t)
{
	struct ts_pair *pair = after_a_duplicate(t, IBV_WR_RDMA_WRITE, 0);

	ts_done(t, pair->a.send_cq, 2, IBV_WC_RDMA_WRITE);
}

/* Once B has done an atomic, it acknowledges duplicates with the PSN of the atomic. */
static void duplicates_are_acknowledged_up_to_the_atomic(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;

	ts_quirks(t, "acks_of_unsent_complete", "acks_of_old_connections");
	options.mtu = IBV_MTU_256;
	pair = with_psns(t, &options, 0xfffffe, 0xfffffe);
	ts_fetch_add(&pair->a, .wr_id = 1, .rkey = pair->b.mr->rkey);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_FETCH_ADD);
	VT_OK(t, ts_to(&pair->a, IBV_QPS_RESET));
	ts_connect(&pair->a);
	ts_write(&pair->a, .wr_id = 2, .length = 600);
	ts_failed(t, pair->a.send_cq, 2, IBV_WC_REM_INV_REQ_ERR);
}

/* B expects the PSN behind the one that A sends, and has done no request since it was connected. */
static void acks_of_old_connections(struct vt *t)
{
	const struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;

	ts_quirks(t, "acks_of_old_connections", NULL);
	pair = ts_pair_reset(t, &options);
	pair->b.recv_psn++;
	ts_connect_both(pair);
	ts_write(&pair->a, .wr_id = 1, .length = 8);
	ts_failed(t, pair->a.send_cq, 1, IBV_WC_RETRY_EXC_ERR);
	ts_blank(t, pair->b.buffer, 8);
}

static const struct vt_test tests[] = {
	{"acks_of_unsent_complete", FOUND_BOTH "; " SRC_RXE "rxe_comp.c, check_psn", VT_NEEDS_SIM,
	 acks_of_unsent_complete, VT_MAY_RECONNECT},
	{"nak_of_an_acknowledged_psn_is_ignored", FOUND_BOTH "; " SRC_RXE "rxe_comp.c, check_psn",
	 VT_NEEDS_SIM, nak_of_an_acknowledged_psn_is_ignored, VT_MAY_MISTAKE_PSN},
	{"nak_of_the_next_psn_counts", SRC_RXE "rxe_comp.c, check_psn", VT_NEEDS_SIM,
	 nak_of_the_next_psn_counts, VT_MAY_MISTAKE_PSN},
	{"nak_within_a_message_counts", FOUND_6_1 "; " SRC_RXE "rxe_comp.c, check_psn",
	 VT_NEEDS_SIM, nak_within_a_message_counts, VT_MAY_RECONNECT | VT_MAY_MISTAKE_PSN},
	{"nak_after_an_early_ack_counts", FOUND_6_1 "; " SRC_RXE "rxe_comp.c, check_psn",
	 VT_NEEDS_SIM, nak_after_an_early_ack_counts, VT_MAY_RECONNECT | VT_MAY_MISTAKE_PSN},
	{"ack_after_an_early_ack_counts", FOUND_6_1 "; " SRC_RXE "rxe_comp.c, check_psn",
	 VT_NEEDS_SIM, ack_after_an_early_ack_counts, VT_MAY_RECONNECT | VT_MAY_MISTAKE_PSN},
	{"acks_of_old_connections", MEASURED_BOTH "; " SRC_RXE "rxe_resp.c, duplicate_request",
	 VT_NEEDS_SIM, acks_of_old_connections, VT_MAY_RECONNECT},
	{"duplicates_are_acknowledged_up_to_the_atomic",
	 FOUND_6_1 "; " SRC_RXE "rxe_resp.c, atomic_reply", VT_NEEDS_SIM,
	 duplicates_are_acknowledged_up_to_the_atomic, VT_MAY_RECONNECT | VT_MAY_MISTAKE_PSN},
	{NULL},
};

const struct vt_suite vt_suite_quirks_ack = {"quirks_ack", "quirks: acknowledgements", tests,
					     .simulator = true};
