/* SPDX-License-Identifier: MIT */
/* Two engines with the same devices, as two processes have them: packets leave by the way out. */
#include "sim/base/refuse.h"
#include "sim/net/net.h"
#include "test/support/engine.h"
#include "test/support/joined.h"
#include "unity.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <verbena/explain.h>

static struct joined joined;
static bool traced; /* packets leave as bytes; else as descriptors */

void setUp(void)
{
	traced = false;
}

void tearDown(void)
{
	joined_close(&joined);
}

static void open_with_room(const struct engine_config *config, unsigned int room)
{
	struct engine_config quiet = *config;

	quiet.quiet = !traced;
	joined_open(&joined, &quiet, room);
}

static void open(const struct engine_config *config)
{
	open_with_room(config, JOINED_RING);
}

static struct ibv_wc expect(struct sim_cq *cq, uint64_t wr_id, enum ibv_wc_status status)
{
	struct ibv_wc wc = {.status = IBV_WC_GENERAL_ERR};

	TEST_ASSERT_TRUE(engine_poll(cq, &wc));
	TEST_ASSERT_EQUAL_UINT64(wr_id, wc.wr_id);
	TEST_ASSERT_EQUAL_INT(status, wc.status);
	return wc;
}

static void expect_empty(struct sim_cq *cq)
{
	struct ibv_wc wc;

	TEST_ASSERT_FALSE(engine_poll(cq, &wc));
}

/* Fills a side's memory with bytes that no other offset or side has in this order. */
static void fill(unsigned int side)
{
	uint8_t *memory = joined_side(&joined, side)->memory;

	for (uint32_t i = 0; i < ENGINE_MEMORY_BYTES; i++)
		memory[i] = (uint8_t)(i * 7 + i / 251 + side * 101);
}

void test_send_and_receive(void)
{
	open(&(struct engine_config){0});
	fill(0);
	TEST_ASSERT_EQUAL_INT(0, joined_recv(&joined, 1, 5, 1000, 3000));
	TEST_ASSERT_EQUAL_INT(
		0, joined_send(
			   &joined, 0,
			   (struct engine_send){.opcode = IBV_WR_SEND, .wr_id = 4, .bytes = 2999}));
	joined_settle(&joined, SIM_NEVER - 1);
	expect(joined_side(&joined, 0)->send_cq, 4, IBV_WC_SUCCESS);
	TEST_ASSERT_EQUAL_UINT32(
		2999, expect(joined_side(&joined, 1)->recv_cq, 5, IBV_WC_SUCCESS).byte_len);
	TEST_ASSERT_EQUAL_MEMORY(joined_side(&joined, 0)->memory,
				 joined_side(&joined, 1)->memory + 1000, 2999);
}

static void write_and_read(void)
{
	open(&(struct engine_config){.mtu = IBV_MTU_1024});
	fill(0);
	joined_send(&joined, 0,
		    (struct engine_send){.opcode = IBV_WR_RDMA_WRITE,
					 .wr_id = 1,
					 .bytes = 100001,
					 .remote_offset = 7});
	joined_settle(&joined, SIM_NEVER - 1);
	expect(joined_side(&joined, 0)->send_cq, 1, IBV_WC_SUCCESS);
	TEST_ASSERT_EQUAL_MEMORY(joined_side(&joined, 0)->memory,
				 joined_side(&joined, 1)->memory + 7, 100001);
	fill(1);
	joined_send(&joined, 0,
		    (struct engine_send){.opcode = IBV_WR_RDMA_READ,
					 .wr_id = 2,
					 .bytes = 120000,
					 .offset = 3,
					 .remote_offset = 11});
	joined_settle(&joined, SIM_NEVER - 1);
	expect(joined_side(&joined, 0)->send_cq, 2, IBV_WC_SUCCESS);
	TEST_ASSERT_EQUAL_MEMORY(joined_side(&joined, 1)->memory + 11,
				 joined_side(&joined, 0)->memory + 3, 120000);
	TEST_ASSERT_EQUAL_UINT64(0, joined_side(&joined, 0)->device->counters.retries);
}

void test_write_and_read_of_many_packets(void)
{
	write_and_read();
	TEST_ASSERT_TRUE(joined.ways[0].frames[0].checked);
	joined_close(&joined);
	traced = true;
	write_and_read();
	TEST_ASSERT_FALSE(joined.ways[0].frames[0].checked);
}

/* Both directions of rings that hold few frames are full at the same time; nothing is lost. */
static void fill_rings(void)
{
	static const unsigned int rooms[] = {1, 2, 3, 7, 64};

	for (unsigned int i = 0; i < sizeof(rooms) / sizeof(rooms[0]); i++) {
		open_with_room(&(struct engine_config){.reads = 8}, rooms[i]);
		fill(0);
		fill(1);
		for (unsigned int side = 0; side < 2; side++) {
			joined_send(&joined, side,
				    (struct engine_send){.opcode = IBV_WR_RDMA_READ,
							 .wr_id = 1,
							 .bytes = 20000,
							 .offset = 50000});
			joined_send(&joined, side,
				    (struct engine_send){.opcode = IBV_WR_RDMA_WRITE,
							 .wr_id = 2,
							 .bytes = 20000,
							 .remote_offset = 100000});
			joined_send(&joined, side,
				    (struct engine_send){.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
							 .wr_id = 3,
							 .bytes = 8,
							 .offset = 90000,
							 .remote_offset = 200000,
							 .compare_add = 5});
		}
		joined_settle(&joined, SIM_NEVER - 1);
		for (unsigned int side = 0; side < 2; side++) {
			struct engine_side *own = joined_side(&joined, side);
			struct engine_side *other = joined_side(&joined, !side);

			for (uint64_t wr_id = 1; wr_id <= 3; wr_id++)
				expect(own->send_cq, wr_id, IBV_WC_SUCCESS);
			TEST_ASSERT_EQUAL_MEMORY(other->memory, own->memory + 50000, 20000);
			TEST_ASSERT_EQUAL_MEMORY(own->memory, other->memory + 100000, 20000);
			TEST_ASSERT_EQUAL_UINT64(0, own->device->counters.retries);
			TEST_ASSERT_EQUAL_UINT(0, joined.ways[side].lost);
			TEST_ASSERT_EQUAL_UINT(rooms[i] < 64 ? rooms[i] : joined.ways[side].most,
					       joined.ways[side].most);
			TEST_ASSERT_FALSE(sim_way_out_is_awaited(joined.engines[side].sim));
		}
		joined_close(&joined);
	}
}

void test_full_rings_lose_nothing(void)
{
	fill_rings();
	traced = true;
	fill_rings();
}

/* --- numbers --- */

void test_numbers_come_from_claimed_blocks(void)
{
	open(&(struct engine_config){0});
	for (unsigned int i = 0; i < 2; i++) {
		const struct engine *engine = &joined.engines[i];

		for (unsigned int side = 0; side < 2; side++) {
			const uint32_t qpn = engine->sides[side].qp->number;
			const uint32_t place = qpn & ((1u << 18) - 1);

			TEST_ASSERT_EQUAL_UINT(
				i + 1, joined.owners[SIM_NUMBERS_QP][place / SIM_BLOCK_PLACES]);
			TEST_ASSERT_EQUAL_UINT(3 + i, qpn >> 18);
		}
	}
}

/* The child of a fork() keeps the numbers of what it has inherited, and takes new ones elsewhere. */
void test_a_child_takes_new_blocks(void)
{
	struct sim_qp_init init = {.type = IBV_QPT_RC, .pd = 1};
	struct engine *engine;
	struct sim_device *device;
	struct sim_qp *made[300];
	uint32_t inherited, inherited_block;

	open(&(struct engine_config){0});
	engine = &joined.engines[0];
	device = engine->sides[0].device;
	init.send_cq = engine->sides[0].send_cq;
	init.recv_cq = engine->sides[0].recv_cq;
	inherited = engine->sides[0].qp->number;
	inherited_block = (inherited & 0x3ffff) / SIM_BLOCK_PLACES;
	TEST_ASSERT_EQUAL_INT(0, sim_qp_create(device, &init, &made[0]));
	sim_device_renumber(device, 12345);
	TEST_ASSERT_EQUAL_PTR(engine->sides[0].qp, sim_table_find(&device->qps, inherited));
	/* An inherited QP that ends leaves no number behind that the child uses. */
	sim_qp_destroy(made[0]);
	for (unsigned int i = 0; i < 300; i++) {
		TEST_ASSERT_EQUAL_INT(0, sim_qp_create(device, &init, &made[i]));
		TEST_ASSERT_TRUE(inherited_block != (made[i]->number & 0x3ffff) / SIM_BLOCK_PLACES);
	}
	for (unsigned int i = 0; i < 300; i++)
		sim_qp_destroy(made[i]);
}

/* --- peers that take nothing --- */

/* The QP waits for room with packets under way: its ack timer ends the send in time, by the usual number
 * of retries. */
void test_a_peer_that_takes_nothing(void)
{
	struct engine_side *side;

	open_with_room(&(struct engine_config){.retry_cnt = 3}, 4);
	side = joined_side(&joined, 0);
	joined.ways[0].stuck = true;
	joined_send(&joined, 0, (struct engine_send){.opcode = IBV_WR_RDMA_WRITE, .bytes = 9000});
	joined_run(&joined);
	TEST_ASSERT_TRUE(sim_way_out_is_awaited(joined.engines[0].sim));
	TEST_ASSERT_EQUAL_UINT(4, joined.ways[0].sent);
	joined_settle(&joined, SIM_NEVER - 1);
	expect(side->send_cq, 0, IBV_WC_RETRY_EXC_ERR);
	TEST_ASSERT_EQUAL_UINT64(4, side->device->counters.ack_timeouts);
	TEST_ASSERT_EQUAL_UINT64(3, side->device->counters.retries);
	/* 4.096 us * 2^14 * (retry_cnt + 1) */
	TEST_ASSERT_EQUAL_UINT64(4 * UINT64_C(67108864), joined.now_ns);
	TEST_ASSERT_EQUAL_INT(IBV_QPS_ERR, side->qp->state);
	TEST_ASSERT_FALSE(sim_way_out_is_awaited(joined.engines[0].sim));
}

