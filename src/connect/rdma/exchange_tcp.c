/* SPDX-License-Identifier: MIT */
/*
 * The exchange over TCP, with sockets that do not block.
 */
#include "src/base/failure.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <verbena/channel.h>
#include <verbena/rdma.h>

#define HOST_BYTES 256

struct socket {
	int fd;
};

/* "host:port", "[host]:port", "*:port". */
static int split(const char *address, char host[HOST_BYTES], uint16_t *port)
{
	const char *colon = address ? strrchr(address, ':') : NULL;
	size_t length = colon ? (size_t)(colon - address) : 0;
	unsigned long number;
	char *end;

	if (!colon || !length || length >= HOST_BYTES || !colon[1])
		return EINVAL;
	number = strtoul(colon + 1, &end, 10);
	if (*end || number > UINT16_MAX || colon[1] == '-')
		return EINVAL;
	*port = (uint16_t)number;
	if (address[0] == '[' && address[length - 1] == ']' && length > 2) {
		address++;
		length -= 2;
	}
	memcpy(host, address, length);
	host[length] = 0;
	return 0;
}

static int socket_new(int fd, void **made)
{
	struct socket *socket = calloc(1, sizeof(*socket));

	if (!socket) {
		close(fd);
		return ENOMEM;
	}
	socket->fd = fd;
	*made = socket;
	return 0;
}

static int tcp_listen(void *arg, const char *address, void **listener)
{
	char host[HOST_BYTES];
	uint16_t port;
	int err = split(address, host, &port);
	int fd;

	(void)arg;
	if (err)
		return err;
	fd = vb_tcp_listen(strcmp(host, "*") == 0 ? NULL : host, &port);
	return fd < 0 ? errno : socket_new(fd, listener);
}

static int tcp_accept(void *listener, void **line)
{
	const struct socket *socket = listener;
	int fd = accept4(socket->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	return fd < 0 ? errno : socket_new(fd, line);
}

static int connect_one(const struct addrinfo *address, int *fd)
{
	int err;

	*fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (*fd < 0)
		return errno;
	if (!connect(*fd, address->ai_addr, address->ai_addrlen) || errno == EINPROGRESS)
		return 0;
	err = errno;
	close(*fd);
	return err;
}

/* Names often have an address of each family, while a listener has one: the older goes first. */
static const struct addrinfo *choose(const struct addrinfo *found)
{
	for (const struct addrinfo *one = found; one; one = one->ai_next)
		if (one->ai_family == AF_INET)
			return one;
	return found;
}

static int tcp_connect(void *arg, const char *address, void **line)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
	char host[HOST_BYTES], service[8];
	struct addrinfo *found;
	uint16_t port;
	int err = split(address, host, &port);
	int fd = -1;

	(void)arg;
	if (err)
		return err;
	snprintf(service, sizeof(service), "%u", port);
	if (getaddrinfo(host, service, &hints, &found))
		return EINVAL;
	err = connect_one(choose(found), &fd);
	freeaddrinfo(found);
	return err ? err : socket_new(fd, line);
}

/* While it is still connecting, sending answers EAGAIN. */
static int result_of(ssize_t now, size_t *moved_bytes)
{
	*moved_bytes = now > 0 ? (size_t)now : 0;
	if (now > 0)
		return 0;
	if (now == 0 || errno == EPIPE)
		return ECONNRESET;
	return errno == EINTR || errno == ENOTCONN ? EAGAIN : errno;
}

static int tcp_send(void *line, const void *bytes, size_t length_bytes, size_t *moved_bytes)
{
	const struct socket *socket = line;

	return result_of(send(socket->fd, bytes, length_bytes, MSG_NOSIGNAL), moved_bytes);
}

static int tcp_receive(void *line, void *bytes, size_t length_bytes, size_t *moved_bytes)
{
	const struct socket *socket = line;

	return result_of(recv(socket->fd, bytes, length_bytes, 0), moved_bytes);
}

static int descriptor(void *object)
{
	return ((const struct socket *)object)->fd;
}

static int tcp_name(void *listener, char *text, size_t text_bytes)
{
	const struct socket *socket = listener;
	struct sockaddr_storage name = {0};
	socklen_t length = sizeof(name);
	char host[HOST_BYTES], service[8];
	bool is_v6;

	if (getsockname(socket->fd, (struct sockaddr *)&name, &length))
		return errno;
	if (getnameinfo((struct sockaddr *)&name, length, host, sizeof(host), service,
			sizeof(service), NI_NUMERICHOST | NI_NUMERICSERV))
		return EINVAL;
	is_v6 = name.ss_family == AF_INET6;
	return (size_t)snprintf(text, text_bytes, "%s%s%s:%s", is_v6 ? "[" : "", host,
				is_v6 ? "]" : "", service) < text_bytes
		       ? 0
		       : ERANGE;
}

static void tcp_close(void *object)
{
	close(((struct socket *)object)->fd);
	free(object);
}

const struct vb_rdma_exchange *vb_rdma_exchange_tcp(void)
{
	static const struct vb_rdma_exchange tcp = {
		.listen = tcp_listen,
		.accept = tcp_accept,
		.connect = tcp_connect,
		.send = tcp_send,
		.receive = tcp_receive,
		.listener_descriptor = descriptor,
		.line_descriptor = descriptor,
		.name = tcp_name,
		.close_listener = tcp_close,
		.close_line = tcp_close,
	};

	return &tcp;
}
