/* SPDX-License-Identifier: MIT */
/*
 * The state machine of the connection manager on the virtual clock: each message lost, repeated, late or
 * refused, in one engine and in two, on both link layers.
 */
#include "sim/cm/ip.h"
#include "test/support/engine.h"
#include "test/support/joined.h"
#include "test/support/talk.h"
#include "unity.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* The times of talk_request(): of a REQ at side 0, of a REP at side 1. */
#define REQ_NS (2 * (UINT64_C(4096) << 14) + (UINT64_C(4096) << 16))
#define REP_NS (UINT64_C(4096) << 15)

static struct talk talk;

void setUp(void)
{
}

void tearDown(void)
{
	if (talk.ends[0].sim)
		talk_close(&talk);
}

static void each(void (*check)(void))
{
	static const struct talk_config configs[] = {
		{0},
		{.infiniband = true},
		{.infiniband = true, .grh = true},
		{.joined = true},
		{.joined = true, .infiniband = true},
	};

	for (size_t i = 0; i < sizeof(configs) / sizeof(configs[0]); i++) {
		talk_open(&talk, &configs[i]);
		check();
		talk_close(&talk);
	}
}

static enum sim_cm_state state(unsigned int side)
{
	return sim_cm_state(talk.ends[side].cm);
}

static void expect_states(enum sim_cm_state left, enum sim_cm_state right)
{
	TEST_ASSERT_EQUAL_STRING(sim_cm_state_name(left), sim_cm_state_name(state(0)));
	TEST_ASSERT_EQUAL_STRING(sim_cm_state_name(right), sim_cm_state_name(state(1)));
}

static unsigned int count(unsigned int side, enum sim_cm_event_kind kind)
{
	return talk_count(&talk, side, kind);
}

static unsigned int sent(enum sim_cm_message message)
{
	return talk_sent(&talk, message);
}

/* A message in which this test has changed a field comes to side 1, and is dropped for a cause. */
static void expect_drop(const uint8_t *mad, unsigned int side, enum sim_discard cause)
{
	struct sim_counters *counters = &talk.ends[side].device->counters;
	const uint64_t before = counters->discarded[cause];

	talk_inject(&talk, side, mad);
	TEST_ASSERT_EQUAL_UINT64(before + 1, counters->discarded[cause]);
}

/* --- messages that are lost --- */

static struct {
	enum sim_cm_message message;
	unsigned int times; /* that are still lost */
} loss;

static bool lose(struct talk *own, unsigned int engine, uint8_t *mad)
{
	(void)own;
	(void)engine;
	if (sim_mad_message(mad) != loss.message || !loss.times)
		return true;
	loss.times--;
	return false;
}

static void lose_next(enum sim_cm_message message, unsigned int times)
{
	loss.message = message;
	loss.times = times;
	talk.tamper = lose;
}

static void req_is_lost(void)
{
	talk_listen(&talk);
	lose_next(SIM_CM_REQ, 3);
	talk_connect(&talk);
	talk_until(&talk, REQ_NS - 1);
	TEST_ASSERT_EQUAL_UINT(1, sent(SIM_CM_REQ));
	talk_until(&talk, REQ_NS);
	TEST_ASSERT_EQUAL_UINT(2, sent(SIM_CM_REQ));
	talk_until(&talk, 3 * REQ_NS - 1);
	TEST_ASSERT_EQUAL_INT(SIM_CM_REQ_SENT, state(0));
	talk_until(&talk, 3 * REQ_NS);
	talk_run(&talk);
	expect_states(SIM_CM_ESTABLISHED, SIM_CM_ESTABLISHED);
	TEST_ASSERT_EQUAL_UINT(4, sent(SIM_CM_REQ));
	TEST_ASSERT_EQUAL_MEMORY(talk_mad(&talk, SIM_CM_REQ, 0)->mad,
				 talk_mad(&talk, SIM_CM_REQ, 3)->mad, SIM_MAD_BYTES);
	TEST_ASSERT_EQUAL_UINT(1, count(1, SIM_CM_EVENT_REQ));
	/* The next connection has all its repetitions. */
	talk_until(&talk, 10 * REQ_NS);
	expect_states(SIM_CM_ESTABLISHED, SIM_CM_ESTABLISHED);
}

void test_a_lost_req_is_repeated(void)
{
	each(req_is_lost);
}

static void reqs_are_lost(void)
{
	struct sim_cm_request request = talk_request(&talk);

	talk_listen(&talk);
	lose_next(SIM_CM_REQ, 4);
	talk_connect(&talk);
	talk_until(&talk, 4 * REQ_NS - 1);
	TEST_ASSERT_EQUAL_UINT(0, count(0, SIM_CM_EVENT_REQ_ERROR));
	talk_until(&talk, 4 * REQ_NS);
	TEST_ASSERT_EQUAL_UINT(4, sent(SIM_CM_REQ));
	TEST_ASSERT_EQUAL_INT(SIM_CM_IDLE, talk_nth(&talk, 0, SIM_CM_EVENT_REQ_ERROR, 0)->state);
	/* The communication may try again. */
	TEST_ASSERT_EQUAL_INT(0, sim_cm_send_req(talk.ends[0].cm, talk.ends[0].device, &request));
	talk_run(&talk);
	expect_states(SIM_CM_ESTABLISHED, SIM_CM_ESTABLISHED);
}

void test_a_req_that_nobody_answers(void)
{
	each(reqs_are_lost);
}

static void rep_is_lost(void)
{
	talk_listen(&talk);
	lose_next(SIM_CM_REP, 1);
	talk_connect(&talk);
	talk_run(&talk);
	expect_states(SIM_CM_REQ_SENT, SIM_CM_REP_SENT);
	talk_until(&talk, REP_NS - 1);
	expect_states(SIM_CM_REQ_SENT, SIM_CM_REP_SENT);
	talk_until(&talk, REP_NS);
	talk_run(&talk);
	expect_states(SIM_CM_ESTABLISHED, SIM_CM_ESTABLISHED);
	TEST_ASSERT_EQUAL_UINT(2, sent(SIM_CM_REP));
}

void test_a_lost_rep_is_repeated(void)
{
	each(rep_is_lost);
}

static void rtu_is_lost(void)
{
	talk_listen(&talk);
	lose_next(SIM_CM_RTU, 1);
	talk_connect(&talk);
	talk_run(&talk);
	expect_states(SIM_CM_ESTABLISHED, SIM_CM_REP_SENT);
	talk_until(&talk, REP_NS);
	talk_run(&talk);
	expect_states(SIM_CM_ESTABLISHED, SIM_CM_ESTABLISHED);
	/* The REP came again: no second event, the same RTU. */
	TEST_ASSERT_EQUAL_UINT(1, count(0, SIM_CM_EVENT_REP));
	TEST_ASSERT_EQUAL_UINT(2, sent(SIM_CM_RTU));
	TEST_ASSERT_EQUAL_MEMORY("ready\0", talk_nth(&talk, 1, SIM_CM_EVENT_RTU, 0)->private_data,
				 6);
}

void test_a_lost_rtu_is_asked_for_again(void)
{
	each(rtu_is_lost);
}

static void rtus_are_lost(void)
{
	talk_listen(&talk);
	lose_next(SIM_CM_RTU, 100);
	talk_connect(&talk);
	talk_until(&talk, 4 * REP_NS - 1);
	TEST_ASSERT_EQUAL_INT(SIM_CM_REP_SENT, state(1));
	TEST_ASSERT_EQUAL_UINT(4, sent(SIM_CM_REP));
	talk_until(&talk, 4 * REP_NS);
	TEST_ASSERT_EQUAL_INT(SIM_CM_IDLE, talk_nth(&talk, 1, SIM_CM_EVENT_REP_ERROR, 0)->state);
	TEST_ASSERT_EQUAL_UINT(4, sent(SIM_CM_REP));
}

