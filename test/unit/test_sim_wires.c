/* SPDX-License-Identifier: MIT */
/*
 * The real clock with wires: who receives what comes, when peers must ring, and how a process that did not
 * run for a while goes on. The wire is a number that a peer's thread counts up.
 */
#include "backends/sim/base/clock_now.h"
#include "backends/sim/clock/private.h"
#include "sim/engine.h"
#include "unity.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Packets come one by one; a batch is one. */
struct fake_wire {
	_Atomic uint32_t sent;	   /* by the peer */
	_Atomic uint32_t received; /* by the driver */
	_Atomic uint32_t flushes;
	_Atomic uint32_t looks; /* calls of receive() */
	_Atomic bool listened;
	_Atomic uint32_t ignored; /* counts the ends of listening */
	struct bell bell;
};

static struct driver driver;
static struct fake_wire wire;

static bool has_arrivals(void *arg)
{
	const struct fake_wire *fake = arg;

	return atomic_load(&fake->received) != atomic_load(&fake->sent);
}

static bool receive(void *arg)
{
	struct fake_wire *fake = arg;

	atomic_fetch_add(&fake->looks, 1);
	if (atomic_load(&fake->received) == atomic_load(&fake->sent))
		return false;
	atomic_fetch_add(&fake->received, 1);
	driver_changed(&driver);
	return true;
}

static void flush(void *arg)
{
	atomic_fetch_add(&((struct fake_wire *)arg)->flushes, 1);
}

static void set_listened(void *arg, bool on)
{
	struct fake_wire *fake = arg;

	atomic_store(&fake->listened, on);
	atomic_fetch_add(&fake->ignored, !on);
}

/* Whether QPs wait for room. */
static _Atomic bool awaited;

bool __wrap_sim_way_out_is_awaited(const struct sim_engine *engine);
bool __wrap_sim_way_out_is_awaited(const struct sim_engine *engine)
{
	return atomic_load(&awaited);
}

/* Counts the yields of all threads but the main one. In the tests that read it, only the progress thread yields, while
 * it rests or watches its bell. */
static _Atomic uint32_t yields;
static pthread_t main_thread;

int __real_sched_yield(void);
int __wrap_sched_yield(void);
int __wrap_sched_yield(void)
{
	if (!pthread_equal(pthread_self(), main_thread))
		atomic_fetch_add(&yields, 1);
	return __real_sched_yield();
}

/* Set while the progress thread stays where it has left the bell, as without a processor. */
static _Atomic bool starved;

static void starve(void)
{
	while (atomic_load(&starved))
		__real_sched_yield();
}

/* Counts the sleeps of the progress thread, and its watches of the bell. */
static _Atomic uint32_t sleeps, watched;

/* Set: no watch sees the bell ring, as if the thread had no processor meanwhile. */
static _Atomic bool blind;

/* So many watches bring a packet and see the bell ring. */
static _Atomic uint32_t answers;

bool __real_bell_watch(const struct bell *bell, uint32_t seen, uint64_t until_ns);
bool __wrap_bell_watch(const struct bell *bell, uint32_t seen, uint64_t until_ns);
bool __wrap_bell_watch(const struct bell *bell, uint32_t seen, uint64_t until_ns)
{
	const bool rung = __real_bell_watch(bell, seen, atomic_load(&blind) ? 0 : until_ns);

	atomic_fetch_add(&watched, 1);
	if (atomic_load(&answers)) {
		atomic_fetch_sub(&answers, 1);
		atomic_fetch_add(&wire.sent, 1);
		return true;
	}
	starve();
	return rung;
}

/* Set: only a ring ends a sleep; and another process undoes the ring that comes just before the sleep. */
static _Atomic bool endless, forgetful;

void __real_bell_wait(struct bell *bell, uint32_t seen, uint64_t until_ns);
void __wrap_bell_wait(struct bell *bell, uint32_t seen, uint64_t until_ns);
void __wrap_bell_wait(struct bell *bell, uint32_t seen, uint64_t until_ns)
{
	atomic_fetch_add(&sleeps, 1);
	if (atomic_load(&forgetful)) {
		while (atomic_load(&bell->rings) == seen)
			__real_sched_yield();
		atomic_store(&bell->rings, seen);
	}
	__real_bell_wait(bell, seen, atomic_load(&endless) ? UINT64_MAX : until_ns);
	starve();
}

