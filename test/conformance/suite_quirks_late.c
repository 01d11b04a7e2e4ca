/* SPDX-License-Identifier: MIT */
/* Quirks of devices that do everything as late, and in as strange an order, as they may. */
#include "test/conformance/sources.h"
#include "test/support/quirks.h"
#include "test/support/srq.h"

#include <verbena/fault.h>

#define LATE_NS 30000

/* Runs all events that are due now. The virtual time stays the same. */
static void run(struct vt *t)
{
	VT_OK(t, vb_sim_run(ts_sim(t), 0));
}

/* --- answers --- */

static void answers_come_late(struct vt *t)
{
	struct ts_pair *pair;
	struct ts_log *log;
	uint64_t since_ns;

	ts_quirks(t, "answers_come_late", NULL);
	pair = ts_connected(t, IBV_QPT_RC);
	log = ts_watch(t);
	since_ns = ts_now_ns(t);
	for (uint64_t i = 0; i < 3; i++) {
		ts_write(&pair->a, .wr_id = i, .length = 8);
		ts_pause(t, 1000);
	}
	for (uint64_t i = 0; i < 3; i++)
		ts_done(t, pair->a.send_cq, i, IBV_WC_RDMA_WRITE);
	VT_EQ(t, ts_now_ns(t) - since_ns, LATE_NS);
	VT_EQ(t, ts_count(log, TS_ACK, pair->a.qp->qp_num), 1);
	ts_write(&pair->a, .wr_id = 3, .length = 8);
	ts_done(t, pair->a.send_cq, 3, IBV_WC_RDMA_WRITE);
	VT_EQ(t, ts_now_ns(t) - since_ns, 2 * LATE_NS);
	ts_transfer(pair, IBV_WR_RDMA_READ, 100);
	ts_fetch_add(&pair->a, .wr_id = 4, .compare_add = 1);
	ts_done(t, pair->a.send_cq, 4, IBV_WC_FETCH_ADD);
}

/* Without a fence, a READ may find what a later WRITE has left. */
static void late_reads_find_later_writes(struct vt *t)
{
	ts_quirks(t, "answers_come_late", NULL);
	for (int fenced = 0; fenced < 2; fenced++) {
		struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);

		vt_row(t, "%s a fence", fenced ? "with" : "without");
		memset(pair->b.buffer, 1, 8);
		memset(pair->a.buffer + 100, 2, 8);
		ts_read(&pair->a, .wr_id = 1, .length = 8);
		ts_write(&pair->a, .wr_id = 2, .offset = 100, .length = 8,
			 .flags = fenced ? IBV_SEND_FENCE : 0);
		ts_done(t, pair->a.send_cq, 1, IBV_WC_RDMA_READ);
		VT_EQ(t, pair->a.buffer[0], fenced ? 1 : 2);
		ts_done(t, pair->a.send_cq, 2, IBV_WC_RDMA_WRITE);
	}
}

/* A NAK leaves at once, and acknowledges what comes before it. The answer to the next request is late again. */
static void naks_do_not_wait(struct vt *t)
{
	struct ts_pair *pair;
	uint64_t since_ns;

	ts_quirks(t, "answers_come_late", NULL);
	pair = ts_connected(t, IBV_QPT_RC);
	ts_fault(t, &(struct vb_fault_rule){.action = VB_FAULT_DROP, .skip = 1, .count = 1});
	ts_write(&pair->a, .wr_id = 1, .length = 8);
	ts_pause(t, 10000);
	since_ns = ts_now_ns(t);
	ts_write(&pair->a, .wr_id = 2, .length = 8);
	ts_write(&pair->a, .wr_id = 3, .length = 8);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_RDMA_WRITE);
	VT_EQ(t, ts_now_ns(t), since_ns);
	ts_done(t, pair->a.send_cq, 2, IBV_WC_RDMA_WRITE);
	ts_done(t, pair->a.send_cq, 3, IBV_WC_RDMA_WRITE);
	VT_EQ(t, ts_now_ns(t) - since_ns, LATE_NS);
}

static void reconnect(struct ts_pair *pair)
{
	VT_OK(pair->a.t, ts_to(&pair->a, IBV_QPS_RESET));
	VT_OK(pair->a.t, ts_to(&pair->b, IBV_QPS_RESET));
	ts_connect_both(pair);
}

