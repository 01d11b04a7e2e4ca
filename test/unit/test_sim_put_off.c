/* SPDX-License-Identifier: MIT */
/*
 * The ACK that a poll puts off until the program has answered: when it leaves, and what is never put off.
 * The wire brings messages, each of which makes a QP owe something; what the QPs send is written down.
 */
#include "backends/sim/base/clock_now.h"
#include "backends/sim/clock/private.h"
#include "sim/engine.h"
#include "sim/qp/private.h"
#include "unity.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/single_threaded.h>
#include <unistd.h>

/* What a message makes its receiver owe. */
enum owed { OWED_ACK, OWED_NAK, OWED_RESPONSE, OWED_PACKETS, OWED_LATE_ACK };

static struct driver driver;
static struct bell bell;
static struct sim_qp qps[2];
static unsigned int to_come; /* messages that the wire has */
static struct {
	struct sim_qp *qp;
	enum owed owed;
} messages[4];
/* A letter for each turn, a and b for those of the responders and R for requests; F for a flush. */
static char sent[16];
static _Atomic unsigned int sent_count;
static bool asks;	 /* what is written down asks for the time, as a timer that is armed does */
static uint64_t sent_ns; /* the engine's time when the last was written down */

static void write_down(struct sim_engine *engine, char what)
{
	const unsigned int at = atomic_load(&sent_count);

	sent_ns = asks ? sim_clock_now_ns(&engine->clock) : sim_engine_now_ns(engine);
	if (at + 1 < sizeof(sent)) {
		sent[at] = what;
		atomic_store(&sent_count, at + 1);
	}
}

bool __wrap_sim_requester_run(struct sim_qp *qp);
bool __wrap_sim_requester_run(struct sim_qp *qp)
{
	write_down(qp->engine, 'R');
	return false;
}

bool __wrap_sim_responder_run(struct sim_qp *qp);
bool __wrap_sim_responder_run(struct sim_qp *qp)
{
	write_down(qp->engine, qp == &qps[0] ? 'a' : 'b');
	memset(&qp->resp, 0, sizeof(qp->resp));
	return false;
}

/* --- the time --- */

static _Atomic uint64_t still_ns; /* the time of the driver, while it stands; 0: it runs */

uint64_t __real_ticks_now_ns(struct ticks *ticks);
uint64_t __wrap_ticks_now_ns(struct ticks *ticks);
uint64_t __wrap_ticks_now_ns(struct ticks *ticks)
{
	const uint64_t ns = atomic_load(&still_ns);

	return ns ? ns : __real_ticks_now_ns(ticks);
}

/* --- the connection manager --- */

static unsigned int managed; /* counts the messages that it has handled */

bool __wrap_sim_cm_run(struct sim_engine *engine);
bool __wrap_sim_cm_run(struct sim_engine *engine)
{
	const bool waited = engine->cm_waits;

	engine->cm_waits = false;
	managed += waited;
	return waited;
}

/* --- the wire --- */

static bool has_arrivals(void *arg)
{
	return to_come;
}

static void owe(struct sim_qp *qp, enum owed owed)
{
	if (owed == OWED_PACKETS) {
		sim_turn_ask(qp, SIM_TURN_REQUESTER);
		return;
	}
	qp->resp.ack = owed == OWED_LATE_ACK ? SIM_ACK_NONE : SIM_ACK_IN_ORDER;
	qp->resp.nak_pending = owed == OWED_NAK;
	qp->resp.resources_pending = owed == OWED_RESPONSE;
	sim_turn_ask(qp, SIM_TURN_RESPONDER);
}

static bool receive(void *arg)
{
	const bool came = to_come;

	for (; to_come; to_come--)
		owe(messages[to_come - 1].qp, messages[to_come - 1].owed);
	return came;
}

static void flush(void *arg)
{
	write_down(driver.engine, 'F');
}

static void set_listened(void *arg, bool on)
{
}

static const struct driver_wires wires = {NULL, has_arrivals, receive, flush, set_listened};

static uint64_t now_ns(void *arg)
{
	return driver_now_ns(&driver);
}

