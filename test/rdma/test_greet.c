/* SPDX-License-Identifier: MIT */
/* Listening, accepting, connecting: peers that die in each step, strangers, threads, many. */
#include "test/rdma/rdma.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

void setUp(void)
{
}

void tearDown(void)
{
}

static void greeting_bytes(uint8_t bytes[64])
{
	struct vb_endpoint endpoint = {.qpn = 0x99, .mtu = IBV_MTU_1024};

	memset(bytes, 0, 64);
	/* NOLINTNEXTLINE(bugprone-not-null-terminated-result) */
	memcpy(bytes, "VBG\1", 4);
	endpoint.gid.raw[10] = endpoint.gid.raw[11] = 0xff;
	endpoint.gid.raw[12] = 10;
	endpoint.gid.raw[15] = 1;
	vb_endpoint_encode(&endpoint, bytes + 8);
	bytes[42] = 16; /* 4096 */
	bytes[47] = 8;
	bytes[54] = 1;
}

static void assert_both_work(const struct ends *ends, struct vb_rdma *const rdma[2])
{
	char got[8] = "";

	for (int i = 0; i < 2; i++) {
		OK(vb_rdma_send(rdma[i], "fine", 5, S));
		OK(vb_rdma_receive(rdma[!i], got, sizeof(got), NULL, S));
		TEST_ASSERT_EQUAL_STRING("fine", got);
	}
	(void)ends;
}

/* A client that sends this many bytes of its part, and goes away. */
static void client_that_dies(const struct ends *ends, size_t said, bool hears)
{
	const struct vb_rdma_exchange *local = vb_rdma_exchange_local();
	uint8_t bytes[64];
	size_t moved;
	void *line;

	greeting_bytes(bytes);
	OK(local->connect(ends->hall, "server", &line));
	if (said)
		OK(local->send(line, bytes, said, &moved));
	for (int i = 0; i < 10; i++)
		turn(ends);
	if (hears)
		OK(local->receive(line, bytes, 64, &moved));
	local->close_line(line);
	for (int i = 0; i < 10; i++)
		turn(ends);
}

void test_a_client_that_dies_in_each_step(void)
{
	struct vb_sim_objects before, after;
	struct ends ends;

	ends_open(&ends, NULL, NULL);
	vb_sim_count_objects(NULL, &before);
	client_that_dies(&ends, 0, false);
	client_that_dies(&ends, 1, false);
	client_that_dies(&ends, 63, false);
	client_that_dies(&ends, 64, false);
	client_that_dies(&ends, 64, true);
	vb_sim_count_objects(NULL, &after);
	TEST_ASSERT_EQUAL_MEMORY(&before, &after, sizeof(before));
	assert_both_work(&ends, ends.rdma);
	ends_close(&ends);
}

void test_strangers_on_the_line(void)
{
	static const char *const words[] = {"GET / HTTP/1.0\r\n\r\n", "VBG\2", "VBG"};
	const struct vb_rdma_exchange *local = vb_rdma_exchange_local();
	uint8_t bytes[64];
	struct ends ends;
	size_t moved;
	void *line;

	ends_open(&ends, NULL, NULL);
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		memset(bytes, 0, sizeof(bytes));
		memcpy(bytes, words[i], strlen(words[i]));
		OK(local->connect(ends.hall, "server", &line));
		OK(local->send(line, bytes, sizeof(bytes), &moved));
		turn(&ends);
		FAILS(ECONNRESET, local->receive(line, bytes, 1, &moved));
		local->close_line(line);
	}
	assert_both_work(&ends, ends.rdma);
	ends_close(&ends);
}

