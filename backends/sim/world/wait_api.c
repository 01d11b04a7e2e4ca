/* SPDX-License-Identifier: MIT */
/* <verbena/sim.h>: waits for descriptors on the virtual clock. */
#include "backends/sim/base/cancel.h"
#include "backends/sim/base/descriptor.h"
#include "backends/sim/object/refuse.h"
#include "backends/sim/world/world.h"

#include "sim/engine.h"

#include <errno.h>

#define LOOKS 16

struct wait {
	struct driver *driver;
	vb_sim_look_fn *look;
	void *arg;
	uint64_t until_ns;
	/* Not NULL: time does not pass the last event before until_ns. Gets what is left then. */
	uint64_t *left_ns;
};

/* True while this thread looks: the world is locked, and look() may end up in another function that waits. */
static _Thread_local bool looking;

static bool is_over(const void *arg)
{
	const struct wait *wait = arg;
	bool over;

	looking = true;
	over = wait->look(wait->arg);
	looking = false;
	return over;
}

static int wait_through_events(const struct wait *wait)
{
	struct driver *driver = wait->driver;
	uint64_t next_ns;
	int err;

	do {
		/* With the end now, this runs the present instant only. */
		err = driver_wait_until(driver, is_over, wait, sim_engine_now_ns(driver->engine));
		next_ns = sim_engine_next_ns(driver->engine);
		if (err == ETIMEDOUT && next_ns != SIM_NEVER && next_ns <= wait->until_ns)
			err = driver_wait_until(driver, is_over, wait, next_ns);
		else if (err == ETIMEDOUT)
			err = EAGAIN;
	} while (err == ETIMEDOUT);
	*wait->left_ns = wait->until_ns == SIM_NEVER
				 ? VB_SIM_NEVER
				 : wait->until_ns - sim_engine_now_ns(driver->engine);
	return err;
}

/* Returns true if this thread has looked LOOKS times in a row, at the same time of the world. */
static bool looks_on(const struct driver *driver)
{
	static _Thread_local struct {
		const struct driver *driver;
		uint64_t now_ns;
		unsigned int count;
	} last;
	const uint64_t now_ns = sim_engine_now_ns(driver->engine);

	if (last.driver != driver || last.now_ns != now_ns)
		last.count = 0;
	last.driver = driver;
	last.now_ns = now_ns;
	return ++last.count > LOOKS;
}

/* With a timeout of 0. A program that does nothing but look must not stand still. */
static int look_once(const struct wait *wait)
{
	struct driver *driver = wait->driver;
	int err = driver_wait_until(driver, is_over, wait, sim_engine_now_ns(driver->engine));

	if (err != ETIMEDOUT || !looks_on(driver))
		return err;
	driver_step(driver, is_over, wait);
	if (driver->ended)
		return ENODEV;
	return is_over(wait) ? 0 : ETIMEDOUT;
}

static int wait_in_world(struct wait *wait, uint64_t timeout_ns)
{
	const uint64_t now_ns = sim_engine_now_ns(wait->driver->engine);

	if (!timeout_ns)
		return look_once(wait);
	wait->until_ns = now_ns + timeout_ns < timeout_ns ? SIM_NEVER : now_ns + timeout_ns;
	if (wait->left_ns)
		return wait_through_events(wait);
	return driver_wait_until(wait->driver, is_over, wait, wait->until_ns);
}

static int wait_for(const char *call, int fd, struct wait *wait, uint64_t timeout_ns)
{
	struct vb_sim *world = looking ? NULL : descriptor_owner(fd);
	int state, err;

	if (!world)
		return refuse_why(call, (struct vb_why){VB_WHY_WAIT_DESCRIPTOR, {(uint64_t)fd}});
	wait->driver = &world->driver;
	state = cancel_off(); /* look() has cancellation points */
	{
		HOLD hold = world_hold(world);

		err = wait_in_world(wait, timeout_ns);
	}
	cancel_restore(state);
	if (err != EDEADLK && err != ENODEV)
		return err;
	return refuse_wait(call, err, (struct vb_why){VB_WHY_WAIT_IDLE, {(uint64_t)fd}});
}

int vb_sim_wait_fd(int fd, vb_sim_look_fn *look, void *arg, uint64_t timeout_ns)
{
	struct wait wait = {.look = look, .arg = arg};

	return wait_for(__func__, fd, &wait, timeout_ns);
}

int vb_sim_wait_fd_events(int fd, vb_sim_look_fn *look, void *arg, uint64_t timeout_ns,
			  uint64_t *left_ns)
{
	struct wait wait = {.look = look, .arg = arg, .left_ns = left_ns};

	*left_ns = timeout_ns;
	return wait_for(__func__, fd, &wait, timeout_ns);
}

bool vb_sim_has_fd(int fd)
{
	if (looking)
		return false;
	return fd < 0 ? descriptor_any() : descriptor_owner(fd) != NULL;
}