void test_a_rep_that_nobody_answers(void)
{
	each(rtus_are_lost);
}

static void dreq_is_lost(void)
{
	uint64_t start_ns;

	talk_establish(&talk);
	start_ns = talk_now(&talk);
	lose_next(SIM_CM_DREQ, 1);
	TEST_ASSERT_EQUAL_INT(0, sim_cm_send_dreq(talk.ends[1].cm, &(struct sim_cm_private){0}));
	talk_until(&talk, start_ns + REP_NS - 1);
	expect_states(SIM_CM_ESTABLISHED, SIM_CM_DREQ_SENT);
	talk_until(&talk, start_ns + REP_NS);
	talk_run(&talk);
	expect_states(SIM_CM_TIMEWAIT, SIM_CM_TIMEWAIT);
	TEST_ASSERT_EQUAL_UINT(2, sent(SIM_CM_DREQ));
}

void test_a_lost_dreq_is_repeated(void)
{
	each(dreq_is_lost);
}

static void drep_is_lost(void)
{
	uint64_t start_ns;

	talk_establish(&talk);
	start_ns = talk_now(&talk);
	lose_next(SIM_CM_DREP, 1);
	/* TIMEWAIT is as long as the DREQ's timeout. */
	talk.ends[1].cm->timeout_ns = REP_NS / 2;
	TEST_ASSERT_EQUAL_INT(0, sim_cm_send_dreq(talk.ends[1].cm, &(struct sim_cm_private){0}));
	talk_run(&talk);
	expect_states(SIM_CM_TIMEWAIT, SIM_CM_DREQ_SENT);
	talk_until(&talk, start_ns + REP_NS / 2);
	talk_run(&talk);
	expect_states(SIM_CM_TIMEWAIT, SIM_CM_TIMEWAIT);
	TEST_ASSERT_EQUAL_UINT(1, count(0, SIM_CM_EVENT_DREQ));
	TEST_ASSERT_EQUAL_UINT(2, sent(SIM_CM_DREP));
	TEST_ASSERT_EQUAL_HEX64(
		sim_mad_get(talk_mad(&talk, SIM_CM_DREQ, 0)->mad, SIM_CM_NONE_TRANSACTION_ID),
		sim_mad_get(talk_mad(&talk, SIM_CM_DREP, 0)->mad, SIM_CM_NONE_TRANSACTION_ID));
	TEST_ASSERT_EQUAL_MEMORY("bye\0", talk_nth(&talk, 1, SIM_CM_EVENT_DREP, 0)->private_data,
				 4);
}

void test_a_lost_drep_is_sent_again_from_timewait(void)
{
	each(drep_is_lost);
}

static void dreqs_are_lost(void)
{
	uint64_t start_ns;

	talk_establish(&talk);
	start_ns = talk_now(&talk);
	lose_next(SIM_CM_DREQ, 100);
	TEST_ASSERT_EQUAL_INT(0, sim_cm_send_dreq(talk.ends[0].cm, &(struct sim_cm_private){0}));
	talk_until(&talk, start_ns + 4 * REQ_NS - 1);
	expect_states(SIM_CM_DREQ_SENT, SIM_CM_ESTABLISHED);
	talk_until(&talk, start_ns + 4 * REQ_NS);
	expect_states(SIM_CM_TIMEWAIT, SIM_CM_ESTABLISHED);
	TEST_ASSERT_EQUAL_INT(SIM_CM_TIMEWAIT,
			      talk_nth(&talk, 0, SIM_CM_EVENT_DREQ_ERROR, 0)->state);
	talk_until(&talk, start_ns + 5 * REQ_NS);
	TEST_ASSERT_EQUAL_UINT(1, count(0, SIM_CM_EVENT_TIMEWAIT_EXIT));
}

void test_a_dreq_that_nobody_answers(void)
{
	each(dreqs_are_lost);
}

/* --- MRA --- */

static void mra_of_req(void)
{
	/* The service timeout 20 and the life time 14, which the side doubles. */
	const uint64_t mra_ns = (UINT64_C(4096) << 20) + (UINT64_C(4096) << 15);
	struct sim_cm_reply reply = talk_reply();

	talk_listen(&talk);
	talk.ends[1].silent = true;
	talk_connect(&talk);
	talk_run(&talk);
	TEST_ASSERT_EQUAL_INT(
		0, sim_cm_send_mra(talk.ends[1].cm, 20, &(struct sim_cm_private){"wait", 4}));
	talk_run(&talk);
	expect_states(SIM_CM_MRA_REQ_RCVD, SIM_CM_MRA_REQ_SENT);
	TEST_ASSERT_EQUAL_MEMORY("wait\0", talk_nth(&talk, 0, SIM_CM_EVENT_MRA, 0)->private_data,
				 5);
	talk_until(&talk, mra_ns - 1);
	TEST_ASSERT_EQUAL_UINT(1, sent(SIM_CM_REQ));
	/* The REQ is repeated, and its duplicate gets the MRA again. */
	talk_until(&talk, mra_ns);
	talk_run(&talk);
	TEST_ASSERT_EQUAL_UINT(2, sent(SIM_CM_REQ));
	TEST_ASSERT_EQUAL_UINT(2, sent(SIM_CM_MRA));
	TEST_ASSERT_EQUAL_UINT(1, count(1, SIM_CM_EVENT_REQ));
	TEST_ASSERT_EQUAL_UINT(1, count(0, SIM_CM_EVENT_MRA));
	TEST_ASSERT_EQUAL_INT(0, sim_cm_send_rep(talk.ends[1].cm, &reply));
	talk.ends[1].silent = false;
	talk_run(&talk);
	expect_states(SIM_CM_ESTABLISHED, SIM_CM_ESTABLISHED);
}

void test_an_mra_of_a_req_gives_time(void)
{
	each(mra_of_req);
}

static void mra_that_runs_out(void)
{
	const uint64_t mra_ns = (UINT64_C(4096) << 20) + (UINT64_C(4096) << 15);

	talk_listen(&talk);
	talk.ends[1].silent = true;
	talk_connect(&talk);
	talk_run(&talk);
	TEST_ASSERT_EQUAL_INT(0, sim_cm_send_mra(talk.ends[1].cm, 20, &(struct sim_cm_private){0}));
	talk_until(&talk, 4 * mra_ns - 1);
	TEST_ASSERT_EQUAL_INT(SIM_CM_MRA_REQ_RCVD, state(0));
	talk_until(&talk, 4 * mra_ns);
	TEST_ASSERT_EQUAL_UINT(1, count(0, SIM_CM_EVENT_REQ_ERROR));
	TEST_ASSERT_EQUAL_INT(SIM_CM_IDLE, state(0));
}

void test_the_time_of_an_mra_ends(void)
{
	each(mra_that_runs_out);
}

static void mra_of_rep(void)
{
	/* The service timeout 18, and the life time 14 of side 1, which doubles it. */
	const uint64_t mra_ns = (UINT64_C(4096) << 18) + (UINT64_C(4096) << 15);

	talk_listen(&talk);
	talk.ends[0].silent = true;
	talk_connect(&talk);
	talk_run(&talk);
	TEST_ASSERT_EQUAL_INT(0, sim_cm_send_mra(talk.ends[0].cm, 18, &(struct sim_cm_private){0}));
	talk_run(&talk);
	expect_states(SIM_CM_MRA_REP_SENT, SIM_CM_MRA_REP_RCVD);
	talk_until(&talk, mra_ns - 1);
	TEST_ASSERT_EQUAL_UINT(1, sent(SIM_CM_REP));
	talk_until(&talk, mra_ns);
	talk_run(&talk);
	TEST_ASSERT_EQUAL_UINT(2, sent(SIM_CM_REP));
	TEST_ASSERT_EQUAL_UINT(2, sent(SIM_CM_MRA));
	TEST_ASSERT_EQUAL_UINT(1, count(0, SIM_CM_EVENT_REP));
	TEST_ASSERT_EQUAL_INT(0, sim_cm_send_rtu(talk.ends[0].cm, &(struct sim_cm_private){0}));
	talk_run(&talk);
	expect_states(SIM_CM_ESTABLISHED, SIM_CM_ESTABLISHED);
}

