/* SPDX-License-Identifier: MIT */
/*
 * Inlets: packets without their network headers come by a known route. An inlet remembers which QP has taken the
 * last packet, and the checks of address and QP are left out for the next one. Each test lets packets come in before
 * and after something changes that the checks look at.
 */
#include "sim/net/net.h"
#include "sim/net/subnet.h"
#include "test/support/engine.h"
#include "unity.h"

#include <string.h>

#define BYTES 20u

static struct engine engine;
static struct sim_inlet inlet;
static uint8_t data[BYTES];
static uint32_t sent; /* packets that the QP has taken, or should have taken */

static struct sim_port *port(void)
{
	return &engine.sides[0].device->ports[0];
}

static struct sim_qp *qp(void)
{
	return engine.sides[0].qp;
}

/* The route from the peer, which is at the address of side 1. */
static struct sim_route route_of_peer(void)
{
	const struct sim_route *own = &qp()->path.route;
	struct sim_route route = {
		.udp_source_port = 0xc123,
		.infiniband = own->infiniband,
		.has_grh = own->has_grh,
		.slid = own->dlid,
		.dlid = own->slid,
	};

	memcpy(route.source_gid, own->dest_gid, sizeof(route.source_gid));
	memcpy(route.dest_gid, engine.sides[0].gid.raw, sizeof(route.dest_gid));
	return route;
}

static void again(const struct engine_config *config)
{
	engine_close(&engine);
	engine_open(&engine, config);
	inlet = (struct sim_inlet){.route = route_of_peer()};
	sent = 0;
}

void setUp(void)
{
	for (unsigned int i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 7 + 1);
	engine_open(&engine, &(struct engine_config){.peer = true});
	inlet = (struct sim_inlet){.route = route_of_peer()};
	sent = 0;
}

void tearDown(void)
{
	engine_close(&engine);
}

static int copy(void *dst, const void *src, size_t length_bytes)
{
	memcpy(dst, src, length_bytes);
	return 0;
}

static void arrive_at(struct sim_port *at, const struct sim_packet *packet)
{
	uint8_t bytes[SIM_FRAME_BYTES_MAX];
	bool readable;
	const size_t length = sim_packet_write_bare(packet, copy, bytes, &readable);

	sim_way_out_arrive_bare(at, &inlet, bytes, length);
	sim_engine_run(engine.sim);
}

/* The next SEND of the peer. span must live as long as the packet. */
static struct sim_packet next_send(struct sim_span *span)
{
	struct sim_packet packet =
		engine_packet(&engine, SIM_RC_SEND_ONLY | qp()->transport, ENGINE_PSN + sent);

	engine_payload(&packet, span, data, BYTES);
	return packet;
}

static void expect_taken(void)
{
	const uint64_t received = port()->device->counters.received_packets;
	struct ibv_wc wc = {.status = IBV_WC_GENERAL_ERR};
	struct sim_span span;
	const struct sim_packet packet = next_send(&span);

	TEST_ASSERT_EQUAL_INT(0, engine_recv(&engine, 0, 7 + sent, 0, BYTES));
	memset(engine.sides[0].memory, 0, BYTES);
	arrive_at(port(), &packet);
	TEST_ASSERT_TRUE(engine_poll(engine.sides[0].recv_cq, &wc));
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, wc.status);
	TEST_ASSERT_EQUAL_UINT64(7 + sent, wc.wr_id);
	TEST_ASSERT_EQUAL_MEMORY(data, engine.sides[0].memory, BYTES);
	TEST_ASSERT_EQUAL_UINT64(received + 1, port()->device->counters.received_packets);
	sent++;
}

/* The inlet knows the QP then. */
static void warm(void)
{
	expect_taken();
	expect_taken();
}

static void expect_dropped_packet(struct sim_port *at, const struct sim_packet *packet,
				  enum sim_discard cause)
{
	const struct sim_counters *counters = &at->device->counters;
	const uint64_t discarded = counters->discarded[cause];
	const uint64_t refused = counters->refused_packets;
	struct ibv_wc wc;

	arrive_at(at, packet);
	TEST_ASSERT_EQUAL_UINT64(discarded + 1, counters->discarded[cause]);
	TEST_ASSERT_EQUAL_UINT64(refused + 1, counters->refused_packets);
	TEST_ASSERT_FALSE(engine_poll(engine.sides[0].recv_cq, &wc));
}