/* A QP that was reset is as late as a new one, and leaves nothing of its earlier connection. */
static void reset_forgets_what_waits(struct vt *t)
{
	struct ts_pair *pair;

	ts_quirks(t, "answers_come_late", "writes_end_first");
	pair = ts_connected(t, IBV_QPT_RC);
	for (int failed = 0; failed < 2; failed++) {
		uint64_t since_ns;

		vt_row(t, "%s", failed ? "after a failure" : "in the middle of a WRITE");
		if (failed) {
			VT_OK(t, ts_to(&pair->b, IBV_QPS_ERR));
			run(t);
		} else {
			ts_write(&pair->a, .wr_id = 1, .length = 100);
			ts_pause(t, 20000);
		}
		reconnect(pair);
		memset(pair->b.buffer, TS_BLANK, 100);
		since_ns = ts_now_ns(t);
		ts_write(&pair->a, .wr_id = 2, .length = 8, .remote_offset = 1000);
		ts_done(t, pair->a.send_cq, 2, IBV_WC_RDMA_WRITE);
		VT_EQ(t, ts_now_ns(t) - since_ns, LATE_NS);
		ts_blank(t, pair->b.buffer, 100);
	}
}

/* Returns the syndrome of the first packet with an opcode. */
static unsigned int first_syndrome(struct vt *t, const struct ts_log *log, uint8_t opcode)
{
	unsigned int i = 0;

	while (i < log->count && log->frames[i].opcode != opcode)
		i++;
	VT_CHECK(t, i < log->count);
	return log->frames[i].syndrome;
}

/* Codes of Linux drivers/infiniband/sw/rdmavt/rc.c, credit_table. */
static void acks_tell_credits(struct vt *t)
{
	static const struct {
		unsigned int receives, code;
	} rows[] = {{0, 0}, {1, 1}, {3, 3}, {4, 4},  {5, 4},
		    {6, 5}, {7, 5}, {8, 6}, {13, 7}, {16, 8}};
	struct ts_log *log;
	struct ts_pair *pair;

	ts_quirks(t, "acks_tell_credits", NULL);
	for (size_t i = 0; i < TS_COUNT(rows); i++) {
		pair = ts_connected(t, IBV_QPT_RC);
		log = ts_watch(t);
		vt_row(t, "%u receives", rows[i].receives);
		for (unsigned int n = 0; n < rows[i].receives; n++)
			ts_recv(&pair->b, .wr_id = n, .length = 8);
		ts_write(&pair->a, .wr_id = 1, .length = 8);
		ts_done(t, pair->a.send_cq, 1, IBV_WC_RDMA_WRITE);
		VT_EXPECT_EQ(t, first_syndrome(t, log, TS_ACK), rows[i].code);
	}
	vt_row(t, "responses");
	ts_transfer(pair, IBV_WR_RDMA_READ, 100);
	VT_EQ(t, first_syndrome(t, log, TS_READ_ONLY), 8);
	ts_fetch_add(&pair->a, .wr_id = 2, .compare_add = 1);
	ts_done(t, pair->a.send_cq, 2, IBV_WC_FETCH_ADD);
	VT_EQ(t, first_syndrome(t, log, TS_ATOMIC_ACK), 8);
}

/* The ACKs of a QP with an SRQ have the syndrome 31: no credits. */
static void acks_tell_no_credits_of_an_srq(struct vt *t)
{
	struct ts_shared *shared;
	struct ts_pair *pair;
	struct ts_log *log;

	ts_quirks(t, "acks_tell_credits", NULL);
	shared = ts_shared(t);
	pair = ts_pair_on(shared, IBV_QPT_RC);
	log = ts_watch(t);
	ts_srq_recv(shared, .wr_id = 50, .length = 8);
	ts_write(&pair->a, .wr_id = 1, .length = 8);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_RDMA_WRITE);
	VT_EQ(t, first_syndrome(t, log, TS_ACK), 31);
}

/* As many receives as a queue of the profile spec takes. */
static void credits_of_the_longest_queue(struct vt *t)
{
	struct ts_options options;
	struct ts_pair *pair;
	struct ts_log *log;

	ts_profile(t, "spec");
	ts_quirks(t, "acks_tell_credits", NULL);
	options = ts_defaults(t, IBV_QPT_RC);
	options.recv_wr = 32768;
	pair = ts_pair(t, &options);
	for (unsigned int n = 0; n < 32768; n++)
		ts_recv(&pair->b, .wr_id = n, .length = 8);
	log = ts_watch(t);
	ts_write(&pair->a, .wr_id = 1, .length = 8);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_RDMA_WRITE);
	VT_EQ(t, first_syndrome(t, log, TS_ACK), 30);
}

