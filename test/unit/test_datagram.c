/* SPDX-License-Identifier: MIT */
/*
 * Unreliable datagrams. Expected: ibv_poll_cq(3), ibv_post_send(3), and the sources that the tests
 * name.
 */
#include "test/support/engine.h"
#include "unity.h"

#include <errno.h>

static struct engine engine;

void setUp(void)
{
	engine_open(&engine, &(struct engine_config){.type = IBV_QPT_UD, .max_inline = 64});
}

void tearDown(void)
{
	engine_close(&engine);
}

static struct ibv_wc deliver(const struct engine_send *send)
{
	struct ibv_wc wc;

	TEST_ASSERT_EQUAL_INT(0, engine_send(&engine, 0, send));
	sim_engine_run(engine.sim);
	TEST_ASSERT_TRUE_MESSAGE(engine_poll(engine.sides[0].send_cq, &wc), "no completion");
	return wc;
}

static void expect_delivered(const struct engine_send *send)
{
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, deliver(send).status);
}

static void expect_dropped(void)
{
	struct ibv_wc wc;

	TEST_ASSERT_FALSE(engine_poll(engine.sides[1].recv_cq, &wc));
	TEST_ASSERT_EQUAL_UINT64(1, engine.sides[1].device->counters.dropped_packets);
	TEST_ASSERT_EQUAL_INT(IBV_QPS_RTS, engine.sides[1].qp->state);
}

void test_message_stands_behind_its_grh(void)
{
	const uint8_t *to = engine.sides[1].memory;
	struct ibv_wc wc;
	uint32_t sum = 0;

	memcpy(engine.sides[0].memory, "datagram", 9);
	TEST_ASSERT_EQUAL_INT(0, engine_recv(&engine, 1, 5, 0, 100));
	expect_delivered(
		&(struct engine_send){.opcode = IBV_WR_SEND_WITH_IMM, .bytes = 9, .imm = 0x1234});
	TEST_ASSERT_TRUE(engine_poll(engine.sides[1].recv_cq, &wc));
	TEST_ASSERT_EQUAL_UINT64(5, wc.wr_id);
	TEST_ASSERT_EQUAL_UINT32(49, wc.byte_len);
	TEST_ASSERT_EQUAL_HEX32(engine.sides[0].qp->number, wc.src_qp);
	TEST_ASSERT_EQUAL_HEX(IBV_WC_GRH | IBV_WC_WITH_IMM, wc.wc_flags);
	TEST_ASSERT_EQUAL_HEX32(htobe32(0x1234), wc.imm_data);
	TEST_ASSERT_EQUAL_STRING("datagram", (const char *)to + 40);
	/* The IPv4 header is in the last 20 bytes, with a valid checksum (RFC 1071). */
	TEST_ASSERT_EQUAL_HEX8(0x45, to[20]);
	for (unsigned int i = 20; i < 40; i += 2)
		sum += (uint32_t)to[i] << 8 | to[i + 1];
	TEST_ASSERT_EQUAL_HEX32(0xffff, (sum & 0xffff) + (sum >> 16));
	TEST_ASSERT_EQUAL_MEMORY(engine.sides[0].gid.raw + 12, to + 32, 4);
	TEST_ASSERT_EQUAL_MEMORY(engine.sides[1].gid.raw + 12, to + 36, 4);
}

