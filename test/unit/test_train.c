/* SPDX-License-Identifier: MIT */
/*
 * Trains (sim/wire/packet.h): a message has the same end, the same bytes and the same counters, whether its packets
 * come as trains or one by one.
 */
#include "sim/net/net.h"
#include "sim/wire/psn.h"
#include "test/support/engine.h"
#include "test/support/joined.h"
#include "test/unit/seed.h"
#include "unity.h"

#include <string.h>

#define MTU	      256u
#define PIECES	      4u
#define COMPLETIONS   8u
#define SENT_AT	      1000u
#define RECEIVED_AT   3000u
#define MESSAGE	      50000u
#define IN_THE_MIDDLE 20000u /* of the message */
#define TRAIN_BYTES   SIM_TRAIN_BYTES_MAX

static struct joined joined;
static unsigned int drops; /* that engine 1 has told of */

void setUp(void)
{
	joined = (struct joined){0};
}

void tearDown(void)
{
	joined_close(&joined);
}

static struct engine_side *side_of(unsigned int engine)
{
	return joined_side(&joined, engine);
}

static struct sim_counters *counters_of(unsigned int engine)
{
	return &side_of(engine)->device->counters;
}

/* Fills both memories with bytes that no other offset or side has in this order. */
static void fill(void)
{
	for (unsigned int side = 0; side < 2; side++)
		for (uint32_t i = 0; i < ENGINE_MEMORY_BYTES; i++)
			side_of(side)->memory[i] = (uint8_t)(i * 7 + i / 251 + side * 101);
}

/* train_bytes 0: no trains. */
static void open(const struct engine_config *config, uint32_t train_bytes)
{
	struct engine_config quiet = *config;

	quiet.quiet = true;
	joined_open(&joined, &quiet, JOINED_RING);
	if (train_bytes)
		joined_carry_trains(&joined, train_bytes);
	fill();
}

/* --- one message, with trains and without them --- */

struct scenario {
	const char *name;
	struct engine_config config;
	enum ibv_wr_opcode opcode;
	uint32_t bytes;
	uint32_t receive_bytes; /* 0: as the message */
	unsigned int pieces;	/* SGEs at each end; 0: one */
	/* The memory that cannot be accessed begins so many bytes behind the message's begin; 0: there is none. */
	uint32_t poison_at;
	unsigned int poisoned; /* the side that has the memory */
	enum ibv_wc_status status;
};

struct outcome {
	unsigned int trains;
	unsigned int completion_count;
	struct ibv_wc completions[COMPLETIONS];
	enum ibv_qp_state states[2];
	struct sim_counters counters[2];
	uint8_t memories[2][ENGINE_MEMORY_BYTES];
};

static const struct scenario scenarios[] = {
	{.name = "WRITE", .opcode = IBV_WR_RDMA_WRITE, .bytes = MESSAGE},
	{.name = "WRITE of full packets", .opcode = IBV_WR_RDMA_WRITE, .bytes = 200 * MTU},
	{.name = "WRITE of four packets", .opcode = IBV_WR_RDMA_WRITE, .bytes = 4 * MTU},
	{.name = "WRITE of 4096-byte packets",
	 .config = {.mtu = IBV_MTU_4096},
	 .opcode = IBV_WR_RDMA_WRITE,
	 .bytes = 200001},
	{.name = "WRITE with immediate data",
	 .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
	 .bytes = MESSAGE},
	{.name = "WRITE from pieces", .opcode = IBV_WR_RDMA_WRITE, .bytes = MESSAGE, .pieces = 4},
	{.name = "WRITE on InfiniBand",
	 .config = {.infiniband = true},
	 .opcode = IBV_WR_RDMA_WRITE,
	 .bytes = MESSAGE},
	{.name = "PSNs that wrap",
	 .config = {.psn = {0xffffc0, 0xffffe0}},
	 .opcode = IBV_WR_RDMA_WRITE,
	 .bytes = MESSAGE},
	{.name = "SEND", .opcode = IBV_WR_SEND, .bytes = MESSAGE},
	{.name = "SEND with immediate data", .opcode = IBV_WR_SEND_WITH_IMM, .bytes = MESSAGE},
	{.name = "SEND to pieces", .opcode = IBV_WR_SEND, .bytes = MESSAGE, .pieces = 3},
	{.name = "READ", .opcode = IBV_WR_RDMA_READ, .bytes = MESSAGE},
	{.name = "READ to pieces", .opcode = IBV_WR_RDMA_READ, .bytes = MESSAGE, .pieces = 4},
	{.name = "READ with wrapping PSNs",
	 .config = {.psn = {0xffffc0, 0xffffe0}},
	 .opcode = IBV_WR_RDMA_READ,
	 .bytes = MESSAGE},
	{.name = "UC WRITE",
	 .config = {.type = IBV_QPT_UC},
	 .opcode = IBV_WR_RDMA_WRITE,
	 .bytes = MESSAGE},
	{.name = "UC SEND",
	 .config = {.type = IBV_QPT_UC},
	 .opcode = IBV_WR_SEND,
	 .bytes = MESSAGE},
	{.name = "SEND that is longer than the receive",
	 .opcode = IBV_WR_SEND,
	 .bytes = MESSAGE,
	 .receive_bytes = IN_THE_MIDDLE,
	 .status = IBV_WC_REM_INV_REQ_ERR},
	{.name = "UC SEND that is longer than the receive",
	 .config = {.type = IBV_QPT_UC},
	 .opcode = IBV_WR_SEND,
	 .bytes = MESSAGE,
	 .receive_bytes = IN_THE_MIDDLE},
	{.name = "SEND to memory that is gone",
	 .opcode = IBV_WR_SEND,
	 .bytes = MESSAGE,
	 .poison_at = IN_THE_MIDDLE,
	 .poisoned = 1,
	 .status = IBV_WC_REM_OP_ERR},
	{.name = "WRITE to memory that is gone",
	 .opcode = IBV_WR_RDMA_WRITE,
	 .bytes = MESSAGE,
	 .poison_at = IN_THE_MIDDLE,
	 .poisoned = 1,
	 .status = IBV_WC_REM_ACCESS_ERR},
	{.name = "UC WRITE to memory that is gone",
	 .config = {.type = IBV_QPT_UC},
	 .opcode = IBV_WR_RDMA_WRITE,
	 .bytes = MESSAGE,
	 .poison_at = IN_THE_MIDDLE,
	 .poisoned = 1},
	{.name = "READ to memory that is gone",
	 .opcode = IBV_WR_RDMA_READ,
	 .bytes = MESSAGE,
	 .poison_at = IN_THE_MIDDLE,
	 .poisoned = 0,
	 .status = IBV_WC_LOC_PROT_ERR},
	{.name = "WRITE from memory that is gone",
	 .opcode = IBV_WR_RDMA_WRITE,
	 .bytes = MESSAGE,
	 .poison_at = IN_THE_MIDDLE,
	 .poisoned = 0,
	 .status = IBV_WC_RETRY_EXC_ERR},
	{.name = "READ from memory that is gone",
	 .opcode = IBV_WR_RDMA_READ,
	 .bytes = MESSAGE,
	 .poison_at = IN_THE_MIDDLE,
	 .poisoned = 1,
	 .status = IBV_WC_RETRY_EXC_ERR},
};

