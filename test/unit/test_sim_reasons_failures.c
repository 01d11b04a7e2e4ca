/* SPDX-License-Identifier: MIT */
/*
 * Why completions fail: requests that are refused as invalid, retries, flushes, and what becomes of
 * reasons when a QP fails again, is reset or ends.
 */
#include "test/unit/sim_explain.h"

#include <fcntl.h>
#include <verbena/error.h>
#include <verbena/fault.h>
#include <verbena/verbs.h>

static struct ibv_qp *from, *to; /* at a and at b */

void setUp(void)
{
	struct ibv_qp_init_attr_ex attr;

	open_pair();
	/* The QPNs of the two devices differ by one. */
	attr = qp_attr(&b, IBV_QPT_RC);
	TEST_ASSERT_NOT_NULL(B.create_qp_ex(b.context, &attr));
	connect_pair(&from, &to);
}

void tearDown(void)
{
	vb_fault_clear(NULL);
	close_pair();
}

static void post(uint64_t wr_id, enum ibv_wr_opcode opcode, uint32_t length)
{
	struct ibv_sge sge = sge_of(&a, 0, length);
	struct ibv_send_wr wr = {.wr_id = wr_id, .opcode = opcode, .sg_list = &sge, .num_sge = 1};

	if (opcode >= IBV_WR_ATOMIC_CMP_AND_SWP) {
		wr.wr.atomic.remote_addr = (uintptr_t)b.buffer;
		wr.wr.atomic.rkey = b.mr->rkey;
	} else {
		wr.wr.rdma.remote_addr = (uintptr_t)b.buffer;
		wr.wr.rdma.rkey = b.mr->rkey;
	}
	TEST_ASSERT_EQUAL_INT(0, post_wr(from, &wr));
}

static void modify(struct ibv_qp *qp, struct ibv_qp_attr attr, int mask)
{
	TEST_ASSERT_EQUAL_INT(0, B.modify_qp(qp, &attr, mask));
}

static void enter(struct ibv_qp *qp, enum ibv_qp_state state)
{
	modify(qp, (struct ibv_qp_attr){.qp_state = state}, IBV_QP_STATE);
}

/* Changes attributes of a QP in RTS by way of SQD. */
static void change(struct ibv_qp *qp, struct ibv_qp_attr attr, int mask)
{
	enter(qp, IBV_QPS_SQD);
	attr.qp_state = IBV_QPS_SQD;
	modify(qp, attr, IBV_QP_STATE | mask);
	enter(qp, IBV_QPS_RTS);
}

/* Connects a QP again with another path MTU, expected PSN and peer. */
static void reconnect(struct ibv_qp *qp, const struct end *peer, enum ibv_mtu mtu, uint32_t rq_psn,
		      uint32_t dest_qpn)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = REMOTE_ALL};

	enter(qp, IBV_QPS_RESET);
	modify(qp, attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR,
		.path_mtu = mtu,
		.dest_qp_num = dest_qpn,
		.rq_psn = rq_psn,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 12,
		.ah_attr = {.is_global = 1,
			    .port_num = 1,
			    .grh = {.dgid = peer->gid, .sgid_index = 1, .hop_limit = 64}},
	};
	modify(qp, attr,
	       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
		       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
				    .timeout = 14,
				    .retry_cnt = 3,
				    .rnr_retry = 7,
				    .max_rd_atomic = 4};
	modify(qp, attr,
	       IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
		       IBV_QP_MAX_QP_RD_ATOMIC);
}

