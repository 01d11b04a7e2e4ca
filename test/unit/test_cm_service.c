/* SPDX-License-Identifier: MIT */
/*
 * Services of the connection manager: who may have a service ID, which listener gets a request; the header
 * of IP; and what a program gets for its QPs.
 */
#include "sim/cm/ip.h"
#include "sim/net/service_address.h"
#include "test/support/engine.h"
#include "test/support/joined.h"
#include "test/support/talk.h"
#include "unity.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static struct talk talk;

static const uint8_t any[16];
static const uint8_t left[16] = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 1};
static const uint8_t right[16] = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 2};

void setUp(void)
{
	talk_open(&talk, &(struct talk_config){0});
}

void tearDown(void)
{
	talk_close(&talk);
}

/* Opens another talk instead. */
static void reopen(const struct talk_config *config)
{
	talk_close(&talk);
	talk_open(&talk, config);
}

/* --- IP --- */

void test_the_header_of_ip(void)
{
	struct sim_cm_ip ip = {.source_port = 0x1234}, read;
	uint8_t bytes[SIM_CM_IP_BYTES];

	memcpy(ip.source, left, 16);
	memcpy(ip.dest, right, 16);
	sim_cm_ip_write(&ip, bytes);
	TEST_ASSERT_EQUAL_MEMORY("\x00\x40\x12\x34"
				 "\0\0\0\0\0\0\0\0\0\0\0\0\x0a\0\0\x01"
				 "\0\0\0\0\0\0\0\0\0\0\0\0\x0a\0\0\x02",
				 bytes, SIM_CM_IP_BYTES);
	memset(&read, 0xee, sizeof(read));
	TEST_ASSERT_TRUE(sim_cm_ip_read(bytes, &read));
	TEST_ASSERT_FALSE(read.ipv6);
	TEST_ASSERT_EQUAL_HEX(0x1234, read.source_port);
	TEST_ASSERT_EQUAL_MEMORY(left, read.source, 16);
	TEST_ASSERT_EQUAL_MEMORY(right, read.dest, 16);
	for (unsigned int i = 0; i < 16; i++)
		ip.source[i] = (uint8_t)(0x20 + i);
	ip.ipv6 = true;
	sim_cm_ip_write(&ip, bytes);
	TEST_ASSERT_EQUAL_HEX(0x60, bytes[1]);
	TEST_ASSERT_TRUE(sim_cm_ip_read(bytes, &read));
	TEST_ASSERT_TRUE(read.ipv6);
	TEST_ASSERT_EQUAL_MEMORY(ip.source, read.source, 16);
	TEST_ASSERT_EQUAL_MEMORY(ip.dest, read.dest, 16);
	bytes[1] = 0x50;
	TEST_ASSERT_FALSE(sim_cm_ip_read(bytes, &read));
	bytes[1] = 0x40;
	bytes[0] = 1;
	TEST_ASSERT_FALSE(sim_cm_ip_read(bytes, &read));
}

void test_service_ids(void)
{
	TEST_ASSERT_EQUAL_HEX64(UINT64_C(0x10630d4), sim_cm_service_id(SIM_CM_PS_TCP, 0x30d4));
	TEST_ASSERT_EQUAL_HEX64(UINT64_C(0x111ffff), sim_cm_service_id(SIM_CM_PS_UDP, 0xffff));
	TEST_ASSERT_EQUAL_HEX(0x30d4, sim_cm_service_port(UINT64_C(0x10630d4)));
	TEST_ASSERT_TRUE(sim_cm_service_is_ip(UINT64_C(0x13f0000)));
	TEST_ASSERT_FALSE(sim_cm_service_is_ip(UINT64_C(0x1000000001061234)));
	TEST_ASSERT_FALSE(sim_cm_service_is_ip(0x1234));
}

/* --- who has a service ID --- */

static int reserve(unsigned int side, const uint8_t address[16], uint32_t flags)
{
	return sim_cm_reserve(talk.ends[side].sim, TALK_SERVICE, address, flags);
}

static int listen_at(struct sim_cm **cm, unsigned int side, const struct sim_device *device,
		     const uint8_t address[16])
{
	TEST_ASSERT_EQUAL_INT(0, sim_cm_create(talk.ends[side].sim, &talk.ends[side], cm));
	return sim_cm_listen(*cm, TALK_SERVICE, device, address);
}

static void reservations(void)
{
	/* Sides of one engine, or of two, whose second one asks. */
	TEST_ASSERT_EQUAL_INT(0, reserve(0, left, 0));
	TEST_ASSERT_EQUAL_INT(EADDRINUSE, reserve(1, left, 0));
	TEST_ASSERT_EQUAL_INT(EADDRINUSE, reserve(1, left, SIM_SERVICE_SHARED));
	sim_cm_unreserve(talk.ends[0].sim, TALK_SERVICE, left);
	TEST_ASSERT_EQUAL_INT(0, reserve(1, left, 0));
	sim_cm_unreserve(talk.ends[1].sim, TALK_SERVICE, left);
	TEST_ASSERT_EQUAL_INT(0, reserve(0, left, SIM_SERVICE_SHARED));
	TEST_ASSERT_EQUAL_INT(EADDRINUSE, reserve(1, left, 0));
	TEST_ASSERT_EQUAL_INT(0, reserve(1, left, SIM_SERVICE_SHARED));
}

