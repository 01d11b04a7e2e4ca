/* SPDX-License-Identifier: MIT */
/* XRC domains that processes share: which process opens, makes and closes them, and messages of a target QP
 * of this process for an SRQ of another one. */
#include "backends/sim/world/world.h"
#include "sim/net/wire.h"
#include "test/unit/child.h"
#include "test/unit/seed.h"
#include "test/unit/sharer_target.h"

void setUp(void)
{
	begin_sharing();
}

void tearDown(void)
{
	end_sharing();
}

/* --- the domain of an inode --- */

void test_a_domain_exists_in_all_processes(void)
{
	struct ibv_xrcd *mine;

	expect_null(EAGAIN, share_domain(a.context, share_file, 0));
	TEST_ASSERT_EQUAL_INT(0, ask(SHARE_OPEN_DOMAIN, O_CREAT | O_EXCL));
	mine = share_domain(a.context, share_file, 0);
	TEST_ASSERT_NOT_NULL(mine);
	TEST_ASSERT_EQUAL_INT(0, B.close_xrcd(mine));
	mine = share_domain(a.context, share_file, O_CREAT);
	TEST_ASSERT_NOT_NULL(mine);
	TEST_ASSERT_EQUAL_INT(0, ask(SHARE_CLOSE_DOMAIN, 0));
	TEST_ASSERT_EQUAL_INT(EINVAL, ask(SHARE_OPEN_DOMAIN, O_CREAT | O_EXCL));
	TEST_ASSERT_EQUAL_INT(0, ask(SHARE_OPEN_DOMAIN, 0));
}

void test_only_one_process_makes_a_domain(void)
{
	TEST_ASSERT_EQUAL_INT(0, ask(SHARE_OPEN_DOMAIN, O_CREAT));
	expect_null(EINVAL, share_domain(a.context, share_file, O_CREAT | O_EXCL));
	expect_reason(
		VB_WHY_XRCD_EXISTS,
		"open_xrcd: the inode of fd %d has an XRC domain on the device, and oflags has "
		"O_EXCL; remove O_EXCL to share the domain, or give another file",
		share_file);
	TEST_ASSERT_EQUAL_INT(0, ask(SHARE_CLOSE_DOMAIN, 0));
	TEST_ASSERT_NOT_NULL(share_domain(a.context, share_file, O_CREAT | O_EXCL));
}

/* The domain ends with the last handle of the last process. */
void test_a_domain_ends_with_its_last_handle(void)
{
	struct ibv_xrcd *first, *second;

	first = share_domain(a.context, share_file, O_CREAT);
	second = share_domain(a.context, share_file, 0);
	TEST_ASSERT_EQUAL_INT(0, B.close_xrcd(first));
	TEST_ASSERT_EQUAL_INT(0, ask(SHARE_OPEN_DOMAIN, 0));
	TEST_ASSERT_EQUAL_INT(0, B.close_xrcd(second));
	second = share_domain(a.context, share_file, 0);
	TEST_ASSERT_NOT_NULL(second);
	TEST_ASSERT_EQUAL_INT(0, ask(SHARE_CLOSE_DOMAIN, 0));
	TEST_ASSERT_EQUAL_INT(0, B.close_xrcd(second));
	TEST_ASSERT_EQUAL_INT(EAGAIN, ask(SHARE_OPEN_DOMAIN, 0));
	expect_null(EAGAIN, share_domain(a.context, share_file, 0));
}

void test_a_killed_process_has_no_domain(void)
{
	TEST_ASSERT_EQUAL_INT(0, ask(SHARE_OPEN_DOMAIN, O_CREAT));
	share_kill(&other);
	expect_null(EAGAIN, share_domain(a.context, share_file, 0));
	TEST_ASSERT_NOT_NULL(share_domain(a.context, share_file, O_CREAT | O_EXCL));
}

