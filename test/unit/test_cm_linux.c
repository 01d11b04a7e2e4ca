/* SPDX-License-Identifier: MIT */
/*
 * Messages of the connection manager of Linux 6.1: test/data/rxe-capture-cm.pcap has the frames that
 * SoftRoCE sent while test/pairs/connections.c ran against Verbena. Only the names of this test's own
 * objects are replaced in them: IDs, GIDs and QPNs.
 */
#include "sim/cm/ip.h"
#include "test/support/engine.h"
#include "test/support/joined.h"
#include "test/support/talk.h"
#include "unity.h"

#include <pcap/pcap.h>
#include <rdma/rdma_cma.h>
#include <string.h>

/* The frames of the file, in their order. */
enum frame {
	REQ,
	RTU,
	DREQ,
	REP,
	DREP,
	REJ_BY_PROGRAM, /* of a REQ */
	REJ_NO_SERVICE, /* of a REQ */
	REJ_OF_REP,
	SIDR_REQ,
	SIDR_REP,
	SIDR_REP_REJECTED,
	SIDR_REP_NO_SERVICE,
	REQ_IPV6,
	SIDR_REQ_IPV6,
	FRAMES,
};

static const enum sim_cm_message kinds[FRAMES] = {
	SIM_CM_REQ,	 SIM_CM_RTU,	  SIM_CM_DREQ, SIM_CM_REP,	SIM_CM_DREP,
	SIM_CM_REJ,	 SIM_CM_REJ,	  SIM_CM_REJ,  SIM_CM_SIDR_REQ, SIM_CM_SIDR_REP,
	SIM_CM_SIDR_REP, SIM_CM_SIDR_REP, SIM_CM_REQ,  SIM_CM_SIDR_REQ,
};

static struct captured {
	struct sim_packet packet;
	struct sim_route route;
	uint8_t mad[SIM_MAD_BYTES];
} captured[FRAMES];

static struct talk talk;
static bool passes;

/* Messages of the test's own two sides are lost: each side talks to Linux. */
static bool lose_own(struct talk *own, unsigned int engine, uint8_t *mad)
{
	(void)own;
	(void)engine;
	(void)mad;
	return passes;
}

static int copy(void *dst, const void *src, size_t length_bytes)
{
	memcpy(dst, src, length_bytes);
	return 0;
}

static void read_frame(enum frame number, const struct pcap_pkthdr *header, const uint8_t *bytes)
{
	struct captured *own = &captured[number];
	struct sim_span span;
	uint8_t again[SIM_FRAME_BYTES_MAX];

	TEST_ASSERT_EQUAL_INT(SIM_DECODE_OK, sim_packet_decode(bytes, header->caplen, &own->packet,
							       &span, &own->route));
	TEST_ASSERT_EQUAL_UINT(header->caplen,
			       sim_packet_encode(&own->packet, &own->route, copy, again, NULL));
	TEST_ASSERT_EQUAL_MEMORY(bytes, again, header->caplen);
	TEST_ASSERT_EQUAL_UINT(SIM_MAD_BYTES, own->packet.payload_bytes);
	memcpy(own->mad, span.base, SIM_MAD_BYTES);
	TEST_ASSERT_EQUAL_INT(kinds[number], sim_mad_message(own->mad));
}

void setUp(void)
{
	char error[PCAP_ERRBUF_SIZE];
	pcap_t *file = pcap_open_offline("test/data/rxe-capture-cm.pcap", error);
	struct pcap_pkthdr *header;
	const uint8_t *bytes;

	TEST_ASSERT_NOT_NULL_MESSAGE(file, error);
	for (unsigned int i = 0; i < FRAMES; i++) {
		TEST_ASSERT_EQUAL_INT(1, pcap_next_ex(file, &header, &bytes));
		read_frame((enum frame)i, header, bytes);
	}
	pcap_close(file);
	talk_open(&talk, &(struct talk_config){0});
	talk.tamper = lose_own;
	passes = false;
}

void tearDown(void)
{
	if (talk.ends[0].sim)
		talk_close(&talk);
}

/* --- messages of Linux to a side --- */

static uint8_t mad[SIM_MAD_BYTES];

static void take(enum frame number)
{
	memcpy(mad, captured[number].mad, sizeof(mad));
}

static void give(unsigned int side)
{
	passes = true;
	talk_inject(&talk, side, mad);
	passes = false;
}