static void expect_dropped(enum sim_discard cause)
{
	struct sim_span span;
	const struct sim_packet packet = next_send(&span);

	expect_dropped_packet(port(), &packet, cause);
}

void test_packets_come_to_their_qp(void)
{
	warm();
	TEST_ASSERT_EQUAL_UINT64(2, port()->device->counters.receives_completed);
	again(&(struct engine_config){.peer = true, .infiniband = true});
	warm();
	again(&(struct engine_config){.peer = true, .infiniband = true, .grh = true});
	warm();
	again(&(struct engine_config){.peer = true, .type = IBV_QPT_UC});
	warm();
}

/* Each datagram has its own sender and Q_Key. */
void test_each_datagram_is_checked(void)
{
	struct sim_span span;
	struct sim_packet packet;
	struct ibv_wc wc;

	again(&(struct engine_config){.peer = true, .type = IBV_QPT_UD});
	packet = next_send(&span);
	for (uint32_t i = 0; i < 6; i++) {
		packet.qkey = i % 2 ? ENGINE_QKEY + 1 : ENGINE_QKEY;
		packet.source_qpn = ENGINE_PEER_QPN + i;
		TEST_ASSERT_EQUAL_INT(0, engine_recv(&engine, 0, i, 0, BYTES + 40));
		arrive_at(port(), &packet);
		if (i % 2)
			continue;
		TEST_ASSERT_TRUE(engine_poll(engine.sides[0].recv_cq, &wc));
		TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, wc.status);
		TEST_ASSERT_EQUAL_UINT32(ENGINE_PEER_QPN + i, wc.src_qp);
		TEST_ASSERT_EQUAL_MEMORY(data, engine.sides[0].memory + 40, BYTES);
	}
	TEST_ASSERT_FALSE(engine_poll(engine.sides[0].recv_cq, &wc));
	TEST_ASSERT_EQUAL_UINT64(3, port()->device->counters.discarded[SIM_DISCARD_QKEY]);
}

void test_the_port_loses_the_address(void)
{
	static const union ibv_gid none;

	warm();
	TEST_ASSERT_EQUAL_INT(0, sim_port_set_gid(port(), 1, &none, IBV_GID_TYPE_ROCE_V2));
	expect_dropped(SIM_DISCARD_ADDRESS);
	TEST_ASSERT_EQUAL_INT(
		0, sim_port_set_gid(port(), 1, &engine.sides[0].gid, IBV_GID_TYPE_ROCE_V2));
	expect_taken();
}

void test_the_port_has_another_lid(void)
{
	uint16_t lid;

	again(&(struct engine_config){.peer = true, .infiniband = true});
	warm();
	lid = port()->lid;
	sim_port_set_lid(port(), 77);
	expect_dropped(SIM_DISCARD_ADDRESS);
	sim_port_set_lid(port(), lid);
	expect_taken();
}

void test_the_port_has_another_pkey(void)
{
	const uint16_t pkey = port()->pkeys[0];

	warm();
	TEST_ASSERT_EQUAL_INT(0, sim_port_set_pkey(port(), 0, 0x9234));
	expect_dropped(SIM_DISCARD_PKEY);
	TEST_ASSERT_EQUAL_INT(0, sim_port_set_pkey(port(), 0, pkey));
	expect_taken();
}

void test_the_port_is_down(void)
{
	struct sim_span span;
	struct sim_packet packet;
	struct ibv_wc wc;

	warm();
	packet = next_send(&span);
	sim_port_set_state(port(), IBV_PORT_DOWN);
	arrive_at(port(), &packet);
	TEST_ASSERT_FALSE(engine_poll(engine.sides[0].recv_cq, &wc));
	TEST_ASSERT_EQUAL_UINT64(2, port()->device->counters.received_packets);
	sim_port_set_state(port(), IBV_PORT_ACTIVE);
	expect_taken();
}

void test_the_packet_is_for_another_qp(void)
{
	struct sim_packet packet;
	struct sim_span span;

	warm();
	packet = next_send(&span);
	packet.dest_qpn ^= 1;
	expect_dropped_packet(port(), &packet, SIM_DISCARD_NO_QP);
	packet = next_send(&span);
	packet.pkey = 0x9234;
	expect_dropped_packet(port(), &packet, SIM_DISCARD_PKEY);
	packet = next_send(&span);
	packet.opcode = SIM_TRANSPORT_UC | SIM_RC_SEND_ONLY;
	expect_dropped_packet(port(), &packet, SIM_DISCARD_TRANSPORT);
	expect_taken();
}

