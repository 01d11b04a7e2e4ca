/* SPDX-License-Identifier: MIT */
/* <verbena/sim.h>: time, threads, traces, counters. */
#include "backends/sim/object/refuse.h"
#include "backends/sim/world/process.h"

#include <errno.h>
#include <string.h>

/* --- time --- */

uint64_t vb_sim_now_ns(struct vb_sim *sim)
{
	HOLD hold = process_hold(sim);

	if (!hold.world)
		return 0;
	driver_catch_up(&hold.world->driver);
	return sim_engine_now_ns(hold.world->driver.engine);
}

uint64_t vb_sim_next_ns(struct vb_sim *sim)
{
	HOLD hold = process_hold(sim);

	return hold.world ? sim_engine_next_ns(hold.world->driver.engine) : VB_SIM_NEVER;
}

enum vb_sim_clock vb_sim_clock_of(struct vb_sim *sim)
{
	const struct vb_sim *world = process_world(sim);

	return world && world->driver.real ? VB_SIM_CLOCK_REAL : VB_SIM_CLOCK_VIRTUAL;
}

int vb_sim_run(struct vb_sim *sim, uint64_t duration_ns)
{
	HOLD hold = process_hold(sim);

	if (!hold.world)
		return errno;
	if (hold.world->driver.real)
		return refuse_plainly(__func__, VB_WHY_SIM_CLOCK_REAL);
	return driver_run(&hold.world->driver, duration_ns)
		       ? refuse_plainly(__func__, VB_WHY_WORLD_ENDED)
		       : 0;
}

/* --- waiting --- */

/* What a wait waits for. */
struct awaited {
	struct ibv_cq *cq;
	const struct driver *driver;
	const uint64_t *told; /* the wait ends when driver->told differs; NULL: it does not */
};

/* The CQ's owner may destroy the CQ during the wait; then cq_of() returns NULL. */
static bool has_come(const void *arg)
{
	const struct awaited *awaited = arg;
	const struct cq *cq = cq_of(awaited->cq);

	if (awaited->told && awaited->driver->told != *awaited->told)
		return true;
	return !cq || sim_cq_count(cq->engine) || cq->engine->overrun;
}

/* Refuses a wait that cannot begin; 0 if it can. */
static int check_wait(const char *verb, const struct vb_sim *world, struct ibv_cq *ibv,
		      int num_entries)
{
	if (!world)
		return refuse_plainly(verb, VB_WHY_SIM_FOREIGN);
	if (world->driver.real)
		return refuse_plainly(verb, VB_WHY_SIM_CLOCK_REAL);
	if (!cq_of(ibv))
		return refuse_queue(verb, KIND_CQ, ibv);
	if (num_entries < 1)
		return refuse_why(verb,
				  (struct vb_why){VB_WHY_SIM_WAIT_COUNT, {(uint64_t)num_entries}});
	return 0;
}

/* Says why a wait ended without a completion, by the errno of driver_wait_until(). */
static int wait_failed(const char *verb, int error, const struct ibv_cq *ibv)
{
	struct vb_why idle = {
		VB_WHY_SIM_WAIT_IDLE, {ibv->handle}, .text = ibv->context->device->name};

	return refuse_wait(verb, error, idle);
}

/* The end of a wait that begins now. */
static uint64_t end_of_wait(const struct driver *driver, uint64_t timeout_ns)
{
	const uint64_t until_ns = sim_engine_now_ns(driver->engine) + timeout_ns;

	return until_ns < timeout_ns ? VB_SIM_NEVER : until_ns;
}

/* Returns true if layers watch the polls of the CQ. */
static bool is_watched(const struct ibv_cq *ibv)
{
	return ibv->context->ops.poll_cq != context_of(ibv->context)->poll_cq;
}

struct wait {
	const char *verb;
	uint64_t timeout_ns, until_ns; /* 0: the wait has not begun */
	const uint64_t *told;
	bool watched; /* a completion has come, and is to be taken by a poll that layers see */
};

