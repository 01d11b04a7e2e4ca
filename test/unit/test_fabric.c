/* SPDX-License-Identifier: MIT */
#include "sim/net/net.h"
#include "test/support/engine.h"
#include "unity.h"

#include <errno.h>

static struct engine engine;

void setUp(void)
{
	engine_open(&engine, &(struct engine_config){0});
}

void tearDown(void)
{
	engine_close(&engine);
}

static void again(const struct engine_config *config)
{
	engine_close(&engine);
	engine_open(&engine, config);
}

static void write_bytes(uint32_t bytes)
{
	const struct engine_send send = {.opcode = IBV_WR_RDMA_WRITE, .bytes = bytes};

	TEST_ASSERT_EQUAL_INT(0, engine_send(&engine, 0, &send));
	sim_engine_run(engine.sim);
}

static void expect(enum ibv_wc_status status)
{
	struct ibv_wc wc;

	TEST_ASSERT_TRUE_MESSAGE(engine_poll(engine.sides[0].send_cq, &wc), "no completion");
	TEST_ASSERT_EQUAL_INT(status, wc.status);
}

static void expect_none(void)
{
	struct ibv_wc wc;

	TEST_ASSERT_FALSE(engine_poll(engine.sides[0].send_cq, &wc));
}

void test_link_without_delay_needs_no_time(void)
{
	write_bytes(100);
	expect(IBV_WC_SUCCESS);
	TEST_ASSERT_EQUAL_UINT64(0, sim_engine_now_ns(engine.sim));
}

void test_delay_is_paid_each_way(void)
{
	again(&(struct engine_config){.delay_ns = 1500});
	write_bytes(100);
	TEST_ASSERT_EQUAL_UINT64(1500, sim_engine_next_ns(engine.sim));
	sim_engine_advance(engine.sim, 2999);
	expect_none();
	sim_engine_advance(engine.sim, 3000);
	expect(IBV_WC_SUCCESS);
	/* The trace has the time at which a packet is sent. */
	TEST_ASSERT_EQUAL_UINT64(0, engine.frames[0].now_ns);
	TEST_ASSERT_EQUAL_UINT64(1500, engine.frames[1].now_ns);
}

/*
 * At 8 Gb/s a byte takes a nanosecond: each packet takes the time of its frame, and the next one
 * waits.
 */
void test_rate_is_that_of_the_frames(void)
{
	uint64_t bytes;

	again(&(struct engine_config){.bits_per_second = UINT64_C(8000000000)});
	write_bytes(256 * 3);
	bytes = engine.frames[0].frame_bytes + engine.frames[1].frame_bytes +
		engine.frames[2].frame_bytes;
	/* WRITE First has a RETH of 16 bytes: 14 + 20 + 8 + 12 + 16 + 256 + 4 */
	TEST_ASSERT_EQUAL_size_t(330, engine.frames[0].frame_bytes);
	TEST_ASSERT_EQUAL_UINT64(330, sim_engine_next_ns(engine.sim));
	sim_engine_advance(engine.sim, bytes - 1);
	TEST_ASSERT_EQUAL_UINT64(2, engine.sides[1].device->counters.received_packets);
	sim_engine_advance(engine.sim, bytes);
	TEST_ASSERT_EQUAL_UINT64(3, engine.sides[1].device->counters.received_packets);
	TEST_ASSERT_EQUAL_size_t(62, engine.frames[3].frame_bytes);
	sim_engine_advance(engine.sim, bytes + 62);
	expect(IBV_WC_SUCCESS);
}

/* After an idle time the link is free at once: an idle link saves up no time. */
void test_idle_link_has_no_backlog(void)
{
	again(&(struct engine_config){.bits_per_second = UINT64_C(8000000000), .delay_ns = 10});
	write_bytes(256);
	engine_settle(&engine, SIM_NEVER - 1);
	expect(IBV_WC_SUCCESS);
	sim_engine_advance(engine.sim, 100000);
	write_bytes(256);
	TEST_ASSERT_EQUAL_UINT64(100000 + 330 + 10, sim_engine_next_ns(engine.sim));
}

