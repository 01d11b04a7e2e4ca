/* SPDX-License-Identifier: MIT */
/* Connections on simulated devices, on the virtual clock: the calls of librdmacm in one process. */
#include "backends/sim/backend.h"
#include "backends/sim/cm/private.h"
#include "unity.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <verbena/cm_backend.h>
#include <verbena/sim.h>

#define CM   (vb_backend_sim.cm)
#define PORT 7471

static struct rdma_event_channel *channel;

/* --- addresses --- */

static struct sockaddr *ipv4(const char *text, uint16_t port)
{
	static struct sockaddr_in slots[8];
	static unsigned int used;
	struct sockaddr_in *address = &slots[used++ % 8];

	*address = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port)};
	TEST_ASSERT_EQUAL_INT(1, inet_pton(AF_INET, text, &address->sin_addr));
	return (struct sockaddr *)address;
}

static struct sockaddr *ipv6(const char *text, uint16_t port)
{
	static struct sockaddr_in6 slots[8];
	static unsigned int used;
	struct sockaddr_in6 *address = &slots[used++ % 8];

	*address = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons(port)};
	TEST_ASSERT_EQUAL_INT(1, inet_pton(AF_INET6, text, &address->sin6_addr));
	return (struct sockaddr *)address;
}

/* --- events --- */

static struct rdma_cm_event *next(enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event = NULL;

	TEST_ASSERT_EQUAL_INT(0, CM->get_cm_event(channel, &event));
	TEST_ASSERT_EQUAL_INT(type, event->event);
	return event;
}

static void expect(struct rdma_cm_id *id, enum rdma_cm_event_type type, int status)
{
	struct rdma_cm_event *event = next(type);

	TEST_ASSERT_EQUAL_PTR(id, event->id);
	TEST_ASSERT_EQUAL_INT(status, event->status);
	TEST_ASSERT_EQUAL_INT(0, CM->ack_cm_event(event));
}

/* --- connections --- */

struct side {
	struct rdma_cm_id *id;
	struct ibv_mr *mr;
	uint8_t buffer[64];
};

static struct side server, client;
static struct rdma_cm_id *listener;

static struct rdma_cm_id *new_id(enum rdma_port_space ps)
{
	struct rdma_cm_id *id = NULL;

	TEST_ASSERT_EQUAL_INT(0, CM->create_id(channel, &id, &id, ps));
	return id;
}

static void make_qp(struct side *side)
{
	struct ibv_qp_init_attr attr = {
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = side->id->qp_type,
	};

	TEST_ASSERT_EQUAL_INT(0, CM->create_qp(side->id, NULL, &attr));
	TEST_ASSERT_NOT_NULL(side->id->send_cq);
	side->mr = vb_backend_sim.reg_mr(side->id->pd, side->buffer, sizeof(side->buffer),
					 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
						 IBV_ACCESS_REMOTE_READ);
	TEST_ASSERT_NOT_NULL(side->mr);
}

static void end_side(struct side *side)
{
	if (!side->id)
		return;
	if (side->mr)
		vb_backend_sim.dereg_mr(side->mr);
	if (side->id->qp)
		CM->destroy_qp(side->id);
	TEST_ASSERT_EQUAL_INT(0, CM->destroy_id(side->id));
	*side = (struct side){.id = NULL};
}

static void listen_at(struct sockaddr *address, enum rdma_port_space ps)
{
	listener = new_id(ps);
	TEST_ASSERT_EQUAL_INT(0, CM->bind_addr(listener, address));
	TEST_ASSERT_EQUAL_INT(0, CM->listen(listener, 0));
}