void test_reservations(void)
{
	reservations();
	reopen(&(struct talk_config){.joined = true});
	reservations();
}

enum {
	SHARED = SIM_SERVICE_SHARED,
	AFONLY = SIM_SERVICE_AFONLY,
	UNIQUE = SIM_SERVICE_UNIQUE,
};

static const uint8_t any_ipv4[16] = {[10] = 0xff, [11] = 0xff};
static const uint8_t ipv6[16] = {0xfd, [15] = 1};

/* Linux drivers/infiniband/core/cma.c, cma_check_port, row by row. */
static const struct {
	const uint8_t *has;
	uint32_t has_flags;
	const uint8_t *asks;
	uint32_t asks_flags;
	int error;
} conflicts[] = {
	{left, 0, left, 0, EADDRINUSE},
	{left, 0, left, SHARED, EADDRINUSE},
	{left, SHARED, left, 0, EADDRINUSE},
	{left, SHARED, left, SHARED, 0},
	{left, SHARED, left, SHARED | UNIQUE, EADDRINUSE},
	{left, 0, right, 0, 0},
	{left, 0, any, 0, EADDRNOTAVAIL},
	{any, 0, left, 0, EADDRNOTAVAIL},
	{any, 0, any, 0, EADDRNOTAVAIL},
	{any, SHARED, left, SHARED, 0},
	{any_ipv4, AFONLY, left, AFONLY, EADDRNOTAVAIL},
	{left, AFONLY, any_ipv4, AFONLY, EADDRNOTAVAIL},
	{any_ipv4, AFONLY, any_ipv4, AFONLY, EADDRNOTAVAIL},
	{any_ipv4, AFONLY, any, 0, EADDRNOTAVAIL},
	{any_ipv4, AFONLY, any, AFONLY, 0},
	{any, AFONLY, any_ipv4, AFONLY, 0},
	{any, AFONLY, any_ipv4, AFONLY | UNIQUE, EADDRNOTAVAIL},
	{any, AFONLY, left, AFONLY, 0},
	{any, AFONLY, left, 0, EADDRNOTAVAIL},
	{any, AFONLY, ipv6, AFONLY, EADDRNOTAVAIL},
	{ipv6, 0, left, AFONLY, 0},
	{ipv6, 0, any_ipv4, AFONLY, EADDRNOTAVAIL},
	{ipv6, AFONLY, any_ipv4, AFONLY, 0},
};

static void check_conflicts(void)
{
	for (size_t i = 0; i < sizeof(conflicts) / sizeof(conflicts[0]); i++) {
		char row[16];
		int err;

		snprintf(row, sizeof(row), "row %zu", i);
		TEST_ASSERT_EQUAL_INT_MESSAGE(
			0, reserve(0, conflicts[i].has, conflicts[i].has_flags), row);
		err = reserve(1, conflicts[i].asks, conflicts[i].asks_flags);
		TEST_ASSERT_EQUAL_INT_MESSAGE(conflicts[i].error, err, row);
		if (!err)
			sim_cm_unreserve(talk.ends[1].sim, TALK_SERVICE, conflicts[i].asks);
		sim_cm_unreserve(talk.ends[0].sim, TALK_SERVICE, conflicts[i].has);
	}
}

void test_addresses_and_flags_that_exclude_each_other(void)
{
	check_conflicts();
	reopen(&(struct talk_config){.joined = true});
	check_conflicts();
}

void test_all_addresses_and_one(void)
{
	TEST_ASSERT_EQUAL_INT(0, reserve(0, left, 0));
	TEST_ASSERT_EQUAL_INT(EADDRNOTAVAIL, reserve(0, any, 0));
	TEST_ASSERT_EQUAL_INT(0, reserve(0, right, 0));
	sim_cm_unreserve(talk.ends[0].sim, TALK_SERVICE, left);
	TEST_ASSERT_EQUAL_INT(EADDRNOTAVAIL, reserve(0, any, 0));
	sim_cm_unreserve(talk.ends[0].sim, TALK_SERVICE, right);
	TEST_ASSERT_EQUAL_INT(0, reserve(0, any, 0));
	TEST_ASSERT_EQUAL_INT(EADDRNOTAVAIL, reserve(0, right, 0));
}

