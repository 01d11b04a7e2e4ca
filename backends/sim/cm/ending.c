/* SPDX-License-Identifier: MIT */
/*
 * DISCONNECTED comes behind the completions of the QP. On a real machine, the adapter completes a send as soon as
 * the ACK has come, and the event of the DREQ behind the ACK comes later, through several threads of the kernel. A
 * simulated adapter may receive the ACK and the DREQ at once, because it receives when its process has a processor.
 * Programs rely on the order: libfabric closes the connection on the event, and reports the sends whose completions
 * it has not polled as failed.
 */
#include "backends/sim/cm/private.h"

/* The time between two looks at the CQs. */
#define LOOK_NS UINT64_C(1000000)

/* Returns true if the program has not polled a completion of the identifier's QP. */
static bool has_completions(const struct cm_id *id)
{
	const struct sim_qp *qp = sim_table_find(&id->device->device->engine->qps, id->qpn);

	return qp && sim_qp_has_completed(qp);
}

static void arm(struct cm *cm)
{
	struct sim_clock *clock = &cm_engine(cm)->clock;

	sim_timer_arm(clock, &cm->ending_look, sim_clock_now_ns(clock) + LOOK_NS);
}

static void leave(struct cm_id **place)
{
	struct cm_id *id = *place;

	*place = id->next_ending;
	id->ending_until_ns = 0;
}

static void look(struct sim_timer *timer)
{
	struct cm *cm = (struct cm *)timer;
	struct cm_id **place = &cm->first_ending;

	while (*place) {
		struct cm_id *id = *place;

		if (has_completions(id) &&
		    sim_clock_now_ns(&cm_engine(cm)->clock) < id->ending_until_ns) {
			place = &id->next_ending;
			continue;
		}
		leave(place);
		cm_event_tell(id, RDMA_CM_EVENT_DISCONNECTED, 0);
	}
	if (cm->first_ending)
		arm(cm);
}

void cm_ending_init(struct cm *cm)
{
	sim_timer_init(&cm->ending_look, look);
}

void cm_ending_tell(struct cm_id *id)
{
	struct cm *cm = id->cm;

	if (!cm->ending_patience_ns || !has_completions(id)) {
		cm_event_tell(id, RDMA_CM_EVENT_DISCONNECTED, 0);
		return;
	}
	id->ending_until_ns = sim_clock_now_ns(&cm_engine(cm)->clock) + cm->ending_patience_ns;
	id->next_ending = cm->first_ending;
	cm->first_ending = id;
	arm(cm);
}

bool cm_ending_stop(struct cm_id *id)
{
	struct cm_id **place = &id->cm->first_ending;

	if (!id->ending_until_ns)
		return false;
	while (*place != id)
		place = &(*place)->next_ending;
	leave(place);
	return true;
}
