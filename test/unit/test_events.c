/* SPDX-License-Identifier: MIT */
/* The events that the backend sim gives to a watcher: each kind, each field. */
#include "test/unit/event_log.h"

#include <stdio.h>
#include <sys/mman.h>
#include <verbena/fault.h>

static struct ibv_qp *from, *to; /* RC; `from` is on sim0 */
static bool infiniband;

void setUp(void)
{
	infiniband = false;
}

void tearDown(void)
{
	unwatch_events();
	close_pair();
}

static void connect(void)
{
	connect_pair(&from, &to);
	watch_events();
}

/* Runs a test on Ethernet, and on InfiniBand. */
static void on_both(void (*test)(void))
{
	open_pair();
	test();
	unwatch_events();
	close_pair();
	infiniband = true;
	open_infiniband_pair();
	test();
}

static void write_to_b(uint32_t bytes, uint32_t rkey)
{
	struct ibv_sge sge = sge_of(&a, 0, bytes);
	struct ibv_send_wr wr = {
		.wr_id = 1,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.wr.rdma = {(uintptr_t)b.buffer, rkey},
	};

	TEST_ASSERT_EQUAL_INT(0, post_wr(from, &wr));
}

static void send_to_b(void)
{
	struct ibv_sge sge = sge_of(&a, 0, 8);
	struct ibv_send_wr wr = {.wr_id = 1, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND};

	TEST_ASSERT_EQUAL_INT(0, post_wr(from, &wr));
}

static void receive_at_b(uint32_t bytes)
{
	struct ibv_sge sge = sge_of(&b, 0, bytes);
	struct ibv_recv_wr *bad, wr = {.wr_id = 2, .sg_list = &sge, .num_sge = 1};

	TEST_ASSERT_EQUAL_INT(0, ibv_post_recv(to, &wr, &bad));
}

static void modify(struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = {.qp_state = state};

	TEST_ASSERT_EQUAL_INT(0, B.modify_qp(qp, &attr, IBV_QP_STATE));
}

static void check_origin(const struct noted *noted, const char *device, unsigned int port,
			 uint32_t qpn)
{
	TEST_ASSERT_NOT_NULL(noted);
	TEST_ASSERT_EQUAL_STRING(device, noted->device);
	TEST_ASSERT_EQUAL_UINT(port, noted->event.port);
	TEST_ASSERT_EQUAL_HEX(qpn, noted->event.qpn);
	TEST_ASSERT_NULL(noted->event.why);
	TEST_ASSERT_NULL(noted->event.peer_why);
}

/* --- packets --- */

static void check_addresses(const struct vb_packet *packet, const struct end *source,
			    const struct end *dest)
{
	const unsigned int expected = VB_PACKET_HAS_GIDS | (infiniband ? VB_PACKET_HAS_LIDS : 0);

	TEST_ASSERT_EQUAL_HEX(expected, packet->has & (VB_PACKET_HAS_GIDS | VB_PACKET_HAS_LIDS));
	TEST_ASSERT_EQUAL_MEMORY(source->gid.raw, packet->source_gid, 16);
	TEST_ASSERT_EQUAL_MEMORY(dest->gid.raw, packet->dest_gid, 16);
	TEST_ASSERT_EQUAL_HEX(source->lid, packet->slid);
	TEST_ASSERT_EQUAL_HEX(dest->lid, packet->dlid);
	TEST_ASSERT_EQUAL_INT(infiniband, packet->slid != 0);
}

