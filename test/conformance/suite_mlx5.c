/* SPDX-License-Identifier: MIT */
/*
 * What the profile mlx5 has from measurements and drivers of ConnectX adapters. The tests run on
 * devices of this profile, whatever the profile of the run is.
 */
#include "test/conformance/sources.h"
#include "test/support/other_world.h"
#include "test/support/quirks.h"

#include <verbena/fault.h>
#include <verbena/why.h>

#define WAITS SRC_STUDY "harness/ack_timeout/NOTES.md, "
#define CODES SRC_STUDY "docs/theory/04 and README.md of harness"

/* --- how long a connection waits --- */

struct wait {
	uint8_t timeout, retry_cnt;
	double measured_ms;
};

/* A1, A2 and D1: the median of faults in one process. */
static const struct wait waits_with_floor[] = {
	{10, 7, 3660.96}, {12, 7, 3661.02}, {14, 7, 3661.8},  {15, 7, 3660.74}, {16, 7, 3661.8},
	{17, 7, 7151.7},  {18, 7, 14667.8}, {19, 7, 29700.8}, {20, 7, 59766.3}, {14, 0, 2050.7},
	{14, 1, 440.6},	  {14, 2, 977.6},   {14, 3, 1514.3},  {14, 4, 2051.4},	{14, 5, 2588.2},
	{14, 6, 3124.8},  {15, 1, 439.72},  {15, 3, 1513.52}, {17, 1, 976.75},	{17, 2, 1781.81},
	{17, 3, 2855.57}, {17, 5, 5003.27},
};

/* B */
static const struct wait waits_without_floor[] = {
	{8, 0, 2.24},	  {8, 1, 3.11},	    {8, 3, 5.43},      {8, 5, 7.33},   {8, 7, 9.49},
	{10, 0, 8.38},	  {10, 3, 20.97},   {10, 7, 37.91},    {12, 0, 29.56}, {12, 3, 79.94},
	{12, 7, 147.04},  {14, 0, 105.07},  {14, 3, 306.29},   {14, 7, 574.9}, {16, 7, 2319.72},
	{17, 7, 4735.57}, {18, 7, 9219.88}, {20, 7, 37939.02},
};

/* A pair whose B answers nothing. */
static struct ts_pair *deaf_peer(struct vt *t, uint8_t timeout, uint8_t retry_cnt)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;

	options.timeout = timeout;
	options.retry_cnt = retry_cnt;
	pair = ts_pair_reset(t, &options);
	ts_connect(&pair->a);
	return pair;
}

static void check_waits(struct vt *t, const struct wait *rows, size_t count)
{
	struct ts_pair *pair;
	uint64_t since_ns;
	double ms;
	size_t i;

	for (i = 0; i < count; i++) {
		vt_row(t, "timeout %u, retry_cnt %u", rows[i].timeout, rows[i].retry_cnt);
		pair = deaf_peer(t, rows[i].timeout, rows[i].retry_cnt);
		since_ns = ts_now_ns(t);
		ts_write(&pair->a, .wr_id = 1, .length = 64);
		ts_failed(t, pair->a.send_cq, 1, IBV_WC_RETRY_EXC_ERR);
		ms = (double)(ts_now_ns(t) - since_ns) / 1e6;
		VT_EXPECT(t, ms > 0.95 * rows[i].measured_ms && ms < 1.05 * rows[i].measured_ms);
	}
}

static void retries_end_when_measured(struct vt *t)
{
	ts_profile(t, "mlx5");
	check_waits(t, waits_with_floor, TS_COUNT(waits_with_floor));
}

static void retries_end_earlier_without_floor(struct vt *t)
{
	ts_profile(t, "mlx5");
	VT_OK(t, vb_sim_set_quirk(t->a.ctx, "ack_timeout_floor", false));
	check_waits(t, waits_without_floor, TS_COUNT(waits_without_floor));
}