/* All ports that a machine gives to its clients. Service IDs that share a bucket of the index are apart. */
void test_many_reservations(void)
{
	const uint64_t first = UINT64_C(0x0000000001068000), count = 28232;
	struct sim_engine *sim = talk.ends[0].sim;
	struct sim_cm *cm;

	for (uint64_t i = 0; i < count; i++)
		TEST_ASSERT_EQUAL_INT(0, sim_cm_reserve(sim, first + i, any, 0));
	for (uint64_t i = 0; i < count; i++)
		TEST_ASSERT_EQUAL_INT(EADDRNOTAVAIL, sim_cm_reserve(sim, first + i, left, 0));
	for (uint64_t i = 0; i < count; i += 2)
		sim_cm_unreserve(sim, first + i, any);
	for (uint64_t i = 0; i < count; i++)
		TEST_ASSERT_EQUAL_INT(i & 1 ? EADDRNOTAVAIL : 0,
				      sim_cm_reserve(sim, first + i, left, 0));
	TEST_ASSERT_EQUAL_INT(0, sim_cm_create(sim, &talk.ends[0], &cm));
	TEST_ASSERT_EQUAL_INT(0, sim_cm_listen(cm, first + 1, NULL, any));
	sim_cm_destroy(cm);
	/* The listener's end leaves the reservation. */
	TEST_ASSERT_EQUAL_INT(EADDRNOTAVAIL, sim_cm_reserve(sim, first + 1, any, 0));
	sim_cm_unreserve(sim, first + 1, any);
	TEST_ASSERT_EQUAL_INT(0, sim_cm_create(sim, &talk.ends[0], &cm));
	TEST_ASSERT_EQUAL_INT(0, sim_cm_listen(cm, first + 1, NULL, any));
	sim_cm_destroy(cm);
	TEST_ASSERT_EQUAL_INT(0, sim_cm_reserve(sim, first + 1, any, 0));
}

static void listeners(void)
{
	struct sim_cm *first, *second;

	TEST_ASSERT_EQUAL_INT(0, reserve(0, left, SHARED));
	TEST_ASSERT_EQUAL_INT(0, reserve(1, left, SHARED));
	/* A listener excludes all other reservations, also shared ones without a listener. */
	TEST_ASSERT_EQUAL_INT(EADDRINUSE, listen_at(&first, 0, NULL, left));
	sim_cm_unreserve(talk.ends[1].sim, TALK_SERVICE, left);
	TEST_ASSERT_EQUAL_INT(0, sim_cm_listen(first, TALK_SERVICE, NULL, left));
	TEST_ASSERT_EQUAL_INT(EADDRINUSE, reserve(1, left, SHARED));
	TEST_ASSERT_EQUAL_INT(EADDRNOTAVAIL, reserve(1, any, SHARED));
	TEST_ASSERT_EQUAL_INT(EADDRINUSE, listen_at(&second, 1, NULL, left));
	sim_cm_destroy(first);
	/* The reservation has stayed. */
	TEST_ASSERT_EQUAL_INT(EADDRINUSE, reserve(1, left, 0));
	TEST_ASSERT_EQUAL_INT(0, reserve(1, left, SHARED));
	sim_cm_unreserve(talk.ends[0].sim, TALK_SERVICE, left);
	TEST_ASSERT_EQUAL_INT(0, sim_cm_listen(second, TALK_SERVICE, NULL, left));
	sim_cm_destroy(second);
	sim_cm_unreserve(talk.ends[1].sim, TALK_SERVICE, left);
	TEST_ASSERT_EQUAL_INT(0, reserve(0, any, 0));
}

void test_one_of_those_that_share_listens(void)
{
	listeners();
	reopen(&(struct talk_config){.joined = true});
	listeners();
}

/* UNIQUE is of the moment of the reservation: the listener excludes no other family. */
static void listeners_of_a_unique_port(void)
{
	struct sim_cm *first, *second;

	TEST_ASSERT_EQUAL_INT(0, reserve(0, any_ipv4, AFONLY | UNIQUE));
	TEST_ASSERT_EQUAL_INT(0, reserve(1, any, AFONLY));
	TEST_ASSERT_EQUAL_INT(0, listen_at(&first, 0, NULL, any_ipv4));
	TEST_ASSERT_EQUAL_INT(0, listen_at(&second, 1, NULL, any));
}

void test_a_listener_at_a_port_that_was_unique(void)
{
	listeners_of_a_unique_port();
	reopen(&(struct talk_config){.joined = true});
	listeners_of_a_unique_port();
}

void test_a_listener_without_reservation_has_one(void)
{
	struct sim_cm *cm;

	reopen(&(struct talk_config){.joined = true});
	TEST_ASSERT_EQUAL_INT(0, listen_at(&cm, 0, NULL, any));
	TEST_ASSERT_EQUAL_INT(EADDRNOTAVAIL, reserve(1, any, SHARED));
	sim_cm_destroy(cm);
	TEST_ASSERT_EQUAL_INT(0, reserve(1, any, SHARED));
}

/* --- which listener gets a request --- */