/* A greeting of this version that makes no sense: the peer learns that, by status 3. */
void test_a_greeting_that_is_not_understood(void)
{
	const struct vb_rdma_exchange *local = vb_rdma_exchange_local();
	uint8_t bytes[64];
	struct ends ends;
	size_t moved;
	void *line;

	ends_open(&ends, NULL, NULL);
	greeting_bytes(bytes);
	bytes[47] = 0; /* no slots */
	OK(local->connect(ends.hall, "server", &line));
	OK(local->send(line, bytes, sizeof(bytes), &moved));
	turn(&ends);
	OK(local->receive(line, bytes, sizeof(bytes), &moved));
	TEST_ASSERT_EQUAL_UINT64(sizeof(bytes), moved);
	TEST_ASSERT_EQUAL_MEMORY("VBG\1\0\0\0\3", bytes, 8);
	FAILS(ECONNRESET, local->receive(line, bytes, 1, &moved));
	local->close_line(line);
	ends_close(&ends);
}

/* A hand-made server that goes away in each step. */
static int connect_to_one_that_dies(struct vb_rdma_agent *agent, struct vb_rdma_hall *hall,
				    size_t said, uint32_t status)
{
	const struct vb_rdma_exchange *local = vb_rdma_exchange_local();
	const struct vb_rdma_request connect = {
		.operation = VB_RDMA_CONNECT, .agent = agent, .address = "by hand"};
	void *listener, *line;
	struct vb_rdma_op op;
	uint8_t bytes[64];
	size_t moved;
	int err;

	OK(local->listen(hall, "by hand", &listener));
	op = start(&connect);
	OK(vb_rdma_progress(agent, 0));
	OK(local->accept(listener, &line));
	OK(local->receive(line, bytes, 64, &moved));
	greeting_bytes(bytes);
	bytes[7] = (uint8_t)status;
	if (said)
		OK(local->send(line, bytes, said, &moved));
	local->close_line(line);
	err = vb_rdma_wait(op, S, NULL);
	local->close_listener(listener);
	return err;
}

void test_a_server_that_dies_in_each_step(void)
{
	struct vb_sim_objects before, after;
	struct ends ends;

	ends_open(&ends, NULL, NULL);
	vb_sim_count_objects(NULL, &before);
	FAILS(ECONNRESET, connect_to_one_that_dies(ends.agent[0], ends.hall, 0, 0));
	FAILS(ECONNRESET, connect_to_one_that_dies(ends.agent[0], ends.hall, 63, 0));
	FAILS(ECONNRESET, connect_to_one_that_dies(ends.agent[0], ends.hall, 64, 0));
	FAILS(ECONNREFUSED, connect_to_one_that_dies(ends.agent[0], ends.hall, 64, 1));
	assert_says("no room");
	FAILS(ECONNREFUSED, connect_to_one_that_dies(ends.agent[0], ends.hall, 64, 2));
	assert_says("no memory");
	FAILS(ECONNREFUSED, connect_to_one_that_dies(ends.agent[0], ends.hall, 64, 3));
	assert_says("not understand");
	FAILS(ECONNREFUSED, vb_rdma_connect(ends.agent[0], "nobody", S) ? 0 : errno);
	vb_sim_count_objects(NULL, &after);
	TEST_ASSERT_EQUAL_MEMORY(&before, &after, sizeof(before));
	ends_close(&ends);
}

void test_a_stranger_that_says_nothing_is_dismissed(void)
{
	const struct vb_rdma_exchange *local = vb_rdma_exchange_local();
	struct ends ends;
	size_t moved;
	char byte;
	void *line;

	ends_open(&ends, NULL, NULL);
	OK(local->connect(ends.hall, "server", &line));
	turn(&ends);
	FAILS(EAGAIN, local->receive(line, &byte, 1, &moved));
	OK(vb_sim_run(NULL, 5 * S));
	turn(&ends);
	FAILS(ECONNRESET, local->receive(line, &byte, 1, &moved));
	local->close_line(line);
	ends_close(&ends);
}

