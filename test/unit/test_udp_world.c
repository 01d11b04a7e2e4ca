/* SPDX-License-Identifier: MIT */
/* Two worlds of one process, whose devices reach each other by the wire `udp`. */
#include "test/unit/findings.h"
#include "test/unit/last_sentence.h"
#include "test/unit/random_packet.h"
#include "test/unit/udp_peer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <verbena/error.h>
#include <verbena/fault.h>
#include <verbena/sim.h>
#include <verbena/verbs.h>

#define BYTES (1u << 20)
#define LIMIT 20000000000u /* no test waits longer, in ns */

struct end {
	struct vb_sim *world;
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	union ibv_gid gid;
	uint8_t *buffer;
};

static struct end a, b;
static bool no_addresses; /* getifaddrs() finds none */
static uint8_t frame_of_stranger[SIM_FRAME_BYTES_MAX];

int __real_getifaddrs(struct ifaddrs **entries);
int __wrap_getifaddrs(struct ifaddrs **entries);
void __real_freeifaddrs(struct ifaddrs *entries);
void __wrap_freeifaddrs(struct ifaddrs *entries);

int __wrap_getifaddrs(struct ifaddrs **entries)
{
	*entries = NULL;
	return no_addresses ? 0 : __real_getifaddrs(entries);
}

void __wrap_freeifaddrs(struct ifaddrs *entries)
{
	if (entries)
		__real_freeifaddrs(entries);
}

static void open_end(struct end *end)
{
	const struct vb_sim_config config = {
		.clock = VB_SIM_CLOCK_REAL,
		.device_count = 1,
		.devices = {{.name = "sim0", .wire = VB_SIM_WIRE_UDP}},
	};
	struct ibv_device **list;

	end->world = vb_sim_open(&config);
	TEST_ASSERT_NOT_NULL(end->world);
	list = vb_sim_device_list(end->world, NULL);
	end->context = vb_open_device(list[0]);
	vb_free_device_list(list);
	end->pd = vb_alloc_pd(end->context);
	end->channel = vb_create_comp_channel(end->context);
	end->cq = vb_create_cq(end->context, 1024, NULL, end->channel, 0);
	end->buffer = calloc(1, BYTES);
	end->mr = vb_reg_mr(end->pd, end->buffer, BYTES,
			    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				    IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
	TEST_ASSERT_NOT_NULL(end->mr);
	TEST_ASSERT_EQUAL_INT(0, vb_query_gid(end->context, 1, 1, &end->gid));
}

static void make_qp(struct end *end)
{
	struct ibv_qp_init_attr init = {
		.send_cq = end->cq,
		.recv_cq = end->cq,
		.cap = {.max_send_wr = 256,
			.max_recv_wr = 256,
			.max_send_sge = 1,
			.max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
	};

	end->qp = vb_create_qp(end->pd, &init);
	TEST_ASSERT_NOT_NULL(end->qp);
}

static int to_rtr(struct end *end, const union ibv_gid *peer, uint32_t qpn, uint8_t sgid_index)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = qpn,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 12,
		.ah_attr = {.is_global = 1,
			    .port_num = 1,
			    .grh = {.dgid = *peer, .sgid_index = sgid_index, .hop_limit = 64}},
	};

	return vb_modify_qp(end->qp, &attr,
			    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				    IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				    IBV_QP_MIN_RNR_TIMER);
}

static void connect_qp(struct end *end, const union ibv_gid *peer, uint32_t qpn)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags =
			IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
	};

	TEST_ASSERT_EQUAL_INT(0, vb_modify_qp(end->qp, &attr,
					      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
						      IBV_QP_ACCESS_FLAGS));
	TEST_ASSERT_EQUAL_INT(0, to_rtr(end, peer, qpn, 1));
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTS,
		.timeout = 17,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 4,
	};
	TEST_ASSERT_EQUAL_INT(0, vb_modify_qp(end->qp, &attr,
					      IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
						      IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
						      IBV_QP_MAX_QP_RD_ATOMIC));
}

static void join_ends(void)
{
	make_qp(&a);
	make_qp(&b);
	connect_qp(&a, &b.gid, b.qp->qp_num);
	connect_qp(&b, &a.gid, a.qp->qp_num);
}

