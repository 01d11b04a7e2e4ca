/* SPDX-License-Identifier: MIT */
/* Messages of QP 1 that wait for room in the way out: their order, their receivers, their number. */
#include "sim/net/gsi_line.h"

#include "sim/wire/bytes.h"
#include "test/support/engine.h"
#include "test/support/joined.h"
#include "test/support/talk.h"
#include "unity.h"

#include <string.h>

static struct talk talk;
static struct sim_gsi_lines lines;

void setUp(void)
{
	lines = (struct sim_gsi_lines){0};
}

void tearDown(void)
{
	sim_gsi_lines_end(&lines);
	if (talk.ends[0].sim)
		talk_close(&talk);
}

/* --- lines --- */

static struct sim_gsi_receiver receiver(uint64_t process, uint8_t address)
{
	return (struct sim_gsi_receiver){process, {[15] = address}};
}

static void add(uint64_t process, uint8_t address, uint16_t number)
{
	const struct sim_gsi_receiver to = receiver(process, address);
	struct sim_gsi_letter *letter = sim_gsi_lines_add(&lines, &to);

	TEST_ASSERT_NOT_NULL(letter);
	letter->pkey = number;
}

/* The messages that have left, and the number that may leave for each process. */
static struct {
	uint16_t numbers[16];
	unsigned int count, room[4];
} out;

static bool take(void *arg, const struct sim_gsi_receiver *to, struct sim_gsi_letter *letter)
{
	TEST_ASSERT_EQUAL_PTR(&out, arg);
	if (!out.room[to->process])
		return false;
	out.room[to->process]--;
	out.numbers[out.count++] = letter->pkey;
	return true;
}

static void expect_out(unsigned int count, const uint16_t *numbers)
{
	sim_gsi_lines_release(&lines, take, &out);
	TEST_ASSERT_EQUAL_UINT(count, out.count);
	for (unsigned int i = 0; i < count; i++)
		TEST_ASSERT_EQUAL_UINT(numbers[i], out.numbers[i]);
	memset(&out, 0, sizeof(out));
}

/* A receiver without room delays only its own messages, at each place among the lines. */
void test_each_receiver_has_a_line(void)
{
	for (uint64_t stuck = 1; stuck <= 3; stuck++) {
		const uint16_t all[] = {10, 11, 20, 21, 30, 31};
		uint16_t others[4], own[2];
		unsigned int count = 0;

		for (unsigned int i = 0; i < 2; i++)
			for (uint64_t process = 1; process <= 3; process++)
				add(process, 0, (uint16_t)(process * 10 + i));
		for (unsigned int i = 0; i < 6; i++)
			if (all[i] / 10 != stuck)
				others[count++] = all[i];
			else
				own[all[i] % 10] = all[i];
		memcpy(out.room, (unsigned int[]){0, 9, 9, 9}, sizeof(out.room));
		out.room[stuck] = 0;
		expect_out(4, others);
		for (uint64_t process = 1; process <= 3; process++)
			TEST_ASSERT_EQUAL_INT(
				process == stuck,
				sim_gsi_lines_have(&lines, &(struct sim_gsi_receiver){process}));
		out.room[stuck] = 1;
		expect_out(1, own);
		/* A message that comes later stands behind. */
		add(stuck, 0, 99);
		out.room[stuck] = 9;
		expect_out(2, (uint16_t[]){own[1], 99});
		TEST_ASSERT_NULL(lines.first);
	}
	TEST_ASSERT_EQUAL_UINT(6, lines.made);
}

void test_each_address_has_a_line(void)
{
	const struct sim_gsi_receiver one = receiver(0, 1), other = receiver(0, 2);
	const uint16_t order[] = {1, 3, 2};

	add(0, 1, 1);
	TEST_ASSERT_TRUE(sim_gsi_lines_have(&lines, &one));
	TEST_ASSERT_FALSE(sim_gsi_lines_have(&lines, &other));
	add(0, 2, 2);
	add(0, 1, 3);
	out.room[0] = 9;
	expect_out(3, order);
}