void test_a_connect_that_nobody_accepts_is_taken_back(void)
{
	const struct vb_rdma_request connect = {.operation = VB_RDMA_CONNECT, .address = "server"};
	struct vb_rdma_request request = connect;
	struct ends ends;
	struct vb_rdma_op op;

	ends_open(&ends, NULL, NULL);
	TEST_ASSERT_NULL(vb_rdma_connect(ends.agent[0], "server", MS));
	TEST_ASSERT_EQUAL_INT(ETIMEDOUT, errno);
	TEST_ASSERT_NULL(vb_rdma_accept(ends.listener, MS));
	request.agent = ends.agent[0];
	op = start(&request);
	OK(vb_rdma_cancel(op));
	assert_both_work(&ends, ends.rdma);
	ends_close(&ends);
}

void test_no_room(void)
{
	struct vb_rdma_options one;
	struct vb_rdma_request connect = {.operation = VB_RDMA_CONNECT, .address = "server"};
	struct ends ends;

	vb_rdma_options_init(&one);
	one.connections = 1;
	ends_open(&ends, NULL, &one);
	connect.agent = ends.agent[0];
	FAILS(ECONNREFUSED, run(&ends, &connect, NULL));
	assert_says("no room");
	ends_close(&ends);
}

void test_options_out_of_range_are_named(void)
{
	struct vb_rdma_options options;

	fresh_world(1, VB_SIM_CLOCK_VIRTUAL);
	vb_rdma_options_init(&options);
	options.backend = "sim";
	options.slots = 1;
	TEST_ASSERT_NULL(vb_rdma_agent_open(&options));
	TEST_ASSERT_EQUAL_INT(ERANGE, errno);
	assert_says("slots");
	options.slots = 32;
	options.thread = true;
	TEST_ASSERT_NULL(vb_rdma_agent_open(&options));
	TEST_ASSERT_EQUAL_INT(ENOTSUP, errno);
	assert_nothing_left();
}

void test_a_thousand_connections(void)
{
	enum { MANY = 1000 };
	static struct vb_rdma *rdma[MANY][2];
	struct vb_rdma_options options;
	struct ends ends;
	uint32_t got;

	vb_rdma_options_init(&options);
	options.connections = MANY;
	options.slots = 2;
	options.message_bytes = 128;
	fresh_world(2, VB_SIM_CLOCK_VIRTUAL);
	ends_agents(&ends, &options, &options);
	for (uint32_t i = 0; i < MANY; i++)
		rdma[i][0] = join_agents(&ends, &rdma[i][1]);
	for (uint32_t i = 0; i < MANY; i++)
		OK(vb_rdma_send(rdma[i][0], &i, sizeof(i), S));
	for (uint32_t i = 0; i < MANY; i++) {
		OK(vb_rdma_receive(rdma[i][1], &got, sizeof(got), NULL, S));
		TEST_ASSERT_EQUAL_UINT32(i, got);
	}
	for (uint32_t i = 1; i < MANY; i++) {
		OK(vb_rdma_close(rdma[i][i % 2]));
		OK(vb_rdma_close(rdma[i][!(i % 2)]));
	}
	ends.rdma[0] = rdma[0][0];
	ends.rdma[1] = rdma[0][1];
	assert_both_work(&ends, ends.rdma);
	ends_close(&ends);
}

/* --- threads --- */

struct server {
	struct vb_rdma_listener *listener;
	pthread_barrier_t *entered; /* on the virtual clock, all threads have registered */
	uint64_t timeout_ns;
	int err;
};

/* A thread that waited before the others have registered would move time alone. */
static void enter(pthread_barrier_t *entered)
{
	vb_sim_thread_enter(NULL);
	pthread_barrier_wait(entered);
}

/* Sends each message back until the client closes the connection. */
static void *serve(void *arg)
{
	struct server *server = arg;
	struct vb_rdma *rdma;
	char got[64];

	if (server->entered)
		enter(server->entered);
	rdma = vb_rdma_accept(server->listener, server->timeout_ns);
	while (rdma && !server->err) {
		server->err = vb_rdma_receive(rdma, got, sizeof(got), NULL, server->timeout_ns);
		if (!server->err)
			server->err = vb_rdma_send(rdma, got, sizeof(got), server->timeout_ns);
	}
	vb_rdma_close(rdma);
	if (server->entered)
		vb_sim_thread_leave(NULL);
	return NULL;
}

