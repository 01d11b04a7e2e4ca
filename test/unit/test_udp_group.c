/* SPDX-License-Identifier: MIT */
/*
 * Multicast groups over the wire `udp`: worlds of one process, which know nothing of each other, and two
 * network namespaces.
 */
#include "test/unit/findings.h"
#include "test/unit/last_sentence.h"
#include "test/unit/random_packet.h"
#include "test/unit/udp_peer.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <verbena/fault.h>
#include <verbena/sim.h>
#include <verbena/verbs.h>

#define SLOTS	   64
#define SLOT_BYTES 2048
#define GRH_BYTES  40
#define QKEY	   0x11111111u
#define LIMIT	   20000000000u /* no test waits longer, in ns */
#define GROUP_QPN  0xffffffu

/* A device with a UD QP. */
struct end {
	struct vb_sim *world;
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq, *send_cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	union ibv_gid gid;
	unsigned int posted; /* receives: SLOTS at most */
	uint8_t buffer[2 * SLOTS * SLOT_BYTES];
};

/* a and c are devices of one world, b is another world's. */
static struct end a, b, c;
static union ibv_gid group;

static struct vb_sim *open_world(unsigned int devices, const char *address)
{
	struct vb_sim_config config = {
		.clock = VB_SIM_CLOCK_REAL,
		.device_count = devices,
		.devices = {{.name = "sim0", .wire = VB_SIM_WIRE_UDP},
			    {.name = "sim1", .wire = VB_SIM_WIRE_UDP}},
	};
	struct vb_sim *world;

	snprintf(config.devices[0].address, sizeof(config.devices[0].address), "%s", address);
	world = vb_sim_open(&config);
	TEST_ASSERT_NOT_NULL_MESSAGE(world, vb_last_error());
	return world;
}

static struct ibv_qp *make_qp(struct end *end)
{
	struct ibv_qp_init_attr init = {
		.send_cq = end->send_cq,
		.recv_cq = end->cq,
		.cap = {.max_send_wr = SLOTS,
			.max_recv_wr = SLOTS,
			.max_send_sge = 1,
			.max_recv_sge = 1},
		.qp_type = IBV_QPT_UD,
	};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY};
	struct ibv_qp *qp = vb_create_qp(end->pd, &init);

	TEST_ASSERT_NOT_NULL(qp);
	TEST_ASSERT_EQUAL_INT(
		0, vb_modify_qp(qp, &attr,
				IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY));
	attr.qp_state = IBV_QPS_RTR;
	TEST_ASSERT_EQUAL_INT(0, vb_modify_qp(qp, &attr, IBV_QP_STATE));
	attr.qp_state = IBV_QPS_RTS;
	TEST_ASSERT_EQUAL_INT(0, vb_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN));
	return qp;
}

static void post_receives(struct end *end, struct ibv_qp *qp, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++, end->posted++) {
		const uint64_t slot = end->posted % SLOTS;
		struct ibv_sge sge = {(uintptr_t)end->buffer + slot * SLOT_BYTES, SLOT_BYTES,
				      end->mr->lkey};
		struct ibv_recv_wr wr = {.wr_id = slot, .sg_list = &sge, .num_sge = 1}, *bad;

		TEST_ASSERT_EQUAL_INT(0, vb_post_recv(qp, &wr, &bad));
	}
}

static void open_end(struct end *end, struct vb_sim *world, unsigned int device)
{
	struct ibv_device **list = vb_sim_device_list(world, NULL);

	memset(end, 0, sizeof(*end));
	end->world = world;
	end->context = vb_open_device(list[device]);
	vb_free_device_list(list);
	end->pd = vb_alloc_pd(end->context);
	end->channel = vb_create_comp_channel(end->context);
	end->cq = vb_create_cq(end->context, 4 * SLOTS, NULL, end->channel, 0);
	end->send_cq = vb_create_cq(end->context, SLOTS, NULL, NULL, 0);
	end->mr = vb_reg_mr(end->pd, end->buffer, sizeof(end->buffer), IBV_ACCESS_LOCAL_WRITE);
	TEST_ASSERT_NOT_NULL(end->mr);
	TEST_ASSERT_EQUAL_INT(0, vb_query_gid(end->context, 1, 1, &end->gid));
	end->qp = make_qp(end);
	post_receives(end, end->qp, 16);
}

