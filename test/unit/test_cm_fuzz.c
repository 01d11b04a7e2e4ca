/* SPDX-License-Identifier: MIT */
/*
 * A hostile peer: messages of random bytes, of random fields, with right, stale and forged IDs, in floods.
 * The connection manager stays within its bounds, and connections whose IDs nobody knows stay as they are.
 */
#include "test/support/engine.h"
#include "test/support/joined.h"
#include "test/support/talk.h"
#include "test/unit/seed.h"
#include "unity.h"

#include <string.h>

#define ROUNDS	   40
#define STEPS	   400
#define OWNED_MAX  64
#define EVENTS_MAX 100000

static struct talk talk;
static uint64_t state;

/* The communications that the owner of both ends has. */
static struct sim_cm *owned[OWNED_MAX];
static unsigned int owned_count, events;

static uint32_t below(uint32_t limit)
{
	return (uint32_t)(sim_random_next(&state) >> 33) % limit;
}

void setUp(void)
{
	state = choose_seed();
	owned_count = events = 0;
}

void tearDown(void)
{
	if (talk.ends[0].sim)
		talk_close(&talk);
}

/* --- an owner that does anything --- */

static struct sim_cm_private some_private(void)
{
	static uint8_t bytes[256];

	return (struct sim_cm_private){bytes, below(8) ? below(90) : below(256)};
}

/* Calls any function; most calls are refused. */
static void act(struct sim_cm *cm)
{
	struct sim_cm_rejection rejection = {(uint16_t)below(40), "info", below(80), {0}};
	struct sim_cm_answer answer = {.status = (uint8_t)below(8), .qpn = below(1 << 24)};
	struct sim_cm_request request = talk_request(&talk);
	struct sim_cm_reply reply = talk_reply();
	struct sim_cm_private data = some_private();
	struct ibv_qp_attr attr = {.qp_state = (enum ibv_qp_state)below(8)};
	int mask;

	request.qpn = reply.qpn = below(1 << 10);
	rejection.ari_bytes = rejection.ari_bytes > 4 ? 0 : rejection.ari_bytes;
	switch (below(11)) {
	case 0:
		sim_cm_send_req(cm, talk.ends[below(2)].device, &request);
		break;
	case 1:
	case 2:
		sim_cm_send_rep(cm, &reply);
		break;
	case 3:
	case 4:
		sim_cm_send_rtu(cm, &data);
		break;
	case 5:
		sim_cm_send_rej(cm, &rejection);
		break;
	case 6:
		sim_cm_send_mra(cm, (uint8_t)below(40), &data);
		break;
	case 7:
		sim_cm_send_dreq(cm, &data);
		break;
	case 8:
		sim_cm_send_drep(cm, &data);
		break;
	case 9:
		sim_cm_send_sidr_rep(cm, &answer);
		break;
	default:
		sim_cm_init_qp_attr(cm, &attr, &mask);
		sim_cm_notify(cm);
		break;
	}
}

static enum sim_cm_verdict on_event(void *arg, struct sim_cm *cm, const struct sim_cm_event *event)
{
	const bool is_new = event->kind == SIM_CM_EVENT_REQ || event->kind == SIM_CM_EVENT_SIDR_REQ;

	(void)arg;
	TEST_ASSERT_TRUE(++events < EVENTS_MAX);
	if (is_new && (owned_count == OWNED_MAX || !below(4)))
		return below(2) ? SIM_CM_REFUSED : SIM_CM_NO_ROOM;
	if (is_new)
		owned[owned_count++] = cm;
	if (below(2))
		act(cm);
	return SIM_CM_TAKEN;
}

/* --- messages --- */

/* An ID that some communication has, or a wrong one. */
static uint32_t some_id(void)
{
	const struct sim_cm *cm = owned_count ? owned[below(owned_count)] : NULL;

	if (!cm || !below(6))
		return below(4) ? (uint32_t)sim_random_next(&state) : 0;
	return below(2) ? sim_cm_local_id(cm) : sim_cm_remote_id(cm);
}

