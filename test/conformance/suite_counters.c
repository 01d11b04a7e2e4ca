/* SPDX-License-Identifier: MIT */
/*
 * Counters, by the names that SoftRoCE gives them. Each test knows by how much they move.
 */
#include "test/support/quirks.h"
#include "test/support/support.h"

#include <verbena/fault.h>
#include <verbena/sim.h>

#define MTU_BYTES 256

static uint64_t count(struct vt_node *node, const char *name)
{
	uint64_t value = UINT64_MAX;

	if (vb_sim_counter(node->ctx, name, &value))
		return UINT64_MAX;
	return value;
}

#define COUNTED(t, node, name, want) VT_EXPECT_EQ(t, count(node, name), want)

static struct vb_sim_counters all_of(struct vt *t, struct vt_node *node)
{
	struct vb_sim_counters counters;

	VT_OK(t, vb_sim_counters(node->ctx, &counters));
	return counters;
}

static void names_are_those_of_the_kernel(struct vt *t)
{
	static const char *const names[] = {
		"sent_pkts",	       "rcvd_pkts",
		"duplicate_request",   "out_of_seq_request",
		"rcvd_rnr_err",	       "send_rnr_err",
		"rcvd_seq_err",	       "ack_deferred",
		"retry_exceeded_err",  "retry_rnr_exceeded_err",
		"completer_retry_err", "send_err",
		"link_downed",	       "rdma_sends",
		"rdma_recvs",
	};
	const char *about = NULL;
	uint64_t value;
	unsigned int i;

	for (i = 0; i < TS_COUNT(names); i++) {
		vt_row(t, "%s", names[i]);
		VT_EQ_STR(t, vb_sim_counter_name(i, &about), names[i]);
		VT_CHECK(t, about && *about);
		COUNTED(t, &t->a, names[i], 0);
	}
	VT_CHECK(t, !vb_sim_counter_name(i, NULL));
	VT_ERRNO(t, vb_sim_counter(t->a.ctx, "sent_packets", &value), EINVAL);
}

static struct ts_pair *narrow(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);

	ts_prompt(t);
	options.mtu = IBV_MTU_256;
	return ts_pair(t, &options);
}

/* Requests go one way, their acknowledgements the other. */
static void packets_of_both_ways(struct vt *t)
{
	struct ts_pair *pair = narrow(t);
	unsigned int i;

	for (i = 0; i < 3; i++)
		ts_transfer(pair, IBV_WR_SEND, 4 * MTU_BYTES);
	COUNTED(t, &t->a, "sent_pkts", 12);
	COUNTED(t, &t->b, "rcvd_pkts", 12);
	COUNTED(t, &t->b, "sent_pkts", 3);
	COUNTED(t, &t->a, "rcvd_pkts", 3);
	COUNTED(t, &t->a, "ack_deferred", 0);
	ts_transfer(pair, IBV_WR_RDMA_READ, 4 * MTU_BYTES);
	COUNTED(t, &t->a, "sent_pkts", 13);
	COUNTED(t, &t->b, "sent_pkts", 7);
	COUNTED(t, &t->a, "rcvd_pkts", 7);
}

/* Of four datagrams one has a wrong Q_Key, one goes to no QP, one is corrupted. */
static void packets_that_no_qp_takes(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_UD);
	struct vb_sim_counters before = all_of(t, &t->b), after;
	unsigned int i;

	ts_recv(&pair->b, .wr_id = 50, .length = 1000);
	ts_send(&pair->a, .wr_id = 1, .length = 8, .remote_qkey = TS_QKEY + 1);
	ts_send(&pair->a, .wr_id = 2, .length = 8, .remote_qpn = 0xfffff0);
	ts_send(&pair->a, .wr_id = 3, .length = 8);
	for (i = 1; i <= 3; i++)
		ts_done(t, pair->a.send_cq, i, IBV_WC_SEND);
	ts_received(t, pair->b.recv_cq, 50, 8 + TS_GRH);
	COUNTED(t, &t->a, "sent_pkts", 3);
	COUNTED(t, &t->b, "rcvd_pkts", 1);
	/* The QP exists, but has no receive posted. */
	ts_send(&pair->a, .wr_id = 4, .length = 8);
	ts_done(t, pair->a.send_cq, 4, IBV_WC_SEND);
	COUNTED(t, &t->b, "rcvd_pkts", 2);
	COUNTED(t, &t->b, "rdma_recvs", 1);
	after = all_of(t, &t->b);
	VT_EQ(t, after.received_packets - before.received_packets, 4);
	VT_EQ(t, after.dropped_packets - before.dropped_packets, 3);
}