/* Cuts [memory, memory + bytes) into SGEs of odd lengths. Returns their number. */
static int cut(struct ibv_sge *sges, const struct engine_side *side, uint32_t at, uint32_t bytes,
	       unsigned int pieces)
{
	for (unsigned int i = 0; i + 1 < pieces; i++) {
		const uint32_t part = bytes / (pieces - i) + 17 * i + 3;

		sges[i] = (struct ibv_sge){(uintptr_t)side->memory + at, part, side->mr->lkey};
		at += part;
		bytes -= part;
	}
	sges[pieces ? pieces - 1 : 0] =
		(struct ibv_sge){(uintptr_t)side->memory + at, bytes, side->mr->lkey};
	return pieces ? (int)pieces : 1;
}

static void post(const struct scenario *scenario)
{
	const uint32_t receive_bytes =
		scenario->receive_bytes ? scenario->receive_bytes : scenario->bytes;
	struct engine_side *from = side_of(0), *to = side_of(1);
	struct ibv_sge sges[PIECES];
	struct ibv_recv_wr *bad_recv, recv = {.wr_id = 50, .sg_list = sges};
	struct ibv_send_wr *bad,
		wr = {
			.wr_id = 40,
			.sg_list = sges,
			.opcode = scenario->opcode,
			.send_flags = IBV_SEND_SIGNALED,
			.imm_data = htobe32(0x1234567),
			.wr.rdma = {(uintptr_t)to->memory + RECEIVED_AT, to->mr->rkey},
		};

	recv.num_sge = cut(sges, to, RECEIVED_AT, receive_bytes, scenario->pieces);
	TEST_ASSERT_EQUAL_INT(0, sim_qp_post_recv(to->qp, &recv, &bad_recv));
	wr.num_sge = cut(sges, from, SENT_AT, scenario->bytes, scenario->pieces);
	TEST_ASSERT_EQUAL_INT(0, sim_qp_post_send(from->qp, &wr, &bad));
}

static void poll_into(struct outcome *outcome, struct sim_cq *cq)
{
	while (engine_poll(cq, &outcome->completions[outcome->completion_count]))
		outcome->completion_count++;
}

static void run(const struct scenario *scenario, uint32_t train_bytes, struct outcome *outcome)
{
	const uint32_t begins[] = {SENT_AT, RECEIVED_AT};

	memset(outcome, 0, sizeof(*outcome));
	open(&scenario->config, train_bytes);
	post(scenario);
	if (scenario->poison_at)
		engine_poison(side_of(scenario->poisoned)->memory + begins[scenario->poisoned] +
				      scenario->poison_at,
			      1);
	joined_settle(&joined, SIM_NEVER - 1);
	engine_poison(NULL, 0);
	for (unsigned int i = 0; i < 2; i++) {
		poll_into(outcome, side_of(i)->send_cq);
		poll_into(outcome, side_of(i)->recv_cq);
		outcome->states[i] = side_of(i)->qp->state;
		outcome->counters[i] = *counters_of(i);
		memcpy(outcome->memories[i], side_of(i)->memory, ENGINE_MEMORY_BYTES);
		outcome->trains += joined.ways[i].trains;
		TEST_ASSERT_TRUE(sim_engine_quiet(joined.engines[i].sim));
	}
	joined_close(&joined);
}

static void expect_equal(const struct outcome *one, const struct outcome *other, const char *name)
{
	TEST_ASSERT_EQUAL_UINT_MESSAGE(one->completion_count, other->completion_count, name);
	for (unsigned int i = 0; i < one->completion_count; i++) {
		const struct ibv_wc *a = &one->completions[i], *b = &other->completions[i];

		TEST_ASSERT_EQUAL_UINT64_MESSAGE(a->wr_id, b->wr_id, name);
		TEST_ASSERT_EQUAL_INT_MESSAGE(a->status, b->status, name);
		TEST_ASSERT_EQUAL_INT_MESSAGE(a->opcode, b->opcode, name);
		TEST_ASSERT_EQUAL_UINT32_MESSAGE(a->byte_len, b->byte_len, name);
		TEST_ASSERT_EQUAL_UINT32_MESSAGE(a->vendor_err, b->vendor_err, name);
		TEST_ASSERT_EQUAL_UINT32_MESSAGE(a->imm_data, b->imm_data, name);
	}
	for (unsigned int i = 0; i < 2; i++) {
		TEST_ASSERT_EQUAL_INT_MESSAGE(one->states[i], other->states[i], name);
		TEST_ASSERT_EQUAL_MEMORY_MESSAGE(&one->counters[i], &other->counters[i],
						 sizeof(one->counters[i]), name);
		TEST_ASSERT_EQUAL_MEMORY_MESSAGE(one->memories[i], other->memories[i],
						 ENGINE_MEMORY_BYTES, name);
	}
}

void test_messages_end_as_without_trains(void)
{
	static const uint32_t lengths[] = {2 * MTU, 3 * MTU + 5, 8 * MTU, TRAIN_BYTES};
	static struct outcome single, trains;

	for (size_t i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); i++) {
		const struct scenario *scenario = &scenarios[i];

		run(scenario, 0, &single);
		TEST_ASSERT_EQUAL_UINT(0, single.trains);
		TEST_ASSERT_EQUAL_INT_MESSAGE(scenario->status, single.completions[0].status,
					      scenario->name);
		for (size_t j = 0; j < sizeof(lengths) / sizeof(lengths[0]); j++) {
			run(scenario, lengths[j], &trains);
			if (scenario->config.mtu != IBV_MTU_4096 || lengths[j] == TRAIN_BYTES)
				TEST_ASSERT_TRUE_MESSAGE(trains.trains > 0, scenario->name);
			expect_equal(&single, &trains, scenario->name);
		}
	}
}

