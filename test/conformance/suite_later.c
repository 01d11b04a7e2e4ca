/* SPDX-License-Identifier: MIT */
/*
 * Later: the second message, the second event, the hundredth object; what holds after a resize, a
 * change of addresses, or a long time.
 */
#include "test/conformance/sources.h"
#include "test/support/keep.h"
#include "test/support/need.h"
#include "test/support/quirks.h"
#include "test/support/srq.h"
#include "test/support/window.h"

#include <arpa/inet.h>
#include <sys/mman.h>
#include <verbena/fault.h>
#include <verbena/sim.h>

#define TIMEOUT_NS 67108864u /* the ACK timeout of ts_defaults(): 4.096 us * 2^14 */
#define MANY	   40	     /* more events than a queue has at first */
#define REGIONS	   600	     /* a device uses a place again after fewer */

/* --- arming --- */

static void resized_cq_is_armed_as_before(struct vt *t)
{
	static const int cqe[] = {128, 8};
	struct ts_pair *pair = ts_pair_with_channels(t);
	struct ibv_cq *got;

	for (size_t i = 0; i < TS_COUNT(cqe); i++) {
		vt_row(t, "%d entries", cqe[i]);
		VT_OK(t, ibv_req_notify_cq(pair->a.send_cq, 0));
		VT_OK(t, vb_resize_cq(pair->a.send_cq, cqe[i]));
		ts_write(&pair->a, .wr_id = 1, .length = 8);
		ts_done(t, pair->a.send_cq, 1, IBV_WC_RDMA_WRITE);
		VT_CHECK(t, ts_cq_event(t, pair->a.send_channel, &got));
	}
}

static void solicited_arming_serves_one_message(struct vt *t)
{
	struct ts_pair *pair = ts_pair_with_channels(t);
	struct ibv_cq *got;

	VT_OK(t, ibv_req_notify_cq(pair->b.recv_cq, 1));
	for (int i = 0; i < 3; i++) {
		vt_row(t, "message %d", i + 1);
		ts_recv(&pair->b, .wr_id = 50, .length = 8);
		ts_send(&pair->a, .wr_id = 1, .length = 8, .flags = IBV_SEND_SOLICITED);
		ts_done(t, pair->a.send_cq, 1, IBV_WC_SEND);
		ts_received(t, pair->b.recv_cq, 50, 8);
		VT_EQ(t, ts_cq_event(t, pair->b.recv_channel, &got), i == 0);
	}
}

/* Each slot of the send queue is used many times; the flags are those of each WR. */
static void slots_have_no_flags_of_their_own(struct vt *t)
{
	struct ts_pair *pair = ts_pair_with_channels(t);
	const uint32_t turns = 4 * pair->a.cap.max_send_wr;
	struct ibv_cq *got;

	for (uint32_t i = 0; i < turns; i++) {
		const bool solicited = vt_random_below(t, 2);

		vt_row(t, "send %u", i + 1);
		VT_OK(t, ibv_req_notify_cq(pair->b.recv_cq, 1));
		ts_recv(&pair->b, .wr_id = 50, .length = 8);
		ts_send(&pair->a, .wr_id = 1, .length = 8,
			.flags = solicited ? IBV_SEND_SOLICITED : 0);
		ts_done(t, pair->a.send_cq, 1, IBV_WC_SEND);
		ts_received(t, pair->b.recv_cq, 50, 8);
		VT_EQ(t, ts_cq_event(t, pair->b.recv_channel, &got), solicited);
	}
}

/* READs, atomics, writes and local errors in turn: a slot begins each WR anew. */
static void slots_forget_their_last_wr(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;

	options.send_wr = 4;
	options.max_rd_atomic = 1;
	pair = ts_pair(t, &options);
	for (int i = 0; i < 100; i++) {
		const uint32_t bytes = (uint32_t)vt_random_below(t, 9000);

		vt_row(t, "WR %d", i + 1);
		memset(pair->b.buffer, TS_BLANK, options.buffer_bytes);
		switch (vt_random_below(t, 4)) {
		case 0:
			ts_transfer(pair, IBV_WR_RDMA_READ, bytes);
			break;
		case 1:
			ts_transfer(pair, IBV_WR_RDMA_WRITE, bytes);
			break;
		case 2:
			ts_transfer(pair, IBV_WR_SEND, bytes);
			break;
		default:
			memset(pair->b.buffer, 0, 8);
			ts_fetch_add(&pair->a, .wr_id = 9, .compare_add = 5, .offset = 60000);
			ts_done(t, pair->a.send_cq, 9, IBV_WC_FETCH_ADD);
			VT_EQ(t, pair->b.buffer[0], 5);
		}
	}
}