static void ask_for(const uint8_t address[16])
{
	struct sim_cm_request request = talk_request(&talk);
	struct talk_end *end = &talk.ends[0];
	struct sim_cm_ip ip = {.ipv6 = memcmp(address, any_ipv4, 12) != 0, .source_port = 1};
	uint8_t bytes[SIM_CM_IP_BYTES];

	memcpy(ip.dest, address, 16);
	memcpy(ip.source, left, 16);
	sim_cm_ip_write(&ip, bytes);
	request.private_data = (struct sim_cm_private){bytes, sizeof(bytes)};
	TEST_ASSERT_EQUAL_INT(0, sim_cm_create(end->sim, end, &end->cm));
	TEST_ASSERT_EQUAL_INT(0, sim_cm_send_req(end->cm, end->device, &request));
	talk_run(&talk);
	sim_cm_destroy(end->cm);
	talk_run(&talk);
}

/* Returns the listener that gets a request to the address; NULL if no listener gets it. */
static const struct sim_cm *listener_for(const uint8_t address[16])
{
	const unsigned int before = talk_count(&talk, 1, SIM_CM_EVENT_REQ);
	const struct talk_event *event;

	ask_for(address);
	event = talk_nth(&talk, 1, SIM_CM_EVENT_REQ, before);
	return event ? event->listener : NULL;
}

static void by_address(void)
{
	const uint8_t third[16] = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 3};
	struct sim_cm *one, *other;

	talk.ends[1].silent = true;
	TEST_ASSERT_EQUAL_INT(0, listen_at(&one, 1, NULL, left));
	TEST_ASSERT_EQUAL_INT(0, listen_at(&other, 1, NULL, right));
	TEST_ASSERT_EQUAL_PTR(other, listener_for(right));
	TEST_ASSERT_EQUAL_PTR(one, listener_for(left));
	TEST_ASSERT_NULL(listener_for(third));
	TEST_ASSERT_EQUAL_UINT(SIM_CM_REJ_INVALID_SERVICE_ID,
			       talk_nth(&talk, 0, SIM_CM_EVENT_REJ, 0)->event.rejection.reason);
	sim_cm_destroy(one);
	sim_cm_destroy(other);
	TEST_ASSERT_EQUAL_INT(0, listen_at(&one, 1, NULL, any));
	TEST_ASSERT_EQUAL_PTR(one, listener_for(third));
}

void test_a_listener_is_found_by_its_address(void)
{
	by_address();
	reopen(&(struct talk_config){.joined = true});
	by_address();
}

void test_a_listener_of_a_device(void)
{
	struct sim_cm *one;

	talk.ends[1].silent = true;
	TEST_ASSERT_EQUAL_INT(0, listen_at(&one, 1, talk.ends[0].device, any));
	/* The request comes to the other device. */
	TEST_ASSERT_NULL(listener_for(right));
	sim_cm_destroy(one);
	TEST_ASSERT_EQUAL_INT(0, listen_at(&one, 1, talk.ends[1].device, any));
	TEST_ASSERT_EQUAL_PTR(one, listener_for(right));
}

/* Each family has a listener for all its addresses. */
static void families(void)
{
	struct sim_cm *four, *six;

	talk.ends[1].silent = true;
	TEST_ASSERT_EQUAL_INT(0, reserve(1, any_ipv4, AFONLY));
	TEST_ASSERT_EQUAL_INT(0, reserve(1, any, AFONLY));
	TEST_ASSERT_EQUAL_INT(0, listen_at(&four, 1, NULL, any_ipv4));
	TEST_ASSERT_EQUAL_INT(0, listen_at(&six, 1, NULL, any));
	TEST_ASSERT_EQUAL_PTR(four, listener_for(right));
	TEST_ASSERT_EQUAL_PTR(six, listener_for(ipv6));
	/* The owner of the other family's listener rejects. */
	sim_cm_destroy(four);
	TEST_ASSERT_EQUAL_PTR(six, listener_for(right));
	sim_cm_destroy(six);
	TEST_ASSERT_NULL(listener_for(ipv6));
}

void test_a_listener_for_each_family(void)
{
	families();
	reopen(&(struct talk_config){.joined = true});
	families();
}

/* Both processes have a listener, each for its own address. */
void test_listeners_of_two_processes(void)
{
	struct sim_cm *own, *other;

	reopen(&(struct talk_config){.joined = true});
	talk.ends[1].silent = true;
	TEST_ASSERT_EQUAL_INT(0, listen_at(&own, 0, NULL, left));
	TEST_ASSERT_EQUAL_INT(0, listen_at(&other, 1, NULL, right));
	TEST_ASSERT_EQUAL_PTR(other, listener_for(right));
	TEST_ASSERT_EQUAL_PTR(own, listener_for(left));
}

/* A request that the server has taken, and does not answer. */
static void ask_silent_server(void)
{
	talk_listen(&talk);
	talk.ends[1].silent = true;
	talk_connect(&talk);
	talk_run(&talk);
}

