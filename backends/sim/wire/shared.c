/* SPDX-License-Identifier: MIT */
/* The wire `shared`: attaching to a world, forking and leaving, and the questions of the engine and the world. */
#include "backends/sim/wire/shared.h"

#include "backends/sim/base/holder.h"
#include "backends/sim/object/refuse.h"
#include "backends/sim/wire/shared_blocks.h"
#include "backends/sim/wire/shared_domains.h"
#include "backends/sim/wire/shared_private.h"
#include "backends/sim/wire/shared_requests.h"
#include "backends/sim/wire/shared_services.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- what the engine asks --- */

/* Each process of the world has all its devices: a port that the engine does not know is in no process. */
static bool shared_reaches(void *arg, struct sim_path *path)
{
	(void)arg;
	(void)path;
	return false;
}

static bool shared_has_members(void *arg, const struct sim_port *port)
{
	const struct shared *shared = arg;
	uint32_t used;

	if (!shared_is_attached(shared))
		return false;
	used = places_used(&shared->segment);
	for (uint32_t i = 0; i < used; i++)
		if (shared_member_at(shared, i, port->device))
			return true;
	return false;
}

static void shared_joined(void *arg, const struct sim_device *device, uint32_t memberships)
{
	struct shared *shared = arg;

	if (shared_is_attached(shared) && device->index < SEGMENT_DEVICES)
		atomic_store_explicit(&segment_place_at(&shared->segment, shared->segment.place)
					       ->memberships[device->index],
				      memberships, memory_order_relaxed);
}

static enum sim_presence shared_find(void *arg, const struct sim_path *path, uint32_t dest_qpn)
{
	struct shared *shared = arg;
	segment_id id;

	if (!path->dest)
		return SIM_PRESENCE_UNKNOWN;
	id = shared_is_attached(shared) ? shared_qpn_owner(shared, path->dest->device, dest_qpn)
					: 0;
	if (!id)
		return SIM_PRESENCE_NOBODY;
	if (places_live(&shared->segment, id))
		return SIM_PRESENCE_OTHER;
	places_bury(&shared->segment, id, SHARED_BURIAL_PATIENCE_NS);
	return SIM_PRESENCE_NOBODY;
}

static uint64_t shared_holder(void *arg, const struct sim_device *device, unsigned int numbers,
			      uint32_t number)
{
	const struct shared *shared = arg;
	const segment_id id = shared_owner(&shared->wire, device, numbers, number);

	return id == shared->segment.id ? 0 : id;
}

/* --- services --- */

static uint64_t shared_server(void *arg, const struct sim_device *device,
			      const struct sim_gsi_target *target)
{
	struct shared *shared = arg;

	(void)device;
	if (!shared_is_attached(shared))
		return 0;
	return target->kind == SIM_GSI_EVERYBODY ? SHARED_EVERYBODY
						 : services_owner(&shared->segment, target);
}

static bool shared_lives(void *arg, uint64_t process)
{
	struct shared *shared = arg;

	if (!shared_is_attached(shared) || places_live(&shared->segment, process) ||
	    !shared_is_heard(shared, process))
		return true;
	places_bury(&shared->segment, process, SHARED_BURIAL_PATIENCE_NS);
	return false;
}

/* Starts the thread that watches, unless it runs. Returns true if it runs. It stays when nothing is watched any
 * more: processes that had connections mostly make new ones. */
static bool shared_watches(void *arg)
{
	struct shared *shared = arg;

	return shared_is_attached(shared) &&
	       (shared->watch.runs ||
		shared_watch_start(&shared->watch, shared->segment.fd, shared_bell(&shared->wire)));
}

static int shared_reserve(void *arg, uint64_t service_id, const uint8_t address[16], uint32_t flags)
{
	struct shared *shared = arg;

	return shared_is_attached(shared)
		       ? services_reserve(&shared->segment, service_id, address, flags)
		       : ENOMEM;
}

static const char *shared_taken_by(void *arg)
{
	struct shared *shared = arg;
	const segment_id owner = shared->segment.conflict;
	struct holder holder;

	if (!shared_is_attached(shared) || !owner)
		return NULL;
	holder_name((int)segment_place_at(&shared->segment, segment_id_place(owner))->pid, &holder);
	snprintf(shared->taker, sizeof(shared->taker), "process %d (%s)", holder.pid,
		 holder.program);
	return shared->taker;
}

static void shared_unreserve(void *arg, uint64_t service_id, const uint8_t address[16])
{
	struct shared *shared = arg;

	if (shared_is_attached(shared))
		services_unreserve(&shared->segment, service_id, address);
}