/* The next completion of a has failed with wr_id 7; format is the sentence behind the status. */
static void expect(enum ibv_wc_status status, enum vb_reason reason, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void expect(enum ibv_wc_status status, enum vb_reason reason, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	expect_failed_send(from, status, reason, format, arguments);
	va_end(arguments);
}

/* --- requests that the peer refuses as invalid --- */

static void corrupt(struct vb_fault_rule rule)
{
	rule.action = VB_FAULT_CORRUPT;
	rule.right_icrc = true;
	rule.count = 1;
	TEST_ASSERT_EQUAL_INT(0, vb_fault_add(NULL, &rule, NULL));
}

/* expect() of a request that the peer refuses; then the pair is connected anew. */
static void expect_invalid(enum vb_reason reason, const char *words)
{
	expect(IBV_WC_REM_INV_REQ_ERR, reason, "sim1 QP 0x%x %s", to->qp_num, words);
	vb_fault_clear(NULL);
	connect_pair(&from, &to);
}

void test_a_right_that_the_peer_qp_lacks(void)
{
	modify(to, (struct ibv_qp_attr){.qp_access_flags = IBV_ACCESS_REMOTE_READ},
	       IBV_QP_ACCESS_FLAGS);
	post(7, IBV_WR_RDMA_WRITE, 8);
	expect_invalid(VB_WHY_REQUEST_QP_RIGHT,
		       "refused RDMA WRITE at PSN 0: "
		       "the QP lacks IBV_ACCESS_REMOTE_WRITE in qp_access_flags; set "
		       "qp_access_flags by ibv_modify_qp()");
}

void test_path_mtus_that_differ(void)
{
	reconnect(to, &a, IBV_MTU_512, 0, from->qp_num);
	post(7, IBV_WR_RDMA_WRITE, 1024);
	expect_invalid(
		VB_WHY_REQUEST_MTU,
		"refused RDMA WRITE at PSN 0: "
		"the packet has 1024 bytes of payload, but path_mtu of this QP is 512 and the "
		"peer's must be the same; set the same path_mtu on both QPs");
	reconnect(to, &a, IBV_MTU_2048, 0, from->qp_num);
	post(7, IBV_WR_RDMA_READ, 2048);
	expect(IBV_WC_BAD_RESP_ERR, VB_WHY_RESPONSE_SIZE,
	       "a response packet at PSN 0 has 2048 bytes, where path_mtu 1024 needs 1024; set the "
	       "same path_mtu on both QPs");
}

void test_more_reads_than_the_peer_takes(void)
{
	change(from, (struct ibv_qp_attr){.max_rd_atomic = 8}, IBV_QP_MAX_QP_RD_ATOMIC);
	change(to, (struct ibv_qp_attr){.max_dest_rd_atomic = 1}, IBV_QP_MAX_DEST_RD_ATOMIC);
	for (uint64_t i = 6; i < 9; i++)
		post(i, IBV_WR_RDMA_READ, 8);
	expect_wc(&a, 6, IBV_WC_SUCCESS);
	expect_invalid(
		VB_WHY_REQUEST_READS,
		"refused RDMA READ at PSN 1: "
		"max_dest_rd_atomic of the QP is 1, and as many READs and atomics wait for "
		"their answers; set "
		"the requester's max_rd_atomic to the responder's max_dest_rd_atomic at most");
}

void test_addresses_of_atomics(void)
{
	struct ibv_sge sge = sge_of(&a, 0, 8);
	struct ibv_send_wr wr = {
		.wr_id = 7, .opcode = IBV_WR_ATOMIC_CMP_AND_SWP, .sg_list = &sge, .num_sge = 1};
	char words[128];

	wr.wr.atomic.remote_addr = (uintptr_t)b.buffer + 4;
	wr.wr.atomic.rkey = b.mr->rkey;
	TEST_ASSERT_EQUAL_INT(0, post_wr(from, &wr));
	snprintf(words, sizeof(words),
		 "refused COMPARE SWAP at PSN 0: the address 0x%" PRIx64
		 " is no multiple of 8; give an address that is a multiple "
		 "of 8",
		 (uint64_t)(uintptr_t)b.buffer + 4);
	expect_invalid(VB_WHY_REQUEST_ALIGNMENT, words);
}

void test_packets_that_were_changed_on_the_way(void)
{
	corrupt((struct vb_fault_rule){.change = VB_CHANGE_OPCODE,
				       .value = 0x07 /* WRITE_MIDDLE */,
				       .opcode_given = true,
				       .opcode = 0x0a});
	post(7, IBV_WR_RDMA_WRITE, 8);
	expect_invalid(
		VB_WHY_REQUEST_NOT_BEGUN,
		"refused RDMA WRITE at PSN 0: "
		"the packet continues a message, and no such message is in progress; look for "
		"what changes opcodes or PSNs on the way");
	corrupt((struct vb_fault_rule){.change = VB_CHANGE_OPCODE,
				       .value = 0x0a,
				       .opcode_given = true,
				       .opcode = 0x08 /* WRITE_LAST */});
	post(7, IBV_WR_RDMA_WRITE, 2000);
	expect_invalid(
		VB_WHY_REQUEST_NOT_ENDED,
		"refused RDMA WRITE at PSN 1: "
		"the packet begins a message, and the message before has not ended; look for "
		"what changes opcodes or PSNs on the way");
	corrupt((struct vb_fault_rule){.change = VB_CHANGE_DMA_LENGTH, .value = 9});
	post(7, IBV_WR_RDMA_WRITE, 8);
	expect_invalid(
		VB_WHY_REQUEST_LENGTH,
		"refused RDMA WRITE at PSN 0: "
		"the RETH announces 9 bytes, and the packets up to this one bring 8; set the "
		"same path_mtu on both QPs");
	corrupt((struct vb_fault_rule){.change = VB_CHANGE_DMA_LENGTH, .value = 0x80000001});
	post(7, IBV_WR_RDMA_READ, 8);
	expect_invalid(
		VB_WHY_REQUEST_HUGE,
		"refused RDMA READ at PSN 0: "
		"the RETH announces 2147483649 bytes, more than the 2147483648 of a message; "
		"divide the message");
	corrupt((struct vb_fault_rule){.change = VB_CHANGE_OPCODE,
				       .value = 0x0c /* READ */,
				       .opcode_given = true,
				       .opcode = 0x0a});
	post(7, IBV_WR_RDMA_WRITE, 8);
	expect_invalid(VB_WHY_REQUEST_PAYLOAD,
		       "refused RDMA READ at PSN 0: "
		       "the request has 8 bytes of payload, where 0 belong; look for what changes "
		       "packets on the way");
}

void test_an_answer_to_another_operation(void)
{
	corrupt((struct vb_fault_rule){.change = VB_CHANGE_OPCODE,
				       .value = 0x12 /* ATOMIC_ACK */,
				       .opcode_given = true,
				       .opcode = 0x10});
	post(7, IBV_WR_RDMA_READ, 8);
	expect(IBV_WC_BAD_RESP_ERR, VB_WHY_RESPONSE_KIND,
	       "the answer to RDMA_READ at PSN 0 is RC ATOMIC_ACKNOWLEDGE, which belongs to "
	       "another "
	       "operation; look for what sends packets in the peer's name");
}

void test_a_nak_without_a_refusal(void)
{
	static const struct {
		unsigned int syndrome;
		enum ibv_wc_status status;
		enum vb_reason reason;
		const char *words;
	} rows[] = {
		{0x61, IBV_WC_REM_INV_REQ_ERR, VB_WHY_NAK_INVALID_REQUEST,
		 "the peer refused RDMA_WRITE of 8 bytes at PSN 0 as an invalid request; compare "
		 "the "
		 "message with the peer's receive, path_mtu, qp_access_flags and "
		 "max_dest_rd_atomic"},
		{0x63, IBV_WC_REM_OP_ERR, VB_WHY_NAK_OPERATION,
		 "the peer could not do RDMA_WRITE of 8 bytes at PSN 0; look at the peer's "
		 "completions: its own work request is wrong"},
		{0x64, IBV_WC_REM_INV_RD_REQ_ERR, VB_WHY_NAK_DATAGRAM,
		 "the peer answered PSN 0 by a NAK for reliable datagrams, which the QP does not "
		 "send; look for what sends packets in the peer's name"},
	};
	char words[256];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		corrupt((struct vb_fault_rule){.change = VB_CHANGE_SYNDROME,
					       .value = rows[i].syndrome});
		post(7, IBV_WR_RDMA_WRITE, 8);
		expect(rows[i].status, rows[i].reason, "%s", rows[i].words);
		vb_fault_clear(NULL);
		connect_pair(&from, &to);
	}
	corrupt((struct vb_fault_rule){.change = VB_CHANGE_SYNDROME, .value = 0x62});
	post(7, IBV_WR_RDMA_WRITE, 8);
	snprintf(words, sizeof(words),
		 "the peer refused RDMA_WRITE at PSN 0 by a NAK for its memory: rkey 0x%x, 8 bytes "
		 "at "
		 "0x%" PRIx64 "; compare rkey, address, length and rights with the peer's MR",
		 b.mr->rkey, (uint64_t)(uintptr_t)b.buffer);
	expect(IBV_WC_REM_ACCESS_ERR, VB_WHY_NAK_ACCESS, "%s", words);
}

/* The NAK of the first request becomes one of the second, which the peer has not refused. */
void test_a_nak_of_another_request_than_the_refused_one(void)
{
	modify(to, (struct ibv_qp_attr){.qp_access_flags = 0}, IBV_QP_ACCESS_FLAGS);
	corrupt((struct vb_fault_rule){
		.change = VB_CHANGE_PSN, .value = 1, .opcode_given = true, .opcode = 0x11});
	for (uint64_t i = 6; i < 8; i++)
		post(i, IBV_WR_RDMA_WRITE, 8);
	expect_wc(&a, 6, IBV_WC_SUCCESS);
	expect(IBV_WC_REM_INV_REQ_ERR, VB_WHY_NAK_INVALID_REQUEST,
	       "the peer refused RDMA_WRITE of 8 bytes at PSN 1 as an invalid request; compare the "
	       "message with the peer's receive, path_mtu, qp_access_flags and max_dest_rd_atomic");
}

/* --- no answer --- */