/* An MRA that is prepared leaves with the first duplicate, and with each later one. */
static void prepared_mra_of_req(void)
{
	const uint64_t mra_ns = (UINT64_C(4096) << 24) + (UINT64_C(4096) << 15);
	struct sim_cm_reply reply = talk_reply();

	talk_listen(&talk);
	talk.ends[1].silent = true;
	talk_connect(&talk);
	talk_run(&talk);
	TEST_ASSERT_EQUAL_INT(0, sim_cm_prepare_mra(talk.ends[1].cm, 24));
	talk_until(&talk, REQ_NS - 1);
	expect_states(SIM_CM_REQ_SENT, SIM_CM_MRA_REQ_SENT);
	TEST_ASSERT_EQUAL_UINT(0, sent(SIM_CM_MRA));
	talk_until(&talk, REQ_NS);
	talk_run(&talk);
	expect_states(SIM_CM_MRA_REQ_RCVD, SIM_CM_MRA_REQ_SENT);
	TEST_ASSERT_EQUAL_UINT(1, sent(SIM_CM_MRA));
	TEST_ASSERT_EQUAL_UINT(
		24, sim_mad_get(talk_mad(&talk, SIM_CM_MRA, 0)->mad, SIM_CM_MRA_SERVICE_TIMEOUT));
	TEST_ASSERT_EQUAL_UINT(
		0, sim_mad_get(talk_mad(&talk, SIM_CM_MRA, 0)->mad, SIM_CM_MRA_MESSAGE));
	talk_until(&talk, REQ_NS + mra_ns - 1);
	TEST_ASSERT_EQUAL_UINT(2, sent(SIM_CM_REQ));
	talk_until(&talk, REQ_NS + 2 * mra_ns);
	talk_run(&talk);
	TEST_ASSERT_EQUAL_UINT(4, sent(SIM_CM_REQ));
	TEST_ASSERT_EQUAL_UINT(3, sent(SIM_CM_MRA));
	TEST_ASSERT_EQUAL_INT(0, sim_cm_send_rep(talk.ends[1].cm, &reply));
	talk.ends[1].silent = false;
	talk_run(&talk);
	expect_states(SIM_CM_ESTABLISHED, SIM_CM_ESTABLISHED);
}

void test_a_prepared_mra_of_a_req(void)
{
	each(prepared_mra_of_req);
}

static void prepared_mra_of_rep(void)
{
	talk_listen(&talk);
	talk.ends[0].silent = true;
	talk_connect(&talk);
	talk_run(&talk);
	TEST_ASSERT_EQUAL_INT(0, sim_cm_prepare_mra(talk.ends[0].cm, 24));
	talk_until(&talk, REP_NS - 1);
	expect_states(SIM_CM_MRA_REP_SENT, SIM_CM_REP_SENT);
	TEST_ASSERT_EQUAL_UINT(0, sent(SIM_CM_MRA));
	talk_until(&talk, REP_NS);
	talk_run(&talk);
	expect_states(SIM_CM_MRA_REP_SENT, SIM_CM_MRA_REP_RCVD);
	TEST_ASSERT_EQUAL_UINT(1, sent(SIM_CM_MRA));
	TEST_ASSERT_EQUAL_UINT(
		1, sim_mad_get(talk_mad(&talk, SIM_CM_MRA, 0)->mad, SIM_CM_MRA_MESSAGE));
	TEST_ASSERT_EQUAL_INT(0, sim_cm_send_rtu(talk.ends[0].cm, &(struct sim_cm_private){0}));
	talk_run(&talk);
	expect_states(SIM_CM_ESTABLISHED, SIM_CM_ESTABLISHED);
}

void test_a_prepared_mra_of_a_rep(void)
{
	each(prepared_mra_of_rep);
}

/* A side that has prepared an MRA rejects, and its peer finds its communication. */
static void rejected_after_a_prepared_mra(void)
{
	const struct sim_cm_rejection rejection = {.reason = 28};

	talk_listen(&talk);
	talk.ends[1].silent = true;
	talk_connect(&talk);
	talk_run(&talk);
	TEST_ASSERT_EQUAL_INT(0, sim_cm_prepare_mra(talk.ends[1].cm, 24));
	TEST_ASSERT_EQUAL_INT(EINVAL, sim_cm_prepare_mra(talk.ends[1].cm, 24));
	TEST_ASSERT_EQUAL_INT(0, sim_cm_send_rej(talk.ends[1].cm, &rejection));
	talk_run(&talk);
	expect_states(SIM_CM_IDLE, SIM_CM_IDLE);
	TEST_ASSERT_EQUAL_UINT(1, count(0, SIM_CM_EVENT_REJ));
	TEST_ASSERT_EQUAL_UINT(0, sent(SIM_CM_MRA));
}

void test_a_req_is_rejected_after_a_prepared_mra(void)
{
	each(rejected_after_a_prepared_mra);
}

void test_an_mra_of_a_rep_gives_time(void)
{
	each(mra_of_rep);
}

/* An MRA of another message than the one that was sent. */
static void mra_of_another(void)
{
	uint8_t mad[SIM_MAD_BYTES];

	talk_listen(&talk);
	lose_next(SIM_CM_REQ, 1);
	talk_connect(&talk);
	talk_run(&talk);
	sim_mad_begin(mad, SIM_CM_MRA, 1);
	sim_mad_set(mad, SIM_CM_MRA_REMOTE_ID, sim_cm_local_id(talk.ends[0].cm));
	sim_mad_set(mad, SIM_CM_MRA_MESSAGE, 1);
	sim_mad_set(mad, SIM_CM_MRA_SERVICE_TIMEOUT, 31);
	expect_drop(mad, 0, SIM_DISCARD_CM_STATE);
	TEST_ASSERT_EQUAL_INT(SIM_CM_REQ_SENT, state(0));
	talk_until(&talk, REQ_NS);
	talk_run(&talk);
	expect_states(SIM_CM_ESTABLISHED, SIM_CM_ESTABLISHED);
}

void test_an_mra_of_another_message(void)
{
	each(mra_of_another);
}

/* A REP or REQ without an ID, and a REP whose ID another connection has. */
static void wrong_ids(void)
{
	uint8_t mad[SIM_MAD_BYTES];

	talk_establish(&talk);
	lose_next(SIM_CM_REQ, 1);
	talk_connect(&talk);
	talk_run(&talk);
	memcpy(mad, talk_mad(&talk, SIM_CM_REP, 0)->mad, sizeof(mad));
	sim_mad_set(mad, SIM_CM_REP_REMOTE_ID, sim_cm_local_id(talk.ends[0].cm));
	expect_drop(mad, 0, SIM_DISCARD_CM_FIELD);
	sim_mad_set(mad, SIM_CM_REP_LOCAL_ID, 0);
	expect_drop(mad, 0, SIM_DISCARD_CM_FIELD);
	TEST_ASSERT_EQUAL_INT(SIM_CM_REQ_SENT, state(0));
	memcpy(mad, talk_mad(&talk, SIM_CM_REQ, 0)->mad, sizeof(mad));
	sim_mad_set(mad, SIM_CM_REQ_LOCAL_ID, 0);
	expect_drop(mad, 1, SIM_DISCARD_CM_FIELD);
}

void test_messages_without_right_ids(void)
{
	each(wrong_ids);
}