/* --- what a program gets for its QP --- */

static struct ibv_qp_attr attr_of(unsigned int side, enum ibv_qp_state step, int expected_mask)
{
	struct ibv_qp_attr attr = {.qp_state = step};
	int mask = 0;

	TEST_ASSERT_EQUAL_INT(0, sim_cm_init_qp_attr(talk.ends[side].cm, &attr, &mask));
	TEST_ASSERT_EQUAL_HEX(expected_mask, mask);
	TEST_ASSERT_EQUAL_INT(step, attr.qp_state);
	return attr;
}

enum {
	INIT_MASK = IBV_QP_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PORT,
	RTR_MASK = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN,
	RTR_RC_MASK = RTR_MASK | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
	RTS_MASK = IBV_QP_STATE | IBV_QP_SQ_PSN,
	RTS_RC_MASK = RTS_MASK | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
		      IBV_QP_MAX_QP_RD_ATOMIC,
};

static void check_rc(void)
{
	struct ibv_qp_attr attr;

	talk_establish(&talk);
	attr = attr_of(0, IBV_QPS_INIT, INIT_MASK);
	TEST_ASSERT_EQUAL_HEX(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
				      IBV_ACCESS_REMOTE_ATOMIC,
			      attr.qp_access_flags);
	TEST_ASSERT_EQUAL_UINT(1, attr.port_num);
	attr = attr_of(0, IBV_QPS_RTR, RTR_RC_MASK);
	TEST_ASSERT_EQUAL_HEX(0x222222, attr.dest_qp_num);
	TEST_ASSERT_EQUAL_HEX(0x123456, attr.rq_psn);
	TEST_ASSERT_EQUAL_UINT(2, attr.max_dest_rd_atomic);
	TEST_ASSERT_EQUAL_INT(IBV_MTU_1024, attr.path_mtu);
	attr = attr_of(0, IBV_QPS_RTS, RTS_RC_MASK);
	TEST_ASSERT_EQUAL_HEX(0x765432, attr.sq_psn);
	TEST_ASSERT_EQUAL_UINT(3, attr.max_rd_atomic);
	TEST_ASSERT_EQUAL_UINT(5, attr.retry_cnt);
	TEST_ASSERT_EQUAL_UINT(6, attr.rnr_retry);
	TEST_ASSERT_EQUAL_UINT(15, attr.timeout);
	attr = attr_of(1, IBV_QPS_RTR, RTR_RC_MASK);
	TEST_ASSERT_EQUAL_HEX(0x111111, attr.dest_qp_num);
	TEST_ASSERT_EQUAL_HEX(0x765432, attr.rq_psn);
	TEST_ASSERT_EQUAL_UINT(3, attr.max_dest_rd_atomic);
	TEST_ASSERT_EQUAL_INT(IBV_MTU_1024, attr.path_mtu);
	TEST_ASSERT_EQUAL_UINT(talk.config.infiniband && !talk.config.grh ? 0 : 1,
			       attr.ah_attr.is_global);
	if (talk.config.infiniband)
		TEST_ASSERT_EQUAL_UINT(1, attr.ah_attr.dlid);
	if (attr.ah_attr.is_global)
		TEST_ASSERT_EQUAL_UINT(1, attr.ah_attr.grh.sgid_index);
	attr = attr_of(1, IBV_QPS_RTS, RTS_RC_MASK);
	TEST_ASSERT_EQUAL_HEX(0x123456, attr.sq_psn);
	TEST_ASSERT_EQUAL_UINT(2, attr.max_rd_atomic);
	TEST_ASSERT_EQUAL_UINT(5, attr.retry_cnt);
	TEST_ASSERT_EQUAL_UINT(4, attr.rnr_retry);
	TEST_ASSERT_EQUAL_UINT(15, attr.timeout);
}

void test_attributes_of_rc(void)
{
	static const struct talk_config configs[] = {
		{0}, {.infiniband = true}, {.infiniband = true, .grh = true}, {.joined = true}};

	for (size_t i = 0; i < sizeof(configs) / sizeof(configs[0]); i++) {
		reopen(&configs[i]);
		check_rc();
	}
}

void test_attributes_of_uc(void)
{
	reopen(&(struct talk_config){.type = IBV_QPT_UC});
	talk_establish(&talk);
	TEST_ASSERT_EQUAL_INT(IBV_QPT_UC,
			      talk_nth(&talk, 1, SIM_CM_EVENT_REQ, 0)->event.request.qp_type);
	for (unsigned int i = 0; i < 2; i++) {
		attr_of(i, IBV_QPS_INIT, INIT_MASK);
		attr_of(i, IBV_QPS_RTR, RTR_MASK);
		attr_of(i, IBV_QPS_RTS, RTS_MASK);
	}
}

