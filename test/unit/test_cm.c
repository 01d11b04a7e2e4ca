/* SPDX-License-Identifier: MIT */
/* The connection manager: a connection is made, used and ended, on both link layers. */
#include "test/support/engine.h"
#include "test/support/joined.h"
#include "test/support/talk.h"
#include "unity.h"

#include <errno.h>
#include <string.h>

static struct talk talk;

void setUp(void)
{
}

void tearDown(void)
{
	if (talk.ends[0].sim)
		talk_close(&talk);
}

static enum sim_cm_state state(unsigned int side)
{
	return sim_cm_state(talk.ends[side].cm);
}

static const struct talk_event *event(unsigned int side, enum sim_cm_event_kind kind)
{
	const struct talk_event *found = talk_nth(&talk, side, kind, 0);

	TEST_ASSERT_NOT_NULL(found);
	TEST_ASSERT_NULL(talk_nth(&talk, side, kind, 1));
	return found;
}

static uint64_t transaction(enum sim_cm_message message)
{
	return sim_mad_get(talk_mad(&talk, message, 0)->mad, SIM_CM_NONE_TRANSACTION_ID);
}

/* All ways that a connection can take. */
static const struct talk_config configs[] = {
	{0},
	{.quiet = true},
	{.same_device = true},
	{.infiniband = true},
	{.infiniband = true, .grh = true},
	{.infiniband = true, .quiet = true},
	{.joined = true},
	{.joined = true, .quiet = true},
	{.joined = true, .infiniband = true},
	{.joined = true, .infiniband = true, .grh = true, .quiet = true},
	{.joined = true, .same_device = true},
};

static void each(void (*check)(void))
{
	for (size_t i = 0; i < sizeof(configs) / sizeof(configs[0]); i++) {
		talk_open(&talk, &configs[i]);
		check();
		talk_close(&talk);
	}
}

static void connect_and_disconnect(void)
{
	const uint64_t timewait_ns = UINT64_C(4096) << 15;
	uint64_t ended_ns;

	talk_establish(&talk);
	TEST_ASSERT_EQUAL_PTR(talk.ends[1].listener, event(1, SIM_CM_EVENT_REQ)->listener);
	TEST_ASSERT_EQUAL_INT(SIM_CM_REQ_RCVD, event(1, SIM_CM_EVENT_REQ)->state);
	TEST_ASSERT_EQUAL_MEMORY("hello\0", event(1, SIM_CM_EVENT_REQ)->private_data, 6);
	TEST_ASSERT_EQUAL_MEMORY("reply\0", event(0, SIM_CM_EVENT_REP)->private_data, 6);
	TEST_ASSERT_EQUAL_INT(SIM_CM_REP_RCVD, event(0, SIM_CM_EVENT_REP)->state);
	TEST_ASSERT_EQUAL_MEMORY("ready\0", event(1, SIM_CM_EVENT_RTU)->private_data, 6);
	TEST_ASSERT_EQUAL_INT(SIM_CM_ESTABLISHED, event(1, SIM_CM_EVENT_RTU)->state);
	TEST_ASSERT_EQUAL_UINT32(sim_cm_local_id(talk.ends[0].cm),
				 sim_cm_remote_id(talk.ends[1].cm));
	TEST_ASSERT_EQUAL_UINT32(sim_cm_local_id(talk.ends[1].cm),
				 sim_cm_remote_id(talk.ends[0].cm));

	TEST_ASSERT_EQUAL_INT(
		0, sim_cm_send_dreq(talk.ends[0].cm, &(struct sim_cm_private){"end", 3}));
	TEST_ASSERT_EQUAL_INT(SIM_CM_DREQ_SENT, state(0));
	talk_run(&talk);
	TEST_ASSERT_EQUAL_MEMORY("end\0", event(1, SIM_CM_EVENT_DREQ)->private_data, 4);
	TEST_ASSERT_EQUAL_MEMORY("bye\0", event(0, SIM_CM_EVENT_DREP)->private_data, 4);
	TEST_ASSERT_EQUAL_INT(SIM_CM_TIMEWAIT, state(0));
	TEST_ASSERT_EQUAL_INT(SIM_CM_TIMEWAIT, state(1));
	ended_ns = talk_now(&talk);
	/* Life time 14, and on the active side the ack delay 5: twice the life time. */
	talk_until(&talk, ended_ns + timewait_ns - 1);
	TEST_ASSERT_EQUAL_UINT(0, talk_count(&talk, 0, SIM_CM_EVENT_TIMEWAIT_EXIT));
	talk_until(&talk, ended_ns + 4 * timewait_ns);
	TEST_ASSERT_EQUAL_INT(SIM_CM_IDLE, event(0, SIM_CM_EVENT_TIMEWAIT_EXIT)->state);
	TEST_ASSERT_EQUAL_INT(SIM_CM_IDLE, event(1, SIM_CM_EVENT_TIMEWAIT_EXIT)->state);
	TEST_ASSERT_EQUAL_UINT64(SIM_NEVER, sim_engine_next_ns(talk.ends[0].sim));
	TEST_ASSERT_EQUAL_UINT64(0, talk.ends[0].device->counters.dropped_packets);
	TEST_ASSERT_EQUAL_UINT64(0, talk.ends[1].device->counters.dropped_packets);
	if (talk.config.quiet)
		return;
	TEST_ASSERT_EQUAL_UINT(1, talk_sent(&talk, SIM_CM_REQ));
	TEST_ASSERT_EQUAL_UINT(1, talk_sent(&talk, SIM_CM_REP));
	TEST_ASSERT_EQUAL_UINT(1, talk_sent(&talk, SIM_CM_RTU));
	TEST_ASSERT_EQUAL_UINT(1, talk_sent(&talk, SIM_CM_DREQ));
	TEST_ASSERT_EQUAL_UINT(1, talk_sent(&talk, SIM_CM_DREP));
	/* Answers have the transaction ID of their requests. */
	TEST_ASSERT_EQUAL_HEX64(transaction(SIM_CM_REQ), transaction(SIM_CM_REP));
	TEST_ASSERT_EQUAL_HEX64(transaction(SIM_CM_REQ), transaction(SIM_CM_RTU));
	TEST_ASSERT_EQUAL_HEX64(transaction(SIM_CM_DREQ), transaction(SIM_CM_DREP));
}