static void corrupt_packets(struct vt *t)
{
	struct ts_pair *pair = narrow(t);

	ts_fault(t, &(struct vb_fault_rule){.action = VB_FAULT_CORRUPT, .count = 1});
	ts_transfer(pair, IBV_WR_RDMA_WRITE, 8);
	COUNTED(t, &t->a, "sent_pkts", 2);
	COUNTED(t, &t->b, "rcvd_pkts", 1);
	COUNTED(t, &t->a, "completer_retry_err", 1);
}

static void duplicates(struct vt *t)
{
	struct ts_pair *pair = narrow(t);

	ts_fault(t, &(struct vb_fault_rule){.action = VB_FAULT_DUPLICATE,
					    .from = t->a.ctx->device->name,
					    .count = 2});
	ts_transfer(pair, IBV_WR_SEND, 3 * MTU_BYTES);
	COUNTED(t, &t->b, "duplicate_request", 2);
	COUNTED(t, &t->a, "duplicate_request", 0);
	COUNTED(t, &t->b, "rdma_recvs", 1);
}

/*
 * The third of five packets is lost. The fourth and fifth are out of sequence; the one NAK for them
 * acknowledges the first two.
 */
static void gap_in_a_message(struct vt *t)
{
	struct ts_pair *pair = narrow(t);

	ts_fault(t, &(struct vb_fault_rule){.action = VB_FAULT_DROP,
					    .from = t->a.ctx->device->name,
					    .skip = 2,
					    .count = 1});
	ts_transfer(pair, IBV_WR_RDMA_WRITE, 5 * MTU_BYTES);
	COUNTED(t, &t->b, "out_of_seq_request", 1);
	COUNTED(t, &t->a, "rcvd_seq_err", 1);
	COUNTED(t, &t->a, "completer_retry_err", 1);
	COUNTED(t, &t->a, "sent_pkts", 8);
	VT_EQ(t, all_of(t, &t->b).out_of_sequence_requests, 2);
}

/* A NAK for the first PSN of a message acknowledges whole messages only; rxe does not count it. */
static void gap_between_messages(struct vt *t)
{
	struct ts_pair *pair = narrow(t);
	unsigned int i;

	ts_fault(t, &(struct vb_fault_rule){.action = VB_FAULT_DROP,
					    .from = t->a.ctx->device->name,
					    .skip = 1,
					    .count = 1});
	for (i = 1; i <= 3; i++)
		ts_write(&pair->a, .wr_id = i, .length = 8);
	for (i = 1; i <= 3; i++)
		ts_done(t, pair->a.send_cq, i, IBV_WC_RDMA_WRITE);
	COUNTED(t, &t->b, "out_of_seq_request", 1);
	COUNTED(t, &t->a, "rcvd_seq_err", 0);
	COUNTED(t, &t->a, "completer_retry_err", 1);
	VT_EQ(t, all_of(t, &t->a).sequence_naks_received, 1);
}

static void receivers_not_ready(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;

	options.rnr_retry = 2;
	pair = ts_pair(t, &options);
	ts_send(&pair->a, .wr_id = 1, .length = 8);
	ts_failed(t, pair->a.send_cq, 1, IBV_WC_RNR_RETRY_EXC_ERR);
	COUNTED(t, &t->b, "send_rnr_err", 3);
	COUNTED(t, &t->a, "rcvd_rnr_err", 3);
	COUNTED(t, &t->a, "retry_rnr_exceeded_err", 1);
	COUNTED(t, &t->a, "retry_exceeded_err", 0);
	COUNTED(t, &t->a, "completer_retry_err", 0);
	COUNTED(t, &t->b, "rcvd_rnr_err", 0);
	COUNTED(t, &t->a, "send_rnr_err", 0);
}