static void smaller_srq_takes_fewer(struct vt *t)
{
	struct ts_shared *shared = ts_shared_of(t, 16, 1);
	struct ibv_srq_attr attr = {.max_wr = 5};

	if (vb_modify_srq(shared->srq, &attr, IBV_SRQ_MAX_WR))
		VT_SKIP(t, "the device does not resize SRQs");
	attr = ts_query_srq(t, shared->srq);
	VT_CHECK(t, attr.max_wr >= 5 && attr.max_wr < 16);
	for (uint32_t i = 0; i < attr.max_wr; i++)
		ts_srq_recv(shared, .wr_id = i, .length = 8);
	VT_ERRNO(t, ts_post_srq(shared, &(struct ts_rr){.length = 8}), ENOMEM);
}

/* Only the WRs that ask for it complete, whatever the WR before them in their slot asked for. */
static void slots_complete_what_is_signalled(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;

	options.send_wr = 4;
	pair = ts_pair(t, &options);
	for (uint64_t i = 0; i < 50; i++) {
		uint64_t silent = vt_random_below(t, 4);

		vt_row(t, "completion %u, %u unsignalled sends before it", (unsigned int)i + 1,
		       (unsigned int)silent);
		while (silent--)
			ts_write(&pair->a, .wr_id = 1000, .length = 8, .unsignalled = true);
		ts_write(&pair->a, .wr_id = i, .length = 8);
		ts_done(t, pair->a.send_cq, i, IBV_WC_RDMA_WRITE);
		ts_no_more(t, pair->a.send_cq);
	}
}

/* A WR without a fence overtakes a READ, also in a slot whose last WR had a fence. */
static void slots_have_no_fence_of_their_own(struct vt *t)
{
	const struct vb_fault_rule slow = {.action = VB_FAULT_DELAY,
					   .opcode_given = true,
					   .opcode = TS_READ_ONLY,
					   .delay_ns = 1000000};
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;
	struct ts_log *log;
	uint64_t since_ns;

	ts_prompt(t);
	options.send_wr = 2;
	pair = ts_pair(t, &options);
	ts_fault(t, &slow);
	for (int fenced = 1; fenced >= 0; fenced--) {
		const unsigned int flags = fenced ? IBV_SEND_FENCE : 0;
		const uint64_t wait_ns = fenced ? 1000000 : 0;
		unsigned int i = 0;

		vt_row(t, "%s a fence", fenced ? "with" : "without");
		log = ts_watch(t);
		since_ns = ts_now_ns(t);
		ts_read(&pair->a, .wr_id = 1, .length = 8);
		ts_write(&pair->a, .wr_id = 2, .length = 8, .flags = flags);
		ts_done(t, pair->a.send_cq, 1, IBV_WC_RDMA_READ);
		ts_done(t, pair->a.send_cq, 2, IBV_WC_RDMA_WRITE);
		while (i < log->count && log->frames[i].opcode != TS_WRITE_ONLY)
			i++;
		VT_CHECK(t, i < log->count);
		VT_EQ(t, log->frames[i].now_ns - since_ns, wait_ns);
	}
}

static void windows_are_bound_again_and_again(struct vt *t)
{
	struct ts_pair *pair = ts_window_pair(t);
	struct ibv_mw *mw;

	ts_need_windows(t, IBV_MW_TYPE_2);
	mw = ts_mw(&pair->b, IBV_MW_TYPE_2);
	for (uint64_t i = 0; i < 2 * pair->b.cap.max_send_wr; i++) {
		vt_row(t, "binding %u", (unsigned int)i + 1);
		ts_bound(&pair->b, mw, .wr_id = i);
		ts_reaches(pair, mw->rkey, 0);
		VT_OK(t, ts_local_inv(&pair->b, i, mw->rkey));
		ts_done(t, pair->b.send_cq, i, IBV_WC_LOCAL_INV);
	}
}

