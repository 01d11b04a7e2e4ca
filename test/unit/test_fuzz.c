/* SPDX-License-Identifier: MIT */
/*
 * Gives the engine random bytes as frames, and packets that no peer would send. The engine may
 * answer, drop or fail the QP, but must not crash, hang or lose a WR. VERBENA_FUZZ_SEED sets the
 * first seed. The test finds most under AddressSanitizer and UBSan.
 */
#include "test/support/engine.h"
#include "test/unit/seed.h"
#include "unity.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define FRAMES	    20000u
#define CONNECTIONS 500u
#define PACKETS	    120u /* for each connection */
#define SECONDS_MAX 30u

static struct engine engine;
static uint64_t random_state;

void setUp(void)
{
	const char *text = getenv("VERBENA_FUZZ_SEED");

	run_seed(text ? strtoull(text, NULL, 0) : 1);
	random_state = running_seed;
	printf("fuzz: first seed %llu\n", (unsigned long long)running_seed);
	signal(SIGALRM, on_alarm);
	alarm(SECONDS_MAX);
}

void tearDown(void)
{
	alarm(0);
	engine_close(&engine);
}

static uint32_t pick(uint32_t below)
{
	return (uint32_t)(engine_random(&random_state) % below);
}

static int copy(void *dst, const void *src, size_t length_bytes)
{
	memcpy(dst, src, length_bytes);
	return 0;
}

static uint8_t valid_opcode(void)
{
	uint8_t opcode;

	do {
		opcode = (uint8_t)pick(256);
	} while (!(sim_opcodes[opcode].flags & SIM_OP_VALID));
	return opcode;
}

/* Makes a right frame of a random opcode. */
static size_t make_frame(uint8_t *frame)
{
	static uint8_t payload[SIM_PATH_MTU_MAX];
	struct sim_packet packet = {.opcode = valid_opcode(), .psn = pick(1 << 24)};
	struct sim_route route = {.hop_limit = 64, .udp_source_port = 0xc000};
	struct sim_span span;

	if (pick(2)) {
		memset(route.source_gid + 10, 0xff, 2);
		memset(route.dest_gid + 10, 0xff, 2);
	} else {
		route.source_gid[0] = route.dest_gid[0] = 0xfe;
	}
	if (sim_opcodes[packet.opcode].flags & SIM_OP_PAYLOAD)
		engine_payload(&packet, &span, payload, pick(pick(2) ? 64 : SIM_PATH_MTU_MAX + 1));
	return sim_packet_encode(&packet, &route, copy, frame, NULL);
}

/* Copies the frame into a block of its size, so that AddressSanitizer sees a read beyond it. */
static void decode(const uint8_t *frame, size_t frame_bytes)
{
	uint8_t *block = malloc(frame_bytes ? frame_bytes : 1);
	struct sim_packet packet;
	struct sim_route route;
	struct sim_span span;
	enum sim_decode result;

	memcpy(block, frame, frame_bytes);
	result = sim_packet_decode(block, frame_bytes, &packet, &span, &route);
	TEST_ASSERT_LESS_OR_EQUAL(SIM_DECODE_BAD_ICRC, result);
	if (result == SIM_DECODE_OK && packet.span_count) {
		const uint8_t *base = span.base;

		TEST_ASSERT_TRUE(base >= block &&
				 base + span.length_bytes + 4 <= block + frame_bytes);
		TEST_ASSERT_EQUAL_UINT32(packet.payload_bytes, span.length_bytes);
	}
	free(block);
}

void test_noise_is_decoded_without_harm(void)
{
	uint8_t frame[SIM_FRAME_BYTES_MAX];

	for (unsigned int i = 0; i < FRAMES; i++) {
		size_t frame_bytes = pick(200);

		for (size_t j = 0; j < frame_bytes; j++)
			frame[j] = (uint8_t)pick(256);
		/* A right Ethernet and IP header, or the frame is not read any further. */
		if (pick(2) && frame_bytes > 45) {
			static const uint8_t head[] = {0x08, 0x00, 0x45};

			memcpy(frame + 12, head, sizeof(head));
			frame[23] = 17;
		}
		decode(frame, frame_bytes);
	}
}

void test_mutated_frames_are_decoded_without_harm(void)
{
	uint8_t frame[SIM_FRAME_BYTES_MAX];

	for (unsigned int i = 0; i < FRAMES; i++) {
		size_t frame_bytes = make_frame(frame);
		unsigned int flips = pick(4);

		while (flips--)
			frame[pick(pick(2) ? (uint32_t)frame_bytes : 70)] ^=
				(uint8_t)(1u << pick(8));
		if (pick(3) == 0)
			frame_bytes = pick((uint32_t)frame_bytes + 1);
		decode(frame, frame_bytes);
	}
}