static const struct driver_wires wires = {&wire, has_arrivals, receive, flush, set_listened};

static uint64_t now_ns(void *arg)
{
	return driver_now_ns(&driver);
}

void setUp(void)
{
	const struct sim_host host = {.now_ns = now_ns};

	alarm(60);
	memset(&wire, 0, sizeof(wire));
	atomic_store(&awaited, false);
	atomic_store(&starved, false);
	atomic_store(&blind, false);
	atomic_store(&endless, false);
	atomic_store(&forgetful, false);
	atomic_store(&watched, 0);
	atomic_store(&answers, 0);
	main_thread = pthread_self();
	driver_init(&driver, true);
	TEST_ASSERT_EQUAL_INT(0, sim_engine_create(&host, 1, &driver.engine));
	driver_set_wires(&driver, &wires, &wire.bell);
}

void tearDown(void)
{
	atomic_store(&starved, false);
	while (driver.users)
		driver_stop(&driver);
	sim_engine_destroy(driver.engine);
	driver_end(&driver);
	alarm(0);
}

static void start(void)
{
	pthread_mutex_lock(&driver.mutex);
	TEST_ASSERT_EQUAL_INT(0, driver_start(&driver));
	pthread_mutex_unlock(&driver.mutex);
}

/* What a poll does on the real clock. */
static void poll_once(void)
{
	pthread_mutex_lock(&driver.mutex);
	driver_poll(&driver);
	pthread_mutex_unlock(&driver.mutex);
}

/* A peer that rings only where somebody listens, as the wire shared does. */
static void send_one(void)
{
	atomic_fetch_add(&wire.sent, 1);
	if (bell_is_heard(&wire.bell))
		bell_ring(&wire.bell);
}

/* Polls, while peers ring: the progress thread looks at each ring. */
static void poll_until_ignored(void)
{
	for (unsigned int i = 0; atomic_load(&wire.listened); i++) {
		if (i % 64 == 0)
			bell_ring(&wire.bell);
		poll_once();
	}
}

static void wait_until_listened(void)
{
	while (!atomic_load(&wire.listened))
		sched_yield();
}

static void wait_until_received(void)
{
	while (atomic_load(&wire.received) != atomic_load(&wire.sent))
		sched_yield();
}

static bool has_received(const void *arg)
{
	return atomic_load(&wire.received) >= *(const uint32_t *)arg;
}

void test_a_process_outside_of_verbs_takes_what_comes(void)
{
	start();
	wait_until_listened();
	for (unsigned int i = 0; i < 100; i++) {
		send_one();
		wait_until_received();
	}
	TEST_ASSERT_TRUE(atomic_load(&wire.flushes) >= 100);
}

/* Sends a packet, and returns once the progress thread sleeps again. */
static void send_one_and_sleep(void)
{
	const uint32_t before = atomic_load(&sleeps);

	send_one();
	wait_until_received();
	while (atomic_load(&sleeps) == before)
		sched_yield();
}

/* A watch takes the processor from a program that needs it to answer. */
void test_watches_in_vain_become_rare(void)
{
	start();
	wait_until_listened();
	atomic_store(&blind, true);
	for (unsigned int i = 0; i < 1 + 2 + 4 + 8; i++)
		send_one_and_sleep();
	TEST_ASSERT_TRUE(atomic_load(&watched) >= 3);
	TEST_ASSERT_TRUE(atomic_load(&watched) <= 5);
}

void test_watches_go_on_while_they_pay(void)
{
	start();
	wait_until_listened();
	atomic_store(&answers, 100);
	send_one();
	while (atomic_load(&wire.received) < 101)
		sched_yield();
	TEST_ASSERT_TRUE(atomic_load(&watched) >= 100);
}

/* The receiver of a full ring may have ended: nobody rings then. */
void test_the_progress_thread_looks_on_while_qps_wait_for_room(void)
{
	uint32_t before;

	start();
	wait_until_listened();
	atomic_store(&awaited, true);
	pthread_mutex_lock(&driver.mutex);
	driver_catch_up(&driver);
	pthread_mutex_unlock(&driver.mutex);
	before = atomic_load(&wire.looks);
	while (atomic_load(&wire.looks) - before < 3)
		sched_yield();
}

/* A burst of more than a batch behind one ring. */
void test_one_ring_is_enough_for_all_that_came(void)
{
	start();
	wait_until_listened();
	pthread_mutex_lock(&driver.mutex);
	atomic_fetch_add(&wire.sent, 1000);
	bell_ring(&wire.bell);
	pthread_mutex_unlock(&driver.mutex);
	wait_until_received();
}

