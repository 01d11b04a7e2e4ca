/* SPDX-License-Identifier: MIT */
/*
 * Frames that come from outside are untrusted: noise, and frames of real traffic in which bits and lengths
 * have changed, come to ports of an engine. The engine may answer, drop or fail a QP, but must not crash,
 * hang or lose a WR. VERBENA_FUZZ_SEED sets the first seed. The test finds most under AddressSanitizer and
 * UBSan.
 */
#include "test/support/engine.h"
#include "test/support/joined.h"
#include "test/unit/seed.h"
#include "unity.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define CONNECTIONS 60u
#define STEPS	    150u /* for each connection */
#define SECONDS_MAX 60u
#define NOISE	    20000u

static struct joined joined;
static uint64_t random_state;
static unsigned int accepted; /* changed frames that a QP has taken */

static struct {
	uint64_t sends, send_ends, recvs, recv_ends;
} tallies[2];

void setUp(void)
{
	const char *text = getenv("VERBENA_FUZZ_SEED");

	run_seed(text ? strtoull(text, NULL, 0) : 1);
	random_state = running_seed;
	printf("fuzz: first seed %llu\n", (unsigned long long)running_seed);
	accepted = 0;
	signal(SIGALRM, on_alarm);
	alarm(SECONDS_MAX);
}

void tearDown(void)
{
	alarm(0);
	joined_close(&joined);
}

static uint32_t pick(uint32_t below)
{
	return (uint32_t)(engine_random(&random_state) % below);
}

/* Lets a frame arrive without its network headers and checksums. Returns false if it has none. */
static bool arrive_bare(struct sim_port *port, const uint8_t *frame, size_t frame_bytes)
{
	const size_t end_bytes = sim_port_is_infiniband(port) ? 6 : 4;
	static uint8_t head[SIM_FRAME_BYTES_MAX]; /* that of the inlet */
	static struct sim_inlet inlet;
	struct sim_route route;
	size_t head_bytes, length;
	uint8_t *block;

	if (sim_route_read(frame, frame_bytes, sim_port_is_infiniband(port), &route) !=
	    SIM_DECODE_OK)
		return false;
	head_bytes = sim_route_bytes(&route);
	if (frame_bytes < head_bytes + end_bytes)
		return false;
	length = frame_bytes - head_bytes - end_bytes;
	block = malloc(length ? length : 1);
	memcpy(block, frame + head_bytes, length);
	if (memcmp(head, frame, head_bytes) != 0)
		inlet = (struct sim_inlet){.route = route};
	memcpy(head, frame, head_bytes);
	sim_way_out_arrive_bare(port, &inlet, block, length);
	free(block);
	return true;
}

/* A frame arrives in a block of its size, so that AddressSanitizer sees a read beyond it. */
static void arrive(unsigned int engine, const uint8_t *frame, size_t frame_bytes, bool checked)
{
	struct sim_device *device = joined_side(&joined, engine)->device;
	uint8_t *block;

	if (checked && pick(2) && arrive_bare(&device->ports[0], frame, frame_bytes))
		return;
	block = malloc(frame_bytes ? frame_bytes : 1);
	memcpy(block, frame, frame_bytes);
	sim_way_out_arrive(&device->ports[0], block, frame_bytes, checked, 0);
	free(block);
}

/* The same for a train. */
static void arrive_train(unsigned int engine, const struct joined_frame *frame,
			 const uint8_t *bytes, size_t length)
{
	struct sim_device *device = joined_side(&joined, engine)->device;
	struct sim_inlet inlet = {.route = frame->route};
	unsigned int count = frame->train_packets;
	uint8_t *block = malloc(length ? length : 1);

	if (pick(3) == 0)
		count = pick(pick(2) ? 10 : UINT32_MAX);
	memcpy(block, bytes, length);
	/* The QP of a new inlet takes the packets one by one. */
	for (unsigned int i = pick(3); i; i--)
		sim_way_out_arrive_train(&device->ports[0], &inlet, block, length, count);
	free(block);
}