/* Users in one process do not keep another process from closing its handle. */
void test_a_domain_with_users_is_busy_in_its_own_process(void)
{
	struct ibv_xrcd *mine = share_domain(a.context, share_file, O_CREAT);

	TEST_ASSERT_EQUAL_INT(0, ask(SHARE_OPEN_DOMAIN, 0));
	TEST_ASSERT_EQUAL_INT(0, ask(SHARE_MAKE_SRQ, 0));
	TEST_ASSERT_EQUAL_INT(EBUSY, ask(SHARE_CLOSE_DOMAIN, 0));
	TEST_ASSERT_EQUAL_INT(0, B.close_xrcd(mine));
	TEST_ASSERT_EQUAL_INT(0, ask(SHARE_DESTROY_SRQ, 0));
	TEST_ASSERT_EQUAL_INT(0, ask(SHARE_CLOSE_DOMAIN, 0));
	expect_null(EAGAIN, share_domain(a.context, share_file, 0));
}

void test_other_inodes_and_no_inode_are_other_domains(void)
{
	const int file = memfd_create("other", MFD_CLOEXEC);

	TEST_ASSERT_EQUAL_INT(0, ask(SHARE_OPEN_DOMAIN, O_CREAT));
	expect_null(EAGAIN, share_domain(a.context, file, 0));
	TEST_ASSERT_NOT_NULL(share_domain(a.context, file, O_CREAT | O_EXCL));
	TEST_ASSERT_NOT_NULL(share_domain(a.context, -1, O_CREAT));
	TEST_ASSERT_NOT_NULL(share_domain(a.context, -1, O_CREAT));
	close(file);
}

/* The file of a world has room for 4096 XRC domains. */
void test_a_world_has_so_many_domains(void)
{
	static struct ibv_xrcd *domains[4096];
	static int files[4097];
	unsigned int count = 0;

	while (count < 4096) {
		files[count] = memfd_create("many", MFD_CLOEXEC);
		if (files[count] < 0) {
			TEST_ASSERT_EQUAL_INT(EMFILE, errno);
			TEST_IGNORE_MESSAGE("the test opens 4097 files, and the limit of open "
					    "files (ulimit -n) is lower");
		}
		domains[count] = share_domain(a.context, files[count], O_CREAT);
		TEST_ASSERT_NOT_NULL(domains[count]);
		count++;
	}
	files[count] = memfd_create("many", MFD_CLOEXEC);
	expect_null(ENOMEM, share_domain(a.context, files[count], O_CREAT));
	expect_reason(VB_WHY_XRCD_FULL,
		      "open_xrcd: the processes of the world have as many XRC domains as its file "
		      "describes, or a process has held the lock of the file for 5 s; close XRC "
		      "domains, or end the process that does not run on");
	TEST_ASSERT_EQUAL_INT(0, B.close_xrcd(domains[77]));
	TEST_ASSERT_NOT_NULL(share_domain(a.context, files[count], O_CREAT));
	TEST_ASSERT_EQUAL_INT(ENOMEM, ask(SHARE_OPEN_DOMAIN, O_CREAT));
	while (count--)
		close(files[count]);
	close(files[4096]);
}

/* --- fork() --- */

static struct ibv_xrcd *inherited;

/* The child closes what it has inherited and opened. */
static int close_all(void)
{
	struct ibv_xrcd *again = share_domain(a.context, share_file, 0);
	struct ibv_qp_init_attr_ex attr = qp_attr(&a, IBV_QPT_RC);

	/* Each of these needs a place in the world, which the child has by now. */
	for (unsigned int i = 0; i < 3; i++)
		if (!B.create_qp_ex(a.context, &attr))
			return ENODEV;
	return !again || B.close_xrcd(again) || B.close_xrcd(inherited);
}

void test_a_child_has_its_parents_domain_once(void)
{
	pid_t child;

	inherited = share_domain(a.context, share_file, O_CREAT);
	child = child_begin(close_all);
	TEST_ASSERT_EQUAL_INT(0, ask(SHARE_OPEN_DOMAIN, 0));
	TEST_ASSERT_EQUAL_INT(0, ask(SHARE_CLOSE_DOMAIN, 0));
	TEST_ASSERT_EQUAL_INT(0, B.close_xrcd(inherited));
	TEST_ASSERT_EQUAL_INT(EAGAIN, ask(SHARE_OPEN_DOMAIN, 0));
	child_kill(child);
}

static int open_once_more(void)
{
	return !share_domain(a.context, share_file, 0);
}