/* --- what is sent --- */

#define PACKETS_MAX 8192u

/* The packets of a ring in their order, those of trains one by one. */
struct listed {
	unsigned int count, longest; /* longest: the most packets of a train */
	struct sim_packet packets[PACKETS_MAX];
};

static void list_frame(struct listed *listed, const struct joined_frame *frame)
{
	const unsigned int count = frame->train_packets ? frame->train_packets : 1;
	struct sim_packet packet;
	struct sim_route route;
	struct sim_span span;

	TEST_ASSERT_EQUAL_INT(SIM_DECODE_OK,
			      frame->train_packets
				      ? sim_packet_read_bare(frame->train, frame->frame_bytes,
							     &frame->route, &packet, &span)
				      : sim_packet_read(frame->frame, frame->frame_bytes, false,
							&packet, &span, &route));
	if (frame->train_packets > listed->longest)
		listed->longest = frame->train_packets;
	packet.spans = NULL;
	packet.payload_bytes /= count;
	for (unsigned int i = 0; i < count; i++) {
		struct sim_packet *one = &listed->packets[listed->count++];

		*one = packet;
		one->psn = sim_psn_add(packet.psn, i);
		if (i + 1 < count)
			one->flags &= (uint8_t)~SIM_PACKET_ACK_REQUEST;
	}
}

static void list(const struct joined_way *way, struct listed *listed)
{
	*listed = (struct listed){0};
	for (unsigned int i = way->tail; i != way->head; i++)
		list_frame(listed, &way->frames[i % JOINED_RING]);
}

/* Sends a message as far as its sender goes without an answer. */
static void send_and_list(const struct scenario *scenario, uint32_t train_bytes,
			  struct listed *listed)
{
	const unsigned int sender = scenario->opcode == IBV_WR_RDMA_READ;

	open(&scenario->config, train_bytes);
	post(scenario);
	sim_engine_run(joined.engines[0].sim);
	if (sender) {
		TEST_ASSERT_TRUE(joined_take(&joined.ways[0]));
		sim_engine_run(joined.engines[1].sim);
	}
	list(&joined.ways[sender], listed);
	/* The memory is elsewhere the next time. */
	for (unsigned int i = 0; i < listed->count; i++)
		if (listed->packets[i].remote_addr)
			listed->packets[i].remote_addr -= (uintptr_t)side_of(1)->memory;
	joined_close(&joined);
}

/* The same headers in the same order, and the same packets ask for an ACK. */
void test_the_packets_of_trains_are_those_without_trains(void)
{
	static struct listed single, trains;

	for (size_t i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); i++) {
		const struct scenario *scenario = &scenarios[i];

		if (scenario->poison_at || scenario->config.infiniband)
			continue;
		send_and_list(scenario, 0, &single);
		for (uint32_t length = 2; length < 128; length += 7) {
			send_and_list(scenario, length * MTU, &trains);
			TEST_ASSERT_EQUAL_UINT_MESSAGE(single.count, trains.count, scenario->name);
			TEST_ASSERT_EQUAL_MEMORY_MESSAGE(single.packets, trains.packets,
							 single.count * sizeof(*single.packets),
							 scenario->name);
		}
	}
}

/* No train is longer than the packets between two requests for an ACK, or than a QP's turn. */
void test_the_length_of_trains(void)
{
	static const struct {
		enum ibv_qp_type type;
		enum ibv_wr_opcode opcode;
		unsigned int longest;
	} rows[] = {
		{IBV_QPT_RC, IBV_WR_RDMA_WRITE, SIM_ACK_REQUEST_EVERY},
		{IBV_QPT_UC, IBV_WR_RDMA_WRITE, SIM_BURST_PACKETS},
		{IBV_QPT_RC, IBV_WR_RDMA_READ, SIM_BURST_PACKETS},
	};
	static struct listed listed;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct scenario scenario = {.config = {.type = rows[i].type},
						  .opcode = rows[i].opcode,
						  .bytes = MESSAGE};

		send_and_list(&scenario, TRAIN_BYTES, &listed);
		TEST_ASSERT_EQUAL_UINT(rows[i].longest, listed.longest);
		send_and_list(&scenario, 5 * MTU + MTU / 2, &listed);
		TEST_ASSERT_EQUAL_UINT(5, listed.longest);
	}
}

/* A quirk may look at each packet. */
void test_a_device_with_bugs_sends_no_trains(void)
{
	static const enum ibv_wr_opcode opcodes[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ};

	for (size_t i = 0; i < sizeof(opcodes) / sizeof(opcodes[0]); i++) {
		const struct scenario scenario = {.opcode = opcodes[i], .bytes = MESSAGE};

		open(&scenario.config, TRAIN_BYTES);
		engine_quirk(side_of(i)->device, "packet_sizes_unchecked", true);
		post(&scenario);
		joined_settle(&joined, SIM_NEVER - 1);
		TEST_ASSERT_EQUAL_UINT64(
			1, counters_of(0)->completed[i ? IBV_WC_RDMA_READ : IBV_WC_RDMA_WRITE]);
		TEST_ASSERT_EQUAL_UINT(0, joined.ways[i].trains);
		joined_close(&joined);
	}
}

/* The window of unacknowledged packets is the same. */
void test_trains_stay_within_the_window(void)
{
	static struct listed listed;

	for (unsigned int trains = 0; trains < 2; trains++) {
		open(&(struct engine_config){.no_timeout = true}, trains * 5 * MTU);
		for (unsigned int i = 0; i < 6; i++)
			TEST_ASSERT_EQUAL_INT(
				0, joined_send(&joined, 0,
					       (struct engine_send){.opcode = IBV_WR_RDMA_WRITE,
								    .bytes = 250000}));
		/* The first turn is short, so that the window does not end where a turn does. */
		joined.ways[0].limit = 10;
		sim_engine_run(joined.engines[0].sim);
		joined.ways[0].limit = SIM_WINDOW_PACKETS + 32;
		sim_way_out_ready(joined.engines[0].sim);
		sim_engine_run(joined.engines[0].sim);
		list(&joined.ways[0], &listed);
		TEST_ASSERT_EQUAL_UINT(SIM_WINDOW_PACKETS, listed.count);
		joined_close(&joined);
	}
}

