/* SPDX-License-Identifier: MIT */
/*
 * How the nodes of a team exchange bytes before they are connected: over TCP, or in this process.
 *
 * Over TCP each rank but 0 connects to rank 0 and sends a greeting and its bytes; once it has those
 * of all, rank 0 answers each with a reply and all bytes. All numbers are big-endian.
 */
#include "src/base/failure.h"

#include <endian.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <verbena/channel.h>

#define NS_PER_S  1000000000ull
#define NS_PER_MS 1000000ull
#define VERSION	  1

/* Connections of strangers that rank 0 keeps open beside those of its team. */
#define STRANGERS_MAX 16

/* Between two tries to connect. */
#define RETRY_MS 5

struct greeting {
	uint8_t magic[3];
	uint8_t version;
	uint32_t rank;
	uint32_t size;
	uint32_t card_bytes;
};

struct reply {
	uint8_t magic[3];
	uint8_t version;
	uint32_t refused; /* 0: all bytes follow */
};

static const uint8_t magic[3] = {'V', 'B', 'X'};

struct exchange {
	uint32_t rank, size;
	const void *card;
	size_t card_bytes;
	uint8_t *cards;
	uint64_t deadline_ns; /* of CLOCK_MONOTONIC */
};

/* --- time and sockets --- */

static uint64_t monotonic_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

static uint64_t deadline_of(uint64_t timeout_ns)
{
	uint64_t now_ns = monotonic_ns();

	return now_ns + timeout_ns < now_ns ? UINT64_MAX : now_ns + timeout_ns;
}

/* For poll(2): at least 1 while there is time, 0 when it is over, at most a second. */
static int left_ms(uint64_t deadline_ns)
{
	uint64_t now_ns = monotonic_ns();
	uint64_t left_ns = now_ns < deadline_ns ? deadline_ns - now_ns : 0;

	if (left_ns > NS_PER_S)
		return 1000;
	return (int)((left_ns + NS_PER_MS - 1) / NS_PER_MS);
}

/* Sends or receives all of it, on a socket that does not block. 0, ETIMEDOUT, or errno; ECONNRESET
 * for an end too soon. */
static int transfer(int fd, void *bytes, size_t length_bytes, bool sends, uint64_t deadline_ns)
{
	struct pollfd ready = {.fd = fd, .events = sends ? POLLOUT : POLLIN};
	size_t done = 0;
	ssize_t now;

	while (done < length_bytes) {
		if (sends)
			now = send(fd, (char *)bytes + done, length_bytes - done, MSG_NOSIGNAL);
		else
			now = recv(fd, (char *)bytes + done, length_bytes - done, 0);
		if (now > 0)
			done += (size_t)now;
		else if (now == 0)
			return ECONNRESET;
		else if (errno != EAGAIN && errno != EINTR)
			return errno;
		else if (!left_ms(deadline_ns))
			return ETIMEDOUT;
		else
			poll(&ready, 1, left_ms(deadline_ns));
	}
	return 0;
}

/* The addresses of a host, to be freed. 0 or errno, told. */
static int resolve(const char *host, uint16_t port, int flags, struct addrinfo **found)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = flags | AI_NUMERICSERV};
	char service[8];
	int code;

	snprintf(service, sizeof(service), "%u", port);
	code = getaddrinfo(host, service, &hints, found);
	if (!code)
		return 0;
	fail(EINVAL, "exchange: host %s: %s", host ? host : "(any)", gai_strerror(code));
	return EINVAL;
}

static int listen_at(const struct addrinfo *address, int *fd)
{
	const int on = 1;
	int err;

	*fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (*fd < 0)
		return errno;
	setsockopt(*fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (!bind(*fd, address->ai_addr, address->ai_addrlen) && !listen(*fd, SOMAXCONN))
		return 0;
	err = errno;
	close(*fd);
	return err;
}

static uint16_t port_of(int fd)
{
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} name = {.v6 = {0}};
	socklen_t length = sizeof(name);

	if (getsockname(fd, &name.any, &length))
		return 0;
	return be16toh(name.any.sa_family == AF_INET6 ? name.v6.sin6_port : name.v4.sin_port);
}

int vb_tcp_listen(const char *host, uint16_t *port)
{
	struct addrinfo *found;
	int fd = -1, err;

	err = resolve(host, *port, AI_PASSIVE, &found);
	if (err) {
		errno = err;
		return -1;
	}
	err = listen_at(found, &fd);
	freeaddrinfo(found);
	if (err) {
		fail(err, "exchange: listening at %s port %u: %s", host ? host : "(any)", *port,
		     strerrordesc_np(err));
		return -1;
	}
	*port = port_of(fd);
	return fd;
}