/* Where in its early waits the adapter begins varies from fault to fault; the simulator begins with
 * the first, so at timeout 17 it sends once more than the 11 to 13 times that were measured. */
static void packets_are_as_many_as_measured(struct vt *t)
{
	static const struct {
		uint8_t timeout, retry_cnt;
		unsigned int fewest, most;
	} rows[] = {{14, 7, 10, 13}, {16, 7, 10, 13}, {17, 7, 11, 14}, {18, 7, 12, 15},
		    {20, 7, 16, 17}, {14, 1, 4, 7},   {14, 3, 6, 9}};
	struct ts_pair *pair;
	struct ts_log *log;
	unsigned int count;
	size_t i;

	ts_profile(t, "mlx5");
	log = ts_watch(t);
	for (i = 0; i < TS_COUNT(rows); i++) {
		vt_row(t, "timeout %u, retry_cnt %u", rows[i].timeout, rows[i].retry_cnt);
		pair = deaf_peer(t, rows[i].timeout, rows[i].retry_cnt);
		log->count = 0;
		ts_write(&pair->a, .wr_id = 1, .length = 64);
		ts_failed(t, pair->a.send_cq, 1, IBV_WC_RETRY_EXC_ERR);
		count = ts_count(log, TS_WRITE_ONLY, 0);
		VT_EXPECT(t, count >= rows[i].fewest && count <= rows[i].most);
	}
}

/* Each lost packet is sent again after the first of the early waits. */
static void progress_begins_the_waits_anew(struct vt *t)
{
	struct ts_options options;
	struct ts_pair *pair;
	uint64_t since_ns;
	unsigned int i;

	ts_profile(t, "mlx5");
	options = ts_defaults(t, IBV_QPT_RC);
	options.retry_cnt = 1;
	pair = ts_pair(t, &options);
	for (i = 0; i < 4; i++) {
		vt_row(t, "message %u", i);
		ts_fault(t, &(struct vb_fault_rule){.action = VB_FAULT_DROP,
						    .dest_qpn = pair->b.qp->qp_num,
						    .count = 3});
		since_ns = ts_now_ns(t);
		ts_transfer(pair, IBV_WR_RDMA_WRITE, 100);
		VT_EQ(t, ts_now_ns(t) - since_ns, (12400 + 8600 + 16600) * 1000ull);
	}
}

/* --- what completions in error say --- */

static void check_code(struct vt *t, struct ibv_cq *cq, uint64_t wr_id, enum ibv_wc_status status,
		       uint32_t code)
{
	VT_EXPECT_EQ(t, ts_failed(t, cq, wr_id, status).vendor_err, code);
}

/* Posts a bad request, and checks its code and that of the request behind it. */
static void check_request(struct ts_pair *pair, const struct ts_wr *bad, enum ibv_wc_status status,
			  uint32_t code)
{
	struct vt *t = pair->a.t;

	VT_OK(t, ts_post(&pair->a, bad));
	ts_write(&pair->a, .wr_id = 2);
	check_code(t, pair->a.send_cq, 1, status, code);
	check_code(t, pair->a.send_cq, 2, IBV_WC_WR_FLUSH_ERR, 0xf9);
}