/* A datagram that never leaves its port has a checksum, too, unless a quirk removes it. */
void test_header_of_an_own_datagram(void)
{
	struct engine_side *side = &engine.sides[0];
	const struct ibv_ah_attr attr = engine_ah_attr(&side->gid);
	const uint32_t pd = side->ah->pd;

	sim_ah_release(side->ah);
	TEST_ASSERT_EQUAL_INT(0, sim_ah_create(side->device, pd, &attr, &side->ah));
	for (unsigned int lacks = 0; lacks < 2; lacks++) {
		const uint8_t *header = side->memory + 1000 + 20;
		struct ibv_wc wc;
		uint32_t sum = 0;

		engine_quirk(side->device, "own_datagrams_lack_checksum", lacks);
		TEST_ASSERT_EQUAL_INT(0, engine_recv(&engine, 0, 5, 1000, 100));
		expect_delivered(&(struct engine_send){
			.opcode = IBV_WR_SEND, .bytes = 9, .remote_qpn = side->qp->number});
		TEST_ASSERT_TRUE(engine_poll(side->recv_cq, &wc));
		for (unsigned int i = 0; i < 20; i += 2)
			sum += (uint32_t)header[i] << 8 | header[i + 1];
		sum = (sum & 0xffff) + (sum >> 16);
		TEST_ASSERT_EQUAL_INT(lacks, sum != 0xffff);
	}
}

void test_wrong_qkey_is_dropped(void)
{
	TEST_ASSERT_EQUAL_INT(0, engine_recv(&engine, 1, 5, 0, 100));
	expect_delivered(&(struct engine_send){
		.opcode = IBV_WR_SEND, .bytes = 9, .remote_qkey = ENGINE_QKEY + 1});
	expect_dropped();
	TEST_ASSERT_EQUAL_UINT32(0, engine.sides[1].qp->rq.tail);
}

/* If the high bit of the Q_Key is set, the QP's own Q_Key is sent. */
void test_controlled_qkey_takes_the_qps_own(void)
{
	struct ibv_wc wc;

	TEST_ASSERT_EQUAL_INT(0, engine_recv(&engine, 1, 5, 0, 100));
	expect_delivered(&(struct engine_send){
		.opcode = IBV_WR_SEND, .bytes = 9, .remote_qkey = 0x80000001});
	TEST_ASSERT_TRUE(engine_poll(engine.sides[1].recv_cq, &wc));
}

void test_no_receive_is_dropped(void)
{
	expect_delivered(&(struct engine_send){.opcode = IBV_WR_SEND, .bytes = 9});
	expect_dropped();
}

/* The receive is not consumed: the next message that fits uses it. */
void test_small_receive_is_kept(void)
{
	struct ibv_wc wc;

	TEST_ASSERT_EQUAL_INT(0, engine_recv(&engine, 1, 5, 0, 48));
	expect_delivered(&(struct engine_send){.opcode = IBV_WR_SEND, .bytes = 9});
	expect_dropped();
	expect_delivered(&(struct engine_send){.opcode = IBV_WR_SEND, .bytes = 8});
	TEST_ASSERT_TRUE(engine_poll(engine.sides[1].recv_cq, &wc));
	TEST_ASSERT_EQUAL_UINT64(5, wc.wr_id);
	TEST_ASSERT_EQUAL_UINT32(48, wc.byte_len);
}

void test_unknown_qp_is_dropped(void)
{
	expect_delivered(
		&(struct engine_send){.opcode = IBV_WR_SEND, .bytes = 9, .remote_qpn = 0x765432});
	expect_dropped();
}

/*
 * The longest datagram is the port's active MTU. A longer one is not sent; with the quirk it is an
 * error that moves the QP to SQE.
 */
void test_message_longer_than_the_mtu(void)
{
	struct ibv_wc wc;
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS};

	expect_delivered(&(struct engine_send){.opcode = IBV_WR_SEND, .bytes = 4096});
	wc = deliver(&(struct engine_send){.opcode = IBV_WR_SEND, .bytes = 4097});
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, wc.status);
	TEST_ASSERT_EQUAL_INT(IBV_QPS_RTS, engine.sides[0].qp->state);
	engine_quirk(engine.sides[0].qp->device, "long_datagrams_fail", true);
	wc = deliver(&(struct engine_send){.opcode = IBV_WR_SEND, .bytes = 4097});
	TEST_ASSERT_EQUAL_INT(IBV_WC_LOC_LEN_ERR, wc.status);
	TEST_ASSERT_EQUAL_INT(IBV_QPS_SQE, engine.sides[0].qp->state);
	/* In SQE sends are flushed, and receives work. */
	wc = deliver(&(struct engine_send){.opcode = IBV_WR_SEND, .bytes = 1});
	TEST_ASSERT_EQUAL_INT(IBV_WC_WR_FLUSH_ERR, wc.status);
	TEST_ASSERT_EQUAL_INT(0, engine_recv(&engine, 0, 3, 0, 100));
	TEST_ASSERT_EQUAL_INT(
		0,
		engine_send(&engine, 1, &(struct engine_send){.opcode = IBV_WR_SEND, .bytes = 1}));
	sim_engine_run(engine.sim);
	TEST_ASSERT_TRUE(engine_poll(engine.sides[0].recv_cq, &wc));
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, wc.status);
	TEST_ASSERT_EQUAL_INT(0, sim_qp_modify(engine.sides[0].qp, &attr, IBV_QP_STATE));
	expect_delivered(&(struct engine_send){.opcode = IBV_WR_SEND, .bytes = 1});
}

