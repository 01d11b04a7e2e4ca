/* SPDX-License-Identifier: MIT */
/*
 * Requests to a service that nobody serves yet. The processes of a simulated machine share its processors: a
 * program that is about to listen may wait for one longer than its peer takes to connect, while adapters
 * answer the packets before the request without a processor. So a request waits a while for its listener,
 * and the requester sends it again if the listener is in another process.
 */
#include "sim/cm/private.h"

#include "sim/net/net.h"

#include <stddef.h>

/* Between two looks for listeners. */
#define LOOK_NS UINT64_C(1000000)

/* The most requests that wait. Those beyond are refused at once. */
#define WAITING_MAX 64u

static bool is_request(enum sim_cm_message message)
{
	return message == SIM_CM_REQ || message == SIM_CM_SIDR_REQ;
}

static struct sim_gsi_target target_of(const struct sim_cm_arrival *arrival)
{
	struct sim_gsi_target target = {.kind = SIM_GSI_SERVICE};

	sim_cm_request_address(arrival->mad, sim_mad_message(arrival->mad), &target.service_id,
			       target.address);
	return target;
}

static bool is_served_here(const struct sim_cm_manager *manager,
			   const struct sim_cm_arrival *arrival)
{
	const struct sim_gsi_target target = target_of(arrival);

	return sim_cm_find_listener(manager, arrival->port->device, target.service_id,
				    target.address);
}

static bool is_served_elsewhere(const struct sim_cm_manager *manager,
				const struct sim_cm_arrival *arrival)
{
	const struct sim_way_out *way = manager->engine->net->way;
	const struct sim_gsi_target target = target_of(arrival);

	return way && way->server && way->server(way->arg, arrival->port->device, &target);
}

static uint64_t sender_id(const struct sim_cm_arrival *arrival)
{
	return sim_mad_get(arrival->mad, sim_mad_message(arrival->mad) == SIM_CM_REQ
						 ? SIM_CM_REQ_LOCAL_ID
						 : SIM_CM_SIDR_REQ_REQUEST_ID);
}

/* Returns the communication of this engine that has sent a request and waits for the answer; NULL: there is
 * none. */
static struct sim_cm *find_sender(const struct sim_cm_manager *manager,
				  const struct sim_cm_arrival *arrival)
{
	struct sim_cm *cm = sim_table_find(&manager->table, (uint32_t)sender_id(arrival));
	const bool waits =
		cm && (cm->state == SIM_CM_REQ_SENT || cm->state == SIM_CM_SIDR_REQ_SENT);

	return waits && cm->transaction_id == sim_mad_get(arrival->mad, SIM_CM_NONE_TRANSACTION_ID)
		       ? cm
		       : NULL;
}

/* Returns true if the request was sent by this engine, whose program waits for no answer any more. */
static bool is_given_up(const struct sim_cm_manager *manager, const struct sim_cm_arrival *arrival)
{
	return manager->table.claim.take &&
	       sim_table_owns(&manager->table, (uint32_t)sender_id(arrival)) &&
	       !find_sender(manager, arrival);
}

static void arm(struct sim_cm_manager *manager)
{
	struct sim_clock *clock = &manager->engine->clock;

	if (manager->patient)
		sim_timer_arm(clock, &manager->patience, clock->now_ns + LOOK_NS);
}

/* Takes an arrival out of the list of those that wait. */
static struct sim_cm_arrival *take_out(struct sim_cm_manager *manager,
				       struct sim_cm_arrival **place)
{
	struct sim_cm_arrival *arrival = *place;

	*place = arrival->next;
	manager->patient_count--;
	return arrival;
}

/* Returns true if the request at a place waits no longer, and takes it out. */
static bool leaves(struct sim_cm_manager *manager, struct sim_cm_arrival **place)
{
	struct sim_cm_arrival *arrival = *place;
	struct sim_cm *sender = find_sender(manager, arrival);

	if (is_given_up(manager, arrival)) {
		sim_cm_spare(manager, take_out(manager, place));
	} else if (is_served_here(manager, arrival) ||
		   manager->engine->clock.now_ns >= arrival->until_ns) {
		sim_cm_queue(manager, take_out(manager, place));
	} else if (sender && is_served_elsewhere(manager, arrival)) {
		sim_cm_spare(manager, take_out(manager, place));
		sim_cm_repeat(sender);
	} else {
		return false;
	}
	return true;
}

static void look(struct sim_timer *timer)
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

/* The sender of a request gives up: the REJ comes behind the request, as on the wire. */
static void cancel(struct sim_cm_manager *manager, const uint8_t *rej)
{
	struct sim_cm_arrival **place = &manager->patient;

	while (*place) {
		const struct sim_cm_arrival *arrival = *place;

		if (sender_id(arrival) == sim_mad_get(rej, SIM_CM_REJ_LOCAL_ID) &&
		    sim_mad_get(arrival->mad, SIM_CM_NONE_TRANSACTION_ID) ==
			    sim_mad_get(rej, SIM_CM_NONE_TRANSACTION_ID))
			sim_cm_spare(manager, take_out(manager, place));
		else
			place = &(*place)->next;
	}
}

void sim_cm_patience_init(struct sim_cm_manager *manager)
{
	sim_timer_init(&manager->patience, look);
}

bool sim_cm_wait_for_listener(struct sim_cm_manager *manager, struct sim_cm_arrival *arrival)
{
	const uint64_t now_ns = manager->engine->clock.now_ns;
	const enum sim_cm_message kind = sim_mad_message(arrival->mad);
	struct sim_cm_arrival **end = &manager->patient;

	if (kind == SIM_CM_REJ)
		cancel(manager, arrival->mad);
	/* A request that has waited comes here a second time. */
	if (!manager->patience_ns || arrival->until_ns || manager->patient_count == WAITING_MAX ||
	    !is_request(kind) || is_served_here(manager, arrival))
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