/* Receives complete out of order over two QPs, so that the slots come back in another order. */
static void grown_srq_keeps_its_order(struct vt *t)
{
	struct ts_shared *shared = ts_shared_of(t, 8, 1);
	struct ts_pair *pairs[2] = {ts_pair_on(shared, IBV_QPT_RC), ts_pair_on(shared, IBV_QPT_RC)};
	struct ibv_srq_attr attr = {.max_wr = 32};
	uint64_t posted = 0, taken = 0;

	for (; posted < 6; posted++)
		ts_srq_recv(shared, .wr_id = posted, .length = 8);
	for (; taken < 4; taken++) {
		ts_send(&pairs[taken % 2]->a, .wr_id = 1, .length = 8);
		ts_done(t, pairs[taken % 2]->a.send_cq, 1, IBV_WC_SEND);
	}
	ts_settle(t);
	for (int i = 1; i >= 0; i--)
		for (int k = 0; k < 2; k++)
			VT_EQ(t, ibv_poll_cq(pairs[i]->b.recv_cq, 1, &(struct ibv_wc){0}), 1);
	for (; posted < 11; posted++)
		ts_srq_recv(shared, .wr_id = posted, .length = 8);
	if (vb_modify_srq(shared->srq, &attr, IBV_SRQ_MAX_WR))
		VT_SKIP(t, "the device does not resize SRQs");
	for (; posted < 20; posted++)
		ts_srq_recv(shared, .wr_id = posted, .length = 8);
	for (; taken < posted; taken++) {
		vt_row(t, "receive %u", (unsigned int)taken);
		ts_send(&pairs[0]->a, .wr_id = 1, .length = 8);
		ts_done(t, pairs[0]->a.send_cq, 1, IBV_WC_SEND);
		ts_received(t, pairs[0]->b.recv_cq, taken, 8);
	}
}

/* --- losses --- */

static uint64_t counter(struct vt *t, const char *name)
{
	uint64_t value;

	VT_OK(t, vb_sim_counter(t->a.ctx, name, &value));
	return value;
}

static void each_gap_is_repaired_without_a_timeout(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);
	struct vb_sim_counters before, after;

	VT_OK(t, vb_sim_counters(t->a.ctx, &before));
	for (int i = 0; i < 4; i++) {
		const struct vb_fault_rule rule = {.action = VB_FAULT_DROP,
						   .opcode_given = true,
						   .opcode = TS_WRITE_FIRST,
						   .count = 1};

		vt_row(t, "gap %d", i + 1);
		ts_fault(t, &rule);
		ts_write(&pair->a, .wr_id = 1, .length = 20000);
		ts_done(t, pair->a.send_cq, 1, IBV_WC_RDMA_WRITE);
	}
	VT_OK(t, vb_sim_counters(t->a.ctx, &after));
	VT_EQ(t, after.ack_timeouts, before.ack_timeouts);
}

static void destroy_peer(struct ts_pair *pair)
{
	ts_destroy_qp(&pair->b);
}

static void reset_peer(struct ts_pair *pair)
{
	VT_OK(pair->a.t, ts_to(&pair->b, IBV_QPS_RESET));
}

static void stop_peer(struct ts_pair *pair)
{
	VT_OK(pair->a.t, ts_to(&pair->b, IBV_QPS_ERR));
}

/* An error of its own sends moves the peer to ERR. */
static void fail_peer(struct ts_pair *pair)
{
	ts_write(&pair->b, .wr_id = 2, .length = 8, .lkey = ts_wrong_key(pair->b.mr->lkey));
	ts_failed(pair->a.t, pair->b.send_cq, 2, IBV_WC_LOC_PROT_ERR);
}

/* A connection that had traffic in both directions notices the end of its peer. */
static void peer_that_ends_is_missed(struct vt *t)
{
	static const struct {
		const char *name;
		void (*end)(struct ts_pair *pair);
	} rows[] = {
		{"destroyed", destroy_peer},
		{"RESET", reset_peer},
		{"ERR", stop_peer},
		{"a send of its own fails", fail_peer},
	};

	ts_quirks(t, "", NULL);
	for (size_t i = 0; i < 2 * TS_COUNT(rows); i++) {
		struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);

		/* Packets that nobody looks at take a shorter way. */
		if (i == TS_COUNT(rows))
			VT_OK(t, vb_sim_trace_close(ts_sim(t)));
		vt_row(t, "%s, %s a trace", rows[i % TS_COUNT(rows)].name,
		       i < TS_COUNT(rows) ? "with" : "without");
		ts_write(&pair->a, .wr_id = 1, .length = 8);
		ts_done(t, pair->a.send_cq, 1, IBV_WC_RDMA_WRITE);
		ts_write(&pair->b, .wr_id = 1, .length = 8);
		ts_done(t, pair->b.send_cq, 1, IBV_WC_RDMA_WRITE);
		rows[i % TS_COUNT(rows)].end(pair);
		memset(pair->b.buffer, TS_BLANK, 8);
		ts_write(&pair->a, .wr_id = 3, .length = 8);
		ts_failed(t, pair->a.send_cq, 3, IBV_WC_RETRY_EXC_ERR);
		ts_blank(t, pair->b.buffer, 8);
	}
}

