/* SPDX-License-Identifier: MIT */
/* The real clock: verbs and a progress thread bring the engine up to CLOCK_MONOTONIC. */
#include "backends/sim/base/cancel.h"
#include "backends/sim/base/clock_now.h"
#include "backends/sim/base/thread.h"
#include "backends/sim/clock/private.h"

#include "sim/engine.h"

#include <sched.h>
#include <sys/single_threaded.h>

/* How long a thread catches up without a pause, and for how long it then leaves the mutex to others that want it. */
#define BUSY_NS_MAX 1000000
#define REST_NS	    100000

/* An event that is later than this waits for the packets that came meanwhile. */
#define LATE_NS_MAX 100000

/* After something has come, the progress thread watches its bell for this time, which is about what it takes to
 * wake up: the next message of an exchange is handled at once. */
#define WATCH_NS 50000

/* While the program polls, the progress thread does not listen, and looks after this time again. */
#define LOOK_NS 1000000

/* The program polls if it has brought the engine up to now within this time, which is longer than the
 * system call that sends a full batch of datagrams takes. */
#define POLL_NS_MAX 400000

/* The progress thread is starved if it has not looked for this time, although the program polls and peers ring. */
#define STARVED_NS 2000000

/* So many polls that find nothing share a reading of the clock, which takes longer than the rest of them. */
#define POLLS_A_READING 8

/* While QPs wait for room, the wires look after this time whether their receivers still live. */
#define AWAIT_NS 10000000

/* The longest sleep on a bell that is shared: if another process has written to the words of the bell, the rings of the
 * peers may be lost. */
#define SHARED_SLEEP_NS UINT64_C(1000000000)

/* How many looks the progress thread listens on after packets that no poll has taken. */
#define LOOKS_AFTER_ARRIVAL 64

/* How many ACKs leave at once after one that the progress thread had to send. */
#define PROMPT_ACKS 64

/* Returns true if something is due before the end of the progress thread's sleep. */
static bool is_due_before(const struct driver *driver, uint64_t asleep_until_ns)
{
	return sim_engine_is_due(driver->engine, asleep_until_ns - 1) ||
	       (asleep_until_ns - 1 > sim_engine_now_ns(driver->engine) + AWAIT_NS &&
		sim_way_out_is_awaited(driver->engine));
}

/* Wakes the progress thread if something is due before the end of its sleep. */
static void kick(struct driver *driver)
{
	const uint64_t asleep_until_ns = driver->asleep_until_ns;

	if (asleep_until_ns && driver->running && is_due_before(driver, asleep_until_ns)) {
		driver->asleep_until_ns = 0;
		bell_wake(driver->bell);
	}
}

static uint64_t world_ns(struct driver *driver)
{
	return ticks_now_ns(&driver->ticks) - driver->base_ns;
}

uint64_t driver_now_ns(struct driver *driver)
{
	driver->skipped = 0;
	return world_ns(driver);
}

/*
 * Gives the engine what has come, while timers are due. If the thread has not run for long, the ACKs of
 * these timers may have come meanwhile: the packets go first, and all timers are later by the time that was
 * lost. Otherwise each timer would see the whole gap pass at once, and retries would end before a peer
 * could answer. Returns true if something came.
 */
static bool receive_late(struct driver *driver, uint64_t now_ns)
{
	uint64_t next_ns = sim_engine_next_ns(driver->engine);

	if (now_ns - next_ns > LATE_NS_MAX) {
		sim_engine_postpone(driver->engine, now_ns - next_ns, now_ns);
		next_ns = now_ns;
	}
	sim_engine_advance(driver->engine, next_ns - 1);
	return driver->wires.receive(driver->wires.arg);
}

/* Lets what the engine has sent leave. */
static void flush(struct driver *driver)
{
	if (driver->wires.flush)
		driver->wires.flush(driver->wires.arg);
	driver_ran(driver);
}

