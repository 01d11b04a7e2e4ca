/* SPDX-License-Identifier: MIT */
/* The virtual clock: time moves to the next event while all registered threads wait. */
#include "backends/sim/clock/private.h"

#include "sim/engine.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/single_threaded.h>

static int place_of_self(const struct driver *driver)
{
	for (uint32_t i = 0; i < driver->thread_count; i++)
		if (pthread_equal(driver->threads[i], pthread_self()))
			return (int)i;
	return -1;
}

bool virtual_counts(const struct driver *driver)
{
	return driver->thread_count == 0 || place_of_self(driver) >= 0;
}

bool virtual_has_others(const struct driver *driver)
{
	return driver->thread_count > (place_of_self(driver) >= 0 ? 1u : 0u);
}

static bool all_wait(const struct driver *driver)
{
	if (driver->thread_count == 0 || __libc_single_threaded)
		return true;
	return place_of_self(driver) >= 0 && driver->waiting + 1 >= driver->thread_count;
}

void virtual_run_instant(struct driver *driver)
{
	if (sim_engine_quiet(driver->engine))
		return;
	sim_engine_run(driver->engine);
	driver_ran(driver);
	driver_changed(driver);
}

/* The next event or the end of a thread's wait, whichever comes first. */
static uint64_t next_ns(const struct driver *driver)
{
	uint64_t next = sim_engine_next_ns(driver->engine);

	for (const struct driver_runner *r = driver->runners; r; r = r->next)
		if (r->until_ns < next)
			next = r->until_ns;
	return next;
}

/* No thread moves time beyond until_ns while the runner is in the list. */
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

/* A thread that sleeps until the driver changes. */
struct sleeper {
	struct driver *driver;
	const struct driver_runner *runner; /* NULL: none */
};

/* Those that still wait count themselves again; the cancelled thread does not. */
static void sleeper_cancelled(void *arg)
{
	const struct sleeper *sleeper = arg;

	driver_wake_all(sleeper->driver);
	if (sleeper->runner)
		runner_remove(sleeper->driver, sleeper->runner);
	driver_awake(sleeper->driver);
	pthread_mutex_unlock(&sleeper->driver->mutex);
}

/* Not inlined: a cleanup handler is a setjmp(3), and GCC warns of variables beside it. */
static __attribute__((noinline)) void wait_for_change(struct sleeper *sleeper, uint64_t epoch)
{
	driver_asleep(sleeper->driver);
	pthread_cleanup_push(sleeper_cancelled, sleeper);
	while (sleeper->driver->epoch == epoch)
		pthread_cond_wait(&sleeper->driver->changed, &sleeper->driver->mutex);
	pthread_cleanup_pop(false);
	driver_awake(sleeper->driver);
}

static void sleep_until_changed(struct driver *driver, const struct driver_runner *runner)
{
	struct sleeper sleeper = {driver, runner};

	if (virtual_counts(driver))
		driver->waiting++;
	wait_for_change(&sleeper, driver->epoch);
}

bool virtual_let_time_pass(struct driver *driver, struct driver_runner *runner)
{
	uint64_t next;

	if (!all_wait(driver)) {
		sleep_until_changed(driver, runner);
		return true;
	}
	next = next_ns(driver);
	if (next != SIM_NEVER) {
		sim_engine_advance(driver->engine, next);
		driver_ran(driver);
	}
	driver_changed(driver);
	if (driver->patience.stuck)
		patience_passed(driver, next != SIM_NEVER);
	return next != SIM_NEVER;
}

int driver_run(struct driver *driver, uint64_t duration_ns)
{
	struct driver_runner self;
	uint64_t until_ns;

	until_ns = sim_engine_now_ns(driver->engine) + duration_ns;
	if (until_ns < duration_ns)
		until_ns = SIM_NEVER - 1;
	runner_add(driver, &self, until_ns);
	virtual_run_instant(driver);
	while (sim_engine_now_ns(driver->engine) < until_ns && !driver->ended)
		virtual_let_time_pass(driver, &self);
	runner_remove(driver, &self);
	return driver->ended ? ENODEV : 0;
}

int driver_wait_until(struct driver *driver, driver_ready *ready, const void *arg,
		      uint64_t until_ns)
{
	struct driver_runner self;
	int err = -1;

	runner_add(driver, &self, until_ns);
	while (err < 0) {
		virtual_run_instant(driver);
		if (driver->ended)
			err = ENODEV;
		else if (ready(arg))
			err = 0;
		else if (sim_engine_now_ns(driver->engine) >= until_ns)
			err = ETIMEDOUT;
		else if (!virtual_let_time_pass(driver, &self))
			err = EDEADLK;
	}
	runner_remove(driver, &self);
	return err;
}

int driver_enter(struct driver *driver)
{
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

void driver_leave(struct driver *driver)
{
	int place = place_of_self(driver);

	if (place < 0)
		return;
	driver->threads[place] = driver->threads[--driver->thread_count];
	driver_wake_all(driver);
}