#define WAITED                                                                                 \
	"no answer to PSN 0 came in 4 ack timeouts of 67.1089 ms each (timeout 14, retry_cnt " \
	"3); "

static void expect_no_answer(enum vb_reason reason, const char *words)
{
	struct ibv_wc wc;

	post(7, IBV_WR_RDMA_WRITE, 8);
	wc = expect_failed(&a, 7, IBV_WC_RETRY_EXC_ERR);
	expect_views(&a, &wc, reason,
		     "no answer to PSN 0 came in 4 ack timeouts of 67.1089 ms each (timeout 14, "
		     "retry_cnt 3); see if the peer is there, is in RTR or RTS, and has this QP as "
		     "its dest_qp_num; see the addresses of both ends");
	expect_sentence(&a, &wc, VB_WHY_RETRY_TIMEOUT,
			"sim0 QP 0x%x, wr_id 7: IBV_WC_RETRY_EXC_ERR: " WAITED "%s", from->qp_num,
			words);
}

static void expect_no_answer_of_peer(enum vb_reason reason, const char *words)
{
	char all[512];

	snprintf(all, sizeof(all), "sim1 QP 0x%x %s", to->qp_num, words);
	expect_no_answer(reason, all);
}

void test_a_peer_in_a_state_that_takes_no_requests(void)
{
	enter(to, IBV_QPS_RESET);
	expect_no_answer_of_peer(VB_WHY_PEER_STATE,
				 "is in RESET and drops requests; move the peer QP to RTR first");
	reconnect(from, &b, IBV_MTU_1024, 0, to->qp_num);
	modify(to, (struct ibv_qp_attr){.qp_state = IBV_QPS_INIT, .port_num = 1},
	       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	expect_no_answer_of_peer(VB_WHY_PEER_STATE,
				 "is in INIT and drops requests; move the peer QP to RTR first");
	reconnect(from, &b, IBV_MTU_1024, 0, to->qp_num);
	enter(to, IBV_QPS_ERR);
	expect_no_answer_of_peer(VB_WHY_PEER_ERR,
				 "is in ERR and drops requests; find out what moved the peer QP to "
				 "ERR, and take both "
				 "QPs through RESET");
}

/* What the peer refused was another request than the one that has no answer now. */
void test_a_peer_that_refused_another_request(void)
{
	static const char words[] = "is in ERR and drops requests; find out what moved the peer QP "
				    "to ERR, and take both QPs through RESET";
	struct ibv_qp_init_attr_ex attr = qp_attr(&a, IBV_QPT_RC);

	post(6, IBV_WR_RDMA_WRITE, 8);
	expect_wc(&a, 6, IBV_WC_SUCCESS);
	modify(to, (struct ibv_qp_attr){.qp_access_flags = 0}, IBV_QP_ACCESS_FLAGS);
	post(7, IBV_WR_RDMA_WRITE, 8);
	expect_failed(&a, 7, IBV_WC_REM_INV_REQ_ERR);
	reconnect(from, &b, IBV_MTU_1024, 0, to->qp_num);
	expect_no_answer_of_peer(VB_WHY_PEER_ERR, words);
	/* The same PSN, of another QP. */
	connect_pair(&from, &to);
	modify(to, (struct ibv_qp_attr){.qp_access_flags = 0}, IBV_QP_ACCESS_FLAGS);
	post(7, IBV_WR_RDMA_WRITE, 8);
	expect_failed(&a, 7, IBV_WC_REM_INV_REQ_ERR);
	from = B.create_qp_ex(a.context, &attr);
	connect_qp(from, &b, to->qp_num);
	expect_no_answer_of_peer(VB_WHY_PEER_ERR, words);
}

void test_a_peer_with_another_connection(void)
{
	char words[256];

	reconnect(to, &a, IBV_MTU_1024, 0, 0x999);
	snprintf(words, sizeof(words),
		 "has dest_qp_num 0x999, and its answers go there; set dest_qp_num of the peer to "
		 "0x%x",
		 from->qp_num);
	expect_no_answer_of_peer(VB_WHY_PEER_DEST_QPN, words);
	reconnect(to, &b, IBV_MTU_1024, 0, from->qp_num);
	reconnect(from, &b, IBV_MTU_1024, 0, to->qp_num);
	snprintf(words, sizeof(words),
		 "sim1 dropped RC RDMA_WRITE_ONLY: QP 0x%x is connected to another port than that "
		 "of "
		 "the GID ::ffff:10.0.0.1; set ah_attr of each QP to the address of the other",
		 to->qp_num);
	expect_no_answer(VB_WHY_DROP_STRANGER, words);
	reconnect(from, &b, IBV_MTU_1024, 0, 0x999);
	expect_no_answer(
		VB_WHY_DROP_NO_QP,
		"sim1 dropped RC RDMA_WRITE_ONLY: the port has no QP 0x999; set "
		"dest_qp_num, or remote_qpn of a datagram, to the qp_num of a QP that exists");
}

void test_a_peer_that_expects_a_later_psn(void)
{
	struct ibv_wc wc;

	reconnect(to, &a, IBV_MTU_1024, 5, from->qp_num);
	post(7, IBV_WR_RDMA_READ, 8);
	wc = expect_failed(&a, 7, IBV_WC_RETRY_EXC_ERR);
	expect_sentence(
		&a, &wc, VB_WHY_RETRY_TIMEOUT,
		"sim0 QP 0x%x, wr_id 7: IBV_WC_RETRY_EXC_ERR: " WAITED
		"sim1 QP 0x%x expects PSN 5, and takes PSN 0 for a duplicate; set sq_psn of "
		"the sender and rq_psn of the peer to the same value",
		from->qp_num, to->qp_num);
	TEST_ASSERT_EQUAL_HEX(VB_WHY_PEER_PSN_AHEAD, peer_reason(&a, &wc));
}

void test_a_peer_that_expects_an_earlier_psn(void)
{
	reconnect(to, &a, IBV_MTU_1024, 0xfffffb, from->qp_num);
	expect_no_answer_of_peer(
		VB_WHY_PEER_PSN_BEHIND,
		"expects PSN 16777211, and waits for it since PSN 0 is not the next; set sq_psn of "
		"the sender and rq_psn of the peer to the same value, if no packet was lost");
}

void test_lost_packets(void)
{
	struct vb_fault_rule rule = {.action = VB_FAULT_DROP, .dest_qpn = to->qp_num};

	TEST_ASSERT_EQUAL_INT(0, vb_fault_add(NULL, &rule, NULL));
	expect_no_answer_of_peer(
		VB_WHY_PEER_READY,
		"would take PSN 0 now: the requests or the answers were lost on the way; see the "
		"link "
		"and its fault rules; raise retry_cnt or timeout if packets may be lost");
}

void test_lost_answers(void)
{
	struct vb_fault_rule rule = {.action = VB_FAULT_DROP, .dest_qpn = from->qp_num};

	TEST_ASSERT_EQUAL_INT(0, vb_fault_add(NULL, &rule, NULL));
	expect_no_answer_of_peer(
		VB_WHY_PEER_ANSWERED,
		"has taken PSN 0 and expects PSN 1: its answers were lost on the "
		"way; see the link and its fault rules; raise retry_cnt or timeout "
		"if packets may be lost");
}

void test_an_empty_entry_of_the_pkey_table(void)
{
	TEST_ASSERT_EQUAL_INT(0, vb_sim_set_pkey(a.context, 1, 0, 0));
	expect_no_answer(
		VB_WHY_WAY_PKEY_EMPTY,
		"sim1 QP 0x11: no port takes the requests: their P_Key is 0, because entry 0 of "
		"the sender's P_Key table is empty; set pkey_index to an entry that has a P_Key, "
		"as ibv_query_pkey() shows them");
}

void test_ports_that_are_down(void)
{
	TEST_ASSERT_EQUAL_INT(0, vb_sim_port_state(b.context, 1, false));
	expect_no_answer(VB_WHY_WAY_PORT_DOWN,
			 "sim1 QP 0x11: port 1 of the peer is not active; wait for "
			 "IBV_EVENT_PORT_ACTIVE");
	TEST_ASSERT_EQUAL_INT(0, vb_sim_port_state(a.context, 1, false));
	reconnect(from, &b, IBV_MTU_1024, 0, to->qp_num);
	post(7, IBV_WR_RDMA_WRITE, 8);
	expect(IBV_WC_RETRY_EXC_ERR, VB_WHY_RETRY_PORT_DOWN,
	       "port 1 of the QP is not active, so that PSN 0 did not leave in 4 ack timeouts of "
	       "67.1089 ms each; wait for IBV_EVENT_PORT_ACTIVE");
}

/* Reconnects the pair in a world whose devices have two ports each: at a by the second. */
static void connect_second_port(void)
{
	static const struct vb_sim_config config = {
		.device_count = 2,
		.devices = {{.name = "sim0", .ports = 2}, {.name = "sim1", .ports = 2}},
	};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 2};
	struct end second;

	close_pair();
	open_pair_of(&config);
	connect_pair(&from, &to);
	second = b;
	TEST_ASSERT_EQUAL_INT(0, B.query_gid(b.context, 2, 1, &second.gid));
	enter(from, IBV_QPS_RESET);
	modify(from, attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = to->qp_num,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 12,
		.ah_attr = {.is_global = 1,
			    .port_num = 2,
			    .grh = {.dgid = second.gid, .sgid_index = 1, .hop_limit = 64}},
	};
	modify(from, attr,
	       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
		       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 3, .max_rd_atomic = 4};
	modify(from, attr,
	       IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
		       IBV_QP_MAX_QP_RD_ATOMIC);
}