static void close_end(struct end *end)
{
	if (!end->world)
		return;
	if (end->qp) {
		vb_detach_mcast(end->qp, &group, 0);
		TEST_ASSERT_EQUAL_INT(0, vb_destroy_qp(end->qp));
	}
	vb_dereg_mr(end->mr);
	vb_destroy_cq(end->cq);
	vb_destroy_cq(end->send_cq);
	vb_destroy_comp_channel(end->channel);
	vb_dealloc_pd(end->pd);
	vb_close_device(end->context);
	end->world = NULL;
}

static void close_all(void)
{
	struct vb_sim *first = a.world, *second = b.world;

	close_end(&a);
	close_end(&b);
	close_end(&c);
	if (first)
		vb_sim_close(first);
	if (second)
		vb_sim_close(second);
}

static void open_all(void)
{
	struct vb_sim *world = open_world(2, "");

	open_end(&a, world, 0);
	open_end(&c, world, 1);
	open_end(&b, open_world(1, ""), 0);
}

/* Each run of the test has a group of its own: groups of other processes on this machine are others. */
static void choose_group(void)
{
	group = (union ibv_gid){.raw = {[10] = 0xff,
					[11] = 0xff,
					[12] = 239,
					[13] = (uint8_t)(getpid() >> 16 & 0x7f),
					[14] = (uint8_t)(getpid() >> 8),
					[15] = (uint8_t)getpid()}};
}

void setUp(void)
{
	random_state = SEED;
	choose_group();
	open_all();
}

void tearDown(void)
{
	close_all();
}

static void attach(const struct end *end)
{
	TEST_ASSERT_EQUAL_INT_MESSAGE(0, vb_attach_mcast(end->qp, &group, 0), vb_last_error());
}

static void detach(const struct end *end)
{
	TEST_ASSERT_EQUAL_INT(0, vb_detach_mcast(end->qp, &group, 0));
}

/* Polls until a completion comes. */
static struct ibv_wc complete(struct end *end, struct ibv_cq *cq)
{
	const uint64_t began_ns = vb_sim_now_ns(end->world);
	struct ibv_wc wc;
	int count;

	while ((count = vb_poll_cq(cq, 1, &wc)) == 0)
		TEST_ASSERT_TRUE_MESSAGE(vb_sim_now_ns(end->world) - began_ns < LIMIT,
					 "no completion for 20 s");
	TEST_ASSERT_EQUAL_INT(1, count);
	return wc;
}

/* The bytes of a's and c's messages. */
static uint8_t *message_of(struct end *end)
{
	return end->buffer + sizeof(end->buffer) / 2;
}

struct to {
	const union ibv_gid *gid;
	uint32_t qpn;
	uint8_t hop_limit;
};

/* Sends random bytes and takes the completion of the send. */
static void send_to(struct end *end, struct to to, uint32_t bytes)
{
	struct ibv_ah_attr attr = {
		.is_global = 1,
		.port_num = 1,
		.grh = {.dgid = *to.gid, .sgid_index = 1, .hop_limit = to.hop_limit},
	};
	struct ibv_ah *ah = vb_create_ah(end->pd, &attr);
	struct ibv_sge sge = {(uintptr_t)message_of(end), bytes, end->mr->lkey};
	struct ibv_send_wr wr = {.wr_id = 99,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_SIGNALED,
				 .wr.ud = {ah, to.qpn, QKEY}};
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	TEST_ASSERT_NOT_NULL_MESSAGE(ah, vb_last_error());
	random_bytes(message_of(end), bytes);
	TEST_ASSERT_EQUAL_INT(0, vb_post_send(end->qp, &wr, &bad));
	wc = complete(end, end->send_cq);
	TEST_ASSERT_EQUAL_UINT64(99, wc.wr_id);
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, wc.status);
	vb_destroy_ah(ah);
}

static void send_to_group(struct end *end, uint32_t bytes)
{
	send_to(end, (struct to){&group, GROUP_QPN, 64}, bytes);
}

