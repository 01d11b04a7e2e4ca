/* SPDX-License-Identifier: MIT */
/*
 * How the ranks of a team exchange their cards over lines: each rank but 0 connects to rank 0 and
 * sends a greeting and its card; when rank 0 has all cards, it sends every rank a reply and all
 * cards. docs/agent-messages.md has the format.
 */
#include "src/connect/exchange/exchange.h"

#include "src/base/failure.h"
#include "src/connect/bytes.h"
#include "src/connect/deadline.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <verbena/channel.h>

#define GREETING_BYTES 16
#define REPLY_BYTES    8
#define HEAD	       "VBX"

/* Rank 0 keeps this many lines of strangers open beside the lines of its team. */
#define STRANGERS_MAX 16

/* The time between two attempts to connect, and between two looks at a line without descriptor. */
#define RETRY_MS 5
#define LOOK_MS	 1

/* The only address of a board's hall. */
#define BOARD_ADDRESS "board"

struct vb_board {
	struct vb_rdma_hall *hall;
	uint32_t size;
};

/* A line that rank 0 has accepted. */
struct guest {
	void *line;	   /* NULL: the place is free */
	uint32_t rank;	   /* valid after the greeting */
	bool arrived;	   /* the card is complete */
	size_t have_bytes; /* of greeting and card */
	uint8_t greeting[GREETING_BYTES];
};

struct meeting {
	const struct vb_rdma_exchange *exchange;
	uint32_t rank, size;
	void *card; /* only read */
	size_t card_bytes;
	uint8_t *cards;
	uint64_t deadline_ns; /* of CLOCK_MONOTONIC */

	/* of rank 0 */
	void *listener;
	struct guest *guests;
	struct pollfd *ready; /* of each guest, then of the listener */
	uint32_t places;      /* for guests */
	uint32_t arrived;

	/* of the other ranks: where rank 0 is */
	struct vb_rdma_hall *hall;
	struct addrinfo *found;
};

/* --- lines --- */

/* Sleeps until a descriptor is ready, at most max_ms. Returns 0, ETIMEDOUT or errno. */
static int sleep_for(const struct meeting *meeting, struct pollfd *ready, nfds_t count, int max_ms)
{
	uint64_t left_ns = left_until(monotonic_ns(), meeting->deadline_ns);
	int left_ms = left_ns > NS_PER_S ? 1000 : (int)((left_ns + NS_PER_MS - 1) / NS_PER_MS);

	if (!left_ms)
		return ETIMEDOUT;
	return poll(ready, count, left_ms < max_ms ? left_ms : max_ms) < 0 && errno != EINTR ? errno
											     : 0;
}

/* Sends or receives all bytes. Returns 0, ETIMEDOUT, or the errno of the line. */
static int transfer(const struct meeting *meeting, void *line, void *bytes, size_t length_bytes,
		    bool sends)
{
	const struct vb_rdma_exchange *exchange = meeting->exchange;
	struct pollfd ready = {exchange->line_descriptor(line), sends ? POLLOUT : POLLIN, 0};
	size_t done = 0, moved = 0;
	int err = 0;

	while (!err && done < length_bytes) {
		uint8_t *at = (uint8_t *)bytes + done;

		if (sends)
			err = exchange->send(line, at, length_bytes - done, &moved);
		else
			err = exchange->receive(line, at, length_bytes - done, &moved);
		if (!err)
			done += moved;
		else if (err == EAGAIN)
			err = sleep_for(meeting, &ready, 1, ready.fd < 0 ? LOOK_MS : INT_MAX);
	}
	return err;
}

/* --- rank 0 --- */

static void dismiss(const struct meeting *meeting, struct guest *guest)
{
	meeting->exchange->close_line(guest->line);
	*guest = (struct guest){0};
}

static int say_reply(const struct meeting *meeting, void *line, uint32_t refused)
{
	uint8_t reply[REPLY_BYTES];

	put32(put_head(reply, HEAD), refused);
	return transfer(meeting, line, reply, sizeof(reply), true);
}

/* NULL, or why the guest is not of this team. */
static const char *find_fault(const struct meeting *meeting, const struct guest *guest)
{
	if (get32(guest->greeting + 8) != meeting->size ||
	    get32(guest->greeting + 12) != meeting->card_bytes)
		return "the team has another size or other cards";
	if (!guest->rank || guest->rank >= meeting->size)
		return "the team does not have that rank";
	for (uint32_t i = 0; i < meeting->places; i++) {
		const struct guest *other = &meeting->guests[i];

		if (other != guest && other->line && other->rank == guest->rank)
			return "that rank has come already";
	}
	return NULL;
}

