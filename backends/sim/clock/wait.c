/* SPDX-License-Identifier: MIT */
/* How a verb waits, on either clock. */
#include "backends/sim/clock/private.h"

#include <errno.h>
#include <sys/single_threaded.h>

void driver_step(struct driver *driver, driver_ready *ready, const void *arg)
{
	if (driver->real) {
		/* The hold has brought the engine up to now, unless the process has one thread. The program
		 * has nothing to answer: a put-off ACK leaves. */
		if (__libc_single_threaded || driver->put_off)
			driver_catch_up(driver);
		return;
	}
	virtual_run_instant(driver);
	/* A thread that is not registered does not move the time of the registered ones. */
	if (!ready(arg) && virtual_counts(driver))
		virtual_let_time_pass(driver, NULL);
}

int driver_wait(struct driver *driver, driver_ready *ready, const void *arg)
{
	if (driver->real) {
		driver_listen(driver);
		while (!driver->ended && !ready(arg))
			driver_sleep(driver);
		return driver->ended ? ENODEV : 0;
	}
	for (;;) {
		virtual_run_instant(driver);
		if (driver->ended)
			return ENODEV;
		if (ready(arg))
			return 0;
		if (!virtual_let_time_pass(driver, NULL)) {
			patience_blocked(driver);
			return EDEADLK;
		}
	}
}

int driver_wait_for_others(struct driver *driver, driver_ready *ready, const void *arg)
{
	if (ready(arg))
		return 0;
	if (!driver->real && !virtual_has_others(driver)) {
		patience_blocked(driver);
		return EDEADLK;
	}
	return driver_wait(driver, ready, arg);
}
