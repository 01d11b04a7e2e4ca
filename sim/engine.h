/* SPDX-License-Identifier: MIT */
/*
 * The engine put together. It has no thread, no socket and no clock of its own: its owner posts
 * work, says what time it is, and is told of completions, events and the next timer.
 *
 * Nothing here locks. Errors are errno values. `user` pointers are the owner's and are handed back.
 */
#ifndef SIM_ENGINE_H
#define SIM_ENGINE_H

#include "sim/base/clock.h"
#include "sim/base/event.h"
#include "sim/net/fabric.h"
#include "sim/net/trace.h"
#include "sim/object/cq.h"
#include "sim/object/device.h"
#include "sim/object/memory.h"
#include "sim/qp/qp.h"

/* What the engine asks of its owner, called in the middle of sim_* functions. */
struct sim_host {
	void *arg;
	/* An armed CQ has what it was armed for; it is unarmed now. */
	void (*cq_event)(void *arg, struct sim_cq *cq);
	/* An asynchronous event of a device. */
	void (*async_event)(void *arg, struct sim_device *device, const struct sim_event *event);
	/* The number of the program's window, for a posted binding, and the lkey of its region; false
	 * where either may not be used. */
	bool (*find_mw)(void *arg, const struct sim_qp *qp, struct ibv_mw *mw, struct ibv_mr *mr,
			uint32_t *mw_number, uint32_t *region_lkey);
	/* The engine's AH behind the program's, for a QP's UD send; NULL for one that may not be used. */
	struct sim_ah *(*find_ah)(void *arg, const struct sim_qp *qp, struct ibv_ah *ah);
	struct sim_memory_ops memory;
};

struct sim_qp_list {
	struct sim_qp *head;
	struct sim_qp *tail;
};

struct sim_engine {
	struct sim_clock clock;
	struct sim_host host;
	struct sim_fabric fabric;
	uint64_t random; /* state of the PRNG */
	uint64_t epoch;	 /* changes with all that decides which QP admits what; from 1 */
	struct sim_qp_list requesters; /* with something to send, or to flush */
	struct sim_qp_list responders; /* with something to answer */
	struct sim_device *devices;
	uint32_t device_count;
};

/* ENOMEM. seed decides everything that is random in it. */
int sim_engine_create(const struct sim_host *host, uint64_t seed, struct sim_engine **engine);

/* Ends the engine and its devices; no QP, CQ, MR or AH may be left. */
void sim_engine_destroy(struct sim_engine *engine);

/* Runs the present instant to its end. */
void sim_engine_run(struct sim_engine *engine);

/* True where sim_engine_run() has nothing to do. */
static inline bool sim_engine_quiet(const struct sim_engine *engine)
{
	return !engine->requesters.head && !engine->responders.head;
}

static inline uint64_t sim_engine_now_ns(const struct sim_engine *engine)
{
	return engine->clock.now_ns;
}

/* When the next timer or packet is due; SIM_NEVER for none. */
uint64_t sim_engine_next_ns(struct sim_engine *engine);

/*
 * Moves the clock to now_ns (never back) and does all that is due on the way, each thing at its
 * own time and each instant to its end.
 */
void sim_engine_advance(struct sim_engine *engine, uint64_t now_ns);

/* Something that decides which QP admits which packets has changed. */
static inline void sim_engine_changed(struct sim_engine *engine)
{
	engine->epoch++;
}

/* Whether a packet may be handed to the peer as it is; counts it. */
static inline bool sim_hand_over(struct sim_qp *qp, uint64_t *epoch,
				 const struct sim_packet *packet)
{
	struct sim_engine *engine = qp->engine;

	if (*epoch != engine->epoch && !sim_fabric_reach(qp, epoch, packet))
		return false;
	qp->device->counters.sent_packets++;
	qp->peer.qp->device->counters.received_packets++;
	return true;
}

/* A connected QP's packet to its peer: to the peer's responder, or to its completer. */
static inline void sim_fabric_send_request(struct sim_qp *qp, struct sim_packet *packet)
{
	if (sim_hand_over(qp, &qp->peer.request_epoch, packet))
		sim_responder_receive(qp->peer.qp, packet);
	else
		sim_fabric_send(qp->engine, &qp->path, packet);
}

static inline void sim_fabric_send_response(struct sim_qp *qp, struct sim_packet *packet)
{
	if (sim_hand_over(qp, &qp->peer.response_epoch, packet))
		sim_completer_receive(qp->peer.qp, packet);
	else
		sim_fabric_send(qp->engine, &qp->path, packet);
}

/*
 * Copies pieces to pieces, as many bytes as `from` has; nonzero for a fault. Mostly there is one
 * of each.
 */
static inline int sim_copy_spans(struct sim_device *device, const struct sim_span *from,
				 unsigned int from_count, const struct sim_span *to,
				 unsigned int to_count)
{
	if (from_count == 1 && to_count == 1 &&
	    device->engine->host.memory.copy((void *)to->base, from->base, from->length_bytes) == 0)
		return 0;
	return sim_copy_pieces(device, from, from_count, to, to_count);
}

/* The next number of the engine's PRNG. */
uint64_t sim_engine_random(struct sim_engine *engine);

#endif