/* Takes the message that `from` has sent last. Returns its GRH. */
static const uint8_t *take(struct end *end, struct end *from, uint32_t bytes)
{
	const struct ibv_wc wc = complete(end, end->cq);
	const uint8_t *slot = end->buffer + wc.wr_id % SLOTS * SLOT_BYTES;

	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, wc.status);
	TEST_ASSERT_EQUAL_INT(IBV_WC_RECV, wc.opcode);
	TEST_ASSERT_EQUAL_UINT32(GRH_BYTES + bytes, wc.byte_len);
	TEST_ASSERT_EQUAL_HEX(from->qp->qp_num, wc.src_qp);
	TEST_ASSERT_TRUE(wc.wc_flags & IBV_WC_GRH);
	/* Unity refuses to compare nothing. */
	if (bytes)
		TEST_ASSERT_EQUAL_MEMORY(message_of(from), slot + GRH_BYTES, bytes);
	return slot;
}

/*
 * No message is left at the ends: a datagram to each of them, which was sent last, is the next. The kernel
 * has queued what was sent over loopback before sendmmsg() returns, and a group's socket rests for a few
 * calls only.
 */
static void expect_nothing(struct end *end, struct end *from)
{
	struct ibv_wc wc;

	send_to(from, (struct to){&end->gid, end->qp->qp_num, 64}, 5);
	take(end, from, 5);
	for (unsigned int i = 0; i < 32; i++)
		TEST_ASSERT_EQUAL_INT(0, vb_poll_cq(end->cq, 1, &wc));
}

/* Returns how many sockets of this network namespace are in the group. */
static unsigned int joined_in_kernel(void)
{
	FILE *file = fopen("/proc/net/igmp", "r");
	unsigned int users = 0, count;
	char line[256];
	uint32_t address, wanted;

	TEST_ASSERT_NOT_NULL(file);
	memcpy(&wanted, group.raw + 12, sizeof(wanted));
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "\t\t\t\t%8X %u", &address, &count) == 2 && address == wanted)
			users += count;
	fclose(file);
	return users;
}

/* --- members in other worlds --- */

void test_a_message_reaches_a_member_in_another_world(void)
{
	static const uint32_t sizes[] = {0, 1, 64, 1023, 1024};

	attach(&b);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		send_to_group(&a, sizes[i]);
		take(&b, &a, sizes[i]);
	}
	expect_nothing(&b, &a);
	expect_nothing(&a, &b);
}

/* Returns true if an epoll(7) of this process reports something: here, that a group's socket has a message. */
static bool a_group_is_reported(void)
{
	unsigned int epolls = 0;
	bool reported = false;

	for (int fd = 0; fd < 256; fd++) {
		struct pollfd epoll = {.fd = fd, .events = POLLIN};
		char path[32], link[64];
		ssize_t length;

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		length = readlink(path, link, sizeof(link) - 1);
		link[length > 0 ? length : 0] = '\0';
		if (strcmp(link, "anon_inode:[eventpoll]") != 0)
			continue;
		epolls++;
		reported |= poll(&epoll, 1, 0) > 0;
	}
	TEST_ASSERT_GREATER_THAN(0, epolls);
	return reported;
}

/*
 * A child that another thread has just forked has copies of the sockets until its handlers have run, and the kernel
 * goes on to queue messages there. _Fork() calls no handlers.
 */
void test_a_group_that_was_left_is_not_reported_for_a_child_that_has_not_run_yet(void)
{
	bool reported;
	int ends[2];
	pid_t child;
	char byte;

	attach(&b);
	TEST_ASSERT_EQUAL_INT(0, pipe(ends));
	child = _Fork();
	if (child == 0) {
		close(ends[1]);
		_exit((int)read(ends[0], &byte, 1));
	}
	detach(&b);
	send_to_group(&a, 64);
	reported = a_group_is_reported();
	close(ends[1]);
	close(ends[0]);
	TEST_ASSERT_EQUAL_INT(child, waitpid(child, NULL, 0));
	TEST_ASSERT_FALSE(reported);
	expect_nothing(&b, &a);
}