void test_a_child_keeps_its_parents_domain(void)
{
	struct ibv_xrcd *mine = share_domain(a.context, share_file, O_CREAT);
	const pid_t child = child_begin(open_once_more);

	TEST_ASSERT_EQUAL_INT(0, B.close_xrcd(mine));
	TEST_ASSERT_EQUAL_INT(0, ask(SHARE_OPEN_DOMAIN, 0));
	TEST_ASSERT_EQUAL_INT(0, ask(SHARE_CLOSE_DOMAIN, 0));
	child_kill(child);
	TEST_ASSERT_EQUAL_INT(EAGAIN, ask(SHARE_OPEN_DOMAIN, 0));
}

/* --- messages --- */

void test_messages_come_to_the_srq_of_another_process(void)
{
	connect_targets();
	TEST_ASSERT_EQUAL_INT(0, ask(SHARE_POST, 2));
	for (unsigned int round = 0; round < 40; round++) {
		struct ibv_wc wc;

		fill((uint8_t)round);
		post_xrc(IBV_WR_SEND, their_srq, 0, 2000, 0);
		TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, sent());
		wc = share_ask(&other, SHARE_POLL, 0)->wc;
		TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, wc.status);
		TEST_ASSERT_EQUAL_UINT32(2000, wc.byte_len);
		TEST_ASSERT_EQUAL_UINT64(round, wc.wr_id);
		TEST_ASSERT_EQUAL_HEX32(target->qp_num, wc.qp_num);
		TEST_ASSERT_EQUAL_HEX32(initiator->qp_num, wc.src_qp);
		TEST_ASSERT_EQUAL_MEMORY(
			a.buffer, share_ask(&other, SHARE_BYTES, 0)->bytes + round % 2 * 2048,
			2000);
		TEST_ASSERT_EQUAL_INT(0, ask(SHARE_POST, 1));
	}
}

void test_messages_in_flight_keep_their_order(void)
{
	connect_targets();
	TEST_ASSERT_EQUAL_INT(0, ask(SHARE_POST, 8));
	for (uint32_t i = 0; i < 8; i++)
		post_xrc(IBV_WR_SEND, their_srq, 0, 1500 + i, 0);
	for (uint32_t i = 0; i < 8; i++) {
		TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, sent());
		TEST_ASSERT_EQUAL_UINT32(1500 + i, share_ask(&other, SHARE_POLL, 0)->wc.byte_len);
	}
}

void test_a_message_waits_for_a_receive_of_the_other_process(void)
{
	connect_targets();
	for (uint32_t i = 0; i < 3; i++)
		post_xrc(IBV_WR_SEND, their_srq, 0, 1200 + i, 0);
	for (uint32_t i = 0; i < 3; i++) {
		TEST_ASSERT_EQUAL_INT(0, ask(SHARE_POST, 1));
		TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, sent());
		TEST_ASSERT_EQUAL_UINT32(1200 + i, share_ask(&other, SHARE_POLL, 0)->wc.byte_len);
	}
}

void test_a_write_goes_to_the_memory_of_the_srqs_process(void)
{
	connect_targets();
	fill(5);
	post_xrc(IBV_WR_RDMA_WRITE, their_srq, 0, 4000, their_addr + 50);
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, sent());
	TEST_ASSERT_EQUAL_MEMORY(a.buffer, share_ask(&other, SHARE_BYTES, 0)->bytes + 50, 4000);
	post_xrc(IBV_WR_RDMA_WRITE, their_srq, 0, 4000, their_addr + 100);
	TEST_ASSERT_EQUAL_INT(IBV_WC_REM_ACCESS_ERR, sent());
}

/* Only the last packet of the message needs the receive. */
void test_a_write_that_waits_for_a_receive_of_the_other_process(void)
{
	const struct sim_counters *counters = &context_of(a.context)->device->engine->counters;

	connect_targets();
	for (unsigned int round = 0; round < 3; round++) {
		const uint64_t naks = counters->rnr_naks_sent;
		struct ibv_wc wc;

		fill((uint8_t)round);
		post_xrc(IBV_WR_RDMA_WRITE_WITH_IMM, their_srq, 0, 4000, their_addr + round);
		await_rnr_nak(naks);
		TEST_ASSERT_EQUAL_INT(0, ask(SHARE_POST, 1));
		TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, sent());
		wc = share_ask(&other, SHARE_POLL, 0)->wc;
		TEST_ASSERT_EQUAL_INT(IBV_WC_RECV_RDMA_WITH_IMM, wc.opcode);
		TEST_ASSERT_EQUAL_UINT32(4000, wc.byte_len);
		TEST_ASSERT_EQUAL_MEMORY(a.buffer, share_ask(&other, SHARE_BYTES, 0)->bytes + round,
					 4000);
	}
}