/* While the receiver of the packets does not run, ack timeouts cost no retry and repeat nothing. */
void test_a_peer_that_does_not_run(void)
{
	struct engine_side *side;

	open_with_room(&(struct engine_config){.retry_cnt = 1}, 4);
	side = joined_side(&joined, 0);
	joined.ways[0].stuck = joined.ways[0].lags = true;
	joined_send(&joined, 0, (struct engine_send){.opcode = IBV_WR_RDMA_WRITE, .bytes = 9000});
	joined_settle(&joined, UINT64_C(10000000000));
	TEST_ASSERT_TRUE(side->device->counters.ack_timeouts > 100);
	TEST_ASSERT_EQUAL_UINT64(0, side->device->counters.retries);
	TEST_ASSERT_EQUAL_UINT(4, joined.ways[0].sent);
	joined.ways[0].stuck = joined.ways[0].lags = false;
	joined_settle(&joined, UINT64_C(20000000000));
	expect(side->send_cq, 0, IBV_WC_SUCCESS);
	TEST_ASSERT_EQUAL_UINT64(0, side->device->counters.retries);
}

/* A QP that has sent nothing yet waits as long as there is no room; flushing needs no room. */
void test_a_qp_that_waits_is_flushed(void)
{
	const struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};
	struct engine_side *side;

	open_with_room(&(struct engine_config){0}, 0);
	side = joined_side(&joined, 0);
	joined_recv(&joined, 0, 9, 0, 100);
	joined_send(&joined, 0,
		    (struct engine_send){.opcode = IBV_WR_SEND, .wr_id = 1, .bytes = 9});
	joined_send(&joined, 0,
		    (struct engine_send){.opcode = IBV_WR_SEND, .wr_id = 2, .bytes = 9});
	joined_settle(&joined, SIM_NEVER - 1);
	expect_empty(side->send_cq);
	TEST_ASSERT_TRUE(sim_way_out_is_awaited(joined.engines[0].sim));
	TEST_ASSERT_EQUAL_INT(0, sim_qp_modify(side->qp, &error, IBV_QP_STATE));
	TEST_ASSERT_FALSE(sim_way_out_is_awaited(joined.engines[0].sim));
	joined_run(&joined);
	expect(side->send_cq, 1, IBV_WC_WR_FLUSH_ERR);
	expect(side->send_cq, 2, IBV_WC_WR_FLUSH_ERR);
	expect(side->recv_cq, 9, IBV_WC_WR_FLUSH_ERR);
}

void test_a_qp_that_waits_is_reset_or_destroyed(void)
{
	const struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};

	for (unsigned int destroyed = 0; destroyed < 2; destroyed++) {
		struct engine_side *side;

		open_with_room(&(struct engine_config){0}, 0);
		side = joined_side(&joined, 0);
		joined_send(&joined, 0, (struct engine_send){.opcode = IBV_WR_SEND, .bytes = 9});
		joined_run(&joined);
		TEST_ASSERT_TRUE(sim_way_out_is_awaited(joined.engines[0].sim));
		if (destroyed) {
			sim_qp_destroy(side->qp);
			side->qp = NULL;
		} else {
			TEST_ASSERT_EQUAL_INT(0, sim_qp_modify(side->qp, &reset, IBV_QP_STATE));
		}
		TEST_ASSERT_FALSE(sim_way_out_is_awaited(joined.engines[0].sim));
		sim_way_out_ready(joined.engines[0].sim);
		TEST_ASSERT_TRUE(sim_engine_quiet(joined.engines[0].sim));
		joined_close(&joined);
	}
}

/* A request and a response of one QP wait, and no timer runs for them. */
void test_a_qp_that_waits_with_both_parts(void)
{
	open_with_room(&(struct engine_config){.no_timeout = true}, 8);
	joined.ways[0].limit = 0;
	joined_send(&joined, 1, (struct engine_send){.opcode = IBV_WR_RDMA_READ, .bytes = 5000});
	joined_send(&joined, 0, (struct engine_send){.opcode = IBV_WR_RDMA_WRITE, .bytes = 9});
	joined_run(&joined);
	TEST_ASSERT_EQUAL_UINT(0, joined.ways[0].sent);
	TEST_ASSERT_TRUE(sim_way_out_is_awaited(joined.engines[0].sim));
	joined.ways[0].limit = 8;
	sim_way_out_ready(joined.engines[0].sim);
	joined_run(&joined);
	expect(joined_side(&joined, 0)->send_cq, 0, IBV_WC_SUCCESS);
	expect(joined_side(&joined, 1)->send_cq, 0, IBV_WC_SUCCESS);
	TEST_ASSERT_FALSE(sim_way_out_is_awaited(joined.engines[0].sim));
}

/* The response of a READ waits at the responder. The requester asks again, and gets it once. */
void test_a_response_that_waits(void)
{
	struct engine_side *side, *responder;

	open_with_room(&(struct engine_config){0}, 3);
	side = joined_side(&joined, 0);
	responder = joined_side(&joined, 1);
	fill(1);
	joined.ways[1].stuck = true;
	joined_send(&joined, 0,
		    (struct engine_send){.opcode = IBV_WR_RDMA_READ, .bytes = 5000, .offset = 9});
	joined_settle(&joined, 150000000);
	TEST_ASSERT_EQUAL_UINT64(2, side->device->counters.retries);
	TEST_ASSERT_EQUAL_UINT64(2, responder->device->counters.duplicate_requests);
	TEST_ASSERT_EQUAL_UINT(3, joined.ways[1].sent);
	TEST_ASSERT_TRUE(sim_way_out_is_awaited(joined.engines[1].sim));
	joined.ways[1].stuck = false;
	joined_settle(&joined, SIM_NEVER - 1);
	expect(side->send_cq, 0, IBV_WC_SUCCESS);
	expect_empty(side->send_cq);
	TEST_ASSERT_EQUAL_MEMORY(responder->memory, side->memory + 9, 5000);
	TEST_ASSERT_EQUAL_UINT(0, joined.ways[1].lost);
	TEST_ASSERT_FALSE(sim_way_out_is_awaited(joined.engines[1].sim));
}

/* The responses of a READ fill the ring, and the ACK or NAK of the WRITE behind it waits. */
void test_an_answer_that_waits_behind_responses(void)
{
	for (unsigned int wrong = 0; wrong < 2; wrong++) {
		const struct sim_counters *counters;

		open_with_room(&(struct engine_config){0}, 8);
		counters = &joined_side(&joined, 0)->device->counters;
		joined.ways[1].limit = 2;
		joined_send(&joined, 0,
			    (struct engine_send){.opcode = IBV_WR_RDMA_READ, .bytes = 512});
		joined_send(&joined, 0,
			    (struct engine_send){.opcode = IBV_WR_RDMA_WRITE,
						 .wr_id = 1,
						 .bytes = 8,
						 .rkey = wrong ? 0x1234 : 0});
		joined_settle(&joined, SIM_NEVER - 1);
		expect(joined_side(&joined, 0)->send_cq, 0, IBV_WC_SUCCESS);
		expect(joined_side(&joined, 0)->send_cq, 1,
		       wrong ? IBV_WC_REM_ACCESS_ERR : IBV_WC_SUCCESS);
		TEST_ASSERT_EQUAL_UINT(0, joined.ways[1].lost);
		TEST_ASSERT_EQUAL_UINT(3, joined.ways[1].sent);
		TEST_ASSERT_EQUAL_UINT64(0, counters->retries);
		joined_close(&joined);
	}
}

/* The room that is left is kept for ACKs and NAKs: they leave, and responses wait. */
void test_an_ack_leaves_where_responses_wait(void)
{
	for (unsigned int wrong = 0; wrong < 2; wrong++) {
		const struct sim_counters *counters;

		open_with_room(&(struct engine_config){0}, 8);
		counters = &joined_side(&joined, 0)->device->counters;
		joined.ways[1].limit = joined.ways[1].kept = 2;
		joined_send(&joined, 0,
			    (struct engine_send){.opcode = IBV_WR_RDMA_WRITE,
						 .bytes = 8,
						 .rkey = wrong ? 0x1234 : 0});
		joined_settle(&joined, SIM_NEVER - 1);
		expect(joined_side(&joined, 0)->send_cq, 0,
		       wrong ? IBV_WC_REM_ACCESS_ERR : IBV_WC_SUCCESS);
		TEST_ASSERT_EQUAL_UINT(1, joined.ways[1].sent);
		TEST_ASSERT_EQUAL_UINT64(0, counters->retries);
		joined_close(&joined);
	}
	open_with_room(&(struct engine_config){0}, 8);
	joined.ways[1].limit = joined.ways[1].kept = 2;
	joined_send(&joined, 0, (struct engine_send){.opcode = IBV_WR_RDMA_READ, .bytes = 8});
	joined_settle(&joined, 150000000);
	TEST_ASSERT_EQUAL_UINT(0, joined.ways[1].sent);
	TEST_ASSERT_TRUE(sim_way_out_is_awaited(joined.engines[1].sim));
	joined.ways[1].kept = 0;
	joined_settle(&joined, SIM_NEVER - 1);
	expect(joined_side(&joined, 0)->send_cq, 0, IBV_WC_SUCCESS);
}

void test_a_responder_that_waits_ends(void)
{
	const struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};
	struct engine_side *responder;

	open_with_room(&(struct engine_config){.no_timeout = true}, 4);
	responder = joined_side(&joined, 1);
	joined.ways[1].limit = 0;
	joined_send(&joined, 0, (struct engine_send){.opcode = IBV_WR_RDMA_READ, .bytes = 5000});
	joined_run(&joined);
	TEST_ASSERT_TRUE(sim_way_out_is_awaited(joined.engines[1].sim));
	TEST_ASSERT_EQUAL_INT(0, sim_qp_modify(responder->qp, &error, IBV_QP_STATE));
	TEST_ASSERT_FALSE(sim_way_out_is_awaited(joined.engines[1].sim));
}