/* --- what the decoder accepts is what the encoder writes --- */

enum { LRH_BYTES = 8, BTH_BYTES = 12, ICRC_BYTES = 4, VCRC_BYTES = 2 };

/* A route of a random kind: RoCE v2 over IPv4 or IPv6, RoCE v1, InfiniBand with or without a GRH. */
static struct sim_route any_route(void)
{
	struct sim_route route = {.hop_limit = 64};
	const uint32_t kind = pick(5);

	route.infiniband = kind >= 3;
	route.has_grh = kind == 4;
	route.roce_v1 = kind == 2;
	route.slid = route.infiniband ? 1 : 0;
	route.dlid = route.infiniband ? 2 : 0;
	if (kind < 2)
		route.udp_source_port = 0xc000;
	if (kind == 0) {
		memset(route.source_gid + 10, 0xff, 2);
		memset(route.dest_gid + 10, 0xff, 2);
	} else if (kind != 3) {
		route.source_gid[0] = route.dest_gid[0] = 0xfe;
	}
	return route;
}

static enum sim_decode read_frame(const struct sim_route *route, const uint8_t *frame,
				  size_t frame_bytes, struct sim_packet *packet,
				  struct sim_span *span, struct sim_route *got)
{
	return (route->infiniband ? sim_packet_decode_infiniband
				  : sim_packet_decode)(frame, frame_bytes, packet, span, got);
}

/* Clears the bits that a receiver ignores: reserved ones, the virtual lane, the pad. */
static void clear_ignored(uint8_t *frame, const struct sim_route *route,
			  const struct sim_packet *packet)
{
	static const struct {
		uint32_t header;
		uint8_t offset;
	} reserved[] = {{SIM_OP_RDETH, 0}, {SIM_OP_DETH, 4}, {SIM_OP_XRCETH, 0}};
	const struct sim_opcode_info *info = &sim_opcodes[packet->opcode];
	uint8_t *bth = frame + sim_route_bytes(route);
	uint8_t *header = bth + BTH_BYTES;

	if (route->infiniband) {
		frame[0] &= 0x0f;
		frame[1] &= 0xf3;
		frame[4] &= 0x07;
	}
	bth[4] &= 0xc0;
	bth[8] &= 0x80;
	for (unsigned int i = 0; i < 3; i++) {
		if (!(info->flags & reserved[i].header))
			continue;
		header[reserved[i].offset] = 0;
		header += sim_header_bytes((enum sim_opcode_flag)reserved[i].header);
	}
	memset(bth + info->header_bytes + packet->payload_bytes, 0,
	       sim_pad_bytes(packet->payload_bytes));
}

/* Encodes what was decoded: the same bytes, but for bits that a receiver ignores. */
static void check_again(const uint8_t *frame, size_t frame_bytes, const struct sim_packet *packet,
			const struct sim_route *route)
{
	const size_t end = frame_bytes - ICRC_BYTES - (route->infiniband ? VCRC_BYTES : 0);
	uint8_t want[SIM_FRAME_BYTES_MAX], again[SIM_FRAME_BYTES_MAX];

	memcpy(want, frame, frame_bytes);
	clear_ignored(want, route, packet);
	TEST_ASSERT_EQUAL_size_t(frame_bytes, sim_packet_encode(packet, route, copy, again, NULL));
	TEST_ASSERT_EQUAL_MEMORY(want, again, memcmp(want, frame, end) ? end : frame_bytes);
}

/* Turns bits and changes lengths at random, and makes the checksums of most frames right again, so that many of them are
 * accepted. */
void test_accepted_frames_are_encoded_as_they_were(void)
{
	unsigned int accepted = 0;

	for (unsigned int i = 0; i < FRAMES; i++) {
		static uint8_t payload[SIM_PATH_MTU_MAX];
		struct sim_packet packet = {.opcode = valid_opcode(), .psn = pick(1 << 24)};
		const struct sim_route route = any_route();
		uint8_t frame[SIM_FRAME_BYTES_MAX] = {0};
		struct sim_route got;
		struct sim_span span;
		size_t frame_bytes;
		uint8_t *block;

		if (sim_opcodes[packet.opcode].flags & SIM_OP_PAYLOAD)
			engine_payload(&packet, &span, payload,
				       pick(pick(2) ? 64 : SIM_PATH_MTU_MAX + 1));
		frame_bytes = sim_packet_encode(&packet, &route, copy, frame, NULL);
		/* LRHs count words. */
		if (pick(4) == 0)
			frame_bytes = sim_packet_resize(
				frame, pick(100) * (route.infiniband ? 4 : 1), &route);
		for (unsigned int flips = pick(6); flips; flips--)
			frame[pick(pick(2) ? (uint32_t)frame_bytes : 62)] ^=
				(uint8_t)(1u << pick(8));
		if (pick(8))
			sim_packet_seal(frame, frame_bytes, &route);
		/* AddressSanitizer sees a read beyond a block. */
		block = malloc(frame_bytes);
		memcpy(block, frame, frame_bytes);
		if (read_frame(&route, block, frame_bytes, &packet, &span, &got) == SIM_DECODE_OK) {
			accepted++;
			check_again(block, frame_bytes, &packet, &got);
		}
		free(block);
	}
	TEST_ASSERT_GREATER_THAN(FRAMES / 8, accepted);
}