static void codes_of_refused_requests(struct vt *t)
{
	struct ts_options options;
	struct ts_pair *pair;
	size_t end;

	ts_profile(t, "mlx5");
	options = ts_defaults(t, IBV_QPT_RC);
	end = options.buffer_bytes;

	vt_row(t, "invalid rkey");
	pair = ts_connected(t, IBV_QPT_RC);
	check_request(pair,
		      &(struct ts_wr){.wr_id = 1,
				      .opcode = IBV_WR_RDMA_WRITE,
				      .length = 8,
				      .rkey = ts_wrong_key(pair->b.mr->rkey)},
		      IBV_WC_REM_ACCESS_ERR, 0x88);

	vt_row(t, "address beyond the region");
	pair = ts_connected(t, IBV_QPT_RC);
	check_request(
		pair,
		&(struct ts_wr){
			.wr_id = 1, .opcode = IBV_WR_RDMA_WRITE, .length = 8, .remote_offset = end},
		IBV_WC_REM_ACCESS_ERR, 0x88);

	vt_row(t, "QP without remote write");
	options.qp_access = IBV_ACCESS_LOCAL_WRITE;
	pair = ts_pair(t, &options);
	check_request(pair, &(struct ts_wr){.wr_id = 1, .opcode = IBV_WR_RDMA_WRITE, .length = 8},
		      IBV_WC_REM_INV_REQ_ERR, 0x8a);

	vt_row(t, "no receive");
	options = ts_defaults(t, IBV_QPT_RC);
	options.rnr_retry = 6;
	options.min_rnr_timer = 12;
	pair = ts_pair(t, &options);
	check_request(pair, &(struct ts_wr){.wr_id = 1, .opcode = IBV_WR_SEND, .length = 64},
		      IBV_WC_RNR_RETRY_EXC_ERR, 0x87);

	vt_row(t, "peer in ERR");
	pair = ts_connected(t, IBV_QPT_RC);
	VT_OK(t, ts_to(&pair->b, IBV_QPS_ERR));
	check_request(pair, &(struct ts_wr){.wr_id = 1, .opcode = IBV_WR_RDMA_WRITE, .length = 8},
		      IBV_WC_RETRY_EXC_ERR, 0x81);

	vt_row(t, "receive in another PD");
	pair = ts_connected(t, IBV_QPT_RC);
	ts_recv(&pair->b, .wr_id = 5, .length = 64,
		.lkey = ts_mr(t, ts_pd(t, &t->b), pair->b.buffer, 64, IBV_ACCESS_LOCAL_WRITE)
				->lkey);
	check_request(pair, &(struct ts_wr){.wr_id = 1, .opcode = IBV_WR_SEND, .length = 64},
		      IBV_WC_REM_OP_ERR, 0x89);
	check_code(t, pair->b.recv_cq, 5, IBV_WC_LOC_PROT_ERR, 0x32);
}

static void codes_of_local_errors(struct vt *t)
{
	struct ts_pair *pair;

	ts_profile(t, "mlx5");

	vt_row(t, "SGE longer than the region");
	pair = ts_connected(t, IBV_QPT_RC);
	check_request(pair,
		      &(struct ts_wr){.wr_id = 1,
				      .opcode = IBV_WR_RDMA_WRITE,
				      .length = 64,
				      .offset = pair->a.options.buffer_bytes - 63},
		      IBV_WC_LOC_PROT_ERR, 0x53);

	vt_row(t, "invalid lkey");
	pair = ts_connected(t, IBV_QPT_RC);
	check_request(pair,
		      &(struct ts_wr){.wr_id = 1,
				      .opcode = IBV_WR_RDMA_WRITE,
				      .length = 64,
				      .lkey = ts_wrong_key(pair->a.mr->lkey)},
		      IBV_WC_LOC_PROT_ERR, 0x52);

	vt_row(t, "READ to a region without local write");
	pair = ts_connected(t, IBV_QPT_RC);
	check_request(pair,
		      &(struct ts_wr){.wr_id = 1,
				      .opcode = IBV_WR_RDMA_READ,
				      .length = 64,
				      .lkey = ts_mr(t, pair->a.pd, pair->a.buffer, 64, 0)->lkey},
		      IBV_WC_LOC_PROT_ERR, 0x33);
}