static void talk(struct vb_rdma_agent *agent, const char *address, uint64_t timeout_ns)
{
	struct vb_rdma *rdma = vb_rdma_connect(agent, address, timeout_ns);
	char said[64] = "echo", got[64];

	HAVE(rdma);
	for (int i = 0; i < 50; i++) {
		said[10] = (char)i;
		OK(vb_rdma_send(rdma, said, sizeof(said), timeout_ns));
		OK(vb_rdma_receive(rdma, got, sizeof(got), NULL, timeout_ns));
		TEST_ASSERT_EQUAL_MEMORY(said, got, sizeof(got));
	}
	OK(vb_rdma_close(rdma));
}

static void talk_on_the_virtual_clock(uint64_t timeout_ns)
{
	pthread_barrier_t entered;
	struct server server = {.entered = &entered, .timeout_ns = timeout_ns};
	struct ends ends;
	pthread_t thread;

	pthread_barrier_init(&entered, NULL, 2);
	fresh_world(2, VB_SIM_CLOCK_VIRTUAL);
	ends_agents(&ends, NULL, NULL);
	server.listener = ends.listener;
	TEST_ASSERT_EQUAL_INT(0, pthread_create(&thread, NULL, serve, &server));
	enter(&entered);
	talk(ends.agent[0], "server", timeout_ns);
	vb_sim_thread_leave(NULL);
	pthread_join(thread, NULL);
	TEST_ASSERT_EQUAL_INT(ECONNRESET, server.err);
	pthread_barrier_destroy(&entered);
	ends_close(&ends);
}

/* The same without timeouts: a wait does not end while another thread may act. */
void test_two_threads_on_the_virtual_clock(void)
{
	for (int i = 0; i < 20; i++) {
		talk_on_the_virtual_clock(10 * S);
		talk_on_the_virtual_clock(VB_FOREVER);
	}
}

static void *accept_for_ever(void *arg)
{
	struct server *server = arg;

	enter(server->entered);
	server->err = vb_rdma_accept(server->listener, VB_FOREVER) ? 0 : errno;
	vb_sim_thread_leave(NULL);
	return NULL;
}

/* Each thread waits for the other to connect. */
void test_two_threads_that_wait_for_one_another(void)
{
	pthread_barrier_t entered;
	struct server servers[] = {{.entered = &entered}, {.entered = &entered}};
	struct ends ends;
	pthread_t thread;

	fresh_world(2, VB_SIM_CLOCK_VIRTUAL);
	ends_agents(&ends, NULL, NULL);
	servers[0].listener = vb_rdma_listen(ends.agent[0], "client");
	HAVE(servers[0].listener);
	servers[1].listener = ends.listener;
	pthread_barrier_init(&entered, NULL, 2);
	TEST_ASSERT_EQUAL_INT(0, pthread_create(&thread, NULL, accept_for_ever, &servers[1]));
	accept_for_ever(&servers[0]);
	pthread_join(thread, NULL);
	for (int i = 0; i < 2; i++)
		TEST_ASSERT_EQUAL_INT(EDEADLK, servers[i].err);
	pthread_barrier_destroy(&entered);
	OK(vb_rdma_listener_close(servers[0].listener));
	ends_close(&ends);
}

