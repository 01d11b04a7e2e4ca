/* SPDX-License-Identifier: MIT */
/*
 * Ends connections whose peer's process has died. On a real machine, the kernel ends the identifiers of a
 * killed process, and the peers get a REJ or a DREQ (Linux drivers/infiniband/core/ucma.c, ucma_close; cm.c,
 * cm_destroy_id). A simulated machine has no kernel: each process watches the processes of its peers. When
 * such a process dies, the watcher makes the message that the kernel would have sent, and receives it.
 */
#include "sim/cm/private.h"

#include "sim/net/net.h"

/* The interval of looks at the peers' processes if the way out does not report ended processes. */
#define WATCH_NS UINT64_C(200000000)

/*
 * A process that the way out has reported may need more time to end: a process that is killed waits for a processor
 * between its report and its end. The first look comes after SETTLE_NS, and each next one after twice the time. A
 * process that lives LONG_NS after the report lives on: the report was of another process.
 */
#define SETTLE_NS UINT64_C(1000000)
#define LONG_NS	  UINT64_C(60000000000)

/*
 * A process that was stopped may find a message and the death of its sender at once. On a real machine, most programs
 * have answered the message before its sender is killed. So the farewell of a dead peer waits up to ANSWER_NS for the
 * answer of this side's program.
 */
#define ANSWER_NS UINT64_C(1000000000)

/* The message that the kernel of a killed peer sends, by the state of this side. SIM_CM_NONE: none, or the
 * state has no step for it. */
static const struct {
	enum sim_cm_message message;
	unsigned int reason; /* of a REJ; the status of a SIDR_REP */
	bool is_asked;	     /* the program of this side is about to answer */
} farewells[SIM_CM_STATES] = {
	[SIM_CM_REQ_SENT] = {SIM_CM_REJ, SIM_CM_REJ_CONSUMER},
	[SIM_CM_MRA_REQ_RCVD] = {SIM_CM_REJ, SIM_CM_REJ_CONSUMER},
	[SIM_CM_REQ_RCVD] = {SIM_CM_REJ, SIM_CM_REJ_TIMEOUT, true},
	[SIM_CM_MRA_REQ_SENT] = {SIM_CM_REJ, SIM_CM_REJ_TIMEOUT, true},
	[SIM_CM_REP_SENT] = {SIM_CM_REJ, SIM_CM_REJ_CONSUMER},
	[SIM_CM_MRA_REP_RCVD] = {SIM_CM_REJ, SIM_CM_REJ_CONSUMER},
	[SIM_CM_REP_RCVD] = {SIM_CM_REJ, SIM_CM_REJ_CONSUMER, true},
	[SIM_CM_MRA_REP_SENT] = {SIM_CM_REJ, SIM_CM_REJ_CONSUMER, true},
	[SIM_CM_ESTABLISHED] = {SIM_CM_DREQ, 0},
	[SIM_CM_DREQ_SENT] = {SIM_CM_DREP, 0},
	[SIM_CM_SIDR_REQ_SENT] = {SIM_CM_SIDR_REP, SIM_CM_SIDR_REJECT},
};

/* Writes the message that the peer's kernel would send. */
static void write_farewell(const struct sim_cm *cm, enum sim_cm_message message,
			   unsigned int reason, uint8_t *mad)
{
	sim_mad_begin(mad, message, cm->transaction_id);
	if (message == SIM_CM_SIDR_REP) {
		sim_mad_set(mad, SIM_CM_SIDR_REP_REQUEST_ID, cm->local_id);
		sim_mad_set(mad, SIM_CM_SIDR_REP_SERVICE_ID, cm->service_id);
		sim_mad_set(mad, SIM_CM_SIDR_REP_STATUS, reason);
		return;
	}
	sim_mad_set(mad, SIM_CM_REP_LOCAL_ID, cm->remote_id);
	sim_mad_set(mad, SIM_CM_REP_REMOTE_ID, cm->local_id);
	if (message == SIM_CM_REJ)
		sim_mad_set(mad, SIM_CM_REJ_REASON, reason);
}