/* The asking side has the initiator, the other one the target. */
void test_attributes_of_xrc(void)
{
	reopen(&(struct talk_config){.type = IBV_QPT_XRC_SEND});
	talk_establish(&talk);
	TEST_ASSERT_EQUAL_INT(IBV_QPT_XRC_SEND,
			      talk_nth(&talk, 1, SIM_CM_EVENT_REQ, 0)->event.request.qp_type);
	TEST_ASSERT_EQUAL_HEX(0x222222, attr_of(0, IBV_QPS_RTR, RTR_MASK).dest_qp_num);
	attr_of(0, IBV_QPS_RTS, RTS_RC_MASK);
	TEST_ASSERT_EQUAL_HEX(0x111111, attr_of(1, IBV_QPS_RTR, RTR_RC_MASK).dest_qp_num);
	attr_of(1, IBV_QPS_RTS, RTS_MASK | IBV_QP_TIMEOUT);
	/* The target's communication ends without a word: its QP may live longer. */
	sim_cm_destroy(talk.ends[1].cm);
	talk_run(&talk);
	TEST_ASSERT_EQUAL_UINT(0, talk_sent(&talk, SIM_CM_DREQ));
}

void test_a_side_that_reads_nothing(void)
{
	struct sim_cm_request request = talk_request(&talk);
	struct talk_end *end = &talk.ends[0];

	talk_listen(&talk);
	talk.ends[1].silent = true;
	request.responder_resources = request.initiator_depth = 0;
	TEST_ASSERT_EQUAL_INT(0, sim_cm_create(end->sim, end, &end->cm));
	TEST_ASSERT_EQUAL_INT(0, sim_cm_send_req(end->cm, end->device, &request));
	talk_run(&talk);
	for (unsigned int i = 0; i < 2; i++)
		TEST_ASSERT_EQUAL_HEX(IBV_ACCESS_REMOTE_WRITE,
				      attr_of(i, IBV_QPS_INIT, INIT_MASK).qp_access_flags);
}

/* The peer of a side that only reads is read. */
void test_a_side_that_only_reads(void)
{
	struct sim_cm_request request = talk_request(&talk);
	const unsigned int read =
		IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
	struct talk_end *end = &talk.ends[0];

	talk_listen(&talk);
	talk.ends[1].silent = true;
	request.responder_resources = 0;
	TEST_ASSERT_NOT_EQUAL(0, request.initiator_depth);
	TEST_ASSERT_EQUAL_INT(0, sim_cm_create(end->sim, end, &end->cm));
	TEST_ASSERT_EQUAL_INT(0, sim_cm_send_req(end->cm, end->device, &request));
	talk_run(&talk);
	TEST_ASSERT_EQUAL_HEX(IBV_ACCESS_REMOTE_WRITE,
			      attr_of(0, IBV_QPS_INIT, INIT_MASK).qp_access_flags);
	TEST_ASSERT_EQUAL_HEX(read, attr_of(1, IBV_QPS_INIT, INIT_MASK).qp_access_flags);
}

/* Before it answers, a side knows what the other one offers. */
void test_attributes_before_the_rep(void)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR};
	int mask;

	ask_silent_server();
	TEST_ASSERT_EQUAL_UINT(7, attr_of(1, IBV_QPS_RTR, RTR_RC_MASK).max_dest_rd_atomic);
	TEST_ASSERT_EQUAL_UINT(4, attr_of(1, IBV_QPS_RTS, RTS_RC_MASK).max_rd_atomic);
	attr_of(0, IBV_QPS_INIT, INIT_MASK);
	TEST_ASSERT_EQUAL_INT(EINVAL, sim_cm_init_qp_attr(talk.ends[0].cm, &attr, &mask));
}

/* The peer's ack delay counts, also for the length of TIMEWAIT. */
void test_the_ack_delay_of_the_peer(void)
{
	struct sim_cm_reply reply = talk_reply();
	uint64_t start_ns;

	ask_silent_server();
	reply.target_ack_delay = 20;
	TEST_ASSERT_EQUAL_INT(0, sim_cm_send_rep(talk.ends[1].cm, &reply));
	talk_run(&talk);
	TEST_ASSERT_EQUAL_UINT(20, attr_of(0, IBV_QPS_RTS, RTS_RC_MASK).timeout);
	talk.ends[1].silent = false;
	sim_cm_send_dreq(talk.ends[1].cm, &(struct sim_cm_private){0});
	talk_run(&talk);
	start_ns = talk_now(&talk);
	talk_until(&talk, start_ns + (UINT64_C(4096) << 20) - 1);
	TEST_ASSERT_EQUAL_INT(SIM_CM_TIMEWAIT, sim_cm_state(talk.ends[0].cm));
	talk_until(&talk, start_ns + (UINT64_C(4096) << 20));
	TEST_ASSERT_EQUAL_INT(SIM_CM_IDLE, sim_cm_state(talk.ends[0].cm));
}

/* --- what the events say --- */