static void packets_of_a_write(void)
{
	const struct noted *noted;

	connect();
	TEST_ASSERT_EQUAL_INT(0, vb_sim_run(NULL, 1000));
	write_to_b(1500, b.mr->rkey);
	expect_wc(&a, 1, IBV_WC_SUCCESS);
	TEST_ASSERT_EQUAL_UINT(3, count_events(VB_EVENT_PACKET));

	noted = find_event(VB_EVENT_PACKET, 0);
	check_origin(noted, "sim0", 1, from->qp_num);
	TEST_ASSERT_EQUAL_UINT64(1000, noted->event.time_ns);
	TEST_ASSERT_EQUAL_UINT64(0, noted->event.values[0]);
	TEST_ASSERT_EQUAL_UINT64(0, noted->event.values[1]);
	TEST_ASSERT_EQUAL_HEX8(0x06, noted->packet.opcode);
	TEST_ASSERT_EQUAL_STRING("RC RDMA_WRITE_FIRST", noted->packet.opcode_name);
	check_addresses(&noted->packet, &a, &b);
	TEST_ASSERT_EQUAL_HEX(VB_PACKET_HAS_RETH, noted->packet.has & ~0x3u);
	TEST_ASSERT_EQUAL_HEX64((uintptr_t)b.buffer, noted->packet.remote_addr);
	TEST_ASSERT_EQUAL_HEX(b.mr->rkey, noted->packet.rkey);
	TEST_ASSERT_EQUAL_UINT(1500, noted->packet.dma_bytes);
	TEST_ASSERT_EQUAL_UINT(1024, noted->packet.payload_bytes);
	TEST_ASSERT_EQUAL_HEX(to->qp_num, noted->packet.dest_qpn);
	TEST_ASSERT_EQUAL_HEX(from->qp_num, noted->packet.source_qpn);
	TEST_ASSERT_EQUAL_HEX(0xffff, noted->packet.pkey);
	TEST_ASSERT_EQUAL_UINT(0, noted->packet.psn);
	TEST_ASSERT_FALSE(noted->packet.ack_request);
	TEST_ASSERT_FALSE(noted->packet.lost);

	noted = find_event(VB_EVENT_PACKET, 1);
	TEST_ASSERT_EQUAL_STRING("RC RDMA_WRITE_LAST", noted->packet.opcode_name);
	TEST_ASSERT_EQUAL_UINT(1, noted->packet.psn);
	TEST_ASSERT_EQUAL_UINT(476, noted->packet.payload_bytes);
	TEST_ASSERT_TRUE(noted->packet.ack_request);
	TEST_ASSERT_EQUAL_HEX(0, noted->packet.has & ~0x3u);
	/* Memory of the packet before must not show through. */
	TEST_ASSERT_EQUAL_HEX64(0, noted->packet.remote_addr);

	noted = find_event(VB_EVENT_PACKET, 2);
	check_origin(noted, "sim1", 1, to->qp_num);
	TEST_ASSERT_EQUAL_STRING("RC ACKNOWLEDGE", noted->packet.opcode_name);
	TEST_ASSERT_EQUAL_HEX(from->qp_num, noted->packet.dest_qpn);
	TEST_ASSERT_EQUAL_HEX(VB_PACKET_HAS_AETH, noted->packet.has & ~0x3u);
	TEST_ASSERT_EQUAL_HEX8(0x1f, noted->packet.syndrome);
	TEST_ASSERT_EQUAL_UINT(1, noted->packet.msn);
	check_addresses(&noted->packet, &b, &a);
}

void test_packets_of_a_write(void)
{
	on_both(packets_of_a_write);
}

/* A fault that changes the bytes: the event shows the frame that travels. */
static void a_changed_packet(void)
{
	const struct vb_fault_rule rule = {
		.action = VB_FAULT_CORRUPT,
		.count = 1,
		.change = VB_CHANGE_PSN,
		.value = 77,
		.right_icrc = true,
	};
	unsigned int id;

	connect();
	TEST_ASSERT_EQUAL_INT(0, vb_fault_add(NULL, &rule, &id));
	write_to_b(8, b.mr->rkey);
	TEST_ASSERT_EQUAL_INT(0, vb_sim_run(NULL, 0));
	TEST_ASSERT_EQUAL_UINT(77, find_event(VB_EVENT_PACKET, 0)->packet.psn);
	TEST_ASSERT_EQUAL_HEX(from->qp_num, find_event(VB_EVENT_PACKET, 0)->packet.source_qpn);
	TEST_ASSERT_EQUAL_HEX(from->qp_num, find_event(VB_EVENT_PACKET, 0)->event.qpn);
	/* The fault is noted with the packet before the change. */
	TEST_ASSERT_EQUAL_UINT(0, only_event(VB_EVENT_FAULT)->packet.psn);
	vb_fault_clear(NULL);
}

void test_a_changed_packet(void)
{
	on_both(a_changed_packet);
}