/* --- REJ --- */

static const struct sim_cm_rejection rejection = {
	.reason = 27, .ari = "info", .ari_bytes = 4, .private_data = {"no", 2}};

static void expect_rej(unsigned int side, uint16_t reason, enum sim_cm_state in)
{
	const struct talk_event *event = talk_nth(&talk, side, SIM_CM_EVENT_REJ, 0);

	TEST_ASSERT_NOT_NULL(event);
	TEST_ASSERT_EQUAL_UINT(reason, event->event.rejection.reason);
	TEST_ASSERT_EQUAL_STRING(sim_cm_state_name(in), sim_cm_state_name(event->state));
}

static void rej_of_req(void)
{
	talk_listen(&talk);
	talk.ends[1].silent = true;
	for (unsigned int i = 0; i < 2; i++) {
		talk_connect(&talk);
		talk_run(&talk);
		if (i)
			TEST_ASSERT_EQUAL_INT(0, sim_cm_send_mra(talk.ends[1].cm, 20,
								 &(struct sim_cm_private){0}));
		talk_run(&talk);
		TEST_ASSERT_EQUAL_INT(0, sim_cm_send_rej(talk.ends[1].cm, &rejection));
		talk_run(&talk);
		expect_states(SIM_CM_IDLE, SIM_CM_IDLE);
		expect_rej(0, 27, SIM_CM_IDLE);
		TEST_ASSERT_EQUAL_MEMORY("no\0",
					 talk_nth(&talk, 0, SIM_CM_EVENT_REJ, i)->private_data, 3);
		TEST_ASSERT_EQUAL_MEMORY("info\0", talk_nth(&talk, 0, SIM_CM_EVENT_REJ, i)->ari, 5);
		TEST_ASSERT_EQUAL_UINT(
			4, talk_nth(&talk, 0, SIM_CM_EVENT_REJ, i)->event.rejection.ari_bytes);
		/* Only the peer of an MRA knows the ID. */
		TEST_ASSERT_EQUAL_UINT64(
			i ? sim_cm_local_id(talk.ends[1].cm) : 0,
			sim_mad_get(talk_mad(&talk, SIM_CM_REJ, i)->mad, SIM_CM_REJ_LOCAL_ID));
		TEST_ASSERT_EQUAL_UINT64(SIM_NEVER, sim_engine_next_ns(talk.ends[0].sim));
	}
}

void test_a_req_is_rejected(void)
{
	each(rej_of_req);
}

static void rej_of_rep(void)
{
	talk_listen(&talk);
	talk.ends[0].silent = true;
	for (unsigned int i = 0; i < 2; i++) {
		talk_connect(&talk);
		talk_run(&talk);
		if (i)
			TEST_ASSERT_EQUAL_INT(0, sim_cm_send_mra(talk.ends[0].cm, 20,
								 &(struct sim_cm_private){0}));
		talk_run(&talk);
		TEST_ASSERT_EQUAL_INT(0, sim_cm_send_rej(talk.ends[0].cm, &rejection));
		talk_run(&talk);
		expect_states(SIM_CM_IDLE, SIM_CM_IDLE);
		TEST_ASSERT_EQUAL_UINT(i + 1, count(1, SIM_CM_EVENT_REJ));
		TEST_ASSERT_EQUAL_UINT64(
			1, sim_mad_get(talk_mad(&talk, SIM_CM_REJ, i)->mad, SIM_CM_REJ_MESSAGE));
	}
}

void test_a_rep_is_rejected(void)
{
	each(rej_of_rep);
}

/* A side that has sent a REP rejects: its QP may have been used. */
static void rej_after_rep(void)
{
	talk_listen(&talk);
	talk.ends[0].silent = true;
	talk_connect(&talk);
	talk_run(&talk);
	TEST_ASSERT_EQUAL_INT(0, sim_cm_send_rej(talk.ends[1].cm, &rejection));
	talk_run(&talk);
	expect_states(SIM_CM_TIMEWAIT, SIM_CM_TIMEWAIT);
	expect_rej(0, 27, SIM_CM_TIMEWAIT);
}

void test_a_side_rejects_after_its_rep(void)
{
	each(rej_after_rep);
}

static void nobody_listens(void)
{
	talk_connect(&talk);
	talk_run(&talk);
	expect_rej(0, SIM_CM_REJ_INVALID_SERVICE_ID, SIM_CM_IDLE);
	TEST_ASSERT_EQUAL_UINT(1, sent(SIM_CM_REJ));
}

void test_a_service_that_nobody_has(void)
{
	each(nobody_listens);
}

static void owner_refuses(void)
{
	talk_listen(&talk);
	talk.ends[1].verdict = SIM_CM_REFUSED;
	talk_connect(&talk);
	talk_run(&talk);
	expect_rej(0, SIM_CM_REJ_CONSUMER, SIM_CM_IDLE);
	TEST_ASSERT_EQUAL_UINT32(talk.config.joined ? 1 : 2, talk.ends[1].sim->cm->table.live);
}

void test_an_owner_refuses_a_request(void)
{
	each(owner_refuses);
}

/* The REQ is dropped without an answer. Its repetition finds room. */
static void owner_has_no_room(void)
{
	const uint64_t *dropped = &talk.ends[1].device->counters.discarded[SIM_DISCARD_CM_BACKLOG];

	talk_listen(&talk);
	talk.ends[1].verdict = SIM_CM_NO_ROOM;
	talk_connect(&talk);
	talk_until(&talk, 2 * REQ_NS - 1);
	TEST_ASSERT_EQUAL_UINT(2, count(1, SIM_CM_EVENT_REQ));
	TEST_ASSERT_EQUAL_UINT64(2, *dropped);
	TEST_ASSERT_EQUAL_UINT(0, sent(SIM_CM_REJ));
	TEST_ASSERT_EQUAL_INT(SIM_CM_REQ_SENT, state(0));
	/* The listener, and the communication of side 0. */
	TEST_ASSERT_EQUAL_UINT32(talk.config.joined ? 1 : 2, talk.ends[1].sim->cm->table.live);
	talk.ends[1].verdict = SIM_CM_TAKEN;
	talk_until(&talk, 2 * REQ_NS);
	talk_run(&talk);
	expect_states(SIM_CM_ESTABLISHED, SIM_CM_ESTABLISHED);
	TEST_ASSERT_EQUAL_UINT64(2, *dropped);
}

void test_an_owner_has_no_room_for_a_request(void)
{
	each(owner_has_no_room);
}

static void owner_has_no_room_for_good(void)
{
	talk_listen(&talk);
	talk.ends[1].verdict = SIM_CM_NO_ROOM;
	talk_connect(&talk);
	talk_until(&talk, 4 * REQ_NS);
	TEST_ASSERT_EQUAL_UINT(1, count(0, SIM_CM_EVENT_REQ_ERROR));
	TEST_ASSERT_EQUAL_UINT(0, count(0, SIM_CM_EVENT_REJ));
}

void test_an_owner_never_has_room_for_a_request(void)
{
	each(owner_has_no_room_for_good);
}

