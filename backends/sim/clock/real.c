/* SPDX-License-Identifier: MIT */
/* The real clock: verbs and a progress thread bring the engine up to CLOCK_MONOTONIC. */
#include "backends/sim/base/cancel.h"
#include "backends/sim/clock/private.h"

#include "sim/engine.h"

#include <signal.h>

/* How long a thread catches up without a pause, and for how long it then releases the mutex. */
#define BUSY_NS_MAX 1000000
#define REST_NS	    100000

/* Wakes the progress thread if an event is due before the end of its sleep. */
static void kick(struct driver *driver)
{
	if (driver->running && sim_engine_next_ns(driver->engine) < driver->asleep_until_ns)
		pthread_cond_signal(&driver->kicked);
}

/*
 * Brings the engine up to CLOCK_MONOTONIC, each event at its own time. Returns true if it gave up:
 * if events take longer to run than the time that they stand for (a storm of retries, a sanitizer),
 * catching up would never end, so that after BUSY_NS_MAX the world's clock loses the rest.
 */
static bool advance_to_now(struct driver *driver)
{
	uint64_t began_ns = driver_clock_ns(CLOCK_MONOTONIC), now_ns, next_ns, lost_ns;

	sim_engine_run(driver->engine);
	while ((next_ns = sim_engine_next_ns(driver->engine)) <= began_ns - driver->base_ns) {
		sim_engine_advance(driver->engine, next_ns);
		now_ns = driver_clock_ns(CLOCK_MONOTONIC);
		if (now_ns - began_ns > BUSY_NS_MAX) {
			lost_ns = now_ns - driver->base_ns - sim_engine_now_ns(driver->engine);
			driver->base_ns += lost_ns;
			driver->wall_base_ns += lost_ns;
			driver_ran(driver);
			return true;
		}
	}
	sim_engine_advance(driver->engine, began_ns - driver->base_ns);
	driver_ran(driver);
	return false;
}

void driver_catch_up(struct driver *driver)
{
	if (!driver->real)
		return;
	advance_to_now(driver);
	kick(driver);
}

static void sleep_until(struct driver *driver, uint64_t until_ns)
{
	struct timespec at;

	driver->asleep_until_ns = until_ns;
	if (until_ns == SIM_NEVER) {
		pthread_cond_wait(&driver->kicked, &driver->mutex);
	} else {
		at.tv_sec = (time_t)((until_ns + driver->base_ns) / 1000000000);
		at.tv_nsec = (long)((until_ns + driver->base_ns) % 1000000000);
		pthread_cond_timedwait(&driver->kicked, &driver->mutex, &at);
	}
	driver->asleep_until_ns = 0;
}

static void *progress(void *arg)
{
	struct driver *driver = arg;

	pthread_mutex_lock(&driver->mutex);
	driver->started = true;
	driver_wake_all(driver);
	while (!driver->stop) {
		/* A mutex is not fair: a thread that waits for it needs time to wake up. */
		if (advance_to_now(driver))
			sleep_until(driver, sim_engine_now_ns(driver->engine) + REST_NS);
		else
			sleep_until(driver, sim_engine_next_ns(driver->engine));
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
	sigset_t all, kept;
	int err;

	/*
	 * The signals that a fault raises stay unblocked: otherwise they would end the process
	 * before the guard's handler ran.
	 */
	sigfillset(&all);
	sigdelset(&all, SIGSEGV);
	sigdelset(&all, SIGBUS);
	sigdelset(&all, SIGILL);
	sigdelset(&all, SIGFPE);
	driver->stop = false;
	driver->started = false;
	driver->asleep_until_ns = 0;
	pthread_sigmask(SIG_SETMASK, &all, &kept);
	err = pthread_create(&driver->progress, NULL, progress, driver);
	pthread_sigmask(SIG_SETMASK, &kept, NULL);
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
	pthread_cond_signal(&driver->kicked);
	join_progress(driver);
	driver->stopping = false;
	driver_wake_all(driver);
	pthread_mutex_unlock(&driver->mutex);
}