/*
 * Brings the engine up to now_ns, each event at its own time. Returns false if it gave up: if events take
 * longer to run than the time that they stand for (a storm of retries, a sanitizer), catching up would
 * never end. After BUSY_NS_MAX all timers are later by the rest. The time itself is never lost: processes
 * of one world have one time, by which their traces are joined.
 */
static bool run_until(struct driver *driver, uint64_t began_ns)
{
	uint64_t next_ns, now_ns;

	sim_engine_run(driver->engine);
	while ((next_ns = sim_engine_next_ns(driver->engine)) <= began_ns) {
		sim_engine_advance(driver->engine, next_ns);
		now_ns = world_ns(driver);
		if (now_ns - began_ns > BUSY_NS_MAX) {
			sim_engine_postpone(driver->engine,
					    now_ns - sim_engine_now_ns(driver->engine), now_ns);
			return false;
		}
	}
	sim_engine_advance(driver->engine, began_ns);
	return true;
}

enum caught_up {
	CAUGHT_UP,
	MORE_TO_RECEIVE, /* something came: there may be more than one batch */
	GAVE_UP,	 /* see run_until() */
};

/* Returns true if nothing but one QP's ACK is owed, and the ACK may wait: see driver_poll(). */
static bool may_put_off(struct driver *driver)
{
	if (!driver->wires.listen || driver->put_off || driver->listening ||
	    !sim_engine_owes_ack(driver->engine))
		return false;
	if (!driver->prompt_acks)
		return true;
	driver->prompt_acks--;
	return false;
}

/* Puts the ACK off if it may wait. Returns true if so: then nothing else is to run. */
static bool put_ack_off(struct driver *driver)
{
	driver->put_off = may_put_off(driver);
	if (driver->put_off)
		driver_ran(driver);
	return driver->put_off;
}

static void run(struct driver *driver)
{
	if (!sim_engine_quiet(driver->engine))
		sim_engine_run(driver->engine);
}

/* for_poll: an ACK may be put off. */
static enum caught_up advance_to_now(struct driver *driver, bool for_poll)
{
	const uint64_t now_ns = world_ns(driver);
	const bool is_due = sim_engine_is_due(driver->engine, now_ns);
	bool came = false, done = true;

	driver->skipped = 0;
	if (!is_due)
		sim_engine_pass(driver->engine, now_ns);
	if (driver->wires.receive)
		came = is_due ? receive_late(driver, now_ns)
			      : driver->wires.receive(driver->wires.arg);
	if (!for_poll || is_due)
		driver->put_off = false;
	else if (put_ack_off(driver))
		return MORE_TO_RECEIVE;
	if (!is_due)
		run(driver);
	if (sim_engine_is_due(driver->engine, now_ns))
		done = run_until(driver, now_ns);
	flush(driver);
	return !done ? GAVE_UP : came ? MORE_TO_RECEIVE : CAUGHT_UP;
}

/* Lets fire what is due, if the engine has asked for the time. */
static void fire_due(struct driver *driver)
{
	if (!sim_engine_is_behind(driver->engine) &&
	    sim_engine_is_due(driver->engine, sim_engine_now_ns(driver->engine)))
		advance_to_now(driver, false);
}

/*
 * Gives the engine what has come, and reads the clock only if the engine asks: a reading would delay the program's
 * answer. The next poll catches up, which follows the answer.
 */
static void take_arrived(struct driver *driver)
{
	driver->skipped = POLLS_A_READING - 1;
	sim_engine_leave_behind(driver->engine);
	driver->wires.receive(driver->wires.arg);
	if (put_ack_off(driver))
		return;
	run(driver);
	flush(driver);
	fire_due(driver);
}

void driver_catch_up(struct driver *driver)
{
	if (!driver->real)
		return;
	advance_to_now(driver, false);
	kick(driver);
}