void test_flights_are_used_again(void)
{
	struct sim_flight *spare;

	again(&(struct engine_config){.delay_ns = 100});
	write_bytes(256 * 4);
	engine_settle(&engine, SIM_NEVER - 1);
	spare = engine.sim->net->delivery.spare;
	TEST_ASSERT_NOT_NULL(spare);
	for (unsigned int i = 0; i < 50; i++) {
		uint32_t reserved = engine.sim->clock.reserved;

		write_bytes(256 * 4);
		engine_settle(&engine, SIM_NEVER - 1);
		TEST_ASSERT_EQUAL_UINT32(reserved, engine.sim->clock.reserved);
	}
}

/* The QP of a packet under way is destroyed; the packet must not touch it. */
void test_qp_that_ends_before_its_packet_comes(void)
{
	again(&(struct engine_config){.delay_ns = 100, .no_retry = true});
	write_bytes(10);
	sim_qp_destroy(engine.sides[1].qp);
	engine.sides[1].qp = NULL;
	engine_settle(&engine, 1000);
	TEST_ASSERT_EQUAL_UINT64(1, engine.sides[1].device->counters.dropped_packets);
	engine_settle(&engine, SIM_NEVER - 1);
	expect(IBV_WC_RETRY_EXC_ERR);
}

/* If the configuration has links, a port reaches only the port at the other end of its link. */
void test_devices_that_are_not_joined(void)
{
	const union ibv_gid gid = engine_gid(9);
	struct sim_device *third;

	engine_close(&engine);
	engine_open(&engine, &(struct engine_config){.delay_ns = 1});
	third = engine_add_device(&engine, "third", 1, &gid);
	TEST_ASSERT_NULL(
		sim_fabric_link(engine.sim, &engine.sides[0].device->ports[0], &third->ports[0]));
	TEST_ASSERT_NOT_NULL(sim_fabric_link(engine.sim, &third->ports[0], &third->ports[0]));
	TEST_ASSERT_EQUAL_INT(EEXIST, sim_fabric_join(engine.sim, engine.sides[1].device,
						      engine.sides[0].device, 0, 0));
	TEST_ASSERT_EQUAL_INT(0, sim_fabric_join(engine.sim, engine.sides[0].device, third, 5, 0));
	TEST_ASSERT_EQUAL_UINT64(
		5, sim_fabric_link(engine.sim, &third->ports[0], &engine.sides[0].device->ports[0])
			   ->delay_ns);
}

/* A link joins its two ends in both directions, and neither of them with a third port. */
void test_links_join_no_third(void)
{
	const union ibv_gid gid = engine_gid(9);
	struct sim_port *ports[3];

	again(&(struct engine_config){.delay_ns = 1});
	ports[0] = &engine.sides[0].device->ports[0];
	ports[1] = &engine.sides[1].device->ports[0];
	ports[2] = &engine_add_device(&engine, "third", 1, &gid)->ports[0];
	for (unsigned int i = 0; i < 3; i++)
		for (unsigned int j = 0; j < 3; j++)
			TEST_ASSERT_EQUAL_INT(i == j || (i < 2 && j < 2),
					      sim_fabric_link(engine.sim, ports[i], ports[j]) !=
						      NULL);
}

/* The link-local GID, which is the first, is found, too. */
void test_every_gid_leads_to_its_port(void)
{
	struct sim_port *port = &engine.sides[1].device->ports[0];

	for (unsigned int i = 0; i < port->gid_count; i++)
		TEST_ASSERT_EQUAL_PTR(port, sim_fabric_find(engine.sim, &port->gids[i],
							    (enum ibv_gid_type)port->gid_types[i]));
}

