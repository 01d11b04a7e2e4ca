/* SPDX-License-Identifier: MIT */
/* Teams and barriers: all algorithms, driven by one thread and by many. */
#include "test/connect/connect.h"

#include <stdio.h>
#include <unistd.h>

#define NODES_MAX 9

static struct node nodes[NODES_MAX];
static struct vb_team *teams[NODES_MAX];
static unsigned int size;

static const enum vb_barrier algorithms[] = {VB_BARRIER_LINEAR, VB_BARRIER_TREE,
					     VB_BARRIER_DISSEMINATION};

void setUp(void)
{
	size = 0;
}

static void close_all(void)
{
	for (unsigned int i = 0; i < size; i++) {
		OK(vb_team_close(teams[i]));
		node_close(&nodes[i]);
	}
	size = 0;
}

void tearDown(void)
{
	close_all();
	assert_nothing_left();
}

static void prepare_team(unsigned int count, enum vb_sim_clock clock)
{
	fresh_world(count, clock);
	size = count;
	for (unsigned int i = 0; i < size; i++) {
		node_open(&nodes[i], i);
		teams[i] = vb_team_prepare(nodes[i].group, i, size, NULL);
		HAVE(teams[i]);
	}
}

/* The cards of all nodes; the caller frees them. */
static uint8_t *collect_cards(void)
{
	uint8_t *cards = malloc(vb_team_card_bytes(size) * size);

	for (unsigned int i = 0; i < size; i++)
		vb_team_card(teams[i], cards + vb_team_card_bytes(size) * i);
	return cards;
}

static void join_team(unsigned int count)
{
	uint8_t *cards;

	prepare_team(count, VB_SIM_CLOCK_VIRTUAL);
	cards = collect_cards();
	for (unsigned int i = 0; i < size; i++)
		OK(vb_team_connect(teams[i], cards));
	free(cards);
}

/* Polls the nodes that entered, until all have left or the rounds are over. Returns how many
 * left. */
static unsigned int drive(const bool *entered)
{
	bool left[NODES_MAX] = {false};
	unsigned int out = 0;

	for (int round = 0; round < 200; round++) {
		for (unsigned int i = 0; i < size; i++) {
			int err = entered[i] && !left[i] ? vb_barrier_poll(teams[i]) : EAGAIN;

			if (err == EAGAIN)
				continue;
			OK(err);
			left[i] = true;
			out++;
		}
	}
	return out;
}

/* No node leaves before the last one enters, whichever node is the last. */
static void hold_by_each(enum vb_barrier algorithm)
{
	for (unsigned int last = 0; last < size; last++) {
		bool entered[NODES_MAX] = {false};

		for (unsigned int i = 0; i < size; i++) {
			if (i == last)
				continue;
			OK(vb_barrier_enter(teams[i], algorithm));
			entered[i] = true;
		}
		/* No node leaves. */
		if (size > 1)
			TEST_ASSERT_EQUAL_UINT(0, drive(entered));
		OK(vb_barrier_enter(teams[last], algorithm));
		entered[last] = true;
		TEST_ASSERT_EQUAL_UINT(size, drive(entered));
	}
}

void test_nobody_leaves_before_all_have_entered(void)
{
	for (unsigned int count = 1; count <= NODES_MAX; count++) {
		join_team(count);
		for (int i = 0; i < 3; i++)
			hold_by_each(algorithms[i]);
		close_all();
	}
}

/* A node may enter the next barrier while others are still in this one. */
void test_barriers_one_after_another_by_changing_algorithms(void)
{
	unsigned int done[8] = {0};
	bool in[8] = {false};

	join_team(8);
	for (int round = 0; round < 100000; round++) {
		unsigned int i = (unsigned int)(round * 5) % 8;
		int err;

		if (done[i] == 30)
			continue;
		if (!in[i])
			OK(vb_barrier_enter(teams[i], algorithms[done[i] % 3]));
		in[i] = true;
		err = vb_barrier_poll(teams[i]);
		if (err == EAGAIN)
			continue;
		OK(err);
		in[i] = false;
		done[i]++;
		for (unsigned int k = 0; k < 8; k++)
			TEST_ASSERT_TRUE(done[k] + 1 >= done[i]);
	}
	for (unsigned int i = 0; i < 8; i++)
		TEST_ASSERT_EQUAL_UINT(30, done[i]);
}

void test_barriers_over_a_bad_network(void)
{
	const struct vb_fault_rule drop = {.action = VB_FAULT_DROP, .probability = 0.15};

	join_team(5);
	OK(vb_fault_add(NULL, &drop, NULL));
	for (int round = 0; round < 6; round++) {
		bool entered[NODES_MAX] = {true, true, true, true, true};

		for (unsigned int i = 0; i < size; i++)
			OK(vb_barrier_enter(teams[i], algorithms[round % 3]));
		TEST_ASSERT_EQUAL_UINT(size, drive(entered));
	}
}