/* Returns the most packets to one QP without one to the other QP between them, while both have packets. */
static unsigned int longest_turn(const struct listed *listed)
{
	unsigned int longest = 0, turn = 0, left[2] = {0};
	const uint32_t first = listed->packets[0].dest_qpn;

	for (unsigned int i = 0; i < listed->count; i++)
		left[listed->packets[i].dest_qpn != first]++;
	for (unsigned int i = 0; i < listed->count && left[0] && left[1]; i++) {
		const struct sim_packet *packet = &listed->packets[i];

		turn = i && packet->dest_qpn == packet[-1].dest_qpn ? turn + 1 : 1;
		longest = turn > longest ? turn : longest;
		left[packet->dest_qpn != first]--;
	}
	return longest;
}

/* QPs take turns: trains count as their packets. */
void test_two_qps_with_trains_take_turns(void)
{
	static const enum ibv_wr_opcode opcodes[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ};
	static struct listed listed;

	for (unsigned int i = 0; i < 2; i++) {
		const struct engine_send send = {.opcode = opcodes[i], .bytes = MESSAGE};
		struct sim_qp *others[2], *first;

		open(&(struct engine_config){0}, 7 * MTU);
		joined_add_qps(&joined, 4, NULL, others);
		first = side_of(0)->qp;
		TEST_ASSERT_EQUAL_INT(0, joined_send(&joined, 0, send));
		side_of(0)->qp = others[0];
		TEST_ASSERT_EQUAL_INT(0, joined_send(&joined, 0, send));
		side_of(0)->qp = first;
		sim_engine_run(joined.engines[0].sim);
		if (i) {
			while (joined_take(&joined.ways[0]))
				;
			sim_engine_run(joined.engines[1].sim);
		}
		list(&joined.ways[i], &listed);
		TEST_ASSERT_EQUAL_UINT(2 * ((MESSAGE - 1) / MTU + 1), listed.count);
		TEST_ASSERT_EQUAL_UINT(SIM_BURST_PACKETS, longest_turn(&listed));
		joined_settle(&joined, SIM_NEVER - 1);
		for (unsigned int j = 0; j < 2; j++)
			sim_qp_destroy(others[j]);
		joined_close(&joined);
	}
}

/* --- which trains are taken whole --- */

static const struct scenario write_scenario = {.opcode = IBV_WR_RDMA_WRITE, .bytes = MESSAGE};
static const struct scenario send_scenario = {.opcode = IBV_WR_SEND, .bytes = MESSAGE};
static const struct scenario read_scenario = {.opcode = IBV_WR_RDMA_READ, .bytes = MESSAGE};

/* A train that has been taken out of a ring. */
struct caught {
	struct sim_qp *qp; /* that takes it */
	unsigned int count;
	uint8_t *bytes;
	size_t length;
	struct sim_inlet inlet;
	struct sim_packet packet;
	struct sim_span span;
};

/* Starts a message, and takes its first train out of the ring that leads to engine `to`. The packets before it have
 * arrived. */
static void catch_train(const struct scenario *scenario, unsigned int to, struct caught *caught)
{
	struct joined_way *way = &joined.ways[!to];
	struct joined_frame *frame;

	open(&scenario->config, 8 * MTU);
	post(scenario);
	sim_engine_run(joined.engines[0].sim);
	if (!to) {
		joined_pass(&joined.ways[0]);
		sim_engine_run(joined.engines[1].sim);
	}
	TEST_ASSERT_TRUE(joined_pass(way));
	frame = &way->frames[way->tail % JOINED_RING];
	TEST_ASSERT_EQUAL_UINT(8, frame->train_packets);
	*caught = (struct caught){.qp = side_of(to)->qp,
				  .count = frame->train_packets,
				  .bytes = frame->train,
				  .length = frame->frame_bytes,
				  .inlet = {.route = frame->route}};
	way->followers -= frame->train_packets - 1;
	frame->train_packets = 0;
	joined_lose(way);
	TEST_ASSERT_EQUAL_INT(SIM_DECODE_OK, sim_packet_read_bare(caught->bytes, caught->length,
								  &caught->inlet.route,
								  &caught->packet, &caught->span));
}

static void release(struct caught *caught)
{
	free(caught->bytes);
	joined_close(&joined);
}

static void arrive(struct caught *caught)
{
	sim_way_out_arrive_train(&caught->qp->device->ports[0], &caught->inlet, caught->bytes,
				 caught->length, caught->count);
}

static bool take(const struct caught *caught)
{
	return sim_qp_take_train(caught->qp, &caught->packet, caught->count);
}

void test_the_expected_train_is_taken_whole(void)
{
	static const struct {
		const struct scenario *scenario;
		unsigned int to;
	} rows[] = {{&write_scenario, 1}, {&send_scenario, 1}, {&read_scenario, 0}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const uint32_t begins[] = {SENT_AT, RECEIVED_AT};
		const unsigned int to = rows[i].to;
		struct caught caught;

		catch_train(rows[i].scenario, to, &caught);
		TEST_ASSERT_TRUE(take(&caught));
		/* The first packet came before. */
		TEST_ASSERT_EQUAL_MEMORY(side_of(!to)->memory + begins[!to],
					 side_of(to)->memory + begins[to], 9 * MTU);
		TEST_ASSERT_FALSE(memcmp(side_of(!to)->memory + begins[!to] + 9 * MTU,
					 side_of(to)->memory + begins[to] + 9 * MTU, MTU) == 0);
		/* The same train again is not expected. */
		TEST_ASSERT_FALSE(take(&caught));
		release(&caught);
	}
}

/* What makes a train of a WRITE one that is not taken whole. */
static void precede(struct caught *caught)
{
	caught->packet.psn = sim_psn_add(caught->packet.psn, SIM_PSN_MASK);
}

static void skip_one(struct caught *caught)
{
	caught->packet.psn = sim_psn_add(caught->packet.psn, 1);
}

static void shorten(struct caught *caught)
{
	caught->packet.payload_bytes -= 8;
	caught->span.length_bytes -= 8;
}

static void miscount(struct caught *caught)
{
	caught->count--;
}

static void become_send(struct caught *caught)
{
	caught->packet.opcode = SIM_RC_SEND_MIDDLE;
}

static void become_response(struct caught *caught)
{
	caught->packet.opcode = SIM_RC_READ_RESPONSE_MIDDLE;
}

static void take_rights(struct caught *caught)
{
	const struct ibv_qp_attr attr = {.qp_access_flags = IBV_ACCESS_REMOTE_READ};

	TEST_ASSERT_EQUAL_INT(0, sim_qp_modify(caught->qp, &attr, IBV_QP_ACCESS_FLAGS));
}

static void deregister(struct caught *caught)
{
	(void)caught;
	TEST_ASSERT_EQUAL_INT(0, sim_mr_destroy(side_of(1)->mr));
	side_of(1)->mr = NULL;
}

