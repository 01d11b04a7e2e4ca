/* SPDX-License-Identifier: MIT */
/* verbena run --wait-for. The clock moves only while the function sleeps, by 5 s each time: reading the kernel's
 * table takes long on a machine with many connections. */
#include "src/cli/cli.h"
#include "src/cli/wait_for.h"
#include "unity.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static struct timespec now;
static int sleeps, socket_fd;
static int listen_at; /* the sleep in which the server begins to listen; 0: never */

int __wrap_clock_gettime(clockid_t clock, struct timespec *time);
int __wrap_clock_gettime(clockid_t clock, struct timespec *time)
{
	(void)clock;
	*time = now;
	return 0;
}

int __wrap_nanosleep(const struct timespec *time, struct timespec *left);
int __wrap_nanosleep(const struct timespec *time, struct timespec *left)
{
	(void)time;
	(void)left;
	now.tv_sec += 5;
	if (++sleeps == listen_at)
		TEST_ASSERT_EQUAL_INT(0, listen(socket_fd, 1));
	return 0;
}

void setUp(void)
{
	now = (struct timespec){.tv_sec = 1000};
	sleeps = listen_at = 0;
	socket_fd = -1;
}

void tearDown(void)
{
	if (socket_fd >= 0)
		close(socket_fd);
}

/* Binds a socket of the loopback network. Returns its port; 0 if the machine has no such network. */
static uint16_t bind_port(int family)
{
	union {
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
		struct sockaddr any;
	} address = {.v4 = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}}};
	socklen_t length = sizeof(address);

	if (family == AF_INET6)
		address.v6 = (struct sockaddr_in6){.sin6_family = AF_INET6,
						   .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	socket_fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (socket_fd < 0 || bind(socket_fd, &address.any, length))
		return 0;
	TEST_ASSERT_EQUAL_INT(0, getsockname(socket_fd, &address.any, &length));
	return ntohs(address.v4.sin_port); /* at the place of sin6_port */
}

void test_a_server_that_listens(void)
{
	const uint16_t port = bind_port(AF_INET);

	TEST_ASSERT_EQUAL_INT(0, listen(socket_fd, 1));
	TEST_ASSERT_EQUAL_INT(CLI_EXIT_OK, wait_for_listener(port));
	TEST_ASSERT_EQUAL_INT(0, sleeps);
}

void test_a_server_of_ipv6(void)
{
	const uint16_t port = bind_port(AF_INET6);

	if (!port)
		return;
	TEST_ASSERT_EQUAL_INT(0, listen(socket_fd, 1));
	TEST_ASSERT_EQUAL_INT(CLI_EXIT_OK, wait_for_listener(port));
	TEST_ASSERT_EQUAL_INT(0, sleeps);
}

/* A socket that is bound does not listen yet. The server's queue stays empty: it gets no connection. */
void test_a_server_that_begins_later(void)
{
	const uint16_t port = bind_port(AF_INET);

	listen_at = 3;
	TEST_ASSERT_EQUAL_INT(CLI_EXIT_OK, wait_for_listener(port));
	TEST_ASSERT_EQUAL_INT(3, sleeps);
	TEST_ASSERT_EQUAL_INT(0, poll(&(struct pollfd){.fd = socket_fd, .events = POLLIN}, 1, 0));
}

/* The server's port is that of its connections, too, after the server has stopped to listen. */
void test_a_connection_is_no_server(void)
{
	const uint16_t port = bind_port(AF_INET);
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_port = htons(port),
				      .sin_addr = {htonl(INADDR_LOOPBACK)}};
	const int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int connection;

	TEST_ASSERT_EQUAL_INT(0, listen(socket_fd, 1));
	TEST_ASSERT_EQUAL_INT(0, connect(client, (struct sockaddr *)&address, sizeof(address)));
	connection = accept(socket_fd, NULL, NULL);
	TEST_ASSERT_TRUE(connection >= 0);
	close(socket_fd);
	socket_fd = client;
	TEST_ASSERT_EQUAL_INT(CLI_EXIT_FAILED, wait_for_listener(port));
	close(connection);
}

void test_a_server_that_never_listens(void)
{
	const uint16_t port = bind_port(AF_INET);

	TEST_ASSERT_EQUAL_INT(CLI_EXIT_FAILED, wait_for_listener(port));
	TEST_ASSERT_EQUAL_INT(1000 + WAIT_FOR_S, now.tv_sec);
}