/* Over TCP, at a free port. */
static void talk_over_tcp(bool threaded)
{
	struct vb_rdma_options options;
	struct vb_rdma_agent *agent[2];
	struct server server = {.timeout_ns = 10 * S};
	char address[64];
	pthread_t thread;

	fresh_world(2, VB_SIM_CLOCK_REAL);
	vb_rdma_options_init(&options);
	options.thread = threaded;
	agent[0] = agent_on(0, NULL, &options);
	agent[1] = agent_on(1, NULL, &options);
	server.listener = vb_rdma_listen(agent[1], "127.0.0.1:0");
	HAVE(server.listener);
	OK(vb_rdma_listener_name(server.listener, address, sizeof(address)));
	TEST_ASSERT_EQUAL_INT(0, pthread_create(&thread, NULL, serve, &server));
	talk(agent[0], address, 10 * S);
	pthread_join(thread, NULL);
	TEST_ASSERT_EQUAL_INT(ECONNRESET, server.err);
	OK(vb_rdma_listener_close(server.listener));
	OK(vb_rdma_agent_close(agent[0]));
	OK(vb_rdma_agent_close(agent[1]));
	assert_nothing_left();
}

void test_over_tcp_driven_by_its_callers(void)
{
	talk_over_tcp(false);
}

void test_over_tcp_with_agent_threads(void)
{
	talk_over_tcp(true);
}

/* With an agent thread the owner's program does nothing. */
void test_an_agent_thread_answers_for_its_program(void)
{
	struct vb_rdma_options options;
	struct vb_rdma_agent *agent[2];
	struct vb_rdma_listener *listener;
	struct vb_remote_mr *remote;
	struct vb_rdma *client, *server;
	char address[64];

	fresh_world(2, VB_SIM_CLOCK_REAL);
	vb_rdma_options_init(&options);
	options.thread = true;
	for (unsigned int i = 0; i < 2; i++)
		agent[i] = agent_on(i, NULL, &options);
	listener = vb_rdma_listen(agent[1], "127.0.0.1:0");
	HAVE(listener);
	OK(vb_rdma_listener_name(listener, address, sizeof(address)));
	client = vb_rdma_connect(agent[0], address, 10 * S);
	HAVE(client);
	remote = vb_request_remote_mr(client, 64, 0, VB_MR_ALL, 0, 10 * S);
	HAVE(remote);
	OK(vb_rdma_fetch_add(client, remote, 0, 1, NULL, 10 * S));
	vb_remote_mr_put(remote);
	server = vb_rdma_accept(listener, 10 * S);
	HAVE(server);
	OK(vb_rdma_close(client));
	OK(vb_rdma_close(server));
	OK(vb_rdma_listener_close(listener));
	OK(vb_rdma_agent_close(agent[0]));
	OK(vb_rdma_agent_close(agent[1]));
	assert_nothing_left();
}

/* TCP with a name whose lookup takes long. */
static pthread_barrier_t is_asked, is_found;

static int slow_connect(void *arg, const char *address, void **line)
{
	pthread_barrier_wait(&is_asked);
	pthread_barrier_wait(&is_found);
	return vb_rdma_exchange_tcp()->connect(arg, address, line);
}

struct slow {
	struct vb_rdma_agent *agent;
	const char *address;
	struct vb_rdma *rdma;
};

static void *connect_slowly(void *arg)
{
	struct slow *slow = arg;

	slow->rdma = vb_rdma_connect(slow->agent, slow->address, 10 * S);
	return NULL;
}