/* A packet that no port receives is in the trace, marked as lost, and is counted. */
void test_lost_packets_are_shown_and_marked(void)
{
	const union ibv_gid nobody = engine_gid(77);

	again(&(struct engine_config){.peer = true, .no_retry = true});
	sim_qp_reset(engine.sides[0].qp);
	engine.sides[0].qp->state = IBV_QPS_RESET;
	engine_connect_qp(&engine, engine.sides[0].qp, 99, &nobody, 1, 1);
	TEST_ASSERT_EQUAL_INT(
		0,
		engine_send(&engine, 0, &(struct engine_send){.opcode = IBV_WR_SEND, .rkey = 1}));
	engine_settle(&engine, SIM_NEVER - 1);
	TEST_ASSERT_EQUAL_UINT(1, engine.frame_count);
	TEST_ASSERT_TRUE(engine.frames[0].lost);
	TEST_ASSERT_EQUAL_UINT64(1, engine.sides[0].device->counters.lost_packets);
	expect(IBV_WC_RETRY_EXC_ERR);
}

struct tap {
	unsigned int frames;
	size_t bytes;
};

static void count_frame(void *arg, uint64_t now_ns, const uint8_t *frame, size_t length_bytes,
			unsigned int flags)
{
	struct tap *tap = arg;

	(void)now_ns;
	(void)frame;
	(void)flags;
	tap->frames++;
	tap->bytes += length_bytes;
}

void test_both_sinks_see_every_frame_once(void)
{
	struct tap tap = {0};
	const struct sim_trace_sink sink = {&tap, count_frame};

	sim_trace_set(engine.sim, SIM_TRACE_WATCHER, &sink);
	write_bytes(1000);
	TEST_ASSERT_EQUAL_UINT(5, engine.frame_count);
	TEST_ASSERT_EQUAL_UINT(5, tap.frames);
	TEST_ASSERT_EQUAL_UINT64(4, engine.sides[0].device->counters.sent_packets);
	TEST_ASSERT_EQUAL_UINT64(1, engine.sides[1].device->counters.sent_packets);
	for (unsigned int i = 0; i < 5; i++)
		TEST_ASSERT_EQUAL_INT(SIM_DECODE_OK, engine.frames[i].decoded);
	sim_trace_set(engine.sim, SIM_TRACE_WATCHER, NULL);
	write_bytes(10);
	TEST_ASSERT_EQUAL_UINT(5, tap.frames);
	TEST_ASSERT_EQUAL_UINT(7, engine.frame_count);
}

/* Counters, completions and data are the same whether the wire is watched or not. */
void test_watching_changes_nothing(void)
{
	struct sim_counters counters[2][2];

	for (unsigned int quiet = 0; quiet < 2; quiet++) {
		again(&(struct engine_config){.quiet = quiet});
		for (unsigned int i = 0; i < 5; i++) {
			const struct engine_send read = {.opcode = IBV_WR_RDMA_READ, .bytes = 700};

			write_bytes(1000 + i);
			TEST_ASSERT_EQUAL_INT(0, engine_send(&engine, 0, &read));
			sim_engine_run(engine.sim);
			expect(IBV_WC_SUCCESS);
			expect(IBV_WC_SUCCESS);
		}
		for (unsigned int i = 0; i < 2; i++)
			counters[quiet][i] = engine.sides[i].device->counters;
	}
	TEST_ASSERT_EQUAL_MEMORY(counters[0], counters[1], sizeof(counters[0]));
}

/*
 * What the shortcut learnt of the peer without a watcher becomes invalid when its source changes.
 */
static void to_state(struct sim_qp *qp, enum ibv_qp_state state)
{
	const struct ibv_qp_attr attr = {.qp_state = state};

	TEST_ASSERT_EQUAL_INT(0, sim_qp_modify(qp, &attr, IBV_QP_STATE));
}

