/* SPDX-License-Identifier: MIT */
/*
 * How the ranks of a team exchange their cards over lines: each rank but 0 connects to rank 0 and
 * sends a greeting and its card; when rank 0 has all cards, it sends every rank a reply and all
 * cards. docs/agent-messages.md has the format.
 */
#include "src/connect/exchange/exchange.h"

#include "src/connect/bytes.h"
#include "src/connect/deadline.h"
#include "src/connect/object.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <verbena/channel.h>

#define GREETING_BYTES 16
#define REPLY_BYTES    8
#define HEAD	       "VBX"

/* Rank 0 keeps this many lines of strangers open beside the lines of its team. */
#define STRANGERS_MAX 16

/* The time between two attempts to connect over TCP grows from the first limit to the second: no
 * descriptor says when rank 0 begins to listen. */
#define RETRY_MIN_NS NS_PER_MS
#define RETRY_MAX_NS (100 * NS_PER_MS)

/* The time between two attempts to accept when the process has no descriptor or memory left. */
#define SHORTAGE_NS (10 * NS_PER_MS)

/* "[host]:port" */
#define ADDRESS_BYTES 300

struct vb_board {
	struct vb_rdma_hall *hall;
	uint32_t size;
};

/* A line that rank 0 has accepted. */
struct guest {
	void *line;	   /* NULL: the place is free */
	uint32_t rank;	   /* valid after the greeting */
	bool greeted;	   /* the greeting is complete */
	bool arrived;	   /* the card is complete */
	size_t have_bytes; /* of the greeting, then of the card */
	uint8_t greeting[GREETING_BYTES];
};

struct meeting {
	const struct vb_rdma_exchange *exchange;
	struct vb_rdma_hall *hall; /* the exchange's argument; NULL for TCP */
	const char *address;	   /* of rank 0 */
	uint32_t rank, size;
	const void *card;
	size_t card_bytes;
	uint8_t *cards;
	uint64_t deadline_ns; /* of CLOCK_MONOTONIC */

	/* of rank 0 */
	void *listener;
	struct guest *guests;
	struct pollfd *watched; /* a place for each guest, and one for the listener */
	uint32_t places;	/* for guests */
	uint32_t arrived;
};

/* --- lines --- */

/* The state of the lines in a hall, to be read before a look at them; without a hall 0. */
static uint64_t state_of(const struct meeting *meeting)
{
	return meeting->hall ? hall_state(meeting->hall) : 0;
}

/* Waits at most limit_ns until a descriptor is ready or the hall's state is another than seen.
 * Returns 0, or ETIMEDOUT when the time for the exchange is over. */
static int wait_for(const struct meeting *meeting, uint64_t seen, struct pollfd *watched,
		    nfds_t count, uint64_t limit_ns)
{
	uint64_t now_ns = monotonic_ns();
	uint64_t left_ns = left_until(now_ns, meeting->deadline_ns);
	struct timespec limit;

	if (!left_ns)
		return ETIMEDOUT;
	if (left_ns > limit_ns)
		left_ns = limit_ns;
	if (meeting->hall) {
		hall_wait(meeting->hall, seen, deadline_after(now_ns, left_ns));
		return 0;
	}
	limit = timespec_of(left_ns);
	ppoll(watched, count, left_ns == VB_FOREVER ? NULL : &limit, NULL);
	return 0;
}