/* Two machines may use the same ID: the REJ of one does not cancel the request of the other. */
void test_a_rej_cancels_its_own_request_only(void)
{
	const uint64_t patience_ns = UINT64_C(100000000), look_ns = UINT64_C(1000000);
	uint8_t rej[SIM_MAD_BYTES];
	const uint8_t *req;

	talk_open(&talk, &(struct talk_config){0});
	sim_cm_set_patience(talk.ends[1].sim, patience_ns);
	talk_connect(&talk);
	talk_run(&talk);
	req = talk_mad(&talk, SIM_CM_REQ, 0)->mad;
	sim_mad_begin(rej, SIM_CM_REJ, sim_mad_get(req, SIM_CM_NONE_TRANSACTION_ID) ^ 1);
	sim_mad_set(rej, SIM_CM_REJ_LOCAL_ID, sim_mad_get(req, SIM_CM_REQ_LOCAL_ID));
	sim_mad_set(rej, SIM_CM_REJ_MESSAGE, SIM_CM_ANSWERS_REQ);
	sim_mad_set(rej, SIM_CM_REJ_REASON, SIM_CM_REJ_TIMEOUT);
	talk_inject(&talk, 1, rej);
	talk_listen(&talk);
	talk_until(&talk, talk_now(&talk) + 2 * look_ns);
	TEST_ASSERT_EQUAL_UINT(1, count(1, SIM_CM_EVENT_REQ));
	expect_states(SIM_CM_ESTABLISHED, SIM_CM_ESTABLISHED);
}

/* --- fields of a REQ that are wrong --- */

static struct {
	enum sim_cm_field field;
	uint64_t value;
} change;

static bool change_req(struct talk *own, unsigned int engine, uint8_t *mad)
{
	(void)own;
	(void)engine;
	if (sim_mad_message(mad) != SIM_CM_REQ)
		return true;
	if (sim_cm_field_info[change.field].bits)
		sim_mad_set(mad, change.field, change.value);
	else
		mad[sim_cm_field_info[change.field].byte + 15] ^= 0x40;
	return true;
}

static void wrong_fields(void)
{
	const bool infiniband = talk.config.infiniband, grh = talk.config.grh;
	const struct {
		enum sim_cm_field field;
		uint64_t value;
		uint16_t reason; /* 0: the REQ is right */
	} rows[] = {
		{SIM_CM_REQ_TRANSPORT, 2, SIM_CM_REJ_INVALID_TRANSPORT},
		{SIM_CM_REQ_TRANSPORT, 3, SIM_CM_REJ_INVALID_TRANSPORT},
		{SIM_CM_REQ_MTU, 0, SIM_CM_REJ_INVALID_MTU},
		{SIM_CM_REQ_MTU, 6, SIM_CM_REJ_INVALID_MTU},
		{SIM_CM_REQ_MTU, 5, 0},
		{SIM_CM_REQ_PKEY, 0x8001, SIM_CM_REJ_INVALID_GID},
		{SIM_CM_REQ_REMOTE_GID, 0, SIM_CM_REJ_INVALID_GID},
		{SIM_CM_REQ_REMOTE_LID, 9, infiniband ? SIM_CM_REJ_INVALID_LID : 0},
		{SIM_CM_REQ_LOCAL_LID, 0,
		 !infiniband ? 0
		 : grh	     ? SIM_CM_REJ_INVALID_GID
			     : SIM_CM_REJ_INVALID_LID},
		{SIM_CM_REQ_SERVICE_ID, TALK_SERVICE + 1, SIM_CM_REJ_INVALID_SERVICE_ID},
		{SIM_CM_REQ_RDC_EXISTS, 1, 0},
		{SIM_CM_REQ_LOCAL_EECN, 77, 0},
	};

	talk_listen(&talk);
	talk.tamper = change_req;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const uint32_t live = talk.ends[1].sim->cm->table.live;

		change.field = rows[i].field;
		change.value = rows[i].value;
		talk.ends[0].count = talk.ends[1].count = 0;
		talk_connect(&talk);
		talk_run(&talk);
		if (!rows[i].reason) {
			expect_states(SIM_CM_ESTABLISHED, SIM_CM_ESTABLISHED);
			sim_cm_destroy(talk.ends[0].cm);
			talk_run(&talk);
			sim_cm_destroy(talk.ends[1].cm);
			continue;
		}
		expect_rej(0, rows[i].reason, SIM_CM_IDLE);
		TEST_ASSERT_EQUAL_UINT(0, count(1, SIM_CM_EVENT_REQ));
		sim_cm_destroy(talk.ends[0].cm);
		TEST_ASSERT_EQUAL_UINT32(live, talk.ends[1].sim->cm->table.live);
	}
}

void test_fields_of_a_req_that_are_wrong(void)
{
	each(wrong_fields);
}

/* The path migration that the simulator lacks is refused in the REP, and the connection is made. */
static void alternate_path(void)
{
	change.field = SIM_CM_REQ_ALTERNATE_LOCAL_LID;
	change.value = 77;
	talk.tamper = change_req;
	talk_establish(&talk);
	TEST_ASSERT_EQUAL_UINT(
		1, talk_nth(&talk, 0, SIM_CM_EVENT_REP, 0)->event.reply.failover_accepted);
}

void test_an_alternate_path_is_refused(void)
{
	each(alternate_path);
}

/* --- duplicates --- */

/* A repeated request does not wait for a listener. */
static void end_listener(void)
{
	sim_cm_set_patience(talk.ends[1].sim, REQ_NS);
	sim_cm_destroy(talk.ends[1].listener);
}

static void req_comes_again(void)
{
	static const struct {
		enum sim_cm_state in;
		enum sim_cm_message answer; /* NONE: no answer */
	} rows[] = {
		{SIM_CM_REQ_RCVD, SIM_CM_NONE}, {SIM_CM_MRA_REQ_SENT, SIM_CM_MRA},
		{SIM_CM_REP_SENT, SIM_CM_NONE}, {SIM_CM_ESTABLISHED, SIM_CM_NONE},
		{SIM_CM_TIMEWAIT, SIM_CM_REJ},
	};
	struct sim_cm_reply reply = talk_reply();

	talk_listen(&talk);
	talk.ends[1].silent = true;
	talk_connect(&talk);
	talk_run(&talk);
	end_listener();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		unsigned int before, messages;

		if (rows[i].in == SIM_CM_MRA_REQ_SENT)
			sim_cm_send_mra(talk.ends[1].cm, 20, &(struct sim_cm_private){0});
		else if (rows[i].in == SIM_CM_REP_SENT)
			lose_next(SIM_CM_REP, 2);
		if (rows[i].in == SIM_CM_REP_SENT)
			sim_cm_send_rep(talk.ends[1].cm, &reply);
		else if (rows[i].in == SIM_CM_ESTABLISHED)
			sim_cm_notify(talk.ends[1].cm);
		else if (rows[i].in == SIM_CM_TIMEWAIT)
			sim_cm_enter_timewait(talk.ends[1].cm);
		talk_run(&talk);
		TEST_ASSERT_EQUAL_INT(rows[i].in, state(1));
		before = sent(rows[i].answer);
		messages = talk.mad_count;
		talk_inject(&talk, 1, talk_mad(&talk, SIM_CM_REQ, 0)->mad);
		TEST_ASSERT_EQUAL_UINT(messages + (rows[i].answer != SIM_CM_NONE), talk.mad_count);
		TEST_ASSERT_EQUAL_UINT(before + (rows[i].answer != SIM_CM_NONE),
				       sent(rows[i].answer));
		TEST_ASSERT_EQUAL_INT(rows[i].in, state(1));
	}
	TEST_ASSERT_EQUAL_UINT(1, count(1, SIM_CM_EVENT_REQ));
	TEST_ASSERT_EQUAL_UINT64(
		SIM_CM_REJ_STALE_CONNECTION,
		sim_mad_get(talk_mad(&talk, SIM_CM_REJ, 0)->mad, SIM_CM_REJ_REASON));
}

void test_a_req_comes_again_in_each_state(void)
{
	each(req_comes_again);
}

/* After the end of TIMEWAIT the same IDs may ask again. */
static void req_after_timewait(void)
{
	talk_establish(&talk);
	sim_cm_send_dreq(talk.ends[0].cm, &(struct sim_cm_private){0});
	talk_until(&talk, talk_now(&talk) + UINT64_C(1000000000));
	expect_states(SIM_CM_IDLE, SIM_CM_IDLE);
	talk.ends[1].silent = true;
	talk_inject(&talk, 1, talk_mad(&talk, SIM_CM_REQ, 0)->mad);
	TEST_ASSERT_EQUAL_UINT(2, count(1, SIM_CM_EVENT_REQ));
	TEST_ASSERT_EQUAL_UINT(0, sent(SIM_CM_REJ));
}