void test_values_of_the_messages(void)
{
	const struct sim_cm_request *request;
	const struct sim_cm_reply *reply;

	talk_establish(&talk);
	request = &talk_nth(&talk, 1, SIM_CM_EVENT_REQ, 0)->event.request;
	TEST_ASSERT_EQUAL_HEX64(TALK_SERVICE, request->service_id);
	TEST_ASSERT_EQUAL_HEX64(talk.ends[0].device->node_guid, request->ca_guid);
	TEST_ASSERT_EQUAL_HEX(0x111111, request->qpn);
	TEST_ASSERT_EQUAL_HEX(0x123456, request->starting_psn);
	TEST_ASSERT_EQUAL_UINT(4, request->responder_resources);
	TEST_ASSERT_EQUAL_UINT(7, request->initiator_depth);
	TEST_ASSERT_EQUAL_UINT(16, request->remote_response_timeout);
	TEST_ASSERT_EQUAL_UINT(15, request->local_response_timeout);
	TEST_ASSERT_EQUAL_UINT(5, request->retry_count);
	TEST_ASSERT_EQUAL_UINT(4, request->rnr_retry_count);
	TEST_ASSERT_EQUAL_UINT(3, request->max_cm_retries);
	TEST_ASSERT_TRUE(request->flow_control);
	TEST_ASSERT_TRUE(request->srq);
	TEST_ASSERT_EQUAL_HEX(0x15b3, request->vendor_id);
	TEST_ASSERT_EQUAL_HEX(0x1c0ffee, request->ece_options);
	TEST_ASSERT_EQUAL_HEX(0xffff, request->path.pkey);
	TEST_ASSERT_EQUAL_INT(IBV_MTU_1024, request->path.mtu);
	TEST_ASSERT_EQUAL_UINT(14, request->path.packet_life_time);
	TEST_ASSERT_EQUAL_MEMORY(left, request->path.attr.grh.dgid.raw, 16);
	reply = &talk_nth(&talk, 0, SIM_CM_EVENT_REP, 0)->event.reply;
	TEST_ASSERT_EQUAL_HEX64(talk.ends[1].device->node_guid, reply->ca_guid);
	TEST_ASSERT_EQUAL_HEX(0x222222, reply->qpn);
	TEST_ASSERT_EQUAL_HEX(0x765432, reply->starting_psn);
	TEST_ASSERT_EQUAL_UINT(3, reply->responder_resources);
	TEST_ASSERT_EQUAL_UINT(2, reply->initiator_depth);
	TEST_ASSERT_EQUAL_UINT(5, reply->target_ack_delay);
	TEST_ASSERT_EQUAL_UINT(6, reply->rnr_retry_count);
	TEST_ASSERT_TRUE(reply->flow_control);
	TEST_ASSERT_FALSE(reply->srq);
	TEST_ASSERT_EQUAL_UINT(0, reply->failover_accepted);
}

void test_ece_of_a_reply(void)
{
	struct sim_cm_reply reply = talk_reply();

	ask_silent_server();
	reply.vendor_id = 0xa1b2c3;
	reply.ece_options = 0x10203040;
	TEST_ASSERT_EQUAL_INT(0, sim_cm_send_rep(talk.ends[1].cm, &reply));
	talk_run(&talk);
	TEST_ASSERT_EQUAL_HEX(0xa1b2c3,
			      talk_nth(&talk, 0, SIM_CM_EVENT_REP, 0)->event.reply.vendor_id);
	TEST_ASSERT_EQUAL_HEX(0x10203040,
			      talk_nth(&talk, 0, SIM_CM_EVENT_REP, 0)->event.reply.ece_options);
}

void test_a_sign_of_life_before_the_rtu(void)
{
	talk_listen(&talk);
	talk.ends[0].silent = true;
	talk_connect(&talk);
	talk_run(&talk);
	TEST_ASSERT_EQUAL_INT(0, sim_cm_notify(talk.ends[1].cm));
	TEST_ASSERT_EQUAL_INT(SIM_CM_ESTABLISHED, sim_cm_state(talk.ends[1].cm));
	TEST_ASSERT_EQUAL_UINT(1, talk_count(&talk, 1, SIM_CM_EVENT_RTU));
	/* The RTU that comes later is no second event. */
	TEST_ASSERT_EQUAL_INT(0, sim_cm_send_rtu(talk.ends[0].cm, &(struct sim_cm_private){0}));
	talk_run(&talk);
	TEST_ASSERT_EQUAL_UINT(1, talk_count(&talk, 1, SIM_CM_EVENT_RTU));
	TEST_ASSERT_EQUAL_UINT64(0, talk.ends[1].device->counters.dropped_packets);
}

/* --- numbers --- */

