/* SPDX-License-Identifier: MIT */
/* Why the connection manager refuses a call, and why QP 1 drops a message: the whole sentence of each. */
#include "test/support/engine.h"
#include "test/support/joined.h"
#include "test/support/talk.h"
#include "unity.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <verbena/event.h>
#include <verbena/packet.h>

static struct talk talk;
static char sentence[512];
static enum vb_reason dropped;

static void note(void *arg, const struct vb_event *event, void *element)
{
	(void)arg;
	(void)element;
	if (event->kind != VB_EVENT_DROP)
		return;
	dropped = event->why->reason;
	vb_why_text(event->why, sentence, sizeof(sentence));
}

void setUp(void)
{
	talk_open(&talk, &(struct talk_config){0});
	talk.engine.sim->host.note = note;
	talk.engine.sim->watched = true;
	sentence[0] = '\0';
}

void tearDown(void)
{
	talk_close(&talk);
}

/* --- refusals --- */

static void expect(int returned, int error, enum vb_reason reason, const char *words)
{
	struct vb_why why;

	TEST_ASSERT_EQUAL_INT(error, returned);
	TEST_ASSERT_TRUE(sim_take_refusal(talk.engine.sim, error, &why));
	TEST_ASSERT_EQUAL_HEX(reason, why.reason);
	vb_why_text(&why, sentence, sizeof(sentence));
	TEST_ASSERT_EQUAL_STRING(words, sentence);
}

static const char *with_id(const struct sim_cm *cm, const char *format)
{
	static char words[512];

	snprintf(words, sizeof(words), format, sim_cm_local_id(cm));
	return words;
}

static struct sim_cm *make(void)
{
	struct sim_cm *cm;

	TEST_ASSERT_EQUAL_INT(0, sim_cm_create(talk.engine.sim, &talk.ends[0], &cm));
	return cm;
}

void test_a_message_in_the_wrong_state(void)
{
	struct sim_cm *cm = make();

	expect(sim_cm_send_rtu(cm, &(struct sim_cm_private){0}), EINVAL, VB_WHY_CM_STATE,
	       with_id(cm, "communication 0x%" PRIx32
			   " cannot send the message with the attribute ID 0x14: its state is "
			   "IDLE; send the messages in the order of docs/cm-messages.md"));
}

void test_private_data_that_is_too_long(void)
{
	static const uint8_t bytes[93];
	struct sim_cm_request request = talk_request(&talk);

	request.private_data = (struct sim_cm_private){bytes, 93};
	expect(sim_cm_send_req(make(), talk.ends[0].device, &request), EINVAL, VB_WHY_CM_PRIVATE,
	       "93 bytes do not fit the private data or the additional information of REQ, which "
	       "has 92 bytes; send less; docs/cm-messages.md has the length of each field");
}

/* Answers, sent as if their request had come. */
void test_private_data_of_an_answer_that_is_too_long(void)
{
	static const uint8_t bytes[197];
	const struct sim_cm_rejection rejection = {.private_data = {bytes, 149}};
	const struct sim_cm_answer answer = {.private_data = {bytes, 137}};
	const struct sim_cm_reply reply = {.private_data = {bytes, 197}};
	struct sim_cm *cm = make();

	cm->state = SIM_CM_REQ_RCVD;
	expect(sim_cm_send_rej(cm, &rejection), EINVAL, VB_WHY_CM_PRIVATE,
	       "149 bytes do not fit the private data or the additional information of REJ, which "
	       "has 148 bytes; send less; docs/cm-messages.md has the length of each field");
	expect(sim_cm_send_rep(cm, &reply), EINVAL, VB_WHY_CM_PRIVATE,
	       "197 bytes do not fit the private data or the additional information of REP, which "
	       "has 196 bytes; send less; docs/cm-messages.md has the length of each field");
	cm->state = SIM_CM_SIDR_REQ_RCVD;
	expect(sim_cm_send_sidr_rep(cm, &answer), EINVAL, VB_WHY_CM_PRIVATE,
	       "137 bytes do not fit the private data or the additional information of SIDR_REP, "
	       "which has 136 bytes; send less; docs/cm-messages.md has the length of each field");
	cm->state = SIM_CM_IDLE;
}