static void open(enum ibv_qp_type type)
{
	const unsigned int layer = pick(3);

	joined_open(&joined,
		    &(struct engine_config){.type = type,
					    .quiet = pick(2),
					    .infiniband = layer > 0,
					    .grh = layer > 1,
					    .rnr_retry = (uint8_t)pick(8),
					    .timeout = 8},
		    1 + pick(64));
	if (pick(2))
		joined_carry_trains(&joined, 256 * pick(6));
	memset(tallies, 0, sizeof(tallies));
}

static void post(unsigned int i)
{
	static const enum ibv_wr_opcode opcodes[] = {
		IBV_WR_SEND,	  IBV_WR_SEND_WITH_IMM,	       IBV_WR_RDMA_WRITE,
		IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_CMP_AND_SWP,
	};
	/* What the QP's type has, but for few. */
	static const uint32_t known[] = {[IBV_QPT_RC] = 6, [IBV_QPT_UC] = 3, [IBV_QPT_UD] = 2};
	const enum ibv_qp_type type = joined_side(&joined, i)->qp->type;
	const enum ibv_wr_opcode opcode = opcodes[pick(pick(100) ? known[type] : 6)];
	const bool atomic =
		opcode >= IBV_WR_ATOMIC_CMP_AND_SWP && opcode <= IBV_WR_ATOMIC_FETCH_AND_ADD;
	const struct engine_send send = {.opcode = opcode,
					 .wr_id = tallies[i].sends,
					 .bytes = atomic ? 8 : pick(pick(2) ? 200 : 1500)};

	if (pick(2))
		tallies[i].recvs += joined_recv(&joined, i, tallies[i].recvs, 8192 + pick(1000),
						pick(1600)) == 0;
	else
		tallies[i].sends += joined_send(&joined, i, send) == 0;
}

static void poll_all(void)
{
	struct ibv_wc wc;

	for (unsigned int i = 0; i < 2; i++) {
		while (engine_poll(joined_side(&joined, i)->send_cq, &wc))
			TEST_ASSERT_EQUAL_UINT64(tallies[i].send_ends++, wc.wr_id);
		while (engine_poll(joined_side(&joined, i)->recv_cq, &wc))
			TEST_ASSERT_EQUAL_UINT64(tallies[i].recv_ends++, wc.wr_id);
	}
}

/* Changes a frame of the ring and lets the frame arrive. */
static void change_and_arrive(unsigned int from)
{
	const struct joined_way *way = &joined.ways[from];
	const struct joined_frame *frame = &way->frames[way->tail % JOINED_RING];
	const struct sim_counters *counters = &joined_side(&joined, !from)->device->counters;
	const uint64_t dropped = counters->dropped_packets;
	uint8_t copy[SIM_FRAME_BYTES_MAX + 64] = {0};
	size_t frame_bytes = frame->frame_bytes;

	memcpy(copy, frame->train_packets ? frame->train : frame->frame, frame_bytes);
	for (unsigned int flips = pick(5); flips; flips--)
		copy[pick(pick(2) ? (uint32_t)frame_bytes : 90)] ^= (uint8_t)(1u << pick(8));
	if (pick(6) == 0)
		frame_bytes = pick((uint32_t)frame_bytes + 1);
	else if (pick(20) == 0)
		frame_bytes = frame_bytes + pick((uint32_t)(sizeof(copy) - frame_bytes));
	if (frame->train_packets)
		arrive_train(!from, frame, copy, frame_bytes);
	else
		arrive(!from, copy, frame_bytes, pick(4));
	accepted += counters->dropped_packets == dropped;
}