void test_a_peer_that_has_ended(void)
{
	struct engine_side *side, *idle;

	open(&(struct engine_config){.retry_cnt = 2});
	side = joined_side(&joined, 0);
	joined.ways[0].ended = true;
	joined_send(&joined, 0, (struct engine_send){.opcode = IBV_WR_SEND, .bytes = 9});
	joined_settle(&joined, SIM_NEVER - 1);
	expect(side->send_cq, 0, IBV_WC_RETRY_EXC_ERR);
	TEST_ASSERT_EQUAL_UINT64(3 * UINT64_C(67108864), joined.now_ns);
	/* The port refuses the QPN that nobody has, as it does without a way out. */
	idle = &joined.engines[0].sides[1];
	TEST_ASSERT_EQUAL_UINT64(3, idle->device->counters.discarded[SIM_DISCARD_NO_QP]);
	TEST_ASSERT_EQUAL_UINT64(0, side->device->counters.lost_packets);
}

/* A packet is counted where it is received. */
void test_counters_are_the_receivers(void)
{
	open(&(struct engine_config){0});
	joined_recv(&joined, 1, 5, 0, 100);
	joined_send(&joined, 0, (struct engine_send){.opcode = IBV_WR_SEND, .bytes = 9});
	joined_settle(&joined, SIM_NEVER - 1);
	TEST_ASSERT_EQUAL_UINT64(1, joined.engines[0].sides[0].device->counters.sent_packets);
	TEST_ASSERT_EQUAL_UINT64(0, joined.engines[0].sides[1].device->counters.received_packets);
	TEST_ASSERT_EQUAL_UINT64(1, joined.engines[1].sides[1].device->counters.received_packets);
	TEST_ASSERT_EQUAL_UINT64(1, joined.engines[1].sides[1].device->counters.sent_packets);
	TEST_ASSERT_EQUAL_UINT64(1, joined.engines[0].sides[0].device->counters.received_packets);
}

/* A packet that nobody takes does not go out again. */
void test_what_comes_from_outside_stays(void)
{
	struct engine_side *side;

	open(&(struct engine_config){.retry_cnt = 1});
	side = joined_side(&joined, 1);
	joined_send(&joined, 0, (struct engine_send){.opcode = IBV_WR_SEND, .bytes = 9});
	sim_qp_destroy(side->qp);
	side->qp = NULL;
	joined_settle(&joined, SIM_NEVER - 1);
	expect(joined_side(&joined, 0)->send_cq, 0, IBV_WC_RETRY_EXC_ERR);
	TEST_ASSERT_EQUAL_UINT64(2, side->device->counters.discarded[SIM_DISCARD_NO_QP]);
	TEST_ASSERT_EQUAL_UINT(0, joined.ways[1].sent);
	TEST_ASSERT_EQUAL_UINT(0, joined.ways[1].lost);
}

/* --- several QPs --- */

#define MESSAGES      20u
#define MESSAGE_BYTES 1024u

/* Posts WRITEs to a QP of engine 0. */
static void post_writes(struct sim_qp *qp)
{
	const struct engine_side *side = joined_side(&joined, 0), *peer = joined_side(&joined, 1);
	struct ibv_sge sge = {(uintptr_t)side->memory, MESSAGE_BYTES, side->mr->lkey};
	struct ibv_send_wr *bad, wr = {
					 .sg_list = &sge,
					 .num_sge = 1,
					 .opcode = IBV_WR_RDMA_WRITE,
					 .send_flags = IBV_SEND_SIGNALED,
					 .wr.rdma = {(uintptr_t)peer->memory, peer->mr->rkey},
				 };

	for (unsigned int i = 0; i < MESSAGES; i++)
		TEST_ASSERT_EQUAL_INT(0, sim_qp_post_send(qp, &wr, &bad));
}

/* Gives engine 1 what has been sent, and engine 0 all answers; then QPs learn that there is room, as on the wire
 * `udp`. */
static void pass_batch(void)
{
	struct sim_engine *sender = joined.engines[0].sim;

	while (joined_take(&joined.ways[0]))
		;
	sim_engine_run(joined.engines[1].sim);
	while (joined_take(&joined.ways[1]))
		;
	sim_way_out_ready(sender);
	sim_engine_run(sender);
}

/* A QP that has got answers does not pass those that have waited for longer: these would time out. */
void test_qps_take_turns_where_there_is_little_room(void)
{
	unsigned int done[2] = {0, 0};
	struct sim_qp *others[2];
	struct ibv_wc wc;

	open_with_room(&(struct engine_config){.mtu = IBV_MTU_256, .max_wr = MESSAGES},
		       MESSAGE_BYTES / 256);
	joined_add_qps(&joined, MESSAGES, NULL, others);
	post_writes(joined_side(&joined, 0)->qp);
	post_writes(others[0]);
	sim_engine_run(joined.engines[0].sim);
	while (done[0] + done[1] < 2 * MESSAGES) {
		pass_batch();
		TEST_ASSERT_TRUE(engine_poll(joined_side(&joined, 0)->send_cq, &wc));
		TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, wc.status);
		done[wc.qp_num == others[0]->number]++;
		TEST_ASSERT_TRUE(done[0] <= done[1] + 1 && done[1] <= done[0] + 1);
	}
	for (unsigned int i = 0; i < 2; i++)
		sim_qp_destroy(others[i]);
}

/* --- reasons --- */

/* Compares the sentence of what the peer's side shows. */
static void expect_peer_why(const struct engine_side *side, enum vb_reason reason,
			    const char *sentence)
{
	const struct ibv_wc wc = expect(side->send_cq, 0, IBV_WC_RETRY_EXC_ERR);
	struct vb_completion_why why = {.send = true};
	char text[512];

	TEST_ASSERT_TRUE(sim_qp_why(side->qp, &wc, &why));
	TEST_ASSERT_EQUAL_HEX(VB_WHY_RETRY_TIMEOUT, why.why.reason);
	TEST_ASSERT_EQUAL_HEX(reason, why.peer_why.reason);
	TEST_ASSERT_EQUAL_STRING(sentence, vb_why_text(&why.peer_why, text, sizeof(text)));
}

static void send_in_vain(void)
{
	joined_send(&joined, 0, (struct engine_send){.opcode = IBV_WR_RDMA_WRITE, .bytes = 9});
	joined_settle(&joined, SIM_NEVER - 1);
}

void test_reason_nobody_has_the_qpn(void)
{
	open(&(struct engine_config){.no_retry = true});
	joined.ways[0].ended = true;
	send_in_vain();
	expect_peer_why(joined_side(&joined, 0), VB_WHY_PEER_GONE,
			"does not exist: no process has the number, so it was destroyed or its "
			"process has ended; see if and why the peer's process has ended; exchange "
			"the QP numbers anew after it starts again");
}

/* The QPN is of this engine's own block: the engine knows by itself that nobody has the QPN. */
void test_reason_an_own_qp_was_destroyed(void)
{
	struct engine *engine;

	open(&(struct engine_config){.no_retry = true});
	engine = &joined.engines[0];
	engine_connect_qp(engine, engine->sides[1].qp, engine->sides[0].qp->number,
			  &engine->sides[0].gid, ENGINE_PSN, ENGINE_PSN);
	engine->sides[0].qp->dest_qpn = engine->sides[1].qp->number;
	sim_qp_destroy(engine->sides[1].qp);
	engine->sides[1].qp = NULL;
	send_in_vain();
	TEST_ASSERT_EQUAL_UINT64(1, engine->sides[1].device->counters.discarded[SIM_DISCARD_NO_QP]);
	expect_peer_why(&engine->sides[0], VB_WHY_PEER_GONE,
			"does not exist: no process has the number, so it was destroyed or its "
			"process has ended; see if and why the peer's process has ended; exchange "
			"the QP numbers anew after it starts again");
}

void test_reason_a_living_process_has_the_qpn(void)
{
	const struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};
	char sentence[512];

	open(&(struct engine_config){.no_retry = true});
	sim_qp_modify(joined_side(&joined, 1)->qp, &error, IBV_QP_STATE);
	send_in_vain();
	snprintf(sentence, sizeof(sentence),
		 "has a number of another process, which runs; nothing shows here why the QP does "
		 "not answer; see in that process if the QP is in RTR or RTS and has dest_qp_num "
		 "0x%x, and if the process is stopped",
		 joined_side(&joined, 0)->qp->number);
	expect_peer_why(joined_side(&joined, 0), VB_WHY_PEER_ELSEWHERE, sentence);
}

/* Moves the peer's port elsewhere. */
static void take_address(struct sim_device *device)
{
	const union ibv_gid other = engine_gid(99);

	sim_port_set_gid(&device->ports[0], 1, &other, IBV_GID_TYPE_ROCE_V2);
}

void test_reason_no_wire_leads_to_the_address(void)
{
	open(&(struct engine_config){.no_retry = true});
	take_address(joined.engines[0].sides[1].device);
	send_in_vain();
	expect_peer_why(
		joined_side(&joined, 0), VB_WHY_WAY_NO_WIRE,
		"no adapter of this machine has the destination GID ::ffff:10.0.0.2, and no "
		"wire leads to it; set ah_attr.grh.dgid to the peer's GID; run both ends "
		"with the same devices and in the same world (verbena-run(1)); if the peer is on "
		"another machine, run both with --wire udp");
}

void test_reason_no_wire_leads_to_the_lid(void)
{
	open(&(struct engine_config){.no_retry = true, .infiniband = true});
	sim_port_set_lid(&joined.engines[0].sides[1].device->ports[0], 9);
	send_in_vain();
	expect_peer_why(
		joined_side(&joined, 0), VB_WHY_WAY_NO_WIRE_LID,
		"no adapter of this machine has the destination LID 2; set ah_attr.dlid to "
		"the peer's LID; run both ends with the same devices and in the same world "
		"(verbena-run(1)); to reach another machine, use Ethernet adapters with --wire "
		"udp");
}

void test_reason_an_address_beyond_does_not_answer(void)
{
	char sentence[512];

	open(&(struct engine_config){.no_retry = true});
	joined.ways[0].far = engine_gid(2);
	take_address(joined.engines[0].sides[1].device);
	send_in_vain();
	TEST_ASSERT_EQUAL_UINT(1, joined.ways[0].far_frames);
	snprintf(
		sentence, sizeof(sentence),
		"the GID ::ffff:10.0.0.2 is beyond this machine's adapters, and nothing shows here "
		"why QP 0x%x of it does not answer; see at the peer if its QP is in RTR or RTS and "
		"has dest_qp_num 0x%x, and if it runs with --wire udp; see if a firewall drops UDP "
		"port 4791",
		joined_side(&joined, 1)->qp->number, joined_side(&joined, 0)->qp->number);
	expect_peer_why(joined_side(&joined, 0), VB_WHY_WAY_BEYOND, sentence);
}

