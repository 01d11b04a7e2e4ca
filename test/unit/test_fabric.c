/* SPDX-License-Identifier: MIT */
#include "test/support/engine.h"
#include "unity.h"

#include <errno.h>

static struct engine engine;

void setUp(void)
{
	engine_open(&engine, &(struct engine_config){0});
}

void tearDown(void)
{
	engine_close(&engine);
}

static void again(const struct engine_config *config)
{
	engine_close(&engine);
	engine_open(&engine, config);
}

static void write_bytes(uint32_t bytes)
{
	const struct engine_send send = {.opcode = IBV_WR_RDMA_WRITE, .bytes = bytes};

	TEST_ASSERT_EQUAL_INT(0, engine_send(&engine, 0, &send));
	sim_world_run(engine.world);
}

static void expect(enum ibv_wc_status status)
{
	struct ibv_wc wc;

	TEST_ASSERT_TRUE_MESSAGE(engine_poll(engine.sides[0].send_cq, &wc), "no completion");
	TEST_ASSERT_EQUAL_INT(status, wc.status);
}

static void expect_none(void)
{
	struct ibv_wc wc;

	TEST_ASSERT_FALSE(engine_poll(engine.sides[0].send_cq, &wc));
}

void test_link_without_delay_needs_no_time(void)
{
	write_bytes(100);
	expect(IBV_WC_SUCCESS);
	TEST_ASSERT_EQUAL_UINT64(0, engine.world->clock.now_ns);
}

void test_delay_is_paid_each_way(void)
{
	again(&(struct engine_config){.delay_ns = 1500});
	write_bytes(100);
	TEST_ASSERT_EQUAL_UINT64(1500, sim_world_next_ns(engine.world));
	sim_world_advance(engine.world, 2999);
	expect_none();
	sim_world_advance(engine.world, 3000);
	expect(IBV_WC_SUCCESS);
	/* The trace shows when a packet is sent. */
	TEST_ASSERT_EQUAL_UINT64(0, engine.frames[0].now_ns);
	TEST_ASSERT_EQUAL_UINT64(1500, engine.frames[1].now_ns);
}

/* At 8 Gb/s a byte is a nanosecond: a packet takes as long as its frame, and the next waits. */
void test_rate_is_that_of_the_frames(void)
{
	uint64_t bytes;

	again(&(struct engine_config){.bits_per_second = UINT64_C(8000000000)});
	write_bytes(256 * 3);
	bytes = engine.frames[0].frame_bytes + engine.frames[1].frame_bytes +
		engine.frames[2].frame_bytes;
	/* WRITE First has a RETH of 16 bytes: 14 + 20 + 8 + 12 + 16 + 256 + 4 */
	TEST_ASSERT_EQUAL_size_t(330, engine.frames[0].frame_bytes);
	TEST_ASSERT_EQUAL_UINT64(330, sim_world_next_ns(engine.world));
	sim_world_advance(engine.world, bytes - 1);
	TEST_ASSERT_EQUAL_UINT64(2, engine.sides[1].device->counters.received_packets);
	sim_world_advance(engine.world, bytes);
	TEST_ASSERT_EQUAL_UINT64(3, engine.sides[1].device->counters.received_packets);
	TEST_ASSERT_EQUAL_size_t(62, engine.frames[3].frame_bytes);
	sim_world_advance(engine.world, bytes + 62);
	expect(IBV_WC_SUCCESS);
}

/* The link is free again when it has been idle: time is not owed. */
void test_idle_link_has_no_backlog(void)
{
	again(&(struct engine_config){.bits_per_second = UINT64_C(8000000000), .delay_ns = 10});
	write_bytes(256);
	engine_settle(&engine, SIM_NEVER - 1);
	expect(IBV_WC_SUCCESS);
	sim_world_advance(engine.world, 100000);
	write_bytes(256);
	TEST_ASSERT_EQUAL_UINT64(100000 + 330 + 10, sim_world_next_ns(engine.world));
}

void test_flights_are_used_again(void)
{
	struct sim_flight *spare;

	again(&(struct engine_config){.delay_ns = 100});
	write_bytes(256 * 4);
	engine_settle(&engine, SIM_NEVER - 1);
	spare = engine.world->fabric.spare;
	TEST_ASSERT_NOT_NULL(spare);
	for (unsigned int i = 0; i < 50; i++) {
		uint32_t reserved = engine.world->clock.reserved;

		write_bytes(256 * 4);
		engine_settle(&engine, SIM_NEVER - 1);
		TEST_ASSERT_EQUAL_UINT32(reserved, engine.world->clock.reserved);
	}
}