void test_the_users_channels_are_beside_the_barrier(void)
{
	struct vb_slice from, into;
	struct vb_work work;

	join_team(3);
	from = slice(&nodes[0], 0, 8);
	into = slice(&nodes[2], 0, 8);
	TEST_ASSERT_NULL(vb_team_channel(teams[0], 0));
	TEST_ASSERT_NULL(vb_team_channel(teams[0], 3));
	TEST_ASSERT_EQUAL_UINT(2, vb_team_rank(teams[2]));
	TEST_ASSERT_EQUAL_UINT(3, vb_team_size(teams[2]));
	memcpy(bytes(&nodes[0], 0), "0 to 2..", 8);
	OK(vb_channel_receive(vb_team_channel(teams[2], 0), &into, &work));
	OK(vb_channel_send(vb_team_channel(teams[0], 2), &from, NULL));
	OK(vb_work_wait(work, VB_FOREVER, NULL));
	TEST_ASSERT_EQUAL_MEMORY("0 to 2..", bytes(&nodes[2], 0), 8);
}

void test_a_team_of_one(void)
{
	join_team(1);
	for (int i = 0; i < 3; i++) {
		OK(vb_barrier_enter(teams[0], algorithms[i]));
		OK(vb_barrier_wait(teams[0], 0));
	}
}

/* --- what is refused --- */

void test_invalid_ranks_and_sizes(void)
{
	join_team(1);
	TEST_ASSERT_NULL(vb_team_prepare(nodes[0].group, 2, 2, NULL));
	TEST_ASSERT_EQUAL_INT(EINVAL, errno);
	TEST_ASSERT_NULL(vb_team_prepare(nodes[0].group, 0, 0, NULL));
	TEST_ASSERT_NULL(vb_team_prepare(nodes[0].group, 0, VB_TEAM_SIZE_MAX + 1, NULL));
	assert_says("rank 0 of 1025");
}

void test_entering_twice_and_polling_outside(void)
{
	join_team(2);
	FAILS(EINVAL, vb_barrier_poll(teams[0]));
	FAILS(EINVAL, vb_barrier_wait(teams[0], 0));
	OK(vb_barrier_enter(teams[0], VB_BARRIER_TREE));
	FAILS(EALREADY, vb_barrier_enter(teams[0], VB_BARRIER_TREE));
	FAILS(EINVAL, vb_barrier_enter(teams[1], (enum vb_barrier)3));
	TEST_ASSERT_EQUAL_STRING("tree", vb_barrier_name(VB_BARRIER_TREE));
	TEST_ASSERT_NULL(vb_barrier_name((enum vb_barrier)3));
}

void test_a_team_that_is_not_connected(void)
{
	prepare_team(2, VB_SIM_CLOCK_VIRTUAL);
	FAILS(ENOTCONN, vb_barrier_enter(teams[0], VB_BARRIER_TREE));
}

static void spoilt(size_t at, uint8_t value, int err, const char *says)
{
	uint8_t *cards = collect_cards();

	cards[vb_team_card_bytes(size) + at] = value;
	FAILS(err, vb_team_connect(teams[0], cards));
	assert_says(says);
	free(cards);
}

void test_malformed_cards_change_nothing(void)
{
	uint8_t *cards;

	prepare_team(2, VB_SIM_CLOCK_VIRTUAL);
	spoilt(0, 'x', EPROTO, "team: rank 1: card: it begins with 0x784254");
	spoilt(3, 7, EPROTONOSUPPORT, "team: rank 1: card: version 7");
	spoilt(7, 0, EBADMSG, "is of rank 0 of 2");
	spoilt(11, 3, EBADMSG, "is of rank 1 of 3");
	spoilt(12, 'x', EPROTO, "the card of rank 1: ");
	spoilt(12 + 32 + 4, 9, EBADMSG, "the card of rank 1: ");
	cards = collect_cards();
	OK(vb_team_connect(teams[0], cards));
	FAILS(EISCONN, vb_team_connect(teams[0], cards));
	OK(vb_team_connect(teams[1], cards));
	free(cards);
}

/* --- what goes wrong --- */

void test_different_algorithms_are_seen(void)
{
	int errs[2];

	join_team(2);
	OK(vb_barrier_enter(teams[0], VB_BARRIER_LINEAR));
	OK(vb_barrier_enter(teams[1], VB_BARRIER_DISSEMINATION));
	for (int round = 0; round < 20; round++)
		for (int i = 0; i < 2; i++)
			if (!round || errs[i] == EAGAIN)
				errs[i] = vb_barrier_poll(teams[i]);
	TEST_ASSERT_TRUE(errs[0] == EPROTO || errs[1] == EPROTO);
	FAILS(ENOTCONN, vb_barrier_enter(teams[errs[0] == EPROTO ? 0 : 1], VB_BARRIER_TREE));
	assert_says("an earlier barrier failed");
}