/* One connection, with messages for an SRQ here and one there in turn. */
void test_srqs_of_two_processes_behind_one_target(void)
{
	struct sharing here = {0};
	struct share_answer answer = {0};

	connect_targets();
	here.xrcd = domain;
	share_make_srq(&here, &answer);
	TEST_ASSERT_EQUAL_INT(0, answer.error);
	TEST_ASSERT_EQUAL_INT(0, ask(SHARE_POST, 5));
	TEST_ASSERT_EQUAL_INT(0, share_post(&here, 5));
	for (uint32_t i = 0; i < 8; i++)
		post_xrc(IBV_WR_SEND, i % 2 ? answer.number : their_srq, 0, 1100 + i, 0);
	/* 8 sends and 4 receives complete here. */
	for (uint32_t i = 0; i < 12; i++)
		TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, sent());
	for (uint32_t i = 0; i < 8; i += 2)
		TEST_ASSERT_EQUAL_UINT32(1100 + i, share_ask(&other, SHARE_POLL, 0)->wc.byte_len);
}

void test_a_message_that_is_too_long_for_its_receive(void)
{
	connect_targets();
	TEST_ASSERT_EQUAL_INT(0, ask(SHARE_POST, 1));
	post_xrc(IBV_WR_SEND, their_srq, 0, 2049, 0);
	TEST_ASSERT_EQUAL_INT(IBV_WC_REM_INV_REQ_ERR, sent());
	TEST_ASSERT_EQUAL_INT(IBV_WC_LOC_LEN_ERR, ask(SHARE_POLL, 0));
}

void test_an_srq_that_is_gone(void)
{
	connect_targets();
	TEST_ASSERT_EQUAL_INT(0, ask(SHARE_DESTROY_SRQ, 0));
	post_xrc(IBV_WR_SEND, their_srq, 0, 100, 0);
	TEST_ASSERT_EQUAL_INT(IBV_WC_REM_INV_REQ_ERR, sent());
}

/* The SRQ number belongs to the other process, where no SRQ has it. That process refuses the request, and does not do
 * the requests behind it. */
void test_requests_behind_one_for_no_srq(void)
{
	const uint8_t *bytes;

	connect_targets();
	TEST_ASSERT_EQUAL_INT(0, ask(SHARE_FILL, 0));
	memset(a.buffer, 0xee, sizeof(a.buffer));
	post_xrc(IBV_WR_RDMA_WRITE, their_srq, 0, 8, their_addr);
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, sent());
	share_stop(&other);
	post_xrc(IBV_WR_RDMA_WRITE, their_srq + 1, 0, 8, their_addr + 8);
	post_xrc(IBV_WR_RDMA_WRITE, their_srq, 0, 8, their_addr + 16);
	TEST_ASSERT_EQUAL_INT(0, kill(other.pid, SIGCONT));
	TEST_ASSERT_EQUAL_INT(IBV_WC_REM_INV_REQ_ERR, sent());
	TEST_ASSERT_EQUAL_INT(IBV_WC_WR_FLUSH_ERR, sent());
	TEST_ASSERT_EQUAL_UINT32(IBV_EVENT_QP_REQ_ERR, share_event(target));
	bytes = share_ask(&other, SHARE_BYTES, 0)->bytes;
	TEST_ASSERT_EQUAL_HEX8(0xee, bytes[7]);
	share_fill(a.buffer, 24, 0);
	TEST_ASSERT_EQUAL_MEMORY(a.buffer + 8, bytes + 8, 16);
}