/* Two QPs, each with three retries. */
static void retries_that_end(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;
	unsigned int i;

	options.retry_cnt = 3;
	for (i = 1; i <= 2; i++) {
		pair = ts_pair(t, &options);
		VT_OK(t, vb_sim_port_state(t->b.ctx, t->b.port, false));
		ts_write(&pair->a, .wr_id = 1, .length = 8);
		ts_failed(t, pair->a.send_cq, 1, IBV_WC_RETRY_EXC_ERR);
		VT_OK(t, vb_sim_port_state(t->b.ctx, t->b.port, true));
		COUNTED(t, &t->a, "completer_retry_err", 3 * i);
		COUNTED(t, &t->a, "retry_exceeded_err", i);
		COUNTED(t, &t->a, "sent_pkts", 4 * i);
		COUNTED(t, &t->b, "link_downed", i);
	}
	COUNTED(t, &t->a, "retry_rnr_exceeded_err", 0);
	COUNTED(t, &t->a, "send_err", 0);
	ts_drain_events(&t->b);
}

/* A packet that the device's own dead port keeps back counts as an error, not as sent. */
static void packets_of_a_dead_port(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_UD);
	unsigned int i;

	VT_OK(t, vb_sim_port_state(t->a.ctx, t->a.port, false));
	VT_OK(t, vb_sim_port_state(t->a.ctx, t->a.port, false));
	for (i = 1; i <= 3; i++) {
		ts_send(&pair->a, .wr_id = i, .length = 8);
		ts_done(t, pair->a.send_cq, i, IBV_WC_SEND);
	}
	COUNTED(t, &t->a, "send_err", 3);
	COUNTED(t, &t->a, "sent_pkts", 0);
	COUNTED(t, &t->a, "link_downed", 1);
	VT_EQ(t, all_of(t, &t->a).lost_packets, 3);
	VT_OK(t, vb_sim_port_state(t->a.ctx, t->a.port, true));
	COUNTED(t, &t->a, "link_downed", 1);
	ts_transfer(pair, IBV_WR_SEND, 8);
	COUNTED(t, &t->a, "send_err", 3);
	COUNTED(t, &t->a, "sent_pkts", 1);
	VT_OK(t, vb_sim_port_state(t->a.ctx, t->a.port, false));
	COUNTED(t, &t->a, "link_downed", 2);
	ts_drain_events(&t->a);
}

/* Counted are SENDs of all kinds, not WRITEs and READs, and completed receives. */
static void sends_and_receives(struct vt *t)
{
	static const struct {
		enum ibv_wr_opcode opcode;
		unsigned int sends, receives;
	} rows[] = {
		{IBV_WR_SEND, 1, 1},	   {IBV_WR_SEND_WITH_IMM, 1, 1},
		{IBV_WR_RDMA_WRITE, 0, 0}, {IBV_WR_RDMA_WRITE_WITH_IMM, 0, 1},
		{IBV_WR_RDMA_READ, 0, 0},
	};
	static const enum ibv_qp_type types[] = {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD};
	static const unsigned int counts[] = {5, 4, 2}; /* how many of the rows each type can do */
	unsigned int i, j, sends = 0, receives = 0;

	for (i = 0; i < 3; i++) {
		struct ts_pair *pair = ts_connected(t, types[i]);

		for (j = 0; j < counts[i]; j++) {
			vt_row(t, "type %u, operation %u", i, j);
			ts_transfer(pair, rows[j].opcode, 100);
			sends += rows[j].sends;
			receives += rows[j].receives;
			/* ts_transfer() sends a message behind an unreliable WRITE, and waits for that. */
			if (types[i] == IBV_QPT_UC && !rows[j].receives && !ts_virtual(t)) {
				sends++;
				receives++;
			}
			COUNTED(t, &t->a, "rdma_sends", sends);
			COUNTED(t, &t->b, "rdma_recvs", receives);
		}
	}
	COUNTED(t, &t->b, "rdma_sends", 0);
	COUNTED(t, &t->a, "rdma_recvs", 0);
}

