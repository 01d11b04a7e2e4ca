/* SPDX-License-Identifier: MIT */
#include "backends/sim/clock/driver.h"

#include "backends/sim/base/clock_now.h"
#include "backends/sim/clock/private.h"

#include <stdlib.h>
#include <time.h>

/* How long a thread sleeps between two attempts to wake the progress thread. */
#define LEAVE_PAUSE_NS 20000

void driver_init(struct driver *driver, bool real)
{
	*driver = (struct driver){
		.real = real,
		.base_ns = clock_now_ns(CLOCK_MONOTONIC),
		.wall_base_ns = real ? clock_now_ns(CLOCK_REALTIME) : 0,
	};
	if (real)
		ticks_init(&driver->ticks);
	driver->bell = &driver->own_bell;
	pthread_mutex_init(&driver->mutex, NULL);
	pthread_cond_init(&driver->changed, NULL);
}

void driver_end(struct driver *driver)
{
	pthread_cond_destroy(&driver->changed);
	pthread_mutex_destroy(&driver->mutex);
	free(driver->threads);
}

void driver_forked(struct driver *driver)
{
	driver->running = false;
	driver->at_bell = false;
	driver->stopping = false;
	driver->thread_count = 0;
	driver->waiting = 0;
	driver->asleep = 0;
	driver->runners = NULL;
	driver_set_wires(driver, NULL, NULL);
	pthread_cond_init(&driver->changed, NULL);
}

/* The progress thread may have a lower priority, so this thread sleeps. The loop depends on no word of the bell, to which
 * other processes may have written. */
void driver_leave_bell(struct driver *driver)
{
	const struct timespec pause = {.tv_nsec = LEAVE_PAUSE_NS};

	while (atomic_load(&driver->at_bell)) {
		bell_wake(driver->bell);
		nanosleep(&pause, NULL);
	}
}

void driver_set_wires(struct driver *driver, const struct driver_wires *wires, struct bell *bell)
{
	driver_leave_bell(driver);
	driver->wires = wires ? *wires : (struct driver_wires){.arg = NULL};
	driver->bell = bell ? bell : &driver->own_bell;
	driver->listening = false;
	driver->looks_to_listen = 0;
	driver->put_off = false;
}

struct bell *driver_bell(struct driver *driver)
{
	return driver->bell;
}

void driver_set_base(struct driver *driver, uint64_t base_ns, uint64_t wall_base_ns)
{
	driver->base_ns = base_ns;
	driver->wall_base_ns = wall_base_ns;
}

void driver_armed(struct driver *driver)
{
	driver->armed++;
	driver_listen(driver);
}

void driver_disarmed(struct driver *driver)
{
	driver->armed--;
}

void driver_ran(const struct driver *driver)
{
	if (driver->ran)
		driver->ran(driver->ran_arg);
}

void driver_wake_all(struct driver *driver)
{
	driver->waiting = 0;
	driver->epoch++;
	pthread_cond_broadcast(&driver->changed);
}

void driver_asleep(struct driver *driver)
{
	driver->asleep++;
}

void driver_awake(struct driver *driver)
{
	driver->asleep--;
	if (driver->ended)
		pthread_cond_broadcast(&driver->changed);
}

void driver_end_waits(struct driver *driver, void (*wake)(void *arg), void *arg)
{
	driver->ended = true;
	driver_wake_all(driver);
	wake(arg);
	while (driver->asleep)
		pthread_cond_wait(&driver->changed, &driver->mutex);
}

static void sleeper_cancelled(void *arg)
{
	struct driver *driver = arg;

	driver_awake(driver);
	pthread_mutex_unlock(&driver->mutex);
}

void driver_sleep(struct driver *driver)
{
	driver_asleep(driver);
	pthread_cleanup_push(sleeper_cancelled, driver);
	pthread_cond_wait(&driver->changed, &driver->mutex);
	pthread_cleanup_pop(false);
	driver_awake(driver);
}

void driver_changed(struct driver *driver)
{
	/*
	 * If no thread is registered on a virtual clock, the only user is awake: it is the caller.
	 */
	if (driver->real || driver->thread_count)
		driver_wake_all(driver);
}