/* A packet on a link with delay is encoded when it is sent. */
void test_a_packet_whose_payload_cannot_be_read_is_lost(void)
{
	static struct vb_sim_config config = {
		.device_count = 2,
		.devices = {{.name = "sim0"}, {.name = "sim1"}},
		.link_count = 1,
		.links = {{.a = "sim0", .b = "sim1", .delay_ns = 1000}},
	};
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_send_wr wr = {.num_sge = 1, .opcode = IBV_WR_SEND};
	struct ibv_mr *mr;
	struct ibv_sge sge;

	open_pair_of(&config);
	connect();
	mr = B.reg_mr(a.pd, page, 4096, 0);
	TEST_ASSERT_NOT_NULL(mr);
	sge = (struct ibv_sge){(uintptr_t)page, 8, mr->lkey};
	wr.sg_list = &sge;
	munmap(page, 4096);
	TEST_ASSERT_EQUAL_INT(0, post_wr(from, &wr));
	TEST_ASSERT_EQUAL_INT(0, vb_sim_run(NULL, 0));
	TEST_ASSERT_TRUE(only_event(VB_EVENT_PACKET)->packet.lost);
	TEST_ASSERT_EQUAL_UINT64(1, only_event(VB_EVENT_PACKET)->event.values[0]);
}

static struct {
	uint8_t frame[256];
	size_t frame_bytes;
} heard;

static void hear(void *arg, uint64_t now_ns, const uint8_t *frame, size_t frame_bytes, bool lost)
{
	(void)arg, (void)now_ns, (void)lost;
	memcpy(heard.frame, frame, frame_bytes);
	heard.frame_bytes = frame_bytes;
}

static void an_injected_frame(void)
{
	const struct noted *noted;

	connect_pair(&from, &to);
	vb_sim_watch(NULL, hear, NULL);
	receive_at_b(8);
	send_to_b();
	expect_wc(&b, 2, IBV_WC_SUCCESS);
	expect_wc(&a, 1, IBV_WC_SUCCESS);
	vb_sim_watch(NULL, NULL, NULL);
	watch_events();
	/* The ACK comes again. */
	TEST_ASSERT_EQUAL_INT(0, vb_sim_inject(a.context, 1, heard.frame, heard.frame_bytes));
	noted = only_event(VB_EVENT_PACKET);
	check_origin(noted, "sim0", 1, 0);
	TEST_ASSERT_EQUAL_UINT64(0, noted->event.values[0]);
	TEST_ASSERT_EQUAL_UINT64(1, noted->event.values[1]);
	TEST_ASSERT_EQUAL_STRING("RC ACKNOWLEDGE", noted->packet.opcode_name);
	TEST_ASSERT_EQUAL_HEX(from->qp_num, noted->packet.dest_qpn);
	TEST_ASSERT_EQUAL_HEX(0, noted->packet.source_qpn);
	/* No header can be read. */
	TEST_ASSERT_EQUAL_INT(0, vb_sim_inject(a.context, 1, "\0\0\0", 3));
	TEST_ASSERT_EQUAL_UINT(2, count_events(VB_EVENT_PACKET));
	TEST_ASSERT_NULL(find_event(VB_EVENT_PACKET, 1)->packet.opcode_name);
	TEST_ASSERT_EQUAL_HEX(0, find_event(VB_EVENT_PACKET, 1)->packet.has);
}

void test_an_injected_frame(void)
{
	on_both(an_injected_frame);
}

/* --- states --- */

static void expect_state(unsigned int index, const struct ibv_qp *qp, enum ibv_qp_state before,
			 enum ibv_qp_state after, const char *by)
{
	const struct noted *noted = find_event(VB_EVENT_STATE, index);

	check_origin(noted, qp == to ? "sim1" : "sim0", 1, qp->qp_num);
	TEST_ASSERT_EQUAL_UINT64(before, noted->event.values[0]);
	TEST_ASSERT_EQUAL_UINT64(after, noted->event.values[1]);
	TEST_ASSERT_EQUAL_STRING(by, noted->texts[0]);
}