/* The peer says how long the requester waits, and the requester's own attribute does not. */
static void rnr_wait_is_the_responders(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair = ts_pair_reset(t, &options);
	uint64_t since_ns;

	pair->a.options.min_rnr_timer = 20; /* 10.24 ms */
	pair->b.options.min_rnr_timer = 12; /* 0.64 ms */
	ts_connect_both(pair);
	ts_send(&pair->a, .wr_id = 1, .length = 8);
	since_ns = ts_now_ns(t);
	ts_pause(t, 1000);
	ts_recv(&pair->b, .wr_id = 50, .length = 8);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_SEND);
	VT_CHECK(t, ts_now_ns(t) - since_ns >= 640000 && ts_now_ns(t) - since_ns < 10240000);
}

/* A READ's response acknowledges the SEND before it, and no ACK comes. */
static void reads_restore_the_rnr_retries(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;

	ts_prompt(t);
	options.rnr_retry = 2;
	options.min_rnr_timer = 12; /* 0.64 ms */
	pair = ts_pair(t, &options);
	for (uint64_t i = 0; i < 5; i++) {
		vt_row(t, "message %u", (unsigned int)i + 1);
		ts_send(&pair->a, .wr_id = i, .length = 8);
		ts_read(&pair->a, .wr_id = 100 + i, .length = 8);
		/* NAKs came at once and after 0.64 ms; the third attempt is the last. */
		ts_pause(t, 700000);
		ts_recv(&pair->b, .wr_id = 50, .length = 8);
		ts_done(t, pair->a.send_cq, i, IBV_WC_SEND);
		ts_done(t, pair->a.send_cq, 100 + i, IBV_WC_RDMA_READ);
		ts_received(t, pair->b.recv_cq, 50, 8);
	}
}

static void counters_count_every_time(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	const uint64_t rnr = counter(t, "retry_rnr_exceeded_err");
	const uint64_t lost = counter(t, "retry_exceeded_err");
	const uint64_t downed = counter(t, "link_downed");

	options.retry_cnt = options.rnr_retry = 0;
	for (unsigned int i = 1; i <= 3; i++) {
		struct ts_pair *pair = ts_pair(t, &options);

		vt_row(t, "time %u", i);
		ts_send(&pair->a, .wr_id = 1, .length = 8);
		ts_failed(t, pair->a.send_cq, 1, IBV_WC_RNR_RETRY_EXC_ERR);
		VT_EQ(t, counter(t, "retry_rnr_exceeded_err"), rnr + i);
		pair = ts_pair(t, &options);
		ts_destroy_qp(&pair->b);
		ts_write(&pair->a, .wr_id = 1, .length = 8);
		ts_failed(t, pair->a.send_cq, 1, IBV_WC_RETRY_EXC_ERR);
		VT_EQ(t, counter(t, "retry_exceeded_err"), lost + i);
		VT_OK(t, vb_sim_port_state(t->a.ctx, t->a.port, false));
		VT_OK(t, vb_sim_port_state(t->a.ctx, t->a.port, true));
		VT_EQ(t, counter(t, "link_downed"), downed + i);
	}
	ts_drain_events(&t->a);
}

/* --- events --- */

static void many_events_come_in_order(struct vt *t)
{
	static const enum ibv_event_type types[] = {IBV_EVENT_SM_CHANGE,
						    IBV_EVENT_CLIENT_REREGISTER};
	struct ibv_async_event event;
	int sent = 0, read = 0;

	/* The first events move the queue's start away from the start of its memory. */
	for (int burst = 10; burst <= MANY; burst += 15) {
		for (int i = 0; i < burst; i++, sent++)
			VT_OK(t, vb_sim_port_event(t->a.ctx, t->a.port, types[sent % 3 == 0]));
		for (; read < sent - 5; read++) {
			vt_row(t, "event %d", read + 1);
			VT_OK(t, vb_get_async_event(t->a.ctx, &event));
			vb_ack_async_event(&event);
			VT_EVENT(t, event.event_type, types[read % 3 == 0]);
		}
	}
	ts_drain_events(&t->a);
}