void test_a_peer_at_another_port(void)
{
	char words[256];

	connect_second_port();
	snprintf(words, sizeof(words),
		 "sim1 dropped RC RDMA_WRITE_ONLY: the port has no QP 0x%x; set dest_qp_num, or "
		 "remote_qpn of a datagram, to the qp_num of a QP that exists",
		 to->qp_num);
	expect_no_answer(VB_WHY_DROP_NO_QP, words);
}

void test_a_second_port_that_is_down(void)
{
	connect_second_port();
	TEST_ASSERT_EQUAL_INT(0, vb_sim_port_state(a.context, 2, false));
	post(7, IBV_WR_RDMA_WRITE, 8);
	expect(IBV_WC_RETRY_EXC_ERR, VB_WHY_RETRY_PORT_DOWN,
	       "port 2 of the QP is not active, so that PSN 0 did not leave in 4 ack timeouts of "
	       "67.1089 ms each; wait for IBV_EVENT_PORT_ACTIVE");
}

/* Both QPs use the second entries of the tables, which differ. */
void test_a_peer_with_another_pkey(void)
{
	static const struct vb_sim_config config = {
		.device_count = 2,
		.devices = {{.name = "sim0", .pkey_count = 2, .pkeys = {0xffff, 0x8001}},
			    {.name = "sim1", .pkey_count = 2, .pkeys = {0xffff, 0x8002}}},
	};
	char words[256];

	close_pair();
	open_pair_of(&config);
	connect_pair(&from, &to);
	change(from, (struct ibv_qp_attr){.pkey_index = 1}, IBV_QP_PKEY_INDEX);
	change(to, (struct ibv_qp_attr){.pkey_index = 1}, IBV_QP_PKEY_INDEX);
	snprintf(
		words, sizeof(words),
		"sim1 dropped RC RDMA_WRITE_ONLY: its P_Key 0x8001 does not match the 0x8002 of QP "
		"0x%x; give both QPs P_Keys of one partition, one of them a full member",
		to->qp_num);
	expect_no_answer(VB_WHY_DROP_PKEY, words);
}

void test_an_address_of_no_port(void)
{
	struct end nobody = b;

	nobody.gid.raw[15] = 77;
	reconnect(from, &nobody, IBV_MTU_1024, 0, to->qp_num);
	expect_no_answer(VB_WHY_WAY_NO_GID, "no port has the destination GID ::ffff:10.0.0.77; set "
					    "ah_attr.grh.dgid to the peer's GID");
}

void test_a_peer_whose_answers_are_not_taken(void)
{
	struct end second = b;
	char words[256];

	second.gid.raw[15] = 22;
	TEST_ASSERT_EQUAL_INT(0, vb_sim_set_gid(b.context, 1, 2, &second.gid));
	reconnect(from, &second, IBV_MTU_1024, 0, to->qp_num);
	snprintf(words, sizeof(words),
		 "answers, but its answers do not reach QP 0x%x: they go to another port, or have "
		 "another P_Key or source GID; set ah_attr and pkey_index of each QP to what fits "
		 "the "
		 "other",
		 from->qp_num);
	expect_no_answer_of_peer(VB_WHY_PEER_ANSWERS_DROPPED, words);
}

void test_retries_that_answers_use_up(void)
{
	struct vb_fault_rule rule = {.count = 1, .dest_qpn = to->qp_num};
	struct ibv_wc wc;

	change(from, (struct ibv_qp_attr){.retry_cnt = 0}, IBV_QP_RETRY_CNT);
	TEST_ASSERT_EQUAL_INT(0, vb_fault_add(NULL, &rule, NULL));
	for (uint64_t i = 7; i < 9; i++)
		post(i, IBV_WR_RDMA_WRITE, 8);
	wc = expect_failed(&a, 7, IBV_WC_RETRY_EXC_ERR);
	expect_views(
		&a, &wc, VB_WHY_PEER_READY,
		"the peer answered by a NAK that it misses PSN 0, and retry_cnt 0 is used up; "
		"compare sq_psn with the peer's rq_psn; raise retry_cnt if packets may be lost");
	expect_sentence(
		&a, &wc, VB_WHY_RETRY_SEQUENCE,
		"sim0 QP 0x%x, wr_id 7: IBV_WC_RETRY_EXC_ERR: the peer answered by a NAK that "
		"it misses PSN 0, and retry_cnt 0 is used up; sim1 QP 0x%x would take PSN 0 "
		"now: the requests or the answers were lost on the way; see the link and its "
		"fault rules; raise retry_cnt or timeout if packets may be lost",
		from->qp_num, to->qp_num);
}