/* RoCE v2 over IPv4: the last 20 bytes of the GRH are the IPv4 header. */
void test_the_header_names_the_group_and_its_hop_limit(void)
{
	static const uint8_t limits[] = {1, 64, 255};

	attach(&b);
	for (size_t i = 0; i < sizeof(limits); i++) {
		const uint8_t *grh;

		send_to(&a, (struct to){&group, GROUP_QPN, limits[i]}, 10);
		grh = take(&b, &a, 10);
		TEST_ASSERT_EQUAL_UINT8(limits[i], grh[20 + 8]);
		TEST_ASSERT_EQUAL_MEMORY(a.gid.raw + 12, grh + 20 + 12, 4);
		TEST_ASSERT_EQUAL_MEMORY(group.raw + 12, grh + 20 + 16, 4);
	}
}

void test_only_members_get_messages(void)
{
	send_to_group(&a, 10);
	expect_nothing(&b, &a);
	TEST_ASSERT_EQUAL_UINT(0, joined_in_kernel());
	attach(&b);
	TEST_ASSERT_EQUAL_UINT(1, joined_in_kernel());
	send_to_group(&a, 20);
	take(&b, &a, 20);
	detach(&b);
	TEST_ASSERT_EQUAL_UINT(0, joined_in_kernel());
	send_to_group(&a, 30);
	expect_nothing(&b, &a);
	attach(&b);
	send_to_group(&a, 40);
	take(&b, &a, 40);
	expect_nothing(&b, &a);
}

/* The MAC of a group has 23 bits of its IPv4 address; the socket gets its own group only. */
void test_a_group_of_the_same_mac_is_another_group(void)
{
	union ibv_gid other = group;

	other.raw[12] = 238;
	other.raw[13] |= 0x80;
	attach(&b);
	attach(&a);
	send_to(&a, (struct to){&other, GROUP_QPN, 64}, 10);
	expect_nothing(&b, &a);
	TEST_ASSERT_EQUAL_INT(0, vb_attach_mcast(b.qp, &other, 0));
	send_to(&a, (struct to){&other, GROUP_QPN, 64}, 11);
	take(&b, &a, 11);
	TEST_ASSERT_EQUAL_INT(0, vb_detach_mcast(b.qp, &other, 0));
	send_to(&a, (struct to){&other, GROUP_QPN, 64}, 12);
	send_to_group(&c, 13);
	take(&b, &c, 13);
	take(&a, &c, 13);
	expect_nothing(&b, &a);
}

/* The last of a device's QPs that leaves ends the device's membership; so does its end. */
void test_the_last_qp_of_a_device_leaves(void)
{
	struct ibv_qp *second = make_qp(&b), *third = make_qp(&b);

	post_receives(&b, second, 4);
	post_receives(&b, third, 4);
	attach(&b);
	attach(&b);
	TEST_ASSERT_EQUAL_INT(0, vb_attach_mcast(second, &group, 0));
	TEST_ASSERT_EQUAL_INT(0, vb_attach_mcast(third, &group, 0));
	TEST_ASSERT_EQUAL_UINT(1, joined_in_kernel());
	send_to_group(&a, 10);
	for (unsigned int i = 0; i < 3; i++)
		take(&b, &a, 10);
	detach(&b);
	TEST_ASSERT_EQUAL_INT(0, vb_detach_mcast(third, &group, 0));
	send_to_group(&a, 20);
	take(&b, &a, 20);
	expect_nothing(&b, &a);
	TEST_ASSERT_EQUAL_INT(0, vb_destroy_qp(third));
	TEST_ASSERT_EQUAL_INT(0, vb_detach_mcast(second, &group, 0));
	TEST_ASSERT_EQUAL_UINT(0, joined_in_kernel());
	TEST_ASSERT_EQUAL_INT(0, vb_destroy_qp(second));
	send_to_group(&a, 30);
	expect_nothing(&b, &a);
}

/* Each device of a world has memberships of its own, and each group of a device. */
void test_who_leaves_takes_nobody_along(void)
{
	const union ibv_gid kept = group;

	for (unsigned int i = 0; i < 2; i++) {
		struct end *stays = i ? &a : &c, *leaves = i ? &c : &a;

		attach(leaves);
		attach(stays);
		group.raw[12] = 238;
		attach(stays);
		detach(stays);
		attach(leaves);
		group = kept;
		detach(leaves);
		TEST_ASSERT_EQUAL_UINT(1, joined_in_kernel());
		send_to_group(&b, 10);
		take(stays, &b, 10);
		expect_nothing(leaves, &b);
		detach(stays);
		group.raw[12] = 238;
		TEST_ASSERT_EQUAL_UINT(1, joined_in_kernel());
		send_to_group(&b, 20);
		take(leaves, &b, 20);
		expect_nothing(stays, &b);
		detach(leaves);
		TEST_ASSERT_EQUAL_UINT(0, joined_in_kernel());
		group = kept;
	}
}