static void resolve(struct sockaddr *address, enum rdma_port_space ps)
{
	client.id = new_id(ps);
	TEST_ASSERT_EQUAL_INT(0, CM->resolve_addr(client.id, NULL, address, 1000));
	expect(client.id, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	TEST_ASSERT_NOT_NULL(client.id->verbs);
	TEST_ASSERT_EQUAL_INT(0, CM->resolve_route(client.id, 1000));
	expect(client.id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	TEST_ASSERT_EQUAL_INT(1, client.id->route.num_paths);
}

/* The server listens, and the client has a route to the server. */
static void listen_and_resolve(void)
{
	listen_at(ipv4("0.0.0.0", PORT), RDMA_PS_TCP);
	resolve(ipv4("10.0.0.2", PORT), RDMA_PS_TCP);
}

/* Takes the request for the server. */
static struct rdma_cm_event *take_request(void)
{
	struct rdma_cm_event *event = next(RDMA_CM_EVENT_CONNECT_REQUEST);

	TEST_ASSERT_EQUAL_PTR(listener, event->listen_id);
	TEST_ASSERT_EQUAL_INT(0, event->status);
	server.id = event->id;
	return event;
}

static void connect_both(void)
{
	struct rdma_conn_param param = {.private_data = "hello",
					.private_data_len = 6,
					.responder_resources = 3,
					.initiator_depth = 5,
					.retry_count = 6,
					.rnr_retry_count = 5};
	struct rdma_cm_event *event;

	make_qp(&client);
	TEST_ASSERT_EQUAL_INT(0, CM->connect(client.id, &param));
	event = take_request();
	TEST_ASSERT_EQUAL_INT(56, event->param.conn.private_data_len);
	TEST_ASSERT_EQUAL_STRING("hello", event->param.conn.private_data);
	TEST_ASSERT_EQUAL_INT(5, event->param.conn.responder_resources);
	TEST_ASSERT_EQUAL_INT(3, event->param.conn.initiator_depth);
	TEST_ASSERT_EQUAL_INT(6, event->param.conn.retry_count);
	TEST_ASSERT_EQUAL_INT(5, event->param.conn.rnr_retry_count);
	TEST_ASSERT_EQUAL_HEX(client.id->qp->qp_num, event->param.conn.qp_num);
	CM->ack_cm_event(event);
	make_qp(&server);
	param = (struct rdma_conn_param){.private_data = "welcome",
					 .private_data_len = 8,
					 .responder_resources = 2,
					 .initiator_depth = 1,
					 .rnr_retry_count = 4};
	TEST_ASSERT_EQUAL_INT(0, CM->accept(server.id, &param));
	event = next(RDMA_CM_EVENT_ESTABLISHED);
	TEST_ASSERT_EQUAL_PTR(client.id, event->id);
	TEST_ASSERT_EQUAL_INT(196, event->param.conn.private_data_len);
	TEST_ASSERT_EQUAL_STRING("welcome", event->param.conn.private_data);
	TEST_ASSERT_EQUAL_INT(1, event->param.conn.responder_resources);
	TEST_ASSERT_EQUAL_INT(2, event->param.conn.initiator_depth);
	CM->ack_cm_event(event);
	expect(server.id, RDMA_CM_EVENT_ESTABLISHED, 0);
}

static struct ibv_wc wait_wc(struct ibv_cq *cq)
{
	struct ibv_wc wc = {.status = IBV_WC_GENERAL_ERR};
	int n = 0;

	for (int i = 0; i < 1000 && !n; i++)
		n = ibv_poll_cq(cq, 1, &wc);
	TEST_ASSERT_EQUAL_INT(1, n);
	return wc;
}

/* Posts a receive, and a send from the buffer. */
static void post_one(struct side *from, struct side *to)
{
	struct ibv_sge sge = {(uintptr_t)to->buffer, sizeof(to->buffer), to->mr->lkey};
	struct ibv_recv_wr receive = {.sg_list = &sge, .num_sge = 1}, *bad_receive;
	struct ibv_send_wr send = {.sg_list = &sge,
				   .num_sge = 1,
				   .opcode = IBV_WR_SEND,
				   .send_flags = IBV_SEND_SIGNALED},
			   *bad_send;

	TEST_ASSERT_EQUAL_INT(0, ibv_post_recv(to->id->qp, &receive, &bad_receive));
	sge = (struct ibv_sge){(uintptr_t)from->buffer, sizeof(from->buffer), from->mr->lkey};
	TEST_ASSERT_EQUAL_INT(0, ibv_post_send(from->id->qp, &send, &bad_send));
}

static void send_one(struct side *from, struct side *to, const char *text)
{
	snprintf((char *)from->buffer, sizeof(from->buffer), "%s", text);
	post_one(from, to);
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, wait_wc(from->id->send_cq).status);
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, wait_wc(to->id->recv_cq).status);
	TEST_ASSERT_EQUAL_STRING(text, (const char *)to->buffer);
}

static void disconnect_both(void)
{
	TEST_ASSERT_EQUAL_INT(0, CM->disconnect(client.id));
	TEST_ASSERT_EQUAL_INT(IBV_QPS_ERR, client.id->qp->state);
	expect(server.id, RDMA_CM_EVENT_DISCONNECTED, 0);
	TEST_ASSERT_EQUAL_INT(0, CM->disconnect(server.id));
	expect(client.id, RDMA_CM_EVENT_DISCONNECTED, 0);
}

void setUp(void)
{
	TEST_ASSERT_EQUAL_INT(0, vb_sim_configure(NULL));
	channel = CM->create_event_channel();
	TEST_ASSERT_NOT_NULL(channel);
}

void tearDown(void)
{
	end_side(&client);
	end_side(&server);
	if (listener)
		TEST_ASSERT_EQUAL_INT(0, CM->destroy_id(listener));
	listener = NULL;
	if (channel)
		CM->destroy_event_channel(channel);
	channel = NULL;
	/* Nothing is left that keeps the world in use. */
	TEST_ASSERT_EQUAL_INT(0, vb_sim_configure(NULL));
}

/* --- tests --- */

static void exchange(struct sockaddr *at, struct sockaddr *to)
{
	listen_at(at, RDMA_PS_TCP);
	resolve(to, RDMA_PS_TCP);
	connect_both();
	send_one(&client, &server, "ping");
	send_one(&server, &client, "pong");
	disconnect_both();
}

void test_connection_by_gid(void)
{
	exchange(ipv4("0.0.0.0", PORT), ipv4("10.0.0.2", PORT));
}

void test_connection_by_loopback(void)
{
	exchange(ipv4("127.0.0.1", PORT), ipv4("127.0.0.1", PORT));
}

void test_connection_by_ipv6(void)
{
	exchange(ipv6("::", PORT), ipv6("fd00::1", PORT));
}

void test_connection_by_ipv6_loopback(void)
{
	exchange(ipv6("::", PORT), ipv6("::1", PORT));
}