static void death_ends_qps_of_every_state(struct vt *t)
{
	static const enum ibv_qp_state states[] = {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS,
						   IBV_QPS_SQD};
	struct ts_pair *pairs[TS_COUNT(states)];

	for (size_t i = 0; i < TS_COUNT(states); i++) {
		const struct ts_options options = ts_defaults(t, IBV_QPT_RC);
		struct ts_end *end;

		pairs[i] = ts_pair_reset(t, &options);
		end = &pairs[i]->a;
		ts_to_init(end);
		if (states[i] != IBV_QPS_INIT)
			ts_to_rtr(end);
		if (states[i] == IBV_QPS_RTS || states[i] == IBV_QPS_SQD)
			ts_to_rts(end);
		if (states[i] == IBV_QPS_SQD)
			VT_OK(t, ts_to(end, IBV_QPS_SQD));
		ts_recv(end, .wr_id = 50, .length = 8);
	}
	VT_OK(t, vb_sim_kill_device(t->a.ctx));
	for (size_t i = 0; i < TS_COUNT(states); i++) {
		vt_row(t, "%s", vt_qp_state_name(states[i]));
		ts_flushed(t, pairs[i]->a.recv_cq, 50);
		ts_state(&pairs[i]->a, IBV_QPS_ERR);
	}
	ts_drain_events(&t->a);
}

/* --- addresses --- */

static void other_addresses_leave_a_connection(struct vt *t)
{
	static const enum ibv_qp_type types[] = {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD};
	union ibv_gid gid;

	VT_EQ(t, inet_pton(AF_INET6, "fd00::1234", gid.raw), 1);
	for (size_t i = 0; i < TS_COUNT(types); i++) {
		struct ts_pair *pair = ts_connected(t, types[i]);

		vt_row(t, "type %d", types[i]);
		ts_transfer(pair, IBV_WR_SEND, 100);
		gid.raw[15]++;
		VT_OK(t, vb_sim_set_gid(t->a.ctx, t->a.port, 9, &gid));
		gid.raw[15]++;
		VT_OK(t, vb_sim_set_gid(t->b.ctx, t->b.port, 9, &gid));
		ts_transfer(pair, IBV_WR_SEND, 100);
	}
	ts_drain_events(&t->a);
	ts_drain_events(&t->b);
}

/* A datagram leaves with the GID that its index has when it is sent. */
static void datagram_has_the_gid_of_its_index(struct vt *t)
{
	struct ts_pair *pair;
	union ibv_gid gid;

	ts_use_ipv6(t);
	pair = ts_connected(t, IBV_QPT_UD);
	ts_recv(&pair->b, .wr_id = 50, .length = 1000);
	ts_send(&pair->a, .wr_id = 1, .length = 100);
	ts_received(t, pair->b.recv_cq, 50, 100 + TS_GRH);
	VT_EQ_MEM(t, ((struct ibv_grh *)pair->b.buffer)->sgid.raw, t->a.gid.raw, 16);
	gid = t->a.gid;
	gid.raw[14] ^= 0x55;
	VT_OK(t, vb_sim_set_gid(t->a.ctx, t->a.port, (unsigned int)t->a.gid_index, &gid));
	ts_recv(&pair->b, .wr_id = 51, .length = 1000);
	ts_send(&pair->a, .wr_id = 2, .length = 100);
	ts_received(t, pair->b.recv_cq, 51, 100 + TS_GRH);
	VT_EQ_MEM(t, ((struct ibv_grh *)pair->b.buffer)->sgid.raw, gid.raw, 16);
	ts_drain_events(&t->a);
}

/* --- memory --- */

static void keys_of_many_regions_differ(struct vt *t)
{
	struct ibv_pd *pd = ts_pd(t, &t->a);
	void *memory = ts_memory(t, 4096);
	uint32_t keys[REGIONS];

	for (int i = 0; i < REGIONS; i++) {
		struct ibv_mr *mr = VT_PTR(t, vb_reg_mr(pd, memory, 4096, 0));

		keys[i] = mr->lkey;
		for (int k = 0; k < i; k++)
			VT_CHECK(t, keys[k] != keys[i]);
		VT_OK(t, vb_dereg_mr(mr));
	}
}