/* --- exactly once --- */

/* A member of the sender's device, one on another device of its world, and one in another world. */
void test_each_member_gets_one_copy(void)
{
	attach(&a);
	attach(&b);
	attach(&c);
	TEST_ASSERT_EQUAL_UINT(3, joined_in_kernel());
	for (uint32_t round = 0; round < 3; round++) {
		send_to_group(&a, 100 + round);
		take(&a, &a, 100 + round);
		take(&b, &a, 100 + round);
		take(&c, &a, 100 + round);
		send_to_group(&b, 200 + round);
		take(&a, &b, 200 + round);
		take(&b, &b, 200 + round);
		take(&c, &b, 200 + round);
		send_to_group(&c, 300 + round);
		take(&a, &c, 300 + round);
		take(&b, &c, 300 + round);
		take(&c, &c, 300 + round);
	}
	expect_nothing(&a, &b);
	expect_nothing(&b, &a);
	expect_nothing(&c, &b);
}

void test_the_report_counts_own_copies(void)
{
	attach(&a);
	attach(&c);
	send_to_group(&a, 10);
	take(&a, &a, 10);
	take(&c, &a, 10);
	expect_nothing(&a, &b);
	expect_nothing(&c, &b);
	collect_findings(a.world);
	expect_found("sim0: datagrams dropped: of this process, to a group: 1\n");
	expect_found("sim1: datagrams dropped: of this process, to a group: 1\n");
	TEST_ASSERT_NULL_MESSAGE(strstr(found, "lost"), found);
}

/* A fault rule touches the packet once, for all members. */
void test_a_rule_sees_one_packet(void)
{
	const struct vb_fault_rule rule = {.action = VB_FAULT_DROP, .from = "sim0", .count = 1};

	attach(&b);
	attach(&c);
	TEST_ASSERT_EQUAL_INT(0, vb_fault_add(a.world, &rule, NULL));
	send_to_group(&a, 10);
	expect_nothing(&b, &c);
	expect_nothing(&c, &b);
	send_to_group(&a, 20);
	take(&b, &a, 20);
	take(&c, &a, 20);
}

/* --- programs that sleep --- */

void test_a_sleeping_program_is_woken(void)
{
	struct ibv_cq *cq;
	void *context;

	attach(&b);
	for (uint32_t i = 0; i < 20; i++) {
		TEST_ASSERT_EQUAL_INT(0, vb_req_notify_cq(b.cq, 0));
		send_to_group(&a, i);
		TEST_ASSERT_EQUAL_INT(0, vb_get_cq_event(b.channel, &cq, &context));
		vb_ack_cq_events(cq, 1);
		take(&b, &a, i);
		post_receives(&b, b.qp, 1);
	}
}

/* --- strangers --- */

static uint64_t dropped(const char *cause)
{
	uint64_t packets = 0;

	TEST_ASSERT_EQUAL_INT(0, vb_sim_drops(b.context, cause, &packets));
	return packets;
}

static uint8_t frame_of_stranger[SIM_FRAME_BYTES_MAX];

/* Encodes a UD SEND_ONLY of 16 bytes. Returns the length of the datagram. */
static size_t stranger_packet(const union ibv_gid *from, const union ibv_gid *to, uint32_t qpn)
{
	static uint8_t payload[16];
	const struct sim_span span = {payload, sizeof(payload)};
	const struct sim_packet sent = {
		.opcode = IBV_OPCODE_UD_SEND_ONLY,
		.pkey = 0xffff,
		.dest_qpn = qpn,
		.source_qpn = 0x77,
		.qkey = QKEY,
		.payload_bytes = sizeof(payload),
		.spans = &span,
		.span_count = 1,
	};
	struct sim_route by = udp_route(from, to);

	by.udp_source_port = 0xc001;
	return sim_packet_encode(&sent, &by, udp_copy, frame_of_stranger, NULL) - 42;
}