void test_an_srq_of_another_domain(void)
{
	const int file = memfd_create("other", MFD_CLOEXEC);

	make_srqs();
	make_connection(file);
	TEST_ASSERT_EQUAL_INT(0, ask(SHARE_POST, 1));
	post_xrc(IBV_WR_SEND, their_srq, 0, 100, 0);
	TEST_ASSERT_EQUAL_INT(IBV_WC_REM_INV_REQ_ERR, sent());
	close(file);
}

void test_the_process_of_the_srq_is_killed(void)
{
	connect_targets();
	TEST_ASSERT_EQUAL_INT(0, ask(SHARE_POST, 2));
	post_xrc(IBV_WR_SEND, their_srq, 0, 100, 0);
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, sent());
	share_kill(&other);
	post_xrc(IBV_WR_SEND, their_srq, 0, 100, 0);
	TEST_ASSERT_TRUE(sent() != IBV_WC_SUCCESS);
	/* What the target has for SRQs of this process goes on after a new connection. */
	post_xrc(IBV_WR_SEND, their_srq, 0, 100, 0);
	TEST_ASSERT_EQUAL_INT(IBV_WC_WR_FLUSH_ERR, sent());
}

/* The target is connected anew after an error: the other process takes messages again. */
void test_a_target_that_is_connected_again(void)
{
	struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};

	connect_targets();
	TEST_ASSERT_EQUAL_INT(0, ask(SHARE_POST, 1));
	post_xrc(IBV_WR_SEND, their_srq, 0, 2049, 0);
	TEST_ASSERT_EQUAL_INT(IBV_WC_REM_INV_REQ_ERR, sent());
	TEST_ASSERT_EQUAL_INT(IBV_WC_LOC_LEN_ERR, ask(SHARE_POLL, 0));
	TEST_ASSERT_EQUAL_INT(0, B.modify_qp(initiator, &reset, IBV_QP_STATE));
	TEST_ASSERT_EQUAL_INT(0, B.modify_qp(target, &reset, IBV_QP_STATE));
	connect_qp(initiator, &a, target->qp_num);
	connect_qp(target, &a, initiator->qp_num);
	TEST_ASSERT_EQUAL_INT(0, ask(SHARE_POST, 1));
	fill(77);
	post_xrc(IBV_WR_SEND, their_srq, 0, 2000, 0);
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, sent());
	TEST_ASSERT_EQUAL_UINT32(2000, share_ask(&other, SHARE_POLL, 0)->wc.byte_len);
	TEST_ASSERT_EQUAL_MEMORY(a.buffer, share_ask(&other, SHARE_BYTES, 0)->bytes + 2048, 2000);
}

/* Takes all completions. Returns true if the CQ was empty. */
static bool is_quiet(void)
{
	struct ibv_wc wc;

	bool quiet = true;

	for (int i = 0; i < 2000; i++)
		quiet &= !ibv_poll_cq(a.cq, 1, &wc);
	return quiet;
}

/* The first message waits for a receive of the other process; the second one, for this process,
 * behind it. */
void test_a_message_for_this_process_stays_behind_one_that_waits(void)
{
	const struct sim_counters *counters = &context_of(a.context)->device->engine->counters;
	struct sharing here = {0};
	struct share_answer answer = {0};
	unsigned int receives = 0;

	connect_targets();
	here.xrcd = domain;
	share_make_srq(&here, &answer);
	TEST_ASSERT_EQUAL_INT(0, share_post(&here, 3));
	post_xrc(IBV_WR_SEND, their_srq, 0, 1000, 0);
	post_xrc(IBV_WR_SEND, answer.number, 0, 1001, 0);
	TEST_ASSERT_TRUE(is_quiet());
	TEST_ASSERT_EQUAL_INT(0, ask(SHARE_POST, 1));
	for (unsigned int i = 0; i < 3; i++) {
		const struct ibv_wc wc = share_wait(a.cq);

		TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, wc.status);
		receives += wc.opcode == IBV_WC_RECV;
	}
	TEST_ASSERT_EQUAL_UINT(1, receives);
	TEST_ASSERT_TRUE(is_quiet());
	TEST_ASSERT_EQUAL_UINT32(1000, share_ask(&other, SHARE_POLL, 0)->wc.byte_len);
	/* NAKs ask for the second message: no ACK timeout does. */
	TEST_ASSERT_TRUE(counters->sequence_naks_sent > 0);
}