/* The program moves the QP to ERR: the oldest WR of each queue has a code of its own. */
static void codes_of_flushes(struct vt *t)
{
	struct ts_pair *pair;
	unsigned int i;

	ts_profile(t, "mlx5");
	pair = ts_connected(t, IBV_QPT_RC);
	VT_OK(t, ts_to(&pair->b, IBV_QPS_RESET));
	for (i = 1; i <= 4; i++) {
		ts_recv(&pair->a, .wr_id = 10 + i, .length = 8);
		ts_write(&pair->a, .wr_id = i, .length = 8);
	}
	VT_OK(t, ts_to(&pair->a, IBV_QPS_ERR));
	for (i = 1; i <= 4; i++) {
		check_code(t, pair->a.send_cq, i, IBV_WC_WR_FLUSH_ERR, i == 1 ? 0xf5 : 0xf9);
		check_code(t, pair->a.recv_cq, 10 + i, IBV_WC_WR_FLUSH_ERR, i == 1 ? 0xf5 : 0xf9);
	}
	ts_write(&pair->a, .wr_id = 5, .length = 8);
	check_code(t, pair->a.send_cq, 5, IBV_WC_WR_FLUSH_ERR, 0xf9);

	/* Nothing was posted when the QP went to ERR. */
	VT_OK(t, ts_to(&pair->a, IBV_QPS_RESET));
	ts_connect(&pair->a);
	VT_OK(t, ts_to(&pair->a, IBV_QPS_ERR));
	ts_write(&pair->a, .wr_id = 6, .length = 8);
	check_code(t, pair->a.send_cq, 6, IBV_WC_WR_FLUSH_ERR, 0xf5);
	VT_OK(t, ts_to(&pair->a, IBV_QPS_ERR));
	ts_write(&pair->a, .wr_id = 7, .length = 8);
	check_code(t, pair->a.send_cq, 7, IBV_WC_WR_FLUSH_ERR, 0xf9);

	/* Nothing was flushed before the QP was reset, and then a WRITE fails. */
	VT_OK(t, ts_to(&pair->a, IBV_QPS_RESET));
	ts_connect(&pair->a);
	VT_OK(t, ts_to(&pair->a, IBV_QPS_ERR));
	VT_OK(t, ts_to(&pair->a, IBV_QPS_RESET));
	ts_connect(&pair->a);
	ts_write(&pair->a, .wr_id = 8, .length = 8);
	ts_write(&pair->a, .wr_id = 9, .length = 8);
	check_code(t, pair->a.send_cq, 8, IBV_WC_RETRY_EXC_ERR, 0x81);
	check_code(t, pair->a.send_cq, 9, IBV_WC_WR_FLUSH_ERR, 0xf9);
}

/* SoftRoCE sets no code; the profile spec sets the number of the reason. */
static void codes_of_other_profiles(struct vt *t)
{
	static const struct {
		const char *name;
		uint32_t refused, flushed;
	} rows[] = {
		{"spec", VB_WHY_NAK_ACCESS, VB_WHY_FLUSH_SEND},
		{"rxe-6.1", 0, 0},
		{"rxe-6.12", 0, 0},
	};
	struct ts_pair *pair;
	size_t i;

	for (i = 0; i < TS_COUNT(rows); i++) {
		vt_row(t, "%s", rows[i].name);
		ts_profile(t, rows[i].name);
		pair = ts_connected(t, IBV_QPT_RC);
		ts_write(&pair->a, .wr_id = 1, .length = 8, .rkey = ts_wrong_key(pair->b.mr->rkey));
		ts_write(&pair->a, .wr_id = 2, .length = 8);
		check_code(t, pair->a.send_cq, 1, IBV_WC_REM_ACCESS_ERR, rows[i].refused);
		check_code(t, pair->a.send_cq, 2, IBV_WC_WR_FLUSH_ERR, rows[i].flushed);
	}
}

/* --- what a broken WRITE leaves --- */

#define BROKEN_BYTES (4u << 20)

/* 100 Gbit/s: the packets of the WRITE need 336 us. */
static struct ts_pair *slow_pair(struct vt *t)
{
	struct vb_sim_config *config = vt_alloc(t, sizeof(*config));
	struct ts_options options;
	struct ts_pair *pair;