void test_peer_that_changes_under_a_quiet_connection(void)
{
	for (unsigned int i = 0; i < 4; i++) {
		struct sim_qp *peer;

		again(&(struct engine_config){.quiet = true, .no_retry = true});
		write_bytes(10);
		expect(IBV_WC_SUCCESS);
		peer = engine.sides[1].qp;
		if (i == 0) {
			to_state(peer, IBV_QPS_ERR);
		} else if (i == 1) {
			to_state(peer, IBV_QPS_RESET);
		} else if (i == 2) {
			sim_qp_destroy(peer);
			engine.sides[1].qp = NULL;
		} else {
			sim_qp_fail(peer, SIM_BY_MODIFY);
		}
		sim_engine_run(engine.sim);
		memset(engine.sides[0].memory, 0x77, 10);
		TEST_ASSERT_EQUAL_INT(0,
				      engine_send(&engine, 0,
						  &(struct engine_send){.opcode = IBV_WR_RDMA_WRITE,
									.bytes = 10}));
		engine_settle(&engine, SIM_NEVER - 1);
		expect(IBV_WC_RETRY_EXC_ERR);
		TEST_ASSERT_EQUAL_HEX8(0, engine.sides[1].memory[0]);
		TEST_ASSERT_EQUAL_UINT64(1, engine.sides[1].device->counters.dropped_packets);
	}
}

void test_rule_that_comes_to_a_quiet_connection_bites(void)
{
	const struct sim_fault_rule rule = {.action = SIM_FAULT_DROP, .count = 1};
	unsigned int id;

	again(&(struct engine_config){.quiet = true});
	write_bytes(10);
	expect(IBV_WC_SUCCESS);
	TEST_ASSERT_EQUAL_INT(0, sim_fault_add(engine.sim, &rule, &id));
	write_bytes(10);
	expect_none();
	TEST_ASSERT_EQUAL_UINT64(1, sim_fault_hits(engine.sim, id));
	sim_fault_clear(engine.sim);
	engine_settle(&engine, SIM_NEVER - 1);
	expect(IBV_WC_SUCCESS);
}

static unsigned int noted;

static void count_packet(void *arg, const struct vb_event *event, void *element)
{
	(void)arg, (void)element;
	noted += event->kind == VB_EVENT_PACKET;
}

/* True if the QP hands its requests to the peer by a function call. */
static bool hands_over(void)
{
	return engine.sides[0].qp->peer.request_epoch == engine.sim->epoch;
}

/* Packets leave the short way while the owner watches, and take it again afterwards. */
void test_the_short_way_is_taken_while_nobody_watches(void)
{
	again(&(struct engine_config){.quiet = true});
	engine.sim->host.note = count_packet;
	noted = 0;
	for (unsigned int i = 0; i < 3; i++) {
		write_bytes(10);
		expect(IBV_WC_SUCCESS);
		TEST_ASSERT_TRUE(hands_over());
		sim_notes_watch(engine.sim, true);
		write_bytes(10);
		expect(IBV_WC_SUCCESS);
		TEST_ASSERT_FALSE(hands_over());
		sim_notes_watch(engine.sim, false);
		/* A request and an ACK for each write that was watched. */
		TEST_ASSERT_EQUAL_UINT(2 * (i + 1), noted);
	}
}

static uint64_t discards(unsigned int side, enum sim_discard cause)
{
	return engine.sides[side].device->counters.discarded[cause];
}

/* A QP accepts packets only from the port at the other end of its connection. */
void test_strangers_are_dropped(void)
{
	struct sim_packet packet;

	again(&(struct engine_config){.peer = true});
	for (unsigned int i = 0; i < 3; i++) {
		packet = engine_packet(&engine, SIM_RC_WRITE_ONLY, ENGINE_PSN);
		if (i == 0)
			packet.pkey = 0x1234;
		else if (i == 1)
			packet.opcode |= SIM_TRANSPORT_UC;
		else
			packet.dest_qpn ^= 1 << 20;
		engine_send_on(&engine, &engine.sides[1].ah->path, &packet);
		sim_engine_run(engine.sim);
	}
	packet = engine_packet(&engine, SIM_RC_WRITE_ONLY, ENGINE_PSN);
	engine_send_on(&engine, &engine.sides[0].ah->path, &packet); /* from the wrong device */
	TEST_ASSERT_EQUAL_UINT64(3, engine.sides[0].device->counters.dropped_packets);
	TEST_ASSERT_EQUAL_UINT64(1, discards(0, SIM_DISCARD_PKEY));
	TEST_ASSERT_EQUAL_UINT64(1, discards(0, SIM_DISCARD_TRANSPORT));
	TEST_ASSERT_EQUAL_UINT64(1, discards(0, SIM_DISCARD_NO_QP));
	TEST_ASSERT_EQUAL_HEX32(ENGINE_PSN, engine.sides[0].qp->resp.psn);
	packet = engine_packet(&engine, SIM_RC_WRITE_ONLY, ENGINE_PSN);
	engine_send_on(&engine, &engine.sides[1].ah->path, &packet);
	TEST_ASSERT_EQUAL_HEX32(ENGINE_PSN + 1, engine.sides[0].qp->resp.psn);
}