/* --- receives --- */

static void first_attempts_find_no_receive(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;

	ts_quirks(t, "first_attempts_find_no_receive", NULL);
	options.rnr_retry = 1;
	pair = ts_pair(t, &options);
	for (int i = 0; i < 3; i++) {
		ts_transfer(pair, IBV_WR_SEND, 10000);
		ts_transfer(pair, IBV_WR_RDMA_WRITE_WITH_IMM, 10000);
	}
	options.rnr_retry = 0;
	pair = ts_pair(t, &options);
	ts_transfer(pair, IBV_WR_RDMA_WRITE, 100);
	ts_recv(&pair->b, .wr_id = 50, .length = 8);
	ts_send(&pair->a, .wr_id = 1, .length = 8);
	ts_failed(t, pair->a.send_cq, 1, IBV_WC_RNR_RETRY_EXC_ERR);
	ts_no_more(t, pair->b.recv_cq);
}

/* The responder also refuses the first PSN of a second connection, and the next PSN after a refused message that the
 * requester has not repeated. */
static void each_message_is_refused(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;

	ts_quirks(t, "first_attempts_find_no_receive", NULL);
	options.rnr_retry = 0;
	pair = ts_pair(t, &options);
	for (int i = 0; i < 2; i++) {
		vt_row(t, "connection %d", i);
		if (i)
			reconnect(pair);
		ts_recv(&pair->b, .wr_id = 50, .length = 8);
		ts_send(&pair->a, .wr_id = 1, .length = 8);
		ts_failed(t, pair->a.send_cq, 1, IBV_WC_RNR_RETRY_EXC_ERR);
	}
	vt_row(t, "the next PSN");
	VT_OK(t, ts_to(&pair->a, IBV_QPS_RESET));
	ts_connect(&pair->a);
	ts_write(&pair->a, .wr_id = 2, .length = 8);
	ts_done(t, pair->a.send_cq, 2, IBV_WC_RDMA_WRITE);
	ts_send(&pair->a, .wr_id = 3, .length = 8);
	ts_failed(t, pair->a.send_cq, 3, IBV_WC_RNR_RETRY_EXC_ERR);
	ts_no_more(t, pair->b.recv_cq);
}

/* A gap draws a NAK of the sequence, also where a message begins behind it. */
static void gaps_are_no_first_attempts(struct vt *t)
{
	struct ts_pair *pair;
	struct ts_log *log;

	ts_quirks(t, "first_attempts_find_no_receive", NULL);
	pair = ts_connected(t, IBV_QPT_RC);
	log = ts_watch(t);
	ts_fault(t, &(struct vb_fault_rule){.action = VB_FAULT_DROP, .count = 1});
	ts_recv(&pair->b, .wr_id = 50, .length = 8);
	ts_recv(&pair->b, .wr_id = 51, .length = 8);
	ts_send(&pair->a, .wr_id = 1, .length = 8);
	ts_send(&pair->a, .wr_id = 2, .length = 8);
	ts_received(t, pair->b.recv_cq, 50, 8);
	ts_received(t, pair->b.recv_cq, 51, 8);
	VT_EQ(t, first_syndrome(t, log, TS_ACK), 0x60);
}

/* --- data --- */

static void writes_end_first(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	static const struct {
		uint32_t bytes, late;
	} rows[] = {{600, 256}, {256, 255}, {100, 99}, {1, 0}};

	ts_quirks(t, "writes_end_first", NULL);
	options.mtu = IBV_MTU_256;
	for (size_t i = 0; i < TS_COUNT(rows); i++) {
		const uint32_t bytes = rows[i].bytes, late = rows[i].late;
		struct ts_pair *pair = ts_pair(t, &options);

		vt_row(t, "%u bytes", bytes);
		ts_write(&pair->a, .wr_id = 1, .length = bytes);
		run(t);
		ts_blank(t, pair->b.buffer, late);
		VT_EQ_MEM(t, pair->b.buffer + late, pair->a.buffer + late, bytes - late);
		ts_done(t, pair->a.send_cq, 1, IBV_WC_RDMA_WRITE);
		ts_verify(t, pair->b.buffer, bytes, 1);
		ts_blank(t, pair->b.buffer + bytes, 8);
	}
}