/* The looks of the progress thread follow each other as closely as polls. */
void test_peers_ring_on_while_only_the_progress_thread_looks(void)
{
	uint32_t before;

	start();
	wait_until_listened();
	before = atomic_load(&wire.ignored);
	for (unsigned int i = 0; i < 20; i++) {
		atomic_fetch_add(&wire.sent, 1000);
		bell_ring(&wire.bell);
		wait_until_received();
	}
	TEST_ASSERT_EQUAL_UINT32(before, atomic_load(&wire.ignored));
	TEST_ASSERT_TRUE(atomic_load(&wire.listened));
}

/* Packets come and peers ring without end; the progress thread lets a thread in that waits for the mutex. */
void test_an_endless_stream_leaves_the_mutex_to_others(void)
{
	start();
	wait_until_listened();
	atomic_store(&wire.sent, UINT32_MAX / 2);
	bell_ring(&wire.bell);
	for (unsigned int i = 0; i < 20; i++) {
		const uint32_t before = atomic_load(&wire.received);

		while (atomic_load(&wire.received) - before < 100)
			sched_yield();
		pthread_mutex_lock(&driver.mutex);
		pthread_mutex_unlock(&driver.mutex);
	}
	pthread_mutex_lock(&driver.mutex);
	atomic_store(&wire.sent, atomic_load(&wire.received));
	pthread_mutex_unlock(&driver.mutex);
}

static void *lock_until_yields(void *arg)
{
	while (!atomic_load(&yields)) {
		pthread_mutex_lock(&driver.mutex);
		pthread_mutex_unlock(&driver.mutex);
	}
	return NULL;
}

/* The progress thread is busy for 20 ms, and rests only for a thread that wants the mutex. */
void test_a_busy_progress_thread_rests_for_others_only(void)
{
	const uint64_t begin_ns = clock_now_ns(CLOCK_MONOTONIC);
	uint32_t seen;
	pthread_t other;

	start();
	wait_until_listened();
	atomic_store(&wire.sent, UINT32_MAX / 2);
	bell_ring(&wire.bell);
	while (!atomic_load(&wire.received))
		sched_yield();
	atomic_store(&yields, 0);
	do {
		seen = atomic_load(&wire.received);
		while (atomic_load(&wire.received) - seen < 100)
			;
	} while (clock_now_ns(CLOCK_MONOTONIC) - begin_ns < 20 * 1000000);
	TEST_ASSERT_EQUAL_UINT32(0, atomic_load(&yields));
	TEST_ASSERT_EQUAL_INT(0, pthread_create(&other, NULL, lock_until_yields, NULL));
	pthread_join(other, NULL);
	pthread_mutex_lock(&driver.mutex);
	atomic_store(&wire.sent, atomic_load(&wire.received));
	pthread_mutex_unlock(&driver.mutex);
}

/* Each poll receives; the first ring tells the progress thread that the program polls. */
void test_peers_of_a_busy_poller_need_not_ring(void)
{
	start();
	wait_until_listened();
	poll_until_ignored();
	atomic_fetch_add(&wire.sent, 1);
	poll_once();
	TEST_ASSERT_EQUAL_UINT(1, atomic_load(&wire.received));
}

/* A program that polls with a real-time priority keeps the progress thread from running. */
void test_peers_of_a_poller_need_not_ring_if_the_progress_thread_cannot_run(void)
{
	start();
	wait_until_listened();
	atomic_store(&starved, true);
	/* Nobody rings: the thread sleeps until the polls wake it. */
	while (atomic_load(&wire.listened)) {
		atomic_fetch_add(&wire.sent, 1);
		poll_once();
	}
	atomic_fetch_add(&wire.sent, 1);
	poll_once();
	TEST_ASSERT_EQUAL_UINT(atomic_load(&wire.sent), atomic_load(&wire.received));
	/* The thread was woken: it listens once it runs and nobody polls. */
	atomic_store(&starved, false);
	wait_until_listened();
	send_one();
	wait_until_received();
}