void test_srqs_of_two_other_processes(void)
{
	struct sharer third;
	uint32_t second_srq;

	close_pair();
	TEST_ASSERT_EQUAL_INT(0, vb_sim_configure(NULL));
	share_begin(&third);
	open_own();
	connect_targets();
	TEST_ASSERT_EQUAL_INT(0, share_ask(&third, SHARE_OPEN_DOMAIN, 0)->error);
	second_srq = share_ask(&third, SHARE_MAKE_SRQ, 0)->number;
	TEST_ASSERT_EQUAL_INT(0, share_ask(&third, SHARE_POST, 4)->error);
	for (uint32_t i = 0; i < 6; i++)
		post_xrc(IBV_WR_SEND, i % 2 ? second_srq : their_srq, 0, 1000 + i, 0);
	TEST_ASSERT_TRUE(is_quiet());
	TEST_ASSERT_EQUAL_INT(0, ask(SHARE_POST, 4));
	for (uint32_t i = 0; i < 6; i++)
		TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, sent());
	for (uint32_t i = 0; i < 6; i++)
		TEST_ASSERT_EQUAL_UINT32(
			1000 + i, share_ask(i % 2 ? &third : &other, SHARE_POLL, 0)->wc.byte_len);
	share_kill(&third);
}

/* The requests that the other process has not answered belong to the old connection. */
void test_a_new_connection_waits_for_no_old_answer(void)
{
	struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};
	struct sharing here = {0};
	struct share_answer answer = {0};

	connect_targets();
	here.xrcd = domain;
	share_make_srq(&here, &answer);
	TEST_ASSERT_EQUAL_INT(0, share_post(&here, 1));
	TEST_ASSERT_EQUAL_INT(0, ask(SHARE_POST, 2));
	TEST_ASSERT_EQUAL_INT(0, kill(other.pid, SIGSTOP));
	post_xrc(IBV_WR_SEND, their_srq, 0, 1000, 0);
	TEST_ASSERT_EQUAL_INT(0, B.modify_qp(initiator, &reset, IBV_QP_STATE));
	TEST_ASSERT_EQUAL_INT(0, B.modify_qp(target, &reset, IBV_QP_STATE));
	connect_qp(initiator, &a, target->qp_num);
	connect_qp(target, &a, initiator->qp_num);
	post_xrc(IBV_WR_SEND, answer.number, 0, 1001, 0);
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, sent());
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, sent());
	TEST_ASSERT_EQUAL_INT(0, kill(other.pid, SIGCONT));
	post_xrc(IBV_WR_SEND, their_srq, 0, 1002, 0);
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, sent());
	TEST_ASSERT_EQUAL_UINT32(1000, share_ask(&other, SHARE_POLL, 0)->wc.byte_len);
	TEST_ASSERT_EQUAL_UINT32(1002, share_ask(&other, SHARE_POLL, 0)->wc.byte_len);
}

/* --- bytes that no relay sends --- */

static size_t write_relayed(uint8_t bytes[SIM_FRAME_BYTES_MAX], uint32_t srq, uint64_t random)
{
	const struct sim_route route = {.infiniband = true};
	const struct relayed head = {.target = 0xabcde,
				     .mtu = 1 + random % 5,
				     .psn = random >> 36 & 7,
				     .kind = (random >> 8 & 7) % 5,
				     .epoch = random >> 16 & 3,
				     .asked = random >> 40 & 31,
				     .again = random >> 48 & 1};
	const struct sim_packet packet = {
		.opcode = (uint8_t)(SIM_TRANSPORT_XRC | (random >> 24) % 32),
		.psn = random >> 32 & 7,
		.dma_bytes = random >> 50 & 4095,
		.dest_qpn = 0xabcde,
		.xrc_srqn = srq,
	};

	memcpy(bytes, &head, sizeof(head));
	if (!(sim_opcodes[packet.opcode].flags & SIM_OP_VALID))
		return sizeof(head);
	return sizeof(head) + sim_packet_write(&packet, &route, NULL, bytes + sizeof(head), NULL);
}

/* The first number of targets that no process owns. Process 0 stands for that. */
#define NOBODYS 0xa0000u