void test_bad_lkey_and_forbidden_opcode(void)
{
	struct ibv_wc wc;

	wc = deliver(&(struct engine_send){.opcode = IBV_WR_SEND, .bytes = 9, .lkey = 0x99});
	TEST_ASSERT_EQUAL_INT(IBV_WC_LOC_PROT_ERR, wc.status);
	engine_close(&engine);
	setUp();
	wc = deliver(&(struct engine_send){.opcode = IBV_WR_RDMA_WRITE, .bytes = 9});
	TEST_ASSERT_EQUAL_INT(IBV_WC_LOC_QP_OP_ERR, wc.status);
	TEST_ASSERT_EQUAL_UINT(0, engine.frame_count);
}

/*
 * Posting refuses an AH of another PD and no AH. A destroyed AH still serves the sends posted
 * before.
 */
void test_address_handles(void)
{
	struct sim_ah *ah = engine.sides[0].ah;
	struct ibv_wc wc;

	engine.sides[0].ah = NULL;
	TEST_ASSERT_EQUAL_INT(
		EINVAL, engine_send(&engine, 0, &(struct engine_send){.opcode = IBV_WR_SEND}));
	ah->pd = 2;
	engine.sides[0].ah = ah;
	TEST_ASSERT_EQUAL_INT(
		EINVAL, engine_send(&engine, 0, &(struct engine_send){.opcode = IBV_WR_SEND}));
	ah->pd = 1;
	TEST_ASSERT_EQUAL_INT(0, engine_recv(&engine, 1, 5, 0, 100));
	TEST_ASSERT_EQUAL_INT(
		0, engine_send(&engine, 0, &(struct engine_send){.opcode = IBV_WR_SEND}));
	sim_ah_release(ah);
	engine.sides[0].ah = NULL;
	sim_engine_run(engine.sim);
	TEST_ASSERT_TRUE(engine_poll(engine.sides[1].recv_cq, &wc));
	TEST_ASSERT_EQUAL_UINT32(0, engine.sides[0].device->ah_count);
}

/* A send that is reset or flushed releases its AH, too. */
void test_posted_sends_let_go_of_their_ah(void)
{
	struct sim_ah *ah = engine.sides[0].ah;

	for (unsigned int i = 0; i < 3; i++)
		TEST_ASSERT_EQUAL_INT(
			0, engine_send(&engine, 0, &(struct engine_send){.opcode = IBV_WR_SEND}));
	TEST_ASSERT_EQUAL_UINT32(4, ah->holders);
	sim_qp_fail(engine.sides[0].qp, SIM_BY_MODIFY);
	sim_engine_run(engine.sim);
	TEST_ASSERT_EQUAL_UINT32(1, ah->holders);
	TEST_ASSERT_EQUAL_INT(
		0, engine_send(&engine, 0, &(struct engine_send){.opcode = IBV_WR_SEND}));
	sim_qp_reset(engine.sides[0].qp);
	TEST_ASSERT_EQUAL_UINT32(1, ah->holders);
}