void test_a_connection_is_made_and_ended(void)
{
	each(connect_and_disconnect);
}

/* --- addresses --- */

static void set_gids(const union ibv_gid gids[2], enum ibv_gid_type type)
{
	for (unsigned int i = 0; i < 2; i++) {
		for (unsigned int n = 0; n < (talk.config.joined ? 2u : 1u); n++) {
			struct engine *engine =
				talk.config.joined ? &talk.joined.engines[n] : &talk.engine;

			TEST_ASSERT_EQUAL_INT(0,
					      sim_port_set_gid(&engine->sides[i].device->ports[0],
							       1, &gids[i], type));
			engine->sides[i].gid = gids[i];
		}
	}
}

/* Answers have the RoCE version and the addresses of the request. */
static void check_route(const union ibv_gid gids[2], enum ibv_gid_type type)
{
	set_gids(gids, type);
	talk_establish(&talk);
	TEST_ASSERT_EQUAL_INT(0, sim_cm_send_dreq(talk.ends[1].cm, &(struct sim_cm_private){0}));
	talk_run(&talk);
	TEST_ASSERT_EQUAL_UINT(5, talk.mad_count);
	for (unsigned int i = 0; i < 5; i++) {
		const struct sim_route *route = &talk.mads[i].route;
		const bool back = i == 1 || i == 3;

		TEST_ASSERT_EQUAL_INT(type == IBV_GID_TYPE_ROCE_V1, route->roce_v1);
		TEST_ASSERT_EQUAL_MEMORY(gids[back].raw, route->source_gid, 16);
		TEST_ASSERT_EQUAL_MEMORY(gids[!back].raw, route->dest_gid, 16);
		TEST_ASSERT_EQUAL_UINT(64, route->hop_limit);
	}
}

void test_addresses_of_roce(void)
{
	const union ibv_gid ipv4[2] = {engine_gid(1), engine_gid(2)};
	const union ibv_gid ipv6[2] = {{.raw = {0xfd, [15] = 1}}, {.raw = {0xfd, [15] = 2}}};

	for (unsigned int i = 0; i < 8; i++) {
		talk_open(&talk, &(struct talk_config){.joined = i & 1});
		check_route(i & 2 ? ipv6 : ipv4,
			    i & 4 ? IBV_GID_TYPE_ROCE_V1 : IBV_GID_TYPE_ROCE_V2);
		talk_close(&talk);
	}
}

/* Each repetition of a request to another machine leaves the engine once, and no other process gets
 * the request. */