static int wait_entry(struct wait *wait, struct ibv_cq *ibv, int num_entries, struct ibv_wc *wc)
{
	const char *verb = wait->verb;
	HOLD hold = world_hold_of(ibv ? ibv->context : NULL);
	struct awaited awaited = {.cq = ibv, .told = wait->told};
	struct driver *driver;
	const struct cq *cq;
	int err, taken;

	if (!ibv)
		return minus_errno(refuse_missing(verb, KIND_CQ, NULL, NULL));
	err = check_wait(verb, hold.world, ibv, num_entries);
	if (err)
		return minus_errno(err);
	awaited.driver = driver = &hold.world->driver;
	if (!wait->until_ns)
		wait->until_ns = end_of_wait(driver, wait->timeout_ns);
	err = driver_wait_until(driver, has_come, &awaited, wait->until_ns);
	if (err == ETIMEDOUT)
		return 0;
	if (err)
		return minus_errno(wait_failed(verb, err, ibv));
	cq = cq_of(ibv);
	if (!cq)
		return minus_errno(refuse_plainly(verb, VB_WHY_SIM_WAIT_DESTROYED));
	wait->watched = is_watched(ibv) && sim_cq_count(cq->engine);
	if (wait->watched)
		return 0;
	taken = sim_cq_poll(cq->engine, num_entries, wc);
	return taken < 0 ? minus_errno(refuse_overrun(verb, cq)) : taken;
}

/* Layers see what a wait takes, as a poll, without the world's lock. Another thread may have taken it before. */
static int wait_cq(const char *verb, struct ibv_cq *ibv, int num_entries, struct ibv_wc *wc,
		   uint64_t timeout_ns, const uint64_t *told)
{
	struct wait wait = {.verb = verb, .timeout_ns = timeout_ns, .told = told};
	int taken;

	do {
		wait.watched = false;
		taken = wait_entry(&wait, ibv, num_entries, wc);
		if (wait.watched)
			taken = ibv->context->ops.poll_cq(ibv, num_entries, wc);
	} while (wait.watched && !taken);
	return taken;
}

int vb_sim_wait_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc, uint64_t timeout_ns)
{
	return wait_cq(__func__, cq, num_entries, wc, timeout_ns, NULL);
}

int vb_sim_wait_cq_told(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc, uint64_t timeout_ns,
			uint64_t told)
{
	return wait_cq(__func__, cq, num_entries, wc, timeout_ns, &told);
}

void vb_sim_tell(struct vb_sim *sim)
{
	HOLD hold = process_hold(sim);

	if (!hold.world)
		return;
	hold.world->driver.told++;
	driver_changed(&hold.world->driver);
}

uint64_t vb_sim_told(struct vb_sim *sim)
{
	HOLD hold = process_hold(sim);

	return hold.world ? hold.world->driver.told : 0;
}

void vb_sim_thread_enter(struct vb_sim *sim)
{
	HOLD hold = process_hold(sim);

	if (hold.world && driver_enter(&hold.world->driver))
		refuse_plainly(__func__, VB_WHY_NO_MEMORY);
}

void vb_sim_thread_leave(struct vb_sim *sim)
{
	HOLD hold = process_hold(sim);

	if (hold.world)
		driver_leave(&hold.world->driver);
}

/* --- the trace --- */

int vb_sim_trace_open(struct vb_sim *sim, const char *path)
{
	HOLD hold = process_hold(sim);

	return hold.world ? world_trace_open(hold.world, path) : errno;
}

int vb_sim_trace_limit(struct vb_sim *sim, uint64_t bytes_max, uint64_t packets_max)
{
	HOLD hold = process_hold(sim);

	if (!hold.world)
		return errno;
	hold.world->trace_bytes_max = bytes_max;
	hold.world->trace_packets_max = packets_max;
	return 0;
}

int vb_sim_trace_close(struct vb_sim *sim)
{
	HOLD hold = process_hold(sim);

	return hold.world ? world_trace_close(hold.world) : errno;
}

