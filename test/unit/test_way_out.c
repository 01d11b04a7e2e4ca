/* SPDX-License-Identifier: MIT */
/* Two engines with the same devices, as two processes have them: packets leave by the way out. */
#include "test/support/joined.h"
#include "unity.h"

#include <string.h>

static struct joined joined;

void setUp(void)
{
}

void tearDown(void)
{
	joined_close(&joined);
}

static void open(const struct engine_config *config)
{
	joined_open(&joined, config, JOINED_RING);
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

void test_write_and_read_of_many_packets(void)
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

/* Both directions of rings that hold few frames are full at the same time; nothing is lost. */
void test_full_rings_lose_nothing(void)
{
	static const unsigned int rooms[] = {1, 2, 3, 7, 64};

	for (unsigned int i = 0; i < sizeof(rooms) / sizeof(rooms[0]); i++) {
		joined_open(&joined, &(struct engine_config){.reads = 8}, rooms[i]);
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

	joined_open(&joined, &(struct engine_config){.retry_cnt = 3}, 4);
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

/* A QP that has sent nothing yet waits as long as there is no room; flushing needs no room. */
void test_a_qp_that_waits_is_flushed(void)
{
	const struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};
	struct engine_side *side;

	joined_open(&joined, &(struct engine_config){0}, 0);
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

		joined_open(&joined, &(struct engine_config){0}, 0);
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