/* Loses the last packet of the next RDMA WRITE from a. */
static void lose_its_end(struct vt *t)
{
	ts_fault(t, &(struct vb_fault_rule){.action = VB_FAULT_DROP,
					    .opcode_given = true,
					    .opcode = TS_WRITE_LAST,
					    .count = 1});
}

/* The data of the first packet come in time, whenever the others come; and the answer is as late as each. */
static void a_write_waits_for_its_end(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;
	struct ts_log *log;

	ts_quirks(t, "answers_come_late", "writes_end_first");
	options.mtu = IBV_MTU_256;
	pair = ts_pair(t, &options);
	log = ts_watch(t);
	lose_its_end(t);
	ts_write(&pair->a, .wr_id = 1, .length = 400);
	ts_pause(t, LATE_NS - 1);
	ts_blank(t, pair->b.buffer, 256);
	ts_pause(t, 1);
	ts_verify(t, pair->b.buffer, 256, 1);
	ts_blank(t, pair->b.buffer + 256, 144);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_RDMA_WRITE);
	ts_verify(t, pair->b.buffer, 400, 1);
	VT_EQ(t, ts_count(log, TS_ACK, pair->a.qp->qp_num), 1);
	VT_EQ(t, log->frames[log->count - 2].opcode, TS_WRITE_LAST);
	VT_EQ(t, ts_now_ns(t) - log->frames[log->count - 2].now_ns, LATE_NS);
}

/* A NAK acknowledges the packets before it: their data are in memory when it leaves. */
static void naks_come_after_the_data(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;

	ts_quirks(t, "writes_end_first", NULL);
	options.mtu = IBV_MTU_256;
	pair = ts_pair(t, &options);
	ts_fault(t, &(struct vb_fault_rule){.action = VB_FAULT_DROP, .skip = 1, .count = 1});
	ts_write(&pair->a, .wr_id = 1, .length = 700);
	run(t);
	ts_verify(t, pair->b.buffer, 256, 1);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_RDMA_WRITE);
	ts_verify(t, pair->b.buffer, 700, 1);
}

/* The completion of the immediate data comes after the data are in memory. */
static void immediate_data_come_with_the_data(struct vt *t)
{
	struct ts_pair *pair;

	ts_quirks(t, "writes_end_first", NULL);
	pair = ts_connected(t, IBV_QPT_RC);
	ts_recv(&pair->b, .wr_id = 50, .length = 8);
	ts_write_imm(&pair->a, .wr_id = 1, .length = 100);
	ts_written(t, pair->b.recv_cq, 50, 100);
	ts_verify(t, pair->b.buffer, 100, 1);
}

/* The receive of a later SEND, a later READ and immediate data say that the data are there. */
static void later_requests_see_the_data(struct vt *t)
{
	struct ts_pair *pair;

	ts_quirks(t, "writes_end_first", NULL);
	pair = ts_connected(t, IBV_QPT_RC);
	ts_recv(&pair->b, .wr_id = 50, .offset = 8192, .length = 8);
	ts_recv(&pair->b, .wr_id = 51, .offset = 8192, .length = 8);
	ts_write(&pair->a, .wr_id = 1, .length = 100);
	ts_send(&pair->a, .wr_id = 2, .length = 8);
	ts_received(t, pair->b.recv_cq, 50, 8);
	ts_verify(t, pair->b.buffer, 100, 1);
	memset(pair->b.buffer, TS_BLANK, 100);
	ts_write_imm(&pair->a, .wr_id = 3, .length = 20000);
	ts_written(t, pair->b.recv_cq, 51, 20000);
	ts_verify(t, pair->b.buffer, 20000, 1);
	memset(pair->b.buffer, TS_BLANK, 100);
	ts_write(&pair->a, .wr_id = 4, .length = 100);
	ts_read(&pair->a, .wr_id = 5, .offset = 30000, .length = 100);
	for (uint64_t i = 1; i < 5; i++)
		ts_done(t, pair->a.send_cq, i, i == 2 ? IBV_WC_SEND : IBV_WC_RDMA_WRITE);
	ts_done(t, pair->a.send_cq, 5, IBV_WC_RDMA_READ);
	ts_verify(t, pair->a.buffer + 30000, 100, 1);
}

