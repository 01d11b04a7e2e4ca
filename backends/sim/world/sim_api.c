/* SPDX-License-Identifier: MIT */
#include "backends/sim/backend.h"
#include "backends/sim/world/say.h"
#include "backends/sim/world/world.h"

#include <errno.h>
#include <string.h>

int vb_sim_configure(const struct vb_sim_config *config)
{
	return world_replace_default(config);
}

void vb_sim_set_default(vb_sim_default_fn *fn)
{
	world_set_default(fn);
}

struct vb_sim *vb_sim_open(const struct vb_sim_config *config)
{
	return world_create(config);
}

int vb_sim_close(struct vb_sim *sim)
{
	bool locked, used;

	if (!sim || sim == world_default())
		return say(EINVAL, "vb_sim_close: not a world of vb_sim_open()");
	locked = world_lock(sim);
	used = sim->contexts.live > 0;
	world_unlock(sim, locked);
	if (used)
		return say(EBUSY, "vb_sim_close: a device of the world is open");
	world_retire(sim);
	return 0;
}

struct vb_sim *vb_sim_of(struct ibv_context *context)
{
	return context && vb_backend_sim.owns_context(context) ? context_of(context)->world : NULL;
}

struct ibv_device **vb_sim_device_list(struct vb_sim *sim, int *num_devices)
{
	struct vb_sim *world = world_or_default(sim);

	return world ? world_list(world, num_devices) : NULL;
}

uint64_t vb_sim_now_ns(struct vb_sim *sim)
{
	struct vb_sim *world = world_or_default(sim);
	uint64_t now_ns;
	bool locked;

	if (!world)
		return 0;
	locked = world_lock(world);
	driver_catch_up(world);
	now_ns = sim_engine_now_ns(world->engine);
	world_unlock(world, locked);
	return now_ns;
}

enum vb_sim_clock vb_sim_clock_of(struct vb_sim *sim)
{
	struct vb_sim *world = world_or_default(sim);

	return world && world->driver.real ? VB_SIM_CLOCK_REAL : VB_SIM_CLOCK_VIRTUAL;
}

/* What a wait waits for. */
struct awaited {
	struct ibv_cq *cq;
	const uint64_t *now_told; /* NULL: nothing but completions */
	uint64_t told;
};

/* Its owner may destroy the CQ meanwhile; then cq_of() finds none. */
static bool has_come(const void *arg)
{
	const struct awaited *awaited = arg;
	const struct cq *cq = cq_of(awaited->cq);

	if (awaited->now_told && *awaited->now_told != awaited->told)
		return true;
	return !cq || sim_cq_count(cq->engine) || cq->engine->overrun;
}

static int wait_cq(struct vb_sim *world, const struct awaited *awaited, int num_entries,
		   struct ibv_wc *wc, uint64_t timeout_ns)
{
	struct ibv_cq *ibv = awaited->cq;
	uint64_t until_ns = sim_engine_now_ns(world->engine) + timeout_ns;
	const struct cq *cq;
	int err, taken;

	if (world->driver.real)
		return say_minus(EINVAL, "vb_sim_wait_cq: the world has the real clock");
	if (!cq_of(ibv) || num_entries < 1)
		return say_minus(EINVAL, "vb_sim_wait_cq: no such CQ, or no room");
	if (until_ns < timeout_ns)
		until_ns = VB_SIM_NEVER;
	err = driver_wait_until(world, has_come, awaited, until_ns);
	if (err == ETIMEDOUT)
		return 0;
	if (err)
		return say_minus(
			err, "vb_sim_wait_cq: CQ %u: nothing can come; no timer or packet is due",
			ibv->handle);
	cq = cq_of(ibv);
	taken = cq ? sim_cq_poll(cq->engine, num_entries, wc) : -1;
	return taken < 0 ? say_minus(EIO, "vb_sim_wait_cq: the CQ has overrun, or is gone") : taken;
}

static int wait_locked(struct awaited *awaited, bool for_told, int num_entries, struct ibv_wc *wc,
		       uint64_t timeout_ns)
{
	struct vb_sim *world = vb_sim_of(awaited->cq ? awaited->cq->context : NULL);
	bool locked;
	int taken;

	if (!world)
		return say_minus(EINVAL, "vb_sim_wait_cq: not a simulated CQ");
	if (for_told)
		awaited->now_told = &world->driver.told;
	locked = world_lock(world);
	taken = wait_cq(world, awaited, num_entries, wc, timeout_ns);
	world_unlock(world, locked);
	return taken;
}

int vb_sim_wait_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc, uint64_t timeout_ns)
{
	struct awaited awaited = {.cq = cq};

	return wait_locked(&awaited, false, num_entries, wc, timeout_ns);
}

int vb_sim_wait_cq_told(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc, uint64_t timeout_ns,
			uint64_t told)
{
	struct awaited awaited = {.cq = cq, .told = told};

	return wait_locked(&awaited, true, num_entries, wc, timeout_ns);
}