/* Returns true if the kernel of a killed peer sends no message: Linux cm.c, cm_destroy_id, IB_QPT_XRC_TGT. */
static bool is_silent(const struct sim_cm *cm)
{
	return cm->state == SIM_CM_ESTABLISHED && cm->qp_type == IBV_QPT_XRC_SEND;
}

static void take_farewell(struct sim_cm *cm)
{
	const enum sim_cm_message message = farewells[cm->state].message;
	uint8_t mad[SIM_MAD_BYTES];

	cm->peer = 0;
	if (message == SIM_CM_NONE || is_silent(cm))
		return;
	write_farewell(cm, message, farewells[cm->state].reason, mad);
	sim_cm_step(cm, message,
		    &(struct sim_gsi_message){cm->path.source, mad, &cm->path.route, cm->pkey});
}

/* Returns the time of the farewell of a dead peer, which has passed if the farewell does not wait. */
static uint64_t farewell_ns(struct sim_cm *cm)
{
	if (!farewells[cm->state].is_asked)
		return 0;
	if (!cm->farewell_ns)
		cm->farewell_ns = sim_clock_now_ns(&cm->engine->clock) + ANSWER_NS;
	return cm->farewell_ns;
}

static void look_at(struct sim_cm_manager *manager, uint64_t when_ns)
{
	sim_timer_arm(&manager->engine->clock, &manager->watch, when_ns);
}

static void watch_again(struct sim_cm_manager *manager)
{
	const uint64_t now_ns = sim_clock_now_ns(&manager->engine->clock);

	if (manager->watch_is_told && now_ns >= manager->watch_until_ns)
		return;
	look_at(manager, now_ns + manager->watch_wait_ns);
	if (manager->watch_is_told || manager->watch_wait_ns < WATCH_NS)
		manager->watch_wait_ns *= 2;
}

void sim_cm_look_at_peers(struct sim_timer *timer)
{
	struct sim_cm_manager *manager = (struct sim_cm_manager *)timer;
	const struct sim_way_out *way = manager->engine->net->way;
	const uint64_t now_ns = sim_clock_now_ns(&manager->engine->clock);
	uint64_t last = 0, next_ns = SIM_NEVER;
	bool last_lives = true, any = false;
	uint32_t cursor = 0;
	struct sim_cm *cm;

	while (way && (cm = sim_table_next(&manager->table, &cursor))) {
		if (!cm->peer)
			continue;
		if (cm->peer != last) {
			last = cm->peer;
			last_lives = way->lives(way->arg, last);
		}
		if (!last_lives && farewell_ns(cm) <= now_ns) {
			take_farewell(cm);
			continue;
		}
		any = true;
		if (!last_lives && cm->farewell_ns < next_ns)
			next_ns = cm->farewell_ns;
	}
	if (any)
		watch_again(manager);
	if (next_ns < manager->watch.deadline_ns)
		look_at(manager, next_ns);
}

void sim_cm_processes_ended(struct sim_engine *engine)
{
	struct sim_cm_manager *manager = engine->cm;

	if (!manager)
		return;
	manager->watch_until_ns = sim_clock_now_ns(&engine->clock) + LONG_NS;
	manager->watch_wait_ns = SETTLE_NS;
	watch_again(manager);
}

/* Looks go on as after a report, because the process may have ended before the way out watched it. */
static void begin_watch(struct sim_cm_manager *manager, const struct sim_way_out *way)
{
	const uint64_t now_ns = sim_clock_now_ns(&manager->engine->clock);

	manager->watch_is_told = way->watches && way->watches(way->arg);
	manager->watch_until_ns = now_ns + LONG_NS;
	if (manager->watch.deadline_ns <= now_ns + WATCH_NS)
		return;
	manager->watch_wait_ns = WATCH_NS;
	watch_again(manager);
}

void sim_cm_watch(struct sim_cm *cm, uint64_t process)
{
	const struct sim_way_out *way = cm->engine->net->way;
	const uint64_t before = cm->peer;

	cm->peer = way && way->lives ? process : 0;
	if (!cm->peer)
		return;
	cm->farewell_ns = 0;
	if (cm->peer != before)
		begin_watch(cm->engine->cm, way);
}