void test_the_same_req_after_timewait(void)
{
	each(req_after_timewait);
}

/* --- stale connections --- */

/* The peer asks with a QP that this side believes connected: the old connection ends. */
static void stale_req(void)
{
	uint8_t mad[SIM_MAD_BYTES];

	talk_establish(&talk);
	memcpy(mad, talk_mad(&talk, SIM_CM_REQ, 0)->mad, sizeof(mad));
	sim_mad_set(mad, SIM_CM_REQ_LOCAL_ID, 0x7777);
	talk.ends[0].silent = true;
	talk_inject(&talk, 1, mad);
	TEST_ASSERT_EQUAL_UINT(1, count(1, SIM_CM_EVENT_REQ));
	TEST_ASSERT_EQUAL_UINT64(
		SIM_CM_REJ_STALE_CONNECTION,
		sim_mad_get(talk_mad(&talk, SIM_CM_REJ, 0)->mad, SIM_CM_REJ_REASON));
	TEST_ASSERT_EQUAL_UINT64(
		0x7777, sim_mad_get(talk_mad(&talk, SIM_CM_REJ, 0)->mad, SIM_CM_REJ_REMOTE_ID));
	expect_states(SIM_CM_DREQ_RCVD, SIM_CM_DREQ_SENT);
	/* Another CA with the same QPN is another peer. */
	sim_mad_set(mad, SIM_CM_REQ_CA_GUID, 0x1234567);
	talk.ends[1].silent = true;
	talk_inject(&talk, 1, mad);
	TEST_ASSERT_EQUAL_UINT(2, count(1, SIM_CM_EVENT_REQ));
}

void test_a_stale_connection_is_found_by_a_req(void)
{
	each(stale_req);
}

static void stale_rep(void)
{
	struct sim_cm *first;

	talk_establish(&talk);
	first = talk.ends[0].cm;
	talk.ends[1].no_drep = true;
	/* The second REQ has another QPN, and the REP names the QP of the first connection. */
	change.field = SIM_CM_REQ_QPN;
	change.value = 0x111112;
	talk.tamper = change_req;
	talk_connect(&talk);
	talk_run(&talk);
	TEST_ASSERT_EQUAL_INT(SIM_CM_REQ_SENT, state(0));
	TEST_ASSERT_EQUAL_INT(SIM_CM_DREQ_SENT, sim_cm_state(first));
	TEST_ASSERT_EQUAL_UINT64(
		SIM_CM_REJ_STALE_CONNECTION,
		sim_mad_get(talk_mad(&talk, SIM_CM_REJ, 0)->mad, SIM_CM_REJ_REASON));
	expect_rej(1, SIM_CM_REJ_STALE_CONNECTION, SIM_CM_TIMEWAIT);
}

void test_a_stale_connection_is_found_by_a_rep(void)
{
	each(stale_rep);
}

/* --- ends --- */

static void both_end(void)
{
	talk_establish(&talk);
	for (unsigned int i = 0; i < 2; i++)
		TEST_ASSERT_EQUAL_INT(
			0, sim_cm_send_dreq(talk.ends[i].cm, &(struct sim_cm_private){0}));
	talk_run(&talk);
	expect_states(SIM_CM_TIMEWAIT, SIM_CM_TIMEWAIT);
	for (unsigned int i = 0; i < 2; i++)
		TEST_ASSERT_EQUAL_UINT(1, count(i, SIM_CM_EVENT_DREQ));
	talk_until(&talk, talk_now(&talk) + UINT64_C(1000000000));
	expect_states(SIM_CM_IDLE, SIM_CM_IDLE);
}

void test_both_sides_end_at_the_same_time(void)
{
	each(both_end);
}

static void dreq_to_nobody(void)
{
	uint8_t mad[SIM_MAD_BYTES];

	sim_mad_begin(mad, SIM_CM_DREQ, 0x99);
	sim_mad_set(mad, SIM_CM_DREQ_LOCAL_ID, 0x1111);
	sim_mad_set(mad, SIM_CM_DREQ_REMOTE_ID, 0x2222);
	talk_inject(&talk, 1, mad);
	TEST_ASSERT_EQUAL_UINT(1, sent(SIM_CM_DREP));
	TEST_ASSERT_EQUAL_UINT64(
		0x1111, sim_mad_get(talk_mad(&talk, SIM_CM_DREP, 0)->mad, SIM_CM_DREP_REMOTE_ID));
	TEST_ASSERT_EQUAL_UINT64(
		0x2222, sim_mad_get(talk_mad(&talk, SIM_CM_DREP, 0)->mad, SIM_CM_DREP_LOCAL_ID));
	TEST_ASSERT_EQUAL_UINT64(0x99, sim_mad_get(talk_mad(&talk, SIM_CM_DREP, 0)->mad,
						   SIM_CM_NONE_TRANSACTION_ID));
}

void test_a_dreq_to_nobody_is_answered(void)
{
	each(dreq_to_nobody);
}

/* A DREQ says that the RTU was sent, too. */
static void dreq_before_rtu(void)
{
	talk_listen(&talk);
	lose_next(SIM_CM_RTU, 1);
	talk_connect(&talk);
	talk_run(&talk);
	TEST_ASSERT_EQUAL_INT(0, sim_cm_send_dreq(talk.ends[0].cm, &(struct sim_cm_private){0}));
	talk_run(&talk);
	expect_states(SIM_CM_TIMEWAIT, SIM_CM_TIMEWAIT);
	TEST_ASSERT_EQUAL_UINT(0, count(1, SIM_CM_EVENT_RTU));
	TEST_ASSERT_EQUAL_UINT(1, count(1, SIM_CM_EVENT_DREQ));
}

void test_a_dreq_comes_without_the_rtu(void)
{
	each(dreq_before_rtu);
}

static void lap_is_refused(void)
{
	uint8_t mad[SIM_MAD_BYTES];

	talk_establish(&talk);
	sim_mad_begin(mad, SIM_CM_LAP, 5);
	sim_mad_set(mad, SIM_CM_LAP_LOCAL_ID, sim_cm_local_id(talk.ends[0].cm));
	sim_mad_set(mad, SIM_CM_LAP_REMOTE_ID, sim_cm_local_id(talk.ends[1].cm));
	sim_mad_set(mad, SIM_CM_LAP_REMOTE_QPN, 0x222222);
	talk_inject(&talk, 1, mad);
	sim_mad_set(mad, SIM_CM_LAP_REMOTE_ID, 0x5555);
	talk_inject(&talk, 1, mad);
	TEST_ASSERT_EQUAL_UINT(2, sent(SIM_CM_APR));
	TEST_ASSERT_EQUAL_UINT64(
		2, sim_mad_get(talk_mad(&talk, SIM_CM_APR, 0)->mad, SIM_CM_APR_STATUS));
	TEST_ASSERT_EQUAL_UINT64(
		1, sim_mad_get(talk_mad(&talk, SIM_CM_APR, 1)->mad, SIM_CM_APR_STATUS));
	expect_states(SIM_CM_ESTABLISHED, SIM_CM_ESTABLISHED);
}

void test_an_alternate_path_is_answered(void)
{
	each(lap_is_refused);
}

/* --- destroyed in each state --- */