static void states_by_modify_qp(void)
{
	watch_events();
	connect_pair(&from, &to);
	modify(from, IBV_QPS_SQD);
	TEST_ASSERT_EQUAL_INT(0, vb_sim_run(NULL, 0));
	modify(from, IBV_QPS_RTS);
	modify(from, IBV_QPS_RTS); /* the same state is no change */
	modify(from, IBV_QPS_ERR);
	modify(from, IBV_QPS_ERR);
	modify(from, IBV_QPS_RESET);
	TEST_ASSERT_EQUAL_UINT(11, count_events(VB_EVENT_STATE));
	expect_state(0, from, IBV_QPS_RESET, IBV_QPS_INIT, "modify_qp");
	expect_state(1, from, IBV_QPS_INIT, IBV_QPS_RTR, "modify_qp");
	expect_state(2, from, IBV_QPS_RTR, IBV_QPS_RTS, "modify_qp");
	expect_state(3, to, IBV_QPS_RESET, IBV_QPS_INIT, "modify_qp");
	expect_state(6, from, IBV_QPS_RTS, IBV_QPS_SQD, "modify_qp");
	expect_state(7, from, IBV_QPS_SQD, IBV_QPS_SQD, "drained");
	expect_state(8, from, IBV_QPS_SQD, IBV_QPS_RTS, "modify_qp");
	expect_state(9, from, IBV_QPS_RTS, IBV_QPS_ERR, "modify_qp");
	expect_state(10, from, IBV_QPS_ERR, IBV_QPS_RESET, "modify_qp");
}

void test_states_by_modify_qp(void)
{
	on_both(states_by_modify_qp);
}

static void states_after_a_wrong_rkey(void)
{
	connect();
	write_to_b(8, 0x1234);
	expect_wc(&a, 1, IBV_WC_REM_ACCESS_ERR);
	TEST_ASSERT_EQUAL_UINT(2, count_events(VB_EVENT_STATE));
	expect_state(0, to, IBV_QPS_RTS, IBV_QPS_ERR, "receive");
	expect_state(1, from, IBV_QPS_RTS, IBV_QPS_ERR, "send");
}

void test_states_after_a_wrong_rkey(void)
{
	on_both(states_after_a_wrong_rkey);
}

void test_state_of_a_ud_qp_after_a_failed_send(void)
{
	struct ibv_qp_init_attr_ex attr;
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .num_sge = 1};
	struct ibv_sge sge;

	open_pair();
	attr = qp_attr(&a, IBV_QPT_UD);
	from = B.create_qp_ex(a.context, &attr);
	connect_qp(from, &b, 0);
	sge = sge_of(&a, 0, 8);
	sge.lkey ^= 0x5500;
	wr.sg_list = &sge;
	wr.wr.ud.ah = B.create_ah(
		a.pd,
		&(struct ibv_ah_attr){.is_global = 1,
				      .port_num = 1,
				      .grh = {.dgid = b.gid, .sgid_index = 1, .hop_limit = 1}});
	watch_events();
	TEST_ASSERT_EQUAL_INT(0, post_wr(from, &wr));
	expect_wc(&a, 0, IBV_WC_LOC_PROT_ERR);
	expect_state(0, from, IBV_QPS_RTS, IBV_QPS_SQE, "send");
	TEST_ASSERT_EQUAL_UINT(1, count_events(VB_EVENT_STATE));
}

void test_states_after_a_cq_overrun(void)
{
	struct ibv_qp_init_attr_ex attr;
	const struct noted *noted;
	char name[32];

	open_pair();
	attr = qp_attr(&a, IBV_QPT_RC);
	attr.send_cq = attr.recv_cq = B.create_cq(a.context, 1, NULL, NULL, 0);
	from = B.create_qp_ex(a.context, &attr);
	attr = qp_attr(&b, IBV_QPT_RC);
	to = B.create_qp_ex(b.context, &attr);
	connect_qp(from, &b, to->qp_num);
	connect_qp(to, &a, from->qp_num);
	watch_events();
	write_to_b(8, b.mr->rkey);
	write_to_b(8, b.mr->rkey);
	TEST_ASSERT_EQUAL_INT(0, vb_sim_run(NULL, 0));
	expect_state(0, from, IBV_QPS_RTS, IBV_QPS_ERR, "cq_overrun");
	snprintf(name, sizeof(name), "CQ %u", from->send_cq->handle);
	noted = find_event(VB_EVENT_ASYNC, 0);
	check_origin(noted, "sim0", 0, 0);
	TEST_ASSERT_EQUAL_UINT64(IBV_EVENT_CQ_ERR, noted->event.values[0]);
	TEST_ASSERT_EQUAL_STRING(name, noted->texts[0]);
	snprintf(name, sizeof(name), "QP 0x%x", from->qp_num);
	noted = find_event(VB_EVENT_ASYNC, 1);
	check_origin(noted, "sim0", 1, from->qp_num);
	TEST_ASSERT_EQUAL_UINT64(IBV_EVENT_QP_FATAL, noted->event.values[0]);
	TEST_ASSERT_EQUAL_STRING(name, noted->texts[0]);
}