void test_ack_timeouts(void)
{
	/* Linux drivers/infiniband/core/cm.c, cm_ack_timeout(). */
	TEST_ASSERT_EQUAL_UINT(15, sim_cm_ack_timeout(5, 14));
	TEST_ASSERT_EQUAL_UINT(16, sim_cm_ack_timeout(14, 14));
	TEST_ASSERT_EQUAL_UINT(16, sim_cm_ack_timeout(15, 14));
	TEST_ASSERT_EQUAL_UINT(17, sim_cm_ack_timeout(16, 14));
	TEST_ASSERT_EQUAL_UINT(17, sim_cm_ack_timeout(17, 14));
	TEST_ASSERT_EQUAL_UINT(31, sim_cm_ack_timeout(31, 31));
}

/* The same seed gives the same messages; another one other IDs. */
void test_numbers_follow_the_seed(void)
{
	static struct talk_mad first[3];
	uint32_t ids[3];

	for (unsigned int i = 0; i < 3; i++) {
		reopen(&(struct talk_config){.seed = i == 2 ? 8 : 7});
		talk_establish(&talk);
		ids[i] = sim_cm_local_id(talk.ends[0].cm);
		TEST_ASSERT_EQUAL_UINT(3, talk.mad_count);
		if (i == 1)
			for (unsigned int n = 0; n < 3; n++)
				TEST_ASSERT_EQUAL_MEMORY(first[n].mad, talk.mads[n].mad,
							 SIM_MAD_BYTES);
		memcpy(first, talk.mads, sizeof(first));
	}
	TEST_ASSERT_EQUAL_UINT32(ids[0], ids[1]);
	TEST_ASSERT_TRUE(ids[0] != ids[2]);
}

/* The random numbers of the rest of the engine are those of an engine without connection manager. */
void test_the_engine_keeps_its_random_numbers(void)
{
	struct engine plain;

	reopen(&(struct talk_config){.seed = 7});
	engine_open(&plain, &(struct engine_config){.seed = 7, .unconnected = true});
	TEST_ASSERT_EQUAL_HEX64(sim_random(plain.sim), sim_random(talk.ends[0].sim));
	engine_close(&plain);
}

static void expect_empty_index(const struct sim_cm_index *index)
{
	for (uint32_t i = 0; i < SIM_CM_BUCKETS; i++)
		TEST_ASSERT_NULL(index->buckets[i]);
}

/* Ten thousand connections at the same time, in two processes; nothing is left of them. */
void test_many_connections(void)
{
	static struct sim_cm *cms[2][10000];
	uint32_t timers[2];

	reopen(&(struct talk_config){.joined = true, .quiet = true});
	talk_listen(&talk);
	for (unsigned int side = 0; side < 2; side++)
		timers[side] = talk.ends[side].sim->clock.reserved;
	for (uint32_t i = 0; i < 10000; i++) {
		struct sim_cm_request request = talk_request(&talk);
		struct sim_cm_reply reply = talk_reply();

		talk.ends[0].count = talk.ends[1].count = 0;
		talk.ends[1].silent = true;
		request.qpn = 0x10000 + i;
		reply.qpn = 0x20000 + i;
		TEST_ASSERT_EQUAL_INT(0,
				      sim_cm_create(talk.ends[0].sim, &talk.ends[0], &cms[0][i]));
		TEST_ASSERT_EQUAL_INT(0, sim_cm_send_req(cms[0][i], talk.ends[0].device, &request));
		talk_run(&talk);
		cms[1][i] = talk.ends[1].cm;
		TEST_ASSERT_EQUAL_INT(0, sim_cm_send_rep(cms[1][i], &reply));
		talk_run(&talk);
		TEST_ASSERT_EQUAL_INT(SIM_CM_ESTABLISHED, sim_cm_state(cms[1][i]));
	}
	for (uint32_t i = 0; i < 10000; i++) {
		sim_cm_send_dreq(cms[i % 2][i], &(struct sim_cm_private){0});
		talk_run(&talk);
		if (!(i % 2))
			sim_cm_send_drep(cms[1][i], &(struct sim_cm_private){0});
		talk_run(&talk);
		TEST_ASSERT_EQUAL_INT(SIM_CM_TIMEWAIT, sim_cm_state(cms[0][i]));
		TEST_ASSERT_EQUAL_INT(SIM_CM_TIMEWAIT, sim_cm_state(cms[1][i]));
		sim_cm_destroy(cms[0][i]);
		sim_cm_destroy(cms[1][i]);
	}
	TEST_ASSERT_EQUAL_UINT32(0, talk.ends[0].sim->cm->table.live);
	TEST_ASSERT_EQUAL_UINT32(1, talk.ends[1].sim->cm->table.live);
	for (unsigned int side = 0; side < 2; side++) {
		struct sim_engine *sim = talk.ends[side].sim;

		TEST_ASSERT_EQUAL_UINT64(SIM_NEVER, sim_engine_next_ns(sim));
		TEST_ASSERT_EQUAL_UINT32(timers[side], sim->clock.reserved);
		expect_empty_index(&sim->cm->by_remote_id);
		expect_empty_index(&sim->cm->by_remote_qpn);
		expect_empty_index(&sim->cm->by_request);
	}
}