void test_the_most_messages_that_wait(void)
{
	const struct sim_gsi_receiver to[2] = {receiver(1, 0), receiver(2, 0)};

	for (unsigned int round = 0; round < 2; round++) {
		for (unsigned int i = 0; i < SIM_GSI_WAITING_MAX; i++)
			TEST_ASSERT_NOT_NULL(sim_gsi_lines_add(&lines, &to[i & 1]));
		TEST_ASSERT_NULL(sim_gsi_lines_add(&lines, &to[0]));
		TEST_ASSERT_NULL(sim_gsi_lines_add(&lines, &to[1]));
		TEST_ASSERT_EQUAL_UINT(SIM_GSI_WAITING_MAX, lines.made);
		sim_gsi_lines_clear(&lines);
		TEST_ASSERT_FALSE(sim_gsi_lines_have(&lines, &to[0]));
	}
}

/* --- QP 1 --- */

/* Opens an engine whose ring to the other one holds a few frames. */
static struct joined_way *open_with_room(unsigned int room, bool quiet)
{
	talk_open(&talk, &(struct talk_config){.joined = true, .quiet = quiet});
	talk_listen(&talk);
	talk.ends[1].silent = true;
	talk.joined.ways[0].limit = room;
	talk.joined.ways[0].stuck = true;
	return &talk.joined.ways[0];
}

static struct sim_cm *request(uint32_t qpn)
{
	struct sim_cm_request own = talk_request(&talk);
	struct talk_end *end = &talk.ends[0];
	struct sim_cm *cm;

	own.qpn = qpn;
	TEST_ASSERT_EQUAL_INT(0, sim_cm_create(end->sim, end, &cm));
	TEST_ASSERT_EQUAL_INT(0, sim_cm_send_req(cm, end->device, &own));
	return cm;
}

/* All messages come once and in their order, also while a trace and a log are on. */
static void expect_requests(unsigned int count)
{
	talk.joined.ways[0].stuck = false;
	talk_run(&talk);
	TEST_ASSERT_EQUAL_UINT(count, talk_count(&talk, 1, SIM_CM_EVENT_REQ));
	for (unsigned int i = 0; i < count; i++)
		TEST_ASSERT_EQUAL_HEX(0x1000 + i,
				      talk_nth(&talk, 1, SIM_CM_EVENT_REQ, i)->event.request.qpn);
	TEST_ASSERT_EQUAL_UINT(0, talk.joined.ways[0].lost);
	TEST_ASSERT_EQUAL_UINT64(0, talk.ends[0].device->counters.lost_packets);
	TEST_ASSERT_EQUAL_UINT64(count, talk.ends[0].device->counters.sent_packets);
	TEST_ASSERT_FALSE(sim_way_out_is_awaited(talk.ends[0].sim));
}

void test_requests_wait_for_room(void)
{
	for (unsigned int quiet = 0; quiet < 2; quiet++) {
		struct joined_way *way = open_with_room(3, quiet);

		for (unsigned int i = 0; i < 20; i++)
			request(0x1000 + i);
		talk_run(&talk);
		TEST_ASSERT_EQUAL_UINT(3, way->sent);
		/* A message that waits is not sent: neither the trace nor a counter has it. */
		TEST_ASSERT_EQUAL_UINT64(3, talk.ends[0].device->counters.sent_packets);
		TEST_ASSERT_EQUAL_UINT(quiet ? 0 : 3, talk.mad_count);
		TEST_ASSERT_TRUE(sim_way_out_is_awaited(talk.ends[0].sim));
		/* A call without new room changes nothing. */
		sim_way_out_ready(talk.ends[0].sim);
		TEST_ASSERT_EQUAL_UINT(3, way->sent);
		expect_requests(20);
		talk_close(&talk);
	}
}