/* Polls for so long, at this interval. */
static void poll_for(uint64_t duration_ns, uint64_t interval_ns)
{
	const uint64_t begin_ns = clock_now_ns(CLOCK_MONOTONIC);
	uint64_t next_ns = begin_ns;

	while (next_ns < begin_ns + duration_ns) {
		while (clock_now_ns(CLOCK_MONOTONIC) < next_ns)
			;
		for (unsigned int i = 0; i < 16; i++)
			poll_once();
		next_ns = clock_now_ns(CLOCK_MONOTONIC) + interval_ns;
	}
}

/* Polls for 10 ms, while the progress thread cannot run. Peers ring all the time. */
static void expect_rings(void)
{
	atomic_store(&starved, true);
	poll_for(10000000, 0);
	TEST_ASSERT_TRUE(atomic_load(&wire.listened));
	TEST_ASSERT_EQUAL_UINT32(0, atomic_load(&wire.ignored));
}

/* Polls, until peers ring no more. */
static void expect_no_rings(void)
{
	while (atomic_load(&wire.listened))
		poll_once();
	atomic_store(&starved, false);
}

/* One thread polls, and another one waits for the events of an armed CQ. */
void test_peers_of_a_poller_ring_for_an_armed_cq(void)
{
	start();
	wait_until_listened();
	pthread_mutex_lock(&driver.mutex);
	driver_armed(&driver);
	pthread_mutex_unlock(&driver.mutex);
	expect_rings();
	pthread_mutex_lock(&driver.mutex);
	driver_disarmed(&driver);
	pthread_mutex_unlock(&driver.mutex);
	expect_no_rings();
}

void test_peers_of_a_poller_ring_for_a_thread_that_waits(void)
{
	start();
	wait_until_listened();
	pthread_mutex_lock(&driver.mutex);
	driver.asleep++;
	pthread_mutex_unlock(&driver.mutex);
	expect_rings();
	pthread_mutex_lock(&driver.mutex);
	driver.asleep--;
	pthread_mutex_unlock(&driver.mutex);
	expect_no_rings();
}

/* Packets came that no poll has taken: the program polls now and then only, perhaps. */
void test_peers_of_a_poller_ring_longer_after_packets_that_no_poll_has_taken(void)
{
	uint64_t begin_ns;

	start();
	wait_until_listened();
	atomic_store(&starved, true);
	pthread_mutex_lock(&driver.mutex);
	driver.looks_to_listen = 8;
	pthread_mutex_unlock(&driver.mutex);
	begin_ns = clock_now_ns(CLOCK_MONOTONIC);
	expect_no_rings();
	TEST_ASSERT_TRUE(clock_now_ns(CLOCK_MONOTONIC) - begin_ns > 9 * 2000000);
}

/* The progress thread decides while it runs. */
void test_peers_of_a_poller_ring_while_the_progress_thread_looks(void)
{
	const uint64_t begin_ns = clock_now_ns(CLOCK_MONOTONIC);

	start();
	wait_until_listened();
	atomic_store(&starved, true);
	while (clock_now_ns(CLOCK_MONOTONIC) - begin_ns < 10000000) {
		pthread_mutex_lock(&driver.mutex);
		driver.looked_ns = sim_engine_now_ns(driver.engine);
		driver_poll(&driver);
		pthread_mutex_unlock(&driver.mutex);
	}
	TEST_ASSERT_EQUAL_UINT32(0, atomic_load(&wire.ignored));
	expect_no_rings();
}

/* The progress thread takes packets that come between two polls. */
void test_peers_ring_while_the_program_polls_now_and_then(void)
{
	start();
	wait_until_listened();
	atomic_store(&starved, true);
	poll_for(10000000, 1000000);
	TEST_ASSERT_TRUE(atomic_load(&wire.listened));
	TEST_ASSERT_EQUAL_UINT32(0, atomic_load(&wire.ignored));
	atomic_store(&starved, false);
	send_one();
	wait_until_received();
}

void test_the_progress_thread_listens_once_nobody_polls(void)
{
	start();
	wait_until_listened();
	poll_until_ignored();
	wait_until_listened();
	send_one();
	wait_until_received();
}

/* Idle: no look of the progress thread between two packets, however long that is. The look that follows the last
 * packet comes when the thread gets a processor. */
void test_an_idle_process_sleeps(void)
{
	const struct timespec while_idle = {.tv_nsec = 50000000};
	uint32_t flushes;

	start();
	wait_until_listened();
	send_one();
	wait_until_received();
	wait_until_listened();
	do {
		flushes = atomic_load(&wire.flushes);
		nanosleep(&while_idle, NULL);
	} while (flushes != atomic_load(&wire.flushes));
}