void test_receive_memory_that_may_not_be_written(void)
{
	struct ibv_wc wc;

	TEST_ASSERT_EQUAL_INT(0, engine_recv(&engine, 1, 5, 0, 100));
	engine_poison(engine.sides[1].memory + 44, 1);
	expect_delivered(&(struct engine_send){.opcode = IBV_WR_SEND, .bytes = 9});
	TEST_ASSERT_TRUE(engine_poll(engine.sides[1].recv_cq, &wc));
	TEST_ASSERT_EQUAL_INT(IBV_WC_LOC_PROT_ERR, wc.status);
	TEST_ASSERT_EQUAL_INT(IBV_QPS_ERR, engine.sides[1].qp->state);
}

/* With the quirk, a datagram that does not fit fails the receive and moves the QP to ERR. */
void test_small_receive_may_end_the_qp(void)
{
	for (unsigned int room = 100; room <= 101; room++) {
		struct ibv_wc wc;

		engine_close(&engine);
		engine_open(&engine, &(struct engine_config){.type = IBV_QPT_UD});
		engine_quirk(engine.sides[1].device, "short_datagram_receive_fails", true);
		TEST_ASSERT_EQUAL_INT(0, engine_recv(&engine, 1, 7, 0, room));
		TEST_ASSERT_EQUAL_INT(
			0, engine_send(&engine, 0,
				       &(struct engine_send){.opcode = IBV_WR_SEND,
							     .bytes = 61,
							     .remote_qkey = ENGINE_QKEY}));
		sim_engine_run(engine.sim);
		TEST_ASSERT_TRUE(engine_poll(engine.sides[1].recv_cq, &wc));
		TEST_ASSERT_EQUAL_INT(room == 100 ? IBV_WC_LOC_QP_OP_ERR : IBV_WC_SUCCESS,
				      wc.status);
		TEST_ASSERT_EQUAL_INT(room == 100 ? IBV_QPS_ERR : IBV_QPS_RTS,
				      engine.sides[1].qp->state);
	}
}

/* The quirk applies to accepted datagrams only: one with a wrong Q_Key is still dropped. */
void test_small_receive_and_wrong_qkey(void)
{
	engine_quirk(engine.sides[1].device, "short_datagram_receive_fails", true);
	TEST_ASSERT_EQUAL_INT(0, engine_recv(&engine, 1, 7, 0, 100));
	TEST_ASSERT_EQUAL_INT(0,
			      engine_send(&engine, 0,
					  &(struct engine_send){.opcode = IBV_WR_SEND,
								.bytes = 61,
								.remote_qkey = ENGINE_QKEY ^ 1}));
	sim_engine_run(engine.sim);
	TEST_ASSERT_EQUAL_INT(IBV_QPS_RTS, engine.sides[1].qp->state);
	expect_dropped();
}

/* ibv_get_async_event(3), COMM_EST: raised once by the first packet in RTR, and not in RTS. */
void test_first_datagram_in_rtr_raises_comm_est(void)
{
	for (unsigned int rtr_only = 0; rtr_only < 2; rtr_only++) {
		struct sim_packet packet;
		struct sim_span span;
		uint8_t byte = 1;

		engine_close(&engine);
		engine_open(&engine, &(struct engine_config){.type = IBV_QPT_UD,
							     .peer = true,
							     .rtr_only = rtr_only});
		for (uint64_t i = 0; i < 2; i++) {
			TEST_ASSERT_EQUAL_INT(0, engine_recv(&engine, 0, i, 0, 100));
			packet = engine_packet(&engine, SIM_UD_SEND_ONLY, ENGINE_PSN);
			packet.qkey = ENGINE_QKEY;
			engine_payload(&packet, &span, &byte, 1);
			sim_datagram_receive(engine.sides[0].qp, &packet,
					     &engine.sides[0].ah->path.route);
		}
		TEST_ASSERT_EQUAL_UINT(rtr_only, engine_events(&engine, IBV_EVENT_COMM_EST));
		TEST_ASSERT_EQUAL_UINT(rtr_only, engine.event_count);
	}
}