/* A later message waits behind the earlier ones, even if there is room of which the engine does not know yet. */
void test_no_message_overtakes_those_that_wait(void)
{
	struct joined_way *way = open_with_room(1, false);

	request(0x1000);
	request(0x1001);
	way->limit = 9;
	request(0x1002);
	TEST_ASSERT_EQUAL_UINT(1, way->sent);
	expect_requests(3);
}

/* Packets on a link with delay find no room when they arrive. */
void test_messages_of_a_link_wait_at_its_end(void)
{
	struct engine *engine;

	open_with_room(3, true);
	engine = &talk.joined.engines[0];
	TEST_ASSERT_EQUAL_INT(0, sim_fabric_join(engine->sim, engine->sides[0].device,
						 engine->sides[1].device, 5000, 0));
	for (unsigned int i = 0; i < 20; i++)
		request(0x1000 + i);
	talk_until(&talk, 10000);
	TEST_ASSERT_EQUAL_UINT(3, talk.joined.ways[0].sent);
	TEST_ASSERT_TRUE(sim_way_out_is_awaited(talk.ends[0].sim));
	expect_requests(20);
}

/* The REJ of a requester that gives up stands behind its REQ. */
void test_a_communication_ends_while_its_message_waits(void)
{
	struct sim_cm *cm;

	open_with_room(1, false);
	request(0x1000);
	cm = request(0x1001);
	sim_cm_destroy(cm);
	talk.joined.ways[0].stuck = false;
	talk_run(&talk);
	TEST_ASSERT_EQUAL_UINT(2, talk_count(&talk, 1, SIM_CM_EVENT_REQ));
	TEST_ASSERT_EQUAL_UINT(1, talk_count(&talk, 1, SIM_CM_EVENT_REJ));
	TEST_ASSERT_EQUAL_UINT(0, talk.joined.ways[0].lost);
}

/* The timer of a REQ that waits runs on. */
void test_the_timer_of_a_message_that_waits(void)
{
	open_with_room(1, false);
	request(0x1000);
	request(0x1001);
	talk_until(&talk, UINT64_C(100000000000));
	TEST_ASSERT_EQUAL_UINT(2, talk_count(&talk, 0, SIM_CM_EVENT_REQ_ERROR));
	TEST_ASSERT_EQUAL_UINT(1, talk_sent(&talk, SIM_CM_REQ));
}

/* The PSN of the last message to another machine. */
static uint32_t far_psn(void)
{
	return sim_load_be24(talk.joined.ways[0].far_frame.frame + 14 + 20 + 8 + 9);
}

/* While another machine takes nothing, messages to another process leave. */
void test_another_machine_without_room(void)
{
	uint32_t psn;
	struct sim_cm_request far;
	struct talk_end *end = &talk.ends[0];
	struct sim_gsi_receiver to;
	struct sim_cm *cm;

	open_with_room(9, false);
	talk.joined.ways[0].far_limit = 2;
	far = talk_request(&talk);
	far.path.attr.grh.dgid = engine_gid(77);
	for (unsigned int i = 0; i < 5; i++) {
		TEST_ASSERT_EQUAL_INT(0, sim_cm_create(end->sim, end, &cm));
		TEST_ASSERT_EQUAL_INT(0, sim_cm_send_req(cm, end->device, &far));
	}
	request(0x1000);
	to = (struct sim_gsi_receiver){0};
	TEST_ASSERT_FALSE(sim_gsi_lines_have(&end->sim->net->gsi_lines, &to));
	memcpy(to.gid, engine_gid(77).raw, sizeof(to.gid));
	TEST_ASSERT_TRUE(sim_gsi_lines_have(&end->sim->net->gsi_lines, &to));
	talk.joined.ways[0].stuck = false;
	talk_run(&talk);
	TEST_ASSERT_EQUAL_UINT(2, talk.joined.ways[0].far_frames);
	psn = far_psn();
	TEST_ASSERT_EQUAL_UINT(1, talk_count(&talk, 1, SIM_CM_EVENT_REQ));
	TEST_ASSERT_TRUE(sim_way_out_is_awaited(end->sim));
	talk.joined.ways[0].far_limit = 0;
	sim_way_out_ready(end->sim);
	TEST_ASSERT_EQUAL_UINT(5, talk.joined.ways[0].far_frames);
	/* Each message has the next PSN of its port. */
	TEST_ASSERT_GREATER_OR_EQUAL(psn + 3, far_psn());
	TEST_ASSERT_LESS_OR_EQUAL(psn + 4, far_psn());
	TEST_ASSERT_FALSE(sim_way_out_is_awaited(end->sim));
}