void test_timewait_ends(void)
{
	exchange(ipv4("0.0.0.0", PORT), ipv4("10.0.0.1", PORT));
	expect(server.id, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	expect(client.id, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
}

static unsigned int qp_timeout(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init_attr;
	struct ibv_qp_attr attr;

	TEST_ASSERT_EQUAL_INT(0, vb_backend_sim.query_qp(qp, &attr, IBV_QP_TIMEOUT, &init_attr));
	return attr.timeout;
}

/* The REP names the delay of its sender's ACKs: 15 with "spec", 16 with "mlx5". The packets' life time is 16:
 * Linux drivers/infiniband/core/cm.c, cm_format_rep() and cm_ack_timeout(). */
void test_the_ack_timeout_covers_the_delay_of_the_peer(void)
{
	const struct vb_sim_config config = {
		.device_count = 2,
		.devices = {{.name = "sim0"}, {.name = "sim1", .profile = "mlx5"}}};

	CM->destroy_event_channel(channel);
	TEST_ASSERT_EQUAL_INT(0, vb_sim_configure(&config));
	channel = CM->create_event_channel();
	listen_at(ipv4("10.0.0.2", PORT), RDMA_PS_TCP);
	client.id = new_id(RDMA_PS_TCP);
	TEST_ASSERT_EQUAL_INT(
		0, CM->resolve_addr(client.id, ipv4("10.0.0.1", 0), ipv4("10.0.0.2", PORT), 1000));
	expect(client.id, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	TEST_ASSERT_EQUAL_INT(0, CM->resolve_route(client.id, 1000));
	expect(client.id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	connect_both();
	TEST_ASSERT_EQUAL_UINT(18, qp_timeout(client.id->qp));
	TEST_ASSERT_EQUAL_UINT(17, qp_timeout(server.id->qp));
	disconnect_both();
}

/* --- the end of a connection, and completions --- */

#define MS	    UINT64_C(1000000)
#define PATIENCE_MS 50

static bool has_event(void)
{
	struct pollfd look = {.fd = channel->fd, .events = POLLIN};

	return poll(&look, 1, 0) == 1;
}

/* Sends a message whose completions no side polls. */
static void leave_a_completion(struct side *from, struct side *to)
{
	post_one(from, to);
	vb_sim_run(NULL, MS);
}

/* As on the real clock. */
static void connect_patiently(void)
{
	listen_and_resolve();
	connect_both();
	cm_id_of(client.id)->cm->ending_patience_ns = PATIENCE_MS * MS;
}

/* The client ends the connection, and the server leaves a completion in its CQ. */
static void end_behind_a_completion(void)
{
	connect_patiently();
	leave_a_completion(&client, &server);
	TEST_ASSERT_EQUAL_INT(0, CM->disconnect(client.id));
	vb_sim_run(NULL, (PATIENCE_MS - 1) * MS);
}

/* The completion of a receive, then that of a send. */
void test_the_end_comes_behind_completions(void)
{
	for (unsigned int i = 0; i < 2; i++) {
		struct side *sender = i ? &server : &client;

		connect_patiently();
		leave_a_completion(sender, i ? &client : &server);
		TEST_ASSERT_EQUAL_INT(0, CM->disconnect(client.id));
		vb_sim_run(NULL, PATIENCE_MS / 2 * MS);
		TEST_ASSERT_FALSE(has_event());
		wait_wc(i ? server.id->send_cq : server.id->recv_cq);
		vb_sim_run(NULL, MS);
		TEST_ASSERT_TRUE(has_event());
		expect(server.id, RDMA_CM_EVENT_DISCONNECTED, 0);
		TEST_ASSERT_EQUAL_INT(0, CM->disconnect(server.id));
		expect(client.id, RDMA_CM_EVENT_DISCONNECTED, 0);
		tearDown();
		setUp();
	}
}

void test_the_end_comes_at_once_without_completions(void)
{
	connect_patiently();
	send_one(&client, &server, "ping");
	leave_a_completion(&client, &server);
	wait_wc(server.id->recv_cq);
	TEST_ASSERT_EQUAL_INT(0, CM->disconnect(client.id));
	vb_sim_run(NULL, 0);
	TEST_ASSERT_TRUE(has_event());
	expect(server.id, RDMA_CM_EVENT_DISCONNECTED, 0);
}

void test_the_end_does_not_wait_for_ever(void)
{
	end_behind_a_completion();
	TEST_ASSERT_FALSE(has_event());
	vb_sim_run(NULL, 2 * MS);
	TEST_ASSERT_TRUE(has_event());
	expect(server.id, RDMA_CM_EVENT_DISCONNECTED, 0);
	vb_sim_run(NULL, 2 * PATIENCE_MS * MS);
	TEST_ASSERT_FALSE(has_event());
}

void test_the_end_does_not_wait_for_a_program_that_ends_too(void)
{
	end_behind_a_completion();
	TEST_ASSERT_EQUAL_INT(0, CM->disconnect(server.id));
	expect(server.id, RDMA_CM_EVENT_DISCONNECTED, 0);
	vb_sim_run(NULL, 0);
	/* The client has not polled either, and has begun the end. */
	TEST_ASSERT_TRUE(has_event());
	expect(client.id, RDMA_CM_EVENT_DISCONNECTED, 0);
	vb_sim_run(NULL, 2 * PATIENCE_MS * MS);
	TEST_ASSERT_FALSE(has_event());
}

void test_an_identifier_ends_before_its_end_is_heard(void)
{
	end_behind_a_completion();
	end_side(&server);
	vb_sim_run(NULL, 2 * MS);
	expect(client.id, RDMA_CM_EVENT_DISCONNECTED, 0);
	vb_sim_run(NULL, 2 * PATIENCE_MS * MS);
	TEST_ASSERT_FALSE(has_event());
}

/* Of two identifiers whose ends wait, the one that has begun to wait first ends itself. */
void test_two_identifiers_wait_for_their_ends(void)
{
	struct side first_client, first_server;

	connect_patiently();
	leave_a_completion(&client, &server);
	first_client = client;
	first_server = server;
	client = server = (struct side){.id = NULL};
	resolve(ipv4("10.0.0.2", PORT), RDMA_PS_TCP);
	connect_both();
	leave_a_completion(&client, &server);
	TEST_ASSERT_EQUAL_INT(0, CM->disconnect(first_client.id));
	vb_sim_run(NULL, MS);
	TEST_ASSERT_EQUAL_INT(0, CM->disconnect(client.id));
	vb_sim_run(NULL, MS);
	TEST_ASSERT_FALSE(has_event());

	TEST_ASSERT_EQUAL_INT(0, CM->disconnect(first_server.id));
	expect(first_server.id, RDMA_CM_EVENT_DISCONNECTED, 0);
	vb_sim_run(NULL, 0);
	expect(first_client.id, RDMA_CM_EVENT_DISCONNECTED, 0);
	TEST_ASSERT_FALSE(has_event());
	vb_sim_run(NULL, 2 * PATIENCE_MS * MS);
	expect(server.id, RDMA_CM_EVENT_DISCONNECTED, 0);
	TEST_ASSERT_FALSE(has_event());
	end_side(&first_server);
	end_side(&first_client);
}

void test_on_the_virtual_clock_the_end_does_not_wait(void)
{
	listen_and_resolve();
	connect_both();
	leave_a_completion(&client, &server);
	TEST_ASSERT_EQUAL_INT(0, CM->disconnect(client.id));
	vb_sim_run(NULL, 0);
	TEST_ASSERT_TRUE(has_event());
	expect(server.id, RDMA_CM_EVENT_DISCONNECTED, 0);
}

/* --- requests that come to nothing --- */

void test_rejection_has_reason_and_private_data(void)
{
	struct rdma_conn_param param = {.retry_count = 7};
	struct rdma_cm_event *event;

	listen_and_resolve();
	make_qp(&client);
	TEST_ASSERT_EQUAL_INT(0, CM->connect(client.id, &param));
	CM->ack_cm_event(take_request());
	TEST_ASSERT_EQUAL_INT(0, CM->reject(server.id, "not today", 10));
	event = next(RDMA_CM_EVENT_REJECTED);
	TEST_ASSERT_EQUAL_PTR(client.id, event->id);
	TEST_ASSERT_EQUAL_INT(28, event->status);
	TEST_ASSERT_EQUAL_INT(148, event->param.conn.private_data_len);
	TEST_ASSERT_EQUAL_STRING("not today", event->param.conn.private_data);
	TEST_ASSERT_EQUAL_INT(IBV_QPS_ERR, client.id->qp->state);
	CM->ack_cm_event(event);
}

/* The counts have three bits in a REQ: Linux drivers/infiniband/core/cma.c, cma_connect_ib. */
void test_retry_counts_that_are_too_large(void)
{
	struct rdma_conn_param param = {.retry_count = 8, .rnr_retry_count = 255};
	struct rdma_cm_event *event;

	listen_and_resolve();
	make_qp(&client);
	TEST_ASSERT_EQUAL_INT(0, CM->connect(client.id, &param));
	event = take_request();
	TEST_ASSERT_EQUAL_INT(7, event->param.conn.retry_count);
	TEST_ASSERT_EQUAL_INT(7, event->param.conn.rnr_retry_count);
	CM->ack_cm_event(event);
}

void test_nobody_listens(void)
{
	struct rdma_conn_param param = {.retry_count = 7};

	resolve(ipv4("10.0.0.2", PORT), RDMA_PS_TCP);
	make_qp(&client);
	TEST_ASSERT_EQUAL_INT(0, CM->connect(client.id, &param));
	expect(client.id, RDMA_CM_EVENT_REJECTED, 8);
}

void test_nobody_answers(void)
{
	struct rdma_conn_param param = {.retry_count = 7};

	listen_and_resolve();
	make_qp(&client);
	TEST_ASSERT_EQUAL_INT(0, vb_sim_port_state(client.id->verbs, 1, false));
	TEST_ASSERT_EQUAL_INT(0, CM->connect(client.id, &param));
	expect(client.id, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
}

/* Without an MRA, a REQ is given up after 16 times 6.4 s. Both sides get 69 s for each repetition instead. */
void test_both_programs_take_their_time(void)
{
	struct rdma_conn_param param = {.retry_count = 7};

	listen_and_resolve();
	make_qp(&client);
	TEST_ASSERT_EQUAL_INT(0, CM->connect(client.id, &param));
	CM->ack_cm_event(take_request());
	make_qp(&server);
	vb_sim_run(NULL, UINT64_C(200000000000));
	TEST_ASSERT_EQUAL_INT(0, CM->accept(server.id, &param));
	/* The program takes the event of the REP late; the RTU follows. */
	vb_sim_run(NULL, UINT64_C(200000000000));
	expect(client.id, RDMA_CM_EVENT_ESTABLISHED, 0);
	expect(server.id, RDMA_CM_EVENT_ESTABLISHED, 0);
	send_one(&client, &server, "late");
}

/* rdma-core librdmacm/cma.c: the answer has the vendor of the request. */
void test_ece_of_request_and_answer(void)
{
	struct ibv_ece ece = {.vendor_id = 0x15b3, .options = 0x1234};
	struct rdma_conn_param param = {.qp_num = 0x100, .retry_count = 7};

	listen_and_resolve();
	TEST_ASSERT_EQUAL_INT(0, CM->set_local_ece(client.id, &ece));
	TEST_ASSERT_EQUAL_INT(0, CM->connect(client.id, &param));
	CM->ack_cm_event(take_request());
	ece = (struct ibv_ece){.vendor_id = 1};
	TEST_ASSERT_EQUAL_INT(0, CM->get_remote_ece(server.id, &ece));
	TEST_ASSERT_EQUAL_HEX(0x15b3, ece.vendor_id);
	TEST_ASSERT_EQUAL_HEX(0x1234, ece.options);
	ece = (struct ibv_ece){.vendor_id = 0x9999, .options = 0x4321};
	TEST_ASSERT_EQUAL_INT(0, CM->set_local_ece(server.id, &ece));
	param.qp_num = 0x200;
	TEST_ASSERT_EQUAL_INT(0, CM->accept(server.id, &param));
	expect(client.id, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
	TEST_ASSERT_EQUAL_INT(0, CM->get_remote_ece(client.id, &ece));
	TEST_ASSERT_EQUAL_HEX(0x15b3, ece.vendor_id);
	TEST_ASSERT_EQUAL_HEX(0x4321, ece.options);
}

/* A listener for IPv4 takes no request of IPv6, unless it says so. */
void test_listener_of_one_family(void)
{
	struct rdma_conn_param param = {.retry_count = 7};

	listen_at(ipv4("0.0.0.0", PORT), RDMA_PS_TCP);
	resolve(ipv6("fd00::2", PORT), RDMA_PS_TCP);
	make_qp(&client);
	TEST_ASSERT_EQUAL_INT(0, CM->connect(client.id, &param));
	expect(client.id, RDMA_CM_EVENT_REJECTED, 28);
}

void test_listener_of_both_families(void)
{
	int no = 0;

	listener = new_id(RDMA_PS_TCP);
	TEST_ASSERT_EQUAL_INT(0, CM->set_option(listener, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY,
						&no, sizeof(no)));
	TEST_ASSERT_EQUAL_INT(0, CM->bind_addr(listener, ipv6("::", PORT)));
	TEST_ASSERT_EQUAL_INT(0, CM->listen(listener, 0));
	resolve(ipv4("10.0.0.2", PORT), RDMA_PS_TCP);
	connect_both();
	TEST_ASSERT_EQUAL_INT(AF_INET, server.id->route.addr.src_addr.sa_family);
	disconnect_both();
}

/* --- addresses --- */

void test_addresses_of_a_connection(void)
{
	char text[INET_ADDRSTRLEN];
	const struct rdma_addr *addr;

	listen_and_resolve();
	connect_both();
	addr = &server.id->route.addr;
	inet_ntop(AF_INET, &addr->src_sin.sin_addr, text, sizeof(text));
	TEST_ASSERT_EQUAL_STRING("10.0.0.2", text);
	TEST_ASSERT_EQUAL_INT(PORT, ntohs(addr->src_sin.sin_port));
	inet_ntop(AF_INET, &addr->dst_sin.sin_addr, text, sizeof(text));
	TEST_ASSERT_EQUAL_STRING("10.0.0.2", text);
	TEST_ASSERT_EQUAL_INT(client.id->route.addr.src_sin.sin_port, addr->dst_sin.sin_port);
	TEST_ASSERT_TRUE(ntohs(addr->dst_sin.sin_port) >= 32768);
	TEST_ASSERT_EQUAL_STRING("sim1", server.id->verbs->device->name);
	TEST_ASSERT_EQUAL_INT(1, server.id->port_num);
	TEST_ASSERT_EQUAL_INT(
		0, memcmp(&addr->addr.ibaddr.sgid, &addr->addr.ibaddr.dgid, sizeof(union ibv_gid)));
	disconnect_both();
}

/* A source address chooses the device: the connection goes from one device to the other. */
void test_source_address_chooses_the_device(void)
{
	listen_at(ipv4("10.0.0.2", PORT), RDMA_PS_TCP);
	TEST_ASSERT_EQUAL_STRING("sim1", listener->verbs->device->name);
	client.id = new_id(RDMA_PS_TCP);
	TEST_ASSERT_EQUAL_INT(
		0, CM->resolve_addr(client.id, ipv4("10.0.0.1", 0), ipv4("10.0.0.2", PORT), 1000));
	expect(client.id, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	TEST_ASSERT_EQUAL_STRING("sim0", client.id->verbs->device->name);
	TEST_ASSERT_EQUAL_INT(0, CM->resolve_route(client.id, 1000));
	expect(client.id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	connect_both();
	TEST_ASSERT_EQUAL_STRING("sim1", server.id->verbs->device->name);
	send_one(&client, &server, "across");
	disconnect_both();
}

void test_each_loopback_address_is_the_machines(void)
{
	client.id = new_id(RDMA_PS_TCP);
	TEST_ASSERT_EQUAL_INT(0, CM->bind_addr(client.id, ipv4("127.9.8.7", PORT)));
	TEST_ASSERT_NOT_NULL(client.id->verbs);
}

void test_ports_are_taken_once(void)
{
	struct rdma_cm_id *second = new_id(RDMA_PS_TCP);

	listen_at(ipv4("0.0.0.0", PORT), RDMA_PS_TCP);
	TEST_ASSERT_EQUAL_INT(-1, CM->bind_addr(second, ipv4("0.0.0.0", PORT)));
	TEST_ASSERT_EQUAL_INT(EADDRNOTAVAIL, errno);
	/* Another port space has ports of its own. */
	CM->destroy_id(second);
	second = new_id(RDMA_PS_UDP);
	TEST_ASSERT_EQUAL_INT(0, CM->bind_addr(second, ipv4("0.0.0.0", PORT)));
	CM->destroy_id(second);
	/* The port is free with its identifier. */
	CM->destroy_id(listener);
	listen_at(ipv4("0.0.0.0", PORT), RDMA_PS_TCP);
}

/* --- datagrams --- */

static void expect_datagram(const struct rdma_cm_event *event)
{
	const struct rdma_ud_param *param = &event->param.ud;
	struct ibv_ah_attr attr = param->ah_attr;
	struct ibv_ah *ah = vb_backend_sim.create_ah(client.id->pd, &attr);
	struct ibv_sge sge = {(uintptr_t)server.buffer, sizeof(server.buffer), server.mr->lkey};
	struct ibv_recv_wr receive = {.sg_list = &sge, .num_sge = 1}, *bad_receive;
	struct ibv_send_wr send = {.sg_list = &sge,
				   .num_sge = 1,
				   .opcode = IBV_WR_SEND,
				   .send_flags = IBV_SEND_SIGNALED},
			   *bad_send;

	TEST_ASSERT_NOT_NULL(ah);
	TEST_ASSERT_EQUAL_INT(0, ibv_post_recv(server.id->qp, &receive, &bad_receive));
	sge = (struct ibv_sge){(uintptr_t)client.buffer, 8, client.mr->lkey};
	send.wr.ud.ah = ah;
	send.wr.ud.remote_qpn = param->qp_num;
	send.wr.ud.remote_qkey = param->qkey;
	memcpy(client.buffer, "datagram", 8);
	TEST_ASSERT_EQUAL_INT(0, ibv_post_send(client.id->qp, &send, &bad_send));
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, wait_wc(client.id->send_cq).status);
	TEST_ASSERT_EQUAL_INT(48, wait_wc(server.id->recv_cq).byte_len);
	TEST_ASSERT_EQUAL_INT(0, memcmp(server.buffer + 40, "datagram", 8));
	vb_backend_sim.destroy_ah(ah);
}

void test_datagram_service(void)
{
	struct rdma_conn_param param = {.private_data = "who?", .private_data_len = 5};
	struct rdma_cm_event *event;

	listen_at(ipv4("0.0.0.0", PORT), RDMA_PS_UDP);
	resolve(ipv4("10.0.0.2", PORT), RDMA_PS_UDP);
	make_qp(&client);
	TEST_ASSERT_EQUAL_INT(IBV_QPS_RTS, client.id->qp->state);
	TEST_ASSERT_EQUAL_INT(0, CM->connect(client.id, &param));
	event = take_request();
	TEST_ASSERT_EQUAL_INT(180, event->param.ud.private_data_len);
	TEST_ASSERT_EQUAL_STRING("who?", event->param.ud.private_data);
	CM->ack_cm_event(event);
	make_qp(&server);
	param = (struct rdma_conn_param){.private_data = "me", .private_data_len = 3};
	TEST_ASSERT_EQUAL_INT(0, CM->accept(server.id, &param));
	event = next(RDMA_CM_EVENT_ESTABLISHED);
	TEST_ASSERT_EQUAL_PTR(client.id, event->id);
	TEST_ASSERT_EQUAL_INT(136, event->param.ud.private_data_len);
	TEST_ASSERT_EQUAL_STRING("me", event->param.ud.private_data);
	TEST_ASSERT_EQUAL_HEX(RDMA_UDP_QKEY, event->param.ud.qkey);
	TEST_ASSERT_EQUAL_HEX(server.id->qp->qp_num, event->param.ud.qp_num);
	expect_datagram(event);
	CM->ack_cm_event(event);
}

void test_datagram_service_rejects(void)
{
	struct rdma_conn_param param = {.qp_num = 0};

	listen_at(ipv4("0.0.0.0", PORT), RDMA_PS_UDP);
	resolve(ipv4("10.0.0.2", PORT), RDMA_PS_UDP);
	make_qp(&client);
	TEST_ASSERT_EQUAL_INT(0, CM->connect(client.id, &param));
	CM->ack_cm_event(take_request());
	TEST_ASSERT_EQUAL_INT(0, CM->reject(server.id, NULL, 0));
	expect(client.id, RDMA_CM_EVENT_UNREACHABLE, 2);
}

/* --- multicast --- */

static struct rdma_cm_event *join(struct side *side, const char *source, const char *group)
{
	struct rdma_cm_event *event;

	side->id = new_id(RDMA_PS_UDP);
	TEST_ASSERT_EQUAL_INT(0, CM->bind_addr(side->id, ipv4(source, 0)));
	make_qp(side);
	TEST_ASSERT_EQUAL_INT(0, CM->join_multicast(side->id, ipv4(group, 0), side));
	event = next(RDMA_CM_EVENT_MULTICAST_JOIN);
	TEST_ASSERT_EQUAL_PTR(side->id, event->id);
	TEST_ASSERT_EQUAL_PTR(side, event->param.ud.private_data);
	TEST_ASSERT_EQUAL_HEX(0xffffff, event->param.ud.qp_num);
	TEST_ASSERT_EQUAL_HEX(RDMA_UDP_QKEY, event->param.ud.qkey);
	return event;
}

void test_multicast(void)
{
	struct rdma_cm_event *event = join(&server, "10.0.0.2", "239.1.2.3");

	CM->ack_cm_event(event);
	event = join(&client, "10.0.0.1", "239.1.2.3");
	expect_datagram(event);
	CM->ack_cm_event(event);
	/* A member's QP cannot be destroyed, one that has left can. */
	TEST_ASSERT_EQUAL_INT(EBUSY, vb_backend_sim.destroy_qp(server.id->qp));
	TEST_ASSERT_EQUAL_INT(0, CM->leave_multicast(server.id, ipv4("239.1.2.3", 0)));
	TEST_ASSERT_EQUAL_INT(0, CM->leave_multicast(client.id, ipv4("239.1.2.3", 0)));
}

void test_the_group_of_an_identifier_has_its_type_of_service(void)
{
	uint8_t tos = 0x68;
	struct rdma_cm_event *event;

	client.id = new_id(RDMA_PS_UDP);
	TEST_ASSERT_EQUAL_INT(0, CM->bind_addr(client.id, ipv4("10.0.0.1", 0)));
	TEST_ASSERT_EQUAL_HEX(htobe16(0xffff), client.id->route.addr.addr.ibaddr.pkey);
	TEST_ASSERT_EQUAL_INT(0, CM->set_option(client.id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos,
						sizeof(tos)));
	TEST_ASSERT_EQUAL_INT(0, CM->join_multicast(client.id, ipv4("239.1.2.3", 0), &tos));
	event = next(RDMA_CM_EVENT_MULTICAST_JOIN);
	TEST_ASSERT_EQUAL_PTR(&tos, event->param.ud.private_data);
	TEST_ASSERT_EQUAL_HEX(0x68, event->param.ud.ah_attr.grh.traffic_class);
	TEST_ASSERT_EQUAL_INT(0, CM->ack_cm_event(event));
}

void test_an_identifier_leaves_a_group_with_the_event_that_waits(void)
{
	struct rdma_cm_event *none;

	client.id = new_id(RDMA_PS_UDP);
	TEST_ASSERT_EQUAL_INT(0, CM->bind_addr(client.id, ipv4("10.0.0.1", 0)));
	TEST_ASSERT_EQUAL_INT(0, CM->join_multicast(client.id, ipv4("239.1.2.3", 0), NULL));
	TEST_ASSERT_EQUAL_INT(0, CM->leave_multicast(client.id, ipv4("239.1.2.3", 0)));
	TEST_ASSERT_EQUAL_INT(0, fcntl(channel->fd, F_SETFL, O_NONBLOCK));
	TEST_ASSERT_EQUAL_INT(-1, CM->get_cm_event(channel, &none));
	TEST_ASSERT_EQUAL_INT(EAGAIN, errno);
}

/* --- events and channels --- */

void test_channel_is_a_descriptor(void)
{
	struct pollfd readable = {.fd = channel->fd, .events = POLLIN};
	struct rdma_cm_event *event;

	TEST_ASSERT_EQUAL_INT(0, poll(&readable, 1, 0));
	TEST_ASSERT_EQUAL_INT(0, fcntl(channel->fd, F_SETFL, O_NONBLOCK));
	TEST_ASSERT_EQUAL_INT(-1, CM->get_cm_event(channel, &event));
	TEST_ASSERT_EQUAL_INT(EAGAIN, errno);
	client.id = new_id(RDMA_PS_TCP);
	TEST_ASSERT_EQUAL_INT(0, CM->resolve_addr(client.id, NULL, ipv4("10.0.0.1", 1), 1000));
	TEST_ASSERT_EQUAL_INT(1, poll(&readable, 1, 0));
	expect(client.id, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	TEST_ASSERT_EQUAL_INT(0, poll(&readable, 1, 0));
}

void test_events_move_with_their_identifier(void)
{
	struct rdma_event_channel *first = channel;
	struct pollfd readable = {.fd = first->fd, .events = POLLIN};

	client.id = new_id(RDMA_PS_TCP);
	server.id = new_id(RDMA_PS_TCP);
	TEST_ASSERT_EQUAL_INT(0, CM->resolve_addr(server.id, NULL, ipv4("10.0.0.1", 1), 1000));
	TEST_ASSERT_EQUAL_INT(0, CM->resolve_addr(client.id, NULL, ipv4("10.0.0.1", 1), 1000));
	channel = CM->create_event_channel();
	TEST_ASSERT_EQUAL_INT(0, CM->migrate_id(client.id, channel));
	TEST_ASSERT_EQUAL_PTR(channel, client.id->channel);
	expect(client.id, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	/* That of the other identifier is where it was. */
	TEST_ASSERT_EQUAL_INT(1, poll(&readable, 1, 0));
	TEST_ASSERT_EQUAL_INT(0, CM->destroy_id(server.id));
	server.id = NULL;
	TEST_ASSERT_EQUAL_INT(0, poll(&readable, 1, 0));
	CM->destroy_event_channel(first);
}

void test_waiting_events_end_with_their_identifier(void)
{
	struct pollfd readable = {.fd = channel->fd, .events = POLLIN};
	struct rdma_conn_param param = {.retry_count = 7};

	listen_and_resolve();
	make_qp(&client);
	TEST_ASSERT_EQUAL_INT(0, CM->connect(client.id, &param));
	TEST_ASSERT_EQUAL_INT(0, vb_sim_run(NULL, 1));
	TEST_ASSERT_EQUAL_INT(1, poll(&readable, 1, 0));
	/* The request is rejected with its listener. */
	TEST_ASSERT_EQUAL_INT(0, CM->destroy_id(listener));
	listener = NULL;
	expect(client.id, RDMA_CM_EVENT_REJECTED, 28);
}

/* No other channel gets the events, even if it is where the old one was. */
void test_identifiers_outlive_their_channel_without_events(void)
{
	struct rdma_cm_event *event;

	listen_and_resolve();
	connect_both();
	CM->destroy_event_channel(channel);
	channel = CM->create_event_channel();
	TEST_ASSERT_EQUAL_INT(0, fcntl(channel->fd, F_SETFL, O_NONBLOCK));
	TEST_ASSERT_EQUAL_INT(0, CM->disconnect(client.id));
	TEST_ASSERT_EQUAL_INT(0, vb_sim_run(NULL, 1000000));
	TEST_ASSERT_EQUAL_INT(-1, CM->get_cm_event(channel, &event));
	TEST_ASSERT_EQUAL_INT(EAGAIN, errno);
	TEST_ASSERT_EQUAL_INT(0, CM->migrate_id(client.id, channel));
	TEST_ASSERT_EQUAL_INT(0, CM->disconnect(server.id));
	expect(client.id, RDMA_CM_EVENT_DISCONNECTED, 0);
}

void test_device_removal(void)
{
	listen_at(ipv4("10.0.0.2", PORT), RDMA_PS_TCP);
	client.id = new_id(RDMA_PS_TCP);
	TEST_ASSERT_EQUAL_INT(0, CM->bind_addr(client.id, ipv4("10.0.0.1", 0)));
	TEST_ASSERT_EQUAL_INT(0, vb_sim_kill_device(listener->verbs));
	expect(listener, RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
}

void test_address_change(void)
{
	union ibv_gid gid = {.raw = {[10] = 0xff, [11] = 0xff, 10, 9, 8, 7}};
	struct rdma_cm_event *none;

	client.id = new_id(RDMA_PS_TCP);
	TEST_ASSERT_EQUAL_INT(0, CM->bind_addr(client.id, ipv4("10.0.0.1", 0)));
	TEST_ASSERT_EQUAL_INT(0, vb_sim_set_gid(client.id->verbs, 1, 2, &gid));
	TEST_ASSERT_EQUAL_INT(0, vb_sim_set_gid(client.id->verbs, 1, 1, &gid));
	expect(client.id, RDMA_CM_EVENT_ADDR_CHANGE, 0);
	/* Once. */
	TEST_ASSERT_EQUAL_INT(0, vb_sim_set_gid(client.id->verbs, 1, 1, &gid));
	TEST_ASSERT_EQUAL_INT(0, fcntl(channel->fd, F_SETFL, O_NONBLOCK));
	TEST_ASSERT_EQUAL_INT(-1, CM->get_cm_event(channel, &none));
}

/* --- a channel that ends while a thread waits --- */

struct waiter {
	struct rdma_event_channel *channel;
	_Atomic bool done;
	int answer, err;
};

static void interrupt(int signal)
{
	(void)signal;
}

static void *wait_at_channel(void *arg)
{
	struct waiter *waiter = arg;
	struct rdma_cm_event *event;

	waiter->answer = CM->get_cm_event(waiter->channel, &event);
	waiter->err = errno;
	waiter->done = true;
	return NULL;
}

/* The thread may wait for the lock, be about to read, or read, when the channel ends: only a signal ends its wait. */
void test_a_thread_waits_at_a_channel_that_ends(void)
{
	const struct vb_sim_config config = {.clock = VB_SIM_CLOCK_REAL};
	const struct sigaction action = {.sa_handler = interrupt};

	TEST_ASSERT_EQUAL_INT(0, sigaction(SIGUSR1, &action, NULL));
	tearDown();
	TEST_ASSERT_EQUAL_INT(0, vb_sim_configure(&config));
	channel = CM->create_event_channel();
	for (unsigned int i = 0; i < 20; i++) {
		struct waiter waiter = {.channel = CM->create_event_channel()};
		pthread_t thread;

		TEST_ASSERT_EQUAL_INT(0, pthread_create(&thread, NULL, wait_at_channel, &waiter));
		for (unsigned int yields = 0; yields < i; yields++)
			sched_yield();
		CM->destroy_event_channel(waiter.channel);
		while (!waiter.done) {
			pthread_kill(thread, SIGUSR1);
			sched_yield();
		}
		pthread_join(thread, NULL);
		TEST_ASSERT_EQUAL_INT(-1, waiter.answer);
		TEST_ASSERT_EQUAL_INT(EINTR, waiter.err);
	}
}