/* --- listening ---
 *
 * Arrivals ring the bell only while the driver listens. No wake-up is lost:
 *
 * - The bell's count is read before the last look at the wires, so a ring after the look ends the sleep
 *   that follows. bell_listen() is a full barrier: what a peer publishes before it is found by the look
 *   after it, and for what a peer publishes after it the peer rings.
 * - While the driver does not listen, somebody polls or the progress thread looks again after LOOK_NS. A
 *   thread that begins to wait, or arms a CQ, calls driver_listen() under the mutex before it looks for
 *   the last time, and counts in `asleep` or `armed` until it has its answer. While one of the two is not
 *   0, nobody stops listening.
 * - Whoever needs the progress thread earlier than it wakes up rings the bell, whether it listens or not:
 *   kick(), driver_stop().
 */

static void set_listening(struct driver *driver, bool on)
{
	if (driver->listening == on)
		return;
	driver->listening = on;
	if (on)
		bell_listen(driver->bell);
	else
		bell_ignore(driver->bell);
	driver->wires.listen(driver->wires.arg, on);
}

/*
 * The progress thread stops listening while the program polls. A program that polls with a real-time priority may keep
 * the thread from running: then each packet costs its peer a system call that wakes nobody. So the polls stop listening
 * in the thread's place. bell_wake() ends the long sleep of the thread, which looks every LOOK_NS from then on.
 */
static void look_for_starved(struct driver *driver)
{
	const uint64_t now_ns = sim_engine_now_ns(driver->engine);

	if (now_ns - driver->heard_ns > POLL_NS_MAX ||
	    driver->looked_ns >= driver->heard_since_ns || driver->asleep || driver->armed)
		driver->heard_since_ns = now_ns;
	driver->heard_ns = now_ns;
	if (now_ns - driver->heard_since_ns <= STARVED_NS)
		return;
	driver->heard_since_ns = now_ns;
	if (driver->looks_to_listen) {
		driver->looks_to_listen--;
		return;
	}
	set_listening(driver, false);
	bell_wake(driver->bell);
}

/*
 * A program answers many messages at once: the poll that returns a receive's completion is followed by a
 * post. The ACK of the message is put off until then, so that the answer does not wait behind it. It
 * leaves with the next poll or the next verb that is no post of receives, or when the progress thread
 * looks again, which is soon while it does not listen.
 */
void driver_poll(struct driver *driver)
{
	if (!driver->wires.arrived || ++driver->skipped >= POLLS_A_READING) {
		advance_to_now(driver, true);
		if (driver->listening)
			look_for_starved(driver);
	} else if (sim_engine_quiet(driver->engine) && !driver->wires.arrived(driver->wires.arg)) {
		return;
	} else {
		take_arrived(driver);
	}
	kick(driver);
}

void driver_settle(struct driver *driver)
{
	if (!driver->put_off)
		return;
	driver->put_off = false;
	sim_engine_run(driver->engine);
	flush(driver);
}

void driver_begin_post(struct driver *driver)
{
	sim_engine_leave_behind(driver->engine);
}

void driver_run_posted(struct driver *driver)
{
	if (!driver->real)
		return;
	/* Posted receives need no run. */
	if (driver->put_off && !sim_engine_has_requests(driver->engine))
		return;
	driver->put_off = false;
	/* A process with one thread holds no lock, and begins without a reading of the clock. */
	if (__libc_single_threaded) {
		advance_to_now(driver, false);
	} else {
		sim_engine_run(driver->engine);
		flush(driver);
		fire_due(driver);
	}
	kick(driver);
}

void driver_run_received(struct driver *driver)
{
	if (sim_engine_has_requests(driver->engine))
		driver_catch_up(driver);
}

void driver_listen(struct driver *driver)
{
	if (!driver->wires.listen || driver->listening)
		return;
	set_listening(driver, true);
	/* One batch; the progress thread receives the rest. */
	if (advance_to_now(driver, false) != CAUGHT_UP && driver->running)
		bell_wake(driver->bell);
	kick(driver);
}