static void destroy_requester(void)
{
	talk_listen(&talk);
	talk.ends[1].silent = true;
	for (unsigned int mra = 0; mra < 2; mra++) {
		talk_connect(&talk);
		talk_run(&talk);
		if (mra)
			sim_cm_send_mra(talk.ends[1].cm, 20, &(struct sim_cm_private){0});
		talk_run(&talk);
		sim_cm_destroy(talk.ends[0].cm);
		talk_run(&talk);
		/* The GUID of the sender names the REQ. */
		TEST_ASSERT_EQUAL_UINT(mra + 1, count(1, SIM_CM_EVENT_REJ));
		expect_rej(1, SIM_CM_REJ_TIMEOUT, SIM_CM_IDLE);
		TEST_ASSERT_EQUAL_INT(SIM_CM_IDLE, state(1));
	}
}

void test_a_requester_is_destroyed(void)
{
	each(destroy_requester);
}

static void destroy_responder(void)
{
	struct sim_cm_reply reply = talk_reply();

	talk_listen(&talk);
	talk.ends[0].silent = talk.ends[1].silent = true;
	for (unsigned int i = 0; i < 4; i++) {
		talk_connect(&talk);
		talk_run(&talk);
		if (i == 1)
			sim_cm_send_mra(talk.ends[1].cm, 20, &(struct sim_cm_private){0});
		else if (i > 1)
			sim_cm_send_rep(talk.ends[1].cm, &reply);
		talk_run(&talk);
		if (i == 3)
			sim_cm_send_mra(talk.ends[0].cm, 20, &(struct sim_cm_private){0});
		talk_run(&talk);
		sim_cm_destroy(talk.ends[1].cm);
		talk_run(&talk);
		TEST_ASSERT_EQUAL_UINT(i + 1, count(0, SIM_CM_EVENT_REJ));
		TEST_ASSERT_EQUAL_INT(i < 2 ? SIM_CM_IDLE : SIM_CM_TIMEWAIT, state(0));
		expect_rej(0, SIM_CM_REJ_CONSUMER, SIM_CM_IDLE);
	}
}

void test_a_responder_is_destroyed(void)
{
	each(destroy_responder);
}

static void destroy_connected(void)
{
	talk_establish(&talk);
	sim_cm_destroy(talk.ends[1].cm);
	talk_run(&talk);
	TEST_ASSERT_EQUAL_UINT(1, count(0, SIM_CM_EVENT_DREQ));
	TEST_ASSERT_EQUAL_INT(SIM_CM_TIMEWAIT, state(0));
	TEST_ASSERT_EQUAL_UINT(1, sent(SIM_CM_DREQ));
	/* A communication in TIMEWAIT says nothing. */
	sim_cm_destroy(talk.ends[0].cm);
	talk_run(&talk);
	TEST_ASSERT_EQUAL_UINT64(SIM_NEVER, sim_engine_next_ns(talk.ends[0].sim));
	TEST_ASSERT_EQUAL_UINT(5, talk.mad_count);
}

void test_a_connected_side_is_destroyed(void)
{
	each(destroy_connected);
}

static void destroy_asked(void)
{
	talk_establish(&talk);
	talk.ends[1].no_drep = true;
	sim_cm_send_dreq(talk.ends[0].cm, &(struct sim_cm_private){0});
	talk_run(&talk);
	expect_states(SIM_CM_DREQ_SENT, SIM_CM_DREQ_RCVD);
	sim_cm_destroy(talk.ends[1].cm);
	talk_run(&talk);
	TEST_ASSERT_EQUAL_UINT(1, count(0, SIM_CM_EVENT_DREP));
	TEST_ASSERT_EQUAL_INT(SIM_CM_TIMEWAIT, state(0));
}

void test_a_side_that_is_asked_to_end_is_destroyed(void)
{
	each(destroy_asked);
}

/* --- each message in each state --- */

/* Brings side 1 into a state. Returns false for a state that side 1 does not have. */
static bool bring(enum sim_cm_state in)
{
	struct sim_cm_reply reply = talk_reply();
	const struct sim_cm_private none = {0};

	talk_listen(&talk);
	talk.ends[0].silent = talk.ends[1].silent = true;
	talk_connect(&talk);
	talk_run(&talk);
	switch (in) {
	case SIM_CM_REQ_RCVD:
		return true;
	case SIM_CM_MRA_REQ_SENT:
		sim_cm_send_mra(talk.ends[1].cm, 20, &none);
		break;
	case SIM_CM_REP_SENT:
	case SIM_CM_MRA_REP_RCVD:
		sim_cm_send_rep(talk.ends[1].cm, &reply);
		talk_run(&talk);
		if (in == SIM_CM_MRA_REP_RCVD)
			sim_cm_send_mra(talk.ends[0].cm, 20, &none);
		break;
	case SIM_CM_ESTABLISHED:
	case SIM_CM_DREQ_SENT:
	case SIM_CM_DREQ_RCVD:
	case SIM_CM_TIMEWAIT:
		sim_cm_send_rep(talk.ends[1].cm, &reply);
		talk_run(&talk);
		sim_cm_send_rtu(talk.ends[0].cm, &none);
		talk_run(&talk);
		if (in == SIM_CM_DREQ_SENT)
			sim_cm_send_dreq(talk.ends[1].cm, &none);
		else if (in != SIM_CM_ESTABLISHED)
			sim_cm_send_dreq(talk.ends[0].cm, &none);
		talk_run(&talk);
		if (in == SIM_CM_TIMEWAIT)
			sim_cm_send_drep(talk.ends[1].cm, &none);
		break;
	default:
		return false;
	}
	talk_run(&talk);
	return true;
}

/* The peer's QP may have been used once a REP has left. */
static void rej_by_the_passive_side(void)
{
	static const struct {
		enum sim_cm_state in, after;
	} rows[] = {
		{SIM_CM_REQ_RCVD, SIM_CM_IDLE},
		{SIM_CM_MRA_REQ_SENT, SIM_CM_IDLE},
		{SIM_CM_REP_SENT, SIM_CM_TIMEWAIT},
		{SIM_CM_MRA_REP_RCVD, SIM_CM_TIMEWAIT},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct talk_config config = talk.config;

		TEST_ASSERT_TRUE(bring(rows[i].in));
		TEST_ASSERT_EQUAL_INT(0, sim_cm_send_rej(talk.ends[1].cm, &rejection));
		TEST_ASSERT_EQUAL_STRING(sim_cm_state_name(rows[i].after),
					 sim_cm_state_name(state(1)));
		talk_close(&talk);
		talk_open(&talk, &config);
	}
}

void test_the_passive_side_rejects_in_each_state(void)
{
	each(rej_by_the_passive_side);
}

/* A message with right IDs. */
static void write_message(enum sim_cm_message message, uint8_t *mad)
{
	const struct sim_cm *to = talk.ends[1].cm;

	if (message == SIM_CM_REQ) {
		memcpy(mad, talk_mad(&talk, SIM_CM_REQ, 0)->mad, SIM_MAD_BYTES);
		return;
	}
	sim_mad_begin(mad, message, 1);
	sim_mad_set(mad, SIM_CM_REP_LOCAL_ID, sim_cm_remote_id(to));
	sim_mad_set(mad, SIM_CM_REP_REMOTE_ID, sim_cm_local_id(to));
	if (message == SIM_CM_MRA || message == SIM_CM_REJ)
		sim_mad_set(mad, SIM_CM_MRA_MESSAGE, 1);
	else if (message == SIM_CM_DREQ)
		sim_mad_set(mad, SIM_CM_DREQ_REMOTE_QPN, to->local_qpn);
	else if (message == SIM_CM_LAP)
		sim_mad_set(mad, SIM_CM_LAP_REMOTE_QPN, to->local_qpn);
}

/* Side 1 does what the row of its state and the message says. A message without a row is dropped and
 * counted. */