/* A QP that fails or ends leaves no data behind that come later. */
static void data_do_not_outlive_their_qp(struct vt *t)
{
	struct ts_pair *pair;

	ts_quirks(t, "writes_end_first", NULL);
	pair = ts_connected(t, IBV_QPT_RC);
	ts_write(&pair->a, .wr_id = 1, .length = 100);
	run(t);
	ts_destroy_qp(&pair->b);
	memset(pair->b.buffer, TS_BLANK, 100);
	ts_pause(t, 1000000);
	ts_blank(t, pair->b.buffer, 100);
	ts_failed(t, pair->a.send_cq, 1, IBV_WC_RETRY_EXC_ERR);
}

/* A QP that enters ERR puts the data into memory, and answers. */
static void a_failing_qp_does_not_wait(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;
	uint64_t since_ns;

	ts_quirks(t, "answers_come_late", "writes_end_first");
	options.mtu = IBV_MTU_256;
	since_ns = ts_now_ns(t);
	pair = ts_pair(t, &options);
	ts_write(&pair->a, .wr_id = 1, .length = 100);
	run(t);
	VT_OK(t, ts_to(&pair->b, IBV_QPS_ERR));
	ts_done(t, pair->a.send_cq, 1, IBV_WC_RDMA_WRITE);
	VT_EQ(t, ts_now_ns(t), since_ns);
	pair = ts_pair(t, &options);
	lose_its_end(t);
	ts_write(&pair->a, .wr_id = 1, .length = 400);
	run(t);
	ts_blank(t, pair->b.buffer, 400);
	VT_OK(t, ts_to(&pair->b, IBV_QPS_ERR));
	run(t);
	ts_verify(t, pair->b.buffer, 256, 1);
	memset(pair->b.buffer, TS_BLANK, 400);
	ts_pause(t, 1000000);
	ts_blank(t, pair->b.buffer, 400);
}

/* --- packets --- */

/* Packets to the QP with the odd number take longer. */
static void packets_overtake(struct vt *t)
{
	struct ts_pair *slow, *fast;
	uint64_t since_ns;

	ts_quirks(t, "packets_overtake", NULL);
	slow = ts_connected(t, IBV_QPT_UC);
	do
		fast = ts_connected(t, IBV_QPT_UC);
	while ((fast->b.qp->qp_num ^ slow->b.qp->qp_num) % 2 == 0);
	if (fast->b.qp->qp_num % 2) {
		struct ts_pair *other = fast;

		fast = slow;
		slow = other;
	}
	ts_recv(&slow->b, .wr_id = 50, .length = 8);
	ts_recv(&fast->b, .wr_id = 51, .length = 8);
	since_ns = ts_now_ns(t);
	ts_send(&slow->a, .wr_id = 1, .length = 8);
	ts_send(&fast->a, .wr_id = 2, .length = 8);
	ts_received(t, fast->b.recv_cq, 51, 8);
	VT_EQ(t, ts_now_ns(t), since_ns);
	ts_received(t, slow->b.recv_cq, 50, 8);
	VT_EQ(t, ts_now_ns(t) - since_ns, 5000);
	ts_done(t, slow->a.send_cq, 1, IBV_WC_SEND);
	ts_transfer(slow, IBV_WR_SEND, 60000);
}

/* Only the packets of the device with the quirk are slow, and a delay of a fault rule comes on top. */
static void packets_of_one_device_overtake(struct vt *t)
{
	static const uint64_t delays_ns[] = {5000, 25000, 5000};
	struct ts_pair *pair;
	uint64_t since_ns;

	ts_quirks_of(t, t->a.ctx, "packets_overtake", NULL);
	ts_quirks_of(t, t->b.ctx, "", NULL);
	do
		pair = ts_connected(t, IBV_QPT_UC);
	while (pair->b.qp->qp_num % 2 == 0);
	ts_fault(t, &(struct vb_fault_rule){
			    .action = VB_FAULT_DELAY, .skip = 1, .count = 1, .delay_ns = 20000});
	for (uint64_t i = 0; i < TS_COUNT(delays_ns); i++) {
		vt_row(t, "packet %d", (int)i);
		since_ns = ts_now_ns(t);
		ts_recv(&pair->b, .wr_id = 50, .length = 8);
		ts_send(&pair->a, .wr_id = i, .length = 8);
		ts_received(t, pair->b.recv_cq, 50, 8);
		VT_EQ(t, ts_now_ns(t) - since_ns, delays_ns[i]);
	}
	while (pair->a.qp->qp_num % 2 == 0)
		pair = ts_connected(t, IBV_QPT_UC);
	vt_row(t, "the other device");
	since_ns = ts_now_ns(t);
	ts_recv(&pair->a, .wr_id = 50, .length = 8);
	ts_send(&pair->b, .wr_id = 1, .length = 8);
	ts_received(t, pair->a.recv_cq, 50, 8);
	VT_EQ(t, ts_now_ns(t), since_ns);
}