/* Decides whether arrivals ring the bell. gap_ns: as polled_ago_ns() returns it. */
static void choose_listening(struct driver *driver, uint64_t gap_ns)
{
	const bool is_polled = gap_ns <= POLL_NS_MAX;

	set_listening(driver,
		      !is_polled || driver->asleep || driver->armed || driver->looks_to_listen);
}

/*
 * Packets that no poll has taken: the program polls now and then only, such as one that waits for bytes of
 * its memory to change. The progress thread listens on while that is so.
 */
static void learn(struct driver *driver, uint64_t gap_ns, enum caught_up how)
{
	if (how != CAUGHT_UP && gap_ns > POLL_NS_MAX)
		driver->looks_to_listen = LOOKS_AFTER_ARRIVAL;
	else if (driver->looks_to_listen && gap_ns <= POLL_NS_MAX)
		driver->looks_to_listen--;
}

static uint64_t earlier(uint64_t a_ns, uint64_t b_ns)
{
	return a_ns < b_ns ? a_ns : b_ns;
}

/* Returns the time since the program last brought the engine up to the present. The looks of the progress thread
 * do not count. */
static uint64_t polled_ago_ns(struct driver *driver)
{
	const uint64_t engine_ns = sim_engine_now_ns(driver->engine);

	if (engine_ns != driver->looked_ns)
		driver->polled_ns = engine_ns;
	return world_ns(driver) - driver->polled_ns;
}

/* Returns until when the thread may sleep: for a limited time if the bell is in memory of other processes, whose rings
 * may be lost. */
static uint64_t limit_sleep(const struct driver *driver, uint64_t until_ns)
{
	if (driver->bell == &driver->own_bell)
		return until_ns;
	return earlier(until_ns, sim_engine_now_ns(driver->engine) + SHARED_SLEEP_NS);
}

/* Brings the engine up to now. Returns until when the thread may sleep; 0: not at all. */
static uint64_t look(struct driver *driver)
{
	const uint64_t gap_ns = polled_ago_ns(driver);
	enum caught_up how;
	uint64_t next_ns;

	if (driver->wires.listen)
		choose_listening(driver, gap_ns);
	if (driver->put_off)
		driver->prompt_acks = PROMPT_ACKS;
	how = advance_to_now(driver, false);
	driver->looked_ns = sim_engine_now_ns(driver->engine);
	learn(driver, gap_ns, how);
	if (how == GAVE_UP)
		return sim_engine_now_ns(driver->engine) + REST_NS;
	if (how == MORE_TO_RECEIVE) {
		driver->awake_until_ns = watches_begin(&driver->watches)
						 ? sim_engine_now_ns(driver->engine) + WATCH_NS
						 : 0;
		return 0;
	}
	next_ns = sim_engine_next_ns(driver->engine);
	if (driver->wires.listen && !driver->listening)
		return earlier(next_ns, sim_engine_now_ns(driver->engine) + LOOK_NS);
	if (sim_way_out_is_awaited(driver->engine))
		return earlier(next_ns, sim_engine_now_ns(driver->engine) + AWAIT_NS);
	return limit_sleep(driver, next_ns);
}

/* --- the progress thread --- */

/* seen: the bell's count before the last look. Returns true if the bell has rung since. */
static bool watch(struct driver *driver, uint64_t until_ns, uint32_t seen)
{
	const uint64_t end_ns = earlier(driver->awake_until_ns, until_ns);
	const bool rung = end_ns && bell_watch(driver->bell, seen, end_ns + driver->base_ns);

	if (end_ns && (rung || end_ns == driver->awake_until_ns)) {
		watches_end(&driver->watches, rung);
		driver->awake_until_ns = 0;
	}
	return rung;
}