void test_each_message_in_each_state(void)
{
	for (unsigned int in = 0; in < SIM_CM_STATES; in++) {
		for (unsigned int message = 1; message < SIM_CM_MESSAGES; message++) {
			const char *about = sim_cm_step_about((enum sim_cm_state)in,
							      (enum sim_cm_message)message);
			uint8_t mad[SIM_MAD_BYTES];
			unsigned int events, messages;

			if (message == SIM_CM_SIDR_REQ || message == SIM_CM_SIDR_REP)
				continue;
			talk_open(&talk, &(struct talk_config){.joined = message % 2});
			if (!bring((enum sim_cm_state)in)) {
				talk_close(&talk);
				continue;
			}
			TEST_ASSERT_EQUAL_INT(in, state(1));
			events = talk.ends[1].count;
			messages = talk.mad_count;
			write_message((enum sim_cm_message)message, mad);
			talk.ends[1].device->counters = (struct sim_counters){0};
			talk_inject(&talk, 1, mad);
			if (!about) {
				TEST_ASSERT_EQUAL_INT(in, state(1));
				TEST_ASSERT_EQUAL_UINT(events, talk.ends[1].count);
				TEST_ASSERT_EQUAL_UINT(messages, talk.mad_count);
				TEST_ASSERT_EQUAL_UINT64(
					1,
					talk.ends[1]
						.device->counters.discarded[SIM_DISCARD_CM_STATE]);
			}
			talk_close(&talk);
		}
	}
}

/* --- services for datagrams --- */

static struct sim_cm_query query_of(void)
{
	const struct sim_cm_request request = talk_request(&talk);

	return (struct sim_cm_query){
		.service_id = TALK_SERVICE,
		.path = request.path,
		.timeout = 14,
		.max_cm_retries = 2,
		.private_data = {"who", 3},
	};
}

static void ask(void)
{
	struct sim_cm_query query = query_of();
	struct talk_end *end = &talk.ends[0];

	TEST_ASSERT_EQUAL_INT(0, sim_cm_create(end->sim, end, &end->cm));
	TEST_ASSERT_EQUAL_INT(0, sim_cm_send_sidr_req(end->cm, end->device, &query));
}

static void datagram_service(void)
{
	const struct talk_event *event;
	struct sim_cm_answer answer = {
		.qpn = 0x777777,
		.qkey = 0x11223344,
		.info = "more",
		.info_bytes = 4,
		.vendor_id = 0x123456,
		.private_data = {"me", 2},
	};

	talk_listen(&talk);
	talk.ends[1].silent = true;
	ask();
	talk_run(&talk);
	expect_states(SIM_CM_SIDR_REQ_SENT, SIM_CM_SIDR_REQ_RCVD);
	event = talk_nth(&talk, 1, SIM_CM_EVENT_SIDR_REQ, 0);
	TEST_ASSERT_EQUAL_PTR(talk.ends[1].listener, event->listener);
	TEST_ASSERT_EQUAL_MEMORY("who\0", event->private_data, 4);
	TEST_ASSERT_EQUAL_UINT(1, event->event.query.path.attr.port_num);
	/* A duplicate is no second request, and needs no listener. */
	end_listener();
	talk_until(&talk, UINT64_C(4096) << 14);
	talk_run(&talk);
	TEST_ASSERT_EQUAL_UINT(2, sent(SIM_CM_SIDR_REQ));
	TEST_ASSERT_EQUAL_UINT(1, count(1, SIM_CM_EVENT_SIDR_REQ));
	TEST_ASSERT_NULL(talk.ends[1].sim->cm->patient);
	TEST_ASSERT_EQUAL_INT(0, sim_cm_send_sidr_rep(talk.ends[1].cm, &answer));
	talk_run(&talk);
	expect_states(SIM_CM_IDLE, SIM_CM_IDLE);
	event = talk_nth(&talk, 0, SIM_CM_EVENT_SIDR_REP, 0);
	TEST_ASSERT_EQUAL_UINT(0, event->event.answer.status);
	TEST_ASSERT_EQUAL_UINT(0x777777, event->event.answer.qpn);
	TEST_ASSERT_EQUAL_HEX(0x11223344, event->event.answer.qkey);
	TEST_ASSERT_EQUAL_HEX(0x123456, event->event.answer.vendor_id);
	TEST_ASSERT_EQUAL_UINT(4, event->event.answer.info_bytes);
	TEST_ASSERT_EQUAL_MEMORY("more\0", event->ari, 5);
	TEST_ASSERT_EQUAL_MEMORY("me\0", event->private_data, 3);
	TEST_ASSERT_EQUAL_UINT64(SIM_NEVER, sim_engine_next_ns(talk.ends[0].sim));
}

void test_a_datagram_service_is_found(void)
{
	each(datagram_service);
}

/* The fields for the length of the additional information hold more than the information can have. */
static bool lengthen_info(struct talk *own, unsigned int engine, uint8_t *mad)
{
	(void)own;
	(void)engine;
	if (sim_mad_message(mad) == SIM_CM_REJ)
		sim_mad_set(mad, SIM_CM_REJ_INFO_LENGTH, 127);
	else if (sim_mad_message(mad) == SIM_CM_SIDR_REP)
		sim_mad_set(mad, SIM_CM_SIDR_REP_INFO_LENGTH, 255);
	return true;
}

static void info_is_too_long(void)
{
	talk.tamper = lengthen_info;
	talk_connect(&talk);
	ask();
	talk_run(&talk);
	TEST_ASSERT_EQUAL_UINT(SIM_CM_REJ_ARI_BYTES,
			       talk_nth(&talk, 0, SIM_CM_EVENT_REJ, 0)->event.rejection.ari_bytes);
	TEST_ASSERT_EQUAL_UINT(
		SIM_CM_SIDR_REP_INFO_BYTES,
		talk_nth(&talk, 0, SIM_CM_EVENT_SIDR_REP, 0)->event.answer.info_bytes);
}

void test_information_that_is_longer_than_its_field(void)
{
	each(info_is_too_long);
}

static void no_datagram_service(void)
{
	ask();
	talk_run(&talk);
	TEST_ASSERT_EQUAL_UINT(SIM_CM_SIDR_UNSUPPORTED,
			       talk_nth(&talk, 0, SIM_CM_EVENT_SIDR_REP, 0)->event.answer.status);
	sim_cm_destroy(talk.ends[0].cm);
	talk_listen(&talk);
	talk.ends[1].verdict = SIM_CM_REFUSED;
	ask();
	talk_run(&talk);
	TEST_ASSERT_EQUAL_UINT(SIM_CM_SIDR_REJECT,
			       talk_nth(&talk, 0, SIM_CM_EVENT_SIDR_REP, 1)->event.answer.status);
	/* A query is answered even if the owner has no room. */
	talk.ends[1].verdict = SIM_CM_NO_ROOM;
	ask();
	talk_run(&talk);
	TEST_ASSERT_EQUAL_UINT(SIM_CM_SIDR_REJECT,
			       talk_nth(&talk, 0, SIM_CM_EVENT_SIDR_REP, 2)->event.answer.status);
	TEST_ASSERT_EQUAL_UINT64(0,
				 talk.ends[1].device->counters.discarded[SIM_DISCARD_CM_BACKLOG]);
	lose_next(SIM_CM_SIDR_REQ, 100);
	ask();
	talk_until(&talk, talk_now(&talk) + 3 * (UINT64_C(4096) << 14) - 1);
	TEST_ASSERT_EQUAL_INT(SIM_CM_SIDR_REQ_SENT, state(0));
	talk_until(&talk, talk_now(&talk) + 1);
	TEST_ASSERT_EQUAL_UINT(1, count(0, SIM_CM_EVENT_SIDR_ERROR));
	TEST_ASSERT_EQUAL_INT(SIM_CM_IDLE, state(0));
}

void test_a_datagram_service_that_is_not_there(void)
{
	each(no_datagram_service);
}
