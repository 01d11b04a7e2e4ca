/* SPDX-License-Identifier: MIT */
/* The exchange of cards over TCP and between threads, with strangers and with wrong cards. */
#include "test/connect/connect.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define SIZE 4

static int listener;
static uint16_t port;

void setUp(void)
{
	port = 0;
	listener = vb_tcp_listen("127.0.0.1", &port);
	TEST_ASSERT_MESSAGE(listener >= 0, vb_last_error());
	TEST_ASSERT_TRUE(port != 0);
}

void tearDown(void)
{
	if (listener >= 0)
		close(listener);
}

struct caller {
	vb_exchange_fn *exchange;
	void *arg;
	unsigned int rank, size;
	size_t bytes;
	uint64_t timeout_ns;
	unsigned int rounds;
	int err;
	char said[256];
};

static void *call(void *arg)
{
	struct caller *caller = arg;
	uint8_t *cards = calloc(caller->size, caller->bytes);
	uint8_t *card = malloc(caller->bytes);

	pthread_cleanup_push(free, cards);
	pthread_cleanup_push(free, card);
	for (unsigned int round = 0; round < caller->rounds && !caller->err; round++) {
		memset(card, (int)(caller->rank + round + 1), caller->bytes);
		caller->err = caller->exchange(caller->arg, caller->rank, caller->size, card,
					       caller->bytes, cards, caller->timeout_ns);
		for (unsigned int i = 0; i < caller->size && !caller->err; i++)
			for (size_t k = 0; k < caller->bytes; k++)
				if (cards[i * caller->bytes + k] != i + round + 1)
					caller->err = EBADMSG;
	}
	snprintf(caller->said, sizeof(caller->said), "%s", vb_last_error());
	pthread_cleanup_pop(true);
	pthread_cleanup_pop(true);
	return NULL;
}

static void call_all(struct caller callers[SIZE])
{
	pthread_t threads[SIZE];

	for (int i = 0; i < SIZE; i++)
		OK(pthread_create(&threads[i], NULL, call, &callers[i]));
	for (int i = 0; i < SIZE; i++)
		OK(pthread_join(threads[i], NULL));
}

static void fill(struct caller callers[SIZE], struct vb_tcp_place places[SIZE], size_t length)
{
	for (unsigned int i = 0; i < SIZE; i++) {
		places[i] = (struct vb_tcp_place){"127.0.0.1", port, i ? -1 : listener};
		callers[i] = (struct caller){vb_exchange_tcp, &places[i], i, SIZE, length,
					     20 * S,	      1,	  0, ""};
	}
}

static void all_good(const struct caller callers[SIZE])
{
	for (int i = 0; i < SIZE; i++)
		TEST_ASSERT_EQUAL_INT_MESSAGE(0, callers[i].err, callers[i].said);
}

void test_each_gets_the_cards_of_all(void)
{
	struct vb_tcp_place places[SIZE];
	struct caller callers[SIZE];

	fill(callers, places, 300);
	call_all(callers);
	all_good(callers);
}

void test_cards_of_a_megabyte_and_of_a_byte(void)
{
	struct vb_tcp_place places[SIZE];
	struct caller callers[SIZE];

	fill(callers, places, 1 << 20);
	call_all(callers);
	all_good(callers);
	fill(callers, places, 1);
	call_all(callers);
	all_good(callers);
}

void test_several_exchanges_in_a_row(void)
{
	struct vb_tcp_place places[SIZE];
	struct caller callers[SIZE];

	fill(callers, places, 64);
	for (int i = 0; i < SIZE; i++)
		callers[i].rounds = 5;
	call_all(callers);
	all_good(callers);
}

/* Rank 0 makes a new socket in each exchange; the others connect before there is one. */
void test_a_listener_of_rank_0s_own(void)
{
	struct vb_tcp_place places[SIZE];
	struct caller callers[SIZE];

	close(listener);
	listener = -1;
	fill(callers, places, 64);
	for (int i = 0; i < SIZE; i++)
		callers[i].rounds = 3;
	call_all(callers);
	all_good(callers);
}