/* --- rank 0 --- */

struct guest {
	int fd;	       /* -1: none */
	uint32_t rank; /* once its bytes are there */
	bool arrived;
	size_t have_bytes; /* of greeting and card */
	struct greeting greeting;
};

static void dismiss(struct guest *guest)
{
	close(guest->fd);
	*guest = (struct guest){.fd = -1};
}

/* Tells a node of another team, and ends with that. */
static int refuse_guest(const struct exchange *exchange, struct guest *guest, const char *why)
{
	struct reply reply = {.version = VERSION, .refused = htobe32(1)};
	uint32_t rank = be32toh(guest->greeting.rank);

	memcpy(reply.magic, magic, sizeof(magic));
	transfer(guest->fd, &reply, sizeof(reply), true, exchange->deadline_ns);
	return fail(EPROTO, "exchange: rank %u of %u, with %u bytes, came to a team of %u: %s",
		    rank, be32toh(guest->greeting.size), be32toh(guest->greeting.card_bytes),
		    exchange->size, why);
}

/* The greeting is there. 0, or EPROTO for a node of another team; strangers are dismissed. */
static int greet(const struct exchange *exchange, struct guest *guests, uint32_t count,
		 struct guest *guest)
{
	const struct greeting *greeting = &guest->greeting;

	if (memcmp(greeting->magic, magic, sizeof(magic)) != 0 || greeting->version != VERSION) {
		dismiss(guest);
		return 0;
	}
	guest->rank = be32toh(greeting->rank);
	if (be32toh(greeting->size) != exchange->size ||
	    be32toh(greeting->card_bytes) != exchange->card_bytes)
		return refuse_guest(exchange, guest, "not of this team");
	if (!guest->rank || guest->rank >= exchange->size)
		return refuse_guest(exchange, guest, "there is no such rank");
	for (uint32_t i = 0; i < count; i++)
		if (&guests[i] != guest && guests[i].fd >= 0 && guests[i].rank == guest->rank)
			return refuse_guest(exchange, guest, "that rank is there already");
	return 0;
}

/* Reads what is there. */
static int hear(const struct exchange *exchange, struct guest *guests, uint32_t count,
		struct guest *guest)
{
	size_t head = sizeof(guest->greeting);
	bool greeted = guest->have_bytes >= head;
	size_t at = greeted ? guest->have_bytes - head : guest->have_bytes;
	size_t whole = greeted ? exchange->card_bytes : head;
	uint8_t *into = greeted ? exchange->cards + guest->rank * exchange->card_bytes
				: (uint8_t *)&guest->greeting;
	ssize_t now = recv(guest->fd, into + at, whole - at, 0);

	if (now < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (now <= 0) {
		dismiss(guest);
		return 0;
	}
	guest->have_bytes += (size_t)now;
	if (at + (size_t)now < whole)
		return 0;
	if (!greeted)
		return greet(exchange, guests, count, guest);
	guest->arrived = true;
	return 0;
}

static void let_in(int listener, struct guest *guests, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		if (guests[i].fd >= 0)
			continue;
		guests[i].fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		return;
	}
}

static uint32_t arrived(const struct guest *guests, uint32_t count)
{
	uint32_t number = 0;

	for (uint32_t i = 0; i < count; i++)
		number += guests[i].arrived;
	return number;
}

/* Waits once for any of them. */
static int collect_some(const struct exchange *exchange, int listener, struct guest *guests,
			uint32_t count, struct pollfd *ready)
{
	bool room = false;
	int err = 0;

	for (uint32_t i = 0; i < count; i++) {
		ready[i] = (struct pollfd){.fd = guests[i].arrived ? -1 : guests[i].fd,
					   .events = POLLIN};
		room |= guests[i].fd < 0;
	}
	ready[count] = (struct pollfd){.fd = room ? listener : -1, .events = POLLIN};
	if (poll(ready, count + 1, left_ms(exchange->deadline_ns)) < 0 && errno != EINTR)
		return fail(errno, "exchange: poll: %s", strerrordesc_np(errno));
	for (uint32_t i = 0; i < count && !err; i++)
		if (ready[i].revents)
			err = hear(exchange, guests, count, &guests[i]);
	if (!err && ready[count].revents)
		let_in(listener, guests, count);
	return err;
}