void test_information_that_is_too_long(void)
{
	static const uint8_t bytes[73];
	const struct sim_cm_rejection rejection = {.ari = bytes, .ari_bytes = 73};
	const struct sim_cm_answer answer = {.info = bytes, .info_bytes = 73};
	struct sim_cm *cm = make();

	cm->state = SIM_CM_REQ_RCVD;
	expect(sim_cm_send_rej(cm, &rejection), EINVAL, VB_WHY_CM_PRIVATE,
	       "73 bytes do not fit the private data or the additional information of REJ, which "
	       "has 72 bytes; send less; docs/cm-messages.md has the length of each field");
	cm->state = SIM_CM_SIDR_REQ_RCVD;
	expect(sim_cm_send_sidr_rep(cm, &answer), EINVAL, VB_WHY_CM_PRIVATE,
	       "73 bytes do not fit the private data or the additional information of SIDR_REP, "
	       "which has 72 bytes; send less; docs/cm-messages.md has the length of each field");
	cm->state = SIM_CM_IDLE;
}

void test_a_listener_that_is_used(void)
{
	static const uint8_t any[16];

	talk_establish(&talk);
	expect(sim_cm_listen(talk.ends[0].cm, TALK_SERVICE + 1, NULL, any), EINVAL,
	       VB_WHY_CM_LISTEN,
	       with_id(talk.ends[0].cm,
		       "communication 0x%" PRIx32
		       " cannot listen: its state is ESTABLISHED; listen by a communication that "
		       "has sent nothing yet"));
}

void test_a_value_that_is_too_large(void)
{
	struct sim_cm_request request = talk_request(&talk);

	request.retry_count = 8;
	expect(sim_cm_send_req(make(), talk.ends[0].device, &request), EINVAL, VB_WHY_CM_FIELD,
	       "the field retry_count of the message cannot hold 8: it has 3 bits; give a smaller "
	       "value");
}

void test_a_qp_without_connections(void)
{
	struct sim_cm_request request = talk_request(&talk);

	request.qp_type = IBV_QPT_UD;
	expect(sim_cm_send_req(make(), talk.ends[0].device, &request), EINVAL, VB_WHY_CM_QP_TYPE,
	       "a QP of type UD cannot ask for a connection; use a QP of type RC, UC or XRC_SEND");
}

void test_a_pkey_that_the_port_does_not_have(void)
{
	struct sim_cm_request request = talk_request(&talk);

	request.path.pkey = 0x1234;
	expect(sim_cm_send_req(make(), talk.ends[0].device, &request), EINVAL, VB_WHY_CM_PKEY,
	       "port 1 has no P_Key 0x1234; give a P_Key of the port's table");
}

void test_a_service_that_is_used(void)
{
	static const uint8_t one[16] = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 1};

	TEST_ASSERT_EQUAL_INT(0, sim_cm_reserve(talk.engine.sim, TALK_SERVICE, one, 0));
	expect(sim_cm_reserve(talk.engine.sim, TALK_SERVICE, one, 0), EADDRINUSE,
	       VB_WHY_CM_SERVICE_USED,
	       "the service ID 0x1061234 is used at the address; choose another port or another "
	       "address, or end the program that has it");
}

void test_a_service_that_is_used_at_all_addresses(void)
{
	static const uint8_t any[16];

	talk_listen(&talk);
	expect(sim_cm_listen(make(), TALK_SERVICE, NULL, any), EADDRNOTAVAIL,
	       VB_WHY_CM_SERVICE_OVERLAPS,
	       "the service ID 0x1061234 is used, and one of the two addresses stands for all "
	       "addresses; choose another port; set RDMA_OPTION_ID_REUSEADDR on all identifiers, "
	       "or RDMA_OPTION_ID_AFONLY if the families differ");
}

static int full(void *arg, uint64_t service_id, const uint8_t address[16], uint32_t flags)
{
	(void)arg;
	(void)service_id;
	(void)address;
	(void)flags;
	return ENOMEM;
}

void test_a_table_of_services_that_is_full(void)
{
	static const uint8_t any[16];
	struct sim_way_out way = {.reserve = full};

	talk.engine.sim->net->way = &way;
	expect(sim_cm_reserve(talk.engine.sim, TALK_SERVICE, any, false), ENOMEM,
	       VB_WHY_CM_SERVICES_FULL,
	       "the world's table has no place for the service ID 0x1061234; end programs that "
	       "have service IDs");
	talk.engine.sim->net->way = NULL;
}

