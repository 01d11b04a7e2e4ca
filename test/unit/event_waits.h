/* SPDX-License-Identifier: MIT */
/* Waits of a thread for an event of the simulator. They may fail once the device has ended. */
#ifndef TEST_UNIT_EVENT_WAITS_H
#define TEST_UNIT_EVENT_WAITS_H

#include "backends/sim/backend.h"

static struct ibv_context *context;
static struct ibv_comp_channel *channel;

static inline void wait_cq_event(void)
{
	struct ibv_cq *which;
	void *arg;

	vb_backend_sim.get_cq_event(channel, &which, &arg);
}

static inline void wait_async_event(void)
{
	struct ibv_async_event event;

	vb_backend_sim.get_async_event(context, &event);
}

#endif