/* The lookup of a name does not hold the agent's lock: otherwise this test would not end. */
void test_an_agent_goes_on_while_a_name_is_looked_up(void)
{
	struct vb_rdma_exchange exchange = *vb_rdma_exchange_tcp();
	struct vb_rdma_options options;
	struct vb_rdma_listener *listener;
	struct vb_local_mr *local;
	struct slow slow;
	struct vb_rdma *server;
	char address[64];
	pthread_t thread;

	pthread_barrier_init(&is_asked, NULL, 2);
	pthread_barrier_init(&is_found, NULL, 2);
	fresh_world(1, VB_SIM_CLOCK_REAL);
	vb_rdma_options_init(&options);
	exchange.connect = slow_connect;
	options.thread = true;
	options.exchange = &exchange;
	slow = (struct slow){agent_on(0, NULL, &options), address, NULL};
	listener = vb_rdma_listen(slow.agent, "127.0.0.1:0");
	HAVE(listener);
	OK(vb_rdma_listener_name(listener, address, sizeof(address)));
	TEST_ASSERT_EQUAL_INT(0, pthread_create(&thread, NULL, connect_slowly, &slow));
	pthread_barrier_wait(&is_asked);
	local = vb_alloc_local_mr(slow.agent, 64, 0);
	HAVE(local);
	TEST_ASSERT_NULL(vb_rdma_accept(listener, MS));
	TEST_ASSERT_EQUAL_INT(ETIMEDOUT, errno);
	pthread_barrier_wait(&is_found);
	pthread_join(thread, NULL);
	HAVE(slow.rdma);
	server = vb_rdma_accept(listener, 10 * S);
	HAVE(server);
	vb_local_mr_put(local);
	OK(vb_rdma_close(slow.rdma));
	OK(vb_rdma_close(server));
	OK(vb_rdma_listener_close(listener));
	OK(vb_rdma_agent_close(slow.agent));
	assert_nothing_left();
}

void test_invalid_addresses(void)
{
	static const char *const wrong[] = {
		"", "7000", "host", "*:", "*:70000", "*:-1", "*:7x", ":7"};
	struct vb_rdma_agent *agent;

	fresh_world(1, VB_SIM_CLOCK_REAL);
	agent = agent_on(0, NULL, NULL);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		TEST_ASSERT_NULL(vb_rdma_listen(agent, wrong[i]));
		TEST_ASSERT_EQUAL_INT(EINVAL, errno);
		TEST_ASSERT_NULL(vb_rdma_connect(agent, wrong[i], S));
		TEST_ASSERT_EQUAL_INT(EINVAL, errno);
	}
	OK(vb_rdma_agent_close(agent));
}

/* The descriptor becomes readable when a message arrives; only poll(2) waits. */
void test_the_descriptor(void)
{
	const struct vb_rdma_request accept = {.operation = VB_RDMA_ACCEPT};
	struct vb_rdma_request request = accept;
	struct vb_rdma_agent *agent[2];
	struct vb_rdma_listener *listener;
	struct vb_rdma_result result;
	struct pollfd readable = {.events = POLLIN};
	struct vb_rdma_op op, connecting;
	struct vb_rdma *client;
	char address[64], got[8];
	int err = EAGAIN;

	fresh_world(2, VB_SIM_CLOCK_REAL);
	for (unsigned int i = 0; i < 2; i++)
		agent[i] = agent_on(i, NULL, NULL);
	listener = vb_rdma_listen(agent[1], "127.0.0.1:0");
	HAVE(listener);
	OK(vb_rdma_listener_name(listener, address, sizeof(address)));
	request.listener = listener;
	op = start(&request);
	request = (struct vb_rdma_request){
		.operation = VB_RDMA_CONNECT, .agent = agent[0], .address = address};
	connecting = start(&request);
	while (err == EAGAIN) {
		OK(vb_rdma_progress(agent[1], 0));
		err = vb_rdma_poll(connecting, &result);
	}
	OK(err);
	client = result.rdma;
	OK(vb_rdma_wait(op, 10 * S, &result));
	readable.fd = vb_rdma_descriptor(agent[1]);
	OK(vb_rdma_arm(agent[1]));
	TEST_ASSERT_EQUAL_INT(0, poll(&readable, 1, 0));
	OK(vb_rdma_send(client, "hello", 6, 10 * S));
	TEST_ASSERT_EQUAL_INT(1, poll(&readable, 1, 10000));
	OK(vb_rdma_progress(agent[1], 0));
	OK(vb_rdma_receive(result.rdma, got, sizeof(got), NULL, 0));
	OK(vb_rdma_close(client));
	OK(vb_rdma_close(result.rdma));
	OK(vb_rdma_listener_close(listener));
	OK(vb_rdma_agent_close(agent[0]));
	OK(vb_rdma_agent_close(agent[1]));
	assert_nothing_left();
}