void test_a_response_that_is_lost(void)
{
	struct vb_fault_rule rule = {.count = 1, .dest_qpn = from->qp_num};

	change(from, (struct ibv_qp_attr){.retry_cnt = 0}, IBV_QP_RETRY_CNT);
	TEST_ASSERT_EQUAL_INT(0, vb_fault_add(NULL, &rule, NULL));
	for (uint64_t i = 7; i < 9; i++)
		post(i, IBV_WR_RDMA_READ, 8);
	expect(IBV_WC_RETRY_EXC_ERR, VB_WHY_RETRY_RESPONSE,
	       "the peer answered later requests, but the response of PSN 0 was lost, and "
	       "retry_cnt "
	       "0 is used up; raise retry_cnt if packets may be lost");
}

void test_a_binding_that_is_repeated(void)
{
	struct vb_fault_rule rule = {.count = 1, .dest_qpn = to->qp_num};
	struct ibv_mw *mw = B.alloc_mw(a.pd, IBV_MW_TYPE_2);
	struct ibv_send_wr wr = {
		.wr_id = 7,
		.opcode = IBV_WR_BIND_MW,
		.bind_mw = {.mw = mw,
			    .rkey = ibv_inc_rkey(mw->rkey),
			    .bind_info = {.mr = a.mr,
					  .addr = (uintptr_t)a.buffer,
					  .length = 64,
					  .mw_access_flags = IBV_ACCESS_REMOTE_READ}},
	};

	TEST_ASSERT_EQUAL_INT(0, vb_sim_set_quirk(a.context, "repeated_bindings_fail", true));
	connect_pair(&from, &to);
	rule.dest_qpn = to->qp_num;
	TEST_ASSERT_EQUAL_INT(0, vb_fault_add(NULL, &rule, NULL));
	post(6, IBV_WR_RDMA_WRITE, 8);
	TEST_ASSERT_EQUAL_INT(0, post_wr(from, &wr));
	expect_wc(&a, 6, IBV_WC_SUCCESS);
	expect(IBV_WC_MW_BIND_ERR, VB_WHY_BIND_REPEATED,
	       "the device has done the binding, and cannot repeat it behind a send that it "
	       "repeats; "
	       "bind the window when no send before it can be lost");
}

/* --- devices without ATOMIC WRITE, and links --- */

static void open_world(const struct vb_sim_config *config)
{
	struct ibv_device **list;

	close_pair();
	TEST_ASSERT_EQUAL_INT(0, vb_sim_configure(config));
	list = B.get_device_list(NULL);
	open_end(&a, list[0]);
	open_end(&b, list[1]);
	B.free_device_list(list);
	connect_pair(&from, &to);
}

static void post_atomic_write(void)
{
	struct ibv_sge sge = sge_of(&a, 0, 8);
	struct ibv_send_wr wr = {
		.wr_id = 7,
		.opcode = IBV_WR_ATOMIC_WRITE,
		.sg_list = &sge,
		.num_sge = 1,
		.wr.rdma = {(uintptr_t)b.buffer, b.mr->rkey},
	};

	TEST_ASSERT_EQUAL_INT(0, post_wr(from, &wr));
}

void test_a_device_without_atomic_write(void)
{
	struct vb_sim_config config = {
		.device_count = 2,
		.devices = {{.name = "sim0", .profile = "mlx5"}, {.name = "sim1"}}};

	open_world(&config);
	post_atomic_write();
	expect(IBV_WC_LOC_QP_OP_ERR, VB_WHY_OPERATION_ATOMIC_WRITE,
	       "the device has no ATOMIC WRITE; send an RDMA WRITE, or choose a device with "
	       "IBV_DEVICE_ATOMIC_WRITE");
	config.devices[0] = (struct vb_sim_device_config){.name = "sim0"};
	config.devices[1] = (struct vb_sim_device_config){.name = "sim1", .profile = "mlx5"};
	open_world(&config);
	post_atomic_write();
	expect(IBV_WC_REM_INV_REQ_ERR, VB_WHY_REQUEST_ATOMIC_WRITE,
	       "sim1 QP 0x%x refused ATOMIC WRITE at PSN 0: the device has no ATOMIC WRITE; send "
	       "an "
	       "RDMA WRITE, or choose a device with IBV_DEVICE_ATOMIC_WRITE",
	       to->qp_num);
}

void test_ports_that_no_link_joins(void)
{
	const struct vb_sim_config config = {
		.device_count = 3,
		.devices = {{.name = "sim0"}, {.name = "sim1"}, {.name = "sim2"}},
		.link_count = 1,
		.links = {{.a = "sim0", .b = "sim2"}}};

	open_world(&config);
	expect_no_answer(VB_WHY_WAY_NO_LINK,
			 "sim1 QP 0x10: no link joins the two ports; add a link to links of struct "
			 "vb_sim_config");
}

/* --- flushes --- */

static void expect_flush(uint64_t wr_id, enum vb_reason reason, const char *words)
{
	expect_explained(&a, wr_id, IBV_WC_WR_FLUSH_ERR, reason,
			 "sim0 QP 0x%x, wr_id %" PRIu64 ": IBV_WC_WR_FLUSH_ERR: %s", from->qp_num,
			 wr_id, words);
}

void test_a_flush_behind_a_failed_send(void)
{
	char words[512];
	struct ibv_wc wc;

	modify(to, (struct ibv_qp_attr){.qp_access_flags = 0}, IBV_QP_ACCESS_FLAGS);
	post(7, IBV_WR_RDMA_WRITE, 8);
	post(8, IBV_WR_RDMA_WRITE, 8);
	expect_failed(&a, 7, IBV_WC_REM_INV_REQ_ERR);
	snprintf(words, sizeof(words),
		 "an earlier send of the QP failed: sim1 QP 0x%x refused RDMA WRITE at PSN 0: the "
		 "QP "
		 "lacks IBV_ACCESS_REMOTE_WRITE in qp_access_flags; set qp_access_flags by "
		 "ibv_modify_qp()",
		 to->qp_num);
	wc = expect_failed(&a, 8, IBV_WC_WR_FLUSH_ERR);
	expect_views(&a, &wc, VB_WHY_NONE,
		     "an earlier send of the QP failed; see the completion of that send");
	TEST_ASSERT_EQUAL_HEX(VB_WHY_FLUSH_SEND, wc.vendor_err);
	expect_sentence(&a, &wc, VB_WHY_REQUEST_QP_RIGHT,
			"sim0 QP 0x%x, wr_id 8: IBV_WC_WR_FLUSH_ERR: %s", from->qp_num, words);
}