static void sleep_until(struct driver *driver, uint64_t until_ns, uint32_t seen)
{
	const uint64_t wait_ns = until_ns == SIM_NEVER ? UINT64_MAX : until_ns + driver->base_ns;

	if (!driver->listening)
		driver->awake_until_ns = 0;
	driver->asleep_until_ns = until_ns;
	atomic_store(&driver->at_bell, true);
	pthread_mutex_unlock(&driver->mutex);
	if (until_ns && !watch(driver, until_ns, seen))
		bell_wait(driver->bell, seen, wait_ns);
	atomic_store(&driver->at_bell, false);
	pthread_mutex_lock(&driver->mutex);
	driver->asleep_until_ns = 0;
}

/* Returns true if threads wait for the mutex: glibc keeps it in the word that its header shows. */
static bool is_wanted(const pthread_mutex_t *mutex)
{
#ifdef __GLIBC__
	return __atomic_load_n(&mutex->__data.__lock, __ATOMIC_RELAXED) > 1;
#else
	return true;
#endif
}

/* Leaves the mutex to threads that wait for it. They need time to wake up, because a mutex is not fair; the bell
 * does not shorten this time. */
static void rest(struct driver *driver)
{
	const uint64_t end_ns = clock_now_ns(CLOCK_MONOTONIC) + REST_NS;

	pthread_mutex_unlock(&driver->mutex);
	while (clock_now_ns(CLOCK_MONOTONIC) < end_ns)
		sched_yield();
	pthread_mutex_lock(&driver->mutex);
}

static void *progress(void *arg)
{
	struct driver *driver = arg;
	uint64_t rested_ns;

	pthread_mutex_lock(&driver->mutex);
	driver->started = true;
	driver_wake_all(driver);
	rested_ns = world_ns(driver);
	while (!driver->stop) {
		const uint32_t seen = atomic_load(&driver->bell->rings);
		const uint64_t until_ns = look(driver);

		if (until_ns) {
			rested_ns = sim_engine_now_ns(driver->engine);
		} else if (sim_engine_now_ns(driver->engine) - rested_ns > BUSY_NS_MAX &&
			   is_wanted(&driver->mutex)) {
			rest(driver);
			rested_ns = world_ns(driver);
		}
		sleep_until(driver, until_ns, seen);
	}
	pthread_mutex_unlock(&driver->mutex);
	return NULL;
}

/*
 * Returns when the thread waits for the mutex or for its work. While a thread begins, it holds locks
 * of the C library or of a sanitizer: a child that is forked then would find them locked for ever.
 * AddressSanitizer of GCC 12 does so: its leak check hangs at the child's exit.
 */
static int start_progress(struct driver *driver)
{
	int err;

	driver->stop = false;
	driver->started = false;
	driver->asleep_until_ns = 0;
	err = thread_start(&driver->progress, progress, driver);
	driver->running = !err;
	while (!err && !driver->started)
		pthread_cond_wait(&driver->changed, &driver->mutex);
	return err;
}

/* The waits for the progress thread are short; a thread that is cancelled in one would leave half a
 * context. */
int driver_start(struct driver *driver)
{
	int state = cancel_off();
	int err = 0;

	while (driver->stopping)
		driver_sleep(driver);
	if (driver->real && !driver->running)
		err = start_progress(driver);
	if (!err)
		driver->users++;
	cancel_restore(state);
	return err;
}

/* The mutex is held again at the end. */
static void join_progress(struct driver *driver)
{
	int state = cancel_off();

	pthread_mutex_unlock(&driver->mutex);
	pthread_join(driver->progress, NULL);
	pthread_mutex_lock(&driver->mutex);
	cancel_restore(state);
}

void driver_stop(struct driver *driver)
{
	pthread_mutex_lock(&driver->mutex);
	driver->users--;
	if (!driver->running || driver->users) {
		pthread_mutex_unlock(&driver->mutex);
		return;
	}
	driver->stop = true;
	driver->running = false;
	driver->stopping = true;
	driver_leave_bell(driver);
	join_progress(driver);
	if (driver->wires.listen)
		set_listening(driver, false);
	driver->stopping = false;
	driver_wake_all(driver);
	pthread_mutex_unlock(&driver->mutex);
}