static void close_end(struct end *end)
{
	if (end->qp)
		vb_destroy_qp(end->qp);
	vb_dereg_mr(end->mr);
	vb_destroy_cq(end->cq);
	vb_destroy_comp_channel(end->channel);
	vb_dealloc_pd(end->pd);
	vb_close_device(end->context);
	vb_sim_close(end->world);
	free(end->buffer);
	memset(end, 0, sizeof(*end));
}

void setUp(void)
{
	random_state = SEED;
	no_addresses = false;
	open_end(&a);
	open_end(&b);
}

void tearDown(void)
{
	close_end(&a);
	close_end(&b);
}

static void post(struct end *end, enum ibv_wr_opcode opcode, size_t at, uint32_t bytes)
{
	struct ibv_sge sge = {(uintptr_t)end->buffer + at, bytes, end->mr->lkey};
	const struct end *peer = end == &a ? &b : &a;
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = opcode,
				 .send_flags = IBV_SEND_SIGNALED,
				 .wr.rdma = {(uintptr_t)peer->buffer + at, peer->mr->rkey}};
	struct ibv_send_wr *bad;

	TEST_ASSERT_EQUAL_INT(0, vb_post_send(end->qp, &wr, &bad));
}

static void post_receive(struct end *end, size_t at, uint32_t bytes)
{
	struct ibv_sge sge = {(uintptr_t)end->buffer + at, bytes, end->mr->lkey};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

	TEST_ASSERT_EQUAL_INT(0, vb_post_recv(end->qp, &wr, &bad));
}

/* Polls until a completion comes. */
static struct ibv_wc complete(struct end *end)
{
	const uint64_t began_ns = vb_sim_now_ns(end->world);
	struct ibv_wc wc;

	while (!vb_poll_cq(end->cq, 1, &wc))
		TEST_ASSERT_TRUE_MESSAGE(vb_sim_now_ns(end->world) - began_ns < LIMIT,
					 "no completion for 20 s");
	return wc;
}

static void expect_success(struct end *end)
{
	TEST_ASSERT_EQUAL_STRING("success", vb_wc_status_str(complete(end).status));
}

/* --- attributes --- */

static void expect_same_port(struct ibv_context *expected, struct ibv_context *context,
			     enum ibv_mtu mtu)
{
	struct ibv_port_attr attr[2];
	union ibv_gid gid[2];

	TEST_ASSERT_EQUAL_INT(0, vb_query_port(expected, 1, &attr[0], sizeof(attr[0])));
	TEST_ASSERT_EQUAL_INT(0, vb_query_port(context, 1, &attr[1], sizeof(attr[1])));
	TEST_ASSERT_EQUAL_INT(attr[0].gid_tbl_len, attr[1].gid_tbl_len);
	TEST_ASSERT_EQUAL_INT(mtu, attr[1].active_mtu);
	TEST_ASSERT_EQUAL_INT(mtu, attr[1].max_mtu);
	TEST_ASSERT_EQUAL_INT(0, vb_query_gid(expected, 1, 1, &gid[0]));
	TEST_ASSERT_EQUAL_INT(0, vb_query_gid(context, 1, 1, &gid[1]));
	TEST_ASSERT_EQUAL_MEMORY(gid[0].raw, gid[1].raw, sizeof(gid[0]));
}

/* A world for attributes has a device whose address another world has claimed, and takes nothing from it. */
static void look_at_taken_address(enum ibv_mtu mtu, enum ibv_mtu expected)
{
	struct vb_sim_config config = {
		.clock = VB_SIM_CLOCK_REAL,
		.device_count = 1,
		.devices = {{.name = "sim0", .wire = VB_SIM_WIRE_UDP}},
	};
	struct ibv_device **list;
	struct ibv_context *context;
	struct vb_sim *world;

	inet_ntop(AF_INET, a.gid.raw + 12, config.devices[0].address,
		  sizeof(config.devices[0].address));
	TEST_ASSERT_NULL(vb_sim_open(&config));
	TEST_ASSERT_EQUAL_INT(EADDRINUSE, errno);
	config.attributes_only = true;
	config.devices[0].mtu = mtu;
	world = vb_sim_open(&config);
	TEST_ASSERT_NOT_NULL_MESSAGE(world, vb_last_error());
	list = vb_sim_device_list(world, NULL);
	context = vb_open_device(list[0]);
	vb_free_device_list(list);
	expect_same_port(a.context, context, expected);
	TEST_ASSERT_EQUAL_INT(0, vb_close_device(context));
	TEST_ASSERT_EQUAL_INT(0, vb_sim_close(world));
}