/* The IDs and the QPN of some communication, one of which may be wrong. */
static void aim(uint8_t *mad)
{
	const struct sim_cm *cm = owned_count ? owned[below(owned_count)] : NULL;

	if (!cm)
		return;
	sim_mad_set(mad, SIM_CM_REP_LOCAL_ID, below(8) ? sim_cm_remote_id(cm) : some_id());
	sim_mad_set(mad, SIM_CM_REP_REMOTE_ID, below(8) ? sim_cm_local_id(cm) : some_id());
	if (sim_mad_message(mad) == SIM_CM_DREQ)
		sim_mad_set(mad, SIM_CM_DREQ_REMOTE_QPN, cm->local_qpn);
	else if (sim_mad_message(mad) == SIM_CM_LAP)
		sim_mad_set(mad, SIM_CM_LAP_REMOTE_QPN, cm->local_qpn);
	else if (sim_mad_message(mad) == SIM_CM_REP && !sim_cm_remote_id(cm))
		sim_mad_set(mad, SIM_CM_REP_LOCAL_ID, some_id());
}

static void randomise(uint8_t *mad)
{
	for (unsigned int i = 0; i < SIM_MAD_BYTES; i++)
		mad[i] = (uint8_t)sim_random_next(&state);
}

static void change_fields(uint8_t *mad, unsigned int message)
{
	for (unsigned int i = 0; i < SIM_CM_FIELDS; i++)
		if (sim_cm_field_info[i].message == message && sim_cm_field_info[i].bits &&
		    !below(12))
			sim_mad_set(mad, (enum sim_cm_field)i,
				    below(2) ? sim_random_next(&state) : below(4) * UINT64_MAX);
}

/* A message that may mean something. */
static void make_message(uint8_t *mad)
{
	const unsigned int message = 1 + below(SIM_CM_MESSAGES - 1);
	const struct talk_mad *seen = talk.mad_count ? &talk.mads[below(talk.mad_count)] : NULL;

	randomise(mad);
	if (!below(10))
		return;
	if (seen && below(3)) {
		memcpy(mad, seen->mad, SIM_MAD_BYTES);
		change_fields(mad, sim_mad_message(mad));
		return;
	}
	sim_mad_begin(mad, (enum sim_cm_message)message, sim_random_next(&state));
	change_fields(mad, message);
	sim_mad_set(mad, SIM_CM_REP_LOCAL_ID, some_id());
	if (message != SIM_CM_REQ && message != SIM_CM_SIDR_REQ)
		aim(mad);
	else
		sim_mad_set(mad,
			    message == SIM_CM_REQ ? SIM_CM_REQ_SERVICE_ID
						  : SIM_CM_SIDR_REQ_SERVICE_ID,
			    TALK_SERVICE);
}

static void step(void)
{
	struct talk_end *end = &talk.ends[below(2)];
	uint8_t mad[SIM_MAD_BYTES];
	struct sim_cm *cm;

	switch (below(8)) {
	case 0:
		if (owned_count < OWNED_MAX && !sim_cm_create(end->sim, end, &cm))
			owned[owned_count++] = cm;
		break;
	case 1:
		if (owned_count && !below(3)) {
			const unsigned int i = below(owned_count);

			sim_cm_destroy(owned[i]);
			owned[i] = owned[--owned_count];
		}
		break;
	case 2:
		if (owned_count)
			act(owned[below(owned_count)]);
		break;
	case 3:
		talk_until(&talk, talk_now(&talk) + below(1u << below(31)));
		break;
	default:
		make_message(mad);
		talk_inject(&talk, below(2), mad);
		break;
	}
	talk_run(&talk);
}

static void fuzz(const struct talk_config *config)
{
	talk_open(&talk, config);
	for (unsigned int i = 0; i < 2; i++)
		talk.ends[i].sim->cm->owner.event = on_event;
	talk_listen(&talk);
	for (unsigned int i = 0; i < STEPS; i++) {
		step();
		if (talk.mad_count == TALK_MADS_MAX)
			talk.mad_count = below(TALK_MADS_MAX);
		/* Nobody but the owner and the listener has communications. */
		TEST_ASSERT_EQUAL_UINT(
			owned_count + 1,
			talk.ends[0].sim->cm->table.live +
				(config->joined ? talk.ends[1].sim->cm->table.live : 0));
	}
	while (owned_count)
		sim_cm_destroy(owned[--owned_count]);
	talk_run(&talk);
	talk_until(&talk, talk_now(&talk) + UINT64_C(1000000000));
	TEST_ASSERT_EQUAL_UINT64(SIM_NEVER, sim_engine_next_ns(talk.ends[0].sim));
	talk_close(&talk);
}