static int answer_all(const struct exchange *exchange, struct guest *guests, uint32_t count)
{
	struct reply reply = {.version = VERSION};
	int err = 0;

	memcpy(reply.magic, magic, sizeof(magic));
	for (uint32_t i = 0; i < count && !err; i++) {
		if (!guests[i].arrived)
			continue;
		err = transfer(guests[i].fd, &reply, sizeof(reply), true, exchange->deadline_ns);
		if (!err)
			err = transfer(guests[i].fd, exchange->cards,
				       exchange->card_bytes * exchange->size, true,
				       exchange->deadline_ns);
		if (err)
			fail(err, "exchange: answering rank %u: %s", guests[i].rank,
			     strerrordesc_np(err));
	}
	return err;
}

static int host_guests(const struct exchange *exchange, int listener, struct guest *guests,
		       uint32_t count)
{
	struct pollfd *ready = calloc(count + 1, sizeof(*ready));
	int err = 0;

	if (!ready)
		return fail(ENOMEM, "exchange: no memory");
	for (uint32_t i = 0; i < count; i++)
		guests[i].fd = -1;
	memcpy(exchange->cards, exchange->card, exchange->card_bytes);
	while (!err && arrived(guests, count) < exchange->size - 1) {
		if (!left_ms(exchange->deadline_ns))
			err = fail(ETIMEDOUT, "exchange: %u of %u ranks came",
				   arrived(guests, count) + 1, exchange->size);
		else
			err = collect_some(exchange, listener, guests, count, ready);
	}
	if (!err)
		err = answer_all(exchange, guests, count);
	for (uint32_t i = 0; i < count; i++)
		if (guests[i].fd >= 0)
			close(guests[i].fd);
	free(ready);
	return err;
}

static int host(const struct exchange *exchange, const struct vb_tcp_place *place)
{
	uint32_t count = exchange->size - 1 + STRANGERS_MAX;
	struct guest *guests = calloc(count, sizeof(*guests));
	uint16_t port = place->port;
	int listener = place->listener;
	int err;

	if (!guests)
		return fail(ENOMEM, "exchange: no memory");
	if (listener < 0)
		listener = vb_tcp_listen(place->host, &port);
	err = listener < 0 ? errno : host_guests(exchange, listener, guests, count);
	if (listener >= 0 && place->listener < 0)
		close(listener);
	free(guests);
	return err;
}

/* --- the other ranks --- */

static int connect_to(const struct addrinfo *address, uint64_t deadline_ns, int *fd)
{
	struct pollfd ready = {.events = POLLOUT};
	socklen_t length = sizeof(int);
	int err;

	*fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (*fd < 0)
		return errno;
	ready.fd = *fd;
	err = connect(*fd, address->ai_addr, address->ai_addrlen) ? errno : 0;
	if (err == EINPROGRESS) {
		err = poll(&ready, 1, left_ms(deadline_ns)) == 1 ? 0 : ETIMEDOUT;
		if (!err)
			getsockopt(*fd, SOL_SOCKET, SO_ERROR, &err, &length);
	}
	if (err)
		close(*fd);
	return err;
}

/* 0, EPROTO where rank 0 refuses, or the errno of a connection that may be tried again. */
static int visit(const struct exchange *exchange, int fd)
{
	struct greeting greeting = {.version = VERSION,
				    .rank = htobe32(exchange->rank),
				    .size = htobe32(exchange->size),
				    .card_bytes = htobe32((uint32_t)exchange->card_bytes)};
	struct reply reply;
	int err;

	memcpy(greeting.magic, magic, sizeof(magic));
	err = transfer(fd, &greeting, sizeof(greeting), true, exchange->deadline_ns);
	if (!err)
		err = transfer(fd, (void *)exchange->card, exchange->card_bytes, true,
			       exchange->deadline_ns);
	/* Refused before all of it was sent: the reason may be there to be read. */
	if (!err || err == EPIPE || err == ECONNRESET)
		err = transfer(fd, &reply, sizeof(reply), false, exchange->deadline_ns);
	if (err)
		return err;
	if (memcmp(reply.magic, magic, sizeof(magic)) != 0 || reply.version != VERSION)
		return EPROTO;
	if (reply.refused)
		return EPROTO;
	return transfer(fd, exchange->cards, exchange->card_bytes * exchange->size, false,
			exchange->deadline_ns);
}

static bool worth_another_try(int err)
{
	return err == ECONNREFUSED || err == ECONNRESET || err == EPIPE || err == ECONNABORTED;
}