/* A message to the side's communication. */
static void give_to(unsigned int side, enum frame number)
{
	take(number);
	sim_mad_set(mad, SIM_CM_REP_REMOTE_ID, sim_cm_local_id(talk.ends[side].cm));
	/* It was captured in another connection. */
	if (number == REJ_OF_REP)
		sim_mad_set(mad, SIM_CM_REJ_LOCAL_ID, sim_cm_remote_id(talk.ends[side].cm));
	if (number == DREQ)
		sim_mad_set(mad, SIM_CM_DREQ_REMOTE_QPN, talk_reply().qpn);
	give(side);
}

static void put_gid(enum sim_cm_field field, unsigned int side)
{
	sim_mad_put(mad, field, talk.engine.sides[side].gid.raw, 16);
}

/* Side 1 listens for the service of a request, and the request comes. */
static void give_request(enum frame number)
{
	const bool connects = kinds[number] == SIM_CM_REQ;
	struct talk_end *end = &talk.ends[1];
	struct sim_gsi_target target;

	take(number);
	target = sim_cm_request_target(mad);
	TEST_ASSERT_EQUAL_INT(0, sim_cm_create(end->sim, end, &end->listener));
	TEST_ASSERT_EQUAL_INT(
		0, sim_cm_listen(end->listener, target.service_id, NULL, target.address));
	if (connects) {
		put_gid(SIM_CM_REQ_LOCAL_GID, 0);
		put_gid(SIM_CM_REQ_REMOTE_GID, 1);
	}
	give(1);
}

static const struct talk_event *event(unsigned int side, enum sim_cm_event_kind kind)
{
	const struct talk_event *found = talk_nth(&talk, side, kind, 0);

	TEST_ASSERT_NOT_NULL(found);
	TEST_ASSERT_NULL(talk_nth(&talk, side, kind, 1));
	return found;
}

/* Where the private data stands: Linux include/rdma/ibta_vol1_c12.h; the header has 24 bytes. */
static const struct {
	unsigned int at, bytes;
} places[SIM_CM_MESSAGES] = {
	[SIM_CM_REQ] = {24 + 140, 92},	    [SIM_CM_REJ] = {24 + 84, 148},
	[SIM_CM_REP] = {24 + 36, 196},	    [SIM_CM_SIDR_REQ] = {24 + 16, 216},
	[SIM_CM_SIDR_REP] = {24 + 96, 136},
};

static void check_private(const struct talk_event *heard, const struct sim_cm_private *data,
			  enum frame number)
{
	const unsigned int bytes = places[kinds[number]].bytes;

	TEST_ASSERT_EQUAL_UINT(bytes, data->bytes);
	TEST_ASSERT_EQUAL_MEMORY(captured[number].mad + places[kinds[number]].at,
				 heard->private_data, bytes);
}

/* --- QP 1 --- */

static void count(void *arg, const struct sim_gsi_message *message)
{
	unsigned int *taken = arg;

	TEST_ASSERT_EQUAL_MEMORY(captured[*taken].mad, message->mad, SIM_MAD_BYTES);
	++*taken;
}

/* SoftRoCE asks for an ACK of each datagram, and its packets have no migration state. */
void test_qp_1_takes_each_message(void)
{
	struct sim_port *port = &talk.ends[1].device->ports[0];
	const struct sim_gsi own = talk.ends[1].sim->net->gsi;
	unsigned int taken = 0;

	sim_gsi_set(talk.ends[1].sim, &(struct sim_gsi){&taken, count, own.server, own.sent});
	for (unsigned int i = 0; i < FRAMES; i++) {
		const struct sim_span span = {captured[i].mad, SIM_MAD_BYTES};

		captured[i].packet.spans = &span;
		TEST_ASSERT_EQUAL_HEX(SIM_PACKET_ACK_REQUEST, captured[i].packet.flags);
		sim_gsi_arrive(port, &captured[i].packet, &captured[i].route, 0);
		TEST_ASSERT_EQUAL_UINT(i + 1, taken);
	}
	sim_gsi_set(talk.ends[1].sim, &own);
}

/* --- requests --- */

/* The values of test/pairs/connections.c, and those that Linux adds: drivers/infiniband/core/cma.c,
 * cma_connect_ib(). */
