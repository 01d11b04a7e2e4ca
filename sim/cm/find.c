/* SPDX-License-Identifier: MIT */
/* Whom a message is for: which communication of this engine, or which other process. */
#include "sim/cm/private.h"

#include "sim/net/net.h"

#include <string.h>

/* --- requests --- */

uint32_t sim_cm_sender_id(const uint8_t *mad)
{
	return (uint32_t)sim_mad_get(mad, sim_mad_message(mad) == SIM_CM_REQ
						  ? SIM_CM_REQ_LOCAL_ID
						  : SIM_CM_SIDR_REQ_REQUEST_ID);
}

struct sim_cm *sim_cm_find_sender(const struct sim_cm_manager *manager, const uint8_t *mad)
{
	struct sim_cm *cm = sim_cm_is_request(sim_mad_message(mad))
				    ? sim_table_find(&manager->table, sim_cm_sender_id(mad))
				    : NULL;
	const bool waits =
		cm && (cm->state == SIM_CM_REQ_SENT || cm->state == SIM_CM_SIDR_REQ_SENT);

	return waits && cm->transaction_id == sim_mad_get(mad, SIM_CM_NONE_TRANSACTION_ID) ? cm
											   : NULL;
}

/* Linux compares the whole address of the sender. Two senders of one low half that choose the same request
 * ID at the same time would lose a message, which is repeated. */
struct sim_cm_key sim_cm_request_key(const uint8_t *mad, const struct sim_route *route)
{
	uint64_t address = route->slid;

	if (!route->infiniband || route->has_grh)
		memcpy(&address, route->source_gid + 8, sizeof(address));
	return (struct sim_cm_key){address, sim_cm_sender_id(mad)};
}

struct sim_cm *sim_cm_find_taken(const struct sim_cm_manager *manager, const uint8_t *mad,
				 const struct sim_route *route)
{
	const bool connects = sim_mad_message(mad) == SIM_CM_REQ;
	const struct sim_cm_key key =
		connects ? (struct sim_cm_key){sim_mad_get(mad, SIM_CM_REQ_CA_GUID),
					       sim_cm_sender_id(mad)}
			 : sim_cm_request_key(mad, route);
	const struct sim_cm_node *node =
		sim_cm_index_find(connects ? &manager->by_remote_id : &manager->by_request, key);

	return node ? node->cm : NULL;
}

void sim_cm_take_request(struct sim_cm *cm, uint64_t process)
{
	const struct sim_way_out *way = cm->engine->net->way;

	if (!process || !way || !way->take)
		return;
	cm->requester = process;
	way->take(way->arg, process, cm->remote_id, true);
}

void sim_cm_forget_request(struct sim_cm *cm)
{
	const struct sim_way_out *way = cm->engine->net->way;

	if (cm->requester && way && way->take)
		way->take(way->arg, cm->requester, cm->remote_id, false);
	cm->requester = 0;
}

/* --- communications --- */

static struct sim_cm *find_pair(const struct sim_cm_manager *manager, uint64_t local_id,
				uint64_t remote_id)
{
	struct sim_cm *cm = sim_table_find(&manager->table, (uint32_t)local_id);

	return cm && cm->remote_id == remote_id ? cm : NULL;
}

/* The sender of a REJ after a timeout may not know the receiver's ID. */
static struct sim_cm *find_rejected(const struct sim_cm_manager *manager, const uint8_t *mad)
{
	const uint64_t remote_id = sim_mad_get(mad, SIM_CM_REJ_LOCAL_ID);
	struct sim_cm_key key = {.low = (uint32_t)remote_id};
	const struct sim_cm_node *node;

	if (sim_mad_get(mad, SIM_CM_REJ_REASON) == SIM_CM_REJ_TIMEOUT) {
		memcpy(&key.high, sim_mad_bytes(mad, SIM_CM_REJ_INFO), sizeof(key.high));
		key.high = be64toh(key.high);
		node = sim_cm_index_find(&manager->by_remote_id, key);
		return node ? node->cm : NULL;
	}
	return find_pair(manager, sim_mad_get(mad, SIM_CM_REJ_REMOTE_ID),
			 sim_mad_get(mad, SIM_CM_REJ_MESSAGE) == SIM_CM_ANSWERS_REQ ? 0
										    : remote_id);
}

