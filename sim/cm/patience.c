/* SPDX-License-Identifier: MIT */
/*
 * Requests that arrive before their listener. A simulated adapter shares the machine's processors with
 * programs: a program that is about to listen may be waiting for a processor while its peer connects. With a
 * real adapter, which needs no processor, the listener would be first. Therefore a request without a
 * listener waits. If another process begins to listen, the sender repeats the request.
 */
#include "sim/cm/private.h"

#include <stddef.h>

/* The time between two looks for listeners. */
#define LOOK_NS UINT64_C(1000000)

/* The most waiting requests. A request beyond this number is refused at once. */
#define WAITING_MAX 64u

/* A communication that was made for the request answers a repetition without a listener. */
static bool is_served_here(const struct sim_cm_manager *manager,
			   const struct sim_cm_arrival *arrival)
{
	const struct sim_gsi_target target = sim_cm_request_target(arrival->mad);

	return sim_cm_find_taken(manager, arrival->mad, &arrival->route) ||
	       sim_cm_find_listener(manager, arrival->port->device, &target);
}

/* Returns true if this engine has sent the request, and the sender has ended or has another state. */
static bool is_given_up(const struct sim_cm_manager *manager, const struct sim_cm_arrival *arrival)
{
	return manager->table.claim.take &&
	       sim_table_owns(&manager->table, sim_cm_sender_id(arrival->mad)) &&
	       !sim_cm_find_sender(manager, arrival->mad);
}

static void arm(struct sim_cm_manager *manager)
{
	struct sim_clock *clock = &manager->engine->clock;

	if (manager->patient)
		sim_timer_arm(clock, &manager->patience, sim_clock_now_ns(clock) + LOOK_NS);
}

/* Removes an arrival from the list of waiting requests. */
static struct sim_cm_arrival *take_out(struct sim_cm_manager *manager,
				       struct sim_cm_arrival **place)
{
	struct sim_cm_arrival *arrival = *place;

	*place = arrival->next;
	manager->patient_count--;
	return arrival;
}

/* Removes a request from the list if its wait has ended. Returns true if so. */
static bool leaves(struct sim_cm_manager *manager, struct sim_cm_arrival **place)
{
	struct sim_cm_arrival *arrival = *place;
	struct sim_cm *sender = sim_cm_find_sender(manager, arrival->mad);

	if (is_given_up(manager, arrival)) {
		sim_cm_spare(manager, take_out(manager, place));
	} else if (sender && sim_cm_server(manager, arrival->port, arrival->mad)) {
		sim_cm_spare(manager, take_out(manager, place));
		sim_cm_repeat(sender);
	} else if (is_served_here(manager, arrival) ||
		   sim_clock_now_ns(&manager->engine->clock) >= arrival->until_ns) {
		sim_cm_queue(manager, take_out(manager, place));
	} else {
		return false;
	}
	return true;
}

void sim_cm_look_for_listeners(struct sim_timer *timer)
{
	struct sim_cm_manager *manager =
		(struct sim_cm_manager *)((char *)timer -
					  offsetof(struct sim_cm_manager, patience));
	struct sim_cm_arrival **place = &manager->patient;

	while (*place)
		if (!leaves(manager, place))
			place = &(*place)->next;
	arm(manager);
}

/* Removes the request that its sender has cancelled with a REJ. */
static void cancel(struct sim_cm_manager *manager, const uint8_t *rej)
{
	struct sim_cm_arrival **place = &manager->patient;

	while (*place) {
		const struct sim_cm_arrival *arrival = *place;

		if (sim_cm_sender_id(arrival->mad) == sim_mad_get(rej, SIM_CM_REJ_LOCAL_ID) &&
		    sim_mad_get(arrival->mad, SIM_CM_NONE_TRANSACTION_ID) ==
			    sim_mad_get(rej, SIM_CM_NONE_TRANSACTION_ID))
			sim_cm_spare(manager, take_out(manager, place));
		else
			place = &(*place)->next;
	}
}

bool sim_cm_wait_for_listener(struct sim_cm_manager *manager, struct sim_cm_arrival *arrival)
{
	const uint64_t now_ns = sim_clock_now_ns(&manager->engine->clock);
	const enum sim_cm_message kind = sim_mad_message(arrival->mad);
	struct sim_cm_arrival **end = &manager->patient;

	if (kind == SIM_CM_REJ)
		cancel(manager, arrival->mad);
	/* A request that has waited is received here a second time. */
	if (!manager->patience_ns || arrival->until_ns || manager->patient_count == WAITING_MAX ||
	    !sim_cm_is_request(kind) || is_served_here(manager, arrival))
		return false;
	while (*end)
		end = &(*end)->next;
	*end = arrival;
	arrival->next = NULL;
	arrival->until_ns = now_ns + manager->patience_ns;
	if (!manager->patient_count++)
		arm(manager);
	return true;
}

void sim_cm_drop_patient(struct sim_cm_manager *manager)
{
	sim_timer_disarm(&manager->patience);
	while (manager->patient)
		sim_cm_spare(manager, take_out(manager, &manager->patient));
}

void sim_cm_set_patience(struct sim_engine *engine, uint64_t patience_ns)
{
	engine->cm->patience_ns = patience_ns;
}