void test_attributes_that_are_not_known(void)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR};
	struct sim_cm *cm = make();
	int mask;

	expect(sim_cm_init_qp_attr(cm, &attr, &mask), EINVAL, VB_WHY_CM_STEP,
	       with_id(cm,
		       "communication 0x%" PRIx32
		       " has no attributes for the step of its QP to RTR: its state is IDLE; ask "
		       "for the attributes of INIT, RTR and RTS, while the connection is made or "
		       "stands"));
}

void test_a_sign_of_life_that_nobody_waits_for(void)
{
	struct sim_cm *cm = make();

	expect(sim_cm_notify(cm), EINVAL, VB_WHY_CM_NOT_PENDING,
	       with_id(cm, "communication 0x%" PRIx32
			   " does not wait for an RTU: its state is IDLE; tell of "
			   "IBV_EVENT_COMM_EST after the REP was sent"));
	sim_cm_destroy(cm);
	talk_establish(&talk);
	cm = talk.ends[1].cm;
	expect(sim_cm_notify(cm), EISCONN, VB_WHY_CM_STANDS,
	       with_id(cm, "communication 0x%" PRIx32 " is connected; nothing: the RTU has come"));
}

void test_too_many_communications(void)
{
	struct sim_cm *cm;

	talk.engine.sim->cm->table.limit = 2;
	make();
	make();
	talk.engine.sim->cm->table.live = SIM_CM_MAX;
	talk.engine.sim->cm->table.limit = SIM_CM_MAX;
	expect(sim_cm_create(talk.engine.sim, NULL, &cm), ENOMEM, VB_WHY_CM_LIMIT,
	       "the connection manager has 65536 communications, which is its limit; destroy "
	       "communications that have ended");
	talk.engine.sim->cm->table.live = 2;
}

/* --- what QP 1 drops --- */

/* A packet arrives at the port of side 1. */
static void arrive(const struct sim_packet *packet)
{
	struct ibv_ah_attr attr = engine_ah_attr(&talk.engine.sides[1].gid);
	struct sim_path path = {0};

	TEST_ASSERT_EQUAL_INT(0, sim_path_resolve(talk.ends[0].device, &attr, &path));
	engine_send_on(&talk.engine, &path, packet);
	talk_run(&talk);
}

static struct sim_packet packet_of(struct sim_span *span, const uint8_t *mad)
{
	*span = (struct sim_span){mad, SIM_MAD_BYTES};
	return (struct sim_packet){
		.opcode = sim_opcode_request(SIM_TRANSPORT_UD, IBV_WR_SEND, true, true),
		.pkey = 0xffff,
		.dest_qpn = 1,
		.source_qpn = 1,
		.qkey = SIM_GSI_QKEY,
		.payload_bytes = SIM_MAD_BYTES,
		.span_count = 1,
		.spans = span,
	};
}

static void expect_drop(enum sim_discard cause, enum vb_reason reason, const char *words)
{
	const struct sim_counters *counters = &talk.ends[1].device->counters;

	TEST_ASSERT_EQUAL_STRING(words, sentence);
	TEST_ASSERT_EQUAL_HEX(reason, dropped);
	TEST_ASSERT_EQUAL_UINT64(1, counters->discarded[cause]);
	TEST_ASSERT_EQUAL_UINT64(1, counters->dropped_packets);
	talk.ends[1].device->counters = (struct sim_counters){0};
	sentence[0] = '\0';
}

/* Makes the port of side 1 a full (0x8000) or a limited (0) member of all its partitions. */
static void set_membership(uint16_t full)
{
	struct sim_port *port = &talk.ends[1].device->ports[0];

	for (unsigned int i = 0; i < port->pkey_count; i++)
		if (port->pkeys[i])
			port->pkeys[i] = (uint16_t)((port->pkeys[i] & 0x7fff) | full);
}