/* A request of a target that no process owns, for an SRQ of this process. */
struct forged {
	struct relayed head;
	struct sim_packet packet;
};

static struct share_answer own_srq;
static struct sharing own;

/* Makes an SRQ of this process, with receives. */
static void make_own_srq(int receives)
{
	own = (struct sharing){.xrcd = domain};
	own_srq = (struct share_answer){0};
	share_make_srq(&own, &own_srq);
	TEST_ASSERT_EQUAL_INT(0, own_srq.error);
	TEST_ASSERT_EQUAL_INT(0, share_post(&own, receives));
}

static struct forged forge(uint8_t rc_opcode, uint32_t number)
{
	struct forged forged = {
		.head = {.target = number,
			 .access = ACCESS_ALL,
			 .mtu = IBV_MTU_1024,
			 .kind = RELAYED_REQUEST,
			 .epoch = 1},
		.packet = {.opcode = SIM_TRANSPORT_XRC | rc_opcode,
			   .dest_qpn = number,
			   .xrc_srqn = own_srq.number},
	};

	memcpy(forged.head.domain, context_of(a.context)->device->domains->engine->key,
	       sizeof(forged.head.domain));
	return forged;
}

static void relay(uint64_t process, const struct forged *forged)
{
	const struct sim_route route = {.infiniband = true};
	uint8_t bytes[SIM_FRAME_BYTES_MAX];
	bool readable = true;

	memcpy(bytes, &forged->head, sizeof(forged->head));
	relay_from(process, bytes,
		   sizeof(forged->head) +
			   sim_packet_write(
				   &forged->packet, &route,
				   context_of(a.context)->device->engine->engine->host.memory.copy,
				   bytes + sizeof(forged->head), &readable));
}

/* A packet of a message of 1025 bytes: the first one, or the last one. */
static void relay_part(uint32_t number, bool last, uint32_t psn)
{
	const struct sim_span span = {a.buffer, last ? 1 : 1024};
	struct forged forged = forge(last ? SIM_RC_SEND_LAST : SIM_RC_SEND_FIRST, number);

	forged.packet.psn = psn;
	forged.packet.spans = &span;
	forged.packet.span_count = 1;
	forged.packet.payload_bytes = span.length_bytes;
	relay(0, &forged);
}

static void expect_receive(uint32_t number, uint32_t bytes)
{
	const struct ibv_wc wc = share_wait(a.cq);

	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, wc.status);
	TEST_ASSERT_EQUAL_HEX32(number, wc.qp_num);
	TEST_ASSERT_EQUAL_UINT32(bytes, wc.byte_len);
}

static void expect_no_receive(void)
{
	struct ibv_wc wc;

	TEST_ASSERT_EQUAL_INT(0, ibv_poll_cq(a.cq, 1, &wc));
}

/* A process relays the requests of its own targets only, and with an MTU that there is. */
void test_a_request_for_the_target_of_another_process(void)
{
	struct forged forged;

	connect_targets();
	make_own_srq(1);
	forged = forge(SIM_RC_SEND_ONLY, NOBODYS);
	relay(77, &forged);
	forged.head.mtu = 0;
	relay(0, &forged);
	forged.head.mtu = IBV_MTU_4096 + 1;
	relay(0, &forged);
	expect_no_receive();
	forged.head.mtu = IBV_MTU_4096;
	relay(0, &forged);
	expect_receive(NOBODYS, 0);
}

/* The SRQ is of a domain without an inode, which no other process can name. */
void test_a_request_for_an_srq_that_is_not_shared(void)
{
	struct forged forged;

	connect_targets();
	make_own_srq(1);
	forged = forge(SIM_RC_SEND_ONLY, NOBODYS);
	relay(0, &forged);
	expect_receive(NOBODYS, 0);
	domain = share_domain(a.context, -1, O_CREAT);
	make_own_srq(1);
	memset(forged.head.domain, 0, sizeof(forged.head.domain));
	forged.packet.xrc_srqn = own_srq.number;
	forged.packet.psn++;
	relay(0, &forged);
	expect_no_receive();
}