/* Any address may send to a group. */
void test_a_stranger_sends_to_a_group(void)
{
	struct udp_address address;
	struct ibv_wc wc;
	size_t bytes;
	int fd = udp_claim_address("", &address);

	close(fd);
	fd = udp_plain(&address.gid, 0xc001);
	attach(&b);
	bytes = stranger_packet(&address.gid, &group, GROUP_QPN);
	udp_plain_send(fd, &group, frame_of_stranger + 42, bytes);
	wc = complete(&b, b.cq);
	TEST_ASSERT_EQUAL_HEX(0x77, wc.src_qp);
	TEST_ASSERT_EQUAL_UINT(GRH_BYTES + 16, wc.byte_len);
	frame_of_stranger[42 + bytes - 1] ^= 1;
	udp_plain_send(fd, &group, frame_of_stranger + 42, bytes);
	udp_plain_send(fd, &group, frame_of_stranger + 42, 3);
	expect_nothing(&b, &a);
	TEST_ASSERT_EQUAL_UINT64(1, dropped("icrc"));
	TEST_ASSERT_EQUAL_UINT64(1, dropped("truncated"));
	close(fd);
}

/* The QPN of groups is nobody's at a device's own address. */
void test_a_packet_for_members_comes_to_no_group(void)
{
	struct udp_address address;
	int fd = udp_claim_address("", &address);
	size_t bytes;

	close(fd);
	fd = udp_plain(&address.gid, 0xc001);
	attach(&b);
	bytes = stranger_packet(&address.gid, &b.gid, GROUP_QPN);
	udp_plain_send(fd, &b.gid, frame_of_stranger + 42, bytes);
	expect_nothing(&b, &a);
	TEST_ASSERT_EQUAL_UINT64(1, dropped("no_qp"));
	close(fd);
}

/* --- refusals --- */

/* Binds port 4791 of the group as a program does that does not know of others. */
static int take_group(void)
{
	return udp_plain(&group, SIM_UDP_PORT);
}

/* Returns the lowest free descriptor. */
static int free_descriptor(void)
{
	const int fd = dup(0);

	TEST_ASSERT_EQUAL_INT(0, close(fd));
	return fd;
}

void test_a_group_that_another_program_has(void)
{
	const int fd = take_group(), free_fd = free_descriptor();
	char text[INET_ADDRSTRLEN];

	inet_ntop(AF_INET, group.raw + 12, text, sizeof(text));
	TEST_ASSERT_EQUAL_INT(EADDRINUSE, vb_attach_mcast(b.qp, &group, 0));
	TEST_ASSERT_EQUAL_INT(free_fd, free_descriptor());
	expect_reason(
		VB_WHY_UDP_GROUP_TAKEN,
		"attach_mcast: UDP port 4791 of the group ::ffff:%s is taken by a socket that "
		"does not share it; end the program that is bound to port 4791 there or at "
		"every address, as `ss -ulnp` shows; where it is the kernel's SoftRoCE "
		"(rdma_rxe), run in another network namespace",
		text);
	TEST_ASSERT_EQUAL_INT(EINVAL, vb_detach_mcast(b.qp, &group, 0));
	send_to_group(&a, 10);
	close(fd);
	expect_nothing(&b, &a);
	attach(&b);
	send_to_group(&a, 20);
	take(&b, &a, 20);
}

void test_a_group_needs_a_descriptor(void)
{
	struct rlimit kept, none;

	TEST_ASSERT_EQUAL_INT(0, getrlimit(RLIMIT_NOFILE, &kept));
	none = (struct rlimit){3, kept.rlim_max};
	TEST_ASSERT_EQUAL_INT(0, setrlimit(RLIMIT_NOFILE, &none));
	TEST_ASSERT_EQUAL_INT(EMFILE, vb_attach_mcast(b.qp, &group, 0));
	TEST_ASSERT_EQUAL_INT(0, setrlimit(RLIMIT_NOFILE, &kept));
	expect_reason(
		VB_WHY_PROCESS_DESCRIPTORS,
		"attach_mcast: the process has no free file descriptor for the UDP socket of a "
		"group; close descriptors, or raise the limit of the process (ulimit -n)");
	attach(&b);
	send_to_group(&a, 20);
	take(&b, &a, 20);
}