void test_attributes_of_a_taken_address(void)
{
	look_at_taken_address(0, IBV_MTU_4096);
	look_at_taken_address(IBV_MTU_1024, IBV_MTU_1024);
	/* An interface that is not known is taken for Ethernet. */
	no_addresses = true;
	look_at_taken_address(0, IBV_MTU_1024);
	look_at_taken_address(IBV_MTU_2048, IBV_MTU_1024);
	join_ends();
	post_receive(&b, 0, 64);
	post(&a, IBV_WR_SEND, 0, 64);
	expect_success(&a);
	expect_success(&b);
}

/* --- data --- */

void test_each_operation_carries_its_data(void)
{
	join_ends();
	random_bytes(a.buffer, BYTES);
	post_receive(&b, 0, BYTES);
	post(&a, IBV_WR_SEND, 0, BYTES);
	expect_success(&a);
	expect_success(&b);
	TEST_ASSERT_EQUAL_MEMORY(a.buffer, b.buffer, BYTES);

	random_bytes(a.buffer, BYTES);
	post(&a, IBV_WR_RDMA_WRITE, 0, BYTES);
	expect_success(&a);
	TEST_ASSERT_EQUAL_MEMORY(a.buffer, b.buffer, BYTES);

	random_bytes(b.buffer, BYTES);
	post(&a, IBV_WR_RDMA_READ, 0, BYTES);
	expect_success(&a);
	TEST_ASSERT_EQUAL_MEMORY(b.buffer, a.buffer, BYTES);
}

/* The peer's program sleeps on its channel: the wire wakes it. */
void test_a_sleeping_program_is_woken(void)
{
	struct ibv_cq *cq;
	void *context;

	join_ends();
	for (unsigned int i = 0; i < 20; i++) {
		post_receive(&b, 0, 64);
		TEST_ASSERT_EQUAL_INT(0, vb_req_notify_cq(b.cq, 0));
		post(&a, IBV_WR_SEND, 0, 64);
		TEST_ASSERT_EQUAL_INT(0, vb_get_cq_event(b.channel, &cq, &context));
		vb_ack_cq_events(cq, 1);
		expect_success(&b);
		expect_success(&a);
	}
}

/* Packets that are lost on the way come again. */
void test_lost_datagrams_are_repaired(void)
{
	const struct vb_fault_rule rule = {.action = VB_FAULT_DROP, .probability = 0.02};

	join_ends();
	TEST_ASSERT_EQUAL_INT(0, vb_fault_add(a.world, &rule, NULL));
	random_bytes(a.buffer, BYTES);
	post(&a, IBV_WR_RDMA_WRITE, 0, BYTES);
	expect_success(&a);
	TEST_ASSERT_EQUAL_MEMORY(a.buffer, b.buffer, BYTES);
}

/* --- strangers --- */

static uint64_t dropped(const char *cause)
{
	uint64_t packets = 0;

	TEST_ASSERT_EQUAL_INT(0, vb_sim_drops(b.context, cause, &packets));
	return packets;
}

/*
 * A stranger sends random datagrams, and packets for the QP that are cut or changed, or whose source is not
 * its peer. None touches memory, and each is counted.
 */
static size_t hostile(uint8_t *datagram, const union ibv_gid *from)
{
	struct sim_route by = udp_route(from, &b.gid);
	size_t bytes = random_u64() % 128;

	random_bytes(datagram, bytes);
	if (random_u64() % 4 == 0)
		return bytes;
	random_packet((uint8_t)(random_u64() % 2 ? IBV_OPCODE_RC_SEND_ONLY
						 : IBV_OPCODE_RC_RDMA_WRITE_ONLY));
	packet.dest_qpn = b.qp->qp_num;
	packet.pkey = 0xffff;
	packet.rkey = b.mr->rkey;
	packet.remote_addr = (uintptr_t)b.buffer;
	packet.dma_bytes = 0;
	by.udp_source_port = 0xc001;
	bytes = sim_packet_encode(&packet, &by, udp_copy, frame_of_stranger, NULL) - 42;
	memcpy(datagram, frame_of_stranger + 42, bytes);
	switch (random_u64() % 3) {
	case 0:
		return random_u64() % bytes;
	case 1:
		datagram[random_u64() % bytes] ^= (uint8_t)(1 << random_u64() % 8);
		return bytes;
	default:
		return bytes;
	}
}