static void states_after_the_device_has_died(void)
{
	const struct noted *noted;

	connect();
	TEST_ASSERT_EQUAL_INT(0, vb_sim_kill_device(a.context));
	expect_state(0, from, IBV_QPS_RTS, IBV_QPS_ERR, "device_fatal");
	noted = only_event(VB_EVENT_ASYNC);
	check_origin(noted, "sim0", 0, 0);
	TEST_ASSERT_EQUAL_UINT64(IBV_EVENT_DEVICE_FATAL, noted->event.values[0]);
	TEST_ASSERT_EQUAL_STRING("sim0", noted->texts[0]);
}

void test_states_after_the_device_has_died(void)
{
	on_both(states_after_the_device_has_died);
}

/* --- asynchronous events --- */

static void a_port_goes_down_and_comes_back(void)
{
	const struct noted *noted;

	connect();
	TEST_ASSERT_EQUAL_INT(0, vb_sim_port_state(b.context, 1, false));
	TEST_ASSERT_EQUAL_INT(0, vb_sim_port_state(b.context, 1, false));
	write_to_b(8, b.mr->rkey);
	TEST_ASSERT_EQUAL_INT(0, vb_sim_run(NULL, 0));
	TEST_ASSERT_EQUAL_INT(0, vb_sim_port_state(b.context, 1, true));

	TEST_ASSERT_EQUAL_UINT(2, count_events(VB_EVENT_PORT));
	noted = find_event(VB_EVENT_PORT, 0);
	check_origin(noted, "sim1", 1, 0);
	TEST_ASSERT_EQUAL_STRING("ACTIVE", noted->texts[0]);
	TEST_ASSERT_EQUAL_STRING("DOWN", noted->texts[1]);
	noted = find_event(VB_EVENT_PORT, 1);
	TEST_ASSERT_EQUAL_STRING("DOWN", noted->texts[0]);
	TEST_ASSERT_EQUAL_STRING("ACTIVE", noted->texts[1]);

	noted = find_event(VB_EVENT_ASYNC, 0);
	check_origin(noted, "sim1", 1, 0);
	TEST_ASSERT_EQUAL_UINT64(IBV_EVENT_PORT_ERR, noted->event.values[0]);
	TEST_ASSERT_EQUAL_STRING("port 1", noted->texts[0]);

	/* The link has lost the packet. */
	noted = only_event(VB_EVENT_PACKET);
	TEST_ASSERT_EQUAL_UINT64(1, noted->event.values[0]);
	TEST_ASSERT_TRUE(noted->packet.lost);
}

void test_a_port_goes_down_and_comes_back(void)
{
	on_both(a_port_goes_down_and_comes_back);
}

void test_an_srq_reaches_its_limit(void)
{
	struct ibv_srq_init_attr init = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct ibv_srq_attr limit = {.srq_limit = 1};
	struct ibv_qp_init_attr_ex attr;
	struct ibv_recv_wr *bad, wr = {0};
	const struct noted *noted;
	struct ibv_srq *srq;
	char name[32];

	open_pair();
	srq = B.create_srq(b.pd, &init);
	TEST_ASSERT_EQUAL_INT(0, B.modify_srq(srq, &limit, IBV_SRQ_LIMIT));
	attr = qp_attr(&a, IBV_QPT_RC);
	from = B.create_qp_ex(a.context, &attr);
	attr = qp_attr(&b, IBV_QPT_RC);
	attr.srq = srq;
	to = B.create_qp_ex(b.context, &attr);
	connect_qp(from, &b, to->qp_num);
	connect_qp(to, &a, from->qp_num);
	TEST_ASSERT_EQUAL_INT(0, ibv_post_srq_recv(srq, &wr, &bad));
	watch_events();
	send_to_b();
	TEST_ASSERT_EQUAL_INT(0, vb_sim_run(NULL, 0));
	noted = find_event(VB_EVENT_ASYNC, 0);
	snprintf(name, sizeof(name), "SRQ %u", srq->handle);
	check_origin(noted, "sim1", 0, 0);
	TEST_ASSERT_EQUAL_UINT64(IBV_EVENT_SRQ_LIMIT_REACHED, noted->event.values[0]);
	TEST_ASSERT_EQUAL_STRING(name, noted->texts[0]);
}

