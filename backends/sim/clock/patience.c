/* SPDX-License-Identifier: MIT */
/* Virtual clock: a wait that can never end is noticed. */
#include "backends/sim/clock/private.h"

#include "sim/engine.h"

void driver_watch(struct driver *driver, const struct driver_patience *patience)
{
	driver->patience = *patience;
}

void patience_blocked(const struct driver *driver)
{
	if (driver->patience.stuck)
		driver->patience.stuck(DRIVER_BLOCKED, sim_engine_now_ns(driver->engine));
}

void patience_passed(struct driver *driver, bool moved)
{
	struct driver_patience *patience = &driver->patience;
	const uint64_t now_ns = sim_engine_now_ns(driver->engine);

	patience->polls = moved ? 0 : patience->polls + 1;
	if (patience->polls_max && patience->polls == patience->polls_max)
		patience->stuck(DRIVER_POLLING, now_ns);
	if (patience->time_ns_max && now_ns > patience->time_ns_max)
		patience->stuck(DRIVER_LONG, now_ns);
}