static void poison(struct caught *caught)
{
	(void)caught;
	engine_poison(side_of(1)->memory + RECEIVED_AT + 4 * MTU, 1);
}

static void announce_less(struct caught *caught)
{
	/* The train would be the end of the message. */
	caught->qp->resp.length = 9 * MTU;
}

static void imitate(struct caught *caught)
{
	engine_quirk(caught->qp->device, "packet_sizes_unchecked", true);
	TEST_ASSERT_NOT_NULL(caught->qp->hooks);
}

static void wait_for_look(struct caught *caught)
{
	caught->qp->resp.usual = false;
}

/* The SRQ of an XRC target's message may have ended. */
static void become_target(struct caught *caught)
{
	static uint8_t domain[256];

	caught->qp->xrcd = (struct sim_xrcd *)domain;
}

void test_other_trains_change_nothing(void)
{
	static void (*const changes[])(struct caught * caught) = {
		precede,	 skip_one,	shorten,       miscount, become_send,
		become_response, become_target, take_rights,   poison,	 deregister,
		imitate,	 announce_less, wait_for_look,
	};
	static uint8_t before[ENGINE_MEMORY_BYTES];

	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		const struct sim_qp *qp;
		struct sim_counters counters;
		struct sim_responder resp;
		struct caught caught;

		catch_train(&write_scenario, 1, &caught);
		qp = caught.qp;
		changes[i](&caught);
		resp = qp->resp;
		counters = *counters_of(1);
		memcpy(before, side_of(1)->memory, sizeof(before));
		TEST_ASSERT_FALSE(take(&caught));
		engine_poison(NULL, 0);
		caught.qp->xrcd = NULL;
		TEST_ASSERT_EQUAL_MEMORY(&resp, &qp->resp, sizeof(resp));
		TEST_ASSERT_EQUAL_MEMORY(&counters, counters_of(1), sizeof(counters));
		TEST_ASSERT_EQUAL_MEMORY(before, side_of(1)->memory, sizeof(before));
		release(&caught);
	}
}

/* The receive may have no room for the whole train. */
void test_a_train_that_is_longer_than_the_receive(void)
{
	static const struct {
		uint32_t receive_bytes;
		bool taken;
	} rows[] = {{9 * MTU - 1, false}, {9 * MTU, true}, {9 * MTU + 1, true}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct scenario scenario = send_scenario;
		struct caught caught;

		scenario.receive_bytes = rows[i].receive_bytes;
		catch_train(&scenario, 1, &caught);
		TEST_ASSERT_EQUAL_INT(rows[i].taken, take(&caught));
		release(&caught);
	}
}

/* The READ has not been sent. */
static void unsend(struct caught *caught)
{
	caught->qp->req.sent_psn = caught->qp->comp.psn;
}

static void become_write(struct caught *caught)
{
	sim_qp_send_wqe(caught->qp, caught->qp->sq.tail)->opcode = IBV_WR_RDMA_WRITE;
}

/* A response that the requester does not expect. */
void test_other_responses_change_nothing(void)
{
	static void (*const changes[])(struct caught * caught) = {
		precede, skip_one, shorten, miscount, imitate, unsend, become_write};

	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		struct sim_completer comp;
		struct caught caught;

		catch_train(&read_scenario, 0, &caught);
		changes[i](&caught);
		comp = caught.qp->comp;
		TEST_ASSERT_FALSE(take(&caught));
		TEST_ASSERT_EQUAL_MEMORY(&comp, &caught.qp->comp, sizeof(comp));
		release(&caught);
	}
}

/* The last packet of a READ ends it: a train that has as many packets as are left is no train of this READ. */
void test_a_train_does_not_end_a_read(void)
{
	const struct scenario scenario = {.opcode = IBV_WR_RDMA_READ, .bytes = 10 * MTU};
	struct caught caught;

	catch_train(&scenario, 0, &caught);
	side_of(0)->qp->sq.head = side_of(0)->qp->sq.tail + 1;
	sim_qp_send_wqe(caught.qp, caught.qp->sq.tail)->packets = 9;
	TEST_ASSERT_FALSE(take(&caught));
	sim_qp_send_wqe(caught.qp, caught.qp->sq.tail)->packets = 10;
	TEST_ASSERT_TRUE(take(&caught));
	release(&caught);
}

/* The message in progress goes on as after single packets. */
void test_what_a_train_of_requests_ends(void)
{
	struct caught caught;

	catch_train(&write_scenario, 1, &caught);
	caught.qp->resp.nak_outstanding = true;
	TEST_ASSERT_TRUE(take(&caught));
	TEST_ASSERT_FALSE(caught.qp->resp.nak_outstanding);
	TEST_ASSERT_EQUAL_INT(SIM_ACK_NONE, caught.qp->resp.ack);
	release(&caught);
	/* UC sends no ACK, whatever the packet asks for. */
	for (unsigned int uc = 0; uc < 2; uc++) {
		struct scenario scenario = write_scenario;

		scenario.config.type = uc ? IBV_QPT_UC : IBV_QPT_RC;
		catch_train(&scenario, 1, &caught);
		caught.packet.flags |= SIM_PACKET_ACK_REQUEST;
		TEST_ASSERT_TRUE(take(&caught));
		TEST_ASSERT_EQUAL_INT(uc ? SIM_ACK_NONE : SIM_ACK_IN_ORDER, caught.qp->resp.ack);
		release(&caught);
	}
}

/* A train of a response is a progress: the retries and the ack timer begin anew. */
void test_a_train_of_a_response_restores_the_retries(void)
{
	struct sim_engine *sim;
	struct caught caught;
	uint64_t deadline_ns;

	catch_train(&read_scenario, 0, &caught);
	sim = joined.engines[0].sim;
	caught.qp->comp.retries_left = 1;
	deadline_ns = caught.qp->comp.ack_timer.deadline_ns;
	sim_engine_advance(sim, sim_engine_now_ns(sim) + 1000000);
	TEST_ASSERT_TRUE(take(&caught));
	TEST_ASSERT_EQUAL_UINT8(caught.qp->retry_cnt, caught.qp->comp.retries_left);
	TEST_ASSERT_TRUE(caught.qp->comp.ack_timer.deadline_ns > deadline_ns);
	release(&caught);
}

/* --- trains that come otherwise than they were sent --- */