/* A device of IPv4 has members of groups of IPv6 in its own world only. */
void test_a_group_of_another_ip_version(void)
{
	group = udp_gid("ff0e::1234");
	attach(&a);
	attach(&b);
	attach(&c);
	send_to_group(&a, 10);
	take(&a, &a, 10);
	take(&c, &a, 10);
	expect_nothing(&b, &a);
}

/* --- fork() --- */

/* The child ends with this process, however that ends. */
static pid_t fork_child(void)
{
	const pid_t pid = fork();

	if (!pid)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	return pid;
}

/* The membership of a parent outlives a child that ends. */
void test_a_child_leaves_its_parents_groups_alone(void)
{
	int pid, status;

	attach(&b);
	send_to_group(&a, 10);
	take(&b, &a, 10);
	pid = fork_child();
	if (!pid) {
		vb_detach_mcast(b.qp, &group, 0);
		_exit(0);
	}
	TEST_ASSERT_EQUAL_INT(pid, waitpid(pid, &status, 0));
	TEST_ASSERT_EQUAL_INT(0, status);
	TEST_ASSERT_EQUAL_UINT(1, joined_in_kernel());
	send_to_group(&a, 20);
	take(&b, &a, 20);
	expect_nothing(&b, &a);
}

/* A child that does nothing keeps no membership of its parent alive. */
void test_a_parent_leaves_while_a_child_lives(void)
{
	int lives[2], ends[2], pid, status;
	char byte = 0;

	attach(&b);
	TEST_ASSERT_EQUAL_INT(0, pipe(lives) | pipe(ends));
	pid = fork_child();
	if (!pid)
		_exit(write(lives[1], &byte, 1) != 1 || read(ends[0], &byte, 1) != 1);
	TEST_ASSERT_EQUAL_INT(1, read(lives[0], &byte, 1));
	detach(&b);
	TEST_ASSERT_EQUAL_UINT(0, joined_in_kernel());
	TEST_ASSERT_EQUAL_INT(1, write(ends[1], &byte, 1));
	TEST_ASSERT_EQUAL_INT(pid, waitpid(pid, &status, 0));
	TEST_ASSERT_EQUAL_INT(0, status);
	for (unsigned int i = 0; i < 2; i++) {
		close(lives[i]);
		close(ends[i]);
	}
}

/* --- two network namespaces, joined by a veth cable --- */

enum { SKIPPED = 77 };

static bool run(const char *command)
{
	return system(command) == 0; /* NOLINT(cert-env33-c): ip is the only way without netlink */
}

static bool raise_end(const char *name, unsigned int number)
{
	char command[300];

	snprintf(command, sizeof(command),
		 "ip link set lo up && ip address add 10.77.0.%u/24 dev %s && ip address add "
		 "fd77::%u/64 dev %s nodad && ip address add fd77::1%u/64 dev %s nodad && ip link "
		 "set %s up",
		 number, name, number, name, number, name, name);
	return run(command);
}

/* Makes a cable whose ends are both in this namespace. */
static bool raise_pair(const char *one, const char *other)
{
	char command[256];

	snprintf(command, sizeof(command),
		 "ip link add %s type veth peer name %s && ip link set %s up && ip link set %s up",
		 one, other, one, other);
	return run(command);
}

/* Sends to the group until the other namespace says that it has the message: the cable takes a moment to
 * come up. */
static void send_until_heard(int heard)
{
	struct pollfd ready = {.fd = heard, .events = POLLIN};

	for (unsigned int i = 0; i < 2000 && poll(&ready, 1, 10) == 0; i++)
		send_to_group(&a, 77);
	TEST_ASSERT_TRUE_MESSAGE(ready.revents & POLLIN, "no answer for 20 s");
}

static void meet(int out, int in)
{
	char byte = 0;

	TEST_ASSERT_EQUAL_INT(1, write(out, &byte, 1));
	TEST_ASSERT_EQUAL_INT(1, read(in, &byte, 1));
}

/* A link-local group is one of an interface: RFC 4291, 2.7. */
static const char *const cable_groups[] = {"239.77.0.1", "ff0e::4:4791", "ff02::4:4791"};