/* A hole anywhere in a range that is touched, or so long that it is looked up. */
static void hole_in_a_range_is_efault(struct vt *t)
{
	static const size_t pages[] = {3, 10, 200};
	struct ibv_pd *pd = ts_pd(t, &t->a);

	for (size_t i = 0; i < TS_COUNT(pages); i++) {
		const size_t bytes = pages[i] * 4096;
		uint8_t *range = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
				      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		struct ibv_mr *mr;

		vt_row(t, "%zu pages", pages[i]);
		VT_CHECK(t, range != MAP_FAILED);
		mr = VT_PTR(t, vb_reg_mr(pd, range, bytes, IBV_ACCESS_LOCAL_WRITE));
		VT_OK(t, vb_dereg_mr(mr));
		munmap(range + pages[i] / 2 * 4096, 4096);
		VT_NULL_ERRNO(t, vb_reg_mr(pd, range, bytes, IBV_ACCESS_LOCAL_WRITE), EFAULT);
		munmap(range, bytes);
	}
}

/* --- time --- */

static void long_run_keeps_the_time_of_each_packet(struct vt *t)
{
	struct ts_pair *pair;
	const struct vb_fault_rule rule = {
		.action = VB_FAULT_DROP, .opcode_given = true, .opcode = TS_WRITE_ONLY, .count = 3};
	struct ts_log *log = ts_watch(t);
	uint64_t since_ns = ts_now_ns(t);
	unsigned int place = 0;

	ts_quirks(t, "", NULL);
	pair = ts_connected(t, IBV_QPT_RC);
	ts_fault(t, &rule);
	ts_write(&pair->a, .wr_id = 1, .length = 8);
	VT_OK(t, vb_sim_run(ts_sim(t), 1000000000));
	VT_EQ(t, ts_count(log, TS_WRITE_ONLY, 0), 4);
	for (unsigned int i = 0; i < log->count; i++)
		if (log->frames[i].opcode == TS_WRITE_ONLY)
			VT_EQ(t, log->frames[i].now_ns - since_ns, place++ * TIMEOUT_NS);
	VT_EQ(t, ts_now_ns(t) - since_ns, 1000000000);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_RDMA_WRITE);
}

/* Every completion has a time stamp of its own, also in a slot of the CQ that is used again. */
static void each_receive_has_its_time(struct vt *t)
{
	struct ibv_cq_init_attr_ex cq_init = {.cqe = 1,
					      .wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP};
	struct ibv_cq_ex *cq;
	struct ibv_qp_init_attr_ex init = {0};
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ibv_poll_cq_attr attr = {0};
	struct ts_pair *pair;

	ts_prompt(t);
	cq = TS_PTR_OR_SKIP(t, vb_create_cq_ex(t->b.ctx, &cq_init));
	init.recv_cq = ibv_cq_ex_to_cq(cq);
	ts_keep(t, TS_CQ, cq);
	pair = ts_pair_reset(t, &options);
	ts_remake_qp(&pair->b, &init);
	ts_connect_both(pair);
	for (int i = 0; i < 5; i++) {
		uint64_t now_ns;

		vt_row(t, "message %d", i + 1);
		ts_recv(&pair->b, .wr_id = 50, .length = 8);
		ts_send(&pair->a, .wr_id = 1, .length = 8);
		ts_done(t, pair->a.send_cq, 1, IBV_WC_SEND);
		now_ns = ts_now_ns(t);
		ts_pause(t, 1000000);
		VT_OK(t, ibv_start_poll(cq, &attr));
		VT_EQ(t, ibv_wc_read_completion_ts(cq), now_ns);
		ibv_end_poll(cq);
	}
}

/* The period is shortened to before a packet that arrives in the meantime. */
static void shorter_period_overtakes_other_timers(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ibv_modify_cq_attr moderation = {.attr_mask = IBV_CQ_ATTR_MODERATE,
						.moderate = {.cq_count = 9, .cq_period = 4000}};
	const struct vb_fault_rule slow = {.action = VB_FAULT_DELAY,
					   .opcode_given = true,
					   .opcode = TS_SEND_ONLY,
					   .delay_ns = 3000000};
	struct ts_pair *pair;
	struct ibv_cq *got;
	void *context;
	uint64_t since_ns;

	ts_prompt(t);
	options.channels = true;
	pair = ts_pair(t, &options);
	if (vb_modify_cq(pair->a.send_cq, &moderation))
		VT_SKIP(t, "the device has no CQ moderation");
	ts_fault(t, &slow);
	since_ns = ts_now_ns(t);
	VT_OK(t, ibv_req_notify_cq(pair->a.send_cq, 0));
	ts_write(&pair->a, .wr_id = 1, .length = 8);
	ts_recv(&pair->b, .wr_id = 50, .length = 8);
	ts_send(&pair->a, .wr_id = 2, .length = 8);
	VT_OK(t, vb_sim_run(ts_sim(t), 1000));
	moderation.moderate.cq_period = 1000;
	VT_OK(t, vb_modify_cq(pair->a.send_cq, &moderation));
	while (vb_get_cq_event(pair->a.send_channel, &got, &context) && errno == EAGAIN)
		;
	vb_ack_cq_events(got, 1);
	VT_EQ(t, ts_now_ns(t) - since_ns, 1000000);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_RDMA_WRITE);
	ts_done(t, pair->a.send_cq, 2, IBV_WC_SEND);
}