/* ibv_modify_qp(3) and ibv_create_ah(3) refuse an address that nothing leads to. */
void test_reason_an_unreachable_address_is_refused(void)
{
	static const char sentence[] =
		"no adapter of this machine has the GID ::ffff:10.0.0.55 of grh.dgid, and no wire "
		"leads to it; set grh.dgid to the peer's GID, which the peer reads by "
		"ibv_query_gid(); run both ends with the same devices and in the same world "
		"(verbena-run(1)); if the peer is on another machine, run both with --wire udp";
	const union ibv_gid nobody = engine_gid(55), far = engine_gid(77);
	struct ibv_ah_attr attr = engine_ah_attr(&nobody);
	struct ibv_qp_attr qp_attr = {.ah_attr = attr};
	struct sim_device *device;
	struct sim_ah *ah;
	char text[512];

	open(&(struct engine_config){0});
	device = joined_side(&joined, 0)->device;
	TEST_ASSERT_EQUAL_INT(ENETUNREACH, sim_ah_create(device, 1, &attr, &ah));
	TEST_ASSERT_EQUAL_HEX(VB_WHY_PATH_UNREACHABLE, device->engine->why.reason);
	TEST_ASSERT_EQUAL_STRING(sentence, vb_why_text(&device->engine->why, text, sizeof(text)));
	sim_qp_modify(joined_side(&joined, 0)->qp, &(struct ibv_qp_attr){.qp_state = IBV_QPS_SQD},
		      IBV_QP_STATE);
	TEST_ASSERT_EQUAL_INT(ENETUNREACH,
			      sim_qp_modify(joined_side(&joined, 0)->qp,
					    &(struct ibv_qp_attr){.qp_state = IBV_QPS_SQD,
								  .ah_attr = qp_attr.ah_attr},
					    IBV_QP_STATE | IBV_QP_AV));
	/* The way out leads to this one. */
	attr = engine_ah_attr(&far);
	TEST_ASSERT_EQUAL_INT(0, sim_ah_create(device, 1, &attr, &ah));
	sim_ah_release(ah);
	/* Without a way out, packets to an unknown address are lost, and nothing is refused. */
	sim_way_out_set(device->engine, NULL);
	attr = engine_ah_attr(&nobody);
	TEST_ASSERT_EQUAL_INT(0, sim_ah_create(device, 1, &attr, &ah));
	sim_ah_release(ah);
}

static bool claims_nothing(void *arg, uint32_t device_index, unsigned int numbers, uint32_t *block,
			   uint16_t *generation)
{
	(void)arg, (void)device_index, (void)numbers, (void)block, (void)generation;
	return false;
}

static void expect_taken(const struct sim_engine *sim, const char *numbers)
{
	char sentence[256], text[256];

	snprintf(sentence, sizeof(sentence),
		 "the processes of the world have taken all %s of the device; end processes of the "
		 "world, or give this process a world of its own: --world NAME",
		 numbers);
	TEST_ASSERT_EQUAL_HEX(VB_WHY_NUMBERS_TAKEN, sim->why.reason);
	TEST_ASSERT_EQUAL_STRING(sentence, vb_why_text(&sim->why, text, sizeof(text)));
}

void test_reason_no_block_is_left(void)
{
	struct sim_qp_init qp_init = {.type = IBV_QPT_RC, .pd = 1};
	struct sim_srq_init srq_init = {.pd = 1, .attr = {.max_wr = 1, .max_sge = 1}};
	struct engine *engine;
	struct sim_mr_init mr_init = {.pd = 1};
	struct sim_device *device;
	struct sim_qp *qp;
	struct sim_srq *srq;
	struct sim_mr *mr;

	open(&(struct engine_config){0});
	engine = &joined.engines[0];
	device = engine->sides[0].device;
	/* The child of a fork() finds the world full. */
	sim_device_renumber(device, 1);
	device->qps.claim.take = device->srqs.claim.take = device->regions.claim.take =
		claims_nothing;
	qp_init.send_cq = qp_init.recv_cq = engine->sides[0].send_cq;
	TEST_ASSERT_EQUAL_INT(ENOMEM, sim_qp_create(device, &qp_init, &qp));
	expect_taken(engine->sim, "QP numbers");
	TEST_ASSERT_EQUAL_INT(ENOMEM, sim_srq_create(device, &srq_init, &srq));
	expect_taken(engine->sim, "SRQ numbers");
	mr_init.addr = engine->sides[0].memory;
	mr_init.length = 1;
	TEST_ASSERT_EQUAL_INT(ENOMEM, sim_mr_create(device, &mr_init, &mr));
	expect_taken(engine->sim, "memory keys");
}

/* --- transports --- */

void test_uc(void)
{
	struct engine_side *to;

	open_with_room(&(struct engine_config){.type = IBV_QPT_UC}, 3);
	to = joined_side(&joined, 1);
	fill(0);
	joined_recv(&joined, 1, 7, 0, 5000);
	joined_send(&joined, 0, (struct engine_send){.opcode = IBV_WR_SEND, .bytes = 5000});
	joined_send(&joined, 0,
		    (struct engine_send){.opcode = IBV_WR_RDMA_WRITE,
					 .wr_id = 1,
					 .bytes = 9999,
					 .remote_offset = 100000});
	joined_settle(&joined, SIM_NEVER - 1);
	expect(joined_side(&joined, 0)->send_cq, 0, IBV_WC_SUCCESS);
	expect(joined_side(&joined, 0)->send_cq, 1, IBV_WC_SUCCESS);
	expect(to->recv_cq, 7, IBV_WC_SUCCESS);
	TEST_ASSERT_EQUAL_MEMORY(joined_side(&joined, 0)->memory, to->memory, 5000);
	TEST_ASSERT_EQUAL_MEMORY(joined_side(&joined, 0)->memory, to->memory + 100000, 9999);
}

/* A datagram waits for room on its own path: one to a QP of this engine behind it waits, too, since
 * sends leave in order. */
void test_ud_waits_in_order(void)
{
	const struct engine_send own = {.opcode = IBV_WR_SEND, .wr_id = 2, .bytes = 10};
	struct engine_side *side, *to;
	struct engine *engine;
	const uint8_t *udp;

	open_with_room(&(struct engine_config){.type = IBV_QPT_UD}, 2);
	engine = &joined.engines[0];
	side = joined_side(&joined, 0);
	to = joined_side(&joined, 1);
	engine_connect_qp(engine, engine->sides[1].qp, 0, &side->gid, ENGINE_PSN, ENGINE_PSN);
	engine_recv(engine, 1, 9, 0, 100);
	joined.ways[0].limit = 0;
	for (uint64_t wr_id = 0; wr_id < 2; wr_id++) {
		joined_recv(&joined, 1, wr_id, 1000 * (uint32_t)wr_id, 100);
		joined_send(
			&joined, 0,
			(struct engine_send){.opcode = IBV_WR_SEND, .wr_id = wr_id, .bytes = 20});
	}
	TEST_ASSERT_EQUAL_INT(0, engine_send(engine, 0, &own));
	joined_settle(&joined, SIM_NEVER - 1);
	expect_empty(side->send_cq);
	expect_empty(engine->sides[1].recv_cq);
	joined.ways[0].limit = 1;
	sim_way_out_ready(engine->sim);
	joined_settle(&joined, SIM_NEVER - 1);
	for (uint64_t wr_id = 0; wr_id < 3; wr_id++)
		expect(side->send_cq, wr_id, IBV_WC_SUCCESS);
	for (uint64_t wr_id = 0; wr_id < 2; wr_id++)
		TEST_ASSERT_EQUAL_UINT32(side->qp->number,
					 expect(to->recv_cq, wr_id, IBV_WC_SUCCESS).src_qp);
	expect(engine->sides[1].recv_cq, 9, IBV_WC_SUCCESS);
	TEST_ASSERT_EQUAL_UINT(0, joined.ways[0].lost);
	/* Behind Ethernet and IPv4: the port that a trace would show. */
	udp = joined.ways[0].frames[0].frame + 14 + 20;
	TEST_ASSERT_EQUAL_HEX16(sim_udp_source_port(side->qp->number, to->qp->number),
				udp[0] << 8 | udp[1]);
}

/* A send that fails here needs no room. */
void test_a_local_error_needs_no_room(void)
{
	struct engine_side *side;

	open_with_room(&(struct engine_config){.no_timeout = true}, 0);
	side = joined_side(&joined, 0);
	joined_send(&joined, 0,
		    (struct engine_send){.opcode = IBV_WR_ATOMIC_CMP_AND_SWP, .bytes = 4});
	joined_settle(&joined, SIM_NEVER - 1);
	expect(side->send_cq, 0, IBV_WC_LOC_LEN_ERR);
}

/* Makes an SRQ with one receive on engine 1. */
static struct sim_srq *make_srq(struct sim_xrcd *xrcd)
{
	struct engine_side *side = joined_side(&joined, 1);
	struct sim_srq_init init = {.pd = 1,
				    .attr = {.max_wr = 4, .max_sge = 1},
				    .xrcd = xrcd,
				    .cq = xrcd ? side->recv_cq : NULL};
	struct ibv_sge sge = {(uintptr_t)side->memory, 500, side->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = 8, .sg_list = &sge, .num_sge = 1}, *bad;
	struct sim_srq *srq;

	TEST_ASSERT_EQUAL_INT(0, sim_srq_create(side->device, &init, &srq));
	TEST_ASSERT_EQUAL_INT(0, sim_srq_post(srq, &wr, &bad));
	return srq;
}