struct sim_cm *sim_cm_find(const struct sim_cm_manager *manager, const uint8_t *mad,
			   enum sim_cm_message message)
{
	const uint64_t local_id = sim_mad_get(mad, SIM_CM_REP_REMOTE_ID);
	const uint64_t remote_id = sim_mad_get(mad, SIM_CM_REP_LOCAL_ID);
	struct sim_cm *cm;

	switch (message) {
	case SIM_CM_SIDR_REP:
		return find_pair(manager, sim_mad_get(mad, SIM_CM_SIDR_REP_REQUEST_ID), 0);
	case SIM_CM_REJ:
		return find_rejected(manager, mad);
	case SIM_CM_MRA:
		return find_pair(
			manager, local_id,
			sim_mad_get(mad, SIM_CM_MRA_MESSAGE) == SIM_CM_ANSWERS_REQ ? 0 : remote_id);
	case SIM_CM_REP:
		cm = find_pair(manager, local_id, 0);
		return cm ? cm : find_pair(manager, local_id, remote_id);
	default:
		return find_pair(manager, local_id, remote_id);
	}
}

/* --- processes --- */

static uint64_t ask(const struct sim_cm_manager *manager, const struct sim_port *port,
		    const struct sim_gsi_target *target)
{
	const struct sim_way_out *way = manager->engine->net->way;

	return way && way->server ? way->server(way->arg, port->device, target) : 0;
}

/* Returns true if a communication of this engine was made for a request of this engine. */
static bool is_taken_here(const struct sim_cm_manager *manager, const uint8_t *mad)
{
	static const struct sim_route nowhere;
	const struct sim_cm *sender = sim_table_find(&manager->table, sim_cm_sender_id(mad));

	return sim_cm_find_taken(manager, mad, sender ? &sender->path.route : &nowhere);
}

/* A kernel finds the communication of a repeated request before it looks for a listener: Linux
 * drivers/infiniband/core/cm.c, cm_match_req() and cm_sidr_req_handler(). */
static uint64_t server_of_request(const struct sim_cm_manager *manager, const struct sim_port *port,
				  const uint8_t *mad)
{
	const struct sim_gsi_target request = {.kind = SIM_GSI_REQUEST,
					       .communication_id = sim_cm_sender_id(mad)};
	const struct sim_gsi_target service = sim_cm_request_target(mad);
	uint64_t taker;

	if (is_taken_here(manager, mad))
		return 0;
	taker = ask(manager, port, &request);
	if (taker || sim_cm_find_listener(manager, NULL, &service))
		return taker;
	return ask(manager, port, &service);
}

static bool has_communication(const struct sim_cm_manager *manager, uint32_t communication_id)
{
	return manager->table.claim.take
		       ? sim_table_owns(&manager->table, communication_id)
		       : sim_table_find(&manager->table, communication_id) != NULL;
}

uint64_t sim_cm_server(const struct sim_cm_manager *manager, const struct sim_port *port,
		       const uint8_t *mad)
{
	const enum sim_cm_message message = sim_mad_message(mad);
	struct sim_gsi_target target = {.kind = SIM_GSI_COMMUNICATION};

	if (message == SIM_CM_NONE)
		return 0;
	if (sim_cm_is_request(message))
		return server_of_request(manager, port, mad);
	/* All messages but the SIDR_REP have the two IDs at the same places. */
	target.communication_id =
		(uint32_t)sim_mad_get(mad, message == SIM_CM_SIDR_REP ? SIM_CM_SIDR_REP_REQUEST_ID
								      : SIM_CM_REP_REMOTE_ID);
	/* The sender of a REJ after a timeout does not know its peer. */
	if (message == SIM_CM_REJ && !target.communication_id) {
		target.kind = SIM_GSI_EVERYBODY;
		return sim_cm_find(manager, mad, message) ? 0 : ask(manager, port, &target);
	}
	return has_communication(manager, target.communication_id) ? 0
								   : ask(manager, port, &target);
}