/* Ends the message whose train was taken out of the ring. */
static void expect_end(const struct scenario *scenario)
{
	struct ibv_wc wc = {.status = IBV_WC_GENERAL_ERR};
	const bool read = scenario->opcode == IBV_WR_RDMA_READ;

	joined_settle(&joined, SIM_NEVER - 1);
	TEST_ASSERT_TRUE(engine_poll(side_of(0)->send_cq, &wc));
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, wc.status);
	if (scenario->opcode == IBV_WR_SEND) {
		TEST_ASSERT_TRUE(engine_poll(side_of(1)->recv_cq, &wc));
		TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, wc.status);
		TEST_ASSERT_EQUAL_UINT32(MESSAGE, wc.byte_len);
	}
	TEST_ASSERT_EQUAL_MEMORY(side_of(read)->memory + (read ? RECEIVED_AT : SENT_AT),
				 side_of(!read)->memory + (read ? SENT_AT : RECEIVED_AT), MESSAGE);
	TEST_ASSERT_FALSE(engine_poll(side_of(0)->send_cq, &wc));
	TEST_ASSERT_FALSE(engine_poll(side_of(1)->recv_cq, &wc));
}

static const struct {
	const struct scenario *scenario;
	unsigned int to;
} kinds[] = {{&write_scenario, 1}, {&send_scenario, 1}, {&read_scenario, 0}};

#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

/* A train is lost as its packets would be: one sequence NAK, or (READ) a gap in the response, and a repetition. */
void test_a_lost_train_is_repeated(void)
{
	for (size_t i = 0; i < KINDS; i++) {
		struct caught caught;

		catch_train(kinds[i].scenario, kinds[i].to, &caught);
		expect_end(kinds[i].scenario);
		TEST_ASSERT_EQUAL_UINT64(1, counters_of(0)->retries);
		TEST_ASSERT_EQUAL_UINT64(kinds[i].to, counters_of(1)->sequence_naks_sent);
		release(&caught);
	}
}

/* A response that is asked for again begins with a FIRST, which no train has. */
void test_a_repeated_response_begins_with_a_first(void)
{
	static struct listed listed;
	struct joined_way *answers = &joined.ways[1];
	struct caught caught;

	catch_train(&read_scenario, 0, &caught);
	while (answers->tail != answers->head)
		joined_lose(answers);
	joined_settle(&joined, sim_engine_next_ns(joined.engines[0].sim) - 1);
	/* The requester asks for the rest. */
	sim_engine_advance(joined.engines[0].sim, sim_engine_next_ns(joined.engines[0].sim));
	TEST_ASSERT_TRUE(joined_take(&joined.ways[0]));
	sim_engine_run(joined.engines[1].sim);
	list(answers, &listed);
	TEST_ASSERT_EQUAL_HEX8(SIM_RC_READ_RESPONSE_FIRST, listed.packets[0].opcode);
	TEST_ASSERT_EQUAL_UINT32(caught.packet.psn, listed.packets[0].psn);
	TEST_ASSERT_TRUE(listed.longest > 1);
	expect_end(&read_scenario);
	release(&caught);
}

/* The requester goes back by a timeout, but has no room; meanwhile the train comes. Then the requester goes on behind
 * the train. */
void test_a_train_that_comes_while_its_repetition_waits_for_room(void)
{
	struct sim_engine *sim;
	struct caught caught;

	catch_train(&read_scenario, 0, &caught);
	sim = joined.engines[0].sim;
	while (joined.ways[1].tail != joined.ways[1].head)
		joined_lose(&joined.ways[1]);
	joined.ways[0].limit = 0;
	sim_engine_advance(sim, sim_engine_next_ns(sim));
	TEST_ASSERT_TRUE(sim_way_out_is_awaited(sim));
	TEST_ASSERT_TRUE(take(&caught));
	joined.ways[0].limit = JOINED_RING;
	sim_way_out_ready(sim);
	sim_engine_run(sim);
	TEST_ASSERT_EQUAL_UINT(1, joined.ways[0].head - joined.ways[0].tail);
	expect_end(&read_scenario);
	TEST_ASSERT_EQUAL_UINT64(1, counters_of(0)->ack_timeouts);
	release(&caught);
}

/* The packets of a train that comes twice are duplicates, which are not done again. */
void test_a_train_that_comes_twice(void)
{
	for (size_t i = 0; i < KINDS; i++) {
		struct caught caught;
		uint8_t *byte;

		catch_train(kinds[i].scenario, kinds[i].to, &caught);
		arrive(&caught);
		byte = side_of(kinds[i].to)->memory + (kinds[i].to ? RECEIVED_AT : SENT_AT) +
		       3 * MTU;
		*byte ^= 0xff;
		arrive(&caught);
		*byte ^= 0xff;
		TEST_ASSERT_EQUAL_UINT64(kinds[i].to ? 8 : 0, counters_of(1)->duplicate_requests);
		TEST_ASSERT_EQUAL_UINT64(1 + 16, counters_of(kinds[i].to)->received_packets);
		expect_end(kinds[i].scenario);
		TEST_ASSERT_EQUAL_UINT64(0, counters_of(0)->retries);
		release(&caught);
	}
}

/* The first packet of a train has come before, as one of its own. */
void test_a_train_whose_first_packets_have_come(void)
{
	for (size_t i = 0; i < KINDS; i++) {
		struct caught caught;
		struct sim_packet packet;

		catch_train(kinds[i].scenario, kinds[i].to, &caught);
		packet = caught.packet;
		packet.flags &= (uint8_t)~SIM_PACKET_ACK_REQUEST;
		packet.payload_bytes = caught.span.length_bytes = MTU;
		sim_qp_give_packet(caught.qp, &packet);
		arrive(&caught);
		TEST_ASSERT_EQUAL_UINT64(kinds[i].to, counters_of(1)->duplicate_requests);
		expect_end(kinds[i].scenario);
		TEST_ASSERT_EQUAL_UINT64(0, counters_of(0)->retries);
		release(&caught);
	}
}

/* The port is down: the train is lost. */
void test_a_port_that_is_down_takes_no_train(void)
{
	struct caught caught;
	struct sim_port *port;

	catch_train(&write_scenario, 1, &caught);
	port = &caught.qp->device->ports[0];
	sim_port_set_state(port, IBV_PORT_DOWN);
	arrive(&caught);
	TEST_ASSERT_EQUAL_UINT64(1, port->device->counters.received_packets);
	sim_port_set_state(port, IBV_PORT_ACTIVE);
	expect_end(&write_scenario);
	TEST_ASSERT_EQUAL_UINT64(1, counters_of(0)->retries);
	release(&caught);
}