void test_srq(void)
{
	struct engine_side *from, *to;
	struct sim_qp *qps[2];
	struct sim_srq *srq;

	open(&(struct engine_config){0});
	from = joined_side(&joined, 0);
	to = joined_side(&joined, 1);
	srq = make_srq(NULL);
	joined_add_qps(&joined, 4, srq, qps);
	for (unsigned int i = 0; i < 2; i++) {
		sim_qp_destroy(joined_side(&joined, i)->qp);
		joined_side(&joined, i)->qp = qps[i];
	}
	fill(0);
	joined_send(&joined, 0, (struct engine_send){.opcode = IBV_WR_SEND, .bytes = 444});
	joined_settle(&joined, SIM_NEVER - 1);
	expect(from->send_cq, 0, IBV_WC_SUCCESS);
	expect(to->recv_cq, 8, IBV_WC_SUCCESS);
	TEST_ASSERT_EQUAL_MEMORY(from->memory, to->memory, 444);
	sim_qp_destroy(to->qp);
	to->qp = NULL;
	TEST_ASSERT_EQUAL_INT(0, sim_srq_destroy(srq));
}

/* The receiver had no receive, and gets one before the RNR timer fires. */
void test_rnr(void)
{
	open(&(struct engine_config){.rnr_retry = 3, .min_rnr_timer = 14});
	joined_send(&joined, 0, (struct engine_send){.opcode = IBV_WR_SEND, .bytes = 700});
	joined_run(&joined);
	expect_empty(joined_side(&joined, 0)->send_cq);
	TEST_ASSERT_EQUAL_UINT64(1, joined_side(&joined, 0)->device->counters.rnr_naks_received);
	joined_recv(&joined, 1, 7, 0, 700);
	joined_settle(&joined, SIM_NEVER - 1);
	expect(joined_side(&joined, 0)->send_cq, 0, IBV_WC_SUCCESS);
	expect(joined_side(&joined, 1)->recv_cq, 7, IBV_WC_SUCCESS);
}

void test_errors_of_the_peer(void)
{
	static const struct {
		enum ibv_wr_opcode opcode;
		uint32_t rkey, remote_offset;
		enum ibv_wc_status status;
	} rows[] = {
		{IBV_WR_RDMA_WRITE, 0x12345, 0, IBV_WC_REM_ACCESS_ERR},
		{IBV_WR_RDMA_READ, 0, ENGINE_MEMORY_BYTES - 4, IBV_WC_REM_ACCESS_ERR},
		{IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 4, IBV_WC_REM_INV_REQ_ERR},
		{IBV_WR_SEND, 0, 0, IBV_WC_RNR_RETRY_EXC_ERR},
	};

	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		open(&(struct engine_config){0});
		joined_send(&joined, 0,
			    (struct engine_send){.opcode = rows[i].opcode,
						 .bytes = 8,
						 .rkey = rows[i].rkey,
						 .remote_offset = rows[i].remote_offset});
		joined_settle(&joined, SIM_NEVER - 1);
		expect(joined_side(&joined, 0)->send_cq, 0, rows[i].status);
		joined_close(&joined);
	}
}

/* --- filters --- */

static unsigned int add_rule(struct sim_fault_rule rule)
{
	unsigned int id;

	TEST_ASSERT_EQUAL_INT(0, sim_fault_add(joined.engines[0].sim, &rule, &id));
	return id;
}

static void write_and_compare(uint32_t bytes)
{
	fill(0);
	joined_send(&joined, 0,
		    (struct engine_send){.opcode = IBV_WR_RDMA_WRITE, .wr_id = 3, .bytes = bytes});
	joined_settle(&joined, SIM_NEVER - 1);
	expect(joined_side(&joined, 0)->send_cq, 3, IBV_WC_SUCCESS);
	TEST_ASSERT_EQUAL_MEMORY(joined_side(&joined, 0)->memory, joined_side(&joined, 1)->memory,
				 bytes);
}

void test_fault_rules_act_on_packets_that_leave(void)
{
	const struct sim_counters *counters;
	uint64_t naks;

	open(&(struct engine_config){0});
	counters = &joined_side(&joined, 1)->device->counters;
	add_rule((struct sim_fault_rule){.action = SIM_FAULT_DROP, .skip = 2, .count = 1});
	write_and_compare(2000);
	TEST_ASSERT_EQUAL_UINT64(1, counters->sequence_naks_sent);
	TEST_ASSERT_EQUAL_UINT64(1, joined_side(&joined, 0)->device->counters.lost_packets);
	/* The receiver drops a frame that a rule has changed. */
	add_rule((struct sim_fault_rule){.action = SIM_FAULT_CORRUPT, .skip = 2, .count = 1});
	write_and_compare(2000);
	TEST_ASSERT_EQUAL_UINT64(1, counters->discarded[SIM_DISCARD_ICRC]);
	TEST_ASSERT_EQUAL_UINT64(
		0, joined.engines[0].sides[1].device->counters.discarded[SIM_DISCARD_ICRC]);
	add_rule((struct sim_fault_rule){.action = SIM_FAULT_DUPLICATE, .skip = 2, .count = 1});
	write_and_compare(2000);
	TEST_ASSERT_EQUAL_UINT64(1, counters->duplicate_requests);
	/* The packets behind a delayed one overtake it. */
	naks = counters->sequence_naks_sent;
	add_rule((struct sim_fault_rule){
		.action = SIM_FAULT_DELAY, .skip = 2, .count = 1, .delay_ns = 5000});
	write_and_compare(2000);
	TEST_ASSERT_EQUAL_UINT64(naks + 1, counters->sequence_naks_sent);
}

/* A rule that gives a packet another QPN sends it to the QP with that number, wherever that is. */
void test_a_changed_qpn_decides_where_a_packet_goes(void)
{
	struct engine_side *idle;

	open(&(struct engine_config){.no_timeout = true});
	idle = &joined.engines[0].sides[1];
	add_rule((struct sim_fault_rule){.action = SIM_FAULT_CORRUPT,
					 .count = 1,
					 .change = {.place = SIM_FAULT_FIELD,
						    .field = SIM_FIELD_DEST_QPN,
						    .bits.value = idle->qp->number,
						    .bits.mask = 0xffffff,
						    .right_icrc = true}});
	joined_send(&joined, 0, (struct engine_send){.opcode = IBV_WR_RDMA_WRITE, .bytes = 9});
	joined_run(&joined);
	TEST_ASSERT_EQUAL_UINT(0, joined.ways[0].sent);
	TEST_ASSERT_EQUAL_UINT64(1, idle->device->counters.discarded[SIM_DISCARD_STATE]);
}

/* The trace has the bytes that leave, and each packet once: at its sender. */
void test_the_trace_shows_what_leaves(void)
{
	const struct engine_frame *frame;

	traced = true;
	open(&(struct engine_config){0});
	joined_recv(&joined, 1, 7, 0, 700);
	joined_send(&joined, 0, (struct engine_send){.opcode = IBV_WR_SEND, .bytes = 100});
	joined_settle(&joined, SIM_NEVER - 1);
	frame = engine_nth(&joined.engines[0], SIM_RC_SEND_ONLY, 0);
	TEST_ASSERT_NOT_NULL(frame);
	TEST_ASSERT_FALSE(frame->lost);
	TEST_ASSERT_EQUAL_INT(SIM_DECODE_OK, frame->decoded);
	TEST_ASSERT_EQUAL_UINT(1, joined.engines[0].frame_count);
	TEST_ASSERT_EQUAL_UINT(1, joined.engines[1].frame_count);
	TEST_ASSERT_EQUAL_UINT(1, engine_count(&joined.engines[1], SIM_RC_ACK));
	TEST_ASSERT_EQUAL_size_t(frame->frame_bytes, joined.ways[0].frames[0].frame_bytes);
	TEST_ASSERT_FALSE(joined.ways[0].frames[0].checked);
}

/* Packets on a link with delay find the ring full when they land, and wait. */
void test_delayed_packets_wait_for_room(void)
{
	open_with_room(&(struct engine_config){.delay_ns = 3000, .bits_per_second = 1000000000000},
		       2);
	for (unsigned int i = 0; i < 2; i++) {
		const unsigned int before = joined.ways[0].sent;

		joined.ways[0].stuck = true;
		fill(i);
		joined_send(&joined, 0,
			    (struct engine_send){.opcode = IBV_WR_RDMA_WRITE, .bytes = 1500});
		joined_settle(&joined, joined.now_ns + 100000);
		TEST_ASSERT_EQUAL_UINT(before + 2, joined.ways[0].sent);
		TEST_ASSERT_TRUE(sim_way_out_is_awaited(joined.engines[0].sim));
		joined.ways[0].stuck = false;
		joined_settle(&joined, SIM_NEVER - 1);
		expect(joined_side(&joined, 0)->send_cq, 0, IBV_WC_SUCCESS);
		TEST_ASSERT_EQUAL_MEMORY(joined_side(&joined, 0)->memory,
					 joined_side(&joined, 1)->memory, 1500);
		TEST_ASSERT_EQUAL_UINT64(0, joined_side(&joined, 0)->device->counters.retries);
		TEST_ASSERT_EQUAL_UINT(0, joined.ways[0].lost);
		TEST_ASSERT_FALSE(sim_way_out_is_awaited(joined.engines[0].sim));
	}
}

/* A packet that is lost when it lands counts as lost, as one without delay does. */
void test_delayed_packets_that_are_lost(void)
{
	const struct sim_counters *counters;

	open_with_room(&(struct engine_config){.delay_ns = 3000,
					       .bits_per_second = 1000000000000,
					       .no_timeout = true},
		       2);
	counters = &joined_side(&joined, 0)->device->counters;
	joined.ways[0].stuck = joined.ways[0].no_end = true;
	joined_send(&joined, 0, (struct engine_send){.opcode = IBV_WR_RDMA_WRITE, .bytes = 1500});
	joined_settle(&joined, 100000);
	TEST_ASSERT_EQUAL_UINT(2, joined.ways[0].sent);
	TEST_ASSERT_TRUE(joined.ways[0].lost > 0);
	TEST_ASSERT_EQUAL_UINT64(joined.ways[0].lost, counters->lost_packets);
}

