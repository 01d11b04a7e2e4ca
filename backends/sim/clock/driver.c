/* SPDX-License-Identifier: MIT */
#include "backends/sim/clock/driver.h"

#include "backends/sim/world/say.h"
#include "backends/sim/world/world.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* On the real clock: how long the lock is held to catch up, and left alone after that. */
#define BUSY_NS_MAX 1000000
#define REST_NS	    100000

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void init_conditions(struct driver *driver)
{
	pthread_condattr_t monotonic;

	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&driver->kicked, &monotonic);
	pthread_cond_init(&driver->changed, NULL);
	pthread_condattr_destroy(&monotonic);
}

int driver_init(struct driver *driver, bool real)
{
	driver->real = real;
	driver->base_ns = clock_ns(CLOCK_MONOTONIC);
	driver->wall_base_ns = real ? clock_ns(CLOCK_REALTIME) : 0;
	init_conditions(driver);
	return 0;
}

void driver_forked(struct vb_sim *world)
{
	struct driver *driver = &world->driver;

	driver->running = false;
	driver->stopping = false;
	driver->thread_count = 0;
	driver->waiting = 0;
	driver->runners = NULL;
	init_conditions(driver);
}

void driver_end(struct driver *driver)
{
	pthread_cond_destroy(&driver->kicked);
	pthread_cond_destroy(&driver->changed);
	free(driver->threads);
}

/* All waiters look again; who still waits counts itself anew. */
static void wake_all(struct driver *driver)
{
	driver->waiting = 0;
	driver->epoch++;
	pthread_cond_broadcast(&driver->changed);
}

void driver_changed(struct vb_sim *world)
{
	/* A virtual world in which nobody registered has one user, who is not asleep. */
	if (world->driver.real || world->driver.thread_count)
		wake_all(&world->driver);
}

/* --- the virtual clock --- */

static int place_of_self(const struct driver *driver)
{
	for (uint32_t i = 0; i < driver->thread_count; i++)
		if (pthread_equal(driver->threads[i], pthread_self()))
			return (int)i;
	return -1;
}

/* A world in which nobody registered has one user. */
static bool counts(const struct driver *driver)
{
	return driver->thread_count == 0 || place_of_self(driver) >= 0;
}

static bool all_wait(const struct driver *driver)
{
	if (driver->thread_count == 0 || __libc_single_threaded)
		return true;
	return place_of_self(driver) >= 0 && driver->waiting + 1 >= driver->thread_count;
}

static void run_instant(struct vb_sim *world)
{
	if (sim_engine_quiet(world->engine))
		return;
	sim_engine_run(world->engine);
	driver_changed(world);
}

static uint64_t next_ns(struct vb_sim *world)
{
	uint64_t next = sim_engine_next_ns(world->engine);

	for (const struct driver_runner *r = world->driver.runners; r; r = r->next)
		if (r->until_ns < next)
			next = r->until_ns;
	return next;
}

/* The verb's wait must not be left in its middle by pthread_cancel(), with the lock held. */
static void sleep_until_changed(struct vb_sim *world)
{
	struct driver *driver = &world->driver;
	uint64_t epoch;
	int cancel;

	if (counts(driver))
		driver->waiting++;
	epoch = driver->epoch;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	while (driver->epoch == epoch)
		pthread_cond_wait(&driver->changed, &world->mutex);
	pthread_setcancelstate(cancel, NULL);
}

/* Carries time to the next event, or sleeps until somebody did. False where nothing is to come. */
static bool let_time_pass(struct vb_sim *world)
{
	uint64_t next;

	if (!all_wait(&world->driver)) {
		sleep_until_changed(world);
		return true;
	}
	next = next_ns(world);
	if (next == SIM_NEVER) {
		driver_changed(world);
		return false;
	}
	sim_engine_advance(world->engine, next);
	driver_changed(world);
	return true;
}