/* Reads a complete greeting. A stranger is dismissed; a node of another team is told so and ends
 * the exchange with EPROTO. */
static int greet(const struct meeting *meeting, struct guest *guest)
{
	const char *fault;

	if (check_head("greeting", guest->greeting, HEAD)) {
		dismiss(meeting, guest);
		return 0;
	}
	guest->rank = get32(guest->greeting + 4);
	fault = find_fault(meeting, guest);
	if (!fault)
		return 0;
	say_reply(meeting, guest->line, 1);
	return fail(EPROTO,
		    "exchange: rank %u of %u with a card of %u bytes came to a team of %u: %s",
		    guest->rank, get32(guest->greeting + 8), get32(guest->greeting + 12),
		    meeting->size, fault);
}

/* Reads what a guest has sent. */
static int hear(struct meeting *meeting, struct guest *guest)
{
	bool greeted = guest->have_bytes >= GREETING_BYTES;
	size_t at = greeted ? guest->have_bytes - GREETING_BYTES : guest->have_bytes;
	size_t whole = greeted ? meeting->card_bytes : GREETING_BYTES;
	uint8_t *into =
		greeted ? meeting->cards + guest->rank * meeting->card_bytes : guest->greeting;
	size_t moved = 0;
	int err = meeting->exchange->receive(guest->line, into + at, whole - at, &moved);

	guest->have_bytes += moved;
	if (err && err != EAGAIN)
		dismiss(meeting, guest);
	if (err || at + moved < whole)
		return 0;
	if (!greeted)
		return greet(meeting, guest);
	guest->arrived = true;
	meeting->arrived++;
	return 0;
}

/* Waits once, then hears all guests who said something and accepts one more. */
static int collect_some(struct meeting *meeting)
{
	const struct vb_rdma_exchange *exchange = meeting->exchange;
	struct pollfd *door = &meeting->ready[meeting->places];
	int listener_fd = exchange->listener_descriptor(meeting->listener);
	struct guest *guest, *free_place = NULL;
	int err;

	for (uint32_t i = 0; i < meeting->places; i++) {
		guest = &meeting->guests[i];
		meeting->ready[i] = (struct pollfd){-1, POLLIN, 0};
		if (guest->line && !guest->arrived)
			meeting->ready[i].fd = exchange->line_descriptor(guest->line);
		if (!guest->line)
			free_place = guest;
	}
	*door = (struct pollfd){free_place ? listener_fd : -1, POLLIN, 0};
	err = sleep_for(meeting, meeting->ready, meeting->places + 1,
			listener_fd < 0 ? LOOK_MS : INT_MAX);
	if (err)
		return fail(err, "exchange: %u of %u ranks came: %s", meeting->arrived + 1,
			    meeting->size, strerrordesc_np(err));
	for (uint32_t i = 0; i < meeting->places && !err; i++) {
		guest = &meeting->guests[i];
		if (guest->line && !guest->arrived)
			err = hear(meeting, guest);
	}
	if (!err && free_place && (listener_fd < 0 || door->revents) &&
	    exchange->accept(meeting->listener, &free_place->line))
		free_place->line = NULL;
	return err;
}

static int answer_all(const struct meeting *meeting)
{
	int err = 0;

	for (uint32_t i = 0; i < meeting->places && !err; i++) {
		const struct guest *guest = &meeting->guests[i];

		if (!guest->arrived)
			continue;
		err = say_reply(meeting, guest->line, 0);
		if (!err)
			err = transfer(meeting, guest->line, meeting->cards,
				       meeting->card_bytes * meeting->size, true);
		if (err)
			fail(err, "exchange: answering rank %u: %s", guest->rank,
			     strerrordesc_np(err));
	}
	return err;
}

/* The part of rank 0; closes the listener. */
static int host(struct meeting *meeting)
{
	int err = 0;

	meeting->places = meeting->size - 1 + STRANGERS_MAX;
	meeting->guests = calloc(meeting->places, sizeof(*meeting->guests));
	meeting->ready = calloc(meeting->places + 1, sizeof(*meeting->ready));
	if (!meeting->guests || !meeting->ready)
		err = fail(ENOMEM, "exchange: no memory for %u guests", meeting->places);
	else
		memcpy(meeting->cards, meeting->card, meeting->card_bytes);
	while (!err && meeting->arrived < meeting->size - 1)
		err = collect_some(meeting);
	if (!err)
		err = answer_all(meeting);
	for (uint32_t i = 0; meeting->guests && i < meeting->places; i++)
		if (meeting->guests[i].line)
			dismiss(meeting, &meeting->guests[i]);
	meeting->exchange->close_listener(meeting->listener);
	free(meeting->guests);
	free(meeting->ready);
	return err;
}