	*config = (struct vb_sim_config){
		.device_count = 2,
		.devices = {{.name = "first", .profile = "mlx5"},
			    {.name = "second", .profile = "mlx5"}},
		.link_count = 1,
		.links = {{.a = "first",
			   .b = "second",
			   .delay_ns = 1000,
			   .bits_per_second = 100000000000}},
	};
	ts_other_world(t, config, 1);
	options = ts_defaults(t, IBV_QPT_RC);
	options.buffer_bytes = BROKEN_BYTES;
	pair = ts_pair(t, &options);
	memset(pair->b.buffer, TS_BLANK, BROKEN_BYTES);
	return pair;
}

/* B stops during the WRITE; its memory has whole packets up to a point, and nothing behind. */
static void broken_write_leaves_whole_packets(struct vt *t)
{
	struct ts_pair *pair = slow_pair(t);
	size_t packet = ts_mtu_bytes(pair->a.options.mtu);
	size_t got, last = 0;
	unsigned int us;

	for (us = 20; us < 320; us += 60) {
		vt_row(t, "after %u us", us);
		memset(pair->b.buffer, TS_BLANK, BROKEN_BYTES);
		ts_fill(pair->a.buffer, BROKEN_BYTES, us);
		ts_write(&pair->a, .wr_id = 1, .length = BROKEN_BYTES);
		ts_pause(t, us * 1000ull);
		VT_OK(t, ts_to(&pair->b, IBV_QPS_ERR));
		ts_failed(t, pair->a.send_cq, 1, IBV_WC_RETRY_EXC_ERR);
		for (got = 0; got < BROKEN_BYTES; got += packet)
			if (memcmp(pair->b.buffer + got, pair->a.buffer + got, packet) != 0)
				break;
		VT_CHECK(t, got > last && got < BROKEN_BYTES);
		ts_blank(t, pair->b.buffer + got, BROKEN_BYTES - got);
		last = got;
		VT_OK(t, ts_to(&pair->a, IBV_QPS_RESET));
		VT_OK(t, ts_to(&pair->b, IBV_QPS_RESET));
		ts_connect_both(pair);
	}
}

/* The rows of the study: PMTU 1024, a region of 4096 bytes. */
static void write_beyond_its_region_leaves_whole_packets(struct vt *t)
{
	static const struct {
		const char *name;
		size_t offset;
		uint32_t length;
		size_t written;
	} rows[] = {
		{"multi_pkt_cross", 2048, 4096, 2048},	{"single_pkt_cross", 4064, 64, 0},
		{"barely_1B_inside", 4095, 64, 0},	{"unaligned_boundary", 1536, 4096, 2048},
		{"unaligned_offset", 2560, 2560, 1024}, {"three_pkt_partial", 1024, 4096, 3072},
	};
	struct ts_options options;
	struct ts_pair *pair;
	size_t i;

	ts_profile(t, "mlx5");
	options = ts_defaults(t, IBV_QPT_RC);
	options.mtu = IBV_MTU_1024;
	for (i = 0; i < TS_COUNT(rows); i++) {
		vt_row(t, "%s", rows[i].name);
		pair = ts_pair(t, &options);
		ts_write(&pair->a, .wr_id = 1, .length = rows[i].length,
			 .remote_offset = rows[i].offset,
			 .rkey = ts_mr(t, pair->b.pd, pair->b.buffer, 4096, TS_ACCESS_ALL)->rkey);
		ts_failed(t, pair->a.send_cq, 1, IBV_WC_REM_ACCESS_ERR);
		ts_state(&pair->b, IBV_QPS_ERR);
		ts_blank(t, pair->b.buffer, rows[i].offset);
		ts_verify(t, pair->b.buffer + rows[i].offset, rows[i].written, 1);
		ts_blank(t, pair->b.buffer + rows[i].offset + rows[i].written,
			 pair->b.options.buffer_bytes - rows[i].offset - rows[i].written);
	}
}