/* The wr_id alone does not tell the flush from the failure. */
void test_a_flush_with_the_wr_id_of_the_failure(void)
{
	struct ibv_wc failed, flushed;

	modify(to, (struct ibv_qp_attr){.qp_access_flags = 0}, IBV_QP_ACCESS_FLAGS);
	post(7, IBV_WR_RDMA_WRITE, 8);
	post(7, IBV_WR_RDMA_WRITE, 8);
	failed = expect_failed(&a, 7, IBV_WC_REM_INV_REQ_ERR);
	flushed = expect_failed(&a, 7, IBV_WC_WR_FLUSH_ERR);
	expect_views(&a, &flushed, VB_WHY_NONE,
		     "an earlier send of the QP failed; see the completion of that send");
	expect_views(&a, &failed, VB_WHY_REQUEST_QP_RIGHT,
		     "the peer refused RDMA_WRITE of 8 bytes at PSN 0 as an invalid request; "
		     "compare the message with the peer's receive, path_mtu, qp_access_flags and "
		     "max_dest_rd_atomic");
}

void test_a_flush_by_the_program(void)
{
	enter(from, IBV_QPS_ERR);
	post(7, IBV_WR_RDMA_WRITE, 8);
	expect_flush(
		7, VB_WHY_FLUSH_MODIFY,
		"the program moved the QP to ERR by ibv_modify_qp(); take the QP through RESET "
		"before it works again");
}

void test_a_flush_by_a_dead_device(void)
{
	TEST_ASSERT_EQUAL_INT(0, vb_sim_kill_device(a.context));
	post(7, IBV_WR_RDMA_WRITE, 8);
	expect_flush(7, VB_WHY_FLUSH_DEVICE,
		     "the device had a fatal error; close the device and open it again");
}

void test_a_flush_by_a_raised_event(void)
{
	TEST_ASSERT_EQUAL_INT(0, vb_sim_object_event(&(struct ibv_async_event){
					 .event_type = IBV_EVENT_QP_FATAL, .element.qp = from}));
	post(7, IBV_WR_RDMA_WRITE, 8);
	expect_flush(7, VB_WHY_FLUSH_EVENT,
		     "a test has raised an asynchronous event of the QP that moves the QP to ERR; "
		     "handle the event as one of a device");
}

void test_a_flush_by_an_overrun(void)
{
	struct ibv_cq *cq = B.create_cq(a.context, 1, NULL, NULL, 0);
	struct ibv_qp_init_attr_ex attr = qp_attr(&a, IBV_QPT_RC);
	struct ibv_recv_wr wr = {.wr_id = 3}, *bad;

	attr.send_cq = cq;
	from = B.create_qp_ex(a.context, &attr);
	connect_qp(from, &b, to->qp_num);
	reconnect(to, &a, IBV_MTU_1024, 0, from->qp_num);
	TEST_ASSERT_EQUAL_INT(0, ibv_post_recv(from, &wr, &bad));
	for (int i = 0; i < 2; i++)
		post(7, IBV_WR_RDMA_WRITE, 8);
	expect_flush(
		3, VB_WHY_FLUSH_CQ,
		"a CQ of the QP overran and took no more completions; create CQs with room for "
		"all work requests that complete into them");
}

void test_a_flush_at_the_peer_that_refused(void)
{
	struct ibv_recv_wr wr = {.wr_id = 3}, *bad;
	struct ibv_wc wc;

	modify(to, (struct ibv_qp_attr){.qp_access_flags = 0}, IBV_QP_ACCESS_FLAGS);
	TEST_ASSERT_EQUAL_INT(0, ibv_post_recv(to, &wr, &bad));
	post(7, IBV_WR_RDMA_WRITE, 8);
	wc = expect_failed(&b, 3, IBV_WC_WR_FLUSH_ERR);
	expect_views(&b, &wc, VB_WHY_NONE,
		     "a receive of the QP failed, or the QP refused a request of its peer; see the "
		     "completion of that receive, or the asynchronous event of the QP");
	TEST_ASSERT_EQUAL_HEX(VB_WHY_FLUSH_RECEIVE, wc.vendor_err);
	expect_sentence(
		&b, &wc, VB_WHY_REQUEST_QP_RIGHT,
		"sim1 QP 0x%x, wr_id 3: IBV_WC_WR_FLUSH_ERR: a receive of the QP failed, or "
		"the QP refused a request of its peer: refused RDMA WRITE at PSN 0: the QP "
		"lacks IBV_ACCESS_REMOTE_WRITE in qp_access_flags; sim0 QP 0x%x sent the "
		"message: RDMA_WRITE of 8 bytes with wr_id 7; set qp_access_flags by "
		"ibv_modify_qp()",
		to->qp_num, from->qp_num);
}

/* --- QPs that end, or fail again --- */

void test_a_peer_that_is_destroyed_before_the_question(void)
{
	const uint32_t peer_qpn = to->qp_num;
	struct ibv_wc wc;

	modify(to, (struct ibv_qp_attr){.qp_access_flags = 0}, IBV_QP_ACCESS_FLAGS);
	post(7, IBV_WR_RDMA_WRITE, 8);
	wc = expect_failed(&a, 7, IBV_WC_REM_INV_REQ_ERR);
	TEST_ASSERT_EQUAL_INT(0, B.destroy_qp(to));
	expect_sentence(
		&a, &wc, VB_WHY_REQUEST_QP_RIGHT,
		"sim0 QP 0x%x, wr_id 7: IBV_WC_REM_INV_REQ_ERR: sim1 QP 0x%x refused RDMA "
		"WRITE at PSN 0: the QP lacks IBV_ACCESS_REMOTE_WRITE in qp_access_flags; set "
		"qp_access_flags by ibv_modify_qp()",
		from->qp_num, peer_qpn);
}

/* A sentence without values, of a completion that failed by the QP's lack of a right. */
static void expect_row(const struct ibv_wc *wc)
{
	struct vb_completion_why why;

	expect_sentence(&a, wc, VB_WHY_NAK_INVALID_REQUEST,
			"sim0 QP 0x%x, wr_id 7: IBV_WC_REM_INV_REQ_ERR: the peer refused ? of ? at "
			"PSN ? as an invalid request (its values are not known any more)",
			wc->qp_num);
	TEST_ASSERT_EQUAL_INT(ENOENT, vb_completion_why(a.context, wc, &why));
	TEST_ASSERT_EQUAL_HEX(VB_WHY_COMPLETION_UNKNOWN, vb_last_reason());
}

static struct ibv_wc fail_once(void)
{
	modify(to, (struct ibv_qp_attr){.qp_access_flags = 0}, IBV_QP_ACCESS_FLAGS);
	post(7, IBV_WR_RDMA_WRITE, 8);
	return expect_failed(&a, 7, IBV_WC_REM_INV_REQ_ERR);
}