/* An answer without a communication waits as well. */
void test_answers_wait_for_room(void)
{
	struct joined_way *back;

	talk_open(&talk, &(struct talk_config){.joined = true});
	talk_listen(&talk);
	talk.ends[1].verdict = SIM_CM_REFUSED;
	back = &talk.joined.ways[1];
	back->limit = 1;
	back->stuck = true;
	for (unsigned int i = 0; i < 10; i++)
		request(0x1000 + i);
	talk_run(&talk);
	TEST_ASSERT_EQUAL_UINT(1, back->sent);
	back->stuck = false;
	talk_run(&talk);
	TEST_ASSERT_EQUAL_UINT(10, talk_count(&talk, 0, SIM_CM_EVENT_REJ));
	TEST_ASSERT_EQUAL_UINT(0, back->lost);
}

/* More messages than may wait: the way out loses the rest, which the timers repeat. */
void test_more_messages_than_may_wait(void)
{
	struct joined_way *way = open_with_room(3, true);
	struct sim_path path = {0};
	struct ibv_ah_attr attr = engine_ah_attr(&talk.joined.engines[0].sides[1].gid);
	uint8_t mad[SIM_MAD_BYTES];

	TEST_ASSERT_EQUAL_INT(0, sim_path_resolve(talk.ends[0].device, &attr, &path));
	sim_mad_begin(mad, SIM_CM_REQ, 1);
	sim_mad_set(mad, SIM_CM_REQ_SERVICE_ID, TALK_SERVICE);
	for (unsigned int i = 0; i < SIM_GSI_WAITING_MAX + 10; i++)
		sim_gsi_send(talk.ends[0].sim, &path, 0xffff, mad);
	TEST_ASSERT_EQUAL_UINT(3, way->sent);
	TEST_ASSERT_EQUAL_UINT(7, way->lost);
	TEST_ASSERT_EQUAL_UINT64(7, talk.ends[0].device->counters.lost_packets);
	TEST_ASSERT_EQUAL_UINT(SIM_GSI_WAITING_MAX, talk.ends[0].sim->net->gsi_lines.made);
}

/* The messages that wait are the parent's. */
void test_a_child_forgets_messages_that_wait(void)
{
	struct joined_way *way = open_with_room(1, false);

	request(0x1000);
	request(0x1001);
	sim_cm_forked(talk.ends[0].sim);
	TEST_ASSERT_FALSE(sim_way_out_is_awaited(talk.ends[0].sim));
	way->stuck = false;
	talk_run(&talk);
	TEST_ASSERT_EQUAL_UINT(1, way->sent);
}

/* Without a way out, the engine itself takes the messages that have waited for it. */
void test_the_way_out_is_taken_away(void)
{
	open_with_room(1, false);
	request(0x1000);
	request(0x1001);
	sim_way_out_set(talk.ends[0].sim, NULL);
	TEST_ASSERT_FALSE(sim_way_out_is_awaited(talk.ends[0].sim));
	sim_engine_run(talk.ends[0].sim);
	TEST_ASSERT_EQUAL_UINT(1, talk_count(&talk, 0, SIM_CM_EVENT_REJ));
}