void setUp(void)
{
	const struct sim_host host = {.now_ns = now_ns};

	alarm(60);
	/* As in each process that has a progress thread. */
	__libc_single_threaded = 0;
	to_come = 0;
	asks = false;
	atomic_store(&sent_count, 0);
	memset(qps, 0, sizeof(qps));
	memset(&bell, 0, sizeof(bell));
	driver_init(&driver, true);
	TEST_ASSERT_EQUAL_INT(0, sim_engine_create(&host, 1, &driver.engine));
	driver_set_wires(&driver, &wires, &bell);
	for (int i = 0; i < 2; i++)
		qps[i].engine = driver.engine;
	pthread_mutex_lock(&driver.mutex);
}

void tearDown(void)
{
	pthread_mutex_unlock(&driver.mutex);
	while (driver.users)
		driver_stop(&driver);
	sim_engine_destroy(driver.engine);
	driver_end(&driver);
	alarm(0);
}

static void come(struct sim_qp *qp, enum owed owed)
{
	messages[to_come].qp = qp;
	messages[to_come].owed = owed;
	to_come++;
}

/* What was sent since the last call. */
static void expect_sent(const char *expected)
{
	sent[atomic_load(&sent_count)] = 0;
	TEST_ASSERT_EQUAL_STRING(expected, sent);
	atomic_store(&sent_count, 0);
}

static void poll_message(struct sim_qp *qp, enum owed owed)
{
	come(qp, owed);
	driver_poll(&driver);
}

static void poll_and_put_off(void)
{
	atomic_store(&sent_count, 0);
	poll_message(&qps[0], OWED_ACK);
	expect_sent("");
}

/* What ibv_post_send(3) does on the real clock. */
static void post_request(void)
{
	driver_begin_post(&driver);
	sim_turn_ask(&qps[0], SIM_TURN_REQUESTER);
	driver_run_posted(&driver);
}

/* --- when it leaves --- */

void test_the_answer_goes_before_the_ack(void)
{
	poll_and_put_off();
	post_request();
	expect_sent("RaF");
	post_request();
	expect_sent("RF");
}

void test_posted_receives_let_the_ack_wait(void)
{
	poll_and_put_off();
	driver_begin_post(&driver);
	driver_run_posted(&driver);
	expect_sent("");
	post_request();
	expect_sent("RaF");
	/* Nothing waits: receives are posted as ever. */
	driver_begin_post(&driver);
	driver_run_posted(&driver);
	expect_sent("F");
}

void test_receives_of_a_qp_run_nothing_unless_they_are_flushed(void)
{
	const uint64_t before_ns = sim_engine_now_ns(driver.engine);

	poll_and_put_off();
	driver_run_received(&driver);
	expect_sent("");
	TEST_ASSERT_TRUE(driver.put_off);
	/* In ERR the requester flushes them, at the time of the post. */
	sim_turn_ask(&qps[0], SIM_TURN_REQUESTER);
	driver_run_received(&driver);
	expect_sent("RaF");
	TEST_ASSERT_FALSE(driver.put_off);
	TEST_ASSERT_TRUE(sim_engine_now_ns(driver.engine) > before_ns);
}

void test_the_ack_leaves_with_the_next_poll(void)
{
	poll_and_put_off();
	driver_poll(&driver);
	expect_sent("aF");
}

/* One ACK covers the message of this poll and the messages of the next poll. */
void test_an_ack_is_put_off_once(void)
{
	for (int i = 0; i < 3; i++) {
		poll_and_put_off();
		poll_message(&qps[0], OWED_ACK);
		expect_sent("aF");
	}
}

static bool never(const void *arg)
{
	return false;
}

/* The message completes in a CQ that the program does not poll, so no post follows the poll. */
void test_the_ack_leaves_with_the_poll_that_finds_nothing(void)
{
	poll_and_put_off();
	driver_step(&driver, never, NULL);
	expect_sent("aF");
	driver_step(&driver, never, NULL);
	expect_sent("");
}

void test_the_ack_leaves_with_any_other_verb(void)
{
	poll_and_put_off();
	driver_catch_up(&driver);
	expect_sent("aF");
}

void test_the_ack_leaves_before_a_thread_waits(void)
{
	poll_and_put_off();
	driver_listen(&driver);
	expect_sent("aF");
}

void test_the_ack_leaves_before_a_fork_and_before_the_end(void)
{
	poll_and_put_off();
	driver_settle(&driver);
	expect_sent("aF");
	driver_settle(&driver);
	expect_sent("");
}

/* The wires are the parent's: for the child nothing is put off. */
void test_the_child_of_a_fork_puts_nothing_off(void)
{
	poll_and_put_off();
	driver_forked(&driver);
	TEST_ASSERT_FALSE(driver.put_off);
	driver_poll(&driver);
	expect_sent("a");
}