/* A packet that lands when there is room again waits behind those that wait. */
void test_delayed_packets_leave_in_order(void)
{
	open_with_room(&(struct engine_config){.delay_ns = 3000, .bits_per_second = 1000000000}, 1);
	joined.ways[0].stuck = true;
	/* Each packet takes more than 2 us. */
	joined_send(&joined, 0, (struct engine_send){.opcode = IBV_WR_RDMA_WRITE, .bytes = 768});
	joined_settle(&joined, 8500);
	TEST_ASSERT_EQUAL_UINT(1, joined.ways[0].sent);
	TEST_ASSERT_TRUE(sim_way_out_is_awaited(joined.engines[0].sim));
	joined.ways[0].limit = 3;
	joined_settle(&joined, 20000);
	TEST_ASSERT_EQUAL_UINT(1, joined.ways[0].sent);
	sim_way_out_ready(joined.engines[0].sim);
	TEST_ASSERT_EQUAL_UINT(3, joined.ways[0].sent);
	joined.ways[0].stuck = false;
	joined_settle(&joined, SIM_NEVER - 1);
	expect(joined_side(&joined, 0)->send_cq, 0, IBV_WC_SUCCESS);
	TEST_ASSERT_EQUAL_UINT64(
		0, joined_side(&joined, 1)->device->counters.out_of_sequence_requests);
}

/* The filters act on packets that go beyond the engine, too. */
void test_filters_act_on_packets_that_go_beyond(void)
{
	const struct engine_frame *frame;
	struct joined_way *way;
	struct sim_way_out out;

	traced = true;
	open(&(struct engine_config){.no_timeout = true});
	way = &joined.ways[0];
	way->far = engine_gid(2);
	take_address(joined.engines[0].sides[1].device);
	add_rule((struct sim_fault_rule){.action = SIM_FAULT_DROP, .count = 1});
	add_rule((struct sim_fault_rule){.action = SIM_FAULT_DUPLICATE, .count = 1});
	add_rule((struct sim_fault_rule){.action = SIM_FAULT_DELAY, .count = 1, .delay_ns = 5000});
	joined_send(&joined, 0, (struct engine_send){.opcode = IBV_WR_RDMA_WRITE, .bytes = 700});
	joined_run(&joined);
	TEST_ASSERT_EQUAL_UINT(3, joined.engines[0].frame_count - 1);
	TEST_ASSERT_TRUE(joined.engines[0].frames[0].lost);
	TEST_ASSERT_EQUAL_UINT(2, way->far_frames);
	joined_settle(&joined, SIM_NEVER - 1);
	TEST_ASSERT_EQUAL_UINT(3, way->far_frames);
	TEST_ASSERT_EQUAL_UINT64(5000, joined.now_ns);
	TEST_ASSERT_EQUAL_UINT64(1, joined.engines[0].sides[0].device->counters.lost_packets);
	frame = engine_nth(&joined.engines[0], SIM_RC_WRITE_LAST, 0);
	TEST_ASSERT_EQUAL_size_t(frame->frame_bytes, way->far_frame.frame_bytes);
	/* Without the way, the packets are lost here. */
	out = *joined.engines[0].sim->net->way;
	sim_way_out_set(joined.engines[0].sim, NULL);
	take_address(joined.engines[0].sides[1].device);
	joined_send(&joined, 0, (struct engine_send){.opcode = IBV_WR_RDMA_WRITE, .bytes = 700});
	joined_run(&joined);
	TEST_ASSERT_EQUAL_UINT(3, way->far_frames);
	TEST_ASSERT_EQUAL_UINT64(4, joined.engines[0].sides[0].device->counters.lost_packets);
	sim_way_out_set(joined.engines[0].sim, &out);
	joined_send(&joined, 0, (struct engine_send){.opcode = IBV_WR_RDMA_WRITE, .bytes = 700});
	joined_run(&joined);
	TEST_ASSERT_EQUAL_UINT(6, way->far_frames);
}

/* A packet that nobody else looks at is encoded, as its delay needs. */
void test_a_delayed_packet_that_goes_beyond(void)
{
	struct joined_way *way;

	open(&(struct engine_config){.no_timeout = true});
	way = &joined.ways[0];
	way->far = engine_gid(2);
	take_address(joined.engines[0].sides[1].device);
	add_rule((struct sim_fault_rule){.action = SIM_FAULT_DELAY, .count = 1, .delay_ns = 5000});
	joined_send(&joined, 0, (struct engine_send){.opcode = IBV_WR_RDMA_WRITE, .bytes = 70});
	joined_run(&joined);
	TEST_ASSERT_EQUAL_UINT(0, way->far_frames);
	joined_settle(&joined, SIM_NEVER - 1);
	TEST_ASSERT_EQUAL_UINT(1, way->far_frames);
	TEST_ASSERT_TRUE(way->far_frame.frame_bytes > 70);
}

/* The way is taken away while a packet is delayed. */
void test_a_delayed_packet_without_its_way_is_lost(void)
{
	const struct sim_counters *counters;

	open(&(struct engine_config){.no_timeout = true});
	counters = &joined.engines[0].sides[0].device->counters;
	joined.ways[0].far = engine_gid(2);
	take_address(joined.engines[0].sides[1].device);
	add_rule((struct sim_fault_rule){.action = SIM_FAULT_DELAY, .count = 1, .delay_ns = 5000});
	joined_send(&joined, 0, (struct engine_send){.opcode = IBV_WR_RDMA_WRITE, .bytes = 70});
	joined_run(&joined);
	TEST_ASSERT_EQUAL_UINT64(0, counters->lost_packets);
	sim_way_out_set(joined.engines[0].sim, NULL);
	joined_settle(&joined, SIM_NEVER - 1);
	TEST_ASSERT_EQUAL_UINT64(1, counters->lost_packets);
	TEST_ASSERT_EQUAL_UINT(0, joined.ways[0].far_frames);
}

/* --- ports --- */

void test_a_frame_for_a_port_that_is_down_is_lost(void)
{
	struct engine_side *side;

	open(&(struct engine_config){0});
	side = joined_side(&joined, 1);
	sim_port_set_state(&side->device->ports[0], IBV_PORT_DOWN);
	joined_send(&joined, 0, (struct engine_send){.opcode = IBV_WR_RDMA_WRITE, .bytes = 9});
	joined_run(&joined);
	TEST_ASSERT_EQUAL_UINT64(0, side->device->counters.received_packets);
	sim_port_set_state(&side->device->ports[0], IBV_PORT_ACTIVE);
	joined_settle(&joined, SIM_NEVER - 1);
	expect(joined_side(&joined, 0)->send_cq, 0, IBV_WC_SUCCESS);
}

/* A way out that ends leaves the engine as one without: QPs that waited go on. */
void test_the_way_out_is_taken_away(void)
{
	struct engine_side *side;

	open_with_room(&(struct engine_config){.no_retry = true}, 0);
	side = joined_side(&joined, 0);
	joined_send(&joined, 0, (struct engine_send){.opcode = IBV_WR_RDMA_WRITE, .bytes = 9});
	joined_run(&joined);
	TEST_ASSERT_TRUE(sim_way_out_is_awaited(joined.engines[0].sim));
	sim_way_out_set(joined.engines[0].sim, NULL);
	TEST_ASSERT_FALSE(sim_way_out_is_awaited(joined.engines[0].sim));
	joined_settle(&joined, SIM_NEVER - 1);
	expect(side->send_cq, 0, IBV_WC_RETRY_EXC_ERR);
	TEST_ASSERT_EQUAL_UINT64(1, joined.engines[0].sides[1].device->counters.refused_packets);
}

static unsigned int lane_uses;

static unsigned int count_room(const struct sim_lane *lane)
{
	(void)lane;
	lane_uses++;
	return 0;
}

static bool count_packet(const struct sim_lane *lane, const struct sim_path *path,
			 const struct sim_packet *packet)
{
	(void)lane;
	(void)path;
	(void)packet;
	lane_uses++;
	return false;
}

/* Finds a lane that leaves all to the network. */
static bool find_lane(void *arg, const struct sim_path *path, uint32_t dest_qpn,
		      struct sim_lane *lane)
{
	static const struct sim_lane_ops ops = {.room = count_room, .send = count_packet};

	(void)arg;
	(void)path;
	(void)dest_qpn;
	*lane = (struct sim_lane){.ops = &ops};
	return true;
}

static void write_once(void)
{
	joined_send(&joined, 0, (struct engine_send){.opcode = IBV_WR_RDMA_WRITE, .bytes = 9});
	joined_settle(&joined, SIM_NEVER - 1);
	expect(joined_side(&joined, 0)->send_cq, 0, IBV_WC_SUCCESS);
}

/* The wire of the lane ends with the way out that has found it. */
void test_a_lane_ends_with_its_way_out(void)
{
	struct sim_way_out way;
	struct sim_engine *sim;

	open(&(struct engine_config){0});
	sim = joined.engines[0].sim;
	way = sim->net->given_way;
	way.lane = find_lane;
	lane_uses = 0;
	sim_way_out_set(sim, &way);
	write_once();
	write_once();
	TEST_ASSERT_TRUE(lane_uses > 0);
	way.lane = NULL;
	sim_way_out_set(sim, &way);
	lane_uses = 0;
	write_once();
	TEST_ASSERT_EQUAL_UINT(0, lane_uses);
}

/* --- groups --- */

static const union ibv_gid group = {.raw = {[10] = 0xff, 0xff, 239, [15] = 9}};

static struct sim_ah *group_ah(unsigned int engine)
{
	const struct ibv_ah_attr attr = engine_ah_attr(&group);
	struct sim_ah *ah;

	TEST_ASSERT_EQUAL_INT(0,
			      sim_ah_create(joined_side(&joined, engine)->device, 1, &attr, &ah));
	return ah;
}

static int send_to_group(struct engine_side *side, struct sim_ah *ah)
{
	struct ibv_sge sge = {(uintptr_t)side->memory, 33, side->mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_SIGNALED,
				 .wr.ud = {.ah = (struct ibv_ah *)(void *)ah,
					   .remote_qpn = 0xffffff,
					   .remote_qkey = ENGINE_QKEY}};
	struct ibv_send_wr *bad;

	return sim_qp_post_send(side->qp, &wr, &bad);
}