/* --- timers and going back --- */

static void expect_timer(unsigned int index, const char *timer, const char *what, uint64_t psn,
			 uint64_t wait_ns, uint64_t retries_left, uint64_t time_ns)
{
	const struct noted *noted = find_event(VB_EVENT_TIMER, index);

	check_origin(noted, "sim0", 1, from->qp_num);
	TEST_ASSERT_EQUAL_STRING(timer, noted->texts[0]);
	TEST_ASSERT_EQUAL_STRING(what, noted->texts[1]);
	TEST_ASSERT_EQUAL_UINT64(psn, noted->event.values[0]);
	TEST_ASSERT_EQUAL_UINT64(wait_ns, noted->event.values[1]);
	TEST_ASSERT_EQUAL_HEX(wait_ns ? 0 : 2, noted->event.absent);
	TEST_ASSERT_EQUAL_UINT64(retries_left, noted->event.values[2]);
	TEST_ASSERT_EQUAL_UINT64(time_ns, noted->event.time_ns);
}

static void expect_rewind(unsigned int index, uint64_t psn, uint64_t sent_psn, const char *by)
{
	const struct noted *noted = find_event(VB_EVENT_REWIND, index);

	check_origin(noted, "sim0", 1, from->qp_num);
	TEST_ASSERT_EQUAL_UINT64(psn, noted->event.values[0]);
	TEST_ASSERT_EQUAL_UINT64(sent_psn, noted->event.values[1]);
	TEST_ASSERT_EQUAL_STRING(by, noted->texts[0]);
}

/* timeout 14 is 67.108864 ms, retry_cnt is 3. */
static void the_ack_timer_expires_until_no_retry_is_left(void)
{
	const struct vb_fault_rule rule = {.action = VB_FAULT_DROP, .from = "sim0", .skip = 1};
	const uint64_t timeout_ns = UINT64_C(4096) << 14;

	connect();
	TEST_ASSERT_EQUAL_INT(0, vb_fault_add(NULL, &rule, NULL));
	write_to_b(8, b.mr->rkey);
	expect_wc(&a, 1, IBV_WC_SUCCESS);
	write_to_b(1500, b.mr->rkey);
	expect_wc(&a, 1, IBV_WC_RETRY_EXC_ERR);
	TEST_ASSERT_EQUAL_UINT(4, count_events(VB_EVENT_TIMER));
	TEST_ASSERT_EQUAL_UINT(3, count_events(VB_EVENT_REWIND));
	for (unsigned int i = 0; i < 4; i++)
		expect_timer(i, "ack", "expired", 1, 0, 3 - i, (i + 1) * timeout_ns);
	for (unsigned int i = 0; i < 3; i++)
		expect_rewind(i, 1, 3, "timeout");
	expect_state(0, from, IBV_QPS_RTS, IBV_QPS_ERR, "send");
	vb_fault_clear(NULL);
}

void test_the_ack_timer_expires_until_no_retry_is_left(void)
{
	on_both(the_ack_timer_expires_until_no_retry_is_left);
}

/* min_rnr_timer 12 is 0.64 ms; rnr_retry 7 is for ever. */
static void a_send_waits_for_a_receive(void)
{
	connect();
	send_to_b();
	TEST_ASSERT_EQUAL_INT(0, vb_sim_run(NULL, 1000000));
	expect_timer(0, "rnr", "started", 0, 640000, 7, 0);
	expect_timer(1, "rnr", "expired", 0, 0, 7, 640000);
	expect_timer(2, "rnr", "started", 0, 640000, 7, 640000);
	TEST_ASSERT_EQUAL_UINT(3, count_events(VB_EVENT_TIMER));
	TEST_ASSERT_EQUAL_UINT(2, count_events(VB_EVENT_REWIND));
	expect_rewind(0, 0, 1, "rnr_nak");
	receive_at_b(8);
	expect_wc(&a, 1, IBV_WC_SUCCESS);
	expect_timer(3, "rnr", "expired", 0, 0, 7, 1280000);
	TEST_ASSERT_EQUAL_UINT(4, count_events(VB_EVENT_TIMER));
}