static void datagrams_overtake(struct vt *t)
{
	struct ts_pair *pair;

	ts_quirks(t, "packets_overtake", NULL);
	pair = ts_connected(t, IBV_QPT_UD);
	ts_recv(&pair->b, .wr_id = 50, .length = 100);
	ts_recv(&pair->b, .wr_id = 51, .length = 100);
	ts_send(&pair->a, .wr_id = 1, .length = 1);
	ts_send(&pair->a, .wr_id = 2, .length = 2);
	ts_received(t, pair->b.recv_cq, 50, TS_GRH + 2);
	ts_received(t, pair->b.recv_cq, 51, TS_GRH + 1);
}

#define NEEDS (VT_NEEDS_SIM | VT_NEEDS_VIRTUAL_CLOCK)

static const struct vt_test tests[] = {
	{"answers_come_late", "ibv_query_device(3): local_ca_ack_delay", NEEDS, answers_come_late},
	{"naks_do_not_wait", "unsourced", NEEDS, naks_do_not_wait},
	{"reset_forgets_what_waits", "ibv_modify_qp(3)", NEEDS, reset_forgets_what_waits,
	 VT_MAY_RECONNECT},
	{"late_reads_find_later_writes", "ibv_post_send(3): IBV_SEND_FENCE", NEEDS,
	 late_reads_find_later_writes},
	{"acks_tell_credits", "Linux drivers/infiniband/sw/rdmavt/rc.c, rvt_compute_aeth", NEEDS,
	 acks_tell_credits},
	{"acks_tell_no_credits_of_an_srq",
	 "Linux drivers/infiniband/sw/rdmavt/rc.c, rvt_compute_aeth", NEEDS,
	 acks_tell_no_credits_of_an_srq},
	{"credits_of_the_longest_queue",
	 "Linux drivers/infiniband/sw/rdmavt/rc.c, rvt_compute_aeth", NEEDS,
	 credits_of_the_longest_queue},
	{"first_attempts_find_no_receive", "ibv_modify_qp(3): rnr_retry", NEEDS,
	 first_attempts_find_no_receive},
	{"each_message_is_refused", "unsourced", NEEDS, each_message_is_refused, VT_MAY_RECONNECT},
	{"gaps_are_no_first_attempts", "unsourced", NEEDS, gaps_are_no_first_attempts},
	{"writes_end_first", "unsourced", NEEDS, writes_end_first},
	{"a_write_waits_for_its_end", "unsourced", NEEDS, a_write_waits_for_its_end},
	{"naks_come_after_the_data", "unsourced", NEEDS, naks_come_after_the_data},
	{"immediate_data_come_with_the_data",
	 "ibv_reg_mr(3), IBV_ACCESS_RELAXED_ORDERING: completions", NEEDS,
	 immediate_data_come_with_the_data},
	{"later_requests_see_the_data", "ibv_reg_mr(3), IBV_ACCESS_RELAXED_ORDERING: completions",
	 NEEDS, later_requests_see_the_data},
	{"data_do_not_outlive_their_qp", "unsourced", NEEDS, data_do_not_outlive_their_qp},
	{"a_failing_qp_does_not_wait", "unsourced", NEEDS, a_failing_qp_does_not_wait},
	{"packets_of_one_device_overtake", "unsourced", NEEDS | VT_NEEDS_TWO_DEVICES,
	 packets_of_one_device_overtake},
	{"packets_overtake", "unsourced", NEEDS | VT_NEEDS_TWO_DEVICES, packets_overtake},
	{"datagrams_overtake", "unsourced", NEEDS, datagrams_overtake},
	{NULL},
};

const struct vt_suite vt_suite_quirks_late = {"quirks_late", "quirks: as late as it may be", tests,
					      .simulator = true};