/* --- what the drivers say --- */

static void create_cq_ex_takes_all_standard_fields(struct vt *t)
{
	static const uint64_t fields[] = {IBV_WC_EX_WITH_BYTE_LEN,
					  IBV_WC_EX_WITH_IMM,
					  IBV_WC_EX_WITH_QP_NUM,
					  IBV_WC_EX_WITH_SRC_QP,
					  IBV_WC_EX_WITH_SLID,
					  IBV_WC_EX_WITH_SL,
					  IBV_WC_EX_WITH_DLID_PATH_BITS,
					  IBV_WC_STANDARD_FLAGS,
					  IBV_WC_STANDARD_FLAGS |
						  IBV_WC_EX_WITH_COMPLETION_TIMESTAMP};
	struct ibv_cq_init_attr_ex attr = {.cqe = 16};
	struct ibv_cq_ex *cq;
	size_t i;

	ts_profile(t, "mlx5");
	for (i = 0; i < TS_COUNT(fields); i++) {
		vt_row(t, "wc_flags 0x%llx", (unsigned long long)fields[i]);
		attr.wc_flags = fields[i];
		cq = VT_PTR(t, vb_create_cq_ex(t->a.ctx, &attr));
		VT_OK(t, vb_destroy_cq(ibv_cq_ex_to_cq(cq)));
	}
}

static void lkey_equals_rkey(struct vt *t)
{
	static const int access[] = {0, IBV_ACCESS_LOCAL_WRITE, TS_ACCESS_ALL};
	struct ibv_mr *mr;
	struct ibv_pd *pd;
	void *memory;
	size_t i;

	ts_profile(t, "mlx5");
	pd = ts_pd(t, &t->a);
	memory = ts_memory(t, 4096);
	for (i = 0; i < TS_COUNT(access); i++) {
		vt_row(t, "access 0x%x", access[i]);
		mr = ts_mr(t, pd, memory, 4096, access[i]);
		VT_EQ(t, mr->lkey, mr->rkey);
	}
}

static void arming_raises_an_event_for_what_the_cq_holds(struct vt *t)
{
	struct ts_pair *pair;

	ts_profile(t, "mlx5");
	pair = ts_pair_with_channels(t);
	ts_write(&pair->a, .wr_id = 1, .length = 8);
	ts_settle(t);
	VT_CHECK(t, !ts_cq_event(t, pair->a.send_channel, NULL));
	VT_OK(t, ibv_req_notify_cq(pair->a.send_cq, 0));
	VT_CHECK(t, ts_cq_event(t, pair->a.send_channel, NULL));
	ts_done(t, pair->a.send_cq, 1, IBV_WC_RDMA_WRITE);
	VT_OK(t, ibv_req_notify_cq(pair->a.send_cq, 0));
	VT_CHECK(t, !ts_cq_event(t, pair->a.send_channel, NULL));
}

/* Makes both nodes use their GID of an index; returns false if the table has no more. */
static bool use_gid(struct vt *t, int index, struct ibv_gid_entry *entry)
{
	if (index >= t->a.port_attr.gid_tbl_len ||
	    vb_query_gid_ex(t->a.ctx, 1, (uint32_t)index, entry, 0, sizeof(*entry)))
		return false;
	t->a.gid_index = t->b.gid_index = index;
	VT_OK(t, vb_query_gid(t->a.ctx, 1, index, &t->a.gid));
	VT_OK(t, vb_query_gid(t->b.ctx, 1, index, &t->b.gid));
	return true;
}

static uint8_t type_of(const struct ibv_gid_entry *entry)
{
	if (entry->gid_type == IBV_GID_TYPE_ROCE_V1)
		return 0;
	return ts_gid_is_ipv4(&entry->gid) ? 10 : 9;
}