static unsigned int fired; /* counts the timers that have fired */
static uint64_t fired_ns;  /* the engine's time when the last one fired */

static void fire(struct sim_timer *timer)
{
	fired++;
	fired_ns = sim_engine_now_ns(driver.engine);
}

/* Polls, which find nothing, up to the next one that reads the clock. Returns how many. */
static unsigned int poll_until_read(void)
{
	const uint64_t read_ns = sim_engine_now_ns(driver.engine);
	unsigned int polls = 0;

	for (; sim_engine_now_ns(driver.engine) == read_ns; polls++)
		driver_poll(&driver);
	return polls;
}

/* The next poll reads the clock. */
static void make_next_poll_read(void)
{
	unsigned int polls;

	poll_until_read();
	for (polls = poll_until_read(); polls > 1; polls--)
		driver_poll(&driver);
	atomic_store(&sent_count, 0);
}

/* Arms a timer, and returns when the next reading of the clock finds it due. */
static void make_due(struct sim_timer *timer)
{
	sim_timer_arm(&driver.engine->clock, timer, sim_engine_now_ns(driver.engine) + 1);
	while (clock_now_ns(CLOCK_MONOTONIC) - driver.base_ns <= timer->deadline_ns)
		sched_yield();
}

/* The post has its own time, however long the program has thought about the answer. */
void test_the_answer_has_the_time_of_its_post(void)
{
	uint64_t before_ns;

	asks = true;
	poll_and_put_off();
	before_ns = clock_now_ns(CLOCK_MONOTONIC) - driver.base_ns;
	post_request();
	expect_sent("RaF");
	TEST_ASSERT_TRUE(sent_ns >= before_ns);
}

/* --- the time --- */

/* From the message to its answer nothing reads the clock. */
void test_neither_the_poll_nor_the_post_reads_the_clock_before_the_answer(void)
{
	const uint64_t read_ns = sim_engine_now_ns(driver.engine);

	poll_and_put_off();
	driver_begin_post(&driver);
	TEST_ASSERT_EQUAL_UINT64(read_ns, sim_engine_now_ns(driver.engine));
	TEST_ASSERT_TRUE(sim_engine_is_behind(driver.engine));
	driver_poll(&driver);
}

/* However long ago the clock was read last, what asks for the time gets the present time. */
void test_a_timer_begins_when_it_is_armed(void)
{
	uint64_t before_ns;

	asks = true;
	driver_catch_up(&driver);
	atomic_store(&sent_count, 0);
	before_ns = clock_now_ns(CLOCK_MONOTONIC) - driver.base_ns;
	post_request();
	expect_sent("RF");
	TEST_ASSERT_TRUE(sent_ns >= before_ns);
	driver_catch_up(&driver);
	atomic_store(&sent_count, 0);
	before_ns = clock_now_ns(CLOCK_MONOTONIC) - driver.base_ns;
	poll_message(&qps[0], OWED_LATE_ACK);
	expect_sent("aF");
	TEST_ASSERT_TRUE(sent_ns >= before_ns);
}

/* A program that takes each message with one poll still has timers that fire. */
void test_of_two_polls_that_find_messages_one_reads_the_clock(void)
{
	struct sim_timer timer;

	TEST_ASSERT_EQUAL_INT(0, sim_clock_reserve(&driver.engine->clock));
	sim_timer_init(&timer, fire);
	for (unsigned int i = 1; i <= 3; i++) {
		make_due(&timer);
		fired = 0;
		poll_message(&qps[0], OWED_ACK);
		poll_message(&qps[0], OWED_ACK);
		TEST_ASSERT_EQUAL_UINT(1, fired);
	}
	sim_clock_release(&driver.engine->clock, &timer);
	driver_poll(&driver);
}

/* If the post needs the time, timers that are due fire behind the packets of the post, at that time. */
void test_what_is_due_fires_with_the_post_that_asks_for_the_time(void)
{
	struct sim_timer timer;
	uint64_t before_ns;

	TEST_ASSERT_EQUAL_INT(0, sim_clock_reserve(&driver.engine->clock));
	sim_timer_init(&timer, fire);
	poll_and_put_off();
	make_due(&timer);
	fired = 0;
	asks = true;
	before_ns = clock_now_ns(CLOCK_MONOTONIC) - driver.base_ns;
	post_request();
	TEST_ASSERT_EQUAL_INT(0, memcmp(sent, "RaF", 3));
	TEST_ASSERT_EQUAL_UINT(1, fired);
	TEST_ASSERT_TRUE(fired_ns >= before_ns);
	sim_clock_release(&driver.engine->clock, &timer);
}