static int stranger(const void *bytes, size_t length_bytes)
{
	struct sockaddr_in name = {.sin_family = AF_INET,
				   .sin_port = htons(port),
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	TEST_ASSERT_EQUAL_INT(0, connect(fd, (struct sockaddr *)&name, sizeof(name)));
	if (length_bytes)
		TEST_ASSERT_TRUE(send(fd, bytes, length_bytes, MSG_NOSIGNAL) ==
				 (ssize_t)length_bytes);
	return fd;
}

/* One stranger sends nothing, one half a greeting, one HTTP, and one closes at once. */
void test_strangers_harm_nobody(void)
{
	struct vb_tcp_place places[SIZE];
	struct caller callers[SIZE];
	int fds[3];

	fds[0] = stranger(NULL, 0);
	fds[1] = stranger("VBX\1", 4);
	fds[2] = stranger("GET / HTTP/1.1\r\nHost: verbena\r\n\r\n", 33);
	close(stranger("VBX", 3));
	fill(callers, places, 300);
	call_all(callers);
	all_good(callers);
	for (int i = 0; i < 3; i++)
		close(fds[i]);
}

static void one_differs(unsigned int rank, unsigned int size, size_t length)
{
	struct vb_tcp_place places[SIZE];
	struct caller callers[SIZE];

	fill(callers, places, 100);
	callers[2].rank = rank;
	callers[2].size = size;
	callers[2].bytes = length;
	for (int i = 0; i < SIZE; i++)
		callers[i].timeout_ns = 2 * S;
	call_all(callers);
	TEST_ASSERT_EQUAL_INT_MESSAGE(EPROTO, callers[0].err, callers[0].said);
	TEST_ASSERT_TRUE(callers[2].err != 0);
}

void test_a_node_with_another_size_or_length(void)
{
	one_differs(2, SIZE + 1, 100);
	one_differs(2, SIZE, 101);
}

void test_a_rank_that_comes_twice(void)
{
	one_differs(1, SIZE, 100);
}

void test_a_node_that_does_not_come(void)
{
	struct vb_tcp_place place = {"127.0.0.1", port, listener};
	uint8_t card = 1, cards[2];

	FAILS(ETIMEDOUT, vb_exchange_tcp(&place, 0, 2, &card, 1, cards, 5 * MS));
	assert_says("1 of 2 ranks came");
}

void test_nobody_listens(void)
{
	struct vb_tcp_place place = {"127.0.0.1", port, -1};
	uint8_t card = 1, cards[2];

	close(listener);
	listener = -1;
	FAILS(ETIMEDOUT, vb_exchange_tcp(&place, 1, 2, &card, 1, cards, 5 * MS));
}

void test_an_unknown_host(void)
{
	struct vb_tcp_place place = {"256.256.256.256", port, -1};
	uint8_t card = 1, cards[2];

	FAILS(EINVAL, vb_exchange_tcp(&place, 1, 2, &card, 1, cards, 5 * MS));
	assert_says("256.256.256.256");
}

/* --- threads of one process --- */

void test_a_board(void)
{
	struct vb_board *board = vb_board_open(SIZE);
	struct caller callers[SIZE];

	HAVE(board);
	for (unsigned int i = 0; i < SIZE; i++)
		callers[i] =
			(struct caller){vb_exchange_board, board, i, SIZE, 300, 20 * S, 200, 0, ""};
	call_all(callers);
	all_good(callers);
	vb_board_close(board);
}

void test_a_board_on_which_one_is_missing(void)
{
	struct vb_board *board = vb_board_open(2);
	uint8_t card = 1, cards[2];

	HAVE(board);
	FAILS(EPROTO, vb_exchange_board(board, 0, 3, &card, 1, cards, 0));
	FAILS(EPROTO, vb_exchange_board(board, 2, 2, &card, 1, cards, 0));
	FAILS(ETIMEDOUT, vb_exchange_board(board, 0, 2, &card, 1, cards, 2 * MS));
	vb_board_close(board);
}

/* --- ranks that wait --- */

#define WAIT_NS	  (200 * MS)
#define WAKES_MAX 20 /* a look each millisecond would be 200 */

/* How often this thread has gone to sleep. */
static long sleeps(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_nvcsw;
}

static void wait_in_vain(vb_exchange_fn *exchange, void *arg, unsigned int rank)
{
	uint8_t card = 1, cards[2];
	long before = sleeps();

	FAILS(ETIMEDOUT, exchange(arg, rank, 2, &card, 1, cards, WAIT_NS));
	TEST_ASSERT_LESS_THAN(WAKES_MAX, sleeps() - before);
}

void test_a_rank_that_waits_sleeps(void)
{
	struct vb_tcp_place host = {"127.0.0.1", port, listener};
	struct vb_tcp_place guest = {"127.0.0.1", port, -1};
	struct vb_board *board = vb_board_open(2);

	HAVE(board);
	wait_in_vain(vb_exchange_tcp, &host, 0);
	/* The kernel accepts the connection; nobody answers. */
	wait_in_vain(vb_exchange_tcp, &guest, 1);
	close(listener);
	listener = -1;
	wait_in_vain(vb_exchange_tcp, &guest, 1);
	wait_in_vain(vb_exchange_board, board, 0);
	wait_in_vain(vb_exchange_board, board, 1);
	vb_board_close(board);
}

static int descriptors(void)
{
	DIR *folder = opendir("/proc/self/fd");
	int count = 0;

	while (readdir(folder))
		count++;
	closedir(folder);
	return count;
}

/* Cancels a rank in its exchange: it leaves no line and no listener. */
static void cancel(vb_exchange_fn *exchange, void *arg, unsigned int rank)
{
	struct caller caller = {exchange, arg, rank, 2, 1, VB_FOREVER, 1, 0, ""};
	int before = descriptors();
	pthread_t thread;
	void *end;

	OK(pthread_create(&thread, NULL, call, &caller));
	OK(pthread_cancel(thread));
	pthread_join(thread, &end);
	TEST_ASSERT_TRUE(end == PTHREAD_CANCELED);
	TEST_ASSERT_EQUAL_INT(before, descriptors());
}

void test_a_rank_that_is_cancelled(void)
{
	struct vb_tcp_place host = {"127.0.0.1", port, listener};
	struct vb_tcp_place guest = {"127.0.0.1", port, -1};
	struct vb_board *board = vb_board_open(2);
	struct caller callers[2];
	pthread_t threads[2];

	HAVE(board);
	for (unsigned int rank = 0; rank < 2; rank++)
		for (int i = 0; i < 20; i++) {
			cancel(vb_exchange_tcp, rank ? &guest : &host, rank);
			cancel(vb_exchange_board, board, rank);
		}
	/* The board has no listener of a rank that is gone. */
	for (unsigned int i = 0; i < 2; i++) {
		callers[i] = (struct caller){vb_exchange_board, board, i, 2, 8, 20 * S, 1, 0, ""};
		OK(pthread_create(&threads[i], NULL, call, &callers[i]));
	}
	for (unsigned int i = 0; i < 2; i++) {
		pthread_join(threads[i], NULL);
		TEST_ASSERT_EQUAL_INT_MESSAGE(0, callers[i].err, callers[i].said);
	}
	vb_board_close(board);
}