static void sl_of_a_datagram_is_its_packets_type(struct vt *t)
{
	struct ibv_gid_entry entry;
	struct ts_pair *pair;
	unsigned int seen = 0;
	int index;

	ts_profile(t, "mlx5");
	for (index = 0; use_gid(t, index, &entry); index++) {
		vt_row(t, "GID %d, type %u", index, entry.gid_type);
		pair = ts_connected(t, IBV_QPT_UD);
		ts_recv(&pair->b, .wr_id = 5, .length = 1000);
		ts_send(&pair->a, .wr_id = 1, .length = 100);
		VT_EQ(t, ts_received(t, pair->b.recv_cq, 5, 100 + TS_GRH).sl, type_of(&entry));
		seen |= 1u << type_of(&entry);
	}
	VT_EQ(t, seen, 1u << 0 | 1u << 9 | 1u << 10);
}

#define NEEDS (VT_NEEDS_SIM | VT_NEEDS_VIRTUAL_CLOCK)

static const struct vt_test tests[] = {
	{"retries_end_when_measured", WAITS "A1, A2 and D1", NEEDS, retries_end_when_measured},
	{"retries_end_earlier_without_floor", WAITS "B", NEEDS, retries_end_earlier_without_floor},
	{"packets_are_as_many_as_measured", WAITS "A1 and A2: own transmissions", NEEDS,
	 packets_are_as_many_as_measured},
	{"progress_begins_the_waits_anew", "unsourced; the waits: " WAITS "A1",
	 NEEDS | VT_NEEDS_FAULTS, progress_begins_the_waits_anew},
	{"codes_of_refused_requests",
	 CODES "; 0x89: issue 5472 of openucx/ucx; 0x32: sim/profile/vendor_err.def", NEEDS,
	 codes_of_refused_requests},
	{"codes_of_local_errors", CODES, NEEDS, codes_of_local_errors},
	{"codes_of_flushes",
	 SRC_STUDY "harness/gpu-initiated/cqe_seq/NOTES.md, answer 5; of receives: unsourced",
	 NEEDS, codes_of_flushes},
	{"codes_of_other_profiles",
	 SRC_RXE "rxe_comp.c, make_send_cqe: memset, and no vendor_err; the profile spec: "
		 "include/verbena/reasons.def",
	 NEEDS, codes_of_other_profiles},
	{"broken_write_leaves_whole_packets",
	 SRC_STUDY "harness/README.md, partial_write; its report of experiment 05, 5.4", NEEDS,
	 broken_write_leaves_whole_packets},
	{"write_beyond_its_region_leaves_whole_packets", SRC_STUDY "docs/experiments/05, 5.3",
	 NEEDS, write_beyond_its_region_leaves_whole_packets},
	{"create_cq_ex_takes_all_standard_fields",
	 SRC_RDMA_CORE "providers/mlx5/verbs.c, CREATE_CQ_SUPPORTED_WC_FLAGS", NEEDS,
	 create_cq_ex_takes_all_standard_fields},
	{"lkey_equals_rkey", "Linux drivers/infiniband/hw/mlx5/mr.c, set_mr_fields", NEEDS,
	 lkey_equals_rkey},
	{"arming_raises_an_event_for_what_the_cq_holds",
	 "Linux drivers/infiniband/hw/mlx5/cq.c, mlx5_ib_arm_cq: arms with the consumer index, and "
	 "reports no missed events",
	 NEEDS, arming_raises_an_event_for_what_the_cq_holds},
	{"sl_of_a_datagram_is_its_packets_type",
	 SRC_UCX
	 "src/uct/ib/ud/base/ud_iface.h, uct_ud_iface_check_grh: \"sl represents RoCE packet "
	 "type\"; " SRC_RDMA_CORE "providers/mlx5/cq.c, handle_responder",
	 NEEDS, sl_of_a_datagram_is_its_packets_type},
	{NULL},
};

const struct vt_suite vt_suite_mlx5 = {"mlx5", "ConnectX adapters, as measured", tests,
				       .simulator = true};