void test_a_wait_for_a_node_that_does_not_come(void)
{
	join_team(3);
	OK(vb_barrier_enter(teams[0], VB_BARRIER_LINEAR));
	FAILS(ETIMEDOUT, vb_barrier_wait(teams[0], 7 * MS));
	TEST_ASSERT_EQUAL_UINT64(7 * MS, vb_sim_now_ns(NULL));
	assert_says("barrier: rank 0, step 0 of 4");
	FAILS(EDEADLK, vb_barrier_wait(teams[0], VB_FOREVER));
}

void test_a_node_that_died(void)
{
	join_team(3);
	OK(vb_sim_kill_device(nodes[1].device->context));
	OK(vb_barrier_enter(teams[0], VB_BARRIER_DISSEMINATION));
	FAILS(EIO, vb_barrier_wait(teams[0], VB_FOREVER));
	assert_says("rank 1 does not answer");
	FAILS(ENOTCONN, vb_barrier_enter(teams[0], VB_BARRIER_DISSEMINATION));
}

/* --- threads --- */

#define PHASES 20

struct walker {
	unsigned int rank;
	vb_exchange_fn *exchange;
	void *arg;
	pthread_barrier_t *start;
	unsigned int *phases; /* of all nodes; each writes its own */
	int err;
};

/* No node is more than one phase ahead of another. */
static int walk(struct walker *walker)
{
	struct vb_team *team = teams[walker->rank];
	int err = vb_team_join(team, walker->exchange, walker->arg, 20 * S);

	for (unsigned int phase = 1; phase <= PHASES && !err; phase++) {
		__atomic_store_n(&walker->phases[walker->rank], phase, __ATOMIC_SEQ_CST);
		err = vb_barrier_enter(team, algorithms[phase % 3]);
		if (!err)
			err = vb_barrier_wait(team, 60 * S);
		for (unsigned int i = 0; i < size && !err; i++)
			if (__atomic_load_n(&walker->phases[i], __ATOMIC_SEQ_CST) < phase)
				err = EBADMSG;
	}
	return err;
}

static void *walker_main(void *arg)
{
	struct walker *walker = arg;

	vb_sim_thread_enter(NULL);
	pthread_barrier_wait(walker->start);
	walker->err = walk(walker);
	if (walker->err)
		fprintf(stderr, "rank %u: %s\n", walker->rank, vb_last_error());
	vb_sim_thread_leave(NULL);
	return NULL;
}

static void walk_all(vb_exchange_fn *exchange, void *args[NODES_MAX])
{
	unsigned int phases[NODES_MAX] = {0};
	struct walker walkers[NODES_MAX];
	pthread_t threads[NODES_MAX];
	pthread_barrier_t start;

	pthread_barrier_init(&start, NULL, size);
	for (unsigned int i = 0; i < size; i++) {
		walkers[i] = (struct walker){i, exchange, args[i], &start, phases, 0};
		OK(pthread_create(&threads[i], NULL, walker_main, &walkers[i]));
	}
	for (unsigned int i = 0; i < size; i++)
		OK(pthread_join(threads[i], NULL));
	pthread_barrier_destroy(&start);
	for (unsigned int i = 0; i < size; i++)
		OK(walkers[i].err);
}

static void walk_by_board(enum vb_sim_clock clock)
{
	struct vb_board *board = vb_board_open(5);
	void *args[NODES_MAX] = {board, board, board, board, board};

	HAVE(board);
	prepare_team(5, clock);
	walk_all(vb_exchange_board, args);
	vb_board_close(board);
}

void test_threads_on_the_virtual_clock(void)
{
	walk_by_board(VB_SIM_CLOCK_VIRTUAL);
}

void test_threads_on_the_real_clock(void)
{
	walk_by_board(VB_SIM_CLOCK_REAL);
}

void test_threads_that_meet_over_tcp(void)
{
	struct vb_tcp_place places[4];
	void *args[NODES_MAX];
	uint16_t port = 0;
	int listener = vb_tcp_listen("127.0.0.1", &port);

	TEST_ASSERT_TRUE(listener >= 0);
	for (int i = 0; i < 4; i++) {
		places[i] = (struct vb_tcp_place){"127.0.0.1", port, i ? -1 : listener};
		args[i] = &places[i];
	}
	prepare_team(4, VB_SIM_CLOCK_REAL);
	walk_all(vb_exchange_tcp, args);
	close(listener);
}