void test_a_send_waits_for_a_receive(void)
{
	on_both(a_send_waits_for_a_receive);
}

/* The ACK of the send that waits comes from outside. */
void test_an_rnr_wait_ends_early(void)
{
	open_pair();
	connect_pair(&from, &to);
	vb_sim_watch(NULL, hear, NULL);
	receive_at_b(8);
	send_to_b();
	expect_wc(&b, 2, IBV_WC_SUCCESS);
	expect_wc(&a, 1, IBV_WC_SUCCESS);
	vb_sim_watch(NULL, NULL, NULL);
	/* The same PSNs once more. */
	modify(from, IBV_QPS_RESET);
	connect_qp(from, &b, to->qp_num);
	modify(to, IBV_QPS_RESET);
	connect_qp(to, &a, from->qp_num);
	watch_events();
	send_to_b();
	TEST_ASSERT_EQUAL_INT(0, vb_sim_run(NULL, 1000));
	TEST_ASSERT_EQUAL_INT(0, vb_sim_inject(a.context, 1, heard.frame, heard.frame_bytes));
	expect_wc(&a, 1, IBV_WC_SUCCESS);
	TEST_ASSERT_EQUAL_INT(0, vb_sim_run(NULL, 1000000));
	expect_timer(0, "rnr", "started", 0, 640000, 7,
		     find_event(VB_EVENT_TIMER, 0)->event.time_ns);
	TEST_ASSERT_EQUAL_STRING("ended", find_event(VB_EVENT_TIMER, 1)->texts[1]);
	TEST_ASSERT_EQUAL_UINT(2, count_events(VB_EVENT_TIMER));
}

static void a_lost_request_is_sent_again(void)
{
	const struct vb_fault_rule rule = {
		.action = VB_FAULT_DROP, .psn_given = true, .psn = 1, .count = 1, .from = "sim0"};

	connect();
	TEST_ASSERT_EQUAL_INT(0, vb_fault_add(NULL, &rule, NULL));
	write_to_b(3000, b.mr->rkey);
	expect_wc(&a, 1, IBV_WC_SUCCESS);
	TEST_ASSERT_EQUAL_UINT(1, count_events(VB_EVENT_REWIND));
	expect_rewind(0, 1, 3, "sequence_nak");
	vb_fault_clear(NULL);
}

void test_a_lost_request_is_sent_again(void)
{
	on_both(a_lost_request_is_sent_again);
}

static void a_lost_response_is_asked_for_again(void)
{
	const struct vb_fault_rule rule = {
		.action = VB_FAULT_DROP, .psn_given = true, .psn = 1, .count = 1, .from = "sim1"};
	struct ibv_sge sge = sge_of(&a, 0, 3000);
	struct ibv_send_wr wr = {
		.wr_id = 1,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_READ,
		.wr.rdma = {(uintptr_t)b.buffer, b.mr->rkey},
	};

	connect();
	TEST_ASSERT_EQUAL_INT(0, vb_fault_add(NULL, &rule, NULL));
	TEST_ASSERT_EQUAL_INT(0, post_wr(from, &wr));
	expect_wc(&a, 1, IBV_WC_SUCCESS);
	TEST_ASSERT_EQUAL_UINT(1, count_events(VB_EVENT_REWIND));
	expect_rewind(0, 1, 3, "lost_response");
	vb_fault_clear(NULL);
}

void test_a_lost_response_is_asked_for_again(void)
{
	on_both(a_lost_response_is_asked_for_again);
}

/* SoftRoCE goes back when the RNR timer has expired. */
void test_a_device_goes_back_after_the_rnr_wait(void)
{
	open_pair();
	TEST_ASSERT_EQUAL_INT(0, vb_sim_set_quirk(a.context, "rnr_naks_stop_nothing", true));
	connect();
	send_to_b();
	TEST_ASSERT_EQUAL_INT(0, vb_sim_run(NULL, 650000));
	TEST_ASSERT_EQUAL_STRING("started", find_event(VB_EVENT_TIMER, 0)->texts[1]);
	TEST_ASSERT_EQUAL_STRING("expired", find_event(VB_EVENT_TIMER, 1)->texts[1]);
	expect_rewind(0, 0, 1, "rnr_over");
}