/* --- InfiniBand --- */

static void again_on_infiniband(bool grh, enum ibv_qp_type type, bool quiet)
{
	again(&(struct engine_config){
		.infiniband = true, .grh = grh, .type = type, .quiet = quiet, .no_retry = true});
}

void test_infiniband_frames(void)
{
	for (unsigned int grh = 0; grh < 2; grh++) {
		again_on_infiniband(grh, IBV_QPT_RC, false);
		write_bytes(300);
		expect(IBV_WC_SUCCESS);
		TEST_ASSERT_EQUAL_UINT(3, engine.frame_count);
		for (unsigned int i = 0; i < 3; i++) {
			const struct engine_frame *frame = &engine.frames[i];

			TEST_ASSERT_EQUAL_STRING("ok", sim_decode_str(frame->decoded));
			TEST_ASSERT_TRUE(frame->route.infiniband);
			TEST_ASSERT_EQUAL_INT(grh, frame->route.has_grh);
			TEST_ASSERT_EQUAL_UINT16(i < 2 ? 1 : 2, frame->route.slid);
			TEST_ASSERT_EQUAL_UINT16(i < 2 ? 2 : 1, frame->route.dlid);
		}
		/* LRH, GRH, BTH, RETH, payload, ICRC, VCRC */
		TEST_ASSERT_EQUAL_size_t(8 + (grh ? 40 : 0) + 12 + 16 + 256 + 4 + 2,
					 engine.frames[0].frame_bytes);
	}
}

void test_infiniband_first_gid_is_its_ports(void)
{
	again_on_infiniband(true, IBV_QPT_RC, false);
	TEST_ASSERT_EQUAL_INT(0, sim_port_set_gid(&engine.sides[1].device->ports[0], 0,
						  &engine.sides[1].gid, IBV_GID_TYPE_IB));
	write_bytes(100);
	expect(IBV_WC_SUCCESS);
}

void test_infiniband_rate_is_that_of_the_frames(void)
{
	again(&(struct engine_config){.infiniband = true, .bits_per_second = UINT64_C(8000000000)});
	write_bytes(256);
	TEST_ASSERT_EQUAL_UINT64(8 + 12 + 16 + 256 + 4 + 2, sim_engine_next_ns(engine.sim));
}

void test_watching_changes_nothing_on_infiniband(void)
{
	for (unsigned int grh = 0; grh < 2; grh++) {
		struct sim_counters counters[2];

		for (unsigned int quiet = 0; quiet < 2; quiet++) {
			again_on_infiniband(grh, IBV_QPT_RC, quiet);
			write_bytes(1000);
			expect(IBV_WC_SUCCESS);
			counters[quiet] = engine.sides[1].device->counters;
		}
		TEST_ASSERT_EQUAL_MEMORY(&counters[0], &counters[1], sizeof(counters[0]));
		TEST_ASSERT_EQUAL_UINT64(4, counters[0].received_packets);
	}
}

/*
 * On InfiniBand a connection checks the peer's LID, and that both ends have a GRH or none of them
 * has: Linux drivers/infiniband/hw/qib/qib_ruc.c, qib_ruc_check_hdr.
 */