static void check_request(const struct sim_cm_request *request, unsigned int port)
{
	TEST_ASSERT_EQUAL_HEX64(sim_cm_service_id(SIM_CM_PS_TCP, (uint16_t)port),
				request->service_id);
	TEST_ASSERT_EQUAL_INT(IBV_QPT_RC, request->qp_type);
	TEST_ASSERT_EQUAL_UINT(3, request->responder_resources);
	TEST_ASSERT_EQUAL_UINT(4, request->initiator_depth);
	TEST_ASSERT_EQUAL_UINT(5, request->retry_count);
	TEST_ASSERT_EQUAL_UINT(6, request->rnr_retry_count);
	TEST_ASSERT_EQUAL_UINT(15, request->max_cm_retries);
	TEST_ASSERT_EQUAL_UINT(20, request->remote_response_timeout);
	TEST_ASSERT_EQUAL_UINT(20, request->local_response_timeout);
	TEST_ASSERT_EQUAL_INT(IBV_MTU_4096, request->path.mtu);
	TEST_ASSERT_EQUAL_HEX(0xffff, request->path.pkey);
	/* A timeout of 19: the life time is 18, and the delay of SoftRoCE's ACKs 15. */
	TEST_ASSERT_EQUAL_UINT(18, request->path.packet_life_time);
	TEST_ASSERT_FALSE(request->srq);
	TEST_ASSERT_EQUAL_UINT(0, request->vendor_id);
}

/* The addresses in the private data are those of the frame. */
static void check_addresses(const struct talk_event *heard, enum frame number)
{
	const struct captured *frame = &captured[number];
	struct sim_cm_ip ip;

	TEST_ASSERT_TRUE(sim_cm_ip_read(heard->private_data, &ip));
	TEST_ASSERT_EQUAL_INT(number == REQ_IPV6 || number == SIDR_REQ_IPV6, ip.ipv6);
	TEST_ASSERT_EQUAL_MEMORY(frame->route.source_gid, ip.source, 16);
	TEST_ASSERT_EQUAL_MEMORY(frame->route.dest_gid, ip.dest, 16);
	TEST_ASSERT_TRUE(ip.source_port >= 32768);
}

static void hear_request(enum frame number, unsigned int port)
{
	const struct talk_event *heard;

	give_request(number);
	heard = event(1, SIM_CM_EVENT_REQ);
	check_request(&heard->event.request, port);
	check_addresses(heard, number);
	check_private(heard, &heard->event.request.private_data, number);
	TEST_ASSERT_EQUAL_INT(SIM_CM_REP_SENT, sim_cm_state(talk.ends[1].cm));
	TEST_ASSERT_EQUAL_HEX32(sim_mad_get(captured[number].mad, SIM_CM_REQ_LOCAL_ID),
				sim_cm_remote_id(talk.ends[1].cm));
}

void test_linux_asks_and_disconnects(void)
{
	hear_request(REQ, 20001);
	give_to(1, RTU);
	event(1, SIM_CM_EVENT_RTU);
	TEST_ASSERT_EQUAL_INT(SIM_CM_ESTABLISHED, sim_cm_state(talk.ends[1].cm));
	give_to(1, DREQ);
	event(1, SIM_CM_EVENT_DREQ);
	TEST_ASSERT_EQUAL_INT(SIM_CM_TIMEWAIT, sim_cm_state(talk.ends[1].cm));
	TEST_ASSERT_EQUAL_UINT(1, talk_sent(&talk, SIM_CM_DREP));
}

void test_linux_asks_over_ipv6(void)
{
	hear_request(REQ_IPV6, 20025);
}

static void check_rejection(unsigned int side, enum frame number, unsigned int reason)
{
	const struct talk_event *heard = event(side, SIM_CM_EVENT_REJ);

	TEST_ASSERT_EQUAL_UINT(reason, heard->event.rejection.reason);
	check_private(heard, &heard->event.rejection.private_data, number);
}

void test_linux_rejects_a_rep(void)
{
	hear_request(REQ, 20001);
	give_to(1, REJ_OF_REP);
	check_rejection(1, REJ_OF_REP, SIM_CM_REJ_CONSUMER);
	TEST_ASSERT_EQUAL_INT(SIM_CM_IDLE, sim_cm_state(talk.ends[1].cm));
}

/* --- answers --- */

