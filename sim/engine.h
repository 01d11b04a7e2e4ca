/* SPDX-License-Identifier: MIT */
/*
 * The engine put together. It has no thread, no socket and no clock of its own: its owner posts
 * work, says what time it is, and learns of completions, events and the next timer.
 *
 * Nothing here locks. Errors are errno values. `user` pointers are the owner's; the engine hands
 * them back.
 */
#ifndef SIM_ENGINE_H
#define SIM_ENGINE_H

#include "sim/base/core.h"
#include "sim/base/note.h"
#include "sim/base/refuse.h"
#include "sim/cm/cm.h"
#include "sim/cm/ip.h"
#include "sim/net/delivery.h"
#include "sim/net/fabric.h"
#include "sim/net/fault.h"
#include "sim/net/multicast.h"
#include "sim/net/notes.h"
#include "sim/net/schedule.h"
#include "sim/net/subnet.h"
#include "sim/net/trace.h"
#include "sim/net/wire.h"
#include "sim/object/ah.h"
#include "sim/object/cq.h"
#include "sim/object/device.h"
#include "sim/object/memory.h"
#include "sim/object/srq.h"
#include "sim/object/xrcd.h"
#include "sim/qp/qp.h"

/* ENOMEM. The seed decides everything that is random in the engine. */
int sim_engine_create(const struct sim_host *host, uint64_t seed, struct sim_engine **engine);

/* Ends the engine and its devices; no QP, CQ, MR or AH may be left. */
void sim_engine_destroy(struct sim_engine *engine);

/* Runs the present instant to its end. */
void sim_engine_run(struct sim_engine *engine);

/* True if sim_engine_run() has nothing to do. */
static inline bool sim_engine_quiet(const struct sim_engine *engine)
{
	return !engine->turns[SIM_TURN_REQUESTER].head && !engine->turns[SIM_TURN_RESPONDER].head &&
	       !engine->cm_waits;
}

/* Returns the time that the engine was told last. */
static inline uint64_t sim_engine_now_ns(const struct sim_engine *engine)
{
	return engine->clock.told_ns;
}

/* True if a requester has its turn. */
static inline bool sim_engine_has_requests(const struct sim_engine *engine)
{
	return engine->turns[SIM_TURN_REQUESTER].head;
}

/* Returns true if sim_engine_run() would do nothing but send one QP's ACK. */
bool sim_engine_owes_ack(const struct sim_engine *engine);

/* When the next timer or packet is due; SIM_NEVER if none is. */
uint64_t sim_engine_next_ns(struct sim_engine *engine);

/* Returns true if something is due at a time or before it. */
static inline bool sim_engine_is_due(struct sim_engine *engine, uint64_t at_ns)
{
	return sim_clock_floor(&engine->clock) <= at_ns && sim_engine_next_ns(engine) <= at_ns;
}

/* Moves the clock to now_ns (never back), up to which nothing is due. */
static inline void sim_engine_pass(struct sim_engine *engine, uint64_t now_ns)
{
	sim_clock_tell(&engine->clock, now_ns);
}

/* The time has moved since it was told: the engine asks host.now_ns() for it where it needs the time. What is due
 * then waits for sim_engine_advance(). */
static inline void sim_engine_leave_behind(struct sim_engine *engine)
{
	engine->clock.behind = true;
}

/* Returns true if the engine has not asked for the time since sim_engine_leave_behind(). */
static inline bool sim_engine_is_behind(const struct sim_engine *engine)
{
	return engine->clock.behind;
}

/*
 * Moves the clock to now_ns (never back) and does all that is due on the way, each thing at its
 * own time and each instant to its end.
 */
void sim_engine_advance(struct sim_engine *engine, uint64_t now_ns);

/*
 * Moves the clock to now_ns (never back). Nothing happened for a duration, because the owner's thread did not run:
 * each timer and each packet on a link is later by it.
 */
void sim_engine_postpone(struct sim_engine *engine, uint64_t duration_ns, uint64_t now_ns);

#endif