/* The ack timer runs while a train alone is unacknowledged. */
void test_the_ack_timer_runs_behind_a_train(void)
{
	struct sim_engine *sender;
	struct sim_qp *qp;
	unsigned int before;

	open(&(struct engine_config){0}, 2 * MTU);
	joined.ways[0].limit = 2;
	sender = joined.engines[0].sim;
	qp = side_of(0)->qp;
	post(&write_scenario);
	/* Up to the ACK that leaves nothing unacknowledged. */
	do {
		sim_engine_run(sender);
		joined.ways[0].limit = 0;
		while (joined_take(&joined.ways[0]))
			;
		sim_engine_run(joined.engines[1].sim);
		while (joined_take(&joined.ways[1]))
			;
		if (qp->comp.psn == qp->req.sent_psn)
			break;
		joined.ways[0].limit = 2;
		sim_way_out_ready(sender);
	} while (true);
	TEST_ASSERT_EQUAL_UINT64(SIM_NEVER, qp->comp.ack_timer.deadline_ns);
	before = joined.ways[0].trains;
	joined.ways[0].limit = 2;
	sim_way_out_ready(sender);
	sim_engine_run(sender);
	TEST_ASSERT_TRUE(joined.ways[0].trains > before);
	TEST_ASSERT_TRUE(qp->comp.ack_timer.deadline_ns != SIM_NEVER);
	joined.ways[0].limit = JOINED_RING;
	expect_end(&write_scenario);
}

/* The memory is deregistered while a message comes: nothing more is written, and the first packet behind draws a NAK. */
void test_memory_that_ends_between_two_trains(void)
{
	struct caught caught;
	struct ibv_wc wc;

	catch_train(&write_scenario, 1, &caught);
	arrive(&caught);
	deregister(&caught);
	joined_settle(&joined, SIM_NEVER - 1);
	TEST_ASSERT_TRUE(engine_poll(side_of(0)->send_cq, &wc));
	TEST_ASSERT_EQUAL_INT(IBV_WC_REM_ACCESS_ERR, wc.status);
	TEST_ASSERT_EQUAL_MEMORY(side_of(0)->memory + SENT_AT, side_of(1)->memory + RECEIVED_AT,
				 9 * MTU);
	TEST_ASSERT_FALSE(memcmp(side_of(0)->memory + SENT_AT + 9 * MTU,
				 side_of(1)->memory + RECEIVED_AT + 9 * MTU, MTU) == 0);
	release(&caught);
}

/* Answers a READ with as many packets as the ring has room for. */
static void answer_some(void)
{
	open(&(struct engine_config){0}, 8 * MTU);
	joined.ways[1].limit = 20;
	post(&read_scenario);
	sim_engine_run(joined.engines[0].sim);
	TEST_ASSERT_TRUE(joined_pass(&joined.ways[0]));
	sim_engine_run(joined.engines[1].sim);
	TEST_ASSERT_EQUAL_UINT(3, joined.ways[1].trains);
	joined.ways[1].limit = JOINED_RING;
}

/* A request of another PD may come between (XRC): the READ goes on in its own. */
void test_a_response_goes_on_in_its_pd(void)
{
	answer_some();
	sim_responder_use_pd(side_of(1)->qp, 77);
	expect_end(&read_scenario);
}

/* The same while a READ is answered. */
void test_memory_that_ends_between_two_trains_of_a_response(void)
{
	struct ibv_wc wc;

	answer_some();
	TEST_ASSERT_EQUAL_INT(0, sim_mr_destroy(side_of(1)->mr));
	side_of(1)->mr = NULL;
	joined_settle(&joined, SIM_NEVER - 1);
	TEST_ASSERT_TRUE(engine_poll(side_of(0)->send_cq, &wc));
	TEST_ASSERT_EQUAL_INT(IBV_WC_REM_ACCESS_ERR, wc.status);
}

/* The SRQ grows while a message comes, and its WQEs move. */
void test_an_srq_that_grows_between_two_trains(void)
{
	const struct ibv_srq_attr grown = {.max_wr = 4000};
	struct sim_srq_init init = {.pd = 1, .attr = {.max_wr = 4, .max_sge = 1}};
	struct ibv_recv_wr *bad, wr = {.num_sge = 1};
	struct sim_qp *qps[2];
	struct sim_srq *srq;
	struct ibv_sge sge;

	open(&(struct engine_config){0}, 8 * MTU);
	TEST_ASSERT_EQUAL_INT(0, sim_srq_create(side_of(1)->device, &init, &srq));
	joined_add_qps(&joined, 4, srq, qps);
	for (unsigned int i = 0; i < 2; i++) {
		sim_qp_destroy(side_of(i)->qp);
		side_of(i)->qp = qps[i];
	}
	sge = (struct ibv_sge){(uintptr_t)side_of(1)->memory + RECEIVED_AT, MESSAGE,
			       side_of(1)->mr->lkey};
	wr.sg_list = &sge;
	TEST_ASSERT_EQUAL_INT(0, sim_srq_post(srq, &wr, &bad));
	joined_send(
		&joined, 0,
		(struct engine_send){.opcode = IBV_WR_SEND, .offset = SENT_AT, .bytes = MESSAGE});
	sim_engine_run(joined.engines[0].sim);
	for (unsigned int i = 0; i < 3; i++)
		TEST_ASSERT_TRUE(joined_take(&joined.ways[0]));
	TEST_ASSERT_EQUAL_INT(0, sim_srq_modify(srq, &grown, IBV_SRQ_MAX_WR));
	expect_end(&send_scenario);
	TEST_ASSERT_TRUE(joined.ways[0].trains > 20);
	sim_qp_destroy(side_of(1)->qp);
	side_of(1)->qp = NULL;
	TEST_ASSERT_EQUAL_INT(0, sim_srq_destroy(srq));
}

/* --- trains that no engine sends --- */

static void note(void *arg, const struct vb_event *event, void *element)
{
	(void)arg;
	(void)element;
	drops += event->kind == VB_EVENT_DROP;
}