void test_infiniband_admits_only_its_peer(void)
{
	for (unsigned int quiet = 0; quiet < 2; quiet++) {
		for (unsigned int row = 0; row < 5; row++) {
			struct sim_route *route;

			again_on_infiniband(row >= 2, IBV_QPT_UC, quiet);
			sim_fabric_find_way(engine.sim, &engine.sides[0].qp->path);
			route = &engine.sides[0].qp->path.route;
			if (row == 0)
				engine.sides[1].qp->path.route.dlid = 9; /* expects another LID */
			else if (row == 1)
				route->has_grh = true;
			else if (row == 2)
				route->has_grh = false;
			else if (row == 3)
				route->dest_gid[15] ^= 0x55; /* maybe the GID of another port */
			else
				route->source_gid[15] ^= 0x55;
			write_bytes(10);
			TEST_ASSERT_EQUAL_UINT64(1,
						 engine.sides[1].device->counters.dropped_packets);
		}
	}
}

/* The port gets another LID: connections to the old LID reach nobody. */
void test_lid_that_changes(void)
{
	for (unsigned int quiet = 0; quiet < 2; quiet++) {
		again_on_infiniband(false, IBV_QPT_RC, quiet);
		write_bytes(10);
		expect(IBV_WC_SUCCESS);
		sim_port_set_lid(&engine.sides[1].device->ports[0], 7);
		TEST_ASSERT_EQUAL_UINT(1, engine_events(&engine, IBV_EVENT_LID_CHANGE));
		write_bytes(10);
		engine_settle(&engine, SIM_NEVER - 1);
		expect(IBV_WC_RETRY_EXC_ERR);
		TEST_ASSERT_EQUAL_UINT64(1, engine.sides[0].device->counters.lost_packets);
	}
}

/* The fault flips bits that the ICRC covers, and the VCRC is computed again. */
void test_spoilt_packets_on_infiniband(void)
{
	const struct sim_fault_rule rule = {.action = SIM_FAULT_CORRUPT, .count = 1};
	unsigned int id;

	for (unsigned int seed = 0; seed < 200; seed++) {
		again(&(struct engine_config){
			.infiniband = true, .grh = seed & 1, .seed = seed, .type = IBV_QPT_UC});
		TEST_ASSERT_EQUAL_INT(0, sim_fault_add(engine.sim, &rule, &id));
		write_bytes(20);
		TEST_ASSERT_EQUAL_UINT64(1, engine.sides[1].device->counters.dropped_packets);
		TEST_ASSERT_EQUAL_STRING("bad ICRC", sim_decode_str(engine.frames[0].decoded));
		TEST_ASSERT_FALSE(engine.frames[0].lost);
	}
}

static void check_each(uint8_t want, const uint8_t *bytes, size_t length_bytes)
{
	while (length_bytes--)
		TEST_ASSERT_EQUAL_HEX8(want, *bytes++);
}

static void send_datagram(uint16_t dlid, const union ibv_gid *dgid, uint32_t qpn, uint8_t sl)
{
	struct ibv_ah_attr attr = {.dlid = dlid, .port_num = 1, .sl = sl};

	if (dgid) {
		attr.is_global = 1;
		attr.grh.dgid = *dgid;
		attr.grh.hop_limit = 3;
	}
	sim_ah_release(engine.sides[0].ah);
	TEST_ASSERT_EQUAL_INT(0,
			      sim_ah_create(engine.sides[0].device, 1, &attr, &engine.sides[0].ah));
	TEST_ASSERT_EQUAL_INT(0, engine_send(&engine, 0,
					     &(struct engine_send){.opcode = IBV_WR_SEND,
								   .bytes = 10,
								   .remote_qpn = qpn}));
	sim_engine_run(engine.sim);
}