/* What came while nobody listened is there when driver_listen() returns. */
void test_listening_begins_with_a_look(void)
{
	start();
	wait_until_listened();
	poll_until_ignored();
	pthread_mutex_lock(&driver.mutex);
	atomic_fetch_add(&wire.sent, 1);
	driver_armed(&driver);
	TEST_ASSERT_EQUAL_UINT(1, atomic_load(&wire.received));
	TEST_ASSERT_TRUE(atomic_load(&wire.listened));
	pthread_mutex_unlock(&driver.mutex);
}

/* While a CQ is armed, polls do not end the listening: the program may sleep after each of them. */
void test_an_armed_cq_is_listened_for(void)
{
	start();
	pthread_mutex_lock(&driver.mutex);
	driver_armed(&driver);
	pthread_mutex_unlock(&driver.mutex);
	for (unsigned int i = 0; i < 1000; i++) {
		poll_once();
		bell_ring(&wire.bell);
		TEST_ASSERT_TRUE(atomic_load(&wire.listened));
	}
	pthread_mutex_lock(&driver.mutex);
	driver_disarmed(&driver);
	pthread_mutex_unlock(&driver.mutex);
	poll_until_ignored();
}

static void *wait_for_one(void *arg)
{
	static const uint32_t one = 1;

	(void)arg;
	pthread_mutex_lock(&driver.mutex);
	driver_wait(&driver, has_received, &one);
	pthread_mutex_unlock(&driver.mutex);
	return NULL;
}

static bool somebody_waits(void)
{
	bool waits;

	pthread_mutex_lock(&driver.mutex);
	waits = driver.asleep;
	pthread_mutex_unlock(&driver.mutex);
	return waits;
}

/* One thread polls, another one waits: its packet rings. */
void test_a_thread_that_waits_is_listened_for(void)
{
	pthread_t thread;

	start();
	TEST_ASSERT_EQUAL_INT(0, pthread_create(&thread, NULL, wait_for_one, NULL));
	while (!somebody_waits())
		sched_yield();
	for (unsigned int i = 0; i < 1000; i++) {
		poll_once();
		bell_ring(&wire.bell);
		TEST_ASSERT_TRUE(atomic_load(&wire.listened));
	}
	send_one();
	TEST_ASSERT_EQUAL_INT(0, pthread_join(thread, NULL));
	poll_until_ignored();
}

static uint64_t looked_ns(void)
{
	uint64_t ns;

	pthread_mutex_lock(&driver.mutex);
	ns = driver.looked_ns;
	pthread_mutex_unlock(&driver.mutex);
	return ns;
}

/* Polls, and wakes the progress thread for a look. heard_ns 0: the polls do not take the thread for starved, however
 * long it waits for a processor. */
static void poll_until_looked(void)
{
	const uint64_t before_ns = looked_ns();

	bell_ring(&wire.bell);
	while (looked_ns() == before_ns) {
		pthread_mutex_lock(&driver.mutex);
		driver.heard_ns = 0;
		driver_poll(&driver);
		pthread_mutex_unlock(&driver.mutex);
	}
}

/* A program that polls now and then only is woken for some time still, and then polls alone. */
void test_listening_goes_on_after_packets_that_no_poll_has_taken(void)
{
	unsigned int looks = 0;

	start();
	wait_until_listened();
	for (unsigned int i = 0; i < 200; i++) {
		send_one();
		wait_until_received();
	}
	for (; atomic_load(&wire.listened); looks++)
		poll_until_looked();
	TEST_ASSERT_TRUE(looks >= 32);
}

/* --- no wake-up is lost --- */

#define ROUNDS 20000

/* On a busy machine a round takes several turns of a processor: fewer rounds are enough. */
#define ROUNDS_NS UINT64_C(10000000000)

static _Atomic bool enough;

static void *peer(void *arg)
{
	uint64_t random = 1;

	for (uint32_t i = 0; i < ROUNDS && !atomic_load(&enough); i++) {
		/* Before, while and after the other thread begins to wait. */
		for (uint64_t spins = sim_random_next(&random) % 2000; spins; spins--)
			atomic_signal_fence(memory_order_seq_cst);
		send_one();
		while (atomic_load(&wire.received) <= i)
			sched_yield();
	}
	return NULL;
}