void test_linux_accepts_and_answers_the_end(void)
{
	const struct sim_cm_reply *reply;

	talk_connect(&talk);
	talk_run(&talk);
	give_to(0, REP);
	reply = &event(0, SIM_CM_EVENT_REP)->event.reply;
	TEST_ASSERT_EQUAL_HEX(0x11, reply->qpn);
	TEST_ASSERT_EQUAL_UINT(3, reply->responder_resources);
	TEST_ASSERT_EQUAL_UINT(3, reply->initiator_depth);
	TEST_ASSERT_EQUAL_UINT(6, reply->rnr_retry_count);
	TEST_ASSERT_EQUAL_UINT(15, reply->target_ack_delay);
	check_private(event(0, SIM_CM_EVENT_REP), &reply->private_data, REP);
	TEST_ASSERT_EQUAL_INT(SIM_CM_ESTABLISHED, sim_cm_state(talk.ends[0].cm));
	TEST_ASSERT_EQUAL_INT(0, sim_cm_send_dreq(talk.ends[0].cm, &(struct sim_cm_private){0}));
	give_to(0, DREP);
	event(0, SIM_CM_EVENT_DREP);
	TEST_ASSERT_EQUAL_INT(SIM_CM_TIMEWAIT, sim_cm_state(talk.ends[0].cm));
}

static void hear_rejection(enum frame number, unsigned int reason)
{
	talk_connect(&talk);
	talk_run(&talk);
	give_to(0, number);
	check_rejection(0, number, reason);
	TEST_ASSERT_EQUAL_INT(SIM_CM_IDLE, sim_cm_state(talk.ends[0].cm));
}

void test_linux_rejects_a_request(void)
{
	hear_rejection(REJ_BY_PROGRAM, SIM_CM_REJ_CONSUMER);
}

void test_linux_has_no_service(void)
{
	hear_rejection(REJ_NO_SERVICE, SIM_CM_REJ_INVALID_SERVICE_ID);
}

/* --- datagram services --- */

static void hear_query(enum frame number, unsigned int port)
{
	const struct talk_event *heard;

	give_request(number);
	heard = event(1, SIM_CM_EVENT_SIDR_REQ);
	TEST_ASSERT_EQUAL_HEX64(sim_cm_service_id(SIM_CM_PS_UDP, (uint16_t)port),
				heard->event.query.service_id);
	check_addresses(heard, number);
	check_private(heard, &heard->event.query.private_data, number);
}

void test_linux_asks_for_datagrams(void)
{
	hear_query(SIDR_REQ, 20001);
}

void test_linux_asks_for_datagrams_over_ipv6(void)
{
	hear_query(SIDR_REQ_IPV6, 20025);
}

static const struct sim_cm_answer *hear_answer(enum frame number)
{
	const struct sim_cm_request request = talk_request(&talk);
	const struct sim_cm_query query = {.service_id = TALK_SERVICE,
					   .path = request.path,
					   .timeout = 16,
					   .max_cm_retries = 3};
	struct talk_end *end = &talk.ends[0];
	const struct sim_cm_answer *answer;

	TEST_ASSERT_EQUAL_INT(0, sim_cm_create(end->sim, end, &end->cm));
	TEST_ASSERT_EQUAL_INT(0, sim_cm_send_sidr_req(end->cm, end->device, &query));
	talk_run(&talk);
	take(number);
	sim_mad_set(mad, SIM_CM_SIDR_REP_REQUEST_ID, sim_cm_local_id(end->cm));
	give(0);
	answer = &event(0, SIM_CM_EVENT_SIDR_REP)->event.answer;
	check_private(event(0, SIM_CM_EVENT_SIDR_REP), &answer->private_data, number);
	TEST_ASSERT_EQUAL_INT(SIM_CM_IDLE, sim_cm_state(end->cm));
	return answer;
}

void test_linux_serves_datagrams(void)
{
	const struct sim_cm_answer *answer = hear_answer(SIDR_REP);

	TEST_ASSERT_EQUAL_UINT(0, answer->status);
	TEST_ASSERT_EQUAL_HEX(0x16, answer->qpn);
	TEST_ASSERT_EQUAL_HEX32(RDMA_UDP_QKEY, answer->qkey);
}

void test_linux_rejects_datagrams(void)
{
	TEST_ASSERT_EQUAL_UINT(SIM_CM_SIDR_REJECT, hear_answer(SIDR_REP_REJECTED)->status);
}

void test_linux_has_no_datagram_service(void)
{
	TEST_ASSERT_EQUAL_UINT(SIM_CM_SIDR_UNSUPPORTED, hear_answer(SIDR_REP_NO_SERVICE)->status);
}