/* --- the other ranks --- */

/* Returns 0, EPROTO if rank 0 refuses, or the errno of the line. */
static int visit(const struct meeting *meeting, void *line)
{
	uint8_t greeting[GREETING_BYTES], reply[REPLY_BYTES];
	uint8_t *at = put32(put_head(greeting, HEAD), meeting->rank);
	int err;

	put32(put32(at, meeting->size), (uint32_t)meeting->card_bytes);
	err = transfer(meeting, line, greeting, sizeof(greeting), true);
	if (!err)
		err = transfer(meeting, line, meeting->card, meeting->card_bytes, true);
	/* A rank 0 that refuses may close the line before it has the card: read its reply. */
	if (!err || err == ECONNRESET)
		err = transfer(meeting, line, reply, sizeof(reply), false);
	if (err)
		return err;
	if (check_head("reply", reply, HEAD) || get32(reply + HEAD_BYTES))
		return EPROTO;
	return transfer(meeting, line, meeting->cards, meeting->card_bytes * meeting->size, false);
}

static int call_on(const struct meeting *meeting)
{
	const struct vb_rdma_exchange *exchange = meeting->exchange;
	void *line;
	int err;

	do {
		err = meeting->hall ? exchange->connect(meeting->hall, BOARD_ADDRESS, &line)
				    : tcp_open(meeting->found, &line);
		if (!err) {
			err = visit(meeting, line);
			exchange->close_line(line);
		}
		if (err != ECONNREFUSED && err != ECONNRESET && err != ECONNABORTED)
			break;
	} while (!(err = sleep_for(meeting, NULL, 0, RETRY_MS)));
	if (err == EPROTO)
		return fail(err, "exchange: rank 0 does not take rank %u of %u", meeting->rank,
			    meeting->size);
	return err ? fail(err, "exchange: rank %u calls on rank 0: %s", meeting->rank,
			  strerrordesc_np(err))
		   : 0;
}

/* --- over TCP --- */

/* Makes rank 0's listener; of a socket that belongs to the caller it takes a duplicate. */
static int listen_at(const struct vb_tcp_place *place, void **listener)
{
	uint16_t port = place->port;
	int fd = place->listener < 0 ? vb_tcp_listen(place->host, &port)
				     : fcntl(place->listener, F_DUPFD_CLOEXEC, 0);

	return fd < 0 ? errno : tcp_object(fd, listener);
}

int vb_exchange_tcp(void *arg, unsigned int rank, unsigned int size, const void *card,
		    size_t card_bytes, void *cards, uint64_t timeout_ns)
{
	struct meeting meeting = {vb_rdma_exchange_tcp(),
				  rank,
				  size,
				  (void *)card,
				  card_bytes,
				  cards,
				  deadline_after(monotonic_ns(), timeout_ns)};
	const struct vb_tcp_place *place = arg;
	int err;

	if (!rank) {
		err = listen_at(place, &meeting.listener);
		return err ? err : host(&meeting);
	}
	err = tcp_resolve(place->host, place->port, 0, &meeting.found);
	if (err)
		return err;
	err = call_on(&meeting);
	freeaddrinfo(meeting.found);
	return err;
}

/* --- in this process --- */

int vb_exchange_board(void *arg, unsigned int rank, unsigned int size, const void *card,
		      size_t card_bytes, void *cards, uint64_t timeout_ns)
{
	struct meeting meeting = {vb_rdma_exchange_local(),
				  rank,
				  size,
				  (void *)card,
				  card_bytes,
				  cards,
				  deadline_after(monotonic_ns(), timeout_ns)};
	const struct vb_board *board = arg;
	int err;

	if (size != board->size || rank >= size)
		return fail(EPROTO, "board: rank %u of %u came to a team of %u", rank, size,
			    board->size);
	meeting.hall = board->hall;
	if (rank)
		return call_on(&meeting);
	err = meeting.exchange->listen(board->hall, BOARD_ADDRESS, &meeting.listener);
	return err ? fail(err, "board: rank 0: %s", strerrordesc_np(err)) : host(&meeting);
}

struct vb_board *vb_board_open(unsigned int size)
{
	struct vb_board *board = calloc(1, sizeof(*board));

	if (!board) {
		fail(ENOMEM, "board: no memory");
		return NULL;
	}
	board->size = size;
	board->hall = vb_rdma_hall_open();
	if (board->hall)
		return board;
	free(board);
	return NULL;
}

void vb_board_close(struct vb_board *board)
{
	if (!board)
		return;
	vb_rdma_hall_close(board->hall);
	free(board);
}