/* The program polls busily for a while, so that nobody listens, and waits in a verb then. */
void test_no_arrival_is_lost_between_polling_and_waiting(void)
{
	const uint64_t until_ns = clock_now_ns(CLOCK_MONOTONIC) + ROUNDS_NS;
	uint64_t random = 2;
	pthread_t thread;

	atomic_store(&enough, false);
	start();
	TEST_ASSERT_EQUAL_INT(0, pthread_create(&thread, NULL, peer, NULL));
	for (uint32_t i = 1; i <= ROUNDS && clock_now_ns(CLOCK_MONOTONIC) < until_ns; i++) {
		for (uint64_t polls = sim_random_next(&random) % 20;
		     polls && atomic_load(&wire.received) < i; polls--)
			poll_once();
		pthread_mutex_lock(&driver.mutex);
		if (!has_received(&i))
			TEST_ASSERT_EQUAL_INT(0, driver_wait(&driver, has_received, &i));
		pthread_mutex_unlock(&driver.mutex);
	}
	atomic_store(&enough, true);
	TEST_ASSERT_EQUAL_INT(0, pthread_join(thread, NULL));
}

/* --- words of the bell that another process overwrites --- */

static void start_and_sleep(void)
{
	atomic_store(&endless, true);
	start();
	while (!atomic_load(&wire.bell.asleep))
		sched_yield();
	atomic_store(&wire.bell.asleep, 0);
}

void test_a_thread_that_nobody_counts_is_joined(void)
{
	start_and_sleep();
	driver_stop(&driver);
	TEST_ASSERT_FALSE(atomic_load(&driver.at_bell));
}

void test_a_thread_that_nobody_counts_leaves_the_bell(void)
{
	start_and_sleep();
	pthread_mutex_lock(&driver.mutex);
	driver_set_wires(&driver, NULL, NULL);
	TEST_ASSERT_FALSE(atomic_load(&driver.at_bell));
	atomic_store(&endless, false);
	pthread_mutex_unlock(&driver.mutex);
}

void test_a_thread_whose_ring_is_undone_is_joined(void)
{
	const uint32_t before = atomic_load(&sleeps);

	atomic_store(&endless, true);
	atomic_store(&forgetful, true);
	start();
	while (atomic_load(&sleeps) == before)
		sched_yield();
	driver_stop(&driver);
	TEST_ASSERT_FALSE(atomic_load(&driver.at_bell));
}

/* Returns true if the progress thread sleeps for as long as it may. */
static bool sleeps_long(void)
{
	bool sleeps_now;

	pthread_mutex_lock(&driver.mutex);
	sleeps_now = driver.asleep_until_ns > driver_now_ns(&driver) + UINT64_C(500000000);
	pthread_mutex_unlock(&driver.mutex);
	return sleeps_now;
}

/* A program that waits gets its packet late, but gets it. */
void test_a_packet_for_which_nobody_rings_comes(void)
{
	pthread_t thread;

	start();
	TEST_ASSERT_EQUAL_INT(0, pthread_create(&thread, NULL, wait_for_one, NULL));
	while (!somebody_waits() || !sleeps_long())
		sched_yield();
	atomic_fetch_add(&wire.sent, 1);
	TEST_ASSERT_EQUAL_INT(0, pthread_join(thread, NULL));
}

/* --- time --- */

/* Polls that find nothing share readings of the clock, but the time does not stand. */
void test_polls_that_find_nothing_go_with_the_time(void)
{
	uint64_t began_ns;

	pthread_mutex_lock(&driver.mutex);
	driver_catch_up(&driver);
	began_ns = sim_engine_now_ns(driver.engine);
	for (unsigned int i = 0; i < 16; i++)
		driver_poll(&driver);
	pthread_mutex_unlock(&driver.mutex);
	TEST_ASSERT_TRUE(sim_engine_now_ns(driver.engine) > began_ns);
}

static void catch_up(void)
{
	pthread_mutex_lock(&driver.mutex);
	driver_catch_up(&driver);
	pthread_mutex_unlock(&driver.mutex);
}

static struct sim_timer timer;
static uint32_t received_before;

static void fire(struct sim_timer *fired)
{
	received_before = atomic_load(&wire.received);
}

/*
 * An ACK has come, and its timer is due since long: the process did not run. The ACK goes first. The timers
 * of what it causes begin now, and not when the process fell asleep.
 */