/* --- packets that no peer sends, to a QP --- */

/* Returns a PSN that is mostly near the expected one. */
static uint32_t pick_psn(uint32_t expected)
{
	static const int32_t near[] = {0, 0, 0, 0, 0, 0, -1, 1, -2, 2, 5, -5};

	if (pick(20) == 0)
		return pick(1 << 24);
	return (expected + (uint32_t)near[pick(12)]) & 0xffffff;
}

static uint32_t pick_length(void)
{
	static const uint32_t edges[] = {0,   1,    8,		255,	    256,       257,
					 512, 4096, 0x80000000, 0x80000001, UINT32_MAX};

	return pick(2) ? edges[pick(11)] : pick(2000);
}

static struct sim_packet any_packet(struct sim_span *spans)
{
	static uint8_t payload[SIM_PATH_MTU_MAX];
	const struct sim_qp *qp = engine.sides[0].qp;
	bool request = pick(2);
	uint8_t opcode = (uint8_t)(qp->transport | pick(24));
	struct sim_packet packet;

	packet = engine_packet(&engine, opcode, pick_psn(request ? qp->resp.psn : qp->comp.psn));
	packet.flags = (uint8_t)pick(32);
	/* sim_packet_decode() refuses reserved values. */
	if (pick(20) == 0 || !(sim_opcodes[packet.opcode].flags & SIM_OP_VALID))
		packet.opcode = valid_opcode();
	if (pick(20) == 0)
		packet.rkey = pick(UINT32_MAX);
	packet.remote_addr += pick(3) ? 8 * pick(100) : pick(ENGINE_MEMORY_BYTES + 100);
	packet.dma_bytes = pick_length();
	packet.syndrome = (uint8_t)(pick(3) ? SIM_ACK_CREDIT_NONE : pick(256));
	packet.qkey = pick(4) ? ENGINE_QKEY : pick(UINT32_MAX);
	packet.msn = pick(1 << 24);
	if (pick(2)) {
		uint32_t first = pick(pick(2) ? 257 : 2000);

		spans[0] = (struct sim_span){payload, first};
		spans[1] = (struct sim_span){payload, pick(2) ? 256 - first % 256 : 1};
		packet.spans = spans;
		packet.span_count = (uint8_t)(1 + pick(2));
		if (first == 0)
			spans[0].length_bytes = 1;
		packet.payload_bytes = spans[0].length_bytes;
		if (packet.span_count == 2)
			packet.payload_bytes += spans[1].length_bytes;
		/* Every other payload has the length of the RETH. */
		if (pick(2))
			packet.dma_bytes = packet.payload_bytes;
	}
	return packet;
}

/* Makes a valid request, new or repeated, so that the QP stays alive for longer. */
static struct sim_packet likely_packet(struct sim_span *spans)
{
	static const uint8_t opcodes[] = {SIM_RC_SEND_ONLY, SIM_RC_WRITE_ONLY, SIM_RC_READ_REQUEST,
					  SIM_RC_READ_REQUEST, SIM_RC_FETCH_ADD};
	static uint8_t payload[256];
	const struct sim_qp *qp = engine.sides[0].qp;
	uint8_t opcode = opcodes[pick(5)];
	struct sim_packet packet = engine_packet(&engine, opcode, qp->resp.psn - pick(3) * pick(3));

	if (!(sim_opcodes[opcode | qp->transport].flags & SIM_OP_VALID))
		opcode = SIM_RC_SEND_ONLY;
	packet.opcode = opcode | qp->transport;
	packet.qkey = ENGINE_QKEY;
	packet.dma_bytes = pick(200);
	if (opcode == SIM_RC_READ_REQUEST)
		packet.dma_bytes = 8u << 4 * pick(3);
	else if (opcode != SIM_RC_FETCH_ADD)
		engine_payload(&packet, spans, payload, packet.dma_bytes);
	return packet;
}

struct tally {
	uint64_t sends, send_ends;
	uint64_t recvs, recv_ends;
};