void test_random_messages(void)
{
	for (unsigned int i = 0; i < ROUNDS; i++) {
		const struct talk_config config = {
			.joined = i & 1, .infiniband = i & 2, .grh = i & 4, .same_device = i & 8};

		fuzz(&config);
	}
}

/* --- forged IDs --- */

/* Nobody who does not know both IDs of a connection ends it, whatever he sends. */
void test_forged_ids_harm_no_connection(void)
{
	for (unsigned int i = 0; i < 8; i++) {
		talk_open(&talk, &(struct talk_config){.joined = i & 1, .infiniband = i & 2});
		talk_establish(&talk);
		talk.ends[1].verdict = SIM_CM_REFUSED;
		for (unsigned int n = 0; n < 2000; n++) {
			const unsigned int side = below(2);
			const struct sim_cm *to = talk.ends[side].cm;
			uint8_t mad[SIM_MAD_BYTES];
			uint32_t local = below(3) ? sim_cm_local_id(to) : some_id();
			uint32_t remote = below(3) ? some_id() : sim_cm_remote_id(to);

			make_message(mad);
			if (sim_mad_message(mad) == SIM_CM_REQ)
				continue;
			if (local == sim_cm_local_id(to) && remote == sim_cm_remote_id(to))
				remote ^= 1u << below(32);
			sim_mad_set(mad, SIM_CM_REP_LOCAL_ID, remote);
			sim_mad_set(mad, SIM_CM_REP_REMOTE_ID, local);
			talk_inject(&talk, side, mad);
			talk.ends[0].count = talk.ends[1].count = 0;
		}
		for (unsigned int side = 0; side < 2; side++)
			TEST_ASSERT_EQUAL_STRING(
				"ESTABLISHED", sim_cm_state_name(sim_cm_state(talk.ends[side].cm)));
		sim_cm_send_dreq(talk.ends[0].cm, &(struct sim_cm_private){0});
		talk_run(&talk);
		TEST_ASSERT_EQUAL_INT(SIM_CM_TIMEWAIT, sim_cm_state(talk.ends[1].cm));
		talk_close(&talk);
	}
}

/* --- floods --- */

static void write_req(uint8_t *mad, uint32_t n)
{
	memcpy(mad, talk_mad(&talk, SIM_CM_REQ, 0)->mad, SIM_MAD_BYTES);
	sim_mad_set(mad, SIM_CM_REQ_LOCAL_ID, 0x40000000u + n);
	sim_mad_set(mad, SIM_CM_REQ_QPN, 0x400000u + n % 0x100000);
	sim_mad_set(mad, SIM_CM_REQ_CA_GUID, 0xbad);
}

/* More messages in one instant than wait at most: the others are dropped and counted. */
void test_a_flood_of_messages(void)
{
	struct sim_cm_manager *manager;
	uint8_t mad[SIM_MAD_BYTES];
	const struct sim_route *route;

	talk_open(&talk, &(struct talk_config){0});
	talk_establish(&talk);
	manager = talk.ends[1].sim->cm;
	route = &talk.ends[0].cm->path.route;
	for (uint32_t i = 0; i < 3 * SIM_CM_WAITING_MAX; i++) {
		struct sim_net *net = talk.ends[1].sim->net;

		write_req(mad, i);
		net->gsi.receive(net->gsi.arg,
				 &(struct sim_gsi_message){&talk.ends[1].device->ports[0], mad,
							   route, 0xffff});
	}
	TEST_ASSERT_EQUAL_UINT32(SIM_CM_WAITING_MAX, manager->arrivals);
	TEST_ASSERT_EQUAL_UINT64(2 * SIM_CM_WAITING_MAX,
				 talk.ends[1].device->counters.discarded[SIM_DISCARD_CM_FULL]);
	talk.ends[1].verdict = SIM_CM_REFUSED;
	talk_run(&talk);
	TEST_ASSERT_EQUAL_UINT32(SIM_CM_WAITING_MAX, manager->arrivals);
	TEST_ASSERT_EQUAL_UINT32(3, manager->table.live);
	TEST_ASSERT_EQUAL_INT(SIM_CM_ESTABLISHED, sim_cm_state(talk.ends[0].cm));
}