bool driver_has_others(struct vb_sim *world)
{
	const struct driver *driver = &world->driver;

	return driver->thread_count > (place_of_self(driver) >= 0 ? 1u : 0u);
}

/* Time stops at until_ns, whoever moves it, while the runner is in the list. */
static void runner_add(struct driver *driver, struct driver_runner *runner, uint64_t until_ns)
{
	*runner = (struct driver_runner){.until_ns = until_ns, .next = driver->runners};
	driver->runners = runner;
}

static void runner_remove(struct driver *driver, const struct driver_runner *runner)
{
	struct driver_runner **at = &driver->runners;

	while (*at != runner)
		at = &(*at)->next;
	*at = runner->next;
}

int driver_run(struct vb_sim *world, uint64_t duration_ns)
{
	struct driver *driver = &world->driver;
	struct driver_runner self;
	uint64_t until_ns;

	if (driver->real)
		return say(EINVAL, "vb_sim_run: the world has the real clock");
	until_ns = sim_engine_now_ns(world->engine) + duration_ns;
	if (until_ns < duration_ns)
		until_ns = SIM_NEVER - 1;
	runner_add(driver, &self, until_ns);
	run_instant(world);
	while (sim_engine_now_ns(world->engine) < until_ns)
		let_time_pass(world);
	runner_remove(driver, &self);
	return 0;
}

int driver_wait_until(struct vb_sim *world, driver_ready *ready, const void *arg, uint64_t until_ns)
{
	struct driver_runner self;
	int err = -1;

	runner_add(&world->driver, &self, until_ns);
	while (err < 0) {
		run_instant(world);
		if (ready(arg))
			err = 0;
		else if (sim_engine_now_ns(world->engine) >= until_ns)
			err = ETIMEDOUT;
		else if (!let_time_pass(world))
			err = EDEADLK;
	}
	runner_remove(&world->driver, &self);
	return err;
}

int driver_enter(struct vb_sim *world)
{
	struct driver *driver = &world->driver;

	if (driver->thread_count == driver->thread_capacity) {
		uint32_t capacity = driver->thread_capacity + 16;
		pthread_t *threads = realloc(driver->threads, capacity * sizeof(*threads));

		if (!threads)
			return ENOMEM;
		driver->threads = threads;
		driver->thread_capacity = capacity;
	}
	driver->threads[driver->thread_count++] = pthread_self();
	return 0;
}

void driver_leave(struct vb_sim *world)
{
	struct driver *driver = &world->driver;
	int place = place_of_self(driver);

	if (place < 0)
		return;
	driver->threads[place] = driver->threads[--driver->thread_count];
	wake_all(driver);
}

/* --- the real clock --- */

static void kick(struct vb_sim *world)
{
	struct driver *driver = &world->driver;

	if (driver->running && sim_engine_next_ns(world->engine) < driver->asleep_until_ns)
		pthread_cond_signal(&driver->kicked);
}

/*
 * Brings the world up to CLOCK_MONOTONIC; true where it gave up. What happened meanwhile is done each
 * thing at its own time. Where that takes longer than the time that it makes up for (a storm of
 * retries, a sanitizer), it would never end: after BUSY_NS_MAX the world's clock loses the rest.
 */
static bool advance_to_now(struct vb_sim *world)
{
	struct driver *driver = &world->driver;
	uint64_t began_ns = clock_ns(CLOCK_MONOTONIC), now_ns, next_ns, lost_ns;

	sim_engine_run(world->engine);
	while ((next_ns = sim_engine_next_ns(world->engine)) <= began_ns - driver->base_ns) {
		sim_engine_advance(world->engine, next_ns);
		now_ns = clock_ns(CLOCK_MONOTONIC);
		if (now_ns - began_ns > BUSY_NS_MAX) {
			lost_ns = now_ns - driver->base_ns - sim_engine_now_ns(world->engine);
			driver->base_ns += lost_ns;
			driver->wall_base_ns += lost_ns;
			return true;
		}
	}
	sim_engine_advance(world->engine, began_ns - driver->base_ns);
	return false;
}