/* The child: in a namespace of its own, it has vb1. */
static void be_member(int in, int out)
{
	static const char *const addresses[] = {"10.77.0.2", "fd77::2", "fd77::12"};
	static struct end third, elsewhere[2]; /* in the group at another interface */
	struct end *ends[] = {&b, &c, &third};

	TEST_ASSERT_EQUAL_INT(0, unshare(CLONE_NEWNET));
	/* Not at the first interface that carries groups. */
	TEST_ASSERT_TRUE(raise_pair("vc0", "vc1"));
	meet(out, in);
	TEST_ASSERT_TRUE(raise_end("vb1", 2));
	for (unsigned int i = 0; i < 3; i++) {
		const uint8_t *grh;
		struct ibv_wc wc;

		group = udp_gid(cable_groups[i]);
		if (i < 2)
			open_end(&elsewhere[i], open_world(1, i ? "::1" : ""), 0);
		attach(&elsewhere[i < 2 ? i : 1]);
		open_end(ends[i], open_world(1, addresses[i]), 0);
		attach(ends[i]);
		meet(out, in);
		wc = complete(ends[i], ends[i]->cq);
		TEST_ASSERT_EQUAL_UINT(GRH_BYTES + 77, wc.byte_len);
		grh = ends[i]->buffer + wc.wr_id * SLOT_BYTES;
		TEST_ASSERT_EQUAL_UINT8(64, grh[i ? 7 : 20 + 8]);
		for (unsigned int j = 0; j < 32; j++)
			TEST_ASSERT_EQUAL_INT(0, vb_poll_cq(elsewhere[i < 2 ? i : 1].cq, 1, &wc));
		meet(out, in);
	}
}

static void be_sender(int child, int in, int out)
{
	static const char *const addresses[] = {"10.77.0.1", "fd77::1", "fd77::11"};
	char command[64], byte;

	TEST_ASSERT_EQUAL_INT(1, read(in, &byte, 1));
	/* Not by the first interface that carries groups. */
	TEST_ASSERT_TRUE(raise_pair("va0", "va1"));
	snprintf(command, sizeof(command), "ip link add vb0 type veth peer name vb1 netns %d",
		 child);
	TEST_ASSERT_TRUE(run(command));
	TEST_ASSERT_TRUE(raise_end("vb0", 1));
	TEST_ASSERT_EQUAL_INT(1, write(out, &byte, 1));
	for (unsigned int i = 0; i < 3; i++) {
		group = udp_gid(cable_groups[i]);
		open_end(&a, open_world(1, addresses[i]), 0);
		meet(out, in);
		send_until_heard(in);
		meet(out, in);
		close_all();
	}
}

/* Becomes root of a user namespace with a network namespace of its own. */
static bool enter_namespace(void)
{
	char map[32];
	int fd;

	snprintf(map, sizeof(map), "0 %u 1", geteuid());
	if (unshare(CLONE_NEWUSER | CLONE_NEWNET))
		return false;
	fd = open("/proc/self/uid_map", O_WRONLY | O_CLOEXEC);
	return fd >= 0 && write(fd, map, strlen(map)) > 0 && close(fd) == 0;
}

static int in_namespaces(void)
{
	int down[2], up[2], pid, status;

	if (!enter_namespace())
		return SKIPPED;
	if (!run("ip link add vb0 type veth peer name vb1 && ip link delete vb0"))
		return SKIPPED;
	TEST_ASSERT_EQUAL_INT(0, pipe(down) | pipe(up));
	pid = fork_child();
	close(pid ? down[0] : down[1]);
	close(pid ? up[1] : up[0]);
	if (!pid) {
		be_member(down[0], up[1]);
		_exit(0);
	}
	be_sender(pid, up[0], down[1]);
	TEST_ASSERT_EQUAL_INT(pid, waitpid(pid, &status, 0));
	return status != 0;
}

void test_namespaces_that_a_cable_joins(void)
{
	int pid, status;

	close_all();
	pid = fork_child();
	if (!pid)
		_exit(in_namespaces());
	TEST_ASSERT_EQUAL_INT(pid, waitpid(pid, &status, 0));
	TEST_ASSERT_TRUE(WIFEXITED(status));
	if (WEXITSTATUS(status) == SKIPPED)
		TEST_IGNORE_MESSAGE("this user may not make network namespaces, or the program ip "
				    "is missing");
	TEST_ASSERT_EQUAL_INT(0, WEXITSTATUS(status));
}