void vb_sim_watch(struct vb_sim *sim, vb_sim_frame_fn *fn, void *arg)
{
	HOLD hold = process_hold(sim);

	if (hold.world)
		world_watch(hold.world, fn, arg);
}

/* --- counters --- */

/* The caller holds the context's world. Returns NULL with a sentence if the context is not open. */
static const struct sim_counters *counters_of(const struct hold *hold, struct ibv_context *ibv,
					      const char *function)
{
	if (!hold->world)
		refuse_plainly(function, VB_WHY_SIM_FOREIGN);
	else if (!context_live(context_of(ibv)))
		refuse_plainly(function, VB_WHY_CONTEXT_CLOSED);
	else
		return &context_of(ibv)->device->engine->counters;
	return NULL;
}

int vb_sim_counters(struct ibv_context *ibv, struct vb_sim_counters *counters)
{
	HOLD hold = world_hold_of(ibv);
	const struct sim_counters *from = counters_of(&hold, ibv, __func__);

	if (!from)
		return EINVAL;
	*counters = (struct vb_sim_counters){
		.sent_packets = from->sent_packets,
		.received_packets = from->received_packets,
		.lost_packets = from->lost_packets,
		.dropped_packets = from->dropped_packets,
		.duplicate_requests = from->duplicate_requests,
		.out_of_sequence_requests = from->out_of_sequence_requests,
		.rnr_naks_sent = from->rnr_naks_sent,
		.rnr_naks_received = from->rnr_naks_received,
		.sequence_naks_sent = from->sequence_naks_sent,
		.sequence_naks_received = from->sequence_naks_received,
		.ack_timeouts = from->ack_timeouts,
		.retransmitted_packets = from->retransmitted_packets,
		.guarded_faults = from->guarded_faults,
	};
	return 0;
}

int vb_sim_counter(struct ibv_context *ibv, const char *name, uint64_t *value)
{
	HOLD hold = world_hold_of(ibv);
	const struct sim_counters *counters = counters_of(&hold, ibv, __func__);

	if (!counters)
		return EINVAL;
	if (!sim_counter_read(counters, name, value))
		return refuse_name(__func__, VB_WHY_SIM_COUNTER, name);
	return 0;
}

const char *vb_sim_counter_name(unsigned int index, const char **about)
{
	const struct sim_counter_info *info = sim_counter_info;

	while (info->name && index--)
		info++;
	if (about)
		*about = info->about;
	return info->name;
}

int vb_sim_drops(struct ibv_context *ibv, const char *cause, uint64_t *packets)
{
	HOLD hold = world_hold_of(ibv);
	const struct sim_counters *counters = counters_of(&hold, ibv, __func__);

	if (!counters)
		return EINVAL;
	if (!sim_discard_read(counters, cause, packets))
		return refuse_name(__func__, VB_WHY_SIM_DROP_CAUSE, cause);
	return 0;
}

const char *vb_sim_drop_cause(unsigned int index, const char **about)
{
	const bool known = index < SIM_DISCARDS - 1;

	if (about)
		*about = known ? sim_discard_info[index + 1].about : NULL;
	return known ? sim_discard_info[index + 1].name : NULL;
}

void vb_sim_count_objects(struct vb_sim *sim, struct vb_sim_objects *objects)
{
	HOLD hold = process_hold(sim);
	const uint32_t *live;

	memset(objects, 0, sizeof(*objects));
	if (!hold.world)
		return;
	live = hold.world->store.live;
	*objects = (struct vb_sim_objects){
		.contexts = live[KIND_CONTEXT],
		.pds = live[KIND_PD],
		.cqs = live[KIND_CQ],
		.qps = live[KIND_QP],
		.mrs = live[KIND_MR],
		.ahs = live[KIND_AH],
		.channels = live[KIND_CHANNEL],
		.srqs = live[KIND_SRQ],
		.mws = live[KIND_MW],
		.dms = live[KIND_DM],
		.tds = live[KIND_TD],
		.xrcds = live[KIND_XRCD],
	};
}