void test_packets_that_are_no_messages(void)
{
	uint8_t mad[SIM_MAD_BYTES];
	struct sim_span span;
	struct sim_packet right, packet;

	sim_mad_begin(mad, SIM_CM_REQ, 1);
	right = packet_of(&span, mad);
	packet = right;
	packet.opcode = sim_opcode_request(SIM_TRANSPORT_RC, IBV_WR_SEND, true, true);
	arrive(&packet);
	expect_drop(SIM_DISCARD_TRANSPORT, VB_WHY_DROP_MAD_OPCODE,
		    "dropped RC SEND_ONLY to QP 1: a management datagram is a SEND of one packet "
		    "from a UD QP; send to the QP number of a QP of the peer; QP 1 is the "
		    "connection manager's");
	packet = right;
	packet.pkey = 0x8123;
	arrive(&packet);
	expect_drop(SIM_DISCARD_PKEY, VB_WHY_DROP_MAD_PKEY,
		    "dropped UD SEND_ONLY to QP 1: port 1 has no P_Key that matches 0x8123; give "
		    "both ports a P_Key of the same partition");
	/* Two limited members of a partition do not talk. */
	set_membership(0);
	packet.pkey = 0x7fff;
	arrive(&packet);
	expect_drop(SIM_DISCARD_PKEY, VB_WHY_DROP_MAD_PKEY,
		    "dropped UD SEND_ONLY to QP 1: port 1 has no P_Key that matches 0x7fff; give "
		    "both ports a P_Key of the same partition");
	set_membership(0x8000);
	packet = right;
	packet.qkey = 0x11111111;
	arrive(&packet);
	expect_drop(SIM_DISCARD_QKEY, VB_WHY_DROP_MAD_QKEY,
		    "dropped UD SEND_ONLY to QP 1: its Q_Key is 0x11111111, and that of QP 1 is "
		    "0x80010000; let the connection manager send messages to QP 1");
	packet = right;
	packet.source_qpn = 17;
	arrive(&packet);
	expect_drop(SIM_DISCARD_MAD_SOURCE, VB_WHY_DROP_MAD_SOURCE,
		    "dropped UD SEND_ONLY to QP 1: it comes from QP 0x11, and messages of the "
		    "connection manager come from QP 1; let the connection manager send messages "
		    "to QP 1");
	packet = right;
	packet.payload_bytes = span.length_bytes = 255;
	arrive(&packet);
	expect_drop(SIM_DISCARD_MAD_LENGTH, VB_WHY_DROP_MAD_LENGTH,
		    "dropped UD SEND_ONLY to QP 1: it has 255 bytes, and a management datagram has "
		    "256; let the connection manager send messages to QP 1");
}