/* 40 bytes stand before the data whether there was a GRH or not (ibv_poll_cq(3), byte_len). */
void test_datagrams_of_infiniband(void)
{
	struct ibv_wc wc;

	again_on_infiniband(false, IBV_QPT_UD, false);
	for (unsigned int grh = 0; grh < 2; grh++) {
		const uint8_t *area = engine.sides[1].memory + 1000 * grh;

		memset(engine.sides[0].memory, 0x66, 10);
		TEST_ASSERT_EQUAL_INT(0, engine_recv(&engine, 1, grh, 1000 * grh, 100));
		send_datagram(2, grh ? &engine.sides[1].gid : NULL, 0, 5);
		TEST_ASSERT_TRUE(engine_poll(engine.sides[1].recv_cq, &wc));
		TEST_ASSERT_EQUAL_UINT32(50, wc.byte_len);
		TEST_ASSERT_EQUAL_UINT(grh ? IBV_WC_GRH : 0, wc.wc_flags);
		TEST_ASSERT_EQUAL_UINT16(1, wc.slid);
		TEST_ASSERT_EQUAL_UINT8(5, wc.sl);
		TEST_ASSERT_EQUAL_UINT8(0, wc.dlid_path_bits);
		check_each(0x66, area + 40, 10);
		if (!grh) {
			check_each(0xcc, area, 40);
			continue;
		}
		TEST_ASSERT_EQUAL_HEX8(0x60, area[0]);
		TEST_ASSERT_EQUAL_HEX8(0x1b, area[6]);
		TEST_ASSERT_EQUAL_HEX8(3, area[7]);
		TEST_ASSERT_EQUAL_MEMORY(engine.sides[0].device->ports[0].gids, area + 8, 16);
		TEST_ASSERT_EQUAL_MEMORY(&engine.sides[1].gid, area + 24, 16);
	}
}

/* The LID leads to the port, which drops a packet whose GRH has another GID (unsourced for UD). */
void test_datagram_whose_grh_is_for_another(void)
{
	const union ibv_gid nobody = engine_gid(77);

	again_on_infiniband(false, IBV_QPT_UD, false);
	TEST_ASSERT_EQUAL_INT(0, engine_recv(&engine, 1, 1, 0, 100));
	send_datagram(2, &nobody, 0, 0);
	TEST_ASSERT_EQUAL_UINT64(1, engine.sides[1].device->counters.dropped_packets);
	TEST_ASSERT_EQUAL_UINT64(0, engine.sides[0].device->counters.lost_packets);
	TEST_ASSERT_FALSE(engine.frames[0].lost);
}

/* A group has a LID and a GID: Linux drivers/infiniband/core/verbs.c, is_valid_mcast_lid. */
void test_groups_of_infiniband(void)
{
	const union ibv_gid group = {.raw = {0xff, 0x12, [15] = 1}};
	const union ibv_gid other = {.raw = {0xff, 0x12, [15] = 2}};
	const struct {
		uint16_t lid;
		const union ibv_gid *gid;
		bool comes;
	} rows[] = {{0xc001, &group, true}, {0xc002, &group, false}, {0xc001, &other, false}};
	struct ibv_wc wc;
	struct sim_qp *qp;

	again_on_infiniband(false, IBV_QPT_UD, false);
	qp = engine.sides[1].qp;
	TEST_ASSERT_EQUAL_INT(EINVAL, sim_multicast_attach(qp, &group, 0));
	TEST_ASSERT_EQUAL_INT(EINVAL, sim_multicast_attach(qp, &group, 0xbfff));
	TEST_ASSERT_EQUAL_INT(EINVAL, sim_multicast_attach(qp, &group, 0xffff));
	TEST_ASSERT_EQUAL_INT(0, sim_multicast_attach(qp, &group, 0xc001));
	TEST_ASSERT_EQUAL_INT(0, sim_multicast_attach(qp, &group, 0xc001));
	TEST_ASSERT_TRUE(sim_multicast_has(qp));
	for (unsigned int i = 0; i < 3; i++) {
		TEST_ASSERT_EQUAL_INT(0, engine_recv(&engine, 1, i, 0, 100));
		send_datagram(rows[i].lid, rows[i].gid, 0xffffff, 0);
		TEST_ASSERT_EQUAL_INT(rows[i].comes, engine_poll(engine.sides[1].recv_cq, &wc));
	}
	TEST_ASSERT_EQUAL_INT(EINVAL, sim_multicast_detach(qp, &group, 0xc002));
	TEST_ASSERT_EQUAL_INT(0, sim_multicast_detach(qp, &group, 0xc001));
	TEST_ASSERT_FALSE(sim_multicast_has(qp));
}