void driver_catch_up(struct vb_sim *world)
{
	if (!world->driver.real)
		return;
	advance_to_now(world);
	kick(world);
}

static void sleep_until(struct vb_sim *world, uint64_t until_ns)
{
	struct driver *driver = &world->driver;
	struct timespec at;

	driver->asleep_until_ns = until_ns;
	if (until_ns == SIM_NEVER) {
		pthread_cond_wait(&driver->kicked, &world->mutex);
	} else {
		at.tv_sec = (time_t)((until_ns + driver->base_ns) / 1000000000);
		at.tv_nsec = (long)((until_ns + driver->base_ns) % 1000000000);
		pthread_cond_timedwait(&driver->kicked, &world->mutex, &at);
	}
	driver->asleep_until_ns = 0;
}

static void *progress(void *arg)
{
	struct vb_sim *world = arg;

	pthread_mutex_lock(&world->mutex);
	while (!world->driver.stop) {
		/* A mutex is not fair: who waits for it needs time to wake up. */
		if (advance_to_now(world))
			sleep_until(world, sim_engine_now_ns(world->engine) + REST_NS);
		else
			sleep_until(world, sim_engine_next_ns(world->engine));
	}
	pthread_mutex_unlock(&world->mutex);
	return NULL;
}

int driver_start(struct vb_sim *world)
{
	struct driver *driver = &world->driver;
	sigset_t all, kept;
	int err;

	while (driver->stopping)
		pthread_cond_wait(&driver->changed, &world->mutex);
	if (!driver->real || driver->running)
		return 0;
	/* All but those that a fault raises: blocked, they would end the process under the guard. */
	sigfillset(&all);
	sigdelset(&all, SIGSEGV);
	sigdelset(&all, SIGBUS);
	sigdelset(&all, SIGILL);
	sigdelset(&all, SIGFPE);
	driver->stop = false;
	driver->asleep_until_ns = 0;
	pthread_sigmask(SIG_SETMASK, &all, &kept);
	err = pthread_create(&driver->progress, NULL, progress, world);
	pthread_sigmask(SIG_SETMASK, &kept, NULL);
	driver->running = !err;
	return err;
}

void driver_stop(struct vb_sim *world)
{
	struct driver *driver = &world->driver;
	pthread_t thread;

	pthread_mutex_lock(&world->mutex);
	if (!driver->running || world->contexts.live) {
		pthread_mutex_unlock(&world->mutex);
		return;
	}
	driver->stop = true;
	driver->running = false;
	driver->stopping = true;
	thread = driver->progress;
	pthread_cond_signal(&driver->kicked);
	pthread_mutex_unlock(&world->mutex);
	pthread_join(thread, NULL);
	pthread_mutex_lock(&world->mutex);
	driver->stopping = false;
	wake_all(driver);
	pthread_mutex_unlock(&world->mutex);
}

/* --- both --- */

void driver_step(struct vb_sim *world, driver_ready *ready, const void *arg)
{
	if (world->driver.real) {
		driver_catch_up(world);
		return;
	}
	run_instant(world);
	/* A thread that did not register does not move the time of those that did. */
	if (!ready(arg) && counts(&world->driver))
		let_time_pass(world);
}

int driver_wait(struct vb_sim *world, driver_ready *ready, const void *arg)
{
	if (world->driver.real) {
		while (!ready(arg))
			pthread_cond_wait(&world->driver.changed, &world->mutex);
		return 0;
	}
	for (;;) {
		run_instant(world);
		if (ready(arg))
			return 0;
		if (!let_time_pass(world))
			return EDEADLK;
	}
}

int driver_wait_for_others(struct vb_sim *world, driver_ready *ready, const void *arg)
{
	if (ready(arg))
		return 0;
	if (!world->driver.real && !driver_has_others(world))
		return EDEADLK;
	return driver_wait(world, ready, arg);
}