/* --- the progress thread --- */

/*
 * Starts the progress thread, and returns when the thread has seen that the program polls, and has stopped listening.
 * Time stands still between a poll and the look of the thread: on a busy machine the thread would look too late.
 */
static void start(void)
{
	TEST_ASSERT_EQUAL_INT(0, driver_start(&driver));
	for (uint64_t ns = clock_now_ns(CLOCK_MONOTONIC); driver.listening; ns++) {
		atomic_store(&still_ns, ns);
		poll_until_read();
		bell_ring(&bell);
		pthread_mutex_unlock(&driver.mutex);
		sched_yield();
		pthread_mutex_lock(&driver.mutex);
	}
	atomic_store(&still_ns, 0);
	atomic_store(&sent_count, 0);
}

static void leave_to_the_progress_thread(void)
{
	pthread_mutex_unlock(&driver.mutex);
	while (!atomic_load(&sent_count))
		sched_yield();
	pthread_mutex_lock(&driver.mutex);
}

void test_the_ack_leaves_when_no_verb_follows(void)
{
	start();
	poll_and_put_off();
	leave_to_the_progress_thread();
	TEST_ASSERT_EQUAL_INT('a', sent[0]);
}

/* The program is one that does not answer at once. */
void test_after_a_late_ack_the_next_ones_are_prompt(void)
{
	start();
	poll_and_put_off();
	leave_to_the_progress_thread();
	driver.listening = false;
	for (int i = 0; i < 64; i++) {
		atomic_store(&sent_count, 0);
		poll_message(&qps[0], OWED_ACK);
		expect_sent("aF");
	}
	poll_and_put_off();
	driver_poll(&driver);
}

/* --- answers that leave at once --- */

void test_only_an_ack_is_put_off(void)
{
	poll_message(&qps[0], OWED_NAK);
	expect_sent("aF");
	poll_message(&qps[0], OWED_RESPONSE);
	expect_sent("aF");
	poll_message(&qps[0], OWED_PACKETS);
	expect_sent("RF");
	poll_message(&qps[0], OWED_LATE_ACK);
	expect_sent("aF");
}

void test_the_acks_of_two_qps_leave_at_once(void)
{
	come(&qps[1], OWED_ACK);
	poll_message(&qps[0], OWED_ACK);
	expect_sent("abF");
	poll_message(&qps[1], OWED_ACK);
	expect_sent("");
	driver_poll(&driver);
	expect_sent("bF");
}

void test_an_ack_does_not_hold_up_other_packets(void)
{
	come(&qps[1], OWED_PACKETS);
	poll_message(&qps[0], OWED_ACK);
	expect_sent("RaF");
}

void test_no_ack_is_put_off_while_a_message_waits_for_the_connection_manager(void)
{
	managed = 0;
	driver.engine->cm_waits = true;
	poll_message(&qps[0], OWED_ACK);
	expect_sent("aF");
	TEST_ASSERT_EQUAL_UINT(1, managed);
}

/* While the progress thread listens, its poll answers at once: the thread may sleep for long afterwards. */
void test_no_ack_is_put_off_while_the_progress_thread_listens(void)
{
	driver_armed(&driver);
	expect_sent("F");
	poll_message(&qps[0], OWED_ACK);
	expect_sent("aF");
	driver_disarmed(&driver);
}

/* The poll that reads the clock finds the timer due. */
void test_no_ack_is_put_off_while_a_timer_is_due(void)
{
	struct sim_timer timer;

	TEST_ASSERT_EQUAL_INT(0, sim_clock_reserve(&driver.engine->clock));
	sim_timer_init(&timer, fire);
	fired = 0;
	make_next_poll_read();
	make_due(&timer);
	poll_message(&qps[0], OWED_ACK);
	expect_sent("aF");
	TEST_ASSERT_EQUAL_UINT(1, fired);
	sim_clock_release(&driver.engine->clock, &timer);
	poll_and_put_off();
	driver_poll(&driver);
}

/* Verbs other than polls put nothing off. */
void test_only_a_poll_puts_an_ack_off(void)
{
	come(&qps[0], OWED_ACK);
	driver_catch_up(&driver);
	expect_sent("aF");
}