/* The packet under way has no QP to come to; nothing is touched that is gone. */
void test_qp_that_ends_before_its_packet_comes(void)
{
	again(&(struct engine_config){.delay_ns = 100, .no_retry = true});
	write_bytes(10);
	sim_qp_destroy(engine.sides[1].qp);
	engine.sides[1].qp = NULL;
	engine_settle(&engine, 1000);
	TEST_ASSERT_EQUAL_UINT64(1, engine.sides[1].device->counters.dropped_packets);
	engine_settle(&engine, SIM_NEVER - 1);
	expect(IBV_WC_RETRY_EXC_ERR);
}

/* Where any link is given, only what is joined is reached. */
void test_devices_that_are_not_joined(void)
{
	const union ibv_gid gid = engine_gid(9);
	struct sim_device *third;

	engine_close(&engine);
	engine_open(&engine, &(struct engine_config){.delay_ns = 1});
	third = engine_add_device(&engine, "third", 1, &gid);
	TEST_ASSERT_NULL(
		sim_fabric_link(engine.world, &engine.sides[0].device->ports[0], &third->ports[0]));
	TEST_ASSERT_NOT_NULL(sim_fabric_link(engine.world, &third->ports[0], &third->ports[0]));
	TEST_ASSERT_EQUAL_INT(EEXIST, sim_fabric_join(engine.world, engine.sides[1].device,
						      engine.sides[0].device, 0, 0));
	TEST_ASSERT_EQUAL_INT(0,
			      sim_fabric_join(engine.world, engine.sides[0].device, third, 5, 0));
	TEST_ASSERT_EQUAL_UINT64(5, sim_fabric_link(engine.world, &third->ports[0],
						    &engine.sides[0].device->ports[0])
					    ->delay_ns);
}

/* A packet to nobody is in the trace, marked as lost, and counted. */
void test_lost_packets_are_shown_and_marked(void)
{
	const union ibv_gid nobody = engine_gid(77);

	again(&(struct engine_config){.peer = true, .no_retry = true});
	sim_qp_reset(engine.sides[0].qp);
	engine.sides[0].qp->state = IBV_QPS_RESET;
	engine_connect_qp(&engine, engine.sides[0].qp, 99, &nobody, 1, 1);
	TEST_ASSERT_EQUAL_INT(
		0,
		engine_send(&engine, 0, &(struct engine_send){.opcode = IBV_WR_SEND, .rkey = 1}));
	engine_settle(&engine, SIM_NEVER - 1);
	TEST_ASSERT_EQUAL_UINT(1, engine.frame_count);
	TEST_ASSERT_TRUE(engine.frames[0].lost);
	TEST_ASSERT_EQUAL_UINT64(1, engine.sides[0].device->counters.lost_packets);
	expect(IBV_WC_RETRY_EXC_ERR);
}

struct tap {
	unsigned int frames;
	size_t bytes;
};

static void count_frame(void *arg, uint64_t now_ns, const uint8_t *frame, size_t length_bytes)
{
	struct tap *tap = arg;

	(void)now_ns;
	(void)frame;
	tap->frames++;
	tap->bytes += length_bytes;
}

void test_both_sinks_see_every_frame_once(void)
{
	struct tap tap = {0};
	const struct sim_trace_sink sink = {&tap, count_frame};

	sim_fabric_sink(engine.world, 1, &sink);
	write_bytes(1000);
	TEST_ASSERT_EQUAL_UINT(5, engine.frame_count);
	TEST_ASSERT_EQUAL_UINT(5, tap.frames);
	TEST_ASSERT_EQUAL_UINT64(4, engine.sides[0].device->counters.sent_packets);
	TEST_ASSERT_EQUAL_UINT64(1, engine.sides[1].device->counters.sent_packets);
	for (unsigned int i = 0; i < 5; i++)
		TEST_ASSERT_EQUAL_INT(SIM_DECODE_OK, engine.frames[i].decoded);
	sim_fabric_sink(engine.world, 1, NULL);
	write_bytes(10);
	TEST_ASSERT_EQUAL_UINT(5, tap.frames);
	TEST_ASSERT_EQUAL_UINT(7, engine.frame_count);
}