void test_strangers_harm_nobody(void)
{
	struct udp_address address;
	uint8_t datagram[SIM_FRAME_BYTES_MAX], kept[64];
	struct vb_sim_counters before, after;
	unsigned int sent = 0;
	int fd;

	fd = udp_claim_address("", &address);
	close(fd);
	fd = udp_plain(&address.gid, 0xc001);
	join_ends();
	random_bytes(b.buffer + BYTES / 2, sizeof(kept));
	memcpy(kept, b.buffer + BYTES / 2, sizeof(kept));
	vb_sim_counters(b.context, &before);
	for (unsigned int round = 0; round < 50; round++) {
		for (unsigned int i = 0; i < 40; i++, sent++)
			udp_plain_send(fd, &b.gid, datagram, hostile(datagram, &address.gid));
		random_bytes(a.buffer, 256);
		post(&a, IBV_WR_RDMA_WRITE, 0, 256);
		expect_success(&a);
		TEST_ASSERT_EQUAL_MEMORY(a.buffer, b.buffer, 256);
	}
	TEST_ASSERT_EQUAL_MEMORY(kept, b.buffer + BYTES / 2, sizeof(kept));
	vb_sim_counters(b.context, &after);
	TEST_ASSERT_EQUAL_UINT(sent, after.dropped_packets - before.dropped_packets);
	TEST_ASSERT_GREATER_THAN(100, dropped("truncated"));
	TEST_ASSERT_GREATER_THAN(100, dropped("icrc"));
	TEST_ASSERT_GREATER_THAN(100, dropped("stranger"));
	close(fd);
}

/* --- what a person sees --- */

void test_the_report_counts_datagrams(void)
{
	static const uint8_t zeros[UDP_DATAGRAM_BYTES_MAX + 1];
	const int fd = socket(AF_INET, SOCK_DGRAM, 0);

	join_ends();
	udp_plain_send(fd, &b.gid, zeros, sizeof(zeros));
	udp_plain_send(fd, &b.gid, zeros, 3);
	post_receive(&b, 0, 64);
	post(&a, IBV_WR_SEND, 0, 64);
	expect_success(&a);
	expect_success(&b);
	collect_findings(b.world);
	expect_found("sim0: datagrams received: 3\n");
	expect_found("sim0: datagrams sent: 1\n");
	expect_found("sim0: datagrams dropped: longer than a packet: 1\n");
	expect_found("sim0: 1 packet was dropped: the frame is shorter than its headers say");
	close(fd);
}

/* A QP whose packets cannot leave is not connected. */
static void expect_refused(const union ibv_gid *to, uint8_t sgid_index, enum vb_reason reason,
			   const char *expected)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};

	make_qp(&a);
	TEST_ASSERT_EQUAL_INT(0, vb_modify_qp(a.qp, &attr,
					      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
						      IBV_QP_ACCESS_FLAGS));
	TEST_ASSERT_EQUAL_INT(ENETUNREACH, to_rtr(&a, to, 0x12, sgid_index));
	expect_reason(reason, "%s", expected);
}

void test_a_path_from_another_gid(void)
{
	const union ibv_gid to = udp_gid("fe80::1");

	expect_refused(
		&to, 0, VB_WHY_UDP_SOURCE_GID,
		"modify_qp: no adapter of this machine has the GID fe80::1 of grh.dgid, and "
		"packets "
		"from the GID of index 0 do not leave by the wire udp: it is not the device's "
		"address "
		"with the type RoCE v2; set grh.sgid_index to the index of the device's address of "
		"RoCE v2, which ibv_devinfo -v shows: 1, unless the program has changed the table");
}

void test_a_path_beyond_the_loopback_network(void)
{
	const union ibv_gid to = udp_gid("192.0.2.1");

	expect_refused(&to, 1, VB_WHY_UDP_LOOPBACK,
		       "modify_qp: one of the GID ::ffff:192.0.2.1 of grh.dgid and the device's "
		       "address is a "
		       "loopback address, and the other is not: no packet gets from one to the "
		       "other; give "
		       "the device an address of an interface that leads to the peer, by --wire "
		       "udp=ADDRESS "
		       "or udp=INTERFACE; within a machine leave out both addresses");
}