/* A datagram to a group reaches members of both engines, once each. */
static void send_to_both(void)
{
	struct engine_side *from, *to;
	struct sim_ah *ah;

	open(&(struct engine_config){.type = IBV_QPT_UD});
	from = joined_side(&joined, 0);
	to = joined_side(&joined, 1);
	ah = group_ah(0);
	fill(0);
	/* Nobody is in the group. */
	TEST_ASSERT_EQUAL_INT(0, send_to_group(from, ah));
	joined_run(&joined);
	TEST_ASSERT_EQUAL_UINT64(1, from->device->counters.lost_packets);
	TEST_ASSERT_EQUAL_UINT(0, joined.ways[0].sent);
	for (unsigned int i = 0; i < 2; i++) {
		TEST_ASSERT_EQUAL_INT(0,
				      sim_multicast_attach(joined_side(&joined, i)->qp, &group, 0));
		TEST_ASSERT_EQUAL_UINT32(1, joined.ways[i].memberships);
		for (uint64_t wr_id = 0; wr_id < 2; wr_id++)
			joined_recv(&joined, i, wr_id, 1000, 100);
	}
	TEST_ASSERT_EQUAL_INT(0, send_to_group(from, ah));
	joined_run(&joined);
	expect(from->recv_cq, 0, IBV_WC_SUCCESS);
	expect_empty(from->recv_cq);
	TEST_ASSERT_EQUAL_UINT32(from->qp->number, expect(to->recv_cq, 0, IBV_WC_SUCCESS).src_qp);
	expect_empty(to->recv_cq);
	TEST_ASSERT_EQUAL_MEMORY(from->memory, to->memory + 1040, 33);
	TEST_ASSERT_EQUAL_UINT64(1, from->device->counters.lost_packets);
	/* What comes from outside does not go out again: one frame for each port. */
	TEST_ASSERT_EQUAL_UINT(2, joined.ways[0].sent);
	TEST_ASSERT_EQUAL_UINT(0, joined.ways[1].sent);
	TEST_ASSERT_EQUAL_INT(0, sim_multicast_detach(from->qp, &group, 0));
	TEST_ASSERT_EQUAL_UINT32(0, joined.ways[0].memberships);
	sim_qp_destroy(to->qp);
	to->qp = NULL;
	TEST_ASSERT_EQUAL_UINT32(0, joined.ways[1].memberships);
	sim_ah_release(ah);
}

void test_groups(void)
{
	send_to_both();
	joined_close(&joined);
	traced = true;
	send_to_both();
}

/* A way that reaches a group gets one copy beside those of the adapters. */
void test_groups_beyond(void)
{
	struct engine_side *side;
	struct sim_ah *ah;

	open(&(struct engine_config){.type = IBV_QPT_UD});
	joined.ways[0].far = group;
	side = joined_side(&joined, 0);
	ah = group_ah(0);
	sim_multicast_attach(side->qp, &group, 0);
	joined_recv(&joined, 0, 7, 1000, 100);
	TEST_ASSERT_EQUAL_INT(0, send_to_group(side, ah));
	joined_run(&joined);
	expect(side->recv_cq, 7, IBV_WC_SUCCESS);
	TEST_ASSERT_EQUAL_UINT(1, joined.ways[0].far_frames);
	sim_ah_release(ah);
}

/* Sends a message from engine 0 to the group, which other machines have if `far`. Resets the counts first. */
static void send_one_to_group(bool far)
{
	struct engine_side *side = joined_side(&joined, 0);
	struct sim_ah *ah = group_ah(0);

	if (far)
		joined.ways[0].far = group;
	joined.ways[0].sent = joined.ways[0].far_frames = 0;
	side->device->counters.lost_packets = 0;
	TEST_ASSERT_EQUAL_INT(0, send_to_group(side, ah));
	joined_run(&joined);
	sim_ah_release(ah);
}

static void expect_copies(unsigned int sent, unsigned int far, unsigned int lost)
{
	TEST_ASSERT_EQUAL_UINT(sent, joined.ways[0].sent);
	TEST_ASSERT_EQUAL_UINT(far, joined.ways[0].far_frames);
	TEST_ASSERT_EQUAL_UINT64(lost, joined_side(&joined, 0)->device->counters.lost_packets);
}

/* A message that a member here has taken is not lost, and does not leave for engines without members. */
void test_a_group_with_members_here_only(void)
{
	struct engine_side *side;

	open(&(struct engine_config){.type = IBV_QPT_UD});
	side = joined_side(&joined, 0);
	sim_multicast_attach(side->qp, &group, 0);
	joined_recv(&joined, 0, 7, 1000, 100);
	send_one_to_group(false);
	expect(side->recv_cq, 7, IBV_WC_SUCCESS);
	expect_copies(0, 0, 0);
}

static bool send_in_no_case(void *arg, const struct sim_departure *departure)
{
	(void)arg;
	(void)departure;
	return false;
}

/* The message is lost if nobody gets it: neither a member nor another machine. */
void test_a_group_that_no_packet_gets_to(void)
{
	struct engine_side *side;
	struct sim_way_out way;

	open(&(struct engine_config){.type = IBV_QPT_UD});
	side = joined_side(&joined, 0);
	send_one_to_group(true);
	expect_copies(0, 1, 0);
	way = *joined.engines[0].sim->net->way;
	way.send = send_in_no_case;
	sim_way_out_set(joined.engines[0].sim, &way);
	send_one_to_group(true);
	expect_copies(0, 0, 1);
	/* A member here gets it. */
	sim_multicast_attach(side->qp, &group, 0);
	joined_recv(&joined, 0, 7, 1000, 100);
	send_one_to_group(true);
	expect(side->recv_cq, 7, IBV_WC_SUCCESS);
	expect_copies(0, 0, 0);
}

/* Another machine has got the message, and another engine has no room for it. */
void test_a_group_of_which_a_member_gets_nothing(void)
{
	open(&(struct engine_config){.type = IBV_QPT_UD});
	sim_multicast_attach(joined_side(&joined, 1)->qp, &group, 0);
	joined.ways[0].limit = 0;
	send_one_to_group(true);
	expect_copies(0, 1, 0);
	send_one_to_group(true);
	expect_copies(0, 1, 0);
}

/* A port that is down takes no message of a group, and sends none. */
void test_ports_of_a_group_that_are_down(void)
{
	struct engine_side *member, *side;
	struct engine *engine;

	open(&(struct engine_config){.type = IBV_QPT_UD});
	engine = &joined.engines[0];
	side = &engine->sides[0];
	member = &engine->sides[1];
	engine_connect_qp(engine, member->qp, 0, &side->gid, 0, 0);
	sim_multicast_attach(member->qp, &group, 0);
	engine_recv(engine, 1, 7, 1000, 100);
	engine_recv(engine, 1, 8, 1000, 100);
	sim_port_set_state(&member->device->ports[0], IBV_PORT_DOWN);
	for (unsigned int far = 0; far < 2; far++) {
		send_one_to_group(far);
		expect_empty(member->recv_cq);
		expect_copies(0, far, !far);
	}
	sim_port_set_state(&member->device->ports[0], IBV_PORT_ACTIVE);
	send_one_to_group(true);
	expect(member->recv_cq, 7, IBV_WC_SUCCESS);
	expect_copies(0, 1, 0);
	sim_port_set_state(&side->device->ports[0], IBV_PORT_DOWN);
	send_one_to_group(true);
	expect_empty(member->recv_cq);
	expect_copies(0, 0, 1);
	sim_port_set_state(&side->device->ports[0], IBV_PORT_ACTIVE);
	send_one_to_group(true);
	expect(member->recv_cq, 8, IBV_WC_SUCCESS);
}

static int send_to_qpn(struct engine_side *side, struct sim_ah *ah, uint32_t qpn)
{
	struct ibv_sge sge = {(uintptr_t)side->memory, 33, side->mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND,
				 .wr.ud = {.ah = (struct ibv_ah *)(void *)ah,
					   .remote_qpn = qpn,
					   .remote_qkey = ENGINE_QKEY}};
	struct ibv_send_wr *bad;

	return sim_qp_post_send(side->qp, &wr, &bad);
}

/* No QP has the QPN of groups, 0xffffff, at the address of a port, in this engine or another one. */
void test_the_qpn_of_groups_at_an_address(void)
{
	struct ibv_ah_attr attr;
	struct engine_side *side;
	struct sim_ah *ah;

	open(&(struct engine_config){.type = IBV_QPT_UD});
	side = joined_side(&joined, 0);
	attr = engine_ah_attr(&joined.engines[0].sides[1].gid);
	TEST_ASSERT_EQUAL_INT(0, sim_ah_create(side->device, 1, &attr, &ah));
	sim_multicast_attach(joined_side(&joined, 1)->qp, &group, 0);
	joined_recv(&joined, 1, 7, 1000, 100);
	TEST_ASSERT_EQUAL_INT(0, send_to_qpn(side, ah, 0xffffff));
	joined_run(&joined);
	expect_copies(0, 0, 0);
	TEST_ASSERT_EQUAL_UINT64(1, joined.engines[0].sides[1].device->counters.refused_packets);
	TEST_ASSERT_EQUAL_INT(0, send_to_qpn(side, ah, joined_side(&joined, 1)->qp->number));
	joined_run(&joined);
	expect(joined_side(&joined, 1)->recv_cq, 7, IBV_WC_SUCCESS);
	expect_copies(1, 0, 0);
	sim_ah_release(ah);
}

/* The child of a fork() gets a way out of its own, which learns of the memberships that there are. */
void test_a_new_way_out_learns_of_memberships(void)
{
	struct sim_way_out way;

	open(&(struct engine_config){.type = IBV_QPT_UD});
	sim_multicast_attach(joined_side(&joined, 0)->qp, &group, 0);
	way = *joined.engines[0].sim->net->way;
	joined.ways[0].memberships = 0;
	sim_way_out_set(joined.engines[0].sim, &way);
	TEST_ASSERT_EQUAL_UINT32(1, joined.ways[0].memberships);
}

static void expect_joined(unsigned int in, unsigned int out, const union ibv_gid *last)
{
	TEST_ASSERT_EQUAL_UINT(in, joined.ways[0].groups_joined);
	TEST_ASSERT_EQUAL_UINT(out, joined.ways[0].groups_left);
	TEST_ASSERT_EQUAL_MEMORY(last, &joined.ways[0].last_group, sizeof(*last));
}