static int shared_listen_on(void *arg, uint64_t service_id, const uint8_t address[16], bool on)
{
	struct shared *shared = arg;

	return shared_is_attached(shared)
		       ? services_listen(&shared->segment, service_id, address, on)
		       : ENOMEM;
}

static void shared_take(void *arg, uint64_t sender, uint32_t communication_id, bool on)
{
	struct shared *shared = arg;

	if (shared_is_attached(shared))
		requests_take(&shared->segment, sender, communication_id, on);
}

/* --- wakes --- */

static void ring_bell_of(const struct shared *shared, segment_id id)
{
	struct bell *bell;

	if (!id || places_id(&shared->segment, segment_id_place(id)) != id)
		return;
	bell = &segment_place_at(&shared->segment, segment_id_place(id))->bell;
	if (bell_is_listened(bell))
		bell_ring(bell);
}

static void flush_rings(struct shared *shared)
{
	for (uint32_t i = 0; i < shared->touched_count; i++)
		ring_flush(&shared->out[shared->touched[i]].ring);
}

/* One barrier serves all rings: it stands between the stores of frames and heads, and the reads of who
 * listens. */
static void shared_flush(struct wire *wire)
{
	struct shared *shared = shared_of(wire);

	if (!shared->touched_count && !shared->taken)
		return;
	flush_rings(shared);
	bell_barrier();
	while (shared->touched_count) {
		struct outward *out = &shared->out[shared->touched[--shared->touched_count]];

		out->touched = false;
		ring_bell_of(shared, out->id);
	}
	for (struct inward *in = shared->taken ? shared->in : NULL; in; in = in->next) {
		if (in->touched && ring_is_wanted(&in->ring))
			ring_bell_of(shared, in->id);
		in->touched = false;
	}
	shared->taken = false;
}

/* --- attach, fork and leave --- */

/* Forgets all rings without telling the other processes. */
static void forget(struct shared *shared)
{
	while (shared->in) {
		struct inward *in = shared->in;

		shared->in = in->next;
		areas_unmap(&in->area);
		free(in);
	}
	shared->in_count = 0;
	for (uint32_t i = 0; i < SHARED_PROCESSES_MAX; i++) {
		if (shared->out[i].id)
			areas_unmap(&shared->out[i].area);
		free(shared->out[i].routes);
	}
	memset(shared->out, 0, sizeof(shared->out));
	memset(shared->owners, 0, sizeof(shared->owners));
	shared->forgotten++;
	shared->waiting = 0;
	shared->relieved = false;
	shared->touched_count = 0;
	shared->taken = false;
	shared->news = 0;
	shared->news_retry_ns = 0;
}

static int attach(struct shared *shared)
{
	const struct segment_world world = {shared->name, shared->devices_text, shared->identity,
					    shared->base_ns, shared->wall_base_ns};
	int err = segment_open(&shared->segment, &world);

	if (err)
		return err;
	err = places_attach(&shared->segment);
	if (err) {
		segment_drop(&shared->segment);
		return err;
	}
	shared->identity = shared->segment.identity;
	shared->base_ns = shared->segment.base_ns;
	shared->wall_base_ns = shared->segment.wall_base_ns;
	segment_unlock(&shared->segment);
	return 0;
}

static bool shared_has(const struct wire *wire, const struct sim_device *device)
{
	return device->index < SEGMENT_DEVICES && shared_of(wire)->devices[device->index] == device;
}

/* Nothing to switch: the world listens to the bell that other processes ring. */
static void shared_listen(struct wire *wire, bool on)
{
	(void)wire;
	(void)on;
}

static void shared_forked(struct wire *wire)
{
	struct shared *shared = shared_of(wire);

	shared_watch_forget(&shared->watch);
	forget(shared);
	segment_drop(&shared->segment);
}

static int shared_resume(struct wire *wire)
{
	struct shared *shared = shared_of(wire);

	return shared_is_attached(shared) ? 0 : attach(shared);
}

static void shared_free(struct shared *shared)
{
	free(shared->name);
	free(shared->devices_text);
	free(shared);
}

static void shared_abandon(struct wire *wire)
{
	places_abandon(&shared_of(wire)->segment);
}

static void shared_close(struct wire *wire)
{
	struct shared *shared = shared_of(wire);

	shared_watch_stop(&shared->watch);
	forget(shared);
	places_leave(&shared->segment);
	shared_free(shared);
}