void test_after_a_pause_packets_come_before_timers(void)
{
	const uint64_t now_ns = clock_now_ns(CLOCK_MONOTONIC) - driver.base_ns;

	received_before = UINT32_MAX;
	TEST_ASSERT_EQUAL_INT(0, sim_clock_reserve(&driver.engine->clock));
	sim_timer_init(&timer, fire);
	/* As if the last look were a second ago. */
	driver_set_base(&driver, driver.base_ns - 1000000000, 0);
	sim_timer_arm(&driver.engine->clock, &timer, now_ns + 1000000);
	atomic_fetch_add(&wire.sent, 1);
	catch_up();
	TEST_ASSERT_EQUAL_UINT(1, received_before);
	TEST_ASSERT_TRUE(sim_engine_now_ns(driver.engine) >= now_ns + 1000000000);
	sim_clock_release(&driver.engine->clock, &timer);
}

static unsigned int fired_late;

static void count_late(struct sim_timer *fired)
{
	(void)fired;
	fired_late++;
}

/*
 * After a pause of 20 s, all timers are later by what was lost: one that was due 10 s after the first is due
 * 10 s from now. Otherwise all retries of a send would pass at once.
 */
void test_after_a_pause_timers_keep_their_distance(void)
{
	const uint64_t pause_ns = UINT64_C(20000000000);
	const uint64_t now_ns = clock_now_ns(CLOCK_MONOTONIC) - driver.base_ns;
	struct sim_timer later;

	received_before = UINT32_MAX;
	fired_late = 0;
	TEST_ASSERT_EQUAL_INT(0, sim_clock_reserve(&driver.engine->clock));
	TEST_ASSERT_EQUAL_INT(0, sim_clock_reserve(&driver.engine->clock));
	sim_timer_init(&timer, fire);
	sim_timer_init(&later, count_late);
	driver_set_base(&driver, driver.base_ns - pause_ns, 0);
	sim_timer_arm(&driver.engine->clock, &timer, now_ns + 1000000);
	sim_timer_arm(&driver.engine->clock, &later, now_ns + 1000000 + pause_ns / 2);
	catch_up();
	TEST_ASSERT_EQUAL_UINT(0, received_before);
	TEST_ASSERT_EQUAL_UINT(0, fired_late);
	TEST_ASSERT_TRUE(sim_engine_next_ns(driver.engine) >= now_ns + pause_ns + pause_ns / 2);
	sim_clock_release(&driver.engine->clock, &later);
	sim_clock_release(&driver.engine->clock, &timer);
}

/* A timer that is due a little late puts off no other. The machine may be busy: the test tries until the
 * thread runs soon enough. */
void test_timers_that_are_a_little_late_put_off_nothing(void)
{
	const uint64_t hour_ns = UINT64_C(3600000000000);
	struct sim_timer later;
	uint64_t due_ns;

	TEST_ASSERT_EQUAL_INT(0, sim_clock_reserve(&driver.engine->clock));
	TEST_ASSERT_EQUAL_INT(0, sim_clock_reserve(&driver.engine->clock));
	sim_timer_init(&timer, fire);
	sim_timer_init(&later, count_late);
	catch_up();
	do {
		due_ns = sim_engine_now_ns(driver.engine) + hour_ns;
		sim_timer_arm(&driver.engine->clock, &later, due_ns);
		sim_timer_arm(&driver.engine->clock, &timer, due_ns - hour_ns + 1);
		catch_up();
	} while (sim_engine_next_ns(driver.engine) != due_ns);
	sim_clock_release(&driver.engine->clock, &later);
	sim_clock_release(&driver.engine->clock, &timer);
}

/* The engine's time is CLOCK_MONOTONIC since the base that all processes of a world have. */
void test_the_time_is_that_of_the_world(void)
{
	const uint64_t base_ns = clock_now_ns(CLOCK_MONOTONIC) - UINT64_C(3600000000000);
	uint64_t before_ns, now_ns, after_ns;

	driver_set_base(&driver, base_ns, 0);
	before_ns = clock_now_ns(CLOCK_MONOTONIC) - base_ns;
	pthread_mutex_lock(&driver.mutex);
	driver_catch_up(&driver);
	pthread_mutex_unlock(&driver.mutex);
	now_ns = sim_engine_now_ns(driver.engine);
	after_ns = clock_now_ns(CLOCK_MONOTONIC) - base_ns;
	TEST_ASSERT_TRUE(now_ns >= before_ns && now_ns <= after_ns);
}
