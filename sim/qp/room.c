/* SPDX-License-Identifier: MIT */
/*
 * Room: where packets leave the engine, a QP asks how many the network takes before it sends. A QP that
 * finds no room waits on a list of the engine. Its timers run on. A QP that waits with its first packet has
 * no timer yet: the owner bounds the time for which there is no room.
 */
#include "sim/qp/private.h"

void sim_room_follow(struct sim_qp *qp)
{
	/* The turn of a QP that asks for room also looks at what the QP keeps back. */
	qp->burst = qp->engine->outlet->room || qp->late ? 0 : SIM_BURST_PACKETS;
}

unsigned int sim_room_ask(struct sim_qp *qp, struct sim_path *path, uint32_t dest_qpn)
{
	const struct sim_outlet *outlet = qp->engine->outlet;

	return outlet->room ? outlet->room(qp->engine, path, dest_qpn) : SIM_BURST_PACKETS;
}

/* Looks for the lane of the QP's connection, unless there is none in this epoch. Call it when there is room: without
 * room, the way out may not have made the lane yet. */
static void find_lane(struct sim_qp *qp)
{
	struct sim_engine *engine = qp->engine;
	const uint64_t absent = ~engine->epoch;

	if (qp->lane.epoch == absent)
		return;
	qp->lane.epoch = absent;
	if (engine->outlet->lane &&
	    engine->outlet->lane(engine, &qp->path, qp->dest_qpn, &qp->lane))
		qp->lane.epoch = engine->epoch;
}

unsigned int sim_room_ask_peer(struct sim_qp *qp)
{
	unsigned int room = sim_room_in_lane(qp);

	if (room)
		return room;
	room = sim_room_ask(qp, &qp->path, qp->dest_qpn);
	if (room)
		find_lane(qp);
	return room;
}

bool sim_room_for_ack(struct sim_qp *qp)
{
	const struct sim_outlet *outlet = qp->engine->outlet;
	bool room;

	if (sim_room_in_lane(qp))
		return true;
	if (!outlet->room_for_ack)
		return true;
	room = outlet->room_for_ack(qp->engine, &qp->path, qp->dest_qpn);
	if (room)
		find_lane(qp);
	return room;
}

bool sim_room_lags(const struct sim_qp *qp)
{
	const struct sim_outlet *outlet = qp->engine->outlet;

	return outlet->lags && outlet->lags(qp->engine, &qp->path, qp->dest_qpn);
}

void sim_room_wait(struct sim_qp *qp, enum sim_turns part)
{
	qp->awaiting |= (uint8_t)(1u << part);
	sim_turn_ask(qp, SIM_TURN_ROOM);
}

void sim_room_leave(struct sim_qp *qp)
{
	qp->awaiting = 0;
	sim_turn_leave(qp, SIM_TURN_ROOM);
}

void sim_room_ready(struct sim_engine *engine)
{
	struct sim_qp *qp;

	while ((qp = sim_turn_take(engine, SIM_TURN_ROOM))) {
		const unsigned int parts = qp->awaiting;

		qp->awaiting = 0;
		if (parts & 1u << SIM_TURN_REQUESTER)
			sim_qp_wake_requester(qp);
		if (parts & 1u << SIM_TURN_RESPONDER)
			sim_qp_wake_responder(qp);
	}
}