/* The way out joins with a device's first QP and leaves with the last one. */
void test_a_way_out_joins_each_group_once(void)
{
	struct sim_qp_init init = {.type = IBV_QPT_UD, .pd = 1};
	union ibv_gid other = group;
	struct engine *engine;
	struct sim_qp *first, *second;

	other.raw[15] ^= 1;
	open(&(struct engine_config){.type = IBV_QPT_UD});
	engine = &joined.engines[0];
	first = engine->sides[0].qp;
	init.send_cq = init.recv_cq = engine->sides[0].send_cq;
	TEST_ASSERT_EQUAL_INT(0, sim_qp_create(engine->sides[0].device, &init, &second));
	sim_multicast_attach(first, &group, 0);
	sim_multicast_attach(first, &group, 0);
	sim_multicast_attach(second, &group, 0);
	expect_joined(1, 0, &group);
	sim_multicast_attach(second, &other, 0);
	expect_joined(2, 0, &other);
	/* Another device has memberships of its own. */
	sim_multicast_attach(engine->sides[1].qp, &group, 0);
	expect_joined(3, 0, &group);
	sim_multicast_detach(first, &group, 0);
	expect_joined(3, 0, &group);
	sim_multicast_detach(second, &group, 0);
	expect_joined(3, 1, &group);
	sim_qp_destroy(second);
	expect_joined(3, 2, &other);
	sim_multicast_attach(first, &other, 0);
	expect_joined(4, 2, &other);
}

void test_a_group_that_the_way_out_cannot_join(void)
{
	struct engine_side *side;
	struct vb_why why;

	open(&(struct engine_config){.type = IBV_QPT_UD});
	side = joined_side(&joined, 0);
	joined.ways[0].join_error = ENOBUFS;
	TEST_ASSERT_EQUAL_INT(ENOBUFS, sim_multicast_attach(side->qp, &group, 0));
	TEST_ASSERT_TRUE(sim_take_refusal(joined.engines[0].sim, ENOBUFS, &why));
	TEST_ASSERT_EQUAL_INT(VB_WHY_SYSTEM_CALL, why.reason);
	TEST_ASSERT_EQUAL_UINT64(ENOBUFS, why.values[0]);
	TEST_ASSERT_EQUAL_STRING("join()", why.text);
	TEST_ASSERT_FALSE(sim_multicast_has(side->qp));
	TEST_ASSERT_EQUAL_UINT32(0, joined.ways[0].memberships);
	TEST_ASSERT_EQUAL_UINT(0, side->device->group_count);
	joined.ways[0].join_error = 0;
	TEST_ASSERT_EQUAL_INT(0, sim_multicast_attach(side->qp, &group, 0));
	expect_joined(1, 0, &group);
	/* The reason of a call of the system is that of its own errno value only. */
	sim_refuse_system(joined.engines[0].sim, ENOBUFS, "join()");
	TEST_ASSERT_FALSE(sim_take_refusal(joined.engines[0].sim, ENOMEM, &why));
}

/* --- XRC --- */

void test_xrc(void)
{
	struct engine_side *from, *to;
	struct sim_qp *qps[2];
	struct sim_xrcd *xrcd;
	struct sim_srq *srq;
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_SEND, .num_sge = 1, .send_flags = IBV_SEND_SIGNALED};
	struct ibv_send_wr *bad;
	struct ibv_sge sge;

	open(&(struct engine_config){0});
	from = joined_side(&joined, 0);
	to = joined_side(&joined, 1);
	TEST_ASSERT_EQUAL_INT(0, sim_xrcd_create(to->device, &xrcd));
	srq = make_srq(xrcd);
	for (unsigned int i = 0; i < 2; i++) {
		struct engine_side *side = i ? to : from;
		struct sim_qp_init init = {.type = i ? IBV_QPT_XRC_RECV : IBV_QPT_XRC_SEND,
					   .pd = i ? 0 : 1,
					   .xrcd = i ? xrcd : NULL,
					   .send_cq = i ? NULL : side->send_cq,
					   .cap = {.max_send_wr = 4, .max_send_sge = 1}};

		sim_qp_destroy(side->qp);
		side->qp = NULL;
		TEST_ASSERT_EQUAL_INT(0, sim_qp_create(side->device, &init, &qps[i]));
	}
	joined_connect(&joined, qps);
	fill(0);
	sge = (struct ibv_sge){(uintptr_t)from->memory, 450, from->mr->lkey};
	wr.sg_list = &sge;
	wr.qp_type.xrc.remote_srqn = srq->number;
	TEST_ASSERT_EQUAL_INT(0, sim_qp_post_send(qps[0], &wr, &bad));
	joined_settle(&joined, SIM_NEVER - 1);
	expect(from->send_cq, 0, IBV_WC_SUCCESS);
	expect(to->recv_cq, 8, IBV_WC_SUCCESS);
	TEST_ASSERT_EQUAL_MEMORY(from->memory, to->memory, 450);
	for (unsigned int i = 0; i < 2; i++)
		sim_qp_destroy(qps[i]);
	TEST_ASSERT_EQUAL_INT(0, sim_srq_destroy(srq));
	TEST_ASSERT_EQUAL_INT(0, sim_xrcd_destroy(xrcd));
}

/* --- packets without their network headers --- */

/* Sends a message of 100 bytes, and takes its frame out of the ring. Returns the bytes from the BTH to the pad. */
static const uint8_t *take_bare(struct sim_inlet *inlet, size_t *length)
{
	struct joined_way *way = &joined.ways[0];
	const struct joined_frame *frame = &way->frames[way->tail % JOINED_RING];
	const bool infiniband = sim_port_is_infiniband(&joined_side(&joined, 1)->device->ports[0]);
	size_t head_bytes;

	*inlet = (struct sim_inlet){0};
	way->stuck = true;
	joined_recv(&joined, 1, 5, 1000, 100);
	joined_send(&joined, 0, (struct engine_send){.opcode = IBV_WR_SEND, .bytes = 100});
	joined_run(&joined);
	TEST_ASSERT_EQUAL_UINT(1, way->head - way->tail);
	way->tail++;
	TEST_ASSERT_EQUAL_INT(SIM_DECODE_OK, sim_route_read(frame->frame, frame->frame_bytes,
							    infiniband, &inlet->route));
	head_bytes = sim_route_bytes(&inlet->route);
	*length = frame->frame_bytes - head_bytes - (infiniband ? 6 : 4);
	return frame->frame + head_bytes;
}

static void change_dest(struct sim_route *route)
{
	route->dest_gid[15] ^= 0x55;
	route->dlid ^= 0x55;
}

/* No packet has so many bytes. The frame is refused, and its bytes are not copied. */
void test_a_frame_that_is_too_long(void)
{
	static uint8_t frame[4 * SIM_FRAME_BYTES_MAX];
	struct sim_port *port;

	open(&(struct engine_config){0});
	port = &joined_side(&joined, 1)->device->ports[0];
	sim_way_out_arrive(port, frame, sizeof(frame), false, 0);
	TEST_ASSERT_EQUAL_UINT64(1, port->device->counters.received_packets);
	TEST_ASSERT_EQUAL_UINT64(1, port->device->counters.refused_packets);
}

/* The route of a ring may be that of an address which the port has no more. */
void test_a_bare_packet_comes_to_the_address_of_its_route(void)
{
	for (unsigned int i = 0; i < 2; i++) {
		const struct sim_counters *counters;
		struct sim_inlet good, bad;
		struct sim_port *port;
		const uint8_t *bytes;
		size_t length;

		open(&(struct engine_config){.no_timeout = true, .infiniband = i});
		fill(0);
		port = &joined_side(&joined, 1)->device->ports[0];
		counters = &port->device->counters;
		bytes = take_bare(&good, &length);
		bad = good;
		change_dest(&bad.route);
		sim_way_out_arrive_bare(port, &bad, bytes, length);
		TEST_ASSERT_EQUAL_UINT64(1, counters->discarded[SIM_DISCARD_ADDRESS]);
		/* A route of the other link layer. */
		bad = good;
		bad.route.infiniband = !good.route.infiniband;
		bad.route.dlid = port->lid;
		sim_way_out_arrive_bare(port, &bad, bytes, length);
		TEST_ASSERT_EQUAL_UINT64(2, counters->discarded[SIM_DISCARD_ADDRESS]);
		expect_empty(joined_side(&joined, 1)->recv_cq);
		sim_way_out_arrive_bare(port, &good, bytes, length);
		expect(joined_side(&joined, 1)->recv_cq, 5, IBV_WC_SUCCESS);
		TEST_ASSERT_EQUAL_MEMORY(joined_side(&joined, 0)->memory,
					 joined_side(&joined, 1)->memory + 1000, 100);
		TEST_ASSERT_EQUAL_UINT64(3, counters->received_packets);
		joined_close(&joined);
	}
}

void test_a_port_that_is_down_takes_no_bare_packet(void)
{
	struct sim_inlet inlet;
	struct sim_port *port;
	const uint8_t *bytes;
	size_t length;

	open(&(struct engine_config){.no_timeout = true});
	port = &joined_side(&joined, 1)->device->ports[0];
	bytes = take_bare(&inlet, &length);
	sim_port_set_state(port, IBV_PORT_DOWN);
	sim_way_out_arrive_bare(port, &inlet, bytes, length);
	TEST_ASSERT_EQUAL_UINT64(0, port->device->counters.received_packets);
	expect_empty(joined_side(&joined, 1)->recv_cq);
	sim_port_set_state(port, IBV_PORT_ACTIVE);
	sim_way_out_arrive_bare(port, &inlet, bytes, length);
	expect(joined_side(&joined, 1)->recv_cq, 5, IBV_WC_SUCCESS);
}

static int copy_nothing(void *dst, const void *src, size_t length_bytes)
{
	(void)dst;
	(void)src;
	(void)length_bytes;
	return 1;
}

/* The memory of the payload is gone: the packet is not sent, and counted. */
void test_a_bare_packet_whose_payload_cannot_be_read(void)
{
	static const uint8_t gone[100];
	const struct sim_span span = {gone, sizeof(gone)};
	const struct sim_packet packet = {
		.opcode = 4, .spans = &span, .span_count = 1, .payload_bytes = 100};
	struct sim_departure departure = {.packet = &packet, .copy = copy_nothing};
	uint8_t room[SIM_FRAME_BYTES_MAX];

	open(&(struct engine_config){0});
	departure.source = &joined_side(&joined, 0)->device->ports[0];
	TEST_ASSERT_EQUAL_UINT(0, sim_departure_write_bare(&departure, room));
	TEST_ASSERT_EQUAL_UINT64(1, departure.source->device->counters.guarded_faults);
}