/* An owner that takes each request: no more communications than the bound, and established ones stay. */
void test_a_flood_of_requests(void)
{
	const uint32_t limit = 5000;
	struct sim_cm *cms[2];
	uint8_t mad[SIM_MAD_BYTES];

	talk_open(&talk, &(struct talk_config){.joined = true});
	talk_establish(&talk);
	for (unsigned int i = 0; i < 2; i++)
		cms[i] = talk.ends[i].cm;
	talk.ends[1].silent = true;
	talk.ends[1].sim->cm->table.limit = limit;
	for (uint32_t i = 0; i < limit + 1000; i++) {
		write_req(mad, i);
		talk_inject(&talk, 1, mad);
	}
	TEST_ASSERT_EQUAL_UINT32(limit, talk.ends[1].sim->cm->table.live);
	TEST_ASSERT_EQUAL_UINT64(1002,
				 talk.ends[1].device->counters.discarded[SIM_DISCARD_CM_FULL]);
	sim_cm_send_dreq(cms[0], &(struct sim_cm_private){0});
	talk_run(&talk);
	TEST_ASSERT_EQUAL_INT(SIM_CM_DREQ_SENT, sim_cm_state(cms[0]));
	TEST_ASSERT_EQUAL_INT(SIM_CM_DREQ_RCVD, sim_cm_state(cms[1]));
}

/* An established connection of both sides that a flood must not harm. */
static struct sim_cm *kept[2];

static void establish_and_keep(void)
{
	talk_open(&talk, &(struct talk_config){.joined = true, .quiet = false});
	talk_establish(&talk);
	for (unsigned int i = 0; i < 2; i++)
		kept[i] = talk.ends[i].cm;
}

static void expect_kept(void)
{
	for (unsigned int i = 0; i < 2; i++)
		TEST_ASSERT_EQUAL_INT(SIM_CM_ESTABLISHED, sim_cm_state(kept[i]));
	TEST_ASSERT_EQUAL_INT(0, sim_cm_send_dreq(kept[0], &(struct sim_cm_private){0}));
	talk_run(&talk);
	talk_run(&talk);
	for (unsigned int i = 0; i < 2; i++)
		TEST_ASSERT_EQUAL_INT(SIM_CM_TIMEWAIT, sim_cm_state(kept[i]));
}

/* Requests beyond the backlog cost no memory and no answer. */
void test_a_flood_of_requests_beyond_the_backlog(void)
{
	const struct sim_counters *counters;
	uint8_t mad[SIM_MAD_BYTES];

	establish_and_keep();
	counters = &talk.ends[1].device->counters;
	talk.ends[1].verdict = SIM_CM_NO_ROOM;
	for (uint32_t i = 0; i < 20000; i++) {
		write_req(mad, i % 7000);
		talk_inject(&talk, 1, mad);
	}
	TEST_ASSERT_EQUAL_UINT64(20000, counters->discarded[SIM_DISCARD_CM_BACKLOG]);
	TEST_ASSERT_EQUAL_UINT32(2, talk.ends[1].sim->cm->table.live);
	TEST_ASSERT_EQUAL_UINT(0, talk_sent(&talk, SIM_CM_REJ));
	TEST_ASSERT_EQUAL_UINT32(0, talk.ends[1].sim->net->gsi_lines.made);
	expect_kept();
}

/* A side answers each DREQ that is for none of its connections. While the sender takes no answer, a bounded number
 * of answers waits. */
void test_a_flood_of_messages_that_want_an_answer(void)
{
	struct joined_way *back;
	uint8_t mad[SIM_MAD_BYTES];

	establish_and_keep();
	back = &talk.joined.ways[1];
	back->limit = 4;
	back->stuck = true;
	for (uint32_t i = 0; i < SIM_GSI_WAITING_MAX + 3000; i++) {
		sim_mad_begin(mad, SIM_CM_DREQ, i);
		sim_mad_set(mad, SIM_CM_DREQ_LOCAL_ID, sim_cm_local_id(kept[0]));
		sim_mad_set(mad, SIM_CM_DREQ_REMOTE_ID, sim_cm_local_id(kept[1]) ^ 0x100000);
		talk_inject(&talk, 1, mad);
	}
	TEST_ASSERT_EQUAL_UINT32(SIM_GSI_WAITING_MAX, talk.ends[1].sim->net->gsi_lines.made);
	TEST_ASSERT_EQUAL_UINT(3000 - 4, back->lost);
	TEST_ASSERT_EQUAL_UINT32(2, talk.ends[1].sim->cm->table.live);
	back->stuck = false;
	back->limit = JOINED_RING;
	expect_kept();
	TEST_ASSERT_FALSE(sim_way_out_is_awaited(talk.ends[1].sim));
}