void test_a_request_to_another_machine(void)
{
	struct sim_cm_request request;
	struct talk_end *end = &talk.ends[0];

	talk_open(&talk, &(struct talk_config){.joined = true});
	talk_listen(&talk);
	request = talk_request(&talk);
	request.path.attr.grh.dgid = engine_gid(77);
	TEST_ASSERT_EQUAL_INT(0, sim_cm_create(end->sim, end, &end->cm));
	TEST_ASSERT_EQUAL_INT(0, sim_cm_send_req(end->cm, end->device, &request));
	talk_run(&talk);
	TEST_ASSERT_EQUAL_UINT(1, talk.joined.ways[0].far_frames);
	TEST_ASSERT_EQUAL_UINT(0, talk_count(&talk, 1, SIM_CM_EVENT_REQ));
	talk_until(&talk, UINT64_C(100000000000));
	TEST_ASSERT_EQUAL_UINT(4, talk.joined.ways[0].far_frames);
	TEST_ASSERT_EQUAL_UINT(1, talk_count(&talk, 0, SIM_CM_EVENT_REQ_ERROR));
	/* An address that nothing leads to is refused at once. */
	request.path.attr.grh.dgid = engine_gid(78);
	TEST_ASSERT_EQUAL_INT(ENETUNREACH, sim_cm_send_req(end->cm, end->device, &request));
	TEST_ASSERT_EQUAL_INT(SIM_CM_IDLE, state(0));
}

/* --- the process of a side ends --- */

static const struct talk_config separate[] = {
	{.joined = true},
	{.joined = true, .infiniband = true},
};

static void leave(unsigned int side)
{
	TEST_ASSERT_TRUE(sim_cm_leave(talk.ends[side].sim));
	talk_run(&talk);
}

static unsigned int reason_of(unsigned int side)
{
	return event(side, SIM_CM_EVENT_REJ)->event.rejection.reason;
}

void test_the_peer_of_a_process_that_ends(void)
{
	for (unsigned int i = 0; i < 4; i++) {
		const unsigned int leaver = i & 1;

		talk_open(&talk, &separate[i / 2]);
		talk_establish(&talk);
		leave(leaver);
		TEST_ASSERT_EQUAL_UINT(0, talk_count(&talk, leaver, SIM_CM_EVENT_DREQ));
		event(!leaver, SIM_CM_EVENT_DREQ);
		TEST_ASSERT_EQUAL_INT(SIM_CM_TIMEWAIT, state(!leaver));
		TEST_ASSERT_EQUAL_UINT(1, talk_sent(&talk, SIM_CM_DREQ));
		/* Only once. */
		TEST_ASSERT_FALSE(sim_cm_leave(talk.ends[leaver].sim));
		talk_close(&talk);
	}
}

void test_the_peer_of_a_process_that_ends_during_a_handshake(void)
{
	for (unsigned int i = 0; i < 4; i++) {
		const unsigned int leaver = i & 1;

		talk_open(&talk, &separate[i / 2]);
		talk_listen(&talk);
		talk.ends[1].silent = true;
		talk_connect(&talk);
		talk_run(&talk);
		TEST_ASSERT_EQUAL_INT(SIM_CM_REQ_RCVD, state(1));
		leave(leaver);
		TEST_ASSERT_EQUAL_UINT(leaver ? SIM_CM_REJ_CONSUMER : SIM_CM_REJ_TIMEOUT,
				       reason_of(!leaver));
		TEST_ASSERT_EQUAL_INT(SIM_CM_IDLE, state(!leaver));
		talk_close(&talk);
	}
}

void test_all_peers_of_a_process_that_ends(void)
{
	struct talk_end *end = &talk.ends[0];
	struct sim_cm_request request;
	struct sim_cm *first;

	talk_open(&talk, &separate[0]);
	talk_listen(&talk);
	talk.ends[1].silent = true;
	talk_connect(&talk);
	first = end->cm;
	request = talk_request(&talk);
	request.qpn++;
	TEST_ASSERT_EQUAL_INT(0, sim_cm_create(end->sim, end, &end->cm));
	TEST_ASSERT_EQUAL_INT(0, sim_cm_send_req(end->cm, end->device, &request));
	talk_run(&talk);
	TEST_ASSERT_EQUAL_UINT(2, talk_count(&talk, 1, SIM_CM_EVENT_REQ));
	leave(0);
	TEST_ASSERT_EQUAL_UINT(2, talk_count(&talk, 1, SIM_CM_EVENT_REJ));
	TEST_ASSERT_EQUAL_INT(SIM_CM_IDLE, sim_cm_state(first));
	TEST_ASSERT_EQUAL_INT(SIM_CM_IDLE, state(0));
}

void test_a_process_that_only_listens_ends(void)
{
	talk_open(&talk, &separate[0]);
	talk_listen(&talk);
	TEST_ASSERT_FALSE(sim_cm_leave(talk.ends[1].sim));
	TEST_ASSERT_EQUAL_INT(SIM_CM_LISTEN, sim_cm_state(talk.ends[1].listener));
	TEST_ASSERT_EQUAL_UINT(0, talk.mad_count);
}

void test_a_process_without_connection_manager_ends(void)
{
	struct engine engine;

	engine_open(&engine, &(struct engine_config){.quiet = true});
	TEST_ASSERT_FALSE(sim_cm_leave(engine.sim));
	engine_close(&engine);
}