static int call_on(const struct exchange *exchange, const struct vb_tcp_place *place)
{
	struct addrinfo *found;
	int fd, err;

	err = resolve(place->host, place->port, 0, &found);
	if (err)
		return err;
	for (;;) {
		err = connect_to(found, exchange->deadline_ns, &fd);
		if (!err) {
			err = visit(exchange, fd);
			close(fd);
		}
		if (!worth_another_try(err))
			break;
		if (!left_ms(exchange->deadline_ns)) {
			err = ETIMEDOUT;
			break;
		}
		poll(NULL, 0, RETRY_MS);
	}
	freeaddrinfo(found);
	if (err == EPROTO)
		return fail(err, "exchange: rank 0 does not take rank %u of %u", exchange->rank,
			    exchange->size);
	return err ? fail(err, "exchange: rank %u: %s port %u: %s", exchange->rank, place->host,
			  place->port, strerrordesc_np(err))
		   : 0;
}

int vb_exchange_tcp(void *arg, unsigned int rank, unsigned int size, const void *card,
		    size_t card_bytes, void *cards, uint64_t timeout_ns)
{
	const struct exchange exchange = {.rank = rank,
					  .size = size,
					  .card = card,
					  .card_bytes = card_bytes,
					  .cards = cards,
					  .deadline_ns = deadline_of(timeout_ns)};

	return rank ? call_on(&exchange, arg) : host(&exchange, arg);
}

/* --- in this process --- */

struct vb_board {
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	uint32_t size;
	uint32_t came, left; /* of the present exchange */
	uint8_t *bytes;
	size_t card_bytes;
};

struct vb_board *vb_board_open(unsigned int size)
{
	struct vb_board *board = calloc(1, sizeof(*board));
	pthread_condattr_t monotonic;

	if (!board) {
		fail(ENOMEM, "board: no memory");
		return NULL;
	}
	board->size = size;
	pthread_mutex_init(&board->mutex, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&board->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
	return board;
}

void vb_board_close(struct vb_board *board)
{
	if (!board)
		return;
	pthread_cond_destroy(&board->changed);
	pthread_mutex_destroy(&board->mutex);
	free(board->bytes);
	free(board);
}

static bool wait_for_change(struct vb_board *board, uint64_t deadline_ns)
{
	struct timespec at = {.tv_sec = (time_t)(deadline_ns / NS_PER_S),
			      .tv_nsec = (long)(deadline_ns % NS_PER_S)};

	if (deadline_ns == UINT64_MAX)
		return !pthread_cond_wait(&board->changed, &board->mutex);
	return !pthread_cond_timedwait(&board->changed, &board->mutex, &at);
}

/* The lock is held. */
static int pin(struct vb_board *board, unsigned int rank, unsigned int size, const void *card,
	       size_t card_bytes)
{
	if (size != board->size || rank >= size || (board->came && card_bytes != board->card_bytes))
		return fail(EPROTO, "board: rank %u of %u, with %zu bytes, is not of this team",
			    rank, size, card_bytes);
	if (!board->came) {
		uint8_t *bytes = realloc(board->bytes, card_bytes * size);

		if (!bytes)
			return fail(ENOMEM, "board: no memory for %u cards", size);
		board->bytes = bytes;
		board->card_bytes = card_bytes;
	}
	memcpy(board->bytes + rank * card_bytes, card, card_bytes);
	board->came++;
	pthread_cond_broadcast(&board->changed);
	return 0;
}

/* All have come: takes what is there; the last to leave clears the board for the next time. */
static void take_down(struct vb_board *board, void *cards)
{
	memcpy(cards, board->bytes, board->card_bytes * board->size);
	if (++board->left < board->size)
		return;
	board->came = board->left = 0;
	pthread_cond_broadcast(&board->changed);
}

int vb_exchange_board(void *arg, unsigned int rank, unsigned int size, const void *card,
		      size_t card_bytes, void *cards, uint64_t timeout_ns)
{
	uint64_t deadline_ns = deadline_of(timeout_ns);
	struct vb_board *board = arg;
	bool in_time = true;
	int err = 0;

	pthread_mutex_lock(&board->mutex);
	while (board->left && in_time) /* of the exchange before */
		in_time = wait_for_change(board, deadline_ns);
	if (in_time)
		err = pin(board, rank, size, card, card_bytes);
	while (!err && in_time && board->came < board->size)
		in_time = wait_for_change(board, deadline_ns);
	if (!err && in_time)
		take_down(board, cards);
	pthread_mutex_unlock(&board->mutex);
	if (!in_time)
		return fail(ETIMEDOUT, "board: rank %u: not all of %u came", rank, size);
	return err;
}