/* Such a train is dropped as a frame that is shorter than it says, and touches no memory. */
void test_trains_that_no_engine_sends(void)
{
	static const struct {
		unsigned int count;
		uint8_t opcode;
		size_t length; /* of the bytes; 0: as they are */
	} rows[] = {
		{0, SIM_RC_WRITE_MIDDLE, 0},
		{1, SIM_RC_WRITE_MIDDLE, 0},
		{3, SIM_RC_WRITE_MIDDLE, 0}, /* packets of different lengths */
		{UINT32_MAX, SIM_RC_WRITE_MIDDLE, 0},
		{8, SIM_RC_WRITE_LAST, 0},
		{8, SIM_RC_SEND_LAST, 0},
		{8, SIM_RC_ACK, 0},
		{8, SIM_RC_WRITE_MIDDLE, 12}, /* no payload */
		{8, SIM_RC_WRITE_MIDDLE, 11}, /* no BTH */
		{8, 0x1f, 0},
	};
	static uint8_t before[ENGINE_MEMORY_BYTES];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct sim_counters *counters;
		struct caught caught;

		catch_train(&write_scenario, 1, &caught);
		counters = counters_of(1);
		memcpy(before, side_of(1)->memory, sizeof(before));
		drops = 0;
		joined.engines[1].sim->host.note = note;
		caught.count = rows[i].count;
		caught.bytes[0] = rows[i].opcode;
		if (rows[i].length)
			caught.length = rows[i].length;
		for (unsigned int watched = 0; watched < 2; watched++) {
			joined.engines[1].sim->watched = watched;
			arrive(&caught);
			TEST_ASSERT_EQUAL_UINT64(2 + watched, counters->received_packets);
			TEST_ASSERT_EQUAL_UINT64(1 + watched, counters->refused_packets);
			TEST_ASSERT_EQUAL_UINT(watched, drops);
		}
		joined.engines[1].sim->watched = false;
		TEST_ASSERT_EQUAL_MEMORY(before, side_of(1)->memory, sizeof(before));
		expect_end(&write_scenario);
		release(&caught);
	}
}

/* A packet of a train may be longer than any MTU. */
void test_a_train_of_packets_that_are_too_long(void)
{
	static uint8_t bytes[12 + 2 * (SIM_PATH_MTU_MAX + 4)];
	struct caught caught;

	catch_train(&write_scenario, 1, &caught);
	memcpy(bytes, caught.bytes, 12);
	sim_way_out_arrive_train(&caught.qp->device->ports[0], &caught.inlet, bytes, sizeof(bytes),
				 2);
	TEST_ASSERT_EQUAL_UINT64(1, counters_of(1)->discarded[SIM_DISCARD_TRUNCATED]);
	expect_end(&write_scenario);
	release(&caught);
}

/* --- many messages --- */

#define MESSAGES 60u
#define AHEAD	 4u
#define SLOT	 15000u

/* A message from an engine. It has a slot in each memory until it has ended. */
struct message {
	bool reads;
	uint32_t bytes;
	uint8_t *from, *to;
};

static uint64_t random_state;
static struct message messages[2][MESSAGES];

static uint32_t pick(uint32_t below)
{
	return (uint32_t)(engine_random(&random_state) % below);
}

static void post_one(unsigned int engine, unsigned int number)
{
	static const enum ibv_wr_opcode opcodes[] = {IBV_WR_SEND, IBV_WR_RDMA_WRITE,
						     IBV_WR_RDMA_READ};
	struct message *message = &messages[engine][number];
	const uint32_t at = (engine * AHEAD + number % AHEAD) * 2 * SLOT;
	const struct engine_send send = {.opcode = opcodes[pick(3)],
					 .wr_id = number,
					 .offset = at,
					 .bytes = pick(4) ? 1 + pick(SLOT) : pick(2 * MTU),
					 .remote_offset = at + SLOT};
	uint8_t *own = side_of(engine)->memory + at;
	uint8_t *others = side_of(!engine)->memory + at + SLOT;

	*message = (struct message){.reads = send.opcode == IBV_WR_RDMA_READ, .bytes = send.bytes};
	message->from = message->reads ? others : own;
	message->to = message->reads ? own : others;
	for (uint32_t i = 0; i < SLOT; i++)
		message->from[i] = (uint8_t)pick(256);
	memset(message->to, 0, SLOT);
	if (send.opcode == IBV_WR_SEND)
		TEST_ASSERT_EQUAL_INT(0, joined_recv(&joined, !engine, number, at + SLOT, SLOT));
	TEST_ASSERT_EQUAL_INT(0, joined_send(&joined, engine, send));
}

static void expect_moved(const struct message *message)
{
	/* Unity compares no 0 bytes. */
	if (message->bytes)
		TEST_ASSERT_EQUAL_MEMORY(message->from, message->to, message->bytes);
	for (uint32_t i = message->bytes; i < SLOT; i++)
		TEST_ASSERT_EQUAL_UINT8(0, message->to[i]);
}

/* Takes some frames out of both rings, and loses a few of them. */
static void pass_some(void)
{
	for (unsigned int i = 0; i < 2; i++) {
		struct joined_way *way = &joined.ways[i];

		for (unsigned int left = pick(6); left && way->tail != way->head; left--) {
			if (pick(150) == 0)
				joined_lose(way);
			else
				joined_pass(way);
		}
	}
	for (unsigned int i = 0; i < 2; i++)
		sim_engine_run(joined.engines[pick(2)].sim);
	if (pick(30) == 0)
		joined_settle(&joined, SIM_NEVER - 1);
}

/* The messages of an engine end in order. Returns how many have ended. */
static unsigned int poll_ends(unsigned int engine, unsigned int ended)
{
	struct ibv_wc wc;

	while (engine_poll(side_of(engine)->send_cq, &wc)) {
		TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, wc.status);
		TEST_ASSERT_EQUAL_UINT64(ended, wc.wr_id);
		expect_moved(&messages[engine][ended++]);
	}
	while (engine_poll(side_of(engine)->recv_cq, &wc))
		TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, wc.status);
	return ended;
}

static void exchange(void)
{
	unsigned int posted[2] = {0}, ended[2] = {0};

	while (ended[0] < MESSAGES || ended[1] < MESSAGES) {
		for (unsigned int i = 0; i < 2; i++)
			if (posted[i] < MESSAGES && posted[i] - ended[i] < AHEAD && pick(3) == 0)
				post_one(i, posted[i]++);
		pass_some();
		for (unsigned int i = 0; i < 2; i++)
			ended[i] = poll_ends(i, ended[i]);
	}
}

/* Both engines send, and trains and single frames get lost. */
void test_messages_of_any_length_arrive_in_spite_of_losses(void)
{
	uint64_t retries = 0, seed = choose_seed();

	for (unsigned int round = 0; round < 12; round++) {
		random_state = seed + round;
		open(&(struct engine_config){.reads = 4}, MTU * (1 + pick(40)));
		exchange();
		retries += counters_of(0)->retries + counters_of(1)->retries;
		joined_close(&joined);
	}
	TEST_ASSERT_TRUE(retries > 0);
}