int shared_open(const struct shared_config *config, struct wire **wire)
{
	struct shared *shared = calloc(1, sizeof(*shared));
	int err;

	if (!shared)
		return refuse_plainly(NULL, VB_WHY_NO_MEMORY);
	shared->wire = (struct wire){
		.name = "shared",
		.shares_ports = true,
		.way = {.arg = shared,
			.reaches = shared_reaches,
			.room = shared_room,
			.lags = shared_lags,
			.send = shared_send,
			.lane = shared_lane,
			.has_members = shared_has_members,
			.joined = shared_joined,
			.find = shared_find,
			.hindrance = shared_hindrance,
			.holder = shared_holder,
			.relay = shared_relay,
			.server = shared_server,
			.room_at = shared_room_at,
			.lives = shared_lives,
			.watches = shared_watches,
			.reserve = shared_reserve,
			.unreserve = shared_unreserve,
			.listen = shared_listen_on,
			.take = shared_take,
			.taken_by = shared_taken_by},
		.has = shared_has,
		.arrived = shared_arrived,
		.receive = shared_receive,
		.flush = shared_flush,
		.listen = shared_listen,
		.forked = shared_forked,
		.resume = shared_resume,
		.abandon = shared_abandon,
		.close = shared_close,
	};
	shared->segment.fd = -1;
	shared->name = strdup(config->world ? config->world : "");
	shared->devices_text = strdup(config->devices ? config->devices : "");
	err = shared->name && shared->devices_text ? attach(shared)
						   : refuse_plainly(NULL, VB_WHY_NO_MEMORY);
	if (err)
		shared_free(shared);
	else
		*wire = &shared->wire;
	return err;
}

void shared_join(struct wire *wire, struct sim_device *device)
{
	struct shared *shared = shared_of(wire);

	if (device->index < SEGMENT_DEVICES)
		shared->devices[device->index] = device;
	shared->engine = device->engine;
}

/* --- what the world asks --- */

void shared_take_calls(struct wire *wire, shared_called_fn *called, void *arg)
{
	shared_of(wire)->called = called;
	shared_of(wire)->called_arg = arg;
}

uint64_t shared_identity(const struct wire *wire)
{
	return shared_of(wire)->identity;
}

void shared_base_ns(const struct wire *wire, uint64_t *monotonic_ns, uint64_t *wall_ns)
{
	*monotonic_ns = shared_of(wire)->base_ns;
	*wall_ns = shared_of(wire)->wall_base_ns;
}

struct bell *shared_bell(const struct wire *wire)
{
	struct shared *shared = shared_of(wire);

	return shared_is_attached(shared)
		       ? &segment_place_at(&shared->segment, shared->segment.place)->bell
		       : &shared->own_bell;
}

uint64_t shared_process(const struct wire *wire)
{
	return shared_of(wire)->segment.id;
}

bool shared_process_lives(const struct wire *wire, uint64_t process)
{
	const struct shared *shared = shared_of(wire);

	return shared_is_attached(shared) && places_live(&shared->segment, process);
}

uint64_t shared_owner(const struct wire *wire, const struct sim_device *device,
		      enum sim_numbers numbers, uint32_t number)
{
	const struct shared *shared = shared_of(wire);
	const struct sim_table *const tables[SIM_NUMBERS] = {
		[SIM_NUMBERS_QP] = &device->qps,
		[SIM_NUMBERS_SRQ] = &device->srqs,
		[SIM_NUMBERS_KEY] = &device->regions,
	};
	const uint32_t block = sim_table_place(tables[numbers], number) / SIM_BLOCK_PLACES;

	return shared_is_attached(shared)
		       ? blocks_owner(&shared->segment, device->index, numbers, block)
		       : 0;
}

enum shared_domain shared_open_domain(struct wire *wire, const struct sim_device *device,
				      const struct stat *inode, int oflags, uint32_t *entry)
{
	struct shared *shared = shared_of(wire);
	const struct domain_key key = {device->index, inode->st_dev, inode->st_ino};

	return shared_is_attached(shared) ? domains_open(&shared->segment, &key, oflags, entry)
					  : SHARED_DOMAIN_FULL;
}

void shared_close_domain(struct wire *wire, uint32_t entry)
{
	domains_close(&shared_of(wire)->segment, entry);
}

bool shared_claim(void *arg, uint32_t device_index, unsigned int numbers, uint32_t *block,
		  uint16_t *generation)
{
	struct shared *shared = arg;

	return shared_is_attached(shared) &&
	       blocks_claim(&shared->segment, device_index, numbers, block, generation);
}