/* rxe counts a SEND with any status, but a receive only if it succeeded. */
static void work_that_is_flushed(struct vt *t)
{
	struct ts_pair *pair;
	unsigned int i;

	ts_prompt(t);
	pair = ts_connected(t, IBV_QPT_RC);
	ts_recv(&pair->b, .wr_id = 50, .length = 8);
	ts_recv(&pair->b, .wr_id = 51, .length = 8);
	ts_send(&pair->a, .wr_id = 1, .length = 8, .unsignalled = true);
	ts_received(t, pair->b.recv_cq, 50, 8);
	VT_OK(t, ts_to(&pair->a, IBV_QPS_ERR));
	VT_OK(t, ts_to(&pair->b, IBV_QPS_ERR));
	ts_flushed(t, pair->b.recv_cq, 51);
	for (i = 2; i <= 3; i++) {
		ts_send(&pair->a, .wr_id = i, .length = 8);
		ts_flushed(t, pair->a.send_cq, i);
	}
	ts_write(&pair->a, .wr_id = 4, .length = 8);
	ts_flushed(t, pair->a.send_cq, 4);
	COUNTED(t, &t->a, "rdma_sends", 3);
	COUNTED(t, &t->b, "rdma_recvs", 1);
}

/* A WR that the QP type forbids ends in error and does not count as a SEND. */
static void work_that_is_forbidden(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_UC);
	struct ibv_wc wc;

	ts_read(&pair->a, .wr_id = 1, .length = 8);
	VT_EQ(t, ts_wait(t, pair->a.send_cq, 1, &wc), 1);
	VT_CHECK(t, wc.status != IBV_WC_SUCCESS);
	COUNTED(t, &t->a, "rdma_sends", 0);
	COUNTED(t, &t->a, "sent_pkts", 0);
}

#define RXE "Linux drivers/infiniband/sw/rxe/"
#define TWO (VT_NEEDS_SIM | VT_NEEDS_TWO_DEVICES)

static const struct vt_test tests[] = {
	{"names_are_those_of_the_kernel", RXE "rxe_hw_counters.c", VT_NEEDS_SIM,
	 names_are_those_of_the_kernel},
	{"packets_of_both_ways", RXE "rxe_net.c, rxe_xmit_packet; rxe_recv.c, rxe_rcv", TWO,
	 packets_of_both_ways},
	{"packets_that_no_qp_takes", RXE "rxe_recv.c, rxe_rcv, hdr_check", TWO,
	 packets_that_no_qp_takes},
	{"corrupt_packets", RXE "rxe_recv.c, rxe_rcv", TWO, corrupt_packets, VT_MAY_CORRUPT},
	{"duplicates", RXE "rxe_resp.c, check_psn", TWO, duplicates},
	{"gap_in_a_message", RXE "rxe_resp.c, check_psn; rxe_comp.c, check_ack", TWO,
	 gap_in_a_message},
	{"gap_between_messages", RXE "rxe_comp.c, check_psn, check_ack", TWO, gap_between_messages},
	{"receivers_not_ready", RXE "rxe_resp.c, rxe_responder; rxe_comp.c, rxe_completer", TWO,
	 receivers_not_ready},
	{"retries_that_end", RXE "rxe_comp.c, rxe_completer", TWO, retries_that_end},
	{"packets_of_a_dead_port", RXE "rxe_net.c, rxe_xmit_packet, rxe_port_down", TWO,
	 packets_of_a_dead_port},
	{"sends_and_receives", RXE "rxe_comp.c and rxe_resp.c, do_complete", TWO,
	 sends_and_receives},
	{"work_that_is_flushed", RXE "rxe_comp.c, rxe_drain_resp_pkts, do_complete", TWO,
	 work_that_is_flushed},
	{"work_that_is_forbidden", RXE "rxe_comp.c, do_complete", TWO, work_that_is_forbidden},
	{NULL},
};

const struct vt_suite vt_suite_counters = {"counters", "counters by the names of SoftRoCE", tests,
					   .simulator = true};