/* The completion has the SLID, the P_Key index and the source QPN that the target has sent. */
void test_a_completion_has_the_address_of_its_packet(void)
{
	struct forged forged;
	struct ibv_wc wc;

	connect_targets();
	make_own_srq(1);
	forged = forge(SIM_RC_SEND_ONLY, NOBODYS);
	forged.head.slid = 77;
	forged.head.pkey_index = 3;
	forged.head.peer = 0x1234;
	relay(0, &forged);
	wc = share_wait(a.cq);
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, wc.status);
	TEST_ASSERT_EQUAL_UINT16(77, wc.slid);
	TEST_ASSERT_EQUAL_UINT16(3, wc.pkey_index);
	TEST_ASSERT_EQUAL_HEX32(0x1234, wc.src_qp);
}

/* Each target of the other process has its message in progress. */
void test_messages_of_two_targets_of_one_process(void)
{
	connect_targets();
	make_own_srq(4);
	for (uint32_t psn = 0; psn < 4; psn += 2) {
		relay_part(NOBODYS, false, psn);
		relay_part(NOBODYS + 1, false, psn + 100);
		relay_part(NOBODYS, true, psn + 1);
		expect_receive(NOBODYS, 1025);
		relay_part(NOBODYS + 1, true, psn + 101);
		expect_receive(NOBODYS + 1, 1025);
	}
}

/* Other targets send a message each that needs no receive. */
static void relay_others(uint32_t first, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		const struct forged forged = forge(SIM_RC_WRITE_ONLY, first + i);

		relay(0, &forged);
	}
}

/* A process has at most 1024 proxies. A request of one more target ends the oldest proxy. */
void test_more_targets_than_a_process_serves(void)
{
	connect_targets();
	make_own_srq(4);
	relay_part(NOBODYS, false, 0);
	relay_others(NOBODYS + 1, 1023);
	relay_part(NOBODYS, true, 1);
	expect_receive(NOBODYS, 1025);
	relay_part(NOBODYS, false, 2);
	relay_part(NOBODYS + 1023, false, 2);
	relay_others(NOBODYS + 1024, 1);
	relay_part(NOBODYS, true, 3);
	expect_no_receive();
	relay_part(NOBODYS + 1023, true, 3);
	expect_receive(NOBODYS + 1023, 1025);
	relay_part(NOBODYS, false, 4);
	relay_part(NOBODYS, true, 5);
	expect_receive(NOBODYS, 1025);
}

/* No process owns the number of the target, which the table of blocks writes as process 0. The forged requests
 * come from process 0: so they are accepted. */
void test_bytes_that_no_relay_sends(void)
{
	uint64_t random = choose_seed();
	struct share_answer answer = {0};
	struct sharing here = {0};
	uint8_t bytes[SIM_FRAME_BYTES_MAX];

	connect_targets();
	here.xrcd = domain;
	share_make_srq(&here, &answer);
	for (unsigned int round = 0; round < 20000; round++) {
		size_t length = write_relayed(bytes, answer.number, sim_random_next(&random));

		if (round % 2)
			memcpy(bytes, context_of(a.context)->device->domains->engine->key, 16);
		for (uint64_t flips = sim_random_next(&random) % 3; flips; flips--)
			bytes[sim_random_next(&random) % length] =
				(uint8_t)sim_random_next(&random);
		if (round % 7 == 0)
			length = sim_random_next(&random) % (length + 1);
		/* The CQ does not overrun. */
		if (round % 100 == 0) {
			is_quiet();
			share_post(&here, 1);
		}
		relay_from(0, bytes, length);
	}
	fill(3);
	TEST_ASSERT_EQUAL_INT(0, ask(SHARE_POST, 1));
	post_xrc(IBV_WR_RDMA_WRITE, their_srq, 0, 2000, their_addr);
	for (enum ibv_wc_opcode opcode = IBV_WC_RECV; opcode != IBV_WC_RDMA_WRITE;) {
		const struct ibv_wc wc = share_wait(a.cq);

		TEST_ASSERT_TRUE(wc.status != IBV_WC_GENERAL_ERR);
		opcode = wc.qp_num == initiator->qp_num ? IBV_WC_RDMA_WRITE : IBV_WC_RECV;
	}
	TEST_ASSERT_EQUAL_MEMORY(a.buffer, share_ask(&other, SHARE_BYTES, 0)->bytes, 2000);
}