/* A program that asks after a modification waits for nothing. */
static void query_after_a_modify_takes_no_time(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);
	struct ibv_qp_attr attr = {.qp_access_flags = IBV_ACCESS_REMOTE_READ};
	uint64_t since_ns;

	ts_send(&pair->a, .wr_id = 1, .length = 8); /* waits for a receive */
	ts_pause(t, 1000);
	ts_query(&pair->a);
	since_ns = ts_now_ns(t);
	for (int i = 0; i < 3; i++) {
		VT_OK(t, vb_modify_qp(pair->a.qp, &attr, IBV_QP_ACCESS_FLAGS));
		ts_query(&pair->a);
		VT_EQ(t, ts_now_ns(t), since_ns);
	}
}

static void one_tell_ends_a_wait(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);
	uint64_t told = vb_sim_told(ts_sim(t)), since_ns;
	struct ibv_wc wc;

	ts_send(&pair->a, .wr_id = 1, .length = 8); /* waits for a receive */
	ts_pause(t, 1000);
	since_ns = ts_now_ns(t);
	vb_sim_tell(ts_sim(t));
	VT_EQ(t, vb_sim_wait_cq_told(pair->a.send_cq, 1, &wc, 1000000000, told), 0);
	VT_EQ(t, ts_now_ns(t), since_ns);
}

/* --- the trace --- */

static void watcher_outlives_the_trace_file(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);
	struct ts_log *log = ts_watch(t);

	VT_OK(t, vb_sim_trace_open(ts_sim(t), "/dev/null"));
	ts_transfer(pair, IBV_WR_RDMA_WRITE, 100);
	VT_EQ(t, ts_count(log, TS_WRITE_ONLY, 0), 1);
	VT_OK(t, vb_sim_trace_close(ts_sim(t)));
	ts_transfer(pair, IBV_WR_RDMA_WRITE, 100);
	VT_EQ(t, ts_count(log, TS_WRITE_ONLY, 0), 2);
}

struct bits {
	unsigned int sends, solicited;
};

/* Counts SENDs of one packet. The BTH stands behind Ethernet, IP and UDP. */
static void saw(void *arg, uint64_t now_ns, const uint8_t *frame, size_t length_bytes, bool lost)
{
	const size_t at = frame[12] == 0x08 ? 14 + 20 + 8 : 14 + 40 + 8;
	struct bits *bits = arg;

	(void)now_ns;
	(void)lost;
	if (length_bytes < at + 12 || frame[at] != TS_SEND_ONLY)
		return;
	bits->sends++;
	bits->solicited += frame[at + 1] >> 7;
}

static void solicited_bit_is_on_the_wire(struct vt *t)
{
	struct ts_pair *pair;
	struct bits bits = {0};

	ts_prompt(t);
	pair = ts_connected(t, IBV_QPT_RC);
	vb_sim_watch(ts_sim(t), saw, &bits);
	for (uint64_t i = 0; i < 6; i++) {
		ts_recv(&pair->b, .wr_id = 50, .length = 8);
		ts_send(&pair->a, .wr_id = i, .length = i < 3 ? 8 : 0,
			.flags = i % 3 ? 0 : IBV_SEND_SOLICITED);
		ts_done(t, pair->a.send_cq, i, IBV_WC_SEND);
	}
	vb_sim_watch(ts_sim(t), NULL, NULL);
	VT_EQ(t, bits.sends, 6);
	VT_EQ(t, bits.solicited, 2);
}

#define SIM (VT_NEEDS_SIM | VT_NEEDS_VIRTUAL_CLOCK)