void test_headers_of_other_messages(void)
{
	static const struct {
		enum sim_cm_field field;
		uint64_t value;
		enum sim_discard cause;
		enum vb_reason reason;
		const char *words;
	} rows[] = {
		{SIM_CM_NONE_BASE_VERSION, 2, SIM_DISCARD_MAD_VERSION, VB_WHY_DROP_MAD_BASE_VERSION,
		 "dropped UD SEND_ONLY to QP 1: the base version of the message is 2, and the "
		 "simulator has 1; use a peer of base version 1"},
		{SIM_CM_NONE_CLASS, 3, SIM_DISCARD_MAD_CLASS, VB_WHY_DROP_MAD_CLASS,
		 "dropped UD SEND_ONLY to QP 1: the management class is 0x3, and QP 1 serves the "
		 "class 0x7 only; ask another device; the simulator has no agents of other "
		 "classes"},
		{SIM_CM_NONE_CLASS_VERSION, 1, SIM_DISCARD_MAD_VERSION,
		 VB_WHY_DROP_MAD_CLASS_VERSION,
		 "dropped UD SEND_ONLY to QP 1: the class version of the message is 1, and the "
		 "simulator has 2; use a peer whose connection manager has class version 2"},
		{SIM_CM_NONE_METHOD, 0x81, SIM_DISCARD_MAD_METHOD, VB_WHY_DROP_MAD_METHOD,
		 "dropped UD SEND_ONLY to QP 1: the method is 0x81, and messages of the connection "
		 "manager have 0x3; use a peer that sends messages by the method Send"},
		{SIM_CM_NONE_ATTRIBUTE_ID, 0x1b, SIM_DISCARD_MAD_ATTRIBUTE,
		 VB_WHY_DROP_MAD_ATTRIBUTE,
		 "dropped a message to QP 1: no message of the connection manager has the "
		 "attribute ID 0x1b; use a peer that sends the messages of docs/cm-messages.md"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint8_t mad[SIM_MAD_BYTES];
		struct sim_span span;
		struct sim_packet packet;

		sim_mad_begin(mad, SIM_CM_REQ, 1);
		sim_mad_set(mad, rows[i].field, rows[i].value);
		packet = packet_of(&span, mad);
		arrive(&packet);
		expect_drop(rows[i].cause, rows[i].reason, rows[i].words);
	}
}

/* --- what the connection manager drops --- */

void test_a_message_to_nobody(void)
{
	uint8_t mad[SIM_MAD_BYTES];

	sim_mad_begin(mad, SIM_CM_RTU, 1);
	sim_mad_set(mad, SIM_CM_RTU_LOCAL_ID, 0x22);
	sim_mad_set(mad, SIM_CM_RTU_REMOTE_ID, 0xfffffff1);
	talk_inject(&talk, 1, mad);
	expect_drop(SIM_DISCARD_CM_UNKNOWN, VB_WHY_DROP_CM_UNKNOWN,
		    "dropped the RTU: no communication has the ID 0xfffffff1 and the peer's ID "
		    "0x22; nothing: a message may come later than the end of its communication");
}

void test_a_message_that_a_state_has_no_use_for(void)
{
	uint8_t mad[SIM_MAD_BYTES];
	char words[256];

	talk_establish(&talk);
	sim_mad_begin(mad, SIM_CM_DREP, 1);
	sim_mad_set(mad, SIM_CM_DREP_LOCAL_ID, sim_cm_local_id(talk.ends[0].cm));
	sim_mad_set(mad, SIM_CM_DREP_REMOTE_ID, sim_cm_local_id(talk.ends[1].cm));
	talk_inject(&talk, 1, mad);
	snprintf(words, sizeof(words),
		 "dropped the DREP: the communication 0x%" PRIx32
		 " is in state 10, which has no use for it; nothing: a message may come twice or "
		 "late",
		 sim_cm_local_id(talk.ends[1].cm));
	expect_drop(SIM_DISCARD_CM_STATE, VB_WHY_DROP_CM_STATE, words);
}

void test_a_dreq_to_another_qp(void)
{
	uint8_t mad[SIM_MAD_BYTES];

	talk_establish(&talk);
	sim_mad_begin(mad, SIM_CM_DREQ, 1);
	sim_mad_set(mad, SIM_CM_DREQ_LOCAL_ID, sim_cm_local_id(talk.ends[0].cm));
	sim_mad_set(mad, SIM_CM_DREQ_REMOTE_ID, sim_cm_local_id(talk.ends[1].cm));
	sim_mad_set(mad, SIM_CM_DREQ_REMOTE_QPN, 0x222223);
	talk_inject(&talk, 1, mad);
	expect_drop(SIM_DISCARD_CM_FIELD, VB_WHY_DROP_CM_FIELD,
		    "dropped the DREQ: a field of the message cannot be 0x222223; use a peer that "
		    "follows chapter 12 of the InfiniBand specification");
}

void test_a_request_that_finds_no_room(void)
{
	uint8_t mad[SIM_MAD_BYTES];

	talk_listen(&talk);
	talk.engine.sim->cm->table.limit = 1;
	sim_mad_begin(mad, SIM_CM_REQ, 1);
	sim_mad_set(mad, SIM_CM_REQ_LOCAL_ID, 7);
	sim_mad_set(mad, SIM_CM_REQ_SERVICE_ID, TALK_SERVICE);
	talk_inject(&talk, 1, mad);
	expect_drop(SIM_DISCARD_CM_FULL, VB_WHY_DROP_CM_FULL,
		    "dropped the REQ: 1 messages or communications wait, which is the limit; let "
		    "the program take connection requests faster; the peer repeats its message");
}

void test_a_request_beyond_the_backlog(void)
{
	talk_listen(&talk);
	talk.ends[1].verdict = SIM_CM_NO_ROOM;
	talk_connect(&talk);
	talk_run(&talk);
	expect_drop(
		SIM_DISCARD_CM_BACKLOG, VB_WHY_DROP_CM_BACKLOG,
		"dropped the REQ: as many requests for service ID 0x1061234 wait for the program "
		"as its backlog allows; call rdma_get_cm_event(3) sooner, or rdma_listen(3) with "
		"a larger backlog; the peer repeats its REQ");
}