static void post_something(struct tally *tally)
{
	static const enum ibv_wr_opcode opcodes[] = {
		IBV_WR_SEND,
		IBV_WR_RDMA_WRITE,
		IBV_WR_RDMA_READ,
		IBV_WR_ATOMIC_FETCH_AND_ADD,
		IBV_WR_ATOMIC_CMP_AND_SWP,
		IBV_WR_SEND_WITH_IMM,
		IBV_WR_LOCAL_INV,
	};
	struct engine_send send = {.opcode = opcodes[pick(7)],
				   .wr_id = tally->sends,
				   .bytes = pick(1000),
				   .offset = 4096,
				   .rkey = 1,
				   .remote_qpn = ENGINE_PEER_QPN};

	if (pick(2))
		tally->recvs += engine_recv(&engine, 0, tally->recvs, pick(1000), pick(600)) == 0;
	else
		tally->sends += engine_send(&engine, 0, &send) == 0;
}

static void poll_all(struct tally *tally)
{
	struct ibv_wc wc;

	while (engine_poll(engine.sides[0].send_cq, &wc))
		TEST_ASSERT_EQUAL_UINT64(tally->send_ends++, wc.wr_id);
	while (engine_poll(engine.sides[0].recv_cq, &wc))
		TEST_ASSERT_EQUAL_UINT64(tally->recv_ends++, wc.wr_id);
}

static void check_legal(void)
{
	const struct sim_qp *qp = engine.sides[0].qp;

	TEST_ASSERT_TRUE(qp->state == IBV_QPS_RTS || qp->state == IBV_QPS_ERR ||
			 (qp->state == IBV_QPS_SQE && qp->type != IBV_QPT_RC));
	TEST_ASSERT_LESS_OR_EQUAL(qp->sq.max_wr, qp->sq.head - qp->sq.tail);
	TEST_ASSERT_LESS_OR_EQUAL(qp->rq.max_wr, qp->rq.head - qp->rq.tail);
	TEST_ASSERT_LESS_OR_EQUAL(qp->resp.resource_size, qp->resp.resources_pending);
	TEST_ASSERT_LESS_OR_EQUAL(qp->max_rd_atomic, qp->req.reads_outstanding);
	TEST_ASSERT_EQUAL_HEX32(qp->resp.psn, qp->resp.psn & 0xffffff);
	TEST_ASSERT_EQUAL_HEX32(qp->comp.psn, qp->comp.psn & 0xffffff);
}

static void torment(enum ibv_qp_type type)
{
	const struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};
	struct tally tally = {0};

	engine_open(&engine, &(struct engine_config){.type = type,
						     .peer = true,
						     .rnr_retry = (uint8_t)pick(8),
						     .reads = (uint8_t)(1 + pick(4)),
						     .psn = {1 + pick(0xffffff), 0xfffff0},
						     .quiet = pick(2)});
	for (unsigned int i = 0; i < PACKETS; i++) {
		struct sim_span spans[2];
		struct sim_packet packet = pick(4) ? likely_packet(spans) : any_packet(spans);

		while (pick(3) == 0)
			post_something(&tally);
		engine_send_on(&engine, &engine.sides[1].ah->path, &packet);
		if (pick(3))
			sim_engine_run(engine.sim);
		if (pick(10) == 0)
			sim_engine_advance(engine.sim,
					   sim_engine_now_ns(engine.sim) + pick(10000000));
		poll_all(&tally);
		check_legal();
		/* Sends a few more packets to the dead QP. */
		if (engine.sides[0].qp->state == IBV_QPS_ERR && i < PACKETS - 5)
			i = PACKETS - 5;
	}
	TEST_ASSERT_EQUAL_INT(0, sim_qp_modify(engine.sides[0].qp, &error, IBV_QP_STATE));
	engine_settle(&engine, SIM_NEVER - 1);
	poll_all(&tally);
	TEST_ASSERT_EQUAL_UINT64(tally.sends, tally.send_ends);
	TEST_ASSERT_EQUAL_UINT64(tally.recvs, tally.recv_ends);
	TEST_ASSERT_TRUE(sim_engine_quiet(engine.sim));
	engine_close(&engine);
}

static void torment_many(enum ibv_qp_type type)
{
	uint64_t first = running_seed;

	for (uint64_t seed = first; seed < first + CONNECTIONS; seed++) {
		run_seed(seed);
		random_state = seed;
		torment(type);
	}
}

void test_any_packet_on_rc(void)
{
	torment_many(IBV_QPT_RC);
}

void test_any_packet_on_uc(void)
{
	torment_many(IBV_QPT_UC);
}

void test_any_packet_on_ud(void)
{
	torment_many(IBV_QPT_UD);
}