/* --- faults --- */

static void each_action_of_a_fault_rule(void)
{
	static const struct {
		enum vb_fault_action action;
		const char *name;
		unsigned int packets;
		bool lost;
	} rows[] = {
		{VB_FAULT_DROP, "drop", 1, true},
		{VB_FAULT_CORRUPT, "corrupt", 1, false},
		{VB_FAULT_DUPLICATE, "duplicate", 2, false},
		{VB_FAULT_DELAY, "delay", 1, false},
	};
	uint32_t psn = 0;

	connect();
	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++, psn++) {
		struct vb_fault_rule rule = {
			.action = rows[i].action, .from = "sim0", .count = 1, .delay_ns = 1000};
		const struct noted *noted;
		unsigned int id = 0;

		TEST_ASSERT_EQUAL_INT(0, vb_fault_add(NULL, &rule, &id));
		events.count = 0;
		write_to_b(8, b.mr->rkey);
		TEST_ASSERT_EQUAL_INT(0, vb_sim_run(NULL, 0));
		noted = only_event(VB_EVENT_FAULT);
		check_origin(noted, "sim0", 1, from->qp_num);
		TEST_ASSERT_EQUAL_STRING(rows[i].name, noted->texts[0]);
		TEST_ASSERT_EQUAL_UINT64(id, noted->event.values[0]);
		TEST_ASSERT_EQUAL_STRING("RC RDMA_WRITE_ONLY", noted->packet.opcode_name);
		TEST_ASSERT_EQUAL_UINT(psn, noted->packet.psn);
		TEST_ASSERT_EQUAL_HEX(from->qp_num, noted->packet.source_qpn);
		for (unsigned int k = 0; k < rows[i].packets; k++) {
			noted = find_event(VB_EVENT_PACKET, k);
			check_origin(noted, "sim0", 1, from->qp_num);
			TEST_ASSERT_EQUAL_INT(rows[i].lost, noted->packet.lost);
			TEST_ASSERT_EQUAL_UINT64(rows[i].lost, noted->event.values[0]);
		}
		noted = find_event(VB_EVENT_PACKET, rows[i].packets);
		TEST_ASSERT_TRUE(!noted || strcmp(noted->device, "sim1") == 0);
		expect_wc(&a, 1, IBV_WC_SUCCESS);
		TEST_ASSERT_EQUAL_INT(0, vb_fault_remove(NULL, id));
	}
}

void test_each_action_of_a_fault_rule(void)
{
	on_both(each_action_of_a_fault_rule);
}

/* --- CQs --- */

void test_the_period_of_a_moderated_cq_ends(void)
{
	struct ibv_modify_cq_attr moderate = {
		.attr_mask = IBV_CQ_ATTR_MODERATE,
		.moderate = {.cq_count = 10, .cq_period = 50},
	};
	const struct noted *noted;
	char name[32];

	open_pair();
	connect();
	TEST_ASSERT_EQUAL_INT(0, B.modify_cq(a.cq, &moderate));
	TEST_ASSERT_EQUAL_INT(0, ibv_req_notify_cq(a.cq, 0));
	write_to_b(8, b.mr->rkey);
	write_to_b(8, b.mr->rkey);
	TEST_ASSERT_EQUAL_INT(0, vb_sim_run(NULL, 100000));
	noted = only_event(VB_EVENT_MODERATION);
	snprintf(name, sizeof(name), "CQ %u", a.cq->handle);
	check_origin(noted, "sim0", 0, 0);
	TEST_ASSERT_EQUAL_STRING(name, noted->texts[0]);
	TEST_ASSERT_EQUAL_UINT64(2, noted->event.values[0]);
	TEST_ASSERT_EQUAL_UINT64(50000, noted->event.values[1]);
	TEST_ASSERT_EQUAL_UINT64(50000, noted->event.time_ns);
}

/* --- the clock --- */

void test_now_is_the_time_of_events(void)
{
	open_pair();
	TEST_ASSERT_EQUAL_INT(0, vb_sim_run(NULL, 12345));
	TEST_ASSERT_EQUAL_UINT64(12345, B.now_ns(a.context));
}