static void torment(enum ibv_qp_type type)
{
	const struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};

	open(type);
	for (unsigned int step = 0; step < STEPS; step++) {
		const unsigned int i = pick(2);

		post(pick(2));
		sim_engine_run(joined.engines[pick(2)].sim);
		while (joined.ways[i].tail != joined.ways[i].head && pick(4)) {
			if (pick(3) == 0)
				change_and_arrive(i);
			joined_pass(&joined.ways[i]);
		}
		if (pick(10) == 0)
			sim_engine_advance(joined.engines[i].sim,
					   sim_engine_now_ns(joined.engines[i].sim) +
						   pick(3000000));
		poll_all();
	}
	for (unsigned int i = 0; i < 2; i++)
		TEST_ASSERT_EQUAL_INT(
			0, sim_qp_modify(joined_side(&joined, i)->qp, &error, IBV_QP_STATE));
	joined_settle(&joined, SIM_NEVER - 1);
	poll_all();
	for (unsigned int i = 0; i < 2; i++) {
		TEST_ASSERT_EQUAL_UINT64(tallies[i].sends, tallies[i].send_ends);
		TEST_ASSERT_EQUAL_UINT64(tallies[i].recvs, tallies[i].recv_ends);
		TEST_ASSERT_FALSE(sim_way_out_is_awaited(joined.engines[i].sim));
		TEST_ASSERT_TRUE(sim_engine_quiet(joined.engines[i].sim));
	}
	joined_close(&joined);
}

static void torment_many(enum ibv_qp_type type)
{
	const uint64_t first = running_seed;

	for (uint64_t seed = first; seed < first + CONNECTIONS; seed++) {
		run_seed(seed);
		random_state = seed;
		torment(type);
	}
	/* Enough changed frames got as far as a QP. */
	TEST_ASSERT_GREATER_THAN(CONNECTIONS, accepted);
}

void test_changed_frames_on_rc(void)
{
	torment_many(IBV_QPT_RC);
}

void test_changed_frames_on_uc(void)
{
	torment_many(IBV_QPT_UC);
}

void test_changed_frames_on_ud(void)
{
	torment_many(IBV_QPT_UD);
}

/* Writes the head of a frame that the decoder reads on from. */
static void put_head(uint8_t *frame, bool infiniband, size_t frame_bytes)
{
	if (infiniband) {
		frame[0] = 0;
		frame[1] = (uint8_t)(2 + pick(2));
		frame[4] = (uint8_t)((frame_bytes - 2) / 4 >> 8);
		frame[5] = (uint8_t)((frame_bytes - 2) / 4);
		return;
	}
	frame[12] = 0x89;
	frame[13] = 0x15;
	frame[14] = 0x60;
	frame[18] = (uint8_t)((frame_bytes - 54) >> 8);
	frame[19] = (uint8_t)(frame_bytes - 54);
	frame[20] = 0x1b;
}

void test_noise(void)
{
	uint8_t frame[256];

	for (unsigned int layer = 0; layer < 2; layer++) {
		const struct sim_counters *counters;

		joined_open(&joined, &(struct engine_config){.quiet = true, .infiniband = layer},
			    8);
		counters = &joined_side(&joined, 1)->device->counters;
		for (unsigned int i = 0; i < NOISE; i++) {
			const size_t frame_bytes = pick(sizeof(frame));

			for (size_t j = 0; j < frame_bytes; j++)
				frame[j] = (uint8_t)pick(256);
			if (pick(2) && frame_bytes > 60)
				put_head(frame, layer, frame_bytes);
			arrive(1, frame, frame_bytes, pick(2));
		}
		sim_engine_run(joined.engines[1].sim);
		TEST_ASSERT_EQUAL_UINT64(NOISE, counters->received_packets);
		TEST_ASSERT_EQUAL_UINT64(NOISE, counters->dropped_packets);
		TEST_ASSERT_GREATER_THAN(0, counters->discarded[SIM_DISCARD_OPCODE]);
		TEST_ASSERT_EQUAL_UINT64(0, counters->sent_packets);
		joined_close(&joined);
	}
}
