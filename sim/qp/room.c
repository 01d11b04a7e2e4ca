/* SPDX-License-Identifier: MIT */
/*
 * Room: where packets leave the engine, a QP asks how many the network takes before it sends. A QP that
 * finds no room waits on a list of the engine. Its timers run on. A QP that waits with its first packet has
 * no timer yet: the owner bounds the time for which there is no room.
 */
#include "sim/qp/private.h"

void sim_room_follow(struct sim_qp *qp)
{
	qp->burst = qp->engine->outlet->room ? 0 : SIM_BURST_PACKETS;
}

unsigned int sim_room_ask(struct sim_qp *qp, struct sim_path *path, uint32_t dest_qpn)
{
	const struct sim_outlet *outlet = qp->engine->outlet;

	return outlet->room ? outlet->room(qp->engine, path, dest_qpn) : SIM_BURST_PACKETS;
}

bool sim_room_for_ack(struct sim_qp *qp)
{
	const struct sim_outlet *outlet = qp->engine->outlet;

	return outlet->room_for_ack(qp->engine, &qp->path, qp->dest_qpn);
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