void test_a_qp_that_is_reset_forgets(void)
{
	const struct ibv_wc wc = fail_once();

	reconnect(to, &a, IBV_MTU_1024, 0, from->qp_num);
	reconnect(from, &b, IBV_MTU_1024, 0, to->qp_num);
	expect_row(&wc);
	/* A failure after the reset has the values of its own. */
	enter(from, IBV_QPS_ERR);
	post(8, IBV_WR_RDMA_WRITE, 8);
	expect_flush(
		8, VB_WHY_FLUSH_MODIFY,
		"the program moved the QP to ERR by ibv_modify_qp(); take the QP through RESET "
		"before it works again");
}

void test_a_qp_that_is_destroyed_is_forgotten(void)
{
	const struct ibv_wc wc = fail_once();

	TEST_ASSERT_EQUAL_INT(0, B.destroy_qp(from));
	expect_row(&wc);
}

void test_a_refusal_before_a_reset_is_not_that_of_a_later_nak(void)
{
	fail_once();
	reconnect(to, &a, IBV_MTU_1024, 0, from->qp_num);
	reconnect(from, &b, IBV_MTU_1024, 0, to->qp_num);
	corrupt((struct vb_fault_rule){.change = VB_CHANGE_SYNDROME, .value = 0x61});
	post(7, IBV_WR_RDMA_WRITE, 8);
	expect(IBV_WC_REM_INV_REQ_ERR, VB_WHY_NAK_INVALID_REQUEST,
	       "the peer refused RDMA_WRITE of 8 bytes at PSN 0 as an invalid request; compare the "
	       "message with the peer's receive, path_mtu, qp_access_flags and max_dest_rd_atomic");
}

/* The wr_id, the memory and the key of an invalid send of a UD QP. */
static void post_bad_datagram(struct ibv_qp *ud, struct ibv_ah *ah, uint64_t wr_id, uint32_t lkey)
{
	struct ibv_sge sge = {(uintptr_t)a.buffer, 8, lkey};
	struct ibv_send_wr wr = {.wr_id = wr_id,
				 .opcode = IBV_WR_SEND,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .wr.ud = {.ah = ah, .remote_qpn = 1, .remote_qkey = QKEY}};

	TEST_ASSERT_EQUAL_INT(0, post_wr(ud, &wr));
	TEST_ASSERT_EQUAL_INT(0, vb_sim_run(NULL, 0));
	TEST_ASSERT_EQUAL_INT(
		0, B.modify_qp(ud, &(struct ibv_qp_attr){.qp_state = IBV_QPS_RTS}, IBV_QP_STATE));
}

static struct ibv_qp *datagram_qp(struct ibv_ah **ah)
{
	struct ibv_qp_init_attr_ex attr = qp_attr(&a, IBV_QPT_UD);
	struct ibv_ah_attr way = {.is_global = 1,
				  .port_num = 1,
				  .grh = {.dgid = b.gid, .sgid_index = 1, .hop_limit = 64}};
	struct ibv_qp *ud = B.create_qp_ex(a.context, &attr);

	connect_qp(ud, &b, 0);
	*ah = B.create_ah(a.pd, &way);
	TEST_ASSERT_NOT_NULL(*ah);
	return ud;
}

static void expect_datagram(const struct ibv_wc *wc, uint32_t lkey)
{
	expect_sentence(
		&a, wc, VB_WHY_LKEY_UNKNOWN,
		"sim0 QP 0x%x, wr_id %" PRIu64
		": IBV_WC_LOC_PROT_ERR: SGE 0 of the send: no MR of the device has the lkey "
		"0x%x; set lkey to mr->lkey of a registered MR",
		wc->qp_num, wc->wr_id, lkey);
}

static void expect_datagram_row(const struct ibv_wc *wc)
{
	expect_sentence(&a, wc, VB_WHY_LKEY_UNKNOWN,
			"sim0 QP 0x%x, wr_id %" PRIu64
			": IBV_WC_LOC_PROT_ERR: SGE ? of the ?: no MR of the device has the lkey ? "
			"(its values are not known any more)",
			wc->qp_num, wc->wr_id);
}

void test_an_older_failure_has_no_values_of_a_newer_one(void)
{
	struct ibv_ah *ah;
	struct ibv_qp *ud = datagram_qp(&ah);
	struct ibv_wc first, second;

	post_bad_datagram(ud, ah, 7, 0x77777777);
	post_bad_datagram(ud, ah, 8, 0x66666666);
	first = expect_failed(&a, 7, IBV_WC_LOC_PROT_ERR);
	second = expect_failed(&a, 8, IBV_WC_LOC_PROT_ERR);
	expect_datagram_row(&first);
	expect_datagram(&second, 0x66666666);
}

void test_two_failures_that_look_the_same_have_no_values(void)
{
	struct ibv_ah *ah;
	struct ibv_qp *ud = datagram_qp(&ah);
	struct ibv_wc first, second;

	post_bad_datagram(ud, ah, 7, 0x77777777);
	post_bad_datagram(ud, ah, 7, 0x66666666);
	first = expect_failed(&a, 7, IBV_WC_LOC_PROT_ERR);
	second = expect_failed(&a, 7, IBV_WC_LOC_PROT_ERR);
	expect_datagram_row(&first);
	expect_datagram_row(&second);
	/* The first has been polled when the next one fails. */
	post_bad_datagram(ud, ah, 7, 0x55555555);
	first = expect_failed(&a, 7, IBV_WC_LOC_PROT_ERR);
	expect_datagram(&first, 0x55555555);
}

/* With a profile that has an adapter's vendor_err, the number is of no row. */
void test_the_vendor_err_of_an_adapter_is_no_reason(void)
{
	const struct vb_sim_config config = {
		.device_count = 2,
		.devices = {{.name = "sim0", .profile = "mlx5"}, {.name = "sim1"}}};
	struct vb_completion_why why;
	struct ibv_wc wc;

	open_world(&config);
	wc = fail_once();
	TEST_ASSERT_EQUAL_INT(0, vb_completion_why(a.context, &wc, &why));
	TEST_ASSERT_EQUAL_HEX(VB_WHY_NAK_INVALID_REQUEST, why.why.reason);
	wc.wr_id = 99;
	wc.vendor_err = VB_WHY_NAK_INVALID_REQUEST;
	TEST_ASSERT_EQUAL_INT(ENOENT, vb_completion_why(a.context, &wc, &why));
	TEST_ASSERT_EQUAL_HEX(VB_WHY_NONE, why.why.reason);
	TEST_ASSERT_EQUAL_HEX(VB_WHY_NONE, vb_last_completion_reason());
}

