/* SPDX-License-Identifier: MIT */
#include "backends/sim/world/call.h"

#include "backends/sim/base/cancel.h"
#include "backends/sim/base/clock_now.h"
#include "backends/sim/wire/shared.h"
#include "backends/sim/world/world.h"

#include <errno.h>
#include <string.h>
#include <time.h>

_Static_assert(sizeof(struct world_call) <= SHARED_CALL_BYTES, "a call fits the wire");

/* How long a thread that waits for an answer sleeps at a time. */
#define NAP_NS 20000

/* A thread looks so often for the answer before it asks by a system call whether the process lives. */
#define LOOKS 16

/* A question without an answer. It is on the stack of the thread that waits. */
struct world_wait {
	struct world_wait *next;
	uint64_t process;
	struct world_call *call;
	bool answered;
};

/* --- answers and questions that come --- */

static void take_answer(struct vb_sim *world, uint64_t process, const struct world_call *answer)
{
	for (struct world_wait *wait = world->calls.waits; wait; wait = wait->next)
		if (wait->process == process && wait->call->serial == answer->serial &&
		    !wait->answered) {
			*wait->call = *answer;
			wait->call->text[sizeof(answer->text) - 1] = '\0';
			wait->call->why.verb = wait->call->why.text = NULL; /* of another process */
			wait->answered = true;
			return;
		}
}

static void called(void *arg, uint64_t process, const uint8_t *bytes, size_t length)
{
	struct vb_sim *world = arg;
	struct world_call call;

	if (length != sizeof(call))
		return;
	memcpy(&call, bytes, sizeof(call));
	if (call.is_answer) {
		take_answer(world, process, &call);
		return;
	}
	if (!world->calls.serve)
		return;
	world->calls.serve(world, process, &call);
	if (!call.serial)
		return;
	call.is_answer = true;
	world_tell(world, process, &call);
}

void world_take_calls(struct vb_sim *world)
{
	if (world->shared)
		shared_take_calls(world->shared, called, world);
}

/* --- asking --- */

void world_tell(struct vb_sim *world, uint64_t process, const struct world_call *call)
{
	if (world->shared && shared_call(world->shared, process, call, sizeof(*call)))
		wires_flush(&world->wires);
}

uint64_t world_qp_process(const struct vb_sim *world, const struct sim_device *device,
			  uint32_t number)
{
	uint64_t process;

	if (!world->shared)
		return 0;
	process = shared_owner(world->shared, device, SIM_NUMBERS_QP, number);
	return process == shared_process(world->shared) ? 0 : process;
}

/* Lets other threads run, which may take the answer. */
static void nap(struct vb_sim *world)
{
	const struct timespec time = {.tv_nsec = NAP_NS};
	int state = cancel_off();

	driver_asleep(&world->driver);
	pthread_mutex_unlock(&world->driver.mutex);
	nanosleep(&time, NULL);
	pthread_mutex_lock(&world->driver.mutex);
	driver_awake(&world->driver);
	cancel_restore(state);
}

static int await(struct vb_sim *world, const struct world_wait *wait)
{
	const uint64_t end_ns = clock_now_ns(CLOCK_MONOTONIC) + WORLD_CALL_S * UINT64_C(1000000000);

	for (unsigned int looks = 1; !wait->answered; looks++) {
		driver_catch_up(&world->driver);
		if (wait->answered)
			break;
		if (world->driver.ended)
			return EIO;
		if (looks % LOOKS == 0 && !world_process_lives(world, wait->process))
			return EIO;
		if (clock_now_ns(CLOCK_MONOTONIC) > end_ns)
			return ETIMEDOUT;
		nap(world);
	}
	return 0;
}

int world_ask(struct vb_sim *world, uint64_t process, struct world_call *call)
{
	struct world_wait wait = {.process = process, .call = call}, **at = &world->calls.waits;
	int err;

	if (!++world->calls.last_serial)
		++world->calls.last_serial;
	call->serial = world->calls.last_serial;
	if (!world->shared || !shared_call(world->shared, process, call, sizeof(*call)))
		return world_process_lives(world, process) ? ETIMEDOUT : EIO;
	wait.next = *at;
	*at = &wait;
	err = await(world, &wait);
	while (*at != &wait)
		at = &(*at)->next;
	*at = wait.next;
	return err;
}