void vb_sim_tell(struct vb_sim *sim)
{
	struct vb_sim *world = world_or_default(sim);
	bool locked;

	if (!world)
		return;
	locked = world_lock(world);
	world->driver.told++;
	driver_changed(world);
	world_unlock(world, locked);
}

uint64_t vb_sim_told(struct vb_sim *sim)
{
	struct vb_sim *world = world_or_default(sim);
	uint64_t told;
	bool locked;

	if (!world)
		return 0;
	locked = world_lock(world);
	told = world->driver.told;
	world_unlock(world, locked);
	return told;
}

uint64_t vb_sim_next_ns(struct vb_sim *sim)
{
	struct vb_sim *world = world_or_default(sim);
	uint64_t next_ns;
	bool locked;

	if (!world)
		return VB_SIM_NEVER;
	locked = world_lock(world);
	next_ns = sim_engine_next_ns(world->engine);
	world_unlock(world, locked);
	return next_ns;
}

int vb_sim_run(struct vb_sim *sim, uint64_t duration_ns)
{
	struct vb_sim *world = world_or_default(sim);
	bool locked;
	int err;

	if (!world)
		return errno;
	locked = world_lock(world);
	err = driver_run(world, duration_ns);
	world_unlock(world, locked);
	return err;
}

void vb_sim_thread_enter(struct vb_sim *sim)
{
	struct vb_sim *world = world_or_default(sim);
	bool locked;

	if (!world)
		return;
	locked = world_lock(world);
	if (driver_enter(world))
		say(ENOMEM, "vb_sim_thread_enter: out of memory");
	world_unlock(world, locked);
}

void vb_sim_thread_leave(struct vb_sim *sim)
{
	struct vb_sim *world = world_or_default(sim);
	bool locked;

	if (!world)
		return;
	locked = world_lock(world);
	driver_leave(world);
	world_unlock(world, locked);
}

int vb_sim_trace_open(struct vb_sim *sim, const char *path)
{
	struct vb_sim *world = world_or_default(sim);
	bool locked;
	int err;

	if (!world)
		return errno;
	locked = world_lock(world);
	err = world_trace_open(world, path);
	world_unlock(world, locked);
	return err;
}

int vb_sim_trace_close(struct vb_sim *sim)
{
	struct vb_sim *world = world_or_default(sim);
	bool locked;
	int err;

	if (!world)
		return errno;
	locked = world_lock(world);
	err = world_trace_close(world);
	world_unlock(world, locked);
	return err;
}

void vb_sim_watch(struct vb_sim *sim, vb_sim_frame_fn *fn, void *arg)
{
	struct vb_sim *world = world_or_default(sim);
	bool locked;

	if (!world)
		return;
	locked = world_lock(world);
	world_watch(world, fn, arg);
	world_unlock(world, locked);
}

int vb_sim_counters(struct ibv_context *ibv, struct vb_sim_counters *counters)
{
	struct vb_sim *world = vb_sim_of(ibv);
	const struct sim_counters *from;
	bool locked, live;

	if (!world)
		return say(EINVAL, "vb_sim_counters: not a simulated device");
	locked = world_lock(world);
	live = context_live(context_of(ibv));
	if (live) {
		from = &context_of(ibv)->device->engine->counters;
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
	}
	world_unlock(world, locked);
	return live ? 0 : say(EINVAL, "vb_sim_counters: the context is closed");
}

int vb_sim_counter(struct ibv_context *ibv, const char *name, uint64_t *value)
{
	struct vb_sim *world = vb_sim_of(ibv);
	bool locked, live, known = false;

	if (!world)
		return say(EINVAL, "vb_sim_counter: not a simulated device");
	locked = world_lock(world);
	live = context_live(context_of(ibv));
	if (live)
		known = sim_counter_read(&context_of(ibv)->device->engine->counters, name, value);
	world_unlock(world, locked);
	if (!live)
		return say(EINVAL, "vb_sim_counter: the context is closed");
	return known ? 0 : say(EINVAL, "vb_sim_counter: no counter is called \"%s\"", name);
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

void vb_sim_count_objects(struct vb_sim *sim, struct vb_sim_objects *objects)
{
	struct vb_sim *world = world_or_default(sim);
	bool locked;

	memset(objects, 0, sizeof(*objects));
	if (!world)
		return;
	locked = world_lock(world);
	*objects = (struct vb_sim_objects){
		.contexts = world->live[KIND_CONTEXT],
		.pds = world->live[KIND_PD],
		.cqs = world->live[KIND_CQ],
		.qps = world->live[KIND_QP],
		.mrs = world->live[KIND_MR],
		.ahs = world->live[KIND_AH],
		.channels = world->live[KIND_CHANNEL],
		.srqs = world->live[KIND_SRQ],
		.mws = world->live[KIND_MW],
		.dms = world->live[KIND_DM],
		.tds = world->live[KIND_TD],
		.xrcds = world->live[KIND_XRCD],
	};
	world_unlock(world, locked);
}
