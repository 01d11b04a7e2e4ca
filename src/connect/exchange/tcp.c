/* SPDX-License-Identifier: MIT */
/*
 * Lines over TCP, with sockets that do not block.
 */
#include "src/connect/exchange/exchange.h"

#include "src/connect/object.h"

#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <verbena/channel.h>

#define HOST_BYTES 256

/* A listener or a line. */
struct socket {
	int fd;
};

/* --- addresses --- */

/* Splits "host:port", "[host]:port" or "*:port". Returns 0 or EINVAL. */
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

/* Looks up a host; NULL is any address, with AI_PASSIVE in flags. Returns 0, or EINVAL with a
 * sentence. */
static int resolve(const char *host, uint16_t port, int flags, struct addrinfo **found)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = flags | AI_NUMERICSERV};
	char service[8];
	int code;

	snprintf(service, sizeof(service), "%u", port);
	code = getaddrinfo(host, service, &hints, found);
	if (!code)
		return 0;
	return fail(EINVAL, "exchange: host %s: %s", host ? host : "(any)", gai_strerror(code));
}

/* A name often has an address of each family, but a listener has one: both ends prefer IPv4. */
static const struct addrinfo *choose(const struct addrinfo *found)
{
	for (const struct addrinfo *one = found; one; one = one->ai_next)
		if (one->ai_family == AF_INET)
			return one;
	return found;
}

static int name_of(int fd, char host[HOST_BYTES], char service[8], bool *is_v6)
{
	struct sockaddr_storage name = {0};
	socklen_t length = sizeof(name);

	if (getsockname(fd, (struct sockaddr *)&name, &length))
		return errno;
	*is_v6 = name.ss_family == AF_INET6;
	return getnameinfo((struct sockaddr *)&name, length, host, HOST_BYTES, service, 8,
			   NI_NUMERICHOST | NI_NUMERICSERV)
		       ? EINVAL
		       : 0;
}

/* --- sockets --- */

static int descriptor(void *object)
{
	return ((const struct socket *)object)->fd;
}

/* Makes a line or listener of a socket, which is closed if that fails. */
static int object_of(int fd, void **made)
{
	struct socket *socket = object_new(sizeof(*socket), "exchange");

	if (!socket) {
		close(fd);
		return errno = ENOMEM;
	}
	socket->fd = fd;
	*made = socket;
	return 0;
}

static int make_socket(const struct addrinfo *found, bool listens, int *made)
{
	const struct addrinfo *address = choose(found);
	int fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	const int on = 1;
	int err = 0;

	if (fd < 0)
		return errno;
	if (listens) {
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
		if (bind(fd, address->ai_addr, address->ai_addrlen) || listen(fd, SOMAXCONN))
			err = errno;
	} else if (connect(fd, address->ai_addr, address->ai_addrlen) && errno != EINPROGRESS) {
		err = errno;
	}
	if (err)
		close(fd);
	else
		*made = fd;
	return err;
}

/* Makes a socket that listens at the address or connects to it. Returns 0 or errno. connect(2) does
 * not block here, but a thread that is cancelled in it would leave the socket open. */
static int socket_at(const struct addrinfo *found, bool listens, int *made)
{
	int state, err;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	err = make_socket(found, listens, made);
	pthread_setcancelstate(state, NULL);
	return err;
}

int tcp_listener_of(int fd, void **listener)
{
	return fd < 0 ? errno : object_of(fd, listener);
}

int vb_tcp_listen(const char *host, uint16_t *port)
{
	char numeric[HOST_BYTES], service[8];
	struct addrinfo *found;
	int fd = -1, err;
	bool is_v6;

	if (resolve(host, *port, AI_PASSIVE, &found))
		return -1;
	err = socket_at(found, true, &fd);
	freeaddrinfo(found);
	if (err) {
		fail(err, "exchange: listening at %s port %u: %s", host ? host : "(any)", *port,
		     strerrordesc_np(err));
		return -1;
	}
	if (!name_of(fd, numeric, service, &is_v6))
		*port = (uint16_t)strtoul(service, NULL, 10);
	return fd;
}

/* --- the interface --- */

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
	return tcp_listener_of(fd, listener);
}

/* Without memory the peer stays in the listener's queue. */
static int tcp_accept(void *listener, void **line)
{
	struct socket *accepted = object_new(sizeof(*accepted), "exchange");
	int state;

	if (!accepted)
		return ENOMEM;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	accepted->fd = accept4(descriptor(listener), NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	pthread_setcancelstate(state, NULL);
	if (accepted->fd < 0) {
		object_drop(accepted, errno);
		return errno;
	}
	*line = accepted;
	return 0;
}

static int tcp_connect(void *arg, const char *address, void **line)
{
	struct addrinfo *found;
	char host[HOST_BYTES];
	uint16_t port;
	int err = split(address, host, &port);
	int fd = -1;

	(void)arg;
	if (!err)
		err = resolve(host, port, 0, &found);
	if (err)
		return err;
	err = socket_at(found, false, &fd);
	freeaddrinfo(found);
	return err ? err : object_of(fd, line);
}

/* The outcome of send(2) or recv(2). While the socket connects, send(2) fails with EAGAIN. */
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

static int tcp_name(void *listener, char *text, size_t text_bytes)
{
	char host[HOST_BYTES], service[8];
	bool is_v6 = false;
	int err = name_of(descriptor(listener), host, service, &is_v6);
	int length;

	if (err)
		return err;
	length = snprintf(text, text_bytes, is_v6 ? "[%s]:%s" : "%s:%s", host, service);
	return (size_t)length < text_bytes ? 0 : ERANGE;
}

static void tcp_close(void *object)
{
	close(descriptor(object));
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