/* Both devices have the QPN. */
void test_the_packet_comes_to_another_port(void)
{
	struct sim_port *other = &engine.sides[1].device->ports[0];
	struct sim_packet packet;
	struct sim_span span;

	warm();
	packet = next_send(&span);
	expect_dropped_packet(other, &packet, SIM_DISCARD_ADDRESS);
	expect_taken();
}

/* A QP in RTR takes requests and no answers. */
void test_an_answer_is_no_request(void)
{
	struct sim_packet packet;

	again(&(struct engine_config){.peer = true, .rtr_only = true});
	warm();
	packet = engine_packet(&engine, SIM_RC_ACK, ENGINE_PSN);
	expect_dropped_packet(port(), &packet, SIM_DISCARD_STATE);
	expect_taken();
}

static void expect_sent(uint64_t wr_id)
{
	struct ibv_wc wc = {.status = IBV_WC_GENERAL_ERR};
	struct sim_packet ack = engine_packet(&engine, SIM_RC_ACK, qp()->req.psn);

	ack.syndrome = SIM_AETH_ACK | SIM_ACK_CREDIT_NONE;
	TEST_ASSERT_EQUAL_INT(0, engine_send(&engine, 0,
					     &(struct engine_send){.opcode = IBV_WR_SEND,
								   .wr_id = wr_id,
								   .bytes = 10}));
	sim_engine_run(engine.sim);
	arrive_at(port(), &ack);
	TEST_ASSERT_TRUE(engine_poll(engine.sides[0].send_cq, &wc));
	TEST_ASSERT_EQUAL_UINT64(wr_id, wc.wr_id);
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, wc.status);
}

/* An inlet remembers both. */
void test_requests_and_answers_take_turns(void)
{
	for (unsigned int i = 0; i < 3; i++) {
		expect_taken();
		expect_sent(20 + i);
	}
}

void test_the_qp_is_in_error(void)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	warm();
	TEST_ASSERT_EQUAL_INT(0, sim_qp_modify(qp(), &attr, IBV_QP_STATE));
	sim_engine_run(engine.sim);
	expect_dropped(SIM_DISCARD_STATE);
}

/* A packet that the QP has taken moves the QP to ERR. */
void test_a_packet_ends_the_qp(void)
{
	struct sim_packet packet;
	struct sim_span span;
	struct ibv_wc wc;

	warm();
	TEST_ASSERT_EQUAL_INT(0, engine_recv(&engine, 0, 9, 0, BYTES - 1));
	packet = next_send(&span);
	arrive_at(port(), &packet);
	TEST_ASSERT_TRUE(engine_poll(engine.sides[0].recv_cq, &wc));
	TEST_ASSERT_EQUAL_INT(IBV_WC_LOC_LEN_ERR, wc.status);
	expect_dropped(SIM_DISCARD_STATE);
	/* The same with the first packet of an inlet. */
	again(&(struct engine_config){.peer = true});
	TEST_ASSERT_EQUAL_INT(0, engine_recv(&engine, 0, 9, 0, BYTES - 1));
	packet = next_send(&span);
	arrive_at(port(), &packet);
	TEST_ASSERT_TRUE(engine_poll(engine.sides[0].recv_cq, &wc));
	expect_dropped(SIM_DISCARD_STATE);
}

/* The QP has another peer: the packets are those of a stranger. */
void test_the_qp_is_connected_anew(void)
{
	const union ibv_gid other = engine_gid(99);
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};

	warm();
	TEST_ASSERT_EQUAL_INT(0, sim_qp_modify(qp(), &attr, IBV_QP_STATE));
	engine_connect_qp(&engine, qp(), ENGINE_PEER_QPN, &other, ENGINE_PSN, ENGINE_PSN + sent);
	expect_dropped(SIM_DISCARD_STRANGER);
	TEST_ASSERT_EQUAL_INT(0, sim_qp_modify(qp(), &attr, IBV_QP_STATE));
	engine_connect_qp(&engine, qp(), ENGINE_PEER_QPN, &engine.sides[1].gid, ENGINE_PSN,
			  ENGINE_PSN + sent);
	expect_taken();
}

void test_the_qp_is_destroyed(void)
{
	struct sim_packet packet;
	struct sim_span span;

	warm();
	packet = next_send(&span);
	sim_qp_destroy(engine.sides[0].qp);
	engine.sides[0].qp = NULL;
	expect_dropped_packet(port(), &packet, SIM_DISCARD_NO_QP);
}