/* Sends or receives all bytes. Returns 0, ETIMEDOUT, or the errno of the line. */
static int transfer(const struct meeting *meeting, void *line, void *bytes, size_t length_bytes,
		    bool sends)
{
	struct pollfd watched = {.fd = meeting->exchange->line_descriptor(line),
				 .events = sends ? POLLOUT : POLLIN};
	size_t done = 0;
	uint64_t seen;
	int err;

	do {
		seen = state_of(meeting);
		err = line_move(meeting->exchange, line, bytes, length_bytes, sends, &done);
	} while (err == EAGAIN && !wait_for(meeting, seen, &watched, 1, VB_FOREVER));
	return err == EAGAIN ? ETIMEDOUT : err;
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

/* Reads a complete greeting. Dismisses a stranger. Refuses a node of another team, which ends the
 * exchange with EPROTO. */
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

/* Reads what a guest has sent: its greeting, then its card. */
static int hear(struct meeting *meeting, struct guest *guest)
{
	size_t card_bytes = meeting->card_bytes;
	int err;

	if (!guest->greeted) {
		err = line_move(meeting->exchange, guest->line, guest->greeting, GREETING_BYTES,
				false, &guest->have_bytes);
		if (!err) {
			guest->greeted = true;
			guest->have_bytes = 0;
			return greet(meeting, guest);
		}
	} else {
		err = line_move(meeting->exchange, guest->line,
				meeting->cards + guest->rank * card_bytes, card_bytes, false,
				&guest->have_bytes);
		guest->arrived = !err;
		meeting->arrived += !err;
	}
	if (err && err != EAGAIN)
		dismiss(meeting, guest);
	return 0;
}

/* Hears all guests. Sets *free_place to a place for another guest, or to NULL. */
static int hear_all(struct meeting *meeting, struct guest **free_place)
{
	int err = 0;

	*free_place = NULL;
	for (uint32_t i = 0; i < meeting->places && !err; i++) {
		struct guest *guest = &meeting->guests[i];

		if (guest->line && !guest->arrived)
			err = hear(meeting, guest);
		if (!guest->line)
			*free_place = guest;
	}
	return err;
}

/* Fills the table of watched descriptors: those of the guests that are to be heard, and the
 * listener's if it may accept. Returns their number. */
static nfds_t watch(const struct meeting *meeting, bool accepts)
{
	const struct vb_rdma_exchange *exchange = meeting->exchange;
	nfds_t count = 0;

	if (accepts)
		meeting->watched[count++] = (struct pollfd){
			.fd = exchange->listener_descriptor(meeting->listener), .events = POLLIN};
	for (uint32_t i = 0; i < meeting->places; i++) {
		const struct guest *guest = &meeting->guests[i];

		if (guest->line && !guest->arrived)
			meeting->watched[count++] = (struct pollfd){
				.fd = exchange->line_descriptor(guest->line), .events = POLLIN};
	}
	return count;
}

/* Hears all guests and accepts one more, then waits for a guest if ranks are missing. */
static int collect_some(struct meeting *meeting)
{
	uint64_t seen = state_of(meeting);
	struct guest *free_place;
	int err = hear_all(meeting, &free_place);
	int refused = EAGAIN;
	bool is_short;

	if (!err && free_place)
		refused = meeting->exchange->accept(meeting->listener, &free_place->line);
	if (!refused)
		return 0;
	if (err || meeting->arrived == meeting->size - 1)
		return err;
	/* A listener that has no descriptor or memory for a line stays readable. */
	is_short = refused != EAGAIN;
	err = wait_for(meeting, seen, meeting->watched, watch(meeting, free_place && !is_short),
		       is_short ? SHORTAGE_NS : VB_FOREVER);
	return err ? fail(err, "exchange: %u of %u ranks came: %s", meeting->arrived + 1,
			  meeting->size, strerrordesc_np(err))
		   : 0;
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

static int collect_and_answer(struct meeting *meeting)
{
	int err = 0;

	memcpy(meeting->cards, meeting->card, meeting->card_bytes);
	while (!err && meeting->arrived < meeting->size - 1)
		err = collect_some(meeting);
	return err ? err : answer_all(meeting);
}

/* Closes the lines and the listener of rank 0. */
static void disband(void *arg)
{
	struct meeting *meeting = arg;

	for (uint32_t i = 0; meeting->guests && i < meeting->places; i++)
		if (meeting->guests[i].line)
			dismiss(meeting, &meeting->guests[i]);
	meeting->exchange->close_listener(meeting->listener);
	free(meeting->watched);
	free(meeting->guests);
}

/* The part of rank 0; closes the listener, also when the thread is cancelled. */
static int host(struct meeting *meeting)
{
	int err;

	meeting->places = meeting->size - 1 + STRANGERS_MAX;
	meeting->guests = calloc(meeting->places, sizeof(*meeting->guests));
	meeting->watched = calloc(meeting->places + 1, sizeof(*meeting->watched));
	pthread_cleanup_push(disband, meeting);
	if (meeting->guests && meeting->watched)
		err = collect_and_answer(meeting);
	else
		err = fail(ENOMEM, "exchange: no memory for %u guests", meeting->places);
	pthread_cleanup_pop(true);
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
		err = transfer(meeting, line, (void *)meeting->card, meeting->card_bytes, true);
	/* A rank 0 that refuses may close the line before it has the card: read its reply. */
	if (!err || err == ECONNRESET)
		err = transfer(meeting, line, reply, sizeof(reply), false);
	if (err)
		return err;
	if (check_head("reply", reply, HEAD) || get32(reply + HEAD_BYTES))
		return EPROTO;
	return transfer(meeting, line, meeting->cards, meeting->card_bytes * meeting->size, false);
}

/* Calls rank 0 once. */
static int call_once(const struct meeting *meeting)
{
	const struct vb_rdma_exchange *exchange = meeting->exchange;
	void *line;
	int err = exchange->connect(meeting->hall, meeting->address, &line);

	if (err)
		return err;
	pthread_cleanup_push(exchange->close_line, line);
	err = visit(meeting, line);
	pthread_cleanup_pop(true);
	return err;
}

static int call_on(const struct meeting *meeting)
{
	uint64_t pause_ns = RETRY_MIN_NS, seen;
	int err;

	for (;;) {
		seen = state_of(meeting);
		err = call_once(meeting);
		if (err != ECONNREFUSED && err != ECONNRESET && err != ECONNABORTED)
			break;
		/* In a hall, a rank 0 that begins to listen changes the state. */
		err = wait_for(meeting, seen, NULL, 0, meeting->hall ? VB_FOREVER : pause_ns);
		if (err)
			break;
		pause_ns = pause_ns < RETRY_MAX_NS ? pause_ns * 2 : RETRY_MAX_NS;
	}
	if (err == EPROTO)
		return fail(err, "exchange: rank 0 does not take rank %u of %u", meeting->rank,
			    meeting->size);
	return err ? fail(err, "exchange: rank %u calls rank 0 at %s: %s", meeting->rank,
			  meeting->address, strerrordesc_np(err))
		   : 0;
}

static int meet(struct meeting *meeting, uint64_t timeout_ns)
{
	int err;

	meeting->deadline_ns = deadline_after(monotonic_ns(), timeout_ns);
	if (meeting->rank)
		return call_on(meeting);
	if (!meeting->listener) {
		err = meeting->exchange->listen(meeting->hall, meeting->address,
						&meeting->listener);
		if (err)
			return fail(err, "exchange: rank 0 listens at %s: %s", meeting->address,
				    strerrordesc_np(err));
	}
	return host(meeting);
}

/* --- the two exchanges --- */

int vb_exchange_tcp(void *arg, unsigned int rank, unsigned int size, const void *card,
		    size_t card_bytes, void *cards, uint64_t timeout_ns)
{
	const struct vb_tcp_place *place = arg;
	char address[ADDRESS_BYTES];
	struct meeting meeting = {
		vb_rdma_exchange_tcp(), NULL, address, rank, size, card, card_bytes, cards};

	snprintf(address, sizeof(address), "[%s]:%u", place->host ? place->host : "*", place->port);
	/* The socket belongs to the caller, the listener has a duplicate. */
	if (!rank && place->listener >= 0 &&
	    tcp_listener_of(fcntl(place->listener, F_DUPFD_CLOEXEC, 0), &meeting.listener))
		return fail(errno, "exchange: rank 0's listener: %s", strerrordesc_np(errno));
	return meet(&meeting, timeout_ns);
}

int vb_exchange_board(void *arg, unsigned int rank, unsigned int size, const void *card,
		      size_t card_bytes, void *cards, uint64_t timeout_ns)
{
	const struct vb_board *board = arg;
	struct meeting meeting = {vb_rdma_exchange_local(),
				  board->hall,
				  "board",
				  rank,
				  size,
				  card,
				  card_bytes,
				  cards};

	if (size != board->size || rank >= size)
		return fail(EPROTO, "board: rank %u of %u came to a team of %u", rank, size,
			    board->size);
	return meet(&meeting, timeout_ns);
}

struct vb_board *vb_board_open(unsigned int size)
{
	struct vb_board *board = object_new(sizeof(*board), "board");

	if (!board)
		return NULL;
	board->size = size;
	board->hall = vb_rdma_hall_open();
	return board->hall ? board : object_drop(board, ENOMEM);
}

void vb_board_close(struct vb_board *board)
{
	if (!board)
		return;
	vb_rdma_hall_close(board->hall);
	free(board);
}