static const struct vt_test tests[] = {
	{"resized_cq_is_armed_as_before", "ibv_resize_cq(3)", 0, resized_cq_is_armed_as_before},
	{"solicited_arming_serves_one_message", "ibv_req_notify_cq(3)", 0,
	 solicited_arming_serves_one_message},
	{"slots_have_no_flags_of_their_own", "ibv_post_send(3): send_flags", 0,
	 slots_have_no_flags_of_their_own},
	{"slots_forget_their_last_wr", "ibv_post_send(3)", VT_NEEDS_ATOMICS,
	 slots_forget_their_last_wr},
	{"smaller_srq_takes_fewer", "ibv_modify_srq(3): max_wr", VT_NEEDS_SRQ,
	 smaller_srq_takes_fewer},
	{"slots_complete_what_is_signalled", "ibv_post_send(3): IBV_SEND_SIGNALED", 0,
	 slots_complete_what_is_signalled},
	{"slots_have_no_fence_of_their_own", "ibv_post_send(3): IBV_SEND_FENCE",
	 SIM | VT_NEEDS_FAULTS, slots_have_no_fence_of_their_own},
	{"windows_are_bound_again_and_again", "ibv_post_send(3): IBV_WR_BIND_MW", 0,
	 windows_are_bound_again_and_again},
	{"each_receive_has_its_time", "ibv_create_cq_ex(3): completion_ts", SIM,
	 each_receive_has_its_time},
	{"grown_srq_keeps_its_order", "ibv_modify_srq(3): max_wr", VT_NEEDS_SRQ,
	 grown_srq_keeps_its_order},
	{"each_gap_is_repaired_without_a_timeout",
	 SRC_RXE "rxe_comp.c, check_ack: AETH_NAK_PSN_SEQ_ERROR", SIM | VT_NEEDS_FAULTS,
	 each_gap_is_repaired_without_a_timeout},
	{"peer_that_ends_is_missed", "ibv_modify_qp(3): retry_cnt", SIM, peer_that_ends_is_missed},
	{"rnr_wait_is_the_responders", "ibv_modify_qp(3): min_rnr_timer", SIM,
	 rnr_wait_is_the_responders},
	{"reads_restore_the_rnr_retries", "unsourced", SIM, reads_restore_the_rnr_retries},
	{"counters_count_every_time", SRC_RXE "rxe_hw_counters.h", SIM, counters_count_every_time},
	{"many_events_come_in_order", "ibv_get_async_event(3)", SIM, many_events_come_in_order},
	{"death_ends_qps_of_every_state", "unsourced", SIM | VT_NEEDS_TWO_DEVICES,
	 death_ends_qps_of_every_state},
	{"other_addresses_leave_a_connection", "unsourced", SIM | VT_NEEDS_ETHERNET,
	 other_addresses_leave_a_connection},
	{"datagram_has_the_gid_of_its_index", "ibv_create_ah(3): sgid_index",
	 SIM | VT_NEEDS_ETHERNET | VT_NEEDS_TWO_DEVICES, datagram_has_the_gid_of_its_index},
	{"keys_of_many_regions_differ", "unsourced", VT_NEEDS_SIM, keys_of_many_regions_differ},
	{"hole_in_a_range_is_efault", "ibv_reg_mr(3); " SRC_CORE "umem.c, ib_umem_get", 0,
	 hole_in_a_range_is_efault},
	{"long_run_keeps_the_time_of_each_packet", "ibv_modify_qp(3): timeout",
	 SIM | VT_NEEDS_FAULTS, long_run_keeps_the_time_of_each_packet},
	{"shorter_period_overtakes_other_timers", "ibv_modify_cq(3)", SIM | VT_NEEDS_FAULTS,
	 shorter_period_overtakes_other_timers},
	{"query_after_a_modify_takes_no_time", "unsourced", SIM,
	 query_after_a_modify_takes_no_time},
	{"one_tell_ends_a_wait", "unsourced", SIM, one_tell_ends_a_wait},
	{"solicited_bit_is_on_the_wire", "ibv_post_send(3): IBV_SEND_SOLICITED",
	 SIM | VT_NEEDS_ETHERNET, solicited_bit_is_on_the_wire},
	{"watcher_outlives_the_trace_file", "unsourced", SIM, watcher_outlives_the_trace_file},
	{NULL},
};

const struct vt_suite vt_suite_later = {"later", "second messages, events and objects", tests,
					.simulator = true};