/* What nobody watches is the same as what is watched: counters, completions, bytes. */
void test_watching_changes_nothing(void)
{
	struct sim_counters counters[2][2];

	for (unsigned int quiet = 0; quiet < 2; quiet++) {
		again(&(struct engine_config){.quiet = quiet});
		for (unsigned int i = 0; i < 5; i++) {
			const struct engine_send read = {.opcode = IBV_WR_RDMA_READ, .bytes = 700};

			write_bytes(1000 + i);
			TEST_ASSERT_EQUAL_INT(0, engine_send(&engine, 0, &read));
			sim_world_run(engine.world);
			expect(IBV_WC_SUCCESS);
			expect(IBV_WC_SUCCESS);
		}
		for (unsigned int i = 0; i < 2; i++)
			counters[quiet][i] = engine.sides[i].device->counters;
	}
	TEST_ASSERT_EQUAL_MEMORY(counters[0], counters[1], sizeof(counters[0]));
}

/* What was learnt of the peer while nobody watched ends with what it was learnt from. */
static void to_state(struct sim_qp *qp, enum ibv_qp_state state)
{
	const struct ibv_qp_attr attr = {.qp_state = state};

	TEST_ASSERT_EQUAL_INT(0, sim_qp_modify(qp, &attr, IBV_QP_STATE));
}

void test_peer_that_changes_under_a_quiet_connection(void)
{
	for (unsigned int i = 0; i < 4; i++) {
		struct sim_qp *peer;

		again(&(struct engine_config){.quiet = true, .no_retry = true});
		write_bytes(10);
		expect(IBV_WC_SUCCESS);
		peer = engine.sides[1].qp;
		if (i == 0) {
			to_state(peer, IBV_QPS_ERR);
		} else if (i == 1) {
			to_state(peer, IBV_QPS_RESET);
		} else if (i == 2) {
			sim_qp_destroy(peer);
			engine.sides[1].qp = NULL;
		} else {
			sim_qp_fail(peer);
		}
		sim_world_run(engine.world);
		memset(engine.sides[0].memory, 0x77, 10);
		TEST_ASSERT_EQUAL_INT(0,
				      engine_send(&engine, 0,
						  &(struct engine_send){.opcode = IBV_WR_RDMA_WRITE,
									.bytes = 10}));
		engine_settle(&engine, SIM_NEVER - 1);
		expect(IBV_WC_RETRY_EXC_ERR);
		TEST_ASSERT_EQUAL_HEX8(0, engine.sides[1].memory[0]);
		TEST_ASSERT_EQUAL_UINT64(1, engine.sides[1].device->counters.dropped_packets);
	}
}

void test_rule_that_comes_to_a_quiet_connection_bites(void)
{
	const struct sim_fault_rule rule = {.action = SIM_FAULT_DROP, .count = 1};
	unsigned int id;

	again(&(struct engine_config){.quiet = true});
	write_bytes(10);
	expect(IBV_WC_SUCCESS);
	TEST_ASSERT_EQUAL_INT(0, sim_fault_add(engine.world, &rule, &id));
	write_bytes(10);
	expect_none();
	TEST_ASSERT_EQUAL_UINT64(1, sim_fault_hits(engine.world, id));
	sim_fault_clear(engine.world);
	engine_settle(&engine, SIM_NEVER - 1);
	expect(IBV_WC_SUCCESS);
}

/* Only the other end of the connection is heard. */
void test_strangers_are_dropped(void)
{
	struct sim_packet packet;

	again(&(struct engine_config){.peer = true});
	for (unsigned int i = 0; i < 4; i++) {
		packet = engine_packet(&engine, SIM_RC_WRITE_ONLY, ENGINE_PSN);
		if (i == 0)
			packet.source_qpn ^= 1;
		else if (i == 1)
			packet.pkey = 0x1234;
		else if (i == 2)
			packet.opcode |= SIM_TRANSPORT_UC;
		else
			packet.dest_qpn ^= 1 << 20;
		sim_fabric_send(engine.world, &engine.sides[1].ah->path, &packet);
		sim_world_run(engine.world);
	}
	packet = engine_packet(&engine, SIM_RC_WRITE_ONLY, ENGINE_PSN);
	sim_fabric_send(engine.world, &engine.sides[0].ah->path, &packet); /* the wrong device */
	TEST_ASSERT_EQUAL_UINT64(4, engine.sides[0].device->counters.dropped_packets);
	TEST_ASSERT_EQUAL_HEX32(ENGINE_PSN, engine.sides[0].qp->resp.psn);
	packet = engine_packet(&engine, SIM_RC_WRITE_ONLY, ENGINE_PSN);
	sim_fabric_send(engine.world, &engine.sides[1].ah->path, &packet);
	TEST_ASSERT_EQUAL_HEX32(ENGINE_PSN + 1, engine.sides[0].qp->resp.psn);
}