void test_a_flush_of_a_send_queue_in_sqe(void)
{
	struct ibv_ah *ah;
	struct ibv_qp *ud = datagram_qp(&ah);
	struct ibv_sge sge = {(uintptr_t)a.buffer, 8, 0x77777777};
	struct ibv_send_wr wr = {.wr_id = 7,
				 .opcode = IBV_WR_SEND,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .wr.ud = {.ah = ah, .remote_qpn = 1, .remote_qkey = QKEY}};

	struct ibv_wc wc;

	TEST_ASSERT_EQUAL_INT(0, post_wr(ud, &wr));
	wr.wr_id = 8;
	TEST_ASSERT_EQUAL_INT(0, post_wr(ud, &wr));
	expect_failed(&a, 7, IBV_WC_LOC_PROT_ERR);
	wc = expect_failed(&a, 8, IBV_WC_WR_FLUSH_ERR);
	expect_views(
		&a, &wc, VB_WHY_NONE,
		"an earlier send failed and moved the send queue to SQE; move the QP from SQE to "
		"RTS by ibv_modify_qp()");
	TEST_ASSERT_EQUAL_HEX(VB_WHY_FLUSH_SQE, wc.vendor_err);
	expect_sentence(
		&a, &wc, VB_WHY_LKEY_UNKNOWN,
		"sim0 QP 0x%x, wr_id 8: IBV_WC_WR_FLUSH_ERR: an earlier send failed and "
		"moved the send queue to SQE: SGE 0 of the send: no MR of the device has the "
		"lkey 0x77777777; set lkey to mr->lkey of a registered MR",
		ud->qp_num);
}

/* Two sends of a UD QP: the first, with wr_id 7, fails and moves the send queue to SQE. */
static struct ibv_qp *enter_sqe(struct ibv_ah **ah)
{
	struct ibv_qp *ud = datagram_qp(ah);
	struct ibv_sge sge = {(uintptr_t)a.buffer, 8, 0x77777777};
	struct ibv_send_wr wr = {.wr_id = 7,
				 .opcode = IBV_WR_SEND,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .wr.ud = {.ah = *ah, .remote_qpn = 1, .remote_qkey = QKEY}};

	for (; wr.wr_id < 9; wr.wr_id++)
		TEST_ASSERT_EQUAL_INT(0, post_wr(ud, &wr));
	TEST_ASSERT_EQUAL_INT(0, vb_sim_run(NULL, 0));
	return ud;
}

static void end_and_post(struct ibv_qp *ud, struct ibv_ah *ah)
{
	struct ibv_send_wr wr = {.wr_id = 9, .opcode = IBV_WR_SEND, .wr.ud.ah = ah};

	enter(ud, IBV_QPS_ERR);
	TEST_ASSERT_EQUAL_INT(0, post_wr(ud, &wr));
	TEST_ASSERT_EQUAL_INT(0, vb_sim_run(NULL, 0));
}

void test_a_flush_has_the_cause_of_the_last_end(void)
{
	struct ibv_ah *ah;
	struct ibv_qp *ud = enter_sqe(&ah);
	struct ibv_wc wc;

	expect_failed(&a, 7, IBV_WC_LOC_PROT_ERR);
	expect_failed(&a, 8, IBV_WC_WR_FLUSH_ERR);
	end_and_post(ud, ah);
	wc = expect_failed(&a, 9, IBV_WC_WR_FLUSH_ERR);
	expect_sentence(&a, &wc, VB_WHY_FLUSH_MODIFY,
			"sim0 QP 0x%x, wr_id 9: IBV_WC_WR_FLUSH_ERR: the program moved the QP to "
			"ERR by ibv_modify_qp(); take the QP through RESET before it works again",
			ud->qp_num);
}

/* A flush of the send queue's end waits in the CQ when the QP ends. */
void test_flushes_of_two_ends_have_no_values(void)
{
	struct ibv_ah *ah;
	struct ibv_qp *ud = enter_sqe(&ah);
	struct ibv_wc wc;

	end_and_post(ud, ah);
	expect_failed(&a, 7, IBV_WC_LOC_PROT_ERR);
	wc = expect_failed(&a, 8, IBV_WC_WR_FLUSH_ERR);
	expect_sentence(&a, &wc, VB_WHY_FLUSH_SQE,
			"sim0 QP 0x%x, wr_id 8: IBV_WC_WR_FLUSH_ERR: an earlier send failed and "
			"moved the send queue to SQE (its values are not known any more)",
			ud->qp_num);
}

void test_operations_of_another_type(void)
{
	struct ibv_ah *ah;

	from = datagram_qp(&ah);
	post(7, IBV_WR_RDMA_WRITE, 8);
	expect(IBV_WC_LOC_QP_OP_ERR, VB_WHY_OPERATION_TYPE,
	       "a QP of type UD cannot send RDMA_WRITE; use an opcode that ibv_post_send(3) allows "
	       "for the QP's type");
}

/* --- other answers of vb_explain() --- */

void test_a_completion_that_succeeded_has_no_reason(void)
{
	struct vb_completion_why why;
	struct ibv_wc wc;

	post(7, IBV_WR_RDMA_WRITE, 8);
	wc = wait_wc(&a);
	errno = EXDEV;
	vb_explain(a.context, &wc);
	TEST_ASSERT_EQUAL_INT(EXDEV, errno);
	TEST_ASSERT_EQUAL_INT(EINVAL, vb_completion_why(a.context, &wc, &why));
	TEST_ASSERT_EQUAL_HEX(VB_WHY_COMPLETION_SUCCEEDED, vb_last_reason());

	TEST_ASSERT_EQUAL_STRING("completion_why: the completion of QP 0x10 with wr_id 7 "
				 "succeeded; ask only for completions whose status is not "
				 "IBV_WC_SUCCESS",
				 vb_last_error());
	expect_sentence(&a, &wc, VB_WHY_NONE, "sim0 QP 0x%x, wr_id 7: IBV_WC_SUCCESS: success",
			from->qp_num);
}

void test_a_qp_that_never_was_has_the_row_of_vendor_err(void)
{
	struct ibv_wc wc = {
		.wr_id = 7, .status = IBV_WC_REM_ACCESS_ERR, .vendor_err = 0x71, .qp_num = 0x999};

	expect_sentence(&a, &wc, VB_WHY_NAK_INVALID_REQUEST,
			"sim0 QP 0x999, wr_id 7: IBV_WC_REM_ACCESS_ERR: the peer refused ? of ? at "
			"PSN ? as an invalid request (its values are not known any more)");
	TEST_ASSERT_EQUAL_STRING(
		"completion_why: the device knows no values for the completion of QP 0x999 with "
		"wr_id 7: the QP was reset or destroyed, or has failed again since; ask before the "
		"QP "
		"is reset, destroyed or used again",
		vb_last_error());
	wc.vendor_err = 0;

	expect_sentence(&a, &wc, VB_WHY_NONE, "sim0 QP 0x999, wr_id 7: IBV_WC_REM_ACCESS_ERR: %s",
			vb_wc_status_str(IBV_WC_REM_ACCESS_ERR));
}
